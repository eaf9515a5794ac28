/* jpeg.c - JPEG: common files by the decoder of jpeg.h, all others by libjpeg-turbo
 *
 * Callers cannot tell which of the two was used: pixels, errors and limits are those of the library. Only at reduced
 * size the pixels differ. If the scan of a common file turns out to be irregular, the library decodes the file again
 * from the start and reports the error.
 *
 * Any thread; a struct jpeg belongs to one. */
#include "image/jpeg.h"

#include "image/scratch.h"

struct jpeg {
	struct leat_jpeg_header header;
	const uint8_t *bytes;
	size_t size;
	struct leat_decoding how; /* channels 0 is replaced by those of the file */
	bool common;              /* decoded here, not by the library */
	struct leat_jpeg_scan *scan;
	struct leat_decode library; /* if not `common` */
};

/* A scan has at least one bit for each MCU, of 32 x 32 pixels at most, unless it is arithmetic-coded. */
enum leat_status
leat_jpeg_size(struct leat_decode *decode, uint32_t width, uint32_t height, size_t size, struct leat_err *err)
{
	enum { PIXELS_PER_BYTE = 8 * 32 * 32 };
	enum leat_status status = leat_decode_size(decode, width, height, err);

	if (status == LEAT_OK && (uint64_t)width * height / PIXELS_PER_BYTE > size)
		return leat_decode_fail_short(decode, "JPEG", size, err);
	return status;
}

static bool
jpeg_recognize(const uint8_t *bytes, size_t size)
{
	return leat_codec_jpeg_turbo.recognize(bytes, size);
}

static enum leat_status
library_begin(struct leat_decode *decode, struct leat_err *err)
{
	struct jpeg *jpeg = decode->state;
	enum leat_status status;

	jpeg->library = *decode;
	status = leat_codec_jpeg_turbo.begin(&jpeg->library, jpeg->bytes, jpeg->size, &jpeg->how, err);
	decode->height = jpeg->library.height;
	decode->width = jpeg->library.width;
	decode->channels = jpeg->library.channels;
	return status;
}

static enum leat_status
jpeg_begin(struct leat_decode *decode, const uint8_t *bytes, size_t size, const struct leat_decoding *how,
           struct leat_err *err)
{
	struct jpeg *jpeg = leat_scratch_alloc(decode->scratch, sizeof(*jpeg));

	if (!jpeg)
		return leat_fail_image(err, "decoding", decode->scratch);
	*jpeg = (struct jpeg){.bytes = bytes, .size = size, .how = *how};
	decode->state = jpeg;
	if (!leat_jpeg_header_read(&jpeg->header, bytes, size))
		return library_begin(decode, err);
	jpeg->common = true;
	if (!how->channels)
		jpeg->how.channels = jpeg->header.components;
	decode->channels = jpeg->how.channels;
	return leat_jpeg_size(decode, jpeg->header.width, jpeg->header.height, size, err);
}

static void
jpeg_end(struct leat_decode *decode)
{
	struct jpeg *jpeg = decode->state;

	if (!jpeg->common)
		leat_codec_jpeg_turbo.end(&jpeg->library);
}

/* A file that only looked common. Gives back the library's scratch. */
static enum leat_status
library_reduced(struct leat_decode *decode, int halvings, const struct leat_window *part, uint8_t *out, size_t stride,
                struct leat_err *err)
{
	struct jpeg *jpeg = decode->state;
	const size_t mark = decode->scratch->used;
	enum leat_status status = library_begin(decode, err);

	if (status == LEAT_OK) {
		status = leat_codec_jpeg_turbo.reduced(&jpeg->library, halvings, part, out, stride, err);
		leat_codec_jpeg_turbo.end(&jpeg->library);
	}
	decode->scratch->used = mark;
	return status;
}

static enum leat_status
jpeg_reduced(struct leat_decode *decode, int halvings, const struct leat_window *part, uint8_t *out, size_t stride,
             struct leat_err *err)
{
	struct jpeg *jpeg = decode->state;

	if (!jpeg->common)
		return leat_codec_jpeg_turbo.reduced(&jpeg->library, halvings, part, out, stride, err);
	switch (leat_jpeg_baseline(&jpeg->header, &jpeg->how, halvings, part, out, stride, leat_jpeg_fastest(),
	                           decode->scratch)) {
	case LEAT_JPEG_DONE:
		return LEAT_OK;
	case LEAT_JPEG_FULL:
		return leat_fail_image(err, "decoding", decode->scratch);
	default:
		return library_reduced(decode, halvings, part, out, stride, err);
	}
}

static enum leat_status
jpeg_region(struct leat_decode *decode, const struct leat_window *part, uint8_t *out, size_t stride,
            struct leat_err *err)
{
	return jpeg_reduced(decode, 0, part, out, stride, err);
}

static bool
jpeg_start_rows(struct leat_decode *decode, int halvings, const struct leat_window *part, const struct leat_scan *rows)
{
	const struct leat_jpeg_lines lines = {rows->line, rows->stride, (size_t)rows->lines};
	struct jpeg *jpeg = decode->state;

	return jpeg->common && leat_jpeg_scan_begin(&jpeg->scan, &jpeg->header, &jpeg->how, halvings, part, &lines,
	                                            leat_jpeg_fastest(), decode->scratch) == LEAT_JPEG_DONE;
}

static int64_t
jpeg_more_rows(struct leat_decode *decode, int64_t rows)
{
	struct jpeg *jpeg = decode->state;

	return leat_jpeg_scan_rows(jpeg->scan, rows);
}

const struct leat_codec leat_codec_jpeg = {
	.recognize = jpeg_recognize,
	.begin = jpeg_begin,
	.region = jpeg_region,
	.reduced = jpeg_reduced,
	.rows_at_once = LEAT_JPEG_STRIP,
	.start_rows = jpeg_start_rows,
	.more_rows = jpeg_more_rows,
	.end = jpeg_end,
};
