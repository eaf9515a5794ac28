/* image.c - see image.h */
#include "support/image.h"

#include "image/plain.h"

enum leat_status
decode_image(struct leat_decode *decode, uint8_t *out, struct leat_err *err)
{
	const struct leat_window all = {.height = decode->height, .width = decode->width};

	return leat_decode_region(decode, &all, out, (size_t)(decode->width * decode->channels), err);
}

enum leat_status
resize_image(const struct leat_datum *in, const struct leat_window *part, const struct leat_datum *out,
             const struct leat_resampling *how, struct leat_scratch *scratch, struct leat_err *err)
{
	const struct leat_view view = leat_view_of(in, part);
	const struct leat_sink sink = leat_sink_for(out);

	return leat_resize_to(&view, out->shape[0], out->shape[1], how, &sink, scratch, err);
}

enum leat_status
resize_image_plain(const struct leat_datum *in, const struct leat_window *part, const struct leat_datum *out,
                   const struct leat_resampling *how, struct leat_scratch *scratch, struct leat_err *err)
{
	const struct leat_view view = leat_view_of(in, part);
	const struct leat_sink sink = leat_sink_for(out);

	return leat_resize_to_plain(&view, out->shape[0], out->shape[1], how, &sink, scratch, err);
}

void
rotate_image(const struct leat_datum *in, const struct leat_datum *out, float radians, float fill,
             struct leat_scratch *scratch)
{
	const struct leat_view view = leat_view_of(in, NULL);
	const struct leat_sink sink = leat_sink_for(out);

	leat_rotate_to(&view, radians, fill, &sink, scratch);
}

void
rotate_image_plain(const struct leat_datum *in, const struct leat_datum *out, float radians, float fill)
{
	const struct leat_view view = leat_view_of(in, NULL);
	const struct leat_sink sink = leat_sink_for(out);

	leat_rotate_to_plain(&view, radians, fill, &sink);
}
