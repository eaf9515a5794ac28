/* action.c - the fields of an action, and whether it was made before; see action.h
 *
 * What all slices of a step have in common is computed and hashed once, and kept with the code (struct leat_step_key).
 * For a slice, that state is copied, and the slice's values and the contents of its inputs are added. */
#include "step/action.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "step/code_inside.h"
#include "step/kind.h"

/* ---- fields that all slices have ---- */

static enum leat_status
add_command(const struct leat_step *step, struct leat_key_fields *fields, struct leat_err *err)
{
	struct leat_str command;
	enum leat_status status = LEAT_OK;

	leat_str_init(&command, fields->mem, SIZE_MAX);
	if (step->kind->command)
		status = step->kind->command(step, &command, err);
	else
		leat_str_add(&command, step->text);
	if (status == LEAT_OK && command.failed)
		status = leat_fail_mem(err, fields->mem, strlen(step->text), "a command");
	if (status == LEAT_OK)
		status = leat_key_fields_add(fields, "command", leat_str_text(&command), err);
	leat_str_free(&command);
	return status;
}

static int
compare_named(const void *a, const void *b)
{
	return strcmp((*(const struct leat_named *const *)a)->name, (*(const struct leat_named *const *)b)->name);
}

static bool
is_secret(const char *name)
{
	static const char *const parts[] = {"KEY", "SECRET", "TOKEN", "PASSWORD"};

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (strcasestr(name, parts[i]))
			return true;
	return false;
}

/* "param.NAME" or "env.NAME". A variable that is not set has no field. */
static enum leat_status
add_value(const struct leat_named *named, const char *prefix, struct leat_key_fields *fields, struct leat_err *err)
{
	const char *value = named->value ? named->value : getenv(named->name);
	char *name = leat_asprintf(fields->mem, "%s%s", prefix, named->name);
	char secret[sizeof("sha256 ") + LEAT_SHA256_HEX] = "sha256 ";
	uint8_t digest[LEAT_SHA256_BYTES];
	enum leat_status status = LEAT_OK;

	if (!name)
		return leat_fail_mem(err, fields->mem, strlen(named->name), "the fields of a key");
	if (value && prefix[0] == 'e' && is_secret(named->name)) {
		leat_sha256(value, strlen(value), digest);
		leat_hex(digest, sizeof(digest), secret + strlen("sha256 "));
		value = secret;
	}
	if (value)
		status = leat_key_fields_add(fields, name, value, err);
	leat_free(fields->mem, name);
	return status;
}

static enum leat_status
add_values(const struct leat_named *named, size_t count, const char *prefix, struct leat_key_fields *fields,
           struct leat_err *err)
{
	const struct leat_named **order = leat_alloc_array(fields->mem, count + 1, sizeof(*order));
	enum leat_status status = LEAT_OK;

	if (!order)
		return leat_fail_mem(err, fields->mem, count * sizeof(*order), "the fields of a key");
	for (size_t i = 0; i < count; i++)
		order[i] = &named[i];
	if (count > 1)
		qsort(order, count, sizeof(*order), compare_named);
	for (size_t i = 0; i < count && status == LEAT_OK; i++)
		status = add_value(order[i], prefix, fields, err);
	leat_free(fields->mem, order);
	return status;
}

static enum leat_status
add_texts(const struct leat_step *step, struct leat_key_fields *fields, struct leat_err *err)
{
	char kind[64], seed[32];
	enum leat_status status;

	snprintf(kind, sizeof(kind), "%s %u", step->kind->name, step->kind->version);
	snprintf(seed, sizeof(seed), "%llu", (unsigned long long)step->seed);
	status = leat_key_fields_add(fields, "kind", kind, err);
	if (status == LEAT_OK)
		status = add_command(step, fields, err);
	if (status == LEAT_OK && *step->suffix)
		status = leat_key_fields_add(fields, "suffix", step->suffix, err);
	if (status == LEAT_OK && *step->feed)
		status = leat_key_fields_add(fields, "feed", step->feed, err);
	if (status == LEAT_OK)
		status = leat_key_fields_add(fields, "seed", seed, err);
	return status;
}

const char *
leat_path_extension(const char *path)
{
	static const char *const compressions[] = {".gz", ".bz2", ".xz", ".zst", ".lz4", ".zip"};
	const char *name = strrchr(path, '/') == NULL ? path : strrchr(path, '/') + 1;
	const char *dot = *name == '\0' ? NULL : strrchr(name + 1, '.');

	if (dot == NULL)
		return "";
	for (size_t i = 0; i < sizeof(compressions) / sizeof(*compressions); i++)
		if (strcmp(dot, compressions[i]) == 0) {
			const char *before = memrchr(name + 1, '.', (size_t)(dot - name - 1));

			return before == NULL ? dot : before;
		}
	return dot;
}

/* What the extension of an input's path is made of, besides values of slices: ".csv", or "{subject}.csv", since a value
 * may have a dot. */
static const char *
input_suffix(const struct leat_project *project, const struct leat_edge *edge)
{
	const char *pattern, *variable, *dot;

	if (edge->step != SIZE_MAX)
		return project->step[edge->step].suffix;
	pattern = project->source[edge->source].pattern;
	dot = leat_path_extension(pattern);
	variable = strchr(strrchr(pattern, '/') ? strrchr(pattern, '/') : pattern, '{');
	return variable && (!*dot || variable < dot) ? variable : dot;
}

/* The variables of the slices of an input, in the order in which their values name the entries of a folder. */
static void
add_variables(const struct leat_project *project, const struct leat_edge *edge, struct leat_str *value)
{
	const struct leat_slices *slices = edge->step == SIZE_MAX ? NULL : &project->step[edge->step].slices;

	for (size_t i = 0; slices && i < slices->variables; i++)
		leat_str_addf(value, "%s%s", i > 0 ? " " : "", slices->variable[i].name);
}

static int
compare_edges(const void *a, const void *b)
{
	return strcmp((*(const struct leat_edge *const *)a)->name, (*(const struct leat_edge *const *)b)->name);
}

/* What a command sees of an input besides its content: "input_slices.NAME" or "input_suffix.NAME". */
static enum leat_status
add_input(const struct leat_project *project, const struct leat_edge *edge, bool is_suffix,
          struct leat_key_fields *fields, struct leat_err *err)
{
	char *name = leat_asprintf(fields->mem, "%s.%s", is_suffix ? "input_suffix" : "input_slices", edge->name);
	enum leat_status status = LEAT_OK;
	struct leat_str value;

	leat_str_init(&value, fields->mem, SIZE_MAX);
	if (is_suffix)
		leat_str_add(&value, input_suffix(project, edge));
	else
		add_variables(project, edge, &value);
	if (!name || value.failed)
		status = leat_fail_mem(err, fields->mem, value.len, "the fields of a key");
	else if (value.len > 0)
		status = leat_key_fields_add(fields, name, leat_str_text(&value), err);
	leat_str_free(&value);
	leat_free(fields->mem, name);
	return status;
}

static enum leat_status
add_inputs(const struct leat_action *action, struct leat_key_fields *fields, struct leat_err *err)
{
	const struct leat_step *step = action->step;
	const struct leat_edge **order = leat_alloc_array(fields->mem, step->edges + 1, sizeof(*order));
	enum leat_status status = LEAT_OK;

	if (!order)
		return leat_fail_mem(err, fields->mem, step->edges * sizeof(*order), "the fields of a key");
	for (size_t i = 0; i < step->edges; i++)
		order[i] = &step->edge[i];
	if (step->edges > 1)
		qsort(order, step->edges, sizeof(*order), compare_edges);
	for (size_t i = 0; i < 2 * step->edges && status == LEAT_OK; i++)
		status = add_input(action->project, order[i % step->edges], i >= step->edges, fields, err);
	leat_free(fields->mem, order);
	return status;
}

/* The command, with all that its variables may stand for: sh "$script". */
static enum leat_status
add_named(const struct leat_action *action, const char *command, struct leat_key_fields *fields, struct leat_err *err)
{
	const struct leat_step *step = action->step;
	enum leat_status status;
	struct leat_str text;

	leat_str_init(&text, fields->mem, SIZE_MAX);
	leat_str_add(&text, command);
	for (size_t i = 0; i < step->params; i++)
		leat_str_addf(&text, "\n%s", step->param[i].value);
	for (size_t i = 0; i < step->envs; i++)
		if (step->env[i].value)
			leat_str_addf(&text, "\n%s", step->env[i].value);
	for (size_t i = 0; i < step->slices.variables; i++)
		for (size_t k = 0; k < step->slices.variable[i].values; k++)
			leat_str_addf(&text, "\n%s", step->slices.variable[i].value[k]);
	status = text.failed ? leat_fail_mem(err, fields->mem, text.len, "a command")
	                     : leat_code_named(action->code, leat_str_text(&text), fields, err);
	leat_str_free(&text);
	return status;
}

static enum leat_status
add_common(const struct leat_action *action, struct leat_key_fields *fields, struct leat_err *err)
{
	const struct leat_step *step = action->step;
	enum leat_status status = add_texts(step, fields, err);

	if (status == LEAT_OK)
		status = add_values(step->param, step->params, "param.", fields, err);
	if (status == LEAT_OK)
		status = add_values(step->env, step->envs, "env.", fields, err);
	if (status == LEAT_OK)
		status = add_inputs(action, fields, err);
	if (status == LEAT_OK) /* the command is the second field */
		status = add_named(action, fields->field[1].value, fields, err);
	return status;
}

/* ---- the key of a step ---- */

static int
compare_parts(const void *a, const void *b)
{
	const struct leat_key_part *one = a, *other = b;

	return one->is_input != other->is_input ? one->is_input - other->is_input : strcmp(one->name, other->name);
}

static enum leat_status
add_part(struct leat_step_key *key, const char *prefix, const char *name, size_t index, struct leat_err *err)
{
	char *copy = leat_asprintf(key->common.mem, "%s%s", prefix, name);

	if (!copy)
		return leat_fail_mem(err, key->common.mem, strlen(name), "the fields of a key");
	key->part[key->parts++] = (struct leat_key_part){copy, index, prefix[0] == 'i'};
	return LEAT_OK;
}

static enum leat_status
add_parts(const struct leat_action *action, struct leat_step_key *key, struct leat_err *err)
{
	const struct leat_slices *slices = &action->step->slices;
	size_t most = slices->variables + action->inputs;
	enum leat_status status = LEAT_OK;

	key->part = leat_alloc_array(key->common.mem, most + 1, sizeof(*key->part));
	if (!key->part)
		return leat_fail_mem(err, key->common.mem, most * sizeof(*key->part), "the fields of a key");
	for (size_t i = 0; i < slices->variables && status == LEAT_OK; i++)
		status = add_part(key, "slice.", slices->variable[i].name, i, err);
	for (size_t i = 0; i < action->inputs && status == LEAT_OK; i++)
		status = add_part(key, "input.", action->input[i].name, i, err);
	if (key->parts > 1)
		qsort(key->part, key->parts, sizeof(*key->part), compare_parts);
	return status;
}

void
leat_step_key_free(struct leat_step_key *key, struct leat_mem *mem)
{
	if (!key->common.mem)
		return;
	for (size_t i = 0; i < key->parts; i++)
		leat_free(mem, key->part[i].name);
	leat_free(mem, key->part);
	leat_key_fields_clear(&key->common);
	leat_sha256_free(key->sha);
	*key = (struct leat_step_key){0};
}

static enum leat_status
make_step_key(const struct leat_action *action, struct leat_step_key *key, struct leat_err *err)
{
	enum leat_status status;

	key->common.mem = action->code->mem;
	status = add_common(action, &key->common, err);
	if (status == LEAT_OK)
		status = add_parts(action, key, err);
	if (status == LEAT_OK && !(key->sha = leat_sha256_new()))
		status = leat_fail(err, LEAT_NOMEM, "out of memory for the key of step '%s'", action->step->name);
	for (size_t i = 0; status == LEAT_OK && i < key->common.count; i++)
		leat_key_add(key->sha, key->common.field[i].name, key->common.field[i].value);
	if (status != LEAT_OK)
		leat_step_key_free(key, action->code->mem);
	return status;
}

/* Of the action's step: made on the first call, and not changed after it. */
static enum leat_status
step_key(const struct leat_action *action, const struct leat_step_key **key, struct leat_err *err)
{
	struct leat_code *code = action->code;
	struct leat_step_key *found = &code->step_key[action->step - action->project->step];
	enum leat_status status = LEAT_OK;

	pthread_mutex_lock(&code->lock);
	if (!found->sha)
		status = make_step_key(action, found, err);
	pthread_mutex_unlock(&code->lock);
	*key = found;
	return status;
}

/* The value of a part. Contents are written to `buf`. */
static const char *
part_value(const struct leat_action *action, const struct leat_key_part *part, char buf[LEAT_CONTENT_TEXT])
{
	if (part->is_input)
		return leat_content_text(&action->input[part->index].content, buf);
	return leat_slice_value(&action->step->slices, action->slice, part->index);
}

enum leat_status
leat_action_fields(const struct leat_action *action, struct leat_key_fields *fields, struct leat_err *err)
{
	const struct leat_step_key *key;
	char buf[LEAT_CONTENT_TEXT];
	enum leat_status status = step_key(action, &key, err);

	if (!fields->mem)
		fields->mem = action->code->mem;
	leat_key_fields_clear(fields);
	for (size_t i = 0; status == LEAT_OK && i < key->common.count; i++)
		status = leat_key_fields_add(fields, key->common.field[i].name, key->common.field[i].value, err);
	for (size_t i = 0; status == LEAT_OK && i < key->parts; i++)
		status = leat_key_fields_add(fields, key->part[i].name, part_value(action, &key->part[i], buf), err);
	return status;
}

/* ---- finding ---- */

static enum leat_status
stem_of(const struct leat_action *action, struct leat_digest *stem, struct leat_err *err)
{
	const struct leat_step_key *key;
	char buf[LEAT_CONTENT_TEXT];
	enum leat_status status = step_key(action, &key, err);
	struct leat_sha256 *sha = status == LEAT_OK ? leat_sha256_new() : NULL;

	if (status != LEAT_OK)
		return status;
	if (!sha)
		return leat_fail(err, LEAT_NOMEM, "out of memory for the key of step '%s'", action->step->name);
	leat_sha256_copy(sha, key->sha);
	for (size_t i = 0; i < key->parts; i++)
		leat_key_add(sha, key->part[i].name, part_value(action, &key->part[i], buf));
	leat_sha256_end(sha, stem->byte);
	leat_sha256_free(sha);
	return LEAT_OK;
}

/* Actions with the same stem, taken out of the index before they are looked at: looking at them reads it, too. */
struct candidates {
	struct leat_made made[8];
	size_t skip, count;
};

static bool
add_candidate(void *arg, const struct leat_made *made)
{
	struct candidates *c = arg;

	if (c->skip > 0)
		c->skip--;
	else
		c->made[c->count++] = *made;
	return c->count == sizeof(c->made) / sizeof(*c->made);
}

static bool
is_usable(struct leat_code *code, struct leat_cas *cas, const struct leat_made *made)
{
	static const struct leat_digest none;

	if (!leat_digest_equal(&made->learned, &none) && !leat_code_still(code, cas, &made->learned))
		return false;
	return leat_cas_has(cas, &made->output);
}

enum leat_status
leat_made_find(struct leat_code *code, struct leat_cas *cas, const struct leat_digest *stem, struct leat_made *made,
               struct leat_err *err)
{
	enum { BATCH = sizeof(((struct candidates *)0)->made) / sizeof(struct leat_made) };
	struct candidates c = {.count = BATCH};
	enum leat_status status = LEAT_OK;

	for (size_t seen = 0; status == LEAT_OK && c.count == BATCH; seen += c.count) {
		c.skip = seen;
		c.count = 0;
		status = leat_index_find(cas, stem, add_candidate, &c, err);
		for (size_t i = 0; status == LEAT_OK && i < c.count; i++) {
			if (is_usable(code, cas, &c.made[i])) {
				*made = c.made[i];
				return LEAT_OK;
			}
		}
	}
	return status == LEAT_OK ? LEAT_END : status;
}

enum leat_status
leat_action_find(const struct leat_action *action, struct leat_cas *cas, struct leat_digest *stem,
                 struct leat_made *made, struct leat_err *err)
{
	enum leat_status status = stem_of(action, stem, err);

	return status == LEAT_OK ? leat_made_find(action->code, cas, stem, made, err) : status;
}
