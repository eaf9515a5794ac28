/* runner_lines.c - the last lines of what a command printed, for people
 *
 * A command may print anything: progress bars, colours, bytes of an image. */
#include <stdio.h>
#include <string.h>

#include "step/runner_inside.h"

enum { MAX_LOOKED_AT = 1024 };

/* The end of an escape sequence: "ESC [ 3 1 m", "ESC ] ... BEL", or two characters. */
static size_t
escape_length(const char *text, size_t len)
{
	size_t i = 2;

	if (len < 2)
		return len;
	if (text[1] == '[') {
		while (i < len && !(text[i] >= 0x40 && text[i] <= 0x7e))
			i++;
		return i < len ? i + 1 : len;
	}
	if (text[1] == ']') {
		while (i < len && text[i] != '\a' && text[i] != '\x1b')
			i++;
		return i < len ? i + 1 : len;
	}
	return 2;
}

/* Without escape sequences, and with '\n' at the end of each line. Returns the length. */
static size_t
simplify(const char *text, size_t len, char *to)
{
	size_t n = 0;

	for (size_t i = 0; i < len;) {
		if (text[i] == '\x1b') {
			i += escape_length(text + i, len - i);
			continue;
		}
		to[n++] = text[i] == '\r' ? '\n' : text[i] == '\t' ? ' ' : text[i];
		i++;
	}
	return n;
}

/* Cuts off the last line that is not empty: *len is then what comes before it. NULL: there is none. */
static const char *
cut_line(const char *text, size_t *len, size_t *line_len)
{
	size_t end = *len, begin;

	while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == ' '))
		end--;
	if (end == 0)
		return NULL;
	begin = end;
	while (begin > 0 && text[begin - 1] != '\n')
		begin--;
	*len = begin;
	*line_len = end - begin;
	return text + begin;
}

void
leat_last_line(const char *text, size_t len, char *line, size_t cap)
{
	size_t skip = len > MAX_LOOKED_AT ? len - MAX_LOOKED_AT : 0, line_len;
	char simple[MAX_LOOKED_AT];
	const char *last;

	len = simplify(text + skip, len - skip, simple);
	last = cut_line(simple, &len, &line_len);
	if (last == NULL)
		*line = '\0';
	else
		leat_show(line, cap, last, line_len);
}

void
leat_output_last(const struct leat_output *output, unsigned count, char *lines, size_t cap)
{
	char simple[sizeof(output->tail)], shown[400];
	size_t len = simplify(output->tail, output->tail_len, simple), line_len;
	const char *line;

	*lines = '\0';
	while (count-- > 0 && (line = cut_line(simple, &len, &line_len)) != NULL) {
		size_t used = strlen(lines), more;

		leat_show(shown, cap < sizeof(shown) ? cap : sizeof(shown), line, line_len);
		more = strlen(shown) + (used == 0 ? 0 : strlen(" / "));
		if (used > 0 && used + more >= cap)
			return;
		if (used > 0) {
			memmove(lines + more, lines, used + 1);
			memcpy(lines, shown, strlen(shown));
			memcpy(lines + strlen(shown), " / ", strlen(" / "));
		} else {
			memcpy(lines, shown, more + 1);
		}
	}
}
