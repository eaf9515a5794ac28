/* build_files.c - files of the user that actions read: sources, and slice variables that name files
 *
 * They stay where they are. A source without pattern characters is one file or folder. A pattern stands for a folder
 * with its files, named by their paths after the fixed part of the pattern: raw/s-1/a.csv of raw/s-{subject}/x*.csv is
 * a.csv. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "step/build_plan.h"

enum { MAX_TREE = 1 << 30 };

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
	return paths->count ? LEAT_OK : leat_fail_mem(err, plan->mem, 1, "the files of a slice");
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
digest_tree(struct leat_plan *plan, const struct leat_str *tree, uint64_t bytes, struct leat_content *content,
            struct leat_err *err)
{
	if (tree->failed)
		return leat_fail_mem(err, plan->mem, tree->len, "the list of a folder's files");
	content->kind = LEAT_CONTENT_FOLDER;
	content->bytes = bytes;
	leat_sha256(leat_str_text(tree), tree->len, content->digest.byte);
	return LEAT_OK;
}

/* The tree of `count` files whose names, after `skip` bytes, are in one folder. */
static enum leat_status
tree_of(struct leat_plan *plan, const struct file *file, size_t count, size_t skip, struct leat_content *content,
        struct leat_err *err)
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
			status = tree_of(plan, file + i, n, skip + len + 1, &entry, err);
		if (status == LEAT_OK)
			status = leat_tree_add(&tree, part, &entry, err);
		bytes += entry.bytes;
	}
	if (status == LEAT_OK)
		status = digest_tree(plan, &tree, bytes, content, err);
	leat_str_free(&tree);
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
		status = tree_of(plan, file, paths->count, 0, content, err);
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
	} else if (status == LEAT_OK && paths.is_pattern) {
		status = hash_pattern(plan, &paths, content, stamp, err);
	} else if (status == LEAT_OK) {
		status = absolute(plan->project, paths.path[0], path, err);
		if (status == LEAT_OK)
			status = leat_cas_hash(plan->cas, path, content, stamp, err);
	}
	leat_paths_free(&paths, plan->mem);
	return status;
}

void
leat_files_measure(const struct leat_plan *plan, const struct leat_plan_step *step, const struct leat_plan_edge *edge,
                   size_t slice, struct leat_hashing *hashing, const atomic_bool *stop)
{
	struct leat_paths paths = {0};
	char path[PATH_MAX];

	if (list_files(plan, step, edge, slice, &paths, NULL) != LEAT_OK)
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
	enum leat_status status = list_files(plan, step, edge, slice, &paths, err);

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

enum leat_status
leat_files_path(const struct leat_plan *plan, const struct leat_plan_step *step, const struct leat_plan_edge *edge,
                size_t slice, char path[PATH_MAX], bool *made, struct leat_err *err)
{
	struct leat_paths paths = {0};
	enum leat_status status = list_files(plan, step, edge, slice, &paths, err);

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
