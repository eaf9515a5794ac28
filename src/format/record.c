/* record.c - read records of TFRecord files
 *
 * Any thread, on different objects. */
#include "format/record.h"

#include "base/copy.h"

enum leat_status
leat_tfrecord_fail_packed(const char *uri, uint64_t at, const char *fault, uint64_t out, struct leat_err *err)
{
	return leat_fail(err, LEAT_DATA,
	                 "%s at compressed offset %llu: %s (records from inflated offset %llu on are lost)", uri,
	                 (unsigned long long)at, fault, (unsigned long long)out);
}

enum leat_status
leat_tfrecord_damage(const struct leat_indexed *indexed, const struct leat_extent *extent, struct leat_err *err)
{
	const struct leat_index *index = &indexed->index[extent->file];
	struct leat_files *files = indexed->files;
	const struct leat_object *file = leat_files_at(files, extent->file);
	uint64_t left = extent->offset < file->size ? file->size - extent->offset : 0, ignored;
	unsigned char head[LEAT_TFRECORD_HEAD];
	struct iovec iov = {.iov_base = head, .iov_len = sizeof(head)};
	enum leat_status status = LEAT_OK;
	const char *fault;
	size_t got;

	if (index->packed)
		return leat_tfrecord_fail_packed(file->uri, index->points.head.fault_at, index->points.head.fault,
		                                 extent->offset, err);
	if (left >= sizeof(head))
		status = leat_files_read(files, extent->file, extent->offset, &iov, 1, 0, &got, err);
	if (status != LEAT_OK)
		return status;
	fault = leat_tfrecord_header_fault(head, left, &ignored);
	return leat_fail(err, LEAT_DATA, "%s at offset %llu: %s (%llu bytes damaged)", file->uri,
	                 (unsigned long long)extent->offset,
	                 fault ? fault : "record's checksum does not match, and no record follows it",
	                 (unsigned long long)extent->length);
}

enum leat_status
leat_tfrecord_readable(const struct leat_indexed *indexed, struct leat_err *err)
{
	size_t files = leat_files_count(indexed->files);
	struct leat_extent extent;

	if (indexed->first[files] == 0 || indexed->damaged < indexed->first[files])
		return LEAT_OK;
	leat_tfrecord_extent(indexed, leat_indexed_first_file(indexed), 0, &extent);
	leat_tfrecord_damage(indexed, &extent, err);
	if (err)
		leat_err_in(err, "no TFRecord file has a readable record");
	return LEAT_DATA;
}

/* Where to copy a record's data during the check; `at` NULL: nowhere. */
struct target {
	unsigned char *at;
	bool past_cache;
};

static uint32_t
sum_data(const unsigned char *data, size_t length, struct target to)
{
	uint32_t crc = to.at ? leat_crc32c_copy(0, to.at, data, length, to.past_cache) : leat_crc32c(0, data, length);

	return leat_crc32c_mask(crc);
}

/* Inlined: whether there is a target is known beforehand. */
static inline enum leat_status
check_to(const struct leat_files *files, const struct leat_raw *raw, bool crc, struct target to, struct leat_err *err)
{
	uint64_t length = raw->extent.length - LEAT_TFRECORD_FRAME;
	const char *fault = NULL;

	if (crc && leat_load32(raw->head + 8) != leat_tfrecord_crc(raw->head, 8))
		fault = "record header's checksum does not match";
	else if (leat_load64(raw->head) != length)
		fault = "the record's length has changed since the file was indexed";
	else if (crc && leat_load32(raw->tail) != sum_data(raw->payload, (size_t)length, to))
		fault = "record's checksum does not match";
	else if (!crc && to.at)
		leat_copy(to.at, raw->payload, (size_t)length, to.past_cache);
	if (!fault)
		return LEAT_OK;
	return leat_fail(err, LEAT_DATA, "%s at offset %llu: %s (%llu bytes)",
	                 leat_files_at(files, raw->extent.file)->uri, (unsigned long long)raw->extent.offset, fault,
	                 (unsigned long long)length);
}

enum leat_status
leat_tfrecord_check(const struct leat_files *files, const struct leat_raw *raw, bool crc, struct leat_err *err)
{
	return check_to(files, raw, crc, (struct target){0}, err);
}

enum leat_status
leat_tfrecord_check_copy(const struct leat_files *files, const struct leat_raw *raw, bool crc, unsigned char *to,
                         bool past_cache, struct leat_err *err)
{
	return check_to(files, raw, crc, (struct target){to, past_cache}, err);
}
