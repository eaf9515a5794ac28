/* window.h - buffered access to any part of a file, for scans that mostly move forward
 *
 * Small records are read in whole blocks, because many small reads cost more. Larger records are
 * skipped and little more than their headers is read, as long as these are in the page cache.
 * From a device, sequential blocks are faster than single headers, until records are so large
 * that most bytes read would be wasted. From a store with latency, every block is as large as the
 * buffer; from a server, the file is read ahead (store/ahead.h), unless headers are so far apart that
 * asking for each takes less time. One thread. */
#ifndef LEAT_FORMAT_WINDOW_H
#define LEAT_FORMAT_WINDOW_H

#include "store/ahead.h"
#include "store/store.h"

enum {
	LEAT_WINDOW = 256 * 1024, /* the buffer */
};

struct leat_file_window {
	struct leat_files *files;
	size_t file;
	const char *uri;
	uint64_t size; /* of the file */
	struct leat_mem *mem;
	unsigned char *buffer;
	uint64_t at;
	size_t len;
	bool has_latency;         /* the store wants many reads in flight, so each takes its time */
	bool search;              /* the caller inspects every byte: read whole blocks */
	uint64_t stride;          /* average distance between headers */
	struct leat_ahead *ahead; /* NULL: not a server's */
	unsigned cold;            /* blocks to read before trying the page cache again */
};

enum leat_status leat_file_window_open(struct leat_file_window *window, struct leat_files *files, size_t file,
                                       struct leat_mem *mem, struct leat_err *err);
void leat_file_window_close(struct leat_file_window *window); /* accepts a zeroed one */

/* Refills the buffer from `offset`, with at least `need` bytes. */
enum leat_status leat_file_window_move(struct leat_file_window *window, uint64_t offset, size_t need,
                                       struct leat_err *err);

/* Points *bytes at `offset` with *have >= `need` bytes. The file must have them, and `need` is at most LEAT_WINDOW.
 * Valid until the next call. */
static inline enum leat_status
leat_file_window_look(struct leat_file_window *window, uint64_t offset, size_t need, const unsigned char **bytes,
                      size_t *have, struct leat_err *err)
{
	if (offset < window->at || offset + need > window->at + window->len) {
		enum leat_status status = leat_file_window_move(window, offset, need, err);

		if (status != LEAT_OK)
			return status;
	}
	*bytes = window->buffer + (offset - window->at);
	*have = (size_t)(window->at + window->len - offset);
	return LEAT_OK;
}

/* Records the length (below 2^62) of a record just seen, to predict the next. */
static inline void
leat_file_window_expect(struct leat_file_window *window, uint64_t length)
{
	window->search = false;
	window->stride = (3 * window->stride + length) / 4;
}

#endif
