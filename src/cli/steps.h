/* steps.h - the project and its content store, as commands open them */
#ifndef LEAT_CLI_STEPS_H
#define LEAT_CLI_STEPS_H

#include "cas/cas.h"
#include "step/project.h"

/* Option of commands that work on a project, for a member `const char *project`. */
#define LEAT_PROJECT_OPTION(T) LEAT_STRING(T, project, ".", "leat.yaml, or the folder it is in")

struct leat_steps {
	struct leat_project *project;
	struct leat_cas *cas; /* NULL: opened for reading, and there is none yet */
};

/* The store is the folder .leat beside leat.yaml. `looks`: whether servers are asked about remote sources. */
enum leat_status leat_steps_open(struct leat_steps *steps, struct leat_mem *mem, const char *file,
                                 enum leat_cas_mode mode, enum leat_looks looks, struct leat_err *err);
/* Says on stderr if a server could not be reached, so that what the last build saw counts. */
void leat_steps_say_doubt(const struct leat_steps *steps);
void leat_steps_close(struct leat_steps *steps);

#endif
