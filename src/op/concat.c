/* concat.c - join numbers and vectors into one vector
 *
 *	concat(x=[age, income, embedding])
 *
 * Each argument is NEW=[FIELDS]. The elements of the fields follow each other in the given order. Fields of one type
 *keep it; of several types, they become float32, by the rules of `cast`. The joined fields are dropped, and new ones
 *come last. If the source has the rows of its fields in memory, batches are filled without a sample in between
 * (feed/bulk.h). */
#include <string.h>

#include "image/image.h"
#include "op/op.h"

struct join {
	const char *name;
	struct leat_strings from;
	/* Set by infer: */
	int *field; /* of the input */
	enum leat_dtype dtype;
	int64_t elements;
};

struct concat {
	size_t count;
	struct join *join;
	struct leat_mem *mem;
	size_t members;        /* of all joins */
	struct leat_pick kept; /* set by infer */
};

/* ---- arguments ---- */

static enum leat_status
parse_members(struct concat *concat, struct join *join, const struct leat_arg *arg, const char *text,
              struct leat_err *err)
{
	for (size_t i = 0; i < arg->items; i++) {
		const struct leat_arg *item = &arg->item[i];

		if ((item->type != LEAT_ARG_WORD && item->type != LEAT_ARG_STRING) || item->items || item->has_dims)
			return leat_fail_at(err, text, item->at, item->len, "expected a field name");
		for (size_t k = 0; k <= (size_t)(join - concat->join); k++)
			for (size_t m = 0; m < concat->join[k].from.count; m++)
				if (strcmp(concat->join[k].from.value[m], item->text) == 0)
					return leat_fail_at(err, text, item->at, item->len,
					                    "field '%s' is joined twice", item->text);
		join->from.value[join->from.count++] = item->text;
	}
	return LEAT_OK;
}

static enum leat_status
parse_join(struct concat *concat, struct join *join, const struct leat_arg *arg, const char *text, struct leat_err *err)
{
	if (!arg->name || arg->type != LEAT_ARG_LIST || !arg->items || arg->items > LEAT_MAX_FIELDS)
		return leat_fail_at(err, text, arg->at, arg->len,
		                    "expected a new name and the fields to join, as in concat(x=[age, income])");
	if (strlen(arg->name) > LEAT_MAX_NAME)
		return leat_fail_at(err, text, arg->name_at, strlen(arg->name),
		                    "a field name can have at most %d characters", LEAT_MAX_NAME);
	join->name = arg->name;
	join->from.value = leat_alloc_array(concat->mem, arg->items, sizeof(*join->from.value));
	join->field = leat_alloc_array(concat->mem, arg->items, sizeof(*join->field));
	if (!join->from.value || !join->field)
		return leat_fail_mem(err, concat->mem, arg->items * sizeof(*join->from.value), "names of fields");
	concat->members += arg->items;
	return parse_members(concat, join, arg, text, err);
}

static void
params_free(void *params, struct leat_mem *mem)
{
	struct concat *concat = params;

	for (size_t i = 0; concat->join && i < concat->count; i++) {
		leat_free(mem, concat->join[i].from.value);
		leat_free(mem, concat->join[i].field);
	}
	leat_free(mem, concat->join);
	concat->join = NULL;
}

static enum leat_status
parse(void *params, const struct leat_call *call, const char *text, struct leat_mem *mem, struct leat_err *err)
{
	struct concat *concat = params;
	enum leat_status status = LEAT_OK;

	*concat = (struct concat){.count = call->args, .mem = mem};
	if (call->args < 1 || call->args > LEAT_MAX_FIELDS)
		return leat_fail_at(err, text, call->at, call->len,
		                    "'concat' takes a new name and the fields to join, as in concat(x=[age, income])");
	concat->join = leat_alloc_array(mem, call->args, sizeof(*concat->join));
	if (!concat->join)
		return leat_fail_mem(err, mem, call->args * sizeof(*concat->join), "names of fields");
	for (size_t i = 0; i < call->args && status == LEAT_OK; i++)
		status = parse_join(concat, &concat->join[i], &call->arg[i], text, err);
	if (status != LEAT_OK)
		params_free(concat, mem);
	return status;
}

static void
print(const void *params, struct leat_str *out)
{
	const struct concat *concat = params;

	for (size_t i = 0; i < concat->count; i++) {
		const struct join *join = &concat->join[i];

		leat_str_addf(out, "%s%s=[", i ? ", " : "", join->name);
		for (size_t k = 0; k < join->from.count; k++) {
			leat_str_add(out, k ? ", " : "");
			leat_str_add_quoted(out, join->from.value[k]);
		}
		leat_str_add(out, "]");
	}
}

/* ---- the schema ---- */

static enum leat_status
infer_join(struct join *join, const struct leat_schema *schema, struct leat_err *err)
{
	join->elements = 0;
	for (size_t i = 0; i < join->from.count; i++) {
		enum leat_status status = leat_schema_need(schema, join->from.value[i], &join->field[i], err);
		const struct leat_field *field;
		int64_t elements;

		if (status != LEAT_OK)
			return status;
		field = &schema->entry[join->field[i]].field;
		elements = leat_field_elements(field);
		if (field->ndim > 1 || elements < 1 || elements > INT32_MAX - join->elements)
			return leat_fail(
				err, LEAT_SPEC,
				"field '%s' is neither a number nor a vector of a fixed length, so it cannot be "
				"joined",
				field->name);
		join->elements += elements;
		join->dtype = i == 0 || field->dtype == join->dtype ? field->dtype : LEAT_F32;
		if (i > 0 && field->dtype != schema->entry[join->field[0]].field.dtype)
			join->dtype = LEAT_F32;
	}
	return LEAT_OK;
}

static enum leat_status
infer(void *params, struct leat_schema *schema, struct leat_err *err)
{
	struct concat *concat = params;
	bool gone[LEAT_MAX_FIELDS] = {false};
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < concat->count && status == LEAT_OK; i++)
		status = infer_join(&concat->join[i], schema, err);
	if (status != LEAT_OK)
		return status;
	for (size_t i = 0; i < concat->count; i++)
		for (size_t k = 0; k < concat->join[i].from.count; k++)
			gone[concat->join[i].field[k]] = true;
	concat->kept.count = 0;
	for (int i = 0; i < schema->count; i++)
		if (!gone[i])
			concat->kept.from[concat->kept.count++] = i;
	leat_schema_pick(schema, &concat->kept);
	for (size_t i = 0; i < concat->count; i++) {
		struct leat_field *field = leat_schema_add(schema, concat->join[i].name, concat->join[i].dtype);

		if (!field)
			return leat_fail(err, LEAT_SPEC, "there is already a field '%s'", concat->join[i].name);
		field->ndim = 1;
		field->shape[0] = concat->join[i].elements;
	}
	return LEAT_OK;
}

static int
carries(const void *params, int i)
{
	const struct concat *concat = params;

	return i < concat->kept.count ? concat->kept.from[i] : -1;
}

static int
joins(const void *params, int i, const int **from)
{
	const struct concat *concat = params;
	const struct join *join = &concat->join[i - concat->kept.count];

	*from = join->field;
	return (int)join->from.count;
}

/* ---- samples ---- */

static enum leat_status
run(const void *params, struct leat_work *work, struct leat_err *err)
{
	const struct concat *concat = params;
	struct leat_sample *sample = work->sample;
	struct leat_datum *old = leat_work_scratch(work, concat->members * sizeof(*old), err);
	size_t at = 0;

	if (!old)
		return LEAT_LIMIT;
	for (size_t i = 0; i < concat->count; i++)
		for (size_t k = 0; k < concat->join[i].from.count; k++)
			old[at++] = sample->field[concat->join[i].field[k]];
	leat_sample_pick(sample, &concat->kept);
	at = 0;
	for (size_t i = 0; i < concat->count; i++) {
		const struct join *join = &concat->join[i];
		int field = sample->count++;
		enum leat_status status;
		unsigned char *to;

		sample->field[field] = (struct leat_datum){.dtype = join->dtype};
		status = leat_work_out(work, field, join->dtype, 1, &join->elements, err);
		if (status != LEAT_OK)
			return status;
		to = sample->field[field].data;
		for (size_t k = 0; k < join->from.count; k++, at++) {
			size_t elements = (size_t)leat_datum_elements(&old[at]);

			leat_cast(old[at].data, old[at].dtype, to, join->dtype, elements);
			to += elements * leat_dtype_size(join->dtype);
		}
	}
	return LEAT_OK;
}

const struct leat_op leat_op_concat = {
	.name = "concat",
	.doc = "Join numbers and vectors into one vector, for a model that takes all features at once. Each argument "
               "is "
	       "NEW=[FIELDS]; fields of several types become float32. The joined fields are dropped.",
	.example = "concat(x=[age, income])",
	.kind = LEAT_OP_FIELDS,
	.version = 1,
	.params_size = sizeof(struct concat),
	.parse = parse,
	.print = print,
	.params_free = params_free,
	.on_fields.infer = infer,
	.on_fields.run = run,
	.on_fields.carries = carries,
	.on_fields.joins = joins,
};
