/* view.c - folders, put together from their trees for programs to read
 *
 * A view is made under tmp/RUN and renamed. Its files are hard links to blobs; where the file system refuses one more,
 * copies. The mtime of its top folder is set to a fixed value, so that a command that adds or removes something there
 * is noticed. Such a view is exchanged for a new one, and the old one stays until the run ends, since somebody may be
 * reading it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cas/inside.h"

enum { VIEW_TIME = 315532800, MAX_ENTRIES = 10000000 }; /* 1980-01-01, as archives have it */

static enum leat_status
missing(const struct leat_cas *cas, const struct leat_digest *digest, struct leat_err *err)
{
	char hex[LEAT_SHA256_HEX];

	leat_hex(digest->byte, sizeof(digest->byte), hex);
	return leat_fail(err, LEAT_DATA, "blob %.12s is not in the store '%s', or damaged; 'leat fsck' says more", hex,
	                 cas->folder);
}

struct walk {
	const struct leat_tree_walk *caller;
	const struct leat_digest *tree;
	size_t depth;
	uint64_t *entries;
};

static enum leat_status walk_tree(const struct walk *walk, struct leat_err *err);

static enum leat_status
walk_entry(void *arg, const char *name, const struct leat_content *content, const char *target, struct leat_err *err)
{
	const struct walk *walk = arg;
	const struct walk inner = {walk->caller, &content->digest, walk->depth + 1, walk->entries};
	enum leat_status status = LEAT_OK;

	(void)name;
	if (target)
		return LEAT_OK;
	/* A few small trees can name billions of files. */
	if (++*walk->entries > MAX_ENTRIES)
		return leat_fail(err, LEAT_LIMIT, "a folder has more than %d entries", MAX_ENTRIES);
	if (content->kind == LEAT_CONTENT_FOLDER)
		status = walk_tree(&inner, err);
	return status == LEAT_OK ? walk->caller->each(walk->caller->arg, content, err) : status;
}

static enum leat_status
walk_tree(const struct walk *walk, struct leat_err *err)
{
	const struct leat_tree_reader reader = {walk_entry, (void *)(uintptr_t)walk};
	struct leat_cas *cas = walk->caller->cas;
	char *text;
	size_t len;
	enum leat_status status;

	if (walk->depth > LEAT_TREE_DEPTH)
		return leat_fail(err, LEAT_DATA, "a tree is more than %d folders deep", LEAT_TREE_DEPTH);
	status = leat_cas_read(cas, walk->tree, LEAT_TREE_MAX, &text, &len, err);
	if (status != LEAT_OK)
		return status;
	status = leat_tree_read(text, len, &reader, err);
	leat_free(cas->mem, text);
	return status;
}

enum leat_status
leat_tree_walk(const struct leat_tree_walk *caller, const struct leat_digest *tree, struct leat_err *err)
{
	uint64_t entries = 0;
	const struct walk walk = {caller, tree, 0, &entries};

	return walk_tree(&walk, err);
}

static void
view_name(const struct leat_content *content, char name[LEAT_CAS_NAME])
{
	char hex[LEAT_SHA256_HEX];

	leat_hex(content->digest.byte, sizeof(content->digest.byte), hex);
	snprintf(name, LEAT_CAS_NAME, "view/%s%s", hex, content->kind == LEAT_CONTENT_FOLDER ? "" : ".x");
}

/* The file, of which there may be a copy with another mode. */
static bool
is_whole(struct leat_cas *cas, const char *name, uint64_t bytes)
{
	struct stat file;

	return fstatat(cas->folder_fd, name, &file, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(file.st_mode) &&
	       (uint64_t)file.st_size == bytes;
}

static enum leat_status
copy_blob(struct leat_cas *cas, const struct leat_digest *digest, mode_t mode, char temp[LEAT_CAS_NAME],
          struct leat_err *err)
{
	char name[LEAT_CAS_NAME];
	enum leat_status status;
	int fd;

	leat_cas_name("cas", digest, name);
	fd = openat(cas->folder_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return missing(cas, digest, err);
	status = leat_cas_copy_temp(cas, fd, mode, temp, err);
	close(fd);
	return status;
}

/* The name of a file with this content and mode, in the store. */
static enum leat_status
view_file(struct leat_cas *cas, const struct leat_content *content, char name[LEAT_CAS_NAME], struct leat_err *err)
{
	char temp[LEAT_CAS_NAME];
	enum leat_status status;

	if (content->kind == LEAT_CONTENT_FILE) {
		leat_cas_name("cas", &content->digest, name);
		return is_whole(cas, name, content->bytes) ? LEAT_OK : missing(cas, &content->digest, err);
	}
	view_name(content, name);
	if (is_whole(cas, name, content->bytes))
		return LEAT_OK;
	status = leat_cas_need_run(cas, err);
	if (status == LEAT_OK)
		status = copy_blob(cas, &content->digest, 0555, temp, err);
	return status == LEAT_OK ? leat_cas_place(cas, cas->folder_fd, temp, name, true, err) : status;
}

struct viewer {
	struct leat_cas *cas;
	int fd; /* of the folder that is filled */
	size_t depth;
	uint64_t *entries;
};

static enum leat_status fill(const struct viewer *viewer, const struct leat_digest *tree, struct leat_err *err);

static enum leat_status
add_folder(const struct viewer *viewer, const char *name, const struct leat_content *content, struct leat_err *err)
{
	struct viewer inner = {viewer->cas, -1, viewer->depth + 1, viewer->entries};
	enum leat_status status;

	if (mkdirat(viewer->fd, name, 0777) != 0 ||
	    (inner.fd = openat(viewer->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) < 0)
		return leat_cas_full(err, viewer->cas, errno, "make a folder");
	status = fill(&inner, &content->digest, err);
	close(inner.fd);
	return status;
}

static enum leat_status
add_file(const struct viewer *viewer, const char *name, const struct leat_content *content, struct leat_err *err)
{
	struct leat_cas *cas = viewer->cas;
	mode_t mode = content->kind == LEAT_CONTENT_EXECUTABLE ? 0555 : 0444;
	char file[LEAT_CAS_NAME];
	enum leat_status status = view_file(cas, content, file, err);

	if (status != LEAT_OK || linkat(cas->folder_fd, file, viewer->fd, name, 0) == 0)
		return status;
	if (errno != EMLINK && errno != EPERM && errno != EXDEV && errno != EOPNOTSUPP)
		return leat_cas_full(err, cas, errno, "link a file");
	status = copy_blob(cas, &content->digest, mode, file, err);
	if (status == LEAT_OK && renameat(cas->folder_fd, file, viewer->fd, name) != 0)
		status = leat_cas_full(err, cas, errno, "copy a file");
	return status;
}

static enum leat_status
add_entry(void *arg, const char *name, const struct leat_content *content, const char *target, struct leat_err *err)
{
	const struct viewer *viewer = arg;

	if (++*viewer->entries > MAX_ENTRIES)
		return leat_fail(err, LEAT_LIMIT, "a folder has more than %d entries", MAX_ENTRIES);
	if (content->kind == LEAT_CONTENT_FOLDER)
		return add_folder(viewer, name, content, err);
	if (!target)
		return add_file(viewer, name, content, err);
	if (!leat_link_stays(target, viewer->depth))
		return leat_fail(err, LEAT_DATA, "the link '%s' to '%s' leaves its folder", name, target);
	return symlinkat(target, viewer->fd, name) == 0 ? LEAT_OK
	                                                : leat_cas_full(err, viewer->cas, errno, "make a link");
}

static enum leat_status
fill(const struct viewer *viewer, const struct leat_digest *tree, struct leat_err *err)
{
	const struct leat_tree_reader reader = {add_entry, (void *)(uintptr_t)viewer};
	char *text;
	size_t len;
	enum leat_status status;

	if (viewer->depth > LEAT_TREE_DEPTH)
		return leat_fail(err, LEAT_DATA, "a tree is more than %d folders deep", LEAT_TREE_DEPTH);
	status = leat_cas_read(viewer->cas, tree, LEAT_TREE_MAX, &text, &len, err);
	if (status != LEAT_OK)
		return status;
	status = leat_tree_read(text, len, &reader, err);
	leat_free(viewer->cas->mem, text);
	return status;
}

bool
leat_view_is_untouched(struct leat_cas *cas, const char *name)
{
	struct stat folder;

	return fstatat(cas->folder_fd, name, &folder, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(folder.st_mode) &&
	       folder.st_mtim.tv_sec == VIEW_TIME && folder.st_mtim.tv_nsec == 0;
}

bool
leat_cas_view_is_untouched(struct leat_cas *cas, const struct leat_content *folder)
{
	char name[LEAT_CAS_NAME];

	view_name(folder, name);
	return leat_view_is_untouched(cas, name);
}

static enum leat_status
make_folder(struct leat_cas *cas, const struct leat_content *content, const char *temp, struct leat_err *err)
{
	static const struct timespec times[2] = {{VIEW_TIME, 0}, {VIEW_TIME, 0}};
	uint64_t entries = 0;
	struct viewer viewer = {cas, -1, 0, &entries};
	enum leat_status status;

	if (mkdirat(cas->folder_fd, temp, 0777) != 0 ||
	    (viewer.fd = openat(cas->folder_fd, temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return leat_cas_full(err, cas, errno, "make a folder");
	status = fill(&viewer, &content->digest, err);
	if (status == LEAT_OK && futimens(viewer.fd, times) != 0)
		status = leat_cas_full(err, cas, errno, "make a folder");
	close(viewer.fd);
	return status;
}

/* Puts the new view in its place. One that another thread or process made meanwhile is as good. */
static enum leat_status
place_folder(struct leat_cas *cas, const char *temp, const char *name, struct leat_err *err)
{
	char aside[LEAT_CAS_NAME];

	if (renameat(cas->folder_fd, temp, cas->folder_fd, name) == 0 || leat_view_is_untouched(cas, name)) {
		leat_sync_mark(cas);
		return LEAT_OK;
	}
	if (errno != EEXIST && errno != ENOTEMPTY)
		return leat_cas_full(err, cas, errno, "make a folder");
	if (renameat2(cas->folder_fd, temp, cas->folder_fd, name, RENAME_EXCHANGE) == 0)
		return LEAT_OK;
	leat_cas_temp_name(cas, aside);
	if (renameat(cas->folder_fd, name, cas->folder_fd, aside) != 0 ||
	    renameat(cas->folder_fd, temp, cas->folder_fd, name) != 0)
		return leat_cas_full(err, cas, errno, "make a folder");
	return LEAT_OK;
}

static enum leat_status
view_folder(struct leat_cas *cas, const struct leat_content *content, char name[LEAT_CAS_NAME], struct leat_err *err)
{
	char temp[LEAT_CAS_NAME];
	enum leat_status status;

	view_name(content, name);
	if (leat_view_is_untouched(cas, name))
		return LEAT_OK;
	status = leat_cas_need_run(cas, err);
	if (status != LEAT_OK)
		return status;
	leat_cas_temp_name(cas, temp); /* what is left of it goes with the run */
	status = make_folder(cas, content, temp, err);
	return status == LEAT_OK ? place_folder(cas, temp, name, err) : status;
}

enum leat_status
leat_cas_view(struct leat_cas *cas, const struct leat_content *content, char path[PATH_MAX], struct leat_err *err)
{
	char name[LEAT_CAS_NAME] = "";
	enum leat_status status;

	if (content->kind == LEAT_CONTENT_NONE)
		return leat_fail(err, LEAT_INVALID, "there is no content to show");
	status = content->kind == LEAT_CONTENT_FOLDER ? view_folder(cas, content, name, err)
	                                              : view_file(cas, content, name, err);
	leat_cas_path(cas, name, path);
	return status;
}

void
leat_cas_forget(struct leat_cas *cas, const struct leat_content *content)
{
	char name[LEAT_CAS_NAME], path[PATH_MAX];

	if (content->kind == LEAT_CONTENT_FOLDER || content->kind == LEAT_CONTENT_EXECUTABLE) {
		view_name(content, name);
		leat_cas_path(cas, name, path);
		leat_remove_tree(path);
	}
	if (content->kind == LEAT_CONTENT_FILE || content->kind == LEAT_CONTENT_EXECUTABLE) {
		leat_cas_name("cas", &content->digest, name);
		unlinkat(cas->folder_fd, name, 0);
	}
	leat_cas_unsee(cas);
}
