/* shards.h - what the files of `leat shards` share
 *
 * shards_table.c opens the table and divides it into parts. The main thread reads rows; each becomes a record: what is
 * written, if that needs no more work (shards_rows.c: TFRecord), or else its values, packed (shards_pack.c). Records go
 * to their position (format/reorder.h), and then any thread writes a shard (shards_write.c), in one of the formats
 * (shards_tfrecord.c, shards_parquet.c, shards_npy.c, shards_tar.c). Files named by a column are read there, too
 * (shards_images.c), so that all threads do it. */
#ifndef LEAT_CLI_SHARDS_H
#define LEAT_CLI_SHARDS_H

#include <pthread.h>
#include <stdatomic.h>

#include "cli/command.h"
#include "cli/outputs.h"
#include "cli/print.h"
#include "format/example_rows.h"
#include "format/index.h"
#include "format/reorder.h"
#include "table/duckdb.h"

struct leat_shard_job;
struct leat_shard;

enum leat_shard_compression {
	LEAT_COMPRESS_AUTO,
	LEAT_COMPRESS_NONE,
	LEAT_COMPRESS_GZIP,
	LEAT_COMPRESS_SNAPPY,
	LEAT_COMPRESS_ZSTD
};
#define LEAT_SHARD_COMPRESSIONS "auto|none|gzip|snappy|zstd"

struct leat_shards {
	const char *output;
	int format, compression;              /* index into leat_shard_formats; enum leat_shard_compression */
	int64_t count, seed, memory, threads; /* seed -1: keep the order; memory, threads 0: see the options */
	const char *parts, *duckdb;
	const char *images, *root, *rejects; /* "": none */
	int64_t resize, quality;             /* 0: as it is */
	bool overwrite, plain, quiet;
};

/* ---- formats ---- */

struct leat_shard_format {
	const char *suffix;                  /* of the files */
	const char *holder;                  /* what has a row, for errors: "a tf.train.Example" */
	bool by_column;                      /* a file for each column, else one for all */
	bool exact;                          /* has all types that tables have; else some are converted */
	bool no_texts, no_text_lists;        /* what it cannot hold */
	bool dense;                          /* no NULLs, and lists of one length */
	unsigned compressions;               /* 1 << enum leat_shard_compression */
	int usual;                           /* what `auto` is */
	size_t min_memory;                   /* of the command */
	size_t writer_memory;                /* of a thread that writes; 0: next to none */
	const struct leat_index_kind *index; /* NULL: its files need none */
	/* Writes one shard, whose files are open, from leat_shard_record or leat_shard_row. Any thread. */
	enum leat_status (*write)(struct leat_shard *shard, struct leat_err *err);
	/* The spec that reads files back. `pattern` matches them, with column %s if there is a file for each. */
	void (*print_spec)(const struct leat_shard_job *job, const char *pattern, struct leat_str *out);
};

extern const struct leat_shard_format leat_shard_tfrecord, leat_shard_parquet, leat_shard_npy, leat_shard_tar;
#define LEAT_SHARD_FORMATS "tfrecord|parquet|npy|tar"

/* ---- the table (shards_table.c) ---- */

struct leat_shard_column {
	const char *name; /* owned by `feature` */
	const char *cast; /* SQL type that it is converted to first; NULL: none */
	char *type;       /* in the table, as DuckDB writes it */
	bool is_list, is_array;
	bool is_image;              /* its text is replaced by a file */
	enum leat_column_kind kind; /* of the values that are read; of a list, of its elements */
	unsigned width, scale;      /* of decimals */
	bool is_double;             /* its values lose digits */
	size_t size;                /* bytes of a number in a packed row; 0: text */
	size_t length;              /* of each list, in formats that are dense; SIZE_MAX: no row was seen yet */
	struct leat_row_feature feature;
	uint64_t nulls; /* rows without a value so far */
	void *numbers;  /* values of a chunk in another type than DuckDB's */
	size_t numbers_cap;
	const void *values;          /* numbers of the chunk, `size` bytes each */
	_Atomic unsigned extensions; /* tar: the set of those in use */
};

struct leat_shard_table {
	struct leat_mem *mem;
	const struct leat_shard_format *format;
	struct leat_stores stores;
	struct leat_files *files;
	struct leat_str from; /* read_parquet([...]) */
	bool is_features;     /* the result of a features step */
	bool has_images;      /* packed rows begin with their number, for errors */
	char *part_column;    /* NULL: there is one part */
	struct leat_shard_column *column;
	size_t columns;
};

/* Rows that become shards of their own: all, or those with one value of `part_column`. */
struct leat_shard_part {
	char *name;               /* NULL: all rows */
	uint64_t read, rows;      /* rows of the table; those that are written */
	uint64_t *rejected;       /* bit i % 64 of word i / 64: row i is left out. NULL: none is */
	size_t count;             /* shards */
	struct leat_outputs *set; /* of each column, or one */
	struct leat_index *index; /* of each shard; NULL: made from the files afterwards, or not at all */
};

/* Finds the files that the operands name, which are files, folders or patterns. Close it also after a failure. */
enum leat_status leat_shard_table_find(struct leat_shard_table *table, const char *const *operand, size_t operands,
                                       const struct leat_storage *storage, struct leat_mem *mem, struct leat_err *err);
/* Finds the columns. */
enum leat_status leat_shard_table_read(struct leat_shard_job *job, struct leat_err *err);
/* Finds the parts and counts their rows. */
enum leat_status leat_shard_table_divide(struct leat_shard_job *job, struct leat_err *err);
/* The query for all rows of a part; `only`: for this column alone. */
void leat_shard_table_query(const struct leat_shard_table *table, const struct leat_shard_part *part,
                            const struct leat_shard_column *only, struct leat_str *sql);
/* Fails if a file has changed since it was found. */
enum leat_status leat_shard_table_check(const struct leat_shard_table *table, struct leat_err *err);
void leat_shard_table_close(struct leat_shard_table *table); /* accepts a zeroed one */

/* ---- rows ---- */

/* The records of a chunk. One thread. */
struct leat_shard_rows {
	struct leat_mem *mem;
	unsigned char *bytes; /* of all records, one after the other */
	size_t cap;
	size_t *offset, *len; /* of each record */
	size_t rows, rows_cap, len_cap;
	size_t total;      /* bytes of all records */
	size_t digits;     /* see leat_row_begin_at */
	const void **text; /* elements of a list */
	size_t *text_len;
	size_t text_cap, text_len_cap;
};

/* `first` is the row of the part that the chunk begins with, for messages. */
enum leat_status leat_shard_rows_make(struct leat_shard_rows *rows, struct leat_shard_table *table,
                                      const struct leat_chunk *chunk, uint64_t first, struct leat_err *err);
/* The same, packed (shards_pack.c). */
enum leat_status leat_shard_rows_pack(struct leat_shard_rows *rows, struct leat_shard_table *table,
                                      const struct leat_chunk *chunk, uint64_t first, struct leat_err *err);
void leat_shard_rows_free(struct leat_shard_rows *rows); /* accepts a zeroed one */

/* Rows by rows: elements of a list, which is not NULL. */
struct leat_shard_span {
	const struct leat_vector *elements;
	size_t first, count;
};
struct leat_shard_span leat_shard_span(const struct leat_vector *vector, size_t row);
/* Fills `values` of columns of numbers. */
enum leat_status leat_shard_convert(struct leat_shard_table *table, const struct leat_chunk *chunk,
                                    struct leat_err *err);
/* LEAT_DATA: a list has a NULL in it. */
enum leat_status leat_shard_check_span(const struct leat_shard_table *table, const struct leat_shard_column *column,
                                       const struct leat_shard_span *span, uint64_t row, struct leat_err *err);

/* A value of a packed row. */
struct leat_shard_value {
	bool null;
	const unsigned char *bytes; /* numbers, not aligned; a text; of a list of texts, see leat_shard_next_text */
	size_t len;                 /* bytes */
	size_t count;               /* numbers or texts; 1 unless it is a list */
};
/* Returns the number of the row in its part, from 0; 0 if no errors can follow. */
uint64_t leat_shard_unpack(const struct leat_shard_table *table, const unsigned char *record,
                           struct leat_shard_value *value);
/* The next text of a list; `at` is 0 at first. */
const unsigned char *leat_shard_next_text(const struct leat_shard_value *value, size_t *at, size_t *len);

/* ---- files that a column names (shards_images.c) ---- */

struct leat_shard_image;

/* The reader of one thread. Free it also after a failure. */
enum leat_status leat_shard_image_open(struct leat_shard_image **image, struct leat_shard_job *job,
                                       struct leat_err *err);
void leat_shard_image_close(struct leat_shard_image *image); /* accepts NULL */
/* The content of the file `name`, as it will be written, valid until the next call. */
enum leat_status leat_shard_image_read(struct leat_shard_image *image, const void *name, size_t name_len,
                                       const void **bytes, size_t *len, struct leat_err *err);
/* Reads the files of all rows of a part, and notes which rows cannot be written. */
enum leat_status leat_shards_reject(struct leat_shard_job *job, struct leat_shard_part *part, struct leat_err *err);
/* Writes the list of rejected rows, and fails if there are too many. */
enum leat_status leat_shards_end_rejects(struct leat_shard_job *job, struct leat_err *err);

/* ---- writing (shards_write.c) ---- */

/* One run of the command. */
struct leat_shard_job {
	const struct leat_shards *p;
	const struct leat_shard_format *format;
	int compression;
	const char *suffix; /* of the files, with that of the compression */
	struct leat_mem *mem;
	unsigned threads, writers;
	size_t memory;
	struct leat_shard_table table;
	struct leat_shard_part *part;
	size_t parts;
	struct leat_outputs *set; /* of all parts; with room for all shards */
	char **prefix;
	size_t sets, sets_per_part;
	uint64_t spilled;        /* bytes that were shuffled in a file */
	uint64_t rows;           /* of all parts */
	struct leat_str rejects; /* lines */
	uint64_t rejected, first_reject;
	struct leat_err first_reason;
	struct leat_stores files; /* of images */
	atomic_bool stopped;      /* by ^C */

	pthread_mutex_t lock; /* protects the members below */
	struct leat_tables *tables;
	struct leat_progress progress;
	uint64_t done; /* rows, counted once for each time that they are copied */
};

/* Are records packed rows? Else they are what is written. */
bool leat_shards_pack(const struct leat_shard_job *job);
/* Reads a part and writes its shards, up to their last byte, but not their names. */
enum leat_status leat_shards_write(struct leat_shard_job *job, struct leat_shard_part *part, struct leat_err *err);
/* Fails with LEAT_CANCELLED if the job was stopped. */
enum leat_status leat_shards_go_on(const struct leat_shard_job *job, struct leat_err *err);
/* Where temporary files go, to be freed. */
enum leat_status leat_shards_spill_folder(const struct leat_shard_job *job, char **folder, struct leat_err *err);

/* A shard that is written. One thread. */
struct leat_shard {
	struct leat_shard_job *job;
	struct leat_shard_part *part;
	size_t number;
	uint64_t first, rows; /* positions in the part */
	struct leat_shard_file {
		struct leat_writer *out;
		unsigned char *buffer;
		size_t used;
	} * file;                 /* of each column, or one */
	size_t files, buffer;     /* number; bytes of each buffer */
	struct leat_index *index; /* NULL: not wanted */
	struct leat_reorder_cursor *cursor;
	uint64_t taken, told; /* rows; those that the progress has */
	struct leat_shard_value *value;
	struct leat_shard_image *image; /* NULL: no column names files */
};

/* Appends to file `f`, through its buffer. */
enum leat_status leat_shard_put(struct leat_shard *shard, size_t f, const void *bytes, size_t len,
                                struct leat_err *err);
/* Bytes of file `f` so far. */
uint64_t leat_shard_size(const struct leat_shard *shard, size_t f);
/* The next record. LEAT_END: there is none. */
enum leat_status leat_shard_record(struct leat_shard *shard, const void **record, size_t *len, struct leat_err *err);
/* The next row, to shard->value. LEAT_END: there is none. */
enum leat_status leat_shard_row(struct leat_shard *shard, struct leat_err *err);

/* The type of its numbers, in formats that are not exact (shards_npy.c). */
enum leat_dtype leat_shard_dtype(const struct leat_shard_column *column);

#endif
