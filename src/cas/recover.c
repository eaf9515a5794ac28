/* recover.c - check what a run made whose machine stopped
 *
 * File systems keep the order of names, but not the bytes in them: a file that was renamed a moment before may be
 * empty. All blobs that changed since the oldest of these runs began are read. Times come from the clock, which may
 * have been set back, so empty blobs are looked at in any case. */
#include "cas/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cas/index_inside.h"

enum { SLACK_S = 10 };

struct recovery {
	struct leat_cas *cas;
	time_t since;
};

/* Not too many open files, say: a link, a socket, or a disk that cannot read it. */
static bool
is_damage(int errnum)
{
	return errnum == ELOOP || errnum == ENXIO || errnum == EIO;
}

enum leat_status
leat_blob_check(struct leat_cas *cas, const struct leat_digest *digest, bool *whole, uint64_t *bytes,
                struct leat_err *err)
{
	char name[LEAT_CAS_NAME];
	struct leat_digest found;
	enum leat_status status;
	struct stat file;
	int fd;

	*bytes = 0;
	leat_cas_name("cas", digest, name);
	fd = openat(cas->folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	*whole = fd < 0 && errno == ENOENT;
	if (fd < 0)
		return *whole ? LEAT_OK
		              : leat_fail_errno_as(err, is_damage(errno) ? LEAT_DATA : leat_errno_status(errno), errno,
		                                   "cannot open '%s/%s'", cas->folder, name);
	if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode))
		status = leat_fail(err, LEAT_DATA, "'%s/%s' is not a file", cas->folder, name);
	else
		status = leat_hash_fd(fd, cas->mem, name, NULL, &found, bytes, err);
	close(fd);
	*whole = status == LEAT_OK && leat_digest_equal(&found, digest);
	return status == LEAT_IO ? LEAT_DATA : status; /* the disk cannot read it */
}

bool
leat_manifest_is_damaged(struct leat_cas *cas, const struct leat_digest *key, enum leat_status status)
{
	char name[LEAT_CAS_NAME];
	bool damaged;
	int fd;

	if (status != LEAT_IO)
		return status == LEAT_DATA;
	leat_cas_name("act", key, name);
	fd = openat(cas->folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	damaged = fd >= 0 || is_damage(errno);
	if (fd >= 0)
		close(fd);
	return damaged;
}

static enum leat_status
check_blob(void *arg, const struct leat_digest *digest, struct leat_err *err)
{
	const struct recovery *recovery = arg;
	struct leat_cas *cas = recovery->cas;
	char name[LEAT_CAS_NAME];
	enum leat_status status;
	struct leat_err why;
	struct stat file;
	uint64_t bytes;
	bool whole;

	leat_err_clear(&why);
	leat_cas_name("cas", digest, name);
	if (fstatat(cas->folder_fd, name, &file, AT_SYMLINK_NOFOLLOW) != 0 ||
	    (file.st_ctime < recovery->since && file.st_size > 0))
		return LEAT_OK;
	status = leat_blob_check(cas, digest, &whole, &bytes, &why);
	if (status != LEAT_OK && status != LEAT_DATA)
		return leat_fail_as(err, &why);
	if (whole)
		return LEAT_OK;
	if (unlinkat(cas->folder_fd, name, 0) != 0)
		return leat_cas_full(err, cas, errno, "remove a damaged blob");
	return LEAT_OK;
}

static enum leat_status
check_blobs(void *arg, size_t first, struct leat_err *err)
{
	const struct recovery *recovery = arg;

	return leat_cas_each_in(recovery->cas, "cas", (unsigned)first, check_blob, arg, err);
}

static enum leat_status
check_manifest(void *arg, const struct leat_digest *key, struct leat_err *err)
{
	const struct recovery *recovery = arg;
	struct leat_cas *cas = recovery->cas;
	struct leat_manifest *manifest;
	struct leat_err why;
	char name[LEAT_CAS_NAME];
	enum leat_status status;

	leat_err_clear(&why);
	status = leat_cas_manifest(cas, key, &manifest, &why);
	leat_manifest_free(manifest, cas->mem);
	if (status == LEAT_OK)
		return LEAT_OK;
	if (!leat_manifest_is_damaged(cas, key, status))
		return leat_fail_as(err, &why);
	leat_cas_name("act", key, name);
	if (unlinkat(cas->folder_fd, name, 0) != 0)
		return leat_cas_full(err, cas, errno, "remove a damaged manifest");
	return LEAT_OK;
}

/* Views share their bytes with blobs. */
static enum leat_status
remove_views(struct recovery *recovery, struct leat_err *err)
{
	struct leat_cas *cas = recovery->cas;
	struct leat_entries views;
	enum leat_status status = leat_cas_list(cas, "view", &views, err);

	if (status != LEAT_OK)
		return status;
	for (size_t i = 0; i < views.count; i++) {
		char name[NAME_MAX + 8], path[PATH_MAX];
		struct stat view;

		snprintf(name, sizeof(name), "view/%.*s", NAME_MAX, views.name[i]);
		leat_cas_path(cas, name, path);
		if (lstat(path, &view) == 0 && view.st_ctime >= recovery->since)
			leat_remove_tree(path);
	}
	leat_entries_free(&views, cas->mem);
	return LEAT_OK;
}

/* When the oldest of the runs began. */
static time_t
oldest(struct leat_cas *cas, const struct leat_entries *runs)
{
	time_t since = time(NULL);

	for (size_t i = 0; i < runs->count; i++) {
		char name[LEAT_CAS_NAME];
		struct stat file;
		size_t len = strlen(runs->name[i]);

		if (len < 5 || len >= LEAT_RUN_NAME || strcmp(runs->name[i] + len - 5, ".open") != 0)
			continue;
		snprintf(name, sizeof(name), "runs/%s", runs->name[i]);
		if (fstatat(cas->folder_fd, name, &file, AT_SYMLINK_NOFOLLOW) == 0 && file.st_mtime < since)
			since = file.st_mtime;
	}
	return since - SLACK_S;
}

enum leat_status
leat_recover(struct leat_cas *cas, const struct leat_entries *runs, struct leat_err *err)
{
	struct recovery recovery = {cas, oldest(cas, runs)};
	enum leat_status status = leat_index_distrust(cas, err);

	if (status == LEAT_OK)
		status = leat_parallel(cas->mem, leat_cpus(""), 256, check_blobs, &recovery, err);
	if (status == LEAT_OK)
		status = remove_views(&recovery, err);
	if (status == LEAT_OK)
		status = leat_cas_each(cas, "act", check_manifest, &recovery, err);
	if (status == LEAT_OK)
		status = leat_index_open(cas, err); /* makes it again, and syncs */
	return status;
}
