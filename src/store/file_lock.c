/* file_lock.c - local files: who is writing what, and whether they still live
 *
 * A *claim* is a hidden file that its owner created and holds an flock on, so the claim ends with its owner, however
 * that dies. Nobody else may have an open claim of that name; one whose lock is free is a leftover and is replaced.
 *
 * Between creating a file and locking it, another process may take it for a leftover and remove it. So whoever has
 * locked a file looks whether the name still refers to it, and else starts again. A leftover is removed and made
 * anew rather than reused: its first owner, who may be another user, could still have it open. */
#include "store/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

enum { TRIES = 100 };

struct leat_lock {
	struct leat_store *store;
	char *path;
	int fd;
};

static bool
still_names(const char *path, int fd)
{
	struct stat name, file;

	return lstat(path, &name) == 0 && fstat(fd, &file) == 0 && name.st_dev == file.st_dev &&
	       name.st_ino == file.st_ino;
}

/* True: the name may be free now. False: its owner lives, or there is no way to find out. */
static bool
remove_leftover(const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool removed;

	if (fd < 0)
		return errno == ENOENT;
	removed = flock(fd, LOCK_EX | LOCK_NB) == 0 && (!still_names(path, fd) || unlink(path) == 0);
	close(fd);
	return removed;
}

enum leat_status
leat_file_claim(const char *path, int *fd, bool *locked)
{
	for (int tries = 0; tries < TRIES; tries++) {
		*fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (*fd >= 0) {
			*locked = flock(*fd, LOCK_EX | LOCK_NB) == 0;
			if (*locked ? still_names(path, *fd) : errno != EWOULDBLOCK)
				return LEAT_OK;
			close(*fd);
		} else if (errno != EEXIST) {
			return LEAT_IO;
		} else if (!remove_leftover(path)) {
			return LEAT_AGAIN;
		}
	}
	return LEAT_AGAIN;
}

char *
leat_file_hidden(const char *path, const char *ending, struct leat_mem *mem)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return leat_asprintf(mem, "%.*s.%s%s", (int)(name - path), path, name + (*name == '.'), ending);
}

/* ---- locks ---- */

enum leat_status
leat_file_lock(struct leat_store *store, const char *path, struct leat_lock **result, struct leat_err *err)
{
	struct leat_lock *lock = leat_alloc(store->mem, sizeof(*lock));
	enum leat_status status;
	bool locked = false;

	*result = NULL;
	if (!lock)
		return leat_fail_mem(err, store->mem, sizeof(*lock), "a lock");
	*lock = (struct leat_lock){.store = store, .path = leat_file_hidden(path, ".lock", store->mem), .fd = -1};
	if (!lock->path)
		status = leat_fail_mem(err, store->mem, strlen(path) + 8, "a file name");
	else if ((status = leat_file_claim(lock->path, &lock->fd, &locked)) == LEAT_IO)
		status = leat_fail_errno(err, errno, "cannot create '%s'", path);
	else if (status == LEAT_OK && !locked)
		status = LEAT_UNSUPPORTED;
	if (status == LEAT_OK)
		*result = lock;
	else
		leat_file_unlock(lock);
	return status;
}

void
leat_file_unlock(struct leat_lock *lock)
{
	struct leat_mem *mem = lock->store->mem;

	if (lock->fd >= 0) {
		(void)unlink(lock->path);
		close(lock->fd);
	}
	leat_free(mem, lock->path);
	leat_free(mem, lock);
}

/* ---- leftovers ---- */

static enum leat_status
remove_path(void *arg, const char *path, struct leat_err *err)
{
	(void)arg;
	(void)err;
	(void)unlink(path);
	return LEAT_OK;
}

void
leat_file_sweep(struct leat_store *store, const char *pattern)
{
	char *hidden = leat_file_hidden(pattern, ".*tmp", store->mem);

	if (hidden)
		(void)leat_file_match(store, hidden, remove_path, NULL, NULL);
	leat_free(store->mem, hidden);
}
