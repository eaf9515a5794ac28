/* content.c - contents and digests as text
 *
 * Stateless; any thread. */
#include "cas/inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const kind_names[] = {
	[LEAT_CONTENT_NONE] = "none",
	[LEAT_CONTENT_FILE] = "file",
	[LEAT_CONTENT_EXECUTABLE] = "executable",
	[LEAT_CONTENT_FOLDER] = "folder",
};

bool
leat_content_equal(const struct leat_content *a, const struct leat_content *b)
{
	return a->kind == b->kind && leat_digest_equal(&a->digest, &b->digest);
}

char *
leat_content_text(const struct leat_content *content, char buf[LEAT_CONTENT_TEXT])
{
	char hex[LEAT_SHA256_HEX];

	leat_hex(content->digest.byte, sizeof(content->digest.byte), hex);
	snprintf(buf, LEAT_CONTENT_TEXT, "%s %" PRIu64 " %s", kind_names[content->kind], content->bytes, hex);
	return buf;
}

bool
leat_digest_parse(const char *hex, struct leat_digest *digest)
{
	for (size_t i = 0; i < sizeof(digest->byte); i++, hex += 2) {
		int high = leat_hex_digit(hex[0]), low = high < 0 ? -1 : leat_hex_digit(hex[1]);

		if (low < 0 || (hex[0] >= 'A' && hex[0] <= 'F') || (hex[1] >= 'A' && hex[1] <= 'F'))
			return false;
		digest->byte[i] = (uint8_t)(high << 4 | low);
	}
	return *hex == '\0';
}

const char *
leat_decimal(const char *text, char end, uint64_t *number)
{
	const char *digit = text;

	*number = 0;
	for (; *digit >= '0' && *digit <= '9'; digit++)
		if (__builtin_mul_overflow(*number, 10u, number) ||
		    __builtin_add_overflow(*number, (unsigned)(*digit - '0'), number))
			return NULL;
	return digit > text && *digit == end && (*text != '0' || digit == text + 1) ? digit + 1 : NULL;
}

enum leat_status
leat_content_parse(const char *text, struct leat_content *content, struct leat_err *err)
{
	const char *rest = strchr(text, ' ');
	size_t len = rest ? (size_t)(rest - text) : 0;

	for (enum leat_content_kind kind = LEAT_CONTENT_FILE; rest && kind <= LEAT_CONTENT_FOLDER; kind++)
		if (strlen(kind_names[kind]) == len && !memcmp(text, kind_names[kind], len)) {
			content->kind = kind;
			rest = leat_decimal(rest + 1, ' ', &content->bytes);
			if (!rest || !leat_digest_parse(rest, &content->digest))
				break;
			return LEAT_OK;
		}
	return leat_fail(err, LEAT_DATA, "'%s' is not valid; expected text such as 'file 1024 9f86d081...'", text);
}
