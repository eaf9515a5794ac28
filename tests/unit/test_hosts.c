/* test_hosts.c - reads from a host that has several addresses
 *
 * getaddrinfo below takes the place of the system's, for libcurl as well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <limits.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "store/remote.h"
#include "store/settings.h"
#include "store/wire_loop.h"
#include "support/web.h"

enum { DATA = 100000, LENGTH = 3000, READS = 3000, IN_FLIGHT = 64, GOOD_US = 3000, SLOW_US = 60000, SLOW_S = 60 };

static struct leat_mem mem;
static struct leat_stores stores;
static struct leat_storage storage;
static struct leat_object object;
static unsigned char data[DATA];
static char uri[160];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t one_done = PTHREAD_COND_INITIALIZER;
static struct leat_read reads[READS];
static struct leat_err errors[READS];
static unsigned char into[IN_FLIGHT][LENGTH];
static bool is_free[IN_FLIGHT];
static int done;

/* ---- a resolver ---- */

static const char *const many_test[] = {"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"};
static atomic_int lookups;

static struct addrinfo *
numeric(const char *host, const char *port, struct addrinfo *next)
{
	struct addrinfo *info = calloc(1, sizeof(*info) + sizeof(struct sockaddr_in));
	struct sockaddr_in *address = (struct sockaddr_in *)(void *)(info + 1);

	address->sin_family = AF_INET;
	address->sin_port = htons((uint16_t)(port ? atoi(port) : 0));
	inet_pton(AF_INET, host, &address->sin_addr);
	*info = (struct addrinfo){.ai_family = AF_INET,
	                          .ai_socktype = SOCK_STREAM,
	                          .ai_addrlen = sizeof(*address),
	                          .ai_addr = (struct sockaddr *)address,
	                          .ai_next = next};
	return info;
}

__attribute__((visibility("default"))) int
getaddrinfo(const char *restrict host, const char *restrict port, const struct addrinfo *restrict hints,
            struct addrinfo **restrict list)
{
	unsigned char bytes[4];

	(void)hints;
	*list = NULL;
	if (inet_pton(AF_INET, host, bytes) == 1) {
		*list = numeric(host, port, NULL);
		return 0;
	}
	if (strcmp(host, "slow.test") == 0 || (strcmp(host, "later.test") == 0 && atomic_load(&lookups) > 0)) {
		atomic_fetch_add(&lookups, 1);
		sleep(SLOW_S);
		return EAI_AGAIN;
	}
	atomic_fetch_add(&lookups, 1);
	if (strcmp(host, "many.test") != 0 && strcmp(host, "later.test") != 0)
		return EAI_NONAME;
	for (int i = 3; i >= 0; i--)
		*list = numeric(many_test[i], port, *list);
	return 0;
}

__attribute__((visibility("default"))) void
freeaddrinfo(struct addrinfo *list)
{
	while (list) {
		struct addrinfo *next = list->ai_next;

		free(list);
		list = next;
	}
}

/* ---- reads ---- */

static int
start(void **state)
{
	(void)state;
	web_start();
	web_put_data(uri, sizeof(uri), data, DATA);
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	leat_storage_init(&storage);
	stores.storage = &storage;
	atomic_store(&lookups, 0);
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
open_host(const char *host)
{
	struct leat_store *store;
	struct leat_err err;

	leat_err_clear(&err);
	snprintf(uri, sizeof(uri), "http://%s:%s/data", host, strrchr(web_address(), ':') + 1);
	assert_int_equal(leat_stores_find(&stores, uri, &store, NULL, &err), LEAT_OK);
	if (store->kind->look(store, uri, &object, &err) != LEAT_OK)
		fail_msg("%s", err.text);
}

static uint64_t
offset_of(int i)
{
	return (uint64_t)i * 997 % (DATA - LENGTH);
}

static void
end_read(struct leat_read *read)
{
	int place = (int)(uintptr_t)read->arg;

	assert_int_equal(read->status, LEAT_OK);
	assert_memory_equal(into[place], data + read->offset, LENGTH);
	pthread_mutex_lock(&lock);
	is_free[place] = true;
	done++;
	pthread_cond_signal(&one_done);
	pthread_mutex_unlock(&lock);
}

static int
wait_for_place(void)
{
	int place = 0;

	pthread_mutex_lock(&lock);
	for (;;) {
		for (place = 0; place < IN_FLIGHT && !is_free[place]; place++)
			;
		if (place < IN_FLIGHT)
			break;
		pthread_cond_wait(&one_done, &lock);
	}
	is_free[place] = false;
	pthread_mutex_unlock(&lock);
	return place;
}

static void
read_many(int count)
{
	memset(is_free, true, sizeof(is_free));
	done = 0;
	for (int i = 0; i < count; i++) {
		int place = wait_for_place();

		leat_err_clear(&errors[i]);
		reads[i] = (struct leat_read){.object = object,
		                              .offset = offset_of(i),
		                              .iov = {{into[place], LENGTH}},
		                              .iovs = 1,
		                              .done = end_read,
		                              .arg = (void *)(uintptr_t)place,
		                              .err = &errors[i]};
		assert_int_equal(object.store->kind->submit(object.store, &reads[i]), LEAT_OK);
	}
	pthread_mutex_lock(&lock);
	while (done < count)
		pthread_cond_wait(&one_done, &lock);
	pthread_mutex_unlock(&lock);
}

/* Until each of the first `count` addresses has had `least` requests. An address that a busy machine made look slow has
 * to wait for its next try. */
static int
read_until(int count, int least)
{
	enum { MOST = 30 };

	for (int rounds = 1; rounds <= MOST; rounds++) {
		int enough = 0;

		read_many(READS);
		for (int i = 1; i <= count; i++)
			enough += web_counts_at(i).requests >= least;
		if (enough == count)
			return rounds;
	}
	fail_msg("an address got fewer than %d of %d requests", least, MOST * READS);
	return 0;
}

static struct leat_address *
address(const char *text)
{
	struct leat_addresses *set = &leat_remote_of(object.store)->wire->origin->hosts.set;

	for (int i = 0; i < LEAT_ADDRESSES; i++)
		if (strcmp(set->address[i].text, text) == 0)
			return &set->address[i];
	fail_msg("%s is not among the addresses", text);
	return NULL;
}

/* ---- promises ---- */

static void
requests_are_spread_over_all_addresses(void **state)
{
	(void)state;
	for (int i = 1; i <= 4; i++)
		web_listen(i, GOOD_US);
	open_host("many.test");
	read_until(4, READS / 100);
	for (int i = 1; i <= 4; i++)
		assert_in_range(web_counts_at(i).connections, 3, 512);
	assert_non_null(strstr(web_last(), "\r\nHost: many.test:"));
	assert_in_range(atomic_load(&lookups), 1, 32); /* not one for each connection */
}

/* The fourth is not there, the third is slow. */
static void
dead_and_slow_addresses_are_left_alone(void **state)
{
	int rounds;

	(void)state;
	web_listen(1, GOOD_US);
	web_listen(2, GOOD_US);
	web_listen(3, SLOW_US);
	open_host("many.test");
	read_many(READS);
	rounds = 1 + read_until(2, READS / 10);
	assert_in_range(web_counts_at(3).requests, 1, rounds * READS / 20);
	assert_in_range(address("127.0.0.4")->attempts, 1, 8);
}

/* It takes connections and requests, but never answers. Hedges find it out. */
static void
an_address_that_hangs_is_left_alone(void **state)
{
	(void)state;
	web_listen(2, 0);
	web_listen(3, UINT_MAX);
	storage.timeout = 1;
	storage.given |= leat_storage_bit("timeout");
	open_host("many.test");
	read_many(READS);
	assert_in_range(web_counts_at(3).requests, 0, 3 * IN_FLIGHT);
	assert_int_equal(address("127.0.0.3")->answers, 0);
}

static void
a_list_of_addresses_replaces_the_resolver(void **state)
{
	char list[200];
	struct leat_err err;

	(void)state;
	web_listen(2, 0);
	snprintf(list, sizeof(list), "else.test:%s:127.0.0.2,127.0.0.1", strrchr(web_address(), ':') + 1);
	leat_err_clear(&err);
	assert_int_equal(leat_storage_put(&storage, "resolve", list, NULL, &mem, &err), LEAT_OK);
	open_host("else.test");
	read_many(500);
	assert_true(web_counts_at(1).connections > 0);
	assert_true(web_counts_at(2).connections > 0);
	assert_int_equal(atomic_load(&lookups), 0);
}

static void
one_address_is_no_choice(void **state)
{
	(void)state;
	open_host("127.0.0.1");
	read_many(300);
	assert_int_equal(atomic_load(&lookups), 0);
	assert_int_equal(leat_remote_of(object.store)->wire->origin->hosts.count, 0);
}

static void
count_done(struct leat_read *read)
{
	assert_int_equal(read->status, LEAT_AGAIN);
	pthread_mutex_lock(&lock);
	done++;
	pthread_cond_signal(&one_done);
	pthread_mutex_unlock(&lock);
}

/* The resolver takes a minute. The machine may be slow, but not that slow. */
static void
close_without_waiting(void)
{
	uint64_t begin = leat_now();

	leat_stores_close(&stores);
	assert_in_range(leat_now() - begin, 0, SLOW_S * UINT64_C(500000000));
	assert_int_equal(mem.used, 0);
	leat_stores_init(&stores, &mem);
}

static void
nobody_waits_for_a_slow_resolver_of_libcurl(void **state)
{
	struct leat_read *read = &reads[0];
	struct leat_store *store;

	(void)state;
	snprintf(uri, sizeof(uri), "http://slow.test:%s/data", strrchr(web_address(), ':') + 1);
	assert_int_equal(leat_stores_find(&stores, uri, &store, NULL, NULL), LEAT_OK);
	*read = (struct leat_read){.object = {.store = store, .uri = uri, .uri_len = strlen(uri), .size = DATA},
	                           .iov = {{into[0], LENGTH}},
	                           .iovs = 1,
	                           .done = count_done};
	done = 0;
	assert_int_equal(store->kind->submit(store, read), LEAT_OK);
	while (atomic_load(&lookups) == 0)
		usleep(1000);
	store->kind->cancel(store, read);
	pthread_mutex_lock(&lock);
	while (!done)
		pthread_cond_wait(&one_done, &lock);
	pthread_mutex_unlock(&lock);
	close_without_waiting();
}

static void
nobody_waits_for_a_slow_resolver_of_ours(void **state)
{
	(void)state;
	open_host("later.test");
	while (atomic_load(&lookups) < 2)
		read_many(1);
	close_without_waiting();
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, start, stop)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SERVER(requests_are_spread_over_all_addresses),
		WITH_SERVER(dead_and_slow_addresses_are_left_alone),
		WITH_SERVER(an_address_that_hangs_is_left_alone),
		WITH_SERVER(a_list_of_addresses_replaces_the_resolver),
		WITH_SERVER(one_address_is_no_choice),
		WITH_SERVER(nobody_waits_for_a_slow_resolver_of_libcurl),
		WITH_SERVER(nobody_waits_for_a_slow_resolver_of_ours),
	};

	unsetenv("http_proxy");
	unsetenv("all_proxy");
	unsetenv("ALL_PROXY");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
