/* run_log_lines.c - walk over the lines of a run's log */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "step/run_log.h"

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
