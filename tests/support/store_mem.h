/* store_mem.h - a store in memory for tests: objects, latency, failures and counters are the test's
 *
 * URIs are mem://NAME. The table of objects belongs to the process: every feed that names a
 * mem: URI sees it, and it stays when feeds close. Reads always wait, as those of a remote
 * store do: they complete on a thread of the store, after the latency, in an order that can
 * be shuffled. Folders exist only in names, and the store can't tell when one changed.
 *
 * A test program gets this store when its name begins with test_store_ (tests/meson.build).
 * Any thread may call any function, also while feeds run. */
#ifndef TEST_STORE_MEM_H
#define TEST_STORE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat.h"

/* Removes all objects and faults, clears the settings and counters. No read may be in flight. */
void store_mem_reset(void);

/* ---- objects ---- */

/* Adds or replaces an object. `uri` begins with mem://. */
void store_mem_put(const char *uri, const void *bytes, size_t len);
/* Adds all files below a local folder, hidden ones excepted: FOLDER/x becomes mem://FOLDER/x. */
void store_mem_mirror(const char *folder);
void store_mem_remove(const char *uri);
/* The number of objects whose URI ends with `end`. */
size_t store_mem_count(const char *end);
/* A spec on a folder that was mirrored, from the same spec on the local one. */
void store_mem_spec(const char *folder, const char *spec, char *out, size_t cap);

/* ---- settings ---- */

struct store_mem_settings {
	uint64_t latency_ns;
	uint64_t shuffle;    /* not 0: seed of the order of completion, and latency varies from 0 to its double */
	unsigned fail_every; /* every n-th read that is submitted fails with LEAT_IO; 0: none */
	unsigned slow_every; /* every n-th read that is submitted takes slow_ns instead; 0: none */
	uint64_t slow_ns;
	uint64_t stuck_from; /* reads from this number on, as `submitted` counts, end only by a cancel; 0: none */
};

void store_mem_set(const struct store_mem_settings *settings);
/* While held, no read completes, unless it is cancelled. */
void store_mem_hold(bool hold);

enum { STORE_MEM_ALWAYS = -1 };

/* Reads that touch bytes [from, to) of an object fail with LEAT_IO or LEAT_DATA, `times` times. */
void store_mem_fail(const char *uri, uint64_t from, uint64_t to, int times, enum leat_status status);
/* The object's bytes end at `size`, though it still says that it is longer. */
void store_mem_truncate(const char *uri, uint64_t size);

/* ---- counters ---- */

struct store_mem_counts {
	uint64_t submitted;
	uint64_t in_flight, most_in_flight;
	uint64_t cancelled, failed;
	uint64_t bytes; /* copied to readers */
};

struct store_mem_counts store_mem_counts(void);

#endif
