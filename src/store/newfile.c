/* newfile.c - a file that appears whole or not at all */
#include "store/newfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

enum { BUFFER = 256 * 1024, NAME_TRIES = 100 };

/* ".NAME.<pid>-<time>.tmp" beside `path`: hidden from patterns, and different for every writer. */
static char *
temp_name(const char *path, struct leat_mem *mem)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return leat_asprintf(mem, "%.*s.%s.%ld-%llx.tmp", (int)(name - path), path, name + (*name == '.'),
	                     (long)getpid(), (unsigned long long)leat_now());
}

static enum leat_status
create_temp(struct leat_newfile *file, struct leat_err *err)
{
	for (int tries = 0; tries < NAME_TRIES; tries++) {
		leat_free(file->mem, file->temp);
		file->temp = temp_name(file->path, file->mem);
		if (!file->temp)
			return leat_fail_mem(err, file->mem, strlen(file->path) + 64, "a file name");
		file->fd = open(file->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		file->hidden = file->fd >= 0;
		if (file->hidden)
			return LEAT_OK;
		if (errno != EEXIST)
			break;
	}
	return leat_fail_errno(err, errno, "cannot create '%s'", file->path);
}

enum leat_status
leat_newfile_open(struct leat_newfile *file, const char *path, struct leat_mem *mem, struct leat_err *err)
{
	enum leat_status status;

	*file = (struct leat_newfile){.mem = mem, .fd = -1};
	file->path = leat_strdup(mem, path);
	file->buffer = leat_alloc(mem, BUFFER);
	if (!file->path || !file->buffer)
		status = leat_fail_mem(err, mem, BUFFER, "the buffer of a new file");
	else
		status = create_temp(file, err);
	if (status != LEAT_OK)
		leat_newfile_abort(file);
	return status;
}

static enum leat_status
write_out(struct leat_newfile *file, const unsigned char *bytes, size_t len, struct leat_err *err)
{
	while (len) {
		ssize_t n = write(file->fd, bytes, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return file->failed = leat_fail_errno(err, errno, "cannot write '%s'", file->path);
		bytes += n;
		len -= (size_t)n;
	}
	return LEAT_OK;
}

static enum leat_status
flush(struct leat_newfile *file, struct leat_err *err)
{
	size_t used = file->used;

	file->used = 0;
	return write_out(file, file->buffer, used, err);
}

enum leat_status
leat_newfile_write(struct leat_newfile *file, const void *bytes, size_t len, struct leat_err *err)
{
	enum leat_status status = file->failed;

	if (status != LEAT_OK)
		return leat_fail(err, status, "'%s' could not be written before", file->path);
	file->size += len;
	if (len > BUFFER - file->used)
		status = flush(file, err);
	if (status == LEAT_OK && len >= BUFFER)
		return write_out(file, bytes, len, err);
	if (status == LEAT_OK && len) { /* NULL stands for no bytes */
		memcpy(file->buffer + file->used, bytes, len);
		file->used += len;
	}
	return status;
}

/* Some file systems cannot sync a folder; the file itself is safe then. */
static void
sync_folder(const struct leat_newfile *file)
{
	char *slash = strrchr(file->temp, '/');
	int fd;

	if (slash)
		slash[1] = '\0';
	fd = open(slash ? file->temp : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		(void)fsync(fd);
		close(fd);
	}
}

enum leat_status
leat_newfile_patch(struct leat_newfile *file, uint64_t offset, const void *bytes, size_t len, struct leat_err *err)
{
	const char *from = bytes;
	enum leat_status status = leat_newfile_write(file, "", 0, err);

	if (status == LEAT_OK)
		status = flush(file, err);
	while (status == LEAT_OK && len) {
		ssize_t n = pwrite(file->fd, from, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return file->failed = leat_fail_errno(err, errno, "cannot write '%s'", file->path);
		from += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return status;
}

enum leat_status
leat_newfile_finish(struct leat_newfile *file, bool sync, struct leat_err *err)
{
	enum leat_status status = leat_newfile_write(file, "", 0, err);
	int fd = file->fd;

	if (status == LEAT_OK)
		status = flush(file, err);
	if (status == LEAT_OK && sync && fsync(fd) != 0)
		status = leat_fail_errno(err, errno, "cannot write '%s'", file->path);
	file->fd = -1;
	if (close(fd) != 0 && status == LEAT_OK)
		status = leat_fail_errno(err, errno, "cannot write '%s'", file->path);
	leat_free(file->mem, file->buffer);
	file->buffer = NULL;
	file->failed = status;
	return status;
}

enum leat_status
leat_newfile_show(struct leat_newfile *file, const char *path, bool sync, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	if (!path)
		path = file->path;
	if (file->failed != LEAT_OK)
		status = leat_fail(err, file->failed, "'%s' could not be written before", path);
	else if (rename(file->temp, path) != 0)
		status = leat_fail_errno(err, errno, "cannot create '%s'", path);
	file->hidden = status != LEAT_OK;
	if (status == LEAT_OK && sync)
		sync_folder(file);
	leat_newfile_abort(file);
	return status;
}

enum leat_status
leat_newfile_commit(struct leat_newfile *file, bool sync, struct leat_err *err)
{
	enum leat_status status = leat_newfile_finish(file, sync, err);

	if (status == LEAT_OK)
		return leat_newfile_show(file, NULL, sync, err);
	leat_newfile_abort(file);
	return status;
}

void
leat_newfile_abort(struct leat_newfile *file)
{
	if (!file->mem)
		return;
	if (file->fd >= 0)
		close(file->fd);
	if (file->hidden)
		(void)unlink(file->temp);
	leat_free(file->mem, file->path);
	leat_free(file->mem, file->temp);
	leat_free(file->mem, file->buffer);
	*file = (struct leat_newfile){.fd = -1};
}
