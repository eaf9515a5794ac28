/* test_sql.c - the text of a query: its normal form, the tables it names, and what is refused */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "table/duckdb.h"
#include "table/sql.h"

static struct leat_mem mem;

static void
read_text(struct leat_sql *sql, const char *text)
{
	struct leat_err err;

	memset(sql, 0, sizeof(*sql));
	leat_err_clear(&err);
	if (leat_sql_read(sql, &mem, text, strlen(text), &err) != LEAT_OK)
		fail_msg("%s: %s", text, err.text);
}

static void
is_normal(const char *text, const char *expected)
{
	struct leat_sql sql, again;

	read_text(&sql, text);
	assert_string_equal(sql.text, expected);
	read_text(&again, sql.text);
	assert_string_equal(again.text, sql.text);
	leat_sql_free(&again);
	leat_sql_free(&sql);
}

static void
comments_and_white_space_do_not_change_the_normal_form(void **state)
{
	static const char *const same[] = {
		"SELECT a, b.c FROM t WHERE x = 1",
		"SELECT a,b.c FROM t WHERE x=1",
		"  SELECT\n\ta ,\r\n b . c -- why\nFROM t /* a /* nested */ one */ WHERE x = 1 ;; -- end",
		"SELECT a, b.c\nFROM t\nWHERE x = 1;",
		"SELECT\302\240a, b.c FROM\343\200\200t WHERE x = 1",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
		is_normal(same[i], "SELECT a,\n  b.c\nFROM t\nWHERE x = 1");
}

static void
what_means_something_stays(void **state)
{
	(void)state;
	is_normal("SELECT '--no', \"a /* b\", $$it's$$, $x$ $$ $x$ FROM T",
	          "SELECT '--no',\n  \"a /* b\",\n  $$it's$$,\n  "
	          "$x$ $$ $x$\nFROM T");
	is_normal("SELECT 'it''s' , E'a\\'b', x'ff'", "SELECT 'it''s',\n  E'a\\'b',\n  x'ff'");
	is_normal("select 1.5e-3+.5, 1_000, 0xFF, a*-1, a->>'$.x', a::int[]",
	          "select 1.5e-3 + .5,\n  1_000,\n  0xFF,\n  a * - 1,\n  a ->> '$.x',\n  a::int[]");
	is_normal("SELECT count (*) , f( x ) IN(1,2), t.* FROM t",
	          "SELECT count(*),\n  f(x) IN (1, 2),\n  t.*\nFROM t");
	is_normal("SELECT a - -1, a<=b, a||b, list_transform(l, x -> x+1), {'k': 1}['k']",
	          "SELECT a - - 1,\n  a <= b,\n  a || b,\n  list_transform(l, x -> x + 1),\n  { 'k' : 1 } ['k']");
	is_normal("SELECT 1 FROM a LEFT OUTER JOIN b USING(x) JOIN c ON true",
	          "SELECT 1\nFROM a\nLEFT OUTER JOIN b USING (x)\nJOIN c ON true");
}

/* The names, each followed by "*" if WITH defines it, and "!" and what else is read. */
static void
reads(const char *text, const char *expected)
{
	char got[400] = "";
	struct leat_sql sql;

	read_text(&sql, text);
	for (size_t i = 0; i < sql.tables; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s%s", i ? " " : "", sql.table[i].name,
		         sql.table[i].is_with ? "*" : "");
	if (sql.file)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "!%s", sql.file);
	if (strcmp(got, expected))
		fail_msg("%s\nreads '%s', not '%s'", text, got, expected);
	leat_sql_free(&sql);
}

static void
tables_are_found_where_they_stand(void **state)
{
	(void)state;
	reads("SELECT 1", "");
	reads("SELECT * FROM events", "events");
	reads("FROM events SELECT x", "events");
	reads("TABLE events", "events");
	reads("SUMMARIZE events", "events");
	reads("DESCRIBE SELECT a FROM events", "events");
	reads("SELECT * FROM a, b AS x, \"c d\" y, lateral (SELECT 1) z", "a b c d");
	reads("SELECT * FROM a JOIN b ON a.x = f(b.x, 1), c", "a b c");
	reads("SELECT * FROM (a CROSS JOIN (b JOIN c USING (x, y))) WHERE d IN (e, f)", "a b c");
	reads("SELECT (SELECT max(x) FROM b), y FROM a WHERE x IN (SELECT z FROM c) ORDER BY d, e", "b a c");
	reads("SELECT x FROM a UNION ALL (SELECT x FROM b) EXCEPT SELECT x FROM c", "a b c");
	reads("SELECT extract(year FROM ts), trim(both ' ' FROM s), a IS NOT DISTINCT FROM b FROM t", "t");
	reads("SELECT substring(s FROM 2 FOR 3) FROM t, generate_series(1, 3) AS g(x), unnest(t.l)", "t");
	reads("SELECT sum(x) OVER (PARTITION BY a, b ORDER BY c) FROM t GROUP BY u, v", "t");
	reads("SELECT * FROM t ASOF JOIN p ON t.ts >= p.ts", "t p");
	reads("SELECT * FROM Events JOIN EVENTS AS e USING (x)", "Events");
	reads("SELECT * FROM main.t", "main.t");
	reads("SELECT * FROM (VALUES (1, 2), (3, 4)) v(a, b)", "");
	reads("(SELECT a FROM x) UNION (SELECT b FROM y)", "x y");
	reads("SELECT * FROM (SUMMARIZE x)", "x");
}

static void
names_that_with_defines_are_known_as_such(void **state)
{
	(void)state;
	reads("WITH a AS (SELECT * FROM b), c(x, y) AS NOT MATERIALIZED (SELECT * FROM a) SELECT * FROM c", "b a* c*");
	reads("WITH RECURSIVE \"a\" AS (SELECT 1 UNION SELECT x FROM a) SELECT * FROM A", "a*");
	reads("WITH events AS (SELECT * FROM events WHERE x) SELECT * FROM events", "events*");
}

static void
files_are_told_from_tables(void **state)
{
	(void)state;
	reads("SELECT * FROM 'x.parquet'", "!'x.parquet'");
	reads("SELECT * FROM t JOIN read_csv('a.csv') USING (x)", "t!read_csv");
	reads("SELECT * FROM t, Read_Parquet(['a'])", "t!Read_Parquet");
	reads("SELECT * FROM query('FROM t')", "!query");
	reads("SELECT * FROM duckdb_settings()", "!duckdb_settings");
	reads("SELECT read_csv FROM t WHERE x = 'a.csv'", "t");
}

static void
is_refused(const char *text, const char *part)
{
	struct leat_sql sql = {0};
	struct leat_err err;

	leat_err_clear(&err);
	assert_int_not_equal(leat_sql_read(&sql, &mem, text, strlen(text), &err), LEAT_OK);
	if (!strstr(err.text, part))
		fail_msg("%s: expected '%s' in '%s'", text, part, err.text);
	leat_sql_free(&sql);
}

static void
only_one_query_is_accepted(void **state)
{
	(void)state;
	is_refused("", "empty");
	is_refused(" ; -- nothing", "empty");
	is_refused("SELECT 1; SELECT 2", "one query only");
	is_refused("SELECT 1) TO 'x'; DROP TABLE t; (SELECT 1", "no opening bracket");
	is_refused("COPY t TO 'x'", "begins with COPY");
	is_refused("ATTACH 'x'", "begins with ATTACH");
	is_refused("PRAGMA version", "begins with PRAGMA");
	is_refused("INSERT INTO t VALUES (1)", "begins with INSERT");
	is_refused("SET threads = 1", "begins with SET");
	is_refused("SELECT (1", "')' is missing");
	is_refused("SELECT [1)", "no opening bracket");
	is_refused("SELECT 'a", "a text has no end");
	is_refused("SELECT 1\n\n FROM \"a", "line 3: a quoted name has no end");
	is_refused("SELECT /* a /* b */", "a comment has no end");
	is_refused("SELECT $a$ $b$", "has no end");
	is_refused("SELECT 'a'\n'b'", "line 2: two texts");
	is_refused("SELECT \x01", "character");
	is_refused("SELECT U&'a'", "U&");
}

static void
what_is_too_large_is_refused(void **state)
{
	size_t len = 7 + 100000;
	char *text = malloc(len + 1);

	(void)state;
	assert_non_null(text);
	memcpy(text, "SELECT ", 7);
	memset(text + 7, '(', len - 7);
	text[len] = '\0';
	is_refused(text, "brackets inside each other");
	memset(text + 7, 'a', len - 7);
	is_refused(text, "more than 64 KiB");
	free(text);
}

static void
running_out_of_memory_is_an_error(void **state)
{
	static const char text[] = "WITH a AS (SELECT * FROM \"b\" JOIN c.d USING (x)) SELECT * FROM a, 'f.csv'";
	enum leat_status status = LEAT_NOMEM;

	(void)state;
	for (long n = 0; status != LEAT_OK; n++) {
		struct leat_sql sql = {0};

		atomic_store(&mem.fail_after, n);
		status = leat_sql_read(&sql, &mem, text, strlen(text), NULL);
		leat_sql_free(&sql);
		assert_int_equal(mem.used, 0);
		assert_true(n < 100);
	}
	atomic_store(&mem.fail_after, -1);
}

static void
quotes_are_doubled(void **state)
{
	struct leat_str sql;

	(void)state;
	leat_str_init(&sql, &mem, SIZE_MAX);
	leat_sql_quote(&sql, "it's \"x\"", '\'');
	leat_sql_quote(&sql, "it's \"x\"", '"');
	assert_string_equal(leat_str_text(&sql), "'it''s \"x\"'\"it's \"\"x\"\"\"");
	leat_str_free(&sql);
}

static int
check_memory(void **state)
{
	(void)state;
	assert_int_equal(mem.used, 0);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comments_and_white_space_do_not_change_the_normal_form),
		cmocka_unit_test(what_means_something_stays),
		cmocka_unit_test(tables_are_found_where_they_stand),
		cmocka_unit_test(names_that_with_defines_are_known_as_such),
		cmocka_unit_test(files_are_told_from_tables),
		cmocka_unit_test(only_one_query_is_accepted),
		cmocka_unit_test(what_is_too_large_is_refused),
		cmocka_unit_test(running_out_of_memory_is_an_error),
		cmocka_unit_test(quotes_are_doubled),
	};

	leat_mem_init(&mem, SIZE_MAX);
	return cmocka_run_group_tests(tests, NULL, check_memory);
}
