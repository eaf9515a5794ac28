/* copy.h - copies of bytes that are too many for the caches */
#ifndef LEAT_BASE_COPY_H
#define LEAT_BASE_COPY_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes that the CPU moves between its caches and memory at once. */
enum { LEAT_LINE = 64 };

/* memcpy; with `past_cache` the bytes go straight to memory, which spares the loads of the lines that
 * are written and keeps what is in the caches. For results that nobody reads soon. Best when `to` is a
 * multiple of LEAT_LINE. Such a copy comes before nothing that this thread writes later: call the fence
 * before another thread is told of it. */
void leat_copy(void *to, const void *from, size_t len, bool past_cache);
void leat_copy_fence(void);

#endif
