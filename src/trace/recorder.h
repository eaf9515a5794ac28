/* recorder.h - what the rooms after this one, and the recorder's sinks, see of a recorder
 *
 * Threads
 *  - Any thread may add lanes, names and values of tracks (under a lock), and record spans in its lane (a ring, without
 *    a lock).
 *  - The recorder's thread empties the rings five times a second, or when one is half full, and hands what it finds to
 *    the *sinks*. Only this thread calls them, and no two at once. It writes files, so that a signal for a full disk
 *    (SIGXFSZ) never reaches the program. */
#ifndef LEAT_TRACE_RECORDER_H
#define LEAT_TRACE_RECORDER_H

#include "base/log.h"
#include "base/mem.h"
#include "trace/ring.h"

enum { LEAT_MAX_LANES = 4096, LEAT_MAX_SINKS = 4 };

/* What the recorder has seen so far. */
struct leat_recorded {
	uint64_t spans;   /* handed to sinks */
	uint64_t dropped; /* spans and values, because rings were full */
};

/* Takes all that is recorded. Names, also of lanes, and tracks are texts that stay valid, at the same address, until
 * the recorder is closed; equal texts have equal addresses. Every function may be NULL. */
struct leat_span_sink {
	/* Before the first span of the lane. Lanes are numbered from 0 without gaps. `overlaps`: its spans may overlap
	 * (reads in flight); those of other lanes are disjoint or nested. */
	void (*lane)(void *arg, int lane, const char *name, bool overlaps);
	/* Spans of a lane come in the order in which they end. `name` is never NULL: if the span has none, the tag's.
	 */
	void (*span)(void *arg, int lane, const struct leat_span *span, const char *name);
	void (*count)(void *arg, const char *track, uint64_t at_ns, double value);
	/* After each round, several times a second, even if nothing was recorded. */
	void (*tick)(void *arg, uint64_t now_ns, const struct leat_recorded *recorded);
	/* After the last round, on the recorder's thread: may fail as leat_recorder_close will. */
	enum leat_status (*finish)(void *arg, const struct leat_recorded *recorded, struct leat_err *err);
	/* Frees it, on the thread that closes the recorder. */
	void (*free)(void *arg);
};

/* Adds a sink; the recorder will free it. Only while the recorder is being opened (recorder.c, open_sinks). */
void leat_recorder_attach(struct leat_recorder *recorder, const struct leat_span_sink *sink, void *arg);
/* The `arg` of an attached sink. NULL: it is not attached. */
void *leat_recorder_sink(const struct leat_recorder *recorder, const struct leat_span_sink *sink);
/* For sinks and samplers: memory that counts towards the recorder's limit, its options and log. The texts among the
 * options are the caller's: use them only while the recorder is being opened. */
struct leat_mem *leat_recorder_mem(struct leat_recorder *recorder);
const struct leat_recorder_options *leat_recorder_settings(const struct leat_recorder *recorder);
const struct leat_log *leat_recorder_log(const struct leat_recorder *recorder);
/* The process as traces and reports show it: "python, rank 3 of 8, pid 4711". */
const char *leat_recorder_process(const struct leat_recorder *recorder);

/* To read what a sink has collected: hands all that was recorded before the call to the sinks, and keeps the recorder's
 * thread from calling them until leat_recorder_resume. Threads that record go on meanwhile. Not in a forked process. */
void leat_recorder_pause(struct leat_recorder *recorder);
void leat_recorder_resume(struct leat_recorder *recorder);

/* leat_recorder_lane with a choice. */
int leat_recorder_add_lane(struct leat_recorder *recorder, const char *name, bool overlaps);
/* A lane's ring, for leat_ring_push. NULL: there is no such lane. Valid until the recorder is closed. */
struct leat_ring *leat_recorder_ring(struct leat_recorder *recorder, int lane);
/* A number for a span's name. 0: none, or too many. Any thread; without a lock if the name is known. */
uint32_t leat_recorder_name(struct leat_recorder *recorder, const char *name);

/* False: this process is a fork of the one that opened it. */
bool leat_recorder_is_ours(const struct leat_recorder *recorder);
/* A feed or a report uses the recorder: it cannot be closed until that lets go. False: it is not ours. */
bool leat_recorder_hold(struct leat_recorder *recorder);
void leat_recorder_let_go(struct leat_recorder *recorder);

#endif
