/* folder_walk.c - finding the images of a folder with a sub-folder for each class
 *
 * The order is torchvision's: classes by name; of a class the folders by path, as one
 * string, and the files of each by name. Names are compared by their bytes. Links are
 * followed, to folders too; what a link to nothing names is a file that is missing.
 *
 * Folders are read by the type their entries are listed with; only the sizes of images
 * have to be asked for. Threads: each class is walked by one, several at once. */
#include "format/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/threads.h"

#define NO_PLACE SIZE_MAX

static const char *const extensions[] = {".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"};

/* One folder: its path below the root, and what is in it. */
struct place {
	char *path;
	size_t parent; /* in the class, or NO_PLACE */
	dev_t dev;     /* which folder it is, whatever it is called */
	ino_t ino;
	int64_t time;
	struct leat_filelist_build files;
};

/* One class. */
struct group {
	struct place *place; /* its own folder first */
	size_t places, cap;
	uint64_t left_out;
	size_t files;
};

struct walk {
	const char *path; /* of the root */
	int fd;
	struct place root;
	struct leat_mem *mem;
	struct leat_strings names; /* of the classes */
	struct group *group;
	uint64_t left_out; /* of the root's own files */
};

/* Names of the entries of one folder that are of a kind. */
struct names {
	struct leat_str text; /* each with its NUL */
	size_t count;
	const char **sorted;
};

static void
names_free(struct names *names, struct leat_mem *mem)
{
	leat_str_free(&names->text);
	leat_free(mem, names->sorted);
}

static void
names_add(struct names *names, const char *name)
{
	leat_str_addn(&names->text, name, strlen(name) + 1);
	names->count++;
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum leat_status
names_sort(struct names *names, struct leat_mem *mem, struct leat_err *err)
{
	const char *at = leat_str_text(&names->text);

	names->sorted = leat_alloc_array(mem, names->count, sizeof(*names->sorted));
	if (!names->sorted || names->text.failed)
		return leat_fail_mem(err, mem, names->text.len + names->count * sizeof(*names->sorted),
		                     "the names in a folder");
	for (size_t i = 0; i < names->count; i++, at += strlen(at) + 1)
		names->sorted[i] = at;
	qsort(names->sorted, names->count, sizeof(*names->sorted), compare_names);
	return LEAT_OK;
}

/* ---- reading one folder ---- */

/* In small letters or large ones, whatever the locale says these are. */
static bool
is_extension(const char *end, const char *extension)
{
	while (*extension && (*end >= 'A' && *end <= 'Z' ? *end - 'A' + 'a' : *end) == *extension)
		end++, extension++;
	return !*extension && !*end;
}

static bool
is_image(const char *name)
{
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < sizeof(extensions) / sizeof(*extensions); i++)
		if (is_extension(dot, extensions[i]))
			return true;
	return false;
}

static bool
is_folder(int fd, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_DIR;
	return fstatat(fd, entry->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

static int64_t
nanoseconds(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

bool
leat_folder_time(int root, const char *name, int64_t *time)
{
	struct stat st;

	if (fstatat(root, *name ? name : ".", &st, 0) != 0 || !S_ISDIR(st.st_mode))
		return false;
	*time = nanoseconds(&st);
	return true;
}

/* Lists a folder: folders, images, and how many others there are. The time is taken before, so that what
 * comes later makes it another. `dir` stays open for the caller. */
static enum leat_status
list_folder(const struct walk *walk, struct place *place, DIR **dir, struct names *folders, struct names *images,
            uint64_t *others, struct leat_err *err)
{
	const char *path = place->path, *slash = *path ? "/" : "";
	int fd = openat(walk->fd, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	struct stat st;

	*dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!*dir || fstat(fd, &st) != 0) {
		enum leat_status status =
			leat_fail_errno(err, errno, "cannot read the folder '%s%s%s'", walk->path, slash, path);

		if (fd >= 0 && !*dir)
			close(fd);
		return status;
	}
	place->time = nanoseconds(&st);
	place->dev = st.st_dev;
	place->ino = st.st_ino;
	while (errno = 0, (entry = readdir(*dir)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (is_folder(fd, entry))
			names_add(folders, entry->d_name);
		else if (images && is_image(entry->d_name))
			names_add(images, entry->d_name);
		else
			++*others;
	}
	if (errno != 0)
		return leat_fail_errno(err, errno, "cannot read the folder '%s%s%s'", walk->path, slash, path);
	return LEAT_OK;
}

/* ---- walking over one class ---- */

static enum leat_status
add_place(const struct walk *walk, struct group *group, size_t parent, const char *name, struct leat_err *err)
{
	const char *above = parent == NO_PLACE ? "" : group->place[parent].path;
	struct place *place;

	if (group->places == group->cap) {
		size_t cap = group->cap ? 2 * group->cap : 1;
		struct place *grown = leat_realloc(walk->mem, group->place, cap * sizeof(*grown));

		if (!grown)
			return leat_fail_mem(err, walk->mem, cap * sizeof(*grown), "the list of folders");
		group->place = grown;
		group->cap = cap;
	}
	place = &group->place[group->places];
	place->parent = parent;
	place->path = leat_asprintf(walk->mem, "%s%s%s", above, *above ? "/" : "", name);
	if (!place->path)
		return leat_fail_mem(err, walk->mem, strlen(above) + strlen(name) + 2, "the list of folders");
	leat_filelist_build_init(&place->files, walk->mem);
	group->places++;
	return LEAT_OK;
}

static bool
is_same(const struct place *a, const struct place *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

/* A link may lead to a folder that it lies in, and so on for ever. */
static enum leat_status
check_loop(const struct walk *walk, const struct group *group, size_t i, struct leat_err *err)
{
	const struct place *place = &group->place[i];
	bool same = is_same(place, &walk->root);

	for (size_t above = place->parent; above != NO_PLACE && !same; above = group->place[above].parent)
		same = is_same(place, &group->place[above]);
	return same ? leat_fail(err, LEAT_DATA, "'%s/%s' is a link that leads back to a folder it lies in: remove it",
	                        walk->path, place->path)
	            : LEAT_OK;
}

static enum leat_status
add_images(struct place *place, int fd, const struct names *images, struct leat_mem *mem, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < images->count && status == LEAT_OK; i++) {
		char *path = leat_asprintf(mem, "%s/%s", place->path, images->sorted[i]);

		if (!path)
			return leat_fail_mem(err, mem, strlen(place->path) + 256, "the name of a file");
		status = leat_filelist_add(&place->files, path, strlen(path), err);
		if (status == LEAT_OK)
			leat_filelist_look(&place->files, i, fd, images->sorted[i]);
		leat_free(mem, path);
	}
	return status;
}

/* Reads folder number `i` of the class, and puts the folders in it on the list. */
static enum leat_status
walk_place(const struct walk *walk, struct group *group, size_t i, struct leat_err *err)
{
	struct names folders = {0}, images = {0};
	enum leat_status status;
	DIR *dir;

	leat_str_init(&folders.text, walk->mem, SIZE_MAX / 4);
	leat_str_init(&images.text, walk->mem, SIZE_MAX / 4);
	status = list_folder(walk, &group->place[i], &dir, &folders, &images, &group->left_out, err);
	if (status == LEAT_OK)
		status = check_loop(walk, group, i, err);
	if (status == LEAT_OK)
		status = names_sort(&folders, walk->mem, err);
	if (status == LEAT_OK)
		status = names_sort(&images, walk->mem, err);
	if (status == LEAT_OK)
		status = add_images(&group->place[i], dirfd(dir), &images, walk->mem, err);
	for (size_t k = 0; k < folders.count && status == LEAT_OK; k++)
		status = add_place(walk, group, i, folders.sorted[k], err);
	group->files += images.count;
	if (dir)
		closedir(dir);
	names_free(&folders, walk->mem);
	names_free(&images, walk->mem);
	return status;
}

static int
compare_places(const void *a, const void *b)
{
	return strcmp(((const struct place *)a)->path, ((const struct place *)b)->path);
}

static enum leat_status
walk_group(void *arg, size_t i, struct leat_err *err)
{
	struct walk *walk = arg;
	struct group *group = &walk->group[i];
	enum leat_status status = add_place(walk, group, NO_PLACE, walk->names.value[i], err);

	for (size_t k = 0; k < group->places && status == LEAT_OK; k++)
		status = walk_place(walk, group, k, err);
	if (status == LEAT_OK && group->files == 0)
		status = leat_fail(err, LEAT_DATA, "the folder '%s/%s' of a class holds no image (%s): remove it",
		                   walk->path, walk->names.value[i], LEAT_FOLDER_EXTENSIONS);
	if (status == LEAT_OK)
		qsort(group->place, group->places, sizeof(*group->place), compare_places);
	return status;
}

/* ---- all together ---- */

/* What becomes the sections. */
struct result {
	struct leat_filelist_build files;
	struct leat_filelist_build places; /* these are no files, but have names and times */
	uint64_t *classes;
	uint64_t *left_out;
};

static enum leat_status
add_time(struct leat_filelist_build *places, const char *path, int64_t time, struct leat_err *err)
{
	enum leat_status status = leat_filelist_add(places, path, strlen(path), err);

	if (status == LEAT_OK)
		places->time[places->count - 1] = (uint64_t)time;
	return status;
}

static enum leat_status
add_group(struct result *result, struct group *group, int64_t *newest, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < group->places && status == LEAT_OK; i++) {
		struct place *place = &group->place[i];

		status = add_time(&result->places, place->path, place->time, err);
		if (status == LEAT_OK)
			status = leat_filelist_append(&result->files, &place->files, err);
		if (place->time > *newest)
			*newest = place->time;
	}
	*result->left_out += group->left_out;
	return status;
}

static enum leat_status
add_sections(struct result *result, size_t classes, struct leat_sidecar *sidecar, struct leat_err *err)
{
	uint64_t names_len = result->places.names.len;
	enum leat_status status;
	char *names = leat_str_take(&result->places.names);

	if (!names)
		return leat_fail_mem(err, sidecar->mem, names_len, "the list of folders");
	status = leat_filelist_finish(&result->files, "", 0, sidecar, err);
	if (status != LEAT_OK) {
		leat_free(sidecar->mem, names);
		return status;
	}
	leat_sidecar_add_take(sidecar, result->classes, (classes + 1) * sizeof(*result->classes));
	leat_sidecar_add_take(sidecar, result->places.name_at, (result->places.count + 1) * sizeof(uint64_t));
	leat_sidecar_add_take(sidecar, names, names_len);
	leat_sidecar_add_take(sidecar, result->places.time, result->places.count * sizeof(uint64_t));
	leat_sidecar_add_take(sidecar, result->left_out, sizeof(*result->left_out));
	result->classes = result->left_out = result->places.name_at = result->places.time = NULL;
	return LEAT_OK;
}

static enum leat_status
gather(const struct walk *walk, struct leat_sidecar *sidecar, int64_t *newest, struct leat_err *err)
{
	size_t classes = walk->names.count;
	struct result result = {
		.classes = leat_alloc_array(walk->mem, classes + 1, sizeof(*result.classes)),
		.left_out = leat_alloc(walk->mem, sizeof(*result.left_out)),
	};
	enum leat_status status = LEAT_OK;

	leat_filelist_build_init(&result.files, walk->mem);
	leat_filelist_build_init(&result.places, walk->mem);
	if (!result.classes || !result.left_out)
		status = leat_fail_mem(err, walk->mem, (classes + 1) * sizeof(*result.classes), "the classes");
	if (status == LEAT_OK)
		status = add_time(&result.places, "", walk->root.time, err);
	if (status == LEAT_OK)
		*result.left_out = walk->left_out;
	*newest = walk->root.time;
	for (size_t i = 0; i < classes && status == LEAT_OK; i++) {
		status = add_group(&result, &walk->group[i], newest, err);
		result.classes[i + 1] = result.files.count;
	}
	if (status == LEAT_OK)
		status = add_sections(&result, classes, sidecar, err);
	leat_filelist_build_free(&result.files);
	leat_filelist_build_free(&result.places);
	leat_free(walk->mem, result.classes);
	leat_free(walk->mem, result.left_out);
	return status;
}

static void
free_group(struct group *group, struct leat_mem *mem)
{
	for (size_t i = 0; i < group->places; i++) {
		leat_free(mem, group->place[i].path);
		leat_filelist_build_free(&group->place[i].files);
	}
	leat_free(mem, group->place);
}

static enum leat_status
walk_groups(struct walk *walk, unsigned threads, struct leat_sidecar *sidecar, int64_t *newest, struct leat_err *err)
{
	enum leat_status status;

	walk->group = leat_alloc_array(walk->mem, walk->names.count, sizeof(*walk->group));
	if (!walk->group)
		return leat_fail_mem(err, walk->mem, walk->names.count * sizeof(*walk->group), "the classes");
	status = leat_parallel(walk->mem, threads, walk->names.count, walk_group, walk, err);
	if (status == LEAT_OK)
		status = gather(walk, sidecar, newest, err);
	for (size_t i = 0; i < walk->names.count; i++)
		free_group(&walk->group[i], walk->mem);
	leat_free(walk->mem, walk->group);
	return status;
}

enum leat_status
leat_folder_walk(const char *root, unsigned threads, struct leat_mem *mem, struct leat_sidecar *sidecar,
                 int64_t *newest, struct leat_err *err)
{
	char here[] = "";
	struct walk walk = {
		.path = root,
		.fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC),
		.root = {.path = here},
		.mem = mem,
	};
	struct names classes = {0};
	enum leat_status status;
	DIR *dir;

	if (walk.fd < 0)
		return leat_fail_errno(err, errno, "cannot open the folder '%s'", root);
	leat_str_init(&classes.text, mem, SIZE_MAX / 4);
	status = list_folder(&walk, &walk.root, &dir, &classes, NULL, &walk.left_out, err);
	if (status == LEAT_OK && classes.count == 0)
		status = leat_fail(err, LEAT_DATA,
		                   "'%s' holds no folders: one for each class is expected, as in '%s/cat/1.jpg'", root,
		                   root);
	if (status == LEAT_OK)
		status = names_sort(&classes, mem, err);
	if (status == LEAT_OK) {
		walk.names = (struct leat_strings){classes.count, classes.sorted};
		status = walk_groups(&walk, threads, sidecar, newest, err);
	}
	if (dir)
		closedir(dir);
	names_free(&classes, mem);
	close(walk.fd);
	return status;
}
