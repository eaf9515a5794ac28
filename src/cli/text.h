/* text.h - read small text files from any store, and check arguments before a run */
#ifndef LEAT_CLI_TEXT_H
#define LEAT_CLI_TEXT_H

#include "base/err.h"
#include "base/mem.h"
#include "store/settings.h"

/* Reads the whole file, NUL-terminated; free it with leat_free. Fails above 16 MiB. */
enum leat_status leat_read_text(const char *path, const struct leat_storage *storage, struct leat_mem *mem, char **text,
                                struct leat_err *err);

/* Fails if `spec` is the name of a file or folder, and names the source that reads it. */
enum leat_status leat_check_spec(const char *spec, const struct leat_storage *storage, struct leat_mem *mem,
                                 struct leat_err *err);

/* Fails if a file cannot be written: before a long run, not after it. `option` names the file's. */
enum leat_status leat_check_output(const char *path, const char *option, const struct leat_storage *storage,
                                   struct leat_mem *mem, struct leat_err *err);

#endif
