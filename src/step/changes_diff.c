/* changes_diff.c - a unified diff of two texts
 *
 * What is equal at the beginning and the end is cut off; between, the longest common subsequence of lines is found by
 * dynamic programming. Parts too large for its table (a generated file) are shown as replaced. */
#include <stdint.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "step/action.h"

enum { CONTEXT = 3, MAX_CELLS = 16 * 1024 * 1024 };

struct line {
	const char *text;
	size_t len;
	uint64_t hash;
};

struct lines {
	struct line *line;
	size_t count, cap;
};

/* An edit script: ' ' keeps a line, '-' and '+' drop and add one. */
struct script {
	struct leat_mem *mem;
	struct lines was, now;
	char *edit;
	size_t edits, cap;
};

static enum leat_status
split(struct lines *lines, const char *text, struct leat_mem *mem, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	while (*text && status == LEAT_OK) {
		struct line line = {text, strcspn(text, "\n"), 0xcbf29ce484222325u};

		for (size_t i = 0; i < line.len; i++)
			line.hash = (line.hash ^ (unsigned char)text[i]) * 0x100000001b3u;
		status =
			LEAT_GROW(mem, lines->line, lines->cap, lines->count + 1, SIZE_MAX, "the lines of a file", err);
		if (status == LEAT_OK)
			lines->line[lines->count++] = line;
		text += line.len + (text[line.len] == '\n');
	}
	return status;
}

static bool
are_equal(const struct line *a, const struct line *b)
{
	return a->hash == b->hash && a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

static enum leat_status
add(struct script *script, char edit, size_t count, struct leat_err *err)
{
	enum leat_status status = LEAT_GROW(script->mem, script->edit, script->cap, script->edits + count, SIZE_MAX,
	                                    "the lines of a file", err);

	if (status == LEAT_OK && count > 0) {
		memset(script->edit + script->edits, edit, count);
		script->edits += count;
	}
	return status;
}

/* length[i * (m + 1) + j] is the longest common subsequence of the lines from i and j on. */
static void
fill(uint16_t *length, const struct line *was, size_t n, const struct line *now, size_t m)
{
	for (size_t i = n; i-- > 0;) {
		uint16_t *row = length + i * (m + 1), *next = row + m + 1;

		for (size_t j = m; j-- > 0;) {
			if (are_equal(&was[i], &now[j]))
				row[j] = (uint16_t)(next[j + 1] + 1);
			else
				row[j] = next[j] > row[j + 1] ? next[j] : row[j + 1];
		}
	}
}

static enum leat_status
follow(struct script *script, const uint16_t *length, const struct line *was, size_t n, const struct line *now,
       size_t m, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	size_t i = 0, j = 0;

	while (i < n && j < m && status == LEAT_OK) {
		bool same = are_equal(&was[i], &now[j]);
		bool drop = !same && length[(i + 1) * (m + 1) + j] >= length[i * (m + 1) + j + 1];

		status = add(script, same ? ' ' : drop ? '-' : '+', 1, err);
		i += same || drop;
		j += same || !drop;
	}
	if (status == LEAT_OK)
		status = add(script, '-', n - i, err);
	return status == LEAT_OK ? add(script, '+', m - j, err) : status;
}

static enum leat_status
compare_middle(struct script *script, size_t begin, size_t n, size_t m, struct leat_err *err)
{
	const struct line *was = script->was.line + begin, *now = script->now.line + begin;
	uint16_t *length = NULL;
	enum leat_status status;

	if (n > 0 && m > 0 && n < UINT16_MAX && m < UINT16_MAX && (n + 1) * (m + 1) <= MAX_CELLS) {
		length = leat_alloc_array(script->mem, (n + 1) * (m + 1), sizeof(*length));
		if (!length)
			return leat_fail_mem(err, script->mem, (n + 1) * (m + 1), "a diff");
		fill(length, was, n, now, m);
		status = follow(script, length, was, n, now, m, err);
		leat_free(script->mem, length);
		return status;
	}
	status = add(script, '-', n, err);
	return status == LEAT_OK ? add(script, '+', m, err) : status;
}

static enum leat_status
compare(struct script *script, struct leat_err *err)
{
	size_t n = script->was.count, m = script->now.count, begin = 0, end = 0;
	enum leat_status status;

	while (begin < n && begin < m && are_equal(&script->was.line[begin], &script->now.line[begin]))
		begin++;
	while (end < n - begin && end < m - begin &&
	       are_equal(&script->was.line[n - 1 - end], &script->now.line[m - 1 - end]))
		end++;
	status = add(script, ' ', begin, err);
	if (status == LEAT_OK)
		status = compare_middle(script, begin, n - begin - end, m - begin - end, err);
	return status == LEAT_OK ? add(script, ' ', end, err) : status;
}

/* ---- writing ---- */

/* Where the hunk that begins at edit `i` ends: more than two contexts of equal lines divide hunks. */
static size_t
hunk_end(const struct script *script, size_t i)
{
	size_t last = i;

	for (; i < script->edits && i - last <= 2 * CONTEXT; i++)
		if (script->edit[i] != ' ')
			last = i;
	return last + 1 + CONTEXT < script->edits ? last + 1 + CONTEXT : script->edits;
}

static void
write_hunk(const struct script *script, size_t begin, size_t end, size_t i, size_t j, struct leat_str *diff)
{
	size_t was = 0, now = 0;

	for (size_t e = begin; e < end; e++) {
		was += script->edit[e] != '+';
		now += script->edit[e] != '-';
	}
	leat_str_addf(diff, "@@ -%zu,%zu +%zu,%zu @@\n", i + (was > 0), was, j + (now > 0), now);
	for (size_t e = begin; e < end; e++) {
		const struct line *line = script->edit[e] == '+' ? &script->now.line[j] : &script->was.line[i];

		leat_str_addf(diff, "%c%.*s\n", script->edit[e], (int)line->len, line->text);
		i += script->edit[e] != '+';
		j += script->edit[e] != '-';
	}
}

static void
write_diff(const struct script *script, struct leat_str *diff)
{
	size_t was = 0, now = 0, at = 0;

	for (size_t e = 0; e < script->edits; e++) {
		size_t begin = e > at + CONTEXT ? e - CONTEXT : at, end;

		if (script->edit[e] == ' ')
			continue;
		/* Lines at - begin are kept in both. */
		was += begin - at;
		now += begin - at;
		end = hunk_end(script, e);
		write_hunk(script, begin, end, was, now, diff);
		for (size_t i = begin; i < end; i++) {
			was += script->edit[i] != '+';
			now += script->edit[i] != '-';
		}
		at = end;
		e = end - 1;
	}
}

enum leat_status
leat_text_diff(const char *was, const char *now, struct leat_str *diff, struct leat_err *err)
{
	struct script script = {.mem = diff->mem};
	enum leat_status status = split(&script.was, was, diff->mem, err);

	if (status == LEAT_OK)
		status = split(&script.now, now, diff->mem, err);
	if (status == LEAT_OK)
		status = compare(&script, err);
	if (status == LEAT_OK)
		write_diff(&script, diff);
	if (status == LEAT_OK && diff->failed)
		status = leat_fail_mem(err, diff->mem, diff->len, "a diff");
	leat_free(diff->mem, script.was.line);
	leat_free(diff->mem, script.now.line);
	leat_free(diff->mem, script.edit);
	return status;
}
