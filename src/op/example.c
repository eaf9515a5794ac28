/* example.c - read features of a tf.train.Example as fields
 *
 *	example(image=bytes, label=int64(default=-1), tokens=int64[], box=float[4], name=bytes(key='image/name'))
 *
 * Each argument is a field: its name and type; in brackets, its shape ([] for a varying number of values; bytes[n]
 * for a string of n bytes, bytes[h, w, c] for a raw image); in parentheses, `default` for records without the
 * feature, and `key`, the feature's name if it is not the field's. Byte strings are not copied from the record;
 * numbers are written to their destination.
 *
 * Workers share the params and write only the order hint, which is atomic. */
#include "format/example.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "op/op.h"

enum { MAX_VALUES = 1 << 28 }; /* limit for a feature of fixed shape */

struct wanted {
	const char *name;
	enum leat_feature_kind kind;
	int ndim;
	int64_t shape[LEAT_MAX_DIMS]; /* -1: any */
	int64_t values;               /* required length of the list; -1: any */
	int64_t length;               /* required length of a byte string; -1: any */
	bool has_default;
	const char *bytes; /* default of a byte string */
	void *numbers;     /* default of numbers, int64_t or float; a single one fills a fixed shape */
	size_t count;      /* number of defaults */
};

struct example {
	size_t count;
	struct wanted *wanted;
	struct leat_feature_key *key;
	struct leat_example_order *order;
	int input, first; /* set by infer: the input field, and the first output field */
};

/* Context of the parser. */
struct parsing {
	const char *text;
	struct leat_mem *mem;
	struct leat_err *err;
};

static enum leat_dtype
dtype_of(enum leat_feature_kind kind)
{
	return kind == LEAT_FEATURE_BYTES ? LEAT_U8 : kind == LEAT_FEATURE_FLOAT ? LEAT_F32 : LEAT_I64;
}

/* ---- the arguments ---- */

static enum leat_status
parse_kind(const struct parsing *p, const struct leat_arg *arg, struct wanted *wanted)
{
	static const char *const names[] = {"bytes", "float", "int64"};
	char sentence[LEAT_UNKNOWN_TEXT];

	for (int i = 0; arg->type == LEAT_ARG_WORD && i < 3; i++) {
		if (strcmp(arg->text, names[i]) == 0) {
			wanted->kind = (enum leat_feature_kind)(LEAT_FEATURE_BYTES + i);
			return LEAT_OK;
		}
	}
	if (arg->type == LEAT_ARG_WORD)
		return leat_fail_at(
			p->err, p->text, arg->at, arg->len, "feature '%s': %s", wanted->name,
			leat_unknown_text(
				&(struct leat_unknown){.what = "type", .name = arg->text, .known = names, .count = 3},
				sentence));
	return leat_fail_at(p->err, p->text, arg->at, arg->len,
	                    "the type of feature '%s' must be bytes, int64 or float", wanted->name);
}

static enum leat_status
parse_shape(const struct parsing *p, const struct leat_arg *arg, struct wanted *wanted)
{
	bool bytes = wanted->kind == LEAT_FEATURE_BYTES;
	int64_t product = 1;

	wanted->values = 1;
	wanted->length = -1;
	if (!arg->has_dims && bytes) {
		wanted->ndim = 1;
		wanted->shape[0] = -1;
	}
	if (!arg->has_dims)
		return LEAT_OK;
	if (arg->dims > LEAT_MAX_DIMS || (bytes && !arg->dims))
		return leat_fail_at(p->err, p->text, arg->at, arg->len,
		                    arg->dims
		                            ? "a feature has at most 4 dimensions"
		                            : "write bytes for a string of any length, or bytes[n] for one of n bytes");
	wanted->ndim = arg->dims ? (int)arg->dims : 1;
	wanted->shape[0] = -1;
	for (size_t i = 0; i < arg->dims; i++) {
		const struct leat_arg *dim = &arg->dim[i];

		if (dim->type != LEAT_ARG_NUMBER || !dim->integer || dim->unit || dim->whole < 1 ||
		    dim->whole > MAX_VALUES / product)
			return leat_fail_at(p->err, p->text, dim->at, dim->len,
			                    "a dimension must be a positive integer, with at most %d values in total",
			                    MAX_VALUES);
		wanted->shape[i] = dim->whole;
		product *= dim->whole;
	}
	if (bytes)
		wanted->length = product;
	else
		wanted->values = arg->dims ? product : -1;
	return LEAT_OK;
}

static enum leat_status
parse_number(const struct parsing *p, const struct leat_arg *arg, struct wanted *wanted, size_t i)
{
	bool whole = wanted->kind == LEAT_FEATURE_INT64;

	if (arg->type != LEAT_ARG_NUMBER || arg->unit || (whole ? !arg->integer : fabs(arg->number) > (double)FLT_MAX))
		return leat_fail_at(p->err, p->text, arg->at, arg->len, "the default of feature '%s' must be %s",
		                    wanted->name,
		                    whole ? "an integer below 2^63" : "a number within the range of float32");
	if (whole)
		((int64_t *)wanted->numbers)[i] = arg->whole;
	else
		((float *)wanted->numbers)[i] = (float)arg->number;
	return LEAT_OK;
}

static enum leat_status
parse_bytes_default(const struct parsing *p, const struct leat_arg *arg, struct wanted *wanted)
{
	if (arg->type != LEAT_ARG_STRING)
		return leat_fail_at(p->err, p->text, arg->at, arg->len,
		                    "the default of feature '%s' must be a string in quotes", wanted->name);
	if (wanted->length >= 0 && strlen(arg->text) != (size_t)wanted->length)
		return leat_fail_at(p->err, p->text, arg->at, arg->len,
		                    "the default of feature '%s' has %zu bytes, not %lld", wanted->name,
		                    strlen(arg->text), (long long)wanted->length);
	wanted->bytes = arg->text;
	return LEAT_OK;
}

static enum leat_status
parse_default(const struct parsing *p, const struct leat_arg *arg, struct wanted *wanted)
{
	bool list = arg->type == LEAT_ARG_LIST;
	const struct leat_arg *item = list ? arg->item : arg;
	enum leat_status status = LEAT_OK;

	wanted->has_default = true;
	if (wanted->kind == LEAT_FEATURE_BYTES)
		return parse_bytes_default(p, arg, wanted);
	if (wanted->values < 0 ? !list : list && (!wanted->ndim || arg->items != (size_t)wanted->values)) {
		if (wanted->values < 0)
			return leat_fail_at(p->err, p->text, arg->at, arg->len,
			                    "the default of feature '%s' must be a list, such as []", wanted->name);
		return leat_fail_at(
			p->err, p->text, arg->at, arg->len, "the default of feature '%s' must be %s", wanted->name,
			wanted->ndim ? "one number for all values, or a list with one for each" : "a number");
	}
	wanted->count = list ? arg->items : 1;
	wanted->numbers = leat_alloc_array(p->mem, wanted->count, sizeof(int64_t));
	if (!wanted->numbers)
		return leat_fail_mem(p->err, p->mem, wanted->count * sizeof(int64_t), "a default");
	for (size_t i = 0; i < wanted->count && status == LEAT_OK; i++)
		status = parse_number(p, &item[i], wanted, i);
	return status;
}

static enum leat_status
parse_details(const struct parsing *p, const struct leat_arg *arg, struct wanted *wanted, struct leat_feature_key *key)
{
	static const char *const names[] = {"default", "key"};
	enum leat_status status = LEAT_OK;
	bool has_key = false;

	for (size_t i = 0; i < arg->items && status == LEAT_OK; i++) {
		const struct leat_arg *item = &arg->item[i];
		char sentence[LEAT_UNKNOWN_TEXT];
		bool is_default = item->name && strcmp(item->name, "default") == 0;
		bool is_key = item->name && strcmp(item->name, "key") == 0;

		if (!item->name)
			return leat_fail_at(p->err, p->text, item->at, item->len,
			                    "a feature only takes default=... and key=...");
		if (!is_default && !is_key)
			return leat_fail_at(p->err, p->text, item->name_at, strlen(item->name), "%s",
			                    leat_unknown_text(&(struct leat_unknown){.what = "option",
			                                                             .name = item->name,
			                                                             .owner = "a feature",
			                                                             .known = names,
			                                                             .count = 2},
			                                      sentence));
		if (is_default ? wanted->has_default : has_key)
			return leat_fail_at(p->err, p->text, item->name_at, strlen(item->name), "'%s' is given twice",
			                    item->name);
		if (is_default) {
			status = parse_default(p, item, wanted);
			continue;
		}
		if (item->type != LEAT_ARG_STRING && item->type != LEAT_ARG_WORD)
			return leat_fail_at(p->err, p->text, item->at, item->len, "a key must be a string");
		has_key = true;
		*key = (struct leat_feature_key){item->text, strlen(item->text)};
	}
	return status;
}

static enum leat_status
parse_feature(const struct parsing *p, const struct leat_arg *arg, struct example *example, size_t i)
{
	struct wanted *wanted = &example->wanted[i];
	enum leat_status status;

	if (!arg->name)
		return leat_fail_at(p->err, p->text, arg->at, arg->len, "a feature needs a name: write NAME=%.*s",
		                    (int)(arg->len < 40 ? arg->len : 40), p->text + arg->at);
	if (strlen(arg->name) > LEAT_MAX_NAME)
		return leat_fail_at(p->err, p->text, arg->name_at, strlen(arg->name),
		                    "a field name can have at most %d characters: choose a shorter one and give this "
		                    "one as key=...",
		                    LEAT_MAX_NAME);
	for (size_t k = 0; k < i; k++)
		if (strcmp(example->wanted[k].name, arg->name) == 0)
			return leat_fail_at(p->err, p->text, arg->name_at, strlen(arg->name),
			                    "field '%s' is given twice", arg->name);
	wanted->name = arg->name;
	example->key[i] = (struct leat_feature_key){arg->name, strlen(arg->name)};
	status = parse_kind(p, arg, wanted);
	if (status == LEAT_OK)
		status = parse_shape(p, arg, wanted);
	if (status == LEAT_OK)
		status = parse_details(p, arg, wanted, &example->key[i]);
	for (size_t k = 0; k < i && status == LEAT_OK; k++) /* each feature can feed only one field */
		if (strcmp(example->key[k].text, example->key[i].text) == 0)
			status = leat_fail_at(p->err, p->text, arg->at, arg->len,
			                      "feature '%s' is already used for field '%s'", example->key[i].text,
			                      example->wanted[k].name);
	return status;
}

static void
params_free(void *params, struct leat_mem *mem)
{
	struct example *example = params;

	for (size_t i = 0; example->wanted && i < example->count; i++)
		leat_free(mem, example->wanted[i].numbers);
	leat_free(mem, example->wanted);
	leat_free(mem, example->key);
	leat_free(mem, example->order);
	*example = (struct example){0};
}

static enum leat_status
parse(void *params, const struct leat_call *call, const char *text, struct leat_mem *mem, struct leat_err *err)
{
	const struct parsing p = {text, mem, err};
	struct example *example = params;
	enum leat_status status = LEAT_OK;

	*example = (struct example){.count = call->args};
	if (!call->args)
		return leat_fail_at(err, text, call->at, call->len,
		                    "'example' needs at least one feature, as in example(image=bytes, label=int64)");
	if (call->args > LEAT_MAX_FIELDS)
		return leat_fail_at(err, text, call->at, call->len, "'example' takes at most %d features",
		                    LEAT_MAX_FIELDS);
	example->wanted = leat_alloc_array(mem, call->args, sizeof(*example->wanted));
	example->key = leat_alloc_array(mem, call->args, sizeof(*example->key));
	example->order = leat_alloc(mem, sizeof(*example->order));
	if (!example->wanted || !example->key || !example->order)
		status = leat_fail_mem(err, mem, call->args * sizeof(*example->wanted), "the features of 'example'");
	for (size_t i = 0; i < call->args && status == LEAT_OK; i++)
		status = parse_feature(&p, &call->arg[i], example, i);
	if (status != LEAT_OK)
		params_free(example, mem);
	return status;
}

/* ---- the arguments as text ---- */

static void
print_number(const struct wanted *wanted, size_t i, struct leat_str *out)
{
	char buf[32];

	if (wanted->kind == LEAT_FEATURE_INT64)
		leat_str_addf(out, "%lld", (long long)((const int64_t *)wanted->numbers)[i]);
	else
		leat_str_add(out, leat_format_float(buf, sizeof(buf), ((const float *)wanted->numbers)[i]));
}

static void
print_default(const struct wanted *wanted, struct leat_str *out)
{
	bool list = wanted->kind != LEAT_FEATURE_BYTES && (wanted->values < 0 || wanted->count != 1);

	leat_str_add(out, list ? "default=[" : "default=");
	if (wanted->kind == LEAT_FEATURE_BYTES)
		leat_str_add_quoted(out, wanted->bytes);
	for (size_t i = 0; i < wanted->count; i++) {
		leat_str_add(out, i ? ", " : "");
		print_number(wanted, i, out);
	}
	leat_str_add(out, list ? "]" : "");
}

static void
print_feature(const struct wanted *wanted, const char *key, struct leat_str *out)
{
	bool has_key = strcmp(key, wanted->name) != 0;
	bool plain_bytes = wanted->kind == LEAT_FEATURE_BYTES && wanted->shape[0] < 0;

	leat_str_addf(out, "%s=%s", wanted->name, leat_feature_kind_name(wanted->kind));
	if (wanted->ndim && !plain_bytes) {
		leat_str_add(out, "[");
		for (int i = 0; i < wanted->ndim && wanted->shape[i] >= 0; i++)
			leat_str_addf(out, "%s%lld", i ? ", " : "", (long long)wanted->shape[i]);
		leat_str_add(out, "]");
	}
	if (!wanted->has_default && !has_key)
		return;
	leat_str_add(out, "(");
	if (wanted->has_default)
		print_default(wanted, out);
	if (has_key) {
		leat_str_add(out, wanted->has_default ? ", key=" : "key=");
		leat_str_add_quoted(out, key);
	}
	leat_str_add(out, ")");
}

static void
print(const void *params, struct leat_str *out)
{
	const struct example *example = params;

	for (size_t i = 0; i < example->count; i++) {
		leat_str_add(out, i ? ", " : "");
		print_feature(&example->wanted[i], example->key[i].text, out);
	}
}

/* ---- the fields ---- */

/* Can image ops work on it? True for raw pixels as `leat convert` stores them. */
static bool
is_image(const struct wanted *wanted)
{
	return wanted->ndim == 3 && wanted->shape[2] <= LEAT_MAX_CHANNELS && wanted->kind != LEAT_FEATURE_INT64;
}

static enum leat_status
infer(void *params, struct leat_schema *schema, struct leat_err *err)
{
	struct example *example = params;
	int input = leat_schema_find(schema, "record");

	if (input < 0 || !leat_accepts_bytes(&schema->entry[input].field, schema->entry[input].layout))
		return leat_fail(err, LEAT_SPEC,
		                 "there is no field 'record' with bytes, which the source tfrecord provides");
	leat_schema_remove(schema, input);
	example->input = input;
	example->first = schema->count;
	for (size_t i = 0; i < example->count; i++) {
		const struct wanted *wanted = &example->wanted[i];
		struct leat_field *field = leat_schema_add(schema, wanted->name, dtype_of(wanted->kind));

		if (!field)
			return leat_fail(err, LEAT_SPEC, "cannot add field '%s': %s", wanted->name,
			                 leat_schema_find(schema, wanted->name) < 0 ? "too many fields"
			                                                            : "it already exists");
		schema->entry[schema->count - 1].extra_elements = wanted->bytes ? strlen(wanted->bytes) : wanted->count;
		field->ndim = wanted->ndim;
		memcpy(field->shape, wanted->shape, sizeof(field->shape));
		if (is_image(wanted))
			schema->entry[schema->count - 1].layout = LEAT_HWC;
	}
	return LEAT_OK;
}

/* Reports a missing feature and lists the features that exist. */
static enum leat_status
fail_missing(const struct leat_datum *record, const char *key, struct leat_err *err)
{
	struct leat_unknown unknown = {.what = "feature", .name = key, .owner = "the record"};
	struct leat_example_names names;
	char sentence[LEAT_UNKNOWN_TEXT];
	const char *list[sizeof(names.name) / sizeof(names.name[0])];

	leat_example_list(record->data, (size_t)record->shape[0], &names);
	for (; unknown.count < names.count; unknown.count++)
		list[unknown.count] = names.name[unknown.count];
	unknown.known = list;
	unknown.more = names.more;
	unknown.hint = names.count ? NULL : "it has none";
	return leat_fail(err, LEAT_DATA, "%s (or give it a default=...)", leat_unknown_text(&unknown, sentence));
}

/* "4 float values", "any number of int64 values", "1 byte string" */
static void
format_values(char *buf, size_t cap, enum leat_feature_kind kind, int64_t count)
{
	char number[24] = "any number of";

	if (count >= 0)
		snprintf(number, sizeof(number), "%lld", (long long)count);
	if (kind == LEAT_FEATURE_BYTES)
		snprintf(buf, cap, "%s byte string%s", number, leat_plural((uint64_t)count));
	else
		snprintf(buf, cap, "%s %s value%s", number, leat_feature_kind_name(kind), leat_plural((uint64_t)count));
}

static enum leat_status
fail_values(const struct wanted *wanted, const char *key, enum leat_feature_kind kind, size_t count,
            struct leat_err *err)
{
	char has[64], expected[64];

	format_values(has, sizeof(has), kind, (int64_t)count);
	format_values(expected, sizeof(expected), wanted->kind, wanted->values);
	return leat_fail(err, LEAT_DATA, "feature '%s' has %s, expected %s", key, has, expected);
}

/* Copies the default, because later ops may change it in place. */
static enum leat_status
put_default(const struct wanted *wanted, struct leat_work *work, int field, struct leat_err *err)
{
	int64_t len = wanted->kind == LEAT_FEATURE_BYTES ? (int64_t)strlen(wanted->bytes) : (int64_t)wanted->count;
	const int64_t *shape = wanted->ndim == 1 && wanted->shape[0] < 0 ? &len : wanted->shape;
	enum leat_status status = leat_work_out(work, field, dtype_of(wanted->kind), wanted->ndim, shape, err);
	struct leat_datum *out = &work->sample->field[field];
	size_t size, bytes;

	if (status != LEAT_OK)
		return status;
	size = leat_dtype_size(out->dtype);
	bytes = leat_datum_bytes(out);
	if (wanted->kind == LEAT_FEATURE_BYTES)
		memcpy(out->data, wanted->bytes, bytes);
	else if (wanted->count != 1)
		memcpy(out->data, wanted->numbers, bytes);
	else
		for (size_t at = 0; at < bytes; at += size)
			memcpy((char *)out->data + at, wanted->numbers, size);
	return LEAT_OK;
}

static enum leat_status
put_bytes(const struct wanted *wanted, const char *key, const struct leat_feature *feature, bool borrowed,
          struct leat_datum *out, struct leat_err *err)
{
	const unsigned char *bytes;
	size_t len;
	enum leat_status status = leat_feature_bytes(feature, &bytes, &len, err);

	if (status != LEAT_OK)
		return status;
	if (wanted->length >= 0 && len != (size_t)wanted->length)
		return leat_fail(err, LEAT_DATA, "feature '%s' has %zu bytes, expected %lld", key, len,
		                 (long long)wanted->length);
	*out = (struct leat_datum){
		.data = (void *)bytes, /* in the record */
		/* Makes in-place ops work on a copy: the record may be read again. */
		.borrowed = borrowed || wanted->length >= 0,
		.dtype = LEAT_U8,
		.ndim = wanted->ndim,
		.shape = {(int64_t)len},
	};
	if (wanted->length >= 0)
		memcpy(out->shape, wanted->shape, sizeof(out->shape));
	return LEAT_OK;
}

static enum leat_status
put_numbers(const struct wanted *wanted, const struct leat_feature *feature, size_t count, struct leat_work *work,
            int field, struct leat_err *err)
{
	int64_t any = (int64_t)count;
	enum leat_status status = leat_work_out(work, field, dtype_of(wanted->kind), wanted->ndim,
	                                        wanted->values < 0 ? &any : wanted->shape, err);
	void *out = work->sample->field[field].data;

	if (status != LEAT_OK)
		return status;
	if (wanted->kind == LEAT_FEATURE_FLOAT)
		return leat_feature_floats(feature, out, count, err);
	return leat_feature_int64s(feature, out, count, err);
}

static enum leat_status
put_feature(const struct example *example, size_t i, const struct leat_feature *feature, bool borrowed,
            struct leat_work *work, struct leat_err *err)
{
	const struct wanted *wanted = &example->wanted[i];
	const char *key = example->key[i].text;
	int field = example->first + (int)i;
	enum leat_status status;
	size_t count;

	status = leat_feature_count(feature, &count, err);
	if (status == LEAT_OK &&
	    (feature->kind != wanted->kind || (wanted->values >= 0 && count != (size_t)wanted->values)))
		return fail_values(wanted, key, feature->kind, count, err);
	if (status == LEAT_OK && wanted->kind == LEAT_FEATURE_BYTES)
		return put_bytes(wanted, key, feature, borrowed, &work->sample->field[field], err);
	if (status == LEAT_OK)
		status = put_numbers(wanted, feature, count, work, field, err);
	return status;
}

static enum leat_status
run(const void *params, struct leat_work *work, struct leat_err *err)
{
	const struct example *example = params;
	struct leat_sample *sample = work->sample;
	const struct leat_datum record = sample->field[example->input];
	struct leat_feature found[LEAT_MAX_FIELDS];
	enum leat_status status = leat_example_find(record.data, (size_t)record.shape[0], example->key, example->count,
	                                            example->order, found, err);

	memmove(&sample->field[example->input], &sample->field[example->input + 1],
	        (size_t)(example->first - example->input) * sizeof(sample->field[0]));
	sample->count = example->first + (int)example->count;
	for (size_t i = 0; i < example->count && status == LEAT_OK; i++) {
		if (found[i].kind != LEAT_FEATURE_NONE)
			status = put_feature(example, i, &found[i], record.borrowed, work, err);
		else if (example->wanted[i].has_default)
			status = put_default(&example->wanted[i], work, example->first + (int)i, err);
		else
			status = fail_missing(&record, example->key[i].text, err);
	}
	return status;
}

const struct leat_op leat_op_example = {
	.name = "example",
	.doc = "Read features of a tf.train.Example as fields. Each argument is NAME=TYPE, with TYPE bytes, int64 or "
	       "float; TYPE[n] or TYPE[h, w, c] has a fixed shape, TYPE[] any number of values. TYPE(default=..., "
	       "key='...') sets the value of a missing feature, and the feature's name in the record.",
	.example = "example(image=bytes, label=int64(default=-1), tokens=int64[], box=float[4])",
	.kind = LEAT_OP_FIELDS,
	.version = 1,
	.params_size = sizeof(struct example),
	.parse = parse,
	.print = print,
	.params_free = params_free,
	.on_fields.infer = infer,
	.on_fields.run = run,
};
