/* build_files.c - files of the user that actions read: sources, and slice variables that name files
 *
 * They stay where they are. A source without pattern characters is one file or folder. A pattern stands for a folder
 * with its files, named by their paths after the fixed part of the pattern: raw/s-1/a.csv of raw/s-{subject}/x*.csv is
 * a.csv.
 *
 * Files on servers are fetched into the store (step/staging.h), and actions read them there, as they read results. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/threads.h"
#include "step/build_plan.h"

enum { MAX_TREE = 1 << 30, REMOTE_THREADS = 16 };

/* ---- which files ---- */

static enum leat_status
absolute(const struct leat_project *project, const char *path, char out[PATH_MAX], struct leat_err *err)
{
	int len = *path == '/' ? snprintf(out, PATH_MAX, "%s", path)
	                       : snprintf(out, PATH_MAX, "%s/%s", project->folder, path);

	if (len < 0 || len >= PATH_MAX)
		return leat_fail(err, LEAT_DATA, "the path '%s' is too long", path);
	return LEAT_OK;
}

static enum leat_status
list_files(const struct leat_plan *plan, const struct leat_plan_step *step, const struct leat_plan_edge *edge,
           size_t slice, struct leat_paths *paths, struct leat_err *err)
{
	const struct leat_slices *slices = &step->step->slices;

	if (edge->source)
		return leat_source_paths(plan->project, edge->source, slices, slice, plan->listings, paths, err);
	if (LEAT_GROW(plan->mem, paths->path, paths->cap, 1, SIZE_MAX, "the files of a slice", err) != LEAT_OK)
		return LEAT_NOMEM;
	paths->path[0] = leat_strdup(plan->mem, leat_slice_value(slices, slice, edge->variable));
	paths->count = paths->path[0] != NULL;
	paths->is_remote = paths->count && leat_is_remote(paths->path[0]);
	return paths->count ? LEAT_OK : leat_fail_mem(err, plan->mem, 1, "the files of a slice");
}

bool
leat_files_are_remote(const struct leat_plan *plan, const struct leat_plan_step *step,
                      const struct leat_plan_edge *edge)
{
	const struct leat_slices *slices = &step->step->slices;

	if (!plan->project->staging || edge->up != SIZE_MAX)
		return false;
	return leat_is_remote(edge->source ? edge->source->pattern : leat_slice_value(slices, 0, edge->variable));
}

enum leat_status
leat_files_look(struct leat_plan *plan, const struct leat_plan_step *step, const struct leat_plan_edge *edge,
                size_t slice, struct leat_err *err)
{
	struct leat_paths paths = {0};
	enum leat_status status = list_files(plan, step, edge, slice, &paths, err);

	for (size_t i = 0; status == LEAT_OK && i < paths.count; i++) {
		struct leat_remote_file *file;

		status = leat_staging_find(plan->project->staging, paths.path[i], &file, err);
		if (status == LEAT_OK && plan->cas)
			leat_staging_count(plan->project->staging, plan->cas, file);
	}
	leat_paths_free(&paths, plan->mem);
	return status == LEAT_CANCELLED ? LEAT_END : status;
}

/* ---- content ---- */

/* Combines the stamps of files and their names, so that a new, lost or renamed file counts. */
static void
mix_stamp(struct leat_stamp *all, const char *path, const struct leat_stamp *one)
{
	all->value[0] = leat_mix64(all->value[0] ^ one->value[0]) + leat_hash64(path);
	all->value[1] = leat_mix64(all->value[1] + one->value[1]) ^ leat_hash64(path);
}

struct file { /* of a pattern: its name in the folder of links */
	const char *name;
	struct leat_content content;
};

/* In a tree, names are in the order of strcmp at each level: the end of a folder's name counts as the end of a text. */
static int
by_name(const void *a, const void *b)
{
	const unsigned char *x = (const unsigned char *)((const struct file *)a)->name;
	const unsigned char *y = (const unsigned char *)((const struct file *)b)->name;

	while (*x && *x == *y)
		x++, y++;
	return (*x == '/' ? 0 : *x) - (*y == '/' ? 0 : *y);
}

static enum leat_status
digest_tree(const struct leat_plan *plan, const struct leat_str *tree, uint64_t bytes, bool put,
            struct leat_content *content, struct leat_err *err)
{
	if (tree->failed)
		return leat_fail_mem(err, plan->mem, tree->len, "the list of a folder's files");
	if (put)
		return leat_cas_put_tree(plan->cas, tree, content, err);
	content->kind = LEAT_CONTENT_FOLDER;
	content->bytes = bytes;
	leat_sha256(leat_str_text(tree), tree->len, content->digest.byte);
	return LEAT_OK;
}

/* The tree of `count` files whose names, after `skip` bytes, are in one folder. With `put`, it goes into the store. */
static enum leat_status
tree_of(const struct leat_plan *plan, const struct file *file, size_t count, size_t skip, bool put,
        struct leat_content *content, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	struct leat_str tree;
	uint64_t bytes = 0;

	leat_str_init(&tree, plan->mem, MAX_TREE);
	for (size_t i = 0, n; status == LEAT_OK && i < count; i += n) {
		const char *name = file[i].name + skip, *slash = strchr(name, '/');
		struct leat_content entry = file[i].content;
		char part[NAME_MAX + 1];
		size_t len = slash ? (size_t)(slash - name) : strlen(name);

		n = 1;
		if (len > NAME_MAX) {
			status = leat_fail(err, LEAT_DATA, "the file name '%s' is too long", name);
			break;
		}
		snprintf(part, sizeof(part), "%.*s", (int)len, name);
		while (slash && i + n < count && strncmp(file[i + n].name + skip, name, len + 1) == 0)
			n++;
		if (slash)
			status = tree_of(plan, file + i, n, skip + len + 1, put, &entry, err);
		if (status == LEAT_OK)
			status = leat_tree_add(&tree, part, &entry, err);
		bytes += entry.bytes;
	}
	if (status == LEAT_OK)
		status = digest_tree(plan, &tree, bytes, put, content, err);
	leat_str_free(&tree);
	return status;
}

/* Contents of files on servers. */
struct remote {
	const struct leat_plan *plan;
	const struct leat_paths *paths;
	struct file *file;
	bool bring; /* make sure that the store has them, too */
};

static enum leat_status
hash_remote(void *arg, size_t i, struct leat_err *err)
{
	const struct remote *remote = arg;
	const struct leat_plan *plan = remote->plan;
	struct leat_staging *staging = plan->project->staging;
	struct leat_content *content = &remote->file[i].content;
	struct leat_remote_file *file;
	enum leat_status status = leat_staging_find(staging, remote->paths->path[i], &file, err);

	remote->file[i].name = remote->paths->path[i] + remote->paths->fixed;
	if (status == LEAT_OK)
		status = leat_staging_hash(staging, plan->cas, file, plan->fetches, content, err);
	if (status == LEAT_OK && remote->bring)
		status = leat_staging_bring(staging, plan->cas, file, content, err);
	return status == LEAT_CANCELLED ? LEAT_END : status;
}

static enum leat_status
hash_remotes(const struct leat_plan *plan, const struct leat_paths *paths, bool bring, struct leat_content *content,
             struct leat_err *err)
{
	struct file *file = leat_alloc_array(plan->mem, paths->count, sizeof(*file));
	struct remote remote = {plan, paths, file, bring};
	enum leat_status status;
	bool is_stand_in = false;

	if (!file)
		return leat_fail_mem(err, plan->mem, paths->count * sizeof(*file), "the files of a source");
	status = leat_parallel(plan->mem, REMOTE_THREADS, paths->count, hash_remote, &remote, err);
	for (size_t i = 0; status == LEAT_OK && i < paths->count; i++)
		is_stand_in |= leat_digest_is_stand_in(&file[i].content.digest);
	if (status == LEAT_OK && !paths->is_pattern) {
		*content = file[0].content;
	} else if (status == LEAT_OK) {
		qsort(file, paths->count, sizeof(*file), by_name);
		status = tree_of(plan, file, paths->count, 0, bring, content, err);
		if (is_stand_in)
			leat_digest_make_stand_in(&content->digest);
	}
	leat_free(plan->mem, file);
	return status;
}

static enum leat_status
hash_all(struct leat_plan *plan, const struct leat_paths *paths, struct file *file, struct leat_stamp *stamp,
         struct leat_err *err)
{
	for (size_t i = 0; i < paths->count; i++) {
		struct leat_stamp one;
		char path[PATH_MAX];
		enum leat_status status = absolute(plan->project, paths->path[i], path, err);

		if (status == LEAT_OK)
			status = leat_cas_hash(plan->cas, path, &file[i].content, &one, err);
		if (status != LEAT_OK)
			return status;
		file[i].name = paths->path[i] + paths->fixed;
		mix_stamp(stamp, paths->path[i], &one);
	}
	return LEAT_OK;
}

static enum leat_status
hash_pattern(struct leat_plan *plan, const struct leat_paths *paths, struct leat_content *content,
             struct leat_stamp *stamp, struct leat_err *err)
{
	struct file *file = leat_alloc_array(plan->mem, paths->count, sizeof(*file));
	enum leat_status status;

	if (!file)
		return leat_fail_mem(err, plan->mem, paths->count * sizeof(*file), "the files of a source");
	*stamp = (struct leat_stamp){{0}};
	status = hash_all(plan, paths, file, stamp, err);
	if (status == LEAT_OK) {
		qsort(file, paths->count, sizeof(*file), by_name);
		status = tree_of(plan, file, paths->count, 0, false, content, err);
	}
	leat_free(plan->mem, file);
	return status;
}

enum leat_status
leat_files_hash(struct leat_plan *plan, const struct leat_plan_step *step, const struct leat_plan_edge *edge,
                size_t slice, struct leat_content *content, struct leat_stamp *stamp, struct leat_err *err)
{
	struct leat_paths paths = {0};
	char path[PATH_MAX];
	enum leat_status status = list_files(plan, step, edge, slice, &paths, err);

	if (status == LEAT_OK && !plan->cas) {
		*content = (struct leat_content){0}; /* without a store nothing is made, so nothing is compared */
	} else if (status == LEAT_OK && paths.is_remote) {
		*stamp = (struct leat_stamp){{0}};
		status = hash_remotes(plan, &paths, false, content, err);
	} else if (status == LEAT_OK && paths.is_pattern) {
		status = hash_pattern(plan, &paths, content, stamp, err);
	} else if (status == LEAT_OK) {
		status = absolute(plan->project, paths.path[0], path, err);
		if (status == LEAT_OK)
			status = leat_cas_hash(plan->cas, path, content, stamp, err);
	}
	leat_paths_free(&paths, plan->mem);
	return status == LEAT_CANCELLED ? LEAT_END : status;
}

void
leat_files_measure(const struct leat_plan *plan, const struct leat_plan_step *step, const struct leat_plan_edge *edge,
                   size_t slice, struct leat_hashing *hashing, const atomic_bool *stop)
{
	struct leat_paths paths = {0};
	char path[PATH_MAX];

	if (leat_files_are_remote(plan, step, edge) || list_files(plan, step, edge, slice, &paths, NULL) != LEAT_OK)
		return;
	for (size_t i = 0; i < paths.count; i++)
		if (absolute(plan->project, paths.path[i], path, NULL) == LEAT_OK)
			leat_cas_count(path, hashing, stop);
	leat_paths_free(&paths, plan->mem);
}

/* ---- changes ---- */

static enum leat_status
stamp_all(const struct leat_plan *plan, const struct leat_paths *paths, struct leat_stamp *stamp, struct leat_err *err)
{
	*stamp = (struct leat_stamp){{0}};
	for (size_t i = 0; i < paths->count; i++) {
		struct leat_stamp one;
		char path[PATH_MAX];
		enum leat_status status = absolute(plan->project, paths->path[i], path, err);

		if (status == LEAT_OK)
			status = leat_cas_stamp(path, &one, err);
		if (status != LEAT_OK)
			return status;
		if (paths->is_pattern)
			mix_stamp(stamp, paths->path[i], &one);
		else
			*stamp = one;
	}
	return LEAT_OK;
}

enum leat_status
leat_files_check(const struct leat_plan *plan, const struct leat_plan_step *step, const struct leat_plan_edge *edge,
                 size_t slice, const struct leat_stamp *stamp, struct leat_err *err)
{
	struct leat_paths paths = {0};
	struct leat_stamp now;
	enum leat_status status;

	if (leat_files_are_remote(plan, step, edge)) /* the action read a copy */
		return LEAT_OK;
	status = list_files(plan, step, edge, slice, &paths, err);

	if (status == LEAT_OK)
		status = stamp_all(plan, &paths, &now, err);
	if (status == LEAT_OK && (now.value[0] != stamp->value[0] || now.value[1] != stamp->value[1]))
		status = leat_fail(err, LEAT_DATA, "its input '%s' (%s) changed while it ran", edge->name,
		                   edge->source ? edge->source->pattern : paths.path[0]);
	leat_paths_free(&paths, plan->mem);
	return status;
}

/* ---- for commands ---- */

static enum leat_status
make_folders(char *path, size_t from, struct leat_err *err)
{
	for (char *p = path + from; (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		if (mkdir(path, 0777) != 0 && errno != EEXIST)
			return leat_fail_errno(err, errno, "cannot create the folder '%s'", path);
		*p = '/';
	}
	return LEAT_OK;
}

static enum leat_status
link_file(const char *folder, const char *name, const char *target, struct leat_err *err)
{
	char path[PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s/%s", folder, name);
	enum leat_status status;

	if (len < 0 || len >= PATH_MAX)
		return leat_fail(err, LEAT_DATA, "the path '%s/%s' is too long", folder, name);
	status = make_folders(path, strlen(folder) + 1, err);
	if (status == LEAT_OK && symlink(target, path) != 0)
		status = leat_fail_errno(err, errno, "cannot create the link '%s'", path);
	return status;
}

static enum leat_status
link_all(const struct leat_plan *plan, const struct leat_paths *paths, const char *folder, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	if (mkdir(folder, 0777) != 0)
		return leat_fail_errno(err, errno, "cannot create the folder '%s'", folder);
	for (size_t i = 0; status == LEAT_OK && i < paths->count; i++) {
		char target[PATH_MAX];

		status = absolute(plan->project, paths->path[i], target, err);
		if (status == LEAT_OK)
			status = link_file(folder, paths->path[i] + paths->fixed, target, err);
	}
	return status;
}

/* Puts what is on servers into the store. `suffix` is the end of a file's name. */
static enum leat_status
bring_all(const struct leat_plan *plan, const struct leat_paths *paths, const struct leat_content *wanted,
          char suffix[PATH_MAX], struct leat_err *err)
{
	struct leat_content content;
	enum leat_status status = hash_remotes(plan, paths, true, &content, err);

	snprintf(suffix, PATH_MAX, "%s", paths->is_pattern ? "" : leat_path_extension(paths->path[0]));
	if (status == LEAT_OK && !leat_content_equal(&content, wanted))
		status = leat_fail(err, LEAT_DATA, "'%s' changed while the build ran; build again", paths->path[0]);
	return status;
}

enum leat_status
leat_files_path(const struct leat_plan *plan, const struct leat_plan_step *step, const struct leat_plan_edge *edge,
                size_t slice, char path[PATH_MAX], bool *made, struct leat_err *err)
{
	struct leat_paths paths = {0};
	enum leat_status status = list_files(plan, step, edge, slice, &paths, err);

	if (status == LEAT_OK && paths.is_remote) {
		*made = false;
		status = bring_all(plan, &paths, leat_plan_content(plan, edge, slice), path, err);
		leat_paths_free(&paths, plan->mem);
		return status;
	}
	*made = paths.is_pattern;
	if (status == LEAT_OK && !*made)
		status = absolute(plan->project, paths.path[0], path, err);
	if (status == LEAT_OK && *made) {
		leat_cas_temp_path(plan->cas, path);
		status = link_all(plan, &paths, path, err);
	}
	leat_paths_free(&paths, plan->mem);
	return status;
}
