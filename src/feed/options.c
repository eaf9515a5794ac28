/* options.c - what a feed is opened with, completed from the environment */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "feed/feed.h"

enum { MAX_THREADS = 1024, MAX_WORLD = 1 << 24 };

void
leat_options_init_sized(struct leat_options *options, size_t size)
{
	struct leat_options defaults = {
	        .size = size,
	        .rank = -1,
	        .max_bad = UINT64_MAX,
	};

	memset(options, 0, size);
	memcpy(options, &defaults, size < sizeof defaults ? size : sizeof defaults);
}

/* The first of `names` that is set; LEAT_INVALID when it is no number. */
static enum leat_status
from_environment(const char *const *names, long fallback, int *value, struct leat_err *err)
{
	for (; *names; names++) {
		const char *text = getenv(*names);
		char *end;
		long n;

		if (!text || !*text)
			continue;
		errno = 0;
		n = strtol(text, &end, 10);
		if (*end || errno || n < 0 || n > MAX_WORLD)
			return leat_fail(err, LEAT_INVALID, "%s=%s in the environment is not a rank or a number of ranks", *names,
			                 text);
		*value = (int)n;
		return LEAT_OK;
	}
	*value = (int)fallback;
	return LEAT_OK;
}

/* Launchers say both; only what was not given is asked for, and a world that was given is never mixed
 * with a rank from somewhere else. */
static enum leat_status
resolve_rank(struct leat_options *o, struct leat_err *err)
{
	static const char *const rank_names[] = {"RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", NULL};
	static const char *const world_names[] = {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", NULL};
	enum leat_status status = LEAT_OK;

	if (o->rank < 0 && o->world == 1)
		o->rank = 0;
	if (o->rank < 0)
		status = from_environment(rank_names, 0, &o->rank, err);
	if (status == LEAT_OK && o->world <= 0)
		status = from_environment(world_names, 1, &o->world, err);
	if (status != LEAT_OK)
		return status;
	if (o->world < 1 || o->world > MAX_WORLD || o->rank >= o->world)
		return leat_fail(err, LEAT_INVALID, "rank %d of world %d: ranks go from 0 to world - 1", o->rank, o->world);
	return LEAT_OK;
}

static size_t
default_memory(void)
{
	size_t quarter = leat_ram("") / 4, gib = (size_t)1 << 30;

	return quarter < gib ? quarter : gib;
}

enum leat_status
leat_options_resolve(struct leat_options *to, const struct leat_options *from, struct leat_err *err)
{
	leat_options_init(to);
	if (from) {
		if (from->size < offsetof(struct leat_options, seed) || from->size > 4096)
			return leat_fail(err, LEAT_INVALID, "the options were not set up with leat_options_init");
		/* A caller built against an older header knows fewer options; the others keep their defaults. */
		memcpy(to, from, from->size < sizeof *to ? from->size : sizeof *to);
		to->size = sizeof *to;
	}
	if (to->threads > MAX_THREADS)
		return leat_fail(err, LEAT_INVALID, "threads=%u: at most %d make sense", to->threads, MAX_THREADS);
	if (to->on_error < LEAT_ON_ERROR_FAIL || to->on_error > LEAT_ON_ERROR_REPLACE)
		return leat_fail(err, LEAT_INVALID, "on_error=%d is none of fail, skip and replace", (int)to->on_error);
	if (to->threads == 0)
		to->threads = leat_cpus("");
	if (to->memory == 0)
		to->memory = default_memory();
	return resolve_rank(to, err);
}
