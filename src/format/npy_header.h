/* npy_header.h - the header of a .npy file, format 1.0, 2.0 and 3.0
 *
 * A file is "\x93NUMPY", two bytes of version, the header's length (2 bytes, from 2.0 on
 * 4, little-endian), the header, the array. The header is a Python dict as text:
 *	{'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }
 * No state: any thread. */
#ifndef LEAT_FORMAT_NPY_HEADER_H
#define LEAT_FORMAT_NPY_HEADER_H

#include "base/err.h"

enum { LEAT_NPY_HEADER = 64 * 1024 }; /* no header of a plain array is longer */

struct leat_npy {
	enum leat_dtype dtype; /* of bools: uint8 */
	bool is_bool;
	int ndim; /* of the array; 0: a single value */
	int64_t shape[1 + LEAT_MAX_DIMS];
	uint64_t data_at;   /* offset in the file */
	uint64_t row_bytes; /* of shape[0] rows, all of which the file has */
};

/* Reads the header. `bytes` are the first `len` of the file's `size`: all of them, or LEAT_NPY_HEADER. An error says
 * what is wrong, not where. */
enum leat_status leat_npy_parse(const unsigned char *bytes, size_t len, uint64_t size, struct leat_npy *npy,
                                struct leat_err *err);

#endif
