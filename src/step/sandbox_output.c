/* sandbox_output.c - what a command reported, and why it may have made no $out */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "step/drift.h"
#include "step/sandbox.h"
#include "table/sketch.h"

enum { MAX_METRICS = 1 << 20 };

/* ---- metrics ---- */

/* Only scalars: they are shown in tables. */
static void
keep_scalars(json_t *object)
{
	const char *name;
	json_t *value;
	void *next;

	json_object_foreach_safe(object, next, name, value) if (json_is_object(value) || json_is_array(value))
		json_object_del(object, name);
}

static json_t *
read_metrics(const char *path, char *warning, size_t cap)
{
	json_error_t error;
	struct stat st;
	json_t *json;

	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
		return NULL;
	json = st.st_size > MAX_METRICS ? NULL : json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	if (json_is_object(json)) {
		keep_scalars(json);
		return json;
	}
	if (st.st_size > MAX_METRICS)
		snprintf(warning, cap, "its metrics.json has more than 1 MiB, and was left out");
	else if (json == NULL)
		snprintf(warning, cap, "line %d of its metrics.json is not valid: %.80s", error.line, error.text);
	else
		snprintf(warning, cap, "its metrics.json is not an object, such as {\"accuracy\": 0.9}");
	json_decref(json);
	return NULL;
}

/* Where leat.step writes it, where a simple script does, and among the results. */
static json_t *
find_metrics(const struct leat_sandbox *s, char *warning, size_t cap)
{
	const char *const folders[] = {s->path, s->work, s->out};
	json_t *json = NULL;

	for (size_t i = 0; json == NULL && *warning == '\0' && i < sizeof(folders) / sizeof(*folders); i++) {
		char path[PATH_MAX + 32];

		snprintf(path, sizeof(path), "%s/metrics.json", folders[i]);
		json = read_metrics(path, warning, cap);
	}
	return json;
}

enum leat_status
leat_sandbox_metrics(const struct leat_sandbox *s, const char *profile, char **metrics, char *warning, size_t cap,
                     struct leat_err *err)
{
	char *text, problem[160] = "";
	json_t *json = find_metrics(s, problem, sizeof(problem));

	if (profile != NULL && (json != NULL || (json = json_object()) != NULL))
		leat_drift_add_metrics(profile, json, s->mem);

	if (*problem != '\0' && *warning == '\0')
		snprintf(warning, cap, "%s", problem);
	text = json == NULL ? NULL : json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(15));
	*metrics = leat_strdup(s->mem, text == NULL || strcmp(text, "{}") == 0 ? "" : text);
	free(text);
	json_decref(json);
	return *metrics == NULL ? leat_fail_mem(err, s->mem, MAX_METRICS, "metrics") : LEAT_OK;
}

/* ---- profile ---- */

enum leat_status
leat_sandbox_profile(const struct leat_sandbox *s, char **profile, struct leat_err *err)
{
	char path[PATH_MAX + 32], *text = NULL;
	struct leat_sketch sketch = {0};
	struct stat st;
	json_t *json;

	*profile = NULL;
	snprintf(path, sizeof(path), "%s/profile.json", s->work);
	if (!s->order->makes_table || stat(path, &st) != 0 || !S_ISREG(st.st_mode) ||
	    st.st_size > LEAT_SKETCH_MAX || (json = json_load_file(path, JSON_REJECT_DUPLICATES, NULL)) == NULL)
		return LEAT_OK;
	text = json_dumps(json, JSON_COMPACT);
	json_decref(json);
	if (text != NULL && leat_sketch_read(&sketch, text, strlen(text), s->mem, NULL) == LEAT_OK)
		*profile = leat_strdup(s->mem, text);
	leat_sketch_free(&sketch);
	free(text);
	(void)err;
	return LEAT_OK;
}

/* ---- no output ---- */

/* The first entry of a folder that is not a link: what the command made there. */
static bool
find_made(const char *folder, char *name, size_t cap)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	bool found = false;

	while (dir != NULL && !found && (entry = readdir(dir)) != NULL) {
		if (*entry->d_name == '.' || entry->d_type == DT_LNK || strcmp(entry->d_name, "metrics.json") == 0 ||
		    strcmp(entry->d_name, "__pycache__") == 0)
			continue;
		leat_show(name, cap, entry->d_name, strlen(entry->d_name));
		found = true;
	}
	if (dir != NULL)
		closedir(dir);
	return found;
}

void
leat_sandbox_explain_missing(const struct leat_sandbox *s, char *hint, size_t cap)
{
	const char *expected = strrchr(s->out, '/') + 1;
	char folder[PATH_MAX + 32], made[120];
	size_t len = strlen(s->order->step);

	*hint = '\0';
	snprintf(folder, sizeof(folder), "%s/out", s->path);
	if (find_made(folder, made, sizeof(made))) {
		if (strncmp(made, expected, len) == 0 && made[len] == '.')
			snprintf(hint, cap, "; it made %s: add `suffix: %s` to the step", made, made + len);
		else
			snprintf(hint, cap, "; it made %s beside it", made);
	} else if (find_made(s->work, made, sizeof(made))) {
		snprintf(hint, cap, "; it made %s in its working folder: write to \"$out\" instead", made);
	} else if (strstr(s->order->command, "out") == NULL) {
		snprintf(hint, cap, "; the command does not mention $out, the path of the file or folder to make");
	}
}
