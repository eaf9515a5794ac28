/* disk_key.h - what the disk cache knows an object by
 *
 * A hash of the server, the URI, the size and the version. Signatures in URLs change each time, so
 * they are left out: for AWS, Google and CloudFront the X-Amz-, X-Goog- and Signature parameters,
 * for Azure the parameters of a SAS. */
#ifndef LEAT_STORE_DISK_KEY_H
#define LEAT_STORE_DISK_KEY_H

#include "store/disk_table.h"
#include "store/store.h"

/* `place`: the server, if the URI does not say it. False: the object has no version, so it cannot be cached. */
bool leat_disk_key(const char *place, const char *uri, const struct leat_object *object, struct leat_disk_key *key);
/* What one successful request proves access to, in a cache of several users: an object of 8 MiB or more; the folder of
 * a smaller one. Never 0. */
uint64_t leat_disk_proof(const char *place, const char *uri, uint64_t size);
/* Appends a URI without the parameters that are signatures. For tests. */
size_t leat_disk_plain_uri(const char *uri, char out[LEAT_URI]);

#endif
