/* window.c - reads in flight over latency: what the window promises, and what comes out
 *
 * Samples of 8 KiB from a store in memory that answers each read 20 ms after it was submitted.
 * By Little's law no loader gets more than window / latency samples a second; the peer here is
 * that bound. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "leat.h"
#include "store/store.h"
#include "support/store_mem.h"

enum { TOKENS = 4096, SAMPLES = 6000, LATENCY_MS = 20, ROUNDS = 5, EPOCHS = 4 };

extern const struct leat_store_kind leat_store_mem;

static void
put_samples(void)
{
	size_t bytes = (size_t)SAMPLES * TOKENS * sizeof(uint16_t);
	uint16_t *tokens = calloc(1, bytes);

	store_mem_put("mem://tokens", tokens, bytes);
	free(tokens);
}

/* Samples a second, from the second epoch on. */
static double
measure(unsigned threads)
{
	struct leat_options options;
	struct leat_batch *batch;
	struct leat_feed *feed;
	struct leat_err err;
	enum leat_status status;
	uint64_t begin = 0, samples = 0;
	int epoch = 0;

	leat_options_init(&options);
	options.threads = threads;
	options.epochs = EPOCHS;
	options.memory = (size_t)512 << 20;
	if (leat_open("tokens('mem://tokens', length=4096) | shuffle | batch(32)", &options, &feed, &err) != LEAT_OK) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	while ((status = leat_next(feed, &batch, &err)) == LEAT_OK || status == LEAT_END) {
		if (status == LEAT_END) {
			if (++epoch == 1)
				begin = leat_now();
			continue;
		}
		samples += epoch > 0 ? (uint64_t)leat_batch_count(batch) : 0;
		leat_release(batch);
	}
	if (status != LEAT_DONE) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	leat_close(feed);
	return (double)samples / ((double)(leat_now() - begin) / 1e9);
}

static int
compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int
main(void)
{
	const struct store_mem_settings settings = {.latency_ns = LATENCY_MS * UINT64_C(1000000)};
	double bound = leat_store_mem.in_flight / (LATENCY_MS / 1000.0);

	put_samples();
	store_mem_set(&settings);
	printf("window %u, latency %d ms, samples of 8 KiB: at most %.0f samples/s\n", leat_store_mem.in_flight,
	       LATENCY_MS, bound);
	for (unsigned threads = 1; threads <= 2; threads++) {
		double rate[ROUNDS];

		for (int i = 0; i < ROUNDS; i++)
			rate[i] = measure(threads);
		qsort(rate, ROUNDS, sizeof *rate, compare);
		printf("%u thread%s: %8.0f samples/s, ratio %.2f (%.2f to %.2f)\n", threads, threads == 1 ? " " : "s",
		       rate[ROUNDS / 2], rate[ROUNDS / 2] / bound, rate[0] / bound, rate[ROUNDS - 1] / bound);
	}
	store_mem_reset();
	return 0;
}
