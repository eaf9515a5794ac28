/* threads.c - thread groups, parallel tasks, and a bounded queue (limits.c counts the CPUs)
 *
 * A group is started and joined by one thread. Any thread may call the queue's functions, except
 * init and free, which need exclusive access. No function here holds two locks. */
#include "base/threads.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ---- thread groups ---- */

enum gate { GATE_SHUT, GATE_OPEN, GATE_GIVEN_UP };

/* All threads of a group wait at its gate until the last one has been created. If creating one fails, none
 * has started work. */
struct leat_crew {
	pthread_mutex_t lock;
	pthread_cond_t moved;
	enum gate gate; /* under `lock` */
	char name[11];  /* with "-NNNN" appended, the longest name Linux allows */
	void (*body)(void *arg, unsigned i);
	void *arg;
	struct member {
		struct leat_crew *crew;
		unsigned i;
		pthread_t thread;
	} member[];
};

static void *
run_member(void *arg)
{
	const struct member *self = arg;
	struct leat_crew *crew = self->crew;
	char name[16];
	bool go;

	snprintf(name, sizeof(name), "%s-%u", crew->name, self->i % 10000);
	pthread_setname_np(pthread_self(), name);

	pthread_mutex_lock(&crew->lock);
	while (crew->gate == GATE_SHUT)
		pthread_cond_wait(&crew->moved, &crew->lock);
	go = crew->gate == GATE_OPEN;
	pthread_mutex_unlock(&crew->lock);
	if (go)
		crew->body(crew->arg, self->i);
	return NULL;
}

static void
move_gate(struct leat_crew *crew, enum gate gate)
{
	pthread_mutex_lock(&crew->lock);
	crew->gate = gate;
	pthread_cond_broadcast(&crew->moved);
	pthread_mutex_unlock(&crew->lock);
}

/* Signals sent to the process are for the host program's threads, so ours block them. Faults are raised in the
 * thread that caused them and must reach their handlers. */
static void
signals_to_block(sigset_t *set)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};

	sigfillset(set);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(set, faults[i]);
}

/* Creates `count` threads, with signals blocked; group->count is how many exist. Returns 0 or an errno. */
static int
make_members(struct leat_threads *group, unsigned count)
{
	struct leat_crew *crew = group->crew;
	sigset_t blocked, before;
	int failed = 0;

	signals_to_block(&blocked);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	while (group->count < count && failed == 0) {
		struct member *member = &crew->member[group->count];

		member->crew = crew;
		member->i = group->count;
		failed = pthread_create(&member->thread, NULL, run_member, member);
		if (failed == 0)
			group->count++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failed;
}

static struct leat_crew *
new_crew(struct leat_mem *mem, unsigned count, const char *name, void (*body)(void *arg, unsigned i), void *arg)
{
	struct leat_crew *crew = leat_alloc(mem, sizeof(*crew) + count * sizeof(crew->member[0]));

	if (crew == NULL)
		return NULL;
	pthread_mutex_init(&crew->lock, NULL);
	pthread_cond_init(&crew->moved, NULL);
	snprintf(crew->name, sizeof(crew->name), "%s", name);
	crew->body = body;
	crew->arg = arg;
	return crew;
}

enum leat_status
leat_threads_start(struct leat_threads *group, struct leat_mem *mem, unsigned count, const char *name,
                   void (*body)(void *arg, unsigned i), void *arg, struct leat_err *err)
{
	unsigned made;
	int failed;

	memset(group, 0, sizeof(*group));
	group->mem = mem;
	group->crew = new_crew(mem, count, name, body, arg);
	if (group->crew == NULL)
		return leat_fail_mem(err, mem, sizeof(*group->crew) + count * sizeof(struct member),
		                     "a group of threads");
	failed = make_members(group, count);
	move_gate(group->crew, failed == 0 ? GATE_OPEN : GATE_GIVEN_UP);
	if (failed == 0)
		return LEAT_OK;
	made = group->count;
	leat_threads_join(group);
	return leat_fail_errno(err, failed, "cannot start thread %u of %u (try fewer threads)", made + 1, count);
}

void
leat_threads_join(struct leat_threads *group)
{
	struct leat_crew *crew = group->crew;

	if (crew == NULL)
		return;
	for (unsigned i = 0; i < group->count; i++)
		pthread_join(crew->member[i].thread, NULL);
	pthread_cond_destroy(&crew->moved);
	pthread_mutex_destroy(&crew->lock);
	leat_free(group->mem, crew);
	memset(group, 0, sizeof(*group));
}

struct detached {
	char name[16];
	void (*body)(void *arg);
	void *arg;
};

static void *
run_detached(void *arg)
{
	struct detached self = *(struct detached *)arg;

	free(arg);
	pthread_setname_np(pthread_self(), self.name);
	self.body(self.arg);
	return NULL;
}

enum leat_status
leat_thread_detach(const char *name, void (*body)(void *arg), void *arg, struct leat_err *err)
{
	struct detached *self = malloc(sizeof(*self));
	sigset_t blocked, before;
	pthread_attr_t attr;
	pthread_t thread;
	int failed;

	if (!self)
		return leat_fail(err, LEAT_NOMEM, "out of memory for a thread");
	*self = (struct detached){.body = body, .arg = arg};
	snprintf(self->name, sizeof(self->name), "%s", name);
	signals_to_block(&blocked);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &blocked, &before);
	failed = pthread_create(&thread, &attr, run_detached, self);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (failed == 0)
		return LEAT_OK;
	free(self);
	return leat_fail_errno(err, failed, "cannot start a thread");
}

/* ---- parallel tasks ---- */

struct tasks {
	enum leat_status (*task)(void *arg, size_t i, struct leat_err *err);
	void *arg;
	atomic_size_t next;
	atomic_size_t failed; /* lowest index of a failed task; the number of tasks if none failed */
	pthread_mutex_t lock; /* guards the members below, and writes to `failed` */
	enum leat_status status;
	struct leat_err err;
};

static void
note_failure(struct tasks *tasks, size_t i, enum leat_status status, const struct leat_err *err)
{
	pthread_mutex_lock(&tasks->lock);
	if (i < atomic_load(&tasks->failed)) {
		atomic_store(&tasks->failed, i);
		tasks->status = status;
		tasks->err = *err;
	}
	pthread_mutex_unlock(&tasks->lock);
}

/* Tasks are started in order, so all tasks before a failed one have started and will finish. The failure with the
 * lowest index, which is the one reported, therefore does not depend on timing. */
static void
run_tasks(void *arg, unsigned thread)
{
	struct tasks *tasks = arg;
	size_t i;

	(void)thread;
	while ((i = atomic_fetch_add(&tasks->next, 1)) < atomic_load(&tasks->failed)) {
		enum leat_status status;
		struct leat_err err;

		leat_err_clear(&err);
		status = tasks->task(tasks->arg, i, &err);
		if (status != LEAT_OK)
			note_failure(tasks, i, status, &err);
	}
}

enum leat_status
leat_parallel(struct leat_mem *mem, unsigned threads, size_t count,
              enum leat_status (*task)(void *arg, size_t i, struct leat_err *err), void *arg, struct leat_err *err)
{
	struct tasks tasks = {.task = task, .arg = arg, .status = LEAT_OK};
	unsigned helpers = threads > count ? (unsigned)count : threads;
	struct leat_threads group = {0};

	atomic_init(&tasks.next, 0);
	atomic_init(&tasks.failed, count);
	pthread_mutex_init(&tasks.lock, NULL);
	/* A system may allow fewer threads: then half as many, and so on. */
	for (unsigned more = helpers > 1 ? helpers - 1 : 0; more > 0; more /= 2)
		if (leat_threads_start(&group, mem, more, "leat-task", run_tasks, &tasks, NULL) == LEAT_OK)
			break;
	run_tasks(&tasks, 0);
	leat_threads_join(&group);
	pthread_mutex_destroy(&tasks.lock);
	if (tasks.status != LEAT_OK)
		leat_fail_lines(err, tasks.status, tasks.err.text);
	return tasks.status;
}

/* ---- a bounded queue ---- */

enum leat_status
leat_queue_init(struct leat_queue *queue, struct leat_mem *mem, size_t cap, struct leat_err *err)
{
	memset(queue, 0, sizeof(*queue));
	if (cap == 0)
		return leat_fail(err, LEAT_INTERNAL, "a queue needs room for one item");
	queue->item = leat_alloc_array(mem, cap, sizeof(queue->item[0]));
	if (queue->item == NULL)
		return leat_fail_mem(err, mem, cap * sizeof(queue->item[0]), "a queue");
	queue->mem = mem;
	queue->cap = cap;
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->not_empty, NULL);
	pthread_cond_init(&queue->not_full, NULL);
	return LEAT_OK;
}

void
leat_queue_free(struct leat_queue *queue)
{
	if (queue->item == NULL)
		return;
	pthread_cond_destroy(&queue->not_full);
	pthread_cond_destroy(&queue->not_empty);
	pthread_mutex_destroy(&queue->lock);
	leat_free(queue->mem, queue->item);
	memset(queue, 0, sizeof(*queue));
}

/* Under the lock. */
static bool
put(struct leat_queue *queue, void *item)
{
	if (queue->closed || queue->count == queue->cap)
		return false;
	queue->item[(queue->head + queue->count) % queue->cap] = item;
	queue->count++;
	pthread_cond_signal(&queue->not_empty);
	return true;
}

bool
leat_queue_push(struct leat_queue *queue, void *item)
{
	bool done;

	pthread_mutex_lock(&queue->lock);
	while (!queue->closed && queue->count == queue->cap)
		pthread_cond_wait(&queue->not_full, &queue->lock);
	done = put(queue, item);
	pthread_mutex_unlock(&queue->lock);
	return done;
}

bool
leat_queue_try_push(struct leat_queue *queue, void *item)
{
	bool done;

	pthread_mutex_lock(&queue->lock);
	done = put(queue, item);
	pthread_mutex_unlock(&queue->lock);
	return done;
}

void *
leat_queue_pop(struct leat_queue *queue)
{
	void *item = NULL;

	pthread_mutex_lock(&queue->lock);
	while (!queue->closed && queue->count == 0)
		pthread_cond_wait(&queue->not_empty, &queue->lock);
	if (queue->count > 0) {
		item = queue->item[queue->head];
		queue->head = (queue->head + 1) % queue->cap;
		queue->count--;
		pthread_cond_signal(&queue->not_full);
	}
	pthread_mutex_unlock(&queue->lock);
	return item;
}

void
leat_queue_close(struct leat_queue *queue)
{
	pthread_mutex_lock(&queue->lock);
	queue->closed = true;
	pthread_cond_broadcast(&queue->not_empty);
	pthread_cond_broadcast(&queue->not_full);
	pthread_mutex_unlock(&queue->lock);
}
