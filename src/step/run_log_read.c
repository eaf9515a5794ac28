/* run_log_read.c - read logs of runs, which are hostile: the store may be shared, or damaged */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/array.h"
#include "step/run_log.h"

/* ---- lines ---- */

static const char *
text_of(const json_t *json, const char *name)
{
	const char *text = json_string_value(json_object_get(json, name));

	return text ? text : "";
}

static double
number_of(const json_t *json, const char *name)
{
	return json_number_value(json_object_get(json, name));
}

static uint64_t
count_of(const json_t *json, const char *name)
{
	json_int_t value = json_integer_value(json_object_get(json, name));

	return value > 0 ? (uint64_t)value : 0;
}

static void
fill(struct leat_run_line *line, json_t *json)
{
	*line = (struct leat_run_line){.event = text_of(json, "event"),
	                               .run = text_of(json, "run"),
	                               .step = text_of(json, "step"),
	                               .slice = text_of(json, "slice"),
	                               .id = text_of(json, "id"),
	                               .key = text_of(json, "key"),
	                               .output = text_of(json, "output"),
	                               .why = text_of(json, "why"),
	                               .at_s = number_of(json, "at"),
	                               .seconds = number_of(json, "seconds"),
	                               .cpu_s = number_of(json, "cpu_s"),
	                               .expected_s = number_of(json, "expected_s"),
	                               .saved_s = number_of(json, "saved_s"),
	                               .actions = count_of(json, "actions"),
	                               .count = count_of(json, "count"),
	                               .cached = count_of(json, "cached"),
	                               .ran = count_of(json, "ran"),
	                               .same = count_of(json, "same"),
	                               .failed = count_of(json, "failed"),
	                               .skipped = count_of(json, "skipped"),
	                               .json = json};
}

enum leat_status
leat_run_line_parse(const char *text, size_t len, struct leat_run_line *line, struct leat_err *err)
{
	json_error_t why;
	json_t *json = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);

	*line = (struct leat_run_line){0};
	if (!json)
		return leat_fail(err, LEAT_DATA, "a line of a run's log is not JSON: %s", why.text);
	if (!json_is_object(json) || !*text_of(json, "event")) {
		json_decref(json);
		return leat_fail(err, LEAT_DATA, "a line of a run's log is not an event");
	}
	fill(line, json);
	return LEAT_OK;
}

void
leat_run_line_free(struct leat_run_line *line)
{
	json_decref(line->json);
	*line = (struct leat_run_line){0};
}

/* ---- runs ---- */

static int
newest_first(const void *a, const void *b)
{
	return strcmp(*(char *const *)b, *(char *const *)a);
}

static enum leat_status
add_run(struct leat_paths *runs, const char *file, struct leat_mem *mem, struct leat_err *err)
{
	size_t len = strlen(file), suffix = strlen(".jsonl");

	if (*file == '.' || len <= suffix || strcmp(file + len - suffix, ".jsonl") != 0)
		return LEAT_OK;
	if (LEAT_GROW(mem, runs->path, runs->cap, runs->count + 1, SIZE_MAX, "the list of runs", err) != LEAT_OK)
		return LEAT_NOMEM;
	runs->path[runs->count] = leat_strndup(mem, file, len - suffix);
	if (!runs->path[runs->count])
		return leat_fail_mem(err, mem, len, "the list of runs");
	runs->count++;
	return LEAT_OK;
}

enum leat_status
leat_runs_list(struct leat_cas *cas, struct leat_mem *mem, struct leat_paths *runs, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	struct dirent *entry;
	char path[PATH_MAX];
	DIR *dir;

	*runs = (struct leat_paths){0};
	snprintf(path, sizeof(path), "%s/runs", leat_cas_folder(cas));
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? LEAT_OK : leat_fail_errno(err, errno, "cannot read the folder '%s'", path);
	while (status == LEAT_OK && (entry = readdir(dir)) != NULL)
		status = add_run(runs, entry->d_name, mem, err);
	closedir(dir);
	if (status != LEAT_OK)
		leat_paths_free(runs, mem);
	else if (runs->count)
		qsort(runs->path, runs->count, sizeof(*runs->path), newest_first);
	return status;
}

bool
leat_run_is_alive(struct leat_cas *cas, const char *run)
{
	return leat_run_is_open(leat_cas_folder(cas), run);
}

bool
leat_run_is_open(const char *folder, const char *run)
{
	char path[PATH_MAX];
	bool locked;
	int fd;

	if (strchr(run, '/') || snprintf(path, sizeof(path), "%s/runs/%s.open", folder, run) >= (int)sizeof(path))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	locked = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
	close(fd);
	return locked;
}
