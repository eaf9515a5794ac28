/* list.c - the source of files listed in a CSV file, with values for each
 *
 *	list('train.csv')	path,label,weight
 *				cats/1.jpg,0,0.5
 *
 * The first row names the columns. The column `path` names a file, relative to the CSV
 * file's folder and in it (see `root`), whose bytes become the field `image`. Every other column becomes a field:
 * int64 if all its cells are integers, float32 if all are numbers, bytes otherwise. `columns`
 * selects some of them, `types` sets their types. A missing file is a bad sample. The format
 * is RFC 4180; blanks around numbers and column names are ignored.
 *
 * The table and the sizes of the files are saved in a sidecar, `.NAME.leatidx` next to the CSV
 * file or in the user's cache folder, valid until the CSV file or one of the files changes
 * (file_table.h). Missing files are looked up again at each open.
 *
 * Threads: locate and unpack are read-only. */
#include "format/csv_table.h"

#include <string.h>

#include "format/file_table.h"

struct list {
	const char *file, *path, *content, *root;
	struct leat_strings columns, types;
};

#define NAMED(member, type, def, doc) LEAT_OPT_(struct list, member, type, def, 0, 0, NULL, doc, LEAT_OPT_NAMED)

static const struct leat_opt options[] = {
	LEAT_OPT_(struct list, file, LEAT_OPT_STRING, LEAT_REQUIRED, 0, 0, NULL, "CSV file", LEAT_OPT_LOCATION),
	NAMED(path, LEAT_OPT_STRING, "path", "column of file names, relative to the CSV file's folder"),
	NAMED(content, LEAT_OPT_STRING, "image", "field for the bytes of the files"),
	NAMED(columns, LEAT_OPT_STRINGS, "[]", "other columns to read as fields; []: all"),
	NAMED(types, LEAT_OPT_STRINGS, "[]", "types of these columns: auto, int64, float or bytes; []: all auto"),
	LEAT_OPT_(struct list, root, LEAT_OPT_STRING, "", 0, 0, NULL,
                  "folder that files may be in besides the CSV file's own; '/': anywhere",
                  LEAT_OPT_NAMED | LEAT_OPT_LOCATION | LEAT_OPT_NEW),
	LEAT_OPT_END,
};

/* Sections of the sidecar, after those of the file table: the columns, then the values and text of each. */
enum { COLUMNS = LEAT_FILE_TABLE_SECTIONS, FIRST_COLUMN };

struct column_head {
	uint64_t type;
	char name[LEAT_MAX_NAME + 1];
};

struct column {
	enum leat_csv_type type;
	const char *name;
	const void *values;
	const char *text;
	uint64_t text_len, longest; /* BYTES only */
};

struct state {
	struct leat_files *csv;
	char *folder;
	struct leat_confine confine;
	unsigned threads; /* for opening */
	struct leat_mem *mem;
	struct leat_sidecar sidecar;
	struct leat_file_table files;
	uint64_t first[2]; /* backs source->first: all samples are one part */
	size_t columns;
	struct column column[LEAT_MAX_FIELDS];
};

static void
close_source(struct leat_source *source)
{
	struct state *state = source->state;

	if (!state)
		return;
	leat_confine_close(&state->confine);
	leat_files_close(state->csv);
	leat_sidecar_free(&state->sidecar);
	leat_free(source->mem, state->folder);
	leat_free(source->mem, state);
}

/* ---- from a sidecar ---- */

static bool
read_text(struct column *column, const struct leat_section *values, const struct leat_section *text, uint64_t count)
{
	const uint64_t *at = values->data;

	if (values->bytes != (count + 1) * sizeof(*at) || at[0] != 0 || at[count] != text->bytes)
		return false;
	for (uint64_t i = 0; i < count; i++) {
		if (at[i] > at[i + 1])
			return false;
		if (at[i + 1] - at[i] > column->longest)
			column->longest = at[i + 1] - at[i];
	}
	column->text = text->data;
	column->text_len = text->bytes;
	return true;
}

/* Reads the columns of a sidecar, after its file table. False: invalid. */
static bool
read_columns(struct state *state, const struct leat_sidecar *sidecar)
{
	const struct leat_section *columns = &sidecar->section[COLUMNS];
	const struct column_head *head = columns->data;
	uint64_t count = columns->bytes / sizeof(*head);

	if (sidecar->sections <= COLUMNS || count >= LEAT_MAX_FIELDS || columns->bytes != count * sizeof(*head) ||
	    sidecar->sections != FIRST_COLUMN + 2 * count)
		return false;
	state->columns = (size_t)count;
	for (size_t i = 0; i < count; i++) {
		const struct leat_section *values = &sidecar->section[FIRST_COLUMN + 2 * i];
		struct column *column = &state->column[i];

		if (head[i].type < LEAT_CSV_INT64 || head[i].type > LEAT_CSV_BYTES || !head[i].name[0] ||
		    memchr(head[i].name, '\0', sizeof(head[i].name)) == NULL)
			return false;
		*column = (struct column){(enum leat_csv_type)head[i].type, head[i].name, values->data, NULL, 0, 0};
		if (column->type == LEAT_CSV_BYTES
		            ? !read_text(column, values, values + 1, state->files.count)
		            : values->bytes != state->files.count * leat_csv_value_size(column->type))
			return false;
	}
	return true;
}

static bool
read_sidecar(struct state *state, const struct leat_sidecar *sidecar)
{
	return leat_file_table_read(&state->files, sidecar) && read_columns(state, sidecar);
}

/* An index may name only what the CSV file could. Names that are not plain are as they were listed. */
static bool
names_are_allowed(struct state *state)
{
	const struct leat_file_table *files = &state->files;

	state->confine.files = state->confine.own.store;
	state->confine.has_uris = false;
	return leat_file_table_is_plain(files) ||
	       leat_confine_accepts(&state->confine, files->names, files->name_at, files->count);
}

/* For leat_sidecar_load. */
static const char *
fault(void *arg, const struct leat_sidecar *sidecar, bool *stale)
{
	struct state *state = arg;

	if (!read_sidecar(state, sidecar))
		return "it is invalid";
	if (!names_are_allowed(state))
		return "it names files outside the folder";
	*stale =
		leat_file_table_changed(&state->files, state->confine.files, state->folder, state->threads, state->mem);
	return *stale ? "a file has changed" : NULL;
}

/* What the sidecar depends on besides the files: the CSV file and the options. */
static enum leat_status
make_key(const struct leat_source *source, const struct state *state, uint8_t key[LEAT_SHA256_BYTES],
         struct leat_err *err)
{
	const struct list *list = source->params;
	const struct leat_strings *lists[] = {&list->columns, &list->types};
	const struct leat_object *csv = leat_files_at(state->csv, 0);
	const char *root = state->confine.root.real ? state->confine.root.real : "";
	struct leat_sha256 *sha = leat_sha256_new();

	if (!sha)
		return leat_fail(err, LEAT_NOMEM, "no memory for the key of an index");
	leat_fingerprint_number(sha, leat_object_token(csv));
	leat_fingerprint_text(sha, list->path, strlen(list->path));
	leat_fingerprint_text(sha, root, strlen(root));
	for (size_t k = 0; k < 2; k++) {
		leat_fingerprint_number(sha, lists[k]->count);
		for (size_t i = 0; i < lists[k]->count; i++)
			leat_fingerprint_text(sha, lists[k]->value[i], strlen(lists[k]->value[i]));
	}
	leat_sha256_end(sha, key);
	leat_sha256_free(sha);
	return LEAT_OK;
}

/* ---- from the CSV file ---- */

/* Reads the CSV file, and adds the files that it lists. */
struct reading {
	struct leat_files *csv;
	struct leat_sha256 *sha;
	uint64_t hashed; /* bytes; the file is read twice */
	struct leat_file_table_build build;
	struct leat_confine *confine;
	unsigned threads;
};

static enum leat_status
read_csv(void *arg, uint64_t offset, void *to, size_t len, struct leat_err *err)
{
	struct reading *reading = arg;
	struct iovec iov = {to, len};
	size_t got;
	enum leat_status status = leat_files_read(reading->csv, 0, offset, &iov, 1, 0, &got, err);

	if (status == LEAT_OK && offset == reading->hashed) {
		leat_sha256_add(reading->sha, to, len);
		reading->hashed += len;
	}
	return status;
}

/* Once a name leads outside, the list is refused, and no file is looked at any more. */
static enum leat_status
add_files(void *arg, const char *const *path, const uint64_t *line, size_t count, struct leat_err *err)
{
	struct reading *reading = arg;
	enum leat_status status = leat_confine_rows(reading->confine, path, line, count, err);

	if (status != LEAT_OK || reading->confine->outside.name)
		return status;
	return leat_file_table_add_all(&reading->build, path, count, reading->confine, reading->threads, err);
}

/* Moves the columns into the sidecar. */
static enum leat_status
add_columns(struct leat_csv_table *table, struct leat_sidecar *sidecar, struct leat_err *err)
{
	struct column_head *head = leat_alloc_array(table->mem, table->columns, sizeof(*head));

	if (!head)
		return leat_fail_mem(err, table->mem, table->columns * sizeof(*head), "the columns of a list");
	for (size_t i = 0; i < table->columns; i++) {
		head[i].type = table->column[i].type;
		strcpy(head[i].name, table->column[i].name);
	}
	leat_sidecar_add_take(sidecar, head, table->columns * sizeof(*head));
	for (size_t i = 0; i < table->columns; i++) {
		struct leat_csv_column *column = &table->column[i];
		uint64_t values = table->rows + (column->type == LEAT_CSV_BYTES), text_len = column->text.len;
		char *text = leat_str_take(&column->text);

		if (!text)
			return leat_fail_mem(err, table->mem, 1, "the texts of a list");
		leat_sidecar_add_take(sidecar, column->values, values * leat_csv_value_size(column->type));
		leat_sidecar_add_take(sidecar, text, text_len);
		column->values = NULL;
	}
	return LEAT_OK;
}

static enum leat_status
fill_sidecar(const struct leat_source *source, struct state *state, struct reading *reading, struct leat_err *err)
{
	const struct leat_object *csv = leat_files_at(state->csv, 0);
	const struct list *list = source->params;
	const struct leat_csv_wish wish = {.path = list->path,
	                                   .columns = list->columns,
	                                   .types = list->types,
	                                   .take_paths = add_files,
	                                   .arg = reading};
	const struct leat_csv_input input = {read_csv, reading, csv->size};
	struct leat_csv_table table;
	uint8_t digest[LEAT_SHA256_BYTES];
	enum leat_status status = leat_csv_table_parse(&table, &input, &wish, source->mem, err);

	if (status == LEAT_OK)
		status = leat_confine_end(&state->confine, err);
	if (status != LEAT_OK) {
		leat_err_in(err, "'%s'", csv->uri);
		leat_csv_table_free(&table);
		return status;
	}
	leat_sha256_end(reading->sha, digest);
	status = leat_file_table_finish(&reading->build, digest, sizeof(digest), &state->sidecar, err);
	if (status == LEAT_OK)
		status = add_columns(&table, &state->sidecar, err);
	leat_csv_table_free(&table);
	return status;
}

static enum leat_status
look_anew(const struct leat_source *source, struct state *state, const struct leat_sidecar_of *of, unsigned threads,
          struct leat_err *err)
{
	const struct leat_object *csv = leat_files_at(state->csv, 0);
	struct reading reading = {
		.csv = state->csv,
		.sha = leat_sha256_new(),
		.confine = &state->confine,
		.threads = threads,
	};
	int64_t begin = leat_file_table_now();
	enum leat_status status;

	if (!reading.sha)
		return leat_fail(err, LEAT_NOMEM, "no memory for the fingerprint of the data");
	leat_file_table_build_init(&reading.build, source->mem);
	leat_confine_begin(&state->confine);
	status = fill_sidecar(source, state, &reading, err);
	leat_file_table_build_free(&reading.build);
	leat_sha256_free(reading.sha);
	if (status == LEAT_OK)
		leat_file_table_keep(source, &state->sidecar, of, csv->uri, csv->mtime_ns, begin);
	return status;
}

/* ---- opening ---- */

static enum leat_status
find_csv(struct leat_source *source, struct state *state, struct leat_err *err)
{
	const struct list *list = source->params;
	enum leat_status status = leat_files_open(&state->csv, &source->stores, &list->file, 1, source->mem, err);
	const char *uri;

	if (status != LEAT_OK)
		return status;
	if (leat_files_count(state->csv) != 1)
		return leat_fail(err, LEAT_INVALID, "'%s' matches %zu files; 'list' takes one", list->file,
		                 leat_files_count(state->csv));
	uri = leat_files_at(state->csv, 0)->uri;
	state->folder = leat_folder_of(uri, source->mem);
	if (!state->folder)
		return leat_fail_mem(err, source->mem, strlen(uri) + 1, "the folder's name");
	status = leat_confine_open(&state->confine, &source->stores, leat_files_at(state->csv, 0)->store, state->folder,
	                           list->root, source->mem, err);
	state->confine.source = "list";
	state->confine.data = list->file;
	return status;
}

static enum leat_status
add_field(struct leat_source *source, const char *name, enum leat_csv_type type, size_t extra, bool outside,
          struct leat_err *err)
{
	static const enum leat_dtype dtypes[] = {LEAT_U8, LEAT_I64, LEAT_F32, LEAT_U8};
	struct leat_field *field = leat_schema_add(&source->schema, name, dtypes[type]);
	const struct list *list = source->params;

	if (!field && strcmp(name, list->content) == 0)
		return leat_fail(
			err, LEAT_INVALID,
			"column '%s' has the same name as the field for the files; rename that with content=NAME",
			name);
	if (!field)
		return leat_fail(err, LEAT_INTERNAL, "the field '%s' cannot be added", name);
	if (type == LEAT_CSV_BYTES) {
		field->ndim = 1;
		field->shape[0] = -1;
		source->schema.entry[source->schema.count - 1].outside_payload = outside;
		source->schema.entry[source->schema.count - 1].extra_elements = extra;
	}
	return LEAT_OK;
}

static enum leat_status
add_fields(struct leat_source *source, const struct state *state, struct leat_err *err)
{
	const struct list *list = source->params;
	enum leat_status status;

	if (!*list->content || strlen(list->content) > LEAT_MAX_NAME)
		return leat_fail(err, LEAT_INVALID, "content= must be a name of 1 to %d characters", LEAT_MAX_NAME);
	status = add_field(source, list->content, LEAT_CSV_BYTES, 0, false, err);
	for (size_t i = 0; i < state->columns && status == LEAT_OK; i++)
		status = add_field(source, state->column[i].name, state->column[i].type,
		                   (size_t)state->column[i].longest, true, err);
	return status;
}

static enum leat_status
check_missing(const struct leat_source *source, const struct state *state, struct leat_err *err)
{
	const struct leat_file_table *files = &state->files;
	const char *csv = leat_files_at(state->csv, 0)->uri;
	char buf[LEAT_URI];
	size_t i = 0;

	if (!files->missing)
		return LEAT_OK;
	while (files->size[i] != LEAT_NO_FILE)
		i++;
	if (files->missing == files->count)
		return leat_fail(err, LEAT_DATA, "all files listed in '%s' are missing; the first is '%s'", csv,
		                 leat_source_uri(source, i, buf));
	leat_log(source->log, LEAT_LOG_WARN, "%llu of %llu files listed in '%s' %s missing; the first is '%s'",
	         (unsigned long long)files->missing, (unsigned long long)files->count, csv,
	         files->missing == 1 ? "is" : "are", leat_source_uri(source, i, buf));
	return LEAT_OK;
}

/* Opens the source from the sidecar, loaded or built. */
static enum leat_status
use_list(struct leat_source *source, struct state *state, struct leat_err *err)
{
	enum leat_status status;

	if (!read_sidecar(state, &state->sidecar))
		return leat_fail(err, LEAT_INTERNAL, "the table just built is invalid");
	state->first[1] = state->files.count;
	source->first = state->first;
	source->parts = 1;
	state->files.has_uris = state->confine.has_uris;
	leat_file_table_open(&state->files, source, state->confine.files, state->folder, &state->sidecar);
	status = check_missing(source, state, err);
	if (status == LEAT_OK)
		status = add_fields(source, state, err);
	return status;
}

static enum leat_status
open_source(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	struct state *state = source->state = leat_alloc(source->mem, sizeof(*state));
	struct leat_sidecar_of of = {.kind = "list", .fault = fault, .arg = state};
	enum leat_status status;

	if (!state)
		return leat_fail_mem(err, source->mem, sizeof(*state), "a list");
	state->threads = threads;
	state->mem = source->mem;
	status = find_csv(source, state, err);
	if (status == LEAT_OK) {
		of.store = leat_files_at(state->csv, 0)->store;
		of.data = leat_files_at(state->csv, 0)->uri;
		status = make_key(source, state, of.key, err);
	}
	if (status == LEAT_OK)
		status = leat_sidecar_load(&state->sidecar, &of, source->mem, source->log, err);
	if (status == LEAT_AGAIN)
		status = look_anew(source, state, &of, threads, err);
	if (status == LEAT_OK)
		status = use_list(source, state, err);
	if (status != LEAT_OK)
		close_source(source);
	return status;
}

static void
fingerprint(const struct leat_source *source, struct leat_sha256 *sha)
{
	const struct state *state = source->state;

	leat_sha256_add(sha, state->files.digest, LEAT_SHA256_BYTES);
}

/* ---- samples ---- */

static void
locate(const struct leat_source *source, uint64_t sample, struct leat_extent *extent)
{
	const struct state *state = source->state;

	leat_file_table_locate(&state->files, sample, extent);
}

static void
object(const struct leat_source *source, size_t file, struct leat_object *found)
{
	const struct state *state = source->state;

	leat_file_table_object(&state->files, file, found);
}

/* Points `datum` at the value of a row, in the sidecar. */
static void
put_value(const struct column *column, uint64_t row, struct leat_datum *datum)
{
	const uint64_t *at = column->values;

	*datum = (struct leat_datum){.borrowed = true};
	if (column->type == LEAT_CSV_BYTES) {
		datum->data = (void *)(column->text + at[row]);
		datum->dtype = LEAT_U8;
		datum->ndim = 1;
		datum->shape[0] = (int64_t)(at[row + 1] - at[row]);
	} else {
		datum->data = (char *)column->values + row * leat_csv_value_size(column->type);
		datum->dtype = column->type == LEAT_CSV_INT64 ? LEAT_I64 : LEAT_F32;
	}
}

/* Worker threads. */
static enum leat_status
unpack(const struct leat_source *source, const struct leat_raw *raw, struct leat_scratch *scratch,
       struct leat_sample *sample, struct leat_err *err)
{
	const struct state *state = source->state;
	enum leat_status status = leat_file_table_unpack(source, &raw->extent, raw->payload, &sample->field[0], err);

	(void)scratch;
	sample->count = 1 + (int)state->columns;
	for (size_t i = 0; i < state->columns && status == LEAT_OK; i++)
		put_value(&state->column[i], raw->index, &sample->field[1 + i]);
	return status;
}

const struct leat_source_kind leat_source_list = {
	.name = "list",
	.doc = "Read the files listed in a CSV file: their bytes in the field `image`, and one field per other column, "
	       "int64, float32 or bytes depending on its cells. The first row names the columns; a missing file is a "
	       "bad sample.",
	.example = "list('train.csv', path='file', columns=[label]) | decode",
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct list),
	.open = open_source,
	.close = close_source,
	.locate = locate,
	.object = object,
	.unpack = unpack,
	.fingerprint = fingerprint,
};
