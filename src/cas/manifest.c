/* manifest.c - manifests as JSON, and their keys
 *
 * Texts are strings; one that is not valid UTF-8, such as the name of a file, is {"hex": "..."}, so that every manifest
 * gives back the bytes that its key was made of. Stateless; any thread. */
#include "cas/manifest.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>

#include "base/utf8.h"
#include "cas/inside.h"

enum { MAX_FIELDS = 1000000 };

enum leat_status
leat_key_of(const struct leat_key_field *field, size_t fields, struct leat_digest *key, struct leat_err *err)
{
	struct leat_sha256 *sha = leat_sha256_new();

	if (!sha)
		return leat_fail(err, LEAT_NOMEM, "out of memory: the key of an action");
	for (size_t i = 0; i < fields; i++)
		leat_key_add(sha, field[i].name, field[i].value);
	leat_sha256_end(sha, key->byte);
	leat_sha256_free(sha);
	return LEAT_OK;
}

static bool
is_utf8(const char *text)
{
	size_t len;

	for (; *text != '\0'; text += len)
		if (!(len = leat_utf8_length(text)))
			return false;
	return true;
}

static void
add_text(struct leat_str *json, const char *text)
{
	if (is_utf8(text)) {
		leat_str_add_json(json, text);
		return;
	}
	leat_str_add(json, "{\"hex\":\"");
	for (; *text != '\0'; text++)
		leat_str_addf(json, "%02x", (unsigned char)*text);
	leat_str_add(json, "\"}");
}

static void
add_member(struct leat_str *json, const char *name, const char *text)
{
	leat_str_addf(json, ",\n\"%s\":", name);
	add_text(json, text);
}

static void
add_digest(struct leat_str *json, const char *name, const struct leat_digest *digest)
{
	char hex[LEAT_SHA256_HEX];

	leat_hex(digest->byte, sizeof(digest->byte), hex);
	leat_str_addf(json, ",\n\"%s\":\"%s\"", name, hex);
}

void
leat_manifest_write(struct leat_str *json, const struct leat_manifest *m)
{
	char content[LEAT_CONTENT_TEXT];

	leat_str_add(json, "{\"leat\":1");
	add_digest(json, "key", &m->key);
	add_member(json, "step", m->step);
	add_member(json, "slice", m->slice);
	leat_str_addf(json, ",\n\"number\":%" PRIu64 ",\n\"fields\":[", m->number);
	for (size_t i = 0; i < m->fields; i++) {
		leat_str_add(json, i ? ",\n[" : "\n[");
		add_text(json, m->field[i].name);
		leat_str_add(json, ",");
		add_text(json, m->field[i].value);
		leat_str_add(json, "]");
	}
	leat_str_addf(json, "],\n\"learned\":%zu", m->learned);
	add_member(json, "output", leat_content_text(&m->output, content));
	add_digest(json, "log", &m->log);
	add_member(json, "run", m->run);
	leat_str_addf(json, ",\n\"begun\":%.6f,\n\"seconds\":%.6f,\n\"cpu_s\":%.6f,\n\"peak_bytes\":%" PRIu64,
	              m->begun_s, m->seconds, m->cpu_s, m->peak_bytes);
	leat_str_addf(json, ",\n\"cpus\":%u,\n\"threads\":%u,\n\"attempts\":%u", m->cpus, m->threads, m->attempts);
	add_member(json, "metrics", m->metrics);
	add_member(json, "warning", m->warning);
	if (m->profile && *m->profile)
		add_member(json, "profile", m->profile);
	leat_str_add(json, "}\n");
}

/* Reading: texts are measured first, and then copied into the same block as the manifest. */
struct reader {
	const json_t *root;
	const char *bad; /* the first member that is missing or wrong */
	char *text;      /* NULL: measuring */
	size_t used;
};

static void
blame(struct reader *reader, const char *name)
{
	if (!reader->bad)
		reader->bad = name;
}

/* The bytes of {"hex": "..."}, without NUL. */
static bool
copy_hex(const char *hex, size_t len, char *out)
{
	if (len == 0 || len % 2)
		return false;
	for (size_t i = 0; i < len; i += 2) {
		int high = leat_hex_digit(hex[i]), low = high < 0 ? -1 : leat_hex_digit(hex[i + 1]);

		if (low < 0 || (high | low) == 0)
			return false;
		if (out)
			out[i / 2] = (char)(high << 4 | low);
	}
	return true;
}

static const char *
read_text(struct reader *reader, const json_t *value, const char *name)
{
	const json_t *hex = json_is_object(value) ? json_object_get(value, "hex") : NULL;
	const json_t *string = hex ? hex : value;
	size_t len = json_string_length(string);
	char *out = reader->text ? reader->text + reader->used : NULL;

	if (!json_is_string(string) || strlen(json_string_value(string)) != len) {
		blame(reader, name);
		return "";
	}
	if (!hex && out)
		memcpy(out, json_string_value(string), len);
	if (hex && !copy_hex(json_string_value(string), len, out)) {
		blame(reader, name);
		return "";
	}
	if (hex)
		len /= 2;
	if (out)
		out[len] = '\0';
	reader->used += len + 1;
	return out ? out : "";
}

static const char *
text_member(struct reader *reader, const char *name)
{
	return read_text(reader, json_object_get(reader->root, name), name);
}

static uint64_t
integer_member(struct reader *reader, const char *name, uint64_t max)
{
	const json_t *value = json_object_get(reader->root, name);

	if (json_is_integer(value) && json_integer_value(value) >= 0 && (uint64_t)json_integer_value(value) <= max)
		return (uint64_t)json_integer_value(value);
	blame(reader, name);
	return 0;
}

static double
number_member(struct reader *reader, const char *name)
{
	const json_t *value = json_object_get(reader->root, name);

	if (json_is_number(value) && isfinite(json_number_value(value)))
		return json_number_value(value);
	blame(reader, name);
	return 0;
}

static void
digest_member(struct reader *reader, const char *name, struct leat_digest *digest)
{
	const char *hex = json_string_value(json_object_get(reader->root, name));

	if (!hex || !leat_digest_parse(hex, digest))
		blame(reader, name);
}

static void
read_fields(struct reader *reader, const json_t *array, struct leat_key_field *field)
{
	struct leat_key_field none;
	size_t i;
	json_t *pair;

	json_array_foreach(array, i, pair)
	{
		struct leat_key_field *to = field ? &field[i] : &none;

		if (json_array_size(pair) != 2)
			blame(reader, "fields");
		to->name = read_text(reader, json_array_get(pair, 0), "fields");
		to->value = read_text(reader, json_array_get(pair, 1), "fields");
	}
}

static void
read_members(struct reader *reader, struct leat_manifest *m, struct leat_key_field *field)
{
	const char *output = json_string_value(json_object_get(reader->root, "output"));

	integer_member(reader, "leat", 1);
	digest_member(reader, "key", &m->key);
	m->step = text_member(reader, "step");
	m->slice = text_member(reader, "slice");
	m->number = integer_member(reader, "number", LEAT_NUMBER_MAX);
	read_fields(reader, json_object_get(reader->root, "fields"), field);
	m->learned = integer_member(reader, "learned", m->fields);
	if (!output || leat_content_parse(output, &m->output, NULL) != LEAT_OK)
		blame(reader, "output");
	digest_member(reader, "log", &m->log);
	m->run = text_member(reader, "run");
	m->begun_s = number_member(reader, "begun");
	m->seconds = number_member(reader, "seconds");
	m->cpu_s = number_member(reader, "cpu_s");
	m->peak_bytes = integer_member(reader, "peak_bytes", INT64_MAX);
	m->cpus = (unsigned)integer_member(reader, "cpus", UINT32_MAX);
	m->threads = (unsigned)integer_member(reader, "threads", UINT32_MAX);
	m->attempts = (unsigned)integer_member(reader, "attempts", UINT32_MAX);
	m->metrics = text_member(reader, "metrics");
	m->warning = text_member(reader, "warning");
	m->profile = json_object_get(reader->root, "profile") ? text_member(reader, "profile") : "";
}

static enum leat_status
read_manifest(const json_t *root, struct leat_mem *mem, struct leat_manifest **out, struct leat_err *err)
{
	const json_t *array = json_object_get(root, "fields");
	struct reader reader = {.root = root};
	struct leat_manifest sized = {.fields = json_array_size(array)}, *m;
	size_t head = sizeof(sized) + sized.fields * sizeof(struct leat_key_field);

	if (!json_is_object(root) || !json_is_array(array) || sized.fields > MAX_FIELDS)
		return leat_fail(err, LEAT_DATA, "a manifest is damaged: it has no list of fields");
	read_members(&reader, &sized, NULL);
	if (reader.bad)
		return leat_fail(err, LEAT_DATA, "a manifest is damaged at '%s'", reader.bad);
	m = leat_alloc(mem, head + reader.used);
	if (!m)
		return leat_fail_mem(err, mem, head + reader.used, "a manifest");
	m->fields = sized.fields;
	m->field = (struct leat_key_field *)(m + 1);
	reader.text = (char *)m + head;
	reader.used = 0;
	read_members(&reader, m, (struct leat_key_field *)(m + 1));
	*out = m;
	return LEAT_OK;
}

enum leat_status
leat_manifest_parse(const char *json, size_t len, struct leat_mem *mem, struct leat_manifest **manifest,
                    struct leat_err *err)
{
	json_t *root = json_loadb(json, len, JSON_REJECT_DUPLICATES, NULL);
	struct leat_digest key;
	enum leat_status status;

	*manifest = NULL;
	if (!root)
		return leat_fail(err, LEAT_DATA, "a manifest is damaged: it is not JSON");
	status = read_manifest(root, mem, manifest, err);
	json_decref(root);
	if (status == LEAT_OK)
		status = leat_key_of((*manifest)->field, (*manifest)->fields, &key, err);
	if (status == LEAT_OK && !leat_digest_equal(&key, &(*manifest)->key))
		status = leat_fail(err, LEAT_DATA, "a manifest is damaged: its key is not that of its fields");
	if (status != LEAT_OK) {
		leat_manifest_free(*manifest, mem);
		*manifest = NULL;
	}
	return status;
}

void
leat_manifest_free(struct leat_manifest *manifest, struct leat_mem *mem)
{
	leat_free(mem, manifest);
}
