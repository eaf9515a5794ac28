/* feed.c - Leat as a contender: remote_feed SPEC EPOCHS STEP_MS THREADS [SECONDS]
 *
 * Opens the feed, says "open SECONDS" and waits for a line, so that the harness can start its
 * clock and its counts. Then it takes all batches, or those of SECONDS, sleeping STEP_MS after each
 * as a device would compute, and prints one line for each, "batch SECONDS ROWS WAITED", and at the end
 * "end SECONDS ROWS WAITED CPU_SECONDS". Settings of stores come from the environment. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "leat.h"

enum { BATCHES = 1 << 16 };

static struct {
	double at, waited;
	int64_t rows;
} taken[BATCHES];

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double
cpu_seconds(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
	       1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

static int
take_batches(struct leat_feed *feed, int epochs, double step_ms, double begin, double seconds)
{
	struct timespec step = {(time_t)(step_ms / 1000), (long)(step_ms * 1e6) % 1000000000};
	struct leat_batch *batch;
	struct leat_err why;
	int batches = 0;

	while (epochs > 0 && batches < BATCHES && now() < begin + seconds) {
		double from = now();
		enum leat_status status = leat_next(feed, &batch, &why);

		if (status == LEAT_DONE)
			break;
		if (status == LEAT_END) {
			epochs--;
			continue;
		}
		if (status != LEAT_OK)
			errx(1, "%s", why.text);
		taken[batches].at = now() - begin;
		taken[batches].waited = now() - from;
		taken[batches++].rows = leat_batch_count(batch);
		leat_release(batch);
		if (step_ms > 0)
			nanosleep(&step, NULL);
	}
	return batches;
}

int
main(int argc, char **argv)
{
	double begin = now(), cpu, waited = 0, end;
	struct leat_options options;
	struct leat_feed *feed;
	struct leat_err why;
	int64_t rows = 0;
	int batches;

	if (argc != 5 && argc != 6)
		errx(2, "usage: remote_feed SPEC EPOCHS STEP_MS THREADS [SECONDS]");
	leat_options_init(&options);
	options.threads = (unsigned)atoi(argv[4]);
	options.seed = 1;
	options.epochs = (uint64_t)atoi(argv[2]); /* nothing beyond them is read ahead */
	if (leat_open(argv[1], &options, &feed, &why) != LEAT_OK)
		errx(1, "%s", why.text);
	printf("open %.6f\n", now() - begin);
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	begin = now();
	cpu = cpu_seconds();
	batches = take_batches(feed, atoi(argv[2]), atof(argv[3]), begin, argc == 6 ? atof(argv[5]) : 1e9);
	end = now() - begin;
	cpu = cpu_seconds() - cpu;
	for (int i = 0; i < batches; i++) {
		printf("batch %.6f %lld %.6f\n", taken[i].at, (long long)taken[i].rows, taken[i].waited);
		waited += taken[i].waited;
		rows += taken[i].rows;
	}
	printf("end %.6f %lld %.6f %.6f\n", end, (long long)rows, waited, cpu);
	leat_close(feed);
	return 0;
}
