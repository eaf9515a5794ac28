/* test_profile.c - figures of profiles against plain arithmetic, and drift of tables that differ in a known way */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "table/profile.h"

/* cmocka's own compares floats. */
#define near_to(x, y, most) assert_true(fabs((x) - (y)) <= (most))

struct fixture {
	struct leat_mem mem;
	struct leat_tables *tables;
	struct leat_profile now, then;
	struct leat_drift drift;
	struct leat_profile_options options;
	struct leat_err err;
};

static int
set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	leat_mem_init(&f->mem, SIZE_MAX);
	*state = f;
	if (leat_duckdb_load(&f->err) != LEAT_OK)
		return 0;
	if (leat_tables_open(&f->tables, &(struct leat_tables_options){.threads = 2, .memory = (size_t)1 << 30},
	                     &f->err) != LEAT_OK)
		print_error("%s\n", f->err.text);
	return f->tables ? 0 : -1;
}

static int
tear_down(void **state)
{
	struct fixture *f = *state;

	leat_drift_free(&f->drift);
	leat_profile_free(&f->now);
	leat_profile_free(&f->then);
	leat_tables_close(f->tables);
	assert_int_equal(f->mem.used, 0);
	free(f);
	return 0;
}

static struct fixture *
fixture_of(void **state)
{
	struct fixture *f = *state;

	if (!f->tables) {
		print_message("skipped: %s\n", f->err.text);
		skip();
	}
	return f;
}

/* Of a query in brackets. */
static void
profile(struct fixture *f, const char *sql)
{
	leat_tables_run(f->tables, "DROP VIEW IF EXISTS leat_now", NULL);
	leat_profile_free(&f->now);
	if (leat_profile_make(&f->now, f->tables, sql, "leat_now", &f->options, &f->mem, &f->err) != LEAT_OK)
		fail_msg("%s: %s", sql, f->err.text);
}

static void
compare(struct fixture *f, const char *now, const char *then)
{
	leat_drift_free(&f->drift);
	leat_profile_free(&f->then);
	leat_tables_run(f->tables, "DROP VIEW IF EXISTS leat_then", NULL);
	profile(f, now);
	if (leat_profile_make(&f->then, f->tables, then, "leat_then", &f->options, &f->mem, &f->err) != LEAT_OK ||
	    leat_drift_make(&f->drift, f->tables, &f->now, &f->then, &f->err) != LEAT_OK)
		fail_msg("%s", f->err.text);
}

static void
same_text(const struct leat_profile_text *text, const char *expected)
{
	assert_non_null(text->bytes);
	assert_int_equal(text->len, strlen(expected));
	assert_memory_equal(text->bytes, expected, text->len);
}

/* ---- one column ---- */

/* 1, 4, 9, ... 10000, and three NULLs: everything by hand. */
static void
figures_of_numbers_are_those_of_plain_arithmetic(void **state)
{
	struct fixture *f = fixture_of(state);
	double sum = 0, squares = 0, bins[LEAT_PROFILE_BINS] = {0}, inner, outer[2];
	const struct leat_profile_column *c;

	profile(f, "(SELECT CASE WHEN i > 100 THEN NULL ELSE i * i END::DOUBLE AS x FROM range(1, 104) t(i))");
	c = &f->now.column[0];
	for (int i = 1; i <= 100; i++)
		sum += i * i;
	for (int i = 1; i <= 100; i++)
		squares += (i * i - sum / 100) * (i * i - sum / 100);
	assert_int_equal(f->now.rows, 103);
	assert_int_equal(c->nulls, 3);
	assert_int_equal(c->distinct, 100);
	assert_false(c->approximate_distinct);
	assert_int_equal(c->finite, 100);
	near_to(c->mean, sum / 100, 1e-9);
	near_to(c->deviation, sqrt(squares / 100), 1e-8);
	same_text(&c->min, "1.0");
	same_text(&c->max, "10000.0");
	/* Position p * 99 between the sorted values, by linear interpolation. */
	for (size_t k = 0; k < LEAT_PROFILE_QUANTILES; k++) {
		double at = leat_profile_quantiles[k] * 99, low = floor(at) + 1, high = ceil(at) + 1;

		near_to(c->quantile[k], low * low + (at - floor(at)) * (high * high - low * low), 1e-8);
	}
	assert_false(c->approximate_quantiles);
	outer[0] = 1 + 0.99 * 3, outer[1] = 99 * 99 + 0.01 * (10000 - 99 * 99);
	inner = outer[1] - outer[0];
	assert_true((10000.0 - 1) / 10 <= inner);
	assert_false(c->clipped);
	assert_int_equal(c->bins, LEAT_PROFILE_BINS);
	for (int i = 1; i <= 100; i++) {
		size_t bin = (size_t)((i * i - 1) / 9999.0 * LEAT_PROFILE_BINS);

		bins[bin < LEAT_PROFILE_BINS ? bin : LEAT_PROFILE_BINS - 1]++;
	}
	for (size_t i = 0; i < LEAT_PROFILE_BINS; i++)
		assert_int_equal(c->bin[i], bins[i]);
}

static void
few_whole_numbers_have_a_bin_each(void **state)
{
	struct fixture *f = fixture_of(state);
	const struct leat_profile_column *c;

	profile(f, "(SELECT (i % 6 - 2)::INTEGER AS x FROM range(600) t(i) WHERE i % 6 <> 3)");
	c = &f->now.column[0];
	assert_int_equal(c->bins, 6);
	near_to(c->bins_low, -2, 0);
	near_to(c->bins_high, 4, 0);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(c->bin[i], i == 3 ? 0 : 100);
}

/* 50 values in 40 bins would be a comb of ones and twos. */
static void
bins_of_whole_numbers_and_dates_hold_as_many_values_each(void **state)
{
	static const char *const tables[] = {
		"(SELECT i % 50 AS x FROM range(5000) t(i))",
		"(SELECT DATE '2026-01-01' + (i % 50)::INTEGER AS x FROM range(5000) t(i))"};
	struct fixture *f = fixture_of(state);

	for (size_t k = 0; k < 2; k++) {
		const struct leat_profile_column *c;

		profile(f, tables[k]);
		c = &f->now.column[0];
		assert_int_equal(c->bins, 25);
		near_to(c->bins_high - c->bins_low, k ? 50 * 86400e6 : 50, 0);
		for (size_t i = 0; i < c->bins; i++)
			assert_int_equal(c->bin[i], 200);
	}
}

static void
nan_and_infinities_are_counted_and_left_out(void **state)
{
	struct fixture *f = fixture_of(state);
	const struct leat_profile_column *c;

	profile(f, "(SELECT unnest(['nan', 'inf', '-inf', '1', '3', NULL, 'nan']::DOUBLE[]) AS x)");
	c = &f->now.column[0];
	assert_int_equal(c->nulls, 1);
	assert_int_equal(c->nan, 2);
	assert_int_equal(c->infinite, 2);
	assert_int_equal(c->finite, 2);
	assert_int_equal(c->distinct, 5);
	near_to(c->mean, 2, 0);
	same_text(&c->min, "1.0");
	same_text(&c->max, "3.0");
	profile(f, "(SELECT unnest(['nan', 'inf']::FLOAT[]) AS x)");
	c = &f->now.column[0];
	assert_int_equal(c->finite, 0);
	assert_int_equal(c->bins, 0);
	assert_null(c->min.bytes);
	profile(f, "(SELECT unnest(['infinity', '2026-01-01', '-infinity', '2026-01-03']::TIMESTAMP[]) AS x)");
	c = &f->now.column[0];
	assert_int_equal(c->infinite, 2);
	assert_int_equal(c->finite, 2);
	near_to(c->mean, 1767312000e6, 0); /* 2026-01-02 */
}

/* DuckDB fails on a deviation that is not finite. */
static void
the_largest_doubles_do_not_overflow(void **state)
{
	struct fixture *f = fixture_of(state);
	const struct leat_profile_column *c;
	uint64_t all = 0;

	profile(f, "(SELECT unnest([1.7e308, -1.7e308, 0, 1e-300]::DOUBLE[]) AS x)");
	c = &f->now.column[0];
	assert_true(fabs(c->mean) < 1e300);
	near_to(c->deviation / 1e308, 1.7 / sqrt(2), 1e-9);
	for (size_t i = 0; i < c->bins; i++)
		all += c->bin[i];
	assert_int_equal(all, 4);
	assert_int_equal(c->bin[0], 1);
	assert_int_equal(c->bin[c->bins - 1], 1);
}

static void
a_few_values_far_away_do_not_hide_the_others(void **state)
{
	struct fixture *f = fixture_of(state);
	const struct leat_profile_column *c;
	uint64_t all = 0;
	size_t used = 0;

	profile(f, "(SELECT CASE WHEN i = 0 THEN 1e12 ELSE i % 100 + 0.5 END::DOUBLE AS x FROM range(10000) t(i))");
	c = &f->now.column[0];
	assert_true(c->clipped);
	assert_true(c->bins_high < 200);
	for (size_t i = 0; i < c->bins; i++) {
		all += c->bin[i];
		used += c->bin[i] > 0;
	}
	assert_int_equal(all, 10000);
	assert_true(used > 30);
}

static void
constants_and_columns_of_nulls_have_figures_too(void **state)
{
	struct fixture *f = fixture_of(state);
	const struct leat_profile_column *c;

	profile(f, "(SELECT 7.5::DOUBLE AS x, NULL::DOUBLE AS n, NULL::VARCHAR AS t, NULL::BLOB AS b, NULL::INTEGER[] "
	           "AS l, "
	           "NULL::TIMESTAMP AS ts FROM range(9))");
	c = &f->now.column[0];
	assert_int_equal(c->bins, 1);
	assert_int_equal(c->bin[0], 9);
	near_to(c->deviation, 0, 0);
	for (size_t i = 1; i < f->now.columns; i++) {
		assert_int_equal(f->now.column[i].nulls, 9);
		assert_int_equal(f->now.column[i].distinct, 0);
		assert_int_equal(f->now.column[i].bins, 0);
		assert_int_equal(f->now.column[i].tops, 0);
		assert_false(f->now.column[i].has_length);
	}
}

static void
an_empty_table_has_columns_and_no_figures(void **state)
{
	struct fixture *f = fixture_of(state);
	json_t *json;

	profile(f, "(SELECT 1 AS x, 'a' AS t, DATE '2026-01-01' AS d WHERE false)");
	assert_int_equal(f->now.rows, 0);
	assert_int_equal(f->now.columns, 3);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(f->now.column[i].nulls + f->now.column[i].distinct + f->now.column[i].finite, 0);
	json = leat_profile_json(&f->now, NULL);
	assert_non_null(json);
	json_decref(json);
}

static void
whole_numbers_beyond_doubles_keep_their_digits(void **state)
{
	struct fixture *f = fixture_of(state);

	profile(f, "(SELECT unnest([9007199254740993, -9223372036854775808]::BIGINT[]) AS x, "
	           "unnest(['170141183460469231731687303715884105727', '0']::HUGEINT[]) AS h, "
	           "unnest([0.1, 99999999.99]::DECIMAL(10,2)[]) AS d)");
	same_text(&f->now.column[0].min, "-9223372036854775808");
	same_text(&f->now.column[0].max, "9007199254740993");
	same_text(&f->now.column[1].max, "170141183460469231731687303715884105727");
	same_text(&f->now.column[2].max, "99999999.99");
}

static void
texts_have_lengths_and_most_frequent_values(void **state)
{
	struct fixture *f = fixture_of(state);
	const struct leat_profile_column *c;

	profile(f, "(SELECT CASE WHEN i < 50 THEN 'b' WHEN i < 80 THEN 'a' WHEN i < 99 THEN '\xc3\xa4\xc3\xb6\xc3\xbc' "
	           "ELSE repeat('x', 500) END AS t, "
	           "i % 2 = 0 AS flag, '\\x00ab'::BLOB AS b, [1, 2, 3][:(i % 4)] AS l FROM range(100) t(i))");
	c = &f->now.column[0];
	assert_int_equal(c->distinct, 4);
	assert_int_equal(c->shortest, 1);
	assert_int_equal(c->longest, 500);
	assert_int_equal(c->tops, 4);
	same_text(&c->top[0].value, "b");
	assert_int_equal(c->top[0].rows, 50);
	same_text(&c->top[1].value, "a");
	same_text(&c->top[2].value, "\xc3\xa4\xc3\xb6\xc3\xbc");
	assert_int_equal(c->top[3].value.len, LEAT_PROFILE_TEXT);
	assert_true(c->top[3].value.cut);
	assert_false(c->top[0].value.cut);
	same_text(&c->min, "a");
	same_text(&f->now.column[1].top[0].value, "false");
	assert_int_equal(f->now.column[1].top[1].rows, 50);
	assert_int_equal(f->now.column[2].class, LEAT_PROFILE_BYTES);
	assert_int_equal(f->now.column[2].shortest, 3);
	assert_int_equal(f->now.column[3].class, LEAT_PROFILE_LIST);
	assert_int_equal(f->now.column[3].shortest, 0);
	assert_int_equal(f->now.column[3].longest, 3);
}

static void
beyond_the_limits_figures_are_approximate_and_say_so(void **state)
{
	struct fixture *f = fixture_of(state);
	const struct leat_profile_column *c;

	f->options.exact_distinct = 1000;
	f->options.exact_rows = 1000;
	profile(f, "(SELECT i AS x, CASE WHEN i % 10 = 0 THEN 'often' ELSE 'v' || i END AS t, i % 5 AS few FROM "
	           "range(50000) t(i))");
	c = &f->now.column[0];
	assert_true(c->approximate_distinct);
	assert_true(c->approximate_quantiles);
	assert_true(fabs((double)c->distinct - 50000) < 15000);
	assert_true(fabs(c->quantile[2] - 25000) < 1000);
	c = &f->now.column[1];
	assert_true(c->approximate_distinct);
	assert_int_equal(c->tops, 1); /* values that occur once are not frequent */
	same_text(&c->top[0].value, "often");
	assert_int_equal(c->top[0].rows, 5000);
	assert_false(f->now.column[2].approximate_distinct);
	assert_int_equal(f->now.column[2].distinct, 5);
}

static void
a_sample_is_only_what_was_asked_for(void **state)
{
	struct fixture *f = fixture_of(state);
	double mean;

	f->options.sample = 500;
	profile(f, "(SELECT i AS x FROM range(100000) t(i))");
	assert_int_equal(f->now.rows, 500);
	assert_int_equal(f->now.of_rows, 100000);
	mean = f->now.column[0].mean;
	assert_true(fabs(mean - 50000) < 8000);
	leat_tables_run(f->tables, "DROP TABLE leat_now", &f->err);
	profile(f, "(SELECT i AS x FROM range(100000) t(i))");
	near_to(f->now.column[0].mean, mean, 0); /* the same sample */
}

static void
hostile_names_of_columns_do_not_matter(void **state)
{
	struct fixture *f = fixture_of(state);

	profile(f, "(SELECT 1 AS \"a\"\"; DROP TABLE x; --\", 2 AS \"select\", 3 AS \"\xe2\x80\xae\x1b[31m\", 4 AS \" "
	           "\", 5 AS \"</script>\")");
	assert_int_equal(f->now.columns, 5);
	assert_string_equal(f->now.column[0].name, "a\"; DROP TABLE x; --");
	for (size_t i = 0; i < 5; i++)
		near_to(f->now.column[i].mean, (double)i + 1, 0);
}

/* ---- drift ---- */

static void
distances_of_distributions_are_those_of_their_definitions(void **state)
{
	const double a[] = {10, 20, 70}, b[] = {30, 30, 40}, none[] = {0, 0, 5}, other[] = {5, 0, 0};
	double psi = (0.3 - 0.1) * log(3) + (0.3 - 0.2) * log(1.5) + (0.4 - 0.7) * log(0.4 / 0.7);
	double js = 0.5 * (0.1 * log2(0.1 / 0.2) + 0.2 * log2(0.2 / 0.25) + 0.7 * log2(0.7 / 0.55)) +
	            0.5 * (0.3 * log2(0.3 / 0.2) + 0.3 * log2(0.3 / 0.25) + 0.4 * log2(0.4 / 0.55));

	(void)state;
	near_to(leat_drift_psi(a, b, 3), psi, 1e-12);
	near_to(leat_drift_psi(b, a, 3), psi, 1e-12);
	near_to(leat_drift_js(a, b, 3), js, 1e-12);
	near_to(leat_drift_psi(a, a, 3), 0, 0);
	near_to(leat_drift_js(a, a, 3), 0, 0);
	near_to(leat_drift_js(none, other, 3), 1, 1e-12);
	near_to(leat_drift_psi(none, other, 3), 2 * (1 - 1e-4) * log(1e4), 1e-9);
}

static const struct leat_drift_column *
drift_of(const struct fixture *f, const char *name)
{
	for (size_t i = 0; i < f->drift.columns; i++)
		if (strcmp(f->drift.column[i].name, name) == 0)
			return &f->drift.column[i];
	fail_msg("no column %s", name);
	return NULL;
}

static void
what_moved_is_named_and_what_did_not_is_not(void **state)
{
	struct fixture *f = fixture_of(state);
	const struct leat_drift_column *d;

	compare(f,
	        "(SELECT i::DOUBLE AS same, i + 5000 AS more, 3 AS constant, CASE WHEN i % 10 < 4 THEN 'a' WHEN i % 10 "
	        "< 8 THEN 'b' ELSE 'c' END AS words, "
	        "CASE WHEN i % 2 = 0 THEN i END AS holes, 'x' AS type, 1 AS added FROM range(10000) t(i))",
	        "(SELECT i::DOUBLE AS same, i AS more, 5 AS constant, CASE WHEN i % 10 < 8 THEN 'a' ELSE 'b' END AS "
	        "words, i AS holes, 1 AS type, "
	        "1 AS removed FROM range(10000) t(i))");
	d = drift_of(f, "same");
	assert_int_equal(d->size, LEAT_DRIFT_NONE);
	near_to(d->psi, 0, 1e-12);
	assert_string_equal(d->sentence, "");
	d = drift_of(f, "more");
	assert_int_equal(d->size, LEAT_DRIFT_LARGE);
	assert_non_null(strstr(d->sentence, "mean 4999.5 \xe2\x86\x92 9999.5"));
	assert_int_equal(drift_of(f, "constant")->size, LEAT_DRIFT_LARGE);
	near_to(drift_of(f, "constant")->js, 1, 1e-12);
	d = drift_of(f, "words");
	assert_int_equal(d->size, LEAT_DRIFT_LARGE);
	assert_string_equal(
		d->sentence,
		"'a' 80 % \xe2\x86\x92 40 %, 'b' 20 % \xe2\x86\x92 40 %, values not seen before 0 % \xe2\x86\x92 20 %");
	d = drift_of(f, "holes");
	assert_int_equal(d->size, LEAT_DRIFT_LARGE);
	assert_non_null(strstr(d->sentence, "NULL 0 % \xe2\x86\x92 50 %"));
	d = drift_of(f, "type");
	assert_int_equal(d->size, LEAT_DRIFT_TYPE);
	assert_string_equal(d->sentence, "INTEGER \xe2\x86\x92 VARCHAR");
	assert_int_equal(drift_of(f, "added")->size, LEAT_DRIFT_ADDED);
	assert_int_equal(drift_of(f, "removed")->size, LEAT_DRIFT_REMOVED);
	assert_int_equal(f->drift.moved, 7);
}

/* Two samples of one source, of few rows: the PSI is large by chance alone. */
static void
chance_is_not_taken_for_drift(void **state)
{
	struct fixture *f = fixture_of(state);

	compare(f, "(SELECT (i * 7919 + 13) % 1009 AS x FROM range(0, 30) t(i))",
	        "(SELECT (i * 7919 + 13) % 1009 AS x FROM range(500, 530) t(i))");
	assert_true(f->drift.column[0].size == LEAT_DRIFT_NONE || f->drift.column[0].size == LEAT_DRIFT_UNSURE);
	assert_int_equal(f->drift.moved, 0);
	compare(f, "(SELECT (i * 7919 + 13) % 1009 AS x FROM range(0, 0) t(i))", "(SELECT i AS x FROM range(10) t(i))");
	assert_false(f->drift.column[0].compared);
}

/* ---- as text ---- */

static void
numbers_and_times_are_short_and_readable(void **state)
{
	static const struct {
		double x;
		const char *text;
	} numbers[] =
		{
			{0, "0"},
			{-0.0, "0"},
			{1, "1"},
			{999, "999"},
			{1000, "1,000"},
			{-1234567, "-1,234,567"},
			{0.5, "0.5"},
			{123.456, "123.5"},
			{1234.56, "1234.6"},
			{12345.67, "12,346"},
			{1e-7, "1e-07"},
			{1.5e20, "1.5e+20"},
			{123456789012345, "123,456,789,012,345"},
			{INFINITY, "-"},
		},
	  times[] = {
		  {0, "1970-01-01"},
		  {1767312000e6, "2026-01-02"},
		  {1767312001.5e6, "2026-01-02 00:00:01.500"},
		  {-1e6, "1969-12-31 23:59:59"},
		  {NAN, "-"},
		  {1e300, "-"},
	  };
	char buf[LEAT_PROFILE_NUMBER_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		assert_string_equal(leat_profile_number(numbers[i].x, buf), numbers[i].text);
	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++)
		assert_string_equal(leat_profile_time(times[i].x, buf), times[i].text);
}

static void
an_interrupted_profile_fails_as_cancelled(void **state)
{
	struct fixture *f = fixture_of(state);

	leat_tables_interrupt(f->tables);
	assert_int_equal(leat_profile_make(&f->now, f->tables, "(SELECT i AS x FROM range(10) t(i))", "leat_now",
	                                   &f->options, &f->mem, &f->err),
	                 LEAT_CANCELLED);
}

int
main(void)
{
#define TABLE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TABLE_TEST(figures_of_numbers_are_those_of_plain_arithmetic),
		TABLE_TEST(few_whole_numbers_have_a_bin_each),
		TABLE_TEST(bins_of_whole_numbers_and_dates_hold_as_many_values_each),
		TABLE_TEST(nan_and_infinities_are_counted_and_left_out),
		TABLE_TEST(the_largest_doubles_do_not_overflow),
		TABLE_TEST(a_few_values_far_away_do_not_hide_the_others),
		TABLE_TEST(constants_and_columns_of_nulls_have_figures_too),
		TABLE_TEST(an_empty_table_has_columns_and_no_figures),
		TABLE_TEST(whole_numbers_beyond_doubles_keep_their_digits),
		TABLE_TEST(texts_have_lengths_and_most_frequent_values),
		TABLE_TEST(beyond_the_limits_figures_are_approximate_and_say_so),
		TABLE_TEST(a_sample_is_only_what_was_asked_for),
		TABLE_TEST(hostile_names_of_columns_do_not_matter),
		cmocka_unit_test(distances_of_distributions_are_those_of_their_definitions),
		TABLE_TEST(what_moved_is_named_and_what_did_not_is_not),
		TABLE_TEST(chance_is_not_taken_for_drift),
		cmocka_unit_test(numbers_and_times_are_short_and_readable),
		TABLE_TEST(an_interrupted_profile_fails_as_cancelled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
