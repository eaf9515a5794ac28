/* disk_io.c - the disk cache: from segments into a caller's memory, and back; see disk_read.h */
#include "store/disk_read.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"

enum {
	BATCH = 8,                         /* extents read or written at a time */
	CHUNK = BATCH * LEAT_DISK_GRANULE, /* at most the smallest size of a segment */
};

static const uint64_t pause_ns = 10 * 1000000000ull, full_ns = 500 * 1000000ull;

/* ---- the caller's memory ---- */

/* The part of a read's memory that is [from, to) of the object. */
static int
slice(const struct leat_read *read, uint64_t from, uint64_t to, struct iovec iov[LEAT_READ_PARTS])
{
	uint64_t at = read->offset;
	int count = 0;

	for (int i = 0; i < read->iovs; i++) {
		uint64_t end = at + read->iov[i].iov_len, first = from > at ? from : at, last = to < end ? to : end;

		if (first < last)
			iov[count++] =
				(struct iovec){(char *)read->iov[i].iov_base + (first - at), (size_t)(last - first)};
		at = end;
	}
	return count;
}

static uint32_t
crc_of(const struct leat_read *read, const struct leat_disk_extent *extent)
{
	struct iovec iov[LEAT_READ_PARTS];
	int iovs = slice(read, extent->offset, extent->offset + extent->length, iov);
	uint32_t crc = leat_disk_crc_begin(extent);

	for (int i = 0; i < iovs; i++)
		crc = leat_crc32c(crc, iov[i].iov_base, iov[i].iov_len);
	return crc;
}

static bool
transfer(int fd, struct iovec *iov, int iovs, uint64_t position, bool writes)
{
	while (iovs) {
		ssize_t n = writes ? pwritev(fd, iov, iovs, (off_t)position) : preadv(fd, iov, iovs, (off_t)position);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		position += (uint64_t)n;
		while (iovs && (size_t)n >= iov->iov_len) {
			n -= (ssize_t)iov->iov_len;
			iov++;
			iovs--;
		}
		if (iovs) {
			iov->iov_base = (char *)iov->iov_base + n;
			iov->iov_len -= (size_t)n;
		}
	}
	return true;
}

/* ---- from the cache ---- */

static void
forget(struct leat_disk *disk, const struct leat_disk_extent *extent)
{
	if (!leat_disk_lock(&disk->table))
		return;
	leat_disk_forget(&disk->table, extent);
	leat_disk_unlock(&disk->table);
}

/* Opens the segment of an extent, if this user may see its bytes. */
static int
open_extent(struct leat_disk_read *read, const struct leat_disk_extent *extent)
{
	struct leat_disk *disk = read->disk;
	bool others;
	int fd = leat_disk_open_segment(&disk->table, extent->segment, O_RDONLY, &others);

	if (fd >= 0 && others && !leat_disk_is_proven(disk, read->proof)) {
		close(fd);
		return -1;
	}
	if (fd < 0)
		forget(disk, extent);
	return fd;
}

/* An extent of which only a part is wanted. Its checksum covers all of it. */
static bool
serve_part(struct leat_disk_read *read, const struct leat_disk_extent *extent, uint64_t from, uint64_t to,
           unsigned thread)
{
	unsigned char *scratch = read->disk->scratch + (size_t)thread * LEAT_DISK_GRANULE;
	struct iovec whole = {scratch, extent->length}, iov[LEAT_READ_PARTS];
	int fd = open_extent(read, extent), iovs = slice(read->read, from, to, iov);
	bool good;

	if (fd < 0)
		return false;
	good = transfer(fd, &whole, 1, extent->position, false) &&
	       leat_crc32c(leat_disk_crc_begin(extent), scratch, extent->length) == extent->crc;
	close(fd);
	if (!good) {
		forget(read->disk, extent);
		return false;
	}
	scratch += from - extent->offset;
	for (int i = 0; i < iovs; i++) {
		memcpy(iov[i].iov_base, scratch, iov[i].iov_len);
		scratch += iov[i].iov_len;
	}
	return true;
}

/* Extents that follow each other in the object and in the segment. Returns the end of what was read. */
static uint64_t
serve_whole(struct leat_disk_read *read, const struct leat_disk_extent *extent, int extents)
{
	uint64_t begin = extent->offset, end = extent[extents - 1].offset + extent[extents - 1].length;
	struct iovec iov[LEAT_READ_PARTS];
	int fd = open_extent(read, extent), iovs = slice(read->read, begin, end, iov);
	bool got;

	if (fd < 0)
		return begin;
	got = transfer(fd, iov, iovs, extent->position, false);
	close(fd);
	for (int i = 0; i < extents; i++) {
		if (crc_of(read->read, &extent[i]) != extent[i].crc) {
			forget(read->disk, &extent[i]);
			return extent[i].offset;
		}
	}
	return got ? end : begin;
}

/* The extents from `begin` on that can be read at once. */
static int
find_row(struct leat_disk_read *read, struct leat_disk_extent extent[BATCH])
{
	uint64_t at = read->begin;
	int count = 0;

	while (count < BATCH && at < read->end && leat_disk_find(&read->disk->table, &read->key, at, &extent[count])) {
		const struct leat_disk_extent *here = &extent[count], *last = here - 1;

		if (count && (here->offset != at || here->offset + here->length > read->end ||
		              here->segment != last->segment || here->position != last->position + last->length))
			break;
		at = here->offset + here->length;
		count++;
		if (here->offset != read->begin && count == 1)
			break;
	}
	return count;
}

static bool
serve_begin(struct leat_disk_read *read, unsigned thread)
{
	struct leat_disk_extent extent[BATCH];
	int extents = find_row(read, extent);
	uint64_t end;

	if (!extents)
		return false;
	end = extent[0].offset + extent[0].length;
	if (extent[0].offset == read->begin && end <= read->end) {
		uint64_t all = extent[extents - 1].offset + extent[extents - 1].length;

		end = serve_whole(read, extent, extents);
		read->begin = end;
		return end == all;
	}
	end = end < read->end ? end : read->end;
	if (!serve_part(read, &extent[0], read->begin, end, thread))
		return false;
	read->begin = end;
	return true;
}

static bool
serve_end(struct leat_disk_read *read, unsigned thread)
{
	struct leat_disk_extent extent;
	uint64_t begin;

	if (!leat_disk_find(&read->disk->table, &read->key, read->end - 1, &extent))
		return false;
	begin = extent.offset > read->begin ? extent.offset : read->begin;
	if (!serve_part(read, &extent, begin, read->end, thread))
		return false;
	read->end = begin;
	return true;
}

void
leat_disk_serve(struct leat_disk_read *read, unsigned thread)
{
	uint64_t missing = read->end - read->begin;

	while (read->begin < read->end && serve_begin(read, thread))
		continue;
	while (read->begin < read->end && serve_end(read, thread))
		continue;
	atomic_fetch_add_explicit(&read->disk->hit_bytes, missing - (read->end - read->begin), memory_order_relaxed);
}

/* ---- into the cache ---- */

bool
leat_disk_is_paused(struct leat_disk *disk)
{
	uint64_t now = leat_now();

	return disk->is_off || now < atomic_load_explicit(&disk->paused_until_ns, memory_order_relaxed) ||
	       now < atomic_load_explicit(&disk->full_until_ns, memory_order_relaxed);
}

void
leat_disk_pause(struct leat_disk *disk)
{
	atomic_store(&disk->paused_until_ns, leat_now() + pause_ns);
}

void
leat_disk_say(struct leat_disk *disk, const struct leat_read *read, int error)
{
	const struct leat_stores *stores = read->object.store->stores;
	char why[96] = "";

	if (atomic_exchange(&disk->said, true))
		return;
	leat_log(stores ? stores->log : NULL, LEAT_LOG_WARN,
	         "cannot write to the disk cache: %s; reading goes on without", strerror_r(error, why, sizeof(why)));
}

/* Cuts [from, to) into extents at multiples of a granule. */
static int
cut(struct leat_disk_read *read, uint64_t from, uint64_t to, const struct leat_disk_extent *place,
    struct leat_disk_extent extent[BATCH + 1])
{
	uint64_t at = from;
	int count = 0;

	while (at < to) {
		uint64_t next = (at / LEAT_DISK_GRANULE + 1) * LEAT_DISK_GRANULE;

		next = next < to ? next : to;
		extent[count] = (struct leat_disk_extent){.key = read->key,
		                                          .offset = at,
		                                          .length = (uint32_t)(next - at),
		                                          .segment = place->segment,
		                                          .position = place->position + (at - from)};
		extent[count].crc = crc_of(read->read, &extent[count]);
		count++;
		at = next;
	}
	return count;
}

static bool
reserve(struct leat_disk *disk, uint64_t bytes, struct leat_disk_extent *place)
{
	bool there = false;

	if (leat_disk_lock(&disk->table)) {
		there = leat_disk_reserve(&disk->table, bytes, place);
		leat_disk_unlock(&disk->table);
	}
	if (!there)
		atomic_store(&disk->full_until_ns, leat_now() + full_ns);
	return there;
}

static bool
keep_chunk(struct leat_disk_read *read, uint64_t from, uint64_t to)
{
	struct leat_disk *disk = read->disk;
	struct leat_disk_extent place = {.segment = 0}, extent[BATCH + 1];
	struct iovec iov[LEAT_READ_PARTS];
	int iovs = slice(read->read, from, to, iov), fd, extents;
	bool others, written;

	if (!reserve(disk, to - from, &place))
		return false;
	fd = leat_disk_open_segment(&disk->table, place.segment, O_WRONLY, &others);
	written = fd >= 0 && transfer(fd, iov, iovs, place.position, true);
	if (!written) {
		leat_disk_say(disk, read->read, errno);
		leat_disk_pause(disk);
	}
	if (fd >= 0)
		close(fd);
	extents = written ? cut(read, from, to, &place, extent) : 0;
	if (!extents || !leat_disk_lock(&disk->table))
		return false;
	for (int i = 0; i < extents; i++)
		leat_disk_record(&disk->table, &extent[i]);
	leat_disk_unlock(&disk->table);
	return true;
}

void
leat_disk_keep(struct leat_disk_read *read)
{
	uint64_t at = read->begin;

	while (at < read->end && !leat_disk_is_paused(read->disk)) {
		uint64_t next = (at / CHUNK + 1) * CHUNK;

		next = next < read->end ? next : read->end;
		if (!keep_chunk(read, at, next))
			return;
		at = next;
	}
}
