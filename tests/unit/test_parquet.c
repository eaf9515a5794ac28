/* test_parquet.c - rows of Parquet tables are samples, kept whole or decoded by row group; what is damaged, null or of
 * another kind is told
 *
 * DuckDB writes the tables; python/tests/test_parquet.py reads those of others. Without DuckDB there is nothing to
 * test. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/rng.h"
#include "feed/feed.h"
#include "format/parquet_footer.h"
#include "support/source.h"
#include "support/temp.h"
#include "support/trace.h"
#include "support/web.h"
#include "table/duckdb.h"

static struct temp temp;
static char text[1500];
static const char *const ways[] = {"auto", "never"}; /* whole, and by row group */

static int
set_up(void **state)
{
	(void)state;
	temp_make(&temp);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	temp_remove(&temp);
	return 0;
}

/* Writes a file: the rows of a SELECT. */
static void
put_table(const char *name, const char *select, const char *options)
{
	struct leat_tables *tables;
	struct leat_err err;
	char sql[4000];

	leat_err_clear(&err);
	snprintf(sql, sizeof(sql), "COPY (%s) TO '%s/%s' (FORMAT parquet%s%s)", select, temp.folder, name,
	         *options ? ", " : "", options);
	if (leat_tables_open(&tables, &(struct leat_tables_options){.threads = 1}, &err) != LEAT_OK ||
	    leat_tables_run(tables, sql, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	leat_tables_close(tables);
}

/* parquet('FOLDER/files' and further arguments) */
static const char *
spec_of(const char *files, const char *arguments)
{
	snprintf(text, sizeof(text), "parquet('%s/%s'%s%s)", temp.folder, files, *arguments ? ", " : "", arguments);
	return text;
}

static const char *
spec_kept(const char *files, const char *arguments, const char *keep)
{
	char all[1000];

	snprintf(all, sizeof(all), "%s%skeep=%s", arguments, *arguments ? ", " : "", keep);
	return spec_of(files, all);
}

#define EXPECT_ROWS(type, name, dtype_, ...)                                                                           \
	do {                                                                                                           \
		const type expected[] = {__VA_ARGS__};                                                                 \
		struct leat_tensor tensor = whole_field(&whole, name);                                                 \
		assert_int_equal(tensor.dtype, dtype_);                                                                \
		assert_int_equal(tensor.ndim, 1);                                                                      \
		assert_int_equal(tensor.shape[0], sizeof(expected) / sizeof(*expected));                               \
		assert_memory_equal(tensor.data, expected, sizeof(expected));                                          \
	} while (0)

/* ---- types ---- */

static void
numbers_keep_their_type(void **state)
{
	struct whole whole;

	(void)state;
	put_table("t.parquet",
	          "SELECT (i % 2 = 1) AS b, (i - 100)::TINYINT AS i8, (i * -1000)::SMALLINT AS i16, "
	          "(i * -100000)::INTEGER AS i32, (i * -10000000000)::BIGINT AS i64, (i + 200)::UTINYINT AS u8, "
	          "(i + 60000)::USMALLINT AS u16, (i + 4000000000)::UINTEGER AS u32, "
	          "(i + 18446744073709551610)::UBIGINT AS u64, (i / 4)::FLOAT AS f32, (i / 8)::DOUBLE AS f64 "
	          "FROM range(3) t(i)",
	          "");
	for (int way = 0; way < 2; way++) {
		whole_open(&whole, spec_kept("t.parquet", "", ways[way]), NULL);
		assert_int_equal(whole.count, 3);
		EXPECT_ROWS(uint8_t, "b", LEAT_BOOL, 0, 1, 0);
		EXPECT_ROWS(int8_t, "i8", LEAT_I8, -100, -99, -98);
		EXPECT_ROWS(int16_t, "i16", LEAT_I16, 0, -1000, -2000);
		EXPECT_ROWS(int32_t, "i32", LEAT_I32, 0, -100000, -200000);
		EXPECT_ROWS(int64_t, "i64", LEAT_I64, 0, -10000000000, -20000000000);
		EXPECT_ROWS(uint8_t, "u8", LEAT_U8, 200, 201, 202);
		EXPECT_ROWS(uint16_t, "u16", LEAT_U16, 60000, 60001, 60002);
		EXPECT_ROWS(uint32_t, "u32", LEAT_U32, 4000000000, 4000000001, 4000000002);
		EXPECT_ROWS(uint64_t, "u64", LEAT_U64, 18446744073709551610u, 18446744073709551611u,
		            18446744073709551612u);
		EXPECT_ROWS(float, "f32", LEAT_F32, 0, 0.25f, 0.5f);
		EXPECT_ROWS(double, "f64", LEAT_F64, 0, 0.125, 0.25);
		whole_close(&whole);
	}
}

static void
times_are_microseconds_and_decimals_doubles(void **state)
{
	struct whole whole;

	(void)state;
	put_table("t.parquet",
	          "SELECT DATE '1970-01-02' AS d, TIMESTAMP '1970-01-01 00:00:01.000002' AS us, "
	          "TIMESTAMP_NS '1970-01-01 00:00:01.000002003' AS ns, TIMESTAMP_MS '1970-01-01 00:00:01.5' AS ms, "
	          "TIMESTAMPTZ '1970-01-01 01:00:00+01' AS tz, TIME '00:00:02' AS t, 12.5::DECIMAL(9, 2) AS dec, "
	          "-0.5::DECIMAL(38, 4) AS wide",
	          "");
	whole_open(&whole, spec_of("t.parquet", ""), NULL);
	EXPECT_ROWS(int64_t, "d", LEAT_I64, 86400000000);
	EXPECT_ROWS(int64_t, "us", LEAT_I64, 1000002);
	EXPECT_ROWS(int64_t, "ns", LEAT_I64, 1000002);
	EXPECT_ROWS(int64_t, "ms", LEAT_I64, 1500000);
	EXPECT_ROWS(int64_t, "tz", LEAT_I64, 0);
	EXPECT_ROWS(int64_t, "t", LEAT_I64, 2000000);
	EXPECT_ROWS(double, "dec", LEAT_F64, 12.5);
	EXPECT_ROWS(double, "wide", LEAT_F64, -0.5);
	whole_close(&whole);
}

static void
expect_numbers(const struct whole *whole, const char *name, int64_t row, const void *bytes, size_t len)
{
	size_t is;
	const void *at = whole_row(whole, name, row, &is);

	assert_int_equal(is, len);
	if (len)
		assert_memory_equal(at, bytes, len);
}

static void
text_and_lists_are_ragged(void **state)
{
	struct whole whole;

	(void)state;
	put_table("t.parquet",
	          "SELECT * FROM (VALUES ('', [1, 2, 3]::INTEGER[], 'ab\\x00c'::BLOB, [0.5]::DOUBLE[]), "
	          "('more than twelve bytes', []::INTEGER[], ''::BLOB, [1.5, 2.5]::DOUBLE[]), "
	          "('\u00e4', [7]::INTEGER[], '\\xFF'::BLOB, []::DOUBLE[])) t(s, l, b, d)",
	          "");
	for (int way = 0; way < 2; way++) {
		whole_open(&whole, spec_kept("t.parquet", "", ways[way]), NULL);
		whole_expect_text(&whole, "s", 0, "");
		whole_expect_text(&whole, "s", 1, "more than twelve bytes");
		whole_expect_text(&whole, "s", 2, "\u00e4");
		expect_numbers(&whole, "l", 0, (int32_t[]){1, 2, 3}, 12);
		expect_numbers(&whole, "l", 1, NULL, 0);
		expect_numbers(&whole, "l", 2, (int32_t[]){7}, 4);
		expect_numbers(&whole, "b", 0, "ab\0c", 4);
		expect_numbers(&whole, "b", 2, "\xff", 1);
		expect_numbers(&whole, "d", 1, (double[]){1.5, 2.5}, 16);
		assert_int_equal(whole_field(&whole, "l").dtype, LEAT_I32);
		assert_int_equal(whole_field(&whole, "d").dtype, LEAT_F64);
		whole_close(&whole);
	}
}

static void
lists_of_a_given_shape_are_dense(void **state)
{
	struct leat_tensor tensor;
	struct leat_options options;
	struct whole whole;

	(void)state;
	put_table("t.parquet", "SELECT [i, i + 1, i + 2, i + 3, i + 4, i + 5]::FLOAT[] AS x, i AS n FROM range(5) t(i)",
	          "");
	for (int way = 0; way < 2; way++) {
		whole_open(&whole, spec_kept("t.parquet", "columns=['x[2, 3]', n]", ways[way]), NULL);
		tensor = whole_field(&whole, "x");
		assert_int_equal(tensor.ndim, 3);
		assert_int_equal(tensor.shape[1], 2);
		assert_int_equal(tensor.shape[2], 3);
		for (int i = 0; i < 30; i++)
			assert_true(((const float *)tensor.data)[i] == (float)(i / 6 + i % 6));
		whole_close(&whole);
	}
	put_table("t.parquet", "SELECT range(i)::FLOAT[] AS x FROM range(5) t(i)", "");
	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	for (int way = 0; way < 2; way++) {
		whole_open(&whole, spec_kept("t.parquet", "columns=['x[3]']", ways[way]), &options);
		assert_int_equal(whole.count, 1);
		assert_int_equal(leat_bad_count(whole.feed), 4);
		assert_non_null(strstr(leat_bad_at(whole.feed, 0)->reason, "row 0: column 'x' has another length"));
		whole_close(&whole);
	}
}

static void
columns_come_in_the_order_they_are_named(void **state)
{
	struct whole whole;

	(void)state;
	put_table("t.parquet", "SELECT i AS a, 'x' AS \"b \"\"c\", i * 2 AS d, [i] AS e FROM range(3) t(i)", "");
	whole_open(&whole, spec_of("t.parquet", "columns=[d, 'b \"c']"), NULL);
	assert_int_equal(whole.feed->pipeline.schema.count, 2);
	assert_string_equal(whole.feed->pipeline.schema.entry[0].field.name, "d");
	EXPECT_ROWS(int64_t, "d", LEAT_I64, 0, 2, 4);
	whole_expect_text(&whole, "b \"c", 2, "x");
	whole_close(&whole);
}

/* ---- nulls ---- */

static void
put_nulls(void)
{
	put_table(
		"n.parquet",
		"SELECT i, CASE WHEN i = 3 THEN NULL ELSE i::DOUBLE END AS f, CASE WHEN i = 5 THEN NULL ELSE i END AS "
		"n, "
		"CASE WHEN i = 6 THEN NULL ELSE 'x' END AS s, CASE WHEN i = 7 THEN [1.0, NULL] ELSE [2.0] END::FLOAT[] "
		"AS l FROM range(10) t(i)",
		"");
}

static void
a_null_is_a_bad_sample_that_says_where(void **state)
{
	static const char *const reasons[] = {
		"n.parquet', row 3: column 'f' is null; use null=zero or null=nan, or replace nulls",
		"n.parquet', row 5: column 'n' is null; use null=zero, or replace nulls", "row 6: column 's' is null",
		"row 7: column 'l' has an element that is null"};
	struct leat_options options;
	struct whole whole;

	(void)state;
	put_nulls();
	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	for (int way = 0; way < 2; way++) {
		whole_open(&whole, spec_kept("n.parquet", "", ways[way]), &options);
		EXPECT_ROWS(int64_t, "i", LEAT_I64, 0, 1, 2, 4, 8, 9);
		assert_int_equal(leat_bad_count(whole.feed), 4);
		for (unsigned i = 0; i < 4; i++)
			if (!strstr(leat_bad_at(whole.feed, i)->reason, reasons[i]))
				fail_msg("'%s' does not say '%s'", leat_bad_at(whole.feed, i)->reason, reasons[i]);
		whole_close(&whole);
	}
}

static void
nulls_of_dense_columns_are_bad_samples_too(void **state)
{
	struct leat_options options;
	struct whole whole;

	(void)state;
	put_nulls();
	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	whole_open(&whole, spec_of("n.parquet", "columns=[i, f]"), &options);
	EXPECT_ROWS(int64_t, "i", LEAT_I64, 0, 1, 2, 4, 5, 6, 7, 8, 9);
	whole_close(&whole);
	whole_open(&whole, spec_of("n.parquet", "columns=[i, f], null=zero"), &options);
	assert_non_null(whole.feed->pipeline.bulk);
	whole_close(&whole);
}

static void
nulls_may_become_zeros_or_nan(void **state)
{
	struct leat_options options;
	struct whole whole;
	struct leat_tensor f;
	size_t len;

	(void)state;
	put_nulls();
	for (int way = 0; way < 2; way++) {
		whole_open(&whole, spec_kept("n.parquet", "null=zero", ways[way]), NULL);
		EXPECT_ROWS(double, "f", LEAT_F64, 0, 1, 2, 0, 4, 5, 6, 7, 8, 9);
		EXPECT_ROWS(int64_t, "n", LEAT_I64, 0, 1, 2, 3, 4, 0, 6, 7, 8, 9);
		whole_expect_text(&whole, "s", 6, "");
		expect_numbers(&whole, "l", 7, (float[]){1, 0}, 8);
		whole_close(&whole);

		trace_options(&options);
		options.on_error = LEAT_ON_ERROR_SKIP;
		whole_open(&whole, spec_kept("n.parquet", "null=nan", ways[way]), &options);
		EXPECT_ROWS(int64_t, "i", LEAT_I64, 0, 1, 2, 3, 4, 7, 8, 9);
		f = whole_field(&whole, "f");
		assert_true(isnan(((const double *)f.data)[3]));
		assert_true(isnan(((const float *)whole_row(&whole, "l", 5, &len))[1]));
		whole_close(&whole);
	}
}

/* ---- files and row groups ---- */

/* Three files, the second of them empty, with several row groups of 2,048 rows. */
static void
put_parts(void)
{
	static const char rows[] = "SELECT i, (i * 7 %% 101)::FLOAT AS x, repeat('ab', (i %% 5)::INTEGER) AS s, "
				   "range(i %% 4)::INTEGER[] AS l FROM range(%d, %d) t(i)";
	static const int range[][2] = {{0, 5000}, {5000, 5000}, {5000, 9000}};
	char select[400], name[32];

	for (int f = 0; f < 3; f++) {
		snprintf(select, sizeof(select), rows, range[f][0], range[f][1]);
		snprintf(name, sizeof(name), "part-%d.parquet", f);
		put_table(name, select, "ROW_GROUP_SIZE 2048");
	}
	temp_write(&temp, "_SUCCESS", "", 0);
	temp_write(&temp, ".part-0.parquet.crc", "crc", 3);
}

static void
a_folder_is_its_files_in_order(void **state)
{
	struct leat_tensor i;
	struct whole whole;

	(void)state;
	put_parts();
	for (int way = 0; way < 2; way++) {
		snprintf(text, sizeof(text), "parquet('%s', columns=[i], keep=%s) | batch(9000)", temp.folder,
		         ways[way]);
		whole_open(&whole, text, NULL);
		assert_int_equal(whole.count, 9000);
		assert_int_equal(whole.feed->pipeline.source.parts, 3);
		i = whole_field(&whole, "i");
		for (int64_t row = 0; row < 9000; row++)
			assert_int_equal(((const int64_t *)i.data)[row], row);
		whole_close(&whole);
	}
}

static void
samples_are_the_same_with_any_threads_ranks_and_stops(void **state)
{
	(void)state;
	put_table("t.parquet",
	          "SELECT i, repeat('ab', (i % 5)::INTEGER) AS s, range(i % 4)::INTEGER[] AS l FROM range(61) t(i)",
	          "");
	put_table("u.parquet", "SELECT i, 'x' AS s, [1]::INTEGER[] AS l FROM range(30) t(i)", "");
	promise_same(spec_of("*.parquet", ""));
	promise_same(spec_of("*.parquet", "columns=[i]"));
	promise_same_with(spec_of("*.parquet", "keep=never"), "shuffle(window=20)");
	promise_same_with(spec_of("*.parquet", "keep=never"), "interleave(2, 3)");
}

static void
both_ways_give_the_same(void **state)
{
	struct leat_options options;
	struct trace a, b;
	char spec[2000];

	(void)state;
	put_parts();
	trace_options(&options);
	options.seed = 3;
	for (int columns = 0; columns < 2; columns++) {
		for (int way = 0; way < 2; way++) {
			snprintf(spec, sizeof(spec), "%s | shuffle(block=500, window=3) | batch(64)",
			         spec_kept("part-*.parquet", columns ? "columns=[x, i]" : "", ways[way]));
			trace_run(way ? &b : &a, spec, &options);
		}
		assert_int_equal(a.samples, 9000);
		trace_compare(&a, &b, "kept and by row group");
		trace_free(&a);
		trace_free(&b);
	}
}

static void
files_on_servers_are_read_too(void **state)
{
	struct leat_options options;
	struct trace here, there;
	char uri[200], spec[2000];

	(void)state;
	put_parts();
	web_start();
	trace_options(&options);
	for (int f = 0; f < 3; f += 2) {
		size_t len;
		unsigned char *bytes;

		snprintf(uri, sizeof(uri), "part-%d.parquet", f);
		bytes = temp_read(temp_path(&temp, uri), &len);
		snprintf(uri, sizeof(uri), "%s/part-%d.parquet", web_address(), f);
		web_put(uri, bytes, len);
		free(bytes);
	}
	snprintf(spec, sizeof(spec), "%s | batch(100)", spec_of("part-*.parquet", ""));
	trace_run(&here, spec, &options);
	for (int way = 0; way < 2; way++) {
		snprintf(spec, sizeof(spec), "parquet('%s/part-0.parquet', '%s/part-2.parquet', keep=%s) | batch(100)",
		         web_address(), web_address(), ways[way]);
		trace_run(&there, spec, &options);
		trace_compare(&here, &there, "here and there");
		trace_free(&there);
	}
	trace_free(&here);
	web_stop();
}

static void
dense_columns_in_memory_go_in_bulk(void **state)
{
	struct whole whole;

	(void)state;
	put_parts();
	whole_open(&whole, spec_of("part-*.parquet", "columns=[i, x]"), NULL);
	assert_non_null(whole.feed->pipeline.bulk);
	whole_close(&whole);
	whole_open(&whole, spec_of("part-*.parquet", "columns=[i, s]"), NULL);
	assert_null(whole.feed->pipeline.bulk);
	whole_close(&whole);
}

static void
a_wide_table_is_read_in_pieces(void **state)
{
	struct leat_options options;
	struct leat_source *source;
	struct leat_extent extent;
	struct whole whole;

	(void)state;
	trace_options(&options);
	options.memory = (size_t)256 << 20;
	put_table("w.parquet",
	          "SELECT i AS a, repeat(md5(i::VARCHAR), 100) AS filler, i * 2 AS z FROM range(3000) t(i)",
	          "ROW_GROUP_SIZE 2048, COMPRESSION uncompressed");
	whole_open(&whole, spec_of("w.parquet", "columns=[a, z], keep=never"), &options);
	source = &whole.feed->pipeline.source;
	assert_int_equal(source->units, 2);
	source->kind->unit(source, 0, &extent);
	assert_int_equal(extent.length, 0);
	assert_int_equal(((const int64_t *)whole_field(&whole, "z").data)[999], 1998);
	whole_close(&whole);
	whole_open(&whole, spec_of("w.parquet", "keep=never"), &options);
	source = &whole.feed->pipeline.source;
	source->kind->unit(source, 0, &extent);
	assert_true(extent.length > 2048 * 3200);
	whole_close(&whole);
}

static void
rows_beyond_max_bytes_are_bad(void **state)
{
	struct leat_options options;
	struct whole whole;

	(void)state;
	put_table("t.parquet", "SELECT i, repeat('x', (i * 100)::INTEGER) AS s FROM range(10) t(i)", "");
	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	options.max_bytes = 500;
	for (int way = 0; way < 2; way++) {
		whole_open(&whole, spec_kept("t.parquet", "", ways[way]), &options);
		EXPECT_ROWS(int64_t, "i", LEAT_I64, 0, 1, 2, 3, 4);
		assert_non_null(strstr(leat_bad_at(whole.feed, 0)->reason, "more than max_bytes=500 allows"));
		whole_close(&whole);
	}
}

static void
an_empty_table_has_no_samples(void **state)
{
	struct leat_options options;
	struct trace trace;
	char spec[2000];

	(void)state;
	put_table("t.parquet", "SELECT i, 'x' AS s FROM range(0) t(i)", "");
	trace_options(&options);
	for (int way = 0; way < 2; way++) {
		snprintf(spec, sizeof(spec), "%s | batch(4)", spec_kept("t.parquet", "", ways[way]));
		trace_run(&trace, spec, &options);
		assert_int_equal(trace.status, LEAT_DONE);
		assert_int_equal(trace.samples, 0);
		trace_free(&trace);
	}
}

/* ---- refusals ---- */

static void
what_cannot_be_a_sample_is_refused(void **state)
{
	(void)state;
	put_table("t.parquet",
	          "SELECT i AS amount, {'a': i} AS nested, [[i]] AS lists, ['x'] AS texts FROM range(3) t(i)", "");
	expect_refused(spec_of("t.parquet", ""), LEAT_SPEC,
	               "column 'nested' cannot be a field: its type is STRUCT(a BIGINT), but samples hold numbers");
	expect_refused(spec_of("t.parquet", "columns=[lists]"), LEAT_SPEC, "its type is BIGINT[][]");
	expect_refused(spec_of("t.parquet", "columns=[texts]"), LEAT_SPEC, "its type is VARCHAR[]");
	expect_refused(spec_of("t.parquet", "columns=[amuont]"), LEAT_SPEC,
	               "there is no column 'amuont', did you mean 'amount'?");
	expect_refused(spec_of("t.parquet", "columns=[amount, amount]"), LEAT_SPEC, "it is given twice");
	expect_refused(spec_of("t.parquet", "columns=['amount[2]']"), LEAT_SPEC,
	               "only lists and bytes can be given a shape, not BIGINT");
	expect_refused(spec_of("t.parquet", "columns=['texts[0]']"), LEAT_SPEC, "its type is VARCHAR[]");
	expect_refused(spec_of("none-*.parquet", ""), LEAT_IO, "none-*.parquet");
}

static void
files_of_a_table_have_the_same_columns(void **state)
{
	struct whole whole;

	(void)state;
	put_table("a.parquet", "SELECT 1::BIGINT AS x, 2::BIGINT AS y", "");
	put_table("b.parquet", "SELECT 'z' AS other, 3::BIGINT AS y, 4::BIGINT AS x", "");
	whole_open(&whole, spec_of("?.parquet", ""), NULL);
	EXPECT_ROWS(int64_t, "x", LEAT_I64, 1, 4);
	EXPECT_ROWS(int64_t, "y", LEAT_I64, 2, 3);
	whole_close(&whole);
	put_table("b.parquet", "SELECT 3::INTEGER AS y, 4::BIGINT AS x", "");
	expect_refused(spec_of("?.parquet", ""), LEAT_DATA, "b.parquet' is INTEGER, but BIGINT in '");
	put_table("b.parquet", "SELECT 4::BIGINT AS x", "");
	expect_refused(spec_of("?.parquet", ""), LEAT_DATA, "b.parquet' has no column 'y', which '");
}

static void
other_files_are_refused(void **state)
{
	size_t len;
	unsigned char *bytes;

	(void)state;
	put_table("t.parquet", "SELECT i FROM range(1000) t(i)", "");
	bytes = temp_read(temp_path(&temp, "t.parquet"), &len);
	temp_write(&temp, "bad.parquet", "", 0);
	expect_refused(spec_of("bad.parquet", ""), LEAT_DATA, "bad.parquet' cannot be read: it is empty");
	temp_write(&temp, "bad.parquet", "id,name\n1,x\n2,y\n", 16);
	expect_refused(spec_of("bad.parquet", ""), LEAT_DATA, "it is not a Parquet file, or was cut off");
	temp_write(&temp, "bad.parquet", bytes, len / 2);
	expect_refused(spec_of("bad.parquet", ""), LEAT_DATA, "it is not a Parquet file, or was cut off");
	memcpy(bytes + len - 4, "PARE", 4);
	temp_write(&temp, "bad.parquet", bytes, len);
	expect_refused(spec_of("bad.parquet", ""), LEAT_DATA, "it is encrypted");
	free(bytes);
}

static void
a_random_order_of_row_groups_is_refused(void **state)
{
	char spec[2000];

	(void)state;
	put_parts();
	snprintf(spec, sizeof(spec), "%s | shuffle", spec_of("part-*.parquet", "keep=never"));
	expect_refused(spec, LEAT_SPEC,
	               "shuffle in random order is too slow on a Parquet table that is not kept in memory: use "
	               "shuffle(window) or shuffle(block=..., window=...), put cache before it, or use keep=auto");
}

/* ---- damage ---- */

static void
flip(const char *name, size_t from, size_t to)
{
	size_t len;
	unsigned char *bytes = temp_read(temp_path(&temp, name), &len);

	for (size_t i = from; i < to && i < len; i++)
		bytes[i] ^= 0x5a;
	temp_write(&temp, name, bytes, len);
	free(bytes);
}

static void
only_rows_of_a_damaged_group_are_bad(void **state)
{
	struct leat_options options;
	struct leat_extent extent;
	struct whole whole;

	(void)state;
	put_table("t.parquet", "SELECT i, md5(i::VARCHAR) AS s FROM range(6000) t(i)",
	          "ROW_GROUP_SIZE 2048, COMPRESSION zstd");
	whole_open(&whole, spec_of("t.parquet", "keep=never"), NULL);
	whole.feed->pipeline.source.kind->unit(&whole.feed->pipeline.source, 1, &extent);
	whole_close(&whole);
	flip("t.parquet", extent.offset, extent.offset + 64);
	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	for (int way = 0; way < 2; way++) {
		char spec[2000];

		snprintf(spec, sizeof(spec), "%s | batch(6000)", spec_kept("t.parquet", "", ways[way]));
		whole_open(&whole, spec, &options);
		assert_int_equal(whole.count, 6000 - 2048);
		assert_int_equal(((const int64_t *)whole_field(&whole, "i").data)[2048], 4096);
		assert_true(leat_bad_count(whole.feed) > 0); /* the list ends somewhere */
		if (!strstr(leat_bad_at(whole.feed, 0)->reason, "t.parquet', row 2048: row group 1 is damaged: "))
			fail_msg("%s", leat_bad_at(whole.feed, 0)->reason);
		assert_null(strstr(leat_bad_at(whole.feed, 0)->reason, "/proc/"));
		whole_close(&whole);
	}
}

/* The beginning is missing, so that chunks are outside. */
static void
rows_of_groups_outside_the_file_are_bad(void **state)
{
	struct leat_options options;
	struct whole whole;
	unsigned char *bytes;
	size_t len;

	(void)state;
	put_table("t.parquet", "SELECT i FROM range(6000) t(i)", "ROW_GROUP_SIZE 2048");
	bytes = temp_read(temp_path(&temp, "t.parquet"), &len);
	temp_write(&temp, "t.parquet", bytes + len / 2, len - len / 2);
	free(bytes);
	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	for (int way = 0; way < 2; way++) {
		whole_open(&whole, spec_kept("t.parquet", "", ways[way]), &options);
		assert_int_equal(whole.count, 0);
		assert_non_null(strstr(leat_bad_at(whole.feed, 0)->reason, "row group 0 is damaged: "));
		whole_close(&whole);
	}
}

/* Whatever bytes are changed, there is an error or there are samples. */
static void
damaged_files_never_crash(void **state)
{
	const unsigned runs = TEST_SLOW ? 60 : 300;
	struct leat_options options;
	unsigned char *bytes;
	struct leat_rng rng;
	unsigned refused = 0, bad = 0;
	size_t len;

	(void)state;
	put_table("t.parquet",
	          "SELECT i, (i / 3)::DOUBLE AS x, md5((i % 50)::VARCHAR) AS s, range(i % 4)::INTEGER[] AS l, "
	          "CASE WHEN i % 7 = 0 THEN NULL ELSE i END AS n FROM range(3000) t(i)",
	          "ROW_GROUP_SIZE 2048");
	bytes = temp_read(temp_path(&temp, "t.parquet"), &len);
	trace_options(&options);
	options.on_error = LEAT_ON_ERROR_SKIP;
	options.max_bad = UINT64_MAX;
	options.memory = (size_t)512 << 20;
	leat_rng_init(&rng, 1, 2, 3, 4);
	for (unsigned run = 0; run < runs; run++) {
		size_t cut = leat_rng_below(&rng, 12) ? len : (size_t)leat_rng_below(&rng, len);
		size_t footer = leat_load32(bytes + len - 8) + 8, from = leat_rng_below(&rng, 2) ? len - footer : 0;
		unsigned char *copy = malloc(len);
		struct leat_feed *feed;
		struct trace trace = {0};
		struct leat_err err;
		char spec[2000];

		memcpy(copy, bytes, len);
		for (uint64_t i = 0, changes = 1 + leat_rng_below(&rng, 4); i < changes; i++)
			copy[from + leat_rng_below(&rng, len - from)] ^= (unsigned char)(1 + leat_rng_below(&rng, 255));
		temp_write(&temp, "m.parquet", copy, cut);
		free(copy);
		snprintf(spec, sizeof(spec), "%s | batch(100)", spec_kept("m.parquet", "null=zero", ways[run % 2]));
		leat_err_clear(&err);
		if (leat_open(spec, &options, &feed, &err) != LEAT_OK) {
			assert_true(err.text[0]);
			assert_int_not_equal(err.status, LEAT_INTERNAL);
			refused++;
			continue;
		}
		trace_take(&trace, feed, 0);
		if (trace.status != LEAT_DONE)
			fail_msg("%s", trace.err.text);
		bad += leat_bad_count(feed) > 0;
		trace_free(&trace);
		leat_close(feed);
	}
	print_message("%u refused, %u with bad rows\n", refused, bad);
	assert_true(refused > 0 && bad > 0);
	free(bytes);
}

static void
a_file_that_changes_is_an_error(void **state)
{
	struct leat_options options;
	struct leat_batch *batch;
	struct leat_feed *feed;
	struct leat_err err;
	enum leat_status status;
	char spec[2000];

	(void)state;
	put_table("t.parquet", "SELECT i FROM range(100000) t(i)", "ROW_GROUP_SIZE 2048");
	trace_options(&options);
	options.threads = 1;
	snprintf(spec, sizeof(spec), "%s | batch(64) | prefetch(1)", spec_of("t.parquet", "keep=never"));
	feed = trace_open(spec, &options);
	assert_int_equal(leat_next(feed, &batch, &err), LEAT_OK);
	leat_release(batch);
	put_table("u.parquet", "SELECT i + 1 AS i FROM range(100000) t(i)", "ROW_GROUP_SIZE 2048");
	snprintf(spec, sizeof(spec), "%s/u.parquet", temp.folder);
	assert_int_equal(rename(spec, temp_path(&temp, "t.parquet")), 0);
	sleep(2); /* local files are compared once a second */
	while ((status = leat_next(feed, &batch, &err)) == LEAT_OK)
		leat_release(batch);
	assert_int_equal(status, LEAT_DATA);
	assert_non_null(strstr(err.text, "t.parquet"));
	leat_close(feed);
}

static void
lack_of_memory_is_an_error(void **state)
{
	char spec[2000];

	(void)state;
	put_table("t.parquet", "SELECT i, repeat('ab', (i % 5)::INTEGER) AS s FROM range(20) t(i)", "");
	snprintf(spec, sizeof(spec), "%s | batch(4)", spec_of("t.parquet", ""));
	promise_memory_errors(spec, NULL);
	snprintf(spec, sizeof(spec), "%s | batch(4)", spec_of("t.parquet", "keep=never"));
	promise_memory_errors(spec, NULL);
}

/* ---- footers ---- */

static void
a_cut_footer_lists_one_group(void **state)
{
	struct leat_parquet_footer footer, cut;
	struct leat_parquet_group group, only;
	struct leat_parquet_chunks walk;
	struct leat_parquet_chunk a, b;
	unsigned char *bytes, *to;
	uint64_t length, rows = 0;
	uint16_t *column;
	size_t len, leaves, at;

	(void)state;
	put_table("t.parquet", "SELECT i, {'a': i, 'b': [i]} AS s, i * 2 AS z FROM range(5000) t(i)",
	          "ROW_GROUP_SIZE 2048");
	bytes = temp_read(temp_path(&temp, "t.parquet"), &len);
	assert_null(leat_parquet_tail(bytes + len - 8, len, &length));
	assert_null(leat_parquet_footer_read(&footer, bytes + len - 8 - length, (size_t)length));
	assert_int_equal(footer.rows, 5000);
	assert_int_equal(footer.group_count, 3);
	column = calloc(LEAT_PARQUET_LEAVES, sizeof(*column));
	assert_null(leat_parquet_leaves(&footer, column, &leaves));
	assert_int_equal(leaves, 4);
	assert_memory_equal(column, ((uint16_t[]){0, 1, 1, 2}), 8);
	to = malloc(footer.len + LEAT_PARQUET_CUT_EXTRA);
	at = footer.groups_first;
	for (size_t i = 0; i < footer.group_count; i++, at = group.end) {
		assert_null(leat_parquet_group_read(&footer, at, &group));
		len = leat_parquet_footer_cut(&footer, &group, to);
		assert_null(leat_parquet_tail(to + len - 8, len, &length));
		assert_int_equal(length, len - 8);
		assert_null(leat_parquet_footer_read(&cut, to, (size_t)length));
		assert_int_equal(cut.rows, group.rows);
		assert_int_equal(cut.group_count, 1);
		assert_null(leat_parquet_group_read(&cut, cut.groups_first, &only));
		assert_int_equal(only.rows, group.rows);
		assert_null(leat_parquet_leaves(&cut, NULL, &leaves));
		assert_int_equal(leaves, 4);
		leat_parquet_chunks_begin(&walk, &cut, &only);
		assert_true(leat_parquet_chunks_next(&walk, &a));
		leat_parquet_chunks_begin(&walk, &footer, &group);
		assert_true(leat_parquet_chunks_next(&walk, &b));
		assert_true(a.offset == b.offset && a.length == b.length && a.unpacked == b.unpacked);
		rows += group.rows;
	}
	assert_int_equal(rows, 5000);
	free(column);
	free(bytes);
	free(to);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(numbers_keep_their_type, set_up, tear_down),
		cmocka_unit_test_setup_teardown(times_are_microseconds_and_decimals_doubles, set_up, tear_down),
		cmocka_unit_test_setup_teardown(text_and_lists_are_ragged, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lists_of_a_given_shape_are_dense, set_up, tear_down),
		cmocka_unit_test_setup_teardown(columns_come_in_the_order_they_are_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_null_is_a_bad_sample_that_says_where, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nulls_of_dense_columns_are_bad_samples_too, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nulls_may_become_zeros_or_nan, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_folder_is_its_files_in_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(samples_are_the_same_with_any_threads_ranks_and_stops, set_up,
	                                        tear_down),
		cmocka_unit_test_setup_teardown(both_ways_give_the_same, set_up, tear_down),
		cmocka_unit_test_setup_teardown(files_on_servers_are_read_too, set_up, tear_down),
		cmocka_unit_test_setup_teardown(dense_columns_in_memory_go_in_bulk, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_wide_table_is_read_in_pieces, set_up, tear_down),
		cmocka_unit_test_setup_teardown(rows_beyond_max_bytes_are_bad, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_empty_table_has_no_samples, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_cannot_be_a_sample_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(files_of_a_table_have_the_same_columns, set_up, tear_down),
		cmocka_unit_test_setup_teardown(other_files_are_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_random_order_of_row_groups_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(only_rows_of_a_damaged_group_are_bad, set_up, tear_down),
		cmocka_unit_test_setup_teardown(rows_of_groups_outside_the_file_are_bad, set_up, tear_down),
		cmocka_unit_test_setup_teardown(damaged_files_never_crash, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_file_that_changes_is_an_error, set_up, tear_down),
		cmocka_unit_test_setup_teardown(lack_of_memory_is_an_error, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_cut_footer_lists_one_group, set_up, tear_down),
	};
	struct leat_err err;

	leat_err_clear(&err);
	if (leat_duckdb_load(&err) != LEAT_OK) {
		fprintf(stderr, "skipped: %s\n", err.text);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
