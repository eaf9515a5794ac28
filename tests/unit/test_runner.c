/* test_runner.c - commands in a sandbox: what they see, how they end, and what is said about it */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "base/threads.h"
#include "support/runner.h"

static void
assert_why(const struct trial *t, const char *part)
{
	if (strstr(t->ran.why, part) == NULL)
		fail_msg("'%s' does not say '%s'", t->ran.why, part);
}

static void
assert_out(struct trial *t, const char *command, const char *expected)
{
	char *out = trial_out(t, command);

	assert_string_equal(out, expected);
	free(out);
}

/* ---- how commands end ---- */

static void
test_a_command_makes_its_output(void **state)
{
	struct trial *t = *state;

	assert_out(t, "echo hello > \"$out\"", "hello\n");
	assert_int_equal(t->ran.code, 0);
	assert_string_equal(t->ran.why, "");
	assert_string_equal(t->ran.warning, "");
	assert_string_equal(t->ran.metrics, "");
	assert_true(t->ran.seconds > 1e-4); /* no process starts and ends faster */
}

static void
test_the_exit_status_and_last_lines_are_told(void **state)
{
	struct trial *t = *state;

	assert_int_equal(trial_run(t, "echo one; echo two >&2; printf 'bad \\033[31mthing\\033[0m\\n'; exit 3"),
	                 LEAT_EXITED);
	assert_int_equal(t->ran.code, 3);
	assert_string_equal(t->ran.why, "exited with 3; its last lines: two / bad thing");
	assert_int_equal(trial_run(t, "exit 1"), LEAT_EXITED);
	assert_string_equal(t->ran.why, "exited with 1 and printed nothing");
	assert_int_equal(trial_run(t, "no-such-program-at-all"), LEAT_EXITED);
	assert_int_equal(t->ran.code, 127);
	assert_why(t, "is it installed, and in PATH?");
	assert_int_equal(trial_run(t, "cat data/missing.csv > $out"), LEAT_EXITED);
	assert_why(t, "a step sees only its inputs and the files that match `code`");
}

static void
test_the_signal_that_ended_a_command_is_told(void **state)
{
	struct trial *t = *state;

	assert_int_equal(trial_run(t, "kill -SEGV $$"), LEAT_SIGNALED);
	assert_int_equal(t->ran.code, SIGSEGV);
	assert_string_equal(t->ran.why, "was ended by signal 11 (Segmentation fault)");
	assert_int_equal(trial_run(t, "kill -KILL $$"), LEAT_SIGNALED);
	assert_why(t, "signal 9, perhaps because the system ran out of memory");
}

static void
test_a_missing_output_is_a_failure_with_a_hint(void **state)
{
	struct trial *t = *state;

	assert_int_equal(trial_run(t, "true $out"), LEAT_NO_OUTPUT);
	assert_string_equal(t->ran.why, "succeeded, but did not make $out");
	assert_int_equal(trial_run(t, "true"), LEAT_NO_OUTPUT);
	assert_why(t, "does not mention $out");
	assert_int_equal(trial_run(t, "echo 1 > $out.npy"), LEAT_NO_OUTPUT);
	assert_why(t, "it made decode.npy: add `suffix: .npy` to the step");
	assert_int_equal(trial_run(t, "echo 1 > result.csv; : $out"), LEAT_NO_OUTPUT);
	assert_why(t, "it made result.csv in its working folder: write to \"$out\" instead");
	t->step.suffix = ".npy";
	assert_out(t, "echo 1 > $out", "1\n");
	assert_string_equal(strrchr(t->ran.out, '/'), "/decode.npy");
}

static void
test_a_folder_of_ten_thousand_files_can_be_an_output(void **state)
{
	struct trial *t = *state;
	char sandbox[PATH_MAX];

	assert_int_equal(trial_run(t, "mkdir $out; cd $out; seq 10000 | xargs touch"), LEAT_RAN);
	assert_int_equal(access(t->ran.out, F_OK), 0);
	strcpy(sandbox, t->ran.sandbox);
	leat_ran_end(&t->ran, &t->mem);
	assert_int_equal(access(sandbox, F_OK), -1);
}

/* ---- what they see ---- */

static void
test_variables_hold_what_is_declared(void **state)
{
	struct trial *t = *state;
	struct leat_named params[] = {{"folds", "10"}, {"title", "a 'quoted' $text\nwith lines"}};
	const char *subjects[] = {"3", "5"}, *bins[] = {"early", "late"};
	struct leat_variable variables[] = {{.name = "subject", .value = subjects, .values = 2, .axis = 0},
	                                    {.name = "bin", .value = bins, .values = 2, .axis = 1}};
	size_t lengths[] = {2, 2};

	t->step.param = params;
	t->step.params = 2;
	t->step.slices =
		(struct leat_slices){.variable = variables, .variables = 2, .length = lengths, .axes = 2, .count = 4};
	t->action.slice = 3;
	t->cpus = 2;
	assert_out(t, "echo \"$folds|$title|$subject|$bin|$seed|$cpus|$OMP_NUM_THREADS|$RAYON_NUM_THREADS\" > $out",
	           "10|a 'quoted' $text\nwith lines|5|late|7|2|2|2\n");
}

static void
test_inputs_are_links_that_keep_their_extension(void **state)
{
	struct trial *t = *state;
	struct leat_step upstream = {.name = "epochs", .suffix = ".csv"};
	char *path = strdup(temp_write(&t->temp, "table.csv.gz", "raw\n", 4));

	trial_store_text(t, "epochs", "stored\n")->step = &upstream;
	t->input[t->action.inputs++] = (struct leat_input){.name = "raw", .path = path};
	assert_out(t, "cat $epochs $raw > $out; basename $epochs >> $out; basename $raw >> $out",
	           "stored\nraw\nepochs.csv\nraw.csv.gz\n");
	free(path);
}

static void
test_the_environment_is_small(void **state)
{
	struct trial *t = *state;
	struct leat_named envs[] = {{"LEAT_TEST_PASSED", NULL}, {"LEAT_TEST_SET", "set"}, {"LEAT_TEST_UNSET", NULL}};

	setenv("LEAT_TEST_PASSED", "passed", 1);
	setenv("LEAT_TEST_SECRET", "not passed", 1);
	setenv("LC_TEST", "kept", 1);
	t->step.env = envs;
	t->step.envs = 3;
	assert_out(t,
	           "echo $LEAT_TEST_PASSED $LEAT_TEST_SET ${LEAT_TEST_UNSET-unset} ${LEAT_TEST_SECRET-unset} $LC_TEST "
	           "> $out",
	           "passed set unset unset kept\n");
	assert_out(t, "env | cut -d= -f1 | sort | uniq -d > $out", "");
}

static void
test_the_working_folder_is_empty_and_writable_and_input_is_closed(void **state)
{
	struct trial *t = *state;

	assert_out(t, "ls -A > $out", "");
	assert_out(t, "echo 1 > file && cat > $out && pwd | sed 's/.*\\///' >> $out", "work\n");
	assert_out(t, "f=$(mktemp) && dirname $f | sed 's/.*\\///' > $out", "tmp\n");
}

static void
test_signals_are_as_in_a_shell(void **state)
{
	struct trial *t = *state;
	sigset_t all, before;

	signal(SIGPIPE, SIG_IGN);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	/* 32 and 33 are glibc's own, which no program can set. */
	assert_out(t,
	           "mask() { echo $((0x$(sed -n \"s/^$1:[[:space:]]*//p\" /proc/self/status) & ~0x180000000)); }; "
	           "echo $(mask SigBlk) $(mask SigIgn) > $out",
	           "0 0\n");
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	signal(SIGPIPE, SIG_DFL);
}

static void
test_no_descriptor_of_leat_is_inherited(void **state)
{
	struct trial *t = *state;

	assert_int_equal(dup2(STDERR_FILENO, 77), 77);
	assert_out(t, "test ! -e /proc/self/fd/77 && echo closed > $out", "closed\n");
	close(77);
}

static void
test_step_json_says_what_variables_say(void **state)
{
	struct trial *t = *state;
	const char *bins[] = {"10", "2", "1"}; /* in another order than by name */
	struct leat_variable variable = {.name = "bin", .value = bins, .values = 3};
	size_t length = 3;
	struct leat_step upstream = {.name = "decode", .suffix = ".npy", .slices = {&variable, 1, &length, 1, 3}};
	const uint32_t slices[] = {0, 1, 2};
	const bool use[] = {true};
	struct leat_input *input = trial_store_text(t, "decode", "x");
	char *text, expected[PATH_MAX + 64];
	json_t *json, *entry;

	input->step = &upstream;
	input->slice = slices;
	input->slices = 3;
	input->use = use;
	t->step.feed = "npy('$decode/${seed}') | batch(2) # $unknown ${decode";
	text = trial_out(t, "cp $LEAT_STEP $out; echo \"$feed\"");
	json = json_loads(text, 0, NULL);
	assert_non_null(json);
	entry = json_array_get(json_object_get(json_object_get(json, "input_slices"), "decode"), 1);
	assert_string_equal(json_string_value(json_object_get(entry, "entry")), "2.npy");
	assert_string_equal(json_string_value(json_object_get(json_object_get(entry, "slice"), "bin")), "2");
	entry = json_array_get(json_object_get(json_object_get(json, "input_slices"), "decode"), 2);
	assert_string_equal(json_string_value(json_object_get(json_object_get(entry, "slice"), "bin")), "10");
	snprintf(expected, sizeof(expected), "npy('%s/in/decode/7') | batch(2) # $unknown ${decode", t->ran.sandbox);
	assert_string_equal(json_string_value(json_object_get(json, "feed")), expected);
	assert_int_equal(json_integer_value(json_object_get(json, "seed")), 7);
	assert_null(json_object_get(json, "checkpoint"));
	json_decref(json);
	free(text);
}

/* ---- what they report ---- */

static void
test_metrics_are_read_from_three_places(void **state)
{
	struct trial *t = *state;

	free(trial_out(
		t, "echo '{\"b\": 0.5, \"a\": \"x\", \"list\": [1]}' > ${LEAT_STEP%step.json}metrics.json; : > $out"));
	assert_string_equal(t->ran.metrics, "{\"a\":\"x\",\"b\":0.5}");
	free(trial_out(t, "echo '{\"loss\": 1}' > metrics.json; : > $out"));
	assert_string_equal(t->ran.metrics, "{\"loss\":1}");
	assert_int_equal(trial_run(t, "mkdir $out; echo '{\"loss\": 2}' > $out/metrics.json"), LEAT_RAN);
	assert_string_equal(t->ran.metrics, "{\"loss\":2}");
	free(trial_out(t, "echo '{\"loss\": ' > metrics.json; : > $out"));
	assert_string_equal(t->ran.metrics, "");
	assert_non_null(strstr(t->ran.warning, "of its metrics.json is not valid"));
}

static void
test_a_command_that_writes_to_its_input_is_named_and_the_blob_removed(void **state)
{
	struct trial *t = *state;
	struct leat_input *input = trial_store_text(t, "epochs", "precious\n");
	char blob[PATH_MAX];

	leat_cas_blob_path(t->cas, &input->content.digest, blob);
	assert_int_equal(trial_run(t, "sleep 0.1; chmod u+w $(readlink $epochs); echo worse > $epochs; : > $out"),
	                 LEAT_WROTE_INPUT);
	assert_why(t, "wrote to its input 'epochs'");
	assert_int_equal(access(blob, F_OK), -1);
	assert_false(leat_cas_has(t->cas, &input->content));
	t->action.inputs = 0;
	trial_store_text(t, "epochs", "precious\n");
	assert_out(t, "sleep 0.1; touch $epochs; cat $epochs > $out", "precious\n");
}

static void
test_an_input_that_was_removed_or_written_at_once_is_noticed(void **state)
{
	struct trial *t = *state;
	struct leat_input *input = trial_store_text(t, "epochs", "precious\n");

	assert_out(t, "rm $epochs; echo 1 > $out", "1\n"); /* only the link */
	assert_int_equal(trial_run(t, "rm -f $(readlink $epochs); : > $out"), LEAT_WROTE_INPUT);
	assert_why(t, "removed its input 'epochs'");
	assert_false(leat_cas_has(t->cas, &input->content));
	t->action.inputs = 0;
	trial_store_text(t, "epochs", "precious\n");
	/* With the time that the sandbox has: in the same tick. */
	assert_int_equal(trial_run(t,
	                           "b=$(readlink $epochs); chmod u+w $b; echo PRECIOUS > $b; touch -r $LEAT_STEP $b; "
	                           ": > $out"),
	                 LEAT_WROTE_INPUT);
	assert_why(t, "wrote to its input 'epochs'");
}

static void
test_a_folder_that_was_written_to_at_once_is_noticed(void **state)
{
	struct trial *t = *state;
	struct leat_input *input = trial_store_text(t, "epochs", "precious\n");
	struct leat_content folder;
	struct leat_str tree;

	leat_str_init(&tree, &t->mem, SIZE_MAX);
	assert_int_equal(leat_tree_add(&tree, "a", &input->content, NULL), LEAT_OK);
	assert_int_equal(leat_cas_put_tree(t->cas, &tree, &folder, NULL), LEAT_OK);
	leat_str_free(&tree);
	input->content = folder;
	assert_out(t, "cat $epochs/a > $out", "precious\n");
	assert_int_equal(trial_run(t, ": > $epochs/b; touch -r $LEAT_STEP $(readlink $epochs); : > $out"),
	                 LEAT_WROTE_INPUT);
	assert_why(t, "added or removed files of its input 'epochs'");
	assert_out(t, "ls $epochs > $out", "a\n");
	assert_int_equal(trial_run(t, "rm -rf $(readlink $epochs); : > $out"), LEAT_WROTE_INPUT);
	assert_out(t, "ls $epochs > $out", "a\n");
}

/* ---- more than a command should do ---- */

static void
test_variables_that_are_too_long_are_an_outcome(void **state)
{
	struct trial *t = *state;
	char *huge = malloc(8 << 20), *large = malloc(100000);
	struct leat_named params[] = {{"value", huge}};

	memset(huge, 'x', (8 << 20) - 1);
	huge[(8 << 20) - 1] = '\0';
	t->step.param = params;
	t->step.params = 1;
	assert_int_equal(trial_run(t, ": > $out"), LEAT_EXITED);
	assert_why(t, "pass long values in a file");
	memset(large, 'y', 99999);
	large[99999] = '\0';
	params[0].value = large;
	assert_out(t, "echo ${#value} > $out", "99999\n");
	free(huge);
	free(large);
}

static void
test_any_bytes_can_be_printed(void **state)
{
	struct trial *t = *state;
	size_t len;
	char *log;

	assert_int_equal(trial_run(t, "printf '\\000\\377\\033[1m\\r\\n\\001'; exit 2"), LEAT_EXITED);
	log = trial_log(t, &len);
	assert_int_equal(len, 9);
	assert_memory_equal(log, "\0\377\033[1m\r\n\1", 9);
	assert_true(leat_is_visible(t->ran.why));
	free(log);
	assert_int_equal(trial_run(t, "head -c 200000 /dev/urandom; exit 2"), LEAT_EXITED);
	free(trial_log(t, &len));
	assert_int_equal(len, 200000);
	assert_true(leat_is_visible(t->ran.why));
	/* A long line is not cut within a character, wherever its characters begin. */
	for (int i = 0; i < 2; i++) {
		assert_int_equal(trial_run(t, i ? "printf 'x%0200d' 0 | sed 's/0/\\xc3\\xa4/g'; exit 2"
		                                : "printf '%0200d' 0 | sed 's/0/\\xc3\\xa4/g'; exit 2"),
		                 LEAT_EXITED);
		assert_non_null(strstr(t->ran.why, "\xc3\xa4\xc3\xa4"));
		assert_true(leat_is_visible(t->ran.why));
	}
}

/* Before that, the next one would resume from half of it. */
static void
test_a_checkpoint_is_locked_until_it_is_removed(void **state)
{
	static const char command[] = "if [ -e $checkpoint/epoch ]; then cp $checkpoint/epoch $out; "
				      "else echo 7 > $checkpoint/epoch; exit 2; fi";
	struct trial *t = *state;
	char checkpoint[PATH_MAX];
	int fd;

	t->step.resume = true;
	t->step.text = command;
	assert_int_equal(leat_code_open(&t->action.code, &t->project, &t->step, t->cas, &t->err), LEAT_OK);
	assert_int_equal(trial_run(t, command), LEAT_EXITED);
	assert_int_equal(trial_run(t, command), LEAT_RAN);
	strcpy(checkpoint, t->ran.checkpoint);
	fd = open(checkpoint, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
	t->ran.kept = true;
	leat_ran_end(&t->ran, &t->mem);
	assert_int_equal(access(checkpoint, F_OK), -1);
	close(fd);

	/* One that somebody else uses is left alone. */
	assert_int_equal(mkdir(checkpoint, 0777), 0);
	fd = open(checkpoint, O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(trial_run(t, command), LEAT_EXITED);
	assert_string_not_equal(t->ran.checkpoint, checkpoint);
	assert_int_equal(rmdir(checkpoint), 0); /* it is empty */
	close(fd);
	leat_ran_end(&t->ran, &t->mem);
	leat_code_close(t->action.code);
}

static void
test_sandboxes_are_removed_however_deep_and_read_only(void **state)
{
	struct trial *t = *state;
	char sandbox[PATH_MAX];

	assert_int_equal(trial_run(t, "d=$(printf '%0120d' 0); for i in $(seq 50); do mkdir $d && cd -P $d || exit 1; "
	                              ": > f; done; : > $out; "
	                              "mkdir -p $TMPDIR/a/b; : > $TMPDIR/a/b/c; chmod 0500 $TMPDIR/a/b $TMPDIR/a"),
	                 LEAT_RAN);
	strcpy(sandbox, t->ran.sandbox);
	leat_ran_end(&t->ran, &t->mem);
	assert_int_equal(access(sandbox, F_OK), -1);
}

static void
test_a_sandbox_that_is_used_again_is_empty(void **state)
{
	struct trial *t = *state;
	char first[PATH_MAX];

	t->runner.pool = t->pool;
	assert_out(t,
	           "echo 1 > work; mkdir -p $TMPDIR/a/b; : > $TMPDIR/a/b/c; echo '{\"a\": 1}' > metrics.json; "
	           "echo printed; : > ../in/x; : > $out.other; echo 1 > $out",
	           "1\n");
	strcpy(first, t->ran.sandbox);
	assert_out(t, "cd ..; find . -mindepth 1 | sort > $out; sed -i /out.decode/d $out",
	           "./imports\n./in\n./out\n./step.json\n./tmp\n./work\n");
	assert_string_equal(t->ran.sandbox, first);
	assert_string_equal(t->ran.metrics, "");
	assert_out(t, "grep -c decode $LEAT_STEP > $out", "1\n");
	/* Not after a failure, nor if it was tampered with. */
	assert_int_equal(trial_run(t, "exit 1"), LEAT_EXITED);
	assert_string_equal(t->ran.sandbox, first);
	assert_out(t, "rmdir ../tmp; ln -s / ../tmp; echo 1 > $out", "1\n");
	assert_string_not_equal(t->ran.sandbox, first);
	strcpy(first, t->ran.sandbox);
	assert_out(t, "echo 2 > $out", "2\n");
	assert_string_not_equal(t->ran.sandbox, first);
	assert_int_equal(access(first, F_OK), -1);
	assert_int_equal(access("/etc", F_OK), 0);
}

enum { WORKERS = 4, ACTIONS = 25 };

struct crowd {
	struct trial *trial;
	atomic_uint right;
};

static void
run_many(void *arg, unsigned worker)
{
	struct crowd *crowd = arg;
	struct leat_running running;

	for (unsigned i = 0; i < ACTIONS; i++) {
		char param[32], text[64] = "";
		struct leat_named named = {"value", param};
		struct leat_step step = crowd->trial->step;
		struct leat_action action = crowd->trial->action;
		struct leat_order order;
		struct leat_ran ran = {0};
		FILE *file;

		snprintf(param, sizeof(param), "%u-%u", worker, i);
		step.text =
			i % 5 == 4 ? "exit 1" : "ls -A .. ../tmp | wc -l > $out; echo $value >> $out; : > $TMPDIR/x";
		step.param = &named;
		step.params = 1;
		action.step = &step;
		leat_running_init(&running);
		if (leat_order_make(&order, &action, 1, NULL) == LEAT_OK &&
		    leat_runner_run(&crowd->trial->runner, &order, &running, &ran, NULL) == LEAT_OK &&
		    (file = fopen(ran.out, "re")) != NULL) {
			if (fgets(text, sizeof(text), file) != NULL && fgets(text, sizeof(text), file) != NULL &&
			    strncmp(text, param, strlen(param)) == 0)
				atomic_fetch_add(&crowd->right, 1);
			fclose(file);
		}
		leat_ran_end(&ran, &crowd->trial->mem);
		leat_running_end(&running);
		leat_order_free(&order);
	}
}

static void
test_threads_share_sandboxes_one_at_a_time(void **state)
{
	struct crowd crowd = {.trial = *state};
	struct leat_threads threads = {0};

	crowd.trial->runner.pool = crowd.trial->pool; /* which has fewer than there are workers */
	assert_int_equal(leat_threads_start(&threads, &crowd.trial->mem, WORKERS, "run", run_many, &crowd, NULL),
	                 LEAT_OK);
	leat_threads_join(&threads);
	assert_int_equal(atomic_load(&crowd.right), WORKERS * ACTIONS * 4 / 5);
}

static void
test_daemons_with_much_memory_leave_no_zombie(void **state)
{
	struct trial *t = *state;

	assert_int_equal(trial_run(t, "for i in 1 2 3 4; do setsid python3 -c 'x = b\"x\" * (100 << 20)\n"
	                              "import time; time.sleep(1000)' > /dev/null 2>&1 & done; sleep 1; : > $out"),
	                 LEAT_RAN);
	errno = 0;
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

/* ---- a cgroup, as plain folders show it ---- */

static void
make_file(struct trial *t, const char *name, const char *text)
{
	char *path = strdup(temp_path(&t->temp, name));

	for (char *slash = path + strlen(t->temp.folder) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
		*slash = '\0';
		if (mkdir(path, 0700) != 0)
			assert_int_equal(errno, EEXIST);
		*slash = '/';
	}
	free(path);
	temp_write(&t->temp, name, text, strlen(text));
}

static void
assert_file(struct trial *t, const char *name, const char *expected)
{
	size_t len;
	char *text = (char *)temp_read(temp_path(&t->temp, name), &len);

	assert_int_equal(len, strlen(expected));
	assert_memory_equal(text, expected, len);
	free(text);
}

static void
test_a_cgroup_is_made_beside_ones_own(void **state)
{
	struct trial *t = *state;
	struct leat_cgroup cgroup;
	char name[128];

	make_file(t, "proc/self/cgroup", "0::/app/shell\n");
	make_file(t, "proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	make_file(t, "sys/fs/cgroup/app/shell/cgroup.procs", "1\n");
	leat_cgroup_open(&cgroup, t->temp.folder, "7", 1 << 20);
	assert_string_equal(cgroup.folder, ""); /* there is no memory controller */
	make_file(t, "sys/fs/cgroup/app/shell/memory.max", "max\n");
	leat_cgroup_open(&cgroup, t->temp.folder, "7", 0);
	assert_string_equal(cgroup.folder, ""); /* nothing to limit */
	leat_cgroup_open(&cgroup, t->temp.folder, "7", 1 << 20);
	snprintf(name, sizeof(name), "sys/fs/cgroup/app/leat-%d-7", (int)getpid());
	assert_string_equal(cgroup.folder, temp_path(&t->temp, name));
	strcat(name, "/memory.max");
	assert_file(t, name, "1048576");
	assert_int_equal(leat_cgroup_peak(&cgroup), 0);
	assert_false(leat_cgroup_exceeded(&cgroup));
	strcpy(strrchr(name, '/'), "/memory.peak");
	make_file(t, name, "900000\n");
	strcpy(strrchr(name, '/'), "/memory.events");
	make_file(t, name, "low 0\nmax 12\noom 1\noom_kill 1\n");
	assert_int_equal(leat_cgroup_peak(&cgroup), 900000);
	assert_true(leat_cgroup_exceeded(&cgroup));
	leat_cgroup_close(&cgroup);
}

/* The files of a cgroup go with its folder; those of a plain folder do not, so these have none. */
static void
test_cgroups_of_a_killed_build_are_removed(void **state)
{
	struct trial *t = *state;
	static const char *const folders[] = {"sys/fs/cgroup/app/leat-77-1", "sys/fs/cgroup/app/leat-77-2",
	                                      "sys/fs/cgroup/app/leat-777-1", "sys/fs/cgroup/app/other"};

	make_file(t, "proc/self/cgroup", "0::/app/shell\n");
	make_file(t, "proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	make_file(t, "sys/fs/cgroup/app/shell/memory.max", "max\n");
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(mkdir(temp_path(&t->temp, folders[i]), 0700), 0);
	leat_cgroups_close(t->temp.folder, 77);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(access(temp_path(&t->temp, folders[i]), F_OK), i < 2 ? -1 : 0);
}

static void
test_no_memory_is_an_error_and_leaves_nothing(void **state)
{
	struct trial *t = *state;
	enum leat_status status = LEAT_NOMEM;
	long n = 0;

	t->runner.pool = t->pool;

	trial_store_text(t, "epochs", "x");
	t->step.text = "cat $epochs > $out";
	t->step.feed = "npy('$epochs')";
	for (; status != LEAT_OK && n < 1000; n++) {
		leat_err_clear(&t->err);
		atomic_store(&t->mem.fail_after, n);
		status = leat_order_make(&t->order, &t->action, 1, &t->err);
		if (status == LEAT_OK)
			status = leat_runner_run(&t->runner, &t->order, &t->running, &t->ran, &t->err);
		atomic_store(&t->mem.fail_after, -1);
		leat_order_free(&t->order);
		leat_ran_end(&t->ran, &t->mem);
		if (status != LEAT_OK)
			assert_int_equal(status, LEAT_NOMEM);
	}
	assert_true(n > 3 && n < 1000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, trial_open, trial_close)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_command_makes_its_output),
		TEST(test_the_exit_status_and_last_lines_are_told),
		TEST(test_the_signal_that_ended_a_command_is_told),
		TEST(test_a_missing_output_is_a_failure_with_a_hint),
		TEST(test_a_folder_of_ten_thousand_files_can_be_an_output),
		TEST(test_variables_hold_what_is_declared),
		TEST(test_inputs_are_links_that_keep_their_extension),
		TEST(test_the_environment_is_small),
		TEST(test_the_working_folder_is_empty_and_writable_and_input_is_closed),
		TEST(test_signals_are_as_in_a_shell),
		TEST(test_no_descriptor_of_leat_is_inherited),
		TEST(test_step_json_says_what_variables_say),
		TEST(test_metrics_are_read_from_three_places),
		TEST(test_a_command_that_writes_to_its_input_is_named_and_the_blob_removed),
		TEST(test_an_input_that_was_removed_or_written_at_once_is_noticed),
		TEST(test_a_folder_that_was_written_to_at_once_is_noticed),
		TEST(test_variables_that_are_too_long_are_an_outcome),
		TEST(test_any_bytes_can_be_printed),
		TEST(test_a_checkpoint_is_locked_until_it_is_removed),
		TEST(test_sandboxes_are_removed_however_deep_and_read_only),
		TEST(test_a_sandbox_that_is_used_again_is_empty),
		TEST(test_threads_share_sandboxes_one_at_a_time),
		TEST(test_daemons_with_much_memory_leave_no_zombie),
		TEST(test_a_cgroup_is_made_beside_ones_own),
		TEST(test_cgroups_of_a_killed_build_are_removed),
		TEST(test_no_memory_is_an_error_and_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
