/* sandbox_checkpoint.c - $checkpoint: a folder that survives the command, for steps with `resume: true`
 *
 * order.c says how it is named. Two builds that run the same action at a time must not share it: a lock on the folder
 * decides, and who comes second gets an empty one in the sandbox. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "step/sandbox.h"

static enum leat_status
make_folder(const char *path, struct leat_err *err)
{
	if (mkdir(path, 0777) != 0 && errno != EEXIST)
		return leat_fail_errno(err, errno, "cannot make the checkpoint folder %s", path);
	return LEAT_OK;
}

/* Names the folder, and makes it. */
static enum leat_status
make_checkpoint(struct leat_sandbox *s, const char *parent, const char *name, struct leat_err *err)
{
	enum leat_status status;

	leat_free(s->mem, s->checkpoint);
	s->checkpoint = leat_asprintf(s->mem, "%s/%s", parent, name);
	if (s->checkpoint == NULL)
		return leat_fail_mem(err, s->mem, PATH_MAX, "the path of a checkpoint");
	status = make_folder(parent, err);
	return status == LEAT_OK ? make_folder(s->checkpoint, err) : status;
}

/* Whoever had the lock may have removed the folder. */
static bool
is_there(const char *path, int fd)
{
	struct stat here, opened;

	return fstat(fd, &opened) == 0 && stat(path, &here) == 0 && here.st_ino == opened.st_ino &&
	       here.st_dev == opened.st_dev;
}

/* Makes the folder and locks it. checkpoint_fd is -1 if somebody else has it. */
static enum leat_status
lock_checkpoint(struct leat_sandbox *s, const char *parent, const char *name, struct leat_err *err)
{
	enum leat_status status;
	bool locked, again;

	do {
		status = make_checkpoint(s, parent, name, err);
		if (status != LEAT_OK)
			return status;
		s->checkpoint_fd = open(s->checkpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (s->checkpoint_fd < 0 && errno != ENOENT)
			return leat_fail_errno(err, errno, "cannot open the checkpoint folder %s", s->checkpoint);
		locked = s->checkpoint_fd >= 0 && flock(s->checkpoint_fd, LOCK_EX | LOCK_NB) == 0;
		again = s->checkpoint_fd < 0 || (locked && !is_there(s->checkpoint, s->checkpoint_fd));
		if (s->checkpoint_fd >= 0 && (again || !locked)) {
			close(s->checkpoint_fd);
			s->checkpoint_fd = -1;
		}
	} while (again);
	return LEAT_OK;
}

enum leat_status
leat_sandbox_open_checkpoint(struct leat_sandbox *s, struct leat_err *err)
{
	char parent[PATH_MAX];
	enum leat_status status;

	if (!s->order->resume)
		return LEAT_OK;
	if (s->runner->trial)
		return make_checkpoint(s, s->path, "checkpoint", err);
	if (snprintf(parent, sizeof(parent), "%s/resume", leat_cas_folder(s->runner->cas)) >= PATH_MAX)
		return leat_fail(err, LEAT_LIMIT, "the path %s is too long; move the project to a shorter one", parent);
	status = lock_checkpoint(s, parent, s->order->checkpoint, err);
	return status != LEAT_OK || s->checkpoint_fd >= 0 ? status : make_checkpoint(s, s->path, "checkpoint", err);
}
