/* codec.h - the interface of an image format to decode.c; private to src/image */
#ifndef LEAT_IMAGE_CODEC_H
#define LEAT_IMAGE_CODEC_H

#include <stdbool.h>

#include "format/image_formats.h"
#include "image/image.h"

struct leat_codec {
	bool takes_all_options; /* `wide` and `raw` too */
	bool (*recognize)(const uint8_t *bytes, size_t size);
	/* Sets height, width (by leat_decode_size), channels, state and, if they are not u8 and nothing, dtype and
	 * loss. Fails, where the format has a bound on pixels per byte, if the file cannot hold them
	 * (leat_decode_fail_short): memory is taken for what is there, not for what a header claims. If it fails, `end`
	 * is not called. */
	enum leat_status (*begin)(struct leat_decode *decode, const uint8_t *bytes, size_t size,
	                          const struct leat_decoding *how, struct leat_err *err);
	/* Exactly one of these two. `pixels` is for a format where decoding a region costs as much as the image. */
	enum leat_status (*pixels)(struct leat_decode *decode, uint8_t *out, struct leat_err *err);
	enum leat_status (*region)(struct leat_decode *decode, const struct leat_window *part, uint8_t *out,
	                           size_t stride, struct leat_err *err);
	/* Optional: see leat_decode_reduced. */
	enum leat_status (*reduced)(struct leat_decode *decode, int halvings, const struct leat_window *part,
	                            uint8_t *out, size_t stride, struct leat_err *err);
	/* Optional: see leat_decode_scan. more_rows decodes until `rows` rows are there, with up to `rows_at_once`
	 * more, and returns how many are; -1: the file cannot be decoded this way. */
	int64_t rows_at_once;
	bool (*start_rows)(struct leat_decode *decode, int halvings, const struct leat_window *part,
	                   const struct leat_scan *rows);
	int64_t (*more_rows)(struct leat_decode *decode, int64_t rows);
	void (*end)(struct leat_decode *decode);
};

#define LEAT_CODEC_(name, title, extensions) extern const struct leat_codec leat_codec_##name;
LEAT_IMAGE_FORMATS(LEAT_CODEC_)
#undef LEAT_CODEC_

/* Bytes per pixel of the decoded image. */
static inline size_t
leat_decode_pixel(const struct leat_decode *decode)
{
	return (size_t)decode->channels * leat_dtype_size(decode->dtype);
}

/* Checks the size in a header against the limit and stores it in `decode`. */
enum leat_status leat_decode_size(struct leat_decode *decode, uint32_t width, uint32_t height, struct leat_err *err);
/* LEAT_DATA: `bytes` are too few for the size that leat_decode_size stored. */
enum leat_status leat_decode_fail_short(const struct leat_decode *decode, const char *format, uint64_t bytes,
                                        struct leat_err *err);

#endif
