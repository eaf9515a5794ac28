/* trace.h - what a feed gave: every sample by epoch and position, with the SHA-256 of its fields
 *
 * Two feeds gave the same if their traces are equal. One thread. */
#ifndef TEST_TRACE_H
#define TEST_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "leat.h"

struct trace_sample {
	uint64_t epoch, position;
	uint8_t hash[LEAT_SHA256_BYTES];
};

struct trace_batch {
	uint64_t epoch;
	int64_t count, valid; /* rows, and those that are neither repeats nor padding */
};

struct trace {
	struct trace_sample *sample; /* without repeats and padding, in the order they came */
	size_t samples, samples_cap;
	struct trace_sample *repeat; /* those with `valid` 0 */
	size_t repeats, repeats_cap;
	struct trace_batch *batch;
	size_t batches, batches_cap;
	size_t ends;             /* how often LEAT_END was seen */
	enum leat_status status; /* that ended it; LEAT_OK: enough batches */
	struct leat_err err;
};

/* Options for tests: what the environment says does not count. */
void trace_options(struct leat_options *options);

/* Takes batches until `batches` more have come (0: no limit) or the feed ends; appends to the trace. Padding
 * has to be zeros. */
void trace_take(struct trace *trace, struct leat_feed *feed, size_t batches);
void trace_add(struct trace *trace, const struct leat_feed *feed, const struct leat_batch *batch);
void trace_free(struct trace *trace);

/* Opens, takes all, closes. The feed must open. */
void trace_run(struct trace *trace, const char *spec, const struct leat_options *options);
struct leat_feed *trace_open(const char *spec, const struct leat_options *options);

/* Fails the test, naming `what`, if two traces are not the same. */
void trace_compare(const struct trace *a, const struct trace *b, const char *what);
/* The samples alone, not how they lay in batches. */
void trace_compare_samples(const struct trace *a, const struct trace *b, const char *what);
/* Adds the samples of one rank to those of the others, in plan order when all are there. */
void trace_join(struct trace *to, const struct trace *rank);
/* Appends what another feed gave afterwards. */
void trace_append(struct trace *to, const struct trace *rest);

/* The least memory that `spec` opens with, taken from the error's text. */
size_t trace_least_memory(const char *spec, const struct leat_options *options);

/* Runs under sanitizers do less. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SLOW 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TEST_SLOW 1
#endif
#endif
#ifndef TEST_SLOW
#define TEST_SLOW 0
#endif

#endif
