/* utf8.h - UTF-8 validation, and which characters a terminal may be sent */
#ifndef LEAT_BASE_UTF8_H
#define LEAT_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Length in bytes of the character at `s`, a NUL-terminated string: 1 to 4 (1 for NUL itself), or 0 if it is
 * not valid UTF-8 (overlong forms, surrogates and values past U+10FFFF are invalid). */
static inline size_t
leat_utf8_length(const char *s)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t n = u[0] < 0x80 ? 1 : u[0] < 0xc2 ? 0 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : u[0] < 0xf5 ? 4 : 0;

	for (size_t i = 1; i < n; i++)
		if ((u[i] & 0xc0) != 0x80)
			return 0;
	if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f) || (u[0] == 0xf0 && u[1] < 0x90) ||
	    (u[0] == 0xf4 && u[1] > 0x8f))
		return 0;
	return n;
}

/* Can the character at `s`, `len` bytes by leat_utf8_length, be shown as it is? Not if it controls a terminal (C0, DEL,
 * C1), breaks a line, or reorders the text around it. */
static inline bool
leat_utf8_is_visible(const char *s, size_t len)
{
	const unsigned char *u = (const unsigned char *)s;

	if (len == 1)
		return u[0] >= 0x20 && u[0] != 0x7f;
	if (len == 2)
		return !(u[0] == 0xc2 && u[1] < 0xa0) && !(u[0] == 0xd8 && u[1] == 0x9c); /* C1, U+061C */
	if (len == 3 && u[0] == 0xe2 && u[1] == 0x80)
		return !(u[2] >= 0x8e && u[2] <= 0x8f) && !(u[2] >= 0xa8 && u[2] <= 0xae); /* U+200E, U+2028 ... */
	return len > 0 && !(len == 3 && u[0] == 0xe2 && u[1] == 0x81 && u[2] >= 0xa6 && u[2] <= 0xa9); /* U+2066 ... */
}

#endif
