/* window.h - a look at any place of a file through a buffer, for walks that mostly go forward
 *
 * How much is read at once is the walker's choice: whole blocks where things are small,
 * because many small reads cost more, little where large things are stepped over. One thread. */
#ifndef LEAT_FORMAT_WINDOW_H
#define LEAT_FORMAT_WINDOW_H

#include "store/store.h"

enum {
	LEAT_WINDOW = 256 * 1024, /* the buffer, and what is read at once where things are small */
	LEAT_WINDOW_PEEK = 4096,  /* and where they are large */
	LEAT_WINDOW_LARGE = 32768 /* from here on, they are */
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
	size_t block; /* to read next, LEAT_WINDOW at most */
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

/* Something of this length was met: what comes next is probably alike. */
static inline void
leat_window_expect(struct leat_window *window, uint64_t length)
{
	window->block = length < LEAT_WINDOW_LARGE ? LEAT_WINDOW : LEAT_WINDOW_PEEK;
}

#endif
