/* str.h - a growing string or byte buffer with a maximum size, and string helpers
 *
 * Errors are sticky: if an append does not fit, `failed` is set and later appends do
 * nothing, so callers check once at the end. */
#ifndef LEAT_BASE_STR_H
#define LEAT_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct leat_mem;

struct leat_str {
	struct leat_mem *mem;
	char *text; /* NUL-terminated; NULL until the first append (leat_str_text returns "" then) */
	size_t len, cap, max;
	bool failed;
	bool secret; /* set after init: memory is erased before it is given back */
};

void leat_str_init(struct leat_str *str, struct leat_mem *mem, size_t max);
void leat_str_free(struct leat_str *str);
void leat_str_reserve(struct leat_str *str, size_t more); /* room to append `more` bytes: exactly, if it is empty */
void leat_str_add(struct leat_str *str, const char *text);
void leat_str_addn(struct leat_str *str, const void *bytes, size_t len);
void leat_str_addf(struct leat_str *str, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void leat_str_add_quoted(struct leat_str *str, const char *text); /* 'text', quoted for a spec; invalid UTF-8 as \xHH */
void leat_str_add_json(struct leat_str *str, const char *text);   /* "text", escaped for JSON; invalid UTF-8 replaced */
void leat_str_add_word(struct leat_str *str, const char *text);   /* 'text', quoted as one word of a shell command */
const char *leat_str_text(const struct leat_str *str);
char *leat_str_take(struct leat_str *str); /* free with leat_free; NULL if `failed` */

/* The plural ending after `count`, as in "%zu sample%s". */
static inline const char *
leat_plural(unsigned long long count)
{
	return count == 1 ? "" : "s";
}

/* The value of a hexadecimal digit; -1: not one. */
static inline int
leat_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* A copy of `path` in which a leading "~" or "~/" is $HOME, as in a shell. NULL: out of memory. */
char *leat_expand_home(struct leat_mem *mem, const char *path);

/* vsnprintf for messages of one line, which may quote untrusted text: characters that are not visible are escaped, and
 * text that does not fit is cut at a character boundary and ends in "...". */
void leat_vformat(char *buf, size_t cap, const char *fmt, va_list ap) __attribute__((format(printf, 3, 0)));

/* Makes untrusted bytes safe for a message or a terminal: control characters, line breaks, invalid
 * UTF-8 and the like become \n, \t, \xHH; what does not fit is cut off. Returns buf. */
char *leat_show(char *buf, size_t cap, const void *bytes, size_t len);
void leat_str_add_shown(struct leat_str *str, const char *text); /* the same */
bool leat_is_visible(const char *text);                          /* all of it */

#endif
