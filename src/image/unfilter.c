/* unfilter.c - see unfilter.h
 *
 * A filter predicts each byte from its neighbors to the left (a), above (b) and above left (c). The prediction needs
 * the finished byte to the left, so a row is a dependency chain, and its latency is what counts. With AVX2, pixels of 3
 * to 8 bytes go through the chain whole, taken from blocks of 12 or 16 bytes. For smaller pixels only two filters are
 * vectorized: sub, by a prefix sum, and up, which has no chain.
 *
 * Two Paeth rows are two chains; the lower may follow two pixels behind the upper. Each takes half of a vector, and
 * both together take hardly longer than one.
 *
 * Any thread. */
#include "image/unfilter.h"

#include <string.h>

#include "image/cpu.h"
#include "image/plain.h"

/* Whichever of a, b, c is closest to a + b - c; of equals, the first. That is c if c is in the middle third between a
 * and b, else the one of a and b that is farther from c. */
static inline uint8_t
paeth(int a, int b, int c)
{
	int low = a < b ? a : b, high = a < b ? b : a, pivot = 3 * c - a - b;

	return (uint8_t)(pivot <= low ? high : pivot >= high ? low : c);
}

static inline void
plain(unsigned filter, size_t step, const uint8_t *in, const uint8_t *above, uint8_t *out, size_t count)
{
	switch (filter) {
	case LEAT_FILTER_SUB:
		for (size_t i = 0; i < count; i++)
			out[i] = (uint8_t)(in[i] + (i < step ? 0 : out[i - step]));
		break;
	case LEAT_FILTER_UP:
		for (size_t i = 0; i < count; i++)
			out[i] = (uint8_t)(in[i] + above[i]);
		break;
	case LEAT_FILTER_AVERAGE:
		for (size_t i = 0; i < count; i++)
			out[i] = (uint8_t)(in[i] + (((i < step ? 0 : out[i - step]) + above[i]) >> 1));
		break;
	case LEAT_FILTER_PAETH:
		for (size_t i = 0; i < count; i++)
			out[i] = (uint8_t)(in[i] +
			                   (i < step ? above[i] : paeth(out[i - step], above[i], above[i - step])));
		break;
	default:
		memmove(out, in, count);
	}
}

void
leat_unfilter_plain(unsigned filter, size_t step, const uint8_t *in, const uint8_t *above, uint8_t *out, size_t count)
{
	plain(filter, step, in, above, out, count);
}

#if LEAT_X86
/* At offset 16 - n: the shuffle that moves a vector up by n bytes and fills with zeros. */
static const uint8_t moves[32] = {
	0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, /**/
	0,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,   13,   14,   15,
};

LEAT_AVX2_INLINE __m128i
load(const uint8_t *at)
{
	return _mm_loadu_si128((const __m128i *)at);
}

LEAT_AVX2_INLINE __m128i
move_up(__m128i x, size_t n)
{
	return _mm_shuffle_epi8(x, load(moves + 16 - n));
}

/* Bytes per block: as many whole pixels as fit in 16, but at most four of 3 bytes or two of 6. */
#define BLOCK(step) ((step) % 3 ? (size_t)16 : (size_t)12)

LEAT_AVX2_INLINE void
store_block(uint8_t *at, __m128i x, size_t step)
{
	if (step % 3) {
		_mm_storeu_si128((__m128i *)at, x);
	} else {
		int last = _mm_extract_epi32(x, 2);

		_mm_storel_epi64((__m128i *)at, x);
		memcpy(at + 8, &last, 4);
	}
}

/* Pixels of 3 and 6 bytes are padded to 4 and 8 in registers. */
LEAT_AVX2_INLINE __m128i
pad_pixels(__m128i x, size_t step)
{
	if (step == 3)
		return _mm_shuffle_epi8(x, _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1));
	if (step == 6)
		return _mm_shuffle_epi8(x, _mm_setr_epi8(0, 1, 2, 3, 4, 5, -1, -1, 6, 7, 8, 9, 10, 11, -1, -1));
	return x;
}

LEAT_AVX2_INLINE __m128i
unpad_pixels(__m128i x, size_t step)
{
	if (step == 3)
		return _mm_shuffle_epi8(x, _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
	if (step == 6)
		return _mm_shuffle_epi8(x, _mm_setr_epi8(0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, -1, -1, -1, -1));
	return x;
}

/* Prefix sums of pixels, bytewise; `last`: the pixel before the block, repeated. */
LEAT_AVX2_INLINE __m128i
sub_block(__m128i x, __m128i last, size_t step)
{
	for (size_t n = step; n < BLOCK(step); n *= 2)
		x = _mm_add_epi8(x, move_up(x, n));
	return _mm_add_epi8(x, last);
}

LEAT_AVX2_INLINE void
sub(size_t step, const uint8_t *in, uint8_t *out, size_t count)
{
	__m128i last = _mm_setzero_si128(), repeat;
	uint8_t order[16], rest[16] = {0};
	size_t i = 0;

	for (size_t k = 0; k < 16; k++)
		order[k] = (uint8_t)(BLOCK(step) - step + k % step);
	repeat = load(order);
	for (; i + 16 <= count; i += BLOCK(step)) {
		__m128i x = sub_block(load(in + i), last, step);

		store_block(out + i, x, step);
		last = _mm_shuffle_epi8(x, repeat);
	}
	while (i < count) {
		size_t n = count - i < BLOCK(step) ? count - i : BLOCK(step);
		__m128i x;

		memcpy(rest, in + i, n);
		x = sub_block(load(rest), last, step);
		last = _mm_shuffle_epi8(x, repeat);
		_mm_storeu_si128((__m128i *)rest, x);
		memcpy(out + i, rest, n);
		i += n;
	}
}

LEAT_AVX2_INLINE void
up(const uint8_t *in, const uint8_t *above, uint8_t *out, size_t count)
{
	size_t i = 0;

	for (; i + 32 <= count; i += 32)
		_mm256_storeu_si256((__m256i *)(out + i),
		                    _mm256_add_epi8(_mm256_loadu_si256((const __m256i *)(in + i)),
		                                    _mm256_loadu_si256((const __m256i *)(above + i))));
	for (; i < count; i++)
		out[i] = (uint8_t)(in[i] + above[i]);
}

/* The pixels to the left and above left: bytes for average, 16-bit integers for paeth. */
struct left {
	__m128i a, c;
};

/* _mm_avg_epu8 rounds up, PNG rounds down. */
LEAT_AVX2_INLINE __m128i
average_pixel(__m128i x, __m128i b, struct left *left)
{
	__m128i odd = _mm_and_si128(_mm_xor_si128(left->a, b), _mm_set1_epi8(1));

	left->a = _mm_add_epi8(x, _mm_sub_epi8(_mm_avg_epu8(left->a, b), odd));
	return left->a;
}

LEAT_AVX2_INLINE __m128i
paeth_pixel(__m128i x, __m128i b, struct left *left)
{
	const __m128i a = left->a, c = left->c;
	__m128i low = _mm_min_epi16(a, b), high = _mm_max_epi16(a, b);
	__m128i pivot = _mm_sub_epi16(_mm_sub_epi16(_mm_add_epi16(_mm_add_epi16(c, c), c), b), a);
	__m128i above_low = _mm_cmpgt_epi16(pivot, low), below_high = _mm_cmpgt_epi16(high, pivot);
	/* If neither is true, low equals high. */
	__m128i prediction = _mm_or_si128(_mm_andnot_si128(above_low, high), _mm_andnot_si128(below_high, low));

	prediction = _mm_or_si128(prediction, _mm_and_si128(_mm_and_si128(above_low, below_high), c));
	left->c = b;
	left->a = _mm_add_epi8(x, prediction); /* bytewise: the upper bytes stay 0 */
	return left->a;
}

/* A block of four 4-byte pixels. Each step only uses the lowest pixel of its vectors. */
LEAT_AVX2_INLINE __m128i
average_four(__m128i x, __m128i b, struct left *left)
{
	__m128i p0 = average_pixel(x, b, left);
	__m128i p1 = average_pixel(_mm_srli_si128(x, 4), _mm_srli_si128(b, 4), left);
	__m128i p2 = average_pixel(_mm_srli_si128(x, 8), _mm_srli_si128(b, 8), left);
	__m128i p3 = average_pixel(_mm_srli_si128(x, 12), _mm_srli_si128(b, 12), left);

	return _mm_unpacklo_epi64(_mm_unpacklo_epi32(p0, p1), _mm_unpacklo_epi32(p2, p3));
}

/* A block of two 8-byte pixels. */
LEAT_AVX2_INLINE __m128i
average_two(__m128i x, __m128i b, struct left *left)
{
	__m128i p0 = average_pixel(x, b, left);
	__m128i p1 = average_pixel(_mm_srli_si128(x, 8), _mm_srli_si128(b, 8), left);

	return _mm_unpacklo_epi64(p0, p1);
}

LEAT_AVX2_INLINE __m128i
paeth_four(__m128i x, __m128i b, struct left *left)
{
	const __m128i zero = _mm_setzero_si128();
	__m128i x01 = _mm_unpacklo_epi8(x, zero), x23 = _mm_unpackhi_epi8(x, zero);
	__m128i b01 = _mm_unpacklo_epi8(b, zero), b23 = _mm_unpackhi_epi8(b, zero);
	__m128i p0 = paeth_pixel(x01, b01, left);
	__m128i p1 = paeth_pixel(_mm_srli_si128(x01, 8), _mm_srli_si128(b01, 8), left);
	__m128i p2 = paeth_pixel(x23, b23, left);
	__m128i p3 = paeth_pixel(_mm_srli_si128(x23, 8), _mm_srli_si128(b23, 8), left);

	return _mm_packus_epi16(_mm_unpacklo_epi64(p0, p1), _mm_unpacklo_epi64(p2, p3));
}

LEAT_AVX2_INLINE __m128i
paeth_two(__m128i x, __m128i b, struct left *left)
{
	const __m128i zero = _mm_setzero_si128();
	__m128i p0 = paeth_pixel(_mm_unpacklo_epi8(x, zero), _mm_unpacklo_epi8(b, zero), left);
	__m128i p1 = paeth_pixel(_mm_unpackhi_epi8(x, zero), _mm_unpackhi_epi8(b, zero), left);

	return _mm_packus_epi16(p0, p1);
}

/* The state of two chains: the upper row in the low half of each vector, the lower row, two pixels behind, in the high
 * half. The pixel above one of the lower row is the result of the upper row two steps ago. */
struct two {
	struct left left;
	__m128i older;
};

LEAT_AVX2_INLINE __m128i
two_pixels(__m128i x, __m128i above, struct two *two)
{
	__m128i b = _mm_unpacklo_epi64(above, two->older);

	two->older = two->left.a;
	return paeth_pixel(x, b, &two->left);
}

/* Four steps: x[0] is the upper row, x[1] the lower. */
LEAT_AVX2_INLINE void
two_blocks(size_t step, __m128i *x, __m128i above, struct two *two)
{
	const __m128i zero = _mm_setzero_si128(), upper = pad_pixels(x[0], step), lower = pad_pixels(x[1], step);
	const __m128i x01 = _mm_unpacklo_epi32(upper, lower), x23 = _mm_unpackhi_epi32(upper, lower);
	const __m128i b = pad_pixels(above, step), b01 = _mm_unpacklo_epi8(b, zero), b23 = _mm_unpackhi_epi8(b, zero);
	__m128i p0 = two_pixels(_mm_unpacklo_epi8(x01, zero), b01, two);
	__m128i p1 = two_pixels(_mm_unpackhi_epi8(x01, zero), _mm_srli_si128(b01, 8), two);
	__m128i p2 = two_pixels(_mm_unpacklo_epi8(x23, zero), b23, two);
	__m128i p3 = two_pixels(_mm_unpackhi_epi8(x23, zero), _mm_srli_si128(b23, 8), two);

	x[0] = unpad_pixels(_mm_packus_epi16(_mm_unpacklo_epi64(p0, p1), _mm_unpacklo_epi64(p2, p3)), step);
	x[1] = unpad_pixels(_mm_packus_epi16(_mm_unpackhi_epi64(p0, p1), _mm_unpackhi_epi64(p2, p3)), step);
}

/* The part of a block that is inside the row; the block may begin before the row and end after it. */
struct part {
	size_t row, block, size; /* offset in the row, offset in the block, bytes */
};

LEAT_AVX2_INLINE struct part
part_of(size_t at, size_t lag, size_t block, size_t count)
{
	size_t begin = at < lag ? 0 : at - lag, end = at + block < lag ? 0 : at + block - lag;

	end = end < count ? end : count;
	return (struct part){begin, begin + lag - at, end > begin ? end - begin : 0};
}

LEAT_AVX2_INLINE __m128i
load_part(const uint8_t *row, struct part part)
{
	uint8_t block[16] = {0};

	if (part.size)
		memcpy(block + part.block, row + part.row, part.size);
	return load(block);
}

LEAT_AVX2_INLINE void
store_part(uint8_t *row, struct part part, __m128i x)
{
	uint8_t block[16];

	_mm_storeu_si128((__m128i *)block, x);
	if (part.size)
		memcpy(row + part.row, block + part.block, part.size);
}

LEAT_AVX2_INLINE void
paeth_rows(size_t step, const uint8_t *const in[2], const uint8_t *above, uint8_t *const out[2], size_t count)
{
	const size_t lag = 2 * step;
	struct two two = {{_mm_setzero_si128(), _mm_setzero_si128()}, _mm_setzero_si128()};
	__m128i x[2];

	for (size_t i = 0; i < count + lag; i += BLOCK(step)) {
		if (i && i + 16 <= count) {
			x[0] = load(in[0] + i);
			x[1] = load(in[1] + i - lag);
			two_blocks(step, x, load(above + i), &two);
			store_block(out[0] + i, x[0], step);
			store_block(out[1] + i - lag, x[1], step);
		} else {
			struct part upper = part_of(i, 0, BLOCK(step), count);
			struct part lower = part_of(i, lag, BLOCK(step), count);

			x[0] = load_part(in[0], upper);
			x[1] = load_part(in[1], lower);
			two_blocks(step, x, load_part(above, upper), &two);
			store_part(out[0], upper, x[0]);
			store_part(out[1], lower, x[1]);
		}
	}
}

LEAT_AVX2 static void
paeth_rows_avx2(size_t step, const uint8_t *const in[2], const uint8_t *above, uint8_t *const out[2], size_t count)
{
	if (step == 3)
		paeth_rows(3, in, above, out, count);
	else
		paeth_rows(4, in, above, out, count);
}

LEAT_AVX2_INLINE __m128i
chain_block(bool is_paeth, size_t step, __m128i x, __m128i b, struct left *left)
{
	x = pad_pixels(x, step);
	b = pad_pixels(b, step);
	if (step <= 4)
		x = is_paeth ? paeth_four(x, b, left) : average_four(x, b, left);
	else
		x = is_paeth ? paeth_two(x, b, left) : average_two(x, b, left);
	return unpad_pixels(x, step);
}

LEAT_AVX2_INLINE void
chain(bool is_paeth, size_t step, const uint8_t *in, const uint8_t *above, uint8_t *out, size_t count)
{
	struct left left = {_mm_setzero_si128(), _mm_setzero_si128()};
	uint8_t rest[2][16] = {{0}};
	size_t i = 0;

	for (; i + 16 <= count; i += BLOCK(step))
		store_block(out + i, chain_block(is_paeth, step, load(in + i), load(above + i), &left), step);
	while (i < count) {
		size_t n = count - i < BLOCK(step) ? count - i : BLOCK(step);

		memcpy(rest[0], in + i, n);
		memcpy(rest[1], above + i, n);
		_mm_storeu_si128((__m128i *)rest[0], chain_block(is_paeth, step, load(rest[0]), load(rest[1]), &left));
		memcpy(out + i, rest[0], n);
		i += n;
	}
}

LEAT_AVX2_INLINE void
unfilter_step(unsigned filter, size_t step, const uint8_t *in, const uint8_t *above, uint8_t *out, size_t count)
{
	if (filter == LEAT_FILTER_SUB)
		sub(step, in, out, count);
	else if (filter == LEAT_FILTER_UP)
		up(in, above, out, count);
	else if (filter > LEAT_FILTER_UP && step > 2)
		chain(filter == LEAT_FILTER_PAETH, step, in, above, out, count);
	else
		plain(filter, step, in, above, out, count);
}

LEAT_AVX2 static void
unfilter_avx2(unsigned filter, size_t step, const uint8_t *in, const uint8_t *above, uint8_t *out, size_t count)
{
	switch (step) { /* one instance per pixel size */
	case 1:
		unfilter_step(filter, 1, in, above, out, count);
		break;
	case 2:
		unfilter_step(filter, 2, in, above, out, count);
		break;
	case 3:
		unfilter_step(filter, 3, in, above, out, count);
		break;
	case 4:
		unfilter_step(filter, 4, in, above, out, count);
		break;
	case 6:
		unfilter_step(filter, 6, in, above, out, count);
		break;
	default:
		unfilter_step(filter, 8, in, above, out, count);
	}
}
#endif

void
leat_unfilter(unsigned filter, size_t step, const uint8_t *in, const uint8_t *above, uint8_t *out, size_t count)
{
#if LEAT_X86
	if (leat_cpu_has_avx2()) {
		unfilter_avx2(filter, step, in, above, out, count);
		return;
	}
#endif
	plain(filter, step, in, above, out, count);
}

void
leat_unfilter_two(size_t step, const uint8_t *const in[2], const uint8_t *above, uint8_t *const out[2], size_t count)
{
#if LEAT_X86
	if ((step == 3 || step == 4) && leat_cpu_has_avx2()) {
		paeth_rows_avx2(step, in, above, out, count);
		return;
	}
#endif
	leat_unfilter(LEAT_FILTER_PAETH, step, in[0], above, out[0], count);
	leat_unfilter(LEAT_FILTER_PAETH, step, in[1], out[0], out[1], count);
}
