/* folder_walk.c - find the images of a folder with one subfolder per class
 *
 * The order is torchvision's: classes by name; within a class, folders by path (as one
 * string) and the files of each by name. Names compare bytewise. Symlinks are followed, to
 * folders too, as far as confine.h allows; a dangling one counts as a missing file.
 *
 * Threads: each class is walked by one thread, several classes at once. */
#include "format/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/threads.h"
#include "format/image_formats.h"

#define NO_PLACE SIZE_MAX

/* One folder: its path below the root, and its contents. */
struct place {
	char *path;
	size_t parent; /* in the class, or NO_PLACE */
	struct leat_folder_id id;
	struct leat_file_table_build files;
	char *other; /* first file by name that is not an image, or NULL */
};

/* One class. */
struct group {
	struct place *place; /* the class's own folder first */
	size_t places, cap;
	uint64_t left_out;
	size_t files;
};

struct walk {
	const struct leat_confine *confine;
	struct leat_store *store;
	const char *path; /* of the root */
	struct place root;
	struct leat_mem *mem;
	struct leat_strings names; /* of the classes */
	struct group *group;
	uint64_t left_out; /* files directly in the root */
};

/* Entries of one kind in one folder. */
struct entries {
	struct leat_mem *mem;
	struct leat_str text; /* NUL-terminated names */
	struct entry {
		const char *name; /* set when sorting; before that, `at` is its offset in text */
		size_t at;
		uint64_t size, token;
	} * entry;
	size_t count, cap;
};

static void
entries_init(struct entries *entries, struct leat_mem *mem)
{
	*entries = (struct entries){.mem = mem};
	leat_str_init(&entries->text, mem, SIZE_MAX / 4);
}

static void
entries_free(struct entries *entries)
{
	leat_str_free(&entries->text);
	leat_free(entries->mem, entries->entry);
}

static enum leat_status
entries_add(struct entries *entries, const struct leat_entry *found, struct leat_err *err)
{
	enum leat_status status = LEAT_GROW(entries->mem, entries->entry, entries->cap, entries->count + 1, SIZE_MAX,
	                                    "the names in a folder", err);

	if (status != LEAT_OK)
		return status;
	entries->entry[entries->count++] = (struct entry){
		.at = entries->text.len,
		.size = found->is_missing ? LEAT_NO_FILE : found->size,
		.token = found->is_missing ? 0 : found->token,
	};
	leat_str_addn(&entries->text, found->name, strlen(found->name) + 1);
	return entries->text.failed ? leat_fail_mem(err, entries->mem, entries->text.len, "the names in a folder")
	                            : LEAT_OK;
}

static int
compare_names(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static void
entries_sort(struct entries *entries)
{
	for (size_t i = 0; i < entries->count; i++)
		entries->entry[i].name = leat_str_text(&entries->text) + entries->entry[i].at;
	if (entries->count > 1)
		qsort(entries->entry, entries->count, sizeof(*entries->entry), compare_names);
}

/* ---- reading one folder ---- */

/* Contents of one folder: subfolders, images (NULL: count them as others), number of other files and the first one. */
struct listing {
	struct entries *folders, *images;
	uint64_t *others;
	char **other;
	const struct leat_confine *confine;
	const char *uri; /* of the folder */
	struct leat_outside outside;
};

static enum leat_status
take_other(struct listing *listing, const char *name, struct leat_err *err)
{
	struct leat_mem *mem = listing->folders->mem;

	++*listing->others;
	if (*listing->other && strcmp(*listing->other, name) < 0)
		return LEAT_OK;
	leat_free(mem, *listing->other);
	*listing->other = leat_strdup(mem, name);
	return *listing->other ? LEAT_OK : leat_fail_mem(err, mem, strlen(name) + 1, "the names in a folder");
}

static enum leat_status
check_link(struct listing *listing, const char *name, struct leat_err *err)
{
	struct leat_object link = {.folder = listing->uri, .uri = name, .uri_len = strlen(name)};
	char buf[LEAT_URI];
	const char *uri = leat_object_uri(&link, buf);

	return uri ? leat_confine_link(listing->confine, uri, &listing->outside, err)
	           : leat_fail(err, LEAT_DATA, "the name of a file below '%s' is too long", listing->uri);
}

/* An index, a manifest or a cache, which need not be mentioned. */
static bool
is_our_own(const char *name)
{
	const char *extension = strrchr(name, '.');

	return name[0] == '.' && extension && strncmp(extension, ".leat", 5) == 0;
}

static enum leat_status
take_entry(void *arg, const struct leat_entry *entry, struct leat_err *err)
{
	struct listing *listing = arg;
	enum leat_status status = LEAT_OK;

	if (!entry->is_folder && is_our_own(entry->name))
		return LEAT_OK;
	if (!entry->is_folder && !(listing->images && leat_is_image_name(entry->name)))
		return take_other(listing, entry->name, err);
	if (entry->is_link)
		status = check_link(listing, entry->name, err);
	if (status != LEAT_OK)
		return status;
	return entries_add(entry->is_folder ? listing->folders : listing->images, entry, err);
}

static enum leat_status
list_folder(const struct walk *walk, struct place *place, struct listing *listing, struct leat_err *err)
{
	struct leat_object folder = {.folder = walk->path, .uri = place->path, .uri_len = strlen(place->path)};
	char buf[LEAT_URI];
	const char *uri = *place->path ? leat_object_uri(&folder, buf) : walk->path;
	enum leat_status status, links;

	if (!uri)
		return leat_fail(err, LEAT_DATA, "the name of a folder below '%s' is too long", walk->path);
	listing->confine = walk->confine;
	listing->uri = uri;
	status = walk->store->kind->list_folder(walk->store, uri, take_entry, listing, &place->id, err);
	links = leat_confine_end_links(walk->confine, &listing->outside, err);
	if (status == LEAT_OK)
		status = links;
	if (status == LEAT_OK) {
		entries_sort(listing->folders);
		if (listing->images)
			entries_sort(listing->images);
	}
	return status;
}

/* ---- walking one class ---- */

static enum leat_status
add_place(const struct walk *walk, struct group *group, size_t parent, const char *name, struct leat_err *err)
{
	const char *above = parent == NO_PLACE ? "" : group->place[parent].path;
	struct place *place;
	enum leat_status status =
		LEAT_GROW(walk->mem, group->place, group->cap, group->places + 1, SIZE_MAX, "the list of folders", err);

	if (status != LEAT_OK)
		return status;
	place = &group->place[group->places];
	place->parent = parent;
	place->path = leat_asprintf(walk->mem, "%s%s%s", above, *above ? "/" : "", name);
	if (!place->path)
		return leat_fail_mem(err, walk->mem, strlen(above) + strlen(name) + 2, "the list of folders");
	leat_file_table_build_init(&place->files, walk->mem);
	group->places++;
	return LEAT_OK;
}

static bool
is_same(const struct place *a, const struct place *b)
{
	return a->id.id[0] == b->id.id[0] && a->id.id[1] == b->id.id[1];
}

/* A symlink may point to a parent folder, which would recurse forever. */
static enum leat_status
check_loop(const struct walk *walk, const struct group *group, size_t i, struct leat_err *err)
{
	const struct place *place = &group->place[i];
	bool same = is_same(place, &walk->root);

	for (size_t above = place->parent; above != NO_PLACE && !same; above = group->place[above].parent)
		same = is_same(place, &group->place[above]);
	return same ? leat_fail(err, LEAT_DATA, "'%s/%s' is a symlink to one of its parent folders; remove it",
	                        walk->path, place->path)
	            : LEAT_OK;
}

static enum leat_status
add_images(struct place *place, const struct entries *images, struct leat_mem *mem, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < images->count && status == LEAT_OK; i++) {
		const struct entry *image = &images->entry[i];
		char *path = leat_asprintf(mem, "%s/%s", place->path, image->name);

		if (!path)
			return leat_fail_mem(err, mem, strlen(place->path) + 256, "the name of a file");
		status = leat_file_table_add(&place->files, path, strlen(path), err);
		if (status == LEAT_OK) {
			place->files.size[i] = image->size;
			place->files.token[i] = image->token;
		}
		leat_free(mem, path);
	}
	return status;
}

/* Reads folder `i` of the class and queues its subfolders. */
static enum leat_status
walk_place(const struct walk *walk, struct group *group, size_t i, struct leat_err *err)
{
	struct entries folders, images;
	struct listing listing = {
		.folders = &folders,
		.images = &images,
		.others = &group->left_out,
		.other = &group->place[i].other,
	};
	enum leat_status status;

	entries_init(&folders, walk->mem);
	entries_init(&images, walk->mem);
	status = list_folder(walk, &group->place[i], &listing, err);
	if (status == LEAT_OK)
		status = check_loop(walk, group, i, err);
	if (status == LEAT_OK)
		status = add_images(&group->place[i], &images, walk->mem, err);
	for (size_t k = 0; k < folders.count && status == LEAT_OK; k++)
		status = add_place(walk, group, i, folders.entry[k].name, err);
	group->files += images.count;
	entries_free(&folders);
	entries_free(&images);
	return status;
}

static int
compare_places(const void *a, const void *b)
{
	return strcmp(((const struct place *)a)->path, ((const struct place *)b)->path);
}

/* Says what is in the class folder instead of images. */
static enum leat_status
fail_empty(const struct walk *walk, const struct group *group, const char *name, struct leat_err *err)
{
	const struct place *place = group->place;

	while (group->left_out && !place->other)
		place++;
	if (!group->left_out)
		return leat_fail(err, LEAT_DATA, "class folder '%s/%s' has no files; remove it", walk->path, name);
	return leat_fail(err, LEAT_DATA,
	                 "class folder '%s/%s' has no images that can be decoded (%s), only %llu other file%s, such as "
	                 "'%s/%s'; convert or remove them",
	                 walk->path, name, leat_image_extensions, (unsigned long long)group->left_out,
	                 leat_plural(group->left_out), place->path, place->other);
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
		status = fail_empty(walk, group, walk->names.value[i], err);
	if (status == LEAT_OK)
		qsort(group->place, group->places, sizeof(*group->place), compare_places);
	return status;
}

/* ---- all together ---- */

/* Contents of the sections. */
struct result {
	struct leat_file_table_build files;
	struct leat_file_table_build places; /* folders; only names and tokens, which are mtimes, are used */
	uint64_t *classes;
	uint64_t *left_out;
	uint64_t left_out_bytes;
};

static enum leat_status
add_time(struct leat_file_table_build *places, const char *path, int64_t time, struct leat_err *err)
{
	enum leat_status status = leat_file_table_add(places, path, strlen(path), err);

	if (status == LEAT_OK)
		places->token[places->count - 1] = (uint64_t)time;
	return status;
}

static enum leat_status
add_group(struct result *result, struct group *group, int64_t *newest, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < group->places && status == LEAT_OK; i++) {
		struct place *place = &group->place[i];

		status = add_time(&result->places, place->path, place->id.mtime_ns, err);
		if (status == LEAT_OK)
			status = leat_file_table_append(&result->files, &place->files, err);
		if (place->id.mtime_ns > *newest)
			*newest = place->id.mtime_ns;
	}
	return status;
}

/* Counts the files that are not images, and names the first. */
static enum leat_status
add_left_out(struct result *result, const struct walk *walk, struct leat_err *err)
{
	const struct place *first = &walk->root;
	uint64_t count = walk->left_out;
	size_t len;

	for (size_t i = 0; i < walk->names.count; i++) {
		const struct group *group = &walk->group[i];

		for (size_t k = 0; k < group->places && !first->other; k++)
			first = &group->place[k];
		count += group->left_out;
	}
	len = first->other ? strlen(first->path) + 1 + strlen(first->other) : 0;
	result->left_out = leat_alloc(walk->mem, sizeof(count) + len + 1);
	if (!result->left_out)
		return leat_fail_mem(err, walk->mem, sizeof(count) + len + 1, "the name of a file");
	*result->left_out = count;
	if (len)
		len = (size_t)sprintf((char *)(result->left_out + 1), "%s%s%s", first->path, *first->path ? "/" : "",
		                      first->other);
	result->left_out_bytes = sizeof(count) + len;
	return LEAT_OK;
}

static enum leat_status
add_sections(struct result *result, size_t classes, struct leat_sidecar *sidecar, struct leat_err *err)
{
	uint64_t names_len = result->places.names.len;
	enum leat_status status;
	char *names = leat_str_take(&result->places.names);

	if (!names)
		return leat_fail_mem(err, sidecar->mem, names_len, "the list of folders");
	status = leat_file_table_finish(&result->files, "", 0, sidecar, err);
	if (status != LEAT_OK) {
		leat_free(sidecar->mem, names);
		return status;
	}
	leat_sidecar_add_take(sidecar, result->classes, (classes + 1) * sizeof(*result->classes));
	leat_sidecar_add_take(sidecar, result->places.name_at, (result->places.count + 1) * sizeof(uint64_t));
	leat_sidecar_add_take(sidecar, names, names_len);
	leat_sidecar_add_take(sidecar, result->places.token, result->places.count * sizeof(uint64_t));
	leat_sidecar_add_take(sidecar, result->left_out, result->left_out_bytes);
	result->classes = result->left_out = result->places.name_at = result->places.token = NULL;
	return LEAT_OK;
}

static enum leat_status
gather(const struct walk *walk, struct leat_sidecar *sidecar, int64_t *newest, struct leat_err *err)
{
	size_t classes = walk->names.count;
	struct result result = {.classes = leat_alloc_array(walk->mem, classes + 1, sizeof(*result.classes))};
	enum leat_status status = LEAT_OK;

	leat_file_table_build_init(&result.files, walk->mem);
	leat_file_table_build_init(&result.places, walk->mem);
	if (!result.classes)
		status = leat_fail_mem(err, walk->mem, (classes + 1) * sizeof(*result.classes), "the classes");
	if (status == LEAT_OK)
		status = add_time(&result.places, "", walk->root.id.mtime_ns, err);
	if (status == LEAT_OK)
		status = add_left_out(&result, walk, err);
	*newest = walk->root.id.mtime_ns;
	for (size_t i = 0; i < classes && status == LEAT_OK; i++) {
		status = add_group(&result, &walk->group[i], newest, err);
		result.classes[i + 1] = result.files.count;
	}
	if (status == LEAT_OK)
		status = add_sections(&result, classes, sidecar, err);
	leat_file_table_build_free(&result.files);
	leat_file_table_build_free(&result.places);
	leat_free(walk->mem, result.classes);
	leat_free(walk->mem, result.left_out);
	return status;
}

static void
free_group(struct group *group, struct leat_mem *mem)
{
	for (size_t i = 0; i < group->places; i++) {
		leat_free(mem, group->place[i].path);
		leat_free(mem, group->place[i].other);
		leat_file_table_build_free(&group->place[i].files);
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

static enum leat_status
name_classes(struct walk *walk, const struct entries *classes, struct leat_err *err)
{
	const char **names = leat_alloc_array(walk->mem, classes->count, sizeof(*names));

	if (!names)
		return leat_fail_mem(err, walk->mem, classes->count * sizeof(*names), "the classes");
	for (size_t i = 0; i < classes->count; i++)
		names[i] = classes->entry[i].name;
	walk->names = (struct leat_strings){classes->count, names};
	return LEAT_OK;
}

enum leat_status
leat_folder_walk(const struct leat_confine *confine, unsigned threads, struct leat_mem *mem,
                 struct leat_sidecar *sidecar, int64_t *newest, struct leat_err *err)
{
	const char *root = confine->folder;
	char here[] = "";
	struct walk walk = {
		.confine = confine,
		.store = confine->own.store,
		.path = root,
		.root = {.path = here},
		.mem = mem,
	};
	struct entries classes;
	struct listing listing = {.folders = &classes, .others = &walk.left_out, .other = &walk.root.other};
	uint64_t begin = leat_now();
	enum leat_status status;

	entries_init(&classes, mem);
	status = list_folder(&walk, &walk.root, &listing, err);
	if (status == LEAT_OK && classes.count == 0)
		status = leat_fail(err, LEAT_DATA,
		                   "'%s' has no subfolders; expected one per class, as in '%s/cat/1.jpg'", root, root);
	if (status == LEAT_OK)
		status = name_classes(&walk, &classes, err);
	if (status == LEAT_OK)
		status = walk_groups(&walk, threads, sidecar, newest, err);
	leat_free(mem, walk.names.value);
	leat_free(mem, walk.root.other);
	entries_free(&classes);
	if (walk.store->stores)
		atomic_fetch_add_explicit(&walk.store->stores->list_ns, leat_now() - begin, memory_order_relaxed);
	return status;
}

void
leat_folder_left_out(const struct leat_sidecar *sidecar, struct leat_folder_left_out *left_out)
{
	const struct leat_section *section = &sidecar->section[LEAT_FOLDER_LEFT_OUT];
	const uint64_t *count = section->data;

	*left_out = (struct leat_folder_left_out){*count, (const char *)(count + 1), (int)(section->bytes - 8)};
}
