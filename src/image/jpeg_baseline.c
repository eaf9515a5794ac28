/* jpeg_baseline.c - decode the scan of a baseline JPEG, MCU by MCU, to rows of pixels
 *
 * One row of MCUs at a time is decoded to a strip of samples, one plane per component, and the strip is converted to
 * pixels. Smooth upsampling needs one more row of chroma: the last row of each strip is kept above the next strip, and
 * the last row of pixels is made once the next strip is there.
 *
 * At reduced size blocks are smaller (jpeg_reduced.c). Chroma blocks then cover as many samples as the luma of an MCU,
 * so there is nothing to upsample.
 *
 * Only the wanted region is computed. MCUs above and beside it are entropy-decoded only, or skipped where there are
 * restart markers; everything below is ignored.
 *
 * Any thread. Memory comes from the scratch: a strip, and 38 KB of tables if they cannot be cached with it. */
#include "image/jpeg.h"

#include <string.h>

enum { MARGIN = 64, RST0 = 0xd0, EOI = 0xd9 };

/* The samples of a component in the strip. Row 0 is the last row of the previous strip. */
struct plane {
	uint8_t *rows;
	size_t stride;
	uint32_t width, height; /* of an MCU, in samples */
};

/* Where the samples of a block go. */
struct target {
	struct plane *plane;
	size_t offset;  /* in the strip, for the first MCU */
	size_t per_mcu; /* bytes from one MCU to the next */
	uint32_t rows, columns;
	leat_jpeg_idct *idct; /* the same for both of a pair; NULL: only the DC is used */
};

struct leat_jpeg_scan {
	const struct leat_jpeg_header *header;
	const struct leat_jpeg_kernels *kernels;
	const struct leat_scratch *scratch;
	struct leat_window part;
	uint8_t *out;
	size_t out_stride, lines; /* row y of the region goes to line y % lines */
	int channels;
	int halvings;
	enum leat_jpeg_dct dct;

	uint32_t height;                           /* of the whole image, reduced */
	uint32_t mcus_x, mcus_y;                   /* MCUs per row and column of the image */
	uint32_t first_x, last_x, first_y, last_y; /* MCUs needed */
	uint32_t chroma_width, chroma_height;      /* without padding to whole blocks */
	uint32_t step_x, step_y;                   /* 1 if chroma is subsampled by 2 in that direction */

	uint32_t next_y;   /* row of MCUs to read next */
	int64_t rows_done; /* rows of the region so far */

	struct leat_jpeg_bits bits;
	int dc[LEAT_JPEG_COMPONENTS];
	uint32_t until_restart, restarts;
	uint64_t skip; /* MCUs that have been skipped already */

	struct leat_jpeg_mcu mcu;
	struct target target[LEAT_JPEG_BLOCKS + 1]; /* one more to complete a pair */
	int16_t *coefficients;
	int16_t *quant; /* for each pair */
	struct plane plane[LEAT_JPEG_COMPONENTS];
	struct plane discarded;
	uint8_t *upsampled[2]; /* a row of cb and of cr, upsampled */
};

static bool
is_color(const struct leat_jpeg_scan *b)
{
	return b->header->components == 3 && b->channels != 1;
}

/* ---- setup ---- */

static uint32_t
ceil_shift(uint32_t value, uint32_t shift)
{
	return (value + (1u << shift) - 1) >> shift;
}

/* The first and last MCU, `size` pixels each, that hold pixels [from, to) and `margin` pixels on each side, whose
 * chroma is needed too. */
static void
choose_mcus(int64_t from, int64_t to, uint32_t size, uint32_t margin, uint32_t count, uint32_t *first, uint32_t *last)
{
	*first = (uint32_t)(from > margin ? from - margin : 0) / size;
	*last = (uint32_t)(to - 1 + margin) / size;
	if (*last >= count)
		*last = count - 1;
}

static void
measure(struct leat_jpeg_scan *b)
{
	const struct leat_jpeg_header *header = b->header;
	const struct leat_window *part = &b->part;
	const uint32_t h = header->component[0].h, v = header->component[0].v, size = 8u >> b->halvings;

	b->step_x = b->halvings ? 0 : h - 1;
	b->step_y = b->halvings ? 0 : v - 1;
	b->chroma_width = ceil_shift(header->width, b->step_x);
	b->chroma_height = ceil_shift(header->height, b->step_y);
	b->height = ceil_shift(header->height, (uint32_t)b->halvings);
	b->mcus_x = ceil_shift(header->width, 3 + h - 1);
	b->mcus_y = ceil_shift(header->height, 3 + v - 1);
	choose_mcus(part->left, part->left + part->width, size * h, is_color(b) ? 2 * b->step_x : 0, b->mcus_x,
	            &b->first_x, &b->last_x);
	choose_mcus(part->top, part->top + part->height, size * v, is_color(b) ? 2 * b->step_y : 0, b->mcus_y,
	            &b->first_y, &b->last_y);
}

static bool
alloc_plane(struct leat_jpeg_scan *b, struct plane *plane, uint32_t width, uint32_t height,
            struct leat_scratch *scratch)
{
	uint8_t *memory;

	plane->stride = MARGIN + (size_t)(b->last_x - b->first_x + 1) * width + LEAT_JPEG_SLACK;
	plane->width = width;
	plane->height = height;
	memory = leat_scratch_alloc(scratch, plane->stride * (1 + height));
	plane->rows = memory ? memory + MARGIN : NULL;
	return memory;
}

static bool
alloc_planes(struct leat_jpeg_scan *b, struct leat_scratch *scratch)
{
	const struct leat_jpeg_component *luma = &b->header->component[0];

	for (int i = 0; i < b->header->components; i++) {
		/* At reduced size all components have the size of luma. */
		const struct leat_jpeg_component *c = b->halvings ? luma : &b->header->component[i];
		const uint32_t size = 8u >> b->halvings;

		if (!alloc_plane(b, &b->plane[i], size * c->h, size * c->v, scratch))
			return false;
	}
	for (int i = 0; i < 2; i++) {
		b->upsampled[i] = leat_scratch_alloc(scratch, (size_t)b->part.width + 4 + LEAT_JPEG_SLACK);
		if (!b->upsampled[i])
			return false;
	}
	return alloc_plane(b, &b->discarded, 8, 8, scratch);
}

static leat_jpeg_idct *
choose_idct(const struct leat_jpeg_scan *b, uint32_t rows, uint32_t columns)
{
	if (!b->halvings)
		return b->kernels->idct[b->dct];
	return b->kernels->reduced[__builtin_ctz(rows)][__builtin_ctz(columns)];
}

/* The blocks of a component, row by row. Both blocks of a pair have the same size: they belong to the same component,
 * or are both chroma, or chroma is not subsampled. */
static void
add_blocks(struct leat_jpeg_scan *b, int i, const struct leat_jpeg_dc *dc, const struct leat_jpeg_ac *ac)
{
	const struct leat_jpeg_component *c = &b->header->component[i];
	struct leat_jpeg_mcu *mcu = &b->mcu;
	struct plane *plane = &b->plane[i];
	const uint32_t rows = plane->height / c->v, columns = plane->width / c->h;
	leat_jpeg_idct *const idct = choose_idct(b, rows, columns);

	for (size_t k = 0; k < (size_t)c->h * c->v; k++) {
		b->target[mcu->blocks] = (struct target){
			.plane = plane,
			.offset = plane->stride * (1 + rows * (k / c->h)) + columns * (k % c->h),
			.per_mcu = plane->width,
			.rows = rows,
			.columns = columns,
			.idct = idct,
		};
		mcu->block[mcu->blocks++] = (struct leat_jpeg_block){
			.dc = dc,
			.ac = ac,
			.component = (uint8_t)i,
			.wanted = idct && (i == 0 || is_color(b)),
		};
	}
}

static enum leat_jpeg_result
build_mcu(struct leat_jpeg_scan *b, struct leat_scratch *scratch)
{
	struct leat_jpeg_tables *tables = leat_jpeg_tables_of(scratch);

	if (!tables)
		return LEAT_JPEG_FULL;
	for (int i = 0; i < b->header->components; i++) {
		const struct leat_jpeg_component *c = &b->header->component[i];
		const struct leat_jpeg_dc *dc;
		const struct leat_jpeg_ac *ac;

		if (c->dc >= LEAT_JPEG_CODES || c->ac >= LEAT_JPEG_CODES)
			return LEAT_JPEG_IRREGULAR;
		dc = leat_jpeg_dc_table(tables, c->dc, b->header->code[0][c->dc]);
		ac = leat_jpeg_ac_table(tables, c->ac, b->header->code[1][c->ac]);
		if (!dc || !ac)
			return LEAT_JPEG_IRREGULAR;
		add_blocks(b, i, dc, ac);
	}
	b->target[b->mcu.blocks] = (struct target){.plane = &b->discarded, .offset = b->discarded.stride};
	return LEAT_JPEG_DONE;
}

static enum leat_jpeg_result
build_quants(struct leat_jpeg_scan *b, struct leat_scratch *scratch)
{
	const struct leat_jpeg_header *header = b->header;
	size_t pairs = (size_t)(b->mcu.blocks + 1) / 2;

	b->coefficients = leat_scratch_alloc(scratch, pairs * LEAT_JPEG_PAIR * sizeof(*b->coefficients));
	b->quant = leat_scratch_alloc(scratch, pairs * LEAT_JPEG_PAIR * sizeof(*b->quant));
	if (!b->coefficients || !b->quant)
		return LEAT_JPEG_FULL;
	for (size_t i = 0; i < pairs; i++) {
		int first = b->mcu.block[2 * i].component, second = b->mcu.block[2 * i + 1].component;

		leat_jpeg_quant_build(b->dct, b->quant + i * LEAT_JPEG_PAIR,
		                      header->quant[header->component[first].quant],
		                      header->quant[header->component[second].quant]);
	}
	return LEAT_JPEG_DONE;
}

/* ---- MCUs ---- */

/* All data was used, up to the padding of the last byte, and no more than that. */
static bool
is_used_up(const struct leat_jpeg_bits *bits)
{
	return bits->count >= bits->padding && bits->count - bits->padding < 8;
}

static bool
marker_follows(const struct leat_jpeg_scan *b, uint32_t marker)
{
	const uint8_t *at = b->bits.at;

	return is_used_up(&b->bits) && b->mcu.end - at >= 2 && at[0] == 0xff && at[1] == marker;
}

static void
start_bits(struct leat_jpeg_scan *b, const uint8_t *at)
{
	b->bits = (struct leat_jpeg_bits){.at = at, .clear = at - 9};
	b->until_restart = b->header->interval;
	memset(b->dc, 0, sizeof(b->dc));
}

/* Number of MCUs, starting with this one, before the next one that is needed. */
static uint64_t
count_unwanted(const struct leat_jpeg_scan *b, uint32_t x, uint32_t y)
{
	uint32_t next_y = y;

	if (y < b->first_y)
		next_y = b->first_y;
	else if (x > b->last_x && y < b->last_y)
		next_y = y + 1;
	else if (x >= b->first_x)
		return 0;
	return (uint64_t)(next_y - y) * b->mcus_x + b->first_x - x;
}

/* NULL: no marker left. */
static const uint8_t *
next_marker(const uint8_t *at, const uint8_t *end)
{
	while ((at = memchr(at, 0xff, (size_t)(end - at))) && end - at >= 2) {
		if (at[1])
			return at;
		at += 2;
	}
	return NULL;
}

/* At the start of an interval: skips to the marker before the first interval that is needed. */
static bool
skip_intervals(struct leat_jpeg_scan *b, uint32_t x, uint32_t y)
{
	const uint64_t count = count_unwanted(b, x, y) / b->header->interval;
	const uint8_t *at = b->bits.at;

	for (uint64_t i = 0; i < count; i++) {
		if (i && at[1] != RST0 + (b->restarts++ & 7))
			return false;
		at = next_marker(i ? at + 2 : at, b->mcu.end);
		if (!at)
			return false;
	}
	if (count)
		start_bits(b, at);
	b->skip = count * b->header->interval;
	return true;
}

static bool
restart(struct leat_jpeg_scan *b, uint32_t x, uint32_t y)
{
	if (!marker_follows(b, RST0 + (b->restarts++ & 7)))
		return false;
	start_bits(b, b->bits.at + 2);
	return skip_intervals(b, x, y);
}

static void
fill_block(uint8_t sample, uint8_t *out, size_t stride, uint32_t rows, uint32_t columns)
{
	const uint64_t samples = sample * UINT64_C(0x0101010101010101);

	for (; rows--; out += stride)
		switch (columns) { /* constant lengths avoid a call */
		case 8:
			memcpy(out, &samples, 8);
			break;
		case 4:
			memcpy(out, &samples, 4);
			break;
		default:
			memset(out, sample, columns);
		}
}

/* Coefficients to samples, two blocks at a time. */
static void
write_mcu(struct leat_jpeg_scan *b, uint32_t x, int has_ac)
{
	for (int i = 0; i < b->mcu.blocks; i += 2) {
		const int16_t *pair = b->coefficients + i / 2 * LEAT_JPEG_PAIR,
			      *quant = b->quant + i / 2 * LEAT_JPEG_PAIR;
		const struct target *target = &b->target[i];
		size_t column = x - b->first_x;
		uint8_t *to[2];

		if (b->mcu.block[i].component && !is_color(b))
			continue;
		for (int k = 0; k < 2; k++)
			to[k] = target[k].plane->rows + target[k].offset + column * target[k].per_mcu;
		if (has_ac >> i & 3 && target->idct) {
			target->idct(pair, quant, to[0], target[0].plane->stride, to[1], target[1].plane->stride);
			continue;
		}
		for (int k = 0; k < 2; k++)
			fill_block(leat_jpeg_flat(b->dct, pair[8 * k], quant[8 * k]), to[k], target[k].plane->stride,
			           target->rows, target->columns);
	}
}

static bool
read_strip(struct leat_jpeg_scan *b, uint32_t y)
{
	/* The last row of the image is read to its end, to check that it is complete. */
	const uint32_t end = y == b->last_y && y < b->mcus_y - 1 ? b->last_x + 1 : b->mcus_x;

	for (uint32_t x = 0; x < end; x++) {
		const bool wanted = y >= b->first_y && x >= b->first_x && x <= b->last_x;
		int has_ac;

		if (!b->skip && b->header->interval && b->until_restart-- == 0) {
			if (!restart(b, x, y))
				return false;
			b->until_restart--;
		}
		if (b->skip) {
			if (!--b->skip)
				b->until_restart = 0;
			continue;
		}
		has_ac = b->kernels->read_mcu(&b->bits, &b->mcu, b->dc, b->coefficients, wanted);
		if (has_ac < 0)
			return false;
		if (wanted)
			write_mcu(b, x, has_ac);
	}
	return b->bits.count >= b->bits.padding;
}

/* ---- pixels ---- */

/* Repeats the first and last sample of the image beyond its sides. */
static void
extend_chroma(struct leat_jpeg_scan *b)
{
	for (int i = 1; i < 3; i++) {
		struct plane *plane = &b->plane[i];
		size_t end = b->chroma_width - 8 * (size_t)b->first_x;

		for (size_t row = 1; row <= 8; row++) {
			uint8_t *samples = plane->rows + row * plane->stride;

			if (!b->first_x)
				samples[-1] = samples[0];
			if (b->last_x == b->mcus_x - 1)
				samples[end] = samples[end - 1];
		}
	}
}

/* The row of a plane that holds row `y` of the component; y counts from the top of the image. */
static const uint8_t *
plane_row(const struct plane *plane, uint32_t y, uint32_t strip)
{
	return plane->rows + (size_t)(1 + y - strip * plane->height) * plane->stride;
}

static const uint8_t *
chroma_row(struct leat_jpeg_scan *b, int i, uint32_t y, uint32_t strip)
{
	const struct leat_jpeg_kernels *k = b->kernels;
	const struct plane *plane = &b->plane[1 + i];
	uint32_t first = (uint32_t)b->part.left >> b->step_x, near_y = y >> b->step_y, far_y = near_y;
	size_t count = ((uint32_t)(b->part.left + b->part.width - 1) >> b->step_x) - first + 1;
	const uint8_t *near, *far;

	if (b->step_y && y & 1)
		far_y = near_y + 1 < b->chroma_height ? near_y + 1 : near_y;
	else if (b->step_y)
		far_y = near_y ? near_y - 1 : 0;
	first -= plane->width * b->first_x;
	near = plane_row(plane, near_y, strip) + first;
	far = plane_row(plane, far_y, strip) + first;
	if (!b->step_x && !b->step_y)
		return near;
	(b->step_x ? b->step_y ? k->h2v2 : k->h2v1 : k->h1v2)(near, far, b->upsampled[i], count, y & 1);
	return b->upsampled[i] + (b->part.left & b->step_x);
}

static void
write_row(struct leat_jpeg_scan *b, uint32_t y, uint32_t strip)
{
	const struct leat_jpeg_kernels *k = b->kernels;
	const size_t width = (size_t)b->part.width, left = (size_t)b->part.left - (size_t)b->first_x * b->plane->width;
	const uint8_t *luma = plane_row(&b->plane[0], y, strip) + left, *cb = NULL, *cr = NULL;
	uint8_t *out = b->out + (size_t)(y - b->part.top) % b->lines * b->out_stride;

	if (b->channels == 1) {
		memcpy(out, luma, width);
	} else if (!is_color(b)) {
		(b->channels == 3 ? k->gray_rgb : k->gray_rgba)(luma, cb, cr, out, width);
	} else {
		cb = chroma_row(b, 0, y, strip);
		cr = chroma_row(b, 1, y, strip);
		(b->channels == 3 ? k->rgb : k->rgba)(luma, cb, cr, out, width);
	}
}

/* All rows whose samples are there. With vertically subsampled chroma this lags one row behind the strip. */
static void
write_strip(struct leat_jpeg_scan *b, uint32_t strip)
{
	const uint32_t height = b->plane->height, lag = is_color(b) ? b->step_y : 0;
	uint32_t from = strip * height, to = from + height - lag;

	if (strip > b->first_y)
		from -= lag;
	if (strip == b->mcus_y - 1)
		to = b->height;
	if (from < b->part.top)
		from = (uint32_t)b->part.top;
	if (to > b->part.top + b->part.height)
		to = (uint32_t)(b->part.top + b->part.height);
	if (is_color(b) && b->step_x)
		extend_chroma(b);
	for (uint32_t y = from; y < to; y++)
		write_row(b, y, strip);
	b->rows_done = to - b->part.top;
	for (int i = 0; lag && i < 3; i++) {
		struct plane *plane = &b->plane[i];

		memcpy(plane->rows - MARGIN, plane->rows - MARGIN + plane->height * plane->stride, plane->stride);
	}
}

static enum leat_jpeg_result
set_up(struct leat_jpeg_scan *b, struct leat_scratch *scratch)
{
	enum leat_jpeg_result result;

	measure(b);
	if (!alloc_planes(b, scratch))
		return LEAT_JPEG_FULL;
	result = build_mcu(b, scratch);
	if (result == LEAT_JPEG_DONE)
		result = build_quants(b, scratch);
	if (result != LEAT_JPEG_DONE)
		return result;
	b->mcu.end = b->header->end;
	start_bits(b, b->header->scan);
	if (b->header->interval && !skip_intervals(b, 0, 0))
		return LEAT_JPEG_IRREGULAR;
	return LEAT_JPEG_DONE;
}

enum leat_jpeg_result
leat_jpeg_scan_begin(struct leat_jpeg_scan **scan, const struct leat_jpeg_header *header,
                     const struct leat_decoding *how, int halvings, const struct leat_window *part,
                     const struct leat_jpeg_lines *lines, const struct leat_jpeg_kernels *kernels,
                     struct leat_scratch *scratch)
{
	struct leat_jpeg_scan *b = leat_scratch_alloc(scratch, sizeof(*b));

	if (!b)
		return LEAT_JPEG_FULL;
	*b = (struct leat_jpeg_scan){.header = header,
	                             .kernels = kernels,
	                             .scratch = scratch,
	                             .part = *part,
	                             .out = lines->first,
	                             .out_stride = lines->stride,
	                             .lines = lines->count,
	                             .channels = how->channels,
	                             .halvings = halvings,
	                             .dct = halvings ? LEAT_JPEG_SLOW : leat_jpeg_dct_of(how)};
	*scan = b;
	return set_up(b, scratch);
}

/* For all rows, reads on to the end of the scan even if the last row is there already, to check it. */
int64_t
leat_jpeg_scan_rows(struct leat_jpeg_scan *b, int64_t rows)
{
	const bool all = rows >= b->part.height;

	while (b->next_y <= b->last_y && (all || b->rows_done < rows)) {
		if (leat_scratch_stopped(b->scratch) || !read_strip(b, b->next_y))
			return -1;
		if (b->next_y >= b->first_y)
			write_strip(b, b->next_y);
		b->next_y++;
	}
	if (all && b->last_y == b->mcus_y - 1 && !marker_follows(b, EOI))
		return -1;
	return b->rows_done;
}

enum leat_jpeg_result
leat_jpeg_baseline(const struct leat_jpeg_header *header, const struct leat_decoding *how, int halvings,
                   const struct leat_window *part, uint8_t *out, size_t stride, const struct leat_jpeg_kernels *kernels,
                   struct leat_scratch *scratch)
{
	const struct leat_jpeg_lines lines = {out, stride, (size_t)part->height};
	const size_t mark = scratch->used;
	struct leat_jpeg_scan *scan;
	enum leat_jpeg_result result =
		leat_jpeg_scan_begin(&scan, header, how, halvings, part, &lines, kernels, scratch);

	if (result == LEAT_JPEG_DONE && leat_jpeg_scan_rows(scan, part->height) < 0)
		result = LEAT_JPEG_IRREGULAR;
	scratch->used = mark;
	return result;
}
