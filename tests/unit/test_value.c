/* test_value.c - values of declared types from text: exact, or refused with a reason */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/rng.h"
#include "table/value.h"

static struct leat_mem mem;

static struct leat_declared
declared(const char *type)
{
	struct leat_declared_columns columns = {.mem = &mem};
	struct leat_declared column;

	assert_int_equal(leat_declared_add(&columns, "x", type, NULL), LEAT_OK);
	column = columns.column[0];
	leat_declared_free(&columns);
	column.name = NULL;
	return column;
}

/* The value as text, or why there is none. The text has no NUL after it. */
static const char *
read_as(const char *type, const char *text)
{
	static char got[128];
	const struct leat_declared column = declared(type);
	size_t len = strlen(text);
	char *exact = malloc(len + 1);
	union {
		char bytes[16];
		int64_t i;
		uint64_t u;
		double d;
		float f;
	} v = {.bytes = {0}};
	const char *why;

	assert_non_null(exact);
	memcpy(exact, text, len);
	exact[len] = '9'; /* must not be looked at */
	why = leat_value_parse(&column, exact, len, v.bytes);
	free(exact);
	if (why)
		return why;
	if (column.kind == LEAT_COLUMN_DOUBLE)
		snprintf(got, sizeof(got), "%.17g", v.d);
	else if (column.kind == LEAT_COLUMN_FLOAT)
		snprintf(got, sizeof(got), "%.9g", (double)v.f);
	else if (column.kind == LEAT_COLUMN_DATE)
		snprintf(got, sizeof(got), "%d", (int)(int32_t)v.i);
	else if (column.kind == LEAT_COLUMN_INT8)
		snprintf(got, sizeof(got), "%d", (int)(int8_t)v.bytes[0]);
	else if (column.kind == LEAT_COLUMN_INT16)
		snprintf(got, sizeof(got), "%d", (int)(int16_t)v.i);
	else if (column.kind == LEAT_COLUMN_INT32 || (column.kind == LEAT_COLUMN_DECIMAL && column.width <= 9))
		snprintf(got, sizeof(got), "%d",
		         column.width && column.width <= 4 ? (int)(int16_t)v.i : (int)(int32_t)v.i);
	else if (column.kind == LEAT_COLUMN_UINT64)
		snprintf(got, sizeof(got), "%" PRIu64, v.u);
	else
		snprintf(got, sizeof(got), "%" PRId64, v.i);
	return got;
}

#define IS(type, text, expected) assert_string_equal(read_as(type, text), expected)

static void
whole_numbers_fit_or_are_refused(void **state)
{
	(void)state;
	IS("int64", "0", "0");
	IS("int64", "-0", "0");
	IS("int64", "+17", "17");
	IS("int64", "007", "7");
	IS("int64", "9223372036854775807", "9223372036854775807");
	IS("int64", "-9223372036854775808", "-9223372036854775808");
	IS("int64", "9223372036854775808", "too large for int64");
	IS("int64", "-9223372036854775809", "too large for int64");
	IS("int64", "99999999999999999999999", "too large for int64");
	IS("int64", "10003.7", "no int64");
	IS("int64", "1e3", "no int64");
	IS("int64", " 1", "no int64");
	IS("int64", "1 ", "no int64");
	IS("int64", "0x10", "no int64");
	IS("int64", "1_000", "no int64");
	IS("int64", "", "no int64");
	IS("int64", "-", "no int64");
	IS("int64", "+-1", "no int64");
	IS("int8", "127", "127");
	IS("int8", "-128", "-128");
	IS("int8", "128", "too large for int8");
	IS("int8", "-129", "too large for int8");
	IS("int16", "-32768", "-32768");
	IS("int16", "32768", "too large for int16");
	IS("int32", "2147483647", "2147483647");
	IS("int32", "2147483648", "too large for int32");
	IS("uint8", "255", "255");
	IS("uint8", "256", "too large for uint8");
	IS("uint8", "-1", "no uint8");
	IS("uint16", "65535", "65535");
	IS("uint32", "4294967296", "too large for uint32");
	IS("uint64", "18446744073709551615", "18446744073709551615");
	IS("uint64", "18446744073709551616", "too large for uint64");
}

static void
numbers_are_rounded_once(void **state)
{
	(void)state;
	IS("double", "0.1", "0.10000000000000001");
	IS("double", ".5", "0.5");
	IS("double", "5.", "5");
	IS("double", "-1.5e3", "-1500");
	IS("double", "1E+2", "100");
	IS("double", "123456789012345678901234567890", "1.2345678901234568e+29");
	IS("double", "9007199254740993", "9007199254740992");
	IS("double", "1e308", "1e+308");
	IS("double", "1e309", "too large for double");
	IS("double", "-1e999999999999", "too large for double");
	IS("double", "1e-400", "0");
	IS("double", "-0.0", "-0");
	IS("double", "NaN", "nan");
	IS("double", "-Infinity", "-inf");
	IS("double", "inf", "inf");
	IS("double", "infinit", "no number");
	IS("double", "0x1p3", "no number");
	IS("double", "1,5", "no number");
	IS("double", ".", "no number");
	IS("double", "", "no number");
	IS("double", "1e", "no number");
	IS("double", "1e+", "no number");
	IS("double", "e5", "no number");
	IS("double", "1.2.3", "no number");
	IS("double", "12x", "no number");
	IS("float", "16777217", "16777216");
	IS("float", "0.1", "0.100000001");
	IS("float", "3.5e38", "too large for float");
	IS("float", "1e-50", "0");
	IS("float", "8.5e9", "8.49999974e+09");
}

/* The fast way gives what strtod does. */
static void
numbers_are_those_of_strtod(void **state)
{
	const struct leat_declared d = declared("double"), f = declared("float");
	struct leat_rng rng;

	(void)state;
	leat_rng_init(&rng, 3, 0, 0, 0);
	for (int i = 0; i < 300000; i++) {
		char text[64];
		double number;
		float narrow;
		float narrow_expected;
		double expected;

		snprintf(text, sizeof(text), "%s%" PRIu64 ".%" PRIu64 "e%d", leat_rng_coin(&rng) ? "-" : "",
		         leat_rng_u64(&rng) >> leat_rng_below(&rng, 64), leat_rng_u64(&rng) >> leat_rng_below(&rng, 64),
		         (int)leat_rng_below(&rng, 50) - 30);
		expected = strtod(text, NULL);
		narrow_expected = strtof(text, NULL);
		assert_null(leat_value_parse(&d, text, strlen(text), &number));
		assert_memory_equal(&number, &expected, sizeof(number));
		if (isinf(narrow_expected)) {
			assert_non_null(leat_value_parse(&f, text, strlen(text), &narrow));
		} else {
			assert_null(leat_value_parse(&f, text, strlen(text), &narrow));
			assert_memory_equal(&narrow, &narrow_expected, sizeof(narrow));
		}
	}
}

static void
decimals_keep_every_digit(void **state)
{
	static const char digits[] = "no decimal of its type: it has too many digits after the point";

	(void)state;
	IS("decimal(10,2)", "12.3", "1230");
	IS("decimal(10,2)", "-12.34", "-1234");
	IS("decimal(10,2)", "12.3400", "1234");
	IS("decimal(10,2)", "12.345", digits);
	IS("decimal(10,2)", "99999999.99", "9999999999");
	IS("decimal(10,2)", "100000000", "too large for its decimal type");
	IS("decimal(4,2)", "-99.99", "-9999");
	IS("decimal(4,4)", "0.1234", "1234");
	IS("decimal(4,4)", "1", "too large for its decimal type");
	IS("decimal(9,0)", "999999999", "999999999");
	IS("decimal(38,0)", "00000000000000000000000000000000000000000000000012", "12");
	IS("decimal(38,0)", "999999999999999999999999999999999999999", "too large for its decimal type");
	IS("decimal(38,2)", "123456789012345678901234567890123456789", "too large for its decimal type");
	IS("decimal(10,2)", "1e2", "no decimal number");
	IS("decimal(10,2)", ".", "no decimal number");
	IS("decimal(10,2)", "", "no decimal number");
	IS("decimal(10,2)", "1.2.3", "no decimal number");
}

static void
bools_are_words(void **state)
{
	(void)state;
	IS("bool", "true", "1");
	IS("bool", "FALSE", "0");
	IS("bool", "T", "1");
	IS("bool", "f", "0");
	IS("bool", "1", "1");
	IS("bool", "0", "0");
	IS("bool", "yes", "no bool: true or false");
	IS("bool", "2", "no bool: true or false");
	IS("bool", "", "no bool: true or false");
}

static void
dates_and_times_exist(void **state)
{
	static const char date[] = "no date such as 2026-11-18", stamp[] = "no timestamp such as 2026-11-18T12:30:00";

	(void)state;
	IS("date", "1970-01-01", "0");
	IS("date", "1969-12-31", "-1");
	IS("date", "2000-02-29", "11016");
	IS("date", "0001-01-01", "-719162");
	IS("date", "9999-12-31", "2932896");
	IS("date", "2023-02-29", date);
	IS("date", "1900-02-29", date);
	IS("date", "2023-13-01", date);
	IS("date", "2023-00-10", date);
	IS("date", "2023-04-31", date);
	IS("date", "2023-4-1", date);
	IS("date", "2023-04-01 ", date);
	IS("date", "0000-01-01", date);
	IS("date", "20230401", date);
	IS("timestamp", "1970-01-01", "0");
	IS("timestamp", "1970-01-01T00:00", "0");
	IS("timestamp", "1970-01-01 00:00:01.5", "1500000");
	IS("timestamp", "1970-01-01T00:00:00.000001Z", "1");
	IS("timestamp", "1970-01-01T00:00:00.123456000", "123456");
	IS("timestamp", "1970-01-01T00:00:00.1234567", "no timestamp: it is finer than a microsecond");
	IS("timestamp", "1970-01-01T02:00:00+02:00", "0");
	IS("timestamp", "1970-01-01T02:00:00+0230", "-1800000000");
	IS("timestamp", "1969-12-31 19:00:00-05", "0");
	IS("timestamp", "1970-01-01 00:00:02 UTC", "2000000");
	IS("timestamp", "1970-01-01T", stamp);
	IS("timestamp", "1970-01-01 ", stamp);
	IS("timestamp", "1970-01-01T24:00:00", stamp);
	IS("timestamp", "1970-01-01T00:60:00", stamp);
	IS("timestamp", "1970-01-01T00:00:60", stamp);
	IS("timestamp", "1970-01-01T00:00:00.", stamp);
	IS("timestamp", "1970-01-01T00:00:00+", stamp);
	IS("timestamp", "1970-01-01T00:00:00+2", stamp);
	IS("timestamp", "1970-01-01T00:00:00+02:", stamp);
	IS("timestamp", "1970-01-01T00:00:00+02:0", stamp);
	IS("timestamp", "1970-01-01T00:00:00x", stamp);
	IS("timestamp", "1700000000", stamp);
	IS("timestamp", "", stamp);
}

/* Every day of 9999 years, against the C library's calendar. */
static void
days_are_those_of_the_calendar(void **state)
{
	const struct leat_declared column = declared("date");

	(void)state;
	for (int64_t day = -719162; day <= 2932896; day += 1 + (day % 7 == 0) * 13) {
		time_t at = (time_t)day * 86400;
		struct tm tm;
		char text[64];
		int32_t got;

		assert_non_null(gmtime_r(&at, &tm));
		snprintf(text, sizeof(text), "%04d-%02d-%02d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
		assert_null(leat_value_parse(&column, text, strlen(text), &got));
		assert_int_equal(got, day);
	}
}

/* ---- columns ---- */

static void
columns_read(const char *text, const char *expected)
{
	struct leat_declared_columns columns = {.mem = &mem};
	struct leat_str printed;
	struct leat_err err;

	leat_err_clear(&err);
	leat_str_init(&printed, &mem, 1000);
	if (leat_declared_read(&columns, text, &err) == LEAT_OK) {
		leat_declared_print(&columns, &printed);
		assert_string_equal(leat_str_text(&printed), expected);
	} else {
		assert_string_equal(err.text, expected);
	}
	leat_str_free(&printed);
	leat_declared_free(&columns);
}

static void
columns_are_names_and_types(void **state)
{
	(void)state;
	columns_read("user int64, ts timestamp", "user int64, ts timestamp");
	columns_read(" a  decimal( 10, 2 ) ,\nb skip,", "a decimal(10,2), b skip");
	columns_read("\"a \"\"b\"\", c\" text", "\"a \"\"b\"\", c\" text");
	columns_read("", "there are no columns; write them as \"user int64, ts timestamp\"");
	columns_read("user", "column 'user' has no type; write columns as \"user int64, ts timestamp\"");
	columns_read("a int64, A text", "column 'A' is there twice");
	columns_read("a timestmp", "column 'a': there is no type 'timestmp', did you mean 'timestamp'?");
	columns_read("a decimal(39,2)",
	             "column 'a': write decimal(WIDTH,SCALE), with up to 38 digits, such as decimal(10,2)");
	columns_read("a decimal(4,5)",
	             "column 'a': write decimal(WIDTH,SCALE), with up to 38 digits, such as decimal(10,2)");
	columns_read("\xff int64", "the name of column '\\xff' is not UTF-8");
}

static void
running_out_of_memory_is_said(void **state)
{
	(void)state;
	for (long after = 0; after < 12; after++) {
		struct leat_declared_columns columns = {.mem = &mem};
		enum leat_status status;

		mem.fail_after = after;
		status = leat_declared_read(&columns, "user int64, ts timestamp, \"a b\" decimal(4,2)", NULL);
		assert_true(status == LEAT_OK || status == LEAT_NOMEM);
		leat_declared_free(&columns);
		mem.fail_after = -1;
		assert_int_equal(mem.used, 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_numbers_fit_or_are_refused),
		cmocka_unit_test(numbers_are_rounded_once),
		cmocka_unit_test(numbers_are_those_of_strtod),
		cmocka_unit_test(decimals_keep_every_digit),
		cmocka_unit_test(bools_are_words),
		cmocka_unit_test(dates_and_times_exist),
		cmocka_unit_test(days_are_those_of_the_calendar),
		cmocka_unit_test(columns_are_names_and_types),
		cmocka_unit_test(running_out_of_memory_is_said),
	};

	leat_mem_init(&mem, SIZE_MAX);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
