/* outputs.c - see outputs.h */
#include "cli/outputs.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/str.h"
#include "format/beside.h"

enum { MAX_PATTERN = 1 << 16 };

static const char any_number[] = "?????";

void
leat_outputs_init(struct leat_outputs *o, const char *prefix, const char *suffix, struct leat_mem *mem)
{
	*o = (struct leat_outputs){.mem = mem, .prefix = prefix, .suffix = suffix};
	leat_stores_init(&o->stores, mem);
}

/* ---- names ---- */

char *
leat_shard_path(const struct leat_outputs *o, size_t shard, size_t count)
{
	if (!count)
		return leat_asprintf(o->mem, "%s-%05zu-of-%s%s", o->prefix, shard, any_number, o->suffix);
	return leat_asprintf(o->mem, "%s-%05zu-of-%05zu%s", o->prefix, shard, count, o->suffix);
}

char *
leat_shard_pattern(const struct leat_outputs *o)
{
	return leat_asprintf(o->mem, "%s-%s-of-%05zu%s", o->prefix, any_number, o->count, o->suffix);
}

/* Finds the shards there are, of any number; they are to be freed with globfree when *any. */
static enum leat_status
find_shards(const struct leat_outputs *o, glob_t *found, bool *any, struct leat_err *err)
{
	struct leat_str pattern;
	enum leat_status status = LEAT_OK;

	*any = false;
	leat_str_init(&pattern, o->mem, MAX_PATTERN);
	for (const char *c = o->prefix; *c; c++)
		leat_str_addf(&pattern, strchr("*?[\\", *c) ? "\\%c" : "%c", *c);
	leat_str_addf(&pattern, "-[0-9][0-9][0-9][0-9][0-9]-of-[0-9][0-9][0-9][0-9][0-9]%s", o->suffix);
	if (pattern.failed)
		status = leat_fail(err, LEAT_INVALID, "the name '%.40s...' is too long", o->prefix);
	else
		*any = glob(leat_str_text(&pattern), 0, NULL, found) == 0;
	leat_str_free(&pattern);
	return status;
}

/* ---- before ---- */

static enum leat_status
make_folder(const char *folder, struct leat_err *err)
{
	if (mkdir(folder, 0777) == 0 || errno == EEXIST)
		return LEAT_OK;
	return leat_fail_errno(err, errno, "cannot make the folder '%s'", folder);
}

enum leat_status
leat_make_folder_of(const char *path, struct leat_mem *mem, struct leat_err *err)
{
	char *copy = leat_strdup(mem, path);
	enum leat_status status = LEAT_OK;

	if (!copy)
		return leat_fail_mem(err, mem, strlen(path) + 1, "a file name");
	for (char *slash = strchr(copy + (*copy == '/'), '/'); slash && status == LEAT_OK;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		status = make_folder(copy, err);
		*slash = '/';
	}
	leat_free(mem, copy);
	return status;
}

enum leat_status
leat_outputs_begin(struct leat_outputs *o, bool overwrite, struct leat_err *err)
{
	glob_t found;
	bool any;
	enum leat_status status = find_shards(o, &found, &any, err);

	if (status != LEAT_OK)
		return status;
	/* Files of another run would be read together with ours, because one pattern names both. */
	if (any && !overwrite)
		status = leat_fail(err, LEAT_INVALID, "'%s' is there already; --overwrite replaces it and its like",
		                   found.gl_pathv[0]);
	if (any)
		globfree(&found);
	return status == LEAT_OK ? leat_make_folder_of(o->prefix, o->mem, err) : status;
}

enum leat_status
leat_outputs_room(struct leat_outputs *o, size_t count, struct leat_err *err)
{
	enum leat_status status = LEAT_GROW(o->mem, o->file, o->cap, count, SIZE_MAX, "the list of files", err);

	if (status == LEAT_OK)
		o->count = count;
	return status;
}

/* ---- after ---- */

static enum leat_status
show_file(struct leat_outputs *o, size_t i, struct leat_err *err)
{
	bool last = i + 1 == o->count; /* one sync of the folder is enough for all */
	char *path = o->suffix ? leat_shard_path(o, i, o->count) : NULL;
	enum leat_status status;

	if (o->suffix && !path)
		return leat_fail_mem(err, o->mem, strlen(o->prefix) + 64, "a file name");
	o->bytes += o->file[i]->size;
	status = leat_write_commit(o->file[i], path, last ? LEAT_COMMIT_SYNC : 0, err);
	o->file[i] = NULL;
	leat_free(o->mem, path);
	return status;
}

static bool
is_ours(const struct leat_outputs *o, const char *path)
{
	size_t shard, count, prefix = strlen(o->prefix);

	return sscanf(path + prefix, "-%5zu-of-%5zu", &shard, &count) == 2 && count == o->count && shard < count;
}

static enum leat_status
remove_stale(struct leat_outputs *o, struct leat_err *err)
{
	struct leat_store *store;
	glob_t found;
	bool any;
	enum leat_status status = find_shards(o, &found, &any, err);

	if (!any)
		return status;
	status = leat_stores_find(&o->stores, o->prefix, &store, NULL, err);
	for (size_t i = 0; i < found.gl_pathc && status == LEAT_OK; i++) {
		leat_beside_remove(store, found.gl_pathv[i], o->mem);
		if (!is_ours(o, found.gl_pathv[i]) && unlink(found.gl_pathv[i]) != 0)
			status = leat_fail_errno(err, errno, "cannot remove '%s'", found.gl_pathv[i]);
	}
	globfree(&found);
	return status;
}

enum leat_status
leat_outputs_show(struct leat_outputs *o, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < o->count && status == LEAT_OK; i++)
		status = show_file(o, i, err);
	return status == LEAT_OK && o->suffix ? remove_stale(o, err) : status;
}

void
leat_outputs_free(struct leat_outputs *o)
{
	for (size_t i = 0; i < o->count; i++)
		leat_write_abort(o->file[i]);
	leat_free(o->mem, o->file);
	leat_stores_close(&o->stores);
	o->file = NULL;
	o->count = o->cap = 0;
}
