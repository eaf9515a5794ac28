/* fuzz_npy.c - any bytes are an array that lies inside its file, or are refused with a reason */
#include <stdint.h>
#include <stdlib.h>

#include "format/npy_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t len = size < LEAT_NPY_HEADER ? size : LEAT_NPY_HEADER;
	struct leat_npy npy;
	struct leat_err err;
	uint64_t elements = 1;

	leat_err_clear(&err);
	if (leat_npy_parse(data, len, size, &npy, &err) != LEAT_OK) {
		must(err.status != LEAT_OK && err.text[0]);
		return 0;
	}
	must(npy.ndim >= 0 && npy.ndim <= 1 + LEAT_MAX_DIMS);
	must(npy.data_at <= size);
	for (int i = 0; i < npy.ndim; i++)
		must(npy.shape[i] >= 0);
	for (int i = 1; i < npy.ndim; i++)
		elements *= (uint64_t)npy.shape[i];
	must(npy.row_bytes == elements * leat_dtype_size(npy.dtype));
	must(!npy.is_complex || (npy.ndim > 0 && npy.shape[npy.ndim - 1] == 2));
	must(npy.row_bytes == 0 || (npy.ndim ? (uint64_t)npy.shape[0] : 1) <= (size - npy.data_at) / npy.row_bytes);
	return 0;
}
