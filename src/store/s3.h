/* s3.h - internals of the store s3:
 *
 * s3.c finds the server, signs requests and lists; s3_list.c reads the server's XML; s3_write.c writes objects. */
#ifndef LEAT_STORE_S3_H
#define LEAT_STORE_S3_H

#include "store/store.h"

/* s3.c */
/* Are connections encrypted, so that the signature need not cover the body? */
bool leat_s3_has_tls(struct leat_store *store);
/* Bytes of small objects that are finished and wait in memory for their commit. */
atomic_size_t *leat_s3_kept(struct leat_store *store);

/* s3_write.c: functions of the store */
enum leat_status leat_s3_begin(struct leat_store *store, const char *uri, int flags, struct leat_writer **writer,
                               struct leat_err *err);
enum leat_status leat_s3_append(struct leat_writer *writer, const void *bytes, size_t len, struct leat_err *err);
enum leat_status leat_s3_patch(struct leat_writer *writer, uint64_t offset, const void *bytes, size_t len,
                               struct leat_err *err);
enum leat_status leat_s3_finish(struct leat_writer *writer, int flags, struct leat_err *err);
enum leat_status leat_s3_commit(struct leat_writer *writer, const char *uri, int flags, struct leat_err *err);
void leat_s3_abort(struct leat_writer *writer);
enum leat_status leat_s3_remove(struct leat_store *store, const char *uri, struct leat_err *err);

#endif
