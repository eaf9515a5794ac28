/* fsck.c - read all of a store, and say what is damaged
 *
 * Blobs are hashed by several threads, a folder each. Removing a damaged blob is a repair: whatever needs it makes it
 * again. Views share the bytes of blobs, so all views with a damaged file go, too. */
#include "cas/fsck.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cas/gc.h"
#include "cas/index_inside.h"
#include "cas/recover.h"

struct fsck {
	struct leat_cas *cas;
	const struct leat_fsck_options *options;
	struct leat_fsck_result *result;
	pthread_mutex_t lock; /* guards the result and the listener */
	bool repair;
	size_t rows; /* of the index, before the manifests were listed */
};

static void __attribute__((format(printf, 2, 3))) report(struct fsck *fsck, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	leat_vformat(text, sizeof(text), fmt, ap);
	va_end(ap);
	pthread_mutex_lock(&fsck->lock);
	fsck->result->damaged++;
	if (fsck->options->problem)
		fsck->options->problem(fsck->options->arg, text);
	pthread_mutex_unlock(&fsck->lock);
}

static enum leat_status
remove_file(struct fsck *fsck, const char *name, struct leat_err *err)
{
	if (!fsck->repair || unlinkat(fsck->cas->folder_fd, name, 0) == 0 || errno == ENOENT)
		return LEAT_OK;
	return leat_cas_full(err, fsck->cas, errno, "remove a damaged file");
}

static enum leat_status
check_blob(void *arg, const struct leat_digest *digest, struct leat_err *err)
{
	struct fsck *fsck = arg;
	struct leat_err why;
	char name[LEAT_CAS_NAME];
	uint64_t bytes = 0;
	bool whole;
	enum leat_status status;

	leat_err_clear(&why);
	status = leat_blob_check(fsck->cas, digest, &whole, &bytes, &why);
	if (status != LEAT_OK && status != LEAT_DATA)
		return leat_fail_as(err, &why);
	pthread_mutex_lock(&fsck->lock);
	fsck->result->blobs++;
	fsck->result->bytes += bytes;
	pthread_mutex_unlock(&fsck->lock);
	if (whole)
		return LEAT_OK;
	leat_cas_name("cas", digest, name);
	if (status == LEAT_OK)
		report(fsck, "%s: its content does not match its hash", name);
	else
		report(fsck, "%s: %s", name, why.text);
	return remove_file(fsck, name, err);
}

static enum leat_status
check_blobs(void *arg, size_t first, struct leat_err *err)
{
	struct fsck *fsck = arg;

	return leat_cas_each_in(fsck->cas, "cas", (unsigned)first, check_blob, fsck, err);
}

/* Is the row of the index that of this manifest? */
static bool
is_indexed(struct fsck *fsck, const struct leat_manifest *manifest)
{
	struct leat_made_row row;
	MDB_val value;
	bool same = false;

	if (!leat_index_look(fsck->cas, NULL))
		return false;
	if (leat_index_get(fsck->cas->index, LEAT_TABLE_MADE, &manifest->key, sizeof(manifest->key), &value) == 0 &&
	    leat_row_names(&value)) {
		memcpy(&row, value.mv_data, sizeof(row));
		same = row.made.number == manifest->number && leat_content_equal(&row.made.output, &manifest->output);
	}
	leat_index_looked(fsck->cas);
	return same;
}

/* A build that runs writes the manifest first. It may have ended meanwhile, so the index is asked again. */
static bool
is_lost(struct fsck *fsck, const struct leat_manifest *manifest)
{
	return !is_indexed(fsck, manifest) && !leat_cas_run_is_open(fsck->cas, manifest->run) &&
	       !is_indexed(fsck, manifest);
}

static enum leat_status
check_manifest(void *arg, const struct leat_digest *key, struct leat_err *err)
{
	struct fsck *fsck = arg;
	struct leat_manifest *manifest;
	struct leat_err why;
	char name[LEAT_CAS_NAME];
	enum leat_status status;

	leat_err_clear(&why);
	leat_cas_name("act", key, name);
	status = leat_cas_manifest(fsck->cas, key, &manifest, &why);
	if (status != LEAT_OK && !leat_manifest_is_damaged(fsck->cas, key, status))
		return leat_fail_as(err, &why);
	fsck->result->manifests++;
	if (status != LEAT_OK) {
		report(fsck, "%s", why.text);
		return remove_file(fsck, name, err);
	}
	fsck->result->missing += !leat_cas_has(fsck->cas, &manifest->output);
	if (is_lost(fsck, manifest)) {
		report(fsck, "%s: %s-%llu is not in the index", name, manifest->step,
		       (unsigned long long)manifest->number);
	}
	leat_manifest_free(manifest, fsck->cas->mem);
	return LEAT_OK;
}

static enum leat_status
count_rows(struct fsck *fsck, struct leat_err *err)
{
	struct leat_index *index = fsck->cas->index;
	MDB_stat table;

	if (!leat_index_look(fsck->cas, err))
		return LEAT_DATA;
	if (mdb_stat(index->read, index->table[LEAT_TABLE_MADE], &table) == 0)
		fsck->rows = table.ms_entries;
	leat_index_looked(fsck->cas);
	return LEAT_OK;
}

/* Rows without a manifest. */
static void
check_rows(struct fsck *fsck)
{
	if (fsck->cas->index->is_remade) {
		report(fsck, "index: it was damaged, or of another version");
	} else if (fsck->cas->index->is_temporary) {
		report(fsck, "index: it is missing, damaged, or of another version");
	} else if (fsck->rows > fsck->result->manifests) {
		report(fsck, "index: it has %zu results, but there are %zu manifests", fsck->rows,
		       fsck->result->manifests);
	}
}

/* A folder of a view, compared with its tree. */
struct view {
	struct fsck *fsck;
	int fd;
	size_t depth;
};

static bool
has_digest(struct fsck *fsck, int folder_fd, const char *name, const struct leat_digest *digest)
{
	int fd = openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct leat_digest found;
	uint64_t bytes;
	bool same = fd >= 0 && leat_hash_fd(fd, fsck->cas->mem, name, NULL, &found, &bytes, NULL) == LEAT_OK &&
	            leat_digest_equal(&found, digest);

	if (fd >= 0)
		close(fd);
	return same;
}

/* A link to the blob was checked with it. */
static bool
is_file_whole(const struct view *view, const char *name, const struct leat_digest *digest)
{
	int folder_fd = view->fsck->cas->folder_fd;
	char blob[LEAT_CAS_NAME];
	struct stat file, original;

	leat_cas_name("cas", digest, blob);
	return (fstatat(view->fd, name, &file, AT_SYMLINK_NOFOLLOW) == 0 &&
	        fstatat(folder_fd, blob, &original, AT_SYMLINK_NOFOLLOW) == 0 && file.st_ino == original.st_ino &&
	        file.st_dev == original.st_dev) ||
	       has_digest(view->fsck, view->fd, name, digest);
}

static bool is_folder_whole(struct fsck *fsck, int parent_fd, const char *name, const struct leat_digest *tree,
                            size_t depth);

static enum leat_status
check_entry(void *arg, const char *name, const struct leat_content *content, const char *target, struct leat_err *err)
{
	const struct view *view = arg;
	bool whole;

	(void)err;
	if (target)
		return LEAT_OK;
	whole = content->kind == LEAT_CONTENT_FOLDER
	                ? is_folder_whole(view->fsck, view->fd, name, &content->digest, view->depth + 1)
	                : is_file_whole(view, name, &content->digest);
	return whole ? LEAT_OK : LEAT_END;
}

static bool
is_folder_whole(struct fsck *fsck, int parent_fd, const char *name, const struct leat_digest *tree, size_t depth)
{
	struct view view = {.fsck = fsck, .depth = depth};
	const struct leat_tree_reader reader = {check_entry, &view};
	char *text = NULL;
	size_t len;
	bool whole;

	view.fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	whole = view.fd >= 0 && depth <= LEAT_TREE_DEPTH &&
	        leat_cas_read(fsck->cas, tree, LEAT_TREE_MAX, &text, &len, NULL) == LEAT_OK &&
	        leat_tree_read(text, len, &reader, NULL) == LEAT_OK;
	leat_free(fsck->cas->mem, text);
	if (view.fd >= 0)
		close(view.fd);
	return whole;
}

static bool
is_view_whole(struct fsck *fsck, const char *file, const char *name)
{
	char hex[LEAT_SHA256_HEX];
	struct leat_digest digest;

	snprintf(hex, sizeof(hex), "%.64s", file);
	if (!leat_digest_parse(hex, &digest))
		return false;
	if (strlen(file) > 64) /* HASH.x, an executable */
		return has_digest(fsck, fsck->cas->folder_fd, name, &digest);
	return leat_view_is_untouched(fsck->cas, name) && is_folder_whole(fsck, fsck->cas->folder_fd, name, &digest, 0);
}

static void
check_view(struct fsck *fsck, const char *file)
{
	char name[NAME_MAX + 8], path[PATH_MAX];

	snprintf(name, sizeof(name), "view/%.*s", NAME_MAX, file);
	fsck->result->views++;
	if (is_view_whole(fsck, file, name))
		return;
	report(fsck, "%s: differs from the folder it should show", name);
	leat_cas_path(fsck->cas, name, path);
	if (fsck->repair)
		leat_remove_tree(path);
}

static enum leat_status
check_views(struct fsck *fsck, struct leat_err *err)
{
	struct leat_entries views;
	enum leat_status status = leat_cas_list(fsck->cas, "view", &views, err);

	if (status != LEAT_OK)
		return status;
	for (size_t i = 0; i < views.count; i++)
		check_view(fsck, views.name[i]);
	leat_entries_free(&views, fsck->cas->mem);
	return status;
}

static enum leat_status
check_ref(void *arg, const char *name, const struct leat_content *content, struct leat_err *err)
{
	(void)arg, (void)name, (void)content, (void)err;
	return LEAT_OK;
}

static enum leat_status
check_all(struct fsck *fsck, struct leat_err *err)
{
	struct leat_cas *cas = fsck->cas;
	struct leat_err why;
	enum leat_status status = leat_parallel(cas->mem, fsck->options->threads, 256, check_blobs, fsck, err);

	leat_err_clear(&why);
	if (fsck->repair)
		leat_cas_unsee(cas);
	if (status == LEAT_OK)
		status = count_rows(fsck, err);
	if (status == LEAT_OK)
		status = leat_cas_each(cas, "act", check_manifest, fsck, err);
	if (status == LEAT_OK) {
		check_rows(fsck);
		status = check_views(fsck, err);
	}
	if (status == LEAT_OK && leat_refs_each(cas, check_ref, NULL, &why) != LEAT_OK)
		report(fsck, "%s", why.text);
	return status;
}

enum leat_status
leat_cas_fsck(struct leat_cas *cas, const struct leat_fsck_options *options, struct leat_fsck_result *result,
              struct leat_err *err)
{
	struct fsck fsck = {.cas = cas, .options = options, .result = result, .repair = options->repair};
	enum leat_status status;

	memset(result, 0, sizeof(*result));
	if (options->repair && (cas->mode != LEAT_CAS_WRITE || cas->run_fd >= 0))
		return leat_fail(err, LEAT_INVALID, "the store '%s' is not open for repairs", cas->folder);
	if (options->repair && !leat_cas_lock_alone(cas)) {
		result->busy = true;
		return LEAT_OK;
	}
	pthread_mutex_init(&fsck.lock, NULL);
	status = check_all(&fsck, err);
	/* Wrong bytes in a row are not seen from outside. */
	if (status == LEAT_OK && options->repair && !cas->index->is_remade)
		status = leat_index_remake(cas, err);
	pthread_mutex_destroy(&fsck.lock);
	if (options->repair)
		leat_cas_share_lock(cas);
	return status;
}
