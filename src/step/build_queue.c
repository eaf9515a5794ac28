/* build_queue.c - jobs that wait for a worker: a binary heap, longest first */
#include "base/array.h"
#include "step/build_core.h"

static bool
is_before(const struct leat_job *a, const struct leat_job *b)
{
	if (a->priority_s != b->priority_s)
		return a->priority_s > b->priority_s;
	return a->step != b->step ? a->step < b->step : a->slice < b->slice;
}

static void
swap(struct leat_job *a, struct leat_job *b)
{
	struct leat_job job = *a;

	*a = *b;
	*b = job;
}

enum leat_status
leat_job_push(struct leat_job_queue *queue, struct leat_job job, struct leat_mem *mem, struct leat_err *err)
{
	size_t i = queue->count;

	if (LEAT_GROW(mem, queue->job, queue->cap, i + 1, SIZE_MAX, "the queue of actions", err) != LEAT_OK)
		return LEAT_NOMEM;
	queue->job[queue->count++] = job;
	for (; i > 0 && is_before(&queue->job[i], &queue->job[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&queue->job[i], &queue->job[(i - 1) / 2]);
	return LEAT_OK;
}

struct leat_job
leat_job_pop(struct leat_job_queue *queue)
{
	struct leat_job top = queue->job[0];
	size_t i = 0, child;

	queue->job[0] = queue->job[--queue->count];
	for (; (child = 2 * i + 1) < queue->count; i = child) {
		if (child + 1 < queue->count && is_before(&queue->job[child + 1], &queue->job[child]))
			child++;
		if (!is_before(&queue->job[child], &queue->job[i]))
			break;
		swap(&queue->job[child], &queue->job[i]);
	}
	return top;
}
