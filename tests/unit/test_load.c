/* test_load.c - CSV to Parquet: every record is a row or a reject, exactly the planted ones */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <jansson.h>

#include "base/mem.h"
#include "base/rng.h"
#include "support/temp.h"
#include "table/load.h"

static struct leat_mem mem;
static struct temp temp;

static int
setup(void **state)
{
	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	temp_make(&temp);
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

/* ---- loading ---- */

static enum leat_status
try_load(const char *text, size_t len, const char *columns_text, struct leat_load load, const char *out,
         struct leat_load_result *result, struct leat_err *err)
{
	struct leat_declared_columns columns = {.mem = &mem};
	char file[sizeof(temp.path)], folder[sizeof(temp.path)];
	enum leat_status status;

	leat_err_clear(err);
	snprintf(file, sizeof(file), "%s", temp_write(&temp, "in.csv", text, len));
	snprintf(folder, sizeof(folder), "%s", temp_path(&temp, out));
	mkdir(folder, 0777);
	assert_int_equal(leat_declared_read(&columns, columns_text, NULL), LEAT_OK);
	load.columns = &columns;
	load.delimiter = load.delimiter ? load.delimiter : ',';
	load.max_record = 1 << 20;
	status = leat_load(&load, &(const char *){file}, 1, folder, result, &mem, err);
	leat_str_free(&result->examples);
	leat_declared_free(&columns);
	return status;
}

static struct leat_load_result
load_text(const char *text, size_t len, const char *columns, struct leat_load load, const char *out)
{
	struct leat_load_result result;
	struct leat_err err;

	if (try_load(text, len, columns, load, out, &result, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	assert_int_equal(result.read, result.kept + result.rejected);
	return result;
}

static const struct leat_load with_header = {.header = true}, without_header = {.header = false};

/* The answer to a query, whose columns are texts, as one: fields end in |, rows in ; and NULL is ~. */
static char *
ask(const char *sql_format, const char *name)
{
	static char got[4096];
	char sql[2048];
	struct leat_tables *tables;
	struct leat_query *query;
	struct leat_chunk chunk;
	struct leat_err err;
	size_t used = 0;

	leat_err_clear(&err);
	snprintf(sql, sizeof(sql), sql_format, temp_path(&temp, name));
	assert_int_equal(leat_tables_open(&tables, &(struct leat_tables_options){.threads = 1}, NULL), LEAT_OK);
	if (leat_query_open(&query, tables, sql, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	got[0] = '\0';
	while (leat_query_next(query, &chunk, &err) == LEAT_OK && chunk.rows)
		for (size_t row = 0; row < chunk.rows; row++) {
			for (size_t i = 0; i < leat_query_columns(query); i++) {
				size_t len = 1;
				const char *text = leat_vector_is_null(&chunk.columns[i], row)
				                           ? "~"
				                           : leat_vector_text(&chunk.columns[i], row, &len);

				used += (size_t)snprintf(got + used, sizeof(got) - used, "%.*s|", (int)len, text);
			}
			used += (size_t)snprintf(got + used, sizeof(got) - used, ";");
		}
	leat_query_close(query);
	leat_tables_close(tables);
	return got;
}

static void
every_type_arrives_as_it_was_written(void **state)
{
	static const char text[] =
		"true,-128,-32768,-2147483648,-9223372036854775808,255,65535,4294967295,18446744073709551615,0.1,0.1,"
		"text,2026-11-18,2026-11-18T12:30:00.123456Z,-12.34,123456789012345678901234567890.12\n"
		",,,,,,,,,,,\"\",,,,\n"
		"\"0\",\"1\",NA,1,1,1,1,1,1,nan,-inf,\"NA\",\"0001-01-01\",\"1969-12-31 23:59:59.999999\",\"0\",0\n";

	(void)state;
	load_text(text, sizeof(text) - 1,
	          "a bool, b int8, c int16, d int32, e int64, f uint8, g uint16, h uint32, i uint64, j float, k "
	          "double, l "
	          "text, m date, n timestamp, o decimal(4,2), p decimal(38,2)",
	          (struct leat_load){.null = &(const char *){"NA"}, .nulls = 1}, "out");
	assert_string_equal(ask("SELECT COLUMNS(*)::VARCHAR FROM '%s'", "out/rows.parquet"),
	                    "true|-128|-32768|-2147483648|-9223372036854775808|255|65535|4294967295|"
	                    "18446744073709551615|0.1|0.1|text|2026-11-18|2026-11-18 12:30:00.123456|-12.34|"
	                    "123456789012345678901234567890.12|;"
	                    "~|~|~|~|~|~|~|~|~|~|~||~|~|~|~|;"
	                    "false|1|~|1|1|1|1|1|1|nan|-inf|NA|0001-01-01|1969-12-31 23:59:59.999999|0.00|0.00|;");
	assert_string_equal(
		ask("SELECT string_agg(column_type, ' ') FROM (DESCRIBE SELECT * FROM '%s')", "out/rows.parquet"),
		"BOOLEAN TINYINT SMALLINT INTEGER BIGINT UTINYINT USMALLINT UINTEGER UBIGINT FLOAT DOUBLE VARCHAR DATE "
		"TIMESTAMP DECIMAL(4,2) DECIMAL(38,2)|;");
}

static void
columns_are_found_by_name_and_may_be_skipped(void **state)
{
	static const char text[] = "\xef\xbb\xbf"
				   "c;a;b\r\n1;2;\"x;y\"\r\n3;4;z\r\n";

	(void)state;
	load_text(text, sizeof(text) - 1, "a int64, b text, c skip",
	          (struct leat_load){.header = true, .delimiter = ';'}, "out");
	assert_string_equal(ask("SELECT a::VARCHAR, b FROM '%s'", "out/rows.parquet"), "2|x;y|;4|z|;");
}

static void
no_rows_are_a_table_too(void **state)
{
	struct leat_load_result result = load_text("a,b\n", 4, "a int64, b text", with_header, "out");

	(void)state;
	assert_int_equal(result.read, 0);
	assert_string_equal(ask("SELECT count(*)::VARCHAR FROM '%s'", "out/rows.parquet"), "0|;");
}

static void
lines_of_json_are_rows_too(void **state)
{
	static const char text[] =
		"{\"id\": 1, \"x\": 0.5, \"name\": \"a \\u00e4\", \"day\": \"2026-11-18\", \"ok\": true, \"big\": "
		"18446744073709551615, \"tags\": [1, \"b\"]}\n"
		"\n"
		"{\"tags\": null, \"big\": 1, \"id\": 2}\r\n"
		"{\"id\": 3.5}\n"
		"{\"id\": \"4\"}\n"
		"{\"id\": 5, \"name\": 7}\n"
		"{\"id\": 6, \"ok\": 1}\n"
		"{\"id\": 7, \"day\": 20261118}\n"
		"{\"id\": 8, \"other\": 1}\n"
		"{\"id\": 9, \"id\": 9}\n"
		"{\"id\": 10\n"
		"[11]\n"
		"{\"id\": 12, \"name\": \"\xff\"}\n"
		"{\"id\": 13, \"junk\": {\"any\": 1}}";
	struct leat_load_result result =
		load_text(text, sizeof(text) - 1,
	                  "id int64, x double, name text, day date, ok bool, big uint64, tags text, junk skip",
	                  (struct leat_load){.format = LEAT_LOAD_JSONL}, "out");

	(void)state;
	assert_int_equal(result.kept, 3);
	assert_int_equal(result.rejected, 10);
	assert_int_equal(result.empty_lines, 1);
	assert_string_equal(ask("SELECT COLUMNS(*)::VARCHAR FROM '%s'", "out/rows.parquet"),
	                    "1|0.5|a \xc3\xa4|2026-11-18|true|18446744073709551615|[1, \"b\"]|;"
	                    "2|~|~|~|~|1|~|;13|~|~|~|~|~|~|;");
	assert_string_equal(
		ask("SELECT string_agg(line || ' ' || coalesce(\"column\", '-') || ' ' || reason, ';') FROM "
	            "read_json('%s', columns = {line: 'INT', \"column\": 'VARCHAR', reason: 'VARCHAR'})",
	            "out/rejects.jsonl"),
		"4 id '3.5' is no int64;5 id '4' is a text, no number;6 name '7' is no text;7 ok '1' is no bool: true "
		"or "
		"false;8 day '20261118' is no text with a date;9 - 'other' is a name that is not declared;10 - 'id' is "
		"a "
		"name that is there twice;11 - no JSON;12 - no JSON object;13 - invalid UTF-8|;");
}

/* ---- planted errors ---- */

enum { ROWS = 30000, MOST = 200 };

struct planted {
	char *text;
	size_t len;
	uint64_t line;
	int64_t *id;   /* of rows that are good, in order */
	uint64_t *bad; /* lines of those that are not */
	size_t good, bads;
};

static void
put(struct planted *p, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(p->text + p->len, MOST, fmt, ap);
	va_end(ap);
	assert_in_range(len, 1, MOST - 1);
	for (int i = 0; i < len; i++)
		p->line += p->text[p->len + (size_t)i] == '\n';
	p->len += (size_t)len;
}

static void
plant(struct planted *p, uint64_t seed)
{
	static const char *const bad[] = {
		"%" PRId64 ".7,1.5,good,2026-01-01\n",
		"%" PRId64 ",1.5x,text,2026-01-01\n",
		"%" PRId64 ",1,text,2026-13-01\n",
		"%" PRId64 ",1,text\n",
		"%" PRId64 ",1,text,2026-01-01,\n",
		"%" PRId64 ",1,\"text,2026-01-01\n",
		"%" PRId64 ",1,te\"xt,2026-01-01\n",
		"%" PRId64 ",1,\"te\"xt,2026-01-01\n",
		"%" PRId64 ",1,\xc3(,2026-01-01\n",
		"%" PRId64 ",1e400,text,2026-01-01\n",
		"9999999999999999999%" PRId64 ",1,,2026-01-01\n",
		"%" PRId64 ",1,\"two\nlines\",2026-1-1\n",
		"\"%" PRId64 "\n\",1,x,2026-01-01\n",
	};
	struct leat_rng rng;
	bool after_bad = false;

	leat_rng_init(&rng, seed, 0, 0, 0);
	*p = (struct planted){.text = malloc((size_t)ROWS * MOST), .line = 2};
	p->id = calloc(ROWS, sizeof(*p->id));
	p->bad = calloc(ROWS, sizeof(*p->bad));
	assert_true(p->text && p->id && p->bad);
	p->len = (size_t)snprintf(p->text, MOST, "id,x,note,day\n");
	for (int64_t i = 0; i < ROWS; i++) {
		after_bad = !after_bad && leat_rng_below(&rng, 12) == 0;
		if (after_bad)
			p->bad[p->bads++] = p->line;
		else
			p->id[p->good++] = i;
		if (after_bad)
			put(p, bad[leat_rng_below(&rng, sizeof(bad) / sizeof(*bad))], i);
		else if (leat_rng_coin(&rng))
			put(p, "%" PRId64 ",%" PRId64 ".25,\"v \"\"%" PRId64 "\"\",\nx\",2026-01-%02d\n", i, i, i,
			    (int)(i % 28) + 1);
		else
			put(p, "%" PRId64 ",%" PRId64 ".25,\"v \"\"%" PRId64 "\"\",\nx\",2026-01-%02d\r\n", i, i, i,
			    (int)(i % 28) + 1);
	}
}

static void
check_rows(const struct planted *p)
{
	char sql[sizeof(temp.path) + 200];
	struct leat_tables *tables;
	struct leat_query *query;
	struct leat_chunk chunk;
	size_t at = 0;

	snprintf(sql, sizeof(sql), "SELECT id, x, note, day FROM '%s'", temp_path(&temp, "out/rows.parquet"));
	assert_int_equal(leat_tables_open(&tables, &(struct leat_tables_options){.threads = 1}, NULL), LEAT_OK);
	assert_int_equal(leat_query_open(&query, tables, sql, NULL), LEAT_OK);
	while (leat_query_next(query, &chunk, NULL) == LEAT_OK && chunk.rows)
		for (size_t row = 0; row < chunk.rows; row++, at++) {
			char expected[64];
			const char *note;
			size_t len;

			assert_true(at < p->good);
			assert_int_equal(((const int64_t *)chunk.columns[0].values)[row], p->id[at]);
			assert_true(((const double *)chunk.columns[1].values)[row] == (double)p->id[at] + 0.25);
			note = leat_vector_text(&chunk.columns[2], row, &len);
			snprintf(expected, sizeof(expected), "v \"%" PRId64 "\",\nx", p->id[at]);
			assert_int_equal(len, strlen(expected));
			assert_memory_equal(note, expected, len);
			assert_int_equal(((const int32_t *)chunk.columns[3].values)[row], 20454 + p->id[at] % 28);
		}
	assert_int_equal(at, p->good);
	leat_query_close(query);
	leat_tables_close(tables);
}

static void
check_rejects(const struct planted *p)
{
	FILE *file = fopen(temp_path(&temp, "out/rejects.jsonl"), "re");
	char *line = NULL;
	size_t cap = 0, at = 0;

	assert_non_null(file);
	for (; getline(&line, &cap, file) > 0; at++) {
		json_t *reject = json_loads(line, 0, NULL);

		assert_non_null(reject);
		assert_true(at < p->bads);
		assert_int_equal(json_integer_value(json_object_get(reject, "line")), p->bad[at]);
		assert_string_equal(json_string_value(json_object_get(reject, "file")), "in.csv");
		assert_true(json_string_length(json_object_get(reject, "reason")) > 0);
		assert_true(json_string_length(json_object_get(reject, "raw")) > 0);
		json_decref(reject);
	}
	assert_int_equal(at, p->bads);
	free(line);
	fclose(file);
}

static void
check_counts(const struct planted *p)
{
	json_t *counts = json_load_file(temp_path(&temp, "out/counts.json"), 0, NULL);
	const char *name;
	json_t *value;
	json_int_t sum = 0;

	assert_non_null(counts);
	assert_int_equal(json_integer_value(json_object_get(counts, "read")), ROWS);
	assert_int_equal(json_integer_value(json_object_get(counts, "kept")), p->good);
	assert_int_equal(json_integer_value(json_object_get(counts, "rejected")), p->bads);
	json_object_foreach(json_object_get(counts, "reasons"), name, value) sum += json_integer_value(value);
	assert_int_equal(sum, p->bads);
	json_decref(counts);
}

static void
exactly_the_planted_records_are_rejected(void **state)
{
	static const char columns[] = "id int64, x double, note text, day date";
	unsigned char *one, *other;
	size_t one_len, other_len;
	struct planted p;

	(void)state;
	plant(&p, 1);
	load_text(p.text, p.len, columns, with_header, "out");
	assert_true(p.bads > ROWS / 20);
	check_rows(&p);
	check_rejects(&p);
	check_counts(&p);
	assert_true(mem.peak < 8 << 20); /* of a file of some megabytes, pieces */
	load_text(p.text, p.len, columns, with_header, "again");
	one = temp_read(temp_path(&temp, "out/rows.parquet"), &one_len);
	other = temp_read(temp_path(&temp, "again/rows.parquet"), &other_len);
	assert_int_equal(one_len, other_len);
	assert_memory_equal(one, other, one_len);
	free(one);
	free(other);
	free(p.text);
	free(p.id);
	free(p.bad);
}

/* However long a stretch of bad records is, what follows it is read. */
static void
many_bad_records_in_a_row_are_not_the_end(void **state)
{
	enum { BAD = 20000, LEN = 200 };
	struct leat_load_result result;
	char *text = malloc((size_t)BAD * LEN + 100);
	size_t len = 0;

	(void)state;
	assert_non_null(text);
	len += (size_t)snprintf(text, 100, "1\n");
	for (size_t i = 0; i < BAD; i++)
		len += (size_t)snprintf(text + len, LEN, "%0150zu,x\n", i);
	len += (size_t)snprintf(text + len, 100, "2\n");
	result = load_text(text, len, "a int64", without_header, "out");
	assert_int_equal(result.read, BAD + 2);
	assert_int_equal(result.kept, 2);
	assert_string_equal(ask("SELECT a::VARCHAR FROM '%s'", "out/rows.parquet"), "1|;2|;");
	free(text);
}

static void
a_file_that_cannot_be_read_is_no_result(void **state)
{
	static const unsigned char cut[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
	struct leat_load_result result;
	struct leat_err err;

	(void)state;
	assert_int_equal(try_load((const char *)cut, sizeof(cut), "a int64", without_header, "out", &result, &err),
	                 LEAT_DATA);
	assert_non_null(strstr(err.text, "is truncated"));
	assert_false(temp_exists(&temp, "out/rows.parquet"));
	assert_false(temp_exists(&temp, "out/counts.json"));
	assert_int_equal(try_load("b\n", 2, "a int64", with_header, "out", &result, &err), LEAT_DATA);
	assert_non_null(strstr(err.text, "has no column 'a'"));
}

static void
limits_are_shares_or_numbers(void **state)
{
	struct leat_reject_limit limit;

	(void)state;
	assert_int_equal(leat_reject_limit_read(&limit, "0.1%", NULL), LEAT_OK);
	assert_true(leat_reject_limit_holds(&limit, 1, 1000));
	assert_false(leat_reject_limit_holds(&limit, 1, 999));
	assert_true(leat_reject_limit_holds(&limit, 0, 0));
	assert_int_equal(leat_reject_limit_read(&limit, "100%", NULL), LEAT_OK);
	assert_true(leat_reject_limit_holds(&limit, 7, 7));
	assert_int_equal(leat_reject_limit_read(&limit, "0", NULL), LEAT_OK);
	assert_false(leat_reject_limit_holds(&limit, 1, 1000000));
	assert_int_equal(leat_reject_limit_read(&limit, "12", NULL), LEAT_OK);
	assert_true(leat_reject_limit_holds(&limit, 12, 12));
	assert_false(leat_reject_limit_holds(&limit, 13, 1000000));
	for (const char *const *bad =
	             (const char *const[]){"", "%", "-1", "101%", "1 %", ".5%", "0.1", "x", "1e3", NULL};
	     *bad; bad++)
		assert_int_equal(leat_reject_limit_read(&limit, *bad, NULL), LEAT_INVALID);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_type_arrives_as_it_was_written, setup, teardown),
		cmocka_unit_test_setup_teardown(columns_are_found_by_name_and_may_be_skipped, setup, teardown),
		cmocka_unit_test_setup_teardown(no_rows_are_a_table_too, setup, teardown),
		cmocka_unit_test_setup_teardown(lines_of_json_are_rows_too, setup, teardown),
		cmocka_unit_test_setup_teardown(exactly_the_planted_records_are_rejected, setup, teardown),
		cmocka_unit_test_setup_teardown(many_bad_records_in_a_row_are_not_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_that_cannot_be_read_is_no_result, setup, teardown),
		cmocka_unit_test_setup_teardown(limits_are_shares_or_numbers, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
