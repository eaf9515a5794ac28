/* beside.h - where files lie that are made of the data: indexes
 *
 * `.NAME.leatidx` in the folder of the data, or, where that cannot be written, in
 * ${XDG_CACHE_HOME:-~/.cache}/leat/index under the SHA-256 of the data's absolute path.
 * Names that begin with a dot match no pattern of a user. Any thread. */
#ifndef LEAT_FORMAT_BESIDE_H
#define LEAT_FORMAT_BESIDE_H

#include <stdbool.h>

#include "base/mem.h"

enum leat_beside { LEAT_BESIDE_DATA, LEAT_BESIDE_CACHE };

/* The path of what is made of `data`, which exists. With `make` the cache's folder is made if need be. NULL: no
 * memory, or there is no cache folder. */
char *leat_beside(const char *data, enum leat_beside place, bool make, struct leat_mem *mem);

#endif
