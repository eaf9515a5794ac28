/* show_rejects.c - see show_rejects.h */
#include "cli/show_rejects.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cas/gc.h"
#include "cas/manifest.h"
#include "cli/ask.h"
#include "cli/print.h"

enum { MAX_TREE = 1 << 20, SHOWN_RAW = 160 };

struct showing {
	const struct leat_steps *steps;
	bool json;
	uint64_t rejects, files, missing;
};

/* ---- one file of rejects ---- */

static const char *
text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

/* "events-1.csv, line 17, column amount: '12x' is no number", and the record */
static void
print_reject(const char *line)
{
	json_t *reject = json_loads(line, JSON_ALLOW_NUL, NULL);
	char raw[SHOWN_RAW], line_number[40] = "";
	const char *column;

	if (!reject) {
		leat_print_line(stdout, "%s", line);
		return;
	}
	column = text_of(reject, "column");
	if (json_is_integer(json_object_get(reject, "line"))) /* else it is not about a row */
		snprintf(line_number, sizeof(line_number), ", line %lld",
		         (long long)json_integer_value(json_object_get(reject, "line")));
	leat_print_line(stdout, "%s%s%s%s: %s", text_of(reject, "file"), line_number, *column ? ", column " : "",
	                column, text_of(reject, "reason"));
	leat_print_line(stdout, "    %s",
	                leat_show(raw, sizeof(raw), text_of(reject, "raw"), strlen(text_of(reject, "raw"))));
	json_decref(reject);
}

static enum leat_status
print_file(struct showing *s, const struct leat_content *content, struct leat_err *err)
{
	char path[PATH_MAX], *line = NULL;
	size_t cap = 0;
	ssize_t len;
	FILE *file;

	leat_cas_blob_path(s->steps->cas, &content->digest, path);
	file = fopen(path, "re");
	if (!file)
		return leat_fail_errno(err, errno, "cannot read '%s'", path);
	while ((len = getline(&line, &cap, file)) > 0) {
		s->rejects++;
		if (s->json)
			fwrite(line, 1, (size_t)len, stdout);
		else
			print_reject(line);
	}
	free(line);
	fclose(file);
	return LEAT_OK;
}

/* ---- one action ---- */

struct search {
	struct leat_content found;
};

static enum leat_status
find_rejects(void *arg, const char *name, const struct leat_content *content, const char *target, struct leat_err *err)
{
	struct search *search = arg;

	(void)err;
	if (!target && strcmp(name, "rejects.jsonl") == 0)
		search->found = *content;
	return LEAT_OK;
}

static enum leat_status
show_output(struct showing *s, const struct leat_content *output, struct leat_err *err)
{
	struct search search = {.found = {.kind = LEAT_CONTENT_NONE}};
	enum leat_status status;
	char *tree = NULL;
	size_t len;

	s->files++;
	if (output->kind == LEAT_CONTENT_FOLDER) {
		status = leat_cas_read(s->steps->cas, &output->digest, MAX_TREE, &tree, &len, err);
		if (status == LEAT_OK)
			status = leat_tree_read(tree, len, &(struct leat_tree_reader){find_rejects, &search}, err);
		leat_free(s->steps->project->mem, tree);
		if (status != LEAT_OK)
			return status;
	}
	if (search.found.kind == LEAT_CONTENT_NONE)
		return leat_fail(
			err, LEAT_INVALID,
			"there are no rejects here: sources with 'columns' have them, and queries with 'check'");
	return print_file(s, &search.found, err);
}

/* Rows of an attempt that failed, which the next attempt removes. `number`: only of this one; 0: of any. LEAT_END:
 * there is none. */
static enum leat_status
show_failed(struct showing *s, const struct leat_step *step, const char *slice, uint64_t number, struct leat_err *err)
{
	struct leat_content content;
	uint64_t failed;

	if (!leat_rejects_find(s->steps->cas, step->name, slice, &failed, &content) || (number && number != failed))
		return LEAT_END;
	s->files++;
	if (!s->json)
		leat_print_line(stdout, "%s-%llu%s%s failed because of these:", step->name, (unsigned long long)failed,
		                *slice ? ", " : "", slice);
	return print_file(s, &content, err);
}

static enum leat_status
show_slice(struct showing *s, const struct leat_step *step, size_t slice, struct leat_err *err)
{
	enum leat_status status;
	struct leat_made made;
	struct leat_str text;

	leat_str_init(&text, s->steps->project->mem, 1 << 16);
	leat_slice_text(&step->slices, slice, &text);
	status = show_failed(s, step, leat_str_text(&text), 0, err);
	if (status != LEAT_END) {
		leat_str_free(&text);
		return status;
	}
	status = LEAT_OK;
	if (leat_index_last(s->steps->cas, step->name, leat_str_text(&text), &made))
		status = show_output(s, &made.output, err);
	else
		s->missing++;
	leat_str_free(&text);
	return status;
}

static enum leat_status
show_all(struct showing *s, const struct leat_step *step, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < step->slices.count && status == LEAT_OK; i++)
		status = show_slice(s, step, i, err);
	return status;
}

/* By the id of an attempt that failed. LEAT_END: it is none. */
static enum leat_status
show_failed_id(struct showing *s, const char *what, struct leat_err *err)
{
	const struct leat_step *step;
	enum leat_status status = LEAT_END;
	struct leat_str text;
	uint64_t number;
	char name[256];

	if (!leat_ask_is_id(what, name, &number) || !(step = leat_project_step(s->steps->project, name)))
		return LEAT_END;
	for (size_t i = 0; i < step->slices.count && status == LEAT_END; i++) {
		leat_str_init(&text, s->steps->project->mem, 1 << 16);
		leat_slice_text(&step->slices, i, &text);
		status = show_failed(s, step, leat_str_text(&text), number, err);
		leat_str_free(&text);
	}
	return status;
}

static enum leat_status
show_action(struct showing *s, const char *what, struct leat_err *err)
{
	struct leat_manifest *manifest = NULL;
	enum leat_status status = show_failed_id(s, what, err);

	if (status != LEAT_END)
		return status;
	status = leat_ask_action(s->steps, what, &manifest, err);
	if (status == LEAT_OK)
		status = show_output(s, &manifest->output, err);
	leat_manifest_free(manifest, s->steps->project->mem);
	return status;
}

enum leat_status
leat_show_rejects(const struct leat_steps *steps, const char *what, bool json, struct leat_err *err)
{
	const struct leat_step *step = leat_project_step(steps->project, what);
	struct showing s = {.steps = steps, .json = json};
	enum leat_status status = step ? show_all(&s, step, err) : show_action(&s, what, err);

	if (status != LEAT_OK || json)
		return status;
	printf("%llu record%s rejected, in %llu file%s", (unsigned long long)s.rejects, leat_plural(s.rejects),
	       (unsigned long long)s.files, leat_plural(s.files));
	if (s.missing)
		printf("; %llu not loaded yet", (unsigned long long)s.missing);
	printf("\n");
	return LEAT_OK;
}
