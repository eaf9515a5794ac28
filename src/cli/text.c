/* text.c - see text.h */
#include "cli/text.h"

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
leat_read_text(const char *path, struct leat_mem *mem, char **text, struct leat_err *err)
{
	struct leat_stores stores;
	struct leat_store *store;
	enum leat_status status;
	char *uri;

	*text = NULL;
	leat_stores_init(&stores, mem);
	status = leat_stores_find(&stores, path, &store, &uri, err);
	if (status == LEAT_OK) {
		status = load(store, uri, mem, text, err);
		leat_free(mem, uri);
	}
	leat_stores_close(&stores);
	return status;
}
