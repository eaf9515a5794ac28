/* beside.c - see beside.h */
#include "format/beside.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"

enum place { BESIDE_DATA, IN_CACHE, PLACES };

/* "FOLDER/.NAME.leatidx"; that of a whole bucket is in it: "s3://BUCKET/.leatidx". */
static char *
path_beside(const char *data, struct leat_mem *mem)
{
	const char *slash = strrchr(data, '/');
	int folder = slash ? (int)(slash - data) + 1 : 0;

	if (folder > 2 && data[folder - 2] == '/' && leat_is_uri(data, strlen(data)))
		return leat_asprintf(mem, "%s/.leatidx", data);
	return leat_asprintf(mem, "%.*s.%s.leatidx", folder, data, data + folder);
}

/* What steps made shows up as links into .leat, where nothing may be added: it would be damage. */
static bool
is_made_by_step(struct leat_store *store, const char *data)
{
	char *absolute = store->kind->absolute ? store->kind->absolute(store, data) : NULL;
	bool made = absolute && (strstr(absolute, "/.leat/view/") || strstr(absolute, "/.leat/cas/"));

	leat_free(store->mem, absolute);
	return made;
}

/* Where to look first, and to write. In a store that nobody can write to, an index next to the data would be one of
 * something else: that has another version. */
static enum place
first_place(struct leat_store *store, const char *data, enum leat_beside_place wanted)
{
	if (!store->kind->begin || (store->kind->remote && wanted != LEAT_BESIDE_SHARED))
		return IN_CACHE;
	return is_made_by_step(store, data) ? IN_CACHE : BESIDE_DATA;
}

/* The path of the user's cache folder, which is created if `make` is set. NULL: there is none, or out of memory. */
static char *
cache_folder(bool make, struct leat_mem *mem)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *folder;

	if (cache && cache[0] == '/')
		folder = leat_asprintf(mem, "%s/leat/index", cache);
	else if (home && home[0] == '/')
		folder = leat_asprintf(mem, "%s/.cache/leat/index", home);
	else
		return NULL;
	for (char *slash = folder; make && slash;) {
		slash = strchr(slash + 1, '/');
		if (slash)
			*slash = '\0';
		(void)mkdir(folder, 0700); /* a failure shows up when the index is written */
		if (slash)
			*slash = '/';
	}
	return folder;
}

/* Can nobody else write to the folder, if it exists? */
static bool
is_own_folder(struct leat_stores *stores, const char *folder)
{
	struct leat_folder_id id;
	struct leat_store *store;

	if (leat_stores_find(stores, folder, &store, NULL, NULL) != LEAT_OK)
		return false;
	return store->kind->list_folder(store, folder, NULL, NULL, &id, NULL) != LEAT_OK ||
	       (id.owner == geteuid() && !id.others_write);
}

/* "CACHE/leat/index/<hash of the data's name>.leatidx"; NULL: no cache folder of ours, or out of memory. */
static char *
path_in_cache(struct leat_store *store, const char *data, bool make, struct leat_mem *mem)
{
	char *folder = cache_folder(make, mem), *path = NULL;
	char *absolute = store->kind->absolute ? store->kind->absolute(store, data) : leat_strdup(store->mem, data);
	uint8_t digest[LEAT_SHA256_BYTES];
	char hex[LEAT_SHA256_HEX];

	if (folder && absolute && is_own_folder(store->stores, folder) &&
	    leat_sha256(absolute, strlen(absolute), digest) == 0) {
		leat_hex(digest, sizeof(digest), hex);
		path = leat_asprintf(mem, "%s/%s.leatidx", folder, hex);
	}
	leat_free(store->mem, absolute);
	leat_free(mem, folder);
	return path;
}

/* The path at a place, and its store. NULL: out of memory, or no cache folder. */
static char *
path_of(enum place place, struct leat_store **store, const char *data, bool make, struct leat_mem *mem)
{
	char *path = place == BESIDE_DATA ? path_beside(data, mem) : path_in_cache(*store, data, make, mem);

	if (path && place == IN_CACHE && leat_stores_find((*store)->stores, path, store, NULL, NULL) != LEAT_OK) {
		leat_free(mem, path);
		return NULL;
	}
	return path;
}

struct data {
	struct leat_store *store;
	const char *uri;
};

/* Its owner can change what the data says anyway. */
static bool
is_trusted(void *arg, const struct leat_object *index)
{
	const struct data *data = arg;
	uint32_t owner;

	return leat_object_is_trusted(index, 0) ||
	       (leat_owner_of(data->store, data->uri, &owner) && leat_object_is_trusted(index, owner));
}

/* LEAT_AGAIN: no file, or not a valid one. */
static enum leat_status
load_from(struct leat_store *store, const char *path, struct data *data, leat_beside_fault *fault, void *arg,
          struct leat_mem *mem, const struct leat_log *log, void **bytes, struct leat_err *err)
{
	const char *why = "it cannot be read";
	bool stale = false;
	size_t len;
	enum leat_status status = leat_object_load_if(store, path, is_trusted, data, mem, bytes, &len, err);

	if (status == LEAT_AGAIN || status == LEAT_NOMEM || status == LEAT_LIMIT)
		return status;
	leat_err_clear(err);
	if (status == LEAT_IO && store->kind->hides)
		return LEAT_AGAIN; /* as if it did not exist */
	if (status == LEAT_UNSUPPORTED)
		why = "it belongs to another user, or others can write it";
	if (status == LEAT_OK)
		why = fault(arg, *bytes, len, &stale);
	if (!why)
		return LEAT_OK;
	leat_log(log, stale ? LEAT_LOG_INFO : LEAT_LOG_WARN, "ignoring index '%s': %s", path, why);
	leat_free(mem, *bytes);
	*bytes = NULL;
	return LEAT_AGAIN;
}

enum leat_status
leat_beside_load(struct leat_store *store, const char *data, enum leat_beside_place wanted, leat_beside_fault *fault,
                 void *arg, struct leat_mem *mem, const struct leat_log *log, void **bytes, char **path,
                 struct leat_err *err)
{
	enum leat_status status = LEAT_AGAIN;
	struct data from = {store, data};

	for (enum place place = first_place(store, data, wanted); place < PLACES && status == LEAT_AGAIN; place++) {
		struct leat_store *of = store;

		*path = path_of(place, &of, data, false, mem);
		if (!*path)
			return place == BESIDE_DATA ? leat_fail_mem(err, mem, strlen(data) + 16, "the name of an index")
			                            : LEAT_AGAIN;
		status = load_from(of, *path, &from, fault, arg, mem, log, bytes, err);
		if (status != LEAT_OK) {
			leat_free(mem, *path);
			*path = NULL;
		}
	}
	return status;
}

static enum leat_status
save_to(struct leat_store *store, const char *path,
        enum leat_status (*write)(void *arg, struct leat_writer *out, struct leat_err *err), void *arg,
        struct leat_err *err)
{
	struct leat_writer *out;
	enum leat_status status = leat_store_begin(store, path, &out, err);

	if (status != LEAT_OK)
		return status;
	status = write(arg, out, err);
	if (status == LEAT_OK)
		return leat_write_commit(out, NULL, LEAT_COMMIT_OWN, err);
	leat_write_abort(out);
	return status;
}

enum leat_status
leat_beside_save(struct leat_store *store, const char *data, enum leat_beside_place wanted,
                 enum leat_status (*write)(void *arg, struct leat_writer *out, struct leat_err *err), void *arg,
                 struct leat_mem *mem, char **saved, struct leat_err *err)
{
	const enum place first = first_place(store, data, wanted);
	enum leat_status status = LEAT_IO;
	struct leat_err why[PLACES];

	for (enum place place = first; place < PLACES && status != LEAT_OK; place++) {
		struct leat_store *of = store;
		char *path = path_of(place, &of, data, true, mem);

		leat_err_clear(&why[place]);
		if (path)
			status = save_to(of, path, write, arg, &why[place]);
		else if (place == BESIDE_DATA)
			return leat_fail_mem(err, mem, strlen(data) + 16, "the name of an index");
		else
			leat_fail(&why[place], status, "there is none that only you can write to");
		if (status == LEAT_OK && saved)
			*saved = path;
		else
			leat_free(mem, path);
	}
	if (status == LEAT_OK)
		return LEAT_OK;
	if (first == IN_CACHE)
		return leat_fail(err, why[IN_CACHE].status, "in the cache folder: %s", why[IN_CACHE].text);
	return leat_fail(err, why[BESIDE_DATA].status, "%s, and in the cache folder: %s", why[BESIDE_DATA].text,
	                 why[IN_CACHE].text);
}

void
leat_beside_remove(struct leat_store *store, const char *data, struct leat_mem *mem)
{
	for (enum place place = first_place(store, data, LEAT_BESIDE_OWN); place < PLACES; place++) {
		struct leat_store *of = store;
		char *path = path_of(place, &of, data, false, mem);

		if (path)
			leat_store_remove(of, path, NULL);
		leat_free(mem, path);
	}
}
