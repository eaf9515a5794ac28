/* test_resize.c - resampling in every way: what holds of all of them (test_golden.c has the pixels of others) */
#include "support/pictures.h"

#include "image/affine.h"
#include "support/image.h"

/* Every combination that has a meaning: for (struct leat_resampling how = {.method = -1}; next_way(&how);) */
static bool
next_way(struct leat_resampling *how)
{
	struct leat_err err;

	if (how->method < 0) {
		*how = (struct leat_resampling){0};
		return true;
	}
	do {
		how->antialias = !how->antialias;
		if (!how->antialias)
			how->mode = !how->mode;
		if (!how->antialias && how->mode == LEAT_RESIZE_TF && how->method++ == LEAT_RESIZE_AREA)
			return false;
		leat_err_clear(&err);
	} while (leat_resampling_check(how, &err) != LEAT_OK);
	return true;
}

static const char *const methods[] = {"bilinear", "nearest", "bicubic", "lanczos", "area"};

static void
resize_to(int64_t height, int64_t width, const struct leat_resampling *how)
{
	runf("resize(%d, %d, %s, %s, antialias=%s)", (int)height, (int)width, methods[how->method],
	     how->mode == LEAT_RESIZE_TF ? "tf" : "torch", how->antialias ? "true" : "false");
}

static const int64_t targets[][2] = {{1, 1}, {2, 3}, {5, 4}, {9, 16}, {33, 7}};
enum { TARGETS = sizeof(targets) / sizeof(*targets) };

static void
there_are_16_ways(void **state)
{
	int ways = 0;

	(void)state;
	for (struct leat_resampling how = {.method = -1}; next_way(&how);)
		ways++;
	assert_int_equal(ways, 4 + 4 + 3 + 3 + 2);
}

static void
ways_without_a_meaning_are_refused(void **state)
{
	(void)state;
	put_size(3, 5, 3, LEAT_U8);
	refuse("resize(2, 2, area, torch)", LEAT_SPEC, "mode=torch has no method=area");
	refuse("resize(2, 2, bicubic, torch)", LEAT_SPEC, "antialias=true only");
	refuse("resize(2, 2, lanczos, torch)", LEAT_SPEC, "antialias=true only");
	refuse("resize(2, 2, bilinaer)", LEAT_SPEC, "did you mean 'bilinear'?");
	refuse("resize(2, 2, mode=jax)", LEAT_SPEC, "tf or torch");
	refuse("resize(0, 2)", LEAT_SPEC, "height");
}

static void
only_tf_and_only_when_it_computes_makes_floats(void **state)
{
	(void)state;
	for (struct picture p = {0}; next_picture(&p);)
		for (struct leat_resampling how = {.method = -1}; next_way(&how);) {
			bool floats = how.mode == LEAT_RESIZE_TF && how.method != LEAT_RESIZE_NEAREST;

			put_picture(&p);
			resize_to(4, 6, &how);
			assert_shape(4, 6, p.c);
			assert_int_equal(bench.sample.field[0].dtype, floats ? LEAT_F32 : p.dtype);
		}
}

static void
one_color_stays_that_color(void **state)
{
	uint8_t bytes[17 * 16 * 3];
	float floats[17 * 16 * 3];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] = (uint8_t)(i % 3 * 127);
		floats[i] = (float)bytes[i] / 255;
	}
	for (int t = 0; t < TARGETS; t++)
		for (struct leat_resampling how = {.method = -1}; next_way(&how);)
			for (int f = 0; f < 2; f++) {
				bench_put_image(&bench, f ? (void *)floats : bytes, f ? LEAT_F32 : LEAT_U8, 17, 16, 3);
				resize_to(targets[t][0], targets[t][1], &how);
				for (int64_t i = 0; i < targets[t][0] * targets[t][1] * 3; i++) {
					double want = f ? (double)floats[i % 3] : bytes[i % 3];
					double near = how.method == LEAT_RESIZE_AREA ? 1e-5 : 1e-6; /* TensorFlow's */

					assert_true(fabs(result_at(0, 0, i) - want) <= near * want);
				}
			}
}

static void
the_same_size_leaves_every_pixel(void **state)
{
	(void)state;
	for (struct picture p = {0}; next_picture(&p);)
		for (struct leat_resampling how = {.method = -1}; next_way(&how);) {
			put_picture(&p);
			resize_to(p.h, p.w, &how);
			for (int64_t y = 0; y < p.h; y++)
				for (int64_t x = 0; x < p.w; x++)
					for (int64_t c = 0; c < p.c; c++) {
						double got = result_at(y, x, c), want = picture_at(&p, y, x, c);

						assert_true(bench.sample.field[0].dtype == LEAT_U8
						                    ? got == want
						                    : fabs(got - want) < 1e-6);
					}
		}
}

/* Mirrored places are as far apart, but for the last bit of a weight. */
static void
a_mirrored_image_becomes_a_mirrored_result(void **state)
{
	(void)state;
	for (struct picture p = {0}; next_picture(&p);)
		for (struct leat_resampling how = {.method = -1}; next_way(&how);) {
			double most = p.dtype == LEAT_F32 ? 1e-5 : 1, kept[7 * 10 * 4];

			if (how.method == LEAT_RESIZE_NEAREST) /* between two it takes the right one */
				continue;
			put_picture(&p);
			resize_to(7, 10, &how);
			for (int64_t i = 0; i < 7 * 10 * p.c; i++)
				kept[i] = result_at(0, 0, i);
			put_picture(&p);
			run("flip | flip(vertical)");
			resize_to(7, 10, &how);
			run("flip | flip(vertical)");
			for (int64_t i = 0; i < 7 * 10 * p.c; i++)
				assert_true(fabs(result_at(0, 0, i) - kept[i]) <= most);
		}
}

/* Down to one pixel, area is the mean, and so is the triangle but for its slopes. */
static void
area_is_the_mean_of_what_it_covers(void **state)
{
	(void)state;
	for (struct picture p = {0}; next_picture(&p);) {
		float mean[LEAT_MAX_CHANNELS];

		put_picture(&p);
		leat_channel_means(&bench.sample.field[0], mean);
		run("resize(1, 1, area)");
		for (int64_t c = 0; c < p.c; c++)
			assert_true(fabs(result_at(0, 0, c) - (double)mean[c]) <= 1e-5 * (1 + fabs((double)mean[c])));
	}
	bench_put_image(&bench, (const float[]){1, 2, 3, 4, 5, 6}, LEAT_F32, 1, 6, 1);
	run("resize(1, 4, area)");
	assert_true(fabs(result_at(0, 0, 0) - 4.0 / 3) < 1e-6 && fabs(result_at(0, 1, 0) - 8.0 / 3) < 1e-6);
}

static void
a_part_is_a_crop_first(void **state)
{
	static const struct leat_window parts[] = {{0, 0, 17, 16}, {0, 0, 1, 1},   {16, 15, 1, 1},
	                                           {3, 2, 10, 5},  {4, 4, 13, 12}, {0, 9, 17, 1}};

	(void)state;
	for (int f = 0; f < 2; f++)
		for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
			for (struct leat_resampling how = {.method = -1}; next_way(&how);) {
				const struct leat_window *part = &parts[i];
				enum leat_dtype dtype = f ? LEAT_F32 : LEAT_U8;
				struct leat_datum in, out = {.ndim = 3, .shape = {6, 9, 3}};
				uint8_t result[6 * 9 * 3 * 4];

				put_size(17, 16, 3, dtype);
				in = bench.sample.field[0];
				out.dtype = leat_resize_dtype(&how, dtype);
				out.data = result;
				assert_int_equal(resize_image(&in, part, &out, &how, &bench.scratch, &bench.err),
				                 LEAT_OK);
				runf("crop(%d, %d, %d, %d)", (int)part->top, (int)part->left, (int)part->height,
				     (int)part->width);
				resize_to(6, 9, &how);
				assert_result(result);
			}
}

static void
it_takes_no_more_scratch_than_it_says_and_gives_it_back(void **state)
{
	static const int64_t sides[][2] = {{1, 1}, {1, 30}, {200, 3}, {40, 50}, {3, 500}};
	static uint8_t in[2000 * 4];
	static float out[500 * 200 * 4];
	struct leat_scratch scratch = {.base = bench.scratch.base};

	(void)state;
	for (int i = 0; i < 5; i++)
		for (int o = 0; o < 5; o++)
			for (struct leat_resampling how = {.method = -1}; next_way(&how);) {
				struct leat_datum from = {in, LEAT_U8, 3, {sides[i][0], sides[i][1], 4}};
				struct leat_datum to = {
					out, leat_resize_dtype(&how, LEAT_U8), 3, {sides[o][0], sides[o][1], 4}};

				scratch.size = leat_resize_scratch(&how, sides[i], sides[o]);
				scratch.used = 1;
				scratch.size += 1;
				if (resize_image(&from, NULL, &to, &how, &scratch, &bench.err) != LEAT_OK)
					fail_msg("%dx%d to %dx%d, %s: %s", (int)sides[i][0], (int)sides[i][1],
					         (int)sides[o][0], (int)sides[o][1], methods[how.method],
					         bench.err.text);
				assert_int_equal(scratch.used, 1);
				scratch.size = 100;
				assert_int_equal(resize_image(&from, NULL, &to, &how, &scratch, &bench.err),
				                 LEAT_LIMIT);
				assert_int_equal(scratch.used, 1);
				leat_err_clear(&bench.err);
			}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(there_are_16_ways),
		TEST(ways_without_a_meaning_are_refused),
		TEST(only_tf_and_only_when_it_computes_makes_floats),
		TEST(one_color_stays_that_color),
		TEST(the_same_size_leaves_every_pixel),
		TEST(a_mirrored_image_becomes_a_mirrored_result),
		TEST(area_is_the_mean_of_what_it_covers),
		TEST(a_part_is_a_crop_first),
		TEST(it_takes_no_more_scratch_than_it_says_and_gives_it_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
