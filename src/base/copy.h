/* copy.h - memcpy that can bypass the CPU caches */
#ifndef LEAT_BASE_COPY_H
#define LEAT_BASE_COPY_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes per cache line. */
enum { LEAT_LINE = 64 };

/* memcpy. With `past_cache` it uses non-temporal stores: destination lines are not loaded first, and
 * the caches keep their contents. Use it for results that are not read soon; it works best if `to` is
 * aligned to LEAT_LINE. Non-temporal stores are weakly ordered: call leat_copy_fence before publishing
 * the copy to another thread. */
void leat_copy(void *to, const void *from, size_t len, bool past_cache);
void leat_copy_fence(void);

#endif
