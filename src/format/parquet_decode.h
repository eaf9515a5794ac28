/* parquet_decode.h - decode row groups of Parquet files with DuckDB
 *
 * DuckDB reads files, while Leat's bytes may come from any store, checked against the version that was opened. So the
 * column chunks of one row group are put into a file in memory (memfd_create), at the offsets they had, followed by a
 * footer that lists only this group. What is not needed stays a hole. DuckDB reads the group as a separate table: it
 * sees nothing else, reads no page twice and prunes nothing.
 *
 * Dense columns become an array of rows: rows in random order then cost a cache miss each, not one for each column.
 * Text and lists become bytes, one after the other, and where each row's end.
 *
 * A row that cannot be a sample, because of a null, is marked and decoding goes on. So a row is bad or good by itself,
 * whatever else is in its group.
 *
 * Threads: a decoder belongs to one thread at a time, columns are read-only. */
#ifndef LEAT_FORMAT_PARQUET_DECODE_H
#define LEAT_FORMAT_PARQUET_DECODE_H

#include "base/mem.h"
#include "base/str.h"
#include "format/parquet_footer.h"
#include "format/sample.h"
#include "store/store.h"
#include "table/duckdb.h"

enum leat_parquet_null { LEAT_PARQUET_NULL_ERROR, LEAT_PARQUET_NULL_ZERO, LEAT_PARQUET_NULL_NAN };

struct leat_parquet_column {
	char *name; /* as DuckDB calls it */
	char *type; /* likewise */
	char *sql;  /* its values, converted to `dtype` */
	int number; /* among the file's columns */
	enum leat_dtype dtype;
	bool list; /* of numbers; else numbers, or bytes if `text` */
	bool text; /* VARCHAR or BLOB */
	int ndim;  /* of a fixed shape that the user gives to lists and text; 0: none */
	int64_t shape[LEAT_MAX_DIMS];
	size_t row_bytes; /* of dense columns; 0: ragged */
	size_t offset;    /* of dense columns in a row */
};

struct leat_parquet_columns {
	size_t count, ragged;
	struct leat_parquet_column *column;
	size_t stride; /* from a row of dense columns to the next */
	enum leat_parquet_null null;
};

/* What can be wrong with a row: the column's number times LEAT_PARQUET_FAULTS plus one of these. 0: nothing. */
enum { LEAT_PARQUET_IS_NULL = 1, LEAT_PARQUET_HAS_NULL, LEAT_PARQUET_LENGTH, LEAT_PARQUET_FAULTS };

/* Where the values of a column go. */
struct leat_parquet_place {
	unsigned char *values; /* dense: of the first row, the others follow at `stride`; ragged: one after the other */
	uint64_t *ends;        /* ragged: where each row's values end, in bytes */
	size_t used, room;     /* ragged: bytes */
};

/* Where rows go. */
struct leat_parquet_rows {
	uint64_t count; /* that are expected */
	struct leat_parquet_place *place;
	uint16_t *fault;
	uint64_t faults;  /* rows with one */
	uint64_t longest; /* bytes of ragged values in a row */
	/* Called if ragged values need room for `more` bytes. NULL, or LEAT_DATA: they have no more. */
	enum leat_status (*grow)(void *arg, struct leat_parquet_place *place, size_t more, struct leat_err *err);
	void *arg;
	const atomic_bool *stop; /* set: give up, LEAT_CANCELLED; NULL: never */
};

/* A row group, and where its bytes are. */
struct leat_parquet_part {
	const struct leat_parquet_footer *footer;
	struct leat_parquet_group group;
	const bool *wanted; /* leaf columns to decode */
	size_t leaves;
	const struct leat_object *object;
	const unsigned char *bytes; /* from `offset` of the file on; NULL: to be read from the object */
	uint64_t offset;
};

struct leat_parquet_decoder;

/* Memory that DuckDB needs for groups whose wanted chunks have `unpacked` bytes. */
size_t leat_parquet_decoder_memory(uint64_t unpacked, size_t columns);
/* `memory` is that of DuckDB, `file` of the bytes of a group; both are counted in `mem`. */
enum leat_status leat_parquet_decoder_open(struct leat_parquet_decoder **out, size_t memory, size_t file,
                                           struct leat_mem *mem, struct leat_err *err);
void leat_parquet_decoder_close(struct leat_parquet_decoder *decoder); /* accepts NULL */
/* What leat_parquet_decoder_open takes from `mem`, at most. */
size_t leat_parquet_decoder_cost(size_t memory, size_t file);

/* The columns of a footer as DuckDB sees them, in order: `visit` is called for each, with its type as SQL writes it. */
typedef enum leat_status leat_parquet_visit(void *arg, int number, const char *name, const char *type,
                                            struct leat_err *err);
enum leat_status leat_parquet_schema(struct leat_parquet_decoder *decoder, const struct leat_parquet_footer *footer,
                                     leat_parquet_visit *visit, void *arg, struct leat_err *err);

/* How a column of this type is decoded: sets all but name, number and shape. LEAT_UNSUPPORTED (no error text): it
 * cannot be. LEAT_NOMEM likewise. */
enum leat_status leat_parquet_column_make(struct leat_parquet_column *column, const char *name, const char *type,
                                          struct leat_mem *mem);
void leat_parquet_column_free(struct leat_parquet_column *column, struct leat_mem *mem);
/* Once all are there: places the dense ones in a row. */
void leat_parquet_columns_place(struct leat_parquet_columns *columns);

/* Decodes a group. LEAT_DATA: it is damaged; the text does not name the file. */
enum leat_status leat_parquet_decode(struct leat_parquet_decoder *decoder, const struct leat_parquet_part *part,
                                     const struct leat_parquet_columns *columns, struct leat_parquet_rows *rows,
                                     struct leat_err *err);

/* Measures the ragged columns of a group: bytes[i] of the i-th of them, and of the longest row. Errors as above. */
enum leat_status leat_parquet_measure(struct leat_parquet_decoder *decoder, const struct leat_parquet_part *part,
                                      const struct leat_parquet_columns *columns, uint64_t *bytes, uint64_t *longest,
                                      struct leat_err *err);

#endif
