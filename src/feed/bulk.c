/* bulk.c - see bulk.h */
#include "feed/bulk.h"

#include <string.h>

#include "base/clock.h"
#include "base/copy.h"
#include "feed/fetch.h"
#include "feed/pipeline_compile.h"
#include "image/cpu.h"
#include "image/image.h"
#include "op/cache.h"

/* Rows that a loop looks ahead, and bytes of such a row to prefetch: the CPU finds out about the rest by itself. */
enum { AHEAD = 4, AHEAD_BYTES = 1024, LOOK_EVERY = 16 };

/* ---- which pipelines ---- */

/* A field on its way through the stages. */
struct path {
	int field; /* of the samples that the stages begin with */
	int stage;
	bool affine;
	int steps;
	struct leat_affine step[LEAT_BULK_STEPS];
	enum leat_layout layout;
	enum leat_dtype dtype;
	int members, first_member; /* of a joined field, in the list of members */
};

/* Fields that are joined. Each is once at most. */
struct members {
	int count;
	int field[LEAT_MAX_FIELDS];
};

/* What the stages begin with: samples of the source, or those of the cache. */
static const struct leat_schema *
first_schema(const struct leat_pipeline *p)
{
	return p->cache ? &p->cache_schema : &p->source.schema;
}

/* How the rows of a field are stored. False: there are none. */
static bool
find_form(const struct leat_pipeline *p, int i, struct leat_row_form *form)
{
	const struct leat_field *field = &first_schema(p)->entry[i].field;
	struct leat_datum datum = {.dtype = field->dtype, .ndim = field->ndim};

	if (!p->cache)
		return p->source.kind->rows(&p->source, i, form);
	if (!leat_field_is_static(field))
		return false;
	memcpy(datum.shape, field->shape, sizeof(datum.shape));
	*form = (struct leat_row_form){.dtype = field->dtype, .elements = (size_t)leat_datum_elements(&datum)};
	return true;
}

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

	if (path->stage >= 0 || path->members || on->layout == LEAT_CHW || channels < 1 || channels > LEAT_MAX_CHANNELS)
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

/* Output field i of a stage as fields of the source in a row. */
static bool
join(const struct leat_stage *stage, int s, int i, const struct path *before, struct members *members,
     struct path *path)
{
	const struct leat_op *op = stage->op[0]->op;
	const int *from;
	int count = op->on_fields.joins ? op->on_fields.joins(stage->op[0]->params, i, &from) : 0;

	*path = (struct path){.stage = s, .members = count, .first_member = members->count};
	for (int k = 0; k < count; k++) {
		if (before[from[k]].stage >= 0 || before[from[k]].members || members->count == LEAT_MAX_FIELDS)
			return false;
		members->field[members->count++] = before[from[k]].field;
	}
	return count > 0;
}

static bool
follow_stage(const struct leat_pipeline *p, int s, struct path path[LEAT_MAX_FIELDS], struct members *members)
{
	const struct leat_stage *stage = &p->stage[s];
	struct path before[LEAT_MAX_FIELDS];

	if (stage->op[0]->op->kind == LEAT_OP_FIELDS) {
		memcpy(before, path, sizeof before);
		for (int i = 0; i < stage->count; i++) {
			int from = leat_stage_carries(stage, i);

			if (from >= 0)
				path[i] = before[from];
			else if (!join(stage, s, i, before, members, &path[i]))
				return false;
		}
		return true;
	}
	for (int k = 0; k < stage->fields; k++) {
		struct path *one = &path[stage->field[k].number];

		if (!add_stage(one, stage, s, &stage->field[k], &first_schema(p)->entry[one->field].field))
			return false;
	}
	return stage->fields > 0;
}

static bool
follow(const struct leat_pipeline *p, struct path path[LEAT_MAX_FIELDS], struct members *members)
{
	const struct leat_schema *schema = first_schema(p);

	for (int i = 0; i < schema->count; i++)
		path[i] = (struct path){.field = i, .stage = -1, .dtype = schema->entry[i].field.dtype};
	for (int s = p->cache ? p->cached : 0; s < p->stages; s++)
		if (!follow_stage(p, s, path, members))
			return false;
	return true;
}

/* Adds a member to a joined row, or makes the last one longer if both are neighbours in the source. */
static void
add_member(struct leat_bulk *bulk, struct leat_bulk_column *column, const struct leat_row_form *form, int field)
{
	struct leat_bulk_member *last = column->members ? &bulk->member[bulk->members - 1] : NULL;
	size_t width = leat_dtype_size(form->dtype);

	if (last && form->record && last->form.record == form->record && last->form.dtype == form->dtype &&
	    form->dtype == column->dtype && form->offset == last->form.offset + last->form.elements * width) {
		last->form.elements += form->elements;
	} else {
		bulk->member[bulk->members++] =
			(struct leat_bulk_member){.field = field, .form = *form, .offset = column->row_bytes};
		column->members++;
	}
	column->row_bytes += form->elements * leat_dtype_size(column->dtype);
}

static bool
make_joined(const struct leat_pipeline *p, struct leat_bulk *bulk, struct leat_bulk_column *column,
            const struct path *path, const struct members *members, const struct leat_field *field)
{
	const struct leat_schema *schema = first_schema(p);

	*column = (struct leat_bulk_column){.dtype = field->dtype, .stage = path->stage, .first_member = bulk->members};
	for (int i = 0; i < path->members; i++) {
		int from = members->field[path->first_member + i];
		struct leat_row_form form;

		/* Rows that are stored in another type would need two steps. */
		if (!find_form(p, from, &form) || form.dtype != schema->entry[from].field.dtype)
			return false;
		add_member(bulk, column, &form, from);
	}
	return true;
}

static bool
make_column(const struct leat_pipeline *p, struct leat_bulk_column *column, const struct path *path,
            const struct leat_field *field)
{
	*column = (struct leat_bulk_column){
		.field = path->field,
		.dtype = field->dtype,
		.stage = path->stage,
		.affine = path->affine,
		.steps = path->steps,
	};
	if (field->dtype != path->dtype || !find_form(p, path->field, &column->form))
		return false;
	/* A stage converts what the source gives; rows that are stored in another type would need two steps. */
	if (path->stage >= 0 && column->form.dtype != first_schema(p)->entry[path->field].field.dtype)
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

/* Are the samples, or will they be, in memory where they can be found? */
static bool
has_rows(const struct leat_pipeline *p)
{
	const struct leat_cache_params *cache = p->cache ? p->cache->params : NULL;

	if (cache)
		return cache->where == LEAT_CACHE_MEMORY;
	return p->source.kind->rows && p->source.all_fit && !p->in_processes;
}

struct leat_bulk *
leat_bulk_new(const struct leat_pipeline *p, struct leat_mem *mem)
{
	struct path path[LEAT_MAX_FIELDS];
	struct members members = {0};
	struct leat_bulk *bulk;

	if (!has_rows(p) || !follow(p, path, &members))
		return NULL;
	bulk = leat_alloc(mem, sizeof(*bulk) + (size_t)p->schema.count * sizeof(bulk->column[0]) +
	                               (size_t)members.count * sizeof(bulk->member[0]));
	if (!bulk)
		return NULL;
	bulk->member = (struct leat_bulk_member *)(void *)&bulk->column[p->schema.count];
	for (; bulk->columns < p->schema.count; bulk->columns++) {
		int i = bulk->columns;
		const struct leat_field *field = &p->schema.entry[i].field;

		if (!(path[i].members ? make_joined(p, bulk, &bulk->column[i], &path[i], &members, field)
		                      : make_column(p, &bulk->column[i], &path[i], field))) {
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

/* Are some rows adjacent in memory? Checks one in LOOK_EVERY, which is enough: shuffled rows have no neighbours. */
static bool
has_neighbours(const unsigned char *const *at, size_t count, size_t bytes)
{
	for (size_t i = 1; i < count; i += LOOK_EVERY)
		if (at[i] == at[i - 1] + bytes)
			return true;
	return false;
}

/* Copies adjacent rows together. */
static void
copy_neighbours(unsigned char *to, const unsigned char *const *at, size_t count, size_t bytes, bool past_cache)
{
	for (size_t i = 0, first; i < count; to += (i - first) * bytes) {
		first = i++;
		while (i < count && at[i] == at[i - 1] + bytes)
			i++;
		leat_copy(to, at[first], (i - first) * bytes, past_cache);
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
	} else if (has_neighbours(at, count, bytes)) {
		copy_neighbours(to, at, count, bytes, past_cache);
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

/* The part of joined rows that a member is. */
static void
fill_member(const struct leat_bulk_member *m, const struct leat_bulk_column *c, unsigned char *to,
            const unsigned char *const *at, size_t count)
{
	size_t bytes = m->form.elements * leat_dtype_size(m->form.dtype), stride = c->row_bytes;

	to += m->offset;
	for (size_t i = 0; i < count; i++, to += stride) {
		if (i + AHEAD < count)
			prefetch(at[i + AHEAD], bytes);
		if (m->form.dtype != c->dtype)
			leat_cast(at[i], m->form.dtype, to, c->dtype, m->form.elements);
		else if (bytes == 4)
			memcpy(to, at[i], 4);
		else if (bytes == 8)
			memcpy(to, at[i], 8);
		else
			memcpy(to, at[i], bytes);
	}
}

static void
find_rows(const struct leat_bulk_samples *from, int field, const unsigned char **at)
{
	if (from->cache)
		leat_cache_rows(from->cache, field, from->sample, from->count, at);
	else
		from->source->kind->rows_at(from->source, field, from->sample, from->count, at);
}

static void
join_rows(const struct leat_bulk *bulk, const struct leat_bulk_column *c, const struct leat_bulk_samples *from,
          unsigned char *to)
{
	const unsigned char *at[LEAT_RUN_ROWS_DIRECT];

	for (int m = c->first_member; m < c->first_member + c->members; m++) {
		find_rows(from, bulk->member[m].field, at);
		fill_member(&bulk->member[m], c, to, at, from->count);
	}
}

static void
fill_rows(const struct leat_bulk_column *c, const struct leat_bulk_samples *from, unsigned char *to, bool past_cache)
{
	const unsigned char *at[LEAT_RUN_ROWS_DIRECT];

	find_rows(from, c->field, at);
	if (c->affine || c->form.dtype != c->dtype)
		convert_rows(c, to, at, from->count);
	else
		copy_rows(to, at, from->count, c->row_bytes, past_cache);
}

void
leat_bulk_fill(const struct leat_bulk *bulk, const struct leat_bulk_samples *from, const struct leat_batch *batch,
               int64_t row, struct leat_lane *lane, uint64_t every)
{
	uint64_t begin = leat_now(), end;

	for (int i = 0; i < bulk->columns; i++, begin = end) {
		const struct leat_bulk_column *c = &bulk->column[i];
		unsigned char *to = leat_batch_values(batch, i) + (size_t)row * c->row_bytes;

		if (c->members)
			join_rows(bulk, c, from, to);
		else
			fill_rows(c, from, to, batch->form->large);
		end = leat_now();
		leat_count(c->stage < 0 ? &lane->store_ns : &lane->stage_ns[c->stage], (end - begin) / every);
	}
}
