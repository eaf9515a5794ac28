/* project_remote.c - remote sources in leat.yaml: their names, and how they are reached */
#include <stdio.h>
#include <string.h>

#include "step/project_read.h"
#include "store/url.h"

/* ---- names ---- */

static bool
begins(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

static const struct leat_store_kind *
kind_of(const char *uri)
{
	size_t len = strcspn(uri, ":");

	for (size_t i = 0; leat_store_kinds[i]; i++)
		if (strlen(leat_store_kinds[i]->scheme) == len && !strncmp(leat_store_kinds[i]->scheme, uri, len))
			return leat_store_kinds[i];
	return NULL;
}

const char *
leat_remote_fault(const char *pattern, char text[200])
{
	bool is_web = begins(pattern, "http://") || begins(pattern, "https://");
	struct leat_url url;

	if (!kind_of(pattern)) {
		snprintf(text, 200, "is in no store that Leat knows: '%.*s' is not s3, https, http or file",
		         (int)(strcspn(pattern, ":") < 40 ? strcspn(pattern, ":") : 40), pattern);
		return text;
	}
	if (strstr(pattern, "**"))
		return "has '**', which only local files have; name the folders, or use several sources";
	if (!is_web)
		return NULL;
	if (strpbrk(pattern, "?#"))
		return "is a URL with a query, which may be secret and may expire; use s3:// with credentials, or a "
		       "URL "
		       "without it";
	if (strpbrk(pattern, "*[\\"))
		return "is a pattern, but web servers cannot list files; name each one";
	return strchr(pattern, '{') ? NULL : leat_url_parse(pattern, &url);
}

enum leat_status
leat_local_path(struct leat_reading *r, const struct leat_yaml *node, const char **path)
{
	struct leat_stores stores;
	struct leat_store *store;
	struct leat_err why;
	char *resolved = NULL;
	enum leat_status status = LEAT_OK;

	*path = node->text;
	if (!begins(node->text, "file:"))
		return LEAT_OK;
	leat_err_clear(&why);
	leat_stores_init(&stores, r->mem);
	if (leat_stores_find(&stores, node->text, &store, &resolved, &why) != LEAT_OK)
		status = leat_yaml_fail(&r->file, node, "%s", why.text);
	else if (!(*path = leat_text_keep(r->text, resolved, strlen(resolved))))
		status = r->err->status;
	leat_free(r->mem, resolved);
	leat_stores_close(&stores);
	return status;
}

/* ---- storage ---- */

static const struct leat_setting *
setting_of(const char *name)
{
	for (const struct leat_setting *s = leat_settings; s->opt.name; s++)
		if (!strcmp(s->opt.name, name))
			return s;
	return NULL;
}

static enum leat_status
read_setting(struct leat_reading *r, const struct leat_yaml *key)
{
	const struct leat_setting *setting = setting_of(key->text);
	struct leat_err why;

	leat_err_clear(&why);
	if (key->value->kind != LEAT_YAML_TEXT)
		return leat_yaml_fail(&r->file, key->value, "'%s' of 'storage' must be a text", key->text);
	if (begins(key->text, "disk_cache"))
		return leat_yaml_fail(&r->file, key,
		                      "'%s' is for feeds; copies of remote sources are in .leat, and 'leat gc' "
		                      "limits their size",
		                      key->text);
	if (setting && setting->is_path && *key->value->text != '/' && *key->value->text != '~')
		return leat_yaml_fail(&r->file, key->value, "'%s' of 'storage' must begin with / or ~", key->text);
	if (leat_storage_put(&r->storage, key->text, key->value->text, NULL, r->mem, &why) == LEAT_OK)
		return LEAT_OK;
	return why.status == LEAT_NOMEM ? leat_fail_as(r->err, &why)
	                                : leat_yaml_fail(&r->file, setting ? key->value : key, "%s", why.text);
}

enum leat_status
leat_storage_read(struct leat_reading *r, const struct leat_yaml *map)
{
	enum leat_status status = LEAT_OK;

	if (map->value->kind != LEAT_YAML_MAP)
		return LEAT_OK; /* refused with the other keys of the file */
	for (const struct leat_yaml *k = map->value->first; k && status == LEAT_OK; k = k->next)
		status = read_setting(r, k);
	return status;
}

enum leat_status
leat_remote_need(struct leat_reading *r)
{
	char *memory = NULL;
	enum leat_status status;

	if (r->project->staging)
		return LEAT_OK;
	if (r->files && !(memory = leat_asprintf(r->mem, "%s/.leat/remote", r->project->folder)))
		return leat_fail_mem(r->err, r->mem, strlen(r->project->folder), "a path");
	status = leat_staging_open(&r->project->staging, r->mem, &r->storage, memory, r->looks, r->err);
	leat_free(r->mem, memory);
	return status;
}
