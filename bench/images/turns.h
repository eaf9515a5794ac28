/* turns.h - how `compare` talks to a contender
 *
 * A contender is a process that goes over the same images for ever. It says "ready" after an
 * epoch that warms it up. Then each line it is sent, "LEAD COUNT", is its turn: it takes LEAD
 * images, so that what it had prepared while it waited is used up, measures the time that
 * COUNT more take, and answers "IMAGES SECONDS". Between turns it stands still. */
#ifndef LEAT_BENCH_IMAGES_TURNS_H
#define LEAT_BENCH_IMAGES_TURNS_H

#include <stdint.h>
#include <stdio.h>
#include <time.h>

static inline double
turns_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* `take` takes at least so many images and says how many it took. */
static inline void
turns_run(uint64_t warm_up, uint64_t (*take)(void *arg, uint64_t images), void *arg)
{
	unsigned long long lead, count;
	double begin;
	uint64_t taken;

	take(arg, warm_up);
	puts("ready");
	fflush(stdout);
	while (scanf("%llu %llu", &lead, &count) == 2) {
		take(arg, lead);
		begin = turns_now();
		taken = take(arg, count);
		printf("%llu %.9f\n", (unsigned long long)taken, turns_now() - begin);
		fflush(stdout);
	}
}

#endif
