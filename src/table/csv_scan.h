/* csv_scan.h - find the fields of one CSV record (RFC 4180)
 *
 * The one place that knows the grammar: csv_split.c reads files record by record with it, format/csv.c reads lists.
 * Fields end at the delimiter, records at LF or CR LF. A field that begins with a quote ends at the next quote that is
 * not doubled; inside it, delimiters, line breaks and doubled quotes are text. Bytes are not interpreted beyond that.
 * Nothing is written and nothing past `end` is read. */
#ifndef LEAT_TABLE_CSV_SCAN_H
#define LEAT_TABLE_CSV_SCAN_H

#include <stdbool.h>
#include <stddef.h>

/* Longest text that can be scanned. */
enum { LEAT_CSV_MAX_RECORD = 1 << 30 };

struct leat_csv_field {
	const char *text; /* without the quotes around it */
	unsigned len;
	bool quoted;
	bool doubled; /* has doubled quotes: leat_csv_unquote */
	bool breaks;  /* has line breaks */
};

struct leat_csv_rules {
	char delimiter;
	bool loose; /* quotes and CR inside unquoted fields are text; strictly, they are errors */
};

enum leat_csv_end {
	LEAT_CSV_RECORD,   /* complete: `next` is the beginning of the next one */
	LEAT_CSV_MORE,     /* the text ends before the record does */
	LEAT_CSV_UNCLOSED, /* the file ends inside a quoted field; `fault` is its quote */
	LEAT_CSV_AFTER,    /* text after a closing quote; `fault` is that text */
	LEAT_CSV_INSIDE,   /* a quote inside an unquoted field; `fault` is the quote */
	LEAT_CSV_RETURN,   /* CR without LF in an unquoted field; `fault` is the CR */
};

struct leat_csv_scan {
	struct leat_csv_rules rules;
	struct leat_csv_field *field; /* the caller's */
	size_t cap;                   /* of `field` */
	size_t fields;                /* of the record; those beyond `cap` are counted, but not stored */
	const char *next, *fault;
	bool breaks; /* the record has line breaks in quotes */
};

/* Scans the record that begins at `text`. `last`: the file ends at `end`, which ends the record, too. */
enum leat_csv_end leat_csv_scan(struct leat_csv_scan *scan, const char *text, const char *end, bool last);

/* Copies a field to `to`, which has room for its `len` bytes and may be the field itself, with its doubled quotes made
 * single. Returns the length. */
size_t leat_csv_unquote(const struct leat_csv_field *field, char *to);

/* Length of the line ending at `text`: 1, 2, or 0 if there is none. With `last`, CR may be the last byte of the file.
 */
static inline size_t
leat_csv_line_end(const char *text, const char *end, bool last)
{
	if (text < end && *text == '\n')
		return 1;
	if (text == end || *text != '\r')
		return 0;
	return text + 1 == end ? last : text[1] == '\n' ? 2 : 0;
}

#endif
