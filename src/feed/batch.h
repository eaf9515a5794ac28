/* batch.h - a batch's memory: slots for dense fields, values + offsets for ragged ones
 *
 * All of a batch lies in one mapping whose form is the same for every batch of a feed,
 * so a buffer can hold any batch. Workers write rows of their own; the worker that
 * finishes the last row completes the batch; then the consumer owns it. */
#ifndef LEAT_FEED_BATCH_H
#define LEAT_FEED_BATCH_H

#include <stdatomic.h>

#include "base/mem.h"
#include "format/sample.h"

/* No column is taken to be larger: the sum over all columns of some batches cannot overflow. */
#define LEAT_MOST_BYTES (SIZE_MAX / 1024)

struct leat_worker;

/* How one field lies in a batch. Offsets are from the beginning of the mapping. */
struct leat_column_form {
	struct leat_field field;
	size_t row_bytes; /* dense: of a slot; 0: ragged */
	size_t capacity;  /* bytes of values */
	size_t values_at;
	size_t offsets_at, shapes_at; /* ragged */
	size_t arena_at, rows_at;     /* ragged and not direct: rows as they come, and a leat_ragged_row for each */
};

/* Where a row of a ragged column lies: in the arena, or, laid beforehand, in `values`. It keeps its place when it is
 * tried again. */
struct leat_ragged_row {
	void *at; /* NULL: it has none yet */
	size_t room;
};

struct leat_batch_form {
	int64_t rows;
	int columns;
	bool ragged; /* any field is */
	bool direct; /* the one field goes straight into `values`: its lengths are known beforehand */
	bool large;  /* its values do not stay in a core's cache until they are used: they are written past it */
	size_t valid_at, position_at, state_at;
	size_t bytes;                    /* of the whole mapping */
	struct leat_column_form *column; /* whose memory is the caller's */
};

/* Lays out `schema` for `rows` samples; capacity[i] bounds the values of ragged field i. form->column has to have room
 * for the schema's fields. */
void leat_batch_form_make(struct leat_batch_form *form, const struct leat_schema *schema, int64_t rows, bool direct,
                          const size_t *capacity);

enum leat_row_state { LEAT_ROW_PADDING, LEAT_ROW_GOOD, LEAT_ROW_BAD };

/* A bad sample of a batch, until the batch is delivered. */
struct leat_bad_row {
	struct leat_bad_row *next;
	int64_t row;
	uint64_t sample, offset;
	bool replaced;
	char reason[]; /* and behind its NUL the file's URI */
};

struct leat_batch {
	struct leat_feed *feed;
	const struct leat_batch_form *form;
	unsigned char *base;
	uint64_t epoch, first; /* global position of row 0 */
	uint64_t end;          /* global position behind the whole global batch */
	bool last;             /* of its epoch */
	int64_t rows;          /* planned, padding included */
	int64_t good_rows;     /* planned without padding; these come first */

	/* Under the feed's lock until complete. The error is long and rarely written: it keeps what workers read
	 * for each sample apart from what the planner writes meanwhile. */
	struct leat_err err;
	int64_t err_row; /* of the failure that comes first in the plan; -1: none */
	struct leat_bad_row *bad;
	uint64_t bad_unlisted;         /* there was no memory for */
	int64_t chosen, planned, done; /* of good_rows */
	bool assigning;                /* every row so far was laid */
	bool complete;
	const struct leat_worker *begun_by; /* the last time it was filled */
	struct leat_batch *next;            /* in the list of free ones */

	atomic_int refs;            /* consumer and DLPack tensors */
	int64_t count;              /* rows delivered, after skipped ones went out */
	int64_t samples;            /* of those: not padding */
	atomic_size_t arena_used[]; /* by column; and, of the values, what was laid */
};

size_t leat_batch_bytes(const struct leat_batch_form *form); /* of the struct alone, without its mapping */
struct leat_batch *leat_batch_new(struct leat_feed *feed, const struct leat_batch_form *form, struct leat_mem *mem);
void leat_batch_free(struct leat_batch *batch, struct leat_mem *mem); /* takes NULL */

/* Makes an empty batch of what was in it. Frees the list of bad rows. */
void leat_batch_reset(struct leat_batch *batch, struct leat_mem *mem);

static inline uint8_t *
leat_batch_states(const struct leat_batch *batch)
{
	return batch->base + batch->form->state_at;
}

static inline uint64_t *
leat_batch_positions(const struct leat_batch *batch)
{
	return (uint64_t *)(void *)(batch->base + batch->form->position_at);
}

static inline int64_t *
leat_batch_offsets(const struct leat_batch *batch, int column)
{
	return (int64_t *)(void *)(batch->base + batch->form->column[column].offsets_at);
}

/* Ragged values are in row order, so where a row begins is known when the lengths of all before it are. While they
 * are, from row 0 on, a row can be laid, and then what is stored is written where it stays; as much of the arena is
 * not used. From the first that is not laid, all rows take of the arena as they come. The planner's, in row order,
 * before a worker has the row. `sample` is what will be stored. */
void leat_batch_assign_ragged_row(struct leat_batch *batch, int64_t row, const struct leat_sample *sample);
void leat_batch_stop_assigning(struct leat_batch *batch);

/* Where `bytes` of column's row go: the slot, or room in the arena. NULL: they do not fit. */
void *leat_batch_output_slot(struct leat_batch *batch, int column, int64_t row, size_t bytes);

/* Puts a finished sample into its row; what was not placed there already is copied. */
enum leat_status leat_batch_store(struct leat_batch *batch, int64_t row, const struct leat_sample *sample,
                                  struct leat_err *err);

/* All rows are done: drops skipped rows (`keep_bad`: leaves them as padding instead) and puts ragged values in order.
 */
void leat_batch_complete(struct leat_batch *batch, bool keep_bad);

#endif
