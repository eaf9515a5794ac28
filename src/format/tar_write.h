/* tar_write.h - write tar files (ustar), readable by WebDataset and any tar program
 *
 * Members have no owner and no time: the same content gives the same bytes. One thread per file. */
#ifndef LEAT_FORMAT_TAR_WRITE_H
#define LEAT_FORMAT_TAR_WRITE_H

#include <sys/uio.h>

#include "store/store.h"

/* Adds a file called `name`, at most 100 bytes, whose content is the concatenated pieces. */
enum leat_status leat_tar_write(struct leat_writer *out, const char *name, const struct iovec *piece, int pieces,
                                struct leat_err *err);
/* Writes the two zero blocks that end the archive. */
enum leat_status leat_tar_write_end(struct leat_writer *out, struct leat_err *err);

#endif
