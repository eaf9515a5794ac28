/* test_build_plan.c - plans of builds: groups of edges, what is wanted, memory */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "step/build.h"
#include "step/build_plan.h"

static struct leat_mem mem;
static struct leat_err err;
static struct leat_project *project;
static struct leat_plan *plan;

static const char eeg[] = "steps:\n"
			  "  decode:\n"
			  "    run: touch \"$out\"\n"
			  "    slices: {subject: 1..18, bin: 1..20}\n"
			  "  smooth:\n"
			  "    run: cp \"$decode\" \"$out\"\n"
			  "    in: decode\n"
			  "    slices: {bin: 1..20, subject: 1..18}\n"
			  "  person:\n"
			  "    run: cat \"$decode\"/* >\"$out\"\n"
			  "    in: decode\n"
			  "    slices: {subject: 3..4}\n"
			  "  all:\n"
			  "    run: cat \"$person\"/* \"$smooth\"/* >\"$out\"\n"
			  "    in: [person, smooth]\n";

static int
set_up(void **state)
{
	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	project = NULL;
	plan = NULL;
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	leat_plan_close(plan);
	leat_project_close(project);
	return mem.used == 0 ? 0 : -1;
}

static void
parse(const char *text)
{
	assert_int_equal(leat_project_parse(&project, &mem, NULL, text, strlen(text), &err), LEAT_OK);
}

static enum leat_status
open_plan(const char *const *target, size_t count)
{
	return leat_plan_open(&plan, project, NULL, &(struct leat_plan_targets){target, count}, &err);
}

static const struct leat_plan_step *
step_of(const char *name)
{
	return &plan->step[leat_project_step(project, name) - project->step];
}

static void
an_edge_joins_slices_by_the_variables_that_both_steps_have(void **state)
{
	const struct leat_plan_edge *edge;

	(void)state;
	parse(eeg);
	assert_int_equal(open_plan(NULL, 0), LEAT_OK);
	edge = step_of("smooth")->edge; /* all variables: one output, no folder */
	assert_int_equal(edge->groups.count, 360);
	assert_null(edge->entry);
	for (uint32_t g = 0; g < 360; g++)
		assert_int_equal(leat_members_count(&edge->members, g), 1);
	edge = step_of("person")->edge; /* a folder of 20 bins each */
	assert_int_equal(edge->groups.count, 2);
	assert_false(edge->entry[0]);
	assert_true(edge->entry[1]);
	assert_int_equal(leat_members_count(&edge->members, 1), 20);
	assert_int_equal(leat_members_at(&edge->members, 1, 0), 3 * 20); /* subject=4,bin=1 */
	edge = step_of("all")->edge;
	assert_int_equal(edge->groups.count, 1);
	assert_int_equal(leat_members_count(&edge[1].members, 0), 360);
}

static void
only_what_targets_need_is_wanted(void **state)
{
	(void)state;
	parse(eeg);
	assert_int_equal(open_plan((const char *[]){"person:subject=4"}, 1), LEAT_OK);
	assert_int_equal(step_of("person")->wanted, 1);
	assert_int_equal(step_of("decode")->wanted, 20);
	assert_int_equal(step_of("smooth")->wanted, 0);
	assert_int_equal(step_of("all")->wanted, 0);
	assert_int_equal(step_of("decode")->action[60].state, LEAT_ACTION_WAITS);
	assert_int_equal(step_of("decode")->action[59].state, LEAT_ACTION_UNWANTED);
}

static void
targets_that_do_not_exist_are_named(void **state)
{
	(void)state;
	parse(eeg);
	assert_int_equal(open_plan((const char *[]){"persn"}, 1), LEAT_INVALID);
	assert_non_null(strstr(err.text, "did you mean 'person'"));
	leat_err_clear(&err);
	assert_int_equal(open_plan((const char *[]){"person:subject=9"}, 1), LEAT_INVALID);
	assert_non_null(strstr(err.text, "9"));
}

static void
a_slice_without_input_is_an_error(void **state)
{
	(void)state;
	parse("steps:\n"
	      "  a: {run: touch \"$out\", slices: {i: 1..3}}\n"
	      "  b: {run: cp \"$a\" \"$out\", in: a, slices: {i: 1..4}}\n");
	assert_int_equal(open_plan(NULL, 0), LEAT_SPEC);
	assert_non_null(strstr(err.text, "slice i=4 of step 'b' has no input: step 'a' has no slice"));
}

static void
each_allocation_of_a_plan_may_fail(void **state)
{
	enum leat_status status = LEAT_NOMEM;

	(void)state;
	parse(eeg);
	for (long n = 0; status != LEAT_OK; n++) {
		size_t used = mem.used;

		leat_err_clear(&err);
		atomic_store(&mem.fail_after, n);
		status = open_plan((const char *[]){"all"}, 1);
		atomic_store(&mem.fail_after, -1);
		if (status != LEAT_OK) {
			assert_int_equal(status, LEAT_NOMEM);
			assert_int_equal(mem.used, used);
		}
		assert_true(n < 1000);
	}
}

/* ---- many actions ---- */

enum { SLICES = 50000, MOST_BYTES = 300 * 1000 * 1000, BYTES_PER_ACTION = 150 };

static void
write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void
a_hundred_thousand_actions_with_files_of_their_own_take_little_memory(void **state)
{
	char folder[] = "/dev/shm/leat-plan-XXXXXX", path[100], text[600];
	struct leat_build_options options = {.dry = true, .jobs = 2};
	struct leat_build_totals totals;
	struct leat_cas *cas = NULL;
	size_t before;

	(void)state;
	if (!mkdtemp(folder)) /* there, syncing takes no time */
		assert_non_null(mkdtemp(strcpy(folder, "/tmp/leat-plan-XXXXXX")));
	snprintf(path, sizeof(path), "%s/raw", folder);
	assert_int_equal(mkdir(path, 0777), 0);
	for (int i = 1; i <= SLICES; i++) {
		snprintf(path, sizeof(path), "%s/raw/%d", folder, i);
		snprintf(text, sizeof(text), "%d\n", i);
		write_file(path, text);
	}
	snprintf(text, sizeof(text),
	         "sources: {raw: 'raw/{i}'}\n"
	         "steps:\n"
	         "  part: {run: cp \"$raw\" \"$out\", in: raw, slices: {i: 1..%d}}\n"
	         "  copy: {run: cp \"$part\" \"$out\", in: part, slices: {i: 1..%d}}\n",
	         SLICES, SLICES);
	snprintf(path, sizeof(path), "%s/leat.yaml", folder);
	write_file(path, text);
	assert_int_equal(leat_project_open(&project, &mem, folder, &err), LEAT_OK);
	snprintf(path, sizeof(path), "%s/.leat", folder);
	assert_int_equal(leat_build_store(&cas, &mem, path, &err), LEAT_OK);
	before = mem.used;
	assert_int_equal(leat_build(project, cas, &options, &totals, &err), LEAT_OK);
	assert_int_equal(totals.actions, 2 * SLICES);
	assert_int_equal(totals.cached, 0);
	assert_true(mem.peak < MOST_BYTES);
	print_message("%zu bytes per action\n", (mem.peak - before) / (2 * SLICES));
	assert_true(mem.peak - before < (size_t)2 * SLICES * BYTES_PER_ACTION);
	leat_cas_close(cas);
	leat_remove_tree(folder);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(an_edge_joins_slices_by_the_variables_that_both_steps_have, set_up,
	                                        tear_down),
		cmocka_unit_test_setup_teardown(only_what_targets_need_is_wanted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(targets_that_do_not_exist_are_named, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_slice_without_input_is_an_error, set_up, tear_down),
		cmocka_unit_test_setup_teardown(each_allocation_of_a_plan_may_fail, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_hundred_thousand_actions_with_files_of_their_own_take_little_memory,
	                                        set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
