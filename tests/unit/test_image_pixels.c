/* test_image_pixels.c - kernels that no op shows in full: pointwise steps, means, casts, transposition */
#include "support/bench.h"

#include <math.h>

#include "image/affine.h"
#include "image/image.h"

static struct leat_datum
datum(void *data, enum leat_dtype dtype, int64_t a, int64_t b, int64_t c)
{
	return (struct leat_datum){.data = data, .dtype = dtype, .ndim = 3, .shape = {a, b, c}};
}

/* Numbers without a pattern, the same in every run. */
static float
noise(size_t i)
{
	return (float)((i * 2654435761u) % 1000003u) / 500001.5f - 1;
}

enum { MOST = 3 * 67 * 5 };

/* One element, one step, the two roundings written out. */
static float
expected_step(const struct leat_affine *step, size_t channel, float x)
{
	volatile float product = step->mul[channel] * x;

	return product + step->add[channel];
}

static size_t
channel_of(size_t i, const struct leat_datum *image, enum leat_layout layout)
{
	if (layout == LEAT_HWC)
		return i % (size_t)image->shape[2];
	return layout == LEAT_CHW ? i / (size_t)(image->shape[1] * image->shape[2]) : 0;
}

static void
check_affine(struct leat_datum in, enum leat_layout layout, int steps)
{
	struct leat_affine step[11];
	float got[MOST];
	struct leat_datum out = in;
	size_t count = (size_t)leat_datum_elements(&in);

	out.data = got;
	out.dtype = LEAT_F32;
	for (int s = 0; s < steps; s++)
		for (size_t c = 0; c < LEAT_MAX_CHANNELS; c++) {
			step[s].mul[c] = 1 + noise(100 + (size_t)s * 8 + c) / 3;
			step[s].add[c] = noise(200 + (size_t)s * 8 + c);
		}
	leat_affine_apply(&in, &out, layout, step, steps);
	for (size_t i = 0; i < count; i++) {
		float x = in.dtype == LEAT_U8 ? (float)((const uint8_t *)in.data)[i] : ((const float *)in.data)[i];

		for (int s = 0; s < steps; s++)
			x = expected_step(&step[s], channel_of(i, &in, layout), x);
		if (memcmp(&x, &got[i], sizeof(x)) != 0)
			fail_msg("element %zu of %zu is %.9g, expected %.9g", i, count, (double)got[i], (double)x);
	}
}

static void
pointwise_steps_round_after_each_operation_and_go_by_channel(void **state)
{
	static const int64_t shapes[][2] = {{1, 1}, {1, 7}, {5, 3}, {32, 1}, {5, 67}};
	uint8_t bytes[MOST];
	float floats[MOST];

	(void)state;
	for (size_t i = 0; i < MOST; i++) {
		bytes[i] = (uint8_t)(i * 37);
		floats[i] = noise(i);
	}
	for (size_t s = 0; s < sizeof(shapes) / sizeof(*shapes); s++)
		for (int64_t c = 1; c <= 3; c++)
			for (int steps = 0; steps <= 11; steps += steps < 3 ? 1 : 4) {
				int64_t h = shapes[s][0], w = shapes[s][1];

				check_affine(datum(bytes, LEAT_U8, h, w, c), LEAT_HWC, steps);
				check_affine(datum(floats, LEAT_F32, h, w, c), LEAT_HWC, steps);
				check_affine(datum(bytes, LEAT_U8, c, h, w), LEAT_CHW, steps);
				check_affine(datum(floats, LEAT_F32, c, h, w), LEAT_CHW, steps);
				check_affine(datum(floats, LEAT_F32, c, h, w), LEAT_LAYOUT_NONE, steps);
			}
	check_affine(datum(bytes, LEAT_U8, 5, 8, 4), LEAT_HWC, 2);
	check_affine(datum(bytes, LEAT_U8, 0, 8, 4), LEAT_HWC, 2);
}

static void
pointwise_steps_may_write_over_their_input(void **state)
{
	struct leat_affine step[2] = {leat_affine_uniform(3, 1), leat_affine_uniform(-1, 0.5f)};
	float in[MOST], apart[MOST];
	struct leat_datum from = datum(in, LEAT_F32, 67, 5, 3), to = datum(apart, LEAT_F32, 67, 5, 3);

	(void)state;
	for (size_t i = 0; i < MOST; i++)
		in[i] = noise(i);
	leat_affine_apply(&from, &to, LEAT_HWC, step, 2);
	leat_affine_apply(&from, &from, LEAT_HWC, step, 2);
	assert_memory_equal(in, apart, sizeof(in));
}

static void
means_are_those_of_each_channel(void **state)
{
	static const int64_t shapes[][2] = {{1, 1}, {1, 5}, {3, 5}, {67, 5}};
	float floats[4 * 67 * 5], mean[LEAT_MAX_CHANNELS];
	uint8_t bytes[4 * 67 * 5];

	(void)state;
	for (size_t i = 0; i < 4 * 67 * 5; i++) {
		floats[i] = noise(i) * 100;
		bytes[i] = (uint8_t)(i * 37);
	}
	for (size_t s = 0; s < 4; s++)
		for (int64_t channels = 1; channels <= LEAT_MAX_CHANNELS; channels++) {
			struct leat_datum f = datum(floats, LEAT_F32, shapes[s][0], shapes[s][1], channels);
			struct leat_datum u = datum(bytes, LEAT_U8, shapes[s][0], shapes[s][1], channels);
			int64_t pixels = shapes[s][0] * shapes[s][1];

			for (int64_t c = 0; c < channels; c++) {
				double f_sum = 0, u_sum = 0;

				for (int64_t i = 0; i < pixels; i++) {
					f_sum += (double)floats[i * channels + c];
					u_sum += bytes[i * channels + c];
				}
				leat_channel_means(&f, mean);
				assert_true(fabs((double)mean[c] - f_sum / (double)pixels) < 1e-5);
				leat_channel_means(&u, mean);
				assert_true(mean[c] == (float)(u_sum / (double)pixels));
			}
		}
}

static double
cast_one(const void *in, enum leat_dtype from, enum leat_dtype to)
{
	union {
		uint8_t u8;
		int32_t i32;
		int64_t i64;
		float f32;
		double f64;
		uint16_t bits;
	} out;

	leat_cast(in, from, &out, to, 1);
	switch (to) {
	case LEAT_U8:
		return out.u8;
	case LEAT_I32:
		return out.i32;
	case LEAT_I64:
		return (double)out.i64;
	case LEAT_F32:
		return (double)out.f32;
	case LEAT_F64:
		return out.f64;
	default:
		return out.bits;
	}
}

static double
cast_f64(double x, enum leat_dtype to)
{
	return cast_one(&x, LEAT_F64, to);
}

static double
cast_f32(float x, enum leat_dtype to)
{
	return cast_one(&x, LEAT_F32, to);
}

static double
cast_i64(int64_t x, enum leat_dtype to)
{
	return cast_one(&x, LEAT_I64, to);
}

static void
casts_to_integers_cut_off_fractions_and_saturate(void **state)
{
	(void)state;
	assert_true(cast_f32(3.99f, LEAT_U8) == 3);
	assert_true(cast_f32(-3.99f, LEAT_I32) == -3);
	assert_true(cast_f32(-0.99f, LEAT_U8) == 0);
	assert_true(cast_f32(-7, LEAT_U8) == 0);
	assert_true(cast_f32(255.99f, LEAT_U8) == 255);
	assert_true(cast_f32(1e30f, LEAT_U8) == 255);
	assert_true(cast_f32(NAN, LEAT_U8) == 0);
	assert_true(cast_f32(INFINITY, LEAT_I32) == INT32_MAX);
	assert_true(cast_f32(-INFINITY, LEAT_I32) == INT32_MIN);
	assert_true(cast_f32(NAN, LEAT_I32) == 0);
	assert_true(cast_f64(2147483646.9, LEAT_I32) == 2147483646);
	assert_true(cast_f64(-2147483648.9, LEAT_I32) == INT32_MIN);
	assert_true(cast_f64(1e19, LEAT_I64) == (double)INT64_MAX);
	assert_true(cast_f64(-1e19, LEAT_I64) == (double)INT64_MIN);
	assert_true(cast_f64(NAN, LEAT_I64) == 0);
	assert_true(cast_f64(256, LEAT_U8) == 255);
	assert_true(cast_f64(NAN, LEAT_U8) == 0);
	assert_true(cast_i64(-1, LEAT_U8) == 0);
	assert_true(cast_i64(256, LEAT_U8) == 255);
	assert_true(cast_i64(INT64_MIN, LEAT_I32) == INT32_MIN);
	assert_true(cast_i64(INT64_MAX, LEAT_I32) == INT32_MAX);
	assert_true(cast_i64(-5, LEAT_I32) == -5);
}

static void
casts_to_floats_round_to_nearest_even(void **state)
{
	(void)state;
	assert_true(cast_i64(16777217, LEAT_F32) == 16777216);
	assert_true(cast_i64(16777219, LEAT_F32) == 16777220);
	assert_true(cast_f64(1 + 0x1p-24, LEAT_F32) == 1);
	assert_int_equal(cast_f32(1 + 0x1p-11f, LEAT_F16), 0x3c00);
	assert_int_equal(cast_f32(1 + 0x3p-11f, LEAT_F16), 0x3c02);
	assert_int_equal(cast_f32(65519.99f, LEAT_F16), 0x7bff);
	assert_int_equal(cast_f32(65520, LEAT_F16), 0x7c00);
	assert_int_equal(cast_f32(-INFINITY, LEAT_F16), 0xfc00);
	assert_int_equal(cast_f32(0x1p-25f, LEAT_F16), 0);
	assert_int_equal(cast_f32(0x1.8p-24f, LEAT_F16), 2);
	assert_int_equal(cast_f32(-0.0f, LEAT_F16), 0x8000);
	assert_int_equal(cast_f32(NAN, LEAT_F16) - 0x7e00, 0);
	assert_int_equal(cast_f32(1 + 0x1p-8f, LEAT_BF16), 0x3f80);
	assert_int_equal(cast_f32(1 + 0x3p-8f, LEAT_BF16), 0x3f82);
	assert_int_equal(cast_f32(3.4e38f, LEAT_BF16), 0x7f80);
	assert_true(((int)cast_f32(NAN, LEAT_BF16) & 0x7fff) > 0x7f80);
}

/* Every value of both 16-bit types is a float32, and comes back from it. */
static void
sixteen_bit_floats_survive_the_way_through_float32(void **state)
{
	static const enum leat_dtype types[] = {LEAT_F16, LEAT_BF16};

	(void)state;
	for (int t = 0; t < 2; t++)
		for (uint32_t bits = 0; bits < 65536; bits++) {
			uint16_t half = (uint16_t)bits, back;
			float wide;

			leat_cast(&half, types[t], &wide, LEAT_F32, 1);
			leat_cast(&wide, LEAT_F32, &back, types[t], 1);
			if (!isnan(wide))
				assert_int_equal(back, half);
			else
				assert_true((back & 0x7fff) > (t ? 0x7f80 : 0x7c00));
		}
}

/* Small whole numbers are the same in every type: all pairs there and back. */
static void
every_pair_of_types_can_be_cast(void **state)
{
	(void)state;
	for (int from = LEAT_U8; from <= LEAT_F64; from++)
		for (int to = LEAT_U8; to <= LEAT_F64; to++) {
			uint8_t in[256], back[256];
			uint64_t a[256], b[256];

			for (int i = 0; i < 256; i++)
				in[i] = (uint8_t)i;
			leat_cast(in, LEAT_U8, a, (enum leat_dtype)from, 256);
			leat_cast(a, (enum leat_dtype)from, b, (enum leat_dtype)to, 256);
			leat_cast(b, (enum leat_dtype)to, back, LEAT_U8, 256);
			assert_memory_equal(in, back, sizeof(in));
		}
}

static void
planes_and_pixels_turn_into_each_other(void **state)
{
	static const size_t sizes[] = {1, 2, 4, 8};
	unsigned char in[7 * 3 * 8], planar[sizeof(in)], back[sizeof(in)];

	(void)state;
	for (size_t i = 0; i < sizeof(in); i++)
		in[i] = (unsigned char)i;
	for (size_t s = 0; s < 4; s++) {
		size_t size = sizes[s];

		leat_to_planar(in, planar, 7, 3, size);
		for (size_t p = 0; p < 7; p++)
			for (size_t c = 0; c < 3; c++)
				assert_memory_equal(planar + (c * 7 + p) * size, in + (p * 3 + c) * size, size);
		leat_to_interleaved(planar, back, 7, 3, size);
		assert_memory_equal(back, in, 7 * 3 * size);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pointwise_steps_round_after_each_operation_and_go_by_channel),
		cmocka_unit_test(pointwise_steps_may_write_over_their_input),
		cmocka_unit_test(means_are_those_of_each_channel),
		cmocka_unit_test(casts_to_integers_cut_off_fractions_and_saturate),
		cmocka_unit_test(casts_to_floats_round_to_nearest_even),
		cmocka_unit_test(sixteen_bit_floats_survive_the_way_through_float32),
		cmocka_unit_test(every_pair_of_types_can_be_cast),
		cmocka_unit_test(planes_and_pixels_turn_into_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
