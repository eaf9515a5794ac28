/* drop.c - drop some fields; the others keep their order
 *
 * Remaining fields are not copied: data written straight into the batch stays there. */
#include "op/op.h"

#include <string.h>

struct drop {
	struct leat_strings names;
	struct leat_pick pick; /* remaining fields; set by infer */
};

static const struct leat_opt options[] = {
	LEAT_STRINGS(struct drop, names, LEAT_REQUIRED, "fields to drop", 0),
	LEAT_OPT_END,
};

static enum leat_status
check(void *params, struct leat_err *err)
{
	const struct drop *drop = params;

	if (drop->names.count == 0)
		return leat_fail(err, LEAT_SPEC, "name the fields to drop, as in drop(tokens)");
	return LEAT_OK;
}

static bool
is_dropped(const struct drop *drop, const char *name)
{
	for (size_t i = 0; i < drop->names.count; i++)
		if (strcmp(drop->names.value[i], name) == 0)
			return true;
	return false;
}

static enum leat_status
infer(void *params, struct leat_schema *schema, struct leat_err *err)
{
	struct drop *drop = params;

	for (size_t i = 0; i < drop->names.count; i++) {
		int field;
		enum leat_status status = leat_schema_need(schema, drop->names.value[i], &field, err);

		if (status != LEAT_OK)
			return status;
	}
	drop->pick.count = 0;
	for (int i = 0; i < schema->count; i++)
		if (!is_dropped(drop, schema->entry[i].field.name))
			drop->pick.from[drop->pick.count++] = i;
	if (drop->pick.count == 0)
		return leat_fail(err, LEAT_SPEC, "this would drop every field");
	leat_schema_pick(schema, &drop->pick);
	return LEAT_OK;
}

static enum leat_status
run(const void *params, struct leat_work *work, struct leat_err *err)
{
	const struct drop *drop = params;

	(void)err;
	leat_sample_pick(work->sample, &drop->pick);
	return LEAT_OK;
}

static int
carries(const void *params, int i)
{
	return ((const struct drop *)params)->pick.from[i];
}

const struct leat_op leat_op_drop = {
	.name = "drop",
	.doc = "Drop the named fields.",
	.example = "drop(tokens)",
	.kind = LEAT_OP_FIELDS,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct drop),
	.check = check,
	.on_fields.infer = infer,
	.on_fields.run = run,
	.on_fields.carries = carries,
};
