/* inside.h - what the files of this room share
 *
 * Paths are relative to the store's folder (folder_fd), unless they are the user's. */
#ifndef LEAT_CAS_INSIDE_H
#define LEAT_CAS_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/threads.h"
#include "cas/cas.h"
#include "cas/index.h"

enum { LEAT_CAS_NAME = 160, LEAT_RUN_NAME = 64, LEAT_MANIFEST_MAX = 64 << 20, LEAT_TREE_MAX = 1 << 30 };
/* Of actions of a step. JSON has no larger ones; a manifest of somebody else must not use them up. */
#define LEAT_NUMBER_MAX (UINT64_C(1) << 53)
enum { LEAT_TREE_DEPTH = 128 }; /* folders below each other in an output */

/* A set of digests: open addressing. */
struct leat_digests {
	struct leat_digest *slot;
	bool *used;
	size_t cap, count;
};
bool leat_digests_has(const struct leat_digests *set, const struct leat_digest *digest);
enum leat_status leat_digests_add(struct leat_digests *set, struct leat_mem *mem, const struct leat_digest *digest,
                                  struct leat_err *err);
void leat_digests_free(struct leat_digests *set, struct leat_mem *mem);

/* Contents that were found. Guarded by its lock. */
struct leat_seen {
	pthread_mutex_t lock;
	struct leat_digests files, folders;
	uint8_t asked[256]; /* how often a blob with this first byte was looked for; then the folder is listed */
};

/* The thread that syncs. Guarded by its lock. */
struct leat_sync {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct leat_threads thread;
	bool started, dirty, stop, failed;
};

struct leat_cas {
	struct leat_mem *mem;
	enum leat_cas_mode mode;
	char folder[PATH_MAX];
	int folder_fd, lock_fd; /* lock_fd: of `format`; shared while a store is open for writing */
	bool alone;             /* the lock is exclusive */
	bool doubts_index;      /* its index is checked before it is opened */
	int run_fd;             /* of RUN.open, locked; -1: no run */
	char run[LEAT_RUN_NAME];
	atomic_ulong temps;
	atomic_bool index_lags; /* a manifest of this run is not in the index */
	struct leat_index *index;
	struct leat_seen seen;
	struct leat_sync sync;
	struct leat_hashing *hashing; /* see leat_cas_watch_hashing */
};

/* Decimal digits without leading zeros, up to the character `end`. Returns what follows it, or NULL. */
const char *leat_decimal(const char *text, char end, uint64_t *number);

/* gc and repairs need a store that nobody else has open for writing. */
bool leat_cas_lock_alone(struct leat_cas *cas); /* false: somebody has */
void leat_cas_share_lock(struct leat_cas *cas);
void leat_cas_leave(struct leat_cas *cas); /* undoes leat_cas_join */

/* "cas/ab/HASH", "act/ab/KEY" */
void leat_cas_name(const char *room, const struct leat_digest *digest, char name[LEAT_CAS_NAME]);
void leat_cas_path(const struct leat_cas *cas, const char *name, char path[PATH_MAX]); /* absolute */
/* The inverse of the end of such a name, as readdir gives it: false if it is none. */
bool leat_cas_parse_name(const char *prefix, const char *file, struct leat_digest *digest);
/* Calls `each` for every digest below "cas" or "act". `each` may remove the file. */
enum leat_status leat_cas_each(struct leat_cas *cas, const char *room,
                               enum leat_status (*each)(void *arg, const struct leat_digest *digest,
                                                        struct leat_err *err),
                               void *arg, struct leat_err *err);
enum leat_status leat_cas_each_in(struct leat_cas *cas, const char *room, unsigned first,
                                  enum leat_status (*each)(void *arg, const struct leat_digest *digest,
                                                           struct leat_err *err),
                                  void *arg, struct leat_err *err);

/* Writing: a file under tmp/RUN, then its name. */
enum leat_status leat_cas_need_run(const struct leat_cas *cas, struct leat_err *err);
void leat_cas_temp_name(struct leat_cas *cas, char name[LEAT_CAS_NAME]);
enum leat_status leat_cas_write_temp(struct leat_cas *cas, const void *bytes, size_t len, char name[LEAT_CAS_NAME],
                                     struct leat_err *err);
/* Renames `from`, in the folder from_fd, to `to`. LEAT_AGAIN: there is something of that name, which `replace` takes
 * the place of. */
enum leat_status leat_cas_place(struct leat_cas *cas, int from_fd, const char *from, const char *to, bool replace,
                                struct leat_err *err);
/* Renames the file that is known to have this digest into the store; a blob of the same size that is there is kept. */
enum leat_status leat_cas_place_blob(struct leat_cas *cas, int from_fd, const char *from,
                                     const struct leat_digest *digest, uint64_t bytes, struct leat_err *err);
bool leat_cas_has_blob(struct leat_cas *cas, const struct leat_digest *digest);
/* Copies an open file to a new one under tmp/RUN. */
bool leat_cas_write_all(int fd, const char *bytes, size_t len); /* false: errno */
enum leat_status leat_cas_copy_temp(struct leat_cas *cas, int fd, mode_t mode, char name[LEAT_CAS_NAME],
                                    struct leat_err *err);
bool leat_view_is_untouched(struct leat_cas *cas, const char *name);         /* "view/HASH" */
void leat_cas_found(struct leat_cas *cas, const struct leat_digest *digest); /* remembers a blob */
void leat_cas_unsee(struct leat_cas *cas);                                   /* forgets what was found */
enum leat_status leat_cas_full(struct leat_err *err, const struct leat_cas *cas, int errnum, const char *doing);

/* All bytes of a file in the store, as leat_cas_read. */
enum leat_status leat_cas_read_name(struct leat_cas *cas, const char *name, size_t max, char **bytes, size_t *len,
                                    struct leat_err *err);
void leat_manifest_write(struct leat_str *json, const struct leat_manifest *manifest);
/* Hashes an open file from its beginning to its end. `hashing`: see cas.h; NULL: nobody watches. */
enum leat_status leat_hash_fd(int fd, struct leat_mem *mem, const char *path, struct leat_hashing *hashing,
                              struct leat_digest *digest, uint64_t *bytes, struct leat_err *err);

/* Names of a folder's entries, sorted by bytes. */
struct leat_entries {
	char **name;
	size_t count, cap;
};
enum leat_status leat_entries_read(int folder_fd, struct leat_mem *mem, bool hidden, struct leat_entries *entries,
                                   const char *path, struct leat_err *err);
enum leat_status leat_cas_list(struct leat_cas *cas, const char *folder, struct leat_entries *entries,
                               struct leat_err *err);
void leat_entries_free(struct leat_entries *entries, struct leat_mem *mem);

/* Calls `each` for all contents in a tree, to any depth; for folders after what is in them. */
struct leat_tree_walk {
	struct leat_cas *cas;
	enum leat_status (*each)(void *arg, const struct leat_content *content, struct leat_err *err);
	void *arg;
};
enum leat_status leat_tree_walk(const struct leat_tree_walk *walk, const struct leat_digest *tree,
                                struct leat_err *err);

/* Durability. */
void leat_sync_init(struct leat_sync *sync);
void leat_sync_mark(struct leat_cas *cas);                                      /* there is something new */
bool leat_sync_end(struct leat_cas *cas);                                       /* false: not all is on disk */
const char *leat_boot_id(char id[64]);                                          /* of this boot of the machine */
enum leat_status leat_runs_recover(struct leat_cas *cas, struct leat_err *err); /* nobody else has the store open */
bool leat_runs_suspect(struct leat_cas *cas);                     /* is there a run that another boot ended? */
bool leat_cas_run_is_open(struct leat_cas *cas, const char *run); /* does a process still work on it? */
void leat_run_end(struct leat_cas *cas); /* syncs, and removes RUN.open and tmp/RUN; if there is a run */

/* The index, further functions. */
struct leat_stat_key {
	uint64_t device, inode;
};
struct leat_stat_value {
	uint64_t size;
	int64_t mtime_ns, ctime_ns;
	struct leat_digest digest;
};
enum leat_status leat_index_open(struct leat_cas *cas, struct leat_err *err);
void leat_index_close(struct leat_cas *cas);
enum leat_status leat_index_enter(struct leat_cas *cas, const struct leat_manifest *manifest, struct leat_err *err);
bool leat_index_stat(struct leat_cas *cas, const struct leat_stat_key *key, struct leat_stat_value *value);
void leat_index_stat_set(struct leat_cas *cas, const struct leat_stat_key *key, const struct leat_stat_value *value);
/* Does it know what is in a folder? Then *found says whether all of that is in the store. */
bool leat_index_holds(struct leat_cas *cas, const struct leat_digest *tree, bool *found);
/* Writes entries that wait: of the stat cache, and on which day results were used. */
void leat_index_flush(struct leat_cas *cas);

#endif
