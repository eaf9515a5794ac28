/* credentials_fetch.h - credentials from services: web identity, containers, EC2, roles
 *
 * Small answers from servers nearby, fetched by a blocking libcurl call with a short timeout.
 *
 * Threads: any. */
#ifndef LEAT_STORE_CREDENTIALS_FETCH_H
#define LEAT_STORE_CREDENTIALS_FETCH_H

#include "store/credentials.h"

/* What STS is asked for, and how to get there. */
struct leat_sts {
	const struct leat_storage *storage; /* certificates and proxy */
	const char *region, *role, *session;
};

/* A pod's identity, from a file, exchanged for a role at STS. */
enum leat_status leat_credentials_from_identity(struct leat_credentials *credentials, struct leat_mem *mem,
                                                const struct leat_sts *sts, const char *token_file,
                                                struct leat_err *err);
/* AWS_CONTAINER_CREDENTIALS_FULL_URI or _RELATIVE_URI: ECS, EKS Pod Identity. LEAT_AGAIN: not set. */
enum leat_status leat_credentials_from_container(struct leat_credentials *credentials, struct leat_mem *mem,
                                                 struct leat_err *err);
/* The metadata service of EC2, version 2, unless AWS_EC2_METADATA_DISABLED is true. LEAT_AGAIN if it does not answer,
 * because most machines are none of Amazon's. */
enum leat_status leat_credentials_from_instance(struct leat_credentials *credentials, struct leat_mem *mem,
                                                struct leat_err *err);
/* AssumeRole with the credentials `with`. */
enum leat_status leat_credentials_from_role(struct leat_credentials *credentials, struct leat_mem *mem,
                                            const struct leat_sts *sts, const struct leat_credentials *with,
                                            const char *external_id, struct leat_err *err);

/* Reads the XML of an STS answer. */
enum leat_status leat_credentials_parse_sts(struct leat_credentials *credentials, const char *xml, size_t len,
                                            struct leat_err *err);

#endif
