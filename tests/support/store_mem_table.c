/* store_mem_table.c - see store_mem_table.h and store_mem.h
 *
 * Objects are sorted by name. Their bytes come from malloc, not from a feed's memory: they are
 * what a server would hold. */
#include "store_mem_table.h"

#include <fnmatch.h>
#include <ftw.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/rng.h"
#include "temp.h"

#define SCHEME STORE_MEM_SCHEME

struct object {
	char *uri;
	unsigned char *bytes;
	uint64_t size, ends; /* what it says its size is; how many bytes there are */
	uint64_t version;
	int64_t mtime_ns;
};

struct fault {
	char *uri;
	uint64_t from, to;
	int times;
	enum leat_status status; /* LEAT_IO or LEAT_DATA */
};

static struct table {
	pthread_mutex_t lock;
	/* Under the lock: */
	struct object *object; /* sorted by name */
	size_t objects, objects_cap;
	struct fault *fault;
	size_t faults, faults_cap;
	uint64_t versions; /* given so far */
	struct store_mem_settings settings;
	struct leat_rng rng;
	struct store_mem_counts counts;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the table, under its lock ---- */

/* Where the object is, or would be. */
static size_t
place_of(const char *uri, bool *found)
{
	size_t low = 0, high = table.objects;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(table.object[middle].uri, uri);

		if (order == 0) {
			*found = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*found = false;
	return low;
}

static struct object *
find_object(const char *uri)
{
	bool found;
	size_t i = place_of(uri, &found);

	return found ? &table.object[i] : NULL;
}

static int64_t
real_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Takes `bytes`, from malloc. False: no memory, and they are freed. */
static bool
put_object(const char *uri, unsigned char *bytes, uint64_t size, int64_t mtime_ns)
{
	struct object new = {.uri = strdup(uri), .bytes = bytes, .size = size, .ends = size, .mtime_ns = mtime_ns};
	bool found;
	size_t i = place_of(uri, &found);

	if (!found && table.objects == table.objects_cap) {
		size_t cap = table.objects_cap ? 2 * table.objects_cap : 64;
		struct object *grown = realloc(table.object, cap * sizeof(*grown));

		if (grown) {
			table.object = grown;
			table.objects_cap = cap;
		}
	}
	if (!new.uri || (!found && table.objects == table.objects_cap)) {
		free(new.uri);
		free(bytes);
		return false;
	}
	new.version = ++table.versions;
	if (found) {
		free(table.object[i].uri);
		free(table.object[i].bytes);
	} else {
		memmove(table.object + i + 1, table.object + i, (table.objects++ - i) * sizeof(new));
	}
	table.object[i] = new;
	return true;
}

static bool
remove_object(const char *uri)
{
	bool found;
	size_t i = place_of(uri, &found);

	if (!found)
		return false;
	free(table.object[i].uri);
	free(table.object[i].bytes);
	memmove(table.object + i, table.object + i + 1, (--table.objects - i) * sizeof(*table.object));
	return true;
}

/* Whether there are objects below it. */
static bool
is_folder(const char *uri)
{
	size_t len = strlen(uri);
	bool found;

	for (size_t i = place_of(uri, &found); i < table.objects && strncmp(table.object[i].uri, uri, len) == 0; i++)
		if (table.object[i].uri[len] == '/')
			return true;
	return false;
}

/* ---- for tests ---- */

void
store_mem_reset(void)
{
	pthread_mutex_lock(&table.lock);
	for (size_t i = 0; i < table.objects; i++) {
		free(table.object[i].uri);
		free(table.object[i].bytes);
	}
	for (size_t i = 0; i < table.faults; i++)
		free(table.fault[i].uri);
	free(table.object);
	free(table.fault);
	assert_int_equal(table.counts.in_flight, 0);
	table.object = NULL;
	table.fault = NULL;
	table.objects = table.objects_cap = table.faults = table.faults_cap = 0;
	table.settings = (struct store_mem_settings){0};
	table.counts = (struct store_mem_counts){0};
	pthread_mutex_unlock(&table.lock);
	store_mem_hold(false);
}

void
store_mem_put(const char *uri, const void *bytes, size_t len)
{
	unsigned char *copy = malloc(len + 1);
	bool added;

	assert_non_null(copy);
	assert_int_equal(strncmp(uri, SCHEME, strlen(SCHEME)), 0);
	memcpy(copy, bytes, len);
	pthread_mutex_lock(&table.lock);
	added = put_object(uri, copy, len, real_now());
	pthread_mutex_unlock(&table.lock);
	assert_true(added);
}

static int
mirror_file(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	unsigned char *bytes;
	char uri[LEAT_URI];
	bool added;
	size_t len;

	if (type != FTW_F || path[ftw->base] == '.')
		return 0;
	bytes = temp_read(path, &len);
	assert_true((size_t)snprintf(uri, sizeof(uri), SCHEME "%s", path) < sizeof(uri));
	pthread_mutex_lock(&table.lock);
	added = put_object(uri, bytes, len, (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec);
	pthread_mutex_unlock(&table.lock);
	assert_true(added);
	return 0;
}

void
store_mem_mirror(const char *folder)
{
	assert_int_equal(nftw(folder, mirror_file, 16, FTW_PHYS), 0);
}

void
store_mem_remove(const char *uri)
{
	assert_true(store_mem_take_away(uri));
}

size_t
store_mem_count(const char *end)
{
	size_t count = 0, len = strlen(end);

	pthread_mutex_lock(&table.lock);
	for (size_t i = 0; i < table.objects; i++) {
		size_t all = strlen(table.object[i].uri);

		count += all >= len && strcmp(table.object[i].uri + all - len, end) == 0;
	}
	pthread_mutex_unlock(&table.lock);
	return count;
}

void
store_mem_spec(const char *folder, const char *spec, char *out, size_t cap)
{
	size_t len = 0, here = strlen(folder);

	for (; *spec; out[len++] = *spec++) {
		assert_true(len + strlen(SCHEME) + 1 < cap);
		if (strncmp(spec, folder, here) == 0)
			len += (size_t)snprintf(out + len, cap - len, SCHEME);
	}
	out[len] = '\0';
}

void
store_mem_set(const struct store_mem_settings *settings)
{
	pthread_mutex_lock(&table.lock);
	table.settings = *settings;
	leat_rng_init(&table.rng, settings->shuffle, 0, 0, leat_stream("store_mem", 0));
	pthread_mutex_unlock(&table.lock);
}

void
store_mem_fail(const char *uri, uint64_t from, uint64_t to, int times, enum leat_status status)
{
	struct fault fault = {strdup(uri), from, to, times, status};

	assert_non_null(fault.uri);
	pthread_mutex_lock(&table.lock);
	if (table.faults == table.faults_cap) {
		table.faults_cap = table.faults_cap ? 2 * table.faults_cap : 16;
		table.fault = realloc(table.fault, table.faults_cap * sizeof(fault));
		assert_non_null(table.fault);
	}
	table.fault[table.faults++] = fault;
	pthread_mutex_unlock(&table.lock);
}

void
store_mem_truncate(const char *uri, uint64_t size)
{
	struct object *object;

	pthread_mutex_lock(&table.lock);
	object = find_object(uri);
	if (object)
		object->ends = size < object->size ? size : object->size;
	pthread_mutex_unlock(&table.lock);
	assert_non_null(object);
}

struct store_mem_counts
store_mem_counts(void)
{
	struct store_mem_counts counts;

	pthread_mutex_lock(&table.lock);
	counts = table.counts;
	pthread_mutex_unlock(&table.lock);
	return counts;
}

/* ---- for the store: names ---- */

bool
store_mem_describe(const char *uri, struct leat_object *object, bool *folder)
{
	const struct object *found;

	pthread_mutex_lock(&table.lock);
	found = find_object(uri);
	*folder = !found && is_folder(uri);
	*object = (struct leat_object){.uri = uri, .uri_len = strlen(uri)};
	if (found) {
		object->size = found->size;
		object->mtime_ns = found->mtime_ns;
		object->version.len = sizeof(found->version);
		memcpy(object->version.bytes, &found->version, sizeof(found->version));
	}
	pthread_mutex_unlock(&table.lock);
	return found != NULL;
}

static bool
add_name(struct store_mem_names *names, const char *name, size_t len, bool is_folder)
{
	if (names->count == names->cap) {
		size_t cap = names->cap ? 2 * names->cap : 64;
		char **grown = realloc(names->name, cap * sizeof(*grown));
		bool *flags = realloc(names->is_folder, cap * sizeof(*flags));

		if (grown)
			names->name = grown;
		if (flags)
			names->is_folder = flags;
		if (!grown || !flags)
			return false;
		names->cap = cap;
	}
	names->name[names->count] = strndup(name, len);
	names->is_folder[names->count] = is_folder;
	return names->name[names->count] && ++names->count;
}

void
store_mem_free_names(struct store_mem_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		free(names->name[i]);
	free(names->name);
	free(names->is_folder);
}

bool
store_mem_match(const char *pattern, struct store_mem_names *names)
{
	bool room = true;

	pthread_mutex_lock(&table.lock);
	for (size_t i = 0; i < table.objects && room; i++) {
		const char *uri = table.object[i].uri;

		if (fnmatch(pattern, uri, FNM_PATHNAME | FNM_PERIOD) == 0)
			room = add_name(names, uri, strlen(uri), false);
	}
	pthread_mutex_unlock(&table.lock);
	return room;
}

bool
store_mem_below(const char *folder, struct store_mem_names *names)
{
	size_t len = strlen(folder);
	bool found, room = true;

	pthread_mutex_lock(&table.lock);
	for (size_t i = place_of(folder, &found);
	     i < table.objects && room && strncmp(table.object[i].uri, folder, len) == 0; i++) {
		const char *name = table.object[i].uri + len + 1;
		size_t part = strcspn(name, "/");
		const char *last = names->count ? names->name[names->count - 1] : "";

		if (table.object[i].uri[len] != '/')
			continue;
		/* The objects of one folder follow each other. */
		if (name[part] != '/' || strncmp(last, name, part) != 0 || last[part])
			room = add_name(names, name, part, name[part] == '/');
	}
	pthread_mutex_unlock(&table.lock);
	return room;
}

/* ---- for the store: reads ---- */

static uint64_t
read_length(const struct leat_read *read)
{
	uint64_t len = 0;

	for (int i = 0; i < read->iovs; i++)
		len += read->iov[i].iov_len;
	return len;
}

/* LEAT_OK: none. */
static enum leat_status
has_fault(const char *uri, uint64_t from, uint64_t to)
{
	for (size_t i = 0; i < table.faults; i++) {
		struct fault *fault = &table.fault[i];

		if (fault->times != 0 && from < fault->to && fault->from < to && strcmp(fault->uri, uri) == 0) {
			fault->times -= fault->times > 0;
			return fault->status;
		}
	}
	return LEAT_OK;
}

/* That the object is the one that is meant, and whole as far as it is read. */
static enum leat_status
compare(const struct leat_object *meant, const struct object *now, const char *uri, uint64_t end, struct leat_err *err)
{
	const char *remedy = meant->remedy ? meant->remedy : "open the feed again";
	struct leat_object found = {.size = now->size, .version.len = sizeof(now->version)};

	memcpy(found.version.bytes, &now->version, sizeof(now->version));
	if (now->size != meant->size)
		return leat_fail(err, LEAT_DATA,
		                 "'%s' has changed: it had %" PRIu64 " bytes and now has %" PRIu64 "; %s", uri,
		                 meant->size, now->size, remedy);
	if ((meant->version.len && !leat_version_equal(&found.version, &meant->version)) ||
	    (meant->token && meant->token != leat_object_token(&found)))
		return leat_fail(err, LEAT_DATA, "'%s' has changed since it was opened; %s", uri, remedy);
	if (end > now->ends)
		return leat_fail(err, LEAT_DATA, "'%s' ends at offset %" PRIu64 ", but %" PRIu64 " was expected", uri,
		                 now->ends, end);
	return LEAT_OK;
}

static void
copy_out(const struct leat_read *read, const struct object *object)
{
	const unsigned char *from = object->bytes + read->offset;

	for (int i = 0; i < read->iovs; i++) {
		if (read->iov[i].iov_len)
			memcpy(read->iov[i].iov_base, from, read->iov[i].iov_len);
		from += read->iov[i].iov_len;
	}
}

static enum leat_status
read_object(struct leat_read *read, bool fail, struct leat_err *err)
{
	uint64_t len = read_length(read), end = read->offset + len;
	char buf[LEAT_URI];
	const char *uri = leat_object_uri(&read->object, buf);
	const struct object *object = uri ? find_object(uri) : NULL;
	enum leat_status status;

	if (!uri)
		return leat_fail(err, LEAT_DATA, "the name of an object below '%s' is too long or not a name",
		                 read->object.folder);
	if (!object)
		return leat_fail(err, LEAT_DATA, "cannot open '%s': there is no such object", uri);
	status = fail ? LEAT_IO : has_fault(uri, read->offset, end);
	if (status != LEAT_OK)
		return leat_fail(err, status, "cannot read '%s' at offset %" PRIu64 ": the connection was reset", uri,
		                 read->offset);
	status = compare(&read->object, object, uri, end, err);
	if (status == LEAT_OK) {
		copy_out(read, object);
		table.counts.bytes += len;
	}
	return status;
}

enum leat_status
store_mem_read(struct leat_read *read, bool fail, struct leat_err *err)
{
	enum leat_status status;

	pthread_mutex_lock(&table.lock);
	status = read_object(read, fail, err);
	pthread_mutex_unlock(&table.lock);
	return status;
}

struct store_mem_fate
store_mem_count_submit(void)
{
	struct store_mem_fate fate;
	uint64_t latency;

	pthread_mutex_lock(&table.lock);
	latency = table.settings.latency_ns;
	fate.order = ++table.counts.submitted;
	fate.fail = table.settings.fail_every && fate.order % table.settings.fail_every == 0;
	if (table.settings.shuffle) {
		fate.order = leat_rng_u64(&table.rng);
		latency = leat_rng_below(&table.rng, 2 * latency + 1);
	}
	if (table.settings.slow_every && table.counts.submitted % table.settings.slow_every == 0)
		latency = table.settings.slow_ns;
	fate.begin_ns = leat_now();
	fate.due_ns = latency ? fate.begin_ns + latency : 1;
	if (table.settings.stuck_from && table.counts.submitted >= table.settings.stuck_from)
		fate.due_ns = UINT64_MAX;
	if (++table.counts.in_flight > table.counts.most_in_flight)
		table.counts.most_in_flight = table.counts.in_flight;
	pthread_mutex_unlock(&table.lock);
	return fate;
}

void
store_mem_count_refused(void)
{
	pthread_mutex_lock(&table.lock);
	table.counts.in_flight--;
	pthread_mutex_unlock(&table.lock);
}

void
store_mem_count_done(const struct leat_read *read)
{
	pthread_mutex_lock(&table.lock);
	table.counts.in_flight--;
	table.counts.cancelled += read->status == LEAT_AGAIN;
	table.counts.failed += read->status != LEAT_AGAIN && read->status != LEAT_OK;
	pthread_mutex_unlock(&table.lock);
}

/* ---- for the store: writing ---- */

enum leat_status
store_mem_commit(const char *uri, unsigned char *bytes, size_t len, bool if_absent, struct leat_err *err)
{
	bool there, added = false;

	pthread_mutex_lock(&table.lock);
	there = if_absent && find_object(uri);
	if (there)
		free(bytes);
	else
		added = put_object(uri, bytes, len, real_now());
	pthread_mutex_unlock(&table.lock);
	if (there)
		return LEAT_AGAIN;
	return added ? LEAT_OK : leat_fail(err, LEAT_NOMEM, "no memory to write '%s'", uri);
}

bool
store_mem_take_away(const char *uri)
{
	bool removed;

	pthread_mutex_lock(&table.lock);
	removed = remove_object(uri);
	pthread_mutex_unlock(&table.lock);
	return removed;
}
