/* store.h - where bytes live: the contract that every store fulfils
 *
 * A *store* holds *objects*, named by URI: local files, an S3 bucket. One file adds one
 * store: src/store/NAME.c defines `const struct leat_store_kind leat_store_NAME`, and the
 * build collects the table (docs/ADDING-A-STORE.md walks through one).
 *
 * An object has a size and a *version* that changes whenever its bytes do. Whoever reads
 * says which version it means: data that was replaced, truncated or removed after it was
 * listed is an error that names it, never other bytes.
 *
 * Two ways to read. `read_now` copies what can be had without waiting, on the caller's
 * thread. `submit` starts a read and returns; the store calls read->done when it is over.
 * Any number of reads may be under way.
 *
 * Threads: `open` and `close` by one. Everything else by any, at the same time. */
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

enum { LEAT_URI = 4096, LEAT_VERSION_BYTES = 47, LEAT_READ_PARTS = 3 };

struct leat_store;
struct leat_writer;

/* What tells one state of an object's bytes from another: for the store to fill and compare. */
struct leat_version {
	uint8_t len; /* 0: not known, and not compared */
	uint8_t bytes[LEAT_VERSION_BYTES];
};

/* One object, as it was when it was listed. */
struct leat_object {
	struct leat_store *store;
	const char *folder; /* of a table's entry (format/file_table.h): what `uri` is relative to; else NULL */
	const char *uri;    /* as people know it. Without a folder it ends with NUL */
	size_t uri_len;
	const char *name; /* relative to the folder common to all files of a source: what a fingerprint sees */
	uint64_t size;
	int64_t mtime_ns;
	struct leat_version version;
	int64_t unchanged_since_ns; /* an entry of a table has no version: it must not have changed after this; 0: any
	                             */
	const char *remedy;         /* what to do when it has changed, for the error; NULL: open the feed again */
	struct leat_open *open;     /* what the store keeps of it between reads; NULL: every read opens it anew */
};

/* A read under way: filled by the caller, who leaves it alone until `done` was called. */
struct leat_read {
	struct leat_object object;
	uint64_t offset;
	struct iovec iov[LEAT_READ_PARTS];
	int iovs;
	/* Called once, by a thread of the store that holds no lock of it. Never from within `submit` or `cancel`. */
	void (*done)(struct leat_read *read);
	void *arg;
	/* NULL, but for stores that map: called on a thread that may wait, in place of a read. */
	enum leat_status (*work)(struct leat_read *read);
	struct leat_err *err; /* where the store says why it failed; NULL: only the status counts */

	/* Zero before `submit`, filled by the store: */
	enum leat_status status; /* LEAT_OK, LEAT_AGAIN (cancelled), LEAT_DATA, LEAT_IO */
	uint64_t took_ns;        /* how long a device was busy with it, or a server */
	unsigned thread;         /* which of the store's threads calls `done` */
	struct leat_read *next;
	atomic_bool cancelled;
};

/* An entry of a folder. */
struct leat_entry {
	const char *name; /* without its folder */
	bool is_folder;
	bool is_missing; /* a link to nothing, or something that is no file */
	uint64_t size;   /* of a file */
	int64_t mtime_ns;
};

/* Which folder it is, whatever it is called, and when something was added to it or removed. */
struct leat_folder_id {
	uint64_t id[2];
	int64_t mtime_ns; /* 0: the store can't tell, and what was found in the folder isn't kept for the next open */
};

typedef enum leat_status leat_object_visit(void *arg, const struct leat_object *object, struct leat_err *err);
typedef enum leat_status leat_entry_visit(void *arg, const struct leat_entry *entry, struct leat_err *err);

enum leat_commit_flag {
	LEAT_COMMIT_SYNC = 1,      /* it survives a crash of the machine */
	LEAT_COMMIT_IF_ABSENT = 2, /* LEAT_AGAIN, and nothing is changed, if there is one already */
};

/* Functions are required unless they say otherwise. `uri` is what `resolve` made of the user's text. */
struct leat_store_kind {
	const char *scheme; /* "file", "s3": what stands before the colon */
	const char *doc;
	unsigned threads;   /* that call `done`, at the most */
	unsigned in_flight; /* reads it likes to have under way, memory permitting; 0: a few for each thread */

	enum leat_status (*open)(const struct leat_store_kind *kind, struct leat_mem *mem, struct leat_store **store,
	                         struct leat_err *err);
	void (*close)(struct leat_store *store); /* every read is done, every writer ended */

	/* The name the store knows something by, from a user's text; freed by the caller. A name, or one below it put
	 * together with slashes, is resolved to itself. A store without `absolute` removes slashes at the end. */
	enum leat_status (*resolve)(struct leat_store *store, const char *text, char **uri, struct leat_err *err);
	/* Optional: the name of an object that is the same from wherever it is asked for; NULL: `uri` is. Freed by the
	 * caller; NULL: there is no such object, or no memory. */
	char *(*absolute)(struct leat_store *store, const char *uri);

	/* ---- what there is ---- */

	/* Visits every object that the pattern names (*, ? and [..] within one part of the path; a name that exists is
	 * taken literally), in any order. None is LEAT_IO, what cannot be read is an error. A folder that matches is
	 * LEAT_INVALID where folders exist, and nothing where they are only parts of names. */
	enum leat_status (*list)(struct leat_store *store, const char *pattern, leat_object_visit *visit, void *arg,
	                         struct leat_err *err);
	/* Visits every entry of a folder, in any order; `visit` NULL: only fills `id`. LEAT_IO: there is no such
	 * folder. */
	enum leat_status (*list_folder)(struct leat_store *store, const char *folder, leat_entry_visit *visit,
	                                void *arg, struct leat_folder_id *id, struct leat_err *err);
	/* One object by name. LEAT_IO: it is not there, LEAT_INVALID: it is no object. */
	enum leat_status (*look)(struct leat_store *store, const char *uri, struct leat_object *object,
	                         struct leat_err *err);

	/* ---- reading ---- */

	/* Optional: this object will be read often. Sets object->open, until `forget`. */
	enum leat_status (*keep)(struct leat_object *object, struct leat_err *err);
	void (*forget)(struct leat_object *object);
	/* Optional; NULL: every read has to wait. Reads into the iovs, in order, what is there without waiting: LEAT_OK
	 * with all of it; LEAT_AGAIN (no error text) with *got bytes; or an error. The iovs are not changed. */
	enum leat_status (*read_now)(const struct leat_object *object, uint64_t offset, const struct iovec *iov,
	                             int iovs, size_t *got, struct leat_err *err);
	/* Optional, for stores that can wait on the caller's thread; NULL: `submit` is used. */
	enum leat_status (*read)(const struct leat_object *object, uint64_t offset, const struct iovec *iov, int iovs,
	                         size_t *got, struct leat_err *err);
	/* Starts a read. Anything but LEAT_OK: it was not started, and `done` is not called. */
	enum leat_status (*submit)(struct leat_store *store, struct leat_read *read);
	/* Its caller does not want it any more: `done` is called as soon as nothing writes to its memory, which may not
	 * take longer than what a device, or the kernel, is doing for it at the moment. May come while `submit` has
	 * not returned yet, or `done` was called: the caller keeps the read until both and `cancel` have returned. */
	void (*cancel)(struct leat_store *store, struct leat_read *read);

	/* Optional: the whole object, which is kept, as memory that must not be written. Touching it may wait for a
	 * device: `bring` does that before. */
	enum leat_status (*map)(struct leat_object *object, const unsigned char **bytes, struct leat_err *err);
	/* With `map`: that bytes of a mapped object are in memory. LEAT_AGAIN (no error text): they are not, and with
	 * `wait` they would be brought. */
	enum leat_status (*bring)(const struct leat_object *object, uint64_t offset, size_t length, bool wait,
	                          struct leat_err *err);
	/* Fails when a mapped object is not the one that was mapped any more, and so do all later reads of it. Called
	 * before each batch. */
	enum leat_status (*check)(const struct leat_object *object, struct leat_err *err);

	/* ---- writing: all of it, or none in a store that is only read ---- */

	/* A new object, which nobody sees before `commit`. */
	enum leat_status (*begin)(struct leat_store *store, const char *uri, struct leat_writer **writer,
	                          struct leat_err *err);
	enum leat_status (*append)(struct leat_writer *writer, const void *bytes, size_t len, struct leat_err *err);
	/* Replaces bytes that were appended, within the first 64 KiB: a head that counts what followed. */
	enum leat_status (*patch)(struct leat_writer *writer, uint64_t offset, const void *bytes, size_t len,
	                          struct leat_err *err);
	/* Everything was appended: it is stored whole, still unseen, and holds neither buffers nor descriptors. */
	enum leat_status (*finish)(struct leat_writer *writer, int flags, struct leat_err *err);
	/* Makes it visible, under another name if `uri` is not NULL (in the same folder), and ends the writer. */
	enum leat_status (*commit)(struct leat_writer *writer, const char *uri, int flags, struct leat_err *err);
	void (*abort)(struct leat_writer *writer); /* ends it, and leaves nothing behind */

	enum leat_status (*remove)(struct leat_store *store, const char *uri, struct leat_err *err);
	/* Optional; NULL: an object's folder need not be there before the object. Makes a folder and those above it.
	 * One that is there already is fine. */
	enum leat_status (*make_folder)(struct leat_store *store, const char *folder, struct leat_err *err);
};

/* What every store begins with. */
struct leat_store {
	const struct leat_store_kind *kind;
	struct leat_mem *mem;
	/* Set by leat_stores_find: */
	struct leat_stores *stores;
	unsigned first_thread; /* its threads are numbered from here on among those of all stores */
};

/* What every writer begins with. After a failure every further call but `abort` fails as well. */
struct leat_writer {
	struct leat_store *store;
	uint64_t size; /* bytes appended so far */
};

extern const struct leat_store_kind *const leat_store_kinds[]; /* what the build found, NULL at the end */

/* ---- the stores of a feed or a command (stores.c) ---- */

/* Each kind is opened when the first URI of its scheme comes up. */
struct leat_stores {
	struct leat_mem *mem;
	pthread_mutex_t lock;
	struct leat_store *store[16]; /* by kind, as in the table */
	unsigned threads, in_flight;  /* the sum, and the most, of all that are open */
	struct leat_waiter *waiting;  /* reads that somebody waits for */
	bool interrupted;
};

void leat_stores_init(struct leat_stores *stores, struct leat_mem *mem);
void leat_stores_close(struct leat_stores *stores); /* takes a zeroed one */
/* While interrupted, reads through `submit` that somebody waits for in leat_object_read are cancelled and fail with
 * LEAT_CANCELLED, and so do new ones: whoever stops need not wait for a server. */
void leat_stores_interrupt(struct leat_stores *stores, bool interrupted);
/* The store of what a user wrote, and what it calls it (freed by the caller; NULL: not wanted). */
enum leat_status leat_stores_find(struct leat_stores *stores, const char *text, struct leat_store **store, char **uri,
                                  struct leat_err *err);

/* ---- objects ---- */

static inline bool
leat_version_equal(const struct leat_version *a, const struct leat_version *b)
{
	return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* The whole name; `buf` is used where it has to be put together. NULL: it is too long, or holds a NUL. */
const char *leat_object_uri(const struct leat_object *object, char buf[LEAT_URI]);

enum leat_what { LEAT_IS_NOTHING, LEAT_IS_OBJECT, LEAT_IS_FOLDER };

/* What a name stands for. What is there and is no object, like a pipe, counts as a folder: listing it says what it is.
 */
enum leat_what leat_what_is(struct leat_store *store, const char *uri);

/* The folder that an object is in, to be freed; "." if its name has none. NULL: no memory. */
char *leat_folder_of(const char *uri, struct leat_mem *mem);

enum leat_read_flag {
	LEAT_READ_NOWAIT = 1, /* only what is there without waiting */
};

/* Reads on the caller's thread. *got counts what was read: LEAT_OK with all of it; LEAT_AGAIN (only with NOWAIT, no
 * error text) with what could be had at once; LEAT_DATA when the object has changed; LEAT_IO; LEAT_CANCELLED. */
enum leat_status leat_object_read(const struct leat_object *object, uint64_t offset, const struct iovec *iov, int iovs,
                                  int flags, size_t *got, struct leat_err *err);

/* All bytes of an object of at most `most` bytes, in memory of `mem`, 16-byte aligned, a NUL behind them. LEAT_AGAIN
 * (no error text): there is no such object. */
enum leat_status leat_object_load(struct leat_store *store, const char *uri, size_t most, struct leat_mem *mem,
                                  void **bytes, size_t *len, struct leat_err *err);

/* ---- writing, by a user's text ---- */

/* By what `resolve` made of it; LEAT_UNSUPPORTED: the store is only read. */
enum leat_status leat_store_begin(struct leat_store *store, const char *uri, struct leat_writer **writer,
                                  struct leat_err *err);
enum leat_status leat_store_remove(struct leat_store *store, const char *uri, struct leat_err *err);
enum leat_status leat_write_begin(struct leat_writer **writer, struct leat_stores *stores, const char *text,
                                  struct leat_err *err);
enum leat_status leat_write(struct leat_writer *writer, const void *bytes, size_t len, struct leat_err *err);
enum leat_status leat_write_patch(struct leat_writer *writer, uint64_t offset, const void *bytes, size_t len,
                                  struct leat_err *err);
enum leat_status leat_write_finish(struct leat_writer *writer, int flags, struct leat_err *err);
/* Finishes if need be. Ends the writer, whether it succeeds or not. */
enum leat_status leat_write_commit(struct leat_writer *writer, const char *uri, int flags, struct leat_err *err);
void leat_write_abort(struct leat_writer *writer); /* takes NULL */
/* A whole object at once. */
enum leat_status leat_write_whole(const char *text, const void *bytes, size_t len, int flags, struct leat_mem *mem,
                                  struct leat_err *err);

/* ---- the files of a source (files.c) ---- */

/* The objects that a source's patterns name, kept for reading. */
struct leat_files;

/* Each pattern's objects sorted by the bytes of their names, patterns in the order given. A pattern that names nothing,
 * a folder or what cannot be read is an error. */
enum leat_status leat_files_open(struct leat_files **files, struct leat_stores *stores, const char *const *patterns,
                                 size_t count, struct leat_mem *mem, struct leat_err *err);
void leat_files_close(struct leat_files *files); /* takes NULL */
size_t leat_files_count(const struct leat_files *files);
const struct leat_object *leat_files_at(const struct leat_files *files, size_t i);
struct leat_object *leat_files_edit(struct leat_files *files, size_t i); /* for `map` */
enum leat_status leat_files_read(struct leat_files *files, size_t i, uint64_t offset, const struct iovec *iov, int iovs,
                                 int flags, size_t *got, struct leat_err *err);

#endif
