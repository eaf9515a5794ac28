/* pack_list.c - list the samples for `leat pack`, using the listers of the sources folder and list */
#include "cli/pack_list.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "format/folder.h"

/* ---- reading a file ---- */

enum leat_status
leat_content_read(struct leat_content *c, const struct leat_object *object, struct leat_err *err)
{
	char buf[LEAT_URI];
	enum leat_status status;
	struct iovec iov;
	size_t got;

	if (object->size == 0)
		return leat_fail(err, LEAT_DATA, "'%s' is empty", leat_object_uri(object, buf));
	if (object->size > c->max)
		return leat_fail(err, LEAT_LIMIT, "'%s' has %llu bytes, more than max_bytes=%llu allows",
		                 leat_object_uri(object, buf), (unsigned long long)object->size,
		                 (unsigned long long)c->max);
	c->len = (size_t)object->size;
	status = LEAT_GROW_RAW(c->mem, c->bytes, c->cap, c->len, SIZE_MAX, "the content of a file", err);
	if (status != LEAT_OK)
		return status;
	iov = (struct iovec){c->bytes, c->len};
	return leat_object_read(object, 0, &iov, 1, 0, &got, err);
}

/* ---- the list ---- */

void
leat_pack_list_init(struct leat_pack_list *list, struct leat_mem *mem)
{
	*list = (struct leat_pack_list){.mem = mem};
	leat_sidecar_init(&list->sidecar, mem);
}

void
leat_pack_list_free(struct leat_pack_list *list)
{
	leat_sidecar_free(&list->sidecar);
	leat_csv_table_free(&list->table);
	leat_confine_close(&list->confine);
	leat_free(list->mem, list->root);
	leat_free(list->mem, list->label);
	leat_free(list->mem, list->class);
	leat_free(list->mem, list->left_out_first);
	*list = (struct leat_pack_list){0};
}

/* Takes the files from the sidecar. *missing is the first missing file, or the number of files. */
static enum leat_status
take_files(struct leat_pack_list *list, struct leat_store *store, size_t *missing, struct leat_err *err)
{
	if (!leat_file_table_read(&list->files, &list->sidecar))
		return leat_fail(err, LEAT_INTERNAL, "the new list of files is invalid");
	list->files.has_uris = list->confine.has_uris;
	leat_file_table_place(&list->files, store, list->root, "pack again");
	list->count = (size_t)list->files.count;
	list->label = leat_alloc_array(list->mem, list->count, sizeof(*list->label));
	if (!list->label)
		return leat_fail_mem(err, list->mem, list->count * sizeof(*list->label), "the labels");
	for (*missing = 0; *missing < list->count && list->files.size[*missing] != LEAT_NO_FILE; ++*missing)
		list->bytes += list->files.size[*missing];
	return LEAT_OK;
}

static enum leat_status
fail_missing(const struct leat_pack_list *list, size_t i, struct leat_err *err)
{
	struct leat_object object;

	leat_file_table_object(&list->files, i, &object);
	return leat_file_table_describe_missing(&object, err);
}

static enum leat_status
make_classes(struct leat_pack_list *list, size_t count, struct leat_err *err)
{
	list->class = leat_alloc_array(list->mem, count, sizeof(*list->class));
	return list->class ? LEAT_OK : leat_fail_mem(err, list->mem, count * sizeof(*list->class), "the classes");
}

/* The class name of sample `i`: its folder, or its label in the list. */
static const char *
class_of(const struct leat_pack_list *list, size_t i, size_t *len)
{
	const struct leat_csv_column *column = list->table.column;
	const uint64_t *at;
	const char *name;

	if (!list->table.columns) {
		name = list->files.names + list->files.name_at[i];
		*len = (size_t)(list->files.name_at[i + 1] - list->files.name_at[i]);
		*len = (size_t)((const char *)memchr(name, '/', *len) - name);
		return name;
	}
	at = column->values;
	*len = (size_t)(at[i + 1] - at[i]);
	return leat_str_text(&column->text) + at[i];
}

void
leat_pack_sample(const struct leat_pack_list *list, uint64_t i, struct leat_pack_sample *sample)
{
	leat_file_table_object(&list->files, i, &sample->object);
	sample->name = sample->object.uri;
	sample->name_len = sample->object.uri_len;
	sample->class_name = class_of(list, (size_t)i, &sample->class_len);
	sample->label = list->label[i];
}

/* ---- folders ---- */

static enum leat_status
take_left_out(struct leat_pack_list *list, struct leat_err *err)
{
	struct leat_folder_left_out left_out;

	leat_folder_left_out(&list->sidecar, &left_out);
	list->left_out = left_out.count;
	list->left_out_first = leat_asprintf(list->mem, "%s/%.*s", list->root, left_out.len, left_out.first);
	return list->left_out_first ? LEAT_OK : leat_fail_mem(err, list->mem, (size_t)left_out.len + 1, "a file name");
}

static enum leat_status
label_folders(struct leat_pack_list *list, struct leat_err *err)
{
	const struct leat_section *section = &list->sidecar.section[LEAT_FOLDER_CLASSES];
	const uint64_t *first = section->data;
	enum leat_status status;

	list->classes = (size_t)(section->bytes / sizeof(*first)) - 1;
	status = make_classes(list, list->classes, err);
	for (size_t c = 0; c < list->classes && status == LEAT_OK; c++) {
		struct leat_pack_class *class = &list->class[c];

		class->name = class_of(list, (size_t)first[c], &class->len);
		class->samples = (size_t)(first[c + 1] - first[c]);
		for (size_t i = (size_t)first[c]; i < first[c + 1]; i++)
			list->label[i] = (int64_t)c;
	}
	return status;
}

enum leat_status
leat_pack_list_folder(struct leat_pack_list *list, struct leat_store *store, const char *uri, const char *root,
                      unsigned threads, struct leat_err *err)
{
	size_t len = strlen(uri), missing;
	enum leat_status status;
	int64_t newest;

	while (len > 1 && uri[len - 1] == '/')
		len--;
	list->root = leat_strndup(list->mem, uri, len);
	if (!list->root)
		return leat_fail_mem(err, list->mem, len + 1, "a file name");
	status = leat_confine_open(&list->confine, store->stores, store, list->root, root, list->mem, err);
	if (status == LEAT_OK)
		status = leat_folder_walk(&list->confine, threads, list->mem, &list->sidecar, &newest, err);
	if (status == LEAT_OK)
		status = take_files(list, store, &missing, err);
	if (status == LEAT_OK && missing < list->count)
		status = fail_missing(list, missing, err);
	if (status == LEAT_OK)
		status = take_left_out(list, err);
	return status == LEAT_OK ? label_folders(list, err) : status;
}

/* ---- CSV ---- */

/* Ignores case and surrounding blanks. */
static bool
is_one_of(const char *cell, const char *const *names)
{
	size_t len;

	cell += strspn(cell, " \t");
	len = strcspn(cell, " \t");
	for (; *names; names++)
		if (strlen(*names) == len && strncasecmp(cell, *names, len) == 0 &&
		    !cell[len + strspn(cell + len, " \t")])
			return true;
	return false;
}

/* The first row is a header if it names both columns. */
static bool
is_header(struct leat_csv_row *row)
{
	static const char *const paths[] = {"path", "file", "filename", "file_name", "image", "image_path", NULL};
	static const char *const labels[] = {"label", "class", "category", "target", NULL};
	size_t path = row->cells, label = row->cells;

	for (size_t i = row->cells; i-- > 0;) {
		if (is_one_of(row->cell[i], paths))
			path = i;
		else if (is_one_of(row->cell[i], labels))
			label = i;
	}
	if (path == row->cells || label == row->cells)
		return false;
	row->cell[path] = "path";
	row->cell[label] = "label";
	return true;
}

/* Uses the labels as numbers if all are integers. */
static bool
take_numbers(struct leat_pack_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		char number[64];
		size_t len;
		const char *text = class_of(list, i, &len);

		if (len >= sizeof(number))
			return false;
		memcpy(number, text, len);
		number[len] = '\0';
		if (!leat_csv_read_int(number, &list->label[i]))
			return false;
	}
	return true;
}

/* Compares bytes, as for folder names. */
static int
compare_classes(const void *a, const void *b)
{
	const struct leat_pack_class *s = a, *t = b;
	int order = memcmp(s->name, t->name, s->len < t->len ? s->len : t->len);

	return order ? order : (s->len > t->len) - (s->len < t->len);
}

static enum leat_status
number_classes(struct leat_pack_list *list, struct leat_err *err)
{
	enum leat_status status = make_classes(list, list->count, err);
	struct leat_pack_class *class = list->class;

	if (status != LEAT_OK)
		return status;
	for (size_t i = 0; i < list->count; i++)
		class[i].name = class_of(list, i, &class[i].len);
	qsort(class, list->count, sizeof(*class), compare_classes);
	for (size_t i = 0; i < list->count; i++)
		if (i == 0 || compare_classes(&class[list->classes - 1], &class[i]) != 0)
			class[list->classes++] = class[i];
	for (size_t i = 0; i < list->count; i++) {
		struct leat_pack_class key = {0}, *found;

		key.name = class_of(list, i, &key.len);
		found = bsearch(&key, class, list->classes, sizeof(*class), compare_classes);
		found->samples++;
		list->label[i] = found - class;
	}
	return LEAT_OK;
}

/* Where the files of a list go. */
struct listed {
	struct leat_file_table_build build;
	struct leat_confine *confine;
	unsigned threads;
};

/* Looks up the sizes of listed files, as long as none leads outside. */
static enum leat_status
add_files(void *arg, const char *const *path, const uint64_t *line, size_t count, struct leat_err *err)
{
	struct listed *listed = arg;
	enum leat_status status = leat_confine_rows(listed->confine, path, line, count, err);

	if (status != LEAT_OK || listed->confine->outside.name)
		return status;
	return leat_file_table_add_all(&listed->build, path, count, listed->confine, listed->threads, err);
}

/* Checks that every row has a label and an existing file. */
static enum leat_status
check_rows(const struct leat_pack_list *list, size_t missing, const char *csv, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	size_t i = 0, len = 1;

	while (i < list->count && i != missing && len) {
		class_of(list, i, &len);
		i += len > 0;
	}
	if (i < list->count && !len)
		status = leat_fail(err, LEAT_DATA, "the label is empty");
	else if (i < list->count)
		status = fail_missing(list, i, err);
	if (status != LEAT_OK)
		leat_err_in(err, "'%s': line %llu", csv, (unsigned long long)list->table.line[i]);
	return status;
}

static enum leat_status
read_csv(struct leat_pack_list *list, const char *uri, unsigned threads, const char *text, size_t len,
         struct leat_err *err)
{
	const char *label = "label", *bytes = "bytes";
	struct listed listed = {.confine = &list->confine, .threads = threads};
	const struct leat_csv_wish wish = {"path", {1, &label}, {1, &bytes}, is_header, add_files, &listed, true};
	const struct leat_csv_input input = leat_csv_text_input(text, len);
	enum leat_status status;
	size_t missing;

	leat_file_table_build_init(&listed.build, list->mem);
	leat_confine_begin(&list->confine);
	status = leat_csv_table_parse(&list->table, &input, &wish, list->mem, err);
	if (status == LEAT_OK)
		status = leat_confine_end(&list->confine, err);
	if (status != LEAT_OK)
		leat_err_in(err, "'%s'", uri);
	else
		status = leat_file_table_finish(&listed.build, "", 0, &list->sidecar, err);
	leat_file_table_build_free(&listed.build);
	if (status == LEAT_OK)
		status = take_files(list, list->confine.files, &missing, err);
	if (status == LEAT_OK)
		status = check_rows(list, missing, uri, err);
	return status;
}

enum leat_status
leat_pack_list_csv(struct leat_pack_list *list, struct leat_store *store, const char *uri, const char *root,
                   unsigned threads, struct leat_err *err)
{
	enum leat_status status;
	void *text;
	size_t len;

	list->root = leat_folder_of(uri, list->mem);
	if (!list->root)
		return leat_fail_mem(err, list->mem, strlen(uri) + 1, "a file name");
	status = leat_confine_open(&list->confine, store->stores, store, list->root, root, list->mem, err);
	if (status != LEAT_OK)
		return status;
	status = leat_object_load(store, uri, PTRDIFF_MAX, list->mem, &text, &len, err);
	if (status == LEAT_AGAIN)
		return leat_fail(err, LEAT_IO, "'%s' no longer exists", uri);
	if (status != LEAT_OK)
		return status;
	status = read_csv(list, uri, threads, text, len, err);
	leat_free(list->mem, text);
	if (status != LEAT_OK)
		return status;
	return take_numbers(list) ? LEAT_OK : number_classes(list, err);
}
