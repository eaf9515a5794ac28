/* record_packed.c - inflate a compressed TFRecord file once, to find its records and restart points
 *
 * Only record headers are checked, as in plain files; data is checked when it is read.
 * Nothing after damage in a compressed stream can be recovered, so everything after the last
 * complete record becomes one damaged region, with the reason stored in the index.
 *
 * Threads: each file is scanned by one thread, several files at once. */
#include "format/record.h"

#include <string.h>

#include "format/inflater.h"

enum { OUTPUT = 64 * 1024, LONG = 4 * LEAT_TFRECORD_SPACING };

#define MAX_RECORD ((uint64_t)1 << 62)

struct walk {
	struct leat_inflater inflater;
	struct leat_index *index;
	uint64_t out;    /* bytes inflated so far */
	uint64_t record; /* where the current record begins */
	uint64_t skip;   /* bytes of it after its header, still to come */
	size_t have;     /* bytes of its header read so far */
	size_t open;     /* points before this one have their in_end; the next one's is the end of this record */
	const char *fault;
	unsigned char head[LEAT_TFRECORD_HEAD];
	unsigned char window[LEAT_POINT_WINDOW];
	unsigned char output[OUTPUT];
};

/* Upper bound on the bytes of the file inflated so far. */
static uint64_t
consumed(const struct walk *walk)
{
	return walk->inflater.read - walk->inflater.z.avail_in;
}

/* Sets in_end of the open points before `count` to `in`. */
static void
end_points(struct walk *walk, size_t count, uint64_t in)
{
	for (; walk->open < count; walk->open++)
		walk->index->points.points[walk->open].in_end = in;
}

/* Scans inflated bytes, from record to record. */
static enum leat_status
take_bytes(struct walk *walk, const unsigned char *bytes, size_t len, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	while (len && !walk->fault && status == LEAT_OK) {
		uint64_t want = walk->skip ? walk->skip : sizeof(walk->head) - walk->have;
		size_t n = len < want ? len : (size_t)want;

		if (walk->skip) {
			walk->skip -= n;
		} else {
			memcpy(walk->head + walk->have, bytes, n);
			walk->have += n;
		}
		bytes += n;
		len -= n;
		walk->out += n;
		if (n < want)
			break;
		if (walk->have == sizeof(walk->head)) {
			uint64_t length;

			walk->fault = leat_tfrecord_header_fault(walk->head, MAX_RECORD, &length);
			walk->skip = length + LEAT_TFRECORD_TAIL;
			walk->have = 0;
		} else {
			size_t points = (size_t)walk->index->points.head.count;

			status = leat_index_add(walk->index, walk->record, false, err);
			walk->record = walk->out;
			if (points)
				end_points(walk, points - 1, consumed(walk));
		}
	}
	return status;
}

/* Where the last record that begins before here begins. Something must have been inflated. */
static uint64_t
last_begin(const struct walk *walk)
{
	const struct leat_index *index = walk->index;

	return walk->record < walk->out || !index->count ? walk->record : leat_index_offset(index, index->count - 1);
}

/* Is the last point the first one inside a long record that goes on here? It says where the bytes of the file end that
 * the records before take, in case the long one is beyond max_bytes. */
static bool
is_in_long_record(const struct walk *walk)
{
	const struct leat_points *points = &walk->index->points;
	uint64_t begin = last_begin(walk), end = walk->record < walk->out ? walk->out + walk->skip : walk->out;

	return end - begin >= LONG && points->head.count >= 2 && points->point[points->head.count - 2].out <= begin;
}

/* Adds a point. Drops the previous one if no record begins between the two. */
static enum leat_status
take_point(struct walk *walk, struct leat_err *err)
{
	struct leat_points *points = &walk->index->points;
	uint64_t last = points->head.count ? points->point[points->head.count - 1].out : 0;
	struct leat_point point;

	if (points->head.count && walk->out - last < LEAT_TFRECORD_SPACING)
		return LEAT_OK;
	if (points->head.count && last_begin(walk) < last && !is_in_long_record(walk))
		leat_points_drop(points);
	leat_inflater_point(&walk->inflater, walk->out, &point, walk->window);
	if (walk->record == walk->out)
		end_points(walk, (size_t)points->head.count, point.in);
	return leat_points_add(points, &point, walk->window, err);
}

static enum leat_status
walk_records(struct walk *walk, struct leat_err *err)
{
	struct leat_inflater *inflater = &walk->inflater;
	enum leat_status status = LEAT_OK;

	while (status == LEAT_OK && !walk->fault && !inflater->ended && !inflater->fault) {
		size_t got;

		status = leat_inflater_read(inflater, walk->output, OUTPUT, true, &got, err);
		if (status == LEAT_OK)
			status = take_bytes(walk, walk->output, got, err);
		if (status == LEAT_OK && inflater->at_block && !walk->fault)
			status = take_point(walk, err);
	}
	return status;
}

/* Finishes the index; a truncated or damaged end becomes a damaged region. */
static enum leat_status
end_index(struct walk *walk, struct leat_err *err)
{
	const struct leat_inflater *inflater = &walk->inflater;
	uint64_t at = inflater->fault ? inflater->fault_at : consumed(walk), end = walk->out;
	const char *fault = walk->fault ? walk->fault : inflater->fault;
	enum leat_status status = LEAT_OK;

	end_points(walk, (size_t)walk->index->points.head.count, inflater->size);
	if (!fault && walk->record < walk->out)
		fault = "the inflated data ends inside a record";
	if (fault) {
		leat_points_fail(&walk->index->points, at, fault);
		status = leat_index_add(walk->index, walk->record, true, err);
		end = walk->out > walk->record ? walk->out : walk->record + 1; /* a region must not be empty */
	}
	return status == LEAT_OK ? leat_index_end(walk->index, end, err) : status;
}

enum leat_packing
leat_tfrecord_packing(const unsigned char *bytes, size_t have, uint64_t size)
{
	if (have >= 3 && bytes[0] == 0x1f && bytes[1] == 0x8b && bytes[2] == 8)
		return LEAT_PACKED_GZIP;
	if (have >= 8 && bytes[0] == 0x78 && (bytes[0] << 8 | bytes[1]) % 31 == 0 && leat_load64(bytes) > size)
		return LEAT_PACKED_ZLIB;
	return LEAT_PACKED_NOT;
}

enum leat_status
leat_tfrecord_index_packed(struct leat_files *files, size_t i, enum leat_packing packing, struct leat_mem *mem,
                           struct leat_index *index, struct leat_err *err)
{
	struct walk *walk = leat_alloc(mem, sizeof(*walk));
	enum leat_status status;

	if (!walk)
		return leat_fail_mem(err, mem, sizeof(*walk), "inflating a compressed file");
	leat_index_init(index, mem);
	index->packed = true;
	index->points.head.packing = packing;
	walk->index = index;
	status = leat_inflater_open(&walk->inflater, true, mem, err);
	if (status == LEAT_OK) {
		leat_inflater_begin(&walk->inflater, files, i, packing);
		status = walk_records(walk, err);
	}
	if (status == LEAT_OK)
		status = end_index(walk, err);
	if (status != LEAT_OK)
		leat_index_free(index);
	leat_inflater_close(&walk->inflater);
	leat_free(mem, walk);
	return status;
}
