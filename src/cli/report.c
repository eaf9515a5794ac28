/* report.c - `leat report`: the page of a saved run, or two runs compared */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/print.h"
#include "cli/text.h"
#include "store/store.h"
#include "xray/compare.h"
#include "xray/report.h"

struct params {
	bool compare, json;
	const char *output;
	struct leat_strings storage;
};

static const struct leat_opt options[] = {
	LEAT_STRING(struct params, output, "", "write the page to this file"),
	LEAT_BOOL(struct params, compare, "false", "compare two runs"),
	LEAT_BOOL(struct params, json, "false", "with --compare: print the result as JSON"),
	LEAT_STORAGE_OPTION(struct params),
	LEAT_OPT_END,
};

static enum leat_status
read_run(const struct leat_invocation *run, const char *path, struct leat_run *out, struct leat_err *err)
{
	char *text = NULL;
	enum leat_status status = leat_read_text(path, run->storage, run->mem, &text, err);

	*out = (struct leat_run){0};
	if (status == LEAT_OK) {
		status = leat_run_read(text, strlen(text), out, err);
		if (status != LEAT_OK)
			leat_err_in(err, "%s", path);
	}
	leat_free(run->mem, text);
	return status;
}

/* Writes the page, and frees it. */
static enum leat_status
write_page(const struct leat_invocation *run, const char *path, struct leat_str *page, struct leat_err *err)
{
	enum leat_status status =
		page->failed ? leat_fail(err, LEAT_NOMEM, "no memory for the page")
			     : leat_write_whole(path, page->text, page->len, 0, run->storage, run->mem, err);

	leat_str_free(page);
	return status;
}

static enum leat_status
report(const struct leat_invocation *run, struct leat_err *err)
{
	const struct params *p = run->params;
	struct leat_run one;
	struct leat_str page;
	enum leat_status status = read_run(run, run->operand[0], &one, err);

	if (status != LEAT_OK)
		return status;
	leat_str_init(&page, run->mem, 2 * LEAT_REPORT_MOST);
	leat_page_open(&page);
	leat_page_add_run(&page, &one);
	leat_page_close(&page);
	leat_run_close(&one);
	return write_page(run, p->output, &page, err);
}

/* ---- two runs ---- */

static void
add_value(struct leat_table *table, const struct leat_compare_row *row, double value)
{
	struct leat_str *cell = leat_table_cell(table);

	if (isnan(value))
		leat_str_add(cell, "-");
	else if (strcmp(row->unit, "share") == 0)
		leat_str_addf(cell, "%.1f %%", 100 * value);
	else
		leat_str_addf(cell, "%.*f%s%s", fabs(value) < 100 && value != floor(value) ? 2 : 0, value,
		              *row->unit ? " " : "", row->unit);
}

static void
add_change(struct leat_table *table, const struct leat_compare_row *row)
{
	struct leat_str *cell = leat_table_cell(table);

	if (isnan(row->a) || isnan(row->b))
		return;
	if (strcmp(row->unit, "share") == 0)
		leat_str_addf(cell, "%+.1f points", 100 * (row->b - row->a));
	else if (row->a != 0)
		leat_str_addf(cell, "%+.1f %%", 100 * (row->b / row->a - 1));
}

static enum leat_status
print_comparison(const struct leat_comparison *c, struct leat_mem *mem, struct leat_err *err)
{
	struct leat_table table;
	enum leat_status status;

	leat_table_init(&table, mem, 5);
	table.right[1] = table.right[2] = table.right[3] = true;
	leat_table_cell(&table);
	leat_str_add(leat_table_cell(&table), "A");
	leat_str_add(leat_table_cell(&table), "B");
	leat_str_add(leat_table_cell(&table), "change");
	leat_table_cell(&table);
	for (size_t i = 0; i < c->rows; i++) {
		leat_str_add(leat_table_cell(&table), c->row[i].name);
		add_value(&table, &c->row[i], c->row[i].a);
		add_value(&table, &c->row[i], c->row[i].b);
		add_change(&table, &c->row[i]);
		leat_str_add(leat_table_cell(&table), c->row[i].differs   ? "a difference"
		                                      : c->row[i].decided ? "no difference"
		                                                          : "");
	}
	status = leat_table_print(&table, stdout, err);
	if (status == LEAT_OK && puts(c->sentence) < 0)
		status = leat_fail(err, LEAT_IO, "cannot write the result");
	return status;
}

static enum leat_status
print_json(json_t *data, struct leat_err *err)
{
	json_t *result = json_copy(data);
	int failed;

	if (!result)
		return leat_fail(err, LEAT_NOMEM, "no memory for the result");
	json_object_del(result, "a");
	json_object_del(result, "b");
	failed = json_dumpf(result, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) != 0 || putchar('\n') == EOF;
	json_decref(result);
	return failed ? leat_fail(err, LEAT_IO, "cannot write the result") : LEAT_OK;
}

static enum leat_status
write_comparison(const struct leat_invocation *run, const struct leat_run *ab, json_t *data, struct leat_err *err)
{
	const struct params *p = run->params;
	struct leat_str page;

	if (json_object_set_new(data, "name_a", json_string(run->operand[0])) != 0 ||
	    json_object_set_new(data, "name_b", json_string(run->operand[1])) != 0)
		return leat_fail(err, LEAT_INVALID, "the names of the files must be UTF-8");
	if ((ab[0].timeline && json_object_set(data, "timeline_a", ab[0].timeline) != 0) ||
	    (ab[1].timeline && json_object_set(data, "timeline_b", ab[1].timeline) != 0))
		return leat_fail(err, LEAT_NOMEM, "no memory for the page");
	leat_str_init(&page, run->mem, 4 * LEAT_REPORT_MOST);
	leat_page_open(&page);
	leat_page_add(&page, "leat-compare", data);
	leat_page_close(&page);
	return write_page(run, p->output, &page, err);
}

static enum leat_status
compare(const struct leat_invocation *run, struct leat_err *err)
{
	const struct params *p = run->params;
	struct leat_run ab[2] = {0};
	struct leat_comparison c;
	json_t *data = NULL;
	enum leat_status status = read_run(run, run->operand[0], &ab[0], err);

	if (status == LEAT_OK)
		status = read_run(run, run->operand[1], &ab[1], err);
	if (status == LEAT_OK)
		status = leat_compare(ab[0].run, ab[1].run, &c, err);
	if (status == LEAT_OK && !(data = leat_comparison_json(&c, ab[0].run, ab[1].run)))
		status = leat_fail(err, LEAT_NOMEM, "no memory for a comparison");
	if (status == LEAT_OK)
		status = p->json ? print_json(data, err) : print_comparison(&c, run->mem, err);
	if (status == LEAT_OK && *p->output)
		status = write_comparison(run, ab, data, err);
	json_decref(data);
	leat_run_close(&ab[0]);
	leat_run_close(&ab[1]);
	return status;
}

static enum leat_status
run_report(const struct leat_invocation *run, struct leat_err *err)
{
	const struct params *p = run->params;

	if (p->compare && run->operands != 2)
		return leat_fail(err, LEAT_INVALID, "--compare takes two runs");
	if (p->compare)
		return compare(run, err);
	if (run->operands != 1)
		return leat_fail(err, LEAT_INVALID, "one run makes one page; to compare two, use --compare");
	if (!*p->output)
		return leat_fail(err, LEAT_INVALID, "where does the page go? Use -o run.html");
	return report(run, err);
}

const struct leat_command leat_command_report = {
	.name = "report",
	.summary = "Write the page of a saved run, or compare two",
	.operands = "RUN | --compare A B",
	.min_operands = 1,
	.max_operands = 2,
	.help = "A run is a file with the output of 'leat feed --json' or 'leat xray --json', or a page\n"
		"that --report wrote. The page is one HTML file that needs no network. --compare shows\n"
		"two runs side by side. A difference counts only if it exceeds 5 % and what the runs\n"
		"vary by themselves: over four or more epochs without the first, or over their batches.",
	.example = "leat feed \"$spec\" --json >run.json; leat report run.json -o run.html\n"
		   "leat report --compare before.json after.json -o compared.html",
	.opts = options,
	.params_size = sizeof(struct params),
	.run = run_report,
};
