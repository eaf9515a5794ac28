/* pass.c - see pass.h */
#include "image/pass.h"

#include <string.h>

static void
start_rows(struct leat_pass *pass, enum leat_dtype row_dtype, int64_t height, int64_t width)
{
	pass->sink = (struct leat_sink){
		.part = {0, 0, height, width},
		.channels = pass->in.channels,
		.row_dtype = row_dtype,
		.dtype = row_dtype,
	};
}

static void
start_source(struct leat_pass *pass)
{
	pass->part = (struct leat_window){0, 0, pass->in.height, pass->in.width};
	pass->move = (struct leat_move){.kind = LEAT_MOVE_NONE};
	start_rows(pass, pass->in.dtype, pass->in.height, pass->in.width);
}

void
leat_pass_image(struct leat_pass *pass, const struct leat_datum *image, struct leat_scratch *scratch)
{
	pass->scratch = scratch;
	pass->decoding = pass->undecodable = pass->dry = false;
	pass->passes = 0;
	pass->in = leat_view_of(image, NULL);
	start_source(pass);
}

void
leat_pass_encoded(struct leat_pass *pass, struct leat_scratch *scratch)
{
	pass->scratch = scratch;
	pass->decoding = true;
	pass->undecodable = pass->dry = false;
	pass->passes = 0;
	pass->in = (struct leat_view){
		.height = pass->decode.height,
		.width = pass->decode.width,
		.channels = (size_t)pass->decode.channels,
		.dtype = pass->decode.dtype,
	};
	start_source(pass);
}

enum leat_dtype
leat_pass_dtype(const struct leat_pass *pass)
{
	return pass->sink.dtype;
}

void
leat_pass_shape(const struct leat_pass *pass, int64_t *shape)
{
	const struct leat_sink *sink = &pass->sink;
	const int64_t channels = (int64_t)sink->channels, height = sink->part.height, width = sink->part.width;

	if (sink->planar)
		memcpy(shape, (const int64_t[]){channels, height, width}, 3 * sizeof(*shape));
	else
		memcpy(shape, (const int64_t[]){height, width, channels}, 3 * sizeof(*shape));
}

/* ---- one pass ---- */

bool
leat_pass_may_reduce(const struct leat_pass *pass)
{
	return pass->decoding && pass->decode.reducible && pass->move.kind == LEAT_MOVE_RESIZE &&
	       pass->move.how.method != LEAT_RESIZE_NEAREST;
}

/* How often the source can be halved with its region still at least as large as the result of the resize. */
static int
count_halvings(const struct leat_pass *pass)
{
	const struct leat_window *part = &pass->part;
	int count = 0;

	while (leat_pass_may_reduce(pass) && count < LEAT_DECODE_HALVINGS &&
	       part->height >> (count + 1) >= pass->move.height && part->width >> (count + 1) >= pass->move.width)
		count++;
	return count;
}

/* Scales the region to the reduced source, rounded out to whole pixels. The exact region is kept as the box. */
static void
halve_part(struct leat_pass *pass, int count)
{
	const struct leat_window full = pass->part;
	const int64_t size = (int64_t)1 << count;
	const double scale = 1 / (double)size;
	struct leat_window *part = &pass->part;

	part->top = full.top >> count;
	part->left = full.left >> count;
	part->height = ((full.top + full.height + size - 1) >> count) - part->top;
	part->width = ((full.left + full.width + size - 1) >> count) - part->left;
	pass->in.box = (struct leat_box){
		.top = (double)full.top * scale - (double)part->top,
		.left = (double)full.left * scale - (double)part->left,
		.height = (double)full.height * scale,
		.width = (double)full.width * scale,
	};
}

/* Decodes the region to `to`, which then is the source. */
static enum leat_status
decode_part(struct leat_pass *pass, int halvings, unsigned char *to, struct leat_err *err)
{
	const size_t stride = (size_t)pass->part.width * pass->in.channels * leat_dtype_size(pass->in.dtype);
	enum leat_status status = halvings ? leat_decode_reduced(&pass->decode, halvings, &pass->part, to, stride, err)
	                                   : leat_decode_region(&pass->decode, &pass->part, to, stride, err);

	leat_decode_end(&pass->decode);
	pass->decoding = false;
	pass->undecodable = status != LEAT_OK;
	pass->in.data = to;
	pass->in.height = pass->part.height;
	pass->in.width = pass->part.width;
	pass->in.stride = stride;
	pass->part.top = pass->part.left = 0;
	return status;
}

static enum leat_status
decode_to_scratch(struct leat_pass *pass, int halvings, struct leat_err *err)
{
	const size_t bytes = (size_t)pass->part.height * (size_t)pass->part.width * pass->in.channels *
	                     leat_dtype_size(pass->in.dtype);
	unsigned char *to = leat_scratch_alloc(pass->scratch, bytes);

	return to ? decode_part(pass, halvings, to, err) : leat_fail_scratch(err, pass->scratch, bytes);
}

static struct leat_view
source_part(const struct leat_pass *pass)
{
	struct leat_view view = pass->in;
	size_t pixel = view.channels * leat_dtype_size(view.dtype);

	if (view.data)
		view.data += (size_t)pass->part.top * view.stride + (size_t)pass->part.left * pixel;
	view.height = pass->part.height;
	view.width = pass->part.width;
	return view;
}

static void
copy_rows(const struct leat_view *view, const struct leat_sink *sink)
{
	if (!view->rows) {
		leat_sink_write_all(sink, view->data, view->stride);
		return;
	}
	for (int64_t y = 0; y < view->height; y++)
		leat_sink_write(sink, y, leat_view_row(view, (size_t)y));
}

static enum leat_status
make_rows(struct leat_pass *pass, const struct leat_view *view, struct leat_err *err)
{
	const struct leat_sink *sink = &pass->sink;
	const struct leat_move *move = &pass->move;

	switch (move->kind) {
	case LEAT_MOVE_RESIZE:
		return leat_resize_to(view, move->height, move->width, &move->how, sink, pass->scratch, err);
	case LEAT_MOVE_ROTATE:
		leat_rotate_to(view, move->radians, move->fill, sink, pass->scratch);
		return LEAT_OK;
	case LEAT_MOVE_CROP:
		leat_crop_to(view, move->part.top + sink->part.top, move->part.left + sink->part.left, move->border,
		             move->fill, sink);
		return LEAT_OK;
	default:
		copy_rows(view, sink);
		return LEAT_OK;
	}
}

/* Decodes rows on demand. False: this did not work; whatever was written to the result has to be made again. */
static bool
make_rows_on_demand(struct leat_pass *pass, int halvings, enum leat_status *status, struct leat_err *err)
{
	const struct leat_move *move = &pass->move;
	const size_t mark = pass->scratch->used;
	struct leat_view view = source_part(pass);
	struct leat_row_needs needs = {1, 0};
	struct leat_scan rows;
	bool good = false;

	if (move->kind == LEAT_MOVE_RESIZE)
		needs = leat_resize_needs(&view, move->height, move->width, &move->how, pass->sink.row_dtype);
	else if (move->kind != LEAT_MOVE_NONE)
		return false;
	if (leat_decode_scan(&pass->decode, halvings, &pass->part, needs.keep, needs.padding, &rows)) {
		view.rows = &rows;
		*status = make_rows(pass, &view, err);
		good = *status != LEAT_OK || leat_scan_end(&rows);
	}
	pass->scratch->used = mark;
	return good;
}

static enum leat_status
run_decoding(struct leat_pass *pass, struct leat_err *err)
{
	const int halvings = count_halvings(pass);
	enum leat_status status;
	struct leat_view view;

	if (halvings)
		halve_part(pass, halvings);
	if (make_rows_on_demand(pass, halvings, &status, err))
		return status;
	status = decode_to_scratch(pass, halvings, err);
	view = source_part(pass);
	return status == LEAT_OK ? make_rows(pass, &view, err) : status;
}

static enum leat_status
run_pass(struct leat_pass *pass, struct leat_err *err)
{
	struct leat_sink *sink = &pass->sink;
	enum leat_status status = leat_sink_open(sink, pass->scratch, err);
	struct leat_view view;

	pass->passes++;
	if (status != LEAT_OK)
		return status;
	if (pass->decoding && pass->move.kind == LEAT_MOVE_NONE && sink->direct && !sink->upside_down)
		return decode_part(pass, 0, sink->out, err);
	if (pass->decoding)
		return run_decoding(pass, err);
	view = source_part(pass);
	return make_rows(pass, &view, err);
}

enum leat_status
leat_pass_end(struct leat_pass *pass, void *out, struct leat_err *err)
{
	const size_t mark = pass->scratch->used;
	enum leat_status status;

	pass->sink.out = out;
	status = run_pass(pass, err);
	leat_pass_drop(pass);
	pass->scratch->used = mark;
	return status;
}

void
leat_pass_drop(struct leat_pass *pass)
{
	if (pass->decoding)
		leat_decode_end(&pass->decode);
	pass->decoding = false;
}

/* Runs the pass into a new image in scratch. */
static enum leat_status
make_image(struct leat_pass *pass, struct leat_datum *image, struct leat_err *err)
{
	*image = (struct leat_datum){.data = pass, .dtype = leat_pass_dtype(pass), .ndim = 3};
	leat_pass_shape(pass, image->shape);
	if (pass->dry)
		return LEAT_OK;
	image->data = leat_scratch_alloc(pass->scratch, leat_datum_bytes(image));
	if (!image->data)
		return leat_fail_scratch(err, pass->scratch, leat_datum_bytes(image));
	return leat_pass_end(pass, image->data, err);
}

/* Runs the pass, and makes its result, interleaved, the source of another one. */
static enum leat_status
materialize(struct leat_pass *pass, struct leat_datum *image, struct leat_err *err)
{
	const bool planar = pass->sink.planar, dry = pass->dry;
	const unsigned passes = pass->passes;
	enum leat_status status;

	pass->sink.planar = false;
	status = make_image(pass, image, err);
	if (status != LEAT_OK)
		return status;
	leat_pass_image(pass, image, pass->scratch);
	pass->sink.planar = planar;
	pass->dry = dry;
	pass->passes = passes + 1;
	return LEAT_OK;
}

/* ---- adding ops ---- */

/* Has nothing been added but crops? */
static bool
is_untouched(const struct leat_pass *pass)
{
	const struct leat_sink *sink = &pass->sink;

	return pass->move.kind == LEAT_MOVE_NONE && !sink->mirror && !sink->upside_down && !sink->floats &&
	       sink->steps == 0 && sink->dtype == sink->row_dtype && !sink->planar;
}

static bool
is_inside(const struct leat_window *part, const struct leat_window *whole)
{
	return part->top >= 0 && part->left >= 0 && part->height <= whole->height - part->top &&
	       part->width <= whole->width - part->left;
}

/* Crops the result so far, which may be flipped. */
static void
crop(struct leat_pass *pass, const struct leat_window *part)
{
	struct leat_window *result = &pass->sink.part;
	int64_t top = pass->sink.upside_down ? result->height - part->top - part->height : part->top;
	int64_t left = pass->sink.mirror ? result->width - part->left - part->width : part->left;

	result->height = part->height;
	result->width = part->width;
	if (pass->move.kind == LEAT_MOVE_NONE) {
		pass->part =
			(struct leat_window){pass->part.top + top, pass->part.left + left, part->height, part->width};
	} else {
		result->top += top;
		result->left += left;
	}
}

/* Starts with a source that is_untouched. */
static void
start_move(struct leat_pass *pass, const struct leat_move *move)
{
	if (move->kind == LEAT_MOVE_RESIZE) {
		crop(pass, &move->part);
		start_rows(pass, leat_resize_dtype(&move->how, pass->in.dtype), move->height, move->width);
	} else if (move->kind == LEAT_MOVE_CROP) {
		start_rows(pass, pass->in.dtype, move->part.height, move->part.width);
	}
	pass->move = *move;
}

/* Can the pending steps on floats run after a rotation instead of before? Pixels of the image are the same either way,
 * but the fill value must not be changed by the steps. */
static bool
steps_keep_fill(const struct leat_pass *pass, float fill)
{
	const struct leat_sink *sink = &pass->sink;

	for (size_t c = 0; c < sink->channels; c++) {
		float value = fill;

		for (int s = 0; s < sink->steps; s++)
			value = sink->step[s].mul[c] * value + sink->step[s].add[c];
		if (memcmp(&value, &fill, sizeof(value)) != 0)
			return false;
	}
	return sink->steps > 0 && sink->row_dtype == LEAT_F32 && sink->dtype == LEAT_F32 && !sink->planar;
}

/* Rotates the image without its pending steps, then adds them again. */
static enum leat_status
rotate_before_steps(struct leat_pass *pass, const struct leat_move *move, struct leat_err *err)
{
	struct leat_affine step[LEAT_SINK_STEPS];
	const int steps = pass->sink.steps;
	enum leat_status status;

	memcpy(step, pass->sink.step, (size_t)steps * sizeof(*step));
	pass->sink.steps = 0;
	pass->sink.floats = false;
	status = leat_pass_move(pass, move, err);
	return status == LEAT_OK ? leat_pass_step(pass, step, steps, err) : status;
}

enum leat_status
leat_pass_move(struct leat_pass *pass, const struct leat_move *move, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	struct leat_datum image;

	if (move->kind == LEAT_MOVE_NONE)
		return LEAT_OK;
	if (move->kind == LEAT_MOVE_FLIP) {
		pass->sink.mirror ^= move->flip == LEAT_FLIP_HORIZONTAL;
		pass->sink.upside_down ^= move->flip == LEAT_FLIP_VERTICAL;
		return LEAT_OK;
	}
	if (move->kind == LEAT_MOVE_CROP && is_inside(&move->part, &pass->sink.part)) {
		crop(pass, &move->part);
		return LEAT_OK;
	}
	if (move->kind == LEAT_MOVE_ROTATE && steps_keep_fill(pass, move->fill))
		return rotate_before_steps(pass, move, err);
	if (!is_untouched(pass))
		status = materialize(pass, &image, err);
	if (status == LEAT_OK)
		start_move(pass, move);
	return status;
}

/* Is a cast pending? */
static bool
is_cast(const struct leat_sink *sink)
{
	return sink->dtype != (sink->floats ? LEAT_F32 : sink->row_dtype);
}

enum leat_status
leat_pass_step(struct leat_pass *pass, const struct leat_affine *step, int steps, struct leat_err *err)
{
	struct leat_sink *sink = &pass->sink;
	enum leat_status status = LEAT_OK;
	struct leat_datum image;

	if (is_cast(sink) || (sink->row_dtype != LEAT_U8 && sink->row_dtype != LEAT_F32) ||
	    sink->steps + steps > LEAT_SINK_STEPS)
		status = materialize(pass, &image, err);
	if (status != LEAT_OK)
		return status;
	memcpy(sink->step + sink->steps, step, (size_t)steps * sizeof(*step));
	sink->steps += steps;
	sink->floats = true;
	sink->dtype = LEAT_F32;
	return LEAT_OK;
}

enum leat_status
leat_pass_cast(struct leat_pass *pass, enum leat_dtype dtype, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	struct leat_datum image;

	if (is_cast(&pass->sink))
		status = materialize(pass, &image, err);
	if (status != LEAT_OK)
		return status;
	pass->sink.dtype = dtype;
	pass->sink.floats |= dtype == LEAT_F32;
	return LEAT_OK;
}

void
leat_pass_layout(struct leat_pass *pass, enum leat_layout layout)
{
	pass->sink.planar = layout == LEAT_CHW;
}

enum leat_status
leat_pass_means(struct leat_pass *pass, float *mean, struct leat_err *err)
{
	struct leat_datum image;
	enum leat_status status = materialize(pass, &image, err);

	memset(mean, 0, pass->sink.channels * sizeof(*mean));
	if (status == LEAT_OK && !pass->dry)
		leat_channel_means(&image, mean);
	return status;
}
