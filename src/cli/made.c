/* made.c - `leat made`: which action made a file, from what, back to the sources */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cas/manifest.h"
#include "cli/ask.h"
#include "cli/command.h"
#include "cli/print.h"
#include "step/project.h"

struct params {
	const char *project;
	bool all;
};

static const struct leat_opt options[] = {
	LEAT_PROJECT_OPTION(struct params),
	LEAT_BOOL(struct params, all, "false", "list all slices that an input was made by, not just the first three"),
	LEAT_OPT_END,
};

enum { MAX_DEPTH = 100, MAX_TREE = 256 * 1024 * 1024, SHOWN = 3 };

struct made {
	struct leat_mem *mem;
	struct leat_steps *steps;
	bool all;
	struct leat_digest *seen; /* actions printed already */
	size_t count, cap;
};

static enum leat_status print_action(struct made *made, const struct leat_digest *key, unsigned depth,
                                     struct leat_err *err);

/* ---- sources ---- */

/* SIZE_MAX: none. */
static size_t
find_source(const struct leat_project *project, const char *name)
{
	for (size_t i = 0; i < project->sources; i++)
		if (strcmp(project->source[i].name, name) == 0)
			return i;
	return SIZE_MAX;
}

/* The path of a source's files for a slice, as leat.yaml says now. False: it is not there any more. */
static bool
source_path(const struct made *made, const struct leat_manifest *m, const char *name, struct leat_str *out)
{
	const struct leat_project *project = made->steps->project;
	const struct leat_step *step = leat_project_step(project, m->step);
	struct leat_paths paths = {0};
	size_t slice = 0, i = find_source(project, name);

	if (!step || i == SIZE_MAX ||
	    (*m->slice && leat_slice_find(&step->slices, m->slice, &slice, NULL) != LEAT_OK) ||
	    leat_source_paths(project, &project->source[i], &step->slices, slice, NULL, &paths, NULL) != LEAT_OK)
		return false;
	if (paths.count == 1)
		leat_str_add(out, paths.path[0]);
	else
		leat_str_addf(out, "%s (%zu files)", project->source[i].pattern, paths.count);
	leat_paths_free(&paths, made->mem);
	return true;
}

/* Is the file still the one that was read? */
static bool
is_same(const struct made *made, const char *path, const struct leat_content *content)
{
	struct leat_content now;
	char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s%s%s", *path == '/' ? "" : made->steps->project->folder,
	         *path == '/' ? "" : "/", path);
	return leat_cas_hash(made->steps->cas, full, &now, NULL, NULL) == LEAT_OK && leat_content_equal(&now, content);
}

static void
print_source(const struct made *made, const struct leat_manifest *m, const char *name, const char *value,
             unsigned depth)
{
	char shown[LEAT_ASK_TEXT];
	struct leat_content content;
	struct leat_str path;

	leat_str_init(&path, made->mem, PATH_MAX);
	if (!source_path(made, m, name, &path))
		leat_print_line(stdout, "%*s%s: %s", (int)(2 * depth), "", name, leat_ask_content(value, shown));
	else
		leat_print_line(stdout, "%*s%s: %s%s", (int)(2 * depth), "", name, leat_str_text(&path),
		                leat_content_parse(value, &content, NULL) == LEAT_OK &&
		                                !strstr(leat_str_text(&path), " files)") &&
		                                !is_same(made, leat_str_text(&path), &content)
		                        ? " (changed since)"
		                        : "");
	leat_str_free(&path);
}

/* ---- folders of several results ---- */

struct entries {
	struct made *made;
	unsigned depth;
	size_t found, printed, missing;
};

static enum leat_status
print_entry(void *arg, const char *name, const struct leat_content *content, const char *target, struct leat_err *err)
{
	struct entries *entries = arg;
	struct leat_digest key;

	(void)name;
	if (target || !leat_index_maker(entries->made->steps->cas, &content->digest, &key)) {
		entries->missing++;
		return LEAT_OK;
	}
	entries->found++;
	if (entries->printed >= SHOWN && !entries->made->all)
		return LEAT_OK;
	entries->printed++;
	return print_action(entries->made, &key, entries->depth, err);
}

/* A folder that no action made, but whose entries were made by some. False: it is something else. */
static bool
print_folder(struct made *made, const struct leat_content *content, const char *label, unsigned depth,
             enum leat_status *status, struct leat_err *err)
{
	struct entries entries = {.made = made, .depth = depth + 1};
	char *tree = NULL;
	size_t len;

	if (content->kind != LEAT_CONTENT_FOLDER ||
	    leat_cas_read(made->steps->cas, &content->digest, MAX_TREE, &tree, &len, NULL) != LEAT_OK)
		return false;
	leat_print_line(stdout, "%*s%s: a folder of results", (int)(2 * depth), "", label);
	*status = leat_tree_read(tree, len, &(struct leat_tree_reader){print_entry, &entries}, err);
	if (*status == LEAT_OK && entries.found > entries.printed)
		printf("%*s... and %zu more\n", (int)(2 * (depth + 1)), "", entries.found - entries.printed);
	leat_free(made->mem, tree);
	return true;
}

/* ---- actions ---- */

static enum leat_status
print_input(struct made *made, const struct leat_manifest *m, const struct leat_key_field *field, unsigned depth,
            struct leat_err *err)
{
	const char *name = field->name + strlen("input.");
	struct leat_content content;
	struct leat_digest key;
	enum leat_status status = leat_content_parse(field->value, &content, err);

	if (status != LEAT_OK)
		return status;
	if (find_source(made->steps->project, name) == SIZE_MAX) {
		if (leat_index_maker(made->steps->cas, &content.digest, &key))
			return print_action(made, &key, depth, err);
		if (print_folder(made, &content, name, depth, &status, err))
			return status;
	}
	print_source(made, m, name, field->value, depth);
	return LEAT_OK;
}

static bool
was_seen(const struct made *made, const struct leat_digest *key)
{
	for (size_t i = 0; i < made->count; i++)
		if (leat_digest_equal(&made->seen[i], key))
			return true;
	return false;
}

static void
print_head(const struct leat_manifest *m, unsigned depth, bool again)
{
	char when[LEAT_ASK_TEXT];

	leat_print_line(stdout, "%*s%s-%llu%s%s%s%s%s", (int)(2 * depth), "", m->step, (unsigned long long)m->number,
	                *m->slice ? "  " : "", m->slice, again ? "  (see above)" : "  ",
	                again ? "" : leat_ask_time(m->begun_s, when), "");
	for (size_t i = 0; i < m->fields && !again; i++)
		if (strcmp(m->field[i].name, "command") == 0)
			leat_print_line(stdout, "%*s  %s", (int)(2 * depth), "", m->field[i].value);
}

static enum leat_status
print_action(struct made *made, const struct leat_digest *key, unsigned depth, struct leat_err *err)
{
	struct leat_manifest *m = NULL;
	bool again = was_seen(made, key) || depth > MAX_DEPTH;
	enum leat_status status = leat_cas_manifest(made->steps->cas, key, &m, err);

	if (status == LEAT_OK && !again) {
		status = LEAT_GROW(made->mem, made->seen, made->cap, made->count + 1, SIZE_MAX, "the list of actions",
		                   err);
		if (status == LEAT_OK)
			made->seen[made->count++] = *key;
	}
	if (status == LEAT_OK)
		print_head(m, depth, again);
	for (size_t i = 0; status == LEAT_OK && !again && i < m->fields; i++)
		if (strncmp(m->field[i].name, "input.", strlen("input.")) == 0)
			status = print_input(made, m, &m->field[i], depth + 1, err);
	leat_manifest_free(m, made->mem);
	return status;
}

/* ---- the file ---- */

/* The file name of a view or blob is its digest. */
static bool
from_store(const struct leat_cas *cas, const char *path, struct leat_content *content)
{
	const char *folder = leat_cas_folder(cas), *name = strrchr(path, '/');
	size_t len = strlen(folder);

	if (!name || strncmp(path, folder, len) != 0 || !leat_digest_parse(name + 1, &content->digest))
		return false;
	content->kind = strncmp(path + len, "/view/", 6) == 0 ? LEAT_CONTENT_FOLDER : LEAT_CONTENT_FILE;
	return true;
}

static enum leat_status
explain_file(struct made *made, const char *path, struct leat_err *err)
{
	struct leat_content content = {.kind = LEAT_CONTENT_NONE};
	struct leat_digest key;
	char *real = realpath(path, NULL);
	enum leat_status status = LEAT_OK;

	if (!real)
		return leat_fail_errno(err, errno, "cannot find '%s'", path);
	if (!from_store(made->steps->cas, real, &content))
		status = leat_cas_hash(made->steps->cas, real, &content, NULL, err);
	if (status == LEAT_OK && leat_index_maker(made->steps->cas, &content.digest, &key))
		status = print_action(made, &key, 0, err);
	else if (status == LEAT_OK && !print_folder(made, &content, path, 0, &status, err))
		status = leat_fail(err, LEAT_DATA, "no action in this store made '%s', or a file with its content",
		                   path);
	free(real);
	return status;
}

static enum leat_status
run_made(const struct leat_invocation *run, struct leat_err *err)
{
	const struct params *p = run->params;
	struct leat_steps steps;
	struct made made = {.mem = run->mem, .steps = &steps, .all = p->all};
	enum leat_status status = leat_ask_open(&steps, run->mem, p->project, LEAT_LOOK_BACK, err);

	if (status != LEAT_OK)
		return status;
	status = explain_file(&made, run->operand[0], err);
	leat_free(run->mem, made.seen);
	leat_steps_close(&steps);
	return status;
}

const struct leat_command leat_command_made = {
	.name = "made",
	.summary = "Show which action made a file, and from what, back to the sources",
	.operands = "FILE",
	.min_operands = 1,
	.max_operands = 1,
	.help = "FILE is a result under out/, a file in one, or a copy of one: it is recognized by its content.",
	.example = "leat made out/group.npy",
	.opts = options,
	.params_size = sizeof(struct params),
	.run = run_made,
};
