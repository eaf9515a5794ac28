/* write_object.c - write_object URI FILE [WAY]: copies a local file to an object by way of a store's writer
 *
 * WAY: commit (default), finish (finish, then commit), unnamed (begun as URI.begun, named at the end), once (only if
 * there is none), abort, limit (with 24 MiB of memory). The first bytes are patched in. Prints the most memory that was
 * counted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"

enum { PIECE = 100000, PATCH = 100, LIMIT = 24 << 20 };

static enum leat_status
copy(struct leat_writer *writer, FILE *file, struct leat_err *err)
{
	static char piece[PIECE], first[PATCH], zero[PATCH];
	enum leat_status status = LEAT_OK;
	size_t len, patch = 0;

	while (status == LEAT_OK && (len = fread(piece, 1, PIECE, file)) > 0) {
		if (writer->size == 0) {
			patch = len < PATCH ? len : PATCH;
			memcpy(first, piece, patch);
			memset(piece, 0, patch);
		}
		status = leat_write(writer, piece, len, err);
	}
	return status == LEAT_OK ? leat_write_patch(writer, 0, zero, first, patch, err) : status;
}

static enum leat_status
write_object(struct leat_store *store, const char *uri, FILE *file, const char *way, struct leat_err *err)
{
	bool unnamed = strcmp(way, "unnamed") == 0;
	struct leat_writer *writer = NULL;
	enum leat_status status;
	char begun[LEAT_URI];

	snprintf(begun, sizeof(begun), "%s.begun", uri);
	status = unnamed ? leat_store_begin_unnamed(store, begun, &writer, err)
	                 : leat_store_begin(store, uri, &writer, err);
	if (status == LEAT_OK)
		status = copy(writer, file, err);
	if (status == LEAT_OK && (unnamed || strcmp(way, "finish") == 0))
		status = leat_write_finish(writer, 0, err);
	if (status == LEAT_OK && strcmp(way, "abort") != 0)
		return leat_write_commit(writer, uri, strcmp(way, "once") == 0 ? LEAT_COMMIT_IF_ABSENT : 0, err);
	leat_write_abort(writer);
	return status;
}

int
main(int argc, char **argv)
{
	const char *way = argc > 3 ? argv[3] : "commit";
	FILE *file = argc > 2 ? fopen(argv[2], "rb") : NULL;
	struct leat_stores stores;
	struct leat_store *store;
	struct leat_mem mem;
	struct leat_err err;
	enum leat_status status;
	char *uri = NULL;

	if (!file) {
		fprintf(stderr, "usage: write_object URI FILE [commit|finish|unnamed|once|abort|limit]\n");
		return 2;
	}
	leat_err_clear(&err);
	leat_mem_init(&mem, strcmp(way, "limit") == 0 ? LIMIT : SIZE_MAX);
	leat_stores_init(&stores, &mem);
	status = leat_stores_find(&stores, argv[1], &store, &uri, &err);
	if (status == LEAT_OK)
		status = write_object(store, uri, file, way, &err);
	if (status == LEAT_AGAIN)
		printf("there is one\n");
	else if (status != LEAT_OK)
		fprintf(stderr, "%s\n", err.text);
	leat_free(&mem, uri);
	leat_stores_close(&stores);
	fclose(file);
	printf("%zu bytes at most\n", (size_t)mem.peak);
	return status == LEAT_OK || status == LEAT_AGAIN ? 0 : 1;
}
