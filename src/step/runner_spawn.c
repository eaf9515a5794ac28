/* runner_spawn.c - start a command in a process group that does not outlive this process
 *
 * posix_spawn cannot set PDEATHSIG, so this is vfork and exec. Until the exec, the child shares the memory of this
 * process: it calls nothing but system calls, and all signals are blocked until no handler of this process is left. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "step/runner_inside.h"

/* What the child could not do, sent through a pipe that the exec closes. */
struct report {
	int failed;
	enum { AT_START, AT_FOLDER, AT_CGROUP, AT_EXEC } at;
};

static const char *const places[] = {
	[AT_START] = "start a process",
	[AT_FOLDER] = "enter its sandbox",
	[AT_CGROUP] = "enter the cgroup that limits its memory",
	[AT_EXEC] = "run /bin/sh",
};

struct child {
	const struct leat_spawn *spawn;
	pid_t parent;
	int null, report;
};

/* Handlers must be gone before signals are let in, and what this process ignores, the command should not. */
static void
reset_signals(void)
{
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		(void)sigaction(sig, &action, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool
enter_cgroup(const char *procs)
{
	int fd = open(procs, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, "0", 1) == 1;

	if (fd >= 0)
		close(fd);
	return ok;
}

static bool
begin_child(const struct child *child)
{
	int output = child->spawn->output;

	if (setpgid(0, 0) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
		return false;
	if (getppid() != child->parent) /* it died before the line above */
		_exit(127);
	if (dup2(child->null, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0)
		return false;
	/* What this process inherited itself; an old kernel cannot. */
	(void)close_range(STDERR_FILENO + 1, ~0u, CLOSE_RANGE_CLOEXEC);
	return true;
}

static void __attribute__((noreturn)) run_child(const struct child *child)
{
	const struct leat_spawn *spawn = child->spawn;
	const char *const argv[] = {"sh", "-c", spawn->command, NULL};
	struct report report = {.at = AT_START};

	if (begin_child(child)) {
		report.at = AT_FOLDER;
		if (chdir(spawn->folder) == 0) {
			report.at = AT_CGROUP;
			if (spawn->cgroup == NULL || enter_cgroup(spawn->cgroup)) {
				report.at = AT_EXEC;
				reset_signals();
				(void)execve("/bin/sh", (char *const *)(uintptr_t)argv, spawn->environment);
			}
		}
	}
	report.failed = errno;
	if (write(child->report, &report, sizeof(report)) < 0)
		_exit(126);
	_exit(127);
}

/* A separate function: the frame of one that calls vfork must not be used by both. */
static __attribute__((noinline)) pid_t
fork_child(const struct child *child)
{
	pid_t pid = vfork();

	if (pid == 0)
		run_child(child);
	return pid;
}

static pid_t
fork_blocked(const struct child *child)
{
	sigset_t all, before;
	pid_t pid;
	int failed;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = fork_child(child);
	failed = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = failed;
	return pid;
}

static void
read_report(int fd, int *failed, const char **what)
{
	struct report report = {0};
	ssize_t n;

	do
		n = read(fd, &report, sizeof(report));
	while (n < 0 && errno == EINTR);
	*failed = n == sizeof(report) ? report.failed : 0;
	*what = places[report.at];
}

enum leat_status
leat_spawn(const struct leat_spawn *spawn, struct leat_process_id *process, int *failed, const char **what,
           struct leat_err *err)
{
	struct child child = {.spawn = spawn, .parent = getpid()};
	enum leat_status status = LEAT_OK;
	int pipe[2];

	if (pipe2(pipe, O_CLOEXEC) != 0)
		return leat_fail_errno(err, errno, "cannot start a command");
	child.report = pipe[1];
	child.null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	process->pid = child.null < 0 ? -1 : fork_blocked(&child);
	if (process->pid < 0)
		status = leat_fail_errno(err, errno, "cannot start a command");
	close(pipe[1]);
	if (child.null >= 0)
		close(child.null);
	if (status == LEAT_OK) {
		read_report(pipe[0], failed, what);
		process->pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
		if (process->pidfd < 0) {
			status = leat_fail_errno(err, errno, "cannot watch a command (needs Linux 5.3 or later)");
			kill(-process->pid, SIGKILL);
			waitpid(process->pid, NULL, 0);
		}
	}
	close(pipe[0]);
	return status;
}
