/* test_hedge.c - second requests for reads whose answer does not come */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/remote.h"
#include "store/wire_loop.h"
#include "support/web.h"

enum { DATA = 200000, MOST = 6000, LENGTH = 700, IN_FLIGHT = 48, BURST = 20 };

static struct leat_mem mem;
static struct leat_stores stores;
static struct leat_object object;
static unsigned char data[DATA];
static char uri[160];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t one_done = PTHREAD_COND_INITIALIZER;
static struct leat_read reads[MOST];
static struct leat_err errors[MOST];
static unsigned char into[MOST][LENGTH];
static int times_done[MOST], submitted, done;

static void
open_stores(void)
{
	struct leat_store *store;

	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	assert_int_equal(leat_stores_find(&stores, uri, &store, NULL, NULL), LEAT_OK);
	assert_int_equal(store->kind->look(store, uri, &object, NULL), LEAT_OK);
}

static void
close_stores(void)
{
	leat_stores_close(&stores);
	assert_int_equal(mem.used, 0);
}

/* With time enough for any machine: nothing here may end by a timeout. */
static int
start(void **state)
{
	(void)state;
	web_start();
	web_put_data(uri, sizeof(uri), data, DATA);
	setenv("LEAT_NET_TIMEOUT", "1000", 1);
	open_stores();
	memset(times_done, 0, sizeof(times_done));
	memset(into, 0, sizeof(into));
	submitted = done = 0;
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	close_stores();
	web_stop();
	return 0;
}

static struct leat_hedging *
hedging(void)
{
	return &leat_remote_of(object.store)->wire->origin->hedging;
}

static int
sent(void)
{
	return (int)atomic_load(&hedging()->sent);
}

static uint64_t
offset_of(int i)
{
	return (uint64_t)i * 997 % (DATA - LENGTH);
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

static void
submit(void)
{
	int i = submitted++;
	struct leat_read *read = &reads[i];

	assert_in_range(i, 0, MOST - 1);
	leat_err_clear(&errors[i]);
	*read = (struct leat_read){.object = object,
	                           .offset = offset_of(i),
	                           .iov = {{into[i], 100}, {into[i] + 100, LENGTH - 100}},
	                           .iovs = 2,
	                           .done = count_done,
	                           .err = &errors[i]};
	assert_int_equal(object.store->kind->submit(object.store, read), LEAT_OK);
}

/* Until at most `most` reads are in flight. */
static void
wait_for(int most)
{
	pthread_mutex_lock(&lock);
	while (submitted - done > most)
		pthread_cond_wait(&one_done, &lock);
	pthread_mutex_unlock(&lock);
}

static int
in_flight(void)
{
	int count;

	pthread_mutex_lock(&lock);
	count = submitted - done;
	pthread_mutex_unlock(&lock);
	return count;
}

static void
read_many(int count)
{
	for (int i = 0; i < count; i++) {
		wait_for(IN_FLIGHT - 1);
		submit();
	}
}

static bool
are_done(int count)
{
	bool all = true;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < count; i++)
		all &= times_done[i] > 0;
	pthread_mutex_unlock(&lock);
	return all;
}

/* Hedges are paid for by requests: a few more, as long as some of these are hanging. */
static void
read_until_all_are_done(void)
{
	int count = submitted;

	while (!are_done(count)) {
		wait_for(IN_FLIGHT - 1);
		submit();
		usleep(5000);
	}
	wait_for(0);
}

static void
check_reads(void)
{
	for (int i = 0; i < submitted; i++) {
		if (reads[i].status != LEAT_OK)
			fail_msg("%s", errors[i].text);
		assert_int_equal(times_done[i], 1);
		assert_memory_equal(into[i], data + offset_of(i), LENGTH);
	}
}

static void
check_budget(void)
{
	assert_in_range(sent(), 0, (int)atomic_load(&hedging()->requests) / 50 + 5);
	assert_in_range(atomic_load(&hedging()->won), 0, sent());
	assert_int_equal(atomic_load(&hedging()->timeouts), 0);
}

static void
a_hanging_request_is_answered_by_a_second_one(void **state)
{
	(void)state;
	web_set_every(97);
	web_set_trouble(NULL, WEB_HANG, -1);
	read_many(4000);
	web_set_trouble(NULL, WEB_NONE, 0);
	read_until_all_are_done();
	check_reads();
	check_budget();
	assert_in_range(sent(), 4000 / 97, MOST);
	assert_true(atomic_load(&hedging()->won) > 0);
}

/* The answer is not known to be late, so it takes some seconds. */
static void
the_first_request_may_hang(void **state)
{
	(void)state;
	web_set_trouble(NULL, WEB_HANG, 1);
	submit();
	wait_for(0);
	check_reads();
	assert_int_equal(atomic_load(&hedging()->won), 1);
}

static void
a_look_that_hangs_is_sent_again(void **state)
{
	int before;

	(void)state;
	read_many(400);
	wait_for(0);
	before = sent();
	web_set_trouble(NULL, WEB_HANG, 1);
	assert_int_equal(object.store->kind->look(object.store, uri, &object, NULL), LEAT_OK);
	assert_true(sent() > before);
}

/* Whichever comes first. On a slow machine, 40 ms may be too little for a hedge. */
static void
two_answers_do_not_write_to_the_same_memory(void **state)
{
	(void)state;
	read_many(500);
	web_set_every(60);
	web_set_trouble(NULL, WEB_LATE, -1);
	read_many(3000);
	wait_for(0);
	check_reads();
	check_budget();
}

static void
hang_from_now_on(int count)
{
	read_many(400);
	wait_for(0);
	web_set_trouble(NULL, WEB_HANG, -1);
	for (int i = 0; i < count; i++)
		submit();
}

static void
cancel_from(int first)
{
	for (int i = first; i < submitted; i++)
		object.store->kind->cancel(object.store, &reads[i]);
	wait_for(0);
	for (int i = first; i < submitted; i++) {
		assert_int_equal(reads[i].status, LEAT_AGAIN);
		assert_int_equal(times_done[i], 1);
	}
}

static void
a_read_with_two_requests_can_be_cancelled(void **state)
{
	int before;

	(void)state;
	hang_from_now_on(0);
	before = sent();
	submit();
	while (sent() == before)
		usleep(1000);
	cancel_from(submitted - 1);
	web_set_trouble(NULL, WEB_NONE, 0);
	read_many(100);
	wait_for(0);
}

/* The first of them may be hedged before the last is sent, on a slow machine: but not for more than what was saved. */
static void
when_all_hang_few_are_sent_again(void **state)
{
	(void)state;
	hang_from_now_on(200);
	usleep(200000);
	assert_in_range(sent(), 0, BURST + submitted / 50);
	cancel_from(submitted - 200);
}

static void
a_server_that_is_busy_gets_no_second_requests(void **state)
{
	int before;

	(void)state;
	read_many(400);
	wait_for(0);
	web_set_trouble(NULL, WEB_BUSY, 1);
	read_many(1);
	wait_for(0);
	before = sent();
	web_set_trouble(NULL, WEB_HANG, 1);
	submit();
	usleep(200000);
	assert_int_equal(sent(), before);
	cancel_from(submitted - 1);
}

static void
it_can_be_turned_off(void **state)
{
	(void)state;
	close_stores();
	setenv("LEAT_NET_HEDGE", "false", 1);
	open_stores();
	unsetenv("LEAT_NET_HEDGE");
	hang_from_now_on(1);
	usleep(200000);
	assert_int_equal(sent(), 0);
	cancel_from(submitted - 1);
}

/* Twins that fail while the other one still waits. */
static void
second_requests_may_fail_as_well(void **state)
{
	static const enum web_trouble troubles[] = {WEB_RESET, WEB_JUNK, WEB_SHORT, WEB_HANG};

	(void)state;
	read_many(400);
	for (size_t i = 0; i < sizeof(troubles) / sizeof(*troubles); i++) {
		web_set_every(1);
		web_set_trouble(NULL, WEB_HANG, 1);
		submit();
		while (web_counts().open && in_flight() && submitted < 500 + 1000 * (int)i)
			read_many(10);
		web_set_every(3);
		web_set_trouble(NULL, troubles[i], 2);
		read_until_all_are_done();
	}
	check_reads();
	check_budget();
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, start, stop)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SERVER(a_hanging_request_is_answered_by_a_second_one),
		WITH_SERVER(the_first_request_may_hang),
		WITH_SERVER(a_look_that_hangs_is_sent_again),
		WITH_SERVER(two_answers_do_not_write_to_the_same_memory),
		WITH_SERVER(a_read_with_two_requests_can_be_cancelled),
		WITH_SERVER(when_all_hang_few_are_sent_again),
		WITH_SERVER(a_server_that_is_busy_gets_no_second_requests),
		WITH_SERVER(it_can_be_turned_off),
		WITH_SERVER(second_requests_may_fail_as_well),
	};

	unsetenv("http_proxy");
	unsetenv("all_proxy");
	unsetenv("ALL_PROXY");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
