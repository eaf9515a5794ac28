/* window.c - see window.h */
#include "format/window.h"

/* Measured with a warm page cache: a call costs as much as copying 6 KiB, and more than 64 KiB at once no longer fits
 * the inner CPU caches. */
enum {
	BLOCK = 64 * 1024,
	NEAR = 6 * 1024,     /* below this stride, read everything */
	FAR = 512 * 1024,    /* from this stride on, read only headers, even from a device */
	FAR_AWAY = 16 << 20, /* the same from a server: what many connections carry while one request takes its time */
	COLD_BLOCKS = 64,    /* to read after a page cache miss */
};

enum leat_status
leat_file_window_open(struct leat_file_window *window, struct leat_files *files, size_t file, struct leat_mem *mem,
                      struct leat_err *err)
{
	*window = (struct leat_file_window){
		.files = files,
		.file = file,
		.uri = leat_files_at(files, file)->uri,
		.size = leat_files_at(files, file)->size,
		.mem = mem,
		.has_latency = leat_files_at(files, file)->store->kind->in_flight > 0,
		.buffer = leat_alloc(mem, LEAT_WINDOW),
	};
	if (!window->buffer)
		return leat_fail_mem(err, mem, LEAT_WINDOW, "reading a file's headers");
	if (leat_files_at(files, file)->store->kind->remote) {
		window->ahead = leat_alloc(mem, sizeof(*window->ahead));
		if (window->ahead)
			leat_ahead_open(window->ahead, leat_files_at(files, file), mem);
	}
	return LEAT_OK;
}

void
leat_file_window_close(struct leat_file_window *window)
{
	if (window->ahead)
		leat_ahead_close(window->ahead);
	if (window->mem) {
		leat_free(window->mem, window->ahead);
		leat_free(window->mem, window->buffer);
	}
	*window = (struct leat_file_window){0};
}

static enum leat_status
read_some(struct leat_file_window *window, uint64_t offset, size_t len, size_t need, int flags, struct leat_err *err)
{
	struct iovec iov = {.iov_base = window->buffer, .iov_len = len < need ? need : len};
	enum leat_status status;
	size_t got;

	if (iov.iov_len > window->size - offset)
		iov.iov_len = (size_t)(window->size - offset);
	window->len = 0; /* in case the read fails */
	status = leat_files_read(window->files, window->file, offset, &iov, 1, flags, &got, err);
	if (status != LEAT_OK)
		return status;
	window->at = offset;
	window->len = iov.iov_len;
	return LEAT_OK;
}

/* LEAT_AGAIN: there is no memory for it. */
static enum leat_status
read_ahead(struct leat_file_window *window, uint64_t offset, struct leat_err *err)
{
	uint64_t left = window->size - offset;
	size_t len = left < LEAT_WINDOW ? (size_t)left : LEAT_WINDOW;
	enum leat_status status;

	window->len = 0;
	status = leat_ahead_read(window->ahead, offset, window->buffer, len, err);
	if (status == LEAT_OK) {
		window->at = offset;
		window->len = len;
	}
	return status;
}

enum leat_status
leat_file_window_move(struct leat_file_window *window, uint64_t offset, size_t need, struct leat_err *err)
{
	enum leat_status status;

	if (window->ahead && (window->search || window->stride < FAR_AWAY)) {
		status = read_ahead(window, offset, err);
		if (status != LEAT_AGAIN)
			return status;
	}
	if (window->search || window->stride < NEAR)
		return read_some(window, offset, window->has_latency ? LEAT_WINDOW : BLOCK, need, 0, err);
	if (window->stride >= FAR)
		return read_some(window, offset, 0, need, 0, err);
	if (!window->cold) {
		status = read_some(window, offset, 0, need, LEAT_READ_NOWAIT, err);
		if (status != LEAT_AGAIN)
			return status;
		window->cold = COLD_BLOCKS;
	}
	window->cold--;
	return read_some(window, offset, LEAT_WINDOW, need, 0, err);
}
