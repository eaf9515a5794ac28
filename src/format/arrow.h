/* arrow.h - tables in memory, by the Arrow C data interface
 *
 * The structs of the interface have the layout that its specification gives them. `struct leat_arrow` owns the arrays
 * of a stream; feeds that read it each hold a reference, and the producer's release callbacks run once, when the last
 * one is dropped. leat_arrow_source_open makes a source of it: the source `arrow` reads a table of the program, `csv`
 * one that it filled itself.
 *
 * Values stay where they are if samples can be made of them in place: numbers without nulls, text, lists of numbers.
 * The others are converted when the source opens, into memory of the feed. What the interface says about an array is
 * checked as far as it can be: it has no sizes of most buffers, so who lies about a length is believed.
 *
 * Threads: a table does not change once it is there. Its references may be dropped by any thread. */
#ifndef LEAT_FORMAT_ARROW_H
#define LEAT_FORMAT_ARROW_H

#include <stdatomic.h>

#include "format/source.h"

/* ---- the interface ---- */

struct ArrowSchema {
	const char *format, *name, *metadata;
	int64_t flags, n_children;
	struct ArrowSchema **children, *dictionary;
	void (*release)(struct ArrowSchema *self);
	void *private_data;
};

struct ArrowArray {
	int64_t length, null_count, offset, n_buffers, n_children;
	const void **buffers;
	struct ArrowArray **children, *dictionary;
	void (*release)(struct ArrowArray *self);
	void *private_data;
};

struct ArrowArrayStream {
	int (*get_schema)(struct ArrowArrayStream *self, struct ArrowSchema *out);
	int (*get_next)(struct ArrowArrayStream *self, struct ArrowArray *out);
	const char *(*get_last_error)(struct ArrowArrayStream *self);
	void (*release)(struct ArrowArrayStream *self);
	void *private_data;
};

enum { LEAT_ARROW_NULLABLE = 2 }; /* of flags */

/* ---- a table ---- */

/* The record batches of a stream: arrays of structs, each with a child per column. */
struct leat_arrow {
	atomic_int refs;
	struct ArrowSchema schema;
	struct ArrowArray *batch;
	size_t batches, cap;
	uint64_t rows;
};

struct leat_arrow *leat_arrow_hold(struct leat_arrow *table); /* one more reference, for leat_arrow_free */

/* What values of a column become. */
enum leat_arrow_form {
	LEAT_ARROW_NUMBER, /* in place, if there are no nulls */
	LEAT_ARROW_BITS,   /* bool */
	LEAT_ARROW_SCALED, /* an integer times `num` / `den` becomes int64: dates, times and timestamps, in microseconds
	                    */
	LEAT_ARROW_DECIMAL,
	LEAT_ARROW_TEXT, /* bytes, with offsets of 32 or 64 bits */
	LEAT_ARROW_VIEW, /* bytes, by views of 16 bytes */
	LEAT_ARROW_LIST, /* of numbers, with offsets of 32 or 64 bits */
};

struct leat_arrow_type {
	enum leat_arrow_form form;
	enum leat_dtype dtype; /* of the field */
	enum leat_dtype is;    /* of stored integers and numbers */
	size_t width;          /* bytes of a stored value; a decimal may have 16 */
	int64_t num, den;
	double unit;    /* of a decimal: 10^scale */
	bool wide;      /* offsets have 64 bits */
	bool coded;     /* a dictionary has the values; their type is this one */
	size_t code;    /* bytes of its codes */
	bool code_sign; /* they are signed */
	int ndim;       /* of lists of a fixed size, and of bytes of one */
	int64_t shape[LEAT_MAX_DIMS];
};

/* The type of a column. False: samples cannot hold it. */
bool leat_arrow_type_read(const struct ArrowSchema *schema, struct leat_arrow_type *type);
/* Does an array have the buffers and children that its type needs, and offsets that ascend? Rows [offset, offset +
 * rows) are looked at, in addition to the array's own offset. NULL: it does; else what is wrong. */
const char *leat_arrow_check(const struct ArrowArray *array, const struct leat_arrow_type *type, int64_t offset,
                             int64_t rows);

/* ---- as a source ---- */

enum leat_arrow_null { LEAT_ARROW_NULL_ERROR, LEAT_ARROW_NULL_ZERO, LEAT_ARROW_NULL_NAN };

/* A row that is a bad sample, and why. */
struct leat_arrow_bad {
	uint64_t row;
	char *why;
};

struct leat_arrow_wish {
	struct leat_strings columns; /* none: all */
	enum leat_arrow_null null;
	const struct leat_arrow_bad *bad; /* ascending; valid while the source is open */
	size_t bads;
	/* Where a row is, for messages: "row 12", or "'x.csv', line 13". */
	void (*where)(const struct leat_source *source, uint64_t row, char *buf, size_t cap);
};

/* Fills in the source: schema, count and state, which begins with a struct leat_arrow_rows. Takes over a reference to
 * `table`, on failure too. */
struct leat_arrow_rows;
enum leat_status leat_arrow_source_open(struct leat_source *source, struct leat_arrow *table,
                                        const struct leat_arrow_wish *wish, struct leat_arrow_rows **rows,
                                        struct leat_err *err);
void leat_arrow_longest(struct leat_source *source); /* once `state` is set: see leat_source_longest */
void leat_arrow_source_close(struct leat_source *source, struct leat_arrow_rows *rows); /* accepts NULL */

/* Callbacks of the kind. `state` of the source begins with a pointer to its struct leat_arrow_rows. */
void leat_arrow_locate(const struct leat_source *source, uint64_t sample, struct leat_extent *extent);
enum leat_status leat_arrow_touch(const struct leat_source *source, const uint64_t *sample, size_t count, int flags,
                                  struct leat_err *err);
bool leat_arrow_rows_form(const struct leat_source *source, int field, struct leat_row_form *form);
void leat_arrow_rows_at(const struct leat_source *source, int field, const uint64_t *sample, size_t count,
                        const unsigned char **at);
enum leat_status leat_arrow_unpack(const struct leat_source *source, const struct leat_raw *raw,
                                   struct leat_scratch *scratch, struct leat_sample *sample, struct leat_err *err);
void leat_arrow_fingerprint(const struct leat_source *source, struct leat_sha256 *sha);

/* Params of `arrow`; the engine sets `table`. */
struct leat_arrow_params {
	struct leat_strings columns;
	int null;
	struct leat_arrow *table;
};
extern const struct leat_source_kind leat_source_arrow;

#endif
