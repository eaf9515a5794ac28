/* code.c - the project's code: hashed, put into the store, and shown as a folder; see code.h */
#include "step/code.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "step/code_inside.h"

enum { MAX_TEXT = 4 * 1024 * 1024 };

int
leat_code_compare(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	if (*a == *b)
		return 0;
	if (!*a || !*b || *a == '/' || *b == '/')
		return !*a || (*b && *a == '/') ? -1 : 1;
	return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
}

static int
compare_files(const void *a, const void *b)
{
	return leat_code_compare(((const struct leat_code_file *)a)->path, ((const struct leat_code_file *)b)->path);
}

const struct leat_code_file *
leat_code_find(const struct leat_code *code, const char *path)
{
	struct leat_code_file wanted = {.path = (char *)path};

	return code->files == 0 ? NULL : bsearch(&wanted, code->file, code->files, sizeof(*code->file), compare_files);
}

bool
leat_code_is_python(const char *path)
{
	size_t len = strlen(path);

	return len > 3 && strcmp(path + len - 3, ".py") == 0;
}

static const char *
name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int
compare_names(const void *a, const void *b, void *arg)
{
	const struct leat_code *code = arg;
	const char *one = code->file[*(const size_t *)a].path, *other = code->file[*(const size_t *)b].path;
	int order = strcmp(name_of(one), name_of(other));

	return order ? order : strcmp(one, other);
}

static enum leat_status
sort_files(struct leat_code *code, struct leat_err *err)
{
	if (code->files == 0)
		return LEAT_OK;
	qsort(code->file, code->files, sizeof(*code->file), compare_files);
	code->by_name = leat_alloc_array(code->mem, code->files, sizeof(*code->by_name));
	if (!code->by_name)
		return leat_fail_mem(err, code->mem, code->files * sizeof(*code->by_name), "the list of code");
	for (size_t i = 0; i < code->files; i++)
		code->by_name[i] = i;
	qsort_r(code->by_name, code->files, sizeof(*code->by_name), compare_names, code);
	return LEAT_OK;
}

/* ---- content ---- */

static enum leat_status
path_of(const struct leat_code *code, const struct leat_code_file *file, char path[PATH_MAX], struct leat_err *err)
{
	if (snprintf(path, PATH_MAX, "%s/%s", code->project->folder, file->path) < PATH_MAX)
		return LEAT_OK;
	return leat_fail(err, LEAT_LIMIT, "the path of '%s' is too long", file->path);
}

static enum leat_status
hash_files(struct leat_code *code, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	char path[PATH_MAX];

	for (size_t i = 0; i < code->files && status == LEAT_OK; i++) {
		struct leat_code_file *file = &code->file[i];

		status = path_of(code, file, path, err);
		if (status == LEAT_OK)
			status = leat_cas_hash(code->cas, path, &file->content, NULL, err);
		if (status == LEAT_OK && leat_cas_run(code->cas) && !leat_cas_has(code->cas, &file->content))
			status = leat_cas_put_file(code->cas, path, &file->content, err); /* as it is now */
	}
	return status;
}

static enum leat_status
read_file(const char *path, struct leat_mem *mem, char **text, size_t *len, struct leat_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = 1;
	struct stat st;
	size_t size;

	if (fd < 0 || fstat(fd, &st) != 0) {
		if (fd >= 0)
			close(fd);
		return leat_fail_errno(err, errno, "cannot read '%s'", path);
	}
	size = st.st_size < MAX_TEXT ? (size_t)st.st_size : MAX_TEXT;
	*text = leat_alloc(mem, size + 1);
	for (*len = 0; *text && *len < size && got > 0; *len += got > 0 ? (size_t)got : 0)
		got = read(fd, *text + *len, size - *len);
	close(fd);
	return *text ? LEAT_OK : leat_fail_mem(err, mem, size + 1, "a file of the code");
}

enum leat_status
leat_code_text(struct leat_code *code, const struct leat_code_file *file, char **text, size_t *len,
               struct leat_err *err)
{
	char path[PATH_MAX];
	enum leat_status status = LEAT_OK;

	*text = NULL;
	leat_cas_blob_path(code->cas, &file->content.digest, path);
	if (access(path, R_OK) != 0)
		status = path_of(code, file, path, err);
	return status == LEAT_OK ? read_file(path, code->mem, text, len, err) : status;
}

/* ---- the snapshot ---- */

/* Where the files of the folder that file `first` is in end; `depth` is the length of the folder's path. */
static size_t
folder_end(const struct leat_code *code, size_t first, size_t end, size_t len)
{
	size_t i = first + 1;

	while (i < end && strncmp(code->file[i].path, code->file[first].path, len) == 0)
		i++;
	return i;
}

/* Puts the tree of files [first, end), whose paths have the first `skip` bytes in common. The depth of paths is
 * bounded by the walk. */
static enum leat_status
put_tree(struct leat_code *code, size_t first, size_t end, size_t skip, struct leat_content *content,
         struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	struct leat_str tree;

	leat_str_init(&tree, code->mem, SIZE_MAX);
	while (first < end && status == LEAT_OK) {
		const char *name = code->file[first].path + skip, *slash = strchr(name, '/');
		struct leat_content entry = code->file[first].content;
		size_t next = first + 1;
		char part[NAME_MAX + 1];

		if (slash) {
			size_t len = (size_t)(slash - name) + 1;

			next = folder_end(code, first, end, skip + len);
			status = put_tree(code, first, next, skip + len, &entry, err);
			snprintf(part, sizeof(part), "%.*s", (int)(len - 1), name);
			name = part;
		}
		if (status == LEAT_OK)
			status = leat_tree_add(&tree, name, &entry, err);
		first = next;
	}
	if (status == LEAT_OK)
		status = leat_cas_put_tree(code->cas, &tree, content, err);
	leat_str_free(&tree);
	return status;
}

static enum leat_status
make_snapshot(struct leat_code *code, struct leat_err *err)
{
	char path[PATH_MAX];
	enum leat_status status = put_tree(code, 0, code->files, 0, &code->content, err);

	if (status == LEAT_OK)
		status = leat_cas_view(code->cas, &code->content, path, err);
	if (status != LEAT_OK)
		return status;
	code->snapshot = leat_strdup(code->mem, path);
	return code->snapshot ? LEAT_OK : leat_fail_mem(err, code->mem, strlen(path) + 1, "the path of the code");
}

const char *
leat_code_snapshot(struct leat_code *code, struct leat_err *err)
{
	const char *snapshot;

	pthread_mutex_lock(&code->lock);
	if (!code->snapshot)
		make_snapshot(code, err);
	snapshot = code->snapshot;
	pthread_mutex_unlock(&code->lock);
	return snapshot;
}

struct leat_content
leat_code_content(const struct leat_code *code)
{
	return code->content;
}

/* ---- opening and closing ---- */

enum leat_status
leat_code_open(struct leat_code **code, const struct leat_project *project, const struct leat_step *step,
               struct leat_cas *cas, struct leat_err *err)
{
	struct leat_mem *mem = project->mem;
	struct leat_code *c = leat_alloc(mem, sizeof(*c));
	enum leat_status status;

	*code = NULL;
	if (!c)
		return leat_fail_mem(err, mem, sizeof(*c), "the list of code");
	*c = (struct leat_code){.mem = mem, .project = project, .cas = cas, .pattern = step->code};
	pthread_mutex_init(&c->lock, NULL);
	c->step_key = leat_alloc_array(mem, project->steps, sizeof(*c->step_key));
	status = c->step_key ? leat_code_walk(c, err)
	                     : leat_fail_mem(err, mem, project->steps * sizeof(*c->step_key), "the keys of steps");
	if (status == LEAT_OK)
		status = sort_files(c, err);
	if (status == LEAT_OK)
		status = hash_files(c, err);
	if (status == LEAT_OK)
		*code = c;
	else
		leat_code_close(c);
	return status;
}

bool
leat_code_serves(const struct leat_code *code, const struct leat_step *step)
{
	size_t i = 0;

	while (code->pattern[i] && step->code[i] && strcmp(code->pattern[i], step->code[i]) == 0)
		i++;
	return !code->pattern[i] && !step->code[i];
}

void
leat_code_close(struct leat_code *code)
{
	struct leat_mem *mem;

	if (!code)
		return;
	mem = code->mem;
	for (size_t i = 0; i < code->files; i++) {
		leat_free(mem, code->file[i].path);
		leat_free(mem, code->file[i].names);
	}
	for (size_t i = 0; code->step_key && i < code->project->steps; i++)
		leat_step_key_free(&code->step_key[i], mem);
	leat_still_free(code->still, mem);
	leat_pythons_free(code->pythons, mem);
	leat_free(mem, code->file);
	leat_free(mem, code->by_name);
	leat_free(mem, code->step_key);
	leat_free(mem, code->snapshot);
	pthread_mutex_destroy(&code->lock);
	leat_free(mem, code);
}
