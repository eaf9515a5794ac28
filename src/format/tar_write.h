/* tar_write.h - writing tar files (ustar), as WebDataset and every tar program read them
 *
 * Members have no owner and no time: the same content gives the same bytes. One thread a file. */
#ifndef LEAT_FORMAT_TAR_WRITE_H
#define LEAT_FORMAT_TAR_WRITE_H

#include <sys/uio.h>

#include "store/store.h"

/* Adds a file called `name`, at most 100 bytes, whose content is the pieces one after the other. */
enum leat_status leat_tar_write(struct leat_writer *out, const char *name, const struct iovec *piece, int pieces,
                                struct leat_err *err);
/* The two blocks of zeros behind the last member. */
enum leat_status leat_tar_write_end(struct leat_writer *out, struct leat_err *err);

#endif
