/* test_jpeg_restart.c - restart markers are added to JPEG files without changing a pixel */
#include "support/bench.h"

#include "image/jpeg_restart.h"

static const char *const paths[] = {GOLDEN "tf/420.jpg",  GOLDEN "tf/422.jpg",         GOLDEN "tf/444.jpg",
                                    GOLDEN "tf/gray.jpg", GOLDEN "tf/cmyk.jpg",        GOLDEN "tf/cmyk-plain.jpg",
                                    GOLDEN "tf/rgb.jpg",  GOLDEN "tf/progressive.jpg", GOLDEN "tf/restart.jpg"};
static struct bench bench;

static void
decode(const void *bytes, size_t size)
{
	bench_put_bytes(&bench, bytes, size);
	assert_int_equal(bench_run(&bench, "decode"), LEAT_OK);
}

static size_t
count_markers(const unsigned char *bytes, size_t size)
{
	size_t count = 0;

	for (size_t i = 0; i + 1 < size; i++)
		count += bytes[i] == 0xff && (bytes[i + 1] & 0xf8) == 0xd0;
	return count;
}

static void
pixels_stay_and_markers_come(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		size_t size, marked_size, count;
		unsigned char *bytes = bench_read(paths[i], &size), *want;
		void *marked;

		decode(bytes, size);
		count = leat_datum_bytes(&bench.sample.field[0]);
		want = malloc(count);
		memcpy(want, bench.sample.field[0].data, count);
		assert_true(leat_jpeg_add_restarts(bytes, size, 2, &marked, &marked_size));
		assert_true(count_markers(marked, marked_size) > 0);
		decode(marked, marked_size);
		assert_int_equal(leat_datum_bytes(&bench.sample.field[0]), count);
		assert_memory_equal(bench.sample.field[0].data, want, count);
		free(want);
		free(marked);
		free(bytes);
	}
}

static void
comments_and_profiles_are_kept(void **state)
{
	static const unsigned char segments[] = "\xff\xfe\0\7hello\xff\xe2\0\6ICC_";
	size_t size, marked_size, added = sizeof(segments) - 1;
	unsigned char *bytes = bench_read(paths[0], &size), *more = malloc(size + added);
	void *marked;

	(void)state;
	memcpy(more, bytes, 2);
	memcpy(more + 2, segments, added);
	memcpy(more + 2 + added, bytes + 2, size - 2);
	assert_true(leat_jpeg_add_restarts(more, size + added, 6, &marked, &marked_size));
	assert_non_null(memmem(marked, marked_size, "\xff\xfe\0\7hello", 9));
	assert_non_null(memmem(marked, marked_size, "\xff\xe2\0\6ICC_", 8));
	free(marked);
	free(more);
	free(bytes);
}

static void
what_is_damaged_or_no_jpeg_is_left_alone(void **state)
{
	size_t size, marked_size;
	unsigned char *bytes = bench_read(paths[0], &size);
	void *marked;

	(void)state;
	for (size_t cut = 0; cut < size; cut += 1 + size / 97)
		assert_false(leat_jpeg_add_restarts(bytes, cut, 6, &marked, &marked_size));
	bytes[0] ^= 1;
	assert_false(leat_jpeg_add_restarts(bytes, size, 6, &marked, &marked_size));
	free(bytes);
}

static int
set_up(void **state)
{
	(void)state;
	bench_open(&bench);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	bench_close(&bench);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pixels_stay_and_markers_come),
		cmocka_unit_test(comments_and_profiles_are_kept),
		cmocka_unit_test(what_is_damaged_or_no_jpeg_is_left_alone),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
