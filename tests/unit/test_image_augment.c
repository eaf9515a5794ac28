/* test_image_augment.c - warps, and the changes of RandAugment: what holds of any image
 *
 * Values are compared with torchvision's in test_golden.c. */
#include "support/bench.h"

#include <math.h>

#include "image/augment.h"
#include "image/image.h"

enum { SIDE = 23, MOST = SIDE * SIDE * 4 };

static const int64_t sizes[][3] = {{1, 1, 1}, {1, 1, 3}, {1, 7, 3}, {7, 1, 1},
                                   {2, 3, 3}, {8, 8, 3}, {9, 9, 1}, {17, 23, 3}};
enum { SIZES = sizeof(sizes) / sizeof(*sizes) };

static uint8_t in[MOST], out[MOST], want[MOST];
static unsigned char room[4096] __attribute__((aligned(64)));
static struct leat_scratch scratch = {.base = room, .size = sizeof(room)};

static struct leat_datum
image(uint8_t *data, int size)
{
	for (size_t i = 0; i < MOST; i++)
		in[i] = (uint8_t)(i * 151 + i / 7 * 29 + i / 256);
	return (struct leat_datum){
		.data = data,
		.dtype = LEAT_U8,
		.ndim = 3,
		.shape = {sizes[size][0], sizes[size][1], sizes[size][2]},
	};
}

static void
rotate(int size, double degrees)
{
	const struct leat_datum from = image(in, size), to = image(out, size);
	const struct leat_map map = leat_map_rotation(degrees, from.shape[0], from.shape[1]);

	leat_warp_by(&from, &to, &map, 9);
}

/* ---- warps ---- */

static void
whole_turns_leave_every_pixel(void **state)
{
	static const double degrees[] = {0, 360, -360, 720};

	(void)state;
	for (int size = 0; size < SIZES; size++)
		for (int i = 0; i < 4; i++) {
			const struct leat_datum to = image(out, size);

			rotate(size, degrees[i]);
			assert_memory_equal(out, in, leat_datum_bytes(&to));
		}
}

static void
a_half_turn_is_two_flips(void **state)
{
	(void)state;
	for (int size = 0; size < SIZES; size++) {
		const struct leat_datum flipped = image(want, size);

		memcpy(want, in, leat_datum_bytes(&flipped));
		leat_flip(&flipped, LEAT_FLIP_HORIZONTAL);
		leat_flip(&flipped, LEAT_FLIP_VERTICAL);
		rotate(size, 180);
		assert_memory_equal(out, want, leat_datum_bytes(&flipped));
		rotate(size, -180);
		assert_memory_equal(out, want, leat_datum_bytes(&flipped));
	}
}

/* Counter-clockwise: the top right corner goes to the top left one. */
static void
a_quarter_turn_of_a_square_moves_columns_to_rows(void **state)
{
	(void)state;
	for (int size = 0; size < SIZES; size++) {
		const struct leat_datum to = image(out, size);
		int64_t n = to.shape[0], channels = to.shape[2];

		if (n != to.shape[1])
			continue;
		rotate(size, 90);
		for (int64_t i = 0; i < n * n * channels; i++) {
			int64_t c = i % channels, x = i / channels % n, y = i / channels / n;

			assert_int_equal(out[i], in[(x * n + n - 1 - y) * channels + c]);
		}
		memcpy(want, out, leat_datum_bytes(&to));
		rotate(size, -270);
		assert_memory_equal(out, want, leat_datum_bytes(&to));
	}
}

static void
places_without_a_pixel_are_filled(void **state)
{
	float from[] = {1, 2, 3, 4, 5, 6}, to[6], filled[] = {-1, -1, 1, 2, 3, 4};
	struct leat_datum a = {.data = from, .dtype = LEAT_F32, .ndim = 3, .shape = {1, 3, 2}}, b = a;
	struct leat_map map = {.xx = 1, .yy = 1, .x0 = -1};

	(void)state;
	b.data = to;
	leat_warp_by(&a, &b, &map, -1);
	assert_memory_equal(to, filled, sizeof(to));
	map.x0 = 1e9; /* far away */
	leat_warp_by(&a, &b, &map, 8);
	for (int i = 0; i < 6; i++)
		assert_true(to[i] == 8);
}

/* ---- changes ---- */

static const struct leat_augment_most most = {
	.shear = 0.99, .translate_x = 32, .translate_y = 32, .rotate = 135, .adjust = 0.99, .posterize = 6};

static void
augment(const struct leat_datum *a, const struct leat_datum *b, int kind, double magnitude)
{
	assert_int_equal(leat_augment(a, b, (enum leat_augment)kind, magnitude, 50, &scratch, NULL), LEAT_OK);
	assert_int_equal(scratch.used, 0);
}

static bool
has_a_magnitude(int kind)
{
	return kind != LEAT_AUGMENT_IDENTITY && kind != LEAT_AUGMENT_AUTOCONTRAST && kind != LEAT_AUGMENT_EQUALIZE;
}

/* Solarize's weakest threshold is 255, which white has. */
static void
the_first_bin_changes_nothing(void **state)
{
	(void)state;
	for (int size = 0; size < SIZES; size++)
		for (int kind = 0; kind < LEAT_AUGMENTS; kind++) {
			const struct leat_datum a = image(in, size), b = image(out, size);

			for (size_t i = 0; i < MOST; i++)
				in[i] = in[i] == 255 ? 254 : in[i];
			augment(&a, &b, kind, leat_augment_magnitude((enum leat_augment)kind, &most, 0, 31));
			if (kind == LEAT_AUGMENT_IDENTITY || has_a_magnitude(kind))
				assert_memory_equal(out, in, leat_datum_bytes(&a));
		}
}

static void
the_last_bin_is_the_most(void **state)
{
	static const double last[LEAT_AUGMENTS] = {0, 0.99, 0.99, 32, 32, 135, 0.99, 0.99, 0.99, 0.99, 2, 0, 0, 0};

	(void)state;
	for (int kind = 0; kind < LEAT_AUGMENTS; kind++)
		for (int64_t bins = 2; bins < 100; bins += 13) {
			double got = leat_augment_magnitude((enum leat_augment)kind, &most, bins - 1, bins);

			assert_true(fabs(got - last[kind]) < 1e-6);
		}
}

static void
magnitudes_go_one_way(void **state)
{
	(void)state;
	for (int kind = 0; kind < LEAT_AUGMENTS; kind++)
		for (int64_t bin = 1; bin < 31; bin++) {
			double step = leat_augment_magnitude((enum leat_augment)kind, &most, bin, 31) -
			              leat_augment_magnitude((enum leat_augment)kind, &most, bin - 1, 31);

			if (kind == LEAT_AUGMENT_SOLARIZE)
				assert_true(step < 0);
			else if (kind == LEAT_AUGMENT_POSTERIZE)
				assert_true(step == 0 || step == -1);
			else
				assert_true(has_a_magnitude(kind) ? step > 0 : step == 0);
		}
}

static void
working_in_place_gives_the_same(void **state)
{
	(void)state;
	for (int size = 0; size < SIZES; size++)
		for (int kind = 0; kind < LEAT_AUGMENTS; kind++) {
			const struct leat_datum a = image(in, size), b = image(out, size), c = image(want, size);
			double magnitude = leat_augment_magnitude((enum leat_augment)kind, &most, 17, 31);

			memcpy(want, in, leat_datum_bytes(&a));
			augment(&a, &b, kind, magnitude);
			assert_memory_equal(in, want, leat_datum_bytes(&a)); /* left alone */
			augment(&c, &c, kind, magnitude);
			assert_memory_equal(out, want, leat_datum_bytes(&a));
		}
}

static void
pixels_move_to_where_they_should(void **state)
{
	const struct leat_datum a = image(in, 7), b = image(out, 7);
	int64_t width = a.shape[1];

	(void)state;
	augment(&a, &b, LEAT_AUGMENT_TRANSLATE_X, 3.9); /* cut off: 3 to the right */
	assert_memory_equal(out, ((const uint8_t[]){50, 50, 50, 50, 50, 50, 50, 50, 50}), 9);
	assert_memory_equal(out + 9, in, 3 * (size_t)(width - 3));
	augment(&a, &b, LEAT_AUGMENT_TRANSLATE_Y, -2.9); /* 2 up */
	assert_memory_equal(out, in + 2 * 3 * width, 3 * (size_t)width * 15);
	augment(&a, &b, LEAT_AUGMENT_SHEAR_X, 1); /* row y moves y + 1 to the left */
	assert_memory_equal(out + 3 * (4 * width), in + 3 * (4 * width + 5), 3 * (size_t)(width - 5));
	augment(&a, &b, LEAT_AUGMENT_SHEAR_Y, -1); /* column x moves x down */
	assert_memory_equal(out + 3 * (10 * width + 4), in + 3 * (6 * width + 4), 3);
}

static void
what_has_an_opposite_says_so(void **state)
{
	(void)state;
	for (int kind = 0; kind < LEAT_AUGMENTS; kind++)
		assert_int_equal(leat_augment_is_signed((enum leat_augment)kind),
		                 has_a_magnitude(kind) && kind != LEAT_AUGMENT_POSTERIZE &&
		                         kind != LEAT_AUGMENT_SOLARIZE);
}

static void
too_little_scratch_for_a_copy_is_said(void **state)
{
	const struct leat_datum a = image(in, 7);
	struct leat_scratch small = {.base = room, .size = 1024};
	struct leat_err err;

	(void)state;
	leat_err_clear(&err);
	assert_int_equal(leat_augment(&a, &a, LEAT_AUGMENT_ROTATE, 10, 0, &small, &err), LEAT_LIMIT);
	assert_non_null(strstr(err.text, "bytes a sample may use"));
	assert_int_equal(small.used, 0);
}

static void
the_most_scratch_is_what_was_measured(void **state)
{
	(void)state;
	for (int size = 0; size < SIZES; size++)
		for (int in_place = 0; in_place < 2; in_place++) {
			const struct leat_datum from = image(in, size), to = in_place ? from : image(out, size);
			struct leat_scratch used = {.base = room, .size = sizeof(room), .used = 1};

			for (int kind = 0; kind < LEAT_AUGMENTS; kind++)
				assert_int_equal(leat_augment(&from, &to, (enum leat_augment)kind, 1, 0, &used, NULL),
				                 LEAT_OK);
			assert_int_equal(used.peak, leat_augment_scratch(from.shape, in_place));
		}
	assert_int_equal(leat_augment_scratch((const int64_t[]){-1, 4, 3}, true), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_turns_leave_every_pixel),
		cmocka_unit_test(a_half_turn_is_two_flips),
		cmocka_unit_test(a_quarter_turn_of_a_square_moves_columns_to_rows),
		cmocka_unit_test(places_without_a_pixel_are_filled),
		cmocka_unit_test(the_first_bin_changes_nothing),
		cmocka_unit_test(the_last_bin_is_the_most),
		cmocka_unit_test(magnitudes_go_one_way),
		cmocka_unit_test(working_in_place_gives_the_same),
		cmocka_unit_test(pixels_move_to_where_they_should),
		cmocka_unit_test(what_has_an_opposite_says_so),
		cmocka_unit_test(too_little_scratch_for_a_copy_is_said),
		cmocka_unit_test(the_most_scratch_is_what_was_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
