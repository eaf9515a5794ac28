/* groups.h - slices grouped by the values of some of their variables
 *
 * An edge between two sliced steps joins slices with equal values of the variables that both steps have. Groups are
 * numbered in the order in which the downstream step's slices need them. Time and memory are linear in the slices: a
 * value's text is looked at once, however many slices have it. */
#ifndef LEAT_STEP_GROUPS_H
#define LEAT_STEP_GROUPS_H

#include "base/err.h"
#include "step/slices.h"

enum { LEAT_NO_GROUP = UINT32_MAX };

struct leat_groups {
	struct leat_mem *mem;
	uint32_t count;
	uint32_t *down, *up; /* group of each slice, LEAT_NO_GROUP: none; NULL: slice i is in group i */
};

/* Groups the slices of `down` by the variables whose `by` is true, and finds the groups of the slices of `up`, which
 * has these variables too, or is NULL. LEAT_LIMIT: more than 4 billion slices. */
enum leat_status leat_groups_open(struct leat_groups *groups, struct leat_mem *mem, const struct leat_slices *down,
                                  const bool *by, const struct leat_slices *up, struct leat_err *err);
void leat_groups_close(struct leat_groups *groups); /* accepts a zeroed struct */

static inline uint32_t
leat_group_of(const uint32_t *of, size_t slice)
{
	return of ? of[slice] : (uint32_t)slice;
}

/* The slices of each group, in their order. */
struct leat_members {
	uint32_t *start, *slice; /* NULL: slice i alone is group i */
};

enum leat_status leat_members_open(struct leat_members *members, struct leat_mem *mem, const uint32_t *of,
                                   size_t slices, uint32_t groups, struct leat_err *err);
void leat_members_close(struct leat_members *members, struct leat_mem *mem); /* accepts a zeroed struct */

static inline uint32_t
leat_members_count(const struct leat_members *members, uint32_t group)
{
	return members->start ? members->start[group + 1] - members->start[group] : 1;
}

static inline uint32_t
leat_members_at(const struct leat_members *members, uint32_t group, uint32_t i)
{
	return members->start ? members->slice[members->start[group] + i] : group;
}

#endif
