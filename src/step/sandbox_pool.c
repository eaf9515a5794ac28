/* sandbox_pool.c - use sandboxes again: making and removing six folders takes longer than a short command
 *
 * A sandbox comes back after an action that succeeded, and is emptied, except for the links to the code if they are
 * untouched. One that looks in any way unusual is removed instead. Nothing is removed at the end: the store removes the
 * folder of the run. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "step/sandbox.h"

const char *const leat_sandbox_folders[LEAT_SANDBOX_FOLDERS] = {"work", "in", "out", "tmp", "imports"};

struct leat_sandbox_pool {
	struct leat_mem *mem;
	pthread_mutex_t lock;
	struct pooled {
		char path[PATH_MAX], snapshot[PATH_MAX]; /* "": no code is linked */
		uint64_t links;                          /* print_of its working folder when the command began */
		bool free;
	} * pooled;
	size_t count, cap;
};

enum leat_status
leat_sandbox_pool_open(struct leat_sandbox_pool **pool, struct leat_mem *mem, unsigned sandboxes, struct leat_err *err)
{
	struct leat_sandbox_pool *p = leat_alloc(mem, sizeof(*p));

	*pool = NULL;
	if (p != NULL)
		p->pooled = leat_alloc_array(mem, sandboxes, sizeof(*p->pooled));
	if (p == NULL || p->pooled == NULL) {
		leat_free(mem, p);
		return leat_fail_mem(err, mem, sandboxes * sizeof(struct pooled), "sandboxes");
	}
	p->mem = mem;
	p->cap = sandboxes;
	pthread_mutex_init(&p->lock, NULL);
	*pool = p;
	return LEAT_OK;
}

void
leat_sandbox_pool_close(struct leat_sandbox_pool *pool)
{
	if (pool == NULL)
		return;
	pthread_mutex_destroy(&pool->lock);
	leat_free(pool->mem, pool->pooled);
	leat_free(pool->mem, pool);
}

/* Changes if entries are added, removed or replaced. 0: it cannot be read. */
static uint64_t
print_of(int folder_fd)
{
	DIR *folder = fdopendir(dup(folder_fd));
	struct dirent *entry;
	struct stat st;
	uint64_t print;

	if (folder == NULL || fstat(folder_fd, &st) != 0) {
		if (folder != NULL)
			closedir(folder);
		return 0;
	}
	print = leat_mix64((uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec);
	rewinddir(folder);
	while ((entry = readdir(folder)) != NULL)
		if (*entry->d_name != '.' || (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0))
			print += leat_mix64(leat_hash64(entry->d_name) + entry->d_ino * 16 + entry->d_type);
	closedir(folder);
	return print == 0 ? 1 : print;
}

static int
open_folder(int parent, const char *name)
{
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

bool
leat_sandbox_pool_take(struct leat_sandbox_pool *pool, const char *snapshot, char path[PATH_MAX], bool *linked)
{
	struct pooled *best = NULL;

	*linked = false;
	pthread_mutex_lock(&pool->lock);
	for (size_t i = 0; i < pool->count && !*linked; i++)
		/* Links to other code would be in the way. */
		if (pool->pooled[i].free &&
		    (pool->pooled[i].links == 0 || strcmp(pool->pooled[i].snapshot, snapshot) == 0)) {
			best = &pool->pooled[i];
			*linked = best->links != 0;
		}
	if (best != NULL)
		best->free = false;
	pthread_mutex_unlock(&pool->lock);
	if (best != NULL)
		strcpy(path, best->path);
	return best != NULL;
}

static struct pooled *
find(struct leat_sandbox_pool *pool, const char *path)
{
	for (size_t i = 0; i < pool->count; i++)
		if (strcmp(pool->pooled[i].path, path) == 0)
			return &pool->pooled[i];
	return NULL;
}

/* The entry of a sandbox that is in use, which no other thread changes; NULL: there are enough. */
static struct pooled *
find_or_add(struct leat_sandbox_pool *pool, const char *path)
{
	struct pooled *p;

	pthread_mutex_lock(&pool->lock);
	p = find(pool, path);
	if (p == NULL)
		p = find(pool, "");
	if (p == NULL && pool->count < pool->cap)
		p = &pool->pooled[pool->count++];
	if (p != NULL)
		strcpy(p->path, path);
	pthread_mutex_unlock(&pool->lock);
	return p;
}

void
leat_sandbox_pool_note(struct leat_sandbox_pool *pool, const char *path, const char *work, const char *snapshot)
{
	struct pooled *p = find_or_add(pool, path);
	int fd = p == NULL ? -1 : open_folder(AT_FDCWD, work);

	if (p == NULL)
		return;
	strcpy(p->snapshot, snapshot);
	p->links = fd < 0 ? 0 : print_of(fd);
	if (fd >= 0)
		close(fd);
}

static bool
is_usual(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (st.st_mode & 0700) == 0700 && st.st_uid == geteuid();
}

/* True: it is as it was, except that nothing is in it; or, in the working folder, just the links. */
static bool
clean_folder(struct pooled *p, int sandbox, const char *name)
{
	int fd = open_folder(sandbox, name);
	bool ok = fd >= 0 && is_usual(fd);

	if (ok && strcmp(name, "work") == 0 && (p->links == 0 || print_of(fd) != p->links))
		p->links = 0;
	if (ok && (strcmp(name, "work") != 0 || p->links == 0))
		ok = leat_empty_folder(fd);
	if (fd >= 0)
		close(fd);
	return ok;
}

static bool
is_folder_of_ours(const char *name)
{
	for (size_t i = 0; i < LEAT_SANDBOX_FOLDERS; i++)
		if (strcmp(name, leat_sandbox_folders[i]) == 0)
			return true;
	return false;
}

/* step.json is written over, unless it became a link. */
static bool
remove_others(int sandbox)
{
	DIR *folder = fdopendir(dup(sandbox));
	struct dirent *entry;
	struct stat st;
	bool ok = folder != NULL;

	while (ok && (entry = readdir(folder)) != NULL) {
		const char *name = entry->d_name;

		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || is_folder_of_ours(name))
			continue;
		if (strcmp(name, "step.json") == 0 && fstatat(sandbox, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode) && st.st_nlink == 1 && (st.st_mode & 0600) == 0600)
			continue;
		ok = unlinkat(sandbox, name, 0) == 0; /* a folder is unusual */
	}
	if (folder != NULL)
		closedir(folder);
	return ok;
}

static bool
clean(struct pooled *p)
{
	int fd = open_folder(AT_FDCWD, p->path);
	bool ok = fd >= 0 && is_usual(fd) && remove_others(fd);

	for (size_t i = 0; ok && i < LEAT_SANDBOX_FOLDERS; i++)
		ok = clean_folder(p, fd, leat_sandbox_folders[i]);
	if (fd >= 0)
		close(fd);
	return ok;
}

bool
leat_sandbox_pool_give(struct leat_sandbox_pool *pool, const char *path, bool usable)
{
	struct pooled *p;
	bool ok;

	pthread_mutex_lock(&pool->lock);
	p = find(pool, path);
	pthread_mutex_unlock(&pool->lock);
	if (p == NULL)
		return false;
	ok = usable && clean(p);
	pthread_mutex_lock(&pool->lock);
	p->free = ok;
	if (!ok)
		*p->path = '\0'; /* the entry is free for another one */
	pthread_mutex_unlock(&pool->lock);
	return ok;
}
