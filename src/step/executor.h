/* executor.h - actions that other machines run: `leat build --on ray://head:10001`
 *
 * An executor is a Python program, python/leat/executor/NAME.py, that knows one kind of cluster. The build starts it
 *and exchanges lines of JSON with it through pipes:
 *
 *	{"submit":7,"cpus":1,"memory":0,"line":{"id":7,"order":{...}}}   run this somewhere: `line` is for `leat exec`
 *there
 *	{"cancel":7}
 *	{"ready":{"cpus":8,"nodes":2}}                        it has a cluster; before anything else
 *	{"id":7,"node":"10.0.0.3"}                            it runs
 *	{"id":7,"progress":{...}}, {"id":7,"result":{...}}, {"id":7,"error":"..."}    what `leat exec` says
 *	{"lost":7,"why":"..."}                                the node died: it is submitted again
 *	{"failed":"..."}                                      there is no cluster (any more)
 *
 * An executor keeps nothing that matters: the build records what was made, so it can be killed and run again.
 *
 * Threads: one reads the executor's answers. Any number of others call leat_executor_run, each for one action. */
#ifndef LEAT_STEP_EXECUTOR_H
#define LEAT_STEP_EXECUTOR_H

#include "step/runner.h"

struct leat_executor;

/* `where` is NAME or NAME://ADDRESS; the run of the store must have begun. LEAT_INVALID: there is no such executor.
 * LEAT_IO: it cannot be started, or finds no cluster. */
enum leat_status leat_executor_open(struct leat_executor **executor, struct leat_cas *cas, struct leat_mem *mem,
                                    const char *where, struct leat_err *err);
void leat_executor_close(struct leat_executor *executor); /* ends it; accepts NULL */
unsigned leat_executor_cpus(const struct leat_executor *executor);

/* As leat_runner_run. */
enum leat_status leat_executor_run(struct leat_executor *executor, const struct leat_order *order,
                                   const atomic_bool *stop, struct leat_running *running, struct leat_ran *ran,
                                   struct leat_err *err);

#endif
