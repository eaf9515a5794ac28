/* credentials.h - who we are to S3: the key to sign with, and settings that come with it
 *
 * In this order: the environment (AWS_ACCESS_KEY_ID, ...), a pod's web identity, the profile (that
 * of AWS_PROFILE, or "default") in ~/.aws/credentials and ~/.aws/config with its role or process, the
 * service of a container, that of an EC2 instance. A profile set by a storage option comes first.
 * Nothing here is ever logged or part of an error.
 *
 * Threads: any; credentials are not changed once they are found. */
#ifndef LEAT_STORE_CREDENTIALS_H
#define LEAT_STORE_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"
#include "store/settings.h"

enum { LEAT_KEY_ID = 256, LEAT_SECRET = 256, LEAT_TOKEN = 8192 };

struct leat_credentials {
	bool anonymous; /* requests are not signed */
	char key_id[LEAT_KEY_ID], secret[LEAT_SECRET];
	char token[LEAT_TOKEN]; /* of a session; "": none */
	int64_t expires;        /* seconds since 1970; 0: never */
};

/* LEAT_INVALID: there are none, or they make no sense. */
enum leat_status leat_credentials_find(struct leat_credentials *credentials, const struct leat_storage *storage,
                                       struct leat_mem *mem, struct leat_err *err);
void leat_credentials_forget(struct leat_credentials *credentials);
/* What is not known yet and the profile says: endpoint, region, ca_bundle. */
enum leat_status leat_profile_settings(struct leat_storage *storage, struct leat_mem *mem, struct leat_err *err);

/* Reads the JSON that a credential_process prints, and that the services of containers and instances send. */
enum leat_status leat_credentials_parse(struct leat_credentials *credentials, const char *json, size_t len,
                                        struct leat_err *err);

#endif
