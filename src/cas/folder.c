/* folder.c - list folders in a fixed order */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "cas/inside.h"

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static enum leat_status
add_entry(struct leat_entries *entries, const char *name, struct leat_mem *mem, struct leat_err *err)
{
	enum leat_status status =
		LEAT_GROW(mem, entries->name, entries->cap, entries->count + 1, SIZE_MAX, "the list of files", err);
	char *copy = status == LEAT_OK ? leat_strdup(mem, name) : NULL;

	if (status == LEAT_OK && !copy)
		status = leat_fail_mem(err, mem, strlen(name) + 1, "the list of files");
	if (status == LEAT_OK)
		entries->name[entries->count++] = copy;
	return status;
}

enum leat_status
leat_entries_read(int folder_fd, struct leat_mem *mem, bool hidden, struct leat_entries *entries, const char *path,
                  struct leat_err *err)
{
	int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	enum leat_status status = LEAT_OK;

	memset(entries, 0, sizeof(*entries));
	if (!folder) {
		status = leat_fail_errno(err, errno, "cannot list '%s'", path);
		if (fd >= 0)
			close(fd);
		return status;
	}
	while (status == LEAT_OK && (errno = 0, entry = readdir(folder))) {
		const char *name = entry->d_name;

		if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && (hidden || name[0] != '.'))
			status = add_entry(entries, name, mem, err);
	}
	if (status == LEAT_OK && errno != 0)
		status = leat_fail_errno(err, errno, "cannot list '%s'", path);
	closedir(folder);
	if (status != LEAT_OK)
		leat_entries_free(entries, mem);
	else if (entries->count > 1)
		qsort(entries->name, entries->count, sizeof(*entries->name), compare_names);
	return status;
}

enum leat_status
leat_cas_list(struct leat_cas *cas, const char *folder, struct leat_entries *entries, struct leat_err *err)
{
	int fd = openat(cas->folder_fd, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	enum leat_status status;

	memset(entries, 0, sizeof(*entries));
	if (fd < 0 && errno == ENOENT) /* a full disk may have left a store that is not complete */
		return LEAT_OK;
	if (fd < 0)
		return leat_fail_errno(err, errno, "cannot list '%s/%s'", cas->folder, folder);
	status = leat_entries_read(fd, cas->mem, true, entries, folder, err);
	close(fd);
	return status;
}

void
leat_entries_free(struct leat_entries *entries, struct leat_mem *mem)
{
	for (size_t i = 0; i < entries->count; i++)
		leat_free(mem, entries->name[i]);
	leat_free(mem, entries->name);
	memset(entries, 0, sizeof(*entries));
}
