/* media.c - see media.h */
#include "board/media.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"

/* Without an origin, a document can neither read the board nor its cookie. */
#define PASSIVE                                                                                                        \
	"sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; frame-ancestors "      \
	"'self'"
#define ACTIVE                                                                                                         \
	"sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "           \
	"img-src data: blob:; font-src data:; frame-ancestors 'self'"

static const struct leat_media svg = {"svg", "image/svg+xml", PASSIVE},
			       html = {"html", "text/html; charset=utf-8", ACTIVE},
			       binary = {"binary", "application/octet-stream", PASSIVE};

const struct leat_media leat_media_text = {"text", "text/plain; charset=utf-8", PASSIVE};

static const struct {
	const char *bytes;
	size_t len, at;
	struct leat_media media;
} magic[] = {
	{"\x89PNG\r\n\x1a\n", 8, 0, {"png", "image/png", PASSIVE}},
	{"\xff\xd8\xff", 3, 0, {"jpeg", "image/jpeg", PASSIVE}},
	{"GIF8", 4, 0, {"gif", "image/gif", PASSIVE}},
	{"WEBPVP8", 7, 8, {"webp", "image/webp", PASSIVE}},
};

/* A character that begins at `at`, whose end was not read. */
static bool
is_cut(const char *head, size_t at)
{
	size_t i = at + 1;

	while (i < LEAT_MEDIA_BYTES && ((unsigned char)head[i] & 0xc0) == 0x80)
		i++;
	return i == LEAT_MEDIA_BYTES && i - at < 4 && (unsigned char)head[at] >= 0xc2;
}

/* `head` is NUL-terminated. */
static bool
is_text(const char *head, size_t len)
{
	for (size_t i = 0; i < len;) {
		size_t size = leat_utf8_length(head + i);

		if (!size)
			return len == LEAT_MEDIA_BYTES && is_cut(head, i);
		if ((unsigned char)head[i] < 32 && (!head[i] || !strchr("\t\n\r\f\x1b", head[i])))
			return false;
		i += size;
	}
	return true;
}

static size_t
skip_space(const char *bytes, size_t len, size_t at)
{
	while (at < len && strchr(" \t\r\n", bytes[at]))
		at++;
	return at;
}

static bool
begins(const char *bytes, size_t len, size_t at, const char *word)
{
	return len - at >= strlen(word) && strncasecmp(bytes + at, word, strlen(word)) == 0;
}

/* Past an XML declaration, comments and a DOCTYPE. */
static size_t
skip_prolog(const char *bytes, size_t len)
{
	size_t at = skip_space(bytes, len, begins(bytes, len, 0, "\xef\xbb\xbf") ? 3 : 0);

	while (begins(bytes, len, at, "<?") || begins(bytes, len, at, "<!--") ||
	       begins(bytes, len, at, "<!doctype svg")) {
		const char *close = begins(bytes, len, at, "<!--") ? "-->" : ">";
		const char *end = memmem(bytes + at, len - at, close, strlen(close));

		if (!end)
			return len;
		at = skip_space(bytes, len, (size_t)(end - bytes) + strlen(close));
	}
	return at;
}

const struct leat_media *
leat_media_of(const void *bytes, size_t len)
{
	char head[LEAT_MEDIA_BYTES + 1];
	size_t at;

	len = len < LEAT_MEDIA_BYTES ? len : LEAT_MEDIA_BYTES;
	memcpy(head, bytes, len);
	head[len] = '\0';
	for (size_t i = 0; i < sizeof(magic) / sizeof(*magic); i++)
		if (len >= magic[i].at + magic[i].len && memcmp(head + magic[i].at, magic[i].bytes, magic[i].len) == 0)
			return &magic[i].media;
	if (!is_text(head, len))
		return &binary;
	at = skip_prolog(head, len);
	if (begins(head, len, at, "<svg"))
		return &svg;
	return begins(head, len, at, "<!doctype html") || begins(head, len, at, "<html") ? &html : &leat_media_text;
}
