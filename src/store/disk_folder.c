/* disk_folder.c - the disk cache: a folder, its lock, and its table as a file; see disk_map.h
 *
 * The file `lock` is never replaced. Its first byte is the lock of the table; each of the next
 * LEAT_DISK_SLOTS is held by a process that uses the folder. Locks belong to the open file, so they end
 * with its process however that dies, and two feeds in a process count as two. */
#include "store/disk_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

uint32_t
leat_disk_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return (uint32_t)now.tv_sec;
}

/* ---- the lock ---- */

static bool
lock_byte(int fd, short type, off_t byte)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
	int result;

	while ((result = fcntl(fd, F_OFD_SETLK, &lock)) != 0 && errno == EINTR)
		continue;
	return result == 0;
}

bool
leat_disk_is_alive(const struct leat_disk_table *table, unsigned slot)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1 + (off_t)slot, .l_len = 1};

	return (int)slot == table->slot || fcntl(table->lock_file, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

bool
leat_disk_lock(struct leat_disk_table *table)
{
	const uint64_t patience = 1000000000;
	uint64_t began = 0;
	long pause = 10000;

	pthread_mutex_lock(&table->lock);
	while (!lock_byte(table->lock_file, F_WRLCK, 0)) {
		uint64_t now = leat_now();

		began = began ? began : now;
		if ((errno != EAGAIN && errno != EACCES) || now - began > patience) {
			pthread_mutex_unlock(&table->lock);
			return false;
		}
		nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
		pause = pause < 1000000 ? pause * 2 : pause;
	}
	return true;
}

void
leat_disk_unlock(struct leat_disk_table *table)
{
	(void)lock_byte(table->lock_file, F_UNLCK, 0);
	pthread_mutex_unlock(&table->lock);
}

/* Locked. */
static void
take_slot(struct leat_disk_table *table)
{
	table->slot = -1;
	for (int i = 0; i < LEAT_DISK_SLOTS && table->slot < 0; i++)
		if (lock_byte(table->lock_file, F_WRLCK, 1 + i))
			table->slot = i;
}

/* Locked: new ones need the lock to get a slot. */
static bool
is_alone(const struct leat_disk_table *table)
{
	for (unsigned i = 0; i < LEAT_DISK_SLOTS; i++)
		if ((int)i != table->slot && leat_disk_is_alive(table, i))
			return false;
	return true;
}

/* ---- the folder ---- */

static enum leat_status
make_folders(const char *folder, mode_t mode, struct leat_err *err)
{
	char path[4096];
	size_t len = strlen(folder);

	if (len >= sizeof(path))
		return leat_fail(err, LEAT_INVALID, "the name of the disk cache's folder is too long");
	memcpy(path, folder, len + 1);
	for (size_t i = 1; i <= len; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		path[i] = '\0';
		if (mkdir(path, i == len ? mode & 0777 : 0777) == 0 && i == len)
			(void)chmod(path, mode);
		path[i] = folder[i];
	}
	return LEAT_OK;
}

static enum leat_status
check_folder(const struct leat_disk_table *table, const char *folder, struct leat_err *err)
{
	struct stat st;

	if (fstat(table->folder, &st) != 0)
		return leat_fail_errno(err, errno, "cannot use '%s' for the disk cache", folder);
	if (st.st_mode & S_IWOTH)
		return leat_fail(err, LEAT_INVALID,
		                 "cannot use '%s' for the disk cache: everyone can write to it; run chmod o-w", folder);
	if (table->options.shared)
		return LEAT_OK;
	if (st.st_uid != geteuid())
		return leat_fail(err, LEAT_INVALID,
		                 "cannot use '%s' for the disk cache: it belongs to another user; choose a folder of "
		                 "your own, or set disk_cache_trust=shared if you trust all who can write to it",
		                 folder);
	if (st.st_mode & S_IWGRP)
		return leat_fail(err, LEAT_INVALID,
		                 "cannot use '%s' for the disk cache: its group can write to it; run chmod g-w, or set "
		                 "disk_cache_trust=shared if you trust the group",
		                 folder);
	return LEAT_OK;
}

/* Opens a file of the folder, which must be a regular file and in one's own folder one's own. */
static int
open_file(const struct leat_disk_table *table, const char *name)
{
	mode_t mode = table->options.shared ? 0660 : 0600;
	int create = table->options.existing ? 0 : O_CREAT;
	int fd = openat(table->folder, name, O_RDWR | create | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (table->options.shared || st.st_uid == geteuid())) {
		if (st.st_uid == geteuid() && (st.st_mode & 0777) != mode)
			(void)fchmod(fd, mode); /* whatever the umask is */
		return fd;
	}
	close(fd);
	errno = EPERM;
	return -1;
}

static enum leat_status
open_folder(struct leat_disk_table *table, const struct leat_disk_options *options, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	if (!options->existing)
		status = make_folders(options->folder, options->shared ? 02770 : 0700, err);
	if (status != LEAT_OK)
		return status;
	table->folder = open(options->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (table->folder < 0)
		return leat_fail_errno(err, errno, "cannot use '%s' for the disk cache", options->folder);
	status = check_folder(table, options->folder, err);
	if (status != LEAT_OK)
		return status;
	table->lock_file = open_file(table, "lock");
	table->file = table->lock_file < 0 ? -1 : open_file(table, "table");
	if (table->file < 0 && options->existing && errno == ENOENT)
		return leat_fail(err, LEAT_DATA, "there is no disk cache in '%s'", options->folder);
	return table->file >= 0 ? LEAT_OK
	                        : leat_fail_errno(err, errno, "cannot use '%s' for the disk cache", options->folder);
}

/* ---- the table ---- */

static uint32_t
choose_heads(uint64_t size)
{
	uint32_t heads = LEAT_DISK_MIN_HEADS;

	while (heads < LEAT_DISK_MAX_HEADS && heads < size / LEAT_DISK_GRANULE)
		heads *= 2;
	return heads;
}

/* Locked. Allocates blocks, so that writing to the mapping cannot fail. */
static bool
extend(const struct leat_disk_table *table, size_t size)
{
	int error;

	while ((error = posix_fallocate(table->file, 0, (off_t)size)) == EINTR)
		continue;
	errno = error;
	return error == 0;
}

static bool
create(const struct leat_disk_table *table, uint64_t size)
{
	struct leat_disk_header header = {.magic = LEAT_DISK_MAGIC,
	                                  .heads = choose_heads(size),
	                                  .segments = LEAT_DISK_SEGMENTS,
	                                  .claims = LEAT_DISK_CLAIMS,
	                                  .granule = LEAT_DISK_GRANULE,
	                                  .open = 1};

	return ftruncate(table->file, 0) == 0 && extend(table, leat_disk_entries_at(header.heads)) &&
	       getrandom(&header.id, sizeof(header.id), 0) == sizeof(header.id) &&
	       pwrite(table->file, &header, sizeof(header), 0) == sizeof(header);
}

static bool
is_valid(const struct leat_disk_table *table)
{
	struct leat_disk_header header;
	struct stat st;

	if (fstat(table->file, &st) != 0 || st.st_size < LEAT_DISK_HEADER ||
	    pread(table->file, &header, sizeof(header), 0) != sizeof(header))
		return false;
	if (header.magic != LEAT_DISK_MAGIC || header.segments != LEAT_DISK_SEGMENTS ||
	    header.claims != LEAT_DISK_CLAIMS || header.granule != LEAT_DISK_GRANULE)
		return false;
	if (header.heads < LEAT_DISK_MIN_HEADS || header.heads > LEAT_DISK_MAX_HEADS ||
	    (header.heads & (header.heads - 1)) != 0)
		return false;
	return header.capacity <= UINT32_MAX / 2 && header.entries <= header.capacity &&
	       leat_disk_entries_at(header.heads) + header.capacity * sizeof(struct leat_disk_entry) <=
	               (uint64_t)st.st_size;
}

/* Maps more than the file has, so that it can grow. */
static bool
map(struct leat_disk_table *table)
{
	struct leat_disk_header header;
	uint64_t most = table->options.size / 2048 + (1 << 16);
	char *at;

	if (pread(table->file, &header, sizeof(header), 0) != sizeof(header))
		return false;
	most = most > header.capacity * 4 ? most : header.capacity * 4;
	table->max_entries = most < (1u << 26) ? most : 1u << 26;
	if (table->max_entries < header.capacity)
		table->max_entries = header.capacity;
	table->mapped = leat_disk_entries_at(header.heads) + table->max_entries * sizeof(struct leat_disk_entry);
	at = mmap(NULL, table->mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, table->file, 0);
	if (at == MAP_FAILED)
		return false;
	table->header = (struct leat_disk_header *)at;
	table->heads = header.heads;
	table->id = header.id;
	at += LEAT_DISK_HEADER;
	table->segment = (struct leat_disk_segment *)at;
	at += LEAT_DISK_SEGMENTS * sizeof(struct leat_disk_segment);
	table->claim = (struct leat_disk_claim *)at;
	at += LEAT_DISK_CLAIMS * sizeof(struct leat_disk_claim);
	table->head = (_Atomic uint32_t *)at;
	at += header.heads * sizeof(uint32_t);
	table->entry = (struct leat_disk_entry *)at;
	return true;
}

void
leat_disk_shrink(struct leat_disk_table *table)
{
	leat_relaxed_store(&table->header->entries, 0);
	leat_relaxed_store(&table->header->capacity, 0);
	(void)ftruncate(table->file, (off_t)leat_disk_entries_at(table->heads));
}

bool
leat_disk_grow(struct leat_disk_table *table)
{
	uint64_t capacity = leat_relaxed_load(&table->header->capacity), more = LEAT_DISK_GROWTH + capacity / 8;
	size_t bytes;

	more = (more + LEAT_DISK_GROWTH - 1) / LEAT_DISK_GROWTH * LEAT_DISK_GROWTH;
	if (capacity + more > table->max_entries)
		return false;
	bytes = leat_disk_entries_at(table->heads) + (capacity + more) * sizeof(struct leat_disk_entry);
	if (!extend(table, bytes))
		return false;
	atomic_fetch_add(&table->header->used, more * sizeof(struct leat_disk_entry));
	atomic_store(&table->header->capacity, capacity + more);
	return true;
}

/* Locked. */
static enum leat_status
enter(struct leat_disk_table *table, const char *folder, struct leat_err *err)
{
	bool valid;

	take_slot(table);
	table->alone = is_alone(table);
	valid = is_valid(table);
	if (!valid && table->options.existing)
		return leat_fail(err, LEAT_DATA, "the disk cache in '%s' is damaged; the next feed makes a new one",
		                 folder);
	if (!valid && !table->alone)
		return leat_fail(err, LEAT_IO, "the disk cache in '%s' is damaged; close the feeds that use it",
		                 folder);
	if (!valid && !create(table, table->options.size))
		return leat_fail_errno_as(err, errno == ENOSPC || errno == EDQUOT ? LEAT_LIMIT : LEAT_IO, errno,
		                          "cannot create a disk cache in '%s'", folder);
	if (!map(table))
		return leat_fail_errno(err, errno, "cannot map the disk cache in '%s'", folder);
	if (table->alone && (!valid || leat_relaxed_load(&table->header->open)))
		leat_disk_repair(table);
	leat_relaxed_store(&table->header->open, 1);
	leat_disk_segments_enter(table);
	leat_disk_claims_enter(table);
	return LEAT_OK;
}

enum leat_status
leat_disk_table_open(struct leat_disk_table *table, const struct leat_disk_options *options, struct leat_err *err)
{
	enum leat_status status;
	uint64_t segment = options->size / 128;

	*table = (struct leat_disk_table){.options = *options, .folder = -1, .file = -1, .lock_file = -1, .slot = -1};
	pthread_mutex_init(&table->lock, NULL);
	segment = segment > 256 << 10 ? segment : 256 << 10;
	table->segment_size = segment < 1 << 30 || options->size >> 37 ? segment : 1 << 30;
	if (options->size < LEAT_DISK_MIN_SIZE)
		return leat_fail(err, LEAT_INVALID, "disk_cache_size is too small: at least 1MiB is needed");
	status = open_folder(table, options, err);
	if (status != LEAT_OK)
		return status;
	if (!leat_disk_lock(table))
		return leat_fail(err, LEAT_IO, "cannot lock the disk cache in '%s'", options->folder);
	status = enter(table, options->folder, err);
	leat_disk_unlock(table);
	return status;
}

void
leat_disk_table_close(struct leat_disk_table *table)
{
	if (table->header && leat_disk_lock(table)) {
		leat_disk_claims_enter(table);
		if (is_alone(table))
			leat_relaxed_store(&table->header->open, 0);
		leat_disk_unlock(table);
	}
	if (table->header)
		munmap(table->header, table->mapped);
	if (table->file >= 0)
		close(table->file);
	if (table->lock_file >= 0)
		close(table->lock_file);
	if (table->folder >= 0)
		close(table->folder);
	pthread_mutex_destroy(&table->lock);
}
