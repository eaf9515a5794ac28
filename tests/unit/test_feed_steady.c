/* test_feed_steady.c - once it runs, a feed asks for no more memory: nothing per sample, nothing per batch
 *
 * malloc and its relatives are replaced by functions that count. Sanitizers replace them too:
 * there these tests are left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leat.h"
#include "support/data.h"
#include "support/trace.h"

static const size_t counts[] = {500, 500};
static struct data data;

#if !TEST_SLOW && defined(__GLIBC__)
#define COUNTS 1
#define FOR_ALL __attribute__((visibility("default"))) /* libraries are to call these, too */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t align, size_t size);

static atomic_bool counting;
static atomic_ullong by_workers, by_consumer;
static _Thread_local bool is_consumer;

static void
count(void)
{
	if (atomic_load_explicit(&counting, memory_order_relaxed))
		atomic_fetch_add_explicit(is_consumer ? &by_consumer : &by_workers, 1, memory_order_relaxed);
}

FOR_ALL void *
malloc(size_t size)
{
	count();
	return __libc_malloc(size);
}

FOR_ALL void *
calloc(size_t n, size_t size)
{
	count();
	return __libc_calloc(n, size);
}

FOR_ALL void *
realloc(void *block, size_t size)
{
	count();
	return __libc_realloc(block, size);
}

FOR_ALL void *
aligned_alloc(size_t align, size_t size)
{
	count();
	return __libc_memalign(align, size);
}

FOR_ALL int
posix_memalign(void **block, size_t align, size_t size)
{
	count();
	*block = __libc_memalign(align, size);
	return *block ? 0 : ENOMEM;
}
#else
#define COUNTS 0
#endif

DATA_FIXTURE(NULL)

#if COUNTS
static void
take(struct leat_feed *feed, uint64_t samples)
{
	for (uint64_t n = 0; n < samples;) {
		struct leat_batch *batch;
		enum leat_status status = leat_next(feed, &batch, NULL);

		if (status == LEAT_END)
			continue;
		assert_int_equal(status, LEAT_OK);
		n += (uint64_t)leat_batch_count(batch);
		leat_release(batch);
	}
}

/* Requests per 1,000 samples once the feed has warmed up, of the workers. */
static unsigned long long
requests(const char *rest, unsigned threads)
{
	struct leat_options options;
	struct leat_feed *feed;
	char spec[800], *volatile copy; /* or a compiler leaves the request out */

	trace_options(&options);
	options.epochs = 0;
	options.threads = threads;
	snprintf(spec, sizeof spec, "%s%s", data_source(&data), rest);
	feed = trace_open(spec, &options);
	take(feed, 2000);
	is_consumer = true;
	atomic_store(&by_workers, 0);
	atomic_store(&by_consumer, 0);
	atomic_store(&counting, true);
	take(feed, 4000);
	assert_int_equal(atomic_load(&by_consumer), 0);
	copy = strdup("the C library's own requests are counted, too");
	free(copy);
	assert_int_equal(atomic_load(&by_consumer), 1);
	atomic_store(&counting, false);
	leat_close(feed);
	return atomic_load(&by_workers) / 4;
}

static void
reading_and_parsing_ask_for_nothing(void **state)
{
	static const char *const rests[] = {
		" | batch(16)",
		" | shuffle | batch(16)",
		" | interleave(2) | shuffle(100) | batch(16)",
		" | example(image=bytes, label=int64, tokens=int64[], box=float[4]) | batch(16)",
		(" | shuffle | example(label=int64, tokens=int64[], box=float[4]) | scale(2, field=box) | "
	         "cast(float32, field=tokens) | batch(16)"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof rests / sizeof *rests; i++)
		for (unsigned threads = 1; threads <= 4; threads += 3) {
			unsigned long long n = requests(rests[i], threads);

			if (n)
				fail_msg("%llu requests for memory per 1000 samples of%s", n, rests[i]);
		}
}

/* Only libjpeg, for JPEG files that are rare, makes something with malloc before it can be told of another way. */
static void
decoding_asks_for_nothing(void **state)
{
	unsigned long long n =
		requests(" | example(image=bytes, label=int64) | decode | resize(20, 20) | random_flip | "
	                 "scale(1/255) | random_brightness(0.1) | random_contrast(0.8, 1.2) | batch(16)",
	                 2);

	(void)state;
	if (n)
		fail_msg("decode: %llu requests for memory per 1000 images", n);
}
#endif

int
main(void)
{
	const struct CMUnitTest tests[] = {
#if COUNTS
		cmocka_unit_test(reading_and_parsing_ask_for_nothing),
		cmocka_unit_test(decoding_asks_for_nothing),
#endif
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
