/* partition.c - see partition.h
 *
 * A walk over DuckDB's syntax tree. What DuckDB parses and this does not know is refused. jansson limits the depth of
 * the tree. */
#include "table/partition.h"

#include "base/array.h"
#include "table/partition_inside.h"

/* ---- aggregates and windows ---- */

/* The first expression for which `test` holds; not inside of subqueries. */
static json_t *
find(const struct walk *w, json_t *value, bool (*test)(const struct walk *w, json_t *object))
{
	json_t *part, *found = NULL;
	const char *key;
	size_t i;

	if (json_is_object(value)) {
		if (is(value, "class", "SUBQUERY"))
			return find(w, json_object_get(value, "child"), test);
		if (test(w, value))
			return value;
		json_object_foreach(value, key, part) if ((found = find(w, part, test)) != NULL) return found;
	}
	json_array_foreach(value, i, part) if ((found = find(w, part, test)) != NULL) return found;
	return NULL;
}

static bool
is_aggregate(const struct walk *w, json_t *object)
{
	return is(object, "class", "FUNCTION") &&
	       leat_part_is_aggregate(&w->aggregates, text_of(object, "function_name"));
}

/* The parts of a SELECT that aggregates and windows may be in. */
static const char *const places[] = {"select_list", "having", "qualify", "modifiers"};

static json_t *
find_in_select(const struct walk *w, json_t *node, bool (*test)(const struct walk *w, json_t *object))
{
	json_t *found = NULL;

	for (size_t i = 0; i < sizeof(places) / sizeof(*places) && !found; i++)
		found = find(w, json_object_get(node, places[i]), test);
	return found;
}

static enum leat_status
check_windows(struct walk *w, json_t *value, json_t *list, const struct scope *scope)
{
	enum leat_status status = LEAT_OK;
	const char *key;
	json_t *part;
	size_t i;

	if (json_is_object(value)) {
		char columns[200];
		bool found = false;

		if (is(value, "class", "SUBQUERY"))
			return check_windows(w, json_object_get(value, "child"), list, scope);
		json_array_foreach(json_object_get(value, "partitions"), i, part) found |=
			!is(part, "class", "CONSTANT") && leat_part_key_carries(scope, list, part);
		if (is(value, "class", "WINDOW") && !found)
			return leat_part_refuse(
				w, value,
				"the window of %s lacks the column that tables are split by, so it would end "
				"where a partition does; write OVER (PARTITION BY %s ...), or remove 'by'",
				text_of(value, "function_name"), leat_part_columns(w, columns));
		json_object_foreach(value, key, part) if (status == LEAT_OK) status =
			check_windows(w, part, list, scope);
	}
	json_array_foreach(value, i, part) if (status == LEAT_OK) status = check_windows(w, part, list, scope);
	return status;
}

/* ---- SELECT ---- */

/* `*`, or `events.*`: columns of all relations, or of one. */
static enum leat_status
add_star(struct walk *w, json_t *star, const struct scope *scope, struct items *items)
{
	static const char *const changes[] = {"exclude_list", "qualified_exclude_list", "replace_list", "rename_list"};
	const char *table = text_of(star, "relation_name");
	enum leat_status status = LEAT_OK;

	if (json_is_true(json_object_get(star, "columns")) || get(star, "expr"))
		return leat_part_add(w, items, (struct item){.unknown = true});
	for (size_t i = 0; i < scope->count; i++) {
		const struct relation *relation = &scope->relation[i];

		if (*table && strcasecmp(relation->alias, table) != 0)
			continue;
		for (size_t k = 0; k < relation->items.count && status == LEAT_OK; k++) {
			struct item item = relation->items.item[k];

			if (item.name && !*table)
				for (size_t m = 0; m < scope->merges; m++)
					if (!strcasecmp(scope->merged[m].name, item.name))
						item.carries = scope->merged[m].carries;
			for (size_t c = 0; item.name && c < 4; c++)
				if (leat_part_mentions(json_object_get(star, changes[c]), item.name))
					item = (struct item){.unknown = true};
			status = leat_part_add(w, items, item);
		}
	}
	return status;
}

/* The columns of the result. What has no name that is known might have any. */
static enum leat_status
add_columns(struct walk *w, json_t *list, const struct scope *scope, struct items *items)
{
	static const char *const unnamed[] = {"unnest", "struct_extract", "struct_extract_at", "array_extract"};
	enum leat_status status = LEAT_OK;
	json_t *one;
	size_t i;

	json_array_foreach(list, i, one)
	{
		const char *function = text_of(one, "function_name");
		struct item item = {.name = leat_part_name(one), .carries = leat_part_carries(scope, one)};

		item.unknown = !item.name &&
		               (!is(one, "class", "FUNCTION") || json_is_true(json_object_get(one, "is_operator")));
		for (size_t k = 0; k < sizeof(unnamed) / sizeof(*unnamed); k++)
			item.unknown |= !strcasecmp(function, unnamed[k]) && (!item.name || k == 0);
		status = is(one, "class", "STAR") ? add_star(w, one, scope, items) : leat_part_add(w, items, item);
		if (status != LEAT_OK)
			break;
	}
	return status;
}

static bool
any_carries(const struct items *items)
{
	for (size_t i = 0; i < items->count; i++)
		if (items->item[i].carries)
			return true;
	return false;
}

/* Each set of GROUPING SETS, of which a plain GROUP BY is one, has the column. */
static bool
sets_carry(json_t *node, const struct scope *scope)
{
	json_t *sets = json_object_get(node, "group_sets"), *set, *number;
	json_t *groups = json_object_get(node, "group_expressions");
	size_t i, k;

	json_array_foreach(sets, i, set)
	{
		bool found = false;

		json_array_foreach(set, k, number) found |=
			leat_part_key_carries(scope, json_object_get(node, "select_list"),
		                              json_array_get(groups, (size_t)json_number_value(number)));
		if (!found)
			return false;
	}
	return json_array_size(sets) > 0;
}

static bool
is_grouped(json_t *node)
{
	return json_array_size(json_object_get(node, "group_expressions")) ||
	       json_array_size(json_object_get(node, "group_sets")) ||
	       is(node, "aggregate_handling", "FORCE_AGGREGATES");
}

static enum leat_status
check_groups(struct walk *w, json_t *node, const struct scope *scope, const struct items *items)
{
	json_t *aggregate = find_in_select(w, node, is_aggregate), *groups = json_object_get(node, "group_expressions");
	bool all = is(node, "aggregate_handling", "FORCE_AGGREGATES");
	char columns[200];

	leat_part_columns(w, columns);
	if (!is_grouped(node) && aggregate)
		return leat_part_refuse(
			w, aggregate,
			"%s of all rows needs all partitions; write GROUP BY %s, and add up in a step without 'by'",
			is(aggregate, "function_name", "count_star") ? "count(*)" : text_of(aggregate, "function_name"),
			columns);
	if (!is_grouped(node) && get(node, "having"))
		return leat_part_refuse(w, get(node, "having"),
		                        "HAVING without GROUP BY needs all partitions; write GROUP BY %s", columns);
	if (!is_grouped(node) || (all ? any_carries(items) : sets_carry(node, scope)))
		return LEAT_OK;
	return leat_part_refuse(
		w, json_array_size(groups) ? groups : json_object_get(node, "select_list"),
		"GROUP BY lacks the column that tables are split by%s, so a group would be in several partitions; "
		"write GROUP BY %s, ... with the name as it is, or group in a step without 'by'",
		json_array_size(json_object_get(node, "group_sets")) > 1 ? " in one of its sets" : "", columns);
}

static enum leat_status
check_distinct(struct walk *w, json_t *node, json_t *modifier, const struct scope *scope, const struct items *items)
{
	json_t *targets = json_object_get(modifier, "distinct_on_targets"), *target;
	json_t *list = json_object_get(node, "select_list");
	bool found = !json_array_size(targets) && any_carries(items);
	char columns[200];
	size_t i;

	json_array_foreach(targets, i, target) found |= leat_part_key_carries(scope, list, target);
	if (found)
		return LEAT_OK;
	return leat_part_refuse(w, json_array_size(targets) ? targets : list,
	                        "DISTINCT lacks the column that tables are split by, so equal rows would be in several "
	                        "partitions; add %s to it, or write DISTINCT in a step without 'by'",
	                        leat_part_columns(w, columns));
}

static enum leat_status
refuse_limit(struct walk *w, json_t *modifier)
{
	return leat_part_refuse(
		w, modifier, "LIMIT and OFFSET would take rows of each partition; write them in a step without 'by'");
}

static enum leat_status
check_modifiers(struct walk *w, json_t *node, const struct scope *scope, const struct result *result)
{
	enum leat_status status = LEAT_OK;
	json_t *modifier;
	size_t i;

	json_array_foreach(json_object_get(node, "modifiers"), i, modifier)
	{
		if (status != LEAT_OK || is(modifier, "type", "ORDER_MODIFIER"))
			continue;
		if (is(modifier, "type", "DISTINCT_MODIFIER"))
			status = scope && result->is_split ? check_distinct(w, node, modifier, scope, &result->items)
			                                   : LEAT_OK;
		else
			status = refuse_limit(w, modifier);
	}
	return status;
}

static enum leat_status
look_at_select(struct walk *w, json_t *node, const struct with *with, struct result *result)
{
	static const char *const parts[] = {"select_list", "where_clause", "group_expressions",
	                                    "having",      "qualify",      "modifiers"};
	json_t *list = json_object_get(node, "select_list");
	struct scope scope = {0};
	enum leat_status status =
		leat_part_from(w, json_object_get(node, "from_table"), with, get(node, "where_clause"), &scope);

	result->is_split = scope.is_split;
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts) && status == LEAT_OK; i++)
		status = leat_part_check_subqueries(w, json_object_get(node, parts[i]), with);
	if (status == LEAT_OK)
		status = add_columns(w, list, &scope, &result->items);
	if (status == LEAT_OK && get(node, "sample"))
		status = leat_part_refuse(w, list,
		                          "a sample takes other rows of each partition than of the whole table; write "
		                          "WHERE md5(key::VARCHAR) < '1999', which keeps a tenth");
	if (status == LEAT_OK && scope.is_split)
		status = check_groups(w, node, &scope, &result->items);
	for (size_t i = 0; i < sizeof(places) / sizeof(*places) && status == LEAT_OK && scope.is_split; i++)
		status = check_windows(w, json_object_get(node, places[i]), list, &scope);
	return status == LEAT_OK ? check_modifiers(w, node, &scope, result) : status;
}

/* ---- UNION and the like ---- */

static bool
is_placed(const struct items *items, size_t i)
{
	return i < items->count && !items->item[i].unknown && !items->item[i].unplaced;
}

/* Columns that carry the partition on both sides, by their places; by their names with BY NAME. */
static enum leat_status
join_columns(struct walk *w, const struct result *left, const struct result *right, bool by_name, struct items *items)
{
	enum leat_status status = LEAT_OK;
	bool known = true;

	for (size_t i = 0; i < left->items.count && status == LEAT_OK; i++) {
		struct item item = left->items.item[i];

		known &= is_placed(&left->items, i) && is_placed(&right->items, i);
		if (by_name)
			item.carries &= item.name && leat_part_items_carry(&left->items, item.name, false) &&
			                leat_part_items_carry(&right->items, item.name, false);
		else
			item.carries &= known && right->items.item[i].carries;
		status = leat_part_add(w, items, item);
	}
	return status;
}

static enum leat_status
look_at_union(struct walk *w, json_t *node, const struct with *with, struct result *result)
{
	bool by_name = is(node, "setop_type", "UNION_BY_NAME"), is_union = by_name || is(node, "setop_type", "UNION");
	struct result left = {0}, right = {0};
	enum leat_status status = leat_part_query(w, json_object_get(node, "left"), with, &left);
	char columns[200];

	if (status == LEAT_OK)
		status = leat_part_query(w, json_object_get(node, "right"), with, &right);
	if (status == LEAT_OK)
		status = join_columns(w, &left, &right, by_name, &result->items);
	if (status != LEAT_OK)
		return status;
	result->is_split = left.is_split || right.is_split;
	if (!result->is_split)
		return LEAT_OK;
	if (!left.is_split || !right.is_split)
		return leat_part_refuse(
			w, node,
			"one side of this %s reads no table that is split, so its rows would be in every "
			"partition; split a table of it with 'by', or join both sides in a step without 'by'",
			is_union ? "UNION" : text_of(node, "setop_type"));
	if (is_union && json_is_true(json_object_get(node, "setop_all")))
		return LEAT_OK;
	if (any_carries(&result->items))
		return LEAT_OK;
	return leat_part_refuse(
		w, node,
		"%s compares rows, but the columns that tables are split by are not at the same place on both "
		"sides, so equal rows may be in two partitions; name the columns, with %s at the same place%s",
		is_union ? "UNION" : text_of(node, "setop_type"), leat_part_columns(w, columns),
		is_union ? ", or write UNION ALL" : "");
}

/* WITH RECURSIVE: of tables that are whole, it is whole. Its own name is known by then. */
static enum leat_status
look_at_recursion(struct walk *w, json_t *node, const struct with *with, struct result *result)
{
	struct with self = {.before = with, .name = text_of(node, "cte_name")};
	struct result left = {0}, right = {0};
	enum leat_status status = leat_part_query(w, json_object_get(node, "left"), with, &left);

	if (status == LEAT_OK)
		status = leat_part_add(w, &self.result.items, (struct item){.unknown = true});
	if (status == LEAT_OK)
		status = leat_part_query(w, json_object_get(node, "right"), &self, &right);
	if (status == LEAT_OK && (left.is_split || right.is_split))
		return leat_part_refuse(w, node,
		                        "WITH RECURSIVE cannot read a table that is split; use a step without 'by'");
	return status == LEAT_OK ? leat_part_add_all(w, &result->items, &self.result.items) : status;
}

/* ---- a query ---- */

/* Each name sees those before it. */
static enum leat_status
look_at_with(struct walk *w, json_t *node, const struct with **with)
{
	json_t *map = json_object_get(json_object_get(node, "cte_map"), "map"), *entry;
	size_t i;

	json_array_foreach(map, i, entry)
	{
		json_t *value = json_object_get(entry, "value");
		struct with *one = leat_part_keep(w, 1, sizeof(*one));
		struct result result = {0};
		enum leat_status status;

		if (!one)
			return LEAT_NOMEM;
		*one = (struct with){.before = *with, .name = text_of(entry, "key")};
		status = leat_part_query(w, json_object_get(json_object_get(value, "query"), "node"), *with, &result);
		if (status == LEAT_OK)
			status = leat_part_rename(w, json_object_get(value, "aliases"), &result.items,
			                          &one->result.items);
		if (status != LEAT_OK)
			return status;
		one->result.is_split = result.is_split;
		*with = one;
	}
	return LEAT_OK;
}

enum leat_status
leat_part_query(struct walk *w, json_t *node, const struct with *with, struct result *result)
{
	enum leat_status status = look_at_with(w, node, &with);

	if (status != LEAT_OK)
		return status;
	if (is(node, "type", "SELECT_NODE"))
		return look_at_select(w, node, with, result);
	if (is(node, "type", "SET_OPERATION_NODE") && json_object_get(node, "left"))
		status = look_at_union(w, node, with, result);
	else if (is(node, "type", "RECURSIVE_CTE_NODE"))
		status = look_at_recursion(w, node, with, result);
	else
		return leat_part_refuse(w, node, "it is not known how to partition a %s; remove 'by'",
		                        text_of(node, "type"));
	return status == LEAT_OK ? check_modifiers(w, node, NULL, result) : status;
}

/* ---- the whole query ---- */

static enum leat_status
keep_carried(struct leat_carried *carried, const struct items *items, struct leat_mem *mem, struct leat_err *err)
{
	carried->mem = mem;
	for (size_t i = 0; i < items->count; i++) {
		const struct item *item = &items->item[i];

		if (!item->carries || !item->name || leat_carries(carried, item->name) ||
		    !leat_part_items_carry(items, item->name, true))
			continue;
		if (LEAT_GROW(mem, carried->name, carried->cap, carried->count + 1, SIZE_MAX, "columns", err) !=
		    LEAT_OK)
			return LEAT_NOMEM;
		carried->name[carried->count] = leat_strdup(mem, item->name);
		if (!carried->name[carried->count++])
			return leat_fail_mem(err, mem, strlen(item->name), "columns");
	}
	return LEAT_OK;
}

static enum leat_status
look_at_all(struct walk *w, json_t *root, struct leat_carried *carried)
{
	json_t *statements = json_object_get(root, "statements");
	struct result result = {0};
	enum leat_status status;

	if (json_is_true(json_object_get(root, "error")) || json_array_size(statements) != 1)
		return is(root, "error_type", "not implemented")
		               ? leat_fail(w->err, LEAT_INVALID,
		                           "a query with PIVOT or the like cannot be partitioned; write it in a step "
		                           "without "
		                           "'by'")
		               : leat_fail(w->err, LEAT_INVALID, "%s", text_of(root, "error_message"));
	status = leat_part_query(w, json_object_get(json_array_get(statements, 0), "node"), NULL, &result);
	if (status == LEAT_OK && !result.is_split)
		return leat_fail(w->err, LEAT_INVALID,
		                 "the query reads no table that 'by' names, so each partition would be all of the "
		                 "result; remove 'by'");
	return status == LEAT_OK ? keep_carried(carried, &result.items, w->mem, w->err) : status;
}

enum leat_status
leat_sql_partition(const char *sql, const struct leat_split_table *split, size_t splits, struct leat_carried *carried,
                   struct leat_mem *mem, struct leat_err *err)
{
	struct leat_err ignored;
	struct walk w = {.mem = mem,
	                 .sql = sql,
	                 .split = split,
	                 .splits = splits,
	                 .aggregates = {.mem = mem},
	                 .err = err ? err : &ignored};
	json_t *root = NULL;
	enum leat_status status;

	leat_err_clear(&ignored);
	status = leat_part_ask(&w.aggregates, sql, &root, w.err);
	if (status == LEAT_OK)
		status = look_at_all(&w, root, carried);
	json_decref(root);
	leat_part_forget(&w.aggregates);
	while (w.block) {
		struct block *next = w.block->next;

		leat_free(mem, w.block);
		w.block = next;
	}
	return status;
}

bool
leat_carries(const struct leat_carried *carried, const char *column)
{
	for (size_t i = 0; i < carried->count; i++)
		if (!strcasecmp(carried->name[i], column))
			return true;
	return false;
}

void
leat_carried_free(struct leat_carried *carried)
{
	for (size_t i = 0; i < carried->count; i++)
		leat_free(carried->mem, carried->name[i]);
	if (carried->mem)
		leat_free(carried->mem, carried->name);
	*carried = (struct leat_carried){0};
}
