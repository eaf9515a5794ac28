/* confine.c - see confine.h */
#include "format/confine.h"

#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"

enum { SLOTS = 4096, MAX_TEXT = 16 * LEAT_URI, MAX_PARENT_TEXT = 1 << 20 };

/* ---- names ---- */

bool
leat_is_plain_name(const char *name, size_t len)
{
	const char *end = name + len;

	if (memchr(name, '\0', len))
		return false;
	for (;; name++) {
		const char *slash = memchr(name, '/', (size_t)(end - name));
		size_t part = (size_t)((slash ? slash : end) - name);

		if (part == 0 || (part <= 2 && memcmp(name, "..", part) == 0))
			return false;
		if (!slash)
			return true;
		name = slash;
	}
}

/* Number of dots that a component consists of, encoded or not; 0: it has other characters. */
static size_t
count_dots(const char *part, size_t len, bool is_uri)
{
	size_t dots = 0;

	for (const char *end = part + len; part < end; dots++) {
		if (*part == '.')
			part++;
		else if (is_uri && end - part >= 3 && (memcmp(part, "%2e", 3) == 0 || memcmp(part, "%2E", 3) == 0))
			part += 3;
		else
			return 0;
	}
	return dots;
}

/* Removes "." and "..", and empty components of paths, in place. `text` is an absolute path or a URI. */
static void
normalize(char *text)
{
	bool is_uri = leat_is_uri(text, strlen(text));
	char *begin = is_uri ? strstr(text, "://") + 3 : text, *to = begin;
	size_t depth = 0;

	for (const char *from = begin; *from;) {
		size_t len = strcspn(from, "/"), dots = count_dots(from, len, is_uri);

		if (dots == 2) {
			while (to > begin && *--to != '/')
				;
			depth -= depth > 0;
		} else if (dots != 1 && (len || is_uri)) {
			if (depth++ || !is_uri)
				*to++ = '/';
			memmove(to, from, len);
			to += len;
		}
		from += len + (from[len] == '/');
	}
	if (!depth && !is_uri)
		*to++ = '/';
	*to = '\0';
}

/* Length of the folder's part of a name, without a slash at its end, except that of "/". */
static size_t
parent_length(const char *name, size_t len)
{
	const char *slash = memrchr(name, '/', len);

	if (!slash)
		return 0;
	if (slash == name)
		return 1;
	return slash[-1] == '/' && leat_is_uri(name, len) ? len : (size_t)(slash - name); /* scheme://host */
}

/* ---- folders ---- */

static bool
is_below(const struct leat_bound_folder *folder, const struct leat_store *store, const char *real)
{
	size_t len = folder->real ? strlen(folder->real) : 0;

	if (!len || store != folder->store || strncmp(real, folder->real, len) != 0)
		return false;
	return folder->real[len - 1] == '/' || real[len] == '/' || !real[len];
}

static bool
is_allowed(const struct leat_confine *confine, const struct leat_store *store, const char *real)
{
	return is_below(&confine->own, store, real) || is_below(&confine->root, store, real);
}

/* The absolute name without links; if there is no such object, the one it would have. Takes `name`. */
static enum leat_status
make_real(struct leat_store *store, char *name, char **real, struct leat_mem *mem, struct leat_err *err)
{
	*real = name && store->kind->absolute ? store->kind->absolute(store, name) : NULL;
	if (*real)
		leat_free(mem, name);
	else if (!name || (store->kind->absolute && leat_what_is(store, name) != LEAT_IS_NOTHING)) {
		leat_free(mem, name);
		return leat_fail_mem(err, mem, LEAT_URI, "the name of a folder");
	} else {
		normalize(name);
		*real = name;
	}
	return LEAT_OK;
}

static enum leat_status
open_folder(struct leat_bound_folder *folder, struct leat_store *store, const char *name, struct leat_mem *mem,
            struct leat_err *err)
{
	const struct leat_store_kind *kind = store->kind;

	folder->store = store;
	folder->real = kind->absolute ? kind->absolute(store, name) : leat_strdup(mem, name);
	if (folder->real)
		return LEAT_OK;
	if (leat_what_is(store, name) == LEAT_IS_NOTHING)
		return leat_fail(err, LEAT_IO, "there is no folder '%s'", name);
	return leat_fail_mem(err, mem, strlen(name) + 1, "the name of a folder");
}

static enum leat_status
open_root(struct leat_confine *confine, const char *root, struct leat_err *err)
{
	struct leat_store *store;
	char *name;
	enum leat_status status = leat_stores_find(confine->stores, root, &store, &name, err);

	if (status == LEAT_OK) {
		status = open_folder(&confine->root, store, name, confine->mem, err);
		leat_free(store->mem, name);
	}
	if (status != LEAT_OK)
		leat_err_in(err, "root");
	return status;
}

static void
free_outside(const struct leat_confine *confine, struct leat_outside *outside)
{
	leat_free(confine->mem, outside->name);
	leat_free(confine->mem, outside->target);
	leat_free(confine->mem, outside->common);
	*outside = (struct leat_outside){0};
}

static void
forget_parents(struct leat_confine *confine)
{
	leat_free(confine->mem, confine->parent);
	leat_str_free(&confine->parent_text);
	confine->parent = NULL;
	confine->parents = 0;
}

enum leat_status
leat_confine_open(struct leat_confine *confine, struct leat_stores *stores, struct leat_store *store,
                  const char *folder, const char *root, struct leat_mem *mem, struct leat_err *err)
{
	enum leat_status status;

	*confine = (struct leat_confine){.mem = mem, .stores = stores, .folder = folder, .data = folder};
	/* A secret: names in a list must not be able to collide on purpose. */
	confine->seed = leat_mix64((uintptr_t)confine ^ leat_now());
	leat_str_init(&confine->parent_text, mem, MAX_PARENT_TEXT);
	status = open_folder(&confine->own, store, folder, mem, err);
	if (status == LEAT_OK && *root)
		status = open_root(confine, root, err);
	if (status != LEAT_OK)
		leat_confine_close(confine);
	return status;
}

void
leat_confine_close(struct leat_confine *confine)
{
	if (!confine->mem)
		return;
	leat_free(confine->mem, confine->own.real);
	leat_free(confine->mem, confine->root.real);
	free_outside(confine, &confine->outside);
	forget_parents(confine);
	*confine = (struct leat_confine){0};
}

/* ---- what is outside ---- */

/* Shortens `common` to a folder that has `real`, too. Folders of different hosts have none in common. */
static void
make_common(char *common, const char *real)
{
	size_t least = leat_is_uri(common, strlen(common)) ? (size_t)(strstr(common, "://") - common) + 3 : 0;
	size_t same = 0, end = 0;

	for (; common[same] && common[same] == real[same]; same++)
		if (common[same] == '/')
			end = same ? same : 1;
	if ((!common[same] || common[same] == '/') && (!real[same] || real[same] == '/'))
		end = same;
	if (end > least)
		common[end] = '\0';
}

/* `name` leads to `target`, which is or is in the folder `real`. */
static enum leat_status
add_outside(const struct leat_confine *confine, struct leat_outside *outside, const char *name, const char *target,
            const char *real, struct leat_err *err)
{
	bool first = !outside->name || (!outside->line && strcmp(name, outside->name) < 0);

	if (outside->common)
		make_common(outside->common, real);
	else
		outside->common = leat_strdup(confine->mem, real);
	if (first) {
		leat_free(confine->mem, outside->name);
		leat_free(confine->mem, outside->target);
		outside->name = leat_strdup(confine->mem, name);
		outside->target = leat_strdup(confine->mem, target);
	}
	return outside->name && outside->target && outside->common
	               ? LEAT_OK
	               : leat_fail_mem(err, confine->mem, LEAT_URI, "the name of a file");
}

/* Says what to add so that the files may be read. */
static void
print_remedy(const struct leat_confine *confine, const char *root, struct leat_str *out)
{
	leat_str_init(out, confine->mem, MAX_TEXT);
	if (confine->source) {
		leat_str_addf(out, "%s(", confine->source);
		leat_str_add_quoted(out, confine->data);
		leat_str_add(out, ", root=");
		leat_str_add_quoted(out, root);
		leat_str_add(out, ")");
	} else {
		leat_str_add(out, "--root ");
		leat_str_add_quoted(out, root);
	}
}

static enum leat_status
fail_outside(const struct leat_confine *confine, struct leat_outside *outside, struct leat_err *err)
{
	const char *root = confine->root.real;
	enum leat_status status;
	struct leat_str remedy;

	if (root)
		make_common(outside->common, root);
	print_remedy(confine, outside->common, &remedy);
	status = leat_fail(err, LEAT_INVALID, "'%s' is %s '%s', outside '%s%s%s'; if it may be read, use %s",
	                   outside->name, outside->line ? "in" : "a link to", outside->target, confine->own.real,
	                   root ? "' and '" : "", root ? root : "", remedy.failed ? "root=" : leat_str_text(&remedy));
	if (outside->line)
		leat_err_in(err, "line %llu", (unsigned long long)outside->line);
	leat_str_free(&remedy);
	return status;
}

/* ---- rows of a list ---- */

static uint64_t
hash(const struct leat_confine *confine, const char *name, size_t len)
{
	uint64_t h = confine->seed ^ len, last = 0;

	for (; len >= 8; name += 8, len -= 8)
		h = leat_mix64(h ^ leat_load64(name));
	memcpy(&last, name, len);
	return leat_mix64(h ^ last);
}

/* The parent's slot, or the free one for it. */
static struct leat_parent *
find_slot(const struct leat_confine *confine, const char *name, size_t len)
{
	const char *text = leat_str_text(&confine->parent_text);
	size_t i = (size_t)hash(confine, name, len) % SLOTS;

	while (confine->parent[i].used &&
	       (confine->parent[i].len != len || memcmp(text + confine->parent[i].at, name, len) != 0))
		i = (i + 1) % SLOTS;
	return &confine->parent[i];
}

/* Makes room for one more parent, by forgetting all others if need be. */
static enum leat_status
make_slot(struct leat_confine *confine, size_t len, struct leat_err *err)
{
	if (confine->parents == SLOTS / 2 || confine->parent_text.len + len >= MAX_PARENT_TEXT) {
		forget_parents(confine);
		leat_str_init(&confine->parent_text, confine->mem, MAX_PARENT_TEXT);
	}
	if (!confine->parent)
		confine->parent = leat_alloc_array(confine->mem, SLOTS, sizeof(*confine->parent));
	return confine->parent
	               ? LEAT_OK
	               : leat_fail_mem(err, confine->mem, SLOTS * sizeof(*confine->parent), "the folders of a list");
}

static enum leat_status
remember_parent(struct leat_confine *confine, const char *name, size_t len, struct leat_err *err)
{
	size_t at = confine->parent_text.len;

	leat_str_addn(&confine->parent_text, name, len);
	if (confine->parent_text.failed)
		return leat_fail_mem(err, confine->mem, len, "the folders of a list");
	*find_slot(confine, name, len) = (struct leat_parent){at, len, true};
	confine->parents++;
	return LEAT_OK;
}

/* The folder that a name is in. `name` is a result of `resolve`, or relative. */
static enum leat_status
find_parent(const struct leat_confine *confine, struct leat_store *store, const char *name, size_t len, char **real,
            struct leat_err *err)
{
	int parent = (int)parent_length(name, len);

	if (parent && (name[0] == '/' || leat_is_uri(name, len)))
		return make_real(store, leat_strndup(confine->mem, name, (size_t)parent), real, confine->mem, err);
	return make_real(store, leat_asprintf(confine->mem, "%s/%.*s", confine->own.real, parent, name), real,
	                 confine->mem, err);
}

/* Checks a resolved name. Parents that were checked are not looked at again. */
static enum leat_status
check_name(struct leat_confine *confine, struct leat_store *store, const char *name, size_t len,
           struct leat_outside *outside, struct leat_err *err)
{
	size_t parent = parent_length(name, len);
	enum leat_status status = make_slot(confine, parent, err);
	char *real = NULL;

	if (status != LEAT_OK || find_slot(confine, name, parent)->used)
		return status;
	status = find_parent(confine, store, name, len, &real, err);
	if (status != LEAT_OK)
		return status;
	if (!is_allowed(confine, store, real))
		status = add_outside(confine, outside, name, real, real, err);
	leat_free(confine->mem, real);
	return status == LEAT_OK ? remember_parent(confine, name, parent, err) : status;
}

/* The store of a row, and its resolved name. *resolved: NULL if it is not a URI. */
static enum leat_status
find_store(const struct leat_confine *confine, const char *name, struct leat_store **store, char **resolved,
           struct leat_err *err)
{
	*store = confine->own.store;
	*resolved = NULL;
	if (leat_is_uri(name, strlen(name)))
		return leat_stores_find(confine->stores, name, store, resolved, err);
	if (name[0] == '/' && !(*store)->kind->absolute)
		return leat_fail(err, LEAT_DATA, "'%s' is not a name in '%s'; write its whole URI", name,
		                 confine->folder);
	return LEAT_OK;
}

/* All files of a list are in one store. */
static enum leat_status
take_store(struct leat_confine *confine, struct leat_store *store, const char *name, struct leat_err *err)
{
	if (confine->files && confine->files != store)
		return leat_fail(err, LEAT_DATA, "'%s' is in another store than the files before it; split the list",
		                 name);
	confine->files = store;
	return LEAT_OK;
}

static enum leat_status
check_row(struct leat_confine *confine, const char *name, struct leat_outside *outside, struct leat_err *err)
{
	struct leat_store *store;
	char *resolved;
	enum leat_status status = find_store(confine, name, &store, &resolved, err);

	if (status == LEAT_OK)
		status = take_store(confine, store, name, err);
	if (status == LEAT_OK && resolved) {
		/* Cells are ours to modify. */
		if (strlen(resolved) <= strlen(name))
			strcpy((char *)name, resolved);
		else
			status = leat_fail(err, LEAT_DATA, "write '%s' as '%s'", name, resolved);
		confine->has_uris |= leat_is_uri(name, strlen(name));
	}
	if (resolved)
		leat_free(store->mem, resolved);
	return status == LEAT_OK ? check_name(confine, store, name, strlen(name), outside, err) : status;
}

void
leat_confine_begin(struct leat_confine *confine)
{
	confine->files = NULL;
	confine->has_uris = false;
}

enum leat_status
leat_confine_rows(struct leat_confine *confine, const char *const *names, const uint64_t *line, size_t count,
                  struct leat_err *err)
{
	struct leat_outside *outside = &confine->outside;
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < count && status == LEAT_OK; i++) {
		if (!outside->name)
			outside->line = line[i];
		status = check_row(confine, names[i], outside, err);
		if (status != LEAT_OK)
			leat_err_in(err, "line %llu", (unsigned long long)line[i]);
	}
	return status;
}

enum leat_status
leat_confine_end(struct leat_confine *confine, struct leat_err *err)
{
	enum leat_status status = confine->outside.name ? fail_outside(confine, &confine->outside, err) : LEAT_OK;

	free_outside(confine, &confine->outside);
	forget_parents(confine);
	return status;
}

/* Whether a name could be a result of leat_confine_rows. */
static bool
accepts(struct leat_confine *confine, const char *name, size_t len)
{
	char *text = memchr(name, '\0', len) ? NULL : leat_strndup(confine->mem, name, len), *resolved = NULL;
	struct leat_outside outside = {0};
	struct leat_store *store;
	bool good = text && find_store(confine, text, &store, &resolved, NULL) == LEAT_OK &&
	            take_store(confine, store, text, NULL) == LEAT_OK && (!resolved || strcmp(resolved, text) == 0) &&
	            check_name(confine, store, name, len, &outside, NULL) == LEAT_OK && !outside.name;

	confine->has_uris |= resolved != NULL;
	if (resolved)
		leat_free(store->mem, resolved);
	free_outside(confine, &outside);
	leat_free(confine->mem, text);
	return good;
}

/* Whether another absolute path in the same folder was checked. Lists of absolute paths have few folders. */
static bool
has_checked_parent(const struct leat_confine *confine, const char *name, size_t len)
{
	return len && name[0] == '/' && confine->parents && find_slot(confine, name, parent_length(name, len))->used;
}

bool
leat_confine_accepts(struct leat_confine *confine, const char *names, const uint64_t *name_at, size_t count)
{
	bool good = true;

	leat_confine_begin(confine);
	for (size_t i = 0; i < count && good; i++) {
		const char *name = names + name_at[i];
		size_t len = (size_t)(name_at[i + 1] - name_at[i]);

		if (has_checked_parent(confine, name, len))
			continue;
		if (leat_is_plain_name(name, len))
			good = take_store(confine, confine->own.store, "", NULL) == LEAT_OK;
		else
			good = accepts(confine, name, len);
	}
	forget_parents(confine);
	return good;
}

/* ---- links ---- */

enum leat_status
leat_confine_link(const struct leat_confine *confine, const char *uri, struct leat_outside *outside,
                  struct leat_err *err)
{
	struct leat_store *store = confine->files ? confine->files : confine->own.store;
	char *target = store->kind->absolute ? store->kind->absolute(store, uri) : NULL, *folder = NULL;
	enum leat_status status = LEAT_OK;

	if (!target && store->kind->absolute && leat_what_is(store, uri) != LEAT_IS_NOTHING)
		return leat_fail_mem(err, confine->mem, LEAT_URI, "the target of a link");
	if (target && !is_allowed(confine, store, target)) {
		folder = leat_what_is(store, target) == LEAT_IS_FOLDER ? leat_strdup(confine->mem, target)
		                                                       : leat_folder_of(target, confine->mem);
		status = folder ? add_outside(confine, outside, uri, target, folder, err)
		                : leat_fail_mem(err, confine->mem, strlen(target) + 1, "the target of a link");
	}
	leat_free(confine->mem, folder);
	leat_free(store->mem, target);
	return status;
}

enum leat_status
leat_confine_end_links(const struct leat_confine *confine, struct leat_outside *outside, struct leat_err *err)
{
	enum leat_status status = outside->name ? fail_outside(confine, outside, err) : LEAT_OK;

	free_outside(confine, outside);
	return status;
}
