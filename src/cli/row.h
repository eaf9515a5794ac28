/* row.h - one field of one sample in a batch */
#ifndef LEAT_CLI_ROW_H
#define LEAT_CLI_ROW_H

#include "leat.h"

struct leat_row {
	const struct leat_field *field;
	const void *data;
	int64_t shape[LEAT_MAX_DIMS];
	int64_t count; /* values */
	size_t bytes;
};

/* Row `i` of `tensor`, which holds `field` of a batch. */
void leat_row_of(struct leat_row *row, const struct leat_field *field, const struct leat_tensor *tensor, int64_t i);

#endif
