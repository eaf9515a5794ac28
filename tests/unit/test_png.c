/* test_png.c - PNG files read at once are read as libspng reads them, and refused as libspng refuses them */
#include "support/bench.h"

#include "image/plain.h"
#include "image/png_fast.h"
#include "image/png_rows.h"
#include "image/unfilter.h"
#include "support/png.h"

enum { SCRATCH = 1 << 20, MAX_PIXELS = 1 << 14 };

static const size_t steps[] = {1, 2, 3, 4, 6, 8};
static const struct {
	uint8_t color, depth;
} forms[] = {{0, 1}, {0, 2}, {0, 4}, {0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 1},
             {3, 2}, {3, 4}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
enum { FORMS = sizeof(forms) / sizeof(*forms) };

static struct leat_mem mem;
static struct leat_scratch scratch;
static struct leat_rng rng;

static int
set_up(void **state)
{
	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_rng_init(&rng, 1, 0, 0, 0);
	return leat_scratch_open(&scratch, &mem, SCRATCH);
}

static int
tear_down(void **state)
{
	(void)state;
	leat_scratch_close(&scratch, &mem);
	return mem.used != 0;
}

static size_t
below(size_t n)
{
	return (size_t)leat_rng_below(&rng, n);
}

static uint8_t *
random_bytes(size_t count)
{
	uint8_t *bytes = malloc(count + 1);

	for (size_t i = 0; i < count; i++)
		bytes[i] = (uint8_t)below(256);
	return bytes;
}

/* ---- rows ---- */

static int
textbook_paeth(int a, int b, int c)
{
	int p = a + b - c, pa = abs(p - a), pb = abs(p - b), pc = abs(p - c);

	return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

/* Two pixels of 8 bytes: the first ones make a and c what they are to be, the second ones are the guesses. */
static void
paeth_guesses_as_the_standard_says_for_all_neighbors(void **state)
{
	(void)state;
	for (int a = 0; a < 256; a++) {
		for (int c = 0; c < 256; c++) {
			for (int b = 0; b < 256; b += 8) {
				uint8_t in[16] = {0}, above[16], out[16], plain[16];

				for (int i = 0; i < 8; i++) {
					in[i] = (uint8_t)(a - c);
					above[i] = (uint8_t)c;
					above[8 + i] = (uint8_t)(b + i);
				}
				leat_unfilter(LEAT_FILTER_PAETH, 8, in, above, out, 16);
				leat_unfilter_plain(LEAT_FILTER_PAETH, 8, in, above, plain, 16);
				for (int i = 0; i < 8; i++) {
					if (out[8 + i] != textbook_paeth(a, b + i, c) || plain[8 + i] != out[8 + i])
						fail_msg("a %d, b %d, c %d: %d, %d", a, b + i, c, out[8 + i],
						         plain[8 + i]);
				}
			}
		}
	}
}

static void
check_unfilter(unsigned filter, size_t step, size_t count)
{
	uint8_t *in = random_bytes(count), *above = random_bytes(count), *out = random_bytes(count);
	uint8_t *want = malloc(count + 1);

	out[count] = want[count] = in[count] = 77;
	leat_unfilter_plain(filter, step, in, above, want, count);
	leat_unfilter(filter, step, in, above, out, count);
	if (memcmp(out, want, count + 1))
		fail_msg("filter %u, %zu bytes a pixel, %zu bytes", filter, step, count);
	leat_unfilter(filter, step, in, above, in, count);
	if (memcmp(in, want, count + 1))
		fail_msg("filter %u, %zu bytes a pixel, %zu bytes, in place", filter, step, count);
	free(in);
	free(above);
	free(out);
	free(want);
}

static void
check_two(size_t step, size_t count, bool in_place)
{
	uint8_t *above = random_bytes(count), *in[2], *out[2], *want[2];

	for (int i = 0; i < 2; i++) {
		in[i] = random_bytes(count);
		out[i] = in_place ? in[i] : random_bytes(count);
		want[i] = malloc(count + 1);
		out[i][count] = want[i][count] = 77;
		leat_unfilter_plain(LEAT_FILTER_PAETH, step, in[i], i ? want[0] : above, want[i], count);
	}
	leat_unfilter_two(step, (const uint8_t *const *)in, above, out, count);
	for (int i = 0; i < 2; i++) {
		if (memcmp(out[i], want[i], count + 1))
			fail_msg("row %d of two, %zu bytes a pixel, %zu bytes", i, step, count);
		free(in[i]);
		if (!in_place)
			free(out[i]);
		free(want[i]);
	}
	free(above);
}

static void
filters_are_undone_as_by_the_plain_loop(void **state)
{
	(void)state;
	for (unsigned filter = 0; filter < LEAT_FILTERS; filter++)
		for (size_t s = 0; s < sizeof(steps) / sizeof(*steps); s++)
			for (size_t width = 1; width <= 70; width++)
				check_unfilter(filter, steps[s], width * steps[s]);
	for (size_t s = 0; s < sizeof(steps) / sizeof(*steps); s++) {
		for (size_t width = 1; width <= 70; width++) {
			check_two(steps[s], width * steps[s], false);
			check_two(steps[s], width * steps[s], true);
		}
	}
}

static void
rows_are_converted_as_by_the_plain_loop(void **state)
{
	(void)state;
	for (size_t from = 1; from <= 4; from++) {
		for (size_t bytes = 1; bytes <= 2; bytes++) {
			for (size_t to = 1; to <= 4; to += to == 1 ? 2 : 1) {
				for (size_t width = 1; width <= 70; width++) {
					uint8_t *in = random_bytes(width * from * bytes);
					uint8_t *out = malloc(width * to), *want = malloc(width * to);

					leat_png_row(in, from, bytes, out, to, width);
					leat_png_row_plain(in, from, bytes, want, to, width);
					assert_memory_equal(out, want, width * to);
					free(in);
					free(out);
					free(want);
				}
			}
		}
	}
}

/* ---- files ---- */

struct result {
	enum leat_status status;
	int64_t shape[3];
	uint8_t *pixels;
	struct leat_err err;
};

/* The file has a block of its own, and its pixels too, so that a sanitizer sees a step outside. */
static struct result
decode(const struct leat_codec *codec, const uint8_t *bytes, size_t size, int channels)
{
	struct leat_decode image = {.scratch = &scratch, .max_pixels = MAX_PIXELS, .codec = codec};
	struct result result = {0};
	uint8_t *copy = malloc(size);

	memcpy(copy, bytes, size);
	leat_err_clear(&result.err);
	leat_scratch_reset(&scratch);
	result.status = codec->begin(&image, copy, size, &(struct leat_decoding){.channels = channels}, &result.err);
	if (result.status == LEAT_OK) {
		memcpy(result.shape, (const int64_t[]){image.height, image.width, image.channels},
		       sizeof(result.shape));
		result.pixels = calloc((size_t)(image.height * image.width), (size_t)image.channels);
		result.status = codec->pixels(&image, result.pixels, &result.err);
		codec->end(&image);
	}
	free(copy);
	return result;
}

static enum leat_status
check_same(const uint8_t *bytes, size_t size, int channels)
{
	struct result own = decode(&leat_codec_png, bytes, size, channels);
	struct result want = decode(&leat_codec_png_plain, bytes, size, channels);

	assert_int_equal(own.status, want.status);
	assert_string_equal(own.err.text, want.err.text);
	if (own.status == LEAT_OK) {
		assert_memory_equal(own.shape, want.shape, sizeof(own.shape));
		assert_memory_equal(own.pixels, want.pixels, (size_t)(own.shape[0] * own.shape[1] * own.shape[2]));
	}
	free(own.pixels);
	free(want.pixels);
	return own.status;
}

static bool
is_read_at_once(const uint8_t *bytes, size_t size, size_t channels)
{
	uint8_t *pixels = malloc(MAX_PIXELS * 4);
	struct spng_ihdr header;
	bool is;

	leat_scratch_reset(&scratch);
	is = leat_png_fast_header(bytes, size, &header) &&
	     leat_png_fast_pixels(bytes, size, &header, channels, false, &scratch, pixels);
	free(pixels);
	return is;
}

static struct png_kind
draw_kind(size_t form, int filter)
{
	struct png_kind kind = {
		.width = 1 + (uint32_t)below(70),
		.height = 1 + (uint32_t)below(70),
		.color = forms[form].color,
		.depth = forms[form].depth,
		.filter = filter,
		.pieces = 1 + below(4) * below(2),
		.highest = below(2) ? 255 : (uint8_t)below(20),
		.window = below(4) ? 15 : 9 + (int)below(7),
	};

	if (kind.color == 3) {
		kind.palette = (size_t)1 << kind.depth;
		kind.alpha = below(2) ? 1 + below(kind.palette) : 0;
	} else if (kind.color == 2 || kind.color == 6) {
		kind.palette = below(4) ? 0 : 1 + below(256);
	}
	return kind;
}

static void
images_of_every_kind_are_those_of_libspng(void **state)
{
	enum { EACH = 12 };
	size_t at_once = 0, count = 0;

	(void)state;
	for (size_t form = 0; form < FORMS; form++) {
		for (int filter = -1; filter < LEAT_FILTERS; filter++) {
			for (int i = 0; i < EACH; i++) {
				struct png_kind kind = draw_kind(form, filter);
				size_t size;
				uint8_t *bytes = png_make(&kind, &rng, &size);

				for (int channels = 0; channels <= 4; channels += channels == 1 ? 2 : 1)
					assert_int_equal(check_same(bytes, size, channels), LEAT_OK);
				at_once += is_read_at_once(bytes, size, i % 2 ? 3 : 4);
				count++;
				free(bytes);
			}
		}
	}
	/* All but those with a window smaller than the image. */
	assert_in_range(at_once, count * 8 / 10, count);
}

static uint8_t *
make(struct png_kind kind, size_t *size)
{
	if (!kind.width)
		kind.width = kind.height = 23;
	if (!kind.depth)
		kind.depth = 8;
	if (!kind.pieces)
		kind.pieces = 1;
	kind.highest = kind.highest ? kind.highest : 255;
	return png_make(&kind, &rng, size);
}

/* Whether libspng reads it or not, the verdict is the same. */
static void
irregular_files_get_the_verdict_of_libspng(void **state)
{
	static const struct {
		struct png_kind kind;
		bool is_wrong;
	} cases[] = {
		{{.color = 2, .filter = 5}, true},
		{{.color = 2, .filter = 255}, true},
		{{.color = 2, .surplus = -1}, true},
		{{.color = 2, .surplus = -1000}, true},
		{{.color = 3}, true},                                         /* no palette */
		{{.color = 3, .depth = 2, .palette = 5, .highest = 3}, true}, /* more than 2 bits can say */
		{{.color = 6, .alpha = 4}, false},
		{{.color = 3, .palette = 100, .alpha = 101, .highest = 9}, false},
		{{.color = 0, .palette = 3}, false},
		{{.color = 4, .palette = 3}, false},
		{{.color = 2, .surplus = 1}, false},
		{{.color = 2, .surplus = 5000}, false},
		{{.color = 2, .behind = 1}, false},
		{{.color = 2, .behind = 5000}, false},
		{{.color = 2, .alpha = 6}, false},
		{{.color = 0, .alpha = 2}, false},
		{{.color = 3, .palette = 255}, false}, /* an index is too high */
		{{.color = 2, .window = 9}, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		enum leat_status status = LEAT_OK;
		size_t size;
		uint8_t *bytes = make(cases[i].kind, &size);

		for (int channels = 0; channels <= 4; channels += channels == 1 ? 2 : 1)
			status = check_same(bytes, size, channels);
		if (cases[i].is_wrong && status != LEAT_DATA)
			fail_msg("case %zu can be read", i);
		assert_false(is_read_at_once(bytes, size, 4));
		free(bytes);
	}
}

static void
chunks_out_of_order_get_the_verdict_of_libspng(void **state)
{
	size_t size, length;
	uint8_t *bytes = make((struct png_kind){.color = 3, .palette = 256, .alpha = 20, .pieces = 3}, &size);
	uint8_t *other = malloc(2 * size);

	(void)state;
	/* Each chunk once more at each place, and each left out. */
	for (size_t from = 8; from < size; from += length + 12) {
		size_t step;

		length = (size_t)bytes[from + 2] << 8 | bytes[from + 3];
		for (size_t to = 8; to <= size; to += step + 12) {
			step = to < size ? (size_t)bytes[to + 2] << 8 | bytes[to + 3] : 0;
			memcpy(other, bytes, to);
			memcpy(other + to, bytes + from, length + 12);
			memcpy(other + to + length + 12, bytes + to, size - to);
			check_same(other, size + length + 12, 4);
			check_same(other, size + length + 12, 3);
		}
		memcpy(other, bytes, from);
		memcpy(other + from, bytes + from + length + 12, size - from - length - 12);
		check_same(other, size - length - 12, 4);
		check_same(other, size - length - 12, 3);
	}
	free(other);
	free(bytes);
}

/* With wrong checksums, with mended ones, and cut off. */
static void
damaged_files_get_the_verdict_of_libspng(void **state)
{
	(void)state;
	for (int i = 0; i < 4000; i++) {
		struct png_kind kind = draw_kind(below(FORMS), -1);
		size_t size;
		uint8_t *bytes;
		int channels = (int[]){0, 1, 3, 4}[below(4)];

		kind.width = kind.width % 20 + 1;
		kind.height = kind.height % 20 + 1;
		bytes = png_make(&kind, &rng, &size);
		for (size_t n = below(3); n < 3; n++)
			bytes[8 + below(size - 8)] ^= (uint8_t)(1u << below(8));
		if (i % 4)
			png_mend(bytes, size);
		check_same(bytes, i % 8 == 7 ? below(size) + 8 > size ? size : 8 + below(size - 8) : size, channels);
		free(bytes);
	}
}

static void
an_image_that_fits_the_scratch_only_once_is_read_all_the_same(void **state)
{
	const size_t full = scratch.size, twice = 160 << 10, once = 60 << 10;
	size_t size;
	uint8_t *bytes = make((struct png_kind){.color = 6, .filter = -1, .width = 128, .height = 128}, &size);

	(void)state;
	scratch.size = twice;
	assert_true(is_read_at_once(bytes, size, 3));
	scratch.size = once;
	assert_false(is_read_at_once(bytes, size, 3));
	assert_int_equal(check_same(bytes, size, 3), LEAT_OK);
	scratch.size = 16 << 10;
	assert_int_equal(check_same(bytes, size, 3), LEAT_LIMIT);
	scratch.size = full;
	free(bytes);
}

static void
libdeflates_object_is_made_once(void **state)
{
	size_t size;
	uint8_t *bytes = make((struct png_kind){.color = 2, .filter = -1}, &size);
	void *kept;

	(void)state;
	assert_true(is_read_at_once(bytes, size, 3));
	kept = scratch.kept;
	assert_non_null(kept);
	assert_true(is_read_at_once(bytes, size, 3));
	assert_ptr_equal(scratch.kept, kept);
	free(bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paeth_guesses_as_the_standard_says_for_all_neighbors),
		cmocka_unit_test_setup_teardown(filters_are_undone_as_by_the_plain_loop, set_up, tear_down),
		cmocka_unit_test_setup_teardown(rows_are_converted_as_by_the_plain_loop, set_up, tear_down),
		cmocka_unit_test_setup_teardown(images_of_every_kind_are_those_of_libspng, set_up, tear_down),
		cmocka_unit_test_setup_teardown(irregular_files_get_the_verdict_of_libspng, set_up, tear_down),
		cmocka_unit_test_setup_teardown(chunks_out_of_order_get_the_verdict_of_libspng, set_up, tear_down),
		cmocka_unit_test_setup_teardown(damaged_files_get_the_verdict_of_libspng, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_image_that_fits_the_scratch_only_once_is_read_all_the_same, set_up,
	                                        tear_down),
		cmocka_unit_test_setup_teardown(libdeflates_object_is_made_once, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
