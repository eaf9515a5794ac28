/* csv_table.h - the rows of a CSV file that lists samples
 *
 * The first row names the columns. One holds file names; of the others, each or those
 * wished for, the cells become numbers or stay text. One thread. */
#ifndef LEAT_FORMAT_CSV_TABLE_H
#define LEAT_FORMAT_CSV_TABLE_H

#include "base/mem.h"
#include "base/opt.h"
#include "base/str.h"
#include "format/csv.h"

enum leat_csv_type { LEAT_CSV_AUTO, LEAT_CSV_INT64, LEAT_CSV_FLOAT, LEAT_CSV_BYTES };

/* What is wished for: the column of file names, others ({0}: all), and the type of each ({0}: auto). */
struct leat_csv_wish {
	const char *path;
	struct leat_strings columns, types;
	/* Optional, for files whose first row may be one of values: says whether it names the columns, and may put
	 * other names in the cells. If it does not, the columns are `path` and `columns`, in this order. */
	bool (*is_header)(struct leat_csv_row *first);
};

struct leat_csv_column {
	char name[LEAT_MAX_NAME + 1];
	enum leat_csv_type type; /* never AUTO */
	void *values;            /* int64_t or float of each row; BYTES: uint64_t, rows + 1 offsets in text */
	struct leat_str text;    /* BYTES: all cells, one after the other */
};

struct leat_csv_table {
	struct leat_mem *mem;
	size_t rows, cap;
	const char **path; /* in the text that was parsed */
	uint64_t *line;    /* where each row begins, counted from 1 */
	size_t columns;
	struct leat_csv_column column[LEAT_MAX_FIELDS];
};

/* Parses `text`, which is written to and has room for a NUL at text[len]. Frees what it took when it fails. An error
 * says the line, not the file. */
enum leat_status leat_csv_table_parse(struct leat_csv_table *table, char *text, size_t len,
                                      const struct leat_csv_wish *wish, struct leat_mem *mem, struct leat_err *err);
void leat_csv_table_free(struct leat_csv_table *table); /* takes a zeroed one */

/* A cell that is a whole number which int64 can hold, with blanks around it. */
bool leat_csv_read_int(const char *cell, int64_t *value);

/* The bytes of one value of a column: 8, or 4. */
size_t leat_csv_value_size(enum leat_csv_type type);

#endif
