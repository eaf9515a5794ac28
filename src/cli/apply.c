/* apply.c - `leat apply`: compute fitted features of new data */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/feature_run.h"
#include "cli/print.h"
#include "step/project_read.h"

struct apply {
	const char *output;
	int64_t threads, memory;
};

static const struct leat_opt options[] = {
	LEAT_STRING(struct apply, output, LEAT_REQUIRED, "Parquet file to write"),
	LEAT_INT(struct apply, threads, "0", 0, 4096, "threads; 0: one per available CPU"),
	LEAT_SIZE(struct apply, memory, "0", 0, 1e15, "memory limit; 0: a quarter of the machine's"),
	LEAT_OPT_END,
};

/* The folder with features.json: STATE itself, or what 'leat features' made. */
static enum leat_status
find_state(const char *state, char **folder, struct leat_mem *mem, struct leat_err *err)
{
	static const char *const below[] = {"", "/state"};
	struct stat st;

	for (size_t i = 0; i < sizeof(below) / sizeof(*below); i++) {
		char *file = leat_asprintf(mem, "%s%s/features.json", state, below[i]);
		bool found = file && stat(file, &st) == 0;

		leat_free(mem, file);
		if (!found)
			continue;
		*folder = leat_asprintf(mem, "%s%s", state, below[i]);
		return *folder ? LEAT_OK : leat_fail_mem(err, mem, strlen(state), "a path");
	}
	return leat_fail(err, LEAT_IO, "there is no features.json in '%s'; STATE is a folder that 'leat features' made",
	                 state);
}

static enum leat_status
load(struct leat_features **features, const char *folder, struct leat_mem *mem, struct leat_err *err)
{
	char *file = leat_asprintf(mem, "%s/features.json", folder), *json = NULL;
	enum leat_status status = file ? LEAT_OK : leat_fail_mem(err, mem, strlen(folder), "a path");
	size_t len;

	if (status == LEAT_OK)
		status = leat_project_load(mem, file, LEAT_MAX_STATE, &json, &len, err);
	if (status == LEAT_OK)
		status = leat_features_load(features, mem, json, len, err);
	leat_free(mem, file);
	leat_free(mem, json);
	return status;
}

/* Bits may differ between versions. */
static void
warn_version(const struct leat_features *features)
{
	const char *version = leat_duckdb_version();

	if (version && strcmp(version, features->duckdb) != 0)
		leat_print_line(stderr,
		                "leat: warning: the features were fitted with DuckDB %s, but this is %s; last "
		                "digits may differ",
		                features->duckdb, version);
}

static enum leat_status
write_table(struct leat_features *features, struct leat_feature_run *run, const char *folder, const char *temporary,
            const char *output, struct leat_err *err)
{
	const char *table = leat_str_text(&run->table);
	enum leat_status status = leat_features_attach(features, run->tables, table, folder, err);
	struct leat_str sql;

	if (status != LEAT_OK)
		return status;
	warn_version(features);
	leat_str_init(&sql, run->mem, SIZE_MAX / 4);
	leat_features_select(features, table, false, &sql);
	status = sql.failed ? leat_fail_mem(err, run->mem, sql.len, "a query")
	                    : leat_feature_run_write(run, leat_str_text(&sql), temporary, err);
	leat_str_free(&sql);
	if (status == LEAT_OK && rename(temporary, output) != 0)
		status = leat_fail_errno(err, errno, "cannot rename '%s' to '%s'", temporary, output);
	return status;
}

static enum leat_status
run_apply(const struct leat_invocation *invocation, struct leat_err *err)
{
	const struct apply *o = invocation->params;
	struct leat_mem *mem = invocation->mem;
	char *folder = NULL, *temporary = leat_temporary_name(o->output, mem);
	char *spill = temporary ? leat_asprintf(mem, "%s-spill", temporary) : NULL;
	struct leat_features *features = NULL;
	struct leat_feature_run run = {0};
	enum leat_status status = spill ? find_state(invocation->operand[0], &folder, mem, err)
	                                : leat_fail_mem(err, mem, strlen(o->output), "a path");

	if (status == LEAT_OK)
		status = load(&features, folder, mem, err);
	if (status == LEAT_OK)
		status = leat_feature_run_open(&run, invocation->operand[1], spill, o->threads, o->memory, mem, err);
	if (status == LEAT_OK)
		status = write_table(features, &run, folder, temporary, o->output, err);
	if (status != LEAT_OK && run.tables)
		unlink(temporary);
	leat_feature_run_close(&run);
	leat_features_close(features);
	leat_free(mem, folder);
	leat_free(mem, temporary);
	leat_free(mem, spill);
	return status;
}

const struct leat_command leat_command_apply = {
	.name = "apply",
	.summary = "Compute fitted features of new data",
	.operands = "STATE TABLE",
	.min_operands = 2,
	.max_operands = 2,
	.help = "STATE is a folder that 'leat features' made. TABLE has the same columns as the table that\n"
		"was fitted; columns that are only kept, such as a label, may be missing. The same row\n"
		"gives the same bits as it did then. Features of earlier rows (lag, rolling) look for them in\n"
		"TABLE; target gives the mean of all training rows.",
	.example = "leat apply features today.parquet -o today-features.parquet",
	.opts = options,
	.params_size = sizeof(struct apply),
	.run = run_apply,
};
