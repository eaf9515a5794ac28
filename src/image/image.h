/* image.h - decode, resample, move, measure and convert pixels
 *
 * An image is a datum of three dims {height, width, channels}, none of them 0, with at most LEAT_MAX_CHANNELS channels,
 * rows without padding, aligned to its elements. Kernels trust their callers: shapes and types have to be as each
 * function says. They are pure functions of their arguments, safe to call from any thread; working memory comes from
 * the caller's scratch and is given back before they return. */
#ifndef LEAT_IMAGE_IMAGE_H
#define LEAT_IMAGE_IMAGE_H

#include "base/rng.h"
#include "format/sample.h"

/* ---- decoding ---- */

/* A rectangle of pixels. */
struct leat_window {
	int64_t top, left, height, width;
};

/* Decoding one image: begin reads the header, so that the caller can allocate height x width x channels values; region
 * fills them; end frees the rest, after a failure too.
 *
 * Decoders, and the libraries they call, take memory from `scratch`, never from the heap in proportion to the image, so
 * the caller's limit holds for hostile files too:
 *  - always: less than 100 KB and some dozen rows;
 *  - PNG: the file's pixels in their own format (up to 8 bytes each) and its compressed bytes. With less scratch, it
 *    decodes more slowly instead, except to 16 bits, and from 16 bits, alpha or color to gray, which needs up to 8
 * bytes per pixel;
 *  - WebP: an upper bound of libwebp's heap, which is reserved here but not touched: 64 KB and 160 bytes per column if
 *    it is lossy; if it is lossless, some 4.5 bytes per pixel and 20 KB per group of codes. Gray: 3 bytes per pixel
 * more;
 *  - progressive JPEG: up to 6 bytes per pixel, both sides rounded up to whole blocks (at most 32 pixels).
 * Cached with the scratch for the following images: 11 KB from the heap after the first PNG and, if the caller's memory
 * limit allows, 38 KB of tables after the first JPEG. */
struct leat_codec;

/* What is lost because nothing else was asked for. */
enum leat_decode_loss {
	LEAT_LOSES_NOTHING,
	LEAT_LOSES_LOW_BYTES, /* 16 bits become 8 */
	LEAT_LOSES_INDICES,   /* a palette becomes gray */
};

struct leat_decode {
	int64_t height, width, channels; /* of the decoded image; set by begin */
	enum leat_dtype dtype;           /* likewise */
	enum leat_decode_loss loss;      /* likewise */
	bool reducible;                  /* leat_decode_reduced may be called; set by begin */
	/* Private: */
	const struct leat_codec *codec;
	struct leat_scratch *scratch;
	uint64_t max_pixels;
	void *state;
};

/* Match the pixels of tf.io.decode_image, or of Pillow, which torchvision uses. */
enum leat_decode_mode { LEAT_DECODE_TF, LEAT_DECODE_TORCH };

struct leat_decoding {
	int channels; /* 1 (gray), 3 (RGB), 4 (RGBA; alpha is 255 if the file has none), 0: as the file, without alpha
	               */
	int mode;     /* enum leat_decode_mode; int for the option tables */
	bool fast;    /* decoding at reduced size is allowed */
	bool wide;    /* PNG only: 16 bits per value, not 8; fewer bits are scaled up */
	bool raw;     /* PNG only: values as stored, palette indices or gray, one channel; more bits than wanted fail */
};

/* Detects the format (format/image_formats.h) by the first bytes. An image with no pixels, with more than max_pixels,
 * or with more than its bytes can hold is an error, before any memory is taken for pixels. If this fails,
 * leat_decode_end must not be called. If scratch->stop is set, decoding ends within a few rows with LEAT_CANCELLED. */
enum leat_status leat_decode_begin(struct leat_decode *decode, const void *bytes, size_t size,
                                   const struct leat_decoding *how, uint64_t max_pixels, struct leat_scratch *scratch,
                                   struct leat_err *err);
/* Decode a region of the image (not empty, within it) to rows `stride` bytes apart; call this or leat_decode_reduced,
 * once. Only as much of the file is read as the region needs, so damage elsewhere may go unnoticed. PNG and WebP
 * are always decoded whole: a region takes up to 4 bytes of scratch for each pixel of the image. */
enum leat_status leat_decode_region(struct leat_decode *decode, const struct leat_window *part, uint8_t *out,
                                    size_t stride, struct leat_err *err);
/* Decode a region of the image at 1/2, 1/4 or 1/8 size (1 to LEAT_DECODE_HALVINGS halvings, sides rounded up). Each
 * pixel is close to the mean of a square of 2, 4 or 8 pixels, for less work than decoding those. The pixels do not
 * depend on the region and, except for CMYK, not on the mode. */
enum { LEAT_DECODE_HALVINGS = 3 };
enum leat_status leat_decode_reduced(struct leat_decode *decode, int halvings, const struct leat_window *part,
                                     uint8_t *out, size_t stride, struct leat_err *err);

/* Decode a region on demand, row by row: rows are used while they are in cache, and only a few need memory. May be
 * followed by one of the functions above. The last `keep` rows can be read, and `padding` bytes past the end of each.
 */
struct leat_scan {
	struct leat_decode *decode;
	uint8_t *line; /* row y is in line y % lines */
	size_t stride;
	int64_t lines, height;
	int64_t done; /* rows decoded so far; -1: failed */
};
/* False: not possible for this file, or not enough scratch; use one of the functions above. */
bool leat_decode_scan(struct leat_decode *decode, int halvings, const struct leat_window *part, int64_t keep,
                      size_t padding, struct leat_scan *rows);
/* y may be up to `keep` - 1 below the largest y so far. */
const uint8_t *leat_scan_row(struct leat_scan *rows, int64_t y);
/* Decodes the rest. False: the rows were wrong, discard what was made of them; the functions above report the error. */
bool leat_scan_end(struct leat_scan *rows);

void leat_decode_end(struct leat_decode *decode);

/* ---- geometry ---- */

enum leat_resize_method {
	LEAT_RESIZE_BILINEAR,
	LEAT_RESIZE_NEAREST,
	LEAT_RESIZE_BICUBIC,
	LEAT_RESIZE_LANCZOS,
	LEAT_RESIZE_AREA,
};
enum leat_resize_mode { LEAT_RESIZE_TF, LEAT_RESIZE_TORCH };

/* How to resample. leat_resampling_check rejects combinations that do not exist. NEAREST and AREA ignore antialias. */
struct leat_resampling {
	int method, mode; /* the enums above; int for the option tables */
	bool antialias;
};

enum leat_status leat_resampling_check(const struct leat_resampling *how, struct leat_err *err);
/* The type of the result for an image of type `in`: unchanged, except that mode tf gives f32 unless NEAREST. */
enum leat_dtype leat_resize_dtype(const struct leat_resampling *how, enum leat_dtype in);

/* Scratch to resize an image, or any part of it, from in[0] x in[1] (-1: not known, not counted) to out[0] x out[1]. */
size_t leat_resize_scratch(const struct leat_resampling *how, const int64_t *in, const int64_t *out);

enum leat_flip { LEAT_FLIP_HORIZONTAL, LEAT_FLIP_VERTICAL }; /* left to right, or top to bottom */

/* In place; any type. */
void leat_flip(const struct leat_datum *image, enum leat_flip direction);

/* What is outside an image `a b c`: `fill`; a a|a b c|c c; c b|a b c|b a; b a|a b c|c b. */
enum leat_border { LEAT_BORDER_CONSTANT, LEAT_BORDER_EDGE, LEAT_BORDER_REFLECT, LEAT_BORDER_SYMMETRIC };

/* As torchvision's affine with nearest on PIL images: shear, scale and rotate clockwise about the center, then move by
 * whole pixels. The size stays. Pixels that come from outside `in` become `fill`. u8 or f32. */
struct leat_warp {
	double degrees, shear_x, shear_y; /* all three in degrees */
	double scale;                     /* above 0 */
	double dx, dy;
};
void leat_warp(const struct leat_datum *in, const struct leat_datum *out, const struct leat_warp *warp, float fill);

/* The same by a matrix: the center of an output pixel, (x, y), comes from (xx * x + xy * y + x0, yx * x + yy * y + y0),
 * as in Pillow's Image.transform with AFFINE. */
struct leat_map {
	double xx, xy, x0, yx, yy, y0;
};
void leat_warp_by(const struct leat_datum *in, const struct leat_datum *out, const struct leat_map *map, float fill);
/* Counter-clockwise about the center, as Pillow's Image.rotate. */
struct leat_map leat_map_rotation(double degrees, int64_t height, int64_t width);

/* As torchvision's gaussian_blur, with `kernel` (odd) taps in each direction. `out` has the shape and type of `in`, u8
 * or f32. */
enum leat_status leat_blur(const struct leat_datum *in, const struct leat_datum *out, size_t kernel, double sigma,
                           struct leat_scratch *scratch, struct leat_err *err);
size_t leat_blur_scratch(size_t kernel, int64_t height, int64_t width); /* 0 if a side is -1 */

/* Overwrite a part of an image with one value per channel (clamped to 0..255 for u8), or an f32 image with normal
 * noise. */
void leat_erase(const struct leat_datum *image, const struct leat_window *part, const float *value);
void leat_erase_noise(const struct leat_datum *image, const struct leat_window *part, struct leat_rng *rng);

/* ---- numbers ---- */

/* The mean of each channel of a u8 or f32 image. Sums are exact for u8; for f32 they are doubles, added in an order
 * that depends only on the shape. */
void leat_channel_means(const struct leat_datum *image, float *mean);

/* Converts any type to any other; in and out do not overlap. To a float: rounded to nearest, ties to even; to f16 and
 * bf16 by way of f32. To an integer: truncated and saturated, NaN becomes 0. To bool: 0 is false, everything
 * else is true, NaN too. */
void leat_cast(const void *in, enum leat_dtype from, void *out, enum leat_dtype to, size_t count);

/* {pixels, channels} to {channels, pixels} and back; elements have `size` (1, 2, 4 or 8) bytes. */
void leat_to_planar(const void *in, void *out, size_t pixels, size_t channels, size_t size);
void leat_to_interleaved(const void *in, void *out, size_t pixels, size_t channels, size_t size);

#endif
