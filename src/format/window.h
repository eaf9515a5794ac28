/* window.h - a look at any place of a file through a buffer, for walks that mostly go forward
 *
 * Where things are small, whole blocks are read, because many small reads cost more; where
 * larger things are stepped over, little more than their headers, as long as these come from
 * the page cache. From a device whole blocks in a row come faster than headers one by one,
 * until things are so large that most of it would be read in vain. One thread. */
#ifndef LEAT_FORMAT_WINDOW_H
#define LEAT_FORMAT_WINDOW_H

#include "store/store.h"

enum {
	LEAT_WINDOW = 256 * 1024, /* the buffer */
};

struct leat_window {
	struct leat_files *files;
	size_t file;
	const char *uri;
	uint64_t size; /* of the file */
	struct leat_mem *mem;
	unsigned char *buffer;
	uint64_t at;
	size_t len;
	bool search;     /* every byte is looked at: whole blocks */
	uint64_t stride; /* from thing to thing, about */
	unsigned cold;   /* blocks to read until a look at what the page cache has is worth it again */
};

enum leat_status leat_window_open(struct leat_window *window, struct leat_files *files, size_t file,
                                  struct leat_mem *mem, struct leat_err *err);
void leat_window_close(struct leat_window *window); /* takes a zeroed one */

/* Reads on at `offset`: at least `need` bytes. */
enum leat_status leat_window_move(struct leat_window *window, uint64_t offset, size_t need, struct leat_err *err);

/* The bytes at `offset`, at least `need` of them (which the file has, and LEAT_WINDOW at most), and how many are
 * there. Valid until the next look. */
static inline enum leat_status
leat_window_look(struct leat_window *window, uint64_t offset, size_t need, const unsigned char **bytes, size_t *have,
                 struct leat_err *err)
{
	if (offset < window->at || offset + need > window->at + window->len) {
		enum leat_status status = leat_window_move(window, offset, need, err);

		if (status != LEAT_OK)
			return status;
	}
	*bytes = window->buffer + (offset - window->at);
	*have = (size_t)(window->at + window->len - offset);
	return LEAT_OK;
}

/* Something of this length (below 2^62) was met: what comes next is probably alike. */
static inline void
leat_window_expect(struct leat_window *window, uint64_t length)
{
	window->search = false;
	window->stride = (3 * window->stride + length) / 4;
}

#endif
