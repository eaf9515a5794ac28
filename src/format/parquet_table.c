/* parquet_table.c - decode all of a Parquet table at open, or measure its text and lists
 *
 * Both go over all units, on several threads with a decoder each. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "base/threads.h"
#include "format/parquet.h"

/* What the threads share. */
struct job {
	struct leat_source *source;
	unsigned threads;
	struct leat_parquet_decoder **decoder; /* of each thread; taken and given back under `lock` */
	pthread_mutex_t lock;
	atomic_size_t left; /* bytes that ragged values may still take */
};

/* ---- decoders ---- */

static void
free_decoders(struct job *job)
{
	for (unsigned i = 0; job->decoder && i < job->threads; i++)
		leat_parquet_decoder_close(job->decoder[i]);
	leat_free(job->source->mem, job->decoder);
	pthread_mutex_destroy(&job->lock);
}

/* As many threads as there are units, and as decoders fit in memory beside `more` bytes; at least one. */
static enum leat_status
make_decoders(struct job *job, struct leat_source *source, unsigned threads, size_t more, struct leat_err *err)
{
	const struct leat_parquet *table = source->state;
	size_t each = leat_parquet_decoder_cost(table->decoder_memory, table->decoder_file);
	size_t taken = leat_mem_counted(source->mem) + more;
	size_t most = source->mem->limit > taken ? source->mem->limit - taken : 0;
	enum leat_status status = LEAT_OK;

	*job = (struct job){.source = source, .threads = threads};
	pthread_mutex_init(&job->lock, NULL);
	if (job->threads > table->units)
		job->threads = (unsigned)table->units;
	if (job->threads > most / each)
		job->threads = (unsigned)(most / each);
	job->threads += !job->threads;
	job->decoder = leat_alloc_array(source->mem, job->threads, sizeof(*job->decoder));
	if (!job->decoder)
		return leat_fail_mem(err, source->mem, job->threads * sizeof(*job->decoder), "decoding Parquet");
	for (unsigned i = 0; i < job->threads && status == LEAT_OK; i++)
		status = leat_parquet_decoder_open(&job->decoder[i], table->decoder_memory, table->decoder_file,
		                                   source->mem, err);
	return status;
}

/* There are as many decoders as threads. */
static struct leat_parquet_decoder *
take(struct job *job)
{
	struct leat_parquet_decoder *decoder = NULL;

	pthread_mutex_lock(&job->lock);
	for (unsigned i = 0; i < job->threads && !decoder; i++) {
		decoder = job->decoder[i];
		job->decoder[i] = NULL;
	}
	pthread_mutex_unlock(&job->lock);
	return decoder;
}

static void
give(struct job *job, struct leat_parquet_decoder *decoder)
{
	unsigned i = 0;

	pthread_mutex_lock(&job->lock);
	while (job->decoder[i])
		i++;
	job->decoder[i] = decoder;
	pthread_mutex_unlock(&job->lock);
}

/* ---- the whole table ---- */

void
leat_parquet_keep_free(struct leat_source *source)
{
	struct leat_parquet *table = source->state;

	for (size_t i = 0; table->ragged && i < table->units * table->columns.ragged; i++)
		leat_free(source->mem, table->ragged[i]);
	leat_free(source->mem, table->ragged);
	for (size_t i = 0; table->place && i < table->columns.count; i++)
		leat_free(source->mem, table->place[i].ends);
	leat_free(source->mem, table->place);
	leat_free(source->mem, table->dense);
	table->dense = NULL;
	leat_free(source->mem, table->fault);
	table->ragged = NULL;
	table->place = NULL;
	table->fault = NULL;
	table->faults = false;
}

/* Rows in random order would miss the TLB as often as the cache. */
static void
ask_for_huge_pages(unsigned char *block, size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), before = -(uintptr_t)block % page;

	if (len > before + page)
		(void)madvise(block + before, (len - before) / page * page, MADV_HUGEPAGE); /* may fail */
}

static enum leat_status
allocate(struct leat_source *source, struct leat_err *err)
{
	struct leat_parquet *table = source->state;
	const struct leat_parquet_columns *columns = &table->columns;
	bool ok;

	table->dense = leat_alloc_array(source->mem, source->count, columns->stride);
	if (table->dense)
		ask_for_huge_pages(table->dense, source->count * columns->stride);
	table->place = leat_alloc_array(source->mem, columns->count, sizeof(*table->place));
	table->fault = leat_alloc_array(source->mem, source->count, sizeof(*table->fault));
	table->ragged = leat_alloc_array(source->mem, table->units * columns->ragged, sizeof(*table->ragged));
	ok = table->dense && table->place && table->fault && table->ragged;
	for (size_t i = 0; ok && i < columns->count; i++) {
		struct leat_parquet_place *place = &table->place[i];

		if (columns->column[i].row_bytes)
			place->values = table->dense + columns->column[i].offset;
		else
			place->ends = leat_alloc_array(source->mem, source->count, sizeof(*place->ends));
		ok = place->values || place->ends;
	}
	return ok ? LEAT_OK : leat_fail_mem(err, source->mem, source->count * columns->stride, "the decoded table");
}

/* More room for ragged values, as long as the table fits. */
static enum leat_status
grow(void *arg, struct leat_parquet_place *place, size_t more, struct leat_err *err)
{
	struct job *job = arg;
	size_t before = place->room, left = atomic_load(&job->left);
	enum leat_status status = LEAT_GROW_RAW(job->source->mem, place->values, place->room, place->used + more,
	                                        SIZE_MAX, "the decoded table", err);

	if (status != LEAT_OK)
		return status;
	do
		if (place->room - before > left)
			return LEAT_LIMIT;
	while (!atomic_compare_exchange_weak(&job->left, &left, left - (place->room - before)));
	return LEAT_OK;
}

/* Where the rows of a unit go. */
static void
set_places(const struct leat_parquet *table, size_t unit, struct leat_parquet_place *to)
{
	uint64_t row = table->row[unit];

	for (size_t i = 0; i < table->columns.count; i++) {
		bool dense = table->columns.column[i].row_bytes > 0;

		to[i] = (struct leat_parquet_place){
			.values = dense ? table->place[i].values + row * table->columns.stride : NULL,
			.ends = dense ? NULL : table->place[i].ends + row,
		};
	}
}

/* Keeps ragged values in blocks of their size. */
static void
take_ragged(struct leat_source *source, size_t unit, struct leat_parquet_place *place)
{
	struct leat_parquet *table = source->state;
	unsigned char **ragged = table->ragged + unit * table->columns.ragged;

	for (size_t i = 0; i < table->columns.count; i++) {
		unsigned char *values = place[i].values, *less;

		if (table->columns.column[i].row_bytes)
			continue;
		less = place[i].used < place[i].room ? leat_realloc_raw(source->mem, values, place[i].used) : values;
		*ragged++ = less ? less : values;
	}
}

static void
mark_damaged(struct leat_parquet *table, size_t unit)
{
	for (uint64_t row = table->row[unit]; row < table->row[unit + 1]; row++)
		table->fault[row] = LEAT_PARQUET_DAMAGED;
	for (size_t i = 0; i < table->columns.count; i++)
		if (table->place[i].ends)
			memset(table->place[i].ends + table->row[unit], 0,
			       (size_t)(table->row[unit + 1] - table->row[unit]) * sizeof(uint64_t));
}

static enum leat_status
decode_unit(struct job *job, size_t unit, struct leat_parquet_place *place, struct leat_err *err)
{
	struct leat_source *source = job->source;
	struct leat_parquet *table = source->state;
	struct leat_parquet_rows rows = {
		.count = table->row[unit + 1] - table->row[unit],
		.place = place,
		.fault = table->fault + table->row[unit],
		.grow = grow,
		.arg = job,
	};
	struct leat_parquet_decoder *decoder;
	struct leat_parquet_part part;
	enum leat_status status;

	set_places(table, unit, place);
	status = leat_parquet_part_of(source, unit, NULL, &part, err);
	if (status != LEAT_OK)
		return status;
	decoder = take(job);
	status = leat_parquet_decode(decoder, &part, &table->columns, &rows, err);
	give(job, decoder);
	table->unit[unit].longest = rows.longest;
	take_ragged(source, unit, place);
	return status;
}

/* Damage is not an error here: it is that of the samples. */
static enum leat_status
keep_unit(void *arg, size_t unit, struct leat_err *err)
{
	struct job *job = arg;
	struct leat_parquet *table = job->source->state;
	struct leat_parquet_place *place;
	enum leat_status status;
	struct leat_err why;

	if (table->unit[unit].fault) {
		mark_damaged(table, unit);
		return LEAT_OK;
	}
	place = leat_alloc_array(job->source->mem, table->columns.count, sizeof(*place));
	if (!place)
		return leat_fail_mem(err, job->source->mem, table->columns.count * sizeof(*place), "the decoded table");
	leat_err_clear(&why);
	status = decode_unit(job, unit, place, &why);
	leat_free(job->source->mem, place);
	if (status == LEAT_DATA) {
		leat_parquet_set_fault(job->source, unit, why.text);
		mark_damaged(table, unit);
		return LEAT_OK;
	}
	return status == LEAT_OK || status == LEAT_LIMIT ? status : leat_fail_as(err, &why);
}

/* Bytes of the table, without ragged values. */
static bool
fits(const struct leat_source *source, size_t most, size_t *left)
{
	const struct leat_parquet *table = source->state;
	uint64_t row = table->columns.stride + table->columns.ragged * sizeof(uint64_t) + sizeof(uint16_t), bytes;

	if (__builtin_mul_overflow(row, source->count, &bytes) || bytes > most)
		return false;
	*left = most - (size_t)bytes;
	return true;
}

/* Samples are the rows whose last, hidden column is 1. Rows of a damaged unit may be, too: they are bad. */
static enum leat_status
pick_rows(struct leat_source *source, struct leat_err *err)
{
	struct leat_parquet *table = source->state;
	const unsigned char *is = table->place[table->fields].values;
	uint64_t rows = source->count, count = 0;

	for (uint64_t row = 0; row < rows; row++)
		count += is[row * table->columns.stride] || table->fault[row] == LEAT_PARQUET_DAMAGED;
	if (!count)
		return leat_fail(err, LEAT_DATA, "split='%s': no row has this value in the column 'split'",
		                 ((const struct leat_parquet_params *)source->params)->split);
	table->pick = leat_alloc_array(source->mem, count, sizeof(*table->pick));
	if (!table->pick)
		return leat_fail_mem(err, source->mem, count * sizeof(*table->pick), "the rows of a split");
	source->count = 0;
	memset(table->first, 0, (leat_files_count(source->files) + 1) * sizeof(*table->first));
	for (size_t unit = 0; unit < table->units; unit++) {
		for (uint64_t row = table->row[unit]; row < table->row[unit + 1]; row++)
			if (is[row * table->columns.stride] || table->fault[row] == LEAT_PARQUET_DAMAGED)
				table->pick[source->count++] = row;
		table->first[table->unit[unit].file + 1] = source->count;
	}
	for (size_t i = 1; i <= leat_files_count(source->files); i++) /* files without units */
		if (!table->first[i])
			table->first[i] = table->first[i - 1];
	return LEAT_OK;
}

enum leat_status
leat_parquet_keep(struct leat_source *source, unsigned threads, size_t most, struct leat_err *err)
{
	struct leat_parquet *table = source->state;
	struct job job = {.source = source};
	enum leat_status status;
	size_t left;

	if (!fits(source, most, &left))
		return LEAT_LIMIT;
	status = allocate(source, err);
	if (status == LEAT_OK)
		status = make_decoders(&job, source, threads, left, err);
	if (status == LEAT_OK) {
		atomic_store(&job.left, left);
		status = leat_parallel(source->mem, job.threads, table->units, keep_unit, &job, err);
	}
	free_decoders(&job);
	if (status == LEAT_OK && table->columns.count > table->fields)
		status = pick_rows(source, err);
	for (uint64_t i = 0; status == LEAT_OK && i < source->count && !table->faults; i++)
		table->faults = table->fault[table->pick ? table->pick[i] : i];
	if (status != LEAT_OK)
		leat_parquet_keep_free(source);
	else
		table->whole = true;
	return status;
}

/* ---- measuring ---- */

static enum leat_status
measure_unit(void *arg, size_t unit, struct leat_err *err)
{
	struct job *job = arg;
	struct leat_parquet *table = job->source->state;
	uint64_t *bytes = table->ragged_bytes + unit * table->columns.ragged;
	struct leat_parquet_decoder *decoder;
	struct leat_parquet_part part;
	enum leat_status status;
	struct leat_err why;

	if (table->unit[unit].fault)
		return LEAT_OK;
	leat_err_clear(&why);
	status = leat_parquet_part_of(job->source, unit, NULL, &part, &why);
	if (status != LEAT_OK)
		return leat_fail_as(err, &why);
	decoder = take(job);
	status = leat_parquet_measure(decoder, &part, &table->columns, bytes, &table->unit[unit].longest, &why);
	give(job, decoder);
	if (status != LEAT_DATA)
		return status == LEAT_OK ? status : leat_fail_as(err, &why);
	leat_parquet_set_fault(job->source, unit, why.text);
	return LEAT_OK;
}

enum leat_status
leat_parquet_measure_all(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	struct leat_parquet *table = source->state;
	struct job job = {.source = source};
	enum leat_status status;

	table->ragged_bytes =
		leat_alloc_array(source->mem, table->units * table->columns.ragged, sizeof(*table->ragged_bytes));
	if (!table->ragged_bytes)
		return leat_fail_mem(err, source->mem, table->units * sizeof(*table->ragged_bytes), "the row groups");
	if (!table->columns.ragged || !table->units)
		return LEAT_OK;
	status = make_decoders(&job, source, threads, 0, err);
	if (status == LEAT_OK)
		status = leat_parallel(source->mem, job.threads, table->units, measure_unit, &job, err);
	free_decoders(&job);
	return status;
}
