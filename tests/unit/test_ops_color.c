/* test_ops_color.c - ops that change what pixels look like: options, types, chance */
#include "support/bench.h"

#include <math.h>

#include "image/augment.h"
#include "image/color.h"

enum { SIDE = 17, MOST = SIDE * SIDE * 4 };

static struct bench bench;
static uint8_t bytes[MOST];
static float floats[MOST];

/* With a probability, which 1 is the default of. */
static const char *const by_chance[] = {"invert",       "solarize(50)",        "posterize(2)", "equalize",
                                        "autocontrast", "adjust_sharpness(3)", "grayscale(3)"};
enum { BY_CHANCE = sizeof(by_chance) / sizeof(*by_chance) };

static int
set_up(void **state)
{
	(void)state;
	bench_open(&bench);
	for (size_t i = 0; i < MOST; i++) {
		bytes[i] = (uint8_t)(20 + (i * 151 + i / 7 * 29) % 200);
		floats[i] = (float)bytes[i] / 255;
	}
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	bench_close(&bench);
	return 0;
}

static void
put(int64_t height, int64_t width, int64_t channels, enum leat_dtype dtype)
{
	bench_put_image(&bench, dtype == LEAT_U8 ? (const void *)bytes : (const void *)floats, dtype, height, width,
	                channels);
}

static const void *
run(const char *spec)
{
	if (bench_run(&bench, spec) != LEAT_OK)
		fail_msg("%s: %s", spec, bench.err.text);
	return bench.sample.field[0].data;
}

static void
refuse(const char *spec, const char *sentence)
{
	assert_int_equal(bench_run(&bench, spec), LEAT_SPEC);
	if (strncmp(bench.err.text, sentence, strlen(sentence)) != 0)
		fail_msg("%s: %s", spec, bench.err.text);
	leat_err_clear(&bench.err);
}

/* ---- what is taken ---- */

static void
bytes_stay_bytes_and_floats_stay_floats(void **state)
{
	static const char *const both[] = {"invert",       "solarize(0.5)",
	                                   "autocontrast", "adjust_sharpness(2)",
	                                   "grayscale(3)", "color_jitter(1, 1, 1, 0.5)"};

	(void)state;
	for (size_t i = 0; i < sizeof(both) / sizeof(*both); i++)
		for (int dtype = LEAT_U8; dtype <= LEAT_F32; dtype += LEAT_F32 - LEAT_U8)
			for (int64_t side = 1; side <= SIDE; side += 8)
				for (int64_t channels = 1; channels <= 3; channels += 2) {
					if (strstr(both[i], "gray") && channels == 1)
						continue; /* its channels may change: below */
					put(side, side, channels, (enum leat_dtype)dtype);
					run(both[i]);
					assert_int_equal(bench.sample.field[0].dtype, dtype);
					assert_int_equal(bench.sample.field[0].shape[0], side);
					assert_int_equal(bench.sample.field[0].shape[2], channels);
				}
}

static void
floats_are_refused_where_they_have_no_meaning(void **state)
{
	static const char *const specs[] = {"posterize(4)", "equalize", "rand_augment", "trivial_augment"};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		put(3, 3, 3, LEAT_F32);
		assert_int_equal(bench_run(&bench, specs[i]), LEAT_SPEC);
		assert_non_null(strstr(bench.err.text, "uint8"));
		assert_non_null(strstr(bench.err.text, "put it before ops that output float32"));
	}
}

static void
colors_are_gray_or_rgb(void **state)
{
	static const char *const specs[] = {"grayscale", "color_jitter(1)", "rand_augment", "trivial_augment"};
	struct leat_datum four = {.data = bytes, .dtype = LEAT_U8, .ndim = 3, .shape = {2, 2, 4}};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		put(2, 2, 4, LEAT_U8);
		assert_int_equal(bench_run(&bench, specs[i]), LEAT_SPEC);
		assert_non_null(strstr(bench.err.text, "a gray or RGB image"));
		leat_err_clear(&bench.err);
	}
	/* Where channels are not known beforehand it is found out with the sample. */
	assert_int_equal(leat_check_color(&four, &bench.err), LEAT_DATA);
	assert_string_equal(bench.err.text, "expected gray or RGB (1 or 3 channels); this image has 4");
	leat_err_clear(&bench.err);
	four.shape[1] = 0;
	assert_int_equal(leat_check_color(&four, &bench.err), LEAT_DATA);
}

static void
tone_takes_any_channels(void **state)
{
	static const char *const specs[] = {"invert",   "solarize(128)", "posterize(3)",
	                                    "equalize", "autocontrast",  "adjust_sharpness(0)"};

	(void)state;
	for (size_t i = 0; i < 6; i++)
		for (int64_t channels = 1; channels <= 4; channels++) {
			put(SIDE, SIDE, channels, LEAT_U8);
			run(specs[i]);
		}
}

static void
grayscale_gives_the_channels_that_are_asked_for(void **state)
{
	(void)state;
	for (int64_t channels = 1; channels <= 3; channels += 2) {
		put(2, 3, channels, LEAT_U8);
		run("grayscale");
		assert_int_equal(bench.sample.field[0].shape[2], 1);
		put(2, 3, channels, LEAT_U8);
		run("grayscale(3)");
		assert_int_equal(bench.sample.field[0].shape[2], 3);
	}
}

static void
options_that_make_no_sense_are_refused(void **state)
{
	(void)state;
	put(3, 3, 3, LEAT_U8);
	refuse("grayscale(2)", "channels=2 is not supported: expected 1 or 3");
	refuse("grayscale(probability=0.5)",
	       "with a probability below 1, input and output need the same number of channels: write "
	       "decode(channels=3) and grayscale(channels=3, probability=0.5)");
	refuse("color_jitter([2, 1])", "brightness=[2, 1]: the first number is above the second");
	refuse("color_jitter(contrast=[1, 2, 3])", "contrast has 3 numbers: expected one, or two as in [low, high]");
	refuse("color_jitter(saturation=[])", "saturation has 0 numbers: expected one, or two as in [low, high]");
	refuse("color_jitter(hue=-0.1)", "hue=-0.1 is below 0: write two numbers, as in hue=[-0.1, 0]");
	refuse("rand_augment(magnitude=31)", "magnitude=31 is out of range for bins=31: expected 0 to 30");
	assert_int_equal(bench_run(&bench, "color_jitter(hue=0.6)"), LEAT_SPEC);
	assert_int_equal(bench_run(&bench, "color_jitter(-1)"), LEAT_SPEC);
	assert_int_equal(bench_run(&bench, "posterize(0)"), LEAT_SPEC);
	assert_int_equal(bench_run(&bench, "posterize(9)"), LEAT_SPEC);
	assert_int_equal(bench_run(&bench, "solarize"), LEAT_SPEC);
	assert_int_equal(bench_run(&bench, "adjust_sharpness(-1)"), LEAT_SPEC);
	assert_int_equal(bench_run(&bench, "trivial_augment(bins=1)"), LEAT_SPEC);
	assert_int_equal(bench_run(&bench, "invert(probability=2)"), LEAT_SPEC);
	leat_err_clear(&bench.err);
	put(3, 3, 3, LEAT_F32);
	refuse("solarize(128)", "threshold=128 is above 1, the maximum of float32 images: write 128/255, or put it "
	                        "before ops that output float32");
	put(3, 3, 1, LEAT_U8);
	refuse("grayscale(3, probability=0.5)", "with a probability below 1");
}

/* ---- chance ---- */

static void
the_same_place_gives_the_same_pixels(void **state)
{
	static const char *const specs[] = {"color_jitter(0.5, 0.5, 0.5, 0.5)", "rand_augment", "trivial_augment",
	                                    "invert(probability=0.5)"};
	uint8_t first[MOST];
	int differ;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		differ = 0;
		for (bench.position = 0; bench.position < 50; bench.position++) {
			put(SIDE, SIDE, 3, LEAT_U8);
			memcpy(first, run(specs[i]), SIDE * SIDE * 3);
			put(SIDE, SIDE, 3, LEAT_U8);
			assert_memory_equal(run(specs[i]), first, SIDE * SIDE * 3);
			differ += memcmp(first, bytes, SIDE * SIDE * 3) != 0;
		}
		assert_in_range(differ, 10, 50);
	}
	bench.position = 0;
}

static int
count_changed(const char *spec, int tries)
{
	int changed = 0;

	for (bench.position = 0; bench.position < (uint64_t)tries; bench.position++) {
		bench_put_image(&bench, bytes, LEAT_U8, SIDE, SIDE, 3);
		changed += memcmp(run(spec), bytes, SIDE * SIDE * 3) != 0;
	}
	bench.position = 0;
	return changed;
}

static void
a_probability_is_the_share_of_images_changed(void **state)
{
	(void)state;
	for (int i = 0; i < BY_CHANCE; i++) {
		const char *name = by_chance[i];
		size_t len = strcspn(name, "(");
		char spec[100];
		int args = (int)strlen(name + len) > 2 ? (int)strlen(name + len) - 2 : 0;

		assert_int_equal(count_changed(name, 20), 20);
		for (int tenths = 0; tenths <= 10; tenths += 5) {
			snprintf(spec, sizeof(spec), "%.*s(%.*s%sprobability=%g)", (int)len, name, args,
			         name + len + (args > 0), args ? ", " : "", tenths / 10.0);
			assert_in_range(count_changed(spec, 400), tenths * 40 - (tenths == 5) * 50,
			                tenths * 40 + (tenths == 5) * 50);
		}
	}
}

/* Brightness of gray 100 is the factor times 100: uniform over its range. */
static void
jitter_factors_are_uniform_in_their_range(void **state)
{
	static const struct {
		const char *spec;
		double low, high;
	} known[] = {
		{"color_jitter(0.4)", 0.6, 1.4}, {"color_jitter([0.2, 0.5])", 0.2, 0.5}, {"color_jitter(1.5)", 0, 2.5}};
	enum { TRIES = 2000 };
	const float gray = 0.4f; /* times 2.5 is 1: nothing is cut off */

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		double sum = 0, least = INFINITY, most = -INFINITY, middle = (known[i].low + known[i].high) / 2;
		double width = known[i].high - known[i].low;

		for (bench.position = 0; bench.position < TRIES; bench.position++) {
			double factor;

			bench_put_image(&bench, &gray, LEAT_F32, 1, 1, 1);
			factor = (double)*(const float *)run(known[i].spec) / (double)gray;
			sum += factor;
			least = fmin(least, factor);
			most = fmax(most, factor);
		}
		assert_true(least >= known[i].low - 1e-6 && least < known[i].low + 0.02 * width);
		assert_true(most <= known[i].high + 1e-6 && most > known[i].high - 0.02 * width);
		assert_true(fabs(sum / TRIES - middle) < 0.04 * width); /* 6 standard deviations */
	}
	bench.position = 0;
}

static void
change(const struct leat_datum *image, int which)
{
	if (which == 0)
		leat_adjust_brightness(image, 1.5f);
	else if (which == 1)
		leat_adjust_contrast(image, 0.4f);
	else if (which == 2)
		leat_adjust_saturation(image, 1.8f);
	else
		leat_adjust_hue(image, 0.3f);
}

/* With fixed factors the order alone is drawn: each of the 24 comes, about as often as the others. */
static void
all_orders_of_jitter_are_equally_likely(void **state)
{
	enum { BYTES = SIDE * SIDE * 3, TRIES = 2400 };
	static uint8_t outcome[24][BYTES];
	int hits[24] = {0}, n = 0;

	(void)state;
	for (int code = 0; code < 256; code++) {
		int order[4] = {code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6};
		struct leat_datum image = {.data = outcome[n], .dtype = LEAT_U8, .ndim = 3, .shape = {SIDE, SIDE, 3}};

		if ((1 << order[0] | 1 << order[1] | 1 << order[2] | 1 << order[3]) != 15)
			continue;
		memcpy(outcome[n], bytes, BYTES);
		for (int i = 0; i < 4; i++)
			change(&image, order[i]);
		for (int i = 0; i < n; i++)
			assert_memory_not_equal(outcome[i], outcome[n], BYTES);
		n++;
	}
	assert_int_equal(n, 24);
	for (bench.position = 0; bench.position < TRIES; bench.position++) {
		const void *got;
		int which = 0;

		put(SIDE, SIDE, 3, LEAT_U8);
		got = run("color_jitter([1.5, 1.5], [0.4, 0.4], [1.8, 1.8], [0.3, 0.3])");
		while (which < 24 && memcmp(got, outcome[which], BYTES) != 0)
			which++;
		assert_true(which < 24);
		hits[which]++;
	}
	for (int i = 0; i < 24; i++)
		assert_in_range(hits[i], 50, 150); /* 5 standard deviations */
	bench.position = 0;
}

static void
jitter_of_nothing_changes_nothing(void **state)
{
	(void)state;
	put(SIDE, SIDE, 3, LEAT_U8);
	assert_memory_equal(run("color_jitter"), bytes, SIDE * SIDE * 3);
	put(SIDE, SIDE, 3, LEAT_U8);
	assert_memory_equal(run("color_jitter([1, 1], hue=[0, 0])"), bytes, SIDE * SIDE * 3);
}

/* Several changes are one after the other, with the numbers of the stream in order. */
static void
rand_augment_makes_its_changes_one_after_the_other(void **state)
{
	enum { BYTES = SIDE * 7 * 3 };
	const struct leat_augment_most most = {
		.shear = 0.3,
		.translate_x = 150.0 / 331 * 7,
		.translate_y = 150.0 / 331 * SIDE,
		.rotate = 30,
		.adjust = 0.9,
		.posterize = 4,
	};
	static unsigned char room[4096] __attribute__((aligned(64)));
	struct leat_scratch scratch = {.base = room, .size = sizeof(room)};
	uint8_t want[BYTES];
	struct leat_datum image = {.data = want, .dtype = LEAT_U8, .ndim = 3, .shape = {SIDE, 7, 3}};

	(void)state;
	for (bench.position = 0; bench.position < 300; bench.position++) {
		struct leat_rng rng;

		put(SIDE, 7, 3, LEAT_U8);
		memcpy(want, bytes, BYTES);
		leat_rng_init(&rng, 7, 0, bench.position, leat_stream("rand_augment", 0));
		for (int i = 0; i < 3; i++) {
			enum leat_augment kind = (enum leat_augment)leat_rng_below(&rng, LEAT_AUGMENTS);
			double sign = leat_rng_coin(&rng) && leat_augment_is_signed(kind) ? -1 : 1;

			assert_int_equal(leat_augment(&image, &image, kind,
			                              sign * leat_augment_magnitude(kind, &most, 12, 20), 33, &scratch,
			                              NULL),
			                 LEAT_OK);
		}
		assert_memory_equal(run("rand_augment(ops=3, magnitude=12, bins=20, fill=33)"), want, BYTES);
	}
	bench.position = 0;
}

/* Values up to 255 would be cut to 1 in silence. */
static void
floats_on_a_scale_of_255_are_refused(void **state)
{
	static const char *const specs[] = {"invert", "solarize(0.5)", "autocontrast", "adjust_sharpness(3)",
	                                    "color_jitter(0.4)"};

	(void)state;
	for (size_t i = 0; i < sizeof(specs) / sizeof(*specs); i++) {
		float kept = floats[5];

		floats[5] = 1.9f; /* as random_brightness may make it */
		put(SIDE, SIDE, 3, LEAT_F32);
		run(specs[i]);
		floats[5] = 183;
		put(SIDE, SIDE, 3, LEAT_F32);
		refuse(specs[i], "expected float32 pixels from 0 to 1, but this image has the value 183: put "
		                 "scale(1/255) before it");
		floats[5] = kept;
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_stay_bytes_and_floats_stay_floats),
		cmocka_unit_test(floats_are_refused_where_they_have_no_meaning),
		cmocka_unit_test(floats_on_a_scale_of_255_are_refused),
		cmocka_unit_test(colors_are_gray_or_rgb),
		cmocka_unit_test(tone_takes_any_channels),
		cmocka_unit_test(grayscale_gives_the_channels_that_are_asked_for),
		cmocka_unit_test(options_that_make_no_sense_are_refused),
		cmocka_unit_test(the_same_place_gives_the_same_pixels),
		cmocka_unit_test(a_probability_is_the_share_of_images_changed),
		cmocka_unit_test(jitter_factors_are_uniform_in_their_range),
		cmocka_unit_test(all_orders_of_jitter_are_equally_likely),
		cmocka_unit_test(jitter_of_nothing_changes_nothing),
		cmocka_unit_test(rand_augment_makes_its_changes_one_after_the_other),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
