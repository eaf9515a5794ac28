/* open_cache.c - open the cache of a spec: choose its size, folder and key */
#include <string.h>

#include "base/size.h"
#include "feed/feed.h"

static const uint64_t disk_size = (uint64_t)10 << 30;

static void
warn_frozen_ops(const struct leat_feed *feed)
{
	const struct leat_pipeline *p = &feed->pipeline;

	for (int s = 0; s < p->cached; s++)
		for (int k = 0; k < p->stage[s].ops; k++)
			if (p->stage[s].op[k]->op->random)
				leat_log(
					&feed->log, LEAT_LOG_WARN,
					"%s comes before cache, so its random choices repeat every epoch; put it after "
					"cache to vary them",
					p->stage[s].op[k]->op->name);
}

static bool
is_current(void *arg, uint64_t sample)
{
	return leat_source_is_current(arg, sample);
}

static enum leat_status
open_cache(struct leat_feed *feed, uint64_t size, struct leat_err *err)
{
	struct leat_pipeline *p = &feed->pipeline;
	const struct leat_cache_params *params = p->cache->params;
	struct leat_cache_options o = {
		.size = size,
		.samples = p->source.count,
		.key = p->cache_key,
		.schema = &p->cache_schema,
		.shared = params->trust == LEAT_CACHE_SHARED,
		.is_current = is_current,
		.arg = &p->source,
	};

	if (params->where == LEAT_CACHE_DISK && !feed->cache_dir) {
		feed->cache_dir = leat_expand_home(&feed->mem, params->dir);
		if (!feed->cache_dir)
			return leat_fail_mem(err, &feed->mem, strlen(params->dir) + 1, "the cache's folder");
	}
	o.dir = feed->cache_dir;
	return leat_cache_open(&feed->cache, &o, &feed->mem, &feed->log, err);
}

enum leat_status
leat_feed_open_cache(struct leat_feed *feed, size_t room, struct leat_err *err)
{
	struct leat_pipeline *p = &feed->pipeline;
	const struct leat_cache_params *params = p->cache ? p->cache->params : NULL;
	char old_key[LEAT_SHA256_HEX];
	enum leat_status status;

	if (!params)
		return LEAT_OK;
	memcpy(old_key, p->cache_key, sizeof old_key);
	status = leat_pipeline_cache_key(p, feed->seed, err);
	if (status != LEAT_OK || strcmp(old_key, p->cache_key) == 0)
		return status;
	if (feed->cache) {
		leat_cache_close(feed->cache);
		feed->cache = NULL;
	} else {
		warn_frozen_ops(feed);
		if (params->size > 0)
			feed->cache_size = (uint64_t)params->size;
		else
			feed->cache_size = params->where == LEAT_CACHE_DISK ? disk_size : room / 4 * 3;
	}
	if (params->where == LEAT_CACHE_MEMORY && feed->cache_size < leat_cache_min_size(p->source.count)) {
		char need[32];

		leat_format_size_up(need, sizeof need, leat_cache_min_size(p->source.count));
		if (params->size > 0)
			leat_log(&feed->log, LEAT_LOG_WARN,
			         "nothing is cached: size= is too small for this many samples; it takes more than %s",
			         need);
		else
			leat_log(&feed->log, LEAT_LOG_WARN,
			         "nothing is cached: memory= leaves no room for a cache; it takes more than %s", need);
		return LEAT_OK;
	}
	if (p->explained && params->where == LEAT_CACHE_DISK) /* would write files */
		return LEAT_OK;
	return open_cache(feed, feed->cache_size, err);
}
