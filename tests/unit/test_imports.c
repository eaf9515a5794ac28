/* test_imports.c - what Python imported is written down, keyed, and checked the next time
 *
 * Runs the python3 of this machine, as a sandbox would. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "step/action.h"
#include "step/imports.h"
#include "support/step.h"

/* Runs a command as a sandbox does: in a folder of links to the snapshot, which is no code. */
static void
run(struct step_fixture *f, const char *command)
{
	const char *snapshot = leat_code_snapshot(f->code, &f->err);
	char hook[PATH_MAX], text[4 * PATH_MAX];

	assert_non_null(snapshot);
	step_must(f, leat_code_hook(f->cas, hook, &f->err));
	snprintf(text, sizeof(text),
	         "cd '%s' && rm -rf .box && mkdir -p .box/work .box/imports && ln -s '%s'/* .box/work && cd .box/work "
	         "&& "
	         "PYTHONPATH='%s' LEAT_IMPORTS=\"$PWD/../imports\" PYTHONDONTWRITEBYTECODE=1 && "
	         "export PYTHONPATH LEAT_IMPORTS PYTHONDONTWRITEBYTECODE && %s",
	         f->temp.folder, snapshot, hook, command);
	assert_int_equal(system(text), 0);
}

/* What the last command imported. */
static enum leat_status
learn_from(struct step_fixture *f, const char *command, struct leat_key_fields *fields)
{
	char folder[512], work[512];

	snprintf(folder, sizeof(folder), "%s/.box/imports", f->temp.folder);
	snprintf(work, sizeof(work), "%s/.box/work", f->temp.folder);
	return leat_code_learned(f->code, folder, work, command, fields, &f->err);
}

static void
learn(struct step_fixture *f, const char *command, struct leat_key_fields *fields)
{

	*fields = (struct leat_key_fields){.mem = &f->mem};
	step_must(f, learn_from(f, command, fields));
}

static const char *
value(const struct leat_key_fields *fields, const char *name)
{
	for (size_t i = 0; i < fields->count; i++)
		if (strcmp(fields->field[i].name, name) == 0)
			return fields->field[i].value;
	return NULL;
}

static bool
has_word(const char *words, const char *word)
{
	char padded[8192], wanted[64];

	snprintf(padded, sizeof(padded), " %s ", words ? words : "");
	snprintf(wanted, sizeof(wanted), " %s ", word);
	return strstr(padded, wanted) != NULL;
}

/* Would the fields be the same now? */
static bool
still(struct step_fixture *f, const struct leat_key_fields *fields)
{
	struct leat_key_fields now = {.mem = &f->mem};
	bool same;

	step_open_code(f);
	step_must(f, leat_code_now(f->code, fields->field, fields->count, &now, &f->err));
	same = now.count == fields->count;
	for (size_t i = 0; same && i < now.count; i++)
		same = strcmp(now.field[i].value, fields->field[i].value) == 0;
	leat_key_fields_clear(&now);
	return same;
}

static void
put_project(struct step_fixture *f)
{
	step_put(f, "main.py",
	         "import helper, pkg.mod, json\nopen('q.sql').close()\ntry:\n\timport fast_version\nexcept "
	         "ImportError:\n\tpass\n");
	step_put(f, "helper.py", "A = 1\n");
	step_put(f, "pkg/__init__.py", "");
	step_put(f, "pkg/mod.py",
	         "from . import deep\nopen('q.sql').close()\nfor k in '':\n\topen(f'parts/{k}.sql')\n");
	step_put(f, "pkg/deep.py", "");
	step_put(f, "q.sql", "");
	step_put(f, "other.py", "");
	step_open_project(f, "steps: {s: {run: python3 main.py}}");
	step_open_code(f);
}

static void
imports_become_fields(void **state)
{
	struct step_fixture *f = *state;
	struct leat_key_fields fields;

	put_project(f);
	run(f, "python3 main.py");
	learn(f, "python3 main.py", &fields);
	assert_non_null(value(&fields, "import.helper.py"));
	assert_non_null(value(&fields, "import.main.py"));
	assert_non_null(value(&fields, "import.pkg/mod.py"));
	assert_non_null(value(&fields, "import.pkg/deep.py"));
	assert_non_null(value(&fields, "import.q.sql"));
	assert_null(value(&fields, "import.other.py"));
	assert_non_null(value(&fields, "python.python3"));
	assert_string_equal(value(&fields, "package.fast_version"), "none");
	assert_true(has_word(value(&fields, "absent./"), "fast_version"));
	assert_true(has_word(value(&fields, "absent./"), "json"));
	assert_true(has_word(value(&fields, "absent./"), "helper/"));
	assert_false(has_word(value(&fields, "absent./"), "helper"));
	assert_true(has_word(value(&fields, "absent./pkg"), "deep/"));
	for (size_t i = 1; i < fields.count; i++)
		assert_true(strcmp(fields.field[i - 1].name, fields.field[i].name) < 0);
	leat_key_fields_clear(&fields);
}

/* Each edit alone: the fields do not hold, and hold again when it is undone. */
static void
changes_are_noticed_and_others_are_not(void **state)
{
	static const struct {
		const char *file, *text, *old; /* old NULL: it is new */
		bool holds;
	} edits[] = {
		{"helper.py", "A = 2\n", "A = 1\n", false}, {"pkg/deep.py", "# new\n", "", false},
		{"q.sql", "select 1\n", "", false},         {"json.py", "", NULL, false},
		{"fast_version.py", "", NULL, false},       {"helper/__init__.py", "", NULL, false},
		{"pkg/deep/__init__.py", "", NULL, false},  {"pkg/json.py", "", NULL, true},
		{"other.py", "X = 1\n", "", true},          {"new.py", "", NULL, true},
		{"lib/helper.py", "", NULL, true},          {"parts/new.sql", "", NULL, false},
		{"else/new.sql", "", NULL, true},
	};
	struct step_fixture *f = *state;
	struct leat_key_fields fields;
	char path[512];

	put_project(f);
	run(f, "python3 main.py");
	learn(f, "python3 main.py", &fields);
	assert_true(still(f, &fields));
	for (size_t i = 0; i < sizeof(edits) / sizeof(*edits); i++) {
		step_put(f, edits[i].file, edits[i].text);
		if (still(f, &fields) != edits[i].holds)
			fail_msg("%s", edits[i].file);
		if (edits[i].old)
			step_put(f, edits[i].file, edits[i].old);
		else
			unlink(temp_path(&f->temp, edits[i].file));
		if (!edits[i].old && strstr(edits[i].file, "__init__")) {
			snprintf(path, sizeof(path), "%s/%s", f->temp.folder, edits[i].file);
			*strrchr(path, '/') = '\0';
			rmdir(path);
		}
		assert_true(still(f, &fields));
	}
	leat_key_fields_clear(&fields);
}

static void
processes_that_end_early_have_written_theirs(void **state)
{
	static const char *const programs[] = {
		"import os, helper\nos._exit(0)\n",
		"import os, signal, helper\nif os.fork() == 0:\n\timport pkg.mod\n\tos.kill(os.getpid(), "
		"signal.SIGKILL)\nos.wait()\n",
		"import multiprocessing, time\ndef work(x):\n\timport helper\nif __name__ == '__main__':\n"
		"\twith multiprocessing.get_context('fork').Pool(1) as pool:\n\t\tpool.map(work, [1])\n",
		"import multiprocessing\ndef work():\n\timport helper\nif __name__ == '__main__':\n"
		"\tp = multiprocessing.get_context('spawn').Process(target=work)\n\tp.start()\n\tp.join()\n",
		"import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import helper'])\n",
		"import os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'import helper'])\n",
	};
	struct step_fixture *f = *state;
	struct leat_key_fields fields;

	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		put_project(f);
		step_put(f, "main.py", programs[i]);
		step_open_code(f);
		run(f, "python3 main.py");
		learn(f, "python3 main.py", &fields);
		if (!value(&fields, "import.helper.py"))
			fail_msg("program %zu", i);
		if (i == 1)
			assert_non_null(value(&fields, "import.pkg/mod.py"));
		leat_key_fields_clear(&fields);
	}
}

static void
python_that_runs_without_an_import_is_keyed(void **state)
{
	static const char *const programs[] = {
		"import runpy\nrunpy.run_path('helper.py')\n",
		"exec(open('helper.py').read())\n",
		"import pathlib\nexec((pathlib.Path('..') / 'work' / ('help' + 'er.py')).read_text())\n",
		"import os\nos.chdir('pkg')\nname = 'helper'\nexec(open('../%s.py' % name, 'rb').read())\n",
		("import importlib.util as u\ns = u.spec_from_file_location('x', 'helper.py')\n"
	         "s.loader.exec_module(u.module_from_spec(s))\n"),
	};
	struct step_fixture *f = *state;
	struct leat_key_fields fields;

	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		put_project(f);
		step_put(f, "main.py", programs[i]);
		step_open_code(f);
		run(f, "python3 main.py");
		learn(f, "python3 main.py", &fields);
		if (!value(&fields, "import.helper.py") || value(&fields, "import.other.py"))
			fail_msg("program %zu", i);
		leat_key_fields_clear(&fields);
	}
}

/* Of modules that are not in the snapshot. */
static void
a_module_that_changed_while_it_ran_is_an_error(void **state)
{
	static const char *const files[] = {".lib/outside.py", ".lib/made.py", "helper.py"};
	struct step_fixture *f = *state;
	struct leat_key_fields fields = {.mem = &f->mem};
	char command[600];

	put_project(f);
	step_put(f, ".lib/outside.py", "A = 1\n");
	step_put(f, "main.py",
	         "import sys\nsys.path[:0] = [sys.argv[1] + '/.lib', sys.argv[1]]\n"
	         "open(sys.argv[1] + '/.lib/made.py', 'w').close()\nimport outside, made, helper\n");
	step_open_code(f);
	snprintf(command, sizeof(command), "python3 main.py '%s'", f->temp.folder);
	run(f, command);
	learn(f, command, &fields);
	leat_key_fields_clear(&fields);
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		run(f, command);
		step_put(f, files[i], "A = 20\n");
		fields = (struct leat_key_fields){.mem = &f->mem};
		assert_int_equal(learn_from(f, command, &fields), LEAT_DATA);
		assert_non_null(strstr(f->err.text, files[i]));
		leat_err_clear(&f->err);
		leat_key_fields_clear(&fields);
	}
}

static void
without_a_record_all_python_is_keyed(void **state)
{
	struct step_fixture *f = *state;
	struct leat_key_fields fields;

	put_project(f);
	run(f, "python3 -I -c 'pass'");
	learn(f, "python3 -I -c 'pass'", &fields);
	assert_non_null(value(&fields, "import.other.py"));
	assert_non_null(value(&fields, "import.helper.py"));
	leat_key_fields_clear(&fields);
	run(f, "python3 -c pass; python3 -I -c pass"); /* one left a record, the other did not */
	learn(f, "python3 -c pass; python3 -I -c pass", &fields);
	assert_non_null(value(&fields, "import.other.py"));
	leat_key_fields_clear(&fields);
	step_put(f, "main.py", "import subprocess, sys\nsubprocess.run([sys.executable, '-S', '-c', 'pass'])\n");
	step_open_code(f);
	run(f, "python3 main.py");
	learn(f, "python3 main.py", &fields);
	assert_non_null(value(&fields, "import.other.py"));
	leat_key_fields_clear(&fields);
	run(f, "true");
	learn(f, "true", &fields);
	assert_int_equal(fields.count, 0);
	leat_key_fields_clear(&fields);
}

/* A package in a folder of the user's PYTHONPATH, of which an environment has another version. */
static void
packages_are_keyed_by_version(void **state)
{
	struct step_fixture *f = *state;
	struct leat_key_fields fields;
	char command[600], old[600];

	put_project(f);
	step_put(f, "env/lib/site-packages/fast/__init__.py", "");
	step_put(f, "env/lib/site-packages/Fast_Data-1.2.dist-info/RECORD", "x.py,,\nfast/__init__.py,,\n");
	step_put(f, "env/lib/site-packages/single.py", "");
	step_put(f, "main.py",
	         "import sys\nsys.path.append(sys.argv[1] + '/env/lib/site-packages')\nimport fast, single\n");
	step_open_code(f);
	snprintf(command, sizeof(command), "python3 main.py '%s'", f->temp.folder);
	run(f, command);
	learn(f, command, &fields);
	assert_string_equal(value(&fields, "package.env/lib/site-packages/fast-data"), "1.2");
	assert_non_null(value(&fields, "package.env/lib/site-packages/single.py"));
	leat_key_fields_clear(&fields);
	step_put(f, "env/lib/site-packages/Fast_Data-1.2.dist-info/RECORD", ""); /* which is read once in a build */
	learn(f, command, &fields);
	assert_string_equal(value(&fields, "package.env/lib/site-packages/fast-data"), "1.2");
	assert_true(still(f, &fields));
	step_put(f, "env/lib/site-packages/fast/__init__.py", "# the version says it all\n");
	assert_true(still(f, &fields));
	snprintf(old, sizeof(old), "%s", temp_path(&f->temp, "env/lib/site-packages/Fast_Data-1.2.dist-info"));
	assert_int_equal(rename(old, temp_path(&f->temp, "env/lib/site-packages/Fast_Data-1.3.dist-info")), 0);
	assert_false(still(f, &fields));
	leat_key_fields_clear(&fields);
}

static void
packages_of_the_user_may_appear_later(void **state)
{
	struct step_fixture *f = *state;
	struct leat_key_fields fields;
	char text[600];
	FILE *user;

	setenv("PYTHONUSERBASE", temp_path(&f->temp, ".user"), 1);
	user = popen("python3 -c 'import site; print(site.USER_SITE[len(site.USER_BASE):] if site.ENABLE_USER_SITE "
	             "else \"\")'",
	             "r");
	assert_non_null(user);
	assert_non_null(fgets(text, sizeof(text) - 64, user));
	pclose(user);
	text[strcspn(text, "\n")] = '\0';
	for (int asks = 0; asks < 2 && *text; asks++) { /* from the record, and by asking Python */
		char site[700];

		put_project(f);
		run(f, "python3 main.py");
		learn(f, "python3 main.py", &fields);
		assert_string_equal(value(&fields, "package.fast_version"), "none");
		if (asks)
			assert_int_equal(system("rm -rf \"$PYTHONUSERBASE/../.leat/pythons\""), 0);
		assert_true(still(f, &fields));
		snprintf(site, sizeof(site), ".user%s/fast_version.py", text);
		step_put(f, site, "");
		assert_false(still(f, &fields));
		assert_int_equal(system("rm -rf \"$PYTHONUSERBASE\""), 0);
		leat_key_fields_clear(&fields);
	}
	unsetenv("PYTHONUSERBASE");
}

static void
another_sitecustomize_runs_too(void **state)
{
	struct step_fixture *f = *state;
	char command[1200];

	put_project(f);
	step_put(f, "site/sitecustomize.py", "import builtins\nbuiltins.chained = True\n");
	step_put(f, "main.py", "import sys\nassert chained\nassert not any('hook' in p for p in sys.path)\n");
	step_open_code(f);
	snprintf(command, sizeof(command), "PYTHONPATH=\"$PYTHONPATH:%s/site\" python3 main.py", f->temp.folder);
	run(f, command);
}

static enum leat_status
count_texts(void *arg, const char *const *text, size_t texts, struct leat_err *err)
{
	size_t *count = arg;

	(void)err;
	for (size_t i = 0; i < texts; i++)
		assert_true(text[i][0] != '\0');
	*count += texts;
	return LEAT_OK;
}

static void
unfinished_records_are_left_out(void **state)
{
	static const char bytes[] = "top\0a\0/a.py\0\0\0\0file\0/b\0\0top\0half";
	size_t count = 0;

	(void)state;
	assert_int_equal(
		leat_records_parse(bytes, sizeof(bytes) - 1, &(struct leat_record_reader){count_texts, &count}, NULL),
		LEAT_OK);
	assert_int_equal(count, 5);
}

static void
an_allocation_that_fails_is_an_error(void **state)
{
	struct step_fixture *f = *state;
	enum leat_status status = LEAT_NOMEM;

	put_project(f);
	run(f, "python3 main.py");
	for (long n = 0; status != LEAT_OK && n < 100000; n++) {
		struct leat_key_fields fields = {.mem = &f->mem};

		leat_err_clear(&f->err);
		f->mem.fail_after = n;
		status = learn_from(f, "python3 main.py", &fields);
		f->mem.fail_after = -1;
		if (status != LEAT_OK)
			assert_int_equal(status, LEAT_NOMEM);
		else
			assert_non_null(value(&fields, "import.helper.py"));
		leat_key_fields_clear(&fields);
	}
	assert_int_equal(status, LEAT_OK);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(imports_become_fields, step_set_up, step_tear_down),
		cmocka_unit_test_setup_teardown(changes_are_noticed_and_others_are_not, step_set_up, step_tear_down),
		cmocka_unit_test_setup_teardown(processes_that_end_early_have_written_theirs, step_set_up,
	                                        step_tear_down),
		cmocka_unit_test_setup_teardown(python_that_runs_without_an_import_is_keyed, step_set_up,
	                                        step_tear_down),
		cmocka_unit_test_setup_teardown(a_module_that_changed_while_it_ran_is_an_error, step_set_up,
	                                        step_tear_down),
		cmocka_unit_test_setup_teardown(without_a_record_all_python_is_keyed, step_set_up, step_tear_down),
		cmocka_unit_test_setup_teardown(packages_are_keyed_by_version, step_set_up, step_tear_down),
		cmocka_unit_test_setup_teardown(packages_of_the_user_may_appear_later, step_set_up, step_tear_down),
		cmocka_unit_test_setup_teardown(another_sitecustomize_runs_too, step_set_up, step_tear_down),
		cmocka_unit_test(unfinished_records_are_left_out),
		cmocka_unit_test_setup_teardown(an_allocation_that_fails_is_an_error, step_set_up, step_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
