/* pattern.c - from a pattern or a file: URI to the sorted paths that it names
 *
 * The order is part of what a seed fixes, so it may not depend on the locale or the
 * file system: bytes are compared. Called by one thread. */
#include "store/pattern.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static enum leat_status
append(struct leat_paths *paths, const char *path, struct leat_mem *mem, struct leat_err *err)
{
	if (paths->count == paths->cap) {
		size_t cap = paths->cap ? 2 * paths->cap : 16;
		char **grown = leat_realloc(mem, paths->path, cap * sizeof(*grown));

		if (!grown)
			return leat_fail_mem(err, mem, cap * sizeof(*grown), "the list of files");
		paths->path = grown;
		paths->cap = cap;
	}
	paths->path[paths->count] = leat_strdup(mem, path);
	if (!paths->path[paths->count])
		return leat_fail_mem(err, mem, strlen(path) + 1, "the list of files");
	paths->count++;
	return LEAT_OK;
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* In place. False: a % without two digits, or a NUL in disguise. */
static bool
percent_decode(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		if (*from == '%') {
			int high = hex_digit(from[1]), low = high < 0 ? -1 : hex_digit(from[2]);

			if (low < 0 || (high | low) == 0)
				return false;
			*to++ = (char)(high << 4 | low);
			from += 2;
		} else {
			*to++ = *from;
		}
	}
	*to = '\0';
	return true;
}

/* The length of "scheme" in scheme:..., 0 without one. A single letter is no scheme. */
static size_t
scheme_length(const char *text)
{
	size_t len = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");

	if (strncmp(text, "file:", 5) == 0)
		return 4;
	return len > 1 && strncmp(text + len, "://", 3) == 0 ? len : 0;
}

/* The path, or pattern of paths, that a URI or plain text means. */
static enum leat_status
to_path(const char *pattern, char **path, struct leat_mem *mem, struct leat_err *err)
{
	size_t scheme = scheme_length(pattern);
	const char *rest = pattern;

	if (!*pattern)
		return leat_fail(err, LEAT_INVALID, "a file name or pattern is empty");
	if (scheme && strncmp(pattern, "file:", 5) != 0)
		return leat_fail(err, LEAT_UNSUPPORTED,
		                 "'%s': files are read from local folders only, not from %.*s:", pattern, (int)scheme,
		                 pattern);
	if (scheme) {
		rest = pattern + 5;
		if (strncmp(rest, "//localhost/", 12) == 0)
			rest += 11;
		else if (strncmp(rest, "///", 3) == 0)
			rest += 2;
		else if (strncmp(rest, "//", 2) == 0)
			return leat_fail(err, LEAT_INVALID, "'%s' names another host: write file:///path", pattern);
	}
	*path = leat_strdup(mem, rest);
	if (!*path)
		return leat_fail_mem(err, mem, strlen(rest) + 1, "a file name");
	if (scheme && (!percent_decode(*path) || !**path)) {
		leat_free(mem, *path);
		return leat_fail(err, LEAT_INVALID, "'%s' is no valid file: URI", pattern);
	}
	return LEAT_OK;
}

static int
compare_paths(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum leat_status
add_matches(struct leat_paths *paths, const char *pattern, struct leat_mem *mem, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	glob_t found = {0};
	int failure;

	errno = 0;
	failure = glob(pattern, GLOB_ERR | GLOB_NOSORT, NULL, &found);
	if (failure == GLOB_NOSPACE)
		status = leat_fail(err, LEAT_NOMEM, "no memory to list the files of '%s'", pattern);
	else if (failure == GLOB_NOMATCH || (failure == GLOB_ABORTED && (errno == ENOENT || errno == ENOTDIR)))
		status = leat_fail(err, LEAT_IO, "no file matches '%s'", pattern);
	else if (failure)
		status = leat_fail_errno(err, errno ? errno : EIO, "cannot list the files of '%s'", pattern);
	else
		qsort(found.gl_pathv, found.gl_pathc, sizeof(char *), compare_paths);
	for (size_t i = 0; status == LEAT_OK && i < found.gl_pathc; i++)
		status = append(paths, found.gl_pathv[i], mem, err);
	globfree(&found);
	return status;
}

enum leat_status
leat_paths_add(struct leat_paths *paths, const char *pattern, struct leat_mem *mem, struct leat_err *err)
{
	char *path = NULL;
	struct stat st;
	enum leat_status status = to_path(pattern, &path, mem, err);

	if (status != LEAT_OK)
		return status;
	if (stat(path, &st) == 0 || !strpbrk(path, "*?["))
		status = append(paths, path, mem, err);
	else
		status = add_matches(paths, path, mem, err);
	leat_free(mem, path);
	return status;
}

void
leat_paths_free(struct leat_paths *paths, struct leat_mem *mem)
{
	for (size_t i = 0; i < paths->count; i++)
		leat_free(mem, paths->path[i]);
	leat_free(mem, paths->path);
	*paths = (struct leat_paths){0};
}
