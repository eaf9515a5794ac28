/* array.c - see array.h */
#include "base/array.h"

#include <stdint.h>
#include <string.h>

#include "base/mem.h"

enum { FIRST_BYTES = 64 }; /* minimum size of the first allocation */

static size_t
next_cap(size_t cap, size_t size)
{
	if (cap == 0)
		return FIRST_BYTES / size;
	return cap >= LEAT_MEM_LARGE / size ? cap + cap / 8 : 2 * cap;
}

enum leat_status
leat_grow(struct leat_mem *mem, void *array, size_t *cap, size_t need, size_t size, size_t max, bool zero,
          const char *what, struct leat_err *err)
{
	size_t most = PTRDIFF_MAX / size, wanted = next_cap(*cap, size);
	void *items, *grown;

	if (need <= *cap)
		return LEAT_OK;
	if (need > max)
		return leat_fail(err, LEAT_LIMIT, "%s cannot hold more than %zu entries", what, max);
	if (max < most)
		most = max;
	if (wanted > most)
		wanted = most;
	if (wanted < need)
		wanted = need;
	memcpy(&items, array, sizeof(items)); /* the pointer is a T *, which a void ** must not alias */
	if (need > most)
		grown = NULL;
	else
		grown = zero ? leat_realloc(mem, items, wanted * size) : leat_realloc_raw(mem, items, wanted * size);
	if (!grown)
		return leat_fail_mem(err, mem, need > most ? SIZE_MAX : wanted * size, what);
	memcpy(array, &grown, sizeof(grown));
	*cap = wanted;
	return LEAT_OK;
}
