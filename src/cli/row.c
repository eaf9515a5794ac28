/* row.c - see row.h */
#include "cli/row.h"

void
leat_row_of(struct leat_row *row, const struct leat_field *field, const struct leat_tensor *tensor, int64_t i)
{
	size_t element = leat_dtype_size(tensor->dtype);
	int64_t at;

	row->field = field;
	row->count = 1;
	for (int d = 0; d < field->ndim; d++) {
		row->shape[d] = tensor->sample_shapes ? tensor->sample_shapes[i * field->ndim + d]
		                : tensor->offsets     ? tensor->offsets[i + 1] - tensor->offsets[i]
		                                      : field->shape[d];
		row->count *= row->shape[d];
	}
	at = tensor->offsets ? tensor->offsets[i] : i * row->count;
	row->data = (const char *)tensor->data + (size_t)at * element;
	row->bytes = (size_t)row->count * element;
}
