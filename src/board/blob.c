/* blob.c - files of the store, by content
 *
 * The digest of a request is parsed and written anew, so no path of a client reaches the file system. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "board/inside.h"
#include "board/media.h"

static const char *
argument(struct leat_board *board, struct MHD_Connection *connection, const char *name)
{
	return board->mhd->lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
}

/* The part of a file to send: all, or what ?first=N or ?last=N ask for. */
static void
select_part(struct leat_board *board, struct MHD_Connection *connection, uint64_t size, uint64_t *from, uint64_t *len)
{
	const char *first = argument(board, connection, "first");
	const char *last = argument(board, connection, "last");
	uint64_t most = first || last ? strtoull(first ? first : last, NULL, 10) : size;

	*len = most < size ? most : size;
	*from = first ? 0 : size - *len;
}

static struct MHD_Response *
respond_with(struct leat_board *board, struct MHD_Connection *connection, int fd_take, uint64_t size)
{
	char head[LEAT_MEDIA_BYTES];
	ssize_t got = pread(fd_take, head, sizeof(head), 0);
	const struct leat_media *media =
		argument(board, connection, "text") ? &leat_media_text : leat_media_of(head, got > 0 ? (size_t)got : 0);
	bool save = argument(board, connection, "download") || strcmp(media->name, "binary") == 0;
	struct MHD_Response *response;
	uint64_t from, len;

	select_part(board, connection, size, &from, &len);
	response = board->mhd->create_response_from_fd_at_offset64(len, fd_take, from);
	if (!response) {
		close(fd_take);
		return NULL;
	}
	leat_board_headers(board, response, save ? "application/octet-stream" : media->type, media->policy, true);
	if (save)
		board->mhd->add_response_header(response, "Content-Disposition", "attachment");
	return response;
}

enum MHD_Result
leat_board_send_blob(struct leat_board *board, struct MHD_Connection *connection, const struct leat_digest *digest)
{
	struct leat_cas *cas;
	struct stat st;
	char path[PATH_MAX];
	int fd;

	if (leat_board_store(board, &cas, NULL) != LEAT_OK)
		return leat_board_send_error(board, connection, MHD_HTTP_NOT_FOUND, "nothing was built here yet");
	leat_cas_blob_path(cas, digest, path);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		if (fd >= 0)
			close(fd);
		return leat_board_send_error(board, connection, MHD_HTTP_NOT_FOUND,
		                             "this file is no longer in the store; 'leat build' makes it again");
	}
	return leat_board_send(board, connection, MHD_HTTP_OK,
	                       respond_with(board, connection, fd, (uint64_t)st.st_size));
}
