/* record_profile.c - what a step leaves about the table that it made; see table_session.h */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/print.h"
#include "cli/table_session.h"
#include "table/sketch.h"

/* The sketch of the last run, if there is one. */
static bool
read_last(const json_t *step, struct leat_sketch *then, struct leat_mem *mem)
{
	const char *last = json_string_value(json_object_get(step, "last_profile"));

	return last && leat_sketch_read(then, last, strlen(last), mem, NULL) == LEAT_OK;
}

static enum leat_status
write_profile(const struct leat_sketch *sketch, struct leat_err *err)
{
	json_t *json = leat_sketch_json(sketch);
	int failed = json ? json_dump_file(json, "profile.json", JSON_COMPACT) : -1;

	json_decref(json);
	return failed ? leat_fail(err, LEAT_IO, "cannot write profile.json") : LEAT_OK;
}

void
leat_record_profile(struct leat_tables *tables, const char *path, struct leat_mem *mem)
{
	const char *file = getenv("LEAT_STEP"), *since;
	json_t *step = file ? json_load_file(file, 0, NULL) : NULL;
	struct leat_sketch now = {0}, then = {0};
	struct leat_err err;
	enum leat_status status;
	bool compares;

	if (!step)
		return;
	leat_err_clear(&err);
	compares = read_last(step, &then, mem);
	since = json_string_value(json_object_get(step, "last_id"));
	status = leat_sketch_make(&now, tables, path, compares ? &then : NULL, since ? since : "", mem, &err);
	if (status == LEAT_OK)
		status = write_profile(&now, &err);
	if (status != LEAT_OK)
		leat_print_line(stdout, "there is no profile of this table: %s", err.text);
	leat_sketch_free(&now);
	leat_sketch_free(&then);
	json_decref(step);
}
