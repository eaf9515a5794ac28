/* sql.c - `leat sql`: a query over files, sources and results of steps, by DuckDB */
#include "cli/sql.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/size.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/steps.h"

static const struct leat_opt options[] = {
	LEAT_STRING(struct leat_sql_params, output, "",
                    "write the result to this .parquet, .csv or .json file instead of printing it"),
	LEAT_BOOL(struct leat_sql_params, json, "false", "print one JSON object per row"),
	LEAT_BOOL(struct leat_sql_params, csv, "false", "print CSV with a header"),
	LEAT_INT(struct leat_sql_params, rows, "40", 0, 1e6, "rows to print as a table; all are counted"),
	LEAT_INT(struct leat_sql_params, threads, "0", 0, 4096, "threads; 0: one per available CPU"),
	LEAT_SIZE(struct leat_sql_params, memory, "0", 0, 1e18, "memory limit; 0: a quarter of the RAM"),
	LEAT_STRINGS(struct leat_sql_params, table, "", "NAME=PATH: a file or folder as a table; repeat it for more",
                     LEAT_OPT_REPEATS),
	LEAT_PROJECT_OPTION(struct leat_sql_params),
	LEAT_BOOL(struct leat_sql_params, step, "false",
                  "run as a step of leat build: with the tables given only, sorted by --key, equal bytes every time"),
	LEAT_STRINGS(struct leat_sql_params, key, "", "with --step, a column of the key; repeat it for more",
                     LEAT_OPT_REPEATS),
	LEAT_STRINGS(struct leat_sql_params, check, "",
                     "with --step, what must hold for the result, as in 'leat check'; repeat it for more. --output is "
                     "then a "
                     "folder, with kept.parquet and rejects.jsonl",
                     LEAT_OPT_REPEATS),
	LEAT_STRING(struct leat_sql_params, action, "fail",
                    "with --check, what to do with rows that fail; see 'leat check'"),
	LEAT_STRINGS(struct leat_sql_params, by, "",
                     "with --step, TABLE=COLUMN: the table is a partition, split by this column; repeat it for more",
                     LEAT_OPT_REPEATS),
	LEAT_STRING(struct leat_sql_params, split, "",
                    "with --step, split the result by a hash of this column; --output is then a folder, with a Parquet "
                    "file for each partition"),
	LEAT_INT(struct leat_sql_params, partitions, "64", 1, LEAT_MAX_PARTITIONS,
                 "with --split, number of partitions"),
	LEAT_STRING(struct leat_sql_params, duckdb, "", "with --step, the version of DuckDB to expect"),
	LEAT_OPT_END,
};

/* ---- temporary files ---- */

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
	(void)st;
	(void)type;
	(void)walk;
	return remove(path);
}

static enum leat_status
make_spill(struct leat_sql_job *job, struct leat_err *err)
{
	const char *folder = getenv("TMPDIR");

	job->spill = leat_asprintf(job->mem, "%s/leat-sql-XXXXXX", folder && *folder ? folder : "/tmp");
	if (!job->spill)
		return leat_fail_mem(err, job->mem, PATH_MAX, "a path");
	if (mkdtemp(job->spill))
		return LEAT_OK;
	leat_fail_errno(err, errno, "cannot make the folder '%s' for temporary files", job->spill);
	leat_free(job->mem, job->spill);
	job->spill = NULL;
	return LEAT_IO;
}

/* ---- ^C ---- */

static void
stop(void *arg)
{
	struct leat_sql_job *job = arg;

	atomic_store(&job->stops_fetch, true);
	pthread_mutex_lock(&job->lock);
	job->stopped = true;
	if (job->is_open)
		leat_tables_interrupt(job->tables);
	pthread_mutex_unlock(&job->lock);
}

/* DuckDB's threads are started while signals are blocked, so only the watcher gets them. */
static enum leat_status
open_tables(struct leat_sql_job *job, struct leat_err *err)
{
	const struct leat_sql_params *p = job->params;
	enum leat_status status = leat_tables_open(&job->tables,
	                                           &(struct leat_tables_options){.threads = (unsigned)p->threads,
	                                                                         .memory = (size_t)p->memory,
	                                                                         .spill = job->spill},
	                                           err);

	pthread_mutex_lock(&job->lock);
	job->is_open = status == LEAT_OK;
	if (job->is_open && job->stopped)
		leat_tables_interrupt(job->tables);
	pthread_mutex_unlock(&job->lock);
	return status;
}

/* ---- progress ---- */

static uint64_t
spilled_bytes(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	struct stat file;
	uint64_t bytes = 0;

	while (dir && (entry = readdir(dir)) != NULL)
		if (fstatat(dirfd(dir), entry->d_name, &file, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(file.st_mode))
			bytes += (uint64_t)file.st_blocks * 512;
	if (dir)
		closedir(dir);
	return bytes;
}

/* What is known for certain: DuckDB's percentage is wrong for joins and sorts. */
static void
tell_build(const struct leat_sql_job *job)
{
	const char *phase = atomic_load(&job->phase);
	uint64_t spilled = spilled_bytes(job->spill), written;
	char left[32], size[32];
	struct stat result;

	if (!phase)
		return;
	written = job->result && stat(job->result, &result) == 0 ? (uint64_t)result.st_size : 0;
	leat_format_size(size, sizeof(size), written);
	leat_format_size(left, sizeof(left), spilled);
	leat_progress_say("%s%s%s%s%s", phase, written > 4 ? ", wrote " : "", written > 4 ? size : "",
	                  spilled ? ", spilled " : "", spilled ? left : "");
}

static void
show_progress(struct leat_sql_job *job, uint64_t begun)
{
	double percent = leat_tables_progress(job->tables);
	char text[64] = "";

	if (percent > 0 && percent <= 100)
		snprintf(text, sizeof(text), "%.0f%%, ", percent);
	fprintf(stderr, "\r\033[Krunning: %s%.0f s", text, (double)(leat_now() - begun) / 1e9);
	fflush(stderr);
}

/* After a second, as a line on a terminal. */
static void *
watch_progress(void *arg)
{
	struct leat_sql_job *job = arg;
	uint64_t begun = leat_now();
	struct timespec next;
	bool drawn = false;

	clock_gettime(CLOCK_REALTIME, &next);
	next.tv_sec++;
	pthread_mutex_lock(&job->lock);
	while (!job->ended) {
		if (pthread_cond_timedwait(&job->wake, &job->lock, &next) != ETIMEDOUT || job->ended)
			continue;
		if (job->params->step) {
			tell_build(job);
		} else {
			show_progress(job, begun);
			drawn = true;
		}
		next.tv_nsec += 250000000;
		next.tv_sec += next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
	}
	pthread_mutex_unlock(&job->lock);
	if (drawn)
		fputs("\r\033[K", stderr);
	return NULL;
}

static void
begin_progress(struct leat_sql_job *job)
{
	if (leat_is_terminal(stderr) || job->params->step)
		job->shows_progress = pthread_create(&job->progress, NULL, watch_progress, job) == 0;
}

static void
end_progress(struct leat_sql_job *job)
{
	if (!job->shows_progress)
		return;
	pthread_mutex_lock(&job->lock);
	job->ended = true;
	pthread_cond_signal(&job->wake);
	pthread_mutex_unlock(&job->lock);
	pthread_join(job->progress, NULL);
	job->shows_progress = false;
}

/* ---- a file ---- */

static const char *
format_of(const char *path)
{
	static const char *const endings[][2] = {{".parquet", "FORMAT parquet, COMPRESSION zstd"},
	                                         {".csv", "FORMAT csv, HEADER"},
	                                         {".json", "FORMAT json"}};
	size_t len = strlen(path);

	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		size_t n = strlen(endings[i][0]);

		if (len > n && !strcmp(path + len - n, endings[i][0]))
			return endings[i][1];
	}
	return NULL;
}

/* Beside its place first, so that no half-written file is ever there. */
static enum leat_status
write_file(struct leat_sql_job *job, struct leat_err *err)
{
	const char *path = job->params->output, *format = format_of(path);
	char temp[PATH_MAX];
	struct leat_columns columns;
	struct leat_str copy;
	enum leat_status status;
	int fd;

	if (!format)
		return leat_fail(err, LEAT_INVALID, "'%s' must end in .parquet, .csv or .json", path);
	if (snprintf(temp, sizeof(temp), "%s.%ld.part", path, (long)getpid()) >= (int)sizeof(temp))
		return leat_fail_errno(err, ENAMETOOLONG, "cannot write '%s'", path);
	fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0) /* before the query runs, and with the name that the user gave */
		return leat_fail_errno(err, errno, "cannot write '%s'", path);
	close(fd);
	status = leat_query_describe(job->tables, job->sql.text, &columns, err); /* one SELECT, and nothing else */
	leat_columns_free(&columns);
	leat_str_init(&copy, job->mem, SIZE_MAX);
	leat_str_addf(&copy, "COPY (%s\n) TO ", job->sql.text);
	leat_sql_quote(&copy, temp, '\'');
	leat_str_addf(&copy, " (%s)", format);
	if (status == LEAT_OK)
		status = copy.failed ? leat_fail_mem(err, job->mem, copy.len, "a query")
		                     : leat_tables_run(job->tables, leat_str_text(&copy), err);
	leat_str_free(&copy);
	if (status == LEAT_OK && rename(temp, path))
		status = leat_fail_errno(err, errno, "cannot write '%s'", path);
	if (status != LEAT_OK)
		unlink(temp);
	return status;
}

/* ---- all of it ---- */

static enum leat_status
run_query(struct leat_sql_job *job, struct leat_err *err)
{
	enum leat_status status;

	if (job->params->step)
		return leat_sql_run_step(job, err);
	status = leat_sql_define_tables(job, err);
	if (status == LEAT_OK)
		status = *job->params->output ? write_file(job, err) : leat_sql_print(job, err);
	if (status != LEAT_OK && strstr(err->text, "extension httpfs")) {
		leat_err_clear(err);
		return leat_fail(err, LEAT_UNSUPPORTED,
		                 "queries do not read from servers: give the URI a name under 'sources:' in leat.yaml, "
		                 "and read it by that name");
	}
	return status;
}

static enum leat_status
check_params(const struct leat_sql_params *p, struct leat_err *err)
{
	if (p->json + p->csv + (*p->output != '\0') > 1)
		return leat_fail(err, LEAT_INVALID, "use one of --json, --csv and --output");
	if (p->step && ((!p->key.count && !*p->split) || !*p->output))
		return leat_fail(err, LEAT_INVALID, "--step needs --key or --split, and --output");
	if (!p->step && (p->key.count || *p->duckdb || p->check.count || p->by.count || *p->split))
		return leat_fail(err, LEAT_INVALID, "--key, --check, --by, --split and --duckdb go with --step");
	if (*p->split && (p->key.count || p->check.count || p->by.count))
		return leat_fail(err, LEAT_INVALID, "--split goes without --key, --check and --by");
	for (size_t i = 0; i < p->by.count; i++)
		if (!strchr(p->by.value[i], '='))
			return leat_fail(err, LEAT_INVALID, "--by is TABLE=COLUMN, not '%s'", p->by.value[i]);
	for (size_t i = 0; i < p->table.count; i++)
		if (!strchr(p->table.value[i], '=') || *p->table.value[i] == '=')
			return leat_fail(err, LEAT_INVALID, "--table is NAME=PATH, not '%s'", p->table.value[i]);
	return LEAT_OK;
}

static void
end_job(struct leat_sql_job *job)
{
	end_progress(job);
	pthread_mutex_lock(&job->lock);
	job->is_open = false;
	pthread_mutex_unlock(&job->lock);
	leat_interrupt_end(&job->interrupt);
	leat_tables_close(job->tables);
	if (job->spill)
		nftw(job->spill, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	leat_cas_close(job->cas);
	leat_free(job->mem, job->spill);
	leat_free(job->mem, job->result);
	leat_sql_free(&job->sql);
	pthread_mutex_destroy(&job->lock);
	pthread_cond_destroy(&job->wake);
}

static enum leat_status
run_sql(const struct leat_invocation *run, struct leat_err *err)
{
	struct leat_sql_job job = {.params = run->params, .mem = run->mem};
	enum leat_status status = check_params(job.params, err);

	if (status == LEAT_OK)
		status = leat_sql_read(&job.sql, run->mem, run->operand[0], strlen(run->operand[0]), err);
	if (status == LEAT_OK)
		status = leat_duckdb_load(err);
	if (status != LEAT_OK) {
		leat_sql_free(&job.sql);
		return status;
	}
	pthread_mutex_init(&job.lock, NULL);
	pthread_cond_init(&job.wake, NULL);
	leat_interrupt_begin(&job.interrupt, stop, &job);
	status = make_spill(&job, err);
	if (status == LEAT_OK)
		status = open_tables(&job, err);
	if (status == LEAT_OK) {
		begin_progress(&job);
		status = run_query(&job, err);
	}
	end_job(&job);
	return status;
}

const struct leat_command leat_command_sql = {
	.name = "sql",
	.summary = "Query Parquet, CSV and JSON files, sources and results of steps",
	.operands = "QUERY",
	.min_operands = 1,
	.max_operands = 1,
	.help = "QUERY is one SELECT, in DuckDB's SQL. Tables are files ('data/*.parquet'), what\n"
		"--table names, and in a folder with leat.yaml, sources and the last results of\n"
		"steps by their names. DESCRIBE and SUMMARIZE work, too.\n"
		"\n"
		"Needs DuckDB: pip install duckdb==1.5.6",
	.example = "leat sql \"SELECT count(*) FROM 'data/*.parquet'\"\n"
		   "leat sql \"SUMMARIZE clean\"\n"
		   "leat sql -o top.parquet \"SELECT * FROM clean ORDER BY amount DESC LIMIT 100\"",
	.opts = options,
	.params_size = sizeof(struct leat_sql_params),
	.run = run_sql,
};
