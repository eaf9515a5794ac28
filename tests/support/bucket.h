/* bucket.h - an S3 server for tests, in this process, that takes objects and fails as it is told to
 *
 * It knows PUT, CopyObject, HEAD, GET of whole objects, DELETE and multipart uploads, and no signatures. ETags are
 * those of S3. One thread for each connection. */
#ifndef TEST_BUCKET_H
#define TEST_BUCKET_H

#include <stddef.h>

enum bucket_trouble {
	BUCKET_NONE,
	BUCKET_LOST,      /* does it, and closes the connection without an answer */
	BUCKET_RESET,     /* resets the connection in the middle of the request's body */
	BUCKET_BUSY,      /* 503 */
	BUCKET_EARLY,     /* 503 before the body was read, which is then read to its end */
	BUCKET_ERROR,     /* 200, and then an InternalError in the body */
	BUCKET_DENIED,    /* 403 AccessDenied, and closes before the body was read */
	BUCKET_EXPIRED,   /* 403 ExpiredToken */
	BUCKET_ELSEWHERE, /* 301 with another region */
	BUCKET_NO_UPLOAD, /* 404 NoSuchUpload */
	BUCKET_NO_ETAG,   /* leaves it out */
	BUCKET_NONSENSE,  /* 200 with a body that makes no sense */
};

/* What requests do; the value is for counting. */
enum bucket_act {
	BUCKET_PUT,
	BUCKET_COPY,
	BUCKET_CREATE,
	BUCKET_PART,
	BUCKET_COMPLETE,
	BUCKET_ABORT,
	BUCKET_DELETE,
	BUCKET_HEAD,
	BUCKET_ACTS
};

/* Sets AWS_ENDPOINT_URL and keys. */
void bucket_start(void);
void bucket_stop(void); /* and forgets everything */
/* The next `count` requests that do `act` are answered so. */
void bucket_set_trouble(enum bucket_act act, enum bucket_trouble trouble, int count);
/* Complete requests of that kind, with those that were answered badly. */
int bucket_count(enum bucket_act act);
int bucket_most_parts(void); /* in flight at a time */
int bucket_uploads(void);    /* that are neither completed nor aborted */
/* The bytes of an object, by its path "/bucket/key"; NULL: there is none. Valid until it changes. */
const void *bucket_get(const char *path, size_t *len);
int bucket_nonsense(void); /* requests that are none, such as the rest of a body */
/* The request that came last: its line and fields. */
const char *bucket_last(void);

#endif
