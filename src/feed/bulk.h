/* bulk.h - fill a run field by field, for samples that are rows of a fixed size in memory
 *
 * Rows of arrays and windows of tokens cost little more than copying them, so whatever is done for each sample shows:
 * planning its reads, unpacking it, running the chain. If the source knows where the rows of each field are (`rows` in
 * format/source.h) and the ops only convert fields, a run consists of sample numbers alone. A worker fills one field
 * after the other, with one loop that converts on the way. The same goes for samples of a fixed size that are in a
 * cache in memory, with the ops after it: runs are made in bulk once all their samples are there.
 *
 * Values are those of the way through items, to the bit. A run whose rows cannot be brought into memory goes that way,
 * so that bad samples are reported, skipped and replaced as always.
 *
 * Threads: made with the pipeline, then read-only. */
#ifndef LEAT_FEED_BULK_H
#define LEAT_FEED_BULK_H

#include "feed/batch.h"
#include "feed/cache.h"
#include "format/source.h"
#include "image/affine.h"
#include "trace/lane.h"

struct leat_pipeline;

enum { LEAT_BULK_STEPS = 3 }; /* scale and normalize */

/* Neighbours in a joined row: a field of the source, or several that are neighbours there, too. */
struct leat_bulk_member {
	int field; /* the first of them */
	struct leat_row_form form;
	size_t offset; /* in the row of the batch */
};

struct leat_bulk_column {
	int field; /* of the source or the cache */
	struct leat_row_form form;
	enum leat_dtype dtype; /* in the batch */
	size_t row_bytes;      /* likewise */
	int stage;             /* that converts it; -1: none, so rows are copied, or widened to the field's type */
	bool affine;           /* by the steps; else by a cast, if the types differ */
	int steps;
	struct leat_affine_spread step[LEAT_BULK_STEPS];
	int members; /* of a joined row (op concat), from `first_member` on; 0: a row is one field */
	int first_member;
};

struct leat_bulk {
	int rows; /* most of a run */
	int columns, members;
	struct leat_bulk_member *member;
	struct leat_bulk_column column[];
};

/* NULL: samples of this pipeline are made one by one, or there is no memory. */
struct leat_bulk *leat_bulk_new(const struct leat_pipeline *p, struct leat_mem *mem);

/* Samples, and where they are. */
struct leat_bulk_samples {
	const struct leat_source *source;
	const struct leat_cache *cache; /* NULL: in the source */
	const uint64_t *sample;
	size_t count;
};

/* Workers: fills rows of the batch, from `row` on. `lane` counts the time it takes, divided by `every`: where other
 * samples are timed one in so many, that keeps the shares right. */
void leat_bulk_fill(const struct leat_bulk *bulk, const struct leat_bulk_samples *samples,
                    const struct leat_batch *batch, int64_t row, struct leat_lane *lane, uint64_t every);

#endif
