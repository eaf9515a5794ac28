/* code_glob.c - see code_glob.h */
#include "step/code_glob.h"

#include <string.h>

#include "base/array.h"
#include "base/mem.h"
#include "base/str.h"

enum { MAX_PATTERN = 4096 };

/* ---- opening ---- */

static enum leat_status
check(const char *pattern, struct leat_err *err)
{
	if (*pattern == '/' || !*pattern)
		return leat_fail(err, LEAT_SPEC, "code: '%s' is not a pattern below the project's folder", pattern);
	if (strlen(pattern) > MAX_PATTERN)
		return leat_fail(err, LEAT_SPEC, "code: a pattern is longer than %d characters", MAX_PATTERN);
	return LEAT_OK;
}

static enum leat_status
split(struct leat_code_glob *one, struct leat_err *err)
{
	if (!leat_glob_split(&one->glob, one->text))
		return leat_fail(err, LEAT_SPEC, "code: a pattern has more than %d folders", LEAT_GLOB_NAMES);
	for (size_t i = 0; i < one->glob.names; i++)
		if (strcmp(one->glob.name[i], "..") == 0)
			return leat_fail(err, LEAT_SPEC,
			                 "code: a pattern may not have '..'; all code is below leat.yaml");
	return LEAT_OK;
}

static enum leat_status
add_glob(void *arg, const char *text, struct leat_err *err)
{
	struct leat_globs *globs = arg;
	enum leat_status status = LEAT_GROW(globs->mem, globs->glob, globs->cap, globs->count + 1, LEAT_GLOB_PATTERNS,
	                                    "the code patterns", err);
	struct leat_code_glob *one;

	if (status != LEAT_OK)
		return status;
	one = &globs->glob[globs->count];
	one->text = leat_strdup(globs->mem, text);
	if (!one->text)
		return leat_fail_mem(err, globs->mem, strlen(text) + 1, "the code patterns");
	globs->count++;
	return split(one, err);
}

static enum leat_status
add_globs(struct leat_globs *globs, const char *pattern, struct leat_err *err)
{
	enum leat_status status = check(pattern, err);

	if (status == LEAT_OK)
		status = leat_glob_expand(pattern, globs->mem, &(struct leat_glob_reader){add_glob, globs}, err);
	if (status == LEAT_INVALID)
		status = leat_fail(err, LEAT_SPEC, "code: the pattern '%.200s' has too many alternatives or braces",
		                   pattern);
	return status;
}

enum leat_status
leat_globs_open(struct leat_globs *globs, struct leat_mem *mem, const char *const *pattern, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	*globs = (struct leat_globs){.mem = mem};
	for (; *pattern && status == LEAT_OK; pattern++)
		status = add_globs(globs, *pattern, err);
	if (status != LEAT_OK)
		leat_globs_close(globs);
	return status;
}

void
leat_globs_close(struct leat_globs *globs)
{
	for (size_t i = 0; i < globs->count; i++)
		leat_free(globs->mem, globs->glob[i].text);
	leat_free(globs->mem, globs->glob);
	*globs = (struct leat_globs){.mem = globs->mem};
}

/* ---- matching ---- */

/* All in a folder that matched matches. */
static uint64_t
next_state(const struct leat_glob *glob, uint64_t state, const char *name)
{
	uint64_t inside = name[0] != '.' ? state & leat_glob_matched(glob) : 0;

	return inside | leat_glob_next(glob, state, name);
}

void
leat_globs_begin(const struct leat_globs *globs, uint64_t *state)
{
	for (size_t i = 0; i < globs->count; i++)
		state[i] = leat_glob_begin(&globs->glob[i].glob);
}

bool
leat_globs_step(const struct leat_globs *globs, const uint64_t *state, const char *name, uint64_t *next)
{
	bool matches = false;

	for (size_t i = 0; i < globs->count; i++) {
		next[i] = state[i] ? next_state(&globs->glob[i].glob, state[i], name) : 0;
		matches |= (next[i] & leat_glob_matched(&globs->glob[i].glob)) != 0;
	}
	return matches;
}

bool
leat_globs_may_match(const struct leat_globs *globs, const uint64_t *state)
{
	uint64_t any = 0;

	for (size_t i = 0; i < globs->count; i++)
		any |= state[i];
	return any != 0;
}
