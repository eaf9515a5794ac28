/* step.h - a project with a content store, for tests of steps */
#ifndef TEST_STEP_H
#define TEST_STEP_H

#include "step/code.h"
#include "support/temp.h"

struct step_fixture {
	struct temp temp;
	struct leat_mem mem;
	struct leat_project *project;
	struct leat_cas *cas;
	struct leat_code *code;
	struct leat_err err;
};

/* For cmocka: *state is the fixture. All memory must be freed at the end. */
int step_set_up(void **state);
int step_tear_down(void **state);

void step_must(struct step_fixture *f, enum leat_status status); /* fails with err's text */
/* Writes a file and the folders above it. */
void step_put(struct step_fixture *f, const char *name, const char *text);
/* Reads leat.yaml from a text; on the first call opens the store, with a run. */
void step_open_project(struct step_fixture *f, const char *yaml);
/* The code of the first step as it is now. */
void step_open_code(struct step_fixture *f);

#endif
