/* project_text.h - memory that ends with a project: strings, arrays and nodes in a few blocks
 *
 * Nothing is freed one by one. One thread. */
#ifndef LEAT_STEP_PROJECT_TEXT_H
#define LEAT_STEP_PROJECT_TEXT_H

#include "base/err.h"
#include "base/mem.h"

struct leat_text_block;

struct leat_project_text {
	struct leat_mem *mem;
	struct leat_text_block *block;
	struct leat_err *err; /* of whoever fills it */
};

void leat_text_init(struct leat_project_text *text, struct leat_mem *mem, struct leat_err *err);
void leat_text_free(struct leat_project_text *text);

/* Zeroed. NULL: out of memory, and text->err says so. */
void *leat_text_alloc(struct leat_project_text *text, size_t size);
void *leat_text_array(struct leat_project_text *text, size_t count, size_t size);
/* A NUL-terminated copy. */
const char *leat_text_keep(struct leat_project_text *text, const char *bytes, size_t len);

#endif
