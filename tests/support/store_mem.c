/* store_mem.c - a store in memory, for tests
 *
 * store_mem_table.c has the objects. Each open store has a heap of reads, ordered by when they
 * are due, and one thread that waits for the first of them. The heap has a lock; the list of
 * open stores another, which is taken first. */
#include "store_mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/threads.h"
#include "store_mem_table.h"

struct mem_store {
	struct leat_store base;
	struct mem_store *next, **previous; /* under stores.lock */
	struct leat_threads thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under its lock: */
	struct waiting *heap; /* the first one due at the top */
	size_t count, cap;
	bool held, stop;
};

struct waiting {
	struct store_mem_fate fate; /* due_ns 0: cancelled */
	struct leat_read *read;
};

/* All that are open. */
static struct {
	pthread_mutex_t lock;
	struct mem_store *first;
	bool held;
} stores = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct mem_store *
mem_store_of(struct leat_store *store)
{
	return (struct mem_store *)store;
}

void
store_mem_hold(bool hold)
{
	pthread_mutex_lock(&stores.lock);
	stores.held = hold;
	for (struct mem_store *store = stores.first; store; store = store->next) {
		pthread_mutex_lock(&store->lock);
		store->held = hold;
		pthread_cond_signal(&store->changed);
		pthread_mutex_unlock(&store->lock);
	}
	pthread_mutex_unlock(&stores.lock);
}

/* ---- names ---- */

static enum leat_status
resolve(struct leat_store *store, const char *text, char **uri, struct leat_err *err)
{
	size_t len = strlen(text);

	while (len && text[len - 1] == '/')
		len--;
	if (len <= strlen(STORE_MEM_SCHEME))
		return leat_fail(err, LEAT_INVALID, "'%s' names no object: write mem://NAME", text);
	*uri = leat_strndup(store->mem, text, len);
	return *uri ? LEAT_OK : leat_fail_mem(err, store->mem, len + 1, "the name of an object");
}

static enum leat_status
look(struct leat_store *store, const char *uri, struct leat_object *object, struct leat_err *err)
{
	bool is_folder, found = store_mem_describe(uri, object, &is_folder);

	object->store = store;
	if (found)
		return LEAT_OK;
	if (is_folder)
		return leat_fail(err, LEAT_INVALID, "'%s' is a folder: name its files, as in '%s/*'", uri, uri);
	return leat_fail(err, LEAT_DATA, "cannot open '%s': there is no such object", uri);
}

/* ---- lists ---- */

static enum leat_status
list(struct leat_store *store, const char *pattern, leat_object_visit *visit, void *arg, struct leat_err *err)
{
	struct leat_object object;
	struct store_mem_names names = {0};
	enum leat_status status = look(store, pattern, &object, NULL);

	if (status == LEAT_OK)
		return visit(arg, &object, err);
	if (!strpbrk(pattern, "*?["))
		return status == LEAT_DATA
		               ? leat_fail(err, LEAT_IO, "cannot open '%s': there is no such object", pattern)
		               : look(store, pattern, &object, err);
	status = LEAT_OK;
	if (!store_mem_match(pattern, &names))
		status = leat_fail(err, LEAT_NOMEM, "no memory to list '%s'", pattern);
	else if (names.count == 0)
		status = LEAT_AGAIN;
	for (size_t i = 0; i < names.count && status == LEAT_OK; i++) {
		status = look(store, names.name[i], &object, err);
		if (status == LEAT_OK)
			status = visit(arg, &object, err);
	}
	store_mem_free_names(&names);
	return status;
}

static enum leat_status
visit_entry(struct leat_store *store, const char *folder, const char *name, bool is_folder, leat_entry_visit *visit,
            void *arg, struct leat_err *err)
{
	struct leat_entry entry = {.name = name, .is_folder = is_folder};
	struct leat_object object;
	char uri[LEAT_URI];

	if (!is_folder) {
		if ((size_t)snprintf(uri, sizeof(uri), "%s/%s", folder, name) >= sizeof(uri))
			return leat_fail(err, LEAT_DATA, "a name in '%s' is too long", folder);
		entry.is_missing = look(store, uri, &object, NULL) != LEAT_OK;
		entry.size = entry.is_missing ? 0 : object.size;
		entry.token = entry.is_missing ? 0 : leat_object_token(&object);
	}
	return visit(arg, &entry, err);
}

static enum leat_status
list_folder(struct leat_store *store, const char *folder, leat_entry_visit *visit, void *arg, struct leat_folder_id *id,
            struct leat_err *err)
{
	struct store_mem_names names = {0};
	enum leat_status status = LEAT_OK;

	*id = (struct leat_folder_id){.id = {leat_hash64(folder)}};
	if (!store_mem_below(folder, &names))
		status = leat_fail(err, LEAT_NOMEM, "no memory to list '%s'", folder);
	else if (names.count == 0)
		status = leat_fail(err, LEAT_IO, "cannot read the folder '%s': there is nothing in it", folder);
	for (size_t i = 0; visit && i < names.count && status == LEAT_OK; i++)
		status = visit_entry(store, folder, names.name[i], names.is_folder[i], visit, arg, err);
	store_mem_free_names(&names);
	return status;
}

/* ---- reads that wait ---- */

static bool
is_before(const struct waiting *a, const struct waiting *b)
{
	const struct store_mem_fate *x = &a->fate, *y = &b->fate;

	return x->due_ns != y->due_ns ? x->due_ns < y->due_ns : x->order < y->order;
}

static void
swap(struct waiting *a, struct waiting *b)
{
	struct waiting c = *a;

	*a = *b;
	*b = c;
}

static void
move_up(struct waiting *heap, size_t i)
{
	for (; i && is_before(&heap[i], &heap[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&heap[i], &heap[(i - 1) / 2]);
}

static struct waiting
take_first(struct mem_store *store)
{
	struct waiting *heap = store->heap, first = heap[0];
	size_t i = 0, child;

	heap[0] = heap[--store->count];
	while ((child = 2 * i + 1) < store->count) {
		if (child + 1 < store->count && is_before(&heap[child + 1], &heap[child]))
			child++;
		if (!is_before(&heap[child], &heap[i]))
			break;
		swap(&heap[child], &heap[i]);
		i = child;
	}
	return first;
}

static void
complete(const struct waiting *waiting)
{
	struct leat_read *read = waiting->read;

	read->took_ns = leat_now() - waiting->fate.begin_ns;
	read->thread = 0;
	read->status = waiting->fate.due_ns ? store_mem_read(read, waiting->fate.fail, read->err) : LEAT_AGAIN;
	store_mem_count_done(read);
	read->done(read);
}

/* ---- the thread ---- */

/* Under the lock. Cancelled reads are due at 0, and no hold stops them. */
static bool
is_due(const struct mem_store *store)
{
	return store->count &&
	       (store->heap[0].fate.due_ns == 0 || (!store->held && store->heap[0].fate.due_ns <= leat_now()));
}

static void
wait_for_first(struct mem_store *store)
{
	uint64_t due = store->count ? store->heap[0].fate.due_ns : 0;
	struct timespec until = {.tv_sec = (time_t)(due / 1000000000), .tv_nsec = (long)(due % 1000000000)};

	if (due && !store->held)
		pthread_cond_timedwait(&store->changed, &store->lock, &until);
	else
		pthread_cond_wait(&store->changed, &store->lock);
}

static void
thread_body(void *arg, unsigned i)
{
	struct mem_store *store = arg;

	(void)i;
	pthread_mutex_lock(&store->lock);
	while (!store->stop || store->count) {
		if (!is_due(store)) {
			wait_for_first(store);
		} else {
			struct waiting first = take_first(store);

			pthread_mutex_unlock(&store->lock);
			complete(&first);
			pthread_mutex_lock(&store->lock);
		}
	}
	pthread_mutex_unlock(&store->lock);
}

static bool
make_room(struct mem_store *store)
{
	size_t cap = store->cap ? 2 * store->cap : 64;
	struct waiting *grown;

	if (store->count < store->cap)
		return true;
	grown = realloc(store->heap, cap * sizeof(*grown));
	if (!grown)
		return false;
	store->heap = grown;
	store->cap = cap;
	return true;
}

static enum leat_status
submit(struct leat_store *base, struct leat_read *read)
{
	struct mem_store *store = mem_store_of(base);
	struct waiting waiting = {store_mem_count_submit(), read};
	bool room;

	pthread_mutex_lock(&store->lock);
	room = make_room(store);
	if (room) {
		if (atomic_load(&read->cancelled))
			waiting.fate.due_ns = 0;
		store->heap[store->count++] = waiting;
		move_up(store->heap, store->count - 1);
		pthread_cond_signal(&store->changed);
	}
	pthread_mutex_unlock(&store->lock);
	if (!room)
		store_mem_count_refused();
	return room ? LEAT_OK : LEAT_NOMEM;
}

/* One that is not there comes in a moment, or has been taken by the thread. */
static void
cancel(struct leat_store *base, struct leat_read *read)
{
	struct mem_store *store = mem_store_of(base);

	pthread_mutex_lock(&store->lock);
	atomic_store(&read->cancelled, true);
	for (size_t i = 0; i < store->count; i++)
		if (store->heap[i].read == read) {
			store->heap[i].fate.due_ns = 0;
			move_up(store->heap, i);
			pthread_cond_signal(&store->changed);
			break;
		}
	pthread_mutex_unlock(&store->lock);
}

/* ---- writing ---- */

struct mem_writer {
	struct leat_writer base;
	char *uri;
	unsigned char *bytes;
	size_t len, cap;
	bool failed;
};

static struct mem_writer *
mem_writer_of(struct leat_writer *writer)
{
	return (struct mem_writer *)writer;
}

static void
abort_writer(struct leat_writer *base)
{
	struct mem_writer *writer = mem_writer_of(base);

	free(writer->bytes);
	leat_free(base->store->mem, writer->uri);
	leat_free(base->store->mem, writer);
}

static enum leat_status
begin(struct leat_store *store, const char *uri, int flags, struct leat_writer **result, struct leat_err *err)
{
	struct mem_writer *writer = leat_alloc(store->mem, sizeof(*writer));

	(void)flags;
	*result = NULL;
	if (!writer)
		return leat_fail_mem(err, store->mem, sizeof(*writer), "a new object");
	writer->base.store = store;
	writer->uri = leat_strdup(store->mem, uri);
	if (!writer->uri) {
		abort_writer(&writer->base);
		return leat_fail_mem(err, store->mem, strlen(uri) + 1, "a new object");
	}
	*result = &writer->base;
	return LEAT_OK;
}

static enum leat_status
finish(struct leat_writer *base, int flags, struct leat_err *err)
{
	const struct mem_writer *writer = mem_writer_of(base);

	(void)flags;
	return writer->failed ? leat_fail(err, LEAT_NOMEM, "'%s' could not be written before", writer->uri) : LEAT_OK;
}

static enum leat_status
append(struct leat_writer *base, const void *bytes, size_t len, struct leat_err *err)
{
	struct mem_writer *writer = mem_writer_of(base);
	size_t cap = writer->cap;
	unsigned char *grown;

	if (writer->failed)
		return finish(base, 0, err);
	while (cap - writer->len < len)
		cap = cap ? 2 * cap : 4096;
	grown = cap == writer->cap ? writer->bytes : realloc(writer->bytes, cap);
	if (!grown && cap) {
		writer->failed = true;
		return leat_fail(err, LEAT_NOMEM, "no memory to write '%s'", writer->uri);
	}
	writer->bytes = grown;
	writer->cap = cap;
	if (len)
		memcpy(grown + writer->len, bytes, len);
	writer->len += len;
	return LEAT_OK;
}

static enum leat_status
patch(struct leat_writer *base, uint64_t offset, const void *bytes, size_t len, struct leat_err *err)
{
	struct mem_writer *writer = mem_writer_of(base);
	enum leat_status status = finish(base, 0, err);

	if (status == LEAT_OK && (offset > writer->len || len > writer->len - offset))
		status = leat_fail(err, LEAT_INVALID, "'%s' has no bytes at offset %" PRIu64 " yet", writer->uri,
		                   offset);
	if (status == LEAT_OK && len)
		memcpy(writer->bytes + offset, bytes, len);
	return status;
}

static enum leat_status
commit(struct leat_writer *base, const char *uri, int flags, struct leat_err *err)
{
	struct mem_writer *writer = mem_writer_of(base);
	enum leat_status status = finish(base, flags, err);

	if (status == LEAT_OK) {
		status = store_mem_commit(uri ? uri : writer->uri, writer->bytes, writer->len,
		                          flags & LEAT_COMMIT_IF_ABSENT, err);
		writer->bytes = NULL;
	}
	abort_writer(base);
	return status;
}

static enum leat_status
remove_object(struct leat_store *store, const char *uri, struct leat_err *err)
{
	(void)store;
	return store_mem_take_away(uri) ? LEAT_OK
	                                : leat_fail(err, LEAT_IO, "cannot remove '%s': there is no such object", uri);
}

/* ---- the store ---- */

static void
enter_list(struct mem_store *store)
{
	pthread_mutex_lock(&stores.lock);
	store->held = stores.held;
	store->next = stores.first;
	store->previous = &stores.first;
	if (store->next)
		store->next->previous = &store->next;
	stores.first = store;
	pthread_mutex_unlock(&stores.lock);
}

static void
leave_list(struct mem_store *store)
{
	pthread_mutex_lock(&stores.lock);
	*store->previous = store->next;
	if (store->next)
		store->next->previous = store->previous;
	pthread_mutex_unlock(&stores.lock);
}

static void
close_store(struct leat_store *base)
{
	struct mem_store *store = mem_store_of(base);

	leave_list(store);
	pthread_mutex_lock(&store->lock);
	store->stop = true;
	pthread_cond_signal(&store->changed);
	pthread_mutex_unlock(&store->lock);
	leat_threads_join(&store->thread);
	pthread_cond_destroy(&store->changed);
	pthread_mutex_destroy(&store->lock);
	free(store->heap);
	leat_free(base->mem, store);
}

static enum leat_status
open_store(const struct leat_store_kind *kind, const struct leat_storage *storage, struct leat_mem *mem,
           struct leat_store **result, struct leat_err *err)
{
	struct mem_store *store = leat_alloc(mem, sizeof(*store));
	pthread_condattr_t attr;
	enum leat_status status;

	(void)storage;
	*result = NULL;
	if (!store)
		return leat_fail_mem(err, mem, sizeof(*store), "the store");
	store->base = (struct leat_store){.kind = kind, .mem = mem};
	pthread_mutex_init(&store->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&store->changed, &attr);
	pthread_condattr_destroy(&attr);
	enter_list(store);
	status = leat_threads_start(&store->thread, mem, 1, "leat-mem", thread_body, store, err);
	if (status != LEAT_OK)
		close_store(&store->base);
	else
		*result = &store->base;
	return status;
}

const struct leat_store_kind leat_store_mem = {
	.scheme = "mem",
	.doc = "Objects in memory, for tests.",
	.threads = 1,
	.in_flight = 1000,
	.request_cost = 64 * 1024,
	.open = open_store,
	.close = close_store,
	.resolve = resolve,
	.list = list,
	.list_folder = list_folder,
	.look = look,
	.submit = submit,
	.cancel = cancel,
	.begin = begin,
	.append = append,
	.patch = patch,
	.finish = finish,
	.commit = commit,
	.abort = abort_writer,
	.remove = remove_object,
};
