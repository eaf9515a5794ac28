/* rejects.h - records that were refused, as lines of JSON; see load.h */
#ifndef LEAT_TABLE_REJECTS_H
#define LEAT_TABLE_REJECTS_H

#include <stdio.h>

#include "base/str.h"
#include "table/csv_split.h"
#include "table/value.h"

enum { LEAT_MAX_REASONS = 64 };

struct leat_rejects {
	FILE *file;
	char *path;
	struct leat_mem *mem;
	struct leat_str line;
	struct leat_str *examples; /* the first ones, for people */
	unsigned most_examples;
	uint64_t count;
	struct leat_reason {
		const char *text; /* static */
		uint64_t count;
	} reason[LEAT_MAX_REASONS];
	size_t reasons;
};

/* What is wrong with one record. */
struct leat_reject {
	const char *file;
	const struct leat_csv_record *record;
	const char *column; /* its name; NULL: none */
	const char *why;    /* static, such as "no int64" */
	const char *value;  /* that it is said of; NULL: none */
	size_t value_len;
	size_t expected; /* fields, if there are too few or too many */
};

enum leat_status leat_rejects_open(struct leat_rejects *rejects, const char *folder, struct leat_str *examples,
                                   unsigned most_examples, struct leat_mem *mem, struct leat_err *err);
enum leat_status leat_rejects_add(struct leat_rejects *rejects, const struct leat_reject *reject, struct leat_err *err);
/* Writes what is left. */
enum leat_status leat_rejects_end(struct leat_rejects *rejects, struct leat_err *err);
void leat_rejects_close(struct leat_rejects *rejects); /* accepts a zeroed one */

/* Appends "'12x' is no int64", or "3 fields instead of 4". */
void leat_reject_reason(struct leat_str *text, const struct leat_reject *reject);

/* "a quoted field is not closed" */
const char *leat_csv_fault_text(enum leat_csv_fault fault);

#endif
