/* http_head.h - read the head of an HTTP/1.1 response, and a chunked body, as bytes come in
 *
 * Both take any bytes in pieces of any length and keep a fixed amount of state. Of the head they
 * keep the fields that Leat uses; others are skipped, whatever their length. A head that is too
 * long, contradicts itself or makes no sense is refused with a reason.
 *
 * Threads: one at a time. */
#ifndef LEAT_STORE_HTTP_HEAD_H
#define LEAT_STORE_HTTP_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	LEAT_HEAD_BYTES = 64 * 1024, /* longest head, with interim responses */
	LEAT_HEAD_LINE = 4096,       /* longest field that is kept */
	LEAT_ETAG = 128,
};

enum leat_parsed { LEAT_PARSED_MORE, LEAT_PARSED_END, LEAT_PARSED_BAD };

struct leat_http_head {
	int status;
	bool keep_alive;        /* the connection can be used again */
	bool has_length;        /* Content-Length */
	bool has_range;         /* Content-Range: bytes first-last/total */
	bool chunked;           /* Transfer-Encoding */
	bool encoded;           /* Content-Encoding other than identity */
	uint64_t length;        /* of the body */
	uint64_t first, last;   /* has_range */
	uint64_t total;         /* of the object; UINT64_MAX: not told */
	int64_t date;           /* seconds since 1970; 0: not told */
	int64_t modified;       /* likewise */
	unsigned retry_after;   /* seconds; 0: not told */
	char etag[LEAT_ETAG];   /* as sent, with quotes; "": none, or too long */
	char extra[LEAT_ETAG];  /* value of the field named `extra_name` */
	const char *extra_name; /* lower case; NULL: none */
	const char *fault;      /* LEAT_PARSED_BAD: why */
	char location[LEAT_HEAD_LINE];

	/* private */
	size_t seen, used;
	bool skips, in_fields;
	char line[LEAT_HEAD_LINE];
};

void leat_http_head_init(struct leat_http_head *head, const char *extra_name);
/* Takes the next bytes; *taken of them belong to the head. */
enum leat_parsed leat_http_head_take(struct leat_http_head *head, const char *bytes, size_t len, size_t *taken);

/* A body in chunks. */
struct leat_chunks {
	enum { LEAT_CHUNK_SIZE, LEAT_CHUNK_EXTENSION, LEAT_CHUNK_DATA, LEAT_CHUNK_AFTER, LEAT_CHUNK_TRAILER } state;
	uint64_t left;   /* of this chunk */
	unsigned digits; /* of the size */
	size_t trailer;  /* bytes of the trailer, or of an extension */
	bool line_empty;
};

void leat_chunks_init(struct leat_chunks *chunks);
/* Takes framing up to the next piece of the body. LEAT_PARSED_MORE: bytes[*taken] and the following *body bytes are
 * body (0: all bytes were taken). LEAT_PARSED_END: the body has ended. The caller goes on after the body's bytes. */
enum leat_parsed leat_chunks_take(struct leat_chunks *chunks, const char *bytes, size_t len, size_t *taken,
                                  size_t *body);

/* A time such as "Sun, 06 Nov 1994 08:49:37 GMT"; 0: it is none. */
int64_t leat_http_date(const char *text);

#endif
