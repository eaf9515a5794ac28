/* staging.c - what is on servers: lists of objects, asked for or remembered */
#include "step/staging.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "step/glob.h"
#include "step/project_read.h"
#include "step/staging_inside.h"

enum { MAX_FILES = 4000000, MAX_MEMORY = 1 << 30 };

static const char first_line[] = "leat remote 1\n";

bool
leat_is_remote(const char *text)
{
	return leat_is_uri(text, strlen(text)) && strncmp(text, "file:", 5) != 0;
}

/* ---- lists ---- */

static int
by_uri(const void *a, const void *b)
{
	return strcmp(((const struct leat_remote_file *)a)->uri, ((const struct leat_remote_file *)b)->uri);
}

static void
free_list(struct leat_staging *s, struct leat_remote_list *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->count; i++)
		leat_free(s->mem, list->file[i].uri);
	leat_free(s->mem, list->file);
	leat_free(s->mem, list->pattern);
	leat_free(s->mem, list);
}

static struct leat_remote_list *
make_list(struct leat_staging *s, const char *pattern, size_t len, struct leat_err *err)
{
	struct leat_remote_list *list = leat_alloc(s->mem, sizeof(*list));

	if (list)
		list->pattern = leat_strndup(s->mem, pattern, len);
	if (list && list->pattern)
		return list;
	leat_fail_mem(err, s->mem, sizeof(*list) + len, "a list of remote files");
	free_list(s, list);
	return NULL;
}

static enum leat_status
add_file(struct leat_staging *s, struct leat_remote_list *list, const char *uri, size_t len, uint64_t size,
         const struct leat_version *version, struct leat_err *err)
{
	char *copy = leat_strndup(s->mem, uri, len);
	enum leat_status status = copy ? LEAT_GROW(s->mem, list->file, list->cap, list->count + 1, MAX_FILES,
	                                           "a list of remote files", err)
	                               : leat_fail_mem(err, s->mem, len, "a list of remote files");

	if (status != LEAT_OK) {
		leat_free(s->mem, copy);
		return status;
	}
	list->file[list->count++] = (struct leat_remote_file){.uri = copy, .size = size, .version = *version};
	return LEAT_OK;
}

static void
sort_list(struct leat_staging *s, struct leat_remote_list *list)
{
	size_t kept = 0;

	if (list->count < 2)
		return;
	qsort(list->file, list->count, sizeof(*list->file), by_uri);
	for (size_t i = 1; i < list->count; i++)
		if (strcmp(list->file[kept].uri, list->file[i].uri))
			list->file[++kept] = list->file[i];
		else
			leat_free(s->mem, list->file[i].uri);
	list->count = kept + 1;
}

/* ---- asking ---- */

enum leat_status
leat_staging_look(struct leat_staging *s, const char *uri, struct leat_remote_file *file, struct leat_err *err)
{
	struct leat_object object;
	struct leat_store *store;
	char *resolved = NULL;
	enum leat_status status = leat_stores_find(&s->stores, uri, &store, &resolved, err);

	if (status == LEAT_OK)
		status = store->kind->look(store, resolved, &object, err);
	if (status == LEAT_OK) {
		file->size = object.size;
		file->version = object.version;
	}
	leat_free(s->mem, resolved);
	return status;
}

struct asking {
	struct leat_staging *s;
	struct leat_remote_list *list;
};

static enum leat_status
add_object(void *arg, const struct leat_object *object, struct leat_err *err)
{
	const struct asking *a = arg;
	char buf[LEAT_URI];
	const char *uri = leat_object_uri(object, buf);

	if (!uri)
		return leat_fail(err, LEAT_DATA, "the name of an object that matches '%s' is too long or has a NUL",
		                 a->list->pattern);
	return add_file(a->s, a->list, uri, strlen(uri), object->size, &object->version, err);
}

/* A pattern without alternatives. */
static enum leat_status
ask_pattern(void *arg, const char *pattern, struct leat_err *err)
{
	const struct asking *a = arg;
	struct leat_store *store;
	char *resolved = NULL;
	enum leat_status status = leat_stores_find(&a->s->stores, pattern, &store, &resolved, err);

	if (status == LEAT_OK)
		status = store->kind->list(store, resolved, add_object, arg, err);
	leat_free(a->s->mem, resolved);
	return status == LEAT_AGAIN ? LEAT_OK : status;
}

static enum leat_status
ask(struct leat_staging *s, struct leat_remote_list *list, bool exact, struct leat_err *err)
{
	struct asking asking = {s, list};
	struct leat_remote_file file = {0};
	enum leat_status status;

	if (exact) {
		status = leat_staging_look(s, list->pattern, &file, err);
		return status == LEAT_OK
		               ? add_file(s, list, list->pattern, strlen(list->pattern), file.size, &file.version, err)
		               : status;
	}
	status = leat_glob_expand(list->pattern, s->mem, &(struct leat_glob_reader){ask_pattern, &asking}, err);
	sort_list(s, list);
	if (status == LEAT_OK && !list->count)
		status = leat_fail(err, LEAT_DATA, "no object matches '%s'", list->pattern);
	return status;
}

/* ---- finding ---- */

/* With the lock. */
static struct leat_remote_list *
known_list(struct leat_staging *s, const char *pattern, bool is_new)
{
	for (struct leat_remote_list *list = s->list; list; list = list->next)
		if (list->is_new == is_new && !strcmp(list->pattern, pattern))
			return list;
	return NULL;
}

static struct leat_remote_list *
look_up(struct leat_staging *s, const char *pattern)
{
	struct leat_remote_list *list;

	pthread_mutex_lock(&s->lock);
	list = known_list(s, pattern, true);
	pthread_mutex_unlock(&s->lock);
	return list;
}

/* Somebody else may have asked at the same time: the first answer counts. */
static const struct leat_remote_list *
keep(struct leat_staging *s, struct leat_remote_list *list)
{
	struct leat_remote_list *first;

	pthread_mutex_lock(&s->lock);
	first = known_list(s, list->pattern, true);
	if (!first) {
		list->is_new = true;
		list->next = s->list;
		s->list = list;
	}
	pthread_mutex_unlock(&s->lock);
	if (first)
		free_list(s, list);
	return first ? first : list;
}

/* The server cannot be asked, so the last build's list counts, if there is one. */
static enum leat_status
look_back(struct leat_staging *s, const char *pattern, const struct leat_remote_list **list, const struct leat_err *why,
          struct leat_err *err)
{
	struct leat_remote_list *old;

	pthread_mutex_lock(&s->lock);
	*list = old = known_list(s, pattern, false);
	if (old)
		old->is_trusted = true;
	if (!*s->doubt)
		leat_show(s->doubt, sizeof(s->doubt), why->text, strlen(why->text));
	pthread_mutex_unlock(&s->lock);
	return old ? LEAT_OK : leat_fail(err, LEAT_DATA, "%s", why->text);
}

/* A server that did not answer once is not asked again: each time takes seconds. */
static bool
is_given_up(struct leat_staging *s, const char *pattern, const struct leat_remote_list **list)
{
	struct leat_remote_list *old = NULL;

	pthread_mutex_lock(&s->lock);
	if (s->looks == LEAT_LOOK_BACK || *s->doubt)
		old = known_list(s, pattern, false);
	if (old)
		old->is_trusted = true;
	pthread_mutex_unlock(&s->lock);
	*list = old;
	return old != NULL;
}

enum leat_status
leat_staging_list(struct leat_staging *s, const char *pattern, bool exact, const struct leat_remote_list **list,
                  struct leat_err *err)
{
	struct leat_remote_list *found;
	struct leat_err why;
	enum leat_status status;

	*list = look_up(s, pattern);
	if (*list || is_given_up(s, pattern, list))
		return LEAT_OK;
	leat_err_clear(&why);
	found = make_list(s, pattern, strlen(pattern), err);
	if (!found)
		return LEAT_NOMEM;
	status = ask(s, found, exact, &why);
	if (status == LEAT_OK) {
		*list = keep(s, found);
		return LEAT_OK;
	}
	free_list(s, found);
	if (status == LEAT_IO && s->looks == LEAT_LOOK_TRY)
		return look_back(s, pattern, list, &why, err);
	return leat_fail_as(err, &why);
}

enum leat_status
leat_staging_find(struct leat_staging *s, const char *uri, struct leat_remote_file **file, struct leat_err *err)
{
	const struct leat_remote_file wanted = {.uri = (char *)(uintptr_t)uri};
	const struct leat_remote_list *list;
	enum leat_status status;

	*file = NULL;
	pthread_mutex_lock(&s->lock);
	for (list = s->list; list && !*file; list = list->next)
		if (list->is_new || list->is_trusted)
			*file = bsearch(&wanted, list->file, list->count, sizeof(*list->file), by_uri);
	pthread_mutex_unlock(&s->lock);
	if (*file)
		return LEAT_OK;
	status = leat_staging_list(s, uri, true, &list, err);
	if (status == LEAT_OK)
		*file = &list->file[0];
	return status;
}

enum leat_status
leat_staging_object(struct leat_staging *s, const struct leat_remote_file *file, struct leat_object *object, char **uri,
                    struct leat_err *err)
{
	struct leat_store *store;
	enum leat_status status = leat_stores_find(&s->stores, file->uri, &store, uri, err);

	if (status == LEAT_OK)
		*object = (struct leat_object){.store = store,
		                               .uri = *uri,
		                               .uri_len = strlen(*uri),
		                               .name = *uri,
		                               .size = file->size,
		                               .version = file->version,
		                               .remedy = "build again"};
	return status;
}

/* ---- memory: "? PATTERN", then "SIZE VERSION URI" for each object ---- */

static void
add_version(struct leat_str *out, const struct leat_version *version)
{
	for (size_t i = 0; i < version->len; i++)
		leat_str_addf(out, "%02x", version->bytes[i]);
	leat_str_add(out, version->len ? " " : "- ");
}

static int
hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns what follows it; NULL: it is none. */
static const char *
read_version(const char *text, struct leat_version *version)
{
	*version = (struct leat_version){0};
	if (!strncmp(text, "- ", 2))
		return text + 2;
	for (; hex_digit(text[0]) >= 0 && hex_digit(text[1]) >= 0; text += 2) {
		if (version->len == LEAT_VERSION_BYTES)
			return NULL;
		version->bytes[version->len++] = (uint8_t)(hex_digit(text[0]) << 4 | hex_digit(text[1]));
	}
	return *text == ' ' && version->len ? text + 1 : NULL;
}

static bool
has_control(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ')
			return true;
	return false;
}

static void
print_list(const struct leat_remote_list *list, struct leat_str *out)
{
	bool fits = !has_control(list->pattern);

	for (size_t i = 0; i < list->count && fits; i++)
		fits = !has_control(list->file[i].uri);
	if (!fits) /* a key may hold line ends: then the server is asked each time */
		return;
	leat_str_addf(out, "? %s\n", list->pattern);
	for (size_t i = 0; i < list->count; i++) {
		leat_str_addf(out, "%llu ", (unsigned long long)list->file[i].size);
		add_version(out, &list->file[i].version);
		leat_str_addf(out, "%s\n", list->file[i].uri);
	}
}

/* False: the line is damaged. */
static bool
read_object(struct leat_staging *s, struct leat_remote_list *list, const char *line, size_t len)
{
	struct leat_version version;
	char *rest;
	unsigned long long size = strtoull(line, &rest, 10);
	const char *uri = *rest == ' ' && rest > line ? read_version(rest + 1, &version) : NULL;

	return uri && uri < line + len &&
	       add_file(s, list, uri, (size_t)(line + len - uri), size, &version, NULL) == LEAT_OK;
}

static bool
read_lists(struct leat_staging *s, const char *text, size_t len)
{
	struct leat_remote_list *list = NULL;

	if (strncmp(text, first_line, strlen(first_line)) != 0)
		return false;
	for (const char *line = text + strlen(first_line), *end; line < text + len; line = end + 1) {
		end = memchr(line, '\n', (size_t)(text + len - line));
		if (!end || memchr(line, '\0', (size_t)(end - line)))
			return false;
		if (*line != '?') {
			if (!list || !read_object(s, list, line, (size_t)(end - line)))
				return false;
			continue;
		}
		list = end - line > 2 ? make_list(s, line + 2, (size_t)(end - line - 2), NULL) : NULL;
		if (!list)
			return false;
		list->next = s->list;
		s->list = list;
	}
	return true;
}

static void
drop_lists(struct leat_staging *s)
{
	while (s->list) {
		struct leat_remote_list *list = s->list;

		s->list = list->next;
		free_list(s, list);
	}
}

/* What is damaged is as good as nothing: servers are asked instead. */
static bool
check_lists(struct leat_staging *s)
{
	for (struct leat_remote_list *list = s->list; list; list = list->next) {
		if (!list->count)
			return false;
		sort_list(s, list);
	}
	return true;
}

static void
load_memory(struct leat_staging *s)
{
	char *text = NULL;
	size_t len;

	if (s->memory && leat_project_load(s->mem, s->memory, MAX_MEMORY, &text, &len, NULL) == LEAT_OK &&
	    !(read_lists(s, text, len) && check_lists(s)))
		drop_lists(s);
	leat_free(s->mem, text);
}

static enum leat_status
save(struct leat_staging *s, const struct leat_str *text, struct leat_err *err)
{
	char *temp = leat_asprintf(s->mem, "%s.%ld", s->memory, (long)getpid());
	FILE *file = temp ? fopen(temp, "we") : NULL;
	enum leat_status status = LEAT_OK;

	if (!temp)
		return leat_fail_mem(err, s->mem, strlen(s->memory), "a path");
	if (!file || fwrite(leat_str_text(text), 1, text->len, file) != text->len)
		status = leat_fail_errno(err, errno, "cannot write '%s'", temp);
	if (file && fclose(file) != 0 && status == LEAT_OK)
		status = leat_fail_errno(err, errno, "cannot write '%s'", temp);
	if (status == LEAT_OK && rename(temp, s->memory) != 0)
		status = leat_fail_errno(err, errno, "cannot rename '%s'", temp);
	if (status != LEAT_OK)
		unlink(temp);
	leat_free(s->mem, temp);
	return status;
}

enum leat_status
leat_staging_remember(struct leat_staging *s, bool all, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	struct leat_str text;

	if (!s->memory)
		return LEAT_OK;
	leat_str_init(&text, s->mem, MAX_MEMORY);
	leat_str_add(&text, first_line);
	pthread_mutex_lock(&s->lock);
	for (const struct leat_remote_list *list = s->list; list; list = list->next)
		if (list->is_new || (!all && !known_list(s, list->pattern, true)))
			print_list(list, &text);
	pthread_mutex_unlock(&s->lock);
	if (!text.failed) /* else there are too many: servers are asked each time */
		status = save(s, &text, err);
	leat_str_free(&text);
	return status;
}

/* ---- open and close ---- */

enum leat_status
leat_staging_open(struct leat_staging **staging, struct leat_mem *mem, const struct leat_storage *storage,
                  const char *memory, enum leat_looks looks, struct leat_err *err)
{
	struct leat_staging *s = leat_alloc(mem, sizeof(*s));

	*staging = NULL;
	if (s)
		s->memory = memory ? leat_strdup(mem, memory) : NULL;
	if (!s || (memory && !s->memory)) {
		leat_free(mem, s);
		return leat_fail_mem(err, mem, sizeof(*s), "access to remote sources");
	}
	s->mem = mem;
	s->looks = looks;
	s->storage = *storage;
	leat_stores_init(&s->stores, mem);
	s->stores.storage = &s->storage;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	load_memory(s);
	*staging = s;
	return LEAT_OK;
}

void
leat_staging_close(struct leat_staging *s)
{
	if (!s)
		return;
	leat_staging_unwatch(s);
	drop_lists(s);
	leat_stores_close(&s->stores);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	leat_free(s->mem, s->memory);
	leat_free(s->mem, s);
}

const char *
leat_staging_doubt(const struct leat_staging *s)
{
	return s && *s->doubt ? s->doubt : NULL;
}
