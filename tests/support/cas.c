/* cas.c - a content store in a temporary folder, and manifests to put into it */
#include "support/cas.h"

#include <fts.h>

int
store_setup(void **state)
{
	struct store *store = calloc(1, sizeof *store);

	temp_make(&store->temp);
	leat_mem_init(&store->mem, SIZE_MAX);
	snprintf(store->folder, sizeof store->folder, "%s/.leat", store->temp.folder);
	*state = store;
	return 0;
}

int
store_teardown(void **state)
{
	struct store *store = *state;

	store_close(store);
	assert_int_equal(store->mem.used, 0);
	leat_remove_tree(store->folder);
	temp_remove(&store->temp);
	free(store);
	return 0;
}

void
store_open(struct store *store, enum leat_cas_mode mode)
{
	must(leat_cas_open(&store->cas, &store->mem, store->folder, mode, err));
	if (mode == LEAT_CAS_WRITE)
		must(leat_cas_begin(store->cas, err));
}

void
store_close(struct store *store)
{
	leat_cas_close(store->cas);
	store->cas = NULL;
}

const char *
store_path(struct store *store, const char *fmt, ...)
{
	static char path[PATH_MAX];
	int len = snprintf(path, sizeof path, "%s/", store->folder);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path + len, sizeof path - (size_t)len, fmt, ap);
	va_end(ap);
	return path;
}

size_t
store_count(struct store *store, const char *folder)
{
	char path[PATH_MAX], *const paths[] = {path, NULL};
	size_t count = 0;
	FTSENT *entry;
	FTS *fts;

	snprintf(path, sizeof path, "%s", store_path(store, "%s", folder));
	fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	while ((entry = fts_read(fts)))
		count += entry->fts_info == FTS_F;
	fts_close(fts);
	return count;
}

void
store_make(struct store *store, const char *bytes, char path[PATH_MAX])
{
	FILE *file;

	leat_cas_temp_path(store->cas, path);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(bytes, file);
	assert_int_equal(fclose(file), 0);
}

struct leat_content
store_take(struct store *store, const char *bytes)
{
	char path[PATH_MAX];
	struct leat_content content;

	store_make(store, bytes, path);
	must(leat_cas_take(store->cas, path, &content, err));
	return content;
}

void
store_stem(const char *command, struct leat_digest *stem)
{
	const struct leat_key_field field = {"command", command};

	must(leat_key_of(&field, 1, stem, err));
}

void
store_action(struct action *action, const char *command, const char *import, const struct leat_content *output)
{
	memset(action, 0, sizeof *action);
	action->field[0] = (struct leat_key_field){"command", command};
	action->field[1] = (struct leat_key_field){"import.x", import};
	action->manifest = (struct leat_manifest){.step = "step",
	                                          .slice = "",
	                                          .field = action->field,
	                                          .fields = import ? 2 : 1,
	                                          .learned = import ? 1 : 0,
	                                          .output = *output,
	                                          .run = "",
	                                          .begun_s = 1.7e9,
	                                          .seconds = 1.5,
	                                          .cpus = 1,
	                                          .threads = 1,
	                                          .attempts = 1,
	                                          .metrics = "",
	                                          .warning = ""};
	must(leat_key_of(action->field, action->manifest.fields, &action->manifest.key, err));
	store_stem(command, &action->stem);
}

void
store_record(struct store *store, struct action *action)
{
	struct leat_content other;

	action->manifest.run = leat_cas_run(store->cas);
	must(leat_index_next_number(store->cas, action->manifest.step, &action->manifest.number, err));
	must(leat_cas_record(store->cas, &action->manifest, &other, err));
	assert_int_equal(other.kind, LEAT_CONTENT_NONE);
}

struct leat_content
store_made(struct store *store, const char *step, const char *command, const char *bytes)
{
	struct leat_content output = store_take(store, bytes);
	struct action action;

	store_action(&action, command, NULL, &output);
	action.manifest.step = step;
	store_record(store, &action);
	return output;
}

static bool
copy_first(void *arg, const struct leat_made *made)
{
	*(struct leat_made *)arg = *made;
	return true;
}

bool
store_find(struct store *store, const struct leat_digest *stem, struct leat_made *made)
{
	static const struct leat_digest none;

	memset(made, 0, sizeof *made);
	must(leat_index_find(store->cas, stem, copy_first, made, err));
	return !leat_digest_equal(&made->key, &none);
}
