/* url.c - see url.h */
#include "store/url.h"

#include <string.h>
#include <strings.h>

#include "base/str.h"

static bool
is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* ---- taking apart ---- */

static size_t
scheme_length(const char *text, bool *tls)
{
	*tls = strncasecmp(text, "https://", 8) == 0;
	return *tls ? 8 : strncasecmp(text, "http://", 7) == 0 ? 7 : 0;
}

static const char *
take_host(const char *at, size_t len, bool bracketed, struct leat_url *url)
{
	if (len == 0)
		return "the host is missing";
	if (len >= LEAT_HOST)
		return "the host is too long";
	for (size_t i = 0; i < len; i++) {
		char c = at[i];

		if (!is_alnum(c) && !strchr(bracketed ? ":." : "-._", c))
			return "the host has a character that is not allowed there";
		url->host[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
	}
	url->host[len] = '\0';
	return NULL;
}

static const char *
take_port(const char *at, size_t len, struct leat_url *url)
{
	url->port = url->tls ? 443 : 80;
	if (len == 0)
		return NULL;
	url->port = 0;
	for (size_t i = 0; i < len; i++) {
		if (at[i] < '0' || at[i] > '9' || i > 5)
			return "the port is not a number from 1 to 65535";
		url->port = url->port * 10 + (unsigned)(at[i] - '0');
	}
	return url->port && url->port < 65536 ? NULL : "the port is not a number from 1 to 65535";
}

const char *
leat_url_parse(const char *text, struct leat_url *url)
{
	size_t scheme = scheme_length(text, &url->tls), authority, host;
	const char *at = text + scheme, *why;
	bool bracketed = *at == '[';

	if (!scheme)
		return "it does not begin with http:// or https://";
	authority = strcspn(at, "/?#");
	if (memchr(at, '@', authority))
		return "a user name or password does not belong in a URL";
	host = bracketed ? strcspn(at, "]/?#") : strcspn(at, ":/?#");
	if (bracketed && at[host] != ']')
		return "the ']' after the host is missing";
	why = take_host(at + bracketed, host - bracketed, bracketed, url);
	host += bracketed;
	if (!why && host < authority && at[host] != ':')
		return "the host has a character that is not allowed there";
	if (!why)
		why = take_port(at + host + 1, host < authority ? authority - host - 1 : 0, url);
	url->path = at + authority;
	url->path_len = strcspn(url->path, "#");
	return why;
}

/* ---- putting together ---- */

static void
add_encoded(struct leat_str *out, const char *bytes, size_t len, bool (*plain)(char c))
{
	static const char digits[] = "0123456789ABCDEF";
	size_t begin = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)bytes[i];
		char code[3] = {'%', digits[c >> 4], digits[c & 15]};

		if (plain(bytes[i]))
			continue;
		leat_str_addn(out, bytes + begin, i - begin);
		leat_str_addn(out, code, 3);
		begin = i + 1;
	}
	leat_str_addn(out, bytes + begin, len - begin);
}

static bool
is_unreserved(char c)
{
	return is_alnum(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

static bool
is_unreserved_or_slash(char c)
{
	return c == '/' || is_unreserved(c);
}

/* In a request line. '%' stays: users write URLs encoded. */
static bool
is_target(char c)
{
	return c > ' ' && c < 127 && !strchr("\"<>\\^`{|}#", c);
}

void
leat_url_encode(struct leat_str *out, const char *bytes, size_t len, bool slashes)
{
	add_encoded(out, bytes, len, slashes ? is_unreserved_or_slash : is_unreserved);
}

void
leat_url_add_target(struct leat_str *out, const struct leat_url *url)
{
	if (url->path_len == 0 || url->path[0] != '/')
		leat_str_add(out, "/");
	add_encoded(out, url->path, url->path_len, is_target);
}

void
leat_url_add_host(struct leat_str *out, bool tls, const char *host, unsigned port)
{
	bool bracketed = strchr(host, ':') != NULL;

	leat_str_addf(out, "%s%s%s", bracketed ? "[" : "", host, bracketed ? "]" : "");
	if (port != (tls ? 443 : 80))
		leat_str_addf(out, ":%u", port);
}

/* Folders are not resolved: "../x" is sent as it is, and the server says whether that is a name. */
void
leat_url_join(struct leat_str *out, const char *base, const char *location)
{
	bool tls;
	size_t scheme = scheme_length(base, &tls), authority = scheme + strcspn(base + scheme, "/?#");
	size_t path = authority + strcspn(base + authority, "?#"), folder = path;

	if (scheme_length(location, &tls)) {
		leat_str_add(out, location);
		return;
	}
	if (strncmp(location, "//", 2) == 0) {
		leat_str_addn(out, base, scheme - 2);
		leat_str_add(out, location);
		return;
	}
	if (*location == '/') {
		path = authority;
	} else if (*location != '?') {
		while (folder > authority && base[folder - 1] != '/')
			folder--;
		path = folder;
	}
	leat_str_addn(out, base, path);
	if (path == authority && *location != '/')
		leat_str_add(out, "/");
	leat_str_add(out, location);
}

size_t
leat_url_decode(char *text, size_t len)
{
	size_t to = 0;

	for (size_t i = 0; i < len; i++) {
		int high = text[i] == '%' && len - i > 2 ? leat_hex_digit(text[i + 1]) : -1;
		int low = high < 0 ? -1 : leat_hex_digit(text[i + 2]);

		if (low >= 0) {
			text[to++] = (char)(high << 4 | low);
			i += 2;
		} else {
			text[to++] = text[i];
		}
	}
	return to;
}
