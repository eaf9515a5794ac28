/* test_s3_write.c - writing to S3, against a server that fails at every step */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"
#include "support/bucket.h"

enum { PART = 8 << 20, LARGE = 3 * PART + 12345 };

static const char uri[] = "s3://test/a b+=*/x", path[] = "/test/a b+=*/x";
static unsigned char *data;
static struct leat_mem mem;
static struct leat_stores stores;
static struct leat_store *store;
static struct leat_err err;

static int
start(void **state)
{
	(void)state;
	bucket_start();
	setenv("LEAT_NET_PATIENCE", "60", 1);
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	data = malloc(LARGE);
	for (size_t i = 0; i < LARGE; i++)
		data[i] = (unsigned char)(i * 7 + (i >> 8) * 3 + (i >> 16));
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	leat_err_clear(&err);
	assert_int_equal(leat_stores_find(&stores, uri, &store, NULL, &err), LEAT_OK);
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	leat_stores_close(&stores);
	assert_int_equal(mem.used, 0);
	assert_int_equal(bucket_nonsense(), 0);
	bucket_stop();
	free(data);
	return 0;
}

static struct leat_writer *
begin(size_t len)
{
	struct leat_writer *writer;

	leat_err_clear(&err);
	if (leat_store_begin(store, uri, &writer, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	if (leat_write(writer, data, len / 2, &err) != LEAT_OK ||
	    leat_write(writer, data + len / 2, len - len / 2, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	return writer;
}

static void
holds(const char *name, size_t len)
{
	size_t got = 0;
	const void *bytes = bucket_get(name, &got);

	assert_non_null(bytes);
	assert_int_equal(got, len);
	assert_memory_equal(bytes, data, len);
}

static void
commits(size_t len, int flags)
{
	if (leat_write_commit(begin(len), NULL, flags, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	holds(path, len);
	assert_int_equal(bucket_uploads(), 0);
}

/* Writing LARGE bytes fails at some point, and leaves nothing but an error that says so. */
static void
fails(enum leat_status expected, const char *says)
{
	struct leat_writer *writer;
	enum leat_status status;
	size_t len;

	leat_err_clear(&err);
	assert_int_equal(leat_store_begin(store, uri, &writer, &err), LEAT_OK);
	status = leat_write(writer, data, LARGE, &err);
	if (status == LEAT_OK)
		status = leat_write_commit(writer, NULL, 0, &err);
	else
		leat_write_abort(writer);
	assert_int_equal(status, expected);
	if (!strstr(err.text, says))
		fail_msg("'%s' does not say '%s'", err.text, says);
	assert_null(bucket_get(path, &len));
	assert_int_equal(bucket_uploads(), 0);
}

/* ---- requests ---- */

static void
a_small_object_is_one_put(void **state)
{
	(void)state;
	commits(0, 0);
	commits(1, 0);
	commits(PART, 0);
	assert_int_equal(bucket_count(BUCKET_PUT), 3);
	assert_int_equal(bucket_count(BUCKET_CREATE), 0);
	assert_null(strstr(bucket_last(), "UNSIGNED-PAYLOAD"));
}

static void
a_large_one_is_an_upload_of_parts(void **state)
{
	(void)state;
	commits(LARGE, 0);
	assert_int_equal(bucket_count(BUCKET_PUT), 0);
	assert_int_equal(bucket_count(BUCKET_CREATE), 1);
	assert_int_equal(bucket_count(BUCKET_PART), 4);
	assert_int_equal(bucket_count(BUCKET_COMPLETE), 1);
	assert_in_range(bucket_most_parts(), 1, 3);
	assert_in_range(mem.peak, LARGE, 5 * PART + (2 << 20));
}

/* 32 MiB of finished objects wait in memory; the others are uploaded, so that any number can wait. */
static void
finished_objects_take_little_memory(void **state)
{
	enum { COUNT = 6 };
	struct leat_writer *writer[COUNT];
	size_t before = mem.used;

	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		writer[i] = begin(PART - 100000);
		assert_int_equal(leat_write_finish(writer[i], 0, &err), LEAT_OK);
	}
	assert_in_range(mem.used - before, 4 * (PART - 100000), 4 * PART + (1 << 20));
	assert_int_equal(bucket_uploads(), 2);
	assert_int_equal(bucket_count(BUCKET_PUT), 0);
	for (size_t i = 0; i < COUNT; i++) {
		assert_int_equal(leat_write_commit(writer[i], uri, 0, &err), LEAT_OK);
		holds(path, PART - 100000);
	}
	assert_int_equal(bucket_uploads(), 0);
}

static void
the_first_bytes_can_be_patched_to_the_end(void **state)
{
	struct leat_writer *writer = begin(LARGE);

	(void)state;
	data[65535] ^= 0x55;
	assert_int_equal(leat_write_patch(writer, 65535, "x", &data[65535], 1, &err), LEAT_OK);
	assert_int_equal(leat_write_commit(writer, NULL, 0, &err), LEAT_OK);
	holds(path, LARGE);
}

static void
a_name_given_at_the_end_is_a_copy_on_the_server(void **state)
{
	struct leat_writer *writer;

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(leat_store_begin_unnamed(store, "s3://test/a b+=*/begun-?????", &writer, &err),
		                 LEAT_OK);
		assert_int_equal(leat_write(writer, data, LARGE, &err), LEAT_OK);
		bucket_set_trouble(BUCKET_COPY, BUCKET_ERROR, i);
		if (leat_write_commit(writer, uri, 0, &err) != LEAT_OK)
			fail_msg("%s", err.text);
		holds(path, LARGE);
	}
	assert_int_equal(bucket_count(BUCKET_COPY), 3);
	assert_int_equal(bucket_count(BUCKET_DELETE), 2); /* nothing is left of it */
}

static void
one_that_is_there_is_left_alone(void **state)
{
	struct leat_writer *writer[] = {begin(10), begin(LARGE), begin(20)};

	(void)state;
	assert_int_equal(leat_write_commit(writer[0], NULL, LEAT_COMMIT_IF_ABSENT, &err), LEAT_OK);
	assert_int_equal(leat_write_commit(writer[1], NULL, LEAT_COMMIT_IF_ABSENT, &err), LEAT_AGAIN);
	assert_int_equal(leat_write_commit(writer[2], NULL, LEAT_COMMIT_IF_ABSENT, &err), LEAT_AGAIN);
	holds(path, 10);
	assert_int_equal(err.status, LEAT_OK);
	assert_int_equal(bucket_uploads(), 0);
}

static void
aborting_leaves_nothing(void **state)
{
	size_t len;

	(void)state;
	leat_write_abort(begin(LARGE));
	assert_int_equal(bucket_uploads(), 0);
	assert_int_equal(bucket_count(BUCKET_ABORT), 1);
	assert_null(bucket_get(path, &len));
	leat_write_abort(begin(10));
	assert_int_equal(bucket_count(BUCKET_ABORT), 1);
}

/* ---- failures that pass ---- */

static void
every_request_survives_what_passes(void **state)
{
	static const enum bucket_trouble troubles[] = {BUCKET_LOST,  BUCKET_RESET,   BUCKET_BUSY,
	                                               BUCKET_EARLY, BUCKET_EXPIRED, BUCKET_ELSEWHERE};

	(void)state;
	for (size_t i = 0; i < sizeof(troubles) / sizeof(*troubles); i++) {
		bucket_set_trouble(BUCKET_PUT, troubles[i], 1);
		commits(PART, 0);
		for (enum bucket_act act = BUCKET_CREATE; act <= BUCKET_COMPLETE; act++) {
			/* An upload whose creation was lost stays: nobody knows its id. */
			if (act == BUCKET_CREATE && troubles[i] == BUCKET_LOST)
				continue;
			bucket_set_trouble(act, troubles[i], 1);
			commits(PART + 1000 - (size_t)act - i, 0);
		}
	}
}

static void
an_error_after_200_is_an_error(void **state)
{
	(void)state;
	bucket_set_trouble(BUCKET_COMPLETE, BUCKET_ERROR, 2);
	commits(LARGE, 0);
	assert_int_equal(bucket_count(BUCKET_COMPLETE), 3);
}

/* The upload is gone, because the first request completed it. */
static void
an_upload_whose_completion_was_lost_is_complete(void **state)
{
	(void)state;
	bucket_set_trouble(BUCKET_COMPLETE, BUCKET_LOST, 1);
	commits(LARGE, 0);
	assert_int_equal(bucket_count(BUCKET_COMPLETE), 2);
	assert_int_equal(bucket_count(BUCKET_HEAD), 1);
	bucket_set_trouble(BUCKET_COMPLETE, BUCKET_LOST, 1);
	assert_int_equal(leat_store_remove(store, uri, &err), LEAT_OK);
	commits(LARGE - 1, LEAT_COMMIT_IF_ABSENT);
}

/* ---- failures that do not ---- */

static void
an_upload_that_somebody_ended_is_an_error(void **state)
{
	(void)state;
	bucket_set_trouble(BUCKET_COMPLETE, BUCKET_NO_UPLOAD, 1);
	fails(LEAT_IO, "cannot write 's3://test/a b+=*/x': its upload is gone");
	bucket_set_trouble(BUCKET_PART, BUCKET_NO_UPLOAD, 1);
	fails(LEAT_IO, "cannot write 's3://test/a b+=*/x': the server answered 404 NoSuchUpload");
}

/* The server answers and closes while the body is still being sent. */
static void
what_is_not_allowed_says_so(void **state)
{
	static const char says[] =
		"cannot write 's3://test/a b+=*/x': the server answered 403 AccessDenied; the credentials "
		"need the permission s3:PutObject for this bucket";

	(void)state;
	for (enum bucket_act act = BUCKET_CREATE; act <= BUCKET_COMPLETE; act++) {
		bucket_set_trouble(act, BUCKET_DENIED, 1000);
		fails(LEAT_IO, says);
	}
	bucket_set_trouble(BUCKET_DELETE, BUCKET_DENIED, 1);
	leat_err_clear(&err);
	assert_int_equal(leat_store_remove(store, uri, &err), LEAT_IO);
	assert_non_null(strstr(err.text, "cannot remove 's3://test/a b+=*/x'"));
	assert_non_null(strstr(err.text, "s3:DeleteObject"));
}

static void
answers_that_make_no_sense_are_errors(void **state)
{
	struct leat_writer *writer;

	(void)state;
	bucket_set_trouble(BUCKET_CREATE, BUCKET_NONSENSE, 1);
	assert_int_equal(leat_store_begin(store, uri, &writer, &err), LEAT_OK);
	assert_int_equal(leat_write(writer, data, LARGE, &err), LEAT_IO);
	assert_non_null(strstr(err.text, "the server's answer to CreateMultipartUpload makes no sense"));
	leat_err_clear(&err);
	assert_int_equal(leat_write(writer, data, 1, &err), LEAT_IO); /* and again */
	leat_write_abort(writer);
}

static void
a_part_without_an_etag_is_an_error(void **state)
{
	(void)state;
	bucket_set_trouble(BUCKET_PART, BUCKET_NO_ETAG, 1);
	fails(LEAT_IO, "the server gave a part of it no usable ETag");
}

/* ---- memory ---- */

static void
every_failing_allocation_is_survived(void **state)
{
	enum leat_status status = LEAT_NOMEM;
	size_t used = mem.used;

	(void)state;
	for (long n = 0; status != LEAT_OK; n++) {
		struct leat_writer *writer = NULL;
		bool failed = false;

		assert_in_range(n, 0, 500);
		leat_err_clear(&err);
		atomic_store(&mem.fail_after, n);
		status = leat_store_begin(store, uri, &writer, &err);
		if (status == LEAT_OK)
			status = leat_write(writer, data, PART + 1, &err);
		if (status == LEAT_OK)
			status = leat_write_commit(writer, NULL, 0, &err);
		else
			failed = true;
		atomic_store(&mem.fail_after, -1);
		if (failed)
			leat_write_abort(writer); /* with memory, so that the server forgets it */
		if (status != LEAT_OK && status != LEAT_NOMEM && status != LEAT_IO)
			fail_msg("%s: %s", leat_status_name(status), err.text);
		assert_int_equal(err.status, status);
	}
	holds(path, PART + 1);
	assert_in_range(mem.used, used, used + (1 << 20)); /* connections may stay */
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
	const struct CMUnitTest tests[] = {
		TEST(a_small_object_is_one_put),
		TEST(a_large_one_is_an_upload_of_parts),
		TEST(finished_objects_take_little_memory),
		TEST(the_first_bytes_can_be_patched_to_the_end),
		TEST(a_name_given_at_the_end_is_a_copy_on_the_server),
		TEST(one_that_is_there_is_left_alone),
		TEST(aborting_leaves_nothing),
		TEST(every_request_survives_what_passes),
		TEST(an_error_after_200_is_an_error),
		TEST(an_upload_whose_completion_was_lost_is_complete),
		TEST(an_upload_that_somebody_ended_is_an_error),
		TEST(what_is_not_allowed_says_so),
		TEST(answers_that_make_no_sense_are_errors),
		TEST(a_part_without_an_etag_is_an_error),
		TEST(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
