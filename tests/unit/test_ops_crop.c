/* test_ops_crop.c - crops and padding, against the pixels they should keep */
#include "support/pictures.h"

/* The place that numpy.pad takes a place from, walked step by step; -1: outside. */
static int64_t
mirrored(int64_t at, int64_t n, const char *mode)
{
	int64_t step = 1, place = 0;

	if (at >= 0 && at < n)
		return at;
	if (!strcmp(mode, "constant"))
		return -1;
	if (!strcmp(mode, "edge"))
		return at < 0 ? 0 : n - 1;
	if (n == 1)
		return 0;
	/* Walk from 0, turning round at both ends; symmetric stays there for one step. */
	if (at < 0)
		at = !strcmp(mode, "reflect") ? -at : -at - 1;
	for (; at > 0; at--) {
		if (place + step >= 0 && place + step < n)
			place += step;
		else if (step = -step, !strcmp(mode, "reflect"))
			place += step;
	}
	return place;
}

/* Every pixel of the result is the picture's at (y + top, x + left), or what `mode` says. */
static void
assert_frame(const struct picture *p, int64_t top, int64_t left, const char *mode, double fill)
{
	const struct leat_datum *got = &bench.sample.field[0];

	assert_int_equal(got->dtype, p->dtype);
	for (int64_t y = 0; y < got->shape[0]; y++)
		for (int64_t x = 0; x < got->shape[1]; x++)
			for (int64_t k = 0; k < p->c; k++) {
				int64_t fy = mirrored(y + top, p->h, mode), fx = mirrored(x + left, p->w, mode);
				double want = fy < 0 || fx < 0 ? fill : picture_at(p, fy, fx, k);

				if (result_at(y, x, k) != want)
					fail_msg("%s %dx%d at %d,%d: pixel %d,%d", mode, (int)p->h, (int)p->w, (int)top,
					         (int)left, (int)y, (int)x);
			}
}

static void
crop_keeps_the_rectangle(void **state)
{
	(void)state;
	for (struct picture p = {0}; next_picture(&p);) {
		for (int64_t top = 0; top < p.h; top += 2)
			for (int64_t left = 0; left < p.w; left += 3) {
				put_picture(&p);
				runf("crop(%d, %d, %d, %d)", (int)top, (int)left, (int)(p.h - top), (int)(p.w - left));
				assert_shape(p.h - top, p.w - left, p.c);
				assert_frame(&p, top, left, "constant", 0);
				put_picture(&p);
				runf("crop(%d, %d, 1, 1)", (int)top, (int)left);
				assert_frame(&p, top, left, "constant", 0);
			}
	}
}

static void
crop_beyond_the_image_is_an_error(void **state)
{
	const struct leat_op *op = leat_op_find("crop");
	int64_t params[] = {1, 0, 3, 5};

	(void)state;
	put_size(3, 5, 3, LEAT_U8);
	refuse("crop(1, 0, 3, 5)", LEAT_SPEC, "rows 1 to 3 requested, but the image has only 3");
	refuse("crop(0, 5, 3, 1)", LEAT_SPEC, "columns 5 to 5 requested, but the image has only 5");
	refuse("crop(0, 0, 65500, 65500)", LEAT_SPEC, "rows");
	refuse("crop(0, 0, 0, 1)", LEAT_SPEC, "height");
	refuse("crop(-1, 0, 1, 1)", LEAT_SPEC, "top");
	refuse("crop(0, 0, 1)", LEAT_SPEC, "width");
	/* Where only the sample tells. */
	assert_int_equal(op->params_size, sizeof(params));
	assert_int_equal(leat_op_run(op, params, &bench.work, 0, &bench.err), LEAT_DATA);
	assert_non_null(strstr(bench.err.text, "rows 1 to 3"));
}

static void
center_crop_rounds_as_torchvision(void **state)
{
	/* Rows, rows wanted, the first. Halves go to the even number: 0.5 to 0, 1.5 to 2, 2.5 to 2. */
	static const int64_t firsts[][3] = {{5, 5, 0}, {6, 5, 0},  {7, 5, 1},  {8, 5, 2},  {9, 5, 2}, {10, 5, 2},
	                                    {5, 6, 0}, {5, 7, -1}, {5, 8, -1}, {5, 9, -2}, {1, 4, -1}};

	(void)state;
	for (size_t i = 0; i < sizeof(firsts) / sizeof(*firsts); i++) {
		struct picture high = {.h = firsts[i][0], .w = 3, .c = 3, .dtype = LEAT_U8};
		struct picture wide = {.h = 3, .w = firsts[i][0], .c = 3, .dtype = LEAT_F32};

		put_picture(&high);
		runf("center_crop(%d, 3)", (int)firsts[i][1]);
		assert_frame(&high, firsts[i][2], 0, "constant", 0);
		put_picture(&wide);
		runf("center_crop(3, %d)", (int)firsts[i][1]);
		assert_frame(&wide, 0, firsts[i][2], "constant", 0);
	}
	for (struct picture p = {0}; next_picture(&p);) {
		put_picture(&p);
		runf("center_crop(%d, %d)", (int)p.h, (int)p.w);
		assert_frame(&p, 0, 0, "constant", 0);
		put_picture(&p);
		run("center_crop(19, 21)");
		assert_shape(19, 21, p.c);
	}
	refuse("center_crop(0, 1)", LEAT_SPEC, "height");
}

static void
pad_continues_the_image_as_its_mode_says(void **state)
{
	static const char *const modes[] = {"constant", "edge", "reflect", "symmetric"};
	static const int64_t sides[][4] = {{0, 0, 0, 0}, {1, 2, 3, 4}, {0, 0, 0, 5}, {9, 0, 0, 0}, {20, 17, 11, 23}};

	(void)state;
	for (int m = 0; m < 4; m++)
		for (int s = 0; s < 5; s++)
			for (struct picture p = {0}; next_picture(&p);) {
				const int64_t *side = sides[s];

				put_picture(&p);
				runf("pad(top=%d, left=%d, bottom=%d, right=%d, fill=7, mode=%s)", (int)side[0],
				     (int)side[1], (int)side[2], (int)side[3], modes[m]);
				assert_shape(p.h + side[0] + side[2], p.w + side[1] + side[3], p.c);
				assert_frame(&p, -side[0], -side[1], modes[m], 7);
			}
}

static void
pad_is_undone_by_crop(void **state)
{
	(void)state;
	for (struct picture p = {0}; next_picture(&p);) {
		put_picture(&p);
		runf("pad(3, fill=1000) | crop(3, 3, %d, %d)", (int)p.h, (int)p.w);
		assert_frame(&p, 0, 0, "constant", 0);
	}
	put_size(1, 1, 1, LEAT_U8);
	run("pad(all=1, fill=1000)");
	assert_true(result_at(0, 0, 0) == 255);
	put_size(1, 1, 1, LEAT_U8);
	run("pad(left=1, fill=-3)");
	assert_true(result_at(0, 0, 0) == 0);
	assert_shape(1, 2, 1);
}

/* As torchvision's Pad(4). */
static void
pad_with_one_number_is_for_all_sides(void **state)
{
	(void)state;
	for (struct picture p = {0}; next_picture(&p);) {
		put_picture(&p);
		run("pad(4)");
		assert_shape(p.h + 8, p.w + 8, p.c);
		assert_frame(&p, -4, -4, "constant", 0);
	}
}

static void
pad_wants_all_or_sides(void **state)
{
	(void)state;
	put_size(3, 5, 3, LEAT_U8);
	refuse("pad(1, top=2)", LEAT_SPEC, "either all, or top");
	refuse("pad(1, mode=wrap)", LEAT_SPEC, "constant, edge, reflect or symmetric");
	refuse("pad(-1)", LEAT_SPEC, "all");
	refuse("pad(1, 2)", LEAT_SPEC, "pad");
}

/* An image whose size only its sample tells leaves a side open. */
static void
pad_adds_to_the_sides_that_are_known(void **state)
{
	const struct leat_op *op = leat_op_find("pad");
	struct leat_field field = {.name = "image", .dtype = LEAT_U8, .ndim = 3, .shape = {-1, 8, 3}};
	enum leat_layout layout = LEAT_HWC;
	unsigned char params[128] = {0};

	(void)state;
	assert_true(op->params_size <= sizeof(params));
	memcpy(params, (const int64_t[]){0, 1, 2, 3, 4}, 40);
	assert_int_equal(op->on_field.infer(params, &field, &layout, &bench.err), LEAT_OK);
	assert_int_equal(field.shape[0], -1);
	assert_int_equal(field.shape[1], 14);
}

static void
random_crop_takes_every_place_equally_often(void **state)
{
	uint8_t pixels[6 * 8];
	int seen[3][4] = {{0}};
	enum { DRAWS = 6000 };

	(void)state;
	for (int i = 0; i < 48; i++)
		pixels[i] = (uint8_t)i;
	for (bench.position = 0; bench.position < DRAWS; bench.position++) {
		int64_t top, left;

		bench_put_image(&bench, pixels, LEAT_U8, 6, 8, 1);
		run("random_crop(4, 5)");
		top = (int64_t)result_at(0, 0, 0) / 8;
		left = (int64_t)result_at(0, 0, 0) % 8;
		assert_true(top <= 2 && left <= 3);
		for (int64_t y = 0; y < 4; y++)
			for (int64_t x = 0; x < 5; x++)
				assert_true(result_at(y, x, 0) == (double)((top + y) * 8 + left + x));
		seen[top][left]++;
	}
	for (int i = 0; i < 12; i++)
		assert_in_range(seen[i / 4][i % 4], DRAWS / 12 - 110, DRAWS / 12 + 110); /* five standard deviations */
	bench.position = 0;
}

/* The same numbers, drawn again: padding, then what is missing on both sides. */
static void
random_crop_pads_as_torchvision(void **state)
{
	static const struct {
		int64_t height, width, padding;
	} crops[] = {{3, 5, 0}, {3, 5, 2}, {1, 1, 1}, {9, 20, 0}, {9, 20, 3}, {20, 2, 1}};

	(void)state;
	for (bench.position = 0; bench.position < 40; bench.position++)
		for (size_t i = 0; i < sizeof(crops) / sizeof(*crops); i++)
			for (struct picture p = {0}; next_picture(&p);) {
				int64_t sides[2] = {p.h, p.w};
				int64_t wanted[2] = {crops[i].height, crops[i].width};
				int64_t first[2];
				struct leat_rng rng;

				put_picture(&p);
				runf("random_crop(%d, %d, %d, pad_if_needed=true, fill=9)", (int)wanted[0],
				     (int)wanted[1], (int)crops[i].padding);
				assert_shape(wanted[0], wanted[1], p.c);
				leat_rng_init(&rng, 7, 0, bench.position, leat_stream("random_crop", 0));
				for (int d = 0; d < 2; d++) {
					int64_t before = crops[i].padding;
					int64_t padded = sides[d] + 2 * before;

					if (padded < wanted[d])
						before += wanted[d] - padded;
					padded = sides[d] + 2 * before;
					first[d] = (int64_t)leat_rng_below(&rng, (uint64_t)(padded - wanted[d] + 1)) -
					           before;
				}
				assert_frame(&p, first[0], first[1], "constant", 9);
			}
	bench.position = 0;
}

static void
random_crop_larger_than_the_image_is_an_error(void **state)
{
	const struct leat_op *op = leat_op_find("random_crop");
	int64_t params[16] = {4, 5, 0};

	(void)state;
	put_size(3, 5, 3, LEAT_U8);
	refuse("random_crop(4, 5)", LEAT_SPEC, "4 rows requested, but the image has only 3; add padding");
	refuse("random_crop(3, 8, padding=1)", LEAT_SPEC, "8 columns requested, but the image has only 7");
	run("random_crop(4, 5, padding=1)");
	assert_shape(4, 5, 3);
	put_size(3, 5, 3, LEAT_U8);
	assert_true(op->params_size <= sizeof(params));
	assert_int_equal(leat_op_run(op, params, &bench.work, 0, &bench.err), LEAT_DATA);
	assert_non_null(strstr(bench.err.text, "pad_if_needed=true"));
}

/* What random_resized_crop takes, by torchvision's rules, from the same stream. */
static struct leat_window
drawn_part(const struct picture *p, const float scale[2], const float ratio[2])
{
	struct leat_rng rng;

	leat_rng_init(&rng, 7, 0, bench.position, leat_stream("random_resized_crop", 0));
	for (int tries = 0; tries < 10; tries++) {
		double area = (double)(p->h * p->w) * (double)leat_rng_uniform(&rng, scale[0], scale[1]);
		double r = exp((double)leat_rng_uniform(&rng, logf(ratio[0]), logf(ratio[1])));
		int64_t w = lrint(sqrt(area * r)), h = lrint(sqrt(area / r));

		if (0 < w && w <= p->w && 0 < h && h <= p->h) {
			int64_t top = (int64_t)leat_rng_below(&rng, (uint64_t)(p->h - h + 1));

			return (struct leat_window){top, (int64_t)leat_rng_below(&rng, (uint64_t)(p->w - w + 1)), h, w};
		}
	}
	fail_msg("nothing fits");
	return (struct leat_window){0};
}

static void
random_resized_crop_is_a_crop_and_a_resize(void **state)
{
	static const char *const ways[] = {"method=bilinear",
	                                   "method=nearest",
	                                   "method=bilinear, mode=torch",
	                                   "method=bilinear, mode=torch, antialias=true",
	                                   "method=bicubic, mode=torch, antialias=true",
	                                   "method=lanczos, antialias=true",
	                                   "method=area"};
	static const float scale[] = {0.08f, 1}, ratio[] = {0.75f, (float)(4.0 / 3)};

	(void)state;
	for (bench.position = 0; bench.position < 60; bench.position++)
		for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
			const struct picture p = {.h = 17, .w = 16, .c = 3, .dtype = i % 3 ? LEAT_U8 : LEAT_F32};
			struct leat_window part = drawn_part(&p, scale, ratio);
			void *kept;

			put_picture(&p);
			runf("random_resized_crop(6, 9, %s)", ways[i]);
			assert_shape(6, 9, 3);
			kept = keep_result();
			put_picture(&p);
			runf("crop(%d, %d, %d, %d) | resize(6, 9, %s)", (int)part.top, (int)part.left, (int)part.height,
			     (int)part.width, ways[i]);
			assert_result(kept);
			free(kept);
		}
	bench.position = 0;
}

/* Each pixel of the picture says where it is: the nearest one to each corner tells what was taken. */
static void
random_resized_crop_takes_shares_and_ratios_as_asked(void **state)
{
	static float places[60 * 80 * 2];
	double least = 1, most = 0, sum = 0;
	int wide = 0;
	enum { DRAWS = 2000 };

	(void)state;
	for (int i = 0; i < 60 * 80; i++) {
		places[2 * i] = (float)(i / 80);
		places[2 * i + 1] = (float)(i % 80);
	}
	for (bench.position = 0; bench.position < DRAWS; bench.position++) {
		double h, w, share;

		bench_put_image(&bench, places, LEAT_F32, 60, 80, 2);
		run("random_resized_crop(120, 120, scale=[0.1, 0.5], ratio=[1/2, 2], method=nearest)");
		h = result_at(119, 0, 0) - result_at(0, 0, 0) + 1;
		w = result_at(0, 119, 1) - result_at(0, 0, 1) + 1;
		share = h * w / (60 * 80);
		assert_true(share > 0.09 && share < 0.52); /* sides are rounded */
		assert_true(w / h > 0.47 && w / h < 2.1);
		least = fmin(least, share);
		most = fmax(most, share);
		sum += share;
		wide += w > h;
	}
	assert_true(least < 0.11 && most > 0.49);
	assert_true(fabs(sum / DRAWS - 0.3) < 0.02);
	assert_in_range(wide, DRAWS / 2 - 150, DRAWS / 2 + 150);
	bench.position = 0;
}

static void
random_resized_crop_that_fits_nowhere_takes_the_middle(void **state)
{
	/* Sides of the image, ratio, the part. */
	static const struct {
		int64_t h, w;
		const char *ratio;
		struct leat_window part;
	} cases[] = {
		{2, 20, "[1, 1]", {0, 9, 2, 2}},      {20, 3, "[1, 1]", {8, 0, 3, 3}},
		{1, 24, "[1/2, 3/4]", {0, 11, 1, 1}}, {24, 1, "[100, 100]", {11, 0, 1, 1}},
		{5, 4, "[1000, 1000]", {2, 0, 1, 4}}, {3, 24, "[1/2, 5/2]", {0, 8, 3, 8}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct picture p = {.h = cases[i].h, .w = cases[i].w, .c = 1, .dtype = LEAT_U8};

		put_picture(&p);
		runf("random_resized_crop(%d, %d, scale=[1, 1], ratio=%s, method=nearest)", (int)cases[i].part.height,
		     (int)cases[i].part.width, cases[i].ratio);
		assert_frame(&p, cases[i].part.top, cases[i].part.left, "constant", 0);
	}
	for (struct picture p = {0}; next_picture(&p);) { /* nothing at all: the whole image */
		put_picture(&p);
		runf("random_resized_crop(%d, %d, scale=[0, 0], ratio=[1/1000, 1000], method=nearest)", (int)p.h,
		     (int)p.w);
		assert_frame(&p, 0, 0, "constant", 0);
	}
}

static void
random_resized_crop_refuses_ranges_that_are_none(void **state)
{
	(void)state;
	put_size(3, 5, 3, LEAT_U8);
	refuse("random_resized_crop(2, 2, scale=0.5)", LEAT_SPEC, "scale takes two numbers, [min, max], not 1");
	refuse("random_resized_crop(2, 2, ratio=[2, 1])", LEAT_SPEC,
	       "ratio=[2, 1]: the first number is above the second");
	refuse("random_resized_crop(2, 2, ratio=[0, 1])", LEAT_SPEC, "ratio");
	refuse("random_resized_crop(2, 2, scale=[0, 2])", LEAT_SPEC, "scale");
	refuse("random_resized_crop(2, 2, method=area, mode=torch)", LEAT_SPEC, "area");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(crop_keeps_the_rectangle),
		TEST(crop_beyond_the_image_is_an_error),
		TEST(center_crop_rounds_as_torchvision),
		TEST(pad_continues_the_image_as_its_mode_says),
		TEST(pad_is_undone_by_crop),
		TEST(pad_wants_all_or_sides),
		TEST(pad_adds_to_the_sides_that_are_known),
		TEST(pad_with_one_number_is_for_all_sides),
		TEST(random_crop_takes_every_place_equally_often),
		TEST(random_crop_pads_as_torchvision),
		TEST(random_crop_larger_than_the_image_is_an_error),
		TEST(random_resized_crop_is_a_crop_and_a_resize),
		TEST(random_resized_crop_takes_shares_and_ratios_as_asked),
		TEST(random_resized_crop_that_fits_nowhere_takes_the_middle),
		TEST(random_resized_crop_refuses_ranges_that_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
