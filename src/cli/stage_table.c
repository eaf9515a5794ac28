/* stage_table.c - see stage_table.h */
#include "cli/stage_table.h"

#include "cli/print.h"
#include "trace/limit.h"

/* Stages of the pipeline are always shown, others if they take one part in 200 of their threads' time. */
static bool
is_shown(const struct leat_stage_figures *stage, bool stepless)
{
	if (stage->kind == LEAT_STAGE_STEP)
		return !stepless;
	return stage->kind == LEAT_STAGE_OPS || stage->share >= 0.005;
}

static void
add_row(struct leat_table *table, const struct leat_stage_figures *stage)
{
	char rate[LEAT_RATE_TEXT];

	leat_str_add(leat_table_cell(table), stage->name);
	leat_str_addf(leat_table_cell(table), "%.0f %%", 100 * stage->share);
	leat_str_add(leat_table_cell(table), stage->rate_alone > 0 ? leat_rate_text(rate, stage->rate_alone) : "-");
	leat_str_add(leat_table_cell(table), stage->waits_for);
}

enum leat_status
leat_print_stages(const struct leat_stage_list *list, const struct leat_limit *limit, struct leat_mem *mem,
                  struct leat_err *err)
{
	static const char *const heads[] = {"stage", "busy", "alone, samples/s", "waits for"};
	struct leat_table table;
	enum leat_status status;

	leat_table_init(&table, mem, 4);
	table.right[1] = table.right[2] = true;
	for (size_t i = 0; i < 4; i++)
		leat_str_add(leat_table_cell(&table), heads[i]);
	for (int i = 0; i < list->count; i++)
		if (is_shown(&list->one[i], list->stepless))
			add_row(&table, &list->one[i]);
	putchar('\n');
	status = leat_table_print(&table, stdout, err);
	if (status == LEAT_OK && printf("\n%s\n", limit->sentence) < 0)
		status = leat_fail(err, LEAT_IO, "cannot write the result");
	return status;
}
