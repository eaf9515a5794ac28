/* command.c - run `leat` as a child, and judge how it ended */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "torture.h"

enum { COMMAND_SECONDS = 150 /* a hang */, MAX_RSS_KIB = 512 << 10, MAX_TEXT = 8192 };

const char *
torture_text(const struct torture_command *c)
{
	static char text[MAX_TEXT];
	size_t len = 0;

	if (c->faults)
		len += (size_t)snprintf(text, sizeof text, "LEAT_TORTURE='%s' ", c->faults);
	len += (size_t)snprintf(text + len, sizeof text - len, "leat");
	for (int i = 0; c->arg[i] && len < sizeof text; i++) {
		const char *quote = strpbrk(c->arg[i], " '|()*") ? "\"" : "";

		len += (size_t)snprintf(text + len, sizeof text - len, " %s%s%s", quote, c->arg[i], quote);
	}
	return text;
}

static void
to_file(int fd, const char *path)
{
	int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	if (file < 0 || dup2(file, fd) < 0)
		_exit(99);
	close(file);
}

static void
become(const struct torture *t, const struct torture_command *c, const char *out, const char *err)
{
	char leat[600], shim[600], *argv[TORTURE_ARGS + 1] = {leat};

	snprintf(leat, sizeof leat, "%s/leat", t->build);
	snprintf(shim, sizeof shim, "%s/tests/torture_shim.so", t->build);
	for (int i = 0; c->arg[i]; i++)
		argv[i + 1] = (char *)(uintptr_t)c->arg[i];
	if (c->faults) {
		setenv("LD_PRELOAD", shim, 1);
		setenv("LEAT_TORTURE", c->faults, 1);
	}
	to_file(1, c->stdout_to ? c->stdout_to : out);
	to_file(2, err);
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	alarm(COMMAND_SECONDS);
	execv(leat, argv);
	_exit(99);
}

static void
load(const char *path, char text[TORTURE_OUTPUT])
{
	FILE *file = fopen(path, "r");

	text[0] = '\0';
	if (!file)
		return;
	text[fread(text, 1, TORTURE_OUTPUT - 1, file)] = '\0';
	fclose(file);
}

bool
torture_succeeded(const struct torture_command *c)
{
	return WIFEXITED(c->status) && WEXITSTATUS(c->status) == 0;
}

bool
torture_was_killed(const struct torture_command *c)
{
	return WIFSIGNALED(c->status) && WTERMSIG(c->status) == SIGKILL;
}

/* "leat feed: ..." at the start of a line. */
static bool
has_sentence(const char *text)
{
	for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		size_t name = strcspn(line, ":\n");

		if (strncmp(line, "leat", 4) == 0 && line[name] == ':' && line[name + 1] == ' ' && line[name + 2] > ' ')
			return true;
	}
	return false;
}

static void
judge(const struct torture_command *c)
{
	bool may_be_killed = c->kill_after_us || (c->faults && strstr(c->faults, "kill="));

	if (WIFSIGNALED(c->status) && !(may_be_killed && torture_was_killed(c)))
		fail_msg("%s\n%s\n%s%s", torture_text(c),
		         WTERMSIG(c->status) == SIGALRM ? "hangs" : strsignal(WTERMSIG(c->status)), c->out, c->err);
	if (WIFEXITED(c->status) && WEXITSTATUS(c->status) > 2)
		fail_msg("%s\nexit status %d\n%s%s", torture_text(c), WEXITSTATUS(c->status), c->out, c->err);
	if (WIFEXITED(c->status) && WEXITSTATUS(c->status) != 0 && !has_sentence(c->err))
		fail_msg("%s\nfails without a sentence: '%s'", torture_text(c), c->err);
	if (strstr(c->err, "a bug in leat") || strstr(c->err, "Sanitizer") || strstr(c->err, "runtime error"))
		fail_msg("%s\n%s", torture_text(c), c->err);
	if (c->rss_kib > MAX_RSS_KIB)
		fail_msg("%s\ntook %ld MiB", torture_text(c), c->rss_kib >> 10);
}

void
torture_run(struct torture *t, struct torture_command *c)
{
	const char *out = torture_path(t, "stdout"), *err = torture_path(t, "stderr");
	struct rusage usage;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		become(t, c, out, err);
	if (c->kill_after_us) {
		usleep(c->kill_after_us);
		kill(pid, SIGKILL);
	}
	assert_int_equal(wait4(pid, &c->status, 0, &usage), pid);
	c->rss_kib = usage.ru_maxrss;
	load(out, c->out);
	load(err, c->err);
	judge(c);
}

const char *
torture_line(const struct torture_command *c, const char *word)
{
	static char found[300];
	size_t len = strlen(word);

	for (const char *line = c->out; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		if (strncmp(line, word, len) == 0) {
			snprintf(found, sizeof found, "%.*s", (int)strcspn(line, "\n"), line);
			return found;
		}
	return "";
}
