/* many.h - data sets of many tiny samples, one for each source
 *
 * A sample is a number or a few bytes: what is measured is what a source does for each of
 * them before the first is read. */
#ifndef LEAT_BENCH_MANY_H
#define LEAT_BENCH_MANY_H

#include "bench.h"

struct many {
	const char *source; /* its name */
	uint64_t samples;
	char spec[BENCH_PATH + 64]; /* set by many_make */
};

/* Makes the data in FOLDER/many-SAMPLES/SOURCE unless it is there. False: nobody said how, for this source. */
bool many_make(struct many *many, const char *folder);

#endif
