/* gc.c - `leat gc`: remove old results from the store */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "cas/gc.h"
#include "cli/command.h"
#include "cli/steps.h"
#include "cli/store_folder.h"

struct gc {
	const char *project;
	float older;
	int64_t size;
	const char *keep, *release;
	bool dry_run;
};

static const struct leat_opt options[] = {
	LEAT_PROJECT_OPTION(struct gc),
	LEAT_FLOAT(struct gc, older, "30", 0, 1e6, "remove results not used for this many days"),
	LEAT_SIZE(struct gc, size, "0", 0, 1e18,
                  "then the least recently used, until the store is this small; 0: no limit"),
	LEAT_STRING(struct gc, keep, "", "never remove this result, such as decode-42; no other work"),
	LEAT_STRING(struct gc, release, "", "undo --keep; no other work"),
	LEAT_BOOL(struct gc, dry_run, "false", "say what would be removed, and remove nothing"),
	LEAT_OPT_END,
};

static enum leat_status
keep(struct leat_cas *cas, const char *id, struct leat_err *err)
{
	const char *dash = strrchr(id, '-');
	char step[200], *end = NULL;
	struct leat_digest key;
	unsigned long long number = dash ? strtoull(dash + 1, &end, 10) : 0;

	if (!dash || number == 0 || *end != '\0' || dash - id >= (long)sizeof(step))
		return leat_fail(err, LEAT_INVALID, "'%s' is not the id of a result; one looks like decode-42", id);
	snprintf(step, sizeof(step), "%.*s", (int)(dash - id), id);
	if (!leat_index_number(cas, step, number, &key))
		return leat_fail(err, LEAT_INVALID,
		                 "there is no result '%s'; 'leat show STEP[:SLICE]' prints the id of the last one", id);
	return leat_ref_set(cas, id, &key, err);
}

static void
print(const struct leat_gc_result *result, bool dry)
{
	char bytes[32], left[32];

	leat_format_size(bytes, sizeof(bytes), result->bytes_removed);
	leat_format_size(left, sizeof(left), result->bytes - result->bytes_removed);
	printf("%s %zu of %zu result%s and %zu of %zu blob%s: %s; %s left\n", dry ? "would remove" : "removed",
	       result->results_removed, result->results, leat_plural(result->results), result->blobs_removed,
	       result->blobs, leat_plural(result->blobs), bytes, left);
}

static enum leat_status
collect(struct leat_cas *cas, const struct gc *gc, struct leat_err *err)
{
	struct leat_gc_options how = {.older_s = (double)gc->older * 86400,
	                              .size = gc->size > 0 ? (uint64_t)gc->size : UINT64_MAX,
	                              .dry = gc->dry_run};
	struct leat_gc_result result;
	enum leat_status status = leat_cas_gc(cas, &how, &result, err);

	if (status == LEAT_OK && result.busy)
		status = leat_fail(err, LEAT_IO,
		                   "a build uses the store '%s', and may need anything in it; run gc again when "
		                   "it has finished",
		                   leat_cas_folder(cas));
	if (status == LEAT_OK)
		print(&result, gc->dry_run);
	return status;
}

static enum leat_status
run_gc(const struct leat_invocation *run, struct leat_err *err)
{
	const struct gc *gc = run->params;
	struct leat_cas *cas = NULL;
	char folder[PATH_MAX];
	enum leat_status status = leat_store_folder(gc->project, folder, err);

	if (status == LEAT_OK)
		status = leat_cas_open(&cas, run->mem, folder, LEAT_CAS_WRITE, err);
	if (status == LEAT_OK) {
		if (*gc->keep)
			status = keep(cas, gc->keep, err);
		else if (*gc->release)
			status = leat_ref_remove(cas, gc->release, err);
		else
			status = collect(cas, gc, err);
	}
	leat_cas_close(cas);
	return status;
}

const struct leat_command leat_command_gc = {
	.name = "gc",
	.summary = "Remove old results from the store",
	.operands = "",
	.help = "Removes results of steps that no build used for 30 days, and files that no result\n"
		"refers to. The latest result of each step and slice stays, unless --size demands\n"
		"more. Results named with --keep stay in any case. A build that needs a removed\n"
		"result makes it again. Nothing is removed while a build runs.",
	.example = "leat gc --dry-run\n"
		   "leat gc --older 7 --size 50GB\n"
		   "leat gc --keep decode-42",
	.opts = options,
	.params_size = sizeof(struct gc),
	.run = run_gc,
};
