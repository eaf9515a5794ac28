/* file_read.c - local files: reads by range, and descriptors that are kept between them
 *
 * Descriptors are opened at first use, at most `max_open` of them. Each file that is kept
 * has one word that holds its descriptor (plus one) in the upper and the number of its
 * readers in the lower half, so that a read costs two atomic additions and no lock. A
 * descriptor is closed only by swapping the word from "no reader" to zero, under the lock:
 * a reader that came in time keeps it, one that came late sees zero and opens the file anew.
 *
 * A file is compared with the version that is meant whenever it is opened, and then once a
 * second while it is read. Files that are not kept (one sample each) are opened for one
 * read. That may wait for a device too, so a read that must not wait opens from the kernel's
 * cache of names only.
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

/* What reading without waiting means for a file. */
enum nowait {
	NOWAIT_ASK,   /* the kernel knows */
	NOWAIT_NEVER, /* the file system cannot tell: every read may wait */
	NOWAIT_FREE,  /* it is in memory: no read waits */
};

/* A descriptor for the time of one read. */
struct held {
	int fd;
	bool loose; /* not kept, or all that may be open are being read: closed right afterwards */
};

/* ---- the list of open files ---- */

/* Leaves most descriptors to the rest of the process. */
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
	leat_free(store->base.mem, open);
	object->open = NULL;
}

/* Under the lock: takes a file that nobody reads, and was not read lately, off the list.
 * Gives its descriptor, to be closed without the lock, or -1. */
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

static bool
evict_one(struct leat_file_store *store)
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

/* From the kernel's cache of names. LEAT_AGAIN: not without waiting; LEAT_UNSUPPORTED: the kernel cannot tell. */
static enum leat_status
open_cached(struct leat_file_store *store, const char *path, int *fd)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK, .resolve = RESOLVE_CACHED};

	if (atomic_load_explicit(&store->no_cached, memory_order_relaxed))
		return LEAT_UNSUPPORTED;
	*fd = (int)syscall(SYS_openat2, store->cwd, path, &how, sizeof(how));
	if (*fd >= 0)
		return LEAT_OK;
	if (errno == EAGAIN)
		return LEAT_AGAIN;
	if (errno == ENOSYS || errno == EINVAL || errno == EPERM)
		atomic_store_explicit(&store->no_cached, true, memory_order_relaxed);
	return LEAT_UNSUPPORTED;
}

static enum leat_status
open_path(struct leat_file_store *store, const char *path, int flags, int *fd, struct leat_err *err)
{
	enum leat_status status = flags & LEAT_READ_NOWAIT ? open_cached(store, path, fd) : LEAT_UNSUPPORTED;

	while (status == LEAT_UNSUPPORTED) {
		*fd = openat(store->cwd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* not to be stopped by a pipe */
		if (*fd >= 0)
			return LEAT_OK;
		if (errno == EINTR || ((errno == EMFILE || errno == ENFILE) && evict_one(store)))
			continue;
		return leat_fail_errno(err, errno, "cannot open '%s'", path);
	}
	return status;
}

static enum leat_status
open_object(const struct leat_object *object, int flags, int *fd, struct leat_err *err)
{
	char buf[LEAT_URI];
	const char *path = leat_object_uri(object, buf);
	enum leat_status status;
	struct stat st;

	if (!path)
		return leat_fail(err, LEAT_DATA, "the name of a file below '%s' is too long or not a name",
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

/* The slow way to a descriptor: opens the file, and enters it in the list unless another thread did. */
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
	if (word >> 32) { /* nobody closes it while we have the lock */
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

/* What statx says, without asking a server, as stat does. */
static bool
stat_cached(int folder, const char *path, struct stat *st)
{
	struct statx x;

	if (statx(folder, path, AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &x) != 0)
		return false;
	*st = (struct stat){
		.st_mode = x.stx_mode,
		.st_ino = x.stx_ino,
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
	struct stat st;

	if (!stat_cached(leat_file_store_of(object->store)->cwd, path, &st))
		return leat_fail_errno(err, errno, "'%s' is gone since it was opened", path);
	return leat_file_compare(object, &st, path, err);
}

/* An open descriptor is not asked but the name: what it leads to now is what people call the file. */
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
		atomic_store_explicit(&open->checked_ns, 0, memory_order_relaxed); /* and again, and again */
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

/* ---- reading ---- */

/* A walk over the iovs, for reads that come in parts. After advance it is at an iov that lacks bytes. */
struct cursor {
	const struct iovec *iov;
	int iovs;
	size_t into; /* bytes of iov[0] that are there */
	size_t want; /* of all */
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

/* One system call for as much as fits in it. */
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
	char buf[LEAT_URI];

	while (*got < at.want) {
		ssize_t n = read_part(fd, offset + *got, &at, 0);

		if (n == 0)
			return leat_fail(err, LEAT_DATA,
			                 "'%s' ends before offset %llu, though it had %llu bytes when it was opened",
			                 leat_object_uri(object, buf), (unsigned long long)(offset + at.want),
			                 (unsigned long long)object->size);
		if (n < 0 && errno == EINTR)
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
what_nowait_means(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) == 0 && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC))
		return NOWAIT_FREE;
	return NOWAIT_NEVER;
}

/* What the page cache holds. The kernel gives a part, EAGAIN, or (some versions) 0 for what it lacks,
 * so that the end of a file cannot be told from it: the read that waits will. */
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
			nowait = what_nowait_means(fd);
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
