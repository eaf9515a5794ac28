/* sources_glob.c - see sources.h
 *
 * Folders are read whole and closed before their folders are read, so no tree needs many descriptors. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "step/glob.h"
#include "step/listings.h"
#include "step/sources.h"

enum { MAX_DEPTH = 64, MAX_PATHS = 4000000 };

bool
leat_glob_is_pattern(const char *text)
{
	return strpbrk(text, "*?[{\\") != NULL;
}

size_t
leat_glob_fixed(const char *pattern)
{
	size_t fixed = 0;

	for (size_t i = 0; pattern[i] && !strchr("*?[{\\", pattern[i]); i++)
		if (pattern[i] == '/')
			fixed = i + 1;
	return fixed;
}

/* ---- walking ---- */

struct walk {
	struct leat_glob glob; /* below the fixed part */
	char text[PATH_MAX];   /* its names */
	struct leat_mem *mem;
	struct leat_listings *listings; /* NULL: folders are read now */
	struct leat_paths *paths;
	struct leat_err *err;
	char path[PATH_MAX]; /* absolute */
	size_t shown;        /* characters that results do not have: the project's folder */
	bool at_top;         /* the fixed part is the project's folder */
};

static bool walk(struct walk *w, size_t depth, size_t len, uint64_t state);

static bool
add_path(struct walk *w)
{
	struct leat_paths *p = w->paths;

	if (LEAT_GROW(w->mem, p->path, p->cap, p->count + 1, MAX_PATHS, "the list of files", w->err) != LEAT_OK)
		return false;
	p->path[p->count] = leat_strdup(w->mem, w->path + w->shown);
	if (!p->path[p->count])
		return leat_fail_mem(w->err, w->mem, strlen(w->path), "the list of files"), false;
	p->count++;
	return true;
}

/* `len`: of the path of its folder; `state`: of the pattern there. */
static bool
take_entry(struct walk *w, const struct leat_name *entry, size_t depth, size_t len, uint64_t state)
{
	bool below = depth >= w->glob.stars; /* ** has begun */
	uint64_t next = leat_glob_next(&w->glob, state, entry->name), matched = leat_glob_matched(&w->glob);
	size_t name = strlen(entry->name);

	if (next == 0 || (w->at_top && depth == 0 && !strcmp(entry->name, "out")))
		return true;
	w->path[len] = '/';
	memcpy(w->path + len + 1, entry->name, name + 1);
	if (next & matched && (!entry->is_folder || w->glob.stars == SIZE_MAX) && !add_path(w))
		return false;
	if (!entry->is_folder || (below && (entry->is_link || entry->name[0] == '.')))
		return true;
	return (next & ~matched) == 0 || walk(w, depth + 1, len + 1 + name, next);
}

/* The only name of the pattern that may match in this state; NULL: there are several, or "**". */
static const char *
only_name(const struct leat_glob *glob, uint64_t state)
{
	uint64_t names = state & (leat_glob_matched(glob) - 1);
	int first = names ? __builtin_ctzll(names) : -1;

	return first >= 0 && names == (uint64_t)1 << first && strcmp(glob->name[first], "**") != 0 ? glob->name[first]
	                                                                                           : NULL;
}

static bool
take_entries(struct walk *w, const struct leat_listing *listing, size_t depth, size_t len, uint64_t state)
{
	const char *name = only_name(&w->glob, state);
	struct leat_candidates c = {.count = listing->count};
	bool ok = true;

	if (name)
		c = leat_listing_find(listing, name);
	for (size_t i = c.first; i < c.first + c.count && ok; i++) {
		ok = take_entry(w, &listing->name[c.by_end ? listing->by_end[i] : i], depth, len, state);
		w->path[len] = '\0';
	}
	return ok;
}

static bool
walk(struct walk *w, size_t depth, size_t len, uint64_t state)
{
	struct leat_listing own = {0};
	const struct leat_listing *listing = &own;
	bool ok;

	if (depth == MAX_DEPTH)
		return leat_fail(w->err, LEAT_LIMIT, "'%s' is more than %d folders deep", w->path, MAX_DEPTH), false;
	if (w->listings)
		ok = leat_listings_get(w->listings, w->path, &listing, w->err) == LEAT_OK;
	else
		ok = leat_listing_read(&own, w->mem, w->path, w->err) == LEAT_OK;
	ok = ok && take_entries(w, listing, depth, len, state);
	leat_listing_free(&own);
	return ok;
}

struct search {
	const char *folder;
	struct walk *walk;
};

/* Splits what follows the fixed part. */
static bool
split(struct walk *w, const char *pattern)
{
	size_t len = strlen(pattern);

	if (len >= sizeof(w->text))
		return false;
	memcpy(w->text, pattern, len + 1);
	return leat_glob_split(&w->glob, w->text);
}

static enum leat_status
search_one(void *arg, const char *pattern, struct leat_err *err)
{
	const struct search *s = arg;
	struct walk *w = s->walk;
	size_t fixed = leat_glob_fixed(pattern);
	bool absolute = *pattern == '/';
	int n = snprintf(w->path, sizeof(w->path), "%s%s%.*s", absolute ? "" : s->folder, absolute ? "" : "/",
	                 (int)fixed, pattern);

	if (n < 0 || (size_t)n >= sizeof(w->path) || !split(w, pattern + fixed))
		return leat_fail(err, LEAT_INVALID, "the pattern '%.200s' is too long", pattern);
	w->shown = absolute ? 0 : strlen(s->folder) + 1;
	w->at_top = !absolute && !fixed;
	w->path[n - 1] = '\0'; /* the slash */
	if (w->glob.names && !walk(w, 0, (size_t)n - 1, leat_glob_begin(&w->glob)))
		return leat_fail_as(err, w->err);
	return LEAT_OK;
}

enum leat_status
leat_glob_paths(const char *folder, const char *pattern, struct leat_listings *listings, struct leat_mem *mem,
                struct leat_paths *paths, struct leat_err *err)
{
	struct walk *w = leat_alloc(mem, sizeof(*w));
	struct leat_err why;
	struct search s = {folder, w};
	enum leat_status status;

	if (!w)
		return leat_fail_mem(err, mem, sizeof(*w), "the list of files");
	leat_err_clear(&why);
	*w = (struct walk){.mem = mem, .listings = listings, .paths = paths, .err = &why};
	status = leat_glob_expand(pattern, mem, &(struct leat_glob_reader){search_one, &s}, err);
	leat_free(mem, w);
	return status;
}
