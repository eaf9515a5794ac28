/* disk_cache.c - see disk_cache.h: what happens to a read, and when */
#include "store/disk_read.h"

#include <errno.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"

enum { MAX_LOOKS = 8, WAKE_MS = 20 };

static const uint64_t patience_ns = 5 * 1000000000ull, owner_check_ns = 100 * 1000000ull;

/* ---- queues ---- */

static void
enqueue(struct leat_disk_read *read)
{
	struct leat_disk *disk = read->disk;

	pthread_mutex_lock(&disk->lock);
	read->next = NULL;
	*disk->last = read;
	disk->last = &read->next;
	pthread_cond_signal(&disk->work);
	pthread_mutex_unlock(&disk->lock);
}

static struct leat_disk_read *
dequeue(struct leat_disk *disk)
{
	struct leat_disk_read *read;

	pthread_mutex_lock(&disk->lock);
	while (!disk->first && !disk->stop)
		pthread_cond_wait(&disk->work, &disk->lock);
	read = disk->first;
	if (read)
		disk->first = read->next;
	if (!disk->first)
		disk->last = &disk->first;
	pthread_mutex_unlock(&disk->lock);
	return read;
}

static void
park(struct leat_disk_read *read)
{
	struct leat_disk *disk = read->disk;

	if (!read->waiting_since) {
		read->waiting_since = leat_now();
		atomic_fetch_add_explicit(&disk->waits, 1, memory_order_relaxed);
	}
	pthread_mutex_lock(&disk->lock);
	read->next = disk->parked;
	disk->parked = read;
	pthread_cond_signal(&disk->parked_work);
	pthread_mutex_unlock(&disk->lock);
}

/* ---- the end of a read ---- */

static void
finish(struct leat_disk_read *reading, enum leat_status status, unsigned thread)
{
	struct leat_disk *disk = reading->disk;
	struct leat_read *read = reading->read;

	read->status = status;
	read->took_ns = reading->sub.took_ns;
	read->thread = disk->wire.first_thread + thread;
	pthread_mutex_lock(&disk->lock);
	reading->next = disk->unused;
	disk->unused = reading;
	pthread_mutex_unlock(&disk->lock);
	read->done(read);
}

static void
release(struct leat_disk_read *read)
{
	struct leat_disk_table *table = &read->disk->table;

	if (!read->ticket.number)
		return;
	if (leat_disk_lock(table)) {
		leat_disk_release(table, &read->ticket);
		leat_disk_unlock(table);
	}
	leat_disk_wake(table);
	read->ticket.number = 0;
}

/* ---- from the wire ---- */

static void
is_fetched(struct leat_read *sub)
{
	struct leat_disk_read *read = sub->arg;

	read->fetched = true;
	enqueue(read);
}

static void
fetch(struct leat_disk_read *reading, unsigned thread)
{
	struct leat_disk *disk = reading->disk;
	struct leat_read *read = reading->read, *sub = &reading->sub;
	uint64_t at = read->offset, skip = reading->begin - at, want = reading->end - reading->begin;
	enum leat_status status;

	*sub = (struct leat_read){
		.object = read->object, .offset = reading->begin, .done = is_fetched, .arg = reading, .err = read->err};
	for (int i = 0; i < read->iovs; i++) {
		struct iovec part = read->iov[i];
		size_t cut = skip < part.iov_len ? (size_t)skip : part.iov_len;

		skip -= cut;
		part.iov_base = (char *)part.iov_base + cut;
		part.iov_len -= cut;
		part.iov_len = part.iov_len < want ? part.iov_len : (size_t)want;
		want -= part.iov_len;
		sub->iov[sub->iovs++] = part;
	}
	atomic_fetch_add_explicit(&disk->misses, 1, memory_order_relaxed);
	status = disk->wire.send(disk->wire.arg, sub, &read->cancelled);
	if (status != LEAT_OK) {
		release(reading);
		finish(reading, status == LEAT_AGAIN ? LEAT_IO : status, thread);
	}
}

static void
end_fetch(struct leat_disk_read *read, unsigned thread)
{
	struct leat_disk *disk = read->disk;
	enum leat_status status = read->sub.status;

	if (status == LEAT_OK) {
		atomic_fetch_add_explicit(&disk->fetched, read->end - read->begin, memory_order_relaxed);
		if (disk->proof)
			atomic_store(&disk->proof[read->proof % LEAT_DISK_PROOFS], read->proof);
		leat_disk_keep(read);
	}
	release(read);
	finish(read, status, thread);
}

/* ---- looking ---- */

static enum leat_disk_claimed
claim(struct leat_disk_read *read)
{
	struct leat_disk_table *table = &read->disk->table;
	enum leat_disk_claimed claimed;

	read->ticket = (struct leat_disk_ticket){0};
	if (read->impatient || leat_disk_is_paused(read->disk))
		return LEAT_DISK_MINE;
	if (!leat_disk_lock(table)) {
		leat_disk_pause(read->disk);
		return LEAT_DISK_MINE;
	}
	claimed = leat_disk_claim_range(table, &read->key, read->begin, read->end, &read->ticket);
	leat_disk_unlock(table);
	return claimed;
}

static void
look(struct leat_disk_read *read, unsigned thread)
{
	for (int i = 0; i < MAX_LOOKS; i++) {
		leat_disk_serve(read, thread);
		if (read->begin >= read->end) {
			atomic_fetch_add_explicit(&read->disk->hits, 1, memory_order_relaxed);
			finish(read, LEAT_OK, thread);
			return;
		}
		switch (claim(read)) {
		case LEAT_DISK_MINE:
			fetch(read, thread);
			return;
		case LEAT_DISK_WAIT:
			park(read);
			return;
		case LEAT_DISK_FOUND:
			break;
		}
	}
	fetch(read, thread); /* what is found cannot be read: it belongs to another user, or is damaged */
}

static void
work(struct leat_disk *disk, unsigned thread)
{
	struct leat_disk_read *read;

	while ((read = dequeue(disk)) != NULL) {
		if (read->fetched)
			end_fetch(read, thread);
		else if (atomic_load(&read->read->cancelled))
			finish(read, LEAT_AGAIN, thread);
		else
			look(read, thread);
	}
}

/* ---- waiting for others ---- */

static bool
waits_on(struct leat_disk_read *read, uint64_t now, bool check_owner)
{
	read->impatient = now - read->waiting_since > patience_ns;
	return !read->impatient && !atomic_load(&read->read->cancelled) &&
	       leat_disk_is_claimed(&read->disk->table, &read->ticket, check_owner);
}

/* Takes those out of the parked list that need not wait any more. */
static struct leat_disk_read *
unpark(struct leat_disk *disk, bool check_owner)
{
	struct leat_disk_read **link = &disk->parked, *ready = NULL, *read;
	uint64_t now = leat_now();

	while ((read = *link) != NULL) {
		if (waits_on(read, now, check_owner)) {
			link = &read->next;
			continue;
		}
		*link = read->next;
		read->next = ready;
		ready = read;
	}
	return ready;
}

static void
watch(struct leat_disk *disk)
{
	uint64_t checked = 0;
	uint32_t seen = 0;
	bool stop = false;

	while (!stop) {
		struct leat_disk_read *ready;
		uint64_t now;

		pthread_mutex_lock(&disk->lock);
		while (!disk->parked && !disk->stop)
			pthread_cond_wait(&disk->parked_work, &disk->lock);
		stop = disk->stop;
		pthread_mutex_unlock(&disk->lock);
		seen = leat_disk_wait(&disk->table, seen, stop ? 0 : WAKE_MS);
		now = leat_now();
		pthread_mutex_lock(&disk->lock);
		ready = unpark(disk, now - checked > owner_check_ns);
		pthread_mutex_unlock(&disk->lock);
		checked = now - checked > owner_check_ns ? now : checked;
		while (ready) {
			struct leat_disk_read *read = ready;

			ready = read->next;
			enqueue(read);
		}
	}
}

static void
thread_body(void *arg, unsigned i)
{
	if (i < LEAT_DISK_THREADS)
		work(arg, i);
	else
		watch(arg);
}

/* ---- submitting ---- */

/* Under the lock; new threads block on it until the caller releases it. */
static bool
start_threads(struct leat_disk *disk)
{
	if (!disk->started) {
		disk->started = true;
		(void)leat_threads_start(&disk->threads, disk->mem, LEAT_DISK_THREADS + 1, "leat-disk", thread_body,
		                         disk, NULL);
	}
	return disk->threads.count > 0;
}

static struct leat_disk_read *
take_unused(struct leat_disk *disk)
{
	struct leat_disk_read *read = NULL;
	bool started;

	pthread_mutex_lock(&disk->lock);
	started = start_threads(disk);
	if (started && (read = disk->unused) != NULL)
		disk->unused = read->next;
	pthread_mutex_unlock(&disk->lock);
	return started && !read ? leat_alloc(disk->mem, sizeof(*read)) : read;
}

static void
note_epoch(struct leat_disk *disk, uint64_t epoch)
{
	uint64_t newest = atomic_load_explicit(&disk->epoch, memory_order_relaxed);

	if (epoch <= newest || !atomic_compare_exchange_strong(&disk->epoch, &newest, epoch) || !newest)
		return;
	leat_disk_begin_epoch(&disk->table);
	atomic_store(&disk->full_until_ns, 0); /* there may be room now */
}

bool
leat_disk_submit(struct leat_disk *disk, struct leat_read *read, const char *uri)
{
	struct leat_disk_read *reading;
	struct leat_disk_key key;
	uint64_t want = 0;

	for (int i = 0; i < read->iovs; i++)
		want += read->iov[i].iov_len;
	if (disk->is_off)
		leat_disk_say(disk, read, ENOSPC);
	if (disk->is_off || getpid() != disk->pid || !want || read->offset > read->object.size ||
	    want > read->object.size - read->offset || !leat_disk_key(disk->wire.place, uri, &read->object, &key))
		return false;
	note_epoch(disk, read->epoch);
	reading = take_unused(disk);
	if (!reading)
		return false;
	*reading = (struct leat_disk_read){
		.read = read,
		.disk = disk,
		.key = key,
		.begin = read->offset,
		.end = read->offset + want,
		.proof = disk->proof ? leat_disk_proof(disk->wire.place, uri, read->object.size) : 0};
	enqueue(reading);
	return true;
}

void
leat_disk_cancel(struct leat_disk *disk)
{
	if (!disk->is_off)
		leat_disk_wake(&disk->table);
}

/* ---- several users ---- */

bool
leat_disk_is_proven(const struct leat_disk *disk, uint64_t proof)
{
	return disk->proof && atomic_load(&disk->proof[proof % LEAT_DISK_PROOFS]) == proof;
}

void
leat_disk_prove(struct leat_disk *disk, const char *uri, uint64_t size)
{
	uint64_t proof;

	if (!disk->proof)
		return;
	proof = leat_disk_proof(disk->wire.place, uri, size);
	atomic_store(&disk->proof[proof % LEAT_DISK_PROOFS], proof);
}

/* ---- opening ---- */

/* Four fifths of what is free. */
static uint64_t
automatic_size(const char *folder)
{
	struct statvfs fs;
	char path[LEAT_SETTING];
	char *slash;

	snprintf(path, sizeof(path), "%s", folder);
	while (statvfs(path, &fs) != 0) {
		if (strcmp(path, "/") == 0 || strcmp(path, ".") == 0)
			return 1 << 30;
		slash = strrchr(path, '/');
		if (!slash)
			strcpy(path, ".");
		else
			slash[slash == path] = '\0';
	}
	return (uint64_t)fs.f_bavail * fs.f_frsize / 5 * 4;
}

static enum leat_status
open_parts(struct leat_disk *disk, const struct leat_storage *storage, struct leat_err *err)
{
	bool shared = storage->disk_cache_trust == LEAT_TRUST_SHARED;
	struct leat_disk_options options = {
		.folder = storage->disk_cache, .size = (uint64_t)storage->disk_cache_size, .shared = shared};
	enum leat_status status;

	if (!options.size)
		options.size = automatic_size(options.folder);
	status = leat_disk_table_open(&disk->table, &options, err);
	if (status == LEAT_LIMIT) {
		leat_err_clear(err);
		disk->is_off = true;
		return LEAT_OK;
	}
	if (status != LEAT_OK)
		return status;
	if (!storage->disk_cache_size)
		disk->table.options.size += leat_disk_used(&disk->table) / 5 * 4;
	disk->scratch = leat_alloc(disk->mem, (size_t)LEAT_DISK_THREADS * LEAT_DISK_GRANULE);
	if (shared)
		disk->proof = leat_alloc_array(disk->mem, LEAT_DISK_PROOFS, sizeof(*disk->proof));
	return disk->scratch && (!shared || disk->proof)
	               ? LEAT_OK
	               : leat_fail_mem(err, disk->mem, (size_t)LEAT_DISK_THREADS * LEAT_DISK_GRANULE, "the disk cache");
}

enum leat_status
leat_disk_open(struct leat_disk **result, const struct leat_storage *storage, const struct leat_disk_wire *wire,
               struct leat_mem *mem, struct leat_err *err)
{
	struct leat_disk *disk;
	enum leat_status status;

	*result = NULL;
	if (!*storage->disk_cache)
		return LEAT_OK;
	disk = leat_alloc(mem, sizeof(*disk));
	if (!disk)
		return leat_fail_mem(err, mem, sizeof(*disk), "the disk cache");
	disk->mem = mem;
	disk->wire = *wire;
	disk->pid = getpid();
	disk->last = &disk->first;
	pthread_mutex_init(&disk->lock, NULL);
	pthread_cond_init(&disk->work, NULL);
	pthread_cond_init(&disk->parked_work, NULL);
	status = open_parts(disk, storage, err);
	if (status == LEAT_OK)
		*result = disk;
	else
		leat_disk_close(disk);
	return status;
}

void
leat_disk_close(struct leat_disk *disk)
{
	if (!disk)
		return;
	pthread_mutex_lock(&disk->lock);
	disk->stop = true;
	pthread_cond_broadcast(&disk->work);
	pthread_cond_broadcast(&disk->parked_work);
	pthread_mutex_unlock(&disk->lock);
	if (disk->started)
		leat_disk_wake(&disk->table);
	leat_threads_join(&disk->threads);
	leat_disk_table_close(&disk->table);
	while (disk->unused) {
		struct leat_disk_read *read = disk->unused;

		disk->unused = read->next;
		leat_free(disk->mem, read);
	}
	pthread_cond_destroy(&disk->parked_work);
	pthread_cond_destroy(&disk->work);
	pthread_mutex_destroy(&disk->lock);
	leat_free(disk->mem, disk->scratch);
	leat_free(disk->mem, disk->proof);
	leat_free(disk->mem, disk);
}

void
leat_disk_stats(struct leat_disk *disk, struct leat_disk_stats *stats)
{
	*stats = (struct leat_disk_stats){0};
	if (!disk)
		return;
	*stats = (struct leat_disk_stats){.hits = atomic_load(&disk->hits),
	                                  .misses = atomic_load(&disk->misses),
	                                  .hit_bytes = atomic_load(&disk->hit_bytes),
	                                  .fetched = atomic_load(&disk->fetched),
	                                  .evictions = atomic_load(&disk->table.evictions),
	                                  .waits = atomic_load(&disk->waits)};
}
