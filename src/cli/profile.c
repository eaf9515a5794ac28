/* profile.c - `leat profile`: what is in a table, on a terminal, as JSON or as a page */
#include <stdio.h>
#include <string.h>

#include "cli/ask.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/profile_print.h"
#include "cli/steps.h"
#include "cli/table_session.h"
#include "cli/text.h"
#include "store/store.h"
#include "table/profile.h"
#include "xray/profile_page.h"

struct params {
	const char *html, *compare, *project;
	int64_t sample, threads, memory;
	bool json;
};

static const struct leat_opt options[] = {
	LEAT_STRING(struct params, html, "", "write the profile to this file, as an HTML page"),
	LEAT_BOOL(struct params, json, "false", "print the profile as JSON"),
	LEAT_STRING(struct params, compare, "", "another table, such as last week's: what moved since?"),
	LEAT_INT(struct params, sample, "0", 0, 1e15, "look at a random sample of this many rows; 0: at all rows"),
	LEAT_TABLE_OPTIONS(struct params),
	LEAT_PROJECT_OPTION(struct params),
	LEAT_OPT_END,
};

struct job {
	const struct leat_invocation *run;
	const struct params *params;
	struct leat_profile now, then;
	struct leat_drift drift;
	bool compares;
};

static enum leat_status
profile_table(struct job *job, struct leat_tables *tables, const char *table, const char *relation,
              struct leat_profile *profile, struct leat_err *err)
{
	struct leat_profile_options o = {.sample = (uint64_t)job->params->sample};
	struct leat_str sql;
	enum leat_status status;

	leat_str_init(&sql, job->run->mem, 1 << 20);
	status = leat_table_add(&sql, table, job->params->project, err);
	if (status == LEAT_OK && sql.failed)
		status = leat_fail_mem(err, job->run->mem, sql.len, "the name of a table");
	o.copy = strncmp(leat_str_text(&sql), "read_parquet", 12) != 0;
	if (status == LEAT_OK)
		status = leat_profile_make(profile, tables, leat_str_text(&sql), relation, &o, job->run->mem, err);
	leat_str_free(&sql);
	return status;
}

static enum leat_status
profile_all(struct job *job, struct leat_tables *tables, struct leat_err *err)
{
	enum leat_status status = profile_table(job, tables, job->run->operand[0], "leat_now", &job->now, err);

	if (status == LEAT_OK && job->compares)
		status = profile_table(job, tables, job->params->compare, "leat_then", &job->then, err);
	if (status == LEAT_OK && job->compares)
		status = leat_drift_make(&job->drift, tables, &job->now, &job->then, err);
	return status;
}

/* ---- the result ---- */

/* A name on the command line need not be UTF-8. */
static void
set_name(json_t *json, const char *key, const char *name)
{
	char shown[1024];

	json_object_set_new(json, key, json_string(leat_show(shown, sizeof(shown), name, strlen(name))));
}

static enum leat_status
make_json(const struct job *job, json_t **json, struct leat_err *err)
{
	*json = leat_profile_json(&job->now, job->compares ? &job->drift : NULL);
	if (!*json)
		return leat_fail(err, LEAT_NOMEM, "no memory for the profile");
	set_name(*json, "table", job->run->operand[0]);
	if (job->compares) {
		json_t *then = leat_profile_json(&job->then, NULL);

		set_name(*json, "compared_with", job->params->compare);
		if (!then || json_object_set_new(*json, "then", then) != 0)
			return leat_fail(err, LEAT_NOMEM, "no memory for the profile");
	}
	return LEAT_OK;
}

static enum leat_status
write_page(const struct job *job, const json_t *json, struct leat_err *err)
{
	struct leat_str page;
	enum leat_status status;

	leat_str_init(&page, job->run->mem, (size_t)1 << 30);
	leat_profile_page(&page, json);
	status = page.failed ? leat_fail(err, LEAT_NOMEM, "no memory for the page")
	                     : leat_write_whole(job->params->html, page.text, page.len, 0, job->run->storage,
	                                        job->run->mem, err);
	leat_str_free(&page);
	return status;
}

static enum leat_status
show(const struct job *job, struct leat_err *err)
{
	json_t *json = NULL;
	enum leat_status status = LEAT_OK;

	if (job->params->json || *job->params->html)
		status = make_json(job, &json, err);
	if (status == LEAT_OK && *job->params->html)
		status = write_page(job, json, err);
	if (status == LEAT_OK && job->params->json) {
		if (json_dumpf(json, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(15)) != 0 || putchar('\n') == EOF)
			status = leat_fail(err, LEAT_IO, "cannot write the result");
	} else if (status == LEAT_OK) {
		status = leat_profile_print(&job->now, job->run->operand[0], &job->then, job->params->compare,
		                            job->compares ? &job->drift : NULL, err);
	}
	json_decref(json);
	return status;
}

/* Of a step: what its last run recorded. */
static void
print_recorded(const struct job *job)
{
	struct leat_manifest *manifest = NULL;
	struct leat_steps steps = {0};
	struct leat_str text;

	if (leat_ask_open(&steps, job->run->mem, job->params->project, LEAT_LOOK_BACK, NULL) != LEAT_OK)
		return;
	leat_str_init(&text, job->run->mem, 1 << 16);
	if (leat_ask_action(&steps, job->run->operand[0], &manifest, NULL) == LEAT_OK)
		leat_ask_drift(manifest, job->run->mem, &text);
	if (text.len) {
		printf("\n");
		leat_print_line(stdout, "drift recorded by the build, %s", leat_str_text(&text));
	}
	leat_str_free(&text);
	leat_manifest_free(manifest, job->run->mem);
	leat_steps_close(&steps);
}

static enum leat_status
run_profile(const struct leat_invocation *run, struct leat_err *err)
{
	struct job job = {.run = run, .params = run->params};
	struct leat_table_session session;
	enum leat_status status = LEAT_OK;

	job.compares = *job.params->compare;
	if (*job.params->html)
		status = leat_check_output(job.params->html, "--html", run->storage, run->mem, err);
	if (status == LEAT_OK)
		status = leat_table_session_open(&session, job.params->threads, job.params->memory, err);
	if (status != LEAT_OK)
		return status;
	status = profile_all(&job, session.tables, err);
	status = leat_table_session_close(&session, status, err);
	if (status == LEAT_OK)
		status = show(&job, err);
	if (status == LEAT_OK && !job.params->json && !job.compares)
		print_recorded(&job);
	leat_drift_free(&job.drift);
	leat_profile_free(&job.now);
	leat_profile_free(&job.then);
	return status;
}

const struct leat_command leat_command_profile = {
	.name = "profile",
	.summary = "Show what is in a table: types, NULLs, ranges, distributions, drift",
	.operands = "TABLE",
	.min_operands = 1,
	.max_operands = 1,
	.help = "TABLE is a Parquet, CSV or JSON file, a pattern such as 'raw/*.parquet', or a step of\n"
		"leat.yaml. All rows are read. Distinct values are counted exactly up to a million, and\n"
		"quantiles are exact up to 20 million rows; beyond, a ~ says that they are approximate.\n"
		"--compare measures how each column moved: the population stability index (PSI; from 0.1\n"
		"on a column moved, from 0.25 on a lot) and the Jensen-Shannon divergence (JS, in bits).",
	.example = "leat profile events.parquet\n"
		   "leat profile clean --html clean.html\n"
		   "leat profile events-47.parquet --compare events-46.parquet",
	.opts = options,
	.params_size = sizeof(struct params),
	.run = run_profile,
};
