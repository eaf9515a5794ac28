/* lookup.h - resolve a host without waiting for it
 *
 * The system's resolver may block for as long as it likes, and nothing can interrupt it. So it runs
 * on a separate thread, which shares nothing but the lookup with us and is never waited for: a
 * lookup that is dropped is freed by whoever is done with it last. Its memory is the C library's,
 * because it may outlive the feed.
 *
 * Threads: the lookup is started, asked and dropped by one at a time. */
#ifndef LEAT_STORE_LOOKUP_H
#define LEAT_STORE_LOOKUP_H

#include "store/addresses.h"

struct leat_lookup;

/* NULL: there is no memory or no thread for it. */
struct leat_lookup *leat_lookup_start(const char *host, unsigned port);
/* False: not yet. *count is 0 if the host cannot be resolved. */
bool leat_lookup_done(struct leat_lookup *lookup, leat_address_text text[LEAT_ADDRESSES], unsigned *count);
void leat_lookup_drop(struct leat_lookup *lookup); /* accepts NULL */

/* The addresses of a host in a text such as "HOST:PORT:ADDRESS,[ADDRESS] HOST:PORT:ADDRESS". 0: it is not there. */
unsigned leat_lookup_in(const char *list, const char *host, unsigned port, leat_address_text text[LEAT_ADDRESSES]);
/* Is it such a text? NULL: yes; else why not. */
const char *leat_lookup_check(const char *list);

#endif
