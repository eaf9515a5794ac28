/* csv.c - rows of comma-separated values, read in place
 *
 * Unquoting never makes a cell longer, so it is done in place; the terminating NUL
 * overwrites the comma, the newline or a quote. */
#include "format/csv.h"

#include <string.h>

#include "base/array.h"
#include "base/mem.h"

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

/* Length of the rest of a quoted cell, from its first quote on; `len` if it is not closed. */
static size_t
quoted_length(const char *text, size_t len)
{
	for (size_t i = 1; i < len; i++) {
		if (text[i] != '"')
			continue;
		if (i + 1 < len && text[i + 1] == '"')
			i++;
		else
			return i + 1;
	}
	return len;
}

/* Length of the first row with its line's end, and of empty lines before it; `len` if it does not end. */
static size_t
row_length(const char *text, size_t len)
{
	bool begins = true, empty = true; /* a cell; the line */

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n' && !empty)
			return i + 1;
		if (text[i] == '"' && begins)
			i += quoted_length(text + i, len - i) - 1;
		empty &= text[i] == '\n' || text[i] == '\r';
		begins = i < len && (text[i] == ',' || text[i] == '\n');
	}
	return len;
}

enum leat_status
leat_csv_stream_next(struct leat_csv_stream *stream, struct leat_csv_row *row, struct leat_err *err)
{
	size_t left = stream->len - stream->pos;
	size_t length = left > 0 ? row_length(stream->piece + stream->pos, left) : 0;
	struct leat_csv csv = {.text = stream->piece + stream->pos, .len = length, .line = stream->line};
	enum leat_status status;

	/* A row that ends with the piece may go on: a quote at its end may be the first of two. */
	if (length == left && stream->read < stream->input->size)
		return LEAT_AGAIN;
	if (left == 0)
		return stream->cap > 0 ? LEAT_END : LEAT_AGAIN;
	status = leat_csv_next(&csv, row, err);
	stream->pos += csv.pos < length ? csv.pos : length; /* past the end, if the last line has no end */
	stream->line = csv.line;
	return status;
}
