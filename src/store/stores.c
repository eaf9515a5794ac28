/* stores.c - find the store of a URI, and code shared by all stores
 *
 * Threads: init and close by one, everything else by any. */
#include "store/store.h"

#include <stdio.h>
#include <unistd.h>

#include "base/hash.h"

void
leat_stores_init(struct leat_stores *stores, struct leat_mem *mem)
{
	*stores = (struct leat_stores){.mem = mem};
	pthread_mutex_init(&stores->lock, NULL);
}

void
leat_stores_close(struct leat_stores *stores)
{
	if (!stores->mem)
		return;
	for (size_t i = 0; i < sizeof(stores->store) / sizeof(*stores->store); i++)
		if (stores->store[i])
			stores->store[i]->kind->close(stores->store[i]);
	pthread_mutex_destroy(&stores->lock);
	*stores = (struct leat_stores){0};
}

static const char scheme_characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-";

/* Length of the scheme in scheme://... or file:...; 0: a plain path. A single letter is not a scheme. */
static size_t
scheme_length(const char *text)
{
	size_t len = strspn(text, scheme_characters);

	if (strncmp(text, "file:", 5) == 0)
		return 4;
	return len > 1 && strncmp(text + len, "://", 3) == 0 ? len : 0;
}

static enum leat_status
fail_scheme(const char *text, size_t len, struct leat_err *err)
{
	char known[128] = "";
	size_t used = 0;

	for (size_t i = 0; leat_store_kinds[i] && used < sizeof(known); i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s:", i ? ", " : "",
		                         leat_store_kinds[i]->scheme);
	return leat_fail(err, LEAT_UNSUPPORTED, "'%s': unsupported scheme '%.*s:'; use %s", text, (int)len, text,
	                 known);
}

/* Index in leat_store_kinds; SIZE_MAX: none. */
static size_t
find_kind(const char *text, size_t scheme)
{
	for (size_t i = 0; leat_store_kinds[i]; i++) {
		const char *name = leat_store_kinds[i]->scheme;

		if (scheme ? strlen(name) == scheme && strncmp(name, text, scheme) == 0 : strcmp(name, "file") == 0)
			return i;
	}
	return SIZE_MAX;
}

static void
add_store(struct leat_stores *stores, struct leat_store *store)
{
	unsigned in_flight = store->in_flight ? store->in_flight : store->kind->in_flight;

	store->stores = stores;
	store->first_thread = stores->threads;
	stores->threads += store->kind->threads;
	if (in_flight > stores->in_flight)
		stores->in_flight = in_flight;
}

static enum leat_status
open_store(struct leat_stores *stores, size_t i, struct leat_err *err)
{
	const struct leat_store_kind *kind = leat_store_kinds[i];
	struct leat_storage defaults;
	enum leat_status status;

	if (!stores->storage)
		leat_storage_init(&defaults);
	status = kind->open(kind, stores->storage ? stores->storage : &defaults, stores->mem, &stores->store[i], err);
	if (status == LEAT_OK)
		add_store(stores, stores->store[i]);
	return status;
}

enum leat_status
leat_stores_find(struct leat_stores *stores, const char *text, struct leat_store **store, char **uri,
                 struct leat_err *err)
{
	size_t scheme = scheme_length(text), i = find_kind(text, scheme);
	enum leat_status status = LEAT_OK;

	if (!*text)
		return leat_fail(err, LEAT_INVALID, "a file name or pattern is empty");
	if (i >= sizeof(stores->store) / sizeof(*stores->store))
		return fail_scheme(text, scheme, err);
	pthread_mutex_lock(&stores->lock);
	if (!stores->store[i])
		status = open_store(stores, i, err);
	pthread_mutex_unlock(&stores->lock);
	if (status != LEAT_OK)
		return status;
	*store = stores->store[i];
	return uri ? (*store)->kind->resolve(*store, text, uri, err) : LEAT_OK;
}

/* ---- objects ---- */

uint64_t
leat_object_token(const struct leat_object *object)
{
	const struct leat_version *version = &object->version;
	uint64_t hash = object->size ^ (uint64_t)version->len << 56, word = 0;
	size_t i = 0;

	for (; i + sizeof(word) <= version->len; i += sizeof(word)) {
		memcpy(&word, version->bytes + i, sizeof(word));
		hash = leat_mix64(hash) ^ word;
	}
	if (i < version->len || !version->len) {
		word = version->len ? 0 : (uint64_t)object->mtime_ns;
		memcpy(&word, version->bytes + i, version->len - i);
		hash = leat_mix64(hash) ^ word;
	}
	hash = leat_mix64(hash);
	return hash ? hash : 1;
}

bool
leat_object_is_trusted(const struct leat_object *object, uint32_t owner)
{
	return !object->others_write && (object->owner == 0 || object->owner == geteuid() || object->owner == owner);
}

bool
leat_owner_of(struct leat_store *store, const char *uri, uint32_t *owner)
{
	struct leat_folder_id id = {0};
	struct leat_object object;
	enum leat_status status = store->kind->look(store, uri, &object, NULL);

	if (status != LEAT_OK)
		status = store->kind->list_folder(store, uri, NULL, NULL, &id, NULL);
	else
		id.owner = object.owner;
	*owner = id.owner;
	return status == LEAT_OK;
}

bool
leat_is_uri(const char *text, size_t len)
{
	const char *colon = memchr(text, ':', len);

	if (!colon || len - (size_t)(colon - text) < 3 || memcmp(colon, "://", 3) != 0)
		return false;
	return colon - text > 1 && strspn(text, scheme_characters) == (size_t)(colon - text);
}

const char *
leat_object_uri(const struct leat_object *object, char buf[LEAT_URI])
{
	size_t folder;

	if (!object->folder)
		return object->uri;
	folder = object->uri_len && object->uri[0] == '/' ? 0 : strlen(object->folder);
	if (folder + object->uri_len + 2 > LEAT_URI || memchr(object->uri, '\0', object->uri_len))
		return NULL;
	memcpy(buf, object->folder, folder);
	if (folder && buf[folder - 1] != '/')
		buf[folder++] = '/';
	memcpy(buf + folder, object->uri, object->uri_len);
	buf[folder + object->uri_len] = '\0';
	return buf;
}

enum leat_what
leat_what_is(struct leat_store *store, const char *uri)
{
	struct leat_folder_id id;
	struct leat_object object;
	enum leat_status status = store->kind->look(store, uri, &object, NULL);

	if (status == LEAT_OK)
		return LEAT_IS_OBJECT;
	if (status == LEAT_INVALID || store->kind->list_folder(store, uri, NULL, NULL, &id, NULL) == LEAT_OK)
		return LEAT_IS_FOLDER;
	return LEAT_IS_NOTHING;
}

char *
leat_folder_of(const char *uri, struct leat_mem *mem)
{
	const char *slash = strrchr(uri, '/');

	return slash ? leat_strndup(mem, uri, slash == uri ? 1 : (size_t)(slash - uri)) : leat_strdup(mem, ".");
}

void
leat_stores_disk_stats(struct leat_stores *stores, struct leat_disk_stats *sum)
{
	*sum = (struct leat_disk_stats){0};
	pthread_mutex_lock(&stores->lock);
	for (size_t i = 0; i < sizeof(stores->store) / sizeof(*stores->store); i++) {
		struct leat_store *store = stores->store[i];
		struct leat_disk_stats stats;

		if (!store || !store->kind->disk_stats)
			continue;
		store->kind->disk_stats(store, &stats);
		sum->hits += stats.hits;
		sum->misses += stats.misses;
		sum->hit_bytes += stats.hit_bytes;
		sum->fetched += stats.fetched;
		sum->evictions += stats.evictions;
		sum->waits += stats.waits;
	}
	pthread_mutex_unlock(&stores->lock);
}

static void
wake_waiter(struct leat_read *read)
{
	struct leat_waiter *waiter = read->arg;

	pthread_mutex_lock(&waiter->lock);
	waiter->done = true;
	pthread_cond_signal(&waiter->over);
	pthread_mutex_unlock(&waiter->lock);
}

/* False: interrupted; blocking reads are refused. */
static bool
enter_waiter(struct leat_stores *stores, struct leat_waiter *waiter)
{
	bool enters;

	pthread_mutex_lock(&stores->lock);
	enters = !stores->interrupted;
	if (enters) {
		waiter->next = stores->waiting;
		waiter->previous = &stores->waiting;
		if (waiter->next)
			waiter->next->previous = &waiter->next;
		stores->waiting = waiter;
	}
	pthread_mutex_unlock(&stores->lock);
	return enters;
}

static void
leave_waiter(struct leat_stores *stores, struct leat_waiter *waiter)
{
	pthread_mutex_lock(&stores->lock);
	*waiter->previous = waiter->next;
	if (waiter->next)
		waiter->next->previous = waiter->previous;
	pthread_mutex_unlock(&stores->lock);
}

void
leat_stores_interrupt(struct leat_stores *stores, bool interrupted)
{
	pthread_mutex_lock(&stores->lock);
	stores->interrupted = interrupted;
	for (struct leat_waiter *waiter = stores->waiting; interrupted && waiter; waiter = waiter->next) {
		struct leat_store *store = waiter->read.object.store;

		store->kind->cancel(store, &waiter->read);
	}
	for (size_t i = 0; interrupted && i < sizeof(stores->store) / sizeof(*stores->store); i++)
		if (stores->store[i] && stores->store[i]->kind->interrupt)
			stores->store[i]->kind->interrupt(stores->store[i]);
	pthread_mutex_unlock(&stores->lock);
}

static void
end_waiter(struct leat_waiter *waiter)
{
	leave_waiter(waiter->read.object.store->stores, waiter);
	pthread_cond_destroy(&waiter->over);
	pthread_mutex_destroy(&waiter->lock);
}

/* LEAT_AGAIN: cancelled. */
static enum leat_status
fail_read(const struct leat_object *object, uint64_t offset, enum leat_status status, struct leat_err *err)
{
	char buf[LEAT_URI];

	if (err && err->status == status)
		return status;
	return leat_fail(err, status == LEAT_AGAIN ? LEAT_CANCELLED : status, "cannot read '%s' at offset %llu%s",
	                 leat_object_uri(object, buf), (unsigned long long)offset,
	                 status == LEAT_AGAIN ? ": the feed is closing" : "");
}

/* Starts a read of at most LEAT_READ_PARTS iovs. */
static enum leat_status
start_parts(struct leat_waiter *waiter, const struct leat_object *object, uint64_t offset, const struct iovec *iov,
            int iovs, struct leat_err *err)
{
	struct leat_store *store = object->store;
	enum leat_status status = LEAT_AGAIN;

	*waiter = (struct leat_waiter){
		.read = {.object = *object, .offset = offset, .iovs = iovs, .done = wake_waiter, .err = err}};
	memcpy(waiter->read.iov, iov, (size_t)iovs * sizeof(*iov));
	waiter->read.arg = waiter;
	if (!enter_waiter(store->stores, waiter))
		return fail_read(object, offset, status, err);
	pthread_mutex_init(&waiter->lock, NULL);
	pthread_cond_init(&waiter->over, NULL);
	status = store->kind->submit(store, &waiter->read);
	if (status == LEAT_OK)
		return LEAT_OK;
	end_waiter(waiter);
	/* Not started, which is not the same as cancelled. */
	return fail_read(object, offset, status == LEAT_AGAIN ? LEAT_IO : status, err);
}

enum leat_status
leat_wait_start(struct leat_waiter *waiter, const struct leat_object *object, uint64_t offset, void *bytes, size_t len,
                struct leat_err *err)
{
	struct iovec iov = {bytes, len};

	return start_parts(waiter, object, offset, &iov, 1, err);
}

enum leat_status
leat_wait_end(struct leat_waiter *waiter, struct leat_err *err)
{
	enum leat_status status;

	pthread_mutex_lock(&waiter->lock);
	while (!waiter->done)
		pthread_cond_wait(&waiter->over, &waiter->lock);
	pthread_mutex_unlock(&waiter->lock);
	status = waiter->read.status;
	end_waiter(waiter);
	return status == LEAT_OK ? LEAT_OK : fail_read(&waiter->read.object, waiter->read.offset, status, err);
}

/* A blocking read of at most LEAT_READ_PARTS iovs, by way of `submit`. */
static enum leat_status
read_parts(const struct leat_object *object, uint64_t offset, const struct iovec *iov, int iovs, struct leat_err *err)
{
	struct leat_waiter waiter;
	enum leat_status status = start_parts(&waiter, object, offset, iov, iovs, err);

	return status == LEAT_OK ? leat_wait_end(&waiter, err) : status;
}

static enum leat_status
wait_for(const struct leat_object *object, uint64_t offset, const struct iovec *iov, int iovs, size_t *got,
         struct leat_err *err)
{
	for (int i = 0; i < iovs; i += LEAT_READ_PARTS) {
		int parts = iovs - i < LEAT_READ_PARTS ? iovs - i : LEAT_READ_PARTS;
		enum leat_status status = read_parts(object, offset + *got, iov + i, parts, err);

		if (status != LEAT_OK)
			return status;
		for (int k = i; k < i + parts; k++)
			*got += iov[k].iov_len;
	}
	return LEAT_OK;
}

enum leat_status
leat_object_read(const struct leat_object *object, uint64_t offset, const struct iovec *iov, int iovs, int flags,
                 size_t *got, struct leat_err *err)
{
	const struct leat_store_kind *kind = object->store->kind;
	size_t want = 0;
	char buf[LEAT_URI];

	*got = 0;
	for (int k = 0; k < iovs; k++)
		if (__builtin_add_overflow(want, iov[k].iov_len, &want))
			want = SIZE_MAX;
	if (offset > INT64_MAX || want > INT64_MAX - offset)
		return leat_fail(err, LEAT_INVALID, "'%s': offset %llu is out of range", leat_object_uri(object, buf),
		                 (unsigned long long)offset);
	if (flags & LEAT_READ_NOWAIT)
		return kind->read_now ? kind->read_now(object, offset, iov, iovs, got, err) : LEAT_AGAIN;
	if (kind->read)
		return kind->read(object, offset, iov, iovs, got, err);
	return wait_for(object, offset, iov, iovs, got, err);
}

static enum leat_status
load_object(const struct leat_object *object, struct leat_mem *mem, void **bytes, struct leat_err *err)
{
	struct iovec iov = {leat_realloc_raw(mem, NULL, (size_t)object->size + 1), (size_t)object->size};
	enum leat_status status;
	size_t got;

	if (!iov.iov_base)
		return leat_fail_mem(err, mem, (size_t)object->size + 1, "an index");
	((char *)iov.iov_base)[object->size] = '\0';
	status = object->size ? leat_object_read(object, 0, &iov, 1, 0, &got, err) : LEAT_OK;
	if (status == LEAT_OK)
		*bytes = iov.iov_base;
	else
		leat_free(mem, iov.iov_base);
	return status;
}

/* What leat_object_load accepts. */
struct acceptance {
	size_t most;
	bool (*accept)(void *arg, const struct leat_object *object); /* NULL: anything */
	void *arg;
};

/* The read fails unless it gets the version that was accepted. If the object was replaced meanwhile, try again. */
static enum leat_status
load_accepted(struct leat_store *store, const char *uri, const struct acceptance *wish, struct leat_mem *mem,
              void **bytes, size_t *len, struct leat_err *err)
{
	enum { TRIES = 100 };
	enum leat_status status = LEAT_DATA;

	*bytes = NULL;
	for (int i = 0; i < TRIES && status == LEAT_DATA; i++) {
		struct leat_object object;

		leat_err_clear(err);
		status = store->kind->look(store, uri, &object, err);
		if (status == LEAT_DATA) {
			leat_err_clear(err);
			return LEAT_AGAIN;
		}
		if (status == LEAT_INVALID) {
			leat_err_clear(err);
			return leat_fail(err, status, "'%s' is not a file", uri);
		}
		if (status != LEAT_OK)
			return status;
		if (wish->accept && !wish->accept(wish->arg, &object))
			return LEAT_UNSUPPORTED;
		if (object.size > wish->most)
			return leat_fail(err, LEAT_LIMIT, "'%s' is too large", uri);
		*len = (size_t)object.size;
		status = load_object(&object, mem, bytes, err);
	}
	return status;
}

#define MOST_AT_ONCE ((size_t)2 << 30) /* a server must not fill the memory */

/* Whom a whole object belongs to is only known in stores with users. */
static enum leat_status
load_at_once(struct leat_store *store, const char *uri, size_t most, struct leat_mem *mem, void **bytes, size_t *len,
             struct leat_err *err)
{
	enum leat_status status;

	*bytes = NULL;
	status = store->kind->load(store, uri, most, mem, bytes, len, err);
	if (status != LEAT_DATA)
		return status;
	leat_err_clear(err);
	return LEAT_AGAIN;
}

enum leat_status
leat_object_load(struct leat_store *store, const char *uri, size_t most, struct leat_mem *mem, void **bytes,
                 size_t *len, struct leat_err *err)
{
	const struct acceptance wish = {.most = most};

	if (store->kind->load)
		return load_at_once(store, uri, most, mem, bytes, len, err);
	return load_accepted(store, uri, &wish, mem, bytes, len, err);
}

enum leat_status
leat_object_load_if(struct leat_store *store, const char *uri,
                    bool (*accept)(void *arg, const struct leat_object *object), void *arg, struct leat_mem *mem,
                    void **bytes, size_t *len, struct leat_err *err)
{
	const struct acceptance wish = {PTRDIFF_MAX, accept, arg};

	if (store->kind->load)
		return load_at_once(store, uri, MOST_AT_ONCE, mem, bytes, len, err);
	return load_accepted(store, uri, &wish, mem, bytes, len, err);
}

/* ---- writing ---- */

static enum leat_status
begin(struct leat_store *store, const char *uri, int flags, struct leat_writer **writer, struct leat_err *err)
{
	*writer = NULL;
	if (!store->kind->begin)
		return leat_fail(err, LEAT_UNSUPPORTED, "cannot write '%s': %s: is read-only", uri,
		                 store->kind->scheme);
	return store->kind->begin(store, uri, flags, writer, err);
}

enum leat_status
leat_store_begin(struct leat_store *store, const char *uri, struct leat_writer **writer, struct leat_err *err)
{
	return begin(store, uri, 0, writer, err);
}

enum leat_status
leat_store_begin_unnamed(struct leat_store *store, const char *uri, struct leat_writer **writer, struct leat_err *err)
{
	return begin(store, uri, LEAT_BEGIN_UNNAMED, writer, err);
}

enum leat_status
leat_store_remove(struct leat_store *store, const char *uri, struct leat_err *err)
{
	if (!store->kind->remove)
		return leat_fail(err, LEAT_UNSUPPORTED, "cannot remove '%s': %s: is read-only", uri,
		                 store->kind->scheme);
	return store->kind->remove(store, uri, err);
}

enum leat_status
leat_write_begin(struct leat_writer **writer, struct leat_stores *stores, const char *text, struct leat_err *err)
{
	struct leat_store *store;
	char *uri;
	enum leat_status status = leat_stores_find(stores, text, &store, &uri, err);

	*writer = NULL;
	if (status != LEAT_OK)
		return status;
	status = begin(store, uri, LEAT_BEGIN_THROUGH, writer, err);
	leat_free(store->mem, uri);
	return status;
}

enum leat_status
leat_write(struct leat_writer *writer, const void *bytes, size_t len, struct leat_err *err)
{
	writer->size += len;
	writer->crc = leat_crc32c(writer->crc, bytes, len);
	return writer->store->kind->append(writer, bytes, len, err);
}

enum leat_status
leat_write_patch(struct leat_writer *writer, uint64_t offset, const void *was, const void *bytes, size_t len,
                 struct leat_err *err)
{
	writer->crc = leat_crc32c_replace(writer->crc, was, bytes, len, writer->size - offset - len);
	return writer->store->kind->patch(writer, offset, bytes, len, err);
}

enum leat_status
leat_write_finish(struct leat_writer *writer, int flags, struct leat_err *err)
{
	return writer->store->kind->finish(writer, flags, err);
}

enum leat_status
leat_write_commit(struct leat_writer *writer, const char *uri, int flags, struct leat_err *err)
{
	return writer->store->kind->commit(writer, uri, flags, err);
}

void
leat_write_abort(struct leat_writer *writer)
{
	if (writer)
		writer->store->kind->abort(writer);
}

enum leat_status
leat_write_whole(const char *text, const void *bytes, size_t len, int flags, const struct leat_storage *storage,
                 struct leat_mem *mem, struct leat_err *err)
{
	struct leat_stores stores;
	struct leat_writer *writer = NULL;
	enum leat_status status;

	leat_stores_init(&stores, mem);
	stores.storage = storage;
	status = leat_write_begin(&writer, &stores, text, err);
	if (status == LEAT_OK)
		status = leat_write(writer, bytes, len, err);
	if (status == LEAT_OK)
		status = leat_write_commit(writer, NULL, flags, err);
	else
		leat_write_abort(writer);
	leat_stores_close(&stores);
	return status;
}
