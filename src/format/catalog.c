/* catalog.c - see catalog.h */
#include "format/catalog.h"

#include <string.h>

#include "base/hash.h"
#include "base/array.h"

enum { MAX_JSON = 64 * 1024 * 1024 };

void
leat_catalog_init(struct leat_catalog *folder, struct leat_stores *stores, struct leat_mem *mem)
{
	*folder = (struct leat_catalog){.mem = mem, .stores = stores};
}

void
leat_catalog_free(struct leat_catalog *folder)
{
	for (size_t i = 0; i < folder->paths.count; i++)
		leat_free(folder->mem, (char *)folder->paths.value[i]);
	leat_free(folder->mem, folder->paths.value);
	leat_free(folder->mem, folder->base);
	*folder = (struct leat_catalog){0};
}

static enum leat_status
parse(struct leat_files *files, char *text, json_t **root, struct leat_err *err)
{
	const struct leat_object *file = leat_files_at(files, 0);
	struct iovec iov = {.iov_base = text, .iov_len = (size_t)file->size};
	json_error_t where;
	size_t got;
	enum leat_status status = leat_files_read(files, 0, 0, &iov, 1, 0, &got, err);

	if (status != LEAT_OK)
		return status;
	*root = json_loadb(text, got, JSON_REJECT_DUPLICATES, &where);
	if (*root)
		return LEAT_OK;
	if (json_error_code(&where) == json_error_out_of_memory)
		return leat_fail(err, LEAT_NOMEM, "no memory to read '%s'", file->uri);
	return leat_fail(err, LEAT_DATA, "'%s' is not valid JSON: line %d: %s", file->uri, where.line, where.text);
}

static enum leat_status
load(struct leat_files *files, struct leat_mem *mem, json_t **root, struct leat_err *err)
{
	const struct leat_object *file = leat_files_at(files, 0);
	enum leat_status status;
	char *text;

	if (file->size > MAX_JSON)
		return leat_fail(err, LEAT_DATA, "'%s' has %llu bytes, too many for a file that describes data",
		                 file->uri, (unsigned long long)file->size);
	text = leat_alloc(mem, (size_t)file->size);
	if (!text)
		return leat_fail_mem(err, mem, (size_t)file->size, "a JSON file");
	status = parse(files, text, root, err);
	leat_free(mem, text);
	return status;
}

/* Sets the base to the folder of an opened file, whose path is no longer a pattern or URI. */
static enum leat_status
take_base(struct leat_catalog *folder, const char *path, struct leat_err *err)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) + 1 : 0;

	folder->base = leat_strndup(folder->mem, path, len);
	return folder->base ? LEAT_OK : leat_fail_mem(err, folder->mem, len + 1, "the name of a folder");
}

enum leat_status
leat_catalog_json(struct leat_catalog *folder, const char *path, const char *name, json_t **root, struct leat_err *err)
{
	size_t len = strlen(path);
	const char *slash = len && path[len - 1] != '/' ? "/" : "";
	char *full = folder->base ? leat_asprintf(folder->mem, "%s%s", folder->base, name)
	                          : leat_asprintf(folder->mem, "%s%s%s", path, slash, name);
	struct leat_files *files = NULL;
	enum leat_status status;

	*root = NULL;
	if (!full)
		return leat_fail_mem(err, folder->mem, len + strlen(name) + 2, "the name of a file");
	status = leat_files_open(&files, folder->stores, (const char *const *)&full, 1, folder->mem, err);
	leat_free(folder->mem, full);
	if (status != LEAT_OK)
		return status;
	folder->token = leat_mix64(folder->token ^ leat_object_token(leat_files_at(files, 0)));
	if (!folder->base)
		status = take_base(folder, leat_files_at(files, 0)->uri, err);
	if (status == LEAT_OK)
		status = load(files, folder->mem, root, err);
	leat_files_close(files);
	return status;
}

/* Accepts only path components that are not empty, "." or "..", without pattern characters. */
static bool
is_safe(const char *name)
{
	if (strpbrk(name, "*?[\\") || strstr(name, "://"))
		return false;
	for (;; name++) {
		size_t len = strcspn(name, "/");

		if (len == 0 || (len <= 2 && memcmp(name, "..", len) == 0))
			return false;
		name += len;
		if (!*name)
			return true;
	}
}

enum leat_status
leat_catalog_add(struct leat_catalog *folder, const char *name, struct leat_err *err)
{
	enum leat_status status;
	char shown[200], *full;

	if (!is_safe(name))
		return leat_fail(err, LEAT_DATA, "'%s' lists the file '%s', which is not a valid name in that folder",
		                 folder->base, leat_show(shown, sizeof(shown), name, strlen(name)));
	status = LEAT_GROW(folder->mem, folder->paths.value, folder->cap, folder->paths.count + 1, SIZE_MAX,
	                   "the names of files", err);
	if (status != LEAT_OK)
		return status;
	full = leat_asprintf(folder->mem, "%s%s", folder->base, name);
	if (!full)
		return leat_fail_mem(err, folder->mem, strlen(folder->base) + strlen(name) + 1, "the names of files");
	folder->paths.value[folder->paths.count++] = full;
	return LEAT_OK;
}

/* A path that does not exist is tried as a pattern, and the base may contain pattern characters: make sure that no
 * other files were opened. */
static bool
are_those(const struct leat_files *files, const struct leat_strings *paths)
{
	bool same = leat_files_count(files) == paths->count;

	for (size_t i = 0; same && i < paths->count; i++)
		same = strcmp(leat_files_at(files, i)->uri, paths->value[i]) == 0;
	return same;
}

enum leat_status
leat_catalog_open(const struct leat_catalog *folder, struct leat_files **files, struct leat_err *err)
{
	enum leat_status status =
		leat_files_open(files, folder->stores, folder->paths.value, folder->paths.count, folder->mem, err);

	if (status == LEAT_OK && !are_those(*files, &folder->paths)) {
		leat_files_close(*files);
		*files = NULL;
		status = leat_fail(err, LEAT_IO, "some files listed for '%s' are missing", folder->base);
	}
	return status;
}

bool
leat_json_count(const json_t *value, uint64_t most, uint64_t *count)
{
	const char *text = json_string_value(value);

	*count = 0;
	if (json_is_integer(value)) {
		*count = (uint64_t)json_integer_value(value);
		return json_integer_value(value) >= 0 && *count <= most;
	}
	if (!text || !*text)
		return false;
	for (; *text; text++) {
		uint64_t digit = (uint64_t)(*text - '0');

		if (digit > 9 || *count > UINT64_MAX / 10 - 1)
			return false;
		*count = *count * 10 + digit;
	}
	return *count <= most;
}

const char *
leat_json_text(const json_t *object, const char *key, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : otherwise;
}
