/* dlpack.h - the part of the DLPack ABI (0.x) that we export
 *
 * Layouts follow the DLPack specification. A test compares them with the original header. */
#ifndef LEAT_FEED_DLPACK_H
#define LEAT_FEED_DLPACK_H

#include <stdint.h>

enum { LEAT_DL_CPU = 1 };
enum { LEAT_DL_INT = 0, LEAT_DL_UINT = 1, LEAT_DL_FLOAT = 2, LEAT_DL_BFLOAT = 4, LEAT_DL_BOOL = 6 };

struct leat_dl_tensor {
	void *data;
	struct {
		int32_t type, id;
	} device;
	int32_t ndim;
	struct {
		uint8_t code, bits;
		uint16_t lanes;
	} dtype;
	int64_t *shape, *strides;
	uint64_t byte_offset;
};

struct DLManagedTensor {
	struct leat_dl_tensor tensor;
	void *manager;
	void (*deleter)(struct DLManagedTensor *self);
};

#endif
