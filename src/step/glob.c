/* glob.c - see glob.h */
#include "step/glob.h"

#include <fnmatch.h>
#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

enum { MAX_BRACES = 16, MAX_OPEN = 64 }; /* that are replaced; that are there */

/* ---- alternatives ---- */

struct expansion {
	const char *pattern; /* as it was */
	struct leat_mem *mem;
	const struct leat_glob_reader *reader;
	size_t count;
};

/* The next character after one that a backslash may quote. */
static const char *
skip(const char *c)
{
	return c + (c[0] == '\\' && c[1] ? 2 : 1);
}

/* The first comma, or the end, of what is in braces, without those in inner braces. NULL: they do not end. */
static const char *
find_end(const char *c)
{
	size_t depth = 0;

	for (; *c; c = skip(c)) {
		if (depth == 0 && (*c == ',' || *c == '}'))
			return c;
		depth += *c == '{';
		depth -= *c == '}';
	}
	return NULL;
}

/* The first braces with alternatives, and where they end. NULL: there are none. */
static const char *
find_braces(const char *c, const char **close)
{
	for (; *c; c = skip(c)) {
		const char *end = *c == '{' ? find_end(c + 1) : NULL;

		if (!end || *end == '}')
			continue;
		while (end && *end == ',')
			end = find_end(end + 1);
		*close = end;
		if (end)
			return c;
	}
	return NULL;
}

/* Replaces the first braces by each of their alternatives. The rest is expanded in turn. */
static enum leat_status
expand(struct expansion *e, const char *pattern, unsigned depth, struct leat_err *err)
{
	const char *close = NULL, *open = find_braces(pattern, &close), *end;
	enum leat_status status = LEAT_OK;

	if (open ? depth == MAX_BRACES : ++e->count > LEAT_GLOB_PATTERNS)
		return leat_fail(err, LEAT_INVALID, "the pattern '%.200s' has too many alternatives", e->pattern);
	if (!open)
		return e->reader->pattern(e->reader->arg, pattern, err);
	for (const char *from = open + 1; from <= close && status == LEAT_OK; from = end + 1) {
		char *one;

		end = find_end(from);
		one = leat_asprintf(e->mem, "%.*s%.*s%s", (int)(open - pattern), pattern, (int)(end - from), from,
		                    close + 1);
		status =
			one ? expand(e, one, depth + 1, err) : leat_fail_mem(err, e->mem, strlen(pattern), "a pattern");
		leat_free(e->mem, one);
	}
	return status;
}

/* Limits what comparing each brace with all that follows may take. */
enum leat_status
leat_glob_expand(const char *pattern, struct leat_mem *mem, const struct leat_glob_reader *reader, struct leat_err *err)
{
	struct expansion e = {.pattern = pattern, .mem = mem, .reader = reader};
	size_t open = 0;

	if (strlen(pattern) >= PATH_MAX)
		return leat_fail(err, LEAT_INVALID, "the pattern '%.200s' is too long", pattern);
	for (const char *c = pattern; *c; c = skip(c))
		open += *c == '{';
	if (open > MAX_OPEN)
		return leat_fail(err, LEAT_INVALID, "the pattern '%.200s' has more than %d braces", pattern, MAX_OPEN);
	return expand(&e, pattern, 0, err);
}

/* ---- one pattern ---- */

static bool
is_any_folders(const char *name)
{
	return strcmp(name, "**") == 0;
}

bool
leat_glob_split(struct leat_glob *glob, char *text)
{
	char *rest = NULL;

	*glob = (struct leat_glob){.stars = SIZE_MAX};
	for (char *name = strtok_r(text, "/", &rest); name; name = strtok_r(NULL, "/", &rest)) {
		if (strcmp(name, ".") == 0)
			continue;
		if (glob->names == LEAT_GLOB_NAMES)
			return false;
		if (glob->stars == SIZE_MAX && is_any_folders(name))
			glob->stars = glob->names;
		glob->name[glob->names++] = name;
	}
	return true;
}

/* ** may stand for no folder, so what follows it may match, too. */
static uint64_t
skip_any(const struct leat_glob *glob, uint64_t state)
{
	for (size_t i = 0; i < glob->names; i++)
		if (state >> i & 1 && is_any_folders(glob->name[i]))
			state |= (uint64_t)1 << (i + 1);
	return state;
}

/* fnmatch, but fast for the usual "*.py": a walk compares all names of a project. */
static bool
name_matches(const char *pattern, const char *name)
{
	size_t tail = strlen(pattern), len;

	if (pattern[0] != '*' || pattern[strcspn(pattern + 1, "*?[\\") + 1])
		return fnmatch(pattern, name, FNM_PERIOD) == 0;
	len = strlen(name);
	return name[0] != '.' && len >= tail - 1 && memcmp(name + len - (tail - 1), pattern + 1, tail - 1) == 0;
}

uint64_t
leat_glob_begin(const struct leat_glob *glob)
{
	return skip_any(glob, 1);
}

uint64_t
leat_glob_next(const struct leat_glob *glob, uint64_t state, const char *name)
{
	uint64_t next = 0;

	for (size_t i = 0; i < glob->names; i++) {
		if (!(state >> i & 1))
			continue;
		if (is_any_folders(glob->name[i]))
			next |= name[0] != '.' ? (uint64_t)1 << i : 0;
		else if (name_matches(glob->name[i], name))
			next |= (uint64_t)1 << (i + 1);
	}
	return skip_any(glob, next);
}
