/* cas.c - opening and closing a store, and the names of what is in it
 *
 * Whoever has a store open for writing holds a shared lock on its `format` file. Who gets an exclusive lock is alone:
 * it removes what dead runs left behind, checks the index, and then shares the lock. gc and repairs need to be alone,
 * too. Readers hold no lock: what they find may go away. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "cas/fsck.h"
#include "cas/inside.h"

static const char format_text[] = "leat content store 1\n";

void
leat_cas_name(const char *room, const struct leat_digest *digest, char name[LEAT_CAS_NAME])
{
	char hex[LEAT_SHA256_HEX];

	leat_hex(digest->byte, sizeof(digest->byte), hex);
	snprintf(name, LEAT_CAS_NAME, "%s/%.2s/%s", room, hex, hex);
}

bool
leat_cas_parse_name(const char *prefix, const char *file, struct leat_digest *digest)
{
	return !strncmp(prefix, file, 2) && leat_digest_parse(file, digest);
}

void
leat_cas_path(const struct leat_cas *cas, const char *name, char path[PATH_MAX])
{
	size_t folder = strlen(cas->folder), len = strlen(name); /* open_folder keeps room for names */

	memcpy(path, cas->folder, folder);
	path[folder] = '/';
	if (len > PATH_MAX - folder - 2)
		len = PATH_MAX - folder - 2;
	memcpy(path + folder + 1, name, len);
	path[folder + 1 + len] = '\0';
}

void
leat_cas_blob_path(const struct leat_cas *cas, const struct leat_digest *digest, char path[PATH_MAX])
{
	char name[LEAT_CAS_NAME];

	leat_cas_name("cas", digest, name);
	leat_cas_path(cas, name, path);
}

const char *
leat_cas_folder(const struct leat_cas *cas)
{
	return cas->folder;
}

bool
leat_cas_is_current(const struct leat_cas *cas)
{
	struct stat opened, now;

	return fstat(cas->folder_fd, &opened) == 0 && stat(cas->folder, &now) == 0 && opened.st_dev == now.st_dev &&
	       opened.st_ino == now.st_ino;
}

enum leat_status
leat_cas_each_in(struct leat_cas *cas, const char *room, unsigned first,
                 enum leat_status (*each)(void *arg, const struct leat_digest *digest, struct leat_err *err), void *arg,
                 struct leat_err *err)
{
	char prefix[3], name[LEAT_CAS_NAME];
	struct leat_digest digest;
	struct dirent *entry;
	enum leat_status status = LEAT_OK;
	DIR *folder;
	int fd;

	snprintf(prefix, sizeof(prefix), "%02x", first & 255);
	snprintf(name, sizeof(name), "%s/%s", room, prefix);
	fd = openat(cas->folder_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return LEAT_OK;
	folder = fd < 0 ? NULL : fdopendir(fd);
	if (!folder) {
		status = leat_fail_errno(err, errno, "cannot list '%s/%s'", cas->folder, name);
		if (fd >= 0)
			close(fd);
		return status;
	}
	while (status == LEAT_OK && (errno = 0, entry = readdir(folder)))
		if (leat_cas_parse_name(prefix, entry->d_name, &digest))
			status = each(arg, &digest, err);
	if (status == LEAT_OK && errno != 0)
		status = leat_fail_errno(err, errno, "cannot list '%s/%s'", cas->folder, name);
	closedir(folder);
	return status;
}

enum leat_status
leat_cas_each(struct leat_cas *cas, const char *room,
              enum leat_status (*each)(void *arg, const struct leat_digest *digest, struct leat_err *err), void *arg,
              struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (unsigned first = 0; first < 256 && status == LEAT_OK; first++)
		status = leat_cas_each_in(cas, room, first, each, arg, err);
	return status;
}

enum leat_status
leat_cas_full(struct leat_err *err, const struct leat_cas *cas, int errnum, const char *doing)
{
	if (errnum == ENOSPC || errnum == EDQUOT)
		return leat_fail(
			err, LEAT_IO,
			"cannot %s: no space left for the store '%s'; free some with 'leat gc' and build again", doing,
			cas->folder);
	if (errnum == EROFS || errnum == EACCES || errnum == EPERM)
		return leat_fail_errno(err, errnum, "cannot %s: the store '%s' is not writable", doing, cas->folder);
	return leat_fail_errno(err, errnum, "cannot %s in the store '%s'", doing, cas->folder);
}

/* Writes a small file whole or not at all, unless it is there. */
static enum leat_status
make_file(struct leat_cas *cas, const char *name, const char *text, struct leat_err *err)
{
	char temp[LEAT_CAS_NAME];
	ssize_t len = (ssize_t)strlen(text);
	int fd, errnum = 0;

	if (faccessat(cas->folder_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return LEAT_OK;
	snprintf(temp, sizeof(temp), ".%s.%ld", name, (long)getpid());
	fd = openat(cas->folder_fd, temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0)
		return leat_cas_full(err, cas, errno, "make a file");
	if (write(fd, text, (size_t)len) != len || fsync(fd) != 0 ||
	    (linkat(cas->folder_fd, temp, cas->folder_fd, name, 0) != 0 && errno != EEXIST))
		errnum = errno;
	close(fd);
	unlinkat(cas->folder_fd, temp, 0);
	return errnum ? leat_cas_full(err, cas, errnum, "make a file") : LEAT_OK;
}

static enum leat_status
make_folders(struct leat_cas *cas, struct leat_err *err)
{
	static const char *const name[] = {"cas", "act", "view", "index", "runs", "refs", "tmp"};

	for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
		if (mkdirat(cas->folder_fd, name[i], 0777) != 0 && errno != EEXIST)
			return leat_cas_full(err, cas, errno, "make a folder");
	return LEAT_OK;
}

static enum leat_status
check_format(struct leat_cas *cas, struct leat_err *err)
{
	char text[sizeof(format_text)] = "";
	int fd = openat(cas->folder_fd, "format", O_RDONLY | O_CLOEXEC);
	ssize_t got;

	if (fd < 0 && errno == ENOENT)
		return leat_fail(err, LEAT_DATA, "'%s' is not a content store: it has no file 'format'", cas->folder);
	if (fd < 0)
		return leat_fail_errno(err, errno, "cannot open '%s/format'", cas->folder);
	cas->lock_fd = fd;
	got = read(fd, text, sizeof(text) - 1);
	if (got < 0)
		return leat_fail_errno(err, errno, "cannot read '%s/format'", cas->folder);
	if (strcmp(text, format_text) != 0)
		return leat_fail(
			err, LEAT_UNSUPPORTED,
			"the store '%s' has another format, maybe of a later version of Leat: its file 'format' "
			"begins with '%s'",
			cas->folder, text);
	return LEAT_OK;
}

static enum leat_status
open_folder(struct leat_cas *cas, const char *folder, struct leat_err *err)
{
	if (cas->mode == LEAT_CAS_WRITE && mkdir(folder, 0777) != 0 && errno != EEXIST)
		return leat_fail_errno(err, errno, "cannot make the store '%s'", folder);
	if (!realpath(folder, cas->folder))
		return errno == ENOENT && cas->mode == LEAT_CAS_READ
		               ? leat_fail(err, LEAT_DATA, "there is no store '%s' yet; 'leat build' makes it", folder)
		               : leat_fail_errno(err, errno, "cannot open the store '%s'", folder);
	if (strlen(cas->folder) > PATH_MAX - 2 * LEAT_CAS_NAME)
		return leat_fail(err, LEAT_INVALID, "the path of the store '%s' is too long", folder);
	cas->folder_fd = open(cas->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (cas->folder_fd < 0)
		return leat_fail_errno(err, errno, "cannot open the store '%s'", folder);
	return LEAT_OK;
}

bool
leat_cas_lock_alone(struct leat_cas *cas)
{
	cas->alone = flock(cas->lock_fd, LOCK_EX | LOCK_NB) == 0;
	if (!cas->alone)
		flock(cas->lock_fd, LOCK_SH); /* changing a lock gives it up first */
	return cas->alone;
}

void
leat_cas_share_lock(struct leat_cas *cas)
{
	flock(cas->lock_fd, LOCK_SH);
	cas->alone = false;
}

/* Makes what is missing. Then, if this process is the only one, recovers what others left behind. */
static enum leat_status
prepare(struct leat_cas *cas, struct leat_err *err)
{
	enum leat_status status = make_file(cas, "format", format_text, err);

	if (status == LEAT_OK)
		status = make_file(cas, ".gitignore", "*\n", err);
	if (status == LEAT_OK)
		status = make_folders(cas, err);
	if (status == LEAT_OK && faccessat(cas->folder_fd, ".", W_OK, AT_EACCESS) != 0)
		status = leat_cas_full(err, cas, errno, "build");
	if (status == LEAT_OK)
		status = check_format(cas, err);
	if (status != LEAT_OK)
		return status;
	if (leat_cas_lock_alone(cas)) /* else it waits for a recovery or gc */
		status = leat_runs_recover(cas, err);
	if (status == LEAT_OK && !cas->index)
		status = leat_index_open(cas, err);
	leat_cas_share_lock(cas);
	return status;
}

static enum leat_status
open_store(struct leat_cas **out, struct leat_mem *mem, const char *folder, enum leat_cas_mode mode, bool doubts_index,
           struct leat_err *err)
{
	struct leat_cas *cas = leat_alloc(mem, sizeof(*cas));
	enum leat_status status;

	*out = NULL;
	if (!cas)
		return leat_fail_mem(err, mem, sizeof(*cas), "the content store");
	cas->mem = mem;
	cas->mode = mode;
	cas->doubts_index = doubts_index;
	cas->folder_fd = cas->lock_fd = cas->run_fd = -1;
	pthread_mutex_init(&cas->seen.lock, NULL);
	leat_sync_init(&cas->sync);
	status = open_folder(cas, folder, err);
	if (status == LEAT_OK && mode == LEAT_CAS_WRITE)
		status = prepare(cas, err);
	else if (status == LEAT_OK && (status = check_format(cas, err)) == LEAT_OK)
		status = mode == LEAT_CAS_NODE ? LEAT_OK : leat_index_open(cas, err);
	if (status != LEAT_OK) {
		leat_cas_close(cas);
		return status;
	}
	*out = cas;
	return LEAT_OK;
}

enum leat_status
leat_cas_open(struct leat_cas **cas, struct leat_mem *mem, const char *folder, enum leat_cas_mode mode,
              struct leat_err *err)
{
	return open_store(cas, mem, folder, mode, false, err);
}

enum leat_status
leat_cas_open_doubtful(struct leat_cas **cas, struct leat_mem *mem, const char *folder, enum leat_cas_mode mode,
                       struct leat_err *err)
{
	return open_store(cas, mem, folder, mode, true, err);
}

static void
close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void
leat_cas_close(struct leat_cas *cas)
{
	if (!cas)
		return;
	leat_run_end(cas);
	leat_index_close(cas);
	close_fd(cas->lock_fd);
	close_fd(cas->folder_fd);
	leat_digests_free(&cas->seen.files, cas->mem);
	leat_digests_free(&cas->seen.folders, cas->mem);
	pthread_mutex_destroy(&cas->seen.lock);
	pthread_mutex_destroy(&cas->sync.lock);
	pthread_cond_destroy(&cas->sync.changed);
	leat_free(cas->mem, cas);
}
