/* affine.c - several pointwise steps in one pass
 *
 * Elements are processed in short runs that stay in L1 or in registers: a run is converted, goes through all steps and
 * is written. The length of a run is a multiple of every number of channels, and each step is spread over a run
 * beforehand, so the inner loops need no modulo and vectorize. Products and sums are never fused into FMA: both are
 * rounded, on every machine. */
#include "image/plain.h"

#include <string.h>

#include "image/cpu.h"

/* AHEAD: prefetch distance in floats. The result is usually a batch that is not in any cache; prefetching it makes
 * images a few percent faster. */
enum { RUN = LEAT_AFFINE_RUN, MAX_STEPS = 8, AHEAD = 384 };

struct leat_affine
leat_affine_uniform(float mul, float add)
{
	struct leat_affine step;

	for (int c = 0; c < LEAT_MAX_CHANNELS; c++) {
		step.mul[c] = mul;
		step.add[c] = add;
	}
	return step;
}

void
leat_affine_spread(struct leat_affine_spread *spread, const struct leat_affine *step, int steps, size_t first,
                   size_t channels)
{
	for (int s = 0; s < steps; s++) {
		for (size_t i = 0; i < RUN; i++) {
			spread[s].mul[i] = step[s].mul[first + i % channels];
			spread[s].add[i] = step[s].add[first + i % channels];
		}
	}
}

static void
load(float *run, const void *in, enum leat_dtype dtype, size_t at, size_t count)
{
	if (dtype == LEAT_U8) {
		const uint8_t *bytes = (const uint8_t *)in + at;

		for (size_t i = 0; i < count; i++)
			run[i] = bytes[i];
	} else {
		memcpy(run, (const float *)in + at, count * sizeof(*run));
	}
}

static void
apply(const void *in, enum leat_dtype dtype, float *out, size_t count, const struct leat_affine_spread *spread,
      int steps)
{
	float run[RUN] = {0};

	for (size_t done = 0; done < count; done += RUN) {
		size_t n = count - done < RUN ? count - done : RUN;

		load(run, in, dtype, done, n);
		for (int s = 0; s < steps; s++)
			for (int i = 0; i < RUN; i++)
				run[i] = spread[s].mul[i] * run[i] + spread[s].add[i];
		memcpy(out + done, run, n * sizeof(*run));
	}
}

#if LEAT_X86
LEAT_AVX2_INLINE __m256
load_eight(const void *in, bool is_u8, size_t at)
{
	if (!is_u8)
		return _mm256_loadu_ps((const float *)in + at);
	return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)((const uint8_t *)in + at))));
}

LEAT_AVX2_INLINE __m256
take_steps(__m256 x, const struct leat_affine_spread *spread, int steps, size_t at)
{
	for (int s = 0; s < steps; s++)
		x = _mm256_add_ps(_mm256_mul_ps(_mm256_loadu_ps(spread[s].mul + at), x),
		                  _mm256_loadu_ps(spread[s].add + at));
	return x;
}

/* The end of a row, less than a run: eight at a time, then the rest. */
LEAT_AVX2_INLINE void
apply_end(const void *in, bool is_u8, float *out, size_t count, const struct leat_affine_spread *spread, int steps)
{
	const __m256i ahead = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
	float rest[8] = {0};
	__m256i some;
	__m256 x;
	size_t i = 0;

	for (; i + 8 <= count; i += 8)
		_mm256_storeu_ps(out + i, take_steps(load_eight(in, is_u8, i), spread, steps, i));
	if (i == count)
		return;
	some = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(count - i)), ahead);
	for (size_t k = i; is_u8 && k < count; k++)
		rest[k - i] = ((const uint8_t *)in)[k];
	x = is_u8 ? _mm256_loadu_ps(rest) : _mm256_maskload_ps((const float *)in + i, some);
	_mm256_maskstore_ps(out + i, some, take_steps(x, spread, steps, i));
}

LEAT_AVX2_INLINE void
apply_runs(const void *in, bool is_u8, float *out, size_t count, const struct leat_affine_spread *spread, int steps)
{
	size_t i = 0;

	for (; i + RUN <= count; i += RUN) {
		__m256 x = load_eight(in, is_u8, i), y = load_eight(in, is_u8, i + 8),
		       z = load_eight(in, is_u8, i + 16);

		__builtin_prefetch(out + i + AHEAD, 1);
		__builtin_prefetch(out + i + AHEAD + 16, 1);
		_mm256_storeu_ps(out + i, take_steps(x, spread, steps, 0));
		_mm256_storeu_ps(out + i + 8, take_steps(y, spread, steps, 8));
		_mm256_storeu_ps(out + i + 16, take_steps(z, spread, steps, 16));
	}
	apply_end((const unsigned char *)in + i * (is_u8 ? 1 : sizeof(float)), is_u8, out + i, count - i, spread,
	          steps);
}

/* A loop over the steps costs more than a step: scale and normalize are three. */
LEAT_AVX2_INLINE void
apply_steps(const void *in, bool is_u8, float *out, size_t count, const struct leat_affine_spread *spread, int steps)
{
	if (steps == 0)
		apply_runs(in, is_u8, out, count, spread, 0);
	else if (steps == 1)
		apply_runs(in, is_u8, out, count, spread, 1);
	else if (steps == 2)
		apply_runs(in, is_u8, out, count, spread, 2);
	else if (steps == 3)
		apply_runs(in, is_u8, out, count, spread, 3);
	else
		apply_runs(in, is_u8, out, count, spread, steps);
}

LEAT_AVX2 static void
apply_avx2(const void *in, enum leat_dtype dtype, float *out, size_t count, const struct leat_affine_spread *spread,
           int steps)
{
	if (dtype == LEAT_U8)
		apply_steps(in, true, out, count, spread, steps);
	else
		apply_steps(in, false, out, count, spread, steps);
}
#endif

void
leat_affine_row(const void *in, enum leat_dtype dtype, float *out, size_t count,
                const struct leat_affine_spread *spread, int steps, bool avx2)
{
#if LEAT_X86
	if (avx2) {
		apply_avx2(in, dtype, out, count, spread, steps);
		return;
	}
#endif
	(void)avx2; /* unused on other CPUs */
	apply(in, dtype, out, count, spread, steps);
}

/* Up to MAX_STEPS steps, on `planes` of `plane` elements with `channels` interleaved channels each. */
static void
apply_some(const struct leat_datum *in, float *out, size_t planes, size_t plane, size_t channels,
           const struct leat_affine *step, int steps, bool avx2)
{
	const size_t size = leat_dtype_size(in->dtype);
	struct leat_affine_spread spread[MAX_STEPS];

	for (size_t p = 0; p < planes; p++) {
		leat_affine_spread(spread, step, steps, p, channels);
		leat_affine_row((const unsigned char *)in->data + p * plane * size, in->dtype, out + p * plane, plane,
		                spread, steps, avx2);
	}
}

static void
apply_all(const struct leat_datum *in, const struct leat_datum *out, enum leat_layout layout,
          const struct leat_affine *step, int steps, bool avx2)
{
	size_t count = (size_t)leat_datum_elements(in), planes = 1, channels = 1;
	const struct leat_datum *from = in;

	if (!count)
		return;
	if (layout == LEAT_CHW)
		planes = (size_t)in->shape[0];
	else if (layout == LEAT_HWC)
		channels = (size_t)in->shape[2];
	do {
		int some = steps < MAX_STEPS ? steps : MAX_STEPS;

		apply_some(from, out->data, planes, count / planes, channels, step, some, avx2);
		from = out;
		step += some;
		steps -= some;
	} while (steps > 0);
}

void
leat_affine_apply(const struct leat_datum *in, const struct leat_datum *out, enum leat_layout layout,
                  const struct leat_affine *step, int steps)
{
	apply_all(in, out, layout, step, steps, leat_cpu_has_avx2());
}

void
leat_affine_apply_plain(const struct leat_datum *in, const struct leat_datum *out, enum leat_layout layout,
                        const struct leat_affine *step, int steps)
{
	apply_all(in, out, layout, step, steps, false);
}
