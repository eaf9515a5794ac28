/* store.h - where bytes live: names, sizes, and reads by range
 *
 * A leat_files is the sorted list of files that a source's patterns name, and the
 * way to read them. Descriptors are opened at first use and only so many are kept.
 *
 * leat_files_open: one thread. leat_files_read: any thread. */
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

size_t leat_files_count(const struct leat_files *files);
const struct leat_file *leat_files_at(const struct leat_files *files, size_t i);

enum leat_read_flag {
	LEAT_READ_NOWAIT = 1, /* only what is there without waiting for a device */
};

/* Reads the bytes of file `i` from `offset` on into iov[0..iovs), in order. *got counts what was read:
 * LEAT_OK with all of it; LEAT_AGAIN (only with NOWAIT, no error text) with what could be had at once;
 * LEAT_DATA when the file is shorter than it was; LEAT_IO. The iovs are not changed. */
enum leat_status leat_files_read(struct leat_files *files, size_t i, uint64_t offset, const struct iovec *iov, int iovs,
                                 int flags, size_t *got, struct leat_err *err);

#endif
