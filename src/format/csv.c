/* csv.c - rows of comma-separated values, read in place
 *
 * table/csv_scan.c finds the cells. Unquoting never makes a cell longer, so it is done in place; the terminating NUL
 * overwrites the comma, the newline or a quote. Lists are forgiving: a quote inside an unquoted cell is text. */
#include "format/csv.h"

#include <string.h>

#include "base/array.h"
#include "base/mem.h"
#include "table/csv_scan.h"

enum { PIECE = 256 * 1024 };

/* Length of a byte order mark. */
static size_t
mark_length(const char *text, size_t len)
{
	return len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

void
leat_csv_begin(struct leat_csv *csv, char *text, size_t len)
{
	*csv = (struct leat_csv){.text = text, .len = len, .line = 1, .pos = mark_length(text, len)};
	text[len] = '\0';
}

static enum leat_status
fail_at(const struct leat_csv *csv, const char *at, const char *what, struct leat_err *err)
{
	uint64_t line = csv->line;

	for (const char *c = csv->text + csv->pos; c < at; c++)
		line += *c == '\n';
	return leat_fail(err, LEAT_DATA, "line %llu: %s", (unsigned long long)line, what);
}

/* Cells in place: decoded, with a NUL where the delimiter or the quote after each was. */
static enum leat_status
take_cells(const struct leat_csv *csv, const struct leat_csv_scan *scan, struct leat_csv_row *row, struct leat_err *err)
{
	if (scan->fields > LEAT_CSV_CELLS)
		return leat_fail(err, LEAT_DATA, "line %llu: it has more than %d cells", (unsigned long long)row->line,
		                 LEAT_CSV_CELLS);
	for (size_t i = 0; i < scan->fields; i++) {
		const char *nul = memchr(scan->field[i].text, '\0', scan->field[i].len);

		if (nul)
			return fail_at(csv, nul, "it has a NUL byte", err);
	}
	for (row->cells = 0; row->cells < scan->fields; row->cells++) {
		const struct leat_csv_field *field = &scan->field[row->cells];
		char *cell = csv->text + (field->text - csv->text);

		cell[leat_csv_unquote(field, cell)] = '\0';
		row->cell[row->cells] = cell;
	}
	return LEAT_OK;
}

/* LEAT_AGAIN: the text is not the last of its file, and the row may go on after it. */
static enum leat_status
next_row(struct leat_csv *csv, bool last, struct leat_csv_row *row, struct leat_err *err)
{
	const char *end = csv->text + csv->len;
	struct leat_csv_field field[LEAT_CSV_CELLS];
	struct leat_csv_scan scan = {.rules = {.delimiter = ',', .loose = true}, .field = field, .cap = LEAT_CSV_CELLS};
	enum leat_csv_end how;
	enum leat_status status;
	uint64_t lines = 1;

	for (size_t n; (n = leat_csv_line_end(csv->text + csv->pos, end, last)); csv->line++)
		csv->pos += n;
	if (csv->pos == csv->len)
		return last ? LEAT_END : LEAT_AGAIN;
	how = leat_csv_scan(&scan, csv->text + csv->pos, end, last);
	if (how == LEAT_CSV_MORE)
		return LEAT_AGAIN;
	if (how == LEAT_CSV_UNCLOSED)
		return fail_at(csv, scan.fault, "a quoted cell is not closed", err);
	if (how != LEAT_CSV_RECORD)
		return fail_at(csv, scan.fault, "text follows a closing quote", err);
	row->line = csv->line;
	for (const char *c = csv->text + csv->pos; scan.breaks && c < scan.next - 1; c++)
		lines += *c == '\n';
	status = take_cells(csv, &scan, row, err);
	csv->line += lines;
	csv->pos = (size_t)(scan.next - csv->text);
	return status;
}

enum leat_status
leat_csv_next(struct leat_csv *csv, struct leat_csv_row *row, struct leat_err *err)
{
	return next_row(csv, true, row, err);
}

/* ---- a file in pieces ---- */

static enum leat_status
read_text(void *arg, uint64_t offset, void *to, size_t len, struct leat_err *err)
{
	(void)err;
	memcpy(to, (const char *)arg + offset, len);
	return LEAT_OK;
}

struct leat_csv_input
leat_csv_text_input(const char *text, size_t len)
{
	return (struct leat_csv_input){read_text, (void *)text, len};
}

void
leat_csv_stream_init(struct leat_csv_stream *stream, const struct leat_csv_input *input, struct leat_mem *mem)
{
	*stream = (struct leat_csv_stream){.input = input, .mem = mem, .least = PIECE, .line = 1};
}

void
leat_csv_stream_free(struct leat_csv_stream *stream)
{
	leat_free(stream->mem, stream->piece);
	*stream = (struct leat_csv_stream){0};
}

enum leat_status
leat_csv_stream_fill(struct leat_csv_stream *stream, struct leat_err *err)
{
	uint64_t left = stream->input->size - stream->read;
	size_t kept = stream->len - stream->pos, room;
	enum leat_status status;

	if (kept > 0)
		memmove(stream->piece, stream->piece + stream->pos, kept);
	stream->len = kept;
	stream->pos = 0;
	/* A row longer than a piece makes it grow. One byte is for a NUL. */
	status =
		LEAT_GROW_RAW(stream->mem, stream->piece, stream->cap,
	                      kept < stream->least / 2 ? stream->least : 2 * kept, SIZE_MAX, "the rows of a list", err);
	if (status != LEAT_OK)
		return status;
	room = stream->cap - kept - 1;
	room = left < room ? (size_t)left : room;
	if (room > 0)
		status = stream->input->read(stream->input->arg, stream->read, stream->piece + kept, room, err);
	if (status != LEAT_OK)
		return status;
	if (stream->read == 0)
		stream->pos = mark_length(stream->piece, room);
	stream->read += room;
	stream->len += room;
	return LEAT_OK;
}

enum leat_status
leat_csv_stream_next(struct leat_csv_stream *stream, struct leat_csv_row *row, struct leat_err *err)
{
	struct leat_csv csv = {.text = stream->piece, .len = stream->len, .pos = stream->pos, .line = stream->line};
	enum leat_status status;

	if (stream->cap == 0)
		return LEAT_AGAIN;
	status = next_row(&csv, stream->read == stream->input->size, row, err);
	stream->pos = csv.pos;
	stream->line = csv.line;
	return status;
}
