/* rename.c - rename fields
 *
 *	rename(image=picture, label='class/id')
 *
 * Each argument is NEW=OLD. All take effect at once: rename(left=right, right=left) swaps two names. Fields keep
 * their order, and samples are not touched. */
#include "op/op.h"

#include <string.h>

struct change {
	const char *to, *from;
	int field; /* set by infer */
};

struct rename {
	size_t count;
	struct change *change;
};

static enum leat_status
parse_change(const struct leat_arg *arg, struct rename *rename, size_t i, const char *text, struct leat_err *err)
{
	if (!arg->name)
		return leat_fail_at(err, text, arg->at, arg->len, "write the new name in front: rename(NEW=%.*s)",
		                    (int)(arg->len < 40 ? arg->len : 40), text + arg->at);
	if (strlen(arg->name) > LEAT_MAX_NAME)
		return leat_fail_at(err, text, arg->name_at, strlen(arg->name),
		                    "a field name can have at most %d characters", LEAT_MAX_NAME);
	if ((arg->type != LEAT_ARG_WORD && arg->type != LEAT_ARG_STRING) || arg->items || arg->has_dims)
		return leat_fail_at(err, text, arg->at, arg->len, "expected a field name");
	for (size_t k = 0; k < i; k++) {
		if (strcmp(rename->change[k].to, arg->name) == 0)
			return leat_fail_at(err, text, arg->name_at, strlen(arg->name),
			                    "two fields would be named '%s'", arg->name);
		if (strcmp(rename->change[k].from, arg->text) == 0)
			return leat_fail_at(err, text, arg->at, arg->len, "field '%s' is renamed twice", arg->text);
	}
	rename->change[i] = (struct change){.to = arg->name, .from = arg->text};
	return LEAT_OK;
}

static void
params_free(void *params, struct leat_mem *mem)
{
	struct rename *rename = params;

	leat_free(mem, rename->change);
	*rename = (struct rename){0};
}

static enum leat_status
parse(void *params, const struct leat_call *call, const char *text, struct leat_mem *mem, struct leat_err *err)
{
	struct rename *rename = params;
	enum leat_status status = LEAT_OK;

	*rename = (struct rename){.count = call->args};
	if (call->args < 1 || call->args > LEAT_MAX_FIELDS)
		return leat_fail_at(err, text, call->at, call->len,
		                    "'rename' takes 1 to %d arguments NEW=OLD, as in rename(target=label)",
		                    LEAT_MAX_FIELDS);
	rename->change = leat_alloc_array(mem, call->args, sizeof(*rename->change));
	if (!rename->change)
		return leat_fail_mem(err, mem, call->args * sizeof(*rename->change), "the names of 'rename'");
	for (size_t i = 0; i < call->args && status == LEAT_OK; i++)
		status = parse_change(&call->arg[i], rename, i, text, err);
	if (status != LEAT_OK)
		params_free(rename, mem);
	return status;
}

static void
print(const void *params, struct leat_str *out)
{
	const struct rename *rename = params;

	for (size_t i = 0; i < rename->count; i++) {
		leat_str_addf(out, "%s%s=", i ? ", " : "", rename->change[i].to);
		leat_str_add_quoted(out, rename->change[i].from);
	}
}

/* Looks up all fields before renaming any, so that names can be swapped. */
static enum leat_status
infer(void *params, struct leat_schema *schema, struct leat_err *err)
{
	struct rename *rename = params;

	for (size_t i = 0; i < rename->count; i++) {
		enum leat_status status =
			leat_schema_need(schema, rename->change[i].from, &rename->change[i].field, err);

		if (status != LEAT_OK)
			return status;
	}
	for (size_t i = 0; i < rename->count; i++) {
		char *name = schema->entry[rename->change[i].field].field.name;

		memset(name, 0, sizeof(schema->entry[0].field.name));
		memcpy(name, rename->change[i].to, strlen(rename->change[i].to)); /* parse has checked the length */
	}
	for (int i = 0; i < schema->count; i++)
		if (leat_schema_find(schema, schema->entry[i].field.name) != i)
			return leat_fail(err, LEAT_SPEC, "there is already a field '%s'", schema->entry[i].field.name);
	return LEAT_OK;
}

static int
carries(const void *params, int i)
{
	(void)params;
	return i;
}

const struct leat_op leat_op_rename = {
	.name = "rename",
	.doc = "Rename fields. Each argument is NEW=OLD; all take effect at once.",
	.example = "rename(target=label)",
	.kind = LEAT_OP_FIELDS,
	.version = 1,
	.params_size = sizeof(struct rename),
	.parse = parse,
	.print = print,
	.params_free = params_free,
	.on_fields.infer = infer,
	.on_fields.carries = carries,
};
