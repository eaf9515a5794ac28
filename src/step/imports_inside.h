/* imports_inside.h - what a leat_code remembers of Pythons, under its lock */
#ifndef LEAT_STEP_IMPORTS_INSIDE_H
#define LEAT_STEP_IMPORTS_INSIDE_H

#include "step/imports.h"

struct leat_pythons {
	struct leat_python python[8];
	size_t count;
	struct leat_site { /* a folder with packages */
		char *path;
		struct leat_paths entry; /* names in it, sorted */
		struct leat_paths owned; /* files, each followed by the name of its package */
	} * site;
	size_t sites, cap;
};

struct leat_pythons *leat_pythons_of(struct leat_code *code); /* NULL: out of memory */
bool leat_is_site(const char *folder);                        /* by its name: site-packages or dist-packages */

#endif
