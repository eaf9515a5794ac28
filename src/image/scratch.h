/* scratch.h - the error of a kernel that runs out of scratch; private to src/image */
#ifndef LEAT_IMAGE_SCRATCH_H
#define LEAT_IMAGE_SCRATCH_H

#include "base/err.h"
#include "base/mem.h"

/* `what`: "resizing", ... */
static inline enum leat_status
leat_fail_image(struct leat_err *err, const char *what, const struct leat_scratch *scratch)
{
	return leat_fail(err, LEAT_LIMIT, "%s the image takes more than the %zu bytes a sample may use", what,
	                 scratch->size);
}

#endif
