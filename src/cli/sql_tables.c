/* sql_tables.c - the tables that a query of `leat sql` names */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/sql.h"
#include "cli/steps.h"

const char *
leat_sql_table_path(const struct leat_sql_params *params, const char *name)
{
	for (size_t i = 0; i < params->table.count; i++) {
		const char *text = params->table.value[i], *path = strchr(text, '=');

		if (strlen(name) == (size_t)(path - text) && !strncasecmp(text, name, strlen(name)))
			return path + 1;
	}
	return NULL;
}

static void
begin_view(struct leat_str *sql, const char *name)
{
	leat_str_add(sql, "CREATE VIEW ");
	leat_sql_quote(sql, name, '"');
	leat_str_add(sql, " AS SELECT * FROM ");
}

/* ---- sources and steps ---- */

/* Files of all slices: {subject} matches anything. */
static enum leat_status
add_sliced_source(const struct leat_project *project, const char *pattern, struct leat_str *sql, struct leat_err *err)
{
	struct leat_str path;
	enum leat_status status;

	leat_str_init(&path, project->mem, PATH_MAX);
	leat_str_addf(&path, "%s%s", *pattern == '/' ? "" : project->folder, *pattern == '/' ? "" : "/");
	while (*pattern) {
		size_t plain = strcspn(pattern, "{");

		leat_str_addn(&path, pattern, plain);
		pattern += plain;
		if (*pattern) {
			leat_str_add(&path, "*");
			pattern += strcspn(pattern, "}") + 1;
		}
	}
	status = path.failed ? leat_fail_errno(err, ENAMETOOLONG, "a source has a path that is too long")
	                     : leat_sql_add_file(sql, leat_str_text(&path), err);
	leat_str_free(&path);
	return status;
}

static bool
has_variable(const char *pattern)
{
	for (const char *open = strchr(pattern, '{'); open; open = strchr(open + 1, '{'))
		if (!memchr(open, ',', strcspn(open, "}")))
			return true;
	return false;
}

/* Paths as leat_source_paths gives them, from the folder of the project. */
static enum leat_status
add_source_paths(const struct leat_project *project, struct leat_paths *paths, struct leat_str *sql,
                 struct leat_err *err)
{
	for (size_t i = 0; i < paths->count; i++) {
		char *full = *paths->path[i] == '/'
		                     ? leat_strdup(project->mem, paths->path[i])
		                     : leat_asprintf(project->mem, "%s/%s", project->folder, paths->path[i]);

		if (!full)
			return leat_fail_mem(err, project->mem, PATH_MAX, "a path");
		leat_free(project->mem, paths->path[i]);
		paths->path[i] = full;
	}
	return paths->count == 1 ? leat_sql_add_file(sql, paths->path[0], err)
	                         : leat_sql_add_files(sql, paths->path, paths->count, err);
}

static enum leat_status
add_source(struct leat_sql_job *job, const struct leat_project *project, const struct leat_raw_source *source,
           struct leat_str *sql, struct leat_err *err)
{
	const struct leat_slices none = {.count = 1};
	struct leat_paths paths = {0};
	enum leat_status status;

	if (has_variable(source->pattern) && leat_is_remote(source->pattern))
		return leat_fail(err, LEAT_UNSUPPORTED,
		                 "source '%s' is remote and has a file for each slice; declare one without {...} to "
		                 "query it",
		                 source->name);
	if (has_variable(source->pattern))
		return add_sliced_source(project, source->pattern, sql, err);
	status = leat_source_paths(project, source, &none, 0, NULL, &paths, err);
	if (status == LEAT_OK && paths.is_remote)
		status = leat_sql_stage(job, project, &paths, err);
	if (status == LEAT_OK)
		status = add_source_paths(project, &paths, sql, err);
	leat_paths_free(&paths, project->mem);
	return status;
}

/* The last complete result, as out/ shows it: the folder of a sliced step has no suffix. */
static enum leat_status
add_step(const struct leat_project *project, const struct leat_step *step, struct leat_str *sql, struct leat_err *err)
{
	const char *suffix = step->slices.variables ? "" : step->suffix;
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/out/%s%s", project->folder, step->name, suffix) >= (int)sizeof(path))
		return leat_fail_errno(err, ENAMETOOLONG, "cannot find the result of step '%s'", step->name);
	if (access(path, F_OK))
		return leat_fail(err, LEAT_DATA, "step '%s' has no result yet; run 'leat build %s'", step->name,
		                 step->name);
	return leat_sql_add_file(sql, path, err);
}

/* LEAT_END: the project has nothing of this name. */
static enum leat_status
add_named(struct leat_sql_job *job, const struct leat_project *project, const char *name, struct leat_str *sql,
          struct leat_err *err)
{
	for (size_t i = 0; i < project->steps; i++)
		if (!strcasecmp(project->step[i].name, name)) {
			begin_view(sql, project->step[i].name);
			return add_step(project, &project->step[i], sql, err);
		}
	for (size_t i = 0; i < project->sources; i++)
		if (!strcasecmp(project->source[i].name, name)) {
			begin_view(sql, project->source[i].name);
			return add_source(job, project, &project->source[i], sql, err);
		}
	return LEAT_END;
}

/* ---- all of them ---- */

/* Is leat.yaml needed, and there? */
static bool
wants_project(const struct leat_sql_job *job)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < job->sql.tables; i++)
		if (!job->sql.table[i].is_qualified && !leat_sql_table_path(job->params, job->sql.table[i].name))
			return strcmp(job->params->project, ".") ||
			       (snprintf(path, sizeof(path), "%s/leat.yaml", job->params->project) <
			                (int)sizeof(path) &&
			        !access(path, F_OK));
	return false;
}

static enum leat_status
define(struct leat_sql_job *job, const struct leat_project *project, const char *name, struct leat_err *err)
{
	const char *path = leat_sql_table_path(job->params, name);
	enum leat_status status = LEAT_END;
	struct leat_str sql;

	leat_str_init(&sql, job->mem, SIZE_MAX);
	if (path) {
		begin_view(&sql, name);
		status = leat_sql_add_file(&sql, path, err);
	} else if (project) {
		status = add_named(job, project, name, &sql, err);
	}
	if (status == LEAT_OK && sql.failed)
		status = leat_fail_mem(err, job->mem, sql.len, "a query");
	if (status == LEAT_OK)
		status = leat_tables_run(job->tables, leat_str_text(&sql), err);
	leat_str_free(&sql);
	return status == LEAT_END ? LEAT_OK : status; /* DuckDB says that there is no such table */
}

enum leat_status
leat_sql_define_tables(struct leat_sql_job *job, struct leat_err *err)
{
	struct leat_project *project = NULL;
	enum leat_status status = LEAT_OK;

	if (wants_project(job))
		status = leat_project_open(&project, job->mem, job->params->project, err);
	for (size_t i = 0; i < job->sql.tables && status == LEAT_OK; i++)
		if (!job->sql.table[i].is_qualified)
			status = define(job, project, job->sql.table[i].name, err);
	leat_project_close(project);
	return status;
}
