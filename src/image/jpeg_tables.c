/* jpeg_tables.c - Huffman lookup tables, cached between images
 *
 * Most files of a data set were written by one program with the same codes, and building the tables takes as long as
 * decoding about 40 blocks. A worker keeps its last tables, with the codes they were built from, and rebuilds one only
 * when a file has a different code. Without memory for the cache, each image builds its own.
 *
 * One thread per scratch. */
#include "image/jpeg.h"

#include <string.h>

enum { LENGTHS = 16 }; /* counts of codes by length, before the symbols */

/* The code a table was built from; size 0: no table. */
struct source {
	size_t size;
	uint8_t code[LENGTHS + 256];
};

struct leat_jpeg_tables {
	struct source dc_source[LEAT_JPEG_CODES], ac_source[LEAT_JPEG_CODES];
	struct leat_jpeg_dc dc[LEAT_JPEG_CODES];
	struct leat_jpeg_ac ac[LEAT_JPEG_CODES];
};

static void
end_tables(void *tables, struct leat_mem *mem)
{
	leat_free(mem, tables);
}

struct leat_jpeg_tables *
leat_jpeg_tables_of(struct leat_scratch *scratch)
{
	struct leat_jpeg_tables *tables = leat_scratch_keep_block(scratch, sizeof(*tables), end_tables);

	if (tables)
		return tables;
	tables = leat_scratch_alloc(scratch, sizeof(*tables));
	for (int i = 0; tables && i < LEAT_JPEG_CODES; i++)
		tables->dc_source[i].size = tables->ac_source[i].size = 0;
	return tables;
}

static size_t
code_size(const uint8_t *code)
{
	size_t size = LENGTHS;

	for (int i = 0; i < LENGTHS; i++)
		size += code[i];
	return size;
}

/* Was the table built from this code? If not, stores the code, for the caller to build the table. */
static bool
is_source(struct source *source, const uint8_t *code)
{
	const size_t size = code_size(code);

	if (source->size == size && memcmp(source->code, code, size) == 0)
		return true;
	source->size = size;
	memcpy(source->code, code, size);
	return false;
}

const struct leat_jpeg_dc *
leat_jpeg_dc_table(struct leat_jpeg_tables *tables, unsigned which, const uint8_t *code)
{
	struct source *source = &tables->dc_source[which];

	if (is_source(source, code) || leat_jpeg_dc_build(&tables->dc[which], source->code))
		return &tables->dc[which];
	source->size = 0;
	return NULL;
}

const struct leat_jpeg_ac *
leat_jpeg_ac_table(struct leat_jpeg_tables *tables, unsigned which, const uint8_t *code)
{
	struct source *source = &tables->ac_source[which];

	if (is_source(source, code) || leat_jpeg_ac_build(&tables->ac[which], source->code))
		return &tables->ac[which];
	source->size = 0;
	return NULL;
}
