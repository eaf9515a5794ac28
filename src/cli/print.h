/* print.h - aligned tables, bold text, progress, and messages of a feed */
#ifndef LEAT_CLI_PRINT_H
#define LEAT_CLI_PRINT_H

#include <stdio.h>

#include "base/err.h"
#include "base/str.h"

/* True if `out` is a terminal that can move its cursor. */
bool leat_is_terminal(FILE *out);

/* Escape codes to switch bold on and off; "" if `out` is not a terminal or NO_COLOR is set. */
const char *leat_bold(FILE *out);
const char *leat_plain(FILE *out);

/* A text table. Get cells one by one, row by row, and fill them with leat_str_add...; columns are as wide as their
 * widest cell; the last one is not padded, and wraps on terminals. */
enum { LEAT_TABLE_COLUMNS = 8 };

struct leat_table {
	struct leat_mem *mem;
	size_t columns, cells, cap;
	bool right[LEAT_TABLE_COLUMNS]; /* right-aligned, for numbers */
	struct leat_str *cell;
	struct leat_str spare; /* swallows text after running out of memory; leat_table_print then fails */
};

void leat_table_init(struct leat_table *table, struct leat_mem *mem, size_t columns);
struct leat_str *leat_table_cell(struct leat_table *table);
/* Writes all rows, indented by two, and frees the table. */
enum leat_status leat_table_print(struct leat_table *table, FILE *out, struct leat_err *err);
void leat_table_free(struct leat_table *table); /* instead of printing it */

/* A progress line on a terminal, redrawn a few times a second, with the time that is left; silent elsewhere. In a step
 * of `leat build`, the build shows it. */
struct leat_progress {
	FILE *out;
	const char *what, *step; /* step: path of step.json; NULL: none */
	uint64_t begun_ns, shown_ns;
	bool drawn;
};

void leat_progress_begin(struct leat_progress *progress, FILE *out, const char *what);
void leat_progress_at(struct leat_progress *progress, unsigned long long done, unsigned long long total);
void leat_progress_end(struct leat_progress *progress); /* removes the line */
/* What a step is doing, where nobody knows how much is left; nothing if this is no step of a build. */
void leat_progress_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Prints a line that quotes names of files or data: escaped, and cut off if it is very long. */
void leat_print_line(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* For leat_options.log: prints warnings to standard error. */
void leat_print_log(void *arg, enum leat_log_level level, const char *text);
/* Prints the first of `count` bad samples, one per line. */
void leat_print_bad(const struct leat_feed *feed, uint64_t count);

#endif
