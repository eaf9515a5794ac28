/* test_duckdb.c - DuckDB as it is loaded: values of all types, errors, ^C, confinement, and queries that change */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "support/temp.h"
#include "table/duckdb.h"
#include "table/lint.h"

static struct leat_mem mem;
static struct leat_tables *tables;
static struct temp temp;

static int
setup(void **state)
{
	struct leat_err err;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	temp_make(&temp);
	leat_err_clear(&err);
	if (leat_tables_open(&tables, &(struct leat_tables_options){.threads = 2, .memory = (size_t)256 << 20}, &err) !=
	    LEAT_OK)
		fail_msg("%s", err.text);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	leat_tables_close(tables);
	tables = NULL;
	temp_remove(&temp);
	assert_int_equal(mem.used, 0);
	return 0;
}

static void
run(const char *sql)
{
	struct leat_err err;

	leat_err_clear(&err);
	if (leat_tables_run(tables, sql, &err) != LEAT_OK)
		fail_msg("%s: %s", sql, err.text);
}

static int64_t
number(const char *sql)
{
	struct leat_err err;
	int64_t value;

	leat_err_clear(&err);
	if (leat_query_int64(tables, sql, &value, &err) != LEAT_OK)
		fail_msg("%s: %s", sql, err.text);
	return value;
}

/* ---- loading ---- */

/* In a separate process: a library is loaded once. */
static void
load_fails(const char *file, const char *part)
{
	int pipes[2], code;
	char text[1100];
	ssize_t len;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (pid == 0) {
		char *const argv[] = {(char *)(uintptr_t) "/proc/self/exe", (char *)(uintptr_t) "load", NULL};

		setenv("LEAT_DUCKDB", file, 1);
		dup2(pipes[1], STDOUT_FILENO);
		execv(argv[0], argv);
		_exit(9);
	}
	close(pipes[1]);
	len = read(pipes[0], text, sizeof(text) - 1);
	text[len > 0 ? len : 0] = '\0';
	close(pipes[0]);
	waitpid(pid, &code, 0);
	assert_int_equal(WEXITSTATUS(code), LEAT_UNSUPPORTED);
	if (!strstr(text, part))
		fail_msg("expected '%s' in '%s'", part, text);
}

static int
load_and_tell(void)
{
	struct leat_err err;
	enum leat_status status;

	leat_err_clear(&err);
	status = leat_duckdb_load(&err);
	printf("%s", err.text);
	return status != LEAT_OK && (leat_duckdb_version() || leat_duckdb_path()) ? 99 : (int)status;
}

static void
a_library_that_leat_cannot_use_is_refused(void **state)
{
	(void)state;
	load_fails("/nowhere/libduckdb.so", "cannot load DuckDB from LEAT_DUCKDB=/nowhere/libduckdb.so");
	load_fails(TOOLS "libduckdb_old.so", "is DuckDB 0.9.2, but Leat needs 1.5 to 2.x");
	load_fails(TOOLS "libduckdb_missing.so", "it has no duckdb_fetch_chunk");
}

static void
the_library_knows_its_version_and_its_file(void **state)
{
	struct leat_query *query;
	struct leat_chunk chunk;
	char version[64];
	size_t len;
	const char *text;

	(void)state;
	assert_int_equal(leat_duckdb_load(NULL), LEAT_OK);
	assert_int_equal(access(leat_duckdb_path(), R_OK), 0);
	assert_int_equal(leat_query_open(&query, tables, "SELECT version()", NULL), LEAT_OK);
	assert_int_equal(leat_query_next(query, &chunk, NULL), LEAT_OK);
	text = leat_vector_text(&chunk.columns[0], 0, &len);
	snprintf(version, sizeof(version), "%.*s", (int)len, text);
	assert_string_equal(version + 1, leat_duckdb_version());
	leat_query_close(query);
}

/* ---- values ---- */

#define NUMBERS                                                                                                        \
	"true, -8::TINYINT, -16::SMALLINT, -32::INTEGER, -64::BIGINT, 8::UTINYINT, 16::USMALLINT, 32::UINTEGER, "      \
	"64::UBIGINT, -1::HUGEINT, 1.5::FLOAT, 2.5::DOUBLE, 1.25::DECIMAL(4,2), 1.25::DECIMAL(9,2), "                  \
	"1.25::DECIMAL(18,2), "                                                                                        \
	"1.25::DECIMAL(38,2), DATE '1970-01-03', TIME '00:00:01', TIMESTAMP '1970-01-01 00:00:02', "                   \
	"TIMESTAMPTZ '1970-01-01 02:00:00+01', INTERVAL 1 DAY"

static void
numbers_are_in_the_layout_of_their_kind(void **state)
{
	static const enum leat_column_kind kinds[] = {LEAT_COLUMN_BOOL,      LEAT_COLUMN_INT8,      LEAT_COLUMN_INT16,
	                                              LEAT_COLUMN_INT32,     LEAT_COLUMN_INT64,     LEAT_COLUMN_UINT8,
	                                              LEAT_COLUMN_UINT16,    LEAT_COLUMN_UINT32,    LEAT_COLUMN_UINT64,
	                                              LEAT_COLUMN_INT128,    LEAT_COLUMN_FLOAT,     LEAT_COLUMN_DOUBLE,
	                                              LEAT_COLUMN_DECIMAL,   LEAT_COLUMN_DECIMAL,   LEAT_COLUMN_DECIMAL,
	                                              LEAT_COLUMN_DECIMAL,   LEAT_COLUMN_DATE,      LEAT_COLUMN_TIME,
	                                              LEAT_COLUMN_TIMESTAMP, LEAT_COLUMN_TIMESTAMP, LEAT_COLUMN_OTHER};
	struct leat_query *query;
	struct leat_chunk chunk;
	const struct leat_vector *c;

	(void)state;
	assert_int_equal(leat_query_open(&query, tables, "SELECT " NUMBERS, NULL), LEAT_OK);
	assert_int_equal(leat_query_columns(query), sizeof(kinds) / sizeof(*kinds));
	assert_int_equal(leat_query_next(query, &chunk, NULL), LEAT_OK);
	assert_int_equal(chunk.rows, 1);
	c = chunk.columns;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		assert_int_equal(leat_query_type(query, i)->kind, kinds[i]);
		assert_ptr_equal(c[i].type, leat_query_type(query, i));
		assert_false(leat_vector_is_null(&c[i], 0));
	}
	assert_int_equal(*(const uint8_t *)c[0].values, 1);
	assert_int_equal(*(const int8_t *)c[1].values, -8);
	assert_int_equal(*(const int16_t *)c[2].values, -16);
	assert_int_equal(*(const int32_t *)c[3].values, -32);
	assert_int_equal(*(const int64_t *)c[4].values, -64);
	assert_int_equal(*(const uint8_t *)c[5].values, 8);
	assert_int_equal(*(const uint16_t *)c[6].values, 16);
	assert_int_equal(*(const uint32_t *)c[7].values, 32);
	assert_int_equal(*(const uint64_t *)c[8].values, 64);
	assert_true(((const uint64_t *)c[9].values)[0] == UINT64_MAX && ((const int64_t *)c[9].values)[1] == -1);
	assert_true(*(const float *)c[10].values == 1.5f && *(const double *)c[11].values == 2.5);
	assert_int_equal(*(const int16_t *)c[12].values, 125);
	assert_int_equal(*(const int32_t *)c[13].values, 125);
	assert_int_equal(*(const int64_t *)c[14].values, 125);
	assert_int_equal(((const uint64_t *)c[15].values)[0], 125);
	assert_string_equal(c[14].type->name, "DECIMAL(18,2)");
	assert_int_equal(c[14].type->width, 18);
	assert_int_equal(c[14].type->scale, 2);
	assert_int_equal(*(const int32_t *)c[16].values, 2);
	assert_int_equal(*(const int64_t *)c[17].values, 1000000);
	assert_int_equal(*(const int64_t *)c[18].values, 2000000);
	assert_int_equal(*(const int64_t *)c[19].values, 3600000000);
	leat_query_close(query);
}

static void
is_text(const struct leat_vector *vector, size_t row, const char *expected, size_t len)
{
	size_t got;
	const char *text = leat_vector_text(vector, row, &got);

	assert_int_equal(got, len);
	assert_memory_equal(text, expected, len);
}

static void
texts_and_blobs_of_any_length_are_whole(void **state)
{
	struct leat_query *query;
	struct leat_chunk chunk;

	(void)state;
	assert_int_equal(leat_query_open(&query, tables,
	                                 "SELECT * FROM (VALUES ('', 'a\\x00b'::BLOB), ('123456789012', ''::BLOB), "
	                                 "('1234567890123', 'x'), (NULL, NULL)) AS t(s, b)",
	                                 NULL),
	                 LEAT_OK);
	assert_string_equal(leat_query_name(query, 1), "b");
	assert_int_equal(leat_query_next(query, &chunk, NULL), LEAT_OK);
	assert_int_equal(chunk.rows, 4);
	is_text(&chunk.columns[0], 0, "", 0);
	is_text(&chunk.columns[0], 1, "123456789012", 12);
	is_text(&chunk.columns[0], 2, "1234567890123", 13);
	is_text(&chunk.columns[1], 0, "a\0b", 3);
	assert_true(leat_vector_is_null(&chunk.columns[0], 3) && leat_vector_is_null(&chunk.columns[1], 3));
	assert_false(leat_vector_is_null(&chunk.columns[0], 2));
	assert_int_equal(leat_query_next(query, &chunk, NULL), LEAT_OK);
	assert_int_equal(chunk.rows, 0);
	leat_query_close(query);
}

static void
lists_arrays_and_structs_have_children(void **state)
{
	struct leat_query *query;
	struct leat_chunk chunk;
	const struct leat_vector *list, *array, *pair;
	size_t first, count;

	(void)state;
	assert_int_equal(
		leat_query_open(&query, tables,
	                        "SELECT * FROM (VALUES ([1::BIGINT, NULL, 3], [1.0, 2.0]::FLOAT[2], {'a': 'x', 'b': "
	                        "[7]}), ([], [3.0, 4.0], NULL), (NULL, [5.0, 6.0], {'a': 'y', 'b': [8, 9]})) t(l, "
	                        "f, s)",
	                        NULL),
		LEAT_OK);
	assert_int_equal(leat_query_next(query, &chunk, NULL), LEAT_OK);
	list = &chunk.columns[0];
	array = &chunk.columns[1];
	pair = &chunk.columns[2];
	assert_string_equal(list->type->name, "BIGINT[]");
	assert_string_equal(array->type->name, "FLOAT[2]");
	leat_vector_list(list, 0, &first, &count);
	assert_int_equal(count, 3);
	assert_int_equal(((const int64_t *)list->children[0].values)[first + 2], 3);
	assert_true(leat_vector_is_null(&list->children[0], first + 1));
	leat_vector_list(list, 1, &first, &count);
	assert_int_equal(count, 0);
	assert_true(leat_vector_is_null(list, 2));
	assert_int_equal(array->type->size, 2);
	assert_int_equal(array->children[0].count, 6);
	assert_true(((const float *)array->children[0].values)[5] == 6.0f);
	assert_string_equal(pair->type->children[1].member, "b");
	is_text(&pair->children[0], 2, "y", 1);
	assert_true(leat_vector_is_null(pair, 1));
	leat_vector_list(&pair->children[1], 2, &first, &count);
	assert_int_equal(count, 2);
	assert_int_equal(((const int32_t *)pair->children[1].children[0].values)[first + 1], 9);
	leat_query_close(query);
}

static void
a_result_comes_in_chunks_and_in_order(void **state)
{
	struct leat_query *query;
	struct leat_chunk chunk;
	int64_t next = 0;

	(void)state;
	assert_int_equal(leat_query_open(&query, tables, "SELECT i FROM range(100000) t(i) ORDER BY i", NULL), LEAT_OK);
	while (leat_query_next(query, &chunk, NULL) == LEAT_OK && chunk.rows)
		for (size_t i = 0; i < chunk.rows; i++)
			assert_int_equal(((const int64_t *)chunk.columns[0].values)[i], next++);
	assert_int_equal(next, 100000);
	leat_query_close(query);
}

static void
columns_are_known_before_a_query_runs(void **state)
{
	struct leat_columns columns;

	(void)state;
	assert_int_equal(leat_query_describe(tables, "SELECT 1 AS a, 'x' AS a, error('it ran') AS b", &columns, NULL),
	                 LEAT_OK);
	assert_int_equal(columns.count, 3);
	assert_string_equal(columns.name[1], "a");
	assert_int_equal(columns.type[1].kind, LEAT_COLUMN_TEXT);
	leat_columns_free(&columns);
}

/* ---- errors ---- */

static void
fails(const char *sql, enum leat_status status, const char *part)
{
	struct leat_err err;

	leat_err_clear(&err);
	if (leat_tables_run(tables, sql, &err) != status || !strstr(err.text, part) || strchr(err.text, '\n'))
		fail_msg("%s: expected %s, '%s', got '%s'", sql, leat_status_name(status), part, err.text);
}

static void
errors_are_one_line_with_a_fitting_status(void **state)
{
	(void)state;
	fails("SELEC 1", LEAT_INVALID, "syntax error");
	fails("SELECT nope FROM range(1)", LEAT_INVALID, "\"nope\" not found");
	fails("SELECT * FROM nope", LEAT_INVALID, "nope does not exist");
	fails("SELECT 'x'::INTEGER", LEAT_DATA, "Could not convert");
	fails("SELECT $1", LEAT_INVALID, "parameters");
	fails("", LEAT_INVALID, "empty");
	fails("SELECT * FROM '/nowhere/x.parquet'", LEAT_IO, "/nowhere/x.parquet");
	fails("SELECT list(repeat('x', 1000) || i) FROM range(400000) t(i)", LEAT_LIMIT, "memory");
	assert_int_equal(number("SELECT 7::BIGINT"), 7);
}

static void
only_one_query_is_open_at_a_time(void **state)
{
	struct leat_query *query, *other;
	struct leat_err err;

	(void)state;
	leat_err_clear(&err);
	assert_int_equal(leat_query_open(&query, tables, "SELECT 1", NULL), LEAT_OK);
	assert_int_equal(leat_query_open(&other, tables, "SELECT 2", &err), LEAT_INTERNAL);
	assert_null(other);
	leat_query_close(query);
	assert_int_equal(leat_query_open(&query, tables, "SELECT 1; SELECT 2", NULL), LEAT_INVALID);
	assert_int_equal(number("SELECT 2::BIGINT"), 2);
}

static void *
interrupt(void *arg)
{
	usleep(*(const useconds_t *)arg);
	leat_tables_interrupt(tables);
	return NULL;
}

static void
an_interrupt_ends_what_runs_and_what_comes_next(void **state)
{
	static useconds_t pauses[] = {0, 100, 3000, 50000}; /* before it begins, while it is planned, while it runs */
	pthread_t thread;

	for (size_t i = 0; i < sizeof(pauses) / sizeof(*pauses); i++) {
		if (i) {
			teardown(state);
			setup(state);
		}
		assert_int_equal(pthread_create(&thread, NULL, interrupt, &pauses[i]), 0);
		fails("SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = 7",
		      LEAT_CANCELLED, "interrupted");
		pthread_join(thread, NULL);
		fails("SELECT 1", LEAT_CANCELLED, "interrupted");
	}
}

/* ---- files ---- */

static enum leat_status
file_sql(const char *path, char *text, size_t cap, struct leat_err *err)
{
	struct leat_str sql;
	enum leat_status status;

	leat_str_init(&sql, &mem, SIZE_MAX);
	leat_str_add(&sql, "SELECT count(*) FROM ");
	status = leat_sql_add_file(&sql, path, err);
	snprintf(text, cap, "%s", leat_str_text(&sql));
	leat_str_free(&sql);
	return status;
}

static void
files_and_folders_are_read_by_their_names(void **state)
{
	char sql[1200], text[1000];
	struct leat_err err;

	(void)state;
	temp_write(&temp, "it's.csv", "a,b\n1,x\n2,y\n", 12);
	mkdir(temp_path(&temp, "folder"), 0777);
	mkdir(temp_path(&temp, "folder/x=1"), 0777);
	mkdir(temp_path(&temp, "empty"), 0777);
	temp_write(&temp, "other", "text", 4);
	snprintf(sql, sizeof(sql), "COPY (SELECT 1 AS a) TO '%s'; COPY (SELECT 2 AS a) TO '%s/folder/x=1/b.parquet'",
	         temp_path(&temp, "folder/x=1/a.parquet"), temp.folder);
	run(sql);
	assert_int_equal(file_sql(temp_path(&temp, "it's.csv"), text, sizeof(text), NULL), LEAT_OK);
	assert_int_equal(number(text), 2);
	assert_int_equal(file_sql(temp_path(&temp, "folder/x=1"), text, sizeof(text), NULL), LEAT_OK);
	assert_int_equal(number(text), 2);
	assert_int_equal(file_sql(temp_path(&temp, "folder"), text, sizeof(text), NULL), LEAT_OK);
	assert_int_equal(number(text), 2);
	leat_err_clear(&err);
	assert_int_equal(file_sql(temp_path(&temp, "none.csv"), text, sizeof(text), &err), LEAT_IO);
	assert_int_equal(file_sql(temp_path(&temp, "empty"), text, sizeof(text), NULL), LEAT_DATA);
	assert_int_equal(file_sql(temp_path(&temp, "other"), text, sizeof(text), NULL), LEAT_INVALID);
}

static void
confined_tables_read_nothing_else(void **state)
{
	char sql[700], open[128], closed[128], folder[128];
	const char *paths[] = {open, folder};

	(void)state;
	snprintf(open, sizeof(open), "%s", temp_write(&temp, "open.csv", "a\n1\n", 4));
	snprintf(closed, sizeof(closed), "%s", temp_write(&temp, "closed.csv", "a\n1\n", 4));
	snprintf(folder, sizeof(folder), "%s/", temp_path(&temp, "in"));
	mkdir(folder, 0777);
	temp_write(&temp, "in/x.csv", "a\n1\n2\n", 6);
	assert_int_equal(leat_tables_confine(tables, paths, 2, NULL), LEAT_OK);
	snprintf(sql, sizeof(sql), "SELECT count(*) FROM '%s'", open);
	assert_int_equal(number(sql), 1);
	snprintf(sql, sizeof(sql), "SELECT count(*) FROM '%sx.csv'", folder);
	assert_int_equal(number(sql), 2);
	snprintf(sql, sizeof(sql), "SELECT count(*) FROM '%s'", closed);
	fails(sql, LEAT_INVALID, "closed.csv");
	snprintf(sql, sizeof(sql), "SELECT count(*) FROM '%s../closed.csv'", folder);
	fails(sql, LEAT_INVALID, "closed.csv");
	snprintf(sql, sizeof(sql), "COPY (SELECT 1) TO '%s'", closed);
	fails(sql, LEAT_INVALID, "closed.csv");
	snprintf(sql, sizeof(sql), "ATTACH '%s.db'", closed);
	fails(sql, LEAT_INVALID, "closed.csv");
	fails("SET enable_external_access = true", LEAT_DATA, "lock");
	fails("SET threads = 1", LEAT_DATA, "lock");
	fails("LOAD '/tmp/x.duckdb_extension'", LEAT_INVALID, "");
}

/* ---- lint ---- */

static void
lint(const char *sql, const char *part)
{
	struct leat_err err;
	enum leat_status status;

	leat_err_clear(&err);
	status = leat_sql_lint(tables, sql, &err);
	if (part ? status != LEAT_INVALID || !strstr(err.text, part) : status != LEAT_OK)
		fail_msg("%s: expected '%s', got '%s'", sql, part ? part : "success", err.text);
}

static void
queries_that_change_from_run_to_run_are_refused(void **state)
{
	(void)state;
	run("CREATE TABLE t (k BIGINT, x DOUBLE, f FLOAT, d DECIMAL(18, 2), i INTEGER, s VARCHAR)");
	lint("SELECT k, sum(x) FROM t GROUP BY k", "sum(x::DECIMAL(38, 6))");
	lint("SELECT avg(f) FROM t", "avg of floating-point");
	lint("SELECT stddev(i) FROM t", "round(stddev(x), 6)");
	lint("SELECT k, round(sum(x), 3) AS a, sum(x) AS b FROM t GROUP BY k", "sum of");
	lint("SELECT k FROM t GROUP BY k HAVING sum(x) > 1", "sum of");
	lint("SELECT k FROM t WHERE x > (SELECT avg(x) FROM t)", "avg of");
	lint("WITH a AS (SELECT sum(x) AS s FROM t) SELECT round(s, 2) FROM a", "sum of");
	lint("SELECT sum(x) OVER (ORDER BY k) FROM t", "sum of");
	lint("SELECT first(s), count(*) FROM t", "first(x ORDER BY y)");
	lint("SELECT any_value(s) FROM t", "any_value(x ORDER BY y)");
	lint("SELECT list(s) FROM t GROUP BY k", "list(x ORDER BY y)");
	lint("SELECT string_agg(s, ',') FROM t", "string_agg");
	lint("SELECT row_number() OVER (PARTITION BY k) FROM t", "ORDER BY key");
	lint("SELECT * FROM t LIMIT 3", "LIMIT without ORDER BY");
	lint("SELECT * FROM (SELECT * FROM t LIMIT 3) ORDER BY k", "LIMIT without ORDER BY");
	lint("SELECT DISTINCT ON (k) k, s FROM t", "DISTINCT ON");
	lint("SELECT * FROM t USING SAMPLE 10 ROWS", "sample");
	lint("SELECT random() FROM t", "random");
	lint("SELECT * FROM t WHERE now() > TIMESTAMP '2020-01-01'", "now");
	lint("SELECT current_date", "literal");
	lint("SELECT nope FROM t", "nope");
	lint("DROP TABLE t", "expected a SELECT");
	lint("SELECT 1; SELECT 2", "one statement");
}

static void
queries_with_one_result_are_accepted(void **state)
{
	(void)state;
	run("CREATE TABLE t (k BIGINT, x DOUBLE, f FLOAT, d DECIMAL(18, 2), i INTEGER, s VARCHAR)");
	lint("SELECT k, sum(d), sum(i), avg(i), avg(d), count(*), min(x), max(f), median(x) FROM t GROUP BY k", NULL);
	lint("SELECT k, sum(x::DECIMAL(38, 6)) FROM t GROUP BY k", NULL);
	lint("SELECT k, round(sum(x), 3), sum(x)::DECIMAL(18, 3) FROM t GROUP BY k HAVING count(*) > 1 ORDER BY k",
	     NULL);
	lint("SELECT list(s ORDER BY k), list(s ORDER BY s), first(s ORDER BY k), string_agg(s, ',' ORDER BY s) FROM t",
	     NULL);
	lint("SELECT row_number() OVER (ORDER BY k), sum(i) OVER (), lag(x) OVER (PARTITION BY s ORDER BY k) FROM t",
	     NULL);
	lint("SELECT * FROM t ORDER BY k LIMIT 3", NULL);
	lint("SELECT DISTINCT ON (k) k, s FROM t ORDER BY k, s", NULL);
	lint("SELECT k, (SELECT max(x) FROM t), (SELECT min(x) FROM t AS b WHERE b.k = a.k) FROM t AS a", NULL);
	lint("SELECT a.k FROM t AS a JOIN t AS b USING (k) WHERE a.x * 2 > b.f", NULL);
}

int
main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_library_that_leat_cannot_use_is_refused),
		TEST(the_library_knows_its_version_and_its_file),
		TEST(numbers_are_in_the_layout_of_their_kind),
		TEST(texts_and_blobs_of_any_length_are_whole),
		TEST(lists_arrays_and_structs_have_children),
		TEST(a_result_comes_in_chunks_and_in_order),
		TEST(columns_are_known_before_a_query_runs),
		TEST(errors_are_one_line_with_a_fitting_status),
		TEST(only_one_query_is_open_at_a_time),
		TEST(an_interrupt_ends_what_runs_and_what_comes_next),
		TEST(files_and_folders_are_read_by_their_names),
		TEST(confined_tables_read_nothing_else),
		TEST(queries_that_change_from_run_to_run_are_refused),
		TEST(queries_with_one_result_are_accepted),
	};

	if (argc > 1 && !strcmp(argv[1], "load"))
		return load_and_tell();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
