/* progress.h - show what a build does: a live tree on a terminal, plain lines elsewhere, or JSON
 *
 * A thread redraws the tree and waits for signals: ^C stops the build, ^C again or SIGTERM kills what runs, SIGUSR1
 * or ^T prints the tree. Until the first event, sources are hashed, and a line takes the tree's place. Workers tell
 * events; `lock` guards all that the tree shows. */
#ifndef LEAT_CLI_PROGRESS_H
#define LEAT_CLI_PROGRESS_H

#include <pthread.h>
#include <stdio.h>

#include "cli/keys.h"
#include "step/build.h"

enum leat_progress_mode { LEAT_PROGRESS_LIVE, LEAT_PROGRESS_LINES, LEAT_PROGRESS_JSON, LEAT_PROGRESS_QUIET };

struct leat_progress_step {
	size_t actions;                               /* that are wanted */
	size_t cached, ran, failed, skipped, running; /* ran: those with the same output, too */
	size_t unsaid;                                /* cached ones that no line has named yet */
	double ran_s, expected_s;                     /* of those that ran; of those that are left, from earlier runs */
	bool timed;                                   /* expected_s is known */
};

struct leat_progress_action {
	const struct leat_step *step;
	char *slice;
	uint64_t number, begun_ns;
	double expected_s;
	struct leat_running *running;
};

struct leat_build_progress {
	struct leat_mem *mem;
	const struct leat_project *project;
	const struct leat_build_options *options;
	enum leat_progress_mode mode;
	FILE *out;
	atomic_bool stop, kill, ended;
	struct leat_hashing hashing;

	pthread_mutex_t lock;
	struct leat_progress_step *step;
	struct leat_progress_action *action; /* that run */
	size_t actions, cap;
	unsigned jobs;
	bool is_hashing;    /* until the first event */
	uint64_t opened_ns; /* 0: it was said once that hashing takes long */
	size_t drawn;       /* lines of the tree on the terminal */
	struct leat_str line;

	struct leat_keys keys; /* of the watcher */
	int signal_fd;
	pthread_t watcher;
	bool watching;
};

/* Blocks the signals; call it before threads are started. `options` gets the listener and the flags. */
enum leat_status leat_progress_open(struct leat_build_progress *progress, const struct leat_project *project,
                                    struct leat_build_options *options, enum leat_progress_mode mode, FILE *out,
                                    struct leat_err *err);
void leat_progress_close(struct leat_build_progress *progress); /* accepts a zeroed struct */
/* "3 ran, 358 made before, in 4.1 s; reuse saved 71 s" */
void leat_progress_summary(struct leat_str *line, const struct leat_build_totals *totals, bool dry);

/* ---- progress_tree.c ---- */

/* The tree of steps and what runs, or how far hashing is, at most `rows` lines (0: any) of `columns` characters (0:
 * any). Returns the number of lines. With the lock. */
size_t leat_progress_tree(const struct leat_build_progress *progress, struct leat_str *out, size_t rows,
                          size_t columns);
/* "4.1 s", "71 s", "12 min", "3 h 20 min" */
void leat_add_duration(struct leat_str *out, double seconds);

#endif
