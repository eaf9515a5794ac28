/* jpeg_mem.h - a memory manager for libjpeg that uses a scratch; private to src/image */
#ifndef LEAT_IMAGE_JPEG_MEM_H
#define LEAT_IMAGE_JPEG_MEM_H

#include <stdio.h> /* needed by jpeglib.h */

#include <jpeglib.h>

#include "base/mem.h"

struct leat_jpeg_mem {
	struct jpeg_memory_mgr own; /* first: cinfo->mem points to it */
	struct jpeg_memory_mgr *library;
	struct leat_scratch *scratch;
	jvirt_barray_ptr arrays; /* requested, not yet allocated */
};

/* Call after jpeg_create_decompress. Memory per image comes from `scratch` from then on; what outlives an image
 * (tables, some KB) still comes from the library's manager. Running out of scratch raises JERR_OUT_OF_MEMORY. */
void leat_jpeg_mem_install(struct leat_jpeg_mem *mem, j_common_ptr cinfo, struct leat_scratch *scratch);
/* Call before jpeg_destroy_decompress, in any state. */
void leat_jpeg_mem_remove(struct leat_jpeg_mem *mem, j_common_ptr cinfo);

#endif
