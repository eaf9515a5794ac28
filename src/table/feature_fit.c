/* feature_fit.c - statistics of training rows that come out the same however the rows are divided
 *
 * Sums of doubles depend on the order in which they are added, and so on threads. Here DuckDB adds integers: values are
 * grouped by exponent, and the mantissas of a group add up exactly in 128 bits. The groups, a few dozen, are then added
 * without error and rounded once. So a sum is the correctly rounded one, as math.fsum of Python gives it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "table/features.h"

/* ---- options ---- */

bool
leat_quantile_of(const struct leat_opt_value *value, double *share)
{
	struct leat_parse p;
	struct leat_arg number = {0};
	struct leat_mem mem;
	bool is_number;

	if (value->type != LEAT_ARG_WORD || value->text[0] != 'p' || value->text[1] < '0' || value->text[1] > '9')
		return false;
	leat_mem_init(&mem, SIZE_MAX);
	is_number = leat_parse_begin(&p, value->text + 1, &mem, NULL) == LEAT_OK &&
	            leat_parse_value(&p, &number) == LEAT_OK && leat_parse_at_end(&p) &&
	            number.type == LEAT_ARG_NUMBER && !number.unit && number.number <= 100;
	if (is_number)
		*share = number.number / 100;
	leat_parse_free(&mem, p.blocks);
	return is_number;
}

/* ---- adding without error ---- */

/* Keeps `part` a list of doubles that do not overlap, from small to large, whose sum is exactly that of all numbers so
 * far (Shewchuk 1997). Returns how many there are. */
static size_t
grow(double *part, size_t parts, double x)
{
	size_t n = 0;

	for (size_t i = 0; i < parts; i++) {
		double y = part[i], high, low;

		if (fabs(x) < fabs(y)) {
			double t = x;

			x = y;
			y = t;
		}
		high = x + y;
		low = y - (high - x);
		if (low != 0)
			part[n++] = low;
		x = high;
	}
	part[n++] = x;
	return n;
}

/* Parts from large to small until one is lost in rounding. If that left the sum half way between two doubles, what is
 * below decides. */
static double
round_parts(const double *part, size_t parts)
{
	double high = part[--parts], low = 0;

	while (parts > 0 && low == 0) {
		double x = high, y = part[--parts];

		high = x + y;
		low = y - (high - x);
	}
	if (parts > 0 && ((low < 0 && part[parts - 1] < 0) || (low > 0 && part[parts - 1] > 0))) {
		double twice = low * 2, next = high + twice;

		if (next - high == twice)
			high = next;
	}
	return high;
}

/* The parts take the place of the numbers: there are never more of them. */
double
leat_exact_sum(double *number, size_t count)
{
	size_t parts = 0;

	for (size_t i = 0; i < count; i++) {
		double x = number[i];

		if (!isfinite(x))
			return x;
		parts = grow(number, parts, x);
	}
	return parts ? round_parts(number, parts) : 0;
}

/* ---- queries ---- */

enum { PIECE_BITS = 43, PIECES = 3, SHIFT = 54, MAX_GROUPS = 2200 };

/* The rows of a column that count. */
static void
add_finite(const struct leat_fitting *f, const char *expression, struct leat_str *sql)
{
	leat_str_addf(sql, "(SELECT x FROM (SELECT %s AS x FROM %s) WHERE isfinite(x))", expression, f->from);
}

/* An integer of 128 bits times 2^exponent, as doubles without error. */
static void
split_whole(__int128 whole, int exponent, double *out)
{
	unsigned __int128 rest = whole < 0 ? -(unsigned __int128)whole : (unsigned __int128)whole;

	for (int i = 0; i < PIECES; i++) {
		double piece = (double)(uint64_t)(rest & ((UINT64_C(1) << PIECE_BITS) - 1));

		out[i] = ldexp(whole < 0 ? -piece : piece, exponent + i * PIECE_BITS);
		rest >>= PIECE_BITS;
	}
}

static enum leat_status
add_groups(const struct leat_chunk *chunk, double *piece, size_t *pieces, int64_t *count, struct leat_err *err)
{
	const int32_t *exponent = chunk->columns[0].values;
	const uint64_t *sum = chunk->columns[1].values;
	const int64_t *rows = chunk->columns[2].values;

	for (size_t i = 0; i < chunk->rows; i++) {
		__int128 whole = (__int128)(((unsigned __int128)sum[2 * i + 1] << 64) | sum[2 * i]);

		if (*pieces + PIECES > MAX_GROUPS * PIECES)
			return leat_fail(err, LEAT_INTERNAL, "a sum has too many groups");
		split_whole(whole, exponent[i] - SHIFT, &piece[*pieces]);
		*pieces += PIECES;
		*count += rows[i];
	}
	return LEAT_OK;
}

/* Reads the groups, and adds them. */
static enum leat_status
read_sum(const struct leat_fitting *f, const char *sql, double *sum, int64_t *count, struct leat_err *err)
{
	double *piece = leat_alloc_array(f->mem, MAX_GROUPS * PIECES, sizeof(*piece));
	struct leat_query *query = NULL;
	struct leat_chunk chunk;
	size_t pieces = 0;
	enum leat_status status;

	*count = 0;
	if (!piece)
		return leat_fail_mem(err, f->mem, MAX_GROUPS * PIECES * sizeof(*piece), "a sum");
	status = leat_query_open(&query, f->tables, sql, err);
	while (status == LEAT_OK) {
		status = leat_query_next(query, &chunk, err);
		if (status != LEAT_OK || !chunk.rows)
			break;
		status = add_groups(&chunk, piece, &pieces, count, err);
	}
	*sum = leat_exact_sum(piece, pieces);
	if (status == LEAT_OK && !isfinite(*sum))
		status = leat_fail(err, LEAT_DATA, "the sum of its values is too large for a DOUBLE; clip them first");
	leat_query_close(query);
	leat_free(f->mem, piece);
	return status;
}

/* x * 2^(54 - e) is a whole number below 2^56, whether log2 rounded up or down at a power of two. Values below 2^-960
 * share an exponent and are rounded to a multiple of 2^-1014. */
enum leat_status
leat_fit_sum(const struct leat_fitting *f, const char *expression, double *sum, int64_t *count, struct leat_err *err)
{
	struct leat_str sql;
	enum leat_status status;

	leat_str_init(&sql, f->mem, SIZE_MAX / 4);
	leat_str_addf(
		&sql,
		"SELECT e, sum(CAST(x * pow(2e0, %d - e) AS BIGINT)), count(*) FROM (SELECT x, CASE WHEN x = 0 THEN "
		"-960 ELSE greatest(-960, CAST(floor(log2(abs(x))) AS INTEGER)) END AS e FROM ",
		SHIFT);
	add_finite(f, expression, &sql);
	leat_str_add(&sql, ") GROUP BY e");
	status = sql.failed ? leat_fail_mem(err, f->mem, sql.len, "a query")
	                    : read_sum(f, leat_str_text(&sql), sum, count, err);
	leat_str_free(&sql);
	return status;
}

enum leat_status
leat_fit_mean(const struct leat_fitting *f, double *mean, struct leat_err *err)
{
	int64_t count = 0;
	double sum = 0;
	enum leat_status status = leat_fit_sum(f, f->value, &sum, &count, err);

	if (status == LEAT_OK && !count)
		status = leat_fail(err, LEAT_DATA, "no training row has a value");
	if (status == LEAT_OK)
		*mean = sum / (double)count;
	return status;
}

/* The numbers of one row: DOUBLE columns, or one list of them. */
static enum leat_status
read_row(struct leat_query *query, double *out, size_t count, struct leat_err *err)
{
	struct leat_chunk chunk = {0};
	enum leat_status status = leat_query_next(query, &chunk, err);
	size_t first = 0, found = count;

	if (status != LEAT_OK)
		return status;
	if (!chunk.rows || leat_vector_is_null(&chunk.columns[0], 0))
		return leat_fail(err, LEAT_DATA, "no training row has a value");
	if (chunk.columns[0].type->kind != LEAT_COLUMN_LIST) {
		for (size_t i = 0; i < count; i++)
			out[i] = *(const double *)chunk.columns[i].values;
		return LEAT_OK;
	}
	leat_vector_list(&chunk.columns[0], 0, &first, &found);
	if (found != count)
		return leat_fail(err, LEAT_INTERNAL, "a query gave %zu numbers instead of %zu", found, count);
	memcpy(out, (const double *)chunk.columns[0].children[0].values + first, count * sizeof(*out));
	return LEAT_OK;
}

enum leat_status
leat_fit_row(const struct leat_fitting *f, const char *columns, double *out, size_t count, struct leat_err *err)
{
	struct leat_query *query = NULL;
	struct leat_str sql;
	enum leat_status status;

	leat_str_init(&sql, f->mem, SIZE_MAX / 4);
	leat_str_addf(&sql, "SELECT %s FROM ", columns);
	add_finite(f, f->value, &sql);
	status = sql.failed ? leat_fail_mem(err, f->mem, sql.len, "a query")
	                    : leat_query_open(&query, f->tables, leat_str_text(&sql), err);
	if (status == LEAT_OK)
		status = read_row(query, out, count, err);
	leat_query_close(query);
	leat_str_free(&sql);
	return status;
}

enum leat_status
leat_fit_quantiles(const struct leat_fitting *f, const double *share, size_t count, double *out, struct leat_err *err)
{
	struct leat_str columns;
	enum leat_status status;

	leat_str_init(&columns, f->mem, SIZE_MAX / 4);
	leat_str_add(&columns, "quantile_cont(x, [");
	for (size_t i = 0; i < count; i++) {
		leat_str_add(&columns, i ? ", " : "");
		leat_sql_add_number(&columns, share[i]);
	}
	leat_str_add(&columns, "])");
	status = columns.failed ? leat_fail_mem(err, f->mem, columns.len, "a query")
	                        : leat_fit_row(f, leat_str_text(&columns), out, count, err);
	leat_str_free(&columns);
	return status;
}

enum leat_status
leat_fit_numbers(const struct leat_fitting *f, size_t count, struct leat_err *err)
{
	leat_free(f->mem, f->fitted->number);
	f->fitted->number = leat_alloc_array(f->mem, count, sizeof(*f->fitted->number));
	f->fitted->numbers = f->fitted->number ? count : 0;
	return f->fitted->number ? LEAT_OK : leat_fail_mem(err, f->mem, count * sizeof(double), "fitted values");
}

/* ---- sums in SQL ---- */

enum { HIGH_BITS = 60, LOW_BITS = 150 }; /* below the exponent */

/* " * 2^n" */
static void
add_power(struct leat_str *sql, int n)
{
	leat_str_add(sql, " * ");
	leat_sql_add_number(sql, ldexp(1, n));
}

void
leat_sql_add_high(struct leat_str *sql, const char *value, int exponent)
{
	leat_str_addf(sql, "CAST(trunc(%s", value);
	add_power(sql, HIGH_BITS - exponent);
	leat_str_add(sql, ") AS HUGEINT)");
}

/* What `high` leaves over, which the subtraction gives without error. */
void
leat_sql_add_low(struct leat_str *sql, const char *value, int exponent)
{
	leat_str_addf(sql, "CAST(trunc((%s - trunc(%s", value, value);
	add_power(sql, HIGH_BITS - exponent);
	leat_str_add(sql, ")");
	add_power(sql, exponent - HIGH_BITS);
	leat_str_add(sql, ")");
	add_power(sql, LOW_BITS - exponent);
	leat_str_add(sql, ") AS HUGEINT)");
}

void
leat_sql_add_whole(struct leat_str *sql, const char *high, const char *low, int exponent)
{
	leat_str_addf(sql, "(CAST(%s AS DOUBLE)", high);
	add_power(sql, exponent - HIGH_BITS);
	leat_str_addf(sql, " + CAST(%s AS DOUBLE)", low);
	add_power(sql, exponent - LOW_BITS);
	leat_str_add(sql, ")");
}

enum leat_status
leat_fit_exponent(const struct leat_fitting *f, double center, int *exponent, struct leat_err *err)
{
	double range[2], most;
	enum leat_status status = leat_fit_row(f, "min(x), max(x)", range, 2, err);

	if (status != LEAT_OK)
		return status;
	most = fmax(fabs(range[0] - center), fabs(range[1] - center));
	*exponent = most > 0 && isfinite(most) ? ilogb(most) + 1 : most > 0 ? LEAT_EXACT_MAX : 0;
	*exponent = *exponent < LEAT_EXACT_MIN ? LEAT_EXACT_MIN : *exponent;
	*exponent = *exponent > LEAT_EXACT_MAX ? LEAT_EXACT_MAX : *exponent;
	return LEAT_OK;
}

/* ---- dictionaries ---- */

void
leat_dictionary_path(const struct leat_fitting *f, struct leat_str *path)
{
	leat_str_addf(path, "%s/%s.parquet", f->folder, f->fitted->dictionary);
}

enum leat_status
leat_fit_open_dictionary(const struct leat_fitting *f, struct leat_err *err)
{
	struct leat_str sql, path;
	enum leat_status status;

	leat_str_init(&sql, f->mem, SIZE_MAX / 4);
	leat_str_init(&path, f->mem, SIZE_MAX / 4);
	leat_dictionary_path(f, &path);
	leat_str_add(&sql, "SELECT count(*) FROM read_parquet(");
	leat_sql_quote(&sql, leat_str_text(&path), '\'');
	leat_str_add(&sql, ")");
	status = sql.failed || path.failed ? leat_fail_mem(err, f->mem, sql.len, "a query")
	                                   : leat_query_int64(f->tables, leat_str_text(&sql), &f->fitted->entries, err);
	if (status == LEAT_OK)
		status = leat_dictionary_open(f->tables, f->mem, f->folder, f->fitted, f->transform->lookup, err);
	leat_str_free(&sql);
	leat_str_free(&path);
	return status;
}

/* Of a list, each item counts. */
enum leat_status
leat_fit_dictionary(const struct leat_fitting *f, int64_t min_count, int64_t max_size, struct leat_err *err)
{
	struct leat_str sql, path;
	enum leat_status status = LEAT_OK;

	leat_str_init(&sql, f->mem, SIZE_MAX / 4);
	leat_str_init(&path, f->mem, SIZE_MAX / 4);
	leat_dictionary_path(f, &path);
	leat_str_addf(
		&sql,
		"COPY (SELECT row_number() OVER (ORDER BY n DESC, value) - 1 AS id, value, n AS count FROM (SELECT "
		"value, count(*) AS n FROM (SELECT %s(%s) AS value FROM %s) GROUP BY 1) WHERE value IS NOT NULL AND "
		"n >= %lld ORDER BY n DESC, value LIMIT %lld) TO ",
		f->kind == LEAT_VALUE_LIST ? "unnest" : "", f->value, f->from, (long long)min_count,
		(long long)max_size);
	leat_sql_quote(&sql, leat_str_text(&path), '\'');
	leat_str_add(&sql, " (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880)");
	if (sql.failed || path.failed)
		status = leat_fail_mem(err, f->mem, sql.len, "a query");
	if (status == LEAT_OK)
		status = leat_tables_run(f->tables, leat_str_text(&sql), err);
	if (status == LEAT_OK)
		status = leat_fit_open_dictionary(f, err);
	leat_str_free(&sql);
	leat_str_free(&path);
	return status;
}
