/* torture.h - one run of `torture`: random, on its own, and the same again for the same seed and number
 *
 * A run is a process with an empty folder. It draws everything from `rng`, which (kind, seed, number) determine, and
 * fails as a cmocka test does. What it may read but not change was made once, by the driver. */
#ifndef TORTURE_H
#define TORTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "support/sources.h"

struct torture {
	const char *kind;
	uint64_t seed, number;
	struct leat_rng rng;
	const char *build;       /* folder of the build: the command and the shim */
	struct sources *sources; /* shared by all runs */
	char folder[300];        /* of this run */
};

/* One file each. */
void torture_same(struct torture *t);
void torture_faults(struct torture *t);
void torture_kill(struct torture *t);
void torture_bytes(struct torture *t);

unsigned torture_below(struct torture *t, unsigned n);
bool torture_one_in(struct torture *t, unsigned n);
/* "FOLDER/NAME", valid for the next seven calls. */
const char *torture_path(struct torture *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sets all times in there to the same, long ago: new data may be looked at more often than old. */
void torture_age(const char *folder);
/* A copy of source `i` in the run's folder; `copy` describes it alone. `name`: of the folder in there. */
void torture_copy_source(struct torture *t, size_t i, const char *name, struct sources *copy);

/* ---- commands (command.c) ---- */

enum { TORTURE_ARGS = 32, TORTURE_OUTPUT = 1 << 16 };

struct torture_command {
	const char *arg[TORTURE_ARGS]; /* after "leat", ended by NULL */
	const char *faults;            /* LEAT_TORTURE for the shim; NULL: without it */
	const char *stdout_to;         /* NULL: `out` below */
	unsigned kill_after_us;        /* 0: never */
	/* What happened. */
	int status; /* as of waitpid */
	char out[TORTURE_OUTPUT], err[TORTURE_OUTPUT];
	long rss_kib;
};

/* Runs it to its end. Fails the run if it crashes or hangs, or fails without a sentence. */
void torture_run(struct torture *t, struct torture_command *c);
bool torture_succeeded(const struct torture_command *c);
bool torture_was_killed(const struct torture_command *c);
/* The line of stdout that starts with `word`, valid until the next call; "" if there is none. */
const char *torture_line(const struct torture_command *c, const char *word);
/* Command line as a shell would take it, for messages. */
const char *torture_text(const struct torture_command *c);

#endif
