/* sampler_rss.c - "rss MB": resident memory of this process, and "rss processes MB": of those it has started
 *
 * Pages that processes share count in each of them. */
#include <fcntl.h>
#include <unistd.h>

#include "trace/proc.h"
#include "trace/sampler.h"

struct rss {
	int fd; /* of statm */
	double page_mb;
};

static bool
rss_open(void *state, struct leat_sampling *s)
{
	struct rss *rss = state;

	rss->page_mb = (double)sysconf(_SC_PAGESIZE) / 1e6;
	rss->fd = leat_sampling_open(s, O_RDONLY, "/proc/self/statm");
	return rss->fd >= 0;
}

static void
rss_take(void *state, struct leat_sampling *s)
{
	struct rss *rss = state;
	uint64_t pages, others = 0;

	if (leat_proc_parse_statm(s->text, leat_sampling_read(s, rss->fd), &pages))
		leat_sampling_put(s, "rss MB", (double)pages * rss->page_mb);
	for (int i = 0; i < s->children; i++)
		if (leat_proc_parse_statm(s->text, leat_sampling_read_path(s, "/proc/%d/statm", s->child[i]), &pages))
			others += pages;
	if (others)
		leat_sampling_put(s, "rss processes MB", (double)others * rss->page_mb);
}

static void
rss_close(void *state)
{
	struct rss *rss = state;

	if (rss->fd >= 0)
		close(rss->fd);
}

const struct leat_sampler leat_sampler_rss = {sizeof(struct rss), rss_open, rss_take, rss_close};
