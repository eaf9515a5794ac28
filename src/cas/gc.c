/* gc.c - remove results that nobody used for long, and what nobody refers to
 *
 * All blobs are listed, and counted for each result that needs them. Removing a result takes its counts back; a blob
 * that nobody counts any more goes. Manifests go first and blobs last, so that a manifest does not promise what is
 * gone; the index is marked before, and made again if gc is killed. */
#include "cas/gc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "cas/index_inside.h"

struct blob {
	struct leat_digest digest;
	uint64_t bytes;
	time_t changed;
	size_t users;    /* results, refs and run logs that need it */
	bool of_results; /* some result needed it */
};

struct result {
	struct leat_digest key, log;
	struct leat_content output;
	double used_s;
	bool is_last, is_kept, is_removed;
};

struct gc {
	struct leat_cas *cas;
	const struct leat_gc_options *options;
	struct blob *blob;
	size_t blobs, blob_cap;
	struct result *result;
	size_t results, result_cap;
	time_t now;
	uint64_t bytes; /* of all blobs that stay */
};

static int
compare_digests(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct leat_digest)); /* the first member of what is sorted by it */
}

static enum leat_status
add_blob(void *arg, const struct leat_digest *digest, struct leat_err *err)
{
	struct gc *gc = arg;
	char name[LEAT_CAS_NAME];
	struct stat file;
	enum leat_status status;

	leat_cas_name("cas", digest, name);
	if (fstatat(gc->cas->folder_fd, name, &file, AT_SYMLINK_NOFOLLOW) != 0)
		return LEAT_OK;
	status = LEAT_GROW(gc->cas->mem, gc->blob, gc->blob_cap, gc->blobs + 1, SIZE_MAX, "the list of blobs", err);
	if (status == LEAT_OK)
		gc->blob[gc->blobs++] = (struct blob){*digest, (uint64_t)file.st_size, file.st_ctime, 0, false};
	return status;
}

static struct blob *
find_blob(const struct gc *gc, const struct leat_digest *digest)
{
	return gc->blobs ? bsearch(digest, gc->blob, gc->blobs, sizeof(*gc->blob), compare_digests) : NULL;
}

/* Adds `by` users, or takes them away. */
struct change {
	struct gc *gc;
	bool add;
};

static enum leat_status
change_blob(void *arg, const struct leat_content *content, struct leat_err *err)
{
	const struct change *change = arg;
	struct blob *blob = find_blob(change->gc, &content->digest);

	(void)err;
	if (blob && change->add) {
		blob->users++;
		blob->of_results = true;
	} else if (blob && --blob->users == 0) {
		change->gc->bytes -= blob->bytes;
	}
	return LEAT_OK;
}

static enum leat_status
change_content(struct gc *gc, const struct leat_content *content, bool add, struct leat_err *err)
{
	struct change change = {gc, add};
	const struct leat_tree_walk walk = {gc->cas, change_blob, &change};
	struct leat_err why;
	enum leat_status status;

	leat_err_clear(&why);
	status = content->kind == LEAT_CONTENT_FOLDER ? leat_tree_walk(&walk, &content->digest, &why) : LEAT_OK;
	if (status == LEAT_NOMEM || status == LEAT_IO)
		return leat_fail_as(err, &why); /* else a tree is gone or damaged, and so is what is in it */
	return change_blob(&change, content, err);
}

static enum leat_status
change_result(struct gc *gc, const struct result *result, bool add, struct leat_err *err)
{
	const struct leat_content log = {.digest = result->log, .kind = LEAT_CONTENT_FILE};
	enum leat_status status = change_content(gc, &result->output, add, err);

	return status == LEAT_OK ? change_content(gc, &log, add, err) : status;
}

/* Step and slice follow the row. */
static bool
is_last(struct leat_index *index, const MDB_val *row, const struct leat_digest *key)
{
	const char *step = (const char *)row->mv_data + sizeof(struct leat_made_row);
	struct leat_index_key name;
	struct leat_made last;
	MDB_val value;

	leat_index_key(&name, step, step + strlen(step) + 1);
	if (leat_index_get(index, LEAT_TABLE_LAST, name.byte, name.len, &value) != 0 || value.mv_size != sizeof(last))
		return false;
	memcpy(&last, value.mv_data, sizeof(last));
	return leat_digest_equal(&last.key, key);
}

static double
last_use(struct leat_index *index, const struct leat_made_row *row)
{
	struct leat_stem_key name;
	struct leat_stem_row stem;
	double used = row->begun_s + (double)row->made.seconds;
	MDB_val value;

	leat_stem_key(&name, &row->stem, row->made.number, &row->made.key);
	if (leat_index_get(index, LEAT_TABLE_STEM, &name, sizeof(name), &value) == 0 && value.mv_size == sizeof(stem)) {
		memcpy(&stem, value.mv_data, sizeof(stem));
		if ((double)(stem.used_day + 1) * 86400 - 1 > used && stem.used_day > row->begun_s / 86400)
			used = (double)(stem.used_day + 1) * 86400 - 1; /* the end of that day */
	}
	return used;
}

static enum leat_status
add_result(struct gc *gc, const MDB_val *value, struct leat_err *err)
{
	struct leat_index *index = gc->cas->index;
	struct leat_made_row row;
	enum leat_status status = LEAT_GROW(gc->cas->mem, gc->result, gc->result_cap, gc->results + 1, SIZE_MAX,
	                                    "the list of results", err);

	if (status != LEAT_OK)
		return status;
	memcpy(&row, value->mv_data, sizeof(row));
	gc->result[gc->results++] = (struct result){.key = row.made.key,
	                                            .log = row.log,
	                                            .output = row.made.output,
	                                            .used_s = last_use(index, &row),
	                                            .is_last = is_last(index, value, &row.made.key)};
	return LEAT_OK;
}

static enum leat_status
read_results(struct gc *gc, struct leat_err *err)
{
	struct leat_index *index = gc->cas->index;
	MDB_cursor *cursor;
	MDB_val key, value;
	enum leat_status status = LEAT_OK;
	int failure;

	if (!leat_index_look(gc->cas, err))
		return LEAT_DATA;
	failure = mdb_cursor_open(index->read, index->table[LEAT_TABLE_MADE], &cursor);
	if (!failure) {
		while (status == LEAT_OK && !(failure = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)))
			if (leat_row_names(&value))
				status = add_result(gc, &value, err);
		mdb_cursor_close(cursor);
	}
	leat_index_looked(gc->cas);
	if (status == LEAT_OK && failure && failure != MDB_NOTFOUND)
		status = leat_index_fail(err, gc->cas, failure, "read the index");
	if (gc->results > 1)
		qsort(gc->result, gc->results, sizeof(*gc->result), compare_digests);
	return status;
}

static enum leat_status
count_one(void *arg, const struct leat_digest *digest, struct leat_err *err)
{
	(void)digest, (void)err;
	++*(size_t *)arg;
	return LEAT_OK;
}

/* The index must know all manifests, or gc would remove what they need. */
static enum leat_status
check_index(struct gc *gc, struct leat_err *err)
{
	size_t manifests = 0;
	enum leat_status status = leat_cas_each(gc->cas, "act", count_one, &manifests, err);

	if (status != LEAT_OK || manifests == gc->results)
		return status;
	gc->results = 0;
	status = leat_index_rebuild(gc->cas, err);
	return status == LEAT_OK ? read_results(gc, err) : status;
}

/* At 0, everything is old, also what a clock that was set back dates into the future. */
static bool
is_old(const struct gc *gc, double used_s)
{
	return gc->options->older_s <= 0 || (double)gc->now - used_s >= gc->options->older_s;
}

/* A ref of rows that failed, which nobody looked after for long. */
static bool
is_old_ref(const struct gc *gc, const char *name)
{
	char path[NAME_MAX + 8];
	struct stat file;

	snprintf(path, sizeof(path), "refs/%.*s", NAME_MAX, name);
	return strncmp(name, LEAT_REJECTS_REF, strlen(LEAT_REJECTS_REF)) == 0 &&
	       fstatat(gc->cas->folder_fd, path, &file, AT_SYMLINK_NOFOLLOW) == 0 && is_old(gc, (double)file.st_mtime);
}

static enum leat_status
keep_ref(void *arg, const char *name, const struct leat_content *content, struct leat_err *err)
{
	struct gc *gc = arg;
	struct result *result;

	if (is_old_ref(gc, name))
		return LEAT_OK;
	if (content->kind != LEAT_CONTENT_NONE)
		return change_content(gc, content, true, err);
	result = gc->results ? bsearch(&content->digest, gc->result, gc->results, sizeof(*result), compare_digests)
	                     : NULL;
	if (result)
		result->is_kept = true;
	return LEAT_OK;
}

/* Actions that failed have no manifest; only the run's log names what they printed. */
static enum leat_status
keep_logs(struct gc *gc, const char *run, struct leat_err *err)
{
	static const char member[] = "\"log\":";
	char name[NAME_MAX + 8], *text, *at;
	struct leat_err why;
	enum leat_status status;
	size_t len;

	leat_err_clear(&why);
	snprintf(name, sizeof(name), "runs/%.*s", NAME_MAX, run);
	status = leat_cas_read_name(gc->cas, name, LEAT_TREE_MAX, &text, &len, &why);
	if (status == LEAT_NOMEM || status == LEAT_IO)
		return leat_fail_as(err, &why);
	for (at = text; status == LEAT_OK && (at = strstr(at, member));) {
		struct leat_content log = {.kind = LEAT_CONTENT_FILE};
		char hex[LEAT_SHA256_HEX];

		at += strlen(member);
		at += strspn(at, " \"");
		snprintf(hex, sizeof(hex), "%.64s", at);
		if (leat_digest_parse(hex, &log.digest))
			change_content(gc, &log, true, err); /* a file: nothing to fail */
	}
	leat_free(gc->cas->mem, text);
	return LEAT_OK;
}

static enum leat_status
keep_run_logs(struct gc *gc, struct leat_err *err)
{
	struct leat_entries runs;
	enum leat_status status = leat_cas_list(gc->cas, "runs", &runs, err);

	if (status != LEAT_OK)
		return status;
	for (size_t i = 0; i < runs.count && status == LEAT_OK; i++) {
		const char *suffix = strrchr(runs.name[i], '.');

		if (suffix && strcmp(suffix, ".jsonl") == 0) /* not `latest`, a link to one of them */
			status = keep_logs(gc, runs.name[i], err);
	}
	leat_entries_free(&runs, gc->cas->mem);
	return status;
}

static enum leat_status
count_users(struct gc *gc, struct leat_err *err)
{
	enum leat_status status = leat_refs_each(gc->cas, keep_ref, gc, err);

	if (status == LEAT_OK)
		status = keep_run_logs(gc, err);
	for (size_t i = 0; i < gc->results && status == LEAT_OK; i++)
		status = change_result(gc, &gc->result[i], true, err);
	for (size_t i = 0; i < gc->blobs; i++)
		gc->bytes += gc->blob[i].bytes;
	return status;
}

static int
compare_use(const void *a, const void *b)
{
	const struct result *x = a, *y = b;

	if (x->is_last != y->is_last)
		return x->is_last - y->is_last;
	if (x->used_s != y->used_s)
		return x->used_s < y->used_s ? -1 : 1;
	return compare_digests(x, y);
}

/* Blobs that no result ever needed, such as outputs of actions that could not be recorded. */
static void
drop_orphans(struct gc *gc)
{
	for (size_t i = 0; i < gc->blobs; i++) {
		struct blob *blob = &gc->blob[i];
		bool old = is_old(gc, (double)blob->changed);

		if (blob->users > 0 || blob->of_results)
			continue;
		if (old || gc->bytes > gc->options->size)
			gc->bytes -= blob->bytes;
		else
			blob->users = 1;
	}
}

static enum leat_status
choose(struct gc *gc, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	drop_orphans(gc);
	if (gc->results > 1)
		qsort(gc->result, gc->results, sizeof(*gc->result), compare_use);
	for (size_t i = 0; i < gc->results && status == LEAT_OK; i++) {
		struct result *result = &gc->result[i];
		bool old = is_old(gc, result->used_s) && !result->is_last;

		if (result->is_kept || (!old && gc->bytes <= gc->options->size))
			continue;
		result->is_removed = true;
		status = change_result(gc, result, false, err);
	}
	return status;
}

static enum leat_status
remove_results(struct gc *gc, struct leat_err *err)
{
	char name[LEAT_CAS_NAME];
	MDB_txn *txn;
	int failure = 0;
	enum leat_status status;

	for (size_t i = 0; i < gc->results; i++)
		if (gc->result[i].is_removed) {
			leat_cas_name("act", &gc->result[i].key, name);
			if (unlinkat(gc->cas->folder_fd, name, 0) != 0 && errno != ENOENT)
				return leat_cas_full(err, gc->cas, errno, "remove a manifest");
		}
	status = leat_index_begin(gc->cas, &txn, err);
	if (status != LEAT_OK)
		return status;
	for (size_t i = 0; i < gc->results && !failure; i++)
		if (gc->result[i].is_removed)
			failure = leat_index_unput(gc->cas->index, txn, &gc->result[i].key);
	if (!failure)
		return leat_index_commit(gc->cas, txn, err);
	mdb_txn_abort(txn);
	return leat_index_fail(err, gc->cas, failure, "remove results from the index");
}

static enum leat_status
remove_old_refs(struct gc *gc, struct leat_err *err)
{
	struct leat_entries refs;
	enum leat_status status = leat_cas_list(gc->cas, "refs", &refs, err);

	if (status != LEAT_OK)
		return status;
	for (size_t i = 0; i < refs.count; i++) {
		char path[NAME_MAX + 8];

		snprintf(path, sizeof(path), "refs/%.*s", NAME_MAX, refs.name[i]);
		if (is_old_ref(gc, refs.name[i]))
			unlinkat(gc->cas->folder_fd, path, 0);
	}
	leat_entries_free(&refs, gc->cas->mem);
	return LEAT_OK;
}

static enum leat_status
remove_blobs(struct gc *gc, struct leat_err *err)
{
	char name[LEAT_CAS_NAME];

	for (size_t i = 0; i < gc->blobs; i++)
		if (gc->blob[i].users == 0) {
			leat_cas_name("cas", &gc->blob[i].digest, name);
			if (unlinkat(gc->cas->folder_fd, name, 0) != 0 && errno != ENOENT)
				return leat_cas_full(err, gc->cas, errno, "remove a blob");
		}
	leat_cas_unsee(gc->cas);
	return LEAT_OK;
}

/* Views of what is gone hold its bytes. */
static enum leat_status
remove_views(struct gc *gc, struct leat_err *err)
{
	struct leat_entries views;
	enum leat_status status = leat_cas_list(gc->cas, "view", &views, err);

	if (status != LEAT_OK)
		return status;
	for (size_t i = 0; i < views.count; i++) {
		char hex[LEAT_SHA256_HEX], name[NAME_MAX + 8], path[PATH_MAX];
		struct leat_digest digest;
		const struct blob *blob = NULL;

		snprintf(hex, sizeof(hex), "%.64s", views.name[i]);
		if (leat_digest_parse(hex, &digest))
			blob = find_blob(gc, &digest);
		snprintf(name, sizeof(name), "view/%.*s", NAME_MAX, views.name[i]);
		leat_cas_path(gc->cas, name, path);
		if (!blob || blob->users == 0)
			leat_remove_tree(path);
	}
	leat_entries_free(&views, gc->cas->mem);
	return LEAT_OK;
}

/* Checkpoints of steps that resume; their runner locks them. */
static enum leat_status
remove_checkpoints(struct gc *gc, struct leat_err *err)
{
	struct leat_entries resume;
	enum leat_status status = LEAT_OK;

	if (faccessat(gc->cas->folder_fd, "resume", F_OK, 0) == 0)
		status = leat_cas_list(gc->cas, "resume", &resume, err);
	else
		return LEAT_OK;
	for (size_t i = 0; status == LEAT_OK && i < resume.count; i++) {
		char name[NAME_MAX + 8], path[PATH_MAX];
		struct stat folder;
		int fd;

		snprintf(name, sizeof(name), "resume/%.*s", NAME_MAX, resume.name[i]);
		leat_cas_path(gc->cas, name, path);
		fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && fstat(fd, &folder) == 0 && is_old(gc, (double)folder.st_mtime) &&
		    flock(fd, LOCK_EX | LOCK_NB) == 0)
			leat_remove_tree(path);
		if (fd >= 0)
			close(fd);
	}
	if (status == LEAT_OK)
		leat_entries_free(&resume, gc->cas->mem);
	return status;
}

static enum leat_status
collect(struct gc *gc, struct leat_err *err)
{
	enum leat_status status = leat_cas_each(gc->cas, "cas", add_blob, gc, err);

	if (gc->blobs > 1)
		qsort(gc->blob, gc->blobs, sizeof(*gc->blob), compare_digests);
	if (status == LEAT_OK)
		status = read_results(gc, err);
	if (status == LEAT_OK)
		status = check_index(gc, err);
	if (status == LEAT_OK)
		status = count_users(gc, err);
	return status == LEAT_OK ? choose(gc, err) : status;
}

static enum leat_status
sweep(struct gc *gc, struct leat_err *err)
{
	enum leat_status status = leat_index_distrust(gc->cas, err);

	if (status == LEAT_OK)
		status = remove_results(gc, err);
	if (status == LEAT_OK)
		status = remove_old_refs(gc, err);
	if (status == LEAT_OK)
		status = remove_views(gc, err);
	if (status == LEAT_OK)
		status = remove_blobs(gc, err);
	if (status == LEAT_OK)
		status = remove_checkpoints(gc, err);
	if (status == LEAT_OK)
		leat_index_trust(gc->cas);
	return status;
}

static void
summarize(const struct gc *gc, struct leat_gc_result *result)
{
	result->results = gc->results;
	result->blobs = gc->blobs;
	for (size_t i = 0; i < gc->results; i++)
		result->results_removed += gc->result[i].is_removed;
	for (size_t i = 0; i < gc->blobs; i++) {
		bool removed = gc->blob[i].users == 0;

		result->bytes += gc->blob[i].bytes;
		result->blobs_removed += removed;
		result->bytes_removed += removed ? gc->blob[i].bytes : 0;
	}
}

enum leat_status
leat_cas_gc(struct leat_cas *cas, const struct leat_gc_options *options, struct leat_gc_result *result,
            struct leat_err *err)
{
	struct gc gc = {.cas = cas, .options = options, .now = time(NULL)};
	enum leat_status status;

	memset(result, 0, sizeof(*result));
	if (cas->mode != LEAT_CAS_WRITE || cas->run_fd >= 0)
		return leat_fail(err, LEAT_INVALID, "the store '%s' is not open for gc", cas->folder);
	if (!leat_cas_lock_alone(cas)) {
		result->busy = true;
		return LEAT_OK;
	}
	status = collect(&gc, err);
	if (status == LEAT_OK && !options->dry)
		status = sweep(&gc, err);
	if (status == LEAT_OK)
		summarize(&gc, result);
	leat_cas_share_lock(cas);
	leat_free(cas->mem, gc.blob);
	leat_free(cas->mem, gc.result);
	return status;
}
