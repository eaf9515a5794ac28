/* sheet.h - contact sheet: many small images in one picture */
#ifndef LEAT_CLI_SHEET_H
#define LEAT_CLI_SHEET_H

#include "base/mem.h"
#include "leat.h"
#include "store/settings.h"

struct leat_sheet {
	struct leat_mem *mem;
	uint8_t *rgb;
	int64_t cell_width, cell_height, columns, rows;
};

/* Can this field be drawn? u8 or f32, HWC or CHW, 1 or 3 channels. */
bool leat_sheet_fits(const struct leat_field *field);

/* Allocates a sheet with `count` cells of this size; free it with leat_sheet_free. */
enum leat_status leat_sheet_open(struct leat_sheet *sheet, int64_t count, int64_t cell_width, int64_t cell_height,
                                 struct leat_mem *mem, struct leat_err *err);
void leat_sheet_free(struct leat_sheet *sheet);

/* Draws one image into cell `at`, clipped to the cell. Floats are mapped from [0, 1] if they are roughly in that range,
 * from [0, 255] if they are in that range, or else from [min, max]. */
void leat_sheet_draw(struct leat_sheet *sheet, int64_t at, const void *data, enum leat_dtype dtype,
                     const int64_t shape[3]);

enum leat_status leat_sheet_write(const struct leat_sheet *sheet, const char *path, const struct leat_storage *storage,
                                  struct leat_err *err);

#endif
