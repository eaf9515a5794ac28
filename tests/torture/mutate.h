/* mutate.h - hostile versions of a file */
#ifndef TORTURE_MUTATE_H
#define TORTURE_MUTATE_H

#include "torture.h"

#define TORTURE_PLANTED "plant an index" /* which is valid, and says something else */

/* Changes the file in one of many ways, some of which know its format. Returns which one. */
const char *torture_mutate(struct torture *t, const char *path);

#endif
