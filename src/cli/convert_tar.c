/* convert_tar.c - samples in WebDataset format: members KEY.NAME.EXTENSION of a tar file
 *
 * The key is the sample's position. Tensors are .npy, integer scalars .cls, and bytes .jpg, .png, .webp or .bin
 * depending on their content. A bytes field whose name looks like a file name (jpg, seg.png) keeps that name. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/convert_formats.h"
#include "format/npy_write.h"
#include "format/sample.h"
#include "format/tar_write.h"

static bool
is_bytes(const struct leat_field *field)
{
	return field->dtype == LEAT_U8 && field->ndim == 1;
}

static enum leat_tar_extension
extension_of(const struct leat_row *row)
{
	const struct leat_field *field = row->field;

	if (field->ndim == 0 && (field->dtype == LEAT_U8 || field->dtype == LEAT_I32 || field->dtype == LEAT_I64))
		return LEAT_TAR_CLS;
	if (!is_bytes(field))
		return LEAT_TAR_NPY;
	return leat_tar_extension_of(field->name, row->data, row->bytes);
}

static enum leat_status
check(const struct leat_feed *feed, const struct leat_field *field, struct leat_err *err)
{
	(void)feed;
	if (strchr(field->name, '/') || *field->name == '.' || !*field->name)
		return leat_fail(err, LEAT_INVALID, "field '%s' cannot be used in a file name: rename it", field->name);
	if (!is_bytes(field) && !leat_npy_has(field->dtype))
		return leat_fail(
			err, LEAT_INVALID,
			"field '%s' is %s, which .npy does not support: use cast(float16), or --format tfrecord",
			field->name, leat_dtype_name(field->dtype));
	return LEAT_OK;
}

static int64_t
integer_of(const struct leat_row *row)
{
	if (row->field->dtype == LEAT_U8)
		return *(const uint8_t *)row->data;
	return row->field->dtype == LEAT_I32 ? *(const int32_t *)row->data : *(const int64_t *)row->data;
}

static enum leat_status
write_row(struct leat_convert *c, struct leat_writer **out, uint64_t position, int f, const struct leat_row *row,
          struct leat_err *err)
{
	enum leat_tar_extension extension = extension_of(row);
	struct iovec piece[2] = {{NULL, 0}, {(void *)row->data, row->bytes}};
	char name[LEAT_MAX_NAME + 64], text[LEAT_NPY_HEAD];

	c->extensions[f] |= 1u << extension;
	snprintf(name, sizeof(name), "%08" PRIu64 ".%s%s", position, row->field->name, leat_tar_extensions[extension]);
	if (extension == LEAT_TAR_NPY) {
		piece[0] = (struct iovec){text, leat_npy_head(text, row->field->dtype, row->field->ndim, row->shape,
		                                              row->field->ndim ? row->shape[0] : 0)};
	} else if (extension == LEAT_TAR_CLS) {
		piece[0] = (struct iovec){text, (size_t)snprintf(text, sizeof(text), "%" PRId64, integer_of(row))};
		piece[1].iov_len = 0;
	}
	return leat_tar_write(*out, name, piece, 2, err);
}

static enum leat_status
write_sample(struct leat_convert *c, struct leat_writer **out, uint64_t position, const struct leat_row *row,
             struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (int f = 0; f < leat_field_count(c->feed) && status == LEAT_OK; f++)
		status = write_row(c, out, position, f, &row[f], err);
	return status;
}

static enum leat_status
end(struct leat_convert *c, struct leat_writer **out, uint64_t samples, struct leat_err *err)
{
	(void)c, (void)samples;
	return leat_tar_write_end(*out, err);
}

/* 'image=image.jpg;image.png', 'label=label.cls:int64' */
static void
print_field(const struct leat_convert *c, int f, struct leat_str *out)
{
	const char *name = leat_field_at(c->feed, f)->name;
	struct leat_str text;

	leat_str_init(&text, c->mem, 4096);
	leat_tar_add_field(&text, name, c->extensions[f]);
	if (c->extensions[f] >> LEAT_TAR_CLS & 1)
		leat_str_add(&text, ":int64");
	if (c->extensions[f] >> LEAT_TAR_NPY & 1) {
		char type[200];

		leat_str_addf(&text, ":%s", leat_field_format(leat_field_at(c->feed, f), type, sizeof(type)));
	}
	leat_str_add(out, f ? ", " : "");
	leat_str_add_quoted(out, leat_str_text(&text));
	leat_str_free(&text);
}

static void
print_spec(const struct leat_convert *c, const char *path, struct leat_str *out)
{
	leat_str_add(out, "tar(");
	leat_str_add_quoted(out, path);
	leat_str_add(out, ", fields=[");
	for (int f = 0; f < leat_field_count(c->feed); f++)
		print_field(c, f, out);
	leat_str_add(out, "])");
	leat_convert_print_casts(c, LEAT_I32, true, out);
	leat_convert_print_casts(c, LEAT_U8, true, out);
}

const struct leat_convert_format leat_convert_tar = {
	.suffix = ".tar",
	.shards = true,
	.check = check,
	.write = write_sample,
	.end = end,
	.print_spec = print_spec,
};
