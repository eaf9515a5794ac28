/* cache.c - keep samples as they are at this point of the spec
 *
 * From the second epoch on, cached samples skip the upstream ops. Random ops before a cache draw by sample number
 * instead of epoch and position, so a sample is the same whether or not it was cached. */
#include "op/cache.h"

#include "op/op.h"

static const struct leat_opt options[] = {
	LEAT_ENUM(struct leat_cache_params, where, "memory", "memory|disk",
                  "memory: within this feed's memory limit; disk: in a folder that processes can share"),
	LEAT_STRING(struct leat_cache_params, dir, "", "cache folder; implies disk"),
	LEAT_SIZE(struct leat_cache_params, size, "0", 0, 1e18,
                  "size limit; 0: three quarters of the memory= left over, or 10 GiB on disk"),
	LEAT_ENUM(
		struct leat_cache_params, trust, "own", "own|shared",
		"on disk, own: use only this user's files; shared: those of everyone who can write to the folder, all "
		"of whom are trusted"),
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
	.doc = "Cache samples at this point, so upstream ops run once. Samples that do not fit are recomputed each "
	       "epoch.",
	.example = "cache(memory)",
	.kind = LEAT_OP_CACHE,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct leat_cache_params),
	.check = check,
};
