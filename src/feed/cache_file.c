/* cache_file.c - cache file shared by all processes that run the same pipeline
 *
 * A new file is written under a temporary name and linked into place, so nobody sees half a header.
 * Header and table are preallocated because they are written through a mapping, where a full disk
 * means SIGBUS. Samples are written with pwrite, where a full disk is an ordinary error.
 *
 * Every user of a file holds a shared lock on it. Creating, resizing and deleting files takes the
 * folder's lock, so that concurrent processes stay within the size limit. Resizing or deleting an
 * existing file also takes its exclusive lock, so that no mapping extends past the end of the file.
 * Locks are released when their process dies; the next one to lock the folder removes what it left.
 *
 * In a folder that others can write to, they may put anything in our file's place, and lock the folder for
 * as long as they like. So a file is judged by its descriptor, and waiting for the folder's lock ends. */
#include "feed/cache_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum { PAGE = LEAT_CACHE_PAGE, MAX_PATH = 4096, LOCK_TRIES = 200, LOCK_PAUSE = 10 * 1000 * 1000 /* ns */ };

_Static_assert(sizeof(struct leat_cache_header) <= PAGE, "the header is one page");

/* ---- opening ---- */

void
leat_cache_name(const struct leat_cache_options *o, char name[LEAT_CACHE_NAME])
{
	if (o->shared)
		snprintf(name, LEAT_CACHE_NAME, "%s%s", o->key, LEAT_CACHE_SUFFIX);
	else
		snprintf(name, LEAT_CACHE_NAME, "%s.%u%s", o->key, (unsigned)geteuid(), LEAT_CACHE_SUFFIX);
}

bool
leat_cache_trusts(const struct leat_cache_options *o, const struct stat *st)
{
	return S_ISREG(st->st_mode) && (o->shared || (st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH))));
}

static bool
fits(const struct leat_cache_header *header, const struct leat_cache_options *o, uint64_t file_bytes)
{
	uint64_t overhead = leat_cache_store_overhead(o->samples);

	return memcmp(header->magic, LEAT_CACHE_MAGIC, sizeof(header->magic)) == 0 &&
	       header->version == LEAT_CACHE_VERSION && header->samples == o->samples && file_bytes >= overhead &&
	       header->capacity <= file_bytes - overhead && header->used % LEAT_CACHE_ALIGN == 0 &&
	       strncmp(header->key, o->key, sizeof(header->key)) == 0;
}

/* Does the header match, and is the file within the size limit? */
static bool
is_good(int fd, const struct leat_cache_options *o)
{
	struct leat_cache_header header;
	struct stat st;

	return fstat(fd, &st) == 0 && (uint64_t)st.st_size <= o->size &&
	       pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
	       fits(&header, o, (uint64_t)st.st_size);
}

/* Opens with a shared lock. Fails if the path was unlinked or replaced meanwhile, or is not to be trusted. */
static int
open_locked(const char *path, const struct leat_cache_options *o)
{
	struct stat opened, named;
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return -1;
	if (fstat(fd, &opened) == 0 && leat_cache_trusts(o, &opened) && flock(fd, LOCK_SH | LOCK_NB) == 0 &&
	    lstat(path, &named) == 0 && opened.st_ino == named.st_ino && opened.st_dev == named.st_dev)
		return fd;
	close(fd);
	return -1;
}

/* Takes ownership of fd, even on failure. */
static bool
map_file(struct leat_cache_store *store, int fd, const struct leat_cache_options *o)
{
	uint64_t overhead = leat_cache_store_overhead(o->samples);
	struct leat_cache_header *header;
	struct stat st;
	void *mapped = MAP_FAILED;

	if (fstat(fd, &st) == 0)
		mapped = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED) {
		close(fd);
		return false;
	}
	header = mapped;
	/* Only header and table are written through the mapping. */
	if (!fits(header, o, (uint64_t)st.st_size) || mprotect(mapped, (size_t)overhead, PROT_READ | PROT_WRITE) != 0) {
		munmap(mapped, (size_t)st.st_size);
		close(fd);
		return false;
	}
	store->mapped = mapped;
	store->mapped_bytes = (uint64_t)st.st_size;
	store->room_at = overhead;
	store->room = store->mapped + overhead;
	store->capacity = header->capacity;
	store->table = (_Atomic uint64_t *)(void *)(store->mapped + PAGE);
	store->used = &header->used;
	store->fd = fd;
	futimens(fd, NULL); /* mtime is the time of last use, for eviction */
	return true;
}

/* ---- making ---- */

static bool
prepare(int fd, const struct leat_cache_options *o, uint64_t bytes)
{
	uint64_t overhead = leat_cache_store_overhead(o->samples);
	struct leat_cache_header header = {
		.version = LEAT_CACHE_VERSION, .samples = o->samples, .capacity = bytes - overhead};

	memcpy(header.magic, LEAT_CACHE_MAGIC, sizeof(header.magic));
	snprintf(header.key, sizeof(header.key), "%s", o->key);
	return posix_fallocate(fd, 0, (off_t)overhead) == 0 && ftruncate(fd, (off_t)bytes) == 0 &&
	       pwrite(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header);
}

/* Creates a file of this size, if possible. */
static void
link_new(const struct leat_cache_options *o, const char *path, uint64_t bytes)
{
	char temp[MAX_PATH];
	int fd;

	snprintf(temp, sizeof(temp), "%s/.%.16s-%ld-%llu%s", o->dir, o->key, (long)getpid(),
	         (unsigned long long)leat_now(), LEAT_CACHE_NEW);
	fd = open(temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, o->shared ? 0660 : 0600);
	if (fd < 0)
		return;
	if (prepare(fd, o, bytes))
		(void)link(temp, path); /* on failure nothing is cached; the caller logs that */
	unlink(temp);
	close(fd);
}

/* Is there something in the file's place that we must not use? */
static bool
is_foreign(const char *path, const struct leat_cache_options *o)
{
	struct stat st;

	return lstat(path, &st) == 0 && !leat_cache_trusts(o, &st);
}

/* Under the folder's lock: creates the file, or replaces one that does not match, if there is room. */
static void
make_file(int dir, const struct leat_cache_options *o, const struct leat_cache_wish *wish, const char *path)
{
	int fd = open_locked(path, o);
	uint64_t bytes;

	if (fd >= 0) {
		bool good = is_good(fd, o);

		close(fd);
		if (good) /* another process created it first */
			return;
		unlink(path); /* current users keep it until they close it */
	} else if (is_foreign(path, o)) {
		unlink(path); /* fails if we may not: then nothing is cached */
	}
	bytes = leat_cache_make_room(dir, o, wish);
	bytes = (bytes < wish->wanted ? bytes : wish->wanted) & ~(uint64_t)(PAGE - 1);
	if (bytes >= leat_cache_min_size(o->samples))
		link_new(o, path, bytes);
}

/* The lock only keeps caches within the size limit. Who cannot have it, on a file system without locks or because
 * somebody does not let go, does without after 2 seconds. */
static int
lock_folder(const struct leat_cache_options *o)
{
	const struct timespec pause = {.tv_nsec = LOCK_PAUSE};
	int dir = open(o->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (int i = 0; dir >= 0 && i < LOCK_TRIES && flock(dir, LOCK_EX | LOCK_NB) != 0; i++) {
		if (errno != EINTR && errno != EWOULDBLOCK)
			break;
		nanosleep(&pause, NULL);
	}
	return dir;
}

/* ---- making larger ---- */

/* Are all samples cached? */
static bool
is_complete(int fd, uint64_t samples)
{
	uint64_t table[512];

	for (uint64_t i = 0; i < samples; i += 512) {
		size_t n = samples - i < 512 ? (size_t)(samples - i) : 512;

		if (pread(fd, table, n * 8, (off_t)(PAGE + i * 8)) != (ssize_t)(n * 8))
			return false;
		for (size_t k = 0; k < n; k++)
			if (!table[k])
				return false;
	}
	return true;
}

/* Under the folder's lock and the exclusive lock. Grows the file first: the header must never exceed it. */
static void
set_size(int fd, uint64_t samples, uint64_t bytes)
{
	uint64_t capacity = bytes - leat_cache_store_overhead(samples);

	if (ftruncate(fd, (off_t)bytes) == 0)
		(void)!pwrite(fd, &capacity, sizeof(capacity), offsetof(struct leat_cache_header, capacity));
}

/* Grows a file that was created or trimmed when space was short, unless other users have it mapped. */
static void
enlarge(int fd, const struct leat_cache_options *o, const struct leat_cache_wish *wish)
{
	struct stat st;
	int dir;

	if (fstat(fd, &st) != 0 || (uint64_t)st.st_size >= (wish->wanted & ~(uint64_t)(PAGE - 1)) ||
	    is_complete(fd, o->samples))
		return;
	dir = lock_folder(o);
	if (dir >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) {
		uint64_t bytes = leat_cache_make_room(dir, o, wish);

		bytes = (bytes < wish->wanted ? bytes : wish->wanted) & ~(uint64_t)(PAGE - 1);
		if (bytes > (uint64_t)st.st_size)
			set_size(fd, o->samples, bytes);
	}
	/* Converting a lock is not atomic: get the shared one back. We hold the folder's lock, so nobody deletes the
	 * file. */
	(void)flock(fd, LOCK_SH);
	if (dir >= 0)
		close(dir);
}

/* ---- all of it ---- */

static bool
open_file(struct leat_cache_store *store, const struct leat_cache_options *o, const struct leat_cache_wish *wish,
          const struct leat_log *log)
{
	char path[MAX_PATH], name[LEAT_CACHE_NAME];

	leat_cache_name(o, name);
	snprintf(path, sizeof(path), "%s/%s", o->dir, name);
	if (is_foreign(path, o))
		leat_log(log, LEAT_LOG_WARN,
		         "ignoring cache file '%s': it belongs to another user, or others can write it", path);
	for (int attempt = 0; attempt < 2; attempt++) {
		int fd = open_locked(path, o), dir;

		if (fd >= 0 && is_good(fd, o)) {
			enlarge(fd, o, wish);
			return map_file(store, fd, o);
		}
		if (fd >= 0)
			close(fd);
		dir = attempt == 0 ? lock_folder(o) : -1;
		if (dir < 0)
			continue;
		make_file(dir, o, wish, path);
		close(dir); /* releases the lock */
	}
	return false;
}

enum leat_status
leat_cache_store_file(struct leat_cache_store *store, const struct leat_cache_options *o, uint64_t wanted, bool exact,
                      struct leat_mem *mem, const struct leat_log *log, struct leat_err *err)
{
	/* If the size is only a guess, don't evict others for all of it. */
	const struct leat_cache_wish wish = {wanted, exact ? wanted : wanted / 2};

	*store = (struct leat_cache_store){.fd = -1, .samples = o->samples};
	if (strlen(o->dir) + strlen(o->key) + sizeof(LEAT_CACHE_NEW) + 64 > MAX_PATH ||
	    strlen(o->key) + sizeof(LEAT_CACHE_NEW) + 64 > LEAT_CACHE_NAME)
		return leat_fail(err, LEAT_INVALID, "the path of the cache folder is too long");
	if (o->size < leat_cache_min_size(o->samples))
		return leat_fail(err, LEAT_INVALID,
		                 "a cache of %llu bytes is too small: %llu samples need at least %llu",
		                 (unsigned long long)o->size, (unsigned long long)o->samples,
		                 (unsigned long long)leat_cache_min_size(o->samples));
	if (mkdir(o->dir, o->shared ? 0777 : 0700) != 0 && errno != EEXIST)
		return leat_fail_errno(err, errno, "cannot create cache folder '%s'", o->dir);
	if (open_file(store, o, &wish, log))
		store->mem = mem;
	else
		leat_log(log, LEAT_LOG_WARN,
		         "nothing is cached: '%s' is read-only, full of caches in use, or on a full disk", o->dir);
	return LEAT_OK;
}

void
leat_cache_store_close_file(struct leat_cache_store *store)
{
	munmap(store->mapped, (size_t)store->mapped_bytes);
	close(store->fd); /* releases the lock */
}
