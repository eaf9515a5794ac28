/* jpeg_mem.c - a memory manager for libjpeg that allocates from a scratch
 *
 * libjpeg calls its memory manager through a table of functions, which is part of its public interface. Its own manager
 * calls malloc without a limit: a progressive image keeps all coefficients, six bytes per pixel. This one enforces the
 * caller's limit and needs no malloc per image.
 *
 * Nothing is freed individually: the owner of the scratch resets it when the image is done. */
#include "image/jpeg_mem.h"

#include <stdbool.h>
#include <string.h>

#include <jerror.h>

/* SIMD code reads and writes whole vectors at the end of a row, so rows are padded to a multiple of this. */
enum { ROW_ALIGN = 64 };

/* All coefficients of a component. libjpeg declares this type, the memory manager defines it. */
struct jvirt_barray_control {
	JBLOCKARRAY rows; /* NULL until realize_virt_arrays */
	JDIMENSION blocks_per_row, row_count;
	bool pre_zero;
	jvirt_barray_ptr next;
};

static struct leat_jpeg_mem *
mem_of(j_common_ptr cinfo)
{
	return (struct leat_jpeg_mem *)(void *)cinfo->mem;
}

static void *
take(j_common_ptr cinfo, size_t count, size_t size)
{
	void *block = NULL;

	if (!size || count <= SIZE_MAX / size)
		block = leat_scratch_alloc(mem_of(cinfo)->scratch, count * size);
	if (!block)
		ERREXIT1(cinfo, JERR_OUT_OF_MEMORY, 0);
	return block;
}

static void *
alloc(j_common_ptr cinfo, int pool, size_t size)
{
	struct leat_jpeg_mem *mem = mem_of(cinfo);
	void *block;

	if (pool != JPOOL_PERMANENT)
		return take(cinfo, 1, size);
	/* The library's manager finds its state through cinfo->mem. */
	cinfo->mem = mem->library;
	block = mem->library->alloc_small(cinfo, pool, size);
	cinfo->mem = &mem->own;
	return block;
}

static JSAMPARRAY
alloc_sarray(j_common_ptr cinfo, int pool, JDIMENSION samples_per_row, JDIMENSION row_count)
{
	size_t stride = ((size_t)samples_per_row + ROW_ALIGN - 1) / ROW_ALIGN * ROW_ALIGN;
	JSAMPARRAY rows = take(cinfo, row_count, sizeof(*rows));
	JSAMPROW first = take(cinfo, row_count, stride);

	(void)pool;
	for (JDIMENSION i = 0; i < row_count; i++)
		rows[i] = first + i * stride;
	return rows;
}

static JBLOCKARRAY
alloc_barray(j_common_ptr cinfo, int pool, JDIMENSION blocks_per_row, JDIMENSION row_count)
{
	size_t stride = blocks_per_row;
	JBLOCKARRAY rows = take(cinfo, row_count, sizeof(*rows));
	JBLOCKROW first = take(cinfo, row_count, stride * sizeof(*first));

	(void)pool;
	for (JDIMENSION i = 0; i < row_count; i++)
		rows[i] = first + i * stride;
	return rows;
}

static jvirt_barray_ptr
request_virt_barray(j_common_ptr cinfo, int pool, boolean pre_zero, JDIMENSION blocks_per_row, JDIMENSION row_count,
                    JDIMENSION max_access)
{
	struct leat_jpeg_mem *mem = mem_of(cinfo);
	jvirt_barray_ptr array = take(cinfo, 1, sizeof(*array));

	(void)pool, (void)max_access;
	*array = (struct jvirt_barray_control){
		.blocks_per_row = blocks_per_row, .row_count = row_count, .pre_zero = pre_zero, .next = mem->arrays};
	mem->arrays = array;
	return array;
}

static void
realize_virt_arrays(j_common_ptr cinfo)
{
	struct leat_jpeg_mem *mem = mem_of(cinfo);

	for (; mem->arrays; mem->arrays = mem->arrays->next) {
		jvirt_barray_ptr array = mem->arrays;

		array->rows = alloc_barray(cinfo, JPOOL_IMAGE, array->blocks_per_row, array->row_count);
		if (array->pre_zero && array->row_count)
			memset(array->rows[0], 0, (size_t)array->row_count * array->blocks_per_row * sizeof(JBLOCK));
	}
}

static JBLOCKARRAY
access_virt_barray(j_common_ptr cinfo, jvirt_barray_ptr array, JDIMENSION start, JDIMENSION count, boolean writable)
{
	(void)writable;
	if (!array->rows || start > array->row_count || count > array->row_count - start)
		ERREXIT(cinfo, JERR_BAD_VIRTUAL_ACCESS);
	return array->rows + start;
}

/* Virtual arrays of samples are only needed for color quantization, which is never requested. */
static jvirt_sarray_ptr
request_virt_sarray(j_common_ptr cinfo, int pool, boolean pre_zero, JDIMENSION samples_per_row, JDIMENSION row_count,
                    JDIMENSION max_access)
{
	(void)pool, (void)pre_zero, (void)samples_per_row, (void)row_count, (void)max_access;
	ERREXIT(cinfo, JERR_NOT_COMPILED);
	return NULL;
}

static JSAMPARRAY
access_virt_sarray(j_common_ptr cinfo, jvirt_sarray_ptr array, JDIMENSION start, JDIMENSION count, boolean writable)
{
	(void)array, (void)start, (void)count, (void)writable;
	ERREXIT(cinfo, JERR_BAD_VIRTUAL_ACCESS);
	return NULL;
}

static void
free_pool(j_common_ptr cinfo, int pool)
{
	(void)cinfo, (void)pool;
}

void
leat_jpeg_mem_install(struct leat_jpeg_mem *mem, j_common_ptr cinfo, struct leat_scratch *scratch)
{
	mem->library = cinfo->mem;
	mem->scratch = scratch;
	mem->arrays = NULL;
	mem->own = *cinfo->mem;
	mem->own.alloc_small = alloc;
	mem->own.alloc_large = alloc;
	mem->own.alloc_sarray = alloc_sarray;
	mem->own.alloc_barray = alloc_barray;
	mem->own.request_virt_sarray = request_virt_sarray;
	mem->own.request_virt_barray = request_virt_barray;
	mem->own.realize_virt_arrays = realize_virt_arrays;
	mem->own.access_virt_sarray = access_virt_sarray;
	mem->own.access_virt_barray = access_virt_barray;
	mem->own.free_pool = free_pool;
	cinfo->mem = &mem->own;
}

void
leat_jpeg_mem_remove(struct leat_jpeg_mem *mem, j_common_ptr cinfo)
{
	if (mem->library)
		cinfo->mem = mem->library;
}
