/* sampler_throttle.c - "throttled %": share of the CPU quota's periods in which the cgroup had to stop
 *
 * A period is mostly 100 ms. Of several quotas, from the process's cgroup to the root, the smallest counts. Without a
 * quota there is no track. */
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "base/threads.h"
#include "trace/proc.h"
#include "trace/sampler.h"

struct throttle {
	int fd; /* of the cgroup's cpu.stat, the same in v1 and v2 */
	uint64_t periods, throttled;
};

static bool
read_periods(struct throttle *t, struct leat_sampling *s, uint64_t *periods, uint64_t *throttled)
{
	size_t len = leat_sampling_read(s, t->fd);

	return leat_proc_find(s->text, len, "nr_periods", periods) &&
	       leat_proc_find(s->text, len, "nr_throttled", throttled);
}

static bool
throttle_open(void *state, struct leat_sampling *s)
{
	struct throttle *t = state;
	char folder[PATH_MAX];

	t->fd = -1;
	if (!leat_cpu_quota_group(s->root, folder, sizeof(folder)))
		return false;
	t->fd = leat_sampling_open(s, O_RDONLY, "%s/cpu.stat", folder);
	return t->fd >= 0 && read_periods(t, s, &t->periods, &t->throttled);
}

static void
throttle_take(void *state, struct leat_sampling *s)
{
	struct throttle *t = state;
	uint64_t periods, throttled, all, some;

	if (!read_periods(t, s, &periods, &throttled))
		return;
	all = periods > t->periods ? periods - t->periods : 0;
	some = throttled > t->throttled ? throttled - t->throttled : 0;
	leat_sampling_put(s, "throttled %", some == 0 ? 0 : some < all ? 100.0 * (double)some / (double)all : 100);
	t->periods = periods;
	t->throttled = throttled;
}

static void
throttle_close(void *state)
{
	struct throttle *t = state;

	if (t->fd >= 0)
		close(t->fd);
}

const struct leat_sampler leat_sampler_throttle = {sizeof(struct throttle), throttle_open, throttle_take,
                                                   throttle_close};
