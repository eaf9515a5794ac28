/* staging_inside.h - what the files of staging share */
#ifndef LEAT_STEP_STAGING_INSIDE_H
#define LEAT_STEP_STAGING_INSIDE_H

#include "base/threads.h"
#include "step/staging.h"

enum { LEAT_PART = 4 << 20, LEAT_PARTS = 24 }; /* bytes of a request, and how many are in flight, for all files */

struct leat_staging {
	struct leat_mem *mem;
	struct leat_stores stores;
	struct leat_storage storage;
	char *memory;
	enum leat_looks looks;

	pthread_mutex_t lock;   /* guards what follows */
	pthread_cond_t changed; /* a file is no longer busy, a part is free, or the watcher has to end */
	struct leat_remote_list *list;
	char doubt[400];
	unsigned parts; /* in use */

	struct leat_threads watcher;
	const atomic_bool *stop;
	struct leat_hashing *hashing;
	bool is_watched;
};

/* The object, for reading. `uri` is freed by the caller. */
enum leat_status leat_staging_object(struct leat_staging *s, const struct leat_remote_file *file,
                                     struct leat_object *object, char **uri, struct leat_err *err);
/* Asks for one object by name. LEAT_DATA: there is none. */
enum leat_status leat_staging_look(struct leat_staging *s, const char *uri, struct leat_remote_file *file,
                                   struct leat_err *err);

#endif
