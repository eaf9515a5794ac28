/* record_write.c - write TFRecord files */
#include "format/record.h"

enum leat_status
leat_tfrecord_writer_open(struct leat_tfrecord_writer *writer, const char *path, struct leat_mem *mem,
                          struct leat_err *err)
{
	enum leat_status status;

	writer->records = 0;
	leat_stores_init(&writer->stores, mem);
	status = leat_write_begin(&writer->out, &writer->stores, path, err);
	if (status != LEAT_OK)
		leat_stores_close(&writer->stores);
	return status;
}

enum leat_status
leat_tfrecord_write(struct leat_writer *out, const void *data, size_t len, struct leat_err *err)
{
	unsigned char head[LEAT_TFRECORD_HEAD], tail[LEAT_TFRECORD_TAIL];
	enum leat_status status;

	leat_store64(head, len);
	leat_store32(head + 8, leat_tfrecord_crc(head, 8));
	leat_store32(tail, leat_tfrecord_crc(data, len));
	status = leat_write(out, head, sizeof(head), err);
	if (status == LEAT_OK)
		status = leat_write(out, data, len, err);
	if (status == LEAT_OK)
		status = leat_write(out, tail, sizeof(tail), err);
	return status;
}

enum leat_status
leat_tfrecord_writer_append(struct leat_tfrecord_writer *writer, const void *data, size_t len, struct leat_err *err)
{
	enum leat_status status = leat_tfrecord_write(writer->out, data, len, err);

	writer->records += status == LEAT_OK;
	return status;
}

enum leat_status
leat_tfrecord_writer_close(struct leat_tfrecord_writer *writer, struct leat_err *err)
{
	enum leat_status status = leat_write_commit(writer->out, NULL, LEAT_COMMIT_SYNC, err);

	writer->out = NULL;
	leat_stores_close(&writer->stores);
	return status;
}

void
leat_tfrecord_writer_abort(struct leat_tfrecord_writer *writer)
{
	leat_write_abort(writer->out);
	writer->out = NULL;
	leat_stores_close(&writer->stores);
}
