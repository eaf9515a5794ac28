/* test_runner_limits.c - commands that do not end by themselves, use too much, or leave others running
 *
 * Nothing here depends on how long things take: commands wait for ever, or until a file appears. Processes are
 * recognized by a word in their arguments. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "support/runner.h"

/* A word that no other process has: in arguments of `sleep`, which sums them. */
static char word[64];

static const char *
with_word(const char *format)
{
	static char command[2048];
	static unsigned count;

	snprintf(word, sizeof(word), "90000.%d%04u", (int)getpid(), ++count);
	snprintf(command, sizeof(command), format, word, word, word);
	return command;
}

/* ---- timeouts ---- */

static void
test_a_timeout_ends_the_whole_group(void **state)
{
	struct trial *t = *state;

	t->step.timeout_s = 0.3;
	assert_int_equal(trial_run(t, with_word("sleep %s & sleep %s | sleep %s")), LEAT_TIMED_OUT);
	assert_string_equal(t->ran.why, "ran longer than its timeout of 0.3 s; raise `timeout`");
	assert_false(process_runs(word));
}

static void
test_processes_that_ignore_sigterm_are_killed(void **state)
{
	struct trial *t = *state;

	t->step.timeout_s = 0.3;
	t->runner.grace_s = 0.2;
	assert_int_equal(
		trial_run(t, with_word("trap '' TERM; (trap '' TERM; sleep %s; sleep %s) & sleep %s; sleep 90000")),
		LEAT_TIMED_OUT);
	assert_false(process_runs(word));
}

static void
test_a_child_of_the_shell_has_time_to_finish(void **state)
{
	struct trial *t = *state;
	char *log;
	size_t len;

	t->step.timeout_s = 0.5;
	t->runner.grace_s = 60;
	/* The leader ends at once by SIGTERM; its child saves first. */
	assert_int_equal(trial_run(t, "sh -c \"trap 'sleep 0.3; echo saved; exit' TERM; sleep 90000 & wait\"; true"),
	                 LEAT_TIMED_OUT);
	log = trial_log(t, &len);
	assert_int_equal(len, 6);
	assert_memory_equal(log, "saved\n", 6);
	free(log);
}

static void
test_processes_that_left_the_group_are_ended(void **state)
{
	struct trial *t = *state;

	/* A daemon that a finished command leaves. */
	assert_int_equal(trial_run(t, with_word("setsid sleep %s & : > $out; sleep 0.1; true %s %s")), LEAT_RAN);
	assert_false(process_runs(word));
	/* One whose parent is gone, and which ignores SIGTERM. */
	t->step.timeout_s = 0.5;
	t->runner.grace_s = 0.2;
	assert_int_equal(trial_run(t, with_word("(setsid sh -c \"trap '' TERM; sleep %s; sleep %s\" &); sleep %s")),
	                 LEAT_TIMED_OUT);
	assert_false(process_runs(word));
}

static void
test_what_a_command_leaves_in_its_group_is_killed(void **state)
{
	struct trial *t = *state;

	assert_int_equal(trial_run(t, with_word("sleep %s & sleep %s & sleep %s & : > $out")), LEAT_RAN);
	assert_false(process_runs(word));
}

static void
test_zombies_are_reaped(void **state)
{
	struct trial *t = *state;

	assert_int_equal(trial_run(t, "(sleep 0.05 &) ; (true &); sleep 0.1; : > $out"), LEAT_RAN);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no children at all */
}

/* ---- stopping ---- */

static void *
stop_when_it_runs(void *arg)
{
	struct trial *t = arg;

	while (!process_runs(word))
		usleep(1000);
	atomic_store(&t->stop, true);
	return NULL;
}

static void
test_a_stop_ends_a_command(void **state)
{
	struct trial *t = *state;
	const char *command = with_word("sleep %s; echo %s %s");
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, stop_when_it_runs, t), 0);
	assert_int_equal(trial_run(t, command), LEAT_STOPPED);
	pthread_join(thread, NULL);
	assert_string_equal(t->ran.why, "was stopped");
	assert_false(process_runs(word));
	atomic_store(&t->stop, false);
}

/* ---- memory and threads ---- */

static void
test_too_much_memory_is_an_outcome(void **state)
{
	struct trial *t = *state;

	t->step.memory_bytes = 64 << 20;
	assert_int_equal(trial_run(t, with_word("python3 -c 'import time; x = b\"x\" * (200 << 20); time.sleep(%s)'")),
	                 LEAT_TOO_LARGE);
	if (strstr(t->ran.why, "limit is 64 MiB; raise `memory`") == NULL)
		fail_msg("%s", t->ran.why);
	assert_true(t->ran.peak_bytes > 64u << 20);
	assert_false(process_runs(word));
}

static void
test_memory_that_processes_share_counts_once(void **state)
{
	struct trial *t = *state;

	t->step.memory_bytes = 300 << 20;
	if (trial_run(t, "python3 -c '\n"
	                 "import os, time\n"
	                 "x = b\"x\" * (150 << 20)\n"
	                 "for i in range(3):\n"
	                 "    if os.fork() == 0: time.sleep(0.4); os._exit(0)\n"
	                 "for i in range(3): os.wait()\n"
	                 "'; : > $out") != LEAT_RAN)
		fail_msg("%s", t->ran.why);
}

static void
test_the_peak_of_a_command_is_not_that_of_leat(void **state)
{
	struct trial *t = *state;
	size_t size = 300 << 20;
	char *large = malloc(size);

	memset(large, 1, size);
	assert_int_equal(trial_run(t, "sleep 0.2; : > $out"), LEAT_RAN);
	assert_true(t->ran.peak_bytes > 0 && t->ran.peak_bytes < 100 << 20);
	assert_int_equal(trial_run(t, "python3 -c 'x = b\"x\" * (600 << 20)'; : > $out"), LEAT_RAN);
	assert_true(t->ran.peak_bytes > 600u << 20);
	free(large);
}

static void
test_busy_threads_beyond_the_cpus_are_warned_of(void **state)
{
	struct trial *t = *state;

	assert_int_equal(trial_run(t, "for i in 1 2 3 4; do (while [ ! -e stop ]; do :; done) & done; sleep 3.5; "
	                              ": > stop; wait; : > $out"),
	                 LEAT_RAN);
	assert_non_null(strstr(t->ran.warning, "threads busy on 1 cpu; set `cpus: "));
	assert_non_null(strstr(t->ran.warning, "--tune-threads decode"));
	assert_true(t->ran.threads >= 5);
	/* Threads that wait are no reason, nor is a shell with a child. */
	assert_int_equal(trial_run(t, "sleep 1.5 | sleep 1.5 | sleep 1.5; : > $out"), LEAT_RAN);
	assert_string_equal(t->ran.warning, "");
	assert_true(t->ran.threads >= 3);
	assert_int_equal(trial_run(t, "(while [ ! -e stop ]; do :; done) & sleep 1.5; : > stop; wait; : > $out"),
	                 LEAT_RAN);
	assert_string_equal(t->ran.warning, "");
}

/* ---- output and progress ---- */

static void
test_a_flood_of_output_is_bounded(void **state)
{
	struct trial *t = *state;
	struct stat st;
	char path[PATH_MAX], *log;
	size_t len;

	assert_int_equal(
		trial_run(t, "echo first; head -c 200000000 /dev/zero | tr '\\0' x; echo; echo last; : > $out"),
		LEAT_RAN);
	leat_cas_blob_path(t->cas, &t->ran.log, path);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size > LEAT_OUTPUT_LIMIT && st.st_size < LEAT_OUTPUT_LIMIT + 200);
	log = trial_log(t, &len);
	assert_memory_equal(log, "first\n", 6);
	assert_memory_equal(log + len - 5, "last\n", 5);
	assert_non_null(memmem(log, len, "of output left out here: a log is at most 64 MiB]", 49));
	free(log);
}

struct seen {
	struct trial *trial;
	char line[160];
	unsigned long long done, total;
};

/* Lets the command end once its progress was seen. */
static void *
watch_progress(void *arg)
{
	struct seen *seen = arg;
	struct leat_running *running = &seen->trial->running;

	do {
		usleep(1000);
		pthread_mutex_lock(&running->lock);
		strcpy(seen->line, running->last_line);
		pthread_mutex_unlock(&running->lock);
	} while (strcmp(seen->line, "3 of 10, fold 3") != 0);
	seen->done = atomic_load(&running->done);
	seen->total = atomic_load(&running->total);
	close(open(temp_path(&seen->trial->temp, "seen"), O_CREAT | O_WRONLY, 0666));
	return NULL;
}

static void
test_progress_wins_over_the_last_line(void **state)
{
	struct trial *t = *state;
	struct seen seen = {.trial = t};
	char command[1024];
	pthread_t thread;

	snprintf(command, sizeof(command),
	         "echo line; printf '{\"done\":3,\"total\":10,\"text\":\"fold 3\"}' > ${LEAT_STEP%%step.json}progress; "
	         "while [ ! -e %s/seen ]; do echo line; sleep 0.01; done; : > $out",
	         t->temp.folder);
	assert_int_equal(pthread_create(&thread, NULL, watch_progress, &seen), 0);
	assert_int_equal(trial_run(t, command), LEAT_RAN);
	pthread_join(thread, NULL);
	assert_int_equal(seen.done, 3);
	assert_int_equal(seen.total, 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, trial_open, trial_close)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_timeout_ends_the_whole_group),
		TEST(test_processes_that_ignore_sigterm_are_killed),
		TEST(test_a_child_of_the_shell_has_time_to_finish),
		TEST(test_processes_that_left_the_group_are_ended),
		TEST(test_what_a_command_leaves_in_its_group_is_killed),
		TEST(test_zombies_are_reaped),
		TEST(test_a_stop_ends_a_command),
		TEST(test_too_much_memory_is_an_outcome),
		TEST(test_memory_that_processes_share_counts_once),
		TEST(test_the_peak_of_a_command_is_not_that_of_leat),
		TEST(test_busy_threads_beyond_the_cpus_are_warned_of),
		TEST(test_a_flood_of_output_is_bounded),
		TEST(test_progress_wins_over_the_last_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
