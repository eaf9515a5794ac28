/* file_write.c - local files: atomic writes
 *
 * Bytes are buffered and written to a hidden temporary file in the same folder, which commit
 * renames. Readers never see a partial file. If two writers commit the same name, the last
 * one wins, or the first with LEAT_COMMIT_IF_ABSENT. With LEAT_BEGIN_THROUGH, something that
 * exists and is not a regular file, such as a pipe or a terminal, is written to directly. A
 * writer belongs to one thread.
 *
 * The temporary file is `.NAME.tmp`, or `.NAME.1.tmp` and so on if others write the same name
 * at the same time. It is locked while it is open (file_lock.c), so what a killed writer left
 * is replaced by the next one. A file that is finished before its commit is closed and thus
 * loses its lock; it gets a name that nobody else uses, `.NAME.<pid>-<time>.tmp`, and who
 * finishes files has a lock of their own that tells when they are leftovers (`sweep`). */
#include "store/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

enum { BUFFER = 256 * 1024, SLOTS = 100 };

struct file_writer {
	struct leat_writer base;
	char *path, *temp;
	int fd;      /* -1: closed */
	bool hidden; /* the temporary file exists */
	unsigned char *buffer;
	size_t used;
	enum leat_status failed;
};

static struct file_writer *
file_writer_of(struct leat_writer *writer)
{
	return (struct file_writer *)writer;
}

/* The name of the temporary file in slot `slot`; if negative, a name that no other writer uses. */
static enum leat_status
temp_name(const struct file_writer *file, int slot, char **name, struct leat_err *err)
{
	struct leat_mem *mem = file->base.store->mem;
	char ending[64] = ".tmp";

	if (slot < 0)
		snprintf(ending, sizeof(ending), ".%ld-%llx.tmp", (long)getpid(), (unsigned long long)leat_now());
	else if (slot)
		snprintf(ending, sizeof(ending), ".%d.tmp", slot);
	*name = leat_file_hidden(file->path, ending, mem);
	return *name ? LEAT_OK : leat_fail_mem(err, mem, strlen(file->path) + sizeof(ending), "a file name");
}

static enum leat_status
create_temp(struct file_writer *file, struct leat_err *err)
{
	enum leat_status status = LEAT_AGAIN;
	bool locked;

	for (int slot = 0; slot < 2 * SLOTS && status == LEAT_AGAIN; slot++) {
		leat_free(file->base.store->mem, file->temp);
		status = temp_name(file, slot < SLOTS ? slot : -1, &file->temp, err);
		if (status != LEAT_OK)
			return status;
		status = leat_file_claim(file->temp, &file->fd, &locked);
	}
	file->hidden = status == LEAT_OK;
	return file->hidden
	               ? LEAT_OK
	               : leat_fail_errno(err, status == LEAT_IO ? errno : EEXIST, "cannot create '%s'", file->path);
}

/* True for /dev/stdout and the like, which must not be replaced even if they point to a regular file. */
static bool
is_descriptor(const char *path)
{
	static const char proc[] = {'/', 'p', 'r', 'o', 'c', '/'};
	char target[sizeof(proc)];

	return readlink(path, target, sizeof(target)) == sizeof(proc) && memcmp(target, proc, sizeof(proc)) == 0;
}

static enum leat_status
open_writer(struct file_writer *file, int flags, struct leat_err *err)
{
	struct stat st;

	if (!(flags & LEAT_BEGIN_THROUGH) ||
	    (!is_descriptor(file->path) && (stat(file->path, &st) != 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))))
		return create_temp(file, err);
	file->fd = open(file->path, O_WRONLY | O_APPEND | O_CLOEXEC);
	return file->fd >= 0 ? LEAT_OK : leat_fail_errno(err, errno, "cannot write '%s'", file->path);
}

enum leat_status
leat_file_begin(struct leat_store *store, const char *path, int flags, struct leat_writer **writer,
                struct leat_err *err)
{
	struct file_writer *file = leat_alloc(store->mem, sizeof(*file));
	enum leat_status status;

	*writer = NULL;
	if (!file)
		return leat_fail_mem(err, store->mem, sizeof(*file), "a new file");
	*file = (struct file_writer){.base.store = store, .fd = -1};
	file->path = leat_strdup(store->mem, path);
	file->buffer = leat_alloc(store->mem, BUFFER);
	if (!file->path || !file->buffer)
		status = leat_fail_mem(err, store->mem, BUFFER, "the buffer of a new file");
	else
		status = open_writer(file, flags, err);
	if (status != LEAT_OK)
		leat_file_abort(&file->base);
	else
		*writer = &file->base;
	return status;
}

static enum leat_status
fail_write(struct file_writer *file, struct leat_err *err)
{
	return file->failed = leat_fail_errno(err, errno, "cannot write '%s'", file->path);
}

static enum leat_status
write_out(struct file_writer *file, const unsigned char *bytes, size_t len, struct leat_err *err)
{
	while (len) {
		ssize_t n = write(file->fd, bytes, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_write(file, err);
		bytes += n;
		len -= (size_t)n;
	}
	return LEAT_OK;
}

/* Write errors are final. */
static enum leat_status
check_failed(const struct file_writer *file, struct leat_err *err)
{
	return file->failed == LEAT_OK ? LEAT_OK
	                               : leat_fail(err, file->failed, "an earlier write to '%s' failed", file->path);
}

static enum leat_status
flush(struct file_writer *file, struct leat_err *err)
{
	enum leat_status status = check_failed(file, err);
	size_t used = file->used;

	file->used = 0;
	return status == LEAT_OK ? write_out(file, file->buffer, used, err) : status;
}

enum leat_status
leat_file_append(struct leat_writer *writer, const void *bytes, size_t len, struct leat_err *err)
{
	struct file_writer *file = file_writer_of(writer);
	enum leat_status status = check_failed(file, err);

	if (status == LEAT_OK && len > BUFFER - file->used)
		status = flush(file, err);
	if (status == LEAT_OK && len >= BUFFER)
		return write_out(file, bytes, len, err);
	if (status == LEAT_OK && len) { /* bytes may be NULL if len is 0 */
		memcpy(file->buffer + file->used, bytes, len);
		file->used += len;
	}
	return status;
}

enum leat_status
leat_file_patch(struct leat_writer *writer, uint64_t offset, const void *bytes, size_t len, struct leat_err *err)
{
	struct file_writer *file = file_writer_of(writer);
	enum leat_status status = flush(file, err);
	const char *from = bytes;

	while (status == LEAT_OK && len) {
		ssize_t n = pwrite(file->fd, from, len, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_write(file, err);
		from += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return status;
}

/* False: see errno. */
static bool
deny_others(int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return false;
	return !(st.st_mode & (S_IWGRP | S_IWOTH)) ||
	       fchmod(fd, st.st_mode & 07777 & ~(mode_t)(S_IWGRP | S_IWOTH)) == 0;
}

/* Gives the temporary file a name that is not taken over when its lock is gone. */
static enum leat_status
set_aside(struct file_writer *file, struct leat_err *err)
{
	char *name;
	enum leat_status status = temp_name(file, -1, &name, err);

	if (status != LEAT_OK)
		return file->failed = status;
	if (rename(file->temp, name) != 0) {
		status = fail_write(file, err);
		leat_free(file->base.store->mem, name);
		return status;
	}
	leat_free(file->base.store->mem, file->temp);
	file->temp = name;
	return LEAT_OK;
}

/* Closing may report that writing failed. A duplicate of the descriptor holds the lock until the commit. */
static enum leat_status
end_appending(struct file_writer *file, int flags, bool hold_lock, struct leat_err *err)
{
	enum leat_status status = flush(file, err);
	int fd = file->fd;

	if (status == LEAT_OK && file->hidden && (flags & LEAT_COMMIT_OWN) && !deny_others(fd))
		status = fail_write(file, err);
	if (status == LEAT_OK && file->hidden && (flags & LEAT_COMMIT_SYNC) && fsync(fd) != 0)
		status = fail_write(file, err);
	file->fd = file->hidden && hold_lock ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
	if (status == LEAT_OK && file->hidden && file->fd < 0)
		status = set_aside(file, err);
	if (fd >= 0 && close(fd) != 0 && status == LEAT_OK)
		status = fail_write(file, err);
	leat_free(file->base.store->mem, file->buffer);
	file->buffer = NULL;
	return status;
}

enum leat_status
leat_file_finish(struct leat_writer *writer, int flags, struct leat_err *err)
{
	return end_appending(file_writer_of(writer), flags, false, err);
}

/* Errors are ignored: some file systems cannot sync a folder. */
static void
sync_folder(char *path)
{
	char *slash = strrchr(path, '/');
	int fd;

	if (slash)
		slash[1] = '\0';
	fd = open(slash ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		(void)fsync(fd);
		close(fd);
	}
}

/* link fails if the file exists; rename replaces it. */
static enum leat_status
publish(struct file_writer *file, const char *path, int flags, struct leat_err *err)
{
	bool if_absent = flags & LEAT_COMMIT_IF_ABSENT;

	if (if_absent ? link(file->temp, path) == 0 : rename(file->temp, path) == 0) {
		file->hidden = if_absent;
		return LEAT_OK;
	}
	if (if_absent && errno == EEXIST)
		return LEAT_AGAIN;
	return leat_fail_errno(err, errno, "cannot create '%s'", path);
}

enum leat_status
leat_file_commit(struct leat_writer *writer, const char *path, int flags, struct leat_err *err)
{
	struct file_writer *file = file_writer_of(writer);
	enum leat_status status = file->fd >= 0 ? end_appending(file, flags, true, err) : check_failed(file, err);

	if (status == LEAT_OK && file->temp)
		status = publish(file, path ? path : file->path, flags, err);
	if (status == LEAT_OK && file->temp && (flags & LEAT_COMMIT_SYNC))
		sync_folder(file->hidden ? file->path : file->temp);
	leat_file_abort(writer);
	return status;
}

void
leat_file_abort(struct leat_writer *writer)
{
	struct file_writer *file = file_writer_of(writer);
	struct leat_mem *mem = writer->store->mem;

	if (file->hidden)
		(void)unlink(file->temp);
	if (file->fd >= 0)
		close(file->fd);
	leat_free(mem, file->path);
	leat_free(mem, file->temp);
	leat_free(mem, file->buffer);
	leat_free(mem, file);
}
