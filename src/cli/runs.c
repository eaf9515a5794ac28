/* runs.c - see runs.h */
#include "cli/runs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_END = 4096 }; /* characters of the line that ends a log */

static enum leat_status
open_log(struct leat_cas *cas, const char *run, FILE **file, struct leat_err *err)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/runs/%s.jsonl", leat_cas_folder(cas), run);
	*file = fopen(path, "re");
	return *file ? LEAT_OK : leat_fail_errno(err, errno, "cannot read the log of build '%s'", run);
}

enum leat_status
leat_run_last_line(struct leat_cas *cas, const char *run, const struct leat_run_lines_reader *reader,
                   struct leat_err *err)
{
	char end[MAX_END + 1], *last;
	struct leat_run_line line;
	size_t got;
	FILE *file;
	enum leat_status status = open_log(cas, run, &file, err);

	if (status != LEAT_OK)
		return status;
	if (fseek(file, -MAX_END, SEEK_END) != 0) /* it is shorter */
		rewind(file);
	got = fread(end, 1, MAX_END, file);
	fclose(file);
	got -= got > 0 && end[got - 1] == '\n';
	end[got] = '\0';
	last = memrchr(end, '\n', got);
	last = last ? last + 1 : end;
	if (leat_run_line_parse(last, (size_t)(end + got - last), &line, NULL) != LEAT_OK)
		return LEAT_OK;
	status = reader->line(reader->arg, &line, err);
	leat_run_line_free(&line);
	return status;
}

enum leat_status
leat_run_lines(struct leat_cas *cas, const char *run, const struct leat_run_lines_reader *reader, struct leat_err *err)
{
	char *text = NULL;
	size_t cap = 0;
	ssize_t len;
	FILE *file;
	enum leat_status status = open_log(cas, run, &file, err);

	if (status != LEAT_OK)
		return status;
	while (status == LEAT_OK && (len = getline(&text, &cap, file)) > 0) {
		struct leat_run_line line;

		if (leat_run_line_parse(text, (size_t)len, &line, NULL) != LEAT_OK)
			continue;
		status = reader->line(reader->arg, &line, err);
		leat_run_line_free(&line);
	}
	free(text);
	fclose(file);
	return status;
}

enum leat_status
leat_run_find(struct leat_cas *cas, const char *text, struct leat_mem *mem, char **run, struct leat_err *err)
{
	struct leat_paths runs = {0};
	const char *found = NULL;
	enum leat_status status = leat_runs_list(cas, mem, &runs, err);
	bool is_latest = strcmp(text, "latest") == 0;

	for (size_t i = 0; i < runs.count && status == LEAT_OK; i++) {
		if (!is_latest && strncmp(runs.path[i], text, strlen(text)) != 0)
			continue;
		if (!is_latest && found)
			status = leat_fail(err, LEAT_INVALID, "several builds begin with '%s', such as %s and %s", text,
			                   runs.path[i], found);
		if (!found)
			found = runs.path[i];
	}
	if (status == LEAT_OK && !found)
		status = leat_fail(err, LEAT_INVALID, "there is no build '%s'; the last one is %s", text,
		                   runs.count > 0 ? runs.path[0] : "not there: run 'leat build'");
	*run = status == LEAT_OK ? leat_strdup(mem, found) : NULL;
	if (status == LEAT_OK && !*run)
		status = leat_fail_mem(err, mem, strlen(found), "the name of a build");
	leat_paths_free(&runs, mem);
	return status;
}
