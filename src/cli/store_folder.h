/* store_folder.h - the content store of a project, for commands that need no leat.yaml */
#ifndef LEAT_CLI_STORE_FOLDER_H
#define LEAT_CLI_STORE_FOLDER_H

#include <limits.h>

#include "base/err.h"

/* `project` is a folder or a file in it, such as leat.yaml. LEAT_DATA: there is no store. */
enum leat_status leat_store_folder(const char *project, char path[PATH_MAX], struct leat_err *err);

#endif
