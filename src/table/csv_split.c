/* csv_split.c - see csv_split.h
 *
 * Good records take one scan. The rest is about records that are not: how far they go. Two facts keep that linear. A
 * scan from the beginning of a line and one that came from a line before it, in quotes, are in opposite states at every
 * byte, so where one is still in quotes at the end of a line, the other's record has ended. And of a record that is too
 * long only its first line is given up, for which max_record bytes were read. */
#include "table/csv_split.h"

#include <string.h>

#include "base/array.h"
#include "base/mem.h"
#include "base/utf8.h"

enum { SHOWN_OF_LONG = 4096 };

/* ---- the buffer ---- */

enum leat_status
leat_csv_split_open(struct leat_csv_split *split, const struct leat_csv_bytes *bytes, char delimiter, size_t max_record,
                    struct leat_mem *mem, struct leat_err *err)
{
	*split = (struct leat_csv_split){.bytes = *bytes,
	                                 .scan = {.rules = {.delimiter = delimiter}},
	                                 .mem = mem,
	                                 .max_record = max_record,
	                                 .piece = LEAT_CSV_PIECE,
	                                 .line = 1};
	if (max_record < 1 || max_record > LEAT_CSV_MAX_RECORD)
		return leat_fail(err, LEAT_INTERNAL, "a CSV record cannot have up to %zu bytes", max_record);
	return LEAT_OK;
}

void
leat_csv_split_close(struct leat_csv_split *split)
{
	if (!split->mem)
		return;
	leat_free(split->mem, split->scan.field);
	leat_free(split->mem, split->buffer);
	leat_free(split->mem, split->plain);
	*split = (struct leat_csv_split){0};
}

static size_t
available(const struct leat_csv_split *split)
{
	return split->len - split->pos;
}

/* What one record may take, with its line end: nothing that is decided about it depends on bytes after that. */
static size_t
window(const struct leat_csv_split *split)
{
	return split->max_record + 2;
}

static const char *
window_end(const struct leat_csv_split *split)
{
	return split->buffer + split->pos + (available(split) < window(split) ? available(split) : window(split));
}

/* All of the window has been read, and whether the file ends with it is known. */
static bool
is_window_full(const struct leat_csv_split *split)
{
	return split->ended || available(split) > window(split);
}

/* The file ends with the window. */
static bool
is_window_last(const struct leat_csv_split *split)
{
	return split->ended && available(split) <= window(split);
}

/* Reads a piece more. It is as long as what is there, so that a long record is not scanned many times. */
static enum leat_status
fill(struct leat_csv_split *split, struct leat_err *err)
{
	size_t kept = available(split), more = kept > split->piece ? kept : split->piece, got = 0;
	enum leat_status status;

	if (kept > 0 && split->pos > 0)
		memmove(split->buffer, split->buffer + split->pos, kept);
	split->len = kept;
	split->pos = 0;
	/* One byte more: UTF-8 is checked up to a NUL. */
	status = LEAT_GROW_RAW(split->mem, split->buffer, split->cap, kept + more + 1, SIZE_MAX,
	                       "the records of a CSV file", err);
	while (status == LEAT_OK && more > 0 && !split->ended) {
		status = split->bytes.read(split->bytes.arg, split->buffer + split->len, more, &got, err);
		if (status != LEAT_OK)
			return status;
		split->ended = got == 0;
		split->len += got;
		more -= got;
	}
	if (status == LEAT_OK)
		split->buffer[split->len] = '\0';
	return status;
}

/* ---- lines ---- */

/* The byte after the line that holds `from`; NULL: it does not end before `end`. */
static const char *
line_after(const char *from, const char *end, bool last)
{
	const char *stop = memchr(from, '\n', (size_t)(end - from));

	return stop ? stop + 1 : last ? end : NULL;
}

static uint64_t
count_lines(const char *from, const char *to)
{
	uint64_t lines = 0;

	while ((from = memchr(from, '\n', (size_t)(to - from))) != NULL) {
		lines++;
		from++;
	}
	return lines;
}

/* Hands out [pos, to) as a record. */
static void
take(struct leat_csv_split *split, const char *to, struct leat_csv_record *record)
{
	const char *from = split->buffer + split->pos;

	record->line = split->line;
	record->raw = from;
	record->raw_len = record->bytes = (size_t)(to - from);
	if (record->raw_len > 0 && to[-1] == '\n')
		record->raw_len -= record->raw_len > 1 && to[-2] == '\r' ? 2 : 1;
	split->line += count_lines(from, to);
	split->pos = (size_t)(to - split->buffer);
}

/* Scans the record at `text`, with room for all its fields. */
static enum leat_status
scan(struct leat_csv_split *split, const char *text, enum leat_csv_end *how, struct leat_err *err)
{
	struct leat_csv_scan *s = &split->scan;
	size_t most;

	*how = leat_csv_scan(s, text, window_end(split), is_window_last(split));
	most = s->fields < LEAT_CSV_MAX_FIELDS ? s->fields : LEAT_CSV_MAX_FIELDS;
	if (most > s->cap) {
		enum leat_status status = LEAT_GROW(split->mem, s->field, s->cap, most, LEAT_CSV_MAX_FIELDS,
		                                    "the fields of a CSV record", err);

		if (status != LEAT_OK)
			return status;
		*how = leat_csv_scan(s, text, window_end(split), is_window_last(split));
	}
	return LEAT_OK;
}

/* ---- good records ---- */

static bool
is_ascii(const char *text, size_t len)
{
	uint64_t high = 0, word;

	for (; len >= sizeof(word); text += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, text, sizeof(word));
		high |= word;
	}
	for (; len > 0; text++, len--)
		high |= (unsigned char)*text;
	return (high & 0x8080808080808080u) == 0;
}

/* The byte after the field is a delimiter, a quote, a line's end or the NUL after the buffer: no part of a character.
 */
static enum leat_csv_fault
fault_of_text(const char *text, size_t len)
{
	const char *end = text + len;

	if (memchr(text, '\0', len))
		return LEAT_FAULT_NUL;
	if (is_ascii(text, len))
		return LEAT_FAULT_NONE;
	while (text < end) {
		size_t bytes = leat_utf8_length(text);

		if (bytes == 0)
			return LEAT_FAULT_UTF8;
		text += bytes;
	}
	return LEAT_FAULT_NONE;
}

static void
check_text(const struct leat_csv_split *split, struct leat_csv_record *record)
{
	if (fault_of_text(record->raw, record->raw_len) == LEAT_FAULT_NONE)
		return;
	for (size_t i = 0; i < split->scan.fields && record->fault == LEAT_FAULT_NONE; i++) {
		record->fault = fault_of_text(split->scan.field[i].text, split->scan.field[i].len);
		record->column = i;
	}
}

/* Fields with doubled quotes move to `plain`. All of them together are no longer than the record. */
static enum leat_status
decode(struct leat_csv_split *split, struct leat_csv_record *record, struct leat_err *err)
{
	size_t used = 0;

	for (size_t i = 0; i < split->scan.fields; i++) {
		struct leat_csv_field *field = &split->scan.field[i];
		enum leat_status status;

		if (!field->doubled)
			continue;
		status = LEAT_GROW_RAW(split->mem, split->plain, split->plain_cap, record->raw_len, SIZE_MAX,
		                       "the fields of a CSV record", err);
		if (status != LEAT_OK)
			return status;
		field->len = (unsigned)leat_csv_unquote(field, split->plain + used);
		field->text = split->plain + used;
		used += field->len;
	}
	return LEAT_OK;
}

/* What is wrong with a record that the scan found complete. */
static enum leat_csv_fault
fault_of_fields(const struct leat_csv_split *split, size_t *column)
{
	const struct leat_csv_scan *s = &split->scan;

	*column = 0;
	if (split->columns ? s->fields != split->columns : s->fields > LEAT_CSV_MAX_FIELDS) {
		*column = s->fields < split->columns ? s->fields : split->columns;
		return LEAT_FAULT_COLUMNS;
	}
	for (size_t i = 0; s->breaks && split->columns && split->one_line && i < s->fields; i++) {
		*column = i;
		if (s->field[i].breaks && split->one_line[i])
			return LEAT_FAULT_BREAK;
	}
	return LEAT_FAULT_NONE;
}

/* ---- bad records ---- */

/* A record that is not good, before it is known how far it goes. */
struct doubt {
	enum leat_csv_end how;
	enum leat_csv_fault fault;
	size_t column, fields;
	size_t broken;     /* first field with line breaks, or the one that went wrong */
	const char *point; /* where it went wrong */
};

static enum leat_csv_fault
fault_of_end(enum leat_csv_end how)
{
	switch (how) {
	case LEAT_CSV_AFTER:
		return LEAT_FAULT_AFTER;
	case LEAT_CSV_INSIDE:
		return LEAT_FAULT_INSIDE;
	case LEAT_CSV_RETURN:
		return LEAT_FAULT_RETURN;
	case LEAT_CSV_RECORD:
		return LEAT_FAULT_NONE;
	case LEAT_CSV_MORE:
	case LEAT_CSV_UNCLOSED:
		break;
	}
	return LEAT_FAULT_UNCLOSED;
}

/* Is the quote before `point` the opening one of another field, so that ours was never closed? */
static bool
runs_into_quote(const struct leat_csv_split *split, const struct doubt *d)
{
	const char *before = d->point - 2;

	return d->how == LEAT_CSV_AFTER && (*before == split->scan.rules.delimiter || *before == '\n');
}

/* The first line from `from` on, before `to`, that begins a good record; NULL: none does. */
static enum leat_status
find_good_line(struct leat_csv_split *split, const char *from, const char *to, const char **good, struct leat_err *err)
{
	const char *end = window_end(split);
	bool last = is_window_last(split);

	*good = NULL;
	for (const char *line = from; line && line < to && !*good; line = line_after(line, end, last)) {
		enum leat_csv_end how;
		size_t column;
		enum leat_status status = scan(split, line, &how, err);

		if (status != LEAT_OK)
			return status;
		if (how == LEAT_CSV_RECORD && fault_of_fields(split, &column) == LEAT_FAULT_NONE &&
		    !leat_csv_line_end(line, end, last))
			*good = line;
	}
	return LEAT_OK;
}

/* A line longer than a record may be: its beginning is handed out, the rest is read and thrown away. */
static enum leat_status
skip_long_line(struct leat_csv_split *split, struct leat_csv_record *record, struct leat_err *err)
{
	size_t shown = window(split) < SHOWN_OF_LONG ? window(split) : SHOWN_OF_LONG, bytes = 0;
	enum leat_status status =
		LEAT_GROW_RAW(split->mem, split->plain, split->plain_cap, shown, SIZE_MAX, "a long line", err);
	const char *end;

	if (status != LEAT_OK)
		return status;
	memcpy(split->plain, split->buffer + split->pos, shown);
	while (!(end = line_after(split->buffer + split->pos, split->buffer + split->len, split->ended))) {
		bytes += available(split);
		split->pos = split->len;
		status = fill(split, err);
		if (status != LEAT_OK)
			return status;
	}
	take(split, end, record);
	record->bytes += bytes;
	record->raw = split->plain;
	record->raw_len = shown;
	record->fault = LEAT_FAULT_LONG;
	return LEAT_OK;
}

/* Finds the end of a record of several lines that is bad at d->point. `first`: the end of its first line. */
static enum leat_status
end_lines(struct leat_csv_split *split, const struct doubt *d, const char *first, struct leat_csv_record *record,
          const char **to, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	*to = first;
	if (d->fault != LEAT_FAULT_UNCLOSED && !runs_into_quote(split, d)) {
		const char *end = line_after(d->point, window_end(split), is_window_last(split));

		status = find_good_line(split, first, d->point, to, err);
		if (!*to && end) {
			*to = end;
			return status;
		}
	}
	*to = *to ? *to : first;
	record->fault = LEAT_FAULT_UNCLOSED;
	record->column = d->broken;
	return status;
}

/* Ends a record that is bad at d->point. LEAT_AGAIN: more of the file is needed to say. */
static enum leat_status
reject(struct leat_csv_split *split, const struct doubt *d, struct leat_csv_record *record, struct leat_err *err)
{
	const char *begin = split->buffer + split->pos;
	const char *first = line_after(begin, window_end(split), is_window_last(split)), *to = first;
	enum leat_status status = LEAT_OK;

	if (!first)
		return is_window_full(split) ? skip_long_line(split, record, err) : LEAT_AGAIN;
	record->fault = d->fault;
	record->column = d->column;
	record->fields = d->fields;
	if (d->point >= first) {
		if (!is_window_full(split))
			return LEAT_AGAIN;
		status = end_lines(split, d, first, record, &to, err);
	}
	if (status == LEAT_OK)
		take(split, to, record);
	return status;
}

/* ---- all of it ---- */

/* LEAT_AGAIN: more of the file is needed. */
static enum leat_status
skip_mark(struct leat_csv_split *split)
{
	if (available(split) < 3 && !split->ended)
		return LEAT_AGAIN;
	if (available(split) >= 3 && !memcmp(split->buffer, "\xef\xbb\xbf", 3))
		split->pos = 3;
	split->begun = true;
	return LEAT_OK;
}

/* LEAT_AGAIN: more of the file is needed. */
static enum leat_status
skip_empty_lines(struct leat_csv_split *split)
{
	const char *end = split->buffer + split->len;

	for (;;) {
		const char *at = split->buffer + split->pos;
		size_t len = leat_csv_line_end(at, end, split->ended);

		if (at == end)
			return split->ended ? LEAT_END : LEAT_AGAIN;
		if (len == 0)
			return *at == '\r' && at + 1 == end ? LEAT_AGAIN : LEAT_OK;
		split->pos += len;
		split->line++;
		split->empty_lines++;
	}
}

/* A record that the scan found complete, at scan->next. */
static enum leat_status
accept(struct leat_csv_split *split, struct leat_csv_record *record, struct leat_err *err)
{
	take(split, split->scan.next, record);
	record->fields = split->scan.fields;
	record->field = split->scan.field;
	check_text(split, record);
	return record->fault == LEAT_FAULT_NONE ? decode(split, record, err) : LEAT_OK;
}

/* The scan did not find a good record. */
static enum leat_status
resolve(struct leat_csv_split *split, struct doubt *d, struct leat_csv_record *record, struct leat_err *err)
{
	const struct leat_csv_scan *s = &split->scan;
	size_t stored = s->fields < LEAT_CSV_MAX_FIELDS ? s->fields : LEAT_CSV_MAX_FIELDS;

	d->fields = s->fields;
	while (d->broken < stored && !s->field[d->broken].breaks)
		d->broken++;
	if (d->how == LEAT_CSV_RECORD)
		d->point = s->next - 1;
	else if (d->how == LEAT_CSV_MORE || d->how == LEAT_CSV_UNCLOSED)
		d->point = window_end(split);
	else
		d->point = s->fault;
	return reject(split, d, record, err);
}

/* For files of lines: all but those that are too long are handed out whole. */
static enum leat_status
next_line(struct leat_csv_split *split, struct leat_csv_record *record, struct leat_err *err)
{
	const char *end = line_after(split->buffer + split->pos, window_end(split), is_window_last(split));

	if (!end)
		return is_window_full(split) ? skip_long_line(split, record, err) : LEAT_AGAIN;
	take(split, end, record);
	record->fault = fault_of_text(record->raw, record->raw_len);
	return LEAT_OK;
}

static enum leat_status
next_in_buffer(struct leat_csv_split *split, struct leat_csv_record *record, struct leat_err *err)
{
	struct doubt d = {.how = LEAT_CSV_RECORD};
	enum leat_status status = scan(split, split->buffer + split->pos, &d.how, err);

	if (status != LEAT_OK)
		return status;
	if (d.how == LEAT_CSV_MORE && !is_window_full(split))
		return LEAT_AGAIN;
	d.fault = fault_of_end(d.how);
	d.column = split->scan.fields;
	if (d.how == LEAT_CSV_RECORD)
		d.fault = fault_of_fields(split, &d.column);
	return d.fault == LEAT_FAULT_NONE ? accept(split, record, err) : resolve(split, &d, record, err);
}

enum leat_status
leat_csv_split_next(struct leat_csv_split *split, struct leat_csv_record *record, struct leat_err *err)
{
	enum leat_status status;

	*record = (struct leat_csv_record){0};
	for (;;) {
		status = split->begun ? LEAT_OK : skip_mark(split);
		if (status == LEAT_OK)
			status = skip_empty_lines(split);
		if (status == LEAT_OK)
			status = split->lines ? next_line(split, record, err) : next_in_buffer(split, record, err);
		if (status != LEAT_AGAIN)
			return status;
		status = fill(split, err);
		if (status != LEAT_OK)
			return status;
	}
}
