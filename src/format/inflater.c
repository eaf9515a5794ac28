/* inflater.c - see inflater.h */
#include "format/inflater.h"

#include <string.h>

enum { INPUT = 64 * 1024, GZIP_TRAILER = 8, ZLIB_TRAILER = 4, RAW = -15, GZIP = 15 + 16, ZLIB = 15 };

static void *
take(void *mem, unsigned count, unsigned size)
{
	return leat_alloc_array(mem, count, size);
}

static void
give(void *mem, void *memory)
{
	leat_free(mem, memory);
}

void
leat_inflater_close(struct leat_inflater *inflater)
{
	if (inflater->ready)
		inflateEnd(&inflater->z);
	if (inflater->mem)
		leat_free(inflater->mem, inflater->input);
	*inflater = (struct leat_inflater){0};
}

enum leat_status
leat_inflater_open(struct leat_inflater *inflater, bool files, struct leat_mem *mem, struct leat_err *err)
{
	static const unsigned char one[1];

	*inflater = (struct leat_inflater){.mem = mem, .z = {.zalloc = take, .zfree = give, .opaque = mem}};
	inflater->input = files ? leat_alloc(mem, INPUT) : NULL;
	inflater->ready = (inflater->input || !files) && inflateInit2(&inflater->z, RAW) == Z_OK;
	/* zlib allocates its window with the first dictionary and keeps it: all our windows have the same size. */
	if (inflater->ready && inflateSetDictionary(&inflater->z, one, sizeof(one)) == Z_OK)
		return LEAT_OK;
	leat_inflater_close(inflater);
	return leat_fail_mem(err, mem, INPUT + LEAT_POINT_WINDOW, "inflating a compressed file");
}

static void
start(struct leat_inflater *inflater, enum leat_packing packing)
{
	inflater->packing = packing;
	inflater->read = 0;
	inflater->z.avail_in = 0;
	inflater->inside = inflater->raw = inflater->at_block = inflater->ended = false;
	inflater->trailer = 0;
	inflater->fault = NULL;
}

void
leat_inflater_begin(struct leat_inflater *inflater, struct leat_files *files, size_t file, enum leat_packing packing)
{
	inflater->files = files;
	inflater->file = file;
	inflater->from = NULL;
	inflater->size = leat_files_at(files, file)->size;
	start(inflater, packing);
}

/* Loads the next part of the file. There must be one. */
static enum leat_status
bring(struct leat_inflater *inflater, struct leat_err *err)
{
	uint64_t left = inflater->size - inflater->read;
	struct iovec iov = {.iov_base = inflater->input, .iov_len = left < INPUT ? (size_t)left : INPUT};
	enum leat_status status;
	size_t got;

	if (inflater->from) {
		enum { MOST = 1 << 30 }; /* zlib counts in unsigned int */

		inflater->z.next_in = (unsigned char *)inflater->from + (inflater->read - inflater->from_at);
		inflater->z.avail_in = left < MOST ? (unsigned)left : MOST;
		inflater->read += inflater->z.avail_in;
		return LEAT_OK;
	}
	status = leat_files_read(inflater->files, inflater->file, inflater->read, &iov, 1, 0, &got, err);
	if (status != LEAT_OK)
		return status;
	inflater->read += iov.iov_len;
	inflater->z.next_in = inflater->input;
	inflater->z.avail_in = (unsigned)iov.iov_len;
	return LEAT_OK;
}

static void
set_fault(struct leat_inflater *inflater, const char *fault)
{
	inflater->fault = fault;
	inflater->fault_at = inflater->read - inflater->z.avail_in;
}

bool
leat_inflater_resume(struct leat_inflater *inflater, const struct leat_points *points, uint64_t i,
                     const unsigned char *bytes, uint64_t length)
{
	const struct leat_point *point = &points->point[i];
	z_stream *z = &inflater->z;
	uint64_t span;

	leat_points_span(points, i, &inflater->from_at, &span);
	inflater->from = bytes;
	inflater->size = inflater->from_at + length;
	start(inflater, (enum leat_packing)points->head.packing);
	inflater->read = inflater->from_at;
	if (inflateReset2(z, RAW) != Z_OK)
		return false;
	if (point->window && inflateSetDictionary(z, points->window + point->window_at, point->window) != Z_OK)
		return false;
	if (point->bits) {
		if (!length || inflatePrime(z, (int)point->bits, *bytes >> (8 - point->bits)) != Z_OK)
			return false;
		inflater->read++;
	}
	inflater->inside = inflater->raw = true;
	return true;
}

static const char cut[] = "the file ends inside its compressed data";

/* Handles what surrounds a member's deflate blocks and is not read by zlib. False: nothing to inflate yet. (Inside a
 * member there may be output left in zlib even if the whole file was read.) */
static bool
step_between(struct leat_inflater *inflater)
{
	z_stream *z = &inflater->z;

	if (!z->avail_in && !inflater->inside) {
		if (inflater->trailer)
			set_fault(inflater, cut);
		else
			inflater->ended = true;
		return false;
	}
	if (inflater->trailer) {
		unsigned n = z->avail_in < inflater->trailer ? z->avail_in : inflater->trailer;

		z->next_in += n;
		z->avail_in -= n;
		inflater->trailer -= n;
		return false;
	}
	if (!inflater->inside) {
		inflateReset2(z, inflater->packing == LEAT_PACKED_GZIP ? GZIP : ZLIB);
		inflater->inside = true;
		inflater->raw = false;
	}
	return true;
}

static enum leat_status
step(struct leat_inflater *inflater, bool blocks, struct leat_err *err)
{
	z_stream *z = &inflater->z;
	unsigned in = z->avail_in, out = z->avail_out;
	int result = inflate(z, blocks ? Z_BLOCK : Z_NO_FLUSH);

	switch (result) {
	case Z_OK:
	case Z_BUF_ERROR:
		inflater->at_block = blocks && (z->data_type & 128) && !(z->data_type & 64);
		if (z->avail_in == in && z->avail_out == out)
			set_fault(inflater, in ? "its compressed data is invalid" : cut);
		return LEAT_OK;
	case Z_STREAM_END:
		inflater->inside = false;
		if (inflater->raw)
			inflater->trailer = inflater->packing == LEAT_PACKED_GZIP ? GZIP_TRAILER : ZLIB_TRAILER;
		return LEAT_OK;
	case Z_NEED_DICT:
		set_fault(inflater, "it needs a preset dictionary");
		return LEAT_OK;
	case Z_MEM_ERROR:
		return leat_fail_mem(err, inflater->mem, LEAT_POINT_WINDOW, "inflating a compressed file");
	default:
		set_fault(inflater, z->msg ? z->msg : "its compressed data is invalid");
		return LEAT_OK;
	}
}

enum leat_status
leat_inflater_read(struct leat_inflater *inflater, void *to, size_t len, bool blocks, size_t *got, struct leat_err *err)
{
	enum { MOST = 1 << 30 }; /* zlib counts in unsigned int */
	z_stream *z = &inflater->z;
	enum leat_status status = LEAT_OK;
	unsigned char *begin = to;

	*got = 0;
	inflater->at_block = false;
	while (*got < len && !inflater->ended && !inflater->fault && !inflater->at_block) {
		unsigned room = len - *got < MOST ? (unsigned)(len - *got) : MOST;

		if (!z->avail_in && inflater->read < inflater->size)
			status = bring(inflater, err);
		if (status != LEAT_OK)
			return status;
		if (!step_between(inflater))
			continue;
		z->next_out = begin + *got;
		z->avail_out = room;
		status = step(inflater, blocks, err);
		*got += room - z->avail_out;
		if (status != LEAT_OK)
			return status;
	}
	return LEAT_OK;
}

void
leat_inflater_point(struct leat_inflater *inflater, uint64_t out, struct leat_point *point, void *window)
{
	unsigned len = 0;

	inflateGetDictionary(&inflater->z, window, &len);
	*point = (struct leat_point){
		.in = inflater->read - inflater->z.avail_in,
		.out = out,
		.window = len,
		.bits = (uint32_t)inflater->z.data_type & 7,
	};
}
