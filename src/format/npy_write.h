/* npy_write.h - write NumPy's .npy files: a header with type and shape, then the raw values */
#ifndef LEAT_FORMAT_NPY_WRITE_H
#define LEAT_FORMAT_NPY_WRITE_H

#include "base/err.h"

enum { LEAT_NPY_HEAD = 256 }; /* longest header */

/* Whether NumPy has this dtype; it has no bfloat16. */
bool leat_npy_has(enum leat_dtype dtype);

/* Writes a header padded to the length it would have with `rows` in place of shape[0], so that a writer that learns
 * the row count last can overwrite it. At most 1 + LEAT_MAX_DIMS dims. Returns the length. */
size_t leat_npy_head(char head[LEAT_NPY_HEAD], enum leat_dtype dtype, int ndim, const int64_t *shape, int64_t rows);

#endif
