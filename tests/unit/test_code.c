/* test_code.c - which files are a step's code, which of them a command names, and the folder that shows them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "step/code.h"
#include "step/code_glob.h"
#include "step/code_inside.h"
#include "support/step.h"

static void
has_files(struct step_fixture *f, const char *expected)
{
	char got[2048] = "";

	for (size_t i = 0; i < f->code->files; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s", i ? " " : "", f->code->file[i].path);
	assert_string_equal(got, expected);
}

static void
globs_match_as_in_a_shell(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool matches;
	} cases[] = {
		{"**/*.{py,sh,sql}", "a.py", true},
		{"**/*.{py,sh,sql}", "deep/er/a.sql", true},
		{"**/*.{py,sh,sql}", "a.txt", false},
		{"**/*.py", ".hidden/a.py", false},
		{"**/*.py", "a/.hidden.py", false},
		{".github/*.sh", ".github/a.sh", true},
		{"*.py", "a/b.py", false},
		{"src/**", "src/a/b.c", true},
		{"src/**/x.py", "src/x.py", true},
		{"src/**/x.py", "src/a/b/x.py", true},
		{"src/**/x.py", "src/a/b/y.py", false},
		{"src", "src/deep/file", true},
		{"./src/", "src/file", true},
		{"a/{b,c{d,e}}/*", "a/ce/x", true},
		{"a/{b,c{d,e}}/*", "a/c/x", false},
		{"[ab]?.py", "ax.py", true},
		{"*x*.py", "axb.py", true},
		{"*.py", ".py", false},
		{"{a", "{a", true},
	};
	struct leat_mem mem;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const char *pattern[] = {cases[i].pattern, NULL}, *rest = NULL;
		uint64_t from[16], to[16];
		struct leat_globs globs;
		char path[64];
		bool matches = false;

		assert_int_equal(leat_globs_open(&globs, &mem, pattern, NULL), LEAT_OK);
		leat_globs_begin(&globs, from);
		snprintf(path, sizeof(path), "%s", cases[i].path);
		for (char *name = strtok_r(path, "/", (char **)&rest); name;
		     name = strtok_r(NULL, "/", (char **)&rest)) {
			matches = leat_globs_step(&globs, from, name, to);
			memcpy(from, to, sizeof(to));
		}
		if (matches != cases[i].matches)
			fail_msg("%s, %s", cases[i].pattern, cases[i].path);
		leat_globs_close(&globs);
	}
	assert_int_equal(leat_mem_counted(&mem), 0);
}

static void
globs_that_leave_the_project_are_refused(void **state)
{
	static const char *const bad[] = {"/etc/*", "../x", "a/../../x", ""};
	struct leat_mem mem;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct leat_globs globs;

		assert_int_equal(leat_globs_open(&globs, &mem, (const char *const[]){bad[i], NULL}, NULL), LEAT_SPEC);
	}
	assert_int_equal(leat_mem_counted(&mem), 0);
}

static void
environments_and_hidden_folders_are_no_code(void **state)
{
	struct step_fixture *f = *state;

	step_put(f, "a.py", "");
	step_put(f, "a/b.py", "");
	step_put(f, "lib/x.sh", "");
	step_put(f, "notes.txt", "");
	step_put(f, ".venv/lib/y.py", "");
	step_put(f, "env/lib/y.py", "");
	step_put(f, "env/pyvenv.cfg", "");
	step_put(f, "web/node_modules/z.py", "");
	step_put(f, "out/old.py", "");
	step_put(f, "lib/out/new.py", "");
	step_put(f, "__pycache__/c.py", "");
	step_open_project(f, "steps: {s: {run: 'true'}}");
	step_open_code(f);
	has_files(f, "a/b.py a.py lib/out/new.py lib/x.sh");
}

static void
the_snapshot_of_the_same_code_is_the_same_folder(void **state)
{
	struct step_fixture *f = *state;
	char first[PATH_MAX], path[PATH_MAX + 16];
	const char *snapshot;
	size_t len;
	unsigned char *text;

	step_put(f, "a.py", "print(1)\n");
	step_put(f, "a/b.py", "B = 1\n");
	step_put(f, "a/c/d.py", "");
	step_open_project(f, "steps: {s: {run: 'true'}}");
	step_open_code(f);
	snapshot = leat_code_snapshot(f->code, &f->err);
	assert_non_null(snapshot);
	snprintf(first, sizeof(first), "%s", snapshot);
	snprintf(path, sizeof(path), "%s/a/b.py", first);
	step_put(f, "a/b.py", "B = 2\n"); /* changes nothing that runs */
	text = temp_read(path, &len);
	assert_int_equal(len, 6);
	assert_memory_equal(text, "B = 1\n", 6);
	free(text);
	temp_change_now(&f->temp, "a/b.py");
	step_open_code(f);
	assert_string_not_equal(leat_code_snapshot(f->code, &f->err), first);
	step_put(f, "a/b.py", "B = 1\n");
	step_open_code(f);
	assert_string_equal(leat_code_snapshot(f->code, &f->err), first);
}

/* Names of the fields, without "code.". */
static void
names(struct step_fixture *f, const char *command, const char *expected)
{
	struct leat_key_fields fields = {.mem = &f->mem};
	char got[2048] = "";

	step_must(f, leat_code_named(f->code, command, &fields, &f->err));
	for (size_t i = 0; i < fields.count; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s", i ? " " : "", fields.field[i].name + 5);
	leat_key_fields_clear(&fields);
	assert_string_equal(got, expected);
}

static void
files_that_a_command_names_are_found(void **state)
{
	struct step_fixture *f = *state;

	step_put(f, "decode.py", "import helper  # see group.py\nopen('sql/' + 'q.sql')\n");
	step_put(f, "helper.py", "");
	step_put(f, "group.py", "");
	step_put(f, "run.sh", "#!/bin/sh\n. ./lib/common.sh\npython group.py\n");
	step_put(f, "lib/common.sh", "export X=1\n");
	step_put(f, "lib/job_a.sh", "");
	step_put(f, "lib/job_b.sh", "");
	step_put(f, "sql/q.sql", "");
	step_put(f, "sql/r.sql", "");
	step_put(f, "fmt.py", "f'sql/{name}.sql'");
	step_put(f, "my script.sh", "");
	step_open_project(f, "steps: {s: {run: 'true'}}");
	step_open_code(f);
	names(f, "echo nothing", "");
	names(f, "python helper.py", "helper.py");
	names(f, "python ./decode.py \"$epochs\" --out=\"$out\"", "decode.py sql/q.sql");
	names(f, "sh run.sh", "group.py lib/common.sh run.sh");
	names(f, "cd lib && sh common.sh", "lib/common.sh");
	names(f, "sh lib/job_$kind.sh", "lib/job_a.sh lib/job_b.sh");
	names(f, "sh lib/job_${kind}.sh;", "lib/job_a.sh lib/job_b.sh");
	names(f, "python fmt.py", "fmt.py sql/q.sql sql/r.sql");
	names(f, "sh 'my script.sh'", "my script.sh");
	names(f, "cat ../sql/r.sql <helper.py", "helper.py sql/r.sql");
	names(f, "echo \"$decode\" $out", "");
}

static void
files_are_found_wherever_their_path_begins(void **state)
{
	static const char *const commands[] = {
		". \"$(dirname \"$0\")/lib.sh\"",
		". `dirname $0`/lib.sh",
		"sh \"$DIR\"/lib.sh",
		"sh \"$DIR/lib.sh\"",
		"sh $PWD/./lib.sh",
		"sh ${0%/*}/lib.sh",
		"sh $A/$B//lib.sh",
		"sh ~/project/lib.sh",
		"sh /somewhere/project/lib.sh",
		"f\"{HERE}/lib.sh\"",
		"'%(here)s/lib.sh' % {}",
		"'%s/lib.sh' % here",
		"psql -flib.sh",
		"tar -xzf$DIR/lib.sh",
		"psql --file=lib.sh",
		"curl -d @lib.sh",
		"curl -d @$DIR/lib.sh",
	};
	struct step_fixture *f = *state;
	char command[PATH_MAX + 64];

	step_put(f, "lib.sh", "");
	step_put(f, "sub/x.sql", "");
	step_put(f, "sub/part_01.sql", "");
	step_open_project(f, "steps: {s: {run: 'true'}}");
	step_open_code(f);
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		names(f, commands[i], "lib.sh");
	snprintf(command, sizeof(command), "sh %s/lib.sh", f->project->folder);
	names(f, command, "lib.sh");
	names(f, "cat /elsewhere/sub/x.sql", "sub/x.sql");
	names(f, "cat $HOME/project/sub/$name.sql", "sub/part_01.sql sub/x.sql");
	names(f, "'sub/part_%02d.sql' % 1", "sub/part_01.sql");
	names(f, "cat other/x.sql other/lib.sh", "");
	names(f, "cat \"$in\" / - -n @ @me -- ~ $a/$b > \"$out\"", "");
}

static void
python_that_loads_no_hook_is_recognized(void **state)
{
	static const struct {
		const char *text;
		bool hides;
	} cases[] = {
		{"python3 main.py -I", false},
		{"python3 -I main.py", true},
		{"python3.11 -u -bE main.py", true},
		{"\"$PYTHON\" -S main.py", true},
		{"python -W ignore -X dev -S x.py", true},
		{"python -Werror -XS x.py", false},
		{"python -m IES -I", false},
		{"python -c 'import S' -S", false},
		{"run([sys.executable, '-I', 'x.py'])", true},
		{"run([sys.executable, '-m', 'x', '-I'])", false},
		{"env -i python x.py", true},
		{"PYTHONPATH=lib python x.py", true},
		{"PYTHONPATH=lib:$PYTHONPATH python x.py", false},
		{"export PYTHONPATH=\"$PYTHONPATH\"; python x.py", false},
		{"python", false},
		{"python -", false},
		{"python --version", false},
		{"python -W", false},
		{"grep -I x y", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (leat_code_hides_python(cases[i].text) != cases[i].hides)
			fail_msg("%s", cases[i].text);
}

static void
an_allocation_that_fails_is_an_error(void **state)
{
	struct step_fixture *f = *state;
	enum leat_status status = LEAT_NOMEM;

	step_put(f, "a.py", "import b\nopen('q.sql')\n");
	step_put(f, "b/c.py", "");
	step_put(f, "q.sql", "");
	step_open_project(f, "steps: {s: {run: python a.py, code: ['**/*.{py,sql}']}}");
	for (long n = 0; status != LEAT_OK && n < 10000; n++) {
		struct leat_key_fields fields = {.mem = &f->mem};

		leat_err_clear(&f->err);
		f->mem.fail_after = n;
		status = leat_code_open(&f->code, f->project, f->project->step, f->cas, &f->err);
		if (status == LEAT_OK)
			status = leat_code_named(f->code, "python a.py", &fields, &f->err);
		if (status == LEAT_OK && !leat_code_snapshot(f->code, &f->err))
			status = f->err.status;
		f->mem.fail_after = -1;
		if (status != LEAT_OK)
			assert_int_equal(status, LEAT_NOMEM);
		else
			assert_int_equal(fields.count, 2);
		leat_key_fields_clear(&fields);
		leat_code_close(f->code);
		f->code = NULL;
	}
	assert_int_equal(status, LEAT_OK);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(globs_match_as_in_a_shell),
		cmocka_unit_test(globs_that_leave_the_project_are_refused),
		cmocka_unit_test_setup_teardown(environments_and_hidden_folders_are_no_code, step_set_up,
	                                        step_tear_down),
		cmocka_unit_test_setup_teardown(the_snapshot_of_the_same_code_is_the_same_folder, step_set_up,
	                                        step_tear_down),
		cmocka_unit_test_setup_teardown(files_that_a_command_names_are_found, step_set_up, step_tear_down),
		cmocka_unit_test_setup_teardown(files_are_found_wherever_their_path_begins, step_set_up,
	                                        step_tear_down),
		cmocka_unit_test(python_that_loads_no_hook_is_recognized),
		cmocka_unit_test_setup_teardown(an_allocation_that_fails_is_an_error, step_set_up, step_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
