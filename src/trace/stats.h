/* stats.h - the list of a feed's statistics, for JSON and the reference page */
#ifndef LEAT_TRACE_STATS_H
#define LEAT_TRACE_STATS_H

#include "base/err.h"
#include "base/str.h"

struct leat_stat {
	const char *name, *unit, *doc;
};

/* The members of struct leat_stats, in order. The last entry has no name. */
extern const struct leat_stat leat_stat_list[];

/* Appends all members as one JSON object. */
void leat_stats_add_json(const struct leat_stats *stats, struct leat_str *out);

#endif
