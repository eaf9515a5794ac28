/* pipeline_bind.c - look up the names in a spec, and set each op's params from its arguments
 *
 * Runs on the thread that opens the feed, before the source is opened: a typo is reported before a large source is
 * indexed. */
#include <string.h>

#include "base/names.h"
#include "feed/pipeline_compile.h"
#include "format/arrow.h"
#include "op/map.h"

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
		                    "'%s' is a source: a spec begins with its source", call->name);
	for (size_t i = 0; source && leat_sources[i] && i < 256; i++)
		names[unknown.count++] = leat_sources[i]->name;
	for (size_t i = 0; !source && leat_ops[i] && i < 256; i++)
		names[unknown.count++] = leat_ops[i]->name;
	unknown.known = names;
	return leat_fail_at(err, spec->text, call->at, call->len, "%s", leat_unknown_text(&unknown, sentence));
}

enum leat_status
leat_fail_in_op(const struct leat_pipeline *p, const struct leat_bound *bound, const struct leat_err *why,
                struct leat_err *err)
{
	const struct leat_call *call = leat_bound_call(p, bound);

	if (why->status == LEAT_NOMEM || why->status == LEAT_LIMIT)
		return leat_fail_as(err, why);
	return leat_fail_at(err, p->spec.text, call->at, call->end - call->at, "%s: %s", bound->op->name, why->text);
}

/* All ops on one field accept `field=`; it is not in their own tables. */
static enum leat_status
take_field_argument(struct leat_pipeline *p, struct leat_bound *bound, struct leat_call *rest, struct leat_err *err)
{
	const struct leat_call *call = leat_bound_call(p, bound);
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
			return leat_fail_at(err, p->spec.text, item->at, item->len, "expected a field name");
		bound->fields.value[bound->fields.count++] = item->text;
	}
	return LEAT_OK;
}

static enum leat_status
set_params(struct leat_pipeline *p, struct leat_bound *bound, struct leat_err *err)
{
	const struct leat_op *op = bound->op;
	const struct leat_call *call = leat_bound_call(p, bound);
	struct leat_call rest = *call;
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
	if (rest.arg != call->arg)
		leat_free(p->mem, (void *)rest.arg);
	if (status == LEAT_OK && op->check) {
		struct leat_err why = {0};

		status = op->check(bound->params, &why);
		if (status != LEAT_OK)
			status = leat_fail_in_op(p, bound, &why, err);
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

enum leat_status
leat_bind_ops(struct leat_pipeline *p, struct leat_err *err)
{
	if (!leat_source_find(p->spec.call[0].name))
		return fail_unknown(&p->spec, &p->spec.call[0], true, err);
	if (p->spec.calls - 1 > LEAT_MAX_OPS)
		return leat_fail(err, LEAT_SPEC, "a spec has at most %d ops, this one has %zu", LEAT_MAX_OPS,
		                 p->spec.calls - 1);
	while ((size_t)p->ops + 1 < p->spec.calls) {
		struct leat_bound *bound = &p->op[p->ops];
		const struct leat_call *call = leat_bound_call(p, bound);
		const struct leat_op *op = leat_op_find(call->name);
		enum leat_status status;

		if (!op)
			return fail_unknown(&p->spec, call, false, err);
		*bound = (struct leat_bound){.op = op};
		bound->stream = leat_stream(op->name, occurrence(p, op));
		p->ops++; /* from now on, close frees it */
		status = set_params(p, bound, err);
		if (status != LEAT_OK)
			return status;
	}
	return LEAT_OK;
}

static enum leat_status
fail_no_function(const struct leat_pipeline *p, const struct leat_bound *bound, const struct leat_functions *functions,
                 struct leat_err *err)
{
	const struct leat_call *call = leat_bound_call(p, bound);
	const struct leat_map_params *map = bound->params;
	struct leat_unknown unknown = {.what = "function", .name = map->name};
	char sentence[LEAT_UNKNOWN_TEXT];
	const char *names[256];

	if (!functions || functions->count == 0)
		return leat_fail_at(err, p->spec.text, call->at, call->end - call->at,
		                    "map calls a function of the program that opens the feed, and this one gave none: "
		                    "use Pipeline.map in Python, or leat_options.functions in C");
	for (size_t i = 0; i < functions->count && i < 256; i++)
		names[unknown.count++] = functions->one[i].name;
	unknown.known = names;
	return leat_fail_at(err, p->spec.text, call->at, call->end - call->at, "map: %s",
	                    leat_unknown_text(&unknown, sentence));
}

enum leat_status
leat_bind_functions(struct leat_pipeline *p, const struct leat_functions *functions, struct leat_err *err)
{
	unsigned number = 0;

	for (int i = 0; i < p->ops; i++) {
		struct leat_map_params *map = p->op[i].params;

		if (p->op[i].op != &leat_op_map)
			continue;
		for (size_t k = 0; functions && k < functions->count && !map->function; k++)
			if (strcmp(functions->one[k].name, map->name) == 0)
				map->function = &functions->one[k];
		if (!map->function)
			return fail_no_function(p, &p->op[i], functions, err);
		map->number = number++;
		map->stream = p->op[i].stream;
		map->mem = p->mem;
	}
	return LEAT_OK;
}

enum leat_status
leat_bind_source(struct leat_pipeline *p, const struct leat_functions *functions, struct leat_err *err)
{
	const struct leat_call *call = &p->spec.call[0];
	const struct leat_source_kind *kind = leat_source_find(call->name);
	enum leat_status status;

	p->source_params = leat_alloc(p->mem, kind->params_size);
	if (!p->source_params)
		return leat_fail_mem(err, p->mem, kind->params_size, "a source's options");
	p->source_kind = kind;
	if (kind->parse)
		return kind->parse(p->source_params, call, p->spec.text, p->mem, err);
	status = leat_opts_set(kind->opts, p->source_params, call, p->spec.text, p->mem, err);
	if (status == LEAT_OK && kind == &leat_source_arrow && functions)
		((struct leat_arrow_params *)p->source_params)->table = functions->arrow;
	return status;
}

/* ---- close ---- */

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
leat_unbind(struct leat_pipeline *p)
{
	for (int i = 0; i < p->ops; i++)
		free_bound(p, &p->op[i]);
	if (p->source_open)
		leat_source_close(&p->source);
	if (p->source_params && p->source_kind->params_free)
		p->source_kind->params_free(p->source_params, p->mem);
	if (p->source_params && !p->source_kind->parse)
		leat_opts_free(p->source_kind->opts, p->source_params, p->mem);
	leat_free(p->mem, p->source_params);
}
