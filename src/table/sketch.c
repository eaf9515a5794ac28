/* sketch.c - see sketch.h; one query reads the sample, and rows are counted here */
#include "table/sketch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "table/profile_inside.h"

enum { SAMPLE = 16384, VALUES = 32 * SAMPLE /* of all columns */, SEGMENTS = 8, WORD_BYTES = 48, MAX_SQL = 1 << 20 };

/* A column of the sample. */
struct values {
	double *number; /* NaN: not finite, too */
	char (*word)[WORD_BYTES];
	bool *is_null;
};

/* A row group. */
struct segment {
	uint64_t first, rows;
};

struct making {
	struct leat_sketch *sketch;
	struct leat_tables *tables;
	const char *path;
	enum leat_profile_class *class;
	struct values *values;
	struct leat_mem *mem;
	struct leat_err *err;
	size_t sample; /* rows at most */
	struct segment segment[SEGMENTS];
	size_t segments;
	bool has_gaps;   /* there are row groups that were not read */
	uint8_t *of_row; /* the segment of each row of `values` */
};

/* ---- the sample ---- */

static enum leat_status
read_columns(const struct making *m)
{
	struct leat_sketch *s = m->sketch;
	struct leat_query *query = NULL;
	struct leat_str sql;
	enum leat_status status;

	leat_str_init(&sql, m->mem, MAX_SQL);
	leat_str_add(&sql, "SELECT * FROM read_parquet(");
	leat_sql_quote(&sql, m->path, '\'');
	leat_str_add(&sql, ") LIMIT 0");
	status = leat_query_open(&query, m->tables, leat_str_text(&sql), m->err);
	leat_str_free(&sql);
	if (status != LEAT_OK)
		return status;
	s->columns = leat_query_columns(query);
	if (s->columns > LEAT_SKETCH_COLUMNS)
		s->columns = LEAT_SKETCH_COLUMNS;
	s->column = leat_alloc_array(m->mem, s->columns, sizeof(*s->column));
	if (!s->column)
		s->columns = 0;
	for (size_t i = 0; i < s->columns && status == LEAT_OK; i++) {
		const struct leat_column_type *type = leat_query_type(query, i);

		m->class[i] = leat_profile_class_of(type);
		s->column[i].is_words = m->class[i] == LEAT_PROFILE_WORDS;
		memcpy(s->column[i].type, type->name, sizeof(s->column[i].type));
		if (!(s->column[i].name = leat_strdup(m->mem, leat_query_name(query, i))))
			status = leat_fail_mem(m->err, m->mem, 1, "a sketch");
	}
	leat_query_close(query);
	return s->column ? status : leat_fail_mem(m->err, m->mem, sizeof(*s->column), "a sketch");
}

static bool
has_row_number(const struct leat_sketch *s)
{
	for (size_t i = 0; i < s->columns; i++)
		if (strcasecmp(s->column[i].name, "file_row_number") == 0)
			return true;
	return false;
}

/* Which row groups to read: a quarter of them, at least 4 and at most 8, at equal distances. */
static enum leat_status
choose_segments(struct making *m)
{
	uint64_t groups = 0, first = 0, want;
	struct leat_rows rows = {0};
	struct leat_str sql;
	enum leat_status status;

	leat_str_init(&sql, m->mem, MAX_SQL);
	leat_str_add(&sql, "SELECT row_group_num_rows, count(*) OVER () FROM parquet_metadata(");
	leat_sql_quote(&sql, m->path, '\'');
	leat_str_add(&sql, ") WHERE column_id = 0 ORDER BY row_group_id");
	status = leat_rows_open(&rows, m->tables, &sql, m->err);
	for (uint64_t i = 0; status == LEAT_OK && (status = leat_rows_next(&rows, m->err)) == LEAT_OK; i++) {
		uint64_t n = leat_rows_count(&rows, 0);

		groups = leat_rows_count(&rows, 1);
		want = groups / 4 < 4 ? 4 : groups / 4;
		want = want > SEGMENTS ? SEGMENTS : want > groups ? groups : want;
		if (m->segments < want && i == (2 * m->segments + 1) * groups / (2 * want))
			m->segment[m->segments++] = (struct segment){first, n};
		first += n;
	}
	m->sketch->rows = first;
	m->has_gaps = groups > m->segments && first > m->sample;
	leat_rows_close(&rows);
	return status == LEAT_END ? LEAT_OK : status;
}

/* DuckDB skips row groups outside of a range of rows, but only of one range at a time. */
static void
add_sample(const struct making *m, struct leat_str *sql)
{
	bool numbered = m->sketch->rows > m->sample && !has_row_number(m->sketch);
	uint64_t read = 0, step;

	for (size_t i = 0; i < m->segments; i++)
		read += m->segment[i].rows;
	step = (read + m->sample - m->segments - 1) / (m->sample - m->segments);
	for (size_t i = 0; i < (numbered ? m->segments : 1); i++) {
		uint64_t first = m->segment[i].first;

		leat_str_add(sql, i ? " UNION ALL SELECT *, " : "SELECT *, ");
		leat_str_addf(sql, "CAST(%zu AS BIGINT) AS leat_segment FROM read_parquet(", i);
		leat_sql_quote(sql, m->path, '\'');
		if (numbered)
			leat_str_addf(sql,
			              ", file_row_number = true) WHERE file_row_number BETWEEN %llu AND %llu AND "
			              "(file_row_number - %llu) %% %llu = 0",
			              (unsigned long long)first, (unsigned long long)(first + m->segment[i].rows - 1),
			              (unsigned long long)first, (unsigned long long)step);
		else
			leat_str_addf(sql, ") LIMIT %zu", m->sample);
	}
}

static void
add_value(struct leat_str *sql, const struct leat_sketch_column *column, enum leat_profile_class class, size_t i)
{
	struct leat_profile_column as = {.class = class};

	memcpy(as.type, column->type, sizeof(as.type));
	if (class == LEAT_PROFILE_WORDS) {
		leat_str_add(sql, "substr(");
		leat_profile_add_words(sql, i);
		leat_str_addf(sql, ", 1, %d)", WORD_BYTES);
	} else if (class == LEAT_PROFILE_NUMBER || class == LEAT_PROFILE_TIME) {
		leat_str_addf(sql, "CASE WHEN c%zu IS NOT NULL THEN coalesce(", i);
		leat_profile_add_number(sql, &as, i);
		leat_str_add(sql, ", CAST('nan' AS DOUBLE)) END");
	} else {
		leat_str_addf(sql, "CASE WHEN c%zu IS NOT NULL THEN CAST(0 AS DOUBLE) END", i);
	}
}

/* c0, c1, ...: names are hostile. */
static void
add_query(const struct making *m, struct leat_str *sql)
{
	const struct leat_sketch *s = m->sketch;

	leat_str_add(sql, "SELECT ");
	for (size_t i = 0; i < s->columns; i++) {
		leat_str_add(sql, i ? ", " : "");
		add_value(sql, &s->column[i], m->class[i], i);
	}
	leat_str_add(sql, ", leat_segment FROM (");
	add_sample(m, sql);
	leat_str_add(sql, ") AS t(");
	for (size_t i = 0; i < s->columns; i++)
		leat_str_addf(sql, "%sc%zu", i ? ", " : "", i);
	leat_str_add(sql, ")");
}

static bool
make_room(struct making *m)
{
	m->of_row = leat_alloc(m->mem, m->sample);
	if (!m->of_row)
		return false;
	for (size_t i = 0; i < m->sketch->columns; i++) {
		struct values *v = &m->values[i];

		v->is_null = leat_alloc(m->mem, m->sample * sizeof(*v->is_null));
		if (m->sketch->column[i].is_words)
			v->word = leat_alloc(m->mem, m->sample * sizeof(*v->word));
		else
			v->number = leat_alloc(m->mem, m->sample * sizeof(*v->number));
		if (!v->is_null || (!v->word && !v->number))
			return false;
	}
	return true;
}

static void
take(const struct leat_vector *vector, struct values *v, size_t from, size_t rows)
{
	for (size_t row = 0; row < rows; row++) {
		size_t at = from + row, len = 0;

		v->is_null[at] = leat_vector_is_null(vector, row);
		if (v->is_null[at])
			continue;
		if (v->number) {
			v->number[at] = ((const double *)vector->values)[row];
		} else {
			const char *text = leat_vector_text(vector, row, &len);

			len = strnlen(text, len < WORD_BYTES - 1 ? len : WORD_BYTES - 1);
			while (len > 0 && ((unsigned char)text[len - 1] & 0xC0) == 0x80 && len >= WORD_BYTES - 4)
				len--; /* not in the middle of a character */
			memcpy(v->word[at], text, len);
			v->word[at][len] = '\0';
		}
	}
}

static enum leat_status
read_sample(struct making *m)
{
	struct leat_query *query = NULL;
	struct leat_chunk chunk = {0};
	struct leat_str sql;
	enum leat_status status;
	size_t rows = 0;

	if (!make_room(m))
		return leat_fail_mem(m->err, m->mem, m->sample * sizeof(double), "a sketch");
	leat_str_init(&sql, m->mem, MAX_SQL);
	add_query(m, &sql);
	status = sql.failed ? leat_fail_mem(m->err, m->mem, sql.len, "a query")
	                    : leat_query_open(&query, m->tables, leat_str_text(&sql), m->err);
	while (status == LEAT_OK && (status = leat_query_next(query, &chunk, m->err)) == LEAT_OK && chunk.rows) {
		size_t n = chunk.rows < m->sample - rows ? chunk.rows : m->sample - rows;

		for (size_t i = 0; i < m->sketch->columns; i++)
			take(&chunk.columns[i], &m->values[i], rows, n);
		for (size_t row = 0; row < n; row++)
			m->of_row[rows + row] =
				(uint8_t)((const int64_t *)chunk.columns[m->sketch->columns].values)[row];
		rows += n;
	}
	m->sketch->sampled = rows;
	leat_query_close(query);
	leat_str_free(&sql);
	return status;
}

/* ---- bins ---- */

/* Bins of numbers: below the first edge, equal to it, between it and the next, ...; NULL; not finite. */
static size_t
bin_of_number(const struct leat_sketch_column *c, double x)
{
	size_t bin = 0;

	for (size_t i = 0; i < c->edges; i++)
		bin += (size_t)(x >= c->edge[i]) + (size_t)(x > c->edge[i]);
	return bin;
}

/* Words, all others, NULL. */
static size_t
bin_of_word(const struct leat_sketch_column *c, const char *word)
{
	for (size_t i = 0; i < c->words; i++)
		if (strcmp(c->word[i], word) == 0)
			return i;
	return c->words;
}

static size_t
bins_of(const struct leat_sketch_column *c)
{
	return c->is_words ? c->words + 2 : 2 * c->edges + 3;
}

/* Counts a sample over the bins of `c`, which may be of another table. */
static void
count_values(const struct leat_sketch_column *c, const struct values *v, size_t rows, double *count)
{
	size_t null = c->is_words ? c->words + 1 : 2 * c->edges + 1;

	memset(count, 0, LEAT_SKETCH_BINS * sizeof(*count));
	for (size_t i = 0; i < rows; i++) {
		if (v->is_null[i])
			count[null]++;
		else if (c->is_words)
			count[bin_of_word(c, v->word[i])]++;
		else
			count[isfinite(v->number[i]) ? bin_of_number(c, v->number[i]) : null + 1]++;
	}
}

static int
compare_numbers(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Deciles of the sample, without repetitions. */
static void
find_edges(struct leat_sketch_column *c, const struct values *v, size_t rows, double *sorted)
{
	size_t n = 0;

	for (size_t i = 0; i < rows; i++)
		if (!v->is_null[i] && isfinite(v->number[i]))
			sorted[n++] = v->number[i];
	qsort(sorted, n, sizeof(*sorted), compare_numbers);
	for (size_t i = 1; n > 0 && i <= LEAT_SKETCH_EDGES; i++) {
		double x = sorted[(n - 1) * i / (LEAT_SKETCH_EDGES + 1)];

		if (!c->edges || x > c->edge[c->edges - 1])
			c->edge[c->edges++] = x;
	}
}

struct frequency {
	const char *word;
	size_t rows;
};

static int
compare_words(const void *a, const void *b)
{
	return strcmp(((const struct frequency *)a)->word, ((const struct frequency *)b)->word);
}

static int
most_frequent_first(const void *a, const void *b)
{
	const struct frequency *x = a, *y = b;

	return x->rows != y->rows ? (x->rows < y->rows) - (x->rows > y->rows) : strcmp(x->word, y->word);
}

static bool
find_words(struct leat_sketch_column *c, const struct values *v, size_t rows, struct frequency *all,
           struct leat_mem *mem)
{
	size_t n = 0, distinct = 0;

	for (size_t i = 0; i < rows; i++)
		if (!v->is_null[i])
			all[n++] = (struct frequency){v->word[i], 1};
	qsort(all, n, sizeof(*all), compare_words);
	for (size_t i = 0; i < n; i++)
		if (distinct && strcmp(all[distinct - 1].word, all[i].word) == 0)
			all[distinct - 1].rows++;
		else
			all[distinct++] = all[i];
	qsort(all, distinct, sizeof(*all), most_frequent_first);
	for (; c->words < distinct && c->words < LEAT_SKETCH_WORDS; c->words++)
		if (!(c->word[c->words] = leat_strdup(mem, all[c->words].word)))
			return false;
	return true;
}

static int
order_of(const struct values *v, size_t a, size_t b)
{
	return v->number ? compare_numbers(&v->number[a], &v->number[b]) : strcmp(v->word[a], v->word[b]);
}

/* Is a column sorted as the rows are, such as the key or a time? Then row groups hold different parts of its range, and
 * a sample of them says nothing about the rest. */
static bool
is_sorted(const struct making *m, size_t i)
{
	const struct values *v = &m->values[i];
	size_t low[SEGMENTS], high[SEGMENTS], up = 0, down = 0;

	for (size_t k = 0; k < m->segments; k++)
		low[k] = high[k] = SIZE_MAX;
	for (size_t row = 0; row < m->sketch->sampled; row++) {
		size_t k = m->of_row[row];

		if (v->is_null[row] || (v->number && !isfinite(v->number[row])))
			continue;
		if (low[k] == SIZE_MAX || order_of(v, row, low[k]) < 0)
			low[k] = row;
		if (high[k] == SIZE_MAX || order_of(v, row, high[k]) > 0)
			high[k] = row;
	}
	for (size_t k = 1; k < m->segments; k++) {
		if (low[k - 1] == SIZE_MAX || low[k] == SIZE_MAX)
			return false;
		up += order_of(v, high[k - 1], low[k]) <= 0;
		down += order_of(v, low[k - 1], high[k]) >= 0;
	}
	/* A constant goes both ways. */
	return m->segments > 1 && up != down && (up == m->segments - 1 || down == m->segments - 1);
}

static enum leat_status
fill_column(const struct making *m, size_t i, void *scratch)
{
	struct leat_sketch_column *c = &m->sketch->column[i];
	size_t rows = m->sketch->sampled;

	if (!c->is_words)
		find_edges(c, &m->values[i], rows, scratch);
	else if (!find_words(c, &m->values[i], rows, scratch, m->mem))
		return leat_fail_mem(m->err, m->mem, WORD_BYTES, "a sketch");
	c->bins = bins_of(c);
	c->is_sorted = m->has_gaps && is_sorted(m, i);
	count_values(c, &m->values[i], rows, c->count);
	return LEAT_OK;
}

/* ---- drift ---- */

static const struct leat_sketch_column *
find(const struct leat_sketch *sketch, const char *name)
{
	for (size_t i = 0; i < sketch->columns; i++)
		if (strcasecmp(sketch->column[i].name, name) == 0)
			return &sketch->column[i];
	return NULL;
}

static void
compare(const struct making *m, size_t i, const struct leat_sketch *then)
{
	struct leat_sketch_column *c = &m->sketch->column[i];
	const struct leat_sketch_column *was = find(then, c->name);
	double now[LEAT_SKETCH_BINS];

	if (!was) {
		c->moved = LEAT_DRIFT_ADDED;
		return;
	}
	if (was->is_words != c->is_words) {
		c->moved = LEAT_DRIFT_TYPE;
		return;
	}
	if (!then->sampled || !m->sketch->sampled || c->is_sorted || was->is_sorted)
		return;
	count_values(was, &m->values[i], m->sketch->sampled, now);
	c->compared = true;
	c->moved = leat_drift_judge(was->count, now, was->bins, &c->psi, &c->js);
}

double
leat_sketch_drift(const struct leat_sketch *sketch)
{
	double most = -1;

	for (size_t i = 0; i < sketch->columns; i++)
		if (sketch->column[i].compared && sketch->column[i].psi > most)
			most = sketch->column[i].psi;
	return most;
}

/* ---- all of it ---- */

static enum leat_status
fill(const struct making *m, const struct leat_sketch *then)
{
	size_t bytes = SAMPLE * (sizeof(struct frequency) > sizeof(double) ? sizeof(struct frequency) : sizeof(double));
	void *scratch = leat_alloc(m->mem, bytes);
	enum leat_status status = scratch ? LEAT_OK : leat_fail_mem(m->err, m->mem, bytes, "a sketch");

	for (size_t i = 0; i < m->sketch->columns && status == LEAT_OK; i++) {
		status = fill_column(m, i, scratch);
		if (status == LEAT_OK && then)
			compare(m, i, then);
	}
	leat_free(m->mem, scratch);
	return status;
}

enum leat_status
leat_sketch_make(struct leat_sketch *sketch, struct leat_tables *tables, const char *path,
                 const struct leat_sketch *then, const char *since, struct leat_mem *mem, struct leat_err *err)
{
	enum leat_profile_class class[LEAT_SKETCH_COLUMNS];
	struct values values[LEAT_SKETCH_COLUMNS] = {{0}};
	struct making m = {.sketch = sketch,
	                   .tables = tables,
	                   .path = path,
	                   .class = class,
	                   .values = values,
	                   .mem = mem,
	                   .err = err,
	                   .sample = SAMPLE};
	enum leat_status status;

	*sketch = (struct leat_sketch){.mem = mem};
	if (then && !(sketch->since = leat_strdup(mem, since)))
		return leat_fail_mem(err, mem, strlen(since), "a sketch");
	status = read_columns(&m);
	if (status == LEAT_OK)
		status = choose_segments(&m);
	if (sketch->columns * SAMPLE > VALUES)
		m.sample = VALUES / sketch->columns;
	if (status == LEAT_OK)
		status = read_sample(&m);
	if (status == LEAT_OK)
		status = fill(&m, then);
	for (size_t i = 0; i < LEAT_SKETCH_COLUMNS; i++) {
		leat_free(mem, values[i].number);
		leat_free(mem, values[i].word);
		leat_free(mem, values[i].is_null);
	}
	leat_free(mem, m.of_row);
	return status;
}

void
leat_sketch_free(struct leat_sketch *sketch)
{
	for (size_t i = 0; i < sketch->columns; i++) {
		leat_free(sketch->mem, sketch->column[i].name);
		for (size_t k = 0; k < sketch->column[i].words; k++)
			leat_free(sketch->mem, sketch->column[i].word[k]);
	}
	if (sketch->mem) {
		leat_free(sketch->mem, sketch->since);
		leat_free(sketch->mem, sketch->column);
	}
	*sketch = (struct leat_sketch){0};
}

/* ---- as JSON ---- */

static const char *const moved_names[] = {
	[LEAT_DRIFT_NONE] = "no",     [LEAT_DRIFT_UNSURE] = "unsure", [LEAT_DRIFT_SOME] = "some",
	[LEAT_DRIFT_LARGE] = "large", [LEAT_DRIFT_TYPE] = "type",     [LEAT_DRIFT_ADDED] = "added",
};

enum { MOVED = sizeof(moved_names) / sizeof(*moved_names) };

static json_t *
numbers_json(const double *x, size_t n)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(array, floor(x[i]) == x[i] && fabs(x[i]) < 1e15 ? json_integer((json_int_t)x[i])
		                                                                      : json_real(x[i]));
	return array;
}

static json_t *
column_json(const struct leat_sketch_column *c, bool since)
{
	json_t *json = json_object(), *words;

	json_object_set_new(json, "name", json_string(c->name));
	json_object_set_new(json, "type", json_string(c->type));
	if (c->is_words) {
		words = json_array();
		for (size_t i = 0; i < c->words; i++)
			json_array_append_new(words, json_string(c->word[i]));
		json_object_set_new(json, "words", words);
	} else {
		json_object_set_new(json, "edges", numbers_json(c->edge, c->edges));
	}
	json_object_set_new(json, "counts", numbers_json(c->count, c->bins));
	if (c->compared) {
		json_object_set_new(json, "psi", json_real(c->psi));
		json_object_set_new(json, "js", json_real(c->js));
	}
	if (c->is_sorted)
		json_object_set_new(json, "sorted", json_true());
	if (since)
		json_object_set_new(json, "moved", json_string(moved_names[c->moved]));
	return json;
}

json_t *
leat_sketch_json(const struct leat_sketch *sketch)
{
	json_t *json = json_object(), *columns = json_array();

	json_object_set_new(json, "rows", json_integer((json_int_t)sketch->rows));
	json_object_set_new(json, "sampled", json_integer((json_int_t)sketch->sampled));
	if (sketch->since)
		json_object_set_new(json, "since", json_string(sketch->since));
	for (size_t i = 0; i < sketch->columns; i++)
		json_array_append_new(columns, column_json(&sketch->column[i], sketch->since != NULL));
	json_object_set_new(json, "columns", columns);
	return json;
}

/* ---- from JSON ---- */

/* False: it is no list of at most `max` finite numbers. */
static bool
read_numbers(const json_t *array, double *x, size_t max, size_t *n)
{
	*n = json_array_size(array);
	if (!json_is_array(array) || *n > max)
		return false;
	for (size_t i = 0; i < *n; i++) {
		const json_t *value = json_array_get(array, i);

		x[i] = json_number_value(value);
		if (!json_is_number(value) || !isfinite(x[i]))
			return false;
	}
	return true;
}

static bool
read_json_words(const json_t *array, struct leat_sketch_column *c, struct leat_mem *mem)
{
	size_t n = json_array_size(array);

	if (n > LEAT_SKETCH_WORDS)
		return false;
	for (; c->words < n; c->words++) {
		const char *word = json_string_value(json_array_get(array, c->words));

		if (!word || !(c->word[c->words] = leat_strdup(mem, word)))
			return false;
	}
	return true;
}

static void
read_drift(const json_t *json, struct leat_sketch_column *c)
{
	const char *moved = json_string_value(json_object_get(json, "moved"));

	c->is_sorted = json_is_true(json_object_get(json, "sorted"));
	c->compared = json_is_number(json_object_get(json, "psi"));
	c->psi = json_number_value(json_object_get(json, "psi"));
	c->js = json_number_value(json_object_get(json, "js"));
	for (size_t i = 0; moved && i < MOVED; i++)
		if (strcmp(moved, moved_names[i]) == 0)
			c->moved = (enum leat_drift_size)i;
}

static bool
read_column(const json_t *json, struct leat_sketch_column *c, struct leat_mem *mem)
{
	const char *name = json_string_value(json_object_get(json, "name"));
	const char *type = json_string_value(json_object_get(json, "type"));
	const json_t *words = json_object_get(json, "words");

	if (!name || !type || strlen(type) >= sizeof(c->type) || !(c->name = leat_strdup(mem, name)))
		return false;
	memcpy(c->type, type, strlen(type) + 1);
	c->is_words = json_is_array(words);
	if (c->is_words ? !read_json_words(words, c, mem)
	                : !read_numbers(json_object_get(json, "edges"), c->edge, LEAT_SKETCH_EDGES, &c->edges))
		return false;
	if (!read_numbers(json_object_get(json, "counts"), c->count, LEAT_SKETCH_BINS, &c->bins) ||
	    c->bins != (c->is_words ? c->words + 2 : 2 * c->edges + 3))
		return false;
	for (size_t i = 0; i < c->bins; i++)
		if (c->count[i] < 0)
			return false;
	read_drift(json, c);
	return true;
}

static bool
read_members(struct leat_sketch *sketch, const json_t *json)
{
	const json_t *columns = json_object_get(json, "columns");
	const char *since = json_string_value(json_object_get(json, "since"));
	json_int_t rows = json_integer_value(json_object_get(json, "rows"));
	json_int_t sampled = json_integer_value(json_object_get(json, "sampled"));
	size_t n = json_array_size(columns);

	if (!json_is_array(columns) || n > LEAT_SKETCH_COLUMNS || rows < 0 || sampled < 0)
		return false;
	sketch->rows = (uint64_t)rows;
	sketch->sampled = (uint64_t)sampled;
	if (since && !(sketch->since = leat_strdup(sketch->mem, since)))
		return false;
	sketch->column = leat_alloc_array(sketch->mem, n, sizeof(*sketch->column));
	if (!sketch->column)
		return false;
	while (sketch->columns < n) {
		const json_t *column = json_array_get(columns, sketch->columns);

		if (!read_column(column, &sketch->column[sketch->columns++], sketch->mem))
			return false;
	}
	return true;
}

enum leat_status
leat_sketch_read(struct leat_sketch *sketch, const char *text, size_t len, struct leat_mem *mem, struct leat_err *err)
{
	json_t *json = len > LEAT_SKETCH_MAX ? NULL : json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	bool good;

	*sketch = (struct leat_sketch){.mem = mem};
	good = json_is_object(json) && read_members(sketch, json);
	json_decref(json);
	return good ? LEAT_OK : leat_fail(err, LEAT_DATA, "the profile of a run is damaged");
}
