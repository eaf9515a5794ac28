/* png_write.c - see png_write.h */
#include "image/png_write.h"

#include <spng.h>

enum leat_status
leat_png_write(const uint8_t *rgb, uint32_t width, uint32_t height, void **png, size_t *size, struct leat_err *err)
{
	struct spng_ihdr header = {
		.width = width, .height = height, .bit_depth = 8, .color_type = SPNG_COLOR_TYPE_TRUECOLOR};
	spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
	int failure = ctx ? 0 : SPNG_EMEM;

	*png = NULL;
	*size = 0;
	if (!failure)
		failure = spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1);
	if (!failure)
		failure = spng_set_ihdr(ctx, &header);
	if (!failure)
		failure = spng_encode_image(ctx, rgb, (size_t)width * height * 3, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
	if (!failure)
		*png = spng_get_png_buffer(ctx, size, &failure);
	spng_ctx_free(ctx);
	return *png ? LEAT_OK : leat_fail(err, LEAT_NOMEM, "can't encode the picture: %s", spng_strerror(failure));
}
