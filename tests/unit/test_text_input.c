/* test_text_input.c - files as text: plain and compressed, and never silently short */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <zlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "support/temp.h"
#include "table/text_input.h"

enum { LEN = 300000 };

static struct leat_mem mem;
static struct temp temp;
static unsigned char text[LEN], packed[2 * LEN];

static int
setup(void **state)
{
	struct leat_rng rng;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	temp_make(&temp);
	leat_rng_init(&rng, 1, 0, 0, 0);
	for (size_t i = 0; i < LEN; i++)
		text[i] = (unsigned char)"abcdefgh,,\n1234"[leat_rng_below(&rng, 15)];
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	temp_remove(&temp);
	assert_int_equal(mem.used, 0);
	return 0;
}

/* Reads a file of these bytes, and returns how much of `text` came before the end or an error. */
static size_t
read_file(const void *bytes, size_t len, size_t most, enum leat_status *status, struct leat_err *err)
{
	const char *path = temp_write(&temp, "x", bytes, len);
	struct leat_text_input *input = NULL;
	unsigned char part[4096];
	size_t at = 0, got = 1;

	leat_err_clear(err);
	*status = leat_text_input_open(&input, path, path, &mem, err);
	while (*status == LEAT_OK && got > 0) {
		*status = leat_text_input_read(input, part, most, &got, err);
		if (*status != LEAT_OK)
			break;
		assert_true(at + got <= LEN);
		assert_memory_equal(text + at, part, got);
		at += got;
	}
	if (*status == LEAT_OK)
		assert_int_equal(leat_text_input_offset(input), len);
	leat_text_input_close(input);
	return at;
}

static size_t
gzip(const unsigned char *from, size_t len, unsigned char *to)
{
	z_stream z = {0};

	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (unsigned char *)(uintptr_t)from;
	z.avail_in = (unsigned)len;
	z.next_out = to;
	z.avail_out = 2 * LEN;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return z.total_out;
}

static void
plain_files_are_as_they_are(void **state)
{
	enum leat_status status;
	struct leat_err err;

	(void)state;
	for (size_t len = 0; len < 10; len++)
		assert_int_equal(read_file(text, len, 3, &status, &err), len);
	assert_int_equal(read_file(text, LEN, 4096, &status, &err), LEN);
	assert_int_equal(status, LEAT_OK);
}

static void
gzip_members_are_one_text(void **state)
{
	size_t half = LEN / 2, one = gzip(text, half, packed), two = gzip(text + half, LEN - half, packed + one);
	enum leat_status status;
	struct leat_err err;

	(void)state;
	assert_int_equal(read_file(packed, one + two, 1000, &status, &err), LEN);
	assert_int_equal(status, LEAT_OK);
	memset(packed + one + two, 0, 600); /* padding */
	assert_int_equal(read_file(packed, one + two + 600, 4096, &status, &err), LEN);
	assert_int_equal(status, LEAT_OK);
}

static void
a_truncated_file_is_an_error_wherever_it_ends(void **state)
{
	size_t len = gzip(text, LEN, packed);
	enum leat_status status;
	struct leat_err err;

	(void)state;
	for (size_t cut = 2; cut < len; cut += cut < 40 || cut + 40 > len ? 1 : 7919) {
		read_file(packed, cut, 4096, &status, &err);
		assert_int_equal(status, LEAT_DATA);
		assert_non_null(strstr(err.text, "is truncated: its gzip data ends in the middle"));
	}
}

static void
damage_and_other_bytes_are_errors(void **state)
{
	size_t len = gzip(text, LEN, packed);
	enum leat_status status;
	struct leat_err err;

	(void)state;
	packed[len - 6] ^= 1; /* the checksum */
	read_file(packed, len, 4096, &status, &err);
	assert_int_equal(status, LEAT_DATA);
	assert_non_null(strstr(err.text, "is damaged"));
	packed[len - 6] ^= 1;
	memcpy(packed + len, "more", 4);
	read_file(packed, len + 4, 4096, &status, &err);
	assert_int_equal(status, LEAT_DATA);
	assert_non_null(strstr(err.text, "has other bytes after its gzip data"));
}

static void
zstandard_is_read_too(void **state)
{
	void *library = dlopen("libzstd.so.1", RTLD_NOW);
	size_t (*compress)(void *, size_t, const void *, size_t, int) = NULL;
	void *found = library ? dlsym(library, "ZSTD_compress") : NULL;
	enum leat_status status;
	struct leat_err err;
	size_t len;

	(void)state;
	if (!found)
		skip();
	memcpy(&compress, &found, sizeof(found));
	len = compress(packed, sizeof(packed), text, LEN, 3);
	assert_int_equal(read_file(packed, len, 1000, &status, &err), LEN);
	assert_int_equal(status, LEAT_OK);
	for (size_t cut = 4; cut < len; cut += cut < 40 || cut + 40 > len ? 1 : 7919) {
		read_file(packed, cut, 4096, &status, &err);
		assert_int_equal(status, LEAT_DATA);
		assert_non_null(strstr(err.text, "is truncated: its Zstandard data ends in the middle"));
	}
	dlclose(library);
}

static void
what_cannot_be_opened_is_named(void **state)
{
	struct leat_text_input *input;
	struct leat_err err;

	(void)state;
	leat_err_clear(&err);
	assert_int_equal(leat_text_input_open(&input, "/nowhere/x.csv", "x.csv", &mem, &err), LEAT_IO);
	assert_string_equal(err.text, "cannot open 'x.csv': No such file or directory");
	leat_err_clear(&err);
	assert_int_equal(leat_text_input_open(&input, temp.folder, "x", &mem, &err), LEAT_INVALID);
	assert_non_null(strstr(err.text, "is a folder"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(plain_files_are_as_they_are, setup, teardown),
		cmocka_unit_test_setup_teardown(gzip_members_are_one_text, setup, teardown),
		cmocka_unit_test_setup_teardown(a_truncated_file_is_an_error_wherever_it_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(damage_and_other_bytes_are_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(zstandard_is_read_too, setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_opened_is_named, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
