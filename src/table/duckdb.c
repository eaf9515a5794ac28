/* duckdb.c - databases: settings, statements, errors; see duckdb.h */
#include "table/duckdb_api.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/mem.h"
#include "base/threads.h"

/* ---- errors ---- */

static enum leat_status
status_of(const char *text)
{
	static const struct {
		const char *begin;
		enum leat_status status;
	} known[] = {{"INTERRUPT", LEAT_CANCELLED}, {"Out of Memory", LEAT_LIMIT},
	             {"IO Error", LEAT_IO},         {"HTTP", LEAT_IO},
	             {"Parser", LEAT_INVALID},      {"Binder", LEAT_INVALID},
	             {"Catalog", LEAT_INVALID},     {"Syntax", LEAT_INVALID},
	             {"Permission", LEAT_INVALID},  {"Not implemented", LEAT_INVALID},
	             {"INTERNAL", LEAT_INTERNAL},   {"FATAL", LEAT_INTERNAL}};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (!strncmp(text, known[i].begin, strlen(known[i].begin)))
			return known[i].status;
	return LEAT_DATA;
}

/* What follows an empty line is about DuckDB's text of the query, which may not be the user's; and its own tables are
 * never meant. */
static const char *
end_of_message(const char *text)
{
	static const char *const ends[] = {"\n\n", "\nDid you mean \"pg_", "\nDid you mean \"duckdb_",
	                                   "\nDid you mean \"sqlite_", "\nDid you mean \"pragma_"};
	const char *end = text + strlen(text);

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		const char *found = strstr(text, ends[i]);

		if (found && found < end)
			end = found;
	}
	return end;
}

/* DuckDB writes "Binder Error: what\nmore\n\nLINE 1: SELECT ...". */
enum leat_status
leat_duckdb_fail(struct leat_err *err, const char *text)
{
	const char *end, *what;
	char line[900];
	size_t len = 0;
	enum leat_status status;

	if (!text || !*text)
		return leat_fail(err, LEAT_INTERNAL, "DuckDB failed and did not say why");
	status = status_of(text);
	if (status == LEAT_CANCELLED)
		return leat_fail(err, status, "interrupted");
	what = strstr(text, "Error: ");
	what = what && what - text < 40 ? what + strlen("Error: ") : text;
	end = end_of_message(what);
	for (; what < end && len + 4 < sizeof(line); what++) {
		if (*what != '\n') {
			line[len++] = *what;
		} else if (len && what + 1 < end) {
			len -= line[len - 1] == '!' || line[len - 1] == '.';
			len += (size_t)snprintf(line + len, 3, line[len - 1] == ':' ? " " : "; ");
		}
	}
	while (len && (line[len - 1] == '!' || line[len - 1] == '.' || line[len - 1] == ' '))
		len--;
	line[len] = '\0';
	if (status == LEAT_LIMIT)
		return leat_fail(err, status,
		                 "the query needs more memory or temporary files than it may use: %s; raise 'memory'",
		                 line);
	return leat_fail(err, status, "%s", line);
}

static enum leat_status
fail_stopped(struct leat_err *err)
{
	return leat_fail(err, LEAT_CANCELLED, "interrupted");
}

/* ---- open ---- */

enum { MIB = 1024 * 1024, LEAST_MIB = 64 };

/* What DuckDB counts is less than what its process has: decompressed columns, results and the library itself come on
 * top of it. */
static size_t
limit_mib(const struct leat_tables_options *options)
{
	size_t memory = options->memory ? options->memory : leat_ram("") / 4, mib = memory / 2 / MIB;

	return mib < LEAST_MIB ? LEAST_MIB : mib;
}

/* Temporary files leave a tenth of what is free to others: a full disk would fail them, too. */
static unsigned long long
spill_mib(const char *folder)
{
	struct statvfs fs;

	if (!folder || statvfs(folder, &fs) != 0)
		return 0;
	return (unsigned long long)fs.f_bavail * fs.f_frsize / MIB * 9 / 10;
}

static enum leat_status
set_config(const struct leat_duckdb *api, void *config, const char *name, const char *value, struct leat_err *err)
{
	if (api->set_config(config, name, value) == LEAT_DUCKDB_OK)
		return LEAT_OK;
	return leat_fail(err, LEAT_UNSUPPORTED, "this DuckDB does not accept %s=%s", name, value);
}

static enum leat_status
configure(const struct leat_duckdb *api, void *config, const struct leat_tables_options *options, struct leat_err *err)
{
	char threads[16], memory[32], spill[32];
	const char *const settings[][2] = {
		{"threads", threads},
		{"memory_limit", memory},
		{"temp_directory", options->spill ? options->spill : ""},
		{"max_temp_directory_size", spill},
		{"autoinstall_known_extensions", "false"},
		{"autoload_known_extensions", "false"},
		{"allow_community_extensions", "false"},
	};
	enum leat_status status = LEAT_OK;

	snprintf(threads, sizeof(threads), "%u", options->threads ? options->threads : leat_cpus(""));
	snprintf(memory, sizeof(memory), "%zuMiB", limit_mib(options));
	snprintf(spill, sizeof(spill), "%lluMiB", spill_mib(options->spill));
	for (size_t i = 0; i < sizeof(settings) / sizeof(*settings) && status == LEAT_OK; i++)
		status = set_config(api, config, settings[i][0], settings[i][1], err);
	return status;
}

static enum leat_status
open_database(struct leat_tables *tables, const struct leat_tables_options *options, struct leat_err *err)
{
	const struct leat_duckdb *api = tables->api;
	enum leat_status status;
	void *config = NULL;
	char *text = NULL;

	if (api->create_config(&config) != LEAT_DUCKDB_OK)
		return leat_fail(err, LEAT_NOMEM, "out of memory for the settings of DuckDB");
	status = configure(api, config, options, err);
	if (status == LEAT_OK && api->open_ext(NULL, &tables->database, config, &text) != LEAT_DUCKDB_OK) {
		status = leat_duckdb_fail(err, text);
		api->free(text);
	}
	api->destroy_config(&config);
	if (status == LEAT_OK && api->connect(tables->database, &tables->connection) != LEAT_DUCKDB_OK)
		status = leat_fail(err, LEAT_INTERNAL, "DuckDB opened a database, but no connection to it");
	return status;
}

/* Settings that belong to a connection. Progress is only counted while its bar is on. The buffer is between the threads
 * that make chunks and the one that reads them. */
static enum leat_status
set_session(struct leat_tables *tables, size_t mib, struct leat_err *err)
{
	char sql[256];

	snprintf(sql, sizeof(sql),
	         "SET TimeZone = 'UTC'; SET streaming_buffer_size = '%zuMiB'; SET enable_progress_bar = true; "
	         "SET enable_progress_bar_print = false; SET progress_bar_time = 0",
	         mib / 8 < 64 ? mib / 8 : 64);
	return leat_tables_run(tables, sql, err);
}

enum leat_status
leat_tables_open(struct leat_tables **out, const struct leat_tables_options *options, struct leat_err *err)
{
	const struct leat_duckdb *api = leat_duckdb_find(err);
	struct leat_tables *tables;
	enum leat_status status;

	*out = NULL;
	if (!api)
		return LEAT_UNSUPPORTED;
	tables = calloc(1, sizeof(*tables)); /* DuckDB's memory is not a leat_mem's either */
	if (!tables)
		return leat_fail(err, LEAT_NOMEM, "out of memory for a database");
	tables->api = api;
	status = open_database(tables, options, err);
	if (status == LEAT_OK)
		status = set_session(tables, limit_mib(options), err);
	if (status == LEAT_OK)
		*out = tables;
	else
		leat_tables_close(tables);
	return status;
}

void
leat_tables_close(struct leat_tables *tables)
{
	if (!tables)
		return;
	if (tables->connection)
		tables->api->disconnect(&tables->connection);
	if (tables->database)
		tables->api->close(&tables->database);
	free(tables);
}

/* ---- statements ---- */

static enum leat_status
prepare(struct leat_tables *tables, void *statements, uint64_t i, void **prepared, struct leat_err *err)
{
	const struct leat_duckdb *api = tables->api;
	enum leat_status status = LEAT_OK;

	*prepared = NULL;
	if (api->prepare_extracted_statement(tables->connection, statements, i, prepared) != LEAT_DUCKDB_OK)
		status = leat_duckdb_fail(err, *prepared ? api->prepare_error(*prepared) : NULL);
	else if (api->nparams(*prepared) > 0)
		status = leat_fail(err, LEAT_INVALID,
		                   "the query has parameters ($1 or ?), but nothing gives them values");
	if (status != LEAT_OK)
		api->destroy_prepare(prepared);
	return status;
}

static enum leat_status
extract(struct leat_tables *tables, const char *sql, void **statements, uint64_t *n, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	if (atomic_load(&tables->stopped))
		return fail_stopped(err);
	*n = tables->api->extract_statements(tables->connection, sql, statements);
	if (*n == 0) {
		const char *text = *statements ? tables->api->extract_statements_error(*statements) : NULL;

		status = text && *text ? leat_duckdb_fail(err, text)
		                       : leat_fail(err, LEAT_INVALID, "the query is empty");
		tables->api->destroy_extracted(statements);
	}
	return status;
}

enum leat_status
leat_tables_prepare(struct leat_tables *tables, const char *sql, bool select, void **prepared, struct leat_err *err)
{
	void *statements = NULL;
	uint64_t n = 0;
	enum leat_status status = extract(tables, sql, &statements, &n, err);

	*prepared = NULL;
	if (status != LEAT_OK)
		return status;
	if (n > 1)
		status = leat_fail(err, LEAT_INVALID, "expected one statement, but there are %llu",
		                   (unsigned long long)n);
	else
		status = prepare(tables, statements, 0, prepared, err);
	tables->api->destroy_extracted(&statements);
	if (status == LEAT_OK && select && tables->api->prepared_statement_type(*prepared) != LEAT_DUCKDB_SELECT) {
		tables->api->destroy_prepare(prepared);
		status = leat_fail(err, LEAT_INVALID, "expected a SELECT, and the statement is something else");
	}
	return status;
}

/* DuckDB forgets an interrupt that comes before the statement is pending: it is repeated. A pending statement has to
 * run, because DuckDB leaks one that is given up. */
static enum leat_status
run_pending(struct leat_tables *tables, void *pending, struct leat_duckdb_result *result, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	if (atomic_load(&tables->stopped))
		tables->api->interrupt(tables->connection);
	if (tables->api->execute_pending(pending, result) != LEAT_DUCKDB_OK)
		status = leat_duckdb_fail(err, tables->api->result_error(result));
	else if (atomic_load(&tables->stopped))
		status = fail_stopped(err);
	if (status != LEAT_OK)
		tables->api->destroy_result(result);
	return status;
}

enum leat_status
leat_tables_execute(struct leat_tables *tables, void **prepared, bool streaming, struct leat_duckdb_result *result,
                    struct leat_err *err)
{
	const struct leat_duckdb *api = tables->api;
	void *pending = NULL;
	enum leat_status status;
	int made;

	memset(result, 0, sizeof(*result));
	made = streaming ? api->pending_prepared_streaming(*prepared, &pending)
	                 : api->pending_prepared(*prepared, &pending);
	if (made != LEAT_DUCKDB_OK)
		status = leat_duckdb_fail(err, pending ? api->pending_error(pending) : NULL);
	else
		status = run_pending(tables, pending, result, err);
	api->destroy_pending(&pending);
	api->destroy_prepare(prepared);
	return status;
}

enum leat_status
leat_tables_run(struct leat_tables *tables, const char *sql, struct leat_err *err)
{
	void *statements = NULL, *prepared;
	struct leat_duckdb_result result;
	uint64_t n = 0;
	enum leat_status status = extract(tables, sql, &statements, &n, err);

	for (uint64_t i = 0; i < n && status == LEAT_OK; i++) {
		status = prepare(tables, statements, i, &prepared, err);
		if (status != LEAT_OK)
			break;
		status = leat_tables_execute(tables, &prepared, false, &result, err);
		if (status == LEAT_OK)
			tables->api->destroy_result(&result);
	}
	if (statements)
		tables->api->destroy_extracted(&statements);
	return status;
}

void
leat_tables_interrupt(struct leat_tables *tables)
{
	atomic_store(&tables->stopped, true);
	tables->api->interrupt(tables->connection);
}

double
leat_tables_progress(struct leat_tables *tables)
{
	return tables->api->query_progress(tables->connection).percentage;
}

/* ---- confinement ---- */

static void
add_paths(struct leat_str *sql, const char *setting, const char *const *paths, size_t n, bool folders)
{
	size_t added = 0;

	leat_str_addf(sql, "SET %s = [", setting);
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(paths[i]);

		if ((len && paths[i][len - 1] == '/') != folders)
			continue;
		leat_str_add(sql, added++ ? ", " : "");
		leat_sql_quote(sql, paths[i], '\'');
	}
	leat_str_add(sql, "]; ");
}

enum leat_status
leat_tables_confine(struct leat_tables *tables, const char *const *paths, size_t n, struct leat_err *err)
{
	struct leat_mem mem;
	struct leat_str sql;
	enum leat_status status;

	leat_mem_init(&mem, SIZE_MAX);
	leat_str_init(&sql, &mem, SIZE_MAX);
	add_paths(&sql, "allowed_paths", paths, n, false);
	add_paths(&sql, "allowed_directories", paths, n, true);
	leat_str_add(&sql, "SET enable_external_access = false; SET lock_configuration = true");
	status = sql.failed ? leat_fail_mem(err, &mem, sql.len, "paths")
	                    : leat_tables_run(tables, leat_str_text(&sql), err);
	leat_str_free(&sql);
	return status;
}
