/* test_feed_held.c - a consumer may keep as many batches, or single fields of them, as it likes */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "feed/dlpack.h"
#include "feed/feed.h"
#include "support/data.h"
#include "support/trace.h"

enum { HELD = 48 };

static const size_t counts[] = {64, 64};
static struct data data;

DATA_FIXTURE(NULL)

static const char *
spec_with(const char *rest)
{
	static char spec[800];

	snprintf(spec, sizeof spec, "%s | example(image=bytes, label=int64, tokens=int64[]) | %s", data_source(&data),
	         rest);
	return spec;
}

/* Least: as little memory as it opens with, which has room for two batches. */
static struct leat_feed *
open_feed(const char *rest, bool least)
{
	struct leat_options options;
	const char *spec = spec_with(rest);

	trace_options(&options);
	options.epochs = 0;
	options.threads = 2;
	if (least)
		options.memory = trace_least_memory(spec, &options);
	return trace_open(spec, &options);
}

static struct leat_stats
stats_of(const struct leat_feed *feed)
{
	struct leat_stats stats;

	leat_stats(feed, &stats);
	return stats;
}

/* Across the ends of epochs. */
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

static const struct {
	const char *rest;
	bool least;
} feeds[] = {
	{"decode | batch(8) | prefetch(0)", false},    {"decode | batch(8) | prefetch(1)", false},
	{"decode | batch(8) | prefetch(2)", false},    {"decode | batch(8) | prefetch(4)", false},
	{"decode | resize(32, 32) | batch(8)", false}, {"decode | resize(32, 32) | batch(8)", true},
	{"batch(8, tail=pad) | prefetch(3)", false},
};

static void
batches_can_be_held_in_any_number_and_order(void **state)
{
	(void)state;
	for (size_t f = 0; f < sizeof feeds / sizeof *feeds; f++) {
		struct leat_feed *feed = open_feed(feeds[f].rest, feeds[f].least);
		struct leat_feed *other = open_feed(feeds[f].rest, feeds[f].least);
		struct trace right = {0}, kept = {0};
		struct leat_batch *held[HELD];

		for (int i = 0; i < HELD; i++)
			held[i] = take(feed);
		assert_in_range(stats_of(feed).copied, HELD - 16, HELD);
		assert_true(stats_of(feed).held > 0);
		assert_true(stats_of(feed).memory <= feed->options.memory);
		for (int i = 0; i < HELD; i += 2) { /* the others stay as they are */
			trace_add(&kept, feed, held[i]);
			leat_release(held[i]);
		}
		for (int i = 0; i < 20; i++)
			leat_release(take(feed));
		for (int i = 1; i < HELD; i += 2) {
			trace_add(&kept, feed, held[i]);
			leat_release(held[i]);
		}
		assert_int_equal(stats_of(feed).held, 0);

		for (int i = 0; i < HELD; i++) {
			held[i] = take(other);
			if (i % 2 == 0)
				trace_add(&right, other, held[i]);
		}
		for (int i = 1; i < HELD; i += 2)
			trace_add(&right, other, held[i]);
		for (int i = 0; i < HELD; i++)
			leat_release(held[i]);
		trace_compare_samples(&kept, &right, feeds[f].rest);
		trace_free(&kept);
		trace_free(&right);
		leat_close(feed);
		leat_close(other);
	}
}

/* What a loop `for batch in feed` does in Python. */
static void
a_loop_that_holds_the_previous_batch_copies_nothing(void **state)
{
	(void)state;
	for (size_t f = 0; f < sizeof feeds / sizeof *feeds; f++) {
		struct leat_feed *feed = open_feed(feeds[f].rest, feeds[f].least);
		struct leat_batch *previous = NULL;

		for (int i = 0; i < HELD; i++) {
			struct leat_batch *batch = take(feed);

			leat_release(previous);
			previous = batch;
		}
		assert_int_equal(stats_of(feed).copied, 0);
		assert_int_equal(stats_of(feed).held, 0);
		leat_release(previous);
		leat_close(feed);
	}
}

static struct DLManagedTensor *export(struct leat_batch *batch, const char *name)
{
	struct DLManagedTensor *tensor;
	struct leat_err err;

	if (leat_batch_dlpack(batch, name, LEAT_PART_DATA, &tensor, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	return tensor;
}

static void
keeping_the_labels_does_not_keep_the_images(void **state)
{
	struct leat_feed *feed = open_feed("decode | resize(128, 128) | batch(8) | prefetch(4)", false);
	enum { IMAGES = 8 * 128 * 128 * 3 * sizeof(float), MORE = 2048 };
	struct DLManagedTensor *label[HELD], *image;
	struct leat_batch *batch;
	struct leat_tensor tensor;

	(void)state;
	for (int i = 0; i < HELD; i++) {
		batch = take(feed);
		label[i] = export(batch, "label");
		leat_release(batch);
	}
	assert_true(stats_of(feed).copied > HELD / 2);
	assert_in_range(stats_of(feed).held, 1, HELD * MORE);
	batch = take(feed);
	assert_true(leat_batch_copied(batch));
	assert_int_equal(leat_batch_field(batch, "image", &tensor, NULL), LEAT_OK);
	assert_int_equal((uintptr_t)tensor.data % 64, 0);
	assert_true(stats_of(feed).held >= IMAGES);
	image = export(batch, "image");
	assert_ptr_equal(image->tensor.data, tensor.data);
	leat_release(batch);
	assert_true(stats_of(feed).held >= IMAGES);
	image->deleter(image);
	assert_in_range(stats_of(feed).held, 1, HELD * MORE);
	leat_close(feed);
	for (int i = 0; i < HELD; i++) { /* they outlive the feed */
		assert_int_equal(((int64_t *)label[i]->tensor.data)[7], (8 * i + 7) % 128);
		label[i]->deleter(label[i]);
	}
}

static void
without_memory_for_a_copy_the_next_call_gives_the_same_batch(void **state)
{
	static const char *const rests[] = {"decode | batch(8) | prefetch(1)", "decode | batch(8) | prefetch(4)"};

	(void)state;
	for (size_t f = 0; f < 2; f++) {
		struct leat_feed *feed = open_feed(rests[f], false);
		struct leat_batch *held[HELD];
		struct leat_err err;
		int n = 0, failures = 0;

		for (long after = 0; n < HELD; after = (after + 1) % 8) {
			enum leat_status status;

			atomic_store(&feed->beyond.fail_after, after);
			status = leat_next(feed, &held[n], &err);
			atomic_store(&feed->beyond.fail_after, -1);
			if (status == LEAT_OK) {
				assert_int_equal(leat_batch_position(held[n], 0), 8 * n % 128);
				n++;
			} else if (status != LEAT_END) {
				assert_int_equal(status, LEAT_AGAIN);
				assert_non_null(strstr(err.text, "release some"));
				assert_int_equal(leat_position(feed), 8 * n % 128);
				failures++;
			}
		}
		assert_true(failures > HELD);
		while (n > 0)
			leat_release(held[--n]);
		assert_int_equal(stats_of(feed).held, 0);
		leat_close(feed);
	}
}

static void
batches_are_held_over_a_jump_and_after_close(void **state)
{
	struct leat_feed *feed = open_feed("decode | resize(32, 32) | batch(8) | prefetch(1)", false);
	struct leat_batch *held[HELD];
	char *json;

	(void)state;
	assert_int_equal(leat_save(feed, &json, NULL), LEAT_OK);
	for (int i = 0; i < HELD; i++) {
		if (i % 8 == 0)
			assert_int_equal(leat_restore(feed, json, NULL), LEAT_OK);
		held[i] = take(feed);
	}
	free(json);
	leat_close(feed);
	for (int i = 0; i < HELD; i++) {
		struct leat_tensor label;

		assert_int_equal(leat_batch_begin(held[i]), 8 * (i % 8));
		assert_int_equal(leat_batch_field(held[i], "label", &label, NULL), LEAT_OK);
		assert_int_equal(((int64_t *)label.data)[0], 8 * (i % 8));
		leat_release(held[i]);
	}
}

/* Its parent's threads may have held locks. */
static void
a_forked_child_waits_for_nothing(void **state)
{
	struct leat_feed *feed = open_feed("decode | batch(8) | prefetch(3)", false);
	struct leat_batch *held[8];
	struct DLManagedTensor *label;
	int status;
	pid_t child;

	(void)state;
	for (int i = 0; i < 8; i++)
		held[i] = take(feed);
	label = export(held[0], "label");
	pthread_mutex_lock(&feed->lock);
	child = fork();
	if (child == 0) {
		alarm(10);
		label->deleter(label);
		for (int i = 0; i < 8; i++)
			leat_release(held[i]);
		status = leat_next(feed, &held[0], NULL) == LEAT_INVALID ? 0 : 1;
		leat_close(feed);
#if !defined(__SANITIZE_THREAD__) /* which does not let a child start threads */
		feed = open_feed("decode | batch(8)", false);
		leat_release(take(feed));
		leat_close(feed);
#endif
		_exit(status);
	}
	pthread_mutex_unlock(&feed->lock);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	label->deleter(label);
	for (int i = 0; i < 8; i++)
		leat_release(held[i]);
	assert_int_equal(stats_of(feed).held, 0);
	leat_close(feed);
}

/* What a log function waits for: Python's interpreter lock, which the thread that releases a batch may hold. */
struct gate {
	sem_t reached, open;
};

static void
wait_at_gate(void *arg, enum leat_log_level level, const char *text)
{
	struct gate *gate = arg;

	(void)level;
	if (!strstr(text, "the cache is full"))
		return;
	sem_post(&gate->reached);
	sem_wait(&gate->open);
}

static void
batches_can_be_released_while_a_worker_logs(void **state)
{
	struct leat_options options;
	struct leat_batch *held[4], *more = NULL;
	struct DLManagedTensor *label;
	struct leat_feed *feed;
	struct gate gate;
	int n = 0;

	(void)state;
	assert_int_equal(sem_init(&gate.reached, 0, 0), 0);
	assert_int_equal(sem_init(&gate.open, 0, 0), 0);
	trace_options(&options);
	options.threads = 1;
	options.log = wait_at_gate;
	options.log_arg = &gate;
	/* Room for about 40 of the 128 samples, each of 3 KiB. */
	feed = trace_open(
		spec_with(
			"decode | resize(32, 32) | cast(uint8) | cache(memory, size=160KiB) | batch(8) | prefetch(3)"),
		&options);
	alarm(60);
	while (n < 4)
		held[n++] = take(feed);
	label = export(held[0], "label");
	while (sem_trywait(&gate.reached) != 0) {
		leat_next_within(feed, 10 * 1000 * 1000, &more, NULL);
		leat_release(more);
	}
	while (n > 0)
		leat_release(held[--n]);
	label->deleter(label);
	sem_post(&gate.open);
	leat_release(take(feed));
	alarm(0);
	leat_close(feed);
	sem_destroy(&gate.reached);
	sem_destroy(&gate.open);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches_can_be_held_in_any_number_and_order),
		cmocka_unit_test(a_loop_that_holds_the_previous_batch_copies_nothing),
		cmocka_unit_test(keeping_the_labels_does_not_keep_the_images),
		cmocka_unit_test(without_memory_for_a_copy_the_next_call_gives_the_same_batch),
		cmocka_unit_test(batches_are_held_over_a_jump_and_after_close),
		cmocka_unit_test(a_forked_child_waits_for_nothing),
		cmocka_unit_test(batches_can_be_released_while_a_worker_logs),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
