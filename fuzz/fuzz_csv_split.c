/* fuzz_csv_split.c - any bytes are records, good or bad, that make up the file; and values are read or refused
 *
 * The first byte chooses the number of columns, the second the size of pieces, the third the longest record. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "table/csv_split.h"
#include "table/value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct text {
	const uint8_t *bytes;
	size_t len, pos, most;
};

static enum leat_status
read_text(void *arg, void *to, size_t len, size_t *got, struct leat_err *err)
{
	struct text *text = arg;
	size_t left = text->len - text->pos;

	(void)err;
	*got = left < len ? left : len;
	*got = *got < text->most ? *got : text->most;
	memcpy(to, text->bytes + text->pos, *got);
	text->pos += *got;
	return LEAT_OK;
}

static void
read_values(const struct leat_csv_record *record)
{
	static const struct leat_declared columns[] = {
		{.kind = LEAT_COLUMN_INT64},     {.kind = LEAT_COLUMN_DOUBLE},
		{.kind = LEAT_COLUMN_FLOAT},     {.kind = LEAT_COLUMN_DATE},
		{.kind = LEAT_COLUMN_TIMESTAMP}, {.kind = LEAT_COLUMN_DECIMAL, .width = 38, .scale = 9},
		{.kind = LEAT_COLUMN_BOOL},
	};
	char value[16];

	for (size_t i = 0; i < record->fields; i++)
		for (size_t k = 0; k < sizeof(columns) / sizeof(*columns); k++)
			leat_value_parse(&columns[k], record->field[i].text, record->field[i].len, value);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct leat_csv_record record;
	struct leat_csv_split split;
	struct leat_mem mem;
	struct text text;
	size_t bytes = 0;

	if (size < 3)
		return 0;
	leat_mem_init(&mem, SIZE_MAX);
	text = (struct text){data + 3, size - 3, 0, (size_t)data[1] + 1};
	if (leat_csv_split_open(&split, &(struct leat_csv_bytes){read_text, &text}, ',', (size_t)data[2] * 4 + 1, &mem,
	                        NULL) != LEAT_OK)
		abort();
	split.columns = data[0] % 5;
	split.piece = text.most;
	while (leat_csv_split_next(&split, &record, NULL) == LEAT_OK) {
		bytes += record.bytes;
		if (record.fault == LEAT_FAULT_NONE)
			read_values(&record);
	}
	/* What is missing are empty lines and a byte order mark. */
	if (bytes > size - 3 || bytes + 2 * split.empty_lines + 3 < size - 3 || text.pos != text.len)
		abort();
	leat_csv_split_close(&split);
	if (mem.used)
		abort();
	return 0;
}
