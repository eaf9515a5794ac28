/* bilinear.c - bilinear resizing without antialias
 *
 * Interpolates between floor(x) and ceil(x), clamped to the image, first along the row, then between rows, each as
 * a + (b - a) * t: the order of TensorFlow. An input row is interpolated once and kept while it is one of the two
 * needed. mode=torch is the same, with u8 results rounded to bytes.
 *
 * With AVX2, eight elements of a row of bytes are interpolated at a time if their inputs lie within 32 bytes, where two
 * shuffles collect them. That is the case unless the width shrinks to less than about a third. The shuffles are
 * computed once for all rows, so mirroring a row is free. */
#include "image/resample.h"

#include <math.h>
#include <string.h>

#include "image/cpu.h"
#include "image/pixel.h"
#include "image/scratch.h"

struct lerp {
	size_t lo, hi; /* offsets of the two input pixels */
	float t;       /* position between them */
};

static void
find_lerps(struct lerp *lerp, const struct leat_axis *axis, size_t stride)
{
	const float scale = (float)axis->length / (float)axis->out, from = (float)axis->from;
	const int64_t in = axis->in;

	for (int64_t i = 0; i < axis->count; i++) {
		float x = ((float)(axis->first + i) + 0.5f) * scale + from - 0.5f;
		float below = floorf(x);
		int64_t lo = (int64_t)below, hi = (int64_t)ceilf(x);

		lerp[i].lo = (size_t)(lo < 0 ? 0 : lo >= in ? in - 1 : lo) * stride;
		lerp[i].hi = (size_t)(hi < 0 ? 0 : hi >= in ? in - 1 : hi) * stride;
		lerp[i].t = x - below;
	}
}

/* Interpolates along a row of input. Instances, so that the compiler knows type and channels. */
#define INTERPOLATE(type, name)                                                                                        \
	static inline void name(const type *restrict row, float *restrict out, const struct lerp *restrict lerp,       \
	                        size_t width, size_t channels)                                                         \
	{                                                                                                              \
		for (size_t x = 0; x < width; x++) {                                                                   \
			const type *lo = row + lerp[x].lo, *hi = row + lerp[x].hi;                                     \
                                                                                                                       \
			for (size_t c = 0; c < channels; c++) {                                                        \
				float a = (float)lo[c], b = (float)hi[c];                                              \
                                                                                                                       \
				out[x * channels + c] = a + (b - a) * lerp[x].t;                                       \
			}                                                                                              \
		}                                                                                                      \
	}
INTERPOLATE(uint8_t, interpolate_u8)
INTERPOLATE(float, interpolate_f32)

#if LEAT_X86
/* For three channels of floats, read and written as vectors of four: the number of output pixels, from the first, that
 * are followed by another one, in the input as well as in the output. */
static size_t
count_inner(const struct lerp *lerp, size_t width, int64_t in_width)
{
	size_t inner = width - 1;

	while (inner && lerp[inner - 1].hi >= 3 * (size_t)(in_width - 1))
		inner--;
	return inner;
}

LEAT_AVX2 static void
interpolate_inner(const float *row, float *out, const struct lerp *lerp, size_t inner)
{
	for (size_t x = 0; x < inner; x++) {
		__m128 a = _mm_loadu_ps(row + lerp[x].lo), b = _mm_loadu_ps(row + lerp[x].hi);
		__m128 part = _mm_mul_ps(_mm_sub_ps(b, a), _mm_set1_ps(lerp[x].t));

		_mm_storeu_ps(out + 3 * x, _mm_add_ps(a, part));
	}
}
#endif

/* Eight elements of an interpolated row of bytes, and where their inputs are. */
enum { EIGHT = 8, HALF = 16, WINDOW = 2 * HALF, NONE = 0x80 };
struct octet {
	/* Shuffles of the two halves of the window, NONE: in the other half; first the `lo` inputs, then the `hi` ones.
	 */
	uint8_t from[2][HALF];
	float t[EIGHT];
	size_t window; /* offset in the input row */
};

static size_t
count_octets(size_t elements)
{
	return (elements + EIGHT - 1) / EIGHT;
}

#if LEAT_X86
static void
choose_byte(struct octet *octet, size_t k, size_t from)
{
	octet->from[0][k] = (uint8_t)(from < HALF ? from : NONE);
	octet->from[1][k] = (uint8_t)(from < HALF ? NONE : from - HALF);
}

/* False: the inputs do not fit in the window. Past the end of the row the last element is repeated. */
static bool
find_octet(struct octet *octet, const struct lerp *lerp, size_t first, size_t elements, size_t channels,
           size_t in_elements)
{
	size_t lo[EIGHT], hi[EIGHT], begin = SIZE_MAX, end = 0;

	for (size_t k = 0; k < EIGHT; k++) {
		size_t element = first + k < elements ? first + k : elements - 1;
		const struct lerp *from = &lerp[element / channels];

		lo[k] = from->lo + element % channels;
		hi[k] = from->hi + element % channels;
		begin = lo[k] < begin ? lo[k] : begin;
		end = hi[k] > end ? hi[k] : end;
		octet->t[k] = from->t;
	}
	if (begin + WINDOW > in_elements)
		begin = in_elements - WINDOW;
	for (size_t k = 0; k < EIGHT; k++) {
		choose_byte(octet, k, lo[k] - begin);
		choose_byte(octet, EIGHT + k, hi[k] - begin);
	}
	octet->window = begin;
	return end - begin < WINDOW;
}

static bool
find_octets(struct octet *octet, const struct lerp *lerp, size_t width, size_t channels, size_t in_elements)
{
	const size_t elements = width * channels;

	if (in_elements < WINDOW)
		return false;
	for (size_t i = 0; i < count_octets(elements); i++)
		if (!find_octet(&octet[i], lerp, i * EIGHT, elements, channels, in_elements))
			return false;
	return true;
}

/* Differences of bytes are exact in integers as in floats, so the result is the same. */
LEAT_AVX2 static void
interpolate_octets(const uint8_t *row, float *out, const struct octet *octet, size_t count)
{
	for (size_t i = 0; i < count; i++, octet++) {
		const __m128i *window = (const __m128i *)(const void *)(row + octet->window);
		const __m128i *from = (const __m128i *)(const void *)octet->from;
		__m128i first = _mm_shuffle_epi8(_mm_loadu_si128(window), _mm_loadu_si128(from));
		__m128i second = _mm_shuffle_epi8(_mm_loadu_si128(window + 1), _mm_loadu_si128(from + 1));
		__m128i both = _mm_or_si128(first, second);
		__m256i a = _mm256_cvtepu8_epi32(both), b = _mm256_cvtepu8_epi32(_mm_srli_si128(both, EIGHT));
		__m256 part = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(b, a)), _mm256_loadu_ps(octet->t));

		_mm256_storeu_ps(out + i * EIGHT, _mm256_add_ps(_mm256_cvtepi32_ps(a), part));
	}
}
#endif

/* How an output row is made. */
struct target {
	struct lerp *lerp;
	size_t width;
	size_t inner;        /* pixels for interpolate_inner */
	struct octet *octet; /* for the whole row; NULL: not possible */
};

static void
interpolate(const struct leat_view *in, size_t row, float *out, const struct target *target)
{
	const void *at = leat_view_row(in, row);
	const struct lerp *lerp = target->lerp + target->inner;
	size_t channels = in->channels, width = target->width - target->inner;

#if LEAT_X86
	if (target->octet) {
		interpolate_octets(at, out, target->octet, count_octets(target->width * channels));
		return;
	}
	if (target->inner)
		interpolate_inner(at, out, target->lerp, target->inner);
#endif
	out += target->inner * channels;

	if (in->dtype == LEAT_U8) {
		const uint8_t *data = at;

		if (channels == 3)
			interpolate_u8(data, out, lerp, width, 3);
		else
			interpolate_u8(data, out, lerp, width, channels);
	} else {
		const float *data = at;

		if (channels == 3)
			interpolate_f32(data, out, lerp, width, 3);
		else
			interpolate_f32(data, out, lerp, width, channels);
	}
}

/* Two interpolated input rows, and their numbers. */
struct rows {
	float *line[2];
	size_t row[2];
};

static const float *
interpolated(struct rows *rows, size_t row, size_t keep, const struct leat_view *in, const struct target *target)
{
	int victim = rows->row[0] == keep ? 1 : 0;

	for (int i = 0; i < 2; i++)
		if (rows->row[i] == row)
			return rows->line[i];
	interpolate(in, row, rows->line[victim], target);
	rows->row[victim] = row;
	return rows->line[victim];
}

static void
blend_rows_u8(const float *restrict top, const float *restrict bottom, float t, uint8_t *restrict out, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out[i] = leat_round_byte(top[i] + (bottom[i] - top[i]) * t);
}

static void
blend_rows_f32(const float *restrict top, const float *restrict bottom, float t, float *restrict out, size_t count)
{
	for (size_t i = 0; i < count; i++)
		out[i] = top[i] + (bottom[i] - top[i]) * t;
}

#if LEAT_X86
/* Returns the number of elements done. */
LEAT_AVX2 static size_t
blend_rows_f32_avx2(const float *top, const float *bottom, float t, float *out, size_t count)
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
blend_rows(const float *top, const float *bottom, float t, enum leat_dtype dtype, void *out, size_t count, bool avx2)
{
	float *floats = out;
	size_t done = 0;

	if (dtype == LEAT_U8) {
		blend_rows_u8(top, bottom, t, out, count);
		return;
	}
#if LEAT_X86
	if (avx2)
		done = blend_rows_f32_avx2(top, bottom, t, floats, count);
#endif
	(void)avx2; /* unused on other CPUs */
	blend_rows_f32(top + done, bottom + done, t, floats + done, count - done);
}

static void
reverse(struct lerp *lerp, size_t count)
{
	for (size_t i = 0; i < count / 2; i++) {
		struct lerp swapped = lerp[i];

		lerp[i] = lerp[count - 1 - i];
		lerp[count - 1 - i] = swapped;
	}
}

/* Chooses the AVX2 kernel. interpolate_octets mirrors rows itself if the sink wants that. */
static void
choose_kernel(struct target *target, const struct leat_view *in, struct leat_sink *sink, struct octet *octet)
{
#if LEAT_X86
	const size_t in_elements = (size_t)in->width * in->channels;

	if (sink->mirror)
		reverse(target->lerp, target->width);
	if (in->dtype == LEAT_U8 && find_octets(octet, target->lerp, target->width, in->channels, in_elements)) {
		target->octet = octet;
		leat_sink_rows_are_mirrored(sink);
		return;
	}
	if (sink->mirror)
		reverse(target->lerp, target->width);
	if (in->dtype == LEAT_F32 && in->channels == 3)
		target->inner = count_inner(target->lerp, target->width, in->width);
#else
	(void)target, (void)in, (void)sink, (void)octet, (void)reverse;
#endif
}

enum leat_status
leat_resize_bilinear(const struct leat_view *in, const struct leat_axis *y_axis, const struct leat_axis *x_axis,
                     bool avx2, const struct leat_sink *sink, struct leat_scratch *scratch, struct leat_err *err)
{
	const size_t line = (size_t)x_axis->count * in->channels, octets = count_octets(line);
	struct lerp *ys = leat_scratch_alloc(scratch, (size_t)y_axis->count * sizeof(*ys));
	float *lines = leat_scratch_alloc(scratch, 2 * octets * EIGHT * sizeof(*lines));
	struct octet *octet = leat_scratch_alloc(scratch, octets * sizeof(*octet));
	struct rows rows = {.line = {lines, lines + octets * EIGHT}, .row = {SIZE_MAX, SIZE_MAX}};
	struct target target = {.width = (size_t)x_axis->count};
	struct leat_sink to = *sink;

	target.lerp = leat_scratch_alloc(scratch, target.width * sizeof(*target.lerp));
	if (!target.lerp || !ys || !lines || !octet)
		return leat_fail_image(err, "resizing", scratch);
	if (scratch->counting)
		return LEAT_OK;
	find_lerps(target.lerp, x_axis, in->channels);
	find_lerps(ys, y_axis, 1);
	if (avx2)
		choose_kernel(&target, in, &to, octet);
	for (int64_t y = 0; y < y_axis->count; y++) {
		const float *top = interpolated(&rows, ys[y].lo, ys[y].hi, in, &target);
		const float *bottom = interpolated(&rows, ys[y].hi, ys[y].lo, in, &target);

		blend_rows(top, bottom, ys[y].t, to.row_dtype, leat_sink_row(&to, y), line, avx2);
		leat_sink_commit(&to, y);
	}
	return LEAT_OK;
}
