/* map.c - call a function of the program that opened the feed on every sample
 *
 *	map(tokenize, version='2')
 *
 * The function comes with the feed's options, and so do the fields it takes and gives: the schema is known when the
 * feed opens. It gets pointers into the sample, and writes its results into the batch if no later op changes them. A
 * function without `run` runs in another process: the engine copies the sample there and back.
 *
 * Worker threads call it concurrently; each call has its own struct call. */
#include "op/map.h"

#include <string.h>

static const struct leat_opt options[] = {
	LEAT_STRING(struct leat_map_params, name, LEAT_REQUIRED, "name of the function"),
	LEAT_STRING(struct leat_map_params, version, "",
                    "change it with the function; checkpoints and caches then know the difference"),
	LEAT_BOOL(struct leat_map_params, random, "false", "does the function draw random numbers?"),
	LEAT_OPT_END,
};

/* ---- schema ---- */

static enum leat_status
check_given(const struct leat_field *field, struct leat_err *err)
{
	if (!memchr(field->name, '\0', sizeof field->name) || !*field->name)
		return leat_fail(err, LEAT_INVALID, "a field needs a name of 1 to %d characters", LEAT_MAX_NAME);
	if (field->ndim < 0 || field->ndim > LEAT_MAX_DIMS)
		return leat_fail(err, LEAT_INVALID, "field '%s' has %d dimensions, and the limit is %d", field->name,
		                 field->ndim, LEAT_MAX_DIMS);
	if (leat_dtype_size(field->dtype) == 0)
		return leat_fail(err, LEAT_INVALID, "field '%s' has an unknown type", field->name);
	for (int i = 0; i < field->ndim; i++)
		if (field->shape[i] < -1)
			return leat_fail(err, LEAT_INVALID, "field '%s': a dimension is negative, but not -1",
			                 field->name);
	return LEAT_OK;
}

static enum leat_status
find_taken(struct leat_map_params *map, const struct leat_schema *schema, struct leat_err *err)
{
	const struct leat_function *function = map->function;

	map->takes = 0;
	if (!function->takes)
		for (; map->takes < schema->count; map->takes++)
			map->take[map->takes] = map->takes;
	else if (function->take_count < 0 || function->take_count > LEAT_MAX_FIELDS)
		return leat_fail(err, LEAT_INVALID, "'%s' takes too many fields", map->name);
	for (int i = 0; function->takes && i < function->take_count; i++) {
		enum leat_status status = leat_schema_need(schema, function->takes[i], &map->take[map->takes++], err);

		if (status != LEAT_OK)
			return status;
	}
	return LEAT_OK;
}

/* An image stays one if its shape still allows it. */
static enum leat_layout
layout_after(const struct leat_field *field, enum leat_layout before)
{
	int64_t channels = field->ndim != 3 ? 0 : field->shape[before == LEAT_CHW ? 0 : 2];

	if (before != LEAT_LAYOUT_NONE && (channels < 0 || (channels > 0 && channels <= LEAT_MAX_CHANNELS)))
		return before;
	return leat_field_layout(field);
}

static enum leat_status
add_given(struct leat_map_params *map, struct leat_schema *schema, int k, struct leat_err *err)
{
	const struct leat_field *field = &map->function->gives[k];
	enum leat_status status = check_given(field, err);
	int i, old;

	if (status != LEAT_OK)
		return status;
	i = leat_schema_find(schema, field->name);
	for (int earlier = 0; i >= 0 && earlier < k; earlier++)
		if (map->give[earlier] == i)
			return leat_fail(err, LEAT_INVALID, "'%s' gives two fields '%s'", map->name, field->name);
	if (i < 0) {
		if (!leat_schema_add(schema, field->name, field->dtype))
			return leat_fail(err, LEAT_SPEC, "a sample has at most %d fields", LEAT_MAX_FIELDS);
		i = schema->count - 1;
	}
	old = leat_schema_find(&map->before, field->name);
	schema->entry[i] = (struct leat_schema_entry){
		.field = *field,
		.layout = layout_after(field, old < 0 ? LEAT_LAYOUT_NONE : map->before.entry[old].layout),
	};
	map->give[k] = i;
	map->kept[i] = -1;
	return LEAT_OK;
}

static enum leat_status
infer_fields(struct leat_map_params *map, struct leat_schema *schema, struct leat_err *err)
{
	const struct leat_function *function = map->function;
	enum leat_status status = find_taken(map, schema, err);

	if (function->give_count < 0 || function->give_count > LEAT_MAX_FIELDS)
		return leat_fail(err, LEAT_INVALID, "'%s' gives too many fields", map->name);
	if (function->drops)
		schema->count = 0;
	for (int i = 0; i < schema->count; i++)
		map->kept[i] = i;
	for (int k = 0; k < function->give_count && status == LEAT_OK; k++)
		status = add_given(map, schema, k, err);
	map->outputs = schema->count;
	if (status == LEAT_OK && schema->count == 0)
		return leat_fail(err, LEAT_SPEC, "no field is left after '%s'", map->name);
	return status;
}

static enum leat_status
infer(void *params, struct leat_schema *schema, struct leat_err *err)
{
	struct leat_map_params *map = params;
	enum leat_status status = leat_schema_copy(&map->before, schema, 0, map->mem, err);

	return status == LEAT_OK ? infer_fields(map, schema, err) : status;
}

static void
params_free(void *params, struct leat_mem *mem)
{
	leat_schema_free(&((struct leat_map_params *)params)->before, mem);
}

static int
carries(const void *params, int i)
{
	return ((const struct leat_map_params *)params)->kept[i];
}

/* ---- calls ---- */

struct call {
	struct leat_map_call public; /* first: leat_map_output gets a pointer to it */
	const struct leat_map_params *map;
	struct leat_work *work;
};

const struct leat_function *
leat_map_function(const struct leat_map_call *call)
{
	return ((const struct call *)call)->map->function;
}

static enum leat_status
fail_shape(const struct leat_field *declared, const int64_t *shape, struct leat_err *err)
{
	struct leat_field given = *declared;
	char is[160], expected[160];

	memcpy(given.shape, shape, (size_t)given.ndim * sizeof *shape);
	return leat_fail(err, LEAT_SPEC,
	                 "field '%s' is %s, but was declared as %s; declare a dimension that varies as -1",
	                 declared->name, leat_field_format(&given, is, sizeof is),
	                 leat_field_format(declared, expected, sizeof expected));
}

void *
leat_map_output(const struct leat_map_call *public, int i, const int64_t *shape, struct leat_err *err)
{
	const struct call *call = (const struct call *)public;
	const struct leat_function *function = call->map->function;
	const int64_t none[LEAT_MAX_DIMS] = {0};
	const struct leat_field *field;
	int output;

	if (i < 0 || i >= function->give_count) {
		leat_fail(err, LEAT_INVALID, "'%s' gives %d fields, and there is no field %d", function->name,
		          function->give_count, i);
		return NULL;
	}
	field = &function->gives[i];
	shape = shape ? shape : none; /* for a single number */
	for (int k = 0; k < field->ndim; k++)
		if (shape[k] < 0 || (field->shape[k] >= 0 && field->shape[k] != shape[k])) {
			fail_shape(field, shape, err);
			return NULL;
		}
	output = call->map->give[i];
	if (leat_work_out(call->work, output, field->dtype, field->ndim, shape, err) != LEAT_OK)
		return NULL;
	return call->work->sample->field[output].data;
}

static void
set_value(struct leat_value *value, const char *name, const struct leat_datum *datum)
{
	*value = (struct leat_value){.name = name, .data = datum->data, .dtype = datum->dtype, .ndim = datum->ndim};
	memcpy(value->shape, datum->shape, sizeof value->shape);
}

/* Kept fields have the same number before and after; those that the function makes have no data until it gives them. */
static void
clear_given(const struct leat_map_params *map, struct leat_sample *sample)
{
	for (int k = 0; k < map->function->give_count; k++)
		sample->field[map->give[k]].data = NULL;
}

static enum leat_status
check_complete(const struct leat_map_params *map, const struct leat_sample *sample, struct leat_err *err)
{
	for (int k = 0; k < map->function->give_count; k++)
		if (!sample->field[map->give[k]].data)
			return leat_fail(err, LEAT_INVALID, "'%s' did not give field '%s'", map->name,
			                 map->function->gives[k].name);
	return LEAT_OK;
}

static enum leat_status
run(const void *params, struct leat_work *work, struct leat_err *err)
{
	const struct leat_map_params *map = params;
	const struct leat_function *function = map->function;
	const struct leat_sample_id *id = work->id;
	struct leat_value *value = leat_work_scratch(work, (size_t)map->takes * sizeof *value, err);
	struct call call = {
		.public = {id->seed,
	                   id->epoch,
	                   id->position,
	                   id->sample,
	                   {0, 0},
	                   map->number,
	                   work->thread,
	                   map->takes,
	                   value},
		.map = map,
		.work = work,
	};
	enum leat_status status;
	struct leat_rng rng;

	if (!value)
		return LEAT_LIMIT;
	leat_rng_init(&rng, id->seed, id->epoch, id->position, map->stream);
	call.public.random[0] = leat_rng_u64(&rng);
	call.public.random[1] = leat_rng_u64(&rng);
	for (int k = 0; k < map->takes; k++)
		set_value(&value[k], map->before.entry[map->take[k]].field.name, &work->sample->field[map->take[k]]);
	clear_given(map, work->sample);
	status = function->run ? function->run(function->arg, &call.public, err)
	                       : work->run_in_process(work, &call.public, err);
	if (status == LEAT_OK)
		return check_complete(map, work->sample, err);
	if (status == LEAT_IO && function->run) /* the function's own failure, not the feed's */
		status = LEAT_FUNCTION;
	leat_err_set(err, status, "the function failed with %s", leat_status_name(status)); /* if it said nothing */
	err->status = status;
	if (status != LEAT_LIMIT)
		leat_err_in(err, "%s", map->name);
	return status;
}

/* ---- texts ---- */

void
leat_map_identity(const void *params, struct leat_str *out)
{
	const struct leat_map_params *map = params;
	char type[160];

	if (*map->version) {
		leat_str_add(out, "version=");
		leat_str_add_quoted(out, map->version);
	} else {
		leat_str_add_quoted(out, map->name);
	}
	leat_str_addf(out, ", random=%s", map->random ? "true" : "false");
	for (int k = 0; k < map->function->give_count; k++) {
		leat_str_add(out, k ? ", " : " -> ");
		leat_str_add_quoted(out, map->function->gives[k].name);
		leat_str_addf(out, ": %s", leat_field_format(&map->function->gives[k], type, sizeof type));
	}
	if (map->function->drops)
		leat_str_add(out, " only");
}

const struct leat_op leat_op_map = {
	.name = "map",
	.doc = "Call a function of the program that opens the feed on each sample: Pipeline.map in Python, "
	       "leat_options.functions in C. The leat command has no functions.",
	.example = "map(tokenize, version='2')",
	.kind = LEAT_OP_FIELDS,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct leat_map_params),
	.params_free = params_free,
	.on_fields.infer = infer,
	.on_fields.run = run,
	.on_fields.carries = carries,
};
