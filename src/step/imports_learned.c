/* imports_learned.c - from records of imports to learned fields
 *
 * A module of the project becomes import.PATH; one of an installed package package.NAME; one that is elsewhere, such as
 * a package that is being developed, import./absolute/PATH. Folders of the project in which Python looked before it
 * found the module become absent./FOLDER, since a new file there would be found first. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "step/imports_inside.h"
#include "step/sources.h"

enum { ROOTS = 5, MAX_RECORDS = 64 * 1024 * 1024 };

struct learning {
	struct leat_code *code;
	struct leat_mem *mem;
	char *root[ROOTS]; /* folders that are the project's: sandbox, snapshot, the folder itself */
	bool *marked;      /* files of the code that were imported */
	struct leat_paths outside, absent, package, program;
	/* of the process whose record is read */
	struct leat_paths path;
	char executable[PATH_MAX], version[64], stdlib[PATH_MAX];
	bool is_learned; /* the process's Python */
	size_t records;
};

/* ---- paths ---- */

/* `path` relative to a folder; NULL: it is not in it. */
static const char *
below(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	if (strncmp(path, folder, len) != 0 || (path[len] != '/' && path[len] != '\0'))
		return NULL;
	return path[len] ? path + len + 1 : path + len;
}

/* Relative to the project, "" being itself; NULL: outside. Of the store only sandbox and snapshot are the project. */
static const char *
in_project(const struct learning *l, const char *path)
{
	const char *rest = NULL;

	for (size_t i = 0; i < ROOTS && !rest; i++) {
		rest = l->root[i] ? below(path, l->root[i]) : NULL;
		if (rest && below(path, leat_cas_folder(l->code->cas)) && i >= 3)
			return NULL;
	}
	return rest;
}

/* ---- one record ---- */

/* "FOLDER\1NAME", so that sorting keeps the names of a folder together; ':' after a name stands for its package only.
 */
static enum leat_status
add_absent(struct learning *l, const char *folder, const char *name, const char *mark, struct leat_err *err)
{
	char *text;
	enum leat_status status;

	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '_' && (unsigned char)*c < 0x80)
			return LEAT_OK;
	text = leat_asprintf(l->mem, "/%s\1%s%s", folder, name, mark);
	if (!text)
		return leat_fail_mem(err, l->mem, strlen(folder), "the list of imports");
	status = leat_paths_add(&l->absent, text, l->mem, err);
	leat_free(l->mem, text);
	return status;
}

/* Folders of the project before the one where the module is; in that one, a package would come before a file. */
static enum leat_status
add_hidden(struct learning *l, const char *name, const char *file, const char *const *folder, size_t folders,
           struct leat_err *err)
{
	size_t len = strlen(name);
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < folders && status == LEAT_OK; i++) {
		const char *mine = in_project(l, folder[i]), *rest = below(file, folder[i]);
		bool is_here = rest && strncmp(rest, name, len) == 0 && (rest[len] == '.' || rest[len] == '/');

		if (mine && (!is_here || rest[len] == '.'))
			status = add_absent(l, mine, name, is_here ? ":" : "", err);
		if (is_here)
			break;
	}
	return status;
}

/* Does the process's Python look there when it begins? */
static bool
is_usual_site(struct learning *l, const char *folder)
{
	char program[PATH_MAX];
	const struct leat_python *python;

	leat_python_program(l->code, l->executable, program);
	python = leat_python_find(l->code, program);
	for (size_t i = 0; python && i < python->site.count; i++)
		if (strcmp(python->site.path[i], folder) == 0)
			return true;
	return false;
}

static enum leat_status
add_package(struct learning *l, const char *file, size_t site, const char *rest, struct leat_err *err)
{
	struct leat_str name;
	char folder[PATH_MAX];
	enum leat_status status;
	const char *mine;

	snprintf(folder, sizeof(folder), "%.*s", (int)site, file);
	mine = in_project(l, folder);
	leat_str_init(&name, l->mem, 2 * PATH_MAX);
	if (!is_usual_site(l, folder))
		leat_str_addf(&name, "%s/", mine ? mine : folder);
	status = leat_package_name(l->code, folder, rest, &name, err);
	if (status == LEAT_OK && name.failed)
		status = leat_fail_mem(err, l->mem, PATH_MAX, "the name of a package");
	if (status == LEAT_OK)
		status = leat_paths_add(&l->package, leat_str_text(&name), l->mem, err);
	leat_str_free(&name);
	return status;
}

static enum leat_status
fail_changed(const char *file, struct leat_err *err)
{
	return leat_fail(err, LEAT_DATA, "the module '%s' changed while it ran", file);
}

/* A file of the code. One that was not read from the snapshot may have been edited since the build began. */
static enum leat_status
mark_code(struct learning *l, const struct leat_code_file *known, const char *file, struct leat_err *err)
{
	struct leat_content now;

	l->marked[known - l->code->file] = true;
	if (below(file, leat_cas_folder(l->code->cas)))
		return LEAT_OK;
	if (leat_cas_hash(l->code->cas, file, &now, NULL, NULL) == LEAT_OK && leat_content_equal(&now, &known->content))
		return LEAT_OK;
	return fail_changed(file, err);
}

static enum leat_status
add_file(struct learning *l, const char *file, struct leat_err *err)
{
	const char *rest;
	size_t site = leat_split_site(file, &rest);
	const struct leat_code_file *known;

	if (site > 0)
		return add_package(l, file, site, rest, err);
	if (*l->stdlib && strncmp(file, l->stdlib, strlen(l->stdlib)) == 0)
		return LEAT_OK;
	rest = in_project(l, file);
	known = rest ? leat_code_find(l->code, rest) : NULL;
	if (known)
		return mark_code(l, known, file, err);
	if (below(file, leat_cas_folder(l->code->cas)))
		return LEAT_OK; /* the command made it */
	return leat_paths_add(&l->outside, rest ? rest : file, l->mem, err);
}

static enum leat_status
add_top(struct learning *l, const char *name, const char *file, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	if (!strchr(name, '.'))
		status = add_hidden(l, name, file, (const char *const *)l->path.path, l->path.count, err);
	if (status == LEAT_OK && *file)
		status = add_file(l, file, err);
	else if (status == LEAT_OK && !strchr(name, '/'))
		status = leat_paths_add(&l->package, name, l->mem, err);
	return status;
}

static enum leat_status
set_path(struct learning *l, const char *const *text, size_t texts, struct leat_err *err)
{
	struct leat_paths site = {0};
	enum leat_status status = LEAT_OK;

	leat_paths_free(&l->path, l->mem);
	l->path = (struct leat_paths){0};
	for (size_t i = 0; i < texts && status == LEAT_OK; i++) {
		status = leat_paths_add(&l->path, text[i], l->mem, err);
		if (status == LEAT_OK && leat_is_site(text[i]))
			status = leat_paths_add(&site, text[i], l->mem, err);
	}
	if (status == LEAT_OK && !l->is_learned) {
		status = leat_python_learn(l->code, l->executable, l->version, &site, err);
		l->is_learned = true;
	}
	leat_paths_free(&site, l->mem);
	return status;
}

static enum leat_status
begin_process(struct learning *l, const char *const *text, struct leat_err *err)
{
	char program[PATH_MAX];

	snprintf(l->executable, sizeof(l->executable), "%s", text[1]);
	snprintf(l->version, sizeof(l->version), "%s", text[2]);
	snprintf(l->stdlib, sizeof(l->stdlib), "%s", text[3]);
	l->is_learned = false;
	leat_python_program(l->code, l->executable, program);
	return leat_paths_add(&l->program, program, l->mem, err);
}

/* Files of the store do not change, and what is made in the sandbox is the command's business. */
static enum leat_status
check_stamp(const struct learning *l, const char *file, const char *was, struct leat_err *err)
{
	char now[3 * 24];
	struct stat st;

	if (below(file, leat_cas_folder(l->code->cas)))
		return LEAT_OK;
	if (stat(file, &st) != 0)
		return fail_changed(file, err);
	snprintf(now, sizeof(now), "%llu %lld %lld", (unsigned long long)st.st_ino, (long long)st.st_size,
	         (long long)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec);
	return strcmp(now, was) == 0 ? LEAT_OK : fail_changed(file, err);
}

static enum leat_status
take_record(void *arg, const char *const *text, size_t texts, struct leat_err *err)
{
	struct learning *l = arg;
	enum leat_status status = LEAT_OK;

	l->records++;
	if (strcmp(text[0], "python") == 0 && texts > 3)
		return begin_process(l, text, err);
	if (strcmp(text[0], "path") == 0)
		return set_path(l, text + 1, texts - 1, err);
	if (strcmp(text[0], "top") == 0 && texts > 1)
		return add_top(l, text[1], texts > 2 ? text[2] : "", err);
	if (strcmp(text[0], "file") == 0 && texts > 1)
		return add_file(l, text[1], err);
	if (strcmp(text[0], "stamp") == 0 && texts > 2)
		return check_stamp(l, text[1], text[2], err);
	if (strcmp(text[0], "sub") == 0 && texts > 3) {
		bool is_found = strcmp(text[2], "-") != 0;

		status = add_hidden(l, text[1], is_found ? text[2] : "", text + 3, texts - 3, err);
		return status == LEAT_OK && is_found ? add_file(l, text[2], err) : status;
	}
	return LEAT_OK;
}

/* ---- all records ---- */

static enum leat_status
read_record(struct learning *l, const char *path, struct leat_err *err)
{
	FILE *file = fopen(path, "re");
	enum leat_status status = LEAT_OK;
	struct leat_str text;
	char part[4096];
	size_t got;

	if (!file)
		return leat_fail_errno(err, errno, "cannot read '%s'", path);
	leat_str_init(&text, l->mem, MAX_RECORDS);
	while ((got = fread(part, 1, sizeof(part), file)) > 0)
		leat_str_addn(&text, part, got);
	if (text.failed)
		status = leat_fail_mem(err, l->mem, text.len, "the list of imports");
	else
		status = leat_records_parse(leat_str_text(&text), text.len,
		                            &(struct leat_record_reader){take_record, l}, err);
	leat_str_free(&text);
	fclose(file);
	return status;
}

static enum leat_status
read_records(struct learning *l, const char *folder, struct leat_err *err)
{
	DIR *dir = opendir(folder);
	enum leat_status status = LEAT_OK;
	const struct dirent *entry;
	char path[PATH_MAX];

	while (dir && status == LEAT_OK && (entry = readdir(dir)) != NULL)
		if (isdigit((unsigned char)entry->d_name[0]) &&
		    snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) < PATH_MAX)
			status = read_record(l, path, err);
	if (dir)
		closedir(dir);
	return status;
}

/* ---- fields ---- */

static bool
has_field(const struct leat_key_fields *fields, const char *prefix, const char *path)
{
	size_t len = strlen(prefix);

	for (size_t i = 0; i < fields->count; i++)
		if (strncmp(fields->field[i].name, prefix, len) == 0 && strcmp(fields->field[i].name + len, path) == 0)
			return true;
	return false;
}

/* Python ran, but did not say so: it was killed, or has been started without site packages. */
static bool
runs_python(const char *command, const struct leat_key_fields *fields)
{
	if (strstr(command, "python") || strstr(command, "pytest") || strstr(command, "torchrun"))
		return true;
	for (size_t i = 0; i < fields->count; i++)
		if (strncmp(fields->field[i].name, "code.", 5) == 0 && leat_code_is_python(fields->field[i].name))
			return true;
	return false;
}

/* One Python may have left a record, and another one not. */
static bool
hides_python(const struct learning *l, const char *command, const struct leat_key_fields *fields)
{
	for (size_t i = 0; i < l->code->files; i++)
		if (l->code->file[i].hides_python &&
		    (l->marked[i] || has_field(fields, "code.", l->code->file[i].path)))
			return true;
	return leat_code_hides_python(command);
}

static void
mark_python(struct learning *l)
{
	for (size_t i = 0; i < l->code->files; i++)
		if (leat_code_is_python(l->code->file[i].path))
			l->marked[i] = true;
}

/* Adds names with empty values; leat_learned_now knows the values. */
static enum leat_status
add_names(const struct leat_paths *texts, const char *prefix, struct leat_key_fields *names, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < texts->count && status == LEAT_OK; i++) {
		char *name = leat_asprintf(names->mem, "%s%s", prefix, texts->path[i]);

		status = name ? leat_key_fields_add(names, name, "", err)
		              : leat_fail_mem(err, names->mem, strlen(texts->path[i]), "the fields of a key");
		leat_free(names->mem, name);
	}
	return status;
}

static enum leat_status
add_absents(const struct leat_paths *absent, struct leat_key_fields *names, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	struct leat_str value;

	leat_str_init(&value, names->mem, SIZE_MAX);
	for (size_t i = 0; i < absent->count && status == LEAT_OK; i++) {
		const char *text = absent->path[i], *next = i + 1 < absent->count ? absent->path[i + 1] : "";
		size_t folder = strcspn(text, "\1"), len = strlen(text + folder + 1);
		bool is_package = text[folder + len] == ':';

		leat_str_addf(&value, "%s%.*s%s", value.len > 0 ? " " : "", (int)(len - is_package), text + folder + 1,
		              is_package ? "/" : "");
		if (strncmp(text, next, folder + 1) != 0) {
			char *name = leat_asprintf(names->mem, "absent.%.*s", (int)folder, text);

			status = name && !value.failed ? leat_key_fields_add(names, name, leat_str_text(&value), err)
			                               : leat_fail_mem(err, names->mem, folder, "the fields of a key");
			leat_free(names->mem, name);
			leat_str_free(&value);
		}
	}
	leat_str_free(&value);
	return status;
}

static int
compare_fields(const void *a, const void *b)
{
	return strcmp(((const struct leat_key_field *)a)->name, ((const struct leat_key_field *)b)->name);
}

static enum leat_status
make_fields(struct learning *l, struct leat_key_fields *fields, struct leat_err *err)
{
	struct leat_key_fields names = {.mem = l->mem};
	enum leat_status status;

	leat_paths_sort(&l->absent, l->mem);
	leat_paths_sort(&l->outside, l->mem);
	leat_paths_sort(&l->package, l->mem);
	leat_paths_sort(&l->program, l->mem);
	status = add_absents(&l->absent, &names, err);
	if (status == LEAT_OK)
		status = add_names(&l->outside, "import.", &names, err);
	if (status == LEAT_OK)
		status = add_names(&l->package, "package.", &names, err);
	if (status == LEAT_OK)
		status = add_names(&l->program, "python.", &names, err);
	for (size_t i = 0; i < l->code->files && status == LEAT_OK; i++)
		if (l->marked[i])
			status = leat_key_fields_add_content(&names, "import.", l->code->file[i].path,
			                                     &l->code->file[i].content, err);
	if (names.count > 1)
		qsort(names.field, names.count, sizeof(*names.field), compare_fields);
	if (status == LEAT_OK)
		status = leat_learned_now(l->code, names.field, names.count, fields, err);
	leat_key_fields_clear(&names);
	return status;
}

/* ---- leat_code_learned ---- */

/* What the command names is in the key, with all that it names. A file that imported ones name, too, stays: so the
 * learned fields alone say whether there is a new one (leat_learned_now). */
static enum leat_status
mark_named(struct learning *l, const struct leat_key_fields *fields, struct leat_err *err)
{
	for (size_t i = 0; i < l->code->files; i++)
		if (l->marked[i] && has_field(fields, "code.", l->code->file[i].path))
			l->marked[i] = false;
	return leat_code_mark_all(l->code, l->marked, err);
}

static enum leat_status
set_roots(struct learning *l, const char *work, struct leat_err *err)
{
	char path[PATH_MAX];

	l->root[0] = leat_strdup(l->mem, work);
	if (l->code->snapshot) {
		l->root[1] = leat_strdup(l->mem, l->code->snapshot);
		l->root[2] = leat_strdup(l->mem, realpath(l->code->snapshot, path) ? path : l->code->snapshot);
	}
	l->root[3] = leat_strdup(l->mem, l->code->project->folder);
	l->root[4] = leat_strdup(l->mem, realpath(l->code->project->folder, path) ? path : l->code->project->folder);
	for (size_t i = 0; i < ROOTS; i++)
		if (!l->root[i] && (l->code->snapshot || i == 0 || i > 2))
			return leat_fail_mem(err, l->mem, sizeof(path), "the list of imports");
	return LEAT_OK;
}

static void
end_learning(struct learning *l)
{
	for (size_t i = 0; i < ROOTS; i++)
		leat_free(l->mem, l->root[i]);
	leat_free(l->mem, l->marked);
	leat_paths_free(&l->outside, l->mem);
	leat_paths_free(&l->absent, l->mem);
	leat_paths_free(&l->package, l->mem);
	leat_paths_free(&l->program, l->mem);
	leat_paths_free(&l->path, l->mem);
}

enum leat_status
leat_code_learned(struct leat_code *code, const char *folder, const char *work, const char *command,
                  struct leat_key_fields *fields, struct leat_err *err)
{
	struct learning l = {.code = code, .mem = code->mem};
	enum leat_status status;

	l.marked = leat_alloc_array(l.mem, code->files + 1, sizeof(*l.marked));
	if (!l.marked)
		return leat_fail_mem(err, l.mem, code->files, "the list of imports");
	pthread_mutex_lock(&code->lock);
	status = set_roots(&l, work, err);
	if (status == LEAT_OK)
		status = read_records(&l, folder, err);
	if (status == LEAT_OK)
		status = mark_named(&l, fields, err);
	if (status == LEAT_OK && (l.records == 0 ? runs_python(command, fields) : hides_python(&l, command, fields))) {
		mark_python(&l);
		status = mark_named(&l, fields, err);
	}
	if (status == LEAT_OK)
		status = make_fields(&l, fields, err);
	pthread_mutex_unlock(&code->lock);
	end_learning(&l);
	return status;
}
