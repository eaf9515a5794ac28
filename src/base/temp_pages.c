/* temp_pages.c - see temp_pages.h */
#include "base/temp_pages.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

static int
open_in(const char *folder)
{
	char path[4096];
	int len = snprintf(path, sizeof(path), "%s/leat-XXXXXX", folder), fd;
	struct statfs fs;

	if (len < 0 || (size_t)len >= sizeof(path))
		return -1;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -1;
	unlink(path);
	if (fstatfs(fd, &fs) == 0 && fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC)
		return fd;
	close(fd);
	return -1;
}

static void *
map_file(int fd, size_t size)
{
	void *map = MAP_FAILED;

	if (posix_fallocate(fd, 0, (off_t)size) == 0)
		map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return map == MAP_FAILED ? NULL : map;
}

void *
leat_temp_pages(size_t size)
{
	const char *folders[] = {secure_getenv("TMPDIR"), "/var/tmp", "/tmp"};
	void *map = NULL;

	for (size_t i = 0; i < 3 && !map; i++) {
		int fd = folders[i] ? open_in(folders[i]) : -1;

		if (fd >= 0)
			map = map_file(fd, size);
	}
	return map;
}
