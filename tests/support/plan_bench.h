/* plan_bench.h - for tests: a plan made of the text of its ops */
#ifndef TESTS_PLAN_BENCH_H
#define TESTS_PLAN_BENCH_H

#include <string.h>

#include "base/mem.h"
#include "feed/plan.h"
#include "feed/spec.h"

/* A plan with all it borrows. */
struct plan_bench {
	struct leat_mem mem; /* set up by the caller */
	struct leat_spec spec;
	struct leat_plan plan;
	const struct leat_op *op[LEAT_MAX_PLAN_OPS + 1];
	void *params[LEAT_MAX_PLAN_OPS + 1];
	size_t calls;
};

/* How often the name of call number `call` stands before it. */
static unsigned
bench_occurrence(const struct leat_spec *spec, size_t call)
{
	unsigned before = 0;

	for (size_t i = 0; i < call; i++)
		before += strcmp(spec->call[i].name, spec->call[call].name) == 0;
	return before;
}

static enum leat_status
bench_add(struct plan_bench *b, size_t i, struct leat_err *err)
{
	const struct leat_call *call = &b->spec.call[i];
	const struct leat_op *const *op = leat_ops;
	enum leat_status status;

	while (*op && strcmp((*op)->name, call->name) != 0)
		op++;
	if (!*op || i > LEAT_MAX_PLAN_OPS)
		return leat_fail(err, LEAT_INTERNAL, "the test asks for what there is not: %s", call->name);
	b->op[i] = *op;
	b->params[i] = leat_alloc(&b->mem, (*op)->params_size);
	if (!b->params[i])
		return leat_fail_mem(err, &b->mem, (*op)->params_size, (*op)->name);
	b->calls = i + 1;
	status = leat_opts_set((*op)->opts, b->params[i], call, b->spec.text, &b->mem, err);
	if (status == LEAT_OK && (*op)->check)
		status = (*op)->check(b->params[i], err);
	if (status == LEAT_OK && (*op)->kind == LEAT_OP_PLAN)
		status = leat_plan_add(&b->plan, *op, b->params[i],
		                       leat_stream(call->name, bench_occurrence(&b->spec, i)), err);
	return status;
}

/* `ops` without a source, "" for none; `first` has files + 1 numbers. Close it also when it failed. */
static enum leat_status
bench_open(struct plan_bench *b, const uint64_t *first, size_t files, const char *ops, uint64_t seed,
           struct leat_err *err)
{
	enum leat_status status;

	memset(&b->spec, 0, sizeof(b->spec));
	b->calls = 0;
	leat_plan_init(&b->plan, first[files], first, files, seed, &b->mem);
	if (ops[strspn(ops, " ")] == '\0')
		return LEAT_OK;
	status = leat_spec_parse(&b->spec, ops, &b->mem, err);
	for (size_t i = 0; status == LEAT_OK && i < b->spec.calls; i++)
		status = bench_add(b, i, err);
	return status;
}

static void
bench_close(struct plan_bench *b)
{
	leat_plan_free(&b->plan);
	for (size_t i = 0; i < b->calls; i++) {
		leat_opts_free(b->op[i]->opts, b->params[i], &b->mem);
		leat_free(&b->mem, b->params[i]);
	}
	leat_spec_free(&b->spec);
}

#endif
