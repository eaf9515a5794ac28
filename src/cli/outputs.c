/* outputs.c - see outputs.h */
#include "cli/outputs.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "base/threads.h"
#include "format/beside.h"

enum {
	MAX_PATTERN = 1 << 16,
	REQUESTS = 16, /* at a time, to a server; readers are refused meanwhile */
};

static const char any_number[] = "?????";

void
leat_outputs_init(struct leat_outputs *o, const char *prefix, const char *suffix, bool shards,
                  const char *const *arguments, const struct leat_storage *storage, struct leat_mem *mem)
{
	*o = (struct leat_outputs){
		.mem = mem, .prefix = prefix, .suffix = suffix, .shards = shards, .arguments = arguments};
	leat_stores_init(&o->stores, mem);
	o->stores.storage = storage;
	leat_set_init(&o->set, mem);
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

/* A pattern of all files, final or hidden; each digit of a number matches `digit`. */
static enum leat_status
add_pattern(const struct leat_outputs *o, const char *digit, struct leat_str *pattern, struct leat_err *err)
{
	leat_str_init(pattern, o->mem, MAX_PATTERN);
	leat_add_literal(pattern, o->uri);
	for (const char *form = o->shards ? "-ddddd-of-ddddd" : "/*"; *form; form++)
		leat_str_addf(pattern, *form == 'd' ? "%s" : "%.1s", *form == 'd' ? digit : form);
	leat_str_add(pattern, o->suffix);
	return pattern->failed ? leat_fail(err, LEAT_INVALID, "the name '%.40s...' is too long", o->prefix) : LEAT_OK;
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
	enum leat_status status = add_pattern(o, "[0-9]", &pattern, err);

	leat_str_init(found, o->mem, SIZE_MAX / 4);
	if (status == LEAT_OK)
		status = o->store->kind->list(o->store, leat_str_text(&pattern), add_name, found, err);
	leat_str_free(&pattern);
	return status == LEAT_AGAIN ? LEAT_OK : status;
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

/* Names the manifest after any of the files, and creates their folder. */
static enum leat_status
find_manifest(struct leat_outputs *o, struct leat_err *err)
{
	char *any = o->shards ? shard_uri(o, 0, 1) : leat_asprintf(o->mem, "%s/any%s", o->uri, o->suffix);
	enum leat_status status;
	bool shards;

	o->manifest = any ? leat_set_uri(any, &shards, o->mem) : NULL;
	if (o->manifest)
		status = make_folder_of(o->store, any, err);
	else
		status = leat_fail_mem(err, o->mem, strlen(o->uri) + 64, "a file name");
	leat_free(o->mem, any);
	return status;
}

/* Once the lock is ours, nobody else writes these files. */
static enum leat_status
lock_and_sweep(struct leat_outputs *o, struct leat_err *err)
{
	const struct leat_store_kind *kind = o->store->kind;
	enum leat_status status = kind->lock ? kind->lock(o->store, o->manifest, &o->lock, err) : LEAT_UNSUPPORTED;
	struct leat_str pattern;

	if (status == LEAT_UNSUPPORTED)
		return LEAT_OK;
	if (status == LEAT_AGAIN)
		return leat_fail(err, LEAT_IO, "another command is writing '%s'", o->prefix);
	if (status != LEAT_OK)
		return status;
	status = add_pattern(o, "?", &pattern, err);
	if (status == LEAT_OK)
		kind->sweep(o->store, leat_str_text(&pattern));
	leat_str_free(&pattern);
	return status;
}

/* A manifest that is damaged is replaced, like one that is not there. */
static enum leat_status
load_set(struct leat_outputs *o, struct leat_err *err)
{
	enum leat_status status = leat_set_load(&o->set, o->store, o->manifest, NULL, err);

	if (status != LEAT_AGAIN && status != LEAT_DATA)
		return status;
	leat_err_clear(err);
	leat_set_free(&o->set);
	return LEAT_OK;
}

enum leat_status
leat_outputs_begin(struct leat_outputs *o, bool overwrite, struct leat_err *err)
{
	enum leat_status status = leat_stores_find(&o->stores, o->prefix, &o->store, &o->uri, err);
	struct leat_str found;

	if (status == LEAT_OK)
		status = find_manifest(o, err);
	if (status == LEAT_OK)
		status = lock_and_sweep(o, err);
	if (status == LEAT_OK)
		status = load_set(o, err);
	if (status != LEAT_OK || !o->shards || overwrite || !leat_set_is_complete(&o->set))
		return status;
	status = find_shards(o, &found, err);
	if (status == LEAT_OK)
		status = refuse_shards(&found, err);
	leat_str_free(&found);
	return status;
}

enum leat_status
leat_outputs_room(struct leat_outputs *o, size_t count, struct leat_err *err)
{
	enum leat_status status = LEAT_GROW(o->mem, o->file, o->cap, count, SIZE_MAX, "the list of files", err);

	if (status == LEAT_OK && !o->shards)
		status = LEAT_GROW(o->mem, o->name, o->name_cap, count, SIZE_MAX, "the list of files", err);
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
	status = (count ? leat_store_begin : leat_store_begin_unnamed)(o->store, uri, &o->file[shard], err);
	leat_free(o->mem, uri);
	return status;
}

/* It is not in the way if a command was killed while it replaced it. */
static bool
is_in_the_way(const struct leat_outputs *o, const char *uri)
{
	const struct leat_set_file *file = leat_set_find(&o->set, strrchr(uri, '/') + 1);

	return leat_what_is(o->store, uri) != LEAT_IS_NOTHING && !(file && !o->set.run[file->run].complete);
}

enum leat_status
leat_outputs_open_file(struct leat_outputs *o, size_t i, const char *name, bool overwrite, struct leat_err *err)
{
	o->name[i] = leat_asprintf(o->mem, "%s/%s%s", o->uri, name, o->suffix);
	if (!o->name[i])
		return leat_fail_mem(err, o->mem, strlen(o->uri) + strlen(name) + 16, "a file name");
	if (!overwrite && is_in_the_way(o, o->name[i]))
		return leat_fail(err, LEAT_INVALID, "'%s' already exists; use --overwrite to replace it", o->name[i]);
	return leat_store_begin(o->store, o->name[i], &o->file[i], err);
}

/* Are both names those of one file, in folders that exist? */
static bool
is_same_place(struct leat_store *store, const char *a, const char *b, struct leat_mem *mem)
{
	const char *names[] = {a, b};
	char *folder[2];
	bool same;

	for (int i = 0; i < 2; i++) {
		char *given = leat_folder_of(names[i], mem);

		folder[i] = given && store->kind->absolute ? store->kind->absolute(store, given) : given;
		if (folder[i] != given)
			leat_free(mem, given);
	}
	same = folder[0] && folder[1] && strcmp(folder[0], folder[1]) == 0 && strcmp(basename(a), basename(b)) == 0;
	leat_free(mem, folder[0]);
	leat_free(mem, folder[1]);
	return same;
}

static bool
replaces(const struct leat_outputs *o, const struct leat_object *input)
{
	bool same = false, shards;
	char *set;

	if (input->store->kind != o->store->kind)
		return false;
	for (size_t i = 0; !o->shards && i < o->count; i++)
		same |= is_same_place(o->store, input->uri, o->name[i], o->mem);
	if (!o->shards)
		return same;
	set = leat_set_uri(input->uri, &shards, o->mem);
	same = set && is_same_place(o->store, set, o->manifest, o->mem);
	leat_free(o->mem, set);
	return same;
}

enum leat_status
leat_outputs_spare(const struct leat_outputs *o, const struct leat_files *inputs, struct leat_err *err)
{
	for (size_t i = 0; i < leat_files_count(inputs); i++)
		if (replaces(o, leat_files_at(inputs, i)))
			return leat_fail(err, LEAT_INVALID,
			                 "'%s' is read and would be replaced: choose another --output, and rename it "
			                 "afterwards",
			                 leat_files_at(inputs, i)->uri);
	return LEAT_OK;
}

/* ---- finish ---- */

/* The final name of a file, to be freed by the caller. */
static enum leat_status
final_uri(const struct leat_outputs *o, size_t i, char **uri, struct leat_err *err)
{
	*uri = o->shards ? shard_uri(o, i, o->count) : leat_strdup(o->mem, o->name[i]);
	return *uri ? LEAT_OK : leat_fail_mem(err, o->mem, strlen(o->uri) + 64, "a file name");
}

static enum leat_status
list_file(struct leat_outputs *o, size_t i, size_t run, struct leat_err *err)
{
	char *uri;
	enum leat_status status = final_uri(o, i, &uri, err);
	const char *slash = status == LEAT_OK ? strrchr(uri, '/') : NULL;

	if (status == LEAT_OK)
		status = leat_set_add_file(&o->set, slash ? slash + 1 : uri, o->file[i]->size, o->file[i]->crc, run,
		                           err);
	leat_free(o->mem, uri);
	return status;
}

/* Files that this command replaces are no longer those of another one; shards replace all there are. */
static enum leat_status
list_files(struct leat_outputs *o, size_t *run, struct leat_err *err)
{
	enum leat_status status;

	if (o->shards)
		leat_set_free(&o->set);
	for (size_t i = 0; i < o->count && !o->shards; i++)
		leat_set_remove_file(&o->set, strrchr(o->name[i], '/') + 1);
	status = leat_set_add_run(&o->set, o->arguments, run, err);
	for (size_t i = 0; i < o->count && status == LEAT_OK; i++)
		status = list_file(o, i, *run, err);
	leat_set_sort(&o->set);
	return status;
}

static enum leat_status
publish_file(void *arg, size_t i, struct leat_err *err)
{
	struct leat_outputs *o = arg;
	bool last = i + 1 == o->count; /* one sync of the folder covers all files */
	char *uri;
	enum leat_status status = final_uri(o, i, &uri, err);

	if (status != LEAT_OK)
		return status;
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

/* New files come first, so that there always is one whose manifest tells a reader what happened. */
static enum leat_status
replace_files(struct leat_outputs *o, struct leat_err *err)
{
	unsigned at_once = o->store->kind->remote ? REQUESTS : 1;
	enum leat_status status;

	for (size_t i = 0; i < o->count; i++)
		o->bytes += o->file[i]->size;
	status = leat_parallel(o->mem, at_once, o->count, publish_file, o, err);
	return status == LEAT_OK && o->shards ? remove_stale(o, err) : status;
}

/* Says what will be there: from now on, readers are refused. */
static enum leat_status
announce(struct leat_outputs *o, struct leat_err *err)
{
	enum leat_status status = o->plain ? LEAT_OK : list_files(o, &o->run, err);

	return status == LEAT_OK && !o->plain ? leat_set_save(&o->set, o->store, o->manifest, err) : status;
}

static enum leat_status
complete(struct leat_outputs *o, struct leat_err *err)
{
	if (o->plain)
		return LEAT_OK;
	o->set.run[o->run].complete = true;
	return leat_set_save(&o->set, o->store, o->manifest, err);
}

enum leat_status
leat_outputs_publish_all(struct leat_outputs *o, size_t count, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < count && status == LEAT_OK; i++)
		status = announce(&o[i], err);
	if (status != LEAT_OK)
		return status;
	for (size_t i = 0; i < count && status == LEAT_OK; i++)
		status = replace_files(&o[i], err);
	for (size_t i = 0; i < count && status == LEAT_OK; i++)
		status = complete(&o[i], err);
	if (status != LEAT_OK && count && !o->plain)
		leat_err_in(err, "the files are not complete, run the command again");
	return status;
}

enum leat_status
leat_outputs_publish(struct leat_outputs *o, struct leat_err *err)
{
	return leat_outputs_publish_all(o, 1, err);
}

void
leat_outputs_free(struct leat_outputs *o)
{
	leat_stores_interrupt(&o->stores, false); /* so that servers are told about files that are discarded */
	for (size_t i = 0; i < o->count; i++) {
		leat_write_abort(o->file[i]);
		if (o->name)
			leat_free(o->mem, o->name[i]);
	}
	if (o->lock)
		o->store->kind->unlock(o->lock);
	leat_set_free(&o->set);
	leat_free(o->mem, o->file);
	leat_free(o->mem, o->name);
	leat_free(o->mem, o->manifest);
	leat_free(o->mem, o->uri);
	leat_stores_close(&o->stores);
	*o = (struct leat_outputs){.mem = o->mem};
}
