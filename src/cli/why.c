/* why.c - `leat why`: which fields of an action's key changed since it was made last
 *
 * Slices that changed in the same way are told once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cas/manifest.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/print.h"
#include "step/action.h"
#include "step/build.h"

struct params {
	const char *project;
	bool diff;
};

static const struct leat_opt options[] = {
	LEAT_PROJECT_OPTION(struct params),
	LEAT_BOOL(struct params, diff, "true", "show what changed in code"),
	LEAT_OPT_END,
};

enum { MAX_TEXT = 4 * 1024 * 1024, MAX_GROUPS = 20, DIFF_LINES = 60 };

/* Slices with the same answer. */
struct group {
	char *answer; /* what is printed after the line about the slices */
	char *slice;  /* the first */
	size_t slices;
};

struct why {
	struct leat_mem *mem;
	struct leat_cas *cas;
	const struct leat_step *step;
	struct leat_code *code;
	bool diff;
	struct group *group;
	size_t groups, cap, current;
};

/* ---- one change ---- */

/* The text of code: as it was, from the store; as it is, from the project. NULL: it cannot be shown. */
static char *
text_of(const struct why *why, const char *value)
{
	struct leat_content content;
	size_t len;
	char *text;

	if (!value || leat_content_parse(value, &content, NULL) != LEAT_OK ||
	    leat_cas_read(why->cas, &content.digest, MAX_TEXT, &text, &len, NULL) != LEAT_OK)
		return NULL;
	if (strlen(text) == len)
		return text;
	leat_free(why->mem, text);
	return NULL;
}

static char *
file_text(const struct why *why, const struct leat_project *project, const char *path)
{
	struct leat_str text;
	char full[PATH_MAX], part[4096];
	size_t got;
	FILE *file;

	snprintf(full, sizeof(full), "%s%s%s", *path == '/' ? "" : project->folder, *path == '/' ? "" : "/", path);
	file = fopen(full, "re");
	leat_str_init(&text, why->mem, MAX_TEXT);
	while (file && (got = fread(part, 1, sizeof(part), file)) > 0)
		leat_str_addn(&text, part, got);
	if (file)
		fclose(file);
	if (file && !text.failed && strlen(leat_str_text(&text)) == text.len)
		return leat_str_take(&text);
	leat_str_free(&text);
	return NULL;
}

/* Indented; a very long one is cut. */
static void
add_diff_lines(struct leat_str *out, const char *diff)
{
	size_t lines = 0;

	for (; *diff; lines++) {
		if (lines < DIFF_LINES)
			leat_str_add(out, "      ");
		for (; *diff && *diff != '\n'; diff++)
			if (lines < DIFF_LINES)
				leat_str_addn(out, *diff == '\t' ? "        " : diff, *diff == '\t' ? 8 : 1);
		if (lines < DIFF_LINES)
			leat_str_add(out, "\n");
		diff += *diff == '\n';
	}
	if (lines > DIFF_LINES)
		leat_str_addf(out, "      ... and %zu lines more\n", lines - DIFF_LINES);
}

static enum leat_status
add_diff(const struct why *why, const struct leat_project *project, const struct leat_change *change,
         struct leat_str *out, struct leat_err *err)
{
	const char *path = strchr(change->field, '.') + 1;
	char *was = text_of(why, change->was), *now = file_text(why, project, path);
	enum leat_status status = LEAT_OK;
	struct leat_str diff;

	leat_str_init(&diff, why->mem, SIZE_MAX);
	if (was && now)
		status = leat_text_diff(was, now, &diff, err);
	if (status == LEAT_OK)
		add_diff_lines(out, leat_str_text(&diff));
	leat_str_free(&diff);
	leat_free(why->mem, was);
	leat_free(why->mem, now);
	return status;
}

static void
add_value(const struct why *why, const char *label, const char *value, struct leat_str *out)
{
	char shown[LEAT_ASK_TEXT];
	struct leat_content content;

	leat_str_addf(out, "      %s ", label);
	if (!value) {
		leat_str_add(out, "not there");
	} else if (leat_content_parse(value, &content, NULL) == LEAT_OK) {
		leat_str_add(out, leat_ask_content(value, shown));
		leat_ask_maker(why->cas, value, out);
	} else {
		for (; *value; value++)
			leat_str_addn(out, *value == '\n' ? "\n          " : value, *value == '\n' ? 11 : 1);
	}
	leat_str_add(out, "\n");
}

/* Of a command with several lines, such as a query, those that changed. */
static enum leat_status
add_command(const struct why *why, const struct leat_change *change, struct leat_str *out, struct leat_err *err)
{
	struct leat_str diff;
	enum leat_status status;

	leat_str_init(&diff, why->mem, SIZE_MAX);
	status = leat_text_diff(change->was, change->now, &diff, err);
	if (status == LEAT_OK)
		add_diff_lines(out, leat_str_text(&diff));
	leat_str_free(&diff);
	return status;
}

static bool
begins(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

static enum leat_status
add_change(const struct why *why, const struct leat_project *project, const struct leat_change *change,
           struct leat_str *out, struct leat_err *err)
{
	bool is_code = begins(change->field, "code.") || begins(change->field, "import.");

	if (begins(change->field, "absent./")) {
		leat_str_addf(out, "    %s is new, and Python would import it first\n",
		              change->field + strlen("absent./"));
		return LEAT_OK;
	}
	leat_str_addf(out, "    %s %s\n", change->field,
	              !change->was   ? "is new"
	              : !change->now ? "is gone"
	                             : "changed");
	if (is_code && change->was && change->now)
		return why->diff ? add_diff(why, project, change, out, err) : LEAT_OK;
	if (!strcmp(change->field, "command") && why->diff && change->was && change->now && strchr(change->was, '\n') &&
	    strchr(change->now, '\n'))
		return add_command(why, change, out, err);
	if (change->was)
		add_value(why, "was", change->was, out);
	if (change->now)
		add_value(why, "now", change->now, out);
	if (change->was && change->now)
		leat_ask_folders(why->cas, change->was, change->now, out);
	return LEAT_OK;
}

/* ---- one slice ---- */

static enum leat_status
add_changes(const struct why *why, const struct leat_project *project, const struct leat_manifest *last,
            struct leat_key_fields *now, struct leat_str *out, struct leat_err *err)
{
	struct leat_change *change = NULL;
	size_t changes = 0;
	enum leat_status status =
		leat_code_now(why->code, last->field + last->fields - last->learned, last->learned, now, err);

	if (status == LEAT_OK)
		status = leat_action_changes(now, last, &change, &changes, why->mem, err);
	for (size_t i = 0; i < changes && status == LEAT_OK; i++)
		status = add_change(why, project, &change[i], out, err);
	if (status == LEAT_OK && changes == 0)
		leat_str_add(out, "    its output is not in the store any more\n");
	leat_changes_free(change, changes, why->mem);
	return status;
}

/* The fields are the reader's: those that are learned are added to a copy. */
static enum leat_status
copy_fields(const struct leat_key_fields *from, struct leat_key_fields *to, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < from->count && status == LEAT_OK; i++)
		status = leat_key_fields_add(to, from->field[i].name, from->field[i].value, err);
	return status;
}

static enum leat_status
explain_last(const struct why *why, const struct leat_project *project, const char *slice,
             const struct leat_key_fields *fields, struct leat_str *out, struct leat_err *err)
{
	struct leat_key_fields now = {.mem = why->mem};
	struct leat_manifest *last = NULL;
	struct leat_made made;
	enum leat_status status;

	if (!leat_index_last(why->cas, why->step->name, slice, &made)) {
		leat_str_add(out, "was never made\n");
		return LEAT_OK;
	}
	status = leat_cas_manifest(why->cas, &made.key, &last, err);
	if (status == LEAT_OK)
		status = copy_fields(fields, &now, err);
	if (status == LEAT_OK) {
		leat_str_add(out, "has to run, because since it was made last\n");
		status = add_changes(why, project, last, &now, out, err);
	}
	leat_key_fields_clear(&now);
	leat_manifest_free(last, why->mem);
	return status;
}

static enum leat_status
explain(const struct why *why, const struct leat_project *project, const char *slice,
        const struct leat_key_fields *fields, struct leat_str *out, struct leat_err *err)
{
	struct leat_digest stem;
	struct leat_made made;
	enum leat_status status = leat_key_of(fields->field, fields->count, &stem, err);

	if (status == LEAT_OK)
		status = leat_made_find(why->code, why->cas, &stem, &made, err);
	if (status == LEAT_END)
		return explain_last(why, project, slice, fields, out, err);
	if (status == LEAT_OK && why->step->slices.variables == 0)
		leat_str_addf(out, "is up to date: %s-%llu\n", why->step->name, (unsigned long long)made.number);
	else if (status == LEAT_OK)
		leat_str_add(out, "is up to date\n");
	return status;
}

/* ---- groups of slices ---- */

/* The next line that names a change; lines with its values are indented further. */
static const char *
next_head(const char *text)
{
	while (strncmp(text, "      ", 6) == 0) {
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return text;
}

/* Are the same fields changed? */
static bool
are_alike(const char *a, const char *b)
{
	for (;;) {
		size_t len;

		a = next_head(a);
		b = next_head(b);
		len = strcspn(a, "\n");
		if (strncmp(a, b, len) != 0 || a[len] != b[len])
			return false;
		if (!a[len])
			return true;
		a += len + 1;
		b += len + 1;
	}
}

static enum leat_status
add_to_group(struct why *why, const char *slice, char *answer, struct leat_err *err)
{
	enum leat_status status;
	char *copy;

	for (size_t i = 0; i < why->groups; i++) {
		if (are_alike(why->group[i].answer, answer)) {
			why->group[i].slices++;
			leat_free(why->mem, answer);
			return LEAT_OK;
		}
	}
	status = LEAT_GROW(why->mem, why->group, why->cap, why->groups + 1, SIZE_MAX, "the answers", err);
	copy = status == LEAT_OK ? leat_strdup(why->mem, slice) : NULL;
	if (status == LEAT_OK && copy) {
		why->group[why->groups++] = (struct group){answer, copy, 1};
		return LEAT_OK;
	}
	leat_free(why->mem, answer);
	return status == LEAT_OK ? leat_fail_mem(err, why->mem, strlen(slice), "the answers") : status;
}

struct asking {
	struct why *why;
	const struct leat_project *project;
};

static enum leat_status
take_slice(void *arg, size_t slice, const struct leat_key_fields *fields, const char *missing, struct leat_err *err)
{
	struct asking *asking = arg;
	struct why *why = asking->why;
	struct leat_str text, out;
	enum leat_status status = LEAT_OK;
	char *answer;

	leat_str_init(&text, why->mem, SIZE_MAX);
	leat_str_init(&out, why->mem, SIZE_MAX);
	leat_slice_text(&why->step->slices, slice, &text);
	if (missing)
		leat_str_addf(&out, "waits: %s\n", missing);
	else
		status = explain(why, asking->project, leat_str_text(&text), fields, &out, err);
	answer = status == LEAT_OK ? leat_str_take(&out) : NULL;
	if (status == LEAT_OK)
		status = answer ? add_to_group(why, leat_str_text(&text), answer, err)
		                : leat_fail_mem(err, why->mem, 1, "an answer");
	leat_str_free(&out);
	leat_str_free(&text);
	return status;
}

static int
compare_groups(const void *a, const void *b)
{
	size_t one = ((const struct group *)a)->slices, other = ((const struct group *)b)->slices;

	return one < other ? 1 : one > other ? -1 : 0;
}

static void
print_text(const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		leat_print_line(stdout, "%.*s", (int)len, text);
		text += len + (text[len] == '\n');
	}
}

static void
print_groups(struct why *why)
{
	size_t left = 0;

	if (why->groups > 1)
		qsort(why->group, why->groups, sizeof(*why->group), compare_groups);
	for (size_t i = 0; i < why->groups && i < MAX_GROUPS; i++) {
		const struct group *g = &why->group[i];

		if (g->slices > 1)
			printf("%zu slices of %s, such as %s: each ", g->slices, why->step->name, g->slice);
		else
			printf("%s%s%s ", why->step->name, *g->slice ? ":" : "", g->slice);
		print_text(g->answer);
	}
	for (size_t i = MAX_GROUPS; i < why->groups; i++)
		left += why->group[i].slices;
	if (left > 0)
		printf("... and %zu slice%s that changed in other ways; name one to see it\n", left, leat_plural(left));
}

/* ---- the command ---- */

static enum leat_status
ask(struct leat_steps *steps, const char *text, struct why *why, struct leat_err *err)
{
	struct asking asking = {why, steps->project};
	struct leat_asked asked;
	enum leat_status status = leat_ask_step(steps, text, &asked, err);

	if (status != LEAT_OK)
		return status;
	why->step = asked.step;
	status = leat_code_open(&why->code, steps->project, asked.step, steps->cas, err);
	if (status == LEAT_OK)
		status = leat_build_fields(steps->project, steps->cas, asked.step, asked.slice,
		                           &(struct leat_fields_reader){take_slice, &asking}, err);
	if (status == LEAT_OK)
		print_groups(why);
	leat_free(why->mem, asked.slice_text);
	return status;
}

static enum leat_status
run_why(const struct leat_invocation *run, struct leat_err *err)
{
	const struct params *p = run->params;
	struct why why = {.mem = run->mem, .diff = p->diff};
	struct leat_steps steps;
	enum leat_status status = leat_ask_open(&steps, run->mem, p->project, LEAT_LOOK_TRY, err);

	if (status != LEAT_OK)
		return status;
	why.cas = steps.cas;
	status = ask(&steps, run->operand[0], &why, err);
	leat_steps_say_doubt(&steps);
	for (size_t i = 0; i < why.groups; i++) {
		leat_free(run->mem, why.group[i].answer);
		leat_free(run->mem, why.group[i].slice);
	}
	leat_free(run->mem, why.group);
	leat_code_close(why.code);
	leat_steps_close(&steps);
	return status;
}

const struct leat_command leat_command_why = {
	.name = "why",
	.summary = "Say why a step has to run: what changed since it was made last",
	.operands = "STEP[:SLICE]",
	.min_operands = 1,
	.max_operands = 1,
	.help = "Compares what the step depends on now with its last action: command, parameters, seed, inputs,\n"
		"code, packages, environment. Slices that changed in the same way are shown once.\n"
		"Asks servers which versions of remote sources there are, and fetches nothing.",
	.example = "leat why decode\n"
		   "leat why decode:subject=3,bin=7",
	.opts = options,
	.params_size = sizeof(struct params),
	.run = run_why,
};
