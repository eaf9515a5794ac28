/* batch.h - memory layout of a batch: slots for dense fields, values + offsets for ragged ones
 *
 * A batch is one mapping, a slot. All slots of a feed share the same layout, so any slot can hold
 * any batch. Each row is written by one worker; the worker that finishes the last row completes
 * the batch; then the consumer owns it.
 *
 * A consumer that keeps many batches gets copies (batch_copy.c) and the slots stay with the engine. Each field of a
 * copy is a block with a count of references, so that keeping the labels does not keep the images. */
#ifndef LEAT_FEED_BATCH_H
#define LEAT_FEED_BATCH_H

#include <stdatomic.h>

#include "base/mem.h"
#include "format/sample.h"

/* Column sizes saturate here, so that adding up the columns of several batches cannot overflow. */
#define LEAT_MOST_BYTES (SIZE_MAX / 1024)

struct leat_cudart;
struct leat_worker;

/* Layout of one field. Offsets are from the start of the mapping. */
struct leat_column_form {
	struct leat_field field;
	size_t row_bytes;             /* dense: bytes per slot; ragged: 0 */
	size_t capacity;              /* bytes of values; of a field that shares, those of all of them */
	size_t values_at;             /* of a field that shares, where the first of them begins */
	size_t offsets_at, shapes_at; /* ragged */
	size_t arena_at, rows_at; /* ragged and not direct: rows in order of arrival, and a leat_ragged_row for each */
	bool shares;
	int arena; /* ragged: the column that counts what is used of the arena */
};

/* Memory of a row of a ragged column: in the arena or, if assigned in advance, in `values`. A retry reuses it. */
struct leat_ragged_row {
	void *at; /* NULL: none yet */
	size_t room;
};

/* Room for ragged values. Fields whose values are parts of the same bytes *share*: together they need no more room than
 * one of them might, so they have one arena, and one region of values in which they follow each other, in whatever
 * lengths they turn out to have. */
struct leat_batch_room {
	size_t capacity[LEAT_MAX_FIELDS]; /* of each ragged field that does not share */
	bool shares[LEAT_MAX_FIELDS];
	size_t shared;     /* capacity for all that share */
	size_t shared_row; /* of which each row has this much for itself, to start anew with another sample; 0: rows
	                      take what they need */
};

struct leat_batch_form {
	int64_t rows;
	int columns;
	bool ragged; /* any field is ragged */
	bool direct; /* the only field is written straight into `values`, because its lengths are known in advance */
	bool large;  /* too large to stay in a core's cache until used: write with non-temporal stores */
	int notes;   /* reasons of bad samples that it has room for; 0: no bad samples are kept at all */
	size_t valid_at, position_at, state_at;
	bool shares;                     /* some fields do */
	size_t shared_row;               /* as in leat_batch_room */
	size_t row_used_at;              /* if it is not 0: bytes used by each row */
	size_t faults_at, notes_at;      /* if `notes` is not 0: a leat_fault per row, and the notes */
	size_t bytes;                    /* size of the mapping */
	struct leat_column_form *column; /* owned by the caller */
};

/* Lays out `schema` for `rows` samples. form->column needs room for the schema's fields. */
void leat_batch_form_make(struct leat_batch_form *form, const struct leat_schema *schema, int64_t rows, bool direct,
                          const struct leat_batch_room *room);

enum leat_row_state { LEAT_ROW_PADDING, LEAT_ROW_GOOD, LEAT_ROW_BAD };

/* What a batch keeps of bad samples until delivery (bad.c). */
struct leat_fault {
	uint64_t sample;
	enum leat_status status; /* LEAT_OK: the row's sample is not bad */
};
enum { LEAT_BAD_REASONS = 32 };
struct leat_bad_note {
	int64_t row;
	char reason[sizeof(((struct leat_err *)0)->text)];
};
/* Adds room for them, at the end. */
void leat_batch_form_add_faults(struct leat_batch_form *form);

/* A field of a copied batch: values, then offsets and shapes. */
struct leat_block {
	unsigned char *at;
	size_t bytes;
	size_t offsets_at, shapes_at;
	bool mapped;
	void *memory;    /* if not mapped: what to free */
	atomic_int refs; /* the batch and DLPack tensors of this field */
};

struct leat_batch {
	struct leat_feed *feed;
	const struct leat_batch_form *form;
	struct leat_mem *mem; /* of its memory */
	unsigned char *base;
	struct leat_block *block; /* of a copy, by column; NULL: a slot */
	uint64_t epoch, first;    /* position of row 0, counted past the end of the epoch if it repeats a sample */
	uint64_t begin, end;      /* positions of the global batch, over all ranks */
	bool last;                /* last batch of its epoch, on this rank */
	int64_t rows;             /* including repeats and padding */
	int64_t own_rows;         /* samples of this epoch, which come first */
	int64_t good_rows;        /* these and then repeats, without padding */
	atomic_bool checked;      /* mapped files were compared with their versions since the batch was begun */

	/* Under the feed's lock until complete. The large, rarely written error comes first: it keeps fields that
	 * workers read off the cache lines that the planner writes. */
	struct leat_err err;
	int64_t err_row;               /* row of the first failure in plan order; -1: none */
	uint64_t bad_rows;             /* bad samples, except repeats */
	int bad_notes;                 /* those with a note */
	int64_t chosen, planned, done; /* counts of good_rows */
	bool assigning;                /* every ragged row so far was assigned in advance */
	bool complete;
	const struct leat_worker *begun_by; /* worker that last filled it */
	struct leat_batch *next;            /* in the free list */
	const struct leat_cudart *cudart;   /* registered with it (pin.h); NULL: not */

	atomic_int refs; /* consumer and DLPack tensors; of a copy: the consumer and each reference to a block */
	int64_t count;   /* rows delivered, without skipped ones */
	int64_t samples; /* of these, neither repeats nor padding */
	struct leat_batch_column {
		atomic_size_t arena_used; /* also counts bytes of `values` assigned in advance */
		size_t values_at;         /* of a field that shares: known once the batch is complete */
	} column[];
};

size_t leat_batch_bytes(const struct leat_batch_form *form); /* size of the struct, without the mapping */
struct leat_batch *leat_batch_new(struct leat_feed *feed, const struct leat_batch_form *form, struct leat_mem *mem);
void leat_batch_free(struct leat_batch *batch); /* accepts NULL */

/* Copies a complete batch, without what it keeps of bad samples. NULL: out of memory. */
struct leat_batch *leat_batch_copy(const struct leat_batch *from, struct leat_mem *mem);
/* Frees what is left of a copy after all its blocks were dropped. */
void leat_batch_free_copy(struct leat_batch *copy);
/* Drops a reference to a block; the last one frees it. */
void leat_batch_drop_block(struct leat_batch *copy, int column);

/* Empties the batch. */
void leat_batch_reset(struct leat_batch *batch);
void leat_bad_forget(struct leat_batch *batch); /* bad.c, for leat_batch_reset */

static inline uint8_t *
leat_batch_states(const struct leat_batch *batch)
{
	return batch->base + batch->form->state_at;
}

static inline struct leat_fault *
leat_batch_faults(const struct leat_batch *batch)
{
	return (struct leat_fault *)(void *)(batch->base + batch->form->faults_at);
}

static inline struct leat_bad_note *
leat_batch_notes(const struct leat_batch *batch)
{
	return (struct leat_bad_note *)(void *)(batch->base + batch->form->notes_at);
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

/* For direct batches, called by the planner in row order: where a row's payload goes. */
static inline unsigned char *
leat_batch_direct_row(const struct leat_batch *batch, int64_t row, size_t payload)
{
	int64_t *offsets = leat_batch_offsets(batch, 0);

	offsets[row + 1] = offsets[row] + (int64_t)payload;
	return batch->base + batch->form->column[0].values_at + offsets[row];
}

/* The values of a field, if the batch is not a copy. */
static inline unsigned char *
leat_batch_values(const struct leat_batch *batch, int column)
{
	return batch->base + batch->column[column].values_at;
}

static inline bool
leat_batch_is_dense(const struct leat_column_form *column)
{
	return column->offsets_at == 0; /* row_bytes does not tell: a dense field may be empty (a shape with a 0) */
}

/* Bytes of values in a delivered batch that is not a copy. */
static inline size_t
leat_batch_value_bytes(const struct leat_batch *batch, int column)
{
	const struct leat_column_form *form = &batch->form->column[column];

	if (leat_batch_is_dense(form))
		return (size_t)batch->count * form->row_bytes;
	return (size_t)leat_batch_offsets(batch, column)[batch->count] * leat_dtype_size(form->field.dtype);
}

/* Assigns a ragged row its final place in `values` before it is made, which saves the copy from the arena. Values are
 * in row order, so this works only while the lengths of all earlier rows are known. After leat_batch_stop_assigning,
 * all further rows go through the arena. Called by the planner in row order, before a worker has the row. `sample` is
 * what will be stored. */
void leat_batch_assign_ragged_row(struct leat_batch *batch, int64_t row, const struct leat_sample *sample);
void leat_batch_stop_assigning(struct leat_batch *batch);

/* Forgets what a row that shares has stored: another sample takes its place. */
void leat_batch_clear_row(struct leat_batch *batch, int64_t row);

/* Returns memory for `bytes` of a row: its dense slot, or room in the arena. NULL: does not fit. */
void *leat_batch_output_slot(struct leat_batch *batch, int column, int64_t row, size_t bytes);

/* Stores a finished sample in its row. Fields already written in place are not copied. */
enum leat_status leat_batch_store(struct leat_batch *batch, int64_t row, const struct leat_sample *sample,
                                  struct leat_err *err);

/* Called when all rows are done. Drops skipped rows (`keep_bad`: turns them into padding) and puts ragged values in row
 * order. */
void leat_batch_complete(struct leat_batch *batch, bool keep_bad);

#endif
