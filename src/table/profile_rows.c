/* profile_rows.c - see profile_inside.h */
#include "table/profile_inside.h"

#include <math.h>
#include <string.h>

#include "base/opt.h"

/* ---- columns as SQL ---- */

void
leat_profile_add_double(struct leat_str *sql, double x)
{
	char number[32];

	/* A plain 0.1 would be a DECIMAL. */
	leat_str_addf(sql, "CAST('%s' AS DOUBLE)", leat_format_number(number, sizeof(number), x));
}

void
leat_profile_add_words(struct leat_str *sql, size_t i)
{
	leat_str_addf(sql, "CAST(c%zu AS VARCHAR)", i);
}

void
leat_profile_add_number(struct leat_str *sql, const struct leat_profile_column *column, size_t i)
{
	if (column->class != LEAT_PROFILE_TIME) {
		bool is_float = strcmp(column->type, "DOUBLE") == 0 || strcmp(column->type, "FLOAT") == 0;

		leat_str_addf(sql,
		              is_float ? "CASE WHEN isfinite(c%zu) THEN CAST(c%zu AS DOUBLE) END"
		                       : "CAST(c%zu AS DOUBLE)",
		              i, i);
		return;
	}
	if (strstr(column->type, "TIME ZONE"))
		leat_str_addf(sql, "CASE WHEN isfinite(c%zu) THEN CAST(epoch_us(c%zu) AS DOUBLE) END", i, i);
	else
		leat_str_addf(sql,
		              "CASE WHEN isfinite(CAST(c%zu AS TIMESTAMP)) "
		              "THEN CAST(epoch_us(CAST(c%zu AS TIMESTAMP)) AS DOUBLE) END",
		              i, i);
}

/* ---- results ---- */

enum leat_status
leat_rows_open(struct leat_rows *rows, struct leat_tables *tables, struct leat_str *sql, struct leat_err *err)
{
	enum leat_status status = sql->failed ? leat_fail_mem(err, sql->mem, sql->len, "a query")
	                                      : leat_query_open(&rows->query, tables, leat_str_text(sql), err);

	if (status != LEAT_OK)
		rows->query = NULL;
	rows->chunk = (struct leat_chunk){0};
	rows->row = 0;
	leat_str_free(sql);
	return status;
}

enum leat_status
leat_rows_next(struct leat_rows *rows, struct leat_err *err)
{
	enum leat_status status;

	if (++rows->row < rows->chunk.rows)
		return LEAT_OK;
	status = leat_query_next(rows->query, &rows->chunk, err);
	rows->row = 0;
	if (status != LEAT_OK)
		return status;
	return rows->chunk.rows ? LEAT_OK : LEAT_END;
}

void
leat_rows_close(struct leat_rows *rows)
{
	leat_query_close(rows->query);
	rows->query = NULL;
}

uint64_t
leat_rows_count(const struct leat_rows *rows, size_t column)
{
	const struct leat_vector *v = &rows->chunk.columns[column];

	return leat_vector_is_null(v, rows->row) ? 0 : (uint64_t)((const int64_t *)v->values)[rows->row];
}

double
leat_rows_double(const struct leat_rows *rows, size_t column)
{
	const struct leat_vector *v = &rows->chunk.columns[column];

	return leat_vector_is_null(v, rows->row) ? NAN : ((const double *)v->values)[rows->row];
}

void
leat_rows_doubles(const struct leat_rows *rows, size_t column, double *x, size_t n)
{
	const struct leat_vector *v = &rows->chunk.columns[column];
	size_t first = 0, count = 0;

	if (!leat_vector_is_null(v, rows->row))
		leat_vector_list(v, rows->row, &first, &count);
	for (size_t i = 0; i < n; i++)
		x[i] = i < count && !leat_vector_is_null(&v->children[0], first + i)
		               ? ((const double *)v->children[0].values)[first + i]
		               : (double)NAN;
}

bool
leat_rows_text(const struct leat_rows *rows, size_t column, struct leat_profile_text *text, struct leat_mem *mem)
{
	const struct leat_vector *v = &rows->chunk.columns[column];
	const char *bytes;

	*text = (struct leat_profile_text){0};
	if (leat_vector_is_null(v, rows->row))
		return true;
	bytes = leat_vector_text(v, rows->row, &text->len);
	text->bytes = leat_alloc(mem, text->len + 1);
	if (text->bytes)
		memcpy(text->bytes, bytes, text->len);
	return text->bytes != NULL;
}
