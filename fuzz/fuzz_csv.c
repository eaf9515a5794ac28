/* fuzz_csv.c - any bytes are rows or refused, and cells stay inside the text */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "format/csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	static struct leat_csv_row row;
	struct leat_csv csv;
	struct leat_err err;
	size_t bytes = 0;

	if (!text)
		return 0;
	memcpy(text, data, size);
	leat_err_clear(&err);
	leat_csv_begin(&csv, text, size);
	while (leat_csv_next(&csv, &row, &err) == LEAT_OK)
		for (size_t i = 0; i < row.cells; i++)
			bytes += strlen(row.cell[i]);
	if (bytes > size)
		abort();
	free(text);
	return 0;
}
