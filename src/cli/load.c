/* load.c - `leat load`: CSV files with declared columns to Parquet, bad records set aside */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/print.h"
#include "cli/table_session.h"
#include "table/load.h"

struct params {
	const char *columns, *out, *rejects, *delimiter;
	bool header, overwrite, quiet;
	struct leat_strings null;
	int64_t max_record, memory, show;
	int format; /* enum leat_load_format */
};

static const struct leat_opt options[] = {
	LEAT_STRING(struct params, columns, LEAT_REQUIRED, "names and types: \"user int64, ts timestamp, note text\""),
	LEAT_STRING(struct params, out, LEAT_REQUIRED,
                    "folder to make, for rows.parquet, rejects.jsonl and counts.json"),
	LEAT_STRING(struct params, rejects, "0",
                    "fail if more records are rejected: a share such as 0.1%, or a number"),
	LEAT_ENUM(struct params, format, "auto", "auto|csv|jsonl",
                  "auto: JSON Lines if the name ends in .jsonl or .ndjson"),
	LEAT_STRING(struct params, delimiter, ",", "character between fields; tab: a tab"),
	LEAT_BOOL(struct params, header, "true", "the first line of each file names its columns"),
	LEAT_STRINGS(struct params, null, "", "text that stands for NULL, besides nothing; repeat it for more",
                     LEAT_OPT_REPEATS),
	LEAT_SIZE(struct params, max_record, "16MiB", 16, 1 << 30, "longest record that is accepted"),
	LEAT_SIZE(struct params, memory, "0", 0, 1e18, "memory limit; 0: a quarter of the RAM"),
	LEAT_INT(struct params, show, "5", 0, 10000, "rejected records to print if there are too many"),
	LEAT_BOOL(struct params, overwrite, "false", "replace what an earlier run left in the folder"),
	LEAT_BOOL(struct params, quiet, "false", "print nothing but errors"),
	LEAT_OPT_END,
};

static enum leat_status
remove_result(const char *out, const char *name, struct leat_mem *mem, struct leat_err *err)
{
	char *path = leat_asprintf(mem, "%s/%s", out, name);
	enum leat_status status = LEAT_OK;

	if (!path)
		return leat_fail_mem(err, mem, strlen(out), "the name of a file");
	if (unlink(path) != 0 && errno != ENOENT)
		status = leat_fail_errno(err, errno, "cannot remove '%s'", path);
	leat_free(mem, path);
	return status;
}

static enum leat_status
remove_results(const char *out, struct leat_mem *mem, struct leat_err *err)
{
	enum leat_status status = remove_result(out, "counts.json", mem, err);

	if (status == LEAT_OK)
		status = remove_result(out, "rows.parquet", mem, err);
	return status == LEAT_OK ? remove_result(out, "rejects.jsonl", mem, err) : status;
}

static enum leat_status
make_folder(const struct params *p, struct leat_mem *mem, struct leat_err *err)
{
	if (mkdir(p->out, 0777) == 0)
		return LEAT_OK;
	if (errno != EEXIST)
		return leat_fail_errno(err, errno, "cannot create the folder '%s'", p->out);
	if (!p->overwrite)
		return leat_fail(err, LEAT_INVALID, "'%s' exists; choose another folder, or use --overwrite", p->out);
	return remove_results(p->out, mem, err);
}

static void
print_result(const struct params *p, const struct leat_load_result *result)
{
	char size[32];

	if (p->quiet)
		return;
	leat_print_line(stdout, "read %llu records (%s): kept %llu, rejected %llu%s%s",
	                (unsigned long long)result->read, leat_format_size(size, sizeof(size), result->bytes),
	                (unsigned long long)result->kept, (unsigned long long)result->rejected,
	                getenv("LEAT_STEP") ? "" : "; see ", getenv("LEAT_STEP") ? "" : p->out);
}

/* For `leat diff` and the board, if this is a step: numbers that are kept with the action. */
static enum leat_status
write_metrics(const struct leat_load_result *result, struct leat_err *err)
{
	FILE *file;
	bool written;

	if (!getenv("LEAT_STEP"))
		return LEAT_OK;
	file = fopen("metrics.json", "we");
	if (!file)
		return leat_fail_errno(err, errno, "cannot create metrics.json");
	written = fprintf(file, "{\"read\": %llu, \"kept\": %llu, \"rejected\": %llu}\n",
	                  (unsigned long long)result->read, (unsigned long long)result->kept,
	                  (unsigned long long)result->rejected) > 0;
	if (fclose(file) != 0 || !written)
		return leat_fail_errno(err, errno, "cannot write metrics.json");
	return LEAT_OK;
}

/* In a step, the build keeps the list, and says how to see it. */
static void
say_where(const struct params *p, char where[PATH_MAX + 64])
{
	if (getenv("LEAT_STEP"))
		snprintf(where, PATH_MAX + 64, "the first %lld are in its log", (long long)p->show);
	else
		snprintf(where, PATH_MAX + 64, "all are in %s/rejects.jsonl", p->out);
}

/* Rows and counts are removed: what must not be used should not be there. */
static enum leat_status
fail_rejects(const struct params *p, const struct leat_load_result *result, struct leat_mem *mem, struct leat_err *err)
{
	char where[PATH_MAX + 64], percent[32];
	enum leat_status status = remove_result(p->out, "rows.parquet", mem, err);

	if (status == LEAT_OK)
		status = remove_result(p->out, "counts.json", mem, err);
	if (status != LEAT_OK)
		return status;
	fputs(leat_str_text(&result->examples), stderr);
	say_where(p, where);
	leat_format_digits(percent, sizeof(percent), 100.0 * (double)result->rejected / (double)result->read, 2);
	return leat_fail(err, LEAT_DATA, "%llu of %llu records (%s%%) are bad, more than %s; %s",
	                 (unsigned long long)result->rejected, (unsigned long long)result->read, percent, p->rejects,
	                 where);
}

static void
stop(void *arg)
{
	atomic_store((atomic_bool *)arg, true);
}

/* In units of which there are not too many. */
static void
show_progress(void *arg, uint64_t bytes, uint64_t total)
{
	struct leat_progress *progress = arg;
	unsigned shift = total >= (uint64_t)100 << 20 ? 20 : 10;

	progress->what = shift == 20 ? "MiB read" : "KiB read";
	leat_progress_at(progress, bytes >> shift, (total + (1u << shift) - 1) >> shift);
}

static enum leat_status
load(const struct leat_invocation *run, struct leat_load *load, const struct leat_reject_limit *limit,
     struct leat_err *err)
{
	const struct params *p = run->params;
	struct leat_load_result result = {0};
	struct leat_interrupt interrupt;
	struct leat_progress progress;
	atomic_bool stopped = false;
	enum leat_status status = make_folder(p, run->mem, err);

	if (status != LEAT_OK)
		return status;
	load->stop = &stopped;
	leat_progress_begin(&progress, stderr, "read");
	if (p->quiet)
		progress.out = NULL;
	load->progress = show_progress;
	load->progress_arg = &progress;
	leat_interrupt_begin(&interrupt, stop, &stopped);
	status = leat_load(load, run->operand, run->operands, p->out, &result, run->mem, err);
	leat_interrupt_end(&interrupt);
	leat_progress_end(&progress);
	if (status != LEAT_OK) { /* leave nothing half done; the folder stays if it has other files */
		if (remove_results(p->out, run->mem, NULL) == LEAT_OK)
			rmdir(p->out);
	} else if (!leat_reject_limit_holds(limit, result.rejected, result.read)) {
		status = fail_rejects(p, &result, run->mem, err);
	} else {
		print_result(p, &result);
		status = write_metrics(&result, err);
	}
	leat_str_free(&result.examples);
	return status;
}

static enum leat_status
run_load(const struct leat_invocation *run, struct leat_err *err)
{
	const struct params *p = run->params;
	struct leat_declared_columns columns = {.mem = run->mem};
	struct leat_load what = {.columns = &columns,
	                         .format = (enum leat_load_format)p->format,
	                         .header = p->header,
	                         .null = p->null.value,
	                         .nulls = p->null.count,
	                         .max_record = (size_t)p->max_record,
	                         .memory = (size_t)p->memory,
	                         .examples = (unsigned)p->show,
	                         .written = leat_record_profile};
	struct leat_reject_limit limit;
	enum leat_status status = leat_declared_read(&columns, p->columns, err);

	if (status == LEAT_OK)
		status = leat_reject_limit_read(&limit, p->rejects, err);
	if (status == LEAT_OK)
		status = leat_delimiter_read(p->delimiter, &what.delimiter, err);
	if (status == LEAT_OK)
		status = load(run, &what, &limit, err);
	leat_declared_free(&columns);
	return status;
}

const struct leat_command leat_command_load = {
	.name = "load",
	.summary = "Check CSV or JSON Lines against declared columns and save the rows as Parquet",
	.operands = "FILE...",
	.min_operands = 1,
	.max_operands = SIZE_MAX,
	.help = "Every record is kept in DIR/rows.parquet or listed in DIR/rejects.jsonl, with its file,\n"
		"line, column, reason and raw text; DIR/counts.json has the numbers. Files may be compressed\n"
		"with gzip or zstd. Records are those of RFC 4180; one with a broken quote costs no others.\n\n"
		"Types: bool, int8 to int64, uint8 to uint64, float, double, decimal(10,2), text, date,\n"
		"timestamp (UTC), and skip to leave a column out. Empty fields are NULL; in a text column,\n"
		"\"\" is an empty text. Columns are found by the names in the header, in any order.\n\n"
		"Of JSON Lines (.jsonl, .ndjson), each line is an object. Names that are missing are NULL;\n"
		"dates are texts; objects and arrays go into text columns as they are.",
	.example = "leat load raw/events-*.csv.gz --columns \"user int64, ts timestamp, amount double\" --rejects 0.1% "
		   "--out events\n"
		   "leat load codes.tsv --delimiter tab --no-header --columns \"code text, weight float\" --out codes",
	.opts = options,
	.params_size = sizeof(struct params),
	.run = run_load,
};
