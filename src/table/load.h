/* load.h - CSV and JSON Lines files with declared columns to Parquet, with nothing lost in silence
 *
 * Every record of the files is either a row of rows.parquet or a line of rejects.jsonl: read = kept + rejected, which
 * is checked, also against what the Parquet file says. Rows have the order of the files. A line of rejects.jsonl has
 * the file, line, column, reason and raw text of a record; bytes that are not UTF-8 are replaced there, and all bytes
 * are in raw_hex. counts.json is written last. Memory does not depend on the size of the files. */
#ifndef LEAT_TABLE_LOAD_H
#define LEAT_TABLE_LOAD_H

#include <stdatomic.h>

#include "table/csv_split.h"
#include "table/value.h"

struct leat_reject;

struct leat_reject_limit {
	double share; /* of the records read; negative: `count` holds */
	uint64_t count;
};

/* "0.1%" or "12". LEAT_INVALID: neither. */
enum leat_status leat_reject_limit_read(struct leat_reject_limit *limit, const char *text, struct leat_err *err);
bool leat_reject_limit_holds(const struct leat_reject_limit *limit, uint64_t rejected, uint64_t read);

/* "," or "\t", "tab", "|": one byte that is no quote, letter, digit or line end. */
enum leat_status leat_delimiter_read(const char *text, char *delimiter, struct leat_err *err);

enum leat_load_format {
	LEAT_LOAD_AUTO, /* by the file's name: JSONL if it ends in .jsonl or .ndjson, but for .gz or .zst; else CSV */
	LEAT_LOAD_CSV,
	LEAT_LOAD_JSONL,
};

struct leat_load {
	const struct leat_declared_columns *columns;
	enum leat_load_format format;
	char delimiter;
	bool header;             /* the first record of each file names its columns; else they are in order */
	const char *const *null; /* unquoted fields that are NULL, besides empty ones */
	size_t nulls;
	size_t max_record; /* bytes, at most LEAT_CSV_MAX_RECORD; longer records are rejected */
	size_t memory;     /* 0: DuckDB's usual */
	unsigned examples; /* rejects to describe in the result */
	/* Called with the Parquet file once it is complete; NULL: nobody wants to know. */
	void (*written)(struct leat_tables *tables, const char *path, struct leat_mem *mem);
	/* Optional: bytes of the files that were read, as they are on disk, of all. Called by a thread of DuckDB's. */
	void (*progress)(void *arg, uint64_t bytes, uint64_t total);
	void *progress_arg;
	const atomic_bool *stop; /* set by another thread: give up with LEAT_CANCELLED; NULL: never */
	/* For leat_load_reader. `open`, optional, gives the bytes of a file that is not local; without `read`, it is.
	 * `reject` gets each record that is no row, in order. */
	struct leat_csv_bytes (*open)(void *arg, size_t file);
	enum leat_status (*reject)(void *arg, size_t file, const struct leat_reject *reject, struct leat_err *err);
	void *arg;
};

struct leat_load_result {
	uint64_t read, kept, rejected, empty_lines, bytes;
	struct leat_str examples; /* one line each; free it */
};

/* Reads `files` and writes rows.parquet, rejects.jsonl and counts.json to the folder `out`, which exists. Rejects are
 * no failure; files that cannot be read or whose header is wrong are (LEAT_IO, LEAT_DATA). */
enum leat_status leat_load(const struct leat_load *load, const char *const *files, size_t count, const char *out,
                           struct leat_load_result *result, struct leat_mem *mem, struct leat_err *err);

/* The rows of files one at a time, for callers that keep them; `load` and `files` stay valid. No DuckDB is needed. */
struct leat_load_reader;
struct leat_row_chunk;
enum leat_status leat_load_reader_open(struct leat_load_reader **reader, const struct leat_load *load,
                                       const char *const *files, size_t count, struct leat_mem *mem,
                                       struct leat_err *err);
void leat_load_reader_close(struct leat_load_reader *reader); /* accepts NULL */
/* Fills a chunk that has room for one row, and says which file it is from; what comes before it was rejected. LEAT_END:
 * there are no more. */
enum leat_status leat_load_reader_next(struct leat_load_reader *reader, struct leat_row_chunk *chunk, size_t *file,
                                       struct leat_err *err);

#endif
