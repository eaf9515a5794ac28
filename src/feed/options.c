/* options.c - options of a feed, with defaults from the environment */
#include <stdlib.h>
#include <string.h>

#include "base/launcher.h"
#include "base/threads.h"
#include "feed/feed.h"

enum { MAX_THREADS = 1024 };

void
leat_options_init_sized(struct leat_options *options, size_t size)
{
	struct leat_options defaults = {
		.size = size,
		.rank = -1,
		.max_bad = UINT64_MAX,
		.max_pixels = LEAT_MAX_PIXELS,
		.max_bytes = LEAT_MAX_BYTES,
		.tune = true,
	};

	memset(options, 0, size);
	memcpy(options, &defaults, size < sizeof defaults ? size : sizeof defaults);
}

unsigned
leat_default_threads(void)
{
	return leat_cpus("");
}

double
leat_available_cpus(void)
{
	return leat_cpu_limit("");
}

static bool
is_set(const char *name)
{
	const char *text = getenv(name);

	return text && *text;
}

/* The environment fills in only what was not given. A rank from a launcher with another world size is refused:
 * several processes would silently get the same part. */
static enum leat_status
resolve_rank(struct leat_options *o, struct leat_err *err)
{
	int rank = 0, world = 1;
	enum leat_status status = LEAT_OK;

	if (o->world != 1 && (o->rank < 0 || o->world <= 0))
		status = leat_launcher_rank(&rank, &world, err);
	if (status != LEAT_OK)
		return status;
	if (o->world <= 0)
		o->world = world;
	if (o->rank < 0 && o->world != 1 && o->world != world)
		return leat_fail(err, LEAT_INVALID,
		                 "world=%d needs a rank: set rank=, or start with a launcher of that many processes",
		                 o->world);
	if (o->rank < 0)
		o->rank = rank;
	if (o->world < 1 || o->world > LEAT_MAX_WORLD || o->rank >= o->world)
		return leat_fail(err, LEAT_INVALID, "rank %d of world %d is out of range: ranks go from 0 to world - 1",
		                 o->rank, o->world);
	return LEAT_OK;
}

/* The largest number in a list such as Slurm's "4(x2),3": four tasks on each of two nodes, three on another. 0: none.
 */
static size_t
largest_in(const char *text)
{
	unsigned long largest = 0;

	while (*text) {
		char *end;
		unsigned long n = *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;

		if (n > largest && n <= LEAT_MAX_WORLD)
			largest = n;
		text += strcspn(text, ",");
		text += *text == ',';
	}
	return largest;
}

/* How many ranks share this machine, as far as the launcher says; at least 1. */
static size_t
local_ranks(void)
{
	static const struct {
		const char *ranks, *only_with; /* a shell inside a Slurm allocation is not one of the tasks */
	} variables[] = {
		{"LOCAL_WORLD_SIZE", NULL},
		{"OMPI_COMM_WORLD_LOCAL_SIZE", NULL},
		{"MPI_LOCALNRANKS", NULL},
		{"SLURM_STEP_TASKS_PER_NODE", "SLURM_PROCID"},
		{"SLURM_NTASKS_PER_NODE", "SLURM_PROCID"},
	};

	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
		size_t ranks = 0;

		if (is_set(variables[i].ranks) && (!variables[i].only_with || is_set(variables[i].only_with)))
			ranks = largest_in(getenv(variables[i].ranks));
		if (ranks > 0)
			return ranks;
	}
	return 1;
}

enum leat_status
leat_options_resolve(struct leat_options *to, const struct leat_options *from, struct leat_err *err)
{
	leat_options_init(to);
	if (from) {
		if (from->size < offsetof(struct leat_options, seed) || from->size > 4096)
			return leat_fail(err, LEAT_INVALID, "the options were not initialized with leat_options_init");
		/* A caller built against an older header has fewer options; the rest keep their defaults. */
		memcpy(to, from, from->size < sizeof *to ? from->size : sizeof *to);
		to->size = sizeof *to;
	}
	if (to->threads > MAX_THREADS)
		return leat_fail(err, LEAT_INVALID, "threads=%u is too many: the limit is %d", to->threads,
		                 MAX_THREADS);
	if (to->on_error < LEAT_ON_ERROR_FAIL || to->on_error > LEAT_ON_ERROR_REPLACE)
		return leat_fail(err, LEAT_INVALID, "on_error=%d is not fail, skip or replace", (int)to->on_error);
	if (to->fingerprint < LEAT_FINGERPRINT_NAMES || to->fingerprint > LEAT_FINGERPRINT_FULL)
		return leat_fail(err, LEAT_INVALID, "fingerprint=%d is not names or full", (int)to->fingerprint);
	if (to->max_pixels == 0 || to->max_bytes == 0)
		return leat_fail(err, LEAT_INVALID, "%s=0 allows no sample: expected at least 1",
		                 to->max_pixels == 0 ? "max_pixels" : "max_bytes");
	if (to->threads == 0)
		to->threads = leat_cpus("");
	if (to->memory == 0)
		to->memory = leat_ram("") / 4 / local_ranks();
	return resolve_rank(to, err);
}
