/* explain.c - `leat explain`: show how the engine runs a spec, without reading samples */
#include <stdio.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/print.h"
#include "cli/text.h"

struct params {
	int64_t seed, threads, memory, rank, world, max_pixels, max_bytes;
	struct leat_strings storage;
	bool json;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct params, seed, "0", 0, 9e18, "random seed"),
	LEAT_INT(struct params, threads, "0", 0, 1024, "worker threads; 0: one per available CPU"),
	LEAT_SIZE(struct params, memory, "0", 0, 1e18, "memory limit; 0: a quarter of the RAM, shared by local ranks"),
	LEAT_INT(struct params, rank, "-1", -1, 1e7, "this process's rank; -1: from the launcher's environment, or 0"),
	LEAT_INT(struct params, world, "0", 0, 1e7, "number of ranks; 0: from the launcher's environment, or 1"),
	LEAT_SAMPLE_LIMITS(struct params),
	LEAT_STORAGE_OPTION(struct params),
	LEAT_BOOL(struct params, json, "false", "print everything as JSON"),
	LEAT_OPT_END,
};

static enum leat_status
run_explain(const struct leat_invocation *run, struct leat_err *err)
{
	const struct params *p = run->params;
	struct leat_options o;
	enum leat_status status = leat_check_spec(run->operand[0], run->storage, run->mem, err);
	char *text = NULL;

	if (status != LEAT_OK)
		return status;
	leat_options_init(&o);
	o.seed = (uint64_t)p->seed;
	o.threads = (unsigned)p->threads;
	o.memory = (size_t)p->memory;
	o.rank = (int)p->rank;
	o.world = (int)p->world;
	o.max_pixels = (uint64_t)p->max_pixels;
	o.max_bytes = (uint64_t)p->max_bytes;
	o.log = leat_print_log;
	o.storage = run->settings;
	status = leat_explain(run->operand[0], &o, p->json, &text, err);
	if (status == LEAT_OK)
		fputs(text, stdout);
	free(text);
	return status;
}

const struct leat_command leat_command_explain = {
	.name = "explain",
	.summary = "Show how a spec runs: stages, order, reads, threads, memory",
	.operands = "SPEC",
	.min_operands = 1,
	.max_operands = 1,
	.help = "Opens the source but reads no samples. Ops on one line share one pass over the data.\n"
		"Reads are those of one epoch on this rank, with nothing cached.",
	.example = "leat explain \"folder(cells) | decode | random_resized_crop(224, 224) | flip | batch(32)\"",
	.opts = options,
	.params_size = sizeof(struct params),
	.run = run_explain,
};
