/* npy_write.c - see npy_write.h */
#include "format/npy_write.h"

#include <stdio.h>
#include <string.h>

enum { FIXED = 10, ALIGN = 64 }; /* magic, version and length; the header is padded to a multiple of 64 */

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define ORDER ">"
#else
#define ORDER "<"
#endif

static const char *
name_of(enum leat_dtype dtype)
{
	switch (dtype) {
	case LEAT_U8:
		return "|u1";
	case LEAT_I32:
		return ORDER "i4";
	case LEAT_I64:
		return ORDER "i8";
	case LEAT_F16:
		return ORDER "f2";
	case LEAT_F32:
		return ORDER "f4";
	case LEAT_F64:
		return ORDER "f8";
	case LEAT_BOOL:
		return "|b1";
	case LEAT_I8:
		return "|i1";
	case LEAT_I16:
		return ORDER "i2";
	case LEAT_U16:
		return ORDER "u2";
	case LEAT_U32:
		return ORDER "u4";
	case LEAT_U64:
		return ORDER "u8";
	case LEAT_BF16:
		break;
	}
	return NULL;
}

bool
leat_npy_has(enum leat_dtype dtype)
{
	return name_of(dtype) != NULL;
}

/* The header is a Python dict; its shape is a tuple: (), (3,) or (3, 4). */
static size_t
print(char *to, size_t cap, enum leat_dtype dtype, int ndim, int64_t first, const int64_t *shape)
{
	size_t used = (size_t)snprintf(to, cap, "{'descr': '%s', 'fortran_order': False, 'shape': (", name_of(dtype));

	for (int d = 0; d < ndim; d++)
		used += (size_t)snprintf(to + used, cap - used, "%s%lld", d ? ", " : "",
		                         (long long)(d ? shape[d] : first));
	return used + (size_t)snprintf(to + used, cap - used, "%s), }", ndim == 1 ? "," : "");
}

size_t
leat_npy_head(char head[LEAT_NPY_HEAD], enum leat_dtype dtype, int ndim, const int64_t *shape, int64_t rows)
{
	size_t room = LEAT_NPY_HEAD - FIXED;
	size_t longest = FIXED + print(head + FIXED, room, dtype, ndim, rows, shape) + 1;
	size_t length = (longest + ALIGN - 1) / ALIGN * ALIGN, used;

	used = FIXED + print(head + FIXED, room, dtype, ndim, ndim ? shape[0] : 0, shape);
	memset(head + used, ' ', length - used);
	head[length - 1] = '\n';
	memcpy(head, "\x93NUMPY\x01", 8); /* version 1.0; the literal's NUL is the minor version */
	head[8] = (char)((length - FIXED) & 0xff);
	head[9] = (char)((length - FIXED) >> 8);
	return length;
}
