/* kind_run.c - a command, run by /bin/sh
 *
 *	run: python decode.py "$epochs" --out "$out" */
#include "step/kind.h"

const struct leat_step_kind leat_step_kind_run = {
	.name = "run",
	.version = 1,
	.doc = "Run a shell command that makes $out.",
	.shell = true,
};
