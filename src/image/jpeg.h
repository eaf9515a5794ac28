/* jpeg.h - the parts of the JPEG decoder; private to src/image
 *
 * Most files are baseline: one scan, Huffman codes, 8 bits, gray or YCbCr. Those are decoded here, with the bytes that
 * libjpeg-turbo gives (fast or slow integer DCT, smooth upsampling) and in less than two thirds of its time. Whatever
 * is rare or looks irregular is left to the library (jpeg_turbo.c), which also has the last word on what is an error: a
 * function here that returns false says no more than "not by me".
 *
 * jpeg_header.c reads the segments before the scan, jpeg_huffman.c makes coefficients of its bits with the tables that
 * jpeg_tables.c keeps, jpeg_idct.c makes samples of those, or jpeg_reduced.c fewer than there are, jpeg_rows.c makes
 * pixels, jpeg_baseline.c goes from MCU to MCU. An MCU is the smallest piece of a scan: the blocks of 8x8 samples that
 * cover the same pixels, up to 16x16 of them. */
#ifndef LEAT_IMAGE_JPEG_H
#define LEAT_IMAGE_JPEG_H

#include <stdbool.h>

#include "image/codec.h"

enum {
	LEAT_JPEG_COMPONENTS = 3,
	LEAT_JPEG_BLOCKS = 6, /* of an MCU, at most: luma 2x2, chroma 1 + 1 */
	LEAT_JPEG_PAIR = 128, /* coefficients of two blocks, side by side: row r of block b is at 16 * r + 8 * b */
};

/* ---- jpeg_header.c ---- */

struct leat_jpeg_component {
	uint8_t id, h, v; /* blocks in an MCU, in each direction */
	uint8_t quant, dc, ac;
};

/* What a baseline file says of itself; the pointers lead into it. */
struct leat_jpeg_header {
	uint32_t width, height;
	uint32_t interval; /* MCUs between restart markers; 0: there are none */
	int components;    /* 1: gray; 3: YCbCr */
	struct leat_jpeg_component component[LEAT_JPEG_COMPONENTS];
	const uint8_t *quant[4];   /* 64 values in zigzag order; NULL: not defined */
	const uint8_t *code[2][4]; /* of DC and AC coefficients: 16 counts, then the symbols, 256 at most */
	const uint8_t *scan, *end;
};

bool leat_jpeg_header_read(struct leat_jpeg_header *header, const uint8_t *bytes, size_t size);

/* ---- jpeg_huffman.c ---- */

enum { LEAT_JPEG_DC_BITS = 9, LEAT_JPEG_AC_BITS = 11 };

/* Codes too long for a look-up. Those of n bits lie below limit[n], when both begin at bit 15. */
struct leat_jpeg_codes {
	uint32_t limit[17];
	int32_t offset[17]; /* symbol[code + offset[n]] */
	const uint8_t *symbol;
};

struct leat_jpeg_dc {
	struct {
		uint8_t code, size; /* bits; code 0: too long for the table */
	} entry[1 << LEAT_JPEG_DC_BITS];
	struct leat_jpeg_codes codes;
};

/* Up to two coefficients by one look-up: all of the first lies within the looked up bits, of the second at least its
 * code. */
struct leat_jpeg_two {
	uint8_t total;         /* bits of both; 0: look closer */
	uint8_t advance;       /* places of both; 64 and more: the block ends behind the first, or look closer */
	uint8_t first;         /* bits of the first */
	uint8_t advance1;      /* its places; 0: there is none, the block ends */
	uint8_t code2, shift2; /* where the second's magnitude begins, and 64 less its bits */
	int16_t value1;
};

struct leat_jpeg_ac {
	struct leat_jpeg_two entry[1 << LEAT_JPEG_AC_BITS];
	struct leat_jpeg_codes codes;
};

/* `counts`: how many codes have 1 to 16 bits, the symbols behind them. False: no code that a baseline file may have. */
bool leat_jpeg_dc_build(struct leat_jpeg_dc *dc, const uint8_t *counts);
bool leat_jpeg_ac_build(struct leat_jpeg_ac *ac, const uint8_t *counts);

/* ---- jpeg_tables.c ---- */

enum { LEAT_JPEG_CODES = 2 }; /* of DC and of AC, that a baseline file may have */

/* The tables of the scratch's last image; if they cannot be kept there, new ones of this image. NULL: it is full. */
struct leat_jpeg_tables *leat_jpeg_tables_of(struct leat_scratch *scratch);
/* The table of a code, `which` of LEAT_JPEG_CODES. NULL: it is none that a baseline file may have. */
const struct leat_jpeg_dc *leat_jpeg_dc_table(struct leat_jpeg_tables *tables, unsigned which, const uint8_t *code);
const struct leat_jpeg_ac *leat_jpeg_ac_table(struct leat_jpeg_tables *tables, unsigned which, const uint8_t *code);

/* ---- jpeg_huffman.c, again ---- */

/* In an order that keeps gcc from putting neighbours into one vector register, where they are out of reach. */
struct leat_jpeg_bits {
	uint64_t buffer; /* the next bit is the highest */
	unsigned count;
	const uint8_t *at;
	unsigned padding; /* bits at the end of the buffer that were not there: a marker or the end of the file came */
	const uint8_t *clear; /* from `at` to 8 bytes behind this one, none is 0xff; before `at`: not known */
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
	const uint8_t *end; /* of the bytes */
};

/* One MCU. The coefficients of blocks that are wanted go, two and two, to pairs of LEAT_JPEG_PAIR; of other blocks of
 * an MCU that is wanted, the DC alone. Returns a bit for each block that is more than its DC, or -1. */
typedef int leat_jpeg_read_mcu(struct leat_jpeg_bits *bits, const struct leat_jpeg_mcu *mcu, int *dc,
                               int16_t *coefficients, bool wanted);

/* ---- jpeg_idct.c ---- */

/* Two transforms: that of TensorFlow, and that of Pillow, which is closer to real numbers. */
enum leat_jpeg_dct { LEAT_JPEG_FAST, LEAT_JPEG_SLOW, LEAT_JPEG_DCTS };
enum leat_jpeg_dct leat_jpeg_dct_of(const struct leat_decoding *how);

/* Factors of the fast one, with 8 bits behind the point. */
enum { LEAT_JPEG_1_082 = 277, LEAT_JPEG_1_414 = 362, LEAT_JPEG_1_847 = 473, LEAT_JPEG_1_613 = 413 };
/* Bits behind the point: of what goes in, and of what comes out. */
enum { LEAT_JPEG_IN_BITS = 2, LEAT_JPEG_OUT_BITS = 5 };

/* Factors of the slow one, with LEAT_JPEG_FACTOR_BITS behind the point; so are sums of two. */
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
/* Bits behind the point between its passes, and those that come with two passes of a gain of sqrt(8) each. */
enum { LEAT_JPEG_PASS_BITS = 2, LEAT_JPEG_GAIN_BITS = 3 };

/* Dequantization, and for the fast one scaling, laid out as a pair of blocks. */
void leat_jpeg_quant_build(enum leat_jpeg_dct dct, int16_t *quant, const uint8_t *a, const uint8_t *b);
/* All samples of a block that is no more than its DC. */
uint8_t leat_jpeg_flat(enum leat_jpeg_dct dct, int dc, int quant);
/* Two blocks to samples, each in rows `stride` bytes apart. */
typedef void leat_jpeg_idct(const int16_t *pair, const int16_t *quant, uint8_t *a, size_t a_stride, uint8_t *b,
                            size_t b_stride);

/* What jpeg_reduced.c shares: a number as a sample, and 8 numbers from 8 that lie `step` apart. */
static inline uint8_t
leat_jpeg_to_sample(int value)
{
	return (uint8_t)(value < -128 ? 0 : value > 127 ? 255 : value + 128);
}

void leat_jpeg_transform_slow(const int16_t *in, int *out, size_t step, int shift);

/* ---- jpeg_reduced.c ---- */

/* Two blocks to fewer samples, rows x columns of them. They take factors of the slow transform. */
leat_jpeg_idct leat_jpeg_idct_1x2, leat_jpeg_idct_2x1, leat_jpeg_idct_2x2, leat_jpeg_idct_2x4, leat_jpeg_idct_4x2,
	leat_jpeg_idct_4x4, leat_jpeg_idct_4x8, leat_jpeg_idct_8x4;

/* ---- jpeg_rows.c ---- */

/* Chroma at the resolution of the pixels, `count` samples of input. They read one sample before and behind the input
 * when it is the width that grows, and may read and write up to LEAT_JPEG_SLACK bytes behind their ends. */
enum { LEAT_JPEG_SLACK = 64 };
typedef void leat_jpeg_upsample(const uint8_t *near, const uint8_t *far, uint8_t *out, size_t count, bool below);
/* A row of pixels; may read, but not write, LEAT_JPEG_SLACK bytes behind the end. Gray does not look at cb and cr. */
typedef void leat_jpeg_color(const uint8_t *y, const uint8_t *cb, const uint8_t *cr, uint8_t *out, size_t count);

/* ---- all of them, for one kind of processor ---- */

struct leat_jpeg_kernels {
	leat_jpeg_read_mcu *read_mcu;
	leat_jpeg_idct *idct[LEAT_JPEG_DCTS];
	leat_jpeg_idct
		*reduced[4][4]; /* to 2^i rows and 2^k columns; NULL: that many are never wanted, or the DC is it */
	leat_jpeg_upsample *h2v1, *h2v2, *h1v2;
	leat_jpeg_color *gray_rgb, *gray_rgba, *rgb, *rgba;
};

extern const struct leat_jpeg_kernels leat_jpeg_plain;
/* The fastest that run here: those of jpeg_avx2.c, or the plain ones. All give the same. */
const struct leat_jpeg_kernels *leat_jpeg_fastest(void);

leat_jpeg_read_mcu leat_jpeg_read_mcu_plain, leat_jpeg_read_mcu_bmi2;
leat_jpeg_idct leat_jpeg_idct_fast, leat_jpeg_idct_slow;

/* ---- jpeg_baseline.c ---- */

enum leat_jpeg_result { LEAT_JPEG_DONE, LEAT_JPEG_FULL, LEAT_JPEG_IRREGULAR };

/* Where rows go, one by one: the next one to the next line, behind the last line to the first again. */
struct leat_jpeg_lines {
	uint8_t *first;
	size_t stride, count;
};
enum { LEAT_JPEG_STRIP = 17 }; /* rows that may come at once */

/* `part` of the image, its sides halved `halvings` times and rounded up, to 1, 3 or 4 channels, some rows at a time.
 * What it takes from the scratch has to stay. FULL: the scratch is. */
struct leat_jpeg_scan;
enum leat_jpeg_result leat_jpeg_scan_begin(struct leat_jpeg_scan **scan, const struct leat_jpeg_header *header,
                                           const struct leat_decoding *how, int halvings,
                                           const struct leat_window *part, const struct leat_jpeg_lines *lines,
                                           const struct leat_jpeg_kernels *kernels, struct leat_scratch *scratch);
/* Goes on until `rows` rows were made; when that is all of them, to the end. Returns how many were, -1: irregular. */
int64_t leat_jpeg_scan_rows(struct leat_jpeg_scan *scan, int64_t rows);

/* All rows. IRREGULAR: parts of `out` may have been written. */
enum leat_jpeg_result leat_jpeg_baseline(const struct leat_jpeg_header *header, const struct leat_decoding *how,
                                         int halvings, const struct leat_window *part, uint8_t *out, size_t stride,
                                         const struct leat_jpeg_kernels *kernels, struct leat_scratch *scratch);

/* ---- jpeg_turbo.c ---- */

extern const struct leat_codec leat_codec_jpeg_turbo;

#endif
