/* partition_from.c - tables, joins and subqueries of a query that is partitioned; see partition_inside.h */
#include "table/partition_inside.h"

/* ---- subqueries in expressions ---- */

enum leat_status
leat_part_check_subqueries(struct walk *w, json_t *value, const struct with *with)
{
	enum leat_status status = LEAT_OK;
	const char *key;
	json_t *part;
	size_t i;

	if (json_is_object(value)) {
		if (is(value, "class", "SUBQUERY")) {
			json_t *node = json_object_get(json_object_get(value, "subquery"), "node");
			struct result result = {0};

			status = leat_part_query(w, node, with, &result);
			if (status == LEAT_OK && result.is_split)
				return leat_part_refuse(
					w, value,
					"a subquery in an expression reads a table that is split, of which it would "
					"see one partition; write a join on the column, such as SEMI JOIN or ANTI "
					"JOIN");
			value = json_object_get(value, "child");
		}
		json_object_foreach(value, key, part) if (status == LEAT_OK) status =
			leat_part_check_subqueries(w, part, with);
	}
	json_array_foreach(value, i, part) if (status == LEAT_OK) status = leat_part_check_subqueries(w, part, with);
	return status;
}

/* ---- FROM ---- */

static struct relation *
add_relation(struct walk *w, struct scope *scope, json_t *table, const char *name)
{
	const char *alias = text_of(table, "alias");

	if (!leat_part_grow(w, &scope->relation, &scope->cap, scope->count, sizeof(*scope->relation)))
		return NULL;
	scope->relation[scope->count] = (struct relation){.alias = *alias ? alias : name};
	return &scope->relation[scope->count++];
}

/* The names of columns that a list after an alias gives, if it is known which columns they are; else nothing is known.
 */
enum leat_status
leat_part_rename(struct walk *w, json_t *aliases, const struct items *from, struct items *to)
{
	size_t n = json_array_size(aliases);
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < from->count; i++)
		if (n && from->item[i].unknown)
			return leat_part_add(w, to, (struct item){.unknown = true});
	for (size_t i = 0; i < from->count && status == LEAT_OK; i++) {
		struct item item = from->item[i];

		item.carries &= !item.name || leat_part_items_carry(from, item.name, false) || n > i;
		if (i < n)
			item.name = json_string_value(json_array_get(aliases, i));
		status = leat_part_add(w, to, item);
	}
	return status;
}

static enum leat_status
add_result(struct walk *w, json_t *table, const char *name, const struct result *result, struct scope *scope)
{
	struct relation *relation = add_relation(w, scope, table, name);

	scope->is_split |= result->is_split;
	return relation ? leat_part_rename(w, json_object_get(table, "column_name_alias"), &result->items,
	                                   &relation->items)
	                : LEAT_NOMEM;
}

static enum leat_status
look_at_base(struct walk *w, json_t *table, const struct with *with, struct scope *scope)
{
	const char *name = text_of(table, "table_name");
	bool renamed = json_array_size(json_object_get(table, "column_name_alias")) > 0;
	struct relation *relation;
	enum leat_status status = LEAT_OK;

	for (; with; with = with->before)
		if (!strcasecmp(with->name, name))
			return add_result(w, table, name, &with->result, scope);
	relation = add_relation(w, scope, table, name);
	if (!relation)
		return LEAT_NOMEM;
	for (size_t i = 0; i < w->splits && status == LEAT_OK; i++)
		if (!strcasecmp(w->split[i].table, name)) {
			scope->is_split = true;
			if (!renamed)
				status = leat_part_add(
					w, &relation->items,
					(struct item){.name = w->split[i].column, .carries = true, .unplaced = true});
		}
	return status == LEAT_OK ? leat_part_add(w, &relation->items, (struct item){.unknown = true}) : status;
}

static enum leat_status
look_at_subquery(struct walk *w, json_t *table, const struct with *with, struct scope *scope)
{
	struct result result = {0};
	enum leat_status status =
		leat_part_query(w, json_object_get(json_object_get(table, "subquery"), "node"), with, &result);

	return status == LEAT_OK ? add_result(w, table, "", &result, scope) : status;
}

static enum leat_status
look_at_function(struct walk *w, json_t *table, const struct with *with, struct scope *scope)
{
	static const char *const known[] = {"unnest", "range", "generate_series"};
	json_t *function = json_object_get(table, "function");
	const char *name = text_of(function, "function_name");
	const struct result result = {
		.items = {.item = (struct item[]){{.unknown = true}}, .count = 1},
	};
	enum leat_status status = leat_part_check_subqueries(w, function, with);
	size_t i = 0;

	while (i < sizeof(known) / sizeof(*known) && strcasecmp(known[i], name) != 0)
		i++;
	if (i == sizeof(known) / sizeof(*known))
		return leat_part_refuse(
			w, table,
			"it is not known what %s reads, and so not if it can be partitioned; remove it, or 'by'", name);
	return status == LEAT_OK ? add_result(w, table, name, &result, scope) : status;
}

/* ---- joins ---- */

static bool
equates(json_t *condition, const struct scope *left, const struct scope *right)
{
	json_t *a = json_object_get(condition, "left"), *b = json_object_get(condition, "right"), *part;
	size_t i;

	if (is(condition, "type", "COMPARE_EQUAL") || is(condition, "type", "COMPARE_NOT_DISTINCT_FROM"))
		return (leat_part_carries(left, a) && leat_part_carries(right, b)) ||
		       (leat_part_carries(left, b) && leat_part_carries(right, a));
	if (is(condition, "type", "CONJUNCTION_AND"))
		json_array_foreach(json_object_get(condition, "children"), i,
		                   part) if (equates(part, left, right)) return true;
	return false;
}

static bool
using_equates(json_t *names, const struct scope *left, const struct scope *right)
{
	json_t *name;
	size_t i;

	json_array_foreach(names, i,
	                   name) if (json_is_string(name) &&
	                             leat_part_scope_carries(left, NULL, json_string_value(name)) &&
	                             leat_part_scope_carries(right, NULL, json_string_value(name))) return true;
	return false;
}

struct join {
	json_t *node;
	const char *type; /* INNER, LEFT, RIGHT, FULL, SEMI, ANTI */
	struct scope left, right;
};

static bool
is_type(const struct join *join, const char *types)
{
	return *join->type && strstr(types, join->type) != NULL;
}

/* One side is whole: the other one's rows must be those that remain. */
static enum leat_status
check_whole_side(struct walk *w, const struct join *join)
{
	if (is_type(join, "INNER") || is_type(join, join->left.is_split ? "LEFT SEMI ANTI" : "RIGHT"))
		return LEAT_OK;
	return leat_part_refuse(
		w, join->node,
		"this %s JOIN keeps rows of a table that is whole in every partition, and each partition would "
		"have them; put the table that is split on the side whose rows are kept, or split both tables "
		"with 'by'",
		join->type);
}

static enum leat_status
check_join(struct walk *w, const struct join *join, json_t *where)
{
	json_t *node = join->node;
	char columns[200];

	if (!is_type(join, "INNER LEFT RIGHT FULL SEMI ANTI"))
		return leat_part_refuse(w, node, "it is not known how to partition a join of type %s; remove 'by'",
		                        join->type);
	if (!join->left.is_split && !join->right.is_split)
		return LEAT_OK;
	if (is(node, "ref_type", "POSITIONAL"))
		return leat_part_refuse(w, node, "a POSITIONAL JOIN depends on all rows; remove 'by'");
	if (is(node, "ref_type", "NATURAL"))
		return leat_part_refuse(w, node,
		                        "a NATURAL JOIN does not say on which columns it joins; write USING (...)");
	if (!is(node, "ref_type", "REGULAR") && !is(node, "ref_type", "CROSS") && !is(node, "ref_type", "ASOF"))
		return leat_part_refuse(w, node, "it is not known how to partition a join of type %s; remove 'by'",
		                        text_of(node, "ref_type"));
	if (!join->left.is_split || !join->right.is_split)
		return check_whole_side(w, join);
	if (equates(get(node, "condition"), &join->left, &join->right) ||
	    using_equates(json_object_get(node, "using_columns"), &join->left, &join->right) ||
	    (is_type(join, "INNER") && !is(node, "ref_type", "ASOF") && equates(where, &join->left, &join->right)))
		return LEAT_OK;
	return leat_part_refuse(
		w, node,
		"this joins two tables that are split, but not on the columns that they are split by, so rows "
		"that belong together may be in two partitions; join on %s with =, or leave one table out of 'by'",
		leat_part_columns(w, columns));
}

/* NULLs of rows without a partner may be in any partition. */
static void
forget(struct scope *scope)
{
	for (size_t i = 0; i < scope->count; i++)
		for (size_t k = 0; k < scope->relation[i].items.count; k++)
			scope->relation[i].items.item[k].carries = false;
	for (size_t i = 0; i < scope->merges; i++)
		scope->merged[i].carries = false;
}

static enum leat_status
add_merged(struct walk *w, struct scope *scope, const char *name, bool does_carry)
{
	if (!leat_part_grow(w, &scope->merged, &scope->merged_cap, scope->merges, sizeof(*scope->merged)))
		return LEAT_NOMEM;
	scope->merged[scope->merges++] = (struct item){.name = name, .carries = does_carry};
	return LEAT_OK;
}

static enum leat_status
merge_scopes(struct walk *w, const struct join *join, struct scope *scope)
{
	enum leat_status status = LEAT_OK;

	scope->is_split |= join->left.is_split || join->right.is_split;
	for (int side = 0; side < 2; side++) {
		const struct scope *from = side ? &join->right : &join->left;

		if (side && is_type(join, "SEMI ANTI"))
			break;
		for (size_t i = 0; i < from->count; i++) {
			if (!leat_part_grow(w, &scope->relation, &scope->cap, scope->count, sizeof(*scope->relation)))
				return LEAT_NOMEM;
			scope->relation[scope->count++] = from->relation[i];
		}
		for (size_t i = 0; i < from->merges && status == LEAT_OK; i++)
			status = add_merged(w, scope, from->merged[i].name, from->merged[i].carries);
	}
	return status;
}

static enum leat_status
finish_join(struct walk *w, struct join *join, struct scope *scope)
{
	json_t *names = json_object_get(join->node, "using_columns"), *name;
	size_t n = json_array_size(names), i;
	bool *merged = leat_part_keep(w, n + 1, sizeof(*merged));
	enum leat_status status = LEAT_OK;

	if (!merged)
		return LEAT_NOMEM;
	json_array_foreach(names, i, name)
	{
		const char *text = json_string_value(name);
		bool left = text && leat_part_scope_carries(&join->left, NULL, text);
		bool right = text && leat_part_scope_carries(&join->right, NULL, text);

		merged[i] = is_type(join, "FULL") ? left && right : is_type(join, "RIGHT") ? right : left;
	}
	if (is_type(join, "LEFT FULL"))
		forget(&join->right);
	if (is_type(join, "RIGHT FULL"))
		forget(&join->left);
	status = merge_scopes(w, join, scope);
	for (i = 0; i < n && status == LEAT_OK; i++)
		if (json_is_string(json_array_get(names, i)))
			status = add_merged(w, scope, json_string_value(json_array_get(names, i)), merged[i]);
	return status;
}

/* A condition of WHERE is one of the join, unless the join may add rows that WHERE then takes away. */
static enum leat_status
look_at_join(struct walk *w, json_t *node, const struct with *with, json_t *where, struct scope *scope)
{
	struct join join = {.node = node, .type = text_of(node, "join_type")};
	enum leat_status status = leat_part_from(w, json_object_get(node, "left"), with,
	                                         is_type(&join, "INNER LEFT SEMI ANTI") ? where : NULL, &join.left);

	if (status == LEAT_OK)
		status = leat_part_from(w, json_object_get(node, "right"), with,
		                        is_type(&join, "INNER RIGHT") ? where : NULL, &join.right);
	if (status == LEAT_OK)
		status = leat_part_check_subqueries(w, get(node, "condition"), with);
	if (status == LEAT_OK)
		status = check_join(w, &join, where);
	return status == LEAT_OK ? finish_join(w, &join, scope) : status;
}

enum leat_status
leat_part_from(struct walk *w, json_t *table, const struct with *with, json_t *where, struct scope *scope)
{
	const struct result values = {.items = {.item = (struct item[]){{.unknown = true}}, .count = 1}};

	if (get(table, "sample") || get(table, "at_clause"))
		return leat_part_refuse(w, table,
		                        "a sample takes other rows of each partition than of the whole table; write "
		                        "WHERE md5(key::VARCHAR) < '1999', which keeps a tenth");
	if (is(table, "type", "EMPTY"))
		return LEAT_OK;
	if (is(table, "type", "BASE_TABLE"))
		return look_at_base(w, table, with, scope);
	if (is(table, "type", "SUBQUERY"))
		return look_at_subquery(w, table, with, scope);
	if (is(table, "type", "JOIN"))
		return look_at_join(w, table, with, where, scope);
	if (is(table, "type", "TABLE_FUNCTION"))
		return look_at_function(w, table, with, scope);
	if (is(table, "type", "EXPRESSION_LIST")) {
		enum leat_status status = leat_part_check_subqueries(w, json_object_get(table, "values"), with);

		return status == LEAT_OK ? add_result(w, table, "", &values, scope) : status;
	}
	return leat_part_refuse(w, table, "it is not known how to partition %s after FROM; remove it, or 'by'",
	                        text_of(table, "type"));
}
