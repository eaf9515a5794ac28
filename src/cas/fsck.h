/* fsck.h - read all of a store, and say what is damaged
 *
 * Blobs are hashed, manifests are read and their keys computed, and the index is compared with them. A blob that is
 * missing is no damage: gc removed it, and it is made again. */
#ifndef LEAT_CAS_FSCK_H
#define LEAT_CAS_FSCK_H

#include "cas/index.h"

struct leat_fsck_options {
	bool repair; /* remove what is damaged, and make the index again; needs a store open for writing, without a run
	              */
	unsigned threads;
	void (*problem)(void *arg, const char *text); /* called for each, one at a time, in no fixed order */
	void *arg;
};

struct leat_fsck_result {
	bool busy; /* a build has the store open: nothing was repaired */
	size_t blobs, manifests, views;
	uint64_t bytes;
	size_t missing; /* results whose output was removed */
	size_t damaged; /* problems found */
};

/* leat_cas_open, for a store that may be damaged: an index on which LMDB would crash is not used, or made again. */
enum leat_status leat_cas_open_doubtful(struct leat_cas **cas, struct leat_mem *mem, const char *folder,
                                        enum leat_cas_mode mode, struct leat_err *err);
enum leat_status leat_cas_fsck(struct leat_cas *cas, const struct leat_fsck_options *options,
                               struct leat_fsck_result *result, struct leat_err *err);

#endif
