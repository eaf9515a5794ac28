/* image.h - pixels in memory: decoding, resampling, moving, measuring and converting them
 *
 * An image is a datum of three dims {height, width, channels}, none of them 0, at most
 * LEAT_MAX_CHANNELS channels, rows without gaps, aligned to its elements. Kernels trust their
 * callers: shapes and types of input and output fit what each says. They are pure functions of their
 * arguments and may be called by all threads at once; memory of their own comes from the caller's
 * scratch and is given back to it before they return. */
#ifndef LEAT_IMAGE_IMAGE_H
#define LEAT_IMAGE_IMAGE_H

#include "base/rng.h"
#include "format/sample.h"

/* ---- decoding ---- */

/* A rectangle within an image. */
struct leat_window {
	int64_t top, left, height, width;
};

/* One image on its way from bytes to pixels: begin reads the header, so that the caller can make room
 * for height x width x channels bytes, region fills them, end frees what is left, after a failure too.
 *
 * Nothing of the size of an image is taken from the system's heap: what the decoders and the libraries behind them ask
 * for comes from `scratch`, so that the caller's bound holds for hostile files too. That is less than 100 KB and some
 * dozen rows; with PNGs, where there is room, also the file's pixels as it has them (up to 8 bytes each) and its bytes,
 * and where there is not, they take more time instead, except when they are 16-bit, or have alpha or color, and become
 * gray: up to 8 bytes a pixel; with progressive JPEGs up to 6 bytes a pixel, both sides rounded up to whole blocks (32
 * at most). Kept with the scratch, for all images to come, are some 11 KB from the heap after the first PNG and, if the
 * caller's memory has room, 38 KB of tables after the first JPEG. */
struct leat_codec;
struct leat_decode {
	int64_t height, width, channels; /* of the result; set by begin */
	bool reducible;                  /* leat_decode_reduced may be called; set by begin */
	/* Private: */
	const struct leat_codec *codec;
	struct leat_scratch *scratch;
	size_t max_pixels;
	void *state;
};

/* Whose pixels: those of tf.io.decode_image, or those of Pillow, which torchvision's loaders take. */
enum leat_decode_mode { LEAT_DECODE_TF, LEAT_DECODE_TORCH };

struct leat_decoding {
	int channels; /* 1 (gray), 3 (RGB), 4 (RGB and alpha; 255 where the file has none), 0: what it has, without
	                 alpha */
	int mode;     /* enum above, as an option table fills it */
	bool fast;    /* may be reduced */
};

/* Finds the format by its first bytes: JPEG or PNG. More than max_pixels, or none, is an error. After a failure
 * nothing has to be ended. */
enum leat_status leat_decode_begin(struct leat_decode *decode, const void *bytes, size_t size,
                                   const struct leat_decoding *how, size_t max_pixels, struct leat_scratch *scratch,
                                   struct leat_err *err);
/* Decode a region of the image (not empty, within it) to rows `stride` bytes apart; call this or leat_decode_reduced,
 * once. Only as much of the file is read as the region needs, so damage elsewhere may go unnoticed. A PNG is always
 * decoded whole: a region of one takes up to 4 bytes of scratch for each pixel of the image. */
enum leat_status leat_decode_region(struct leat_decode *decode, const struct leat_window *part, uint8_t *out,
                                    size_t stride, struct leat_err *err);
/* A region of the image with its sides halved 1 to LEAT_DECODE_HALVINGS times, and rounded up: each pixel stands for a
 * square of 2, 4 or 8, near to their mean, for less work than they would be. Pixels do not depend on the mode, but
 * for inks, or on which region they are part of. */
enum { LEAT_DECODE_HALVINGS = 3 };
enum leat_status leat_decode_reduced(struct leat_decode *decode, int halvings, const struct leat_window *part,
                                     uint8_t *out, size_t stride, struct leat_err *err);

/* Before one of these, or instead: rows of a region, or with halvings of a reduced one, as they are asked for. They are
 * used while the nearest caches have them, and only some need room. `keep` rows, the one asked for and those before it,
 * can be read, and `behind` bytes behind each. */
struct leat_scan {
	struct leat_decode *decode;
	uint8_t *line; /* row y lies in line y % lines */
	size_t stride;
	int64_t lines, height;
	int64_t made; /* rows that have been; -1: it cannot go on */
};
/* False: this file is not decoded so, or there is no scratch for it; the others may find another way. */
bool leat_decode_scan(struct leat_decode *decode, int halvings, const struct leat_window *part, int64_t keep,
                      size_t behind, struct leat_scan *rows);
/* y goes back by less than `keep` from the largest that was asked for. */
const uint8_t *leat_scan_row(struct leat_scan *rows, int64_t y);
/* False: rows were not right, and what was made of them does not count; the others say what it is. */
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

/* How pixels are made. Not every combination has a meaning: leat_resampling_check. NEAREST and AREA do not look at
 * antialias. */
struct leat_resampling {
	int method, mode; /* enums above, as an option table fills them */
	bool antialias;
};

/* Says what is wrong with a combination. */
enum leat_status leat_resampling_check(const struct leat_resampling *how, struct leat_err *err);
/* What an image of type `in` becomes. As tf.image.resize: f32, NEAREST keeps the type. As torchvision: the same type.
 */
enum leat_dtype leat_resize_dtype(const struct leat_resampling *how, enum leat_dtype in);

/* The most scratch it takes to bring an image, or a part of one, from sides in[0] and in[1] (-1: not known, and not
 * counted) to out[0] and out[1]. */
size_t leat_resize_scratch(const struct leat_resampling *how, const int64_t *in, const int64_t *out);

enum leat_flip { LEAT_FLIP_HORIZONTAL, LEAT_FLIP_VERTICAL }; /* left and right change places, or top and bottom */

/* In place; any type. */
void leat_flip(const struct leat_datum *image, enum leat_flip direction);

/* How the plane goes on beyond an image a b c: with `fill`; a a|a b c|c c; c b|a b c|b a; b a|a b c|c b. */
enum leat_border { LEAT_BORDER_CONSTANT, LEAT_BORDER_EDGE, LEAT_BORDER_REFLECT, LEAT_BORDER_SYMMETRIC };

/* As torchvision's affine with nearest, on images: sheared, scaled and turned clockwise about the centre, then moved
 * by whole pixels; the size stays. Places that no pixel of `in` covers become `fill`. u8 or f32. */
struct leat_warp {
	double degrees, shear_x, shear_y; /* degrees, all three */
	double scale;                     /* above 0 */
	double dx, dy;
};
void leat_warp(const struct leat_datum *in, const struct leat_datum *out, const struct leat_warp *warp, float fill);

/* The same by a map: the place (x, y) of the result, a pixel's middle, comes from (xx * x + xy * y + x0,
 * yx * x + yy * y + y0), as in Pillow's Image.transform with AFFINE. */
struct leat_map {
	double xx, xy, x0, yx, yy, y0;
};
void leat_warp_by(const struct leat_datum *in, const struct leat_datum *out, const struct leat_map *map, float fill);
/* Counter-clockwise about the centre, as Pillow's Image.rotate. */
struct leat_map leat_map_rotation(double degrees, int64_t height, int64_t width);

/* As torchvision's gaussian_blur: `kernel` (odd) pixels in each direction, weighted by a normal distribution. `out` has
 * the shape and type of `in`, u8 or f32. */
enum leat_status leat_blur(const struct leat_datum *in, const struct leat_datum *out, size_t kernel, double sigma,
                           struct leat_scratch *scratch, struct leat_err *err);
size_t leat_blur_scratch(size_t kernel, int64_t height, int64_t width); /* the most it takes; 0 if a side is -1 */

/* Write over a part of an image, in place: with one value per channel (u8: cut to 0..255), or, f32, with normal noise.
 */
void leat_erase(const struct leat_datum *image, const struct leat_window *part, const float *value);
void leat_erase_noise(const struct leat_datum *image, const struct leat_window *part, struct leat_rng *rng);

/* ---- numbers ---- */

/* The mean of each channel of a u8 or f32 image, summed exactly (u8), or in double in an order that depends on the
 * shape alone. */
void leat_channel_means(const struct leat_datum *image, float *mean);

/* Any type to any other; in and out do not overlap. To a floating type: rounded to nearest, ties to even; to f16
 * and bf16 by way of f32. To an integer: the fraction is cut off, what is too large or small becomes the
 * largest or smallest value, NaN becomes 0. */
void leat_cast(const void *in, enum leat_dtype from, void *out, enum leat_dtype to, size_t count);

/* {pixels, channels} to {channels, pixels} and back, elements of `size` (1, 2, 4 or 8) bytes. */
void leat_to_planar(const void *in, void *out, size_t pixels, size_t channels, size_t size);
void leat_to_interleaved(const void *in, void *out, size_t pixels, size_t channels, size_t size);

#endif
