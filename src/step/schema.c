/* schema.c - the table of keys as a JSON Schema for editors, and as Markdown for docs/STEPS.md
 *
 * Editors guess types as YAML does: `folds: 10` is a number to them, though a text to us. So the schema accepts for a
 * text whatever they may take it for. */
#include <string.h>

#include "step/kind.h"
#include "step/project_keys.h"

#define TEXT "\"type\":[\"string\",\"number\",\"boolean\"]"
#define NAME_PATTERN "^[A-Za-z_][A-Za-z0-9_]*$"

static const char *
schema_of(enum leat_key_type type)
{
	switch (type) {
	case LEAT_KEY_ACTION:
	case LEAT_KEY_CHOICE: /* and `enum` */
	case LEAT_KEY_TEXT:
		return "\"type\":\"string\"";
	case LEAT_KEY_SUFFIX:
		return "\"type\":\"string\",\"pattern\":\"^\\\\.[A-Za-z0-9_.-]+$\"";
	case LEAT_KEY_COUNT:
	case LEAT_KEY_SEED:
		return "\"type\":\"integer\"";
	case LEAT_KEY_TIME:
		return "\"type\":\"string\",\"pattern\":\"^[0-9]+(\\\\.[0-9]+)?[smhd]$\"";
	case LEAT_KEY_SIZE:
		return "\"type\":[\"string\",\"integer\"]";
	case LEAT_KEY_FLAG:
		return "\"type\":\"boolean\"";
	case LEAT_KEY_CHECKS:
	case LEAT_KEY_TAKE:
		return "\"type\":\"object\"";
	case LEAT_KEY_NAMES:
	case LEAT_KEY_TEXTS:
	case LEAT_KEY_GLOBS:
		return "\"oneOf\":[{\"type\":\"string\"},{\"type\":\"array\",\"items\":{\"type\":\"string\"}}]";
	case LEAT_KEY_PARAMS:
		return "\"type\":\"object\",\"propertyNames\":{\"pattern\":\"" NAME_PATTERN
		       "\"},\"additionalProperties\":{" TEXT "}";
	case LEAT_KEY_ENV:
		return "\"oneOf\":[{\"type\":\"string\"},{\"type\":\"array\",\"items\":{\"type\":\"string\"}},{"
		       "\"type\":"
		       "\"object\",\"additionalProperties\":{\"type\":[\"string\",\"number\",\"boolean\",\"null\"]}}]";
	case LEAT_KEY_SLICES:
		return "\"type\":\"object\",\"minProperties\":1,\"propertyNames\":{\"pattern\":\"" NAME_PATTERN
		       "\"},\"additionalProperties\":{\"oneOf\":[{\"type\":\"string\",\"pattern\":"
		       "\"^-?[0-9]+\\\\.\\\\.-?[0-9]+(\\\\.\\\\.-?[0-9]+)?$\"},{\"type\":\"array\",\"minItems\":1,"
		       "\"items\":{" TEXT "}},{\"type\":\"object\",\"minProperties\":1,\"maxProperties\":1,"
		       "\"additionalProperties\":false,\"properties\":{\"glob\":{\"type\":\"string\"},"
		       "\"lines\":{\"type\":\"string\"},\"rows\":{\"type\":\"string\"}}}]}";
	case LEAT_KEY_COLUMNS:
		return "\"type\":\"object\",\"minProperties\":1,\"additionalProperties\":{\"type\":\"string\"}";
	case LEAT_KEY_REJECTS:
		return "\"oneOf\":[{\"type\":\"integer\",\"minimum\":0},{\"type\":\"string\",\"pattern\":"
		       "\"^[0-9]+(\\\\.[0-9]*)?%$\"}]";
	case LEAT_KEY_NULLS:
		return "\"oneOf\":[{" TEXT "},{\"type\":\"array\",\"items\":{" TEXT "}}]";
	case LEAT_KEY_BY:
	case LEAT_KEY_CHAINS:
		return "\"type\":\"object\",\"minProperties\":1,\"additionalProperties\":{\"type\":\"string\"}";
	case LEAT_KEY_SPLIT:
		return "\"type\":\"object\",\"required\":[\"by\",\"train\"],\"properties\":{\"by\":{\"oneOf\":["
		       "{\"type\":\"string\"},{\"type\":\"array\",\"items\":{\"type\":\"string\"}}]}},"
		       "\"additionalProperties\":{\"type\":\"string\"}";
	case LEAT_KEY_DEDUPE:
		return "\"type\":\"object\",\"required\":[\"by\"],\"additionalProperties\":false,\"properties\":{"
		       "\"by\":{"
		       "\"oneOf\":[{\"type\":\"string\"},{\"type\":\"array\",\"items\":{\"type\":\"string\"}}]},"
		       "\"order\":{"
		       "\"oneOf\":[{\"type\":\"string\"},{\"type\":\"array\",\"items\":{\"type\":\"string\"}}]},"
		       "\"keep\":{"
		       "\"enum\":[\"first\",\"last\"]}}";
	case LEAT_KEY_SOURCES:
		return "\"type\":\"object\",\"propertyNames\":{\"pattern\":\"" NAME_PATTERN
		       "\"},\"additionalProperties\":{\"oneOf\":[{\"type\":\"string\"},"
		       "{\"$ref\":\"#/definitions/source\"}]}";
	case LEAT_KEY_STEPS:
		return "\"type\":\"object\",\"minProperties\":1,\"propertyNames\":{\"pattern\":\"" NAME_PATTERN
		       "\"},\"additionalProperties\":{\"$ref\":\"#/definitions/step\"}";
	case LEAT_KEY_STORAGE:
		return "\"type\":\"object\",\"additionalProperties\":{" TEXT "}";
	}
	return "";
}

static bool
is_number(const struct leat_key *key)
{
	return key->type == LEAT_KEY_COUNT || key->type == LEAT_KEY_SEED;
}

static void
add_choices(const char *choices, struct leat_str *json)
{
	size_t n;

	leat_str_add(json, ",\"enum\":[");
	for (const char *choice = choices; *choice; choice += n + (choice[n] == '|')) {
		n = strcspn(choice, "|");
		leat_str_addf(json, "%s\"%.*s\"", choice == choices ? "" : ",", (int)n, choice);
	}
	leat_str_add(json, "]");
}

static void
add_key(const struct leat_key *key, struct leat_str *json)
{
	leat_str_addf(json, "\"%s\":{\"description\":", key->name);
	leat_str_add_json(json, key->doc);
	leat_str_addf(json, ",%s", schema_of(key->type));
	if (is_number(key))
		leat_str_addf(json, ",\"minimum\":%.0f", key->min);
	if (key->type == LEAT_KEY_COUNT)
		leat_str_addf(json, ",\"maximum\":%.0f", key->max);
	if (key->type == LEAT_KEY_CHOICE)
		add_choices(key->choices, json);
	if (*key->def) {
		leat_str_add(json, ",\"default\":");
		if (is_number(key) || key->type == LEAT_KEY_FLAG)
			leat_str_add(json, key->def);
		else
			leat_str_add_json(json, key->def);
	}
	leat_str_add(json, "}");
}

void
leat_project_schema(struct leat_str *json)
{
	const char *comma = "";

	leat_str_add(json, "{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"title\":\"leat.yaml\","
	                   "\"type\":\"object\",\"additionalProperties\":false,"
	                   "\"anyOf\":[{\"required\":[\"steps\"]},{\"required\":[\"sources\"]}],"
	                   "\"properties\":{");
	for (const struct leat_key *k = leat_file_keys; k->name; k++) {
		leat_str_add(json, k == leat_file_keys ? "" : ",");
		add_key(k, json);
	}
	leat_str_add(json, "},\"definitions\":{\"source\":{\"type\":\"object\",\"additionalProperties\":false,"
	                   "\"required\":[\"files\"],\"properties\":{");
	for (const struct leat_key *k = leat_source_keys; k->name; k++) {
		leat_str_add(json, k == leat_source_keys ? "" : ",");
		add_key(k, json);
	}
	leat_str_add(json, "}},\"step\":{\"type\":\"object\",\"additionalProperties\":false,"
	                   "\"properties\":{");
	for (const struct leat_step_kind *const *kind = leat_step_kinds; *kind; kind++) {
		if ((*kind)->source)
			continue;
		leat_str_addf(json, "\"%s\":{\"description\":", (*kind)->name);
		leat_str_add_json(json, (*kind)->doc);
		leat_str_add(json, ",\"type\":\"string\"},");
	}
	for (const struct leat_key *k = leat_step_keys; k->name; k++) {
		leat_str_add(json, k == leat_step_keys ? "" : ",");
		add_key(k, json);
	}
	leat_str_add(json, "},\"oneOf\":[");
	for (const struct leat_step_kind *const *kind = leat_step_kinds; *kind; kind++)
		if (!(*kind)->source) {
			leat_str_addf(json, "%s{\"required\":[\"%s\"]}", comma, (*kind)->name);
			comma = ",";
		}
	leat_str_add(json, "]}}}\n");
}

/* ---- Markdown ---- */

/* A cell of a table, in which | has to be quoted. */
static void
add_cell(const char *text, struct leat_str *out)
{
	for (; *text; text++)
		leat_str_addf(out, *text == '|' ? "\\%c" : "%c", *text);
}

/* "Of `sql` and `asof`: " */
static void
add_kinds(const char *kinds, struct leat_str *out)
{
	leat_str_add(out, "Of `");
	for (; *kinds; kinds++)
		leat_str_addn(out, *kinds == '|' ? "` and `" : kinds, *kinds == '|' ? 7 : 1);
	leat_str_add(out, "`: ");
}

static void
add_row(const struct leat_key *key, struct leat_str *out)
{
	leat_str_addf(out, "| `%s` | ", key->name);
	leat_key_values(key, out);
	leat_str_addf(out, *key->def ? " | `%s` | " : " | %s | ", key->def);
	if (key->kind)
		add_kinds(key->kind, out);
	leat_str_addf(out, "%s Example: `", key->doc);
	add_cell(key->example, out);
	leat_str_add(out, "` |\n");
}

void
leat_project_reference(struct leat_str *markdown)
{
	const char *comma = "";
	static const char head[] = "| key | value | default | meaning |\n|---|---|---|---|\n";

	leat_str_addf(markdown, "Keys of the file:\n\n%s", head);
	for (const struct leat_key *k = leat_file_keys; k->name; k++)
		add_row(k, markdown);
	leat_str_addf(markdown, "\nKeys of a source that is not just a pattern:\n\n%s", head);
	for (const struct leat_key *k = leat_source_keys; k->name; k++)
		add_row(k, markdown);
	leat_str_add(markdown, "\nKeys of a step, of which exactly one says what it does:");
	for (const struct leat_step_kind *const *kind = leat_step_kinds; *kind; kind++)
		if (!(*kind)->source) {
			leat_str_addf(markdown, "%s `%s`", comma, (*kind)->name);
			comma = ",";
		}
	leat_str_addf(markdown, ".\n\n%s", head);
	for (const struct leat_step_kind *const *kind = leat_step_kinds; *kind; kind++)
		if (!(*kind)->source)
			leat_str_addf(markdown, "| `%s` | %s |  | %s |\n", (*kind)->name,
			              (*kind)->value ? (*kind)->value : "a text", (*kind)->doc);
	for (const struct leat_key *k = leat_step_keys; k->name; k++)
		add_row(k, markdown);
}
