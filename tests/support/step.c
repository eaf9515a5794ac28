/* step.c - see step.h */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/step.h"

void
step_put(struct step_fixture *f, const char *name, const char *text)
{
	char folder[512];

	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(folder, sizeof(folder), "%s/%.*s", f->temp.folder, (int)(slash - name), name);
		mkdir(folder, 0777);
	}
	temp_write(&f->temp, name, text, strlen(text));
}

int
step_set_up(void **state)
{
	struct step_fixture *f = calloc(1, sizeof(*f));

	temp_make(&f->temp);
	leat_mem_init(&f->mem, SIZE_MAX);
	leat_err_clear(&f->err);
	*state = f;
	return 0;
}

int
step_tear_down(void **state)
{
	struct step_fixture *f = *state;

	leat_code_close(f->code);
	leat_cas_close(f->cas);
	leat_project_close(f->project);
	assert_int_equal(leat_mem_counted(&f->mem), 0);
	temp_remove(&f->temp);
	free(f);
	return 0;
}

void
step_must(struct step_fixture *f, enum leat_status status)
{
	if (status != LEAT_OK)
		fail_msg("%s", f->err.text);
}

void
step_open_project(struct step_fixture *f, const char *yaml)
{
	char folder[512];

	leat_code_close(f->code);
	leat_project_close(f->project);
	f->code = NULL;
	step_must(f, leat_project_parse(&f->project, &f->mem, f->temp.folder, yaml, strlen(yaml), &f->err));
	if (f->cas)
		return;
	snprintf(folder, sizeof(folder), "%s/.leat", f->temp.folder);
	step_must(f, leat_cas_open(&f->cas, &f->mem, folder, LEAT_CAS_WRITE, &f->err));
	step_must(f, leat_cas_begin(f->cas, &f->err));
}

void
step_open_code(struct step_fixture *f)
{
	leat_code_close(f->code);
	f->code = NULL;
	step_must(f, leat_code_open(&f->code, f->project, f->project->step, f->cas, &f->err));
}
