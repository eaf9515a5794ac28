/* variant.c - see variant.h */
#include "xray/variant.h"

#include <string.h>

#include "op/op.h"

static bool
is_sample_op(const struct leat_op *op)
{
	switch (op->kind) {
	case LEAT_OP_PLAN:
	case LEAT_OP_BATCH:
	case LEAT_OP_MIX:
	case LEAT_OP_CACHE:
	case LEAT_OP_HINT:
		return false;
	default:
		return true;
	}
}

static const struct leat_arg *
named(const struct leat_call *call, const char *name)
{
	for (size_t i = 0; i < call->args; i++)
		if (call->arg[i].name && strcmp(call->arg[i].name, name) == 0)
			return &call->arg[i];
	return NULL;
}

static bool
is_true(const struct leat_call *call, const char *name)
{
	const struct leat_arg *arg = named(call, name);

	return arg && arg->type == LEAT_ARG_WORD && strcmp(arg->text, "true") == 0;
}

static void
note_sample_op(struct leat_outline *o, int i, const struct leat_op *op)
{
	const struct leat_call *call = &o->spec.call[i];
	bool map = strcmp(op->name, "map") == 0;

	if (o->ops == LEAT_OUTLINE_OPS)
		return;
	if (o->fixed == o->ops && !op->random && !(map && is_true(call, "random")))
		o->fixed++;
	o->functions |= map;
	if (op->kind == LEAT_OP_DECODE && o->decode < 0) {
		o->decode = o->ops;
		o->fast = named(call, "fast") != NULL;
	}
	o->op[o->ops++] = i;
}

static void
note_plan_op(struct leat_outline *o, const struct leat_call *call)
{
	if (strcmp(call->name, "shuffle") == 0)
		o->shuffles = !named(call, "block") && call->args < 2;
	if (strcmp(call->name, "repeat") == 0 && call->args == 1 && call->arg[0].type == LEAT_ARG_NUMBER &&
	    call->arg[0].number >= 1)
		o->repeats *= call->arg[0].number;
}

enum leat_status
leat_outline_open(struct leat_outline *o, const char *spec, struct leat_mem *mem, struct leat_err *err)
{
	enum leat_status status;

	*o = (struct leat_outline){.cached = -1, .cache = -1, .decode = -1, .repeats = 1};
	status = leat_spec_parse(&o->spec, spec, mem, err);
	for (size_t i = 1; status == LEAT_OK && i < o->spec.calls; i++) {
		const struct leat_op *op = leat_op_find(o->spec.call[i].name);

		if (!op)
			continue; /* opening the feed says so */
		if (is_sample_op(op))
			note_sample_op(o, (int)i, op);
		else if (op->kind == LEAT_OP_PLAN)
			note_plan_op(o, &o->spec.call[i]);
		else if (op->kind == LEAT_OP_CACHE) {
			o->cache = (int)i;
			o->cached = o->ops;
		}
	}
	return status;
}

void
leat_outline_close(struct leat_outline *o)
{
	leat_spec_free(&o->spec);
}

const char *
leat_outline_before(const struct leat_outline *o, int i)
{
	return o->spec.call[i > 0 ? o->op[i - 1] : 0].name;
}

bool
leat_outline_is_pointwise(const struct leat_outline *o, int i)
{
	const struct leat_op *op = leat_op_find(o->spec.call[o->op[i]].name);

	return op && (op->kind == LEAT_OP_POINTWISE || op->kind == LEAT_OP_CONVERT);
}

void
leat_variant_init(struct leat_variant *v)
{
	*v = (struct leat_variant){.cache = LEAT_CACHE_AS_GIVEN, .prefetch = LEAT_PREFETCH_AS_GIVEN};
}

static void
add_call(const struct leat_outline *o, int i, struct leat_str *out)
{
	const struct leat_call *call = &o->spec.call[i];

	if (i > 0)
		leat_str_add(out, " | ");
	leat_str_addn(out, o->spec.text + call->at, call->end - call->at);
}

static void
add_fast(const struct leat_outline *o, int i, struct leat_str *out)
{
	const struct leat_call *call = &o->spec.call[i];

	leat_str_addf(out, " | %s(", call->name);
	if (call->args > 0) {
		const struct leat_arg *last = &call->arg[call->args - 1];
		size_t from = call->arg[0].name ? call->arg[0].name_at : call->arg[0].at;

		leat_str_addn(out, o->spec.text + from, last->at + last->len - from);
		leat_str_add(out, ", ");
	}
	leat_str_add(out, "fast=true)");
}

static void
add_cache(const struct leat_variant *v, struct leat_str *out)
{
	leat_str_add(out, " | cache(memory");
	if (v->cache_bytes)
		leat_str_addf(out, ", size=%llu", (unsigned long long)v->cache_bytes);
	leat_str_add(out, ")");
}

/* Of a subset, only what chooses samples is kept, not their order. */
static void
add_plan_op(const struct leat_outline *o, const struct leat_variant *v, int i, struct leat_str *out)
{
	const char *name = o->spec.call[i].name;
	bool shuffle = strcmp(name, "shuffle") == 0, repeat = strcmp(name, "repeat") == 0;

	if (v->order == LEAT_ORDER_BLOCKS && shuffle)
		leat_str_add(out, " | shuffle(window=64, block=64)");
	else if (v->order != LEAT_ORDER_SUBSET || (!shuffle && !repeat && strcmp(name, "interleave") != 0))
		add_call(o, i, out);
}

static void
add_subset(const struct leat_variant *v, struct leat_str *out)
{
	uint64_t every = v->subset ? v->of / v->subset : 1;

	if (every > 1)
		leat_str_addf(out, " | shard(%llu, %llu)", (unsigned long long)every, (unsigned long long)every / 2);
	leat_str_addf(out, " | take(%llu) | repeat(1000000)", (unsigned long long)v->subset);
}

static void
add_batch(const struct leat_outline *o, const struct leat_variant *v, int i, struct leat_str *out)
{
	if (v->order == LEAT_ORDER_SUBSET)
		add_subset(v, out);
	if (v->cache == (v->no_ops ? 0 : o->ops))
		add_cache(v, out);
	if (v->batch)
		leat_str_addf(out, " | batch(%llu)", (unsigned long long)v->batch);
	else
		add_call(o, i, out);
	if (v->prefetch >= 0)
		leat_str_addf(out, " | prefetch(%lld)", (long long)v->prefetch);
}

void
leat_variant_text(const struct leat_outline *o, const struct leat_variant *v, struct leat_str *out)
{
	int ops = 0;

	add_call(o, 0, out);
	for (int i = 1; i < (int)o->spec.calls; i++) {
		const struct leat_op *op = leat_op_find(o->spec.call[i].name);

		if (!op)
			add_call(o, i, out);
		else if (op->kind == LEAT_OP_PLAN)
			add_plan_op(o, v, i, out);
		else if (op->kind == LEAT_OP_BATCH)
			add_batch(o, v, i, out);
		else if (op->kind == LEAT_OP_CACHE && v->cache == LEAT_CACHE_AS_GIVEN && !v->no_ops)
			add_call(o, i, out);
		else if (op->kind == LEAT_OP_HINT && v->prefetch == LEAT_PREFETCH_AS_GIVEN)
			add_call(o, i, out);
		else if (op->kind == LEAT_OP_MIX && !v->no_ops)
			add_call(o, i, out);
		else if (is_sample_op(op) && !v->no_ops) {
			if (v->cache == ops)
				add_cache(v, out);
			if (v->fast && o->decode == ops)
				add_fast(o, i, out);
			else
				add_call(o, i, out);
			ops++;
		}
	}
}
