/* parquet.c - the source of Parquet tables: one sample per row, one field per column
 *
 *	parquet('train.parquet')
 *	parquet('table/part-*.parquet', columns=[user, amount, 'embedding[128]'], null=zero)
 *
 * Files are read in the order of their names, a folder's are all *.parquet in it. DuckDB decodes them
 * (parquet_decode.h). Threads: workers call decode, touch, rows_at and unpack. */
#include "format/parquet.h"

#include <stdio.h>
#include <string.h>

#include "base/size.h"

enum { ALIGN = 64 };

static const struct leat_opt options[] = {
	LEAT_STRINGS(struct leat_parquet_params, patterns, LEAT_REQUIRED,
                     "files, glob patterns (*, ?, [..]) or folders; the matches of each are sorted by name",
                     LEAT_OPT_LOCATION),
	LEAT_PARQUET_OPTIONS(struct leat_parquet_params),
	LEAT_OPT_END,
};

/* ---- open and close ---- */

static void
free_files(struct leat_source *source)
{
	struct leat_parquet *table = source->state;

	for (size_t i = 0; table->file && i < leat_files_count(source->files); i++)
		leat_free(source->mem, table->file[i].bytes);
	for (size_t i = 0; i < table->layouts; i++)
		leat_free(source->mem, table->layout[i].wanted);
	for (size_t i = 0; i < table->units; i++)
		leat_free(source->mem, table->unit[i].fault);
	for (size_t i = 0; i < table->columns.count; i++)
		leat_parquet_column_free(&table->columns.column[i], source->mem);
	leat_free(source->mem, table->file);
	leat_free(source->mem, table->layout);
	leat_free(source->mem, table->unit);
	leat_free(source->mem, table->columns.column);
	leat_free(source->mem, table->row);
	leat_free(source->mem, table->first);
	leat_free(source->mem, table->pick);
	leat_free(source->mem, table->ragged_bytes);
}

void
leat_parquet_close(struct leat_source *source)
{
	if (source->state) {
		leat_parquet_keep_free(source);
		free_files(source);
	}
	leat_free(source->mem, source->state);
	leat_files_close(source->files);
}

static uint64_t
up(uint64_t bytes)
{
	return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

/* Bytes of a row at most, whatever unit it is in. */
static uint64_t
longest_row(const struct leat_parquet *table)
{
	uint64_t longest = 0;

	for (size_t i = 0; i < table->units; i++)
		longest = table->unit[i].longest > longest ? table->unit[i].longest : longest;
	return table->dense_bytes + longest;
}

/* ---- units that are decoded when they are needed ---- */

/* A decoded unit: the rows of dense columns, the rows' faults, then each ragged column, all aligned. Sets where they
 * are in `bytes`, which may be NULL. Returns its size; UINT64_MAX: too large. */
static uint64_t
lay_out(const struct leat_parquet *table, size_t unit, unsigned char *bytes, uint16_t **fault,
        struct leat_parquet_place *place)
{
	const struct leat_parquet_columns *columns = &table->columns;
	const uint64_t *ragged = table->ragged_bytes + unit * columns->ragged;
	uint64_t rows = table->row[unit + 1] - table->row[unit], ends = up(rows * sizeof(uint64_t)), at;

	if (__builtin_mul_overflow(rows, columns->stride, &at) || at > INT64_MAX / 2)
		return UINT64_MAX;
	at = up(at);
	if (bytes)
		*fault = (uint16_t *)(void *)(bytes + at);
	at += up(rows * sizeof(uint16_t));
	for (size_t i = 0; i < columns->count; i++) {
		uint64_t room;

		if (columns->column[i].row_bytes) {
			if (bytes)
				place[i] = (struct leat_parquet_place){.values = bytes + columns->column[i].offset};
			continue;
		}
		room = *ragged++;
		if (room > INT64_MAX / 2 || at > INT64_MAX / 4)
			return UINT64_MAX;
		if (bytes)
			place[i] = (struct leat_parquet_place){
				.values = bytes + at + ends,
				.ends = (uint64_t *)(void *)(bytes + at),
				.room = (size_t)room,
			};
		at += ends + up(room);
	}
	return at;
}

/* Says what order is possible, and how much memory would allow all. */
static void
advise(struct leat_source *source)
{
	const struct leat_parquet *table = source->state;
	uint64_t row = table->columns.stride + table->columns.ragged * sizeof(uint64_t) + sizeof(uint16_t);
	uint64_t bytes;
	char size[32];

	if (__builtin_mul_overflow(row, source->count, &bytes) || bytes > INT64_MAX / 4)
		bytes = INT64_MAX / 4;
	for (size_t i = 0; i < table->units * table->columns.ragged && bytes < INT64_MAX / 4; i++)
		bytes += table->ragged_bytes[i] + table->ragged_bytes[i] / 8;
	source->scatter_where = "a Parquet table that is not kept in memory";
	snprintf(source->scatter_remedy, sizeof(source->scatter_remedy), "use keep=auto");
	if (!((const struct leat_parquet_params *)source->params)->keep)
		snprintf(source->scatter_remedy, sizeof(source->scatter_remedy), "raise memory= to %s so that it is",
		         leat_format_size_up(size, sizeof(size), 2 * (size_t)bytes + ((size_t)64 << 20)));
}

static enum leat_status
use_units(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	struct leat_parquet *table = source->state;
	enum leat_status status = leat_parquet_measure_all(source, threads, err);
	uint64_t longest;

	if (status != LEAT_OK)
		return status;
	source->max_unit = 1;
	for (size_t i = 0; i < table->units; i++) {
		const struct leat_parquet_unit *unit = &table->unit[i];
		uint64_t bytes = lay_out(table, i, NULL, NULL, NULL);

		if (bytes > INT64_MAX)
			return leat_fail(err, LEAT_DATA, "'%s', row group %u: its %llu rows are too large",
			                 leat_files_at(source->files, unit->file)->uri, unit->group,
			                 (unsigned long long)(table->row[i + 1] - table->row[i]));
		source->max_unit = bytes > source->max_unit ? (size_t)bytes : source->max_unit;
		if (!unit->scattered && unit->length > source->max_unit_length)
			source->max_unit_length = (size_t)unit->length;
	}
	source->units = table->units;
	source->decode_memory = leat_parquet_decoder_cost(table->decoder_memory, table->decoder_file);
	longest = longest_row(table);
	longest += !longest; /* 0 would mean that there are no units */
	source->all_fit = longest <= source->max_bytes;
	source->max_payload = source->max_length = source->all_fit ? longest : source->max_bytes;
	advise(source);
	return LEAT_OK;
}

static void
unit(const struct leat_source *source, uint64_t number, struct leat_extent *extent)
{
	const struct leat_parquet_unit *u = &((const struct leat_parquet *)source->state)->unit[number];

	*extent = (struct leat_extent){.file = u->file, .offset = u->offset, .length = u->scattered ? 0 : u->length};
}

static void
end_decoder(void *object, struct leat_mem *mem)
{
	(void)mem;
	leat_parquet_decoder_close(object);
}

/* The decoder kept with the scratch. */
static enum leat_status
decoder_of(const struct leat_source *source, struct leat_scratch *scratch, struct leat_parquet_decoder **decoder,
           struct leat_err *err)
{
	const struct leat_parquet *table = source->state;
	enum leat_status status;

	*decoder = leat_scratch_kept(scratch, end_decoder);
	if (*decoder)
		return LEAT_OK;
	status = leat_parquet_decoder_open(decoder, table->decoder_memory, table->decoder_file, scratch->mem, err);
	if (status == LEAT_OK && !leat_scratch_keep(scratch, *decoder, end_decoder)) {
		leat_parquet_decoder_close(*decoder);
		status = leat_fail(err, LEAT_INTERNAL, "no room for a decoder of Parquet files");
	}
	return status;
}

/* Worker threads. A damaged unit is noted, so that it is not decoded again for each of its rows. */
static enum leat_status
decode(const struct leat_source *source, const struct leat_extent *extent, const unsigned char *bytes,
       struct leat_unit *to, struct leat_scratch *scratch, struct leat_err *err)
{
	const struct leat_parquet *table = source->state;
	struct leat_parquet_place place[LEAT_MAX_FIELDS + 1];
	struct leat_parquet_decoder *decoder;
	struct leat_parquet_part part;
	struct leat_parquet_rows rows = {
		.count = table->row[to->number + 1] - table->row[to->number], .place = place, .stop = scratch->stop};
	struct leat_err why;
	enum leat_status status = decoder_of(source, scratch, &decoder, err);

	if (status == LEAT_OK)
		status = leat_parquet_part_of(source, (size_t)to->number, extent->length ? bytes : NULL, &part, err);
	if (status != LEAT_OK)
		return status;
	to->len = (size_t)lay_out(table, (size_t)to->number, to->bytes, &rows.fault, place);
	memset(rows.fault, 0, (size_t)rows.count * sizeof(*rows.fault));
	leat_err_clear(&why);
	status = leat_parquet_decode(decoder, &part, &table->columns, &rows, &why);
	if (status == LEAT_DATA) {
		leat_parquet_set_fault(source, (size_t)to->number, why.text);
		to->fault = table->unit[to->number].fault;
		return to->fault ? LEAT_OK : leat_fail_as(err, &why);
	}
	return status == LEAT_OK ? status : leat_fail_as(err, &why);
}

/* ---- opening ---- */

/* Half of the memory, or at least what the workers' decoders and that of large samples would take if the table were not
 * kept. So a small table is kept whatever the memory is, and the least memory that a feed needs grows with the table.
 */
static size_t
room_for_table(const struct leat_source *source, unsigned threads)
{
	const struct leat_parquet *table = source->state;
	size_t decoders = leat_parquet_decoder_cost(table->decoder_memory, table->decoder_file), all;

	if (__builtin_mul_overflow(decoders, (size_t)threads + 1, &all) || all < source->mem->limit / 2)
		all = source->mem->limit / 2;
	return all;
}

/* Which rows are of a split is only known once they are decoded. */
static enum leat_status
fail_split(struct leat_source *source, struct leat_err *err)
{
	const struct leat_parquet_params *params = source->params;
	enum leat_status status = leat_parquet_measure_all(source, 1, err);

	if (status != LEAT_OK)
		return status;
	advise(source);
	return leat_fail(err, LEAT_LIMIT,
	                 "split='%s' needs the table in memory: %s, or write each split to its own files with 'leat "
	                 "shards'",
	                 params->split, source->scatter_remedy);
}

static enum leat_status
open_table(struct leat_source *source, const struct leat_strings *patterns, unsigned threads, struct leat_err *err)
{
	const struct leat_parquet_params *params = source->params;
	struct leat_parquet *table;
	enum leat_status status;
	struct leat_err why;

	table = source->state = leat_alloc(source->mem, sizeof(*table));
	if (!table)
		return leat_fail_mem(err, source->mem, sizeof(*table), "a Parquet table");
	status = leat_parquet_open(source, patterns, threads, err);
	if (status != LEAT_OK)
		return status;
	leat_err_clear(&why);
	status = params->keep ? LEAT_LIMIT : leat_parquet_keep(source, threads, room_for_table(source, threads), &why);
	if (status == LEAT_LIMIT && *params->split)
		return fail_split(source, err);
	if (status == LEAT_LIMIT)
		return use_units(source, threads, err);
	if (status != LEAT_OK)
		return leat_fail_as(err, &why);
	leat_source_longest(source, 0, longest_row(table));
	return LEAT_OK;
}

enum leat_status
leat_parquet_source_open(struct leat_source *source, const struct leat_strings *patterns, unsigned threads,
                         struct leat_err *err)
{
	enum leat_status status = open_table(source, patterns, threads, err);

	if (status != LEAT_OK)
		leat_parquet_close(source);
	return status;
}

static enum leat_status
open_source(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	return leat_parquet_source_open(source, &((const struct leat_parquet_params *)source->params)->patterns,
	                                threads, err);
}

/* ---- samples ---- */

/* Values of a ragged column in a row, which may be the `first` of its unit. */
static unsigned char *
ragged_row(const struct leat_parquet_place *place, unsigned char *values, uint64_t row, bool first, size_t *len)
{
	static const uint64_t none;
	uint64_t begin = first ? 0 : place->ends[row - 1];

	*len = (size_t)(place->ends[row] - begin);
	return values ? values + begin : (unsigned char *)(uintptr_t)&none;
}

/* The row of a sample. */
static uint64_t
row_of(const struct leat_parquet *table, uint64_t sample)
{
	return table->pick ? table->pick[sample] : sample;
}

static uint64_t
row_bytes(const struct leat_parquet *table, size_t unit, uint64_t row)
{
	uint64_t bytes = table->dense_bytes;
	size_t len;

	for (size_t i = 0; table->columns.ragged && i < table->columns.count; i++)
		if (!table->columns.column[i].row_bytes) {
			ragged_row(&table->place[i], NULL, row, row == table->row[unit], &len);
			bytes += len;
		}
	return bytes;
}

static void
locate(const struct leat_source *source, uint64_t sample, struct leat_extent *extent)
{
	struct leat_parquet *table = source->state;
	const struct leat_parquet_unit *u;

	sample = row_of(table, sample);
	if (sample < table->row[table->last] || sample >= table->row[table->last + 1])
		table->last = leat_parquet_unit_of(table, sample);
	u = &table->unit[table->last];
	*extent = (struct leat_extent){.file = u->file, .offset = u->offset, .damaged = !table->whole && u->fault};
	if (table->whole) {
		extent->lent = row_bytes(table, table->last, sample);
		return;
	}
	extent->lent = table->dense_bytes + u->longest;
	if (extent->lent > source->max_bytes)
		extent->lent = source->max_bytes; /* unpack knows the row's length */
	extent->in_unit = !extent->damaged;
	extent->unit = table->last;
}

/* Of a table kept whole, all rows are in memory. */
static enum leat_status
touch(const struct leat_source *source, const uint64_t *sample, size_t count, int flags, struct leat_err *err)
{
	(void)source, (void)sample, (void)count, (void)flags, (void)err;
	return LEAT_OK;
}

/* Bad rows are found by unpacking. */
static bool
rows(const struct leat_source *source, int field, struct leat_row_form *form)
{
	const struct leat_parquet *table = source->state;
	const struct leat_parquet_column *column = &table->columns.column[field];

	if (!table->whole || table->faults || !column->row_bytes)
		return false;
	*form = (struct leat_row_form){column->dtype, column->row_bytes / leat_dtype_size(column->dtype),
	                               column->offset, table->columns.stride};
	return true;
}

static void
rows_at(const struct leat_source *source, int field, const uint64_t *sample, size_t count, const unsigned char **at)
{
	const struct leat_parquet *table = source->state;
	const unsigned char *values = table->place[field].values;
	size_t stride = table->columns.stride;

	for (size_t i = 0; i < count; i++)
		at[i] = values + row_of(table, sample[i]) * stride;
}

static enum leat_status
fail_row(const struct leat_source *source, size_t unit, uint64_t row, unsigned fault, struct leat_err *err)
{
	const struct leat_parquet *table = source->state;
	const struct leat_parquet_unit *u = &table->unit[unit];
	const struct leat_parquet_column *column = &table->columns.column[fault / LEAT_PARQUET_FAULTS];
	const char *uri = leat_files_at(source->files, u->file)->uri;
	unsigned long long in_file = leat_parquet_row_in_file(table, unit, row);
	bool floats = column->dtype == LEAT_F32 || column->dtype == LEAT_F64;

	if (fault % LEAT_PARQUET_FAULTS == LEAT_PARQUET_LENGTH)
		return leat_fail(err, LEAT_DATA,
		                 "'%s', row %llu: column '%s' has another length than the %zu that columns=[...] says",
		                 uri, in_file, column->name, column->row_bytes / leat_dtype_size(column->dtype));
	return leat_fail(err, LEAT_DATA,
	                 "'%s', row %llu: column '%s' %s null; use null=zero%s, or replace nulls when you write the "
	                 "table",
	                 uri, in_file, column->name,
	                 fault % LEAT_PARQUET_FAULTS == LEAT_PARQUET_HAS_NULL ? "has an element that is" : "is",
	                 floats ? " or null=nan" : "");
}

static enum leat_status
fail_unit(const struct leat_source *source, size_t unit, uint64_t row, struct leat_err *err)
{
	const struct leat_parquet *table = source->state;
	const struct leat_parquet_unit *u = &table->unit[unit];

	return leat_fail(err, LEAT_DATA, "'%s', row %llu: row group %u is damaged: %s",
	                 leat_files_at(source->files, u->file)->uri,
	                 (unsigned long long)leat_parquet_row_in_file(table, unit, row), u->group,
	                 (const char *)u->fault);
}

/* Fields of row `row` of what `place` holds, which begins with a unit's row if `first`. */
static uint64_t
set_fields(const struct leat_parquet *table, const struct leat_parquet_place *place, unsigned char *const *ragged,
           uint64_t row, bool first, struct leat_sample *sample)
{
	uint64_t bytes = table->dense_bytes;

	sample->count = (int)table->fields;
	for (size_t i = 0; i < table->fields; i++) {
		const struct leat_parquet_column *column = &table->columns.column[i];
		struct leat_datum *datum = &sample->field[i];
		size_t len = column->row_bytes;

		*datum = (struct leat_datum){.dtype = column->dtype, .ndim = column->ndim, .borrowed = true};
		memcpy(datum->shape, column->shape, sizeof(datum->shape));
		if (column->row_bytes) {
			datum->data = place[i].values + row * table->columns.stride;
			continue;
		}
		datum->data = ragged_row(&place[i], ragged ? *ragged++ : place[i].values, row, first, &len);
		datum->ndim = 1;
		datum->shape[0] = (int64_t)(len / leat_dtype_size(column->dtype));
		bytes += len;
	}
	return bytes;
}

/* Worker threads. */
static enum leat_status
unpack(const struct leat_source *source, const struct leat_raw *raw, struct leat_scratch *scratch,
       struct leat_sample *sample, struct leat_err *err)
{
	const struct leat_parquet *table = source->state;
	struct leat_parquet_place place[LEAT_MAX_FIELDS + 1];
	uint64_t at = row_of(table, raw->index), bytes;
	size_t number = leat_parquet_unit_of(table, at);
	uint64_t row = at - table->row[number];
	uint16_t *fault = table->fault;
	struct leat_extent extent = raw->extent;

	(void)scratch;
	if (table->whole) {
		if (fault[at] == LEAT_PARQUET_DAMAGED)
			return fail_unit(source, number, at, err);
		if (fault[at])
			return fail_row(source, number, at, fault[at], err);
		set_fields(table, table->place, table->ragged + number * table->columns.ragged, at, row == 0, sample);
		return LEAT_OK;
	}
	if (extent.damaged || raw->unit->fault)
		return fail_unit(source, number, at, err);
	lay_out(table, number, raw->unit->bytes, &fault, place);
	if (fault[row])
		return fail_row(source, number, at, fault[row], err);
	bytes = set_fields(table, place, NULL, row, row == 0, sample);
	if (bytes <= source->max_bytes)
		return LEAT_OK;
	extent.lent = bytes;
	extent.in_unit = false; /* its offset is in the file */
	return leat_source_fail_oversized(source, &extent, err);
}

/* The parts that `parquet` and `table` share. */
#define CALLBACKS                                                                                                      \
	.close = leat_parquet_close, .locate = locate, .touch = touch, .rows = rows, .rows_at = rows_at,               \
	.unpack = unpack, .unit = unit, .decode = decode

const struct leat_source_kind leat_source_parquet = {
	.name = "parquet",
	.doc = "Read Parquet tables, one row per sample, one field per column: numbers and bools keep their type, "
	       "dates "
	       "and timestamps become int64 microseconds since 1970, decimals float64; text and binary become bytes, "
	       "and lists of numbers ragged fields. Needs DuckDB.",
	.example = "parquet('train-*.parquet', columns=[user, amount])",
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct leat_parquet_params),
	.open = open_source,
	CALLBACKS,
};

/* ---- tables of steps ---- */

static const struct leat_opt step_options[] = {
	LEAT_OPT_(struct leat_parquet_params, step, LEAT_OPT_STRING, LEAT_REQUIRED, 0, 0, NULL,
                  "step or loaded source of leat.yaml, whose last result is read", LEAT_OPT_LOCATION),
	LEAT_OPT_(struct leat_parquet_params, project, LEAT_OPT_STRING, "", 0, 0, NULL,
                  "folder with leat.yaml; default: the nearest one, from the current folder upwards",
                  LEAT_OPT_NAMED | LEAT_OPT_LOCATION),
	LEAT_PARQUET_OPTIONS(struct leat_parquet_params),
	LEAT_OPT_END,
};

static enum leat_status
open_step(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	struct leat_strings files = {0};
	enum leat_status status = leat_parquet_step_files(source->params, &files, source->mem, err);

	if (status == LEAT_OK)
		status = leat_parquet_source_open(source, &files, threads, err);
	for (size_t i = 0; i < files.count; i++)
		leat_free(source->mem, (void *)(uintptr_t)files.value[i]);
	leat_free(source->mem, files.value);
	return status;
}

const struct leat_source_kind leat_source_table = {
	.name = "table",
	.doc = "Read the last result of a step of leat.yaml as a table, as `parquet` reads files: the rows of a sql "
               "step, the "
	       "features of a features step, the records of a loaded source. Needs DuckDB.",
	.example = "table(feats, split=train, columns=[amount, label])",
	.version = 1,
	.opts = step_options,
	.params_size = sizeof(struct leat_parquet_params),
	.open = open_step,
	CALLBACKS,
};
