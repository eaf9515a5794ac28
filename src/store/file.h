/* file.h - internals of the store for local files
 *
 * file.c resolves names and lists, file_match.c matches patterns, file_read.c reads and caches
 * descriptors, file_retry.c waits for failures that pass, file_io.c runs the threads that block
 * on devices, file_map.c maps, file_gather.c copies many pieces at once, file_write.c writes, file_lock.c knows who is
 * writing. */
#ifndef LEAT_STORE_FILE_H
#define LEAT_STORE_FILE_H

#include <dirent.h>
#include <pthread.h>
#include <sys/stat.h>

#include "base/threads.h"
#include "store/store.h"

enum { LEAT_FILE_IO_THREADS = 16 };

/* What is cached of a file between reads. */
struct leat_open {
	_Atomic uint64_t word;             /* (descriptor + 1) << 32 | readers */
	atomic_uchar used;                 /* since the clock hand last passed */
	atomic_uchar nowait;               /* how it supports non-blocking reads: enum nowait in file_read.c */
	_Atomic uint64_t checked_ns;       /* when its version was last checked */
	struct leat_file_map *map;         /* NULL: none */
	_Atomic(unsigned char *) gathered; /* mapped for file_gather.c; NULL: not yet */
};

struct leat_file_store {
	struct leat_store base;
	uint64_t recheck_ns;   /* time between version checks of an open file */
	int cwd;               /* working directory at open: later chdir calls do not affect relative paths */
	struct leat_open any;  /* `nowait` of files for which `keep` was not called */
	atomic_bool no_cached; /* the kernel does not support RESOLVE_CACHED */

	pthread_mutex_t lock;
	/* Under the lock: open files, in no order, and the hand of the clock algorithm that picks one to close. */
	struct leat_open **open;
	size_t opened, max_open, hand;

	/* file_retry.c: */
	pthread_mutex_t turn; /* held by the thread that waits for a descriptor */
	atomic_uint queued;   /* threads that have or want the turn */
	atomic_bool gave_up;  /* waiting for a descriptor was in vain; false again once a file was opened */

	struct leat_file_io {
		pthread_mutex_t lock;
		pthread_cond_t work;
		/* Under its lock: the queue of reads. */
		struct leat_read *first, **last;
		bool started, stop;
		struct leat_threads threads;
	} io;
};

static inline struct leat_file_store *
leat_file_store_of(struct leat_store *store)
{
	return (struct leat_file_store *)store;
}

/* file.c: fills size, time, version and owner from `st`. */
void leat_file_describe(const struct stat *st, struct leat_object *object);
/* Fails with LEAT_DATA if `st` is not the object's version. */
enum leat_status leat_file_compare(const struct leat_object *object, const struct stat *st, const char *path,
                                   struct leat_err *err);

/* file_retry.c: does errno say that there is no such file? */
bool leat_file_is_missing(int errnum);
/* A file cannot be opened: LEAT_DATA if it is missing. */
enum leat_status leat_file_fail_open(struct leat_err *err, int errnum, const char *path);
/* A call failed: true, after a pause if needed, if the failure may have passed. `tried` is 0 at first. */
bool leat_file_try_again(struct leat_file_store *store, int *tried, int errnum);
/* Opens a file for reading, waiting for a descriptor if need be. LEAT_AGAIN: with NOWAIT, it would have to wait. */
enum leat_status leat_file_open_path(struct leat_file_store *store, const char *path, int flags, int *fd,
                                     struct leat_err *err);

/* file.c: opendir, waiting for a descriptor if need be. NULL: see errno. */
DIR *leat_file_open_folder(struct leat_file_store *store, const char *folder);

/* file_match.c: visits the path of every file that matches. LEAT_AGAIN (no error text): none does. */
typedef enum leat_status leat_path_visit(void *arg, const char *path, struct leat_err *err);
enum leat_status leat_file_match(struct leat_store *store, const char *pattern, leat_path_visit *visit, void *arg,
                                 struct leat_err *err);

/* file_read.c */
enum leat_status leat_file_reads_open(struct leat_file_store *store, struct leat_err *err);
void leat_file_reads_close(struct leat_file_store *store);
enum leat_status leat_file_keep(struct leat_object *object, struct leat_err *err);
void leat_file_forget(struct leat_object *object);
enum leat_status leat_file_read_now(const struct leat_object *object, uint64_t offset, const struct iovec *iov,
                                    int iovs, size_t *got, struct leat_err *err);
enum leat_status leat_file_read(const struct leat_object *object, uint64_t offset, const struct iovec *iov, int iovs,
                                size_t *got, struct leat_err *err);
/* Closes a descriptor that is kept for later reads. False: none is left. */
bool leat_file_evict_one(struct leat_file_store *store);
/* Checks that the object's path still refers to the expected version. */
enum leat_status leat_file_check(const struct leat_object *object, struct leat_err *err);
/* Checks the version of the object's open file, and once per second that of its path, as reads do. */
enum leat_status leat_file_check_open(const struct leat_object *object, struct leat_err *err);
/* Opens the object's file and checks its version. The caller closes `fd`. */
enum leat_status leat_file_open(const struct leat_object *object, int *fd, struct leat_err *err);

/* file_io.c */
void leat_file_io_open(struct leat_file_store *store);
void leat_file_io_close(struct leat_file_store *store);
enum leat_status leat_file_submit(struct leat_store *store, struct leat_read *read);
void leat_file_cancel(struct leat_store *store, struct leat_read *read);

/* file_map.c */
enum leat_status leat_file_map(struct leat_object *object, const unsigned char **bytes, struct leat_err *err);
void leat_file_unmap(struct leat_store *store, struct leat_file_map *map);
enum leat_status leat_file_check_map(const struct leat_object *object, struct leat_err *err);
enum leat_status leat_file_map_bring(const struct leat_object *object, const uint64_t *offset, size_t count, size_t len,
                                     bool wait, struct leat_err *err);

/* file_gather.c */
enum leat_status leat_file_gather(const struct leat_piece *piece, size_t count, unsigned char *to, uint64_t *waited_ns);
void leat_file_gather_forget(const struct leat_object *object);

/* file_write.c */
enum leat_status leat_file_begin(struct leat_store *store, const char *path, int flags, struct leat_writer **writer,
                                 struct leat_err *err);
enum leat_status leat_file_append(struct leat_writer *writer, const void *bytes, size_t len, struct leat_err *err);
enum leat_status leat_file_patch(struct leat_writer *writer, uint64_t offset, const void *bytes, size_t len,
                                 struct leat_err *err);
enum leat_status leat_file_finish(struct leat_writer *writer, int flags, struct leat_err *err);
enum leat_status leat_file_commit(struct leat_writer *writer, const char *path, int flags, struct leat_err *err);
void leat_file_abort(struct leat_writer *writer);

/* file_lock.c: creates `path`, which must not exist unless a process that died left it. *locked: it is locked, and
 * stays so until `fd` is closed; false: the file system has no locks. LEAT_AGAIN: another process has it. LEAT_IO:
 * errno. */
enum leat_status leat_file_claim(const char *path, int *fd, bool *locked);
/* "FOLDER/.NAME<ending>" for "FOLDER/NAME": hidden from patterns. NULL: out of memory. */
char *leat_file_hidden(const char *path, const char *ending, struct leat_mem *mem);
enum leat_status leat_file_lock(struct leat_store *store, const char *path, struct leat_lock **lock,
                                struct leat_err *err);
void leat_file_unlock(struct leat_lock *lock);
void leat_file_sweep(struct leat_store *store, const char *pattern);

#endif
