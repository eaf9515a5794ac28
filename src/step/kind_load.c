/* kind_load.c - a source with declared columns: one action of `leat load` for each file
 *
 *	events: {files: raw/events-*.csv.gz, columns: {user: int64, ts: timestamp}, rejects: 0.1%}
 *
 * project_source.c makes the text: the options of the command. The number of rejects that are printed is for the log,
 * which is all that remains of an action that failed. */
#include "base/str.h"
#include "step/kind.h"
#include "table/duckdb.h"

/* The version of DuckDB decides about the bytes of the Parquet file. Memory is not in the key. */
static enum leat_status
command(const struct leat_step *step, struct leat_str *text, struct leat_err *err)
{
	enum leat_status status = leat_duckdb_load(err);

	if (status != LEAT_OK)
		return status;
	leat_str_addf(text, ": DuckDB %s; exec \"$LEAT_COMMAND\" load %s --show 200", leat_duckdb_version(),
	              step->text);
	leat_str_add(text, " ${LEAT_MEMORY:+--memory $LEAT_MEMORY} --out \"$out\" \"$file\"");
	return LEAT_OK;
}

const struct leat_step_kind leat_step_kind_load = {
	.name = "load",
	.version = 1,
	.table = true,
	.doc = "Load files with declared columns; see 'leat load'.",
	.source = true,
	.command = command,
};
