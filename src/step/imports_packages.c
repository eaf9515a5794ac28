/* imports_packages.c - which package a file belongs to, and which version of it is installed
 *
 * The folder of a package's metadata says name and version: scikit_learn-1.3.0.dist-info. So a look at the names in
 * site-packages is enough to know whether a version is still installed. Files that belong to no package are keyed by
 * content. */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "step/imports_inside.h"
#include "step/sources.h"

enum { MAX_RECORD = 16 * 1024 * 1024, MAX_NAME = 256 };

/* ---- names in site-packages ---- */

static enum leat_status
read_names(const char *path, struct leat_paths *names, struct leat_mem *mem, struct leat_err *err)
{
	DIR *dir = opendir(path);
	enum leat_status status = LEAT_OK;
	const struct dirent *entry;

	while (dir && status == LEAT_OK && (entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.')
			status = leat_paths_add(names, entry->d_name, mem, err);
	if (dir)
		closedir(dir);
	if (status == LEAT_OK)
		leat_paths_sort(names, mem);
	return status;
}

/* A folder that is not there has no names. */
static enum leat_status
site_of(struct leat_code *code, const char *path, struct leat_site **site, struct leat_err *err)
{
	struct leat_pythons *pythons = leat_pythons_of(code);
	struct leat_site new = {0};
	enum leat_status status;

	if (!pythons)
		return leat_fail_mem(err, code->mem, sizeof(*pythons), "the list of Pythons");
	for (size_t i = 0; i < pythons->sites; i++) {
		*site = &pythons->site[i];
		if (strcmp(pythons->site[i].path, path) == 0)
			return LEAT_OK;
	}
	status = LEAT_GROW(code->mem, pythons->site, pythons->cap, pythons->sites + 1, SIZE_MAX, "the list of packages",
	                   err);
	if (status != LEAT_OK)
		return status;
	new.path = leat_strdup(code->mem, path);
	status = new.path ? read_names(path, &new.entry, code->mem, err)
	                  : leat_fail_mem(err, code->mem, strlen(path), "the list of packages");
	if (status == LEAT_OK) {
		*site = &pythons->site[pythons->sites];
		pythons->site[pythons->sites++] = new;
	} else {
		leat_free(code->mem, new.path);
		leat_paths_free(&new.entry, code->mem);
	}
	return status;
}

/* ---- distributions ---- */

/* "Scikit_Learn" and "scikit-learn" are the same package. */
static void
normalize(const char *name, size_t len, char out[MAX_NAME])
{
	size_t n = 0;

	for (size_t i = 0; i < len && n < MAX_NAME - 1; i++) {
		bool is_mark = strchr("-_.", name[i]) != NULL;

		if (!is_mark || (n > 0 && out[n - 1] != '-'))
			out[n++] = is_mark ? '-' : (char)tolower((unsigned char)name[i]);
	}
	out[n] = '\0';
}

/* Splits "scikit_learn-1.3.0.dist-info" or "numpy-1.24.2-py3.11.egg-info". False: it is no metadata. */
static bool
split_metadata(const char *entry, char name[MAX_NAME], char version[MAX_NAME])
{
	size_t len = strlen(entry), end, dash;

	if (len > 10 && strcmp(entry + len - 10, ".dist-info") == 0)
		end = len - 10;
	else if (len > 9 && strcmp(entry + len - 9, ".egg-info") == 0)
		end = len - 9;
	else
		return false;
	dash = strcspn(entry, "-");
	dash = dash < end ? dash : end;
	normalize(entry, dash, name);
	len = dash < end ? end - dash - 1 : 0;
	snprintf(version, MAX_NAME, "%.*s", (int)(len < MAX_NAME ? len : MAX_NAME - 1), len ? entry + dash + 1 : "");
	version[strcspn(version, "-")] = '\0';
	if (!*version)
		snprintf(version, MAX_NAME, "unknown version");
	return true;
}

/* The version of a distribution in a folder. False: it is not there. */
static bool
find_version(const struct leat_site *site, const char *wanted, char version[MAX_NAME])
{
	char name[MAX_NAME];

	for (size_t i = 0; i < site->entry.count; i++)
		if (split_metadata(site->entry.path[i], name, version) && strcmp(name, wanted) == 0)
			return true;
	return false;
}

/* Is there a module of this name? */
static bool
has_module(const struct leat_site *site, const char *module)
{
	size_t len = strlen(module);

	for (size_t i = 0; i < site->entry.count; i++) {
		const char *entry = site->entry.path[i];

		if (strncmp(entry, module, len) == 0 && (entry[len] == '\0' || entry[len] == '.') &&
		    !strstr(entry, "-info"))
			return true;
	}
	return false;
}

/* ---- the value of a field ---- */

/* What a folder says about NAME; "": nothing. */
static void
value_in(struct leat_code *code, const struct leat_site *site, const char *name, char value[MAX_NAME])
{
	struct leat_content content;
	char path[PATH_MAX];

	if (find_version(site, name, value))
		return;
	value[0] = '\0';
	if (strchr(name, '/') || strstr(name, ".py")) {
		if (snprintf(path, sizeof(path), "%s/%s", site->path, name) < PATH_MAX && access(path, R_OK) == 0 &&
		    leat_cas_hash(code->cas, path, &content, NULL, NULL) == LEAT_OK)
			leat_content_text(&content, value);
	} else if (has_module(site, name)) {
		snprintf(value, MAX_NAME, "installed");
	}
}

/* The first of a Python's folders that has it. */
static enum leat_status
value_of(struct leat_code *code, const struct leat_python *python, const char *name, char value[MAX_NAME],
         struct leat_err *err)
{
	struct leat_site *site;
	enum leat_status status = LEAT_OK;

	value[0] = '\0';
	for (size_t i = 0; i < python->site.count && !*value && status == LEAT_OK; i++) {
		status = site_of(code, python->site.path[i], &site, err);
		if (status == LEAT_OK)
			value_in(code, site, name, value);
	}
	return status;
}

/* "FOLDER/site-packages/NAME": of a folder that a program has added to sys.path. */
static enum leat_status
value_elsewhere(struct leat_code *code, const char *name, const char *rest, char value[MAX_NAME], struct leat_err *err)
{
	struct leat_site *site;
	char folder[PATH_MAX];
	enum leat_status status;

	snprintf(folder, sizeof(folder), "%s%s%.*s", *name == '/' ? "" : code->project->folder, *name == '/' ? "" : "/",
	         (int)(rest - name - 1), name);
	status = site_of(code, folder, &site, err);
	if (status == LEAT_OK)
		value_in(code, site, rest, value);
	return status;
}

size_t
leat_split_site(const char *file, const char **rest)
{
	static const char *const names[] = {"/site-packages/", "/dist-packages/"};

	for (size_t i = 0; i < 2; i++) {
		const char *found = strstr(file, names[i]);

		if (found) {
			*rest = found + strlen(names[i]);
			return (size_t)(*rest - file) - 1;
		}
	}
	return 0;
}

enum leat_status
leat_package_value(struct leat_code *code, const struct leat_python_set *set, const char *name, struct leat_str *value,
                   struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	const char *rest = NULL;
	bool is_elsewhere = leat_split_site(name, &rest) > 0;
	char one[MAX_NAME];

	if (is_elsewhere) {
		status = value_elsewhere(code, name, rest, one, err);
		leat_str_add(value, status == LEAT_OK ? one : "");
	}
	for (size_t i = 0; i < set->count && status == LEAT_OK && !is_elsewhere; i++) {
		status = value_of(code, set->python[i], name, one, err);
		if (status == LEAT_OK && *one && !strstr(leat_str_text(value), one))
			leat_str_addf(value, "%s%s", value->len > 0 ? ", " : "", one);
	}
	if (status == LEAT_OK && value->len == 0)
		leat_str_add(value, "none");
	if (status == LEAT_OK && value->failed)
		status = leat_fail_mem(err, code->mem, MAX_NAME, "the version of a package");
	return status;
}

/* ---- the package of a file ---- */

static char *
read_text(const char *path, struct leat_mem *mem, size_t *len)
{
	FILE *file = fopen(path, "re");
	struct leat_str text;
	char part[4096];

	leat_str_init(&text, mem, MAX_RECORD);
	while (file && (*len = fread(part, 1, sizeof(part), file)) > 0)
		leat_str_addn(&text, part, *len);
	if (file)
		fclose(file);
	*len = text.len;
	if (file && !text.failed)
		return leat_str_take(&text);
	leat_str_free(&text);
	return NULL;
}

/* Has the text a line that begins with `word` and then one of `ends`? */
static bool
has_line(const char *text, const char *word, const char *ends)
{
	size_t len = strlen(word);

	for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
		if ((at == text || at[-1] == '\n') && strchr(ends, at[len]))
			return true;
	return false;
}

/* RECORD lists the files of a distribution; top_level.txt, which older ones have, its modules. */
static bool
lists_file(struct leat_code *code, const char *site, const char *entry, const char *file)
{
	static const struct {
		const char *name, *ends;
	} lists[] = {{"RECORD", ","}, {"top_level.txt", "\n\r"}};
	char path[PATH_MAX], module[MAX_NAME];
	bool found = false;

	snprintf(module, sizeof(module), "%.*s", (int)strcspn(file, "/."), file);
	for (size_t i = 0; i < 2 && !found; i++) {
		size_t len = 0;
		char *text = NULL;

		if (snprintf(path, sizeof(path), "%s/%s/%s", site, entry, lists[i].name) < PATH_MAX)
			text = read_text(path, code->mem, &len);
		found = text && has_line(text, i == 0 ? file : module, lists[i].ends);
		leat_free(code->mem, text);
	}
	return found;
}

/* The distribution whose metadata lists the file, or the file. */
static void
find_owner(struct leat_code *code, const struct leat_site *site, const char *file, char owner[PATH_MAX])
{
	char version[MAX_NAME], name[MAX_NAME];

	snprintf(owner, PATH_MAX, "%s", file);
	for (size_t i = 0; i < site->entry.count; i++) {
		if (split_metadata(site->entry.path[i], name, version) &&
		    lists_file(code, site->path, site->entry.path[i], file)) {
			snprintf(owner, PATH_MAX, "%s", name);
			return;
		}
	}
}

/* Finding an owner reads the metadata of all distributions, and every action imports the same packages. */
static enum leat_status
owner_of(struct leat_code *code, struct leat_site *site, const char *file, const char **owner, struct leat_err *err)
{
	char found[PATH_MAX];
	enum leat_status status;
	size_t i = 0;

	while (i < site->owned.count && strcmp(site->owned.path[i], file) != 0)
		i += 2;
	if (i >= site->owned.count) {
		find_owner(code, site, file, found);
		status = leat_paths_add(&site->owned, file, code->mem, err);
		if (status == LEAT_OK)
			status = leat_paths_add(&site->owned, found, code->mem, err);
		if (status != LEAT_OK) {
			if (site->owned.count % 2 == 1)
				leat_free(code->mem, site->owned.path[--site->owned.count]);
			return status;
		}
	}
	*owner = site->owned.path[i + 1];
	return LEAT_OK;
}

enum leat_status
leat_package_name(struct leat_code *code, const char *site, const char *file, struct leat_str *name,
                  struct leat_err *err)
{
	struct leat_site *names;
	char module[MAX_NAME], version[MAX_NAME];
	enum leat_status status = site_of(code, site, &names, err);
	const char *owner = module;

	if (status != LEAT_OK)
		return status;
	normalize(file, strcspn(file, "/."), module);
	if (!find_version(names, module, version))
		status = owner_of(code, names, file, &owner, err);
	if (status == LEAT_OK)
		leat_str_add(name, owner);
	return status;
}
