/* feature_run.c - see feature_run.h */
#include "cli/feature_run.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "cas/cas.h"

static void
stop(void *arg)
{
	struct leat_feature_run *run = arg;

	pthread_mutex_lock(&run->lock);
	run->stopped = true;
	if (run->is_open)
		leat_tables_interrupt(run->tables);
	pthread_mutex_unlock(&run->lock);
}

/* Signals are watched first: DuckDB's threads are started while they are blocked, so only the watcher gets them. */
static enum leat_status
open_tables(struct leat_feature_run *run, const struct leat_tables_options *options, struct leat_err *err)
{
	enum leat_status status;

	pthread_mutex_init(&run->lock, NULL);
	run->begun = true;
	leat_interrupt_begin(&run->interrupt, stop, run);
	status = leat_tables_open(&run->tables, options, err);
	pthread_mutex_lock(&run->lock);
	run->is_open = status == LEAT_OK;
	if (run->is_open && run->stopped)
		leat_tables_interrupt(run->tables);
	pthread_mutex_unlock(&run->lock);
	return status;
}

enum leat_status
leat_feature_run_open(struct leat_feature_run *run, const char *path, const char *spill, int64_t threads,
                      int64_t memory, struct leat_mem *mem, struct leat_err *err)
{
	struct leat_tables_options options = {.threads = (unsigned)threads, .memory = (size_t)memory};
	enum leat_status status;

	*run = (struct leat_feature_run){.mem = mem};
	leat_str_init(&run->table, mem, SIZE_MAX / 4);
	status = leat_sql_add_file(&run->table, path, err);
	if (status == LEAT_OK && mkdir(spill, 0777) != 0)
		status = leat_fail_errno(err, errno, "cannot make the folder '%s'", spill);
	if (status != LEAT_OK)
		return status;
	options.spill = run->spill = leat_strdup(mem, spill);
	if (!run->spill || run->table.failed)
		return leat_fail_mem(err, mem, strlen(spill), "a path");
	return open_tables(run, &options, err);
}

void
leat_feature_run_close(struct leat_feature_run *run)
{
	if (run->begun) {
		pthread_mutex_lock(&run->lock);
		run->is_open = false;
		pthread_mutex_unlock(&run->lock);
		leat_interrupt_end(&run->interrupt);
		pthread_mutex_destroy(&run->lock);
	}
	leat_tables_close(run->tables);
	if (run->spill)
		leat_remove_tree(run->spill);
	leat_free(run->mem, run->spill);
	leat_str_free(&run->table);
}

enum leat_status
leat_feature_run_write(struct leat_feature_run *run, const char *select, const char *path, struct leat_err *err)
{
	enum leat_status status;
	struct leat_str sql;

	leat_str_init(&sql, run->mem, SIZE_MAX / 4);
	leat_str_addf(&sql, "COPY (%s) TO ", select);
	leat_sql_quote(&sql, path, '\'');
	leat_str_add(&sql, " (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880)");
	status = sql.failed ? leat_fail_mem(err, run->mem, sql.len, "a query")
	                    : leat_tables_run(run->tables, leat_str_text(&sql), err);
	leat_str_free(&sql);
	return status;
}

char *
leat_temporary_name(const char *path, struct leat_mem *mem)
{
	size_t end = strlen(path), begin;

	while (end > 1 && path[end - 1] == '/')
		end--;
	for (begin = end; begin > 0 && path[begin - 1] != '/';)
		begin--;
	return leat_asprintf(mem, "%.*s.%.*s.tmp", (int)begin, path, (int)(end - begin), path + begin);
}
