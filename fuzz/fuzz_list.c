/* fuzz_list.c - any bytes are a list or refused with a reason, and its values stay inside their arrays */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/csv_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
check_column(const struct leat_csv_table *table, const struct leat_csv_column *column, size_t size)
{
	const uint64_t *at = column->values;
	double sum = 0;

	must(column->name[0] && strlen(column->name) <= LEAT_MAX_NAME);
	must(column->type != LEAT_CSV_AUTO);
	for (size_t i = 0; i < table->rows; i++) {
		if (column->type == LEAT_CSV_INT64)
			sum += (double)((const int64_t *)column->values)[i];
		else if (column->type == LEAT_CSV_FLOAT)
			sum += (double)((const float *)column->values)[i];
		else
			must(at[i] <= at[i + 1]);
	}
	if (column->type == LEAT_CSV_BYTES)
		must(at[0] == 0 && at[table->rows] == column->text.len && column->text.len <= size);
	(void)sum;
}

/* Counts the names, and that they fit. */
struct names {
	size_t count, size;
};

static enum leat_status
take_paths(void *arg, const char *const *path, const uint64_t *line, size_t count, struct leat_err *err)
{
	struct names *names = arg;

	(void)err;
	for (size_t i = 0; i < count; i++)
		must(strlen(path[i]) <= names->size && line[i] >= 1 && line[i] <= names->size + 1);
	names->count += count;
	return LEAT_OK;
}

static void
parse(const uint8_t *data, size_t size, const struct leat_csv_wish *wanted)
{
	const struct leat_csv_input input = leat_csv_text_input((const char *)data, size);
	struct leat_csv_wish wish = *wanted;
	struct names names = {0, size};
	struct leat_csv_table table;
	struct leat_mem mem;
	struct leat_err err;

	wish.take_paths = take_paths;
	wish.arg = &names;
	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	if (leat_csv_table_parse(&table, &input, &wish, &mem, &err) == LEAT_OK) {
		must(table.rows > 0 && table.columns < LEAT_MAX_FIELDS && names.count == table.rows);
		for (size_t i = 0; i < table.columns; i++)
			check_column(&table, &table.column[i], size);
		leat_csv_table_free(&table);
	} else {
		must(err.status != LEAT_OK && err.text[0]);
	}
	must(mem.used == 0);
}

static bool
is_header(struct leat_csv_row *first)
{
	return strcmp(first->cell[0], "path") == 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *columns[] = {"a", "b"}, *types[] = {"int64", "float"};
	struct leat_csv_wish wish = {.path = "path"};

	parse(data, size, &wish);
	wish.columns = (struct leat_strings){2, columns};
	parse(data, size, &wish);
	wish.types = (struct leat_strings){2, types};
	parse(data, size, &wish);
	wish.is_header = is_header;
	parse(data, size, &wish);
	return 0;
}
