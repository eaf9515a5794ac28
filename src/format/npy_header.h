/* npy_header.h - the header of a .npy file, format 1.0, 2.0 and 3.0
 *
 * A file is "\x93NUMPY", two version bytes, the header's length (little-endian; 2 bytes, 4 since
 * version 2.0), the header, the array. The header is a Python dict as text:
 *	{'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }
 * Stateless: any thread. */
#ifndef LEAT_FORMAT_NPY_HEADER_H
#define LEAT_FORMAT_NPY_HEADER_H

#include "base/err.h"

enum { LEAT_NPY_HEADER = 64 * 1024 }; /* limit; headers of plain arrays are far shorter */

struct leat_npy {
	enum leat_dtype dtype; /* uint8 for bools, float32 and float64 for complex numbers */
	bool is_bool, is_complex;
	int ndim; /* 0: a scalar. Complex numbers have another dimension at the end: real and imaginary part */
	int64_t shape[1 + LEAT_MAX_DIMS];
	uint64_t data_at;   /* offset in the file */
	uint64_t row_bytes; /* of shape[1..] */
	uint64_t bytes;     /* of the whole array */
};

/* Parses the header and checks that the file holds the whole array. `bytes` holds the first `len` bytes of a file of
 * `size` bytes: the whole file, or LEAT_NPY_HEADER bytes. Errors don't name the file. */
enum leat_status leat_npy_parse(const unsigned char *bytes, size_t len, uint64_t size, struct leat_npy *npy,
                                struct leat_err *err);
/* The same for a file that may lack the end of its array. */
enum leat_status leat_npy_parse_header(const unsigned char *bytes, size_t len, uint64_t size, struct leat_npy *npy,
                                       struct leat_err *err);

#endif
