/* slices_read.c - the values of slice variables: ranges, lists, files, lines, rows */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "format/csv.h"
#include "step/project_read.h"
#include "step/sources.h"

/* Values are kept in memory, those of all variables of a file. */
enum { MAX_VALUES = 1000000, MAX_ALL_VALUES = 4000000, MAX_FILE = 64 << 20, MAX_NAME = 255 };

/* The variables of a step, while they are read. */
struct axes {
	struct leat_reading *r;
	const char *step;
	struct leat_variable variable[LEAT_MAX_VARIABLES];
	size_t length[LEAT_MAX_VARIABLES];
	size_t variables, axes;
};

static enum leat_status
add_variable(struct axes *a, const struct leat_yaml *at, const char *name, const char **value, size_t values,
             bool is_file)
{
	for (size_t i = 0; i < a->variables; i++)
		if (!strcmp(a->variable[i].name, name))
			return leat_yaml_fail(&a->r->file, at, "slice variable '%s' is there twice", name);
	if (a->variables == LEAT_MAX_VARIABLES)
		return leat_yaml_fail(&a->r->file, at, "step '%s' has more than %d slice variables", a->step,
		                      LEAT_MAX_VARIABLES);
	a->variable[a->variables++] = (struct leat_variable){name, value, values, a->axes, is_file};
	return LEAT_OK;
}

/* Room for the values of a variable. */
static enum leat_status
make_values(struct axes *a, const struct leat_yaml *at, size_t count, const char ***value)
{
	if (count == 0)
		return leat_yaml_fail(&a->r->file, at, "there are no values here, so step '%s' would never run",
		                      a->step);
	if (count > MAX_VALUES || a->r->values + count > MAX_ALL_VALUES)
		return leat_yaml_fail(&a->r->file, at,
		                      "too many values: a variable has at most %d, all of a file together %d",
		                      MAX_VALUES, MAX_ALL_VALUES);
	a->r->values += count;
	*value = leat_text_array(a->r->text, count, sizeof(**value));
	return *value ? LEAT_OK : a->r->err->status;
}

/* ---- 1..18, 0..100..10, 01..18 ---- */

struct range {
	long long from, to, step;
	int width; /* digits, with zeros in front; 0: as many as it takes */
};

static bool
parse_number(const char **text, long long *number, int *width)
{
	const char *digits = *text + (**text == '-');
	size_t len = strspn(digits, "0123456789");

	if (!len || len > 15)
		return false;
	*number = strtoll(*text, NULL, 10);
	if (*digits == '0' && len > 1 && (int)len > *width)
		*width = (int)len;
	*text = digits + len;
	return true;
}

static bool
skip_dots(const char **text)
{
	bool found = !strncmp(*text, "..", 2);

	*text += found ? 2 : 0;
	return found;
}

static bool
parse_range(const char *text, struct range *range)
{
	int ignored = 0;

	*range = (struct range){.step = 1};
	if (!parse_number(&text, &range->from, &range->width) || !skip_dots(&text) ||
	    !parse_number(&text, &range->to, &range->width))
		return false;
	if (skip_dots(&text) && !parse_number(&text, &range->step, &ignored))
		return false;
	return !*text;
}

static enum leat_status
fill_range(struct axes *a, const struct range *range, const char **value, size_t count)
{
	char text[32];

	for (size_t i = 0; i < count; i++) {
		int len =
			snprintf(text, sizeof(text), "%0*lld", range->width, range->from + (long long)i * range->step);

		value[i] = leat_text_keep(a->r->text, text, (size_t)len);
		if (!value[i])
			return a->r->err->status;
	}
	return LEAT_OK;
}

static enum leat_status
read_range(struct axes *a, const struct leat_yaml *key)
{
	enum leat_status status;
	struct range range;
	const char **value;
	size_t count = 0;

	if (!parse_range(key->value->text, &range))
		return leat_yaml_fail(
			&a->r->file, leat_yaml_is_empty(key->value) ? key : key->value,
			"the values of '%s' must be a range such as 1..18, a list such as [a, b], or one of "
			"{glob: PATTERN}, {lines: FILE}, {rows: FILE}",
			key->text);
	if (range.step && (range.to - range.from) / range.step >= 0)
		count = (size_t)((range.to - range.from) / range.step) + 1;
	if ((range.to > range.from && range.step < 0) || (range.to < range.from && range.step > 0))
		count = 0;
	if (count == 0)
		return leat_yaml_fail(
			&a->r->file, key->value,
			"the range %s has no values; a range that counts down has a negative step, such as "
			"5..1..-1",
			key->value->text);
	status = make_values(a, key->value, count, &value);
	if (status == LEAT_OK)
		status = fill_range(a, &range, value, count);
	a->length[a->axes] = count;
	return status == LEAT_OK ? add_variable(a, key, key->text, value, count, false) : status;
}

/* ---- [early, late] ---- */

static enum leat_status
read_list(struct axes *a, const struct leat_yaml *key)
{
	const char **value;
	size_t n = 0;
	enum leat_status status = make_values(a, key->value, key->value->count, &value);

	if (status != LEAT_OK)
		return status;
	for (const struct leat_yaml *i = key->value->first; i; i = i->next) {
		if (i->kind != LEAT_YAML_TEXT || !*i->text)
			return leat_yaml_fail(&a->r->file, i, "a value of '%s' must be a text that is not empty",
			                      key->text);
		value[n++] = i->text;
	}
	a->length[a->axes] = n;
	return add_variable(a, key, key->text, value, n, false);
}

/* ---- files ---- */

/* An error of a file, told with the place in leat.yaml where it is named. */
static enum leat_status
fail_in(struct axes *a, const struct leat_yaml *at, const struct leat_err *why)
{
	if (why->status == LEAT_NOMEM)
		return leat_fail_as(a->r->err, why);
	return leat_yaml_fail(&a->r->file, at, "%s", why->text);
}

/* Local files, or URIs of remote ones. */
static enum leat_status
list_paths(struct axes *a, const struct leat_yaml *pattern, struct leat_paths *paths, struct leat_err *why)
{
	struct leat_reading *r = a->r;
	const struct leat_raw_source source = {.name = a->step, .pattern = pattern->text};
	const char *fault;
	char text[200];

	if (!leat_is_remote(pattern->text))
		return leat_glob_paths(r->project->folder, pattern->text, NULL, r->mem, paths, why);
	fault = leat_remote_fault(pattern->text, text);
	if (fault)
		return leat_yaml_fail(&r->file, pattern, "'%s' %s", pattern->text, fault);
	if (leat_remote_need(r) != LEAT_OK)
		return r->err->status;
	return leat_remote_paths(r->project, &source, pattern->text, paths, why);
}

static enum leat_status
read_glob(struct axes *a, const struct leat_yaml *key, const struct leat_yaml *pattern)
{
	struct leat_paths paths = {0};
	enum leat_status status;
	struct leat_err why;
	const char **value;

	leat_err_clear(&why);
	status = list_paths(a, pattern, &paths, &why);
	if (status != LEAT_OK)
		status = why.status == LEAT_OK ? status : fail_in(a, pattern, &why);
	else if (!paths.count)
		status = leat_yaml_fail(&a->r->file, pattern, "no file matches '%s', so step '%s' would never run",
		                        pattern->text, a->step);
	leat_paths_sort(&paths, a->r->mem);
	if (status == LEAT_OK)
		status = make_values(a, pattern, paths.count, &value);
	for (size_t i = 0; i < paths.count && status == LEAT_OK; i++) {
		value[i] = leat_text_keep(a->r->text, paths.path[i], strlen(paths.path[i]));
		status = value[i] ? LEAT_OK : a->r->err->status;
	}
	if (status == LEAT_OK)
		status = add_variable(a, key, key->text, value, paths.count, true);
	a->length[a->axes] = paths.count;
	leat_paths_free(&paths, a->r->mem);
	return status;
}

static enum leat_status
load(struct axes *a, const struct leat_yaml *name, char **text, size_t *len)
{
	char path[PATH_MAX];
	enum leat_status status;
	struct leat_err why;
	int n = *name->text == '/' ? snprintf(path, sizeof(path), "%s", name->text)
	                           : snprintf(path, sizeof(path), "%s/%s", a->r->project->folder, name->text);

	leat_err_clear(&why);
	if (n < 0 || (size_t)n >= sizeof(path))
		return leat_yaml_fail(&a->r->file, name, "the path is too long");
	status = leat_project_load(a->r->mem, path, MAX_FILE, text, len, &why);
	return status == LEAT_OK ? LEAT_OK : fail_in(a, name, &why);
}

/* The next line that is not empty, without its end; NULL: none. */
static char *
next_line(char **text, char *end)
{
	while (*text < end) {
		char *line = *text, *stop = memchr(line, '\n', (size_t)(end - line));

		*text = stop ? stop + 1 : end;
		stop = stop ? stop : end;
		if (stop > line && stop[-1] == '\r')
			stop--;
		*stop = '\0';
		if (*line)
			return line;
	}
	return NULL;
}

static enum leat_status
keep_lines(struct axes *a, const struct leat_yaml *name, char *text, size_t len, const char ***value, size_t *count)
{
	enum leat_status status;
	char *at = text, *line;
	size_t n = 0;

	for (const char *c = text; c < text + len; n++) /* at least as many as there are lines with text */
		c += strcspn(c, "\n") + 1;
	status = make_values(a, name, n, value);
	*count = 0;
	while (status == LEAT_OK && (line = next_line(&at, text + len))) {
		(*value)[*count] = leat_text_keep(a->r->text, line, strlen(line));
		status = (*value)[(*count)++] ? LEAT_OK : a->r->err->status;
	}
	if (status == LEAT_OK && !*count)
		status = leat_yaml_fail(&a->r->file, name, "'%s' has no lines, so step '%s' would never run",
		                        name->text, a->step);
	return status;
}

static enum leat_status
read_lines(struct axes *a, const struct leat_yaml *key, const struct leat_yaml *name)
{
	char *text = NULL;
	const char **value;
	size_t len, count;
	enum leat_status status = load(a, name, &text, &len);

	if (status == LEAT_OK && memchr(text, '\0', len))
		status = leat_yaml_fail(&a->r->file, name, "'%s' is not a text file", name->text);
	if (status == LEAT_OK)
		status = keep_lines(a, name, text, len, &value, &count);
	leat_free(a->r->mem, text);
	if (status != LEAT_OK)
		return status;
	a->length[a->axes] = count;
	return add_variable(a, key, key->text, value, count, false);
}

/* ---- rows of a table ---- */

struct rows {
	struct axes *a;
	const struct leat_yaml *name;
	const char **value[LEAT_MAX_VARIABLES];
	const char *column[LEAT_MAX_VARIABLES];
	size_t columns, count;
};

static enum leat_status
read_header(struct rows *rows, const struct leat_csv_row *row)
{
	const struct leat_yaml_file *file = &rows->a->r->file;

	if (row->cells > LEAT_MAX_VARIABLES)
		return leat_yaml_fail(file, rows->name, "'%s' has %zu columns; at most %d can be slice variables",
		                      rows->name->text, row->cells, LEAT_MAX_VARIABLES);
	for (; rows->columns < row->cells; rows->columns++) {
		const char *cell = row->cell[rows->columns];

		if (!leat_is_shell_name(cell) || leat_is_given_name(cell, strlen(cell)))
			return leat_yaml_fail(file, rows->name,
			                      "column '%s' of '%s' cannot be a slice variable; its name must be a free "
			                      "shell name",
			                      cell, rows->name->text);
		rows->column[rows->columns] = leat_text_keep(rows->a->r->text, cell, strlen(cell));
		if (!rows->column[rows->columns])
			return rows->a->r->err->status;
	}
	return LEAT_OK;
}

static enum leat_status
read_row(struct rows *rows, const struct leat_csv_row *row)
{
	const struct leat_yaml_file *file = &rows->a->r->file;

	if (row->cells != rows->columns)
		return leat_yaml_fail(file, rows->name, "line %llu of '%s' has %zu cells, but there are %zu columns",
		                      (unsigned long long)row->line, rows->name->text, row->cells, rows->columns);
	for (size_t i = 0; i < row->cells; i++) {
		if (!*row->cell[i])
			return leat_yaml_fail(file, rows->name, "line %llu of '%s' has no value for '%s'",
			                      (unsigned long long)row->line, rows->name->text, rows->column[i]);
		rows->value[i][rows->count] = leat_text_keep(rows->a->r->text, row->cell[i], strlen(row->cell[i]));
		if (!rows->value[i][rows->count])
			return rows->a->r->err->status;
	}
	rows->count++;
	return LEAT_OK;
}

static size_t
count_lines(const char *text, size_t len)
{
	size_t n = 1;

	for (size_t i = 0; i < len; i++)
		n += text[i] == '\n';
	return n;
}

static enum leat_status
read_table(struct rows *rows, char *text, size_t len)
{
	size_t most = count_lines(text, len); /* before cells end in NUL */
	enum leat_status status = LEAT_OK, next;
	struct leat_csv_row row;
	struct leat_csv csv;
	struct leat_err why;

	leat_err_clear(&why);
	leat_csv_begin(&csv, text, len);
	while (status == LEAT_OK && (next = leat_csv_next(&csv, &row, &why)) != LEAT_END) {
		if (next != LEAT_OK)
			return leat_yaml_fail(&rows->a->r->file, rows->name, "'%s': %s", rows->name->text, why.text);
		if (rows->columns) {
			status = read_row(rows, &row);
			continue;
		}
		status = read_header(rows, &row);
		for (size_t i = 0; i < rows->columns && status == LEAT_OK; i++)
			status = make_values(rows->a, rows->name, most, &rows->value[i]);
	}
	if (status == LEAT_OK && !rows->count)
		status = leat_yaml_fail(&rows->a->r->file, rows->name, "'%s' has no rows, so step '%s' would never run",
		                        rows->name->text, rows->a->step);
	return status;
}

static enum leat_status
read_rows(struct axes *a, const struct leat_yaml *key, const struct leat_yaml *name)
{
	struct rows rows = {.a = a, .name = name};
	char *text = NULL;
	size_t len;
	enum leat_status status = load(a, name, &text, &len);

	if (status == LEAT_OK)
		status = read_table(&rows, text, len);
	leat_free(a->r->mem, text);
	a->length[a->axes] = rows.count;
	for (size_t i = 0; i < rows.columns && status == LEAT_OK; i++)
		status = add_variable(a, key, rows.column[i], rows.value[i], rows.count, false);
	return status;
}

/* ---- {glob: ...}, {lines: ...}, {rows: ...} ---- */

static enum leat_status
read_files(struct axes *a, const struct leat_yaml *key)
{
	static const char *const names[] = {"glob", "lines", "rows"};
	static enum leat_status (*const read[])(struct axes *, const struct leat_yaml *,
	                                        const struct leat_yaml *) = {read_glob, read_lines, read_rows};
	const struct leat_yaml *how = key->value->first;
	char text[LEAT_UNKNOWN_TEXT];

	if (key->value->count != 1)
		return leat_yaml_fail(&a->r->file, key->value, "'%s' must have one key here: glob, lines or rows",
		                      key->text);
	for (size_t i = 0; i < 3; i++) {
		if (strcmp(how->text, names[i]))
			continue;
		if (how->value->kind != LEAT_YAML_TEXT || !*how->value->text)
			return leat_yaml_fail(&a->r->file, how, "'%s' must be a %s", how->text, i ? "file" : "pattern");
		if (!a->r->files)
			return leat_yaml_fail(&a->r->file, how, "there is no folder to look for files in");
		return read[i](a, key, how->value);
	}
	return leat_yaml_fail(&a->r->file, how, "%s",
	                      leat_unknown_text(&(struct leat_unknown){.what = "key",
	                                                               .name = how->text,
	                                                               .owner = "a slice variable",
	                                                               .known = names,
	                                                               .count = 3},
	                                        text));
}

/* ---- no value twice ---- */

static int
compare_values(const void *x, const void *y, void *arg)
{
	const struct axes *a = arg;
	size_t i = *(const size_t *)x, k = *(const size_t *)y;

	for (size_t v = 0; v < a->variables; v++)
		if (a->variable[v].axis == a->axes) {
			int order = strcmp(a->variable[v].value[i], a->variable[v].value[k]);

			if (order)
				return order;
		}
	return 0;
}

/* Two slices with the same values would be the same action, and have the same name. */
static enum leat_status
check_distinct(struct axes *a, const struct leat_yaml *key)
{
	size_t count = a->length[a->axes], *index = leat_alloc_array(a->r->mem, count, sizeof(*index));
	enum leat_status status = LEAT_OK;

	if (!index)
		return leat_fail_mem(a->r->err, a->r->mem, count * sizeof(*index), "slices");
	for (size_t i = 0; i < count; i++)
		index[i] = i;
	qsort_r(index, count, sizeof(*index), compare_values, a);
	for (size_t i = 1; i < count && status == LEAT_OK; i++)
		if (!compare_values(&index[i - 1], &index[i], a))
			status = leat_yaml_fail(&a->r->file, key, "the values of '%s' contain '%s' twice", key->text,
			                        a->variable[a->variables - 1].value[index[i]]);
	leat_free(a->r->mem, index);
	return status;
}

static enum leat_status
read_variable(struct axes *a, const struct leat_yaml *key)
{
	enum leat_status status = leat_name_check(a->r, key, "a slice variable");

	if (status == LEAT_OK && a->variables == LEAT_MAX_VARIABLES)
		status = leat_yaml_fail(&a->r->file, key, "step '%s' has more than %d slice variables", a->step,
		                        LEAT_MAX_VARIABLES);
	if (status != LEAT_OK)
		return status;
	if (key->value->kind == LEAT_YAML_TEXT)
		status = read_range(a, key);
	else
		status = key->value->kind == LEAT_YAML_LIST ? read_list(a, key) : read_files(a, key);
	if (status == LEAT_OK && key->value->kind != LEAT_YAML_TEXT)
		status = check_distinct(a, key);
	a->axes++;
	return status;
}

/* ---- together ---- */

/* In names of entries, or if it is the first character. */
static bool
is_escaped(char c)
{
	return (unsigned char)c < 0x20 || c == '/' || c == ',' || c == '%' || c == '.' || c == 0x7f;
}

/* Bytes of the longest name that an entry of a folder gets. */
static size_t
longest_entry(const struct axes *a)
{
	size_t all = a->variables; /* commas */

	for (size_t v = 0; v < a->variables; v++) {
		size_t longest = 0;

		for (size_t i = 0; i < a->variable[v].values; i++) {
			const char *value = a->variable[v].value[i];
			size_t len = strlen(value);

			for (const char *c = value; *c; c++)
				len += is_escaped(*c) ? 2 : 0;
			longest = len > longest ? len : longest;
		}
		all += longest;
	}
	return all;
}

static enum leat_status
finish(struct axes *a, const struct leat_yaml *map, struct leat_slices *slices)
{
	size_t count = 1, bytes = a->variables * sizeof(*a->variable);

	for (size_t i = 0; i < a->axes; i++)
		if (__builtin_mul_overflow(count, a->length[i], &count) || count > LEAT_MAX_SLICES)
			return leat_yaml_fail(&a->r->file, map, "step '%s' has more than %d slices", a->step,
			                      LEAT_MAX_SLICES);
	if (longest_entry(a) + 32 > MAX_NAME)
		return leat_yaml_fail(&a->r->file, map,
		                      "the values of a slice are too long for a file name; use shorter ones, such as "
		                      "numbers");
	slices->variable = leat_text_alloc(a->r->text, bytes);
	slices->length = leat_text_array(a->r->text, a->axes, sizeof(*slices->length));
	if (!slices->variable || !slices->length)
		return a->r->err->status;
	memcpy(slices->variable, a->variable, bytes);
	memcpy(slices->length, a->length, a->axes * sizeof(*slices->length));
	slices->variables = a->variables;
	slices->axes = a->axes;
	slices->count = count;
	return LEAT_OK;
}

enum leat_status
leat_slices_read(struct leat_reading *r, const struct leat_yaml *value, const char *step, struct leat_slices *slices)
{
	struct axes a = {.r = r, .step = step};
	enum leat_status status = LEAT_OK;

	if (!value->count)
		return leat_yaml_fail(&r->file, value, "'slices' of step '%s' names no variable", step);
	for (const struct leat_yaml *k = value->first; k && status == LEAT_OK; k = k->next)
		status = read_variable(&a, k);
	return status == LEAT_OK ? finish(&a, value, slices) : status;
}

enum leat_status
leat_slices_of_files(struct leat_reading *r, const struct leat_yaml *pattern, const char *source,
                     struct leat_slices *slices)
{
	struct leat_yaml variable = *pattern;
	struct axes a = {.r = r, .step = source};
	enum leat_status status;

	if (!r->files)
		return leat_yaml_fail(&r->file, pattern, "there is no folder to look for files in");
	variable.text = "file";
	status = read_glob(&a, &variable, pattern);
	a.axes++;
	return status == LEAT_OK ? finish(&a, pattern, slices) : status;
}
