/* pack.c - `leat pack`: images with labels become TFRecord shards
 *
 * The order of the samples is fixed before anything is written: by name, then permuted
 * by the seed. Shard s of n holds the samples [s * count / n, (s + 1) * count / n) of
 * that order, so that each shard can be written by any thread, and the bytes are the
 * same however many there are. */
#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/threads.h"
#include "cli/command.h"
#include "cli/pack_list.h"
#include "cli/print.h"
#include "format/example.h"
#include "format/tfrecord.h"

struct pack {
	const char *output;
	int64_t shards, shard_size;
	bool shuffle, overwrite;
	int64_t seed, threads;
};

static const struct leat_opt options[] = {
	LEAT_STRING(struct pack, output, LEAT_REQUIRED, "where the files go: TEXT-00000-of-00008.tfrecord and so on"),
	LEAT_INT(struct pack, shards, "0", 0, 99999, "number of files; 0: by --shard-size"),
	LEAT_SIZE(struct pack, shard_size, "128MiB", 1, 1e15, "size of a file, about"),
	LEAT_BOOL(struct pack, shuffle, "true", "keep the order of the names, or of the list"),
	LEAT_INT(struct pack, seed, "0", 0, 9e18, "of the order: another number, another order"),
	LEAT_BOOL(struct pack, overwrite, "false", "replace the files that an earlier run made"),
	LEAT_INT(struct pack, threads, "0", 0, 4096, "files written at a time; 0: as many as there are CPUs"),
	LEAT_OPT_END,
};

/* What the threads share. */
struct job {
	const struct pack *pack;
	struct leat_pack_list list;
	struct leat_perm order;
	size_t shards;
	struct leat_mem *mem;

	pthread_mutex_t lock; /* of what follows */
	struct leat_progress progress;
	uint64_t done, bytes;
};

enum { MAX_RECORD_EXTRA = 1 << 20, MAX_TEXT = 1 << 16 };

static char *
shard_path(const struct job *job, size_t shard)
{
	return leat_asprintf(job->mem, "%s-%05zu-of-%05zu.tfrecord", job->pack->output, shard, job->shards);
}

/* ---- writing ---- */

static enum leat_status
append_sample(const struct job *job, uint64_t position, struct leat_content *content, struct leat_example *example,
	      struct leat_tfrecord_writer *writer, struct leat_err *err)
{
	uint64_t index = job->pack->shuffle ? leat_perm_at(&job->order, position) : position;
	const struct leat_pack_sample *s = &job->list.sample[index];
	const char *class_name = s->class_name ? s->class_name : job->list.class_name[s->label];
	enum leat_status status = leat_content_read(content, s->path, err);
	const void *record;
	size_t len;

	if (status != LEAT_OK)
		return status;
	if (!content->len)
		return leat_fail(err, LEAT_DATA, "'%s' is empty", s->path);
	leat_example_begin(example);
	leat_example_add_bytes(example, "image", content->bytes, content->len);
	leat_example_add_int64s(example, "label", &s->label, 1);
	leat_example_add_bytes(example, "class", class_name, strlen(class_name));
	leat_example_add_bytes(example, "filename", s->name, strlen(s->name));
	status = leat_example_finish(example, &record, &len, err);
	return status == LEAT_OK ? leat_tfrecord_writer_append(writer, record, len, err) : status;
}

static void
count(struct job *job, uint64_t samples, uint64_t bytes)
{
	pthread_mutex_lock(&job->lock);
	job->done += samples;
	job->bytes += bytes;
	leat_progress_at(&job->progress, job->done, job->list.count);
	pthread_mutex_unlock(&job->lock);
}

/* Any thread. */
static enum leat_status
write_shard(void *arg, size_t shard, struct leat_err *err)
{
	struct job *job = arg;
	uint64_t first = job->list.count * shard / job->shards, end = job->list.count * (shard + 1) / job->shards;
	struct leat_content content = {.mem = job->mem};
	struct leat_tfrecord_writer writer = {0};
	struct leat_example example;
	char *path = shard_path(job, shard);
	enum leat_status status;

	leat_example_init(&example, job->mem, ((size_t)1 << 30) + MAX_RECORD_EXTRA);
	if (path)
		status = leat_tfrecord_writer_open(&writer, path, job->mem, err);
	else
		status = leat_fail_mem(err, job->mem, 256, "a file name");
	for (uint64_t i = first; i < end && status == LEAT_OK; i++) {
		status = append_sample(job, i, &content, &example, &writer, err);
		count(job, 1, 0);
	}
	if (status == LEAT_OK) {
		uint64_t bytes = writer.out.size;

		status = leat_tfrecord_writer_close(&writer, err);
		count(job, 0, bytes);
	} else {
		leat_tfrecord_writer_abort(&writer);
	}
	leat_example_free(&example);
	leat_free(job->mem, content.bytes);
	leat_free(job->mem, path);
	return status;
}

/* ---- what is there already ---- */

/* Files of another run would be read together with ours, because one pattern names both. */
static enum leat_status
clear_output(const struct job *job, struct leat_err *err)
{
	struct leat_str pattern;
	enum leat_status status = LEAT_OK;
	glob_t found;

	leat_str_init(&pattern, job->mem, MAX_TEXT);
	for (const char *c = job->pack->output; *c; c++)
		leat_str_addf(&pattern, strchr("*?[\\", *c) ? "\\%c" : "%c", *c);
	leat_str_add(&pattern, "-[0-9][0-9][0-9][0-9][0-9]-of-[0-9][0-9][0-9][0-9][0-9].tfrecord");
	if (pattern.failed)
		status = leat_fail(err, LEAT_INVALID, "the name '%.40s...' is too long", job->pack->output);
	else if (glob(leat_str_text(&pattern), 0, NULL, &found) == 0) {
		if (!job->pack->overwrite)
			status = leat_fail(err, LEAT_INVALID,
					   "'%s' is there already; --overwrite replaces it and its like",
					   found.gl_pathv[0]);
		for (size_t i = 0; i < found.gl_pathc && status == LEAT_OK; i++)
			if (unlink(found.gl_pathv[i]) != 0)
				status = leat_fail_errno(err, errno, "cannot remove '%s'", found.gl_pathv[i]);
		globfree(&found);
	}
	leat_str_free(&pattern);
	return status;
}

/* After a failure: a part of the shards is worth nothing and would be taken for the whole. */
static void
remove_output(const struct job *job)
{
	for (size_t i = 0; i < job->shards; i++) {
		char *path = shard_path(job, i);

		if (path)
			unlink(path);
		leat_free(job->mem, path);
	}
}

/* ---- the command ---- */

static enum leat_status
list_samples(struct job *job, const char *path, struct leat_err *err)
{
	struct stat st;

	job->list.mem = job->mem;
	if (stat(path, &st) != 0)
		return leat_fail_errno(err, errno, "cannot read '%s'", path);
	if (S_ISDIR(st.st_mode))
		return leat_pack_list_folder(&job->list, path, err);
	return leat_pack_list_csv(&job->list, path, err);
}

static enum leat_status
choose_shards(struct job *job, struct leat_err *err)
{
	uint64_t size = (uint64_t)job->pack->shard_size;

	job->shards = (size_t)job->pack->shards;
	if (!job->shards) {
		uint64_t wanted = job->list.bytes / size + (job->list.bytes % size > 0);

		job->shards = wanted < 1 ? 1 : wanted > job->list.count ? job->list.count : (size_t)wanted;
	}
	if (job->shards > job->list.count)
		return leat_fail(err, LEAT_INVALID, "there are %zu samples, too few for %zu shards", job->list.count,
				 job->shards);
	if (job->shards > 99999)
		return leat_fail(err, LEAT_INVALID, "%zu shards are too many: make --shard-size larger", job->shards);
	return LEAT_OK;
}

static enum leat_status
print_classes(const struct job *job, struct leat_err *err)
{
	enum { SHOWN = 20 };
	const struct leat_pack_list *list = &job->list;
	struct leat_table table;
	enum leat_status status;

	leat_table_init(&table, job->mem, 3);
	table.right[0] = table.right[1] = true;
	for (size_t c = 0; c < list->classes && c < SHOWN; c++) {
		size_t n = 0;

		for (size_t i = 0; i < list->count; i++)
			n += list->sample[i].label == (int64_t)c;
		leat_str_addf(leat_table_cell(&table), "%zu", c);
		leat_str_addf(leat_table_cell(&table), "%zu", n);
		leat_str_add(leat_table_cell(&table), list->class_name[c]);
	}
	if (table.cells)
		printf("label, samples and name of each class\n");
	status = leat_table_print(&table, stdout, err);
	if (list->classes > SHOWN)
		printf("  and %zu more\n", list->classes - SHOWN);
	return status;
}

static enum leat_status
print_summary(const struct job *job, struct leat_err *err)
{
	const struct leat_pack_list *list = &job->list;
	struct leat_str pattern, spec;
	enum leat_status status;
	char size[32];

	printf("%zu samples in %zu file%s, %s\n", list->count, job->shards, job->shards == 1 ? "" : "s",
	       leat_format_size(size, sizeof(size), job->bytes));
	if (list->left_out)
		printf("left out: %zu file%s not .jpg, .jpeg or .png in a class folder, like %s\n", list->left_out,
		       list->left_out == 1 ? "" : "s", list->left_out_first);
	status = print_classes(job, err);
	leat_str_init(&pattern, job->mem, MAX_TEXT);
	leat_str_init(&spec, job->mem, MAX_TEXT);
	leat_str_addf(&pattern, "%s-?????" "-of-%05zu.tfrecord", job->pack->output, job->shards);
	leat_str_add_quoted(&spec, leat_str_text(&pattern));
	printf("read it with\n  tfrecord(%s) | example(image=bytes, label=int64) | decode | shuffle | batch(32)\n",
	       leat_str_text(&spec));
	leat_str_free(&pattern);
	leat_str_free(&spec);
	return status;
}

static enum leat_status
run_pack(const struct leat_invocation *run, struct leat_err *err)
{
	struct job job = {.pack = run->params, .mem = run->mem, .lock = PTHREAD_MUTEX_INITIALIZER};
	unsigned threads = job.pack->threads ? (unsigned)job.pack->threads : leat_cpus("");
	enum leat_status status = list_samples(&job, run->operand[0], err);

	if (status == LEAT_OK)
		status = choose_shards(&job, err);
	if (status == LEAT_OK)
		status = clear_output(&job, err);
	if (status == LEAT_OK) {
		leat_perm_init(&job.order, job.list.count, (uint64_t)job.pack->seed, 0, leat_stream("pack", 0));
		leat_progress_begin(&job.progress, stderr, "packed");
		status = leat_parallel(run->mem, threads, job.shards, write_shard, &job, err);
		leat_progress_end(&job.progress);
		if (status != LEAT_OK)
			remove_output(&job);
	}
	if (status == LEAT_OK)
		status = print_summary(&job, err);
	leat_pack_list_free(&job.list);
	return status;
}

const struct leat_command leat_command_pack = {
	.name = "pack",
	.summary = "Make TFRecord files of images with labels",
	.operands = "FOLDER|LIST.csv",
	.min_operands = 1,
	.max_operands = 1,
	.help = "FOLDER holds a folder for each class; the classes, sorted by name, are labelled 0, 1, ...\n"
		"LIST.csv has a path, relative to itself, and a label in each row; a first row that says\n"
		"path,label is passed over. Each record is a tf.train.Example with the features image (the\n"
		"file's bytes), label, class and filename.",
	.example =
		"leat pack cells --output cells-train --shards 8\nleat pack cells.csv -o out/cells --shard-size 64MB",
	.opts = options,
	.params_size = sizeof(struct pack),
	.run = run_pack,
};
