/* run_log.c - write the log of a run; see run_log.h
 *
 * Each line is one write with its line feed, so whoever follows the file sees whole lines. The last line may be cut off
 * by a power failure; readers skip it. Callers are serialized by the build's event lock. */
#include "step/run_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/opt.h"
#include "step/build_plan.h"

enum { MAX_LINE = 1 << 26 };

struct leat_run_log {
	struct leat_mem *mem;
	const struct leat_project *project;
	const struct leat_build_options *options;
	int fd; /* -1: a write failed */
	struct leat_str line;
};

static const char *const names[] = {
	[LEAT_EVENT_BEGIN] = "begin",     [LEAT_EVENT_PLANNED] = "planned", [LEAT_EVENT_CACHED] = "cached",
	[LEAT_EVENT_START] = "start",     [LEAT_EVENT_RETRY] = "retry",     [LEAT_EVENT_RAN] = "ran",
	[LEAT_EVENT_SAME] = "same",       [LEAT_EVENT_FAILED] = "failed",   [LEAT_EVENT_SKIPPED] = "skipped",
	[LEAT_EVENT_WARNING] = "warning", [LEAT_EVENT_STOPPED] = "stopped", [LEAT_EVENT_RESULT] = "result",
	[LEAT_EVENT_END] = "end",
};

/* ---- members of a line ---- */

static void
add_number(struct leat_str *line, const char *name, double value, int digits)
{
	char text[40];

	leat_str_addf(line, ",\"%s\":%s", name, leat_format_digits(text, sizeof(text), value, digits));
}

static void
add_seconds(struct leat_str *line, const char *name, double value)
{
	add_number(line, name, value, 6);
}

static void
add_count(struct leat_str *line, const char *name, size_t value)
{
	leat_str_addf(line, ",\"%s\":%zu", name, value);
}

static void
add_text(struct leat_str *line, const char *name, const char *text)
{
	leat_str_addf(line, ",\"%s\":", name);
	leat_str_add_json(line, text);
}

static void
add_digest(struct leat_str *line, const char *name, const struct leat_digest *digest)
{
	static const struct leat_digest none;
	char hex[LEAT_SHA256_HEX];

	if (leat_digest_equal(digest, &none))
		return;
	leat_hex(digest->byte, sizeof(digest->byte), hex);
	leat_str_addf(line, ",\"%s\":\"%s\"", name, hex);
}

static void
add_output(struct leat_str *line, const struct leat_content *output)
{
	char text[LEAT_CONTENT_TEXT];

	if (output->kind != LEAT_CONTENT_NONE)
		leat_str_addf(line, ",\"output\":\"%s\"", leat_content_text(output, text));
}

/* Step, slice and id of an action, or only the step. */
static void
add_action(struct leat_str *line, const struct leat_event *event)
{
	struct leat_str text;

	add_text(line, "step", event->step->name);
	if (event->slice == SIZE_MAX)
		return;
	leat_str_init(&text, line->mem, line->max);
	leat_slice_text(&event->step->slices, event->slice, &text);
	add_text(line, "slice", leat_str_text(&text));
	leat_str_free(&text);
	if (event->number)
		leat_str_addf(line, ",\"id\":\"%s-%llu\"", event->step->name, (unsigned long long)event->number);
}

/* ---- lines ---- */

static void
add_step(struct leat_str *line, const struct leat_plan_step *planned)
{
	const struct leat_step *step = planned->step;

	leat_str_add(line, "{\"step\":");
	leat_str_add_json(line, step->name);
	add_count(line, "actions", planned->wanted);
	leat_str_add(line, ",\"in\":[");
	for (size_t i = 0; i < step->edges; i++) {
		leat_str_add(line, i ? "," : "");
		leat_str_add_json(line, step->edge[i].name);
	}
	leat_str_add(line, "]}");
}

static void
add_begin(struct leat_str *line, const struct leat_project *project, const struct leat_build_options *options,
          const struct leat_event *event)
{
	const char *slash = strrchr(project->file, '/');

	if (event->run)
		add_text(line, "run", event->run);
	add_text(line, "file", slash ? slash + 1 : project->file);
	leat_str_add(line, ",\"targets\":[");
	for (size_t i = 0; i < options->targets; i++) {
		leat_str_add(line, i ? "," : "");
		leat_str_add_json(line, options->target[i]);
	}
	leat_str_addf(line, "],\"jobs\":%zu,\"pid\":%ld,\"steps\":[", event->count, (long)getpid());
	for (size_t i = 0; i < project->steps; i++) {
		leat_str_add(line, i ? "," : "");
		add_step(line, &event->plan->step[project->order[i]]);
	}
	leat_str_add(line, "]");
}

static void
add_end(struct leat_str *line, const struct leat_event *event)
{
	const struct leat_build_totals *totals = event->totals;

	if (event->state)
		add_text(line, "state", event->state);
	add_count(line, "actions", totals->actions);
	add_count(line, "cached", totals->cached);
	add_count(line, "ran", totals->ran);
	add_count(line, "same", totals->same);
	add_count(line, "failed", totals->failed);
	add_count(line, "skipped", totals->skipped);
	add_count(line, "differ", totals->differ);
	add_seconds(line, "seconds", totals->seconds);
	add_seconds(line, "saved_s", totals->saved_s);
}

/* What an action did. */
static void
add_deed(struct leat_str *line, const struct leat_event *event)
{
	add_digest(line, "key", &event->key);
	add_output(line, &event->output);
	add_digest(line, "log", &event->log);
	add_seconds(line, "seconds", event->seconds);
	add_seconds(line, "cpu_s", event->cpu_s);
	if (event->why)
		add_text(line, "why", event->why);
}

static void
add_members(struct leat_str *line, const struct leat_event *event)
{
	add_action(line, event);
	switch (event->kind) {
	case LEAT_EVENT_PLANNED:
		add_count(line, "count", event->count);
		add_seconds(line, "expected_s", event->expected_s);
		break;
	case LEAT_EVENT_CACHED:
		add_count(line, "count", event->count);
		add_digest(line, "key", &event->key);
		add_output(line, &event->output);
		add_seconds(line, "saved_s", event->seconds);
		break;
	case LEAT_EVENT_START:
		add_seconds(line, "expected_s", event->expected_s);
		break;
	case LEAT_EVENT_SKIPPED:
		add_count(line, "count", event->count);
		break;
	case LEAT_EVENT_WARNING:
		add_text(line, "why", event->why);
		break;
	case LEAT_EVENT_RESULT:
		add_output(line, &event->output);
		break;
	default:
		add_deed(line, event);
	}
}

void
leat_run_log_line(struct leat_str *line, const struct leat_project *project, const struct leat_build_options *options,
                  const struct leat_event *event)
{
	leat_str_addf(line, "{\"event\":\"%s\"", names[event->kind]);
	add_number(line, "at", event->at_s, 16);
	if (event->kind == LEAT_EVENT_BEGIN)
		add_begin(line, project, options, event);
	else if (event->kind == LEAT_EVENT_END)
		add_end(line, event);
	else
		add_members(line, event);
	leat_str_add(line, "}\n");
}

/* ---- the file ---- */

/* runs/latest -> RUN.jsonl. Only a convenience: failures do not matter. */
static void
link_latest(const char *folder, const char *run)
{
	char link[PATH_MAX], temp[PATH_MAX], target[NAME_MAX + 1];

	if (snprintf(link, sizeof(link), "%s/runs/latest", folder) >= (int)sizeof(link) ||
	    snprintf(temp, sizeof(temp), "%s/runs/.latest-%s", folder, run) >= (int)sizeof(temp))
		return;
	snprintf(target, sizeof(target), "%s.jsonl", run);
	if (symlink(target, temp) == 0 && rename(temp, link) != 0)
		unlink(temp);
}

enum leat_status
leat_run_log_open(struct leat_run_log **log, struct leat_cas *cas, const struct leat_project *project,
                  const struct leat_build_options *options, struct leat_err *err)
{
	struct leat_run_log *l = leat_alloc(project->mem, sizeof(*l));
	char path[PATH_MAX];

	*log = NULL;
	if (!l)
		return leat_fail_mem(err, project->mem, sizeof(*l), "the log of the run");
	*l = (struct leat_run_log){.mem = project->mem, .project = project, .options = options, .fd = -1};
	leat_str_init(&l->line, project->mem, MAX_LINE);
	if (snprintf(path, sizeof(path), "%s/runs/%s.jsonl", leat_cas_folder(cas), leat_cas_run(cas)) < PATH_MAX)
		l->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
	if (l->fd < 0) {
		leat_run_log_close(l);
		return leat_fail_errno(err, errno, "cannot create the log of the run, '%s'", path);
	}
	link_latest(leat_cas_folder(cas), leat_cas_run(cas));
	*log = l;
	return LEAT_OK;
}

static bool
write_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		bytes += n;
		len -= (size_t)n;
	}
	return true;
}

void
leat_run_log_event(struct leat_run_log *log, const struct leat_event *event)
{
	if (log->fd < 0)
		return;
	log->line.len = 0;
	leat_run_log_line(&log->line, log->project, log->options, event);
	if (log->line.failed || !write_all(log->fd, log->line.text, log->line.len)) {
		close(log->fd);
		log->fd = -1;
	}
}

void
leat_run_log_close(struct leat_run_log *log)
{
	if (!log)
		return;
	if (log->fd >= 0)
		close(log->fd);
	leat_str_free(&log->line);
	leat_free(log->mem, log);
}
