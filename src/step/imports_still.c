/* imports_still.c - what learned fields would be now, and whether those of an earlier action still hold */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "step/imports_inside.h"

/* ---- values ---- */

/* Is there a module that Python would find? `name` ends with '/' if only a package would come first. */
static bool
is_found(const struct leat_code *code, const char *folder, const char *name, size_t len)
{
	bool is_package = len > 0 && name[len - 1] == '/';
	const char *slash = *folder ? "/" : "";
	char path[PATH_MAX];

	len -= is_package;
	if (snprintf(path, sizeof(path), "%s%s%.*s/__init__.py", folder, slash, (int)len, name) < PATH_MAX &&
	    leat_code_find(code, path))
		return true;
	if (is_package)
		return false;
	return snprintf(path, sizeof(path), "%s%s%.*s.py", folder, slash, (int)len, name) < PATH_MAX &&
	       leat_code_find(code, path);
}

/* The names that are still absent. */
static void
absent_now(const struct leat_code *code, const char *folder, const char *names, struct leat_str *value)
{
	while (*names) {
		size_t len = strcspn(names, " ");

		if (!is_found(code, folder, names, len))
			leat_str_addf(value, "%s%.*s", value->len > 0 ? " " : "", (int)len, names);
		names += len + (names[len] == ' ');
	}
}

/* A file of the code, or one that is elsewhere. Nothing is added if it cannot be read. */
static void
import_now(struct leat_code *code, const char *path, struct leat_str *value)
{
	const struct leat_code_file *file = leat_code_find(code, path);
	char text[LEAT_CONTENT_TEXT], full[PATH_MAX];
	struct leat_content content;

	if (file)
		leat_str_add(value, leat_content_text(&file->content, text));
	else if (snprintf(full, sizeof(full), "%s%s%s", *path == '/' ? "" : code->project->folder,
	                  *path == '/' ? "" : "/", path) < PATH_MAX &&
	         access(full, R_OK) == 0 && leat_cas_hash(code->cas, full, &content, NULL, NULL) == LEAT_OK)
		leat_str_add(value, leat_content_text(&content, text));
}

static const char *
after(const char *name, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(name, prefix, len) == 0 ? name + len : NULL;
}

static void
find_pythons(struct leat_code *code, const struct leat_key_field *field, size_t count, struct leat_python_set *set)
{
	for (size_t i = 0; i < count; i++) {
		const char *program = after(field[i].name, "python.");
		const struct leat_python *python = program ? leat_python_find(code, program) : NULL;

		if (python && set->count < sizeof(set->python) / sizeof(*set->python))
			set->python[set->count++] = python;
	}
}

static enum leat_status
value_now(struct leat_code *code, const struct leat_python_set *set, const struct leat_key_field *field,
          struct leat_str *value, struct leat_err *err)
{
	const char *name = field->name, *rest;
	const struct leat_python *python;

	if ((rest = after(name, "absent./")) != NULL)
		absent_now(code, rest, field->value, value);
	else if ((rest = after(name, "import.")) != NULL)
		import_now(code, rest, value);
	else if ((rest = after(name, "package.")) != NULL)
		return leat_package_value(code, set, rest, value, err);
	else if ((rest = after(name, "python.")) != NULL && (python = leat_python_find(code, rest)) != NULL)
		leat_str_add(value, python->version);
	return value->failed ? leat_fail_mem(err, code->mem, strlen(field->value), "a learned field") : LEAT_OK;
}

/* Marks the files of the code that fields import.PATH name, and what these name. */
static enum leat_status
mark_imported(struct leat_code *code, const struct leat_key_field *field, size_t count, bool *imported, bool *marked,
              struct leat_err *err)
{
	for (size_t i = 0; i < count; i++) {
		const char *path = after(field[i].name, "import.");
		const struct leat_code_file *file = path ? leat_code_find(code, path) : NULL;

		if (file)
			imported[file - code->file] = marked[file - code->file] = true;
	}
	return leat_code_mark_all(code, marked, err);
}

/* A new file that a pattern in an imported one names. */
static enum leat_status
add_new_files(struct leat_code *code, const struct leat_key_field *field, size_t count, struct leat_key_fields *now,
              struct leat_err *err)
{
	bool *imported = leat_alloc_array(code->mem, code->files + 1, sizeof(*imported));
	bool *marked = leat_alloc_array(code->mem, code->files + 1, sizeof(*marked));
	enum leat_status status = imported && marked ? mark_imported(code, field, count, imported, marked, err)
	                                             : leat_fail_mem(err, code->mem, code->files, "the list of code");

	for (size_t i = 0; i < code->files && status == LEAT_OK; i++)
		if (marked[i] && !imported[i])
			status = leat_key_fields_add_content(now, "import.", code->file[i].path, &code->file[i].content,
			                                     err);
	leat_free(code->mem, imported);
	leat_free(code->mem, marked);
	return status;
}

enum leat_status
leat_learned_now(struct leat_code *code, const struct leat_key_field *field, size_t count, struct leat_key_fields *now,
                 struct leat_err *err)
{
	struct leat_python_set set = {.count = 0};
	enum leat_status status = LEAT_OK;

	find_pythons(code, field, count, &set);
	for (size_t i = 0; i < count && status == LEAT_OK; i++) {
		struct leat_str value;

		leat_str_init(&value, code->mem, SIZE_MAX);
		status = value_now(code, &set, &field[i], &value, err);
		if (status == LEAT_OK && value.len > 0)
			status = leat_key_fields_add(now, field[i].name, leat_str_text(&value), err);
		leat_str_free(&value);
	}
	return status == LEAT_OK ? add_new_files(code, field, count, now, err) : status;
}

enum leat_status
leat_code_now(struct leat_code *code, const struct leat_key_field *field, size_t count, struct leat_key_fields *now,
              struct leat_err *err)
{
	enum leat_status status;

	pthread_mutex_lock(&code->lock);
	status = leat_learned_now(code, field, count, now, err);
	pthread_mutex_unlock(&code->lock);
	return status;
}

/* ---- answers ---- */

/* Open addressing by the first bytes of the digest, which are as good as random. At most half full. */
struct leat_still {
	struct answer {
		struct leat_digest learned;
		bool is_used, holds;
	} * answer;
	size_t slots, used;
};

void
leat_still_free(struct leat_still *still, struct leat_mem *mem)
{
	if (still)
		leat_free(mem, still->answer);
	leat_free(mem, still);
}

static struct answer *
slot_of(struct answer *answer, size_t slots, const struct leat_digest *learned)
{
	size_t i = leat_load64(learned->byte) & (slots - 1);

	while (answer[i].is_used && !leat_digest_equal(&answer[i].learned, learned))
		i = (i + 1) & (slots - 1);
	return &answer[i];
}

static bool
make_slots(struct leat_still *still, struct leat_mem *mem)
{
	size_t slots = still->slots ? 2 * still->slots : 64;
	struct answer *answer;

	if (2 * (still->used + 1) <= still->slots)
		return true;
	answer = leat_alloc_array(mem, slots, sizeof(*answer));
	if (!answer)
		return false;
	for (size_t i = 0; i < still->slots; i++)
		if (still->answer[i].is_used)
			*slot_of(answer, slots, &still->answer[i].learned) = still->answer[i];
	leat_free(mem, still->answer);
	still->answer = answer;
	still->slots = slots;
	return true;
}

static bool
are_same(const struct leat_key_field *a, size_t count, const struct leat_key_fields *b)
{
	if (count != b->count)
		return false;
	for (size_t i = 0; i < count; i++)
		if (strcmp(a[i].name, b->field[i].name) != 0 || strcmp(a[i].value, b->field[i].value) != 0)
			return false;
	return true;
}

/* What cannot be read does not hold: the action runs again. */
static bool
check_set(struct leat_code *code, struct leat_cas *cas, const struct leat_digest *learned)
{
	struct leat_key_fields now = {.mem = code->mem};
	struct leat_key_field *field = NULL;
	size_t fields = 0;
	bool holds = false;

	if (leat_index_learned(cas, learned, &field, &fields, NULL) == LEAT_OK) {
		holds = leat_learned_now(code, field, fields, &now, NULL) == LEAT_OK && are_same(field, fields, &now);
		leat_key_fields_free(field, fields, code->mem);
	}
	leat_key_fields_clear(&now);
	return holds;
}

static bool
look_up(struct leat_code *code, struct leat_cas *cas, const struct leat_digest *learned)
{
	struct answer *answer;

	if (!code->still)
		code->still = leat_alloc(code->mem, sizeof(*code->still));
	if (!code->still || !make_slots(code->still, code->mem))
		return check_set(code, cas, learned);
	answer = slot_of(code->still->answer, code->still->slots, learned);
	if (!answer->is_used) {
		*answer = (struct answer){*learned, true, check_set(code, cas, learned)};
		code->still->used++;
	}
	return answer->holds;
}

bool
leat_code_still(struct leat_code *code, struct leat_cas *cas, const struct leat_digest *learned)
{
	bool holds;

	pthread_mutex_lock(&code->lock);
	holds = look_up(code, cas, learned);
	pthread_mutex_unlock(&code->lock);
	return holds;
}
