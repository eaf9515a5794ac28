/* ls.c - `leat ls`: list files in any store, as sources see them */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/size.h"
#include "cli/command.h"
#include "cli/print.h"
#include "store/store.h"

struct ls {
	bool bytes;
	struct leat_strings storage;
};

static const struct leat_opt options[] = {
	LEAT_BOOL(struct ls, bytes, "false", "print sizes in bytes"),
	LEAT_STORAGE_OPTION(struct ls),
	LEAT_OPT_END,
};

struct entry {
	char *name;
	uint64_t size;
	bool is_folder;
};

struct listing {
	struct leat_mem *mem;
	struct entry *entry;
	size_t count, cap;
};

static enum leat_status
add(struct listing *listing, const char *name, uint64_t size, bool is_folder, struct leat_err *err)
{
	enum leat_status status = LEAT_GROW(listing->mem, listing->entry, listing->cap, listing->count + 1, SIZE_MAX,
	                                    "the list of files", err);
	char *copy = status == LEAT_OK ? leat_strdup(listing->mem, name) : NULL;

	if (status != LEAT_OK)
		return status;
	if (!copy)
		return leat_fail_mem(err, listing->mem, strlen(name) + 1, "the list of files");
	listing->entry[listing->count++] = (struct entry){copy, size, is_folder};
	return LEAT_OK;
}

static enum leat_status
add_object(void *arg, const struct leat_object *object, struct leat_err *err)
{
	return add(arg, object->uri, object->size, false, err);
}

static enum leat_status
add_entry(void *arg, const struct leat_entry *entry, struct leat_err *err)
{
	return entry->is_missing ? LEAT_OK : add(arg, entry->name, entry->size, entry->is_folder, err);
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

/* Files that match, or, if the name is a folder's, what is in it. */
static enum leat_status
list(struct leat_stores *stores, const char *text, struct listing *listing, struct leat_err *err)
{
	struct leat_folder_id id;
	struct leat_store *store;
	size_t before = listing->count;
	char *uri;
	enum leat_status status = leat_stores_find(stores, text, &store, &uri, err);

	if (status != LEAT_OK)
		return status;
	status = store->kind->list(store, uri, add_object, listing, err);
	if (status == LEAT_AGAIN)
		status = leat_fail(err, LEAT_IO, "no file matches '%s'", uri);
	if (status == LEAT_INVALID && listing->count == before) {
		leat_err_clear(err);
		status = store->kind->list_folder(store, uri, add_entry, listing, &id, err);
	}
	if (listing->count > before + 1)
		qsort(listing->entry + before, listing->count - before, sizeof(*listing->entry), compare_names);
	leat_free(store->mem, uri);
	return status;
}

static enum leat_status
print(const struct listing *listing, bool bytes, struct leat_err *err)
{
	struct leat_table table;
	char size[32];

	leat_table_init(&table, listing->mem, 2);
	table.right[0] = true;
	for (size_t i = 0; i < listing->count; i++) {
		const struct entry *entry = &listing->entry[i];
		struct leat_str *cell = leat_table_cell(&table);

		if (!entry->is_folder && bytes)
			leat_str_addf(cell, "%llu", (unsigned long long)entry->size);
		else if (!entry->is_folder)
			leat_str_add(cell, leat_format_size(size, sizeof(size), entry->size));
		cell = leat_table_cell(&table);
		leat_str_add_shown(cell, entry->name);
		leat_str_add(cell, entry->is_folder ? "/" : "");
	}
	return leat_table_print(&table, stdout, err);
}

static enum leat_status
run_ls(const struct leat_invocation *run, struct leat_err *err)
{
	const struct ls *ls = run->params;
	struct listing listing = {.mem = run->mem};
	struct leat_stores stores;
	enum leat_status status = LEAT_OK;

	leat_stores_init(&stores, run->mem);
	stores.storage = run->storage;
	for (size_t i = 0; i < run->operands && status == LEAT_OK; i++)
		status = list(&stores, run->operand[i], &listing, err);
	if (status == LEAT_OK)
		status = print(&listing, ls->bytes, err);
	for (size_t i = 0; i < listing.count; i++)
		leat_free(run->mem, listing.entry[i].name);
	leat_free(run->mem, listing.entry);
	leat_stores_close(&stores);
	return status;
}

const struct leat_command leat_command_ls = {
	.name = "ls",
	.summary = "List files in any store",
	.operands = "URI...",
	.min_operands = 1,
	.max_operands = SIZE_MAX,
	.help = "Lists the files that match a name or pattern, or what is in a folder, with their sizes:\n"
		"what a source with the same URI would read. Web servers cannot list; name a file there.",
	.example = "leat ls 's3://bucket/train-*.tfrecord'\n"
		   "leat ls s3://bucket/images --storage endpoint=https://minio.lab:9000 --storage profile=lab",
	.opts = options,
	.params_size = sizeof(struct ls),
	.run = run_ls,
};
