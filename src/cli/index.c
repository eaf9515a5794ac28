/* index.c - `leat index`: index TFRecord and tar files before the first open, or verify files */
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "base/threads.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/verify.h"
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

static enum leat_status
run_index(const struct leat_invocation *run, struct leat_err *err)
{
	const struct index *index = run->params;
	unsigned threads = index->threads ? (unsigned)index->threads : leat_cpus("");
	struct listing l = {.quiet = index->quiet};
	enum leat_status status;
	char size[32];

	if (index->verify)
		return leat_verify(run->operand, run->operands, threads, index->quiet, run->storage, run->mem, err);
	leat_table_init(&l.table, run->mem, 4);
	l.table.right[0] = l.table.right[1] = true;
	if (!index->quiet)
		for (size_t i = 0; i < l.table.columns; i++)
			leat_str_add(leat_table_cell(&l.table),
			             (const char *[]){"samples", "size", "index", "file"}[i]);
	status = leat_index_files(run->operand, run->operands, kind_of, threads, run->storage, run->mem, NULL, report,
	                          &l, err);
	if (status != LEAT_OK) {
		leat_table_free(&l.table);
		return status;
	}
	status = leat_table_print(&l.table, stdout, err);
	if (status != LEAT_OK)
		return status;
	printf("%llu sample%s in %llu file%s, %s; %llu index%s built\n", (unsigned long long)l.samples,
	       leat_plural(l.samples), (unsigned long long)l.files, leat_plural(l.files),
	       leat_format_size(size, sizeof(size), l.bytes), (unsigned long long)l.built, l.built == 1 ? "" : "es");
	if (l.failed)
		return leat_fail(err, LEAT_DATA, "%llu of %llu files have no index", (unsigned long long)l.failed,
		                 (unsigned long long)l.files);
	if (l.damaged)
		return leat_fail(err, LEAT_DATA, "%llu of %llu files are damaged", (unsigned long long)l.damaged,
		                 (unsigned long long)l.files);
	return LEAT_OK;
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
		"of any kind of file are read and nothing is written.",
	.example = "leat index 'train-*.tfrecord'\nleat index --verify 'train-*.tfrecord'",
	.opts = options,
	.params_size = sizeof(struct index),
	.run = run_index,
};
