/* test_throttle.c - servers that are asked for too much: 503s, limits, outages and timeouts, counted at the server */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>

#include "store/remote.h"
#include "store/settings.h"
#include "support/web.h"

/* BUSY: requests that a busy machine may take for hanging ones, and repeat. */
enum { READS = 1500, LENGTH = 1000, BUSY = 100 };

static struct leat_mem mem;
static struct leat_stores stores;
static struct leat_storage storage;
static struct leat_object object;
static unsigned char data[100000];
static char uri[160];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t one_done = PTHREAD_COND_INITIALIZER;
static struct leat_read reads[READS];
static unsigned char into[READS][LENGTH];
static int times_done[READS], done;

/* With `requests` in flight at most (0: automatic), and without second requests. Nothing ends for want of time. */
static void
open_stores(int requests)
{
	struct leat_store *store;

	leat_storage_init(&storage);
	storage.requests = requests;
	storage.hedge = false;
	storage.timeout = 5000;
	storage.patience = 10000;
	storage.given = UINT32_MAX;
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	stores.storage = &storage;
	assert_int_equal(leat_stores_find(&stores, uri, &store, NULL, NULL), LEAT_OK);
	assert_int_equal(store->kind->look(store, uri, &object, NULL), LEAT_OK);
}

static int
start(void **state)
{
	(void)state;
	web_start();
	web_put_data(uri, sizeof(uri), data, sizeof(data));
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	leat_stores_close(&stores);
	assert_int_equal(mem.used, 0);
	web_stop();
	return 0;
}

static void
count_done(struct leat_read *read)
{
	pthread_mutex_lock(&lock);
	times_done[read - reads]++;
	done++;
	pthread_cond_signal(&one_done);
	pthread_mutex_unlock(&lock);
}

static uint64_t
offset_of(int i)
{
	return (uint64_t)i * 61 % (sizeof(data) - LENGTH);
}

static void
submit_all(int count)
{
	memset(times_done, 0, sizeof(times_done));
	memset(into, 0, sizeof(into));
	done = 0;
	for (int i = 0; i < count; i++) {
		reads[i] = (struct leat_read){.object = object,
		                              .offset = offset_of(i),
		                              .iov = {{into[i], LENGTH}},
		                              .iovs = 1,
		                              .done = count_done};
		assert_int_equal(object.store->kind->submit(object.store, &reads[i]), LEAT_OK);
	}
}

/* Every read is done once and has its bytes. */
static void
wait_for_all(int count)
{
	pthread_mutex_lock(&lock);
	while (done < count)
		pthread_cond_wait(&one_done, &lock);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < count; i++) {
		assert_int_equal(times_done[i], 1);
		assert_int_equal(reads[i].status, LEAT_OK);
		assert_memory_equal(into[i], data + offset_of(i), LENGTH);
	}
}

/* Returns the requests that the server has seen for it. */
static int
read_all(int count)
{
	int before = web_counts().requests;

	submit_all(count);
	wait_for_all(count);
	return web_counts().requests - before;
}

static struct leat_origin_counts
counts(void)
{
	struct leat_origin_counts result;

	assert_true(leat_remote_counts(object.store, &result));
	return result;
}

/* ---- limits ---- */

static void
the_users_limit_is_never_exceeded(void **state)
{
	static const int limits[] = {1, 3, 7, 50};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		int before = web_counts().connections, count = limits[i] < 7 ? 200 : READS;

		open_stores(limits[i]);
		web_set_delay(limits[i] < 7 ? 1 : 3);
		assert_in_range(read_all(count), count, count + BUSY);
		assert_in_range(web_counts().most_busy, 1, limits[i]);
		assert_in_range(web_counts().connections - before, 1, limits[i] + BUSY);
		/* The server may see a connection that replaces another before it sees that one end. */
		assert_in_range(web_counts().most_open, 1, 2 * limits[i]);
		assert_in_range(counts().most_in_flight, 1, limits[i]);
		assert_int_equal(object.store->in_flight, limits[i]);
		leat_stores_close(&stores);
	}
	open_stores(0);
}

static void
a_server_that_refuses_more_gets_less(void **state)
{
	int requests;

	(void)state;
	open_stores(0);
	web_set_delay(5);
	web_set_crowd(8);
	requests = read_all(READS);
	assert_in_range(requests - web_counts().refused, READS, READS + BUSY);
	assert_int_equal(counts().throttled, web_counts().refused);
	printf("%d requests for %d reads, %d refused, %d at most at a time\n", requests, READS, web_counts().refused,
	       web_counts().most_busy);
	assert_true(web_counts().refused < READS / 2);
}

/* ---- outages ---- */

/* Many reads wait, but only those that were in flight and a few probes ask in vain. */
static void
while_all_are_refused_only_probes_go_out(void **state)
{
	enum { IN_VAIN = 34 };

	(void)state;
	open_stores(32);
	read_all(100);
	web_set_trouble(NULL, WEB_BUSY, IN_VAIN);
	assert_in_range(read_all(READS), READS + IN_VAIN, READS + IN_VAIN + BUSY);
	assert_int_equal(counts().throttled, IN_VAIN);
}

/* ---- timeouts ---- */

/* The timeout is set to more than an hour. */
static void
a_request_that_hangs_is_asked_again_soon(void **state)
{
	(void)state;
	open_stores(16);
	read_all(300);
	web_set_trouble(NULL, WEB_HANG, 3);
	assert_in_range(read_all(100), 103, 103 + BUSY);
	assert_in_range(counts().timeouts, 3, 3 + BUSY);
}

/* It answers after 3 s, and it was quick before: requests are given up once, and asked again with more patience; later
 * ones have it from the start. */
static void
a_server_that_becomes_slow_is_not_asked_all_over_again(void **state)
{
	int requests;

	(void)state;
	open_stores(32);
	read_all(300);
	web_set_delay(3000);
	requests = read_all(6);
	assert_in_range(requests, 6, 12);
	requests = read_all(6);
	assert_in_range(requests, 6, 7);
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, start, stop)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SERVER(the_users_limit_is_never_exceeded),
		WITH_SERVER(a_server_that_refuses_more_gets_less),
		WITH_SERVER(while_all_are_refused_only_probes_go_out),
		WITH_SERVER(a_request_that_hangs_is_asked_again_soon),
		WITH_SERVER(a_server_that_becomes_slow_is_not_asked_all_over_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
