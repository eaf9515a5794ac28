/* csv_scan.c - see csv_scan.h */
#include "table/csv_scan.h"

#include <string.h>

/* One record on its way. */
struct cursor {
	const char *at, *end;
	bool last;
	char delimiter;
	bool loose;
};

/* Moves to the closing quote, from the first byte in quotes. */
static enum leat_csv_end
skip_quoted(struct cursor *c, struct leat_csv_field *field)
{
	for (;;) {
		const char *quote = memchr(c->at, '"', (size_t)(c->end - c->at));
		const char *stop = quote ? quote : c->end;

		if (!field->breaks)
			field->breaks = memchr(c->at, '\n', (size_t)(stop - c->at)) != NULL;
		c->at = stop;
		if (!quote)
			return c->last ? LEAT_CSV_UNCLOSED : LEAT_CSV_MORE;
		if (quote + 1 == c->end && !c->last)
			return LEAT_CSV_MORE; /* it may be the first of two */
		if (quote + 1 == c->end || quote[1] != '"')
			return LEAT_CSV_RECORD;
		field->doubled = true;
		c->at = quote + 2;
	}
}

static enum leat_csv_end
scan_quoted(struct cursor *c, struct leat_csv_field *field, const char **fault)
{
	const char *open = c->at++;
	enum leat_csv_end how;

	field->quoted = true;
	field->text = c->at;
	how = skip_quoted(c, field);
	*fault = open;
	if (how != LEAT_CSV_RECORD)
		return how;
	field->len = (unsigned)(c->at - field->text);
	c->at++;
	if (c->at == c->end)
		return c->last ? LEAT_CSV_RECORD : LEAT_CSV_MORE;
	if (*c->at == c->delimiter || leat_csv_line_end(c->at, c->end, c->last))
		return LEAT_CSV_RECORD;
	if (*c->at == '\r' && c->at + 1 == c->end && !c->last)
		return LEAT_CSV_MORE;
	*fault = c->at;
	return LEAT_CSV_AFTER;
}

/* Handles a byte that may end an unquoted field. True: it goes on after it. */
static bool
goes_on(struct cursor *c, enum leat_csv_end *how, const char **fault)
{
	*how = LEAT_CSV_RECORD;
	*fault = c->at;
	if (*c->at == c->delimiter || *c->at == '\n')
		return false;
	if (*c->at == '"') {
		*how = LEAT_CSV_INSIDE;
		return c->loose;
	}
	if (leat_csv_line_end(c->at, c->end, c->last))
		return false;
	if (c->at + 1 == c->end && !c->last) {
		*how = LEAT_CSV_MORE;
		return false;
	}
	*how = LEAT_CSV_RETURN;
	return c->loose;
}

static enum leat_csv_end
scan_plain(struct cursor *c, struct leat_csv_field *field, const char **fault)
{
	const char delimiter = c->delimiter;
	enum leat_csv_end how = LEAT_CSV_RECORD;

	field->text = c->at;
	for (;; c->at++) {
		const char *at = c->at, *end = c->end;

		while (at < end && *at != delimiter && *at != '\n' && *at != '"' && *at != '\r')
			at++;
		c->at = at;
		if (at == end) {
			how = c->last ? LEAT_CSV_RECORD : LEAT_CSV_MORE;
			break;
		}
		if (!goes_on(c, &how, fault))
			break;
	}
	field->len = (unsigned)(c->at - field->text);
	return how;
}

enum leat_csv_end
leat_csv_scan(struct leat_csv_scan *scan, const char *text, const char *end, bool last)
{
	struct cursor c = {text, end, last, scan->rules.delimiter, scan->rules.loose};

	scan->fields = 0;
	scan->breaks = false;
	for (bool more = true; more;) {
		struct leat_csv_field field = {0};
		enum leat_csv_end how;

		if (c.at < end && *c.at == '"')
			how = scan_quoted(&c, &field, &scan->fault);
		else
			how = scan_plain(&c, &field, &scan->fault);
		scan->breaks |= field.breaks;
		if (how != LEAT_CSV_RECORD)
			return how;
		if (scan->fields < scan->cap)
			scan->field[scan->fields] = field;
		scan->fields++;
		more = c.at < end && *c.at == scan->rules.delimiter;
		c.at += more;
	}
	scan->next = c.at + leat_csv_line_end(c.at, end, last);
	return LEAT_CSV_RECORD;
}

size_t
leat_csv_unquote(const struct leat_csv_field *field, char *to)
{
	const char *from = field->text, *end = from + field->len;
	char *begin = to;

	while (from < end) {
		const char *quote = field->doubled ? memchr(from, '"', (size_t)(end - from)) : NULL;
		size_t len = (size_t)((quote ? quote + 1 : end) - from);

		memmove(to, from, len);
		to += len;
		from += len + (quote != NULL);
	}
	return (size_t)(to - begin);
}
