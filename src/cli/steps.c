/* steps.c - see steps.h */
#include "cli/steps.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/print.h"
#include "step/build.h"

static enum leat_status
open_store(struct leat_steps *steps, enum leat_cas_mode mode, struct leat_err *err)
{
	struct leat_mem *mem = steps->project->mem;
	char *folder = leat_asprintf(mem, "%s/.leat", steps->project->folder);
	struct leat_err why;
	enum leat_status status;

	if (!folder)
		return leat_fail_mem(err, mem, 1, "the path of the store");
	leat_err_clear(&why);
	if (mode == LEAT_CAS_WRITE)
		status = leat_build_store(&steps->cas, mem, folder, &why);
	else
		status = leat_cas_open(&steps->cas, mem, folder, mode, &why);
	if (status == LEAT_DATA && mode == LEAT_CAS_READ && access(folder, F_OK) != 0)
		status = LEAT_OK; /* nothing was built yet */
	leat_free(mem, folder);
	return status == LEAT_OK ? LEAT_OK : leat_fail_as(err, &why);
}

enum leat_status
leat_steps_open(struct leat_steps *steps, struct leat_mem *mem, const char *file, enum leat_cas_mode mode,
                enum leat_looks looks, struct leat_err *err)
{
	enum leat_status status;

	*steps = (struct leat_steps){0};
	status = leat_project_open_now(&steps->project, mem, file, looks, err);
	if (status == LEAT_OK)
		status = open_store(steps, mode, err);
	if (status != LEAT_OK)
		leat_steps_close(steps);
	return status;
}

void
leat_steps_say_doubt(const struct leat_steps *steps)
{
	const char *doubt = leat_staging_doubt(steps->project->staging);

	if (doubt)
		leat_print_line(stderr, "as the last build saw remote sources: %s", doubt);
}

void
leat_steps_close(struct leat_steps *steps)
{
	leat_cas_close(steps->cas);
	leat_project_close(steps->project);
	*steps = (struct leat_steps){0};
}
