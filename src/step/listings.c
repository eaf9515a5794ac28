/* listings.c - see listings.h */
#include "step/listings.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/hash.h"

/* ---- reading ---- */

static enum leat_status
add_name(struct leat_listing *l, size_t *cap, const char *path, const struct dirent *d, struct leat_err *err)
{
	struct leat_name *name;
	char whole[PATH_MAX];
	struct stat file;

	if (snprintf(whole, sizeof(whole), "%s/%s", path, d->d_name) >= (int)sizeof(whole))
		return leat_fail_errno(err, ENAMETOOLONG, "cannot list '%s'", path);
	if (LEAT_GROW(l->text.mem, l->name, *cap, l->count + 1, SIZE_MAX, "the list of files", err) != LEAT_OK)
		return LEAT_NOMEM;
	name = &l->name[l->count];
	*name = (struct leat_name){.name = leat_text_keep(&l->text, d->d_name, strlen(d->d_name)),
	                           .is_folder = d->d_type == DT_DIR,
	                           .is_link = d->d_type == DT_LNK};
	if (!name->name)
		return leat_fail_mem(err, l->text.mem, strlen(d->d_name), "the list of files");
	if (d->d_type == DT_LNK || d->d_type == DT_UNKNOWN)
		name->is_folder = !stat(whole, &file) && S_ISDIR(file.st_mode);
	l->count++;
	return LEAT_OK;
}

static enum leat_status
read_names(struct leat_listing *l, DIR *dir, const char *path, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	struct dirent *d;
	size_t cap = 0;

	while (status == LEAT_OK && (errno = 0, d = readdir(dir)))
		if (strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0)
			status = add_name(l, &cap, path, d, err);
	if (status == LEAT_OK && errno)
		status = leat_fail_errno(err, errno, "cannot list '%s'", path);
	return status;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(((const struct leat_name *)a)->name, ((const struct leat_name *)b)->name);
}

/* Compares texts of these lengths from their ends. */
static int
compare_ends(const char *a, size_t a_len, const char *b, size_t b_len)
{
	while (a_len > 0 && b_len > 0 && a[a_len - 1] == b[b_len - 1])
		a_len--, b_len--;
	if (a_len == 0 || b_len == 0)
		return (a_len > 0) - (b_len > 0);
	return (unsigned char)a[a_len - 1] - (unsigned char)b[b_len - 1];
}

static int
by_end(const void *a, const void *b, void *names)
{
	const char *x = ((const struct leat_name *)names)[*(const size_t *)a].name;
	const char *y = ((const struct leat_name *)names)[*(const size_t *)b].name;

	return compare_ends(x, strlen(x), y, strlen(y));
}

static enum leat_status
sort(struct leat_listing *l, struct leat_err *err)
{
	if (l->count == 0)
		return LEAT_OK;
	qsort(l->name, l->count, sizeof(*l->name), by_name);
	l->by_end = leat_alloc_array(l->text.mem, l->count, sizeof(*l->by_end));
	if (!l->by_end)
		return leat_fail_mem(err, l->text.mem, l->count * sizeof(*l->by_end), "the list of files");
	for (size_t i = 0; i < l->count; i++)
		l->by_end[i] = i;
	qsort_r(l->by_end, l->count, sizeof(*l->by_end), by_end, l->name);
	return LEAT_OK;
}

enum leat_status
leat_listing_read(struct leat_listing *listing, struct leat_mem *mem, const char *path, struct leat_err *err)
{
	DIR *dir = opendir(*path ? path : "/");
	enum leat_status status;

	*listing = (struct leat_listing){0};
	leat_text_init(&listing->text, mem, NULL);
	if (!dir)
		return errno == ENOENT || errno == ENOTDIR ? LEAT_OK
		                                           : leat_fail_errno(err, errno, "cannot list '%s'", path);
	status = read_names(listing, dir, path, err);
	closedir(dir);
	if (status == LEAT_OK)
		status = sort(listing, err);
	if (status != LEAT_OK)
		leat_listing_free(listing);
	return status;
}

void
leat_listing_free(struct leat_listing *listing)
{
	struct leat_mem *mem = listing->text.mem;

	if (!mem)
		return;
	leat_text_free(&listing->text);
	leat_free(mem, listing->name);
	leat_free(mem, listing->by_end);
	leat_free(mem, listing->path);
	*listing = (struct leat_listing){0};
}

/* ---- searching ---- */

static const char *
at_end(const struct leat_listing *l, size_t i)
{
	return l->name[l->by_end[i]].name;
}

/* Is name i, in the order that is asked for, before all that begin (or end) with `text`? After: it does not begin so,
 * and is not before them. */
static int
place(const struct leat_listing *l, bool by_end, size_t i, const char *text, size_t len)
{
	const char *name = by_end ? at_end(l, i) : l->name[i].name;
	size_t has = strlen(name);

	if (!by_end)
		return strncmp(name, text, len);
	return compare_ends(has > len ? name + has - len : name, has > len ? len : has, text, len);
}

/* The first name that is not before (or, with `after`, that is after) those with `text`. */
static size_t
bound(const struct leat_listing *l, bool by_end, const char *text, size_t len, bool after)
{
	size_t low = 0, high = l->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (place(l, by_end, middle, text, len) < (after ? 1 : 0))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct leat_candidates
range(const struct leat_listing *l, bool by_end, const char *text, size_t len)
{
	size_t first = bound(l, by_end, text, len, false);

	return (struct leat_candidates){first, bound(l, by_end, text, len, true) - first, by_end};
}

/* What follows the last special character. After a backslash that is a plain character, whatever it is. */
static const char *
plain_end(const char *pattern)
{
	const char *end = pattern;

	for (; *pattern; pattern++)
		if (strchr("*?[]\\", *pattern))
			end = pattern + 1;
	return end;
}

struct leat_candidates
leat_listing_find(const struct leat_listing *listing, const char *pattern)
{
	const char *end = plain_end(pattern);
	struct leat_candidates first = range(listing, false, pattern, strcspn(pattern, "*?[\\"));
	struct leat_candidates last = range(listing, true, end, strlen(end));

	return first.count <= last.count ? first : last;
}

/* ---- many ---- */

void
leat_listings_init(struct leat_listings *listings, struct leat_mem *mem)
{
	*listings = (struct leat_listings){.mem = mem};
	pthread_mutex_init(&listings->lock, NULL);
}

void
leat_listings_free(struct leat_listings *listings)
{
	for (size_t i = 0; i < LEAT_LISTING_BUCKETS; i++)
		while (listings->bucket[i]) {
			struct leat_listing *listing = listings->bucket[i];

			listings->bucket[i] = listing->next;
			leat_listing_free(listing);
			leat_free(listings->mem, listing);
		}
	pthread_mutex_destroy(&listings->lock);
}

static enum leat_status
add(struct leat_listings *l, struct leat_listing **bucket, const char *path, struct leat_err *err)
{
	struct leat_listing *listing = leat_alloc(l->mem, sizeof(*listing));
	enum leat_status status;

	if (!listing)
		return leat_fail_mem(err, l->mem, sizeof(*listing), "the list of files");
	status = leat_listing_read(listing, l->mem, path, err);
	if (status == LEAT_OK) {
		listing->path = leat_strdup(l->mem, path);
		if (!listing->path)
			status = leat_fail_mem(err, l->mem, strlen(path), "the list of files");
	}
	if (status != LEAT_OK) {
		leat_listing_free(listing);
		leat_free(l->mem, listing);
		return status;
	}
	listing->next = *bucket;
	*bucket = listing;
	return LEAT_OK;
}

enum leat_status
leat_listings_get(struct leat_listings *listings, const char *path, const struct leat_listing **listing,
                  struct leat_err *err)
{
	struct leat_listing **bucket = &listings->bucket[leat_hash64(path) % LEAT_LISTING_BUCKETS], *found;
	enum leat_status status = LEAT_OK;

	pthread_mutex_lock(&listings->lock);
	for (found = *bucket; found && strcmp(found->path, path) != 0;)
		found = found->next;
	if (!found)
		status = add(listings, bucket, path, err);
	*listing = found ? found : *bucket;
	pthread_mutex_unlock(&listings->lock);
	return status;
}
