/* verify.h - compare files with the checksums that were recorded when they were written */
#ifndef LEAT_CLI_VERIFY_H
#define LEAT_CLI_VERIFY_H

#include <stddef.h>

#include "base/err.h"
#include "base/mem.h"
#include "store/settings.h"

/* Prints a table of the files, with `quiet` only of those with problems, and a summary. Fails if a file differs or has
 * no checksum. */
enum leat_status leat_verify(const char *const *patterns, size_t count, unsigned threads, bool quiet,
                             const struct leat_storage *storage, struct leat_mem *mem, struct leat_err *err);

#endif
