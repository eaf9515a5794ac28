/* store.c - see store.h */
#include "store.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "store/store.h"

enum { SIZE = 5000, FLIGHT = 2000 };

static struct leat_mem mem;
static struct leat_stores stores;

static void
open_stores(void)
{
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
}

static void
close_stores(void)
{
	leat_stores_close(&stores);
	assert_int_equal(mem.used, 0);
}

/* "FOLDER/NAME", valid until the fourth call after it. */
static const char *
in(const struct store_bed *bed, const char *name)
{
	static char uri[4][LEAT_URI];
	static int turn;

	turn = (turn + 1) % 4;
	assert_true((size_t)snprintf(uri[turn], sizeof(uri[turn]), "%s/%s", bed->folder, name) < sizeof(uri[turn]));
	return uri[turn];
}

static void
fill(unsigned char *bytes, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (unsigned char)(i * 7 + seed * 31 + (i >> 8));
}

/* The store, and what it calls `text`; freed with leat_free. */
static char *
find(const char *text, struct leat_store **store)
{
	struct leat_err err;
	char *uri;

	leat_err_clear(&err);
	if (leat_stores_find(&stores, text, store, &uri, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	return uri;
}

/* Looks at an object that is there. `uri` has to outlive it. */
static struct leat_object
look_at(const char *uri)
{
	struct leat_object object;
	struct leat_store *store;
	struct leat_err err;
	char *name = find(uri, &store);

	leat_err_clear(&err);
	if (store->kind->look(store, name, &object, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	assert_ptr_equal(object.store, store);
	object.uri = uri;
	assert_string_equal(uri, name); /* what the tests name is what the store names */
	leat_free(&mem, name);
	return object;
}

/* An error names the object, at least as it is called in its folder. */
static bool
is_named(const struct leat_err *err, const char *uri)
{
	const char *name = strrchr(uri, '/');

	return name && strstr(err->text, name);
}

/* The status and the sentence of a look at what is no object. */
static void
look_fails(const char *uri, enum leat_status expected)
{
	struct leat_object object;
	struct leat_store *store;
	struct leat_err err;
	char *name = find(uri, &store);

	leat_err_clear(&err);
	assert_int_equal(store->kind->look(store, name, &object, &err), expected);
	assert_int_equal(err.status, expected);
	assert_true(is_named(&err, uri));
	assert_int_equal(store->kind->look(store, name, &object, NULL), expected);
	leat_free(&mem, name);
}

/* ---- lists ---- */

static void
list_gives(const struct store_bed *bed, const char *pattern, size_t count, const char *const *names)
{
	const char *text = in(bed, pattern);
	struct leat_files *files;
	struct leat_err err;

	leat_err_clear(&err);
	if (leat_files_open(&files, &stores, &text, 1, &mem, &err) != LEAT_OK)
		fail_msg("%s: %s", pattern, err.text);
	assert_int_equal(leat_files_count(files), count);
	for (size_t i = 0; i < count; i++) {
		const struct leat_object *file = leat_files_at(files, i);
		struct leat_object alone = look_at(in(bed, names[i]));

		assert_string_equal(file->uri, in(bed, names[i]));
		assert_int_equal(file->uri_len, strlen(file->uri));
		assert_int_equal(file->size, alone.size);
		assert_int_equal(file->mtime_ns, alone.mtime_ns);
		assert_true(leat_version_equal(&file->version, &alone.version));
	}
	leat_files_close(files);
}

static void
list_fails(const char *text, enum leat_status expected)
{
	struct leat_files *files;
	struct leat_err err;

	leat_err_clear(&err);
	assert_int_equal(leat_files_open(&files, &stores, &text, 1, &mem, &err), expected);
	assert_int_equal(err.status, expected);
	assert_true(is_named(&err, text));
}

struct entries {
	size_t count;
	struct {
		char name[32];
		bool is_folder;
		uint64_t size;
	} entry[16];
};

static enum leat_status
add_entry(void *arg, const struct leat_entry *entry, struct leat_err *err)
{
	struct entries *entries = arg;

	(void)err;
	assert_true(entries->count < 16 && strlen(entry->name) < 32 && !entry->is_missing);
	strcpy(entries->entry[entries->count].name, entry->name);
	entries->entry[entries->count].is_folder = entry->is_folder;
	entries->entry[entries->count++].size = entry->size;
	return LEAT_OK;
}

static void
expect_entry(const struct entries *entries, const char *name, bool is_folder, uint64_t size)
{
	size_t found = 0;

	for (size_t i = 0; i < entries->count; i++)
		if (strcmp(entries->entry[i].name, name) == 0) {
			assert_int_equal(entries->entry[i].is_folder, is_folder);
			if (!is_folder)
				assert_int_equal(entries->entry[i].size, size);
			found++;
		}
	assert_int_equal(found, 1);
}

static enum leat_status
stop_at_once(void *arg, const struct leat_entry *entry, struct leat_err *err)
{
	(void)entry;
	++*(int *)arg;
	return leat_fail(err, LEAT_LIMIT, "enough");
}

static void
check_folder(const struct store_bed *bed)
{
	struct leat_folder_id id, same;
	struct entries entries = {0};
	struct leat_store *store;
	struct leat_err err;
	char *folder = find(bed->folder, &store);
	int visited = 0;

	leat_err_clear(&err);
	assert_int_equal(store->kind->list_folder(store, folder, add_entry, &entries, &id, &err), LEAT_OK);
	assert_int_equal(entries.count, 6);
	expect_entry(&entries, "a", false, 1);
	expect_entry(&entries, "b1", false, 2);
	expect_entry(&entries, "b2", false, 0);
	expect_entry(&entries, ".b3", false, 1);
	expect_entry(&entries, "[ab]*", false, 3);
	expect_entry(&entries, "in", true, 0);
	assert_int_equal(store->kind->list_folder(store, folder, NULL, NULL, &same, &err), LEAT_OK);
	assert_memory_equal(&id.id, &same.id, sizeof(id.id));
	assert_int_equal(store->kind->list_folder(store, folder, stop_at_once, &visited, &id, &err), LEAT_LIMIT);
	assert_string_equal(err.text, "enough");
	assert_int_equal(visited, 1);
	leat_err_clear(&err);
	assert_int_equal(store->kind->list_folder(store, in(bed, "none"), add_entry, &entries, &id, &err), LEAT_IO);
	assert_non_null(strstr(err.text, "none"));
	leat_free(&mem, folder);
}

static void
put_names(const struct store_bed *bed)
{
	bed->put(in(bed, "a"), "1", 1);
	bed->put(in(bed, "b1"), "12", 2);
	bed->put(in(bed, "b2"), "", 0);
	bed->put(in(bed, ".b3"), "1", 1);
	bed->put(in(bed, "[ab]*"), "123", 3);
	bed->put(in(bed, "in/b1"), "1", 1);
	bed->put(in(bed, "in/deep/b1"), "1", 1);
}

void
promise_store_lists(const struct store_bed *bed)
{
	static const char *const names[] = {".b3", "[ab]*", "a", "b1", "b2", "in/b1", "in/deep/b1"};

	open_stores();
	put_names(bed);
	list_gives(bed, "[!i]*", 4, (const char *const[]){"[ab]*", "a", "b1", "b2"}); /* hidden ones never match */
	list_gives(bed, "b?", 2, (const char *const[]){"b1", "b2"});
	list_gives(bed, "[ac]", 1, (const char *const[]){"a"});
	list_gives(bed, "[ab]*", 1, (const char *const[]){"[ab]*"}); /* it exists: no pattern */
	list_gives(bed, "*/b1", 1, (const char *const[]){"in/b1"});
	list_gives(bed, "*/*/b?", 1, (const char *const[]){"in/deep/b1"});
	list_gives(bed, "in/deep/b1", 1, (const char *const[]){"in/deep/b1"});
	list_fails(in(bed, "none"), LEAT_IO);
	list_fails(in(bed, "none*"), LEAT_IO);
	list_fails(in(bed, "in"), LEAT_INVALID);
	look_fails(in(bed, "none"), LEAT_DATA);
	look_fails(in(bed, "b"), LEAT_DATA);
	look_fails(in(bed, "in/deep"), LEAT_INVALID);
	check_folder(bed);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		bed->remove(in(bed, names[i]));
	close_stores();
}

/* ---- reads ---- */

/* Reads [offset, offset + len) in `pieces` pieces, some of them empty. */
static void
read_in_pieces(const struct leat_object *object, const unsigned char *data, size_t offset, size_t len, int pieces)
{
	unsigned char into[SIZE] = {0};
	struct iovec iov[16], before[16];
	struct leat_err err;
	size_t got, at = 0;

	for (int i = 0; i < pieces; i++) {
		size_t piece = i + 1 == pieces ? len - at : i % 3 == 1 ? 0 : (len - at) / 2;

		iov[i] = (struct iovec){into + at, piece};
		at += piece;
	}
	memcpy(before, iov, sizeof(iov));
	leat_err_clear(&err);
	if (leat_object_read(object, offset, iov, pieces, 0, &got, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	assert_int_equal(got, len);
	assert_memory_equal(into, data + offset, len);
	assert_memory_equal(iov, before, (size_t)pieces * sizeof(*iov));
}

/* What needs no waiting is right; what does says so. */
static void
read_now(const struct leat_object *object, const unsigned char *data)
{
	unsigned char into[SIZE];
	struct iovec iov = {into, SIZE};
	struct leat_err err;
	enum leat_status status;
	size_t got;

	leat_err_clear(&err);
	status = leat_object_read(object, 0, &iov, 1, LEAT_READ_NOWAIT, &got, &err);
	assert_true(status == LEAT_OK || status == LEAT_AGAIN);
	assert_int_equal(err.status, LEAT_OK);
	assert_true(status == LEAT_AGAIN ? got < SIZE : got == SIZE);
	assert_memory_equal(into, data, got);
}

static void
read_fails(const struct leat_object *object, uint64_t offset, size_t len, enum leat_status expected, const char *says)
{
	unsigned char into[SIZE];
	struct iovec iov = {into, len};
	char buf[LEAT_URI];
	struct leat_err err;
	size_t got;

	leat_err_clear(&err);
	assert_int_equal(leat_object_read(object, offset, &iov, 1, 0, &got, &err), expected);
	assert_int_equal(err.status, expected);
	if (!is_named(&err, leat_object_uri(object, buf)) || !strstr(err.text, says))
		fail_msg("'%s' does not say '%s'", err.text, says);
	assert_int_equal(leat_object_read(object, offset, &iov, 1, 0, &got, NULL), expected);
}

static void
check_load(const char *uri, const char *none, const unsigned char *data)
{
	struct leat_store *store;
	struct leat_err err;
	char *name = find(uri, &store);
	void *bytes;
	size_t len;

	leat_err_clear(&err);
	assert_int_equal(leat_object_load(store, name, SIZE, &mem, &bytes, &len, &err), LEAT_OK);
	assert_int_equal(len, SIZE);
	assert_memory_equal(bytes, data, SIZE);
	leat_free(&mem, bytes);
	assert_int_equal(leat_object_load(store, name, SIZE - 1, &mem, &bytes, &len, &err), LEAT_LIMIT);
	leat_err_clear(&err);
	assert_int_equal(leat_object_load(store, none, SIZE, &mem, &bytes, &len, &err), LEAT_AGAIN);
	assert_int_equal(err.status, LEAT_OK);
	leat_free(&mem, name);
}

void
promise_store_reads(const struct store_bed *bed)
{
	static const size_t offsets[] = {0, 1, 511, 4096, SIZE - 1, SIZE};
	unsigned char data[SIZE];
	struct leat_object object, empty;
	uint64_t token;
	char uri[LEAT_URI];

	open_stores();
	fill(data, SIZE, 1);
	bed->put(strcpy(uri, in(bed, "x")), data, SIZE);
	bed->put(in(bed, "empty"), "", 0);
	object = look_at(uri);
	empty = look_at(in(bed, "empty"));
	assert_int_equal(object.size, SIZE);
	for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++)
		for (int pieces = 1; pieces <= 16; pieces++) {
			read_in_pieces(&object, data, offsets[i], SIZE - offsets[i], pieces);
			read_in_pieces(&object, data, offsets[i], (SIZE - offsets[i]) / 3, pieces);
		}
	read_in_pieces(&empty, data, 0, 0, 2);
	read_now(&object, data);
	read_fails(&object, SIZE - 5, 6, LEAT_DATA, "");
	read_fails(&object, SIZE + 5, 1, LEAT_DATA, "");
	read_fails(&object, UINT64_MAX - 5, 1, LEAT_INVALID, "out of range");
	check_load(uri, in(bed, "none"), data);
	/* An entry of a table: a name below a folder, and a token instead of a version. */
	token = leat_object_token(&object);
	object = (struct leat_object){
		.store = object.store, .folder = bed->folder, .uri = "x.y", .uri_len = 1, .size = SIZE, .token = token};
	read_in_pieces(&object, data, 7, 100, 1);
	object.token++;
	read_fails(&object, 0, 1, LEAT_DATA, "has changed");
	object.token--;
	object.size--;
	object.remedy = "look again";
	object.uri = "x";
	read_fails(&object, 0, 1, LEAT_DATA, "look again");
	bed->remove(in(bed, "x"));
	bed->remove(in(bed, "empty"));
	close_stores();
}

/* ---- reads in flight ---- */

struct flight {
	pthread_mutex_t lock;
	pthread_cond_t over;
	pthread_t caller;
	struct leat_object object;
	char uri[LEAT_URI];
	unsigned char data[SIZE];
	size_t step;                /* every so many of them is cancelled */
	int done, cancelled, wrong; /* under the lock */
	struct one {
		struct leat_read read;
		unsigned char byte[3];
		int done;
	} one[FLIGHT];
};

static void
end_read(struct leat_read *read)
{
	struct flight *flight = read->arg;
	struct one *one = (struct one *)read;
	bool right = memcmp(one->byte, flight->data + read->offset, sizeof(one->byte)) == 0;

	pthread_mutex_lock(&flight->lock);
	one->done++;
	flight->cancelled += read->status == LEAT_AGAIN;
	flight->wrong += pthread_equal(pthread_self(), flight->caller) || one->done > 1 ||
	                 (read->status == LEAT_OK ? !right : read->status != LEAT_AGAIN);
	if (++flight->done == FLIGHT)
		pthread_cond_signal(&flight->over);
	pthread_mutex_unlock(&flight->lock);
}

static void
prepare_all(struct flight *flight)
{
	flight->done = flight->cancelled = flight->wrong = 0;
	for (size_t i = 0; i < FLIGHT; i++) {
		struct one *one = &flight->one[i];

		*one = (struct one){.read = {.object = flight->object,
		                             .offset = i,
		                             .iov = {{one->byte, 1}, {one->byte + 1, 2}},
		                             .iovs = 2,
		                             .done = end_read,
		                             .arg = flight}};
	}
}

static void
submit_all(struct flight *flight)
{
	struct leat_store *store = flight->object.store;

	for (size_t i = 0; i < FLIGHT; i++)
		assert_int_equal(store->kind->submit(store, &flight->one[i].read), LEAT_OK);
}

static void
wait_for_all(struct flight *flight)
{
	pthread_mutex_lock(&flight->lock);
	while (flight->done < FLIGHT)
		pthread_cond_wait(&flight->over, &flight->lock);
	pthread_mutex_unlock(&flight->lock);
	assert_int_equal(flight->done, FLIGHT);
	assert_int_equal(flight->wrong, 0);
}

static void
open_flight(struct flight *flight, const struct store_bed *bed)
{
	open_stores();
	fill(flight->data, SIZE, 5);
	bed->put(strcpy(flight->uri, in(bed, "x")), flight->data, SIZE);
	flight->object = look_at(flight->uri);
	flight->caller = pthread_self();
	pthread_mutex_init(&flight->lock, NULL);
	pthread_cond_init(&flight->over, NULL);
}

static void
close_flight(struct flight *flight, const struct store_bed *bed)
{
	pthread_cond_destroy(&flight->over);
	pthread_mutex_destroy(&flight->lock);
	bed->remove(in(bed, "x"));
	close_stores();
}

void
promise_store_submits(const struct store_bed *bed)
{
	static struct flight flight;

	open_flight(&flight, bed);
	for (int again = 0; again < 3; again++) {
		prepare_all(&flight);
		submit_all(&flight);
		wait_for_all(&flight);
		assert_int_equal(flight.cancelled, 0);
	}
	close_flight(&flight, bed);
}

static void *
cancel_some(void *arg)
{
	struct flight *flight = arg;
	struct leat_store *store = flight->object.store;

	for (size_t i = 0; i < FLIGHT; i += flight->step)
		store->kind->cancel(store, &flight->one[i].read);
	return NULL;
}

void
promise_store_cancels(const struct store_bed *bed)
{
	static struct flight flight;

	open_flight(&flight, bed);
	for (flight.step = 1; flight.step <= 3; flight.step++)
		for (int meanwhile = 0; meanwhile < 2; meanwhile++) {
			pthread_t other;

			prepare_all(&flight);
			if (meanwhile)
				assert_int_equal(pthread_create(&other, NULL, cancel_some, &flight), 0);
			submit_all(&flight);
			if (meanwhile)
				pthread_join(other, NULL);
			else
				cancel_some(&flight);
			wait_for_all(&flight);
			for (size_t i = 0; i < FLIGHT; i++) /* only those */
				assert_true(flight.one[i].read.status == LEAT_OK || i % flight.step == 0);
			prepare_all(&flight); /* the same ones once more */
			submit_all(&flight);
			wait_for_all(&flight);
			assert_int_equal(flight.cancelled, 0);
		}
	close_flight(&flight, bed);
}

/* ---- versions ---- */

static void
replace_it(const struct store_bed *bed, const char *uri)
{
	bed->put(uri, "other", 5);
}

static void
make_it_longer(const struct store_bed *bed, const char *uri)
{
	bed->put(uri, "longer", 6);
}

static void
cut_it_off(const struct store_bed *bed, const char *uri)
{
	bed->put(uri, "fir", 3);
}

static void
take_it_away(const struct store_bed *bed, const char *uri)
{
	bed->remove(uri);
}

void
promise_store_versions(const struct store_bed *bed)
{
	static const struct {
		void (*change)(const struct store_bed *bed, const char *uri);
		enum leat_status status;
		const char *says;
	} cases[] = {{replace_it, LEAT_DATA, "has changed since it was opened; open the feed again"},
	             {make_it_longer, LEAT_DATA, "it had 5 bytes and now has 6; open the feed again"},
	             {cut_it_off, LEAT_DATA, "it had 5 bytes and now has 3; open the feed again"},
	             {take_it_away, LEAT_DATA, ""}};
	char uri[LEAT_URI];

	open_stores();
	strcpy(uri, in(bed, "x"));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct leat_object object, again;

		bed->put(uri, "first", 5);
		object = look_at(uri);
		again = look_at(uri);
		assert_true(object.version.len > 0);
		assert_true(leat_version_equal(&object.version, &again.version));
		read_in_pieces(&object, (const unsigned char *)"first", 0, 5, 1);
		cases[i].change(bed, uri);
		read_fails(&object, 0, 3, cases[i].status, cases[i].says);
		read_fails(&object, 1, 1, cases[i].status, cases[i].says); /* and again */
		if (cases[i].change == take_it_away)
			bed->put(uri, "first", 5); /* the same bytes are another object */
		again = look_at(uri);
		if (cases[i].change != take_it_away || !bed->by_content)
			assert_false(leat_version_equal(&object.version, &again.version));
	}
	bed->remove(uri);
	close_stores();
}

/* ---- writing ---- */

static void
holds(const char *uri, const char *text)
{
	struct leat_object object = look_at(uri);

	assert_int_equal(object.size, strlen(text));
	read_in_pieces(&object, (const unsigned char *)text, 0, strlen(text), 1);
}

static struct leat_writer *
begin(const char *uri, const char *text)
{
	struct leat_writer *writer;
	struct leat_err err;

	leat_err_clear(&err);
	if (leat_write_begin(&writer, &stores, uri, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	assert_int_equal(leat_write(writer, text, strlen(text), &err), LEAT_OK);
	assert_int_equal(leat_write(writer, NULL, 0, &err), LEAT_OK);
	assert_int_equal(writer->size, strlen(text));
	return writer;
}

/* Nobody sees it before it is committed, and then all of it. */
static void
new_objects_appear_whole(const struct store_bed *bed)
{
	static char large[300000];
	char end[7] = "";
	struct iovec iov = {end, 6};
	struct leat_writer *writer;
	struct leat_object object;
	size_t got;

	writer = begin(in(bed, "x"), "first");
	look_fails(in(bed, "x"), LEAT_DATA);
	list_gives(bed, "*", 1, (const char *const[]){"keep"});
	assert_int_equal(leat_write_commit(writer, NULL, LEAT_COMMIT_SYNC, NULL), LEAT_OK);
	holds(in(bed, "x"), "first");
	memset(large, 'x', sizeof(large) - 1);
	writer = begin(in(bed, "x"), large);
	assert_int_equal(leat_write(writer, "yz", 2, NULL), LEAT_OK);
	assert_int_equal(leat_write_patch(writer, 1, "xxxxxxx", "patched", 7, NULL), LEAT_OK);
	memcpy(large + 1, "patched", 7);
	assert_int_equal(writer->crc, leat_crc32c(leat_crc32c(0, large, sizeof(large) - 1), "yz", 2));
	assert_int_equal(leat_write_finish(writer, 0, NULL), LEAT_OK);
	holds(in(bed, "x"), "first");
	assert_int_equal(leat_write_commit(writer, NULL, 0, NULL), LEAT_OK);
	object = look_at(in(bed, "x"));
	assert_int_equal(object.size, sizeof(large) + 1);
	read_in_pieces(&object, (const unsigned char *)large, 0, SIZE, 1);
	assert_int_equal(leat_object_read(&object, sizeof(large) - 5, &iov, 1, 0, &got, NULL), LEAT_OK);
	assert_string_equal(end, "xxxxyz");
}

static void
one_that_is_there_can_be_left(const struct store_bed *bed)
{
	struct leat_writer *writer[2] = {begin(in(bed, "x"), "one"), begin(in(bed, "x"), "two")};
	struct leat_err err;

	leat_err_clear(&err);
	bed->remove(in(bed, "x"));
	assert_int_equal(leat_write_commit(writer[1], NULL, LEAT_COMMIT_IF_ABSENT, &err), LEAT_OK);
	assert_int_equal(leat_write_commit(writer[0], NULL, LEAT_COMMIT_IF_ABSENT, &err), LEAT_AGAIN);
	assert_int_equal(err.status, LEAT_OK);
	holds(in(bed, "x"), "two");
}

static void
names_are_given_at_the_end(const struct store_bed *bed)
{
	struct leat_store *store;
	char *name = find(in(bed, "y"), &store);
	char *first = find(in(bed, "?"), &store);
	struct leat_writer *writer;

	for (size_t finish = 0; finish < 2; finish++) {
		assert_int_equal(leat_store_begin_unnamed(store, first, &writer, NULL), LEAT_OK);
		assert_int_equal(leat_write(writer, "renamed", 7, NULL), LEAT_OK);
		if (finish)
			assert_int_equal(leat_write_finish(writer, 0, NULL), LEAT_OK);
		list_gives(bed, "*", 2 + finish, (const char *const[]){"keep", "x", "y"});
		assert_int_equal(leat_write_commit(writer, name, 0, NULL), LEAT_OK);
	}
	holds(in(bed, "x"), "two");
	holds(in(bed, "y"), "renamed");
	assert_int_equal(leat_store_remove(store, name, NULL), LEAT_OK);
	assert_int_equal(leat_store_remove(store, name, NULL), store->kind->remote ? LEAT_OK : LEAT_IO);
	look_fails(in(bed, "y"), LEAT_DATA);
	leat_free(&mem, first);
	leat_free(&mem, name);
}

/* A lock is for one at a time, and what is swept away is nothing that anybody sees. */
static void
one_at_a_time_holds_a_lock(const struct store_bed *bed)
{
	struct leat_lock *lock, *other;
	struct leat_store *store;
	char *name = find(in(bed, "x"), &store), *pattern = find(in(bed, "*"), &store);

	if (store->kind->lock) {
		assert_int_equal(store->kind->lock(store, name, &lock, NULL), LEAT_OK);
		assert_int_equal(store->kind->lock(store, name, &other, NULL), LEAT_AGAIN);
		assert_int_equal(store->kind->lock(store, pattern, &other, NULL), LEAT_OK); /* another name */
		store->kind->unlock(other);
		store->kind->sweep(store, pattern);
		holds(in(bed, "x"), "two");
		list_gives(bed, "*", 2, (const char *const[]){"keep", "x"});
		store->kind->unlock(lock);
		assert_int_equal(store->kind->lock(store, name, &lock, NULL), LEAT_OK);
		store->kind->unlock(lock);
	}
	leat_free(&mem, pattern);
	leat_free(&mem, name);
}

void
promise_store_writes(const struct store_bed *bed)
{
	struct leat_err err;

	leat_err_clear(&err);
	open_stores();
	bed->put(in(bed, "keep"), "", 0);
	new_objects_appear_whole(bed);
	one_that_is_there_can_be_left(bed);
	names_are_given_at_the_end(bed);
	one_at_a_time_holds_a_lock(bed);
	leat_write_abort(begin(in(bed, "z"), "given up"));
	look_fails(in(bed, "z"), LEAT_DATA);
	assert_int_equal(leat_write_whole(in(bed, "x"), "whole", 5, 0, NULL, &mem, &err), LEAT_OK);
	holds(in(bed, "x"), "whole");
	assert_int_equal(leat_write_whole(in(bed, "x"), "", 0, 0, NULL, &mem, &err), LEAT_OK);
	holds(in(bed, "x"), "");
	list_gives(bed, "*", 2, (const char *const[]){"keep", "x"});
	bed->remove(in(bed, "keep"));
	bed->remove(in(bed, "x"));
	close_stores();
}

/* ---- no memory ---- */

/* Lists, reads and, if it can be, writes. */
static enum leat_status
use_store(const char *pattern, const char *new, struct leat_err *err)
{
	unsigned char byte;
	struct iovec iov = {&byte, 1};
	struct leat_files *files = NULL;
	struct leat_writer *writer = NULL;
	size_t got;
	enum leat_status status = leat_files_open(&files, &stores, &pattern, 1, &mem, err);

	if (status == LEAT_OK)
		status = leat_files_read(files, 0, 0, &iov, 1, 0, &got, err);
	if (status == LEAT_OK && leat_files_at(files, 0)->store->kind->begin) {
		status = leat_write_begin(&writer, &stores, new, err);
		if (status == LEAT_OK)
			status = leat_write(writer, "new", 3, err);
		if (status == LEAT_OK)
			status = leat_write_finish(writer, 0, err);
	}
	leat_write_abort(writer);
	leat_files_close(files);
	return status;
}

void
promise_store_memory_errors(const struct store_bed *bed)
{
	enum leat_status status = LEAT_NOMEM;
	struct leat_err err;

	bed->put(in(bed, "x"), "x", 1);
	for (long n = 0; status != LEAT_OK; n++) {
		assert_in_range(n, 0, 1000);
		open_stores();
		atomic_store(&mem.fail_after, n);
		leat_err_clear(&err);
		status = use_store(in(bed, "?"), in(bed, "y"), &err);
		assert_int_equal(err.status, status);
		if (status != LEAT_OK && status != LEAT_NOMEM && status != LEAT_IO)
			fail_msg("%s: %s", leat_status_name(status), err.text);
		assert_true(n > 0 || status == LEAT_NOMEM);
		close_stores();
	}
	bed->remove(in(bed, "x"));
}
