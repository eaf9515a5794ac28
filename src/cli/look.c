/* look.c - `leat look`: show the first samples of a spec
 *
 * Samples are shown after all ops, as a contact sheet or as fields, shapes and values. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/row.h"
#include "cli/sheet.h"
#include "cli/text.h"
#include "feed/feed.h"

struct params {
	int64_t count, seed, max_pixels, max_bytes;
	const char *output, *field;
	struct leat_strings storage;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct params, count, "16", 1, 10000, "samples to show"),
	LEAT_STRING(struct params, output, "", "write a contact sheet to this PNG file"),
	LEAT_STRING(struct params, field, "", "image field for the sheet; default: the first image field"),
	LEAT_INT(struct params, seed, "0", 0, 9e18, "random seed"),
	LEAT_SAMPLE_LIMITS(struct params),
	LEAT_STORAGE_OPTION(struct params),
	LEAT_OPT_END,
};

/* ---- values as text ---- */

enum { SHOWN_VALUES = 6, SHOWN_BYTES = 48, SHOWN_CLASSES = 10, SHOWN_NAME = 256 };

static void
print_value(const void *data, enum leat_dtype dtype, int64_t i)
{
	switch (dtype) {
	case LEAT_U8:
		printf(" %u", ((const uint8_t *)data)[i]);
		break;
	case LEAT_I32:
		printf(" %" PRId32, ((const int32_t *)data)[i]);
		break;
	case LEAT_I64:
		printf(" %" PRId64, ((const int64_t *)data)[i]);
		break;
	case LEAT_F32:
		printf(" %.6g", (double)((const float *)data)[i]);
		break;
	case LEAT_F64:
		printf(" %.6g", ((const double *)data)[i]);
		break;
	case LEAT_BOOL:
		printf(" %s", ((const uint8_t *)data)[i] ? "true" : "false");
		break;
	case LEAT_I8:
		printf(" %d", ((const int8_t *)data)[i]);
		break;
	case LEAT_I16:
		printf(" %d", ((const int16_t *)data)[i]);
		break;
	case LEAT_U16:
		printf(" %u", ((const uint16_t *)data)[i]);
		break;
	case LEAT_U32:
		printf(" %" PRIu32, ((const uint32_t *)data)[i]);
		break;
	case LEAT_U64:
		printf(" %" PRIu64, ((const uint64_t *)data)[i]);
		break;
	case LEAT_F16:
	case LEAT_BF16:
		printf(" 0x%04x", ((const uint16_t *)data)[i]);
		break;
	}
}

static bool
is_text(const uint8_t *bytes, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		if (!isprint(bytes[i]))
			return false;
	return count > 0;
}

static void
print_values(const void *data, enum leat_dtype dtype, int ndim, int64_t count)
{
	int64_t shown = count < SHOWN_VALUES ? count : SHOWN_VALUES;

	if (dtype == LEAT_U8 && ndim == 1 && is_text(data, count < SHOWN_BYTES ? count : SHOWN_BYTES)) {
		printf(" \"%.*s\"%s", (int)(count < SHOWN_BYTES ? count : SHOWN_BYTES), (const char *)data,
		       count > SHOWN_BYTES ? "..." : "");
		return;
	}
	for (int64_t i = 0; i < shown; i++)
		print_value(data, dtype, i);
	if (count > shown)
		printf(" ...");
}

/* ---- one sample ---- */

static enum leat_status
print_sample(const struct leat_feed *feed, const struct leat_batch *batch, int64_t i, struct leat_err *err)
{
	printf("sample at position %" PRIu64 "\n", leat_batch_position(batch, i));
	for (int f = 0; f < leat_field_count(feed); f++) {
		const struct leat_field *field = leat_field_at(feed, f);
		struct leat_tensor tensor;
		struct leat_row row;
		char name[SHOWN_NAME];
		enum leat_status status = leat_batch_field(batch, field->name, &tensor, err);

		if (status != LEAT_OK)
			return status;
		leat_row_of(&row, field, &tensor, i);
		printf("  %-12s %s", leat_show(name, sizeof(name), field->name, strlen(field->name)),
		       leat_dtype_name(field->dtype));
		for (int d = 0; d < field->ndim; d++)
			printf("%s%" PRId64 "%s", d ? ", " : "[", row.shape[d], d + 1 == field->ndim ? "]" : "");
		print_values(row.data, field->dtype, field->ndim, row.count);
		printf("\n");
	}
	return LEAT_OK;
}

/* "2 classes: 0 cat, 1 dog" */
static void
print_classes(const struct leat_feed *feed)
{
	size_t count = leat_class_count(feed);
	char name[SHOWN_NAME];

	if (count == 0)
		return;
	printf("%zu class%s:", count, count == 1 ? "" : "es");
	for (size_t i = 0; i < count && i < SHOWN_CLASSES; i++)
		printf("%s %zu %s", i ? "," : "", i,
		       leat_show(name, sizeof(name), leat_class_name(feed, i), strlen(leat_class_name(feed, i))));
	printf("%s\n", count > SHOWN_CLASSES ? ", ..." : "");
}

/* ---- the sheet ---- */

static void
fail_field(const struct leat_feed *feed, const char *name, struct leat_err *err)
{
	const char *known[LEAT_MAX_FIELDS];
	struct leat_unknown unknown = {.what = "field", .name = name, .known = known};

	for (int f = 0; f < leat_field_count(feed); f++)
		known[unknown.count++] = leat_field_at(feed, f)->name;
	leat_fail_unknown(err, LEAT_INVALID, &unknown);
}

static const struct leat_field *
find_image(const struct leat_feed *feed, const char *name, struct leat_err *err)
{
	for (int f = 0; f < leat_field_count(feed); f++) {
		const struct leat_field *field = leat_field_at(feed, f);

		if (*name && strcmp(field->name, name) != 0)
			continue;
		if (leat_sheet_fits(field))
			return field;
		if (*name) {
			leat_fail(
				err, LEAT_INVALID,
				"field '%s' is not a drawable image: it must be uint8 or float32 with 1 or 3 channels",
				name);
			return NULL;
		}
	}
	if (*name)
		fail_field(feed, name, err);
	else
		leat_fail(err, LEAT_INVALID,
		          "no field is a drawable image (uint8 or float32 with 1 or 3 channels): is 'decode' missing "
		          "from the spec?");
	return NULL;
}

/* The first image sets the size of the cells. */
static enum leat_status
draw(struct leat_sheet *sheet, const struct leat_field *field, const struct leat_batch *batch, int64_t i, int64_t at,
     int64_t total, struct leat_mem *mem, struct leat_err *err)
{
	struct leat_tensor tensor;
	struct leat_row row;
	enum leat_status status = leat_batch_field(batch, field->name, &tensor, err);

	if (status != LEAT_OK)
		return status;
	leat_row_of(&row, field, &tensor, i);
	if (!sheet->rgb) {
		bool planar = row.shape[2] != 1 && row.shape[2] != 3;

		status = leat_sheet_open(sheet, total, row.shape[planar ? 2 : 1], row.shape[planar ? 1 : 0], mem, err);
	}
	if (status == LEAT_OK)
		leat_sheet_draw(sheet, at, row.data, tensor.dtype, row.shape);
	return status;
}

/* ---- the command ---- */

static enum leat_status
show(struct leat_feed *feed, const struct leat_invocation *run, struct leat_err *err)
{
	const struct params *p = run->params;
	const struct leat_field *image = *p->output ? find_image(feed, p->field, err) : NULL;
	struct leat_sheet sheet = {.mem = run->mem};
	int64_t shown = 0, total = p->count;
	enum leat_status status = *p->output && !image ? LEAT_INVALID : LEAT_OK;
	struct leat_batch *batch;

	if (!*p->output)
		print_classes(feed);
	if ((uint64_t)total > leat_samples(feed))
		total = (int64_t)leat_samples(feed);
	while (status == LEAT_OK && shown < total && (status = leat_next(feed, &batch, err)) == LEAT_OK) {
		for (int64_t i = 0; i < leat_batch_count(batch) && shown < total && status == LEAT_OK; i++, shown++)
			status = image ? draw(&sheet, image, batch, i, shown, total, run->mem, err)
			               : print_sample(feed, batch, i, err);
		leat_release(batch);
	}
	if (status == LEAT_END || status == LEAT_DONE) {
		leat_err_clear(err);
		status = LEAT_OK;
	}
	if (status == LEAT_OK && shown == 0)
		image = NULL; /* a warning says why there are no samples */
	if (status == LEAT_OK && image)
		status = leat_sheet_write(&sheet, p->output, run->storage, err);
	if (status == LEAT_OK && image)
		leat_print_line(stdout, "%" PRId64 " image%s of field '%s' written to %s", shown,
		                leat_plural((uint64_t)shown), image->name, p->output);
	leat_sheet_free(&sheet);
	return status;
}

static enum leat_status
run_look(const struct leat_invocation *run, struct leat_err *err)
{
	const struct params *p = run->params;
	struct leat_options o;
	struct leat_feed *feed;
	enum leat_status status;

	status = leat_check_spec(run->operand[0], run->storage, run->mem, err);
	if (status != LEAT_OK)
		return status;
	leat_options_init(&o);
	o.seed = (uint64_t)p->seed;
	o.epochs = 1;
	o.rank = 0;
	o.world = 1;
	o.max_pixels = (uint64_t)p->max_pixels;
	o.max_bytes = (uint64_t)p->max_bytes;
	o.log = leat_print_log;
	o.storage = run->settings;
	status = leat_feed_open(run->operand[0], &o, LEAT_BATCH_OPTIONAL, -1, &feed, err);
	if (status == LEAT_OK)
		status = show(feed, run, err);
	leat_close(feed);
	return status;
}

const struct leat_command leat_command_look = {
	.name = "look",
	.summary = "Show the first samples of a spec",
	.operands = "SPEC",
	.min_operands = 1,
	.max_operands = 1,
	.help = "Prints fields, shapes and leading values of the first samples, after all ops, or draws\n"
		"their images as a contact sheet.",
	.example = "leat look \"tfrecord('cells-*.tfrecord') | example(image=bytes, label=int64) | decode\" -n 25 -o "
		   "cells.png",
	.opts = options,
	.params_size = sizeof(struct params),
	.run = run_look,
};
