/* tar_write.h - write tar files (ustar), readable by WebDataset and any tar program
 *
 * Members have no owner and no time: the same content gives the same bytes. One thread per file. */
#ifndef LEAT_FORMAT_TAR_WRITE_H
#define LEAT_FORMAT_TAR_WRITE_H

#include <sys/uio.h>

#include "base/str.h"
#include "store/store.h"

enum { LEAT_TAR_MEMBER_HEAD = 512, LEAT_TAR_MEMBER_NAME = 100 };

/* What follows the name of a field in that of its file. */
enum leat_tar_extension {
	LEAT_TAR_JPG,
	LEAT_TAR_PNG,
	LEAT_TAR_WEBP,
	LEAT_TAR_BIN,
	LEAT_TAR_CLS, /* an integer as text */
	LEAT_TAR_NPY,
	LEAT_TAR_TXT,
	LEAT_TAR_OWN, /* nothing: the field is called like a file */
	LEAT_TAR_EXTENSIONS,
};
extern const char *const leat_tar_extensions[LEAT_TAR_EXTENSIONS]; /* ".jpg" */
/* Is the field called like a file: "jpg", "seg.png"? */
bool leat_tar_is_file_name(const char *field);
/* Of bytes, by what they are. */
enum leat_tar_extension leat_tar_extension_of(const char *field, const void *bytes, size_t len);
/* Adds "image=image.jpg;image.png" for the set of extensions, bit by bit. */
void leat_tar_add_field(struct leat_str *out, const char *field, unsigned extensions);

/* The header of a file of `size` bytes, which are followed by zeros up to a multiple of 512. */
enum leat_status leat_tar_head(char head[LEAT_TAR_MEMBER_HEAD], const char *name, uint64_t size, struct leat_err *err);
/* Adds a file called `name`, at most 100 bytes, whose content is the concatenated pieces. */
enum leat_status leat_tar_write(struct leat_writer *out, const char *name, const struct iovec *piece, int pieces,
                                struct leat_err *err);
/* Writes the two zero blocks that end the archive. */
enum leat_status leat_tar_write_end(struct leat_writer *out, struct leat_err *err);

#endif
