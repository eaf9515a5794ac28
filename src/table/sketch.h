/* sketch.h - a small profile of a table, which every run of a step keeps, and how it differs from that of the last run
 *
 * A sketch has the bins of each column that profile_drift.c uses, and how many rows are in each: between the deciles
 * of numbers and times, the most frequent words, NULL. The next run counts its rows over the same bins; PSI and JS
 * follow.
 *
 * It is made from a sample of up to 16,384 rows, because DuckDB takes some 10 ns of CPU to decode a value: from a
 * quarter of the row groups, at least 4 and at most 8. The sample depends on the table alone, not on threads. Columns
 * that are sorted as the rows are, such as the key, are not compared unless all row groups are read.
 *
 *	{"rows": 10, "sampled": 10, "since": "clean-3", "columns": [
 *	 {"name": "amount", "type": "DOUBLE", "edges": [1.5, ...], "counts": [...], "psi": 0.31, "js": 0.05,
 *	  "moved": "large"},
 *	 {"name": "code", "type": "VARCHAR", "words": ["A", ...], "counts": [...]}]}
 *
 * Hostile when read: manifests may be shared, or damaged. One thread. */
#ifndef LEAT_TABLE_SKETCH_H
#define LEAT_TABLE_SKETCH_H

#include <jansson.h>

#include "table/profile.h"

enum {
	LEAT_SKETCH_EDGES = 9,
	LEAT_SKETCH_WORDS = 50,
	LEAT_SKETCH_BINS = LEAT_SKETCH_WORDS + 2,
	LEAT_SKETCH_COLUMNS = 256, /* the first ones of a table; others are left out */
	LEAT_SKETCH_MAX = 1 << 20, /* bytes of JSON */
};

struct leat_sketch_column {
	char *name;
	char type[64];
	bool is_words, is_sorted; /* is_sorted: as the rows are, so that the sample says nothing about it */
	size_t edges, words, bins;
	double edge[LEAT_SKETCH_EDGES];
	char *word[LEAT_SKETCH_WORDS];
	double count[LEAT_SKETCH_BINS];
	/* Since the last run: */
	bool compared;
	enum leat_drift_size moved;
	double psi, js;
};

struct leat_sketch {
	struct leat_mem *mem;
	uint64_t rows, sampled;
	char *since; /* id of the action that it was compared with; NULL: none */
	size_t columns;
	struct leat_sketch_column *column;
};

/* `path` is one Parquet file. Free it even after a failure. */
enum leat_status leat_sketch_make(struct leat_sketch *sketch, struct leat_tables *tables, const char *path,
                                  const struct leat_sketch *then /* NULL: none */, const char *since,
                                  struct leat_mem *mem, struct leat_err *err);
enum leat_status leat_sketch_read(struct leat_sketch *sketch, const char *json, size_t len, struct leat_mem *mem,
                                  struct leat_err *err);
json_t *leat_sketch_json(const struct leat_sketch *sketch); /* NULL: out of memory */
void leat_sketch_free(struct leat_sketch *sketch);

/* The largest PSI of all columns; negative: nothing was compared. */
double leat_sketch_drift(const struct leat_sketch *sketch);

#endif
