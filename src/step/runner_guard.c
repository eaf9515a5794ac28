/* runner_guard.c - a process that ends commands when the build is killed
 *
 * PDEATHSIG ends only the leader of a group. The guard holds one end of a socket, and this process the other: when that
 * is closed, by an end or by kill -9, the guard kills all that run in its sandboxes. It keeps nothing else open: a lock
 * of a store must end with the build. glibc makes malloc usable in the child of a fork, which is all it needs. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "step/runner_inside.h"

/* The guard must not keep what others wait for the end of: locks, the output of the build. */
static void
close_all_but(int keep)
{
	if (dup2(keep, 0) != 0)
		_exit(1);
	closefrom(1); /* also where the kernel lacks close_range */
}

static void __attribute__((noreturn)) run_guard(int socket, const char *folder, pid_t build)
{
	char byte = 0;
	sigset_t all;
	ssize_t n;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	(void)setsid(); /* ^C is not for it */
	(void)prctl(PR_SET_NAME, "leat-guard");
	close_all_but(socket);
	do
		n = read(0, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n == 0) { /* it was not told that all is well */
		leat_runner_kill_left(folder);
		leat_cgroups_close("", build);
	}
	_exit(0);
}

enum leat_status
leat_guard_start(struct leat_guard *guard, const char *folder, struct leat_err *err)
{
	pid_t build = getpid();
	int fd[2];

	*guard = (struct leat_guard){.socket = -1};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0)
		return leat_fail_errno(err, errno, "cannot start the guard of a build");
	guard->pid = fork();
	if (guard->pid == 0)
		run_guard(fd[0], folder, build);
	close(fd[0]);
	if (guard->pid > 0) {
		guard->socket = fd[1];
		return LEAT_OK;
	}
	guard->pid = 0;
	close(fd[1]);
	return leat_fail_errno(err, errno, "cannot start the guard of a build");
}

void
leat_guard_end(struct leat_guard *guard)
{
	if (guard->pid <= 0)
		return;
	if (send(guard->socket, "", 1, MSG_NOSIGNAL) != 1) /* it was killed */
		(void)kill(guard->pid, SIGKILL);
	close(guard->socket);
	while (waitpid(guard->pid, NULL, 0) < 0 && errno == EINTR)
		;
	guard->pid = 0;
}
