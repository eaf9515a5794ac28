/* merge.h - the figures of several ranks as those of one run, with the slow rank named
 *
 * Ranks that train together wait for each other: the time of a slow rank's loader shows up in the step of all others.
 * So the slow rank is the one that waited for data while the others did not; or, if the ranks ran by themselves, the
 * one with the lowest rate. */
#ifndef LEAT_TRACE_MERGE_H
#define LEAT_TRACE_MERGE_H

#include "base/err.h"
#include "base/str.h"

/* What a rank did, for those who compare them. */
struct leat_rank_figures {
	int rank;
	uint64_t samples;
	double seconds, samples_per_s, wait_share;
	char limit[LEAT_MAX_NAME + 1];
	char sentence[512];
};

/* Index of the slow rank; -1: none is much slower than the others. */
int leat_slow_rank(const struct leat_rank_figures *rank, size_t count);

enum { LEAT_MERGE_RANKS = 100000 };

/* leat_stats_merge, with `names` for errors; NULL: they have none. */
enum leat_status leat_merge_runs(const char *const *json, const char *const *names, size_t count, struct leat_str *out,
                                 struct leat_err *err);

#endif
