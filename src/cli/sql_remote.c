/* sql_remote.c - remote sources in `leat sql`: DuckDB reads copies in the project's store, and never a server
 *
 * The version that the last build saw counts, if its copy is still there: then nothing is asked, and it works offline.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/sql.h"
#include "step/action.h"
#include "step/build.h"

static enum leat_status
open_store(struct leat_sql_job *job, const struct leat_project *project, struct leat_err *err)
{
	char *folder;
	enum leat_status status;

	if (job->cas)
		return LEAT_OK;
	folder = leat_asprintf(job->mem, "%s/.leat", project->folder);
	if (!folder)
		return leat_fail_mem(err, job->mem, strlen(project->folder), "a path");
	status = leat_build_store(&job->cas, job->mem, folder, err);
	leat_free(job->mem, folder);
	return status == LEAT_OK ? leat_cas_begin(job->cas, err) : status;
}

/* DuckDB knows formats by the ends of names, which blobs do not have. */
static enum leat_status
link_copy(struct leat_sql_job *job, const char *uri, const struct leat_content *content, char **link,
          struct leat_err *err)
{
	char blob[PATH_MAX];

	leat_cas_blob_path(job->cas, &content->digest, blob);
	*link = leat_asprintf(job->mem, "%s/copy-%zu%s", job->spill, job->links++, leat_path_extension(uri));
	if (!*link)
		return leat_fail_mem(err, job->mem, PATH_MAX, "a path");
	return symlink(blob, *link) == 0 ? LEAT_OK : leat_fail_errno(err, errno, "cannot create the link '%s'", *link);
}

static enum leat_status
stage(struct leat_sql_job *job, struct leat_staging *staging, char **path, struct leat_err *err)
{
	struct leat_remote_file *file;
	struct leat_content content;
	char *link = NULL;
	enum leat_status status = leat_staging_find(staging, *path, &file, err);

	if (status == LEAT_OK)
		status = leat_staging_hash(staging, job->cas, file, true, &content, err);
	if (status == LEAT_OK)
		status = leat_staging_bring(staging, job->cas, file, &content, err);
	if (status == LEAT_OK)
		status = link_copy(job, *path, &content, &link, err);
	if (status == LEAT_END)
		return leat_fail(err, LEAT_CANCELLED, "stopped");
	if (status != LEAT_OK) {
		leat_free(job->mem, link);
		return status;
	}
	leat_free(job->mem, *path);
	*path = link;
	return LEAT_OK;
}

enum leat_status
leat_sql_stage(struct leat_sql_job *job, const struct leat_project *project, struct leat_paths *paths,
               struct leat_err *err)
{
	enum leat_status status = open_store(job, project, err);

	if (status == LEAT_OK)
		status = leat_staging_watch(project->staging, &job->stops_fetch, NULL, err);
	if (status != LEAT_OK)
		return status;
	for (size_t i = 0; i < paths->count && status == LEAT_OK; i++)
		status = stage(job, project->staging, &paths->path[i], err);
	leat_staging_unwatch(project->staging);
	return status;
}
