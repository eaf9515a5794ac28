/* json_line.h - the members of one JSON object, as they are written
 *
 * For files with an object in each line. Numbers stay text, so that values of any declared type are exact: no double is
 * in between. Strings are decoded. The grammar is that of RFC 8259, and nothing beyond it. One thread. */
#ifndef LEAT_TABLE_JSON_LINE_H
#define LEAT_TABLE_JSON_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct leat_mem;

enum leat_json_kind {
	LEAT_JSON_NULL,
	LEAT_JSON_BOOL,
	LEAT_JSON_NUMBER,
	LEAT_JSON_TEXT,
	LEAT_JSON_NESTED, /* an object or array */
};

struct leat_json_member {
	const char *name, *text; /* decoded strings; the text of everything else */
	size_t name_len, len;
	enum leat_json_kind kind;
};

struct leat_json_line {
	struct leat_mem *mem;
	struct leat_json_member *member;
	size_t members, cap;
	char *plain; /* decoded strings */
	size_t plain_cap;
};

enum { LEAT_JSON_MEMBERS = 1 << 16, LEAT_JSON_DEPTH = 64 };

/* Reads `text`, which is UTF-8. *why: what is wrong with it, static; NULL: nothing. Members are valid until the next
 * call, and while `text` is. Failures are those of memory. */
enum leat_status leat_json_line_read(struct leat_json_line *line, const char *text, size_t len, const char **why,
                                     struct leat_err *err);
void leat_json_line_free(struct leat_json_line *line); /* accepts one with `mem` alone */

#endif
