/* fuzz_http_head.c - any bytes are a head and chunks or refused with a reason, the same in any pieces */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/http_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static enum leat_parsed
take(struct leat_http_head *head, const char *bytes, size_t size, size_t step, size_t *end)
{
	enum leat_parsed parsed = LEAT_PARSED_MORE;

	leat_http_head_init(head, "x-extra");
	for (*end = 0; *end < size && parsed == LEAT_PARSED_MORE;) {
		size_t piece = size - *end < step ? size - *end : step, used;

		parsed = leat_http_head_take(head, bytes + *end, piece, &used);
		must(used <= piece && (used == piece || parsed != LEAT_PARSED_MORE));
		*end += used;
	}
	return parsed;
}

static void
take_chunks(const char *bytes, size_t size)
{
	enum leat_parsed parsed = LEAT_PARSED_MORE;
	struct leat_chunks chunks;
	size_t at = 0;

	leat_chunks_init(&chunks);
	while (at < size && parsed == LEAT_PARSED_MORE) {
		size_t taken, body;

		parsed = leat_chunks_take(&chunks, bytes + at, size - at, &taken, &body);
		must(taken + body <= size - at && (taken + body > 0 || parsed != LEAT_PARSED_MORE));
		at += taken + body;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct leat_http_head whole, pieces;
	const char *bytes = (const char *)data;
	enum leat_parsed parsed;
	size_t end, same;

	if (!size)
		return 0;
	parsed = take(&whole, bytes, size, size, &end);
	must(take(&pieces, bytes, size, 1 + data[size - 1] % 7, &same) == parsed &&
	     (parsed == LEAT_PARSED_BAD || same == end));
	if (parsed == LEAT_PARSED_BAD)
		must(whole.fault && whole.fault[0]);
	if (parsed == LEAT_PARSED_END) {
		must(whole.status >= 200 && whole.status <= 999);
		must(!whole.has_range || whole.last < whole.total);
		must(strcmp(whole.etag, pieces.etag) == 0 && strcmp(whole.location, pieces.location) == 0);
		must(whole.length == pieces.length && whole.first == pieces.first && whole.total == pieces.total);
		take_chunks(bytes + end, size - end);
	}
	take_chunks(bytes, size);
	return 0;
}
