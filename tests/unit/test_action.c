/* test_action.c - keys of actions: what is in them, what is not, and how two of them differ */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "cas/manifest.h"
#include "step/action.h"
#include "support/step.h"

static const char yaml[] = "sources: {raw: 'raw-{k}.txt'}\n"
			   "steps:\n"
			   "  work:\n"
			   "    run: sh work.sh \"$raw\" \"$b\" \"$a\" \"$out\"\n"
			   "    in: raw\n"
			   "    slices: {k: [1, 2, 3], j: [x, y]}\n"
			   "    params: {b: 2, a: 1}\n"
			   "    seed: 7\n"
			   "    env: {MODE: fast, MY_TOKEN: hidden}\n";

struct one {
	struct leat_input input;
	struct leat_action action;
};

static void
make(struct step_fixture *f, struct one *one, size_t slice, const char *content)
{
	one->input = (struct leat_input){.name = "raw"};
	one->input.content.kind = LEAT_CONTENT_FILE;
	one->input.content.bytes = strlen(content);
	leat_sha256(content, strlen(content), one->input.content.digest.byte);
	one->action = (struct leat_action){.project = f->project,
	                                   .step = f->project->step,
	                                   .slice = slice,
	                                   .input = &one->input,
	                                   .inputs = 1,
	                                   .code = f->code};
}

static void
open_all(struct step_fixture *f, const char *text)
{
	step_put(f, "work.sh", "cat \"$1\"\n");
	step_open_project(f, text);
	step_open_code(f);
}

/* Records what an action made. */
static void
record(struct step_fixture *f, const struct leat_action *action, const char *output)
{
	struct leat_manifest m = {.step = action->step->name,
	                          .slice = "k=1,j=x",
	                          .number = 1,
	                          .run = "r",
	                          .metrics = "",
	                          .warning = "",
	                          .attempts = 1};
	struct leat_key_fields fields = {.mem = &f->mem};
	struct leat_content other;

	step_must(f, leat_action_fields(action, &fields, &f->err));
	step_must(f, leat_cas_put_bytes(f->cas, output, strlen(output), &m.output.digest, &f->err));
	step_must(f, leat_cas_put_bytes(f->cas, "", 0, &m.log, &f->err));
	m.output.kind = LEAT_CONTENT_FILE;
	m.output.bytes = strlen(output);
	m.field = fields.field;
	m.fields = fields.count;
	step_must(f, leat_key_of(m.field, m.fields, &m.key, &f->err));
	step_must(f, leat_cas_record(f->cas, &m, &other, &f->err));
	leat_key_fields_clear(&fields);
}

static void
fields_are_in_the_order_that_manifests_have(void **state)
{
	static const char *const names[] = {"kind",         "command",  "seed",         "param.a",
	                                    "param.b",      "env.MODE", "env.MY_TOKEN", "input_suffix.raw",
	                                    "code.work.sh", "slice.j",  "slice.k",      "input.raw"};
	struct step_fixture *f = *state;
	struct leat_key_fields fields = {.mem = &f->mem};
	struct one one;

	open_all(f, yaml);
	make(f, &one, 3, "data");
	for (int again = 0; again < 2; again++) {
		step_must(f, leat_action_fields(&one.action, &fields, &f->err));
		assert_int_equal(fields.count, sizeof(names) / sizeof(*names));
		for (size_t i = 0; i < fields.count; i++)
			assert_string_equal(fields.field[i].name, names[i]);
	}
	assert_string_equal(fields.field[2].value, "7");
	assert_string_equal(fields.field[5].value, "fast");
	assert_memory_equal(fields.field[6].value, "sha256 ", 7);
	assert_string_equal(fields.field[9].value, "y");
	assert_string_equal(fields.field[10].value, "2");
	leat_key_fields_clear(&fields);
}

static void
files_that_variables_name_are_in_the_key(void **state)
{
	static const char text[] = "steps: {s: {run: 'sh $script $MODE $k', params: {script: a.sh}, "
				   "env: {MODE: b.sh}, slices: {k: [c.sh, 2]}}}";
	static const char *const names[] = {"code.a.sh", "code.b.sh", "code.c.sh"};
	struct step_fixture *f = *state;
	struct leat_key_fields fields = {.mem = &f->mem};
	struct leat_action action;
	size_t found = 0;

	step_put(f, "a.sh", "");
	step_put(f, "b.sh", "");
	step_put(f, "c.sh", "");
	step_put(f, "d.sh", "");
	open_all(f, text);
	action = (struct leat_action){.project = f->project, .step = f->project->step, .code = f->code};
	step_must(f, leat_action_fields(&action, &fields, &f->err));
	for (size_t i = 0; i < fields.count; i++)
		if (strncmp(fields.field[i].name, "code.", 5) == 0) {
			assert_true(found < 3);
			assert_string_equal(fields.field[i].name, names[found++]);
		}
	assert_int_equal(found, 3);
	leat_key_fields_clear(&fields);
}

static void
the_stem_is_the_key_of_the_fields(void **state)
{
	struct step_fixture *f = *state;
	struct leat_key_fields fields = {.mem = &f->mem};
	struct leat_digest stem, key;
	struct leat_made made;
	struct one one;

	open_all(f, yaml);
	for (size_t slice = 0; slice < 6; slice++) {
		make(f, &one, slice, "data");
		assert_int_equal(leat_action_find(&one.action, f->cas, &stem, &made, &f->err), LEAT_END);
		step_must(f, leat_action_fields(&one.action, &fields, &f->err));
		step_must(f, leat_key_of(fields.field, fields.count, &key, &f->err));
		assert_memory_equal(&stem, &key, sizeof(key));
	}
	leat_key_fields_clear(&fields);
}

static void
what_was_made_is_found_and_nothing_else(void **state)
{
	struct step_fixture *f = *state;
	struct leat_digest stem, before;
	struct leat_made made;
	struct one one;

	open_all(f, yaml);
	make(f, &one, 0, "data");
	record(f, &one.action, "result");
	assert_int_equal(leat_action_find(&one.action, f->cas, &stem, &made, &f->err), LEAT_OK);
	assert_int_equal(made.output.bytes, 6);
	before = stem;
	make(f, &one, 1, "data");
	assert_int_equal(leat_action_find(&one.action, f->cas, &stem, &made, &f->err), LEAT_END);
	make(f, &one, 0, "other");
	assert_int_equal(leat_action_find(&one.action, f->cas, &stem, &made, &f->err), LEAT_END);
	step_put(f, "work.sh", "cat -n \"$1\"\n");
	step_open_code(f);
	make(f, &one, 0, "data");
	assert_int_equal(leat_action_find(&one.action, f->cas, &stem, &made, &f->err), LEAT_END);
	step_put(f, "work.sh", "cat \"$1\"\n");
	step_open_code(f);
	make(f, &one, 0, "data");
	assert_int_equal(leat_action_find(&one.action, f->cas, &stem, &made, &f->err), LEAT_OK);
	assert_memory_equal(&stem, &before, sizeof(stem));
}

/* Each line of leat.yaml that may change without running anything again. */
static void
knobs_are_not_in_the_key(void **state)
{
	static const char *const knobs[] = {"cpus: 4", "memory: 1GiB", "timeout: 60s", "retries: 3"};
	struct step_fixture *f = *state;
	struct leat_digest stem, before;
	struct leat_made made;
	struct one one;
	char text[2048];

	open_all(f, yaml);
	make(f, &one, 0, "data");
	leat_action_find(&one.action, f->cas, &before, &made, &f->err);
	for (size_t i = 0; i < sizeof(knobs) / sizeof(*knobs); i++) {
		snprintf(text, sizeof(text), "%s    %s\n", yaml, knobs[i]);
		open_all(f, text);
		make(f, &one, 0, "data");
		leat_action_find(&one.action, f->cas, &stem, &made, &f->err);
		assert_memory_equal(&stem, &before, sizeof(stem));
	}
	snprintf(text, sizeof(text), "%s    suffix: .npy\n", yaml);
	open_all(f, text);
	make(f, &one, 0, "data");
	leat_action_find(&one.action, f->cas, &stem, &made, &f->err);
	assert_memory_not_equal(&stem, &before, sizeof(stem));
}

/* $raw ends with it, and step.json names the variables. */
static void
what_a_command_sees_of_an_input_is_in_the_key(void **state)
{
	static const char *const same[] = {
		"sources: {raw: a.csv}\nsteps: {s: {run: 'x', in: raw}}",
		"sources: {raw: dir/b.csv}\nsteps: {s: {run: 'x', in: raw}}",
	};
	static const char *const others[] = {
		"sources: {raw: a.csv.gz}\nsteps: {s: {run: 'x', in: raw}}",
		"sources: {raw: a}\nsteps: {s: {run: 'x', in: raw}}",
		"sources: {raw: 'a{k}.csv'}\nsteps: {s: {run: 'x', in: raw, slices: {k: [1]}}}",
		"steps: {s: {run: 'x', in: raw}, raw: {run: 'y', suffix: .tsv}}",
		"steps: {s: {run: 'x', in: raw}, raw: {run: 'y', slices: {a: [1, 2], b: [1, 2]}}}",
		"steps: {s: {run: 'x', in: raw}, raw: {run: 'y', slices: {b: [1, 2], a: [1, 2]}}}",
		"steps: {s: {run: 'x', in: raw}, raw: {run: 'y', slices: {a: [1, 2], c: [1, 2]}}}",
	};
	struct step_fixture *f = *state;
	struct leat_digest stem[1 + sizeof(others) / sizeof(*others)];
	struct leat_made made;
	struct one one;

	for (size_t i = 0; i < 2; i++) {
		open_all(f, same[i]);
		make(f, &one, 0, "data");
		leat_action_find(&one.action, f->cas, &stem[i], &made, &f->err);
	}
	assert_memory_equal(&stem[0], &stem[1], sizeof(*stem));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		open_all(f, others[i]);
		make(f, &one, 0, "data");
		leat_action_find(&one.action, f->cas, &stem[i + 1], &made, &f->err);
		for (size_t k = 0; k <= i; k++)
			if (memcmp(&stem[k], &stem[i + 1], sizeof(*stem)) == 0)
				fail_msg("%s", others[i]);
	}
}

static void
changes_name_what_differs(void **state)
{
	static const struct leat_key_field was[] = {
		{"seed", "1"}, {"param.a", "1"}, {"env.X", "x"}, {"absent./", "json helper/"}, {"absent./lib", "one"}};
	static const struct leat_key_field now[] = {
		{"seed", "1"}, {"param.a", "2"}, {"param.b", "3"}, {"absent./", "json"}};
	static const char *const expected[][3] = {{"param.a", "1", "2"},
	                                          {"env.X", "x", NULL},
	                                          {"absent./helper", "absent", "found first"},
	                                          {"absent./lib/one", "absent", "found first"},
	                                          {"param.b", NULL, "3"}};
	struct leat_manifest last = {.field = was, .fields = 5, .learned = 2};
	struct leat_key_fields fields = {.field = (struct leat_key_field *)now, .count = 4};
	struct leat_change *change;
	struct leat_mem mem;
	size_t changes;
	enum leat_status status = LEAT_NOMEM;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	for (long n = 0; status != LEAT_OK; n++) {
		mem.fail_after = n;
		status = leat_action_changes(&fields, &last, &change, &changes, &mem, NULL);
		mem.fail_after = -1;
	}
	assert_int_equal(changes, 5);
	for (size_t i = 0; i < changes; i++) {
		const char *const got[3] = {change[i].field, change[i].was, change[i].now};

		for (int k = 0; k < 3; k++) {
			assert_int_equal(!got[k], !expected[i][k]);
			if (got[k])
				assert_string_equal(got[k], expected[i][k]);
		}
	}
	leat_changes_free(change, changes, &mem);
	assert_int_equal(leat_mem_counted(&mem), 0);
}

/* Appends `count` lines, and returns what follows them. */
static const char *
copy_lines(char *to, const char *from, size_t count)
{
	for (; count > 0; count--) {
		size_t len = strcspn(from, "\n") + 1;

		strncat(to, from, len);
		from += len;
	}
	return from;
}

/* Applies a diff; what it keeps or drops must be there. */
static void
apply(const char *was, const char *diff, char *now)
{
	size_t line = 1, at, count;

	for (*now = '\0'; *diff; diff = strchr(diff, '\n') + 1) {
		size_t len = strcspn(diff, "\n");

		if (sscanf(diff, "@@ -%zu,%zu", &at, &count) == 2) {
			at += count == 0;
			was = copy_lines(now, was, at - line);
			line = at;
			continue;
		}
		if (*diff != '+') {
			assert_memory_equal(was, diff + 1, len);
			was += len;
			line++;
		}
		if (*diff != '-')
			copy_lines(now, diff + 1, 1);
	}
	strcat(now, was);
}

static void
a_diff_makes_the_new_text_of_the_old_one(void **state)
{
	struct step_fixture *f = *state;
	uint64_t random = 1;

	for (int round = 0; round < 2000; round++) {
		char text[2][2000] = {"", ""}, patched[4000], line[8];
		struct leat_str diff;

		for (int i = 0; i < 60; i++) {
			random = leat_mix64(random + 0x9e3779b97f4a7c15u);
			snprintf(line, sizeof(line), "%d\n", (int)(random >> 8 & 31));
			if (random % 10 != 0)
				strcat(text[0], line);
			if (random % 11 != 0)
				strcat(text[1], line);
		}
		leat_str_init(&diff, &f->mem, SIZE_MAX);
		step_must(f, leat_text_diff(text[0], text[1], &diff, &f->err));
		apply(text[0], leat_str_text(&diff), patched);
		assert_string_equal(patched, text[1]);
		leat_str_free(&diff);
	}
}

static void
a_diff_has_three_lines_around_each_change(void **state)
{
	struct step_fixture *f = *state;
	struct leat_str diff;

	leat_str_init(&diff, &f->mem, SIZE_MAX);
	step_must(f, leat_text_diff("1\n2\n3\n4\n5\n6\n", "1\n2\n3\n4\n5\n6\n", &diff, &f->err));
	assert_string_equal(leat_str_text(&diff), "");
	step_must(f, leat_text_diff("1\n2\n3\n4\n5\n6\n7\n8\n", "1\n2\n3\n4\nfive\n6\n7\n8\n", &diff, &f->err));
	assert_string_equal(leat_str_text(&diff), "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
	leat_str_free(&diff);
	step_must(f, leat_text_diff("", "1\n", &diff, &f->err));
	assert_string_equal(leat_str_text(&diff), "@@ -0,0 +1,1 @@\n+1\n");
	leat_str_free(&diff);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(fields_are_in_the_order_that_manifests_have, step_set_up,
	                                        step_tear_down),
		cmocka_unit_test_setup_teardown(files_that_variables_name_are_in_the_key, step_set_up, step_tear_down),
		cmocka_unit_test_setup_teardown(the_stem_is_the_key_of_the_fields, step_set_up, step_tear_down),
		cmocka_unit_test_setup_teardown(what_was_made_is_found_and_nothing_else, step_set_up, step_tear_down),
		cmocka_unit_test_setup_teardown(knobs_are_not_in_the_key, step_set_up, step_tear_down),
		cmocka_unit_test_setup_teardown(what_a_command_sees_of_an_input_is_in_the_key, step_set_up,
	                                        step_tear_down),
		cmocka_unit_test(changes_name_what_differs),
		cmocka_unit_test_setup_teardown(a_diff_makes_the_new_text_of_the_old_one, step_set_up, step_tear_down),
		cmocka_unit_test_setup_teardown(a_diff_has_three_lines_around_each_change, step_set_up, step_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
