/* record.c - write and read the manifests of a store
 *
 * The file comes first, the index second: what is only in the file is found again by a rebuild, or by the next action
 * with the same key. If the index has no room for it, the next opening for writing rebuilds it. */
#include <unistd.h>

#include "cas/inside.h"

enum leat_status
leat_cas_manifest(struct leat_cas *cas, const struct leat_digest *key, struct leat_manifest **manifest,
                  struct leat_err *err)
{
	char name[LEAT_CAS_NAME], *json;
	size_t len;
	enum leat_status status;

	*manifest = NULL;
	leat_cas_name("act", key, name);
	status = leat_cas_read_name(cas, name, LEAT_MANIFEST_MAX, &json, &len, err);
	if (status != LEAT_OK)
		return status == LEAT_LIMIT ? leat_fail(err, LEAT_DATA, "the manifest '%s' is too large", name)
		                            : status;
	status = leat_manifest_parse(json, len, cas->mem, manifest, err);
	leat_free(cas->mem, json);
	if (status == LEAT_OK && !leat_digest_equal(&(*manifest)->key, key)) {
		leat_manifest_free(*manifest, cas->mem);
		*manifest = NULL;
		status = leat_fail(err, LEAT_DATA, "it is the manifest of another action");
	}
	if (status != LEAT_OK)
		leat_err_in(err, "%s/%s", cas->folder, name);
	return status;
}

static enum leat_status
enter(struct leat_cas *cas, const struct leat_manifest *manifest, struct leat_err *err)
{
	enum leat_status status = leat_index_enter(cas, manifest, err);

	if (status != LEAT_OK)
		atomic_store(&cas->index_lags, true);
	return status;
}

/* There is a manifest with this key. Decides which of the two stays. */
static enum leat_status
settle(struct leat_cas *cas, const struct leat_manifest *manifest, const char *temp, const char *name,
       struct leat_content *other, struct leat_err *err)
{
	struct leat_manifest *old = NULL;
	bool keep;
	enum leat_status status = leat_cas_manifest(cas, &manifest->key, &old, NULL);

	if (status == LEAT_NOMEM)
		return leat_fail_mem(err, cas->mem, LEAT_CAS_NAME, "a manifest");
	keep = old && leat_content_equal(&old->output, &manifest->output);
	if (old && !keep) {
		*other = old->output;
		keep = leat_cas_has(cas, &old->output);
	}
	if (keep) {
		unlinkat(cas->folder_fd, temp, 0);
		status = enter(cas, old, err);
	} else {
		status = leat_cas_place(cas, cas->folder_fd, temp, name, true, err);
		if (status == LEAT_OK)
			status = enter(cas, manifest, err);
	}
	leat_manifest_free(old, cas->mem);
	return status;
}

static enum leat_status
check(const struct leat_cas *cas, const struct leat_manifest *manifest, struct leat_err *err)
{
	struct leat_digest key;
	enum leat_status status = leat_cas_need_run(cas, err);

	if (status == LEAT_OK)
		status = leat_key_of(manifest->field, manifest->fields, &key, err);
	if (status == LEAT_OK && (!leat_digest_equal(&key, &manifest->key) || manifest->learned > manifest->fields ||
	                          manifest->output.kind == LEAT_CONTENT_NONE || manifest->step[0] == '\0' ||
	                          manifest->number > LEAT_NUMBER_MAX))
		status = leat_fail(err, LEAT_INVALID, "the manifest of '%s' is not complete", manifest->step);
	return status;
}

enum leat_status
leat_cas_record(struct leat_cas *cas, const struct leat_manifest *manifest, struct leat_content *other,
                struct leat_err *err)
{
	char name[LEAT_CAS_NAME], temp[LEAT_CAS_NAME];
	struct leat_str json;
	enum leat_status status = check(cas, manifest, err);

	*other = (struct leat_content){.kind = LEAT_CONTENT_NONE};
	if (status != LEAT_OK)
		return status;
	leat_str_init(&json, cas->mem, LEAT_MANIFEST_MAX);
	leat_manifest_write(&json, manifest);
	status = json.failed ? leat_fail_mem(err, cas->mem, json.len, "a manifest")
	                     : leat_cas_write_temp(cas, json.text, json.len, temp, err);
	leat_str_free(&json);
	if (status != LEAT_OK)
		return status;
	leat_cas_name("act", &manifest->key, name);
	status = leat_cas_place(cas, cas->folder_fd, temp, name, false, err);
	if (status == LEAT_AGAIN)
		return settle(cas, manifest, temp, name, other, err);
	return status == LEAT_OK ? enter(cas, manifest, err) : status;
}
