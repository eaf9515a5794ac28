/* affine.c - several pointwise steps in one pass
 *
 * The image is walked in short runs that stay in the first-level cache (or in registers): a run is
 * converted, goes through all steps and is written. Interleaved channels need no modulo: the run's
 * length is a multiple of every number of channels, and each step's numbers are spread over a run
 * beforehand, so that the inner loops are plain vector code. No contraction to fused multiply-add:
 * the sum of a step is rounded after the product was, on every machine. */
#include "image/plain.h"

#include <string.h>

#include "image/cpu.h"

enum { RUN = LEAT_AFFINE_RUN, MAX_STEPS = 8 };

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

/* Elements from `done` on, which is a multiple of RUN. */
static void
apply(const void *in, enum leat_dtype dtype, float *out, size_t done, size_t count,
      const struct leat_affine_spread *spread, int steps)
{
	float run[RUN] = {0};

	for (; done < count; done += RUN) {
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

/* Whole runs; returns how many elements they are. */
LEAT_AVX2_INLINE size_t
apply_runs(const void *in, bool is_u8, float *out, size_t count, const struct leat_affine_spread *spread, int steps)
{
	size_t i = 0;

	for (; i + RUN <= count; i += RUN) {
		__m256 x = load_eight(in, is_u8, i), y = load_eight(in, is_u8, i + 8),
		       z = load_eight(in, is_u8, i + 16);

		for (int s = 0; s < steps; s++) {
			const float *mul = spread[s].mul, *add = spread[s].add;

			x = _mm256_add_ps(_mm256_mul_ps(_mm256_loadu_ps(mul), x), _mm256_loadu_ps(add));
			y = _mm256_add_ps(_mm256_mul_ps(_mm256_loadu_ps(mul + 8), y), _mm256_loadu_ps(add + 8));
			z = _mm256_add_ps(_mm256_mul_ps(_mm256_loadu_ps(mul + 16), z), _mm256_loadu_ps(add + 16));
		}
		_mm256_storeu_ps(out + i, x);
		_mm256_storeu_ps(out + i + 8, y);
		_mm256_storeu_ps(out + i + 16, z);
	}
	return i;
}

LEAT_AVX2 static size_t
apply_avx2(const void *in, enum leat_dtype dtype, float *out, size_t count, const struct leat_affine_spread *spread,
           int steps)
{
	const bool is_u8 = dtype == LEAT_U8;

	if (steps == 1) /* its numbers stay in registers, too */
		return is_u8 ? apply_runs(in, true, out, count, spread, 1)
		             : apply_runs(in, false, out, count, spread, 1);
	return is_u8 ? apply_runs(in, true, out, count, spread, steps)
	             : apply_runs(in, false, out, count, spread, steps);
}
#endif

void
leat_affine_row(const void *in, enum leat_dtype dtype, float *out, size_t count,
                const struct leat_affine_spread *spread, int steps, bool avx2)
{
	size_t done = 0;

#if LEAT_X86
	if (avx2)
		done = apply_avx2(in, dtype, out, count, spread, steps);
#endif
	(void)avx2; /* elsewhere than on x86 */
	apply(in, dtype, out, done, count, spread, steps);
}

/* Up to MAX_STEPS steps. `channels` are interleaved in each of `planes`, which differ in channel too. */
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
