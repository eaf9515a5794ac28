/* fuzz_tree.c - a tree that is accepted is written again as the same bytes, and names nothing outside of its folder */
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cas/content.h"

static void
must(bool holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "%s\n", what);
		abort();
	}
}

static enum leat_status
write_again(void *arg, const char *name, const struct leat_content *content, const char *target, struct leat_err *err)
{
	must(*name != '\0' && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0, "a bad name");
	must(!target || target[0] != '/', "an absolute link");
	return target ? leat_tree_add_link(arg, name, target, err) : leat_tree_add(arg, name, content, err);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct leat_mem mem;
	struct leat_str tree;
	const struct leat_tree_reader reader = {write_again, &tree};
	char *copy = malloc(size ? size : 1);

	memcpy(copy, data, size); /* exactly as long, so that reading past its end is seen */
	leat_mem_init(&mem, SIZE_MAX);
	leat_str_init(&tree, &mem, SIZE_MAX);
	if (leat_tree_read(copy, size, &reader, NULL) == LEAT_OK)
		must(tree.len == size && !memcmp(leat_str_text(&tree), copy, size), "it is written differently");
	leat_str_free(&tree);
	free(copy);
	return 0;
}
