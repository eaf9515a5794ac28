/* describe.h - common view of sources and ops, for `leat ops`, the reference page and JSON */
#ifndef LEAT_FEED_DESCRIBE_H
#define LEAT_FEED_DESCRIBE_H

#include "base/opt.h"

struct leat_item {
	const char *name, *doc, *example;
	const char *kind;  /* "source", "geometry", ... */
	const char *wants; /* kind of field it accepts; NULL: not an op on one field */
	int version;
	bool random;
	bool free_form;                          /* parses its own arguments: accepts more than the listed options */
	struct leat_opt opts[LEAT_MAX_OPTS + 2]; /* plus `field`, for ops on one field, and the end */
};

/* Item `i` of all sources, then all ops, each sorted by name. False: past the end. */
bool leat_item_at(size_t i, struct leat_item *item);

#endif
