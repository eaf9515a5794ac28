/* project.c - see project.h: open a project, and end it */
#include "step/project.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "step/project_read.h"

void
leat_project_close(struct leat_project *project)
{
	if (!project)
		return;
	leat_staging_close(project->staging);
	if (project->text)
		leat_text_free(project->text);
	leat_free(project->mem, project->text);
	leat_free(project->mem, project->file);
	leat_free(project->mem, project->folder);
	leat_free(project->mem, project);
}

static struct leat_project *
make_project(struct leat_mem *mem, const char *folder, struct leat_err *err)
{
	struct leat_project *project = leat_alloc(mem, sizeof(*project));

	if (!project) {
		leat_fail_mem(err, mem, sizeof(*project), "a project");
		return NULL;
	}
	project->mem = mem;
	project->text = leat_alloc(mem, sizeof(*project->text));
	project->folder = leat_strdup(mem, folder ? folder : "/");
	project->file = leat_asprintf(mem, "%s/leat.yaml", folder ? folder : "");
	if (project->text)
		leat_text_init(project->text, mem, err);
	if (project->text && project->folder && project->file)
		return project;
	leat_fail_mem(err, mem, sizeof(*project->text), "a project");
	leat_project_close(project);
	return NULL;
}

/* `name` is the file's in errors. `text` ends in NUL. */
static enum leat_status
parse(struct leat_project **project, struct leat_mem *mem, const char *folder, const char *name, const char *text,
      size_t len, enum leat_looks looks, struct leat_err *err)
{
	struct leat_project *p = make_project(mem, folder, err);
	struct leat_project_text nodes;
	struct leat_yaml *root;
	enum leat_status status;
	struct leat_reading r;

	*project = NULL;
	if (!p)
		return err->status;
	leat_text_init(&nodes, mem, err);
	r = (struct leat_reading){.file = {name, text, len, p->text, &nodes, err},
	                          .project = p,
	                          .text = p->text,
	                          .mem = mem,
	                          .err = err,
	                          .looks = looks,
	                          .files = folder != NULL};
	status = leat_yaml_parse(&r.file, &root);
	if (status == LEAT_OK)
		status = leat_project_read(&r, root);
	if (status == LEAT_OK)
		status = leat_project_check(&r);
	leat_text_free(&nodes);
	p->text->err = NULL;
	if (status != LEAT_OK) {
		leat_project_close(p);
		return status;
	}
	*project = p;
	return LEAT_OK;
}

enum leat_status
leat_project_parse(struct leat_project **project, struct leat_mem *mem, const char *folder, const char *text,
                   size_t len, struct leat_err *err)
{
	struct leat_err unwanted;
	enum leat_status status;
	char *copy;

	*project = NULL;
	leat_err_clear(&unwanted);
	copy = len < SIZE_MAX ? leat_alloc(mem, len + 1) : NULL;
	if (!copy)
		return leat_fail_mem(err, mem, len, "leat.yaml");
	memcpy(copy, text, len);
	status = parse(project, mem, folder, "leat.yaml", copy, len, LEAT_LOOK_BACK, err ? err : &unwanted);
	leat_free(mem, copy);
	return status;
}

/* ---- files ---- */

/* The path of leat.yaml, as it is shown. */
static enum leat_status
find_file(const char *file, char path[PATH_MAX], struct leat_err *err)
{
	struct stat st;
	bool is_folder;
	int n;

	if (stat(file, &st))
		return leat_fail_errno(err, errno, "cannot open '%s'", file);
	is_folder = S_ISDIR(st.st_mode);
	if (is_folder && !strcmp(file, "."))
		n = snprintf(path, PATH_MAX, "leat.yaml");
	else
		n = snprintf(path, PATH_MAX, is_folder ? "%s/leat.yaml" : "%s", file);
	if (n < 0 || n >= PATH_MAX)
		return leat_fail_errno(err, ENAMETOOLONG, "cannot open '%s'", file);
	if (is_folder && stat(path, &st) && errno == ENOENT)
		return leat_fail(err, LEAT_IO, "there is no leat.yaml in '%s'; 'leat init' writes one", file);
	return LEAT_OK;
}

enum leat_status
leat_project_open(struct leat_project **project, struct leat_mem *mem, const char *file, struct leat_err *err)
{
	return leat_project_open_now(project, mem, file, LEAT_LOOK_BACK, err);
}

enum leat_status
leat_project_open_now(struct leat_project **project, struct leat_mem *mem, const char *file, enum leat_looks looks,
                      struct leat_err *err)
{
	char path[PATH_MAX], folder[PATH_MAX], *text = NULL, *absolute;
	struct leat_err unwanted;
	enum leat_status status;
	size_t len;

	*project = NULL;
	leat_err_clear(&unwanted);
	err = err ? err : &unwanted;
	status = find_file(file, path, err);
	if (status == LEAT_OK && !realpath(path, folder))
		status = leat_fail_errno(err, errno, "cannot open '%s'", path);
	if (status == LEAT_OK)
		status = leat_project_load(mem, path, LEAT_YAML_BYTES, &text, &len, err);
	if (status != LEAT_OK)
		return status;
	absolute = leat_strdup(mem, folder);
	*strrchr(folder, '/') = '\0';
	status = absolute ? parse(project, mem, *folder ? folder : "/.", path, text, len, looks, err)
	                  : leat_fail_mem(err, mem, sizeof(folder), "a path");
	if (status == LEAT_OK) {
		leat_free(mem, (*project)->file);
		(*project)->file = absolute;
		absolute = NULL;
	}
	leat_free(mem, absolute);
	leat_free(mem, text);
	return status;
}
