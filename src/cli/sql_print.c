/* sql_print.c - rows of a query as a table, JSON or CSV
 *
 * DuckDB turns values into text. A table shows the first rows; all are counted. */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"
#include "cli/print.h"
#include "cli/sql.h"

enum { MAX_WIDTH = 48 }; /* characters of a cell */

struct sheet {
	struct leat_mem *mem;
	size_t columns, cells, cap;
	char **cell; /* the names first, then row by row */
	size_t *width;
	bool *right;
	uint64_t rows;
};

/* ---- cells ---- */

static size_t
width_of(const char *text)
{
	size_t width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

/* One line of visible characters, cut at MAX_WIDTH of them. */
static char *
cell_text(struct leat_mem *mem, const char *bytes, size_t len)
{
	char shown[4 * MAX_WIDTH + 8];
	size_t at = 0, width = 0;

	leat_show(shown, sizeof(shown) - 4, bytes, len);
	while (shown[at] && width < MAX_WIDTH) {
		size_t n = leat_utf8_length(shown + at);

		at += n ? n : 1;
		width++;
	}
	if (shown[at] || len > sizeof(shown) - 5) {
		while (at && ((unsigned char)shown[--at] & 0xc0) == 0x80)
			;
		memcpy(shown + at, "\xe2\x80\xa6", 4);
	}
	return leat_strdup(mem, shown);
}

static enum leat_status
add_cell(struct sheet *sheet, const char *bytes, size_t len, struct leat_err *err)
{
	enum leat_status status =
		LEAT_GROW(sheet->mem, sheet->cell, sheet->cap, sheet->cells + 1, SIZE_MAX, "a table", err);
	char *text = status == LEAT_OK ? cell_text(sheet->mem, bytes, len) : NULL;
	size_t column = sheet->cells % sheet->columns, width;

	if (!text)
		return status == LEAT_OK ? leat_fail_mem(err, sheet->mem, len, "a table") : status;
	width = width_of(text);
	if (width > sheet->width[column])
		sheet->width[column] = width;
	sheet->cell[sheet->cells++] = text;
	return LEAT_OK;
}

static enum leat_status
add_rows(struct sheet *sheet, const struct leat_chunk *chunk, uint64_t most, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t row = 0; row < chunk->rows && sheet->rows + row < most; row++)
		for (size_t i = 0; i < sheet->columns && status == LEAT_OK; i++) {
			const struct leat_vector *column = &chunk->columns[i];
			const char *text = "NULL";
			size_t len = 4;

			if (!leat_vector_is_null(column, row))
				text = leat_vector_text(column, row, &len);
			status = add_cell(sheet, text, len, err);
		}
	sheet->rows += chunk->rows;
	return status;
}

static void
print_rule(const struct sheet *sheet)
{
	for (size_t i = 0; i < sheet->columns; i++) {
		fputs(i ? "  " : "", stdout);
		for (size_t k = 0; k < sheet->width[i]; k++)
			putchar('-');
	}
	putchar('\n');
}

static void
print_cells(const struct sheet *sheet, size_t first)
{
	for (size_t i = 0; i < sheet->columns; i++) {
		const char *text = sheet->cell[first + i];
		int room = (int)(sheet->width[i] - width_of(text));
		bool last = i + 1 == sheet->columns;

		printf("%s%*s%s%*s", i ? "  " : "", sheet->right[i] ? room : 0, "", text,
		       sheet->right[i] || last ? 0 : room, "");
	}
	putchar('\n');
}

static void
print_sheet(const struct sheet *sheet)
{
	uint64_t shown = sheet->cells / sheet->columns - 1;

	fputs(leat_bold(stdout), stdout);
	print_cells(sheet, 0);
	fputs(leat_plain(stdout), stdout);
	print_rule(sheet);
	for (size_t i = sheet->columns; i < sheet->cells; i += sheet->columns)
		print_cells(sheet, i);
	if (shown < sheet->rows)
		printf("... %llu of %llu rows; --rows shows more\n", (unsigned long long)shown,
		       (unsigned long long)sheet->rows);
	else
		printf("(%llu row%s)\n", (unsigned long long)sheet->rows, leat_plural(sheet->rows));
}

/* ---- the query ---- */

static bool
is_number(const struct leat_column_type *type)
{
	return type->kind >= LEAT_COLUMN_INT8 && type->kind <= LEAT_COLUMN_DECIMAL;
}

static enum leat_status
open_sheet(struct sheet *sheet, const struct leat_columns *columns, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	sheet->columns = columns->count;
	sheet->width = leat_alloc_array(sheet->mem, columns->count, sizeof(*sheet->width));
	sheet->right = leat_alloc_array(sheet->mem, columns->count, sizeof(*sheet->right));
	if (!sheet->width || !sheet->right)
		return leat_fail_mem(err, sheet->mem, columns->count * sizeof(*sheet->width), "a table");
	for (size_t i = 0; i < columns->count && status == LEAT_OK; i++) {
		sheet->right[i] = is_number(&columns->type[i]);
		status = add_cell(sheet, columns->name[i], strlen(columns->name[i]), err);
	}
	return status;
}

static void
close_sheet(struct sheet *sheet)
{
	for (size_t i = 0; i < sheet->cells; i++)
		leat_free(sheet->mem, sheet->cell[i]);
	leat_free(sheet->mem, sheet->cell);
	leat_free(sheet->mem, sheet->width);
	leat_free(sheet->mem, sheet->right);
}

/* All values as text; NULL stays NULL. */
static enum leat_status
open_texts(struct leat_sql_job *job, const char *select, struct leat_query **query, struct leat_err *err)
{
	struct leat_str sql;
	enum leat_status status;

	leat_str_init(&sql, job->mem, SIZE_MAX);
	leat_str_addf(&sql, "SELECT %s FROM (%s\n) AS leat_row", select, job->sql.text);
	status = sql.failed ? leat_fail_mem(err, job->mem, sql.len, "a query")
	                    : leat_query_open(query, job->tables, leat_str_text(&sql), err);
	leat_str_free(&sql);
	return status;
}

static enum leat_status
print_table(struct leat_sql_job *job, const struct leat_columns *columns, struct leat_err *err)
{
	struct sheet sheet = {.mem = job->mem};
	struct leat_query *query = NULL;
	struct leat_chunk chunk;
	enum leat_status status = open_sheet(&sheet, columns, err);

	if (status == LEAT_OK)
		status = open_texts(job, "CAST(COLUMNS(*) AS VARCHAR)", &query, err);
	while (status == LEAT_OK && (status = leat_query_next(query, &chunk, err)) == LEAT_OK && chunk.rows)
		status = add_rows(&sheet, &chunk, (uint64_t)job->params->rows, err);
	leat_query_close(query);
	if (status == LEAT_OK)
		print_sheet(&sheet);
	close_sheet(&sheet);
	return status;
}

/* ---- JSON and CSV ---- */

static void
print_csv_cell(const char *text, size_t len)
{
	bool quoted = len == 0;

	for (size_t i = 0; i < len && !quoted; i++)
		quoted = text[i] == ',' || text[i] == '"' || text[i] == '\n' || text[i] == '\r';
	if (!quoted) {
		fwrite(text, 1, len, stdout);
		return;
	}
	putchar('"');
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"')
			putchar('"');
		putchar(text[i]);
	}
	putchar('"');
}

static void
print_lines(const struct leat_chunk *chunk, size_t columns, bool csv)
{
	for (size_t row = 0; row < chunk->rows; row++) {
		for (size_t i = 0; i < columns; i++) {
			const char *text;
			size_t len;

			if (i)
				putchar(',');
			if (leat_vector_is_null(&chunk->columns[i], row))
				continue;
			text = leat_vector_text(&chunk->columns[i], row, &len);
			if (csv)
				print_csv_cell(text, len);
			else
				fwrite(text, 1, len, stdout);
		}
		putchar('\n');
	}
}

static enum leat_status
print_rows(struct leat_sql_job *job, const struct leat_columns *columns, struct leat_err *err)
{
	bool csv = job->params->csv;
	struct leat_query *query = NULL;
	struct leat_chunk chunk;
	enum leat_status status = open_texts(
		job, csv ? "CAST(COLUMNS(*) AS VARCHAR)" : "CAST(to_json(leat_row) AS VARCHAR)", &query, err);

	for (size_t i = 0; status == LEAT_OK && csv && i < columns->count; i++) {
		if (i)
			putchar(',');
		print_csv_cell(columns->name[i], strlen(columns->name[i]));
	}
	if (status == LEAT_OK && csv)
		putchar('\n');
	while (status == LEAT_OK && (status = leat_query_next(query, &chunk, err)) == LEAT_OK && chunk.rows)
		print_lines(&chunk, csv ? columns->count : 1, csv);
	leat_query_close(query);
	return status;
}

enum leat_status
leat_sql_print(struct leat_sql_job *job, struct leat_err *err)
{
	struct leat_columns columns;
	enum leat_status status = leat_query_describe(job->tables, job->sql.text, &columns, err);

	if (status == LEAT_OK)
		status = job->params->json || job->params->csv ? print_rows(job, &columns, err)
		                                               : print_table(job, &columns, err);
	leat_columns_free(&columns);
	return status;
}
