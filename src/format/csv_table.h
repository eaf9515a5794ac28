/* csv_table.h - rows of a CSV file that lists samples
 *
 * The first row names the columns. One column holds file names; the others, or those
 * requested, become numbers or text. The file is read twice, in pieces: first to count its rows and
 * to decide the types of the columns, then to fill arrays of just the right size. One thread. */
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
	/* Gets the file names and the lines they are in, some at a time and in order; they are valid until it returns.
	 * May shorten names. Optional. */
	enum leat_status (*take_paths)(void *arg, const char *const *path, const uint64_t *line, size_t count,
	                               struct leat_err *err);
	void *arg;
	bool lines; /* fill in table->line */
};

struct leat_csv_column {
	char name[LEAT_MAX_NAME + 1];
	enum leat_csv_type type; /* not AUTO */
	void *values;            /* int64_t or float per row; BYTES: rows + 1 uint64_t offsets into text */
	struct leat_str text;    /* BYTES: all cells, concatenated */
};

struct leat_csv_table {
	struct leat_mem *mem;
	size_t rows;
	uint64_t *line; /* where each row begins, from 1; NULL: not asked for */
	size_t columns;
	struct leat_csv_column column[LEAT_MAX_FIELDS];
};

/* Frees everything on failure. Errors name the line, not the file. */
enum leat_status leat_csv_table_parse(struct leat_csv_table *table, const struct leat_csv_input *input,
                                      const struct leat_csv_wish *wish, struct leat_mem *mem, struct leat_err *err);
void leat_csv_table_free(struct leat_csv_table *table); /* accepts a zeroed one */

/* Reads an integer in int64's range, with optional blanks around it. */
bool leat_csv_read_int(const char *cell, int64_t *value);

/* Bytes per value of a column: 8 or 4. */
size_t leat_csv_value_size(enum leat_csv_type type);

#endif
