/* csv_source.c - the source of CSV and JSON Lines files with declared columns: one sample per record
 *
 *	csv('events-*.csv.gz', columns=['user int64', 'ts timestamp', 'amount double'])
 *
 * Records are split and read exactly as `leat load` does (table/load.h), once, when the feed opens, into columns that
 * the feed keeps and lends like an Arrow table (format/arrow.h). A record that load would reject is a bad sample, with
 * the same reason, so that none is lost in silence. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/size.h"
#include "format/arrow.h"
#include "table/load.h"
#include "table/rejects.h"
#include "table/rows_write.h"

enum { FORMAT = 24, LOOK = 4096 /* rows between looks at the memory */, MAX_RECORD = 16 << 20, SMALL = 16 << 20 };

struct csv {
	struct leat_strings patterns, columns, na;
	int null;
	bool header;
	const char *delimiter;
};

static const struct leat_opt options[] = {
	LEAT_STRINGS(struct csv, patterns, LEAT_REQUIRED,
                     "CSV files, plain, .gz or .zst, or glob patterns (*, ?, [..]), sorted by name; files that end in "
                     ".jsonl or .ndjson are JSON Lines",
                     LEAT_OPT_LOCATION),
	LEAT_STRINGS(
		struct csv, columns, LEAT_REQUIRED,
		"all columns with their types, as in ['user int64', 'ts timestamp']: bool, int8 to int64, uint8 to "
		"uint64, float, double, decimal(10,2), date, timestamp, text, or skip to leave one out",
		LEAT_OPT_NAMED),
	LEAT_OPT_(struct csv, null, LEAT_OPT_ENUM, "error", 0, 0, "error|zero|nan",
                  "what an empty value becomes: a bad sample; zero, or an empty text; NaN in columns of floats, and a "
                  "bad sample in others",
                  LEAT_OPT_NAMED),
	LEAT_STRINGS(struct csv, na, "[]", "unquoted values that count as empty, such as [NA, 'null']", LEAT_OPT_NAMED),
	LEAT_OPT_(struct csv, header, LEAT_OPT_BOOL, "true", 0, 1, NULL,
                  "the first record of each CSV file names its columns; false: they are in the order of `columns`",
                  LEAT_OPT_NAMED),
	LEAT_OPT_(struct csv, delimiter, LEAT_OPT_STRING, ",", 0, 0, NULL, "between values: one character, or tab",
                  LEAT_OPT_NAMED),
	LEAT_OPT_END,
};

/* A column that is filled row by row, and what Arrow calls it. */
struct column {
	const struct leat_declared *declared;
	unsigned char *values; /* of a fixed size, or the bytes of texts */
	size_t cap, used;
	int64_t *ends; /* of texts: where each begins and the last ends */
	size_t ends_cap;
	unsigned char *valid; /* a bit for each row; NULL: none is empty yet */
	size_t valid_cap;
	char format[FORMAT];
	struct ArrowSchema schema;
	struct ArrowArray array;
	const void *buffer[3];
};

/* A value on its way from the reader. */
struct cell {
	uint64_t value[2], valid;
	const char *text;
	size_t len;
};

struct state {
	struct leat_arrow_rows *rows; /* must be first */
	struct leat_declared_columns declared;
	struct column *column; /* those that are not skipped */
	size_t columns;
	struct ArrowSchema **schemas;
	struct ArrowArray **arrays;
	struct cell *cell;
	struct leat_cells *cells;
	uint64_t count;  /* rows */
	uint64_t *first; /* of each file */
	size_t last;
	struct leat_arrow_bad *bad;
	size_t bads, bads_cap;
	struct reading { /* a file, while it is read */
		const struct leat_object *object;
		uint64_t offset;
	} reading;
	const struct leat_source *source;
};

/* ---- close ---- */

static void
close_source(struct leat_source *source)
{
	struct state *state = source->state;
	struct leat_mem *mem = source->mem;

	if (state) {
		leat_arrow_source_close(source, state->rows);
		for (size_t i = 0; state->column && i < state->columns; i++) {
			leat_free(mem, state->column[i].values);
			leat_free(mem, state->column[i].ends);
			leat_free(mem, state->column[i].valid);
		}
		for (size_t i = 0; i < state->bads; i++)
			leat_free(mem, state->bad[i].why);
		leat_free(mem, state->bad);
		leat_free(mem, state->column);
		leat_free(mem, state->schemas);
		leat_free(mem, state->arrays);
		leat_free(mem, state->cell);
		leat_free(mem, state->cells);
		leat_free(mem, state->first);
		leat_declared_free(&state->declared);
	}
	leat_free(mem, state);
	leat_files_close(source->files);
}

/* ---- columns ---- */

static void
set_format(struct column *column)
{
	static const char *const formats[] = {
		[LEAT_COLUMN_BOOL] = "b",   [LEAT_COLUMN_INT8] = "c",         [LEAT_COLUMN_INT16] = "s",
		[LEAT_COLUMN_INT32] = "i",  [LEAT_COLUMN_INT64] = "l",        [LEAT_COLUMN_UINT8] = "C",
		[LEAT_COLUMN_UINT16] = "S", [LEAT_COLUMN_UINT32] = "I",       [LEAT_COLUMN_UINT64] = "L",
		[LEAT_COLUMN_FLOAT] = "f",  [LEAT_COLUMN_DOUBLE] = "g",       [LEAT_COLUMN_TEXT] = "U",
		[LEAT_COLUMN_DATE] = "tdD", [LEAT_COLUMN_TIMESTAMP] = "tsu:",
	};
	const struct leat_declared *declared = column->declared;

	if (declared->kind == LEAT_COLUMN_DECIMAL)
		snprintf(column->format, FORMAT, "d:%u,%u,%d", declared->width, declared->scale,
		         declared->width <= 9    ? 32
		         : declared->width <= 18 ? 64
		                                 : 128);
	else
		snprintf(column->format, FORMAT, "%s", formats[declared->kind]);
}

static enum leat_status
declare(struct leat_source *source, struct state *state, struct leat_err *err)
{
	const struct leat_strings *columns = &((const struct csv *)source->params)->columns;
	enum leat_status status = LEAT_OK;

	state->declared.mem = source->mem;
	for (size_t i = 0; i < columns->count && status == LEAT_OK; i++)
		status = leat_declared_read(&state->declared, columns->value[i], err);
	if (status == LEAT_INVALID) {
		leat_err_in(err, "csv");
		return err ? err->status = LEAT_SPEC : LEAT_SPEC;
	}
	for (size_t i = 0; i < state->declared.count; i++)
		state->columns += !state->declared.column[i].skip;
	if (status == LEAT_OK && !state->columns)
		status = leat_fail(err, LEAT_SPEC,
		                   "csv: declare the columns, as in columns=['user int64', 'amount double']");
	return status;
}

static enum leat_status
make_columns(struct leat_source *source, struct state *state, struct leat_err *err)
{
	size_t count = state->columns, at = 0;

	state->column = leat_alloc_array(source->mem, count, sizeof(*state->column));
	state->schemas = leat_alloc_array(source->mem, count, sizeof(*state->schemas));
	state->arrays = leat_alloc_array(source->mem, count, sizeof(*state->arrays));
	state->cell = leat_alloc_array(source->mem, count, sizeof(*state->cell));
	state->cells = leat_alloc_array(source->mem, count, sizeof(*state->cells));
	state->first = leat_alloc_array(source->mem, leat_files_count(source->files) + 1, sizeof(*state->first));
	if (!state->column || !state->schemas || !state->arrays || !state->cell || !state->cells || !state->first)
		return leat_fail_mem(err, source->mem, count * sizeof(*state->column), "the columns");
	for (size_t i = 0; i < state->declared.count; i++) {
		struct column *column = &state->column[at];

		if (state->declared.column[i].skip)
			continue;
		column->declared = &state->declared.column[i];
		set_format(column);
		column->schema.format = column->format;
		column->schema.name = column->declared->name;
		column->array.buffers = column->buffer;
		state->schemas[at] = &column->schema;
		state->arrays[at] = &column->array;
		state->cells[at].values = state->cell[at].value;
		state->cells[at].valid = &state->cell[at].valid;
		at++;
	}
	return LEAT_OK;
}

/* ---- rows ---- */

/* Decimals of up to 4 digits have 16 bits, which Arrow does not know. */
static size_t
width_of(const struct column *column)
{
	size_t width = leat_value_size(column->declared);

	return column->declared->kind == LEAT_COLUMN_DECIMAL && width == 2 ? 4 : width;
}

static enum leat_status
set_valid(struct leat_mem *mem, struct column *column, uint64_t row, bool valid, struct leat_err *err)
{
	enum leat_status status;

	if (valid && !column->valid)
		return LEAT_OK;
	if (!column->valid) {
		status = LEAT_GROW_RAW(mem, column->valid, column->valid_cap, row / 8 + 1, SIZE_MAX, "a table", err);
		if (status != LEAT_OK)
			return status;
		memset(column->valid, 0xff, (size_t)row / 8 + 1); /* those before are not empty */
	}
	status = LEAT_GROW_RAW(mem, column->valid, column->valid_cap, row / 8 + 1, SIZE_MAX, "a table", err);
	if (status != LEAT_OK)
		return status;
	if (row % 8 == 0)
		column->valid[row / 8] = 0xff;
	if (!valid)
		column->valid[row / 8] &= (unsigned char)~(1u << row % 8);
	column->array.null_count += !valid;
	return LEAT_OK;
}

static enum leat_status
add_text(struct leat_mem *mem, struct column *column, uint64_t row, const char *text, size_t len, struct leat_err *err)
{
	enum leat_status status = LEAT_GROW_RAW(mem, column->ends, column->ends_cap, row + 2, SIZE_MAX, "a table", err);

	if (status == LEAT_OK)
		status = LEAT_GROW_RAW(mem, column->values, column->cap, column->used + len + 1, SIZE_MAX, "a table",
		                       err);
	if (status != LEAT_OK)
		return status;
	if (row == 0)
		column->ends[0] = 0;
	if (len)
		memcpy(column->values + column->used, text, len);
	column->used += len;
	column->ends[row + 1] = (int64_t)column->used;
	return LEAT_OK;
}

static enum leat_status
add_number(struct leat_mem *mem, struct column *column, uint64_t row, const struct cell *cell, struct leat_err *err)
{
	size_t width = width_of(column);
	bool bits = column->declared->kind == LEAT_COLUMN_BOOL;
	size_t need = bits ? (size_t)row / 8 + 1 : (size_t)(row + 1) * width;
	enum leat_status status = LEAT_GROW_RAW(mem, column->values, column->cap, need, SIZE_MAX, "a table", err);

	if (status != LEAT_OK)
		return status;
	if (bits) {
		if (row % 8 == 0)
			column->values[row / 8] = 0;
		column->values[row / 8] |= (unsigned char)((cell->value[0] & 1) << row % 8);
	} else if (width != leat_value_size(column->declared)) {
		int16_t half;
		int32_t wide;

		memcpy(&half, cell->value, sizeof(half));
		wide = half;
		memcpy(column->values + row * width, &wide, width);
	} else {
		memcpy(column->values + row * width, cell->value, width);
	}
	return LEAT_OK;
}

static enum leat_status
add_row(struct state *state, struct leat_err *err)
{
	struct leat_mem *mem = state->source->mem;
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < state->columns && status == LEAT_OK; i++) {
		struct column *column = &state->column[i];
		struct cell *cell = &state->cell[i];
		bool valid = cell->valid & 1;

		status = set_valid(mem, column, state->count, valid, err);
		if (status == LEAT_OK)
			status = column->declared->kind == LEAT_COLUMN_TEXT
			                 ? add_text(mem, column, state->count, cell->text, valid ? cell->len : 0, err)
			                 : add_number(mem, column, state->count, cell, err);
		*cell = (struct cell){.valid = 1};
	}
	state->count++;
	return status;
}

/* For leat_row_chunk: the text is valid until the row is added. */
static void
set_text(const struct leat_row_chunk *chunk, size_t column, size_t row, const char *text, size_t len)
{
	struct cell *cell = &((struct cell *)chunk->arg)[column];

	(void)row;
	cell->text = text;
	cell->len = len;
}

/* ---- reading ---- */

static enum leat_status
read_bytes(void *arg, void *to, size_t len, size_t *got, struct leat_err *err)
{
	struct reading *reading = arg;
	uint64_t left = reading->object->size - reading->offset;
	struct iovec iov = {to, left < len ? (size_t)left : len};
	enum leat_status status = LEAT_OK;
	size_t done;

	*got = iov.iov_len;
	if (iov.iov_len)
		status = leat_object_read(reading->object, reading->offset, &iov, 1, 0, &done, err);
	reading->offset += *got;
	return status;
}

static struct leat_csv_bytes
open_bytes(void *arg, size_t file)
{
	struct state *state = arg;

	state->reading = (struct reading){.object = leat_files_at(state->source->files, file)};
	return (struct leat_csv_bytes){read_bytes, &state->reading};
}

/* A record that is no row becomes one that is bad. */
static enum leat_status
reject(void *arg, size_t file, const struct leat_reject *reject, struct leat_err *err)
{
	struct state *state = arg;
	struct leat_mem *mem = state->source->mem;
	enum leat_status status =
		LEAT_GROW(mem, state->bad, state->bads_cap, state->bads + 1, SIZE_MAX, "bad records", err);
	struct leat_str why;

	if (status != LEAT_OK)
		return status;
	leat_str_init(&why, mem, 1000);
	leat_str_addf(&why, "line %llu", (unsigned long long)reject->record->line);
	if (reject->column)
		leat_str_addf(&why, ", column '%s'", reject->column);
	leat_str_add(&why, ": ");
	leat_reject_reason(&why, reject);
	state->bad[state->bads].row = state->count;
	state->bad[state->bads].why = leat_str_take(&why);
	if (!state->bad[state->bads++].why)
		return leat_fail_mem(err, mem, 100, "bad records");
	for (size_t i = 0; i < state->columns; i++) /* what was read of it */
		state->cell[i] = (struct cell){.valid = 1};
	state->first[file + 1]++;
	return add_row(state, err);
}

static enum leat_status
check_memory(const struct leat_source *source, struct leat_err *err)
{
	char size[32];

	/* A small table is read in any case, so that the feed can name the memory that it needs. */
	if (leat_mem_counted(source->mem) <= source->mem->limit / 2 || leat_mem_counted(source->mem) <= SMALL)
		return LEAT_OK;
	return leat_fail(err, LEAT_LIMIT,
	                 "csv: the table does not fit in half of memory=%s, and is kept whole; raise it, or make a "
	                 "Parquet file with 'leat load' and read it with parquet()",
	                 leat_format_size(size, sizeof(size), source->mem->limit));
}

static enum leat_status
read_rows(struct leat_source *source, struct state *state, struct leat_load_reader *reader, struct leat_err *err)
{
	struct leat_row_chunk chunk = {state->cells, 1, set_text, state->cell};
	enum leat_status status = LEAT_OK;
	uint64_t looked = 0;
	size_t file;

	for (size_t i = 0; i < state->columns; i++)
		state->cell[i].valid = 1;
	while (status == LEAT_OK && (status = leat_load_reader_next(reader, &chunk, &file, err)) == LEAT_OK) {
		status = add_row(state, err);
		state->first[file + 1]++;
		if (status == LEAT_OK && state->count - looked >= LOOK) {
			looked = state->count;
			status = check_memory(source, err);
		}
	}
	for (size_t i = 0; i < leat_files_count(source->files); i++)
		state->first[i + 1] += state->first[i];
	return status == LEAT_END ? check_memory(source, err) : status;
}

static enum leat_status
read_files(struct leat_source *source, struct state *state, struct leat_err *err)
{
	const struct csv *csv = source->params;
	struct leat_load load = {
		.columns = &state->declared,
		.header = csv->header,
		.null = csv->na.value,
		.nulls = csv->na.count,
		.max_record = MAX_RECORD,
		.open = open_bytes,
		.reject = reject,
		.arg = state,
	};
	size_t files = leat_files_count(source->files);
	const char **name = leat_alloc_array(source->mem, files, sizeof(*name));
	struct leat_load_reader *reader = NULL;
	enum leat_status status = leat_delimiter_read(csv->delimiter, &load.delimiter, err);

	if (status == LEAT_INVALID)
		leat_err_in(err, "csv");
	if (!name)
		return leat_fail_mem(err, source->mem, files * sizeof(*name), "the list of files");
	for (size_t i = 0; i < files; i++)
		name[i] = leat_files_at(source->files, i)->uri;
	if (status == LEAT_OK)
		status = leat_load_reader_open(&reader, &load, name, files, source->mem, err);
	if (status == LEAT_OK)
		status = read_rows(source, state, reader, err);
	leat_load_reader_close(reader);
	leat_free(source->mem, name);
	return status;
}

/* ---- opening ---- */

/* "'x.csv', row 12" */
static void
say_where(const struct leat_source *source, uint64_t row, char *buf, size_t cap)
{
	const struct state *state = source->state;
	size_t last = 0, file = leat_source_part(source, row, &last);
	const struct leat_arrow_bad *bad = state->bad;
	bool is_bad = false;

	for (size_t i = 0; i < state->bads && !is_bad; i++)
		is_bad = bad[i].row == row;
	if (is_bad) /* its reason says the line */
		snprintf(buf, cap, "'%s'", leat_files_at(source->files, file)->uri);
	else
		snprintf(buf, cap, "'%s', row %llu", leat_files_at(source->files, file)->uri,
		         (unsigned long long)(row - state->first[file]));
}

/* The columns as an Arrow table of one batch, whose memory is the state's. */
static struct leat_arrow *
as_table(struct state *state)
{
	struct leat_arrow *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	atomic_store(&table->refs, 1);
	table->schema =
		(struct ArrowSchema){.format = "+s", .n_children = (int64_t)state->columns, .children = state->schemas};
	if (!state->count)
		return table;
	table->batch = calloc(1, sizeof(*table->batch));
	if (!table->batch) {
		free(table);
		return NULL;
	}
	table->batches = 1;
	table->rows = state->count;
	*table->batch = (struct ArrowArray){
		.length = (int64_t)state->count, .n_children = (int64_t)state->columns, .children = state->arrays};
	for (size_t i = 0; i < state->columns; i++) {
		struct column *column = &state->column[i];
		bool text = column->declared->kind == LEAT_COLUMN_TEXT;

		column->array.length = (int64_t)state->count;
		column->array.n_buffers = text ? 3 : 2;
		column->buffer[0] = column->valid;
		column->buffer[1] = text ? (const void *)column->ends : column->values;
		column->buffer[2] = text ? column->values : NULL;
	}
	return table;
}

static enum leat_status
open_table(struct leat_source *source, struct leat_err *err)
{
	const struct csv *csv = source->params;
	struct state *state = source->state = leat_alloc(source->mem, sizeof(*state));
	struct leat_arrow_wish wish = {.null = (enum leat_arrow_null)csv->null, .where = say_where};
	struct leat_arrow *table;
	enum leat_status status;

	if (!state)
		return leat_fail_mem(err, source->mem, sizeof(*state), "a table");
	state->source = source;
	status = declare(source, state, err);
	if (status == LEAT_OK)
		status = leat_files_open(&source->files, &source->stores, csv->patterns.value, csv->patterns.count,
		                         source->mem, err);
	if (status == LEAT_OK)
		status = make_columns(source, state, err);
	if (status == LEAT_OK)
		status = read_files(source, state, err);
	if (status != LEAT_OK)
		return status;
	table = as_table(state);
	if (!table)
		return leat_fail(err, LEAT_NOMEM, "no memory for a table");
	wish.bad = state->bad;
	wish.bads = state->bads;
	status = leat_arrow_source_open(source, table, &wish, &state->rows, err);
	if (status != LEAT_OK)
		return status;
	source->first = state->first; /* interleave alternates between files */
	source->parts = 0;
	leat_arrow_longest(source);
	return LEAT_OK;
}

static enum leat_status
open_source(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	enum leat_status status = open_table(source, err);

	(void)threads;
	if (status != LEAT_OK)
		close_source(source);
	return status;
}

static void
locate(const struct leat_source *source, uint64_t sample, struct leat_extent *extent)
{
	struct state *state = source->state;

	leat_arrow_locate(source, sample, extent);
	extent->file = (uint32_t)leat_source_part(source, sample, &state->last);
}

const struct leat_source_kind leat_source_csv = {
	.name = "csv",
	.doc = "Read CSV files with declared columns, one record per sample, into memory when the feed opens. Values "
	       "are "
	       "read as 'leat load' reads them; a record that it would reject is a bad sample. Dates and timestamps "
	       "become int64 microseconds since 1970, decimals float64, text bytes. For large tables, use 'leat load' "
	       "and parquet.",
	.example = "csv('events-*.csv', columns=['user int64', 'amount double'])",
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct csv),
	.open = open_source,
	.close = close_source,
	.locate = locate,
	.touch = leat_arrow_touch,
	.rows = leat_arrow_rows_form,
	.rows_at = leat_arrow_rows_at,
	.unpack = leat_arrow_unpack,
};
