/* code_walk.c - find the files of the project that a step's globs match
 *
 * Not looked into: hidden folders, out/, virtual environments, node_modules, and folders that are symbolic links (which
 * often lead to data). A folder that cannot be read has no code for anybody. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "step/code_glob.h"
#include "step/code_inside.h"

enum { MAX_DEPTH = 64 };

struct folder {
	char *path; /* "" is the project's; else it ends with '/' */
	uint64_t *state;
	unsigned depth;
};

struct walk {
	struct leat_code *code;
	struct leat_globs globs;
	int root;
	struct folder *folder; /* still to be read */
	size_t folders, cap;
	uint64_t *next;
};

static bool
is_skipped(const struct folder *in, const char *name)
{
	static const char *const skipped[] = {".", "..", ".leat", "node_modules", "site-packages", "__pycache__"};

	for (size_t i = 0; i < sizeof(skipped) / sizeof(*skipped); i++)
		if (strcmp(name, skipped[i]) == 0)
			return true;
	return in->depth == 0 && strcmp(name, "out") == 0;
}

/* Of Python or conda. */
static bool
marks_environment(const struct folder *in, const char *name)
{
	return in->depth > 0 && (strcmp(name, "pyvenv.cfg") == 0 || strcmp(name, "conda-meta") == 0);
}

static enum leat_status
add_file(struct leat_code *code, const struct folder *in, const char *name, struct leat_err *err)
{
	enum leat_status status =
		LEAT_GROW(code->mem, code->file, code->cap, code->files + 1, SIZE_MAX, "the list of code", err);

	if (status != LEAT_OK)
		return status;
	code->file[code->files] = (struct leat_code_file){.path = leat_asprintf(code->mem, "%s%s", in->path, name)};
	if (!code->file[code->files].path)
		return leat_fail_mem(err, code->mem, strlen(name), "the list of code");
	code->files++;
	return LEAT_OK;
}

static enum leat_status
add_folder(struct walk *walk, const struct folder *in, const char *name, struct leat_err *err)
{
	struct leat_mem *mem = walk->code->mem;
	size_t bytes = walk->globs.count * sizeof(*walk->next);
	struct folder folder = {.depth = in ? in->depth + 1 : 0};
	enum leat_status status =
		LEAT_GROW(mem, walk->folder, walk->cap, walk->folders + 1, SIZE_MAX, "the list of folders", err);

	if (status != LEAT_OK)
		return status;
	if (folder.depth > MAX_DEPTH)
		return leat_fail(err, LEAT_LIMIT,
		                 "%s%s is more than %d folders deep; name the folders with code in 'code'", in->path,
		                 name, MAX_DEPTH);
	folder.path = in ? leat_asprintf(mem, "%s%s/", in->path, name) : leat_strdup(mem, "");
	folder.state = leat_alloc(mem, bytes);
	if (!folder.path || !folder.state) {
		leat_free(mem, folder.path);
		leat_free(mem, folder.state);
		return leat_fail_mem(err, mem, bytes, "the list of folders");
	}
	memcpy(folder.state, walk->next, bytes);
	walk->folder[walk->folders++] = folder;
	return LEAT_OK;
}

static void
free_folder(struct walk *walk, struct folder *folder)
{
	leat_free(walk->code->mem, folder->path);
	leat_free(walk->code->mem, folder->state);
}

/* Forgets what was found since there were so many. */
static void
forget(struct walk *walk, size_t files, size_t folders)
{
	while (walk->code->files > files)
		leat_free(walk->code->mem, walk->code->file[--walk->code->files].path);
	while (walk->folders > folders)
		free_folder(walk, &walk->folder[--walk->folders]);
}

/* DT_REG, DT_DIR, or DT_UNKNOWN for all else. A link to a file is a file. */
static unsigned char
type_of(int fd, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type == DT_REG || entry->d_type == DT_DIR)
		return entry->d_type;
	if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
		return DT_UNKNOWN;
	if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return DT_UNKNOWN;
	if (S_ISDIR(st.st_mode))
		return DT_DIR;
	return fstatat(fd, entry->d_name, &st, 0) == 0 && S_ISREG(st.st_mode) ? DT_REG : DT_UNKNOWN;
}

static enum leat_status
visit(struct walk *walk, const struct folder *in, int fd, const struct dirent *entry, struct leat_err *err)
{
	unsigned char type;
	bool matches = leat_globs_step(&walk->globs, in->state, entry->d_name, walk->next);

	if (!matches && !leat_globs_may_match(&walk->globs, walk->next))
		return LEAT_OK;
	type = type_of(fd, entry);
	if (type == DT_REG && matches)
		return add_file(walk->code, in, entry->d_name, err);
	return type == DT_DIR ? add_folder(walk, in, entry->d_name, err) : LEAT_OK;
}

static enum leat_status
read_entries(struct walk *walk, const struct folder *in, DIR *dir, struct leat_err *err)
{
	size_t files = walk->code->files, folders = walk->folders;
	enum leat_status status = LEAT_OK;
	const struct dirent *entry;

	while (status == LEAT_OK && (entry = readdir(dir)) != NULL) {
		if (marks_environment(in, entry->d_name)) {
			forget(walk, files, folders);
			break;
		}
		if (!is_skipped(in, entry->d_name))
			status = visit(walk, in, dirfd(dir), entry, err);
	}
	return status;
}

static enum leat_status
read_folder(struct walk *walk, const struct folder *in, struct leat_err *err)
{
	int fd = openat(walk->root, *in->path ? in->path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	enum leat_status status = LEAT_OK;

	if (dir) {
		status = read_entries(walk, in, dir, err);
		closedir(dir);
	} else {
		if (errno != EACCES && errno != ENOENT)
			status = leat_fail_errno(err, errno, "cannot read the folder '%s%s%s'",
			                         walk->code->project->folder, *in->path ? "/" : "", in->path);
		if (fd >= 0)
			close(fd);
	}
	return status;
}

static enum leat_status
walk_all(struct walk *walk, struct leat_err *err)
{
	enum leat_status status;

	leat_globs_begin(&walk->globs, walk->next);
	status = add_folder(walk, NULL, "", err);
	while (status == LEAT_OK && walk->folders > 0) {
		struct folder folder = walk->folder[--walk->folders];

		status = read_folder(walk, &folder, err);
		free_folder(walk, &folder);
	}
	return status;
}

enum leat_status
leat_code_walk(struct leat_code *code, struct leat_err *err)
{
	struct walk walk = {.code = code, .root = -1};
	enum leat_status status = leat_globs_open(&walk.globs, code->mem, code->pattern, err);

	if (status != LEAT_OK)
		return status;
	walk.next = leat_alloc_array(code->mem, walk.globs.count, sizeof(*walk.next));
	walk.root = open(code->project->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!walk.next)
		status = leat_fail_mem(err, code->mem, walk.globs.count, "the code patterns");
	else if (walk.root < 0)
		status = leat_fail_errno(err, errno, "cannot read the folder '%s'", code->project->folder);
	else
		status = walk_all(&walk, err);
	forget(&walk, code->files, 0);
	leat_free(code->mem, walk.folder);
	leat_free(code->mem, walk.next);
	if (walk.root >= 0)
		close(walk.root);
	leat_globs_close(&walk.globs);
	return status;
}
