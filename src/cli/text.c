/* text.c - see text.h */
#include "cli/text.h"

#include <stdio.h>
#include <string.h>

#include "store/store.h"

enum { MOST = 16 << 20 };

static enum leat_status
load(struct leat_store *store, const char *uri, struct leat_mem *mem, char **text, struct leat_err *err)
{
	struct leat_object object;
	void *bytes;
	size_t len;
	enum leat_status status = leat_object_load(store, uri, MOST, mem, &bytes, &len, err);

	*text = bytes;
	return status == LEAT_AGAIN ? store->kind->look(store, uri, &object, err) : status;
}

enum leat_status
leat_read_text(const char *path, const struct leat_storage *storage, struct leat_mem *mem, char **text,
               struct leat_err *err)
{
	struct leat_stores stores;
	struct leat_store *store;
	enum leat_status status;
	char *uri;

	*text = NULL;
	leat_stores_init(&stores, mem);
	stores.storage = storage;
	status = leat_stores_find(&stores, path, &store, &uri, err);
	if (status == LEAT_OK) {
		status = load(store, uri, mem, text, err);
		leat_free(mem, uri);
	}
	leat_stores_close(&stores);
	return status;
}

/* The beginning of a call of the source that reads a file, by the end of its name; NULL: unknown. */
static const char *
call_of(const char *path, enum leat_what what)
{
	static const struct {
		const char *ending, *call;
	} calls[] = {{".csv", "list('"}, {".npy", "npy(x='"}, {".tar", "tar('"}};
	size_t len = strlen(path);

	if (what == LEAT_IS_FOLDER)
		return "folder('";
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (len > 4 && strcmp(path + len - 4, calls[i].ending) == 0)
			return calls[i].call;
	return strstr(path, "tfrecord") ? "tfrecord('" : NULL;
}

enum leat_status
leat_check_spec(const char *spec, const struct leat_storage *storage, struct leat_mem *mem, struct leat_err *err)
{
	enum leat_what what = LEAT_IS_NOTHING;
	struct leat_store *store;
	struct leat_stores stores;
	const char *call;
	char *uri;

	if (strpbrk(spec, "|(") || strlen(spec) >= LEAT_URI)
		return LEAT_OK;
	leat_stores_init(&stores, mem);
	stores.storage = storage;
	if (leat_stores_find(&stores, spec, &store, &uri, NULL) == LEAT_OK) {
		what = leat_what_is(store, uri);
		leat_free(store->mem, uri);
	}
	leat_stores_close(&stores);
	if (what == LEAT_IS_NOTHING)
		return LEAT_OK;
	call = call_of(spec, what);
	return leat_fail(err, LEAT_INVALID, "'%s' is a %s, not a spec; %s%s%s%s'leat ops' lists all sources", spec,
	                 what == LEAT_IS_FOLDER ? "folder" : "file", call ? "try \"" : "", call ? call : "",
	                 call ? spec : "", call ? "')\"; " : "");
}

enum leat_status
leat_check_output(const char *path, const char *option, const struct leat_storage *storage, struct leat_mem *mem,
                  struct leat_err *err)
{
	struct leat_writer *writer = NULL;
	struct leat_stores stores;
	enum leat_status status;

	leat_stores_init(&stores, mem);
	stores.storage = storage;
	status = leat_write_begin(&writer, &stores, path, err);
	leat_write_abort(writer);
	leat_stores_close(&stores);
	if (status != LEAT_OK)
		leat_err_in(err, "%s", option);
	return status;
}
