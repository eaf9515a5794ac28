/* launcher.c - see launcher.h */
#include "base/launcher.h"

#include <errno.h>
#include <stdlib.h>

struct launcher {
	const char *rank, *world; /* environment variables */
};

static const struct launcher launchers[] = {
	{"RANK", "WORLD_SIZE"},
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
	{"SLURM_PROCID", "SLURM_NTASKS"},
};

static enum leat_status
get_number(const char *name, int *value, struct leat_err *err)
{
	const char *text = getenv(name);
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (*end || errno || n < 0 || n > LEAT_MAX_WORLD)
		return leat_fail(err, LEAT_INVALID, "%s=%s in the environment is not a valid rank or number of ranks",
		                 name, text);
	*value = (int)n;
	return LEAT_OK;
}

static bool
is_set(const char *name)
{
	const char *text = getenv(name);

	return text && *text;
}

enum leat_status
leat_launcher_rank(int *rank, int *world, struct leat_err *err)
{
	*rank = 0;
	*world = 1;
	for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
		const struct launcher *l = &launchers[i];
		enum leat_status status;

		if (!is_set(l->rank) || !is_set(l->world))
			continue;
		status = get_number(l->rank, rank, err);
		return status == LEAT_OK ? get_number(l->world, world, err) : status;
	}
	return LEAT_OK;
}
