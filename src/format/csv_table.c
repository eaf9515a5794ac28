/* csv_table.c - rows of a CSV file that lists samples
 *
 * The file is read twice, so that memory is needed for the values alone, and is known before it is allocated. */
#include "format/csv_table.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/names.h"

struct parser {
	struct leat_csv_table *table;
	const struct leat_csv_wish *wish;
	struct leat_csv_stream stream;
	struct leat_csv_row row;
	size_t cells;                             /* in the first row */
	bool has_header;                          /* the first row */
	size_t path;                              /* its column */
	size_t place[LEAT_MAX_FIELDS];            /* cell number of each column */
	size_t text_len[LEAT_MAX_FIELDS];         /* bytes of all its cells */
	enum leat_csv_type type[LEAT_MAX_FIELDS]; /* that all its cells so far can have */
	bool filling;                             /* this is the second time */
	size_t rows;                              /* so far */
	const char **name;                        /* file names of this piece */
	uint64_t *name_line;                      /* where they are */
	size_t names, names_cap, lines_cap;
	locale_t c; /* the C locale, for decimal points */
	struct leat_err *err;
};

size_t
leat_csv_value_size(enum leat_csv_type type)
{
	return type == LEAT_CSV_FLOAT ? sizeof(float) : sizeof(int64_t);
}

void
leat_csv_table_free(struct leat_csv_table *table)
{
	if (!table->mem)
		return;
	for (size_t i = 0; i < table->columns; i++) {
		leat_free(table->mem, table->column[i].values);
		leat_str_free(&table->column[i].text);
	}
	leat_free(table->mem, table->line);
	*table = (struct leat_csv_table){0};
}

/* ---- the first row ---- */

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* In place; cells are ours to modify. */
static const char *
trim(const char *cell)
{
	size_t len;

	while (is_blank(*cell))
		cell++;
	len = strlen(cell);
	while (len && is_blank(cell[len - 1]))
		len--;
	if (cell[len])
		((char *)cell)[len] = '\0';
	return cell;
}

static enum leat_status
fail_column(const struct parser *p, const char *name)
{
	return leat_fail_unknown(
		p->err, LEAT_DATA,
		&(struct leat_unknown){.what = "column", .name = name, .known = p->row.cell, .count = p->cells});
}

/* The column called `name`; p->cells: not found. */
static size_t
find_column(const struct parser *p, const char *name)
{
	size_t i = 0;

	while (i < p->cells && strcmp(p->row.cell[i], name) != 0)
		i++;
	return i;
}

static enum leat_status
take_column(struct parser *p, size_t cell, const char *name)
{
	struct leat_csv_column *column = &p->table->column[p->table->columns];

	if (p->table->columns == LEAT_MAX_FIELDS - 1)
		return leat_fail(p->err, LEAT_DATA, "there are more than %d columns; choose some with columns=[...]",
		                 LEAT_MAX_FIELDS - 1);
	if (!*name || strlen(name) > LEAT_MAX_NAME)
		return leat_fail(p->err, LEAT_DATA,
		                 "column names in the first row must have 1 to %d characters; skip column %zu with "
		                 "columns=[...]",
		                 LEAT_MAX_NAME, cell + 1);
	strcpy(column->name, name);
	leat_str_init(&column->text, p->table->mem, SIZE_MAX / 4);
	p->place[p->table->columns++] = cell;
	return LEAT_OK;
}

static enum leat_status
take_type(struct leat_csv_column *column, const char *type, struct leat_err *err)
{
	static const char *const names[] = {"auto", "int64", "float", "bytes"};

	for (int i = 0; i < 4; i++) {
		if (strcmp(type, names[i]) == 0) {
			column->type = (enum leat_csv_type)i;
			return LEAT_OK;
		}
	}
	leat_fail_unknown(err, LEAT_INVALID,
	                  &(struct leat_unknown){.what = "type", .name = type, .known = names, .count = 4});
	leat_err_in(err, "column '%s'", column->name);
	return LEAT_INVALID;
}

static enum leat_status
choose_columns(struct parser *p)
{
	const struct leat_strings *columns = &p->wish->columns;
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < p->cells; i++)
		p->row.cell[i] = trim(p->row.cell[i]);
	for (size_t i = 0; i < p->cells; i++)
		if (*p->row.cell[i] && find_column(p, p->row.cell[i]) != i)
			return leat_fail(p->err, LEAT_DATA, "there are two columns '%s'", p->row.cell[i]);
	p->path = find_column(p, p->wish->path);
	if (p->path == p->cells)
		return fail_column(p, p->wish->path);
	for (size_t i = 0; i < columns->count && status == LEAT_OK; i++) {
		size_t cell = find_column(p, columns->value[i]);

		status = cell < p->cells ? take_column(p, cell, p->row.cell[cell]) : fail_column(p, columns->value[i]);
		for (size_t k = 0; k < i && status == LEAT_OK; k++)
			if (p->place[k] == cell)
				status = leat_fail(p->err, LEAT_INVALID, "column '%s' is listed twice",
				                   columns->value[i]);
	}
	for (size_t i = 0; columns->count == 0 && i < p->cells && status == LEAT_OK; i++)
		if (i != p->path)
			status = take_column(p, i, p->row.cell[i]);
	return status;
}

/* The first row holds values: columns are identified by position. */
static enum leat_status
choose_columns_in_order(struct parser *p)
{
	const struct leat_strings *columns = &p->wish->columns;
	enum leat_status status = LEAT_OK;

	if (p->cells < 1 + columns->count)
		return leat_fail(p->err, LEAT_DATA, "line %llu has %zu cell%s, expected %zu",
		                 (unsigned long long)p->row.line, p->cells, leat_plural(p->cells), 1 + columns->count);
	p->path = 0;
	for (size_t i = 0; i < columns->count && status == LEAT_OK; i++)
		status = take_column(p, 1 + i, columns->value[i]);
	return status;
}

static enum leat_status
take_header(struct parser *p)
{
	const struct leat_strings *types = &p->wish->types;
	struct leat_csv_table *table = p->table;
	enum leat_status status;

	p->cells = p->row.cells;
	p->has_header = !p->wish->is_header || p->wish->is_header(&p->row);
	status = p->has_header ? choose_columns(p) : choose_columns_in_order(p);
	if (status == LEAT_OK && types->count && types->count != table->columns)
		return leat_fail(p->err, LEAT_INVALID, "there are %zu types for %zu columns", types->count,
		                 table->columns);
	for (size_t i = 0; i < types->count && status == LEAT_OK; i++)
		status = take_type(&table->column[i], types->value[i], p->err);
	for (size_t i = 0; i < table->columns; i++)
		p->type[i] = table->column[i].type == LEAT_CSV_AUTO ? LEAT_CSV_INT64 : table->column[i].type;
	return status;
}

/* ---- types and values ---- */

/* Reads an integer with optional blanks around it. *too_large: it does not fit int64. */
static bool
read_int(const char *cell, int64_t *value, bool *too_large)
{
	bool minus;
	const char *begin;

	*too_large = false;
	while (is_blank(*cell))
		cell++;
	minus = *cell == '-';
	cell += *cell == '-' || *cell == '+';
	begin = cell;
	for (*value = 0; *cell >= '0' && *cell <= '9'; cell++) {
		int digit = *cell - '0';

		*too_large |= __builtin_mul_overflow(*value, 10, value) ||
		              __builtin_add_overflow(*value, minus ? -digit : digit, value);
	}
	if (cell == begin)
		return false;
	while (is_blank(*cell))
		cell++;
	return !*cell && !*too_large;
}

bool
leat_csv_read_int(const char *cell, int64_t *value)
{
	bool too_large;

	return read_int(cell, value, &too_large);
}

static const char *
skip_digits(const char *at)
{
	while (*at >= '0' && *at <= '9')
		at++;
	return at;
}

/* Case-insensitive in ASCII, whatever the locale. */
static bool
begins_with(const char *at, const char *word)
{
	for (; *word; at++, word++)
		if ((*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at) != *word)
			return false;
	return true;
}

/* Accepts decimal numbers only; strtof also reads hexadecimal. */
static bool
looks_like_number(const char *at)
{
	const char *whole, *fraction;

	at += *at == '-' || *at == '+';
	for (const char *const *word = (const char *const[]){"infinity", "inf", "nan", NULL}; *word; word++) {
		if (begins_with(at, *word)) {
			at += strlen(*word);
			goto end;
		}
	}
	whole = skip_digits(at);
	fraction = *whole == '.' ? skip_digits(whole + 1) : whole;
	if (fraction - at == (*whole == '.')) /* no digit at all */
		return false;
	at = fraction;
	if (*at == 'e' || *at == 'E') {
		at += 1 + (at[1] == '-' || at[1] == '+');
		if (skip_digits(at) == at)
			return false;
		at = skip_digits(at);
	}
end:
	while (is_blank(*at))
		at++;
	return !*at;
}

/* Reads a number in float32's range, with optional blanks. An integer too large for int64 is more likely an ID. */
static bool
read_float(const char *cell, locale_t c, float *value)
{
	int64_t whole;
	bool too_large;

	while (is_blank(*cell))
		cell++;
	if (!looks_like_number(cell))
		return false;
	read_int(cell, &whole, &too_large);
	if (too_large && !strpbrk(cell, ".eE"))
		return false;
	errno = 0;
	*value = strtof_l(cell, NULL, c);
	return errno != ERANGE || fabsf(*value) < 1; /* underflow gives 0 or nearly 0 */
}

/* The type of a column that had `type` before this cell. */
static enum leat_csv_type
widen(enum leat_csv_type type, const char *cell, locale_t c)
{
	bool too_large;
	int64_t whole;
	float number;

	if (type == LEAT_CSV_INT64 && read_int(cell, &whole, &too_large))
		return type;
	return type != LEAT_CSV_BYTES && read_float(cell, c, &number) ? LEAT_CSV_FLOAT : LEAT_CSV_BYTES;
}

/* Stores the value of cell i. False: not a valid value. */
static bool
put_value(struct leat_csv_column *column, size_t i, const char *cell, locale_t c)
{
	char *to = (char *)column->values + i * leat_csv_value_size(column->type);
	bool too_large;
	int64_t whole;
	float number;

	switch (column->type) {
	case LEAT_CSV_INT64:
		if (!read_int(cell, &whole, &too_large))
			return false;
		memcpy(to, &whole, sizeof(whole));
		return true;
	case LEAT_CSV_FLOAT:
		if (!read_float(cell, c, &number))
			return false;
		memcpy(to, &number, sizeof(number));
		return true;
	default:
		whole = (int64_t)column->text.len;
		memcpy(to, &whole, sizeof(whole));
		leat_str_add(&column->text, cell);
		return true;
	}
}

/* ---- rows ---- */

static void
count_row(struct parser *p)
{
	for (size_t i = 0; i < p->table->columns; i++) {
		const char *cell = p->row.cell[p->place[i]];

		if (p->table->column[i].type == LEAT_CSV_AUTO)
			p->type[i] = widen(p->type[i], cell, p->c);
		p->text_len[i] += strlen(cell);
	}
}

static enum leat_status
fill_row(struct parser *p)
{
	struct leat_csv_table *table = p->table;
	enum leat_status status;

	if (p->rows == table->rows)
		return leat_fail(p->err, LEAT_IO, "it has changed while it was read");
	for (size_t i = 0; i < table->columns; i++) {
		struct leat_csv_column *column = &table->column[i];
		const char *cell = p->row.cell[p->place[i]];

		if (!put_value(column, p->rows, cell, p->c))
			return leat_fail(p->err, LEAT_DATA, "line %llu: column '%s' is not %s: '%.40s'",
			                 (unsigned long long)p->row.line, column->name,
			                 column->type == LEAT_CSV_INT64 ? "an int64" : "a number in float range", cell);
	}
	if (table->line)
		table->line[p->rows] = p->row.line;
	status = LEAT_GROW_RAW(table->mem, p->name, p->names_cap, p->names + 1, SIZE_MAX, "the rows of a list", p->err);
	if (status == LEAT_OK)
		status = LEAT_GROW_RAW(table->mem, p->name_line, p->lines_cap, p->names + 1, SIZE_MAX,
		                       "the rows of a list", p->err);
	if (status != LEAT_OK)
		return status;
	p->name_line[p->names] = p->row.line;
	p->name[p->names++] = p->row.cell[p->path];
	return LEAT_OK;
}

static enum leat_status
take_row(struct parser *p)
{
	enum leat_status status = LEAT_OK;

	if (p->row.cells != p->cells)
		return leat_fail(p->err, LEAT_DATA, "line %llu has %zu cell%s, but the first row has %zu",
		                 (unsigned long long)p->row.line, p->row.cells, leat_plural(p->row.cells), p->cells);
	if (p->filling)
		status = fill_row(p);
	else
		count_row(p);
	p->rows++;
	return status;
}

/* Hands on the names of a piece. */
static enum leat_status
flush_names(struct parser *p)
{
	size_t count = p->names;

	p->names = 0;
	if (count == 0 || !p->wish->take_paths)
		return LEAT_OK;
	return p->wish->take_paths(p->wish->arg, p->name, p->name_line, count, p->err);
}

static enum leat_status
next_row(struct parser *p)
{
	enum leat_status status;

	while ((status = leat_csv_stream_next(&p->stream, &p->row, p->err)) == LEAT_AGAIN) {
		status = flush_names(p);
		if (status == LEAT_OK)
			status = leat_csv_stream_fill(&p->stream, p->err);
		if (status != LEAT_OK)
			return status;
	}
	return status;
}

/* Reads all rows, to count or to fill. */
static enum leat_status
read_rows(struct parser *p, const struct leat_csv_input *input)
{
	enum leat_status status;

	p->rows = 0;
	leat_csv_stream_init(&p->stream, input, p->table->mem);
	status = next_row(p);
	if (status == LEAT_END)
		status = leat_fail(p->err, LEAT_DATA, "it is empty; expected a row with column names");
	if (status == LEAT_OK && !p->filling)
		status = take_header(p);
	if (status == LEAT_OK && !p->has_header)
		status = take_row(p);
	while (status == LEAT_OK && (status = next_row(p)) == LEAT_OK)
		status = take_row(p);
	if (status == LEAT_END)
		status = flush_names(p);
	leat_csv_stream_free(&p->stream);
	return status;
}

/* Makes room for what was counted. */
static enum leat_status
allocate(struct parser *p)
{
	struct leat_csv_table *table = p->table;

	table->rows = p->rows;
	if (table->rows == 0)
		return leat_fail(p->err, LEAT_DATA, "it has no samples, only a first row");
	if (p->wish->lines) {
		table->line = leat_alloc_array(table->mem, table->rows, sizeof(*table->line));
		if (!table->line)
			return leat_fail_mem(p->err, table->mem, table->rows * sizeof(*table->line),
			                     "the rows of a list");
	}
	for (size_t i = 0; i < table->columns; i++) {
		struct leat_csv_column *column = &table->column[i];
		size_t values;

		column->type = p->type[i];
		values = table->rows + (column->type == LEAT_CSV_BYTES);
		column->values = leat_alloc_array(table->mem, values, leat_csv_value_size(column->type));
		if (!column->values)
			return leat_fail_mem(p->err, table->mem, values * leat_csv_value_size(column->type),
			                     "the values of a list");
		if (column->type == LEAT_CSV_BYTES)
			leat_str_reserve(&column->text, p->text_len[i]);
	}
	return LEAT_OK;
}

/* Checks that the second time all was as it had been. */
static enum leat_status
finish(const struct parser *p)
{
	for (size_t i = 0; i < p->table->columns; i++) {
		struct leat_csv_column *column = &p->table->column[i];

		if (column->type == LEAT_CSV_BYTES)
			put_value(column, p->rows, "", p->c);
		if (column->text.failed)
			return leat_fail_mem(p->err, p->table->mem, p->text_len[i], "the texts of a list");
	}
	return p->rows == p->table->rows ? LEAT_OK : leat_fail(p->err, LEAT_IO, "it has changed while it was read");
}

static enum leat_status
read_twice(struct parser *p, const struct leat_csv_input *input)
{
	enum leat_status status = read_rows(p, input);

	if (status == LEAT_OK)
		status = allocate(p);
	p->filling = true;
	if (status == LEAT_OK)
		status = read_rows(p, input);
	return status == LEAT_OK ? finish(p) : status;
}

enum leat_status
leat_csv_table_parse(struct leat_csv_table *table, const struct leat_csv_input *input, const struct leat_csv_wish *wish,
                     struct leat_mem *mem, struct leat_err *err)
{
	struct parser *p = leat_alloc(mem, sizeof(*p)); /* too large for the stack */
	enum leat_status status;

	*table = (struct leat_csv_table){.mem = mem};
	if (!p)
		return leat_fail_mem(err, mem, sizeof(*p), "reading a list");
	p->table = table;
	p->wish = wish;
	p->err = err;
	p->c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	status = p->c ? read_twice(p, input) : leat_fail(err, LEAT_NOMEM, "no memory to read numbers");
	if (p->c)
		freelocale(p->c);
	leat_free(mem, p->name);
	leat_free(mem, p->name_line);
	leat_free(mem, p);
	if (status != LEAT_OK)
		leat_csv_table_free(table);
	return status;
}
