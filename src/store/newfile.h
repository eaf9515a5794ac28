/* newfile.h - a file that appears whole or not at all
 *
 * Bytes go, buffered, to a hidden temporary file in the folder of the result, which
 * commit renames. Readers never see a part of it, and of two writers the last one wins.
 * One thread. */
#ifndef LEAT_STORE_NEWFILE_H
#define LEAT_STORE_NEWFILE_H

#include <stdbool.h>

#include "base/err.h"
#include "base/mem.h"

struct leat_newfile {
	struct leat_mem *mem;
	char *path, *temp;
	int fd;
	unsigned char *buffer;
	size_t used;
	uint64_t size; /* bytes written so far */
	enum leat_status failed;
};

enum leat_status leat_newfile_open(struct leat_newfile *file, const char *path, struct leat_mem *mem,
                                   struct leat_err *err);
/* After a failure every further write and the commit fail with the same status. */
enum leat_status leat_newfile_write(struct leat_newfile *file, const void *bytes, size_t len, struct leat_err *err);
/* Ends it, whether it succeeds or not. `sync`: it is on the disk, under its name, when this returns, and
 * survives a crash of the machine; without, a crash may leave a part or nothing. */
enum leat_status leat_newfile_commit(struct leat_newfile *file, bool sync, struct leat_err *err);
/* Leaves nothing behind. Takes a zeroed, failed or committed one. */
void leat_newfile_abort(struct leat_newfile *file);

#endif
