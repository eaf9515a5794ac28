/* kind_shards.c - the rows of a table as shards, by `leat shards`
 *
 *	shards: clean
 *	count: 16
 *	seed: 1
 *
 * The input is a source or step whose result is Parquet: a file, or a folder of files. */
#include <inttypes.h>

#include "base/str.h"
#include "step/kind.h"

static const uint64_t max_seed = UINT64_C(9000000000000000000); /* of leat shards */

static enum leat_status
check(const struct leat_step *step, struct leat_err *err)
{
	if (!step->count)
		return leat_fail(err, LEAT_SPEC, "step '%s' needs a number of shards, such as 'count: 16'", step->name);
	if (step->seed > max_seed)
		return leat_fail(err, LEAT_SPEC, "'seed' of step '%s' must be %" PRIu64 " or less for shards",
		                 step->name, max_seed);
	return LEAT_OK;
}

/* Threads and memory are not in the key: the result does not depend on them. */
static enum leat_status
command(const struct leat_step *step, struct leat_str *text, struct leat_err *err)
{
	(void)err;
	leat_str_addf(text, "exec \"$LEAT_COMMAND\" shards --plain --format %s --count %u", step->format, step->count);
	if (step->has_seed)
		leat_str_addf(text, " --seed %" PRIu64, step->seed);
	leat_str_addf(text, " --threads \"$cpus\" ${LEAT_MEMORY:+--memory $LEAT_MEMORY} --output \"$out\" \"$%s\"",
	              step->text);
	return LEAT_OK;
}

const struct leat_step_kind leat_step_kind_shards = {
	.name = "shards",
	.version = 1,
	.value = "the name of a source or step",
	.doc = "Write the rows of a Parquet table to the folder $out, as `count` shards; see 'leat shards'.",
	.reads = true,
	.check = check,
	.command = command,
};
