/* folder.c - image folders with one subfolder per class, like torchvision's ImageFolder
 *
 *	folder('train')		train/cat/1.jpg, train/cat/more/2.png, train/dog/1.jpg, ...
 *
 * One file is one sample: `image` holds its bytes, `label` the number of its class and, on
 * request, `path` its name relative to the folder. Classes are numbered in order of their
 * names, and their files come in torchvision's order (folder_walk.c). Files that cannot be
 * decoded are skipped, and a warning counts them (image_formats.h has the extensions).
 *
 * The listing is saved in a sidecar, `.NAME.leatidx` next to the folder or in the user's cache
 * folder. It is valid until a folder's mtime changes, as it does when an entry is added,
 * removed or renamed, or a file was overwritten (file_table.h). Folders on servers have no mtime:
 * they are listed at each open, unless `leat index` has saved their listing, which is then used as
 * it is. What was added since is not noticed; what has changed is an error when it is read.
 *
 * Threads: locate and unpack are read-only. */
#include "format/folder.h"

#include <string.h>

#include "format/data_index.h"
#include "format/image_formats.h"

struct folder {
	const char *dir, *root;
	bool path;
};

static const struct leat_opt options[] = {
	LEAT_OPT_(struct folder, dir, LEAT_OPT_STRING, LEAT_REQUIRED, 0, 0, NULL, "folder with one subfolder per class",
                  LEAT_OPT_LOCATION),
	LEAT_OPT_(struct folder, path, LEAT_OPT_BOOL, "false", 0, 1, NULL,
                  "adds the field `path`: the file's name relative to dir", LEAT_OPT_NAMED),
	LEAT_OPT_(struct folder, root, LEAT_OPT_STRING, "", 0, 0, NULL,
                  "folder that symlinks may point to besides dir; '/': anywhere",
                  LEAT_OPT_NAMED | LEAT_OPT_LOCATION | LEAT_OPT_NEW),
	LEAT_OPT_END,
};

struct state {
	struct leat_store *store;
	char *dir;                   /* for messages */
	struct leat_confine confine; /* the sidecar is stored next to the folder's real name */
	bool keeps_times;            /* the store has folder mtimes */
	bool is_remote;              /* only `leat index` saves the listing */
	unsigned threads;            /* for opening */
	struct leat_mem *mem;
	struct leat_sidecar sidecar;
	struct leat_file_table files;
	const uint64_t *classes; /* in the sidecar */
	size_t class_count;
	int64_t *label; /* 0, 1, 2, ...: backs the label fields */
};

static void
close_source(struct leat_source *source)
{
	struct state *state = source->state;

	if (!state)
		return;
	leat_sidecar_free(&state->sidecar);
	leat_free(source->mem, state->dir);
	leat_confine_close(&state->confine);
	leat_free(source->mem, state->label);
	leat_free(source->mem, state);
}

/* ---- the sidecar ---- */

/* The first skipped file has a name if there is one. */
static bool
left_out_makes_sense(const struct leat_sidecar *sidecar)
{
	const struct leat_section *section = &sidecar->section[LEAT_FOLDER_LEFT_OUT];

	return section->bytes >= 8 && section->bytes < 8 + 2 * LEAT_URI &&
	       (*(const uint64_t *)section->data > 0) == (section->bytes > 8);
}

/* Checks the lengths of the sections, and that the offsets of classes and folders are ordered. */
static bool
makes_sense(const struct leat_sidecar *sidecar, const struct leat_file_table *files)
{
	const struct leat_section *section = sidecar->section;
	const uint64_t *classes = section[LEAT_FOLDER_CLASSES].data, *at = section[LEAT_FOLDER_PLACE_AT].data;
	const char *names = section[LEAT_FOLDER_PLACES].data;
	uint64_t count = section[LEAT_FOLDER_CLASSES].bytes / 8, places = section[LEAT_FOLDER_TIMES].bytes / 8;

	if (sidecar->sections != LEAT_FOLDER_SECTIONS || count < 2 || places < 1 ||
	    section[LEAT_FOLDER_CLASSES].bytes % 8 || section[LEAT_FOLDER_TIMES].bytes % 8 ||
	    section[LEAT_FOLDER_PLACE_AT].bytes != (places + 1) * 8 || !left_out_makes_sense(sidecar))
		return false;
	if (classes[0] != 0 || classes[count - 1] != files->count || at[0] != 0 ||
	    at[places] != section[LEAT_FOLDER_PLACES].bytes)
		return false;
	for (uint64_t i = 0; i + 1 < count; i++)
		if (classes[i] >= classes[i + 1])
			return false;
	for (uint64_t i = 0; i < places; i++)
		if (at[i] > at[i + 1] || at[i + 1] - at[i] >= LEAT_URI)
			return false;
	for (uint64_t i = 1; i < places; i++) /* the first is the root */
		if (!leat_is_plain_name(names + at[i], (size_t)(at[i + 1] - at[i])))
			return false;
	return at[1] == 0;
}

/* Whether an entry of any folder was added, removed or renamed. */
static bool
folders_changed(const struct leat_sidecar *sidecar, struct leat_store *store, const char *root)
{
	const uint64_t *at = sidecar->section[LEAT_FOLDER_PLACE_AT].data;
	const char *names = sidecar->section[LEAT_FOLDER_PLACES].data;
	const int64_t *times = sidecar->section[LEAT_FOLDER_TIMES].data;

	for (uint64_t i = 0; i < sidecar->section[LEAT_FOLDER_TIMES].bytes / 8; i++) {
		struct leat_object folder = {
			.folder = root, .uri = names + at[i], .uri_len = (size_t)(at[i + 1] - at[i])};
		char buf[LEAT_URI];
		const char *uri = leat_object_uri(&folder, buf);
		struct leat_folder_id id;

		if (!uri || store->kind->list_folder(store, uri, NULL, NULL, &id, NULL) != LEAT_OK ||
		    id.mtime_ns != times[i])
			return true;
	}
	return false;
}

/* For leat_sidecar_load. */
static const char *
fault(void *arg, const struct leat_sidecar *sidecar, bool *stale)
{
	const struct state *state = arg;
	struct leat_file_table files;

	if (!leat_file_table_read(&files, sidecar) || !makes_sense(sidecar, &files))
		return "it is invalid";
	if (!leat_file_table_is_plain(&files))
		return "it names files outside the folder";
	if (state->is_remote)
		return NULL; /* looking would take a request for each file */
	*stale = folders_changed(sidecar, state->store, state->confine.own.real) ||
	         leat_file_table_changed(&files, state->store, state->confine.own.real, state->threads, state->mem);
	return *stale ? "the folder has changed" : NULL;
}

/* Another version of Leat may decode other formats, and another root allow other links. */
static enum leat_status
make_key(const struct state *state, uint8_t key[LEAT_SHA256_BYTES], struct leat_err *err)
{
	const char *root = state->confine.root.real ? state->confine.root.real : "";
	struct leat_sha256 *sha = leat_sha256_new();

	if (!sha)
		return leat_fail(err, LEAT_NOMEM, "out of memory while opening '%s'", state->dir);
	leat_fingerprint_text(sha, leat_image_extensions, strlen(leat_image_extensions));
	leat_fingerprint_text(sha, root, strlen(root));
	leat_sha256_end(sha, key);
	leat_sha256_free(sha);
	return LEAT_OK;
}

static enum leat_status
look_anew(struct leat_source *source, struct state *state, const struct leat_sidecar_of *of, unsigned threads,
          struct leat_err *err)
{
	int64_t begin = leat_file_table_now(), newest;
	enum leat_status status =
		leat_folder_walk(&state->confine, threads, source->mem, &state->sidecar, &newest, err);

	if (status == LEAT_OK && state->keeps_times)
		leat_file_table_keep(source, &state->sidecar, of, state->dir, newest, begin);
	return status;
}

/* ---- opening ---- */

/* A folder on a server is looked at when it is listed. */
static enum leat_status
find_folder(struct leat_source *source, struct state *state, struct leat_err *err)
{
	const struct folder *folder = source->params;
	struct leat_folder_id id;
	enum leat_status status = leat_stores_find(&source->stores, folder->dir, &state->store, &state->dir, err);

	if (status != LEAT_OK)
		return status;
	state->is_remote = state->store->kind->remote;
	if (!state->is_remote) {
		status = state->store->kind->list_folder(state->store, state->dir, NULL, NULL, &id, err);
		if (status != LEAT_OK)
			return status;
		state->keeps_times = id.mtime_ns != 0;
	}
	status = leat_confine_open(&state->confine, &source->stores, state->store, state->dir, folder->root,
	                           source->mem, err);
	state->confine.source = "folder";
	state->confine.data = folder->dir;
	return status;
}

static void
add_fields(struct leat_source *source, const struct state *state)
{
	const struct folder *folder = source->params;
	struct leat_field *field = leat_schema_add(&source->schema, "image", LEAT_U8);

	field->ndim = 1;
	field->shape[0] = -1;
	leat_schema_add(&source->schema, "label", LEAT_I64);
	if (!folder->path)
		return;
	field = leat_schema_add(&source->schema, "path", LEAT_U8);
	field->ndim = 1;
	field->shape[0] = -1;
	source->schema.entry[2].outside_payload = true;
	source->schema.entry[2].extra_elements = (size_t)state->files.longest;
}

static void
tell(const struct leat_source *source, const struct state *state)
{
	struct leat_folder_left_out left_out;

	leat_folder_left_out(&state->sidecar, &left_out);
	if (left_out.count)
		leat_log(source->log, LEAT_LOG_WARN,
		         "%llu file%s in '%s' %s skipped, such as '%.*s': images that can be decoded end in %s",
		         (unsigned long long)left_out.count, left_out.count == 1 ? "" : "s", state->dir,
		         left_out.count == 1 ? "is" : "are", left_out.len, left_out.first, leat_image_extensions);
	if (state->files.missing)
		leat_log(source->log, LEAT_LOG_WARN, "%llu symlink%s in '%s' point%s to no file",
		         (unsigned long long)state->files.missing, state->files.missing == 1 ? "" : "s", state->dir,
		         state->files.missing == 1 ? "s" : "");
}

/* A class is named as its folder: the first part of its files' names. */
static enum leat_status
name_classes(struct leat_source *source, const struct state *state, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < state->class_count && status == LEAT_OK; i++) {
		struct leat_datum name;
		const char *slash;

		leat_file_table_name(&state->files, state->classes[i], &name);
		slash = memchr(name.data, '/', (size_t)name.shape[0]);
		status = leat_source_add_class(
			source, name.data, slash ? (size_t)(slash - (const char *)name.data) : (size_t)name.shape[0],
			err);
	}
	return status;
}

/* Opens the source from the sidecar, loaded or built. */
static enum leat_status
use_list(struct leat_source *source, struct state *state, struct leat_err *err)
{
	if (!leat_file_table_read(&state->files, &state->sidecar))
		return leat_fail(err, LEAT_INTERNAL, "the list of files just built is invalid");
	state->classes = state->sidecar.section[LEAT_FOLDER_CLASSES].data;
	state->class_count = (size_t)(state->sidecar.section[LEAT_FOLDER_CLASSES].bytes / 8) - 1;
	state->label = leat_alloc_array(source->mem, state->class_count, sizeof(*state->label));
	if (!state->label)
		return leat_fail_mem(err, source->mem, state->class_count * sizeof(*state->label), "the classes");
	for (size_t i = 0; i < state->class_count; i++)
		state->label[i] = (int64_t)i;
	source->first = state->classes;
	source->parts = state->class_count;
	tell(source, state);
	leat_file_table_open(&state->files, source, state->store, state->dir, &state->sidecar);
	if (state->is_remote && state->sidecar.bytes) {
		state->files.remedy = LEAT_INDEX_AGAIN;
		state->files.is_current = true; /* reads name the version; others are from then */
	}
	return name_classes(source, state, err);
}

/* Identifies the listing. */
static enum leat_status
prepare(struct leat_source *source, struct state *state, struct leat_sidecar_of *of, struct leat_err *err)
{
	enum leat_status status = find_folder(source, state, err);

	*of = (struct leat_sidecar_of){.kind = "folder", .fault = fault, .arg = state, .place = LEAT_BESIDE_SHARED};
	of->store = state->store;
	of->data = state->confine.own.real;
	return status == LEAT_OK ? make_key(state, of->key, err) : status;
}

static enum leat_status
open_source(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	struct state *state = source->state = leat_alloc(source->mem, sizeof(*state));
	struct leat_sidecar_of of;
	enum leat_status status;

	if (!state)
		return leat_fail_mem(err, source->mem, sizeof(*state), "the list of files");
	state->threads = threads;
	state->mem = source->mem;
	leat_sidecar_init(&state->sidecar, source->mem);
	status = prepare(source, state, &of, err);
	if (status == LEAT_OK)
		status = state->keeps_times || state->is_remote
		                 ? leat_sidecar_load(&state->sidecar, &of, source->mem, source->log, err)
		                 : LEAT_AGAIN;
	if (status == LEAT_AGAIN)
		status = look_anew(source, state, &of, threads, err);
	if (status == LEAT_OK)
		status = use_list(source, state, err);
	if (status == LEAT_OK)
		add_fields(source, state);
	else
		close_source(source);
	return status;
}

/* ---- leat index ---- */

enum leat_status
leat_folder_index(const char *dir, unsigned threads, const struct leat_storage *storage, struct leat_mem *mem,
                  const struct leat_log *log, struct leat_folder_report *report, struct leat_err *err)
{
	struct folder params = {.dir = dir, .root = ""};
	struct leat_source source = {.params = &params, .mem = mem, .log = log};
	struct state state = {.threads = threads, .mem = mem};
	struct leat_sidecar_of of;
	enum leat_status status;
	int64_t newest;

	*report = (struct leat_folder_report){0};
	source.state = &state;
	leat_stores_init(&source.stores, mem);
	source.stores.storage = storage;
	leat_sidecar_init(&state.sidecar, mem);
	status = prepare(&source, &state, &of, err);
	if (status == LEAT_OK)
		status = leat_folder_walk(&state.confine, threads, mem, &state.sidecar, &newest, err);
	if (status == LEAT_OK && leat_file_table_read(&state.files, &state.sidecar)) {
		tell(&source, &state);
		report->files = state.files.count;
		for (uint64_t i = 0; i < state.files.count; i++)
			report->bytes += state.files.size[i] == LEAT_NO_FILE ? 0 : state.files.size[i];
		status = leat_sidecar_save(&state.sidecar, &of, err);
		report->path = state.sidecar.path;
		state.sidecar.path = NULL;
	}
	leat_sidecar_free(&state.sidecar);
	leat_free(mem, state.dir);
	leat_confine_close(&state.confine);
	leat_stores_close(&source.stores);
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

/* Worker threads. */
static enum leat_status
unpack(const struct leat_source *source, const struct leat_raw *raw, struct leat_scratch *scratch,
       struct leat_sample *sample, struct leat_err *err)
{
	const struct folder *folder = source->params;
	const struct state *state = source->state;
	enum leat_status status = leat_file_table_unpack(source, &raw->extent, raw->payload, &sample->field[0], err);
	size_t class = 0;

	(void)scratch;
	if (status != LEAT_OK)
		return status;
	sample->count = folder->path ? 3 : 2;
	sample->field[1] = (struct leat_datum){
		.data = &state->label[leat_source_part(source, raw->index, &class)],
		.dtype = LEAT_I64,
		.borrowed = true,
	};
	if (folder->path)
		leat_file_table_name(&state->files, raw->index, &sample->field[2]);
	return status;
}

const struct leat_source_kind leat_source_folder = {
	.name = "folder",
	.doc = "Read an image folder with one subfolder per class: the file's bytes in the field `image`, the class "
	       "number in `label`. Same order of classes and files as torchvision's ImageFolder.",
	.example = "folder('train') | decode",
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct folder),
	.open = open_source,
	.close = close_source,
	.locate = locate,
	.object = object,
	.unpack = unpack,
	.fingerprint = fingerprint,
};
