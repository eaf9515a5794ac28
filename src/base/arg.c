/* arg.c - parse calls and values, the part of the spec language that option tables share
 *
 * A recursive descent parser. leat_parse_begin validates the whole text first, so the rest
 * sees only printable UTF-8. Depth and length are bounded. Results live in a chain of blocks
 * that is freed at once. Growing an array wastes its old copy in the chain, which is
 * harmless because the text is bounded. */
#include "base/arg.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/opt.h"
#include "base/utf8.h"

/* ---- memory ---- */

enum { BLOCK_BYTES = 4000 };

struct block {
	struct block *next;
	size_t used, size;
	alignas(16) unsigned char bytes[];
};

static enum leat_status
take(struct leat_parse *p, size_t size, void **memory)
{
	struct block *b = p->blocks;

	*memory = NULL;
	size = (size + 15) & ~(size_t)15;
	if (!b || b->size - b->used < size) {
		size_t room = size > BLOCK_BYTES ? size : BLOCK_BYTES;

		b = leat_alloc(p->mem, sizeof(*b) + room);
		if (!b)
			return leat_fail_mem(p->err, p->mem, sizeof(*b) + room, "a parsed spec");
		b->size = room;
		b->next = p->blocks;
		p->blocks = b;
	}
	*memory = b->bytes + b->used;
	b->used += size;
	return LEAT_OK;
}

void
leat_parse_free(struct leat_mem *mem, void *blocks)
{
	for (struct block *b = blocks; b;) {
		struct block *next = b->next;

		leat_free(mem, b);
		b = next;
	}
}

enum leat_status
leat_parse_grow(struct leat_parse *p, void **array, size_t *cap, size_t count, size_t size)
{
	size_t wanted = *cap ? 2 * *cap : 4;
	enum leat_status status;
	void *bigger = NULL;

	if (count < *cap)
		return LEAT_OK;
	status = take(p, wanted * size, &bigger);
	if (status != LEAT_OK)
		return status;
	if (count)
		memcpy(bigger, *array, count * size);
	*array = bigger;
	*cap = wanted;
	return LEAT_OK;
}

enum leat_status
leat_parse_keep(struct leat_parse *p, const char *bytes, size_t len, const char **copy)
{
	void *memory = NULL;
	enum leat_status status = take(p, len + 1, &memory);

	if (status == LEAT_OK) {
		*copy = memcpy(memory, bytes, len);
		((char *)memory)[len] = '\0';
	}
	return status;
}

/* ---- characters ---- */

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
is_word(char c)
{
	return is_letter(c) || is_digit(c) || c == '_' || c == '.' || c == '-';
}

static void
skip_space(struct leat_parse *p)
{
	const char *s = p->text + p->pos;

	for (;;) {
		s += strspn(s, " \t\r\n");
		if (*s != '#')
			break;
		s += strcspn(s, "\n");
	}
	p->pos = (size_t)(s - p->text);
}

/* Consumes a token of `len` bytes and the space after it. */
static void
advance(struct leat_parse *p, size_t len)
{
	p->end = p->pos + len;
	p->pos = p->end;
	skip_space(p);
}

bool
leat_parse_at_end(const struct leat_parse *p)
{
	return p->text[p->pos] == '\0';
}

bool
leat_parse_accept(struct leat_parse *p, char token)
{
	if (p->text[p->pos] != token)
		return false;
	advance(p, 1);
	return true;
}

/* If the argument around the next token looks like an unquoted path, returns its length, else 0. */
static size_t
unquoted_path(const struct leat_parse *p, const char **path)
{
	const char *s = p->text + p->pos, *begin = s;

	while (begin > p->text && !strchr(" \t\r\n'\"(),=[]|", begin[-1]))
		begin--;
	*path = begin;
	if (p->depth == 0 || (!strchr("/*?~:\\", *s) && strncmp(s, "./", 2) != 0 && strncmp(s, "..", 2) != 0 &&
	                      (s == begin || s[-1] != '/' || !is_letter(*s))))
		return 0;
	return strcspn(begin, " \t\r\n'\"(),=[]|");
}

enum leat_status
leat_parse_expected(struct leat_parse *p, const char *what)
{
	const char *s = p->text + p->pos, *path;
	size_t len = 1, path_len;

	if (!*s)
		return leat_fail_at(p->err, p->text, p->end, 1, "expected %s, but the spec ends", what);
	while (is_word(*s) && is_word(s[len]))
		len++;
	while (((unsigned char)s[len] & 0xc0) == 0x80)
		len++;
	path_len = unquoted_path(p, &path);
	if (path_len && path_len < 200)
		return leat_fail_at(p->err, p->text, p->pos, len,
		                    "expected %s, not '%.*s'; put a path in quotes: '%.*s'", what,
		                    (int)(len < 40 ? len : 40), s, (int)path_len, path);
	return leat_fail_at(p->err, p->text, p->pos, len, "expected %s, not '%.*s'", what, (int)(len < 40 ? len : 40),
	                    s);
}

enum leat_status
leat_parse_begin(struct leat_parse *p, const char *text, struct leat_mem *mem, struct leat_err *err)
{
	size_t len = strnlen(text, LEAT_MAX_SPEC + 1);

	*p = (struct leat_parse){.text = text, .mem = mem, .err = err};
	if (len > LEAT_MAX_SPEC)
		return leat_fail(err, LEAT_SPEC, "the spec is longer than %d bytes", LEAT_MAX_SPEC);
	for (size_t i = 0, n; i < len; i += n) {
		unsigned char c = (unsigned char)text[i];

		n = leat_utf8_length(text + i);
		if (n == 0)
			return leat_fail_at(err, text, i, 1, "byte 0x%02x is not UTF-8; write it \\x%02x in a string",
			                    c, c);
		if ((c < 0x20 && !strchr("\t\r\n", c)) || c == 0x7f)
			return leat_fail_at(err, text, i, 1, "control character 0x%02x; write it \\x%02x in a string",
			                    c, c);
	}
	skip_space(p);
	return LEAT_OK;
}

/* ---- tokens ---- */

static enum leat_status
parse_word(struct leat_parse *p, const char *what, const char **word, size_t *at, size_t *len)
{
	const char *s = p->text + p->pos;
	size_t n = 1;

	if (!is_letter(*s) && *s != '_')
		return leat_parse_expected(p, what);
	while (is_word(s[n]))
		n++;
	if (at)
		*at = p->pos;
	if (len)
		*len = n;
	advance(p, n);
	return leat_parse_keep(p, s, n, word);
}

/* Length of the number at s, without its unit; 0 if there is none. */
static size_t
number_length(const char *s, bool *integer)
{
	size_t n = *s == '-' || *s == '+', digits = 0, e;

	*integer = true;
	for (; is_digit(s[n]); n++)
		digits++;
	if (s[n] == '.') {
		*integer = false;
		for (n++; is_digit(s[n]); n++)
			digits++;
	}
	if (!digits)
		return 0;
	e = n;
	if (s[e] == 'e' || s[e] == 'E') {
		e++;
		if (s[e] == '-' || s[e] == '+')
			e++;
		if (is_digit(s[e])) {
			*integer = false;
			while (is_digit(s[e]))
				e++;
			n = e;
		}
	}
	return n;
}

/* strtod in the C locale: the program's locale must not change the meaning of a spec. */
static double
to_double(const char *s)
{
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	double x;

	if (!c)
		return strtod(s, NULL);
	x = strtod_l(s, NULL, c);
	freelocale(c);
	return x;
}

static enum leat_status
parse_plain_number(struct leat_parse *p, double *number, bool *integer, long long *whole)
{
	const char *s = p->text + p->pos;
	size_t n = number_length(s, integer);

	if (!n)
		return leat_parse_expected(p, "a number");
	*number = to_double(s);
	if (!isfinite(*number))
		return leat_fail_at(p->err, p->text, p->pos, n, "the number is too large");
	if (*integer) {
		errno = 0;
		*whole = strtoll(s, NULL, 10);
		if (errno == ERANGE)
			*integer = false;
	}
	if (!*integer)
		*whole = 0;
	advance(p, n);
	return LEAT_OK;
}

static enum leat_status
parse_number(struct leat_parse *p, struct leat_arg *v)
{
	enum leat_status status = parse_plain_number(p, &v->number, &v->integer, &v->whole);
	size_t letters = 0;

	v->type = LEAT_ARG_NUMBER;
	while (status == LEAT_OK && leat_parse_accept(p, '/')) {
		size_t at = p->pos;
		double divisor;
		bool integer;
		long long whole;

		status = parse_plain_number(p, &divisor, &integer, &whole);
		if (status != LEAT_OK)
			break;
		v->number /= divisor;
		v->integer = false;
		v->whole = 0;
		if (!isfinite(v->number))
			status = leat_fail_at(p->err, p->text, at, p->end - at,
			                      divisor == 0 ? "division by zero" : "the quotient is too large");
	}
	if (status != LEAT_OK)
		return status;
	while (is_letter(p->text[p->pos + letters]))
		letters++;
	if (letters) {
		status = leat_parse_keep(p, p->text + p->pos, letters, &v->unit);
		advance(p, letters);
	}
	return status;
}

/* Decodes the escape at s, which is past the backslash. Returns its length, 0 if it is unknown. */
static size_t
unescape(const char *s, char *byte)
{
	int high, low;

	switch (*s) {
	case '\\':
	case '\'':
	case '"':
		*byte = *s;
		return 1;
	case 'n':
		*byte = '\n';
		return 1;
	case 't':
		*byte = '\t';
		return 1;
	case 'x':
		high = leat_hex_digit(s[1]);
		low = high < 0 ? -1 : leat_hex_digit(s[2]);
		if (low < 0 || high + low == 0)
			return 0;
		*byte = (char)(unsigned char)(16 * high + low);
		return 3;
	default:
		return 0;
	}
}

static enum leat_status
parse_string(struct leat_parse *p, struct leat_arg *v)
{
	const char *s = p->text + p->pos;
	const char stop[] = {*s, '\\', '\n', '\0'};
	size_t len = 1 + strcspn(s + 1, "\n");
	size_t n = 0, i = 1, plain;
	enum leat_status status;
	void *memory = NULL;
	char *out;

	status = take(p, len, &memory); /* decoding never makes a string longer */
	if (status != LEAT_OK)
		return status;
	out = memory;
	v->type = LEAT_ARG_STRING;
	v->text = out;
	for (;; i += plain) {
		plain = strcspn(s + i, stop);
		memcpy(out + n, s + i, plain);
		n += plain;
		i += plain;
		if (s[i] != '\\')
			break;
		plain = unescape(s + i + 1, out + n);
		if (!plain)
			return leat_fail_at(p->err, p->text, p->pos + i, 2,
			                    "unknown escape in a string; use \\\\ \\' \\\" \\n \\t or \\x01 to \\xff");
		n++;
		i++;
	}
	if (s[i] != *s)
		return leat_fail_at(p->err, p->text, p->pos, 1, "the string has no closing %c on its line", *s);
	out[n] = '\0';
	advance(p, i + 1);
	return LEAT_OK;
}

/* ---- structure ---- */

static enum leat_status parse_items(struct leat_parse *p, char close, bool named, const struct leat_arg **items,
                                    size_t *count);

static enum leat_status
parse_word_value(struct leat_parse *p, struct leat_arg *v)
{
	enum leat_status status = parse_word(p, "a value", &v->text, NULL, NULL);

	v->type = LEAT_ARG_WORD;
	if (status == LEAT_OK && leat_parse_accept(p, '[')) {
		v->has_dims = true;
		status = parse_items(p, ']', false, &v->dim, &v->dims);
	}
	if (status == LEAT_OK && leat_parse_accept(p, '('))
		status = parse_items(p, ')', true, &v->item, &v->items);
	return status;
}

/* Fills all members but the name, which parse_arg has already set. */
enum leat_status
leat_parse_value(struct leat_parse *p, struct leat_arg *v)
{
	const char *s = p->text + p->pos;
	enum leat_status status;

	v->at = p->pos;
	if (*s == '\'' || *s == '"') {
		status = parse_string(p, v);
	} else if (is_digit(*s) || (*s && strchr("+-.", *s))) {
		status = parse_number(p, v);
	} else if (leat_parse_accept(p, '[')) {
		v->type = LEAT_ARG_LIST;
		status = parse_items(p, ']', false, &v->item, &v->items);
	} else {
		status = parse_word_value(p, v);
	}
	v->len = p->end - v->at;
	return status;
}

/* [ word '=' ] value */
static enum leat_status
parse_arg(struct leat_parse *p, struct leat_arg *arg)
{
	const char *s = p->text + p->pos;
	size_t n = 0, after;
	enum leat_status status;

	if (is_letter(*s) || *s == '_') {
		while (is_word(s[n]))
			n++;
		after = n + strspn(s + n, " \t\r\n");
		if (s[after] == '=') {
			arg->name_at = p->pos;
			status = leat_parse_keep(p, s, n, &arg->name);
			if (status != LEAT_OK)
				return status;
			advance(p, after + 1);
		}
	}
	return leat_parse_value(p, arg);
}

/* Parses values up to `close`. The opening bracket is already consumed; a trailing comma is allowed. */
static enum leat_status
parse_items(struct leat_parse *p, char close, bool named, const struct leat_arg **items, size_t *count)
{
	const char expected[] = {'\'', ',', '\'', ' ', 'o', 'r', ' ', '\'', close, '\'', '\0'};
	struct leat_arg *array = NULL;
	size_t n = 0, cap = 0;
	enum leat_status status = LEAT_OK;

	if (++p->depth > LEAT_MAX_NESTING)
		return leat_fail_at(p->err, p->text, p->end - 1, 1, "brackets are nested deeper than %d",
		                    LEAT_MAX_NESTING);
	while (!leat_parse_accept(p, close)) {
		status = leat_parse_grow(p, (void **)&array, &cap, n, sizeof(*array));
		if (status != LEAT_OK)
			return status;
		array[n] = (struct leat_arg){0};
		status = named ? parse_arg(p, &array[n]) : leat_parse_value(p, &array[n]);
		if (status != LEAT_OK)
			return status;
		n++;
		if (!leat_parse_accept(p, ',') && p->text[p->pos] != close)
			return leat_parse_expected(p, expected);
	}
	p->depth--;
	*items = array;
	*count = n;
	return LEAT_OK;
}

enum leat_status
leat_parse_call(struct leat_parse *p, struct leat_call *call)
{
	enum leat_status status;
	char what[80];

	*call = (struct leat_call){0};
	snprintf(what, sizeof(what), "the name of %s", p->calls ? p->calls : "a source or op");
	status = parse_word(p, what, &call->name, &call->at, &call->len);
	if (status == LEAT_OK && leat_parse_accept(p, '('))
		status = parse_items(p, ')', true, &call->arg, &call->args);
	call->end = p->end;
	return status;
}
