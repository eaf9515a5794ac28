/* test_ready.c - runs whose bytes are there come in the order of the plan */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hash.h"
#include "feed/ready.h"

enum { RUNS = 300 };

static struct leat_feed feed;
static struct leat_batch batches[10];
static struct leat_run runs[RUNS];

static int
start(void **state)
{
	(void)state;
	feed.run = runs;
	leat_ready_clear(&feed);
	/* Two epochs of five batches of thirty runs; each batch is in another place than the one before it. */
	for (int i = 0; i < RUNS; i++) {
		struct leat_batch *batch = &batches[i / 30 * 7 % 10];

		batch->epoch = (uint64_t)i / 150;
		batch->begin = (uint64_t)(i % 150 / 30) * 64;
		runs[i].batch = batch;
		runs[i].first_row = i % 30 * 2;
	}
	return 0;
}

static void
they_come_oldest_first(void **state)
{
	(void)state;
	for (int i = 0; i < RUNS; i++)
		leat_ready_push(&feed, &runs[i * 7 % RUNS]);
	for (int i = 0; i < RUNS; i++)
		assert_ptr_equal(leat_ready_pop(&feed), &runs[i]);
	assert_null(leat_ready_pop(&feed));
}

/* Whatever is pushed and popped between: always the oldest of those that are there. */
static void
so_they_do_in_any_order_of_events(void **state)
{
	bool there[RUNS] = {false};
	uint64_t random = 1;
	int count = 0;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		int at = (int)((random = leat_mix64(random + 1)) % RUNS), oldest = 0;

		if (!there[at]) {
			leat_ready_push(&feed, &runs[at]);
			there[at] = true;
			count++;
			continue;
		}
		while (!there[oldest])
			oldest++;
		assert_ptr_equal(leat_ready_pop(&feed), &runs[oldest]);
		there[oldest] = false;
		assert_int_equal(feed.ready_count, --count);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(they_come_oldest_first, start),
		cmocka_unit_test_setup(so_they_do_in_any_order_of_events, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
