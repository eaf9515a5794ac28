/* store.h - storage backends: the interface that every store implements
 *
 * A *store* holds *objects*, named by URI: local files, or an S3 bucket. Adding a store
 * takes one file: src/store/NAME.c defines `const struct leat_store_kind leat_store_NAME`,
 * and the build collects the table (see docs/ADDING-A-STORE.md).
 *
 * An object has a size and a *version*, which changes whenever its bytes do. Every read
 * names the version it expects. If the object was replaced, truncated or removed since it
 * was listed, the read fails with LEAT_DATA; it never returns bytes of another version. Any other
 * failure is LEAT_IO. on_error handles only the former: a store tries again what may pass, and
 * reports the rest.
 *
 * There are two ways to read. `read_now` copies what is available without blocking, on the
 * caller's thread. `submit` starts an asynchronous read; the store calls read->done when it
 * completes. Any number of reads may be in flight.
 *
 * Threads: `open` and `close` are called by one thread, everything else by any thread,
 * concurrently. */
#ifndef LEAT_STORE_STORE_H
#define LEAT_STORE_STORE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/settings.h"

enum { LEAT_URI = 4096, LEAT_VERSION_BYTES = 39, LEAT_READ_PARTS = 3, LEAT_GATHER_PIECES = 256 };

struct leat_store;
struct leat_writer;
struct leat_lock;

/* Identifies one state of an object's bytes. Opaque to all but the store. */
struct leat_version {
	uint8_t len; /* 0: unknown, not compared */
	uint8_t bytes[LEAT_VERSION_BYTES];
};

/* An object, as it was when listed. */
struct leat_object {
	struct leat_store *store;
	const char *folder; /* what `uri` is relative to, for entries of a table (format/file_table.h); else NULL */
	const char *uri;    /* as shown to users; NUL-terminated if `folder` is NULL */
	size_t uri_len;
	const char *name; /* relative to the common folder of a source's files; part of the fingerprint */
	uint64_t size;
	int64_t mtime_ns;
	struct leat_version version;
	uint64_t token;         /* for table entries, which have no version: compared instead; 0: not compared */
	uint32_t owner;         /* user who owns it; 0, root, in stores without users */
	bool others_write;      /* users other than the owner can write it */
	bool is_link;           /* set by `look`: the name is a link; `absolute` tells where it leads */
	const char *remedy;     /* advice for the error if it has changed; NULL: "open the feed again" */
	struct leat_open *open; /* what the store caches between reads; NULL: every read opens the object */
};

/* An asynchronous read. The caller fills it and must not touch it until `done` is called. */
struct leat_read {
	struct leat_object object;
	uint64_t offset;
	struct iovec iov[LEAT_READ_PARTS];
	int iovs;
	/* Called once, on one of the store's threads, with no store lock held. Never from `submit` or `cancel`. */
	void (*done)(struct leat_read *read);
	void *arg;
	/* Only for stores that can map: called instead of reading, on a thread that may block. NULL: read. */
	enum leat_status (*work)(struct leat_read *read);
	struct leat_err *err; /* why the read failed; may be NULL */
	uint64_t epoch;       /* of the reader, counted from 1; 0: not known. Tells a cache what is still used */

	/* Zero before `submit`, filled in by the store: */
	enum leat_status status; /* LEAT_OK, LEAT_AGAIN (cancelled), LEAT_DATA, LEAT_IO */
	uint64_t took_ns;        /* time spent waiting for the device or server */
	unsigned thread;         /* the store's thread that calls `done` */
	struct leat_read *next;
	atomic_bool cancelled;
};

/* A part of an object, for `gather`. */
struct leat_piece {
	const struct leat_object *object;
	uint64_t offset;
	size_t length; /* not 0 */
};

/* A folder entry. */
struct leat_entry {
	const char *name; /* without its folder */
	bool is_folder;
	bool is_missing; /* a dangling link, or not a regular file */
	bool is_link;    /* `absolute` tells where it leads */
	uint64_t size;   /* of a file */
	uint64_t token;  /* of a file: leat_object_token */
};

/* Identifies a folder independent of its name, and when an entry was last added or removed. */
struct leat_folder_id {
	uint64_t id[2];
	int64_t mtime_ns;  /* 0: unknown; the folder's listing is not cached for the next open */
	uint32_t owner;    /* as of an object */
	bool others_write; /* as of an object */
};

/* Counts of a disk cache (disk_cache.h). */
struct leat_disk_stats {
	uint64_t hits, misses;       /* reads; one that is there in part is a miss */
	uint64_t hit_bytes, fetched; /* bytes from the disk, and from the server */
	uint64_t evictions;          /* segments */
	uint64_t waits;              /* reads that waited for another process to fetch them */
};

typedef enum leat_status leat_object_visit(void *arg, const struct leat_object *object, struct leat_err *err);
typedef enum leat_status leat_entry_visit(void *arg, const struct leat_entry *entry, struct leat_err *err);

enum leat_commit_flag {
	LEAT_COMMIT_SYNC = 1,      /* survive a system crash */
	LEAT_COMMIT_IF_ABSENT = 2, /* if the object exists, change nothing and return LEAT_AGAIN */
	LEAT_COMMIT_OWN = 4,       /* only its owner can write it, whatever the umask; stores without users ignore it */
};

enum leat_begin_flag {
	LEAT_BEGIN_THROUGH = 1, /* a pipe, terminal or other thing with that name is written to, not replaced */
	LEAT_BEGIN_UNNAMED = 2, /* the name is not the final one, which `commit` gives */
};

/* Functions are required unless marked optional. `uri` is a result of `resolve`. */
struct leat_store_kind {
	const char *scheme; /* "file", "s3": the part before the colon */
	const char *doc;
	bool hides;         /* a look at what does not exist may fail as if it were forbidden */
	bool remote;        /* every look is a request to a server: nothing is kept beside data without being asked */
	unsigned threads;   /* maximum number of threads that call `done` */
	unsigned in_flight; /* preferred number of reads in flight, memory permitting; 0: a few per thread */
	/* Bytes that take as long as another request: gaps up to this are read over. 0: requests cost next to nothing.
	 */
	unsigned request_cost;

	/* `storage` is what the user has set (settings.h); the store copies what it keeps. */
	enum leat_status (*open)(const struct leat_store_kind *kind, const struct leat_storage *storage,
	                         struct leat_mem *mem, struct leat_store **store, struct leat_err *err);
	void (*close)(struct leat_store *store); /* after all reads are done and all writers ended */

	/* Turns a user's text into the store's name for it; freed by the caller. Idempotent, also for names made by
	 * appending "/..." to a result. A store without `absolute` removes trailing slashes. */
	enum leat_status (*resolve)(struct leat_store *store, const char *text, char **uri, struct leat_err *err);
	/* Optional: an object's name independent of the working directory; if not set, `uri` is already absolute. The
	 * result is freed by the caller; NULL: no such object, or out of memory. */
	char *(*absolute)(struct leat_store *store, const char *uri);

	/* ---- listing ---- */

	/* Visits every object that matches the pattern, in any order. *, ? and [..] do not match a slash; an existing
	 * name is never a pattern. LEAT_AGAIN (no error text): a pattern matches nothing; a name that is no pattern and
	 * does not exist is LEAT_IO. An unreadable object is an error. A matching folder is LEAT_INVALID; stores
	 * without real folders ignore it. */
	enum leat_status (*list)(struct leat_store *store, const char *pattern, leat_object_visit *visit, void *arg,
	                         struct leat_err *err);
	/* Visits every entry of a folder, in any order, and fills `id`. If `visit` is NULL, only fills `id`. LEAT_IO:
	 * no such folder. */
	enum leat_status (*list_folder)(struct leat_store *store, const char *folder, leat_entry_visit *visit,
	                                void *arg, struct leat_folder_id *id, struct leat_err *err);
	/* Finds one object by name. LEAT_DATA: there is none. LEAT_INVALID: it is not an object. Anything else: the
	 * store could not tell. */
	enum leat_status (*look)(struct leat_store *store, const char *uri, struct leat_object *object,
	                         struct leat_err *err);

	/* ---- reading ---- */

	/* Optional: prepares an object for many reads by setting object->open. `forget` undoes it. */
	enum leat_status (*keep)(struct leat_object *object, struct leat_err *err);
	void (*forget)(struct leat_object *object);
	/* Optional; NULL: every read may block. Fills the iovs in order with what is available without blocking.
	 * LEAT_OK: all of it; LEAT_AGAIN (no error text): the first *got bytes. Does not change the iovs. */
	enum leat_status (*read_now)(const struct leat_object *object, uint64_t offset, const struct iovec *iov,
	                             int iovs, size_t *got, struct leat_err *err);
	/* Optional: a blocking read on the caller's thread; NULL: `submit` is used. */
	enum leat_status (*read)(const struct leat_object *object, uint64_t offset, const struct iovec *iov, int iovs,
	                         size_t *got, struct leat_err *err);
	/* Optional: reads a whole object of at most `most` bytes with one request, for leat_object_load; only for
	 * stores without users. LEAT_DATA: there is none; LEAT_LIMIT: it is larger. */
	enum leat_status (*load)(struct leat_store *store, const char *uri, size_t most, struct leat_mem *mem,
	                         void **bytes, size_t *len, struct leat_err *err);
	/* Starts a read. On failure it was not started, and `done` is not called. */
	enum leat_status (*submit)(struct leat_store *store, struct leat_read *read);
	/* Cancels a read: `done` is called as soon as nothing writes to its buffers any more, at the latest when the
	 * device operation in progress ends. May be called before `submit` has returned or after `done` was called;
	 * the caller keeps the read alive until `submit`, `done` and `cancel` have all returned. */
	void (*cancel)(struct leat_store *store, struct leat_read *read);
	/* Optional: store->stores->interrupted has just been set. `look`, `list` and `list_folder`, which wait for a
	 * server, end at once with LEAT_CANCELLED, and so do later ones while it is set. */
	void (*interrupt)(struct leat_store *store);

	/* Optional: counts of its disk cache, all zero if it has none. */
	void (*disk_stats)(struct leat_store *store, struct leat_disk_stats *stats);

	/* Optional: maps a whole object, for which `keep` was called, read-only. Page faults may block; call `bring`
	 * first to avoid them. */
	enum leat_status (*map)(struct leat_object *object, const unsigned char **bytes, struct leat_err *err);
	/* Required with `map`: makes sure that pieces of `length` bytes (not 0) of a mapped object are in memory.
	 * LEAT_AGAIN (no error text): some are not, but were asked for; call again with `wait`, which blocks until they
	 * are. */
	enum leat_status (*bring)(const struct leat_object *object, const uint64_t *offset, size_t count, size_t length,
	                          bool wait, struct leat_err *err);
	/* Required with `map`: fails if a mapped object has changed since; all later reads of it then fail too. Called
	 * before each batch. */
	enum leat_status (*check)(const struct leat_object *object, struct leat_err *err);

	/* Optional: copies up to LEAT_GATHER_PIECES pieces of objects, for which `keep` was called, to `to`, one after
	 * the other. Small pieces in the page cache cost a third of a read each. It blocks for others; *waited_ns is
	 * then how long the call took, else 0. LEAT_OK: all are there, of the expected versions. LEAT_UNSUPPORTED:
	 * never try again. Otherwise something is missing: read each piece, for its own error. */
	enum leat_status (*gather)(const struct leat_piece *piece, size_t count, unsigned char *to,
	                           uint64_t *waited_ns);

	/* ---- writing: read-only stores implement none of these, others all ---- */

	/* Starts a new object, invisible until `commit`. */
	enum leat_status (*begin)(struct leat_store *store, const char *uri, int flags, struct leat_writer **writer,
	                          struct leat_err *err);
	enum leat_status (*append)(struct leat_writer *writer, const void *bytes, size_t len, struct leat_err *err);
	/* Overwrites appended bytes within the first 64 KiB, such as a header with counts. */
	enum leat_status (*patch)(struct leat_writer *writer, uint64_t offset, const void *bytes, size_t len,
	                          struct leat_err *err);
	/* Ends appending: stores all bytes, still invisible, and frees buffers and descriptors. */
	enum leat_status (*finish)(struct leat_writer *writer, int flags, struct leat_err *err);
	/* Makes the object visible and ends the writer. `uri`: its name, which for LEAT_BEGIN_UNNAMED may be another
	 * one in the same folder; NULL: keep the name. */
	enum leat_status (*commit)(struct leat_writer *writer, const char *uri, int flags, struct leat_err *err);
	void (*abort)(struct leat_writer *writer); /* discards the object and ends the writer */

	/* LEAT_IO: there is no such object, if the store can tell. */
	enum leat_status (*remove)(struct leat_store *store, const char *uri, struct leat_err *err);
	/* Optional, all three or none: keep two processes from writing the same objects. `lock` takes a lock named
	 * `uri`, which need not be an object; it ends when its process does. LEAT_AGAIN (no error text): another has
	 * it. LEAT_UNSUPPORTED (no error text): there are no locks here. */
	enum leat_status (*lock)(struct leat_store *store, const char *uri, struct leat_lock **lock,
	                         struct leat_err *err);
	void (*unlock)(struct leat_lock *lock);
	/* Removes what killed writers left of objects that match the pattern. The caller holds a lock that all writers
	 * of these objects take, so nobody is writing them. */
	void (*sweep)(struct leat_store *store, const char *pattern);
	/* Optional: creates a folder and its parents, unless they exist. NULL: objects need no existing folder. */
	enum leat_status (*make_folder)(struct leat_store *store, const char *folder, struct leat_err *err);
};

/* First member of every store. */
struct leat_store {
	const struct leat_store_kind *kind;
	struct leat_mem *mem;
	unsigned in_flight; /* set by `open` if the user wants another number than the kind's; else 0 */
	/* Set by leat_stores_find: */
	struct leat_stores *stores;
	unsigned first_thread; /* index of its first thread among the threads of all stores */
};

/* First member of every writer. After a failure, all further calls fail except `abort`. */
struct leat_writer {
	struct leat_store *store;
	/* Kept by leat_write and leat_write_patch, zero at first: */
	uint64_t size; /* bytes appended so far */
	uint32_t crc;  /* CRC-32C of them */
};

extern const struct leat_store_kind *const leat_store_kinds[]; /* generated by the build; NULL-terminated */

/* ---- the stores of a feed or a command (stores.c) ---- */

/* Each kind of store is opened on first use of its scheme. */
struct leat_stores {
	struct leat_mem *mem;
	const struct leat_storage *storage; /* the user's settings, set after init; NULL: none. Outlives the stores */
	const struct leat_log *log;         /* set after init; NULL: none. Outlives the stores */
	pthread_mutex_t lock;
	struct leat_store *store[16]; /* same order as leat_store_kinds */
	unsigned threads, in_flight;  /* sum and maximum over all open stores */
	struct leat_waiter *waiting;  /* blocking reads in progress */
	atomic_bool interrupted;
	atomic_int ahead;              /* blocks read ahead (ahead.h) */
	atomic_uint_least64_t list_ns; /* time spent on finding out which files there are */
};

void leat_stores_init(struct leat_stores *stores, struct leat_mem *mem);
void leat_stores_close(struct leat_stores *stores); /* accepts a zeroed one */
/* Ends everything that waits for a server with LEAT_CANCELLED: blocking reads (leat_object_read by way of `submit`),
 * looking and listing. Refuses new ones while `interrupted` is set. Shutting down waits for no server. */
void leat_stores_interrupt(struct leat_stores *stores, bool interrupted);
/* Sums over all stores. */
void leat_stores_disk_stats(struct leat_stores *stores, struct leat_disk_stats *sum);
/* Finds the store for a user's text and resolves the text to `uri`, freed by the caller. `uri` may be NULL. */
enum leat_status leat_stores_find(struct leat_stores *stores, const char *text, struct leat_store **store, char **uri,
                                  struct leat_err *err);

/* ---- objects ---- */

static inline bool
leat_version_equal(const struct leat_version *a, const struct leat_version *b)
{
	return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* Size and version in 8 bytes, for indexes of many objects; never 0. In stores without versions, size and mtime. */
uint64_t leat_object_token(const struct leat_object *object);
/* Can only we, root and `owner` have written it? */
bool leat_object_is_trusted(const struct leat_object *object, uint32_t owner);
/* The owner of an object or a folder. False: there is no such thing. */
bool leat_owner_of(struct leat_store *store, const char *uri, uint32_t *owner);

/* Whether a name begins with scheme://, so that it is not relative to a folder. */
bool leat_is_uri(const char *text, size_t len);
/* The full URI, assembled in `buf` if needed. NULL: too long, or contains a NUL. */
const char *leat_object_uri(const struct leat_object *object, char buf[LEAT_URI]);

enum leat_what { LEAT_IS_NOTHING, LEAT_IS_OBJECT, LEAT_IS_FOLDER };

/* What a name refers to. Other things that exist, such as pipes, count as folders: listing them gives a clear error. */
enum leat_what leat_what_is(struct leat_store *store, const char *uri);

/* The folder of an object, freed by the caller; "." if its name has none. NULL: out of memory. */
char *leat_folder_of(const char *uri, struct leat_mem *mem);

enum leat_read_flag {
	LEAT_READ_NOWAIT = 1, /* don't block */
};

/* Reads on the caller's thread; *got is the bytes read. LEAT_OK: all of it; LEAT_AGAIN (only with NOWAIT, no error
 * text): what was available without blocking; LEAT_DATA: the object has changed or is gone; LEAT_IO: it could not be
 * read, though nothing says that its bytes are bad; LEAT_CANCELLED. */
enum leat_status leat_object_read(const struct leat_object *object, uint64_t offset, const struct iovec *iov, int iovs,
                                  int flags, size_t *got, struct leat_err *err);

/* A blocking read in two parts, so that several can be in flight. leat_stores_interrupt ends them, too. */
struct leat_waiter {
	struct leat_read read;
	struct leat_waiter *next, **previous; /* in stores->waiting, under stores->lock */
	pthread_mutex_t lock;
	pthread_cond_t over;
	bool done;
};

/* On failure nothing was started. Neither the waiter nor `err` may move until leat_wait_end, which must be called. */
enum leat_status leat_wait_start(struct leat_waiter *waiter, const struct leat_object *object, uint64_t offset,
                                 void *bytes, size_t len, struct leat_err *err);
enum leat_status leat_wait_end(struct leat_waiter *waiter, struct leat_err *err);

/* Reads a whole object of at most `most` bytes into a new allocation from `mem`, 16-byte aligned and NUL-terminated.
 * LEAT_AGAIN (no error text): no such object. */
enum leat_status leat_object_load(struct leat_store *store, const char *uri, size_t most, struct leat_mem *mem,
                                  void **bytes, size_t *len, struct leat_err *err);
/* The same for any size, if `accept` is true for what is loaded. LEAT_UNSUPPORTED (no error text): it is not. */
enum leat_status leat_object_load_if(struct leat_store *store, const char *uri,
                                     bool (*accept)(void *arg, const struct leat_object *object), void *arg,
                                     struct leat_mem *mem, void **bytes, size_t *len, struct leat_err *err);

/* ---- writing ---- */

/* `uri` is a result of `resolve`, `text` is what the user wrote. LEAT_UNSUPPORTED: the store is read-only. */
enum leat_status leat_store_begin(struct leat_store *store, const char *uri, struct leat_writer **writer,
                                  struct leat_err *err);
/* The same for an object that gets its name, in the same folder, when it is committed. */
enum leat_status leat_store_begin_unnamed(struct leat_store *store, const char *uri, struct leat_writer **writer,
                                          struct leat_err *err);
enum leat_status leat_store_remove(struct leat_store *store, const char *uri, struct leat_err *err);
enum leat_status leat_write_begin(struct leat_writer **writer, struct leat_stores *stores, const char *text,
                                  struct leat_err *err);
enum leat_status leat_write(struct leat_writer *writer, const void *bytes, size_t len, struct leat_err *err);
/* `was`: the bytes that are replaced, from which the checksum is corrected. */
enum leat_status leat_write_patch(struct leat_writer *writer, uint64_t offset, const void *was, const void *bytes,
                                  size_t len, struct leat_err *err);
enum leat_status leat_write_finish(struct leat_writer *writer, int flags, struct leat_err *err);
/* Calls finish if it was not called yet. Ends the writer, even on failure. */
enum leat_status leat_write_commit(struct leat_writer *writer, const char *uri, int flags, struct leat_err *err);
void leat_write_abort(struct leat_writer *writer); /* accepts NULL */
/* Writes a whole object at once. `storage` is that of leat_stores. */
enum leat_status leat_write_whole(const char *text, const void *bytes, size_t len, int flags,
                                  const struct leat_storage *storage, struct leat_mem *mem, struct leat_err *err);

/* ---- the files of a source (files.c) ---- */

/* The objects that match a source's patterns, prepared for reading (`keep`). */
struct leat_files;

/* Patterns stay in the order given; the matches of each are sorted bytewise. A pattern that matches nothing, a folder
 * or an unreadable object is an error. */
enum leat_status leat_files_open(struct leat_files **files, struct leat_stores *stores, const char *const *patterns,
                                 size_t count, struct leat_mem *mem, struct leat_err *err);
/* Replaces each pattern that is a folder by the first of `inside` (the last is NULL) that matches objects in it, as in
 * FOLDER + "/" + "*.parquet"; so what else is there, such as _SUCCESS, is left out. The others are copied. The caller
 * frees the list and its texts, on failure too. */
enum leat_status leat_files_expand(struct leat_stores *stores, const char *const *patterns, size_t count,
                                   const char *const *inside, char ***expanded, struct leat_mem *mem,
                                   struct leat_err *err);
void leat_files_expand_free(char **expanded, size_t count, struct leat_mem *mem); /* accepts NULL */
/* The same for objects that an index lists, in this order; copies their URIs. */
enum leat_status leat_files_open_listed(struct leat_files **files, const struct leat_object *object, size_t count,
                                        struct leat_mem *mem, struct leat_err *err);
void leat_files_close(struct leat_files *files); /* accepts NULL */
size_t leat_files_count(const struct leat_files *files);
/* Number of the first file that matches pattern `pattern` of leat_files_open. Of the number of patterns: all files. */
size_t leat_files_begin(const struct leat_files *files, size_t pattern);
const struct leat_object *leat_files_at(const struct leat_files *files, size_t i);
struct leat_object *leat_files_edit(struct leat_files *files, size_t i); /* for `map` */
enum leat_status leat_files_read(struct leat_files *files, size_t i, uint64_t offset, const struct iovec *iov, int iovs,
                                 int flags, size_t *got, struct leat_err *err);

#endif
