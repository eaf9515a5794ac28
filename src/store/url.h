/* url.h - take http: and https: URLs apart, and percent-encode
 *
 * Text comes from users and from servers (redirects), so it is hostile: lengths are bounded,
 * and nothing that could end a line or a header gets through unencoded.
 *
 * Threads: any; there is no state. */
#ifndef LEAT_STORE_URL_H
#define LEAT_STORE_URL_H

#include <stdbool.h>
#include <stddef.h>

struct leat_str;

enum { LEAT_HOST = 256 };

/* Parts of a text, which has to outlive it. */
struct leat_url {
	bool tls;
	char host[LEAT_HOST]; /* lower case; an IPv6 address without its brackets */
	unsigned port;
	const char *path; /* path and query, without the fragment; "" or begins with '/' or '?' */
	size_t path_len;
};

/* NULL: it is one; else why not, such as "the port is not a number". */
const char *leat_url_parse(const char *text, struct leat_url *url);
/* Appends path and query as they go into a request line: "/" if empty, and what must not be there encoded. */
void leat_url_add_target(struct leat_str *out, const struct leat_url *url);
/* Appends "host" or "host:port", as in a Host header. */
void leat_url_add_host(struct leat_str *out, bool tls, const char *host, unsigned port);
/* Appends the absolute URL that `location`, from the answer to a request for `base`, means. */
void leat_url_join(struct leat_str *out, const char *base, const char *location);

/* Appends bytes percent-encoded, but for letters, digits and -._~, and '/' if `slashes`. */
void leat_url_encode(struct leat_str *out, const char *bytes, size_t len, bool slashes);
/* Decodes in place; returns the length. A % without two hex digits stays as it is. */
size_t leat_url_decode(char *text, size_t len);

#endif
