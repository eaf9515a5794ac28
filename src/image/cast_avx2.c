/* cast_avx2.c - the casts that pipelines use most: u8 and f32 to f16 and bf16, f32 to u8, and tokens, u16 to i32
 *
 * u8 to f32 is not here: the compiler's loop is limited by memory already. The steps are those of cast.c, on eight
 * elements; F16C is not used because it converts NaNs differently. Any thread. */
#include "image/cast.h"
#include "image/cpu.h"

#if LEAT_X86
LEAT_AVX2_INLINE __m256
load_u8(const uint8_t *in)
{
	return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)in)));
}

/* Values are below 2^16. */
LEAT_AVX2_INLINE void
store_u16(uint16_t *out, __m256i x)
{
	__m128i low = _mm256_castsi256_si128(x), high = _mm256_extracti128_si256(x, 1);

	_mm_storeu_si128((__m128i *)out, _mm_packus_epi32(low, high));
}

LEAT_AVX2_INLINE __m256i
f16_of(__m256 x)
{
	const __m256i bits = _mm256_castps_si256(x);
	const __m256i sign = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(0x8000));
	const __m256i rest = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff)),
		      half = _mm256_set1_epi32(0x3f000000);
	__m256i odd = _mm256_and_si256(_mm256_srli_epi32(rest, 13), _mm256_set1_epi32(1));
	__m256i out = _mm256_srli_epi32(
		_mm256_add_epi32(rest, _mm256_add_epi32(odd, _mm256_set1_epi32(0xfff - 0x38000000))), 13);
	__m256i small = _mm256_castps_si256(_mm256_add_ps(_mm256_castsi256_ps(rest), _mm256_castsi256_ps(half)));

	small = _mm256_sub_epi32(small, half);
	out = _mm256_blendv_epi8(out, small, _mm256_cmpgt_epi32(_mm256_set1_epi32(0x38800000), rest));
	out = _mm256_blendv_epi8(out, _mm256_set1_epi32(0x7c00),
	                         _mm256_cmpgt_epi32(rest, _mm256_set1_epi32(0x477fefff)));
	out = _mm256_blendv_epi8(out, _mm256_set1_epi32(0x7e00),
	                         _mm256_cmpgt_epi32(rest, _mm256_set1_epi32(0x7f800000)));
	return _mm256_or_si256(out, sign);
}

LEAT_AVX2_INLINE __m256i
bf16_of(__m256 x)
{
	const __m256i bits = _mm256_castps_si256(x), upper = _mm256_srli_epi32(bits, 16);
	__m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
	__m256i out = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
	__m256i is_nan = _mm256_cmpgt_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff)),
	                                    _mm256_set1_epi32(0x7f800000));

	return _mm256_blendv_epi8(_mm256_srli_epi32(out, 16), _mm256_or_si256(upper, _mm256_set1_epi32(0x40)), is_nan);
}

/* max_ps returns its second operand for NaN: 0. */
LEAT_AVX2_INLINE __m128i
u8_of(__m256 x)
{
	__m256i whole;
	__m128i pairs;

	x = _mm256_min_ps(_mm256_max_ps(x, _mm256_setzero_ps()), _mm256_set1_ps(255));
	whole = _mm256_cvttps_epi32(x);
	pairs = _mm_packus_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
	return _mm_packus_epi16(pairs, pairs);
}

LEAT_AVX2_INLINE void
store(void *out, enum leat_dtype to, size_t at, __m256 x)
{
	if (to == LEAT_F16)
		store_u16((uint16_t *)out + at, f16_of(x));
	else if (to == LEAT_BF16)
		store_u16((uint16_t *)out + at, bf16_of(x));
	else
		_mm_storel_epi64((__m128i *)((uint8_t *)out + at), u8_of(x));
}

LEAT_AVX2_INLINE size_t
from_u8(const uint8_t *in, void *out, enum leat_dtype to, size_t count)
{
	size_t i = 0;

	for (; i + 8 <= count; i += 8)
		store(out, to, i, load_u8(in + i));
	return i;
}

LEAT_AVX2_INLINE size_t
from_f32(const float *in, void *out, enum leat_dtype to, size_t count)
{
	size_t i = 0;

	for (; i + 8 <= count; i += 8)
		store(out, to, i, _mm256_loadu_ps(in + i));
	return i;
}

LEAT_AVX2_INLINE void
widen_eight(const uint16_t *in, int32_t *out)
{
	_mm256_storeu_si256((__m256i *)(void *)out,
	                    _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)in)));
}

LEAT_AVX2_INLINE size_t
widen_u16(const uint16_t *in, int32_t *out, size_t count)
{
	size_t i = 0;

	for (; i + 32 <= count; i += 32)
		for (size_t k = i; k < i + 32; k += 8)
			widen_eight(in + k, out + k);
	for (; i + 8 <= count; i += 8)
		widen_eight(in + i, out + i);
	return i;
}

LEAT_AVX2 size_t
leat_cast_avx2(const void *in, enum leat_dtype from, void *out, enum leat_dtype to, size_t count)
{
	if (from == LEAT_U8 && to == LEAT_F16)
		return from_u8(in, out, LEAT_F16, count);
	if (from == LEAT_U8 && to == LEAT_BF16)
		return from_u8(in, out, LEAT_BF16, count);
	if (from == LEAT_F32 && to == LEAT_F16)
		return from_f32(in, out, LEAT_F16, count);
	if (from == LEAT_F32 && to == LEAT_BF16)
		return from_f32(in, out, LEAT_BF16, count);
	if (from == LEAT_F32 && to == LEAT_U8)
		return from_f32(in, out, LEAT_U8, count);
	if (from == LEAT_U16 && to == LEAT_I32)
		return widen_u16(in, out, count);
	return 0;
}
#else
size_t
leat_cast_avx2(const void *in, enum leat_dtype from, void *out, enum leat_dtype to, size_t count)
{
	(void)in, (void)from, (void)out, (void)to, (void)count;
	return 0;
}
#endif
