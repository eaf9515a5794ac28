/* index.c - `leat index`: index TFRecord and tar files before the first open, or verify files */
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "base/threads.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/verify.h"
#include "format/folder.h"
#include "format/record.h"
#include "format/tar.h"

struct index {
	int64_t threads;
	bool verify, quiet;
	struct leat_strings storage;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct index, threads, "0", 0, 4096, "files to read in parallel; 0: one per available CPU"),
	LEAT_BOOL(struct index, verify, "false",
                  "instead, compare files of 'leat convert' and 'leat pack' with the checksums recorded then"),
	LEAT_BOOL(struct index, quiet, "false", "list only files with problems"),
	LEAT_STORAGE_OPTION(struct index),
	LEAT_OPT_END,
};

struct listing {
	struct leat_table table;
	struct leat_str saved; /* lines about indexes of whole data sets */
	bool quiet;
	uint64_t files, samples, bytes, built, damaged, failed;
};

static const char *
state_text(enum leat_index_state state)
{
	switch (state) {
	case LEAT_INDEX_FRESH:
		return "up to date";
	case LEAT_INDEX_BUILT:
		return "built";
	case LEAT_INDEX_UNSAVED:
		return "not saved";
	case LEAT_INDEX_FAILED:
		return "failed";
	}
	return "";
}

static const struct leat_index_kind *
kind_of(const char *uri)
{
	size_t len = strlen(uri);

	return len > 4 && strcmp(uri + len - 4, ".tar") == 0 ? &leat_tar_index : &leat_tfrecord_index;
}

static void
add_row(struct listing *l, const struct leat_index_report *r)
{
	struct leat_str *cell;
	char size[32];

	leat_str_addf(leat_table_cell(&l->table), "%llu", (unsigned long long)r->samples);
	leat_str_add(leat_table_cell(&l->table), leat_format_size(size, sizeof(size), r->bytes));
	leat_str_add(leat_table_cell(&l->table), state_text(r->state));
	cell = leat_table_cell(&l->table);
	leat_str_add(cell, r->uri);
	if (r->damaged)
		leat_str_addf(cell, ": %llu damaged part%s, %s", (unsigned long long)r->damaged,
		              leat_plural(r->damaged), leat_format_size(size, sizeof(size), r->damaged_bytes));
	if (r->reason)
		leat_str_addf(cell, ": %s", r->reason);
}

static void
report(void *arg, const struct leat_index_report *r)
{
	struct listing *l = arg;

	l->files++;
	l->samples += r->samples;
	l->bytes += r->bytes;
	l->built += r->state == LEAT_INDEX_BUILT;
	l->damaged += r->damaged > 0;
	l->failed += r->state == LEAT_INDEX_FAILED || r->state == LEAT_INDEX_UNSAVED;
	if (!l->quiet || r->damaged || r->reason)
		add_row(l, r);
}

static void
add_saved(struct listing *l, const char *path)
{
	if (!path || l->quiet)
		return;
	leat_str_add(&l->saved, "index of the data set: ");
	leat_str_add_shown(&l->saved, path);
	leat_str_add(&l->saved, "\n");
}

static enum leat_status
index_folder(struct listing *l, const char *dir, unsigned threads, const struct leat_invocation *run,
             struct leat_err *err)
{
	struct leat_folder_report found;
	enum leat_status status = leat_folder_index(dir, threads, run->storage, run->mem, NULL, &found, err);
	const struct leat_index_report r = {
		.uri = dir, .bytes = found.bytes, .samples = found.files, .state = LEAT_INDEX_BUILT};

	if (status == LEAT_OK) {
		report(l, &r);
		l->files += found.files - 1; /* each is a sample */
		add_saved(l, found.path);
	}
	leat_free(run->mem, found.path);
	return status;
}

static enum leat_status
index_files(struct listing *l, const char *const *pattern, size_t count, unsigned threads,
            const struct leat_invocation *run, struct leat_err *err)
{
	char *saved = NULL;
	enum leat_status status = LEAT_OK;

	if (count)
		status = leat_index_files(pattern, count, kind_of, threads, run->storage, run->mem, NULL, report, l,
		                          &saved, err);
	add_saved(l, saved);
	leat_free(run->mem, saved);
	return status;
}

/* What an operand names. */
enum what { LOCAL, REMOTE, FOLDER, WHATS };

static enum leat_status
what_is(struct leat_stores *stores, const char *text, enum what *what, struct leat_err *err)
{
	struct leat_store *store;
	char *uri;
	enum leat_status status = leat_stores_find(stores, text, &store, &uri, err);

	if (status != LEAT_OK)
		return status;
	*what = store->kind->remote ? REMOTE : LOCAL;
	if (!strpbrk(uri, "*?[") && leat_what_is(store, uri) == LEAT_IS_FOLDER)
		*what = FOLDER;
	leat_free(store->mem, uri);
	return LEAT_OK;
}

/* Files on servers get one index together: each kind of operand is handled at once. */
static enum leat_status
index_all(struct listing *l, const struct leat_invocation *run, unsigned threads, struct leat_err *err)
{
	const char **some = leat_alloc_array(run->mem, WHATS * run->operands, sizeof(*some));
	size_t count[WHATS] = {0};
	struct leat_stores stores;
	enum leat_status status = LEAT_OK;

	if (!some)
		return leat_fail_mem(err, run->mem, WHATS * run->operands * sizeof(*some), "the arguments");
	leat_stores_init(&stores, run->mem);
	stores.storage = run->storage;
	for (size_t i = 0; i < run->operands && status == LEAT_OK; i++) {
		enum what what = LOCAL;

		status = what_is(&stores, run->operand[i], &what, err);
		some[what * run->operands + count[what]++] = run->operand[i];
	}
	leat_stores_close(&stores);
	for (enum what what = LOCAL; what < FOLDER && status == LEAT_OK; what++)
		status = index_files(l, some + what * run->operands, count[what], threads, run, err);
	for (size_t i = 0; i < count[FOLDER] && status == LEAT_OK; i++)
		status = index_folder(l, some[FOLDER * run->operands + i], threads, run, err);
	leat_free(run->mem, some);
	return status;
}

static enum leat_status
print_result(struct listing *l, struct leat_err *err)
{
	enum leat_status status = leat_table_print(&l->table, stdout, err);
	char size[32];

	if (status != LEAT_OK)
		return status;
	printf("%llu sample%s in %llu file%s, %s; %llu index%s built\n", (unsigned long long)l->samples,
	       leat_plural(l->samples), (unsigned long long)l->files, leat_plural(l->files),
	       leat_format_size(size, sizeof(size), l->bytes), (unsigned long long)l->built, l->built == 1 ? "" : "es");
	fputs(leat_str_text(&l->saved), stdout);
	if (l->failed)
		return leat_fail(err, LEAT_DATA, "%llu of %llu files have no index", (unsigned long long)l->failed,
		                 (unsigned long long)l->files);
	if (l->damaged)
		return leat_fail(err, LEAT_DATA, "%llu of %llu files are damaged", (unsigned long long)l->damaged,
		                 (unsigned long long)l->files);
	return LEAT_OK;
}

static enum leat_status
run_index(const struct leat_invocation *run, struct leat_err *err)
{
	const struct index *index = run->params;
	unsigned threads = index->threads ? (unsigned)index->threads : leat_cpus("");
	struct listing l = {.quiet = index->quiet};
	enum leat_status status;

	if (index->verify)
		return leat_verify(run->operand, run->operands, threads, index->quiet, run->storage, run->mem, err);
	leat_table_init(&l.table, run->mem, 4);
	leat_str_init(&l.saved, run->mem, SIZE_MAX / 4);
	l.table.right[0] = l.table.right[1] = true;
	if (!index->quiet)
		for (size_t i = 0; i < l.table.columns; i++)
			leat_str_add(leat_table_cell(&l.table),
			             (const char *[]){"samples", "size", "index", "file"}[i]);
	status = index_all(&l, run, threads, err);
	if (status == LEAT_OK)
		status = print_result(&l, err);
	else
		leat_table_free(&l.table);
	leat_str_free(&l.saved);
	return status;
}

const struct leat_command leat_command_index = {
	.name = "index",
	.summary = "Index TFRecord and tar files so feeds open instantly",
	.operands = "PATTERN...",
	.min_operands = 1,
	.max_operands = SIZE_MAX,
	.help = "Writes .NAME.leatidx next to each file whose index is missing or out of date. A feed\n"
		"does the same when it first opens the files. Patterns may contain *, ? and [..].\n"
		"Names ending in .tar are tar files, all others TFRecord files. With --verify, all bytes\n"
		"of any kind of file are read and nothing is written.\n\n"
		"Files on servers get one index together, next to them or in the user's cache folder.\n"
		"A feed of the same names or patterns then opens with one request. A folder of images is\n"
		"listed for folder(). Run it again when files were added, removed or replaced.",
	.example = "leat index 'train-*.tfrecord'\nleat index 's3://bucket/train-*.tar'\nleat index --verify "
		   "'train-*.tfrecord'",
	.opts = options,
	.params_size = sizeof(struct index),
	.run = run_index,
};
