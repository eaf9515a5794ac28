/* s3_write.h - internals of writing to S3: s3_write.c collects and uploads bytes, s3_commit.c makes them visible
 *
 * Threads: a writer belongs to one thread. Parts end on threads of the wire; the lock guards part[].over. */
#ifndef LEAT_STORE_S3_WRITE_H
#define LEAT_STORE_S3_WRITE_H

#include "base/hash.h"
#include "store/remote.h"
#include "store/s3.h"

enum {
	LEAT_S3_FLIGHT = 3, /* parts of one object in flight */
	LEAT_S3_PARTS = 10000,
	LEAT_S3_PART_ETAG = 64,
	LEAT_MD5_BYTES = 16,
};

struct leat_s3_bytes {
	unsigned char *data;
	size_t len, cap;
};

/* What the server compares a body with. */
struct leat_s3_digest {
	char hash[LEAT_SHA256_HEX];
	char md5[LEAT_MD5_BYTES / 3 * 4 + 8]; /* in base64; "": none */
};

/* A part in flight. */
struct leat_s3_part {
	struct leat_remote_call call;
	struct leat_s3_writer *writer;
	unsigned number; /* from 1; 0: none is in flight here */
	bool over;       /* under the lock */
	struct leat_s3_bytes bytes;
	struct leat_s3_digest digest;
	char *query;
	char etag[LEAT_ETAG];
	struct leat_err err;
};

struct leat_s3_writer {
	struct leat_writer base;
	char *uri;     /* of the object, as far as it is known */
	char *at;      /* of the upload, if that is another one; else NULL */
	char *upload;  /* its id, encoded; NULL: none, all bytes are in `filling` */
	bool finished; /* nothing can be appended */
	struct leat_s3_bytes first, filling, spare;
	size_t kept;    /* bytes counted in the store's */
	unsigned parts; /* so far, without the one that is being filled */
	char (*etag)[LEAT_S3_PART_ETAG];
	size_t etags;
	struct leat_err why; /* it has failed */
	atomic_bool cancelled;
	pthread_mutex_t lock;
	pthread_cond_t landed;
	struct leat_s3_part part[LEAT_S3_FLIGHT];
};

static inline struct leat_s3_writer *
leat_s3_writer_of(struct leat_writer *writer)
{
	return (struct leat_s3_writer *)writer;
}

/* Where the upload goes. */
static inline const char *
leat_s3_upload_uri(const struct leat_s3_writer *w)
{
	return w->at ? w->at : w->uri;
}

/* A request that writes. */
static inline struct leat_ask
leat_s3_ask_to_write(const char *method, const char *uri, const char *query)
{
	return (struct leat_ask){
		.method = method, .uri = uri, .query = query, .verb = "write", .permission = "s3:PutObject"};
}

/* Sets the body, and what the server compares it with. */
void leat_s3_set_body(const struct leat_s3_writer *w, struct leat_ask *ask, const void *bytes, size_t len,
                      struct leat_s3_digest *digest);
/* Asks and waits for the answer; the caller frees its text. */
enum leat_status leat_s3_ask(const struct leat_s3_writer *w, struct leat_remote_call *call, const struct leat_ask *ask,
                             struct leat_err *err);

#endif
