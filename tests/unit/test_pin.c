/* test_pin.c - batches in memory that a stand-in for the CUDA runtime has registered */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feed/dlpack.h"
#include "feed/feed.h"
#include "support/chrome.h"
#include "support/data.h"
#include "support/logged.h"
#include "support/temp.h"
#include "support/trace.h"

static const size_t counts[] = {64, 64};
static struct data data;

DATA_FIXTURE(NULL)

/* ---- the stand-in ---- */

static struct {
	void *library;
	void (*reset)(void);
	void (*fail_after)(int calls);
	int (*ranges)(void);
	size_t (*bytes)(void);
	int (*registered)(void);
	int (*errors)(void);
	int (*last_error)(void);
	bool (*is_pinned)(const void *at);
} stub;

static void *
symbol(const char *name)
{
	void *found = dlsym(stub.library, name);

	assert_non_null(found);
	return found;
}

static int
set_up(void **state)
{
	(void)state;
	setenv("LEAT_CUDART", TOOLS "libcudart_stub.so", 1);
	stub.library = dlopen(TOOLS "libcudart_stub.so", RTLD_NOW);
	assert_non_null(stub.library);
	*(void **)&stub.reset = symbol("stub_reset");
	*(void **)&stub.fail_after = symbol("stub_fail_after");
	*(void **)&stub.ranges = symbol("stub_ranges");
	*(void **)&stub.bytes = symbol("stub_bytes");
	*(void **)&stub.registered = symbol("stub_registered");
	*(void **)&stub.errors = symbol("stub_errors");
	*(void **)&stub.last_error = symbol("cudaGetLastError");
	*(void **)&stub.is_pinned = symbol("stub_is_pinned");
	stub.reset();
	logged = (struct logged){0};
	return 0;
}

/* Whatever a test did: everything was unregistered, and nothing that was not registered. */
static int
tear_down(void **state)
{
	(void)state;
	assert_int_equal(stub.ranges(), 0);
	assert_int_equal(stub.errors(), 0);
	dlclose(stub.library);
	return 0;
}

/* ---- feeds ---- */

static const char *
spec_of(void)
{
	static char spec[800];

	snprintf(spec, sizeof spec, "%s | example(image=bytes, label=int64, tokens=int64[]) | batch(4)",
	         data_source(&data));
	return spec;
}

static struct leat_feed *
open_feed(bool least)
{
	const char *spec = spec_of();
	struct leat_options options;

	trace_options(&options);
	options.epochs = 0;
	options.threads = 2;
	if (least)
		options.memory = trace_least_memory(spec, &options);
	options.log = write_log;
	return trace_open(spec, &options);
}

static struct leat_batch *
take(struct leat_feed *feed)
{
	struct leat_batch *batch;
	struct leat_err err;
	enum leat_status status = leat_next(feed, &batch, &err);

	if (status == LEAT_END)
		status = leat_next(feed, &batch, &err);
	if (status != LEAT_OK)
		fail_msg("%s", err.text);
	return batch;
}

static void *
labels(const struct leat_batch *batch)
{
	struct leat_tensor tensor;

	assert_int_equal(leat_batch_field(batch, "label", &tensor, NULL), LEAT_OK);
	return tensor.data;
}

static bool
is_pinned(const struct leat_batch *batch)
{
	return stub.is_pinned(labels(batch));
}

static size_t
pinned(const struct leat_feed *feed)
{
	struct leat_stats stats;

	leat_stats(feed, &stats);
	return stats.pinned;
}

/* ---- tests ---- */

static void
every_slot_is_registered_once(void **state)
{
	struct leat_feed *feed = open_feed(false);
	int slots;

	(void)state;
	leat_release(take(feed));
	assert_int_equal(stub.ranges(), 0); /* nobody has asked for it */
	assert_int_equal(leat_pin(feed, true, NULL), LEAT_OK);
	for (int i = 0; i < 200; i++) {
		struct leat_batch *batch = take(feed);

		assert_true(is_pinned(batch));
		leat_release(batch);
	}
	slots = stub.ranges();
	assert_in_range(slots, 1, feed->budget.buffers);
	assert_int_equal(stub.registered(), slots);
	assert_int_equal(stub.bytes(), (size_t)slots * feed->budget.form.bytes);
	assert_int_equal(pinned(feed), stub.bytes());
	leat_close(feed);
	assert_int_equal(stub.ranges(), 0);
}

static void
turned_off_batches_are_in_ordinary_memory_again(void **state)
{
	struct leat_feed *feed = open_feed(false);

	(void)state;
	for (int round = 0; round < 3; round++) {
		assert_int_equal(leat_pin(feed, round % 2 == 0, NULL), LEAT_OK);
		for (int i = 0; i < 60; i++) {
			struct leat_batch *batch = take(feed);

			assert_int_equal(is_pinned(batch), round % 2 == 0);
			leat_release(batch);
		}
	}
	leat_close(feed);
}

/* The GPU may still read it: it is unregistered by the last release, and not by leat_close. */
static void
a_batch_that_is_held_stays_pinned_after_close(void **state)
{
	struct leat_feed *feed = open_feed(false);
	struct DLManagedTensor *tensor;
	struct leat_batch *batch;

	(void)state;
	assert_int_equal(leat_pin(feed, true, NULL), LEAT_OK);
	leat_release(take(feed));
	batch = take(feed);
	assert_int_equal(leat_batch_dlpack(batch, "label", LEAT_PART_DATA, &tensor, NULL), LEAT_OK);
	leat_close(feed);
	assert_int_equal(stub.ranges(), 1);
	leat_release(batch);
	assert_int_equal(stub.ranges(), 1);
	assert_true(stub.is_pinned(tensor->tensor.data));
	tensor->deleter(tensor);
	assert_int_equal(stub.ranges(), 0);
}

/* Slots come and go; copies are no slots. */
static void
a_consumer_that_keeps_batches_gets_copies_that_are_not_pinned(void **state)
{
	struct leat_feed *feed = open_feed(true);
	struct leat_batch *held[12];
	int copied = 0;

	(void)state;
	assert_int_equal(leat_pin(feed, true, NULL), LEAT_OK);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 12; i++) {
			held[i] = take(feed);
			assert_int_equal(is_pinned(held[i]), !leat_batch_copied(held[i]));
			copied += leat_batch_copied(held[i]);
		}
		for (int i = 0; i < 12; i++)
			leat_release(held[i]);
	}
	assert_true(copied > 0);
	leat_close(feed);
}

static void
when_cuda_refuses_batches_come_unpinned_with_one_warning(void **state)
{
	struct leat_feed *feed = open_feed(false);
	int count = 0;

	(void)state;
	stub.fail_after(1);
	assert_int_equal(leat_pin(feed, true, NULL), LEAT_OK);
	for (int i = 0; i < 100; i++) {
		struct leat_batch *held[2] = {take(feed), take(feed)}; /* so that not always the same one comes */

		count += is_pinned(held[0]) + is_pinned(held[1]);
		leat_release(held[0]);
		leat_release(held[1]);
	}
	assert_int_equal(stub.ranges(), 1);
	assert_in_range(count, 1, 199);
	assert_int_equal(logged.warn, 1);
	assert_non_null(strstr(logged.warning, "out of memory"));
	assert_int_equal(stub.last_error(), 0); /* the program's next call must not find it */
	stub.fail_after(-1);
	assert_int_equal(leat_pin(feed, true, NULL), LEAT_OK); /* asked for again, it is tried again */
	for (int i = 0; i < 100; i++)
		leat_release(take(feed));
	assert_true(stub.ranges() > 1);
	leat_close(feed);
}

static void
without_a_runtime_pinning_is_refused_and_batches_come(void **state)
{
	static const char *const libraries[] = {"/nonexistent.so", TOOLS "libnvml_stub.so",
	                                        TOOLS "libcudart_missing.so"};

	(void)state;
	for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
		struct leat_feed *feed = open_feed(false);
		struct leat_err err;

		setenv("LEAT_CUDART", libraries[i], 1);
		assert_int_equal(leat_pin(feed, true, &err), LEAT_UNSUPPORTED);
		assert_non_null(strstr(err.text, "CUDA runtime"));
		leat_release(take(feed));
		assert_int_equal(leat_pin(feed, true, &err),
		                 LEAT_UNSUPPORTED); /* again, not with half of its functions */
		leat_release(take(feed));
		assert_int_equal(leat_pin(feed, false, &err), LEAT_OK);
		leat_close(feed);
	}
}

static void
copies_to_the_device_are_counted(void **state)
{
	struct leat_feed *feed = open_feed(false);
	struct leat_stats stats;

	(void)state;
	leat_to_device(feed, 1000, 1500, 64, 0);
	leat_to_device(feed, 2000, 2100, 64, 8);
	leat_to_device(feed, 3000, 2000, 1, 0); /* clocks of devices are not always right */
	leat_stats(feed, &stats);
	assert_int_equal(stats.to_device_ns, 600);
	assert_int_equal(stats.to_device_bytes, 129);
	assert_int_equal(stats.staged, 8);
	leat_close(feed);
}

static void
copies_to_the_device_are_spans(void **state)
{
	struct leat_recorder_options how;
	struct leat_options options;
	struct leat_feed *feed;
	struct temp temp;
	json_t *trace;

	(void)state;
	temp_make(&temp);
	leat_recorder_options_init(&how);
	how.trace = temp_path(&temp, "run.json");
	trace_options(&options);
	assert_int_equal(leat_recorder_open(&how, &options.recorder, NULL), LEAT_OK);
	feed = trace_open(spec_of(), &options);
	leat_to_device(feed, 1000, 5000, 64, 0);
	leat_to_device(feed, 4000, 6000, 64, 0); /* they cannot overlap: there is one stream */
	leat_to_device(feed, 9000, 8000, 64, 0);
	leat_close(feed);
	assert_int_equal(leat_recorder_close(options.recorder, NULL), LEAT_OK);
	trace = chrome_read(temp_path(&temp, "run.json"));
	assert_int_equal(chrome_spans(trace, "to device", NULL), 3);
	assert_true(chrome_has_lane(trace, "device"));
	json_decref(trace);
	temp_remove(&temp);
}

/* Batches may be released by any thread, while others are delivered. */
struct releasing {
	struct leat_queue queue;
};

static void *
release_all(void *arg)
{
	struct releasing *r = arg;
	struct leat_batch *batch;

	while ((batch = leat_queue_pop(&r->queue)) != NULL)
		leat_release(batch);
	return NULL;
}

static void
another_thread_may_release_pinned_batches(void **state)
{
	struct leat_feed *feed = open_feed(true);
	struct releasing r;
	struct leat_mem mem;
	pthread_t thread;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	assert_int_equal(leat_queue_init(&r.queue, &mem, 4, NULL), LEAT_OK);
	assert_int_equal(pthread_create(&thread, NULL, release_all, &r), 0);
	for (int i = 0; i < 300; i++) {
		assert_int_equal(leat_pin(feed, i / 50 % 2 == 0, NULL), LEAT_OK);
		leat_queue_push(&r.queue, take(feed));
	}
	leat_close(feed);
	leat_queue_close(&r.queue);
	pthread_join(thread, NULL);
	leat_queue_free(&r.queue);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(every_slot_is_registered_once),
		TEST(turned_off_batches_are_in_ordinary_memory_again),
		TEST(a_batch_that_is_held_stays_pinned_after_close),
		TEST(a_consumer_that_keeps_batches_gets_copies_that_are_not_pinned),
		TEST(when_cuda_refuses_batches_come_unpinned_with_one_warning),
		TEST(without_a_runtime_pinning_is_refused_and_batches_come),
		TEST(copies_to_the_device_are_counted),
		TEST(copies_to_the_device_are_spans),
		TEST(another_thread_may_release_pinned_batches),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
