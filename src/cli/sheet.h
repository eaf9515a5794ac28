/* sheet.h - a contact sheet: many small images on one picture */
#ifndef LEAT_CLI_SHEET_H
#define LEAT_CLI_SHEET_H

#include "base/mem.h"
#include "leat.h"

struct leat_sheet {
	struct leat_mem *mem;
	uint8_t *rgb;
	int64_t cell_width, cell_height, columns, rows;
};

/* Can `tensor`'s samples be drawn? u8 or f32, height x width x channels or channels first, 1 or 3 channels. */
bool leat_sheet_fits(const struct leat_field *field);

/* Room for `count` images, as large as the largest of `batch`; to be freed with leat_sheet_free. */
enum leat_status leat_sheet_open(struct leat_sheet *sheet, int64_t count, int64_t cell_width, int64_t cell_height,
                                 struct leat_mem *mem, struct leat_err *err);
void leat_sheet_free(struct leat_sheet *sheet);

/* Draws one image at place `at`. Floats are taken as [0, 1] when they lie about there, as [0, 255] when they
 * lie there, else stretched from smallest to largest. What is larger than the cell is cut off. */
void leat_sheet_draw(struct leat_sheet *sheet, int64_t at, const void *data, enum leat_dtype dtype,
                     const int64_t shape[3]);

enum leat_status leat_sheet_write(const struct leat_sheet *sheet, const char *path, struct leat_err *err);

#endif
