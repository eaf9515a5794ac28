/* make_records.c - make_records FILE COUNT: a TFRecord file of Examples with an `image` (JPEG, about 160 x 120) and a
 * `label` */
#include <stdio.h>
#include <stdlib.h>

#include "format/example.h"
#include "format/record.h"
#include "support/data.h"

static enum leat_status
write_records(struct leat_tfrecord_writer *writer, struct leat_example *example, long count, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (int64_t i = 0; i < count && status == LEAT_OK; i++) {
		size_t size, len;
		unsigned char *jpeg = data_jpeg(150 + (int)(i % 20), 110 + (int)(i % 16), (unsigned)i, &size);
		const void *record;

		leat_example_begin(example);
		leat_example_add_bytes(example, "image", jpeg, size);
		leat_example_add_int64s(example, "label", &i, 1);
		status = leat_example_finish(example, &record, &len, err);
		if (status == LEAT_OK)
			status = leat_tfrecord_writer_append(writer, record, len, err);
		free(jpeg);
	}
	return status;
}

int
main(int argc, char **argv)
{
	struct leat_tfrecord_writer writer;
	struct leat_example example;
	struct leat_mem mem;
	struct leat_err err = {0};
	enum leat_status status;

	if (argc != 3) {
		fprintf(stderr, "usage: make_records FILE COUNT\n");
		return 2;
	}
	leat_mem_init(&mem, SIZE_MAX);
	leat_example_init(&example, &mem, 64 << 20);
	status = leat_tfrecord_writer_open(&writer, argv[1], &mem, &err);
	if (status == LEAT_OK)
		status = write_records(&writer, &example, atol(argv[2]), &err);
	if (status == LEAT_OK)
		status = leat_tfrecord_writer_close(&writer, &err);
	leat_example_free(&example);
	if (status != LEAT_OK)
		fprintf(stderr, "make_records: %s\n", err.text);
	return status == LEAT_OK ? 0 : 1;
}
