/* source.c - open a source of any kind, and compute its fingerprint */
#include "format/source.h"

#include <string.h>

#include "base/array.h"
#include "format/file_table.h"

const struct leat_source_kind *
leat_source_find(const char *name)
{
	for (size_t i = 0; leat_sources[i]; i++)
		if (strcmp(leat_sources[i]->name, name) == 0)
			return leat_sources[i];
	return NULL;
}

static void
free_classes(struct leat_source *source)
{
	for (size_t i = 0; i < source->class_count; i++)
		leat_free(source->mem, source->class_name[i]);
	leat_free(source->mem, source->class_name);
}

enum leat_status
leat_source_add_class(struct leat_source *source, const char *name, size_t len, struct leat_err *err)
{
	enum leat_status status = LEAT_GROW(source->mem, source->class_name, source->class_cap, source->class_count + 1,
	                                    SIZE_MAX, "the classes", err);
	char *copy;

	if (status != LEAT_OK)
		return status;
	copy = leat_strndup(source->mem, name, len);
	if (!copy)
		return leat_fail_mem(err, source->mem, len + 1, "the classes");
	source->class_name[source->class_count++] = copy;
	return LEAT_OK;
}

/* ---- samples beyond max_bytes ---- */

static uint64_t
payload_of(const struct leat_extent *extent)
{
	return extent->length ? extent->length - extent->head - extent->tail : extent->lent;
}

void
leat_source_check_size(const struct leat_source *source, struct leat_extent *extent)
{
	uint64_t bytes = payload_of(extent);

	if (extent->damaged || bytes <= source->max_bytes)
		return;
	extent->damaged = extent->oversized = true;
	extent->lent = bytes;
	extent->length = extent->head = extent->tail = 0;
}

enum leat_status
leat_source_fail_oversized(const struct leat_source *source, const struct leat_extent *extent, struct leat_err *err)
{
	char buf[LEAT_URI];

	return leat_fail(err, LEAT_DATA,
	                 "%s at %soffset %llu: the sample has %llu bytes, more than max_bytes=%llu allows",
	                 leat_source_uri(source, extent->file, buf), extent->in_unit ? "inflated " : "",
	                 (unsigned long long)extent->offset, (unsigned long long)extent->lent,
	                 (unsigned long long)source->max_bytes);
}

/* What `open` may leave 0. */
static void
count_parts(struct leat_source *source)
{
	if (source->file_count == 0)
		source->file_count = leat_files_count(source->files);
	if (source->parts == 0)
		source->parts = source->file_count;
}

void
leat_source_longest(struct leat_source *source, uint64_t length, uint64_t payload)
{
	source->max_length = length;
	source->max_payload = payload;
	source->all_fit = payload <= source->max_bytes;
	if (source->all_fit)
		return;
	count_parts(source); /* for locate */
	source->max_length = source->max_payload = 0;
	for (uint64_t i = 0; i < source->count; i++) {
		struct leat_extent extent;

		leat_source_locate(source, i, &extent);
		if (!extent.damaged && extent.length > source->max_length)
			source->max_length = extent.length;
		if (!extent.damaged && payload_of(&extent) > source->max_payload)
			source->max_payload = payload_of(&extent);
	}
}

/* ---- open and close ---- */

enum leat_status
leat_source_open(struct leat_source *source, const struct leat_source_kind *kind, const void *params, unsigned threads,
                 uint64_t max_bytes, const struct leat_storage *storage, struct leat_mem *mem,
                 const struct leat_log *log, struct leat_err *err)
{
	enum leat_status status;

	*source = (struct leat_source){.kind = kind, .params = params, .mem = mem, .log = log, .max_bytes = max_bytes};
	leat_stores_init(&source->stores, mem);
	source->stores.log = log;
	source->stores.storage = storage;
	status = leat_schema_init(&source->schema, LEAT_MAX_FIELDS, mem, err);
	if (status == LEAT_OK)
		status = kind->open(source, threads, err);
	if (status != LEAT_OK) {
		free_classes(source);
		leat_schema_free(&source->schema, mem);
		leat_stores_close(&source->stores);
		*source = (struct leat_source){0};
		return status;
	}
	leat_schema_trim(&source->schema, mem);
	count_parts(source);
	for (int i = 0; i < source->schema.count; i++)
		source->schema.entry[i].layout = leat_field_layout(&source->schema.entry[i].field);
	return LEAT_OK;
}

void
leat_source_close(struct leat_source *source)
{
	if (source->kind) {
		source->kind->close(source);
		free_classes(source);
		leat_schema_free(&source->schema, source->mem);
	}
	leat_stores_close(&source->stores);
	*source = (struct leat_source){0};
}

const struct leat_object *
leat_source_object(const struct leat_source *source, size_t file, struct leat_object *entry)
{
	if (!source->kind->object)
		return source->files ? leat_files_at(source->files, file) : NULL;
	source->kind->object(source, file, entry);
	return entry;
}

bool
leat_source_is_current(const struct leat_source *source, uint64_t sample)
{
	return !source->table || leat_file_table_is_current(source->table, sample);
}

void
leat_source_report_change(const struct leat_source *source, size_t file, struct leat_err *err)
{
	if (source->table)
		leat_file_table_remove(source->table, file, err);
}

void
leat_source_check(const struct leat_source *source)
{
	for (size_t i = 0; source->mapped && i < leat_files_count(source->files); i++) {
		const struct leat_object *file = leat_files_at(source->files, i);

		if (file->store->kind->check)
			(void)file->store->kind->check(file, NULL);
	}
}

const char *
leat_source_uri(const struct leat_source *source, size_t file, char buf[LEAT_URI])
{
	struct leat_object entry;
	const struct leat_object *object = leat_source_object(source, file, &entry);
	const char *uri = object ? leat_object_uri(object, buf) : source->kind->name;

	return uri ? uri : object->folder;
}

size_t
leat_source_part(const struct leat_source *source, uint64_t sample, size_t *last)
{
	size_t low = 0, high = source->parts;

	if (sample >= source->first[*last] && sample < source->first[*last + 1])
		return *last;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (source->first[middle] <= sample)
			low = middle;
		else
			high = middle;
	}
	return *last = low;
}

void
leat_fingerprint_number(struct leat_sha256 *sha, uint64_t number)
{
	unsigned char bytes[8];

	leat_store64(bytes, number);
	leat_sha256_add(sha, bytes, sizeof(bytes));
}

void
leat_fingerprint_text(struct leat_sha256 *sha, const char *text, size_t len)
{
	leat_fingerprint_number(sha, len);
	leat_sha256_add(sha, text, len);
}

static void
add_files(const struct leat_source *source, struct leat_sha256 *sha)
{
	size_t files = leat_files_count(source->files);

	leat_fingerprint_number(sha, files);
	for (size_t i = 0; i < files; i++) {
		const struct leat_object *file = leat_files_at(source->files, i);

		leat_fingerprint_text(sha, file->name, strlen(file->name));
		leat_fingerprint_number(sha, file->size);
		leat_fingerprint_number(sha, source->first[i + 1] - source->first[i]);
	}
}

enum leat_status
leat_source_fingerprint(const struct leat_source *source, char hex[LEAT_SHA256_HEX], struct leat_err *err)
{
	struct leat_sha256 *sha = leat_sha256_new();
	uint8_t digest[LEAT_SHA256_BYTES];

	if (!sha)
		return leat_fail(err, LEAT_NOMEM, "no memory for the fingerprint of the data");
	if (source->kind->fingerprint)
		source->kind->fingerprint(source, sha);
	else
		add_files(source, sha);
	leat_sha256_end(sha, digest);
	leat_sha256_free(sha);
	leat_hex(digest, sizeof(digest), hex);
	return LEAT_OK;
}
