/* convert_formats.h - output formats of `leat convert` */
#ifndef LEAT_CLI_CONVERT_FORMATS_H
#define LEAT_CLI_CONVERT_FORMATS_H

#include "cli/row.h"
#include "format/example.h"
#include "store/store.h"

/* State of the writer. One thread. */
struct leat_convert {
	const struct leat_feed *feed;
	struct leat_mem *mem;
	struct leat_example example;
	int64_t *numbers; /* buffer for a row converted to its stored type */
	size_t numbers_cap;
	unsigned extensions[LEAT_MAX_FIELDS]; /* tar: by field, the set of extensions used so far */
};

/* `out` is one shard, or, for formats without shards, an array with one file per field. */
struct leat_convert_format {
	const char *suffix; /* of the files */
	bool shards;        /* false: one file per field */
	/* Fails if the field cannot be stored. */
	enum leat_status (*check)(const struct leat_feed *feed, const struct leat_field *field, struct leat_err *err);
	enum leat_status (*begin)(struct leat_convert *convert, struct leat_writer **out, struct leat_err *err);
	/* Writes one sample, with one row per field. */
	enum leat_status (*write)(struct leat_convert *convert, struct leat_writer **out, uint64_t position,
	                          const struct leat_row *row, struct leat_err *err);
	/* Called after the last sample; `samples` is their number. */
	enum leat_status (*end)(struct leat_convert *convert, struct leat_writer **out, uint64_t samples,
	                        struct leat_err *err);
	/* Prints the spec that reads it back; `path` is the pattern of the shards, or the folder. */
	void (*print_spec)(const struct leat_convert *convert, const char *path, struct leat_str *out);
};

/* Can `name` be written in a spec without quotes? */
bool leat_is_word(const char *name);

/* Adds a cast for fields of this type, because they are read back as another: all of them, or only scalars. */
void leat_convert_print_casts(const struct leat_convert *convert, enum leat_dtype dtype, bool single,
                              struct leat_str *out);

extern const struct leat_convert_format leat_convert_tfrecord, leat_convert_tar, leat_convert_npy;

#endif
