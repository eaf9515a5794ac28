/* shards_parquet.c - shards as Parquet files, written by DuckDB
 *
 * DuckDB asks for rows, in a database of one thread for each shard, so that their order is kept. It writes to a file
 * without a name, whose bytes are then those of the shard: so a killed command leaves nothing, and shards may go to a
 * server.
 *
 * Row groups are what feeds decode at once, and what they shuffle within a window. Small ones shuffle better, and large
 * ones compress better: 32,768 rows or 8 MB, whatever is less. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/shards.h"
#include "table/rows_write.h"

enum { PIECE = 1 << 20, MAX_SQL = 1 << 24 };

static const char row_groups[] = "ROW_GROUP_SIZE 32768, ROW_GROUP_SIZE_BYTES '8MB', USE_TMP_FILE false";

/* ---- rows ---- */

static void
put_texts(struct leat_row_chunk *chunk, size_t column, size_t row, const struct leat_shard_value *value)
{
	size_t at = 0, first, len;

	leat_cell_set_list(chunk, column, row, value->count, 0, &first);
	for (size_t i = 0; i < value->count; i++) {
		const unsigned char *text = leat_shard_next_text(value, &at, &len);

		leat_cell_set_element(chunk, column, first + i, (const char *)text, len);
	}
}

static void
put_value(struct leat_row_chunk *chunk, size_t i, size_t row, const struct leat_shard_column *column,
          const struct leat_shard_value *value)
{
	struct leat_cells *cells = &chunk->cells[i];
	size_t first;
	void *to;

	if (value->null) {
		leat_cell_set_null(cells, row);
		return;
	}
	leat_cell_set_valid(cells, row);
	if (!column->size && column->is_list)
		put_texts(chunk, i, row, value);
	else if (!column->size)
		leat_cell_set_text(chunk, i, row, (const char *)value->bytes, value->len);
	else {
		to = column->is_list ? leat_cell_set_list(chunk, i, row, value->count, column->size, &first)
		                     : (char *)cells->values + row * column->size;
		if (value->len)
			memcpy(to, value->bytes, value->len);
	}
}

/* Called by DuckDB. A chunk with large texts ends early, so that memory is bounded. */
static enum leat_status
make_rows(void *arg, struct leat_row_chunk *chunk, size_t *rows, struct leat_err *err)
{
	enum { ENOUGH = 4 << 20 };
	struct leat_shard *shard = arg;
	const struct leat_shard_table *table = &shard->job->table;
	enum leat_status status = LEAT_OK;
	size_t bytes = 0;

	for (*rows = 0; *rows < chunk->room && bytes < ENOUGH; (*rows)++) {
		status = leat_shard_row(shard, err);
		if (status != LEAT_OK)
			break;
		for (size_t i = 0; i < table->columns; i++) {
			put_value(chunk, i, *rows, &table->column[i], &shard->value[i]);
			bytes += shard->value[i].len;
		}
	}
	return status == LEAT_END ? LEAT_OK : status;
}

/* ---- the statement ---- */

static enum leat_status
declare(const struct leat_shard_table *table, struct leat_declared_columns *columns, struct leat_err *err)
{
	columns->mem = table->mem;
	columns->column = leat_alloc_array(table->mem, table->columns, sizeof(*columns->column));
	if (!columns->column)
		return leat_fail_mem(err, table->mem, table->columns * sizeof(*columns->column),
		                     "the columns of a table");
	columns->count = table->columns;
	for (size_t i = 0; i < table->columns; i++) {
		const struct leat_shard_column *column = &table->column[i];

		columns->column[i] = (struct leat_declared){.name = (char *)column->name,
		                                            .kind = column->is_image ? LEAT_COLUMN_BLOB : column->kind,
		                                            .width = column->width,
		                                            .scale = column->scale,
		                                            .is_list = column->is_list};
	}
	return LEAT_OK;
}

/* Columns get the types that they have in the table. */
static void
add_select(const struct leat_shard_table *table, struct leat_str *select)
{
	for (size_t i = 0; i < table->columns; i++) {
		const struct leat_shard_column *column = &table->column[i];

		leat_str_add(select, i ? ", " : "");
		leat_str_add(select, column->is_image ? "" : "CAST(");
		leat_sql_quote(select, column->name, '"');
		if (!column->is_image)
			leat_str_addf(select, " AS %s)", column->type);
		leat_str_add(select, " AS ");
		leat_sql_quote(select, column->name, '"');
	}
}

static const char *
codec_of(const struct leat_shard_job *job)
{
	switch (job->compression) {
	case LEAT_COMPRESS_NONE:
		return "uncompressed";
	case LEAT_COMPRESS_GZIP:
		return "gzip";
	case LEAT_COMPRESS_SNAPPY:
		return "snappy";
	default:
		return "zstd";
	}
}

static enum leat_status
write_rows(struct leat_shard *shard, struct leat_tables *tables, int fd, struct leat_err *err)
{
	struct leat_shard_job *job = shard->job;
	struct leat_declared_columns columns = {0};
	enum leat_status status = declare(&job->table, &columns, err);
	struct leat_str select;
	char path[64], options[160];

	leat_str_init(&select, job->mem, MAX_SQL);
	add_select(&job->table, &select);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	snprintf(options, sizeof(options), "COMPRESSION %s, %s", codec_of(job), row_groups);
	if (status == LEAT_OK && select.failed)
		status = leat_fail_mem(err, job->mem, select.len, "a query");
	if (status == LEAT_OK)
		status = leat_rows_copy(tables, &columns, &(struct leat_row_maker){make_rows, shard},
		                        leat_str_text(&select), path, options, job->mem, err);
	leat_str_free(&select);
	leat_free(job->mem, columns.column);
	return status;
}

/* ---- the file ---- */

static enum leat_status
copy_file(struct leat_shard *shard, int fd, struct leat_err *err)
{
	unsigned char *piece = leat_alloc(shard->job->mem, PIECE);
	enum leat_status status = piece ? LEAT_OK : leat_fail_mem(err, shard->job->mem, PIECE, "the buffer of a shard");
	off_t at = 0;

	while (status == LEAT_OK) {
		ssize_t n = pread(fd, piece, PIECE, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			status = leat_fail_errno(err, errno, "cannot read a temporary file");
		if (n <= 0)
			break;
		at += n;
		status = leat_shard_put(shard, 0, piece, (size_t)n, err);
	}
	leat_free(shard->job->mem, piece);
	return status;
}

static enum leat_status
write_shard(struct leat_shard *shard, struct leat_err *err)
{
	struct leat_shard_job *job = shard->job;
	struct leat_tables *tables = NULL;
	char *folder = NULL;
	enum leat_status status = leat_shards_spill_folder(job, &folder, err);
	int fd = status == LEAT_OK ? leat_open_unlinked(folder) : -1;

	if (status == LEAT_OK && fd < 0)
		status = leat_fail_errno(err, errno, "cannot use a temporary file in '%s'", folder);
	if (status == LEAT_OK)
		status = leat_tables_open(
			&tables, &(struct leat_tables_options){.threads = 1, .memory = job->format->writer_memory},
			err);
	if (status == LEAT_OK)
		status = write_rows(shard, tables, fd, err);
	leat_tables_close(tables);
	if (status == LEAT_OK)
		status = copy_file(shard, fd, err);
	if (fd >= 0)
		close(fd);
	leat_free(job->mem, folder);
	return status;
}

static void
print_spec(const struct leat_shard_job *job, const char *pattern, struct leat_str *out)
{
	(void)job;
	leat_str_add(out, "parquet(");
	leat_str_add_quoted(out, pattern);
	leat_str_add(out, ")");
}

const struct leat_shard_format leat_shard_parquet = {
	.suffix = ".parquet",
	.holder = "a row of shards",
	.exact = true,
	.compressions = 1u << LEAT_COMPRESS_NONE | 1u << LEAT_COMPRESS_GZIP | 1u << LEAT_COMPRESS_SNAPPY |
                        1u << LEAT_COMPRESS_ZSTD,
	.usual = LEAT_COMPRESS_ZSTD,
	.min_memory = (size_t)256 << 20,
	.writer_memory = (size_t)96 << 20,
	.write = write_shard,
	.print_spec = print_spec,
};
