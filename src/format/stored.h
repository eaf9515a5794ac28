/* stored.h - numbers as files hold them: little-endian, unaligned, and of types that sources widen
 *
 * A narrow type becomes the next one that holds all its values: int8, int16 and
 * uint16 are int32, uint32 and uint64 are int64 (where a value beyond it is an error), bool is
 * uint8. No state: any thread. */
#ifndef LEAT_FORMAT_STORED_H
#define LEAT_FORMAT_STORED_H

#include "leat.h"

struct leat_stored {
	const char *name; /* as numpy writes it: "uint16" */
	unsigned width;   /* bytes in the file */
	enum leat_dtype dtype;
	int64_t min, max; /* of whole numbers; of floats both 0 */
};

/* The type called name[0..len); NULL: there is none. */
const struct leat_stored *leat_stored_find(const char *name, size_t len);

/* How many times larger a number is in memory. */
static inline unsigned
leat_stored_growth(const struct leat_stored *type)
{
	return (unsigned)leat_dtype_size(type->dtype) / type->width;
}

/* Copies numbers from a file to aligned memory. False: one does not fit, which only a uint64 can. */
bool leat_stored_copy(const struct leat_stored *type, void *to, const unsigned char *from, size_t count);
/* Copies whole numbers to the type's memory. False: one is none of the type's. */
bool leat_stored_narrow(const struct leat_stored *type, void *to, const int64_t *from, size_t count);

#endif
