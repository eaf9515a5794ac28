/* csv_table.h - rows of a CSV file that lists samples
 *
 * The first row names the columns. One column holds file names; the others, or those
 * requested, become numbers or text. One thread. */
#ifndef LEAT_FORMAT_CSV_TABLE_H
#define LEAT_FORMAT_CSV_TABLE_H

#include "base/mem.h"
#include "base/opt.h"
#include "base/str.h"
#include "format/csv.h"

enum leat_csv_type { LEAT_CSV_AUTO, LEAT_CSV_INT64, LEAT_CSV_FLOAT, LEAT_CSV_BYTES };

/* What to read: the column of file names, other columns ({0}: all), and the type of each ({0}: auto). */
struct leat_csv_wish {
	const char *path;
	struct leat_strings columns, types;
	/* Optional, for files that may have no header: tells whether the first row is a header, and may rename its
	 * columns. Without a header, the columns are `path` and `columns`, in this order. */
	bool (*is_header)(struct leat_csv_row *first);
};

struct leat_csv_column {
	char name[LEAT_MAX_NAME + 1];
	enum leat_csv_type type; /* not AUTO */
	void *values;            /* int64_t or float per row; BYTES: rows + 1 uint64_t offsets into text */
	struct leat_str text;    /* BYTES: all cells, concatenated */
};

struct leat_csv_table {
	struct leat_mem *mem;
	size_t rows, cap;
	const char **path; /* in the parsed text */
	uint64_t *line;    /* where each row begins, from 1 */
	size_t columns;
	struct leat_csv_column column[LEAT_MAX_FIELDS];
};

/* Parses `text` in place; it must have room for a NUL at text[len]. Frees everything on failure. Errors name the line,
 * not the file. */
enum leat_status leat_csv_table_parse(struct leat_csv_table *table, char *text, size_t len,
                                      const struct leat_csv_wish *wish, struct leat_mem *mem, struct leat_err *err);
void leat_csv_table_free(struct leat_csv_table *table); /* accepts a zeroed one */

/* Reads an integer in int64's range, with optional blanks around it. */
bool leat_csv_read_int(const char *cell, int64_t *value);

/* Bytes per value of a column: 8 or 4. */
size_t leat_csv_value_size(enum leat_csv_type type);

#endif
