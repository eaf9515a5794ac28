/* resize.c - an image at another size: which way, and the two that need no sums
 *
 * Half-pixel centres: output place i looks at input place x = (i + 0.5) * in/out - 0.5, all in float.
 * Bilinear without antialias: between floor(x) and ceil(x), kept inside the image, first along the row, then between
 * rows, a + (b - a) * t each. A row of the input is interpolated once and kept as long as it is one of the two
 * needed; which changes nothing, as the order of the two directions is TensorFlow's. mode=torch is the same, bytes
 * rounded to bytes.
 * Nearest: place floor((i + 0.5) * in/out). mode=torch adds up steps of in/out in double, as Pillow does.
 * resample.c has the rest. */
#include "image/resample.h"

#include <math.h>
#include <string.h>

#include "image/cpu.h"
#include "image/pixel.h"
#include "image/plain.h"

struct place {
	size_t lo, hi; /* input places, times the number of elements there */
	float t;       /* between them */
};

static void
find_places(struct place *place, const struct leat_side *side, size_t stride)
{
	float scale = (float)side->in / (float)side->out;
	const int64_t in = side->in;

	for (int64_t i = 0; i < side->count; i++) {
		float x = ((float)(side->first + i) + 0.5f) * scale - 0.5f;
		float below = floorf(x);
		int64_t lo = (int64_t)below, hi = (int64_t)ceilf(x);

		place[i].lo = (size_t)(lo < 0 ? 0 : lo >= in ? in - 1 : lo) * stride;
		place[i].hi = (size_t)(hi < 0 ? 0 : hi >= in ? in - 1 : hi) * stride;
		place[i].t = x - below;
	}
}

static void
find_nearest(size_t *place, const struct leat_side *side, size_t stride)
{
	float scale = (float)side->in / (float)side->out;

	for (int64_t i = 0; i < side->count; i++) {
		int64_t at = (int64_t)floorf(((float)(side->first + i) + 0.5f) * scale);

		place[i] = (size_t)(at >= side->in ? side->in - 1 : at) * stride;
	}
}

static void
find_nearest_torch(size_t *place, const struct leat_side *side, size_t stride)
{
	double step = (double)side->in / (double)side->out, x = step / 2;

	/* From 0 on: it is the sum that counts. */
	for (int64_t i = -side->first; i < side->count; i++, x += step) {
		int64_t at = (int64_t)x;

		if (i >= 0)
			place[i] = (size_t)(at >= side->in ? side->in - 1 : at) * stride;
	}
}

/* One row of input, interpolated along itself. Instances for what the compiler should know. */
#define STRETCH(type, name)                                                                                            \
	static inline void name(const type *restrict row, float *restrict out, const struct place *restrict place,     \
	                        size_t width, size_t channels)                                                         \
	{                                                                                                              \
		for (size_t x = 0; x < width; x++) {                                                                   \
			const type *lo = row + place[x].lo, *hi = row + place[x].hi;                                   \
                                                                                                                       \
			for (size_t c = 0; c < channels; c++) {                                                        \
				float a = (float)lo[c], b = (float)hi[c];                                              \
                                                                                                                       \
				out[x * channels + c] = a + (b - a) * place[x].t;                                      \
			}                                                                                              \
		}                                                                                                      \
	}
STRETCH(uint8_t, stretch_u8)
STRETCH(float, stretch_f32)

#if LEAT_X86
/* Three channels, of which four elements are read and written: how many pixels of the result, from the first one on,
 * have one behind them to read and to be written later. */
static size_t
count_inner(const struct place *place, size_t width, int64_t in_width)
{
	size_t inner = width - 1;

	while (inner && place[inner - 1].hi >= 3 * (size_t)(in_width - 1))
		inner--;
	return inner;
}

LEAT_AVX2_INLINE __m128
load_four(const void *row, bool is_u8, size_t at)
{
	int32_t four;

	if (!is_u8)
		return _mm_loadu_ps((const float *)row + at);
	memcpy(&four, (const uint8_t *)row + at, sizeof(four));
	return _mm_cvtepi32_ps(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(four)));
}

LEAT_AVX2_INLINE void
stretch_inner(const void *row, bool is_u8, float *out, const struct place *place, size_t inner)
{
	for (size_t x = 0; x < inner; x++) {
		__m128 a = load_four(row, is_u8, place[x].lo), b = load_four(row, is_u8, place[x].hi);
		__m128 part = _mm_mul_ps(_mm_sub_ps(b, a), _mm_set1_ps(place[x].t));

		_mm_storeu_ps(out + 3 * x, _mm_add_ps(a, part));
	}
}

LEAT_AVX2 static void
stretch_avx2(const void *row, enum leat_dtype dtype, float *out, const struct place *place, size_t inner)
{
	if (dtype == LEAT_U8)
		stretch_inner(row, true, out, place, inner);
	else
		stretch_inner(row, false, out, place, inner);
}
#endif

/* How the result is made, beside what is read. */
struct target {
	const struct place *place;
	size_t width;
	size_t inner; /* pixels that stretch_avx2 may do; 0: none */
};

static void
stretch(const struct leat_view *in, size_t row, float *out, const struct target *target)
{
	const void *at = in->data + row * in->stride;
	const struct place *place = target->place + target->inner;
	size_t channels = in->channels, width = target->width - target->inner;

#if LEAT_X86
	if (target->inner)
		stretch_avx2(at, in->dtype, out, target->place, target->inner);
#endif
	out += target->inner * channels;

	if (in->dtype == LEAT_U8) {
		const uint8_t *data = at;

		if (channels == 3)
			stretch_u8(data, out, place, width, 3);
		else
			stretch_u8(data, out, place, width, channels);
	} else {
		const float *data = at;

		if (channels == 3)
			stretch_f32(data, out, place, width, 3);
		else
			stretch_f32(data, out, place, width, channels);
	}
}

/* Two stretched rows of the input, and which rows they are. */
struct rows {
	float *line[2];
	size_t row[2];
};

static const float *
stretched(struct rows *rows, size_t row, size_t keep, const struct leat_view *in, const struct target *target)
{
	int victim = rows->row[0] == keep ? 1 : 0;

	for (int i = 0; i < 2; i++)
		if (rows->row[i] == row)
			return rows->line[i];
	stretch(in, row, rows->line[victim], target);
	rows->row[victim] = row;
	return rows->line[victim];
}

enum leat_status
leat_resize_full(const struct leat_scratch *scratch, struct leat_err *err)
{
	return leat_fail(err, LEAT_LIMIT,
	                 "resizing the image needs more memory than the %zu bytes there are for a sample; raise memory",
	                 scratch->size);
}

static void
mix_u8(const float *restrict top, const float *restrict bottom, float t, uint8_t *restrict out, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out[i] = leat_round_byte(top[i] + (bottom[i] - top[i]) * t);
}

static void
mix_f32(const float *restrict top, const float *restrict bottom, float t, float *restrict out, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out[i] = top[i] + (bottom[i] - top[i]) * t;
}

#if LEAT_X86
/* Returns how many elements it has done. */
LEAT_AVX2 static size_t
mix_f32_avx2(const float *top, const float *bottom, float t, float *out, size_t count)
{
	size_t i = 0;

	for (; i + 8 <= count; i += 8) {
		__m256 a = _mm256_loadu_ps(top + i), b = _mm256_loadu_ps(bottom + i);

		_mm256_storeu_ps(out + i, _mm256_add_ps(a, _mm256_mul_ps(_mm256_sub_ps(b, a), _mm256_set1_ps(t))));
	}
	return i;
}
#endif

static void
mix(const float *top, const float *bottom, float t, enum leat_dtype dtype, void *out, size_t count, bool avx2)
{
	float *floats = out;
	size_t done = 0;

	if (dtype == LEAT_U8) {
		mix_u8(top, bottom, t, out, count);
		return;
	}
#if LEAT_X86
	if (avx2)
		done = mix_f32_avx2(top, bottom, t, floats, count);
#endif
	(void)avx2; /* elsewhere than on x86 */
	mix_f32(top + done, bottom + done, t, floats + done, count - done);
}

static struct leat_side
rows_of(const struct leat_view *in, int64_t height, const struct leat_sink *sink)
{
	return (struct leat_side){in->height, height, sink->part.top, sink->part.height};
}

static struct leat_side
columns_of(const struct leat_view *in, int64_t width, const struct leat_sink *sink)
{
	return (struct leat_side){in->width, width, sink->part.left, sink->part.width};
}

static enum leat_status
bilinear(const struct leat_view *in, int64_t height, int64_t width, bool avx2, const struct leat_sink *sink,
         struct leat_scratch *scratch, struct leat_err *err)
{
	const struct leat_side down = rows_of(in, height, sink), along = columns_of(in, width, sink);
	const size_t line = (size_t)along.count * in->channels;
	struct place *xs = leat_scratch_alloc(scratch, (size_t)along.count * sizeof(*xs));
	struct place *ys = leat_scratch_alloc(scratch, (size_t)down.count * sizeof(*ys));
	float *lines = leat_scratch_alloc(scratch, 2 * line * sizeof(*lines));
	struct rows rows = {.row = {SIZE_MAX, SIZE_MAX}};
	struct target target = {.place = xs, .width = (size_t)along.count};

	if (!xs || !ys || !lines)
		return leat_resize_full(scratch, err);
	find_places(xs, &along, in->channels);
	find_places(ys, &down, 1);
#if LEAT_X86
	if (avx2 && in->channels == 3)
		target.inner = count_inner(xs, target.width, in->width);
#endif
	rows.line[0] = lines;
	rows.line[1] = lines + line;
	for (int64_t y = 0; y < down.count; y++) {
		const float *top = stretched(&rows, ys[y].lo, ys[y].hi, in, &target);
		const float *bottom = stretched(&rows, ys[y].hi, ys[y].lo, in, &target);

		mix(top, bottom, ys[y].t, sink->made, leat_sink_line(sink, y), line, avx2);
		leat_sink_take(sink, y);
	}
	return LEAT_OK;
}

static inline void
pick(const unsigned char *restrict row, unsigned char *restrict out, const size_t *restrict place, size_t width,
     size_t pixel)
{
	for (size_t x = 0; x < width; x++)
		memcpy(out + x * pixel, row + place[x], pixel);
}

static enum leat_status
nearest(const struct leat_view *in, int64_t height, int64_t width, enum leat_resize_mode mode,
        const struct leat_sink *sink, struct leat_scratch *scratch, struct leat_err *err)
{
	void (*find)(size_t *, const struct leat_side *, size_t) =
		mode == LEAT_RESIZE_TF ? find_nearest : find_nearest_torch;
	const size_t pixel = in->channels * leat_dtype_size(in->dtype);
	const struct leat_side down = rows_of(in, height, sink), along = columns_of(in, width, sink);
	const size_t count = (size_t)along.count;
	size_t *xs = leat_scratch_alloc(scratch, count * sizeof(*xs));
	size_t *ys = leat_scratch_alloc(scratch, (size_t)down.count * sizeof(*ys));

	if (!xs || !ys)
		return leat_resize_full(scratch, err);
	find(xs, &along, pixel);
	find(ys, &down, in->stride);
	for (int64_t y = 0; y < down.count; y++) {
		const unsigned char *row = in->data + ys[y];
		unsigned char *to = leat_sink_line(sink, y);

		if (pixel == 3)
			pick(row, to, xs, count, 3);
		else if (pixel == 12)
			pick(row, to, xs, count, 12);
		else
			pick(row, to, xs, count, pixel);
		leat_sink_take(sink, y);
	}
	return LEAT_OK;
}

/* ---- which way ---- */

static bool
is_plain_bilinear(const struct leat_resampling *how)
{
	return how->method == LEAT_RESIZE_BILINEAR && !how->antialias;
}

enum leat_status
leat_resampling_check(const struct leat_resampling *how, struct leat_err *err)
{
	if (how->mode == LEAT_RESIZE_TF)
		return LEAT_OK;
	if (how->method == LEAT_RESIZE_AREA)
		return leat_fail(err, LEAT_SPEC, "mode=torch has no method=area; write mode=tf");
	if ((how->method == LEAT_RESIZE_BICUBIC || how->method == LEAT_RESIZE_LANCZOS) && !how->antialias)
		return leat_fail(err, LEAT_SPEC, "mode=torch has bicubic and lanczos with antialias=true only");
	return LEAT_OK;
}

enum leat_dtype
leat_resize_dtype(const struct leat_resampling *how, enum leat_dtype in)
{
	return how->mode == LEAT_RESIZE_TF && how->method != LEAT_RESIZE_NEAREST ? LEAT_F32 : in;
}

struct leat_view
leat_view_of(const struct leat_datum *image, const struct leat_window *part)
{
	const struct leat_window all = {0, 0, image->shape[0], image->shape[1]};
	size_t channels = (size_t)image->shape[2], pixel = channels * leat_dtype_size(image->dtype);
	size_t stride = (size_t)image->shape[1] * pixel;

	part = part ? part : &all;
	return (struct leat_view){
		.data = (const unsigned char *)image->data + (size_t)part->top * stride + (size_t)part->left * pixel,
		.stride = stride,
		.height = part->height,
		.width = part->width,
		.channels = channels,
		.dtype = image->dtype,
	};
}

static enum leat_status
resize(const struct leat_view *in, int64_t height, int64_t width, const struct leat_resampling *how, bool avx2,
       const struct leat_sink *sink, struct leat_scratch *scratch, struct leat_err *err)
{
	const size_t mark = scratch->used;
	enum leat_status status;

	if (how->method == LEAT_RESIZE_NEAREST)
		status = nearest(in, height, width, (enum leat_resize_mode)how->mode, sink, scratch, err);
	else if (is_plain_bilinear(how))
		status = bilinear(in, height, width, avx2, sink, scratch, err);
	else
		status = leat_resample(in, height, width, how, avx2, sink, scratch, err);
	scratch->used = mark;
	return status;
}

enum leat_status
leat_resize_to(const struct leat_view *in, int64_t height, int64_t width, const struct leat_resampling *how,
               const struct leat_sink *sink, struct leat_scratch *scratch, struct leat_err *err)
{
	return resize(in, height, width, how, leat_cpu_has_avx2(), sink, scratch, err);
}

enum leat_status
leat_resize(const struct leat_datum *in, const struct leat_window *part, const struct leat_datum *out,
            const struct leat_resampling *how, struct leat_scratch *scratch, struct leat_err *err)
{
	const struct leat_view view = leat_view_of(in, part);
	const struct leat_sink sink = leat_sink_for(out);

	return leat_resize_to(&view, out->shape[0], out->shape[1], how, &sink, scratch, err);
}

enum leat_status
leat_resize_plain(const struct leat_datum *in, const struct leat_window *part, const struct leat_datum *out,
                  const struct leat_resampling *how, struct leat_scratch *scratch, struct leat_err *err)
{
	const struct leat_view view = leat_view_of(in, part);
	const struct leat_sink sink = leat_sink_for(out);

	return resize(&view, out->shape[0], out->shape[1], how, false, &sink, scratch, err);
}

size_t
leat_resize_scratch(const struct leat_resampling *how, const int64_t *in, const int64_t *out)
{
	enum { BLOCKS = 8, BLOCK_EXTRA = 64 }; /* each block begins at a multiple of 64 */
	size_t sides = (size_t)(out[0] + out[1]), bytes;

	if (how->method == LEAT_RESIZE_NEAREST)
		bytes = sides * sizeof(size_t);
	else if (is_plain_bilinear(how))
		bytes = sides * sizeof(struct place) + 2 * (size_t)out[1] * LEAT_MAX_CHANNELS * sizeof(float);
	else
		bytes = leat_resample_scratch(how, in, out);
	return bytes + BLOCKS * BLOCK_EXTRA;
}
