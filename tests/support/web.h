/* web.h - a web server for tests, in this process, that answers as badly as it is told to
 *
 * Objects are in memory; their ETag changes with every put. It knows GET, HEAD, Range and
 * If-Match; queries are ignored. One thread for each connection. It listens at 127.0.0.1, and at
 * three more addresses if it is told to. */
#ifndef TEST_WEB_H
#define TEST_WEB_H

#include <stdbool.h>
#include <stddef.h>

enum web_trouble {
	WEB_NONE,
	WEB_RESET,         /* resets the connection without an answer */
	WEB_RESET_IN_BODY, /* after half of the body */
	WEB_SHORT,         /* closes after half of the body */
	WEB_WRONG_LENGTH,  /* Content-Length is one less than was asked for */
	WEB_WRONG_RANGE,   /* sends the range one further */
	WEB_NO_RANGES,     /* sends everything, with 200 */
	WEB_GZIP,          /* says that the body is compressed */
	WEB_ENDLESS_HEAD,
	WEB_ENDLESS_BODY, /* instead of what was asked for, with 500 bytes of length promised and no end */
	WEB_DRIP,         /* a byte of the head every now and then */
	WEB_HANG,         /* says nothing */
	WEB_JUNK,         /* an answer that is not HTTP */
	WEB_BUSY,         /* 503 */
	WEB_EXTRA,        /* bytes after the body */
	WEB_CHUNKS,       /* the body in chunks */
	WEB_NO_HEAD,      /* 405 to HEAD */
	WEB_LEAVE,        /* closes after the answer, without saying so */
	WEB_MOVED,        /* redirects to the same place */
	WEB_FORBIDDEN,    /* 403 */
	WEB_LATE,         /* answers well, but 40 ms later */
	WEB_OLD,          /* HTTP/1.0: no length, closes at the end */
};

struct web_counts {
	int connections, requests, bodies; /* since the start; bodies: answers 200 and 206 to GET */
	int open, most_open;               /* connections now, and at most at a time */
	int busy, most_busy;               /* the same of requests that are being answered */
	int refused;                       /* by web_set_crowd */
};

void web_start(void);
/* Also at 127.0.0.`last`, 2 to 4, at the same port. Requests there are answered `delay_us` later; UINT_MAX: never. With
 * 1, only the delay is set. */
void web_listen(int last, unsigned delay_us);
/* Only `connections` and `requests`, at 127.0.0.`last`. */
struct web_counts web_counts_at(int last);
void web_stop(void); /* and forgets all objects */
/* "http://127.0.0.1:PORT" */
const char *web_address(void);
struct web_counts web_counts(void);
/* Waits until that many requests have come since the start. */
void web_wait(int requests);
/* The last request: its line and fields. Valid until the next call. */
const char *web_last(void);

/* `uri` begins with web_address(). */
void web_put(const char *uri, const void *bytes, size_t len);
/* Fills `data` with bytes that differ from their neighbours, and puts it as /data, whose URI it writes to `uri`. */
void web_put_data(char *uri, size_t cap, unsigned char *data, size_t len);
void web_remove(const char *uri);
/* Requests for uri, or for all if it is NULL, are answered so, the next `count` of them (negative: all). */
void web_set_trouble(const char *uri, enum web_trouble trouble, int count);
/* Only every n-th of the requests that trouble is meant for has it; 1: all, as after web_start. */
void web_set_every(int n);
/* More connections than this are reset at once; 0: any number. */
void web_set_limit(int connections);
/* Requests are answered by this function, with web_say, on the thread of the connection; false: close it. NULL: by the
 * server itself, as after web_start. */
void web_set_answer(bool (*answer)(int fd, const char *request));
bool web_say(int fd, const void *bytes, size_t len);
/* Every answer takes at least so long. */
void web_set_delay(int ms);
/* More requests at a time than this are answered 503, and at once; 0: any number. */
void web_set_crowd(int requests);
/* GET and HEAD of `from` are answered with a redirect to `location`. */
void web_redirect(const char *from, const char *location);

#endif
