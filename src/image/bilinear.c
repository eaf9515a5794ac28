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

struct place {
	size_t lo, hi; /* offsets of the two input pixels */
	float t;       /* position between them */
};

static void
find_places(struct place *place, const struct leat_side *side, size_t stride)
{
	const float scale = (float)side->length / (float)side->out, from = (float)side->from;
	const int64_t in = side->in;

	for (int64_t i = 0; i < side->count; i++) {
		float x = ((float)(side->first + i) + 0.5f) * scale + from - 0.5f;
		float below = floorf(x);
		int64_t lo = (int64_t)below, hi = (int64_t)ceilf(x);

		place[i].lo = (size_t)(lo < 0 ? 0 : lo >= in ? in - 1 : lo) * stride;
		place[i].hi = (size_t)(hi < 0 ? 0 : hi >= in ? in - 1 : hi) * stride;
		place[i].t = x - below;
	}
}

/* Interpolates along a row of input. Instances, so that the compiler knows type and channels. */
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
/* For three channels of floats, read and written as vectors of four: the number of output pixels, from the first, that
 * are followed by another one, in the input as well as in the output. */
static size_t
count_inner(const struct place *place, size_t width, int64_t in_width)
{
	size_t inner = width - 1;

	while (inner && place[inner - 1].hi >= 3 * (size_t)(in_width - 1))
		inner--;
	return inner;
}

LEAT_AVX2 static void
stretch_inner(const float *row, float *out, const struct place *place, size_t inner)
{
	for (size_t x = 0; x < inner; x++) {
		__m128 a = _mm_loadu_ps(row + place[x].lo), b = _mm_loadu_ps(row + place[x].hi);
		__m128 part = _mm_mul_ps(_mm_sub_ps(b, a), _mm_set1_ps(place[x].t));

		_mm_storeu_ps(out + 3 * x, _mm_add_ps(a, part));
	}
}
#endif

/* Eight elements of an interpolated row of bytes, and where their inputs are. */
enum { EIGHT = 8, HALF = 16, WINDOW = 2 * HALF, NONE = 0x80 };
struct eight {
	/* Shuffles of the two halves of the window, NONE: in the other half; first the `lo` inputs, then the `hi` ones.
	 */
	uint8_t from[2][HALF];
	float t[EIGHT];
	size_t window; /* offset in the input row */
};

static size_t
count_eights(size_t elements)
{
	return (elements + EIGHT - 1) / EIGHT;
}

#if LEAT_X86
static void
choose_byte(struct eight *eight, size_t k, size_t from)
{
	eight->from[0][k] = (uint8_t)(from < HALF ? from : NONE);
	eight->from[1][k] = (uint8_t)(from < HALF ? NONE : from - HALF);
}

/* False: the inputs do not fit in the window. Past the end of the row the last element is repeated. */
static bool
find_eight(struct eight *eight, const struct place *place, size_t first, size_t elements, size_t channels,
           size_t in_elements)
{
	size_t lo[EIGHT], hi[EIGHT], begin = SIZE_MAX, end = 0;

	for (size_t k = 0; k < EIGHT; k++) {
		size_t element = first + k < elements ? first + k : elements - 1;
		const struct place *from = &place[element / channels];

		lo[k] = from->lo + element % channels;
		hi[k] = from->hi + element % channels;
		begin = lo[k] < begin ? lo[k] : begin;
		end = hi[k] > end ? hi[k] : end;
		eight->t[k] = from->t;
	}
	if (begin + WINDOW > in_elements)
		begin = in_elements - WINDOW;
	for (size_t k = 0; k < EIGHT; k++) {
		choose_byte(eight, k, lo[k] - begin);
		choose_byte(eight, EIGHT + k, hi[k] - begin);
	}
	eight->window = begin;
	return end - begin < WINDOW;
}

static bool
find_eights(struct eight *eight, const struct place *place, size_t width, size_t channels, size_t in_elements)
{
	const size_t elements = width * channels;

	if (in_elements < WINDOW)
		return false;
	for (size_t i = 0; i < count_eights(elements); i++)
		if (!find_eight(&eight[i], place, i * EIGHT, elements, channels, in_elements))
			return false;
	return true;
}

/* Differences of bytes are exact in integers as in floats, so the result is the same. */
LEAT_AVX2 static void
stretch_eights(const uint8_t *row, float *out, const struct eight *eight, size_t count)
{
	for (size_t i = 0; i < count; i++, eight++) {
		const __m128i *window = (const __m128i *)(const void *)(row + eight->window);
		const __m128i *from = (const __m128i *)(const void *)eight->from;
		__m128i first = _mm_shuffle_epi8(_mm_loadu_si128(window), _mm_loadu_si128(from));
		__m128i second = _mm_shuffle_epi8(_mm_loadu_si128(window + 1), _mm_loadu_si128(from + 1));
		__m128i both = _mm_or_si128(first, second);
		__m256i a = _mm256_cvtepu8_epi32(both), b = _mm256_cvtepu8_epi32(_mm_srli_si128(both, EIGHT));
		__m256 part = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(b, a)), _mm256_loadu_ps(eight->t));

		_mm256_storeu_ps(out + i * EIGHT, _mm256_add_ps(_mm256_cvtepi32_ps(a), part));
	}
}
#endif

/* How an output row is made. */
struct target {
	struct place *place;
	size_t width;
	size_t inner;        /* pixels for stretch_inner */
	struct eight *eight; /* for the whole row; NULL: not possible */
};

static void
stretch(const struct leat_view *in, size_t row, float *out, const struct target *target)
{
	const void *at = leat_view_row(in, row);
	const struct place *place = target->place + target->inner;
	size_t channels = in->channels, width = target->width - target->inner;

#if LEAT_X86
	if (target->eight) {
		stretch_eights(at, out, target->eight, count_eights(target->width * channels));
		return;
	}
	if (target->inner)
		stretch_inner(at, out, target->place, target->inner);
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

/* Two interpolated input rows, and their numbers. */
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
/* Returns the number of elements done. */
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
	(void)avx2; /* unused on other CPUs */
	mix_f32(top + done, bottom + done, t, floats + done, count - done);
}

static void
reverse(struct place *place, size_t count)
{
	for (size_t i = 0; i < count / 2; i++) {
		struct place kept = place[i];

		place[i] = place[count - 1 - i];
		place[count - 1 - i] = kept;
	}
}

/* Chooses the AVX2 kernel. stretch_eights mirrors rows itself if the sink wants that. */
static void
choose_kernel(struct target *target, const struct leat_view *in, struct leat_sink *sink, struct eight *eight)
{
#if LEAT_X86
	const size_t in_elements = (size_t)in->width * in->channels;

	if (sink->mirror)
		reverse(target->place, target->width);
	if (in->dtype == LEAT_U8 && find_eights(eight, target->place, target->width, in->channels, in_elements)) {
		target->eight = eight;
		leat_sink_gets_mirrored(sink);
		return;
	}
	if (sink->mirror)
		reverse(target->place, target->width);
	if (in->dtype == LEAT_F32 && in->channels == 3)
		target->inner = count_inner(target->place, target->width, in->width);
#else
	(void)target, (void)in, (void)sink, (void)eight, (void)reverse;
#endif
}

enum leat_status
leat_resize_bilinear(const struct leat_view *in, const struct leat_side *down, const struct leat_side *along, bool avx2,
                     const struct leat_sink *sink, struct leat_scratch *scratch, struct leat_err *err)
{
	const size_t line = (size_t)along->count * in->channels, eights = count_eights(line);
	struct place *ys = leat_scratch_alloc(scratch, (size_t)down->count * sizeof(*ys));
	float *lines = leat_scratch_alloc(scratch, 2 * eights * EIGHT * sizeof(*lines));
	struct eight *eight = leat_scratch_alloc(scratch, eights * sizeof(*eight));
	struct rows rows = {.line = {lines, lines + eights * EIGHT}, .row = {SIZE_MAX, SIZE_MAX}};
	struct target target = {.width = (size_t)along->count};
	struct leat_sink to = *sink;

	target.place = leat_scratch_alloc(scratch, target.width * sizeof(*target.place));
	if (!target.place || !ys || !lines || !eight)
		return leat_resize_full(scratch, err);
	if (scratch->counting)
		return LEAT_OK;
	find_places(target.place, along, in->channels);
	find_places(ys, down, 1);
	if (avx2)
		choose_kernel(&target, in, &to, eight);
	for (int64_t y = 0; y < down->count; y++) {
		const float *top = stretched(&rows, ys[y].lo, ys[y].hi, in, &target);
		const float *bottom = stretched(&rows, ys[y].hi, ys[y].lo, in, &target);

		mix(top, bottom, ys[y].t, to.made, leat_sink_line(&to, y), line, avx2);
		leat_sink_take(&to, y);
	}
	return LEAT_OK;
}
