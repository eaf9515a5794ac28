/* parquet_open.c - open the files of a Parquet table: footers, columns, row groups */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/names.h"
#include "base/threads.h"
#include "format/parquet.h"

enum {
	TAIL_READ = 64 << 10, /* most footers are in the last bytes of a file */
	REMOTE_READS = 8,     /* answers of a server take longer than work on them */
};
#define MOST_ROWS ((uint64_t)1 << 48) /* of a table, so that sizes do not overflow */

/* ---- files ---- */

static const char *
uri_of(const struct leat_source *source, size_t file)
{
	return leat_files_at(source->files, file)->uri;
}

/* A folder is the Parquet files in it. */
static enum leat_status
open_files(struct leat_source *source, const struct leat_strings *patterns, struct leat_err *err)
{
	static const char *const inside[] = {"*.parquet", NULL};
	char **name = NULL;
	enum leat_status status =
		leat_files_expand(&source->stores, patterns->value, patterns->count, inside, &name, source->mem, err);

	if (status == LEAT_OK)
		status = leat_files_open(&source->files, &source->stores, (const char *const *)name, patterns->count,
		                         source->mem, err);
	leat_files_expand_free(name, patterns->count, source->mem);
	return status;
}

/* ---- footers ---- */

static enum leat_status
fail_file(const struct leat_source *source, size_t file, const char *fault, struct leat_err *err)
{
	return leat_fail(err, LEAT_DATA, "'%s' cannot be read: %s", uri_of(source, file), fault);
}

static enum leat_status
read_at(const struct leat_source *source, size_t file, uint64_t offset, void *to, size_t len, struct leat_err *err)
{
	struct iovec iov = {to, len};
	size_t got;

	return leat_object_read(leat_files_at(source->files, file), offset, &iov, 1, 0, &got, err);
}

/* Reads the footer's bytes into a block that has just room for them: `tail` holds the end of the file. */
static enum leat_status
take_footer(const struct leat_source *source, size_t i, const unsigned char *tail, size_t len, uint64_t footer,
            struct leat_err *err)
{
	struct leat_parquet_file *file = &((struct leat_parquet *)source->state)->file[i];
	uint64_t size = leat_files_at(source->files, i)->size, begin = size - LEAT_PARQUET_TAIL - footer;
	const char *fault;
	enum leat_status status = LEAT_OK;

	file->bytes = leat_realloc_raw(source->mem, NULL, (size_t)footer);
	if (!file->bytes)
		return leat_fail_mem(err, source->mem, (size_t)footer, "the footer of a Parquet file");
	if (footer + LEAT_PARQUET_TAIL <= len)
		memcpy(file->bytes, tail + (len - LEAT_PARQUET_TAIL - (size_t)footer), (size_t)footer);
	else
		status = read_at(source, i, begin, file->bytes, (size_t)footer, err);
	if (status != LEAT_OK)
		return status;
	fault = leat_parquet_footer_read(&file->footer, file->bytes, (size_t)footer);
	return fault ? fail_file(source, i, fault, err) : LEAT_OK;
}

static enum leat_status
read_footer(void *arg, size_t i, struct leat_err *err)
{
	const struct leat_source *source = arg;
	uint64_t size = leat_files_at(source->files, i)->size, footer;
	size_t len = size < TAIL_READ ? (size_t)size : TAIL_READ;
	const char *fault = NULL;
	enum leat_status status;
	unsigned char *tail;

	if (size < LEAT_PARQUET_TAIL + 4)
		return fail_file(source, i, size ? "it is too short for a Parquet file" : "it is empty", err);
	tail = leat_realloc_raw(source->mem, NULL, len);
	if (!tail)
		return leat_fail_mem(err, source->mem, len, "the footer of a Parquet file");
	status = read_at(source, i, size - len, tail, len, err);
	if (status == LEAT_OK)
		fault = leat_parquet_tail(tail + len - LEAT_PARQUET_TAIL, size, &footer);
	if (fault)
		status = fail_file(source, i, fault, err);
	if (status == LEAT_OK)
		status = take_footer(source, i, tail, len, footer, err);
	leat_free(source->mem, tail);
	return status;
}

static enum leat_status
read_footers(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	struct leat_parquet *table = source->state;
	size_t files = leat_files_count(source->files);

	table->file = leat_alloc_array(source->mem, files, sizeof(*table->file));
	table->first = leat_alloc_array(source->mem, files + 1, sizeof(*table->first));
	if (!table->file || !table->first)
		return leat_fail_mem(err, source->mem, files * sizeof(*table->file), "the list of files");
	if (leat_files_at(source->files, 0)->store->kind->remote && threads < REMOTE_READS)
		threads = REMOTE_READS;
	return leat_parallel(source->mem, threads, files, read_footer, source, err);
}

/* ---- columns ---- */

/* Copies of a file's column names and types. */
struct found {
	struct leat_source *source;
	size_t count, cap;
	struct leat_parquet_column *column; /* of types that cannot be decoded: without sql */
};

static void
free_found(struct found *found)
{
	for (size_t i = 0; i < found->count; i++)
		leat_parquet_column_free(&found->column[i], found->source->mem);
	leat_free(found->source->mem, found->column);
}

static enum leat_status
add_found(void *arg, int number, const char *name, const char *type, struct leat_err *err)
{
	struct found *found = arg;
	struct leat_mem *mem = found->source->mem;
	enum leat_status status =
		LEAT_GROW(mem, found->column, found->cap, found->count + 1, LEAT_PARQUET_LEAVES, "the columns", err);
	struct leat_parquet_column *column;

	if (status != LEAT_OK)
		return status;
	column = &found->column[found->count++];
	column->number = number;
	status = leat_parquet_column_make(column, name, type, mem);
	if (status == LEAT_UNSUPPORTED) {
		column->name = leat_strdup(mem, name);
		column->type = leat_strdup(mem, type);
		status = column->name && column->type ? LEAT_OK : LEAT_NOMEM;
	}
	return status == LEAT_OK ? LEAT_OK : leat_fail_mem(err, mem, strlen(name), "the columns");
}

static enum leat_status
find_columns(struct found *found, size_t file, struct leat_parquet_decoder *decoder, struct leat_err *err)
{
	struct leat_parquet *table = found->source->state;
	enum leat_status status = leat_parquet_schema(decoder, &table->file[file].footer, add_found, found, err);

	if (status == LEAT_DATA)
		leat_err_in(err, "'%s'", uri_of(found->source, file));
	return status;
}

static struct leat_parquet_column *
find_name(const struct found *found, const char *name, size_t len)
{
	for (size_t i = 0; i < found->count; i++)
		if (strlen(found->column[i].name) == len && memcmp(found->column[i].name, name, len) == 0)
			return &found->column[i];
	return NULL;
}

static enum leat_status
fail_unknown(const struct found *found, const char *name, struct leat_err *err)
{
	struct leat_unknown unknown = {.what = "column", .name = name};
	const char *known[256];

	for (; unknown.count < found->count && unknown.count < sizeof(known) / sizeof(*known); unknown.count++)
		known[unknown.count] = found->column[unknown.count].name;
	unknown.known = known;
	unknown.more = found->count - unknown.count;
	leat_fail_unknown(err, LEAT_SPEC, &unknown);
	leat_err_in(err, "parquet");
	return LEAT_SPEC;
}

/* Reads "[28, 28]" after a column's name. False: there is no such thing. */
static bool
read_shape(const char *text, struct leat_parquet_column *column)
{
	uint64_t elements = 1;
	int64_t dim;
	int used;

	column->ndim = 0;
	do {
		if (column->ndim == LEAT_MAX_DIMS || sscanf(text + 1, " %9ld %n", &dim, &used) != 1 || dim < 1 ||
		    __builtin_mul_overflow(elements, (uint64_t)dim, &elements) || elements > 1u << 30)
			return false;
		column->shape[column->ndim++] = dim;
		text += 1 + used;
	} while (*text == ',');
	column->row_bytes = (size_t)elements * leat_dtype_size(column->dtype);
	return strcmp(text, "]") == 0;
}

/* A name from `columns`: a column, or one with a shape. */
static enum leat_status
find_wanted(const struct found *found, const char *wanted, struct leat_parquet_column **column, struct leat_err *err)
{
	const char *bracket = strrchr(wanted, '[');

	*column = find_name(found, wanted, strlen(wanted));
	if (*column)
		return LEAT_OK;
	*column = bracket ? find_name(found, wanted, (size_t)(bracket - wanted)) : NULL;
	if (!*column)
		return fail_unknown(found, wanted, err);
	if (!(*column)->sql)
		return LEAT_OK; /* an error anyway */
	if (!(*column)->list && !(*column)->text)
		return leat_fail(err, LEAT_SPEC, "parquet: '%.80s': only lists and bytes can be given a shape, not %s",
		                 wanted, (*column)->type);
	if (!read_shape(bracket, *column))
		return leat_fail(err, LEAT_SPEC,
		                 "parquet: '%.80s' has no valid shape; expected up to %d sizes, as in 'image[28, 28]'",
		                 wanted, LEAT_MAX_DIMS);
	return LEAT_OK;
}

static enum leat_status
fail_column(const struct leat_parquet_column *column, const char *why, struct leat_err *err)
{
	return leat_fail(err, LEAT_SPEC,
	                 "parquet: column '%.80s' cannot be a field: %s; choose others with columns=[...]",
	                 column->name, why);
}

static enum leat_status
add_field(struct leat_source *source, const struct leat_parquet_column *column, struct leat_err *err)
{
	struct leat_field *field;
	char why[240];

	if (!column->sql) {
		snprintf(why, sizeof(why),
		         "its type is %.64s, but samples hold numbers, text and lists of numbers; take it apart when "
		         "you write the table",
		         column->type);
		return fail_column(column, why, err);
	}
	field = leat_schema_add(&source->schema, column->name, column->dtype);
	if (!field)
		return fail_column(column,
		                   !*column->name || strlen(column->name) > LEAT_MAX_NAME ? "a name has 1 to 63 bytes"
		                   : leat_schema_find(&source->schema, column->name) >= 0 ? "it is given twice"
		                                                                          : "there are too many fields",
		                   err);
	field->ndim = column->ndim;
	memcpy(field->shape, column->shape, sizeof(field->shape));
	if (!column->row_bytes) {
		field->ndim = 1;
		field->shape[0] = -1;
	}
	return LEAT_OK;
}

/* Moves a found column to those of the table. */
static enum leat_status
take_column(struct leat_source *source, struct leat_parquet_column *from, struct leat_err *err)
{
	struct leat_parquet *table = source->state;
	enum leat_status status = add_field(source, from, err);

	if (status != LEAT_OK)
		return status;
	table->columns.column[table->columns.count++] = *from;
	table->columns.ragged += !from->row_bytes;
	table->dense_bytes += from->row_bytes;
	/* Its name stays, for those to come. */
	from->type = from->sql = NULL;
	from->name = leat_strdup(source->mem, from->name);
	return from->name ? LEAT_OK : leat_fail_mem(err, source->mem, LEAT_MAX_NAME, "the columns");
}

/* A hidden column after all others: whether a row is of the split. */
static enum leat_status
add_split(const struct found *found, struct leat_err *err)
{
	struct leat_source *source = found->source;
	const struct leat_parquet_params *params = source->params;
	struct leat_parquet *table = source->state;
	const struct leat_parquet_column *split = find_name(found, "split", 5);
	struct leat_parquet_column *hidden = &table->columns.column[table->columns.count];
	struct leat_str sql;

	if (!split || (split->type && strcmp(split->type, "VARCHAR") != 0))
		return leat_fail(err, LEAT_SPEC, "split='%s': the table has no text column 'split'", params->split);
	*hidden = (struct leat_parquet_column){.number = split->number, .dtype = LEAT_U8, .row_bytes = 1};
	table->columns.count++;
	leat_str_init(&sql, source->mem, 1 << 16);
	leat_str_add(&sql, "CAST(coalesce(\"split\" = ");
	leat_sql_quote(&sql, params->split, '\'');
	leat_str_add(&sql, ", false) AS UTINYINT)");
	hidden->sql = leat_str_take(&sql);
	hidden->name = leat_strdup(source->mem, "split");
	hidden->type = leat_strdup(source->mem, "VARCHAR");
	return hidden->sql && hidden->name && hidden->type
	               ? LEAT_OK
	               : leat_fail_mem(err, source->mem, LEAT_MAX_NAME, "the columns");
}

static enum leat_status
choose_columns(struct found *found, struct leat_err *err)
{
	struct leat_source *source = found->source;
	const struct leat_parquet_params *params = source->params;
	const struct leat_strings *names = &params->columns;
	struct leat_parquet *table = source->state;
	size_t count = names->count ? names->count : found->count;
	enum leat_status status = LEAT_OK;

	if (count > LEAT_MAX_FIELDS)
		return leat_fail(err, LEAT_SPEC,
		                 "parquet: a sample has at most %d fields, but there are %zu columns; choose some with "
		                 "columns=[...]",
		                 LEAT_MAX_FIELDS, count);
	table->columns.column = leat_alloc_array(source->mem, count + 1, sizeof(*table->columns.column));
	if (!table->columns.column)
		return leat_fail_mem(err, source->mem, count * sizeof(*table->columns.column), "the columns");
	for (size_t i = 0; i < count && status == LEAT_OK; i++) {
		struct leat_parquet_column *column = names->count ? NULL : &found->column[i];

		if (names->count)
			status = find_wanted(found, names->value[i], &column, err);
		if (status == LEAT_OK && !column->type)
			status = fail_column(column, "it is given twice", err);
		if (status == LEAT_OK)
			status = take_column(source, column, err);
	}
	table->fields = table->columns.count;
	if (status == LEAT_OK && *params->split)
		status = add_split(found, err);
	leat_parquet_columns_place(&table->columns);
	return status;
}

/* Has a file the table's columns, with the same types? `number` is set to where they are. */
static enum leat_status
match_columns(const struct found *found, size_t file, uint16_t *number, struct leat_err *err)
{
	const struct leat_source *source = found->source;
	const struct leat_parquet *table = source->state;

	for (size_t i = 0; i < table->columns.count; i++) {
		const struct leat_parquet_column *wanted = &table->columns.column[i];
		const struct leat_parquet_column *is = find_name(found, wanted->name, strlen(wanted->name));

		if (!is)
			return leat_fail(err, LEAT_DATA, "'%s' has no column '%.80s', which '%s' has",
			                 uri_of(source, file), wanted->name, uri_of(source, 0));
		if (strcmp(is->type, wanted->type) != 0)
			return leat_fail(err, LEAT_DATA,
			                 "column '%.80s' of '%s' is %s, but %s in '%s'; all files need the same types",
			                 wanted->name, uri_of(source, file), is->type, wanted->type, uri_of(source, 0));
		number[i] = (uint16_t)is->number;
	}
	return LEAT_OK;
}

/* ---- leaves ---- */

static bool
same_schema(const struct leat_parquet_footer *a, const struct leat_parquet_footer *b)
{
	size_t len = a->schema_end - a->schema;

	return len == b->schema_end - b->schema && memcmp(a->bytes + a->schema, b->bytes + b->schema, len) == 0;
}

static enum leat_status
add_layout(struct leat_source *source, size_t file, const uint16_t *number, struct leat_err *err)
{
	struct leat_parquet *table = source->state;
	const struct leat_parquet_footer *footer = &table->file[file].footer;
	enum leat_status status =
		LEAT_GROW(source->mem, table->layout, table->layout_cap, table->layouts + 1, SIZE_MAX, "columns", err);
	struct leat_parquet_layout *layout;
	const char *fault;
	uint16_t *column;
	size_t leaves;

	if (status != LEAT_OK)
		return status;
	fault = leat_parquet_leaves(footer, NULL, &leaves);
	if (fault)
		return fail_file(source, file, fault, err);
	layout = &table->layout[table->layouts++];
	*layout = (struct leat_parquet_layout){.file = file, .leaves = leaves};
	layout->wanted = leat_alloc_array(source->mem, leaves, sizeof(*layout->wanted));
	column = leat_alloc_array(source->mem, leaves, sizeof(*column));
	if (!layout->wanted || !column) {
		leat_free(source->mem, column);
		return leat_fail_mem(err, source->mem, leaves * sizeof(*column), "the columns");
	}
	leat_parquet_leaves(footer, column, &leaves);
	for (size_t leaf = 0; leaf < leaves; leaf++)
		for (size_t i = 0; i < table->columns.count && !layout->wanted[leaf]; i++)
			layout->wanted[leaf] = number[i] == column[leaf];
	leat_free(source->mem, column);
	return LEAT_OK;
}

/* Finds out about the columns of a file that is not like those before. */
static enum leat_status
learn_file(struct leat_source *source, size_t file, struct leat_parquet_decoder *decoder, struct leat_err *err)
{
	struct leat_parquet *table = source->state;
	struct found found = {.source = source};
	uint16_t number[LEAT_MAX_FIELDS + 1];
	enum leat_status status = find_columns(&found, file, decoder, err);

	if (status == LEAT_OK && file == 0) {
		status = choose_columns(&found, err);
		for (size_t i = 0; status == LEAT_OK && i < table->columns.count; i++)
			number[i] = (uint16_t)table->columns.column[i].number;
	} else if (status == LEAT_OK) {
		status = match_columns(&found, file, number, err);
	}
	if (status == LEAT_OK)
		status = add_layout(source, file, number, err);
	free_found(&found);
	table->file[file].layout = table->layouts - (status == LEAT_OK);
	return status;
}

static enum leat_status
learn_files(struct leat_source *source, struct leat_err *err)
{
	struct leat_parquet *table = source->state;
	struct leat_parquet_decoder *decoder = NULL;
	size_t memory = leat_parquet_decoder_memory(0, 0);
	enum leat_status status = leat_parquet_decoder_open(&decoder, memory, 0, source->mem, err);

	for (size_t i = 0; status == LEAT_OK && i < leat_files_count(source->files); i++) {
		size_t known = 0;

		while (known < table->layouts &&
		       !same_schema(&table->file[i].footer, &table->file[table->layout[known].file].footer))
			known++;
		table->file[i].layout = known;
		if (known == table->layouts)
			status = learn_file(source, i, decoder, err);
	}
	leat_parquet_decoder_close(decoder);
	return status;
}

/* ---- row groups ---- */

/* Where the wanted chunks of a unit are. Returns why they cannot be read. */
static const char *
measure_chunks(const struct leat_source *source, struct leat_parquet_unit *unit, const struct leat_parquet_group *group)
{
	const struct leat_parquet *table = source->state;
	const struct leat_parquet_file *file = &table->file[unit->file];
	const struct leat_parquet_layout *layout = &table->layout[file->layout];
	uint64_t limit = leat_files_at(source->files, unit->file)->size - file->footer.len - LEAT_PARQUET_TAIL;
	uint64_t begin = UINT64_MAX, end = 0, wanted = 0, page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct leat_parquet_chunks walk;
	struct leat_parquet_chunk chunk;
	size_t leaf = 0;

	leat_parquet_chunks_begin(&walk, &file->footer, group);
	for (; leaf < layout->leaves && leat_parquet_chunks_next(&walk, &chunk); leaf++) {
		if (!layout->wanted[leaf])
			continue;
		if (chunk.elsewhere)
			return "a column chunk is in another file, which is not supported";
		if (chunk.offset < 4 || chunk.offset > limit || chunk.length > limit - chunk.offset)
			return "a column chunk is outside the file";
		begin = chunk.offset < begin ? chunk.offset : begin;
		end = chunk.offset + chunk.length > end ? chunk.offset + chunk.length : end;
		wanted += chunk.length;
		unit->wanted += chunk.length + 2 * page;
		if (chunk.unpacked > INT64_MAX ||
		    __builtin_add_overflow(unit->unpacked, chunk.unpacked, &unit->unpacked))
			return "the footer's size of a column chunk is invalid";
	}
	if (leaf < layout->leaves)
		return "it lacks column chunks";
	unit->offset = begin;
	unit->length = end - begin;
	unit->scattered = wanted < unit->length / 2;
	return NULL;
}

static enum leat_status
add_unit(struct leat_source *source, size_t file, uint32_t number, const struct leat_parquet_group *group, size_t *cap,
         struct leat_err *err)
{
	struct leat_parquet *table = source->state;
	enum leat_status status =
		LEAT_GROW(source->mem, table->unit, *cap, table->units + 1, SIZE_MAX, "the row groups", err);
	struct leat_parquet_unit *unit;
	const char *fault;

	if (status != LEAT_OK)
		return status;
	unit = &table->unit[table->units++];
	unit->file = (uint32_t)file;
	unit->group = number;
	unit->at = group->at;
	fault = measure_chunks(source, unit, group);
	if (fault) {
		unit->offset = unit->length = unit->wanted = unit->unpacked = 0;
		leat_parquet_set_fault(source, table->units - 1, fault);
		if (!unit->fault)
			return leat_fail_mem(err, source->mem, strlen(fault), "the row groups");
	}
	return LEAT_OK;
}

/* Adds the groups of a file. */
static enum leat_status
add_units(struct leat_source *source, size_t file, size_t *cap, struct leat_err *err)
{
	struct leat_parquet *table = source->state;
	const struct leat_parquet_footer *footer = &table->file[file].footer;
	enum leat_status status = LEAT_OK;
	size_t at = footer->groups_first;
	uint64_t rows = 0;

	for (size_t i = 0; i < footer->group_count && status == LEAT_OK; i++) {
		struct leat_parquet_group group;
		const char *fault = leat_parquet_group_read(footer, at, &group);

		if (fault)
			return fail_file(source, file, fault, err);
		at = group.end;
		if (group.rows > MOST_ROWS || (rows += group.rows) > MOST_ROWS)
			return fail_file(source, file, "its footer's number of rows is invalid", err);
		if (group.rows)
			status = add_unit(source, file, (uint32_t)i, &group, cap, err);
	}
	if (status == LEAT_OK && rows != footer->rows)
		return fail_file(source, file, "its row groups do not add up to the footer's number of rows", err);
	table->first[file + 1] = table->first[file] + rows;
	return status;
}

/* First row of each unit. */
static enum leat_status
count_rows(struct leat_source *source, struct leat_err *err)
{
	struct leat_parquet *table = source->state;

	table->row = leat_alloc_array(source->mem, table->units + 1, sizeof(*table->row));
	if (!table->row)
		return leat_fail_mem(err, source->mem, table->units * sizeof(*table->row), "the row groups");
	for (size_t i = 0; i < table->units; i++) {
		const struct leat_parquet_footer *footer = &table->file[table->unit[i].file].footer;
		struct leat_parquet_group group;

		(void)leat_parquet_group_read(footer, table->unit[i].at, &group);
		table->row[i + 1] = table->row[i] + group.rows;
	}
	source->first = table->first;
	source->count = table->row[table->units];
	return LEAT_OK;
}

static enum leat_status
find_units(struct leat_source *source, struct leat_err *err)
{
	struct leat_parquet *table = source->state;
	size_t files = leat_files_count(source->files), cap = 0;
	enum leat_status status = LEAT_OK;
	uint64_t unpacked = 0, bytes = 0;

	for (size_t i = 0; i < files && status == LEAT_OK; i++) {
		status = add_units(source, i, &cap, err);
		if (status == LEAT_OK && table->first[i + 1] > MOST_ROWS)
			status = fail_file(source, i, "the table would have too many rows", err);
	}
	if (status != LEAT_OK)
		return status;
	for (size_t i = 0; i < table->units; i++) {
		unpacked = table->unit[i].unpacked > unpacked ? table->unit[i].unpacked : unpacked;
		bytes = table->unit[i].wanted > bytes ? table->unit[i].wanted : bytes;
	}
	table->decoder_memory = leat_parquet_decoder_memory(unpacked, table->columns.count);
	table->decoder_file = (size_t)bytes;
	for (size_t i = 0, most = 0; i < files; i++)
		if (table->file[i].footer.len > most) {
			table->decoder_file += 2 * (table->file[i].footer.len - most);
			most = table->file[i].footer.len;
		}
	return count_rows(source, err);
}

enum leat_status
leat_parquet_open(struct leat_source *source, const struct leat_strings *patterns, unsigned threads,
                  struct leat_err *err)
{
	const struct leat_parquet_params *params = source->params;
	struct leat_parquet *table = source->state;
	enum leat_status status = open_files(source, patterns, err);

	table->columns.null = (enum leat_parquet_null)params->null;
	if (status == LEAT_OK)
		status = read_footers(source, threads, err);
	if (status == LEAT_OK)
		status = learn_files(source, err);
	if (status == LEAT_OK)
		status = find_units(source, err);
	return status;
}

/* ---- units ---- */

/* Units follow the files, so the first one of its file is at or before it. */
uint64_t
leat_parquet_row_in_file(const struct leat_parquet *table, size_t unit, uint64_t row)
{
	size_t first = unit;

	while (first > 0 && table->unit[first - 1].file == table->unit[unit].file)
		first--;
	return row - table->row[first];
}

size_t
leat_parquet_unit_of(const struct leat_parquet *table, uint64_t row)
{
	size_t low = 0, high = table->units;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (table->row[middle] <= row)
			low = middle;
		else
			high = middle;
	}
	return low;
}

enum leat_status
leat_parquet_part_of(const struct leat_source *source, size_t unit, const unsigned char *bytes,
                     struct leat_parquet_part *part, struct leat_err *err)
{
	const struct leat_parquet *table = source->state;
	const struct leat_parquet_unit *u = &table->unit[unit];
	const struct leat_parquet_file *file = &table->file[u->file];
	const char *fault;

	*part = (struct leat_parquet_part){
		.footer = &file->footer,
		.wanted = table->layout[file->layout].wanted,
		.leaves = table->layout[file->layout].leaves,
		.object = leat_files_at(source->files, u->file),
		.bytes = bytes,
		.offset = u->offset,
	};
	fault = leat_parquet_group_read(&file->footer, u->at, &part->group);
	return fault ? leat_fail(err, LEAT_INTERNAL, "%s", fault) : LEAT_OK;
}

void
leat_parquet_set_fault(const struct leat_source *source, size_t unit, const char *why)
{
	struct leat_parquet *table = source->state;
	char *none = NULL, *copy = leat_strdup(source->mem, why);

	if (copy && !atomic_compare_exchange_strong(&table->unit[unit].fault, &none, copy))
		leat_free(source->mem, copy);
}
