/* partition_inside.h - what the files of partition.h share
 *
 * A *relation* is what FROM gives a name; it is split or whole, and some of its columns carry the partition. Columns of
 * tables are not known here. A name that carries the partition in one relation cannot be in another one of the same
 * FROM, or DuckDB would call it ambiguous; but a `*` may hide a column of the same name in front of it, so names after
 * a `*` count in the result of the whole query only, where two columns of one name are an error. */
#ifndef LEAT_TABLE_PARTITION_INSIDE_H
#define LEAT_TABLE_PARTITION_INSIDE_H

#include <jansson.h>
#include <stddef.h>
#include <string.h>

#include "table/partition.h"

struct leat_aggregates { /* names of functions that make one value of many rows */
	struct leat_mem *mem;
	char **name, **macro; /* macro: its definition; "": a function */
	bool *is;
	size_t count, cap;
};

struct item {             /* a column, or several that nobody knows */
	const char *name; /* NULL: one that cannot be named */
	bool carries, unknown;
	bool unplaced; /* of a table: nobody knows between which others it is */
};

struct items {
	struct item *item;
	size_t count, cap;
};

struct relation {
	const char *alias;
	struct items items;
};

struct scope { /* what FROM gives */
	struct relation *relation;
	size_t count, cap;
	struct item *merged; /* by USING: what the name without a table means */
	size_t merges, merged_cap;
	bool is_split;
};

struct result { /* of a SELECT */
	struct items items;
	bool is_split;
};

struct with { /* a name that WITH defines, after others */
	const struct with *before;
	const char *name;
	struct result result;
};

struct walk {
	struct leat_mem *mem;
	struct block *block; /* of all memory */
	const char *sql;
	const struct leat_split_table *split;
	size_t splits;
	struct leat_aggregates aggregates;
	struct leat_err *err;
};

struct block {
	struct block *next;
	max_align_t data[];
};

/* ---- the tree ---- */

static inline const char *
text_of(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static inline bool
is(json_t *object, const char *key, const char *text)
{
	return !strcmp(text_of(object, key), text);
}

/* NULL in the tree is an object for jansson. */
static inline json_t *
get(json_t *object, const char *key)
{
	json_t *value = json_object_get(object, key);

	return json_is_null(value) ? NULL : value;
}

/* ---- partition_columns.c ---- */

void *leat_part_keep(struct walk *w, size_t count, size_t size);
bool leat_part_grow(struct walk *w, void *array, size_t *cap, size_t count, size_t size);
enum leat_status leat_part_add(struct walk *w, struct items *items, struct item item);
enum leat_status leat_part_add_all(struct walk *w, struct items *to, const struct items *from);
enum leat_status __attribute__((format(printf, 3, 4)))
leat_part_refuse(struct walk *w, json_t *at, const char *format, ...);
const char *leat_part_columns(const struct walk *w, char text[200]);
bool leat_part_mentions(json_t *value, const char *text);
bool leat_part_items_carry(const struct items *items, const char *name, bool is_last);
bool leat_part_scope_carries(const struct scope *scope, const char *table, const char *name);
bool leat_part_carries(const struct scope *scope, json_t *expression);
const char *leat_part_name(json_t *expression);
bool leat_part_key_carries(const struct scope *scope, json_t *list, json_t *expression);
/* The tree of a query, and the names of aggregates. */
enum leat_status leat_part_ask(struct leat_aggregates *aggregates, const char *sql, json_t **root,
                               struct leat_err *err);
bool leat_part_is_aggregate(const struct leat_aggregates *aggregates, const char *name);
void leat_part_forget(struct leat_aggregates *aggregates);

/* ---- partition_from.c ---- */

enum leat_status leat_part_check_subqueries(struct walk *w, json_t *value, const struct with *with);
enum leat_status leat_part_from(struct walk *w, json_t *table, const struct with *with, json_t *where,
                                struct scope *scope);

/* The columns of `from`, with the names that a list after an alias gives them. */
enum leat_status leat_part_rename(struct walk *w, json_t *aliases, const struct items *from, struct items *to);

/* ---- partition.c ---- */

enum leat_status leat_part_query(struct walk *w, json_t *node, const struct with *with, struct result *result);

#endif
