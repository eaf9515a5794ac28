/* test_store_contract.c - the contract of store/store.h, kept by local files and by the store in memory */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <libgen.h>

#include "store/store.h"
#include "support/store.h"
#include "support/store_mem.h"
#include "support/temp.h"

/* ---- both stores, by the same tests ---- */

static struct temp temp;
static struct store_bed bed;

/* Replaced by renaming, as programs should. */
static void
put_file(const char *uri, const void *bytes, size_t len)
{
	char folder[512];
	const char *path;

	for (char *slash = strchr(strcpy(folder, uri) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(folder, 0777);
		*slash = '/';
	}
	path = temp_write(&temp, ".new", bytes, len);
	assert_int_equal(rename(path, uri), 0);
}

static void
remove_file(const char *uri)
{
	char folder[512];

	assert_int_equal(unlink(uri), 0);
	strcpy(folder, uri);
	while (strcmp(dirname(folder), temp.folder) != 0 && rmdir(folder) == 0)
		;
}

static int
on_files(void **state)
{
	(void)state;
	temp_make(&temp);
	bed = (struct store_bed){temp.folder, put_file, remove_file};
	return 0;
}

static int
off_files(void **state)
{
	(void)state;
	assert_int_equal(rmdir(temp.folder), 0); /* nothing was left behind */
	return 0;
}

static int
on_memory(void **state)
{
	(void)state;
	store_mem_reset();
	bed = (struct store_bed){"mem://test/folder", store_mem_put, store_mem_remove};
	return 0;
}

static int
off_memory(void **state)
{
	(void)state;
	assert_int_equal(store_mem_count(""), 0);
	assert_int_equal(store_mem_counts().in_flight, 0);
	store_mem_reset();
	return 0;
}

static void
lists_give_what_patterns_and_folders_hold(void **state)
{
	(void)state;
	promise_store_lists(&bed);
}

static void
reads_give_any_range_in_any_pieces(void **state)
{
	(void)state;
	promise_store_reads(&bed);
}

static void
thousands_of_reads_are_in_flight_and_each_is_done_once(void **state)
{
	(void)state;
	promise_store_submits(&bed);
}

static void
a_cancelled_read_is_done_once_too(void **state)
{
	(void)state;
	promise_store_cancels(&bed);
}

static void
an_object_that_changed_is_an_error_that_names_it(void **state)
{
	(void)state;
	promise_store_versions(&bed);
}

static void
new_objects_appear_whole_or_not_at_all(void **state)
{
	(void)state;
	promise_store_writes(&bed);
}

static void
every_failing_allocation_is_survived(void **state)
{
	(void)state;
	promise_store_memory_errors(&bed);
}

/* ---- what tests rely on in the store in memory ---- */

static struct leat_mem mem;
static struct leat_stores stores;
static struct leat_store *store;

static int
open_memory(void **state)
{
	(void)state;
	store_mem_reset();
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	store_mem_put("mem://t/x", "0123456789", 10);
	return leat_stores_find(&stores, "mem://t/x", &store, NULL, NULL) != LEAT_OK;
}

static int
close_memory(void **state)
{
	(void)state;
	leat_stores_close(&stores);
	assert_int_equal(mem.used, 0);
	store_mem_reset();
	return 0;
}

enum { READS = 1500 };

/* Reads of one byte each, and the order in which they were done. */
static struct flight {
	struct leat_read read[READS];
	char byte[READS];
	atomic_int done;
	int order[READS];
} flight;

static void
note_done(struct leat_read *read)
{
	int turn = atomic_load(&flight.done);

	flight.order[turn] = (int)(read - flight.read);
	atomic_store(&flight.done, turn + 1); /* one thread calls this */
}

static void
prepare(void)
{
	struct leat_object object;

	atomic_store(&flight.done, 0);
	assert_int_equal(store->kind->look(store, "mem://t/x", &object, NULL), LEAT_OK);
	for (int i = 0; i < READS; i++)
		flight.read[i] = (struct leat_read){.object = object,
		                                    .offset = (uint64_t)i % 10,
		                                    .iov = {{&flight.byte[i], 1}},
		                                    .iovs = 1,
		                                    .done = note_done};
}

static void
submit(void)
{
	for (int i = 0; i < READS; i++)
		assert_int_equal(store->kind->submit(store, &flight.read[i]), LEAT_OK);
}

static void
wait_for(int done)
{
	while (atomic_load(&flight.done) < done)
		usleep(100);
}

static void
held_reads_are_in_flight_until_they_are_released_or_cancelled(void **state)
{
	struct store_mem_counts counts;

	(void)state;
	prepare();
	store_mem_hold(true);
	submit();
	assert_int_equal(store_mem_counts().in_flight, READS);
	for (int i = 0; i < READS; i += 3)
		store->kind->cancel(store, &flight.read[i]);
	wait_for(READS / 3);
	counts = store_mem_counts();
	assert_int_equal(counts.in_flight, READS - READS / 3);
	assert_int_equal(counts.cancelled, READS / 3);
	assert_int_equal(counts.bytes, 0);
	store_mem_hold(false);
	wait_for(READS);
	counts = store_mem_counts();
	assert_int_equal(counts.submitted, READS);
	assert_int_equal(counts.in_flight, 0);
	assert_int_equal(counts.most_in_flight, READS);
	assert_int_equal(counts.failed, 0);
	assert_int_equal(counts.bytes, READS - READS / 3);
	for (int i = 0; i < READS; i++)
		assert_int_equal(flight.read[i].status, i % 3 ? LEAT_OK : LEAT_AGAIN);
}

static void *
cancel_all(void *arg)
{
	(void)arg;
	for (int i = 0; i < READS; i++)
		store->kind->cancel(store, &flight.read[i]);
	return NULL;
}

/* A cancel that gets lost would leave a read in flight for good. */
static void
a_cancel_counts_while_its_read_is_being_submitted(void **state)
{
	pthread_t other;

	(void)state;
	store_mem_hold(true);
	prepare();
	assert_int_equal(pthread_create(&other, NULL, cancel_all, NULL), 0);
	submit();
	pthread_join(other, NULL);
	wait_for(READS);
	assert_int_equal(store_mem_counts().cancelled, READS);
	store_mem_hold(false);
}

static void
the_order_of_completion_is_shuffled_by_a_seed(void **state)
{
	int first[READS], moved = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 3; seed++) {
		for (int again = 0; again < 2; again++) {
			store_mem_set(&(struct store_mem_settings){.shuffle = seed});
			prepare();
			store_mem_hold(true);
			submit();
			store_mem_hold(false);
			wait_for(READS);
			if (again)
				assert_memory_equal(flight.order, first, sizeof(first));
			memcpy(first, flight.order, sizeof(first));
		}
		moved = 0;
		for (int i = 0; i < READS; i++)
			moved += first[i] != i;
		assert_true(seed ? moved > READS / 2 : moved == 0);
	}
}

static enum leat_status
read_byte(const char *uri, uint64_t offset, struct leat_err *err)
{
	struct leat_object object;
	char byte;
	struct iovec iov = {&byte, 1};
	size_t got;

	leat_err_clear(err);
	assert_int_equal(store->kind->look(store, uri, &object, NULL), LEAT_OK);
	return leat_object_read(&object, offset, &iov, 1, 0, &got, err);
}

static void
reads_fail_as_often_as_they_are_told(void **state)
{
	struct leat_err err;

	(void)state;
	store_mem_put("mem://t/y", "0123456789", 10);
	store_mem_set(&(struct store_mem_settings){.fail_every = 3});
	for (int i = 1; i <= 9; i++)
		assert_int_equal(read_byte("mem://t/x", 0, &err), i % 3 ? LEAT_OK : LEAT_IO);
	assert_string_equal(err.text, "cannot read 'mem://t/x' at offset 0: the connection was reset");
	store_mem_set(&(struct store_mem_settings){0});
	store_mem_fail("mem://t/x", 4, 6, 1, LEAT_IO);
	store_mem_fail("mem://t/x", 8, 9, STORE_MEM_ALWAYS, LEAT_IO);
	store_mem_truncate("mem://t/y", 7);
	for (int again = 0; again < 3; again++)
		for (uint64_t i = 0; i < 10; i++) {
			assert_int_equal(read_byte("mem://t/x", i, &err),
			                 i == 8 || (i == 4 && !again) ? LEAT_IO : LEAT_OK);
			assert_int_equal(read_byte("mem://t/y", i, &err), i < 7 ? LEAT_OK : LEAT_DATA);
		}
	assert_string_equal(err.text, "'mem://t/y' ends at offset 7, but 10 was expected");
	assert_int_equal(store_mem_counts().failed, 3 + 4 + 9);
}

static void
names_that_are_none_are_refused(void **state)
{
	static const char *const names[] = {"mem://", "mem:///", "mem://///"};
	struct leat_err err;
	char *uri;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		leat_err_clear(&err);
		assert_int_equal(leat_stores_find(&stores, names[i], &store, &uri, &err), LEAT_INVALID);
	}
	assert_int_equal(leat_stores_find(&stores, "mem://t/folder//", &store, &uri, NULL), LEAT_OK);
	assert_string_equal(uri, "mem://t/folder");
	leat_free(&mem, uri);
	leat_err_clear(&err);
	assert_int_equal(leat_stores_find(&stores, "men://t/x", &store, &uri, &err), LEAT_UNSUPPORTED);
	assert_string_equal(err.text, "'men://t/x': unsupported scheme 'men:'; use file:, http:, https:, mem:, s3:");
}

#define IN_MEMORY(test) cmocka_unit_test_setup_teardown(test, open_memory, close_memory)

int
main(void)
{
	const struct CMUnitTest both[] = {
		cmocka_unit_test(lists_give_what_patterns_and_folders_hold),
		cmocka_unit_test(reads_give_any_range_in_any_pieces),
		cmocka_unit_test(thousands_of_reads_are_in_flight_and_each_is_done_once),
		cmocka_unit_test(a_cancelled_read_is_done_once_too),
		cmocka_unit_test(an_object_that_changed_is_an_error_that_names_it),
		cmocka_unit_test(new_objects_appear_whole_or_not_at_all),
		cmocka_unit_test(every_failing_allocation_is_survived),
	};
	const struct CMUnitTest memory[] = {
		IN_MEMORY(held_reads_are_in_flight_until_they_are_released_or_cancelled),
		IN_MEMORY(a_cancel_counts_while_its_read_is_being_submitted),
		IN_MEMORY(the_order_of_completion_is_shuffled_by_a_seed),
		IN_MEMORY(reads_fail_as_often_as_they_are_told),
		IN_MEMORY(names_that_are_none_are_refused),
	};
	int failed = cmocka_run_group_tests_name("local files", both, on_files, off_files);

	failed += cmocka_run_group_tests_name("memory", both, on_memory, off_memory);
	return failed + cmocka_run_group_tests(memory, NULL, NULL);
}
