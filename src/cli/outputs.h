/* outputs.h - output files of a command: either all appear, or none
 *
 * Each file is written under a hidden temporary name. When all are complete they are renamed, and only then are
 * shards of an earlier run removed, so a run that fails or is stopped changes nothing. Main thread, except that
 * different threads may write different files. */
#ifndef LEAT_CLI_OUTPUTS_H
#define LEAT_CLI_OUTPUTS_H

#include "store/store.h"

enum { LEAT_MAX_SHARDS = 99999 };

struct leat_outputs {
	struct leat_mem *mem;
	const char *prefix,
		*suffix; /* shards: PREFIX-00000-of-00008SUFFIX; without a suffix, each file has its own name */
	struct leat_stores stores;
	struct leat_store *store;  /* of shards */
	char *uri;                 /* the prefix as the store's URI */
	struct leat_writer **file; /* NULL: not begun, or published */
	size_t count, cap;
	uint64_t bytes; /* total, once published */
};

void leat_outputs_init(struct leat_outputs *outputs, const char *prefix, const char *suffix, struct leat_mem *mem);

/* For shards: creates the folder if needed; fails if shards exist, unless `overwrite`. */
enum leat_status leat_outputs_begin(struct leat_outputs *outputs, bool overwrite, struct leat_err *err);
/* A pattern that matches all shards, to be freed by the caller; NULL: out of memory. */
char *leat_shard_pattern(const struct leat_outputs *outputs);

/* Makes room for `count` files. New entries are NULL; their writers open and finish them. */
enum leat_status leat_outputs_room(struct leat_outputs *outputs, size_t count, struct leat_err *err);
/* Begins shard `shard` of `count` (0: unknown yet). Any thread. */
enum leat_status leat_outputs_open_shard(struct leat_outputs *outputs, size_t shard, size_t count,
                                         struct leat_err *err);
/* Begins file `i` under `name`, creating its folder if needed. Fails if it exists, unless `overwrite`. */
enum leat_status leat_outputs_open_file(struct leat_outputs *outputs, size_t i, const char *name, bool overwrite,
                                        struct leat_err *err);

/* Call when all files are finished. Renames them to their final names, and removes shards of earlier runs and stale
 * indexes. */
enum leat_status leat_outputs_publish(struct leat_outputs *outputs, struct leat_err *err);
void leat_outputs_free(struct leat_outputs *outputs); /* discards unpublished files */

#endif
