/* shards_write.c - rows of a part to shards, in their order or shuffled
 *
 * Row i of the part goes to position i, or to perm(i), a permutation that the seed chooses (base/rng.h). Shard s of n
 * has positions [s * rows / n, (s + 1) * rows / n). So nothing depends on threads or memory.
 *
 * The main thread reads chunks, while DuckDB's threads prepare the next ones, and makes records of them. Records go to
 * leat_reorder; when all are there, each shard is written by any of the threads. Only records that are in order and
 * need no more work, TFRecord without compression, go straight to the current shard. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/rng.h"
#include "base/threads.h"
#include "cli/shards.h"

enum { BUFFER = 256 * 1024, MIN_BUFFER = 4096, MAX_SQL = 256 << 20, TELL = 1024 };

enum leat_status
leat_shards_go_on(const struct leat_shard_job *job, struct leat_err *err)
{
	if (!atomic_load_explicit(&job->stopped, memory_order_relaxed))
		return LEAT_OK;
	leat_err_clear(err);
	return leat_fail(err, LEAT_CANCELLED, "stopped; nothing was written");
}

bool
leat_shards_pack(const struct leat_shard_job *job)
{
	return job->format != &leat_shard_tfrecord || *job->p->images;
}

/* Do records go to the shards as they come? */
static bool
is_direct(const struct leat_shard_job *job)
{
	return job->p->seed < 0 && !leat_shards_pack(job) && job->compression == LEAT_COMPRESS_NONE;
}

static void
count_rows(struct leat_shard_job *job, uint64_t rows)
{
	unsigned times = is_direct(job) ? 1 : 2;

	pthread_mutex_lock(&job->lock);
	job->done += rows;
	leat_progress_at(&job->progress, job->done / times, job->rows);
	pthread_mutex_unlock(&job->lock);
}

/* ---- one shard ---- */

/* All buffers of all threads take a small part of the memory. */
static size_t
buffer_size(const struct leat_shard_job *job)
{
	size_t share = job->memory / 16 / job->threads / job->sets_per_part;

	return share > BUFFER ? BUFFER : share < MIN_BUFFER ? MIN_BUFFER : share;
}

static enum leat_status
open_file(struct leat_shard *shard, size_t f, struct leat_err *err)
{
	struct leat_outputs *outputs = &shard->part->set[f];
	enum leat_status status = leat_outputs_open_shard(outputs, shard->number, outputs->count, err);

	shard->file[f].out = outputs->file[shard->number];
	shard->file[f].buffer = leat_alloc(shard->job->mem, shard->buffer);
	if (status == LEAT_OK && !shard->file[f].buffer)
		status = leat_fail_mem(err, shard->job->mem, shard->buffer, "the buffer of a shard");
	return status;
}

/* Close it also after a failure. */
static enum leat_status
open_shard(struct leat_shard *shard, struct leat_shard_job *job, struct leat_shard_part *part, size_t number,
           struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	*shard = (struct leat_shard){.job = job, .part = part, .number = number, .files = job->sets_per_part};
	shard->buffer = buffer_size(job);
	shard->first = leat_group_begin(part->rows, part->count, number);
	shard->rows = leat_group_begin(part->rows, part->count, number + 1) - shard->first;
	shard->file = leat_alloc_array(job->mem, shard->files, sizeof(*shard->file));
	shard->value = leat_alloc_array(job->mem, job->table.columns, sizeof(*shard->value));
	if (part->index) {
		shard->index = &part->index[number];
		leat_index_init(shard->index, job->mem);
	}
	if (!shard->file || !shard->value)
		return leat_fail_mem(err, job->mem, shard->files * sizeof(*shard->file), "a shard");
	for (size_t f = 0; f < shard->files && status == LEAT_OK; f++)
		status = open_file(shard, f, err);
	if (status == LEAT_OK && *job->p->images)
		status = leat_shard_image_open(&shard->image, job, err);
	return status;
}

static enum leat_status
flush(struct leat_shard *shard, size_t f, struct leat_err *err)
{
	struct leat_shard_file *file = &shard->file[f];
	enum leat_status status = leat_shards_go_on(shard->job, err);

	if (status == LEAT_OK)
		status = leat_write(file->out, file->buffer, file->used, err);
	file->used = 0;
	return status;
}

uint64_t
leat_shard_size(const struct leat_shard *shard, size_t f)
{
	return shard->file[f].out->size + shard->file[f].used;
}

enum leat_status
leat_shard_put(struct leat_shard *shard, size_t f, const void *bytes, size_t len, struct leat_err *err)
{
	struct leat_shard_file *file = &shard->file[f];
	const unsigned char *from = bytes;

	/* Whole buffers only: what is written in smaller pieces is copied once more (store/file_write.c). */
	while (len >= shard->buffer - file->used) {
		size_t piece = shard->buffer - file->used;
		enum leat_status status;

		memcpy(file->buffer + file->used, from, piece);
		file->used += piece;
		from += piece;
		len -= piece;
		status = flush(shard, f, err);
		if (status != LEAT_OK)
			return status;
	}
	if (len)
		memcpy(file->buffer + file->used, from, len);
	file->used += len;
	return LEAT_OK;
}

static void
tell(struct leat_shard *shard)
{
	count_rows(shard->job, shard->taken - shard->told);
	shard->told = shard->taken;
}

enum leat_status
leat_shard_record(struct leat_shard *shard, const void **record, size_t *len, struct leat_err *err)
{
	enum leat_status status = leat_reorder_next(shard->cursor, record, len, err);

	shard->taken += status == LEAT_OK;
	if (shard->taken - shard->told >= TELL || status == LEAT_END) {
		tell(shard);
		if (leat_shards_go_on(shard->job, err) != LEAT_OK)
			status = LEAT_CANCELLED;
	}
	return status;
}

static enum leat_status
read_image(struct leat_shard *shard, struct leat_shard_value *value, uint64_t row, struct leat_err *err)
{
	const void *bytes;
	enum leat_status status =
		leat_shard_image_read(shard->image, value->bytes, value->len, &bytes, &value->len, err);

	value->bytes = bytes;
	return status == LEAT_OK || status == LEAT_CANCELLED ? status : leat_err_in(err, "row %" PRIu64, row + 1);
}

enum leat_status
leat_shard_row(struct leat_shard *shard, struct leat_err *err)
{
	const struct leat_shard_table *table = &shard->job->table;
	const void *record;
	uint64_t row;
	size_t len;
	enum leat_status status = leat_shard_record(shard, &record, &len, err);

	if (status != LEAT_OK)
		return status;
	row = leat_shard_unpack(table, record, shard->value);
	for (size_t i = 0; shard->image && i < table->columns && status == LEAT_OK; i++)
		if (table->column[i].is_image)
			status = read_image(shard, &shard->value[i], row, err);
	return status;
}

static enum leat_status
finish_file(struct leat_shard *shard, size_t f, struct leat_err *err)
{
	enum leat_status status = shard->file[f].used ? flush(shard, f, err) : LEAT_OK;

	if (status == LEAT_OK)
		status = leat_write_finish(shard->file[f].out, shard->job->p->plain ? 0 : LEAT_COMMIT_SYNC, err);
	return status;
}

/* Call it also after a failure, whose status is given. */
static enum leat_status
close_shard(struct leat_shard *shard, enum leat_status status, struct leat_err *err)
{
	for (size_t f = 0; f < shard->files && status == LEAT_OK; f++)
		status = finish_file(shard, f, err);
	if (status == LEAT_OK && shard->index)
		status = leat_index_end(shard->index, shard->file[0].out->size, err);
	for (size_t f = 0; shard->file && f < shard->files; f++)
		leat_free(shard->job->mem, shard->file[f].buffer);
	leat_free(shard->job->mem, shard->file);
	leat_free(shard->job->mem, shard->value);
	leat_reorder_end(shard->cursor);
	leat_shard_image_close(shard->image);
	*shard = (struct leat_shard){.job = shard->job};
	return status;
}

/* ---- rows ---- */

/* Where records go while the table is read. */
struct rows {
	struct leat_shard_job *job;
	struct leat_shard_part *part;
	struct leat_shard_rows made; /* of the current chunk */
	uint64_t read, kept;         /* rows before it; those of them that are written */
	/* direct: */
	struct leat_shard shard; /* `file` is NULL: none is open */
	size_t next;             /* shard */
	uint64_t end;            /* first row of the next shard */
	/* else: */
	struct leat_reorder *reorder;
	struct leat_perm perm;
	uint64_t *position;
	size_t position_cap;
};

static enum leat_status
next_shard(struct rows *rows, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	if (rows->shard.file)
		status = close_shard(&rows->shard, LEAT_OK, err);
	if (status == LEAT_OK)
		status = open_shard(&rows->shard, rows->job, rows->part, rows->next, err);
	rows->end = leat_group_begin(rows->part->rows, rows->part->count, ++rows->next);
	return status;
}

/* Rows [from, to) of the chunk, which follow each other in memory. */
static enum leat_status
write_run(struct rows *rows, size_t from, size_t to, struct leat_err *err)
{
	const struct leat_shard_rows *made = &rows->made;
	struct leat_shard *shard = &rows->shard;
	uint64_t at = shard->file->out->size - made->offset[from];
	enum leat_status status = LEAT_OK;

	for (size_t i = from; shard->index && i < to && status == LEAT_OK; i++)
		status = leat_index_add(shard->index, at + made->offset[i], false, err);
	if (status == LEAT_OK)
		status = leat_write(shard->file->out, made->bytes + made->offset[from],
		                    made->offset[to - 1] + made->len[to - 1] - made->offset[from], err);
	return status;
}

static enum leat_status
write_in_order(struct rows *rows, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0, to; i < rows->made.rows && status == LEAT_OK; i = to) {
		if (rows->read + i == rows->end)
			status = next_shard(rows, err);
		to = rows->made.rows;
		if (to > rows->end - rows->read)
			to = (size_t)(rows->end - rows->read);
		if (status == LEAT_OK)
			status = write_run(rows, i, to, err);
	}
	return status;
}

/* Shuffled next to the result, which needs as much room, or in the usual folder for temporary files. */
enum leat_status
leat_shards_spill_folder(const struct leat_shard_job *job, char **folder, struct leat_err *err)
{
	const char *temp = secure_getenv("TMPDIR");

	if (job->set->store->kind->remote)
		*folder = leat_strdup(job->mem, temp && *temp ? temp : "/var/tmp");
	else
		*folder = leat_folder_of(job->set->uri, job->mem);
	return *folder ? LEAT_OK : leat_fail_mem(err, job->mem, strlen(job->set->uri), "a file name");
}

/* The first rows tell how large all may be. */
static enum leat_status
open_reorder(struct rows *rows, struct leat_err *err)
{
	struct leat_shard_job *job = rows->job;
	struct leat_reorder_options options = {
		.count = rows->part->rows,
		.groups = rows->part->count,
		.bytes = (uint64_t)((double)rows->made.total / (double)rows->made.rows * (double)rows->part->rows),
		.memory = job->memory / 3,
		.read_memory = job->memory / 4,
		.threads = job->writers,
		.mem = job->mem,
	};
	char *folder = NULL;
	enum leat_status status = leat_shards_spill_folder(job, &folder, err);

	options.folder = folder;
	if (job->p->seed >= 0)
		leat_perm_init(&rows->perm, rows->part->rows, (uint64_t)job->p->seed, 0, leat_stream("shards", 0));
	if (status == LEAT_OK)
		status = leat_reorder_open(&rows->reorder, &options, err);
	leat_free(job->mem, folder);
	return status;
}

static bool
is_rejected(const struct leat_shard_part *part, uint64_t row)
{
	return part->rejected && part->rejected[row / 64] >> (row % 64) & 1;
}

static enum leat_status
scatter(struct rows *rows, struct leat_err *err)
{
	const struct leat_shard_rows *made = &rows->made;
	enum leat_status status = LEAT_OK;
	size_t kept = 0;

	if (!rows->reorder)
		status = open_reorder(rows, err);
	if (status == LEAT_OK)
		status = LEAT_GROW_RAW(rows->job->mem, rows->position, rows->position_cap, made->rows, SIZE_MAX, "rows",
		                       err);
	if (status != LEAT_OK)
		return status;
	for (size_t i = 0; i < made->rows; i++)
		rows->position[i] = rows->kept + i;
	if (rows->job->p->seed >= 0)
		leat_perm_many(&rows->perm, rows->position, made->rows);
	for (size_t i = 0; i < made->rows && status == LEAT_OK; i++)
		if (!is_rejected(rows->part, rows->read + i))
			status = leat_reorder_add(rows->reorder, rows->position[kept++], made->bytes + made->offset[i],
			                          made->len[i], err);
	rows->kept += kept;
	return status;
}

/* Before a row finds no place. */
static enum leat_status
check_count(const struct rows *rows, uint64_t now, struct leat_err *err)
{
	if (now == rows->part->read)
		return LEAT_OK;
	return leat_fail(err, LEAT_DATA, "the table had %" PRIu64 " rows and now has %s; was it changed?",
	                 rows->part->read, now < rows->part->read ? "fewer" : "more");
}

static enum leat_status
take_chunk(struct rows *rows, const struct leat_chunk *chunk, struct leat_err *err)
{
	struct leat_shard_job *job = rows->job;
	enum leat_status status = leat_shards_go_on(job, err);

	if (status == LEAT_OK && chunk->rows > rows->part->read - rows->read)
		status = check_count(rows, rows->read + chunk->rows, err);
	if (status == LEAT_OK)
		status = (leat_shards_pack(job) ? leat_shard_rows_pack : leat_shard_rows_make)(&rows->made, &job->table,
		                                                                               chunk, rows->read, err);
	if (status == LEAT_OK)
		status = is_direct(job) ? write_in_order(rows, err) : scatter(rows, err);
	rows->read += chunk->rows;
	count_rows(job, chunk->rows);
	return status;
}

static enum leat_status
read_part(struct rows *rows, struct leat_err *err)
{
	struct leat_shard_job *job = rows->job;
	struct leat_query *query = NULL;
	struct leat_chunk chunk;
	enum leat_status status;
	struct leat_str sql;

	leat_str_init(&sql, job->mem, MAX_SQL);
	leat_shard_table_query(&job->table, rows->part, NULL, &sql);
	if (sql.failed)
		status = leat_fail_mem(err, job->mem, sql.len, "a query");
	else
		status = leat_query_open(&query, job->tables, leat_str_text(&sql), err);
	while (status == LEAT_OK && (status = leat_query_next(query, &chunk, err)) == LEAT_OK && chunk.rows)
		status = take_chunk(rows, &chunk, err);
	if (status == LEAT_OK)
		status = check_count(rows, rows->read, err);
	leat_query_close(query);
	leat_str_free(&sql);
	return status;
}

/* ---- all of it ---- */

/* Any thread. */
static enum leat_status
write_shard(void *arg, size_t i, struct leat_err *err)
{
	struct rows *rows = arg;
	struct leat_shard shard;
	enum leat_status status = open_shard(&shard, rows->job, rows->part, i, err);

	if (status == LEAT_OK)
		status = leat_reorder_begin(rows->reorder, i, &shard.cursor, err);
	if (status == LEAT_OK)
		status = rows->job->format->write(&shard, err);
	return close_shard(&shard, status, err);
}

static void
free_rows(struct rows *rows)
{
	if (rows->reorder)
		rows->job->spilled += leat_reorder_spilled(rows->reorder);
	leat_reorder_close(rows->reorder);
	leat_free(rows->job->mem, rows->position);
	leat_shard_rows_free(&rows->made);
}

enum leat_status
leat_shards_write(struct leat_shard_job *job, struct leat_shard_part *part, struct leat_err *err)
{
	struct rows rows = {.job = job, .part = part, .shard = {.job = job}};
	enum leat_status status;

	status = read_part(&rows, err);
	if (rows.shard.file)
		status = close_shard(&rows.shard, status, err);
	leat_shard_rows_free(&rows.made);
	if (status == LEAT_OK && rows.reorder)
		status = leat_parallel(job->mem, job->writers, part->count, write_shard, &rows, err);
	if (status != LEAT_OK && part->name && status != LEAT_CANCELLED)
		leat_err_in(err, "part '%s'", part->name);
	free_rows(&rows);
	return status;
}
