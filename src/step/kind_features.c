/* kind_features.c - fitted features of a table, by `leat features`
 *
 *	features: clean
 *	split: {by: user, train: 80%, valid: 10%, test: 10%}
 *	columns:
 *	  amount: clip(p01, p99) | log1p | standardize
 *	  product: vocab(min_count=5)
 *	  label: keep
 *
 * `dedupe: {by: [user, item], order: ts, keep: last}` drops rows first.
 *
 * The key holds the normal form of columns, split and dedupe, so white space, comments and options that are written out
 *change nothing. The version is bumped with that of any transform. */
#include "base/str.h"
#include "step/kind.h"
#include "table/duckdb.h"

/* It sees its table and nothing else. */
static enum leat_status
read_nothing(struct leat_step *step, const struct leat_step_names *names, struct leat_err *err)
{
	static const char *const no_code[] = {NULL};

	(void)names;
	(void)err;
	step->code = no_code;
	return LEAT_OK;
}

static enum leat_status
check(const struct leat_step *step, struct leat_err *err)
{
	if (!*step->columns)
		return leat_fail(err, LEAT_SPEC, "step '%s' needs features, such as 'columns: {amount: standardize}'",
		                 step->name);
	if (step->params)
		return leat_fail(err, LEAT_SPEC,
		                 "features have no parameters; write the value of '%s' into a transform",
		                 step->param[0].name);
	if (*step->feed || step->resume)
		return leat_fail(err, LEAT_SPEC, "'%s' is for commands, and step '%s' has 'features'",
		                 *step->feed ? "feed" : "resume", step->name);
	return LEAT_OK;
}

/* The version of DuckDB is in the key; threads and memory are not: the result does not depend on them. */
static enum leat_status
command(const struct leat_step *step, struct leat_str *text, struct leat_err *err)
{
	enum leat_status status = leat_duckdb_load(err);

	if (status != LEAT_OK)
		return status;
	leat_str_addf(text, "exec \"$LEAT_COMMAND\" features --duckdb %s --columns ", leat_duckdb_version());
	leat_str_add_word(text, step->columns);
	if (*step->split) {
		leat_str_add(text, " --split ");
		leat_str_add_word(text, step->split);
	}
	if (*step->dedupe) {
		leat_str_add(text, " --dedupe ");
		leat_str_add_word(text, step->dedupe);
	}
	leat_str_addf(text, " --threads \"$cpus\" ${LEAT_MEMORY:+--memory $LEAT_MEMORY} --output \"$out\" \"$%s\"",
	              step->text);
	return LEAT_OK;
}

const struct leat_step_kind leat_step_kind_features = {
	.name = "features",
	.version = 1,
	.table = true,
	.value = "the name of a source or step",
	.doc = "Fit the features in `columns` on the training rows of a table, and compute them for all rows; see "
	       "FEATURES.md.",
	.reads = true,
	.read = read_nothing,
	.check = check,
	.command = command,
};
