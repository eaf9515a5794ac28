/* test_manifest.c - a manifest gives back what was recorded, and proves its key */
#include "support/cas.h"

#include "cas/inside.h"

static const struct leat_content output = {.digest = {{1, 2, 3}}, .bytes = 7, .kind = LEAT_CONTENT_FILE};

static void
write_json(struct store *store, const struct leat_manifest *manifest, struct leat_str *json)
{
	leat_str_init(json, &store->mem, SIZE_MAX);
	leat_manifest_write(json, manifest);
	assert_false(json->failed);
}

static void
all_of_it_comes_back(void **state)
{
	struct store *store = *state;
	struct action action;
	struct leat_manifest *m;
	struct leat_str json;

	store_action(&action, "cat \"$in\"\n\x01\xff\xfe", "caf\xc3\xa9", &output);
	action.field[1].name = "import.\xe9.py";
	must(leat_key_of(action.field, 2, &action.manifest.key, err));
	action.manifest.slice = "subject=3,bin=7";
	action.manifest.number = 42;
	action.manifest.peak_bytes = 1ull << 40;
	action.manifest.threads = 5;
	action.manifest.metrics = "{\"accuracy\": 0.5}";
	action.manifest.warning = "5 threads on 1 cpu";
	write_json(store, &action.manifest, &json);
	must(leat_manifest_parse(json.text, json.len, &store->mem, &m, err));
	assert_true(leat_digest_equal(&m->key, &action.manifest.key));
	assert_true(leat_content_equal(&m->output, &output));
	assert_int_equal(m->output.bytes, 7);
	assert_string_equal(m->slice, "subject=3,bin=7");
	assert_int_equal(m->number, 42);
	assert_int_equal(m->fields, 2);
	assert_int_equal(m->learned, 1);
	assert_string_equal(m->field[0].value, "cat \"$in\"\n\x01\xff\xfe");
	assert_string_equal(m->field[1].name, "import.\xe9.py");
	assert_string_equal(m->field[1].value, "caf\xc3\xa9");
	assert_int_equal(m->peak_bytes, 1ull << 40);
	assert_int_equal(m->threads, 5);
	assert_true(m->seconds == 1.5 && m->begun_s == 1.7e9);
	assert_string_equal(m->metrics, "{\"accuracy\": 0.5}");
	assert_string_equal(m->warning, "5 threads on 1 cpu");
	leat_manifest_free(m, &store->mem);
	leat_str_free(&json);
}

/* Every byte is removed, and every one changed. */
static void
damage_is_an_error_or_changes_no_field(void **state)
{
	struct store *store = *state;
	struct action action;
	struct leat_manifest *m;
	struct leat_str json;
	char *copy;
	size_t refused = 0;

	store_action(&action, "run", "x", &output);
	write_json(store, &action.manifest, &json);
	copy = malloc(json.len);
	for (size_t i = 0; i < json.len; i++) {
		assert_int_not_equal(leat_manifest_parse(json.text, i, &store->mem, &m, NULL),
		                     i + 1 == json.len ? LEAT_DATA
		                                       : LEAT_OK); /* without the last newline it is whole */
		leat_manifest_free(m, &store->mem);
		memcpy(copy, json.text, json.len);
		copy[i] ^= 1;
		if (leat_manifest_parse(copy, json.len, &store->mem, &m, NULL) != LEAT_OK) {
			assert_null(m);
			refused++;
			continue;
		}
		assert_string_equal(m->field[0].value, "run");
		assert_string_equal(m->field[1].value, "x");
		leat_manifest_free(m, &store->mem);
	}
	assert_true(refused > json.len / 2);
	free(copy);
	leat_str_free(&json);
}

static void
hostile_json_is_refused(void **state)
{
	struct store *store = *state;
	static const char *const texts[] = {"",
	                                    "[]",
	                                    "{}",
	                                    "{\"fields\":{}}",
	                                    "{\"fields\":[1]}",
	                                    "{\"fields\":[[\"a\"]]}",
	                                    "{\"fields\":[[\"a\",{\"hex\":\"0\"}]]}",
	                                    "nul",
	                                    "\"\\u0000\""};
	struct leat_manifest *m;
	char deep[5000];

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		assert_int_equal(leat_manifest_parse(texts[i], strlen(texts[i]), &store->mem, &m, NULL), LEAT_DATA);
	memset(deep, '[', sizeof deep);
	assert_int_equal(leat_manifest_parse(deep, sizeof deep, &store->mem, &m, NULL), LEAT_DATA);
}

static void
other_fields_are_another_key(void **state)
{
	const struct leat_key_field one = {"a", "bc"}, other = {"ab", "c"}, two[] = {{"a", "b"}, {"c", ""}};
	struct leat_digest key[3];

	(void)state;
	must(leat_key_of(&one, 1, &key[0], err));
	must(leat_key_of(&other, 1, &key[1], err));
	must(leat_key_of(two, 2, &key[2], err));
	assert_false(leat_digest_equal(&key[0], &key[1]));
	assert_false(leat_digest_equal(&key[0], &key[2]));
}

static void
what_is_recorded_can_be_read(void **state)
{
	struct store *store = *state;
	struct leat_manifest *m;
	struct action action;
	struct leat_content content;

	store_open(store, LEAT_CAS_WRITE);
	content = store_take(store, "result");
	store_action(&action, "run", NULL, &content);
	store_record(store, &action);
	must(leat_cas_manifest(store->cas, &action.manifest.key, &m, err));
	assert_string_equal(m->run, leat_cas_run(store->cas));
	leat_manifest_free(m, &store->mem);
	action.manifest.key.byte[0] ^= 1;
	assert_int_equal(leat_cas_manifest(store->cas, &action.manifest.key, &m, NULL), LEAT_DATA);
	assert_int_equal(leat_cas_record(store->cas, &action.manifest, &content, NULL), LEAT_INVALID);
}

static void
the_same_key_with_another_output_is_told(void **state)
{
	struct store *store = *state;
	struct leat_content first, second, other;
	struct leat_manifest *m;
	struct leat_made made;
	struct action action, again;
	char path[PATH_MAX];

	store_open(store, LEAT_CAS_WRITE);
	first = store_take(store, "first");
	second = store_take(store, "second");
	store_action(&action, "random", NULL, &first);
	store_record(store, &action);
	must(leat_cas_record(store->cas, &action.manifest, &other, err));
	assert_int_equal(other.kind, LEAT_CONTENT_NONE);

	store_action(&again, "random", NULL, &second);
	again.manifest.number = 9;
	again.manifest.run = "x";
	must(leat_cas_record(store->cas, &again.manifest, &other, err));
	assert_true(leat_content_equal(&other, &first));
	assert_true(store_find(store, &action.stem, &made)); /* the first one stays */
	assert_true(leat_content_equal(&made.output, &first));

	leat_cas_blob_path(store->cas, &first.digest, path);
	leat_cas_forget(store->cas, &first);
	must(leat_cas_record(store->cas, &again.manifest, &other, err));
	assert_true(leat_content_equal(&other, &first));
	must(leat_cas_manifest(store->cas, &action.manifest.key, &m, err));
	assert_true(leat_content_equal(&m->output, &second));
	leat_manifest_free(m, &store->mem);
	assert_true(store_find(store, &action.stem, &made));
	assert_true(leat_content_equal(&made.output, &second));
	assert_int_equal(made.number, 9);
}

/* A manifest that somebody else wrote must not use up the numbers of its step. */
static void
huge_numbers_leave_numbers_for_others(void **state)
{
	struct store *store = *state;
	struct leat_content content, other;
	struct leat_manifest *m;
	struct action action;
	struct leat_str json;
	uint64_t number;

	store_open(store, LEAT_CAS_WRITE);
	content = store_take(store, "result");
	store_action(&action, "run", NULL, &content);
	action.manifest.number = LEAT_NUMBER_MAX;
	must(leat_cas_record(store->cas, &action.manifest, &other, err));
	must(leat_index_next_number(store->cas, action.manifest.step, &number, err));
	assert_int_equal(number, 1);
	action.manifest.number = INT64_MAX;
	assert_int_equal(leat_cas_record(store->cas, &action.manifest, &other, NULL), LEAT_INVALID);
	write_json(store, &action.manifest, &json);
	assert_int_equal(leat_manifest_parse(json.text, json.len, &store->mem, &m, NULL), LEAT_DATA);
	leat_str_free(&json);
}

static void
a_damaged_manifest_is_replaced(void **state)
{
	struct store *store = *state;
	struct leat_content content, other;
	struct leat_manifest *m;
	struct action action;
	char name[LEAT_CAS_NAME];
	FILE *file;

	store_open(store, LEAT_CAS_WRITE);
	content = store_take(store, "result");
	store_action(&action, "run", NULL, &content);
	store_record(store, &action);
	leat_cas_name("act", &action.manifest.key, name);
	unlink(store_path(store, "%s", name));
	file = fopen(store_path(store, "%s", name), "w");
	fclose(file);
	assert_int_equal(leat_cas_manifest(store->cas, &action.manifest.key, &m, NULL), LEAT_DATA);
	must(leat_cas_record(store->cas, &action.manifest, &other, err));
	must(leat_cas_manifest(store->cas, &action.manifest.key, &m, err));
	leat_manifest_free(m, &store->mem);
}

#define test(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		test(all_of_it_comes_back),
		test(damage_is_an_error_or_changes_no_field),
		test(hostile_json_is_refused),
		test(other_fields_are_another_key),
		test(what_is_recorded_can_be_read),
		test(the_same_key_with_another_output_is_told),
		test(huge_numbers_leave_numbers_for_others),
		test(a_damaged_manifest_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
