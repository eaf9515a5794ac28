/* build_links.c - out/STEP: what each step made, where people look for it
 *
 * A link to the blob, or to a view of the folder; of a sliced step, to a folder with an entry for each slice. It shows
 * the last complete result: a step of which some slices are missing keeps its old link. Links are relative, so a moved
 * project works, and are written only if they differ. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "step/build_core.h"

static bool
is_complete(const struct leat_plan_step *s)
{
	for (size_t i = 0; i < s->step->slices.count; i++)
		if (s->action[i].state != LEAT_ACTION_MADE)
			return false;
	return true;
}

/* What out/STEP shows. */
static enum leat_status
result(struct leat_builder *b, const struct leat_plan_step *s, struct leat_content *content, struct leat_err *err)
{
	enum leat_status status;
	bool *all;

	if (s->step->slices.variables == 0) {
		*content = s->action[0].output;
		return LEAT_OK;
	}
	all = leat_alloc_array(b->mem, s->step->slices.variables, sizeof(*all));
	if (!all)
		return leat_fail_mem(err, b->mem, s->step->slices.variables, "the names of slices");
	memset(all, 1, s->step->slices.variables);
	status = leat_plan_folder(b->plan, s, all, NULL, s->step->slices.count, b->plan->writes, content, err);
	leat_free(b->mem, all);
	return status;
}

/* The way from out/ to `path`: relative if both are in the project's folder. */
static enum leat_status
link_target(const struct leat_project *project, const char *path, char target[PATH_MAX], struct leat_err *err)
{
	size_t len = strlen(project->folder);
	bool inside = strncmp(path, project->folder, len) == 0 && path[len] == '/';
	int n = snprintf(target, PATH_MAX, "%s%s", inside ? "../" : "", inside ? path + len + 1 : path);

	return n < PATH_MAX ? LEAT_OK : leat_fail(err, LEAT_IO, "the path '%s' is too long", path);
}

static bool
is_link_to(const char *link, const char *target)
{
	char now[PATH_MAX];
	ssize_t len = readlink(link, now, sizeof(now));

	return len == (ssize_t)strlen(target) && memcmp(now, target, (size_t)len) == 0;
}

/* A new link takes the place of the old one at once. What is not a link is the user's. */
static enum leat_status
put_link(const char *link, const char *target, struct leat_err *err)
{
	char temp[PATH_MAX];
	struct stat st;

	if (is_link_to(link, target))
		return LEAT_OK;
	if (lstat(link, &st) == 0 && !S_ISLNK(st.st_mode))
		return leat_fail(err, LEAT_IO, "'%s' is not a link that Leat made; move it away and build again", link);
	if (snprintf(temp, sizeof(temp), "%s.%ld.new", link, (long)getpid()) >= PATH_MAX)
		return leat_fail(err, LEAT_IO, "the path '%s' is too long", link);
	unlink(temp);
	if (symlink(target, temp) != 0)
		return leat_fail_errno(err, errno, "cannot create the link '%s'", temp);
	if (rename(temp, link) != 0) {
		leat_fail_errno(err, errno, "cannot replace the link '%s'", link);
		unlink(temp);
		return LEAT_IO;
	}
	return LEAT_OK;
}

static enum leat_status
show(struct leat_builder *b, const struct leat_plan_step *s, const struct leat_content *content, struct leat_err *err)
{
	const struct leat_project *project = b->plan->project;
	char path[PATH_MAX], target[PATH_MAX], link[PATH_MAX];
	enum leat_status status = leat_cas_view(b->cas, content, path, err);

	if (status == LEAT_OK)
		status = link_target(project, path, target, err);
	if (status != LEAT_OK)
		return status;
	if (snprintf(link, sizeof(link), "%s/out", project->folder) >= PATH_MAX - NAME_MAX)
		return leat_fail(err, LEAT_IO, "the path '%s' is too long", project->folder);
	if (mkdir(link, 0777) != 0 && errno != EEXIST)
		return leat_fail_errno(err, errno, "cannot create the folder '%s'", link);
	/* The entries of a sliced step have the suffix, the folder has not. */
	if (snprintf(link, sizeof(link), "%s/out/%s%s", project->folder, s->step->name,
	             s->step->slices.variables ? "" : s->step->suffix) >= PATH_MAX)
		return leat_fail(err, LEAT_IO, "the path '%s' is too long", project->folder);
	return put_link(link, target, err);
}

enum leat_status
leat_links_update(struct leat_builder *b, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; status == LEAT_OK && i < b->plan->project->steps; i++) {
		const struct leat_plan_step *s = &b->plan->step[b->plan->project->order[i]];
		struct leat_content content;

		if (s->wanted != s->step->slices.count || !is_complete(s))
			continue;
		status = result(b, s, &content, err);
		if (status != LEAT_OK)
			break;
		leat_builder_tell(
			b, &(struct leat_event){
				   .kind = LEAT_EVENT_RESULT, .step = s->step, .slice = SIZE_MAX, .output = content});
		if (!b->options->dry)
			status = show(b, s, &content, err);
	}
	return status;
}
