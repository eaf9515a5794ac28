/* staging.h - sources on servers: what is there, and copies of it in the content store
 *
 * A source such as s3://bucket/raw/events-*.csv.gz is listed by its store. Each object is fetched once per version into
 * the content store of the project, and hashed on the way; the index then knows which content that version has, so an
 * object that did not change costs no bytes, and keys of actions hold contents, as for local files. Copies are blobs:
 * actions read them as they read results of steps, and gc removes those that no build used for long. If a copy is
 * needed again, it is fetched again.
 *
 * What was listed is remembered in .leat/remote, for commands that do not ask servers, and for those that cannot reach
 * them. Nothing secret is in there: credentials come from where feeds have them (docs/REMOTE.md).
 *
 * Threads: any. One lock guards the lists; files of a list stay where they are. No lock is held while a server is
 * asked. */
#ifndef LEAT_STEP_STAGING_H
#define LEAT_STEP_STAGING_H

#include "cas/cas.h"
#include "store/store.h"

/* Whether servers are asked. */
enum leat_looks {
	LEAT_LOOK_BACK, /* only about what no build has listed yet */
	LEAT_LOOK_TRY,  /* yes; if they cannot be reached, what the last build saw counts */
	LEAT_LOOK_NOW,  /* yes */
};

struct leat_remote_file {
	char *uri;
	uint64_t size;
	struct leat_version version;
	bool is_counted, is_busy; /* in the totals of what has to be fetched; a thread fetches it */
};

struct leat_remote_list {
	char *pattern;
	struct leat_remote_file *file; /* sorted by URI, each once; never empty */
	size_t count, cap;
	bool is_new, is_trusted; /* the server was asked; it is as an earlier build saw it, and counts */
	struct leat_remote_list *next;
};

struct leat_staging;

/* A name that begins with scheme://, other than file:// */
bool leat_is_remote(const char *text);

/* `storage` is copied. `memory`: the file .leat/remote; NULL: there is none. */
enum leat_status leat_staging_open(struct leat_staging **staging, struct leat_mem *mem,
                                   const struct leat_storage *storage, const char *memory, enum leat_looks looks,
                                   struct leat_err *err);
void leat_staging_close(struct leat_staging *staging); /* accepts NULL */
/* Why the last build's lists are used although servers should be asked; NULL: they are not. */
const char *leat_staging_doubt(const struct leat_staging *staging);

/* The objects that match, or with `exact` the one of that name, as they are when they are asked for first. LEAT_DATA:
 * there is none, or with LEAT_LOOK_TRY, nobody knows. */
enum leat_status leat_staging_list(struct leat_staging *staging, const char *pattern, bool exact,
                                   const struct leat_remote_list **list, struct leat_err *err);
/* One object, by a list that has it if there is one. */
enum leat_status leat_staging_find(struct leat_staging *staging, const char *uri, struct leat_remote_file **file,
                                   struct leat_err *err);
/* Saves what was listed. `all`: lists that nobody asked for are dropped. */
enum leat_status leat_staging_remember(struct leat_staging *staging, bool all, struct leat_err *err);

/* ---- staging_fetch.c ---- */

/* Until leat_staging_unwatch: `stop` ends what waits for a server within 0.1 s, and `hashing` (NULL: nobody) is told
 * how far fetching is. */
enum leat_status leat_staging_watch(struct leat_staging *staging, const atomic_bool *stop, struct leat_hashing *hashing,
                                    struct leat_err *err);
void leat_staging_unwatch(struct leat_staging *staging);
/* Adds a file that has to be fetched to the totals. */
void leat_staging_count(struct leat_staging *staging, struct leat_cas *cas, struct leat_remote_file *file);
/* Its content. If this version was never fetched, it is fetched now, or without `fetch`, its digest is a stand-in that
 * differs from that of any content. LEAT_END: it was stopped. */
enum leat_status leat_staging_hash(struct leat_staging *staging, struct leat_cas *cas, struct leat_remote_file *file,
                                   bool fetch, struct leat_content *content, struct leat_err *err);
/* Makes sure that the store has a file whose content is known. */
enum leat_status leat_staging_bring(struct leat_staging *staging, struct leat_cas *cas, struct leat_remote_file *file,
                                    const struct leat_content *content, struct leat_err *err);
/* Stand-ins begin with eight bytes of zero. */
bool leat_digest_is_stand_in(const struct leat_digest *digest);
void leat_digest_make_stand_in(struct leat_digest *digest);

#endif
