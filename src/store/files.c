/* files.c - the objects that match a source's patterns
 *
 * File order determines sample order, so it must not depend on the locale or the store: names
 * are sorted bytewise. Files that a command of Leat has written are only accepted as a whole
 * (set.h). Threads: open and close by one, the rest by any. */
#include "store/store.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "store/set.h"

struct leat_files {
	struct leat_mem *mem;
	struct leat_object *object;
	size_t count, cap;
	size_t *begin; /* first object of each pattern, and the count; NULL: no patterns */
};

static void
forget_all(struct leat_files *files)
{
	for (size_t i = 0; i < files->count; i++) {
		struct leat_object *object = &files->object[i];

		if (object->open)
			object->store->kind->forget(object);
		leat_free(files->mem, (char *)object->uri);
	}
	files->count = 0;
}

void
leat_files_close(struct leat_files *files)
{
	if (!files)
		return;
	forget_all(files);
	leat_free(files->mem, files->begin);
	leat_free(files->mem, files->object);
	leat_free(files->mem, files);
}

static enum leat_status
add_object(void *arg, const struct leat_object *found, struct leat_err *err)
{
	struct leat_files *files = arg;
	struct leat_object *object;
	enum leat_status status =
		LEAT_GROW(files->mem, files->object, files->cap, files->count + 1, SIZE_MAX, "the list of files", err);

	if (status != LEAT_OK)
		return status;
	object = &files->object[files->count];
	*object = *found;
	object->uri = leat_strdup(files->mem, found->uri);
	if (!object->uri)
		return leat_fail_mem(err, files->mem, found->uri_len + 1, "the list of files");
	files->count++;
	return LEAT_OK;
}

static int
compare_uris(const void *a, const void *b)
{
	return strcmp(((const struct leat_object *)a)->uri, ((const struct leat_object *)b)->uri);
}

static enum leat_status
add_pattern(struct leat_files *files, struct leat_stores *stores, const char *pattern, struct leat_sets *sets,
            struct leat_err *err)
{
	size_t before = files->count;
	struct leat_store *store;
	char *uri;
	enum leat_status status = leat_stores_find(stores, pattern, &store, &uri, err);

	if (status != LEAT_OK)
		return status;
	status = store->kind->list(store, uri, add_object, files, err);
	if (status == LEAT_AGAIN)
		status = leat_fail(err, LEAT_IO, "no file matches '%s'", uri);
	if (status == LEAT_OK && files->count > before + 1)
		qsort(files->object + before, files->count - before, sizeof(*files->object), compare_uris);
	if (status == LEAT_OK)
		status = leat_sets_see(sets, files->object + before, files->count - before, err);
	if (status == LEAT_OK && sets->manifests)
		status = leat_sets_check(sets, uri, files->object + before, files->count - before, err);
	leat_free(store->mem, uri);
	return status;
}

/* Lists until nothing was replaced meanwhile. What goes wrong while files are replaced is not an error yet. */
static enum leat_status
add_patterns(struct leat_files *files, struct leat_stores *stores, const char *const *patterns, size_t count,
             struct leat_sets *sets, struct leat_err *err)
{
	enum { TRIES = 10 };
	enum leat_status status = LEAT_OK;

	for (int tries = 0; tries < TRIES; tries++) {
		if (tries)
			leat_err_clear(err);
		forget_all(files);
		status = LEAT_OK;
		for (size_t i = 0; i < count && status == LEAT_OK; i++) {
			status = add_pattern(files, stores, patterns[i], sets, err);
			files->begin[i + 1] = files->count;
		}
		if (!leat_sets_again(sets))
			return status;
	}
	return status == LEAT_OK ? leat_fail(err, LEAT_DATA, "files of '%s' are being replaced: try again", *patterns)
	                         : status;
}

/* Length of the common folder of all names, including its slash. */
static size_t
common_folder(const struct leat_files *files)
{
	const char *first = files->object[0].uri;
	const char *slash = strrchr(first, '/');
	size_t common = slash ? (size_t)(slash - first) + 1 : 0;

	for (size_t i = 1; i < files->count && common; i++) {
		size_t same = 0, end = 0;

		for (; same < common && files->object[i].uri[same] == first[same]; same++)
			if (first[same] == '/')
				end = same + 1;
		common = end;
	}
	return common;
}

static enum leat_status
keep_all(struct leat_files *files, struct leat_err *err)
{
	size_t folder = common_folder(files);
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < files->count && status == LEAT_OK; i++) {
		struct leat_object *object = &files->object[i];

		object->name = object->uri + folder;
		if (object->store->kind->keep)
			status = object->store->kind->keep(object, err);
	}
	return status;
}

static enum leat_status
end_opening(struct leat_files **result, struct leat_files *files, enum leat_status status, struct leat_err *err)
{
	if (status == LEAT_OK)
		status = keep_all(files, err);
	if (status != LEAT_OK)
		leat_files_close(files);
	else
		*result = files;
	return status;
}

enum leat_status
leat_files_open(struct leat_files **result, struct leat_stores *stores, const char *const *patterns, size_t count,
                struct leat_mem *mem, struct leat_err *err)
{
	struct leat_files *files = leat_alloc(mem, sizeof(*files));
	uint64_t begin = leat_now();
	enum leat_status status;
	struct leat_sets sets;

	*result = NULL;
	if (!files)
		return leat_fail_mem(err, mem, sizeof(*files), "the list of files");
	files->mem = mem;
	files->begin = leat_alloc_array(mem, count + 1, sizeof(*files->begin));
	if (!files->begin) {
		leat_files_close(files);
		return leat_fail_mem(err, mem, (count + 1) * sizeof(*files->begin), "the list of files");
	}
	leat_sets_init(&sets, mem);
	status = add_patterns(files, stores, patterns, count, &sets, err);
	leat_sets_free(&sets);
	atomic_fetch_add_explicit(&stores->list_ns, leat_now() - begin, memory_order_relaxed);
	if (status == LEAT_OK && files->count == 0)
		status = leat_fail(err, LEAT_INVALID, "no file name or pattern given");
	return end_opening(result, files, status, err);
}

/* ---- folders ---- */

void
leat_files_expand_free(char **expanded, size_t count, struct leat_mem *mem)
{
	for (size_t i = 0; expanded && i < count; i++)
		leat_free(mem, expanded[i]);
	leat_free(mem, expanded);
}

/* "day=2026-01-01" and the like, which Spark and Hive make. */
static enum leat_status
find_partition(void *arg, const struct leat_entry *entry, struct leat_err *err)
{
	(void)err;
	if (entry->is_folder && strchr(entry->name, '='))
		*(bool *)arg = true;
	return LEAT_OK;
}

/* No pattern matches in a folder: says what to write instead. */
static enum leat_status
fail_folder(struct leat_store *store, const char *uri, const char *folder, const char *inside, struct leat_err *err)
{
	struct leat_folder_id id;
	bool partitioned = false;

	if (store->kind->list_folder)
		(void)store->kind->list_folder(store, uri, find_partition, &partitioned, &id, NULL);
	if (partitioned)
		return leat_fail(err, LEAT_IO,
		                 "the folder '%s' has partition folders, whose values are not read as columns; read "
		                 "'%s/*/%s' without them, or make one table with 'leat sql'",
		                 folder, folder, inside);
	return leat_fail(err, LEAT_IO, "no file in the folder '%s' matches %s", folder, inside);
}

static enum leat_status
expand_folder(struct leat_stores *stores, struct leat_store *store, const char *uri, const char *folder,
              const char *const *inside, char **expanded, struct leat_mem *mem, struct leat_err *err)
{
	size_t len = strlen(folder);

	for (size_t i = 0; inside[i]; i++) {
		struct leat_files *files = NULL;
		enum leat_status status;

		leat_free(mem, *expanded);
		*expanded = leat_asprintf(mem, "%s%s%s", folder, len && folder[len - 1] == '/' ? "" : "/", inside[i]);
		if (!*expanded)
			return leat_fail_mem(err, mem, len + 32, "the list of files");
		status = leat_files_open(&files, stores, (const char *const *)expanded, 1, mem, NULL);
		leat_files_close(files);
		if (status == LEAT_OK)
			return status;
	}
	return fail_folder(store, uri, folder, inside[0], err);
}

static enum leat_status
expand(struct leat_stores *stores, const char *pattern, const char *const *inside, char **expanded,
       struct leat_mem *mem, struct leat_err *err)
{
	struct leat_store *store;
	char *uri;
	enum leat_status status = leat_stores_find(stores, pattern, &store, &uri, err);

	if (status != LEAT_OK)
		return status;
	if (!strpbrk(pattern, "*?[") && leat_what_is(store, uri) == LEAT_IS_FOLDER)
		status = expand_folder(stores, store, uri, pattern, inside, expanded, mem, err);
	else if (!(*expanded = leat_strdup(mem, pattern)))
		status = leat_fail_mem(err, mem, strlen(pattern), "the list of files");
	leat_free(mem, uri);
	return status;
}

enum leat_status
leat_files_expand(struct leat_stores *stores, const char *const *patterns, size_t count, const char *const *inside,
                  char ***expanded, struct leat_mem *mem, struct leat_err *err)
{
	char **list = *expanded = leat_alloc_array(mem, count, sizeof(*list));
	enum leat_status status = list ? LEAT_OK : leat_fail_mem(err, mem, count * sizeof(*list), "the list of files");

	for (size_t i = 0; i < count && status == LEAT_OK; i++)
		status = expand(stores, patterns[i], inside, &list[i], mem, err);
	return status;
}

enum leat_status
leat_files_open_listed(struct leat_files **result, const struct leat_object *object, size_t count, struct leat_mem *mem,
                       struct leat_err *err)
{
	struct leat_files *files = leat_alloc(mem, sizeof(*files));
	enum leat_status status = LEAT_OK;

	*result = NULL;
	if (!files)
		return leat_fail_mem(err, mem, sizeof(*files), "the list of files");
	files->mem = mem;
	for (size_t i = 0; i < count && status == LEAT_OK; i++)
		status = add_object(files, &object[i], err);
	return end_opening(result, files, status, err);
}

size_t
leat_files_count(const struct leat_files *files)
{
	return files ? files->count : 0;
}

size_t
leat_files_begin(const struct leat_files *files, size_t pattern)
{
	return files->begin[pattern];
}

const struct leat_object *
leat_files_at(const struct leat_files *files, size_t i)
{
	return &files->object[i];
}

struct leat_object *
leat_files_edit(struct leat_files *files, size_t i)
{
	return &files->object[i];
}

enum leat_status
leat_files_read(struct leat_files *files, size_t i, uint64_t offset, const struct iovec *iov, int iovs, int flags,
                size_t *got, struct leat_err *err)
{
	return leat_object_read(&files->object[i], offset, iov, iovs, flags, got, err);
}
