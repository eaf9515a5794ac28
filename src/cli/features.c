/* features.c - `leat features`: fit transforms on the training rows of a table, and compute them for all rows
 *
 * The result is a folder: features.parquet, and state/ with features.json and the dictionaries. It appears under its
 * name when it is complete. The table's name sorts first, so that the folder is read as a table. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cas/cas.h"
#include "cli/command.h"
#include "cli/feature_run.h"
#include "cli/print.h"
#include "cli/table_session.h"

struct features {
	const char *columns, *split, *dedupe, *output, *duckdb;
	int64_t threads, memory;
	bool list, markdown;
};

static const struct leat_opt options[] = {
	LEAT_STRING(struct features, columns, "", "features, as 'NAME: TRANSFORM | TRANSFORM; NAME: TRANSFORM'"),
	LEAT_STRING(struct features, split, "",
                    "how rows are divided, such as 'user: train 80%, valid 10%, test 10%'; by default, all are for "
                    "training"),
	LEAT_STRING(
		struct features, dedupe, "",
		"keep one row of those with equal values in these columns, such as 'user, item, order=ts, keep=last'"),
	LEAT_STRING(struct features, output, "", "folder to make"),
	LEAT_INT(struct features, threads, "0", 0, 4096, "threads; 0: one per available CPU"),
	LEAT_SIZE(struct features, memory, "0", 0, 1e15, "memory limit; 0: a quarter of the machine's"),
	LEAT_STRING(struct features, duckdb, "", "version of DuckDB to expect; a step of leat build says which"),
	LEAT_BOOL(struct features, list, "false", "instead, list the transforms"),
	LEAT_BOOL(struct features, markdown, "false", "instead, print the transforms as in docs/FEATURES.md"),
	LEAT_OPT_END,
};

/* ---- the list of transforms ---- */

/* "name(a, b=1)" */
static void
add_call(const struct leat_transform *transform, struct leat_str *out)
{
	const char *comma = "";

	leat_str_add(out, transform->name);
	if (!transform->opts)
		return;
	leat_str_add(out, "(");
	for (const struct leat_opt *opt = transform->opts; opt->name; opt++) {
		leat_str_addf(out, "%s%s", comma, opt->name);
		if (opt->def)
			leat_str_addf(out, "=%s", opt->def);
		comma = ", ";
	}
	leat_str_add(out, ")");
}

static enum leat_status
print_list(const struct leat_invocation *run, struct leat_err *err)
{
	struct leat_table table;

	leat_table_init(&table, run->mem, 2);
	for (const struct leat_transform *const *t = leat_transforms; *t; t++) {
		add_call(*t, leat_table_cell(&table));
		leat_str_add(leat_table_cell(&table), (*t)->doc);
	}
	return leat_table_print(&table, stdout, err);
}

static void
add_row(const struct leat_transform *transform, struct leat_str *out)
{
	leat_str_add(out, "| `");
	add_call(transform, out);
	leat_str_addf(out, "` | %s", transform->doc);
	for (const struct leat_opt *opt = transform->opts; opt && opt->name; opt++)
		leat_str_addf(out, "<br>`%s`: %s", opt->name, opt->doc);
	leat_str_add(out, " |\n");
}

static enum leat_status
print_markdown(const struct leat_invocation *run, struct leat_err *err)
{
	struct leat_str out;
	enum leat_status status;

	leat_str_init(&out, run->mem, SIZE_MAX / 4);
	leat_str_add(&out, "| transform | what it gives |\n|---|---|\n");
	for (const struct leat_transform *const *t = leat_transforms; *t; t++)
		add_row(*t, &out);
	status = out.failed ? leat_fail_mem(err, run->mem, out.len, "the list") : LEAT_OK;
	if (status == LEAT_OK)
		fputs(leat_str_text(&out), stdout);
	leat_str_free(&out);
	return status;
}

/* ---- fitting ---- */

/* One run, with paths in the temporary folder. */
struct job {
	const struct features *options;
	struct leat_mem *mem;
	struct leat_features *features;
	struct leat_feature_run run;
	char *folder, *table, *state, *json, *spill;
};

static enum leat_status
make_folders(struct job *j, struct leat_err *err)
{
	struct stat st;

	if (stat(j->options->output, &st) == 0)
		return leat_fail(err, LEAT_INVALID, "'%s' exists; remove it, or choose another folder",
		                 j->options->output);
	j->folder = leat_temporary_name(j->options->output, j->mem);
	j->table = j->folder ? leat_asprintf(j->mem, "%s/features.parquet", j->folder) : NULL;
	j->state = j->folder ? leat_asprintf(j->mem, "%s/state", j->folder) : NULL;
	j->json = j->folder ? leat_asprintf(j->mem, "%s/state/features.json", j->folder) : NULL;
	j->spill = j->folder ? leat_asprintf(j->mem, "%s/spill", j->folder) : NULL;
	if (!j->table || !j->state || !j->json || !j->spill)
		return leat_fail_mem(err, j->mem, strlen(j->options->output), "a path");
	leat_remove_tree(j->folder); /* of a run that was killed */
	if (mkdir(j->folder, 0777) != 0 || mkdir(j->state, 0777) != 0)
		return leat_fail_errno(err, errno, "cannot make the folder '%s'", j->folder);
	return LEAT_OK;
}

static enum leat_status
write_table(struct job *j, struct leat_err *err)
{
	enum leat_status status;
	struct leat_str sql;

	leat_progress_say("computing features");
	leat_str_init(&sql, j->mem, SIZE_MAX / 4);
	leat_features_select(j->features, leat_str_text(&j->run.table), true, &sql);
	status = sql.failed ? leat_fail_mem(err, j->mem, sql.len, "a query")
	                    : leat_feature_run_write(&j->run, leat_str_text(&sql), j->table, err);
	leat_str_free(&sql);
	return status;
}

static enum leat_status
write_state(const struct job *j, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	struct leat_str json;
	FILE *file;

	leat_str_init(&json, j->mem, SIZE_MAX / 4);
	leat_features_save(j->features, &json);
	if (json.failed)
		return leat_fail_mem(err, j->mem, json.len, "the state");
	file = fopen(j->json, "w");
	if (!file || fwrite(json.text, 1, json.len, file) != json.len)
		status = leat_fail_errno(err, errno, "cannot write '%s'", j->json);
	if (file && fclose(file) != 0 && status == LEAT_OK)
		status = leat_fail_errno(err, errno, "cannot write '%s'", j->json);
	leat_str_free(&json);
	return status;
}

static enum leat_status
count_duplicates(struct job *j, int64_t rows, int64_t *duplicates, struct leat_err *err)
{
	enum leat_status status;
	struct leat_str sql;

	leat_str_init(&sql, j->mem, SIZE_MAX / 4);
	leat_str_addf(&sql, "SELECT count(*) - %lld FROM %s", (long long)rows, leat_str_text(&j->run.table));
	status = sql.failed ? leat_fail_mem(err, j->mem, sql.len, "a query")
	                    : leat_query_int64(j->run.tables, leat_str_text(&sql), duplicates, err);
	leat_str_free(&sql);
	return status;
}

static enum leat_status
count_rows(struct job *j, const struct leat_split_part *part, int64_t *rows, struct leat_err *err)
{
	enum leat_status status;
	struct leat_str sql;

	leat_str_init(&sql, j->mem, SIZE_MAX / 4);
	leat_str_add(&sql, "SELECT count(*) FROM read_parquet(");
	leat_sql_quote(&sql, j->table, '\'');
	leat_str_add(&sql, part ? ") WHERE split = " : ")");
	if (part)
		leat_sql_quote(&sql, part->name, '\'');
	status = sql.failed ? leat_fail_mem(err, j->mem, sql.len, "a query")
	                    : leat_query_int64(j->run.tables, leat_str_text(&sql), rows, err);
	leat_str_free(&sql);
	return status;
}

/* "1200 rows, 5 features, 14 duplicates dropped; train 961, valid 120, test 119" */
static enum leat_status
print_counts(struct job *j, struct leat_err *err)
{
	const struct leat_split *split = &j->features->split;
	struct leat_str line;
	int64_t rows = 0, duplicates = 0;
	enum leat_status status = count_rows(j, NULL, &rows, err);

	leat_str_init(&line, j->mem, SIZE_MAX / 4);
	leat_str_addf(&line, "%lld row%s, %zu feature%s", (long long)rows, leat_plural((unsigned long long)rows),
	              j->features->features, leat_plural(j->features->features));
	if (status == LEAT_OK && j->features->dedupe.by.count) {
		status = count_duplicates(j, rows, &duplicates, err);
		leat_str_addf(&line, ", %lld duplicate%s dropped", (long long)duplicates,
		              leat_plural((unsigned long long)duplicates));
	}
	for (size_t i = 0; i < split->parts && status == LEAT_OK; i++) {
		status = count_rows(j, &split->part[i], &rows, err);
		leat_str_addf(&line, "%s %s %lld", i ? "," : ";", split->part[i].name, (long long)rows);
	}
	if (status == LEAT_OK)
		leat_print_line(stdout, "%s", leat_str_text(&line));
	leat_str_free(&line);
	return status;
}

static enum leat_status
check_version(const char *expected, struct leat_err *err)
{
	enum leat_status status = leat_duckdb_load(err);

	if (status == LEAT_OK && *expected && strcmp(expected, leat_duckdb_version()) != 0)
		status = leat_fail(err, LEAT_UNSUPPORTED, "this is DuckDB %s, but %s was expected; build again",
		                   leat_duckdb_version(), expected);
	return status;
}

static enum leat_status
fit(struct job *j, const char *table, struct leat_err *err)
{
	const struct features *o = j->options;
	enum leat_status status = check_version(o->duckdb, err);

	if (status == LEAT_OK)
		status = make_folders(j, err);
	if (status == LEAT_OK)
		status = leat_feature_run_open(&j->run, table, j->spill, o->threads, o->memory, j->mem, err);
	if (status == LEAT_OK)
		status = leat_features_bind(j->features, j->run.tables, leat_str_text(&j->run.table), err);
	leat_progress_say("fitting");
	if (status == LEAT_OK)
		status = leat_features_fit(j->features, j->run.tables, leat_str_text(&j->run.table), j->state, err);
	if (status == LEAT_OK)
		status = write_table(j, err);
	if (status == LEAT_OK)
		status = leat_features_finish(j->features, err);
	if (status == LEAT_OK)
		status = write_state(j, err);
	if (status == LEAT_OK)
		status = print_counts(j, err);
	if (status == LEAT_OK)
		leat_record_profile(j->run.tables, j->table, j->mem);
	leat_feature_run_close(&j->run);
	if (status == LEAT_OK && rename(j->folder, o->output) != 0)
		status = leat_fail_errno(err, errno, "cannot rename '%s' to '%s'", j->folder, o->output);
	if (status != LEAT_OK && j->folder)
		leat_remove_tree(j->folder);
	return status;
}

/* What is read of other parts is part of what is fitted. */
static void
warn_crossing(const struct leat_features *features)
{
	const struct leat_transform *transform;
	const struct leat_feature *feature = leat_features_crossing(features, &transform);

	if (feature)
		leat_print_line(stderr,
		                "leat: warning: feature '%s': '%s' reads earlier rows of a group, and a group may be "
		                "in several "
		                "parts of the split; split by a column of its 'by', or by time",
		                feature->name, transform->name);
}

static enum leat_status
run_features(const struct leat_invocation *run, struct leat_err *err)
{
	const struct features *o = run->params;
	struct job j = {.options = o, .mem = run->mem};
	enum leat_status status;

	if (o->list || o->markdown)
		return o->list ? print_list(run, err) : print_markdown(run, err);
	if (run->operands != 1 || !*o->columns || !*o->output)
		return leat_fail(err, LEAT_INVALID, "needs a TABLE, --columns and --output");
	status = leat_features_parse(&j.features, run->mem,
	                             &(struct leat_features_text){o->columns, o->split, o->dedupe}, err);
	if (status == LEAT_OK)
		warn_crossing(j.features);
	if (status == LEAT_OK)
		status = fit(&j, run->operand[0], err);
	leat_features_close(j.features);
	leat_free(run->mem, j.folder);
	leat_free(run->mem, j.table);
	leat_free(run->mem, j.state);
	leat_free(run->mem, j.json);
	leat_free(run->mem, j.spill);
	return status;
}

const struct leat_command leat_command_features = {
	.name = "features",
	.summary = "Fit feature transforms on a table's training rows, and apply them",
	.operands = "[TABLE]",
	.min_operands = 0,
	.max_operands = 1,
	.help = "TABLE is a Parquet, CSV or JSON file, a pattern, or a folder of Parquet files. Each\n"
		"feature is a chain of transforms of a column. Statistics come from rows of the part\n"
		"'train' only. OUTPUT becomes a folder: features.parquet has the features of all rows, in\n"
		"their order, and a column 'split'; state/ has what was fitted, for 'leat apply' and for\n"
		"leat.features in Python. See docs/FEATURES.md.",
	.example = "leat features events.parquet --columns 'amount: clip(p01, p99) | standardize; label: keep' \\\n"
		   "    --split 'user: train 80%, test 20%' -o features\n"
		   "leat features --list",
	.opts = options,
	.params_size = sizeof(struct features),
	.run = run_features,
};
