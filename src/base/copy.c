/* copy.c - see copy.h */
#include "base/copy.h"

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <emmintrin.h>

/* Non-temporal stores for whole cache lines, memcpy for the ends. */
static void
copy_past_cache(unsigned char *to, const unsigned char *from, size_t len)
{
	size_t head = -(uintptr_t)to % LEAT_LINE;

	if (head > len)
		head = len;
	memcpy(to, from, head);
	to += head;
	from += head;
	len -= head;
	for (; len >= LEAT_LINE; len -= LEAT_LINE, to += LEAT_LINE, from += LEAT_LINE) {
		__m128i part[4];

		memcpy(part, from, LEAT_LINE);
		for (int i = 0; i < 4; i++)
			_mm_stream_si128((__m128i *)(void *)to + i, part[i]);
	}
	memcpy(to, from, len);
}

void
leat_copy_fence(void)
{
	_mm_sfence();
}

#else

static void
copy_past_cache(unsigned char *to, const unsigned char *from, size_t len)
{
	memcpy(to, from, len);
}

void
leat_copy_fence(void)
{
}

#endif

void
leat_copy(void *to, const void *from, size_t len, bool past_cache)
{
	if (past_cache)
		copy_past_cache(to, from, len);
	else if (len > 0)
		memcpy(to, from, len);
}
