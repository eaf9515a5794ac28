/* sources.h - the same samples once for each source, for tests that draw from all of them
 *
 * A sample has `image`, a JPEG (of npy: pixels), and `label` where its source can give them;
 * `tokens` gives tokens, `windows` gives `x` and `label`. A source that is added needs a maker in sources.c: without
 * one, every test that draws fails and says so. Sources that need DuckDB are left out where there is none. One thread.
 */
#ifndef TEST_SOURCES_H
#define TEST_SOURCES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/rng.h"

enum { SOURCES_MAX = 32, SOURCES_SAMPLES = 48 /* of each */ };

struct sources {
	char folder[200];
	size_t count;
	struct sources_one {
		const char *name; /* of the maker: the source's, and what is special */
		char folder[240];
		char spec[500];
		unsigned used;
		bool slow; /* to open: DuckDB has to be started */
	} one[SOURCES_MAX];
};

void sources_make(struct sources *sources);
void sources_remove(struct sources *sources);
/* Leaves out those that read only local files: results of steps. For tests of other stores. */
void sources_leave_local(struct sources *sources);
void sources_forget_indexes(const struct sources *sources);

/* Makes the data of one source anew. */
void sources_make_one(struct sources *sources, size_t i);
/* Changes a byte of one of its files, or cuts the file off; what JSON files say, too. */
void sources_spoil_one(const struct sources *sources, size_t i, struct leat_rng *rng);

/* A spec on `from`, on `to` instead, which lies elsewhere. */
void sources_elsewhere(const struct sources *from, const struct sources *to, const char *spec, char *out, size_t cap);

#endif
