/* table_session.c - see table_session.h */
#include "cli/table_session.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cas/manifest.h"
#include "cli/ask.h"

/* In the watcher's thread. */
static void
stop(void *arg)
{
	struct leat_table_session *session = arg;

	pthread_mutex_lock(&session->lock);
	session->stopped = true;
	if (session->tables)
		leat_tables_interrupt(session->tables);
	pthread_mutex_unlock(&session->lock);
}

static enum leat_status
make_spill(struct leat_table_session *session, struct leat_err *err)
{
	const char *folder = getenv("TMPDIR");

	if (snprintf(session->spill, sizeof(session->spill), "%s/leat-XXXXXX", folder && *folder ? folder : "/tmp") >=
	    (int)sizeof(session->spill))
		return leat_fail(err, LEAT_INVALID, "the path in $TMPDIR is too long");
	if (mkdtemp(session->spill))
		return LEAT_OK;
	leat_fail_errno(err, errno, "cannot create a temporary folder '%s'", session->spill);
	session->spill[0] = '\0';
	return LEAT_IO;
}

/* DuckDB's threads start while signals are blocked, so only the watcher gets them. */
enum leat_status
leat_table_session_open(struct leat_table_session *session, int64_t threads, int64_t memory, struct leat_err *err)
{
	struct leat_tables *tables = NULL;
	enum leat_status status;

	*session = (struct leat_table_session){.lock = PTHREAD_MUTEX_INITIALIZER};
	status = leat_duckdb_load(err);
	if (status == LEAT_OK)
		status = make_spill(session, err);
	if (status != LEAT_OK)
		return status;
	leat_interrupt_begin(&session->interrupt, stop, session);
	status = leat_tables_open(&tables,
	                          &(struct leat_tables_options){.threads = (unsigned)threads,
	                                                        .memory = (size_t)memory,
	                                                        .spill = session->spill},
	                          err);
	pthread_mutex_lock(&session->lock);
	session->tables = tables;
	if (tables && session->stopped)
		leat_tables_interrupt(tables);
	pthread_mutex_unlock(&session->lock);
	return status == LEAT_OK ? LEAT_OK : leat_table_session_close(session, status, err);
}

enum leat_status
leat_table_session_close(struct leat_table_session *session, enum leat_status status, struct leat_err *err)
{
	bool stopped = leat_interrupt_end(&session->interrupt);

	leat_tables_close(session->tables);
	if (session->spill[0])
		rmdir(session->spill); /* DuckDB removes its files */
	if (stopped && (status == LEAT_OK || status == LEAT_CANCELLED)) {
		leat_err_clear(err);
		return leat_fail(err, LEAT_CANCELLED, "stopped");
	}
	return status;
}

/* ---- tables by name ---- */

/* Of a slice or an id, or of a step that is not sliced. */
static enum leat_status
add_action(struct leat_str *sql, const struct leat_steps *steps, const char *name, struct leat_err *err)
{
	struct leat_manifest *manifest = NULL;
	char path[PATH_MAX];
	enum leat_status status = leat_ask_action(steps, name, &manifest, err);

	if (status != LEAT_OK)
		return status;
	if (!leat_cas_has(steps->cas, &manifest->output))
		status = leat_fail(err, LEAT_DATA,
		                   "the result of '%s' is not in the store any more; 'leat build' "
		                   "makes it again",
		                   name);
	else if (manifest->output.kind == LEAT_CONTENT_FOLDER)
		status = leat_cas_view(steps->cas, &manifest->output, path, err);
	else
		leat_cas_blob_path(steps->cas, &manifest->output.digest, path);
	leat_manifest_free(manifest, sql->mem);
	return status == LEAT_OK ? leat_sql_add_file(sql, path, err) : status;
}

static enum leat_status
add_step(struct leat_str *sql, const char *name, const char *project, struct leat_err *err)
{
	struct leat_steps steps;
	struct leat_asked asked = {0};
	char path[PATH_MAX], step[256];
	uint64_t number;
	bool all = false;
	enum leat_status status = leat_ask_open(&steps, sql->mem, project, LEAT_LOOK_BACK, err);

	if (status != LEAT_OK)
		return status;
	if (!leat_ask_is_id(name, step, &number)) {
		status = leat_ask_step(&steps, name, &asked, err);
		all = asked.slice == SIZE_MAX;
		leat_free(sql->mem, asked.slice_text);
	}
	if (status == LEAT_OK && all) {
		snprintf(path, sizeof(path), "%s/out/%s", steps.project->folder, asked.step->name);
		status = access(path, F_OK) == 0 ? leat_sql_add_file(sql, path, err)
		                                 : leat_fail(err, LEAT_DATA, "'%s' was never built completely", name);
	} else if (status == LEAT_OK) {
		status = add_action(sql, &steps, name, err);
	}
	leat_steps_close(&steps);
	return status;
}

static bool
is_project(const char *project)
{
	char path[PATH_MAX];

	return snprintf(path, sizeof(path), "%s/leat.yaml", project) < PATH_MAX &&
	       (access(path, F_OK) == 0 || (access(project, F_OK) == 0 && strstr(project, ".yaml")));
}

enum leat_status
leat_table_add(struct leat_str *sql, const char *name, const char *project, struct leat_err *err)
{
	bool is_file = access(name, F_OK) == 0 || strpbrk(name, "/*?[.");

	if (is_file || !is_project(project))
		return leat_sql_add_file(sql, name, err);
	return add_step(sql, name, project, err);
}
