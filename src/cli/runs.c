/* runs.c - see runs.h */
#include "cli/runs.h"

#include <string.h>

enum leat_status
leat_run_find(struct leat_cas *cas, const char *text, struct leat_mem *mem, char **run, struct leat_err *err)
{
	struct leat_paths runs = {0};
	const char *found = NULL;
	enum leat_status status = leat_runs_list(cas, mem, &runs, err);
	bool is_latest = strcmp(text, "latest") == 0;

	for (size_t i = 0; i < runs.count && status == LEAT_OK; i++) {
		if (!is_latest && strncmp(runs.path[i], text, strlen(text)) != 0)
			continue;
		if (!is_latest && found)
			status = leat_fail(err, LEAT_INVALID, "several builds begin with '%s', such as %s and %s", text,
			                   runs.path[i], found);
		if (!found)
			found = runs.path[i];
	}
	if (status == LEAT_OK && !found)
		status = leat_fail(err, LEAT_INVALID, "there is no build '%s'; the last one is %s", text,
		                   runs.count > 0 ? runs.path[0] : "not there: run 'leat build'");
	*run = status == LEAT_OK ? leat_strdup(mem, found) : NULL;
	if (status == LEAT_OK && !*run)
		status = leat_fail_mem(err, mem, strlen(found), "the name of a build");
	leat_paths_free(&runs, mem);
	return status;
}
