/* csv_records.c - csv_records DELIMITER <FILE: the good records of a CSV file, one per line, fields in hex */
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "table/csv_split.h"

static enum leat_status
read_input(void *arg, void *to, size_t len, size_t *got, struct leat_err *err)
{
	ssize_t n = read(0, to, len);

	(void)arg;
	*got = n > 0 ? (size_t)n : 0;
	return n < 0 ? leat_fail(err, LEAT_IO, "cannot read") : LEAT_OK;
}

int
main(int argc, char **argv)
{
	struct leat_csv_record record;
	struct leat_csv_split split;
	struct leat_mem mem;

	if (argc != 2)
		return 2;
	leat_mem_init(&mem, SIZE_MAX);
	if (leat_csv_split_open(&split, &(struct leat_csv_bytes){read_input, NULL}, argv[1][0], 1 << 20, &mem, NULL))
		return 1;
	while (leat_csv_split_next(&split, &record, NULL) == LEAT_OK) {
		printf("%s", record.fault ? "bad" : "");
		for (size_t i = 0; !record.fault && i < record.fields; i++) {
			printf("%s", i ? " " : "");
			printf(":");
			for (size_t k = 0; k < record.field[i].len; k++)
				printf("%02x", (unsigned char)record.field[i].text[k]);
		}
		printf("\n");
	}
	leat_csv_split_close(&split);
	return 0;
}
