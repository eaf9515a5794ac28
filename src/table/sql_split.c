/* sql_split.c - a query as tokens; see sql.h
 *
 * The rules are those of DuckDB's scanner, which is PostgreSQL's: comments nest, an operator is the longest run of
 * operator characters, without a + or - at its end unless it has one of ~!@#^&|`?%. */
#include <string.h>

#include "base/array.h"
#include "table/sql.h"

enum { MAX_TOKENS = 200000 };

struct scan {
	struct leat_sql_tokens *tokens;
	const char *at, *end;
	size_t line;
	struct leat_err *err;
};

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
begins_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool
is_in_name(char c)
{
	return begins_name(c) || is_digit(c) || c == '$';
}

static bool
is_operator(char c)
{
	return c && strchr("+-*/<>=~!@#%^&|`?", c);
}

static bool
looking_at(const struct scan *s, const char *text)
{
	size_t len = strlen(text);

	return (size_t)(s->end - s->at) >= len && !memcmp(s->at, text, len);
}

/* ---- what is between tokens ---- */

/* Bytes of a white space character. Editors and web pages put in some that are not ASCII; DuckDB takes them as
 * spaces, too. */
static size_t
space_length(const struct scan *s)
{
	static const char *const wide[] = {
		"\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81", "\xe2\x80\x82", "\xe2\x80\x83",
		"\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86", "\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89",
		"\xe2\x80\x8a", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80", "\xef\xbb\xbf"};

	if (*s->at && strchr(" \t\r\n\v\f", *s->at))
		return 1;
	for (size_t i = 0; (unsigned char)*s->at >= 0x80 && i < sizeof(wide) / sizeof(*wide); i++)
		if (looking_at(s, wide[i]))
			return strlen(wide[i]);
	return 0;
}

static enum leat_status
unclosed(const struct scan *s, size_t line, const char *what)
{
	return leat_fail(s->err, LEAT_INVALID, "line %zu: %s has no end", line, what);
}

static enum leat_status
skip_block(struct scan *s)
{
	size_t depth = 0, line = s->line;

	do {
		if (s->at == s->end)
			return unclosed(s, line, "a comment");
		if (looking_at(s, "/*") || looking_at(s, "*/")) {
			depth = *s->at == '/' ? depth + 1 : depth - 1;
			s->at += 2;
		} else {
			s->line += *s->at++ == '\n';
		}
	} while (depth);
	return LEAT_OK;
}

static enum leat_status
skip_space(struct scan *s)
{
	enum leat_status status = LEAT_OK;
	size_t n;

	while (s->at < s->end && status == LEAT_OK) {
		if (looking_at(s, "--")) {
			while (s->at < s->end && *s->at != '\n' && *s->at != '\r')
				s->at++;
		} else if (looking_at(s, "/*")) {
			status = skip_block(s);
		} else if ((n = space_length(s)) > 0) {
			s->line += *s->at == '\n';
			s->at += n;
		} else {
			break;
		}
	}
	return status;
}

/* ---- tokens: each function moves past one ---- */

/* Up to the next quote; a doubled one is part of the text, and so is one after a backslash, with `escapes`. */
static enum leat_status
scan_quoted(struct scan *s, char quote, bool escapes, const char *what)
{
	size_t line = s->line;

	for (s->at++; s->at < s->end; s->at++) {
		s->line += *s->at == '\n';
		if (escapes && *s->at == '\\' && s->at + 1 < s->end)
			s->line += *++s->at == '\n';
		else if (*s->at == quote && s->at + 1 < s->end && s->at[1] == quote)
			s->at++;
		else if (*s->at == quote) {
			s->at++;
			return LEAT_OK;
		}
	}
	return unclosed(s, line, what);
}

/* Length of "$tag$"; 0: it is none. */
static size_t
dollar_length(const struct scan *s)
{
	const char *c = s->at + 1;

	while (c < s->end && *c != '$' && is_in_name(*c) && (c > s->at + 1 || !is_digit(*c)))
		c++;
	return c < s->end && *c == '$' ? (size_t)(c - s->at) + 1 : 0;
}

static enum leat_status
scan_dollars(struct scan *s, size_t len)
{
	const char *close = memmem(s->at + len, (size_t)(s->end - s->at) - len, s->at, len), *begin = s->at;

	if (!close)
		return unclosed(s, s->line, "a text between dollars");
	for (s->at = close + len; begin < s->at; begin++)
		s->line += *begin == '\n';
	return LEAT_OK;
}

static void
scan_digits(struct scan *s)
{
	while (s->at < s->end && (is_digit(*s->at) || (*s->at == '_' && s->at + 1 < s->end && is_digit(s->at[1]))))
		s->at++;
}

static void
scan_number(struct scan *s)
{
	if (looking_at(s, "0x") || looking_at(s, "0X") || looking_at(s, "0b") || looking_at(s, "0B")) {
		for (s->at += 2; s->at < s->end && is_in_name(*s->at) && (unsigned char)*s->at < 0x80;)
			s->at++;
		return;
	}
	scan_digits(s);
	if (s->at < s->end && *s->at == '.') {
		s->at++;
		scan_digits(s);
	}
	if (s->at < s->end && (*s->at == 'e' || *s->at == 'E')) {
		const char *digits = s->at + 1;

		digits += digits < s->end && (*digits == '+' || *digits == '-');
		if (digits < s->end && is_digit(*digits)) {
			s->at = digits;
			scan_digits(s);
		}
	}
}

static void
scan_operator(struct scan *s)
{
	const char *begin = s->at;
	bool special = false;

	while (s->at < s->end && is_operator(*s->at) &&
	       (s->at == begin || (!looking_at(s, "--") && !looking_at(s, "/*")))) {
		special |= strchr("~!@#^&|`?%", *s->at) != NULL;
		s->at++;
	}
	while (!special && s->at > begin + 1 && (s->at[-1] == '+' || s->at[-1] == '-'))
		s->at--;
}

static enum leat_status
scan_name(struct scan *s, enum leat_sql_kind *kind)
{
	const char *begin = s->at;
	bool escapes;

	while (s->at < s->end && is_in_name(*s->at) && !space_length(s))
		s->at++;
	*kind = LEAT_SQL_NAME;
	if (s->at - begin == 1 && s->at < s->end && *s->at == '\'' && strchr("eExXbBnN", *begin)) {
		escapes = *begin == 'e' || *begin == 'E';
		*kind = LEAT_SQL_TEXT;
		return scan_quoted(s, '\'', escapes, "a text");
	}
	if (s->at - begin == 1 && (*begin == 'u' || *begin == 'U') && (looking_at(s, "&'") || looking_at(s, "&\"")))
		return leat_fail(s->err, LEAT_INVALID,
		                 "line %zu: U& before a quote is not supported; write the characters", s->line);
	return LEAT_OK;
}

static enum leat_status
scan_token(struct scan *s, enum leat_sql_kind *kind)
{
	size_t n;

	*kind = LEAT_SQL_OPERATOR;
	if (begins_name(*s->at))
		return scan_name(s, kind);
	if (*s->at == '\'') {
		*kind = LEAT_SQL_TEXT;
		return scan_quoted(s, '\'', false, "a text");
	}
	if (*s->at == '"') {
		*kind = LEAT_SQL_QUOTED;
		return scan_quoted(s, '"', false, "a quoted name");
	}
	if (*s->at == '$' && (n = dollar_length(s)) > 0) {
		*kind = LEAT_SQL_TEXT;
		return scan_dollars(s, n);
	}
	if (is_digit(*s->at) || (*s->at == '.' && s->at + 1 < s->end && is_digit(s->at[1]))) {
		*kind = LEAT_SQL_NUMBER;
		scan_number(s);
	} else if (looking_at(s, "::") || looking_at(s, ":=")) {
		s->at += 2;
	} else if (is_operator(*s->at)) {
		scan_operator(s);
	} else if (strchr("()[]{},;.:$", *s->at) && *s->at) {
		s->at++;
	} else {
		return leat_fail(s->err, LEAT_INVALID, "line %zu: a query cannot have the character '%.1s' here",
		                 s->line, s->at);
	}
	return LEAT_OK;
}

static enum leat_status
add_token(struct scan *s, const struct leat_sql_token *token)
{
	struct leat_sql_tokens *tokens = s->tokens;
	enum leat_status status;

	if (tokens->count == MAX_TOKENS)
		return leat_fail(s->err, LEAT_LIMIT, "the query has more than %d tokens", MAX_TOKENS);
	status = LEAT_GROW(tokens->mem, tokens->token, tokens->cap, tokens->count + 1, SIZE_MAX, "a query", s->err);
	if (status == LEAT_OK)
		tokens->token[tokens->count++] = *token;
	return status;
}

enum leat_status
leat_sql_split(struct leat_sql_tokens *tokens, const char *text, size_t len, struct leat_err *err)
{
	struct scan s = {tokens, text, text + len, 1, err};
	struct leat_sql_token token;
	enum leat_status status = len && memchr(text, '\0', len) /* also inside of texts: DuckDB's strings end there */
	                                  ? leat_fail(err, LEAT_INVALID, "the query has a NUL byte")
	                                  : skip_space(&s);

	while (status == LEAT_OK && s.at < s.end) {
		token = (struct leat_sql_token){.at = s.at, .line = s.line};
		status = scan_token(&s, &token.kind);
		token.len = (size_t)(s.at - token.at);
		if (status == LEAT_OK)
			status = add_token(&s, &token);
		if (status == LEAT_OK)
			status = skip_space(&s);
	}
	return status;
}

bool
leat_sql_is(const struct leat_sql_tokens *tokens, size_t i, const char *word)
{
	const struct leat_sql_token *token = i < tokens->count ? &tokens->token[i] : NULL;

	return token && (token->kind == LEAT_SQL_NAME || token->kind == LEAT_SQL_OPERATOR) &&
	       token->len == strlen(word) && !strncasecmp(token->at, word, token->len);
}

bool
leat_sql_is_one_of(const struct leat_sql_tokens *tokens, size_t i, const char *const *words)
{
	for (; *words; words++)
		if (leat_sql_is(tokens, i, *words))
			return true;
	return false;
}
