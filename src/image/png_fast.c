/* png_fast.c - see png_fast.h
 *
 * libspng inflates with zlib in small steps. Here the whole image is inflated at once by libdeflate, which works
 * because the header tells the size; then rows are unfiltered and converted one by one while they are in cache.
 * Everything is checked first: chunks, their order and checksums, the palette; later zlib's checksum. Anything rare
 * (interlacing, a transparent color outside a palette) or invalid is left to libspng.
 *
 * One kind of file is accepted here that libspng rejects: all checksums right, but compressed with codes that deflate
 * forbids and libdeflate ignores (lengths 286 and 287, distances 30 and 31). No encoder writes those.
 *
 * libdeflate's decompressor takes 11 KB. It is cached with the scratch, one per worker.
 *
 * Any thread; a scratch belongs to one. */
#include "image/png_fast.h"

#include <string.h>

#include <libdeflate.h>

#include "image/png_rows.h"
#include "image/unfilter.h"

enum {
	SIGNATURE = 8,
	LENGTH = 4, /* bytes of the length field of a chunk */
	CHUNK_EXTRA = 12,
	HEADER = 13,
	LARGE = 64 << 20, /* bytes of rows that take a while to inflate in one go, which nothing can stop */
	ANCILLARY = 0x20,
	MAX_WIDTH = 1 << 24, /* avoids overflow of row sizes */
};

static uint32_t
be32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* ---- chunks ---- */

struct chunk {
	const uint8_t *kind, *data;
	size_t length;
};

/* The chunk at offset `at`; false: it does not fit in the file. */
static bool
chunk_at(const uint8_t *bytes, size_t size, size_t at, struct chunk *chunk)
{
	if (size - at < CHUNK_EXTRA)
		return false;
	chunk->length = be32(bytes + at);
	chunk->kind = bytes + at + LENGTH;
	chunk->data = chunk->kind + 4;
	return chunk->length <= size - at - CHUNK_EXTRA && chunk->length < (size_t)1 << 31;
}

static bool
is_kind(const struct chunk *chunk, const char *kind)
{
	return !memcmp(chunk->kind, kind, 4);
}

static bool
is_whole(const struct chunk *chunk)
{
	return libdeflate_crc32(0, chunk->kind, chunk->length + 4) == be32(chunk->data + chunk->length);
}

static bool
is_depth_of_color(const struct spng_ihdr *header)
{
	const unsigned depth = header->bit_depth;

	switch (header->color_type) {
	case SPNG_COLOR_TYPE_GRAYSCALE:
		return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
	case SPNG_COLOR_TYPE_INDEXED:
		return depth == 1 || depth == 2 || depth == 4 || depth == 8;
	case SPNG_COLOR_TYPE_GRAYSCALE_ALPHA:
	case SPNG_COLOR_TYPE_TRUECOLOR:
	case SPNG_COLOR_TYPE_TRUECOLOR_ALPHA:
		return depth == 8 || depth == 16;
	default:
		return false;
	}
}

bool
leat_png_fast_header(const uint8_t *bytes, size_t size, struct spng_ihdr *header)
{
	struct chunk chunk;

	if (!chunk_at(bytes, size, SIGNATURE, &chunk) || chunk.length != HEADER || !is_kind(&chunk, "IHDR") ||
	    !is_whole(&chunk))
		return false;
	*header = (struct spng_ihdr){
		.width = be32(chunk.data),
		.height = be32(chunk.data + 4),
		.bit_depth = chunk.data[8],
		.color_type = chunk.data[9],
		.compression_method = chunk.data[10],
		.filter_method = chunk.data[11],
		.interlace_method = chunk.data[12],
	};
	return header->width && header->height && header->width <= MAX_WIDTH && header->height <= INT32_MAX &&
	       is_depth_of_color(header) && !header->compression_method && !header->filter_method &&
	       header->interlace_method <= 1;
}

struct file {
	const uint8_t *bytes;
	size_t size;
	const struct spng_ihdr *header;
	size_t channels; /* wanted */
	bool raw;
	const struct leat_scratch *scratch;
	const uint8_t *palette, *alpha;
	size_t palette_count, alpha_count;
	size_t first; /* offset of the first IDAT chunk */
	const uint8_t *data;
	size_t data_size, chunks; /* bytes and number of the IDAT chunks */
};

static bool
read_palette(struct file *file, const struct chunk *chunk)
{
	if (file->chunks || file->palette || !chunk->length || chunk->length % 3 || chunk->length > 768 ||
	    file->header->color_type == SPNG_COLOR_TYPE_GRAYSCALE ||
	    file->header->color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA)
		return false;
	file->palette = chunk->data;
	file->palette_count = chunk->length / 3;
	return file->header->color_type != SPNG_COLOR_TYPE_INDEXED ||
	       file->palette_count <= (size_t)1 << file->header->bit_depth;
}

static bool
read_alpha(struct file *file, const struct chunk *chunk)
{
	if (file->chunks || file->alpha || file->header->color_type != SPNG_COLOR_TYPE_INDEXED || !chunk->length ||
	    chunk->length > file->palette_count)
		return false;
	file->alpha = chunk->data;
	file->alpha_count = chunk->length;
	return true;
}

static void
read_data(struct file *file, const struct chunk *chunk, size_t at)
{
	if (!file->chunks++) {
		file->first = at;
		file->data = chunk->data;
	}
	file->data_size += chunk->length;
}

/* All chunks after the header. Skips the chunks that image/png.c hides from libspng. */
static bool
read_chunks(struct file *file)
{
	struct chunk chunk;

	for (size_t at = SIGNATURE + CHUNK_EXTRA + HEADER; chunk_at(file->bytes, file->size, at, &chunk);
	     at += chunk.length + CHUNK_EXTRA) {
		const bool is_alpha = file->channels == 4 && is_kind(&chunk, "tRNS");
		bool fits = true;

		if ((chunk.kind[0] & ANCILLARY) && !is_alpha)
			continue;
		if (!is_whole(&chunk))
			return false;
		if (is_kind(&chunk, "IEND"))
			return !chunk.length && file->chunks;
		if (is_kind(&chunk, "IDAT"))
			read_data(file, &chunk, at);
		else if (is_kind(&chunk, "PLTE"))
			fits = read_palette(file, &chunk);
		else
			fits = is_alpha && read_alpha(file, &chunk);
		if (!fits)
			return false;
	}
	return false;
}

/* Joins the IDAT chunks if there are several. */
static bool
join_data(struct file *file, struct leat_scratch *scratch)
{
	uint8_t *joined;
	size_t used = 0;
	struct chunk chunk;

	if (file->chunks == 1)
		return true;
	joined = leat_scratch_alloc(scratch, file->data_size);
	if (!joined)
		return false;
	for (size_t at = file->first; used < file->data_size && chunk_at(file->bytes, file->size, at, &chunk);
	     at += chunk.length + CHUNK_EXTRA) {
		if (!is_kind(&chunk, "IDAT"))
			continue;
		memcpy(joined + used, chunk.data, chunk.length);
		used += chunk.length;
	}
	file->data = joined;
	return true;
}

/* ---- inflating ---- */

static void
end_decompressor(void *decompressor, struct leat_mem *mem)
{
	(void)mem;
	libdeflate_free_decompressor(decompressor);
}

static struct libdeflate_decompressor *
decompressor_of(struct leat_scratch *scratch)
{
	struct libdeflate_decompressor *decompressor = leat_scratch_kept(scratch, end_decompressor);

	if (decompressor)
		return decompressor;
	decompressor = libdeflate_alloc_decompressor();
	if (decompressor && !leat_scratch_keep(scratch, decompressor, end_decompressor)) {
		libdeflate_free_decompressor(decompressor);
		return NULL;
	}
	return decompressor;
}

/* zlib rejects distances beyond the window size in the stream's header, libdeflate does not check. No distance is too
 * long for the largest window, or for one that holds the whole image. */
static bool
is_window_enough(uint8_t first, size_t size)
{
	const unsigned bits = first >> 4;

	return bits == 7 || size <= (size_t)256 << bits;
}

static bool
inflate_all(const struct file *file, struct leat_scratch *scratch, uint8_t *out, size_t size)
{
	struct libdeflate_decompressor *decompressor = decompressor_of(scratch);
	size_t used;

	if (!decompressor || !file->data_size || !is_window_enough(file->data[0], size))
		return false;
	return libdeflate_zlib_decompress_ex(decompressor, file->data, file->data_size, out, size, &used, NULL) ==
	               LIBDEFLATE_SUCCESS &&
	       used == file->data_size;
}

/* ---- pixels ---- */

/* The format of the rows. */
struct row_format {
	size_t samples, bits; /* samples per pixel, bits per sample */
	size_t step, row;     /* bytes per pixel, at least 1, and per row, without the filter byte */
	bool is_mapped;
	struct leat_png_colors colors;
};

static void
palette_colors(const struct file *file, struct leat_png_colors *colors)
{
	colors->count = (unsigned)file->palette_count;
	memset(colors->color, 255, sizeof(colors->color));
	for (size_t i = 0; i < colors->count; i++) {
		uint8_t *color = colors->color[i];

		leat_png_row_plain(file->palette + 3 * i, 3, 1, color, file->channels, 1);
		if (file->channels == 4 && i < file->alpha_count)
			color[3] = file->alpha[i];
	}
}

/* Gray of less than 8 bits is scaled to 0..255. */
static void
gray_colors(const struct file *file, struct leat_png_colors *colors)
{
	colors->count = 1u << file->header->bit_depth;
	for (unsigned i = 0; i < colors->count; i++) {
		uint8_t gray = (uint8_t)(i * 255 / (colors->count - 1));

		leat_png_row_plain(&gray, 1, 1, colors->color[i], file->channels, 1);
	}
}

/* Values as they are stored; an index may be beyond the palette. */
static void
raw_colors(struct leat_png_colors *colors)
{
	colors->count = 256;
	for (unsigned i = 0; i < colors->count; i++)
		colors->color[i][0] = (uint8_t)i;
}

static void
set_format(const struct file *file, struct row_format *format)
{
	static const uint8_t samples[] = {
		[SPNG_COLOR_TYPE_GRAYSCALE] = 1,       [SPNG_COLOR_TYPE_TRUECOLOR] = 3,
		[SPNG_COLOR_TYPE_INDEXED] = 1,         [SPNG_COLOR_TYPE_GRAYSCALE_ALPHA] = 2,
		[SPNG_COLOR_TYPE_TRUECOLOR_ALPHA] = 4,
	};
	const struct spng_ihdr *header = file->header;

	format->samples = samples[header->color_type];
	format->bits = header->bit_depth;
	format->step = format->bits < 8 ? 1 : format->samples * format->bits / 8;
	format->row = (header->width * format->samples * format->bits + 7) / 8;
	format->is_mapped = (header->color_type == SPNG_COLOR_TYPE_INDEXED && !file->raw) || format->bits < 8;
	if (file->raw)
		raw_colors(&format->colors);
	else if (header->color_type == SPNG_COLOR_TYPE_INDEXED)
		palette_colors(file, &format->colors);
	else if (format->is_mapped)
		gray_colors(file, &format->colors);
}

/* Converts an unfiltered row to pixels. `samples_buffer` has room for a row of samples. */
static bool
finish_row(const struct file *file, const struct row_format *format, const uint8_t *row, uint8_t *samples_buffer,
           uint8_t *out)
{
	const size_t width = file->header->width;

	if (!format->is_mapped) {
		leat_png_row(row, format->samples, format->bits / 8, out, file->channels, width);
		return true;
	}
	if (format->bits == 8)
		return leat_png_map_colors(&format->colors, row, out, file->channels, width);
	leat_png_unpack(row, (unsigned)format->bits, samples_buffer, width);
	return leat_png_map_colors(&format->colors, samples_buffer, out, file->channels, width);
}

/* Unfilters the row at `row`, and the next one too where that is faster; true: both. */
static bool
unfilter_rows(const struct row_format *format, const uint8_t *row, bool is_last, const uint8_t *above, uint8_t *to,
              size_t step)
{
	const uint8_t *next = row + format->row + 1;

	if (*row == LEAT_FILTER_PAETH && !is_last && *next == LEAT_FILTER_PAETH) {
		leat_unfilter_two(format->step, (const uint8_t *const[]){row + 1, next + 1}, above,
		                  (uint8_t *const[]){to, to + step}, format->row);
		return true;
	}
	if (to != row + 1 || *row != LEAT_FILTER_NONE)
		leat_unfilter(*row, format->step, row + 1, above, to, format->row);
	return false;
}

/* Rows that need no conversion are unfiltered straight to `out`, others in place. */
static bool
finish_rows(const struct file *file, const struct row_format *format, uint8_t *rows, const uint8_t *zeros,
            uint8_t *samples_buffer, uint8_t *out)
{
	const bool direct = !format->is_mapped && format->bits == 8 && format->samples == file->channels;
	const size_t height = file->header->height, out_row = file->header->width * file->channels;
	const size_t step = direct ? out_row : format->row + 1;
	uint8_t *to = direct ? out : rows + 1;
	const uint8_t *above = zeros;
	bool done = false; /* this row was unfiltered together with the previous one */

	for (size_t y = 0; y < height; y++, rows += format->row + 1, to += step, out += out_row) {
		if (*rows >= LEAT_FILTERS || (y % 16 == 0 && leat_scratch_stopped(file->scratch)))
			return false;
		done = !done && unfilter_rows(format, rows, y + 1 == height, above, to, step);
		above = to;
		if (!direct && !finish_row(file, format, to, samples_buffer, out))
			return false;
	}
	return true;
}

static bool
decode(struct file *file, struct leat_scratch *scratch, uint8_t *out)
{
	struct row_format *format = leat_scratch_alloc(scratch, sizeof(*format));
	uint8_t *rows, *zeros, *samples_buffer;
	size_t size;

	if (!format)
		return false;
	set_format(file, format);
	if (format->row + 1 > SIZE_MAX / file->header->height)
		return false;
	size = (format->row + 1) * file->header->height;
	if (scratch->stop && size > LARGE)
		return false;
	file->scratch = scratch;
	zeros = leat_scratch_alloc(scratch, format->row);
	samples_buffer = leat_scratch_alloc(scratch, format->bits < 8 ? file->header->width : 0);
	rows = leat_scratch_alloc(scratch, size);
	if (!zeros || !samples_buffer || !rows || !join_data(file, scratch) || !inflate_all(file, scratch, rows, size))
		return false;
	memset(zeros, 0, format->row);
	return finish_rows(file, format, rows, zeros, samples_buffer, out);
}

bool
leat_png_fast_pixels(const uint8_t *bytes, size_t size, const struct spng_ihdr *header, size_t channels, bool raw,
                     struct leat_scratch *scratch, uint8_t *out)
{
	struct file file = {.bytes = bytes, .size = size, .header = header, .channels = channels, .raw = raw};

	if (header->interlace_method || !read_chunks(&file) ||
	    (header->color_type == SPNG_COLOR_TYPE_INDEXED && !file.palette))
		return false;
	return decode(&file, scratch, out);
}
