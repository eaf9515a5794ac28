/* sources.c - the files of a source that a slice gets */
#include "step/sources.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"

static int
by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void
leat_paths_sort(struct leat_paths *paths, struct leat_mem *mem)
{
	size_t kept = 0;

	if (paths->count == 0)
		return;
	qsort(paths->path, paths->count, sizeof(*paths->path), by_bytes);
	for (size_t i = 1; i < paths->count; i++)
		if (strcmp(paths->path[kept], paths->path[i]))
			paths->path[++kept] = paths->path[i];
		else
			leat_free(mem, paths->path[i]);
	paths->count = kept + 1;
}

void
leat_paths_free(struct leat_paths *paths, struct leat_mem *mem)
{
	for (size_t i = 0; i < paths->count; i++)
		leat_free(mem, paths->path[i]);
	leat_free(mem, paths->path);
	*paths = (struct leat_paths){0};
}

/* The pattern with the values of a slice, in which characters of patterns are quoted if `quote`. */
static void
add_value(struct leat_str *out, const char *value, bool quote)
{
	for (; *value; value++) {
		if (quote && strchr("*?[{},\\", *value))
			leat_str_add(out, "\\");
		leat_str_addn(out, value, 1);
	}
}

static enum leat_status
fill_in(const struct leat_raw_source *source, const struct leat_slices *slices, size_t slice, bool quote,
        struct leat_str *out, struct leat_err *err)
{
	const char *text = source->pattern;

	while (*text) {
		size_t plain = strcspn(text, "{"), len = text[plain] ? strcspn(text + plain, "}") : 0;
		char name[128];
		size_t variable;

		leat_str_addn(out, text, plain);
		text += plain;
		if (!*text)
			break;
		snprintf(name, sizeof(name), "%.*s", (int)(len - 1), text + 1);
		variable = leat_slice_variable(slices, name);
		if (variable != SIZE_MAX)
			add_value(out, leat_slice_value(slices, slice, variable), quote);
		else if (memchr(text, ',', len))
			leat_str_addn(out, text, len + 1);
		else
			return leat_fail(err, LEAT_INVALID, "source '%s' needs a value for {%s}, which the slices lack",
			                 source->name, name);
		text += len + (text[len] == '}');
	}
	return out->failed ? leat_fail_mem(err, out->mem, PATH_MAX, "the path of a source") : LEAT_OK;
}

/* Has it wildcards, apart from variables? */
static bool
is_pattern(const char *pattern)
{
	for (; *pattern; pattern++) {
		size_t len = *pattern == '{' ? strcspn(pattern, "}") : 0;

		if (strchr("*?[\\", *pattern) || (len && memchr(pattern, ',', len)))
			return true;
	}
	return false;
}

static enum leat_status
add_one(const struct leat_project *project, const struct leat_raw_source *source, struct leat_str *text,
        struct leat_paths *paths, struct leat_err *err)
{
	const char *path = leat_str_text(text);
	char absolute[PATH_MAX];
	struct stat st;
	int n = snprintf(absolute, sizeof(absolute), "%s%s%s", *path == '/' ? "" : project->folder,
	                 *path == '/' ? "" : "/", path);
	enum leat_status status;

	if (n < 0 || (size_t)n >= sizeof(absolute))
		return leat_fail(err, LEAT_DATA, "source '%s' (%s:%zu): the path is too long", source->name,
		                 project->file, source->line);
	if (stat(absolute, &st))
		return leat_fail_errno_as(err, LEAT_DATA, errno, "source '%s' (%s:%zu): cannot find '%s'", source->name,
		                          project->file, source->line, path);
	status = LEAT_GROW(project->mem, paths->path, paths->cap, 1, 1, "the list of files", err);
	if (status != LEAT_OK)
		return status;
	paths->path[0] = leat_str_take(text);
	paths->count = paths->path[0] != NULL;
	return paths->count ? LEAT_OK : leat_fail_mem(err, project->mem, (size_t)n, "the path of a source");
}

/* Web servers have no patterns. */
static bool
is_remote_pattern(const char *pattern)
{
	return strncmp(pattern, "http", 4) != 0 && is_pattern(pattern);
}

enum leat_status
leat_remote_paths(const struct leat_project *project, const struct leat_raw_source *source, const char *pattern,
                  struct leat_paths *paths, struct leat_err *err)
{
	const struct leat_remote_list *list;
	bool exact = !is_remote_pattern(source->pattern);
	enum leat_status status = leat_staging_list(project->staging, pattern, exact, &list, err);

	paths->is_remote = true;
	if (status == LEAT_OK)
		status = LEAT_GROW(project->mem, paths->path, paths->cap, list->count, SIZE_MAX, "the list of files",
		                   err);
	for (size_t i = 0; status == LEAT_OK && i < list->count; i++) {
		paths->path[i] = leat_strdup(project->mem, list->file[i].uri);
		paths->count += paths->path[i] != NULL;
		if (!paths->path[i])
			status = leat_fail_mem(err, project->mem, LEAT_URI, "the list of files");
	}
	return status;
}

enum leat_status
leat_source_paths(const struct leat_project *project, const struct leat_raw_source *source,
                  const struct leat_slices *slices, size_t slice, struct leat_listings *listings,
                  struct leat_paths *paths, struct leat_err *err)
{
	bool is_remote = leat_is_remote(source->pattern);
	enum leat_status status;
	struct leat_str text;

	*paths = (struct leat_paths){.is_pattern = is_remote ? is_remote_pattern(source->pattern)
	                                                     : is_pattern(source->pattern)};
	leat_str_init(&text, project->mem, PATH_MAX);
	status = fill_in(source, slices, slice, paths->is_pattern, &text, err);
	if (status == LEAT_OK && is_remote) {
		paths->fixed = paths->is_pattern ? leat_glob_fixed(leat_str_text(&text)) : 0;
		status = leat_remote_paths(project, source, leat_str_text(&text), paths, err);
		if (status != LEAT_OK)
			leat_err_in(err, "source '%s' (%s:%zu)", source->name, project->file, source->line);
	} else if (status == LEAT_OK && !paths->is_pattern) {
		status = add_one(project, source, &text, paths, err);
	} else if (status == LEAT_OK) {
		const char *pattern = leat_str_text(&text);

		paths->fixed = leat_glob_fixed(pattern);
		status = leat_glob_paths(project->folder, pattern, listings, project->mem, paths, err);
		leat_paths_sort(paths, project->mem);
		if (status == LEAT_OK && !paths->count)
			status = leat_fail(err, LEAT_DATA, "source '%s' (%s:%zu): no file matches '%s'", source->name,
			                   project->file, source->line, pattern);
	}
	leat_str_free(&text);
	if (status != LEAT_OK)
		leat_paths_free(paths, project->mem);
	return status;
}
