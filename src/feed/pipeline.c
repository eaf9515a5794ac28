/* pipeline.c - compile a spec
 *
 * Three walks over the calls: bind (names and options against the tables), arrange
 * (plan ops go into the plan, sample ops become stages, the schema is carried along),
 * and place (backwards: which stage writes a field for the last time). */
#include "feed/pipeline.h"

#include <stdio.h>
#include <string.h>

#include "base/names.h"

enum { MAX_CANONICAL = 256 * 1024 };

static enum leat_status
fail_unknown(const struct leat_spec *spec, const struct leat_call *call, bool source, struct leat_err *err)
{
	struct leat_unknown unknown = {
		.what = source ? "source" : "op", .name = call->name, .hint = "'leat ops' lists all"};
	char sentence[LEAT_UNKNOWN_TEXT];
	const char *names[256];

	if (source && leat_op_find(call->name))
		return leat_fail_at(err, spec->text, call->at, call->len,
		                    "a spec begins with a source such as tfrecord(...), but '%s' is an op", call->name);
	if (!source && leat_source_find(call->name))
		return leat_fail_at(err, spec->text, call->at, call->len,
		                    "'%s' is a source: it can only stand at the beginning", call->name);
	for (size_t i = 0; source && leat_sources[i] && i < 256; i++)
		names[unknown.count++] = leat_sources[i]->name;
	for (size_t i = 0; !source && leat_ops[i] && i < 256; i++)
		names[unknown.count++] = leat_ops[i]->name;
	unknown.known = names;
	return leat_fail_at(err, spec->text, call->at, call->len, "%s", leat_unknown_text(&unknown, sentence));
}

/* ---- bind ---- */

static enum leat_status
open_source(struct leat_pipeline *p, unsigned threads, const struct leat_log *log, struct leat_err *err)
{
	const struct leat_call *call = &p->spec.call[0];
	const struct leat_source_kind *kind = leat_source_find(call->name);
	enum leat_status status;

	if (!kind)
		return fail_unknown(&p->spec, call, true, err);
	p->source_params = leat_alloc(p->mem, kind->params_size);
	if (!p->source_params)
		return leat_fail_mem(err, p->mem, kind->params_size, "a source's options");
	p->source_kind = kind;
	if (kind->parse)
		status = kind->parse(p->source_params, call, p->spec.text, p->mem, err);
	else
		status = leat_opts_set(kind->opts, p->source_params, call, p->spec.text, p->mem, err);
	if (status != LEAT_OK)
		return status;
	status = leat_source_open(&p->source, kind, p->source_params, threads, p->mem, log, err);
	p->source_open = status == LEAT_OK;
	return status;
}

/* `field=` is common to all ops that work on one field; their own tables do not know it. */
static enum leat_status
take_field_argument(struct leat_pipeline *p, struct leat_bound *bound, struct leat_call *rest, struct leat_err *err)
{
	const struct leat_call *call = bound->call;
	const struct leat_arg *names = NULL;
	struct leat_arg *args;
	size_t count;

	*rest = *call;
	for (size_t i = 0; i < call->args; i++)
		if (call->arg[i].name && strcmp(call->arg[i].name, "field") == 0)
			names = &call->arg[i];
	if (!names)
		return LEAT_OK;
	if (names->type == LEAT_ARG_NUMBER || (names->type == LEAT_ARG_LIST && names->items == 0))
		return leat_fail_at(err, p->spec.text, names->at, names->len,
		                    "field takes a name or a list of names, as in field=[image, mask]");

	count = names->type == LEAT_ARG_LIST ? names->items : 1;
	bound->fields.value = leat_alloc_array(p->mem, count, sizeof *bound->fields.value);
	args = leat_alloc_array(p->mem, call->args, sizeof *args);
	if (!bound->fields.value || !args) {
		leat_free(p->mem, args);
		return leat_fail_mem(err, p->mem, count * sizeof *bound->fields.value, "field names");
	}
	rest->arg = args;
	rest->args = 0;
	for (size_t i = 0; i < call->args; i++)
		if (&call->arg[i] != names)
			args[rest->args++] = call->arg[i];
	for (size_t i = 0; i < count; i++) {
		const struct leat_arg *item = names->type == LEAT_ARG_LIST ? &names->item[i] : names;

		if (item->type != LEAT_ARG_WORD && item->type != LEAT_ARG_STRING)
			return leat_fail_at(err, p->spec.text, item->at, item->len, "a field's name was expected here");
		bound->fields.value[bound->fields.count++] = item->text;
	}
	return LEAT_OK;
}

static enum leat_status
set_params(struct leat_pipeline *p, struct leat_bound *bound, struct leat_err *err)
{
	const struct leat_op *op = bound->op;
	struct leat_call rest = *bound->call;
	enum leat_status status = LEAT_OK;

	bound->params = leat_alloc(p->mem, op->params_size ? op->params_size : 1);
	if (!bound->params)
		return leat_fail_mem(err, p->mem, op->params_size, "an op's options");
	if (leat_op_is_on_field(op))
		status = take_field_argument(p, bound, &rest, err);
	if (status == LEAT_OK && op->parse)
		status = op->parse(bound->params, &rest, p->spec.text, p->mem, err);
	else if (status == LEAT_OK)
		status = leat_opts_set(op->opts, bound->params, &rest, p->spec.text, p->mem, err);
	if (rest.arg != bound->call->arg)
		leat_free(p->mem, (void *)rest.arg);
	if (status == LEAT_OK && op->check) {
		struct leat_err why = {0};

		status = op->check(bound->params, &why);
		if (status != LEAT_OK)
			status = leat_fail_at(err, p->spec.text, bound->call->at, bound->call->end - bound->call->at,
			                      "%s: %s", op->name, why.text);
	}
	return status;
}

static unsigned
occurrence(const struct leat_pipeline *p, const struct leat_op *op)
{
	unsigned n = 0;

	for (int i = 0; i < p->ops; i++)
		n += p->op[i].op == op;
	return n;
}

static enum leat_status
bind_ops(struct leat_pipeline *p, struct leat_err *err)
{
	if (p->spec.calls - 1 > LEAT_MAX_OPS)
		return leat_fail(err, LEAT_SPEC, "a spec has at most %d ops, this one has %zu", LEAT_MAX_OPS,
		                 p->spec.calls - 1);
	for (size_t i = 1; i < p->spec.calls; i++) {
		const struct leat_call *call = &p->spec.call[i];
		struct leat_bound *bound = &p->op[p->ops];
		const struct leat_op *op = leat_op_find(call->name);
		enum leat_status status;

		if (!op)
			return fail_unknown(&p->spec, call, false, err);
		*bound = (struct leat_bound){.op = op, .call = call};
		bound->stream = leat_stream(op->name, occurrence(p, op));
		p->ops++; /* from here on close frees it */
		status = set_params(p, bound, err);
		if (status != LEAT_OK)
			return status;
	}
	return LEAT_OK;
}

/* ---- arrange ---- */

static enum leat_status
fail_field(const struct leat_pipeline *p, const struct leat_bound *bound, const char *what, struct leat_err *err)
{
	char list[512] = "", one[160];
	size_t len = 0;

	for (int i = 0; i < p->schema.count; i++) {
		const struct leat_field *f = &p->schema.entry[i].field;
		int n = snprintf(list + len, sizeof list - len, "%s%s: %s", i ? ", " : "", f->name,
		                 leat_field_format(f, one, sizeof one));

		if (n < 0 || (size_t)n >= sizeof list - len)
			break;
		len += (size_t)n;
	}
	return leat_fail_at(err, p->spec.text, bound->call->at, bound->call->len, "%s; the fields here are %s", what,
	                    list);
}

static enum leat_status
choose_named(const struct leat_pipeline *p, const struct leat_bound *bound, struct leat_stage *stage,
             struct leat_err *err)
{
	char what[256];

	for (size_t k = 0; k < bound->fields.count; k++) {
		int i = leat_schema_find(&p->schema, bound->fields.value[k]);

		if (i < 0) {
			snprintf(what, sizeof what, "%s: there is no field '%s'", bound->op->name,
			         bound->fields.value[k]);
			return fail_field(p, bound, what, err);
		}
		if (!bound->op->on_field.accepts(&p->schema.entry[i].field, p->schema.entry[i].layout)) {
			snprintf(what, sizeof what, "%s needs %s, and field '%s' is not", bound->op->name,
			         bound->op->on_field.wants, bound->fields.value[k]);
			return fail_field(p, bound, what, err);
		}
		for (int n = 0; n < stage->fields; n++)
			if (stage->field[n] == i) {
				snprintf(what, sizeof what, "%s: field '%s' is named twice", bound->op->name,
				         bound->fields.value[k]);
				return fail_field(p, bound, what, err);
			}
		stage->field[stage->fields++] = i;
	}
	return LEAT_OK;
}

/* The field an op works on: those named; else `image`; else the only one that fits. */
static enum leat_status
choose_fields(const struct leat_pipeline *p, const struct leat_bound *bound, struct leat_stage *stage,
              struct leat_err *err)
{
	int fit = 0, found = -1, image;
	char what[256];

	if (bound->fields.count > 0)
		return choose_named(p, bound, stage, err);
	image = leat_schema_find(&p->schema, "image");
	for (int i = 0; i < p->schema.count; i++)
		if (bound->op->on_field.accepts(&p->schema.entry[i].field, p->schema.entry[i].layout)) {
			fit++;
			found = i;
		}
	if (image >= 0 && bound->op->on_field.accepts(&p->schema.entry[image].field, p->schema.entry[image].layout)) {
		fit = 1;
		found = image;
	}
	if (fit != 1) {
		snprintf(what, sizeof what,
		         fit ? "%s needs %s, and several fields fit: say which with field=NAME"
		             : "%s needs %s, and no field is",
		         bound->op->name, bound->op->on_field.wants);
		return fail_field(p, bound, what, err);
	}
	stage->field[stage->fields++] = found;
	return LEAT_OK;
}

static bool
same_fields(const struct leat_stage *a, const struct leat_stage *b)
{
	return a->fields == b->fields && memcmp(a->field, b->field, (size_t)a->fields * sizeof a->field[0]) == 0;
}

/* Can later ops be fused with this one? */
static bool
can_start_fusion(const struct leat_stage *stage)
{
	const struct leat_op *op = stage->op[0]->op;

	for (int k = 0; k < stage->fields; k++)
		if (!leat_op_can_start_fusion(op, stage->dtype[k], stage->layout[k]))
			return false;
	return stage->fields > 0;
}

/* Fuses the op with the stage before it, on the same fields, if both can share passes over the elements. */
static bool
fuse(struct leat_pipeline *p, const struct leat_stage *stage)
{
	struct leat_stage *last = p->stages ? &p->stage[p->stages - 1] : NULL;
	const struct leat_op *op = stage->op[0]->op;

	/* A cache keeps what is between two stages: none may reach across it. */
	if (p->cache && p->cached == p->stages)
		return false;
	if (!last || !same_fields(last, stage) || last->ops == LEAT_MAX_FUSED)
		return false;
	if (last->fused ? !leat_op_can_fuse(op) : !op->on_field.fuse.affine || !last->op[0]->op->on_field.fuse.affine)
		return false;
	last->op[last->ops++] = stage->op[0];
	return true;
}

/* Fields are worked on one after the other: what one needed is free for the next. */
static void
count_op_scratch(struct leat_pipeline *p, const struct leat_bound *bound, const struct leat_field *field)
{
	size_t bytes = bound->op->on_field.scratch_bytes ? bound->op->on_field.scratch_bytes(bound->params, field) : 0;

	p->op_scratch = bytes > p->op_scratch ? bytes : p->op_scratch;
}

/* Rows on their way, of `width` pixels; -1 is not known, and not counted. */
static void
count_row_scratch(struct leat_pipeline *p, int64_t width)
{
	size_t bytes = width > 0 ? leat_sink_scratch(width) : 0;

	p->row_scratch = bytes > p->row_scratch ? bytes : p->row_scratch;
}

static enum leat_status
infer(struct leat_pipeline *p, const struct leat_bound *bound, struct leat_stage *stage, struct leat_err *err)
{
	const struct leat_op *op = bound->op;
	enum leat_status status = LEAT_OK;
	struct leat_err why = {0};

	if (op->on_batch.infer) {
		status = op->on_batch.infer(bound->params, &p->schema, &why);
	} else if (op->on_fields.infer) {
		status = op->on_fields.infer(bound->params, &p->schema, &why);
	} else {
		for (int k = 0; k < stage->fields && status == LEAT_OK; k++) {
			int i = stage->field[k];

			stage->layout[k] = p->schema.entry[i].layout;
			stage->dtype[k] = p->schema.entry[i].field.dtype;
			count_op_scratch(p, bound, &p->schema.entry[i].field);
			if (op->on_field.infer)
				status = op->on_field.infer(bound->params, &p->schema.entry[i].field,
				                            &p->schema.entry[i].layout, &why);
			if (op->kind == LEAT_OP_POINTWISE)
				p->schema.entry[i].field.dtype = LEAT_F32;
		}
	}
	if (status != LEAT_OK)
		return leat_fail_at(err, p->spec.text, bound->call->at, bound->call->end - bound->call->at, "%s: %s",
		                    op->name, why.text);
	return LEAT_OK;
}

/* Which field, as numbered before this stage, field `i` behind it is; -1: it is a new one. */
static int
carried_from(const struct leat_stage *stage, int i)
{
	const struct leat_bound *bound = stage->op[0];

	if (bound->op->kind != LEAT_OP_FIELDS)
		return i;
	return bound->op->on_fields.carries && i < stage->count ? bound->op->on_fields.carries(bound->params, i) : -1;
}

/* Does this stage put field `i` (numbered as when it is done) into new memory? An op that works in
 * place leaves it where it was. */
static bool
writes_anew(const struct leat_stage *stage, int i)
{
	const struct leat_op *op = stage->op[0]->op;

	if (op->kind == LEAT_OP_FIELDS)
		return carried_from(stage, i) < 0;
	for (int k = 0; k < stage->fields; k++)
		if (stage->field[k] == i)
			return op->kind == LEAT_OP_POINTWISE ? stage->dtype[k] != LEAT_F32 : !op->on_field.in_place;
	return false;
}

/* What field `i`, as it is now, takes in scratch. More than fits anywhere is as good as uncountable. */
static struct leat_needs
needs_of(const struct leat_pipeline *p, int i)
{
	const struct leat_field *field = &p->schema.entry[i].field;
	size_t element = leat_dtype_size(field->dtype), most = (size_t)1 << 40;
	int64_t elements = leat_field_elements(field);

	if (!leat_field_is_static(field))
		return (struct leat_needs){p->schema.entry[i].extra_elements * element,
		                           field->ndim == 1 ? (unsigned)element : 0};
	return (struct leat_needs){
		elements < 0 || (size_t)elements > most / element ? most : (size_t)elements * element, 0};
}

/* `written` goes along with the fields that a stage carries to another number. */
static void
carry_written(struct leat_pipeline *p, const struct leat_stage *stage)
{
	struct leat_needs before[LEAT_MAX_FIELDS];

	memcpy(before, p->written, sizeof before);
	memset(p->written, 0, sizeof p->written);
	for (int i = 0; i < stage->count; i++) {
		int from = carried_from(stage, i);

		if (from < 0)
			continue;
		p->written[i] = before[from];
		before[from] = (struct leat_needs){0};
	}
	for (int i = 0; i < LEAT_MAX_FIELDS; i++) { /* what is left is dropped, and was in scratch */
		p->scratch.bytes += before[i].bytes;
		p->scratch.times += before[i].times;
	}
}

/* A result that is written again later was not the last, which goes to its slot: it lies in scratch. */
static void
count_scratch(struct leat_pipeline *p, const struct leat_stage *stage)
{
	carry_written(p, stage);
	for (int i = 0; i < stage->count; i++) {
		if (!writes_anew(stage, i))
			continue;
		p->scratch.bytes += p->written[i].bytes;
		p->scratch.times += p->written[i].times;
		p->written[i] = needs_of(p, i);
	}
}

/* An op that works in place by itself may need a copy when fused: channel means need the whole image. */
static void
count_fused(struct leat_pipeline *p, const struct leat_stage *stage)
{
	for (int k = 0; k < stage->fields && p->stage[p->stages - 1].fused; k++) {
		const struct leat_field *field = &p->schema.entry[stage->field[k]].field;

		if (stage->op[0]->op->on_field.in_place && leat_field_is_static(field))
			p->scratch.bytes += needs_of(p, stage->field[k]).bytes;
		if (field->ndim == 3)
			count_row_scratch(p, field->shape[p->schema.entry[stage->field[k]].layout == LEAT_CHW ? 2 : 1]);
	}
}

static enum leat_status
add_stage(struct leat_pipeline *p, const struct leat_bound *bound, struct leat_err *err)
{
	struct leat_stage stage = {.op = {bound}, .ops = 1};
	enum leat_status status = LEAT_OK;

	if (leat_op_is_on_field(bound->op))
		status = choose_fields(p, bound, &stage, err);
	if (status == LEAT_OK)
		status = infer(p, bound, &stage, err);
	if (status != LEAT_OK)
		return status;
	p->decodes |= bound->op->kind == LEAT_OP_DECODE;
	p->converts |= bound->op->kind == LEAT_OP_CONVERT;
	stage.count = p->schema.count;
	count_scratch(p, &stage);
	if (!fuse(p, &stage)) {
		stage.fused = can_start_fusion(&stage);
		p->stage[p->stages++] = stage;
	} else {
		count_fused(p, &stage);
	}
	return LEAT_OK;
}

static enum leat_status
add_cache(struct leat_pipeline *p, const struct leat_bound *bound, struct leat_err *err)
{
	if (p->cache)
		return leat_fail_at(err, p->spec.text, bound->call->at, bound->call->len,
		                    "a spec has one cache at most");
	p->cache = bound;
	p->cached = p->stages;
	p->cache_schema = p->schema;
	for (int s = 0; s < p->stages; s++)
		for (int k = 0; k < p->stage[s].ops; k++)
			p->cache_frozen |= p->stage[s].op[k]->op->random;
	return LEAT_OK;
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
add_mix(struct leat_pipeline *p, const struct leat_bound *bound, struct leat_err *err)
{
	struct leat_stage none = {0};

	p->mix[p->mixes++] = bound;
	p->row_group =
		common_multiple(p->row_group, bound->op->on_batch.row_group > 0 ? bound->op->on_batch.row_group : 1);
	return infer(p, bound, &none, err);
}

static enum leat_status
add_op(struct leat_pipeline *p, const struct leat_bound *bound, bool *batched, struct leat_err *err)
{
	const struct leat_call *call = bound->call;
	struct leat_err why = {0};

	if (!*batched && bound->op->kind == LEAT_OP_MIX)
		return leat_fail_at(err, p->spec.text, call->at, call->len,
		                    "'%s' works on whole batches: put it behind batch", bound->op->name);
	if (*batched && bound->op->kind != LEAT_OP_HINT && bound->op->kind != LEAT_OP_MIX)
		return leat_fail_at(err, p->spec.text, call->at, call->len,
		                    "'%s' cannot come after batch: put it before, where it works on samples",
		                    bound->op->name);
	switch (bound->op->kind) {
	case LEAT_OP_PLAN:
		if (leat_plan_add(&p->plan, bound->op, bound->params, bound->stream, &why) == LEAT_OK)
			return LEAT_OK;
		if (why.status == LEAT_NOMEM || why.status == LEAT_LIMIT)
			return leat_fail(err, why.status, "%s", why.text);
		return leat_fail_at(err, p->spec.text, call->at, call->end - call->at, "%s", why.text);
	case LEAT_OP_BATCH:
		p->batch = *(const struct leat_batch_params *)bound->params;
		*batched = true;
		return LEAT_OK;
	case LEAT_OP_CACHE:
		return add_cache(p, bound, err);
	case LEAT_OP_MIX:
		return add_mix(p, bound, err);
	case LEAT_OP_HINT:
		p->prefetch = ((const struct leat_prefetch_params *)bound->params)->batches;
		return LEAT_OK;
	default:
		return add_stage(p, bound, err);
	}
}

/* Every sample would have to be inflated with all its neighbours, again and again. */
static enum leat_status
refuse_scattering(const struct leat_pipeline *p, struct leat_err *err)
{
	for (int i = 0; i < p->ops; i++) {
		const struct leat_bound *bound = &p->op[i];

		if (bound->op->on_plan.scatters && bound->op->on_plan.scatters(bound->params))
			return leat_fail_at(
				err, p->spec.text, bound->call->at, bound->call->end - bound->call->at,
				"%s in any order reads compressed files too slowly: use shuffle(window) or "
				"shuffle(block=..., window=...), put cache before it, or convert the files with "
				"`leat convert`",
				bound->op->name);
	}
	return LEAT_OK;
}

static enum leat_status
arrange(struct leat_pipeline *p, struct leat_err *err)
{
	bool batched = false;

	p->schema = p->source.schema;
	p->batch = (struct leat_batch_params){.size = 1};
	p->prefetch = -1;
	p->row_group = 1;
	for (int i = 0; i < p->ops; i++) {
		enum leat_status status = add_op(p, &p->op[i], &batched, err);

		if (status != LEAT_OK)
			return status;
	}
	if (p->plan.size == 0)
		return leat_fail(err, LEAT_DATA, "the source holds no samples");
	return p->source.units && !p->cache ? refuse_scattering(p, err) : LEAT_OK;
}

/* ---- place ---- */

/* Backwards from the finished sample: a field goes straight to its slot from the last stage that writes it anew. (A
 * stage behind that one works in place; it needs new memory only for what a cache lent.) */
static void
assign_output_slots(struct leat_pipeline *p)
{
	int final[LEAT_MAX_FIELDS];  /* by field, as numbered after the stage looked at: the final field, or -1 */
	int before[LEAT_MAX_FIELDS]; /* likewise, as numbered before it */
	bool placed[LEAT_MAX_FIELDS] = {false};

	for (int i = 0; i < LEAT_MAX_FIELDS; i++)
		final[i] = i < p->schema.count ? i : -1;
	for (int s = p->stages - 1; s >= 0; s--) {
		struct leat_stage *stage = &p->stage[s];

		for (int i = 0; i < LEAT_MAX_FIELDS; i++) {
			stage->output_slot[i] = before[i] = -1;
			if (i >= stage->count || final[i] < 0 || placed[final[i]])
				continue;
			stage->output_slot[i] = final[i];
			placed[final[i]] = writes_anew(stage, i);
		}
		for (int i = 0; i < stage->count; i++)
			if (carried_from(stage, i) >= 0)
				before[carried_from(stage, i)] = final[i];
		memcpy(final, before, sizeof final);
	}
}

/* ---- text and hash ---- */

static void
print_fields(const struct leat_bound *bound, const char *comma, struct leat_str *out)
{
	if (bound->fields.count == 0)
		return;
	leat_str_addf(out, "%sfield=[", comma);
	for (size_t i = 0; i < bound->fields.count; i++) {
		leat_str_add(out, i ? ", " : "");
		leat_str_add_quoted(out, bound->fields.value[i]);
	}
	leat_str_add(out, "]");
}

static void
print_source(const struct leat_pipeline *p, bool identity, struct leat_str *out)
{
	const struct leat_source_kind *kind = p->source.kind;

	leat_str_add(out, kind->name);
	if (identity)
		leat_str_addf(out, "@%d", kind->version);
	leat_str_add(out, "(");
	if (kind->print)
		kind->print(p->source_params, !identity, out);
	else
		leat_opts_print(kind->opts, p->source_params, !identity, out);
	leat_str_add(out, ")");
}

static void
print_op(const struct leat_bound *bound, bool identity, struct leat_str *out)
{
	size_t before;

	leat_str_addf(out, " | %s", bound->op->name);
	if (identity)
		leat_str_addf(out, "@%d", bound->op->version);
	leat_str_add(out, "(");
	before = out->len;
	if (identity && bound->op->kind == LEAT_OP_CACHE)
		; /* where it keeps samples, and how many, changes nothing */
	else if (bound->op->print)
		bound->op->print(bound->params, out);
	else
		leat_opts_print(bound->op->opts, bound->params, !identity, out);
	print_fields(bound, out->len > before ? ", " : "", out);
	leat_str_add(out, ")");
}

/* Does an op affect the output? A cache only by freezing what random ops before it draw. */
static bool
counts(const struct leat_pipeline *p, const struct leat_op *op)
{
	return op->kind != LEAT_OP_HINT && (op->kind != LEAT_OP_CACHE || p->cache_frozen);
}

static char *
print_pipeline(const struct leat_pipeline *p, bool identity)
{
	struct leat_str out;
	char *text;

	leat_str_init(&out, p->mem, MAX_CANONICAL);
	print_source(p, identity, &out);
	for (int i = 0; i < p->ops; i++)
		if (!identity || counts(p, p->op[i].op))
			print_op(&p->op[i], identity, &out);
	text = leat_str_take(&out);
	if (!text)
		leat_str_free(&out);
	return text;
}

/* What is kept in a cache is made by the source and the sample ops before it; random ones draw by the seed.
 * Files that were written again, be it with as many bytes, are other data. */
enum leat_status
leat_pipeline_cache_key(struct leat_pipeline *p, uint64_t seed, struct leat_err *err)
{
	uint8_t digest[LEAT_SHA256_BYTES];
	struct leat_sha256 *sha = leat_sha256_new();
	enum leat_status status = LEAT_OK;
	struct leat_str out;

	leat_str_init(&out, p->mem, MAX_CANONICAL);
	leat_str_addf(&out, "%s ", p->data);
	print_source(p, true, &out);
	for (int s = 0; s < p->cached; s++)
		for (int k = 0; k < p->stage[s].ops; k++)
			print_op(p->stage[s].op[k], true, &out);
	if (p->cache_frozen)
		leat_str_addf(&out, " seed %llu", (unsigned long long)seed);
	if (sha && !out.failed) {
		leat_sha256_add(sha, leat_str_text(&out), out.len);
		if (p->source.stamp)
			leat_sha256_add(sha, p->source.stamp, LEAT_SHA256_BYTES);
		for (size_t i = 0; !p->source.stamp && i < leat_files_count(p->source.files); i++)
			leat_sha256_add(sha, &leat_files_at(p->source.files, i)->mtime_ns, sizeof(int64_t));
		leat_sha256_end(sha, digest);
		leat_hex(digest, sizeof digest, p->cache_key);
	} else {
		status = leat_fail_mem(err, p->mem, MAX_CANONICAL, "the cache's key");
	}
	leat_sha256_free(sha);
	leat_str_free(&out);
	return status;
}

static enum leat_status
name_pipeline(struct leat_pipeline *p, struct leat_err *err)
{
	uint8_t digest[LEAT_SHA256_BYTES];

	p->canonical = print_pipeline(p, false);
	p->identity = print_pipeline(p, true);
	if (!p->canonical || !p->identity || leat_sha256(p->identity, strlen(p->identity), digest) != 0)
		return leat_fail_mem(err, p->mem, MAX_CANONICAL, "the pipeline's text");
	leat_hex(digest, sizeof digest, p->hash);
	return leat_source_fingerprint(&p->source, p->data, err);
}

/* ---- open and close ---- */

enum leat_status
leat_pipeline_open(struct leat_pipeline *p, const char *spec, uint64_t seed, unsigned threads, struct leat_mem *mem,
                   const struct leat_log *log, struct leat_err *err)
{
	enum leat_status status;

	memset(p, 0, sizeof *p);
	p->mem = mem;
	status = leat_spec_parse(&p->spec, spec, mem, err);
	/* Ops first: a typing error should not wait for a large source to be indexed. */
	if (status == LEAT_OK)
		status = leat_source_find(p->spec.call[0].name) ? bind_ops(p, err)
		                                                : fail_unknown(&p->spec, &p->spec.call[0], true, err);
	if (status == LEAT_OK)
		status = open_source(p, threads, log, err);
	if (status == LEAT_OK) {
		leat_plan_init(&p->plan, p->source.count, p->source.first, p->source.parts, seed, mem);
		status = arrange(p, err);
	}
	if (status == LEAT_OK) {
		assign_output_slots(p);
		status = name_pipeline(p, err);
	}
	if (status != LEAT_OK)
		leat_pipeline_close(p);
	return status;
}

static void
free_bound(struct leat_pipeline *p, struct leat_bound *bound)
{
	if (bound->params && bound->op->params_free)
		bound->op->params_free(bound->params, p->mem);
	if (bound->params && !bound->op->parse)
		leat_opts_free(bound->op->opts, bound->params, p->mem);
	leat_free(p->mem, bound->params);
	leat_free(p->mem, bound->fields.value);
}

void
leat_pipeline_close(struct leat_pipeline *p)
{
	if (!p->mem)
		return;
	leat_plan_free(&p->plan);
	for (int i = 0; i < p->ops; i++)
		free_bound(p, &p->op[i]);
	if (p->source_open)
		leat_source_close(&p->source);
	if (p->source_params && p->source_kind->params_free)
		p->source_kind->params_free(p->source_params, p->mem);
	if (p->source_params && !p->source_kind->parse)
		leat_opts_free(p->source_kind->opts, p->source_params, p->mem);
	leat_free(p->mem, p->source_params);
	leat_free(p->mem, p->canonical);
	leat_free(p->mem, p->identity);
	leat_spec_free(&p->spec);
	memset(p, 0, sizeof *p);
}
