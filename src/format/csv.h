/* csv.h - rows of comma-separated values (RFC 4180), read in place
 *
 * Cells may be "quoted"; inside quotes, commas, newlines and doubled quotes are text. Lines
 * end in LF or CR LF. Empty lines and a byte order mark are skipped. One thread. */
#ifndef LEAT_FORMAT_CSV_H
#define LEAT_FORMAT_CSV_H

#include "base/err.h"

struct leat_mem;

enum { LEAT_CSV_CELLS = 2048 };

struct leat_csv {
	char *text; /* borrowed, written to */
	size_t len, pos;
	uint64_t line; /* at pos, from 1 */
};

struct leat_csv_row {
	uint64_t line; /* where it begins */
	size_t cells;
	const char *cell[LEAT_CSV_CELLS]; /* in the text, NUL-terminated */
};

/* `text` must have room for a NUL at text[len]. */
void leat_csv_begin(struct leat_csv *csv, char *text, size_t len);
/* LEAT_END: no more rows. Errors name the line. */
enum leat_status leat_csv_next(struct leat_csv *csv, struct leat_csv_row *row, struct leat_err *err);

/* ---- a file in pieces ---- */

/* Where the bytes of a CSV file come from. */
struct leat_csv_input {
	enum leat_status (*read)(void *arg, uint64_t offset, void *to, size_t len, struct leat_err *err);
	void *arg;
	uint64_t size;
};

struct leat_csv_input leat_csv_text_input(const char *text, size_t len); /* `text` is borrowed, and not changed */

/* Rows of a file of any length, of which a piece is in memory: at least a row. */
struct leat_csv_stream {
	const struct leat_csv_input *input;
	struct leat_mem *mem;
	char *piece;
	size_t least;         /* bytes of a piece */
	size_t cap, len, pos; /* rows before `pos` have been read */
	uint64_t read;        /* bytes of the file */
	uint64_t line;
};

void leat_csv_stream_init(struct leat_csv_stream *stream, const struct leat_csv_input *input, struct leat_mem *mem);
void leat_csv_stream_free(struct leat_csv_stream *stream);
/* LEAT_END: no more rows. LEAT_AGAIN: no more in this piece, call leat_csv_stream_fill; the cells of its rows end. */
enum leat_status leat_csv_stream_next(struct leat_csv_stream *stream, struct leat_csv_row *row, struct leat_err *err);
enum leat_status leat_csv_stream_fill(struct leat_csv_stream *stream, struct leat_err *err);

#endif
