/* yaml_fail.c - errors in a YAML file, with line, column and a caret */
#include "step/yaml.h"

#include <stdarg.h>
#include <string.h>

#include "base/opt.h"
#include "base/str.h"
#include "base/utf8.h"

/* Bytes of the line break at `s`, by YAML 1.1: LF, CR, CR LF, NEL, LS, PS; 0: none. */
static size_t
line_break(const char *s)
{
	if (s[0] == '\r')
		return s[1] == '\n' ? 2 : 1;
	if (s[0] == '\n')
		return 1;
	if (!memcmp(s, "\xc2\x85", s[0] ? 2 : 1))
		return 2;
	return !strncmp(s, "\xe2\x80\xa8", 3) || !strncmp(s, "\xe2\x80\xa9", 3) ? 3 : 0;
}

static size_t
character(const char *s)
{
	size_t len = leat_utf8_length(s);

	return len ? len : 1;
}

size_t
leat_yaml_offset(const struct leat_yaml_file *file, uint32_t line, uint32_t column)
{
	const char *s = file->text, *end = file->text + file->len;

	while (line > 1 && s < end) {
		size_t len = line_break(s);

		line -= len > 0;
		s += len ? len : character(s);
	}
	for (; column > 1 && s < end && !line_break(s); column--)
		s += character(s);
	return s < end ? (size_t)(s - file->text) : file->len;
}

static void
position(const struct leat_yaml_file *file, size_t offset, uint32_t *line, uint32_t *column)
{
	const char *s = file->text, *end = file->text + offset;

	for (*line = 1, *column = 1; s < end;) {
		size_t len = line_break(s);

		*line += len > 0;
		*column = len ? 1 : *column + 1;
		s += len ? len : character(s);
	}
}

static enum leat_status __attribute__((format(printf, 4, 0)))
fail(const struct leat_yaml_file *file, size_t offset, size_t len, const char *fmt, va_list ap)
{
	uint32_t line, column;
	char what[460];

	leat_vformat(what, sizeof(what), fmt, ap);
	position(file, offset, &line, &column);
	return leat_fail_at(file->err, file->text, offset, len, "%s:%u:%u: %s", file->name, line, column, what);
}

enum leat_status
leat_yaml_fail_at(const struct leat_yaml_file *file, size_t offset, size_t len, const char *fmt, ...)
{
	enum leat_status status;
	va_list ap;

	va_start(ap, fmt);
	status = fail(file, offset, len, fmt, ap);
	va_end(ap);
	return status;
}

enum leat_status
leat_yaml_fail(const struct leat_yaml_file *file, const struct leat_yaml *at, const char *fmt, ...)
{
	size_t from = leat_yaml_offset(file, at->line, at->column);
	size_t to = leat_yaml_offset(file, at->end_line, at->end_column);
	enum leat_status status;
	va_list ap;

	va_start(ap, fmt);
	status = fail(file, from, at->kind == LEAT_YAML_TEXT && to > from ? to - from : 1, fmt, ap);
	va_end(ap);
	return status;
}
