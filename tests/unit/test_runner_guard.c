/* test_runner_guard.c - a build that is killed leaves no process */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "support/runner.h"

static char word[64];

static void
choose_word(void)
{
	static unsigned count;

	snprintf(word, sizeof(word), "80000.%d%04u", (int)getpid(), ++count);
}

/* A small build in a process of its own: it never returns. */
static void
build(const char *command, struct temp *temp)
{
	struct leat_guard guard;
	char folder[PATH_MAX];
	struct trial *t;
	void *state;

	trial_open(&state);
	t = state;
	*temp = t->temp;
	snprintf(folder, sizeof(folder), "%s/tmp/%s", leat_cas_folder(t->cas), leat_cas_run(t->cas));
	if (leat_guard_start(&guard, folder, &t->err) == LEAT_OK)
		trial_run(t, command);
	_exit(1);
}

static void
kill_build(const char *format)
{
	struct temp *temp = mmap(NULL, sizeof(*temp), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char command[1024];
	pid_t pid;

	assert_true(temp != MAP_FAILED);
	choose_word();
	snprintf(command, sizeof(command), format, word, word, word);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		build(command, temp);
	while (!process_runs(word)) {
		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
		usleep(1000);
	}
	usleep(100000); /* more of them may start; whether they do is not what is tested */
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	wait_until_gone(word);
	temp_remove(temp);
	munmap(temp, sizeof(*temp));
}

static void
test_a_killed_build_leaves_no_process(void **state)
{
	(void)state;
	kill_build("sleep %s; true %s %s");
	kill_build("sleep %s | sleep %s & sleep %s");
}

static void
test_nor_one_that_ignores_signals_or_left_the_group(void **state)
{
	(void)state;
	kill_build("trap '' TERM HUP; (trap '' TERM HUP; sleep %s; sleep %s) & sleep %s");
	kill_build("setsid sleep %s & (setsid sleep %s &); sleep %s");
	kill_build("(setsid sh -c \"trap '' TERM; sleep %s; sleep %s\" &); sleep %s");
}

static void
test_a_guard_that_is_told_to_end_ends_and_kills_nothing(void **state)
{
	struct leat_guard guard;
	char marker[PATH_MAX + 32];
	pid_t pid;

	(void)state;
	choose_word();
	assert_int_equal(leat_guard_start(&guard, "/tmp/leat-guard-test", NULL), LEAT_OK);
	pid = fork();
	if (pid == 0) {
		snprintf(marker, sizeof(marker), "LEAT_STEP=/tmp/leat-guard-test/1/step.json");
		putenv(marker);
		execlp("sleep", "sleep", word, NULL);
		_exit(127);
	}
	while (!process_runs(word))
		usleep(1000);
	leat_guard_end(&guard);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	leat_runner_kill_left("/tmp/leat-guard");
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0); /* that is another folder */
	leat_runner_kill_left("/tmp/leat-guard-test");
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void
test_a_guard_holds_nothing_open(void **state)
{
	struct leat_guard guard;
	int fd[2];
	char byte;

	(void)state;
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(leat_guard_start(&guard, "/tmp/leat-guard-test", NULL), LEAT_OK);
	close(fd[1]);
	assert_int_equal(read(fd[0], &byte, 1), 0); /* else it would wait for ever */
	close(fd[0]);
	leat_guard_end(&guard);
}

/* To tell it the end then must not raise SIGPIPE, which would end the build. */
static void
test_a_guard_may_be_killed(void **state)
{
	struct leat_guard guard;
	siginfo_t info;

	(void)state;
	signal(SIGPIPE, SIG_DFL);
	assert_int_equal(leat_guard_start(&guard, "/tmp/leat-guard-test", NULL), LEAT_OK);
	assert_int_equal(kill(guard.pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)guard.pid, &info, WEXITED | WNOWAIT), 0);
	leat_guard_end(&guard);
	assert_int_equal(guard.pid, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_killed_build_leaves_no_process),
		cmocka_unit_test(test_nor_one_that_ignores_signals_or_left_the_group),
		cmocka_unit_test(test_a_guard_that_is_told_to_end_ends_and_kills_nothing),
		cmocka_unit_test(test_a_guard_holds_nothing_open),
		cmocka_unit_test(test_a_guard_may_be_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
