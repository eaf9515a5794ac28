/* rows.c - shared by ops on whole batches; see op.h */
#include "op/op.h"

bool
leat_rows_pair(const struct leat_rows *rows, int64_t i)
{
	uint64_t row = rows->position[i] % rows->batch;

	return i + 1 < rows->count && rows->position[i] != UINT64_MAX && row % 2 == 0 && row + 1 < rows->batch &&
	       rows->position[i + 1] == rows->position[i] + 1;
}

void
leat_rows_stream(const struct leat_rows *rows, int64_t i, struct leat_rng *rng)
{
	leat_rng_init(rng, rows->seed, rows->epoch, rows->position[i], rows->stream);
}

enum leat_status
leat_rows_field(const struct leat_schema *schema, const char *name, bool floats, int *field, struct leat_err *err)
{
	char type[160];

	*field = leat_schema_find(schema, name);
	if (*field < 0)
		return leat_fail(err, LEAT_SPEC, "there is no field '%s'", name);
	leat_field_format(&schema->entry[*field].field, type, sizeof(type));
	if (!leat_field_is_static(&schema->entry[*field].field))
		return leat_fail(err, LEAT_SPEC, "field '%s' is %s: it must have the same shape in all samples", name,
		                 type);
	if (floats && schema->entry[*field].field.dtype != LEAT_F32)
		return leat_fail(err, LEAT_SPEC, "field '%s' is %s, but must be float32: put %s before batch", name,
		                 type, schema->entry[*field].field.ndim ? "scale(1/255)" : "one_hot");
	return LEAT_OK;
}

void
leat_rows_blend(const struct leat_rows *rows, int64_t i, int field, float share)
{
	size_t count = rows->row_bytes[field] / sizeof(float);
	float *a = (float *)rows->column[field] + (size_t)i * count, *b = a + count;
	float rest = 1 - share;

	for (size_t k = 0; k < count; k++) {
		float x = a[k], y = b[k];

		a[k] = share * x + rest * y;
		b[k] = share * y + rest * x;
	}
}
