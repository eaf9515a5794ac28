/* runner.c - see runner.h */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/size.h"
#include "step/runner_inside.h"

static const double default_grace_s = 5;

/* What one run needs. */
struct run {
	const struct leat_runner *runner;
	const struct leat_order *order;
	struct leat_running *running;
	struct leat_ran *ran;
	struct leat_sandbox sandbox;
	struct leat_output output;
	struct leat_cgroup cgroup;
	struct leat_watch watch;
};

void
leat_running_init(struct leat_running *running)
{
	memset(running, 0, sizeof(*running));
	pthread_mutex_init(&running->lock, NULL);
}

void
leat_running_end(struct leat_running *running)
{
	pthread_mutex_destroy(&running->lock);
}

/* ---- starting ---- */

/* The command could not even begin: for people it failed as one that did. */
static void
fail_to_begin(struct run *run, int failed, const char *what)
{
	struct leat_ran *ran = run->ran;
	char size[32];

	ran->outcome = LEAT_EXITED;
	ran->code = 127;
	if (failed == E2BIG)
		snprintf(ran->why, sizeof(ran->why),
		         "its command and variables have %s, which is more than the system allows; pass long values in "
		         "a file",
		         leat_format_size(size, sizeof(size), strlen(run->order->command) + run->sandbox.text.len));
	else
		snprintf(ran->why, sizeof(ran->why), "cannot %s: %s", what, strerrordesc_np(failed));
}

static enum leat_status
spawn(struct run *run, bool *begun, struct leat_err *err)
{
	struct leat_spawn spawn = {.command = run->order->command,
	                           .environment = run->sandbox.environment,
	                           .folder = run->sandbox.work,
	                           .output = run->output.write_fd,
	                           .cgroup = run->cgroup.folder[0] == '\0' ? NULL : run->cgroup.procs};
	struct leat_process_id *process = &run->watch.process;
	enum leat_status status;
	const char *what;
	int failed;

	run->watch.begin = leat_now(); /* a short command may be done when its process is known here */
	status = leat_spawn(&spawn, process, &failed, &what, err);
	if (status == LEAT_OK && failed != 0 && spawn.cgroup != NULL) { /* not allowed to enter: limit it by polling */
		waitpid(process->pid, NULL, 0);
		close(process->pidfd);
		leat_cgroup_close(&run->cgroup);
		spawn.cgroup = NULL;
		status = leat_spawn(&spawn, process, &failed, &what, err);
	}
	*begun = status == LEAT_OK && failed == 0;
	if (status == LEAT_OK && failed != 0) {
		waitpid(process->pid, NULL, 0);
		close(process->pidfd);
		fail_to_begin(run, failed, what);
	}
	close(run->output.write_fd);
	run->output.write_fd = -1;
	return status;
}

static void
watch(struct run *run, const char *marker)
{
	const struct leat_order *order = run->order;
	struct leat_watch *w = &run->watch;
	char progress[PATH_MAX + 16];

	snprintf(progress, sizeof(progress), "%s/progress", run->sandbox.path);
	w->output = &run->output;
	w->cgroup = &run->cgroup;
	w->running = run->running;
	w->marker = marker;
	w->progress = progress;
	w->stop = run->runner->stop;
	w->timeout_s = order->timeout_s;
	w->grace_s = run->runner->grace_s > 0 ? run->runner->grace_s : default_grace_s;
	w->memory_bytes = order->memory_bytes;
	w->cpus = order->cpus;
	atomic_store(&run->running->threads, 1);
	atomic_store(&run->running->group, w->process.pid);
	leat_watch(w);
	close(w->process.pidfd);
}

/* ---- what came of it ---- */

static void
say_exited(struct run *run)
{
	struct leat_ran *ran = run->ran;
	char lines[260];
	const char *hint = "";

	leat_output_last(&run->output, 2, lines, sizeof(lines));
	if (ran->code == 127)
		hint = " (a program was not found: is it installed, and in PATH?)";
	else if (ran->code == 126)
		hint = " (a file cannot be executed)";
	else if (strstr(lines, "No such file or directory") != NULL)
		hint = " (a step sees only its inputs and the files that match `code`)";
	snprintf(ran->why, sizeof(ran->why), "exited with %d%s%s%s", ran->code, hint,
	         *lines == '\0' ? " and printed nothing" : "; its last lines: ", lines);
}

static void
say_signaled(struct run *run)
{
	struct leat_ran *ran = run->ran;
	char lines[200], size[32];
	const char *name = sigdescr_np(ran->code);

	leat_output_last(&run->output, 1, lines, sizeof(lines));
	if (ran->code == SIGKILL)
		snprintf(ran->why, sizeof(ran->why),
		         "was killed by signal 9, perhaps because the system ran out of memory (it used %s)",
		         ran->peak_bytes == 0 ? "little" : leat_format_size(size, sizeof(size), ran->peak_bytes));
	else
		snprintf(ran->why, sizeof(ran->why), "was ended by signal %d (%s)%s%s", ran->code,
		         name == NULL ? "unknown" : name, *lines == '\0' ? "" : "; its last line: ", lines);
}

static void
say_too_large(struct run *run)
{
	char used[32], limit[32];
	uint64_t bytes = run->ran->peak_bytes, most = run->order->memory_bytes;

	leat_format_size(limit, sizeof(limit), most);
	if (bytes <= most)
		snprintf(run->ran->why, sizeof(run->ran->why),
		         "needed more memory than its limit of %s; raise `memory`", limit);
	else
		snprintf(run->ran->why, sizeof(run->ran->why), "used %s of memory, and its limit is %s; raise `memory`",
		         leat_format_size_up(used, sizeof(used), bytes), limit);
}

static void
say_missing(struct run *run)
{
	char hint[300];

	leat_sandbox_explain_missing(&run->sandbox, hint, sizeof(hint));
	snprintf(run->ran->why, sizeof(run->ran->why), "succeeded, but did not make $out%s", hint);
}

/* How the command ended, from what waiting for it says. */
static void
judge(struct run *run)
{
	struct leat_ran *ran = run->ran;
	int status = run->watch.status;
	struct stat st;

	ran->outcome = run->watch.outcome;
	if (leat_cgroup_exceeded(&run->cgroup))
		ran->outcome = LEAT_TOO_LARGE;
	ran->code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
	if (ran->outcome != LEAT_RAN)
		return;
	if (WIFSIGNALED(status))
		ran->outcome = LEAT_SIGNALED;
	else if (ran->code != 0)
		ran->outcome = LEAT_EXITED;
	else if (lstat(run->sandbox.out, &st) != 0)
		ran->outcome = LEAT_NO_OUTPUT;
}

static void
explain(struct run *run)
{
	struct leat_ran *ran = run->ran;

	switch (ran->outcome) {
	case LEAT_EXITED:
		say_exited(run);
		break;
	case LEAT_SIGNALED:
		say_signaled(run);
		break;
	case LEAT_TIMED_OUT:
		snprintf(ran->why, sizeof(ran->why), "ran longer than its timeout of %g s; raise `timeout`",
		         run->order->timeout_s);
		break;
	case LEAT_TOO_LARGE:
		say_too_large(run);
		break;
	case LEAT_NO_OUTPUT:
		say_missing(run);
		break;
	case LEAT_STOPPED:
		snprintf(ran->why, sizeof(ran->why), "was stopped");
		break;
	case LEAT_WROTE_INPUT:
	case LEAT_RAN:
		break;
	}
}

/* Only on good evidence: a shell and its child are both ready to run now and then, and a runtime may keep many threads
 * that wait. Where cores are short, the CPU time does not show it; where they are not, it does. */
static bool
is_crowded(const struct leat_watch *w)
{
	bool seen = w->crowded >= 4 && 3 * w->crowded >= 2 * w->samples;

	return w->seconds >= 1 && (seen || w->cpu_s > (1.5 * w->cpus + 0.5) * w->seconds);
}

static void
warn_of_threads(struct run *run)
{
	const struct leat_watch *w = &run->watch;
	unsigned busy = w->most_busy > w->cpus ? w->most_busy : (unsigned)ceil(w->cpu_s / w->seconds);

	if (!is_crowded(w))
		return;
	snprintf(run->ran->warning, sizeof(run->ran->warning),
	         "kept %u threads busy on %u cpu%s; set `cpus: %u`, or make it use $cpus threads "
	         "(leat build --tune-threads %.20s)",
	         busy, w->cpus, leat_plural(w->cpus), busy, run->order->step);
}

static void
count(struct run *run)
{
	struct leat_ran *ran = run->ran;
	uint64_t peak = leat_cgroup_peak(&run->cgroup);

	ran->seconds = run->watch.seconds;
	ran->cpu_s = run->watch.cpu_s;
	ran->peak_bytes = peak > 0 ? peak : run->watch.peak_bytes;
	ran->threads = atomic_load(&run->running->threads);
	atomic_store(&run->running->peak_bytes, ran->peak_bytes);
}

static void
check_inputs(struct run *run)
{
	struct leat_err wrote = {0};

	if (leat_sandbox_check_inputs(&run->sandbox, &wrote) == LEAT_OK)
		return;
	run->ran->outcome = LEAT_WROTE_INPUT;
	leat_show(run->ran->why, sizeof(run->ran->why), wrote.text, strlen(wrote.text));
}

/* All that is left to do once the command has run. */
static enum leat_status
conclude(struct run *run, struct leat_err *err)
{
	struct leat_ran *ran = run->ran;
	enum leat_status status;

	count(run);
	judge(run);
	explain(run);
	warn_of_threads(run);
	check_inputs(run);
	strcpy(ran->out, run->sandbox.out);
	status = leat_output_keep(&run->output, run->runner->cas, &ran->log, err);
	if (status == LEAT_OK)
		status = leat_sandbox_profile(&run->sandbox, &ran->profile, err);
	if (status == LEAT_OK)
		status = leat_sandbox_metrics(&run->sandbox, ran->profile, &ran->metrics, ran->warning,
		                              sizeof(ran->warning), err);
	ran->checkpoint = run->sandbox.checkpoint;
	ran->checkpoint_fd = run->sandbox.checkpoint_fd;
	run->sandbox.checkpoint = NULL;
	run->sandbox.checkpoint_fd = -1;
	return status;
}

static enum leat_status
run_in_sandbox(struct run *run, struct leat_err *err)
{
	char marker[PATH_MAX + 32];
	enum leat_status status;
	bool begun;

	leat_cgroup_open(&run->cgroup, "", strrchr(run->sandbox.path, '/') + 1, run->order->memory_bytes);
	status = spawn(run, &begun, err);
	if (status == LEAT_OK && begun) {
		snprintf(marker, sizeof(marker), "LEAT_STEP=%s/step.json", run->sandbox.path);
		watch(run, marker);
		status = conclude(run, err);
	} else if (status == LEAT_OK) {
		status = leat_output_keep(&run->output, run->runner->cas, &run->ran->log, err);
	}
	leat_cgroup_close(&run->cgroup);
	return status;
}

enum leat_status
leat_runner_run(const struct leat_runner *runner, const struct leat_order *order, struct leat_running *running,
                struct leat_ran *ran, struct leat_err *err)
{
	struct run run = {.runner = runner, .order = order, .running = running, .ran = ran};
	struct leat_mem *mem = order->mem;
	enum leat_status status;

	memset(ran, 0, sizeof(*ran));
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	status = leat_sandbox_make(&run.sandbox, runner, order, err);
	strcpy(ran->sandbox, run.sandbox.path);
	strcpy(ran->work, run.sandbox.work);
	ran->pool = runner->pool;
	if (status == LEAT_OK)
		status = leat_output_open(&run.output, mem, run.sandbox.path, LEAT_OUTPUT_LIMIT, err);
	if (status == LEAT_OK)
		status = run_in_sandbox(&run, err);
	if (status == LEAT_OK && ran->metrics == NULL && (ran->metrics = leat_strdup(mem, "")) == NULL)
		status = leat_fail_mem(err, mem, 1, "metrics");
	leat_output_close(&run.output);
	leat_sandbox_free(&run.sandbox);
	return status;
}

enum leat_status
leat_ran_take_rejects(const struct leat_ran *ran, struct leat_cas *cas, struct leat_content *rows, struct leat_err *err)
{
	char path[PATH_MAX];
	struct stat file;

	*rows = (struct leat_content){.kind = LEAT_CONTENT_NONE};
	if (ran->outcome != LEAT_EXITED || *ran->out == '\0' ||
	    snprintf(path, sizeof(path), "%s/rejects.jsonl", ran->out) >= (int)sizeof(path) ||
	    lstat(path, &file) != 0 || !S_ISREG(file.st_mode) || file.st_size == 0)
		return LEAT_OK;
	return leat_cas_take(cas, path, rows, err);
}

/* After a failure processes may be left that nobody found: their sandbox is not used again. */
static void
end_sandbox(struct leat_ran *ran)
{
	bool usable = ran->outcome == LEAT_RAN && *ran->out != '\0';
	bool again = ran->pool != NULL && leat_sandbox_pool_give(ran->pool, ran->sandbox, usable);

	if (!again)
		leat_remove_tree(ran->sandbox);
	*ran->sandbox = '\0';
}

void
leat_ran_end(struct leat_ran *ran, struct leat_mem *mem)
{
	if (ran->kept && ran->checkpoint != NULL)
		leat_remove_tree(ran->checkpoint);
	if (ran->checkpoint != NULL && ran->checkpoint_fd >= 0)
		close(ran->checkpoint_fd); /* after that: the next one must not resume from half of it */
	if (*ran->sandbox != '\0')
		end_sandbox(ran);
	leat_free(mem, ran->metrics);
	leat_free(mem, ran->profile);
	leat_free(mem, ran->checkpoint);
	ran->metrics = ran->profile = ran->checkpoint = NULL;
}
