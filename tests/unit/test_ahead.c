/* test_ahead.c - reading ahead: every byte is right, many blocks are in flight, memory stays within its limit */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/ahead.h"
#include "support/temp.h"
#include "support/web.h"

enum { SIZE = 40 * LEAT_AHEAD_BLOCK + 12345, STEP = 300000 };

static struct leat_mem mem;
static struct leat_stores stores;
static struct leat_object object;
static struct leat_err err;
static char uri[128];
static unsigned char *data, *got;

static int
set_up(void **state)
{
	struct leat_store *store;

	(void)state;
	data = malloc(SIZE);
	got = malloc(SIZE);
	assert_true(data && got);
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (unsigned char)(i * 7 + (i >> 8) + (i >> 16));
	web_start();
	snprintf(uri, sizeof(uri), "%s/large", web_address());
	web_put(uri, data, SIZE);
	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	leat_stores_init(&stores, &mem);
	assert_int_equal(leat_stores_find(&stores, uri, &store, NULL, &err), LEAT_OK);
	assert_int_equal(store->kind->look(store, uri, &object, &err), LEAT_OK);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	leat_stores_close(&stores);
	web_stop();
	free(data);
	free(got);
	return mem.used != 0;
}

static unsigned
flying(const struct leat_ahead *ahead)
{
	return ahead->count;
}

static void
must_read(struct leat_ahead *ahead, uint64_t offset, size_t len)
{
	memset(got, 0, len);
	if (leat_ahead_read(ahead, offset, got, len, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	assert_memory_equal(got, data + offset, len);
}

/* From start to end; the most blocks that were in use at a time. */
static unsigned
read_all(struct leat_ahead *ahead)
{
	unsigned most = 0;

	for (uint64_t at = 0; at < SIZE; at += STEP) {
		must_read(ahead, at, SIZE - at < STEP ? (size_t)(SIZE - at) : STEP);
		most = flying(ahead) > most ? flying(ahead) : most;
	}
	return most;
}

static void
many_blocks_are_in_flight_and_each_is_asked_for_once(void **state)
{
	struct leat_ahead ahead;
	int before = web_counts().requests;

	(void)state;
	leat_ahead_open(&ahead, &object, &mem);
	assert_int_equal(read_all(&ahead), LEAT_AHEAD_BLOCKS);
	assert_int_equal(web_counts().requests - before, 41);
	leat_ahead_close(&ahead);
	assert_int_equal(stores.ahead, 0);
}

static void
it_may_jump_anywhere(void **state)
{
	struct leat_ahead ahead;
	uint64_t at = 0;

	(void)state;
	leat_ahead_open(&ahead, &object, &mem);
	for (int i = 0; i < 60; i++) {
		at = (at * 31 + 9999991 * (uint64_t)i) % SIZE;
		for (int k = 0; k < 3 && at + STEP < SIZE; k++, at += STEP)
			must_read(&ahead, at, STEP);
	}
	leat_ahead_close(&ahead);
}

static void
little_memory_means_few_blocks(void **state)
{
	struct leat_ahead ahead;

	(void)state;
	mem.limit = leat_mem_counted(&mem) + (8 << 20);
	leat_ahead_open(&ahead, &object, &mem);
	assert_in_range(read_all(&ahead), 1, 8);
	leat_ahead_close(&ahead);
	mem.limit = leat_mem_counted(&mem) + 1000;
	leat_ahead_open(&ahead, &object, &mem);
	assert_int_equal(leat_ahead_read(&ahead, 0, got, 100, &err), LEAT_AGAIN);
	leat_ahead_close(&ahead);
	mem.limit = SIZE_MAX;
}

static void
a_failed_block_is_an_error_when_it_is_reached(void **state)
{
	enum leat_status status = LEAT_OK;
	struct leat_ahead ahead;
	uint64_t at = 0;

	(void)state;
	leat_ahead_open(&ahead, &object, &mem);
	must_read(&ahead, 0, STEP);
	web_put(uri, data, SIZE); /* another version */
	for (at = STEP; at + STEP < SIZE && status == LEAT_OK; at += STEP)
		status = leat_ahead_read(&ahead, at, got, STEP, &err);
	assert_int_equal(status, LEAT_DATA);
	assert_non_null(strstr(err.text, "has changed"));
	leat_ahead_close(&ahead);
}

static void
interrupting_ends_it(void **state)
{
	enum leat_status status = LEAT_OK;
	struct leat_ahead ahead;

	(void)state;
	leat_ahead_open(&ahead, &object, &mem);
	must_read(&ahead, 0, STEP);
	leat_stores_interrupt(&stores, true);
	for (uint64_t at = STEP; at + STEP < SIZE && status == LEAT_OK; at += STEP)
		status = leat_ahead_read(&ahead, at, got, STEP, &err);
	assert_int_equal(status, LEAT_CANCELLED);
	leat_ahead_close(&ahead);
	leat_stores_interrupt(&stores, false);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(many_blocks_are_in_flight_and_each_is_asked_for_once),
		TEST(it_may_jump_anywhere),
		TEST(little_memory_means_few_blocks),
		TEST(a_failed_block_is_an_error_when_it_is_reached),
		TEST(interrupting_ends_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
