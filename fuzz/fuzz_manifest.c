/* fuzz_manifest.c - a manifest that is accepted is written and read again as the same one
 *
 * The key proves the fields, so random changes would not get past it: with an odd first byte, which is no part of the
 * manifest, the key of its fields is put in. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "cas/inside.h"
#include "table/sketch.h"

static void
must(bool holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "%s\n", what);
		abort();
	}
}

/* The same JSON with the right key, to be freed; NULL: not possible. */
static char *
correct_key(const char *json, size_t len)
{
	json_t *root = json_loadb(json, len, 0, NULL), *fields = json_object_get(root, "fields"), *pair;
	struct leat_sha256 *sha = leat_sha256_new();
	struct leat_digest key;
	char hex[LEAT_SHA256_HEX], *fixed = NULL;
	size_t i;

	json_array_foreach(fields, i, pair)
	{
		const char *name = json_string_value(json_array_get(pair, 0));
		const char *value = json_string_value(json_array_get(pair, 1));

		leat_key_add(sha, name ? name : "", value ? value : "");
	}
	leat_sha256_end(sha, key.byte);
	leat_sha256_free(sha);
	leat_hex(key.byte, sizeof(key.byte), hex);
	if (json_is_object(root) && json_object_set_new(root, "key", json_string(hex)) == 0)
		fixed = json_dumps(root, JSON_COMPACT);
	json_decref(root);
	return fixed;
}

static void
check(const char *json, size_t len)
{
	struct leat_manifest *first, *second;
	struct leat_mem mem;
	struct leat_str text;

	leat_mem_init(&mem, SIZE_MAX);
	if (leat_manifest_parse(json, len, &mem, &first, NULL) != LEAT_OK) {
		must(!first && mem.used == 0, "a refused manifest leaves something");
		return;
	}
	leat_str_init(&text, &mem, SIZE_MAX);
	leat_manifest_write(&text, first);
	must(leat_manifest_parse(leat_str_text(&text), text.len, &mem, &second, NULL) == LEAT_OK,
	     "it cannot be read again");
	must(leat_digest_equal(&first->key, &second->key) && first->number == second->number &&
	             first->learned == second->learned && leat_content_equal(&first->output, &second->output) &&
	             !strcmp(first->step, second->step) && !strcmp(first->slice, second->slice),
	     "it differs when read again");
	leat_manifest_free(first, &mem);
	leat_manifest_free(second, &mem);
	leat_str_free(&text);
	must(mem.used == 0, "memory is left");
}

/* What a manifest's "profile" may hold. */
static void
check_sketch(const char *json, size_t len)
{
	struct leat_sketch first, second;
	struct leat_mem mem;
	json_t *again;
	char *text;

	leat_mem_init(&mem, SIZE_MAX);
	if (leat_sketch_read(&first, json, len, &mem, NULL) == LEAT_OK) {
		again = leat_sketch_json(&first);
		text = json_dumps(again, JSON_COMPACT);
		must(text && leat_sketch_read(&second, text, strlen(text), &mem, NULL) == LEAT_OK,
		     "a sketch cannot be read again");
		must(first.columns == second.columns && first.rows == second.rows, "a sketch differs when read again");
		leat_sketch_free(&second);
		json_decref(again);
		free(text);
	}
	leat_sketch_free(&first);
	must(mem.used == 0, "memory is left");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *fixed;

	if (size == 0)
		return 0;
	check((const char *)data + 1, size - 1);
	check_sketch((const char *)data + 1, size - 1);
	fixed = data[0] & 1 ? correct_key((const char *)data + 1, size - 1) : NULL;
	if (fixed)
		check(fixed, strlen(fixed));
	free(fixed);
	return 0;
}
