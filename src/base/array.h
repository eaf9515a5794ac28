/* array.h - growing arrays
 *
 *	status = LEAT_GROW(mem, paths->path, paths->cap, paths->count + 1, SIZE_MAX, "the list of files", err);
 *	if (status == LEAT_OK)
 *		paths->path[paths->count++] = path;
 *
 * The capacity doubles, or grows by an eighth once the array is a mapping (LEAT_MEM_LARGE), which takes no copy. So
 * appending is amortized O(1), and a large array wastes little. On failure the array and its capacity are
 * unchanged. */
#ifndef LEAT_BASE_ARRAY_H
#define LEAT_BASE_ARRAY_H

#include <stddef.h>

#include "base/err.h"

struct leat_mem;

/* Makes room for `need` items in `array` (a pointer to the first item, or NULL) of capacity `cap`. New
 * items are zeroed. More than `max` items is LEAT_LIMIT. `what` names the array in errors. */
#define LEAT_GROW(mem, array, cap, need, max, what, err)                                                               \
	((need) <= (cap) ? LEAT_OK : leat_grow(mem, &(array), &(cap), need, sizeof(*(array)), max, true, what, err))
/* LEAT_GROW without zeroing, for very large arrays that are filled right away. */
#define LEAT_GROW_RAW(mem, array, cap, need, max, what, err)                                                           \
	((need) <= (cap) ? LEAT_OK : leat_grow(mem, &(array), &(cap), need, sizeof(*(array)), max, false, what, err))

/* `array` is the address of the pointer to the items. */
enum leat_status leat_grow(struct leat_mem *mem, void *array, size_t *cap, size_t need, size_t size, size_t max,
                           bool zero, const char *what, struct leat_err *err);

#endif
