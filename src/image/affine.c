/* affine.c - several pointwise steps in one pass
 *
 * The image is walked in short runs that stay in the first-level cache (or in registers): a run is
 * converted, goes through all steps and is written. Interleaved channels need no modulo: the run's
 * length is a multiple of every number of channels, and each step's numbers are spread over a run
 * beforehand, so that the inner loops are plain vector code. No contraction to fused multiply-add:
 * the sum of a step is rounded after the product was, on every machine. */
#include "image/affine.h"

#include <string.h>

/* A multiple of 1, 2, 3 and 4 channels, and of the width of a vector. */
enum { RUN = 96, MAX_STEPS = 8 };

struct spread {
	float mul[RUN], add[RUN];
};

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

/* Elements [first, first + count) of `in`; channel of element first + i is that of spread place i % RUN. */
static void
apply(const struct leat_datum *in, float *out, size_t first, size_t count, const struct spread *spread, int steps)
{
	float run[RUN] = {0};

	for (size_t done = 0; done < count; done += RUN) {
		size_t n = count - done < RUN ? count - done : RUN;

		load(run, in->data, in->dtype, first + done, n);
		for (int s = 0; s < steps; s++)
			for (int i = 0; i < RUN; i++)
				run[i] = spread[s].mul[i] * run[i] + spread[s].add[i];
		memcpy(out + first + done, run, n * sizeof(*run));
	}
}

/* Up to MAX_STEPS steps. `channels` are interleaved in each of `planes`, which differ in channel too. */
static void
apply_some(const struct leat_datum *in, float *out, size_t planes, size_t plane, size_t channels,
           const struct leat_affine *step, int steps)
{
	struct spread spread[MAX_STEPS];

	for (size_t p = 0; p < planes; p++) {
		for (int s = 0; s < steps; s++) {
			for (size_t i = 0; i < RUN; i++) {
				spread[s].mul[i] = step[s].mul[p + i % channels];
				spread[s].add[i] = step[s].add[p + i % channels];
			}
		}
		apply(in, out, p * plane, plane, spread, steps);
	}
}

void
leat_affine_apply(const struct leat_datum *in, const struct leat_datum *out, enum leat_layout layout,
                  const struct leat_affine *step, int steps)
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

		apply_some(from, out->data, planes, count / planes, channels, step, some);
		from = out;
		step += some;
		steps -= some;
	} while (steps > 0);
}
