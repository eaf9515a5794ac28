/* pack.c - `leat pack`: pack labelled images into shards; specs are handled by convert_run.c
 *
 * The order of the samples is fixed before anything is written: that of the sources folder and list, permuted by
 * the seed. Shard s of n holds samples [s * count / n, (s + 1) * count / n) of that order, so any thread can write
 * any shard, and the output does not depend on the number of threads. */
#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/size.h"
#include "base/threads.h"
#include "cli/command.h"
#include "cli/convert_run.h"
#include "cli/interrupt.h"
#include "cli/outputs.h"
#include "cli/pack_list.h"
#include "cli/print.h"
#include "format/example.h"
#include "format/image_formats.h"
#include "format/record.h"
#include "format/tar_write.h"
#include "image/jpeg_restart.h"

static const char *const suffixes[] = {".tfrecord", ".tar"};

struct pack {
	const char *output, *root;
	int format;
	int64_t shards, shard_size;
	bool shuffle, overwrite;
	int64_t seed, threads;
	int64_t restarts, max_pixels, max_bytes;
	struct leat_strings storage;
};

static const struct leat_opt options[] = {
	LEAT_STRING(
		struct pack, output, LEAT_REQUIRED,
		"output prefix (TEXT-00000-of-00008.tfrecord or .tar), or with --format npy, folder (TEXT/FIELD.npy)"),
	LEAT_ENUM(struct pack, format, "tfrecord", LEAT_CONVERT_FORMATS,
                  "output format: TFRecord, tar (WebDataset), or npy, one array per field of a SPEC"),
	LEAT_INT(struct pack, shards, "0", 0, LEAT_MAX_SHARDS, "number of output files; 0: determined by --shard-size"),
	LEAT_SIZE(struct pack, shard_size, "128MiB", 1, 1e15, "approximate file size"),
	LEAT_BOOL(struct pack, shuffle, "true", "keep the order of the names or the list; ignored for a SPEC"),
	LEAT_INT(struct pack, seed, "0", 0, 9e18, "random seed for the order, or for a SPEC"),
	LEAT_BOOL(struct pack, overwrite, "false", "replace files from an earlier run"),
	LEAT_INT(struct pack, threads, "0", 0, 4096, "files to write in parallel; 0: one per available CPU"),
	LEAT_INT(struct pack, restarts, "0", 0, 65535,
                 "add a restart marker to JPEG images every N blocks of 8 or 16 pixels, so crops decode faster; pixels "
                 "do not change; 6 works well; 0: keep images as they are"),
	LEAT_SAMPLE_LIMITS(struct pack),
	LEAT_STORAGE_OPTION(struct pack),
	LEAT_STRING(struct pack, root, "",
                    "folder that files of LIST.csv and symlinks in FOLDER may be in besides its own; /: anywhere"),
	LEAT_OPT_END,
};

/* Shared by all threads. */
struct job {
	const struct pack *pack;
	const struct leat_invocation *run;
	struct leat_stores stores; /* of the samples */
	struct leat_pack_list list;
	struct leat_perm order;
	struct leat_outputs outputs;
	struct leat_mem *mem;
	atomic_bool stopped; /* by ^C */

	pthread_mutex_t lock; /* protects the members below */
	struct leat_progress progress;
	uint64_t done;
};

enum { MAX_RECORD_EXTRA = 1 << 20, MAX_TEXT = 1 << 16, MAX_EXTENSION = 16 };

/* ---- writing ---- */

static enum leat_status
write_example(const struct leat_pack_sample *s, const struct leat_content *content, struct leat_example *example,
              struct leat_writer *out, struct leat_err *err)
{
	enum leat_status status;
	const void *record;
	size_t len;

	leat_example_begin(example);
	leat_example_add_bytes(example, "image", content->bytes, content->len);
	leat_example_add_int64s(example, "label", &s->label, 1);
	leat_example_add_bytes(example, "class", s->class_name, s->class_len);
	leat_example_add_bytes(example, "filename", s->name, s->name_len);
	status = leat_example_finish(example, &record, &len, err);
	return status == LEAT_OK ? leat_tfrecord_write(out, record, len, err) : status;
}

/* "jpg" for "folder/Name.JPG"; "bin" if the name has no usable extension. */
static void
extension_of(const struct leat_pack_sample *s, char extension[MAX_EXTENSION])
{
	const char *dot = memrchr(s->name, '.', s->name_len);
	size_t len = dot ? (size_t)(s->name + s->name_len - dot) - 1 : 0;
	bool good = len > 0 && len < MAX_EXTENSION;

	for (size_t i = 0; i < len && good; i++) {
		good = isalnum((unsigned char)dot[1 + i]);
		extension[i] = (char)tolower((unsigned char)dot[1 + i]);
	}
	if (good)
		extension[len] = '\0';
	else
		strcpy(extension, "bin");
}

static enum leat_status
write_members(const struct leat_pack_sample *s, uint64_t position, const struct leat_content *content,
              struct leat_writer *out, struct leat_err *err)
{
	struct iovec image = {content->bytes, content->len}, label;
	char extension[MAX_EXTENSION], name[64], number[32];
	enum leat_status status;

	extension_of(s, extension);
	snprintf(name, sizeof(name), "%08llu.%s", (unsigned long long)position, extension);
	status = leat_tar_write(out, name, &image, 1, err);
	if (status != LEAT_OK)
		return status;
	label = (struct iovec){number, (size_t)snprintf(number, sizeof(number), "%lld", (long long)s->label)};
	snprintf(name, sizeof(name), "%08llu.cls", (unsigned long long)position);
	return leat_tar_write(out, name, &label, 1, err);
}

static enum leat_status
write_content(const struct job *job, const struct leat_pack_sample *s, uint64_t position,
              const struct leat_content *content, struct leat_example *example, struct leat_writer *out,
              struct leat_err *err)
{
	if (job->pack->format == LEAT_CONVERT_TAR)
		return write_members(s, position, content, out, err);
	return write_example(s, content, example, out, err);
}

/* Damaged and non-JPEG files are stored unchanged. */
static enum leat_status
write_with_restarts(const struct job *job, const struct leat_pack_sample *s, uint64_t position,
                    const struct leat_content *content, struct leat_example *example, struct leat_writer *out,
                    struct leat_err *err)
{
	struct leat_content marked = {0};
	enum leat_status status;
	void *bytes = NULL;

	if (leat_jpeg_add_restarts(content->bytes, content->len, (unsigned)job->pack->restarts, &bytes, &marked.len)) {
		marked.bytes = bytes;
		content = &marked;
	}
	status = write_content(job, s, position, content, example, out, err);
	free(bytes);
	return status;
}

static enum leat_status
write_sample(const struct job *job, uint64_t position, struct leat_content *content, struct leat_example *example,
             struct leat_writer *out, struct leat_err *err)
{
	uint64_t index = job->pack->shuffle ? leat_perm_at(&job->order, position) : position;
	struct leat_pack_sample s;
	enum leat_status status;

	leat_pack_sample(&job->list, index, &s);
	status = leat_content_read(content, &s.object, err);
	if (status != LEAT_OK)
		return status;
	if (atomic_load_explicit(&job->stopped, memory_order_relaxed))
		return leat_fail(err, LEAT_CANCELLED, "stopped; nothing was written");
	if (job->pack->restarts)
		return write_with_restarts(job, &s, position, content, example, out, err);
	return write_content(job, &s, position, content, example, out, err);
}

static void
count_one(struct job *job)
{
	pthread_mutex_lock(&job->lock);
	leat_progress_at(&job->progress, ++job->done, job->list.count);
	pthread_mutex_unlock(&job->lock);
}

static enum leat_status
fill_shard(struct job *job, size_t shard, struct leat_writer *out, struct leat_err *err)
{
	size_t shards = job->outputs.count;
	uint64_t first = job->list.count * shard / shards, end = job->list.count * (shard + 1) / shards;
	struct leat_content content = {.mem = job->mem, .max = (uint64_t)job->pack->max_bytes};
	enum leat_status status = LEAT_OK;
	struct leat_example example;

	leat_example_init(&example, job->mem, (size_t)job->pack->max_bytes + MAX_RECORD_EXTRA);
	for (uint64_t i = first; i < end && status == LEAT_OK; i++) {
		status = write_sample(job, i, &content, &example, out, err);
		count_one(job);
	}
	if (status == LEAT_OK && job->pack->format == LEAT_CONVERT_TAR)
		status = leat_tar_write_end(out, err);
	leat_example_free(&example);
	leat_free(job->mem, content.bytes);
	return status;
}

/* Any thread. If any shard fails, all are discarded. */
static enum leat_status
write_shard(void *arg, size_t shard, struct leat_err *err)
{
	struct job *job = arg;
	enum leat_status status = leat_outputs_open_shard(&job->outputs, shard, job->outputs.count, err);

	if (status == LEAT_OK)
		status = fill_shard(job, shard, job->outputs.file[shard], err);
	if (status == LEAT_OK)
		status = leat_write_finish(job->outputs.file[shard], LEAT_COMMIT_SYNC, err);
	return status;
}

/* ---- the command ---- */

static unsigned
threads_of(const struct pack *pack)
{
	return pack->threads ? (unsigned)pack->threads : leat_cpus("");
}

static enum leat_status
list_samples(struct job *job, struct leat_store *store, const char *uri, enum leat_what what, struct leat_err *err)
{
	struct leat_object object;

	switch (what) {
	case LEAT_IS_FOLDER:
		return leat_pack_list_folder(&job->list, store, uri, job->pack->root, threads_of(job->pack), err);
	case LEAT_IS_OBJECT:
		return leat_pack_list_csv(&job->list, store, uri, job->pack->root, threads_of(job->pack), err);
	default:
		return store->kind->look(store, uri, &object, err);
	}
}

static enum leat_status
choose_shards(const struct job *job, size_t *shards, struct leat_err *err)
{
	uint64_t size = (uint64_t)job->pack->shard_size;

	*shards = (size_t)job->pack->shards;
	if (!*shards) {
		uint64_t wanted = job->list.bytes / size + (job->list.bytes % size > 0);

		*shards = wanted < 1 ? 1 : wanted > job->list.count ? job->list.count : (size_t)wanted;
	}
	if (*shards > job->list.count)
		return leat_fail(err, LEAT_INVALID, "%zu sample%s cannot fill %zu shards", job->list.count,
		                 leat_plural(job->list.count), *shards);
	if (*shards > LEAT_MAX_SHARDS)
		return leat_fail(err, LEAT_INVALID, "%zu shards are too many: increase --shard-size", *shards);
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
		leat_str_addf(leat_table_cell(&table), "%zu", c);
		leat_str_addf(leat_table_cell(&table), "%zu", list->class[c].samples);
		leat_str_addn(leat_table_cell(&table), list->class[c].name, list->class[c].len);
	}
	if (table.cells)
		printf("label, samples and name of each class\n");
	status = leat_table_print(&table, stdout, err);
	if (list->classes > SHOWN)
		printf("  and %zu more\n", list->classes - SHOWN);
	return status;
}

static bool
has_extension(const char *extensions, const char *extension)
{
	size_t len = strlen(extension), n;

	for (; *extensions; extensions += n + (extensions[n] == ';')) {
		n = strcspn(extensions, ";");
		if (n == len && memcmp(extensions, extension, n) == 0)
			return true;
	}
	return false;
}

/* "jpg;png": all extensions in use, in order of appearance. */
static void
add_extensions(const struct leat_pack_list *list, struct leat_str *out)
{
	char extension[MAX_EXTENSION], last[MAX_EXTENSION] = "";

	for (size_t i = 0; i < list->count; i++) {
		struct leat_pack_sample s;

		leat_pack_sample(list, i, &s);
		extension_of(&s, extension);
		if (strcmp(extension, last) != 0 && !has_extension(leat_str_text(out), extension))
			leat_str_addf(out, "%s%s", out->len ? ";" : "", extension);
		strcpy(last, extension);
	}
}

static enum leat_status
print_spec(const struct job *job, struct leat_err *err)
{
	char *pattern = leat_shard_pattern(&job->outputs);
	struct leat_str quoted, extensions;
	enum leat_status status = LEAT_OK;

	leat_str_init(&quoted, job->mem, MAX_TEXT);
	leat_str_init(&extensions, job->mem, MAX_TEXT);
	if (pattern)
		leat_str_add_quoted(&quoted, pattern);
	if (job->pack->format == LEAT_CONVERT_TAR)
		add_extensions(&job->list, &extensions);
	if (!pattern || quoted.failed || extensions.failed)
		status = leat_fail_mem(err, job->mem, MAX_TEXT, "a spec");
	else if (job->pack->format == LEAT_CONVERT_TAR)
		printf("read it with\n  tar(%s, fields=['image=%s', 'label=cls:int64']) | decode | shuffle | "
		       "batch(32)\n",
		       leat_str_text(&quoted), leat_str_text(&extensions));
	else
		printf("read it with\n  tfrecord(%s) | example(image=bytes, label=int64) | decode | shuffle | "
		       "batch(32)\n",
		       leat_str_text(&quoted));
	leat_str_free(&quoted);
	leat_str_free(&extensions);
	leat_free(job->mem, pattern);
	return status;
}

static enum leat_status
print_summary(const struct job *job, struct leat_err *err)
{
	const struct leat_pack_list *list = &job->list;
	enum leat_status status;
	char size[32];

	printf("%zu sample%s in %zu file%s, %s\n", list->count, leat_plural(list->count), job->outputs.count,
	       leat_plural(job->outputs.count), leat_format_size(size, sizeof(size), job->outputs.bytes));
	if (list->left_out)
		leat_print_line(stdout, "skipped %llu file%s (not in a class folder, or not %s), such as %s",
		                (unsigned long long)list->left_out, leat_plural(list->left_out), leat_image_extensions,
		                list->left_out_first);
	status = print_classes(job, err);
	return status == LEAT_OK ? print_spec(job, err) : status;
}

static void
stop(void *arg)
{
	struct job *job = arg;

	atomic_store(&job->stopped, true);
	leat_stores_interrupt(&job->stores, true);
	leat_stores_interrupt(&job->outputs.stores, true);
}

static enum leat_status
write_all(struct job *job, struct leat_err *err)
{
	struct leat_interrupt interrupt;
	enum leat_status status;

	leat_perm_init(&job->order, job->list.count, (uint64_t)job->pack->seed, 0, leat_stream("pack", 0));
	leat_interrupt_begin(&interrupt, stop, job);
	leat_progress_begin(&job->progress, stderr, "packed");
	status = leat_parallel(job->mem, threads_of(job->pack), job->outputs.count, write_shard, job, err);
	leat_progress_end(&job->progress);
	if (leat_interrupt_end(&interrupt) && (status == LEAT_OK || status == LEAT_CANCELLED)) {
		leat_err_clear(err);
		status = leat_fail(err, LEAT_CANCELLED, "stopped; nothing was written");
	}
	return status == LEAT_OK ? leat_outputs_publish(&job->outputs, err) : status;
}

static enum leat_status
pack_spec(const struct job *job, const char *spec, struct leat_err *err)
{
	const struct pack *pack = job->pack;
	struct leat_convert_request request = {
		.output = pack->output,
		.format = pack->format,
		.shards = pack->shards,
		.shard_size = pack->shard_size,
		.seed = pack->seed,
		.threads = pack->threads,
		.max_bad = -1,
		.max_pixels = pack->max_pixels,
		.max_bytes = pack->max_bytes,
		.overwrite = pack->overwrite,
		.run = job->run,
	};

	return leat_convert_run(&request, spec, err);
}

static enum leat_status
refuse_npy(const char *text, enum leat_what what, struct leat_err *err)
{
	return leat_fail(err, LEAT_INVALID,
	                 "npy needs images of one size: pack a spec, such as \"%s('%s') | decode | resize(224, 224) | "
	                 "cast(uint8)\"",
	                 what == LEAT_IS_OBJECT ? "list" : "folder", text);
}

/* job->list is filled. */
static enum leat_status
pack_samples(struct job *job, struct leat_err *err)
{
	enum leat_status status;
	size_t shards = 0;

	leat_outputs_init(&job->outputs, job->pack->output, suffixes[job->pack->format], true, job->run->arguments,
	                  job->run->storage, job->mem);
	status = choose_shards(job, &shards, err);
	if (status == LEAT_OK)
		status = leat_outputs_begin(&job->outputs, job->pack->overwrite, err);
	if (status == LEAT_OK)
		status = leat_outputs_room(&job->outputs, shards, err);
	if (status == LEAT_OK)
		status = write_all(job, err);
	if (status == LEAT_OK)
		status = print_summary(job, err);
	leat_outputs_free(&job->outputs);
	return status;
}

/* A file can have any name, so an existing path is never taken for a spec. */
static enum leat_status
pack_what(struct job *job, const char *text, struct leat_store *store, const char *uri, struct leat_err *err)
{
	enum leat_what what = leat_what_is(store, uri);
	enum leat_status status;

	if (what == LEAT_IS_NOTHING && strchr(text, '('))
		return pack_spec(job, text, err);
	if (job->pack->format == LEAT_CONVERT_NPY)
		return refuse_npy(text, what, err);
	leat_pack_list_init(&job->list, job->mem);
	status = list_samples(job, store, uri, what, err);
	if (status == LEAT_OK)
		status = pack_samples(job, err);
	leat_pack_list_free(&job->list);
	return status;
}

static enum leat_status
run_pack(const struct leat_invocation *run, struct leat_err *err)
{
	struct job job = {.pack = run->params, .run = run, .mem = run->mem, .lock = PTHREAD_MUTEX_INITIALIZER};
	struct leat_store *store;
	enum leat_status status;
	char *uri;

	leat_stores_init(&job.stores, run->mem);
	job.stores.storage = run->storage;
	status = leat_stores_find(&job.stores, run->operand[0], &store, &uri, err);
	if (status == LEAT_OK) {
		status = pack_what(&job, run->operand[0], store, uri, err);
		leat_free(run->mem, uri);
	}
	leat_stores_close(&job.stores);
	return status;
}

const struct leat_command leat_command_pack = {
	.name = "pack",
	.summary = "Pack labelled images, or any spec, into TFRecord, tar or npy files",
	.operands = "FOLDER|LIST.csv|SPEC",
	.min_operands = 1,
	.max_operands = 1,
	.help = "FOLDER contains one folder per class; classes are labelled 0, 1, ... in order of their\n"
		"names. LIST.csv has a path, relative to the list, and a label in each row; a header\n"
		"such as path,label is skipped. Images are stored unchanged. In TFRecord files, each\n"
		"record is a tf.train.Example with the features image (the file's bytes), label, class\n"
		"and filename. In tar files, a sample is KEY.jpg (or the image's own extension) and\n"
		"KEY.cls. A SPEC is saved like 'leat convert' does, which has more options.",
	.example =
		"leat pack cells --output cells-train --shards 8\nleat pack cells.csv -o out/cells --shard-size 64MB\n"
		"leat pack cells -o cells --format tar\n"
		"leat pack \"folder('cells') | decode | resize(64, 64) | cast(uint8)\" -o arrays --format npy",
	.opts = options,
	.params_size = sizeof(struct pack),
	.run = run_pack,
};
