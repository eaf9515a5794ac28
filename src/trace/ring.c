/* ring.c - see ring.h */
#include "trace/ring.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum leat_status
leat_alarm_open(struct leat_alarm *alarm, struct leat_err *err)
{
	atomic_init(&alarm->set, false);
	alarm->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return alarm->fd >= 0 ? LEAT_OK : leat_fail_errno(err, errno, "cannot open an eventfd for the recorder");
}

void
leat_alarm_close(struct leat_alarm *alarm)
{
	close(alarm->fd);
	alarm->fd = -1;
}

void
leat_alarm_ring(struct leat_alarm *alarm)
{
	uint64_t one = 1;
	int saved = errno;

	if (atomic_load_explicit(&alarm->set, memory_order_relaxed) || atomic_exchange(&alarm->set, true))
		return;
	/* Cannot fail in a way that matters: a counter at its maximum wakes as well. */
	while (write(alarm->fd, &one, sizeof one) < 0 && errno == EINTR)
		;
	errno = saved;
}

void
leat_alarm_wait(struct leat_alarm *alarm, uint64_t ns)
{
	struct pollfd wait = {.fd = alarm->fd, .events = POLLIN};
	uint64_t count;

	if (poll(&wait, 1, (int)(ns / 1000000)) > 0)
		while (read(alarm->fd, &count, sizeof count) < 0 && errno == EINTR)
			;
	/* Before the rings are looked at: who rings from now on is heard in the next round. */
	atomic_store(&alarm->set, false);
}

bool
leat_ring_open(struct leat_ring *ring, uint64_t size, struct leat_alarm *alarm, struct leat_mem *mem)
{
	memset(ring, 0, sizeof *ring);
	ring->slot = leat_map(mem, (size_t)size * sizeof *ring->slot);
	ring->size = size;
	ring->alarm = alarm;
	return ring->slot != NULL;
}

void
leat_ring_close(struct leat_ring *ring, struct leat_mem *mem)
{
	leat_unmap(mem, ring->slot, (size_t)ring->size * sizeof *ring->slot);
	memset(ring, 0, sizeof *ring);
}
