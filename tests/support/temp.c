/* temp.c - see temp.h */
#include "temp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

void
temp_make(struct temp *temp)
{
	strcpy(temp->folder, "/tmp/leat-test-XXXXXX");
	assert_non_null(mkdtemp(temp->folder));
}

static int
temp_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

void
temp_remove(struct temp *temp)
{
	nftw(temp->folder, temp_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *
temp_path(struct temp *temp, const char *name)
{
	int len = snprintf(temp->path, sizeof(temp->path), "%s/%s", temp->folder, name);

	assert_true(len > 0 && (size_t)len < sizeof(temp->path));
	return temp->path;
}

const char *
temp_write(struct temp *temp, const char *name, const void *bytes, size_t len)
{
	const char *path = temp_path(temp, name);
	int fd;

	unlink(path); /* because some file systems flush a file that is written over */
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), (ssize_t)len);
	close(fd);
	return path;
}

unsigned char *
temp_read(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY);
	unsigned char *bytes;
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	bytes = malloc((size_t)st.st_size + 1);
	assert_non_null(bytes);
	assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
	close(fd);
	*len = (size_t)st.st_size;
	return bytes;
}

void
temp_change_now(struct temp *temp, const char *name)
{
	struct timespec times[2] = {{0, UTIME_OMIT}, {0, 0}};

	clock_gettime(CLOCK_REALTIME, &times[1]);
	times[1].tv_sec += 60;
	assert_int_equal(utimensat(AT_FDCWD, temp_path(temp, name), times, 0), 0);
}

bool
temp_exists(struct temp *temp, const char *name)
{
	return access(temp_path(temp, name), F_OK) == 0;
}
