/* shards_write.c - rows of a table to shards, in their order or shuffled
 *
 * Row i of the table goes to position i, or to perm(i), a permutation that the seed chooses (base/rng.h). Shard s of n
 * has positions [s * rows / n, (s + 1) * rows / n). So nothing depends on threads or memory.
 *
 * The main thread reads chunks, while DuckDB's threads prepare the next ones, and makes records of them. In order, they
 * go to the current shard. Shuffled, they go to leat_reorder; when all are there, each shard is written by any of the
 * threads. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/rng.h"
#include "base/threads.h"
#include "cli/shards.h"
#include "format/record.h"
#include "format/reorder.h"

enum { BUFFER = 256 * 1024, MAX_SQL = 256 << 20 };

enum leat_status
leat_shards_go_on(const struct leat_shard_job *job, struct leat_err *err)
{
	if (!atomic_load_explicit(&job->stopped, memory_order_relaxed))
		return LEAT_OK;
	leat_err_clear(err);
	return leat_fail(err, LEAT_CANCELLED, "stopped; nothing was written");
}

/* Others may interrupt the tables until then. */
void
leat_shards_close_tables(struct leat_shard_job *job)
{
	struct leat_tables *tables;

	pthread_mutex_lock(&job->lock);
	tables = job->tables;
	job->tables = NULL;
	pthread_mutex_unlock(&job->lock);
	leat_tables_close(tables);
}

static void
count_rows(struct leat_shard_job *job, uint64_t rows)
{
	unsigned times = job->p->seed < 0 ? 1 : 2;

	pthread_mutex_lock(&job->lock);
	job->done += rows;
	leat_progress_at(&job->progress, job->done / times, job->table.rows);
	pthread_mutex_unlock(&job->lock);
}

/* ---- one shard ---- */

/* A shard that is written, in large pieces. One thread. */
struct shard {
	struct leat_shard_job *job;
	struct leat_writer *out;
	struct leat_index *index; /* NULL: not wanted */
	unsigned char *buffer;
	size_t used;
	uint64_t records; /* in the buffer */
};

static enum leat_status
open_shard(struct shard *shard, struct leat_shard_job *job, size_t i, struct leat_err *err)
{
	enum leat_status status = leat_outputs_open_shard(&job->outputs, i, job->outputs.count, err);

	*shard = (struct shard){.job = job, .out = job->outputs.file[i], .index = job->index ? &job->index[i] : NULL};
	if (status == LEAT_OK && !(shard->buffer = leat_alloc(job->mem, BUFFER)))
		status = leat_fail_mem(err, job->mem, BUFFER, "the buffer of a shard");
	if (shard->index)
		leat_index_init(shard->index, job->mem);
	return status;
}

static enum leat_status
flush(struct shard *shard, struct leat_err *err)
{
	enum leat_status status = leat_shards_go_on(shard->job, err);

	if (status == LEAT_OK)
		status = leat_write(shard->out, shard->buffer, shard->used, err);
	shard->used = 0;
	if (shard->job->p->seed >= 0)
		count_rows(shard->job, shard->records);
	shard->records = 0;
	return status;
}

static enum leat_status
add_record(void *arg, const void *record, size_t len, struct leat_err *err)
{
	struct shard *shard = arg;
	enum leat_status status = LEAT_OK;

	if (len > BUFFER - shard->used)
		status = flush(shard, err);
	if (status == LEAT_OK && shard->index)
		status = leat_index_add(shard->index, shard->out->size + shard->used, false, err);
	if (status != LEAT_OK)
		return status;
	shard->records++;
	if (len > BUFFER)
		return leat_write(shard->out, record, len, err);
	memcpy(shard->buffer + shard->used, record, len);
	shard->used += len;
	return LEAT_OK;
}

/* Call it also after a failure, whose status is given. */
static enum leat_status
close_shard(struct shard *shard, enum leat_status status, struct leat_err *err)
{
	int flags = shard->job->p->plain ? 0 : LEAT_COMMIT_SYNC;

	if (status == LEAT_OK)
		status = flush(shard, err);
	if (status == LEAT_OK && shard->index)
		status = leat_index_end(shard->index, shard->out->size, err);
	if (status == LEAT_OK)
		status = leat_write_finish(shard->out, flags, err);
	leat_free(shard->job->mem, shard->buffer);
	*shard = (struct shard){.job = shard->job};
	return status;
}

/* ---- rows ---- */

/* Where records go while the table is read. */
struct rows {
	struct leat_shard_job *job;
	struct leat_shard_rows made; /* of the current chunk */
	uint64_t read;               /* rows before it */
	/* in order: */
	struct shard shard; /* `out` is NULL: none is open */
	size_t next;        /* shard */
	uint64_t end;       /* first row of the next shard */
	/* shuffled: */
	struct leat_reorder *reorder;
	struct leat_perm perm;
	uint64_t *position;
	size_t position_cap;
};

static enum leat_status
next_shard(struct rows *rows, struct leat_err *err)
{
	struct leat_shard_job *job = rows->job;
	enum leat_status status = LEAT_OK;

	if (rows->shard.out)
		status = close_shard(&rows->shard, LEAT_OK, err);
	if (status == LEAT_OK)
		status = open_shard(&rows->shard, job, rows->next, err);
	rows->end = leat_group_begin(job->table.rows, job->outputs.count, ++rows->next);
	return status;
}

static enum leat_status
write_in_order(struct rows *rows, struct leat_err *err)
{
	const struct leat_shard_rows *made = &rows->made;
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < made->rows && status == LEAT_OK; i++) {
		if (rows->read + i == rows->end)
			status = next_shard(rows, err);
		if (status == LEAT_OK)
			status = add_record(&rows->shard, made->bytes + made->offset[i], made->len[i], err);
	}
	return status;
}

/* Shuffled next to the result, which needs as much room, or in the usual folder for temporary files. */
static enum leat_status
spill_folder(const struct leat_shard_job *job, char **folder, struct leat_err *err)
{
	const char *temp = secure_getenv("TMPDIR");

	if (job->outputs.store->kind->remote)
		*folder = leat_strdup(job->mem, temp && *temp ? temp : "/var/tmp");
	else
		*folder = leat_folder_of(job->outputs.uri, job->mem);
	return *folder ? LEAT_OK : leat_fail_mem(err, job->mem, strlen(job->outputs.uri), "a file name");
}

/* The first rows tell how large all may be. */
static enum leat_status
open_reorder(struct rows *rows, struct leat_err *err)
{
	struct leat_shard_job *job = rows->job;
	struct leat_reorder_options options = {
		.count = job->table.rows,
		.groups = job->outputs.count,
		.bytes = (uint64_t)((double)rows->made.total / (double)rows->made.rows * (double)job->table.rows),
		.memory = job->memory / 3,
		.read_memory = job->memory / 4,
		.threads = job->threads,
		.mem = job->mem,
	};
	char *folder = NULL;
	enum leat_status status = spill_folder(job, &folder, err);

	options.folder = folder;
	leat_perm_init(&rows->perm, job->table.rows, (uint64_t)job->p->seed, 0, leat_stream("shards", 0));
	if (status == LEAT_OK)
		status = leat_reorder_open(&rows->reorder, &options, err);
	leat_free(job->mem, folder);
	return status;
}

static enum leat_status
scatter(struct rows *rows, struct leat_err *err)
{
	const struct leat_shard_rows *made = &rows->made;
	enum leat_status status = LEAT_OK;

	if (!rows->reorder)
		status = open_reorder(rows, err);
	if (status == LEAT_OK)
		status = LEAT_GROW_RAW(rows->job->mem, rows->position, rows->position_cap, made->rows, SIZE_MAX, "rows",
		                       err);
	if (status != LEAT_OK)
		return status;
	for (size_t i = 0; i < made->rows; i++)
		rows->position[i] = rows->read + i;
	leat_perm_many(&rows->perm, rows->position, made->rows);
	for (size_t i = 0; i < made->rows && status == LEAT_OK; i++)
		status = leat_reorder_add(rows->reorder, rows->position[i], made->bytes + made->offset[i], made->len[i],
		                          err);
	return status;
}

/* Before a row finds no place. */
static enum leat_status
check_count(const struct rows *rows, uint64_t now, struct leat_err *err)
{
	if (now == rows->job->table.rows)
		return LEAT_OK;
	return leat_fail(err, LEAT_DATA, "the table had %" PRIu64 " rows and now has %s; was it changed?",
	                 rows->job->table.rows, now < rows->job->table.rows ? "fewer" : "more");
}

static enum leat_status
take_chunk(struct rows *rows, const struct leat_chunk *chunk, struct leat_err *err)
{
	struct leat_shard_job *job = rows->job;
	enum leat_status status = leat_shards_go_on(job, err);

	if (status == LEAT_OK && chunk->rows > job->table.rows - rows->read)
		status = check_count(rows, rows->read + chunk->rows, err);
	if (status == LEAT_OK)
		status = leat_shard_rows_make(&rows->made, &job->table, chunk, rows->read, err);
	if (status == LEAT_OK)
		status = job->p->seed < 0 ? write_in_order(rows, err) : scatter(rows, err);
	rows->read += chunk->rows;
	count_rows(job, chunk->rows);
	return status;
}

static enum leat_status
read_table(struct rows *rows, struct leat_err *err)
{
	struct leat_shard_job *job = rows->job;
	struct leat_query *query = NULL;
	struct leat_chunk chunk;
	enum leat_status status;
	struct leat_str sql;

	leat_str_init(&sql, job->mem, MAX_SQL);
	leat_shard_table_query(&job->table, &sql);
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
write_shuffled(void *arg, size_t i, struct leat_err *err)
{
	struct rows *rows = arg;
	struct shard shard;
	enum leat_status status = open_shard(&shard, rows->job, i, err);

	if (status == LEAT_OK)
		status = leat_reorder_read(rows->reorder, i, add_record, &shard, err);
	return close_shard(&shard, status, err);
}

static void
free_rows(struct rows *rows)
{
	if (rows->reorder)
		rows->job->spilled = leat_reorder_spilled(rows->reorder);
	leat_reorder_close(rows->reorder);
	leat_free(rows->job->mem, rows->position);
	leat_shard_rows_free(&rows->made);
}

enum leat_status
leat_shards_write(struct leat_shard_job *job, struct leat_err *err)
{
	struct rows rows = {.job = job, .shard = {.job = job}};
	enum leat_status status;

	status = read_table(&rows, err);
	if (job->p->seed < 0 && rows.shard.out)
		status = close_shard(&rows.shard, status, err);
	leat_shards_close_tables(job); /* its memory is needed */
	leat_shard_rows_free(&rows.made);
	if (status == LEAT_OK && job->p->seed >= 0)
		status = leat_parallel(job->mem, job->threads, job->outputs.count, write_shuffled, &rows, err);
	free_rows(&rows);
	return status;
}
