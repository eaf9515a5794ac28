/* store.h - where bytes live: names, sizes, and reads by range
 *
 * A leat_files is the sorted list of files that a source's patterns name, and the
 * way to read them. Descriptors are opened at first use and only so many are kept.
 * Or it is a list of many small files that its maker knows by name and size: nothing is
 * looked at beforehand, nothing is kept of a file, each read opens and closes it.
 *
 * leat_files_open: one thread. leat_files_read, leat_files_uri: any thread. */
#ifndef LEAT_STORE_STORE_H
#define LEAT_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"

struct leat_file {
	const char *uri;  /* as shown to people and opened */
	const char *name; /* relative to the folder common to all files: what a fingerprint sees */
	uint64_t size;
	int64_t mtime_ns;
};

struct leat_files;

/* Expands patterns (*, ?, [..] and, in the last part or before, plain paths), each sorted by name,
 * patterns in the order given. A pattern without a match, a folder or a file that cannot be read is an error. */
enum leat_status leat_files_open(struct leat_files **files, const char *const *patterns, size_t count,
                                 struct leat_mem *mem, struct leat_err *err);
void leat_files_close(struct leat_files *files); /* takes NULL */

/* Borrowed as long as the files are open. What the arrays hold is checked at each use: they may lie in a mapped file.
 */
struct leat_file_list {
	const char *folder; /* that names are relative to */
	size_t count;
	const char *names; /* name i: [name_at[i], name_at[i + 1]) of these */
	uint64_t names_len;
	const uint64_t *name_at;
	const uint64_t *size; /* that file i has to have */
	const char *remedy;   /* what to do when one has another, for the error */
};
enum leat_status leat_files_open_list(struct leat_files **files, const struct leat_file_list *list,
                                      struct leat_mem *mem, struct leat_err *err);

size_t leat_files_count(const struct leat_files *files);
/* What is known of a file; not for a list. */
const struct leat_file *leat_files_at(const struct leat_files *files, size_t i);
/* The path that is shown to people; `buf` is used where it has to be put together. */
enum { LEAT_URI = 4096 };
const char *leat_files_uri(const struct leat_files *files, size_t i, char buf[LEAT_URI]);

enum leat_read_flag {
	LEAT_READ_NOWAIT = 1, /* only what is there without waiting for a device */
};

/* Reads the bytes of file `i` from `offset` on into iov[0..iovs), in order. *got counts what was read:
 * LEAT_OK with all of it; LEAT_AGAIN (only with NOWAIT, no error text) with what could be had at once;
 * LEAT_DATA when the file is shorter than it was, or, of a list, has another size; LEAT_IO. The iovs are not changed.
 */
enum leat_status leat_files_read(struct leat_files *files, size_t i, uint64_t offset, const struct iovec *iov, int iovs,
                                 int flags, size_t *got, struct leat_err *err);

#endif
