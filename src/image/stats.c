/* stats.c - statistics of a whole image
 *
 * Floats are summed in double, in LANES lanes: element i is added to lane i % LANES, and the lanes of a channel are
 * added up in ascending order. LANES is a multiple of every number of channels, so each lane belongs to one channel,
 * and the loop vectorizes with the same result on every machine. Bytes are summed in integers, where the order does not
 * matter; below 2^53 the result is that of a sum in double. */
#include "image/plain.h"

#include "image/cpu.h"

enum { LANES = 12 };

static void
sum_u8(const uint8_t *x, size_t count, size_t channels, uint64_t *sum)
{
	for (size_t i = 0; i < count; i += channels)
		for (size_t c = 0; c < channels; c++)
			sum[c] += x[i + c];
}

/* Starts at element `first`, a multiple of LANES. */
static void
sum_f32(const float *x, size_t first, size_t count, double *sum)
{
	size_t i = first;

	for (; i + LANES <= count; i += LANES)
		for (size_t lane = 0; lane < LANES; lane++)
			sum[lane] += (double)x[i + lane];
	for (; i < count; i++)
		sum[i % LANES] += (double)x[i];
}

#if LEAT_X86
/* Bytes per iteration; a multiple of every number of channels. */
enum { BLOCK = 96 };

/* Sums the bytes of one channel in a block; the mask clears the others. */
LEAT_AVX2_INLINE __m256i
add_masked(__m256i sum, const __m256i *x, const uint8_t *mask)
{
	for (size_t v = 0; v < BLOCK / 32; v++) {
		__m256i masked = _mm256_and_si256(x[v], _mm256_loadu_si256((const __m256i *)(mask + 32 * v)));

		sum = _mm256_add_epi64(sum, _mm256_sad_epu8(masked, _mm256_setzero_si256()));
	}
	return sum;
}

/* Returns the number of elements summed. */
LEAT_AVX2_INLINE size_t
sum_blocks(const uint8_t *x, size_t count, size_t channels, uint64_t *sum)
{
	uint8_t mask[LEAT_MAX_CHANNELS][BLOCK];
	__m256i sums[LEAT_MAX_CHANNELS];
	size_t i = 0;

	for (size_t c = 0; c < channels; c++) {
		sums[c] = _mm256_setzero_si256();
		for (size_t k = 0; k < BLOCK; k++)
			mask[c][k] = k % channels == c ? 255 : 0;
	}
	for (; i + BLOCK <= count; i += BLOCK) {
		__m256i block[BLOCK / 32];

		for (size_t v = 0; v < BLOCK / 32; v++)
			block[v] = _mm256_loadu_si256((const __m256i *)(x + i + 32 * v));
		for (size_t c = 0; c < channels; c++)
			sums[c] = add_masked(sums[c], block, mask[c]);
	}
	for (size_t c = 0; c < channels; c++) {
		uint64_t part[4];

		_mm256_storeu_si256((__m256i *)part, sums[c]);
		sum[c] += part[0] + part[1] + part[2] + part[3];
	}
	return i;
}

LEAT_AVX2 static size_t
sum_u8_avx2(const uint8_t *x, size_t count, size_t channels, uint64_t *sum)
{
	return channels == 3 ? sum_blocks(x, count, 3, sum) : sum_blocks(x, count, channels, sum);
}

LEAT_AVX2 static size_t
sum_f32_avx2(const float *x, size_t count, double *sum)
{
	__m256d a = _mm256_setzero_pd(), b = a, c = a;
	size_t i = 0;

	for (; i + LANES <= count; i += LANES) {
		a = _mm256_add_pd(a, _mm256_cvtps_pd(_mm_loadu_ps(x + i)));
		b = _mm256_add_pd(b, _mm256_cvtps_pd(_mm_loadu_ps(x + i + 4)));
		c = _mm256_add_pd(c, _mm256_cvtps_pd(_mm_loadu_ps(x + i + 8)));
	}
	_mm256_storeu_pd(sum, a);
	_mm256_storeu_pd(sum + 4, b);
	_mm256_storeu_pd(sum + 8, c);
	return i;
}
#endif

static void
total_of_u8(const struct leat_datum *image, size_t count, size_t channels, double *total, bool avx2)
{
	uint64_t sum[LEAT_MAX_CHANNELS] = {0};
	size_t done = 0;

	(void)avx2; /* unused on other CPUs */
#if LEAT_X86
	if (avx2)
		done = sum_u8_avx2(image->data, count, channels, sum);
#endif
	sum_u8((const uint8_t *)image->data + done, count - done, channels, sum);
	for (size_t c = 0; c < channels; c++)
		total[c] = (double)sum[c];
}

static void
total_of_f32(const struct leat_datum *image, size_t count, size_t channels, double *total, bool avx2)
{
	double sum[LANES] = {0};
	size_t done = 0;

	(void)avx2;
#if LEAT_X86
	if (avx2)
		done = sum_f32_avx2(image->data, count, sum);
#endif
	sum_f32(image->data, done, count, sum);
	for (size_t c = 0; c < channels; c++)
		for (size_t lane = c; lane < LANES; lane += channels)
			total[c] += sum[lane];
}

static void
channel_means(const struct leat_datum *image, float *mean, bool avx2)
{
	size_t count = (size_t)leat_datum_elements(image), channels = (size_t)image->shape[2];
	double total[LEAT_MAX_CHANNELS] = {0};

	if (image->dtype == LEAT_U8)
		total_of_u8(image, count, channels, total, avx2);
	else
		total_of_f32(image, count, channels, total, avx2);
	for (size_t c = 0; c < channels; c++)
		mean[c] = (float)(total[c] / (double)(count / channels));
}

void
leat_channel_means(const struct leat_datum *image, float *mean)
{
	channel_means(image, mean, leat_cpu_has_avx2());
}

void
leat_channel_means_plain(const struct leat_datum *image, float *mean)
{
	channel_means(image, mean, false);
}
