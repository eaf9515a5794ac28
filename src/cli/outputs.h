/* outputs.h - the files that a command writes: all of them appear, or none
 *
 * Each is written under a hidden name beside its own. When all are complete they get
 * their names, and only then what an earlier run left of the same kind is removed, so
 * that a run that fails or is stopped changes nothing. Main thread, but for the files
 * themselves: different threads may write different ones. */
#ifndef LEAT_CLI_OUTPUTS_H
#define LEAT_CLI_OUTPUTS_H

#include "store/store.h"

enum { LEAT_MAX_SHARDS = 99999 };

struct leat_outputs {
	struct leat_mem *mem;
	const char *prefix, *suffix; /* shards: PREFIX-00000-of-00008SUFFIX; no suffix: each has a name of its own */
	struct leat_stores stores;
	struct leat_store *store;  /* of shards */
	char *uri;                 /* the prefix, as the store knows it */
	struct leat_writer **file; /* NULL: not begun, or shown */
	size_t count, cap;
	uint64_t bytes; /* of all, once they are shown */
};

void leat_outputs_init(struct leat_outputs *outputs, const char *prefix, const char *suffix, struct leat_mem *mem);

/* Shards: makes the folder if it is missing; fails when there are shards already, unless they may go. */
enum leat_status leat_outputs_begin(struct leat_outputs *outputs, bool overwrite, struct leat_err *err);
/* A pattern for all shards, as a user writes it, to be freed; NULL: no memory. */
char *leat_shard_pattern(const struct leat_outputs *outputs);

/* Room for so many files: those that come new are zeroed, to be opened and finished by their writers. */
enum leat_status leat_outputs_room(struct leat_outputs *outputs, size_t count, struct leat_err *err);
/* Begins shard `shard` of `count`; 0: not known yet. Any thread. */
enum leat_status leat_outputs_open_shard(struct leat_outputs *outputs, size_t shard, size_t count,
                                         struct leat_err *err);
/* Begins file `i` under a name of its own, in a folder that is made if it is missing. Fails when there is one already,
 * unless it may go. */
enum leat_status leat_outputs_open_file(struct leat_outputs *outputs, size_t i, const char *name, bool overwrite,
                                        struct leat_err *err);

/* All files are finished: gives them their names, and removes shards of earlier runs and indexes of what is gone. */
enum leat_status leat_outputs_show(struct leat_outputs *outputs, struct leat_err *err);
void leat_outputs_free(struct leat_outputs *outputs); /* what was not shown is gone */

#endif
