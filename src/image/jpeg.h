/* jpeg.h - the parts of the JPEG decoder; private to src/image
 *
 * Most files are baseline: one scan, Huffman codes, 8 bits, gray or YCbCr. These are decoded here, to the bytes that
 * libjpeg-turbo gives (fast or slow integer DCT, smooth upsampling) in less than two thirds of its time. Anything rare
 * or irregular is left to the library (jpeg_turbo.c), which also decides what is an error: a function here that returns
 * false just means "use the library".
 *
 * jpeg_header.c parses the segments before the scan. jpeg_huffman.c decodes the entropy-coded data to coefficients,
 * with the tables that jpeg_tables.c caches. jpeg_idct.c turns coefficients into samples, or jpeg_reduced.c into fewer
 * samples at reduced size. jpeg_rows.c upsamples and converts colors. jpeg_baseline.c drives them, MCU by MCU. An MCU
 * is the smallest unit of a scan: the 8x8 blocks of all components that cover the same pixels, up to 16x16. */
#ifndef LEAT_IMAGE_JPEG_H
#define LEAT_IMAGE_JPEG_H

#include <stdbool.h>

#include "image/codec.h"

enum {
	LEAT_JPEG_COMPONENTS = 3,
	LEAT_JPEG_BLOCKS = 6, /* per MCU, at most: luma 2x2, chroma 1 + 1 */
	LEAT_JPEG_PAIR = 128, /* coefficients of two blocks, side by side: row r of block b is at 16 * r + 8 * b */
};

/* ---- jpeg_header.c ---- */

struct leat_jpeg_component {
	uint8_t id, h, v; /* h, v: blocks per MCU in each direction */
	uint8_t quant, dc, ac;
};

/* The header of a baseline file; the pointers point into the file. */
struct leat_jpeg_header {
	uint32_t width, height;
	uint32_t interval; /* MCUs between restart markers; 0: no markers */
	int components;    /* 1: gray; 3: YCbCr */
	struct leat_jpeg_component component[LEAT_JPEG_COMPONENTS];
	const uint8_t *quant[4];   /* 64 values in zigzag order; NULL: not defined */
	const uint8_t *code[2][4]; /* DC and AC Huffman codes: 16 counts, then up to 256 symbols */
	const uint8_t *scan, *end;
};

/* leat_decode_size, and a check that `size` bytes of a file can hold so many pixels. */
enum leat_status leat_jpeg_size(struct leat_decode *decode, uint32_t width, uint32_t height, size_t size,
                                struct leat_err *err);

bool leat_jpeg_header_read(struct leat_jpeg_header *header, const uint8_t *bytes, size_t size);

/* ---- jpeg_huffman.c ---- */

enum { LEAT_JPEG_DC_BITS = 9, LEAT_JPEG_AC_BITS = 11 };

/* For codes too long for a table lookup. Left-aligned to 16 bits, codes of n bits are below limit[n]. */
struct leat_jpeg_codes {
	uint32_t limit[17];
	int32_t offset[17]; /* symbol[code + offset[n]] */
	const uint8_t *symbol;
};

struct leat_jpeg_dc {
	struct {
		uint8_t code, size; /* bits of the code, of the magnitude; code 0: too long for the table */
	} entry[1 << LEAT_JPEG_DC_BITS];
	struct leat_jpeg_codes codes;
};

/* Up to two coefficients per lookup. The lookup bits hold all of the first, and at least the code of the second. */
struct leat_jpeg_two {
	uint8_t total;         /* bits of both; 0: decode without the table */
	uint8_t advance;       /* coefficients to move on by both; 64 and more: the block ends, or `total` is 0 */
	uint8_t first;         /* bits of the first */
	uint8_t advance1;      /* coefficients to move on by the first; 0: no coefficient, the block ends */
	uint8_t code2, shift2; /* offset of the second's magnitude, and 64 - its bits */
	int16_t value1;
};

struct leat_jpeg_ac {
	struct leat_jpeg_two entry[1 << LEAT_JPEG_AC_BITS];
	struct leat_jpeg_codes codes;
};

/* `counts`: the number of codes of 1 to 16 bits, then the symbols. False: not a valid code of a baseline file. */
bool leat_jpeg_dc_build(struct leat_jpeg_dc *dc, const uint8_t *counts);
bool leat_jpeg_ac_build(struct leat_jpeg_ac *ac, const uint8_t *counts);

/* ---- jpeg_tables.c ---- */

enum { LEAT_JPEG_CODES = 2 }; /* codes for DC, and for AC, in a baseline file */

/* The tables cached with the scratch or, if that is not possible, new ones for this image. NULL: no scratch left. */
struct leat_jpeg_tables *leat_jpeg_tables_of(struct leat_scratch *scratch);
/* The table for a code, number `which` of LEAT_JPEG_CODES. NULL: not a valid code of a baseline file. */
const struct leat_jpeg_dc *leat_jpeg_dc_table(struct leat_jpeg_tables *tables, unsigned which, const uint8_t *code);
const struct leat_jpeg_ac *leat_jpeg_ac_table(struct leat_jpeg_tables *tables, unsigned which, const uint8_t *code);

/* ---- jpeg_huffman.c, again ---- */

/* The bit reader. The order of members keeps gcc from packing neighbors into one vector register. */
struct leat_jpeg_bits {
	uint64_t buffer; /* the next bit is the most significant */
	unsigned count;
	const uint8_t *at;
	unsigned padding;     /* zero bits at the end of the buffer, made up after a marker or the end of the file */
	const uint8_t *clear; /* no byte from `at` to clear + 7 is 0xff; if `clear` is before `at`: not known */
};

struct leat_jpeg_block {
	const struct leat_jpeg_dc *dc;
	const struct leat_jpeg_ac *ac;
	uint8_t component;
	bool wanted;
};

struct leat_jpeg_mcu {
	struct leat_jpeg_block block[LEAT_JPEG_BLOCKS];
	int blocks;
	const uint8_t *end; /* of the file */
};

/* Decodes one MCU. The coefficients of wanted blocks go to pairs of LEAT_JPEG_PAIR; of the other blocks of a wanted MCU
 * only the DC does. Returns a bit for each block that has AC coefficients, or -1: invalid data. */
typedef int leat_jpeg_read_mcu(struct leat_jpeg_bits *bits, const struct leat_jpeg_mcu *mcu, int *dc,
                               int16_t *coefficients, bool wanted);

/* ---- jpeg_idct.c ---- */

/* The two transforms: TensorFlow's, and Pillow's, which is more accurate. */
enum leat_jpeg_dct { LEAT_JPEG_FAST, LEAT_JPEG_SLOW, LEAT_JPEG_DCTS };
enum leat_jpeg_dct leat_jpeg_dct_of(const struct leat_decoding *how);

/* Factors of the fast one, with 8 fraction bits. */
enum { LEAT_JPEG_1_082 = 277, LEAT_JPEG_1_414 = 362, LEAT_JPEG_1_847 = 473, LEAT_JPEG_1_613 = 413 };
/* Fraction bits of its input and output. */
enum { LEAT_JPEG_IN_BITS = 2, LEAT_JPEG_OUT_BITS = 5 };

/* Factors of the slow one, with LEAT_JPEG_FACTOR_BITS fraction bits. */
enum {
	LEAT_JPEG_0_298 = 2446,
	LEAT_JPEG_0_390 = 3196,
	LEAT_JPEG_0_541 = 4433,
	LEAT_JPEG_0_765 = 6270,
	LEAT_JPEG_0_899 = 7373,
	LEAT_JPEG_1_175 = 9633,
	LEAT_JPEG_1_501 = 12299,
	LEAT_JPEG_1_848 = 15137,
	LEAT_JPEG_1_961 = 16069,
	LEAT_JPEG_2_053 = 16819,
	LEAT_JPEG_2_563 = 20995,
	LEAT_JPEG_3_073 = 25172,
};
enum { LEAT_JPEG_FACTOR_BITS = 13 };
/* Fraction bits between its passes, and the bits of gain of two passes, sqrt(8) each. */
enum { LEAT_JPEG_PASS_BITS = 2, LEAT_JPEG_GAIN_BITS = 3 };

/* The factors for dequantization (and scaling, for the fast one), laid out as a pair of blocks. */
void leat_jpeg_quant_build(enum leat_jpeg_dct dct, int16_t *quant, const uint8_t *a, const uint8_t *b);
/* The value of all samples of a block that has only a DC. */
uint8_t leat_jpeg_flat(enum leat_jpeg_dct dct, int dc, int quant);
/* Transforms two blocks to samples, in rows `stride` bytes apart. */
typedef void leat_jpeg_idct(const int16_t *pair, const int16_t *quant, uint8_t *a, size_t a_stride, uint8_t *b,
                            size_t b_stride);

/* Shared with jpeg_reduced.c: to 16 bits that wrap around or saturate, to a sample, and 8 values `step` apart. */
static inline int16_t
leat_jpeg_wrap(int value)
{
	return (int16_t)value;
}

static inline int16_t
leat_jpeg_saturate(int value)
{
	return (int16_t)(value < INT16_MIN ? INT16_MIN : value > INT16_MAX ? INT16_MAX : value);
}

static inline uint8_t
leat_jpeg_to_sample(int value)
{
	return (uint8_t)(value < -128 ? 0 : value > 127 ? 255 : value + 128);
}

void leat_jpeg_transform_slow(const int16_t *in, int *out, size_t step, int shift);

/* ---- jpeg_reduced.c ---- */

/* Transform two blocks to rows x columns samples. They use the factors of the slow transform. */
leat_jpeg_idct leat_jpeg_idct_1x2, leat_jpeg_idct_2x1, leat_jpeg_idct_2x2, leat_jpeg_idct_2x4, leat_jpeg_idct_4x2,
	leat_jpeg_idct_4x4, leat_jpeg_idct_4x8, leat_jpeg_idct_8x4;

/* ---- jpeg_rows.c ---- */

/* Upsamples `count` chroma samples. When it doubles the width, it reads one sample before and after the input. May read
 * and write up to LEAT_JPEG_SLACK bytes past the end. */
enum { LEAT_JPEG_SLACK = 64 };
typedef void leat_jpeg_upsample(const uint8_t *near, const uint8_t *far, uint8_t *out, size_t count, bool below);
/* Converts a row to pixels. May read, but not write, LEAT_JPEG_SLACK bytes past the end. Gray ignores cb and cr. */
typedef void leat_jpeg_color(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *out, size_t count);

/* ---- all kernels for one kind of CPU ---- */

struct leat_jpeg_kernels {
	leat_jpeg_read_mcu *read_mcu;
	leat_jpeg_idct *idct[LEAT_JPEG_DCTS];
	leat_jpeg_idct
		*reduced[4][4]; /* [i][k]: to 2^i rows and 2^k columns; NULL: never needed, or the DC is enough */
	leat_jpeg_upsample *h2v1, *h2v2, *h1v2;
	leat_jpeg_color *gray_rgb, *gray_rgba, *rgb, *rgba;
};

extern const struct leat_jpeg_kernels leat_jpeg_plain;
/* The fastest for this CPU: jpeg_avx2.c's or the plain ones. All return the same bytes. */
const struct leat_jpeg_kernels *leat_jpeg_fastest(void);

leat_jpeg_read_mcu leat_jpeg_read_mcu_plain, leat_jpeg_read_mcu_bmi2;
leat_jpeg_idct leat_jpeg_idct_fast, leat_jpeg_idct_slow;

/* ---- jpeg_baseline.c ---- */

enum leat_jpeg_result { LEAT_JPEG_DONE, LEAT_JPEG_FULL, LEAT_JPEG_IRREGULAR };

/* A ring of lines for decoded rows: row y goes to line y % count. */
struct leat_jpeg_lines {
	uint8_t *first;
	size_t stride, count;
};
enum { LEAT_JPEG_STRIP = 17 }; /* rows that may be decoded at once */

/* Decodes `part` of the image, reduced by `halvings` (see leat_decode_reduced), to 1, 3 or 4 channels, some rows at a
 * time. What it takes from the scratch has to stay until the last row. FULL: not enough scratch. */
struct leat_jpeg_scan;
enum leat_jpeg_result leat_jpeg_scan_begin(struct leat_jpeg_scan **scan, const struct leat_jpeg_header *header,
                                           const struct leat_decoding *how, int halvings,
                                           const struct leat_window *part, const struct leat_jpeg_lines *lines,
                                           const struct leat_jpeg_kernels *kernels, struct leat_scratch *scratch);
/* Decodes until `rows` rows are there; for all rows, to the end of the scan. Returns how many are; -1: irregular. */
int64_t leat_jpeg_scan_rows(struct leat_jpeg_scan *scan, int64_t rows);

/* Decodes all rows. IRREGULAR: parts of `out` may have been written. */
enum leat_jpeg_result leat_jpeg_baseline(const struct leat_jpeg_header *header, const struct leat_decoding *how,
                                         int halvings, const struct leat_window *part, uint8_t *out, size_t stride,
                                         const struct leat_jpeg_kernels *kernels, struct leat_scratch *scratch);

/* ---- jpeg_turbo.c ---- */

extern const struct leat_codec leat_codec_jpeg_turbo;

#endif
