/* test_http.c - the store http:, and the wire below it, against servers good and bad */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <sys/wait.h>

#include "store/store.h"
#include "support/store.h"
#include "support/temp.h"
#include "support/trace.h"
#include "support/web.h"

static struct leat_mem mem;
static struct leat_stores stores;
static struct store_bed bed;
static char folder[128], uri[160];
static unsigned char data[100000];

/* With a timeout and a patience, in seconds. A busy machine may need any time for what should succeed. */
static void
open_stores(const char *timeout, const char *patience)
{
	setenv("LEAT_NET_TIMEOUT", timeout, 1);
	setenv("LEAT_NET_PATIENCE", patience, 1);
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
}

static void
close_stores(void)
{
	leat_stores_close(&stores);
	assert_int_equal(mem.used, 0);
}

static int
start(void **state)
{
	(void)state;
	web_start();
	snprintf(folder, sizeof(folder), "%s/folder", web_address());
	snprintf(uri, sizeof(uri), "%s/x y%%2B", folder);
	bed = (struct store_bed){folder, web_put, web_remove};
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i * 7 + (i >> 8));
	open_stores("30", "100");
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

/* ---- the contract ---- */

static void
it_reads_any_range_in_any_pieces(void **state)
{
	(void)state;
	promise_store_reads(&bed);
}

static void
thousands_of_reads_are_in_flight_on_few_connections(void **state)
{
	(void)state;
	setenv("LEAT_NET_HEDGE", "false", 1); /* a hedge costs a connection */
	promise_store_submits(&bed);
	unsetenv("LEAT_NET_HEDGE");
	assert_in_range(web_counts().most_open, 2, 512);
	assert_int_equal(web_counts().connections, web_counts().most_open);
}

/* Two connections for each thread of the wire; more are reset. Nothing fails for that. */
static void
a_server_that_wants_few_connections_gets_few(void **state)
{
	(void)state;
	web_set_limit(8);
	promise_store_submits(&bed);
	assert_in_range(web_counts().most_open, 1, 8);
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

/* ---- one object ---- */

static struct leat_object
look_at(const char *name)
{
	struct leat_object object;
	struct leat_store *store;
	struct leat_err err;

	leat_err_clear(&err);
	assert_int_equal(leat_stores_find(&stores, name, &store, NULL, &err), LEAT_OK);
	if (store->kind->look(store, name, &object, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	return object;
}

static enum leat_status
read_range(const struct leat_object *object, uint64_t offset, size_t len, struct leat_err *err)
{
	static unsigned char into[sizeof(data)];
	struct iovec iov[2] = {{into, len / 3}, {into + len / 3, len - len / 3}};
	enum leat_status status;
	size_t got;

	memset(into, 0, len);
	leat_err_clear(err);
	status = leat_object_read(object, offset, iov, 2, 0, &got, err);
	if (status == LEAT_OK)
		assert_memory_equal(into, data + offset, len);
	return status;
}

static void
must_read(const struct leat_object *object)
{
	struct leat_err err;

	if (read_range(object, 1, 99000, &err) != LEAT_OK)
		fail_msg("%s", err.text);
}

static struct leat_object
put_and_look(void)
{
	/* The server sees the name as it was encoded for it. */
	char encoded[160];

	snprintf(encoded, sizeof(encoded), "%s/x%%20y%%2B", folder);
	web_put(encoded, data, sizeof(data));
	return look_at(uri);
}

static void
what_passes_is_tried_again(void **state)
{
	static const enum web_trouble troubles[] = {WEB_RESET, WEB_RESET_IN_BODY, WEB_SHORT, WEB_HANG,
	                                            WEB_DRIP,  WEB_BUSY,          WEB_LEAVE, WEB_EXTRA};
	struct leat_object object;

	(void)state;
	close_stores();
	open_stores("1", "100");
	object = put_and_look();
	for (size_t i = 0; i < sizeof(troubles) / sizeof(*troubles); i++) {
		web_set_trouble(NULL, troubles[i], 1);
		must_read(&object);
		must_read(&object);
	}
}

static void
forms_that_servers_use_are_understood(void **state)
{
	static const enum web_trouble troubles[] = {WEB_CHUNKS, WEB_NO_HEAD, WEB_OLD};
	struct leat_object object = put_and_look(), same;

	(void)state;
	for (size_t i = 0; i < sizeof(troubles) / sizeof(*troubles); i++) {
		if (troubles[i] == WEB_NO_HEAD) {
			web_set_trouble(NULL, troubles[i], -1);
			same = look_at(uri);
			assert_int_equal(same.size, object.size);
			assert_true(leat_version_equal(&same.version, &object.version));
		}
		web_set_trouble(NULL, troubles[i], -1);
		must_read(&object);
	}
}

/* Every one of them ends, with a sentence and the name of the object. */
static void
what_does_not_pass_is_an_error(void **state)
{
	static const struct {
		enum web_trouble trouble;
		const char *says;
	} cases[] = {
		{WEB_RESET, "Connection reset by peer (tried "},
		{WEB_SHORT, "closed the connection in the middle of its answer"},
		{WEB_HANG, "the server did not answer in time"},
		{WEB_DRIP, "the server s"}, /* stopped, or sends too slowly */
		{WEB_BUSY, "the server answered 503"},
		{WEB_WRONG_LENGTH, "the body is not as long as what was asked for"},
		{WEB_WRONG_RANGE, "the server sent another range than was asked for"},
		{WEB_NO_RANGES, "the server ignores ranges"},
		{WEB_GZIP, "the server compresses it"},
		{WEB_ENDLESS_HEAD, "its head is longer than 64 KiB"},
		{WEB_ENDLESS_BODY, "has changed: it had 100000 bytes and now has 5000000000"},
		{WEB_JUNK, "it does not speak HTTP/1.1"},
		{WEB_MOVED, "the server keeps sending us elsewhere"},
		{WEB_FORBIDDEN, "the server does not allow it (403)"},
	};
	struct leat_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		bool waits = cases[i].trouble == WEB_HANG || cases[i].trouble == WEB_DRIP;
		struct leat_object object = put_and_look();
		enum leat_status status;

		close_stores();
		open_stores(waits ? "0.2" : "30", "0.6");
		assert_int_equal(leat_stores_find(&stores, uri, &object.store, NULL, NULL), LEAT_OK);
		web_set_trouble(NULL, cases[i].trouble, -1);
		status = read_range(&object, 1, 99000, &err);
		assert_int_equal(status, cases[i].trouble == WEB_ENDLESS_BODY ? LEAT_DATA : LEAT_IO);
		assert_int_equal(err.status, status);
		if (!strstr(err.text, cases[i].says) || !strstr(err.text, "x y%2B"))
			fail_msg("'%s' does not say '%s'", err.text, cases[i].says);
		assert_in_range(mem.peak, 1, 1 << 20);
		web_set_trouble(NULL, WEB_NONE, 0);
		close_stores();
		open_stores("30", "100");
		assert_int_equal(leat_stores_find(&stores, uri, &object.store, NULL, NULL), LEAT_OK);
		must_read(&object);
	}
}

static void
a_server_that_is_not_there_is_an_error_too(void **state)
{
	struct leat_object object;
	struct leat_store *store;
	struct leat_err err;

	(void)state;
	close_stores();
	open_stores("30", "0.6");
	leat_err_clear(&err);
	assert_int_equal(leat_stores_find(&stores, "http://127.0.0.1:1/x", &store, NULL, &err), LEAT_OK);
	assert_int_equal(store->kind->look(store, "http://127.0.0.1:1/x?sig=secret", &object, &err), LEAT_IO);
	assert_non_null(strstr(err.text, "cannot open 'http://127.0.0.1:1/x': "));
	assert_null(strstr(err.text, "secret"));
}

static void
redirects_are_followed(void **state)
{
	struct leat_object object = put_and_look(), moved;
	char from[160];

	(void)state;
	snprintf(from, sizeof(from), "%s/moved", folder);
	web_redirect(from, "/folder/again");
	snprintf(from, sizeof(from), "%s/again", folder);
	web_redirect(from, "x%20y%2B");
	snprintf(from, sizeof(from), "%s/moved", folder);
	moved = look_at(from);
	assert_int_equal(moved.size, object.size);
	must_read(&moved);
}

/* A SAS of Azure, a signed URL of Google's or Amazon's: the query is part of the name, byte for byte, and a secret. */
static void
a_signed_url_is_sent_as_it_is_and_not_shown(void **state)
{
	static const char *const queries[] = {
		"?sv=2022-11-02&ss=b&srt=co&sp=rl&se=2030-01-01T00:00:00Z&sig=a%2Bb%2Fhush%3D",
		"?X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Credential=me%40p%2Fauto%2Fstorage&X-Goog-Signature=hush",
		"?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=hush+and=more",
	};
	struct leat_store *store;
	struct leat_object object;
	struct leat_err err;
	char name[512], line[512];

	(void)state;
	snprintf(name, sizeof(name), "%s/blob.tar", folder);
	web_put(name, data, sizeof(data));
	for (size_t i = 0; i < sizeof(queries) / sizeof(*queries); i++) {
		snprintf(name, sizeof(name), "%s/blob.tar%s", folder, queries[i]);
		snprintf(line, sizeof(line), "GET /folder/blob.tar%s HTTP/1.1\r\n", queries[i]);
		object = look_at(name);
		must_read(&object);
		assert_memory_equal(web_last(), line, strlen(line));
		snprintf(name, sizeof(name), "%s/none.tar%s", folder, queries[i]);
		leat_err_clear(&err);
		assert_int_equal(leat_stores_find(&stores, name, &store, NULL, &err), LEAT_OK);
		assert_int_equal(store->kind->look(store, name, &object, &err), LEAT_DATA);
		assert_non_null(strstr(err.text, "/folder/none.tar'"));
		assert_null(strstr(err.text, "hush"));
	}
}

static void
patterns_are_an_error_that_says_so(void **state)
{
	const char *pattern = folder;
	struct leat_files *files;
	struct leat_err err;
	char text[160];

	(void)state;
	snprintf(text, sizeof(text), "%s/*.tar", folder);
	pattern = text;
	leat_err_clear(&err);
	assert_int_equal(leat_files_open(&files, &stores, &pattern, 1, &mem, &err), LEAT_IO);
	assert_non_null(strstr(err.text, "/*.tar' does not exist, and web servers cannot list: name every file"));
}

static void
names_that_are_none_are_refused(void **state)
{
	static const char *const names[] = {"http://", "http:///x", "http://user:pass@host/", "http://h:0/",
	                                    "http://[::1/x"};
	struct leat_store *store;
	struct leat_err err;
	char *name;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		leat_err_clear(&err);
		assert_int_equal(leat_stores_find(&stores, names[i], &store, &name, &err), LEAT_INVALID);
		assert_non_null(strstr(err.text, "is not a URL: "));
	}
}

static int
open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static size_t
resident(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	size_t total = 0, pages = 0;

	assert_int_equal(fscanf(file, "%zu %zu", &total, &pages), 2);
	fclose(file);
	return pages * 4096;
}

/* The server closes each connection after a few requests, often while it is about to be used again. With LEAT_LARGE,
 * 10^5 of them. */
static void
connections_that_servers_close_leave_nothing_behind(void **state)
{
	struct leat_object object = put_and_look();
	int files, before, count = getenv("LEAT_LARGE") ? 100000 : 10000;
	size_t used, memory;
	struct leat_err err;

	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(read_range(&object, 0, 100, &err), LEAT_OK);
	before = web_counts().requests;
	files = open_files();
	used = mem.used;
	memory = resident();
	web_set_every(3);
	web_set_trouble(NULL, WEB_LEAVE, -1);
	for (int i = 0; i < count; i++)
		assert_int_equal(read_range(&object, (uint64_t)i % 90000, 100, &err), LEAT_OK);
	assert_in_range(web_counts().connections, count / 3, count);
	assert_in_range(web_counts().requests - before, count, count + count / 10);
	assert_in_range(mem.used, 1, used + 100000);
	assert_in_range(open_files(), 1, files + 8); /* the server's side is counted too */
	if (!TEST_SLOW)                              /* sanitizers keep freed memory */
		assert_in_range(resident(), 1, memory + (4 << 20));
}

static void
a_forked_child_gets_an_error(void **state)
{
	struct leat_object object = put_and_look();
	struct leat_err err;
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(read_range(&object, 0, 10, &err) == LEAT_INVALID ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	must_read(&object);
}

static void *
look_at_hanging(void *arg)
{
	struct leat_store *store = arg;
	static struct leat_err err;
	struct leat_object object;

	leat_err_clear(&err);
	assert_int_equal(store->kind->look(store, uri, &object, &err), LEAT_CANCELLED);
	return &err;
}

/* The server has the request and never answers. */
static void
looking_ends_when_interrupted(void **state)
{
	struct leat_object object = put_and_look();
	int requests = web_counts().requests;
	struct leat_err err;
	pthread_t looks;
	void *why;

	(void)state;
	close_stores();
	open_stores("1000", "10000");
	assert_int_equal(leat_stores_find(&stores, uri, &object.store, NULL, NULL), LEAT_OK);
	web_set_trouble(NULL, WEB_HANG, -1);
	assert_int_equal(pthread_create(&looks, NULL, look_at_hanging, object.store), 0);
	web_wait(requests + 1);
	leat_stores_interrupt(&stores, true);
	assert_int_equal(pthread_join(looks, &why), 0);
	assert_non_null(strstr(((struct leat_err *)why)->text, "x y%2B': interrupted"));
	look_at_hanging(object.store); /* as long as it is set */
	assert_int_equal(read_range(&object, 1, 10, &err), LEAT_CANCELLED);
	leat_stores_interrupt(&stores, false);
	web_set_trouble(NULL, WEB_NONE, 0);
	must_read(&object);
}

static void
every_failing_allocation_is_survived(void **state)
{
	enum leat_status status = LEAT_NOMEM;
	struct leat_object object = put_and_look();
	struct leat_err err;

	(void)state;
	for (long n = 0; status != LEAT_OK; n++) {
		struct leat_stores own;
		struct leat_mem little;
		struct leat_store *store;
		char *name;

		assert_in_range(n, 0, 100);
		leat_mem_init(&little, SIZE_MAX);
		leat_stores_init(&own, &little);
		atomic_store(&little.fail_after, n);
		leat_err_clear(&err);
		status = leat_stores_find(&own, uri, &store, &name, &err);
		if (status == LEAT_OK) {
			status = store->kind->look(store, name, &object, &err);
			if (status == LEAT_OK)
				status = read_range(&object, 0, 10, &err);
			leat_free(&little, name);
		}
		assert_int_equal(err.status, status);
		if (status != LEAT_OK && status != LEAT_NOMEM)
			fail_msg("%s: %s", leat_status_name(status), err.text);
		leat_stores_close(&own);
		assert_int_equal(little.used, 0);
	}
}

#define WITH_SERVER(test) cmocka_unit_test_setup_teardown(test, start, stop)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SERVER(it_reads_any_range_in_any_pieces),
		WITH_SERVER(thousands_of_reads_are_in_flight_on_few_connections),
		WITH_SERVER(a_server_that_wants_few_connections_gets_few),
		WITH_SERVER(a_cancelled_read_is_done_once_too),
		WITH_SERVER(an_object_that_changed_is_an_error_that_names_it),
		WITH_SERVER(what_passes_is_tried_again),
		WITH_SERVER(forms_that_servers_use_are_understood),
		WITH_SERVER(what_does_not_pass_is_an_error),
		WITH_SERVER(a_server_that_is_not_there_is_an_error_too),
		WITH_SERVER(redirects_are_followed),
		WITH_SERVER(a_signed_url_is_sent_as_it_is_and_not_shown),
		WITH_SERVER(patterns_are_an_error_that_says_so),
		WITH_SERVER(names_that_are_none_are_refused),
		WITH_SERVER(connections_that_servers_close_leave_nothing_behind),
		WITH_SERVER(a_forked_child_gets_an_error),
		WITH_SERVER(looking_ends_when_interrupted),
		WITH_SERVER(every_failing_allocation_is_survived),
	};

	unsetenv("http_proxy");
	unsetenv("all_proxy");
	unsetenv("ALL_PROXY");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
