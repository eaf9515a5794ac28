/* sink.c - see sink.h
 *
 * The ways that training takes all the time, three channels of floats, planar or interleaved, are one pass over a row;
 * others are put together from simple ones. Steps are not fused: a sum is rounded after its product was. */
#include "image/sink.h"

#include <string.h>

#include "image/cpu.h"
#include "image/pixel.h"

enum { ALIGNED = 64 };

static size_t
line_bytes(int64_t width)
{
	size_t bytes = (size_t)width * LEAT_MAX_CHANNELS * sizeof(double); /* of the largest type */

	return (bytes + ALIGNED - 1) & ~(size_t)(ALIGNED - 1);
}

static bool
is_straight(const struct leat_sink *sink)
{
	return !sink->mirror && sink->steps == 0 && sink->dtype == sink->made && !sink->planar;
}

enum leat_status
leat_sink_open(struct leat_sink *sink, struct leat_scratch *scratch, struct leat_err *err)
{
	sink->floats |= sink->steps > 0;
	sink->planar &= sink->channels > 1;
	sink->straight = is_straight(sink);
	if (sink->straight)
		return LEAT_OK;
	sink->line = leat_scratch_alloc(scratch, line_bytes(sink->part.width));
	sink->other = leat_scratch_alloc(scratch, line_bytes(sink->part.width));
	sink->spread = leat_scratch_alloc(scratch, sizeof(*sink->spread) * LEAT_SINK_STEPS);
	if (!sink->line || !sink->other || !sink->spread)
		return leat_fail(
			err, LEAT_LIMIT,
			"a row of the image needs more than the %zu bytes there are for a sample; raise memory",
			scratch->size);
	if (!scratch->counting)
		leat_affine_spread(sink->spread, sink->step, sink->steps, 0, sink->channels);
	return LEAT_OK;
}

size_t
leat_sink_scratch(int64_t width)
{
	struct leat_sink sink = {
		.part = {0, 0, 1, width},
		.channels = LEAT_MAX_CHANNELS,
		.made = LEAT_F32,
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
leat_sink_gets_mirrored(struct leat_sink *sink)
{
	sink->mirror = false;
	sink->straight = is_straight(sink);
}

struct leat_sink
leat_sink_for(const struct leat_datum *image)
{
	return (struct leat_sink){
		.part = {0, 0, image->shape[0], image->shape[1]},
		.channels = (size_t)image->shape[2],
		.made = image->dtype,
		.dtype = image->dtype,
		.out = image->data,
		.straight = true,
	};
}

/* ---- three channels to three planes of floats ---- */

#if LEAT_X86
/* Eight pixels of 3 bytes, of which 24 may be read, as floats by channel. */
LEAT_AVX2_INLINE void
split_bytes(const uint8_t *from, __m256 *plane)
{
	const __m128i low = _mm_loadu_si128((const void *)from), high = _mm_loadl_epi64((const void *)(from + 16));
	static const int8_t at[3][2][16] = {
		{{0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
	         {-1, -1, -1, -1, -1, -1, 2, 5, -1, -1, -1, -1, -1, -1, -1, -1}},
		{{1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
	         {-1, -1, -1, -1, -1, 0, 3, 6, -1, -1, -1, -1, -1, -1, -1, -1}},
		{{2, 5, 8, 11, 14, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
	         {-1, -1, -1, -1, -1, 1, 4, 7, -1, -1, -1, -1, -1, -1, -1, -1}},
	};

	for (int c = 0; c < 3; c++) {
		__m128i bytes = _mm_or_si128(_mm_shuffle_epi8(low, _mm_loadu_si128((const void *)at[c][0])),
		                             _mm_shuffle_epi8(high, _mm_loadu_si128((const void *)at[c][1])));

		plane[c] = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
	}
}

LEAT_AVX2_INLINE void
split_floats(const float *from, __m256 *plane)
{
	const __m256i at = _mm256_setr_epi32(0, 3, 6, 9, 12, 15, 18, 21);

	for (int c = 0; c < 3; c++)
		plane[c] = _mm256_i32gather_ps(from + c, at, 4);
}

/* Each step's numbers as vectors: stores to floats might change those of the sink, for all the compiler knows. */
struct plane_steps {
	__m256 mul[LEAT_SINK_STEPS][3], add[LEAT_SINK_STEPS][3];
};

LEAT_AVX2_INLINE void
spread_planes(struct plane_steps *steps, const struct leat_sink *sink)
{
	for (int s = 0; s < sink->steps; s++) {
		for (int c = 0; c < 3; c++) {
			steps->mul[s][c] = _mm256_set1_ps(sink->step[s].mul[c]);
			steps->add[s][c] = _mm256_set1_ps(sink->step[s].add[c]);
		}
	}
}

/* How many pixels were done, from the left; the caller does the rest. */
LEAT_AVX2_INLINE size_t
take_eights(const void *row, bool is_u8, bool mirror, const struct plane_steps *steps, int count, size_t width,
            float *const *to)
{
	const __m256i backwards = _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0);
	float *const out[3] = {to[0], to[1], to[2]};
	__m256 plane[3];
	size_t x = 0;

	for (; x + 8 <= width; x += 8) {
		if (is_u8)
			split_bytes((const uint8_t *)row + 3 * x, plane);
		else
			split_floats((const float *)row + 3 * x, plane);
		for (int s = 0; s < count; s++)
			for (int c = 0; c < 3; c++)
				plane[c] = _mm256_add_ps(_mm256_mul_ps(steps->mul[s][c], plane[c]), steps->add[s][c]);
		for (int c = 0; c < 3; c++) {
			if (mirror)
				_mm256_storeu_ps(out[c] + width - 8 - x, _mm256_permutevar8x32_ps(plane[c], backwards));
			else
				_mm256_storeu_ps(out[c] + x, plane[c]);
		}
	}
	return x;
}

LEAT_AVX2 static size_t
take_planes_avx2(const struct leat_sink *sink, const void *row, float *const *to)
{
	const size_t width = (size_t)sink->part.width;
	struct plane_steps steps;

	spread_planes(&steps, sink);
	if (sink->made != LEAT_U8)
		return take_eights(row, false, sink->mirror, &steps, sink->steps, width, to);
	if (sink->mirror)
		return take_eights(row, true, true, &steps, sink->steps, width, to);
	return take_eights(row, true, false, &steps, sink->steps, width, to);
}
#endif

static void
take_planes(const struct leat_sink *sink, const void *row, float *const *to)
{
	const size_t width = (size_t)sink->part.width;
	size_t x = 0;

#if LEAT_X86
	if (leat_cpu_has_avx2())
		x = take_planes_avx2(sink, row, to);
#endif
	for (; x < width; x++) {
		for (size_t c = 0; c < 3; c++) {
			float value = sink->made == LEAT_U8 ? ((const uint8_t *)row)[3 * x + c]
			                                    : ((const float *)row)[3 * x + c];

			for (int s = 0; s < sink->steps; s++)
				value = sink->step[s].mul[c] * value + sink->step[s].add[c];
			to[c][sink->mirror ? width - 1 - x : x] = value;
		}
	}
}

/* ---- any other way ---- */

static inline void
copy_mirrored(const unsigned char *restrict from, unsigned char *restrict to, size_t width, size_t pixel)
{
	from += width * pixel;
	for (size_t x = 0; x < width; x++, to += pixel)
		memcpy(to, from -= pixel, pixel);
}

/* Pixels of 12 bytes are copied as 16: what is too much is written over by the next one, or lies before the row's
 * end. */
static void
copy_mirrored_twelve(const unsigned char *restrict from, unsigned char *restrict to, size_t width)
{
	const size_t ends = width < 2 ? width : 1;

	copy_mirrored(from + (width - ends) * 12, to, ends, 12);
	for (size_t x = 1; x + 1 < width; x++)
		memcpy(to + x * 12, from + (width - 1 - x) * 12, 16);
	if (width > 1)
		memcpy(to + (width - 1) * 12, from, 12);
}

static void
put_interleaved(const struct leat_sink *sink, const unsigned char *row, unsigned char *to)
{
	const size_t width = (size_t)sink->part.width, pixel = sink->channels * leat_dtype_size(sink->dtype);

	if (!sink->mirror)
		memcpy(to, row, width * pixel);
	else if (pixel == 3)
		copy_mirrored(row, to, width, 3);
	else if (pixel == 12)
		copy_mirrored_twelve(row, to, width);
	else
		copy_mirrored(row, to, width, pixel);
}

static void
put_planes(const struct leat_sink *sink, const unsigned char *row, size_t y)
{
	const size_t width = (size_t)sink->part.width, size = leat_dtype_size(sink->dtype);
	const size_t plane = (size_t)sink->part.height * width * size;

	for (size_t c = 0; c < sink->channels; c++) {
		unsigned char *to = sink->out + c * plane + y * width * size;

		for (size_t x = 0; x < width; x++) {
			size_t from = sink->mirror ? width - 1 - x : x;

			memcpy(to + x * size, row + (from * sink->channels + c) * size, size);
		}
	}
}

static size_t
place_of(const struct leat_sink *sink, int64_t y)
{
	return (size_t)(sink->upside_down ? sink->part.height - 1 - y : y);
}

static unsigned char *
row_of(const struct leat_sink *sink, int64_t y)
{
	return sink->out + place_of(sink, y) * (size_t)sink->part.width * sink->channels * leat_dtype_size(sink->dtype);
}

/* Converts a row, to the result's memory if that is all that is left to do, and gives where it then lies. */
static const unsigned char *
convert(const struct leat_sink *sink, int64_t y, const void *row)
{
	const size_t count = (size_t)sink->part.width * sink->channels;
	const bool last = !sink->planar && !sink->mirror;
	enum leat_dtype dtype = sink->made;
	unsigned char *to;

	if (sink->steps > 0 || (sink->dtype == LEAT_F32 && dtype == LEAT_U8)) {
		to = last && sink->dtype == LEAT_F32 ? row_of(sink, y) : sink->other;
		leat_affine_row(row, dtype, (float *)(void *)to, count, sink->spread, sink->steps, leat_cpu_has_avx2());
		row = to;
		dtype = LEAT_F32;
	}
	if (dtype != sink->dtype) {
		to = last ? row_of(sink, y) : row == sink->other ? sink->line : sink->other;
		leat_cast(row, dtype, to, sink->dtype, count);
		row = to;
	}
	return row;
}

void *
leat_sink_line(const struct leat_sink *sink, int64_t y)
{
	return sink->straight ? row_of(sink, y) : sink->line;
}

void
leat_sink_copy(const struct leat_sink *sink, int64_t y, const void *row)
{
	const unsigned char *converted;

	if (sink->planar && sink->channels == 3 && sink->dtype == LEAT_F32 &&
	    (sink->made == LEAT_U8 || sink->made == LEAT_F32)) {
		float *plane = (float *)(void *)sink->out + place_of(sink, y) * (size_t)sink->part.width;
		const size_t size = (size_t)(sink->part.height * sink->part.width);

		take_planes(sink, row, (float *const[]){plane, plane + size, plane + 2 * size});
		return;
	}
	converted = convert(sink, y, row);
	if (sink->planar)
		put_planes(sink, converted, place_of(sink, y));
	else if (converted != row_of(sink, y))
		put_interleaved(sink, converted, row_of(sink, y));
}

void
leat_sink_take(const struct leat_sink *sink, int64_t y)
{
	if (!sink->straight)
		leat_sink_copy(sink, y, sink->line);
}

/* Rows of floats that lie one behind the other, here and there, are one long row to pointwise steps. */
static bool
is_one_row(const struct leat_sink *sink, size_t stride)
{
	return sink->steps > 0 && sink->dtype == LEAT_F32 && !sink->planar && !sink->mirror && !sink->upside_down &&
	       stride == (size_t)sink->part.width * sink->channels * leat_dtype_size(sink->made);
}

void
leat_sink_copy_all(const struct leat_sink *sink, const unsigned char *rows, size_t stride)
{
	const size_t height = (size_t)sink->part.height;

	if (is_one_row(sink, stride)) {
		leat_affine_row(rows, sink->made, (float *)(void *)sink->out,
		                height * (size_t)sink->part.width * sink->channels, sink->spread, sink->steps,
		                leat_cpu_has_avx2());
		return;
	}
	for (size_t y = 0; y < height; y++)
		leat_sink_copy(sink, (int64_t)y, rows + y * stride);
}
