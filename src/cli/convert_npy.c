/* convert_npy.c - samples as arrays: FOLDER/NAME.npy per field, of shape [samples, shape...]
 *
 * The header holds the number of rows, which is known only at the end (bad samples may be skipped), so it is
 * written twice. */
#include <string.h>

#include "cli/convert_formats.h"
#include "format/npy_write.h"

static enum leat_status
check(const struct leat_feed *feed, const struct leat_field *field, struct leat_err *err)
{
	(void)feed;
	if (strchr(field->name, '/') || *field->name == '.' || !*field->name)
		return leat_fail(err, LEAT_INVALID, "field '%s' cannot be used as a file name: rename it", field->name);
	for (int d = 0; d < field->ndim; d++)
		if (field->shape[d] < 0)
			return leat_fail(err, LEAT_INVALID,
			                 "field '%s' varies in shape, but an array needs a fixed one: resize or pad "
			                 "it, or use another --format",
			                 field->name);
	if (!leat_npy_has(field->dtype))
		return leat_fail(
			err, LEAT_INVALID,
			"field '%s' is %s, which .npy does not support: use cast(float16), or --format tfrecord",
			field->name, leat_dtype_name(field->dtype));
	return LEAT_OK;
}

static size_t
make_head(const struct leat_field *field, uint64_t samples, char head[LEAT_NPY_HEAD])
{
	int64_t shape[1 + LEAT_MAX_DIMS] = {(int64_t)samples};

	memcpy(shape + 1, field->shape, (size_t)field->ndim * sizeof(*shape));
	return leat_npy_head(head, field->dtype, 1 + field->ndim, shape, INT64_MAX);
}

static enum leat_status
begin(struct leat_convert *c, struct leat_writer **out, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	char head[LEAT_NPY_HEAD];

	for (int f = 0; f < leat_field_count(c->feed) && status == LEAT_OK; f++)
		status = leat_write(out[f], head, make_head(leat_field_at(c->feed, f), 0, head), err);
	return status;
}

static enum leat_status
write_sample(struct leat_convert *c, struct leat_writer **out, uint64_t position, const struct leat_row *row,
             struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	(void)position;
	for (int f = 0; f < leat_field_count(c->feed) && status == LEAT_OK; f++)
		status = leat_write(out[f], row[f].data, row[f].bytes, err);
	return status;
}

static enum leat_status
end(struct leat_convert *c, struct leat_writer **out, uint64_t samples, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	char was[LEAT_NPY_HEAD], head[LEAT_NPY_HEAD];

	for (int f = 0; f < leat_field_count(c->feed) && status == LEAT_OK; f++) {
		const struct leat_field *field = leat_field_at(c->feed, f);

		make_head(field, 0, was);
		status = leat_write_patch(out[f], 0, was, head, make_head(field, samples, head), err);
	}
	return status;
}

static void
print_spec(const struct leat_convert *c, const char *path, struct leat_str *out)
{
	leat_str_add(out, "npy(");
	for (int f = 0; f < leat_field_count(c->feed); f++) {
		const char *name = leat_field_at(c->feed, f)->name;

		leat_str_addf(out, "%s%s='%s/%s.npy'", f ? ", " : "", name, path, name);
	}
	leat_str_add(out, ")");
	leat_convert_print_casts(c, LEAT_BOOL, false, out); /* npy reads bools as uint8 */
}

const struct leat_convert_format leat_convert_npy = {
	.suffix = ".npy",
	.check = check,
	.begin = begin,
	.write = write_sample,
	.end = end,
	.print_spec = print_spec,
};
