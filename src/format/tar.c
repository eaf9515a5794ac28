/* tar.c - the source of WebDataset tar files: one sample per key, one field of bytes per extension
 *
 * A sample's extent covers all its entries including their headers, as found by the file's index
 * (tar_index.c). Unpacking walks the entries, and fields point into them.
 *
 * The set of fields is fixed at open: those in `fields`, or else those of the first sample. A
 * sample that lacks one is bad; extra files in a sample are ignored. */
#include "format/tar.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "format/source.h"

#define KEY_FIELD "__key__"

static const struct leat_opt options[] = {
	LEAT_STRINGS(struct leat_tar_params, patterns, LEAT_REQUIRED,
                     "files or glob patterns (*, ?, [..]); the matches of a pattern are sorted by name",
                     LEAT_OPT_LOCATION),
	LEAT_STRINGS(
		struct leat_tar_params, fields, "[]",
		"extensions to read as fields: jpg; 'image=jpg;jpeg;png' names the field and uses the first extension "
		"present; 'label=cls:int64' parses text as a number, 'x=npy:float32[8, ?]' an array; __key__ is the "
		"sample's key; []: all extensions of the first sample",
		LEAT_OPT_NAMED),
	LEAT_OPT_END,
};

/* The type after a field's extensions: ":int64" is a number as text, any other type an array. */
enum type { BYTES, NUMBER, ARRAY };

static enum type
type_of(const char *text, struct leat_field *field, size_t *len)
{
	const char *colon = strrchr(text, ':');

	*len = strlen(text);
	if (!colon || colon == text || !leat_tar_type(colon + 1, field))
		return BYTES;
	*len = (size_t)(colon - text);
	return strcmp(colon + 1, "int64") == 0 ? NUMBER : ARRAY;
}

/* The extensions of field `i`, separated by semicolons, len bytes. */
static const char *
extensions_of(const struct leat_source *source, int i, size_t *len)
{
	const struct leat_tar_params *params = source->params;
	const char *text = source->schema.entry[i].field.name, *equals;
	struct leat_field unused;

	*len = strlen(text);
	if (!params->fields.count)
		return text;
	text = params->fields.value[i];
	equals = strchr(text, '=');
	text = equals ? equals + 1 : text;
	type_of(text, &unused, len);
	return text;
}

static enum type
type_of_field(const struct leat_source *source, int i)
{
	const struct leat_tar_params *params = source->params;
	struct leat_field unused;
	size_t len;

	return params->fields.count ? type_of(params->fields.value[i], &unused, &len) : BYTES;
}

static char
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool
same_extension(const char *a, size_t a_len, const char *b, size_t b_len)
{
	bool same = a_len == b_len;

	for (size_t i = 0; same && i < a_len; i++)
		same = lower(a[i]) == lower(b[i]);
	return same;
}

/* Position of the extension in "a;b;c", from 0; -1: not in it. */
static int
rank_of(const char *extensions, size_t extensions_len, const char *extension, size_t len)
{
	const char *end = extensions + extensions_len;

	for (int rank = 0;; rank++) {
		const char *semicolon = memchr(extensions, ';', (size_t)(end - extensions));
		const char *behind = semicolon ? semicolon : end;

		if (same_extension(extensions, (size_t)(behind - extensions), extension, len))
			return rank;
		if (!semicolon)
			return -1;
		extensions = semicolon + 1;
	}
}

/* ---- the files of a sample ---- */

/* Iterates over the entries of one sample. */
struct members {
	unsigned char *bytes;
	size_t len, pos;
	struct leat_tar tar;
	/* The current member: */
	size_t key; /* length of the key in the name */
	unsigned char *data;
	const char *fault;
};

/* Moves to the next entry of any kind. False: no more entries, or damage described by `fault`. */
static bool
next_entry(struct members *m)
{
	while (m->pos < m->len) {
		if (m->len - m->pos < LEAT_TAR_BLOCK)
			m->fault = "an entry is truncated";
		else
			m->fault = leat_tar_header(&m->tar, m->bytes + m->pos);
		if (!m->fault && (m->tar.kind == LEAT_TAR_ZERO || m->tar.kind == LEAT_TAR_SPARSE))
			m->fault = "the entries have changed since the file was indexed";
		if (m->fault)
			return false;
		m->pos += LEAT_TAR_BLOCK;
		if (m->tar.size > m->len - m->pos) {
			m->fault = "an entry has grown since the file was indexed";
			return false;
		}
		m->data = m->bytes + m->pos;
		m->pos =
			leat_tar_padded(&m->tar) > m->len - m->pos ? m->len : m->pos + (size_t)leat_tar_padded(&m->tar);
		if (m->tar.kind != LEAT_TAR_EXTENSION)
			return true;
		m->fault = m->tar.size ? leat_tar_extension(&m->tar, m->data) : NULL;
		if (m->fault)
			return false;
	}
	return false;
}

static bool
next_member(struct members *m)
{
	while (next_entry(m))
		if (m->tar.kind == LEAT_TAR_FILE && leat_tar_split(m->tar.name, m->tar.len, &m->key))
			return true;
	return false;
}

static const char *
extension(const struct members *m, size_t *len)
{
	*len = m->tar.len - m->key - 1;
	return m->tar.name + m->key + 1;
}

/* ---- unpack ---- */

static enum leat_status
fail_sample(const struct leat_source *source, const struct leat_extent *extent, const char *fault, struct leat_err *err)
{
	return leat_fail(err, LEAT_DATA, "%s at offset %llu: %s", leat_files_at(source->files, extent->file)->uri,
	                 (unsigned long long)extent->offset, fault);
}

/* "the sample 'KEY' has no 'jpg'; it has 'cls', 'json'" */
static enum leat_status
fail_missing(const struct leat_source *source, const struct leat_extent *extent, unsigned char *bytes, const char *key,
             size_t key_len, int field, struct leat_err *err)
{
	struct members m = {.bytes = bytes, .len = (size_t)extent->length};
	char text[600] = "", shown[200], one[64];
	size_t used = 0, wanted_len;
	const char *wanted = extensions_of(source, field, &wanted_len);

	for (bool more = next_member(&m); more; more = next_member(&m)) {
		size_t len;
		const char *name = extension(&m, &len);
		int n = snprintf(text + used, sizeof(text) - used, "%s'%s'", used ? ", " : "",
		                 leat_show(one, sizeof(one), name, len));

		if (n < 0 || (size_t)n >= sizeof(text) - used)
			break;
		used += (size_t)n;
	}
	return leat_fail(err, LEAT_DATA, "%s at offset %llu: the sample '%s' has no '%.*s'; it has %s",
	                 leat_files_at(source->files, extent->file)->uri, (unsigned long long)extent->offset,
	                 leat_show(shown, sizeof(shown), key, key_len), (int)wanted_len, wanted, text);
}

/* Offers the current member to all fields. */
static enum leat_status
offer(const struct leat_source *source, const struct leat_extent *extent, const struct members *m, int *rank,
      struct leat_sample *sample, struct leat_err *err)
{
	char shown[200];
	size_t len;
	const char *name = extension(m, &len);

	for (int i = 0; i < source->schema.count; i++) {
		size_t wanted_len;
		const char *wanted = extensions_of(source, i, &wanted_len);
		int new = rank_of(wanted, wanted_len, name, len);

		if (new < 0 || (rank[i] >= 0 && new > rank[i]))
			continue;
		if (new == rank[i])
			return leat_fail(err, LEAT_DATA, "%s at offset %llu: '%s' appears twice in its sample",
			                 leat_files_at(source->files, extent->file)->uri,
			                 (unsigned long long)extent->offset,
			                 leat_show(shown, sizeof(shown), m->tar.name, m->tar.len));
		rank[i] = new;
		sample->field[i].data = m->data;
		sample->field[i].shape[0] = (int64_t)m->tar.size;
	}
	return LEAT_OK;
}

/* The key may be split between header fields, so it is copied to scratch. */
static enum leat_status
put_key(struct leat_datum *datum, const char *key, size_t len, struct leat_scratch *scratch, struct leat_err *err)
{
	datum->data = leat_scratch_alloc(scratch, len);
	if (!datum->data)
		return leat_fail(err, LEAT_LIMIT, "no memory for a sample's key");
	memcpy(datum->data, key, len);
	datum->shape[0] = (int64_t)len;
	return LEAT_OK;
}

/* Parses an integer, with whitespace around it as left by echo and editors. */
static bool
read_number(const unsigned char *text, size_t len, int64_t *number)
{
	bool negative;

	*number = 0;
	while (len && (*text == ' ' || (*text >= '\t' && *text <= '\r')))
		text++, len--;
	while (len && (text[len - 1] == ' ' || (text[len - 1] >= '\t' && text[len - 1] <= '\r')))
		len--;
	negative = len && *text == '-';
	if (len && (*text == '-' || *text == '+'))
		text++, len--;
	for (size_t i = 0; i < len; i++) {
		int digit = text[i] - '0';

		if (digit < 0 || digit > 9 || __builtin_mul_overflow(*number, 10, number) ||
		    __builtin_sub_overflow(*number, digit,
		                           number)) /* counts down: INT64_MIN has no positive counterpart */
			return false;
	}
	return len > 0 && (negative || !__builtin_sub_overflow((int64_t)0, *number, number));
}

static enum leat_status
put_number(const struct leat_source *source, const struct leat_extent *extent, const char *key, size_t key_len,
           int field, struct leat_scratch *scratch, struct leat_datum *datum, struct leat_err *err)
{
	int64_t *number = leat_scratch_alloc(scratch, sizeof(*number));
	char shown[200], text[40];

	if (!number)
		return leat_fail(err, LEAT_LIMIT, "no memory for a sample's numbers");
	if (!read_number(datum->data, (size_t)datum->shape[0], number))
		return leat_fail(err, LEAT_DATA, "%s at offset %llu: sample '%s': field %s is '%s', not an int64",
		                 leat_files_at(source->files, extent->file)->uri, (unsigned long long)extent->offset,
		                 leat_show(shown, sizeof(shown), key, key_len), source->schema.entry[field].field.name,
		                 leat_show(text, sizeof(text), datum->data, (size_t)datum->shape[0]));
	*datum = (struct leat_datum){.data = number, .dtype = LEAT_I64};
	return LEAT_OK;
}

static enum leat_status
put_array(const struct leat_source *source, const struct leat_extent *extent, const char *key, size_t key_len,
          int field, struct leat_scratch *scratch, struct leat_datum *datum, struct leat_err *err)
{
	const struct leat_field *wanted = &source->schema.entry[field].field;
	enum leat_status status = leat_tar_array(wanted, datum->data, (size_t)datum->shape[0], scratch, datum, err);
	char shown[200];

	if (status == LEAT_OK || status == LEAT_LIMIT)
		return status;
	leat_err_in(err, "%s at offset %llu: sample '%s': cannot read array %s",
	            leat_files_at(source->files, extent->file)->uri, (unsigned long long)extent->offset,
	            leat_show(shown, sizeof(shown), key, key_len), wanted->name);
	return status;
}

/* Converts a field's bytes to its type. */
static enum leat_status
put_value(const struct leat_source *source, const struct leat_extent *extent, const char *key, size_t key_len,
          int field, struct leat_scratch *scratch, struct leat_datum *datum, struct leat_err *err)
{
	enum type type = type_of_field(source, field);

	if (type == NUMBER)
		return put_number(source, extent, key, key_len, field, scratch, datum, err);
	if (type == ARRAY)
		return put_array(source, extent, key, key_len, field, scratch, datum, err);
	return LEAT_OK;
}

static bool
is_key(const struct leat_source *source, int field)
{
	size_t len;
	const char *text = extensions_of(source, field, &len);

	return len == strlen(KEY_FIELD) && memcmp(text, KEY_FIELD, len) == 0;
}

static enum leat_status
describe_damage(const struct leat_source *source, const struct leat_extent *extent, struct leat_err *err)
{
	const struct leat_object *file = leat_files_at(source->files, extent->file);
	uint64_t left = extent->offset < file->size ? file->size - extent->offset : 0;
	const char *fault = "the file ends inside a header";
	unsigned char block[LEAT_TAR_BLOCK];
	struct iovec iov = {.iov_base = block, .iov_len = sizeof(block)};
	enum leat_status status;
	struct leat_tar tar = {0};
	size_t got;

	if (left >= sizeof(block)) {
		status = leat_files_read(source->files, extent->file, extent->offset, &iov, 1, 0, &got, err);
		if (status != LEAT_OK)
			return status;
		fault = leat_tar_header(&tar, block);
		if (!fault && tar.kind == LEAT_TAR_ZERO)
			fault = "found a zero block instead of a header";
		else if (!fault && tar.size > left - sizeof(block))
			fault = "the file ends inside an entry's data";
		else if (!fault)
			fault = "an extended header, or the header after it, is invalid";
	}
	return leat_fail(err, LEAT_DATA, "%s at offset %llu: %s (%llu bytes damaged)", file->uri,
	                 (unsigned long long)extent->offset, fault, (unsigned long long)extent->length);
}

/* Worker threads. */
static enum leat_status
unpack(const struct leat_source *source, const struct leat_raw *raw, struct leat_scratch *scratch,
       struct leat_sample *sample, struct leat_err *err)
{
	struct members m = {.bytes = raw->payload, .len = (size_t)raw->extent.length};
	int rank[LEAT_MAX_FIELDS];
	char key[LEAT_TAR_NAME];
	size_t key_len = 0;
	enum leat_status status = LEAT_OK;

	if (raw->extent.damaged)
		return describe_damage(source, &raw->extent, err);
	sample->count = source->schema.count;
	for (int i = 0; i < sample->count; i++) {
		rank[i] = -1;
		/* Two fields may share a file. */
		sample->field[i] = (struct leat_datum){.dtype = LEAT_U8, .ndim = 1, .borrowed = sample->count > 1};
	}
	while (status == LEAT_OK && next_member(&m)) {
		if (!key_len) {
			key_len = m.key;
			memcpy(key, m.tar.name, key_len);
		} else if (m.key != key_len || memcmp(m.tar.name, key, key_len) != 0) {
			m.fault = "the entries have changed since the file was indexed";
			break;
		}
		status = offer(source, &raw->extent, &m, rank, sample, err);
	}
	if (status == LEAT_OK && !m.fault && !key_len)
		m.fault = "the entries have changed since the file was indexed";
	if (status == LEAT_OK && m.fault)
		return fail_sample(source, &raw->extent, m.fault, err);
	for (int i = 0; i < sample->count && status == LEAT_OK; i++) {
		if (is_key(source, i))
			status = put_key(&sample->field[i], key, key_len, scratch, err);
		else if (rank[i] < 0)
			status = fail_missing(source, &raw->extent, raw->payload, key, key_len, i, err);
		if (status == LEAT_OK)
			status = put_value(source, &raw->extent, key, key_len, i, scratch, &sample->field[i], err);
	}
	return status;
}

/* ---- open ---- */

static void
locate_in(const struct leat_indexed *indexed, size_t file, uint64_t i, struct leat_extent *extent)
{
	const struct leat_index *index = &indexed->index[file];

	*extent = (struct leat_extent){
		.file = (uint32_t)file,
		.damaged = leat_index_is_damaged(index, i),
		.offset = leat_index_offset(index, i),
		.length = leat_index_length(index, i),
	};
	/* Buffers have max_length bytes; never trust the index to stay within that. */
	if (extent->length > indexed->max_length)
		extent->damaged = true;
}

static void
locate(const struct leat_source *source, uint64_t sample, struct leat_extent *extent)
{
	struct leat_indexed *indexed = source->state;
	size_t file = leat_source_part(source, sample, &indexed->last);

	locate_in(indexed, file, sample - indexed->first[file], extent);
}

/* `type` NULL: bytes. */
static enum leat_status
add_field(struct leat_source *source, const char *name, size_t len, const struct leat_field *type, struct leat_err *err)
{
	char text[LEAT_MAX_NAME + 1], shown[100];
	struct leat_field *field = NULL;

	if (len <= LEAT_MAX_NAME) {
		memcpy(text, name, len);
		text[len] = '\0';
		field = leat_schema_add(&source->schema, text, type ? type->dtype : LEAT_U8);
	}
	if (!field)
		return leat_fail(err, LEAT_SPEC, "tar: invalid field '%s': %s",
		                 leat_show(shown, sizeof(shown), name, len),
		                 len == 0 || len > LEAT_MAX_NAME           ? "a name has 1 to 63 bytes"
		                 : source->schema.count == LEAT_MAX_FIELDS ? "there are too many fields"
		                                                           : "the name is a duplicate");
	field->ndim = type ? type->ndim : 1;
	field->shape[0] = -1;
	if (type)
		memcpy(field->shape, type->shape, sizeof(field->shape));
	return LEAT_OK;
}

/* 'image=jpg;png' is the field image; 'jpg;png' is the field jpg; 'cls:int64' is the field cls. */
static enum leat_status
add_named_fields(struct leat_source *source, struct leat_err *err)
{
	const struct leat_tar_params *params = source->params;
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < params->fields.count && status == LEAT_OK; i++) {
		const char *text = params->fields.value[i];
		struct leat_field type = {.ndim = 0};
		size_t len = strcspn(text, "=;"), all;
		bool bytes = type_of(text, &type, &all) == BYTES;

		status = add_field(source, text, len < all ? len : all, bytes ? NULL : &type, err);
	}
	return status;
}

static bool
can_be_field(const struct leat_source *source, const char *name, size_t len)
{
	for (size_t at = 0; at < len;) {
		size_t n = leat_utf8_length(name + at); /* a NUL follows the name */

		if (n == 0 || (unsigned char)name[at] < 0x20 || name[at] == ';' || name[at] == 0x7f)
			return false;
		at += n;
	}
	return len > 0 && len <= LEAT_MAX_NAME && source->schema.count < LEAT_MAX_FIELDS;
}

/* Adds a field for each file of a sample. */
static enum leat_status
add_fields_of(struct leat_source *source, const struct leat_extent *extent, unsigned char *bytes, struct leat_err *err)
{
	struct members m = {.bytes = bytes, .len = (size_t)extent->length};
	enum leat_status status = LEAT_OK;

	while (status == LEAT_OK && next_member(&m)) {
		char shown[100];
		size_t len;
		char *name = (char *)extension(&m, &len);

		for (size_t i = 0; i < len; i++)
			name[i] = lower(name[i]);
		if (leat_schema_find(&source->schema, name) >= 0)
			continue; /* unpack will report the sample as bad */
		if (can_be_field(source, name, len))
			status = add_field(source, name, len, NULL, err);
		else
			leat_log(source->log, LEAT_LOG_WARN, "skipping '%s', which is not a valid field name",
			         leat_show(shown, sizeof(shown), name, len));
	}
	if (status == LEAT_OK && m.fault)
		return fail_sample(source, extent, m.fault, err);
	if (status == LEAT_OK && !source->schema.count)
		return fail_sample(source, extent, "no extension in the first sample is a valid field name", err);
	return status;
}

static enum leat_status
add_first_fields(struct leat_source *source, const struct leat_extent *extent, struct leat_err *err)
{
	unsigned char *bytes = leat_alloc(source->mem, (size_t)extent->length);
	struct iovec iov = {.iov_base = bytes, .iov_len = (size_t)extent->length};
	enum leat_status status;
	size_t got;

	if (!bytes)
		return leat_fail_mem(err, source->mem, (size_t)extent->length, "the first sample");
	status = leat_files_read(source->files, extent->file, extent->offset, &iov, 1, 0, &got, err);
	if (status == LEAT_OK)
		status = add_fields_of(source, extent, bytes, err);
	leat_free(source->mem, bytes);
	return status;
}

/* Finds the first sample that can be read. Fails if there is none. */
static enum leat_status
find_first(const struct leat_source *source, const struct leat_indexed *indexed, struct leat_extent *extent,
           struct leat_err *err)
{
	size_t files = leat_files_count(source->files);
	const char *one = leat_files_at(source->files, 0)->uri;
	struct leat_extent oversized = {0};

	for (size_t i = 0; i < files; i++) {
		const struct leat_index *index = &indexed->index[i];

		for (uint64_t k = 0; index->damaged < index->count && k < index->count; k++) {
			locate_in(indexed, i, k, extent);
			leat_source_check_size(source, extent);
			if (!extent->damaged)
				return LEAT_OK;
			if (extent->oversized)
				oversized = *extent;
		}
	}
	if (oversized.oversized) {
		leat_source_fail_oversized(source, &oversized, err);
		if (err)
			leat_err_in(err, "no tar file has a readable sample; the last");
		return LEAT_DATA;
	}
	if (indexed->damaged) {
		locate_in(indexed, leat_indexed_first_file(indexed), 0, extent);
		describe_damage(source, extent, err);
		if (err)
			leat_err_in(err, "no tar file has a readable sample");
		return LEAT_DATA;
	}
	if (files > 1)
		return leat_fail(err, LEAT_DATA, "no samples in %zu files, the first of which is '%s'", files, one);
	return leat_fail(err, LEAT_DATA, "'%s' has no samples: no file in it has a name like KEY.EXTENSION", one);
}

static void
close_source(struct leat_source *source)
{
	struct leat_indexed *indexed = source->state;

	if (indexed)
		leat_indexed_close(indexed);
	leat_free(source->mem, indexed);
	leat_files_close(source->files);
}

static enum leat_status
open_indexed(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	const struct leat_tar_params *params = source->params;
	struct leat_indexed *indexed = source->state = leat_alloc(source->mem, sizeof(*indexed));
	struct leat_extent first;
	enum leat_status status;

	if (!indexed)
		return leat_fail_mem(err, source->mem, sizeof(*indexed), "the indexes of the files");
	status = leat_indexed_open(indexed, &leat_tar_index, &source->stores, &params->patterns, &source->files,
	                           threads, source->mem, source->log, err);
	if (status == LEAT_OK)
		status = find_first(source, indexed, &first, err);
	if (status == LEAT_OK && !params->fields.count)
		status = add_first_fields(source, &first, err);
	if (status != LEAT_OK)
		return status;
	source->first = indexed->first;
	source->count = indexed->first[leat_files_count(source->files)];
	leat_source_longest(source, indexed->max_length, indexed->max_length);
	/* A key, numbers, and arrays; several fields may share an array. */
	source->max_scratch = LEAT_TAR_NAME + 64 * (size_t)source->schema.count;
	for (int i = 0; i < source->schema.count; i++)
		if (type_of_field(source, i) == ARRAY)
			source->max_scratch += (size_t)source->max_length;
	return LEAT_OK;
}

static enum leat_status
open_source(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	enum leat_status status = add_named_fields(source, err);

	if (status != LEAT_OK)
		return status;
	status = open_indexed(source, threads, err);
	if (status != LEAT_OK)
		close_source(source);
	return status;
}

const struct leat_source_kind leat_source_tar = {
	.name = "tar",
	.doc = "Read WebDataset tar files: files with the same name up to the first dot form one sample, each as bytes "
	       "in a field named after its extension.",
	.example = "tar('train-*.tar', fields=['image=jpg;png', 'label=cls:int64'])",
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct leat_tar_params),
	.open = open_source,
	.close = close_source,
	.locate = locate,
	.unpack = unpack,
};
