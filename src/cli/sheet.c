/* sheet.c - see sheet.h */
#include "cli/sheet.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "image/png_write.h"
#include "store/store.h"

enum { GAP = 4, BACKGROUND = 0x20, MAX_PIXELS = 64 * 1000 * 1000 };

static bool
is_channels(int64_t n)
{
	return n == 1 || n == 3;
}

bool
leat_sheet_fits(const struct leat_field *field)
{
	return field->ndim == 3 && (field->dtype == LEAT_U8 || field->dtype == LEAT_F32) &&
	       (is_channels(field->shape[2]) || is_channels(field->shape[0]));
}

static int64_t
sheet_width(const struct leat_sheet *sheet)
{
	return sheet->columns * (sheet->cell_width + GAP) + GAP;
}

static int64_t
sheet_height(const struct leat_sheet *sheet)
{
	return sheet->rows * (sheet->cell_height + GAP) + GAP;
}

/* Names a count that fits: that of the largest square. */
static enum leat_status
fail_size(struct leat_sheet *sheet, int64_t count, struct leat_err *err)
{
	while (sheet->columns > 0) {
		sheet->rows = --sheet->columns;
		if (sheet_width(sheet) <= MAX_PIXELS / sheet_height(sheet))
			break;
	}
	if (sheet->columns == 0)
		return leat_fail(err, LEAT_LIMIT,
		                 "an image of %lldx%lld pixels is too large for a sheet: add a resize to the spec",
		                 (long long)sheet->cell_width, (long long)sheet->cell_height);
	return leat_fail(err, LEAT_LIMIT,
	                 "%lld images of %lldx%lld pixels are too many for one sheet: show fewer, as with -n %lld",
	                 (long long)count, (long long)sheet->cell_width, (long long)sheet->cell_height,
	                 (long long)(sheet->columns * sheet->columns));
}

enum leat_status
leat_sheet_open(struct leat_sheet *sheet, int64_t count, int64_t cell_width, int64_t cell_height, struct leat_mem *mem,
                struct leat_err *err)
{
	size_t bytes;

	*sheet = (struct leat_sheet){.mem = mem, .cell_width = cell_width, .cell_height = cell_height};
	while (sheet->columns * sheet->columns < count)
		sheet->columns++;
	sheet->rows = (count + sheet->columns - 1) / sheet->columns;
	if (sheet_width(sheet) > MAX_PIXELS / sheet_height(sheet))
		return fail_size(sheet, count, err);
	bytes = (size_t)(sheet_width(sheet) * sheet_height(sheet) * 3);
	sheet->rgb = leat_alloc(mem, bytes);
	if (!sheet->rgb)
		return leat_fail_mem(err, mem, bytes, "the contact sheet");
	memset(sheet->rgb, BACKGROUND, bytes);
	return LEAT_OK;
}

void
leat_sheet_free(struct leat_sheet *sheet)
{
	leat_free(sheet->mem, sheet->rgb);
	sheet->rgb = NULL;
}

/* Maps floats to bytes. */
struct range {
	float low, scale;
};

static struct range
find_range(const float *data, size_t count)
{
	float low = INFINITY, high = -INFINITY;

	for (size_t i = 0; i < count; i++) {
		low = data[i] < low ? data[i] : low;
		high = data[i] > high ? data[i] : high;
	}
	/* Brightness and contrast ops may exceed 0..1 slightly. */
	if (low >= -0.5f && high <= 1.5f)
		return (struct range){0, 255};
	if (low >= 0 && high <= 255)
		return (struct range){0, 1};
	return (struct range){low, high > low ? 255 / (high - low) : 0};
}

static uint8_t
pixel(const void *data, enum leat_dtype dtype, size_t at, struct range range)
{
	float x;

	if (dtype == LEAT_U8)
		return ((const uint8_t *)data)[at];
	x = (((const float *)data)[at] - range.low) * range.scale;
	return x > 255 ? 255 : x > 0 ? (uint8_t)(x + 0.5f) : 0;
}

void
leat_sheet_draw(struct leat_sheet *sheet, int64_t at, const void *data, enum leat_dtype dtype, const int64_t shape[3])
{
	bool planar = !is_channels(shape[2]);
	int64_t height = planar ? shape[1] : shape[0], width = planar ? shape[2] : shape[1];
	int64_t channels = planar ? shape[0] : shape[2];
	int64_t left = GAP + at % sheet->columns * (sheet->cell_width + GAP);
	int64_t top = GAP + at / sheet->columns * (sheet->cell_height + GAP);
	struct range range = {0, 1};

	if (!is_channels(channels))
		return;
	if (dtype == LEAT_F32)
		range = find_range(data, (size_t)(height * width * channels));
	for (int64_t y = 0; y < height && y < sheet->cell_height; y++) {
		for (int64_t x = 0; x < width && x < sheet->cell_width; x++) {
			uint8_t *to = sheet->rgb + ((top + y) * sheet_width(sheet) + left + x) * 3;

			for (int64_t c = 0; c < 3; c++) {
				int64_t from = channels == 1 ? 0 : c;
				int64_t i =
					planar ? (from * height + y) * width + x : (y * width + x) * channels + from;

				to[c] = pixel(data, dtype, (size_t)i, range);
			}
		}
	}
}

enum leat_status
leat_sheet_write(const struct leat_sheet *sheet, const char *path, const struct leat_storage *storage,
                 struct leat_err *err)
{
	void *png;
	size_t size;
	enum leat_status status = leat_png_write(sheet->rgb, (uint32_t)sheet_width(sheet),
	                                         (uint32_t)sheet_height(sheet), &png, &size, err);

	if (status == LEAT_OK)
		status = leat_write_whole(path, png, size, 0, storage, sheet->mem, err);
	free(png);
	return status;
}
