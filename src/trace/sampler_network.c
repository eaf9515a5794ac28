/* sampler_network.c - "network MB/s" and "loopback MB/s": bytes of all programs in this network namespace
 *
 * The kernel does not count them per process. Loopback has its own track: servers of tests and proxies on this machine
 * are there, and so are programs that only talk to themselves. The track begins with the first byte. */
#include <fcntl.h>
#include <unistd.h>

#include "trace/proc.h"
#include "trace/sampler.h"

struct network {
	int fd; /* of /proc/net/dev */
	struct leat_proc_net last;
	bool loops; /* lo has been used */
};

static bool
network_open(void *state, struct leat_sampling *s)
{
	struct network *n = state;

	n->fd = leat_sampling_open(s, O_RDONLY, "/proc/self/net/dev");
	return n->fd >= 0 && leat_proc_parse_net(s->text, leat_sampling_read(s, n->fd), &n->last);
}

static void
network_take(void *state, struct leat_sampling *s)
{
	struct network *n = state;
	struct leat_proc_net now;

	if (!leat_proc_parse_net(s->text, leat_sampling_read(s, n->fd), &now))
		return;
	n->loops |= s->seconds > 0 && now.loopback > n->last.loopback;
	leat_sampling_put(s, "network MB/s", leat_sampling_rate(s, n->last.bytes, now.bytes) / 1e6);
	if (n->loops)
		leat_sampling_put(s, "loopback MB/s", leat_sampling_rate(s, n->last.loopback, now.loopback) / 1e6);
	n->last = now;
}

static void
network_close(void *state)
{
	struct network *n = state;

	if (n->fd >= 0)
		close(n->fd);
}

const struct leat_sampler leat_sampler_network = {sizeof(struct network), network_open, network_take, network_close};
