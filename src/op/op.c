/* op.c - shared by all ops: lookup, field checks and output buffers
 *
 * Any thread; a struct leat_work belongs to one. */
#include "op/op.h"

#include <inttypes.h>
#include <string.h>

const struct leat_op *
leat_op_find(const char *name)
{
	for (const struct leat_op *const *op = leat_ops; *op; op++)
		if (!strcmp((*op)->name, name))
			return *op;
	return NULL;
}

static bool
is_u8_or_f32(const struct leat_field *field)
{
	return field->dtype == LEAT_U8 || field->dtype == LEAT_F32;
}

bool
leat_accepts_image(const struct leat_field *field, enum leat_layout layout)
{
	return is_u8_or_f32(field) && layout == LEAT_HWC && field->ndim == 3 && field->shape[2] <= LEAT_MAX_CHANNELS;
}

bool
leat_accepts_pixels(const struct leat_field *field, enum leat_layout layout)
{
	struct leat_field narrow = *field;

	if (narrow.dtype == LEAT_U16)
		narrow.dtype = LEAT_U8;
	return leat_accepts_image(&narrow, layout);
}

bool
leat_accepts_color(const struct leat_field *field, enum leat_layout layout)
{
	return leat_accepts_image(field, layout) &&
	       (field->shape[2] == 1 || field->shape[2] == 3 || field->shape[2] < 0);
}

bool
leat_accepts_bytes(const struct leat_field *field, enum leat_layout layout)
{
	(void)layout;
	return field->dtype == LEAT_U8 && field->ndim == 1;
}

bool
leat_accepts_numbers(const struct leat_field *field, enum leat_layout layout)
{
	bool is_blob = field->dtype == LEAT_U8 && field->ndim == 1 && field->shape[0] < 0;

	return is_u8_or_f32(field) && !is_blob && leat_field_channels(field, layout) <= LEAT_MAX_CHANNELS;
}

enum leat_status
leat_check_range(const struct leat_floats *range, const char *name, struct leat_err *err)
{
	if (range->count != 2)
		return leat_fail(err, LEAT_SPEC, "%s takes two numbers, [min, max], not %d", name, range->count);
	if (range->value[0] > range->value[1])
		return leat_fail(err, LEAT_SPEC, "%s=[%g, %g]: the first number is above the second", name,
		                 (double)range->value[0], (double)range->value[1]);
	return LEAT_OK;
}

int64_t
leat_field_channels(const struct leat_field *field, enum leat_layout layout)
{
	return layout == LEAT_HWC ? field->shape[2] : layout == LEAT_CHW ? field->shape[0] : 1;
}

enum leat_status
leat_infer_f32(void *params, struct leat_field *field, enum leat_layout *layout, struct leat_err *err)
{
	(void)params, (void)layout, (void)err;
	field->dtype = LEAT_F32;
	return LEAT_OK;
}

enum leat_status
leat_check_image(const struct leat_datum *image, enum leat_layout layout, struct leat_err *err)
{
	const int64_t *shape = image->shape;
	int64_t channels = layout == LEAT_CHW ? shape[0] : shape[2];

	if (shape[0] < 1 || shape[1] < 1 || shape[2] < 1 || channels > LEAT_MAX_CHANNELS)
		return leat_fail(err, LEAT_DATA,
		                 "expected a non-empty image with 1 to %d channels; this one has shape %" PRId64
		                 " x %" PRId64 " x %" PRId64,
		                 LEAT_MAX_CHANNELS, shape[0], shape[1], shape[2]);
	return LEAT_OK;
}

enum leat_status
leat_check_color(const struct leat_datum *image, struct leat_err *err)
{
	enum leat_status status = leat_check_image(image, LEAT_HWC, err);

	if (status == LEAT_OK && image->shape[2] != 1 && image->shape[2] != 3)
		return leat_fail(err, LEAT_DATA, "expected gray or RGB (1 or 3 channels); this image has %" PRId64,
		                 image->shape[2]);
	return status;
}

enum leat_status
leat_check_scale(const struct leat_datum *image, struct leat_err *err)
{
	enum { MOST = 2 };
	const float *x = image->data;
	int64_t count = image->dtype == LEAT_F32 ? leat_datum_elements(image) : 0, i = 0;
	int above = 0;

	for (int64_t k = 0; k < count; k++)
		above |= x[k] > MOST;
	if (!above)
		return LEAT_OK;
	while (!(x[i] > MOST))
		i++;
	return leat_fail(err, LEAT_SPEC,
	                 "expected float32 pixels from 0 to 1, but this image has the value %g: put scale(1/255) "
	                 "before it, or move it before cast and resize, where pixels are uint8",
	                 (double)x[i]);
}

void
leat_work_warn(const struct leat_work *work, enum leat_warning kind, const char *text)
{
	struct leat_warnings *warnings = work->warnings;

	/* Reading first: most samples of such a feed warn, and a write would move the cache line between CPUs. */
	if (!warnings || (atomic_load_explicit(&warnings->given, memory_order_relaxed) & (unsigned)kind) ||
	    (atomic_fetch_or(&warnings->given, (unsigned)kind) & (unsigned)kind))
		return;
	leat_log(warnings->log, LEAT_LOG_WARN, "%s", text);
}

enum leat_status
leat_work_out(struct leat_work *work, int field, enum leat_dtype dtype, int ndim, const int64_t *shape,
              struct leat_err *err)
{
	struct leat_datum out = {.dtype = dtype, .ndim = ndim};
	int64_t elements;
	size_t bytes;

	memcpy(out.shape, shape, (size_t)ndim * sizeof(*shape));
	elements = leat_datum_elements(&out);
	if (elements < 0 || __builtin_mul_overflow((size_t)elements, leat_dtype_size(dtype), &bytes))
		return leat_fail(err, LEAT_LIMIT, "the result is too large: its size overflows");
	if (work->output_slot)
		out.data = work->output_slot(work, field, bytes);
	if (!out.data)
		out.data = leat_scratch_alloc(work->scratch, bytes);
	if (!out.data)
		return leat_fail_scratch(err, work->scratch, bytes);
	work->sample->field[field] = out;
	return LEAT_OK;
}

void *
leat_work_scratch(struct leat_work *work, size_t bytes, struct leat_err *err)
{
	void *block = leat_scratch_alloc(work->scratch, bytes);

	if (!block)
		leat_fail_scratch(err, work->scratch, bytes);
	return block;
}
