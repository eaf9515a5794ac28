/* file.c - local files: names, listing and versions
 *
 * A file's version is its inode, modification time and change time. Programs cannot set the
 * change time, so a file that was rewritten with the same size and mtime is detected too.
 * (A chmod or a new hard link also changes it. Those are rare while a feed is open, and a
 * false alarm is better than silently reading other bytes.)
 *
 * Listings are not sorted here. Callers sort bytewise, so the order does not depend on the
 * locale or the file system. */
#include "store/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

/* ---- versions ---- */

static int64_t
nanoseconds(struct timespec t)
{
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool
others_write(const struct stat *st)
{
	return st->st_mode & (S_IWGRP | S_IWOTH);
}

void
leat_file_describe(const struct stat *st, struct leat_object *object)
{
	uint64_t word[] = {(uint64_t)st->st_ino, (uint64_t)nanoseconds(st->st_mtim),
	                   (uint64_t)nanoseconds(st->st_ctim)};

	object->size = (uint64_t)st->st_size;
	object->mtime_ns = nanoseconds(st->st_mtim);
	object->owner = (uint32_t)st->st_uid;
	object->others_write = others_write(st);
	object->version.len = sizeof(word);
	memcpy(object->version.bytes, word, sizeof(word));
}

enum leat_status
leat_file_compare(const struct leat_object *object, const struct stat *st, const char *path, struct leat_err *err)
{
	const char *remedy = object->remedy ? object->remedy : "open the feed again";
	struct leat_object now;

	if (!S_ISREG(st->st_mode))
		return leat_fail(err, LEAT_DATA, "'%s' is not a regular file", path);
	leat_file_describe(st, &now);
	if (now.size != object->size)
		return leat_fail(err, LEAT_DATA,
		                 "'%s' has changed: it had %" PRIu64 " bytes and now has %" PRIu64 "; %s", path,
		                 object->size, now.size, remedy);
	if ((object->version.len && !leat_version_equal(&now.version, &object->version)) ||
	    (object->token && leat_object_token(&now) != object->token))
		return leat_fail(err, LEAT_DATA, "'%s' has changed since it was opened; %s", path, remedy);
	return LEAT_OK;
}

/* ---- names ---- */

/* In place. False: a % without two hex digits, or %00. */
static bool
percent_decode(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		if (*from == '%') {
			int high = leat_hex_digit(from[1]), low = high < 0 ? -1 : leat_hex_digit(from[2]);

			if (low < 0 || (high | low) == 0)
				return false;
			*to++ = (char)(high << 4 | low);
			from += 2;
		} else {
			*to++ = *from;
		}
	}
	*to = '\0';
	return true;
}

/* Turns a file: URI or a plain path into a path; both may be patterns. A shell expands no ~ inside quotes. */
static enum leat_status
resolve(struct leat_store *store, const char *text, char **path, struct leat_err *err)
{
	bool is_uri = strncmp(text, "file:", 5) == 0;
	const char *rest = text;

	if (is_uri) {
		rest = text + 5;
		if (strncmp(rest, "//localhost/", 12) == 0)
			rest += 11;
		else if (strncmp(rest, "///", 3) == 0)
			rest += 2;
		else if (strncmp(rest, "//", 2) == 0)
			return leat_fail(err, LEAT_INVALID, "'%s' names another host: write file:///path", text);
	}
	*path = is_uri ? leat_strdup(store->mem, rest) : leat_expand_home(store->mem, rest);
	if (!*path)
		return leat_fail_mem(err, store->mem, strlen(rest) + 1, "a file name");
	if (is_uri && (!percent_decode(*path) || !**path)) {
		leat_free(store->mem, *path);
		*path = NULL;
		return leat_fail(err, LEAT_INVALID, "'%s' is not a valid file: URI", text);
	}
	return LEAT_OK;
}

static char *
absolute(struct leat_store *store, const char *path)
{
	char *found = realpath(path, NULL), *copy = found ? leat_strdup(store->mem, found) : NULL;

	free(found);
	return copy;
}

/* ---- lists ---- */

/* Follows a link, and tells whether it is one, in one call if it is none. False: errno is set. */
static bool
stat_entry(int fd, const char *name, struct stat *st, bool *is_link)
{
	if (fstatat(fd, name, st, AT_SYMLINK_NOFOLLOW) != 0)
		return false;
	*is_link = S_ISLNK(st->st_mode);
	return !*is_link || fstatat(fd, name, st, 0) == 0;
}

static enum leat_status
look(struct leat_store *store, const char *path, struct leat_object *object, struct leat_err *err)
{
	struct leat_file_store *files = leat_file_store_of(store);
	struct stat st;
	int tried = 0;

	*object = (struct leat_object){.store = store, .uri = path, .uri_len = strlen(path)};
	while (!stat_entry(files->cwd, path, &st, &object->is_link))
		if (!leat_file_try_again(files, &tried, errno))
			return leat_file_fail_open(err, errno, path);
	if (S_ISDIR(st.st_mode))
		return leat_fail(err, LEAT_INVALID, "'%s' is a folder: name its files, as in '%s/*'", path, path);
	if (!S_ISREG(st.st_mode))
		return leat_fail(err, LEAT_INVALID, "'%s' is not a regular file", path);
	leat_file_describe(&st, object);
	return LEAT_OK;
}

/* Arguments of `list`. */
struct visitor {
	struct leat_store *store;
	leat_object_visit *visit;
	void *arg;
};

static enum leat_status
visit_readable(void *arg, const char *path, struct leat_err *err)
{
	const struct visitor *visitor = arg;
	struct leat_object object;
	enum leat_status status = look(visitor->store, path, &object, err);

	if (status == LEAT_DATA) { /* nothing was opened yet, so it is no damage */
		status = LEAT_IO;
		if (err)
			err->status = status;
	}
	if (status == LEAT_OK && faccessat(AT_FDCWD, path, R_OK, AT_EACCESS) != 0)
		status = leat_fail_errno(err, errno, "cannot read '%s'", path);
	return status == LEAT_OK ? visitor->visit(visitor->arg, &object, err) : status;
}

static enum leat_status
list(struct leat_store *store, const char *pattern, leat_object_visit *visit, void *arg, struct leat_err *err)
{
	struct visitor visitor = {store, visit, arg};
	struct stat st;

	if (stat(pattern, &st) == 0 || !strpbrk(pattern, "*?["))
		return visit_readable(&visitor, pattern, err);
	return leat_file_match(store, pattern, visit_readable, &visitor, err);
}

/* readdir tells which entries are folders; everything else needs a stat. */
static enum leat_status
describe_entry(struct leat_file_store *store, int fd, const char *folder, const struct dirent *dirent,
               struct leat_entry *entry, struct leat_err *err)
{
	struct leat_object object;
	struct stat st;
	int tried = 0;

	*entry = (struct leat_entry){.name = dirent->d_name, .is_folder = dirent->d_type == DT_DIR};
	if (entry->is_folder)
		return LEAT_OK;
	while (!stat_entry(fd, dirent->d_name, &st, &entry->is_link)) {
		entry->is_missing = leat_file_is_missing(errno);
		if (entry->is_missing)
			return LEAT_OK;
		if (!leat_file_try_again(store, &tried, errno))
			return leat_fail_errno(err, errno, "cannot read '%s/%s'", folder, dirent->d_name);
	}
	entry->is_folder = S_ISDIR(st.st_mode);
	entry->is_missing = !entry->is_folder && !S_ISREG(st.st_mode);
	leat_file_describe(&st, &object);
	entry->size = object.size;
	entry->token = leat_object_token(&object);
	return LEAT_OK;
}

DIR *
leat_file_open_folder(struct leat_file_store *store, const char *folder)
{
	int tried = 0;
	DIR *dir;

	do {
		dir = opendir(*folder ? folder : ".");
	} while (!dir && leat_file_try_again(store, &tried, errno));
	return dir;
}

/* Gets the folder's mtime before reading it, so a change during the listing makes that mtime out of date. */
static enum leat_status
list_folder(struct leat_store *store, const char *folder, leat_entry_visit *visit, void *arg, struct leat_folder_id *id,
            struct leat_err *err)
{
	DIR *dir = leat_file_open_folder(leat_file_store_of(store), folder);
	enum leat_status status = LEAT_OK;
	struct dirent *dirent;
	struct stat st;

	if (!dir || fstat(dirfd(dir), &st) != 0) {
		status = leat_fail_errno(err, errno, "cannot read the folder '%s'", folder);
		goto out;
	}
	*id = (struct leat_folder_id){{(uint64_t)st.st_dev, (uint64_t)st.st_ino},
	                              nanoseconds(st.st_mtim),
	                              (uint32_t)st.st_uid,
	                              others_write(&st)};
	while (visit && status == LEAT_OK && (errno = 0, dirent = readdir(dir)) != NULL) {
		struct leat_entry entry;

		if (strcmp(dirent->d_name, ".") == 0 || strcmp(dirent->d_name, "..") == 0)
			continue;
		status = describe_entry(leat_file_store_of(store), dirfd(dir), folder, dirent, &entry, err);
		if (status == LEAT_OK)
			status = visit(arg, &entry, err);
	}
	if (visit && status == LEAT_OK && errno != 0)
		status = leat_fail_errno(err, errno, "cannot read the folder '%s'", folder);
out:
	if (dir)
		closedir(dir);
	return status;
}

static enum leat_status
remove_file(struct leat_store *store, const char *path, struct leat_err *err)
{
	(void)store;
	return unlink(path) == 0 ? LEAT_OK : leat_fail_errno(err, errno, "cannot remove '%s'", path);
}

static enum leat_status
make_folder(struct leat_store *store, const char *folder, struct leat_err *err)
{
	char *path = leat_strdup(store->mem, folder);
	enum leat_status status = LEAT_OK;

	if (!path)
		return leat_fail_mem(err, store->mem, strlen(folder) + 1, "a file name");
	for (char *end = path; end && status == LEAT_OK;) {
		end = strchr(end + 1, '/');
		if (end)
			*end = '\0';
		if (mkdir(path, 0777) != 0 && errno != EEXIST)
			status = leat_fail_errno(err, errno, "cannot create the folder '%s'", path);
		if (end)
			*end = '/';
	}
	leat_free(store->mem, path);
	return status;
}

/* ---- the store ---- */

static void
close_store(struct leat_store *base)
{
	struct leat_file_store *store = leat_file_store_of(base);

	leat_file_io_close(store);
	leat_file_reads_close(store);
	if (store->cwd >= 0)
		close(store->cwd);
	leat_free(base->mem, store);
}

static enum leat_status
open_store(const struct leat_store_kind *kind, const struct leat_storage *storage, struct leat_mem *mem,
           struct leat_store **result, struct leat_err *err)
{
	struct leat_file_store *store = leat_alloc(mem, sizeof(*store));
	enum leat_status status;

	(void)storage;
	*result = NULL;
	if (!store)
		return leat_fail_mem(err, mem, sizeof(*store), "access to files");
	store->base = (struct leat_store){.kind = kind, .mem = mem};
	store->recheck_ns = 1000000000;
	store->cwd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (store->cwd < 0)
		store->cwd = AT_FDCWD;
	leat_file_io_open(store);
	status = leat_file_reads_open(store, err);
	if (status != LEAT_OK)
		close_store(&store->base);
	else
		*result = &store->base;
	return status;
}

const struct leat_store_kind leat_store_file = {
	.scheme = "file",
	.doc = "Local files: a path, or file:///path.",
	.threads = LEAT_FILE_IO_THREADS,
	.open = open_store,
	.close = close_store,
	.resolve = resolve,
	.absolute = absolute,
	.list = list,
	.list_folder = list_folder,
	.look = look,
	.keep = leat_file_keep,
	.forget = leat_file_forget,
	.read_now = leat_file_read_now,
	.read = leat_file_read,
	.submit = leat_file_submit,
	.cancel = leat_file_cancel,
	.map = leat_file_map,
	.bring = leat_file_map_bring,
	.check = leat_file_check_map,
	.gather = leat_file_gather,
	.begin = leat_file_begin,
	.append = leat_file_append,
	.patch = leat_file_patch,
	.finish = leat_file_finish,
	.commit = leat_file_commit,
	.abort = leat_file_abort,
	.remove = remove_file,
	.lock = leat_file_lock,
	.unlock = leat_file_unlock,
	.sweep = leat_file_sweep,
	.make_folder = make_folder,
};
