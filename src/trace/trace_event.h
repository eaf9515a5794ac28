/* trace_event.h - lines of a trace: how events are written, and which of them are kept
 *
 * Every event is one line that begins with its phase, and for spans goes on with tag and item. The file is thinned by
 * these beginnings alone, so only this module knows them. */
#ifndef LEAT_TRACE_TRACE_EVENT_H
#define LEAT_TRACE_TRACE_EVENT_H

#include "base/str.h"
#include "trace/ring.h"

/* Spans are thinned by tag; values of tracks are one more class. */
enum { LEAT_CLASSES = LEAT_TAG_COUNT + 1 };

/* What is kept of a class of events. */
struct leat_thinning {
	uint64_t every; /* a power of 2 */
	bool by_count;  /* the items say nothing (they may all be 0): every so many events, not items */
	uint64_t seen;
};

void leat_event_span(struct leat_str *out, long pid, int tid, const struct leat_span *span, const char *name);
/* `number`: of this value in its track. */
void leat_event_value(struct leat_str *out, long pid, const char *track, uint64_t at_ns, double value, uint64_t number);
/* Metadata about the process (tid 0) or a lane: {"name": WHAT, "args": {KEY: TEXT}}. */
void leat_event_text(struct leat_str *out, long pid, int tid, const char *what, const char *key, const char *text);
void leat_event_number(struct leat_str *out, long pid, int tid, const char *what, const char *key, long number);
/* A mark on the timeline of the process. */
void leat_event_mark(struct leat_str *out, long pid, uint64_t at_ns, const char *name);

/* Is the next event of this class one of those to keep? */
bool leat_thinning_keeps(struct leat_thinning *thinning, uint64_t item);

/* The class of a line, and its item. -1: not of a class: always kept. */
int leat_event_class(const char *line, size_t len, uint64_t *item);

#endif
