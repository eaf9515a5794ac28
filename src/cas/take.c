/* take.c - move what an action made into the store
 *
 * Hostile: a command may leave anything behind. A file with a second name is copied, because somebody could still write
 * to it by that name, and it may be the user's. Any thread; nobody else may use the path. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cas/inside.h"

struct take {
	struct leat_cas *cas;
	char path[PATH_MAX]; /* for messages */
};

/* Opens a file that its maker may have protected. */
static int
open_file(int folder_fd, const char *name)
{
	int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, fd = openat(folder_fd, name, flags);

	if (fd < 0 && errno == EACCES && fchmodat(folder_fd, name, 0700, 0) == 0)
		fd = openat(folder_fd, name, flags);
	return fd;
}

/* 0, or errno. */
static int
copy_by_reading(int from, int to)
{
	char bytes[1 << 16];
	ssize_t got;

	while ((got = read(from, bytes, sizeof(bytes))) != 0) {
		if (got < 0 && errno != EINTR)
			return errno;
		if (got > 0 && !leat_cas_write_all(to, bytes, (size_t)got))
			return errno;
	}
	return 0;
}

/* The kernel copies, or shares the blocks, where it can: not between all file systems. */
static int
copy_all(int from, int to)
{
	ssize_t put;

	if (lseek(from, 0, SEEK_SET) != 0)
		return errno;
	do
		put = copy_file_range(from, NULL, to, NULL, 1 << 30, 0);
	while (put > 0 || (put < 0 && errno == EINTR));
	if (put < 0 && (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP))
		return copy_by_reading(from, to);
	return put < 0 ? errno : 0;
}

enum leat_status
leat_cas_copy_temp(struct leat_cas *cas, int fd, mode_t mode, char name[LEAT_CAS_NAME], struct leat_err *err)
{
	int copy, errnum;

	leat_cas_temp_name(cas, name);
	copy = openat(cas->folder_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (copy < 0)
		return leat_cas_full(err, cas, errno, "copy a file");
	errnum = copy_all(fd, copy);
	if (fchmod(copy, mode) != 0 && !errnum)
		errnum = errno;
	if (close(copy) != 0 && !errnum)
		errnum = errno;
	if (!errnum)
		return LEAT_OK;
	unlinkat(cas->folder_fd, name, 0);
	return leat_cas_full(err, cas, errnum, "copy a file");
}

static enum leat_status
take_copy(struct take *take, int fd, const struct leat_content *content, struct leat_err *err)
{
	struct leat_cas *cas = take->cas;
	char temp[LEAT_CAS_NAME];
	enum leat_status status = leat_cas_copy_temp(cas, fd, 0444, temp, err);

	return status == LEAT_OK ? leat_cas_place_blob(cas, cas->folder_fd, temp, &content->digest, content->bytes, err)
	                         : status;
}

/* With its size: a blob that a full disk or a crash cut is replaced. */
static bool
is_stored(struct leat_cas *cas, const struct leat_content *content)
{
	char name[LEAT_CAS_NAME];
	struct stat blob;

	leat_cas_name("cas", &content->digest, name);
	return fstatat(cas->folder_fd, name, &blob, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(blob.st_mode) &&
	       (uint64_t)blob.st_size == content->bytes;
}

static enum leat_status
take_file(struct take *take, int folder_fd, const char *name, struct leat_content *content, struct leat_err *err)
{
	int fd = open_file(folder_fd, name);
	struct stat file;
	enum leat_status status;

	if (fd < 0 || fstat(fd, &file) != 0) {
		status = leat_fail_errno(err, errno, "cannot open '%s'", take->path);
		goto out;
	}
	content->kind = file.st_mode & S_IXUSR ? LEAT_CONTENT_EXECUTABLE : LEAT_CONTENT_FILE;
	status = leat_hash_fd(fd, take->cas->mem, take->path, NULL, &content->digest, &content->bytes, err);
	if (status != LEAT_OK)
		goto out;
	if (file.st_nlink > 1) {
		if (!is_stored(take->cas, content))
			status = take_copy(take, fd, content, err);
		if (status == LEAT_OK && unlinkat(folder_fd, name, 0) != 0)
			status = leat_fail_errno(err, errno, "cannot remove '%s'", take->path);
	} else if (fchmod(fd, 0444) != 0) {
		status = leat_fail_errno(err, errno, "cannot protect '%s'", take->path);
	} else {
		status = leat_cas_place_blob(take->cas, folder_fd, name, &content->digest, content->bytes, err);
	}
out:
	if (fd >= 0)
		close(fd);
	return status;
}

static enum leat_status
take_link(struct take *take, int folder_fd, const char *name, size_t depth, struct leat_str *tree, struct leat_err *err)
{
	char target[PATH_MAX];
	ssize_t len = readlinkat(folder_fd, name, target, sizeof(target));

	if (len < 0 || (size_t)len >= sizeof(target))
		return leat_fail_errno(err, len < 0 ? errno : ENAMETOOLONG, "cannot read the link '%s'", take->path);
	target[len] = '\0';
	if (!tree || !leat_link_stays(target, depth - 1))
		return leat_fail(err, LEAT_DATA,
		                 "'%s' is a link to '%s', outside of the output; write a copy there instead",
		                 take->path, target);
	if (unlinkat(folder_fd, name, 0) != 0)
		return leat_fail_errno(err, errno, "cannot remove '%s'", take->path);
	return leat_tree_add_link(tree, name, target, err);
}

static enum leat_status take_entry(struct take *take, int folder_fd, const char *name, size_t depth,
                                   struct leat_str *tree, struct leat_content *content, struct leat_err *err);

static enum leat_status
take_entries(struct take *take, int fd, size_t depth, struct leat_str *tree, uint64_t *bytes, struct leat_err *err)
{
	struct leat_entries entries;
	size_t len = strlen(take->path);
	enum leat_status status = leat_entries_read(fd, take->cas->mem, true, &entries, take->path, err);

	if (status != LEAT_OK)
		return status;
	for (size_t i = 0; i < entries.count && status == LEAT_OK; i++) {
		struct leat_content content = {.kind = LEAT_CONTENT_NONE};

		snprintf(take->path + len, sizeof(take->path) - len, "/%s", entries.name[i]);
		status = take_entry(take, fd, entries.name[i], depth + 1, tree, &content, err);
		if (status == LEAT_OK && content.kind != LEAT_CONTENT_NONE)
			status = leat_tree_add(tree, entries.name[i], &content, err);
		*bytes += content.bytes;
		take->path[len] = '\0';
	}
	leat_entries_free(&entries, take->cas->mem);
	return status;
}

static enum leat_status
take_folder(struct take *take, int folder_fd, const char *name, size_t depth, struct leat_content *content,
            struct leat_err *err)
{
	struct leat_str tree;
	uint64_t bytes = 0;
	int fd;
	enum leat_status status;

	if (fchmodat(folder_fd, name, 0700, 0) != 0 ||
	    (fd = openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		return leat_fail_errno(err, errno, "cannot open '%s'", take->path);
	leat_str_init(&tree, take->cas->mem, LEAT_TREE_MAX);
	status = take_entries(take, fd, depth, &tree, &bytes, err);
	close(fd);
	if (status == LEAT_OK)
		status = leat_cas_put_tree(take->cas, &tree, content, err);
	if (status == LEAT_OK && unlinkat(folder_fd, name, AT_REMOVEDIR) != 0)
		status = leat_fail_errno(err, errno, "cannot remove '%s'", take->path);
	leat_str_free(&tree);
	return status;
}

static enum leat_status
take_entry(struct take *take, int folder_fd, const char *name, size_t depth, struct leat_str *tree,
           struct leat_content *content, struct leat_err *err)
{
	struct stat file;

	if (depth > LEAT_TREE_DEPTH)
		return leat_fail(err, LEAT_LIMIT, "'%s': folders are nested more than %d deep", take->path,
		                 LEAT_TREE_DEPTH);
	if (fstatat(folder_fd, name, &file, AT_SYMLINK_NOFOLLOW) != 0)
		return leat_fail_errno_as(err, errno == ENOENT ? LEAT_DATA : leat_errno_status(errno), errno,
		                          "cannot read '%s'", take->path);
	if (S_ISREG(file.st_mode))
		return take_file(take, folder_fd, name, content, err);
	if (S_ISDIR(file.st_mode))
		return take_folder(take, folder_fd, name, depth, content, err);
	if (S_ISLNK(file.st_mode))
		return take_link(take, folder_fd, name, depth, tree, err);
	return leat_fail(err, LEAT_DATA, "'%s' is a %s; an output may contain only files, folders and links",
	                 take->path,
	                 S_ISFIFO(file.st_mode)   ? "fifo"
	                 : S_ISSOCK(file.st_mode) ? "socket"
	                                          : "device");
}

enum leat_status
leat_cas_take(struct leat_cas *cas, const char *path, struct leat_content *content, struct leat_err *err)
{
	struct take take = {.cas = cas};
	enum leat_status status = leat_cas_need_run(cas, err);

	snprintf(take.path, sizeof(take.path), "%s", path);
	*content = (struct leat_content){.kind = LEAT_CONTENT_NONE};
	return status == LEAT_OK ? take_entry(&take, AT_FDCWD, path, 0, NULL, content, err) : status;
}

enum leat_status
leat_cas_put_file(struct leat_cas *cas, const char *path, struct leat_content *content, struct leat_err *err)
{
	char temp[LEAT_CAS_NAME], copy[PATH_MAX];
	struct stat file;
	int fd;
	enum leat_status status = leat_cas_need_run(cas, err);

	if (status != LEAT_OK)
		return status;
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &file) != 0)
		status = leat_fail_errno(err, errno, "cannot read '%s'", path);
	else
		status = leat_cas_copy_temp(cas, fd, file.st_mode & S_IXUSR ? 0555 : 0444, temp, err);
	if (fd >= 0)
		close(fd);
	if (status != LEAT_OK)
		return status;
	leat_cas_path(cas, temp, copy);
	return leat_cas_take(cas, copy, content, err);
}
