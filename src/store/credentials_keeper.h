/* credentials_keeper.h - the credentials that requests are signed with, kept fresh
 *
 * Finding credentials can take seconds: a process, a metadata service, STS. So a separate thread
 * does it, never one that carries requests. Credentials that expire are replaced early, by a random
 * part of their last fifth, or of the last five minutes; requests go on with the old ones while
 * these are valid, and wait when they are not.
 *
 * All stores of a process that were opened with the same settings and environment share one keeper, and with it
 * each refresh. After a fork the child has none: what it opens finds credentials anew.
 *
 * Threads: any. Nothing here waits but leat_keeper_wait. */
#ifndef LEAT_STORE_CREDENTIALS_KEEPER_H
#define LEAT_STORE_CREDENTIALS_KEEPER_H

#include <stdatomic.h>

#include "store/credentials.h"

struct leat_keeper;

/* Begins to find credentials, unless there are some. */
enum leat_status leat_keeper_open(struct leat_keeper **keeper, const struct leat_storage *storage,
                                  struct leat_err *err);
void leat_keeper_close(struct leat_keeper *keeper); /* accepts NULL */

/* Waits until the first credentials have been found, or not. LEAT_CANCELLED: `interrupted`, which may be NULL, is set.
 */
enum leat_status leat_keeper_wait(struct leat_keeper *keeper, const atomic_bool *interrupted, struct leat_err *err);

/* LEAT_OK: *credentials are valid until leat_keeper_unlock; *version tells them from those before and after.
 * LEAT_AGAIN: there are none now, but there may be soon; `err` says why. Anything else: none were ever found. */
enum leat_status leat_keeper_lock(struct leat_keeper *keeper, const struct leat_credentials **credentials,
                                  unsigned *version, struct leat_err *err);
void leat_keeper_unlock(struct leat_keeper *keeper);
/* A server says that these have expired. */
void leat_keeper_drop(struct leat_keeper *keeper, unsigned version);

#endif
