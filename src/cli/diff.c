/* diff.c - `leat diff`: what differs between two builds: results, what they depend on, metrics */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cas/manifest.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/runs.h"
#include "step/action.h"

struct params {
	const char *project;
};

static const struct leat_opt options[] = {
	LEAT_PROJECT_OPTION(struct params),
	LEAT_OPT_END,
};

enum { SHOWN = 12 };

/* In the order of sorting. UNLISTED: actions made before, of which the log has only the number. */
enum item_kind { RESULT, UNLISTED, ACTION };

struct item {
	enum item_kind kind;
	char *step, *slice, *output;
	struct leat_digest key; /* of an action */
	size_t count;           /* of actions that are not listed */
};

struct run {
	struct leat_mem *mem;
	char *name;
	struct item *item; /* sorted by step, kind, slice */
	size_t items, cap;
};

/* ---- reading ---- */

static enum leat_status
add_item(struct run *run, const struct leat_run_line *line, enum item_kind kind, struct leat_err *err)
{
	struct item item = {.kind = kind, .count = line->count};
	enum leat_status status =
		LEAT_GROW(run->mem, run->item, run->cap, run->items + 1, SIZE_MAX, "the log of a build", err);

	if (status != LEAT_OK)
		return status;
	item.step = leat_strdup(run->mem, line->step);
	item.slice = leat_strdup(run->mem, line->slice ? line->slice : "");
	item.output = leat_strdup(run->mem, line->output ? line->output : "");
	if (line->key)
		leat_digest_parse(line->key, &item.key);
	run->item[run->items++] = item;
	return item.step && item.slice && item.output ? LEAT_OK : leat_fail_mem(err, run->mem, 1, "the log of a build");
}

static enum leat_status
take_line(void *arg, const struct leat_run_line *line, struct leat_err *err)
{
	struct leat_digest key;
	bool is_cached;

	if (!line->event || !line->step)
		return LEAT_OK;
	if (strcmp(line->event, "result") == 0)
		return add_item(arg, line, RESULT, err);
	is_cached = strcmp(line->event, "cached") == 0;
	if (is_cached && !line->slice)
		return add_item(arg, line, UNLISTED, err);
	if (line->key && leat_digest_parse(line->key, &key) &&
	    (is_cached || strcmp(line->event, "ran") == 0 || strcmp(line->event, "same") == 0))
		return add_item(arg, line, ACTION, err);
	return LEAT_OK;
}

static int
compare_items(const void *a, const void *b)
{
	const struct item *one = a, *other = b;
	int order = strcmp(one->step, other->step);

	if (order)
		return order;
	return one->kind != other->kind ? (int)one->kind - (int)other->kind : strcmp(one->slice, other->slice);
}

static enum leat_status
read_run(struct run *run, struct leat_cas *cas, const char *text, struct leat_err *err)
{
	enum leat_status status = leat_run_find(cas, text, run->mem, &run->name, err);

	if (status == LEAT_OK)
		status = leat_run_lines(cas, run->name, &(struct leat_run_lines_reader){take_line, run}, err);
	if (status == LEAT_OK && run->items > 1)
		qsort(run->item, run->items, sizeof(*run->item), compare_items);
	return status;
}

static void
free_run(struct run *run)
{
	for (size_t i = 0; i < run->items; i++) {
		leat_free(run->mem, run->item[i].step);
		leat_free(run->mem, run->item[i].slice);
		leat_free(run->mem, run->item[i].output);
	}
	leat_free(run->mem, run->item);
	leat_free(run->mem, run->name);
}

/* ---- comparing actions ---- */

/* A difference, and in how many slices it is. */
struct difference {
	char *text;
	size_t count;
};

struct comparison {
	struct leat_mem *mem;
	struct leat_cas *cas;
	struct difference *difference;
	size_t differences, cap;
	size_t actions, changed, outputs; /* of those in both builds */
	struct one_sided {
		size_t count, unlisted; /* actions in this build only; those that it does not list */
		const char *slice;      /* the first of `count` */
	} was, now;
};

static enum leat_status
add_difference(struct comparison *c, const char *text, struct leat_err *err)
{
	enum leat_status status;
	char *copy;

	for (size_t i = 0; i < c->differences; i++) {
		if (strcmp(c->difference[i].text, text) == 0) {
			c->difference[i].count++;
			return LEAT_OK;
		}
	}
	status = LEAT_GROW(c->mem, c->difference, c->cap, c->differences + 1, SIZE_MAX, "the differences", err);
	copy = status == LEAT_OK ? leat_strdup(c->mem, text) : NULL;
	if (copy)
		c->difference[c->differences++] = (struct difference){copy, 1};
	return copy || status != LEAT_OK ? status : leat_fail_mem(err, c->mem, strlen(text), "the differences");
}

/* Contents and long texts are only said to differ. */
static enum leat_status
add_field(struct comparison *c, const struct leat_change *change, struct leat_err *err)
{
	struct leat_content content;
	const char *was = change->was, *now = change->now;
	char text[512];

	if (was && now && strlen(was) < 60 && strlen(now) < 60 && leat_content_parse(was, &content, NULL) != LEAT_OK)
		snprintf(text, sizeof(text), "%s: %s -> %s", change->field, was, now);
	else
		snprintf(text, sizeof(text), "%s %s", change->field, !was ? "is new" : !now ? "is gone" : "differs");
	return add_difference(c, text, err);
}

/* NULL: there is no such metric. */
static void
show_metric(const json_t *value, char *text, size_t cap)
{
	if (json_is_string(value))
		snprintf(text, cap, "%s", json_string_value(value));
	else if (json_is_number(value))
		snprintf(text, cap, "%.6g", json_number_value(value));
	else if (json_is_boolean(value))
		snprintf(text, cap, "%s", json_is_true(value) ? "true" : "false");
	else
		snprintf(text, cap, "none");
}

static enum leat_status
add_metric(struct comparison *c, const char *name, const json_t *was, const json_t *now, struct leat_err *err)
{
	char before[64], after[64], text[300];

	show_metric(was, before, sizeof(before));
	show_metric(now, after, sizeof(after));
	snprintf(text, sizeof(text), "metric %s: %s -> %s", name, before, after);
	return strcmp(before, after) != 0 ? add_difference(c, text, err) : LEAT_OK;
}

static enum leat_status
add_metrics(struct comparison *c, const char *was, const char *now, struct leat_err *err)
{
	json_t *one = json_loads(was, 0, NULL), *other = json_loads(now, 0, NULL), *value;
	enum leat_status status = LEAT_OK;
	const char *name;

	json_object_foreach(other, name, value)
	{
		if (status == LEAT_OK)
			status = add_metric(c, name, json_object_get(one, name), value, err);
	}
	json_object_foreach(one, name, value)
	{
		if (status == LEAT_OK && !json_object_get(other, name))
			status = add_metric(c, name, value, NULL, err);
	}
	json_decref(one);
	json_decref(other);
	return status;
}

static enum leat_status
compare_manifests(struct comparison *c, const struct leat_manifest *was, const struct leat_manifest *now,
                  struct leat_err *err)
{
	struct leat_key_fields fields = {.field = (struct leat_key_field *)now->field, .count = now->fields};
	struct leat_change *change = NULL;
	size_t changes = 0;
	enum leat_status status = leat_action_changes(&fields, was, &change, &changes, c->mem, err);

	for (size_t i = 0; i < changes && status == LEAT_OK; i++)
		status = add_field(c, &change[i], err);
	if (status == LEAT_OK)
		status = add_metrics(c, was->metrics, now->metrics, err);
	c->outputs += !leat_content_equal(&was->output, &now->output);
	leat_changes_free(change, changes, c->mem);
	return status;
}

/* A manifest that gc removed has nothing to compare. */
static enum leat_status
compare_actions(struct comparison *c, const struct item *was, const struct item *now, struct leat_err *err)
{
	struct leat_manifest *one = NULL, *other = NULL;
	enum leat_status status = LEAT_OK;

	c->actions++;
	if (leat_digest_equal(&was->key, &now->key))
		return LEAT_OK;
	c->changed++;
	if (leat_cas_manifest(c->cas, &was->key, &one, NULL) == LEAT_OK &&
	    leat_cas_manifest(c->cas, &now->key, &other, NULL) == LEAT_OK)
		status = compare_manifests(c, one, other, err);
	leat_manifest_free(one, c->mem);
	leat_manifest_free(other, c->mem);
	return status;
}

/* ---- steps ---- */

static void
print_differences(struct comparison *c)
{
	for (size_t i = 0; i < c->differences; i++) {
		if (i < SHOWN && c->actions > 1)
			leat_print_line(stdout, "  %s (%zu slice%s)", c->difference[i].text, c->difference[i].count,
			                leat_plural(c->difference[i].count));
		else if (i < SHOWN)
			leat_print_line(stdout, "  %s", c->difference[i].text);
		leat_free(c->mem, c->difference[i].text);
	}
	if (c->differences > SHOWN)
		printf("  ... and %zu differences more\n", c->differences - SHOWN);
	leat_free(c->mem, c->difference);
}

/* What one build does not list may be in it, so nothing is only in the other one. */
static void
print_one_sided(const struct one_sided *one, const struct one_sided *other, const char *run)
{
	if (one->count > 0 && *one->slice && !other->unlisted)
		leat_print_line(stdout, "  %zu slice%s only in %s, such as %s", one->count, leat_plural(one->count),
		                run, one->slice);
	if (one->unlisted > 0)
		leat_print_line(stdout, "  %zu slice%s made before %s: not compared one by one", one->unlisted,
		                leat_plural(one->unlisted), run);
}

static size_t
step_end(const struct run *run, size_t begin)
{
	size_t end = begin;

	while (end < run->items && strcmp(run->item[end].step, run->item[begin].step) == 0)
		end++;
	return end;
}

static void
print_summary(const struct comparison *c, const char *step, const struct item *was, const struct item *now)
{
	bool have_results = was->kind == RESULT && now->kind == RESULT;
	bool have_others = c->was.count + c->was.unlisted + c->now.count + c->now.unlisted > 0;

	if (have_results && strcmp(was->output, now->output) == 0)
		leat_print_line(stdout, "%s: the same result%s", step,
		                c->changed > 0 ? ", although it depends on other things" : "");
	else if (c->actions > 0 && have_others)
		leat_print_line(stdout, "%s: %zu of %zu slice%s in both have another result", step, c->outputs,
		                c->actions, leat_plural(c->actions));
	else if (c->actions > 1)
		leat_print_line(stdout, "%s: %zu of %zu slices have another result", step, c->outputs, c->actions);
	else if (c->outputs > 0 || have_results)
		leat_print_line(stdout, "%s: another result", step);
	else
		leat_print_line(stdout, "%s: not finished in one of the builds", step);
}

static void
count_one_sided(struct one_sided *one, const struct item *item)
{
	if (item->kind == UNLISTED)
		one->unlisted += item->count;
	if (item->kind == ACTION && one->count++ == 0)
		one->slice = item->slice;
}

/* Both ranges are sorted by kind and slice. */
static enum leat_status
compare_step(struct leat_cas *cas, const struct run *was, size_t i, size_t i_end, const struct run *now, size_t j,
             size_t j_end, struct leat_err *err)
{
	struct comparison c = {.mem = was->mem, .cas = cas};
	const struct item *first = &was->item[i], *other = &now->item[j];
	enum leat_status status = LEAT_OK;

	while ((i < i_end || j < j_end) && status == LEAT_OK) {
		int order = i == i_end ? 1 : j == j_end ? -1 : compare_items(&was->item[i], &now->item[j]);

		if (order == 0 && was->item[i].kind == ACTION) {
			status = compare_actions(&c, &was->item[i], &now->item[j], err);
		} else {
			if (order <= 0)
				count_one_sided(&c.was, &was->item[i]);
			if (order >= 0)
				count_one_sided(&c.now, &now->item[j]);
		}
		i += order <= 0;
		j += order >= 0;
	}
	print_summary(&c, first->step, first, other);
	print_differences(&c);
	print_one_sided(&c.was, &c.now, was->name);
	print_one_sided(&c.now, &c.was, now->name);
	return status;
}

static enum leat_status
compare_runs(struct leat_cas *cas, const struct run *was, const struct run *now, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	size_t i = 0, j = 0;

	leat_print_line(stdout, "%s -> %s", was->name, now->name);
	while ((i < was->items || j < now->items) && status == LEAT_OK) {
		int order = i == was->items ? 1 : j == now->items ? -1 : strcmp(was->item[i].step, now->item[j].step);
		size_t i_end = order <= 0 ? step_end(was, i) : i, j_end = order >= 0 ? step_end(now, j) : j;

		if (order == 0)
			status = compare_step(cas, was, i, i_end, now, j, j_end, err);
		else
			leat_print_line(stdout, "%s: only in %s", order < 0 ? was->item[i].step : now->item[j].step,
			                order < 0 ? was->name : now->name);
		i = i_end;
		j = j_end;
	}
	return status;
}

static enum leat_status
run_diff(const struct leat_invocation *invocation, struct leat_err *err)
{
	const struct params *p = invocation->params;
	struct run was = {.mem = invocation->mem}, now = {.mem = invocation->mem};
	struct leat_steps steps;
	enum leat_status status = leat_ask_open(&steps, invocation->mem, p->project, LEAT_LOOK_BACK, err);

	if (status != LEAT_OK)
		return status;
	status = read_run(&was, steps.cas, invocation->operand[0], err);
	if (status == LEAT_OK)
		status = read_run(&now, steps.cas, invocation->operands > 1 ? invocation->operand[1] : "latest", err);
	if (status == LEAT_OK)
		status = compare_runs(steps.cas, &was, &now, err);
	free_run(&was);
	free_run(&now);
	leat_steps_close(&steps);
	return status;
}

const struct leat_command leat_command_diff = {
	.name = "diff",
	.summary = "Compare two builds: results, what they depend on, metrics",
	.operands = "RUN [RUN]",
	.min_operands = 1,
	.max_operands = 2,
	.help = "A build is named by its run, or the beginning of that, if it is unique. 'latest' is the last one, "
		"which\n"
		"is also what is compared with if only one is named. 'leat log' lists builds.",
	.example = "leat diff 20261117T201530 latest",
	.opts = options,
	.params_size = sizeof(struct params),
	.run = run_diff,
};
