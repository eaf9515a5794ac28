/* yaml.h - a YAML file as a tree of texts, lists and maps, each with its line and column
 *
 * Every scalar is a text: what it means is for the reader to say, so `no`, 1e3 and 12:30 are just that. What a file of
 * steps has no use for is refused: anchors, aliases, tags, several documents, keys that are not texts, keys that are
 * given twice.
 *
 * The text is hostile. libyaml reads it; size, depth and number of nodes are limited. One thread. */
#ifndef LEAT_STEP_YAML_H
#define LEAT_STEP_YAML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "step/project_text.h"

enum { LEAT_YAML_BYTES = 16 << 20, LEAT_YAML_DEPTH = 16, LEAT_YAML_NODES = 2000000 };

enum leat_yaml_kind { LEAT_YAML_TEXT, LEAT_YAML_LIST, LEAT_YAML_MAP };

/* A list's items are first, first->next, ...; a map's keys likewise, each with its `value`. */
struct leat_yaml {
	const char *text; /* of a TEXT; else NULL */
	struct leat_yaml *first, *next, *value;
	size_t count;                                /* items or keys */
	uint32_t line, column, end_line, end_column; /* from 1; the end is past the last character */
	enum leat_yaml_kind kind;
	bool plain; /* a TEXT without quotes, not after | or > */
};

struct leat_yaml_file {
	const char *name; /* for errors */
	const char *text; /* NUL-terminated */
	size_t len;
	struct leat_project_text *strings; /* texts of nodes, which outlive the nodes */
	struct leat_project_text *nodes;
	struct leat_err *err;
};

/* Fills *root, with NULL if the file is empty. LEAT_SPEC: it is not YAML, or not this kind of YAML. */
enum leat_status leat_yaml_parse(const struct leat_yaml_file *file, struct leat_yaml **root);

/* Is it a plain text of no characters, as in `key:`? */
bool leat_yaml_is_empty(const struct leat_yaml *node);

/* LEAT_SPEC: "leat.yaml:LINE:COLUMN: ...", the line, and a caret below `at`. */
enum leat_status leat_yaml_fail(const struct leat_yaml_file *file, const struct leat_yaml *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same for `len` bytes at an offset. */
enum leat_status leat_yaml_fail_at(const struct leat_yaml_file *file, size_t offset, size_t len, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The offset of a line and column. */
size_t leat_yaml_offset(const struct leat_yaml_file *file, uint32_t line, uint32_t column);

#endif
