/* pack_list.c - lists the samples that `leat pack` packs, from folders or a CSV file */
#include "cli/pack_list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/csv.h"

enum { MAX_DEPTH = 16 };
static const uint64_t max_content = UINT64_C(1) << 30;

/* ---- reading a file ---- */

static enum leat_status
make_room(struct leat_content *c, const char *path, uint64_t size, struct leat_err *err)
{
	char *bytes;

	if (size > max_content)
		return leat_fail(err, LEAT_LIMIT, "'%s' is larger than 1 GiB", path);
	if (size + 1 <= c->cap)
		return LEAT_OK;
	bytes = leat_realloc(c->mem, c->bytes, (size_t)size + 1);
	if (!bytes)
		return leat_fail_mem(err, c->mem, (size_t)size + 1, "the content of a file");
	c->bytes = bytes;
	c->cap = (size_t)size + 1;
	return LEAT_OK;
}

/* Reads to the end, wherever that is by now. */
static enum leat_status
read_all(struct leat_content *c, int fd, const char *path, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	struct stat st;

	if (fstat(fd, &st) != 0)
		return leat_fail_errno(err, errno, "cannot read '%s'", path);
	c->len = 0;
	status = make_room(c, path, (uint64_t)st.st_size + 1, err);
	while (status == LEAT_OK) {
		ssize_t n = read(fd, c->bytes + c->len, c->cap - 1 - c->len);

		if (n == 0)
			break;
		if (n < 0 && errno != EINTR)
			return leat_fail_errno(err, errno, "cannot read '%s'", path);
		c->len += n > 0 ? (size_t)n : 0;
		if (c->len == c->cap - 1)
			status = make_room(c, path, 2 * (uint64_t)c->cap, err);
	}
	if (status == LEAT_OK)
		c->bytes[c->len] = '\0';
	return status;
}

enum leat_status
leat_content_read(struct leat_content *c, const char *path, struct leat_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	enum leat_status status;

	if (fd < 0)
		return leat_fail_errno(err, errno, "cannot open '%s'", path);
	status = read_all(c, fd, path, err);
	close(fd);
	return status;
}

/* ---- the list ---- */

void
leat_pack_list_free(struct leat_pack_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		leat_free(list->mem, list->sample[i].path);
		leat_free(list->mem, list->sample[i].name);
		leat_free(list->mem, list->sample[i].class_name);
	}
	for (size_t i = 0; i < list->classes; i++)
		leat_free(list->mem, list->class_name[i]);
	leat_free(list->mem, list->sample);
	leat_free(list->mem, list->class_name);
	leat_free(list->mem, list->left_out_first);
	*list = (struct leat_pack_list){0};
}

/* Room for one more item of an array. */
static enum leat_status
grow(struct leat_mem *mem, void **array, size_t count, size_t *cap, size_t size, struct leat_err *err)
{
	size_t wanted = *cap ? 2 * *cap : 64;
	void *bigger;

	if (count < *cap)
		return LEAT_OK;
	bigger = leat_realloc(mem, *array, wanted * size);
	if (!bigger)
		return leat_fail_mem(err, mem, wanted * size, "the list of files");
	*array = bigger;
	*cap = wanted;
	return LEAT_OK;
}

/* Takes `path` and `name`, also when it fails; class_name is copied, NULL: the label is known. */
static enum leat_status
add_sample_take(struct leat_pack_list *list, char *path, char *name, int64_t label, const char *class_name,
                uint64_t size, struct leat_err *err)
{
	struct leat_pack_sample s = {.path = path, .name = name, .label = label, .size = size};
	enum leat_status status;

	s.class_name = class_name ? leat_strdup(list->mem, class_name) : NULL;
	if (!path || !name || (class_name && !s.class_name))
		status = leat_fail_mem(err, list->mem, 64, "a file name");
	else
		status = grow(list->mem, (void **)&list->sample, list->count, &list->cap, sizeof(s), err);
	if (status != LEAT_OK) {
		leat_free(list->mem, path);
		leat_free(list->mem, name);
		leat_free(list->mem, s.class_name);
		return status;
	}
	list->sample[list->count++] = s;
	list->bytes += size;
	return LEAT_OK;
}

static enum leat_status
add_class(struct leat_pack_list *list, const char *name, struct leat_err *err)
{
	enum leat_status status;

	status = grow(list->mem, (void **)&list->class_name, list->classes, &list->class_cap, sizeof(char *), err);
	if (status != LEAT_OK)
		return status;
	list->class_name[list->classes] = leat_strdup(list->mem, name);
	if (!list->class_name[list->classes])
		return leat_fail_mem(err, list->mem, strlen(name) + 1, "a class name");
	list->classes++;
	return LEAT_OK;
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int
compare_samples(const void *a, const void *b)
{
	const struct leat_pack_sample *s = a, *t = b;

	if (s->label != t->label)
		return s->label < t->label ? -1 : 1;
	return strcmp(s->name, t->name);
}

/* ---- folders ---- */

static bool
is_image(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && (!strcasecmp(dot, ".jpg") || !strcasecmp(dot, ".jpeg") || !strcasecmp(dot, ".png"));
}

/* Calls `visit` for everything in a folder that is not hidden. */
struct walk {
	struct leat_pack_list *list;
	const char *below; /* what names are relative to begins here in each path */
	int64_t label;
	int depth;
	enum leat_status (*visit)(struct walk *walk, const char *path, const char *name, const struct stat *st,
	                          struct leat_err *err);
};

static enum leat_status
visit_folder(struct walk *walk, const char *folder, struct leat_err *err)
{
	DIR *dir = opendir(folder);
	enum leat_status status = LEAT_OK;
	struct dirent *entry;

	if (!dir)
		return leat_fail_errno(err, errno, "cannot read the folder '%s'", folder);
	while (status == LEAT_OK) {
		struct stat st;
		char *path;

		errno = 0;
		entry = readdir(dir);
		if (!entry) {
			if (errno)
				status = leat_fail_errno(err, errno, "cannot read the folder '%s'", folder);
			break;
		}
		if (entry->d_name[0] == '.')
			continue;
		path = leat_asprintf(walk->list->mem, "%s/%s", folder, entry->d_name);
		if (!path)
			status = leat_fail_mem(err, walk->list->mem, 256, "a file name");
		else if (stat(path, &st) != 0)
			status = leat_fail_errno(err, errno, "cannot read '%s'", path);
		else
			status = walk->visit(walk, path, entry->d_name, &st, err);
		leat_free(walk->list->mem, path);
	}
	closedir(dir);
	return status;
}

static enum leat_status
leave_out(struct leat_pack_list *list, const char *path, struct leat_err *err)
{
	/* Which one is named does not depend on the order of the folder. */
	if (!list->left_out_first || strcmp(path, list->left_out_first) < 0) {
		leat_free(list->mem, list->left_out_first);
		list->left_out_first = leat_strdup(list->mem, path);
		if (!list->left_out_first)
			return leat_fail_mem(err, list->mem, strlen(path) + 1, "a file name");
	}
	list->left_out++;
	return LEAT_OK;
}

/* Inside a class: files are samples, folders are gone through. */
static enum leat_status
visit_class(struct walk *walk, const char *path, const char *name, const struct stat *st, struct leat_err *err)
{
	struct leat_pack_list *list = walk->list;
	enum leat_status status;

	if (S_ISDIR(st->st_mode)) {
		if (walk->depth == MAX_DEPTH)
			return leat_fail(err, LEAT_LIMIT, "'%s' lies deeper than %d folders", path, MAX_DEPTH);
		walk->depth++;
		status = visit_folder(walk, path, err);
		walk->depth--;
		return status;
	}
	if (!S_ISREG(st->st_mode) || !is_image(name))
		return leave_out(list, path, err);
	return add_sample_take(list, leat_strdup(list->mem, path),
	                       leat_strdup(list->mem, path + strlen(walk->below) + 1), walk->label, NULL,
	                       (uint64_t)st->st_size, err);
}

/* In the folder itself: folders are classes. */
static enum leat_status
visit_top(struct walk *walk, const char *path, const char *name, const struct stat *st, struct leat_err *err)
{
	if (!S_ISDIR(st->st_mode))
		return leave_out(walk->list, path, err);
	return add_class(walk->list, name, err);
}

static enum leat_status
list_class(struct leat_pack_list *list, const char *folder, size_t label, struct leat_err *err)
{
	struct walk walk = {.list = list, .below = folder, .label = (int64_t)label, .visit = visit_class};
	size_t before = list->count;
	char *path = leat_asprintf(list->mem, "%s/%s", folder, list->class_name[label]);
	enum leat_status status;

	if (!path)
		return leat_fail_mem(err, list->mem, strlen(folder) + 256, "a file name");
	status = visit_folder(&walk, path, err);
	if (status == LEAT_OK && list->count == before)
		status = leat_fail(err, LEAT_DATA, "the class folder '%s' holds no .jpg, .jpeg or .png file", path);
	leat_free(list->mem, path);
	return status;
}

enum leat_status
leat_pack_list_folder(struct leat_pack_list *list, const char *folder, struct leat_err *err)
{
	size_t len = strlen(folder);
	struct walk walk = {.list = list, .visit = visit_top};
	enum leat_status status;
	char *root;

	while (len > 1 && folder[len - 1] == '/')
		len--;
	root = leat_strndup(list->mem, folder, len);
	if (!root)
		return leat_fail_mem(err, list->mem, len + 1, "a file name");
	status = visit_folder(&walk, root, err);
	if (status == LEAT_OK && !list->classes)
		status = leat_fail(err, LEAT_DATA,
		                   "the folder '%s' holds no folders: each class is a folder of its images", root);
	if (status == LEAT_OK && list->classes)
		qsort(list->class_name, list->classes, sizeof(char *), compare_names);
	for (size_t i = 0; i < list->classes && status == LEAT_OK; i++)
		status = list_class(list, root, i, err);
	if (status == LEAT_OK)
		qsort(list->sample, list->count, sizeof(*list->sample), compare_samples);
	leat_free(list->mem, root);
	return status;
}

/* ---- CSV ---- */

static bool
is_one_of(const char *cell, const char *const *names)
{
	for (; *names; names++)
		if (strcasecmp(cell, *names) == 0)
			return true;
	return false;
}

struct columns {
	size_t path, label;
};

/* The first row is a header when it names both columns. */
static bool
read_header(const struct leat_csv_row *row, struct columns *columns)
{
	static const char *const paths[] = {"path", "file", "filename", "file_name", "image", "image_path", NULL};
	static const char *const labels[] = {"label", "class", "category", "target", NULL};
	bool has_path = false, has_label = false;

	for (size_t i = row->cells; i-- > 0;) {
		if (is_one_of(row->cell[i], paths)) {
			columns->path = i;
			has_path = true;
		} else if (is_one_of(row->cell[i], labels)) {
			columns->label = i;
			has_label = true;
		}
	}
	return has_path && has_label;
}

static enum leat_status
add_row(struct leat_pack_list *list, const char *csv_path, const struct leat_csv_row *row,
        const struct columns *columns, struct leat_err *err)
{
	const char *slash = strrchr(csv_path, '/'), *name, *label;
	unsigned long long line = row->line;
	struct stat st;
	char *path;

	if (row->cells <= columns->path || row->cells <= columns->label)
		return leat_fail(err, LEAT_DATA, "%s:%llu: a path and a label are expected, but the row has %zu cell%s",
		                 csv_path, line, row->cells, row->cells == 1 ? "" : "s");
	name = row->cell[columns->path];
	label = row->cell[columns->label];
	if (!*name || !*label)
		return leat_fail(err, LEAT_DATA, "%s:%llu: the %s is empty", csv_path, line, *name ? "label" : "path");
	if (*name == '/' || !slash)
		path = leat_strdup(list->mem, name);
	else
		path = leat_asprintf(list->mem, "%.*s/%s", (int)(slash - csv_path), csv_path, name);
	if (path && stat(path, &st) != 0) {
		enum leat_status status =
			leat_fail_errno(err, errno, "%s:%llu: cannot read '%s'", csv_path, line, path);

		leat_free(list->mem, path);
		return status;
	}
	return add_sample_take(list, path, leat_strdup(list->mem, name), 0, label, path ? (uint64_t)st.st_size : 0,
	                       err);
}

/* A label that is a whole number. */
static bool
is_number(const char *text, int64_t *number)
{
	char *end;

	if (!strchr("+-0123456789", *text))
		return false;
	errno = 0;
	*number = strtoll(text, &end, 10);
	return end != text && *end == '\0' && errno == 0;
}

static enum leat_status
number_classes(struct leat_pack_list *list, struct leat_err *err)
{
	char **names = leat_alloc_array(list->mem, list->count, sizeof(*names));
	enum leat_status status = LEAT_OK;

	if (!names)
		return leat_fail_mem(err, list->mem, list->count * sizeof(*names), "the labels");
	for (size_t i = 0; i < list->count; i++)
		names[i] = list->sample[i].class_name;
	qsort(names, list->count, sizeof(*names), compare_names);
	for (size_t i = 0; i < list->count && status == LEAT_OK; i++)
		if (i == 0 || strcmp(names[i - 1], names[i]) != 0)
			status = add_class(list, names[i], err);
	leat_free(list->mem, names);
	for (size_t i = 0; i < list->count && status == LEAT_OK; i++) {
		char **found = bsearch(&list->sample[i].class_name, list->class_name, list->classes, sizeof(char *),
		                       compare_names);

		list->sample[i].label = found - list->class_name;
	}
	return status;
}

static enum leat_status
read_rows(struct leat_pack_list *list, struct leat_content *content, const char *path, struct leat_err *err)
{
	struct columns columns = {.path = 0, .label = 1};
	struct leat_csv_row row;
	struct leat_csv csv;
	enum leat_status status;
	bool first = true;

	leat_csv_begin(&csv, content->bytes, content->len);
	while ((status = leat_csv_next(&csv, &row, err)) == LEAT_OK) {
		if (!first || !read_header(&row, &columns))
			status = add_row(list, path, &row, &columns, err);
		first = false;
		if (status != LEAT_OK)
			return status;
	}
	if (status != LEAT_END) {
		leat_err_in(err, "%s", path);
		return status;
	}
	return list->count ? LEAT_OK : leat_fail(err, LEAT_DATA, "the list '%s' is empty", path);
}

enum leat_status
leat_pack_list_csv(struct leat_pack_list *list, const char *path, struct leat_err *err)
{
	struct leat_content content = {.mem = list->mem};
	enum leat_status status = leat_content_read(&content, path, err);
	size_t numbers = 0;

	if (status == LEAT_OK)
		status = read_rows(list, &content, path, err);
	leat_free(list->mem, content.bytes);
	if (status != LEAT_OK)
		return status;
	while (numbers < list->count && is_number(list->sample[numbers].class_name, &list->sample[numbers].label))
		numbers++;
	return numbers == list->count ? LEAT_OK : number_classes(list, err);
}
