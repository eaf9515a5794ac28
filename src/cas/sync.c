/* sync.c - group commit: a thread that syncs the file system of the store, at most once a second
 *
 * An fsync for each file would cost milliseconds per action. The thread starts with the first thing that a run puts, so
 * a build that finds everything made starts none. If syncing fails, RUN.open stays, marked, and the next build checks
 * what this run made. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cas/inside.h"

void
leat_sync_init(struct leat_sync *sync)
{
	pthread_condattr_t monotonic;

	pthread_mutex_init(&sync->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&sync->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

/* Waits a second, or until the store is closed. Called with the lock. */
static void
wait_a_second(struct leat_sync *sync)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec++;
	while (!sync->stop && pthread_cond_timedwait(&sync->changed, &sync->lock, &until) != ETIMEDOUT)
		;
}

static void
sync_often(void *arg, unsigned i)
{
	struct leat_cas *cas = arg;
	struct leat_sync *sync = &cas->sync;

	(void)i;
	pthread_mutex_lock(&sync->lock);
	while (!sync->stop) {
		if (!sync->dirty) {
			pthread_cond_wait(&sync->changed, &sync->lock);
			continue;
		}
		wait_a_second(sync);
		if (sync->stop)
			break;
		sync->dirty = false;
		pthread_mutex_unlock(&sync->lock);
		leat_index_flush(cas);
		bool failed = syncfs(cas->folder_fd) != 0;
		pthread_mutex_lock(&sync->lock);
		sync->failed |= failed;
	}
	pthread_mutex_unlock(&sync->lock);
}

/* RUN.open must be on disk before anything that it speaks for. */
static bool
sync_run_file(struct leat_cas *cas)
{
	int fd = openat(cas->folder_fd, "runs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool synced = fd >= 0 && fsync(cas->run_fd) == 0 && fsync(fd) == 0;

	if (fd >= 0)
		close(fd);
	return synced;
}

void
leat_sync_mark(struct leat_cas *cas)
{
	struct leat_sync *sync = &cas->sync;

	pthread_mutex_lock(&sync->lock);
	if (!sync->started && cas->run_fd >= 0) {
		sync->started = true;
		sync->failed |= !sync_run_file(cas);
		/* Without the thread, all is synced at the end. */
		leat_threads_start(&sync->thread, cas->mem, 1, "leat-sync", sync_often, cas, NULL);
	}
	if (!sync->dirty) {
		sync->dirty = true;
		pthread_cond_signal(&sync->changed);
	}
	pthread_mutex_unlock(&sync->lock);
}

bool
leat_sync_end(struct leat_cas *cas)
{
	struct leat_sync *sync = &cas->sync;

	pthread_mutex_lock(&sync->lock);
	sync->stop = true;
	pthread_cond_broadcast(&sync->changed);
	pthread_mutex_unlock(&sync->lock);
	leat_threads_join(&sync->thread);
	if (sync->dirty && syncfs(cas->folder_fd) != 0)
		sync->failed = true;
	sync->dirty = sync->stop = sync->started = false;
	sync->thread = (struct leat_threads){0};
	return !sync->failed;
}
