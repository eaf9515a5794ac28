/* build_store.c - open the content store of a build
 *
 * A build that was killed may have left processes, which write into sandboxes that are about to be removed. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "step/build.h"
#include "step/run_log.h"

static void
kill_left(const char *folder, const char *run)
{
	char path[PATH_MAX];

	if (*run != '.' && !leat_run_is_open(folder, run) &&
	    snprintf(path, sizeof(path), "%s/tmp/%s", folder, run) < (int)sizeof(path))
		leat_runner_kill_left(path);
}

enum leat_status
leat_build_store(struct leat_cas **cas, struct leat_mem *mem, const char *folder, struct leat_err *err)
{
	char path[PATH_MAX], *full = realpath(folder, NULL);
	struct dirent *entry;
	DIR *dir = NULL;

	if (full && snprintf(path, sizeof(path), "%s/tmp", full) < (int)sizeof(path))
		dir = opendir(path);
	while (dir && (entry = readdir(dir)) != NULL)
		kill_left(full, entry->d_name);
	if (dir)
		closedir(dir);
	free(full);
	return leat_cas_open(cas, mem, folder, LEAT_CAS_WRITE, err);
}
