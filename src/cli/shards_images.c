/* shards_images.c - files that a column names, packed into shards
 *
 * Names are relative to a folder (--root) and stay in it. Every file is decoded, so that a broken one is found when
 * shards are written and not when they are read; scaled or not, it takes all threads, as shards are written in
 * parallel.
 *
 * Shards have equal counts, so rows that are left out must be known before the first is written. With --rejects, files
 * are therefore read twice. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/threads.h"
#include "cli/pack_list.h"
#include "cli/print.h"
#include "cli/shards.h"
#include "image/recode.h"
#include "table/load.h"

enum { MAX_SQL = 256 << 20, MAX_NAME = 4096 };

static const uint64_t max_bytes = (uint64_t)1 << 30, max_pixels = (uint64_t)1 << 28;

/* ---- one file ---- */

struct leat_shard_image {
	struct leat_shard_job *job;
	struct leat_store *store;
	char *root; /* as the store names it */
	struct leat_content content;
	struct leat_scratch scratch;
	bool has_scratch;
	void *jpeg;
};

enum leat_status
leat_shard_image_open(struct leat_shard_image **image, struct leat_shard_job *job, struct leat_err *err)
{
	struct leat_shard_image *i = *image = leat_alloc(job->mem, sizeof(*i));
	size_t scratch = job->memory / 8 / job->threads;
	enum leat_status status;

	if (!i)
		return leat_fail_mem(err, job->mem, sizeof(*i), "an image");
	*i = (struct leat_shard_image){.job = job, .content = {.mem = job->mem, .max = max_bytes}};
	status = leat_stores_find(&job->files, job->p->root, &i->store, &i->root, err);
	if (status != LEAT_OK)
		return status;
	if (leat_scratch_open(&i->scratch, job->mem, scratch) != 0)
		return leat_fail_mem(err, job->mem, scratch, "decoding images");
	i->has_scratch = true;
	i->scratch.stop = &job->stopped;
	return LEAT_OK;
}

void
leat_shard_image_close(struct leat_shard_image *image)
{
	if (!image)
		return;
	if (image->has_scratch)
		leat_scratch_close(&image->scratch, image->job->mem);
	leat_free(image->job->mem, image->root);
	leat_free(image->job->mem, image->content.bytes);
	free(image->jpeg);
	leat_free(image->job->mem, image);
}

/* Names come from data, which must not make us read other files. Links may lead out of the folder, as those of a source
 * with a pattern do, but only to images. */
static bool
is_inside(const char *name)
{
	for (const char *at = name; at; at = strchr(at, '/')) {
		at += *at == '/';
		if (!strncmp(at, "..", 2) && (at[2] == '/' || !at[2]))
			return false;
	}
	return *name && *name != '/' && !leat_is_uri(name, strlen(name));
}

static enum leat_status
read_file(struct leat_shard_image *image, const char *name, struct leat_err *err)
{
	struct leat_mem *mem = image->job->mem;
	char *uri = leat_asprintf(mem, "%s/%s", image->root, name);
	struct leat_object object;
	enum leat_status status;

	if (!uri)
		return leat_fail_mem(err, mem, strlen(name), "a file name");
	status = image->store->kind->look(image->store, uri, &object, err);
	if (status == LEAT_OK)
		status = leat_content_read(&image->content, &object, err);
	leat_free(mem, uri);
	return status;
}

static enum leat_status
recode(struct leat_shard_image *image, const char *name, const void **bytes, size_t *len, struct leat_err *err)
{
	const struct leat_recoding how = {image->job->p->resize, (int)image->job->p->quality, max_pixels};
	struct leat_content *content = &image->content;
	enum leat_status status;

	free(image->jpeg);
	status = leat_recode(content->bytes, content->len, &how, &image->scratch, image->job->mem, &image->jpeg, len,
	                     err);
	*bytes = image->jpeg;
	if (status == LEAT_OK && !image->jpeg) {
		*bytes = content->bytes;
		*len = content->len;
	}
	return status == LEAT_OK ? status : leat_err_in(err, "'%s'", name);
}

enum leat_status
leat_shard_image_read(struct leat_shard_image *image, const void *name, size_t name_len, const void **bytes,
                      size_t *len, struct leat_err *err)
{
	char path[MAX_NAME];
	enum leat_status status;

	if (name_len >= sizeof(path) || memchr(name, '\0', name_len))
		return leat_fail(err, LEAT_DATA, "a value of column '%s' is no name of a file", image->job->p->images);
	memcpy(path, name, name_len);
	path[name_len] = '\0';
	if (!is_inside(path))
		return leat_fail(err, LEAT_DATA,
		                 "'%s' in column '%s' is no name of a file below '%s'; write names relative to --root",
		                 path, image->job->p->images, image->job->p->root);
	status = read_file(image, path, err);
	return status == LEAT_OK ? recode(image, path, bytes, len, err) : status;
}

/* ---- rejects ---- */

/* The names of a chunk, each checked by any thread. */
struct checking {
	struct leat_shard_job *job;
	struct leat_shard_part *part;
	const struct leat_vector *names;
	size_t rows;
	uint64_t first;       /* row of the part */
	struct leat_err *why; /* of each row; LEAT_OK: it is sound */
	size_t cap;
};

static bool
is_fault_of_data(enum leat_status status)
{
	return status == LEAT_DATA || status == LEAT_IO || status == LEAT_LIMIT;
}

/* Thread `t` of `writers` checks every n-th row. */
static enum leat_status
check_rows(void *arg, size_t t, struct leat_err *err)
{
	struct checking *c = arg;
	struct leat_shard_image *image = NULL;
	enum leat_status status = leat_shard_image_open(&image, c->job, err);

	for (size_t row = t; row < c->rows && status == LEAT_OK; row += c->job->threads) {
		const void *bytes;
		const char *name;
		size_t len;

		leat_err_clear(&c->why[row]);
		if (leat_vector_is_null(c->names, row)) {
			leat_fail(&c->why[row], LEAT_DATA, "NULL is no name of a file");
			continue;
		}
		name = leat_vector_text(c->names, row, &len);
		status = leat_shard_image_read(image, name, len, &bytes, &len, &c->why[row]);
		if (is_fault_of_data(status))
			status = LEAT_OK;
		else if (status != LEAT_OK)
			leat_fail_as(err, &c->why[row]);
		if (leat_shards_go_on(c->job, err) != LEAT_OK)
			status = LEAT_CANCELLED;
	}
	leat_shard_image_close(image);
	return status;
}

/* {"file": "a.jpg", "line": 17, "column": "path", "reason": "...", "raw": "a.jpg"}: 'leat show --rejects' reads it. */
static void
add_reject(struct leat_shard_job *job, const struct leat_shard_part *part, uint64_t row, const char *name,
           const char *why)
{
	struct leat_str *out = &job->rejects;

	leat_str_add(out, "{\"file\": ");
	leat_str_add_json(out, part->name ? part->name : "table");
	leat_str_addf(out, ", \"line\": %" PRIu64 ", \"column\": ", row + 1);
	leat_str_add_json(out, job->p->images);
	leat_str_add(out, ", \"reason\": ");
	leat_str_add_json(out, why);
	leat_str_add(out, ", \"raw\": ");
	leat_str_add_json(out, name);
	leat_str_add(out, "}\n");
}

static void
note_rejects(struct checking *c)
{
	for (size_t row = 0; row < c->rows; row++) {
		uint64_t number = c->first + row;
		char name[MAX_NAME] = "";
		size_t len;

		if (c->why[row].status == LEAT_OK)
			continue;
		if (!leat_vector_is_null(c->names, row)) {
			const char *text = leat_vector_text(c->names, row, &len);

			leat_show(name, sizeof(name), text, len);
		}
		c->part->rejected[number / 64] |= (uint64_t)1 << number % 64;
		c->part->rows--;
		if (!c->job->rejected++) {
			c->job->first_reject = number;
			c->job->first_reason = c->why[row];
		}
		add_reject(c->job, c->part, number, name, c->why[row].text);
	}
}

static enum leat_status
check_chunk(struct checking *c, const struct leat_chunk *chunk, struct leat_err *err)
{
	enum leat_status status = LEAT_GROW(c->job->mem, c->why, c->cap, chunk->rows, SIZE_MAX, "rows", err);

	c->names = &chunk->columns[0];
	c->rows = chunk->rows;
	if (status == LEAT_OK && c->first + chunk->rows > c->part->read)
		status = leat_fail(err, LEAT_DATA, "the table has more rows than before; was it changed?");
	if (status == LEAT_OK)
		status = leat_parallel(c->job->mem, c->job->threads, c->job->threads, check_rows, c, err);
	if (status == LEAT_OK)
		note_rejects(c);
	c->first += chunk->rows;
	return status;
}

enum leat_status
leat_shards_reject(struct leat_shard_job *job, struct leat_shard_part *part, struct leat_err *err)
{
	struct checking c = {.job = job, .part = part};
	const struct leat_shard_column *column = job->table.column;
	struct leat_query *query = NULL;
	struct leat_chunk chunk;
	enum leat_status status;
	struct leat_str sql;

	while (!column->is_image)
		column++;
	part->rejected = leat_alloc_array(job->mem, (size_t)(part->read / 64 + 1), sizeof(*part->rejected));
	if (!part->rejected)
		return leat_fail_mem(err, job->mem, (size_t)(part->read / 8), "the rows that are left out");
	leat_str_init(&sql, job->mem, MAX_SQL);
	leat_shard_table_query(&job->table, part, column, &sql);
	status = sql.failed ? leat_fail_mem(err, job->mem, sql.len, "a query")
	                    : leat_query_open(&query, job->tables, leat_str_text(&sql), err);
	while (status == LEAT_OK && (status = leat_query_next(query, &chunk, err)) == LEAT_OK && chunk.rows)
		status = check_chunk(&c, &chunk, err);
	leat_query_close(query);
	leat_str_free(&sql);
	leat_free(job->mem, c.why);
	return status;
}

enum leat_status
leat_shards_end_rejects(struct leat_shard_job *job, struct leat_err *err)
{
	struct leat_reject_limit limit;
	uint64_t read = 0;
	enum leat_status status = leat_reject_limit_read(&limit, job->p->rejects, err);

	for (size_t i = 0; i < job->parts; i++)
		read += job->part[i].read;
	if (status == LEAT_OK && job->rejects.failed)
		status = leat_fail_mem(err, job->mem, job->rejects.len, "the list of rejected rows");
	if (status == LEAT_OK && !leat_reject_limit_holds(&limit, job->rejected, read))
		status = leat_fail(err, LEAT_DATA,
		                   "%" PRIu64 " of %" PRIu64 " rows have no sound image file, more than --rejects %s "
		                   "allows; the first is row %" PRIu64 ": %s",
		                   job->rejected, read, job->p->rejects, job->first_reject + 1, job->first_reason.text);
	return status;
}
