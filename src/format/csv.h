/* csv.h - rows of comma-separated values (RFC 4180), read in place
 *
 * Cells may stand in "quotes", in which a comma, a newline or a doubled quote is text. Lines
 * end in LF or CR LF; empty lines and a byte order mark are passed over. One thread. */
#ifndef LEAT_FORMAT_CSV_H
#define LEAT_FORMAT_CSV_H

#include "base/err.h"

enum { LEAT_CSV_CELLS = 2048 };

struct leat_csv {
	char *text; /* borrowed, written to */
	size_t len, pos;
	uint64_t line; /* at pos, counted from 1 */
};

struct leat_csv_row {
	uint64_t line; /* where it begins */
	size_t cells;
	const char *cell[LEAT_CSV_CELLS]; /* in the text, NUL-terminated */
};

/* `text` has room for a NUL at text[len]. */
void leat_csv_begin(struct leat_csv *csv, char *text, size_t len);
/* LEAT_END: there are no more. An error says the line. */
enum leat_status leat_csv_next(struct leat_csv *csv, struct leat_csv_row *row, struct leat_err *err);

#endif
