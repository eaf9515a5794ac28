/* file_read.c - local files: range reads, and a cache of open descriptors
 *
 * Descriptors are opened on first use, at most `max_open` of them. Each kept file has one
 * atomic word with its descriptor (plus one) in the upper half and its number of readers in
 * the lower half, so a read costs two atomic additions and no lock. A descriptor is closed
 * only by swapping the word from "no readers" to zero, under the lock. A reader that
 * increments the word before the swap makes it fail; one that comes later sees zero and
 * opens the file again.
 *
 * A file's version is checked when it is opened, and then once per second while it is read.
 * Files that are not kept (one sample each) are opened for each read. Opening may block as
 * well, so a non-blocking read opens from the kernel's dentry cache only (RESOLVE_CACHED).
 *
 * Threads: any. The lock guards the list of open files. */
#include "store/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

enum { MAX_OPEN = 256, PART_IOVS = 64 };

/* How a file supports non-blocking reads. */
enum nowait {
	NOWAIT_ASK,   /* RWF_NOWAIT works */
	NOWAIT_NEVER, /* RWF_NOWAIT is not supported: every read may block */
	NOWAIT_FREE,  /* the file is in RAM: no read blocks */
};

/* A descriptor held for one read. */
struct held {
	int fd;
	bool loose; /* not in the list of open files: close it after the read */
};

/* ---- the list of open files ---- */

/* At most a quarter of the process's descriptors. */
static size_t
open_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 4 >= MAX_OPEN)
		return MAX_OPEN;
	return limit.rlim_cur < 8 ? 2 : (size_t)limit.rlim_cur / 4;
}

enum leat_status
leat_file_reads_open(struct leat_file_store *store, struct leat_err *err)
{
	pthread_mutex_init(&store->lock, NULL);
	pthread_mutex_init(&store->turn, NULL);
	store->max_open = open_limit();
	store->open = leat_alloc_array(store->base.mem, store->max_open, sizeof(*store->open));
	return store->open ? LEAT_OK
	                   : leat_fail_mem(err, store->base.mem, store->max_open * sizeof(*store->open),
	                                   "the list of open files");
}

void
leat_file_reads_close(struct leat_file_store *store)
{
	leat_free(store->base.mem, store->open);
	pthread_mutex_destroy(&store->turn);
	pthread_mutex_destroy(&store->lock);
}

enum leat_status
leat_file_keep(struct leat_object *object, struct leat_err *err)
{
	struct leat_mem *mem = object->store->mem;

	object->open = leat_alloc(mem, sizeof(*object->open));
	return object->open ? LEAT_OK : leat_fail_mem(err, mem, sizeof(*object->open), "an open file");
}

void
leat_file_forget(struct leat_object *object)
{
	struct leat_file_store *store = leat_file_store_of(object->store);
	struct leat_open *open = object->open;
	uint64_t word = atomic_load(&open->word);

	if (word >> 32) {
		pthread_mutex_lock(&store->lock);
		for (size_t i = 0; i < store->opened; i++)
			if (store->open[i] == open)
				store->open[i--] = store->open[--store->opened];
		pthread_mutex_unlock(&store->lock);
		close((int)(word >> 32) - 1);
	}
	leat_file_unmap(object->store, open->map);
	leat_file_gather_forget(object);
	leat_free(store->base.mem, open);
	object->open = NULL;
}

/* Under the lock: removes a file from the list that has no readers and was not read recently.
 * Returns its descriptor, which the caller closes after unlocking, or -1. */
static int
evict(struct leat_file_store *store)
{
	for (size_t tries = 2 * store->opened; tries; tries--) {
		size_t at = store->hand = (store->hand + 1) % store->opened;
		struct leat_open *open = store->open[at];
		uint64_t word = atomic_load_explicit(&open->word, memory_order_relaxed);

		if (atomic_exchange_explicit(&open->used, 0, memory_order_relaxed))
			continue;
		word &= ~(uint64_t)UINT32_MAX;
		if (atomic_compare_exchange_strong(&open->word, &word, 0)) {
			store->open[at] = store->open[--store->opened];
			return (int)(word >> 32) - 1;
		}
	}
	return -1;
}

bool
leat_file_evict_one(struct leat_file_store *store)
{
	int fd;

	pthread_mutex_lock(&store->lock);
	fd = evict(store);
	pthread_mutex_unlock(&store->lock);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* ---- opening ---- */

/* Opens from the kernel's dentry cache. LEAT_AGAIN: it would block; LEAT_UNSUPPORTED: use openat. */
static enum leat_status
open_cached(struct leat_file_store *store, const char *path, int *fd)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK, .resolve = RESOLVE_CACHED};

	if (atomic_load_explicit(&store->no_cached, memory_order_relaxed) ||
	    atomic_load_explicit(&store->queued, memory_order_relaxed))
		return LEAT_UNSUPPORTED;
	*fd = (int)syscall(SYS_openat2, store->cwd, path, &how, sizeof(how));
	if (*fd >= 0)
		return LEAT_OK;
	if (errno == EAGAIN || errno == EMFILE || errno == ENFILE)
		return LEAT_AGAIN;
	if (errno == ENOSYS || errno == EINVAL || errno == EPERM)
		atomic_store_explicit(&store->no_cached, true, memory_order_relaxed);
	return LEAT_UNSUPPORTED;
}

static enum leat_status
open_path(struct leat_file_store *store, const char *path, int flags, int *fd, struct leat_err *err)
{
	enum leat_status status = flags & LEAT_READ_NOWAIT ? open_cached(store, path, fd) : LEAT_UNSUPPORTED;

	return status == LEAT_UNSUPPORTED ? leat_file_open_path(store, path, flags, fd, err) : status;
}

static enum leat_status
open_object(const struct leat_object *object, int flags, int *fd, struct leat_err *err)
{
	char buf[LEAT_URI];
	const char *path = leat_object_uri(object, buf);
	enum leat_status status;
	struct stat st;

	if (!path)
		return leat_fail(err, LEAT_DATA, "the name of a file below '%s' is too long or contains a NUL byte",
		                 object->folder);
	status = open_path(leat_file_store_of(object->store), path, flags, fd, err);
	if (status != LEAT_OK)
		return status;
	status = fstat(*fd, &st) == 0 ? leat_file_compare(object, &st, path, err)
	                              : leat_fail_errno(err, errno, "cannot read '%s'", path);
	if (status != LEAT_OK)
		close(*fd);
	return status;
}

enum leat_status
leat_file_open(const struct leat_object *object, int *fd, struct leat_err *err)
{
	return open_object(object, 0, fd, err);
}

static uint64_t
coarse_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The slow path: opens the file and adds it to the list, unless another thread did so meanwhile. */
static enum leat_status
open_and_hold(const struct leat_object *object, int flags, struct held *held, struct leat_err *err)
{
	struct leat_file_store *store = leat_file_store_of(object->store);
	enum leat_status status = open_object(object, flags, &held->fd, err);
	struct leat_open *open = object->open;
	int close_fd = -1;
	uint64_t word;

	held->loose = true;
	if (status != LEAT_OK || !open)
		return status;
	pthread_mutex_lock(&store->lock);
	word = atomic_load(&open->word);
	if (word >> 32) { /* cannot be closed while we hold the lock */
		atomic_fetch_add(&open->word, 1);
		close_fd = held->fd;
		held->fd = (int)(word >> 32) - 1;
		held->loose = false;
	} else {
		if (store->opened == store->max_open)
			close_fd = evict(store);
		held->loose = store->opened == store->max_open;
		if (!held->loose) {
			store->open[store->opened++] = open;
			atomic_store_explicit(&open->used, 1, memory_order_relaxed);
			atomic_store_explicit(&open->checked_ns, coarse_now(), memory_order_relaxed);
			atomic_fetch_add(&open->word, (uint64_t)(held->fd + 1) << 32 | 1);
		}
	}
	pthread_mutex_unlock(&store->lock);
	if (close_fd >= 0)
		close(close_fd);
	return LEAT_OK;
}

static void
let_go(const struct leat_object *object, const struct held *held)
{
	if (held->loose)
		close(held->fd);
	else
		atomic_fetch_sub_explicit(&object->open->word, 1, memory_order_release);
}

/* ---- versions of open files ---- */

/* stat without a round trip to a network file system's server. */
static bool
stat_cached(int folder, const char *path, int flags, struct stat *st)
{
	struct statx x;

	if (statx(folder, path, AT_STATX_DONT_SYNC | flags, STATX_BASIC_STATS, &x) != 0)
		return false;
	*st = (struct stat){
		.st_mode = x.stx_mode,
		.st_ino = x.stx_ino,
		.st_uid = x.stx_uid,
		.st_size = (off_t)x.stx_size,
		.st_mtim = {x.stx_mtime.tv_sec, x.stx_mtime.tv_nsec},
		.st_ctim = {x.stx_ctime.tv_sec, x.stx_ctime.tv_nsec},
	};
	return true;
}

enum leat_status
leat_file_check(const struct leat_object *object, struct leat_err *err)
{
	char buf[LEAT_URI];
	const char *path = leat_object_uri(object, buf);
	struct leat_file_store *store = leat_file_store_of(object->store);
	struct stat st;
	int tried = 0;

	while (!stat_cached(store->cwd, path, 0, &st)) {
		if (leat_file_is_missing(errno))
			return leat_fail_errno_as(err, LEAT_DATA, errno, "'%s' has disappeared since it was opened",
			                          path);
		if (!leat_file_try_again(store, &tried, errno))
			return leat_fail_errno(err, errno, "cannot check '%s' for changes", path);
	}
	return leat_file_compare(object, &st, path, err);
}

/* Checks the path rather than the descriptor, to notice when the file was replaced. */
static enum leat_status
recheck(const struct leat_object *object, struct leat_err *err)
{
	struct leat_open *open = object->open;
	uint64_t now = coarse_now(), checked = atomic_load_explicit(&open->checked_ns, memory_order_relaxed);
	enum leat_status status;

	if (now - checked < leat_file_store_of(object->store)->recheck_ns ||
	    !atomic_compare_exchange_strong_explicit(&open->checked_ns, &checked, now, memory_order_relaxed,
	                                             memory_order_relaxed))
		return LEAT_OK;
	status = leat_file_check(object, err);
	if (status != LEAT_OK)
		atomic_store_explicit(&open->checked_ns, 0, memory_order_relaxed); /* later reads must fail too */
	return status;
}

static enum leat_status
hold(const struct leat_object *object, int flags, struct held *held, struct leat_err *err)
{
	struct leat_open *open = object->open;
	enum leat_status status;
	uint64_t word;

	if (!open)
		return open_and_hold(object, flags, held, err);
	word = atomic_fetch_add_explicit(&open->word, 1, memory_order_acquire);
	if (!(word >> 32)) {
		atomic_fetch_sub_explicit(&open->word, 1, memory_order_relaxed);
		return open_and_hold(object, 0, held, err);
	}
	*held = (struct held){.fd = (int)(word >> 32) - 1};
	if (!atomic_load_explicit(&open->used, memory_order_relaxed))
		atomic_store_explicit(&open->used, 1, memory_order_relaxed);
	status = recheck(object, err);
	if (status != LEAT_OK)
		let_go(object, held);
	return status;
}

enum leat_status
leat_file_check_open(const struct leat_object *object, struct leat_err *err)
{
	enum leat_status status;
	struct held held;
	struct stat st;
	char buf[LEAT_URI];

	status = hold(object, 0, &held, err);
	if (status != LEAT_OK)
		return status;
	status = stat_cached(held.fd, "", AT_EMPTY_PATH, &st)
	                 ? leat_file_compare(object, &st, leat_object_uri(object, buf), err)
	                 : leat_fail_errno(err, errno, "cannot check '%s' for changes", leat_object_uri(object, buf));
	let_go(object, &held);
	return status;
}

/* ---- reading ---- */

/* A position in the iovs, for partial reads. After advance, iov[0] is the first that is not full. */
struct cursor {
	const struct iovec *iov;
	int iovs;
	size_t into; /* bytes already in iov[0] */
	size_t want; /* total bytes to read */
};

static void
advance(struct cursor *at, size_t bytes)
{
	at->into += bytes;
	while (at->iovs && at->into >= at->iov->iov_len) {
		at->into -= at->iov->iov_len;
		at->iov++;
		at->iovs--;
	}
}

static struct cursor
begin_at(const struct iovec *iov, int iovs)
{
	struct cursor at = {.iov = iov, .iovs = iovs};

	for (int k = 0; k < iovs; k++)
		at.want += iov[k].iov_len;
	advance(&at, 0);
	return at;
}

/* Reads as much as one system call can. */
static ssize_t
read_part(int fd, uint64_t offset, const struct cursor *at, int flags)
{
	struct iovec part[PART_IOVS];
	int parts = at->iovs < PART_IOVS ? at->iovs : PART_IOVS;

	if (at->into == 0 && at->iovs <= IOV_MAX)
		return preadv2(fd, at->iov, at->iovs, (off_t)offset, flags);
	memcpy(part, at->iov, (size_t)parts * sizeof(*part));
	part[0].iov_base = (char *)part[0].iov_base + at->into;
	part[0].iov_len -= at->into;
	return preadv2(fd, part, parts, (off_t)offset, flags);
}

static enum leat_status
read_all(const struct leat_object *object, int fd, uint64_t offset, struct cursor at, size_t *got, struct leat_err *err)
{
	struct leat_file_store *store = leat_file_store_of(object->store);
	char buf[LEAT_URI];
	int tried = 0;

	while (*got < at.want) {
		ssize_t n = read_part(fd, offset + *got, &at, 0);

		if (n == 0)
			return leat_fail(err, LEAT_DATA,
			                 "'%s' ends before offset %llu, but had %llu bytes when it was opened",
			                 leat_object_uri(object, buf), (unsigned long long)(offset + at.want),
			                 (unsigned long long)object->size);
		if (n < 0 && leat_file_try_again(store, &tried, errno))
			continue;
		if (n < 0)
			return leat_fail_errno(err, errno, "cannot read '%s' at offset %llu",
			                       leat_object_uri(object, buf), (unsigned long long)(offset + *got));
		*got += (size_t)n;
		advance(&at, (size_t)n);
	}
	return LEAT_OK;
}

static enum nowait
nowait_kind(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC))
		return NOWAIT_FREE;
	return NOWAIT_NEVER;
}

/* Reads from the page cache. For missing pages the kernel returns a short read, EAGAIN or, in some versions, 0,
 * so the end of the file cannot be detected here; the blocking read does that. */
static enum leat_status
read_cached(const struct leat_object *object, int fd, uint64_t offset, struct cursor at, size_t *got,
            struct leat_err *err)
{
	struct leat_open *open = object->open ? object->open : &leat_file_store_of(object->store)->any;
	enum nowait nowait = atomic_load_explicit(&open->nowait, memory_order_relaxed);

	while (nowait == NOWAIT_ASK && *got < at.want) {
		ssize_t n = read_part(fd, offset + *got, &at, RWF_NOWAIT);

		if (n > 0) {
			*got += (size_t)n;
			advance(&at, (size_t)n);
		} else if (n < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL)) {
			nowait = nowait_kind(fd);
			atomic_store_explicit(&open->nowait, (unsigned char)nowait, memory_order_relaxed);
		} else if (n == 0 || errno != EINTR) {
			return LEAT_AGAIN;
		}
	}
	if (nowait == NOWAIT_NEVER)
		return LEAT_AGAIN;
	return read_all(object, fd, offset, at, got, err);
}

enum leat_status
leat_file_read_now(const struct leat_object *object, uint64_t offset, const struct iovec *iov, int iovs, size_t *got,
                   struct leat_err *err)
{
	struct held held;
	enum leat_status status;

	*got = 0;
	status = hold(object, LEAT_READ_NOWAIT, &held, err);
	if (status != LEAT_OK)
		return status;
	status = read_cached(object, held.fd, offset, begin_at(iov, iovs), got, err);
	let_go(object, &held);
	return status;
}

enum leat_status
leat_file_read(const struct leat_object *object, uint64_t offset, const struct iovec *iov, int iovs, size_t *got,
               struct leat_err *err)
{
	struct held held;
	enum leat_status status;

	*got = 0;
	status = hold(object, 0, &held, err);
	if (status != LEAT_OK)
		return status;
	status = read_all(object, held.fd, offset, begin_at(iov, iovs), got, err);
	let_go(object, &held);
	return status;
}
