/* log.c - `leat log`: list builds, or print what an action printed
 *
 * An action that failed has no manifest: the log of its build names what it printed. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cas/manifest.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/runs.h"

struct params {
	const char *project;
	int64_t builds;
};

static const struct leat_opt options[] = {
	LEAT_PROJECT_OPTION(struct params),
	LEAT_INT(struct params, builds, "20", 1, 1000000, "without an operand: list at most this many builds"),
	LEAT_OPT_END,
};

/* What is looked for in logs of builds, and what was found: the last that matches. A failure comes before others. */
struct search {
	const char *id, *step, *slice; /* NULL: any */
	bool is_found, is_failed;
	struct leat_digest log;
	char about[700];
};

static bool
matches(const char *wanted, const char *value)
{
	return !wanted || (value && strcmp(wanted, value) == 0);
}

static enum leat_status
look(void *arg, const struct leat_run_line *line, struct leat_err *err)
{
	const char *log = json_string_value(json_object_get(line->json, "log"));
	struct search *s = arg;
	struct leat_digest digest;
	bool failed;

	(void)err;
	if (!log || !line->step || !leat_digest_parse(log, &digest))
		return LEAT_OK;
	if (!matches(s->id, line->id) || !matches(s->step, line->step) ||
	    !matches(s->slice, line->slice ? line->slice : ""))
		return LEAT_OK;
	failed = line->event && strcmp(line->event, "failed") == 0;
	if (s->is_failed && !failed && !s->slice)
		return LEAT_OK;
	s->is_found = true;
	s->is_failed = failed;
	s->log = digest;
	snprintf(s->about, sizeof(s->about), "%s%s%s%s", line->id ? line->id : line->step,
	         line->slice && *line->slice ? ", " : "", line->slice ? line->slice : "", failed ? ", failed" : "");
	return LEAT_OK;
}

/* In the newest build that has it. */
static enum leat_status
search_runs(const struct leat_steps *steps, struct search *s, struct leat_err *err)
{
	struct leat_mem *mem = steps->project->mem;
	struct leat_paths runs = {0};
	enum leat_status status = leat_runs_list(steps->cas, mem, &runs, err);

	for (size_t i = 0; i < runs.count && status == LEAT_OK && !s->is_found; i++)
		status = leat_run_lines(steps->cas, runs.path[i], &(struct leat_run_lines_reader){look, s}, err);
	leat_paths_free(&runs, mem);
	return status;
}

/* Of an action that has a manifest. */
static bool
find_made(const struct leat_steps *steps, const char *text, struct search *s)
{
	struct leat_manifest *manifest = NULL;

	if (leat_ask_action(steps, text, &manifest, NULL) != LEAT_OK)
		return false;
	s->log = manifest->log;
	snprintf(s->about, sizeof(s->about), "%s-%llu%s%s", manifest->step, (unsigned long long)manifest->number,
	         *manifest->slice ? ", " : "", manifest->slice);
	leat_manifest_free(manifest, steps->project->mem);
	return true;
}

static enum leat_status
find_log(const struct leat_steps *steps, const char *text, struct search *s, struct leat_err *err)
{
	struct leat_asked asked = {0};
	enum leat_status status = LEAT_OK;
	uint64_t number;
	char step[256];

	if (leat_ask_is_id(text, step, &number)) {
		s->id = text;
	} else {
		status = leat_ask_step(steps, text, &asked, err);
		s->step = asked.step ? asked.step->name : NULL;
		s->slice = asked.slice_text;
	}
	if (status == LEAT_OK && !(s->id && find_made(steps, text, s)))
		status = search_runs(steps, s, err);
	if (status == LEAT_OK && !*s->about && !find_made(steps, text, s))
		status = leat_fail(err, LEAT_DATA, "no build here ran '%s'", text);
	leat_free(steps->project->mem, asked.slice_text);
	return status;
}

static enum leat_status
print_log(struct leat_cas *cas, const struct search *s, struct leat_err *err)
{
	char path[PATH_MAX], part[16384];
	size_t got;
	FILE *file;

	leat_cas_blob_path(cas, &s->log, path);
	file = fopen(path, "re");
	if (!file)
		return leat_fail(err, LEAT_DATA, "what %s printed is not in the store any more", s->about);
	leat_print_line(stderr, "%s", s->about);
	while ((got = fread(part, 1, sizeof(part), file)) > 0)
		fwrite(part, 1, got, stdout);
	fclose(file);
	return LEAT_OK;
}

/* ---- builds ---- */

static enum leat_status
keep_totals(void *arg, const struct leat_run_line *line, struct leat_err *err)
{
	(void)err;
	if (line->event && strcmp(line->event, "end") == 0)
		*(struct leat_build_totals *)arg = (struct leat_build_totals){.actions = line->actions,
		                                                              .cached = line->cached,
		                                                              .ran = line->ran,
		                                                              .failed = line->failed,
		                                                              .skipped = line->skipped,
		                                                              .seconds = line->seconds,
		                                                              .saved_s = line->saved_s};
	return LEAT_OK;
}

/* "20261117T201530-4711  3 ran, 358 made before, in 4.1 s" */
static enum leat_status
print_build(const struct leat_steps *steps, const char *run, struct leat_err *err)
{
	struct leat_build_totals totals = {.actions = SIZE_MAX}; /* until the last line is read */
	bool is_alive = leat_run_is_alive(steps->cas, run);      /* before its log is read: it may end meanwhile */
	enum leat_status status =
		leat_run_last_line(steps->cas, run, &(struct leat_run_lines_reader){keep_totals, &totals}, err);
	struct leat_str line;

	if (status != LEAT_OK)
		return status;
	leat_str_init(&line, steps->project->mem, 4096);
	leat_str_addf(&line, "%s  ", run);
	if (totals.actions != SIZE_MAX)
		leat_progress_summary(&line, &totals, false);
	else
		leat_str_add(&line, is_alive ? "running" : "killed");
	leat_print_line(stdout, "%s", leat_str_text(&line));
	leat_str_free(&line);
	return LEAT_OK;
}

static enum leat_status
print_builds(const struct leat_steps *steps, size_t most, struct leat_err *err)
{
	struct leat_mem *mem = steps->project->mem;
	struct leat_paths runs = {0};
	enum leat_status status = leat_runs_list(steps->cas, mem, &runs, err);

	for (size_t i = 0; i < runs.count && i < most && status == LEAT_OK; i++)
		status = print_build(steps, runs.path[i], err);
	if (status == LEAT_OK && runs.count > most)
		printf("... and %zu before; see --builds\n", runs.count - most);
	leat_paths_free(&runs, mem);
	return status;
}

/* ---- the command ---- */

static enum leat_status
run_log(const struct leat_invocation *run, struct leat_err *err)
{
	const struct params *p = run->params;
	struct search search = {0};
	struct leat_steps steps;
	enum leat_status status = leat_ask_open(&steps, run->mem, p->project, LEAT_LOOK_BACK, err);

	if (status != LEAT_OK)
		return status;
	if (run->operands == 0)
		status = print_builds(&steps, (size_t)p->builds, err);
	else
		status = find_log(&steps, run->operand[0], &search, err);
	if (status == LEAT_OK && run->operands > 0)
		status = print_log(steps.cas, &search, err);
	leat_steps_close(&steps);
	return status;
}

const struct leat_command leat_command_log = {
	.name = "log",
	.summary = "List builds, or print what an action printed, also if it failed",
	.operands = "[ID|STEP[:SLICE]]",
	.min_operands = 0,
	.max_operands = 1,
	.help = "A step's name prints its last log: of a sliced step, that of the slice that failed last, or ran\n"
		"last. Which action it is goes to standard error. Without an operand, builds are listed, newest first.",
	.example = "leat log\n"
		   "leat log decode-42\n"
		   "leat log decode:subject=3,bin=7",
	.opts = options,
	.params_size = sizeof(struct params),
	.run = run_log,
};
