/* convert_tfrecord.c - samples as tf.train.Example in TFRecord files
 *
 * Bytes become a bytes feature, integers an int64 list, floats a float list. uint8 and 16-bit float tensors are raw
 * bytes. A field of more than one dimension, or a list of 16-bit floats, gets an extra feature NAME_shape. */
#include <string.h>

#include "base/array.h"
#include "cli/convert_formats.h"
#include "format/record.h"
#include "image/image.h"

#define SHAPE "_shape"

enum feature { AS_BYTES, AS_INT64S, AS_FLOATS };

static enum feature
feature_of(const struct leat_field *field)
{
	switch (field->dtype) {
	case LEAT_BOOL:
	case LEAT_I8:
	case LEAT_I16:
	case LEAT_U16:
	case LEAT_I32:
	case LEAT_U32:
	case LEAT_U64:
	case LEAT_I64:
		return AS_INT64S;
	case LEAT_F32:
	case LEAT_F64:
		return AS_FLOATS;
	default:
		return AS_BYTES;
	}
}

static bool
is_byte_string(const struct leat_field *field)
{
	return field->dtype == LEAT_U8 && field->ndim == 1;
}

static bool
has_shape(const struct leat_field *field)
{
	return field->ndim > 1 || (field->ndim == 1 && feature_of(field) == AS_BYTES && !is_byte_string(field));
}

static void
shape_name(const struct leat_field *field, char name[LEAT_MAX_NAME + sizeof(SHAPE)])
{
	strcpy(name, field->name);
	strcat(name, SHAPE);
}

static enum leat_status
check(const struct leat_feed *feed, const struct leat_field *field, struct leat_err *err)
{
	char name[LEAT_MAX_NAME + sizeof(SHAPE)];

	shape_name(field, name);
	for (int i = 0; has_shape(field) && i < leat_field_count(feed); i++)
		if (strcmp(leat_field_at(feed, i)->name, name) == 0)
			return leat_fail(
				err, LEAT_INVALID,
				"the shape of field '%s' is stored as '%s', but a field of that name exists: rename it",
				field->name, name);
	return LEAT_OK;
}

/* ---- values ---- */

/* A buffer for `count` numbers of at most 8 bytes. */
static void *
make_room(struct leat_convert *c, int64_t count, struct leat_err *err)
{
	/* At least one, because NULL means failure. */
	enum leat_status status =
		LEAT_GROW_RAW(c->mem, c->numbers, c->numbers_cap, count ? (size_t)count : 1, SIZE_MAX, "a sample", err);

	return status == LEAT_OK ? c->numbers : NULL;
}

/* TFRecord has no unsigned integers. */
static enum leat_status
check_int64s(const struct leat_row *row, struct leat_err *err)
{
	const uint64_t *number = row->data;

	for (int64_t i = 0; i < row->count; i++)
		if (number[i] > INT64_MAX)
			return leat_fail(err, LEAT_DATA,
			                 "field '%s' is %llu, which does not fit int64, TFRecord's only integer type; "
			                 "use --format npy or tar",
			                 row->field->name, (unsigned long long)number[i]);
	return LEAT_OK;
}

static enum leat_status
add_other_ints(struct leat_convert *c, const struct leat_row *row, struct leat_err *err)
{
	int64_t *numbers = make_room(c, row->count, err);

	if (!numbers)
		return LEAT_NOMEM;
	if (row->field->dtype == LEAT_U64 && check_int64s(row, err) != LEAT_OK)
		return LEAT_DATA;
	leat_cast(row->data, row->field->dtype, numbers, LEAT_I64, (size_t)row->count);
	leat_example_add_int64s(&c->example, row->field->name, numbers, (size_t)row->count);
	return LEAT_OK;
}

static enum leat_status
add_doubles(struct leat_convert *c, const struct leat_row *row, struct leat_err *err)
{
	float *numbers = make_room(c, row->count, err);
	const double *from = row->data;

	if (!numbers)
		return LEAT_NOMEM;
	for (int64_t i = 0; i < row->count; i++)
		numbers[i] = (float)from[i];
	leat_example_add_floats(&c->example, row->field->name, numbers, (size_t)row->count);
	return LEAT_OK;
}

static enum leat_status
add_row(struct leat_convert *c, const struct leat_row *row, struct leat_err *err)
{
	const struct leat_field *field = row->field;
	char name[LEAT_MAX_NAME + sizeof(SHAPE)];
	enum leat_status status = LEAT_OK;

	if (field->dtype == LEAT_I64)
		leat_example_add_int64s(&c->example, field->name, row->data, (size_t)row->count);
	else if (feature_of(field) == AS_INT64S)
		status = add_other_ints(c, row, err);
	else if (field->dtype == LEAT_F64)
		status = add_doubles(c, row, err);
	else if (field->dtype == LEAT_F32)
		leat_example_add_floats(&c->example, field->name, row->data, (size_t)row->count);
	else
		leat_example_add_bytes(&c->example, field->name, row->data, row->bytes);
	if (has_shape(field)) {
		shape_name(field, name);
		leat_example_add_int64s(&c->example, name, row->shape, (size_t)field->ndim);
	}
	return status;
}

static enum leat_status
write_sample(struct leat_convert *c, struct leat_writer **out, uint64_t position, const struct leat_row *row,
             struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	const void *record;
	size_t len;

	(void)position;
	leat_example_begin(&c->example);
	for (int f = 0; f < leat_field_count(c->feed) && status == LEAT_OK; f++)
		status = add_row(c, &row[f], err);
	if (status == LEAT_OK)
		status = leat_example_finish(&c->example, &record, &len, err);
	return status == LEAT_OK ? leat_tfrecord_write(*out, record, len, err) : status;
}

/* ---- the spec ---- */

/* "[100, 100, 3]"; "[]" if a dimension varies or is 0. */
static void
print_dims(const struct leat_field *field, struct leat_str *out)
{
	bool fixed = true;

	for (int d = 0; d < field->ndim; d++)
		fixed &= field->shape[d] > 0;
	leat_str_add(out, "[");
	for (int d = 0; fixed && d < field->ndim; d++)
		leat_str_addf(out, "%s%lld", d ? ", " : "", (long long)field->shape[d]);
	leat_str_add(out, "]");
}

static bool
is_fixed(const struct leat_field *field)
{
	for (int d = 0; d < field->ndim; d++)
		if (field->shape[d] < 0)
			return false;
	return true;
}

static void
print_bytes(const struct leat_field *field, struct leat_str *out)
{
	leat_str_add(out, "bytes");
	if (!is_fixed(field))
		return;
	if (field->dtype == LEAT_U8 && field->ndim > 0)
		print_dims(field, out);
	else if (field->ndim == 0)
		leat_str_addf(out, "[%zu]", leat_dtype_size(field->dtype));
}

/* A name that a spec cannot spell is given as the feature's key. */
static void
print_feature(const struct leat_convert *c, int f, struct leat_str *out)
{
	const struct leat_field *field = leat_field_at(c->feed, f);
	bool word = leat_is_word(field->name), numbers = feature_of(field) != AS_BYTES;

	leat_str_add(out, f ? ", " : "");
	if (word)
		leat_str_addf(out, "%s=", field->name);
	else
		leat_str_addf(out, "field%d=", f);
	if (numbers)
		leat_str_add(out, feature_of(field) == AS_INT64S ? "int64" : "float");
	else
		print_bytes(field, out);
	if (numbers && field->ndim > 0)
		print_dims(field, out);
	if (!word) {
		leat_str_add(out, "(key=");
		leat_str_add_quoted(out, field->name);
		leat_str_add(out, ")");
	}
	if (word && has_shape(field) && (!is_fixed(field) || field->dtype == LEAT_F16 || field->dtype == LEAT_BF16))
		leat_str_addf(out, ", %s%s=int64[%d]", field->name, SHAPE, field->ndim);
}

static void
print_spec(const struct leat_convert *c, const char *path, struct leat_str *out)
{
	static const enum leat_dtype cast_back[] = {LEAT_I32, LEAT_BOOL, LEAT_I8, LEAT_I16,
	                                            LEAT_U16, LEAT_U32,  LEAT_U64};

	leat_str_add(out, "tfrecord(");
	leat_str_add_quoted(out, path);
	leat_str_add(out, ") | example(");
	for (int f = 0; f < leat_field_count(c->feed); f++)
		print_feature(c, f, out);
	leat_str_add(out, ")");
	for (size_t i = 0; i < sizeof(cast_back) / sizeof(*cast_back); i++)
		leat_convert_print_casts(c, cast_back[i], false, out);
}

const struct leat_convert_format leat_convert_tfrecord = {
	.suffix = ".tfrecord",
	.shards = true,
	.check = check,
	.write = write_sample,
	.print_spec = print_spec,
};
