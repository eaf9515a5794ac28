/* gather.h - copy the bytes of small samples, far apart in local files, with one call for a run
 *
 * A small sample that is read alone costs a system call, several times as much as its bytes. If samples are far apart
 * and the page cache has them, all of a run are *gathered* instead (`gather` in store/store.h).
 *
 * Whether the page cache has them is found out by trying. Workers may wait for the device for 5 ms, and for as long as
 * gathering has saved since, up to 20 ms. Then it pauses, and samples are read, which never blocks a worker. After the
 * pause, the first run gathers one sample, the next one two, and so on. A pause is twice as long as the one before,
 * unless it went well for as long as that. So while data is cold, a worker waits for a few pages now and then; once it
 * is warm, nothing is read.
 *
 * A run that cannot be gathered, because a file has changed, reads its samples one by one, for their own errors.
 *
 * Threads: see fetch.h. */
#ifndef LEAT_FEED_GATHER_H
#define LEAT_FEED_GATHER_H

#include "feed/feed.h"

enum {
	LEAT_GATHER_LEAST = 8,           /* samples of a run: fewer are not worth it */
	LEAT_GATHER_LONGEST = 16 * 1024, /* mean bytes of a sample: longer ones are worth a read each */
	/* After a run, each file that it has samples of is looked at: more would have to be opened again and again. */
	LEAT_GATHER_FILES = 256,
	LEAT_GATHER_SAVES = 500,                /* ns per sample, at least */
	LEAT_GATHER_CREDIT = 20 * 1000 * 1000,  /* the most, in ns, */
	LEAT_GATHER_GRACE = 5 * 1000 * 1000,    /* and that at first */
	LEAT_GATHER_PAUSE = 1000 * 1000 * 1000, /* the shortest, in ns; */
	LEAT_GATHER_PAUSES = 64,                /* the longest is so many of it */
};

/* Can the samples be gathered, if runs have so many of them? */
bool leat_gather_fits(const struct leat_pipeline *p, int run_rows);

/* Under the lock: the most samples that the next run may gather; 0: it reads. */
int leat_gather_most(struct leat_feed *feed);
/* Under the lock, when a run that gathered is done: how it went. */
void leat_gather_note(struct leat_feed *feed, const struct leat_run *run);

/* Without the lock: gathers the samples of a run. Those that are missing afterwards are marked unread. */
void leat_gather_start(struct leat_feed *feed, struct leat_run *run);

#endif
