/* decode.c - an image's bytes become its pixels
 *
 * The header is read first, so that pixels go straight to where they are wanted, and only those that ops behind it
 * need. JPEG as
 * tf.io.decode_jpeg with its defaults, PNG as tf.io.decode_png, both to 8 bits (image/jpeg.c and
 * image/png.c have the details). Alpha is never blended: it is dropped, or, with channels=4, kept; files without it
 * are opaque then. */
#include "op/op.h"

struct decode {
	int64_t channels;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct decode, channels, "3", 0, 4,
                 "1: gray, 3: RGB, 0: either, as in each file; 4: RGB and alpha, which is dropped otherwise"),
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

	return leat_decode_begin(image, bytes->data, leat_datum_bytes(bytes), (int)decode->channels, work->max_pixels,
	                         work->scratch, err);
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
	.accepts = leat_accepts_bytes,
	.wants = "the bytes of a JPEG or PNG file (uint8, one dimension)",
	.infer = infer,
	.begin = begin,
};
