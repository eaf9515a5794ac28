/* test_checks_run.c - checks over tables with errors planted: every bad row is found, and no other */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "support/temp.h"
#include "table/checks.h"

struct fixture {
	struct temp temp;
	struct leat_mem mem;
	struct leat_tables *tables;
	struct leat_checks checks;
	struct leat_checked checked;
	struct leat_err err;
};

static int
set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	temp_make(&f->temp);
	leat_mem_init(&f->mem, SIZE_MAX);
	leat_checks_init(&f->checks, &f->mem);
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

	leat_checked_free(&f->checked);
	leat_checks_free(&f->checks);
	leat_tables_close(f->tables);
	assert_int_equal(f->mem.used, 0);
	temp_remove(&f->temp);
	free(f);
	return 0;
}

/* Without DuckDB there are no tables. */
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

static void
sql(struct fixture *f, const char *text)
{
	if (leat_tables_run(f->tables, text, &f->err) != LEAT_OK)
		fail_msg("%s: %s", text, f->err.text);
}

static void
add(struct fixture *f, const char *line)
{
	if (leat_checks_add_line(&f->checks, line, &f->err) != LEAT_OK)
		fail_msg("%s", f->err.text);
}

static const struct leat_check_table others[] = {{"users", "users"}};

static struct leat_check_run
run_of(const struct fixture *f)
{
	return (struct leat_check_run){.tables = f->tables, .sql = "events", .other = others, .others = 1};
}

static void
run(struct fixture *f)
{
	struct leat_check_run r = run_of(f);

	leat_checked_free(&f->checked);
	if (leat_checks_run(&f->checks, &r, &f->checked, &f->err) != LEAT_OK)
		fail_msg("%s", f->err.text);
}

static int64_t
count(struct fixture *f, const char *query)
{
	int64_t n = -1;

	if (leat_query_int64(f->tables, query, &n, &f->err) != LEAT_OK)
		fail_msg("%s: %s", query, f->err.text);
	return n;
}

/* Writes the rows that fail and those that pass, as tables `bad` and `good`. */
static void
split(struct fixture *f)
{
	struct leat_check_run r = run_of(f);
	struct leat_str select;
	char text[1024];

	for (int failing = 0; failing < 2; failing++) {
		const char *path = temp_path(&f->temp, failing ? "bad.parquet" : "good.parquet");

		leat_str_init(&select, &f->mem, SIZE_MAX);
		assert_int_equal(
			failing ? leat_checks_add_failing(&f->checks, &r, &f->checked, "failed", &select, &f->err)
				: leat_checks_add_passing(&f->checks, &r, &select, &f->err),
			LEAT_OK);
		if (leat_checks_copy(f->tables, &select, path, &f->err) != LEAT_OK)
			fail_msg("%s\n%s", f->err.text, leat_str_text(&select));
		leat_str_free(&select);
		snprintf(text, sizeof(text), "CREATE OR REPLACE TABLE %s AS SELECT * FROM read_parquet('%s')",
		         failing ? "bad" : "good", path);
		sql(f, text);
	}
}

/* ---- planted errors ---- */

/* 10,000 rows without a fault. */
static void
make_events(struct fixture *f)
{
	sql(f, "CREATE TABLE users AS SELECT i AS id FROM range(100) t(i)");
	sql(f, "CREATE TABLE events AS SELECT i AS id, i % 100 AS \"user\", (i % 1000) / 10.0::DOUBLE AS amount, "
	       "chr(65 + (i % 26)::INT) || 'BC' AS code, TIMESTAMP '2026-01-01' + INTERVAL (i) MINUTE AS ts, "
	       "[i, i + 1] AS pair FROM range(10000) t(i)");
}

static void
every_planted_error_is_found_and_nothing_else(void **state)
{
	static const struct {
		const char *check, *plant; /* plant: makes rows 17 and 4711 bad */
	} cases[] = {
		{"amount: not null", "UPDATE events SET amount = NULL WHERE id IN (17, 4711)"},
		{"amount: 0..100", "UPDATE events SET amount = CASE id WHEN 17 THEN -0.001 ELSE 100.001 END "
	                           "WHERE id IN (17, 4711)"},
		{"amount: ..100",
	         "UPDATE events SET amount = CASE id WHEN 17 THEN 'nan'::DOUBLE ELSE 'inf'::DOUBLE END "
	         "WHERE id IN (17, 4711)"},
		{"amount: 0..", "UPDATE events SET amount = CASE id WHEN 17 THEN 'nan'::DOUBLE ELSE '-inf'::DOUBLE END "
	                        "WHERE id IN (17, 4711)"},
		{"amount: finite",
	         "UPDATE events SET amount = CASE id WHEN 17 THEN 'nan'::DOUBLE ELSE 'inf'::DOUBLE END "
	         "WHERE id IN (17, 4711)"},
		{"code: matches [A-Z]{3}", "UPDATE events SET code = CASE id WHEN 17 THEN 'AB' ELSE 'ABC\nABC' END "
	                                   "WHERE id IN (17, 4711)"},
		{"code: length 3",
	         "UPDATE events SET code = CASE id WHEN 17 THEN '' ELSE '\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4' END "
	         "WHERE id IN (17, 4711)"},
		{"pair: length 2..",
	         "UPDATE events SET pair = CASE id WHEN 17 THEN [] ELSE [1] END WHERE id IN (17, 4711)"},
		{"user: in users.id", "UPDATE events SET \"user\" = 100 WHERE id IN (17, 4711)"},
		{"id: unique", "UPDATE events SET id = 4711 WHERE id = 17"},
		{"user: one of 0 | 1 | 2 | 3", "DELETE FROM events WHERE \"user\" > 3 AND id NOT IN (17, 4711)"},
		{"code: one of ABC | BBC | 'x'",
	         "DELETE FROM events WHERE code NOT IN ('ABC', 'BBC') AND id NOT IN (17, 4711)"},
		{"ts: 2026-01-01..2026-01-07",
	         "UPDATE events SET ts = CASE id WHEN 17 THEN TIMESTAMP '2025-12-31 23:59:59' "
	         "ELSE TIMESTAMP '2026-01-08' END WHERE id IN (17, 4711)"},
		{"ts: 2026-01-01 00:00..2026-01-07 22:39",
	         "UPDATE events SET ts = TIMESTAMP '2026-01-07 22:39:00.000001' "
	         "WHERE id IN (17, 4711)"},
		{"user: unique with ts",
	         "UPDATE events SET \"user\" = 5, ts = TIMESTAMP '2026-01-05' WHERE id IN (17, 4711)"},
	};
	struct fixture *f = fixture_of(state);

	make_events(f);
	sql(f, "CREATE TABLE fine AS SELECT * FROM events");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		sql(f, "CREATE OR REPLACE TABLE events AS SELECT *, id AS line FROM fine");
		leat_checks_free(&f->checks);
		add(f, cases[i].check);
		sql(f, cases[i].plant);
		run(f);
		if (f->checked.failed != 2 || f->checked.of[0].rows != 2 || !f->checked.of[0].broken)
			fail_msg("%s: %d rows", cases[i].check, (int)f->checked.failed);
		assert_int_equal(f->checked.rows, count(f, "SELECT count(*) FROM events"));
		split(f);
		assert_int_equal(count(f, "SELECT count(*) FROM bad"), 2);
		assert_int_equal(count(f, "SELECT count(*) FROM bad WHERE line IN (17, 4711)"), 2);
		assert_int_equal(count(f, "SELECT count(*) FROM good WHERE line IN (17, 4711)"), 0);
		assert_int_equal(count(f, "SELECT count(*) FROM good"), (int64_t)f->checked.rows - 2);
		assert_int_equal(leat_checks_verdict(&f->checks, &f->checked, NULL), LEAT_DATA);
	}
}

static void
a_table_without_faults_passes_all_checks(void **state)
{
	static const char *const lines[] = {
		"amount: not null",         "amount: 0..99.9", "amount: finite",     "amount: type double",
		"code: matches [A-Z]BC",    "code: length 3",  "user: in users.id",  "id: unique",
		"user: unique with ts",     "id: type int64",  "id: nulls up to 0%", "rows: 10000",
		"ts: 2026-01-01..",         "pair: not null",  "ID: 0..9999",        "ts: type timestamp",
		"amount: one of 0.0 | 0.1", /* not this one */
	};
	struct fixture *f = fixture_of(state);

	make_events(f);
	for (size_t i = 0; i + 1 < sizeof(lines) / sizeof(*lines); i++)
		add(f, lines[i]);
	run(f);
	assert_int_equal(f->checked.failed, 0);
	assert_false(f->checked.broken);
	for (size_t i = 0; i < f->checked.count; i++)
		if (f->checked.of[i].broken)
			fail_msg("%s", f->checks.check[i].name);
	assert_int_equal(leat_checks_verdict(&f->checks, &f->checked, &f->err), LEAT_OK);
	add(f, lines[sizeof(lines) / sizeof(*lines) - 1]);
	run(f);
	assert_int_equal(f->checked.failed, 9980);
}

static void
null_passes_all_checks_but_those_of_null(void **state)
{
	static const char *const lines[] = {"amount: 0..1",         "amount: finite",    "code: matches x",
	                                    "code: length 1",       "user: in users.id", "id: unique",
	                                    "user: unique with ts", "code: one of a"};
	struct fixture *f = fixture_of(state);

	make_events(f);
	sql(f, "CREATE OR REPLACE TABLE events AS SELECT NULL::BIGINT AS id, NULL::BIGINT AS \"user\", NULL::DOUBLE AS "
	       "amount, NULL::VARCHAR AS code, NULL::TIMESTAMP AS ts FROM range(5)");
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		add(f, lines[i]);
	run(f);
	assert_int_equal(f->checked.failed, 0);
	add(f, "code: not null");
	run(f);
	assert_int_equal(f->checked.failed, 5);
}

static void
each_failing_row_is_kept_once_with_the_names_of_its_checks(void **state)
{
	struct fixture *f = fixture_of(state);

	sql(f,
	    "CREATE TABLE events AS SELECT * FROM (VALUES (1, -5, 'x'), (2, 7, 'y'), (3, NULL, 'Z'), (4, 900, 'zz')) "
	    "t(id, failed, code)");
	add(f, "failed: 0..100");
	add(f, "failed: not null");
	add(f, "code: matches [a-y]");
	run(f);
	assert_int_equal(f->checked.rows, 4);
	assert_int_equal(f->checked.failed, 3);
	assert_int_equal(f->checked.of[0].rows, 2);
	assert_string_equal(f->checked.of[0].found, "-5, 900");
	assert_int_equal(f->checked.of[1].rows, 1);
	assert_int_equal(f->checked.of[2].rows, 2);
	split(f);
	/* The table has a column `failed` already. */
	assert_int_equal(count(f, "SELECT count(*) FROM bad WHERE id = 1 AND failed_ = 'failed: 0..100'"), 1);
	assert_int_equal(
		count(f, "SELECT count(*) FROM bad WHERE id = 3 AND failed_ = 'failed: not null; code: matches [a-y]'"),
		1);
	assert_int_equal(
		count(f, "SELECT count(*) FROM bad WHERE id = 4 AND failed_ = 'failed: 0..100; code: matches [a-y]'"),
		1);
	assert_int_equal(count(f, "SELECT count(*) FROM bad"), 3);
	assert_int_equal(count(f, "SELECT count(*) FROM good WHERE id = 2"), 1);
	assert_int_equal(leat_checks_verdict(&f->checks, &f->checked, &f->err), LEAT_DATA);
	assert_string_equal(f->err.text,
	                    "3 of 4 rows fail: 'failed: 0..100' 2 (such as -5, 900), 'failed: not null' 1, "
	                    "'code: matches [a-y]' 2 (such as Z, zz)");
}

/* ---- the whole table ---- */

static void
checks_of_the_whole_table_hold_or_not(void **state)
{
	static const struct {
		const char *check;
		bool broken;
		const char *found;
	} cases[] = {
		{"rows: 4", false, ""},
		{"rows: 5..", true, "4 rows"},
		{"rows: ..3", true, "4 rows"},
		{"x: nulls up to 25%", false, ""},
		{"x: nulls up to 24.9%", true, "25% NULL"},
		{"x: type integer", false, ""},
		{"x: type double", true, "INTEGER"},
	};
	struct fixture *f = fixture_of(state);

	sql(f, "CREATE TABLE events AS SELECT * FROM (VALUES (1), (2), (NULL), (4)) t(x)");
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		leat_checks_free(&f->checks);
		add(f, cases[i].check);
		run(f);
		assert_int_equal(f->checked.failed, 0);
		assert_int_equal(f->checked.broken, cases[i].broken);
		assert_string_equal(f->checked.of[0].found, cases[i].found);
		leat_checks_set_action(&f->checks, "quarantine", NULL);
		assert_int_equal(leat_checks_verdict(&f->checks, &f->checked, NULL),
		                 cases[i].broken ? LEAT_DATA : LEAT_OK);
		leat_checks_set_action(&f->checks, "warn", NULL);
		assert_int_equal(leat_checks_verdict(&f->checks, &f->checked, NULL), LEAT_OK);
	}
}

static void
the_rows_of_a_broken_share_of_nulls_are_kept(void **state)
{
	struct fixture *f = fixture_of(state);

	sql(f, "CREATE TABLE events AS SELECT * FROM (VALUES (1), (2), (NULL), (4)) t(x)");
	add(f, "x: nulls up to 1%");
	run(f);
	split(f);
	assert_int_equal(count(f, "SELECT count(*) FROM bad WHERE x IS NULL AND failed = 'x: nulls up to 1%'"), 1);
	assert_int_equal(count(f, "SELECT count(*) FROM bad"), 1);
	assert_int_equal(count(f, "SELECT count(*) FROM good"), 4);
}

static void
a_share_of_failing_rows_may_be_allowed(void **state)
{
	static const struct {
		const char *action;
		enum leat_status status;
	} cases[] = {
		{"fail", LEAT_DATA},
		{"quarantine", LEAT_OK},
		{"quarantine up to 1%", LEAT_OK},
		{"warn", LEAT_OK},
		{"quarantine up to 0.9%", LEAT_DATA},
		{"warn up to 0.9%", LEAT_DATA},
	};
	struct fixture *f = fixture_of(state);

	sql(f, "CREATE TABLE events AS SELECT i AS x FROM range(1000) t(i)");
	add(f, "x: 10..");
	run(f);
	assert_int_equal(f->checked.failed, 10);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(leat_checks_set_action(&f->checks, cases[i].action, &f->err), LEAT_OK);
		leat_err_clear(&f->err);
		assert_int_equal(leat_checks_verdict(&f->checks, &f->checked, &f->err), cases[i].status);
	}
	assert_non_null(strstr(f->err.text, "more than the 0.9% allowed"));
}

/* ---- tables that are odd ---- */

static void
an_empty_table_passes_and_has_no_rows(void **state)
{
	struct fixture *f = fixture_of(state);

	sql(f, "CREATE TABLE events (x DOUBLE, code VARCHAR)");
	add(f, "x: not null");
	add(f, "x: 0..1");
	add(f, "x: nulls up to 0%");
	add(f, "code: unique");
	run(f);
	assert_int_equal(f->checked.failed, 0);
	assert_false(f->checked.broken);
	split(f);
	assert_int_equal(count(f, "SELECT count(*) FROM good"), 0);
	add(f, "rows: 1..");
	run(f);
	assert_true(f->checked.broken);
	assert_int_equal(leat_checks_verdict(&f->checks, &f->checked, &f->err), LEAT_DATA);
	assert_string_equal(f->err.text, "'rows: 1..' does not hold: 0 rows");
}

static void
hostile_names_and_values_are_only_names_and_values(void **state)
{
	struct fixture *f = fixture_of(state);

	sql(f, "CREATE TABLE events AS SELECT i AS \"x\"\"; DROP TABLE precious; --\", 'it''s; DROP TABLE precious' AS "
	       "\"select\" "
	       "FROM range(3) t(i)");
	sql(f, "CREATE TABLE precious AS SELECT 1 AS one");
	add(f, "\"x\"\"; DROP TABLE precious; --\": 1..");
	add(f, "select: one of it's; DROP TABLE precious | ' OR true; --");
	add(f, "select: matches ' OR true; DROP TABLE precious; --");
	run(f);
	assert_int_equal(f->checked.of[0].rows, 1);
	assert_int_equal(f->checked.of[1].rows, 0);
	assert_int_equal(f->checked.of[2].rows, 3);
	split(f);
	assert_int_equal(count(f, "SELECT count(*) FROM precious"), 1);
	assert_int_equal(count(f, "SELECT count(*) FROM bad"), 3);
}

static void
checks_that_do_not_fit_are_refused_with_a_reason(void **state)
{
	static const struct {
		const char *check, *text;
	} cases[] = {
		{"amuont: not null", "the table has no column 'amuont', did you mean 'amount'?"},
		{"code: 0..1",
	         "check 'code: 0..1': column 'code' is VARCHAR; a range of numbers needs a column of numbers"},
		{"amount: 2026-01-01..", "a range of dates needs a date or a timestamp"},
		{"amount: length 3", "only texts, bytes and lists have a length"},
		{"code: finite", "only numbers and times can be infinite"},
		{"user: in uesrs.id", "there is no table 'uesrs', did you mean 'users'?"},
		{"code: unique with nothing", "the table has no column 'nothing'"},
		{"user: one of a | b", "check 'user: one of a | b': Could not convert string 'a'"},
		{"code: matches [", "check 'code: matches [': missing ]"},
		{"user: in users.di", "table 'users' has no column 'di'; it has id"},
		{"code: in users.id", "column 'code' is VARCHAR, but the other one is BIGINT; cast one"},
	};
	struct fixture *f = fixture_of(state);
	struct leat_check_run r;

	make_events(f);
	r = run_of(f);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		enum leat_status status;

		leat_checks_free(&f->checks);
		leat_err_clear(&f->err);
		add(f, cases[i].check);
		status = leat_checks_run(&f->checks, &r, &f->checked, &f->err);
		leat_checked_free(&f->checked);
		if (status == LEAT_OK || !strstr(f->err.text, cases[i].text))
			fail_msg("%s: %d %s", cases[i].check, (int)status, f->err.text);
	}
	leat_err_clear(&f->err);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_planted_error_is_found_and_nothing_else, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_table_without_faults_passes_all_checks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(null_passes_all_checks_but_those_of_null, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_failing_row_is_kept_once_with_the_names_of_its_checks, set_up,
	                                        tear_down),
		cmocka_unit_test_setup_teardown(checks_of_the_whole_table_hold_or_not, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_rows_of_a_broken_share_of_nulls_are_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_share_of_failing_rows_may_be_allowed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_empty_table_passes_and_has_no_rows, set_up, tear_down),
		cmocka_unit_test_setup_teardown(hostile_names_and_values_are_only_names_and_values, set_up, tear_down),
		cmocka_unit_test_setup_teardown(checks_that_do_not_fit_are_refused_with_a_reason, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
