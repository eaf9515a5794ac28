/* parquet_decode.c - see parquet_decode.h */
#include "format/parquet_decode.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/hash.h"

enum {
	INSTANCE = 3 << 20,     /* of a database, beside what its memory_limit counts */
	LEAST = 3 << 20,        /* what it counts, with one thread that scans a small file */
	PER_COLUMN = 128 << 10, /* vectors of a chunk */
	SQL_MOST = 1 << 20,
	PATH = 40,
};

struct leat_parquet_decoder {
	struct leat_mem *mem;
	struct leat_tables *tables;
	int fd; /* the file in memory */
	char path[PATH];
	void *reserved; /* never touched: counts what DuckDB and the file may take */
	size_t reserve;
	unsigned char *footer; /* cut */
	size_t footer_room;
	struct leat_str sql;
};

/* ---- open and close ---- */

/* Pages of all columns, decompressed, and what they are decompressed from and decoded with. */
size_t
leat_parquet_decoder_memory(uint64_t unpacked, size_t columns)
{
	uint64_t memory = INSTANCE + LEAST + (uint64_t)columns * PER_COLUMN;

	return (size_t)(unpacked > SIZE_MAX / 8 ? SIZE_MAX / 4 : memory + 2 * unpacked);
}

static size_t
reserve_for(size_t memory, size_t file)
{
	size_t sum, page = (size_t)sysconf(_SC_PAGESIZE);

	if (__builtin_add_overflow(memory, file, &sum) || sum > SIZE_MAX / 2)
		return SIZE_MAX / 2;
	return (sum + page - 1) / page * page;
}

size_t
leat_parquet_decoder_cost(size_t memory, size_t file)
{
	return reserve_for(memory, file) + sizeof(struct leat_parquet_decoder) + 4096;
}

static enum leat_status
open_file(struct leat_parquet_decoder *decoder, struct leat_err *err)
{
	decoder->fd = memfd_create("leat-parquet", MFD_CLOEXEC);
	if (decoder->fd < 0)
		return leat_fail_errno(err, errno, "cannot make a file in memory to decode Parquet");
	snprintf(decoder->path, sizeof(decoder->path), "/proc/self/fd/%d", decoder->fd);
	return LEAT_OK;
}

/* The file keeps its name while its content changes, so nothing of it may be cached. */
static enum leat_status
open_tables(struct leat_parquet_decoder *decoder, size_t memory, struct leat_err *err)
{
	struct leat_tables_options options = {.threads = 1, .memory = memory};
	enum leat_status status = leat_tables_open(&decoder->tables, &options, err);
	char sql[160];

	if (status != LEAT_OK)
		return status;
	snprintf(sql, sizeof(sql),
	         "SET memory_limit = '%zuB'; SET enable_external_file_cache = false; "
	         "SET parquet_metadata_cache = false",
	         memory - INSTANCE);
	return leat_tables_run(decoder->tables, sql, err);
}

enum leat_status
leat_parquet_decoder_open(struct leat_parquet_decoder **out, size_t memory, size_t file, struct leat_mem *mem,
                          struct leat_err *err)
{
	struct leat_parquet_decoder *decoder = *out = leat_alloc(mem, sizeof(*decoder));
	enum leat_status status;

	if (!decoder)
		return leat_fail_mem(err, mem, sizeof(*decoder), "decoding Parquet");
	decoder->mem = mem;
	decoder->fd = -1;
	decoder->reserve = reserve_for(memory, file);
	decoder->reserved = leat_map(mem, decoder->reserve);
	leat_str_init(&decoder->sql, mem, SQL_MOST);
	status = decoder->reserved ? open_file(decoder, err)
	                           : leat_fail_mem(err, mem, decoder->reserve, "decoding Parquet");
	if (status == LEAT_OK)
		status = open_tables(decoder, memory, err);
	if (status != LEAT_OK) {
		leat_parquet_decoder_close(decoder);
		*out = NULL;
	}
	return status;
}

void
leat_parquet_decoder_close(struct leat_parquet_decoder *decoder)
{
	if (!decoder)
		return;
	leat_tables_close(decoder->tables);
	if (decoder->fd >= 0)
		close(decoder->fd);
	leat_str_free(&decoder->sql);
	leat_free(decoder->mem, decoder->footer);
	leat_unmap(decoder->mem, decoder->reserved, decoder->reserve);
	leat_free(decoder->mem, decoder);
}

/* ---- the file in memory ---- */

static enum leat_status
put(const struct leat_parquet_decoder *decoder, const void *bytes, size_t len, uint64_t offset, struct leat_err *err)
{
	const unsigned char *from = bytes;

	while (len > 0) {
		ssize_t done = pwrite(decoder->fd, from, len, (off_t)offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return leat_fail_errno(err, done < 0 ? errno : ENOSPC, "cannot write to a file in memory");
		from += done;
		offset += (uint64_t)done;
		len -= (size_t)done;
	}
	return LEAT_OK;
}

/* Reads a chunk from its file straight into the file in memory. */
static enum leat_status
bring(const struct leat_parquet_decoder *decoder, const struct leat_object *object,
      const struct leat_parquet_chunk *chunk, struct leat_err *err)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), begin = chunk->offset / page * page;
	size_t before = (size_t)(chunk->offset - begin), len = before + (size_t)chunk->length, got;
	struct iovec iov = {.iov_len = (size_t)chunk->length};
	enum leat_status status;
	unsigned char *map;

	if (ftruncate(decoder->fd, (off_t)(chunk->offset + chunk->length)) != 0)
		return leat_fail_errno(err, errno, "cannot write to a file in memory");
	map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, decoder->fd, (off_t)begin);
	if (map == MAP_FAILED)
		return leat_fail_errno(err, errno, "cannot map a file in memory");
	iov.iov_base = map + before;
	status = leat_object_read(object, chunk->offset, &iov, 1, 0, &got, err);
	munmap(map, len);
	return status;
}

static enum leat_status
put_chunks(const struct leat_parquet_decoder *decoder, const struct leat_parquet_part *part, uint64_t *end,
           struct leat_err *err)
{
	struct leat_parquet_chunks walk;
	struct leat_parquet_chunk chunk;
	enum leat_status status = LEAT_OK;

	*end = 4;
	leat_parquet_chunks_begin(&walk, part->footer, &part->group);
	for (size_t leaf = 0; status == LEAT_OK && leaf < part->leaves && leat_parquet_chunks_next(&walk, &chunk);
	     leaf++) {
		if (!part->wanted[leaf] || !chunk.length)
			continue;
		status = part->bytes ? put(decoder, part->bytes + (chunk.offset - part->offset), (size_t)chunk.length,
		                           chunk.offset, err)
		                     : bring(decoder, part->object, &chunk, err);
		if (chunk.offset + chunk.length > *end)
			*end = chunk.offset + chunk.length;
	}
	return status;
}

static enum leat_status
clear(const struct leat_parquet_decoder *decoder, struct leat_err *err)
{
	if (ftruncate(decoder->fd, 0) != 0)
		return leat_fail_errno(err, errno, "cannot write to a file in memory");
	return put(decoder, "PAR1", 4, 0, err);
}

static enum leat_status
reserve_footer(struct leat_parquet_decoder *decoder, size_t len, struct leat_err *err)
{
	unsigned char *footer;

	if (len <= decoder->footer_room)
		return LEAT_OK;
	footer = leat_realloc_raw(decoder->mem, decoder->footer, len);
	if (!footer)
		return leat_fail_mem(err, decoder->mem, len, "the footer of a Parquet file");
	decoder->footer = footer;
	decoder->footer_room = len;
	return LEAT_OK;
}

/* Makes the file of one group. */
static enum leat_status
load(struct leat_parquet_decoder *decoder, const struct leat_parquet_part *part, struct leat_err *err)
{
	enum leat_status status = reserve_footer(decoder, part->footer->len + LEAT_PARQUET_CUT_EXTRA, err);
	uint64_t end = 0;

	if (status == LEAT_OK)
		status = clear(decoder, err);
	if (status == LEAT_OK)
		status = put_chunks(decoder, part, &end, err);
	if (status == LEAT_OK)
		status = put(decoder, decoder->footer,
		             leat_parquet_footer_cut(part->footer, &part->group, decoder->footer), end, err);
	return status;
}

/* Makes a file of the footer alone, which is enough for the columns' types. */
static enum leat_status
load_footer(struct leat_parquet_decoder *decoder, const struct leat_parquet_footer *footer, struct leat_err *err)
{
	unsigned char tail[LEAT_PARQUET_TAIL];
	enum leat_status status = clear(decoder, err);

	leat_store32(tail, (uint32_t)footer->len);
	memcpy(tail + 4, "PAR1", 4);
	if (status == LEAT_OK)
		status = put(decoder, footer->bytes, footer->len, 4, err);
	if (status == LEAT_OK)
		status = put(decoder, tail, sizeof(tail), 4 + (uint64_t)footer->len, err);
	return status;
}

/* ---- queries ---- */

/* Users do not know the file in memory: its name becomes "the file". */
static void
hide_path(const struct leat_parquet_decoder *decoder, struct leat_err *err)
{
	static const char instead[] = "the file";
	size_t len = strlen(decoder->path), quotes;
	char *at;

	while (err && (at = strstr(err->text, decoder->path)) != NULL) {
		quotes = at > err->text && (at[-1] == '"' || at[-1] == '\'') && at[len] == at[-1];
		at -= quotes;
		memmove(at + sizeof(instead) - 1, at + len + 2 * quotes, strlen(at + len + 2 * quotes) + 1);
		memcpy(at, instead, sizeof(instead) - 1);
	}
}

/* All that DuckDB can complain about is the bytes, which are in memory. */
static enum leat_status
damaged(const struct leat_parquet_decoder *decoder, enum leat_status status, struct leat_err *err)
{
	if (status == LEAT_OK || status == LEAT_CANCELLED || status == LEAT_NOMEM || status == LEAT_UNSUPPORTED)
		return status;
	hide_path(decoder, err);
	if (err)
		err->status = LEAT_DATA;
	return LEAT_DATA;
}

static void
add_from(struct leat_parquet_decoder *decoder)
{
	leat_str_add(&decoder->sql, " FROM read_parquet(");
	leat_sql_quote(&decoder->sql, decoder->path, '\'');
	leat_str_add(&decoder->sql, ", hive_partitioning = false)");
}

static enum leat_status
run(struct leat_parquet_decoder *decoder, struct leat_query **query, struct leat_err *err)
{
	if (decoder->sql.failed)
		return leat_fail(err, LEAT_LIMIT, "the names of the columns are too long");
	return damaged(decoder, leat_query_open(query, decoder->tables, leat_str_text(&decoder->sql), err), err);
}

static void
begin_sql(struct leat_parquet_decoder *decoder, const char *text)
{
	decoder->sql.len = 0;
	leat_str_add(&decoder->sql, text);
}

/* A copy of a text, which may hold anything. */
static char *
copy_text(struct leat_parquet_decoder *decoder, const struct leat_vector *vector, size_t row)
{
	size_t len;
	const char *text = leat_vector_text(vector, row, &len);

	return leat_strndup(decoder->mem, text, len);
}

static enum leat_status
visit_columns(struct leat_parquet_decoder *decoder, const struct leat_chunk *chunk, int *number,
              leat_parquet_visit *visit, void *arg, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < chunk->rows && status == LEAT_OK; i++) {
		char *name = copy_text(decoder, &chunk->columns[0], i),
		     *type = copy_text(decoder, &chunk->columns[1], i);

		status = name && type ? visit(arg, (*number)++, name, type, err)
		                      : leat_fail_mem(err, decoder->mem, LEAT_MAX_NAME, "the columns");
		leat_free(decoder->mem, name);
		leat_free(decoder->mem, type);
	}
	return status;
}

enum leat_status
leat_parquet_schema(struct leat_parquet_decoder *decoder, const struct leat_parquet_footer *footer,
                    leat_parquet_visit *visit, void *arg, struct leat_err *err)
{
	struct leat_query *query = NULL;
	enum leat_status status = load_footer(decoder, footer, err);
	struct leat_chunk chunk;
	int number = 0;

	if (status != LEAT_OK)
		return status;
	begin_sql(decoder, "SELECT column_name, column_type FROM (DESCRIBE SELECT *");
	add_from(decoder);
	leat_str_add(&decoder->sql, ")");
	status = run(decoder, &query, err);
	while (status == LEAT_OK) {
		status = damaged(decoder, leat_query_next(query, &chunk, err), err);
		if (status != LEAT_OK || !chunk.rows)
			break;
		status = visit_columns(decoder, &chunk, &number, visit, arg, err);
	}
	leat_query_close(query);
	return status;
}

/* ---- types ---- */

/* Types of numbers and text, and what SQL casts them to if DuckDB has them in another form than Leat. */
static const struct type {
	const char *name; /* one that ends in '(' goes on */
	enum leat_dtype dtype;
	const char *cast;
	bool text;
} types[] = {
	{"BOOLEAN", LEAT_BOOL, NULL, false},
	{"TINYINT", LEAT_I8, NULL, false},
	{"SMALLINT", LEAT_I16, NULL, false},
	{"INTEGER", LEAT_I32, NULL, false},
	{"BIGINT", LEAT_I64, NULL, false},
	{"UTINYINT", LEAT_U8, NULL, false},
	{"USMALLINT", LEAT_U16, NULL, false},
	{"UINTEGER", LEAT_U32, NULL, false},
	{"UBIGINT", LEAT_U64, NULL, false},
	{"FLOAT", LEAT_F32, NULL, false},
	{"DOUBLE", LEAT_F64, NULL, false},
	{"DECIMAL(", LEAT_F64, "DOUBLE", false},
	{"DATE", LEAT_I64, "TIMESTAMP", false},
	{"TIMESTAMP", LEAT_I64, NULL, false},
	{"TIMESTAMP_S", LEAT_I64, "TIMESTAMP", false},
	{"TIMESTAMP_MS", LEAT_I64, "TIMESTAMP", false},
	{"TIMESTAMP_NS", LEAT_I64, "TIMESTAMP", false},
	{"TIMESTAMP WITH TIME ZONE", LEAT_I64, NULL, false},
	{"TIME", LEAT_I64, NULL, false},
	{"TIME_NS", LEAT_I64, "TIME", false},
	{"TIME WITH TIME ZONE", LEAT_I64, "TIME", false},
	{"VARCHAR", LEAT_U8, NULL, true},
	{"BLOB", LEAT_U8, NULL, true},
	{"JSON", LEAT_U8, NULL, true},
	{"UUID", LEAT_U8, "VARCHAR", true},
};

/* The type that the first `len` characters name; NULL: none of these. */
static const struct type *
find_type(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		size_t known = strlen(types[i].name);
		bool goes_on = types[i].name[known - 1] == '(';

		if ((goes_on ? len > known && name[len - 1] == ')' : len == known) &&
		    memcmp(name, types[i].name, known) == 0)
			return &types[i];
	}
	return NULL;
}

static char *
make_sql(const char *name, const char *cast, bool list, struct leat_mem *mem)
{
	struct leat_str sql;

	leat_str_init(&sql, mem, SQL_MOST);
	leat_str_add(&sql, cast ? "CAST(" : "");
	leat_sql_quote(&sql, name, '"');
	if (cast)
		leat_str_addf(&sql, " AS %s%s)", cast, list ? "[]" : "");
	if (sql.failed)
		leat_str_free(&sql);
	return leat_str_take(&sql);
}

enum leat_status
leat_parquet_column_make(struct leat_parquet_column *column, const char *name, const char *type, struct leat_mem *mem)
{
	size_t len = strlen(type);
	bool list = len > 2 && strcmp(type + len - 2, "[]") == 0;
	const struct type *found = find_type(type, list ? len - 2 : len);

	if (!found || (list && found->text))
		return LEAT_UNSUPPORTED;
	column->dtype = found->dtype;
	column->text = found->text;
	column->list = list;
	column->row_bytes = column->text || column->list ? 0 : leat_dtype_size(column->dtype);
	column->name = leat_strdup(mem, name);
	column->type = leat_strdup(mem, type);
	column->sql = make_sql(name, found->cast, list, mem);
	return column->name && column->type && column->sql ? LEAT_OK : LEAT_NOMEM;
}

void
leat_parquet_column_free(struct leat_parquet_column *column, struct leat_mem *mem)
{
	leat_free(mem, column->name);
	leat_free(mem, column->type);
	leat_free(mem, column->sql);
}

/* Large types first, so that all are aligned. */
void
leat_parquet_columns_place(struct leat_parquet_columns *columns)
{
	size_t at = 0, largest = 1;

	for (size_t size = 8; size > 0; size /= 2)
		for (size_t i = 0; i < columns->count; i++) {
			struct leat_parquet_column *column = &columns->column[i];

			if (!column->row_bytes || leat_dtype_size(column->dtype) != size)
				continue;
			largest = size > largest ? size : largest;
			column->offset = at;
			at += column->row_bytes;
		}
	columns->stride = (at + largest - 1) / largest * largest;
}

/* ---- values ---- */

/* A column of a chunk on its way to its place, from row `at` on. */
struct copy {
	const struct leat_parquet_columns *columns;
	struct leat_parquet_rows *rows;
	size_t number; /* of the column */
	const struct leat_parquet_column *column;
	struct leat_parquet_place *place;
	const struct leat_vector *vector;
	uint64_t at;
	size_t count;
};

static void
mark(const struct copy *c, size_t row, unsigned fault)
{
	uint16_t *at = &c->rows->fault[c->at + row];

	if (*at)
		return;
	*at = (uint16_t)(c->number * LEAT_PARQUET_FAULTS + fault);
	c->rows->faults++;
}

/* What stands for a null: zeros, or NaN. Integers have no NaN, so there a null stays an error. */
static bool
fill_null(const struct copy *c, unsigned char *to, size_t bytes)
{
	enum leat_parquet_null null = c->columns->null;

	memset(to, 0, bytes);
	if (null == LEAT_PARQUET_NULL_NAN && c->column->dtype == LEAT_F32)
		for (size_t i = 0; i < bytes / 4; i++)
			((float *)(void *)to)[i] = NAN;
	else if (null == LEAT_PARQUET_NULL_NAN && c->column->dtype == LEAT_F64)
		for (size_t i = 0; i < bytes / 8; i++)
			((double *)(void *)to)[i] = NAN;
	else
		return null == LEAT_PARQUET_NULL_ZERO;
	return true;
}

/* A constant `width` makes each copy a move. */
static inline __attribute__((always_inline)) void
spread(unsigned char *to, size_t stride, const unsigned char *from, size_t width, size_t count)
{
	for (size_t i = 0; i < count; i++)
		memcpy(to + i * stride, from + i * width, width);
}

static void
copy_numbers(const struct copy *c)
{
	size_t width = c->column->row_bytes, stride = c->columns->stride;
	unsigned char *to = c->place->values + c->at * stride;

	if (width == 8)
		spread(to, stride, c->vector->values, 8, c->count);
	else if (width == 4)
		spread(to, stride, c->vector->values, 4, c->count);
	else
		spread(to, stride, c->vector->values, width, c->count);
	for (size_t i = 0; c->vector->valid && i < c->count; i++)
		if (leat_vector_is_null(c->vector, i) && !fill_null(c, to + i * stride, width))
			mark(c, i, LEAT_PARQUET_IS_NULL);
}

/* A row of text or of a list. */
struct piece {
	const unsigned char *bytes;
	size_t len, first, count; /* in bytes; elements of the list */
	bool null;
};

static struct piece
piece_of(const struct copy *c, size_t row)
{
	struct piece piece = {.null = leat_vector_is_null(c->vector, row)};
	size_t width = leat_dtype_size(c->column->dtype);

	if (piece.null)
		return piece;
	if (c->column->text) {
		piece.bytes = (const unsigned char *)leat_vector_text(c->vector, row, &piece.len);
		return piece;
	}
	leat_vector_list(c->vector, row, &piece.first, &piece.count);
	piece.bytes = (const unsigned char *)c->vector->children[0].values + piece.first * width;
	piece.len = piece.count * width;
	return piece;
}

/* Copies a row's elements and fills those that are null. */
static void
copy_piece(const struct copy *c, size_t row, const struct piece *piece, unsigned char *to)
{
	const struct leat_vector *elements = c->column->list ? &c->vector->children[0] : NULL;
	size_t width = leat_dtype_size(c->column->dtype);

	if (piece->len)
		memcpy(to, piece->bytes, piece->len);
	for (size_t i = 0; elements && elements->valid && i < piece->count; i++)
		if (leat_vector_is_null(elements, piece->first + i) && !fill_null(c, to + i * width, width))
			mark(c, row, LEAT_PARQUET_HAS_NULL);
}

/* Lists and text of a fixed shape. */
static void
copy_fixed(const struct copy *c)
{
	size_t bytes = c->column->row_bytes, stride = c->columns->stride;
	unsigned char *to = c->place->values + c->at * stride;

	for (size_t i = 0; i < c->count; i++, to += stride) {
		struct piece piece = piece_of(c, i);

		if (piece.null && fill_null(c, to, bytes))
			continue;
		if (!piece.null && piece.len == bytes) {
			copy_piece(c, i, &piece, to);
			continue;
		}
		memset(to, 0, bytes);
		mark(c, i, piece.null ? LEAT_PARQUET_IS_NULL : LEAT_PARQUET_LENGTH);
	}
}

/* Text and lists of any length. A null becomes an empty one, or an error: there is no text or list that is NaN. */
static enum leat_status
copy_ragged(const struct copy *c, struct leat_err *err)
{
	struct leat_parquet_place *place = c->place;

	for (size_t i = 0; i < c->count; i++) {
		struct piece piece = piece_of(c, i);

		if (piece.null && c->columns->null != LEAT_PARQUET_NULL_ZERO)
			mark(c, i, LEAT_PARQUET_IS_NULL);
		if (piece.len > place->room - place->used) {
			enum leat_status status =
				c->rows->grow ? c->rows->grow(c->rows->arg, place, piece.len, err)
					      : leat_fail(err, LEAT_DATA, "it is longer than when it was measured");
			if (status != LEAT_OK)
				return status;
		}
		if (piece.len)
			copy_piece(c, i, &piece, place->values + place->used);
		place->used += piece.len;
		place->ends[c->at + i] = place->used;
	}
	return LEAT_OK;
}

static enum leat_status
copy_column(const struct copy *c, struct leat_err *err)
{
	if (!c->column->row_bytes)
		return copy_ragged(c, err);
	if (c->column->text || c->column->list)
		copy_fixed(c);
	else
		copy_numbers(c);
	return LEAT_OK;
}

static void
find_longest(const struct leat_parquet_columns *columns, struct leat_parquet_rows *rows, uint64_t at, size_t count)
{
	for (uint64_t row = at; columns->ragged && row < at + count; row++) {
		uint64_t sum = 0;

		for (size_t i = 0; i < columns->count; i++)
			if (!columns->column[i].row_bytes)
				sum += rows->place[i].ends[row] - (row ? rows->place[i].ends[row - 1] : 0);
		if (sum > rows->longest)
			rows->longest = sum;
	}
}

static enum leat_status
copy_chunk(const struct leat_parquet_columns *columns, struct leat_parquet_rows *rows, const struct leat_chunk *chunk,
           uint64_t at, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	if (chunk->rows > rows->count - at)
		return leat_fail(err, LEAT_DATA, "it has more rows than the footer says, %llu",
		                 (unsigned long long)rows->count);
	for (size_t i = 0; i < columns->count && status == LEAT_OK; i++) {
		struct copy c = {columns, rows,       i, &columns->column[i], &rows->place[i], &chunk->columns[i],
		                 at,      chunk->rows};

		status = copy_column(&c, err);
	}
	if (status == LEAT_OK)
		find_longest(columns, rows, at, chunk->rows);
	return status;
}

static enum leat_status
copy_rows(struct leat_parquet_decoder *decoder, struct leat_query *query, const struct leat_parquet_columns *columns,
          struct leat_parquet_rows *rows, struct leat_err *err)
{
	enum leat_status status;
	struct leat_chunk chunk;
	uint64_t at = 0;

	for (;;) {
		status = damaged(decoder, leat_query_next(query, &chunk, err), err);
		if (status != LEAT_OK || !chunk.rows)
			break;
		if (rows->stop && atomic_load_explicit(rows->stop, memory_order_relaxed))
			return leat_fail(err, LEAT_CANCELLED, "stopped");
		status = copy_chunk(columns, rows, &chunk, at, err);
		if (status != LEAT_OK)
			return status;
		at += chunk.rows;
	}
	if (status == LEAT_OK && at < rows->count)
		return leat_fail(err, LEAT_DATA, "it has %llu rows, but the footer says %llu", (unsigned long long)at,
		                 (unsigned long long)rows->count);
	return status;
}

enum leat_status
leat_parquet_decode(struct leat_parquet_decoder *decoder, const struct leat_parquet_part *part,
                    const struct leat_parquet_columns *columns, struct leat_parquet_rows *rows, struct leat_err *err)
{
	struct leat_query *query = NULL;
	enum leat_status status = load(decoder, part, err);

	if (status != LEAT_OK)
		return status;
	begin_sql(decoder, "SELECT ");
	for (size_t i = 0; i < columns->count; i++)
		leat_str_addf(&decoder->sql, "%s%s", i ? ", " : "", columns->column[i].sql);
	add_from(decoder);
	status = run(decoder, &query, err);
	if (status == LEAT_OK)
		status = copy_rows(decoder, query, columns, rows, err);
	leat_query_close(query);
	return status;
}

/* ---- measuring ---- */

/* Bytes of a ragged column's row. */
static void
add_length(struct leat_str *sql, const struct leat_parquet_column *column)
{
	leat_str_addf(sql, "coalesce(%s(%s), 0)",
	              column->list             ? "len"
	              : column->type[0] == 'B' ? "octet_length"
	                                       : "strlen",
	              column->sql);
	if (column->list)
		leat_str_addf(sql, " * %zu", leat_dtype_size(column->dtype));
}

static void
add_measures(struct leat_parquet_decoder *decoder, const struct leat_parquet_columns *columns)
{
	struct leat_str *sql = &decoder->sql;
	const char *plus = "";

	begin_sql(decoder, "SELECT ");
	for (size_t i = 0; i < columns->count; i++)
		if (!columns->column[i].row_bytes) {
			leat_str_add(sql, "CAST(sum(");
			add_length(sql, &columns->column[i]);
			leat_str_add(sql, ") AS BIGINT), ");
		}
	leat_str_add(sql, "CAST(max(");
	for (size_t i = 0; i < columns->count; i++)
		if (!columns->column[i].row_bytes) {
			leat_str_add(sql, plus);
			add_length(sql, &columns->column[i]);
			plus = " + ";
		}
	leat_str_add(sql, ") AS BIGINT)");
	add_from(decoder);
}

static uint64_t
measure_of(const struct leat_chunk *chunk, size_t column)
{
	const struct leat_vector *vector = &chunk->columns[column];

	return leat_vector_is_null(vector, 0) ? 0 : (uint64_t)((const int64_t *)vector->values)[0];
}

enum leat_status
leat_parquet_measure(struct leat_parquet_decoder *decoder, const struct leat_parquet_part *part,
                     const struct leat_parquet_columns *columns, uint64_t *bytes, uint64_t *longest,
                     struct leat_err *err)
{
	struct leat_query *query = NULL;
	enum leat_status status = load(decoder, part, err);
	struct leat_chunk chunk;

	if (status != LEAT_OK)
		return status;
	add_measures(decoder, columns);
	status = run(decoder, &query, err);
	if (status == LEAT_OK)
		status = damaged(decoder, leat_query_next(query, &chunk, err), err);
	if (status == LEAT_OK && chunk.rows != 1)
		status = leat_fail(err, LEAT_DATA, "its text and lists cannot be measured");
	for (size_t i = 0; status == LEAT_OK && i < columns->ragged; i++)
		bytes[i] = measure_of(&chunk, i);
	if (status == LEAT_OK)
		*longest = measure_of(&chunk, columns->ragged);
	leat_query_close(query);
	return status;
}
