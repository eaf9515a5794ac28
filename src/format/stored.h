/* stored.h - numbers as stored in files: little-endian, unaligned, some of them in types that sources widen
 *
 * A narrow type is widened to one that holds all its values: int8, int16 and uint16 become int32, uint32
 * and uint64 become int64 (a uint64 out of range is an error), bool becomes uint8. Stateless: any thread. */
#ifndef LEAT_FORMAT_STORED_H
#define LEAT_FORMAT_STORED_H

#include "leat.h"

struct leat_stored {
	const char *name; /* as numpy writes it: "uint16" */
	unsigned width;   /* bytes in the file */
	enum leat_dtype dtype;
	int64_t min, max; /* for integers; both 0 for floats */
};

/* Finds a type by name; NULL: unknown. */
const struct leat_stored *leat_stored_find(const char *name, size_t len);

/* Size in memory over size in the file. */
static inline unsigned
leat_stored_growth(const struct leat_stored *type)
{
	return (unsigned)leat_dtype_size(type->dtype) / type->width;
}

/* Copies numbers from a file to aligned memory. False: a uint64 does not fit int64. */
bool leat_stored_copy(const struct leat_stored *type, void *to, const unsigned char *from, size_t count);
/* Copies integers to memory of the type's dtype. False: one is out of the type's range. */
bool leat_stored_narrow(const struct leat_stored *type, void *to, const int64_t *from, size_t count);

#endif
