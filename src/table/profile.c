/* profile.c - see profile.h; a few queries for each column */
#include "table/profile.h"

#include <math.h>
#include <string.h>

#include "base/str.h"
#include "table/profile_inside.h"

enum { MAX_SQL = 1 << 20, CANDIDATES = 100, SCALE = 600 };

#define EXACT_DISTINCT 1000000
#define EXACT_ROWS 20000000

const double leat_profile_quantiles[LEAT_PROFILE_QUANTILES] = {0.05, 0.25, 0.5, 0.75, 0.95};

struct making {
	struct leat_profile *profile;
	struct leat_tables *tables;
	struct leat_profile_options options;
	struct leat_mem *mem;
	struct leat_err *err;
};

static void
begin(const struct making *m, struct leat_str *sql)
{
	leat_str_init(sql, m->mem, MAX_SQL);
}

static enum leat_status
fail_text(const struct making *m)
{
	return leat_fail_mem(m->err, m->mem, LEAT_PROFILE_TEXT, "a value of the table");
}

/* Runs a query and goes to its first row. LEAT_INTERNAL: it has none. */
static enum leat_status
first_row(const struct making *m, struct leat_rows *rows, struct leat_str *sql)
{
	enum leat_status status = leat_rows_open(rows, m->tables, sql, m->err);

	if (status == LEAT_OK)
		status = leat_rows_next(rows, m->err);
	return status == LEAT_END ? leat_fail(m->err, LEAT_INTERNAL, "a query of a profile has no result") : status;
}

static enum leat_status
run_sql(const struct making *m, struct leat_str *sql)
{
	enum leat_status status = sql->failed ? leat_fail_mem(m->err, m->mem, sql->len, "a query")
	                                      : leat_tables_run(m->tables, leat_str_text(sql), m->err);

	leat_str_free(sql);
	return status;
}

static enum leat_status
count_rows(const struct making *m, const char *table, uint64_t *count)
{
	struct leat_rows rows = {0};
	struct leat_str sql;
	enum leat_status status;

	begin(m, &sql);
	leat_str_addf(&sql, "SELECT count(*) FROM %s", table);
	status = first_row(m, &rows, &sql);
	if (status == LEAT_OK)
		*count = leat_rows_count(&rows, 0);
	leat_rows_close(&rows);
	return status;
}

/* ---- the table ---- */

static bool
is_any(const char *type, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(type, names[i]) == 0)
			return true;
	return false;
}

enum leat_profile_class
leat_profile_class_of(const struct leat_column_type *type)
{
	static const char *const numbers[] = {"TINYINT",   "SMALLINT", "INTEGER", "BIGINT",   "HUGEINT", "UTINYINT",
	                                      "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT", "FLOAT",   "DOUBLE"};
	static const char *const words[] = {"VARCHAR", "BOOLEAN", "UUID", "JSON", "TIME", "INTERVAL", "BIT"};

	if (type->kind == LEAT_COLUMN_LIST)
		return LEAT_PROFILE_LIST;
	if (type->kind == LEAT_COLUMN_ARRAY || type->kind == LEAT_COLUMN_STRUCT)
		return LEAT_PROFILE_OTHER;
	if (type->kind == LEAT_COLUMN_BLOB)
		return LEAT_PROFILE_BYTES;
	if (type->kind == LEAT_COLUMN_DECIMAL || is_any(type->name, numbers, sizeof(numbers) / sizeof(*numbers)))
		return LEAT_PROFILE_NUMBER;
	if (type->kind == LEAT_COLUMN_DATE || strncmp(type->name, "TIMESTAMP", 9) == 0)
		return LEAT_PROFILE_TIME;
	if (type->kind == LEAT_COLUMN_TEXT || is_any(type->name, words, sizeof(words) / sizeof(*words)) ||
	    strncmp(type->name, "ENUM", 4) == 0)
		return LEAT_PROFILE_WORDS;
	return LEAT_PROFILE_OTHER;
}

static enum leat_status
copy_columns(const struct making *m, const struct leat_query *query)
{
	struct leat_profile *p = m->profile;
	size_t count = leat_query_columns(query);

	p->column = leat_alloc_array(m->mem, count, sizeof(*p->column));
	if (!p->column)
		return leat_fail_mem(m->err, m->mem, count * sizeof(*p->column), "the profile");
	p->columns = count;
	for (size_t i = 0; i < count; i++) {
		const struct leat_column_type *type = leat_query_type(query, i);

		p->column[i].class = leat_profile_class_of(type);
		memcpy(p->column[i].type, type->name, sizeof(p->column[i].type));
		p->column[i].name = leat_strdup(m->mem, leat_query_name(query, i));
		if (!p->column[i].name)
			return leat_fail_mem(m->err, m->mem, 1, "the profile");
	}
	return LEAT_OK;
}

static enum leat_status
read_columns(const struct making *m, const char *table)
{
	struct leat_query *query = NULL;
	struct leat_str sql;
	enum leat_status status;

	begin(m, &sql);
	leat_str_addf(&sql, "SELECT * FROM %s LIMIT 0", table);
	status = leat_query_open(&query, m->tables, leat_str_text(&sql), m->err);
	if (status == LEAT_OK)
		status = copy_columns(m, query);
	leat_query_close(query);
	leat_str_free(&sql);
	return status;
}

/* The same sample each time: DuckDB draws it the same way only on one thread. */
static enum leat_status
use_one_thread(const struct making *m)
{
	return m->options.sample ? leat_tables_run(m->tables, "SET threads = 1", m->err) : LEAT_OK;
}

static enum leat_status
make_relation(const struct making *m, const char *table)
{
	const struct leat_profile_options *o = &m->options;
	enum leat_status status = use_one_thread(m);
	struct leat_str sql;

	if (status != LEAT_OK)
		return status;
	begin(m, &sql);
	leat_str_addf(&sql, "CREATE TEMP %s %s AS SELECT * FROM %s AS t(", o->copy || o->sample ? "TABLE" : "VIEW",
	              m->profile->relation, table);
	for (size_t i = 0; i < m->profile->columns; i++)
		leat_str_addf(&sql, "%sc%zu", i ? ", " : "", i);
	leat_str_add(&sql, ")");
	if (o->sample)
		leat_str_addf(&sql, " USING SAMPLE reservoir(%llu ROWS) REPEATABLE (1)", (unsigned long long)o->sample);
	return run_sql(m, &sql);
}

/* ---- distinct values, and the most frequent ---- */

static enum leat_status
count_distinct(const struct making *m, size_t i)
{
	struct leat_profile_column *c = &m->profile->column[i];
	struct leat_rows rows = {0};
	struct leat_str sql;
	enum leat_status status;

	begin(m, &sql);
	leat_str_addf(&sql, "SELECT count(*) FROM (SELECT DISTINCT c%zu FROM %s WHERE c%zu IS NOT NULL)", i,
	              m->profile->relation, i);
	status = first_row(m, &rows, &sql);
	if (status == LEAT_OK)
		c->distinct = leat_rows_count(&rows, 0);
	leat_rows_close(&rows);
	return status;
}

static enum leat_status
read_tops(const struct making *m, struct leat_profile_column *c, struct leat_str *sql)
{
	struct leat_rows rows = {0};
	enum leat_status status = leat_rows_open(&rows, m->tables, sql, m->err);

	while (status == LEAT_OK && (status = leat_rows_next(&rows, m->err)) == LEAT_OK && c->tops < LEAT_PROFILE_TOP) {
		struct leat_profile_top *top = &c->top[c->tops];

		if (!leat_rows_text(&rows, 0, &top->value, m->mem)) {
			status = fail_text(m);
			break;
		}
		c->tops++;
		top->value.cut = leat_rows_count(&rows, 1) > LEAT_PROFILE_TEXT;
		top->rows = leat_rows_count(&rows, 2);
		if (!c->approximate_distinct)
			c->distinct = leat_rows_count(&rows, 3);
	}
	leat_rows_close(&rows);
	return status == LEAT_END ? LEAT_OK : status;
}

/* Counts are exact. Of very many values, those that an approximate count finds frequent are counted. */
static enum leat_status
find_tops(const struct making *m, size_t i)
{
	struct leat_profile_column *c = &m->profile->column[i];
	const char *relation = m->profile->relation;
	struct leat_str sql;

	begin(m, &sql);
	leat_str_addf(&sql, "SELECT substr(v, 1, %d), length(v), n, count(*) OVER () FROM (SELECT ", LEAT_PROFILE_TEXT);
	leat_profile_add_words(&sql, i);
	leat_str_addf(&sql, " AS v, count(*) AS n FROM %s WHERE c%zu IS NOT NULL", relation, i);
	if (c->approximate_distinct) {
		leat_str_add(&sql, " AND ");
		leat_profile_add_words(&sql, i);
		leat_str_add(&sql, " IN (SELECT unnest(approx_top_k(");
		leat_profile_add_words(&sql, i);
		leat_str_addf(&sql, ", %d)) FROM %s WHERE c%zu IS NOT NULL)", CANDIDATES, relation, i);
	}
	leat_str_addf(&sql, " GROUP BY 1%s) ORDER BY n DESC, v LIMIT %d",
	              c->approximate_distinct ? " HAVING count(*) > 1" : "", LEAT_PROFILE_TOP);
	return read_tops(m, c, &sql);
}

/* The approximate count may be far off, so what could be below the limit is counted. */
static enum leat_status
profile_distinct(const struct making *m, size_t i)
{
	struct leat_profile_column *c = &m->profile->column[i];

	c->has_distinct = true;
	c->approximate_distinct = c->distinct > 2 * m->options.exact_distinct;
	if (c->class == LEAT_PROFILE_WORDS)
		return find_tops(m, i);
	return c->approximate_distinct ? LEAT_OK : count_distinct(m, i);
}

/* ---- numbers and times ---- */

/* Values from 1e100 on are made smaller for sums and differences, which would overflow. A power of two changes no
 * digit.
 */
static int
scale_of(const struct leat_profile_column *c)
{
	return fmax(fabs(c->low), fabs(c->high)) > 1e100 ? SCALE : 0;
}

static void
add_scaled(struct leat_str *sql, const struct leat_profile_column *c, size_t i)
{
	leat_str_add(sql, "(");
	leat_profile_add_number(sql, c, i);
	leat_str_add(sql, ")");
	if (scale_of(c))
		leat_str_addf(sql, " * pow(2, -%d)", SCALE);
}

static enum leat_status
profile_range(const struct making *m, size_t i)
{
	struct leat_profile_column *c = &m->profile->column[i];
	bool is_float = strcmp(c->type, "DOUBLE") == 0 || strcmp(c->type, "FLOAT") == 0;
	bool may_be_infinite = is_float || c->class == LEAT_PROFILE_TIME;
	struct leat_rows rows = {0};
	struct leat_str sql;
	enum leat_status status;

	begin(m, &sql);
	leat_str_add(&sql, "SELECT count(v), approx_count_distinct(v), count(x), "
	                   "CAST(min(v) FILTER (WHERE x IS NOT NULL) AS VARCHAR), "
	                   "CAST(max(v) FILTER (WHERE x IS NOT NULL) AS VARCHAR), min(x), max(x), ");
	leat_str_add(&sql, is_float ? "count(*) FILTER (WHERE isnan(v))" : "CAST(0 AS BIGINT)");
	leat_str_addf(&sql, " FROM (SELECT c%zu AS v, ", i);
	leat_profile_add_number(&sql, c, i);
	leat_str_addf(&sql, " AS x FROM %s)", m->profile->relation);
	status = first_row(m, &rows, &sql);
	if (status != LEAT_OK) {
		leat_rows_close(&rows);
		return status;
	}
	c->nulls = m->profile->rows - leat_rows_count(&rows, 0);
	c->distinct = leat_rows_count(&rows, 1);
	c->finite = leat_rows_count(&rows, 2);
	c->low = leat_rows_double(&rows, 5);
	c->high = leat_rows_double(&rows, 6);
	c->nan = leat_rows_count(&rows, 7);
	c->infinite = may_be_infinite ? leat_rows_count(&rows, 0) - c->finite - c->nan : 0;
	if (!leat_rows_text(&rows, 3, &c->min, m->mem) || !leat_rows_text(&rows, 4, &c->max, m->mem))
		status = fail_text(m);
	leat_rows_close(&rows);
	return status;
}

/* Mean, deviation, quantiles; and what is needed to choose bins. */
static enum leat_status
profile_moments(const struct making *m, size_t i, double outer[2])
{
	struct leat_profile_column *c = &m->profile->column[i];
	double found[LEAT_PROFILE_QUANTILES + 2];
	struct leat_rows rows = {0};
	struct leat_str sql;
	enum leat_status status;

	c->approximate_quantiles = c->finite > m->options.exact_rows;
	begin(m, &sql);
	leat_str_addf(&sql,
	              "SELECT avg(x), stddev_pop(x), %s(x, [0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99]) FROM (SELECT ",
	              c->approximate_quantiles ? "approx_quantile" : "quantile_cont");
	add_scaled(&sql, c, i);
	leat_str_addf(&sql, " AS x FROM %s)", m->profile->relation);
	status = first_row(m, &rows, &sql);
	if (status == LEAT_OK) {
		c->mean = ldexp(leat_rows_double(&rows, 0), scale_of(c));
		c->deviation = ldexp(leat_rows_double(&rows, 1), scale_of(c));
		leat_rows_doubles(&rows, 2, found, LEAT_PROFILE_QUANTILES + 2);
		for (size_t k = 0; k < LEAT_PROFILE_QUANTILES; k++)
			c->quantile[k] = ldexp(found[k + 1], scale_of(c));
		outer[0] = ldexp(found[0], scale_of(c));
		outer[1] = ldexp(found[LEAT_PROFILE_QUANTILES + 1], scale_of(c));
	}
	leat_rows_close(&rows);
	return status;
}

/* What values are multiples of: whole numbers of 1, dates of a day; 0: of nothing. */
static double
unit_of(const struct leat_profile_column *c)
{
	if (strcmp(c->type, "DATE") == 0)
		return 86400e6;
	return c->class == LEAT_PROFILE_NUMBER && strncmp(c->type, "DECIMAL", 7) != 0 &&
	                       strcmp(c->type, "DOUBLE") != 0 && strcmp(c->type, "FLOAT") != 0
	               ? 1
	               : 0;
}

/* Values far from 98 % of all would leave the others in one bin: the range ends before them. */
static void
clip(struct leat_profile_column *c, const double outer[2])
{
	double inner = outer[1] - outer[0], margin = inner / 10, unit = unit_of(c);

	if (inner <= 0 || c->high / 10 - c->low / 10 <= inner)
		return;
	c->clipped = true;
	c->bins_low = fmax(c->low, outer[0] - margin);
	c->bins_high = fmin(c->high, outer[1] + margin);
	if (unit > 0) {
		c->bins_low = floor(c->bins_low / unit) * unit;
		c->bins_high = ceil(c->bins_high / unit) * unit;
	}
}

/* Bins of whole numbers hold the same number of them each, or a flat distribution would look like a comb. */
static void
choose_bins(struct leat_profile_column *c, const double outer[2])
{
	double unit = unit_of(c), values, width;

	c->bins = LEAT_PROFILE_BINS;
	c->bins_low = c->low;
	c->bins_high = c->high;
	clip(c, outer);
	if (unit > 0) {
		values = (c->bins_high - c->bins_low) / unit + 1;
		width = ceil(values / LEAT_PROFILE_BINS);
		c->bins = (size_t)ceil(values / width);
		c->bins_high = c->bins_low + (double)c->bins * width * unit;
	} else if (c->low == c->high) {
		c->bins = 1;
	}
}

static enum leat_status
read_bins(const struct making *m, struct leat_profile_column *c, struct leat_str *sql)
{
	struct leat_rows rows = {0};
	enum leat_status status = leat_rows_open(&rows, m->tables, sql, m->err);

	while (status == LEAT_OK && (status = leat_rows_next(&rows, m->err)) == LEAT_OK) {
		uint64_t bin = leat_rows_count(&rows, 0);

		c->bin[bin < c->bins ? bin : c->bins - 1] += leat_rows_count(&rows, 1);
	}
	leat_rows_close(&rows);
	return status == LEAT_END ? LEAT_OK : status;
}

static enum leat_status
profile_bins(const struct making *m, size_t i)
{
	struct leat_profile_column *c = &m->profile->column[i];
	double low = ldexp(c->bins_low, -scale_of(c)), high = ldexp(c->bins_high, -scale_of(c));
	struct leat_str sql;

	if (c->bins == 1) {
		c->bin[0] = c->finite;
		return LEAT_OK;
	}
	begin(m, &sql);
	leat_str_add(&sql, "SELECT CAST(least(greatest(floor((x - ");
	leat_profile_add_double(&sql, low);
	leat_str_add(&sql, ") / ");
	leat_profile_add_double(&sql, high - low);
	leat_str_addf(&sql, " * %zu), 0), %zu) AS BIGINT), count(*) FROM (SELECT ", c->bins, c->bins - 1);
	add_scaled(&sql, c, i);
	leat_str_addf(&sql, " AS x FROM %s) WHERE x IS NOT NULL GROUP BY 1", m->profile->relation);
	return read_bins(m, c, &sql);
}

static enum leat_status
profile_number(const struct making *m, size_t i)
{
	struct leat_profile_column *c = &m->profile->column[i];
	double outer[2] = {0, 0};
	enum leat_status status = profile_range(m, i);

	if (status == LEAT_OK)
		status = profile_distinct(m, i);
	if (status != LEAT_OK || !c->finite)
		return status;
	status = profile_moments(m, i, outer);
	if (status != LEAT_OK)
		return status;
	choose_bins(c, outer);
	return profile_bins(m, i);
}

/* ---- texts and the rest ---- */

static enum leat_status
profile_text(const struct making *m, size_t i)
{
	struct leat_profile_column *c = &m->profile->column[i];
	bool words = c->class == LEAT_PROFILE_WORDS;
	struct leat_rows rows = {0};
	struct leat_str sql;
	enum leat_status status;

	begin(m, &sql);
	leat_str_addf(&sql, "SELECT count(v), approx_count_distinct(v), min(%s(v)), max(%s(v))",
	              words ? "length" : "octet_length", words ? "length" : "octet_length");
	if (words)
		leat_str_addf(&sql, ", substr(min(v), 1, %d), substr(max(v), 1, %d), length(min(v)), length(max(v))",
		              LEAT_PROFILE_TEXT, LEAT_PROFILE_TEXT);
	leat_str_add(&sql, " FROM (SELECT ");
	if (words)
		leat_profile_add_words(&sql, i);
	else
		leat_str_addf(&sql, "c%zu", i);
	leat_str_addf(&sql, " AS v FROM %s)", m->profile->relation);
	status = first_row(m, &rows, &sql);
	if (status == LEAT_OK) {
		c->nulls = m->profile->rows - leat_rows_count(&rows, 0);
		c->distinct = leat_rows_count(&rows, 1);
		c->has_length = c->nulls < m->profile->rows;
		c->shortest = leat_rows_count(&rows, 2);
		c->longest = leat_rows_count(&rows, 3);
	}
	if (status == LEAT_OK && words) {
		if (!leat_rows_text(&rows, 4, &c->min, m->mem) || !leat_rows_text(&rows, 5, &c->max, m->mem))
			status = fail_text(m);
		c->min.cut = leat_rows_count(&rows, 6) > LEAT_PROFILE_TEXT;
		c->max.cut = leat_rows_count(&rows, 7) > LEAT_PROFILE_TEXT;
	}
	leat_rows_close(&rows);
	return status == LEAT_OK ? profile_distinct(m, i) : status;
}

/* Lists have a length; of others, only NULLs are counted. */
static enum leat_status
profile_other(const struct making *m, size_t i)
{
	struct leat_profile_column *c = &m->profile->column[i];
	bool list = c->class == LEAT_PROFILE_LIST;
	struct leat_rows rows = {0};
	struct leat_str sql;
	enum leat_status status;

	begin(m, &sql);
	leat_str_addf(&sql, "SELECT count(c%zu)", i);
	if (list)
		leat_str_addf(&sql, ", min(len(c%zu)), max(len(c%zu))", i, i);
	leat_str_addf(&sql, " FROM %s", m->profile->relation);
	status = first_row(m, &rows, &sql);
	if (status == LEAT_OK) {
		c->nulls = m->profile->rows - leat_rows_count(&rows, 0);
		c->has_length = list && c->nulls < m->profile->rows;
		c->shortest = list ? leat_rows_count(&rows, 1) : 0;
		c->longest = list ? leat_rows_count(&rows, 2) : 0;
	}
	leat_rows_close(&rows);
	return status;
}

static enum leat_status
profile_column(const struct making *m, size_t i)
{
	switch (m->profile->column[i].class) {
	case LEAT_PROFILE_NUMBER:
	case LEAT_PROFILE_TIME:
		return profile_number(m, i);
	case LEAT_PROFILE_WORDS:
	case LEAT_PROFILE_BYTES:
		return profile_text(m, i);
	case LEAT_PROFILE_LIST:
	case LEAT_PROFILE_OTHER:
		break;
	}
	return profile_other(m, i);
}

enum leat_status
leat_profile_make(struct leat_profile *profile, struct leat_tables *tables, const char *sql, const char *relation,
                  const struct leat_profile_options *options, struct leat_mem *mem, struct leat_err *err)
{
	struct making m = {.profile = profile, .tables = tables, .options = *options, .mem = mem, .err = err};
	enum leat_status status;

	*profile = (struct leat_profile){.mem = mem};
	if (strlen(relation) >= sizeof(profile->relation))
		return leat_fail(err, LEAT_INVALID, "the name of a relation is too long");
	memcpy(profile->relation, relation, strlen(relation) + 1);
	if (!m.options.exact_distinct)
		m.options.exact_distinct = EXACT_DISTINCT;
	if (!m.options.exact_rows)
		m.options.exact_rows = EXACT_ROWS;
	status = read_columns(&m, sql);
	if (status == LEAT_OK)
		status = make_relation(&m, sql);
	if (status == LEAT_OK)
		status = count_rows(&m, relation, &profile->rows);
	profile->of_rows = profile->rows;
	if (status == LEAT_OK && options->sample)
		status = count_rows(&m, sql, &profile->of_rows);
	for (size_t i = 0; i < profile->columns && status == LEAT_OK; i++)
		status = profile_column(&m, i);
	return status;
}

static void
free_column(struct leat_profile_column *c, struct leat_mem *mem)
{
	for (size_t i = 0; i < c->tops; i++)
		leat_free(mem, c->top[i].value.bytes);
	leat_free(mem, c->min.bytes);
	leat_free(mem, c->max.bytes);
	leat_free(mem, c->name);
}

void
leat_profile_free(struct leat_profile *profile)
{
	for (size_t i = 0; profile->column && i < profile->columns; i++)
		free_column(&profile->column[i], profile->mem);
	if (profile->mem)
		leat_free(profile->mem, profile->column);
	*profile = (struct leat_profile){0};
}
