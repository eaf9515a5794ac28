/* tree.c - the text of a folder's entries: writing it, and reading it when somebody else wrote it
 *
 * There is exactly one text for a folder: sizes have no leading zeros, only what must be escaped is, and entries are
 * sorted. The reader insists on all of it. Stateless; any thread. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "cas/inside.h"

static bool
must_escape(unsigned char c)
{
	return c == '%' || c < 33 || c == 127;
}

static void
add_escaped(struct leat_str *tree, const char *text)
{
	size_t plain = 0;

	for (;; text += plain + 1, plain = 0) {
		while (text[plain] != '\0' && !must_escape((unsigned char)text[plain]))
			plain++;
		leat_str_addn(tree, text, plain);
		if (text[plain] == '\0')
			return;
		leat_str_addf(tree, "%%%02X", (unsigned char)text[plain]);
	}
}

/* Undoes add_escaped for what is between `text` and `end`. False: not escaped as add_escaped does, or too long. */
static bool
unescape(const char *text, const char *end, char *out, size_t cap)
{
	size_t len = 0;

	while (text < end && len + 1 < cap) {
		unsigned char c = (unsigned char)*text++;

		if (c == '%') {
			int high = end - text >= 2 ? leat_hex_digit(text[0]) : -1;
			int low = high < 0 ? -1 : leat_hex_digit(text[1]);

			c = (unsigned char)(low < 0 ? 0 : high << 4 | low);
			if (c == '\0' || !must_escape(c) || text[0] >= 'a' || text[1] >= 'a')
				return false;
			text += 2;
		} else if (must_escape(c)) {
			return false;
		}
		out[len++] = (char)c;
	}
	out[len] = '\0';
	return text == end && len > 0;
}

static bool
is_name(const char *name)
{
	return name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !strchr(name, '/') &&
	       strlen(name) <= NAME_MAX;
}

bool
leat_link_stays(const char *target, size_t depth)
{
	bool named = false;

	if (*target == '/' || *target == '\0' || strlen(target) >= PATH_MAX)
		return false;
	while (*target != '\0') {
		size_t len = strcspn(target, "/");

		if (len == 2 && !memcmp(target, "..", 2)) {
			if (named || depth-- == 0)
				return false;
		} else if (len > 0 && !(len == 1 && *target == '.')) {
			named = true;
		}
		target += len;
		target += strspn(target, "/");
	}
	return true;
}

/* Is the last entry's name before `name`? */
static bool
is_after_last(const struct leat_str *tree, const char *name)
{
	const char *end, *at;
	char last[NAME_MAX + 1];

	if (tree->len == 0)
		return true;
	end = at = tree->text + tree->len - 1; /* its '\n' */
	while (at > tree->text && at[-1] != ' ')
		at--;
	return unescape(at, end, last, sizeof(last)) && strcmp(last, name) < 0;
}

static enum leat_status
check_name(const struct leat_str *tree, const char *name, struct leat_err *err)
{
	if (tree->failed)
		return leat_fail_mem(err, tree->mem, tree->len, "the list of a folder's entries");
	if (!is_name(name))
		return leat_fail(err, LEAT_INVALID, "'%s' cannot be the name of a file in a folder", name);
	if (!is_after_last(tree, name))
		return leat_fail(err, LEAT_INVALID, "'%s' is not in order in the list of a folder's entries", name);
	return LEAT_OK;
}

static enum leat_status
add_name(struct leat_str *tree, const char *name, struct leat_err *err)
{
	leat_str_addn(tree, " ", 1);
	add_escaped(tree, name);
	leat_str_addn(tree, "\n", 1);
	return tree->failed ? leat_fail_mem(err, tree->mem, tree->len, "the list of a folder's entries") : LEAT_OK;
}

enum leat_status
leat_tree_add(struct leat_str *tree, const char *name, const struct leat_content *content, struct leat_err *err)
{
	static const char letter[] = {
		[LEAT_CONTENT_FILE] = 'f', [LEAT_CONTENT_EXECUTABLE] = 'x', [LEAT_CONTENT_FOLDER] = 'd'};
	char hex[LEAT_SHA256_HEX];
	enum leat_status status = check_name(tree, name, err);

	if (status != LEAT_OK)
		return status;
	if (content->kind == LEAT_CONTENT_NONE)
		return leat_fail(err, LEAT_INVALID, "'%s' in a folder has no content", name);
	leat_hex(content->digest.byte, sizeof(content->digest.byte), hex);
	leat_str_addf(tree, "%c %s %" PRIu64, letter[content->kind], hex, content->bytes);
	return add_name(tree, name, err);
}

enum leat_status
leat_tree_add_link(struct leat_str *tree, const char *name, const char *target, struct leat_err *err)
{
	enum leat_status status = check_name(tree, name, err);

	if (status != LEAT_OK)
		return status;
	if (!leat_link_stays(target, SIZE_MAX))
		return leat_fail(err, LEAT_INVALID, "the link '%s' to '%s' leaves its folder", name, target);
	leat_str_addn(tree, "l ", 2);
	add_escaped(tree, target);
	return add_name(tree, name, err);
}

struct line {
	char name[NAME_MAX + 1], target[PATH_MAX];
	struct leat_content content;
	bool is_link;
};

/* The rest of a line after "f ", "x " or "d ". */
static bool
read_content(const char *text, const char *end, char letter, struct line *line)
{
	const char *at = text + LEAT_SHA256_HEX;
	char hex[LEAT_SHA256_HEX];

	line->content.kind = letter == 'f'   ? LEAT_CONTENT_FILE
	                     : letter == 'x' ? LEAT_CONTENT_EXECUTABLE
	                                     : LEAT_CONTENT_FOLDER;
	if (end - text < LEAT_SHA256_HEX || at[-1] != ' ')
		return false;
	memcpy(hex, text, sizeof(hex));
	hex[LEAT_SHA256_HEX - 1] = '\0';
	if (!leat_digest_parse(hex, &line->content.digest))
		return false;
	at = leat_decimal(at, ' ', &line->content.bytes); /* stops at the end of the line */
	return at && unescape(at, end, line->name, sizeof(line->name));
}

static bool
read_link(const char *text, const char *end, struct line *line)
{
	const char *space = memchr(text, ' ', (size_t)(end - text));

	line->content = (struct leat_content){.kind = LEAT_CONTENT_NONE};
	return space && unescape(text, space, line->target, sizeof(line->target)) &&
	       leat_link_stays(line->target, SIZE_MAX) && unescape(space + 1, end, line->name, sizeof(line->name));
}

static bool
read_line(const char *text, const char *end, struct line *line)
{
	if (end - text < 2 || text[1] != ' ')
		return false;
	line->is_link = text[0] == 'l';
	if (line->is_link)
		return read_link(text + 2, end, line);
	return strchr("fxd", text[0]) && text[0] != '\0' && read_content(text + 2, end, text[0], line);
}

enum leat_status
leat_tree_read(const char *text, size_t len, const struct leat_tree_reader *reader, struct leat_err *err)
{
	const char *end = text + len, *next;
	char last[NAME_MAX + 1] = "";
	struct line line;
	enum leat_status status = LEAT_OK;

	for (size_t number = 1; text < end && status == LEAT_OK; text = next + 1, number++) {
		next = memchr(text, '\n', (size_t)(end - text));
		if (!next || !read_line(text, next, &line) || !is_name(line.name) || strcmp(last, line.name) >= 0)
			return leat_fail(err, LEAT_DATA, "line %zu of a folder's list is damaged", number);
		memcpy(last, line.name, sizeof(last));
		status = reader->entry(reader->arg, line.name, &line.content, line.is_link ? line.target : NULL, err);
	}
	return status;
}
