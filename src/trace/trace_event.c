/* trace_event.c - see trace_event.h */
#include "trace/trace_event.h"

#include <string.h>

#include "base/opt.h"

#define SPAN_BEGIN "{\"ph\":\"X\",\"cat\":\""
#define SPAN_ITEM "\",\"args\":{\"item\":"
#define VALUE_BEGIN "{\"ph\":\"C\",\"number\":"

/* ---- writing ---- */

/* printf costs more than everything else about a span. */
static char *
put_text(char *at, const char *text)
{
	size_t len = strlen(text);

	memcpy(at, text, len);
	return at + len;
}

static char *
put_number(char *at, uint64_t number)
{
	char digits[20];
	int count = 0;

	do
		digits[count++] = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	while (count > 0)
		*at++ = digits[--count];
	return at;
}

/* In microseconds, exactly: readers compare ends with beginnings. */
static char *
put_time(char *at, uint64_t ns)
{
	unsigned rest = (unsigned)(ns % 1000);

	at = put_number(at, ns / 1000);
	*at++ = '.';
	*at++ = (char)('0' + rest / 100);
	*at++ = (char)('0' + rest / 10 % 10);
	*at++ = (char)('0' + rest % 10);
	return at;
}

static bool
is_plain(const char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~' || *text == '"' || *text == '\\')
			return false;
	return true;
}

/* Without escapes such as \u0007: Perfetto does not read them. */
static void
add_text(struct leat_str *out, const char *text)
{
	char shown[1024];

	if (!is_plain(text)) {
		leat_str_add_json(out, leat_show(shown, sizeof shown, text, strlen(text)));
		return;
	}
	leat_str_addn(out, "\"", 1);
	leat_str_add(out, text);
	leat_str_addn(out, "\"", 1);
}

void
leat_event_span(struct leat_str *out, long pid, int tid, const struct leat_span *span, const char *name)
{
	char line[400], *at = line;

	at = put_text(at, SPAN_BEGIN);
	at = put_text(at, leat_tag_name((enum leat_tag)span->tag));
	at = put_text(at, SPAN_ITEM);
	at = put_number(at, span->item < INT64_MAX ? span->item : INT64_MAX); /* more is too much for many readers */
	if (span->every > 1) {
		at = put_text(at, ",\"every\":");
		at = put_number(at, span->every);
	}
	at = put_text(at, "},\"ts\":");
	at = put_time(at, span->begin);
	at = put_text(at, ",\"dur\":");
	at = put_time(at, span->end - span->begin);
	at = put_text(at, ",\"pid\":");
	at = put_number(at, (uint64_t)pid);
	at = put_text(at, ",\"tid\":");
	at = put_number(at, (uint64_t)tid);
	at = put_text(at, ",\"name\":");
	leat_str_addn(out, line, (size_t)(at - line));
	add_text(out, name);
	leat_str_addn(out, "}", 1);
}

static void
add_time(struct leat_str *out, uint64_t ns)
{
	char text[32];

	leat_str_addn(out, text, (size_t)(put_time(text, ns) - text));
}

void
leat_event_value(struct leat_str *out, long pid, const char *track, uint64_t at_ns, double value, uint64_t number)
{
	char text[40];

	leat_str_addf(out, VALUE_BEGIN "%llu,\"pid\":%ld,\"tid\":0,\"ts\":", (unsigned long long)number, pid);
	add_time(out, at_ns);
	leat_str_addf(out, ",\"args\":{\"value\":%s},\"name\":", leat_format_digits(text, sizeof text, value, 10));
	add_text(out, track);
	leat_str_add(out, "}");
}

static void
begin_metadata(struct leat_str *out, long pid, int tid, const char *what, const char *key)
{
	leat_str_addf(out, "{\"ph\":\"M\",\"pid\":%ld,\"tid\":%d,\"ts\":0,\"name\":\"%s\",\"args\":{\"%s\":", pid, tid,
	              what, key);
}

void
leat_event_text(struct leat_str *out, long pid, int tid, const char *what, const char *key, const char *text)
{
	begin_metadata(out, pid, tid, what, key);
	add_text(out, text);
	leat_str_add(out, "}}");
}

void
leat_event_number(struct leat_str *out, long pid, int tid, const char *what, const char *key, long number)
{
	begin_metadata(out, pid, tid, what, key);
	leat_str_addf(out, "%ld}}", number);
}

void
leat_event_mark(struct leat_str *out, long pid, uint64_t at_ns, const char *name)
{
	leat_str_addf(out, "{\"ph\":\"i\",\"s\":\"p\",\"pid\":%ld,\"tid\":0,\"ts\":", pid);
	add_time(out, at_ns);
	leat_str_add(out, ",\"name\":");
	add_text(out, name);
	leat_str_add(out, "}");
}

/* ---- thinning ---- */

bool
leat_thinning_keeps(struct leat_thinning *thinning, uint64_t item)
{
	uint64_t number = thinning->by_count ? thinning->seen++ : item;

	return (number & (thinning->every - 1)) == 0;
}

/* Moves past `text`, or returns NULL. */
static const char *
after(const char *at, const char *end, const char *text)
{
	size_t len = strlen(text);

	return at && (size_t)(end - at) >= len && memcmp(at, text, len) == 0 ? at + len : NULL;
}

static bool
read_number(const char *at, const char *end, uint64_t *number)
{
	const char *first = at;

	for (*number = 0; at < end && *at >= '0' && *at <= '9'; at++)
		*number = *number * 10 + (uint64_t)(*at - '0');
	return at > first;
}

int
leat_event_class(const char *line, size_t len, uint64_t *item)
{
	const char *end = line + len, *at = after(line, end, VALUE_BEGIN);

	if (at)
		return read_number(at, end, item) ? LEAT_TAG_COUNT : -1;
	at = after(line, end, SPAN_BEGIN);
	for (int tag = 0; at && tag < LEAT_TAG_COUNT; tag++) {
		const char *rest = after(at, end, leat_tag_name((enum leat_tag)tag));

		rest = after(rest, end, SPAN_ITEM);
		if (rest)
			return read_number(rest, end, item) ? tag : -1;
	}
	return -1;
}
