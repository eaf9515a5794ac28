/* recode.c - see recode.h
 *
 * Scaled as by Pillow's Image.resize with BILINEAR, and encoded by libjpeg-turbo with its usual settings (4:2:0). */
#include "image/recode.h"

#include <setjmp.h>
#include <stdio.h> /* needed by jpeglib.h */
#include <stdlib.h>

#include <jpeglib.h>

#include "image/view.h"

enum { USUAL_QUALITY = 90, MAX_SIDE = 65500, SLACK = 64 };

struct encoding {
	struct jpeg_error_mgr manager; /* first: `fail` gets a pointer to it */
	jmp_buf failed;
	struct jpeg_compress_struct to;
	unsigned char *bytes;
	unsigned long size;
};

static _Noreturn void
fail(j_common_ptr cinfo)
{
	longjmp(((struct encoding *)(void *)cinfo->err)->failed, 1);
}

static void
be_silent(j_common_ptr cinfo)
{
	(void)cinfo;
}

/* Separate, so that no local of the caller changes between setjmp and longjmp. */
static bool
encode_rows(struct encoding *e, const struct leat_datum *image, int quality)
{
	size_t stride = (size_t)(image->shape[1] * image->shape[2]);

	if (setjmp(e->failed))
		return false;
	jpeg_create_compress(&e->to);
	jpeg_mem_dest(&e->to, &e->bytes, &e->size);
	e->to.image_height = (JDIMENSION)image->shape[0];
	e->to.image_width = (JDIMENSION)image->shape[1];
	e->to.input_components = (int)image->shape[2];
	e->to.in_color_space = image->shape[2] == 1 ? JCS_GRAYSCALE : JCS_RGB;
	jpeg_set_defaults(&e->to);
	jpeg_set_quality(&e->to, quality, TRUE);
	jpeg_start_compress(&e->to, TRUE);
	while (e->to.next_scanline < e->to.image_height) {
		JSAMPROW row = (unsigned char *)image->data + e->to.next_scanline * stride;

		jpeg_write_scanlines(&e->to, &row, 1);
	}
	jpeg_finish_compress(&e->to);
	return true;
}

static enum leat_status
encode(const struct leat_datum *image, int quality, void **jpeg, size_t *size, struct leat_err *err)
{
	struct encoding *e = calloc(1, sizeof(*e));
	bool done;

	if (!e)
		return leat_fail(err, LEAT_NOMEM, "out of memory to encode an image");
	e->to.err = jpeg_std_error(&e->manager);
	e->manager.error_exit = fail;
	e->manager.output_message = be_silent;
	done = encode_rows(e, image, quality);
	jpeg_destroy_compress(&e->to);
	*jpeg = done ? e->bytes : NULL;
	*size = e->size;
	if (!done)
		free(e->bytes);
	free(e);
	return done ? LEAT_OK : leat_fail(err, LEAT_NOMEM, "out of memory to encode an image");
}

static enum leat_status
make_image(struct leat_datum *image, int64_t height, int64_t width, int64_t channels, struct leat_mem *mem,
           struct leat_err *err)
{
	size_t bytes = (size_t)(height * width * channels) + SLACK;

	*image = (struct leat_datum){.dtype = LEAT_U8, .ndim = 3, .shape = {height, width, channels}};
	image->data = leat_alloc(mem, bytes);
	return image->data ? LEAT_OK : leat_fail_mem(err, mem, bytes, "the pixels of an image");
}

/* Does the shorter side get shorter? Then the sides of the result are set. */
static bool
shrinks(const struct leat_datum *in, int64_t shorter, int64_t *height, int64_t *width)
{
	int64_t h = in->shape[0], w = in->shape[1];

	if (!shorter || (h <= shorter || w <= shorter))
		return false;
	*height = h <= w ? shorter : h * shorter / w;
	*width = h <= w ? w * shorter / h : shorter;
	return true;
}

static enum leat_status
shrink(struct leat_datum *image, int64_t height, int64_t width, struct leat_scratch *scratch, struct leat_mem *mem,
       struct leat_err *err)
{
	const struct leat_resampling how = {LEAT_RESIZE_BILINEAR, LEAT_RESIZE_TORCH, true};
	const struct leat_view view = leat_view_of(image, NULL);
	struct leat_datum small;
	enum leat_status status = make_image(&small, height, width, image->shape[2], mem, err);

	if (status == LEAT_OK) {
		const struct leat_sink sink = leat_sink_for(&small);

		status = leat_resize_to(&view, height, width, &how, &sink, scratch, err);
	}
	leat_free(mem, image->data);
	*image = small;
	return status;
}

static enum leat_status
decode(const void *bytes, size_t size, uint64_t max_pixels, struct leat_datum *image, struct leat_scratch *scratch,
       struct leat_mem *mem, struct leat_err *err)
{
	const struct leat_decoding how = {.mode = LEAT_DECODE_TORCH};
	struct leat_decode d = {0};
	enum leat_status status = leat_decode_begin(&d, bytes, size, &how, max_pixels, scratch, err);

	if (status != LEAT_OK)
		return status;
	status = make_image(image, d.height, d.width, d.channels, mem, err);
	if (status == LEAT_OK)
		status = leat_decode_region(&d, &(struct leat_window){0, 0, d.height, d.width}, image->data,
		                            (size_t)(d.width * d.channels), err);
	leat_decode_end(&d);
	return status;
}

enum leat_status
leat_recode(const void *bytes, size_t size, const struct leat_recoding *how, struct leat_scratch *scratch,
            struct leat_mem *mem, void **jpeg, size_t *jpeg_size, struct leat_err *err)
{
	struct leat_datum image = {0};
	int64_t height = 0, width = 0;
	enum leat_status status;
	bool smaller = false;

	*jpeg = NULL;
	leat_scratch_reset(scratch);
	status = decode(bytes, size, how->max_pixels, &image, scratch, mem, err);
	if (status == LEAT_OK)
		smaller = shrinks(&image, how->shorter, &height, &width);
	leat_scratch_reset(scratch);
	if (smaller)
		status = shrink(&image, height, width, scratch, mem, err);
	if (status == LEAT_OK && (smaller || how->quality) && (image.shape[0] > MAX_SIDE || image.shape[1] > MAX_SIDE))
		status = leat_fail(err, LEAT_DATA, "an image of %lld x %lld pixels is too large for JPEG",
		                   (long long)image.shape[1], (long long)image.shape[0]);
	if (status == LEAT_OK && (smaller || how->quality))
		status = encode(&image, how->quality ? how->quality : USUAL_QUALITY, jpeg, jpeg_size, err);
	leat_free(mem, image.data);
	return status;
}
