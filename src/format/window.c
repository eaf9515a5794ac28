/* window.c - see window.h */
#include "format/window.h"

enum leat_status
leat_window_open(struct leat_window *window, struct leat_files *files, size_t file, struct leat_mem *mem,
                 struct leat_err *err)
{
	*window = (struct leat_window){
		.files = files,
		.file = file,
		.uri = leat_files_at(files, file)->uri,
		.size = leat_files_at(files, file)->size,
		.mem = mem,
		.buffer = leat_alloc(mem, LEAT_WINDOW),
		.block = LEAT_WINDOW,
	};
	return window->buffer ? LEAT_OK : leat_fail_mem(err, mem, LEAT_WINDOW, "reading a file's headers");
}

void
leat_window_close(struct leat_window *window)
{
	if (window->mem)
		leat_free(window->mem, window->buffer);
	*window = (struct leat_window){0};
}

enum leat_status
leat_window_move(struct leat_window *window, uint64_t offset, size_t need, struct leat_err *err)
{
	struct iovec iov = {.iov_base = window->buffer, .iov_len = window->block < need ? need : window->block};
	enum leat_status status;
	size_t got;

	if (iov.iov_len > window->size - offset)
		iov.iov_len = (size_t)(window->size - offset);
	window->len = 0; /* should the read fail half way */
	status = leat_files_read(window->files, window->file, offset, &iov, 1, 0, &got, err);
	if (status != LEAT_OK)
		return status;
	window->at = offset;
	window->len = iov.iov_len;
	return LEAT_OK;
}
