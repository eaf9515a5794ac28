/* disk_segment.c - the disk cache: segments, and which of them are dropped; see disk_table.h */
#include "store/disk_map.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint32_t long_unused = 3600; /* seconds */

void
leat_disk_segment_name(const struct leat_disk_table *table, uint32_t segment, char name[40])
{
	snprintf(name, 40, "%016llx-%08x.data", (unsigned long long)table->id, segment);
}

struct leat_disk_segment *
leat_disk_segment_of(const struct leat_disk_table *table, uint32_t segment)
{
	struct leat_disk_segment *found = &table->segment[segment % LEAT_DISK_SEGMENTS];

	return segment && leat_relaxed_load(&found->id) == segment ? found : NULL;
}

int
leat_disk_open_segment(const struct leat_disk_table *table, uint32_t segment, int flags, bool *others)
{
	char name[40];
	struct stat st;
	int fd;

	leat_disk_segment_name(table, segment, name);
	fd = openat(table->folder, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
	            table->options.shared ? 0640 : 0600);
	*others = false;
	if (fd < 0 || !table->options.shared)
		return fd;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		*others = st.st_uid != geteuid();
		return fd;
	}
	close(fd);
	return -1;
}

/* ---- who uses which ---- */

void
leat_disk_segments_enter(struct leat_disk_table *table)
{
	uint64_t bit = table->slot >= 0 ? 1ull << table->slot : 0;

	for (unsigned i = 0; i < LEAT_DISK_SEGMENTS; i++) {
		atomic_fetch_and(&table->segment[i].recent, ~bit);
		atomic_fetch_and(&table->segment[i].before, ~bit);
	}
}

void
leat_disk_begin_epoch(struct leat_disk_table *table)
{
	uint64_t bit = table->slot >= 0 ? 1ull << table->slot : 0;

	for (unsigned i = 0; i < LEAT_DISK_SEGMENTS; i++) {
		struct leat_disk_segment *segment = &table->segment[i];

		if (atomic_fetch_and(&segment->recent, ~bit) & bit)
			atomic_fetch_or(&segment->before, bit);
		else
			atomic_fetch_and(&segment->before, ~bit);
	}
	pthread_mutex_lock(&table->lock);
	table->epochs++;
	pthread_mutex_unlock(&table->lock);
}

static uint64_t
living_slots(const struct leat_disk_table *table)
{
	uint64_t living = 0;

	for (unsigned i = 0; i < LEAT_DISK_SLOTS; i++)
		living |= (uint64_t)leat_disk_is_alive(table, i) << i;
	return living;
}

/* ---- eviction ---- */

static void
drop(struct leat_disk_table *table, struct leat_disk_segment *segment)
{
	uint64_t bytes = leat_relaxed_load(&segment->bytes), used = leat_relaxed_load(&table->header->used);
	char name[40];

	leat_disk_segment_name(table, leat_relaxed_load(&segment->id), name);
	leat_relaxed_store(&segment->id, 0);
	(void)unlinkat(table->folder, name, 0);
	leat_relaxed_store(&table->header->used, used > bytes ? used - bytes : 0);
}

bool
leat_disk_evict(struct leat_disk_table *table, uint32_t seconds)
{
	struct leat_disk_segment *oldest = NULL;
	uint64_t living = living_slots(table);
	uint32_t now = leat_disk_now();

	for (unsigned i = 0; i < LEAT_DISK_SEGMENTS; i++) {
		struct leat_disk_segment *segment = &table->segment[i];
		uint32_t used_at = leat_relaxed_load(&segment->used_at);

		if (!leat_relaxed_load(&segment->id) || leat_relaxed_load(&segment->id) == table->appending)
			continue;
		if ((leat_relaxed_load(&segment->recent) | leat_relaxed_load(&segment->before)) & living)
			continue;
		if ((seconds && (used_at > now || now - used_at < seconds)) ||
		    (oldest && leat_relaxed_load(&oldest->used_at) <= used_at))
			continue;
		oldest = segment;
	}
	if (!oldest)
		return false;
	drop(table, oldest);
	atomic_fetch_add(&table->evictions, 1);
	return true;
}

void
leat_disk_clear(struct leat_disk_table *table)
{
	table->appending = 0;
	for (unsigned i = 0; i < LEAT_DISK_SEGMENTS; i++)
		if (leat_relaxed_load(&table->segment[i].id))
			drop(table, &table->segment[i]);
	if (leat_disk_repair(table)) {
		leat_disk_shrink(table);
		leat_disk_repair(table);
	}
}

/* ---- appending ---- */

/* 0: none is free, or the file cannot be created. */
static uint32_t
new_segment(struct leat_disk_table *table)
{
	uint32_t id = leat_relaxed_load(&table->header->last_segment);
	struct leat_disk_segment *segment = NULL;
	bool others;
	int fd;

	for (int i = 0; i < LEAT_DISK_SEGMENTS && !segment; i++) {
		id = id + 1 ? id + 1 : 1;
		if (!leat_relaxed_load(&table->segment[id % LEAT_DISK_SEGMENTS].id))
			segment = &table->segment[id % LEAT_DISK_SEGMENTS];
	}
	if (!segment)
		return 0;
	leat_relaxed_store(&table->header->last_segment, id);
	fd = leat_disk_open_segment(table, id, O_RDWR | O_CREAT | O_EXCL, &others);
	if (fd < 0)
		return 0;
	if (table->options.shared)
		(void)fchmod(fd, 0640);
	close(fd);
	leat_relaxed_store(&segment->bytes, 0);
	leat_relaxed_store(&segment->used_at, leat_disk_now());
	leat_relaxed_store(&segment->before, 0);
	leat_relaxed_store(&segment->recent, 1ull << table->slot);
	atomic_store(&segment->id, id);
	return id;
}

bool
leat_disk_reserve(struct leat_disk_table *table, uint64_t bytes, struct leat_disk_extent *extent)
{
	struct leat_disk_segment *segment = leat_disk_segment_of(table, table->appending);
	struct leat_disk_header *header = table->header;
	uint32_t unused_for = table->epochs ? 0 : long_unused;

	if (table->slot < 0 || bytes > table->segment_size)
		return false;
	while (leat_relaxed_load(&header->used) + bytes > table->options.size)
		if (!leat_disk_evict(table, unused_for))
			return false;
	if (!segment || leat_relaxed_load(&segment->bytes) + bytes > table->segment_size) {
		table->appending = new_segment(table);
		if (!table->appending && leat_disk_evict(table, unused_for))
			table->appending = new_segment(table);
		segment = leat_disk_segment_of(table, table->appending);
	}
	if (!segment)
		return false;
	extent->segment = table->appending;
	extent->position = leat_relaxed_load(&segment->bytes);
	leat_relaxed_store(&segment->bytes, extent->position + bytes);
	atomic_fetch_add(&header->used, bytes);
	return true;
}

/* ---- maintenance ---- */

static void
remove_others(struct leat_disk_table *table)
{
	int copy = openat(table->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	if (!list && copy >= 0)
		close(copy);
	while (list && (entry = readdir(list)) != NULL) {
		unsigned long long id;
		unsigned segment;
		char name[40], end;

		if (sscanf(entry->d_name, "%16llx-%8x.dat%c", &id, &segment, &end) != 3 || end != 'a')
			continue;
		leat_disk_segment_name(table, segment, name);
		if (strcmp(name, entry->d_name) != 0 || !leat_disk_segment_of(table, segment))
			(void)unlinkat(table->folder, entry->d_name, 0);
	}
	if (list)
		closedir(list);
}

uint64_t
leat_disk_segments_repair(struct leat_disk_table *table)
{
	uint64_t sum = 0;

	table->appending = 0;
	for (unsigned i = 0; i < LEAT_DISK_SEGMENTS; i++) {
		struct leat_disk_segment *segment = &table->segment[i];
		uint32_t id = leat_relaxed_load(&segment->id);
		char name[40];
		struct stat st;

		leat_disk_segment_name(table, id, name);
		if (!id || id % LEAT_DISK_SEGMENTS != i ||
		    fstatat(table->folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode)) {
			leat_relaxed_store(&segment->id, 0);
			continue;
		}
		leat_relaxed_store(&segment->bytes, (uint64_t)st.st_size);
		sum += (uint64_t)st.st_size;
	}
	remove_others(table);
	return sum;
}

bool
leat_disk_segment_info(struct leat_disk_table *table, unsigned i, struct leat_disk_segment_info *info)
{
	const struct leat_disk_segment *segment = &table->segment[i % LEAT_DISK_SEGMENTS];
	uint64_t users = leat_relaxed_load(&segment->recent) | leat_relaxed_load(&segment->before);
	char name[40];
	struct stat st;

	*info = (struct leat_disk_segment_info){.id = leat_relaxed_load(&segment->id),
	                                        .used_at = leat_relaxed_load(&segment->used_at),
	                                        .bytes = leat_relaxed_load(&segment->bytes),
	                                        .in_use = (users & living_slots(table)) != 0};
	leat_disk_segment_name(table, info->id, name);
	if (!info->id || fstatat(table->folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return false;
	info->owner = st.st_uid;
	return true;
}
