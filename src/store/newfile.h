/* newfile.h - a file that appears whole or not at all
 *
 * Bytes go, buffered, to a hidden temporary file in the folder of the result, which
 * commit renames. Readers never see a part of it, and of two writers the last one wins.
 * One thread. */
#ifndef LEAT_STORE_NEWFILE_H
#define LEAT_STORE_NEWFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

struct leat_newfile {
	struct leat_mem *mem;
	char *path, *temp;
	int fd;      /* -1: nothing more can be written */
	bool hidden; /* the temporary file is there */
	unsigned char *buffer;
	size_t used;
	uint64_t size; /* bytes written so far */
	enum leat_status failed;
};

enum leat_status leat_newfile_open(struct leat_newfile *file, const char *path, struct leat_mem *mem,
                                   struct leat_err *err);
/* After a failure every further write and the commit fail with the same status. */
enum leat_status leat_newfile_write(struct leat_newfile *file, const void *bytes, size_t len, struct leat_err *err);
/* Replaces bytes that were written before: a head that counts what came behind it. */
enum leat_status leat_newfile_patch(struct leat_newfile *file, uint64_t offset, const void *bytes, size_t len,
                                    struct leat_err *err);
/* Ends it, whether it succeeds or not. `sync`: it is on the disk, under its name, when this returns, and
 * survives a crash of the machine; without, a crash may leave a part or nothing. */
enum leat_status leat_newfile_commit(struct leat_newfile *file, bool sync, struct leat_err *err);
/* The same in two steps, for files that are to appear together. After the first one everything is written (with `sync`:
 * on the disk), still hidden, and needs no descriptor and no buffer; the second one ends it, and may give it another
 * name in the same folder (NULL: the one it was opened with). */
enum leat_status leat_newfile_finish(struct leat_newfile *file, bool sync, struct leat_err *err);
enum leat_status leat_newfile_show(struct leat_newfile *file, const char *path, bool sync, struct leat_err *err);
/* Leaves nothing behind. Takes a zeroed, failed or committed one. */
void leat_newfile_abort(struct leat_newfile *file);

#endif
