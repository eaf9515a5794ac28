/* cache_folder.c - share a folder's space among cache files; see cache_file.h
 *
 * A file in use keeps its size, because its users have it mapped. An unused file can be trimmed to
 * its contents; the next user grows it again. */
#include "feed/cache_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Another cache's file. Ordered by time of last use, then by name, since times are often equal. */
struct candidate {
	char name[LEAT_CACHE_NAME];
	struct timespec used;
};

static bool
ends_in(const char *name, const char *suffix)
{
	size_t len = strlen(name), tail = strlen(suffix);

	return len > tail && strcmp(name + len - tail, suffix) == 0;
}

static bool
is_older(const struct candidate *a, const struct candidate *b)
{
	if (a->used.tv_sec != b->used.tv_sec)
		return a->used.tv_sec < b->used.tv_sec;
	if (a->used.tv_nsec != b->used.tv_nsec)
		return a->used.tv_nsec < b->used.tv_nsec;
	return strcmp(a->name, b->name) < 0;
}

/* Adds up the sizes of all other cache files and finds the oldest after `after` (NULL: of all). Removes unfinished
 * files. */
static bool
scan_folder(int dir, const struct leat_cache_options *o, const struct candidate *after, struct candidate *oldest,
            uint64_t *total)
{
	int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;
	char own[LEAT_CACHE_NAME];
	bool found = false;

	leat_cache_name(o, own);
	*total = 0;
	if (!list) {
		if (copy >= 0)
			close(copy);
		return false;
	}
	while ((entry = readdir(list)) != NULL) {
		struct candidate c;
		struct stat st;

		if (fstatat(dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !leat_cache_trusts(o, &st))
			continue;
		if (ends_in(entry->d_name, LEAT_CACHE_NEW))
			unlinkat(dir, entry->d_name, 0);
		if (!ends_in(entry->d_name, LEAT_CACHE_SUFFIX) || strcmp(entry->d_name, own) == 0)
			continue;
		*total += (uint64_t)st.st_size;
		snprintf(c.name, sizeof(c.name), "%s", entry->d_name);
		c.used = st.st_mtim;
		if ((after && !is_older(after, &c)) || (found && !is_older(&c, oldest)))
			continue;
		*oldest = c;
		found = true;
	}
	closedir(list);
	return found;
}

/* Cuts off unused space. Preserves the time of last use. */
static void
trim(int dir, const char *name, int fd)
{
	struct leat_cache_header header;
	struct timespec times[2];
	uint64_t overhead, used;
	struct stat st;

	(void)dir, (void)name;
	if (fstat(fd, &st) != 0 || pread(fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header) ||
	    memcmp(header.magic, LEAT_CACHE_MAGIC, sizeof(header.magic)) != 0 || header.version != LEAT_CACHE_VERSION ||
	    header.samples > (uint64_t)st.st_size)
		return;
	overhead = leat_cache_store_overhead(header.samples);
	used = (header.used + LEAT_CACHE_PAGE - 1) & ~(uint64_t)(LEAT_CACHE_PAGE - 1);
	if (used >= header.capacity || used < header.used || overhead + used >= (uint64_t)st.st_size)
		return;
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	/* Shrinks the header first: it must never exceed the file. */
	if (pwrite(fd, &used, sizeof(used), offsetof(struct leat_cache_header, capacity)) == (ssize_t)sizeof(used) &&
	    ftruncate(fd, (off_t)(overhead + used)) == 0)
		(void)futimens(fd, times);
}

static void
unlink_it(int dir, const char *name, int fd)
{
	(void)fd;
	unlinkat(dir, name, 0);
}

/* Calls `act` on a file that nobody uses. */
static void
if_unused(int dir, const char *name, const struct leat_cache_options *o, void (*act)(int dir, const char *name, int fd))
{
	int fd = openat(dir, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && leat_cache_trusts(o, &st) && flock(fd, LOCK_EX | LOCK_NB) == 0)
		act(dir, name, fd);
	close(fd);
}

/* Calls `act` on other files, oldest first, until `bytes` are free. Returns the free bytes. */
static uint64_t
free_space(int dir, const struct leat_cache_options *o, uint64_t bytes, void (*act)(int dir, const char *name, int fd))
{
	struct candidate oldest, last, *after = NULL;
	uint64_t others;

	while (scan_folder(dir, o, after, &oldest, &others) && (others > o->size || o->size - others < bytes)) {
		if_unused(dir, oldest.name, o, act);
		last = oldest;
		after = &last;
	}
	scan_folder(dir, o, NULL, &oldest, &others);
	return others < o->size ? o->size - others : 0;
}

uint64_t
leat_cache_make_room(int dir, const struct leat_cache_options *o, const struct leat_cache_wish *wish)
{
	uint64_t room = free_space(dir, o, wish->wanted, trim);

	return room < wish->enough ? free_space(dir, o, wish->enough, unlink_it) : room;
}
