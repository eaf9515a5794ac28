/* shards_tar.c - shards as tar files in WebDataset's layout: a file KEY.COLUMN.EXTENSION for each value
 *
 * The key is the row's position in its part. Integers are .cls, other numbers and lists .npy, text .txt, and bytes
 * .jpg, .png, .webp or .bin by what they are, as 'leat convert' has them. NULL is a file that is missing. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/shards.h"
#include "format/npy_write.h"
#include "format/tar.h"
#include "format/tar_write.h"

static bool
is_class(const struct leat_shard_column *column)
{
	enum leat_dtype dtype = leat_shard_dtype(column);

	return !column->is_list && dtype != LEAT_F32 && dtype != LEAT_F64 && dtype != LEAT_U64;
}

static enum leat_tar_extension
extension_of(const struct leat_shard_column *column, const struct leat_shard_value *value)
{
	if (column->size)
		return is_class(column) ? LEAT_TAR_CLS : LEAT_TAR_NPY;
	if (column->kind == LEAT_COLUMN_TEXT && !column->is_image)
		return leat_tar_is_file_name(column->name) ? LEAT_TAR_OWN : LEAT_TAR_TXT;
	return leat_tar_extension_of(column->name, value->bytes, value->len);
}

static int64_t
integer_of(const struct leat_shard_column *column, const unsigned char *bytes)
{
	int64_t wide;
	int32_t number;
	int16_t small;
	uint32_t word;
	uint16_t half;

	switch (leat_shard_dtype(column)) {
	case LEAT_I8:
		return (int8_t)*bytes;
	case LEAT_BOOL:
	case LEAT_U8:
		return *bytes;
	case LEAT_I16:
		memcpy(&small, bytes, sizeof(small));
		return small;
	case LEAT_U16:
		memcpy(&half, bytes, sizeof(half));
		return half;
	case LEAT_I32:
		memcpy(&number, bytes, sizeof(number));
		return number;
	case LEAT_U32:
		memcpy(&word, bytes, sizeof(word));
		return word;
	default:
		memcpy(&wide, bytes, sizeof(wide));
		return wide;
	}
}

static enum leat_status
put_member(struct leat_shard *shard, const char *name, const struct iovec *piece, struct leat_err *err)
{
	static const char zeros[LEAT_TAR_BLOCK];
	size_t size = piece[0].iov_len + piece[1].iov_len;
	char head[LEAT_TAR_MEMBER_HEAD];
	enum leat_status status = leat_tar_head(head, name, size, err);

	if (status == LEAT_OK)
		status = leat_shard_put(shard, 0, head, sizeof(head), err);
	for (int i = 0; i < 2 && status == LEAT_OK; i++)
		if (piece[i].iov_len)
			status = leat_shard_put(shard, 0, piece[i].iov_base, piece[i].iov_len, err);
	return status == LEAT_OK ? leat_shard_put(shard, 0, zeros, -size % LEAT_TAR_BLOCK, err) : status;
}

static enum leat_status
put_value(struct leat_shard *shard, struct leat_shard_column *column, const struct leat_shard_value *value,
          uint64_t position, struct leat_err *err)
{
	enum leat_tar_extension extension = extension_of(column, value);
	struct iovec piece[2] = {{NULL, 0}, {(void *)value->bytes, value->len}};
	char name[LEAT_TAR_MEMBER_NAME + 64], text[LEAT_NPY_HEAD];
	int64_t count = (int64_t)value->count;

	atomic_fetch_or_explicit(&column->extensions, 1u << extension, memory_order_relaxed);
	snprintf(name, sizeof(name), "%08" PRIu64 ".%s%s", position, column->name, leat_tar_extensions[extension]);
	if (extension == LEAT_TAR_NPY) {
		piece[0] = (struct iovec){
			text, leat_npy_head(text, leat_shard_dtype(column), column->is_list, &count, count)};
	} else if (extension == LEAT_TAR_CLS) {
		piece[0] = (struct iovec){
			text, (size_t)snprintf(text, sizeof(text), "%" PRId64, integer_of(column, value->bytes))};
		piece[1].iov_len = 0;
	}
	return put_member(shard, name, piece, err);
}

static enum leat_status
put_row(struct leat_shard *shard, uint64_t position, struct leat_err *err)
{
	struct leat_shard_table *table = &shard->job->table;
	uint64_t begin = leat_shard_size(shard, 0);
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < table->columns && status == LEAT_OK; i++)
		if (!shard->value[i].null)
			status = put_value(shard, &table->column[i], &shard->value[i], position, err);
	if (status == LEAT_OK && leat_shard_size(shard, 0) == begin)
		return leat_fail(err, LEAT_DATA,
		                 "a row has only NULLs, and a sample of a tar file needs a file; leave it out in SQL");
	if (status == LEAT_OK && shard->index)
		status = leat_index_add_span(shard->index, begin, leat_shard_size(shard, 0), false, err);
	return status;
}

/* Names are files: what a folder cannot have is refused before anything is written. */
static enum leat_status
check_names(const struct leat_shard *shard, struct leat_err *err)
{
	for (size_t i = 0; i < shard->job->table.columns; i++) {
		const char *name = shard->job->table.column[i].name;

		if (strchr(name, '/') || *name == '.' || strlen(name) > LEAT_MAX_NAME)
			return leat_fail(err, LEAT_INVALID, "column '%.100s' cannot be used in a file name: rename it",
			                 name);
	}
	return LEAT_OK;
}

static enum leat_status
write_shard(struct leat_shard *shard, struct leat_err *err)
{
	static const char end[2 * LEAT_TAR_BLOCK];
	enum leat_status status = check_names(shard, err);

	for (uint64_t i = 0; status == LEAT_OK && (status = leat_shard_row(shard, err)) == LEAT_OK; i++)
		status = put_row(shard, shard->first + i, err);
	return status == LEAT_END ? leat_shard_put(shard, 0, end, sizeof(end), err) : status;
}

/* 'image=image.jpg;image.png', 'user=user.cls:int64', 'x=x.npy:float32[?]' */
static void
print_field(const struct leat_shard_job *job, const struct leat_shard_column *column, struct leat_str *out)
{
	unsigned extensions = atomic_load_explicit(&column->extensions, memory_order_relaxed);
	struct leat_str text;

	leat_str_init(&text, job->mem, 4096);
	leat_tar_add_field(&text, column->name, extensions);
	if (extensions >> LEAT_TAR_CLS & 1)
		leat_str_add(&text, ":int64");
	if (extensions >> LEAT_TAR_NPY & 1)
		leat_str_addf(&text, ":%s%s", leat_dtype_name(leat_shard_dtype(column)), column->is_list ? "[?]" : "");
	leat_str_add_quoted(out, leat_str_text(&text));
	leat_str_free(&text);
}

static void
print_spec(const struct leat_shard_job *job, const char *pattern, struct leat_str *out)
{
	size_t n = 0;

	leat_str_add(out, "tar(");
	leat_str_add_quoted(out, pattern);
	leat_str_add(out, ", fields=[");
	for (size_t i = 0; i < job->table.columns; i++) {
		if (!job->table.column[i].extensions)
			continue; /* always NULL */
		leat_str_add(out, n++ ? ", " : "");
		print_field(job, &job->table.column[i], out);
	}
	leat_str_add(out, "])");
}

const struct leat_shard_format leat_shard_tar = {
	.suffix = ".tar",
	.holder = "a tar file",
	.no_text_lists = true,
	.compressions = 1u << LEAT_COMPRESS_NONE,
	.usual = LEAT_COMPRESS_NONE,
	.index = &leat_tar_index,
	.write = write_shard,
	.print_spec = print_spec,
};
