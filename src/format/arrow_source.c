/* arrow_source.c - the source of tables that the program has in memory
 *
 *	arrow                          the table that the program gives with leat_options.arrow
 *	arrow(columns=[user, amount], null=zero) */
#include <stdio.h>

#include "format/arrow.h"

static const struct leat_opt options[] = {
	LEAT_STRINGS(struct leat_arrow_params, columns, "[]", "columns to read as fields; []: all", LEAT_OPT_NAMED),
	LEAT_OPT_(struct leat_arrow_params, null, LEAT_OPT_ENUM, "error", 0, 0, "error|zero|nan",
                  "what a null becomes: a bad sample; zero, or an empty list or text; NaN in columns of floats, and a "
                  "bad sample in others",
                  LEAT_OPT_NAMED),
	LEAT_OPT_END,
};

struct state {
	struct leat_arrow_rows *rows; /* must be first */
};

static void
close_source(struct leat_source *source)
{
	struct state *state = source->state;

	leat_arrow_source_close(source, state->rows);
	leat_free(source->mem, state);
}

static void
say_where(const struct leat_source *source, uint64_t row, char *buf, size_t cap)
{
	(void)source;
	snprintf(buf, cap, "the Arrow table, row %llu", (unsigned long long)row);
}

static enum leat_status
open_source(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	const struct leat_arrow_params *params = source->params;
	struct leat_arrow_wish wish = {
		.columns = params->columns, .null = (enum leat_arrow_null)params->null, .where = say_where};
	struct state *state;
	enum leat_status status;

	(void)threads;
	if (!params->table)
		return leat_fail(err, LEAT_INVALID,
		                 "'arrow' reads a table of the program, and there is none: in Python, use "
		                 "leat.arrow(table); in C, set leat_options.arrow");
	state = source->state = leat_alloc(source->mem, sizeof(*state));
	if (!state)
		return leat_fail_mem(err, source->mem, sizeof(*state), "a table");
	status = leat_arrow_source_open(source, leat_arrow_hold(params->table), &wish, &state->rows, err);
	if (status == LEAT_OK)
		leat_arrow_longest(source);
	else
		leat_free(source->mem, state);
	return status;
}

const struct leat_source_kind leat_source_arrow = {
	.name = "arrow",
	.doc = "Read a table in memory by the Arrow C data interface, one row per sample: a pandas, Polars or pyarrow "
	       "table that the program gives (leat.arrow in Python, leat_options.arrow in C). Numbers without nulls, "
	       "text and lists of numbers are not copied; dates and timestamps become int64 microseconds since 1970, "
	       "decimals float64.",
	.example = "arrow(columns=[user, amount])",
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct leat_arrow_params),
	.open = open_source,
	.close = close_source,
	.locate = leat_arrow_locate,
	.touch = leat_arrow_touch,
	.rows = leat_arrow_rows_form,
	.rows_at = leat_arrow_rows_at,
	.unpack = leat_arrow_unpack,
	.fingerprint = leat_arrow_fingerprint,
};
