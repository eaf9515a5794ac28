/* cache_file.c - the file that a cache lies in, shared by all processes that make the same samples
 *
 * A new file is prepared under a name of its own and linked into place, so that nobody sees half a
 * header, and of two that make it at once one wins. Its first pages (header and table) are allocated
 * at once, because they are written through a mapping, which a full disk would answer with SIGBUS;
 * samples are written with pwrite, which a full disk answers with an error.
 *
 * Everyone who uses a file holds a shared lock on it. Whoever needs room in the folder deletes files
 * that nobody holds, oldest first. Locks go away with their process: nothing has to be cleaned up. */
#include "feed/cache_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"

#define SUFFIX ".leatcache"

static const char magic[8] = {'L', 'E', 'A', 'T', 'C', 'A', 'C', 'H'};

enum { VERSION = 1, PAGE = 4096, MAX_PATH = 4096 };

struct header {
	char magic[8];
	uint32_t version, reserved;
	uint64_t samples, capacity; /* capacity: of the room behind header and table */
	char key[LEAT_SHA256_HEX + 7];
	_Atomic uint64_t used;
};

_Static_assert(sizeof(struct header) <= PAGE, "the header is one page");

static void
make_path(char path[MAX_PATH], const struct leat_cache_options *o)
{
	snprintf(path, MAX_PATH, "%s/%s%s", o->dir, o->key, SUFFIX);
}

/* ---- room in the folder ---- */

struct candidate {
	char name[256];
	uint64_t bytes;
	int64_t used_ns;
};

static bool
is_cache_name(const char *name)
{
	size_t len = strlen(name), suffix = sizeof(SUFFIX) - 1;

	return len > suffix && len < 256 && strcmp(name + len - suffix, SUFFIX) == 0;
}

/* The oldest cache file that is not our own and was not looked at yet, and the bytes of all others. */
static bool
find_oldest(int dir, const char *own, int64_t after_ns, struct candidate *oldest, uint64_t *total)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;
	struct stat st;
	bool found = false;

	*total = 0;
	if (!list) {
		if (copy >= 0)
			close(copy);
		return false;
	}
	while ((entry = readdir(list)) != NULL) {
		int64_t used_ns;

		if (!is_cache_name(entry->d_name) || strcmp(entry->d_name, own) == 0 ||
		    fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
			continue;
		*total += (uint64_t)st.st_size;
		used_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
		if (used_ns <= after_ns || (found && used_ns >= oldest->used_ns))
			continue;
		snprintf(oldest->name, sizeof(oldest->name), "%.255s", entry->d_name);
		oldest->bytes = (uint64_t)st.st_size;
		oldest->used_ns = used_ns;
		found = true;
	}
	closedir(list);
	return found;
}

static void
remove_unused(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		unlinkat(dir, name, 0);
	close(fd);
}

/* Deletes what nobody uses until `wanted` bytes fit into the folder's size; returns what does fit. */
static uint64_t
make_room(int dir, const struct leat_cache_options *o, uint64_t wanted)
{
	struct candidate oldest;
	int64_t after_ns = INT64_MIN;
	uint64_t others;
	char own[256];

	snprintf(own, sizeof(own), "%s%s", o->key, SUFFIX);
	while (find_oldest(dir, own, after_ns, &oldest, &others) && others > o->size - wanted) {
		remove_unused(dir, oldest.name);
		after_ns = oldest.used_ns;
	}
	find_oldest(dir, own, INT64_MIN, &oldest, &others);
	return others < o->size ? o->size - others : 0;
}

/* ---- making and opening ---- */

static bool
prepare(int fd, const struct leat_cache_options *o, uint64_t bytes)
{
	uint64_t overhead = leat_cache_store_overhead(o->samples);
	struct header header = {.version = VERSION, .samples = o->samples, .capacity = bytes - overhead};

	memcpy(header.magic, magic, sizeof(magic));
	snprintf(header.key, sizeof(header.key), "%s", o->key);
	return posix_fallocate(fd, 0, (off_t)overhead) == 0 && ftruncate(fd, (off_t)bytes) == 0 &&
	       pwrite(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header);
}

/* Makes the file if there is room; whoever is first wins. */
static void
make_file(const struct leat_cache_options *o, uint64_t wanted, const char *path)
{
	int dir = open(o->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;
	uint64_t bytes;
	char temp[MAX_PATH];

	if (dir < 0)
		return;
	bytes = make_room(dir, o, wanted);
	bytes = (bytes < wanted ? bytes : wanted) & ~(uint64_t)(PAGE - 1);
	if (bytes >= leat_cache_least(o->samples)) {
		snprintf(temp, sizeof(temp), "%s/.%.16s-%ld-%llu", o->dir, o->key, (long)getpid(),
		         (unsigned long long)leat_now());
		fd = open(temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0) {
			if (prepare(fd, o, bytes) && link(temp, path) != 0 && errno != EEXIST)
				errno = 0; /* without a file nothing is kept: the caller says so */
			unlink(temp);
			close(fd);
		}
	}
	close(dir);
}

static bool
fits(const struct header *header, const struct leat_cache_options *o, uint64_t file_bytes)
{
	uint64_t overhead = leat_cache_store_overhead(o->samples);

	return memcmp(header->magic, magic, sizeof(magic)) == 0 && header->version == VERSION &&
	       header->samples == o->samples && file_bytes >= overhead && header->capacity <= file_bytes - overhead &&
	       strncmp(header->key, o->key, sizeof(header->key)) == 0;
}

/* Locked as used, and still the file that the name means. */
static int
open_locked(const char *path)
{
	struct stat opened, named;
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return -1;
	if (flock(fd, LOCK_SH | LOCK_NB) == 0 && fstat(fd, &opened) == 0 && stat(path, &named) == 0 &&
	    opened.st_ino == named.st_ino && opened.st_dev == named.st_dev)
		return fd;
	close(fd);
	return -1;
}

static bool
map_file(struct leat_cache_store *store, int fd, const struct leat_cache_options *o)
{
	uint64_t overhead = leat_cache_store_overhead(o->samples);
	struct header *header;
	struct stat st;
	void *mapped;

	if (fstat(fd, &st) != 0 || (uint64_t)st.st_size < overhead)
		return false;
	mapped = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED)
		return false;
	header = mapped;
	/* Header and table are written through the mapping, samples never. */
	if (!fits(header, o, (uint64_t)st.st_size) || mprotect(mapped, (size_t)overhead, PROT_READ | PROT_WRITE) != 0) {
		munmap(mapped, (size_t)st.st_size);
		return false;
	}
	store->mapped = mapped;
	store->mapped_bytes = (uint64_t)st.st_size;
	store->room_at = overhead;
	store->room = store->mapped + overhead;
	store->capacity = header->capacity;
	store->table = (_Atomic uint64_t *)(void *)(store->mapped + PAGE);
	store->used = &header->used;
	store->fd = fd;
	return true;
}

/* A file that does not fit is damaged or of another version: it is replaced, once. */
static bool
open_file(struct leat_cache_store *store, const struct leat_cache_options *o, uint64_t wanted)
{
	char path[MAX_PATH];

	make_path(path, o);
	for (int attempt = 0; attempt < 3; attempt++) {
		int fd = open_locked(path);

		if (fd < 0) {
			make_file(o, wanted, path);
			fd = open_locked(path);
		}
		if (fd < 0)
			continue;
		if (map_file(store, fd, o)) {
			futimens(fd, NULL); /* used now: the last to be deleted for room */
			return true;
		}
		unlink(path);
		close(fd);
	}
	return false;
}

enum leat_status
leat_cache_store_file(struct leat_cache_store *store, const struct leat_cache_options *o, uint64_t wanted,
                      struct leat_mem *mem, const struct leat_log *log, struct leat_err *err)
{
	*store = (struct leat_cache_store){.fd = -1, .samples = o->samples};
	if (strlen(o->dir) + strlen(o->key) + sizeof(SUFFIX) + 64 > MAX_PATH)
		return leat_fail(err, LEAT_INVALID, "the cache's folder has too long a name");
	if (o->size < leat_cache_least(o->samples))
		return leat_fail(err, LEAT_INVALID,
		                 "a cache of %llu bytes is too small: for %llu samples it needs %llu at least",
		                 (unsigned long long)o->size, (unsigned long long)o->samples,
		                 (unsigned long long)leat_cache_least(o->samples));
	if (mkdir(o->dir, 0777) != 0 && errno != EEXIST)
		return leat_fail_errno(err, errno, "the cache's folder '%s' cannot be made", o->dir);
	if (open_file(store, o, wanted))
		store->mem = mem;
	else
		leat_log(log, LEAT_LOG_WARN,
		         "nothing is cached: '%s' cannot be written, or is full of caches that others use, or its disk "
		         "is full",
		         o->dir);
	return LEAT_OK;
}

void
leat_cache_store_close_file(struct leat_cache_store *store)
{
	munmap(store->mapped, (size_t)store->mapped_bytes);
	close(store->fd); /* and with it the lock */
}
