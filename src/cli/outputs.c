/* outputs.c - see outputs.h */
#include "cli/outputs.h"

#include <stdio.h>
#include <string.h>

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

/* "PREFIX-00003-of-00008SUFFIX", to be freed by the caller; `count` 0: unknown yet; NULL: out of memory. */
static char *
shard_uri(const struct leat_outputs *o, size_t shard, size_t count)
{
	if (!count)
		return leat_asprintf(o->mem, "%s-%05zu-of-%s%s", o->uri, shard, any_number, o->suffix);
	return leat_asprintf(o->mem, "%s-%05zu-of-%05zu%s", o->uri, shard, count, o->suffix);
}

char *
leat_shard_pattern(const struct leat_outputs *o)
{
	return leat_asprintf(o->mem, "%s-%s-of-%05zu%s", o->prefix, any_number, o->count, o->suffix);
}

static enum leat_status
add_name(void *arg, const struct leat_object *object, struct leat_err *err)
{
	struct leat_str *found = arg;

	leat_str_addn(found, object->uri, object->uri_len + 1);
	return found->failed ? leat_fail_mem(err, found->mem, found->len + object->uri_len, "the list of files")
	                     : LEAT_OK;
}

/* Lists existing shards, of any count, as NUL-terminated names. */
static enum leat_status
find_shards(const struct leat_outputs *o, struct leat_str *found, struct leat_err *err)
{
	struct leat_str pattern;
	enum leat_status status;

	leat_str_init(found, o->mem, SIZE_MAX / 4);
	leat_str_init(&pattern, o->mem, MAX_PATTERN);
	for (const char *c = o->uri; *c; c++)
		leat_str_addf(&pattern, *c == '\\' ? "[\\%c]" : strchr("*?[", *c) ? "[%c]" : "%c", *c);
	leat_str_addf(&pattern, "-[0-9][0-9][0-9][0-9][0-9]-of-[0-9][0-9][0-9][0-9][0-9]%s", o->suffix);
	if (pattern.failed)
		status = leat_fail(err, LEAT_INVALID, "the name '%.40s...' is too long", o->prefix);
	else
		status = o->store->kind->list(o->store, leat_str_text(&pattern), add_name, found, err);
	leat_str_free(&pattern);
	if (status != LEAT_IO || found->len)
		return status;
	leat_err_clear(err); /* no shards, perhaps no folder */
	return LEAT_OK;
}

/* Iterates over the result of find_shards; `name` is NULL at the start, the result at the end. */
static const char *
next_name(const struct leat_str *found, const char *name)
{
	const char *next = name ? name + strlen(name) + 1 : leat_str_text(found);

	return next < leat_str_text(found) + found->len ? next : NULL;
}

/* ---- begin ---- */

static enum leat_status
make_folder_of(struct leat_store *store, const char *uri, struct leat_err *err)
{
	enum leat_status status;
	char *folder;

	if (!store->kind->make_folder)
		return LEAT_OK;
	folder = leat_folder_of(uri, store->mem);
	if (!folder)
		return leat_fail_mem(err, store->mem, strlen(uri) + 1, "a file name");
	status = store->kind->make_folder(store, folder, err);
	leat_free(store->mem, folder);
	return status;
}

/* The same pattern would match both their files and ours. */
static enum leat_status
refuse_shards(const struct leat_str *found, struct leat_err *err)
{
	const char *first = next_name(found, NULL);

	for (const char *name = first; name; name = next_name(found, name))
		if (strcmp(name, first) < 0)
			first = name;
	return first ? leat_fail(err, LEAT_INVALID, "'%s' already exists; use --overwrite to replace these shards",
	                         first)
	             : LEAT_OK;
}

enum leat_status
leat_outputs_begin(struct leat_outputs *o, bool overwrite, struct leat_err *err)
{
	enum leat_status status = leat_stores_find(&o->stores, o->prefix, &o->store, &o->uri, err);
	struct leat_str found;

	if (status != LEAT_OK)
		return status;
	status = find_shards(o, &found, err);
	if (status == LEAT_OK && !overwrite)
		status = refuse_shards(&found, err);
	leat_str_free(&found);
	return status == LEAT_OK ? make_folder_of(o->store, o->uri, err) : status;
}

enum leat_status
leat_outputs_room(struct leat_outputs *o, size_t count, struct leat_err *err)
{
	enum leat_status status = LEAT_GROW(o->mem, o->file, o->cap, count, SIZE_MAX, "the list of files", err);

	if (status == LEAT_OK)
		o->count = count;
	return status;
}

enum leat_status
leat_outputs_open_shard(struct leat_outputs *o, size_t shard, size_t count, struct leat_err *err)
{
	char *uri = shard_uri(o, shard, count);
	enum leat_status status;

	if (!uri)
		return leat_fail_mem(err, o->mem, strlen(o->uri) + 64, "a file name");
	status = leat_store_begin(o->store, uri, &o->file[shard], err);
	leat_free(o->mem, uri);
	return status;
}

enum leat_status
leat_outputs_open_file(struct leat_outputs *o, size_t i, const char *name, bool overwrite, struct leat_err *err)
{
	struct leat_store *store;
	char *uri;
	enum leat_status status = leat_stores_find(&o->stores, name, &store, &uri, err);

	if (status != LEAT_OK)
		return status;
	if (!overwrite && leat_what_is(store, uri) != LEAT_IS_NOTHING)
		status = leat_fail(err, LEAT_INVALID, "'%s' already exists; use --overwrite to replace it", name);
	if (status == LEAT_OK)
		status = make_folder_of(store, uri, err);
	if (status == LEAT_OK)
		status = leat_store_begin(store, uri, &o->file[i], err);
	leat_free(store->mem, uri);
	return status;
}

/* ---- finish ---- */

static enum leat_status
publish_file(struct leat_outputs *o, size_t i, struct leat_err *err)
{
	bool last = i + 1 == o->count; /* one sync of the folder covers all files */
	char *uri = o->suffix ? shard_uri(o, i, o->count) : NULL;
	enum leat_status status;

	if (o->suffix && !uri)
		return leat_fail_mem(err, o->mem, strlen(o->uri) + 64, "a file name");
	o->bytes += o->file[i]->size;
	status = leat_write_commit(o->file[i], uri, last ? LEAT_COMMIT_SYNC : 0, err);
	o->file[i] = NULL;
	leat_free(o->mem, uri);
	return status;
}

static bool
is_ours(const struct leat_outputs *o, const char *name)
{
	size_t shard, count, prefix = strlen(o->uri);

	return sscanf(name + prefix, "-%5zu-of-%5zu", &shard, &count) == 2 && count == o->count && shard < count;
}

static enum leat_status
remove_stale(struct leat_outputs *o, struct leat_err *err)
{
	struct leat_str found;
	enum leat_status status = find_shards(o, &found, err);

	for (const char *name = NULL; status == LEAT_OK && (name = next_name(&found, name)) != NULL;) {
		leat_beside_remove(o->store, name, o->mem);
		if (!is_ours(o, name))
			status = leat_store_remove(o->store, name, err);
	}
	leat_str_free(&found);
	return status;
}

enum leat_status
leat_outputs_publish(struct leat_outputs *o, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < o->count && status == LEAT_OK; i++)
		status = publish_file(o, i, err);
	return status == LEAT_OK && o->suffix ? remove_stale(o, err) : status;
}

void
leat_outputs_free(struct leat_outputs *o)
{
	for (size_t i = 0; i < o->count; i++)
		leat_write_abort(o->file[i]);
	leat_free(o->mem, o->file);
	leat_free(o->mem, o->uri);
	leat_stores_close(&o->stores);
	o->file = NULL;
	o->uri = NULL;
	o->count = o->cap = 0;
}
