/* shards_tfrecord.c - shards as TFRecord files: a tf.train.Example for each row
 *
 * Records are finished before they are ordered (shards_rows.c), so that a shard is a copy of its records. Only rows
 * with files that are read last are packed, and become Examples here. */
#include <string.h>
#include <zlib.h>

#include "base/array.h"
#include "cli/convert_formats.h"
#include "cli/shards.h"
#include "format/record.h"

/* ---- rows that are packed ---- */

/* A buffer for a record, and for the texts of a list. */
struct encoder {
	struct leat_mem *mem;
	unsigned char *bytes;
	size_t cap;
	const void **text;
	size_t *text_len;
	size_t text_cap, text_len_cap;
	int64_t *numbers; /* of a list, aligned */
	size_t numbers_cap;
};

static void
free_encoder(struct encoder *e)
{
	leat_free(e->mem, e->bytes);
	leat_free(e->mem, e->text);
	leat_free(e->mem, e->text_len);
	leat_free(e->mem, e->numbers);
}

static enum leat_status
make_room(struct encoder *e, const struct leat_shard *shard, struct leat_err *err)
{
	size_t room = LEAT_ROW_ROOM, most = 1;
	enum leat_status status;

	for (size_t i = 0; i < shard->job->table.columns; i++) {
		const struct leat_shard_value *value = &shard->value[i];

		room += leat_row_feature_room(&shard->job->table.column[i].feature, value->count, value->len);
		most = value->count > most ? value->count : most;
	}
	if (room > INT32_MAX)
		return leat_fail(err, LEAT_DATA, "a row has about %zu bytes, and a tf.train.Example may have 2 GiB",
		                 room);
	status = LEAT_GROW_RAW(e->mem, e->bytes, e->cap, room, SIZE_MAX, "a row", err);
	if (status == LEAT_OK)
		status = LEAT_GROW_RAW(e->mem, e->text, e->text_cap, most, SIZE_MAX, "a list", err);
	if (status == LEAT_OK)
		status = LEAT_GROW_RAW(e->mem, e->text_len, e->text_len_cap, most, SIZE_MAX, "a list", err);
	if (status == LEAT_OK)
		status = LEAT_GROW_RAW(e->mem, e->numbers, e->numbers_cap, most, SIZE_MAX, "a list", err);
	return status;
}

static unsigned char *
put_texts(struct encoder *e, const struct leat_row_feature *feature, const struct leat_shard_value *value,
          unsigned char *to)
{
	size_t at = 0;

	for (size_t i = 0; i < value->count; i++)
		e->text[i] = leat_shard_next_text(value, &at, &e->text_len[i]);
	return leat_row_put_texts(feature, to, e->text, e->text_len, value->count);
}

static unsigned char *
put_value(struct encoder *e, const struct leat_shard_column *column, const struct leat_shard_value *value,
          unsigned char *to)
{
	const struct leat_row_feature *feature = &column->feature;

	if (!column->size)
		return column->is_list ? put_texts(e, feature, value, to)
		                       : leat_row_put_bytes(feature, to, value->bytes, value->len);
	if (value->len)
		memcpy(e->numbers, value->bytes, value->len);
	if (feature->kind == LEAT_FEATURE_INT64)
		return column->is_list ? leat_row_put_int64s(feature, to, e->numbers, value->count)
		                       : leat_row_put_int64(feature, to, *e->numbers);
	return column->is_list ? leat_row_put_floats(feature, to, (const float *)e->numbers, value->count)
	                       : leat_row_put_float(feature, to, *(const float *)e->numbers);
}

/* The next record; LEAT_END: there is none. */
static enum leat_status
next_record(struct encoder *e, struct leat_shard *shard, const void **record, size_t *len, struct leat_err *err)
{
	enum leat_status status;
	unsigned char *to;

	if (!leat_shards_pack(shard->job))
		return leat_shard_record(shard, record, len, err);
	status = leat_shard_row(shard, err);
	if (status == LEAT_OK)
		status = make_room(e, shard, err);
	if (status != LEAT_OK)
		return status;
	to = leat_row_begin(e->bytes);
	for (size_t i = 0; i < shard->job->table.columns; i++)
		if (!shard->value[i].null)
			to = put_value(e, &shard->job->table.column[i], &shard->value[i], to);
	*record = leat_row_end(e->bytes, to, len);
	return LEAT_OK;
}

/* ---- files ---- */

static enum leat_status
write_records(struct encoder *e, struct leat_shard *shard, struct leat_err *err)
{
	enum leat_status status;
	const void *record;
	size_t len;

	while ((status = next_record(e, shard, &record, &len, err)) == LEAT_OK) {
		if (shard->index)
			status = leat_index_add(shard->index, leat_shard_size(shard, 0), false, err);
		if (status == LEAT_OK)
			status = leat_shard_put(shard, 0, record, len, err);
		if (status != LEAT_OK)
			break;
	}
	return status;
}

/* Feeds start in the middle of a gzip file, at the beginning of a block (format/points.h). */
static enum leat_status
deflate_bytes(struct leat_shard *shard, z_stream *z, const void *bytes, size_t len, int flush, struct leat_err *err)
{
	enum { PIECE = 16384 };
	enum leat_status status = LEAT_OK;
	unsigned char piece[PIECE];

	z->next_in = (unsigned char *)bytes;
	z->avail_in = (unsigned)len; /* of a record: below 2 GiB */
	do {
		z->next_out = piece;
		z->avail_out = PIECE;
		deflate(z, flush);
		status = leat_shard_put(shard, 0, piece, PIECE - z->avail_out, err);
	} while (status == LEAT_OK && z->avail_out == 0);
	return status;
}

static enum leat_status
write_gzip(struct encoder *e, struct leat_shard *shard, struct leat_err *err)
{
	enum { GZIP_WINDOW = 15 + 16, MEMORY = 8 };
	z_stream z = {0};
	enum leat_status status;
	const void *record;
	size_t len;

	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
		return leat_fail_mem(err, shard->job->mem, 1 << 18, "compressing a shard");
	while ((status = next_record(e, shard, &record, &len, err)) == LEAT_OK)
		if ((status = deflate_bytes(shard, &z, record, len, Z_NO_FLUSH, err)) != LEAT_OK)
			break;
	if (status == LEAT_END)
		status = deflate_bytes(shard, &z, NULL, 0, Z_FINISH, err);
	deflateEnd(&z);
	return status;
}

static enum leat_status
write_shard(struct leat_shard *shard, struct leat_err *err)
{
	bool gzip = shard->job->compression == LEAT_COMPRESS_GZIP;
	struct encoder e = {.mem = shard->job->mem};
	enum leat_status status = (gzip ? write_gzip : write_records)(&e, shard, err);

	free_encoder(&e);
	return status == LEAT_END ? LEAT_OK : status;
}

/* ---- the spec ---- */

static const char *
type_of(const struct leat_shard_column *column)
{
	switch (column->feature.kind) {
	case LEAT_FEATURE_INT64:
		return "int64";
	case LEAT_FEATURE_FLOAT:
		return "float";
	default:
		return "bytes";
	}
}

/* A feature that some rows do not have needs a value for them. */
static void
print_feature(const struct leat_shard_column *column, size_t i, struct leat_str *out)
{
	bool word = leat_is_word(column->name), none = column->nulls && !column->is_list;
	bool texts = column->feature.kind == LEAT_FEATURE_BYTES;

	leat_str_add(out, i ? ", " : "");
	if (word)
		leat_str_addf(out, "%s=", column->name);
	else
		leat_str_addf(out, "column%zu=", i + 1);
	leat_str_addf(out, "%s%s", type_of(column), column->is_list && !texts ? "[]" : "");
	if (none)
		leat_str_addf(out, "(default=%s", texts ? "''" : "0");
	if (!word) {
		leat_str_add(out, none ? ", key=" : "(key=");
		leat_str_add_quoted(out, column->name);
	}
	leat_str_add(out, none || !word ? ")" : "");
}

static void
print_spec(const struct leat_shard_job *job, const char *pattern, struct leat_str *out)
{
	leat_str_add(out, "tfrecord(");
	leat_str_add_quoted(out, pattern);
	leat_str_add(out, ") | example(");
	for (size_t i = 0; i < job->table.columns; i++)
		print_feature(&job->table.column[i], i, out);
	leat_str_add(out, ")");
}

const struct leat_shard_format leat_shard_tfrecord = {
	.suffix = ".tfrecord",
	.holder = "a tf.train.Example",
	.compressions = 1u << LEAT_COMPRESS_NONE | 1u << LEAT_COMPRESS_GZIP,
	.usual = LEAT_COMPRESS_NONE,
	.index = &leat_tfrecord_index,
	.write = write_shard,
	.print_spec = print_spec,
};
