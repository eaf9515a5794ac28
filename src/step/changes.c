/* changes.c - compare the fields of an action with those of the last one */
#include <string.h>

#include "base/array.h"
#include "step/action.h"

struct changes {
	struct leat_mem *mem;
	struct leat_change *change;
	size_t count, cap;
};

static const char *
value_of(const struct leat_key_field *field, size_t fields, const char *name)
{
	for (size_t i = 0; i < fields; i++)
		if (strcmp(field[i].name, name) == 0)
			return field[i].value;
	return NULL;
}

static enum leat_status
add(struct changes *c, const char *field, const char *was, const char *now, struct leat_err *err)
{
	struct leat_change change;
	enum leat_status status =
		LEAT_GROW(c->mem, c->change, c->cap, c->count + 1, SIZE_MAX, "the list of changes", err);

	if (status != LEAT_OK)
		return status;
	change.field = leat_strdup(c->mem, field);
	change.was = was ? leat_strdup(c->mem, was) : NULL;
	change.now = now ? leat_strdup(c->mem, now) : NULL;
	c->change[c->count++] = change;
	if (!change.field || (was && !change.was) || (now && !change.now))
		return leat_fail_mem(err, c->mem, strlen(field), "the list of changes");
	return LEAT_OK;
}

static bool
has_word(const char *words, const char *word, size_t len)
{
	while (words && *words) {
		size_t here = strcspn(words, " ");

		if (here == len && memcmp(words, word, len) == 0)
			return true;
		words += here + (words[here] == ' ');
	}
	return false;
}

/* One change for each name that is not absent any more. */
static enum leat_status
add_found(struct changes *c, const char *field, const char *was, const char *now, struct leat_err *err)
{
	const char *slash = field[strlen(field) - 1] == '/' ? "" : "/";
	enum leat_status status = LEAT_OK;

	while (*was && status == LEAT_OK) {
		size_t len = strcspn(was, " ");

		if (!has_word(now, was, len)) {
			char *name = leat_asprintf(c->mem, "%s%s%.*s", field, slash, (int)(len - (was[len - 1] == '/')),
			                           was);

			status = name ? add(c, name, "absent", "found first", err)
			              : leat_fail_mem(err, c->mem, len, "the list of changes");
			leat_free(c->mem, name);
		}
		was += len + (was[len] == ' ');
	}
	return status;
}

/* Fields that were there. */
static enum leat_status
compare_last(struct changes *c, const struct leat_key_fields *now, const struct leat_manifest *last,
             struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < last->fields && status == LEAT_OK; i++) {
		const struct leat_key_field *was = &last->field[i];
		const char *value = value_of(now->field, now->count, was->name);

		if (value && strcmp(value, was->value) == 0)
			continue;
		if (strncmp(was->name, "absent.", strlen("absent.")) == 0)
			status = add_found(c, was->name, was->value, value, err);
		else
			status = add(c, was->name, was->value, value, err);
	}
	return status;
}

enum leat_status
leat_action_changes(const struct leat_key_fields *now, const struct leat_manifest *last, struct leat_change **change,
                    size_t *changes, struct leat_mem *mem, struct leat_err *err)
{
	struct changes c = {.mem = mem};
	enum leat_status status = last ? compare_last(&c, now, last, err) : LEAT_OK;

	for (size_t i = 0; i < now->count && status == LEAT_OK; i++)
		if (!last || !value_of(last->field, last->fields, now->field[i].name))
			status = add(&c, now->field[i].name, NULL, now->field[i].value, err);
	if (status != LEAT_OK) {
		leat_changes_free(c.change, c.count, mem);
		c = (struct changes){0};
	}
	*change = c.change;
	*changes = c.count;
	return status;
}

void
leat_changes_free(struct leat_change *change, size_t changes, struct leat_mem *mem)
{
	for (size_t i = 0; i < changes; i++) {
		leat_free(mem, change[i].field);
		leat_free(mem, change[i].was);
		leat_free(mem, change[i].now);
	}
	leat_free(mem, change);
}
