/* sigv4.h - sign S3 requests: AWS Signature Version 4
 *
 * The signature covers the method, the path and query exactly as sent, and the fields of the
 * request that are given here. The caller encodes: path once, query sorted by name. A day's key
 * takes four HMACs, so a signer keeps the last one.
 *
 * Threads: a signer by one at a time. */
#ifndef LEAT_STORE_SIGV4_H
#define LEAT_STORE_SIGV4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

struct leat_str;

enum { LEAT_SIGV4_TIME = 17 }; /* 20130524T000000Z */

/* SHA-256 of an empty body. */
extern const char leat_sigv4_no_body[LEAT_SHA256_HEX];

/* What is signed. */
struct leat_sigv4 {
	const char *method;
	const char *path;   /* encoded, begins with '/' */
	const char *query;  /* encoded and sorted, every name with '='; "": none */
	const char *fields; /* "name:value\n", names in lower case and sorted */
	const char *body;   /* hex SHA-256 of the body */
	const char *time;   /* as in x-amz-date */
	const char *region, *service;
	const char *key_id, *secret;
};

/* The signing key of a day. Zeroed: none yet. */
struct leat_sigv4_key {
	uint8_t scope[LEAT_SHA256_BYTES]; /* hash of what it was made from */
	uint8_t key[LEAT_SHA256_BYTES];
};

/* Appends the value of the Authorization field. False: out of memory. */
bool leat_sigv4_add(struct leat_str *out, const struct leat_sigv4 *what, struct leat_sigv4_key *key);
void leat_sigv4_time(int64_t seconds, char text[LEAT_SIGV4_TIME]);

#endif
