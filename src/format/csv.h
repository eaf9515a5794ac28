/* csv.h - rows of comma-separated values (RFC 4180), read in place
 *
 * Cells may be "quoted"; inside quotes, commas, newlines and doubled quotes are text. Lines
 * end in LF or CR LF. Empty lines and a byte order mark are skipped. One thread. */
#ifndef LEAT_FORMAT_CSV_H
#define LEAT_FORMAT_CSV_H

#include "base/err.h"

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

#endif
