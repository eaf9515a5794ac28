/* listings.h - names in folders, in an order in which those that match a pattern are found fast
 *
 * A source with a pattern such as raw/{subject}-*.npy is looked up for each slice. If each of them read the folder, n
 * slices with n files would cost n * n. So the folders are read once for all slices, and of their names only those are
 * compared that begin, or end, as the pattern does.
 *
 * Threads: any may call leat_listings_get; a listing is not changed once it is there. */
#ifndef LEAT_STEP_LISTINGS_H
#define LEAT_STEP_LISTINGS_H

#include <pthread.h>

#include "step/project_text.h"

struct leat_name {
	const char *name;
	bool is_folder, is_link;
};

struct leat_listing {
	struct leat_project_text text;
	struct leat_name *name; /* by bytes */
	size_t *by_end;         /* indexes of the same names, by their bytes from the last to the first */
	size_t count;
	char *path;                /* of one that is kept */
	struct leat_listing *next; /* with the same hash */
};

/* All names of a folder, hidden ones too. A folder that does not exist has none. */
enum leat_status leat_listing_read(struct leat_listing *listing, struct leat_mem *mem, const char *path,
                                   struct leat_err *err);
void leat_listing_free(struct leat_listing *listing); /* accepts a zeroed one */

/* What may match a name of a pattern: `count` names from `first` on, of `name` or, if `by_end`, of that. */
struct leat_candidates {
	size_t first, count;
	bool by_end;
};
struct leat_candidates leat_listing_find(const struct leat_listing *listing, const char *pattern);

enum { LEAT_LISTING_BUCKETS = 1024 };
struct leat_listings {
	struct leat_mem *mem;
	pthread_mutex_t lock;
	struct leat_listing *bucket[LEAT_LISTING_BUCKETS];
};

void leat_listings_init(struct leat_listings *listings, struct leat_mem *mem);
void leat_listings_free(struct leat_listings *listings);
/* The folder as it was when it was asked for first. */
enum leat_status leat_listings_get(struct leat_listings *listings, const char *path,
                                   const struct leat_listing **listing, struct leat_err *err);

#endif
