/* aws_config.c - see aws_config.h */
#include "store/aws_config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

enum { MAX_FILE = 1 << 20 };

struct line {
	const char *at;
	size_t len;
};

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void
trim(struct line *line)
{
	for (; line->len && is_blank(*line->at); line->len--)
		line->at++;
	while (line->len && is_blank(line->at[line->len - 1]))
		line->len--;
}

static bool
is_text(struct line line, const char *text)
{
	return strlen(text) == line.len && memcmp(line.at, text, line.len) == 0;
}

/* "[ name ]", also "[profile 'name']" with its quotes. */
static bool
is_section(struct line line, const char *section)
{
	const char *end = memchr(line.at, ']', line.len);
	struct line inner = {line.at + 1, end ? (size_t)(end - line.at) - 1 : 0};

	trim(&inner);
	return end && is_text(inner, section);
}

static bool
take_value(struct line line, const char *name, char *value, size_t cap)
{
	const char *equals = memchr(line.at, '=', line.len);
	struct line left = {line.at, equals ? (size_t)(equals - line.at) : 0}, right;

	trim(&left);
	if (!equals || !is_text(left, name))
		return false;
	right = (struct line){equals + 1, line.len - (size_t)(equals - line.at) - 1};
	for (size_t i = 1; i < right.len; i++)
		if ((right.at[i] == '#' || right.at[i] == ';') && is_blank(right.at[i - 1]))
			right.len = i;
	trim(&right);
	if (right.len == 0 || right.len >= cap || memchr(right.at, '\0', right.len))
		return false;
	memcpy(value, right.at, right.len);
	value[right.len] = '\0';
	return true;
}

/* `name` is NULL: is the section there? */
static bool
search(const char *text, size_t len, const char *section, const char *name, char *value, size_t cap)
{
	bool inside = false;

	for (size_t at = 0; at < len;) {
		const char *end = memchr(text + at, '\n', len - at);
		struct line line = {text + at, end ? (size_t)(end - text) - at : len - at};
		bool indented = line.len && is_blank(*line.at);

		at += line.len + 1;
		trim(&line);
		if (line.len == 0 || indented || *line.at == '#' || *line.at == ';')
			continue;
		if (*line.at == '[')
			inside = is_section(line, section);
		if (inside && (!name || take_value(line, name, value, cap)))
			return true;
	}
	return false;
}

bool
leat_aws_config_get(const char *text, size_t len, const char *section, const char *name, char *value, size_t cap)
{
	return search(text, len, section, name, value, cap);
}

bool
leat_aws_config_has(const char *text, size_t len, const char *section)
{
	return search(text, len, section, NULL, NULL, 0);
}

static char *
read_file(struct leat_mem *mem, const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	char *text = NULL;
	ssize_t got = -1;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= MAX_FILE)
		text = leat_alloc(mem, (size_t)st.st_size + 1);
	for (*len = 0; text && *len < (size_t)st.st_size; *len += (size_t)got) {
		got = read(fd, text + *len, (size_t)st.st_size - *len);
		if (got <= 0)
			break;
	}
	if (fd >= 0)
		close(fd);
	return text;
}

char *
leat_aws_config_load(struct leat_mem *mem, const char *variable, const char *home_path, size_t *len)
{
	const char *named = getenv(variable);
	char *path = leat_expand_home(mem, named && *named ? named : home_path), *text;

	*len = 0;
	text = path ? read_file(mem, path, len) : NULL;
	leat_free(mem, path);
	return text;
}
