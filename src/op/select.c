/* select.c - keep the named fields, in the given order
 *
 * Fields are not copied: data written straight into the batch stays there. */
#include "op/op.h"

#include <string.h>

struct select {
	struct leat_strings names;
	struct leat_pick pick; /* set by infer */
};

static const struct leat_opt options[] = {
	LEAT_STRINGS(struct select, names, LEAT_REQUIRED, "fields to keep, in their new order", 0),
	LEAT_OPT_END,
};

static enum leat_status
check(void *params, struct leat_err *err)
{
	const struct leat_strings *names = &((const struct select *)params)->names;

	if (names->count == 0)
		return leat_fail(err, LEAT_SPEC, "name the fields to keep, as in select(image, label)");
	for (size_t i = 0; i < names->count; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(names->value[i], names->value[k]) == 0)
				return leat_fail(err, LEAT_SPEC, "field '%s' is listed twice", names->value[i]);
	return LEAT_OK;
}

static enum leat_status
infer(void *params, struct leat_schema *schema, struct leat_err *err)
{
	struct select *select = params;

	select->pick.count = 0;
	for (size_t i = 0; i < select->names.count; i++) {
		int field;
		enum leat_status status = leat_schema_need(schema, select->names.value[i], &field, err);

		if (status != LEAT_OK)
			return status;
		select->pick.from[select->pick.count++] = field; /* names are unique, so this cannot overflow */
	}
	leat_schema_pick(schema, &select->pick);
	return LEAT_OK;
}

static enum leat_status
run(const void *params, struct leat_work *work, struct leat_err *err)
{
	const struct select *select = params;

	(void)err;
	leat_sample_pick(work->sample, &select->pick);
	return LEAT_OK;
}

static int
carries(const void *params, int i)
{
	return ((const struct select *)params)->pick.from[i];
}

const struct leat_op leat_op_select = {
	.name = "select",
	.doc = "Keep the named fields, in this order, and drop all others.",
	.example = "select(image, label)",
	.kind = LEAT_OP_FIELDS,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct select),
	.check = check,
	.on_fields.infer = infer,
	.on_fields.run = run,
	.on_fields.carries = carries,
};
