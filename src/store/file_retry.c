/* file_retry.c - local files: waiting for failures that pass
 *
 * Descriptors and memory come back when this process or another one frees some, and network
 * disks recover, so such a call is tried again, for a bounded time. A feed must not mistake a
 * shortage for damaged data.
 *
 * When descriptors run out, threads open files one after the other: `turn` is held by the one
 * that waits, and nobody who comes later takes the descriptor it waits for. If waiting was in
 * vain once, nobody waits again until a file could be opened.
 *
 * Threads: any. */
#include "store/file.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>

enum { MS = 1000 * 1000 };

/* How often to try again, and the first pause, which doubles each time up to LONGEST_PAUSE. */
struct plan {
	int tries;
	uint64_t pause_ns;
};

enum { LONGEST_PAUSE = 50 * MS };

static const struct plan no_descriptors = {48, MS / 8}; /* 2 s in all */
static const struct plan no_memory = {6, MS};
static const struct plan device_error = {2, 10 * MS};

static const struct plan *
plan_for(int errnum)
{
	switch (errnum) {
	case EMFILE:
	case ENFILE:
	case EAGAIN:
		return &no_descriptors;
	case ENOMEM:
		return &no_memory;
	case EIO:
		return &device_error;
	default:
		return NULL;
	}
}

bool
leat_file_is_missing(int errnum)
{
	return errnum == ENOENT || errnum == ENOTDIR || errnum == ELOOP || errnum == ENAMETOOLONG;
}

enum leat_status
leat_file_fail_open(struct leat_err *err, int errnum, const char *path)
{
	enum leat_status status = leat_file_is_missing(errnum) ? LEAT_DATA : leat_errno_status(errnum);

	return leat_fail_errno_as(err, status, errnum, "cannot open '%s'", path);
}

static bool
is_stopping(const struct leat_file_store *store)
{
	return store->base.stores && atomic_load_explicit(&store->base.stores->interrupted, memory_order_relaxed);
}

static void
pause_for(const struct plan *plan, int tried)
{
	uint64_t ns = plan->pause_ns;

	for (int i = 0; i < tried && ns < LONGEST_PAUSE; i++)
		ns *= 2;
	if (ns > LONGEST_PAUSE)
		ns = LONGEST_PAUSE;
	nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

bool
leat_file_try_again(struct leat_file_store *store, int *tried, int errnum)
{
	const struct plan *plan = plan_for(errnum);

	if (errnum == EINTR)
		return true;
	if (!plan || is_stopping(store))
		return false;
	if (plan == &no_descriptors && errnum != EAGAIN) {
		if (leat_file_evict_one(store))
			return true;
		if (atomic_load_explicit(&store->gave_up, memory_order_relaxed))
			return false;
		atomic_store_explicit(&store->gave_up, *tried >= plan->tries, memory_order_relaxed);
	}
	if (*tried >= plan->tries)
		return false;
	pause_for(plan, (*tried)++);
	return true;
}

/* NONBLOCK: don't hang on a pipe. */
static int
open_once(const struct leat_file_store *store, const char *path)
{
	return openat(store->cwd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static int
open_in_turn(struct leat_file_store *store, const char *path)
{
	int fd, failure, tried = 0;

	atomic_fetch_add(&store->queued, 1);
	pthread_mutex_lock(&store->turn);
	do {
		fd = open_once(store, path);
		failure = errno;
	} while (fd < 0 && leat_file_try_again(store, &tried, failure));
	if (fd >= 0)
		atomic_store_explicit(&store->gave_up, false, memory_order_relaxed);
	pthread_mutex_unlock(&store->turn);
	atomic_fetch_sub(&store->queued, 1);
	errno = failure;
	return fd;
}

enum leat_status
leat_file_open_path(struct leat_file_store *store, const char *path, int flags, int *fd, struct leat_err *err)
{
	bool queued = atomic_load_explicit(&store->queued, memory_order_relaxed) > 0;

	*fd = queued ? -1 : open_once(store, path);
	if (*fd < 0 && (queued || plan_for(errno) || errno == EINTR)) {
		if (flags & LEAT_READ_NOWAIT)
			return LEAT_AGAIN;
		*fd = open_in_turn(store, path);
	}
	return *fd >= 0 ? LEAT_OK : leat_file_fail_open(err, errno, path);
}
