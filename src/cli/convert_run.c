/* convert_run.c - run a spec and save the result
 *
 * Runs epoch 0 in plan order and writes samples one by one, on one thread, while the feed's workers prepare the
 * next ones. With `shards` set, shard s of n holds positions [s * count / n, (s + 1) * count / n); otherwise a new
 * shard begins when one is full. Neither depends on the number of threads. */
#include "cli/convert_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "cli/bad_file.h"
#include "cli/convert_formats.h"
#include "cli/interrupt.h"
#include "cli/outputs.h"
#include "cli/print.h"
#include "feed/feed.h"

static const struct leat_convert_format *const formats[] = {&leat_convert_tfrecord, &leat_convert_tar,
                                                            &leat_convert_npy};

enum { MAX_SPEC = 1 << 16 };
static const size_t max_record = INT32_MAX; /* limit of protobuf */

/* One run of the command. */
struct job {
	const struct leat_convert_request *p;
	const struct leat_convert_format *format;
	struct leat_mem *mem;
	struct leat_feed *feed;
	struct leat_convert convert;
	struct leat_outputs outputs;
	struct leat_bad_file bad;
	struct leat_progress progress;
	uint64_t samples, in_shard;
};

bool
leat_is_word(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
	static const char others[] = "0123456789.-";

	if (!*name || !strchr(letters, *name))
		return false;
	for (; *name; name++)
		if (!strchr(letters, *name) && !strchr(others, *name))
			return false;
	return true;
}

void
leat_convert_print_casts(const struct leat_convert *convert, enum leat_dtype dtype, bool single, struct leat_str *out)
{
	int count = 0;

	for (int f = 0; f < leat_field_count(convert->feed); f++) {
		const struct leat_field *field = leat_field_at(convert->feed, f);

		if (field->dtype != dtype || (single && field->ndim > 0) || !leat_is_word(field->name))
			continue;
		if (!count++)
			leat_str_addf(out, " | cast(%s, field=[%s", leat_dtype_name(dtype), field->name);
		else
			leat_str_addf(out, ", %s", field->name);
	}
	if (count)
		leat_str_add(out, "])");
}

/* ---- setup ---- */

static enum leat_status
open_feed(struct job *job, const char *spec, struct leat_err *err)
{
	const struct leat_convert_request *p = job->p;
	enum leat_status status;
	struct leat_options o;

	leat_options_init(&o);
	o.seed = (uint64_t)p->seed;
	o.epochs = 1;
	o.threads = (unsigned)p->threads;
	o.memory = (size_t)p->memory;
	o.rank = 0; /* all samples, even under a distributed launcher */
	o.world = 1;
	o.on_error = (enum leat_on_error)p->on_error;
	o.max_bad = p->max_bad < 0 ? UINT64_MAX : (uint64_t)p->max_bad;
	o.max_pixels = (uint64_t)p->max_pixels;
	o.max_bytes = (uint64_t)p->max_bytes;
	o.log = p->quiet ? NULL : leat_print_log;
	o.storage = p->run->settings;
	status = leat_bad_file_open(&job->bad, p->bad, job->mem, &o, err);
	return status == LEAT_OK ? leat_feed_open(spec, &o, LEAT_BATCH_OPTIONAL, -1, &job->feed, err) : status;
}

static enum leat_status
check(const struct job *job, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	if (!job->format->shards && job->p->shards)
		return leat_fail(err, LEAT_INVALID,
		                 "--format npy writes one file per field and does not support --shards");
	if (leat_batches(job->feed) == 0)
		return leat_fail(err, LEAT_DATA, "there are no samples to write");
	if ((uint64_t)job->p->shards > leat_samples(job->feed))
		return leat_fail(err, LEAT_INVALID, "%" PRIu64 " sample%s cannot fill %" PRId64 " shards",
		                 leat_samples(job->feed), leat_plural(leat_samples(job->feed)), job->p->shards);
	for (int f = 0; f < leat_field_count(job->feed) && status == LEAT_OK; f++)
		status = job->format->check(job->feed, leat_field_at(job->feed, f), err);
	return status;
}

/* ---- files ---- */

static enum leat_status
open_shard(struct job *job, struct leat_err *err)
{
	size_t shard = job->outputs.count;
	enum leat_status status;

	if (shard == LEAT_MAX_SHARDS)
		return leat_fail(err, LEAT_INVALID, "more than %d shards: increase --shard-size", LEAT_MAX_SHARDS);
	status = leat_outputs_room(&job->outputs, shard + 1, err);
	if (status == LEAT_OK)
		status = leat_outputs_open_shard(&job->outputs, shard, (size_t)job->p->shards, err);
	if (status == LEAT_OK && job->format->begin)
		status = job->format->begin(&job->convert, &job->outputs.file[shard], err);
	job->in_shard = 0;
	return status;
}

static struct leat_writer **
current(const struct job *job)
{
	return job->format->shards ? &job->outputs.file[job->outputs.count - 1] : job->outputs.file;
}

static enum leat_status
close_shard(struct job *job, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	if (job->format->end)
		status = job->format->end(&job->convert, current(job), job->in_shard, err);
	for (struct leat_writer **file = current(job);
	     file < job->outputs.file + job->outputs.count && status == LEAT_OK; file++)
		status = leat_write_finish(*file, LEAT_COMMIT_SYNC, err);
	return status;
}

/* Does the sample belong to the current shard? */
static bool
belongs(const struct job *job, uint64_t position)
{
	uint64_t shards = (uint64_t)job->p->shards, next = job->outputs.count, count = leat_samples(job->feed);

	if (!shards)
		return (*current(job))->size < (uint64_t)job->p->shard_size;
	/* count * next / shards, without overflow. */
	return next == shards || position < count / shards * next + count % shards * next / shards;
}

/* Advances to the sample's shard. Shards may be empty if bad samples were skipped. */
static enum leat_status
go_to_shard(struct job *job, uint64_t position, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	while (job->format->shards && status == LEAT_OK && !(job->outputs.count && belongs(job, position))) {
		if (job->outputs.count)
			status = close_shard(job, err);
		if (status == LEAT_OK)
			status = open_shard(job, err);
	}
	return status;
}

static enum leat_status
open_outputs(struct job *job, struct leat_err *err)
{
	enum leat_status status = leat_outputs_begin(&job->outputs, job->p->overwrite, err);

	if (status == LEAT_OK && job->format->shards)
		status = leat_outputs_spare(&job->outputs, job->feed->pipeline.source.files, err);
	if (status != LEAT_OK || job->format->shards)
		return status;
	status = leat_outputs_room(&job->outputs, (size_t)leat_field_count(job->feed), err);
	for (int f = 0; f < leat_field_count(job->feed) && status == LEAT_OK; f++)
		status = leat_outputs_open_file(&job->outputs, (size_t)f, leat_field_at(job->feed, f)->name,
		                                job->p->overwrite, err);
	if (status == LEAT_OK)
		status = leat_outputs_spare(&job->outputs, job->feed->pipeline.source.files, err);
	return status == LEAT_OK ? job->format->begin(&job->convert, job->outputs.file, err) : status;
}

/* ---- samples ---- */

static enum leat_status
store_sample(struct job *job, const struct leat_tensor *tensor, uint64_t position, int64_t i, struct leat_err *err)
{
	struct leat_row row[LEAT_MAX_FIELDS];
	enum leat_status status = go_to_shard(job, position, err);

	for (int f = 0; f < leat_field_count(job->feed); f++)
		leat_row_of(&row[f], leat_field_at(job->feed, f), &tensor[f], i);
	if (status == LEAT_OK)
		status = job->format->write(&job->convert, current(job), position, row, err);
	job->samples++;
	job->in_shard++;
	return status;
}

static enum leat_status
store_batch(struct job *job, const struct leat_batch *batch, struct leat_err *err)
{
	struct leat_tensor tensor[LEAT_MAX_FIELDS];
	enum leat_status status = LEAT_OK;

	for (int f = 0; f < leat_field_count(job->feed) && status == LEAT_OK; f++)
		status = leat_batch_field(batch, leat_field_at(job->feed, f)->name, &tensor[f], err);
	for (int64_t i = 0; i < leat_batch_count(batch) && status == LEAT_OK; i++)
		if (leat_batch_valid(batch)[i])
			status = store_sample(job, tensor, leat_batch_position(batch, i), i, err);
	return status;
}

static enum leat_status
store_all(struct job *job, struct leat_err *err)
{
	struct leat_batch *batch;
	enum leat_status status;

	leat_progress_begin(&job->progress, stderr, "converted");
	if (job->p->quiet)
		job->progress.out = NULL;
	while ((status = leat_next(job->feed, &batch, err)) == LEAT_OK) {
		status = store_batch(job, batch, err);
		leat_release(batch);
		if (status != LEAT_OK)
			break;
		leat_progress_at(&job->progress, job->samples, leat_samples(job->feed));
	}
	leat_progress_end(&job->progress);
	if (status != LEAT_END && status != LEAT_DONE)
		return status;
	leat_err_clear(err);
	if (!job->samples)
		return leat_fail(err, LEAT_DATA, "all samples are bad");
	status = LEAT_OK;
	if (job->p->shards) /* shards of skipped samples */
		status = go_to_shard(job, leat_samples(job->feed) - 1, err);
	return status == LEAT_OK ? close_shard(job, err) : status;
}

/* ---- the result ---- */

static void
print_notes(const struct job *job)
{
	for (int f = 0; f < leat_field_count(job->feed); f++)
		if (leat_field_at(job->feed, f)->dtype == LEAT_F64 && job->format == &leat_convert_tfrecord)
			leat_print_line(
				stdout,
				"field '%s' was converted from float64 to float32, because TFRecord has no float64",
				leat_field_at(job->feed, f)->name);
}

static enum leat_status
print_summary(const struct job *job, struct leat_err *err)
{
	char *pattern = job->format->shards ? leat_shard_pattern(&job->outputs) : NULL, size[32];
	enum leat_status status = LEAT_OK;
	struct leat_stats stats;
	struct leat_str spec;

	leat_stats(job->feed, &stats);
	printf("%" PRIu64 " sample%s in %zu file%s, %s\n", job->samples, leat_plural(job->samples), job->outputs.count,
	       leat_plural(job->outputs.count), leat_format_size(size, sizeof(size), job->outputs.bytes));
	if (stats.bad)
		printf("%" PRIu64 " bad sample%s\n", stats.bad, leat_plural(stats.bad));
	leat_print_bad(job->feed, stats.bad);
	print_notes(job);
	leat_str_init(&spec, job->mem, MAX_SPEC);
	job->format->print_spec(&job->convert, pattern ? pattern : job->p->output, &spec);
	if (spec.failed || (job->format->shards && !pattern))
		status = leat_fail_mem(err, job->mem, MAX_SPEC, "the spec that reads it back");
	else
		printf("read it with\n  %s\n", leat_str_text(&spec));
	leat_str_free(&spec);
	leat_free(job->mem, pattern);
	return status;
}

static void
stop(void *arg)
{
	struct job *job = arg;

	leat_cancel(job->feed);
	leat_stores_interrupt(&job->outputs.stores, true);
}

static enum leat_status
convert(struct job *job, struct leat_err *err)
{
	struct leat_interrupt interrupt;
	enum leat_status status;

	leat_interrupt_begin(&interrupt, stop, job);
	status = store_all(job, err);
	if ((leat_interrupt_end(&interrupt) && status == LEAT_OK) || status == LEAT_CANCELLED) {
		leat_err_clear(err);
		return leat_fail(err, LEAT_CANCELLED, "stopped; nothing was written");
	}
	if (status == LEAT_OK)
		status = leat_outputs_publish(&job->outputs, err);
	return status == LEAT_OK ? print_summary(job, err) : status;
}

enum leat_status
leat_convert_run(const struct leat_convert_request *request, const char *spec, struct leat_err *err)
{
	struct leat_mem *mem = request->run->mem;
	struct job job = {.p = request, .mem = mem};
	enum leat_status status, closed;

	job.format = formats[job.p->format];
	leat_outputs_init(&job.outputs, job.p->output, job.format->suffix, job.format->shards, request->run->arguments,
	                  request->run->storage, mem);
	status = open_feed(&job, spec, err);
	job.convert = (struct leat_convert){.feed = job.feed, .mem = mem};
	leat_example_init(&job.convert.example, mem, max_record);
	if (status == LEAT_OK)
		status = check(&job, err);
	if (status == LEAT_OK)
		status = open_outputs(&job, err);
	if (status == LEAT_OK)
		status = convert(&job, err);
	leat_example_free(&job.convert.example);
	leat_free(mem, job.convert.numbers);
	leat_outputs_free(&job.outputs);
	leat_close(job.feed);
	closed = leat_bad_file_close(&job.bad, err);
	return status == LEAT_OK ? closed : status;
}
