/* resample_u8.c - bytes at another size, as Pillow sums them: in whole numbers, rounded after each direction
 *
 * Along rows first; which direction comes first shows in some bytes, by 1. That is the order of Pillow before 13, and
 * of torchvision for tensors; Pillow 13 begins with columns where the height shrinks much more than the width. Rows
 * that are resampled along themselves are kept in a ring, as many as one row of the result needs.
 *
 * Sums are kept in 32 bits and cannot leave them; their parts may, which does not matter, as the processor's sums wrap
 * around. AVX2 multiplies two pixels' bytes at once by the two parts of their weights, which changes nothing in the
 * sum. */
#include "image/resample.h"

#include <string.h>

#include "image/cpu.h"

/* Room behind a row and a line: for pixels read beyond the last, which count for 0, and for whole vectors. */
enum { EXTRA = 64, VECTOR = 32 };

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

#if LEAT_X86
/* Weights of four taps as they are multiplied: for each half of a vector those of two taps, four times over. */
struct quad {
	int16_t low[16], high[16];
};

size_t
leat_resample_u8_quads(size_t width, size_t most)
{
	return width * ((most + 3) / 4) * sizeof(struct quad);
}

static void
make_quads(struct quad *quad, const struct leat_taps *taps, size_t width)
{
	const size_t quads = (taps->most + 3) / 4, pairs = taps->most / 2;

	for (size_t x = 0; x < width; x++) {
		const struct leat_weight_pair *pair = taps->weight.pair + x * pairs;
		const size_t used = (taps->span[x].count + 1) / 2;

		for (size_t p = 0; p < 2 * quads; p++) {
			const struct leat_weight_pair two = p < used ? pair[p] : (struct leat_weight_pair){{0}, {0}};
			struct quad *to = &quad[x * quads + p / 2];

			for (size_t k = 0; k < 4; k++) {
				memcpy(to->low + p % 2 * 8 + 2 * k, two.low, sizeof(two.low));
				memcpy(to->high + p % 2 * 8 + 2 * k, two.high, sizeof(two.high));
			}
		}
	}
}

/* Sums of one pixel: the lower and the upper half are of different taps and still to be added. */
struct sums {
	__m256i low, high;
};

/* The bytes of four pixels of 3 or 4 channels, as pairs of 16 bits: taps 0 and 1 of each channel, then 2 and 3. */
LEAT_AVX2_INLINE __m256i
pairs_at(const uint8_t *from, __m256i order)
{
	return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)from)), order);
}

/* `single`: there are no more than four taps anywhere. */
LEAT_AVX2_INLINE struct sums
sum_pixel(const uint8_t *from, const struct quad *quad, uint32_t count, __m256i order, size_t channels, bool single)
{
	__m256i four = pairs_at(from, order);
	struct sums sums = {_mm256_madd_epi16(four, _mm256_load_si256((const void *)quad->low)),
	                    _mm256_madd_epi16(four, _mm256_load_si256((const void *)quad->high))};

	for (uint32_t t = 4; !single && t < count; t += 4) {
		quad++;
		from += 4 * channels;
		four = pairs_at(from, order);
		sums.low =
			_mm256_add_epi32(sums.low, _mm256_madd_epi16(four, _mm256_load_si256((const void *)quad->low)));
		sums.high = _mm256_add_epi32(sums.high,
		                             _mm256_madd_epi16(four, _mm256_load_si256((const void *)quad->high)));
	}
	return sums;
}

/* Eight sums, put together from their parts and cut to whole numbers; those are packed, and so clipped, to bytes. */
LEAT_AVX2_INLINE __m256i
finish(__m256i low, __m256i high)
{
	return _mm256_srai_epi32(_mm256_add_epi32(low, _mm256_slli_epi32(high, LEAT_LOW_BITS)), LEAT_FIXED_BITS);
}

/* Two pixels' sums to bytes, each in the first four of a half. */
LEAT_AVX2_INLINE __m256i
finish_two(struct sums a, struct sums b)
{
	const __m256i half = _mm256_set1_epi32(1 << (LEAT_FIXED_BITS - 1));
	__m256i low = _mm256_add_epi32(_mm256_permute2x128_si256(a.low, b.low, 0x20),
	                               _mm256_permute2x128_si256(a.low, b.low, 0x31));
	__m256i high = _mm256_add_epi32(_mm256_permute2x128_si256(a.high, b.high, 0x20),
	                                _mm256_permute2x128_si256(a.high, b.high, 0x31));
	__m256i whole = finish(_mm256_add_epi32(low, half), high);

	whole = _mm256_packs_epi32(whole, whole);
	return _mm256_packus_epi16(whole, whole);
}

LEAT_AVX2_INLINE void
put_four(uint8_t *out, __m128i bytes)
{
	int32_t four = _mm_cvtsi128_si32(bytes);

	memcpy(out, &four, sizeof(four));
}

/* Three or four channels. Reads up to 16 bytes from the begin of each four taps on, and writes up to a pixel and a byte
 * more than there are. */
LEAT_AVX2_INLINE void
gather_pixels(const uint8_t *row, uint8_t *out, const struct leat_taps *taps, const struct quad *quad, size_t width,
              size_t channels, bool single)
{
	const __m128i three[2] = {_mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1),
	                          _mm_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1)};
	const __m128i all[2] = {_mm_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1),
	                        _mm_setr_epi8(8, -1, 12, -1, 9, -1, 13, -1, 10, -1, 14, -1, 11, -1, 15, -1)};
	const __m256i order = channels == 3 ? _mm256_set_m128i(three[1], three[0]) : _mm256_set_m128i(all[1], all[0]);
	const size_t quads = single ? 1 : (taps->most + 3) / 4;
	const struct leat_span *span = taps->span;

	for (size_t x = 0; x + 2 <= width; x += 2, span += 2, out += 2 * channels, quad += 2 * quads) {
		struct sums a = sum_pixel(row + span[0].first * channels, quad, span[0].count, order, channels, single);
		struct sums b =
			sum_pixel(row + span[1].first * channels, quad + quads, span[1].count, order, channels, single);
		__m256i bytes = finish_two(a, b);

		put_four(out, _mm256_castsi256_si128(bytes));
		put_four(out + channels, _mm256_extracti128_si256(bytes, 1));
	}
	if (width % 2) {
		struct sums a = sum_pixel(row + span->first * channels, quad, span->count, order, channels, single);

		put_four(out, _mm256_castsi256_si128(finish_two(a, a)));
	}
}

LEAT_AVX2 static void
gather_avx2(const uint8_t *row, uint8_t *out, const struct leat_taps *taps, const void *quads, size_t width,
            size_t channels)
{
	if (channels == 3 && taps->most <= 4)
		gather_pixels(row, out, taps, quads, width, 3, true);
	else if (channels == 3)
		gather_pixels(row, out, taps, quads, width, 3, false);
	else
		gather_pixels(row, out, taps, quads, width, 4, false);
}
#else
size_t
leat_resample_u8_quads(size_t width, size_t most)
{
	(void)width, (void)most;
	return 0;
}
#endif

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

#if LEAT_X86
/* 32 bytes; `line` points to them in the first of the rows. */
LEAT_AVX2_INLINE __m256i
add_vector(const struct ring *ring, const uint8_t *line, uint32_t count, const struct leat_weight_pair *pair)
{
	const __m256i zero = _mm256_setzero_si256(), half = _mm256_set1_epi32(1 << (LEAT_FIXED_BITS - 1));
	__m256i low[4] = {half, half, half, half}, high[4] = {zero, zero, zero, zero};

	for (uint32_t t = 0; t < count; t += 2, pair++) {
		/* Behind an odd number of rows any will do: it counts for 0. */
		const uint8_t *second = t + 1 < count ? next_line(ring, line) : line;
		__m256i a = _mm256_loadu_si256((const void *)line), b = _mm256_loadu_si256((const void *)second);
		__m256i left = _mm256_unpacklo_epi8(a, b), right = _mm256_unpackhi_epi8(a, b);
		__m256i two[4] = {_mm256_unpacklo_epi8(left, zero), _mm256_unpackhi_epi8(left, zero),
		                  _mm256_unpacklo_epi8(right, zero), _mm256_unpackhi_epi8(right, zero)};
		int32_t low_two, high_two;

		memcpy(&low_two, pair->low, sizeof(low_two));
		memcpy(&high_two, pair->high, sizeof(high_two));
		for (int k = 0; k < 4; k++) {
			low[k] = _mm256_add_epi32(low[k], _mm256_madd_epi16(two[k], _mm256_set1_epi32(low_two)));
			high[k] = _mm256_add_epi32(high[k], _mm256_madd_epi16(two[k], _mm256_set1_epi32(high_two)));
		}
		line = next_line(ring, second);
	}
	return _mm256_packus_epi16(_mm256_packs_epi32(finish(low[0], high[0]), finish(low[1], high[1])),
	                           _mm256_packs_epi32(finish(low[2], high[2]), finish(low[3], high[3])));
}

/* Returns how many bytes are done. */
LEAT_AVX2 static size_t
add_rows_avx2(const struct ring *ring, const struct leat_span *span, const struct leat_weight_pair *pair, uint8_t *out,
              size_t count)
{
	const uint8_t *first = line_of(ring, span->first);
	size_t i = 0;

	for (; i + VECTOR <= count; i += VECTOR)
		_mm256_storeu_si256((void *)(out + i), add_vector(ring, first + i, span->count, pair));
	return i;
}
#endif

/* Bytes from `begin` on. */
static void
add_rows(const struct ring *ring, const struct leat_span *span, const struct leat_weight_pair *pair, uint8_t *out,
         size_t begin, size_t count)
{
	for (size_t i = begin; i < count; i++) {
		const uint8_t *line = line_of(ring, span->first) + i;
		int32_t sum = 1 << (LEAT_FIXED_BITS - 1);

		for (uint32_t t = 0; t < span->count; t++, line = next_line(ring, line))
			sum += weight_of(pair, t) * *line;
		out[i] = to_byte(sum);
	}
}

/* Row `at` of the input, with bytes behind it that can be read: of the next row, or in the copy `row`. */
static const uint8_t *
readable_row(const struct leat_view *in, size_t at, uint8_t *row)
{
	const size_t bytes = (size_t)in->width * in->channels;

	if ((int64_t)at + 1 < in->height && bytes >= EXTRA)
		return in->data + at * in->stride;
	memcpy(row, in->data + at * in->stride, bytes);
	memset(row + bytes, 0, EXTRA);
	return row;
}

void
leat_resample_u8(const struct leat_view *in, const struct leat_sink *sink, const struct leat_taps *xs,
                 const struct leat_taps *ys, uint8_t *row, uint8_t *ring_bytes, void *quads)
{
	const size_t width = (size_t)sink->part.width, bytes = width * in->channels;
	struct ring ring = {ring_bytes, line_bytes(width, in->channels), ys->most, 0};

#if LEAT_X86
	if (quads && in->channels >= 3)
		make_quads(quads, xs, width);
#endif
	for (int64_t y = 0; y < sink->part.height; y++) {
		const struct leat_span *span = &ys->span[y];
		const struct leat_weight_pair *pair = ys->weight.pair + (size_t)y * ys->most / 2;
		uint8_t *out = leat_sink_line(sink, y);
		size_t done = 0;

		ring.next = ring.next < span->first ? span->first : ring.next;
		for (; ring.next < span->first + span->count; ring.next++) {
			const uint8_t *from = readable_row(in, ring.next, row);

#if LEAT_X86
			if (quads && in->channels >= 3)
				gather_avx2(from, line_of(&ring, ring.next), xs, quads, width, in->channels);
			else
#endif
				gather(from, line_of(&ring, ring.next), xs, width, in->channels);
		}
#if LEAT_X86
		if (quads)
			done = add_rows_avx2(&ring, span, pair, out, bytes);
#endif
		add_rows(&ring, span, pair, out, done, bytes);
		leat_sink_take(sink, y);
	}
}
