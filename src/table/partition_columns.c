/* partition_columns.c - what DuckDB says about a query, and which columns carry the partition; see partition_inside.h
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/array.h"
#include "table/duckdb.h"
#include "table/partition_inside.h"
#include "table/sql.h"

/* ---- memory: freed at the end ---- */

void *
leat_part_keep(struct walk *w, size_t count, size_t size)
{
	struct block *block = leat_alloc(w->mem, sizeof(*block) + count * size);

	if (!block) {
		leat_fail_mem(w->err, w->mem, count * size, "the columns of a query");
		return NULL;
	}
	block->next = w->block;
	w->block = block;
	return block->data;
}

/* False: out of memory. */
bool
leat_part_grow(struct walk *w, void *array, size_t *cap, size_t count, size_t size)
{
	void **to = array, *bigger;

	if (count < *cap)
		return true;
	bigger = leat_part_keep(w, *cap ? *cap * 2 : 4, size);
	if (!bigger)
		return false;
	if (count)
		memcpy(bigger, *to, count * size);
	*to = bigger;
	*cap = *cap ? *cap * 2 : 4;
	return true;
}

enum leat_status
leat_part_add(struct walk *w, struct items *items, struct item item)
{
	if (!leat_part_grow(w, &items->item, &items->cap, items->count, sizeof(*items->item)))
		return LEAT_NOMEM;
	items->item[items->count++] = item;
	return LEAT_OK;
}

enum leat_status
leat_part_add_all(struct walk *w, struct items *to, const struct items *from)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < from->count && status == LEAT_OK; i++)
		status = leat_part_add(w, to, from->item[i]);
	return status;
}

/* ---- the tree ---- */

/* The smallest place in the text that something in `value` has. */
static double
first_place(json_t *value)
{
	double first = json_is_object(value) ? json_number_value(json_object_get(value, "query_location")) : 1e18;
	const char *key;
	json_t *part;
	size_t i;

	if (!json_is_object(value) || !json_is_number(json_object_get(value, "query_location")))
		first = 1e18;
	json_object_foreach(value, key, part)
	{
		double place = first_place(part);

		first = place < first ? place : first;
	}
	json_array_foreach(value, i, part)
	{
		double place = first_place(part);

		first = place < first ? place : first;
	}
	return first;
}

/* "line 3: ", if it is known. */
enum leat_status __attribute__((format(printf, 3, 4)))
leat_part_refuse(struct walk *w, json_t *at, const char *format, ...)
{
	double place = first_place(at);
	char text[800], line[40] = "";
	va_list args;

	if (place < (double)strlen(w->sql)) {
		size_t n = 1;

		for (const char *c = w->sql; c < w->sql + (size_t)place; c++)
			n += *c == '\n';
		snprintf(line, sizeof(line), "line %zu: ", n);
	}
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return leat_fail(w->err, LEAT_INVALID, "%s%s", line, text);
}

/* "events.user" or "events.user or users.id", for remedies. */
const char *
leat_part_columns(const struct walk *w, char text[200])
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < w->splits && used < 150; i++)
		used += (size_t)snprintf(text + used, 200 - used, "%s%.40s.%.40s", i ? " or " : "", w->split[i].table,
		                         w->split[i].column);
	return text;
}

/* Is the text a value anywhere in it? */
bool
leat_part_mentions(json_t *value, const char *text)
{
	const char *key;
	json_t *part;
	size_t i;

	if (json_is_string(value))
		return !strcasecmp(json_string_value(value), text);
	json_object_foreach(value, key, part) if (leat_part_mentions(part, text)) return true;
	json_array_foreach(value, i, part) if (leat_part_mentions(part, text)) return true;
	return false;
}

/* ---- which names carry the partition ---- */

/* `is_last`: these are the columns of the whole query. */
bool
leat_part_items_carry(const struct items *items, const char *name, bool is_last)
{
	bool found = false;

	for (size_t i = 0; i < items->count; i++) {
		const struct item *item = &items->item[i];

		if (item->unknown && !found && !is_last)
			return false;
		if (!item->name || strcasecmp(item->name, name) != 0)
			continue;
		if (!item->carries)
			return false;
		found = true;
	}
	return found;
}

bool
leat_part_scope_carries(const struct scope *scope, const char *table, const char *name)
{
	if (!table)
		for (size_t i = scope->merges; i-- > 0;)
			if (!strcasecmp(scope->merged[i].name, name))
				return scope->merged[i].carries;
	for (size_t i = 0; i < scope->count; i++)
		if ((!table || !strcasecmp(scope->relation[i].alias, table)) &&
		    leat_part_items_carry(&scope->relation[i].items, name, false))
			return true;
	return false;
}

/* A column by itself: any expression on it might make equal what is in two partitions. */
bool
leat_part_carries(const struct scope *scope, json_t *expression)
{
	json_t *names = json_object_get(expression, "column_names");
	const char *one = json_string_value(json_array_get(names, 0));
	const char *two = json_string_value(json_array_get(names, 1));

	if (!is(expression, "class", "COLUMN_REF") || !one)
		return false;
	if (json_array_size(names) == 1)
		return leat_part_scope_carries(scope, NULL, one);
	return json_array_size(names) == 2 && two && leat_part_scope_carries(scope, one, two);
}

/* The name that an expression gets in the result; NULL: it has none that a query could write. */
const char *
leat_part_name(json_t *expression)
{
	json_t *names = json_object_get(expression, "column_names");

	if (*text_of(expression, "alias"))
		return text_of(expression, "alias");
	return json_string_value(json_array_get(names, json_array_size(names) - 1));
}

/* A column that GROUP BY, DISTINCT ON or PARTITION BY names: of FROM, or the alias or number of an expression after
 * SELECT. Where an alias hides a column, nobody should have to know which one DuckDB takes. */
bool
leat_part_key_carries(const struct scope *scope, json_t *list, json_t *expression)
{
	const char *name =
		json_array_size(json_object_get(expression, "column_names")) == 1 ? leat_part_name(expression) : NULL;
	json_t *value = json_object_get(expression, "value"), *one;
	double place = json_number_value(json_object_get(value, "value"));
	bool found = false, hidden = false;
	size_t i;

	json_array_foreach(list, i, one)
	{
		if (is(expression, "class", "CONSTANT") && is(one, "class", "STAR"))
			return false;
		if (is(expression, "class", "CONSTANT") && place == (double)i + 1)
			return leat_part_carries(scope, one);
		if (!name || strcasecmp(text_of(one, "alias"), name) != 0)
			continue;
		found |= leat_part_carries(scope, one);
		hidden |= !leat_part_carries(scope, one);
	}
	return !hidden && (found || leat_part_carries(scope, expression));
}

/* ---- what DuckDB says ---- */

static enum leat_status
add_function(struct leat_aggregates *a, const struct leat_chunk *chunk, size_t row, struct leat_err *err)
{
	size_t caps = a->cap, len[2];
	const char *text[2];

	for (int i = 0; i < 2; i++)
		text[i] = leat_vector_text(&chunk->columns[i], row, &len[i]);
	if (LEAT_GROW(a->mem, a->name, a->cap, a->count + 1, SIZE_MAX, "functions", err) != LEAT_OK)
		return LEAT_NOMEM;
	if (caps != a->cap) {
		char **macro = leat_realloc(a->mem, a->macro, a->cap * sizeof(*macro));
		bool *is_one = macro ? leat_realloc(a->mem, a->is, a->cap * sizeof(*is_one)) : NULL;

		a->macro = macro ? macro : a->macro;
		a->is = is_one ? is_one : a->is;
		if (!macro || !is_one)
			return leat_fail_mem(err, a->mem, a->cap * sizeof(*macro), "functions");
	}
	a->name[a->count] = leat_strndup(a->mem, text[0], len[0]);
	a->macro[a->count] = leat_strndup(a->mem, text[1], len[1]);
	a->is[a->count] = len[1] == 0;
	a->count++;
	return a->name[a->count - 1] && a->macro[a->count - 1] ? LEAT_OK
	                                                       : leat_fail_mem(err, a->mem, len[1], "functions");
}

/* Does the definition of a macro call an aggregate? One that cannot be read may. */
static bool
calls_aggregate(const struct leat_aggregates *a, const char *definition)
{
	struct leat_sql_tokens tokens = {.mem = a->mem};
	bool calls = leat_sql_split(&tokens, definition, strlen(definition), NULL) != LEAT_OK;

	for (size_t i = 0; i + 1 < tokens.count && !calls; i++) {
		char name[64];

		if (tokens.token[i].kind != LEAT_SQL_NAME || !leat_sql_is(&tokens, i + 1, "("))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)tokens.token[i].len, tokens.token[i].at);
		calls = leat_part_is_aggregate(a, name);
	}
	leat_free(a->mem, tokens.token);
	return calls;
}

static enum leat_status
read_functions(struct leat_aggregates *a, struct leat_tables *tables, struct leat_err *err)
{
	struct leat_query *query = NULL;
	struct leat_chunk chunk = {0};
	bool more = true;
	enum leat_status status = leat_query_open(&query, tables,
	                                          "SELECT DISTINCT function_name, CASE function_type WHEN 'macro' THEN "
	                                          "coalesce(macro_definition, '?') ELSE '' END FROM duckdb_functions() "
	                                          "WHERE function_type IN ('aggregate', 'macro')",
	                                          err);

	while (status == LEAT_OK && (status = leat_query_next(query, &chunk, err)) == LEAT_OK && chunk.rows)
		for (size_t row = 0; row < chunk.rows && status == LEAT_OK; row++)
			status = add_function(a, &chunk, row, err);
	leat_query_close(query);
	while (status == LEAT_OK && more) { /* macros may use each other */
		more = false;
		for (size_t i = 0; i < a->count; i++)
			if (!a->is[i] && calls_aggregate(a, a->macro[i]))
				more = a->is[i] = true;
	}
	return status;
}

static enum leat_status
read_tree(struct leat_tables *tables, const char *sql, json_t **root, struct leat_mem *mem, struct leat_err *err)
{
	struct leat_query *query = NULL;
	struct leat_chunk chunk = {0};
	struct leat_str ask;
	json_error_t error;
	enum leat_status status;
	size_t len;

	leat_str_init(&ask, mem, SIZE_MAX);
	leat_str_add(&ask, "SELECT json_serialize_sql(");
	leat_sql_quote(&ask, sql, '\'');
	leat_str_add(&ask, ")::VARCHAR");
	status = ask.failed ? leat_fail_mem(err, mem, ask.len, "a query")
	                    : leat_query_open(&query, tables, leat_str_text(&ask), err);
	leat_str_free(&ask);
	if (status == LEAT_OK)
		status = leat_query_next(query, &chunk, err);
	if (status == LEAT_OK && (chunk.rows != 1 || leat_vector_is_null(&chunk.columns[0], 0)))
		status = leat_fail(err, LEAT_INTERNAL, "DuckDB gave no syntax tree of the query");
	if (status == LEAT_OK) {
		const char *text = leat_vector_text(&chunk.columns[0], 0, &len);

		/* Some integers are 2^64 - 1, which jansson has no type for. */
		*root = json_loadb(text, len, JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &error);
		if (!*root)
			status = leat_fail(err, LEAT_INVALID,
			                   "cannot read the syntax tree of the query: %s; is it nested too deep?",
			                   error.text);
	}
	leat_query_close(query);
	return status;
}

static bool
calls_function(json_t *value)
{
	const char *key;
	json_t *part;
	size_t i;

	if (json_is_object(value) && is(value, "class", "FUNCTION"))
		return true;
	json_object_foreach(value, key, part) if (calls_function(part)) return true;
	json_array_foreach(value, i, part) if (calls_function(part)) return true;
	return false;
}

enum leat_status
leat_part_ask(struct leat_aggregates *aggregates, const char *sql, json_t **root, struct leat_err *err)
{
	const struct leat_tables_options options = {.threads = 1, .memory = (size_t)1 << 30};
	struct leat_tables *tables = NULL;
	enum leat_status status = leat_tables_open(&tables, &options, err);

	if (status == LEAT_OK)
		status = read_tree(tables, sql, root, aggregates->mem, err);
	if (status == LEAT_OK && calls_function(*root)) /* the list takes as long as all the rest */
		status = read_functions(aggregates, tables, err);
	leat_tables_close(tables);
	return status;
}

bool
leat_part_is_aggregate(const struct leat_aggregates *aggregates, const char *name)
{
	for (size_t i = 0; i < aggregates->count; i++)
		if (aggregates->is[i] && !strcasecmp(aggregates->name[i], name))
			return true;
	return false;
}

void
leat_part_forget(struct leat_aggregates *aggregates)
{
	for (size_t i = 0; i < aggregates->count; i++) {
		leat_free(aggregates->mem, aggregates->name[i]);
		leat_free(aggregates->mem, aggregates->macro[i]);
	}
	leat_free(aggregates->mem, aggregates->name);
	leat_free(aggregates->mem, aggregates->macro);
	leat_free(aggregates->mem, aggregates->is);
}

void
leat_partition_sql(struct leat_str *sql, const char *column, unsigned partitions)
{
	leat_str_add(sql, "coalesce(CAST('0x' || substr(md5(CAST(");
	leat_sql_quote(sql, column, '"');
	leat_str_addf(sql, " AS VARCHAR)), 1, 8) AS BIGINT) %% %u, 0)", partitions);
}
