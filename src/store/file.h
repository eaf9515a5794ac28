/* file.h - the inside of the store of local files, which fills several files
 *
 * file.c names and lists, file_read.c reads and keeps descriptors, file_io.c has the
 * threads that wait for devices, file_map.c maps, file_write.c writes. */
#ifndef LEAT_STORE_FILE_H
#define LEAT_STORE_FILE_H

#include <pthread.h>
#include <sys/stat.h>

#include "base/threads.h"
#include "store/store.h"

enum { LEAT_FILE_IO_THREADS = 16 };

/* What is kept of a file between reads. */
struct leat_open {
	_Atomic uint64_t word;       /* (descriptor + 1) << 32 | readers */
	atomic_uchar used;           /* since the clock hand passed */
	atomic_uchar nowait;         /* what reading without waiting means for it: enum nowait in file_read.c */
	_Atomic uint64_t checked_ns; /* when it was last seen to be the version that is meant */
	struct leat_file_map *map;   /* NULL: none */
};

struct leat_file_store {
	struct leat_store base;
	uint64_t recheck_ns;   /* how long an open file is trusted before its version is compared again */
	int cwd;               /* the folder that relative paths are below, whatever the program changes to later */
	struct leat_open any;  /* what is known of the file system of files that are not kept */
	atomic_bool no_cached; /* the kernel cannot open from its cache of names alone */

	pthread_mutex_t lock;
	/* Under the lock: which files are open, in no order, and the hand of the clock that picks one to close. */
	struct leat_open **open;
	size_t opened, max_open, hand;

	struct leat_file_io {
		pthread_mutex_t lock;
		pthread_cond_t work;
		/* Under its lock: reads that no thread has taken yet. */
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

/* file.c: what `st` says, as a version. */
void leat_file_describe(const struct stat *st, struct leat_object *object);
/* That `st` is the object; else LEAT_DATA, with its name and what happened to it. */
enum leat_status leat_file_compare(const struct leat_object *object, const struct stat *st, const char *path,
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
/* That the file under the object's name is the one that is meant. */
enum leat_status leat_file_check(const struct leat_object *object, struct leat_err *err);
/* Opens the object's file once more, and checks that it is the one that is meant. */
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
/* Bytes of a mapped file: with `wait`, brings them. LEAT_AGAIN: they are not in memory. */
enum leat_status leat_file_map_bring(const struct leat_object *object, uint64_t offset, size_t len, bool wait,
                                     struct leat_err *err);

/* file_write.c */
enum leat_status leat_file_begin(struct leat_store *store, const char *path, struct leat_writer **writer,
                                 struct leat_err *err);
enum leat_status leat_file_append(struct leat_writer *writer, const void *bytes, size_t len, struct leat_err *err);
enum leat_status leat_file_patch(struct leat_writer *writer, uint64_t offset, const void *bytes, size_t len,
                                 struct leat_err *err);
enum leat_status leat_file_finish(struct leat_writer *writer, int flags, struct leat_err *err);
enum leat_status leat_file_commit(struct leat_writer *writer, const char *path, int flags, struct leat_err *err);
void leat_file_abort(struct leat_writer *writer);

#endif
