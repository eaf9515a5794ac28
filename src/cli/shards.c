/* shards.c - `leat shards`: write the rows of a table to shards of equal counts */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/threads.h"
#include "cli/interrupt.h"
#include "cli/shards.h"
#include "format/indexed.h"

enum { MAX_TEXT = 1 << 20, INDEX_SHARE = 16, MAX_SIDE = 65500, READER = 192 << 20 };

static const struct leat_opt options[] = {
	LEAT_STRING(struct leat_shards, output, LEAT_REQUIRED,
                    "folder for the shards (TEXT/shard-00000-of-00016.tfrecord)"),
	LEAT_ENUM(struct leat_shards, format, "tfrecord", LEAT_SHARD_FORMATS,
                  "output format: TFRecord with a tf.train.Example for each row, Parquet, npy with a file for each "
                  "column, or tar (WebDataset)"),
	LEAT_ENUM(struct leat_shards, compression, "auto", LEAT_SHARD_COMPRESSIONS,
                  "gzip for TFRecord; gzip, snappy or zstd for Parquet; auto: zstd for Parquet, else none"),
	LEAT_INT(struct leat_shards, count, LEAT_REQUIRED, 1, LEAT_MAX_SHARDS,
                 "number of shards; with parts, of each part"),
	LEAT_INT(struct leat_shards, seed, "-1", -1, 9e18,
                 "random seed to shuffle all rows; same seed, same order; -1: keep the order"),
	LEAT_STRING(struct leat_shards, parts, "",
                    "column whose values divide the rows: each gets a folder of shards; default: 'split' of a result "
                    "of features; none: all rows together"),
	LEAT_STRING(struct leat_shards, images, "", "column with names of image files, which take their place"),
	LEAT_STRING(struct leat_shards, root, ".", "folder that names of image files are relative to"),
	LEAT_INT(struct leat_shards, resize, "0", 0, MAX_SIDE,
                 "scale images down to this length of the shorter side, and store them as JPEG; 0: keep the size"),
	LEAT_INT(struct leat_shards, quality, "0", 0, 100,
                 "store all images as JPEG of this quality; 0: 90 for those that were scaled, others as they are"),
	LEAT_STRING(struct leat_shards, rejects, "0",
                    "rows to leave out because their image file is missing or broken: a share such as 0.1%, or a "
                    "number; more is an error"),
	LEAT_STRING(struct leat_shards, duckdb, "", "version of DuckDB to expect; a step of leat build says which"),
	LEAT_SIZE(struct leat_shards, memory, "0", 0, 1e18, "memory limit; 0: a quarter of the RAM"),
	LEAT_INT(struct leat_shards, threads, "0", 0, 1024, "worker threads; 0: one per available CPU"),
	LEAT_BOOL(struct leat_shards, overwrite, "false", "replace shards from an earlier run"),
	LEAT_BOOL(struct leat_shards, plain, "false",
                  "write nothing but the shards: no manifest and no indexes; for a new folder that only appears when "
                  "it is complete, as in steps"),
	LEAT_BOOL(struct leat_shards, quiet, "false", "suppress progress and messages"),
	LEAT_OPT_END,
};

static const struct leat_shard_format *const formats[] = {&leat_shard_tfrecord, &leat_shard_parquet, &leat_shard_npy,
                                                          &leat_shard_tar};

static const size_t min_memory = 32 << 20;

/* ---- outputs ---- */

static bool
wants_index(const struct leat_shard_job *job)
{
	return job->format->index && !job->p->plain && !job->set->store->kind->remote;
}

/* Offsets are kept while shards are written, unless there are too many, or the file is compressed. */
static enum leat_status
make_indexes(struct leat_shard_job *job, struct leat_err *err)
{
	if (!wants_index(job) || job->compression != LEAT_COMPRESS_NONE ||
	    job->rows > job->memory / INDEX_SHARE / (2 * sizeof(uint64_t)))
		return LEAT_OK;
	for (size_t i = 0; i < job->parts; i++) {
		struct leat_shard_part *part = &job->part[i];

		part->index = leat_alloc_array(job->mem, part->count, sizeof(*part->index));
		if (!part->index)
			return leat_fail_mem(err, job->mem, part->count * sizeof(*part->index), "the indexes");
	}
	return LEAT_OK;
}

static const struct leat_index_kind *
kind_of(const char *uri)
{
	size_t len = strlen(uri), end = strlen(leat_shard_tar.suffix);

	return len > end && !strcmp(uri + len - end, leat_shard_tar.suffix) ? leat_shard_tar.index
	                                                                    : leat_shard_tfrecord.index;
}

static void
ignore_report(void *arg, const struct leat_index_report *report)
{
	(void)arg;
	(void)report;
}

/* An index that cannot be saved is made by the first feed. */
static void
save_index(struct leat_shard_job *job, const struct leat_shard_part *part, struct leat_files *files, size_t i)
{
	if (leat_files_at(files, i)->size)
		(void)leat_index_save(&part->index[i], job->format->index, leat_files_at(files, i), job->mem, NULL);
}

static enum leat_status
save_indexes(struct leat_shard_job *job, const struct leat_shard_part *part, struct leat_err *err)
{
	struct leat_files *files = NULL;
	struct leat_str pattern;
	enum leat_status status;
	const char *patterns[1];

	leat_str_init(&pattern, job->mem, MAX_TEXT);
	leat_add_literal(&pattern, part->set->uri);
	leat_str_addf(&pattern, "-*-of-%05zu%s", part->count, job->suffix);
	patterns[0] = leat_str_text(&pattern);
	if (pattern.failed) {
		status = leat_fail_mem(err, job->mem, strlen(part->set->uri), "a pattern");
	} else if (part->index) {
		status = leat_files_open(&files, &part->set->stores, patterns, 1, job->mem, err);
		for (size_t i = 0; status == LEAT_OK && i < leat_files_count(files) && i < part->count; i++)
			save_index(job, part, files, i);
		leat_files_close(files);
	} else {
		status = leat_index_files(patterns, 1, kind_of, job->threads, NULL, job->mem, NULL, ignore_report, NULL,
		                          NULL, err);
	}
	leat_str_free(&pattern);
	return status;
}

/* FOLDER/shard, FOLDER/PART/shard, FOLDER/COLUMN or FOLDER/PART/COLUMN. */
static enum leat_status
name_set(struct leat_shard_job *job, size_t i, const struct leat_invocation *run, struct leat_err *err)
{
	const char *part = job->part[i / job->sets_per_part].name, *file = "shard";

	if (job->format->by_column)
		file = job->table.column[i % job->sets_per_part].name;
	if (strchr(file, '/') || *file == '.')
		return leat_fail(err, LEAT_INVALID, "column '%s' cannot be used as a file name: rename it", file);
	job->prefix[i] = leat_asprintf(job->mem, "%s%s%s/%s", job->p->output, part ? "/" : "", part ? part : "", file);
	if (!job->prefix[i])
		return leat_fail_mem(err, job->mem, strlen(job->p->output), "a file name");
	leat_outputs_init(&job->set[i], job->prefix[i], job->suffix, true, run->arguments, run->storage, job->mem);
	job->sets = i + 1;
	job->set[i].plain = job->p->plain;
	return LEAT_OK;
}

static enum leat_status
name_sets(struct leat_shard_job *job, const struct leat_invocation *run, struct leat_err *err)
{
	size_t sets;
	enum leat_status status = LEAT_OK;

	job->sets_per_part = job->format->by_column ? job->table.columns : 1;
	sets = job->parts * job->sets_per_part;
	job->set = leat_alloc_array(job->mem, sets, sizeof(*job->set));
	job->prefix = leat_alloc_array(job->mem, sets, sizeof(*job->prefix));
	if (!job->set || !job->prefix)
		return leat_fail_mem(err, job->mem, sets * sizeof(*job->set), "the list of files");
	for (size_t i = 0; i < sets && status == LEAT_OK; i++)
		status = name_set(job, i, run, err);
	for (size_t i = 0; i < job->parts; i++)
		job->part[i].set = job->set + i * job->sets_per_part;
	return status;
}

static enum leat_status
open_outputs(struct leat_shard_job *job, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < job->sets && status == LEAT_OK; i++) {
		status = leat_outputs_begin(&job->set[i], job->p->overwrite, err);
		if (status == LEAT_OK)
			status = leat_outputs_room(&job->set[i], job->part[i / job->sets_per_part].count, err);
	}
	return status == LEAT_OK ? make_indexes(job, err) : status;
}

/* Next to the shards, as other steps have it. */
static enum leat_status
save_rejects(const struct leat_shard_job *job, struct leat_err *err)
{
	char *path = leat_asprintf(job->mem, "%s/rejects.jsonl", job->p->output);
	enum leat_status status;

	if (!path)
		return leat_fail_mem(err, job->mem, strlen(job->p->output), "a file name");
	status = leat_write_whole(path, leat_str_text(&job->rejects), job->rejects.len, 0, job->table.stores.storage,
	                          job->mem, err);
	leat_free(job->mem, path);
	return status;
}

/* ---- the result ---- */

static void
print_notes(const struct leat_shard_job *job)
{
	for (size_t i = 0; i < job->table.columns; i++) {
		const struct leat_shard_column *column = &job->table.column[i];

		if (column->is_double && job->format == &leat_shard_tfrecord)
			leat_print_line(stdout,
			                "column '%s' was rounded to float32, because a tf.train.Example has no float64",
			                column->name);
		if (column->nulls && !job->format->exact)
			leat_print_line(stdout, "column '%s' is NULL in %" PRIu64 " row%s, where its %s is missing",
			                column->name, column->nulls, leat_plural(column->nulls),
			                job->format == &leat_shard_tar ? "file" : "feature");
	}
}

/* Steps know the folder, whose name is not that of the sandbox. */
static enum leat_status
print_spec(const struct leat_shard_job *job, const struct leat_shard_part *part, struct leat_err *err)
{
	const char *folder = job->p->plain ? "" : job->p->output;
	char *pattern = leat_asprintf(job->mem, "%s%s%s%s%s-\?\?\?\?\?-of-%05zu%s", folder, *folder ? "/" : "",
	                              part->name ? part->name : "", part->name ? "/" : "",
	                              job->format->by_column ? "%s" : "shard", part->count, job->suffix);
	enum leat_status status = LEAT_OK;
	struct leat_str spec;

	leat_str_init(&spec, job->mem, MAX_TEXT);
	if (pattern)
		job->format->print_spec(job, pattern, &spec);
	if (!pattern || spec.failed)
		status = leat_fail_mem(err, job->mem, MAX_TEXT, "the spec that reads it back");
	else
		printf("  %s\n", leat_str_text(&spec));
	leat_str_free(&spec);
	leat_free(job->mem, pattern);
	return status;
}

static uint64_t
total_bytes(const struct leat_shard_job *job)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < job->sets; i++)
		bytes += job->set[i].bytes;
	return bytes;
}

static size_t
total_files(const struct leat_shard_job *job)
{
	size_t files = 0;

	for (size_t i = 0; i < job->sets; i++)
		files += job->set[i].count;
	return files;
}

static enum leat_status
print_summary(const struct leat_shard_job *job, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	char size[32];

	printf("%" PRIu64 " row%s in %zu file%s, %s\n", job->rows, leat_plural(job->rows), total_files(job),
	       leat_plural(total_files(job)), leat_format_size(size, sizeof(size), total_bytes(job)));
	for (size_t i = 0; job->table.part_column && i < job->parts; i++)
		leat_print_line(stdout, "%s: %" PRIu64 " row%s in %zu shard%s", job->part[i].name, job->part[i].rows,
		                leat_plural(job->part[i].rows), job->part[i].count, leat_plural(job->part[i].count));
	if (job->rejected)
		leat_print_line(stdout, "left out %" PRIu64 " row%s whose image file is missing or broken; see %s",
		                job->rejected, leat_plural(job->rejected), "rejects.jsonl");
	if (job->spilled)
		printf("shuffled by way of a temporary file of %s\n",
		       leat_format_size(size, sizeof(size), job->spilled));
	print_notes(job);
	printf("read %s with\n", job->p->plain ? "the files of the folder" : "it");
	for (size_t i = 0; i < job->parts && status == LEAT_OK; i++)
		status = print_spec(job, &job->part[i], err);
	return status;
}

/* What `leat diff` and the board compare, in a step. */
static void
write_metrics(const struct leat_shard_job *job)
{
	FILE *out = job->p->plain && getenv("LEAT_STEP") ? fopen("metrics.json", "we") : NULL;

	if (!out)
		return;
	fprintf(out, "{\"rows\": %" PRIu64 ", \"shards\": %zu, \"bytes\": %" PRIu64, job->rows,
	        total_files(job) / job->sets_per_part, total_bytes(job));
	if (job->rejected)
		fprintf(out, ", \"rejected\": %" PRIu64, job->rejected);
	fprintf(out, "}\n");
	fclose(out);
}

/* ---- the command ---- */

static void
stop(void *arg)
{
	struct leat_shard_job *job = arg;

	atomic_store(&job->stopped, true);
	for (size_t i = 0; i < job->sets; i++)
		leat_stores_interrupt(&job->set[i].stores, true);
	leat_stores_interrupt(&job->files, true);
	pthread_mutex_lock(&job->lock);
	if (job->tables)
		leat_tables_interrupt(job->tables);
	pthread_mutex_unlock(&job->lock);
}

/* A part may have fewer rows than others. */
static enum leat_status
count_shards(struct leat_shard_job *job, struct leat_err *err)
{
	job->rows = 0;
	for (size_t i = 0; i < job->parts; i++) {
		struct leat_shard_part *part = &job->part[i];

		job->rows += part->rows;
		part->count = (size_t)job->p->count;
		if (part->name && part->rows < part->count)
			part->count = (size_t)part->rows;
	}
	if (!job->rows)
		return leat_fail(err, LEAT_DATA, "the table has no rows");
	for (size_t i = 0; i < job->parts; i++)
		if (!job->part[i].count)
			return leat_fail(err, LEAT_DATA, "all rows of part '%s' were rejected", job->part[i].name);
	if (job->part->count > job->part->rows)
		return leat_fail(err, LEAT_INVALID,
		                 "%" PRIu64 " row%s cannot fill %" PRId64 " shards; the most is %" PRIu64, job->rows,
		                 leat_plural(job->rows), job->p->count, job->rows);
	return LEAT_OK;
}

static enum leat_status
open_tables(struct leat_shard_job *job, struct leat_err *err)
{
	/* Each thread of DuckDB holds row groups, of which tables may have large ones. It uses half of the memory. */
	size_t most = job->memory / 2 / READER + 1;
	struct leat_tables_options with = {.threads = job->threads < most ? job->threads : (unsigned)most,
	                                   .memory = job->memory / 2};
	struct leat_tables *tables = NULL;
	enum leat_status status = leat_duckdb_load(err);

	if (status == LEAT_OK && *job->p->duckdb && strcmp(job->p->duckdb, leat_duckdb_version()) != 0)
		status = leat_fail(err, LEAT_UNSUPPORTED, "this is DuckDB %s, but %s was expected; build again",
		                   leat_duckdb_version(), job->p->duckdb);
	if (status == LEAT_OK)
		status = leat_tables_open(&tables, &with, err);

	pthread_mutex_lock(&job->lock);
	job->tables = tables;
	pthread_mutex_unlock(&job->lock);
	return status == LEAT_OK ? leat_shards_go_on(job, err) : status;
}

/* Others may interrupt the tables until then. */
static void
close_tables(struct leat_shard_job *job)
{
	struct leat_tables *tables;

	pthread_mutex_lock(&job->lock);
	tables = job->tables;
	job->tables = NULL;
	pthread_mutex_unlock(&job->lock);
	leat_tables_close(tables);
}

static enum leat_status
reject_rows(struct leat_shard_job *job, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	if (!*job->p->images || !strcmp(job->p->rejects, "0"))
		return LEAT_OK;
	for (size_t i = 0; i < job->parts && status == LEAT_OK; i++)
		status = leat_shards_reject(job, &job->part[i], err);
	return status == LEAT_OK ? leat_shards_end_rejects(job, err) : status;
}

static enum leat_status
open_table(struct leat_shard_job *job, struct leat_err *err)
{
	enum leat_status status = open_tables(job, err);

	if (status == LEAT_OK)
		status = leat_shard_table_read(job, err);
	if (status == LEAT_OK)
		status = leat_shard_table_divide(job, err);
	if (status == LEAT_OK)
		status = reject_rows(job, err);
	return status == LEAT_OK ? count_shards(job, err) : status;
}

static enum leat_status
write_parts(struct leat_shard_job *job, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	leat_progress_begin(&job->progress, stderr, "sharded");
	if (job->p->quiet)
		job->progress.out = NULL;
	for (size_t i = 0; i < job->parts && status == LEAT_OK; i++)
		status = leat_shards_write(job, &job->part[i], err);
	leat_progress_end(&job->progress);
	return status == LEAT_OK ? leat_shard_table_check(&job->table, err) : status;
}

static enum leat_status
publish(struct leat_shard_job *job, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	if (strcmp(job->p->rejects, "0") && *job->p->images)
		status = save_rejects(job, err);
	if (status == LEAT_OK)
		status = leat_outputs_publish_all(job->set, job->sets, err);
	for (size_t i = 0; i < job->parts && status == LEAT_OK && wants_index(job); i++)
		status = save_indexes(job, &job->part[i], err);
	if (status == LEAT_OK)
		write_metrics(job);
	return status == LEAT_OK && !job->p->quiet ? print_summary(job, err) : status;
}

static enum leat_status
make_shards(struct leat_shard_job *job, const struct leat_invocation *run, struct leat_err *err)
{
	struct leat_interrupt interrupt;
	enum leat_status status;

	leat_interrupt_begin(&interrupt, stop, job);
	status = open_table(job, err);
	if (status == LEAT_OK)
		status = name_sets(job, run, err);
	if (status == LEAT_OK)
		status = open_outputs(job, err);
	if (status == LEAT_OK)
		status = write_parts(job, err);
	close_tables(job);
	if (leat_interrupt_end(&interrupt) && (status == LEAT_OK || status == LEAT_CANCELLED))
		status = leat_shards_go_on(job, err);
	return status == LEAT_OK ? publish(job, err) : status;
}

static enum leat_status
choose_compression(struct leat_shard_job *job, struct leat_err *err)
{
	static const char *const names[] = {"auto", "none", "gzip", "snappy", "zstd"};
	struct leat_str known;
	enum leat_status status = LEAT_OK;

	job->compression = job->p->compression == LEAT_COMPRESS_AUTO ? job->format->usual : job->p->compression;
	job->suffix = job->format->suffix;
	if (job->format == &leat_shard_tfrecord && job->compression == LEAT_COMPRESS_GZIP)
		job->suffix = ".tfrecord.gz";
	if (job->format->compressions >> job->compression & 1)
		return LEAT_OK;
	leat_str_init(&known, job->mem, MAX_TEXT);
	for (int i = LEAT_COMPRESS_NONE; i <= LEAT_COMPRESS_ZSTD; i++)
		if (job->format->compressions >> i & 1)
			leat_str_addf(&known, "%s%s", known.len ? ", " : "", names[i]);
	status = leat_fail(err, LEAT_INVALID, "%s files have no compression '%s'; valid: %s", job->format->suffix,
	                   names[job->compression], leat_str_text(&known));
	leat_str_free(&known);
	return status;
}

static enum leat_status
check_options(struct leat_shard_job *job, struct leat_err *err)
{
	size_t least = job->format->min_memory ? job->format->min_memory : min_memory;
	char text[32];

	job->threads = job->p->threads ? (unsigned)job->p->threads : leat_cpus("");
	job->memory = job->p->memory ? (size_t)job->p->memory : leat_ram("") / 4;
	if (job->p->memory && job->memory < least)
		return leat_fail(err, LEAT_INVALID, "--memory must be %s or more",
		                 leat_format_size(text, sizeof(text), least));
	job->writers = job->threads;
	if (job->format->writer_memory && job->writers > job->memory / 3 / job->format->writer_memory)
		job->writers = (unsigned)(job->memory / 3 / job->format->writer_memory);
	job->writers += !job->writers;
	if (!*job->p->images && (job->p->resize || job->p->quality || strcmp(job->p->rejects, "0")))
		return leat_fail(err, LEAT_INVALID,
		                 "--resize, --quality and --rejects are for images; say which column "
		                 "names their files with --images");
	return choose_compression(job, err);
}

/* DuckDB's text names options of DuckDB, which users of Leat cannot set. */
static void
cut_advice(struct leat_err *err)
{
	static const char *const advice[] = {"; If you are trying to", "; Database is launched in in-memory mode"};

	for (size_t i = 0; i < sizeof(advice) / sizeof(*advice); i++) {
		char *at = strstr(err->text, advice[i]);

		if (at)
			snprintf(at, sizeof(err->text) - (size_t)(at - err->text), "%s", i ? "; raise --memory" : "");
	}
}

static void
free_part(struct leat_shard_job *job, struct leat_shard_part *part)
{
	for (size_t i = 0; part->index && i < part->count; i++)
		leat_index_free(&part->index[i]);
	leat_free(job->mem, part->index);
	leat_free(job->mem, part->rejected);
	leat_free(job->mem, part->name);
}

static void
free_job(struct leat_shard_job *job)
{
	leat_shard_table_close(&job->table);
	for (size_t i = 0; i < job->parts; i++)
		free_part(job, &job->part[i]);
	for (size_t i = 0; i < job->sets; i++) {
		leat_outputs_free(&job->set[i]);
		leat_free(job->mem, job->prefix[i]);
	}
	leat_free(job->mem, job->part);
	leat_free(job->mem, job->set);
	leat_free(job->mem, job->prefix);
	leat_str_free(&job->rejects);
	leat_stores_close(&job->files);
}

static enum leat_status
run_shards(const struct leat_invocation *run, struct leat_err *err)
{
	struct leat_shard_job job = {.p = run->params, .mem = run->mem, .lock = PTHREAD_MUTEX_INITIALIZER};
	enum leat_status status;

	job.format = formats[job.p->format];
	leat_stores_init(&job.files, run->mem);
	job.files.storage = run->storage;
	leat_str_init(&job.rejects, run->mem, SIZE_MAX / 4);
	status = check_options(&job, err);
	if (status == LEAT_OK)
		status = leat_shard_table_find(&job.table, run->operand, run->operands, run->storage, run->mem, err);
	job.table.format = job.format;
	if (status == LEAT_OK)
		status = make_shards(&job, run, err);
	if (status != LEAT_OK)
		cut_advice(err);
	free_job(&job);
	return status;
}

const struct leat_command leat_command_shards = {
	.name = "shards",
	.summary = "Write the rows of a table to shards of equal counts: TFRecord, Parquet, npy or tar",
	.operands = "TABLE...",
	.min_operands = 1,
	.max_operands = SIZE_MAX,
	.help = "TABLE is a Parquet file, a folder of them such as the result of a step, or a pattern.\n"
		"Shards differ by one row at most. With --seed, all rows are shuffled, with a temporary\n"
		"file next to the shards if they are larger than --memory. The result is the same for any\n"
		"number of threads. Files appear only when all are complete. A result of features is\n"
		"written by the parts of its split: OUTPUT/train, OUTPUT/valid, ...\n"
		"\n"
		"tfrecord: a tf.train.Example for each row. Integers and bool are int64, floats, doubles\n"
		"and decimals float, text and blobs bytes, lists lists; NULL is a missing feature.\n"
		"parquet: all types, in row groups of 32,768 rows or 8 MB.\n"
		"npy: OUTPUT/COLUMN-00000-of-00016.npy, for numbers and lists of one length.\n"
		"tar: KEY.COLUMN.cls for integers, .npy for other numbers and lists, .txt for text, .jpg,\n"
		".png, .webp or .bin for blobs.\n"
		"Except in Parquet, dates and times are int64, in microseconds since 1970-01-01 (or\n"
		"midnight), UTC.\n"
		"\n"
		"With --images, the files that a column names take its place. All are decoded, so a broken\n"
		"one is an error that names it, or a reject.",
	.example = "leat shards events.parquet -o shards --count 16 --seed 1\n"
		   "leat shards out/feats -o shards --count 8 --seed 1 --format npy\n"
		   "leat shards photos.parquet -o shards --count 8 --format tar --images path --root photos "
		   "--resize 256",
	.opts = options,
	.params_size = sizeof(struct leat_shards),
	.run = run_shards,
};
