/* text.h - small files as text, from any store */
#ifndef LEAT_CLI_TEXT_H
#define LEAT_CLI_TEXT_H

#include "base/err.h"
#include "base/mem.h"

/* The whole file, NUL-terminated, to be freed with leat_free. More than 16 MiB is an error. */
enum leat_status leat_read_text(const char *path, struct leat_mem *mem, char **text, struct leat_err *err);

#endif
