/* sample.c - types, fields and schemas
 *
 * Stateless: any thread, on its own or read-only structures. */
#include "format/sample.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"

const char *
leat_dtype_name(enum leat_dtype dtype)
{
	switch (dtype) {
	case LEAT_U8:
		return "uint8";
	case LEAT_I32:
		return "int32";
	case LEAT_I64:
		return "int64";
	case LEAT_F16:
		return "float16";
	case LEAT_BF16:
		return "bfloat16";
	case LEAT_F32:
		return "float32";
	case LEAT_F64:
		return "float64";
	case LEAT_BOOL:
		return "bool";
	case LEAT_I8:
		return "int8";
	case LEAT_I16:
		return "int16";
	case LEAT_U16:
		return "uint16";
	case LEAT_U32:
		return "uint32";
	case LEAT_U64:
		return "uint64";
	}
	return "unknown";
}

size_t
leat_dtype_size(enum leat_dtype dtype)
{
	switch (dtype) {
	case LEAT_U8:
	case LEAT_BOOL:
	case LEAT_I8:
		return 1;
	case LEAT_F16:
	case LEAT_BF16:
	case LEAT_I16:
	case LEAT_U16:
		return 2;
	case LEAT_I32:
	case LEAT_U32:
	case LEAT_F32:
		return 4;
	case LEAT_I64:
	case LEAT_U64:
	case LEAT_F64:
		return 8;
	}
	return 0;
}

enum leat_status
leat_schema_init(struct leat_schema *schema, int capacity, struct leat_mem *mem, struct leat_err *err)
{
	*schema = (struct leat_schema){.capacity = capacity};
	schema->entry = leat_alloc_array(mem, (size_t)capacity, sizeof(*schema->entry));
	if (!schema->entry)
		return leat_fail_mem(err, mem, (size_t)capacity * sizeof(*schema->entry), "the fields");
	return LEAT_OK;
}

enum leat_status
leat_schema_copy(struct leat_schema *to, const struct leat_schema *from, int capacity, struct leat_mem *mem,
                 struct leat_err *err)
{
	enum leat_status status = leat_schema_init(to, from->count > capacity ? from->count : capacity, mem, err);

	if (status != LEAT_OK)
		return status;
	to->count = from->count;
	memcpy(to->entry, from->entry, (size_t)from->count * sizeof(*to->entry));
	return LEAT_OK;
}

void
leat_schema_trim(struct leat_schema *schema, struct leat_mem *mem)
{
	int count = schema->count > 0 ? schema->count : 1;
	void *less = leat_realloc(mem, schema->entry, (size_t)count * sizeof(*schema->entry));

	if (!less)
		return;
	schema->entry = less;
	schema->capacity = count;
}

void
leat_schema_free(struct leat_schema *schema, struct leat_mem *mem)
{
	leat_free(mem, schema->entry);
	*schema = (struct leat_schema){0};
}

int
leat_schema_find(const struct leat_schema *schema, const char *name)
{
	for (int i = 0; i < schema->count; i++)
		if (strcmp(schema->entry[i].field.name, name) == 0)
			return i;
	return -1;
}

struct leat_field *
leat_schema_add(struct leat_schema *schema, const char *name, enum leat_dtype dtype)
{
	size_t len = strnlen(name, LEAT_MAX_NAME + 1);
	struct leat_schema_entry *entry;

	if (len == 0 || len > LEAT_MAX_NAME || schema->count >= schema->capacity || leat_schema_find(schema, name) >= 0)
		return NULL;
	entry = &schema->entry[schema->count++];
	memset(entry, 0, sizeof(*entry));
	memcpy(entry->field.name, name, len);
	entry->field.dtype = dtype;
	return &entry->field;
}

void
leat_schema_remove(struct leat_schema *schema, int i)
{
	if (i < 0 || i >= schema->count)
		return;
	schema->count--;
	memmove(&schema->entry[i], &schema->entry[i + 1], (size_t)(schema->count - i) * sizeof(schema->entry[0]));
}

enum leat_status
leat_schema_need(const struct leat_schema *schema, const char *name, int *i, struct leat_err *err)
{
	const char *names[LEAT_MAX_FIELDS];

	*i = leat_schema_find(schema, name);
	if (*i >= 0)
		return LEAT_OK;
	for (int k = 0; k < schema->count; k++)
		names[k] = schema->entry[k].field.name;
	return leat_fail_unknown(
		err, LEAT_SPEC,
		&(struct leat_unknown){.what = "field", .name = name, .known = names, .count = (size_t)schema->count});
}

void
leat_schema_pick(struct leat_schema *schema, const struct leat_pick *pick)
{
	for (int i = 0; i < pick->count; i++) {
		struct leat_schema_entry entry = schema->entry[i];
		int from = pick->from[i];

		/* Position `from` was already overwritten by a swap; follow where its entry went. */
		while (from < i)
			from = pick->from[from];
		schema->entry[i] = schema->entry[from];
		schema->entry[from] = entry;
	}
	schema->count = pick->count;
}

void
leat_sample_pick(struct leat_sample *sample, const struct leat_pick *pick)
{
	struct leat_datum picked[LEAT_MAX_FIELDS];

	for (int i = 0; i < pick->count; i++)
		picked[i] = sample->field[pick->from[i]];
	memcpy(sample->field, picked, (size_t)pick->count * sizeof(picked[0]));
	sample->count = pick->count;
}

bool
leat_field_is_static(const struct leat_field *field)
{
	for (int i = 0; i < field->ndim; i++)
		if (field->shape[i] < 0)
			return false;
	return true;
}

/* The product of the dimensions; -1 when one is unknown or the product exceeds int64. */
static int64_t
count_elements(const int64_t *shape, int ndim)
{
	int64_t count = 1;
	bool empty = false;

	for (int i = 0; i < ndim; i++) {
		if (shape[i] < 0)
			return -1;
		if (shape[i] == 0)
			empty = true;
	}
	for (int i = 0; i < ndim && !empty; i++)
		if (__builtin_mul_overflow(count, shape[i], &count))
			return -1;
	return empty ? 0 : count;
}

int64_t
leat_field_elements(const struct leat_field *field)
{
	return count_elements(field->shape, field->ndim);
}

enum leat_layout
leat_field_layout(const struct leat_field *field)
{
	enum { MAX_CHANNELS = 4 };
	const int64_t *shape = field->shape;

	if (field->ndim != 3 || shape[0] == 0 || shape[1] == 0 || shape[2] == 0)
		return LEAT_LAYOUT_NONE;
	if (shape[2] > 0 && shape[2] <= MAX_CHANNELS)
		return LEAT_HWC;
	return shape[0] > 0 && shape[0] <= MAX_CHANNELS ? LEAT_CHW : LEAT_LAYOUT_NONE;
}

char *
leat_field_format(const struct leat_field *field, char *buf, size_t cap)
{
	char shape[128] = ""; /* LEAT_MAX_DIMS numbers of 20 characters fit */
	size_t len = 0;

	for (int i = 0; i < field->ndim && i < LEAT_MAX_DIMS; i++) {
		const char *comma = i == 0 ? "" : ", ";
		int added = field->shape[i] < 0
		                    ? snprintf(shape + len, sizeof(shape) - len, "%s?", comma)
		                    : snprintf(shape + len, sizeof(shape) - len, "%s%" PRId64, comma, field->shape[i]);

		len += (size_t)added;
	}
	snprintf(buf, cap, len == 0 ? "%s" : "%s[%s]", leat_dtype_name(field->dtype), shape);
	return buf;
}

int64_t
leat_datum_elements(const struct leat_datum *datum)
{
	return count_elements(datum->shape, datum->ndim);
}

size_t
leat_datum_bytes(const struct leat_datum *datum)
{
	int64_t elements = leat_datum_elements(datum);
	size_t bytes;

	if (elements < 0 || __builtin_mul_overflow((size_t)elements, leat_dtype_size(datum->dtype), &bytes))
		return SIZE_MAX;
	return bytes;
}
