/* decode.c - an image's bytes become its pixels
 *
 * The header is read first, so that pixels go straight to where they are wanted, and only those that ops behind it
 * need. Alpha is never blended: it is dropped, or, with channels=4, kept; files without it are opaque then. EXIF is not
 * looked at. All becomes 8 bits.
 *
 * mode=tf: JPEG as tf.io.decode_jpeg with its defaults, PNG as tf.io.decode_png (image/jpeg.c and image/png.c have the
 * details).
 *
 * mode=torch: JPEG as Pillow's Image.open(...).convert("RGB"), of which torchvision's image folders are made; inks
 * (CMYK) too. PNG is the same in both modes, and as Pillow has it for 3 channels. It differs from Pillow
 * - in gray of 16 bits: here the upper half of each; Pillow keeps 16 bits, and cuts to 255 when they become RGB;
 * - in color to gray (channels=1): a JPEG's own brightness, as torchvision.io.decode_jpeg gives it, and a PNG's by
 *   libpng's weights; Pillow's convert("L") is decode(mode=torch) | grayscale(1);
 * - with channels=4, in transparent colors (tRNS) of gray with 1 to 4 bits, and of 16 bits, which Pillow does not find.
 *
 * fast=true: where the next thing that happens to a JPEG is that it, or a part of it, is resized to half or less, a
 * smaller image is decoded (image/pass.h). Neither mode's pixels then; else those of the mode, as ever.
 */
#include "op/op.h"

struct decode {
	int64_t channels;
	int mode;
	bool fast;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct decode, channels, "3", 0, 4,
                 "1: gray, 3: RGB, 0: either, as in each file; 4: RGB and alpha, which is dropped otherwise"),
	LEAT_ENUM(struct decode, mode, "tf", "tf|torch",
                  "whose pixels of a JPEG: tf.io.decode_jpeg's, or Pillow's, which torchvision loads; a little slower"),
	LEAT_BOOL(struct decode, fast, "false",
                  "true: a JPEG that the next op but for crops resizes to half or less is decoded at 1/2, 1/4 or 1/8; "
                  "less work, pixels a little off"),
	LEAT_OPT_END,
};

static enum leat_status
check(void *params, struct leat_err *err)
{
	const struct decode *decode = params;

	if (decode->channels == 2)
		return leat_fail(err, LEAT_SPEC, "channels=2 is not possible: expected 0, 1, 3 or 4");
	return LEAT_OK;
}

static enum leat_status
infer(void *params, struct leat_field *field, enum leat_layout *layout, struct leat_err *err)
{
	const struct decode *decode = params;

	(void)err;
	field->dtype = LEAT_U8;
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
		.channels = (int)decode->channels, .mode = decode->mode, .fast = decode->fast};

	return leat_decode_begin(image, bytes->data, leat_datum_bytes(bytes), &how, work->max_pixels, work->scratch,
	                         err);
}

static bool
reduces(const void *params)
{
	const struct decode *decode = params;

	return decode->fast;
}

const struct leat_op leat_op_decode = {
	.name = "decode",
	.doc = "Decode a JPEG or PNG image to uint8 pixels, height x width x channels.",
	.example = "decode(channels=1)",
	.kind = LEAT_OP_DECODE,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct decode),
	.check = check,
	.on_field.accepts = leat_accepts_bytes,
	.on_field.wants = "the bytes of a JPEG or PNG file (uint8, one dimension)",
	.on_field.infer = infer,
	.on_field.fuse.decode = begin,
	.on_field.fuse.reduces = reduces,
};
