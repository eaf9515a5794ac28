/* features_bind.c - the columns of a table that features read, and their types */
#include <stdio.h>
#include <string.h>
#include <strings.h>

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

/* The type of a value, or of what a list holds. */
static bool
find_type(const char *type, struct leat_feature_input *input)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (!strcmp(types[i].name, type)) {
			input->kind = types[i].kind;
			input->can_be_nan = types[i].can_be_nan;
			return true;
		}
	if (is_decimal(type))
		input->kind = LEAT_VALUE_NUMBER;
	return is_decimal(type);
}

bool
leat_input_set_type(struct leat_feature_input *input, const char *type)
{
	size_t len = strlen(type);
	char item[sizeof(input->type)];

	input->kind = LEAT_VALUE_OTHER;
	input->can_be_nan = false;
	if (len >= sizeof(input->type))
		return false;
	strcpy(input->type, type);
	if (len < 2 || strcmp(type + len - 2, "[]") != 0)
		return !len || find_type(type, input);
	memcpy(item, type, len - 2);
	item[len - 2] = '\0';
	if (!find_type(item, input))
		return false;
	input->kind = LEAT_VALUE_LIST;
	return true;
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

/* Names do not differ by case alone. */
static enum leat_status
check_row_name(const struct leat_query *query, struct leat_err *err)
{
	for (size_t i = 0; i < leat_query_columns(query); i++)
		if (!strcasecmp(leat_query_name(query, i), LEAT_ROW))
			return leat_fail(err, LEAT_INVALID,
			                 "the table has a column '%s', a name that features use; rename it in SQL",
			                 leat_query_name(query, i));
	return LEAT_OK;
}

/* Out-of-fold values need folds. */
static enum leat_status
check_folds(const struct leat_features *f, struct leat_err *err)
{
	for (size_t i = 0; i < f->features; i++)
		for (size_t k = 0; k < f->feature[i].calls; k++) {
			const struct leat_feature_call *call = &f->feature[i].call[k];

			if (call->columns[LEAT_ROLE_LABEL] && !call->columns[LEAT_ROLE_KEY])
				return leat_fail(
					err, LEAT_INVALID,
					"feature '%s': '%s' needs key=COLUMN, such as the id of a row, to deal "
					"rows to folds by; only a split by hash has columns for it",
					f->feature[i].name, call->transform->name);
		}
	return LEAT_OK;
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
	if (status == LEAT_OK && f->is_ordered)
		status = check_row_name(query, err);
	if (status == LEAT_OK && fitting)
		status = check_folds(f, err);
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

/* ---- parts ---- */

static bool
names(const struct leat_features *f, const struct leat_feature_call *call, const char *column)
{
	for (size_t i = 0; i < call->columns[LEAT_ROLE_BY]; i++)
		if (!strcmp(f->input[call->column[LEAT_ROLE_BY][i]].name, column))
			return true;
	return false;
}

/* Is a group always in one part? */
static bool
is_whole(const struct leat_features *f, const struct leat_feature_call *call)
{
	for (size_t i = 0; i < f->split.columns; i++)
		if (!names(f, call, f->split.column[i]))
			return false;
	return true;
}

/* In a split by time, earlier rows are in the same part or an earlier one, so training rows read only training rows. */
const struct leat_feature *
leat_features_crossing(const struct leat_features *f, const struct leat_transform **transform)
{
	for (size_t i = 0; i < f->features && f->split.parts && !f->split.part[0].before; i++)
		for (size_t k = 0; k < f->feature[i].calls; k++) {
			const struct leat_feature_call *call = &f->feature[i].call[k];

			*transform = call->transform;
			if (call->columns[LEAT_ROLE_ORDER] && !is_whole(f, call))
				return &f->feature[i];
		}
	return NULL;
}
