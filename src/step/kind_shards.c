/* kind_shards.c - the rows of a table as shards, by `leat shards`
 *
 *	shards: feats
 *	format: tfrecord
 *	count: 16
 *	seed: 1
 *
 * The input is a source or step whose result is Parquet: a file, or a folder of files. Image files that a column names
 * are another input, so that their contents are in the key. */
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "step/kind.h"
#include "table/duckdb.h"
#include "table/load.h"

static const uint64_t max_seed = UINT64_C(9000000000000000000); /* of leat shards */

static enum leat_status
read_images(struct leat_step *step, const struct leat_step_names *names, struct leat_err *err)
{
	const char *known = *step->root ? leat_step_known_name(names, step->root) : NULL;

	if (!*step->root)
		return LEAT_OK;
	return leat_step_add_edge(step, names, known ? known : step->root, err); /* an unknown name fails later */
}

static enum leat_status
check_images(const struct leat_step *step, struct leat_err *err)
{
	struct leat_reject_limit limit;
	bool more = *step->root || *step->rejects || step->resize || step->quality;

	if (!*step->images && more)
		return leat_fail(err, LEAT_SPEC,
		                 "'%s' of step '%s' is for images; name their column, such as 'images: path'",
		                 *step->root      ? "root"
		                 : *step->rejects ? "rejects"
		                 : step->resize   ? "resize"
		                                  : "quality",
		                 step->name);
	if (*step->images && !*step->root)
		return leat_fail(err, LEAT_SPEC,
		                 "step '%s' has 'images' and needs the source of their files, such as 'root: photos'",
		                 step->name);
	return *step->rejects ? leat_reject_limit_read(&limit, step->rejects, err) : LEAT_OK;
}

static enum leat_status
check(const struct leat_step *step, struct leat_err *err)
{
	if (!step->count)
		return leat_fail(err, LEAT_SPEC, "step '%s' needs a number of shards, such as 'count: 16'", step->name);
	if (step->seed > max_seed)
		return leat_fail(err, LEAT_SPEC, "'seed' of step '%s' must be %" PRIu64 " or less for shards",
		                 step->name, max_seed);
	return check_images(step, err);
}

static void
add_option(struct leat_str *text, const char *name, const char *value)
{
	if (!*value)
		return;
	leat_str_addf(text, " --%s ", name);
	leat_str_add_word(text, value);
}

/* Threads and memory are not in the key: the result does not depend on them. The version of DuckDB is, where it writes.
 */
static enum leat_status
command(const struct leat_step *step, struct leat_str *text, struct leat_err *err)
{
	bool parquet = !strcmp(step->format, "parquet");
	enum leat_status status = parquet ? leat_duckdb_load(err) : LEAT_OK;

	if (status != LEAT_OK)
		return status;
	leat_str_addf(text, "exec \"$LEAT_COMMAND\" shards --plain --format %s --count %u", step->format, step->count);
	if (step->has_seed)
		leat_str_addf(text, " --seed %" PRIu64, step->seed);
	if (parquet)
		add_option(text, "duckdb", leat_duckdb_version());
	add_option(text, "compression", step->compression);
	add_option(text, "parts", step->parts);
	add_option(text, "images", step->images);
	add_option(text, "rejects", step->rejects);
	if (step->resize)
		leat_str_addf(text, " --resize %u", step->resize);
	if (step->quality)
		leat_str_addf(text, " --quality %u", step->quality);
	if (*step->root)
		leat_str_addf(text, " --root \"$%s\"", step->root);
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
	.read = read_images,
	.check = check,
	.command = command,
};
