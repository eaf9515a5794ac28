/* xray.c - `leat xray`: measure the parts of a pipeline, name the bottleneck, try what would help */
#include "xray/xray.h"

#include <math.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/print.h"
#include "cli/text.h"
#include "trace/limit.h"

struct params {
	int64_t seed, threads, memory, rank, world, max_bad, max_pixels, max_bytes, step_cpu;
	float step_ms, seconds;
	int on_error;
	const char *report;
	struct leat_strings storage;
	bool tries, json, quiet;
};

static const struct leat_opt options[] = {
	LEAT_FLOAT(struct params, step_ms, "0", 0, 1e6, "time of a training step per batch, in ms; 0: none"),
	LEAT_INT(struct params, step_cpu, "0", 0, 1024, "CPUs that the step keeps busy; 0: it runs on a device"),
	LEAT_FLOAT(struct params, seconds, "10", 0.1, 86400, "time to take, roughly"),
	LEAT_BOOL(struct params, tries, "true", "run the best remedies, to compare with the prediction"),
	LEAT_INT(struct params, seed, "0", 0, 9e18, "random seed; same seed, same batches"),
	LEAT_INT(struct params, threads, "0", 0, 1024, "worker threads; 0: one per available CPU"),
	LEAT_SIZE(struct params, memory, "0", 0, 1e18, "memory limit; 0: a quarter of the RAM, shared by local ranks"),
	LEAT_INT(struct params, rank, "-1", -1, 1e7, "this process's rank; -1: from the launcher's environment, or 0"),
	LEAT_INT(struct params, world, "0", 0, 1e7, "number of ranks; 0: from the launcher's environment, or 1"),
	LEAT_ENUM(struct params, on_error, "fail", "fail|skip|replace",
                  "on a bad sample: fail, skip it, or replace it with another"),
	LEAT_INT(struct params, max_bad, "-1", -1, 9e18, "bad samples allowed per epoch; -1: no limit"),
	LEAT_SAMPLE_LIMITS(struct params),
	LEAT_STORAGE_OPTION(struct params),
	LEAT_STRING(struct params, report, "", "write the result to this file, as an HTML page"),
	LEAT_BOOL(struct params, json, "false", "print the result as JSON"),
	LEAT_BOOL(struct params, quiet, "false", "suppress progress"),
	LEAT_OPT_END,
};

static void
show_progress(void *arg, const char *what)
{
	(void)arg;
	fprintf(stderr, "\r\033[Kmeasuring %.60s", what);
	fflush(stderr);
}

static void
set_options(const struct leat_invocation *run, struct leat_options *o, struct leat_xray_options *x)
{
	const struct params *p = run->params;

	leat_options_init(o);
	o->seed = (uint64_t)p->seed;
	o->threads = (unsigned)p->threads;
	o->memory = (size_t)p->memory;
	o->rank = (int)p->rank;
	o->world = (int)p->world;
	o->on_error = (enum leat_on_error)p->on_error;
	o->max_bad = p->max_bad < 0 ? UINT64_MAX : (uint64_t)p->max_bad;
	o->max_pixels = (uint64_t)p->max_pixels;
	o->max_bytes = (uint64_t)p->max_bytes;
	o->storage = run->settings;
	leat_xray_options_init(x);
	x->step_ms = (double)p->step_ms;
	x->step_threads = (unsigned)p->step_cpu;
	x->seconds = (double)p->seconds;
	x->tries = p->tries;
	if (!p->json && !p->quiet && leat_is_terminal(stderr))
		x->progress = show_progress;
}

static void
add_rate(struct leat_table *table, double rate)
{
	char text[32];

	leat_str_add(leat_table_cell(table), rate > 0 ? leat_rate_text(text, rate) : "not measured");
}

static enum leat_status
print_parts(const struct leat_xray *x, struct leat_mem *mem, struct leat_err *err)
{
	struct leat_table table;

	leat_table_init(&table, mem, 4);
	table.right[1] = table.right[2] = true;
	leat_str_add(leat_table_cell(&table), "part");
	leat_str_add(leat_table_cell(&table), "samples/s");
	leat_str_add(leat_table_cell(&table), "MB/s");
	leat_str_add(leat_table_cell(&table), "");
	for (int i = 0; i < x->parts; i++) {
		const struct leat_xray_part *part = &x->part[i];

		leat_str_add(leat_table_cell(&table), part->name);
		if (part->threads)
			leat_str_addf(&table.cell[table.cells - 1], ", %u thread%s", part->threads,
			              leat_plural(part->threads));
		add_rate(&table, part->rate);
		if (part->mb > 0)
			leat_str_addf(leat_table_cell(&table), "%.1f", part->mb);
		else
			leat_str_add(leat_table_cell(&table), "");
		leat_str_add(leat_table_cell(&table), part->note);
	}
	return leat_table_print(&table, stdout, err);
}

static int
count_helping(const struct leat_xray *x)
{
	int count = 0;

	for (int i = 0; i < x->remedies; i++)
		count += x->remedy[i].helps;
	return count;
}

static enum leat_status
print_helping(const struct leat_xray *x, struct leat_mem *mem, struct leat_err *err)
{
	struct leat_table table;

	leat_table_init(&table, mem, 3);
	table.right[0] = table.right[1] = true;
	leat_str_add(leat_table_cell(&table), "predicted");
	leat_str_add(leat_table_cell(&table), "measured");
	leat_str_add(leat_table_cell(&table), "what would help");
	for (int i = 0; i < x->remedies && x->remedy[i].helps; i++) {
		const struct leat_remedy *r = &x->remedy[i];
		char text[32];

		leat_str_addf(leat_table_cell(&table), "%s%s", r->at_most ? "up to " : "",
		              leat_rate_text(text, r->predicted));
		leat_str_add(leat_table_cell(&table),
		             r->measured > 0 ? leat_rate_text(text, r->measured) : "not tried");
		leat_str_add(leat_table_cell(&table), r->what);
	}
	return leat_table_print(&table, stdout, err);
}

static enum leat_status
print_others(const struct leat_xray *x, struct leat_mem *mem, struct leat_err *err)
{
	struct leat_table table;

	leat_table_init(&table, mem, 2);
	leat_str_add(leat_table_cell(&table), "what would not help");
	leat_str_add(leat_table_cell(&table), "why");
	for (int i = 0; i < x->remedies; i++) {
		if (x->remedy[i].helps)
			continue;
		leat_str_add(leat_table_cell(&table), x->remedy[i].what);
		leat_str_add(leat_table_cell(&table), x->remedy[i].why);
	}
	return leat_table_print(&table, stdout, err);
}

static enum leat_status
print_text(const struct leat_xray *x, struct leat_mem *mem, struct leat_err *err)
{
	int helping = count_helping(x);
	enum leat_status status;

	printf("%s%s.%s\n\n", leat_bold(stdout), x->verdict.sentence, leat_plain(stdout));
	status = print_parts(x, mem, err);
	if (status == LEAT_OK && helping > 0) {
		puts("");
		status = print_helping(x, mem, err);
	}
	if (status == LEAT_OK && helping < x->remedies && x->verdict.kind != LEAT_FINDING_STEP) {
		puts("");
		status = print_others(x, mem, err);
	}
	return status;
}

/* The result as JSON, to print and for a report. */
static enum leat_status
write_json(const struct leat_xray *x, const struct leat_invocation *run, struct leat_err *err)
{
	const struct params *p = run->params;
	enum leat_status status = LEAT_OK;
	struct leat_str out;

	leat_str_init(&out, run->mem, (size_t)1 << 30);
	leat_xray_add_json(x, &out);
	if (out.failed)
		status = leat_fail(err, LEAT_NOMEM, "no memory for the result");
	if (status == LEAT_OK && p->json)
		puts(leat_str_text(&out));
	if (status == LEAT_OK && *p->report)
		status = leat_report_store(NULL, leat_str_text(&out), p->report, run->storage, err);
	leat_str_free(&out);
	return status;
}

static enum leat_status
run_xray(const struct leat_invocation *run, struct leat_err *err)
{
	const struct params *p = run->params;
	struct leat_xray_options how;
	struct leat_options o;
	struct leat_xray x;
	enum leat_status status = leat_check_spec(run->operand[0], run->storage, run->mem, err);

	if (status == LEAT_OK && p->step_cpu && p->step_ms <= 0)
		status = leat_fail(err, LEAT_INVALID, "--step-cpu is for --step-ms, which is not given");
	if (status == LEAT_OK && *p->report)
		status = leat_check_output(p->report, "--report", run->storage, run->mem, err);
	if (status != LEAT_OK)
		return status;
	set_options(run, &o, &how);
	status = leat_xray_open(&x, run->operand[0], &o, &how, err);
	if (how.progress)
		fprintf(stderr, "\r\033[K");
	if (status != LEAT_OK)
		return status;
	if (!p->json)
		status = print_text(&x, run->mem, err);
	if (status == LEAT_OK)
		status = write_json(&x, run, err);
	leat_xray_close(&x);
	return status;
}

const struct leat_command leat_command_xray = {
	.name = "xray",
	.summary = "Find what limits a spec, and what would help",
	.operands = "SPEC",
	.min_operands = 1,
	.max_operands = 1,
	.help = "Measures each part of the pipeline alone: storage, decoding and ops from memory with\n"
		"1 to n threads, delivery. Then names the bottleneck, predicts what remedies would\n"
		"bring, and runs the best of them. With --step-ms, the training step is a part too.",
	.example = "leat xray \"folder(cells) | decode | resize(100, 100) | shuffle | batch(32)\" --step-ms 20",
	.opts = options,
	.params_size = sizeof(struct params),
	.run = run_xray,
};
