/* test_threads.c - groups of threads, parallel tasks and the queue */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/threads.h"

/* ---- groups ---- */

enum { MANY = 16 };

struct roll_call {
	atomic_int came[MANY];
	atomic_int handles_signals, misses_faults;
	char name[MANY][16];
};

static void
answer(void *arg, unsigned i)
{
	struct roll_call *roll = arg;
	sigset_t blocked;

	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	if (!sigismember(&blocked, SIGINT) || !sigismember(&blocked, SIGTERM) || !sigismember(&blocked, SIGCHLD))
		atomic_fetch_add(&roll->handles_signals, 1);
	if (sigismember(&blocked, SIGSEGV) || sigismember(&blocked, SIGBUS))
		atomic_fetch_add(&roll->misses_faults, 1);
	pthread_getname_np(pthread_self(), roll->name[i], sizeof(roll->name[i]));
	atomic_fetch_add(&roll->came[i], 1);
}

static void
every_thread_of_a_group_runs_once_with_its_number(void **state)
{
	struct roll_call roll = {0};
	struct leat_threads group;
	struct leat_mem mem;
	sigset_t before, after;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(leat_threads_start(&group, &mem, MANY, "leat-worker", answer, &roll, NULL), LEAT_OK);
	assert_int_equal(group.count, MANY);
	leat_threads_join(&group);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(roll.came[i], 1);
	assert_int_equal(roll.handles_signals, 0);
	assert_int_equal(roll.misses_faults, 0);
	assert_string_equal(roll.name[7], "leat-worke-7");
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_int_equal(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
	assert_int_equal(mem.used, 0);
	leat_threads_join(&group); /* is zeroed now */
}

static void
a_group_of_none_is_fine(void **state)
{
	struct leat_threads group;
	struct leat_mem mem;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	assert_int_equal(leat_threads_start(&group, &mem, 0, "none", answer, NULL, NULL), LEAT_OK);
	leat_threads_join(&group);
	assert_int_equal(mem.used, 0);
}

static void
count_calls(void *arg, unsigned i)
{
	(void)i;
	atomic_fetch_add((atomic_int *)arg, 1);
}

/* gcc has a macro, clang a feature. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

/* More threads than the system has stacks for: the address space is limited for the time of the call. */
static void
a_group_that_cannot_be_whole_runs_nothing(void **state)
{
#ifdef SANITIZED
	(void)state;
	skip(); /* sanitizers need the address space */
#else
	struct rlimit before, tight;
	struct leat_threads group;
	struct leat_mem mem;
	struct leat_err err;
	atomic_int calls = 0;
	enum leat_status status;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	tight = before;
	tight.rlim_cur = (rlim_t)512 << 20;
	assert_int_equal(setrlimit(RLIMIT_AS, &tight), 0);
	status = leat_threads_start(&group, &mem, 1000, "many", count_calls, &calls, &err);
	setrlimit(RLIMIT_AS, &before);
	assert_int_not_equal(status, LEAT_OK);
	assert_int_equal(err.status, status);
	assert_non_null(strstr(err.text, "of 1000 (try fewer threads): "));
	assert_int_equal(calls, 0);
	assert_null(group.crew);
	assert_int_equal(mem.used, 0);
#endif
}

static void
a_group_without_memory_fails(void **state)
{
	struct leat_threads group;
	struct leat_mem mem;
	struct leat_err err;
	atomic_int calls = 0;

	(void)state;
	leat_mem_init(&mem, 10);
	leat_err_clear(&err);
	assert_int_equal(leat_threads_start(&group, &mem, 4, "none", count_calls, &calls, &err), LEAT_LIMIT);
	assert_int_equal(err.status, LEAT_LIMIT);
	leat_threads_join(&group);
	assert_int_equal(calls, 0);
}

/* ---- parallel ---- */

enum { TASKS = 1000 };

struct work {
	atomic_int done[TASKS];
	size_t fails_from; /* every task from here on fails */
	unsigned slow_us;  /* the first failing one takes longer than the others */
};

static enum leat_status
work_on(void *arg, size_t i, struct leat_err *err)
{
	struct work *work = arg;

	atomic_fetch_add(&work->done[i], 1);
	if (i < work->fails_from)
		return LEAT_OK;
	if (i == work->fails_from)
		usleep(work->slow_us);
	return leat_fail(err, i % 2 == 0 ? LEAT_DATA : LEAT_IO, "task %zu failed", i);
}

static void
every_task_is_done_once(void **state)
{
	static const unsigned threads[] = {0, 1, 2, 7, 5000};
	struct leat_mem mem;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	for (size_t t = 0; t < sizeof(threads) / sizeof(threads[0]); t++) {
		size_t count = threads[t] == 5000 ? 20 : TASKS; /* never more threads than tasks */
		struct work work = {.fails_from = TASKS};

		assert_int_equal(leat_parallel(&mem, threads[t], count, work_on, &work, NULL), LEAT_OK);
		for (size_t i = 0; i < TASKS; i++)
			assert_int_equal(work.done[i], i < count);
	}
	assert_int_equal(leat_parallel(&mem, 4, 0, work_on, NULL, NULL), LEAT_OK);
	assert_int_equal(mem.used, 0);
}

static void
the_smallest_failing_task_is_reported_whatever_the_timing(void **state)
{
	struct leat_mem mem;
	struct leat_err err;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	for (int round = 0; round < 50; round++) {
		struct work work = {.fails_from = 100, .slow_us = 500};
		int begun = 0;

		leat_err_clear(&err);
		assert_int_equal(leat_parallel(&mem, 4, TASKS, work_on, &work, &err), LEAT_DATA);
		assert_int_equal(err.status, LEAT_DATA);
		assert_string_equal(err.text, "task 100 failed");
		for (size_t i = 0; i < TASKS; i++)
			begun += work.done[i];
		assert_in_range(begun, 101, 104); /* one per thread at most behind the first failure */
	}
}

static void
parallel_does_without_threads_it_cannot_have(void **state)
{
	struct work work = {.fails_from = TASKS};
	struct leat_mem mem;

	(void)state;
	leat_mem_init(&mem, 0);
	assert_int_equal(leat_parallel(&mem, 4, TASKS, work_on, &work, NULL), LEAT_OK);
	assert_int_equal(work.done[TASKS - 1], 1);
}

static void
parallel_takes_fewer_threads_if_it_cannot_have_all(void **state)
{
	struct work work = {.fails_from = TASKS};
	struct leat_mem mem;

	(void)state;
	leat_mem_init(&mem, 512); /* no room for a group of 63, but for a few */
	assert_int_equal(leat_parallel(&mem, 64, TASKS, work_on, &work, NULL), LEAT_OK);
	assert_int_equal(work.done[TASKS - 1], 1);
	assert_true(mem.peak > 0);
	assert_int_equal(mem.used, 0);
}

/* ---- queue ---- */

static void
a_queue_is_bounded_and_in_order(void **state)
{
	struct leat_queue queue;
	struct leat_mem mem;
	int item[4];

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	assert_int_equal(leat_queue_init(&queue, &mem, 3, NULL), LEAT_OK);
	for (int round = 0; round < 5; round++) { /* wraps around */
		assert_true(leat_queue_push(&queue, &item[0]));
		assert_true(leat_queue_try_push(&queue, &item[1]));
		assert_true(leat_queue_push(&queue, &item[2]));
		assert_false(leat_queue_try_push(&queue, &item[3]));
		assert_ptr_equal(leat_queue_pop(&queue), &item[0]);
		assert_true(leat_queue_push(&queue, &item[3]));
		for (int i = 1; i < 4; i++)
			assert_ptr_equal(leat_queue_pop(&queue), &item[i]);
	}
	leat_queue_free(&queue);
	leat_queue_free(&queue);
	assert_int_equal(mem.used, 0);
}

static void
a_closed_queue_can_be_emptied_but_not_filled(void **state)
{
	struct leat_queue queue;
	struct leat_mem mem;
	int item;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	assert_int_equal(leat_queue_init(&queue, &mem, 2, NULL), LEAT_OK);
	assert_true(leat_queue_push(&queue, &item));
	leat_queue_close(&queue);
	leat_queue_close(&queue);
	assert_false(leat_queue_push(&queue, &item));
	assert_false(leat_queue_try_push(&queue, &item));
	assert_ptr_equal(leat_queue_pop(&queue), &item);
	assert_null(leat_queue_pop(&queue));
	leat_queue_free(&queue);
}

static void
a_queue_needs_room_and_memory(void **state)
{
	struct leat_queue queue;
	struct leat_mem mem;

	(void)state;
	leat_mem_init(&mem, 10);
	assert_int_equal(leat_queue_init(&queue, &mem, 0, NULL), LEAT_INTERNAL);
	leat_queue_free(&queue);
	assert_int_equal(leat_queue_init(&queue, &mem, 100, NULL), LEAT_LIMIT);
	leat_queue_free(&queue);
}

enum { PRODUCERS = 3, CONSUMERS = 3, ITEMS = 5000 };

struct traffic {
	struct leat_queue queue;
	int item[PRODUCERS][ITEMS];
	atomic_int seen[PRODUCERS][ITEMS];
	atomic_int out_of_order;
};

static void
produce(struct traffic *traffic, unsigned producer)
{
	for (int i = 0; i < ITEMS; i++)
		leat_queue_push(&traffic->queue, &traffic->item[producer][i]);
}

/* Items of one producer come to one consumer in the order they were pushed. */
static void
consume(struct traffic *traffic)
{
	ptrdiff_t last[PRODUCERS] = {-1, -1, -1};
	int *item;

	while ((item = leat_queue_pop(&traffic->queue)) != NULL) {
		ptrdiff_t place = item - &traffic->item[0][0], producer = place / ITEMS, i = place % ITEMS;

		atomic_fetch_add(&traffic->seen[producer][i], 1);
		if (i <= last[producer])
			atomic_fetch_add(&traffic->out_of_order, 1);
		last[producer] = i;
	}
}

static void
produce_part(void *arg, unsigned i)
{
	produce(arg, i);
}

static void
consume_part(void *arg, unsigned i)
{
	(void)i;
	consume(arg);
}

static void
nothing_is_lost_or_doubled_between_threads(void **state)
{
	static struct traffic traffic;
	struct leat_threads producers, consumers;
	struct leat_mem mem;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	assert_int_equal(leat_queue_init(&traffic.queue, &mem, 4, NULL), LEAT_OK);
	assert_int_equal(leat_threads_start(&consumers, &mem, CONSUMERS, "pop", consume_part, &traffic, NULL), LEAT_OK);
	assert_int_equal(leat_threads_start(&producers, &mem, PRODUCERS, "push", produce_part, &traffic, NULL),
	                 LEAT_OK);
	leat_threads_join(&producers);
	leat_queue_close(&traffic.queue);
	leat_threads_join(&consumers);
	for (int p = 0; p < PRODUCERS; p++)
		for (int i = 0; i < ITEMS; i++)
			assert_int_equal(traffic.seen[p][i], 1);
	assert_int_equal(traffic.out_of_order, 0);
	leat_queue_free(&traffic.queue);
	assert_int_equal(mem.used, 0);
}

struct waiting {
	struct leat_queue full, empty;
	atomic_int pushed, popped;
};

static void
wait_at_both(void *arg, unsigned i)
{
	struct waiting *waiting = arg;

	if (i % 2 == 0)
		atomic_fetch_add(&waiting->pushed, leat_queue_push(&waiting->full, waiting));
	else
		atomic_fetch_add(&waiting->popped, leat_queue_pop(&waiting->empty) != NULL);
}

static void
closing_wakes_everyone(void **state)
{
	struct waiting waiting = {0};
	struct leat_threads group;
	struct leat_mem mem;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	assert_int_equal(leat_queue_init(&waiting.full, &mem, 1, NULL), LEAT_OK);
	assert_int_equal(leat_queue_init(&waiting.empty, &mem, 1, NULL), LEAT_OK);
	assert_true(leat_queue_push(&waiting.full, &waiting));
	assert_int_equal(leat_threads_start(&group, &mem, 8, "wait", wait_at_both, &waiting, NULL), LEAT_OK);
	usleep(2000);
	leat_queue_close(&waiting.full);
	leat_queue_close(&waiting.empty);
	leat_threads_join(&group);
	assert_int_equal(waiting.pushed, 0);
	assert_int_equal(waiting.popped, 0);
	leat_queue_free(&waiting.full);
	leat_queue_free(&waiting.empty);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_thread_of_a_group_runs_once_with_its_number),
		cmocka_unit_test(a_group_of_none_is_fine),
		cmocka_unit_test(a_group_that_cannot_be_whole_runs_nothing),
		cmocka_unit_test(a_group_without_memory_fails),
		cmocka_unit_test(every_task_is_done_once),
		cmocka_unit_test(the_smallest_failing_task_is_reported_whatever_the_timing),
		cmocka_unit_test(parallel_does_without_threads_it_cannot_have),
		cmocka_unit_test(parallel_takes_fewer_threads_if_it_cannot_have_all),
		cmocka_unit_test(a_queue_is_bounded_and_in_order),
		cmocka_unit_test(a_closed_queue_can_be_emptied_but_not_filled),
		cmocka_unit_test(a_queue_needs_room_and_memory),
		cmocka_unit_test(nothing_is_lost_or_doubled_between_threads),
		cmocka_unit_test(closing_wakes_everyone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
