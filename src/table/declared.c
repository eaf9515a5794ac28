/* declared.c - declared columns: names and types; see value.h */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/mem.h"
#include "base/names.h"
#include "base/utf8.h"
#include "table/value.h"

static const struct {
	const char *name;
	enum leat_column_kind kind;
} types[] = {
	{"bool", LEAT_COLUMN_BOOL},     {"int8", LEAT_COLUMN_INT8},           {"int16", LEAT_COLUMN_INT16},
	{"int32", LEAT_COLUMN_INT32},   {"int64", LEAT_COLUMN_INT64},         {"uint8", LEAT_COLUMN_UINT8},
	{"uint16", LEAT_COLUMN_UINT16}, {"uint32", LEAT_COLUMN_UINT32},       {"uint64", LEAT_COLUMN_UINT64},
	{"float", LEAT_COLUMN_FLOAT},   {"double", LEAT_COLUMN_DOUBLE},       {"text", LEAT_COLUMN_TEXT},
	{"date", LEAT_COLUMN_DATE},     {"timestamp", LEAT_COLUMN_TIMESTAMP},
};

enum { TYPES = sizeof(types) / sizeof(*types) };

const char *
leat_declared_type(const struct leat_declared *column, char buffer[32])
{
	if (column->skip)
		return "skip";
	if (column->kind == LEAT_COLUMN_DECIMAL) {
		snprintf(buffer, 32, "decimal(%u,%u)", column->width, column->scale);
		return buffer;
	}
	for (size_t i = 0; i < TYPES; i++)
		if (types[i].kind == column->kind)
			return types[i].name;
	return "";
}

/* decimal(10,2) or decimal(10, 2) */
static bool
read_decimal(const char *text, struct leat_declared *column)
{
	int used = 0;

	if (sscanf(text, "decimal(%2u,%2u)%n", &column->width, &column->scale, &used) != 2 || text[used] || !used)
		return false;
	column->kind = LEAT_COLUMN_DECIMAL;
	return column->width >= 1 && column->width <= 38 && column->scale <= column->width;
}

static enum leat_status
read_type(struct leat_declared *column, const char *type, struct leat_err *err)
{
	const char *known[TYPES + 2];

	for (size_t i = 0; i < TYPES; i++) {
		known[i] = types[i].name;
		if (!strcmp(type, types[i].name)) {
			column->kind = types[i].kind;
			return LEAT_OK;
		}
	}
	known[TYPES] = "decimal(10,2)";
	known[TYPES + 1] = "skip";
	column->skip = !strcmp(type, "skip");
	column->kind = LEAT_COLUMN_TEXT;
	if (column->skip || read_decimal(type, column))
		return LEAT_OK;
	if (!strncmp(type, "decimal", 7))
		return leat_fail(err, LEAT_INVALID,
		                 "column '%s': write decimal(WIDTH,SCALE), with up to 38 digits, such as decimal(10,2)",
		                 column->name);
	leat_fail_unknown(err, LEAT_INVALID,
	                  &(struct leat_unknown){.what = "type", .name = type, .known = known, .count = TYPES + 2});
	leat_err_in(err, "column '%s'", column->name);
	return LEAT_INVALID;
}

static enum leat_status
check_name(const struct leat_declared_columns *columns, const char *name, struct leat_err *err)
{
	if (!*name || strlen(name) > LEAT_MAX_COLUMN_NAME)
		return leat_fail(err, LEAT_INVALID, "the name of a column must have 1 to %d bytes",
		                 LEAT_MAX_COLUMN_NAME);
	for (const char *c = name; *c; c += leat_utf8_length(c))
		if (leat_utf8_length(c) == 0)
			return leat_fail(err, LEAT_INVALID, "the name of column '%s' is not UTF-8", name);
	for (size_t i = 0; i < columns->count; i++)
		if (!strcasecmp(columns->column[i].name, name)) /* SQL names are equal in any case */
			return leat_fail(err, LEAT_INVALID, "column '%s' is there twice", name);
	return LEAT_OK;
}

enum leat_status
leat_declared_add(struct leat_declared_columns *columns, const char *name, const char *type, struct leat_err *err)
{
	enum leat_status status = check_name(columns, name, err);
	struct leat_declared *column;

	if (status == LEAT_OK)
		status = LEAT_GROW(columns->mem, columns->column, columns->cap, columns->count + 1, LEAT_MAX_COLUMNS,
		                   "columns", err);
	if (status != LEAT_OK)
		return status;
	column = &columns->column[columns->count];
	*column = (struct leat_declared){.name = leat_strdup(columns->mem, name)};
	if (!column->name)
		return leat_fail_mem(err, columns->mem, strlen(name), "columns");
	columns->count++;
	return read_type(column, type, err);
}

void
leat_declared_free(struct leat_declared_columns *columns)
{
	for (size_t i = 0; i < columns->count; i++)
		leat_free(columns->mem, columns->column[i].name);
	if (columns->mem)
		leat_free(columns->mem, columns->column);
	columns->column = NULL;
	columns->count = columns->cap = 0;
}

/* ---- as text ---- */

/* A name as it is, or in quotes. */
static const char *
take_name(const char *text, struct leat_str *name)
{
	if (*text != '"') {
		size_t len = strcspn(text, " \t\n,\"");

		leat_str_addn(name, text, len);
		return text + len;
	}
	for (text++; *text; text++) {
		if (*text == '"' && *++text != '"')
			return text;
		leat_str_addn(name, text, 1);
	}
	return text;
}

/* Up to the comma, but not one in decimal(10,2), without blanks. */
static const char *
take_type(const char *text, struct leat_str *type)
{
	for (int depth = 0; *text && (*text != ',' || depth > 0); text++) {
		depth += (*text == '(') - (*text == ')');
		if (!strchr(" \t\n", *text))
			leat_str_addn(type, text, 1);
	}
	return text;
}

static enum leat_status
take_column(struct leat_declared_columns *columns, const char **text, struct leat_err *err)
{
	struct leat_str name, type;
	enum leat_status status = LEAT_OK;

	leat_str_init(&name, columns->mem, 1 << 16);
	leat_str_init(&type, columns->mem, 1 << 16);
	*text = take_name(*text + strspn(*text, " \t\n"), &name);
	*text = take_type(*text + strspn(*text, " \t\n"), &type);
	*text += **text == ',';
	if (name.failed || type.failed)
		status = leat_fail_mem(err, columns->mem, 1 << 16, "columns");
	else if (type.len == 0)
		status = leat_fail(err, LEAT_INVALID,
		                   "column '%s' has no type; write columns as \"user int64, ts timestamp\"",
		                   leat_str_text(&name));
	else
		status = leat_declared_add(columns, leat_str_text(&name), leat_str_text(&type), err);
	leat_str_free(&name);
	leat_str_free(&type);
	return status;
}

enum leat_status
leat_declared_read(struct leat_declared_columns *columns, const char *text, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	while (status == LEAT_OK && text[strspn(text, " \t\n")])
		status = take_column(columns, &text, err);
	if (status == LEAT_OK && columns->count == 0)
		status = leat_fail(err, LEAT_INVALID,
		                   "there are no columns; write them as \"user int64, ts timestamp\"");
	return status;
}

void
leat_declared_print(const struct leat_declared_columns *columns, struct leat_str *text)
{
	char buffer[32];

	for (size_t i = 0; i < columns->count; i++) {
		const struct leat_declared *column = &columns->column[i];

		leat_str_add(text, i ? ", " : "");
		if (strpbrk(column->name, " \t\n,\""))
			leat_sql_quote(text, column->name, '"');
		else
			leat_str_add(text, column->name);
		leat_str_addf(text, " %s", leat_declared_type(column, buffer));
	}
}
