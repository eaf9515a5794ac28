/* beside.h - files derived from the data and kept next to it, such as indexes
 *
 * The file is `.NAME.leatidx` next to the data, in its store; or, if that cannot be written, asks a server or is in
 * the .leat folder of a build,
 * ${XDG_CACHE_HOME:-~/.cache}/leat/index under the SHA-256 of the data's absolute name.
 * The leading dot keeps it out of users' patterns. It is read into counted memory rather than
 * mapped, so that it cannot change under a running feed.
 *
 * Whoever can write the file decides what a feed reads. So it is used only if it belongs to us, to
 * root or to the owner of the data, and nobody else can write it; else it is ignored and built
 * again. The cache folder has to be ours alone. Any thread. */
#ifndef LEAT_FORMAT_BESIDE_H
#define LEAT_FORMAT_BESIDE_H

#include "store/store.h"

/* On a server, files next to the data are for everybody, cost requests, and are written only when asked for: by `leat
 * index`, which writes one for all files of a data set. Indexes that a feed makes for itself are in the cache folder.
 */
enum leat_beside_place {
	LEAT_BESIDE_OWN,    /* next to local data, or in the cache folder */
	LEAT_BESIDE_SHARED, /* next to the data, also on a server, or in the cache folder */
};

/* Checks the bytes of such a file: returns what is wrong in a few words, NULL if valid. The bytes are 16-byte aligned
 * and, if valid, stay where they are. *stale: they were valid for an earlier version of the data. */
typedef const char *leat_beside_fault(void *arg, const void *bytes, size_t len, bool *stale);

/* Loads the file that belongs to `data`, an object or folder of `store`, and passes `fault`. The caller frees *bytes
 * and *path. LEAT_AGAIN (no error text): no valid file; the reason for rejecting one is logged. */
enum leat_status leat_beside_load(struct leat_store *store, const char *data, enum leat_beside_place place,
                                  leat_beside_fault *fault, void *arg, struct leat_mem *mem, const struct leat_log *log,
                                  void **bytes, char **path, struct leat_err *err);

/* Saves a file whose bytes come from `write`. *path (`path` may be NULL) is set to its name, which the caller frees.
 * Not synced, which would take seconds for a thousand files: a file damaged by a crash is rebuilt. */
enum leat_status leat_beside_save(struct leat_store *store, const char *data, enum leat_beside_place place,
                                  enum leat_status (*write)(void *arg, struct leat_writer *out, struct leat_err *err),
                                  void *arg, struct leat_mem *mem, char **path, struct leat_err *err);

/* Removes the file of deleted data. Optional: a leftover is detected as stale. */
void leat_beside_remove(struct leat_store *store, const char *data, struct leat_mem *mem);

#endif
