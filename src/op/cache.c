/* cache.c - keep samples as they are at this point of the spec
 *
 * From the second epoch on what stands before is not done again. Random ops before a cache draw by the
 * sample's number and not by epoch and position, so that a sample is the same whether it was kept or not. */
#include "op/cache.h"

#include "op/op.h"

static const struct leat_opt options[] = {
	LEAT_ENUM(struct leat_cache_params, where, "memory", "memory|disk",
                  "in this feed's memory=, or in a folder that processes share"),
	LEAT_STRING(struct leat_cache_params, dir, "", "the folder; given, the cache is on disk"),
	LEAT_SIZE(struct leat_cache_params, size, "0", 0, 1e18,
                  "most that it may take; 0: three quarters of what memory= leaves, or 10 GiB on disk"),
	LEAT_OPT_END,
};

static enum leat_status
check(void *params, struct leat_err *err)
{
	struct leat_cache_params *cache = params;

	if (*cache->dir)
		cache->where = LEAT_CACHE_DISK;
	if (cache->where == LEAT_CACHE_DISK && !*cache->dir)
		return leat_fail(err, LEAT_SPEC,
		                 "a cache on disk needs a folder, as in cache(dir='/var/tmp/cells', size=20GiB)");
	return LEAT_OK;
}

const struct leat_op leat_op_cache = {
	.name = "cache",
	.doc = "Keep samples as they are here, so that what stands before is done once. What does not fit is made "
	       "again each time.",
	.example = "cache(memory)",
	.kind = LEAT_OP_CACHE,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct leat_cache_params),
	.check = check,
};
