/* build_folder.c - folders that are put together from the outputs of slices
 *
 * An entry is named by the values of the slice's variables that the reader does not share, and the step's suffix. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "step/build_plan.h"

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

static int
by_name(const void *a, const void *b, void *names)
{
	const char *text = names;

	return strcmp(text + ((const struct entry *)a)->name, text + ((const struct entry *)b)->name);
}

static enum leat_status
name_entries(struct folder *folder, const struct leat_step *step, const bool *entry, const uint32_t *slice,
             struct leat_mem *mem, struct leat_err *err)
{
	for (size_t i = 0; i < folder->count; i++) {
		folder->entry[i] = (struct entry){folder->names.len, slice ? slice[i] : (uint32_t)i};
		leat_slice_entry(&step->slices, folder->entry[i].slice, entry, &folder->names);
		leat_str_add(&folder->names, step->suffix);
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
	status = name_entries(&folder, up->step, entry, slice, plan->mem, err);
	if (status == LEAT_OK)
		status = add_entries(&folder, up, &tree, &bytes, err);
	if (status == LEAT_OK)
		status = finish_tree(plan, &tree, bytes, put, content, err);
	leat_free(plan->mem, folder.entry);
	leat_str_free(&folder.names);
	leat_str_free(&tree);
	return status;
}

enum leat_status
leat_plan_gather(struct leat_plan *plan, struct leat_plan_edge *edge, uint32_t group, struct leat_err *err)
{
	uint32_t alone = group;
	const uint32_t *slice = edge->members.start ? edge->members.slice + edge->members.start[group] : &alone;

	if (!edge->entry)
		return LEAT_OK;
	return leat_plan_folder(plan, &plan->step[edge->up], edge->entry, slice,
	                        leat_members_count(&edge->members, group), plan->writes, &edge->content[group], err);
}
