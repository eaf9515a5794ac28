/* csv.c - rows of comma-separated values, read in place
 *
 * Unquoting never makes a cell longer, so it is done in place; the terminating NUL
 * overwrites the comma, the newline or a quote. */
#include "format/csv.h"

#include <string.h>

void
leat_csv_begin(struct leat_csv *csv, char *text, size_t len)
{
	*csv = (struct leat_csv){.text = text, .len = len, .line = 1};
	text[len] = '\0';
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		csv->pos = 3;
}

/* The byte at `pos`; at the end of the text, a newline. */
static char
at(const struct leat_csv *csv, size_t pos)
{
	return pos < csv->len ? csv->text[pos] : '\n';
}

/* Length of the line ending at `pos`; 0: none. */
static size_t
line_end(const struct leat_csv *csv, size_t pos)
{
	return at(csv, pos) == '\n' ? 1 : at(csv, pos) == '\r' && at(csv, pos + 1) == '\n' ? 2 : 0;
}

static enum leat_status
read_quoted(struct leat_csv *csv, char **end, struct leat_err *err)
{
	uint64_t line = csv->line;
	char *out = csv->text + csv->pos;

	for (csv->pos++; csv->pos < csv->len; csv->pos++) {
		char c = csv->text[csv->pos];

		if (c == '"') {
			csv->pos++;
			if (at(csv, csv->pos) != '"') {
				*end = out;
				return LEAT_OK;
			}
		}
		csv->line += c == '\n';
		*out++ = c;
	}
	return leat_fail(err, LEAT_DATA, "line %llu: a quoted cell is not closed", (unsigned long long)line);
}

/* Reads one cell, and moves csv->pos to its delimiter. */
static enum leat_status
read_cell(struct leat_csv *csv, const char **cell, char **end, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	*cell = csv->text + csv->pos;
	if (csv->pos < csv->len && csv->text[csv->pos] == '"') {
		status = read_quoted(csv, end, err);
		if (status == LEAT_OK && at(csv, csv->pos) != ',' && !line_end(csv, csv->pos))
			return leat_fail(err, LEAT_DATA, "line %llu: text follows a closing quote",
			                 (unsigned long long)csv->line);
	} else {
		while (at(csv, csv->pos) != ',' && !line_end(csv, csv->pos))
			csv->pos++;
		*end = csv->text + csv->pos;
	}
	if (status == LEAT_OK && memchr(*cell, '\0', (size_t)(*end - *cell)))
		status = leat_fail(err, LEAT_DATA, "line %llu: it has a NUL byte", (unsigned long long)csv->line);
	return status;
}

enum leat_status
leat_csv_next(struct leat_csv *csv, struct leat_csv_row *row, struct leat_err *err)
{
	char *end = NULL;

	for (size_t n; csv->pos < csv->len && (n = line_end(csv, csv->pos)); csv->line++)
		csv->pos += n;
	if (csv->pos >= csv->len)
		return LEAT_END;
	row->line = csv->line;
	row->cells = 0;
	for (bool more = true; more;) {
		enum leat_status status;
		size_t newline;

		if (row->cells == LEAT_CSV_CELLS)
			return leat_fail(err, LEAT_DATA, "line %llu: it has more than %d cells",
			                 (unsigned long long)row->line, LEAT_CSV_CELLS);
		status = read_cell(csv, &row->cell[row->cells++], &end, err);
		if (status != LEAT_OK)
			return status;
		more = at(csv, csv->pos) == ',';
		newline = line_end(csv, csv->pos);
		csv->pos += more ? 1 : newline;
		csv->line += !more;
		*end = '\0';
	}
	return LEAT_OK;
}
