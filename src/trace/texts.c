/* texts.c - see texts.h */
#include "trace/texts.h"

#include <string.h>

/* FNV-1a: texts are short and come from the program itself. */
static uint32_t
hash_text(const char *text, size_t len)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)text[i]) * 16777619u;
	return hash;
}

/* The slot of a text, or the free one where it belongs. At most half of the slots are used, so there is one. */
static uint32_t
slot_of(struct leat_texts *texts, const char *text, size_t len)
{
	uint32_t i = hash_text(text, len) % LEAT_TEXT_SLOTS;
	const char *there;

	while ((there = atomic_load_explicit(&texts->slot[i], memory_order_acquire)) != NULL &&
	       (strncmp(there, text, len) != 0 || there[len] != '\0'))
		i = (i + 1) % LEAT_TEXT_SLOTS;
	return i;
}

/* Without half a character at the end. */
static size_t
kept_length(const char *text)
{
	size_t len = strnlen(text, LEAT_TEXT_BYTES);

	if (len < LEAT_TEXT_BYTES)
		return len;
	len = LEAT_TEXT_BYTES - 1;
	while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
		len--;
	return len;
}

uint32_t
leat_texts_find(struct leat_texts *texts, const char *text)
{
	uint32_t i = slot_of(texts, text, kept_length(text));

	return atomic_load_explicit(&texts->slot[i], memory_order_acquire) ? i + 1 : 0;
}

uint32_t
leat_texts_add(struct leat_texts *texts, const char *text, struct leat_mem *mem)
{
	size_t len = kept_length(text);
	uint32_t i = slot_of(texts, text, len);
	char *copy;

	if (atomic_load_explicit(&texts->slot[i], memory_order_relaxed))
		return i + 1;
	if (texts->count == LEAT_MAX_TEXTS)
		return 0;
	copy = leat_strndup(mem, text, len);
	if (!copy)
		return 0;
	texts->count++;
	atomic_store_explicit(&texts->slot[i], copy, memory_order_release);
	return i + 1;
}

const char *
leat_texts_at(const struct leat_texts *texts, uint32_t number)
{
	return number == 0 ? NULL : atomic_load_explicit(&texts->slot[number - 1], memory_order_acquire);
}

void
leat_texts_free(struct leat_texts *texts, struct leat_mem *mem)
{
	for (unsigned i = 0; i < LEAT_TEXT_SLOTS; i++)
		leat_free(mem, atomic_load_explicit(&texts->slot[i], memory_order_relaxed));
}
