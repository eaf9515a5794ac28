/* pipeline_stages.c - turn bound ops into a plan and a chain of stages
 *
 * One walk over the ops in spec order: plan ops go into the plan, sample ops become stages, and the
 * schema is updated along the way. Adjacent ops that can share passes over the elements are fused
 * into one stage. The walk also adds up the scratch that samples need. */
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "feed/pipeline_compile.h"
#include "op/map.h"

/* State needed only while compiling. */
struct compile {
	struct leat_pipeline *p;
	struct leat_schema *schema; /* at this point of the chain */
	/* By field: scratch for its latest result, needed if a later stage writes the field again. */
	struct leat_needs written[LEAT_MAX_FIELDS];
	/* By field: how many times its bytes of the payload are in scratch, with all earlier results. */
	unsigned times[LEAT_MAX_FIELDS];
	bool batched; /* past `batch` */
};

/* ---- the fields an op works on ---- */

enum { MAX_LIST = 512 };

/* "image: uint8[?], label: int64", truncated if too long. */
static const char *
list_fields(const struct leat_schema *schema, char list[MAX_LIST])
{
	size_t len = 0;

	list[0] = '\0';
	for (int i = 0; i < schema->count; i++) {
		const struct leat_field *field = &schema->entry[i].field;
		char type[160], one[256];
		int n = snprintf(one, sizeof one, "%s%s: %s", i ? ", " : "", field->name,
		                 leat_field_format(field, type, sizeof type));

		if (len + (size_t)n + sizeof ", ..." > MAX_LIST) {
			memcpy(list + len, ", ...", sizeof ", ...");
			break;
		}
		memcpy(list + len, one, (size_t)n + 1);
		len += (size_t)n;
	}
	return list;
}

static enum leat_status
fail_field(const struct compile *c, const struct leat_bound *bound, const char *what, struct leat_err *err)
{
	const struct leat_call *call = leat_bound_call(c->p, bound);

	return leat_fail_at(err, c->p->spec.text, call->at, call->len, "%s", what);
}

static bool
accepts(const struct compile *c, const struct leat_bound *bound, int i)
{
	return bound->op->on_field.accepts(&c->schema->entry[i].field, c->schema->entry[i].layout);
}

static void
add_field(const struct compile *c, struct leat_stage *stage, int i)
{
	const struct leat_schema_entry *entry = &c->schema->entry[i];

	stage->field[stage->fields++] = (struct leat_stage_field){i, entry->layout, entry->field.dtype};
}

static enum leat_status
fail_unknown(const struct compile *c, const struct leat_bound *bound, const char *name, struct leat_err *err)
{
	const char *names[LEAT_MAX_FIELDS];
	struct leat_unknown unknown = {
		.what = "field", .name = name, .known = names, .count = (size_t)c->schema->count};
	char sentence[LEAT_UNKNOWN_TEXT], what[LEAT_UNKNOWN_TEXT + 100];

	for (int i = 0; i < c->schema->count; i++)
		names[i] = c->schema->entry[i].field.name;
	snprintf(what, sizeof what, "%s: %s", bound->op->name, leat_unknown_text(&unknown, sentence));
	return fail_field(c, bound, what, err);
}

static enum leat_status
choose_named(const struct compile *c, const struct leat_bound *bound, struct leat_stage *stage, struct leat_err *err)
{
	char what[512], type[160];

	for (size_t k = 0; k < bound->fields.count; k++) {
		const char *name = bound->fields.value[k];
		int i = leat_schema_find(c->schema, name);

		if (i < 0)
			return fail_unknown(c, bound, name, err);
		if (!accepts(c, bound, i)) {
			snprintf(what, sizeof what, "%s needs %s, but field '%s' is %s", bound->op->name,
			         bound->op->on_field.wants, name,
			         leat_field_format(&c->schema->entry[i].field, type, sizeof type));
			return fail_field(c, bound, what, err);
		}
		for (int n = 0; n < stage->fields; n++)
			if (stage->field[n].number == i) {
				snprintf(what, sizeof what, "%s: field '%s' is listed twice", bound->op->name, name);
				return fail_field(c, bound, what, err);
			}
		add_field(c, stage, i);
	}
	return LEAT_OK;
}

/* Without `field=`: `image` if it fits, or else the only field that fits. */
static enum leat_status
choose_field(const struct compile *c, const struct leat_bound *bound, struct leat_stage *stage, struct leat_err *err)
{
	int fit = 0, found = -1, image = leat_schema_find(c->schema, "image");
	char what[MAX_LIST + 256], list[MAX_LIST];

	for (int i = 0; i < c->schema->count; i++)
		if (accepts(c, bound, i)) {
			fit++;
			found = i;
		}
	if (image >= 0 && accepts(c, bound, image)) {
		fit = 1;
		found = image;
	}
	if (fit != 1) {
		snprintf(what, sizeof what, "%s needs %s, %s; the fields here are %s", bound->op->name,
		         bound->op->on_field.wants,
		         fit ? "and several fields fit: choose with field=NAME" : "but there is none",
		         list_fields(c->schema, list));
		return fail_field(c, bound, what, err);
	}
	add_field(c, stage, found);
	return LEAT_OK;
}

static enum leat_status
choose_fields(const struct compile *c, const struct leat_bound *bound, struct leat_stage *stage, struct leat_err *err)
{
	size_t most = bound->fields.count ? bound->fields.count : 1;

	stage->field = leat_alloc_array(c->p->mem, most, sizeof *stage->field);
	if (!stage->field)
		return leat_fail_mem(err, c->p->mem, most * sizeof *stage->field, "the fields of an op");
	return bound->fields.count ? choose_named(c, bound, stage, err) : choose_field(c, bound, stage, err);
}

/* ---- schema after an op ---- */

static size_t
max_size(size_t a, size_t b)
{
	return a > b ? a : b;
}

static enum leat_status
infer_field(struct compile *c, const struct leat_bound *bound, int i, struct leat_err *err)
{
	const struct leat_field_op *op = &bound->op->on_field;
	struct leat_schema_entry *entry = &c->schema->entry[i];
	enum leat_status status = LEAT_OK;

	/* Fields are processed one at a time and share this scratch. */
	if (op->scratch_bytes)
		c->p->op_scratch = max_size(c->p->op_scratch, op->scratch_bytes(bound->params, &entry->field));
	if (op->infer)
		status = op->infer(bound->params, &entry->field, &entry->layout, err);
	if (bound->op->kind == LEAT_OP_POINTWISE)
		entry->field.dtype = LEAT_F32;
	return status;
}

static enum leat_status
infer(struct compile *c, const struct leat_bound *bound, const struct leat_stage *stage, struct leat_err *err)
{
	const struct leat_op *op = bound->op;
	enum leat_status status = LEAT_OK;
	struct leat_err why = {0};

	if (op->on_batch.infer)
		status = op->on_batch.infer(bound->params, c->schema, &why);
	else if (op->on_fields.infer)
		status = op->on_fields.infer(bound->params, c->schema, &why);
	for (int k = 0; k < stage->fields && status == LEAT_OK; k++)
		status = infer_field(c, bound, stage->field[k].number, &why);
	return status == LEAT_OK ? LEAT_OK : leat_fail_in_op(c->p, bound, &why, err);
}

/* ---- scratch ---- */

enum { ALIGN = 64 }; /* of what is in scratch */

/* Scratch for the current form of field `i`. Saturates at a size that fits nowhere. */
static struct leat_needs
needs_of(const struct compile *c, int i)
{
	const struct leat_schema_entry *entry = &c->schema->entry[i];
	size_t element = leat_dtype_size(entry->field.dtype), most = (size_t)1 << 40;
	int64_t elements = leat_field_elements(&entry->field);

	if (entry->unbounded)
		return (struct leat_needs){0};
	if (!leat_field_is_static(&entry->field))
		return (struct leat_needs){entry->extra_elements * element + ALIGN,
		                           entry->field.ndim == 1 ? (unsigned)element : 0};
	return (struct leat_needs){
		elements < 0 || (size_t)elements > most / element ? most : (size_t)elements * element + ALIGN, 0};
}

static unsigned
max_times(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

/* A result is in scratch. Fields are made of different bytes of the payload, so together they take no
 * more than if the field that expands most had all of them. */
static void
add_to_scratch(struct compile *c, const struct leat_needs *written, unsigned *times)
{
	c->p->scratch.bytes += written->bytes;
	*times += written->times;
	c->p->scratch.times = max_times(c->p->scratch.times, *times);
}

/* Renumbers `written` and `times` like the stage renumbers the fields. New fields are made from those that are
 * dropped. */
static void
carry_written(struct compile *c, const struct leat_stage *stage)
{
	struct leat_needs before[LEAT_MAX_FIELDS];
	unsigned times[LEAT_MAX_FIELDS], dropped = 0;
	bool carried[LEAT_MAX_FIELDS] = {0};

	memcpy(before, c->written, sizeof before);
	memcpy(times, c->times, sizeof times);
	memset(c->written, 0, sizeof c->written);
	memset(c->times, 0, sizeof c->times);
	for (int i = 0; i < stage->count; i++)
		if (leat_stage_carries(stage, i) >= 0)
			carried[leat_stage_carries(stage, i)] = true;
	for (int i = 0; i < LEAT_MAX_FIELDS; i++) {
		if (carried[i])
			continue;
		add_to_scratch(c, &before[i], &times[i]);
		dropped = max_times(dropped, times[i]);
	}
	for (int i = 0; i < stage->count; i++) {
		int from = leat_stage_carries(stage, i);

		c->times[i] = from < 0 ? dropped : times[from];
		if (from >= 0)
			c->written[i] = before[from];
	}
}

/* Only the last result of a field goes to the batch; earlier ones need scratch. */
static void
count_scratch(struct compile *c, const struct leat_stage *stage)
{
	carry_written(c, stage);
	for (int i = 0; i < stage->count; i++) {
		if (!leat_stage_writes_anew(stage, i))
			continue;
		add_to_scratch(c, &c->written[i], &c->times[i]);
		c->written[i] = needs_of(c, i);
	}
}

/* An in-place op may need a copy when fused: channel means need the whole image. */
static void
count_fused_scratch(struct compile *c, const struct leat_stage *stage)
{
	for (int k = 0; k < stage->fields; k++) {
		int i = stage->field[k].number;
		const struct leat_field *field = &c->schema->entry[i].field;
		int64_t width = field->ndim == 3 ? field->shape[c->schema->entry[i].layout == LEAT_CHW ? 2 : 1] : -1;

		if (stage->op[0]->op->on_field.in_place && leat_field_is_static(field))
			c->p->scratch.bytes += needs_of(c, i).bytes;
		if (width > 0)
			c->p->row_scratch = max_size(c->p->row_scratch, leat_sink_scratch(width));
	}
}

/* Adds the scratch for all fields of the sample as it is now. */
static void
add_all_needs(const struct compile *c, struct leat_needs *sum)
{
	unsigned times = 0;

	for (int i = 0; i < c->schema->count; i++) {
		struct leat_needs needs = needs_of(c, i);

		sum->bytes += needs.bytes;
		times = max_times(times, needs.times);
	}
	sum->times += times;
}

static bool
has_unbounded(const struct leat_schema *schema)
{
	for (int i = 0; i < schema->count; i++)
		if (schema->entry[i].unbounded)
			return true;
	return false;
}

/* Fields made from one of unbounded size, such as those that `example` finds in the result of a function, are
 * unbounded too. */
static void
mark_unbounded(struct compile *c, const struct leat_stage *stage)
{
	for (int i = 0; i < stage->count; i++)
		if (leat_stage_carries(stage, i) < 0 && !leat_field_is_static(&c->schema->entry[i].field))
			c->schema->entry[i].unbounded = true;
}

/* ---- stages ---- */

static bool
same_fields(const struct leat_stage *a, const struct leat_stage *b)
{
	bool same = a->fields == b->fields;

	for (int k = 0; k < a->fields && same; k++)
		same = a->field[k].number == b->field[k].number;
	return same;
}

/* Can later ops be fused with this one? */
static bool
can_start_fusion(const struct leat_stage *stage)
{
	for (int k = 0; k < stage->fields; k++)
		if (!leat_op_can_start_fusion(stage->op[0]->op, stage->field[k].dtype, stage->field[k].layout))
			return false;
	return stage->fields > 0;
}

/* Fuses the op with the previous stage if both work on the same fields and can share passes over the elements. */
static bool
fuse(struct compile *c, const struct leat_stage *stage)
{
	struct leat_pipeline *p = c->p;
	struct leat_stage *last = p->stages ? &p->stage[p->stages - 1] : NULL;
	const struct leat_op *op = stage->op[0]->op;

	/* Ops on both sides of a cache must stay in separate stages. */
	if (p->cache && p->cached == p->stages)
		return false;
	if (!last || !same_fields(last, stage) || last->ops == LEAT_MAX_FUSED)
		return false;
	if (last->fused ? !leat_op_can_fuse(op) : !op->on_field.fuse.affine || !last->op[0]->op->on_field.fuse.affine)
		return false;
	last->op[last->ops++] = stage->op[0];
	if (last->fused)
		count_fused_scratch(c, stage);
	return true;
}

/* Adds the stage, unless its op is fused with the previous one. The caller frees what remains in *stage. */
static enum leat_status
keep_stage(struct compile *c, struct leat_stage *stage, struct leat_err *err)
{
	struct leat_pipeline *p = c->p;

	p->max_fields = stage->count > p->max_fields ? stage->count : p->max_fields;
	count_scratch(c, stage);
	if (fuse(c, stage))
		return LEAT_OK;
	stage->fused = can_start_fusion(stage);
	stage->output_slot = leat_alloc_array(p->mem, (size_t)stage->count, sizeof *stage->output_slot);
	if (!stage->output_slot)
		return leat_fail_mem(err, p->mem, (size_t)stage->count * sizeof *stage->output_slot, "a stage");
	p->stage[p->stages++] = *stage;
	stage->field = NULL;
	return LEAT_OK;
}

/* What the last stage, to which an op was just added, makes of samples. */
static enum leat_status
keep_schema(struct compile *c, struct leat_err *err)
{
	struct leat_schema *after = &c->p->stage[c->p->stages - 1].after;

	leat_schema_free(after, c->p->mem);
	return leat_schema_copy(after, c->schema, 0, c->p->mem, err);
}

/* The sample is copied to the function's process and back. */
static void
count_exchange(struct compile *c, const struct leat_needs *in)
{
	struct leat_needs needs = *in;

	add_all_needs(c, &needs);
	c->p->in_processes = true;
	c->p->exchange.bytes = max_size(c->p->exchange.bytes, needs.bytes);
	c->p->exchange.times = needs.times > c->p->exchange.times ? needs.times : c->p->exchange.times;
}

static enum leat_status
add_stage(struct compile *c, const struct leat_bound *bound, struct leat_err *err)
{
	struct leat_stage stage = {.op = {bound}, .ops = 1};
	enum leat_status status = LEAT_OK;
	struct leat_needs in = {0};
	bool maps = bound->op == &leat_op_map, unbounded = has_unbounded(c->schema);

	add_all_needs(c, &in);
	if (leat_op_is_on_field(bound->op))
		status = choose_fields(c, bound, &stage, err);
	if (status == LEAT_OK)
		status = infer(c, bound, &stage, err);
	stage.count = c->schema->count;
	if (status == LEAT_OK && (maps || (unbounded && bound->op->kind == LEAT_OP_FIELDS)))
		mark_unbounded(c, &stage);
	if (status == LEAT_OK && maps && !((const struct leat_map_params *)bound->params)->function->run)
		count_exchange(c, &in);
	if (status == LEAT_OK)
		status = keep_stage(c, &stage, err);
	if (status == LEAT_OK && c->p->explained)
		status = keep_schema(c, err);
	leat_free(c->p->mem, stage.field);
	c->p->decodes |= bound->op->kind == LEAT_OP_DECODE || has_unbounded(c->schema);
	c->p->converts |= bound->op->kind == LEAT_OP_CONVERT;
	return status;
}

/* ---- other ops ---- */

static enum leat_status
add_to_plan(struct compile *c, const struct leat_bound *bound, struct leat_err *err)
{
	const struct leat_call *call = leat_bound_call(c->p, bound);
	struct leat_err why = {0};

	if (leat_plan_add(&c->p->plan, bound->op, bound->params, bound->stream, &why) == LEAT_OK)
		return LEAT_OK;
	if (why.status == LEAT_NOMEM || why.status == LEAT_LIMIT)
		return leat_fail_as(err, &why);
	return leat_fail_at(err, c->p->spec.text, call->at, call->end - call->at, "%s", why.text);
}

static enum leat_status
add_cache(struct compile *c, const struct leat_bound *bound, struct leat_err *err)
{
	const struct leat_call *call = leat_bound_call(c->p, bound);
	struct leat_pipeline *p = c->p;

	if (p->cache)
		return leat_fail_at(err, p->spec.text, call->at, call->len, "a spec can have only one cache");
	p->cache = bound;
	p->cached = p->stages;
	for (int s = 0; s < p->stages; s++)
		for (int k = 0; k < p->stage[s].ops; k++) {
			const struct leat_bound *before = p->stage[s].op[k];
			const struct leat_map_params *map = before->op == &leat_op_map ? before->params : NULL;

			if (map && !*map->version)
				return leat_fail_at(err, p->spec.text, call->at, call->len,
				                    "a cache after map needs to know when the function changes: give "
				                    "map('%s') a version, as in version='1', and change it with "
				                    "the function",
				                    map->name);
			p->cache_frozen |= before->op->random || (map && map->random);
		}
	return leat_schema_copy(&p->cache_schema, c->schema, 0, p->mem, err);
}

static int
common_multiple(int a, int b)
{
	int n = a;

	while (n % b != 0)
		n += a;
	return n;
}

static enum leat_status
add_mix(struct compile *c, const struct leat_bound *bound, struct leat_err *err)
{
	const struct leat_stage none = {0};
	int group = bound->op->on_batch.row_group;

	c->p->mix[c->p->mixes++] = bound;
	c->p->row_group = common_multiple(c->p->row_group, group > 0 ? group : 1);
	return infer(c, bound, &none, err);
}

static enum leat_status
check_order(const struct compile *c, const struct leat_bound *bound, struct leat_err *err)
{
	const struct leat_call *call = leat_bound_call(c->p, bound);
	bool mixes = bound->op->kind == LEAT_OP_MIX;

	if (!c->batched && mixes)
		return leat_fail_at(err, c->p->spec.text, call->at, call->len,
		                    "'%s' works on whole batches: put it after batch", bound->op->name);
	if (c->batched && !mixes && bound->op->kind != LEAT_OP_HINT)
		return leat_fail_at(err, c->p->spec.text, call->at, call->len,
		                    "'%s' works on single samples: put it before batch", bound->op->name);
	return LEAT_OK;
}

static enum leat_status
add_op(struct compile *c, const struct leat_bound *bound, struct leat_err *err)
{
	switch (bound->op->kind) {
	case LEAT_OP_PLAN:
		return add_to_plan(c, bound, err);
	case LEAT_OP_BATCH:
		c->p->batch = *(const struct leat_batch_params *)bound->params;
		c->batched = true;
		return LEAT_OK;
	case LEAT_OP_CACHE:
		return add_cache(c, bound, err);
	case LEAT_OP_MIX:
		return add_mix(c, bound, err);
	case LEAT_OP_HINT:
		c->p->prefetch = ((const struct leat_prefetch_params *)bound->params)->batches;
		return LEAT_OK;
	default:
		return add_stage(c, bound, err);
	}
}

/* Each sample would mean decoding its whole unit again. */
static enum leat_status
refuse_scattering(const struct leat_pipeline *p, struct leat_err *err)
{
	const char *where = p->source.scatter_where;

	for (int i = 0; i < p->ops; i++) {
		const struct leat_bound *bound = &p->op[i];
		const struct leat_call *call = leat_bound_call(p, bound);

		if (bound->op->on_plan.scatters && bound->op->on_plan.scatters(bound->params))
			return leat_fail_at(err, p->spec.text, call->at, call->end - call->at,
			                    "%s in random order is too slow on %s: use shuffle(window) or "
			                    "shuffle(block=..., window=...), put cache before it, or %s",
			                    bound->op->name, where ? where : "compressed files",
			                    where ? p->source.scatter_remedy : "convert the files with `leat convert`");
	}
	return LEAT_OK;
}

enum leat_status
leat_compile_stages(struct leat_pipeline *p, struct leat_err *err)
{
	struct compile c = {.p = p, .schema = &p->schema};
	enum leat_status status = leat_schema_copy(&p->schema, &p->source.schema, LEAT_MAX_FIELDS, p->mem, err);

	p->max_fields = p->source.schema.count;
	p->batch = (struct leat_batch_params){.size = 1};
	p->prefetch = -1;
	p->row_group = 1;
	for (int i = 0; i < p->ops && status == LEAT_OK; i++) {
		status = check_order(&c, &p->op[i], err);
		if (status == LEAT_OK)
			status = add_op(&c, &p->op[i], err);
	}
	if (status == LEAT_OK && p->source.units && !p->cache)
		status = refuse_scattering(p, err);
	if (status == LEAT_OK)
		leat_schema_trim(&p->schema, p->mem);
	return status;
}
