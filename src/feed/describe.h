/* describe.h - sources and ops seen alike, for those who explain them: `leat ops`, the reference page, JSON */
#ifndef LEAT_FEED_DESCRIBE_H
#define LEAT_FEED_DESCRIBE_H

#include "base/opt.h"

struct leat_item {
	const char *name, *doc, *example;
	const char *kind;  /* "source", "geometry", ... */
	const char *wants; /* what the field it works on has to be; NULL: it does not work on one field */
	int version;
	bool random;
	bool free_form; /* reads its arguments itself: the options are not all that can be written */
	struct leat_opt opts[LEAT_MAX_OPTS + 2]; /* with `field`, which all ops on one field have, and the end */
};

/* Item `i` of all sources, then all ops, each sorted by name. False: behind the last. */
bool leat_item_at(size_t i, struct leat_item *item);

#endif
