/* test_ops_image.c - sample ops on images and numbers: what each promises, on odd sizes, both types */
#include "support/bench.h"

#include <math.h>

#include "image/image.h"

static const int64_t sizes[][3] = {{1, 1, 1}, {1, 1, 3}, {1, 8, 3}, {8, 1, 1}, {3, 5, 3}, {5, 3, 1}, {16, 17, 3}};
enum { SIZES = sizeof(sizes) / sizeof(*sizes), MOST = 16 * 17 * 3 };

static struct bench bench;
static uint8_t bytes[MOST];
static float floats[MOST];

static int
set_up(void **state)
{
	(void)state;
	bench_open(&bench);
	for (size_t i = 0; i < MOST; i++) {
		bytes[i] = (uint8_t)(i * 37 + i / 256);
		floats[i] = (float)bytes[i] / 256 - 0.25f;
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

static const void *
pixels(enum leat_dtype dtype)
{
	return dtype == LEAT_U8 ? (const void *)bytes : (const void *)floats;
}

static void
put(int size, enum leat_dtype dtype)
{
	bench_put_image(&bench, pixels(dtype), dtype, sizes[size][0], sizes[size][1], sizes[size][2]);
}

static void
run(const char *spec)
{
	if (bench_run(&bench, spec) != LEAT_OK)
		fail_msg("%s: %s", spec, bench.err.text);
}

static void
refuse(const char *spec, enum leat_status status, const char *words)
{
	assert_int_equal(bench_run(&bench, spec), status);
	if (strstr(bench.err.text, words) == NULL)
		fail_msg("%s: expected '%s' in: %s", spec, words, bench.err.text);
	leat_err_clear(&bench.err);
}

static void
assert_pixels(const void *want)
{
	const struct leat_datum *got = &bench.sample.field[0];

	assert_memory_equal(got->data, want, leat_datum_bytes(got));
}

/* For each spec, size and type: the image comes back as it was. */
static void
assert_identity(const char *const *specs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (int size = 0; size < SIZES; size++)
			for (int dtype = LEAT_U8; dtype <= LEAT_F32; dtype += LEAT_F32 - LEAT_U8) {
				put(size, (enum leat_dtype)dtype);
				run(specs[i]);
				assert_int_equal(bench.sample.field[0].dtype, dtype);
				assert_pixels(pixels((enum leat_dtype)dtype));
				for (int d = 0; d < 3; d++)
					assert_int_equal(bench.sample.field[0].shape[d], sizes[size][d]);
			}
}

#define ASSERT_IDENTITY(...)                                                                                           \
	assert_identity((const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void
what_is_undone_or_does_nothing_leaves_every_pixel(void **state)
{
	(void)state;
	ASSERT_IDENTITY("flip | flip", "flip(vertical) | flip(vertical)", "random_flip(probability=0)",
	                "random_flip(probability=1) | flip", "random_flip(vertical, 1) | flip(vertical)",
	                "rotate(0deg)", "rotate(0rad, fill=9)", "layout(hwc)", "layout(chw) | layout(hwc)",
	                "layout(chw) | layout(chw) | layout(hwc)");
}

static void
resizing_to_the_same_size_changes_the_type_alone(void **state)
{
	char spec[80];

	(void)state;
	for (int size = 0; size < SIZES; size++) {
		snprintf(spec, sizeof(spec), "resize(%d, %d)", (int)sizes[size][0], (int)sizes[size][1]);
		put(size, LEAT_F32);
		run(spec);
		assert_pixels(floats);
		put(size, LEAT_U8);
		run(spec);
		assert_int_equal(bench.sample.field[0].dtype, LEAT_F32);
		run("cast(uint8)");
		assert_pixels(bytes);
		snprintf(spec, sizeof(spec), "resize(%d, %d, nearest)", (int)sizes[size][0], (int)sizes[size][1]);
		put(size, LEAT_U8);
		run(spec);
		assert_int_equal(bench.sample.field[0].dtype, LEAT_U8);
		assert_pixels(bytes);
	}
}

static void
resizing_stays_between_the_smallest_and_largest_pixel(void **state)
{
	static const char *const specs[] = {"resize(1, 1)", "resize(7, 2)", "resize(40, 31)", "resize(9, 9, nearest)"};

	(void)state;
	for (int size = 0; size < SIZES; size++)
		for (int i = 0; i < 4; i++) {
			const struct leat_datum *got = &bench.sample.field[0];
			const float *x;

			put(size, LEAT_F32);
			run(specs[i]);
			assert_int_equal(got->shape[2], sizes[size][2]);
			x = got->data;
			for (int64_t e = 0; e < leat_datum_elements(got); e++)
				assert_true(x[e] >= -0.25f && x[e] < 0.75f);
		}
}

static void
flip_mirrors(void **state)
{
	static const uint8_t in[] = {1, 2, 3, 4, 5, 6}, across[] = {3, 2, 1, 6, 5, 4}, down[] = {4, 5, 6, 1, 2, 3};

	(void)state;
	bench_put_image(&bench, in, LEAT_U8, 2, 3, 1);
	run("flip");
	assert_pixels(across);
	bench_put_image(&bench, in, LEAT_U8, 2, 3, 1);
	run("flip(vertical)");
	assert_pixels(down);
	bench_put_image(&bench, in, LEAT_U8, 1, 2, 3);
	run("flip(direction=horizontal)");
	assert_pixels(((const uint8_t[]){4, 5, 6, 1, 2, 3}));
}

static void
random_flip_flips_its_share_of_the_samples(void **state)
{
	static const uint8_t in[] = {1, 2};
	int flipped[2] = {0, 0};
	const struct leat_datum *got = &bench.sample.field[0];

	(void)state;
	for (bench.position = 0; bench.position < 4000; bench.position++) {
		bench_put_image(&bench, in, LEAT_U8, 1, 2, 1);
		run("random_flip");
		flipped[0] += *(uint8_t *)got->data == 2;
		bench_put_image(&bench, in, LEAT_U8, 1, 2, 1);
		run("random_flip(probability=0.1)");
		flipped[1] += *(uint8_t *)got->data == 2;
	}
	assert_in_range(flipped[0], 1850, 2150); /* about five standard deviations */
	assert_in_range(flipped[1], 305, 495);
}

static void
rotate_turns_counter_clockwise_and_fills(void **state)
{
	static const uint8_t in[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, left[] = {3, 6, 9, 2, 5, 8, 1, 4, 7};
	static const uint8_t row[] = {1, 2, 3};

	(void)state;
	bench_put_image(&bench, in, LEAT_U8, 3, 3, 1);
	run("rotate(90deg)");
	assert_pixels(left);
	run("rotate(90deg) | rotate(180deg)");
	assert_pixels(in);
	bench_put_image(&bench, row, LEAT_U8, 1, 3, 1);
	run("rotate(90deg, fill=7.9)");
	assert_pixels(((const uint8_t[]){7, 2, 7}));
	bench_put_image(&bench, row, LEAT_U8, 1, 3, 1);
	run("rotate(90deg, fill=1000)");
	assert_pixels(((const uint8_t[]){255, 2, 255}));
	bench_put_image(&bench, (const float[]){1, 2, 3, 4, 5, 6}, LEAT_F32, 1, 2, 3);
	run("rotate(90deg, fill=-0.5)");
	assert_pixels(((const float[]){-0.5f, -0.5f, -0.5f, -0.5f, -0.5f, -0.5f}));
}

static void
rotate_wants_a_unit(void **state)
{
	(void)state;
	put(4, LEAT_U8);
	refuse("rotate(30)", LEAT_SPEC, "deg or rad");
}

static void
scale_multiplies_and_adds(void **state)
{
	const float *x = NULL;

	(void)state;
	put(6, LEAT_U8);
	run("scale(1/255)");
	x = bench.sample.field[0].data;
	for (size_t i = 0; i < MOST; i++)
		assert_true(x[i] == (float)bytes[i] * (float)(1 / 255.0));
	put(6, LEAT_F32);
	run("scale(2, offset=-1)");
	x = bench.sample.field[0].data;
	for (size_t i = 0; i < MOST; i++)
		assert_true(x[i] == floats[i] * 2 - 1);
	bench_put(&bench, floats, LEAT_F32, 0, sizes[0], LEAT_LAYOUT_NONE);
	run("scale(2)");
	assert_true(*(float *)bench.sample.field[0].data == floats[0] * 2);
	bench_put(&bench, bytes, LEAT_U8, 1, (const int64_t[]){784}, LEAT_LAYOUT_NONE);
	run("scale(1/255)");
	bench_put_bytes(&bench, bytes, 784);
	refuse("scale(1/255)", LEAT_SPEC, "wants");
	bench_put(&bench, (const int64_t[]){5}, LEAT_I64, 0, sizes[0], LEAT_LAYOUT_NONE);
	refuse("scale(1/255)", LEAT_SPEC, "wants");
}

/* Also where x is next to the mean, and the quotient next to zero. */
static void
normalize_is_within_two_units_in_the_last_place(void **state)
{
	static const double mean[] = {(double)0.485f, (double)0.456f, (double)0.406f};
	static const double deviation[] = {(double)0.229f, (double)0.224f, (double)0.225f};
	float in[3 * 3000];
	const float *x;

	(void)state;
	for (int i = 0; i < 1000; i++)
		for (int c = 0; c < 3; c++) {
			float near = (float)mean[c];

			for (int ulp = 0; ulp < i; ulp++)
				near = nextafterf(near, c == 1 ? 0 : 1);
			in[3 * i + c] = near;
			in[3 * (1000 + i) + c] = (float)i / 999;
			in[3 * (2000 + i) + c] = (float)i - 500;
		}
	bench_put_image(&bench, in, LEAT_F32, 3, 1000, 3);
	run("normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])");
	x = bench.sample.field[0].data;
	for (int i = 0; i < 9000; i++) {
		double want = ((double)in[i] - mean[i % 3]) / deviation[i % 3];

		assert_true(fabs((double)x[i] - want) <= fabs(want) * 2 * 0x1p-23);
	}
}

static void
normalize_goes_by_channel_in_both_layouts(void **state)
{
	float last[MOST];

	(void)state;
	put(6, LEAT_U8);
	run("normalize(mean=[1, 2, 3], std=[4, 5, 6])");
	run("layout(chw)");
	memcpy(last, bench.sample.field[0].data, sizeof(last));
	put(6, LEAT_U8);
	run("layout(chw)");
	run("normalize(mean=[1, 2, 3], std=[4, 5, 6])");
	assert_pixels(last);
	put(4, LEAT_F32);
	run("normalize(mean=0, std=1)");
	assert_pixels(floats);
	put(4, LEAT_F32);
	run("normalize(mean=[0, 0, 0], std=1)");
	assert_pixels(floats);
}

static void
normalize_refuses_lists_that_do_not_fit(void **state)
{
	const struct leat_op *op = leat_op_find("normalize");
	struct leat_field field = {.name = "image", .dtype = LEAT_U8, .ndim = 3, .shape = {-1, -1, -1}};
	enum leat_layout layout = LEAT_HWC;
	struct {
		struct leat_floats mean, std;
	} params = {{3, {0}}, {1, {1}}};

	(void)state;
	put(5, LEAT_U8);
	refuse("normalize(mean=[1, 2, 3], std=1)", LEAT_SPEC, "mean has 3 numbers, expected 1");
	put(4, LEAT_U8);
	refuse("normalize(mean=0, std=[1, 2])", LEAT_SPEC, "std has 2 numbers, expected 1 or 3");
	refuse("normalize(mean=0, std=0)", LEAT_SPEC, "std");
	refuse("normalize(mean=[], std=1)", LEAT_SPEC, "mean");
	assert_int_equal(op->params_size, sizeof(params));
	assert_int_equal(op->on_field.infer(&params, &field, &layout, &bench.err), LEAT_SPEC);
	assert_non_null(strstr(bench.err.text, "decode(channels=3)"));
}

static void
random_brightness_adds_one_number_within_its_range(void **state)
{
	float lowest = 1, highest = -1;

	(void)state;
	for (bench.position = 0; bench.position < 1000; bench.position++) {
		const float *x;
		float added;

		bench_put_image(&bench, (const float[]){0, 0, 0, 0.5f, 0.5f, 0.5f}, LEAT_F32, 1, 2, 3);
		run("random_brightness(0.2)");
		x = bench.sample.field[0].data;
		added = x[0];
		assert_true(added >= -0.2f && added < 0.2f && x[1] == added && x[2] == added);
		assert_true(x[3] == 0.5f + added && x[5] == x[3]);
		lowest = fminf(lowest, added);
		highest = fmaxf(highest, added);
	}
	assert_true(lowest < -0.19f && highest > 0.19f);
	put(4, LEAT_U8);
	refuse("random_brightness(0.2)", LEAT_SPEC, "scale(1/255)");
}

static void
random_contrast_keeps_the_means(void **state)
{
	float before[LEAT_MAX_CHANNELS], after[LEAT_MAX_CHANNELS];

	(void)state;
	for (int size = 0; size < SIZES; size++) {
		put(size, LEAT_F32);
		leat_channel_means(&bench.sample.field[0], before);
		run("random_contrast(0.5, 2)");
		leat_channel_means(&bench.sample.field[0], after);
		for (int64_t c = 0; c < sizes[size][2]; c++)
			assert_true(fabsf(before[c] - after[c]) < 1e-6f);
	}
	put(4, LEAT_F32);
	run("random_contrast(0, 0)");
	for (int i = 0; i < 45; i++)
		assert_true(((float *)bench.sample.field[0].data)[i] == ((float *)bench.sample.field[0].data)[i % 3]);
	put(4, LEAT_F32);
	refuse("random_contrast(2, 1)", LEAT_SPEC, "lower=2 is above upper=1");
	put(4, LEAT_U8);
	refuse("random_contrast(1, 2)", LEAT_SPEC, "scale(1/255)");
}

static void
cast_takes_labels_and_images_but_no_blobs(void **state)
{
	(void)state;
	bench_put(&bench, (const int64_t[]){-7}, LEAT_I64, 0, sizes[0], LEAT_LAYOUT_NONE);
	run("cast(int32)");
	assert_pixels(((const int32_t[]){-7}));
	run("cast(int16)");
	assert_pixels(((const int16_t[]){-7}));
	run("cast(bool)");
	assert_pixels(((const uint8_t[]){1}));
	put(6, LEAT_U8);
	run("cast(float64) | cast(int64) | cast(bfloat16) | cast(float16) | cast(float32) | cast(uint8)");
	assert_pixels(bytes);
	run("cast(uint16) | cast(uint32) | cast(int16) | cast(uint8)");
	assert_pixels(bytes);
	assert_int_equal(bench.layout, LEAT_HWC);
	bench_put_bytes(&bench, bytes, 10);
	refuse("cast(float32)", LEAT_SPEC, "wants");
}

static void
layout_moves_channels_of_any_type(void **state)
{
	(void)state;
	bench_put_image(&bench, (const uint8_t[]){1, 2, 3, 4, 5, 6}, LEAT_U8, 1, 2, 3);
	run("layout(chw)");
	assert_pixels(((const uint8_t[]){1, 4, 2, 5, 3, 6}));
	assert_int_equal(bench.layout, LEAT_CHW);
	assert_int_equal(bench.sample.field[0].shape[0], 3);
	refuse("flip", LEAT_SPEC, "wants"); /* ops on images want channels last */
	run("cast(int64) | layout(hwc) | cast(uint8)");
	assert_pixels(((const uint8_t[]){1, 2, 3, 4, 5, 6}));
}

static void
decode_takes_0_1_3_or_4_channels(void **state)
{
	size_t size;
	unsigned char *file = bench_read(GOLDEN "tf/420.jpg", &size);

	(void)state;
	bench_put_bytes(&bench, file, size);
	refuse("decode(channels=2)", LEAT_SPEC, "expected 0, 1, 3 or 4");
	refuse("decode(channels=5)", LEAT_SPEC, "channels");
	run("decode(1)");
	assert_int_equal(bench.sample.field[0].shape[2], 1);
	bench_put_bytes(&bench, file, size);
	bench.work.max_pixels = 19 * 29 - 1;
	refuse("decode", LEAT_DATA, "29 x 19 = 551 pixels, more than max_pixels=550 allows");
	bench.work.max_pixels++;
	run("decode");
	free(file);
	put(4, LEAT_U8);
	refuse("decode", LEAT_SPEC, "JPEG, PNG or WebP");
}

/* What a schema cannot know: images from sources without fixed shapes. */
static void
images_without_pixels_or_with_many_channels_are_data_errors(void **state)
{
	static const char *const names[] = {"resize", "rotate", "random_contrast"};
	static const int64_t shapes[][3] = {{0, 3, 3}, {3, 0, 3}, {3, 3, 0}, {3, 3, 5}};

	(void)state;
	for (int n = 0; n < 3; n++)
		for (int s = 0; s < 4; s++) {
			const struct leat_op *op = leat_op_find(names[n]);
			unsigned char params[64] = {0};

			assert_true(op->params_size <= sizeof(params));
			memcpy(params, (const int64_t[]){4, 4},
			       16); /* sides for resize; tiny angles and factors otherwise */
			bench_put_image(&bench, floats, LEAT_F32, shapes[s][0], shapes[s][1], shapes[s][2]);
			assert_int_equal(leat_op_run(op, params, &bench.work, 0, &bench.err), LEAT_DATA);
			assert_non_null(strstr(bench.err.text, "1 to 4 channels"));
		}
}

/* The engine's slot, or a full scratch. */
static float slot[64];

static void *
place(struct leat_work *work, int field, size_t size)
{
	(void)field;
	return size == 4 * 4 * 3 * sizeof(float) ? work->output_slot_arg : NULL;
}

static void
results_go_to_the_slot_or_the_scratch_or_fail(void **state)
{
	(void)state;
	bench.work.output_slot = place;
	bench.work.output_slot_arg = slot;
	put(4, LEAT_U8);
	run("resize(4, 4)");
	assert_ptr_equal(bench.sample.field[0].data, slot);
	put(4, LEAT_U8);
	run("resize(4, 5)");
	assert_ptr_not_equal(bench.sample.field[0].data, slot);
	bench.work.output_slot = NULL;
	put(4, LEAT_U8);
	refuse("resize(20000, 20000)", LEAT_LIMIT, "is left");
	put(4, LEAT_U8);
	assert_null(leat_work_scratch(&bench.work, SIZE_MAX, &bench.err));
	assert_int_equal(bench.err.status, LEAT_LIMIT);
	leat_err_clear(&bench.err);
	assert_non_null(leat_work_scratch(&bench.work, 100, &bench.err));
	assert_int_equal(leat_work_out(&bench.work, 0, LEAT_F64, 3, (const int64_t[]){INT64_MAX / 2, 2, 1}, &bench.err),
	                 LEAT_LIMIT);
}

static void
ops_are_found_by_name_and_are_described(void **state)
{
	(void)state;
	assert_null(leat_op_find("resise"));
	for (const struct leat_op *const *op = leat_ops; *op; op++) {
		assert_ptr_equal(leat_op_find((*op)->name), *op);
		assert_true((*op)->doc != NULL && (*op)->example != NULL && (*op)->version > 0);
		assert_true(!leat_op_is_on_field(*op) || (*op)->on_field.wants != NULL);
	}
}

static void
ops_have_the_part_that_belongs_to_their_kind_and_no_other(void **state)
{
	(void)state;
	for (const struct leat_op *const *op = leat_ops; *op; op++) {
		enum leat_op_kind kind = (*op)->kind;
		bool none = kind == LEAT_OP_BATCH || kind == LEAT_OP_CACHE || kind == LEAT_OP_HINT;
		bool fields = kind == LEAT_OP_FIELDS, batch = kind == LEAT_OP_MIX, plan = kind == LEAT_OP_PLAN;
		bool can_run = (*op)->on_field.run || leat_op_can_fuse(*op);

		assert_int_equal(leat_op_is_on_field(*op), !none && !fields && !batch && !plan);
		assert_int_equal(can_run, leat_op_is_on_field(*op));
		assert_int_equal((*op)->on_fields.infer != NULL, fields);
		assert_int_equal((*op)->on_batch.infer != NULL, batch);
		assert_int_equal((*op)->on_batch.run != NULL, batch);
		assert_int_equal((*op)->on_plan.open != NULL, plan);
		assert_int_equal((*op)->on_field.fuse.decode != NULL, kind == LEAT_OP_DECODE);
		assert_int_equal((*op)->on_field.fuse.affine != NULL, kind == LEAT_OP_POINTWISE);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_undone_or_does_nothing_leaves_every_pixel),
		TEST(resizing_to_the_same_size_changes_the_type_alone),
		TEST(resizing_stays_between_the_smallest_and_largest_pixel),
		TEST(flip_mirrors),
		TEST(random_flip_flips_its_share_of_the_samples),
		TEST(rotate_turns_counter_clockwise_and_fills),
		TEST(rotate_wants_a_unit),
		TEST(scale_multiplies_and_adds),
		TEST(normalize_is_within_two_units_in_the_last_place),
		TEST(normalize_goes_by_channel_in_both_layouts),
		TEST(normalize_refuses_lists_that_do_not_fit),
		TEST(random_brightness_adds_one_number_within_its_range),
		TEST(random_contrast_keeps_the_means),
		TEST(cast_takes_labels_and_images_but_no_blobs),
		TEST(layout_moves_channels_of_any_type),
		TEST(decode_takes_0_1_3_or_4_channels),
		TEST(images_without_pixels_or_with_many_channels_are_data_errors),
		TEST(results_go_to_the_slot_or_the_scratch_or_fail),
		TEST(ops_are_found_by_name_and_are_described),
		TEST(ops_have_the_part_that_belongs_to_their_kind_and_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
