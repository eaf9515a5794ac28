/* test_ops_augment.c - random rotation, affine transforms, blur and erasing: what each promises */
#include "support/pictures.h"

#include "image/affine.h"

static struct leat_rng
stream_of(const char *op)
{
	struct leat_rng rng;

	leat_rng_init(&rng, 7, 0, bench.position, leat_stream(op, 0));
	return rng;
}

/* ---- random_rotate ---- */

static void
random_rotate_is_rotate_by_a_uniform_angle(void **state)
{
	double sum = 0;
	enum { DRAWS = 400 };

	(void)state;
	for (bench.position = 0; bench.position < DRAWS; bench.position++) {
		struct leat_rng rng = stream_of("random_rotate");
		float angle = leat_rng_uniform(&rng, -0.5f, 0.5f);
		void *kept;

		assert_true(angle >= -0.5f && angle < 0.5f);
		sum += (double)angle;
		put_size(9, 13, 3, bench.position % 2 ? LEAT_U8 : LEAT_F32);
		run("random_rotate(0.5rad, fill=3)");
		kept = keep_result();
		put_size(9, 13, 3, bench.position % 2 ? LEAT_U8 : LEAT_F32);
		runf("rotate(%.9grad, fill=3)", (double)angle);
		assert_result(kept);
		free(kept);
	}
	assert_true(fabs(sum / DRAWS) < 0.07); /* five standard deviations */
	bench.position = 0;
	for (struct picture p = {0}; next_picture(&p);) {
		put_picture(&p);
		run("random_rotate(0deg)");
		assert_result(p.dtype == LEAT_U8 ? (void *)picture_bytes : picture_floats);
	}
	refuse("random_rotate(30)", LEAT_SPEC, "deg or rad");
	refuse("random_rotate(-1deg)", LEAT_SPEC, "max");
	refuse("random_rotate(361deg)", LEAT_SPEC, "more than a full turn");
	run("random_rotate(360deg)");
}

/* ---- random_affine ---- */

/* Where (X, Y) comes from, by the definition: back from the shift and the centre, then the inverse of turning,
 * scaling, shearing along y and along x, each by itself. */
static void
come_from(const struct leat_warp *warp, const struct picture *p, double *x, double *y)
{
	double centre_x = (double)p->w / 2, centre_y = (double)p->h / 2, to_rad = acos(-1) / 180;
	double c = cos(warp->degrees * to_rad), s = sin(warp->degrees * to_rad);
	double u = *x - centre_x - warp->dx, v = *y - centre_y - warp->dy;
	double turned_x = (c * u + s * v) / warp->scale, turned_y = (-s * u + c * v) / warp->scale;

	/* Shears: x' = x - y tan(shear_x), y' = y - x tan(shear_y), first along x, then along y. */
	turned_y += turned_x * tan(warp->shear_y * to_rad);
	turned_x += turned_y * tan(warp->shear_x * to_rad);
	*x = turned_x + centre_x;
	*y = turned_y + centre_y;
}

/* Every pixel is the one that its place comes from; where that lies on an edge, a neighbour may do. */
static void
assert_warped(const struct leat_warp *warp, const struct picture *p, double fill)
{
	for (int64_t y = 0; y < p->h; y++)
		for (int64_t x = 0; x < p->w; x++)
			for (int64_t c = 0; c < p->c; c++) {
				double fx = (double)x + 0.5, fy = (double)y + 0.5, want = fill;

				come_from(warp, p, &fx, &fy);
				if (fabs(fx - rint(fx)) < 1e-3 || fabs(fy - rint(fy)) < 1e-3)
					continue;
				if (fx > 0 && fx < (double)p->w && fy > 0 && fy < (double)p->h)
					want = picture_at(p, (int64_t)fy, (int64_t)fx, c);
				if (result_at(y, x, c) != want)
					fail_msg("%dx%d: pixel %d, %d", (int)p->h, (int)p->w, (int)y, (int)x);
			}
}

static void
warp_takes_pixels_from_where_the_definition_says(void **state)
{
	static const struct leat_warp warps[] = {
		{.scale = 1},
		{.scale = 1, .dx = 2, .dy = -1},
		{.degrees = 33, .scale = 1},
		{.degrees = -121, .scale = 0.7, .dx = 1, .dy = 3},
		{.shear_x = 20, .scale = 1},
		{.shear_y = -13, .scale = 1},
		{.degrees = 17, .shear_x = -11, .shear_y = 29, .scale = 1.3, .dx = -2, .dy = 1},
		{.degrees = 50, .scale = 0.00001}, /* far out: no fixed point */
	};

	(void)state;
	for (struct picture p = {0}; next_picture(&p);)
		for (size_t i = 0; i < sizeof(warps) / sizeof(*warps); i++) {
			struct leat_datum in;
			const int64_t shape[] = {p.h, p.w, p.c};

			put_picture(&p);
			in = bench.sample.field[0];
			assert_int_equal(leat_work_out(&bench.work, 0, p.dtype, 3, shape, &bench.err), LEAT_OK);
			leat_warp(&in, &bench.sample.field[0], &warps[i], 9);
			assert_warped(&warps[i], &p, 9);
		}
}

static void
random_affine_draws_within_its_ranges(void **state)
{
	double least[6] = {INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY}, most[6];

	(void)state;
	for (int i = 0; i < 6; i++)
		most[i] = -least[i];
	for (bench.position = 0; bench.position < 300; bench.position++) {
		const struct picture p = {.h = 10, .w = 20, .c = 3, .dtype = LEAT_U8};
		struct leat_rng rng = stream_of("random_affine");
		struct leat_warp warp;

		warp.degrees = (double)leat_rng_uniform(&rng, -30, 30);
		warp.dx = rint((double)leat_rng_uniform(&rng, -5, 5));
		warp.dy = rint((double)leat_rng_uniform(&rng, -3, 3));
		warp.scale = (double)leat_rng_uniform(&rng, 0.5f, 2);
		warp.shear_x = (double)leat_rng_uniform(&rng, -10, 10);
		warp.shear_y = (double)leat_rng_uniform(&rng, 0, 0);
		put_picture(&p);
		run("random_affine(30, translate=[0.25, 0.3], scale=[0.5, 2], shear=10, fill=1)");
		assert_warped(&warp, &p, 1);
		put_picture(&p);
		run("random_affine([-30, 30], [0.25, 0.3], [0.5, 2], [-10, 10, 0, 0], 1)");
		assert_warped(&warp, &p, 1);
		for (int i = 0; i < 6; i++) {
			double x = (const double[]){warp.degrees, warp.dx,      warp.dy,
			                            warp.scale,   warp.shear_x, warp.shear_y}[i];

			least[i] = fmin(least[i], x);
			most[i] = fmax(most[i], x);
		}
	}
	assert_true(least[0] < -29 && most[0] > 29 && least[1] == -5 && most[1] == 5 && least[2] == -3 && most[2] == 3);
	assert_true(least[3] < 0.52 && most[3] > 1.98 && least[4] < -9.5 && most[4] > 9.5 && least[5] == 0 &&
	            most[5] == 0);
	bench.position = 0;
}

static void
random_affine_that_does_nothing_leaves_every_pixel(void **state)
{
	(void)state;
	for (struct picture p = {0}; next_picture(&p);) {
		put_picture(&p);
		run("random_affine(0)");
		assert_result(p.dtype == LEAT_U8 ? (void *)picture_bytes : picture_floats);
	}
}

static void
random_affine_refuses_what_it_cannot_draw(void **state)
{
	(void)state;
	put_size(3, 5, 3, LEAT_U8);
	refuse("random_affine(-5)", LEAT_SPEC, "degrees=-5: a single number x means [-x, x]");
	refuse("random_affine([1, 2, 3])", LEAT_SPEC, "degrees takes two numbers");
	refuse("random_affine([2, 1])", LEAT_SPEC, "degrees=[2, 1]");
	refuse("random_affine(5, translate=0.1)", LEAT_SPEC, "translate takes two numbers");
	refuse("random_affine(5, translate=[0.1, 1.5])", LEAT_SPEC, "translate");
	refuse("random_affine(5, scale=[0, 1])", LEAT_SPEC, "scale");
	refuse("random_affine(5, scale=2)", LEAT_SPEC, "scale takes two numbers");
	refuse("random_affine(5, shear=[1, 2, 3])", LEAT_SPEC, "shear takes one, two or four numbers, not 3");
	refuse("random_affine(5, shear=[0, 0, 2, 1])", LEAT_SPEC, "shear=[2, 1]");
	refuse("random_affine", LEAT_SPEC, "degrees");
	run("random_affine(360, shear=[90, 90, -90, -90], scale=[0.001, 0.001])"); /* as far as it goes */
}

/* ---- gaussian_blur ---- */

/* In double, straight from the definition, mirrored by a walk. */
static double
blurred(const struct picture *p, int64_t y, int64_t x, int64_t c, int64_t radius, double sigma)
{
	double sum = 0, weights = 0;

	for (int64_t dy = -radius; dy <= radius; dy++)
		for (int64_t dx = -radius; dx <= radius; dx++) {
			int64_t at[2] = {y + dy, x + dx}, side[2] = {p->h, p->w};
			double w = exp(-(double)(dx * dx + dy * dy) / (2 * sigma * sigma));

			for (int d = 0; d < 2; d++)
				while (at[d] < 0 || at[d] >= side[d])
					at[d] = side[d] == 1 ? 0 : at[d] < 0 ? -at[d] : 2 * (side[d] - 1) - at[d];
			sum += w * picture_at(p, at[0], at[1], c);
			weights += w;
		}
	return sum / weights;
}

static void
gaussian_blur_sums_its_neighbours(void **state)
{
	static const int kernels[] = {1, 3, 7, 21};

	(void)state;
	for (struct picture p = {0}; next_picture(&p);)
		for (int k = 0; k < 4; k++) {
			put_picture(&p);
			runf("gaussian_blur(%d, sigma=[1.5, 1.5])", kernels[k]);
			assert_shape(p.h, p.w, p.c);
			assert_int_equal(bench.sample.field[0].dtype, p.dtype);
			for (int64_t y = 0; y < p.h; y++)
				for (int64_t x = 0; x < p.w; x++)
					for (int64_t c = 0; c < p.c; c++) {
						double want = blurred(&p, y, x, c, kernels[k] / 2, 1.5);

						assert_true(fabs(result_at(y, x, c) - want) <=
						            (p.dtype == LEAT_U8 ? 0.50001 : 1e-6));
					}
		}
}

static void
gaussian_blur_draws_one_sigma_for_the_image(void **state)
{
	static const float dot[15 * 15] = {[7 * 15 + 7] = 1};
	double least = 10, most = 0;

	(void)state;
	for (bench.position = 0; bench.position < 300; bench.position++) {
		struct leat_rng rng = stream_of("gaussian_blur");
		double sigma = (double)leat_rng_uniform(&rng, 0.5f, 2), ratio;

		bench_put_image(&bench, dot, LEAT_F32, 15, 15, 1);
		run("gaussian_blur(15, [0.5, 2])");
		ratio = result_at(7, 8, 0) / result_at(7, 7, 0);
		assert_true(fabs(ratio - exp(-1 / (2 * sigma * sigma))) < 1e-5);
		least = fmin(least, sigma);
		most = fmax(most, sigma);
	}
	assert_true(least < 0.52 && most > 1.98);
	bench.position = 0;
}

static void
gaussian_blur_refuses_even_kernels_and_bad_ranges(void **state)
{
	(void)state;
	put_size(3, 5, 3, LEAT_U8);
	refuse("gaussian_blur(4)", LEAT_SPEC, "kernel=4 is even: use an odd size, such as 5");
	refuse("gaussian_blur(0)", LEAT_SPEC, "kernel");
	refuse("gaussian_blur(3, sigma=1)", LEAT_SPEC, "sigma takes two numbers");
	refuse("gaussian_blur(3, sigma=[2, 1])", LEAT_SPEC, "sigma=[2, 1]");
	refuse("gaussian_blur(3, sigma=[0, 1])", LEAT_SPEC, "sigma");
}

static void
blur_takes_no_more_scratch_than_it_says_and_gives_it_back(void **state)
{
	static const int64_t sides[][2] = {{1, 1}, {1, 30}, {200, 3}, {40, 50}};
	static const size_t kernels[] = {1, 5, 31, 301};
	static uint8_t in[2000 * 4], out[2000 * 4];
	struct leat_scratch scratch = {.base = bench.scratch.base};

	(void)state;
	assert_int_equal(leat_blur_scratch(5, -1, 10), 0);
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 4; k++) {
			struct leat_datum from = {in, LEAT_U8, 3, {sides[i][0], sides[i][1], 4}}, to = from;

			to.data = out;
			scratch.used = 64;
			scratch.size = 64 + leat_blur_scratch(kernels[k], sides[i][0], sides[i][1]);
			assert_int_equal(leat_blur(&from, &to, kernels[k], 2, &scratch, &bench.err), LEAT_OK);
			assert_int_equal(scratch.used, 64);
			scratch.size = 128;
			assert_int_equal(leat_blur(&from, &to, kernels[k], 2, &scratch, &bench.err), LEAT_LIMIT);
			assert_int_equal(scratch.used, 64);
			leat_err_clear(&bench.err);
		}
}

/* ---- random_erasing ---- */

/* What torchvision would erase, from the same stream. */
static bool
erased_part(const struct picture *p, float probability, const float scale[2], const float ratio[2],
            struct leat_window *part)
{
	struct leat_rng rng = stream_of("random_erasing");

	if (leat_rng_uniform(&rng, 0, 1) >= probability)
		return false;
	for (int tries = 0; tries < 10; tries++) {
		double area = (double)(p->h * p->w) * (double)leat_rng_uniform(&rng, scale[0], scale[1]);
		double r = exp((double)leat_rng_uniform(&rng, logf(ratio[0]), logf(ratio[1])));
		int64_t h = lrint(sqrt(area * r)), w = lrint(sqrt(area / r));

		if (h < p->h && w < p->w) {
			int64_t top = (int64_t)leat_rng_below(&rng, (uint64_t)(p->h - h + 1));

			*part = (struct leat_window){top, (int64_t)leat_rng_below(&rng, (uint64_t)(p->w - w + 1)), h,
			                             w};
			return true;
		}
	}
	return false;
}

static bool
is_inside(const struct leat_window *part, int64_t y, int64_t x)
{
	return y >= part->top && y < part->top + part->height && x >= part->left && x < part->left + part->width;
}

static void
random_erasing_writes_over_one_rectangle(void **state)
{
	static const float scale[] = {0.02f, 0.33f}, ratio[] = {0.3f, 3.3f};
	static const double values[] = {5, 6, 255}, floats[] = {5, 6, 300};
	int erased = 0;
	enum { DRAWS = 600 };

	(void)state;
	for (bench.position = 0; bench.position < DRAWS; bench.position++) {
		const struct picture p = {.h = 17, .w = 16, .c = 3, .dtype = bench.position % 2 ? LEAT_U8 : LEAT_F32};
		struct leat_window part = {0};
		bool some = erased_part(&p, 0.5f, scale, ratio, &part);

		erased += some;
		put_picture(&p);
		run("random_erasing(value=[5, 6, 300])");
		for (int64_t y = 0; y < p.h; y++)
			for (int64_t x = 0; x < p.w; x++)
				for (int64_t c = 0; c < 3; c++) {
					const double *value = p.dtype == LEAT_U8 ? values : floats;

					assert_true(result_at(y, x, c) ==
					            (is_inside(&part, y, x) ? value[c] : picture_at(&p, y, x, c)));
				}
	}
	assert_in_range(erased, DRAWS / 2 - 62, DRAWS / 2 + 62); /* five standard deviations */
	bench.position = 0;
}

static void
random_erasing_never_erases_a_whole_side(void **state)
{
	(void)state;
	for (struct picture p = {0}; next_picture(&p);)
		for (bench.position = 0; bench.position < 50; bench.position++) {
			put_picture(&p);
			run("random_erasing(1, scale=[0.9, 1], ratio=[0.1, 10], value=77)");
			if (p.h == 1 || p.w == 1) /* nothing is smaller, but nothing */
				assert_result(p.dtype == LEAT_U8 ? (void *)picture_bytes : picture_floats);
		}
	bench.position = 0;
	put_size(3, 5, 3, LEAT_U8);
	run("random_erasing(0, value=77)");
	assert_result(picture_bytes);
}

static void
random_erasing_with_noise_is_normal_and_the_same_again(void **state)
{
	static const float scale[] = {0.3f, 0.3f}, ratio[] = {1, 1};
	const struct picture p = {.h = 17, .w = 16, .c = 3, .dtype = LEAT_F32};
	double sum = 0, squares = 0;
	int count = 0;

	(void)state;
	for (bench.position = 0; bench.position < 100; bench.position++) {
		struct leat_window part;
		void *kept;

		assert_true(erased_part(&p, 1, scale, ratio, &part));
		put_picture(&p);
		run("random_erasing(1, [0.3, 0.3], [1, 1], random=true)");
		kept = keep_result();
		for (int64_t y = 0; y < p.h; y++)
			for (int64_t x = 0; x < p.w; x++)
				for (int64_t c = 0; c < 3; c++) {
					double got = result_at(y, x, c);

					if (!is_inside(&part, y, x)) {
						assert_true(got == picture_at(&p, y, x, c));
						continue;
					}
					sum += got;
					squares += got * got;
					count++;
				}
		put_picture(&p);
		run("random_erasing(1, [0.3, 0.3], [1, 1], random=true)");
		assert_result(kept);
		free(kept);
	}
	assert_true(count > 20000);
	assert_true(fabs(sum / count) < 0.04 && fabs(squares / count - 1) < 0.06);
	bench.position = 0;
}

static void
random_erasing_refuses_what_does_not_fit(void **state)
{
	const struct leat_op *op = leat_op_find("random_erasing");
	struct leat_field field = {.name = "image", .dtype = LEAT_U8, .ndim = 3, .shape = {-1, -1, -1}};
	enum leat_layout layout = LEAT_HWC;
	struct {
		float p;
		struct leat_floats scale, ratio, value;
		bool random;
	} params = {.value = {3, {0}}};

	(void)state;
	put_size(3, 5, 3, LEAT_U8);
	refuse("random_erasing(random=true)", LEAT_SPEC, "put scale or normalize before it");
	refuse("random_erasing(value=[1, 2])", LEAT_SPEC, "value has 2 numbers, expected 1 or 3");
	refuse("random_erasing(value=[])", LEAT_SPEC, "value");
	refuse("random_erasing(p=2)", LEAT_SPEC, "between 0 and 1");
	refuse("random_erasing(scale=[0.5, 0.1])", LEAT_SPEC, "scale=[0.5, 0.1]");
	refuse("random_erasing(ratio=1)", LEAT_SPEC, "ratio takes two numbers");
	assert_int_equal(op->params_size, sizeof(params));
	assert_int_equal(op->on_field.infer(&params, &field, &layout, &bench.err), LEAT_SPEC);
	assert_non_null(strstr(bench.err.text, "decode(channels=3)"));
}

/* ---- all of them ---- */

static void
the_same_position_gives_the_same_pixels_and_another_gives_others(void **state)
{
	static const char *const specs[] = {
		"random_crop(5, 5)",    "random_resized_crop(7, 7)",
		"random_rotate(90deg)", "random_affine(90, translate=[0.2, 0.2], scale=[0.5, 2], shear=20)",
		"gaussian_blur(5)",     "random_erasing(1, value=1000)",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(specs) / sizeof(*specs); i++) {
		int same = 0;

		for (bench.position = 0; bench.position < 20; bench.position++) {
			void *kept;

			put_size(17, 16, 3, LEAT_F32);
			run(specs[i]);
			kept = keep_result();
			put_size(17, 16, 3, LEAT_F32);
			run(specs[i]);
			assert_result(kept);
			bench.position += 1000;
			put_size(17, 16, 3, LEAT_F32);
			run(specs[i]);
			bench.position -= 1000;
			same += memcmp(kept, bench.sample.field[0].data, leat_datum_bytes(&bench.sample.field[0])) == 0;
			free(kept);
		}
		assert_true(same <= 2);
	}
	bench.position = 0;
}

/* What a schema cannot know: images from sources without fixed shapes. */
static void
images_without_pixels_or_with_many_channels_are_data_errors(void **state)
{
	static const char *const names[] = {"crop",          "center_crop",         "pad",
	                                    "random_crop",   "random_resized_crop", "random_rotate",
	                                    "random_affine", "gaussian_blur",       "random_erasing"};
	static const int64_t shapes[][3] = {{0, 3, 3}, {3, 0, 3}, {3, 3, 0}, {3, 3, 5}};

	(void)state;
	for (size_t n = 0; n < sizeof(names) / sizeof(*names); n++)
		for (int s = 0; s < 4; s++) {
			const struct leat_op *op = leat_op_find(names[n]);
			unsigned char params[1024] = {0};

			assert_true(op->params_size <= sizeof(params));
			bench_put_image(&bench, picture_floats, LEAT_F32, shapes[s][0], shapes[s][1], shapes[s][2]);
			assert_int_equal(leat_op_run(op, params, &bench.work, 0, &bench.err), LEAT_DATA);
			assert_non_null(strstr(bench.err.text, "1 to 4 channels"));
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(random_rotate_is_rotate_by_a_uniform_angle),
		TEST(warp_takes_pixels_from_where_the_definition_says),
		TEST(random_affine_draws_within_its_ranges),
		TEST(random_affine_that_does_nothing_leaves_every_pixel),
		TEST(random_affine_refuses_what_it_cannot_draw),
		TEST(gaussian_blur_sums_its_neighbours),
		TEST(gaussian_blur_draws_one_sigma_for_the_image),
		TEST(gaussian_blur_refuses_even_kernels_and_bad_ranges),
		TEST(blur_takes_no_more_scratch_than_it_says_and_gives_it_back),
		TEST(random_erasing_writes_over_one_rectangle),
		TEST(random_erasing_never_erases_a_whole_side),
		TEST(random_erasing_with_noise_is_normal_and_the_same_again),
		TEST(random_erasing_refuses_what_does_not_fit),
		TEST(the_same_position_gives_the_same_pixels_and_another_gives_others),
		TEST(images_without_pixels_or_with_many_channels_are_data_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
