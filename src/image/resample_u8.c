/* resample_u8.c - bytes at another size, as Pillow sums them: in whole numbers, rounded after each direction
 *
 * Along rows first; which direction comes first shows in some bytes, by 1. That is the order of Pillow before 13, and
 * of torchvision for tensors; Pillow 13 begins with columns where the height shrinks much more than the width. Rows
 * that are resampled along themselves are kept in a ring, as many as one row of the result needs.
 *
 * Sums are kept in 32 bits and cannot leave them; their parts may, which does not matter, as the processor's sums wrap
 * around. SSE2 multiplies two pixels' bytes at once by the two parts of their weights, which changes nothing in the
 * sum. */
#include "image/resample.h"

#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Room behind a row and a line: for a pixel and a byte read beyond the last, and for whole vectors. */
enum { EXTRA = 32, VECTOR = 16 };

static size_t
line_bytes(size_t width, size_t channels)
{
	return (width * channels + EXTRA) & ~(size_t)(VECTOR - 1);
}

size_t
leat_resample_u8_row(size_t width, size_t channels)
{
	return width * channels + EXTRA;
}

size_t
leat_resample_u8_ring(size_t width, size_t channels, size_t lines)
{
	return line_bytes(width, channels) * lines;
}

static int32_t
weight_of(const struct leat_weight_pair *pair, uint32_t t)
{
	return pair[t / 2].high[t % 2] * (1 << LEAT_LOW_BITS) + pair[t / 2].low[t % 2];
}

static uint8_t
to_byte(int32_t x)
{
	x >>= LEAT_FIXED_BITS;
	return (uint8_t)(x < 0 ? 0 : x > 255 ? 255 : x);
}

/* ---- one row, along itself ---- */

static void
gather(const uint8_t *row, uint8_t *restrict out, const struct leat_taps *taps, size_t width, size_t channels)
{
	for (size_t x = 0; x < width; x++)
		for (size_t c = 0; c < channels; c++) {
			const struct leat_weight_pair *pair = taps->weight.pair + x * taps->most / 2;
			const uint8_t *from = row + taps->span[x].first * channels + c;
			int32_t sum = 1 << (LEAT_FIXED_BITS - 1);

			for (uint32_t t = 0; t < taps->span[x].count; t++)
				sum += weight_of(pair, t) * from[t * channels];
			*out++ = to_byte(sum);
		}
}

#ifdef __SSE2__
static inline __m128i
load4(const void *bytes)
{
	int32_t x;

	memcpy(&x, bytes, sizeof(x));
	return _mm_cvtsi32_si128(x);
}

/* One part of two weights, four times over. */
static inline __m128i
spread(const int16_t *two)
{
	return _mm_shuffle_epi32(load4(two), 0);
}

/* Four sums, put together from their parts and cut to whole numbers; those are packed, and so clipped, to bytes. */
static inline __m128i
finish(__m128i low, __m128i high)
{
	return _mm_srai_epi32(_mm_add_epi32(low, _mm_slli_epi32(high, LEAT_LOW_BITS)), LEAT_FIXED_BITS);
}

/* Three or four channels. Reads and writes up to a pixel and a byte more than there are. */
static inline void
gather_pixels(const uint8_t *row, uint8_t *out, const struct leat_taps *taps, size_t width, size_t channels)
{
	const __m128i zero = _mm_setzero_si128();

	for (size_t x = 0; x < width; x++, out += channels) {
		const struct leat_weight_pair *pair = taps->weight.pair + x * taps->most / 2;
		const uint8_t *from = row + taps->span[x].first * channels;
		__m128i low = _mm_set1_epi32(1 << (LEAT_FIXED_BITS - 1)), high = zero, sum;
		int32_t bytes;

		for (uint32_t t = 0; t < taps->span[x].count; t += 2, pair++, from += 2 * channels) {
			__m128i two = _mm_unpacklo_epi8(load4(from), load4(from + channels));

			two = _mm_unpacklo_epi8(two, zero);
			low = _mm_add_epi32(low, _mm_madd_epi16(two, spread(pair->low)));
			high = _mm_add_epi32(high, _mm_madd_epi16(two, spread(pair->high)));
		}
		sum = _mm_packs_epi32(finish(low, high), zero);
		bytes = _mm_cvtsi128_si32(_mm_packus_epi16(sum, zero));
		memcpy(out, &bytes, sizeof(bytes));
	}
}
#endif

static void
gather_row(const uint8_t *row, uint8_t *out, const struct leat_taps *taps, size_t width, size_t channels)
{
#ifdef __SSE2__
	if (channels == 3)
		gather_pixels(row, out, taps, width, 3);
	else if (channels == 4)
		gather_pixels(row, out, taps, width, 4);
	else
#endif
		gather(row, out, taps, width, channels);
}

/* ---- rows added up ---- */

/* Rows of the input, resampled along themselves: row y lies in line y % lines. */
struct ring {
	uint8_t *line;
	size_t bytes; /* of a line */
	size_t lines;
	size_t next; /* row that is made next; those before it are there or no longer needed */
};

static uint8_t *
line_of(const struct ring *ring, size_t row)
{
	return ring->line + row % ring->lines * ring->bytes;
}

static const uint8_t *
next_line(const struct ring *ring, const uint8_t *line)
{
	line += ring->bytes;
	return line < ring->line + ring->lines * ring->bytes ? line : line - ring->lines * ring->bytes;
}

#ifdef __SSE2__
/* Sixteen bytes; `line` points to them in the first of the rows. */
static inline __m128i
add_sixteen(const struct ring *ring, const uint8_t *line, uint32_t count, const struct leat_weight_pair *pair)
{
	const __m128i zero = _mm_setzero_si128(), half = _mm_set1_epi32(1 << (LEAT_FIXED_BITS - 1));
	__m128i low[4] = {half, half, half, half}, high[4] = {zero, zero, zero, zero};

	for (uint32_t t = 0; t < count; t += 2, pair++) {
		/* Behind an odd number of rows any will do: it counts for 0. */
		const uint8_t *second = t + 1 < count ? next_line(ring, line) : line;
		__m128i a = _mm_loadu_si128((const void *)line), b = _mm_loadu_si128((const void *)second);
		__m128i left = _mm_unpacklo_epi8(a, b), right = _mm_unpackhi_epi8(a, b);
		__m128i two[4] = {_mm_unpacklo_epi8(left, zero), _mm_unpackhi_epi8(left, zero),
		                  _mm_unpacklo_epi8(right, zero), _mm_unpackhi_epi8(right, zero)};

		for (int k = 0; k < 4; k++) {
			low[k] = _mm_add_epi32(low[k], _mm_madd_epi16(two[k], spread(pair->low)));
			high[k] = _mm_add_epi32(high[k], _mm_madd_epi16(two[k], spread(pair->high)));
		}
		line = next_line(ring, second);
	}
	return _mm_packus_epi16(_mm_packs_epi32(finish(low[0], high[0]), finish(low[1], high[1])),
	                        _mm_packs_epi32(finish(low[2], high[2]), finish(low[3], high[3])));
}
#endif

static void
add_rows(const struct ring *ring, const struct leat_span *span, const struct leat_weight_pair *pair, uint8_t *out,
         size_t count)
{
	const uint8_t *first = line_of(ring, span->first);
	size_t i = 0;

#ifdef __SSE2__
	for (; i + VECTOR <= count; i += VECTOR)
		_mm_storeu_si128((void *)(out + i), add_sixteen(ring, first + i, span->count, pair));
#endif
	for (; i < count; i++) {
		const uint8_t *line = first + i;
		int32_t sum = 1 << (LEAT_FIXED_BITS - 1);

		for (uint32_t t = 0; t < span->count; t++, line = next_line(ring, line))
			sum += weight_of(pair, t) * *line;
		out[i] = to_byte(sum);
	}
}

void
leat_resample_u8(const struct leat_view *in, const struct leat_sink *sink, const struct leat_taps *xs,
                 const struct leat_taps *ys, uint8_t *row, uint8_t *ring_bytes)
{
	const size_t width = (size_t)sink->part.width, bytes = (size_t)in->width * in->channels;
	struct ring ring = {ring_bytes, line_bytes(width, in->channels), ys->most, 0};

	memset(row + bytes, 0, EXTRA);
	for (int64_t y = 0; y < sink->part.height; y++) {
		const struct leat_span *span = &ys->span[y];

		ring.next = ring.next < span->first ? span->first : ring.next;
		for (; ring.next < span->first + span->count; ring.next++) {
			memcpy(row, in->data + ring.next * in->stride, bytes);
			gather_row(row, line_of(&ring, ring.next), xs, width, in->channels);
		}
		add_rows(&ring, span, ys->weight.pair + (size_t)y * ys->most / 2, leat_sink_line(sink, y),
		         width * in->channels);
		leat_sink_take(sink, y);
	}
}
