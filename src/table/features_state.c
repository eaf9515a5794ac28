/* features_state.c - what features have fitted, as JSON that people can read
 *
 *	{"leat_features": 1, "duckdb": "1.5.6", "columns": "'amount': clip(low=[p01], high=[]) | ...", "split": "...",
 *	 "inputs": [{"name": "amount", "type": "DOUBLE", "needed": true}],
 *	 "fitted": [{"feature": "amount", "transform": "standardize", "version": 1, "values": {"mean": 1.5,
 *"stddev": 2.0}},
 *	            {"feature": "product", "transform": "vocab", "version": 1, "dictionary": "dictionary_1_0",
 *"entries": 9}], "outputs": [{"name": "amount"}, {"name": "label", "keeps": "label"}], "layers": ["CAST(t.\"amount\" AS
 *DOUBLE) AS v0", ...]}
 *
 * Features that read other rows, and dedupe, add the texts "dedupe" and "qualify" and a list "groups" of features; then
 * Python numbers the rows of the table as it reads them.
 *
 * `layers` are for Python, which runs them as they are, without access to files. Here the SQL is written anew from the
 * rest, which is checked, and must be the same. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "table/features.h"

enum { VERSION = 1 };

/* ---- writing ---- */

/* A real number in JSON, to the bit. */
static void
add_number(struct leat_str *json, double number)
{
	char text[40];

	leat_format_digits(text, sizeof(text), number, 17);
	leat_str_addf(json, strpbrk(text, ".en") ? "%s" : "%s.0", text);
}

static void
save_numbers(const struct leat_feature_call *call, struct leat_str *json)
{
	const char *const *names = call->transform->fits;

	leat_str_addf(json, ", \"values\": %c", names ? '{' : '[');
	for (size_t i = 0; i < call->fitted.numbers; i++) {
		leat_str_add(json, i ? ", " : "");
		if (names)
			leat_str_addf(json, "\"%s\": ", names[i]);
		add_number(json, call->fitted.number[i]);
	}
	leat_str_add(json, names ? "}" : "]");
}

static void
save_call(const struct leat_feature *feature, const struct leat_feature_call *call, struct leat_str *json)
{
	leat_str_add(json, "{\"feature\": ");
	leat_str_add_json(json, feature->name);
	leat_str_addf(json, ", \"transform\": \"%s\", \"version\": %u", call->transform->name,
	              call->transform->version);
	if (call->fitted.numbers)
		save_numbers(call, json);
	if (call->fitted.text) {
		leat_str_add(json, ", \"text\": ");
		leat_str_add_json(json, call->fitted.text);
	}
	if (call->fitted.entries >= 0)
		leat_str_addf(json, ", \"dictionary\": \"%s\", \"entries\": %lld", call->fitted.dictionary,
		              (long long)call->fitted.entries);
	if (call->transform->lookup)
		leat_str_addf(json, ", \"lookup\": \"%s\"", call->transform->lookup);
	leat_str_add(json, "}");
}

static void
save_fitted(const struct leat_features *f, struct leat_str *json)
{
	bool first = true;

	leat_str_add(json, "],\n \"fitted\": [");
	for (size_t i = 0; i < f->features; i++)
		for (size_t k = 0; k < f->feature[i].calls; k++) {
			if (!f->feature[i].call[k].transform->fit)
				continue;
			leat_str_add(json, first ? "\n  " : ",\n  ");
			save_call(&f->feature[i], &f->feature[i].call[k], json);
			first = false;
		}
}

static void
save_outputs(const struct leat_features *f, struct leat_str *json)
{
	const char *comma = "";

	leat_str_add(json, "],\n \"outputs\": [");
	for (size_t i = 0; i < f->features; i++) {
		const struct leat_feature *feature = &f->feature[i];

		for (size_t k = feature->only_sides; k <= feature->sides; k++) {
			struct leat_str name;

			leat_str_init(&name, json->mem, 2 * LEAT_MAX_SPEC);
			leat_str_addf(&name, k ? "%s_%s" : "%s", feature->name, k ? feature->side[k - 1] : "");
			leat_str_addf(json, "%s\n  {\"name\": ", comma);
			leat_str_add_json(json, leat_str_text(&name));
			if (feature->is_kept) {
				leat_str_add(json, ", \"keeps\": ");
				leat_str_add_json(json, f->input[feature->input[0]].name);
			}
			leat_str_add(json, "}");
			comma = ",";
			json->failed |= name.failed;
			leat_str_free(&name);
		}
	}
}

/* What Python needs to know of features that are not of one row. */
static void
save_groups(const struct leat_features *f, struct leat_str *json)
{
	const char *comma = "";

	leat_str_add(json, "],\n \"groups\": [");
	for (size_t i = 0; i < f->features; i++)
		for (size_t k = 0; k < f->feature[i].calls; k++) {
			if (!f->feature[i].call[k].columns[LEAT_ROLE_ORDER])
				continue;
			leat_str_addf(json, "%s\n  {\"feature\": ", comma);
			leat_str_add_json(json, f->feature[i].name);
			leat_str_addf(json, ", \"transform\": \"%s\"}", f->feature[i].call[k].transform->name);
			comma = ",";
		}
	if (!f->qualify.len)
		return;
	leat_str_add(json, "],\n \"qualify\": [");
	leat_str_add_json(json, leat_str_text(&f->qualify));
}

static void
save_dedupe(const struct leat_features *f, struct leat_str *json)
{
	struct leat_str text;

	if (!f->dedupe.by.count)
		return;
	leat_str_init(&text, json->mem, LEAT_MAX_STATE);
	leat_dedupe_print(f, &text);
	leat_str_add(json, ",\n \"dedupe\": ");
	leat_str_add_json(json, leat_str_text(&text));
	json->failed |= text.failed;
	leat_str_free(&text);
}

void
leat_features_save(const struct leat_features *f, struct leat_str *json)
{
	struct leat_str text;

	leat_str_init(&text, json->mem, LEAT_MAX_STATE);
	leat_str_addf(json, "{\"leat_features\": %d, \"duckdb\": ", VERSION);
	leat_str_add_json(json, f->duckdb);
	leat_str_add(json, ",\n \"columns\": ");
	leat_features_print(f, &text);
	leat_str_add_json(json, leat_str_text(&text));
	leat_str_free(&text);
	leat_split_print(&f->split, &text);
	leat_str_add(json, ",\n \"split\": ");
	leat_str_add_json(json, leat_str_text(&text));
	save_dedupe(f, json);
	leat_str_add(json, ",\n \"inputs\": [");
	for (size_t i = 0; i < f->inputs; i++) {
		leat_str_addf(json, "%s\n  {\"name\": ", i ? "," : "");
		leat_str_add_json(json, f->input[i].name);
		leat_str_addf(json, ", \"type\": \"%s\", \"needed\": %s}", f->input[i].type,
		              f->input[i].is_needed ? "true" : "false");
	}
	save_fitted(f, json);
	save_outputs(f, json);
	if (f->is_ordered)
		save_groups(f, json);
	leat_str_add(json, "],\n \"layers\": [");
	for (size_t i = 0; i < f->layers; i++) {
		leat_str_add(json, i ? ",\n  " : "\n  ");
		leat_str_add_json(json, leat_str_text(&f->layer[i]));
	}
	leat_str_add(json, "]}\n");
	json->failed |= text.failed;
	leat_str_free(&text);
}

/* ---- reading ---- */

static enum leat_status
damaged(struct leat_err *err, const char *why)
{
	return leat_fail(err, LEAT_DATA, "the state of features is damaged: %s", why);
}

/* A text without NUL bytes; NULL: it is none. */
static const char *
text_of(const json_t *object, const char *name)
{
	const json_t *text = json_object_get(object, name);

	return json_is_string(text) && strlen(json_string_value(text)) == json_string_length(text)
	               ? json_string_value(text)
	               : NULL;
}

static enum leat_status
load_inputs(struct leat_features *f, const json_t *inputs, struct leat_err *err)
{
	if (json_array_size(inputs) != f->inputs)
		return damaged(err, "its inputs are not those of its columns");
	for (size_t i = 0; i < f->inputs; i++) {
		const json_t *input = json_array_get(inputs, i);
		const char *name = text_of(input, "name"), *type = text_of(input, "type");

		if (!name || !type || strcmp(name, f->input[i].name) != 0 || !leat_input_set_type(&f->input[i], type))
			return damaged(err, "its inputs are not those of its columns");
	}
	return LEAT_OK;
}

/* By name, or in order. */
static const json_t *
number_at(const json_t *values, const struct leat_transform *transform, size_t i)
{
	return transform->fits ? json_object_get(values, transform->fits[i]) : json_array_get(values, i);
}

static enum leat_status
load_numbers(struct leat_features *f, struct leat_feature_call *call, const json_t *values, struct leat_err *err)
{
	const struct leat_transform *transform = call->transform;
	size_t count = transform->fits ? json_object_size(values) : json_array_size(values);

	if (count > LEAT_MAX_EDGES || (transform->fits_numbers != SIZE_MAX && count != transform->fits_numbers))
		return damaged(err, "a transform has another number of values");
	call->fitted.number = leat_alloc_array(f->mem, count, sizeof(double));
	if (!call->fitted.number)
		return leat_fail_mem(err, f->mem, count * sizeof(double), "fitted values");
	for (size_t i = 0; i < count; i++) {
		const json_t *number = number_at(values, transform, i);

		if (!json_is_number(number) || !isfinite(json_number_value(number)))
			return damaged(err, "a fitted value is not a number");
		call->fitted.number[i] = json_number_value(number);
	}
	call->fitted.numbers = count;
	return LEAT_OK;
}

static enum leat_status
load_call(struct leat_features *f, size_t feature, size_t k, const json_t *json, struct leat_err *err)
{
	struct leat_feature_call *call = &f->feature[feature].call[k];
	const char *name = text_of(json, "feature"), *transform = text_of(json, "transform"),
		   *text = text_of(json, "text");
	const json_t *entries = json_object_get(json, "entries"), *version = json_object_get(json, "version");
	enum leat_status status;

	if (!name || !transform || strcmp(name, f->feature[feature].name) || strcmp(transform, call->transform->name))
		return damaged(err, "what was fitted is not of its columns");
	if (!json_is_integer(version) || json_integer_value(version) != call->transform->version)
		return leat_fail(err, LEAT_DATA,
		                 "feature '%s' was fitted with another version of '%s'; fit the features again", name,
		                 transform);
	status = load_numbers(f, call, json_object_get(json, "values"), err);
	if (status == LEAT_OK && text && !(call->fitted.text = leat_strdup(f->mem, text)))
		status = leat_fail_mem(err, f->mem, strlen(text), "a fitted text");
	if (json_is_integer(entries) && json_integer_value(entries) >= 0)
		call->fitted.entries = json_integer_value(entries);
	snprintf(call->fitted.dictionary, sizeof(call->fitted.dictionary), "dictionary_%zu_%zu", feature, k);
	if (status == LEAT_OK && call->transform->suits && !call->transform->suits(call->params, &call->fitted))
		status = damaged(err, "what was fitted does not suit its transform");
	return status;
}

static enum leat_status
load_fitted(struct leat_features *f, const json_t *fitted, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	size_t n = 0;

	for (size_t i = 0; i < f->features; i++)
		for (size_t k = 0; k < f->feature[i].calls && status == LEAT_OK; k++)
			if (f->feature[i].call[k].transform->fit)
				status = load_call(f, i, k, json_array_get(fitted, n++), err);
	if (status == LEAT_OK && json_array_size(fitted) != n)
		status = damaged(err, "what was fitted is not of its columns");
	return status;
}

static enum leat_status
check_layers(const struct leat_features *f, const json_t *layers, const json_t *qualify, struct leat_err *err)
{
	const char *condition = json_string_value(json_array_get(qualify, 0));
	bool same =
		json_array_size(layers) == f->layers && !strcmp(condition ? condition : "", leat_str_text(&f->qualify));

	for (size_t i = 0; i < f->layers && same; i++) {
		const json_t *layer = json_array_get(layers, i);

		same = json_is_string(layer) && !strcmp(json_string_value(layer), leat_str_text(&f->layer[i]));
	}
	return same ? LEAT_OK
	            : leat_fail(err, LEAT_DATA,
	                        "the SQL in the state is not what its features mean: it was edited, or is of another "
	                        "version of Leat; fit the features again");
}

static enum leat_status
load(struct leat_features **out, struct leat_mem *mem, const json_t *root, struct leat_err *err)
{
	const json_t *version = json_object_get(root, "leat_features");
	const char *columns = text_of(root, "columns"), *split = text_of(root, "split"),
		   *duckdb = text_of(root, "duckdb");
	enum leat_status status;
	struct leat_err why;

	if (!json_is_integer(version))
		return leat_fail(err, LEAT_DATA, "this is not a state of features, which 'leat features' writes");
	if (json_integer_value(version) != VERSION)
		return leat_fail(err, LEAT_DATA, "the state of features has version %lld; this leat reads version %d",
		                 (long long)json_integer_value(version), VERSION);
	if (!columns || !split || !duckdb || strlen(duckdb) >= sizeof((*out)->duckdb))
		return damaged(err, "it lacks its columns, split or version");
	leat_err_clear(&why);
	status = leat_features_parse(out, mem, &(struct leat_features_text){columns, split, text_of(root, "dedupe")},
	                             &why);
	if (status != LEAT_OK)
		return status == LEAT_SPEC ? damaged(err, "its columns cannot be read") : leat_fail_as(err, &why);
	strcpy((*out)->duckdb, duckdb);
	status = load_inputs(*out, json_object_get(root, "inputs"), err);
	if (status == LEAT_OK)
		status = load_fitted(*out, json_object_get(root, "fitted"), err);
	if (status == LEAT_OK)
		status = leat_features_build(*out, NULL, "", err);
	if (status == LEAT_OK)
		status = check_layers(*out, json_object_get(root, "layers"), json_object_get(root, "qualify"), err);
	if (status == LEAT_INVALID) /* a type that its transform does not accept */
		err->status = status = LEAT_DATA;
	return status;
}

enum leat_status
leat_features_load(struct leat_features **out, struct leat_mem *mem, const char *json, size_t len, struct leat_err *err)
{
	struct leat_err unwanted;
	json_error_t error;
	json_t *root;
	enum leat_status status;

	*out = NULL;
	leat_err_clear(&unwanted);
	err = err ? err : &unwanted;
	if (len > LEAT_MAX_STATE)
		return leat_fail(err, LEAT_DATA, "the state of features has more than %d MiB", LEAT_MAX_STATE >> 20);
	root = json_loadb(json, len, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		return leat_fail(err, LEAT_DATA, "the state of features is not JSON: line %d: %s", error.line,
		                 error.text);
	status = load(out, mem, root, err);
	json_decref(root);
	if (status != LEAT_OK) {
		leat_features_close(*out);
		*out = NULL;
	}
	return status;
}
