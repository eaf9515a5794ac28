/* codec.h - what an image format gives to decode.c; private to src/image */
#ifndef LEAT_IMAGE_CODEC_H
#define LEAT_IMAGE_CODEC_H

#include <stdbool.h>

#include "image/image.h"

struct leat_codec {
	bool (*recognize)(const uint8_t *bytes, size_t size);
	/* Sets height, width (by leat_decode_size), channels and state. Cleans up after itself when it fails. */
	enum leat_status (*begin)(struct leat_decode *decode, const uint8_t *bytes, size_t size,
	                          const struct leat_decoding *how, struct leat_err *err);
	/* One of these two. `pixels` decodes the whole image, for a format that cannot decode a part for less. */
	enum leat_status (*pixels)(struct leat_decode *decode, uint8_t *out, struct leat_err *err);
	enum leat_status (*region)(struct leat_decode *decode, const struct leat_window *part, uint8_t *out,
	                           size_t stride, struct leat_err *err);
	/* Optional: the same of the image with its sides halved, see leat_decode_reduced. */
	enum leat_status (*reduced)(struct leat_decode *decode, int halvings, const struct leat_window *part,
	                            uint8_t *out, size_t stride, struct leat_err *err);
	/* Optional: a region in rows, see leat_decode_scan. Up to `rows_at_once` come at a time; how many there are is
	 * returned, -1: something is not right. */
	int64_t rows_at_once;
	bool (*start_rows)(struct leat_decode *decode, int halvings, const struct leat_window *part,
	                   const struct leat_scan *rows);
	int64_t (*more_rows)(struct leat_decode *decode, int64_t rows);
	void (*end)(struct leat_decode *decode);
};

extern const struct leat_codec leat_codec_jpeg, leat_codec_png;

/* Checks what a header says against the limit, and keeps it. */
enum leat_status leat_decode_size(struct leat_decode *decode, uint64_t width, uint64_t height, struct leat_err *err);
/* Scratch that is full, as an error. */
enum leat_status leat_decode_full(const struct leat_decode *decode, struct leat_err *err);

#endif
