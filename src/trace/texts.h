/* texts.h - names of spans and tracks, each kept once and known by a number
 *
 * Looking up a text that is known takes no lock. A text keeps its address and number until the table is closed. */
#ifndef LEAT_TRACE_TEXTS_H
#define LEAT_TRACE_TEXTS_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/mem.h"

enum { LEAT_TEXT_SLOTS = 4096, LEAT_MAX_TEXTS = LEAT_TEXT_SLOTS / 2, LEAT_TEXT_BYTES = 128 };

struct leat_texts {
	_Atomic(char *) slot[LEAT_TEXT_SLOTS]; /* by hash, then the next free one */
	unsigned count;                        /* under the caller's lock */
};

/* Its number, from 1 on. 0: not known. */
uint32_t leat_texts_find(struct leat_texts *texts, const char *text);
/* Under a lock of the caller's: adds a text that may be known. 0: too many, or no memory. What is longer than
 * LEAT_TEXT_BYTES - 1 is cut off. */
uint32_t leat_texts_add(struct leat_texts *texts, const char *text, struct leat_mem *mem);
const char *leat_texts_at(const struct leat_texts *texts, uint32_t number);
void leat_texts_free(struct leat_texts *texts, struct leat_mem *mem);

#endif
