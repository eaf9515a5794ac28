/* burn.c - a step that computes: the same work each time, on a few threads
 *
 * Used to see whether the loader takes CPUs from the step. */
#include "base/clock.h"
#include "base/threads.h"
#include "xray/burn.h"

/* The result is used, so the compiler keeps the loop. */
static void
burn(void *arg, unsigned i)
{
	struct leat_burn *b = arg;
	volatile uint64_t sink;
	uint64_t x = i + 1;

	for (uint64_t k = 0; k < b->work; k++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	sink = x;
	(void)sink;
}

double
leat_burn(struct leat_burn *b)
{
	struct leat_threads group = {0};
	uint64_t begin = leat_now();

	if (b->threads > 1 && leat_threads_start(&group, b->mem, b->threads - 1, "leat-step", burn, b, NULL) != LEAT_OK)
		group = (struct leat_threads){0};
	burn(b, b->threads);
	leat_threads_join(&group);
	return (double)(leat_now() - begin) / 1e6;
}

void
leat_burn_calibrate(struct leat_burn *b, double ms)
{
	double took = 0;

	b->work = 10000;
	while (took < 5 && b->work < UINT64_MAX / 8) {
		b->work *= 2;
		took = leat_burn(b);
	}
	b->work = (uint64_t)((double)b->work * ms / took);
}
