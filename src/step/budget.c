/* budget.c - see budget.h */
#include "step/budget.h"

#include "base/threads.h"

unsigned
leat_budget_cpus(unsigned jobs)
{
	unsigned cpus = leat_cpus("");

	return jobs == 0 || jobs > cpus ? cpus : jobs;
}

void
leat_budget_init(struct leat_budget *budget, unsigned total)
{
	*budget = (struct leat_budget){.total = total == 0 ? 1 : total};
	pthread_mutex_init(&budget->lock, NULL);
	pthread_cond_init(&budget->changed, NULL);
}

void
leat_budget_end(struct leat_budget *budget)
{
	pthread_cond_destroy(&budget->changed);
	pthread_mutex_destroy(&budget->lock);
}

unsigned
leat_budget_grant(const struct leat_budget *budget, unsigned cpus)
{
	return cpus == 0 || cpus > budget->total ? budget->total : cpus;
}

static bool
fits(const struct leat_budget *budget, unsigned cpus)
{
	return cpus <= budget->total - budget->used;
}

bool
leat_budget_try(struct leat_budget *budget, unsigned cpus)
{
	bool ok;

	cpus = leat_budget_grant(budget, cpus);
	pthread_mutex_lock(&budget->lock);
	ok = budget->served == budget->next && fits(budget, cpus);
	if (ok)
		budget->used += cpus;
	pthread_mutex_unlock(&budget->lock);
	return ok;
}

void
leat_budget_take(struct leat_budget *budget, unsigned cpus)
{
	uint64_t ticket;

	cpus = leat_budget_grant(budget, cpus);
	pthread_mutex_lock(&budget->lock);
	ticket = budget->next++;
	while (ticket != budget->served || !fits(budget, cpus))
		pthread_cond_wait(&budget->changed, &budget->lock);
	budget->served++;
	budget->used += cpus;
	pthread_cond_broadcast(&budget->changed);
	pthread_mutex_unlock(&budget->lock);
}

void
leat_budget_give(struct leat_budget *budget, unsigned cpus)
{
	pthread_mutex_lock(&budget->lock);
	budget->used -= leat_budget_grant(budget, cpus);
	pthread_cond_broadcast(&budget->changed);
	pthread_mutex_unlock(&budget->lock);
}
