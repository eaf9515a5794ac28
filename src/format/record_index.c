/* record_index.c - scan a TFRecord file for its records
 *
 * A file that does not begin with a record may be compressed: see record_packed.c.
 *
 * If records are large, only headers are read; if they are small, whole blocks, because
 * many small reads cost more. After an invalid header, the scan searches byte by byte for
 * the next record whose header and data both match their checksums; everything in between
 * becomes one damaged region. If the record before the invalid header does not match its
 * checksum either, it is the culprit (a writer died halfway, and another one appended), and
 * the search starts inside it.
 *
 * The search is linear. The data checksummed to tell a record from a lookalike is limited
 * to a few times the file size; beyond that, the rest counts as damaged.
 *
 * Threads: each file is scanned by one thread, several files at once. */
#include "format/record.h"

#include "format/window.h"

enum { SUM_FACTOR = 4 }; /* a search may checksum this many times the file size */

#define NO_RECORD UINT64_MAX

struct walk {
	struct leat_file_window window;
	uint64_t size;    /* of the file */
	uint64_t to_sum;  /* bytes that searches may still checksum */
	uint64_t summed;  /* record found by the last search, or NO_RECORD */
	uint64_t suspect; /* the last record if its data was not checksummed, or NO_RECORD */
};

const char *
leat_tfrecord_header_fault(const unsigned char *head, uint64_t left, uint64_t *length)
{
	*length = 0;
	if (left < LEAT_TFRECORD_HEAD)
		return "the file ends inside a record's header";
	if (leat_load32(head + 8) != leat_tfrecord_crc(head, 8))
		return "record header's checksum does not match";
	*length = leat_load64(head);
	if (left < LEAT_TFRECORD_FRAME || *length > left - LEAT_TFRECORD_FRAME)
		return "the file ends inside a record";
	return NULL;
}

/* Checks the data of the record at `offset` against its checksum. *right is false if it is too long to check. */
static enum leat_status
data_is_right(struct walk *walk, uint64_t offset, uint64_t length, bool *right, struct leat_err *err)
{
	const unsigned char *bytes;
	enum leat_status status;
	uint32_t crc = 0;
	size_t have;

	*right = false;
	if (length > walk->to_sum) {
		walk->to_sum = 0;
		return LEAT_OK;
	}
	walk->to_sum -= length;
	walk->window.search = true;
	offset += LEAT_TFRECORD_HEAD;
	while (length) {
		status = leat_file_window_look(&walk->window, offset, 1, &bytes, &have, err);
		if (status != LEAT_OK)
			return status;
		if (have > length)
			have = (size_t)length;
		crc = leat_crc32c(crc, bytes, have);
		offset += have;
		length -= have;
	}
	status = leat_file_window_look(&walk->window, offset, LEAT_TFRECORD_TAIL, &bytes, &have, err);
	*right = status == LEAT_OK && leat_load32(bytes) == leat_crc32c_mask(crc);
	return status;
}

/* The first offset in bytes[0..have), which begins at `offset`, where a valid record header begins. */
static uint64_t
find_header(const struct walk *walk, uint64_t offset, const unsigned char *bytes, size_t have, uint64_t *length)
{
	static const unsigned char zero[8];
	uint32_t zero_crc = leat_tfrecord_crc(zero, sizeof(zero)); /* preallocated files are full of zeros */

	for (size_t i = 0; i + LEAT_TFRECORD_HEAD <= have; i++) {
		uint64_t left = walk->size - offset - i;

		*length = leat_load64(bytes + i);
		if (left < LEAT_TFRECORD_FRAME || *length > left - LEAT_TFRECORD_FRAME)
			continue;
		if (leat_load32(bytes + i + 8) == (*length ? leat_tfrecord_crc(bytes + i, 8) : zero_crc))
			return offset + i;
	}
	return NO_RECORD;
}

/* Finds the next record with valid header and data, from `offset` on; the end of the file if there is none. */
static enum leat_status
find_record(struct walk *walk, uint64_t offset, uint64_t *found, struct leat_err *err)
{
	while (walk->to_sum && walk->size - offset >= LEAT_TFRECORD_FRAME) {
		const unsigned char *bytes;
		uint64_t length, candidate;
		enum leat_status status;
		size_t have;
		bool right;

		walk->window.search = true;
		status = leat_file_window_look(&walk->window, offset, LEAT_TFRECORD_HEAD, &bytes, &have, err);
		if (status != LEAT_OK)
			return status;
		candidate = find_header(walk, offset, bytes, have, &length);
		if (candidate == NO_RECORD) {
			offset += have - (LEAT_TFRECORD_HEAD - 1);
			continue;
		}
		status = data_is_right(walk, candidate, length, &right, err);
		if (status != LEAT_OK)
			return status;
		if (right) {
			*found = candidate;
			return LEAT_OK;
		}
		offset = candidate + 1;
	}
	*found = walk->size;
	return LEAT_OK;
}

/* If the last record's data is wrong too, removes the record and sets *begin to its offset. */
static enum leat_status
blame_last(struct walk *walk, struct leat_index *index, uint64_t *begin, struct leat_err *err)
{
	uint64_t last = walk->suspect, length;
	enum leat_status status;
	bool right;

	if (last == NO_RECORD)
		return LEAT_OK;
	length = *begin - last - LEAT_TFRECORD_FRAME;
	if (length > walk->to_sum)
		return LEAT_OK;
	status = data_is_right(walk, last, length, &right, err);
	if (status == LEAT_OK && !right) {
		leat_index_drop(index);
		*begin = last;
	}
	return status;
}

/* Adds the damage at *offset to the index, and moves to the next record. */
static enum leat_status
step_over_damage(struct walk *walk, struct leat_index *index, uint64_t *offset, struct leat_err *err)
{
	uint64_t begin = *offset;
	enum leat_status status = blame_last(walk, index, &begin, err);

	if (status == LEAT_OK)
		status = leat_index_add(index, begin, true, err);
	if (status == LEAT_OK)
		status = find_record(walk, begin + 1, offset, err);
	walk->summed = *offset;
	return status;
}

static enum leat_status
walk_records(struct walk *walk, struct leat_index *index, enum leat_packing *packing, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	uint64_t offset = 0, length;

	while (status == LEAT_OK && offset < walk->size) {
		uint64_t left = walk->size - offset;
		const unsigned char *head;
		size_t have;

		status = leat_file_window_look(&walk->window, offset,
		                               left < LEAT_TFRECORD_HEAD ? (size_t)left : LEAT_TFRECORD_HEAD, &head,
		                               &have, err);
		if (status != LEAT_OK)
			break;
		if (!leat_tfrecord_header_fault(head, left, &length)) {
			status = leat_index_add(index, offset, false, err);
			walk->suspect = offset == walk->summed ? NO_RECORD : offset;
			offset += LEAT_TFRECORD_FRAME + length;
			leat_file_window_expect(&walk->window, length);
			continue;
		}
		*packing = offset ? LEAT_PACKED_NOT : leat_tfrecord_packing(head, have, walk->size);
		if (*packing != LEAT_PACKED_NOT)
			return LEAT_OK;
		status = step_over_damage(walk, index, &offset, err);
	}
	return status == LEAT_OK ? leat_index_end(index, walk->size, err) : status;
}

static enum leat_status
make_index(struct leat_files *files, size_t i, struct leat_mem *mem, const struct leat_log *log,
           struct leat_index *index, struct leat_err *err)
{
	uint64_t size = leat_files_at(files, i)->size;
	struct walk walk = {
		.size = size,
		.to_sum = SUM_FACTOR * size,
		.summed = NO_RECORD,
		.suspect = NO_RECORD,
	};
	enum leat_packing packing = LEAT_PACKED_NOT;
	enum leat_status status = leat_file_window_open(&walk.window, files, i, mem, err);

	if (status != LEAT_OK)
		return status;
	leat_index_init(index, mem);
	status = walk_records(&walk, index, &packing, err);
	if (status != LEAT_OK)
		leat_index_free(index);
	else if (size && !walk.to_sum)
		leat_log(log, LEAT_LOG_WARN,
		         "'%s': gave up searching for records after damage; the rest counts as damaged",
		         walk.window.uri);
	leat_file_window_close(&walk.window);
	if (status == LEAT_OK && packing != LEAT_PACKED_NOT) /* nothing has been added */
		status = leat_tfrecord_index_packed(files, i, packing, mem, index, err);
	return status;
}

const struct leat_index_kind leat_tfrecord_index = {
	.name = "tfrecord",
	.packed = "tfrec-z2",
	.min_length = LEAT_TFRECORD_FRAME,
	.make = make_index,
};
