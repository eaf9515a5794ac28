/* set_check.c - readers: do the files that were found make a complete set?
 *
 * A commit may happen while files are listed. The listing is of one state if no manifest has changed from before it
 * began until after it ended. A set without a manifest needs no second look: the manifest is written before the first
 * file appears, so without one after the listing there was no commit during it. */
#include "store/set.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/hash.h"

/* A set, with or without a manifest. */
struct leat_seen_set {
	struct leat_store *store;
	char *uri; /* of the manifest */
	uint64_t hash;
	bool shards, exists;
	struct leat_version version; /* of the manifest */
	struct leat_set set;
	size_t matched; /* files listed in the manifest that a pattern has matched; for leat_sets_check */
};

void
leat_sets_init(struct leat_sets *sets, struct leat_mem *mem)
{
	*sets = (struct leat_sets){.mem = mem};
}

void
leat_sets_free(struct leat_sets *sets)
{
	for (size_t i = 0; i < sets->count; i++) {
		leat_set_free(&sets->seen[i].set);
		leat_free(sets->mem, sets->seen[i].uri);
	}
	leat_free(sets->mem, sets->seen);
	leat_sets_init(sets, sets->mem);
}

/* The latest first: files of one set follow each other. */
static struct leat_seen_set *
find_seen(const struct leat_sets *sets, const struct leat_store *store, const char *uri)
{
	uint64_t hash = leat_hash64(uri);

	for (size_t i = sets->count; i-- > 0;) {
		struct leat_seen_set *seen = &sets->seen[i];

		if (seen->hash == hash && seen->store == store && strcmp(seen->uri, uri) == 0)
			return seen;
	}
	return NULL;
}

static enum leat_status
load_seen(struct leat_sets *sets, struct leat_seen_set *seen, struct leat_err *err)
{
	enum leat_status status = leat_set_load(&seen->set, seen->store, seen->uri, &seen->version, err);

	seen->exists = status != LEAT_AGAIN;
	sets->manifests |= seen->exists;
	sets->fresh |= seen->exists;
	return seen->exists ? status : LEAT_OK;
}

/* Takes `uri`. */
static enum leat_status
add_seen(struct leat_sets *sets, struct leat_store *store, char *uri, bool shards, struct leat_err *err)
{
	enum leat_status status =
		LEAT_GROW(sets->mem, sets->seen, sets->cap, sets->count + 1, SIZE_MAX, "a list of files", err);
	struct leat_seen_set *seen;

	if (status != LEAT_OK) {
		leat_free(sets->mem, uri);
		return status;
	}
	seen = &sets->seen[sets->count++];
	*seen = (struct leat_seen_set){.store = store, .uri = uri, .hash = leat_hash64(uri), .shards = shards};
	leat_set_init(&seen->set, sets->mem);
	status = load_seen(sets, seen, err);
	if (status != LEAT_OK) { /* not seen, so that it fails again if files are listed again */
		leat_set_free(&seen->set);
		leat_free(sets->mem, uri);
		sets->count--;
	}
	return status;
}

enum leat_status
leat_sets_see(struct leat_sets *sets, const struct leat_object *object, size_t count, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < count && status == LEAT_OK; i++) {
		bool shards;
		char *uri = leat_set_uri(object[i].uri, &shards, sets->mem);

		if (!uri)
			return leat_fail_mem(err, sets->mem, object[i].uri_len + 16, "a file name");
		if (find_seen(sets, object[i].store, uri))
			leat_free(sets->mem, uri);
		else
			status = add_seen(sets, object[i].store, uri, shards, err);
	}
	return status;
}

bool
leat_sets_again(struct leat_sets *sets)
{
	bool again = sets->fresh;

	if (!sets->manifests)
		return false;
	for (size_t i = 0; i < sets->count && !again; i++) {
		const struct leat_seen_set *seen = &sets->seen[i];
		struct leat_object now;

		again = seen->store->kind->look(seen->store, seen->uri, &now, NULL) == LEAT_OK
		                ? !seen->exists || !leat_version_equal(&now.version, &seen->version)
		                : seen->exists;
		if (again)
			leat_sets_free(sets);
	}
	sets->fresh = false;
	return again;
}

/* ---- rules ---- */

static enum leat_status
fail_incomplete(const struct leat_object *object, const struct leat_set_run *run, struct leat_err *err)
{
	return leat_fail(
		err, LEAT_DATA,
		"'%s' is incomplete: the command that writes it was interrupted or is still running; if it was "
		"interrupted, run it again: %s",
		object->uri, run->command);
}

/* What is complete is only replaced when asked to. */
static const char *
overwrite(const struct leat_set_run *run)
{
	return strstr(run->command, " --overwrite") ? "" : " --overwrite";
}

static enum leat_status
fail_other(const struct leat_seen_set *seen, const struct leat_object *object, struct leat_err *err)
{
	return leat_fail(
		err, LEAT_DATA,
		"'%s' is not one of the files that were written together: remove it; if it belongs to them, delete "
		"'%s'; or write them again: %s%s",
		object->uri, seen->uri, seen->set.run[0].command, overwrite(&seen->set.run[0]));
}

static enum leat_status
fail_changed(const struct leat_seen_set *seen, const struct leat_object *object, const struct leat_set_file *file,
             struct leat_err *err)
{
	const struct leat_set_run *run = &seen->set.run[file->run];

	return leat_fail(err, LEAT_DATA,
	                 "'%s' has %" PRIu64 " bytes, but was written with %" PRIu64 ": if it was replaced on purpose, "
	                 "delete '%s'; otherwise write it again: %s%s",
	                 object->uri, object->size, file->size, seen->uri, run->command, overwrite(run));
}

static enum leat_status
fail_missing(const struct leat_seen_set *seen, const struct leat_set_file *file, struct leat_err *err)
{
	const char *slash = strrchr(seen->uri, '/');
	const struct leat_set_run *run = &seen->set.run[file->run];
	int folder = slash ? (int)(slash - seen->uri) + 1 : 0;

	return leat_fail(
		err, LEAT_DATA,
		"'%.*s%s' is missing: if it was removed on purpose, delete '%s'; otherwise write it again: %s%s",
		folder, seen->uri, file->name, seen->uri, run->command, overwrite(run));
}

/* All shards of a set belong together, whatever their number is. Other files are only known if they are listed. */
static enum leat_status
check_file(struct leat_seen_set *seen, const struct leat_object *object, struct leat_err *err)
{
	const char *slash = strrchr(object->uri, '/');
	const struct leat_set_file *file = leat_set_find(&seen->set, slash ? slash + 1 : object->uri);

	if (seen->shards && !leat_set_is_complete(&seen->set))
		return fail_incomplete(object, &seen->set.run[seen->set.runs - 1], err);
	if (!file)
		return seen->shards && seen->set.runs ? fail_other(seen, object, err) : LEAT_OK;
	if (!seen->set.run[file->run].complete)
		return fail_incomplete(object, &seen->set.run[file->run], err);
	if (file->size != object->size)
		return fail_changed(seen, object, file, err);
	seen->matched++;
	return LEAT_OK;
}

static int
compare_uris(const void *uri, const void *object)
{
	return strcmp(uri, ((const struct leat_object *)object)->uri);
}

static bool
is_among(const struct leat_seen_set *seen, const char *name, const struct leat_object *object, size_t count)
{
	const char *slash = strrchr(seen->uri, '/');
	char *uri = leat_asprintf(seen->set.mem, "%.*s%s", slash ? (int)(slash - seen->uri) + 1 : 0, seen->uri, name);
	bool found = !uri || bsearch(uri, object, count, sizeof(*object), compare_uris);

	leat_free(seen->set.mem, uri);
	return found;
}

/* The folder is one that the pattern has matched, so the last part of the pattern decides. */
static enum leat_status
check_missing(const struct leat_seen_set *seen, const char *pattern, const struct leat_object *object, size_t count,
              struct leat_err *err)
{
	const char *slash = strrchr(pattern, '/'), *last = slash ? slash + 1 : pattern;
	size_t expected = 0;

	for (size_t i = 0; i < seen->set.files; i++)
		expected += fnmatch(last, seen->set.file[i].name, FNM_PERIOD) == 0;
	if (expected <= seen->matched)
		return LEAT_OK;
	for (size_t i = 0; i < seen->set.files; i++) {
		const struct leat_set_file *file = &seen->set.file[i];

		if (fnmatch(last, file->name, FNM_PERIOD) == 0 && !is_among(seen, file->name, object, count))
			return fail_missing(seen, file, err);
	}
	return LEAT_OK;
}

enum leat_status
leat_sets_check(struct leat_sets *sets, const char *pattern, const struct leat_object *object, size_t count,
                struct leat_err *err)
{
	bool is_name = count == 1 && strcmp(object->uri, pattern) == 0;
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < sets->count; i++)
		sets->seen[i].matched = 0;
	for (size_t i = 0; i < count && status == LEAT_OK; i++) {
		bool shards;
		char *uri = leat_set_uri(object[i].uri, &shards, sets->mem);
		struct leat_seen_set *seen = uri ? find_seen(sets, object[i].store, uri) : NULL;

		leat_free(sets->mem, uri);
		if (!uri)
			return leat_fail_mem(err, sets->mem, object[i].uri_len + 16, "a file name");
		if (seen && seen->exists)
			status = check_file(seen, &object[i], err);
	}
	for (size_t i = 0; i < sets->count && status == LEAT_OK && !is_name; i++)
		if (sets->seen[i].matched)
			status = check_missing(&sets->seen[i], pattern, object, count, err);
	return status;
}
