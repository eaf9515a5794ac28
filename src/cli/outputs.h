/* outputs.h - output files of a command, which become visible together
 *
 * Each file is written under a hidden temporary name. When all are complete, a manifest that lists them is written
 * (store/set.h), then they are renamed and shards of an earlier run are removed, then the manifest says so. A run that
 * fails or is stopped before changes nothing; one that is killed in between leaves files that Leat refuses to read
 * until the command is run again. A lock keeps two commands from writing the same files, so what is there of temporary
 * files when a command begins is left from killed ones and removed. Main thread, except that different threads may
 * write different files. */
#ifndef LEAT_CLI_OUTPUTS_H
#define LEAT_CLI_OUTPUTS_H

#include "store/set.h"

enum { LEAT_MAX_SHARDS = 99999 };

struct leat_outputs {
	struct leat_mem *mem;
	const char *prefix, *suffix;
	bool shards;                  /* PREFIX-00000-of-00008SUFFIX; else PREFIX/NAMESUFFIX */
	bool plain;                   /* set after init: no manifest, as for a folder that appears as a whole */
	const char *const *arguments; /* of the command, for the manifest */
	struct leat_stores stores;
	struct leat_store *store;
	char *uri;                 /* the prefix as the store's URI */
	char *manifest;            /* its URI */
	struct leat_set set;       /* what the manifest lists */
	struct leat_lock *lock;    /* NULL: the store has none */
	struct leat_writer **file; /* NULL: not begun, or published */
	char **name;               /* without shards: URIs of the files */
	size_t count, cap, name_cap;
	size_t run;     /* of this command, in `set`, once it is published */
	uint64_t bytes; /* total, once published */
};

void leat_outputs_init(struct leat_outputs *outputs, const char *prefix, const char *suffix, bool shards,
                       const char *const *arguments, const struct leat_storage *storage, struct leat_mem *mem);

/* Creates the folder if needed and locks the files. Fails if shards exist, unless `overwrite` or they are left from a
 * command that was killed. */
enum leat_status leat_outputs_begin(struct leat_outputs *outputs, bool overwrite, struct leat_err *err);
/* A pattern that matches all shards, to be freed by the caller; NULL: out of memory. */
char *leat_shard_pattern(const struct leat_outputs *outputs);

/* Makes room for `count` files. New entries are NULL; their writers open and finish them. */
enum leat_status leat_outputs_room(struct leat_outputs *outputs, size_t count, struct leat_err *err);
/* Begins shard `shard` of `count` (0: unknown yet). Any thread. */
enum leat_status leat_outputs_open_shard(struct leat_outputs *outputs, size_t shard, size_t count,
                                         struct leat_err *err);
/* Begins file `i`, PREFIX/NAMESUFFIX. Fails if it exists, as leat_outputs_begin does for shards. */
enum leat_status leat_outputs_open_file(struct leat_outputs *outputs, size_t i, const char *name, bool overwrite,
                                        struct leat_err *err);

/* Fails if an input is one of the files, or a shard of the set, that will be replaced: an interrupted command could not
 * be run again. For shards, after begin; else after all files were opened. */
enum leat_status leat_outputs_spare(const struct leat_outputs *outputs, const struct leat_files *inputs,
                                    struct leat_err *err);

/* Call when all files are finished. Renames them to their final names, and removes shards of earlier runs and stale
 * indexes. */
enum leat_status leat_outputs_publish(struct leat_outputs *outputs, struct leat_err *err);
/* The same for several sets, an array, none of which is readable before all files of all are in place. */
enum leat_status leat_outputs_publish_all(struct leat_outputs *outputs, size_t count, struct leat_err *err);
void leat_outputs_free(struct leat_outputs *outputs); /* discards unpublished files */

#endif
