/* test_project_sources.c - sources with declared columns in leat.yaml: steps of their own name, sliced by file */
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
	mkdir(temp_path(&temp, "raw"), 0777);
	temp_write(&temp, "raw/e-1.csv", "x", 1);
	temp_write(&temp, "raw/e-2.csv", "x", 1);
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

static const char whole[] = "steps:\n"
			    "  sum: {run: 'cat $events > $out', in: [events, users]}\n"
			    "sources:\n"
			    "  events:\n"
			    "    files: ./raw/e-*.csv\n"
			    "    columns: {user: int64, 'a b': 'decimal(10, 2)', \"it's\": text}\n"
			    "    rejects: 0.1%\n"
			    "    delimiter: tab\n"
			    "    header: false\n"
			    "    null: [NA, '-']\n"
			    "  users: {files: raw/users.parquet}\n";

static void
a_source_with_columns_is_a_step_with_an_action_for_each_file(void **state)
{
	const struct leat_step *events, *sum;

	(void)state;
	parse(whole);
	assert_int_equal(project->sources, 1);
	assert_string_equal(project->source[0].name, "users");
	assert_string_equal(project->source[0].pattern, "raw/users.parquet");
	assert_int_equal(project->steps, 2);
	events = leat_project_step(project, "events");
	assert_non_null(events);
	assert_string_equal(events->kind->name, "load");
	assert_string_equal(events->loads, "raw/e-*.csv");
	assert_string_equal(events->text,
	                    "--columns='user int64, \"a b\" decimal(10,2), it'\\''s text' --rejects='0.1%' "
	                    "--delimiter='tab' --no-header --null='NA' --null='-'");
	assert_int_equal(events->line, 4);
	assert_int_equal(events->slices.count, 2);
	assert_true(events->slices.variable[0].is_file);
	assert_string_equal(events->slices.variable[0].name, "file");
	assert_string_equal(leat_slice_value(&events->slices, 1, 0), "raw/e-2.csv");
	assert_null(events->code[0]);
	sum = leat_project_step(project, "sum");
	assert_null(sum->loads);
	assert_int_equal(sum->edge[0].step, (size_t)(events - project->step));
	assert_int_equal(sum->edge[1].source, 0);
	assert_ptr_equal(&project->step[project->order[0]], events);
}

static void
a_project_may_only_load(void **state)
{
	(void)state;
	parse("sources: {e: {files: raw/e-1.csv, columns: {x: text}}}\n");
	assert_int_equal(project->steps, 1);
	assert_int_equal(project->step[0].slices.count, 1);
}

/* The command holds what decides about the result, and no path of this machine. */
static void
the_command_is_the_same_wherever_the_project_is(void **state)
{
	const struct leat_step *events;
	struct leat_str command;
	struct leat_err err;

	(void)state;
	parse(whole);
	events = leat_project_step(project, "events");
	leat_str_init(&command, &mem, 4096);
	leat_err_clear(&err);
	if (events->kind->command(events, &command, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	assert_non_null(strstr(leat_str_text(&command), "exec \"$LEAT_COMMAND\" load --columns='user int64, "));
	assert_non_null(strstr(leat_str_text(&command), " --out \"$out\" \"$file\""));
	assert_null(strstr(leat_str_text(&command), temp.folder));
	leat_str_free(&command);
}

static void
load_is_no_key_of_a_step(void **state)
{
	static const char text[] = "steps: {a: {load: x}}\n";
	struct leat_err err;

	(void)state;
	leat_err_clear(&err);
	assert_int_equal(leat_project_parse(&project, &mem, temp.folder, text, strlen(text), &err), LEAT_SPEC);
	assert_non_null(strstr(err.text, "step 'a' has no key 'load'"));
}

static void
every_allocation_may_fail(void **state)
{
	struct leat_err err;
	long n = 0;

	(void)state;
	for (;; n++) {
		enum leat_status status;

		leat_err_clear(&err);
		atomic_store(&mem.fail_after, n);
		status = leat_project_parse(&project, &mem, temp.folder, whole, strlen(whole), &err);
		atomic_store(&mem.fail_after, -1);
		if (status == LEAT_OK)
			break;
		assert_int_equal(status, LEAT_NOMEM);
		assert_int_equal(mem.used, 0);
	}
	assert_true(n > 10);
}

static void
the_schema_has_every_key_of_a_source(void **state)
{
	struct leat_str text;
	json_t *schema, *keys;

	(void)state;
	leat_str_init(&text, &mem, SIZE_MAX);
	leat_project_schema(&text);
	schema = json_loads(leat_str_text(&text), JSON_REJECT_DUPLICATES, NULL);
	leat_str_free(&text);
	assert_non_null(schema);
	keys = json_object_get(json_object_get(json_object_get(schema, "definitions"), "source"), "properties");
	for (const struct leat_key *k = leat_source_keys; k->name; k++)
		assert_non_null(json_object_get(json_object_get(keys, k->name), "description"));
	json_decref(schema);
}

static void
every_example_of_a_key_can_be_read(void **state)
{
	char text[1000];

	(void)state;
	temp_write(&temp, "raw/events-1.csv.gz", "x", 1);
	for (const struct leat_key *k = leat_source_keys; k->name; k++) {
		snprintf(text, sizeof(text), "sources:\n  e:\n%s%s    %s: %s\n",
		         strcmp(k->name, "files") ? "    files: raw/e-1.csv\n" : "",
		         strcmp(k->name, "columns") ? "    columns: {x: text}\n" : "", k->name, k->example);
		parse(text);
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_source_with_columns_is_a_step_with_an_action_for_each_file, setup,
	                                        teardown),
		cmocka_unit_test_setup_teardown(a_project_may_only_load, setup, teardown),
		cmocka_unit_test_setup_teardown(the_command_is_the_same_wherever_the_project_is, setup, teardown),
		cmocka_unit_test_setup_teardown(load_is_no_key_of_a_step, setup, teardown),
		cmocka_unit_test_setup_teardown(every_allocation_may_fail, setup, teardown),
		cmocka_unit_test_setup_teardown(the_schema_has_every_key_of_a_source, setup, teardown),
		cmocka_unit_test_setup_teardown(every_example_of_a_key_can_be_read, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
