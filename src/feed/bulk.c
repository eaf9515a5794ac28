/* bulk.c - see bulk.h */
#include "feed/bulk.h"

#include <string.h>

#include "base/clock.h"
#include "base/copy.h"
#include "feed/fetch.h"
#include "feed/pipeline_compile.h"
#include "image/cpu.h"
#include "image/image.h"

/* Rows that a loop looks ahead, and bytes of such a row to prefetch: the CPU finds out about the rest by itself. */
enum { AHEAD = 4, AHEAD_BYTES = 1024 };

/* ---- which pipelines ---- */

/* A field on its way through the stages. */
struct path {
	int field; /* of the source */
	int stage;
	bool affine;
	int steps;
	struct leat_affine step[LEAT_BULK_STEPS];
	enum leat_layout layout;
	enum leat_dtype dtype;
};

static bool
add_affine(struct path *path, const struct leat_stage *stage, int channels)
{
	struct leat_affine step[LEAT_MAX_AFFINE];
	struct leat_rng rng = {0};

	path->affine = true;
	for (int k = 0; k < stage->ops; k++) {
		const struct leat_op *op = stage->op[k]->op;
		int steps = op->random ? LEAT_BULK_STEPS + 1
		                       : op->on_field.fuse.affine(stage->op[k]->params, &rng, channels, step);

		if (path->steps + steps > LEAT_BULK_STEPS)
			return false;
		memcpy(path->step + path->steps, step, (size_t)steps * sizeof(*step));
		path->steps += steps;
	}
	return true;
}

static bool
is_pointwise(const struct leat_stage *stage)
{
	for (int k = 0; k < stage->ops; k++)
		if (stage->op[k]->op->kind != LEAT_OP_POINTWISE)
			return false;
	return true;
}

/* One stage may convert a field: scale, normalize and the like, or a cast. */
static bool
add_stage(struct path *path, const struct leat_stage *stage, int s, const struct leat_stage_field *on,
          const struct leat_field *field)
{
	const struct leat_op *op = stage->op[0]->op;
	int channels = (int)leat_field_channels(field, on->layout);

	if (path->stage >= 0 || on->layout == LEAT_CHW || channels < 1 || channels > LEAT_MAX_CHANNELS)
		return false;
	path->stage = s;
	path->layout = on->layout;
	if (is_pointwise(stage)) {
		path->dtype = LEAT_F32;
		return add_affine(path, stage, channels);
	}
	if (op->kind != LEAT_OP_CONVERT || stage->ops > 1 || !op->on_field.fuse.convert)
		return false;
	op->on_field.fuse.convert(stage->op[0]->params, &path->dtype, &path->layout);
	return path->layout == on->layout;
}

static bool
follow_stage(const struct leat_pipeline *p, int s, struct path path[LEAT_MAX_FIELDS])
{
	const struct leat_stage *stage = &p->stage[s];
	struct path before[LEAT_MAX_FIELDS];

	if (stage->op[0]->op->kind == LEAT_OP_FIELDS) {
		memcpy(before, path, sizeof before);
		for (int i = 0; i < stage->count; i++) {
			int from = leat_stage_carries(stage, i);

			if (from < 0)
				return false;
			path[i] = before[from];
		}
		return true;
	}
	for (int k = 0; k < stage->fields; k++) {
		struct path *one = &path[stage->field[k].number];

		if (!add_stage(one, stage, s, &stage->field[k], &p->source.schema.entry[one->field].field))
			return false;
	}
	return stage->fields > 0;
}

static bool
follow(const struct leat_pipeline *p, struct path path[LEAT_MAX_FIELDS])
{
	for (int i = 0; i < p->source.schema.count; i++)
		path[i] = (struct path){.field = i, .stage = -1, .dtype = p->source.schema.entry[i].field.dtype};
	for (int s = 0; s < p->stages; s++)
		if (!follow_stage(p, s, path))
			return false;
	return true;
}

static bool
make_column(const struct leat_pipeline *p, struct leat_bulk_column *column, const struct path *path,
            const struct leat_field *field)
{
	const struct leat_source *source = &p->source;

	*column = (struct leat_bulk_column){
		.field = path->field,
		.dtype = field->dtype,
		.stage = path->stage,
		.affine = path->affine,
		.steps = path->steps,
	};
	if (field->dtype != path->dtype || !source->kind->rows(source, path->field, &column->form))
		return false;
	/* A stage converts what the source gives; rows that are stored in another type would need two steps. */
	if (path->stage >= 0 && column->form.dtype != source->schema.entry[path->field].field.dtype)
		return false;
	/* A cast by no steps at all: that loop is the faster one. */
	if (column->form.dtype == LEAT_U8 && column->dtype == LEAT_F32)
		column->affine = true;
	column->row_bytes = column->form.elements * leat_dtype_size(field->dtype);
	leat_affine_spread(column->step, path->step, path->steps, 0,
	                   path->layout == LEAT_HWC ? (size_t)field->shape[field->ndim - 1] : 1);
	return true;
}

/* As many rows as other runs have bytes. */
static void
set_rows(struct leat_bulk *bulk)
{
	size_t bytes = 1;

	for (int i = 0; i < bulk->columns; i++)
		bytes += bulk->column[i].row_bytes;
	bulk->rows = bytes >= LEAT_RUN_BYTES                         ? 1
	             : LEAT_RUN_BYTES / bytes > LEAT_RUN_ROWS_DIRECT ? LEAT_RUN_ROWS_DIRECT
	                                                             : (int)(LEAT_RUN_BYTES / bytes);
}

struct leat_bulk *
leat_bulk_new(const struct leat_pipeline *p, struct leat_mem *mem)
{
	struct path path[LEAT_MAX_FIELDS];
	struct leat_bulk *bulk;

	if (!p->source.kind->rows || !p->source.all_fit || p->cache || p->in_processes || !follow(p, path))
		return NULL;
	bulk = leat_alloc(mem, sizeof(*bulk) + (size_t)p->schema.count * sizeof(bulk->column[0]));
	if (!bulk)
		return NULL;
	for (; bulk->columns < p->schema.count; bulk->columns++) {
		int i = bulk->columns;

		if (!make_column(p, &bulk->column[i], &path[i], &p->schema.entry[i].field)) {
			leat_free(mem, bulk);
			return NULL;
		}
	}
	set_rows(bulk);
	return bulk;
}

/* ---- filling ---- */

static inline void
prefetch(const unsigned char *row, size_t bytes)
{
	for (size_t at = 0; at < bytes && at < AHEAD_BYTES; at += LEAT_LINE)
		__builtin_prefetch(row + at);
}

/* A constant `bytes` makes each copy a few moves. */
static inline __attribute__((always_inline)) void
copy_short(unsigned char *to, const unsigned char *const *at, size_t count, size_t bytes)
{
	for (size_t i = 0; i < count; i++) {
		if (i + AHEAD < count)
			__builtin_prefetch(at[i + AHEAD]);
		memcpy(to + i * bytes, at[i], bytes);
	}
}

static void
copy_rows(unsigned char *to, const unsigned char *const *at, size_t count, size_t bytes, bool past_cache)
{
	if (bytes == 8) {
		copy_short(to, at, count, 8);
	} else if (bytes == 4) {
		copy_short(to, at, count, 4);
	} else if (bytes == 1) {
		copy_short(to, at, count, 1);
	} else {
		for (size_t i = 0; i < count; i++) {
			if (i + AHEAD < count)
				prefetch(at[i + AHEAD], bytes);
			leat_copy(to + i * bytes, at[i], bytes, past_cache);
		}
	}
}

static void
convert_rows(const struct leat_bulk_column *c, unsigned char *to, const unsigned char *const *at, size_t count)
{
	size_t bytes = c->form.elements * leat_dtype_size(c->form.dtype);
	bool avx2 = leat_cpu_has_avx2();

	for (size_t i = 0; i < count; i++, to += c->row_bytes) {
		if (i + AHEAD < count)
			prefetch(at[i + AHEAD], bytes);
		if (c->affine)
			leat_affine_row(at[i], c->form.dtype, (float *)(void *)to, c->form.elements, c->step, c->steps,
			                avx2);
		else
			leat_cast(at[i], c->form.dtype, to, c->dtype, c->form.elements);
	}
}

void
leat_bulk_fill(const struct leat_bulk *bulk, const struct leat_source *source, const uint64_t *sample, size_t count,
               const struct leat_batch *batch, int64_t row, struct leat_lane *lane)
{
	const unsigned char *at[LEAT_RUN_ROWS_DIRECT];
	uint64_t begin = leat_now(), end;

	for (int i = 0; i < bulk->columns; i++, begin = end) {
		const struct leat_bulk_column *c = &bulk->column[i];
		unsigned char *to = leat_batch_values(batch, i) + (size_t)row * c->row_bytes;

		source->kind->rows_at(source, c->field, sample, count, at);
		if (c->affine || c->form.dtype != c->dtype)
			convert_rows(c, to, at, count);
		else
			copy_rows(to, at, count, c->row_bytes, batch->form->large);
		end = leat_now();
		leat_count(c->stage < 0 ? &lane->store_ns : &lane->stage_ns[c->stage], end - begin);
	}
}
