/* shards_npy.c - shards as arrays: FOLDER/COLUMN-00000-of-00016.npy, of shape [rows] or, for lists, [rows, length]
 *
 * The number of rows is known before the first, so headers are written once. */
#include <string.h>

#include "cli/convert_formats.h"
#include "cli/shards.h"
#include "format/npy_write.h"

enum leat_dtype
leat_shard_dtype(const struct leat_shard_column *column)
{
	switch (column->kind) {
	case LEAT_COLUMN_BOOL:
		return LEAT_BOOL;
	case LEAT_COLUMN_INT8:
		return LEAT_I8;
	case LEAT_COLUMN_INT16:
		return LEAT_I16;
	case LEAT_COLUMN_INT32:
		return LEAT_I32;
	case LEAT_COLUMN_UINT8:
		return LEAT_U8;
	case LEAT_COLUMN_UINT16:
		return LEAT_U16;
	case LEAT_COLUMN_UINT32:
		return LEAT_U32;
	case LEAT_COLUMN_UINT64:
		return LEAT_U64;
	case LEAT_COLUMN_FLOAT:
		return LEAT_F32;
	case LEAT_COLUMN_DOUBLE:
		return LEAT_F64;
	default:
		return LEAT_I64;
	}
}

static enum leat_status
put_head(struct leat_shard *shard, size_t f, struct leat_err *err)
{
	const struct leat_shard_column *column = &shard->job->table.column[f];
	int64_t shape[2] = {(int64_t)shard->rows, (int64_t)column->length};
	char head[LEAT_NPY_HEAD];
	size_t len = leat_npy_head(head, leat_shard_dtype(column), column->is_list ? 2 : 1, shape, shape[0]);

	return leat_shard_put(shard, f, head, len, err);
}

static enum leat_status
write_shard(struct leat_shard *shard, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t f = 0; f < shard->files && status == LEAT_OK; f++)
		status = put_head(shard, f, err);
	while (status == LEAT_OK && (status = leat_shard_row(shard, err)) == LEAT_OK)
		for (size_t f = 0; f < shard->files && status == LEAT_OK; f++)
			status = leat_shard_put(shard, f, shard->value[f].bytes, shard->value[f].len, err);
	return status == LEAT_END ? LEAT_OK : status;
}

/* npy(x='out/x-?????-of-00004.npy', ...): files of a column that is no word get a field with another name. */
static void
print_spec(const struct leat_shard_job *job, const char *pattern, struct leat_str *out)
{
	const char *name = strstr(pattern, "%s");

	leat_str_add(out, "npy(");
	for (size_t i = 0; i < job->table.columns; i++) {
		const struct leat_shard_column *column = &job->table.column[i];
		struct leat_str path;

		leat_str_init(&path, job->mem, SIZE_MAX / 4);
		leat_str_addn(&path, pattern, (size_t)(name - pattern));
		leat_str_addf(&path, "%s%s", column->name, name + 2);
		leat_str_add(out, i ? ", " : "");
		if (leat_is_word(column->name))
			leat_str_addf(out, "%s=", column->name);
		else
			leat_str_addf(out, "column%zu=", i + 1);
		leat_str_add_quoted(out, leat_str_text(&path));
		leat_str_free(&path);
	}
	leat_str_add(out, ")");
}

const struct leat_shard_format leat_shard_npy = {
	.suffix = ".npy",
	.holder = "an array",
	.by_column = true,
	.no_texts = true,
	.no_text_lists = true,
	.dense = true,
	.compressions = 1u << LEAT_COMPRESS_NONE,
	.usual = LEAT_COMPRESS_NONE,
	.write = write_shard,
	.print_spec = print_spec,
};
