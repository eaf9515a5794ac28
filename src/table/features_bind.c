/* features_bind.c - the columns of a table that features read, and their types */
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "table/features.h"

/* ---- types ---- */

static const struct {
	const char *name;
	enum leat_value_kind kind;
	bool can_be_nan;
} types[] = {
	{"BOOLEAN", LEAT_VALUE_WHOLE, false},   {"TINYINT", LEAT_VALUE_WHOLE, false},
	{"SMALLINT", LEAT_VALUE_WHOLE, false},  {"INTEGER", LEAT_VALUE_WHOLE, false},
	{"BIGINT", LEAT_VALUE_WHOLE, false},    {"UTINYINT", LEAT_VALUE_WHOLE, false},
	{"USMALLINT", LEAT_VALUE_WHOLE, false}, {"UINTEGER", LEAT_VALUE_WHOLE, false},
	{"UBIGINT", LEAT_VALUE_NUMBER, false},  {"HUGEINT", LEAT_VALUE_NUMBER, false},
	{"FLOAT", LEAT_VALUE_NUMBER, true},     {"DOUBLE", LEAT_VALUE_NUMBER, true},
	{"VARCHAR", LEAT_VALUE_TEXT, false},    {"DATE", LEAT_VALUE_TIME, false},
	{"TIMESTAMP", LEAT_VALUE_TIME, false},
};

static bool
is_decimal(const char *type)
{
	unsigned width, scale;
	char end, again[32];

	if (sscanf(type, "DECIMAL(%2u,%2u%c", &width, &scale, &end) != 3 || end != ')')
		return false;
	snprintf(again, sizeof(again), "DECIMAL(%u,%u)", width, scale);
	return !strcmp(type, again) && width >= 1 && width <= 38 && scale <= width;
}

bool
leat_input_set_type(struct leat_feature_input *input, const char *type)
{
	input->kind = LEAT_VALUE_OTHER;
	input->can_be_nan = false;
	if (strlen(type) >= sizeof(input->type))
		return false;
	strcpy(input->type, type);
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (!strcmp(types[i].name, type)) {
			input->kind = types[i].kind;
			input->can_be_nan = types[i].can_be_nan;
			return true;
		}
	if (is_decimal(type))
		input->kind = LEAT_VALUE_NUMBER;
	return !*type || is_decimal(type);
}

/* What SQL calls it here. Times of all precisions and zones are TIMESTAMP; types without a name are not cast. */
static void
set_column_type(struct leat_feature_input *input, const struct leat_column_type *type)
{
	if (type->kind == LEAT_COLUMN_TIMESTAMP)
		leat_input_set_type(input, "TIMESTAMP");
	else if (!leat_input_set_type(input, type->name))
		leat_input_set_type(input, "");
}

/* ---- columns ---- */

static enum leat_status
missing_column(const struct leat_query *query, const char *name, struct leat_mem *mem, struct leat_err *err)
{
	size_t count = leat_query_columns(query);
	const char **known = leat_alloc_array(mem, count, sizeof(*known));
	enum leat_status status;

	for (size_t i = 0; known && i < count; i++)
		known[i] = leat_query_name(query, i);
	status = leat_fail_unknown(err, LEAT_INVALID,
	                           &(struct leat_unknown){.what = "column",
	                                                  .name = name,
	                                                  .owner = "the table",
	                                                  .known = known,
	                                                  .count = known ? count : 0});
	leat_free(mem, known);
	return status;
}

static const struct leat_column_type *
find_column(const struct leat_query *query, const char *name)
{
	for (size_t i = 0; i < leat_query_columns(query); i++)
		if (!strcmp(leat_query_name(query, i), name))
			return leat_query_type(query, i);
	return NULL;
}

static enum leat_status
find_inputs(struct leat_features *f, const struct leat_query *query, bool fitting, struct leat_err *err)
{
	for (size_t i = 0; i < f->inputs; i++) {
		struct leat_feature_input *input = &f->input[i];
		const struct leat_column_type *type = find_column(query, input->name);

		input->absent = type == NULL;
		if (!type && (fitting || input->is_needed))
			return missing_column(query, input->name, f->mem, err);
		if (type && fitting)
			set_column_type(input, type);
	}
	for (size_t i = 0; i < f->split.columns && fitting; i++)
		if (!find_column(query, f->split.column[i]))
			return missing_column(query, f->split.column[i], f->mem, err);
	return LEAT_OK;
}

enum leat_status
leat_features_find_columns(struct leat_features *f, struct leat_tables *tables, const char *table, bool fitting,
                           struct leat_err *err)
{
	struct leat_query *query = NULL;
	struct leat_str sql;
	enum leat_status status;

	leat_str_init(&sql, f->mem, SIZE_MAX / 4);
	leat_str_addf(&sql, "SELECT * FROM %s LIMIT 0", table);
	status = sql.failed ? leat_fail_mem(err, f->mem, sql.len, "a query")
	                    : leat_query_open(&query, tables, leat_str_text(&sql), err);
	if (status == LEAT_OK)
		status = find_inputs(f, query, fitting, err);
	leat_query_close(query);
	leat_str_free(&sql);
	return status;
}

enum leat_status
leat_features_bind(struct leat_features *f, struct leat_tables *tables, const char *table, struct leat_err *err)
{
	return leat_features_find_columns(f, tables, table, true, err);
}
