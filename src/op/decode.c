/* decode.c - decode image files to pixels
 *
 * The header is read first, so pixels are written straight to their destination, and only those that later ops
 * need. Alpha is never blended: it is dropped, or kept with channels=4 (opaque if the file has none). EXIF is
 * ignored.
 *
 * A PNG image with a palette becomes RGB, or gray with channels=1, and 16 bits become 8. Where that loses what the
 * file was made for, the feed warns once. raw=true keeps the values of the file instead: palette indices, as in
 * segmentation masks, or gray of any depth, in one channel. dtype=uint16 keeps 16 bits; fewer bits are scaled up, as
 * tf.io.decode_png does, unless raw=true.
 *
 * mode=tf: JPEG as tf.io.decode_jpeg with its defaults, PNG as tf.io.decode_png (details in image/jpeg.c and
 * image/png.c).
 *
 * mode=torch: JPEG, CMYK included, as Pillow's Image.open(...).convert("RGB"), which torchvision's image folders
 * use. PNG is the same in both modes and matches Pillow for 3 channels. It differs from Pillow in
 *
 * - 16-bit gray: Leat keeps the upper 8 bits; Pillow keeps all 16, and clips to 255 on conversion to RGB;
 * - color to gray (channels=1): JPEG uses its own luma channel, as torchvision.io.decode_jpeg does, and PNG uses
 *   libpng's weights; for Pillow's convert("L"), use decode(mode=torch) | grayscale(1);
 * - transparent colors (tRNS) with channels=4, in gray of 1 to 4 bits and in 16 bits, which Pillow does not detect.
 *
 * WebP is the same in both modes, as tf.io.decode_webp and Pillow: the first frame of an animation, on a canvas of
 * zeros. Color becomes gray as in PNG.
 *
 * fast=true: if the next resize, ignoring crops, at least halves the image, a JPEG is decoded at reduced size
 * (image/pass.h). Those pixels match neither mode; all other images still match theirs. */
#include "op/op.h"

struct decode {
	int64_t channels;
	int mode;
	bool fast;
	int dtype; /* enum dtype */
	bool raw;
};

enum dtype { UINT8, UINT16 };

static const struct leat_opt options[] = {
	LEAT_INT(struct decode, channels, "3", 0, 4,
                 "1: gray, 3: RGB, 4: RGB and alpha, 0: gray or RGB as in the file; alpha is dropped unless 4"),
	LEAT_ENUM(struct decode, mode, "tf", "tf|torch",
                  "JPEG pixels match tf.io.decode_jpeg, or Pillow as used by torchvision (slightly slower)"),
	LEAT_BOOL(struct decode, fast, "false",
                  "decode a JPEG at 1/2, 1/4 or 1/8 size when the next resize (ignoring crops) at least halves it; "
                  "faster, pixels differ slightly"),
	LEAT_OPT_(struct decode, dtype, LEAT_OPT_ENUM, "uint8", 0, 0, "uint8|uint16",
                  "output type; uint16 keeps all bits of 16-bit PNG images", LEAT_OPT_NAMED | LEAT_OPT_NEW),
	LEAT_OPT_(struct decode, raw, LEAT_OPT_BOOL, "false", 0, 1, NULL,
                  "values as stored in a PNG file: palette indices, as in segmentation masks, or gray; one channel",
                  LEAT_OPT_NAMED | LEAT_OPT_NEW),
	LEAT_OPT_END,
};

static enum leat_status
check(void *params, struct leat_err *err)
{
	struct decode *decode = params;

	if (decode->channels == 2)
		return leat_fail(err, LEAT_SPEC, "channels=2 is not supported: expected 0, 1, 3 or 4");
	if (decode->raw && decode->channels != 3 && decode->channels != 1)
		return leat_fail(err, LEAT_SPEC, "raw=true gives one channel: leave out channels");
	if (decode->raw)
		decode->channels = 1;
	return LEAT_OK;
}

static enum leat_status
infer(void *params, struct leat_field *field, enum leat_layout *layout, struct leat_err *err)
{
	const struct decode *decode = params;

	(void)err;
	field->dtype = decode->dtype == UINT16 ? LEAT_U16 : LEAT_U8;
	field->ndim = 3;
	field->shape[0] = field->shape[1] = -1;
	field->shape[2] = decode->channels ? decode->channels : -1;
	*layout = LEAT_HWC;
	return LEAT_OK;
}

static enum leat_status
begin(const void *params, const struct leat_datum *bytes, const struct leat_work *work, struct leat_decode *image,
      struct leat_err *err)
{
	const struct decode *decode = params;
	const struct leat_decoding how = {
		.channels = (int)decode->channels,
		.mode = decode->mode,
		.fast = decode->fast,
		.wide = decode->dtype == UINT16,
		.raw = decode->raw,
	};
	enum leat_status status = leat_decode_begin(image, bytes->data, leat_datum_bytes(bytes), &how, work->max_pixels,
	                                            work->scratch, err);

	if (status == LEAT_OK && image->loss == LEAT_LOSES_LOW_BYTES)
		leat_work_warn(work, LEAT_WARN_LOW_BYTES,
		               "decode: 16-bit PNG images become 8-bit; use decode(dtype=uint16) to keep all bits");
	if (status == LEAT_OK && image->loss == LEAT_LOSES_INDICES)
		leat_work_warn(work, LEAT_WARN_INDICES,
		               "decode: PNG images with a palette become gray levels; use decode(raw=true) to keep the "
		               "palette indices, as in segmentation masks");
	return status;
}

static bool
reduces(const void *params)
{
	const struct decode *decode = params;

	return decode->fast;
}

const struct leat_op leat_op_decode = {
	.name = "decode",
	.doc = "Decode a JPEG, PNG or WebP image to pixels, height x width x channels.",
	.example = "decode(channels=1)",
	.kind = LEAT_OP_DECODE,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct decode),
	.check = check,
	.on_field.accepts = leat_accepts_bytes,
	.on_field.wants = "the bytes of a JPEG, PNG or WebP file (uint8, one dimension)",
	.on_field.infer = infer,
	.on_field.fuse.decode = begin,
	.on_field.fuse.reduces = reduces,
};
