/* test_size.c - sizes in bytes, read and written */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "base/size.h"
#include "leat.h"

static void
sizes_are_written_for_people(void **state)
{
	static const struct {
		unsigned long long bytes;
		const char *text;
	} cases[] = {
		{0, "0 B"},
		{1023, "1023 B"},
		{1024, "1 KiB"},
		{1536, "1.5 KiB"},
		{1024 * 1024 - 1, "1 MiB"},
		{100 * 1024 * 1024, "100 MiB"},
		{1610612736, "1.5 GiB"},
		{1ull << 40, "1 TiB"},
		{UINT64_MAX, "16 EiB"},
	};
	char buf[32];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(leat_format_size(buf, sizeof(buf), cases[i].bytes), cases[i].text);
}

static void
a_size_that_is_needed_is_rounded_up(void **state)
{
	char buf[32];
	uint64_t bytes;

	(void)state;
	assert_string_equal(leat_format_size_up(buf, sizeof(buf), 1024), "1 KiB");
	assert_string_equal(leat_format_size_up(buf, sizeof(buf), 1025), "1.1 KiB");
	assert_string_equal(leat_format_size_up(buf, sizeof(buf), 1024 * 1024 - 1), "1 MiB");
	for (uint64_t need = 1; need < UINT64_C(1) << 49; need = need * 3 + 1) {
		assert_int_equal(leat_parse_size(leat_format_size_up(buf, sizeof(buf), need), &bytes, NULL), LEAT_OK);
		assert_true(bytes >= need && bytes <= need + need / 9);
	}
}

static void
sizes_are_read_in_units_of_1000_and_1024(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {
		{"0", 0},
		{"100", 100},
		{" 100 ", 100},
		{"7B", 7},
		{"7b", 7},
		{"1k", 1000},
		{"1K", 1000},
		{"1kB", 1000},
		{"1KB", 1000},
		{"1kb", 1000},
		{"1Ki", 1024},
		{"1KiB", 1024},
		{"1kib", 1024},
		{"1M", 1000000},
		{"3mb", 3000000},
		{"4MiB", 4 << 20},
		{"4MIB", 4 << 20},
		{"1G", 1000000000},
		{"2Gi", UINT64_C(2) << 30},
		{"1.5 GiB", UINT64_C(3) << 29},
		{"1.5GB", 1500000000},
		{"1/2GiB", UINT64_C(1) << 29},
		{"1e3", 1000},
		{"2T", UINT64_C(2000000000000)},
		{"2TiB", UINT64_C(2) << 40},
		{"0.1MiB", 104858}, /* to the nearest byte */
		{"9007199254740993", UINT64_C(9007199254740993)},
	};
	struct leat_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t bytes = 1;

		if (leat_parse_size(cases[i].text, &bytes, &err) != LEAT_OK || bytes != cases[i].bytes)
			fail_msg("%s: %llu (%s)", cases[i].text, (unsigned long long)bytes, err.text);
	}
}

static void
what_is_no_size_is_refused(void **state)
{
	static const char *const texts[] = {"",    "x",  "MiB",  "4iB", "4X",  "4MiBB", "4Bi",
	                                    "4 4", "-1", "1e30", "[4]", "'4'", "4/0"};
	struct leat_err err;
	uint64_t bytes = 42;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (leat_parse_size(texts[i], &bytes, &err) != LEAT_INVALID)
			fail_msg("%s is read as a size", texts[i]);
		assert_int_equal(bytes, 42);
	}
	assert_int_equal(leat_parse_size("lots", &bytes, &err), LEAT_INVALID);
	assert_string_equal(err.text,
	                    "'lots' is not a size: expected bytes, or a number and a unit such as 512MiB or 2GB");
	assert_int_equal(leat_parse_size("lots", &bytes, NULL), LEAT_INVALID);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_written_for_people),
		cmocka_unit_test(a_size_that_is_needed_is_rounded_up),
		cmocka_unit_test(sizes_are_read_in_units_of_1000_and_1024),
		cmocka_unit_test(what_is_no_size_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
