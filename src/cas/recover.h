/* recover.h - check what a run made whose machine stopped */
#ifndef LEAT_CAS_RECOVER_H
#define LEAT_CAS_RECOVER_H

#include "cas/inside.h"

/* `runs` are the names in .leat/runs. Removes blobs, views and manifests that are damaged, and makes the index again.
 * Nobody else has the store open. */
enum leat_status leat_recover(struct leat_cas *cas, const struct leat_entries *runs, struct leat_err *err);

/* Does the blob have the digest that its name says? LEAT_DATA: the disk cannot read it, or it is no file. Other errors
 * may be over when it is asked again. A blob that is gone is whole: there is nothing to repair. */
enum leat_status leat_blob_check(struct leat_cas *cas, const struct leat_digest *digest, bool *whole, uint64_t *bytes,
                                 struct leat_err *err);

/* Is the manifest damaged, after leat_cas_manifest returned `status`? Else that error may be over the next time. */
bool leat_manifest_is_damaged(struct leat_cas *cas, const struct leat_digest *key, enum leat_status status);

#endif
