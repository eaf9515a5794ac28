/* cache_file.c - the file that a cache lies in, shared by all processes that make the same samples
 *
 * A new file is prepared under a name of its own and linked into place, so that nobody sees half a
 * header. Its first pages (header and table) are allocated at once, because they are written through
 * a mapping, which a full disk would answer with SIGBUS; samples are written with pwrite, which a full
 * disk answers with an error.
 *
 * Everyone who uses a file holds a shared lock on it. Who makes a file, and who deletes files that
 * nobody holds to make room for it, oldest first, does so under the folder's lock, so that two of them
 * together do not take more than the folder may hold. Locks go away with their process: what one that
 * died while it held the folder's lock has left behind, the next one removes. */
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
#define NEW ".leatcache-new" /* while it is prepared */

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

static bool
ends_in(const char *name, const char *suffix)
{
	size_t len = strlen(name), tail = strlen(suffix);

	return len > tail && strcmp(name + len - tail, suffix) == 0;
}

/* ---- room in the folder ---- */

/* A file of another cache. By time of use, then by name: times are often equal. */
struct candidate {
	char name[256];
	int64_t used_ns;
};

static bool
is_older(const struct candidate *a, const struct candidate *b)
{
	return a->used_ns != b->used_ns ? a->used_ns < b->used_ns : strcmp(a->name, b->name) < 0;
}

/* Looks at every file of the folder that is not our own: counts their bytes, and finds the oldest that comes after
 * `after` (NULL: of all). Removes those that were never finished. */
static bool
look_around(int dir, const char *own, const struct candidate *after, struct candidate *oldest, uint64_t *total)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;
	bool found = false;

	*total = 0;
	if (!list) {
		if (copy >= 0)
			close(copy);
		return false;
	}
	while ((entry = readdir(list)) != NULL) {
		struct candidate c;
		struct stat st;

		if (ends_in(entry->d_name, NEW))
			unlinkat(dir, entry->d_name, 0);
		if (!ends_in(entry->d_name, SUFFIX) || strcmp(entry->d_name, own) == 0 ||
		    fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
			continue;
		*total += (uint64_t)st.st_size;
		snprintf(c.name, sizeof(c.name), "%s", entry->d_name);
		c.used_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
		if ((after && !is_older(after, &c)) || (found && !is_older(&c, oldest)))
			continue;
		*oldest = c;
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
	struct candidate oldest, last, *after = NULL;
	uint64_t others;
	char own[256];

	snprintf(own, sizeof(own), "%s%s", o->key, SUFFIX);
	while (look_around(dir, own, after, &oldest, &others) && others > o->size - wanted) {
		remove_unused(dir, oldest.name);
		last = oldest;
		after = &last;
	}
	look_around(dir, own, NULL, &oldest, &others);
	return others < o->size ? o->size - others : 0;
}

/* ---- opening ---- */

static bool
fits(const struct header *header, const struct leat_cache_options *o, uint64_t file_bytes)
{
	uint64_t overhead = leat_cache_store_overhead(o->samples);

	return memcmp(header->magic, magic, sizeof(magic)) == 0 && header->version == VERSION &&
	       header->samples == o->samples && file_bytes >= overhead && header->capacity <= file_bytes - overhead &&
	       header->used % LEAT_CACHE_ALIGN == 0 && strncmp(header->key, o->key, sizeof(header->key)) == 0;
}

/* Is this, as far as its header tells, a file for us, and not larger than it may be? */
static bool
is_good(int fd, const struct leat_cache_options *o)
{
	struct header header;
	struct stat st;

	return fstat(fd, &st) == 0 && (uint64_t)st.st_size <= o->size &&
	       pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
	       fits(&header, o, (uint64_t)st.st_size);
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

/* Takes fd, also when it fails. */
static bool
map_file(struct leat_cache_store *store, int fd, const struct leat_cache_options *o)
{
	uint64_t overhead = leat_cache_store_overhead(o->samples);
	struct header *header;
	struct stat st;
	void *mapped = MAP_FAILED;

	if (fstat(fd, &st) == 0)
		mapped = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED) {
		close(fd);
		return false;
	}
	header = mapped;
	/* Header and table are written through the mapping, samples never. */
	if (!fits(header, o, (uint64_t)st.st_size) || mprotect(mapped, (size_t)overhead, PROT_READ | PROT_WRITE) != 0) {
		munmap(mapped, (size_t)st.st_size);
		close(fd);
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
	futimens(fd, NULL); /* used now: the last to be deleted for room */
	return true;
}

/* ---- making ---- */

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

/* A file of so many bytes under its name, if it can be made. */
static void
link_new(const struct leat_cache_options *o, const char *path, uint64_t bytes)
{
	char temp[MAX_PATH];
	int fd;

	snprintf(temp, sizeof(temp), "%s/.%.16s-%ld-%llu%s", o->dir, o->key, (long)getpid(),
	         (unsigned long long)leat_now(), NEW);
	fd = open(temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0)
		return;
	if (prepare(fd, o, bytes))
		(void)link(temp, path); /* without a file nothing is kept: the caller says so */
	unlink(temp);
	close(fd);
}

/* Under the folder's lock: puts a new file in the place of one that does not fit, if there is room. */
static void
make_file(int dir, const struct leat_cache_options *o, uint64_t wanted, const char *path)
{
	int fd = open_locked(path);
	uint64_t bytes;

	if (fd >= 0) {
		bool good = is_good(fd, o);

		close(fd);
		if (good) /* someone was faster */
			return;
		unlink(path); /* whoever uses it keeps it until it is closed */
	}
	bytes = make_room(dir, o, wanted);
	bytes = (bytes < wanted ? bytes : wanted) & ~(uint64_t)(PAGE - 1);
	if (bytes >= leat_cache_least(o->samples))
		link_new(o, path, bytes);
}

static void
make_file_alone(const struct leat_cache_options *o, uint64_t wanted, const char *path)
{
	int dir = open(o->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir < 0)
		return;
	while (flock(dir, LOCK_EX) != 0 && errno == EINTR)
		; /* where there are no locks it is done without */
	make_file(dir, o, wanted, path);
	close(dir); /* and with it the lock */
}

static bool
open_file(struct leat_cache_store *store, const struct leat_cache_options *o, uint64_t wanted)
{
	char path[MAX_PATH];

	snprintf(path, sizeof(path), "%s/%s%s", o->dir, o->key, SUFFIX);
	for (int attempt = 0; attempt < 2; attempt++) {
		int fd = open_locked(path);

		if (fd >= 0 && is_good(fd, o))
			return map_file(store, fd, o);
		if (fd >= 0)
			close(fd);
		if (attempt == 0)
			make_file_alone(o, wanted, path);
	}
	return false;
}

enum leat_status
leat_cache_store_file(struct leat_cache_store *store, const struct leat_cache_options *o, uint64_t wanted,
                      struct leat_mem *mem, const struct leat_log *log, struct leat_err *err)
{
	*store = (struct leat_cache_store){.fd = -1, .samples = o->samples};
	if (strlen(o->dir) + strlen(o->key) + sizeof(NEW) + 64 > MAX_PATH)
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
