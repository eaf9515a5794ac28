/* parquet.h - a Parquet table as a source: its files, row groups and columns; private to parquet*.c
 *
 * The footers of all files are read at open and kept. Each row group with rows is a unit. What becomes of the units is
 * decided then, too:
 *
 * - whole: if the decoded table fits in half of `memory`, or in what decoders would take, it is decoded at open and
 *   kept. Samples are rows in memory, in any order, and dense columns are gathered in bulk (feed/bulk.h).
 * - otherwise, the engine reads and decodes units when they are needed (feed/units.c). It has to know how large they
 *   become, so text and lists are measured at open, which reads them all.
 *
 * Samples are the same bytes either way, and the same ones are bad. */
#ifndef LEAT_FORMAT_PARQUET_H
#define LEAT_FORMAT_PARQUET_H

#include <pthread.h>

#include "format/parquet_decode.h"
#include "format/source.h"

/* Of `parquet`, and of `table`, which has a step in place of patterns. */
struct leat_parquet_params {
	struct leat_strings patterns, columns;
	const char *step, *project;
	int null;          /* enum leat_parquet_null */
	int keep;          /* index into "auto|never" */
	const char *split; /* only rows whose column `split` is this; "": all */
};

/* Option tables of `parquet` and `table` end with these. */
#define LEAT_PARQUET_OPTIONS(T)                                                                                        \
	LEAT_STRINGS(T, columns, "[]",                                                                                 \
	             "columns to read as fields; []: all. A list or bytes whose length never varies may be given a "   \
	             "shape, as in 'image[28, 28]', and becomes dense",                                                \
	             LEAT_OPT_NAMED),                                                                                  \
		LEAT_OPT_(T, null, LEAT_OPT_ENUM, "error", 0, 0, "error|zero|nan",                                     \
	                  "what a null becomes: a bad sample; zero, or an empty list or text; NaN in columns of "      \
	                  "floats, and a bad sample in others",                                                        \
	                  LEAT_OPT_NAMED),                                                                             \
		LEAT_OPT_(                                                                                             \
			T, keep, LEAT_OPT_ENUM, "auto", 0, 0, "auto|never",                                            \
			"auto: decode the table when the feed opens and keep it, if it fits in half of `memory`, so "  \
			"that samples can come in any order; never: decode row groups when they are needed",           \
			LEAT_OPT_NAMED | LEAT_OPT_LOCATION), /* the samples are the same */                            \
		LEAT_OPT_(T, split, LEAT_OPT_STRING, "", 0, 0, NULL,                                                   \
	                  "only rows whose text column `split` is this, such as train in the features of a step; "     \
	                  "needs keep=auto",                                                                           \
	                  LEAT_OPT_NAMED | LEAT_OPT_NEW)

/* Which leaf columns of a file are wanted; shared by files with the same columns. */
struct leat_parquet_layout {
	size_t file; /* the first one like this */
	size_t leaves;
	bool *wanted;
};

struct leat_parquet_file {
	unsigned char *bytes; /* of the footer */
	struct leat_parquet_footer footer;
	size_t layout;
};

struct leat_parquet_unit {
	uint32_t file, group;    /* `group` of the file */
	size_t at;               /* of its entry in the footer */
	uint64_t offset, length; /* from its first wanted chunk to the last one's end */
	uint64_t wanted;         /* bytes of the wanted chunks alone, with whole pages */
	uint64_t unpacked;       /* see struct leat_parquet_chunk */
	bool scattered;          /* mostly bytes of other columns are between: only chunks are read */
	uint64_t longest;        /* bytes of ragged values in a row */
	_Atomic(char *) fault;   /* why it cannot be decoded; NULL: not known to be damaged */
};

struct leat_parquet {
	struct leat_parquet_columns columns;
	size_t fields;        /* of the columns; the last column may be hidden: whether a row is of the split */
	uint64_t dense_bytes; /* of a row */
	struct leat_parquet_file *file;
	struct leat_parquet_layout *layout;
	size_t layouts, layout_cap;
	struct leat_parquet_unit *unit;
	size_t units;
	uint64_t *row;   /* first row of each unit, and of all; units + 1 numbers */
	uint64_t *first; /* backs source->first */
	size_t last;     /* unit of the last locate */
	size_t decoder_memory, decoder_file;

	/* Units that are decoded when they are needed: */
	uint64_t *ragged_bytes; /* columns.ragged numbers for each unit */

	/* A table that is kept whole: */
	bool whole;
	unsigned char *dense; /* all rows of the dense columns */
	struct leat_parquet_place
		*place;         /* of each column; ragged ones have only `ends`, which begin anew in each unit */
	unsigned char **ragged; /* values of the ragged columns of each unit */
	uint16_t *fault;        /* of each row; see LEAT_PARQUET_DAMAGED */
	bool faults;            /* some are not 0 */
	uint64_t *pick;         /* row of each sample, if only some rows are; NULL: row i is sample i */
};

enum { LEAT_PARQUET_DAMAGED = UINT16_MAX }; /* a row's fault if its unit is damaged */

/* parquet.c: opens the files that patterns match, as a source whose params begin with struct leat_parquet_params. */
enum leat_status leat_parquet_source_open(struct leat_source *source, const struct leat_strings *patterns,
                                          unsigned threads, struct leat_err *err);
void leat_parquet_close(struct leat_source *source);
/* parquet_step.c: the Parquet files of a step's last result, as patterns that match just them. On failure, too, the
 * caller frees each of them and the list. */
enum leat_status leat_parquet_step_files(const struct leat_parquet_params *params, struct leat_strings *files,
                                         struct leat_mem *mem, struct leat_err *err);

/* parquet_open.c: files, footers, columns and units. On failure, the caller closes. */
enum leat_status leat_parquet_open(struct leat_source *source, const struct leat_strings *patterns, unsigned threads,
                                   struct leat_err *err);
/* parquet_table.c: decodes the whole table. LEAT_LIMIT (no error text): it does not fit in `most` bytes. */
/* Likewise; with a `split`, also picks its rows. */
enum leat_status leat_parquet_keep(struct leat_source *source, unsigned threads, size_t most, struct leat_err *err);
void leat_parquet_keep_free(struct leat_source *source);
/* Measures all units. */
enum leat_status leat_parquet_measure_all(struct leat_source *source, unsigned threads, struct leat_err *err);

/* The unit that holds a row. */
size_t leat_parquet_unit_of(const struct leat_parquet *table, uint64_t row);
uint64_t leat_parquet_row_in_file(const struct leat_parquet *table, size_t unit, uint64_t row);
/* Describes a unit for the decoder; `bytes` as there. */
enum leat_status leat_parquet_part_of(const struct leat_source *source, size_t unit, const unsigned char *bytes,
                                      struct leat_parquet_part *part, struct leat_err *err);
/* Keeps the text of `why` as the unit's fault, unless it has one. Any thread. */
void leat_parquet_set_fault(const struct leat_source *source, size_t unit, const char *why);

#endif
