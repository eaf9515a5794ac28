/* project_text.c - see project_text.h */
#include "step/project_text.h"

#include <string.h>

enum { FIRST = 2048, LARGEST = 256 * 1024, ALIGN = 16 };

struct leat_text_block {
	struct leat_text_block *next;
	size_t size, used;
	_Alignas(ALIGN) char bytes[];
};

void
leat_text_init(struct leat_project_text *text, struct leat_mem *mem, struct leat_err *err)
{
	*text = (struct leat_project_text){.mem = mem, .err = err};
}

void
leat_text_free(struct leat_project_text *text)
{
	while (text->block) {
		struct leat_text_block *next = text->block->next;

		leat_free(text->mem, text->block);
		text->block = next;
	}
}

/* A block with room for `size` bytes. */
static struct leat_text_block *
add_block(struct leat_project_text *text, size_t size)
{
	size_t usual = text->block ? text->block->size * 2 : FIRST;
	struct leat_text_block *block;

	if (usual > LARGEST)
		usual = LARGEST;
	if (size < usual)
		size = usual;
	block = size > SIZE_MAX - sizeof(*block) ? NULL : leat_alloc(text->mem, sizeof(*block) + size);
	if (!block) {
		leat_fail_mem(text->err, text->mem, size, "leat.yaml");
		return NULL;
	}
	block->size = size;
	block->next = text->block;
	text->block = block;
	return block;
}

static void *
take(struct leat_project_text *text, size_t size, size_t align)
{
	struct leat_text_block *block = text->block;
	size_t at = block ? (block->used + align - 1) & ~(align - 1) : 0;

	if (!block || at > block->size || size > block->size - at) {
		block = add_block(text, size);
		at = 0;
	}
	if (!block)
		return NULL;
	block->used = at + size;
	return block->bytes + at;
}

void *
leat_text_alloc(struct leat_project_text *text, size_t size)
{
	return take(text, size, ALIGN);
}

void *
leat_text_array(struct leat_project_text *text, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes))
		bytes = SIZE_MAX;
	return take(text, bytes, ALIGN);
}

const char *
leat_text_keep(struct leat_project_text *text, const char *bytes, size_t len)
{
	char *copy = take(text, len + 1, 1);

	if (copy)
		memcpy(copy, bytes, len);
	return copy;
}
