/* run_log.h - .leat/runs/RUN.jsonl: what a build did, one JSON object per line, appended as it happens
 *
 *	{"event":"begin","at":1795000000.1,"run":"20261117T201530-4711","file":"leat.yaml","targets":[],"jobs":2,"pid":4711,
 *	 "steps":[{"step":"decode","actions":360,"in":["epochs"]}]}
 *	{"event":"cached","at":...,"step":"decode","count":358,"saved_s":71.2}
 *	{"event":"start","at":...,"step":"decode","slice":"subject=3,bin=7","id":"decode-42","expected_s":1.9}
 *	{"event":"ran","at":...,"step":"decode","slice":...,"id":...,"key":HEX,"output":CONTENT,"seconds":2.0,"cpu_s":1.9}
 *	{"event":"end","at":...,"state":"done","actions":361,"cached":358,"ran":3,"same":0,"failed":0,"skipped":0,"seconds":4.1,
 *	 "saved_s":71.2}
 *
 * The names of events are those of enum leat_event_kind. "actions" of a step are those that the targets need: 0 if it
 * is not part of the build. In "end", "ran" includes "same". A log without "end" is of a build that runs (RUN.open is
 * locked) or was killed. */
#ifndef LEAT_STEP_RUN_LOG_H
#define LEAT_STEP_RUN_LOG_H

#include "step/build.h"

struct leat_run_log;
enum leat_status leat_run_log_open(struct leat_run_log **log, struct leat_cas *cas, const struct leat_project *project,
                                   const struct leat_build_options *options, struct leat_err *err);
void leat_run_log_event(struct leat_run_log *log, const struct leat_event *event); /* failures: the log just ends */
void leat_run_log_close(struct leat_run_log *log);                                 /* accepts NULL */
/* The line of an event, with its line feed, as the log has it: for `leat build --json`. */
void leat_run_log_line(struct leat_str *line, const struct leat_project *project,
                       const struct leat_build_options *options, const struct leat_event *event);

/* Reads one line, hostile. The strings live in `line`'s parsed form until leat_run_line_free. */
struct leat_run_line {
	const char *event, *run, *step, *slice, *id, *key, *output, *why;
	double at_s, seconds, cpu_s, expected_s, saved_s;
	uint64_t actions, count, cached, ran, same, failed, skipped;
	void *json; /* a json_t, for what is not listed here */
};
enum leat_status leat_run_line_parse(const char *text, size_t len, struct leat_run_line *line, struct leat_err *err);
void leat_run_line_free(struct leat_run_line *line);

/* Calls `line` for each line of a run's log. Lines that cannot be read are skipped: the last one may be unfinished. */
struct leat_run_lines_reader {
	enum leat_status (*line)(void *arg, const struct leat_run_line *line, struct leat_err *err);
	void *arg;
};
enum leat_status leat_run_lines(struct leat_cas *cas, const char *run, const struct leat_run_lines_reader *reader,
                                struct leat_err *err);
/* Calls it for the last line only, without reading the others. */
enum leat_status leat_run_last_line(struct leat_cas *cas, const char *run, const struct leat_run_lines_reader *reader,
                                    struct leat_err *err);

/* Names of runs, newest first; free with leat_paths_free. */
enum leat_status leat_runs_list(struct leat_cas *cas, struct leat_mem *mem, struct leat_paths *runs,
                                struct leat_err *err);
bool leat_run_is_alive(struct leat_cas *cas, const char *run);
bool leat_run_is_open(const char *folder, const char *run); /* the same, of a store that is not open */

#endif
