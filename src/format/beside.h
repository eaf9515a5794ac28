/* beside.h - files that are made of the data and kept, so that they need not be made again: indexes
 *
 * `.NAME.leatidx` beside the data, in its store; or, where that cannot be written, in
 * ${XDG_CACHE_HOME:-~/.cache}/leat/index under the SHA-256 of the data's absolute name.
 * Names that begin with a dot match no pattern of a user. They are read into counted
 * memory: data that a feed depends on cannot change under it. Any thread. */
#ifndef LEAT_FORMAT_BESIDE_H
#define LEAT_FORMAT_BESIDE_H

#include "store/store.h"

/* What is wrong with the bytes of such a file, in a few words; NULL: nothing. They are 16-byte aligned, and stay
 * where they are if nothing is wrong. *stale: they were right for the data as it was before. */
typedef const char *leat_beside_fault(void *arg, const void *bytes, size_t len, bool *stale);

/* Finds the one of `data`, an object or folder of `store`, that `fault` has no objection to. *bytes and *path are freed
 * by the caller. LEAT_AGAIN (no error text): there is none; why those that were found are not used is logged. */
enum leat_status leat_beside_load(struct leat_store *store, const char *data, leat_beside_fault *fault, void *arg,
                                  struct leat_mem *mem, const struct leat_log *log, void **bytes, char **path,
                                  struct leat_err *err);

/* Writes one, which `write` does the bytes of. `path` (may be NULL) gets where it is, freed by the caller. Not synced,
 * which would take seconds for a thousand files: what a crash spoils is made again. */
enum leat_status leat_beside_save(struct leat_store *store, const char *data,
                                  enum leat_status (*write)(void *arg, struct leat_writer *out, struct leat_err *err),
                                  void *arg, struct leat_mem *mem, char **path, struct leat_err *err);

/* Removes those of data that is gone. Without it nothing is lost: what is left is found to be outdated. */
void leat_beside_remove(struct leat_store *store, const char *data, struct leat_mem *mem);

#endif
