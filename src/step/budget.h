/* budget.h - how many cpus actions may use at a time
 *
 * Every action takes its cpus before it runs and gives them back afterwards, so the sum of those that run never exceeds
 * the total. Who waits is served in order: an action that needs all cpus is not overtaken for ever by small ones. Any
 * thread may call. */
#ifndef LEAT_STEP_BUDGET_H
#define LEAT_STEP_BUDGET_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct leat_budget {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned total, used;  /* used, next and served under `lock` */
	uint64_t next, served; /* tickets: the next one to give out, and whose turn it is */
};

/* min(affinity, cgroup quota, jobs); `jobs` 0: no limit. At least 1. */
unsigned leat_budget_cpus(unsigned jobs);
void leat_budget_init(struct leat_budget *budget, unsigned total);
void leat_budget_end(struct leat_budget *budget);

/* What an action with `cpus: N` gets: no more than there is; 0 asks for all. */
unsigned leat_budget_grant(const struct leat_budget *budget, unsigned cpus);
/* Takes leat_budget_grant(cpus), or nothing and returns false: too few are free, or others wait. */
bool leat_budget_try(struct leat_budget *budget, unsigned cpus);
/* Waits for them. */
void leat_budget_take(struct leat_budget *budget, unsigned cpus);
/* Gives back what was taken for `cpus`. */
void leat_budget_give(struct leat_budget *budget, unsigned cpus);

#endif
