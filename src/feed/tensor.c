/* tensor.c - access to a batch: its samples and fields, as pointers or DLPack tensors
 *
 * Consumer threads. A delivered batch no longer changes. */
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "feed/batch.h"
#include "feed/dlpack.h"
#include "feed/feed.h"

int64_t
leat_batch_count(const struct leat_batch *batch)
{
	return batch->count;
}

const uint8_t *
leat_batch_valid(const struct leat_batch *batch)
{
	return batch->base + batch->form->valid_at;
}

uint64_t
leat_batch_position(const struct leat_batch *batch, int64_t i)
{
	return i >= 0 && i < batch->count ? leat_batch_positions(batch)[i] : UINT64_MAX;
}

uint64_t
leat_batch_epoch(const struct leat_batch *batch)
{
	return batch->epoch;
}

uint64_t
leat_batch_begin(const struct leat_batch *batch)
{
	return batch->begin;
}

bool
leat_batch_copied(const struct leat_batch *batch)
{
	return batch->block != NULL;
}

static int
find_column(const struct leat_batch_form *form, const char *name, struct leat_err *err)
{
	struct leat_unknown unknown = {.what = "field", .name = name, .owner = "a batch"};
	const char *names[LEAT_MAX_FIELDS];

	for (int i = 0; i < form->columns; i++) {
		if (strcmp(form->column[i].field.name, name) == 0)
			return i;
		names[i] = form->column[i].field.name;
	}
	unknown.known = names;
	unknown.count = (size_t)form->columns;
	leat_fail_unknown(err, LEAT_INVALID, &unknown);
	return -1;
}

/* Where the parts of a field are. `offsets` and `shapes` mean nothing if the field has none. */
static void
locate(const struct leat_batch *batch, int i, unsigned char **values, const int64_t **offsets, const int64_t **shapes)
{
	const struct leat_column_form *column = &batch->form->column[i];
	const struct leat_block *block = batch->block ? &batch->block[i] : NULL;
	unsigned char *base = block ? block->at : batch->base;

	*values = block ? base : leat_batch_values(batch, i);
	*offsets = (const int64_t *)(const void *)(base + (block ? block->offsets_at : column->offsets_at));
	*shapes = (const int64_t *)(const void *)(base + (block ? block->shapes_at : column->shapes_at));
}

enum leat_status
leat_batch_field(const struct leat_batch *batch, const char *name, struct leat_tensor *tensor, struct leat_err *err)
{
	const struct leat_column_form *column;
	const int64_t *offsets, *shapes;
	unsigned char *values;
	int i;

	leat_err_clear(err);
	i = find_column(batch->form, name, err);
	if (i < 0)
		return LEAT_INVALID;
	column = &batch->form->column[i];
	locate(batch, i, &values, &offsets, &shapes);
	*tensor = (struct leat_tensor){
		.data = values, .dtype = column->field.dtype, .ndim = 1, .copied = batch->block != NULL};
	if (!leat_batch_is_dense(column)) {
		tensor->offsets = offsets;
		tensor->shape[0] = offsets[batch->count];
		if (column->shapes_at)
			tensor->sample_shapes = shapes;
		tensor->bytes = (size_t)tensor->shape[0] * leat_dtype_size(tensor->dtype);
	} else {
		tensor->ndim = 1 + column->field.ndim;
		tensor->shape[0] = batch->count;
		memcpy(&tensor->shape[1], column->field.shape, (size_t)column->field.ndim * sizeof(int64_t));
		tensor->bytes = (size_t)batch->count * column->row_bytes;
	}
	return LEAT_OK;
}

/* ---- DLPack ---- */

struct exported {
	struct DLManagedTensor managed; /* must be first: the consumer gets a pointer to it */
	struct leat_batch *batch;
	int column;
	int64_t shape[1 + LEAT_MAX_DIMS];
};

static void
exported_delete(struct DLManagedTensor *self)
{
	struct exported *e = (struct exported *)self;

	leat_batch_release_field(e->batch, e->column);
	free(e);
}

static void
describe(struct leat_dl_tensor *t, enum leat_dtype dtype)
{
	static const uint8_t code[] = {
		[LEAT_U8] = LEAT_DL_UINT,   [LEAT_I32] = LEAT_DL_INT,     [LEAT_I64] = LEAT_DL_INT,
		[LEAT_F16] = LEAT_DL_FLOAT, [LEAT_BF16] = LEAT_DL_BFLOAT, [LEAT_F32] = LEAT_DL_FLOAT,
		[LEAT_F64] = LEAT_DL_FLOAT, [LEAT_BOOL] = LEAT_DL_BOOL,   [LEAT_I8] = LEAT_DL_INT,
		[LEAT_I16] = LEAT_DL_INT,   [LEAT_U16] = LEAT_DL_UINT,    [LEAT_U32] = LEAT_DL_UINT,
		[LEAT_U64] = LEAT_DL_UINT,
	};

	t->dtype.code = code[dtype];
	t->dtype.bits = (uint8_t)(8 * leat_dtype_size(dtype));
	t->dtype.lanes = 1;
	t->device.type = LEAT_DL_CPU;
}

static enum leat_status
check_part(const struct leat_tensor *tensor, const char *name, enum leat_part part, struct leat_err *err)
{
	switch (part) {
	case LEAT_PART_DATA:
		return LEAT_OK;
	case LEAT_PART_OFFSETS:
		if (tensor->offsets)
			return LEAT_OK;
		return leat_fail(err, LEAT_INVALID, "field '%s' has no offsets: every sample has the same shape", name);
	case LEAT_PART_SHAPES:
		if (tensor->sample_shapes)
			return LEAT_OK;
		return leat_fail(err, LEAT_INVALID, "field '%s' has no shapes: %s", name,
		                 tensor->offsets ? "its offsets give its only dimension"
		                                 : "every sample has the same shape");
	}
	return leat_fail(err, LEAT_INVALID, "a field has no part %d", (int)part);
}

enum leat_status
leat_batch_dlpack(struct leat_batch *batch, const char *name, enum leat_part part, struct DLManagedTensor **out,
                  struct leat_err *err)
{
	struct leat_tensor tensor;
	enum leat_status status = leat_batch_field(batch, name, &tensor, err);
	struct exported *e;

	*out = NULL;
	if (status == LEAT_OK)
		status = check_part(&tensor, name, part, err);
	if (status != LEAT_OK)
		return status;
	e = calloc(1, sizeof *e);
	if (!e)
		return leat_fail(err, LEAT_NOMEM, "no memory for a tensor");
	e->batch = batch;
	e->column = find_column(batch->form, name, NULL);
	e->managed.tensor.data = tensor.data;
	e->managed.tensor.ndim = tensor.ndim;
	memcpy(e->shape, tensor.shape, sizeof e->shape);
	describe(&e->managed.tensor, part == LEAT_PART_DATA ? tensor.dtype : LEAT_I64);
	if (part == LEAT_PART_OFFSETS) {
		e->managed.tensor.data = (void *)tensor.offsets;
		e->shape[0] = batch->count + 1;
	} else if (part == LEAT_PART_SHAPES) {
		e->managed.tensor.data = (void *)tensor.sample_shapes;
		e->managed.tensor.ndim = 2;
		e->shape[0] = batch->count;
		e->shape[1] = batch->form->column[e->column].field.ndim;
	}
	e->managed.tensor.shape = e->shape;
	e->managed.deleter = exported_delete;
	leat_batch_hold_field(batch, e->column);
	*out = &e->managed;
	return LEAT_OK;
}

/* ---- Python ---- */

/* Weak: found where there is a Python interpreter. */
extern int PyCapsule_IsValid(void *capsule, const char *name) __attribute__((weak));
extern void *PyCapsule_GetPointer(void *capsule, const char *name) __attribute__((weak));

void
leat_capsule_free(void *capsule)
{
	if (!PyCapsule_IsValid || !PyCapsule_GetPointer)
		return;
	if (PyCapsule_IsValid(capsule, LEAT_CAPSULE)) {
		leat_release(PyCapsule_GetPointer(capsule, LEAT_CAPSULE));
	} else if (PyCapsule_IsValid(capsule, "dltensor")) { /* nobody took it: a taker renames the capsule */
		struct DLManagedTensor *tensor = PyCapsule_GetPointer(capsule, "dltensor");

		tensor->deleter(tensor);
	} else {
		leat_arrow_capsule_free(capsule);
	}
}
