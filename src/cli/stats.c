/* stats.c - `leat stats`: merge the figures of several ranks and name the slow one */
#include <jansson.h>

#include "cli/command.h"
#include "cli/print.h"
#include "cli/text.h"
#include "trace/limit.h"
#include "trace/merge.h"

struct params {
	struct leat_strings storage;
	bool json;
};

static const struct leat_opt options[] = {
	LEAT_STORAGE_OPTION(struct params),
	LEAT_BOOL(struct params, json, "false", "print the merged figures as JSON"),
	LEAT_OPT_END,
};

static double
number(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static enum leat_status
print_ranks(const json_t *merged, struct leat_mem *mem, struct leat_err *err)
{
	static const char *const heads[] = {"rank", "samples/s", "waited", "limit"};
	char rate[LEAT_RATE_TEXT];
	struct leat_table table;
	enum leat_status status;
	json_t *rank;
	size_t i;

	leat_table_init(&table, mem, 4);
	table.right[0] = table.right[1] = table.right[2] = true;
	for (i = 0; i < 4; i++)
		leat_str_add(leat_table_cell(&table), heads[i]);
	json_array_foreach(json_object_get(merged, "ranks"), i, rank)
	{
		leat_str_addf(leat_table_cell(&table), "%d", (int)number(rank, "rank"));
		leat_str_add(leat_table_cell(&table), leat_rate_text(rate, number(rank, "samples_per_s")));
		leat_str_addf(leat_table_cell(&table), "%.1f %%", 100 * number(rank, "wait_share"));
		leat_str_addf(leat_table_cell(&table), "%s%s", json_string_value(json_object_get(rank, "limit")),
		              json_is_true(json_object_get(rank, "slow")) ? ", slow" : "");
	}
	status = leat_table_print(&table, stdout, err);
	if (status == LEAT_OK &&
	    printf("\n%s samples/s in all. %s\n", leat_rate_text(rate, number(merged, "samples_per_s")),
	           json_string_value(json_object_get(merged, "sentence"))) < 0)
		status = leat_fail(err, LEAT_IO, "cannot write the result");
	return status;
}

static enum leat_status
print(const struct leat_str *merged, bool as_json, struct leat_mem *mem, struct leat_err *err)
{
	json_t *parsed = as_json ? NULL : json_loads(leat_str_text(merged), 0, NULL);
	enum leat_status status = LEAT_OK;

	if (merged->failed || (!as_json && !parsed))
		status = leat_fail(err, LEAT_NOMEM, "no memory for the merged figures");
	else if (!as_json)
		status = print_ranks(parsed, mem, err);
	else if (puts(leat_str_text(merged)) < 0)
		status = leat_fail(err, LEAT_IO, "cannot write the result");
	json_decref(parsed);
	return status;
}

static enum leat_status
run_stats(const struct leat_invocation *run, struct leat_err *err)
{
	const struct params *p = run->params;
	char **text = leat_alloc_array(run->mem, run->operands, sizeof *text);
	enum leat_status status = LEAT_OK;
	struct leat_str merged;

	if (!text)
		return leat_fail_mem(err, run->mem, run->operands * sizeof *text, "the names of the files");
	leat_str_init(&merged, run->mem, (size_t)1 << 30);
	for (size_t i = 0; i < run->operands && status == LEAT_OK; i++)
		status = leat_read_text(run->operand[i], run->storage, run->mem, &text[i], err);
	if (status == LEAT_OK)
		status = leat_merge_runs((const char *const *)text, run->operand, run->operands, &merged, err);
	if (status == LEAT_OK)
		status = print(&merged, p->json, run->mem, err);
	for (size_t i = 0; i < run->operands; i++)
		leat_free(run->mem, text[i]);
	leat_free(run->mem, text);
	leat_str_free(&merged);
	return status;
}

const struct leat_command leat_command_stats = {
	.name = "stats",
	.summary = "Merge the figures of several ranks and name the slow one",
	.operands = "FILE...",
	.min_operands = 1,
	.max_operands = LEAT_MERGE_RANKS,
	.help = "Each FILE has the figures of one rank, as 'leat feed --json' prints them and\n"
		"feed.stats() returns them. Adds up what can be added up, and says which rank is\n"
		"slower than the others and which stage limits it.",
	.example = "leat stats rank-*.json",
	.opts = options,
	.params_size = sizeof(struct params),
	.run = run_stats,
};
