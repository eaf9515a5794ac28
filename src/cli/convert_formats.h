/* convert_formats.h - how `leat convert` stores samples: a table of formats */
#ifndef LEAT_CLI_CONVERT_FORMATS_H
#define LEAT_CLI_CONVERT_FORMATS_H

#include "cli/row.h"
#include "format/example.h"
#include "store/store.h"

/* What storing needs from sample to sample. One thread. */
struct leat_convert {
	const struct leat_feed *feed;
	struct leat_mem *mem;
	struct leat_example example;
	int64_t *numbers; /* of a row, in the type that they are stored in: that one or a smaller one */
	size_t numbers_cap;
	unsigned extensions[LEAT_MAX_FIELDS]; /* tar: bits of those that a field's bytes got */
};

/* `out` is a shard, or, without shards, a file for each field. */
struct leat_convert_format {
	const char *suffix; /* of a shard; NULL: no shards */
	/* Can such a field be stored? An error says why not. */
	enum leat_status (*check)(const struct leat_feed *feed, const struct leat_field *field, struct leat_err *err);
	enum leat_status (*begin)(struct leat_convert *convert, struct leat_writer **out, struct leat_err *err);
	/* One sample: a row for each field. */
	enum leat_status (*write)(struct leat_convert *convert, struct leat_writer **out, uint64_t position,
	                          const struct leat_row *row, struct leat_err *err);
	/* Behind the last of `samples`. */
	enum leat_status (*end)(struct leat_convert *convert, struct leat_writer **out, uint64_t samples,
	                        struct leat_err *err);
	/* The spec that reads it back; `path` is the shards' pattern, or the folder of the files. */
	void (*print_spec)(const struct leat_convert *convert, const char *path, struct leat_str *out);
};

/* Can `name` be written in a spec without quotes? */
bool leat_is_word(const char *name);

/* Adds the cast that fields of this type need, which come back as int64: all, or the single values among them. */
void leat_convert_print_casts(const struct leat_convert *convert, enum leat_dtype dtype, bool single,
                              struct leat_str *out);

extern const struct leat_convert_format leat_convert_tfrecord, leat_convert_tar, leat_convert_npy;

#endif
