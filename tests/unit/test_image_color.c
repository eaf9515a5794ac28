/* test_image_color.c - kernels that change what pixels look like: what holds of any image
 *
 * Values are compared with torchvision's in test_golden.c. */
#include "support/bench.h"

#include <math.h>

#include "image/color.h"

enum { SIDE = 20, MOST = SIDE * SIDE * 3 };

static const int64_t sizes[][3] = {{1, 1, 1}, {1, 1, 3}, {1, 7, 3},   {7, 1, 1},  {2, 2, 3},
                                   {3, 3, 1}, {4, 5, 3}, {20, 19, 3}, {17, 20, 1}};
enum { SIZES = sizeof(sizes) / sizeof(*sizes) };

static uint8_t bytes[MOST], byte_copy[MOST];
static float floats[MOST], float_copy[MOST];
static unsigned char room[8192] __attribute__((aligned(64)));
static struct leat_scratch scratch = {.base = room, .size = sizeof(room)};

/* One of the sizes, in one of the types, with new pixels and a copy of them. */
static struct leat_datum
image(int size, enum leat_dtype dtype)
{
	for (size_t i = 0; i < MOST; i++) {
		byte_copy[i] = bytes[i] = (uint8_t)(i * 151 + i / 7 * 29 + i / 256);
		float_copy[i] = floats[i] = (float)bytes[i] / 255;
	}
	return (struct leat_datum){
		.data = dtype == LEAT_U8 ? (void *)bytes : (void *)floats,
		.dtype = dtype,
		.ndim = 3,
		.shape = {sizes[size][0], sizes[size][1], sizes[size][2]},
	};
}

#define EACH_IMAGE(x)                                                                                                  \
	for (int each_ = 0; each_ < 2 * SIZES; each_++)                                                                \
		for (struct leat_datum x = image(each_ / 2, each_ % 2 ? LEAT_F32 : LEAT_U8); x.data; x.data = NULL)

static void
assert_unchanged(const struct leat_datum *x)
{
	int64_t count = leat_datum_elements(x);

	if (x->dtype == LEAT_U8)
		assert_memory_equal(bytes, byte_copy, (size_t)count);
	for (int64_t i = 0; x->dtype == LEAT_F32 && i < count; i++)
		assert_true(fabsf(floats[i] - float_copy[i]) <= 1e-6f);
}

static double
value(const struct leat_datum *x, int64_t i)
{
	return x->dtype == LEAT_U8 ? bytes[i] : (double)floats[i];
}

static void
sharpen(const struct leat_datum *x, float factor)
{
	assert_int_equal(leat_adjust_sharpness(x, factor, &scratch, NULL), LEAT_OK);
	assert_int_equal(scratch.used, 0);
}

static void
a_factor_of_1_changes_nothing(void **state)
{
	(void)state;
	EACH_IMAGE(x)
	{
		leat_adjust_brightness(&x, 1);
		leat_adjust_contrast(&x, 1);
		leat_adjust_saturation(&x, 1);
		sharpen(&x, 1);
		assert_unchanged(&x);
	}
}

static void
a_factor_of_0_leaves_black_one_value_or_gray(void **state)
{
	(void)state;
	EACH_IMAGE(x)
	{
		leat_adjust_saturation(&x, 0);
		for (int64_t i = 0; i < leat_datum_elements(&x); i++)
			assert_true(value(&x, i) == value(&x, i - i % x.shape[2]));
		leat_adjust_contrast(&x, 0);
		for (int64_t i = 0; i < leat_datum_elements(&x); i++)
			assert_true(value(&x, i) == value(&x, 0));
		leat_adjust_brightness(&x, 0);
		for (int64_t i = 0; i < leat_datum_elements(&x); i++)
			assert_true(value(&x, i) == 0);
	}
}

static void
any_factor_keeps_values_in_range(void **state)
{
	static const float factors[] = {0, 0.5f, 3, 1e20f, 3e38f};

	(void)state;
	for (size_t k = 0; k < sizeof(factors) / sizeof(*factors); k++)
		EACH_IMAGE(x)
		{
			leat_adjust_brightness(&x, factors[k]);
			leat_adjust_contrast(&x, factors[k]);
			leat_adjust_saturation(&x, factors[k]);
			sharpen(&x, factors[k]);
			for (int64_t i = 0; x.dtype == LEAT_F32 && i < leat_datum_elements(&x); i++)
				assert_true(floats[i] >= 0 && floats[i] <= 1);
		}
}

/* All weights together are 1: white stays white, and gray of gray is the same gray. */
static void
gray_stays_gray(void **state)
{
	(void)state;
	for (int v = 0; v < 256; v++) {
		uint8_t rgb[3] = {(uint8_t)v, (uint8_t)v, (uint8_t)v};
		struct leat_datum x = {.data = rgb, .dtype = LEAT_U8, .ndim = 3, .shape = {1, 1, 3}};

		leat_grayscale(&x, &x);
		leat_adjust_hue(&x, 0.3f);
		leat_adjust_saturation(&x, 2);
		for (int c = 0; c < 3; c++)
			assert_int_equal(rgb[c], v);
	}
}

static void
grayscale_makes_one_channel_three_and_back(void **state)
{
	uint8_t in[] = {10, 250}, three[6], one[2];
	struct leat_datum gray = {.data = in, .dtype = LEAT_U8, .ndim = 3, .shape = {1, 2, 1}};
	struct leat_datum rgb = {.data = three, .dtype = LEAT_U8, .ndim = 3, .shape = {1, 2, 3}};
	struct leat_datum back = {.data = one, .dtype = LEAT_U8, .ndim = 3, .shape = {1, 2, 1}};

	(void)state;
	leat_grayscale(&gray, &rgb);
	assert_memory_equal(three, ((const uint8_t[]){10, 10, 10, 250, 250, 250}), 6);
	leat_grayscale(&rgb, &back);
	assert_memory_equal(one, in, 2);
}

static void
a_turned_hue_keeps_the_largest_channel_and_turns_back(void **state)
{
	(void)state;
	for (float turn = -0.5f; turn <= 0.5f; turn += 0.07f)
		EACH_IMAGE(x)
		{
			leat_adjust_hue(&x, turn);
			for (int64_t i = 0; x.shape[2] == 3 && i < leat_datum_elements(&x); i += 3) {
				double before =
					fmax(fmax(x.dtype == LEAT_U8 ? byte_copy[i] : (double)float_copy[i],
				                  x.dtype == LEAT_U8 ? byte_copy[i + 1] : (double)float_copy[i + 1]),
				             x.dtype == LEAT_U8 ? byte_copy[i + 2] : (double)float_copy[i + 2]);

				assert_true(fmax(fmax(value(&x, i), value(&x, i + 1)), value(&x, i + 2)) == before);
			}
			leat_adjust_hue(&x, -turn);
			for (int64_t i = 0; x.dtype == LEAT_F32 && i < leat_datum_elements(&x); i++)
				assert_true(fabsf(floats[i] - float_copy[i]) < 1e-5f);
		}
}

static void
a_third_of_a_circle_moves_red_to_green(void **state)
{
	float rgb[] = {0.9f, 0.1f, 0.1f};
	struct leat_datum x = {.data = rgb, .dtype = LEAT_F32, .ndim = 3, .shape = {1, 1, 3}};

	(void)state;
	leat_adjust_hue(&x, 1.0f / 3);
	assert_true(fabsf(rgb[0] - 0.1f) < 1e-6f && fabsf(rgb[1] - 0.9f) < 1e-6f && fabsf(rgb[2] - 0.1f) < 1e-6f);
}

/* Nothing is promised of the values but that computing them is safe. */
static void
numbers_that_are_no_colors_do_no_harm(void **state)
{
	static const float strange[] = {NAN, INFINITY, -INFINITY, -1, 1e30f, -0.0f, 2};

	(void)state;
	for (int size = 0; size < SIZES; size++)
		for (int k = 0; k < 7; k++) {
			struct leat_datum x = image(size, LEAT_F32);

			for (int64_t i = 0; i < leat_datum_elements(&x); i++)
				floats[i] = strange[(i + k) % 7];
			leat_adjust_hue(&x, 0.4f);
			leat_adjust_contrast(&x, 0.4f);
			leat_adjust_saturation(&x, 3);
			leat_adjust_brightness(&x, 2);
			sharpen(&x, 2);
			leat_autocontrast(&x);
			leat_solarize(&x, 0.5f);
			leat_grayscale(&x, &x);
		}
}

/* ---- sharpness ---- */

static void
sharpening_leaves_the_outermost_pixels(void **state)
{
	(void)state;
	EACH_IMAGE(x)
	{
		int64_t height = x.shape[0], width = x.shape[1], channels = x.shape[2], changed = 0;

		sharpen(&x, 2.5f);
		for (int64_t i = 0; i < leat_datum_elements(&x); i++) {
			int64_t row = i / channels / width, column = i / channels % width;
			bool inside = row > 0 && row < height - 1 && column > 0 && column < width - 1;
			bool same = x.dtype == LEAT_U8 ? bytes[i] == byte_copy[i] : floats[i] == float_copy[i];

			assert_true(inside || same);
			changed += !same;
		}
		assert_true(changed > 0 || height < 3 || width < 3);
	}
}

static void
smoothing_one_bright_pixel_spreads_it(void **state)
{
	uint8_t in[25] = {[12] = 130}, out[25] = {[6] = 10, 10, 10, [11] = 10, 50, 10, [16] = 10, 10, 10};
	struct leat_datum x = {.data = in, .dtype = LEAT_U8, .ndim = 3, .shape = {5, 5, 1}};

	(void)state;
	sharpen(&x, 0);
	assert_memory_equal(in, out, sizeof(out));
}

static void
too_little_scratch_for_two_rows_is_said(void **state)
{
	struct leat_datum x = image(7, LEAT_U8);
	struct leat_scratch small = {.base = room, .size = 64};
	struct leat_err err;

	(void)state;
	leat_err_clear(&err);
	assert_int_equal(leat_adjust_sharpness(&x, 2, &small, &err), LEAT_LIMIT);
	assert_non_null(strstr(err.text, "bytes a sample may use"));
	assert_int_equal(small.used, 0);
	assert_unchanged(&x);
}

/* ---- tone ---- */

static void
inverting_twice_changes_nothing(void **state)
{
	(void)state;
	EACH_IMAGE(x)
	{
		leat_invert(&x);
		assert_true(fabs(value(&x, 0) -
		                 ((x.dtype == LEAT_U8 ? 255 - byte_copy[0] : 1 - (double)float_copy[0]))) < 1e-6);
		leat_invert(&x);
		assert_unchanged(&x);
	}
}

static void
solarizing_inverts_from_the_threshold_on(void **state)
{
	uint8_t in[] = {0, 127, 128, 255};
	struct leat_datum x = {.data = in, .dtype = LEAT_U8, .ndim = 3, .shape = {2, 2, 1}};

	(void)state;
	leat_solarize(&x, 128);
	assert_memory_equal(in, ((const uint8_t[]){0, 127, 127, 0}), 4);
	EACH_IMAGE(all)
	{
		leat_solarize(&all, 256);
		assert_unchanged(&all);
		leat_solarize(&all, 0);
		leat_invert(&all);
		assert_unchanged(&all);
	}
}

static void
posterizing_keeps_the_highest_bits(void **state)
{
	(void)state;
	for (int bits = 1; bits <= 8; bits++)
		for (int size = 0; size < SIZES; size++) {
			struct leat_datum x = image(size, LEAT_U8);

			leat_posterize(&x, bits);
			for (int64_t i = 0; i < leat_datum_elements(&x); i++)
				assert_int_equal(bytes[i], byte_copy[i] >> (8 - bits) << (8 - bits));
		}
}

/* Larger values stay larger, or become equal. */
static void
assert_order_is_kept(const struct leat_datum *x)
{
	int64_t channels = x->shape[2], count = leat_datum_elements(x);

	for (int64_t i = 0; i < count; i++)
		for (int64_t k = i % channels; k < count; k += 7 * channels)
			if (x->dtype == LEAT_U8 ? byte_copy[i] < byte_copy[k] : float_copy[i] < float_copy[k])
				assert_true(value(x, i) <= value(x, k));
}

static void
channels_of_one_value_stay(void **state)
{
	(void)state;
	EACH_IMAGE(x)
	{
		for (int64_t i = 0; i < leat_datum_elements(&x); i++) {
			byte_copy[i] = bytes[i] = (uint8_t)(100 + i % x.shape[2]);
			float_copy[i] = floats[i] = (float)bytes[i] / 255;
		}
		leat_autocontrast(&x);
		if (x.dtype == LEAT_U8)
			leat_equalize(&x);
		if (x.shape[2] == 1) /* the mean is the only value */
			leat_adjust_contrast(&x, 1.5f);
		assert_unchanged(&x);
	}
}

static void
autocontrast_goes_from_black_to_white(void **state)
{
	(void)state;
	EACH_IMAGE(x)
	{
		/* Pillow cuts off: white may become 254. */
		double white = x.dtype == LEAT_U8 ? 255 : 1, most_off = x.dtype == LEAT_U8 ? 1 : 1e-6;

		for (int64_t i = 0; i < leat_datum_elements(&x); i++) {
			byte_copy[i] = bytes[i] = (uint8_t)(bytes[i] / 3 + 40);
			float_copy[i] = floats[i] = floats[i] / 3 + 0.2f;
		}
		leat_autocontrast(&x);
		assert_order_is_kept(&x);
		for (int64_t c = 0; c < x.shape[2]; c++) {
			double min = INFINITY, max = -INFINITY;

			for (int64_t i = c; i < leat_datum_elements(&x); i += x.shape[2]) {
				min = fmin(min, value(&x, i));
				max = fmax(max, value(&x, i));
			}
			if (x.shape[0] * x.shape[1] > 1)
				assert_true(min == 0 && max >= white - most_off && max <= white);
		}
	}
}

static void
equalizing_spreads_values_evenly(void **state)
{
	static uint8_t in[32 * 255];
	struct leat_datum x = {.data = in, .dtype = LEAT_U8, .ndim = 3, .shape = {32, 255, 1}};

	(void)state;
	for (int i = 0; i < 32 * 255; i++)
		in[i] = (uint8_t)(i / 255 + 100); /* 32 values, equally often */
	leat_equalize(&x);
	for (int i = 0; i < 32 * 255; i++)
		assert_int_equal(in[i], (i / 255 * 255 + 15) / 31);
}

static void
equalizing_keeps_the_order(void **state)
{
	(void)state;
	for (int size = 0; size < SIZES; size++) {
		struct leat_datum x = image(size, LEAT_U8);

		leat_equalize(&x);
		assert_order_is_kept(&x);
	}
}

/* What a channel becomes does not depend on the others. */
static void
tone_treats_channels_alone(void **state)
{
	uint8_t rgb[MOST], alone[MOST / 3];
	struct leat_datum x = {.data = rgb, .dtype = LEAT_U8, .ndim = 3, .shape = {SIDE, SIDE, 3}};
	struct leat_datum one = {.data = alone, .dtype = LEAT_U8, .ndim = 3, .shape = {SIDE, SIDE, 1}};

	(void)state;
	image(0, LEAT_U8);
	for (int way = 0; way < 2; way++) {
		void (*change)(const struct leat_datum *) = way ? leat_equalize : leat_autocontrast;

		for (size_t i = 0; i < MOST; i++)
			rgb[i] = (uint8_t)(bytes[i] / (2 + i % 3));
		for (size_t c = 0; c < 3; c++) {
			memcpy(floats, rgb, MOST); /* somewhere to keep it */
			for (size_t i = 0; i < MOST / 3; i++)
				alone[i] = rgb[3 * i + c];
			change(&one);
			change(&x);
			for (size_t i = 0; i < MOST / 3; i++)
				assert_int_equal(rgb[3 * i + c], alone[i]);
			memcpy(rgb, floats, MOST);
		}
	}
}

static void
sharpening_takes_the_scratch_that_was_measured(void **state)
{
	(void)state;
	EACH_IMAGE(x)
	{
		struct leat_scratch used = {.base = room, .size = sizeof(room), .used = 1};

		assert_int_equal(leat_adjust_sharpness(&x, 2, &used, NULL), LEAT_OK);
		assert_int_equal(used.peak, leat_adjust_sharpness_scratch(x.shape, x.dtype));
	}
	assert_int_equal(leat_adjust_sharpness_scratch((const int64_t[]){4, -1, 3}, LEAT_U8), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_factor_of_1_changes_nothing),
		cmocka_unit_test(a_factor_of_0_leaves_black_one_value_or_gray),
		cmocka_unit_test(any_factor_keeps_values_in_range),
		cmocka_unit_test(gray_stays_gray),
		cmocka_unit_test(grayscale_makes_one_channel_three_and_back),
		cmocka_unit_test(a_turned_hue_keeps_the_largest_channel_and_turns_back),
		cmocka_unit_test(a_third_of_a_circle_moves_red_to_green),
		cmocka_unit_test(numbers_that_are_no_colors_do_no_harm),
		cmocka_unit_test(sharpening_leaves_the_outermost_pixels),
		cmocka_unit_test(sharpening_takes_the_scratch_that_was_measured),
		cmocka_unit_test(smoothing_one_bright_pixel_spreads_it),
		cmocka_unit_test(too_little_scratch_for_two_rows_is_said),
		cmocka_unit_test(inverting_twice_changes_nothing),
		cmocka_unit_test(solarizing_inverts_from_the_threshold_on),
		cmocka_unit_test(posterizing_keeps_the_highest_bits),
		cmocka_unit_test(channels_of_one_value_stay),
		cmocka_unit_test(autocontrast_goes_from_black_to_white),
		cmocka_unit_test(equalizing_spreads_values_evenly),
		cmocka_unit_test(equalizing_keeps_the_order),
		cmocka_unit_test(tone_treats_channels_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
