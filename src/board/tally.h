/* tally.h - what a run's log (step/run_log.h) adds up to: states of its steps, what runs, what failed
 *
 * Lines are added one by one, so the same code sums up a finished run and follows one that runs. Lines are hostile:
 * those that are no events are left out. Kept are the lines of actions that run, that failed, and the last ones that
 * finished: a bounded number, whatever the size of the log.
 *
 * Threads: one at a time. */
#ifndef LEAT_BOARD_TALLY_H
#define LEAT_BOARD_TALLY_H

#include "base/mem.h"
#include "base/str.h"
#include "step/run_log.h"

struct leat_tally_step {
	char *name, *in; /* in: a JSON list of names */
	uint64_t actions, cached, ran, same, failed, skipped, running;
};

/* Lines of actions. A full list drops its oldest. */
struct leat_tally_line {
	char *text; /* a JSON object */
	char *name; /* "decode:subject=3": which action it is of */
};
struct leat_tally_lines {
	struct leat_tally_line *line;
	size_t count, cap;
	size_t oldest; /* where a full list begins */
};

struct leat_tally {
	struct leat_mem *mem;
	char *begin, *end; /* these lines, as JSON objects; NULL: not there yet */
	struct leat_tally_step *step;
	size_t steps, steps_cap;
	struct leat_tally_lines running, failed, finished;
	uint64_t left_out; /* dropped lines of finished and failed actions */
	char *last;        /* the line that was added last, as JSON; NULL: it was no event */
	size_t touched;    /* the step that it changed; SIZE_MAX: none */
};

void leat_tally_init(struct leat_tally *tally, struct leat_mem *mem);
void leat_tally_free(struct leat_tally *tally);
/* LEAT_NOMEM or LEAT_LIMIT; a line that is no event is not an error. */
enum leat_status leat_tally_add(struct leat_tally *tally, const char *line, size_t len, struct leat_err *err);

/* Adds the complete lines of an open log from *at on, at most `most` bytes of them, and moves *at past the last of
 * them. `each`, unless it is NULL, is called after each line. */
enum leat_status leat_tally_read(struct leat_tally *tally, int fd, uint64_t *at, size_t most,
                                 void (*each)(void *arg, const struct leat_tally *tally), void *arg,
                                 struct leat_err *err);

/* {"run":..., "alive":..., "begin":{...}, "end":{...}, "steps":[...], "running":[...], "failed":[...], "lines":[...]}
 */
void leat_tally_json(const struct leat_tally *tally, const char *run, bool alive, struct leat_str *json);
void leat_tally_step_json(const struct leat_tally_step *step, struct leat_str *json);

#endif
