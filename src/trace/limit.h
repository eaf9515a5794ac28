/* limit.h - what limits a feed, from its figures alone, in a sentence that says what to try */
#ifndef LEAT_TRACE_LIMIT_H
#define LEAT_TRACE_LIMIT_H

#include "trace/figures.h"

/* A pure function of the list. The sentence names the rate that the limit gives, what the step could take where there
 * is a step, and what to try; it proposes more threads only while there are CPUs for them. */
void leat_limit_find(const struct leat_stage_list *list, struct leat_limit *limit);

/* The parts of such sentences, for others that know more than the counters (src/xray). Each returns buf. */
enum { LEAT_RATE_TEXT = 32 };
char *leat_rate_text(char buf[LEAT_RATE_TEXT], double rate);   /* "1,900", "61", "3.5", "any number of" */
char *leat_times_text(char buf[LEAT_RATE_TEXT], double times); /* "2.3" */
/* May more threads help? Not if they outnumber the CPUs, or if all CPUs are busy. */
bool leat_limit_has_free_cpus(const struct leat_stage_list *list);

#endif
