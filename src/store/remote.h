/* remote.h - what stores that speak HTTP have in common: looking at objects and reading ranges
 *
 * A store names its objects by URI; `compose` turns that into a request, signed if need be. This
 * file checks every answer against what was asked: the status, the range, the length, the
 * object's size and its version.
 *
 * The version is the ETag, or a hash of a long one; without ETags the time of modification; else
 * nothing but the size. A strong ETag goes into If-Match, so the server itself refuses.
 *
 * Threads: any. `compose` and `judge` are called by the wire's threads. */
#ifndef LEAT_STORE_REMOTE_H
#define LEAT_STORE_REMOTE_H

#include "store/disk_cache.h"
#include "store/wire.h"

struct leat_remote_call;

/* Threads that call `done`: the wire's, and the disk cache's. */
enum { LEAT_REMOTE_THREADS = LEAT_WIRE_THREADS + LEAT_DISK_THREADS };
/* Bytes that take as long as another request (docs/DECISIONS.md). */
enum { LEAT_REMOTE_REQUEST_COST = 64 * 1024 };

/* What is asked of a server. Text is the caller's, and stays until the answer is there. */
struct leat_ask {
	const char *method;
	const char *uri;
	const char *query;  /* encoded and sorted; NULL: none */
	const char *fields; /* more lines of the head, each with its end; NULL: none */
	bool of_bucket;     /* S3: about the bucket, not the object */

	/* For asks that change something: */
	const void *body;
	size_t body_len;
	const char *body_hash;   /* S3: hex SHA-256 of the body, or UNSIGNED-PAYLOAD; NULL: there is no body */
	const char *body_md5;    /* S3: in base64, for the server to compare; NULL: none */
	const char *copied_from; /* S3: encoded "bucket/key" of the object to copy; NULL: none */
	const char *verb;        /* for errors; NULL: open */
	const char *permission;  /* S3: what it takes, for errors, such as "s3:PutObject"; NULL: not said */
	int accepts[2];          /* statuses that are answers too, other than 2xx */
};

struct leat_remote_kind {
	bool hides_query; /* errors show URIs without user and query, which may be secrets */
	bool any_coding;  /* Content-Encoding is only a note on the object */
	/* Any thread: finds out whom to ask about `uri`: sets call->exchange.origin. */
	enum leat_status (*locate)(struct leat_remote_call *call, const char *uri, struct leat_err *err);
	/* Wire's thread: writes a whole request. */
	enum leat_status (*compose)(struct leat_remote_call *call, const struct leat_ask *ask, struct leat_str *out);
	/* Wire's thread: an answer that nobody else understands, such as a redirect. Sets exchange.why if it is not
	 * LEAT_VERDICT_NOW. */
	enum leat_verdict (*judge)(struct leat_remote_call *call, const struct leat_http_head *head);
	/* Optional. Wire's thread: true if an answer to LEAT_CALL_OTHER is an error although its status is 2xx. */
	bool (*is_error)(const struct leat_remote_call *call);
};

/* First member of every remote store. */
struct leat_remote {
	struct leat_store base;
	const struct leat_remote_kind *kind;
	struct leat_storage storage; /* complete */
	struct leat_wire *wire;
	struct leat_disk *disk; /* NULL: no disk cache */
	pthread_mutex_t lock;
	struct leat_remote_read *unused; /* under the lock */
};

/* An exchange about an object. */
struct leat_remote_call {
	struct leat_exchange exchange;
	struct leat_remote *remote;
	const char *uri; /* NULL: that of a read */
	char *moved;     /* the URL that the server sent us to; freed at the end */
	enum { LEAT_CALL_HEAD, LEAT_CALL_FIRST_BYTE, LEAT_CALL_RANGE, LEAT_CALL_WHOLE, LEAT_CALL_OTHER } asks;
	bool accepted;        /* the head was what was asked for */
	unsigned refreshed;   /* how often a signature was renewed */
	unsigned credentials; /* which ones it is signed with */
	unsigned attempts;    /* requests so far; a lost answer may have been one of success */
	struct leat_ask ask;  /* LEAT_CALL_OTHER */
	int status;           /* of the answer; set when the exchange ends with LEAT_OK */
	char *etag;           /* LEAT_CALL_OTHER: LEAT_ETAG bytes for that of the answer; NULL: not wanted */
	/* leat_remote_start: called by a thread of the wire when exchange.status is set. */
	void (*done)(struct leat_remote_call *call);
	struct leat_object *object; /* LEAT_CALL_HEAD, LEAT_CALL_FIRST_BYTE: filled in */
};

/* `storage` is complete. */
enum leat_status leat_remote_open(struct leat_remote *remote, const struct leat_store_kind *store,
                                  const struct leat_remote_kind *kind, const struct leat_storage *storage,
                                  struct leat_mem *mem, struct leat_err *err);
void leat_remote_close(struct leat_remote *remote); /* all but the store's own memory */

/* What a store has asked of its servers since it was opened. False: it is not a remote one. */
bool leat_remote_counts(const struct leat_store *store, struct leat_origin_counts *counts);
/* The wire of a remote store; NULL: it is not one. */
struct leat_wire *leat_remote_wire(const struct leat_store *store);

static inline struct leat_remote *
leat_remote_of(struct leat_store *store)
{
	return (struct leat_remote *)store;
}

/* The URI as errors show it, in `buf`. */
const char *leat_remote_shown(const struct leat_remote *remote, const char *uri, char buf[LEAT_URI]);
/* The URI of the object that a call is about. */
const char *leat_remote_uri(struct leat_remote_call *call, char buf[LEAT_URI]);
/* Copies a name; refuses those that cannot be one. */
enum leat_status leat_remote_copy_uri(struct leat_store *store, const char *text, char **uri, struct leat_err *err);

/* For `list`: nothing was opened yet, so an object that is not there is no damage. */
enum leat_status leat_remote_fail_list(const struct leat_err *why, struct leat_err *err);

/* Fills in size, time and version as told by a head. False: the size is not told. */
bool leat_remote_describe(const struct leat_http_head *head, struct leat_object *object);
void leat_remote_version(const char *etag, int64_t modified, struct leat_version *version);

/* Asks for something else than an object's bytes: the answer is in call->exchange.text, its status in call->status.
 * `max_text` bytes at most. The caller frees the text. */
enum leat_status leat_remote_ask(struct leat_remote *remote, struct leat_remote_call *call, const struct leat_ask *ask,
                                 size_t max_text, struct leat_err *err);

/* The same without waiting: call->done is called, unless this fails. The caller frees the text, and sets
 * call->exchange.cancelled before, if it may be cancelled. */
enum leat_status leat_remote_start(struct leat_remote *remote, struct leat_remote_call *call,
                                   const struct leat_ask *ask, size_t max_text, struct leat_err *err);

/* ---- functions of a store ---- */

enum leat_status leat_remote_look(struct leat_store *store, const char *uri, struct leat_object *object,
                                  struct leat_err *err);
enum leat_status leat_remote_load(struct leat_store *store, const char *uri, size_t most, struct leat_mem *mem,
                                  void **bytes, size_t *len, struct leat_err *err);
enum leat_status leat_remote_submit(struct leat_store *store, struct leat_read *read);
void leat_remote_cancel(struct leat_store *store, struct leat_read *read);
void leat_remote_interrupt(struct leat_store *store);
void leat_remote_disk_stats(struct leat_store *store, struct leat_disk_stats *stats);

#endif
