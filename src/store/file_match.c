/* file_match.c - the local files that match a pattern
 *
 * As glob(3), which is not used because glibc's frees memory twice when it runs out of it: *, ?
 * and [..] match within a component and no leading dot, a backslash quotes. A folder that
 * cannot be read is an error. Matches come in any order. */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "store/file.h"

struct match {
	struct leat_file_store *store;
	const char *pattern; /* for messages */
	const char *end;     /* of the copy in which the first slash after each component is a NUL */
	char path[LEAT_URI]; /* what the components before are, with a slash at its end */
	leat_path_visit *visit;
	void *arg;
	bool found;
};

static enum leat_status expand(struct match *m, size_t len, const char *component, struct leat_err *err);

static enum leat_status
fail(const struct match *m, int errnum, struct leat_err *err)
{
	return leat_fail_errno(err, errnum, "cannot list '%s'", m->pattern);
}

/* The path of `len` characters matches up to `component`. */
static enum leat_status
take_path(struct match *m, size_t len, const char *component, struct leat_err *err)
{
	const char *after = component + strlen(component);
	size_t slashes = after == m->end ? 0 : 1 + strspn(after + 1, "/");
	struct stat st;

	if (len + slashes >= sizeof(m->path))
		return fail(m, ENAMETOOLONG, err);
	memset(m->path + len, '/', slashes);
	m->path[len + slashes] = '\0';
	if (after != m->end && after + slashes != m->end)
		return expand(m, len + slashes, after + slashes, err);
	if (slashes && stat(m->path, &st) != 0) /* a slash at the end: folders only */
		return LEAT_OK;
	m->found = true;
	return m->visit(m->arg, m->path, err);
}

static enum leat_status
take_entry(struct match *m, size_t len, const char *component, const char *name, struct leat_err *err)
{
	size_t more = strlen(name);

	if (len + more >= sizeof(m->path))
		return fail(m, ENAMETOOLONG, err);
	memcpy(m->path + len, name, more);
	return take_path(m, len + more, component, err);
}

static enum leat_status
expand_folder(struct match *m, size_t len, const char *component, struct leat_err *err)
{
	DIR *dir = leat_file_open_folder(m->store, len ? m->path : ".");
	enum leat_status status = LEAT_OK;
	struct dirent *dirent;

	if (!dir)
		return errno == ENOENT || errno == ENOTDIR ? LEAT_OK : fail(m, errno, err);
	while (status == LEAT_OK && (errno = 0, dirent = readdir(dir)) != NULL) {
		bool is_dots = strcmp(dirent->d_name, ".") == 0 || strcmp(dirent->d_name, "..") == 0;
		int differs = is_dots ? FNM_NOMATCH : fnmatch(component, dirent->d_name, FNM_PERIOD);

		if (differs == 0)
			status = take_entry(m, len, component, dirent->d_name, err);
		else if (differs != FNM_NOMATCH)
			status = fail(m, ENOMEM, err);
		errno = 0;
	}
	if (status == LEAT_OK && errno != 0)
		status = fail(m, errno, err);
	closedir(dir);
	return status;
}

/* A component without wildcards, but maybe with backslashes. */
static enum leat_status
expand_name(struct match *m, size_t len, const char *component, struct leat_err *err)
{
	struct stat st;

	for (const char *c = component; *c; c++) {
		if (*c == '\\' && c[1])
			c++;
		if (len + 1 >= sizeof(m->path))
			return fail(m, ENAMETOOLONG, err);
		m->path[len++] = *c;
	}
	m->path[len] = '\0';
	return !len || lstat(m->path, &st) == 0 ? take_path(m, len, component, err) : LEAT_OK;
}

/* Matches a component, and those after it, below the first `len` characters of the path. */
static enum leat_status
expand(struct match *m, size_t len, const char *component, struct leat_err *err)
{
	return strpbrk(component, "*?[") ? expand_folder(m, len, component, err) : expand_name(m, len, component, err);
}

enum leat_status
leat_file_match(struct leat_store *store, const char *pattern, leat_path_visit *visit, void *arg, struct leat_err *err)
{
	struct match *m = leat_alloc(store->mem, sizeof(*m));
	char *copy = leat_strdup(store->mem, pattern);
	enum leat_status status;

	if (!m || !copy) {
		status = leat_fail(err, LEAT_NOMEM, "out of memory while listing '%s'", pattern);
		goto out;
	}
	*m = (struct match){leat_file_store_of(store), pattern, .end = copy + strlen(copy), .visit = visit, .arg = arg};
	for (char *slash = strchr(copy, '/'); slash; slash = strchr(slash + strspn(slash + 1, "/") + 1, '/'))
		*slash = '\0';
	status = expand(m, 0, copy, err);
	if (status == LEAT_OK && !m->found)
		status = LEAT_AGAIN;
out:
	leat_free(store->mem, copy);
	leat_free(store->mem, m);
	return status;
}
