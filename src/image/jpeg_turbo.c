/* jpeg_turbo.c - decode JPEG with libjpeg-turbo, with the settings of tf.io.decode_jpeg or of Pillow
 *
 * TensorFlow uses the fast integer DCT by default, Pillow the slow one, both with smooth ("fancy") upsampling; with the
 * same library this gives the same bytes. CMYK and YCCK become RGB by the formula of each. EXIF orientation is ignored:
 * an image that the camera marked as rotated is decoded as stored. Alpha, if requested, is 255.
 *
 * libjpeg repairs damaged data and only warns. Here lost pixels are an error: data that ends early, invalid codes,
 * restart markers out of order. Warnings without lost pixels are ignored, as in TensorFlow: extra bytes before a
 * marker, odd values in headers.
 *
 * libjpeg reports errors by longjmp to the setjmp of the function that called it; everything that has to be freed is
 * reachable from struct jpeg.
 *
 * Any thread; a struct jpeg belongs to one. */
#include "image/jpeg.h"

#include <setjmp.h>
#include <string.h>

#include "image/jpeg_mem.h"
#include "image/scratch.h"

#include <jerror.h>

/* Real files have about ten. A hostile scan of a few bytes can cost a pass over all coefficients. */
enum { MAX_SCANS = 256 };

struct jpeg {
	struct jpeg_decompress_struct cinfo; /* client_data points back here */
	struct jpeg_error_mgr errors;
	struct jpeg_source_mgr source;
	struct jpeg_progress_mgr progress;
	struct leat_jpeg_mem mem;
	jmp_buf failed;
	size_t size;
	struct leat_decode *decode;
	int mode;             /* enum leat_decode_mode */
	struct leat_err *err; /* of the current call */
	enum leat_status status;
};

static void
on_error(j_common_ptr cinfo)
{
	struct jpeg *jpeg = cinfo->client_data;
	char text[JMSG_LENGTH_MAX];

	if (cinfo->err->msg_code == JERR_OUT_OF_MEMORY) {
		jpeg->status = leat_fail_image(jpeg->err, "decoding", jpeg->decode->scratch);
	} else if (cinfo->err->msg_code == JERR_INPUT_EOF) {
		jpeg->status = leat_fail(jpeg->err, LEAT_DATA, "the JPEG image is cut off after %zu bytes", jpeg->size);
	} else {
		cinfo->err->format_message(cinfo, text);
		jpeg->status = leat_fail(jpeg->err, LEAT_DATA, "can't decode the JPEG image (%zu bytes): %s",
		                         jpeg->size, text);
	}
	longjmp(jpeg->failed, 1);
}

/* Called for warnings (negative levels) and traces. */
static void
on_message(j_common_ptr cinfo, int level)
{
	if (level >= 0)
		return;
	switch (cinfo->err->msg_code) {
	case JWRN_ARITH_BAD_CODE:
	case JWRN_BOGUS_PROGRESSION:
	case JWRN_HIT_MARKER:
	case JWRN_HUFF_BAD_CODE:
	case JWRN_MUST_RESYNC:
		on_error(cinfo);
	}
}

static void
print_nothing(j_common_ptr cinfo)
{
	(void)cinfo;
}

/* Called for each row of blocks of every scan, and for each row of pixels. */
static void
check_progress(j_common_ptr cinfo)
{
	struct jpeg *jpeg = cinfo->client_data;

	if (leat_scratch_stopped(jpeg->decode->scratch)) {
		jpeg->status = LEAT_CANCELLED;
		longjmp(jpeg->failed, 1);
	}
	if (jpeg->cinfo.input_scan_number <= MAX_SCANS)
		return;
	jpeg->status = leat_fail(jpeg->err, LEAT_DATA, "the JPEG image has more than %d scans", MAX_SCANS);
	longjmp(jpeg->failed, 1);
}

/* The whole file is in memory: a request for more is the end of the file. */
static void
source_nothing(j_decompress_ptr cinfo)
{
	(void)cinfo;
}

static boolean
source_fill(j_decompress_ptr cinfo)
{
	ERREXIT(cinfo, JERR_INPUT_EOF);
	return FALSE;
}

static void
source_skip(j_decompress_ptr cinfo, long count)
{
	if (count <= 0)
		return;
	if ((size_t)count > cinfo->src->bytes_in_buffer)
		ERREXIT(cinfo, JERR_INPUT_EOF);
	cinfo->src->next_input_byte += count;
	cinfo->src->bytes_in_buffer -= (size_t)count;
}

static void
create(struct jpeg *jpeg, const uint8_t *bytes, size_t size)
{
	jpeg_create_decompress(&jpeg->cinfo);
	leat_jpeg_mem_install(&jpeg->mem, (j_common_ptr)&jpeg->cinfo, jpeg->decode->scratch);
	jpeg->source = (struct jpeg_source_mgr){
		.next_input_byte = bytes,
		.bytes_in_buffer = size,
		.init_source = source_nothing,
		.fill_input_buffer = source_fill,
		.skip_input_data = source_skip,
		.resync_to_restart = jpeg_resync_to_restart,
		.term_source = source_nothing,
	};
	jpeg->cinfo.src = &jpeg->source;
	jpeg->progress.progress_monitor = check_progress;
	jpeg->cinfo.progress = &jpeg->progress;
}

static bool
is_cmyk(const struct jpeg_decompress_struct *cinfo)
{
	return cinfo->jpeg_color_space == JCS_CMYK || cinfo->jpeg_color_space == JCS_YCCK;
}

static enum leat_status
choose_colors(struct jpeg *jpeg, const struct leat_decoding *how)
{
	struct jpeg_decompress_struct *cinfo = &jpeg->cinfo;
	int channels = how->channels;

	if (!channels)
		channels = cinfo->num_components == 1 ? 1 : 3;
	if (channels >= 3)
		cinfo->out_color_space = is_cmyk(cinfo) ? JCS_CMYK : channels == 3 ? JCS_RGB : JCS_EXT_RGBA;
	else if (is_cmyk(cinfo))
		return leat_fail(jpeg->err, LEAT_DATA, "a CMYK JPEG image can't be decoded to gray; use 3 channels");
	else
		cinfo->out_color_space = JCS_GRAYSCALE;
	cinfo->dct_method = leat_jpeg_dct_of(how) == LEAT_JPEG_SLOW ? JDCT_ISLOW : JDCT_IFAST;
	cinfo->do_fancy_upsampling = TRUE;
	jpeg->decode->channels = channels;
	jpeg->mode = how->mode;
	return LEAT_OK;
}

/* Ink and black, both inverted, to one RGB channel: TensorFlow truncates the product, Pillow rounds its complement. */
static uint8_t
rgb_of_ink(int ink, int black, int mode)
{
	if (mode == LEAT_DECODE_TF)
		return (uint8_t)(ink * black / 255);
	return (uint8_t)(black - ((255 - ink) * black + 127) / 255);
}

/* CMYK to 3 or 4 channels. Inks are stored inverted if there is an Adobe marker; Pillow assumes that always. */
static void
cmyk_to_rgb(const struct jpeg *jpeg, const uint8_t *cmyk, uint8_t *rgb, size_t pixels)
{
	const size_t channels = (size_t)jpeg->decode->channels;
	const int invert = jpeg->cinfo.saw_Adobe_marker || jpeg->mode == LEAT_DECODE_TORCH ? 0 : 255;

	for (size_t i = 0; i < pixels; i++, cmyk += 4, rgb += channels) {
		for (size_t c = 0; c < 3; c++)
			rgb[c] = rgb_of_ink(cmyk[c] ^ invert, cmyk[3] ^ invert, jpeg->mode);
		if (channels == 4)
			rgb[3] = 255;
	}
}

/* Complete rows are decoded straight to `out`, others to a temporary row. libjpeg's own functions to crop and skip
 * would change pixels next to the cut, because smooth upsampling needs the pixels beyond it. */
static void
read_rows(struct jpeg *jpeg, const struct leat_window *part, uint8_t *out, size_t stride)
{
	struct jpeg_decompress_struct *cinfo = &jpeg->cinfo;
	const size_t width = cinfo->output_width, channels = (size_t)jpeg->decode->channels;
	const size_t bytes = (size_t)part->width * channels, left = (size_t)part->left;
	const JDIMENSION top = (JDIMENSION)part->top, bottom = top + (JDIMENSION)part->height;
	const bool cmyk = cinfo->out_color_space == JCS_CMYK, whole = !cmyk && bytes == width * channels;
	JSAMPROW temporary = NULL;

	if (!whole || top > 0)
		temporary = cinfo->mem->alloc_large((j_common_ptr)cinfo, JPOOL_IMAGE, width * (cmyk ? 4 : channels));
	while (cinfo->output_scanline < bottom) {
		JDIMENSION y = cinfo->output_scanline;
		uint8_t *row = y < top ? NULL : out + (y - top) * stride;

		jpeg_read_scanlines(cinfo, row && whole ? &row : &temporary, 1);
		if (row && cmyk)
			cmyk_to_rgb(jpeg, temporary + 4 * left, row, (size_t)part->width);
		else if (row && !whole)
			memcpy(row, temporary + left * channels, bytes);
	}
}

static bool
jpeg_recognize(const uint8_t *bytes, size_t size)
{
	return size >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff;
}

static void
jpeg_end(struct leat_decode *decode)
{
	struct jpeg *jpeg = decode->state;

	leat_jpeg_mem_remove(&jpeg->mem, (j_common_ptr)&jpeg->cinfo);
	jpeg_destroy_decompress(&jpeg->cinfo);
}

static enum leat_status
jpeg_begin(struct leat_decode *decode, const uint8_t *bytes, size_t size, const struct leat_decoding *how,
           struct leat_err *err)
{
	struct jpeg *jpeg = leat_scratch_alloc(decode->scratch, sizeof(*jpeg));

	if (!jpeg)
		return leat_fail_image(err, "decoding", decode->scratch);
	memset(jpeg, 0, sizeof(*jpeg));
	decode->state = jpeg;
	jpeg->decode = decode;
	jpeg->size = size;
	jpeg->err = err;
	jpeg->cinfo.err = jpeg_std_error(&jpeg->errors);
	jpeg->cinfo.client_data = jpeg;
	jpeg->errors.error_exit = on_error;
	jpeg->errors.emit_message = on_message;
	jpeg->errors.output_message = print_nothing;

	if (!setjmp(jpeg->failed)) {
		create(jpeg, bytes, size);
		jpeg_read_header(&jpeg->cinfo, TRUE);
		jpeg->status = leat_jpeg_size(decode, jpeg->cinfo.image_width, jpeg->cinfo.image_height,
		                              jpeg->cinfo.arith_code ? SIZE_MAX : size, err);
		if (jpeg->status == LEAT_OK)
			jpeg->status = choose_colors(jpeg, how);
	}
	if (jpeg->status != LEAT_OK)
		jpeg_end(decode);
	return jpeg->status;
}

static enum leat_status
jpeg_reduced(struct leat_decode *decode, int halvings, const struct leat_window *part, uint8_t *out, size_t stride,
             struct leat_err *err)
{
	struct jpeg *jpeg = decode->state;
	const size_t mark = decode->scratch->used;

	jpeg->err = err;
	jpeg->cinfo.scale_num = 1;
	jpeg->cinfo.scale_denom = 1u << halvings;
	if (halvings)
		jpeg->cinfo.dct_method = JDCT_ISLOW; /* for chroma blocks that are not reduced */
	if (!setjmp(jpeg->failed)) {
		jpeg_start_decompress(&jpeg->cinfo);
		read_rows(jpeg, part, out, stride);
		if (jpeg->cinfo.output_scanline == jpeg->cinfo.output_height)
			jpeg_finish_decompress(&jpeg->cinfo);
	}
	decode->scratch->used = mark;
	return jpeg->status;
}

static enum leat_status
jpeg_region(struct leat_decode *decode, const struct leat_window *part, uint8_t *out, size_t stride,
            struct leat_err *err)
{
	return jpeg_reduced(decode, 0, part, out, stride, err);
}

const struct leat_codec leat_codec_jpeg_turbo = {
	.recognize = jpeg_recognize,
	.begin = jpeg_begin,
	.region = jpeg_region,
	.reduced = jpeg_reduced,
	.end = jpeg_end,
};
