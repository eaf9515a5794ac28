/* runner_watch.c - wait for a command, look after it now and then, and end it
 *
 * Looking at the processes costs some ten microseconds, so a command is left alone for its first 50 ms; the intervals
 * then double up to a second, unless a memory limit has to be enforced. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "step/runner_inside.h"

static const uint64_t ms = 1000000;

/* Times in ms. */
enum {
	FIRST_LOOK = 50,
	LAST_INTERVAL = 1000,
	LIMITED_INTERVAL = 25, /* with a memory limit */
	NAP = 100,             /* until `stop` is looked at again */
	LEFT_ALONE = 200,      /* what the command started may end by itself after it */
	UNKILLABLE = 10000     /* a process that waits for a broken disk */
};
enum { MAX_PROGRESS = 4096, MAX_LEFT_READS = 64 };

struct state {
	struct leat_watch *watch;
	uint64_t begin, next_look, interval;
	uint64_t kill_at;  /* SIGKILL follows SIGTERM; 0: it may run on */
	bool has_progress; /* which is shown instead of its output */
};

/* ---- what is shown ---- */

static void
show_line(struct leat_running *running, const char *line)
{
	pthread_mutex_lock(&running->lock);
	snprintf(running->last_line, sizeof(running->last_line), "%s", line);
	pthread_mutex_unlock(&running->lock);
}

static void
read_output(struct state *s)
{
	struct leat_output *output = s->watch->output;
	char line[sizeof(s->watch->running->last_line)];

	if (!leat_output_read(output) || s->has_progress)
		return;
	leat_last_line(output->tail, output->tail_len, line, sizeof(line));
	if (*line != '\0')
		show_line(s->watch->running, line);
}

/* "3 of 10, fold 3", or "fold 3" alone */
static void
show_progress(struct state *s, json_t *json)
{
	struct leat_running *running = s->watch->running;
	json_int_t done = json_integer_value(json_object_get(json, "done"));
	json_int_t total = json_integer_value(json_object_get(json, "total"));
	const char *text = json_string_value(json_object_get(json, "text"));
	char shown[120] = "", line[sizeof(running->last_line)], of[40] = "";

	atomic_store(&running->done, done < 0 ? 0 : (unsigned long long)done);
	atomic_store(&running->total, total < 0 ? 0 : (unsigned long long)total);
	if (total > 0)
		snprintf(of, sizeof(of), " of %lld", (long long)total);
	if (text != NULL)
		leat_show(shown, sizeof(shown), text, strlen(text));
	s->has_progress = true;
	if (json_object_get(json, "done") == NULL)
		snprintf(line, sizeof(line), "%s", shown);
	else
		snprintf(line, sizeof(line), "%lld%s%s%s", (long long)done, of, *shown == '\0' ? "" : ", ", shown);
	show_line(running, line);
}

static void
read_progress(struct state *s)
{
	char text[MAX_PROGRESS];
	ssize_t n;
	json_t *json;
	int fd = open(s->watch->progress, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return;
	n = read(fd, text, sizeof(text));
	close(fd);
	json = n <= 0 ? NULL : json_loadb(text, (size_t)n, JSON_DISABLE_EOF_CHECK, NULL);
	if (json_is_object(json))
		show_progress(s, json);
	json_decref(json);
}

/* ---- what it uses ---- */

static void
count_use(struct leat_watch *w, const struct leat_process_use *use)
{
	struct leat_running *running = w->running;

	atomic_store(&running->bytes, use->bytes);
	if (use->bytes > atomic_load(&running->peak_bytes))
		atomic_store(&running->peak_bytes, use->bytes);
	if (use->threads > atomic_load(&running->threads))
		atomic_store(&running->threads, use->threads);
	w->samples++;
	w->crowded += 2 * use->busy >= 3 * w->cpus + 2; /* clearly more */
	if (use->busy > w->most_busy)
		w->most_busy = use->busy;
}

static void
look(struct state *s)
{
	struct leat_watch *w = s->watch;
	bool polls = w->memory_bytes > 0 && w->cgroup->folder[0] == '\0';
	struct leat_processes processes;
	struct leat_process_use use;

	leat_processes_find(&processes, w->process.pid, w->marker);
	leat_processes_use(&processes, w->cpus, polls ? w->memory_bytes : 0, &use);
	count_use(w, &use);
	if (polls && use.bytes > w->memory_bytes && w->outcome == LEAT_RAN) {
		w->outcome = LEAT_TOO_LARGE;
		s->kill_at = leat_now(); /* every moment counts */
	}
	s->interval = polls                                  ? LIMITED_INTERVAL * ms
	              : s->interval * 2 > LAST_INTERVAL * ms ? LAST_INTERVAL * ms
	                                                     : s->interval * 2;
	s->next_look = leat_now() + s->interval;
}

/* ---- ending it ---- */

static void
terminate(struct state *s, enum leat_outcome outcome)
{
	s->watch->outcome = outcome;
	s->kill_at = leat_now() + (uint64_t)(s->watch->grace_s * 1e9);
	leat_processes_signal(s->watch->process.pid, true, s->watch->marker, SIGTERM);
}

static void
check_limits(struct state *s, uint64_t now)
{
	struct leat_watch *w = s->watch;

	if (s->kill_at == 0 && w->stop != NULL && atomic_load(w->stop))
		terminate(s, LEAT_STOPPED);
	else if (s->kill_at == 0 && w->timeout_s > 0 && (double)(now - s->begin) * 1e-9 >= w->timeout_s)
		terminate(s, LEAT_TIMED_OUT);
	if (now >= s->next_look && s->kill_at == 0)
		look(s);
	if (s->kill_at > 0 && leat_now() >= s->kill_at)
		leat_processes_signal(w->process.pid, true, w->marker, SIGKILL);
}

static int
poll_ms(const struct state *s, uint64_t now)
{
	uint64_t until = now + NAP * ms, limit = s->begin + (uint64_t)(s->watch->timeout_s * 1e9);

	if (s->next_look < until)
		until = s->next_look;
	if (s->watch->timeout_s > 0 && s->kill_at == 0 && limit < until)
		until = limit;
	if (s->kill_at > 0)
		until = s->kill_at > now && s->kill_at < now + 10 * ms ? s->kill_at : now + 10 * ms;
	return until <= now ? 0 : (int)((until - now + ms - 1) / ms);
}

static bool
is_unkillable(const struct state *s)
{
	return s->kill_at > 0 && leat_now() >= s->kill_at + UNKILLABLE * ms;
}

/* Until the leader has ended. False: it cannot be ended. */
static bool
wait_for_leader(struct state *s)
{
	struct leat_watch *w = s->watch;
	struct pollfd fd[2] = {{.fd = w->process.pidfd, .events = POLLIN}, {.events = POLLIN}};

	while (!is_unkillable(s)) {
		int wait = poll_ms(s, leat_now());

		fd[1].fd = w->output->read_fd;
		if (poll(fd, 2, wait) > 0) {
			if (fd[0].revents != 0)
				return true;
			read_output(s);
		} else {
			read_progress(s);
		}
		check_limits(s, leat_now());
	}
	return false;
}

static void
reap_leader(struct leat_watch *w, bool ended)
{
	struct rusage usage = {0}, own;
	pid_t pid;

	do
		pid = wait4(w->process.pid, &w->status, ended ? 0 : WNOHANG, &usage);
	while (pid < 0 && errno == EINTR);
	if (pid == 0)
		w->status = SIGKILL; /* it ends when its disk answers */
	w->cpu_s = leat_cpu_seconds(&usage);
	w->peak_bytes = atomic_load(&w->running->peak_bytes);
	/* Linux counts the memory of the process that called vfork, too. */
	if (getrusage(RUSAGE_SELF, &own) == 0 && usage.ru_maxrss > own.ru_maxrss &&
	    (uint64_t)usage.ru_maxrss * 1024 > w->peak_bytes)
		w->peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
}

/* What the command left running in its group: it may be about to end. Else it is killed. */
static void
end_group(struct state *s)
{
	struct leat_watch *w = s->watch;
	uint64_t kill_at = s->kill_at == 0 ? leat_now() + LEFT_ALONE * ms : s->kill_at;

	while (leat_processes_remain(w->process.pid, &w->cpu_s) && leat_now() < kill_at + UNKILLABLE * ms) {
		struct pollfd fd = {.fd = w->output->read_fd, .events = POLLIN};

		if (leat_now() >= kill_at || (w->stop != NULL && s->kill_at == 0 && atomic_load(w->stop)))
			leat_processes_signal(w->process.pid, false, w->marker, SIGKILL);
		if (poll(&fd, 1, 2) > 0)
			read_output(s);
	}
	leat_processes_end_daemons(w->marker);
}

void
leat_watch(struct leat_watch *w)
{
	struct state s = {.watch = w, .begin = w->begin, .interval = FIRST_LOOK * ms};
	bool ended;

	s.next_look = s.begin + s.interval;
	w->outcome = LEAT_RAN;
	ended = wait_for_leader(&s);
	w->seconds = (double)(leat_now() - s.begin) * 1e-9;
	reap_leader(w, ended);
	end_group(&s);
	for (int i = 0; i < MAX_LEFT_READS && leat_output_read(w->output); i++)
		;
}
