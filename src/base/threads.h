/* threads.h - CPU and RAM limits, thread groups, and a bounded queue */
#ifndef LEAT_BASE_THREADS_H
#define LEAT_BASE_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* CPUs this process may use: min(affinity, cgroup CPU quota rounded up), at least 1. `root` is "", except in
 * tests, where it is a folder with fake proc/self/cgroup, proc/self/mountinfo, proc/meminfo and sys/fs/cgroup. */
unsigned leat_cpus(const char *root);
/* The same, not rounded: 1.5 with a quota of one and a half. */
double leat_cpu_limit(const char *root);
/* The cgroup whose CPU quota is the smallest: its folder, as seen below `root`. False: there is no quota. */
bool leat_cpu_quota_group(const char *root, char *folder, size_t cap);
/* The folder of this process's cgroup v2, with `root`. False: it has none. */
bool leat_own_cgroup(const char *root, char *folder, size_t cap);
/* RAM this process may use: min(MemTotal, the cgroup's memory limit), in bytes. */
size_t leat_ram(const char *root);

/* A group of `count` threads that run body(arg, i) and are joined together. They block all signals except
 * faults. Starting is all or nothing: on failure no body has run. */
struct leat_threads {
	struct leat_crew *crew;
	unsigned count;
	struct leat_mem *mem;
};

enum leat_status leat_threads_start(struct leat_threads *group, struct leat_mem *mem, unsigned count, const char *name,
                                    void (*body)(void *arg, unsigned i), void *arg, struct leat_err *err);
void leat_threads_join(struct leat_threads *group); /* accepts a zeroed group */

/* Runs body(arg) on a thread that nobody waits for. It blocks the same signals. */
enum leat_status leat_thread_detach(const char *name, void (*body)(void *arg), void *arg, struct leat_err *err);

/* Runs task(arg, i) for all i < count on up to `threads` threads, including the caller's. Returns the
 * failure with the lowest i; no new tasks start after a failure. If so many threads cannot be started, fewer are:
 * in the end the caller runs all tasks. */
enum leat_status leat_parallel(struct leat_mem *mem, unsigned threads, size_t count,
                               enum leat_status (*task)(void *arg, size_t i, struct leat_err *err), void *arg,
                               struct leat_err *err);

/* A bounded, thread-safe FIFO of non-NULL pointers. */
struct leat_queue {
	pthread_mutex_t lock;
	pthread_cond_t not_empty, not_full;
	void **item;
	size_t cap, head, count;
	bool closed;
	struct leat_mem *mem;
};

enum leat_status leat_queue_init(struct leat_queue *queue, struct leat_mem *mem, size_t cap, struct leat_err *err);
void leat_queue_free(struct leat_queue *queue);                 /* accepts a zeroed queue */
bool leat_queue_push(struct leat_queue *queue, void *item);     /* waits for room; false: closed */
bool leat_queue_try_push(struct leat_queue *queue, void *item); /* false: full or closed */
void *leat_queue_pop(struct leat_queue *queue);                 /* waits for an item; NULL: closed and empty */
void leat_queue_close(struct leat_queue *queue); /* wakes all waiters; remaining items can still be popped */

#endif
