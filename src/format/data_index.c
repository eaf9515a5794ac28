/* data_index.c - see data_index.h */
#include "format/data_index.h"

#include <fnmatch.h>
#include <string.h>

#include "base/str.h"

/* A pattern, or the name of a file. */
struct operand {
	struct leat_store *store;
	char *uri; /* resolved; allocated from the store's memory */
};

/* The patterns that an index belongs to. */
struct operands {
	struct leat_mem *mem;
	struct operand *of;
	size_t count;
	char *data; /* what the index is next to (beside.h) */
};

static void
free_operands(struct operands *operands)
{
	for (size_t i = 0; operands->of && i < operands->count; i++)
		if (operands->of[i].store)
			leat_free(operands->of[i].store->mem, operands->of[i].uri);
	leat_free(operands->mem, operands->of);
	leat_free(operands->mem, operands->data);
	*operands = (struct operands){0};
}

/* Length of the folder that all matches are in, with its slash. */
static size_t
fixed_folder(const char *pattern)
{
	size_t len = strcspn(pattern, "*?[");

	while (len && pattern[len - 1] != '/')
		len--;
	return len;
}

static enum leat_status
make_key(const struct operands *operands, uint8_t key[LEAT_SHA256_BYTES], struct leat_err *err)
{
	struct leat_sha256 *sha = leat_sha256_new();

	if (!sha)
		return leat_fail(err, LEAT_NOMEM, "no memory for the key of an index");
	for (size_t i = 0; i < operands->count; i++)
		leat_sha256_add(sha, operands->of[i].uri, strlen(operands->of[i].uri) + 1);
	leat_sha256_end(sha, key);
	leat_sha256_free(sha);
	return LEAT_OK;
}

/* A single file is named by its hash too, because `.NAME.leatidx` is the index of its records alone. */
static enum leat_status
name_data(struct operands *operands, const uint8_t key[LEAT_SHA256_BYTES], struct leat_err *err)
{
	const char *first = operands->of[0].uri;
	size_t folder = fixed_folder(first);
	char hex[LEAT_SHA256_HEX];

	leat_hex(key, LEAT_SHA256_BYTES, hex);
	if (operands->count == 1 && strpbrk(first, "*?[") && !strchr(first + folder, '/'))
		operands->data = leat_strdup(operands->mem, first);
	else
		operands->data = leat_asprintf(operands->mem, "%.*s%.32s", (int)folder, first, hex);
	return operands->data ? LEAT_OK : leat_fail_mem(err, operands->mem, folder + 32, "the name of an index");
}

/* Signed URLs are not written down. */
static bool
is_secret(const char *uri)
{
	return strncmp(uri, "http", 4) == 0 && strpbrk(uri, "?@");
}

/* LEAT_AGAIN: not a data set on servers. */
static enum leat_status
resolve(struct operands *operands, struct leat_stores *stores, const char *const *patterns, size_t count,
        struct leat_mem *mem, uint8_t key[LEAT_SHA256_BYTES], struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	*operands = (struct operands){.mem = mem, .count = count};
	if (!count || !leat_is_uri(patterns[0], strlen(patterns[0])))
		return LEAT_AGAIN;
	operands->of = leat_alloc_array(mem, count, sizeof(*operands->of));
	if (!operands->of)
		return leat_fail_mem(err, mem, count * sizeof(*operands->of), "the list of files");
	for (size_t i = 0; i < count && status == LEAT_OK; i++) {
		struct operand *operand = &operands->of[i];

		status = leat_stores_find(stores, patterns[i], &operand->store, &operand->uri, err);
		if (status == LEAT_OK && (!operand->store->kind->remote || is_secret(operand->uri)))
			status = LEAT_AGAIN;
	}
	if (status == LEAT_OK)
		status = make_key(operands, key, err);
	return status == LEAT_OK ? name_data(operands, key, err) : status;
}

static bool
matches(const struct operand *operand, const char *uri)
{
	return strcmp(operand->uri, uri) == 0 || fnmatch(operand->uri, uri, FNM_PATHNAME | FNM_PERIOD) == 0;
}

/* ---- reading ---- */

/* Argument of `fault`. */
struct reading {
	const struct operands *operands;
	const struct leat_index_kind *kind;
	struct leat_mem *mem;
	struct leat_object *object; /* the files */
	size_t count;
};

static bool
has_numbers(const struct leat_sidecar *sidecar, int section, uint64_t count)
{
	return sidecar->section[section].bytes == count * sizeof(uint64_t);
}

static bool
lengths_are_right(const struct leat_sidecar *sidecar, uint64_t count)
{
	return sidecar->sections == LEAT_DATA_INDEX_SECTIONS && count > 0 && count <= UINT32_MAX &&
	       has_numbers(sidecar, LEAT_DATA_INDEX_OPERAND, count) &&
	       has_numbers(sidecar, LEAT_DATA_INDEX_NAME_AT, count + 1) &&
	       has_numbers(sidecar, LEAT_DATA_INDEX_SIZES, count) &&
	       has_numbers(sidecar, LEAT_DATA_INDEX_TIMES, count) && has_numbers(sidecar, LEAT_DATA_INDEX_AT, count) &&
	       has_numbers(sidecar, LEAT_DATA_INDEX_LENGTHS, count) &&
	       sidecar->section[LEAT_DATA_INDEX_VERSIONS].bytes == count * sizeof(struct leat_version);
}

/* The URI of file `i`, within the sidecar or the operands; NULL: it is not valid. */
static const char *
uri_of(const struct reading *reading, const struct leat_sidecar *sidecar, uint64_t i, const struct operand **operand)
{
	const uint64_t *at = (const uint64_t *)sidecar->section[LEAT_DATA_INDEX_NAME_AT].data + i;
	const uint64_t number = ((const uint64_t *)sidecar->section[LEAT_DATA_INDEX_OPERAND].data)[i];
	const struct leat_section *names = &sidecar->section[LEAT_DATA_INDEX_NAMES];
	const char *name = (const char *)names->data + at[0];
	size_t len;

	if (number >= reading->operands->count || at[1] <= at[0] || at[1] > names->bytes || at[1] - at[0] > LEAT_URI)
		return NULL;
	len = (size_t)(at[1] - at[0]) - 1;
	if (memchr(name, '\0', len + 1) != name + len)
		return NULL;
	*operand = &reading->operands->of[number];
	if (!len)
		return (*operand)->uri;
	return matches(*operand, name) ? name : NULL;
}

static bool
read_file(struct reading *reading, const struct leat_sidecar *sidecar, uint64_t i)
{
	const struct leat_section *section = sidecar->section;
	const uint64_t at = ((const uint64_t *)section[LEAT_DATA_INDEX_AT].data)[i];
	const uint64_t len = ((const uint64_t *)section[LEAT_DATA_INDEX_LENGTHS].data)[i];
	const struct leat_section *indexes = &section[LEAT_DATA_INDEX_INDEXES];
	struct leat_object *object = &reading->object[i];
	const struct operand *operand = NULL;
	const char *uri = uri_of(reading, sidecar, i, &operand);
	bool stale;

	if (!uri || at % 8 || at > indexes->bytes || len > indexes->bytes - at)
		return false;
	*object = (struct leat_object){
		.store = operand->store,
		.uri = uri,
		.uri_len = strlen(uri),
		.size = ((const uint64_t *)section[LEAT_DATA_INDEX_SIZES].data)[i],
		.mtime_ns = ((const int64_t *)section[LEAT_DATA_INDEX_TIMES].data)[i],
		.version = ((const struct leat_version *)section[LEAT_DATA_INDEX_VERSIONS].data)[i],
		.remedy = LEAT_INDEX_AGAIN,
	};
	if (object->size > INT64_MAX || !object->version.len || object->version.len > LEAT_VERSION_BYTES)
		return false;
	if (!len)
		return object->size == 0;
	return !leat_index_fault((const char *)indexes->data + at, (size_t)len, reading->kind, object, &stale);
}

/* For leat_sidecar_load. */
static const char *
fault(void *arg, const struct leat_sidecar *sidecar, bool *stale)
{
	struct reading *reading = arg;
	uint64_t count = sidecar->section[LEAT_DATA_INDEX_SIZES].bytes / sizeof(uint64_t);

	*stale = false;
	leat_free(reading->mem, reading->object);
	reading->object = NULL;
	if (!lengths_are_right(sidecar, count))
		return "it is invalid";
	reading->object = leat_alloc_array(reading->mem, (size_t)count, sizeof(*reading->object));
	reading->count = (size_t)count;
	if (!reading->object)
		return "there is no memory for its files";
	for (uint64_t i = 0; i < count; i++)
		if (!read_file(reading, sidecar, i))
			return "it is invalid, or is about other files";
	return NULL;
}

static enum leat_status
load(struct leat_data_index *data, struct reading *reading, const struct leat_sidecar_of *of,
     const struct leat_log *log, struct leat_files **files, struct leat_err *err)
{
	struct leat_sidecar sidecar;
	enum leat_status status = leat_sidecar_load(&sidecar, of, reading->mem, log, err);

	if (status == LEAT_OK)
		status = leat_files_open_listed(files, reading->object, reading->count, reading->mem, err);
	leat_free(reading->mem, reading->object);
	if (status == LEAT_OK) {
		*data = (struct leat_data_index){
			.mem = reading->mem,
			.bytes = sidecar.bytes,
			.at = sidecar.section[LEAT_DATA_INDEX_AT].data,
			.length = sidecar.section[LEAT_DATA_INDEX_LENGTHS].data,
			.indexes = sidecar.section[LEAT_DATA_INDEX_INDEXES].data,
		};
		sidecar.bytes = NULL;
	}
	leat_sidecar_free(&sidecar);
	return status;
}

enum leat_status
leat_data_index_open(struct leat_data_index *data, struct leat_files **files, const struct leat_index_kind *kind,
                     struct leat_stores *stores, const char *const *patterns, size_t count, struct leat_mem *mem,
                     const struct leat_log *log, struct leat_err *err)
{
	struct operands operands;
	struct reading reading = {.operands = &operands, .kind = kind, .mem = mem};
	struct leat_sidecar_of of = {.kind = "dataset", .place = LEAT_BESIDE_SHARED, .fault = fault, .arg = &reading};
	enum leat_status status = resolve(&operands, stores, patterns, count, mem, of.key, err);

	*data = (struct leat_data_index){0};
	*files = NULL;
	if (status == LEAT_OK) {
		of.store = operands.of[0].store;
		of.data = operands.data;
		status = load(data, &reading, &of, log, files, err);
	}
	free_operands(&operands);
	return status;
}

const char *
leat_data_index_read(const void *bytes, size_t len, struct leat_files **files, const struct leat_index_kind *kind,
                     struct leat_stores *stores, const char *const *patterns, size_t count, struct leat_mem *mem)
{
	struct operands operands;
	struct reading reading = {.operands = &operands, .kind = kind, .mem = mem};
	struct leat_sidecar_of of = {.kind = "dataset", .fault = fault, .arg = &reading};
	struct leat_sidecar sidecar = {0};
	const char *why = "its patterns are not valid";
	bool stale;

	*files = NULL;
	if (resolve(&operands, stores, patterns, count, mem, of.key, NULL) == LEAT_OK)
		why = leat_sidecar_read(&sidecar, &of, bytes, len, &stale);
	if (!why && leat_files_open_listed(files, reading.object, reading.count, mem, NULL) != LEAT_OK)
		why = "there is no memory for its files";
	leat_free(mem, reading.object);
	free_operands(&operands);
	return why;
}

void
leat_data_index_close(struct leat_data_index *data)
{
	if (data->mem)
		leat_free(data->mem, data->bytes);
	*data = (struct leat_data_index){0};
}

const void *
leat_data_index_at(const struct leat_data_index *data, size_t i, size_t *len)
{
	*len = (size_t)data->length[i];
	return data->indexes + data->at[i];
}

/* ---- writing ---- */

bool
leat_data_index_is_for(struct leat_stores *stores, const char *const *patterns, size_t count, struct leat_mem *mem)
{
	struct operands operands;
	uint8_t key[LEAT_SHA256_BYTES];
	bool is_for = resolve(&operands, stores, patterns, count, mem, key, NULL) == LEAT_OK;

	free_operands(&operands);
	return is_for;
}

/* What becomes the sections. */
struct building {
	uint64_t *number[LEAT_DATA_INDEX_SECTIONS]; /* NULL: a text, or the versions */
	struct leat_version *version;
	struct leat_str names, indexes;
	size_t count, operand; /* the last that matched: files come in the order of the patterns */
};

static enum leat_status
building_init(struct building *b, size_t count, struct leat_mem *mem, struct leat_err *err)
{
	*b = (struct building){.count = count, .version = leat_alloc_array(mem, count, sizeof(*b->version))};
	leat_str_init(&b->names, mem, SIZE_MAX / 4);
	leat_str_init(&b->indexes, mem, SIZE_MAX / 4);
	for (int i = 0; i < LEAT_DATA_INDEX_INDEXES; i++) {
		if (i == LEAT_DATA_INDEX_NAMES || i == LEAT_DATA_INDEX_VERSIONS)
			continue;
		b->number[i] = leat_alloc_array(mem, count + 1, sizeof(uint64_t));
		if (!b->number[i] || !b->version)
			return leat_fail_mem(err, mem, (count + 1) * sizeof(uint64_t), "the list of files");
	}
	return LEAT_OK;
}

static void
building_free(struct building *b, struct leat_mem *mem)
{
	for (int i = 0; i < LEAT_DATA_INDEX_SECTIONS; i++)
		leat_free(mem, b->number[i]);
	leat_free(mem, b->version);
	leat_str_free(&b->names);
	leat_str_free(&b->indexes);
}

/* Names that are patterns themselves are left out: the names of files on web servers are nobody else's business. */
static void
add_name(struct building *b, const struct operands *operands, const char *uri)
{
	while (!matches(&operands->of[b->operand], uri))
		b->operand = (b->operand + 1) % operands->count;
	if (strcmp(operands->of[b->operand].uri, uri) != 0)
		leat_str_add(&b->names, uri);
	leat_str_addn(&b->names, "", 1);
}

static enum leat_status
add_file(struct building *b, size_t i, const struct operands *operands, const struct leat_object *object,
         const struct leat_data_index_file *file, struct leat_err *err)
{
	add_name(b, operands, object->uri);
	b->number[LEAT_DATA_INDEX_OPERAND][i] = b->operand;
	b->number[LEAT_DATA_INDEX_NAME_AT][i + 1] = b->names.len;
	b->number[LEAT_DATA_INDEX_SIZES][i] = object->size;
	b->number[LEAT_DATA_INDEX_TIMES][i] = (uint64_t)object->mtime_ns;
	b->version[i] = object->version;
	b->number[LEAT_DATA_INDEX_AT][i] = b->indexes.len;
	if (object->size)
		leat_index_add_bytes(file->index, file->kind, object, &b->indexes);
	b->number[LEAT_DATA_INDEX_LENGTHS][i] = b->indexes.len - b->number[LEAT_DATA_INDEX_AT][i];
	leat_str_addn(&b->indexes, (char[8]){0}, -b->indexes.len & 7);
	if (b->names.failed || b->indexes.failed)
		return leat_fail_mem(err, b->names.mem, b->names.len + b->indexes.len, "the index of the files");
	return LEAT_OK;
}

/* Moves everything into the sidecar. */
static enum leat_status
finish(struct building *b, struct leat_sidecar *sidecar, struct leat_err *err)
{
	for (int i = 0; i < LEAT_DATA_INDEX_SECTIONS; i++) {
		struct leat_str *text = i == LEAT_DATA_INDEX_NAMES     ? &b->names
		                        : i == LEAT_DATA_INDEX_INDEXES ? &b->indexes
		                                                       : NULL;
		uint64_t bytes = (b->count + (i == LEAT_DATA_INDEX_NAME_AT)) * sizeof(uint64_t);
		void *block = b->number[i];

		if (text) {
			bytes = text->len;
			block = leat_str_take(text);
			if (!block)
				return leat_fail_mem(err, sidecar->mem, bytes, "the index of the files");
		} else if (i == LEAT_DATA_INDEX_VERSIONS) {
			bytes = b->count * sizeof(*b->version);
			block = b->version;
			b->version = NULL;
		}
		b->number[i] = NULL;
		leat_sidecar_add_take(sidecar, block, bytes);
	}
	return LEAT_OK;
}

static enum leat_status
build(struct building *b, const struct operands *operands, struct leat_files *files,
      const struct leat_data_index_file *file, struct leat_sidecar *sidecar, struct leat_err *err)
{
	enum leat_status status = building_init(b, leat_files_count(files), operands->mem, err);

	for (size_t i = 0; i < b->count && status == LEAT_OK; i++)
		status = add_file(b, i, operands, leat_files_at(files, i), &file[i], err);
	return status == LEAT_OK ? finish(b, sidecar, err) : status;
}

enum leat_status
leat_data_index_save(struct leat_stores *stores, const char *const *patterns, size_t count, struct leat_files *files,
                     const struct leat_data_index_file *file, struct leat_mem *mem, char **path, struct leat_err *err)
{
	struct leat_sidecar_of of = {.kind = "dataset", .place = LEAT_BESIDE_SHARED};
	struct leat_sidecar sidecar;
	struct operands operands;
	struct building b = {0};
	enum leat_status status = resolve(&operands, stores, patterns, count, mem, of.key, err);

	leat_sidecar_init(&sidecar, mem);
	if (status == LEAT_OK)
		status = build(&b, &operands, files, file, &sidecar, err);
	if (status == LEAT_OK) {
		of.store = operands.of[0].store;
		of.data = operands.data;
		status = leat_sidecar_save(&sidecar, &of, err);
	}
	*path = sidecar.path;
	sidecar.path = NULL;
	leat_sidecar_free(&sidecar);
	building_free(&b, mem);
	free_operands(&operands);
	return status;
}
