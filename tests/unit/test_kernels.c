/* test_kernels.c - kernels give the same bytes with AVX2 and without, whatever the size */
#include "support/bench.h"

#include "base/rng.h"
#include "image/pixel.h"
#include "image/plain.h"
#include "support/image.h"

static struct leat_rng rng;

static int
set_up(void **state)
{
	(void)state;
	leat_rng_init(&rng, 7, 0, 0, 0);
	return 0;
}

/* Any bits: bytes, and floats of every kind, many of them of the size of bytes. */
static void *
random_elements(enum leat_dtype dtype, size_t count)
{
	size_t size = leat_dtype_size(dtype);
	uint8_t *bytes = malloc(count * size + 1);

	for (size_t i = 0; i < count * size; i++)
		bytes[i] = (uint8_t)leat_rng_below(&rng, 256);
	if (dtype == LEAT_F32) {
		float *x = (float *)bytes;

		for (size_t i = 0; i < count; i++)
			if (leat_rng_below(&rng, 4))
				x[i] = leat_rng_uniform(&rng, -40, 300);
	}
	return bytes;
}

/* ---- casts ---- */

static const enum leat_dtype dtypes[] = {LEAT_U8,   LEAT_I32, LEAT_I64, LEAT_F16, LEAT_BF16, LEAT_F32, LEAT_F64,
                                         LEAT_BOOL, LEAT_I8,  LEAT_I16, LEAT_U16, LEAT_U32,  LEAT_U64};
enum { DTYPES = sizeof(dtypes) / sizeof(*dtypes) };

static void
check_cast(const void *in, enum leat_dtype from, enum leat_dtype to, size_t count)
{
	size_t bytes = count * leat_dtype_size(to);
	uint8_t *got = malloc(bytes + 1), *want = malloc(bytes + 1);

	leat_cast(in, from, got, to, count);
	leat_cast_plain(in, from, want, to, count);
	if (memcmp(got, want, bytes) != 0)
		fail_msg("%zu elements, type %d to %d", count, from, to);
	free(got);
	free(want);
}

static void
casts_are_those_of_the_plain_loop(void **state)
{
	(void)state;
	for (int from = 0; from < DTYPES; from++) {
		for (int to = 0; to < DTYPES; to++) {
			for (size_t count = 0; count < 70; count++) {
				void *in = random_elements(dtypes[from], count);

				check_cast(in, dtypes[from], dtypes[to], count);
				free(in);
			}
		}
	}
}

/* More than a block of cast_narrow.c: elements at its end and behind it are as those before. */
static void
narrow_casts_saturate_and_cut_off_fractions(void **state)
{
	enum { COUNT = 1200, KINDS = 12 };
	static const double x[KINDS] = {0,      -0.0, 0.5,   -0.5,    1.9,        -1.9,
	                                127.99, 300,  -1e30, 70000.5, 4294967296, 0.0 / 0.0};
	static const int64_t want[KINDS][4] = {/* int8, int16, uint16, uint32 */
	                                       {0, 0, 0, 0},
	                                       {0, 0, 0, 0},
	                                       {0, 0, 0, 0},
	                                       {0, 0, 0, 0},
	                                       {1, 1, 1, 1},
	                                       {-1, -1, 0, 0},
	                                       {127, 127, 127, 127},
	                                       {127, 300, 300, 300},
	                                       {-128, -32768, 0, 0},
	                                       {127, 32767, 65535, 70000},
	                                       {127, 32767, 65535, 4294967295},
	                                       {0, 0, 0, 0}};
	static const enum leat_dtype to[] = {LEAT_I8, LEAT_I16, LEAT_U16, LEAT_U32};
	static double in[COUNT];
	static int64_t back[COUNT];
	static uint32_t out[COUNT];
	static uint8_t bools[COUNT];

	(void)state;
	for (int i = 0; i < COUNT; i++)
		in[i] = x[i % KINDS];
	for (int t = 0; t < 4; t++) {
		leat_cast(in, LEAT_F64, out, to[t], COUNT);
		leat_cast(out, to[t], back, LEAT_I64, COUNT);
		for (int i = 0; i < COUNT; i++)
			assert_int_equal(back[i], want[i % KINDS][t]);
	}
	leat_cast(in, LEAT_F64, bools, LEAT_BOOL, COUNT);
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(bools[i], i % KINDS >= 2); /* NaN and fractions are true */
	leat_cast(bools, LEAT_BOOL, in, LEAT_F64, COUNT);
	for (int i = 0; i < COUNT; i++)
		assert_true(in[i] == (double)(i % KINDS >= 2));
}

static void
uint64_casts_reach_beyond_int64(void **state)
{
	enum { COUNT = 600 };
	static const uint64_t x[] = {0, 1, INT64_MAX, UINT64_C(1) << 63, UINT64_MAX};
	static const int64_t int64[] = {0, 1, INT64_MAX, INT64_MAX, INT64_MAX};
	static const double f64[] = {-1, 0.0 / 0.0, 0.9, 0x1p63, 0x1p64}, back[] = {0, 0, 0, 0x1p63, 0x1p64};
	static uint64_t in[COUNT], out[COUNT];
	static double number[COUNT];
	static float narrow[COUNT];
	static int64_t whole[COUNT];

	(void)state;
	for (int i = 0; i < COUNT; i++)
		in[i] = x[i % 5];
	leat_cast(in, LEAT_U64, whole, LEAT_I64, COUNT);
	leat_cast(in, LEAT_U64, number, LEAT_F64, COUNT);
	leat_cast(in, LEAT_U64, narrow, LEAT_F32, COUNT);
	for (int i = 0; i < COUNT; i++) {
		assert_true(whole[i] == int64[i % 5]);
		assert_true(number[i] == (double)x[i % 5] && narrow[i] == (float)x[i % 5]);
		number[i] = f64[i % 5];
		whole[i] = i % 2 ? -i : i;
	}
	leat_cast(number, LEAT_F64, out, LEAT_U64, COUNT);
	for (int i = 0; i < COUNT; i++)
		assert_true((double)out[i] == back[i % 5]);
	leat_cast(whole, LEAT_I64, out, LEAT_U64, COUNT);
	for (int i = 0; i < COUNT; i++)
		assert_true(out[i] == (i % 2 ? 0 : (uint64_t)i));
}

/* The upper 18 bits of an f32 and the place behind them: what is rounded away is 0, less than half, half, more. */
static void
casts_of_floats_round_as_the_plain_loop_does(void **state)
{
	static const uint32_t ends[] = {0, 1, 0x0fff, 0x1000, 0x1001, 0x1fff, 0x7fff, 0x8000, 0x8001, 0xffff};
	enum { ENDS = sizeof(ends) / sizeof(*ends), STEP = 1 << 13 };
	uint32_t *bits = malloc((size_t)STEP * ENDS * sizeof(*bits));

	(void)state;
	for (uint32_t high = 0; high < 1u << 19; high += STEP) {
		for (uint32_t i = 0; i < STEP; i++)
			for (uint32_t e = 0; e < ENDS; e++)
				bits[i * ENDS + e] = (high + i) << 13 ^ ends[e];
		check_cast(bits, LEAT_F32, LEAT_F16, (size_t)STEP * ENDS);
		check_cast(bits, LEAT_F32, LEAT_BF16, (size_t)STEP * ENDS);
		check_cast(bits, LEAT_F32, LEAT_U8, (size_t)STEP * ENDS);
	}
	free(bits);
}

/* ---- pointwise steps ---- */

static struct leat_datum
datum_of(void *data, enum leat_dtype dtype, size_t a, size_t b, size_t c)
{
	return (struct leat_datum){
		.data = data, .dtype = dtype, .ndim = 3, .shape = {(int64_t)a, (int64_t)b, (int64_t)c}};
}

static struct leat_datum
image_of(void *data, enum leat_dtype dtype, size_t height, size_t width, size_t channels, enum leat_layout layout)
{
	return layout == LEAT_CHW ? datum_of(data, dtype, channels, height, width)
	                          : datum_of(data, dtype, height, width, channels);
}

static void
check_affine(enum leat_dtype dtype, size_t width, size_t channels, enum leat_layout layout, int steps)
{
	enum { HEIGHT = 3 };
	const size_t count = HEIGHT * width * channels;
	struct leat_affine step[10];
	float *got = malloc(count * sizeof(*got)), *want = malloc(count * sizeof(*want));
	struct leat_datum in = image_of(random_elements(dtype, count), dtype, HEIGHT, width, channels, layout);
	struct leat_datum out = image_of(got, LEAT_F32, HEIGHT, width, channels, layout), other = out;

	other.data = want;
	for (int s = 0; s < steps; s++) {
		for (int c = 0; c < LEAT_MAX_CHANNELS; c++) {
			step[s].mul[c] = leat_rng_uniform(&rng, -2, 2);
			step[s].add[c] = leat_rng_uniform(&rng, -2, 2);
		}
	}
	leat_affine_apply(&in, &out, layout, step, steps);
	leat_affine_apply_plain(&in, &other, layout, step, steps);
	if (memcmp(got, want, count * sizeof(*got)) != 0)
		fail_msg("type %d, %zu channels, layout %d, width %zu, %d steps", dtype, channels, layout, width,
		         steps);
	if (dtype == LEAT_F32) {
		leat_affine_apply(&in, &in, layout, step, steps);
		assert_memory_equal(in.data, want, count * sizeof(*got));
	}
	free(in.data);
	free(got);
	free(want);
}

static void
pointwise_steps_are_those_of_the_plain_loop(void **state)
{
	static const int steps[] = {0, 1, 2, 5, 10};

	(void)state;
	for (size_t channels = 1; channels <= 4; channels++) {
		for (size_t width = 1; width <= 40; width++) {
			for (size_t s = 0; s < sizeof(steps) / sizeof(*steps); s++) {
				check_affine(LEAT_U8, width, channels, LEAT_HWC, steps[s]);
				check_affine(LEAT_U8, width, channels, LEAT_CHW, steps[s]);
				check_affine(LEAT_F32, width, channels, LEAT_HWC, steps[s]);
				check_affine(LEAT_F32, width, channels, LEAT_CHW, steps[s]);
			}
		}
	}
}

/* ---- measuring ---- */

/* Bytes, or finite floats that differ much in size, so that another order of their sum would show. */
static void *
random_image(enum leat_dtype dtype, size_t count)
{
	float *x;

	if (dtype == LEAT_U8)
		return random_elements(LEAT_U8, count);
	x = malloc(count * sizeof(*x));
	for (size_t i = 0; i < count; i++)
		x[i] = leat_rng_uniform(&rng, -1, 1) * (leat_rng_coin(&rng) ? 1e12f : 1e-3f);
	return x;
}

static void
means_are_those_of_the_plain_loop(void **state)
{
	(void)state;
	for (size_t channels = 1; channels <= 4; channels++) {
		for (size_t width = 1; width <= 120; width++) {
			for (int is_u8 = 0; is_u8 < 2; is_u8++) {
				enum leat_dtype dtype = is_u8 ? LEAT_U8 : LEAT_F32;
				struct leat_datum image =
					datum_of(random_image(dtype, 3 * width * channels), dtype, 3, width, channels);
				float got[LEAT_MAX_CHANNELS], want[LEAT_MAX_CHANNELS];

				leat_channel_means(&image, got);
				leat_channel_means_plain(&image, want);
				assert_memory_equal(got, want, channels * sizeof(*got));
				free(image.data);
			}
		}
	}
}

static void
the_mean_of_bytes_is_exact(void **state)
{
	enum { SIDE = 1000 };
	uint8_t *bytes = malloc((size_t)SIDE * SIDE * 3);
	struct leat_datum image = datum_of(bytes, LEAT_U8, SIDE, SIDE, 3);
	float mean[3];

	(void)state;
	for (size_t i = 0; i < (size_t)SIDE * SIDE; i++) {
		bytes[3 * i] = 255;
		bytes[3 * i + 1] = (uint8_t)(i % 2);
		bytes[3 * i + 2] = (uint8_t)(i % 4 ? 0 : 100);
	}
	leat_channel_means(&image, mean);
	assert_true(mean[0] == 255.0f && mean[1] == 0.5f && mean[2] == 25.0f);
	free(bytes);
}

/* ---- moving ---- */

static void
layouts_are_changed_as_by_the_plain_loop(void **state)
{
	(void)state;
	for (size_t channels = 1; channels <= 4; channels++) {
		for (size_t size = 1; size <= 8; size *= 2) {
			for (size_t pixels = 1; pixels <= 100; pixels++) {
				size_t bytes = pixels * channels * size;
				uint8_t *in = random_elements(LEAT_U8, bytes), *got = malloc(bytes),
					*want = malloc(bytes);

				leat_to_planar(in, got, pixels, channels, size);
				leat_to_planar_plain(in, want, pixels, channels, size);
				assert_memory_equal(got, want, bytes);
				leat_to_interleaved(in, got, pixels, channels, size);
				leat_to_interleaved_plain(in, want, pixels, channels, size);
				assert_memory_equal(got, want, bytes);
				leat_to_planar(want, got, pixels, channels, size);
				assert_memory_equal(got, in, bytes);
				leat_mirror_row(in, want, pixels, channels * size);
				leat_split_channels(in, got, pixels, pixels, channels, size, true);
				memcpy(in, want, bytes);
				leat_to_planar_plain(in, want, pixels, channels, size);
				assert_memory_equal(got, want, bytes);
				free(in);
				free(got);
				free(want);
			}
		}
	}
}

static void
flips_are_those_of_the_plain_loop(void **state)
{
	static const enum leat_dtype types[] = {LEAT_U8, LEAT_F32, LEAT_F16};

	(void)state;
	for (size_t channels = 1; channels <= 4; channels++) {
		for (size_t t = 0; t < 3; t++) {
			for (size_t width = 1; width <= 70; width++) {
				size_t count = 3 * width * channels, bytes = count * leat_dtype_size(types[t]);
				uint8_t *got = random_elements(types[t], count), *want = malloc(bytes);
				struct leat_datum image = datum_of(got, types[t], 3, width, channels), other = image;

				other.data = want;
				memcpy(want, got, bytes);
				leat_flip(&image, LEAT_FLIP_HORIZONTAL);
				leat_flip_plain(&other);
				assert_memory_equal(got, want, bytes);
				leat_mirror_row(got, want, width, bytes / 3 / width);
				leat_flip(&image, LEAT_FLIP_HORIZONTAL);
				assert_memory_equal(got, want, bytes / 3);
				free(got);
				free(want);
			}
		}
	}
}

/* Thrice: found pixel by pixel, found again and kept, taken from what was kept. */
static void
check_rotation(struct leat_scratch *scratch, enum leat_dtype dtype, size_t height, size_t width, size_t channels,
               float radians)
{
	size_t count = height * width * channels, bytes = count * leat_dtype_size(dtype);
	uint8_t *got = malloc(bytes), *want = malloc(bytes);
	struct leat_datum in = datum_of(random_elements(dtype, count), dtype, height, width, channels);
	struct leat_datum out = datum_of(got, dtype, height, width, channels), other = out;

	other.data = want;
	rotate_image_plain(&in, &other, radians, 9);
	for (int time = 0; time < 3; time++) {
		memset(got, 0xee, bytes);
		rotate_image(&in, &out, radians, 9, scratch);
		if (memcmp(got, want, bytes) != 0)
			fail_msg("type %d, %zu x %zu x %zu by %a, time %d", dtype, height, width, channels,
			         (double)radians, time);
	}
	free(in.data);
	free(got);
	free(want);
}

/* Right angles too, where places lie between two pixels. */
static void
rotations_are_those_of_the_plain_loop(void **state)
{
	struct leat_scratch scratch;
	struct leat_mem mem;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	assert_int_equal(leat_scratch_open(&scratch, &mem, 4096), 0);
	for (size_t channels = 1; channels <= 4; channels++) {
		for (size_t width = 1; width <= 40; width++) {
			for (int turn = -4; turn <= 4; turn++) {
				float right_angles = (float)turn * 1.57079632679f, any = leat_rng_uniform(&rng, -4, 4);

				check_rotation(&scratch, LEAT_U8, 1 + width % 9, width, channels, right_angles);
				check_rotation(&scratch, LEAT_F32, width, 1 + width % 9, channels, right_angles);
				check_rotation(&scratch, LEAT_U8, 41 - width, width, channels, any);
				check_rotation(&scratch, LEAT_F32, 41 - width, width, channels, any);
			}
		}
	}
	check_rotation(&scratch, LEAT_U8, 1, 40000, 3, 0.001f);
	check_rotation(&scratch, LEAT_U8, 3, 16384, 3, 3.1f);
	leat_scratch_close(&scratch, &mem);
	assert_int_equal(mem.used, 0);
}

static void
check_resize(enum leat_dtype dtype, size_t channels, const struct leat_window *part, size_t height, size_t width,
             struct leat_resampling how)
{
	_Alignas(64) static uint8_t room[1 << 18];
	const enum leat_dtype to = leat_resize_dtype(&how, dtype);
	const size_t in_height = (size_t)(part->top + part->height), in_width = (size_t)(part->left + part->width);
	const size_t bytes = height * width * channels * leat_dtype_size(to);
	struct leat_scratch scratch = {.base = room, .size = sizeof(room)};
	struct leat_datum in =
		datum_of(random_image(dtype, in_height * in_width * channels), dtype, in_height, in_width, channels);
	struct leat_datum got = datum_of(malloc(bytes), to, height, width, channels), want = got;
	struct leat_err err;

	want.data = malloc(bytes);
	assert_int_equal(resize_image(&in, part, &got, &how, &scratch, &err), LEAT_OK);
	assert_int_equal(resize_image_plain(&in, part, &want, &how, &scratch, &err), LEAT_OK);
	if (memcmp(got.data, want.data, bytes) != 0)
		fail_msg("type %d, %d x %d x %zu to %zu x %zu", dtype, (int)part->height, (int)part->width, channels,
		         height, width);
	free(in.data);
	free(got.data);
	free(want.data);
}

/* Up and down, of whole images and of parts that end where the image does. */
static void
sizes_are_those_of_the_plain_loop(void **state)
{
	static const struct leat_resampling tf = {LEAT_RESIZE_BILINEAR, LEAT_RESIZE_TF, false},
					    torch = {LEAT_RESIZE_BILINEAR, LEAT_RESIZE_TORCH, false},
					    pillow[] = {{LEAT_RESIZE_BILINEAR, LEAT_RESIZE_TORCH, true},
	                                                {LEAT_RESIZE_BICUBIC, LEAT_RESIZE_TORCH, true},
	                                                {LEAT_RESIZE_LANCZOS, LEAT_RESIZE_TORCH, true}};

	(void)state;
	for (size_t channels = 1; channels <= 4; channels++) {
		for (int i = 0; i < 400; i++) {
			int64_t top = i % 2 ? (int64_t)leat_rng_below(&rng, 5) : 0, left = i % 3 ? (int64_t)top / 2 : 0;
			struct leat_window part = {top, left, 1 + (int64_t)leat_rng_below(&rng, 40),
			                           1 + (int64_t)leat_rng_below(&rng, 40)};
			size_t height = 1 + leat_rng_below(&rng, 60), width = 1 + leat_rng_below(&rng, 60);

			check_resize(LEAT_U8, channels, &part, height, width, tf);
			check_resize(LEAT_U8, channels, &part, height, width, torch);
			check_resize(LEAT_F32, channels, &part, height, width, tf);
			for (int f = 0; f < 3; f++)
				check_resize(LEAT_U8, channels, &part, height, width, pillow[f]);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(casts_are_those_of_the_plain_loop, set_up),
		cmocka_unit_test(narrow_casts_saturate_and_cut_off_fractions),
		cmocka_unit_test(uint64_casts_reach_beyond_int64),
		cmocka_unit_test_setup(casts_of_floats_round_as_the_plain_loop_does, set_up),
		cmocka_unit_test_setup(sizes_are_those_of_the_plain_loop, set_up),
		cmocka_unit_test_setup(flips_are_those_of_the_plain_loop, set_up),
		cmocka_unit_test_setup(rotations_are_those_of_the_plain_loop, set_up),
		cmocka_unit_test_setup(means_are_those_of_the_plain_loop, set_up),
		cmocka_unit_test(the_mean_of_bytes_is_exact),
		cmocka_unit_test_setup(layouts_are_changed_as_by_the_plain_loop, set_up),
		cmocka_unit_test_setup(pointwise_steps_are_those_of_the_plain_loop, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
