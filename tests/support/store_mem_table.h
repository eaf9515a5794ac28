/* store_mem_table.h - the objects, settings and counters behind store_mem.h, as the store sees them
 *
 * Any thread may call any function: the table has one lock, which none of them holds on return. */
#ifndef TEST_STORE_MEM_TABLE_H
#define TEST_STORE_MEM_TABLE_H

#include "store/store.h"
#include "store_mem.h"

#define STORE_MEM_SCHEME "mem://"

/* What an object is like at the moment. False: there is none; *is_folder: there are some below the name. */
bool store_mem_describe(const char *uri, struct leat_object *object, bool *is_folder);

/* Names that were found, to be visited without the lock. */
struct store_mem_names {
	char **name;
	bool *is_folder;
	size_t count, cap;
};

/* Adds the objects that match; the names directly below a folder. False: no memory. */
bool store_mem_match(const char *pattern, struct store_mem_names *names);
bool store_mem_below(const char *folder, struct store_mem_names *names);
void store_mem_free_names(struct store_mem_names *names);

/* When a read completes and whether it fails, as the settings say. Counts it as in flight. */
struct store_mem_fate {
	uint64_t begin_ns;
	uint64_t due_ns; /* never 0 */
	uint64_t order;  /* among reads that are due together */
	bool fail;
};
struct store_mem_fate store_mem_count_submit(void);
/* It is over, with read->status. */
void store_mem_count_done(const struct leat_read *read);
/* It did not begin. */
void store_mem_count_refused(void);
/* Copies the bytes, or fails as the settings say, or because the object is not the one that is meant. */
enum leat_status store_mem_read(struct leat_read *read, bool fail, struct leat_err *err);

/* Adds or replaces an object and takes `bytes`, from malloc, in any case. LEAT_AGAIN: there is one, and `if_absent`. */
enum leat_status store_mem_commit(const char *uri, unsigned char *bytes, size_t len, bool if_absent,
                                  struct leat_err *err);
bool store_mem_take_away(const char *uri); /* false: there is none */

#endif
