/* s3_list.c - see s3_list.h */
#include "store/s3_list.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "store/url.h"

/* The text, and where we are. */
struct scan {
	char *at, *end;
	char *name; /* of the last tag */
	size_t name_len;
	bool closes;      /* </x> */
	bool closes_self; /* <x/> */
};

/* ---- tags and text ---- */

static bool
is_name(const struct scan *scan, const char *name)
{
	return scan->name_len == strlen(name) && memcmp(scan->name, name, scan->name_len) == 0;
}

/* The next tag; the text before it is from where we were to *before. False: there is none, or it makes no sense. */
static bool
next_tag(struct scan *scan, char **before)
{
	char *open, *close;

	do {
		open = memchr(scan->at, '<', (size_t)(scan->end - scan->at));
		close = open ? memchr(open, '>', (size_t)(scan->end - open)) : NULL;
		if (!close || close == open + 1 || open[1] == '!') /* no comments, no CDATA, no DTD */
			return false;
		*before = open;
		if (open[1] == '?')
			scan->at = close + 1;
	} while (open[1] == '?');
	scan->closes = open[1] == '/';
	scan->closes_self = close[-1] == '/';
	scan->name = open + 1 + scan->closes;
	scan->name_len = 0;
	while (scan->name + scan->name_len < close && !strchr(" \t\r\n/>", scan->name[scan->name_len]))
		scan->name_len++;
	scan->at = close + 1;
	return scan->name_len > 0;
}

/* The value of "&name;" at `at`, of `len` bytes; -1: not one. */
static long
entity(const char *at, size_t len)
{
	static const struct {
		const char *name;
		char value;
	} named[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
	long value = 0;
	size_t i = 2;
	bool hex;

	for (size_t k = 0; k < sizeof(named) / sizeof(*named); k++)
		if (strlen(named[k].name) == len && memcmp(named[k].name, at, len) == 0)
			return named[k].value;
	if (len < 4 || at[1] != '#')
		return -1;
	hex = at[2] == 'x';
	for (i += hex; i + 1 < len; i++) {
		int digit = leat_hex_digit(at[i]);

		if (digit < 0 || (!hex && digit > 9))
			return -1;
		value = value * (hex ? 16 : 10) + digit;
		if (value > 0x10ffff)
			return -1;
	}
	return value > 0 && len > 4u - !hex ? value : -1;
}

static size_t
put_utf8(char *to, long c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 63));
		to[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 63));
	to[2] = (char)(0x80 | (c >> 6 & 63));
	to[3] = (char)(0x80 | (c & 63));
	return 4;
}

/* In place; *len becomes shorter: no entity is as short as what it stands for. False: an unknown entity. */
static bool
unescape(char *text, size_t *len)
{
	size_t to = 0;

	for (size_t i = 0; i < *len;) {
		size_t rest = *len - i < 12 ? *len - i : 12;
		const char *semicolon = text[i] == '&' ? memchr(text + i, ';', rest) : NULL;
		long value;

		if (text[i] != '&') {
			text[to++] = text[i++];
			continue;
		}
		value = semicolon ? entity(text + i, (size_t)(semicolon - (text + i)) + 1) : -1;
		if (value < 0)
			return false;
		i = (size_t)(semicolon - text) + 1;
		to += put_utf8(text + to, value);
	}
	*len = to;
	return true;
}

/* The text of an element without children, whose opening tag was just read, NUL-terminated. NULL: it is not one. */
static char *
take_text(struct scan *scan, size_t *len)
{
	const char *name = scan->name;
	size_t name_len = scan->name_len;
	char *begin = scan->at, *end;

	if (scan->closes_self) {
		/* "<Prefix/>": the slash becomes an empty text */
		*len = 0;
		scan->name[scan->name_len] = '\0';
		return scan->name + scan->name_len;
	}
	if (!next_tag(scan, &end) || !scan->closes || scan->name_len != name_len ||
	    memcmp(scan->name, name, name_len) != 0)
		return NULL;
	*len = (size_t)(end - begin);
	if (!unescape(begin, len) || memchr(begin, '\0', *len))
		return NULL;
	begin[*len] = '\0';
	return begin;
}

/* Leaves an element of any content. */
static bool
skip_element(struct scan *scan)
{
	int depth = !scan->closes_self;
	char *before;

	while (depth > 0) {
		if (depth > 100 || !next_tag(scan, &before))
			return false;
		depth += scan->closes ? -1 : !scan->closes_self;
	}
	return true;
}

/* ---- lists ---- */

int64_t
leat_s3_time(const char *text)
{
	struct tm tm = {0};
	time_t time;

	if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min,
	           &tm.tm_sec) != 6 ||
	    tm.tm_year < 1970)
		return 0;
	tm.tm_year -= 1900;
	tm.tm_mon -= 1;
	time = timegm(&tm);
	return time > 0 ? (int64_t)time : 0;
}

static bool
take_size(const char *text, uint64_t *size)
{
	*size = 0;
	for (const char *at = text; *at; at++)
		if (*at < '0' || *at > '9' || *size > UINT64_MAX / 10 - 1)
			return false;
		else
			*size = *size * 10 + (uint64_t)(*at - '0');
	return *text && *size <= INT64_MAX;
}

/* <Contents> or <CommonPrefixes>. */
static bool
take_entry(struct scan *scan, bool is_prefix, struct leat_s3_entry *entry)
{
	const char *outer = is_prefix ? "CommonPrefixes" : "Contents";
	char *before, *text;
	size_t len;

	*entry = (struct leat_s3_entry){.is_prefix = is_prefix, .etag = ""};
	if (scan->closes_self)
		return false;
	for (;;) {
		if (!next_tag(scan, &before))
			return false;
		if (scan->closes)
			return is_name(scan, outer) && entry->key;
		if (is_name(scan, is_prefix ? "Prefix" : "Key")) {
			if (entry->key || !(text = take_text(scan, &len)))
				return false;
			entry->key = text;
		} else if (!is_prefix && is_name(scan, "Size")) {
			if (!(text = take_text(scan, &len)) || !take_size(text, &entry->size))
				return false;
		} else if (!is_prefix && is_name(scan, "ETag")) {
			if (!(entry->etag = take_text(scan, &len)))
				return false;
		} else if (!is_prefix && is_name(scan, "LastModified")) {
			if (!(text = take_text(scan, &len)))
				return false;
			entry->modified = leat_s3_time(text);
		} else if (!skip_element(scan)) {
			return false;
		}
	}
}

/* Keys come percent-encoded if the answer says so, wherever in it. */
static bool
says_encoded(const char *text, size_t len)
{
	static const char tag[] = "<EncodingType>url<";

	return memmem(text, len, tag, strlen(tag)) != NULL;
}

static enum leat_status
refuse(struct leat_err *err)
{
	return leat_fail(err, LEAT_IO, "the server's list of objects makes no sense");
}

static enum leat_status
visit_entry(struct leat_s3_entry *entry, bool encoded, leat_s3_visit *visit, void *arg, struct leat_err *err)
{
	char *key = (char *)(uintptr_t)entry->key;
	size_t len = strlen(key);

	if (encoded) {
		for (char *plus = key; (plus = strchr(plus, '+')) != NULL;)
			*plus = ' ';
		len = leat_url_decode(key, len);
		key[len] = '\0';
	}
	/* A key with a NUL inside cannot be named. */
	return strlen(key) == len ? visit(arg, entry, err) : refuse(err);
}

enum leat_status
leat_s3_list_parse(char *text, size_t len, leat_s3_visit *visit, void *arg, const char **next, struct leat_err *err)
{
	struct scan scan = {.at = text, .end = text + len};
	bool encoded = says_encoded(text, len), truncated = false;
	enum leat_status status = LEAT_OK;
	const char *token = NULL;
	char *value, *before;
	size_t value_len;

	*next = NULL;
	if (!next_tag(&scan, &before) || !is_name(&scan, "ListBucketResult") || scan.closes)
		return refuse(err);
	for (bool more = !scan.closes_self; more && status == LEAT_OK;) {
		struct leat_s3_entry entry;

		if (!next_tag(&scan, &before))
			return refuse(err);
		if (scan.closes)
			break;
		if (is_name(&scan, "Contents") || is_name(&scan, "CommonPrefixes")) {
			if (!take_entry(&scan, is_name(&scan, "CommonPrefixes"), &entry))
				return refuse(err);
			status = visit_entry(&entry, encoded, visit, arg, err);
		} else if (is_name(&scan, "IsTruncated") || is_name(&scan, "NextContinuationToken")) {
			bool is_token = is_name(&scan, "NextContinuationToken");

			value = take_text(&scan, &value_len);
			if (!value)
				return refuse(err);
			if (is_token)
				token = value;
			else
				truncated = strcmp(value, "true") == 0;
		} else if (!skip_element(&scan)) {
			return refuse(err);
		}
	}
	if (status == LEAT_OK && truncated && (!token || !*token))
		return refuse(err);
	*next = truncated ? token : NULL;
	return status;
}

/* ---- errors ---- */

static void
find_text(const char *text, size_t len, const char *open, char *out, size_t cap)
{
	const char *at = memmem(text, len, open, strlen(open)), *end;

	out[0] = '\0';
	if (!at)
		return;
	at += strlen(open);
	end = memchr(at, '<', len - (size_t)(at - text));
	if (end)
		leat_show(out, cap, at, (size_t)(end - at));
}

void
leat_s3_error_parse(const char *text, size_t len, char *code, size_t code_cap, char *message, size_t message_cap)
{
	find_text(text, len, "<Code>", code, code_cap);
	find_text(text, len, "<Message>", message, message_cap);
}

/* ---- uploads ---- */

bool
leat_s3_upload_parse(const char *text, size_t len, char *id, size_t cap)
{
	static const char root[] = "<InitiateMultipartUploadResult";

	if (!memmem(text, len, root, strlen(root)))
		return false;
	find_text(text, len, "<UploadId>", id, cap);
	/* Nothing that had to be escaped or cut off: ids are plain text. */
	return *id && strlen(id) + 1 < cap && !strpbrk(id, "&\\<");
}
