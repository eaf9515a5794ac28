/* str.c - see str.h; a leat_str belongs to one thread */
#include "base/str.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/mem.h"
#include "base/utf8.h"

void
leat_str_init(struct leat_str *str, struct leat_mem *mem, size_t max)
{
	memset(str, 0, sizeof(*str));
	str->mem = mem;
	str->max = max < SIZE_MAX ? max : SIZE_MAX - 1; /* room for the NUL */
}

void
leat_str_free(struct leat_str *str)
{
	if (str->secret && str->text)
		explicit_bzero(str->text, str->cap);
	leat_free(str->mem, str->text);
	str->text = NULL;
	str->len = 0;
	str->cap = 0;
	str->failed = false;
}

/* Growing a block may leave a copy behind. */
static bool
move_secret(struct leat_str *str, size_t more)
{
	size_t cap = str->len + more < str->max / 2 ? 2 * (str->len + more) + 1 : str->max + 1;
	char *text = leat_realloc_raw(str->mem, NULL, cap);

	if (!text)
		return false;
	memcpy(text, leat_str_text(str), str->len + 1);
	if (str->text)
		explicit_bzero(str->text, str->cap);
	leat_free(str->mem, str->text);
	str->text = text;
	str->cap = cap;
	return true;
}

/* Makes room for `more` bytes and a NUL; on failure sets `failed` and returns false. */
static bool
make_room(struct leat_str *str, size_t more)
{
	if (str->secret && !str->failed && more <= str->max - str->len && str->len + more + 1 > str->cap &&
	    !move_secret(str, more))
		str->failed = true;
	if (str->failed || more > str->max - str->len ||
	    LEAT_GROW_RAW(str->mem, str->text, str->cap, str->len + more + 1, str->max + 1, "a text", NULL) != LEAT_OK)
		str->failed = true;
	return !str->failed;
}

void
leat_str_reserve(struct leat_str *str, size_t more)
{
	make_room(str, more);
}

void
leat_str_addn(struct leat_str *str, const void *bytes, size_t len)
{
	if (!make_room(str, len))
		return;
	if (len > 0)
		memcpy(str->text + str->len, bytes, len);
	str->len += len;
	str->text[str->len] = '\0';
}

void
leat_str_add(struct leat_str *str, const char *text)
{
	leat_str_addn(str, text, strlen(text));
}

void
leat_str_addf(struct leat_str *str, const char *fmt, ...)
{
	va_list ap, again;
	int len;

	va_start(ap, fmt);
	va_copy(again, ap);
	len = vsnprintf(NULL, 0, fmt, ap);
	if (len < 0) {
		str->failed = true;
	} else if (make_room(str, (size_t)len)) {
		vsnprintf(str->text + str->len, (size_t)len + 1, fmt, again);
		str->len += (size_t)len;
	}
	va_end(again);
	va_end(ap);
}

/* ---- untrusted text ---- */

enum {
	SHOWN = 4 * 4 + 1, /* most bytes a character is shown with, and NUL */
	MAX_MESSAGE = 4096,
};

/* Bytes of the character at `text`; 1 if it is invalid. */
static size_t
step(const char *text)
{
	size_t len = leat_utf8_length(text);

	return len == 0 ? 1 : len;
}

/* Writes the character at `text` as it is shown; returns how many bytes that takes. */
static size_t
show_character(const char *text, char out[SHOWN])
{
	size_t len = step(text), n = 0;

	if (leat_utf8_is_visible(text, leat_utf8_length(text)))
		n = len;
	memcpy(out, text, n);
	if (n == 0 && (*text == '\n' || *text == '\t'))
		n = (size_t)snprintf(out, SHOWN, *text == '\n' ? "\\n" : "\\t");
	else if (n == 0)
		for (size_t i = 0; i < len; i++)
			n += (size_t)snprintf(out + n, SHOWN - n, "\\x%02x", (unsigned char)text[i]);
	return n;
}

bool
leat_is_visible(const char *text)
{
	while (*text != '\0' && leat_utf8_is_visible(text, leat_utf8_length(text)))
		text += step(text);
	return *text == '\0';
}

/* Shows one character. */
static void
add_shown(struct leat_str *str, const char *text)
{
	char shown[SHOWN];

	leat_str_addn(str, shown, show_character(text, shown));
}

void
leat_str_add_shown(struct leat_str *str, const char *text)
{
	for (; *text != '\0'; text += step(text))
		add_shown(str, text);
}

void
leat_str_add_quoted(struct leat_str *str, const char *text)
{
	leat_str_add(str, "'");
	for (; *text != '\0'; text += step(text)) {
		char c = *text;

		if (c == '\\' || c == '\'')
			leat_str_addf(str, "\\%c", c);
		else
			add_shown(str, text);
	}
	leat_str_add(str, "'");
}

void
leat_str_add_word(struct leat_str *str, const char *text)
{
	leat_str_add(str, "'");
	for (const char *quote; (quote = strchr(text, '\'')) != NULL; text = quote + 1) {
		leat_str_addn(str, text, (size_t)(quote - text));
		leat_str_add(str, "'\\''");
	}
	leat_str_add(str, text);
	leat_str_add(str, "'");
}

static void
add_json_ascii(struct leat_str *str, char c)
{
	static const char special[] = "\"\\\b\f\n\r\t", escape[] = "\"\\bfnrt";
	const char *found = strchr(special, c);

	if (found != NULL)
		leat_str_addf(str, "\\%c", escape[found - special]);
	else if (c < 0x20 || c == 0x7f)
		leat_str_addf(str, "\\u%04x", (unsigned)c);
	else
		leat_str_addn(str, &c, 1);
}

void
leat_str_add_json(struct leat_str *str, const char *text)
{
	leat_str_add(str, "\"");
	while (*text != '\0') {
		size_t len = leat_utf8_length(text);

		if (len == 1)
			add_json_ascii(str, *text);
		else if (len == 0)
			leat_str_add(str, "\xef\xbf\xbd"); /* U+FFFD, the replacement character */
		else
			leat_str_addn(str, text, len);
		text += len == 0 ? 1 : len;
	}
	leat_str_add(str, "\"");
}

const char *
leat_str_text(const struct leat_str *str)
{
	return str->text == NULL ? "" : str->text;
}

char *
leat_str_take(struct leat_str *str)
{
	char *text;

	leat_str_addn(str, "", 0); /* makes sure an empty text is "", not NULL */
	if (str->failed)
		return NULL;
	text = str->text;
	str->text = NULL;
	leat_str_free(str);
	return text;
}

char *
leat_expand_home(struct leat_mem *mem, const char *path)
{
	const char *home = getenv("HOME");

	if (path[0] != '~' || (path[1] && path[1] != '/') || !home || !*home)
		return leat_strdup(mem, path);
	return leat_asprintf(mem, "%s%s", home, path + 1);
}

/* Cuts a text that fills its buffer, so that it ends in "...". */
static void
cut(char *buf, size_t cap)
{
	size_t end = cap - 4;

	while (end > 0 && ((unsigned char)buf[end] & 0xc0) == 0x80)
		end--;
	memcpy(buf + end, "...", 4);
}

/* False: it does not all fit. */
static bool
show_bytes(char *buf, size_t cap, const char *from, size_t len)
{
	const char *end = from + len;
	char raw[5] = "", shown[SHOWN];
	size_t used = 0, n = 0;

	for (; from < end; from += step(raw)) {
		size_t have = (size_t)(end - from) < 4 ? (size_t)(end - from) : 4;

		memcpy(raw, from, have); /* the bytes need not end in NUL */
		raw[have] = '\0';
		n = show_character(raw, shown);
		if (used + n >= cap)
			break;
		memcpy(buf + used, shown, n);
		used += n;
	}
	buf[used] = '\0';
	return from == end;
}

char *
leat_show(char *buf, size_t cap, const void *bytes, size_t len)
{
	show_bytes(buf, cap, bytes, len);
	return buf;
}

void
leat_vformat(char *buf, size_t cap, const char *fmt, va_list ap)
{
	char raw[MAX_MESSAGE];
	int len = vsnprintf(buf, cap, fmt, ap);

	if (len < 0) {
		snprintf(buf, cap, "%s", fmt);
		return;
	}
	if ((size_t)len >= cap && cap >= 4)
		cut(buf, cap);
	if (leat_is_visible(buf))
		return;
	snprintf(raw, sizeof(raw), "%s", buf);
	if (!show_bytes(buf, cap, raw, strlen(raw)) && strlen(buf) >= 3)
		cut(buf, strlen(buf) + 1);
}
