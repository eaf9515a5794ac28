/* store.h - what every store has to keep (store/store.h), as tests that run against any of them
 *
 * Each promise opens the store anew, puts objects into the folder it is given and removes them
 * again. One thread. */
#ifndef TEST_STORE_H
#define TEST_STORE_H

#include <stdbool.h>
#include <stddef.h>

/* How a test gets at a store. */
struct store_bed {
	const char *folder; /* URI of a folder that holds nothing */
	/* Adds or replaces an object, and removes one, not by way of the store under test. */
	void (*put)(const char *uri, const void *bytes, size_t len);
	void (*remove)(const char *uri);
	bool by_content; /* objects with the same bytes may have the same version */
};

/* Names: what patterns and folders hold. */
void promise_store_lists(const struct store_bed *bed);
/* Any range, in any pieces; never bytes that are not there. */
void promise_store_reads(const struct store_bed *bed);
/* Thousands of reads in flight; each is done once, by another thread. */
void promise_store_submits(const struct store_bed *bed);
void promise_store_cancels(const struct store_bed *bed);
/* An object that is replaced or removed is an error that names it, never other bytes. */
void promise_store_versions(const struct store_bed *bed);
/* New objects appear whole or not at all. For stores that can be written to. */
void promise_store_writes(const struct store_bed *bed);
/* The n-th request for memory fails, for every n. */
void promise_store_memory_errors(const struct store_bed *bed);

#endif
