/* make_actions FOLDER STEP...: record all actions of steps as made, without running anything, so that tests and
 * benchmarks have a large store in seconds. Each output is a small file of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "step/build.h"

struct maker {
	struct leat_cas *cas;
	const struct leat_step *step;
	uint64_t number;
};

static enum leat_status
make(void *arg, size_t slice, const struct leat_key_fields *fields, const char *missing, struct leat_err *err)
{
	struct maker *maker = arg;
	struct leat_content other;
	char text[100];
	struct leat_str name;
	struct leat_manifest m = {.step = maker->step->name,
	                          .number = ++maker->number,
	                          .run = leat_cas_run(maker->cas),
	                          .seconds = 1,
	                          .cpus = 1,
	                          .threads = 1,
	                          .attempts = 1,
	                          .metrics = "",
	                          .warning = ""};
	enum leat_status status;

	if (missing)
		return leat_fail(err, LEAT_DATA, "%s", missing);
	m.field = fields->field;
	m.fields = fields->count;
	m.output.kind = LEAT_CONTENT_FILE;
	m.output.bytes = (uint64_t)snprintf(text, sizeof(text), "%s %zu\n", maker->step->name, slice);
	leat_str_init(&name, fields->mem, 1 << 16);
	leat_slice_text(&maker->step->slices, slice, &name);
	m.slice = leat_str_text(&name);
	status = leat_cas_put_bytes(maker->cas, text, m.output.bytes, &m.output.digest, err);
	m.log = m.output.digest;
	if (status == LEAT_OK)
		status = leat_key_of(m.field, m.fields, &m.key, err);
	if (status == LEAT_OK)
		status = leat_cas_record(maker->cas, &m, &other, err);
	leat_str_free(&name);
	return status;
}

int
main(int argc, char **argv)
{
	struct leat_project *project = NULL;
	struct leat_cas *cas = NULL;
	char store[PATH_MAX];
	struct leat_mem mem;
	struct leat_err err;
	enum leat_status status;

	if (argc < 3)
		return 2;
	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	snprintf(store, sizeof(store), "%s/.leat", argv[1]);
	status = leat_project_open(&project, &mem, argv[1], &err);
	if (status == LEAT_OK)
		status = leat_build_store(&cas, &mem, store, &err);
	if (status == LEAT_OK)
		status = leat_cas_begin(cas, &err);
	for (int i = 2; status == LEAT_OK && i < argc; i++) {
		struct maker maker = {.cas = cas, .step = leat_project_step(project, argv[i])};

		status = leat_build_fields(project, cas, maker.step, SIZE_MAX,
		                           &(struct leat_fields_reader){make, &maker}, &err);
	}
	if (status != LEAT_OK)
		fprintf(stderr, "make_actions: %s\n", err.text);
	leat_cas_close(cas);
	leat_project_close(project);
	return status == LEAT_OK ? 0 : 1;
}
