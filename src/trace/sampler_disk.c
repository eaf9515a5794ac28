/* sampler_disk.c - "disk MB/s": bytes that this process read from and wrote to storage devices
 *
 * What the page cache answers is not among them, and neither is the network. */
#include <fcntl.h>
#include <unistd.h>

#include "trace/proc.h"
#include "trace/sampler.h"

struct disk {
	int fd; /* of /proc/self/io */
	uint64_t bytes;
};

static bool
read_bytes(struct disk *disk, struct leat_sampling *s, uint64_t *bytes)
{
	size_t len = leat_sampling_read(s, disk->fd);
	uint64_t read, written;

	if (!leat_proc_find(s->text, len, "read_bytes", &read) ||
	    !leat_proc_find(s->text, len, "write_bytes", &written))
		return false;
	*bytes = read + written;
	return true;
}

static bool
disk_open(void *state, struct leat_sampling *s)
{
	struct disk *disk = state;

	disk->fd = leat_sampling_open(s, O_RDONLY, "/proc/self/io");
	return disk->fd >= 0 && read_bytes(disk, s, &disk->bytes);
}

static void
disk_take(void *state, struct leat_sampling *s)
{
	struct disk *disk = state;
	uint64_t bytes;

	if (!read_bytes(disk, s, &bytes))
		return;
	leat_sampling_put(s, "disk MB/s", leat_sampling_rate(s, disk->bytes, bytes) / 1e6);
	disk->bytes = bytes;
}

static void
disk_close(void *state)
{
	struct disk *disk = state;

	if (disk->fd >= 0)
		close(disk->fd);
}

const struct leat_sampler leat_sampler_disk = {sizeof(struct disk), disk_open, disk_take, disk_close};
