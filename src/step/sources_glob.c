/* sources_glob.c - see sources.h
 *
 * Folders are read whole and closed before their folders are read, so no tree needs many descriptors. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "step/glob.h"
#include "step/project_text.h"
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
	struct leat_paths *paths;
	struct leat_err *err;
	char path[PATH_MAX]; /* absolute */
	size_t shown;        /* characters that results do not have: the project's folder */
	bool at_top;         /* the fixed part is the project's folder */
};

struct entry {
	struct entry *next;
	bool is_folder, is_link;
	char name[];
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

static struct entry *
make_entry(struct walk *w, struct leat_project_text *names, const struct dirent *d, size_t len)
{
	size_t name = strlen(d->d_name);
	struct entry *entry;
	struct stat st;

	if (len + name + 2 > sizeof(w->path))
		return leat_fail_errno(w->err, ENAMETOOLONG, "cannot list '%s'", w->path), NULL;
	entry = leat_text_alloc(names, sizeof(*entry) + name + 1);
	if (!entry)
		return NULL;
	memcpy(entry->name, d->d_name, name + 1);
	entry->is_folder = d->d_type == DT_DIR;
	entry->is_link = d->d_type == DT_LNK;
	if (d->d_type == DT_LNK || d->d_type == DT_UNKNOWN) {
		snprintf(w->path + len, sizeof(w->path) - len, "/%s", d->d_name);
		entry->is_folder = !stat(w->path, &st) && S_ISDIR(st.st_mode);
		w->path[len] = '\0';
	}
	return entry;
}

/* All names of a folder. One that does not exist has none. */
static bool
list(struct walk *w, size_t len, struct leat_project_text *names, struct entry **first)
{
	DIR *dir = opendir(*w->path ? w->path : "/");
	struct dirent *d;
	bool ok = true;

	*first = NULL;
	if (!dir)
		return errno == ENOENT || errno == ENOTDIR ||
		       (leat_fail_errno(w->err, errno, "cannot list '%s'", w->path), false);
	while (ok && (errno = 0, d = readdir(dir))) {
		struct entry *entry;

		if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
			continue;
		entry = make_entry(w, names, d, len);
		ok = entry != NULL;
		if (ok) {
			entry->next = *first;
			*first = entry;
		}
	}
	if (ok && errno)
		ok = (leat_fail_errno(w->err, errno, "cannot list '%s'", w->path), false);
	closedir(dir);
	return ok;
}

/* `len`: of the path of its folder; `state`: of the pattern there. */
static bool
take_entry(struct walk *w, const struct entry *entry, size_t depth, size_t len, uint64_t state)
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

static bool
walk(struct walk *w, size_t depth, size_t len, uint64_t state)
{
	struct leat_project_text names;
	struct entry *entry;
	bool ok;

	if (depth == MAX_DEPTH)
		return leat_fail(w->err, LEAT_LIMIT, "'%s' is more than %d folders deep", w->path, MAX_DEPTH), false;
	leat_text_init(&names, w->mem, w->err);
	ok = list(w, len, &names, &entry);
	for (; entry && ok; entry = entry->next) {
		ok = take_entry(w, entry, depth, len, state);
		w->path[len] = '\0';
	}
	leat_text_free(&names);
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
leat_glob_paths(const char *folder, const char *pattern, struct leat_mem *mem, struct leat_paths *paths,
                struct leat_err *err)
{
	struct walk *w = leat_alloc(mem, sizeof(*w));
	struct leat_err why;
	struct search s = {folder, w};
	enum leat_status status;

	if (!w)
		return leat_fail_mem(err, mem, sizeof(*w), "the list of files");
	leat_err_clear(&why);
	*w = (struct walk){.mem = mem, .paths = paths, .err = &why};
	status = leat_glob_expand(pattern, mem, &(struct leat_glob_reader){search_one, &s}, err);
	leat_free(mem, w);
	return status;
}
