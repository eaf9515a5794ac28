/* parquet_step.c - the Parquet files of a step's last result
 *
 * A build leaves a link out/STEP, or out/STEP.parquet, beside leat.yaml, to a file or a folder (step/build_links.c).
 * The table of a result is the file; or in a folder, the one file that holds its rows (features.parquet of a features
 * step, kept.parquet of a step with checks, rows.parquet of loaded files); or else all *.parquet in it; or else the
 * tables of its entries, which are slices. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "format/parquet.h"

enum { MOST_DEPTH = 8 };

struct finding {
	struct leat_strings *files;
	size_t cap;
	struct leat_mem *mem;
	struct leat_err *err;
};

/* A path as a pattern: [ * and ? stand for themselves in brackets. */
static enum leat_status
add_file(struct finding *f, const char *path)
{
	enum leat_status status =
		LEAT_GROW(f->mem, f->files->value, f->cap, f->files->count + 1, SIZE_MAX, "the list of files", f->err);
	struct leat_str pattern;
	char *taken;

	if (status != LEAT_OK)
		return status;
	leat_str_init(&pattern, f->mem, 4 * PATH_MAX);
	for (; *path; path++)
		leat_str_addf(&pattern, strchr("[*?", *path) ? "[%c]" : "%c", *path);
	taken = leat_str_take(&pattern);
	if (!taken)
		return leat_fail_mem(f->err, f->mem, PATH_MAX, "the list of files");
	f->files->value[f->files->count++] = taken;
	return LEAT_OK;
}

static bool
is_file(const char *folder, const char *name, char path[PATH_MAX])
{
	struct stat st;

	return snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX && stat(path, &st) == 0 &&
	       S_ISREG(st.st_mode);
}

static int
is_wanted(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && entry->d_name[0] != '_';
}

static int
is_table(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return is_wanted(entry) && len > 8 && strcmp(entry->d_name + len - 8, ".parquet") == 0;
}

static enum leat_status add_tables(struct finding *f, const char *path, int depth);

/* The entries of a folder that `wanted` accepts, by name. */
static enum leat_status
add_entries(struct finding *f, const char *folder, int (*wanted)(const struct dirent *), int depth, int *found)
{
	enum leat_status status = LEAT_OK;
	struct dirent **entry = NULL;
	char path[PATH_MAX];

	*found = scandir(folder, &entry, wanted, alphasort);
	if (*found < 0)
		return leat_fail_errno(f->err, errno, "cannot read the folder '%s'", folder);
	for (int i = 0; i < *found; i++) {
		if (status == LEAT_OK && snprintf(path, PATH_MAX, "%s/%s", folder, entry[i]->d_name) < PATH_MAX)
			status = add_tables(f, path, depth + 1);
		free(entry[i]);
	}
	free(entry);
	return status;
}

static enum leat_status
add_tables(struct finding *f, const char *path, int depth)
{
	static const char *const known[] = {"features.parquet", "kept.parquet", "rows.parquet"};
	char inside[PATH_MAX];
	struct stat st;
	enum leat_status status;
	int found;

	if (stat(path, &st) != 0)
		return leat_fail_errno(f->err, errno, "cannot read '%s'", path);
	if (!S_ISDIR(st.st_mode))
		return add_file(f, path);
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (is_file(path, known[i], inside))
			return add_file(f, inside);
	status = add_entries(f, path, is_table, depth, &found);
	if (status == LEAT_OK && found == 0 && depth < MOST_DEPTH)
		status = add_entries(f, path, is_wanted, depth, &found);
	return status;
}

/* The folder of the nearest leat.yaml, or the one that is given. */
static enum leat_status
find_project(const char *given, char folder[PATH_MAX], struct leat_err *err)
{
	char path[PATH_MAX], *slash;

	if (!realpath(*given ? given : ".", folder))
		return leat_fail_errno(err, errno, "cannot find the folder '%s'", *given ? given : ".");
	while (!is_file(folder, "leat.yaml", path)) {
		slash = strrchr(folder, '/');
		if (*given || !slash || slash == folder)
			return leat_fail(err, LEAT_INVALID,
			                 *given ? "there is no leat.yaml in '%s'"
			                        : "table: there is no leat.yaml here ('%s') or above; name its folder "
			                          "with project=",
			                 *given ? given : ".");
		*slash = '\0';
	}
	return LEAT_OK;
}

/* What the last build left of a step. */
static enum leat_status
find_result(const char *folder, const char *step, char path[PATH_MAX], struct leat_err *err)
{
	static const char *const ending[] = {"", ".parquet"}; /* a single file keeps its ending */

	for (size_t i = 0; i < sizeof(ending) / sizeof(*ending); i++) {
		int len = snprintf(path, PATH_MAX, "%s/out/%s%s", folder, step, ending[i]);

		if (len < PATH_MAX && access(path, F_OK) == 0)
			return LEAT_OK;
	}
	return leat_fail(err, LEAT_IO, "table: '%s' has no result in '%s/out'; run 'leat build %s' (or check its name)",
	                 step, folder, step);
}

enum leat_status
leat_parquet_step_files(const struct leat_parquet_params *params, struct leat_strings *files, struct leat_mem *mem,
                        struct leat_err *err)
{
	struct finding f = {.files = files, .mem = mem, .err = err};
	char folder[PATH_MAX], path[PATH_MAX];
	enum leat_status status;

	if (!*params->step || strchr(params->step, '/') || params->step[0] == '.')
		return leat_fail(err, LEAT_SPEC, "table: '%s' is no name of a step", params->step);
	status = find_project(params->project, folder, err);
	if (status != LEAT_OK)
		return status;
	status = find_result(folder, params->step, path, err);
	if (status != LEAT_OK)
		return status;
	status = add_tables(&f, path, 0);
	if (status == LEAT_OK && !files->count)
		status = leat_fail(err, LEAT_DATA, "table: the result of '%s' has no Parquet files", params->step);
	return status;
}
