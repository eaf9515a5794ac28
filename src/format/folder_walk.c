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

enum { MAX_DEPTH = 32 }; /* of folders in one another: a link may lead back */

static const char *const extensions[] = {".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"};

/* One folder: its path below the root, and what is in it. */
struct place {
	char *path;
	int depth;
	int64_t time;
	struct leat_filelist_build files;
};

/* One class. */
struct class
{
	struct place *place; /* its own folder first */
	size_t places, cap;
	uint64_t left_out;
	size_t files;
};

struct walk {
	const char *root;
	int root_fd;
	struct leat_mem *mem;
	struct leat_strings names; /* of the classes */
	struct class *class;
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

/* Lists the folder `path` below the root: folders, images, and how many others there are. The time is
 * taken before, so that what comes later makes it another. `fd` stays open for the caller. */
static enum leat_status
list_folder(const struct walk *walk, const char *path, DIR **dir, int64_t *time, struct names *folders,
            struct names *images, uint64_t *others, struct leat_err *err)
{
	int fd = openat(walk->root_fd, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const char *slash = *path ? "/" : "";
	struct dirent *entry;
	struct stat st;

	*dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!*dir || fstat(fd, &st) != 0) {
		enum leat_status status =
			leat_fail_errno(err, errno, "cannot read the folder '%s%s%s'", walk->root, slash, path);

		if (fd >= 0 && !*dir)
			close(fd);
		return status;
	}
	*time = nanoseconds(&st);
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
		return leat_fail_errno(err, errno, "cannot read the folder '%s%s%s'", walk->root, slash, path);
	return LEAT_OK;
}

/* ---- walking over one class ---- */

static enum leat_status
add_place(const struct walk *walk, struct class *class, const char *parent, const char *name, int depth,
          struct leat_err *err)
{
	if (depth > MAX_DEPTH)
		return leat_fail(err, LEAT_DATA,
		                 "the folders in '%s/%s' lie more than %d deep in one another: does a link "
		                 "lead back?",
		                 walk->root, parent, MAX_DEPTH);
	if (class->places == class->cap) {
		size_t cap = class->cap ? 2 * class->cap : 1;
		struct place *grown = leat_realloc(walk->mem, class->place, cap * sizeof(*grown));

		if (!grown)
			return leat_fail_mem(err, walk->mem, cap * sizeof(*grown), "the list of folders");
		class->place = grown;
		class->cap = cap;
	}
	class->place[class->places].path = leat_asprintf(walk->mem, "%s%s%s", parent, *parent ? "/" : "", name);
	if (!class->place[class->places].path)
		return leat_fail_mem(err, walk->mem, strlen(parent) + strlen(name) + 2, "the list of folders");
	class->place[class->places].depth = depth;
	leat_filelist_build_init(&class->place[class->places++].files, walk->mem);
	return LEAT_OK;
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
walk_place(const struct walk *walk, struct class *class, size_t i, struct leat_err *err)
{
	struct names folders = {0}, images = {0};
	const char *path = class->place[i].path;
	enum leat_status status;
	DIR *dir;

	leat_str_init(&folders.text, walk->mem, SIZE_MAX / 4);
	leat_str_init(&images.text, walk->mem, SIZE_MAX / 4);
	status = list_folder(walk, path, &dir, &class->place[i].time, &folders, &images, &class->left_out, err);
	if (status == LEAT_OK)
		status = names_sort(&folders, walk->mem, err);
	if (status == LEAT_OK)
		status = names_sort(&images, walk->mem, err);
	if (status == LEAT_OK)
		status = add_images(&class->place[i], dirfd(dir), &images, walk->mem, err);
	for (size_t k = 0; k < folders.count && status == LEAT_OK; k++)
		status = add_place(walk, class, path, folders.sorted[k], class->place[i].depth + 1, err);
	class->files += images.count;
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
walk_class(void *arg, size_t i, struct leat_err *err)
{
	struct walk *walk = arg;
	struct class *class = &walk->class[i];
	enum leat_status status = add_place(walk, class, "", walk->names.value[i], 1, err);

	for (size_t k = 0; k < class->places && status == LEAT_OK; k++)
		status = walk_place(walk, class, k, err);
	if (status == LEAT_OK && class->files == 0)
		status = leat_fail(err, LEAT_DATA, "the folder '%s/%s' of a class holds no image (%s): remove it",
		                   walk->root, walk->names.value[i], LEAT_FOLDER_EXTENSIONS);
	if (status == LEAT_OK)
		qsort(class->place, class->places, sizeof(*class->place), compare_places);
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
add_class(struct result *result, struct class *class, int64_t *newest, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < class->places && status == LEAT_OK; i++) {
		struct place *place = &class->place[i];

		status = add_time(&result->places, place->path, place->time, err);
		if (status == LEAT_OK)
			status = leat_filelist_append(&result->files, &place->files, err);
		if (place->time > *newest)
			*newest = place->time;
	}
	*result->left_out += class->left_out;
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
gather(const struct walk *walk, int64_t root_time, uint64_t left_out, struct leat_sidecar *sidecar, int64_t *newest,
       struct leat_err *err)
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
		status = add_time(&result.places, "", root_time, err);
	if (status == LEAT_OK)
		*result.left_out = left_out;
	*newest = root_time;
	for (size_t i = 0; i < classes && status == LEAT_OK; i++) {
		status = add_class(&result, &walk->class[i], newest, err);
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
free_class(struct class *class, struct leat_mem *mem)
{
	for (size_t i = 0; i < class->places; i++) {
		leat_free(mem, class->place[i].path);
		leat_filelist_build_free(&class->place[i].files);
	}
	leat_free(mem, class->place);
}

static enum leat_status
walk_classes(struct walk *walk, unsigned threads, int64_t root_time, uint64_t left_out, struct leat_sidecar *sidecar,
             int64_t *newest, struct leat_err *err)
{
	enum leat_status status;

	walk->class = leat_alloc_array(walk->mem, walk->names.count, sizeof(*walk->class));
	if (!walk->class)
		return leat_fail_mem(err, walk->mem, walk->names.count * sizeof(*walk->class), "the classes");
	status = leat_parallel(walk->mem, threads, walk->names.count, walk_class, walk, err);
	if (status == LEAT_OK)
		status = gather(walk, root_time, left_out, sidecar, newest, err);
	for (size_t i = 0; i < walk->names.count; i++)
		free_class(&walk->class[i], walk -> mem);
	leat_free(walk->mem, walk->class);
	return status;
}

enum leat_status
leat_folder_walk(const char *root, unsigned threads, struct leat_mem *mem, struct leat_sidecar *sidecar,
                 int64_t *newest, struct leat_err *err)
{
	struct walk walk = {.root = root, .mem = mem, .root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC)};
	struct names classes = {0};
	uint64_t left_out = 0;
	int64_t time = 0;
	enum leat_status status;
	DIR *dir = NULL;

	if (walk.root_fd < 0)
		return leat_fail_errno(err, errno, "cannot open the folder '%s'", root);
	leat_str_init(&classes.text, mem, SIZE_MAX / 4);
	status = list_folder(&walk, "", &dir, &time, &classes, NULL, &left_out, err);
	if (status == LEAT_OK && classes.count == 0)
		status = leat_fail(err, LEAT_DATA,
		                   "'%s' holds no folders: one for each class is expected, as in '%s/cat/1.jpg'", root,
		                   root);
	if (status == LEAT_OK)
		status = names_sort(&classes, mem, err);
	if (status == LEAT_OK) {
		walk.names = (struct leat_strings){classes.count, classes.sorted};
		status = walk_classes(&walk, threads, time, left_out, sidecar, newest, err);
	}
	if (dir)
		closedir(dir);
	names_free(&classes, mem);
	close(walk.root_fd);
	return status;
}
