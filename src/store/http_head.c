/* http_head.c - see http_head.h */
#include "store/http_head.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/str.h"

void
leat_http_head_init(struct leat_http_head *head, const char *extra_name)
{
	/* The large arrays need no zeroing. */
	memset(head, 0, offsetof(struct leat_http_head, location));
	head->location[0] = '\0';
	head->seen = head->used = 0;
	head->skips = head->in_fields = false;
	head->extra_name = extra_name;
	head->total = UINT64_MAX;
}

static enum leat_parsed
refuse(struct leat_http_head *head, const char *why)
{
	head->fault = why;
	return LEAT_PARSED_BAD;
}

/* ---- values ---- */

/* Digits only, at least one; moves *at behind them. */
static bool
take_number(const char **at, uint64_t *value)
{
	const char *begin = *at;

	for (*value = 0; **at >= '0' && **at <= '9'; ++*at)
		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, (uint64_t)(**at - '0'), value))
			return false;
	return *at > begin;
}

int64_t
leat_http_date(const char *text)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	struct tm tm = {0};
	char month[4] = "";
	const char *found;
	time_t time;

	if (sscanf(text, "%*3[A-Za-z], %2d %3[A-Za-z] %4d %2d:%2d:%2d GMT", &tm.tm_mday, month, &tm.tm_year,
	           &tm.tm_hour, &tm.tm_min, &tm.tm_sec) != 6 ||
	    strlen(month) != 3)
		return 0;
	found = strstr(months, month);
	if (!found || (found - months) % 3 || tm.tm_year < 1970)
		return 0;
	tm.tm_mon = (int)(found - months) / 3;
	tm.tm_year -= 1900;
	time = timegm(&tm);
	return time > 0 ? (int64_t)time : 0;
}

/* ---- fields: false: the head makes no sense ---- */

static bool
take_length(struct leat_http_head *head, const char *value)
{
	uint64_t length;

	if (!take_number(&value, &length) || *value || (head->has_length && length != head->length))
		return false;
	head->has_length = true;
	head->length = length;
	return true;
}

/* "bytes 0-99/1000", "bytes 0-99/ *", or "bytes * /1000" with an answer of 416. */
static bool
take_range(struct leat_http_head *head, const char *value)
{
	if (head->has_range || strncasecmp(value, "bytes ", 6) != 0)
		return false;
	value += 6;
	if (*value == '*') {
		value++;
	} else {
		if (!take_number(&value, &head->first) || *value++ != '-' || !take_number(&value, &head->last) ||
		    head->last < head->first)
			return false;
		head->has_range = true;
	}
	if (*value++ != '/')
		return false;
	if (strcmp(value, "*") == 0)
		return head->has_range;
	return take_number(&value, &head->total) && !*value && (!head->has_range || head->last < head->total);
}

static bool
take_transfer(struct leat_http_head *head, const char *value)
{
	if (head->chunked || (strcasecmp(value, "chunked") != 0 && strcasecmp(value, "identity") != 0))
		return false;
	head->chunked = strcasecmp(value, "chunked") == 0;
	return true;
}

static bool
take_connection(struct leat_http_head *head, const char *value)
{
	if (strcasestr(value, "close"))
		head->keep_alive = false;
	else if (strcasestr(value, "keep-alive"))
		head->keep_alive = true;
	return true;
}

static bool
take_encoding(struct leat_http_head *head, const char *value)
{
	head->encoded = *value && strcasecmp(value, "identity") != 0;
	return true;
}

static bool
take_etag(struct leat_http_head *head, const char *value)
{
	if (strlen(value) < sizeof(head->etag))
		strcpy(head->etag, value);
	return true;
}

static bool
take_location(struct leat_http_head *head, const char *value)
{
	strcpy(head->location, value); /* it is part of a line, and as long */
	return true;
}

static bool
take_date(struct leat_http_head *head, const char *value)
{
	head->date = leat_http_date(value);
	return true;
}

static bool
take_modified(struct leat_http_head *head, const char *value)
{
	head->modified = leat_http_date(value);
	return true;
}

static bool
take_retry(struct leat_http_head *head, const char *value)
{
	uint64_t seconds;

	if (take_number(&value, &seconds))
		head->retry_after = seconds < 3600 ? (unsigned)seconds : 3600;
	return true;
}

static const struct field {
	const char *name;
	bool (*take)(struct leat_http_head *head, const char *value);
	const char *fault;
} fields[] = {
	{"content-length", take_length, "Content-Length makes no sense"},
	{"content-range", take_range, "Content-Range makes no sense"},
	{"transfer-encoding", take_transfer, "Transfer-Encoding is not supported"},
	{"content-encoding", take_encoding, ""},
	{"connection", take_connection, ""},
	{"etag", take_etag, ""},
	{"last-modified", take_modified, ""},
	{"location", take_location, ""},
	{"date", take_date, ""},
	{"retry-after", take_retry, ""},
};

static const struct field *
find_field(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if (strncasecmp(fields[i].name, name, len) == 0 && !fields[i].name[len])
			return &fields[i];
	return NULL;
}

/* ---- lines ---- */

static bool
is_extra(const struct leat_http_head *head, const char *name, size_t len)
{
	return head->extra_name && strncasecmp(head->extra_name, name, len) == 0 && !head->extra_name[len];
}

static enum leat_parsed
take_field(struct leat_http_head *head)
{
	char *colon = strchr(head->line, ':'), *value;
	const struct field *field;
	size_t name;

	if (!colon || colon == head->line)
		return refuse(head, "a line of the head is not a field");
	name = (size_t)(colon - head->line);
	value = colon + 1 + strspn(colon + 1, " \t");
	for (char *end = value + strlen(value); end > value && (end[-1] == ' ' || end[-1] == '\t');)
		*--end = '\0';
	if (is_extra(head, head->line, name) && strlen(value) < sizeof(head->extra))
		strcpy(head->extra, value);
	field = find_field(head->line, name);
	return field && !field->take(head, value) ? refuse(head, field->fault) : LEAT_PARSED_MORE;
}

static enum leat_parsed
take_status(struct leat_http_head *head)
{
	const char *line = head->line;
	bool old = strncmp(line, "HTTP/1.0 ", 9) == 0;

	if (!old && strncmp(line, "HTTP/1.1 ", 9) != 0)
		return refuse(head, "it does not speak HTTP/1.1");
	for (int i = 9; i < 12; i++)
		if (line[i] < '0' || line[i] > '9')
			return refuse(head, "its status is not a number");
	if (line[12] && line[12] != ' ')
		return refuse(head, "its status is not a number");
	head->status = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
	head->keep_alive = !old;
	head->in_fields = true;
	return head->status >= 100 ? LEAT_PARSED_MORE : refuse(head, "its status is not a number");
}

/* An interim response (100 to 199) is followed by another one. */
static enum leat_parsed
end_head(struct leat_http_head *head)
{
	size_t seen = head->seen;

	if (head->chunked && head->has_length)
		return refuse(head, "it has a length and is chunked");
	if (head->status == 101)
		return refuse(head, "it changes the protocol");
	if (head->status >= 200)
		return LEAT_PARSED_END;
	leat_http_head_init(head, head->extra_name);
	head->seen = seen;
	return LEAT_PARSED_MORE;
}

static enum leat_parsed
end_line(struct leat_http_head *head)
{
	bool skips = head->skips;

	if (head->used && head->line[head->used - 1] == '\r')
		head->used--;
	head->line[head->used] = '\0';
	if (memchr(head->line, '\0', head->used) || memchr(head->line, '\r', head->used))
		return refuse(head, "its head has characters that are not allowed there");
	if (head->in_fields && !skips && head->used == 0)
		return end_head(head);
	head->used = 0;
	head->skips = false;
	if (!head->in_fields)
		return skips ? refuse(head, "its first line is too long") : take_status(head);
	if (head->line[0] == ' ' || head->line[0] == '\t')
		return refuse(head, "a field of its head is folded");
	if (!skips)
		return take_field(head);
	/* Long fields are skipped, unless they matter. */
	if (find_field(head->line, strcspn(head->line, ":")))
		return refuse(head, "a field of its head is too long");
	return LEAT_PARSED_MORE;
}

enum leat_parsed
leat_http_head_take(struct leat_http_head *head, const char *bytes, size_t len, size_t *taken)
{
	enum leat_parsed part = LEAT_PARSED_MORE;

	for (*taken = 0; *taken < len && part == LEAT_PARSED_MORE;) {
		const char *at = bytes + *taken, *end = memchr(at, '\n', len - *taken);
		size_t piece = end ? (size_t)(end - at) : len - *taken;
		size_t room = sizeof(head->line) - 1 - head->used, kept = piece < room ? piece : room;

		memcpy(head->line + head->used, at, kept);
		head->used += kept;
		head->skips |= kept < piece;
		*taken += piece + (end != NULL);
		head->seen += piece + (end != NULL);
		if (head->seen > LEAT_HEAD_BYTES)
			return refuse(head, "its head is longer than 64 KiB");
		if (end)
			part = end_line(head);
	}
	return part;
}

/* ---- chunks ---- */

void
leat_chunks_init(struct leat_chunks *chunks)
{
	*chunks = (struct leat_chunks){.state = LEAT_CHUNK_SIZE};
}

/* After the line with the size. */
static void
begin_chunk(struct leat_chunks *chunks)
{
	chunks->digits = 0;
	chunks->trailer = 0;
	chunks->line_empty = true;
	chunks->state = chunks->left ? LEAT_CHUNK_DATA : LEAT_CHUNK_TRAILER;
}

static enum leat_parsed
take_size(struct leat_chunks *chunks, char c)
{
	int digit = leat_hex_digit(c);

	if (digit >= 0 && chunks->digits < 15) {
		chunks->left = chunks->left << 4 | (unsigned)digit;
		chunks->digits++;
		return LEAT_PARSED_MORE;
	}
	if (chunks->digits == 0 || digit >= 0)
		return LEAT_PARSED_BAD;
	if (c == '\n')
		begin_chunk(chunks);
	else if (c == ';' || c == ' ' || c == '\t' || c == '\r')
		chunks->state = LEAT_CHUNK_EXTENSION;
	else
		return LEAT_PARSED_BAD;
	return LEAT_PARSED_MORE;
}

/* One byte of framing. */
static enum leat_parsed
take_framing(struct leat_chunks *chunks, char c)
{
	enum { MOST = 16 * 1024 };

	switch (chunks->state) {
	case LEAT_CHUNK_SIZE:
		return take_size(chunks, c);
	case LEAT_CHUNK_EXTENSION:
		if (c == '\n')
			begin_chunk(chunks);
		return ++chunks->trailer > MOST ? LEAT_PARSED_BAD : LEAT_PARSED_MORE;
	case LEAT_CHUNK_AFTER:
		if (c == '\n')
			chunks->state = LEAT_CHUNK_SIZE;
		return c == '\n' || c == '\r' ? LEAT_PARSED_MORE : LEAT_PARSED_BAD;
	case LEAT_CHUNK_TRAILER:
		if (c == '\n' && chunks->line_empty)
			return LEAT_PARSED_END;
		chunks->line_empty = c == '\n' || (c == '\r' && chunks->line_empty);
		return ++chunks->trailer > MOST ? LEAT_PARSED_BAD : LEAT_PARSED_MORE;
	case LEAT_CHUNK_DATA:
		break;
	}
	return LEAT_PARSED_BAD;
}

enum leat_parsed
leat_chunks_take(struct leat_chunks *chunks, const char *bytes, size_t len, size_t *taken, size_t *body)
{
	enum leat_parsed part = LEAT_PARSED_MORE;

	*body = 0;
	for (*taken = 0; *taken < len && part == LEAT_PARSED_MORE;) {
		if (chunks->state == LEAT_CHUNK_DATA) {
			*body = len - *taken < chunks->left ? len - *taken : (size_t)chunks->left;
			chunks->left -= *body;
			if (chunks->left == 0)
				chunks->state = LEAT_CHUNK_AFTER;
			return LEAT_PARSED_MORE;
		}
		part = take_framing(chunks, bytes[(*taken)++]);
	}
	return part;
}
