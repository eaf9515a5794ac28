/* store_folder.c - the content store of a project, for commands that need no leat.yaml */
#include "cli/store_folder.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum leat_status
leat_store_folder(const char *project, char path[PATH_MAX], struct leat_err *err)
{
	const char *slash = strrchr(project, '/');
	struct stat file;
	int len = (int)strlen(project);

	if (stat(project, &file) == 0 && !S_ISDIR(file.st_mode)) {
		len = slash ? (int)(slash - project) : 1;
		project = slash ? project : ".";
	}
	if (snprintf(path, PATH_MAX, "%.*s/.leat", len, project) >= PATH_MAX)
		return leat_fail(err, LEAT_INVALID, "the path '%s' is too long", project);
	if (stat(path, &file) != 0 || !S_ISDIR(file.st_mode))
		return leat_fail(err, LEAT_DATA, "there is no store '%s' yet; 'leat build' makes it", path);
	return LEAT_OK;
}
