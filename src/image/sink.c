/* sink.c - see sink.h
 *
 * A row is mirrored and split into planes first, while its elements are as the kernel made them, often bytes. The steps
 * and the cast then write straight to the result. */
#include "image/sink.h"

#include <string.h>

#include "image/cpu.h"
#include "image/pixel.h"
#include "image/scratch.h"

enum { ALIGNED = 64 };

static size_t
line_bytes(int64_t width)
{
	size_t bytes = (size_t)width * LEAT_MAX_CHANNELS * sizeof(double); /* the largest type */

	return (bytes + ALIGNED - 1) & ~(size_t)(ALIGNED - 1);
}

static bool
is_direct(const struct leat_sink *sink)
{
	return !sink->mirror && sink->steps == 0 && sink->dtype == sink->row_dtype && !sink->planar;
}

enum leat_status
leat_sink_open(struct leat_sink *sink, struct leat_scratch *scratch, struct leat_err *err)
{
	size_t planes;

	sink->floats |= sink->steps > 0;
	sink->planar &= sink->channels > 1;
	sink->direct = is_direct(sink);
	if (sink->direct)
		return LEAT_OK;
	planes = sink->planar ? sink->channels : 1;
	sink->row_buffer = leat_scratch_alloc(scratch, line_bytes(sink->part.width));
	sink->spare = leat_scratch_alloc(scratch, line_bytes(sink->part.width));
	sink->spread = leat_scratch_alloc(scratch, sizeof(*sink->spread) * (size_t)sink->steps * planes);
	if (!sink->row_buffer || !sink->spare || !sink->spread)
		return leat_fail_image(err, "a row of", scratch);
	for (size_t c = 0; c < planes && !scratch->counting; c++)
		leat_affine_spread(sink->spread + c * (size_t)sink->steps, sink->step, sink->steps, c,
		                   sink->channels / planes);
	return LEAT_OK;
}

size_t
leat_sink_scratch(int64_t width)
{
	struct leat_sink sink = {
		.part = {0, 0, 1, width},
		.channels = LEAT_MAX_CHANNELS,
		.row_dtype = LEAT_F32,
		.mirror = true,
		.planar = true,
		.steps = LEAT_SINK_STEPS,
		.dtype = LEAT_F64,
	};
	struct leat_scratch count;

	leat_scratch_count(&count);
	leat_sink_open(&sink, &count, NULL);
	return count.peak;
}

void
leat_sink_rows_are_mirrored(struct leat_sink *sink)
{
	sink->mirror = false;
	sink->direct = is_direct(sink);
}

struct leat_sink
leat_sink_for(const struct leat_datum *image)
{
	return (struct leat_sink){
		.part = {0, 0, image->shape[0], image->shape[1]},
		.channels = (size_t)image->shape[2],
		.row_dtype = image->dtype,
		.dtype = image->dtype,
		.out = image->data,
		.direct = true,
	};
}

/* The offset of row y in the result, or in each plane of it, in elements. */
static size_t
row_start(const struct leat_sink *sink, int64_t y)
{
	int64_t row = sink->upside_down ? sink->part.height - 1 - y : y;

	return (size_t)(row * sink->part.width) * (sink->planar ? 1 : sink->channels);
}

static unsigned char *
row_of(const struct leat_sink *sink, int64_t y)
{
	return sink->out + row_start(sink, y) * leat_dtype_size(sink->dtype);
}

/* Runs the steps and the cast. `temp` is a buffer for floats that are cast to another type. */
static void
convert(const struct leat_sink *sink, const void *in, size_t count, const struct leat_affine_spread *spread, void *temp,
        void *out)
{
	const bool computes = sink->steps > 0 || (sink->row_dtype == LEAT_U8 && sink->dtype == LEAT_F32);
	float *floats = sink->dtype == LEAT_F32 ? out : temp;

	if (!computes) {
		leat_cast(in, sink->row_dtype, out, sink->dtype, count);
		return;
	}
	leat_affine_row(in, sink->row_dtype, floats, count, spread, sink->steps, leat_cpu_has_avx2());
	if (sink->dtype != LEAT_F32)
		leat_cast(floats, LEAT_F32, out, sink->dtype, count);
}

static void
copy_planar(const struct leat_sink *sink, int64_t y, const void *row)
{
	const size_t width = (size_t)sink->part.width, plane = (size_t)sink->part.height * width;
	const size_t size = leat_dtype_size(sink->dtype), row_size = leat_dtype_size(sink->row_dtype);

	if (sink->steps == 0 && sink->dtype == sink->row_dtype) {
		leat_split_channels(row, row_of(sink, y), plane, width, sink->channels, size, sink->mirror);
		return;
	}
	leat_split_channels(row, sink->spare, width, width, sink->channels, row_size, sink->mirror);
	for (size_t c = 0; c < sink->channels; c++)
		convert(sink, sink->spare + c * width * row_size, width, sink->spread + c * (size_t)sink->steps,
		        sink->row_buffer, row_of(sink, y) + c * plane * size);
}

void *
leat_sink_row(const struct leat_sink *sink, int64_t y)
{
	return sink->direct ? row_of(sink, y) : sink->row_buffer;
}

static void
copy_interleaved(const struct leat_sink *sink, int64_t y, const void *row)
{
	const size_t width = (size_t)sink->part.width, pixel = sink->channels * leat_dtype_size(sink->row_dtype);

	if (sink->mirror && sink->steps == 0 && sink->dtype == sink->row_dtype) {
		leat_mirror_row(row, row_of(sink, y), width, pixel);
		return;
	}
	if (sink->mirror) {
		leat_mirror_row(row, sink->row_buffer, width, pixel);
		row = sink->row_buffer;
	}
	convert(sink, row, width * sink->channels, sink->spread, sink->spare, row_of(sink, y));
}

void
leat_sink_write(const struct leat_sink *sink, int64_t y, const void *row)
{
	if (sink->planar)
		copy_planar(sink, y, row);
	else
		copy_interleaved(sink, y, row);
}

void
leat_sink_commit(const struct leat_sink *sink, int64_t y)
{
	if (!sink->direct)
		leat_sink_write(sink, y, sink->row_buffer);
}

/* Without padding between rows, in input and result, steps can treat the image as one long row. */
static bool
is_one_row(const struct leat_sink *sink, size_t stride)
{
	return sink->steps > 0 && sink->dtype == LEAT_F32 && !sink->planar && !sink->mirror && !sink->upside_down &&
	       stride == (size_t)sink->part.width * sink->channels * leat_dtype_size(sink->row_dtype);
}

void
leat_sink_write_all(const struct leat_sink *sink, const unsigned char *rows, size_t stride)
{
	const size_t height = (size_t)sink->part.height;

	if (is_one_row(sink, stride)) {
		leat_affine_row(rows, sink->row_dtype, (float *)(void *)sink->out,
		                height * (size_t)sink->part.width * sink->channels, sink->spread, sink->steps,
		                leat_cpu_has_avx2());
		return;
	}
	for (size_t y = 0; y < height; y++)
		leat_sink_write(sink, (int64_t)y, rows + y * stride);
}
