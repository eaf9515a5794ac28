/* code_fields.c - growing lists of fields */
#include <string.h>

#include "base/array.h"
#include "step/code_inside.h"

enum leat_status
leat_key_fields_add(struct leat_key_fields *fields, const char *name, const char *value, struct leat_err *err)
{
	enum leat_status status = LEAT_GROW(fields->mem, fields->field, fields->cap, fields->count + 1, SIZE_MAX,
	                                    "the fields of a key", err);
	char *name_copy, *value_copy;

	if (status != LEAT_OK)
		return status;
	name_copy = leat_strdup(fields->mem, name);
	value_copy = leat_strdup(fields->mem, value);
	if (!name_copy || !value_copy) {
		leat_free(fields->mem, name_copy);
		leat_free(fields->mem, value_copy);
		return leat_fail_mem(err, fields->mem, strlen(value), "the fields of a key");
	}
	fields->field[fields->count++] = (struct leat_key_field){name_copy, value_copy};
	return LEAT_OK;
}

enum leat_status
leat_key_fields_add_content(struct leat_key_fields *fields, const char *prefix, const char *path,
                            const struct leat_content *content, struct leat_err *err)
{
	char value[LEAT_CONTENT_TEXT];
	char *name = leat_asprintf(fields->mem, "%s%s", prefix, path);
	enum leat_status status;

	if (!name)
		return leat_fail_mem(err, fields->mem, strlen(path), "the fields of a key");
	status = leat_key_fields_add(fields, name, leat_content_text(content, value), err);
	leat_free(fields->mem, name);
	return status;
}

void
leat_key_fields_clear(struct leat_key_fields *fields)
{
	for (size_t i = 0; i < fields->count; i++) {
		leat_free(fields->mem, (char *)fields->field[i].name);
		leat_free(fields->mem, (char *)fields->field[i].value);
	}
	leat_free(fields->mem, fields->field);
	*fields = (struct leat_key_fields){.mem = fields->mem};
}
