/* caret.c - error messages with a caret under the offending text
 *
 *	option 'height' of 'resize' must be between 1 and 65500, not 0
 *	folder('cells') | decode | resize(0, 100)
 *	                                  ^
 *
 * The text is untrusted: only the affected line is shown, at most WINDOW columns of it, and
 * characters that are not visible become '?'. One character counts as one column. */
#include <stdarg.h>
#include <string.h>

#include "base/opt.h"
#include "base/utf8.h"

enum { WINDOW = 100, SENTENCE = 500 }; /* columns, bytes: together they fit into a leat_err */

/* Writes the character at s, made safe for a terminal, to out. Returns the bytes written; *len is the bytes read. */
static size_t
show(const char *s, size_t *len, char *out)
{
	*len = leat_utf8_length(s);
	if (!leat_utf8_is_visible(s, *len)) {
		*len += *len == 0;
		*out = *s == '\t' ? ' ' : '?';
		return 1;
	}
	memcpy(out, s, *len);
	return *len;
}

static size_t
columns(const char *from, const char *to)
{
	size_t n = 0, len;
	char shown[4];

	for (; from < to; from += len, n++)
		show(from, &len, shown);
	return n;
}

struct line {
	const char *start, *end;
	size_t mark, marks; /* first column and number of columns to underline */
};

static struct line
find_line(const char *text, size_t at, size_t len)
{
	struct line line = {.start = text + at, .end = text + at};
	const char *stop;

	while (line.start > text && line.start[-1] != '\n')
		line.start--;
	line.end += strcspn(line.end, "\n");
	if (line.end > line.start && line.end[-1] == '\r' && line.end > text + at)
		line.end--;
	stop = (size_t)(line.end - (text + at)) < len ? line.end : text + at + len;
	line.mark = columns(line.start, text + at);
	line.marks = columns(text + at, stop);
	if (!line.marks)
		line.marks = 1;
	return line;
}

/* Writes the part of the line around the mark, and the carets below it. Returns the bytes written. */
static size_t
draw(const struct line *line, char *out)
{
	size_t total = columns(line->start, line->end), from = 0, to = total, column = 0, n = 0, len;
	size_t marks = line->marks;

	if (total > WINDOW) {
		from = line->mark > WINDOW / 2 ? line->mark - WINDOW / 2 : 0;
		if (from > total - WINDOW)
			from = total - WINDOW;
		to = from + WINDOW;
	}
	for (const char *s = line->start; s < line->end && column < to; s += len, column++) {
		bool cut = (from > 0 && column < from + 3) || (to < total && column + 3 >= to);
		char shown[4];
		size_t bytes = show(s, &len, shown);

		if (column < from)
			continue;
		memcpy(out + n, cut ? "." : shown, cut ? 1 : bytes);
		n += cut ? 1 : bytes;
	}
	if (line->mark < to && marks > to - line->mark)
		marks = to - line->mark;
	out[n++] = '\n';
	memset(out + n, ' ', line->mark - from);
	n += line->mark - from;
	memset(out + n, '^', marks);
	return n + marks;
}

enum leat_status
leat_fail_at(struct leat_err *err, const char *text, size_t at, size_t len, const char *fmt, ...)
{
	char out[sizeof(err->text)];
	struct line line;
	va_list ap;
	size_t n;

	va_start(ap, fmt);
	leat_vformat(out, SENTENCE, fmt, ap);
	va_end(ap);
	n = strlen(out);
	if (text) {
		out[n++] = '\n';
		line = find_line(text, at, len);
		n += draw(&line, out + n);
	}
	out[n] = '\0';
	return leat_fail_lines(err, LEAT_SPEC, out);
}

enum leat_status
leat_without_caret(struct leat_err *err, enum leat_status status)
{
	if (status == LEAT_SPEC)
		status = LEAT_INVALID;
	if (err) {
		err->status = status;
		err->text[strcspn(err->text, "\n")] = '\0';
	}
	return status;
}
