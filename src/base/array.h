/* array.h - arrays that grow
 *
 *	status = LEAT_GROW(mem, paths->path, paths->cap, paths->count + 1, SIZE_MAX, "the list of files", err);
 *	if (status == LEAT_OK)
 *		paths->path[paths->count++] = path;
 *
 * The capacity at least doubles, so that adding n items costs n copies at most. When there is no room,
 * array and capacity stay as they were, and the error says what could not be had. */
#ifndef LEAT_BASE_ARRAY_H
#define LEAT_BASE_ARRAY_H

#include <stddef.h>

#include "base/err.h"

struct leat_mem;

/* Room for `need` items in `array`, a pointer to the first item or NULL, whose capacity is `cap`. More
 * than `max` are LEAT_LIMIT. New items are zero. `what` names the array in an error. */
#define LEAT_GROW(mem, array, cap, need, max, what, err)                                                               \
	((need) <= (cap) ? LEAT_OK : leat_grow(mem, &(array), &(cap), need, sizeof(*(array)), max, true, what, err))
/* The same, but new items are not zeroed: for arrays of millions that are filled at once. */
#define LEAT_GROW_RAW(mem, array, cap, need, max, what, err)                                                           \
	((need) <= (cap) ? LEAT_OK : leat_grow(mem, &(array), &(cap), need, sizeof(*(array)), max, false, what, err))

/* `array` is the address of the pointer. */
enum leat_status leat_grow(struct leat_mem *mem, void *array, size_t *cap, size_t need, size_t size, size_t max,
                           bool zero, const char *what, struct leat_err *err);

#endif
