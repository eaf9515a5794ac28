/* tiny.c - what handing over a batch costs: the time of leat_next and leat_release
 *
 *	bench_tiny SPEC THREADS BATCHES
 *
 * Takes a quarter of BATCHES first, which do not count, and prints the nanoseconds of a batch by the clock and
 * of processor time, all threads. The samples should be so small that nothing else costs anything. */
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "leat.h"

static double
now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void
take(struct leat_feed *feed, uint64_t batches)
{
	struct leat_batch *batch;
	struct leat_err why;

	while (batches > 0) {
		enum leat_status status = leat_next(feed, &batch, &why);

		if (status == LEAT_END)
			continue;
		if (status != LEAT_OK)
			errx(1, "%s", why.text);
		leat_release(batch);
		batches--;
	}
}

int
main(int argc, char **argv)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct leat_err why;
	uint64_t batches;
	double wall, cpu;

	if (argc != 4 || (batches = strtoull(argv[3], NULL, 10)) == 0)
		errx(2, "usage: bench_tiny SPEC THREADS BATCHES");
	leat_options_init(&options);
	options.threads = (unsigned)atoi(argv[2]);
	if (leat_open(argv[1], &options, &feed, &why) != LEAT_OK)
		errx(1, "%s", why.text);
	take(feed, batches / 4);
	wall = now_ns(CLOCK_MONOTONIC);
	cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	take(feed, batches);
	wall = now_ns(CLOCK_MONOTONIC) - wall;
	cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	printf("%.1f %.1f\n", wall / (double)batches, cpu / (double)batches);
	leat_close(feed);
	return 0;
}
