/* tally.c - see tally.h */
#include "board/tally.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"

enum { MOST_STEPS = 10000, MOST_FINISHED = 4000, MOST_FAILED = 1000, MOST_RUNNING = 4096, LINE_BYTES = 1 << 20 };

void
leat_tally_init(struct leat_tally *tally, struct leat_mem *mem)
{
	*tally = (struct leat_tally){.mem = mem, .touched = SIZE_MAX};
}

/* ---- lines that are kept ---- */

static void
free_line(struct leat_tally_line *line, struct leat_mem *mem)
{
	leat_free(mem, line->text);
	leat_free(mem, line->name);
	*line = (struct leat_tally_line){0};
}

static void
free_lines(struct leat_tally_lines *lines, struct leat_mem *mem)
{
	for (size_t i = 0; i < lines->count; i++)
		free_line(&lines->line[i], mem);
	leat_free(mem, lines->line);
}

/* A place for one more line; of a full list, that of the oldest. */
static struct leat_tally_line *
new_line(struct leat_tally *tally, struct leat_tally_lines *lines, size_t most, struct leat_err *err)
{
	if (lines->count == most) {
		struct leat_tally_line *oldest = &lines->line[lines->oldest];

		lines->oldest = (lines->oldest + 1) % most;
		tally->left_out++;
		free_line(oldest, tally->mem);
		return oldest;
	}
	if (LEAT_GROW(tally->mem, lines->line, lines->cap, lines->count + 1, most, "the lines of a run", err) !=
	    LEAT_OK)
		return NULL;
	return &lines->line[lines->count++];
}

static enum leat_status
keep_line(struct leat_tally *tally, struct leat_tally_lines *lines, size_t most, const char *name, struct leat_err *err)
{
	struct leat_tally_line line = {.text = leat_strdup(tally->mem, tally->last),
	                               .name = leat_strdup(tally->mem, name)};
	struct leat_tally_line *place;

	if (!line.text || !line.name) {
		free_line(&line, tally->mem);
		return leat_fail_mem(err, tally->mem, strlen(name), "the lines of a run");
	}
	place = new_line(tally, lines, most, err);
	if (!place) {
		free_line(&line, tally->mem);
		return LEAT_NOMEM;
	}
	*place = line;
	return LEAT_OK;
}

static struct leat_tally_line *
find_line(const struct leat_tally_lines *lines, const char *name)
{
	for (size_t i = 0; i < lines->count; i++)
		if (strcmp(lines->line[i].name, name) == 0)
			return &lines->line[i];
	return NULL;
}

/* ---- steps ---- */

static enum leat_status
find_step(struct leat_tally *tally, const char *name, struct leat_tally_step **step, struct leat_err *err)
{
	enum leat_status status;

	for (size_t i = 0; i < tally->steps; i++) {
		*step = &tally->step[i];
		if (strcmp((*step)->name, name) == 0)
			return LEAT_OK;
	}
	status = LEAT_GROW(tally->mem, tally->step, tally->steps_cap, tally->steps + 1, MOST_STEPS,
	                   "the steps of a run", err);
	if (status != LEAT_OK)
		return status;
	*step = &tally->step[tally->steps];
	(*step)->name = leat_strdup(tally->mem, name);
	if (!(*step)->name)
		return leat_fail_mem(err, tally->mem, strlen(name), "the steps of a run");
	tally->steps++;
	return LEAT_OK;
}

static int
append(const char *text, size_t len, void *out)
{
	leat_str_addn(out, text, len);
	return 0;
}

/* A JSON value as text without line breaks. NULL: out of memory. */
static char *
dump(struct leat_mem *mem, const json_t *value)
{
	struct leat_str text;
	char *taken;

	leat_str_init(&text, mem, LINE_BYTES * 2);
	if (json_dump_callback(value, append, &text, JSON_COMPACT | JSON_ENCODE_ANY) != 0)
		text.failed = true;
	taken = leat_str_take(&text);
	leat_str_free(&text);
	return taken;
}

static enum leat_status
add_planned(struct leat_tally *tally, const json_t *planned, struct leat_err *err)
{
	const char *name = json_string_value(json_object_get(planned, "step"));
	json_int_t actions = json_integer_value(json_object_get(planned, "actions"));
	const json_t *in = json_object_get(planned, "in");
	struct leat_tally_step *step;
	enum leat_status status;

	if (!name || actions <= 0)
		return LEAT_OK; /* not part of this run */
	status = find_step(tally, name, &step, err);
	if (status != LEAT_OK)
		return status;
	step->actions = (uint64_t)actions;
	if (!step->in && json_is_array(in)) {
		step->in = dump(tally->mem, in);
		if (!step->in)
			return leat_fail_mem(err, tally->mem, 0, "the steps of a run");
	}
	return LEAT_OK;
}

static enum leat_status
begin(struct leat_tally *tally, const struct leat_run_line *line, struct leat_err *err)
{
	const json_t *steps = json_object_get(line->json, "steps"), *planned;
	enum leat_status status = LEAT_OK;
	size_t i;

	if (tally->begin)
		return LEAT_OK;
	tally->begin = leat_strdup(tally->mem, tally->last);
	if (!tally->begin)
		return leat_fail_mem(err, tally->mem, strlen(tally->last), "the lines of a run");
	json_array_foreach(steps, i, planned)
	{
		status = add_planned(tally, planned, err);
		if (status != LEAT_OK)
			break;
	}
	return status;
}

/* ---- events of actions ---- */

static enum leat_status
start(struct leat_tally *tally, struct leat_tally_step *step, const char *name, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	if (!find_line(&tally->running, name) && tally->running.count < MOST_RUNNING) {
		status = keep_line(tally, &tally->running, MOST_RUNNING, name, err);
		step->running += status == LEAT_OK;
	}
	return status;
}

static void
stop_running(struct leat_tally *tally, struct leat_tally_step *step, const char *name)
{
	struct leat_tally_line *line = find_line(&tally->running, name);

	if (!line)
		return;
	free_line(line, tally->mem);
	*line = tally->running.line[--tally->running.count];
	step->running -= step->running > 0;
}

static enum leat_status
add_event(struct leat_tally *tally, const struct leat_run_line *line, struct leat_tally_step *step, const char *name,
          struct leat_err *err)
{
	uint64_t count = line->count ? line->count : 1;
	uint64_t *counter = strcmp(line->event, "cached") == 0    ? &step->cached
	                    : strcmp(line->event, "ran") == 0     ? &step->ran
	                    : strcmp(line->event, "same") == 0    ? &step->same
	                    : strcmp(line->event, "failed") == 0  ? &step->failed
	                    : strcmp(line->event, "skipped") == 0 ? &step->skipped
	                                                          : NULL;
	bool failed = counter == &step->failed;

	if (strcmp(line->event, "start") == 0)
		return start(tally, step, name, err);
	if (strcmp(line->event, "stopped") == 0)
		stop_running(tally, step, name);
	if (!counter)
		return LEAT_OK;
	*counter += count;
	if (counter == &step->skipped)
		return LEAT_OK;
	stop_running(tally, step, name);
	return keep_line(tally, failed ? &tally->failed : &tally->finished, failed ? MOST_FAILED : MOST_FINISHED, name,
	                 err);
}

static enum leat_status
add_action(struct leat_tally *tally, const struct leat_run_line *line, struct leat_err *err)
{
	struct leat_tally_step *step;
	enum leat_status status = find_step(tally, line->step, &step, err);
	char *name;

	if (status != LEAT_OK)
		return status;
	name = leat_asprintf(tally->mem, "%s:%s", line->step, line->slice ? line->slice : "");
	if (!name)
		return leat_fail_mem(err, tally->mem, strlen(line->step), "the lines of a run");
	tally->touched = (size_t)(step - tally->step);
	status = add_event(tally, line, step, name, err);
	leat_free(tally->mem, name);
	return status;
}

static enum leat_status
add_line(struct leat_tally *tally, const struct leat_run_line *line, struct leat_err *err)
{
	tally->last = dump(tally->mem, line->json);
	if (!tally->last)
		return leat_fail_mem(err, tally->mem, 0, "a line of a run");
	if (strcmp(line->event, "begin") == 0)
		return begin(tally, line, err);
	if (strcmp(line->event, "end") == 0 && !tally->end) {
		tally->end = leat_strdup(tally->mem, tally->last);
		return tally->end ? LEAT_OK : leat_fail_mem(err, tally->mem, strlen(tally->last), "a line of a run");
	}
	return line->step && *line->step ? add_action(tally, line, err) : LEAT_OK;
}

enum leat_status
leat_tally_add(struct leat_tally *tally, const char *line, size_t len, struct leat_err *err)
{
	struct leat_run_line parsed;
	enum leat_status status;

	leat_free(tally->mem, tally->last);
	tally->last = NULL;
	tally->touched = SIZE_MAX;
	if (leat_run_line_parse(line, len, &parsed, NULL) != LEAT_OK)
		return LEAT_OK;
	status = add_line(tally, &parsed, err);
	leat_run_line_free(&parsed);
	return status;
}

/* ---- a log ---- */

/* Adds the lines of `text`; returns the bytes up to the last line break. */
static enum leat_status
add_lines(struct leat_tally *tally, const char *text, size_t len, size_t *used,
          void (*each)(void *arg, const struct leat_tally *tally), void *arg, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	const char *end;

	*used = 0;
	while (status == LEAT_OK && (end = memchr(text + *used, '\n', len - *used))) {
		status = leat_tally_add(tally, text + *used, (size_t)(end - text) - *used, err);
		*used = (size_t)(end - text) + 1;
		if (status == LEAT_OK && each)
			each(arg, tally);
	}
	return status;
}

enum leat_status
leat_tally_read(struct leat_tally *tally, int fd, uint64_t *at, size_t most,
                void (*each)(void *arg, const struct leat_tally *tally), void *arg, struct leat_err *err)
{
	char *text = leat_alloc(tally->mem, LINE_BYTES);
	enum leat_status status = text ? LEAT_OK : leat_fail_mem(err, tally->mem, LINE_BYTES, "a run's log");
	uint64_t end = *at + most;

	while (status == LEAT_OK && *at < end) {
		ssize_t got = pread(fd, text, LINE_BYTES, (off_t)*at);
		size_t used;

		if (got < 0)
			status = leat_fail_errno(err, errno, "cannot read a run's log");
		if (got <= 0)
			break;
		status = add_lines(tally, text, (size_t)got, &used, each, arg, err);
		if (!used && got < LINE_BYTES)
			break;                   /* the last line is being written */
		*at += used ? used : LINE_BYTES; /* a line that long is no event */
	}
	leat_free(tally->mem, text);
	return status;
}

/* ---- as JSON ---- */

void
leat_tally_step_json(const struct leat_tally_step *step, struct leat_str *json)
{
	const struct {
		const char *name;
		uint64_t value;
	} counters[] = {{"actions", step->actions}, {"cached", step->cached}, {"ran", step->ran},
	                {"same", step->same},       {"failed", step->failed}, {"skipped", step->skipped},
	                {"running", step->running}};

	leat_str_add(json, "{\"step\":");
	leat_str_add_json(json, step->name);
	leat_str_addf(json, ",\"in\":%s", step->in ? step->in : "[]");
	for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++)
		leat_str_addf(json, ",\"%s\":%llu", counters[i].name, (unsigned long long)counters[i].value);
	leat_str_add(json, "}");
}

static void
add_lines_json(const char *name, const struct leat_tally_lines *lines, struct leat_str *json)
{
	leat_str_addf(json, ",\"%s\":[", name);
	for (size_t i = 0; i < lines->count; i++) {
		leat_str_add(json, i ? "," : "");
		leat_str_add(json, lines->line[(lines->oldest + i) % lines->count].text);
	}
	leat_str_add(json, "]");
}

void
leat_tally_json(const struct leat_tally *tally, const char *run, bool alive, struct leat_str *json)
{
	leat_str_add(json, "{\"run\":");
	leat_str_add_json(json, run);
	leat_str_addf(json, ",\"alive\":%s,\"begin\":%s,\"end\":%s,\"steps\":[", alive ? "true" : "false",
	              tally->begin ? tally->begin : "null", tally->end ? tally->end : "null");
	for (size_t i = 0; i < tally->steps; i++) {
		leat_str_add(json, i ? "," : "");
		leat_tally_step_json(&tally->step[i], json);
	}
	leat_str_add(json, "]");
	add_lines_json("running", &tally->running, json);
	add_lines_json("failed", &tally->failed, json);
	add_lines_json("lines", &tally->finished, json);
	leat_str_addf(json, ",\"left_out\":%llu}", (unsigned long long)tally->left_out);
}

void
leat_tally_free(struct leat_tally *tally)
{
	for (size_t i = 0; i < tally->steps; i++) {
		leat_free(tally->mem, tally->step[i].name);
		leat_free(tally->mem, tally->step[i].in);
	}
	leat_free(tally->mem, tally->step);
	free_lines(&tally->running, tally->mem);
	free_lines(&tally->failed, tally->mem);
	free_lines(&tally->finished, tally->mem);
	leat_free(tally->mem, tally->begin);
	leat_free(tally->mem, tally->end);
	leat_free(tally->mem, tally->last);
	*tally = (struct leat_tally){.touched = SIZE_MAX};
}
