/* progress.c - see progress.h */
#include "cli/progress.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "cli/print.h"
#include "step/run_log.h"

enum { REDRAW_MS = 150, KEYS_MS = 1000, MAX_LINE = 1 << 26 };
#define SAY_HASHING_NS 2000000000u

/* ---- the terminal ---- */

/* The code that removes the tree. */
static void
add_erase(struct leat_build_progress *p, struct leat_str *out)
{
	if (p->drawn)
		leat_str_addf(out, "\033[%zuA\r\033[J", p->drawn);
	p->drawn = 0;
}

static void
erase(struct leat_build_progress *p)
{
	if (p->drawn)
		fprintf(p->out, "\033[%zuA\r\033[J", p->drawn);
	p->drawn = 0;
}

/* In one write: no terminal shows half a tree, and what is typed is not echoed in its midst. */
static void
draw(struct leat_build_progress *p)
{
	struct winsize size = {0};
	struct leat_str tree;
	size_t lines;

	ioctl(fileno(p->out), TIOCGWINSZ, &size);
	leat_str_init(&tree, p->mem, MAX_LINE);
	add_erase(p, &tree);
	lines = leat_progress_tree(p, &tree, size.ws_row > 2 ? size.ws_row - 1u : 0, size.ws_col);
	fputs(leat_str_text(&tree), p->out);
	p->drawn = lines;
	leat_str_free(&tree);
	fflush(p->out);
}

/* A line above the tree. */
static void
say(struct leat_build_progress *p, const char *text)
{
	erase(p);
	leat_print_line(p->out, "%s", text);
	fflush(p->out);
}

/* ---- what is known ---- */

static struct leat_progress_step *
step_of(struct leat_build_progress *p, const struct leat_event *event)
{
	return &p->step[event->step - p->project->step];
}

static void
add_action(struct leat_build_progress *p, const struct leat_event *event)
{
	struct leat_str slice;
	char *text;

	leat_str_init(&slice, p->mem, 1 << 16);
	leat_slice_text(&event->step->slices, event->slice, &slice);
	leat_str_add(&slice, "");
	text = leat_str_take(&slice);
	if (!text || LEAT_GROW(p->mem, p->action, p->cap, p->actions + 1, SIZE_MAX, "progress", NULL) != LEAT_OK) {
		leat_free(p->mem, text);
		return;
	}
	p->action[p->actions++] = (struct leat_progress_action){.step = event->step,
	                                                        .slice = text,
	                                                        .number = event->number,
	                                                        .begun_ns = leat_now(),
	                                                        .expected_s = event->expected_s,
	                                                        .running = event->running};
	step_of(p, event)->running++;
}

static void
remove_action(struct leat_build_progress *p, const struct leat_event *event)
{
	for (size_t i = 0; i < p->actions; i++) {
		if (p->action[i].running != event->running)
			continue;
		leat_free(p->mem, p->action[i].slice);
		memmove(&p->action[i], &p->action[i + 1], (p->actions - i - 1) * sizeof(*p->action));
		p->actions--;
		step_of(p, event)->running--;
		return;
	}
}

/* What is expected of a step shrinks by what this action was expected to take. */
static void
finish(struct leat_progress_step *s, const struct leat_event *event)
{
	s->ran++;
	s->ran_s += event->seconds;
	s->expected_s -= s->expected_s < event->expected_s ? s->expected_s : event->expected_s;
}

static void
note(struct leat_build_progress *p, const struct leat_event *event)
{
	struct leat_progress_step *s = event->step ? step_of(p, event) : NULL;

	switch (event->kind) {
	case LEAT_EVENT_BEGIN:
		p->is_hashing = false;
		erase(p);
		p->jobs = (unsigned)event->count;
		break;
	case LEAT_EVENT_PLANNED:
		s->actions += event->count;
		s->expected_s = event->expected_s;
		s->timed = event->expected_s > 0;
		break;
	case LEAT_EVENT_CACHED:
		s->cached += event->count;
		s->unsaid += event->count;
		s->expected_s -= s->expected_s < event->seconds ? s->expected_s : event->seconds;
		if (s->actions < s->cached + s->ran + s->running)
			s->actions = s->cached + s->ran + s->running;
		break;
	case LEAT_EVENT_START:
		add_action(p, event);
		break;
	case LEAT_EVENT_RAN:
	case LEAT_EVENT_SAME:
		finish(s, event);
		remove_action(p, event);
		break;
	case LEAT_EVENT_FAILED:
		s->failed++;
		remove_action(p, event);
		break;
	case LEAT_EVENT_STOPPED:
		remove_action(p, event);
		break;
	case LEAT_EVENT_SKIPPED:
		s->skipped += event->count;
		break;
	default:
		break;
	}
}

/* ---- lines ---- */

/* "decode-42 subject=3,bin=7" */
static void
add_name(struct leat_str *line, const struct leat_event *event)
{
	leat_str_addf(line, "%s-%llu", event->step->name, (unsigned long long)event->number);
	if (event->step->slices.variables > 0) {
		leat_str_add(line, " ");
		leat_slice_text(&event->step->slices, event->slice, line);
	}
}

static void
clear(struct leat_str *line)
{
	line->len = 0;
	leat_str_add(line, "");
}

/* Cached actions in one line for each step, before anything else is said. */
static void
say_cached(struct leat_build_progress *p)
{
	for (size_t i = 0; i < p->project->steps; i++) {
		struct leat_progress_step *s = &p->step[p->project->order[i]];

		if (!s->unsaid)
			continue;
		clear(&p->line);
		leat_str_addf(&p->line, "%s: ", p->project->step[p->project->order[i]].name);
		if (p->project->step[p->project->order[i]].slices.count > 1)
			leat_str_addf(&p->line, "%zu of %zu ", s->unsaid,
			              p->project->step[p->project->order[i]].slices.count);
		leat_str_add(&p->line, "made before");
		s->unsaid = 0;
		say(p, leat_str_text(&p->line));
	}
}

static void
say_ran(struct leat_build_progress *p, const struct leat_event *event)
{
	clear(&p->line);
	add_name(&p->line, event);
	leat_str_add(&p->line, ": ran in ");
	leat_add_duration(&p->line, event->seconds);
	if (event->kind == LEAT_EVENT_SAME)
		leat_str_add(&p->line, ", same output as before");
	say(p, leat_str_text(&p->line));
}

static void
say_why(struct leat_build_progress *p, const struct leat_event *event, const char *what)
{
	clear(&p->line);
	if (event->kind == LEAT_EVENT_FAILED) {
		leat_str_addf(&p->line, "failed: %s", event->why);
	} else {
		add_name(&p->line, event);
		leat_str_addf(&p->line, ": %s%s", what, event->why);
	}
	say(p, leat_str_text(&p->line));
}

static void
say_event(struct leat_build_progress *p, const struct leat_event *event)
{
	bool lines = p->mode == LEAT_PROGRESS_LINES;

	if (lines && (event->kind == LEAT_EVENT_RAN || event->kind == LEAT_EVENT_SAME)) {
		say_cached(p);
		say_ran(p, event);
	} else if (lines && event->kind == LEAT_EVENT_END) {
		say_cached(p);
	} else if (event->kind == LEAT_EVENT_FAILED) {
		say_why(p, event, "");
	} else if (event->kind == LEAT_EVENT_RETRY) {
		say_why(p, event, "tried again: ");
	} else if (event->kind == LEAT_EVENT_WARNING) {
		say_why(p, event, "warning: ");
	}
}

static void
print_json(struct leat_build_progress *p, const struct leat_event *event)
{
	p->line.len = 0;
	leat_run_log_line(&p->line, p->project, p->options, event);
	fwrite(leat_str_text(&p->line), 1, p->line.len, stdout);
	fflush(stdout);
}

static void
listen(void *arg, const struct leat_event *event)
{
	struct leat_build_progress *p = arg;

	pthread_mutex_lock(&p->lock);
	note(p, event);
	if (p->mode == LEAT_PROGRESS_JSON)
		print_json(p, event);
	else
		say_event(p, event);
	if (event->kind == LEAT_EVENT_END)
		erase(p);
	pthread_mutex_unlock(&p->lock);
}

void
leat_progress_summary(struct leat_str *line, const struct leat_build_totals *t, bool dry)
{
	size_t rest = t->actions - t->cached - t->ran - t->failed - t->skipped;

	if (dry)
		leat_str_addf(line, "%zu to run, ", rest);
	else
		leat_str_addf(line, "%zu ran, ", t->ran);
	leat_str_addf(line, "%zu made before", t->cached);
	if (t->failed)
		leat_str_addf(line, ", %zu failed", t->failed);
	if (t->skipped)
		leat_str_addf(line, ", %zu skipped because of that", t->skipped);
	if (rest && !dry)
		leat_str_addf(line, ", %zu not finished", rest);
	leat_str_add(line, ", in ");
	leat_add_duration(line, t->seconds);
	if (t->saved_s >= 0.05) {
		leat_str_add(line, "; reuse saved ");
		leat_add_duration(line, t->saved_s);
	}
}

/* ---- signals and keys ---- */

/* Those that are waited for. */
static sigset_t
signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGCONT);
	return set;
}

/* A build goes on in the background, also where those who read the terminal or write to it are stopped. */
static sigset_t
blocked_signals(void)
{
	sigset_t set = signals();

	sigaddset(&set, SIGTTIN);
	sigaddset(&set, SIGTTOU);
	return set;
}

static void
interrupt(struct leat_build_progress *p, int signal)
{
	if (signal == SIGTERM || atomic_load(&p->stop)) {
		atomic_store(&p->stop, true);
		atomic_store(&p->kill, true);
		return;
	}
	atomic_store(&p->stop, true);
	pthread_mutex_lock(&p->lock);
	if (p->actions) {
		erase(p);
		leat_print_line(stderr, "stopping: %zu action%s will be finished; ^C again kills %s", p->actions,
		                leat_plural(p->actions), p->actions == 1 ? "it" : "them");
	}
	pthread_mutex_unlock(&p->lock);
}

static void
print_tree(struct leat_build_progress *p)
{
	struct leat_str tree;

	leat_str_init(&tree, p->mem, MAX_LINE);
	add_erase(p, &tree);
	leat_progress_tree(p, &tree, 0, 0);
	fputs(leat_str_text(&tree), stderr);
	fflush(stderr);
	leat_str_free(&tree);
}

/* Where there is no tree: one line, if it takes long. */
static void
say_hashing(struct leat_build_progress *p)
{
	if (p->mode != LEAT_PROGRESS_LINES || !p->is_hashing || !p->opened_ns ||
	    leat_now() - p->opened_ns < SAY_HASHING_NS)
		return;
	p->opened_ns = 0;
	print_tree(p);
}

/* How long nothing has to be shown, in ms; -1: for ever. */
static int
pause_of(struct leat_build_progress *p)
{
	bool shows;

	pthread_mutex_lock(&p->lock);
	shows = p->mode == LEAT_PROGRESS_LIVE || (p->mode == LEAT_PROGRESS_LINES && p->is_hashing);
	pthread_mutex_unlock(&p->lock);
	return shows ? REDRAW_MS : p->keys.fd >= 0 ? KEYS_MS : -1;
}

/* ^T does what SIGUSR1 does. The terminal echoes the end of a line, so the tree is further up. */
static int
read_keys(struct leat_build_progress *p)
{
	size_t lines;
	bool found = leat_keys_read(&p->keys, &lines);

	pthread_mutex_lock(&p->lock);
	if (p->drawn)
		p->drawn += lines;
	pthread_mutex_unlock(&p->lock);
	return found ? SIGUSR1 : 0;
}

/* Waits for a signal or a key, or until there may be something to show. 0: none. */
static int
next_signal(struct leat_build_progress *p)
{
	struct pollfd on[] = {{.fd = p->signal_fd, .events = POLLIN}, {.fd = leat_keys_fd(&p->keys), .events = POLLIN}};
	struct signalfd_siginfo info;

	if (poll(on, 2, pause_of(p)) <= 0)
		return 0;
	if (on[0].revents && read(p->signal_fd, &info, sizeof(info)) == sizeof(info))
		return (int)info.ssi_signo;
	return on[1].revents ? read_keys(p) : 0;
}

/* In the background, the terminal is left to others. */
static void
redraw(struct leat_build_progress *p)
{
	if (p->mode == LEAT_PROGRESS_LIVE && (p->actions || p->is_hashing) && leat_is_foreground(fileno(p->out)))
		draw(p);
}

static void *
watch(void *arg)
{
	struct leat_build_progress *p = arg;

	leat_keys_open(&p->keys);
	while (!atomic_load(&p->ended)) {
		int signal = next_signal(p);

		if (atomic_load(&p->ended))
			break;
		if (signal == SIGINT || signal == SIGTERM)
			interrupt(p, signal);
		pthread_mutex_lock(&p->lock);
		if (signal == SIGCONT) /* the shell has written below the tree */
			p->drawn = 0;
		if (signal == SIGUSR1)
			print_tree(p);
		say_hashing(p);
		redraw(p);
		pthread_mutex_unlock(&p->lock);
	}
	leat_keys_close(&p->keys);
	return NULL;
}

/* ---- open and close ---- */

enum leat_status
leat_progress_open(struct leat_build_progress *p, const struct leat_project *project,
                   struct leat_build_options *options, enum leat_progress_mode mode, FILE *out, struct leat_err *err)
{
	sigset_t set = blocked_signals(), waited = signals();

	*p = (struct leat_build_progress){
		.mem = project->mem, .project = project, .options = options, .mode = mode, .out = out};
	p->is_hashing = true;
	p->opened_ns = leat_now();
	p->step = leat_alloc_array(p->mem, project->steps, sizeof(*p->step));
	if (!p->step) {
		p->mem = NULL;
		return leat_fail_mem(err, project->mem, project->steps * sizeof(*p->step), "progress");
	}
	leat_str_init(&p->line, p->mem, MAX_LINE);
	pthread_mutex_init(&p->lock, NULL);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	p->signal_fd = signalfd(-1, &waited, SFD_CLOEXEC | SFD_NONBLOCK);
	p->watching = p->signal_fd >= 0 && pthread_create(&p->watcher, NULL, watch, p) == 0;
	if (!p->watching) /* then signals end the process as usual */
		pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	options->listen = listen;
	options->arg = p;
	options->stop = &p->stop;
	options->kill = &p->kill;
	if (mode == LEAT_PROGRESS_LIVE || mode == LEAT_PROGRESS_LINES) /* else nobody sees how far it is */
		options->hashing = &p->hashing;
	return LEAT_OK;
}

void
leat_progress_close(struct leat_build_progress *p)
{
	if (!p->mem)
		return;
	atomic_store(&p->ended, true);
	if (p->watching) {
		pthread_kill(p->watcher, SIGUSR1);
		pthread_join(p->watcher, NULL);
	}
	if (p->signal_fd >= 0)
		close(p->signal_fd);
	erase(p); /* of a build that failed before its first event */
	for (size_t i = 0; i < p->actions; i++)
		leat_free(p->mem, p->action[i].slice);
	leat_free(p->mem, p->action);
	leat_free(p->mem, p->step);
	leat_str_free(&p->line);
	pthread_mutex_destroy(&p->lock);
	p->mem = NULL;
}
