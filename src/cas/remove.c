/* remove.c - remove folders that commands have filled
 *
 * They may be nested deeper than paths or descriptors allow, so folders below a depth are moved up to the top first. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cas/cas.h"

enum { MAX_DEPTH = 16, DEEP_NAME = 32 };

struct removal {
	int top;
	unsigned moved; /* folders that were too deep, named by deep_name */
};

static void remove_folder(struct removal *removal, int parent, const char *name, int depth);

static void
deep_name(char name[DEEP_NAME], unsigned i)
{
	snprintf(name, DEEP_NAME, ".leat-deep-%u", i);
}

static bool
try_remove(int folder, const char *name, unsigned char type)
{
	if (type != DT_DIR && unlinkat(folder, name, 0) == 0)
		return true;
	return (type == DT_DIR || errno == EISDIR || errno == EPERM) && unlinkat(folder, name, AT_REMOVEDIR) == 0;
}

/* False: it is a folder with something in it, or cannot be removed. */
static bool
remove_simple(int folder, const char *name, unsigned char type)
{
	if (try_remove(folder, name, type))
		return true;
	/* The command made the folder read-only. */
	return errno == EACCES && folder != AT_FDCWD && fchmod(folder, 0700) == 0 && try_remove(folder, name, type);
}

static void
remove_entry(struct removal *removal, int folder, const char *name, unsigned char type, int depth)
{
	char deep[DEEP_NAME];

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || remove_simple(folder, name, type))
		return;
	if (depth < MAX_DEPTH) {
		remove_folder(removal, folder, name, depth + 1);
		return;
	}
	deep_name(deep, removal->moved);
	/* A folder that is read-only cannot be moved. */
	if (renameat(folder, name, removal->top, deep) == 0 ||
	    (errno == EACCES && fchmodat(folder, name, 0700, 0) == 0 &&
	     renameat(folder, name, removal->top, deep) == 0))
		removal->moved++;
}

static DIR *
open_folder(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *folder;

	if (fd < 0 && errno == EACCES && fchmodat(parent, name, 0700, 0) == 0)
		fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	folder = fdopendir(fd);
	if (folder == NULL)
		close(fd);
	return folder;
}

static void
remove_entries(struct removal *removal, DIR *folder, int depth)
{
	struct dirent *entry;

	while ((entry = readdir(folder)) != NULL)
		remove_entry(removal, dirfd(folder), entry->d_name, entry->d_type, depth);
}

static void
remove_folder(struct removal *removal, int parent, const char *name, int depth)
{
	DIR *folder = open_folder(parent, name);

	if (folder == NULL)
		return;
	remove_entries(removal, folder, depth);
	closedir(folder);
	(void)unlinkat(parent, name, AT_REMOVEDIR);
}

/* Folders that were moved to the top, because they were too deep. */
static void
remove_moved(struct removal *removal)
{
	char deep[DEEP_NAME];

	for (unsigned i = 0; i < removal->moved; i++) {
		deep_name(deep, i);
		remove_folder(removal, removal->top, deep, 0);
	}
}

static bool
is_empty(DIR *folder)
{
	struct dirent *entry;

	rewinddir(folder);
	while ((entry = readdir(folder)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			return false;
	return true;
}

bool
leat_empty_folder(int fd)
{
	struct removal removal = {.top = fd};
	DIR *folder = fdopendir(dup(fd));
	bool empty;

	if (folder == NULL)
		return false;
	empty = is_empty(folder);
	if (!empty) {
		rewinddir(folder);
		remove_entries(&removal, folder, 0);
		remove_moved(&removal);
		empty = is_empty(folder);
	}
	closedir(folder);
	return empty;
}

void
leat_remove_tree(const char *path)
{
	struct removal removal = {0};
	DIR *folder;

	if (remove_simple(AT_FDCWD, path, DT_UNKNOWN))
		return;
	folder = open_folder(AT_FDCWD, path);
	if (folder == NULL)
		return;
	removal.top = dirfd(folder);
	remove_entries(&removal, folder, 0);
	remove_moved(&removal);
	closedir(folder);
	(void)rmdir(path);
}
