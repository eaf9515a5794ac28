/* test_checks.c - texts of checks: what they mean, what they print as, and what is wrong with them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "table/checks.h"

struct fixture {
	struct leat_mem mem;
	struct leat_checks checks;
	struct leat_err err;
};

static void
open_fixture(struct fixture *f)
{
	leat_mem_init(&f->mem, SIZE_MAX);
	leat_checks_init(&f->checks, &f->mem);
	leat_err_clear(&f->err);
}

static void
close_fixture(struct fixture *f)
{
	leat_checks_free(&f->checks);
	assert_int_equal(f->mem.used, 0);
}

/* ---- what is right ---- */

static void
every_check_prints_as_text_that_reads_back(void **state)
{
	static const struct {
		const char *line, *name;
		enum leat_check_kind kind;
	} cases[] = {
		{"amount: not null", "amount: not null", LEAT_CHECK_NOT_NULL},
		{"  amount :  not   null ", "amount: not null", LEAT_CHECK_NOT_NULL},
		{"amount: nulls up to 5%", "amount: nulls up to 5%", LEAT_CHECK_NULLS},
		{"amount: nulls up to 0.1 %", NULL, LEAT_CHECK_NULLS},
		{"amount: nulls up to 0.1%", "amount: nulls up to 0.1%", LEAT_CHECK_NULLS},
		{"amount: 0..1e6", "amount: 0..1e6", LEAT_CHECK_RANGE},
		{"amount: -1.5 .. +2.25e-3", "amount: -1.5..+2.25e-3", LEAT_CHECK_RANGE},
		{"amount: 0..", "amount: 0..", LEAT_CHECK_RANGE},
		{"amount: ..7", "amount: ..7", LEAT_CHECK_RANGE},
		{"amount: 3..3", "amount: 3..3", LEAT_CHECK_RANGE},
		{"ts: 2026-01-01..2026-12-31", "ts: 2026-01-01..2026-12-31", LEAT_CHECK_RANGE},
		{"ts: 2026-01-01T10:30..", "ts: 2026-01-01 10:30..", LEAT_CHECK_RANGE},
		{"ts: ..2024-02-29 23:59:59.5", "ts: ..2024-02-29 23:59:59.5", LEAT_CHECK_RANGE},
		{"ts: 2026-01-01 10:30..2026-01-01", "ts: 2026-01-01 10:30..2026-01-01", LEAT_CHECK_RANGE},
		{"amount: finite", "amount: finite", LEAT_CHECK_FINITE},
		{"code: matches [A-Z]{3}", "code: matches [A-Z]{3}", LEAT_CHECK_MATCHES},
		{"code: matches a: b, c|d ", "code: matches a: b, c|d", LEAT_CHECK_MATCHES},
		{"code: length 1..20", "code: length 1..20", LEAT_CHECK_LENGTH},
		{"code: length 3", "code: length 3..3", LEAT_CHECK_LENGTH},
		{"code: one of A|B c | \"x | y\"", "code: one of A | B c | \"x | y\"", LEAT_CHECK_ONE_OF},
		{"code: one of \"\" | \"a\"\"b\"", "code: one of \"\" | a\"b", LEAT_CHECK_ONE_OF},
		{"code: unique", "code: unique", LEAT_CHECK_UNIQUE},
		{"code: unique with day, \"a, b\"", "code: unique with day, \"a, b\"", LEAT_CHECK_UNIQUE},
		{"user: in users.id", "user: in users.id", LEAT_CHECK_IN},
		{"user: in users.\"an id \"", "user: in users.\"an id \"", LEAT_CHECK_IN},
		{"user: count 1..10", "user: count 1..10", LEAT_CHECK_COUNT},
		{"user: count 1", "user: count 1..1", LEAT_CHECK_COUNT},
		{"id: count  as events.id", "id: count as events.id", LEAT_CHECK_COUNT},
		{"id: count up  to events.\"an id \"", "id: count up to events.\"an id \"", LEAT_CHECK_COUNT},
		{"rows: as events", "rows: as events", LEAT_CHECK_ROWS},
		{"rows: up to events ", "rows: up to events", LEAT_CHECK_ROWS},
		{"amount: type double", "amount: type DOUBLE", LEAT_CHECK_TYPE},
		{"amount: type decimal(10,2)", "amount: type DECIMAL(10,2)", LEAT_CHECK_TYPE},
		{"amount: type int64", "amount: type BIGINT", LEAT_CHECK_TYPE},
		{"rows: 1..", "rows: 1..", LEAT_CHECK_ROWS},
		{"rows: 1000", "rows: 1000..1000", LEAT_CHECK_ROWS},
		{"\"rows\": not null", "\"rows\": not null", LEAT_CHECK_NOT_NULL},
		{"\"a: \"\"b\"\"\": not null", "\"a: \"\"b\"\"\": not null", LEAT_CHECK_NOT_NULL},
		{"\"plain\": not null", "plain: not null", LEAT_CHECK_NOT_NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fixture f;

		open_fixture(&f);
		if (!cases[i].name) {
			assert_int_equal(leat_checks_add_line(&f.checks, cases[i].line, &f.err), LEAT_SPEC);
			close_fixture(&f);
			continue;
		}
		if (leat_checks_add_line(&f.checks, cases[i].line, &f.err) != LEAT_OK)
			fail_msg("%s: %s", cases[i].line, f.err.text);
		assert_int_equal(f.checks.count, 1);
		assert_int_equal(f.checks.check[0].kind, cases[i].kind);
		assert_string_equal(f.checks.check[0].name, cases[i].name);
		/* The same check once more. */
		assert_int_equal(leat_checks_add_line(&f.checks, cases[i].name, &f.err), LEAT_OK);
		assert_int_equal(f.checks.count, 1);
		close_fixture(&f);
	}
}

static void
a_column_and_its_check_may_come_apart(void **state)
{
	struct fixture f;

	(void)state;
	open_fixture(&f);
	assert_int_equal(leat_checks_add(&f.checks, "a:b", "0..1", &f.err), LEAT_OK);
	assert_string_equal(f.checks.check[0].column, "a:b");
	assert_string_equal(f.checks.check[0].name, "\"a:b\": 0..1");
	assert_int_equal(leat_checks_add(&f.checks, "rows", "..10", &f.err), LEAT_OK);
	assert_null(f.checks.check[1].column);
	assert_int_equal(leat_checks_add(&f.checks, "\"rows\"", "..10", &f.err), LEAT_OK);
	assert_string_equal(f.checks.check[2].column, "rows");
	assert_int_equal(f.checks.check[2].kind, LEAT_CHECK_RANGE);
	close_fixture(&f);
}

static void
actions_print_as_text_that_reads_back(void **state)
{
	static const struct {
		const char *text, *prints;
		double most;
	} cases[] = {
		{"fail", "fail", 1},
		{"warn", "warn", 1},
		{" quarantine ", "quarantine", 1},
		{"quarantine up to 0.1%", "quarantine up to 0.1%", 0.001},
		{"warn up to 12.5%", "warn up to 12.5%", 0.125},
		{"warn up to 100%", "warn", 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fixture f;
		struct leat_str text;

		open_fixture(&f);
		leat_str_init(&text, &f.mem, 1000);
		assert_int_equal(leat_checks_set_action(&f.checks, cases[i].text, &f.err), LEAT_OK);
		assert_float_equal(f.checks.most, cases[i].most, 1e-12);
		leat_checks_action_text(&f.checks, &text);
		assert_string_equal(leat_str_text(&text), cases[i].prints);
		leat_str_free(&text);
		close_fixture(&f);
	}
}

/* ---- what is wrong ---- */

static void
mistakes_are_named_with_the_nearest_check_and_a_caret(void **state)
{
	static const struct {
		const char *line, *text;
	} cases[] = {
		{"amount: uniqe", "there is no check 'uniqe', did you mean 'unique'?\nuniqe\n^^^^^"},
		{"amount: not nul", "there is no check 'not nul', did you mean 'not null'?\nnot nul\n^^^^^^^"},
		{"amount: null up to 3%", "there is no check 'null up to', did you mean 'nulls up to'?"},
		{"amount: match x", "there is no check 'match', did you mean 'matches'?"},
		{"amount: banana", "there is no check 'banana'; the checks here are not null, nulls up to, unique"},
		{"amount", "a check is a column, a colon and what must hold, as in 'amount: 0..100'"},
		{"amount:", "a check is missing"},
		{": unique", "the name of a column is missing"},
		{"amount: not null x", "nothing may follow here, not 'x'\nnot null x\n         ^"},
		{"amount: 5", "a range has two dots: '5..' or '..5'"},
		{"amount: 5..x", "a range has numbers such as 0..1e6, or dates such as 2026-01-01.., not 'x'"},
		{"amount: 1..2..3", "nothing may follow here, not '..3'"},
		{"amount: ..", "a range has a lower or an upper end, or both"},
		{"amount: 5..1", "nothing is between 5 and 1"},
		{"amount: 1e999..", "a range has numbers"},
		{"amount: 0..2026-01-01", "one end of the range is a date, the other is a number"},
		{"ts: 2026-13-01..", "a range has numbers"},
		{"ts: 2026-04-31..", "a range has numbers"},
		{"ts: 2026-01-01 24:00..", "a range has numbers"},
		{"ts: 2026-02-01..2026-01-01", "nothing is between 2026-02-01 and 2026-01-01"},
		{"rows: -1..", "counted in whole numbers from 0 on, not '-1'"},
		{"rows: 1.5..", "counted in whole numbers from 0 on, not '1.5'"},
		{"rows: not null", "a range has numbers"},
		{"code: length 1..9999999999999999999", "counted in whole numbers"},
		{"code: nulls up to 101%", "a share is between 0% and 100%, such as 0.1%, not '101%'"},
		{"code: nulls up to 0.1", "a share is between"},
		{"code: unique of x", "only 'with COLUMN, COLUMN' may follow 'unique'"},
		{"code: unique with a,", "the name of a column is missing"},
		{"code: one of", "a value is missing"},
		{"code: one of a||b", "a value is missing"},
		{"code: one of \"a", "the quote of a value is not closed"},
		{"code: one of \"a\" b", "what follows the quotes does not belong to a value"},
		{"code: in users", "'in' is followed by a table and its column, as in 'in users.id'"},
		{"code: in [A, B]", "for a list of values, write 'one of A | B'"},
		{"code: in us ers.id", "'in' is followed by a table"},
		{"code: matches", "a regular expression is missing"},
		{"code: type", "the name of a type is missing"},
		{"\"code: unique", "a check is a column, a colon"},
		{"code: \xff", "a check must be UTF-8"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fixture f;

		open_fixture(&f);
		if (leat_checks_add_line(&f.checks, cases[i].line, &f.err) != LEAT_SPEC ||
		    !strstr(f.err.text, cases[i].text))
			fail_msg("%s: %s\nexpected %s", cases[i].line, f.err.text, cases[i].text);
		assert_int_equal(f.checks.count, 0);
		close_fixture(&f);
	}
}

static void
wrong_actions_are_named(void **state)
{
	static const struct {
		const char *action, *text;
	} cases[] = {
		{"quarantain", "did you mean 'quarantine'?"},
		{"", "there is no action"},
		{"warn 5%", "only a share may follow, as in 'warn up to 0.1%'"},
		{"fail up to 5%", "'fail' is for any row that fails"},
		{"warn up to x", "a share is between 0% and 100%"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fixture f;

		open_fixture(&f);
		if (leat_checks_set_action(&f.checks, cases[i].action, &f.err) != LEAT_SPEC ||
		    !strstr(f.err.text, cases[i].text))
			fail_msg("%s: %s", cases[i].action, f.err.text);
		close_fixture(&f);
	}
}

static void
running_out_of_memory_leaves_nothing_behind(void **state)
{
	static const char *const lines[] = {"code: one of a | b | \"c\"", "user: in users.id",
	                                    "ts: 2026-01-01T10:00..",     "code: unique with a, b",
	                                    "amount: type int64",         "\"x:\": length 1..2"};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		for (long n = 0;; n++) {
			struct fixture f;
			enum leat_status status;

			open_fixture(&f);
			f.mem.fail_after = n;
			status = leat_checks_add_line(&f.checks, lines[i], &f.err);
			f.mem.fail_after = -1;
			assert_true(status == LEAT_OK || status == LEAT_NOMEM || status == LEAT_LIMIT);
			assert_true(status == LEAT_OK || f.checks.count == 0);
			close_fixture(&f);
			if (status == LEAT_OK)
				break;
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_check_prints_as_text_that_reads_back),
		cmocka_unit_test(a_column_and_its_check_may_come_apart),
		cmocka_unit_test(actions_print_as_text_that_reads_back),
		cmocka_unit_test(mistakes_are_named_with_the_nearest_check_and_a_caret),
		cmocka_unit_test(wrong_actions_are_named),
		cmocka_unit_test(running_out_of_memory_leaves_nothing_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
