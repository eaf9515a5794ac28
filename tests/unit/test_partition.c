/* test_partition.c - a query that is accepted gives the same rows in partitions as from whole tables */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table/duckdb.h"
#include "table/partition.h"

enum { PARTITIONS = 3 };

static const struct leat_split_table split[] = {{"events", "user"}, {"users", "id"}};

struct fixture {
	struct leat_mem mem;
	struct leat_tables *tables;
	struct leat_carried carried;
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
	return leat_tables_open(&f->tables, &(struct leat_tables_options){.threads = 1, .memory = (size_t)1 << 30},
	                        &f->err) == LEAT_OK
	               ? 0
	               : -1;
}

static int
tear_down(void **state)
{
	struct fixture *f = *state;

	leat_carried_free(&f->carried);
	leat_tables_close(f->tables);
	assert_int_equal(f->mem.used, 0);
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

static enum leat_status
look(struct fixture *f, const char *sql, size_t splits)
{
	leat_err_clear(&f->err);
	leat_carried_free(&f->carried);
	return leat_sql_partition(sql, split, splits, &f->carried, &f->mem, &f->err);
}

/* ---- sentences ---- */

static void
test_what_cannot_be_partitioned_is_refused_with_line_reason_and_remedy(void **state)
{
	static const struct {
		size_t splits;
		const char *sql, *text;
	} cases[] = {
		{1, "SELECT product, count(*)\nFROM events\nGROUP BY product",
	         "line 3: GROUP BY lacks the column that tables are split by, so a group would be in several "
	         "partitions; write GROUP BY events.user, ..."},
		{1, "SELECT user, x FROM events GROUP BY ROLLUP (user, x)", "in one of its sets"},
		{1, "SELECT user, x FROM events GROUP BY GROUPING SETS ((user), (x))", "in one of its sets"},
		{1, "SELECT user FROM events GROUP BY user + 1", "GROUP BY lacks"},
		{1, "SELECT lower(user) AS user FROM events GROUP BY user", "GROUP BY lacks"},
		{1, "SELECT x AS user FROM events GROUP BY 1", "GROUP BY lacks"},
		{1, "SELECT x FROM events GROUP BY ALL", "GROUP BY lacks"},
		{1, "SELECT user\nFROM events\nORDER BY ts LIMIT 3",
	         "line 3: LIMIT and OFFSET would take rows of each"},
		{1, "SELECT user FROM events LIMIT 10%", "LIMIT and OFFSET"},
		{1, "SELECT user FROM events OFFSET 3", "LIMIT and OFFSET"},
		{1, "SELECT user FROM (SELECT * FROM events LIMIT 3)", "LIMIT and OFFSET"},
		{1, "SELECT user FROM events WHERE x = (SELECT k FROM w LIMIT 1)", "LIMIT and OFFSET"},
		{1, "WITH a AS (SELECT * FROM events LIMIT 1) SELECT user FROM events", "LIMIT and OFFSET"},
		{1, "SELECT count(*) FROM events",
	         "count(*) of all rows needs all partitions; write GROUP BY events.user"},
		{1, "SELECT geomean(x) FROM events", "geomean of all rows"}, /* a macro over avg */
		{1, "SELECT user FROM events HAVING true", "HAVING without GROUP BY"},
		{1, "SELECT user, row_number() OVER (ORDER BY ts) FROM events",
	         "the window of row_number lacks the column that tables are split by"},
		{1, "SELECT user, sum(x) OVER (PARTITION BY x) FROM events", "the window of sum lacks"},
		{1, "SELECT user FROM events WINDOW w AS (ORDER BY x) QUALIFY rank() OVER w = 1", "the window of rank"},
		{1, "SELECT user, 1 + lag(x) OVER (PARTITION BY user % 2 ORDER BY x) FROM events", "the window of lag"},
		{1, "SELECT DISTINCT x FROM events", "DISTINCT lacks the column that tables are split by"},
		{1, "SELECT DISTINCT ON (x) user, x FROM events", "DISTINCT lacks"},
		{1, "SELECT DISTINCT ON (user) x AS user FROM events", "DISTINCT lacks"},
		{2, "SELECT * FROM events, users", "this joins two tables that are split, but not on the columns"},
		{2, "SELECT * FROM events e JOIN users u ON e.x = u.id", "join on events.user or users.id with ="},
		{2, "SELECT * FROM events e JOIN users u ON e.user = u.id OR e.x = 1", "this joins two tables"},
		{2, "SELECT * FROM events e JOIN users u ON e.user < u.id", "this joins two tables"},
		{2, "SELECT * FROM events e LEFT JOIN users u ON true WHERE e.user = u.id", "this joins two tables"},
		{2, "SELECT * FROM events NATURAL JOIN users", "write USING (...)"},
		{2, "SELECT * FROM events POSITIONAL JOIN users", "a POSITIONAL JOIN depends on all rows"},
		{1, "SELECT * FROM users u LEFT JOIN events e ON e.user = u.id",
	         "this LEFT JOIN keeps rows of a table that is whole in every partition"},
		{1, "SELECT * FROM events e RIGHT JOIN users u ON e.user = u.id", "this RIGHT JOIN keeps rows"},
		{1, "SELECT * FROM events e FULL JOIN users u ON e.user = u.id", "this FULL JOIN keeps rows"},
		{1, "SELECT * FROM users u ANTI JOIN events e ON e.user = u.id", "this ANTI JOIN keeps rows"},
		{1, "SELECT user FROM events UNION ALL SELECT k FROM w",
	         "one side of this UNION reads no table that is split"},
		{2, "SELECT user, x FROM events UNION SELECT x, id FROM users", "UNION compares rows"},
		{2, "SELECT * FROM events UNION SELECT * FROM users", "name the columns"},
		{2, "SELECT x FROM events EXCEPT SELECT x FROM users", "EXCEPT compares rows"},
		{2, "SELECT user FROM events WHERE user IN (SELECT id FROM users)", "SEMI JOIN or ANTI JOIN"},
		{2, "SELECT user FROM events e WHERE EXISTS (FROM users u WHERE u.id = e.user)",
	         "a subquery in an expression"},
		{1, "SELECT user, (SELECT count(*) FROM events) FROM events", "count(*) of all rows"},
		{1, "SELECT k FROM w", "reads no table that 'by' names"},
		{1, "WITH events AS (FROM w) SELECT * FROM events", "reads no table that 'by' names"},
		{1, "SELECT user FROM events USING SAMPLE 3", "a sample takes other rows"},
		{1, "SELECT user FROM events TABLESAMPLE 3%", "a sample takes other rows"},
		{1, "PIVOT events ON x USING sum(ts)", "PIVOT or the like cannot be partitioned"},
		{1, "SELECT user FROM events, glob('*')", "it is not known what glob reads"},
		{1, "WITH RECURSIVE r AS (SELECT user FROM events UNION SELECT user + 1 FROM r) FROM r",
	         "WITH RECURSIVE"},
		{1, "DESCRIBE SELECT user FROM events", "SHOW_REF"},
		{1, "SELECT user FORM events WHERE", "syntax error"},
		{1, "SELECT user FROM (SELECT * FROM w JOIN events USING (x)) GROUP BY user", "GROUP BY lacks"},
		{1, "SELECT u FROM events AS e(u, v) GROUP BY u", "GROUP BY lacks"},
	};
	struct fixture *f = fixture_of(state);

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(look(f, cases[i].sql, cases[i].splits), LEAT_INVALID);
		if (!strstr(f->err.text, cases[i].text))
			fail_msg("%s: %s", cases[i].sql, f->err.text);
	}
}

static void
test_columns_that_tell_partitions_apart_are_followed_through_the_query(void **state)
{
	static const struct {
		size_t splits;
		const char *sql, *carried;
	} cases[] = {
		{1, "SELECT * FROM events", "user "},
		{1, "FROM events SELECT x, \"USER\" AS u", "u "},
		{1, "SELECT user, user AS v, x FROM events", "user v "},
		{1, "SELECT * EXCLUDE (user) FROM events", ""},
		{1, "SELECT * REPLACE (x AS user) FROM events", ""},
		{1, "SELECT * RENAME (user AS u) FROM events", ""},
		{1, "SELECT user::BIGINT AS user FROM events", ""},
		{1, "SELECT u, m FROM (SELECT user AS u, max(x) AS m FROM events GROUP BY user)", "u "},
		{1, "SELECT a, count(*) FROM (SELECT user, x FROM events) AS t(a, b) GROUP BY a", "a "},
		{1, "WITH t(a, b) AS (SELECT user, x FROM events) SELECT * FROM t", "a "},
		{1, "SELECT user, count(*) FROM events GROUP BY 1", "user "},
		{1, "SELECT user AS k, count(*) FROM events GROUP BY k, x", "k "},
		{1, "SELECT x, user FROM events GROUP BY ALL", "user "},
		{1, "SELECT user FROM events GROUP BY GROUPING SETS ((user), (user, x))", "user "},
		{1, "SELECT DISTINCT ON (user) user, x FROM events ORDER BY user, x", "user "},
		{1, "SELECT *, row_number() OVER (PARTITION BY x, user ORDER BY ts) AS n FROM events", "user "},
		{1, "SELECT e.user FROM events e JOIN w ON e.x = w.k", "user "},
		{1, "SELECT * FROM w, events", "user "},
		{1, "SELECT w.k FROM w JOIN events e ON e.user = w.k", ""},
		{1, "SELECT user FROM w JOIN events USING (user)",
	         ""}, /* it is the one of w, of another type perhaps */
		{1, "SELECT user FROM events JOIN w USING (user)", "user "},
		{1, "SELECT user FROM events WHERE x > (SELECT max(k) FROM w)", "user "},
		{1, "SELECT user, u.e FROM events, unnest(list) AS u(e)", "user "},
		{2, "SELECT e.user, u.id FROM events e JOIN users u ON u.id = e.user AND u.x > e.x", "user id "},
		{2, "SELECT e.user, u.id FROM events e LEFT JOIN users u ON u.id = e.user", "user "},
		{2, "SELECT e.user, u.id FROM events e RIGHT JOIN users u ON u.id = e.user", "id "},
		{2, "SELECT e.user, u.id FROM events e FULL JOIN users u ON u.id = e.user", ""},
		{2, "SELECT k FROM (SELECT user AS k FROM events) e FULL JOIN (SELECT id AS k FROM users) u USING (k)",
	         "k "},
		{2, "SELECT e.user FROM events e, w, users u WHERE w.k = e.x AND u.id = e.user", "user "},
		{2, "SELECT user FROM events SEMI JOIN users ON user = id", "user "},
		{2, "SELECT e.user FROM events e ASOF JOIN users u ON e.user = u.id AND e.ts >= u.ts", "user "},
		{2, "SELECT user AS a, x FROM events UNION SELECT id, x FROM users", "a "},
		{2, "SELECT user AS a, x AS b FROM events UNION ALL BY NAME SELECT x AS b, id AS a FROM users", "a "},
		{2, "SELECT user FROM events EXCEPT SELECT id FROM users", "user "},
		{1, "SELECT a.user FROM events a JOIN events b ON a.user IS NOT DISTINCT FROM b.user", "user "},
	};
	struct fixture *f = fixture_of(state);

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char names[200] = "";

		if (look(f, cases[i].sql, cases[i].splits) != LEAT_OK)
			fail_msg("%s: %s", cases[i].sql, f->err.text);
		for (size_t k = 0; k < f->carried.count; k++)
			snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s ", f->carried.name[k]);
		assert_string_equal(names, cases[i].carried);
	}
}

/* ---- random queries, run in both ways ---- */

static uint64_t
draw(uint64_t *seed, uint64_t n)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (*seed >> 33) % n;
}

/* A query whose columns are a, b and c. */
static void
add_query(struct leat_str *sql, uint64_t *seed, int depth)
{
	static const char *const tables[] = {
		"SELECT user AS a, x AS b, y AS c FROM events", "SELECT x AS a, user AS b, y AS c FROM events",
		"SELECT id AS a, x AS b, y AS c FROM users", "SELECT k AS a, v AS b, v AS c FROM w",
		"SELECT * FROM (SELECT user AS a, x AS b, y AS c FROM events)"};
	static const char *const shapes[] = {
		"SELECT a, b, c FROM (@) q WHERE b % 3 > 0",
		"SELECT a, min(b) AS b, count(*) AS c FROM (@) q GROUP BY a",
		"SELECT a, b, max(c) AS c FROM (@) q GROUP BY ALL",
		"SELECT min(a) AS a, b, count(c) AS c FROM (@) q GROUP BY b",
		"SELECT a, b, count(*) AS c FROM (@) q GROUP BY GROUPING SETS ((a), (a, b))",
		"SELECT a, b, count(*) AS c FROM (@) q GROUP BY CUBE (a, b)",
		"SELECT max(a) AS a, max(b) AS b, count(*) AS c FROM (@) q",
		"SELECT a, b, max(c) OVER (PARTITION BY a) AS c FROM (@) q",
		"SELECT a, b, count(*) OVER (PARTITION BY b) AS c FROM (@) q",
		"SELECT a, b, count(*) OVER () AS c FROM (@) q",
		"SELECT DISTINCT a, b, c FROM (@) q",
		"SELECT DISTINCT b AS a, b, c FROM (@) q",
		"SELECT b AS a, a AS b, c FROM (@) q",
		"SELECT * FROM (@) q",
		"SELECT * REPLACE (c AS a) FROM (@) q",
		"SELECT * EXCLUDE (c), a AS c FROM (@) q",
		"SELECT a, b, c FROM (@) q WHERE b IN (SELECT v FROM w)",
		"SELECT a, b, c FROM (@) q WHERE a NOT IN (SELECT id FROM users)",
		"SELECT a, b, c FROM (@) q WHERE c > (SELECT min(k) FROM w WHERE k < q.b)",
		"SELECT a, b, c FROM (@) q WHERE EXISTS (SELECT 1 FROM events WHERE user = q.a)",
		"SELECT l.a, r.b, l.c FROM (@) l JOIN (@) r ON l.a = r.a",
		"SELECT l.a, r.b, r.c FROM (@) l LEFT JOIN (@) r ON l.a = r.a",
		"SELECT r.a, l.b, l.c FROM (@) l LEFT JOIN (@) r ON l.a = r.a",
		"SELECT l.a, r.b, l.c FROM (@) l RIGHT JOIN (@) r ON l.a = r.a AND l.b < r.b",
		"SELECT a, l.b, r.c FROM (@) l FULL JOIN (@) r USING (a)",
		"SELECT a, l.b, r.c FROM (@) l RIGHT JOIN (@) r USING (a)",
		"SELECT a, r.b, r.c FROM (@) l LEFT JOIN (@) r USING (a)",
		"SELECT l.a, l.b, r.c FROM (@) l FULL JOIN (@) r ON l.a = r.b",
		"SELECT l.a, l.b, l.c FROM (@) l SEMI JOIN (@) r ON l.a = r.a",
		"SELECT l.a, l.b, l.c FROM (@) l ANTI JOIN (@) r ON l.a = r.a",
		"SELECT l.a, l.b, r.c FROM (@) l, (@) r WHERE l.a = r.a",
		"SELECT l.a, l.b, r.c FROM (@) l, (@) r WHERE l.b = r.b",
		"SELECT l.a, l.b, r.c FROM (@) l JOIN (@) r ON l.a IS NOT DISTINCT FROM r.a",
		"SELECT * FROM (@) l UNION ALL SELECT * FROM (@) r",
		"SELECT * FROM (@) l UNION ALL BY NAME SELECT b, a, c FROM (@) r",
		"SELECT * FROM (@) l UNION SELECT * FROM (@) r",
		"SELECT * FROM (@) l EXCEPT SELECT * FROM (@) r",
		"SELECT * FROM (@) l INTERSECT ALL SELECT * FROM (@) r",
		"WITH q AS (@) SELECT q.a, r.b, q.c FROM q JOIN q AS r USING (a)",
		"WITH q(b, a, c) AS (@) SELECT a, b, c FROM q",
		"SELECT a, b, c FROM (@) q ORDER BY a LIMIT 5",
	};
	const char *shape = depth ? shapes[draw(seed, sizeof(shapes) / sizeof(*shapes))]
	                          : tables[draw(seed, sizeof(tables) / sizeof(*tables))];

	for (; *shape; shape++)
		if (*shape == '@')
			add_query(sql, seed, depth ? (int)draw(seed, (uint64_t)depth) : 0);
		else
			leat_str_addn(sql, shape, 1);
}

static void
must_run(struct fixture *f, const char *sql)
{
	if (leat_tables_run(f->tables, sql, &f->err) != LEAT_OK)
		fail_msg("%s: %s", sql, f->err.text);
}

/* NULLs, values that no other table has, and several of each. */
static void
make_tables(struct fixture *f)
{
	must_run(f, "CREATE TABLE all_events AS SELECT CASE i % 7 WHEN 3 THEN NULL ELSE i % 5 END::INTEGER AS user, "
	            "i % 4 AS x, CASE WHEN i % 6 > 0 THEN i % 3 END AS y FROM range(24) t(i)");
	must_run(f, "CREATE TABLE all_users AS SELECT CASE i % 6 WHEN 2 THEN NULL ELSE i % 7 END::BIGINT AS id, i % 3 "
	            "AS x, "
	            "i % 2 AS y FROM range(11) t(i)");
	must_run(f, "CREATE TABLE w AS SELECT i AS k, i % 2 AS v FROM range(5) t(i)");
	must_run(f, "CREATE TABLE parts (i INTEGER, a BIGINT, b BIGINT, c BIGINT)");
}

/* -1: all rows. */
static void
choose(struct fixture *f, int partition)
{
	static const char *const tables[][2] = {{"events", "user"}, {"users", "id"}};

	for (size_t i = 0; i < 2; i++) {
		struct leat_str sql;

		leat_str_init(&sql, &f->mem, SIZE_MAX);
		leat_str_addf(&sql, "CREATE OR REPLACE VIEW %s AS SELECT * FROM all_%s", tables[i][0], tables[i][0]);
		if (partition >= 0) {
			leat_str_add(&sql, " WHERE ");
			leat_partition_sql(&sql, tables[i][1], PARTITIONS);
			leat_str_addf(&sql, " = %d", partition);
		}
		must_run(f, leat_str_text(&sql));
		leat_str_free(&sql);
	}
}

static void
insert(struct fixture *f, int partition, const char *query)
{
	struct leat_str sql;

	choose(f, partition);
	leat_str_init(&sql, &f->mem, SIZE_MAX);
	leat_str_addf(&sql, "INSERT INTO parts SELECT %d, a, b, c FROM (%s)", partition, query);
	must_run(f, leat_str_text(&sql));
	leat_str_free(&sql);
}

static void
must_be_none(struct fixture *f, const char *sql, const char *query)
{
	int64_t count = -1;

	if (leat_query_int64(f->tables, sql, &count, &f->err) != LEAT_OK || count != 0)
		fail_msg("%lld rows of %s: %s", (long long)count, sql, query);
}

static void
must_be_the_same(struct fixture *f, const char *query)
{
	must_run(f, "DELETE FROM parts");
	for (int i = -1; i < PARTITIONS; i++)
		insert(f, i, query);
	must_be_none(
		f,
		"SELECT count(*) FROM ((SELECT a, b, c FROM parts WHERE i < 0 EXCEPT ALL SELECT a, b, c FROM parts "
		"WHERE i >= 0) UNION ALL (SELECT a, b, c FROM parts WHERE i >= 0 EXCEPT ALL SELECT a, b, c FROM parts "
		"WHERE i < 0))",
		query);
	for (size_t k = 0; k < f->carried.count; k++) {
		struct leat_str sql;

		leat_str_init(&sql, &f->mem, SIZE_MAX);
		leat_str_add(&sql, "SELECT count(*) FROM parts WHERE i >= 0 AND i <> ");
		leat_partition_sql(&sql, f->carried.name[k], PARTITIONS);
		must_be_none(f, leat_str_text(&sql), query);
		leat_str_free(&sql);
	}
}

static void
test_random_queries_give_the_same_rows_in_partitions(void **state)
{
	struct fixture *f = fixture_of(state);
	uint64_t seed = getenv("SEED") ? strtoull(getenv("SEED"), NULL, 10) : 1;
	unsigned long queries = getenv("QUERIES") ? strtoul(getenv("QUERIES"), NULL, 10) : 30, accepted = 0;

	make_tables(f);
	for (unsigned long i = 0; i < queries; i++) {
		struct leat_str sql;

		leat_str_init(&sql, &f->mem, 1 << 16);
		add_query(&sql, &seed, 3);
		if (look(f, leat_str_text(&sql), 2) == LEAT_OK) {
			must_be_the_same(f, leat_str_text(&sql));
			accepted++;
		}
		leat_str_free(&sql);
	}
	print_message("%lu of %lu queries ran in partitions\n", accepted, queries);
	assert_true(accepted > queries / 10 && accepted < queries);
}

/* ---- hostile ---- */

static void
test_hostile_queries_are_errors(void **state)
{
	static const char *const shapes[] = {"SELECT user FROM events WHERE x IN (1, 2) GROUP BY user -- ",
	                                     "WITH a AS (SELECT * FROM events) SELECT a.user, 'x''y' FROM a, w",
	                                     "SELECT e.user FROM events e LEFT JOIN users u ON e.user = u.id"};
	static const char noise[] = "()\"'.,;*$-/\\[]{}@\x01\xff 0SELECT FROM WITH UNION OVER";
	struct fixture *f = fixture_of(state);
	uint64_t seed = 7;
	struct leat_str deep;

	for (int i = 0; i < 20; i++) {
		char *text = strdup(shapes[i % 3]);

		for (uint64_t k = 0; k < 1 + draw(&seed, 4); k++)
			text[draw(&seed, strlen(text))] = noise[draw(&seed, sizeof(noise) - 1)];
		look(f, text, 2);
		free(text);
	}
	leat_str_init(&deep, &f->mem, SIZE_MAX);
	for (int i = 0; i < 3000; i++)
		leat_str_add(&deep, "SELECT * FROM (");
	assert_int_not_equal(look(f, leat_str_text(&deep), 1), LEAT_OK);
	leat_str_free(&deep);
	leat_str_add(&deep, "SELECT user FROM events WHERE ");
	for (int i = 0; i < 900; i++)
		leat_str_add(&deep, "(NOT ");
	leat_str_add(&deep, "true");
	for (int i = 0; i < 900; i++)
		leat_str_add(&deep, ")");
	look(f, leat_str_text(&deep), 1);
	leat_str_free(&deep);
}

static void
test_partitions_of_equal_numbers_and_of_null_are_fixed(void **state)
{
	struct fixture *f = fixture_of(state);
	static const char *const values[] = {"42::TINYINT", "42::BIGINT", "42::HUGEINT", "'42'"};
	int64_t partition;

	must_run(f, "CREATE TABLE one (v VARCHAR)");
	for (size_t i = 0; i < 4; i++) {
		struct leat_str sql;

		leat_str_init(&sql, &f->mem, SIZE_MAX);
		leat_str_add(&sql, "SELECT ");
		leat_partition_sql(&sql, "v", 64);
		leat_str_addf(&sql, " FROM (SELECT %s AS v)", values[i]);
		assert_int_equal(leat_query_int64(f->tables, leat_str_text(&sql), &partition, &f->err), LEAT_OK);
		assert_int_equal(partition, 0xa1d0c6e8 % 64); /* md5sum of 42 begins with a1d0c6e8 */
		leat_str_free(&sql);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_what_cannot_be_partitioned_is_refused_with_line_reason_and_remedy,
	                                        set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_columns_that_tell_partitions_apart_are_followed_through_the_query,
	                                        set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_random_queries_give_the_same_rows_in_partitions, set_up,
	                                        tear_down),
		cmocka_unit_test_setup_teardown(test_hostile_queries_are_errors, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_partitions_of_equal_numbers_and_of_null_are_fixed, set_up,
	                                        tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
