/* jpeg_mem.h - libjpeg's memory, taken from a scratch; private to src/image */
#ifndef LEAT_IMAGE_JPEG_MEM_H
#define LEAT_IMAGE_JPEG_MEM_H

#include <stdio.h> /* jpeglib.h wants it before itself */

#include <jpeglib.h>

#include "base/mem.h"

struct leat_jpeg_mem {
	struct jpeg_memory_mgr own; /* first: libjpeg hands back a pointer to it */
	struct jpeg_memory_mgr *library;
	struct leat_scratch *scratch;
	jvirt_barray_ptr arrays; /* requested and not yet there */
};

/* After jpeg_create_decompress: images are decoded in `scratch` from here on. What has to outlive an
 * image (tables, some KB) stays with the library's manager. A full scratch raises JERR_OUT_OF_MEMORY. */
void leat_jpeg_mem_install(struct leat_jpeg_mem *mem, j_common_ptr cinfo, struct leat_scratch *scratch);
/* Before jpeg_destroy_decompress, at any state. */
void leat_jpeg_mem_remove(struct leat_jpeg_mem *mem, j_common_ptr cinfo);

#endif
