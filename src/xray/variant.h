/* variant.h - a spec with parts removed, replaced or added: what xray runs to measure one thing alone
 *
 * Works on the text: calls of the spec are kept as they were written. One thread. */
#ifndef LEAT_XRAY_VARIANT_H
#define LEAT_XRAY_VARIANT_H

#include "base/str.h"
#include "feed/spec.h"

enum { LEAT_OUTLINE_OPS = 64 };

/* A spec taken apart. */
struct leat_outline {
	struct leat_spec spec;
	int op[LEAT_OUTLINE_OPS]; /* sample ops, as numbers of calls */
	int ops;
	int fixed;      /* sample ops before the first random one: a cache after them changes nothing */
	int cached;     /* sample ops before `cache`; -1: there is none */
	int cache;      /* its call; -1 */
	int decode;     /* sample op that decodes images, or -1 */
	bool fast;      /* with fast=true already */
	bool shuffles;  /* anywhere, in no blocks */
	bool functions; /* has a map */
	double repeats; /* passes over the data per epoch */
};

enum leat_variant_order {
	LEAT_ORDER_SAME,
	LEAT_ORDER_BLOCKS, /* shuffled in blocks */
	LEAT_ORDER_SUBSET, /* a few samples from all over the data, again and again */
};

struct leat_variant {
	bool no_ops;
	enum leat_variant_order order;
	uint64_t of, subset;  /* SUBSET: take `subset` of the `of` samples */
	int cache;            /* LEAT_CACHE_AS_GIVEN, LEAT_CACHE_NONE, or after this many sample ops */
	uint64_t cache_bytes; /* 0: what memory= leaves */
	bool fast;
	uint64_t batch; /* 0: as given */
	/* LEAT_PREFETCH_AS_GIVEN, LEAT_PREFETCH_AUTO, or batches */
	int64_t prefetch;
};

enum { LEAT_CACHE_AS_GIVEN = -1, LEAT_CACHE_NONE = -2, LEAT_PREFETCH_AS_GIVEN = -2, LEAT_PREFETCH_AUTO = -1 };

enum leat_status leat_outline_open(struct leat_outline *outline, const char *spec, struct leat_mem *mem,
                                   struct leat_err *err);
void leat_outline_close(struct leat_outline *outline);

/* The name of sample op `i` - 1, or of the source if `i` is 0: what a cache at `i` comes after. */
const char *leat_outline_before(const struct leat_outline *outline, int i);
/* Does sample op `i` only change numbers, their type or their order? */
bool leat_outline_is_pointwise(const struct leat_outline *outline, int i);

void leat_variant_init(struct leat_variant *variant); /* the spec as given */
void leat_variant_text(const struct leat_outline *outline, const struct leat_variant *variant, struct leat_str *out);

#endif
