/* ask_folders.c - which entries of a folder changed, from two trees of the store */
#include <string.h>

#include "base/array.h"
#include "cli/ask.h"

enum { MAX_TREE = 64 * 1024 * 1024, SHOWN = 5 };

struct entry {
	char *name;
	struct leat_content content;
};

struct folder {
	struct leat_mem *mem;
	struct entry *entry; /* in the order of trees */
	size_t count, cap;
};

static enum leat_status
add_entry(void *arg, const char *name, const struct leat_content *content, const char *target, struct leat_err *err)
{
	struct folder *folder = arg;
	enum leat_status status =
		LEAT_GROW(folder->mem, folder->entry, folder->cap, folder->count + 1, SIZE_MAX, "a folder", err);
	char *copy = status == LEAT_OK ? leat_strdup(folder->mem, name) : NULL;

	(void)target;
	if (status != LEAT_OK)
		return status;
	if (!copy)
		return leat_fail_mem(err, folder->mem, strlen(name), "a folder");
	folder->entry[folder->count++] = (struct entry){copy, *content};
	return LEAT_OK;
}

/* Folders that are no trees of the store, such as the user's, stay empty. */
static bool
read_folder(struct leat_cas *cas, const char *value, struct folder *folder)
{
	struct leat_content content;
	char *tree;
	size_t len;
	bool good;

	if (!value || leat_content_parse(value, &content, NULL) != LEAT_OK || content.kind != LEAT_CONTENT_FOLDER ||
	    leat_cas_read(cas, &content.digest, MAX_TREE, &tree, &len, NULL) != LEAT_OK)
		return false;
	good = leat_tree_read(tree, len, &(struct leat_tree_reader){add_entry, folder}, NULL) == LEAT_OK;
	leat_free(folder->mem, tree);
	return good;
}

static void
free_folder(struct folder *folder)
{
	for (size_t i = 0; i < folder->count; i++)
		leat_free(folder->mem, folder->entry[i].name);
	leat_free(folder->mem, folder->entry);
}

static void
add_line(struct leat_cas *cas, const struct entry *was, const struct entry *now, struct leat_str *out)
{
	char text[LEAT_CONTENT_TEXT];

	leat_str_addf(out, "      in it, %s %s", was ? was->name : now->name,
	              !was   ? "is new"
	              : !now ? "is gone"
	                     : "changed");
	if (now)
		leat_ask_maker(cas, leat_content_text(&now->content, text), out);
	leat_str_add(out, "\n");
}

void
leat_ask_folders(struct leat_cas *cas, const char *was, const char *now, struct leat_str *out)
{
	struct folder one = {.mem = out->mem}, other = {.mem = out->mem};
	bool good = read_folder(cas, was, &one) && read_folder(cas, now, &other);
	size_t i = 0, j = 0, changes = 0;

	while (good && (i < one.count || j < other.count)) {
		int order = i == one.count ? 1 : j == other.count ? -1 : strcmp(one.entry[i].name, other.entry[j].name);
		bool same = order == 0 && leat_content_equal(&one.entry[i].content, &other.entry[j].content);

		if (!same && changes++ < SHOWN)
			add_line(cas, order <= 0 ? &one.entry[i] : NULL, order >= 0 ? &other.entry[j] : NULL, out);
		i += order <= 0;
		j += order >= 0;
	}
	if (changes > SHOWN)
		leat_str_addf(out, "      in it, %zu more\n", changes - SHOWN);
	free_folder(&one);
	free_folder(&other);
}
