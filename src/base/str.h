/* str.h - a growing text or byte buffer with a maximum, and small string helpers
 *
 * A leat_str never fails half way: once an addition does not fit, `failed` stays
 * set and further additions do nothing, so that callers check once at the end. */
#ifndef LEAT_BASE_STR_H
#define LEAT_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct leat_mem;

struct leat_str {
	struct leat_mem *mem;
	char *text; /* always NUL-terminated once something was added; "" never NULL through leat_str_text */
	size_t len, cap, max;
	bool failed;
};

void leat_str_init(struct leat_str *str, struct leat_mem *mem, size_t max);
void leat_str_free(struct leat_str *str);
void leat_str_add(struct leat_str *str, const char *text);
void leat_str_addn(struct leat_str *str, const void *bytes, size_t len);
void leat_str_addf(struct leat_str *str, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void leat_str_add_quoted(struct leat_str *str,
                         const char *text);                     /* 'text', the way a spec reads it; bad UTF-8 as \xHH */
void leat_str_add_json(struct leat_str *str, const char *text); /* "text" with JSON's escapes; bad UTF-8 replaced */
const char *leat_str_text(const struct leat_str *str);
char *leat_str_take(struct leat_str *str); /* the caller frees it with leat_free; NULL when failed */

/* The end of a noun that `count` stands before: "%zu sample%s". */
static inline const char *
leat_plural(unsigned long long count)
{
	return count == 1 ? "" : "s";
}

/* The value of a hexadecimal digit; -1: it is none. */
static inline int
leat_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* vsnprintf for messages: what does not fit is cut between two characters and ends in "...". */
void leat_vformat(char *buf, size_t cap, const char *fmt, va_list ap) __attribute__((format(printf, 3, 0)));

/* Bytes from outside as text for messages: control characters become '?', what is too long is cut. Returns buf. */
char *leat_show(char *buf, size_t cap, const void *bytes, size_t len);

#endif
