/* resample_u8.c - resample bytes as Pillow does: in fixed point, rounded after each direction
 *
 * Rows first; the order of the directions changes some bytes by 1. Pillow before 13, and torchvision for tensors, use
 * this order; Pillow 13 starts with columns where the height shrinks much more than the width. Horizontally resampled
 * rows are kept in a ring of as many lines as one output row needs.
 *
 * A complete sum fits in 32 bits; partial sums may overflow, which is harmless because they wrap around. AVX2
 * multiplies the bytes of two pixels at once by the two halves of their weights, which gives the same sum. */
#include "image/resample.h"

#include <string.h>

#include "image/cpu.h"

/* Padding of a line, for whole vectors. */
enum { EXTRA = 64, VECTOR = 32 };

/* Their weight is 0. */
size_t
leat_resample_u8_padding(size_t channels, size_t max)
{
	return (max + 4) * channels + 16;
}

static size_t
line_bytes(size_t width, size_t channels)
{
	return (width * channels + EXTRA) & ~(size_t)(VECTOR - 1);
}

size_t
leat_resample_u8_row(size_t width, size_t channels, size_t max)
{
	return width * channels + leat_resample_u8_padding(channels, max);
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

/* ---- horizontal ---- */

static void
resample_row(const uint8_t *row, uint8_t *restrict out, const struct leat_taps *taps, size_t width, size_t channels)
{
	for (size_t x = 0; x < width; x++)
		for (size_t c = 0; c < channels; c++) {
			const struct leat_weight_pair *pair = taps->weight.pair + x * taps->max / 2;
			const uint8_t *from = row + taps->span[x].first * channels + c;
			int32_t sum = 1 << (LEAT_FIXED_BITS - 1);

			for (uint32_t t = 0; t < taps->span[x].count; t++)
				sum += weight_of(pair, t) * from[t * channels];
			*out++ = to_byte(sum);
		}
}

#if LEAT_X86
/* Computes four output pixels at a time, four taps at a time. A vector holds two pixels, one in each lane. */
enum { FOUR = 4 };

/* The weights of two pixels for four taps, as they are multiplied: taps 0 and 1 repeated for each of four channels,
 * then taps 2 and 3. */
struct two_pixels {
	int16_t low[2][16], high[2][16];
};

/* Weights, and the offset of the first tap of each pixel. The width is rounded up to a multiple of four. */
struct quads {
	struct two_pixels *two; /* for four pixels all taps, in groups of four; then for the next four pixels */
	uint32_t *from;
	size_t count; /* groups of four taps per pixel */
};

static size_t
round_up_to_four(size_t count)
{
	return (count + FOUR - 1) / FOUR * FOUR;
}

size_t
leat_resample_u8_quads(size_t width, size_t max)
{
	return round_up_to_four(width) *
	       (round_up_to_four(max) / FOUR * sizeof(struct two_pixels) / 2 + sizeof(uint32_t));
}

static void
set_weights(const struct quads *quads, size_t x, size_t p, const struct leat_weight_pair *pair)
{
	struct two_pixels *two = &quads->two[(x / FOUR * quads->count + p / 2) * 2 + x % FOUR / 2];

	for (size_t k = 0; k < 4; k++) {
		memcpy(two->low[p % 2] + x % 2 * 8 + 2 * k, pair->low, sizeof(pair->low));
		memcpy(two->high[p % 2] + x % 2 * 8 + 2 * k, pair->high, sizeof(pair->high));
	}
}

/* Weights past the last tap and the last pixel are 0. */
static struct quads
make_quads(void *memory, const struct leat_taps *taps, size_t width, size_t channels)
{
	static const struct leat_weight_pair none;
	struct quads quads = {.two = memory};
	size_t max = 0;

	for (size_t x = 0; x < width; x++)
		max = taps->span[x].count > max ? taps->span[x].count : max;
	quads.count = round_up_to_four(max) / FOUR;
	quads.from = (void *)(quads.two + round_up_to_four(width) / 2 * quads.count);
	for (size_t x = 0; x < round_up_to_four(width); x++) {
		const struct leat_span span = x < width ? taps->span[x] : (struct leat_span){0};

		quads.from[x] = span.first * (uint32_t)channels;
		for (size_t p = 0; p < 2 * quads.count; p++)
			set_weights(&quads, x, p,
			            2 * p < span.count ? &taps->weight.pair[x * taps->max / 2 + p] : &none);
	}
	return quads;
}

/* Combines the halves of the sums and drops the fraction. Packing to bytes then clamps. */
LEAT_AVX2_INLINE __m256i
finish(__m256i low, __m256i high)
{
	return _mm256_srai_epi32(_mm256_add_epi32(low, _mm256_slli_epi32(high, LEAT_LOW_BITS)), LEAT_FIXED_BITS);
}

/* Shuffles of four pixels: the same channel of two neighbors side by side, in 16 bits each. */
struct order {
	__m256i taps_01, taps_23;
};

LEAT_AVX2_INLINE struct order
order_of(size_t channels)
{
	const __m128i three[2] = {_mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1),
	                          _mm_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1)};
	const __m128i all[2] = {_mm_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1),
	                        _mm_setr_epi8(8, -1, 12, -1, 9, -1, 13, -1, 10, -1, 14, -1, 11, -1, 15, -1)};
	const __m128i *of = channels == 3 ? three : all;

	return (struct order){_mm256_broadcastsi128_si256(of[0]), _mm256_broadcastsi128_si256(of[1])};
}

LEAT_AVX2_INLINE __m256i
add_products(__m256i sum, __m256i taps_01, __m256i taps_23, const int16_t (*weights)[16])
{
	__m256i a = _mm256_madd_epi16(taps_01, _mm256_load_si256((const void *)weights[0]));
	__m256i b = _mm256_madd_epi16(taps_23, _mm256_load_si256((const void *)weights[1]));

	return _mm256_add_epi32(sum, _mm256_add_epi32(a, b));
}

/* The channels of two pixels, as integers. */
LEAT_AVX2_INLINE __m256i
sum_two(const uint8_t *a, const uint8_t *b, const struct two_pixels *two, size_t count, struct order order,
        size_t channels)
{
	__m256i low = _mm256_set1_epi32(1 << (LEAT_FIXED_BITS - 1)), high = _mm256_setzero_si256();

	for (size_t q = 0; q < count; q++, two += 2) {
		__m256i bytes = _mm256_set_m128i(_mm_loadu_si128((const void *)(b + q * FOUR * channels)),
		                                 _mm_loadu_si128((const void *)(a + q * FOUR * channels)));
		__m256i taps_01 = _mm256_shuffle_epi8(bytes, order.taps_01);
		__m256i taps_23 = _mm256_shuffle_epi8(bytes, order.taps_23);

		low = add_products(low, taps_01, taps_23, two->low);
		high = add_products(high, taps_01, taps_23, two->high);
	}
	return finish(low, high);
}

/* Stores four pixels of 3 or 4 channels: pixels 0 and 1 from `first`, 2 and 3 from `second`. Writes 16 bytes. */
LEAT_AVX2_INLINE void
store_four(uint8_t *out, __m256i first, __m256i second, size_t channels)
{
	const __m128i close_up = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
	__m256i words = _mm256_packs_epi32(first, second), bytes = _mm256_packus_epi16(words, words);
	__m128i four = _mm_unpacklo_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));

	_mm_storeu_si128((void *)out, channels == 3 ? _mm_shuffle_epi8(four, close_up) : four);
}

/* Reads 16 bytes for each group of four taps, and writes up to 16 bytes past the end. */
LEAT_AVX2_INLINE void
resample_row_fours(const uint8_t *row, uint8_t *out, const struct quads *quads, size_t count, size_t width,
                   size_t channels)
{
	const struct order order = order_of(channels);
	const struct two_pixels *two = quads->two;
	const uint32_t *from = quads->from;

	for (size_t x = 0; x < width; x += FOUR, from += FOUR, two += 2 * count, out += FOUR * channels) {
		__m256i first = sum_two(row + from[0], row + from[1], two, count, order, channels);
		__m256i second = sum_two(row + from[2], row + from[3], two + 1, count, order, channels);

		store_four(out, first, second, channels);
	}
}

LEAT_AVX2 static void
resample_row_avx2(const uint8_t *row, uint8_t *out, const struct quads *quads, size_t width, size_t channels)
{
	if (channels == 3 && quads->count == 1)
		resample_row_fours(row, out, quads, 1, width, 3);
	else if (channels == 3 && quads->count == 2)
		resample_row_fours(row, out, quads, 2, width, 3);
	else if (channels == 3)
		resample_row_fours(row, out, quads, quads->count, width, 3);
	else
		resample_row_fours(row, out, quads, quads->count, width, 4);
}
#else
size_t
leat_resample_u8_quads(size_t width, size_t max)
{
	(void)width, (void)max;
	return 0;
}
#endif

/* ---- vertical ---- */

/* Horizontally resampled input rows: row y is in line y % lines. */
struct ring {
	uint8_t *line;
	size_t bytes; /* of a line */
	size_t lines;
	size_t next; /* next row to make; earlier ones are there or no longer needed */
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
/* 32 bytes; `line` points to them in the first row. */
LEAT_AVX2_INLINE __m256i
add_vector(const struct ring *ring, const uint8_t *line, uint32_t count, const struct leat_weight_pair *pair)
{
	const __m256i zero = _mm256_setzero_si256(), half = _mm256_set1_epi32(1 << (LEAT_FIXED_BITS - 1));
	__m256i low[4] = {half, half, half, half}, high[4] = {zero, zero, zero, zero};

	for (uint32_t t = 0; t < count; t += 2, pair++) {
		/* With an odd number of rows, any row will do as the last second: its weight is 0. */
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

/* Returns the number of bytes done. */
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

/* Bytes `begin` to `count`. */
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

/* Row `at` of the input, with `padding` readable bytes after it; a copy in `row` if the image ends before. */
static const uint8_t *
readable_row(const struct leat_view *in, size_t at, uint8_t *row, size_t padding)
{
	const size_t bytes = (size_t)in->width * in->channels;

	const uint8_t *from = leat_view_row(in, at);

	if (in->rows || ((size_t)in->height - 1 - at) * in->stride >= padding)
		return from;
	memcpy(row, from, bytes);
	memset(row + bytes, 0, padding);
	return row;
}

void
leat_resample_u8(const struct leat_view *in, const struct leat_sink *sink, const struct leat_taps *xs,
                 const struct leat_taps *ys, uint8_t *row, uint8_t *ring_bytes, void *memory)
{
	const size_t width = (size_t)sink->part.width, bytes = width * in->channels;
	const size_t padding = leat_resample_u8_padding(in->channels, xs->max);
	const bool use_quads = memory && in->channels >= 3;
	struct ring ring = {ring_bytes, line_bytes(width, in->channels), ys->max, 0};
#if LEAT_X86
	struct quads quads = {0};

	if (use_quads)
		quads = make_quads(memory, xs, width, in->channels);
#endif
	for (int64_t y = 0; y < sink->part.height; y++) {
		const struct leat_span *span = &ys->span[y];
		const struct leat_weight_pair *pair = ys->weight.pair + (size_t)y * ys->max / 2;
		uint8_t *out = leat_sink_row(sink, y);
		size_t done = 0;

		ring.next = ring.next < span->first ? span->first : ring.next;
		for (; ring.next < span->first + span->count; ring.next++) {
			const uint8_t *from = readable_row(in, ring.next, row, padding);

#if LEAT_X86
			if (use_quads)
				resample_row_avx2(from, line_of(&ring, ring.next), &quads, width, in->channels);
#endif
			if (!use_quads)
				resample_row(from, line_of(&ring, ring.next), xs, width, in->channels);
		}
#if LEAT_X86
		if (memory)
			done = add_rows_avx2(&ring, span, pair, out, bytes);
#endif
		add_rows(&ring, span, pair, out, done, bytes);
		leat_sink_commit(sink, y);
	}
}
