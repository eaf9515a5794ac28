/* test_disk_cache.c - the disk cache, with a wire that is made up: never a wrong byte, and nothing fetched twice */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "store/disk_cache.h"
#include "store/disk_key.h"
#include "store/disk_table.h"
#include "support/temp.h"

enum { OBJECT = 1 << 20, MOST = 400 * 1000 };

/* ---- a wire ---- */

struct wire {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool holds; /* reads are sent and not answered */
	struct leat_read *held[16];
	int helds;
	uint64_t fetched; /* bytes */
	int sends;
};

static uint8_t
byte_at(const char *uri, uint64_t at)
{
	return (uint8_t)(leat_mix64(leat_hash64(uri) + at / 8) >> at % 8 * 8);
}

static void
answer(struct leat_read *read)
{
	uint64_t at = read->offset;

	for (int i = 0; i < read->iovs; i++)
		for (size_t k = 0; k < read->iov[i].iov_len; k++)
			((uint8_t *)read->iov[i].iov_base)[k] = byte_at(read->object.uri, at++);
	read->status = LEAT_OK;
	read->done(read);
}

static enum leat_status
send_read(void *arg, struct leat_read *read, atomic_bool *cancelled)
{
	struct wire *wire = arg;
	bool holds;

	(void)cancelled;
	pthread_mutex_lock(&wire->lock);
	for (int i = 0; i < read->iovs; i++)
		wire->fetched += read->iov[i].iov_len;
	wire->sends++;
	holds = wire->holds;
	if (holds)
		wire->held[wire->helds++] = read;
	pthread_cond_broadcast(&wire->changed);
	pthread_mutex_unlock(&wire->lock);
	if (!holds)
		answer(read);
	return LEAT_OK;
}

static void
wait_for_sends(struct wire *wire, int sends)
{
	pthread_mutex_lock(&wire->lock);
	while (wire->sends < sends)
		pthread_cond_wait(&wire->changed, &wire->lock);
	pthread_mutex_unlock(&wire->lock);
}

static int
sends_of(struct wire *wire)
{
	int sends;

	pthread_mutex_lock(&wire->lock);
	sends = wire->sends;
	pthread_mutex_unlock(&wire->lock);
	return sends;
}

static void
answer_held(struct wire *wire)
{
	pthread_mutex_lock(&wire->lock);
	wire->holds = false;
	pthread_mutex_unlock(&wire->lock);
	for (int i = 0; i < wire->helds; i++)
		answer(wire->held[i]);
	wire->helds = 0;
}

/* ---- a process's view of a cache ---- */

struct side {
	struct leat_mem mem;
	struct wire wire;
	struct leat_disk *disk;
	struct leat_store store;
};

static void
open_side(struct side *side, const struct temp *temp, uint64_t size)
{
	struct leat_storage storage;
	struct leat_disk_wire wire = {.arg = &side->wire, .send = send_read, .place = "here"};
	struct leat_err err;

	*side = (struct side){.wire = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}};
	leat_mem_init(&side->mem, SIZE_MAX);
	leat_storage_init(&storage);
	snprintf(storage.disk_cache, sizeof(storage.disk_cache), "%s/cache", temp->folder);
	storage.disk_cache_size = (int64_t)size;
	leat_err_clear(&err);
	if (leat_disk_open(&side->disk, &storage, &wire, &side->mem, &err) != LEAT_OK)
		fail_msg("%s", err.text);
}

static void
close_side(struct side *side)
{
	leat_disk_close(side->disk);
	assert_int_equal(side->mem.used, 0);
}

/* A read that is checked when it is done. */
struct call {
	struct leat_read read;
	pthread_mutex_t lock;
	pthread_cond_t over;
	bool done;
	uint8_t bytes[MOST];
};

static void
is_done(struct leat_read *read)
{
	struct call *call = read->arg;

	pthread_mutex_lock(&call->lock);
	call->done = true;
	pthread_cond_signal(&call->over);
	pthread_mutex_unlock(&call->lock);
}

static struct call *
begin(struct side *side, const char *uri, uint64_t offset, size_t length, uint64_t epoch)
{
	struct call *call = calloc(1, sizeof(*call));
	size_t third = length / 3;

	assert_true(length <= MOST);
	call->lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	call->over = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	call->read = (struct leat_read){
		.object = {.store = &side->store,
	                   .uri = uri,
	                   .uri_len = strlen(uri),
	                   .size = OBJECT,
	                   .version = {.len = 3, .bytes = {'E', '"', 'x'}}},
		.offset = offset,
		.iov = {{call->bytes, third}, {call->bytes + third, 0}, {call->bytes + third, length - third}},
		.iovs = 3,
		.done = is_done,
		.arg = call,
		.epoch = epoch,
	};
	assert_true(leat_disk_submit(side->disk, &call->read, uri));
	return call;
}

static void
end(struct call *call)
{
	size_t length = call->read.iov[0].iov_len + call->read.iov[2].iov_len;

	pthread_mutex_lock(&call->lock);
	while (!call->done)
		pthread_cond_wait(&call->over, &call->lock);
	pthread_mutex_unlock(&call->lock);
	assert_int_equal(call->read.status, LEAT_OK);
	for (size_t i = 0; i < length; i++)
		if (call->bytes[i] != byte_at(call->read.object.uri, call->read.offset + i))
			fail_msg("a wrong byte at %zu", i);
	free(call);
}

/* Returns how many bytes were fetched for it. */
static uint64_t
get(struct side *side, const char *uri, uint64_t offset, size_t length)
{
	uint64_t before = side->wire.fetched;

	end(begin(side, uri, offset, length, 1));
	return side->wire.fetched - before;
}

static uint64_t
get_in_epoch(struct side *side, const char *uri, uint64_t epoch)
{
	uint64_t before = side->wire.fetched;

	end(begin(side, uri, 0, 100000, epoch));
	return side->wire.fetched - before;
}

static const char *
name(const char *set, int i)
{
	static char names[2][200][24];
	char *text = names[*set == 'b'][i];

	snprintf(text, 24, "http://%s/%d", set, i);
	return text;
}

static uint64_t
folder_bytes(const struct temp *temp)
{
	char path[512];
	uint64_t sum = 0;
	DIR *list;
	struct dirent *entry;
	struct stat st;

	snprintf(path, sizeof(path), "%s/cache", temp->folder);
	list = opendir(path);
	assert_non_null(list);
	while ((entry = readdir(list)) != NULL)
		if (fstatat(dirfd(list), entry->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
			sum += (uint64_t)st.st_size;
	closedir(list);
	return sum;
}

/* Changes every file of bytes. */
static void
for_each_segment(const struct temp *temp, void (*change)(int fd, off_t size))
{
	char path[512];
	DIR *list;
	struct dirent *entry;

	snprintf(path, sizeof(path), "%s/cache", temp->folder);
	list = opendir(path);
	assert_non_null(list);
	while ((entry = readdir(list)) != NULL) {
		int fd = strstr(entry->d_name, ".data") ? openat(dirfd(list), entry->d_name, O_RDWR) : -1;

		if (fd < 0)
			continue;
		change(fd, lseek(fd, 0, SEEK_END));
		close(fd);
	}
	closedir(list);
}

/* ---- tests ---- */

static void
what_was_fetched_is_not_fetched_again(void **state)
{
	struct temp *temp = *state;
	struct leat_disk_stats stats;
	struct side side;

	open_side(&side, temp, 64 << 20);
	assert_int_equal(get(&side, "http://a/1", 1000, 100000), 100000);
	assert_int_equal(get(&side, "http://a/1", 1000, 100000), 0);
	assert_int_equal(get(&side, "http://a/2", 1000, 100000), 100000);
	leat_disk_stats(side.disk, &stats);
	assert_int_equal(stats.hits, 1);
	assert_int_equal(stats.misses, 2);
	assert_int_equal(stats.hit_bytes, 100000);
	close_side(&side);
	open_side(&side, temp, 64 << 20);
	assert_int_equal(get(&side, "http://a/1", 1000, 100000), 0);
	close_side(&side);
}

static void
parts_and_rows_of_extents_are_hits(void **state)
{
	struct temp *temp = *state;
	struct side side;

	open_side(&side, temp, 64 << 20);
	get(&side, "http://a/1", 0, 300000);
	assert_int_equal(get(&side, "http://a/1", 50, 10), 0);
	assert_int_equal(get(&side, "http://a/1", 32760, 70001), 0);
	assert_int_equal(get(&side, "http://a/1", 299999, 1), 0);
	for (int i = 19; i >= 0; i--)
		get(&side, "http://a/2", (uint64_t)i * 7001, 7001);
	assert_int_equal(get(&side, "http://a/2", 3, 20 * 7001 - 5), 0);
	close_side(&side);
}

static void
only_the_middle_that_is_missing_is_fetched(void **state)
{
	struct temp *temp = *state;
	struct side side;

	open_side(&side, temp, 64 << 20);
	get(&side, "http://a/1", 0, 50000);
	get(&side, "http://a/1", 130000, 50000);
	assert_int_equal(get(&side, "http://a/1", 10000, 150000), 80000);
	assert_int_equal(get(&side, "http://a/1", 0, 180000), 0);
	close_side(&side);
}

static void
random_reads_are_right(void **state)
{
	struct temp *temp = *state;
	struct side side;
	uint64_t random = 1;

	open_side(&side, temp, 3 << 20);
	for (int i = 0; i < 600; i++) {
		uint64_t at, length;

		random = leat_mix64(random + 1);
		length = random % (i % 3 ? 5000 : 200000) + 1;
		at = leat_mix64(random) % (OBJECT - length);
		get(&side, name("a", (int)(random >> 60) % 4), at, (size_t)length);
	}
	close_side(&side);
}

static void
flip(int fd, off_t size)
{
	uint8_t byte;

	for (off_t at = 20000; at < size; at += 200000) {
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 0x10;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
}

static void
cut_off(int fd, off_t size)
{
	assert_int_equal(ftruncate(fd, size / 2), 0);
}

static void
damaged_bytes_are_fetched_again(void **state)
{
	static void (*const damages[])(int fd, off_t size) = {flip, cut_off};
	struct temp *temp = *state;
	struct side side;

	open_side(&side, temp, 64 << 20);
	for (int i = 0; i < 2; i++) {
		uint64_t fetched = 0;

		get(&side, "http://a/1", 0, 300000);
		for_each_segment(temp, damages[i]);
		fetched = get(&side, "http://a/1", 0, 300000);
		assert_in_range(fetched, 1, 300000);
		assert_int_equal(get(&side, "http://a/1", 0, 300000), 0);
	}
	close_side(&side);
}

static void
what_does_not_fit_is_not_kept(void **state)
{
	struct temp *temp = *state;
	struct side side;
	int hits = 0;

	open_side(&side, temp, 2 << 20);
	for (int epoch = 0; epoch < 3; epoch++) {
		hits = 0;
		for (int i = 0; i < 40; i++)
			hits += get_in_epoch(&side, name("a", i), (uint64_t)epoch + 1) == 0;
		assert_true(folder_bytes(temp) <= 2 << 20);
	}
	assert_in_range(hits, 19, 20); /* of 100,000 bytes each */
	close_side(&side);
}

static void
data_that_nobody_uses_goes_after_an_epoch(void **state)
{
	struct temp *temp = *state;
	struct side side;

	open_side(&side, temp, 2 << 20);
	for (int i = 0; i < 30; i++)
		get_in_epoch(&side, name("a", i), 1);
	close_side(&side);
	open_side(&side, temp, 2 << 20);
	for (int i = 0; i < 10; i++)
		assert_int_equal(get_in_epoch(&side, name("b", i), 5), 100000);
	for (int i = 0; i < 10; i++)
		assert_int_equal(get_in_epoch(&side, name("b", i), 6), 100000);
	for (int i = 0; i < 10; i++)
		assert_int_equal(get_in_epoch(&side, name("b", i), 7), 0);
	assert_true(folder_bytes(temp) <= 2 << 20);
	close_side(&side);
}

static void
data_that_another_process_uses_stays(void **state)
{
	struct temp *temp = *state;
	struct side first, second;

	open_side(&first, temp, 2 << 20);
	open_side(&second, temp, 2 << 20);
	for (uint64_t epoch = 1; epoch < 4; epoch++) {
		for (int i = 0; i < 18; i++)
			assert_int_equal(get_in_epoch(&first, name("a", i), epoch), epoch == 1 ? 100000 : 0);
		for (int i = 0; i < 10; i++)
			get_in_epoch(&second, name("b", i), epoch);
	}
	close_side(&first);
	close_side(&second);
}

static void
what_another_process_fetches_is_waited_for(void **state)
{
	struct temp *temp = *state;
	struct side first, second;
	struct leat_disk_stats stats = {0};
	struct call *a, *b, *c;

	open_side(&first, temp, 64 << 20);
	open_side(&second, temp, 64 << 20);
	first.wire.holds = true;
	a = begin(&first, "http://a/1", 0, 100000, 1);
	wait_for_sends(&first.wire, 1);
	b = begin(&second, "http://a/1", 0, 100000, 1);
	c = begin(&second, "http://a/1", 50000, 100000, 1); /* half of it */
	while (stats.waits < 2 && !sends_of(&second.wire))
		leat_disk_stats(second.disk, &stats);
	assert_int_equal(sends_of(&second.wire), 0);
	answer_held(&first.wire);
	end(a);
	end(b);
	end(c);
	assert_int_equal(second.wire.fetched, 50000);
	close_side(&first);
	close_side(&second);
}

static void
a_waiting_read_can_be_cancelled(void **state)
{
	struct temp *temp = *state;
	struct side first, second;
	struct leat_disk_stats stats = {0};
	struct call *a, *b;

	open_side(&first, temp, 64 << 20);
	open_side(&second, temp, 64 << 20);
	first.wire.holds = true;
	a = begin(&first, "http://a/1", 0, 1000, 1);
	wait_for_sends(&first.wire, 1);
	b = begin(&second, "http://a/1", 0, 1000, 1);
	while (stats.waits < 1 && !sends_of(&second.wire))
		leat_disk_stats(second.disk, &stats);
	atomic_store(&b->read.cancelled, true);
	leat_disk_cancel(second.disk);
	pthread_mutex_lock(&b->lock);
	while (!b->done)
		pthread_cond_wait(&b->over, &b->lock);
	pthread_mutex_unlock(&b->lock);
	assert_int_equal(b->read.status, LEAT_AGAIN);
	free(b);
	answer_held(&first.wire);
	end(a);
	close_side(&first);
	close_side(&second);
}

static void
what_a_dead_process_was_fetching_is_fetched(void **state)
{
	struct temp *temp = *state;
	struct side side;
	int ready[2];
	char byte;
	pid_t child;

	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (child == 0) {
		open_side(&side, temp, 64 << 20);
		side.wire.holds = true;
		begin(&side, "http://a/1", 0, 100000, 1);
		wait_for_sends(&side.wire, 1);
		(void)!write(ready[1], "x", 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	open_side(&side, temp, 64 << 20);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(get(&side, "http://a/1", 0, 100000), 100000);
	assert_int_equal(get(&side, "http://a/1", 0, 100000), 0);
	close_side(&side);
	close(ready[0]);
	close(ready[1]);
}

/* Writers that are killed anywhere, while others go on. */
static void
killed_writers_leave_nothing_wrong(void **state)
{
	struct temp *temp = *state;
	struct side side;

	open_side(&side, temp, 4 << 20);
	for (int round = 0; round < 12; round++) {
		pid_t child = fork();

		if (child == 0) {
			struct side own;

			open_side(&own, temp, 4 << 20);
			for (int i = 0;; i++)
				get(&own, name("a", (i * 7 + round) % 60), (uint64_t)(i % 5) * 1000, 100000);
		}
		usleep((useconds_t)(1000 + 3000 * round));
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		for (int i = 0; i < 60; i += 7)
			get(&side, name("a", i), 500, 90000);
	}
	close_side(&side);
	open_side(&side, temp, 4 << 20);
	for (int i = 0; i < 60; i++)
		get(&side, name("a", i), 500, 90000);
	close_side(&side);
}

static void
bytes_of_other_users_need_a_request_first(void **state)
{
	struct temp *temp = *state;
	struct leat_disk_wire wire;
	struct leat_storage storage;
	struct side side;
	char path[512];

	if (geteuid() != 0)
		skip();
	open_side(&side, temp, 64 << 20);
	get(&side, "http://a/folder/1", 0, 1000);
	get(&side, "http://a/folder/2", 0, 1000);
	get(&side, "http://a/other/2", 0, 1000);
	close_side(&side);
	snprintf(path, sizeof(path), "chown 12345 %s/cache/*.data", temp->folder);
	assert_int_equal(system(path), 0);
	wire = (struct leat_disk_wire){.arg = &side.wire, .send = send_read, .place = "here"};
	leat_storage_init(&storage);
	snprintf(storage.disk_cache, sizeof(storage.disk_cache), "%s/cache", temp->folder);
	storage.disk_cache_size = 64 << 20;
	storage.disk_cache_trust = LEAT_TRUST_SHARED;
	assert_int_equal(leat_disk_open(&side.disk, &storage, &wire, &side.mem, NULL), LEAT_OK);
	assert_int_equal(get(&side, "http://a/folder/1", 0, 1000), 1000);
	assert_int_equal(get(&side, "http://a/folder/2", 0, 1000), 0);
	assert_int_equal(get(&side, "http://a/other/2", 0, 1000), 1000);
	close_side(&side);
}

static void
folders_that_others_can_write_are_refused(void **state)
{
	struct temp *temp = *state;
	struct leat_disk_options options = {.size = 1 << 20};
	struct leat_disk_table table;
	char path[512];

	snprintf(path, sizeof(path), "%s/cache", temp->folder);
	options.folder = path;
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, 0770), 0);
	assert_int_equal(leat_disk_table_open(&table, &options, NULL), LEAT_INVALID);
	leat_disk_table_close(&table);
	options.shared = true;
	assert_int_equal(leat_disk_table_open(&table, &options, NULL), LEAT_OK);
	leat_disk_table_close(&table);
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(leat_disk_table_open(&table, &options, NULL), LEAT_INVALID);
	leat_disk_table_close(&table);
}

static bool
same_key(const char *a, const char *b)
{
	struct leat_object object = {.size = 1, .version = {.len = 2, .bytes = "Ex"}};
	struct leat_disk_key left, right;

	assert_true(leat_disk_key("", a, &object, &left) && leat_disk_key("", b, &object, &right));
	return memcmp(&left, &right, sizeof(left)) == 0;
}

static void
signatures_are_not_part_of_a_key(void **state)
{
	(void)state;
	assert_true(same_key("https://h/x?X-Amz-Signature=1&X-Amz-Date=2&versionId=3", "https://h/x?versionId=3"));
	assert_true(same_key("https://h/x?sv=1&se=2&sig=3", "https://h/x?sig=4&sv=7"));
	assert_true(same_key("https://h/x?Expires=1&Signature=2&Key-Pair-Id=3", "https://h/x"));
	assert_false(same_key("https://h/x?sv=1", "https://h/x?sv=2"));
	assert_false(same_key("https://h/x?sig=1&snapshot=1", "https://h/x?sig=1&snapshot=2"));
	assert_false(same_key("https://h/x", "https://h/y"));
	assert_false(same_key("s3://b/x?sig=1", "s3://b/x?sig=2"));
}

static void
objects_without_a_version_have_no_key(void **state)
{
	struct leat_object object = {.size = 5, .version = {.len = 9, .bytes = {'M'}}}, entry = {.size = 5};
	struct leat_disk_key key, same;

	(void)state;
	assert_false(leat_disk_key("", "http://a/x", &object, &key));
	entry.token = leat_object_token(&object);
	assert_false(leat_disk_key("", "http://a/x", &entry, &key));
	assert_false(leat_disk_key("", "http://a/x", &(struct leat_object){.size = 5}, &key));
	object.version.bytes[1] = 1;
	assert_true(leat_disk_key("", "http://a/x", &object, &key));
	entry.token = leat_object_token(&object); /* as a table of many objects has it */
	assert_true(leat_disk_key("", "http://a/x", &entry, &same));
	assert_memory_equal(&key, &same, sizeof(key));
}

static void
every_failing_allocation_is_survived(void **state)
{
	struct temp *temp = *state;

	for (long n = 0; n < 12; n++) {
		struct side side = {.wire = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER}};
		struct leat_disk_wire wire = {.arg = &side.wire, .send = send_read, .place = "here"};
		struct leat_storage storage;

		leat_mem_init(&side.mem, SIZE_MAX);
		leat_storage_init(&storage);
		snprintf(storage.disk_cache, sizeof(storage.disk_cache), "%s/cache", temp->folder);
		storage.disk_cache_size = 1 << 20;
		storage.disk_cache_trust = LEAT_TRUST_SHARED;
		side.mem.fail_after = n;
		if (leat_disk_open(&side.disk, &storage, &wire, &side.mem, NULL) == LEAT_OK) {
			struct leat_read read = {.object = {.size = 5, .token = 7}, .iov = {{&side, 1}}, .iovs = 1};

			if (side.mem.fail_after == 0)
				assert_false(leat_disk_submit(side.disk, &read, "http://a/x"));
		}
		close_side(&side);
	}
}

static int
set_up(void **state)
{
	static struct temp temp;

	temp_make(&temp);
	*state = &temp;
	return 0;
}

static int
tear_down(void **state)
{
	temp_remove(*state);
	return 0;
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(what_was_fetched_is_not_fetched_again),
		TEST(parts_and_rows_of_extents_are_hits),
		TEST(only_the_middle_that_is_missing_is_fetched),
		TEST(random_reads_are_right),
		TEST(damaged_bytes_are_fetched_again),
		TEST(what_does_not_fit_is_not_kept),
		TEST(data_that_nobody_uses_goes_after_an_epoch),
		TEST(data_that_another_process_uses_stays),
		TEST(what_another_process_fetches_is_waited_for),
		TEST(a_waiting_read_can_be_cancelled),
		TEST(what_a_dead_process_was_fetching_is_fetched),
		TEST(killed_writers_leave_nothing_wrong),
		TEST(bytes_of_other_users_need_a_request_first),
		TEST(folders_that_others_can_write_are_refused),
		TEST(signatures_are_not_part_of_a_key),
		TEST(objects_without_a_version_have_no_key),
		TEST(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
