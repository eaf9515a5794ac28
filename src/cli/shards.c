/* shards.c - `leat shards`: write the rows of a table to shards of equal counts */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/threads.h"
#include "cli/convert_formats.h"
#include "cli/interrupt.h"
#include "cli/shards.h"
#include "format/indexed.h"
#include "format/record.h"

enum { MAX_TEXT = 1 << 20, INDEX_SHARE = 16 };

static const struct leat_opt options[] = {
	LEAT_STRING(struct leat_shards, output, LEAT_REQUIRED,
                    "folder for the shards (TEXT/shard-00000-of-00016.tfrecord)"),
	LEAT_ENUM(struct leat_shards, format, "tfrecord", "tfrecord", "output format: a tf.train.Example for each row"),
	LEAT_INT(struct leat_shards, count, LEAT_REQUIRED, 1, LEAT_MAX_SHARDS, "number of shards"),
	LEAT_INT(struct leat_shards, seed, "-1", -1, 9e18,
                 "random seed to shuffle all rows; same seed, same order; -1: keep the order"),
	LEAT_SIZE(struct leat_shards, memory, "0", 0, 1e18, "memory limit; 0: a quarter of the RAM"),
	LEAT_INT(struct leat_shards, threads, "0", 0, 1024, "worker threads; 0: one per available CPU"),
	LEAT_BOOL(struct leat_shards, overwrite, "false", "replace shards from an earlier run"),
	LEAT_BOOL(struct leat_shards, plain, "false",
                  "write nothing but the shards: no manifest and no indexes; for a new folder that only appears when "
                  "it is "
                  "complete, as in steps"),
	LEAT_BOOL(struct leat_shards, quiet, "false", "suppress progress and messages"),
	LEAT_OPT_END,
};

static const size_t min_memory = 32 << 20;

/* ---- indexes ---- */

static bool
wants_index(const struct leat_shard_job *job)
{
	return !job->p->plain && !job->outputs.store->kind->remote;
}

/* Offsets are kept while shards are written, unless there are too many. */
static enum leat_status
make_indexes(struct leat_shard_job *job, struct leat_err *err)
{
	size_t count = job->outputs.count;

	if (!wants_index(job) || job->table.rows > job->memory / INDEX_SHARE / sizeof(uint64_t))
		return LEAT_OK;
	job->index = leat_alloc_array(job->mem, count, sizeof(*job->index));
	return job->index ? LEAT_OK : leat_fail_mem(err, job->mem, count * sizeof(*job->index), "the indexes");
}

static void
free_indexes(struct leat_shard_job *job)
{
	for (size_t i = 0; job->index && i < job->outputs.count; i++)
		leat_index_free(&job->index[i]);
	leat_free(job->mem, job->index);
}

static const struct leat_index_kind *
kind_of(const char *uri)
{
	(void)uri;
	return &leat_tfrecord_index;
}

static void
ignore_report(void *arg, const struct leat_index_report *report)
{
	(void)arg;
	(void)report;
}

/* An index that cannot be saved is made by the first feed. */
static void
save_index(struct leat_shard_job *job, struct leat_files *files, size_t i)
{
	if (leat_files_at(files, i)->size)
		(void)leat_index_save(&job->index[i], &leat_tfrecord_index, leat_files_at(files, i), job->mem, NULL);
}

static enum leat_status
save_indexes(struct leat_shard_job *job, struct leat_err *err)
{
	struct leat_files *files = NULL;
	struct leat_str pattern;
	enum leat_status status;
	const char *patterns[1];

	leat_str_init(&pattern, job->mem, MAX_TEXT);
	leat_add_literal(&pattern, job->outputs.uri);
	leat_str_addf(&pattern, "-*-of-%05zu%s", job->outputs.count, job->outputs.suffix);
	patterns[0] = leat_str_text(&pattern);
	if (pattern.failed) {
		status = leat_fail_mem(err, job->mem, strlen(job->outputs.uri), "a pattern");
	} else if (job->index) {
		status = leat_files_open(&files, &job->outputs.stores, patterns, 1, job->mem, err);
		for (size_t i = 0; status == LEAT_OK && i < leat_files_count(files) && i < job->outputs.count; i++)
			save_index(job, files, i);
		leat_files_close(files);
	} else {
		status = leat_index_files(patterns, 1, kind_of, job->threads, NULL, job->mem, NULL, ignore_report, NULL,
		                          NULL, err);
	}
	leat_str_free(&pattern);
	return status;
}

/* ---- the result ---- */

static const char *
type_of(const struct leat_shard_column *column)
{
	switch (column->feature.kind) {
	case LEAT_FEATURE_INT64:
		return "int64";
	case LEAT_FEATURE_FLOAT:
		return "float";
	default:
		return "bytes";
	}
}

/* A feature that some rows do not have needs a value for them. */
static void
print_feature(const struct leat_shard_column *column, size_t i, struct leat_str *out)
{
	bool word = leat_is_word(column->name), none = column->nulls && !column->is_list;
	bool texts = column->feature.kind == LEAT_FEATURE_BYTES;

	leat_str_add(out, i ? ", " : "");
	if (word)
		leat_str_addf(out, "%s=", column->name);
	else
		leat_str_addf(out, "column%zu=", i + 1);
	leat_str_addf(out, "%s%s", type_of(column), column->is_list && !texts ? "[]" : "");
	if (none)
		leat_str_addf(out, "(default=%s", texts ? "''" : "0");
	if (!word) {
		leat_str_add(out, none ? ", key=" : "(key=");
		leat_str_add_quoted(out, column->name);
	}
	leat_str_add(out, none || !word ? ")" : "");
}

static void
print_spec(const struct leat_shard_job *job, const char *pattern, struct leat_str *out)
{
	if (!job->p->plain) {
		leat_str_add(out, "tfrecord(");
		leat_str_add_quoted(out, pattern);
		leat_str_add(out, ") | ");
	}
	leat_str_add(out, "example(");
	for (size_t i = 0; i < job->table.columns; i++)
		print_feature(&job->table.column[i], i, out);
	leat_str_add(out, ")");
}

static void
print_notes(const struct leat_shard_job *job)
{
	for (size_t i = 0; i < job->table.columns; i++) {
		const struct leat_shard_column *column = &job->table.column[i];

		if (column->is_double)
			leat_print_line(stdout,
			                "column '%s' was rounded to float32, because a tf.train.Example has no float64",
			                column->name);
		if (column->nulls)
			leat_print_line(stdout,
			                "column '%s' is NULL in %" PRIu64 " row%s, where its feature is missing",
			                column->name, column->nulls, leat_plural(column->nulls));
	}
}

static enum leat_status
print_summary(const struct leat_shard_job *job, struct leat_err *err)
{
	char *pattern = leat_shard_pattern(&job->outputs), size[32];
	enum leat_status status = LEAT_OK;
	struct leat_str spec;

	leat_str_init(&spec, job->mem, MAX_TEXT);
	if (pattern)
		print_spec(job, pattern, &spec);
	if (!pattern || spec.failed)
		status = leat_fail_mem(err, job->mem, MAX_TEXT, "the spec that reads it back");
	if (status == LEAT_OK) {
		printf("%" PRIu64 " row%s in %zu file%s, %s\n", job->table.rows, leat_plural(job->table.rows),
		       job->outputs.count, leat_plural(job->outputs.count),
		       leat_format_size(size, sizeof(size), job->outputs.bytes));
		if (job->spilled)
			printf("shuffled by way of a temporary file of %s\n",
			       leat_format_size(size, sizeof(size), job->spilled));
		print_notes(job);
		printf("read %s with\n  %s\n", job->p->plain ? "each record" : "it", leat_str_text(&spec));
	}
	leat_str_free(&spec);
	leat_free(job->mem, pattern);
	return status;
}

/* What `leat diff` and the board compare, in a step. */
static void
write_metrics(const struct leat_shard_job *job)
{
	FILE *out = job->p->plain && getenv("LEAT_STEP") ? fopen("metrics.json", "we") : NULL;

	if (!out)
		return;
	fprintf(out, "{\"rows\": %" PRIu64 ", \"shards\": %zu, \"bytes\": %" PRIu64 "}\n", job->table.rows,
	        job->outputs.count, job->outputs.bytes);
	fclose(out);
}

/* ---- the command ---- */

static void
stop(void *arg)
{
	struct leat_shard_job *job = arg;

	atomic_store(&job->stopped, true);
	leat_stores_interrupt(&job->outputs.stores, true);
	pthread_mutex_lock(&job->lock);
	if (job->tables)
		leat_tables_interrupt(job->tables);
	pthread_mutex_unlock(&job->lock);
}

static enum leat_status
check_rows(const struct leat_shard_job *job, struct leat_err *err)
{
	uint64_t rows = job->table.rows;

	if (!rows)
		return leat_fail(err, LEAT_DATA, "the table has no rows");
	if ((uint64_t)job->p->count > rows)
		return leat_fail(err, LEAT_INVALID,
		                 "%" PRIu64 " row%s cannot fill %" PRId64 " shards; the most is %" PRIu64, rows,
		                 leat_plural(rows), job->p->count, rows);
	return LEAT_OK;
}

static enum leat_status
open_table(struct leat_shard_job *job, struct leat_err *err)
{
	struct leat_tables_options with = {.threads = job->threads,
	                                   .memory = job->memory / 2}; /* half of which it uses */
	struct leat_tables *tables = NULL;
	enum leat_status status = leat_tables_open(&tables, &with, err);

	pthread_mutex_lock(&job->lock);
	job->tables = tables;
	pthread_mutex_unlock(&job->lock);
	if (status == LEAT_OK)
		status = leat_shards_go_on(job, err);
	if (status == LEAT_OK)
		status = leat_shard_table_read(&job->table, tables, err);
	return status == LEAT_OK ? check_rows(job, err) : status;
}

static enum leat_status
open_outputs(struct leat_shard_job *job, struct leat_err *err)
{
	enum leat_status status = leat_outputs_begin(&job->outputs, job->p->overwrite, err);

	if (status == LEAT_OK)
		status = leat_outputs_room(&job->outputs, (size_t)job->p->count, err);
	return status == LEAT_OK ? make_indexes(job, err) : status;
}

static enum leat_status
write_all(struct leat_shard_job *job, struct leat_err *err)
{
	enum leat_status status = open_table(job, err);

	if (status == LEAT_OK)
		status = open_outputs(job, err);
	leat_progress_begin(&job->progress, stderr, "sharded");
	if (job->p->quiet)
		job->progress.out = NULL;
	if (status == LEAT_OK)
		status = leat_shards_write(job, err);
	leat_progress_end(&job->progress);
	leat_shards_close_tables(job);
	return status == LEAT_OK ? leat_shard_table_check(&job->table, err) : status;
}

static enum leat_status
make_shards(struct leat_shard_job *job, struct leat_err *err)
{
	struct leat_interrupt interrupt;
	enum leat_status status;

	leat_interrupt_begin(&interrupt, stop, job);
	status = write_all(job, err);
	if (leat_interrupt_end(&interrupt) && (status == LEAT_OK || status == LEAT_CANCELLED))
		status = leat_shards_go_on(job, err);
	if (status == LEAT_OK)
		status = leat_outputs_publish(&job->outputs, err);
	if (status == LEAT_OK && wants_index(job))
		status = save_indexes(job, err);
	if (status == LEAT_OK)
		write_metrics(job);
	return status == LEAT_OK && !job->p->quiet ? print_summary(job, err) : status;
}

static enum leat_status
check_options(struct leat_shard_job *job, struct leat_err *err)
{
	char least[32];

	job->threads = job->p->threads ? (unsigned)job->p->threads : leat_cpus("");
	job->memory = job->p->memory ? (size_t)job->p->memory : leat_ram("") / 4;
	if (job->p->memory && job->memory < min_memory)
		return leat_fail(err, LEAT_INVALID, "--memory must be %s or more",
		                 leat_format_size(least, sizeof(least), min_memory));
	return LEAT_OK;
}

/* DuckDB's text names an option of DuckDB, which users of Leat cannot set. */
static void
cut_advice(struct leat_err *err)
{
	char *advice = strstr(err->text, "; If you are trying to");

	if (advice)
		*advice = '\0';
}

static enum leat_status
run_shards(const struct leat_invocation *run, struct leat_err *err)
{
	struct leat_shard_job job = {.p = run->params, .mem = run->mem, .lock = PTHREAD_MUTEX_INITIALIZER};
	char *prefix = leat_asprintf(run->mem, "%s/shard", job.p->output);
	enum leat_status status;

	if (!prefix)
		return leat_fail_mem(err, run->mem, strlen(job.p->output), "a file name");
	leat_outputs_init(&job.outputs, prefix, ".tfrecord", true, run->arguments, run->storage, run->mem);
	job.outputs.plain = job.p->plain;
	status = check_options(&job, err);
	if (status == LEAT_OK)
		status = leat_shard_table_find(&job.table, run->operand, run->operands, run->storage, run->mem, err);
	if (status == LEAT_OK)
		status = make_shards(&job, err);
	if (status != LEAT_OK)
		cut_advice(err);
	leat_shard_table_close(&job.table);
	free_indexes(&job);
	leat_outputs_free(&job.outputs);
	leat_free(run->mem, prefix);
	return status;
}

const struct leat_command leat_command_shards = {
	.name = "shards",
	.summary = "Write the rows of a table to TFRecord shards of equal counts",
	.operands = "TABLE...",
	.min_operands = 1,
	.max_operands = SIZE_MAX,
	.help = "TABLE is a Parquet file, a folder of them, or a pattern. Each row becomes a\n"
		"tf.train.Example with a feature for each column: integers and bool as int64, floats,\n"
		"doubles and decimals as float, text and blobs as bytes, dates and times as int64, in\n"
		"microseconds since 1970-01-01 (or midnight), UTC. Lists are lists. NULL is a missing\n"
		"feature. Shards differ by one row at most. With --seed, all rows are shuffled, with\n"
		"a temporary file next to the shards if they are larger than --memory. The result is the\n"
		"same for any number of threads. Files appear only when all are complete.",
	.example = "leat shards events.parquet -o shards --count 16 --seed 1\n"
		   "leat shards 'day-*.parquet' users/ -o shards --count 4",
	.opts = options,
	.params_size = sizeof(struct leat_shards),
	.run = run_shards,
};
