/* test_project.c - leat.yaml: what every key means, the graph of steps, and running out of memory */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include "step/kind.h"
#include "step/project.h"
#include "step/project_keys.h"
#include "table/duckdb.h"
#include "support/temp.h"

static struct leat_mem mem;
static struct leat_project *project;
static struct temp temp;

static int
setup(void **state)
{
	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	temp_make(&temp);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	leat_project_close(project);
	project = NULL;
	temp_remove(&temp);
	assert_int_equal(mem.used, 0);
	return 0;
}

static void
parse(const char *text)
{
	struct leat_err err;

	leat_project_close(project);
	leat_err_clear(&err);
	if (leat_project_parse(&project, &mem, temp.folder, text, strlen(text), &err) != LEAT_OK)
		fail_msg("%s", err.text);
}

static const struct leat_step *
step(const char *name)
{
	const struct leat_step *found = leat_project_step(project, name);

	assert_non_null(found);
	return found;
}

static const char whole[] = "sources:\n"
			    "  epochs: ./raw/subject-{subject}.npy\n"
			    "  layout: /data/layout.csv\n"
			    "steps:\n"
			    "  group:\n"
			    "    run: python group.py \"$decode\" --out \"$out\"\n"
			    "    in: decode\n"
			    "  decode:\n"
			    "    run: |\n"
			    "      python decode.py \"$epochs\" \"$layout\"\n"
			    "      mv x \"$out\"\n"
			    "    in: [epochs, layout]\n"
			    "    slices: {subject: 1..18, bin: 1..20}\n"
			    "    params: {folds: 10, rate: 1e-3, on: no, text: 'a b', none: ''}\n"
			    "    env: {LANG: C, CUDA_VISIBLE_DEVICES: , EMPTY: ''}\n"
			    "    code: ['src/**', lib/x.py]\n"
			    "    suffix: .npy\n"
			    "    seed: 18446744073709551615\n"
			    "    cpus: 4\n"
			    "    memory: 4GiB\n"
			    "    timeout: 1.5h\n"
			    "    retries: 2\n"
			    "    feed: folder('$layout') | batch(2)\n"
			    "    resume: true\n";

static void
every_key_reaches_its_step(void **state)
{
	const struct leat_step *s;

	(void)state;
	parse(whole);
	s = step("decode");
	assert_string_equal(s->kind->name, "run");
	assert_string_equal(s->text, "python decode.py \"$epochs\" \"$layout\"\nmv x \"$out\"\n");
	assert_int_equal(s->line, 8);
	assert_int_equal(s->edges, 2);
	assert_string_equal(s->edge[1].name, "layout");
	assert_int_equal(s->edge[1].source, 1);
	assert_int_equal(s->edge[1].step, SIZE_MAX);
	assert_int_equal(s->slices.count, 360);
	assert_string_equal(s->code[0], "src/**");
	assert_string_equal(s->code[1], "lib/x.py");
	assert_null(s->code[2]);
	assert_string_equal(s->suffix, ".npy");
	assert_true(s->seed == UINT64_MAX);
	assert_int_equal(s->cpus, 4);
	assert_int_equal(s->memory_bytes, UINT64_C(4) << 30);
	assert_true(s->timeout_s == 5400);
	assert_int_equal(s->retries, 2);
	assert_string_equal(s->feed, "folder('$layout') | batch(2)");
	assert_true(s->resume);
}

static void
texts_are_never_guessed_at(void **state)
{
	static const char *const values[] = {"10", "1e-3", "no", "a b", ""};
	const struct leat_step *s;

	(void)state;
	parse(whole);
	s = step("decode");
	assert_int_equal(s->params, 5);
	for (size_t i = 0; i < 5; i++)
		assert_string_equal(s->param[i].value, values[i]);
	assert_string_equal(s->param[2].name, "on");
	assert_int_equal(s->envs, 3);
	assert_string_equal(s->env[0].value, "C");
	assert_null(s->env[1].value); /* passed on */
	assert_string_equal(s->env[2].value, "");
}

static void
what_is_not_given_has_its_default(void **state)
{
	const struct leat_step *s;

	(void)state;
	parse(whole);
	s = step("group");
	assert_int_equal(s->slices.count, 1);
	assert_int_equal(s->params + s->envs, 0);
	assert_string_equal(s->code[0], leat_key_find(leat_step_keys, "code")->def);
	assert_null(s->code[1]);
	assert_string_equal(s->suffix, "");
	assert_string_equal(s->feed, "");
	assert_int_equal(s->seed, 0);
	assert_int_equal(s->cpus, 1);
	assert_int_equal(s->retries, 0);
	assert_true(s->timeout_s == 0 && s->memory_bytes == 0 && !s->resume);
}

static void
sources_keep_their_pattern_and_line(void **state)
{
	(void)state;
	parse(whole);
	assert_int_equal(project->sources, 2);
	assert_string_equal(project->source[0].pattern, "raw/subject-{subject}.npy");
	assert_string_equal(project->source[1].pattern, "/data/layout.csv");
	assert_int_equal(project->source[1].line, 3);
}

static void
steps_are_in_the_order_of_the_file_and_sorted_by_what_they_read(void **state)
{
	(void)state;
	parse(whole);
	assert_string_equal(project->step[0].name, "group");
	assert_int_equal(project->step[0].edge[0].step, 1);
	assert_int_equal(project->step[0].edge[0].source, SIZE_MAX);
	assert_int_equal(project->order[0], 1);
	assert_int_equal(project->order[1], 0);
}

/* A chain that is deeper than any stack of calls, written backwards. */
static void
a_chain_of_many_steps_is_sorted(void **state)
{
	enum { STEPS = 20000 };
	struct leat_str text;

	(void)state;
	leat_str_init(&text, &mem, SIZE_MAX);
	leat_str_add(&text, "steps:\n");
	for (int i = STEPS; i > 0; i--)
		leat_str_addf(&text, " s%d: {run: x, in: s%d}\n", i, i - 1);
	leat_str_add(&text, " s0: {run: x}\n");
	parse(leat_str_text(&text));
	leat_str_free(&text);
	assert_int_equal(project->steps, STEPS + 1);
	for (size_t i = 0; i <= STEPS; i++)
		assert_int_equal(project->order[i], STEPS - i);
	assert_ptr_equal(step("s777"), &project->step[STEPS - 777]);
}

static void
a_step_is_found_by_name_or_the_nearest_is_named(void **state)
{
	const struct leat_step *found;
	struct leat_err err;

	(void)state;
	parse(whole);
	assert_int_equal(leat_project_find(project, "group", &found, NULL), LEAT_OK);
	assert_ptr_equal(found, &project->step[0]);
	leat_err_clear(&err);
	assert_int_equal(leat_project_find(project, "groop", &found, &err), LEAT_INVALID);
	assert_null(found);
	assert_string_equal(err.text, "there is no step 'groop', did you mean 'group'?");
}

/* ---- files ---- */

static void
a_project_is_opened_by_its_file_or_folder(void **state)
{
	char file[600], folder[600];

	(void)state;
	temp_write(&temp, "leat.yaml", whole, strlen(whole));
	snprintf(file, sizeof(file), "%s/leat.yaml", temp.folder);
	assert_int_equal(leat_project_open(&project, &mem, file, NULL), LEAT_OK);
	assert_non_null(realpath(temp.folder, folder));
	assert_string_equal(project->folder, folder);
	leat_project_close(project);
	assert_int_equal(leat_project_open(&project, &mem, temp.folder, NULL), LEAT_OK);
	assert_non_null(strstr(project->file, "/leat.yaml"));
	assert_int_equal(*project->file, '/');
}

static void
a_file_that_cannot_be_opened_is_told(void **state)
{
	char expected[700];
	struct leat_err err;

	(void)state;
	leat_err_clear(&err);
	assert_int_equal(leat_project_open(&project, &mem, temp.folder, &err), LEAT_IO);
	snprintf(expected, sizeof(expected), "there is no leat.yaml in '%s'; 'leat init' writes one", temp.folder);
	assert_string_equal(err.text, expected);
	leat_err_clear(&err);
	assert_int_equal(leat_project_open(&project, &mem, temp_path(&temp, "none"), &err), LEAT_IO);
	assert_non_null(strstr(err.text, "No such file or directory"));
	mkdir(temp_path(&temp, "leat.yaml"), 0777);
	leat_err_clear(&err);
	assert_int_equal(leat_project_open(&project, &mem, temp.folder, &err), LEAT_DATA);
	assert_non_null(strstr(err.text, "leat.yaml' is not a file"));
}

/* ---- memory ---- */

static void
every_allocation_may_fail(void **state)
{
	struct leat_project *none;
	struct leat_err err;
	long n = 0;

	(void)state;
	temp_write(&temp, "rows.csv", "a,b\n1,2\n3,4\n", 12);
	temp_write(&temp, "lines.txt", "x\ny\n", 4);
	temp_write(&temp, "d.sql", "WITH q AS (SELECT 1) FROM q, b", 30);
	for (;; n++) {
		static const char text[] =
			"sources: {s: 'x-{p}'}\n"
			"steps:\n"
			"  a: {run: echo $s $p $k, in: s, params: {k: 1}, env: [Z], code: [q],\n"
			"      slices: {p: 1..3, q: [u, v], r: {rows: rows.csv}, f: {glob: '*.txt'},\n"
			"               l: {lines: lines.txt}}}\n"
			"  b: {run: cat $a, in: a}\n"
			"  c: {sql: 'SELECT x FROM B JOIN d', key: [x, y]}\n"
			"  d: {sql: d.sql, key: x}\n";
		enum leat_status status;

		leat_err_clear(&err);
		atomic_store(&mem.fail_after, n);
		status = leat_project_parse(&none, &mem, temp.folder, text, strlen(text), &err);
		atomic_store(&mem.fail_after, -1);
		if (status == LEAT_OK)
			break;
		assert_int_equal(status, LEAT_NOMEM);
		assert_int_equal(err.status, LEAT_NOMEM);
		assert_null(none);
		assert_int_equal(mem.used, 0);
		assert_true(n < 1000);
	}
	assert_true(n > 10);
	leat_project_close(none);
}

static void
opening_a_file_survives_every_failed_allocation(void **state)
{
	struct leat_err err;
	long n = 0;

	(void)state;
	temp_write(&temp, "leat.yaml", whole, strlen(whole));
	for (;; n++) {
		enum leat_status status;

		leat_err_clear(&err);
		atomic_store(&mem.fail_after, n);
		status = leat_project_open(&project, &mem, temp.folder, &err);
		atomic_store(&mem.fail_after, -1);
		if (status == LEAT_OK)
			break;
		assert_int_equal(status, LEAT_NOMEM);
		assert_int_equal(mem.used, 0);
	}
	assert_true(n > 5);
}

/* ---- the table of keys ---- */

static void
the_schema_is_json_and_has_every_key(void **state)
{
	struct leat_str text;
	json_t *schema, *keys;

	(void)state;
	leat_str_init(&text, &mem, SIZE_MAX);
	leat_project_schema(&text);
	schema = json_loads(leat_str_text(&text), JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(schema);
	keys = json_object_get(json_object_get(json_object_get(schema, "definitions"), "step"), "properties");
	for (const struct leat_key *k = leat_step_keys; k->name; k++)
		assert_non_null(json_object_get(json_object_get(keys, k->name), "description"));
	for (size_t i = 0; leat_step_kinds[i]; i++)
		assert_int_equal(json_object_get(keys, leat_step_kinds[i]->name) == NULL, leat_step_kinds[i]->source);
	json_decref(schema);
	leat_str_free(&text);
}

static void
shards_read_what_they_name(void **state)
{
	const struct leat_step *s;

	(void)state;
	parse("sources: {table: x.parquet, other: y}\n"
	      "steps:\n"
	      "  kept: {shards: table, count: 3}\n"
	      "  mixed: {count: 16, seed: 0, format: tfrecord, shards: made, in: [other]}\n"
	      "  made: {run: x, in: table}\n");
	s = step("kept");
	assert_int_equal(s->edges, 1);
	assert_string_equal(s->edge[0].name, "table");
	assert_int_equal(s->edge[0].source, 0);
	assert_int_equal(s->count, 3);
	assert_false(s->has_seed);
	assert_string_equal(s->format, "tfrecord");
	s = step("mixed");
	assert_int_equal(s->edges, 2);
	assert_string_equal(s->edge[0].name, "other");
	assert_string_equal(s->edge[1].name, "made");
	assert_ptr_equal(&project->step[s->edge[1].step], step("made"));
	assert_true(s->has_seed);
}

/* The command is part of the key: no paths, threads or memory. */
static void
the_command_of_shards_has_what_decides_about_its_bytes(void **state)
{
	struct leat_str command;
	const struct leat_step *s;
	struct leat_err err;

	(void)state;
	parse("sources: {table: x}\nsteps: {a: {shards: table, count: 3, seed: 7, cpus: 4, memory: 1GiB}}\n");
	s = step("a");
	leat_str_init(&command, &mem, SIZE_MAX);
	assert_int_equal(s->kind->command(s, &command, &err), LEAT_OK);
	assert_string_equal(leat_str_text(&command),
	                    "exec \"$LEAT_COMMAND\" shards --plain --format tfrecord --count 3 --seed 7 --threads "
	                    "\"$cpus\" ${LEAT_MEMORY:+--memory $LEAT_MEMORY} --output \"$out\" \"$table\"");
	leat_str_free(&command);
}

static void
a_query_reads_the_tables_it_names(void **state)
{
	const struct leat_step *s;

	(void)state;
	temp_write(&temp, "q.sql", "-- all\nSELECT k FROM Table\n", 26);
	parse("sources: {table: x.parquet, other: y.csv}\n"
	      "steps:\n"
	      "  a: {sql: q.sql, key: k}\n"
	      "  b: {sql: 'WITH t AS (SELECT * FROM a) SELECT k, j FROM t JOIN \"table\" USING (k)', key: [k, j], in: "
	      "other}\n");
	s = step("a");
	assert_string_equal(s->text, "SELECT k\nFROM Table");
	assert_int_equal(s->edges, 1);
	assert_string_equal(s->edge[0].name, "table");
	assert_string_equal(s->suffix, ".parquet");
	assert_string_equal(s->key[0], "k");
	assert_null(s->key[1]);
	assert_null(s->code[0]);
	s = step("b");
	assert_int_equal(s->edges, 3);
	assert_string_equal(s->edge[0].name, "other");
	assert_ptr_equal(&project->step[s->edge[1].step], step("a"));
	assert_string_equal(s->edge[2].name, "table");
	assert_string_equal(s->key[1], "j");
}

static void
features_are_read_in_their_normal_form(void **state)
{
	const struct leat_step *s;

	(void)state;
	parse("sources: {table: x.parquet}\n"
	      "steps:\n"
	      "  a:\n"
	      "    split: {by: [user, 'a b'], train: 80%, test: rest}\n"
	      "    columns:\n"
	      "      amount: 'clip( p01 ,p99 ) # why'\n"
	      "      it's: keep\n"
	      "    features: table\n"
	      "  b: {features: table, split: {by: ts, train: before 2024-05-01, test: rest}, columns: {x: log1p}}\n");
	s = step("a");
	assert_int_equal(s->edges, 1);
	assert_string_equal(s->edge[0].name, "table");
	assert_null(s->code[0]);
	assert_string_equal(s->columns, "'amount': clip(low=[p01], high=[p99]); 'it\\'s': keep");
	assert_string_equal(s->split, "'user', 'a b': 'train' 80%, 'test' rest");
	assert_string_equal(step("b")->split, "'ts': 'train' before '2024-05-01', 'test' rest");
}

/* The rest of a step that can have the key. */
static const char *
step_for(const struct leat_key *key)
{
	if (!key->kind)
		return "run: x";
	if (!strcmp(key->name, "at"))
		return "asof: epochs\n    key: a\n    take: {users: {at: ts, columns: a}}";
	if (!strcmp(key->name, "take"))
		return "asof: epochs\n    at: ts\n    key: a";
	if (leat_key_is_of(key, "sql") && !strcmp(key->name, "key"))
		return "sql: SELECT a, b FROM epochs";
	if (leat_key_is_of(key, "sql") && !strcmp(key->name, "checks"))
		return "sql: SELECT a, b FROM epochs\n    key: a\n    check: {a: unique}";
	if (!strcmp(key->name, "by"))
		return "sql: SELECT e.user FROM events e JOIN users u ON e.user = u.id\n    key: user";
	if (!strcmp(key->name, "partitions"))
		return "sql: SELECT user FROM events\n    key: user\n    by: {events: user}";
	if (leat_key_is_of(key, "sql"))
		return "sql: SELECT a, b FROM epochs\n    key: a";
	if (!strcmp(key->kind, "features"))
		return strcmp(key->name, "columns") ? "features: epochs\n    columns: {a: log1p}" : "features: epochs";
	assert_string_equal(key->kind, "shards");
	if (!strcmp(key->name, "images"))
		return "shards: epochs\n    count: 2\n    root: layout";
	if (!strcmp(key->name, "root") || !strcmp(key->name, "resize") || !strcmp(key->name, "quality"))
		return strcmp(key->name, "root") ? "shards: epochs\n    count: 2\n    images: path\n    root: layout"
		                                 : "shards: epochs\n    count: 2\n    images: path";
	if (!strcmp(key->name, "rejects"))
		return "shards: epochs\n    count: 2\n    images: path\n    root: layout";
	return strcmp(key->name, "count") ? "shards: epochs\n    count: 2" : "shards: epochs";
}

/* The reference is no place for a key that does not work. */
static void
every_example_of_a_key_can_be_read(void **state)
{
	char text[1000];

	(void)state;
	for (const struct leat_key *k = leat_step_keys; k->name; k++) {
		if ((!strcmp(k->name, "by") || !strcmp(k->name, "partitions")) && leat_duckdb_load(NULL) != LEAT_OK)
			continue;
		snprintf(text, sizeof(text),
		         "sources: {epochs: x, layout: y, users: z, events: e, prices: p, photos: f}\nsteps:\n  a:\n   "
		         " %s\n    "
		         "%s: %s\n",
		         step_for(k), k->name, k->example);
		parse(text);
	}
	for (const struct leat_key *k = leat_file_keys; k->name; k++) {
		snprintf(text, sizeof(text), "%s: %s\n%s", k->name, k->example,
		         k->type == LEAT_KEY_STEPS ? "sources: {table: x}\n" : "steps: {a: {run: x}}\n");
		parse(text);
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_key_reaches_its_step, setup, teardown),
		cmocka_unit_test_setup_teardown(texts_are_never_guessed_at, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_not_given_has_its_default, setup, teardown),
		cmocka_unit_test_setup_teardown(sources_keep_their_pattern_and_line, setup, teardown),
		cmocka_unit_test_setup_teardown(steps_are_in_the_order_of_the_file_and_sorted_by_what_they_read, setup,
	                                        teardown),
		cmocka_unit_test_setup_teardown(a_chain_of_many_steps_is_sorted, setup, teardown),
		cmocka_unit_test_setup_teardown(a_step_is_found_by_name_or_the_nearest_is_named, setup, teardown),
		cmocka_unit_test_setup_teardown(a_project_is_opened_by_its_file_or_folder, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_that_cannot_be_opened_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(every_allocation_may_fail, setup, teardown),
		cmocka_unit_test_setup_teardown(opening_a_file_survives_every_failed_allocation, setup, teardown),
		cmocka_unit_test_setup_teardown(the_schema_is_json_and_has_every_key, setup, teardown),
		cmocka_unit_test_setup_teardown(a_query_reads_the_tables_it_names, setup, teardown),
		cmocka_unit_test_setup_teardown(shards_read_what_they_name, setup, teardown),
		cmocka_unit_test_setup_teardown(the_command_of_shards_has_what_decides_about_its_bytes, setup,
	                                        teardown),
		cmocka_unit_test_setup_teardown(features_are_read_in_their_normal_form, setup, teardown),
		cmocka_unit_test_setup_teardown(every_example_of_a_key_can_be_read, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
