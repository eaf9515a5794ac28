/* gc.h - remove results that nobody used for long, and what nobody refers to
 *
 * Kept are: what a ref names, unless it is an old one of rows that failed; the latest result of each step and slice,
 * unless the size demands more; results that were used within `older_s`; and the logs that run logs name. Nothing is
 * removed while a build has the store open. What is removed is made again when a build needs it. */
#ifndef LEAT_CAS_GC_H
#define LEAT_CAS_GC_H

#include "cas/index.h"

struct leat_gc_options {
	double older_s; /* remove results that were not used for so many seconds */
	uint64_t size;  /* then the least recently used ones, until so many bytes are left; UINT64_MAX: no limit */
	bool dry;       /* only count */
};

struct leat_gc_result {
	bool busy; /* a build has the store open: nothing was done */
	size_t results, results_removed;
	size_t blobs, blobs_removed;
	uint64_t bytes, bytes_removed;
};

/* The store is open for writing, without a run. */
enum leat_status leat_cas_gc(struct leat_cas *cas, const struct leat_gc_options *options, struct leat_gc_result *result,
                             struct leat_err *err);

/* Refs: gc keeps the result with this key. The name is any that a file can have, without a dot at its beginning. */
enum leat_status leat_ref_set(struct leat_cas *cas, const char *name, const struct leat_digest *key,
                              struct leat_err *err);
enum leat_status leat_ref_remove(struct leat_cas *cas, const char *name, struct leat_err *err);
/* Calls `each` for every line of every ref: a key, or a content (kind NONE: it is a key). Lines that begin with '#' are
 * comments. A line that is neither is LEAT_DATA, so gc removes nothing that somebody wanted to keep. */
enum leat_status leat_refs_each(struct leat_cas *cas,
                                enum leat_status (*each)(void *arg, const char *name,
                                                         const struct leat_content *content, struct leat_err *err),
                                void *arg, struct leat_err *err);

/* ---- rejects.c: rows for which the last attempt of an action failed ---- */

#define LEAT_REJECTS_REF "rejects-" /* refs of this name: gc drops them when they are old */

/* Keeps rows, a file in the store, until the next call for this step and slice. In a run; any thread. */
enum leat_status leat_rejects_keep(struct leat_cas *cas, const char *step, const char *slice, uint64_t number,
                                   const struct leat_content *rows, struct leat_err *err);
void leat_rejects_drop(struct leat_cas *cas, const char *step, const char *slice); /* if there are any */
/* False: there are none. `number` is that of the action that failed. */
bool leat_rejects_find(struct leat_cas *cas, const char *step, const char *slice, uint64_t *number,
                       struct leat_content *content);

#endif
