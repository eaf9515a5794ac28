/* threads.h - how many CPUs we may use, groups of threads, and a bounded queue */
#ifndef LEAT_BASE_THREADS_H
#define LEAT_BASE_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* min(affinity, cgroup v1 or v2 CPU quota rounded up), at least 1. `root` is "" but in tests, where
 * it is a folder that holds proc/self/cgroup, proc/self/mountinfo, proc/meminfo and sys/fs/cgroup/... */
unsigned leat_cpus(const char *root);
/* RAM this process may use: min(MemTotal, the cgroup's memory limit), in bytes. */
size_t leat_ram(const char *root);

/* `count` threads that run body(arg, i), joined together. All signals are blocked in them but those that
 * a fault of their own raises. Either all run, or none has run and the group is as if never started. */
struct leat_threads {
	struct leat_crew *crew;
	unsigned count;
	struct leat_mem *mem;
};

enum leat_status leat_threads_start(struct leat_threads *group, struct leat_mem *mem, unsigned count, const char *name,
                                    void (*body)(void *arg, unsigned i), void *arg, struct leat_err *err);
void leat_threads_join(struct leat_threads *group); /* takes a zeroed group */

/* Runs task(arg, i) for all i < count on up to `threads` threads, the caller's among them, and
 * returns the failure of the smallest failing i. After a failure later tasks are not begun. Threads that
 * cannot be had are done without. */
enum leat_status leat_parallel(struct leat_mem *mem, unsigned threads, size_t count,
                               enum leat_status (*task)(void *arg, size_t i, struct leat_err *err), void *arg,
                               struct leat_err *err);

/* A bounded FIFO of pointers, none of them NULL, between threads. */
struct leat_queue {
	pthread_mutex_t lock;
	pthread_cond_t not_empty, not_full;
	void **item;
	size_t cap, head, count;
	bool closed;
	struct leat_mem *mem;
};

enum leat_status leat_queue_init(struct leat_queue *queue, struct leat_mem *mem, size_t cap, struct leat_err *err);
void leat_queue_free(struct leat_queue *queue);                 /* takes a zeroed queue */
bool leat_queue_push(struct leat_queue *queue, void *item);     /* waits for room; false: closed */
bool leat_queue_try_push(struct leat_queue *queue, void *item); /* false: full or closed */
void *leat_queue_pop(struct leat_queue *queue);                 /* waits for an item; NULL: closed and empty */
void leat_queue_close(struct leat_queue *queue);                /* wakes everyone; items left can still be popped */

#endif
