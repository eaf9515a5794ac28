/* test_fast.c - decode(fast=true): what is decoded smaller and what is not, and that it shows the same places */
#include "support/jpegs.h"

#include "image/pass.h"
#include "support/image.h"

enum { MAX_PIXELS = 1 << 20, CHANNELS = 3 };

static struct bench bench;

static int
open_bench(void **state)
{
	bench_open(&bench);
	return set_up(state);
}

static int
close_bench(void **state)
{
	bench_close(&bench);
	return tear_down(state);
}

/* All ops of the text as one pass, as the engine joins them; the result is to be freed. */
static void *
run_bytes(const void *bytes, size_t size, uint64_t position, const char *text)
{
	struct leat_spec spec = {0};
	struct leat_pass pass;
	size_t length;
	void *copy;

	bench_put_bytes(&bench, bytes, size);
	assert_int_equal(leat_spec_parse(&spec, text, &bench.mem, &bench.err), LEAT_OK);
	for (size_t i = 0; i < spec.calls; i++) {
		const struct leat_op *op = leat_op_find(spec.call[i].name);
		void *params = leat_alloc(&bench.mem, op->params_size);
		enum leat_status status;

		assert_int_equal(leat_opts_set(op->opts, params, &spec.call[i], spec.text, &bench.mem, &bench.err),
		                 LEAT_OK);
		leat_rng_init(&bench.work.rng, 7, 0, position, leat_stream(op->name, 0));
		status = i ? leat_fuse_add(op, params, &bench.work, &pass, &bench.err)
		           : leat_fuse_begin(op, params, &bench.work, 0, &pass, &bench.err);
		if (status != LEAT_OK)
			fail_msg("%s: %s", text, bench.err.text);
		leat_opts_free(op->opts, params, &bench.mem);
		leat_free(&bench.mem, params);
	}
	assert_int_equal(leat_fuse_finish(&pass, &bench.work, 0, &bench.err), LEAT_OK);
	leat_spec_free(&spec);
	length = leat_datum_bytes(&bench.sample.field[0]);
	copy = malloc(length);
	return memcpy(copy, bench.sample.field[0].data, length);
}

static void *
run(const struct file *file, uint64_t position, const char *text)
{
	return run_bytes(file->bytes, file->size, position, text);
}

static size_t
result_bytes(void)
{
	return leat_datum_bytes(&bench.sample.field[0]);
}

static struct file
encode_noise(int i, int width, int height)
{
	static const int sampling[][2] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};

	return encode_as(&(struct style){.quality = 90, .noise = 60, .progressive = i % 5 == 4}, width, height, false,
	                 sampling[i % 4][0], sampling[i % 4][1]);
}

/* ---- what is not touched ---- */

static void
assert_same(const struct file *file, const char *ops)
{
	char text[300];
	void *fast, *slow;

	snprintf(text, sizeof text, "decode(fast=true)%s%s", *ops ? " | " : "", ops);
	fast = run(file, 3, text);
	snprintf(text, sizeof text, "decode%s%s", *ops ? " | " : "", ops);
	slow = run(file, 3, text);
	assert_memory_equal(fast, slow, result_bytes());
	free(fast);
	free(slow);
}

static void
pixels_are_those_of_the_mode_unless_both_sides_are_halved_by_what_comes_next(void **state)
{
	static const char *const ops[] = {
		"",
		"crop(3, 5, 40, 50)",
		"scale(1/255)",
		"resize(61, 40)",                          /* rows: 120 / 61 */
		"resize(30, 81)",                          /* columns: 160 / 81 */
		"resize(300, 300)",                        /* larger */
		"crop(0, 0, 100, 100) | resize(51, 50)",   /* what is kept counts */
		"resize(20, 20, method=nearest)",          /* pixels are picked, not made */
		"flip | resize(20, 20)",                   /* happens to full pixels */
		"pad(all=1) | resize(20, 20)",             /* so does this, */
		"rotate(40deg) | resize(20, 20)",          /* this, */
		"random_contrast(0.5, 1.5) | resize(9, 9)" /* and this */
	};

	(void)state;
	for (int i = 0; i < 5; i++) {
		struct file file = encode_noise(i, 160, 120);

		for (size_t k = 0; k < sizeof(ops) / sizeof(*ops); k++)
			assert_same(&file, ops[k]);
		free(file.bytes);
	}
}

static void
png_images_are_never_reduced(void **state)
{
	size_t size;
	unsigned char *bytes = bench_read(GOLDEN "tf/gray-alpha.png", &size);
	struct file file = {.bytes = bytes, .size = size};

	(void)state;
	assert_same(&file, "resize(2, 2)");
	free(bytes);
}

/* ---- what is decoded smaller ---- */

static uint8_t *
reduced(const struct file *file, int halvings, const struct leat_window *part)
{
	const struct leat_decoding how = {.channels = CHANNELS, .fast = true};
	uint8_t *out = malloc((size_t)(part->height * part->width * CHANNELS));
	struct leat_decode image;

	leat_scratch_reset(&scratch);
	assert_int_equal(leat_decode_begin(&image, file->bytes, file->size, &how, MAX_PIXELS, &scratch, &err), LEAT_OK);
	assert_int_equal(leat_decode_reduced(&image, halvings, part, out, (size_t)(part->width * CHANNELS), &err),
	                 LEAT_OK);
	leat_decode_end(&image);
	return out;
}

/* Where a side is halved without a rest, resampling has nothing left to do. */
static void
a_part_that_is_halved_exactly_is_the_reduced_image(void **state)
{
	(void)state;
	for (int i = 0; i < 60; i++) {
		const int n = 1 + i % 3, h = 1 + draw(6), w = 1 + draw(6), top = draw(8), left = draw(8);
		const struct leat_window part = {top, left, h, w};
		struct file file = encode_noise(i, 150, 130);
		uint8_t *want = reduced(&file, n, &part), *got;
		char text[200];

		snprintf(text, sizeof text,
		         "decode(fast=true) | crop(%d, %d, %d, %d) | resize(%d, %d, mode=torch, antialias=true)",
		         top << n, left << n, h << n, w << n, h, w);
		got = run(&file, 0, text);
		assert_memory_equal(got, want, (size_t)(h * w * CHANNELS));
		free(got);
		free(want);
		free(file.bytes);
	}
}

/* The rule: the smallest that is not smaller than the result, in both directions. */
static void
the_smallest_size_that_is_large_enough_is_decoded(void **state)
{
	static const struct {
		int height, width, halvings;
	} cases[] = {{80, 96, 1}, {41, 40, 1}, {40, 48, 2}, {40, 49, 1},
	             {21, 20, 2}, {20, 24, 3}, {9, 7, 3},   {1, 1, 3}};
	struct file file = encode_noise(3, 192, 160);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const int n = cases[i].halvings, height = cases[i].height, width = cases[i].width;
		const struct leat_window all = {.height = 160 >> n, .width = 192 >> n};
		const struct leat_resampling how = {.mode = LEAT_RESIZE_TORCH, .antialias = true};
		struct leat_datum in = {.dtype = LEAT_U8, .ndim = 3, .shape = {160 >> n, 192 >> n, CHANNELS}};
		struct leat_datum want = {.dtype = LEAT_U8, .ndim = 3, .shape = {height, width, CHANNELS}};
		char text[200];
		void *got;

		snprintf(text, sizeof text, "decode(fast=true) | resize(%d, %d, mode=torch, antialias=true)", height,
		         width);
		got = run(&file, 0, text);
		in.data = reduced(&file, n, &all);
		want.data = malloc(leat_datum_bytes(&want));
		assert_int_equal(resize_image(&in, NULL, &want, &how, &scratch, &err), LEAT_OK);
		assert_memory_equal(got, want.data, leat_datum_bytes(&want));
		free(want.data);
		free(in.data);
		free(got);
	}
	free(file.bytes);
}

/* ---- where it is ---- */

static double
value_at(const void *data, enum leat_dtype dtype, int64_t i)
{
	return dtype == LEAT_U8 ? ((const uint8_t *)data)[i] : (double)((const float *)data)[i];
}

enum { MOST_OFF = 5 }; /* tenths of a pixel of the full image */

/* On a slope, a place that is off by a part of a pixel shows in the mean of differences with their signs. */
static void
assert_same_places(const struct file *file, uint64_t position, const char *ops)
{
	char text[300];
	double sum[CHANNELS] = {0}, off = 0;
	enum leat_dtype dtype;
	int64_t count;
	void *fast, *slow;

	snprintf(text, sizeof text, "decode(mode=torch, fast=true) | %s", ops);
	fast = run(file, position, text);
	snprintf(text, sizeof text, "decode(mode=torch) | %s", ops);
	slow = run(file, position, text);
	dtype = bench.sample.field[0].dtype;
	count = (int64_t)(result_bytes() / leat_dtype_size(dtype));
	for (int64_t i = 0; i < count; i++) {
		double difference = value_at(fast, dtype, i) - value_at(slow, dtype, i);

		sum[i % CHANNELS] += difference;
		off += fabs(difference);
	}
	/* Red grows along rows, green down columns; blue goes up and down. */
	for (int c = 0; c < 2; c++)
		if (fabs(sum[c] * CHANNELS / (double)count) > MOST_OFF * 19.0 / (c ? file->height : file->width))
			fail_msg("%s: color %d is off by %f", ops, c, sum[c] * CHANNELS / (double)count);
	if (off / (double)count > 2)
		fail_msg("%s: off by %f on average", ops, off / (double)count);
	free(fast);
	free(slow);
}

/* Of boxes that begin and end anywhere. */
static void
a_smaller_image_is_resampled_from_the_same_box(void **state)
{
	static const char *const ways[] = {
		", mode=torch, antialias=true",
		", antialias=true",
		"",
		", mode=torch",
		", method=bicubic",
		", method=bicubic, antialias=true",
		", method=lanczos, mode=torch, antialias=true",
		", method=area",
	};

	(void)state;
	for (int i = 0; i < 900; i++) {
		const struct style style = {.quality = 97, .smooth = true};
		struct file file = encode_as(&style, 120 + draw(80), 120 + draw(80), false, 1 + i % 2, 1 + i / 2 % 2);
		const int height = 64 + draw(file.height - 64), width = 64 + draw(file.width - 64);
		const int h = 8 + draw(height / 2 - 8), w = 8 + draw(width / 2 - 8);
		char ops[200];

		snprintf(ops, sizeof ops, "crop(%d, %d, %d, %d) | resize(%d, %d%s)", draw(file.height - height),
		         draw(file.width - width), height, width, h, w, ways[i % 8]);
		assert_same_places(&file, 0, ops);
		free(file.bytes);
	}
}

static void
random_crops_are_drawn_as_without_it(void **state)
{
	(void)state;
	for (int i = 0; i < 300; i++) {
		const struct style style = {.quality = 97, .smooth = true};
		struct file file = encode_as(&style, 120 + draw(80), 120 + draw(80), false, 1 + i % 2, 1 + i / 2 % 2);

		assert_same_places(
			&file, (uint64_t)i,
			"random_resized_crop(24, 28, scale=[0.3, 1], mode=torch, antialias=true) | random_flip | "
			"scale(1)");
		assert_same_places(&file, (uint64_t)i, "random_crop(90, 100) | resize(20, 20, antialias=true)");
		free(file.bytes);
	}
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_bench, close_bench)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pixels_are_those_of_the_mode_unless_both_sides_are_halved_by_what_comes_next),
		TEST(png_images_are_never_reduced),
		TEST(a_part_that_is_halved_exactly_is_the_reduced_image),
		TEST(the_smallest_size_that_is_large_enough_is_decoded),
		TEST(a_smaller_image_is_resampled_from_the_same_box),
		TEST(random_crops_are_drawn_as_without_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
