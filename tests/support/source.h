/* source.h - what every source has to keep, and a look at all its samples at once
 *
 * One thread. */
#ifndef TEST_SOURCE_H
#define TEST_SOURCE_H

#include "leat.h"

/* All samples of a spec in one batch; without `batch` in the spec, there are 1000 at most. */
struct whole {
	struct leat_feed *feed;
	struct leat_batch *batch;
	int64_t count;
};

void whole_open(struct whole *whole, const char *spec,
                const struct leat_options *options); /* NULL: options for tests */
void whole_close(struct whole *whole);
struct leat_tensor whole_field(const struct whole *whole, const char *name);
/* Row `i` of a field: its bytes, and how many there are. */
const void *whole_row(const struct whole *whole, const char *name, int64_t i, size_t *len);
/* Row `i` of a field of bytes is this text. */
void whole_expect_text(const struct whole *whole, const char *name, int64_t i, const char *text);

/* The spec, with batch(1) behind it, does not open; the error has this status, and `part` in its sentence. */
void expect_refused(const char *spec, enum leat_status status, const char *part);

/* The same samples with any number of threads and ranks, and after stopping anywhere. `spec` ends before `batch`. */
void promise_same(const char *spec);
void promise_same_with(const char *spec, const char *shuffle); /* for a source that not every shuffle suits */
/* Every request for memory may fail, in turn, from the n-th on: there is an error each time. `before`, if
 * not NULL, is called before each open. */
void promise_memory_errors(const char *spec, void (*before)(void));

#endif
