/* build_folder.c - folders that are put together from the outputs of slices
 *
 * An entry is named by the values of the slice's variables that the reader does not share, and the step's suffix.
 *
 * What splits a table makes folders with a file for each partition, which are turned round: partition 7 gets a folder
 * with file 7 of each. So its key has only the rows that are its own, and it is found again when others change. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "step/build_plan.h"
#include "table/partition.h"

enum { MAX_TREE = INT32_MAX, MAX_NAMES = INT32_MAX };

struct entry {
	size_t name; /* offset in the names */
	uint32_t slice;
};

struct folder {
	struct leat_str names; /* NUL-separated */
	struct entry *entry;
	size_t count;
};

struct names { /* around the values of variables */
	const char *prefix, *suffix;
};

static int
by_name(const void *a, const void *b, void *names)
{
	const char *text = names;

	return strcmp(text + ((const struct entry *)a)->name, text + ((const struct entry *)b)->name);
}

static enum leat_status
name_entries(struct folder *folder, const struct leat_step *step, const bool *entry, const uint32_t *slice,
             const struct names *names, struct leat_mem *mem, struct leat_err *err)
{
	for (size_t i = 0; i < folder->count; i++) {
		folder->entry[i] = (struct entry){folder->names.len, slice ? slice[i] : (uint32_t)i};
		leat_str_add(&folder->names, names->prefix);
		leat_slice_entry(&step->slices, folder->entry[i].slice, entry, &folder->names);
		leat_str_add(&folder->names, names->suffix);
		leat_str_addn(&folder->names, "", 1);
	}
	if (folder->names.failed)
		return leat_fail_mem(err, mem, folder->names.len, "the names of slices");
	qsort_r(folder->entry, folder->count, sizeof(*folder->entry), by_name, folder->names.text);
	return LEAT_OK;
}

static enum leat_status
add_entries(const struct folder *folder, const struct leat_plan_step *up, struct leat_str *tree, uint64_t *bytes,
            struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	leat_str_reserve(tree, folder->names.len + folder->count * (LEAT_SHA256_HEX + 12));
	for (size_t i = 0; status == LEAT_OK && i < folder->count; i++) {
		const struct leat_content *content = &up->action[folder->entry[i].slice].output;

		status = leat_tree_add(tree, folder->names.text + folder->entry[i].name, content, err);
		*bytes += content->bytes;
	}
	return status;
}

static enum leat_status
finish_tree(struct leat_plan *plan, const struct leat_str *tree, uint64_t bytes, bool put, struct leat_content *content,
            struct leat_err *err)
{
	if (tree->failed)
		return leat_fail_mem(err, plan->mem, tree->len, "the tree of a folder");
	if (put)
		return leat_cas_put_tree(plan->cas, tree, content, err);
	*content = (struct leat_content){.bytes = bytes, .kind = LEAT_CONTENT_FOLDER};
	leat_sha256(leat_str_text(tree), tree->len, content->digest.byte);
	return LEAT_OK;
}

enum leat_status
leat_plan_folder(struct leat_plan *plan, const struct leat_plan_step *up, const bool *entry, const uint32_t *slice,
                 size_t count, bool put, struct leat_content *content, struct leat_err *err)
{
	struct folder folder = {.count = count};
	enum leat_status status;
	struct leat_str tree;
	uint64_t bytes = 0;

	leat_str_init(&folder.names, plan->mem, MAX_NAMES);
	leat_str_init(&tree, plan->mem, MAX_TREE);
	folder.entry = leat_alloc_array(plan->mem, count, sizeof(*folder.entry));
	if (!folder.entry)
		return leat_fail_mem(err, plan->mem, count * sizeof(*folder.entry), "the names of slices");
	status = name_entries(&folder, up->step, entry, slice, &(struct names){"", up->step->suffix}, plan->mem, err);
	if (status == LEAT_OK)
		status = add_entries(&folder, up, &tree, &bytes, err);
	if (status == LEAT_OK)
		status = finish_tree(plan, &tree, bytes, put, content, err);
	leat_free(plan->mem, folder.entry);
	leat_str_free(&folder.names);
	leat_str_free(&tree);
	return status;
}

/* ---- partitions ---- */

struct turning {
	struct leat_plan *plan;
	struct leat_str *tree; /* by partition */
	uint64_t *bytes;
	size_t partitions;
	bool is_first;    /* slice */
	const char *name; /* of the slice's entries */
};

static enum leat_status
turn_file(struct turning *t, size_t partition, const char *name, const struct leat_content *content,
          struct leat_err *err)
{
	t->bytes[partition] += content->bytes;
	return leat_tree_add(&t->tree[partition], name, content, err);
}

/* Every partition gets the columns of the first slice, and of each slice its rows, if it has any: a new slice does not
 * change the partitions that it has no rows of. */
static enum leat_status
turn_entry(void *arg, const char *name, const struct leat_content *content, const char *target, struct leat_err *err)
{
	struct turning *t = arg;
	enum leat_status status = LEAT_OK;
	unsigned partition;
	char end;

	if (target != NULL || content->kind != LEAT_CONTENT_FILE)
		return leat_fail(err, LEAT_DATA, "it has other things in it than files");
	if (!strcmp(name, LEAT_SPLIT_COLUMNS)) {
		for (size_t i = 0; t->is_first && i < t->partitions && status == LEAT_OK; i++)
			status = turn_file(t, i, name, content, err);
		return status;
	}
	if (sscanf(name, LEAT_SPLIT_ROWS "%c", &partition, &end) != 1 || partition >= t->partitions)
		return leat_fail(err, LEAT_DATA, "it has a file '%s' in it", name);
	return turn_file(t, partition, t->name, content, err);
}

static enum leat_status
turn_slice(struct turning *t, const struct leat_plan_step *up, uint32_t slice, struct leat_err *err)
{
	const struct leat_tree_reader reader = {.entry = turn_entry, .arg = t};
	const struct leat_content *output = &up->action[slice].output;
	enum leat_status status;
	size_t len = 0;
	char *text = NULL;

	status = leat_cas_read(t->plan->cas, &output->digest, MAX_TREE, &text, &len, err);
	if (status == LEAT_OK)
		status = leat_tree_read(text, len, &reader, err);
	leat_free(t->plan->mem, text);
	t->is_first = false;
	if (status != LEAT_OK)
		leat_err_in(err, "the result of step '%s' cannot be used", up->step->name);
	return status;
}

/* rows-NAME.parquet, which comes after the columns. */
static enum leat_status
turn_slices(struct turning *t, const struct leat_plan_step *up, const struct leat_plan_edge *edge, struct leat_err *err)
{
	const struct names names = {.prefix = "rows-", .suffix = ".parquet"};
	struct folder folder = {.count = leat_members_count(&edge->members, 0)};
	const uint32_t *slice = edge->members.start ? edge->members.slice : NULL;
	enum leat_status status;

	if (!edge->entry) {
		t->name = "rows.parquet";
		return turn_slice(t, up, leat_members_at(&edge->members, 0, 0), err);
	}
	leat_str_init(&folder.names, t->plan->mem, MAX_NAMES);
	folder.entry = leat_alloc_array(t->plan->mem, folder.count, sizeof(*folder.entry));
	status = folder.entry ? name_entries(&folder, up->step, edge->entry, slice, &names, t->plan->mem, err)
	                      : leat_fail_mem(err, t->plan->mem, folder.count * sizeof(*folder.entry),
	                                      "the names of slices");
	for (size_t i = 0; status == LEAT_OK && i < folder.count; i++) {
		t->name = folder.names.text + folder.entry[i].name;
		status = turn_slice(t, up, folder.entry[i].slice, err);
	}
	leat_free(t->plan->mem, folder.entry);
	leat_str_free(&folder.names);
	return status;
}

enum leat_status
leat_plan_entries(struct leat_plan *plan, const struct leat_plan_step *step, struct leat_plan_edge *edge,
                  struct leat_err *err)
{
	size_t count = step->step->slices.count;
	struct turning t = {.plan = plan,
	                    .tree = leat_alloc_array(plan->mem, count, sizeof(*t.tree)),
	                    .bytes = leat_alloc_array(plan->mem, count, sizeof(*t.bytes)),
	                    .partitions = count,
	                    .is_first = true};
	enum leat_status status = LEAT_OK;

	if (!t.tree || !t.bytes)
		status = leat_fail_mem(err, plan->mem, count * sizeof(*t.tree), "the partitions of a table");
	for (size_t i = 0; t.tree && i < count; i++)
		leat_str_init(&t.tree[i], plan->mem, MAX_TREE);
	if (status == LEAT_OK)
		status = turn_slices(&t, &plan->step[edge->up], edge, err);
	for (size_t i = 0; status == LEAT_OK && i < count; i++)
		status = finish_tree(plan, &t.tree[i], t.bytes[i], plan->writes, &edge->content[i], err);
	for (size_t i = 0; t.tree && i < count; i++)
		leat_str_free(&t.tree[i]);
	leat_free(plan->mem, t.tree);
	leat_free(plan->mem, t.bytes);
	return status;
}

enum leat_status
leat_plan_gather(struct leat_plan *plan, const struct leat_plan_step *step, struct leat_plan_edge *edge, uint32_t group,
                 struct leat_err *err)
{
	uint32_t alone = group;
	const uint32_t *slice = edge->members.start ? edge->members.slice + edge->members.start[group] : &alone;

	if (edge->how == LEAT_EDGE_ENTRY)
		return leat_plan_entries(plan, step, edge, err);
	if (!edge->entry)
		return LEAT_OK;
	return leat_plan_folder(plan, &plan->step[edge->up], edge->entry, slice,
	                        leat_members_count(&edge->members, group), plan->writes, &edge->content[group], err);
}
