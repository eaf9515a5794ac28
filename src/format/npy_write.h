/* npy_write.h - writing NumPy's .npy files: a head that says type and shape, then the values as they lie in memory */
#ifndef LEAT_FORMAT_NPY_WRITE_H
#define LEAT_FORMAT_NPY_WRITE_H

#include "base/err.h"

enum { LEAT_NPY_HEAD = 256 }; /* longest */

/* Is there a name for it? NumPy knows no bfloat16. */
bool leat_npy_has(enum leat_dtype dtype);

/* Writes a head that is as long as one with `rows` in place of shape[0] would be, so that a file whose number of rows
 * is known only at its end can have its head written twice. At most 1 + LEAT_MAX_DIMS dims. Returns its length. */
size_t leat_npy_head(char head[LEAT_NPY_HEAD], enum leat_dtype dtype, int ndim, const int64_t *shape, int64_t rows);

#endif
