/* pipeline.c - compile a spec: parse, bind names, open the source, build stages, assign slots, compute identity */
#include "feed/pipeline.h"

#include <string.h>

#include "feed/bulk.h"
#include "feed/pipeline_compile.h"

static enum leat_status
check_batched(const struct leat_pipeline *p, struct leat_err *err)
{
	for (int i = 0; i < p->ops; i++)
		if (p->op[i].op->kind == LEAT_OP_BATCH)
			return LEAT_OK;
	return leat_fail(
		err, LEAT_SPEC,
		"the spec has no batch: add '| batch(32)' at the end, or '| batch(1)' for batches of one sample");
}

/* Lists the files and loads or builds their indexes. */
static enum leat_status
open_source(struct leat_pipeline *p, unsigned threads, const struct leat_storage *storage, const struct leat_log *log,
            struct leat_err *err)
{
	enum leat_status status = leat_source_open(&p->source, p->source_kind, p->source_params, threads,
	                                           p->limits.bytes, storage, p->mem, log, err);

	p->source_open = status == LEAT_OK;
	return status;
}

enum leat_status
leat_pipeline_open(struct leat_pipeline *p, const char *spec, enum leat_batching batching, uint64_t seed,
                   unsigned threads, const struct leat_limits *limits, const struct leat_functions *functions,
                   const struct leat_storage *storage, struct leat_mem *mem, const struct leat_log *log,
                   struct leat_err *err)
{
	enum leat_status status;

	memset(p, 0, sizeof *p);
	p->mem = mem;
	p->explained = batching == LEAT_BATCH_EXPLAINED;
	p->limits = limits ? *limits : (struct leat_limits){UINT64_MAX, UINT64_MAX};
	status = leat_spec_parse(&p->spec, spec, mem, err);
	if (status == LEAT_OK)
		status = leat_bind_ops(p, err);
	if (status == LEAT_OK)
		status = leat_bind_functions(p, functions, err);
	if (status == LEAT_OK)
		status = leat_bind_source(p, functions, err);
	if (status == LEAT_OK && batching == LEAT_BATCH_REQUIRED)
		status = check_batched(p, err);
	/* After binding: report a mistake in the spec before indexing a large source. */
	if (status == LEAT_OK)
		status = open_source(p, threads, storage, log, err);
	if (status == LEAT_OK) {
		leat_plan_init(&p->plan, p->source.count, p->source.first, p->source.parts, seed, mem);
		status = leat_compile_stages(p, err);
	}
	if (status == LEAT_OK) {
		leat_assign_output_slots(p);
		p->bulk = leat_bulk_new(p, mem);
		status = leat_identify(p, err);
	}
	if (status != LEAT_OK)
		leat_pipeline_close(p);
	return status;
}

void
leat_pipeline_close(struct leat_pipeline *p)
{
	if (!p->mem)
		return;
	leat_plan_free(&p->plan);
	leat_unbind(p);
	for (int s = 0; s < p->stages; s++) {
		leat_free(p->mem, p->stage[s].field);
		leat_free(p->mem, p->stage[s].output_slot);
		leat_schema_free(&p->stage[s].after, p->mem);
	}
	leat_free(p->mem, p->bulk);
	leat_schema_free(&p->schema, p->mem);
	leat_schema_free(&p->cache_schema, p->mem);
	leat_free(p->mem, p->canonical);
	leat_free(p->mem, p->identity);
	leat_spec_free(&p->spec);
	memset(p, 0, sizeof *p);
}
