/* json_line.c - see json_line.h */
#include "table/json_line.h"

#include <stdint.h>
#include <string.h>

#include "base/array.h"
#include "base/mem.h"
#include "base/str.h"

static const char no_json[] = "no JSON";

struct cursor {
	const char *at, *end;
	char *plain; /* where the next decoded string goes; NULL: strings are only checked */
	const char *why;
};

static bool
refuse(struct cursor *c, const char *why)
{
	c->why = why;
	return false;
}

static void
skip_blanks(struct cursor *c)
{
	while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
		c->at++;
}

static bool
take(struct cursor *c, char expected)
{
	skip_blanks(c);
	if (c->at == c->end || *c->at != expected)
		return false;
	c->at++;
	return true;
}

/* ---- strings ---- */

static bool
take_hex(struct cursor *c, uint32_t *code)
{
	*code = 0;
	for (int i = 0; i < 4; i++, c->at++) {
		int digit = c->at < c->end ? leat_hex_digit(*c->at) : -1;

		if (digit < 0)
			return refuse(c, no_json);
		*code = *code << 4 | (uint32_t)digit;
	}
	return true;
}

static void
put(struct cursor *c, uint32_t byte)
{
	if (c->plain)
		*c->plain++ = (char)byte;
}

static void
put_code(struct cursor *c, uint32_t code)
{
	if (code < 0x80) {
		put(c, code);
	} else if (code < 0x800) {
		put(c, 0xc0 | code >> 6);
		put(c, 0x80 | (code & 0x3f));
	} else if (code < 0x10000) {
		put(c, 0xe0 | code >> 12);
		put(c, 0x80 | (code >> 6 & 0x3f));
		put(c, 0x80 | (code & 0x3f));
	} else {
		put(c, 0xf0 | code >> 18);
		put(c, 0x80 | (code >> 12 & 0x3f));
		put(c, 0x80 | (code >> 6 & 0x3f));
		put(c, 0x80 | (code & 0x3f));
	}
}

/* What follows \u: a code, or two that make up one. */
static bool
take_code(struct cursor *c)
{
	uint32_t code, low;

	if (!take_hex(c, &code))
		return false;
	if (code == 0)
		return refuse(c, "a NUL byte");
	if (code >= 0xd800 && code < 0xdc00) {
		if (c->end - c->at < 2 || c->at[0] != '\\' || c->at[1] != 'u')
			return refuse(c, "half a character");
		c->at += 2;
		if (!take_hex(c, &low))
			return false;
		if (low < 0xdc00 || low > 0xdfff)
			return refuse(c, "half a character");
		code = 0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00));
	} else if (code >= 0xdc00 && code < 0xe000) {
		return refuse(c, "half a character");
	}
	put_code(c, code);
	return true;
}

static bool
take_escape(struct cursor *c)
{
	static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
	const char *found = c->at < c->end && *c->at ? strchr(names, *c->at) : NULL;

	if (c->at < c->end && *c->at == 'u') {
		c->at++;
		return take_code(c);
	}
	if (!found)
		return refuse(c, no_json);
	put(c, (unsigned char)bytes[found - names]);
	c->at++;
	return true;
}

/* From the opening quote to past the closing one. */
static bool
take_string(struct cursor *c)
{
	if (!take(c, '"'))
		return refuse(c, no_json);
	while (c->at < c->end && *c->at != '"') {
		if ((unsigned char)*c->at < 0x20)
			return refuse(c, no_json);
		if (*c->at != '\\') {
			put(c, (unsigned char)*c->at++);
			continue;
		}
		c->at++;
		if (!take_escape(c))
			return false;
	}
	return c->at < c->end ? (c->at++, true) : refuse(c, no_json);
}

/* ---- values ---- */

static bool
take_digits(struct cursor *c)
{
	const char *begin = c->at;

	while (c->at < c->end && *c->at >= '0' && *c->at <= '9')
		c->at++;
	return c->at > begin;
}

static bool
take_number(struct cursor *c)
{
	const char *whole;

	c->at += c->at < c->end && *c->at == '-';
	whole = c->at;
	if (!take_digits(c) || (*whole == '0' && c->at - whole > 1))
		return refuse(c, no_json);
	if (c->at < c->end && *c->at == '.') {
		c->at++;
		if (!take_digits(c))
			return refuse(c, no_json);
	}
	if (c->at < c->end && (*c->at == 'e' || *c->at == 'E')) {
		c->at++;
		c->at += c->at < c->end && (*c->at == '-' || *c->at == '+');
		if (!take_digits(c))
			return refuse(c, no_json);
	}
	return true;
}

static bool
take_word(struct cursor *c, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(c->end - c->at) < len || memcmp(c->at, word, len) != 0)
		return refuse(c, no_json);
	c->at += len;
	return true;
}

static bool take_value(struct cursor *c, enum leat_json_kind *kind, unsigned depth);

static bool
take_nested(struct cursor *c, unsigned depth)
{
	char close = *c->at == '{' ? '}' : ']';
	enum leat_json_kind ignored;

	if (depth == LEAT_JSON_DEPTH)
		return refuse(c, "nested too deeply");
	c->at++;
	if (take(c, close))
		return true;
	do {
		if (close == '}' && (!take_string(c) || !take(c, ':')))
			return refuse(c, c->why ? c->why : no_json);
		if (!take_value(c, &ignored, depth + 1))
			return false;
	} while (take(c, ','));
	return take(c, close) || refuse(c, no_json);
}

static bool
take_value(struct cursor *c, enum leat_json_kind *kind, unsigned depth)
{
	skip_blanks(c);
	switch (c->at < c->end ? *c->at : '\0') {
	case '"':
		*kind = LEAT_JSON_TEXT;
		return take_string(c);
	case '{':
	case '[':
		*kind = LEAT_JSON_NESTED;
		return take_nested(c, depth);
	case 't':
		*kind = LEAT_JSON_BOOL;
		return take_word(c, "true");
	case 'f':
		*kind = LEAT_JSON_BOOL;
		return take_word(c, "false");
	case 'n':
		*kind = LEAT_JSON_NULL;
		return take_word(c, "null");
	default:
		*kind = LEAT_JSON_NUMBER;
		return take_number(c);
	}
}

/* ---- the object ---- */

/* A value as its text, or decoded if it is a string. */
static bool
take_member_value(struct cursor *c, struct leat_json_member *member)
{
	char *plain = c->plain;
	bool ok;

	skip_blanks(c);
	member->text = c->at;
	if (c->at < c->end && (*c->at == '{' || *c->at == '['))
		c->plain = NULL;
	ok = take_value(c, &member->kind, 1);
	member->len = (size_t)(c->at - member->text);
	if (member->kind == LEAT_JSON_TEXT) {
		member->text = plain;
		member->len = (size_t)(c->plain - plain);
	}
	c->plain = c->plain ? c->plain : plain;
	return ok;
}

static bool
take_member(struct cursor *c, struct leat_json_member *member)
{
	member->name = c->plain;
	if (!take_string(c))
		return false;
	member->name_len = (size_t)(c->plain - member->name);
	return take(c, ':') ? take_member_value(c, member) : refuse(c, no_json);
}

static enum leat_status
take_object(struct leat_json_line *line, struct cursor *c, struct leat_err *err)
{
	bool ok = take(c, '{') || refuse(c, "no JSON object");

	if (ok && take(c, '}'))
		goto end;
	while (ok) {
		enum leat_status status = LEAT_GROW(line->mem, line->member, line->cap, line->members + 1,
		                                    LEAT_JSON_MEMBERS + 1, "the members of an object", err);

		if (status != LEAT_OK)
			return status;
		if (line->members == LEAT_JSON_MEMBERS)
			refuse(c, "an object with too many members");
		ok = !c->why && take_member(c, &line->member[line->members]);
		line->members += ok;
		if (ok && !take(c, ','))
			break;
	}
	if (ok && !take(c, '}'))
		refuse(c, no_json);
end:
	skip_blanks(c);
	if (!c->why && c->at < c->end)
		refuse(c, "more than one JSON object");
	return LEAT_OK;
}

enum leat_status
leat_json_line_read(struct leat_json_line *line, const char *text, size_t len, const char **why, struct leat_err *err)
{
	struct cursor c = {.at = text, .end = text + len};
	enum leat_status status = LEAT_GROW_RAW(line->mem, line->plain, line->plain_cap, len + 1, SIZE_MAX,
	                                        "the strings of an object", err);

	line->members = 0;
	if (status != LEAT_OK)
		return status;
	c.plain = line->plain; /* decoded strings are never longer */
	status = take_object(line, &c, err);
	*why = c.why;
	return status;
}

void
leat_json_line_free(struct leat_json_line *line)
{
	if (!line->mem)
		return;
	leat_free(line->mem, line->member);
	leat_free(line->mem, line->plain);
	*line = (struct leat_json_line){.mem = line->mem};
}
