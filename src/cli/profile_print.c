/* profile_print.c - see profile_print.h
 *
 * A line for each column: type, NULLs, distinct values, range and distribution. Then the figures of numbers and times,
 * the lengths of texts, and what moved. Names and values are hostile; tables print what is not visible as escapes. */
#include "cli/profile_print.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/print.h"

enum { SHOWN = 24, TOPS = 3 }; /* bytes of a value in a table; frequent values */

static bool
has_figures(const struct leat_profile_column *c)
{
	return c->finite > 0;
}

static void
head(struct leat_table *table, const char *const *titles, size_t count)
{
	for (size_t i = 0; i < count; i++)
		leat_str_add(leat_table_cell(table), titles[i]);
}

static void
add_count(struct leat_str *cell, uint64_t n)
{
	char buf[LEAT_PROFILE_NUMBER_TEXT];

	leat_str_add(cell, leat_profile_number((double)n, buf));
}

/* "4.2 %"; a share that is not 0 is not shown as 0. */
static void
add_share(struct leat_str *cell, uint64_t part, uint64_t all)
{
	double percent = all ? 100 * (double)part / (double)all : 0;

	if (!part)
		leat_str_add(cell, "0");
	else if (percent < 0.01)
		leat_str_add(cell, "< 0.01 %");
	else
		leat_str_addf(cell, percent > 99.9 && part < all ? "> 99.9 %%" : "%.3g %%", percent);
}

static void
add_value(struct leat_str *cell, const struct leat_profile_text *text)
{
	char shown[SHOWN + 1], all[4 * 4 * LEAT_PROFILE_TEXT + 1];

	if (!text->bytes)
		return;
	leat_show(all, sizeof(all), text->bytes, text->len);
	leat_show(shown, sizeof(shown), all, strlen(all));
	leat_str_addf(cell, "%s%s", shown, strlen(shown) < strlen(all) || text->cut ? "..." : "");
}

/* ---- distributions ---- */

static void
add_bars(struct leat_str *cell, const struct leat_profile_column *c)
{
	static const char *const bars[] = {" ",
	                                   "\xe2\x96\x81",
	                                   "\xe2\x96\x82",
	                                   "\xe2\x96\x83",
	                                   "\xe2\x96\x84",
	                                   "\xe2\x96\x85",
	                                   "\xe2\x96\x86",
	                                   "\xe2\x96\x87",
	                                   "\xe2\x96\x88"};
	uint64_t most = 1;

	for (size_t i = 0; i < c->bins; i++)
		most = c->bin[i] > most ? c->bin[i] : most;
	for (size_t i = 0; i < c->bins; i++)
		leat_str_add(cell, bars[c->bin[i] ? 1 + (size_t)(7.999 * (double)c->bin[i] / (double)most) : 0]);
	if (c->clipped)
		leat_str_add(cell, " clipped");
}

/* "'a' 40 %, 'b' 12 %" */
static void
add_tops(struct leat_str *cell, const struct leat_profile_column *c, uint64_t rows)
{
	for (size_t i = 0; i < c->tops && i < TOPS; i++) {
		leat_str_add(cell, i ? ", '" : "'");
		add_value(cell, &c->top[i].value);
		leat_str_add(cell, "' ");
		add_share(cell, c->top[i].rows, rows);
	}
}

static void
add_column(struct leat_table *table, const struct leat_profile_column *c, uint64_t rows)
{
	struct leat_str *cell;

	leat_str_add(leat_table_cell(table), c->name);
	leat_str_add(leat_table_cell(table), c->type);
	add_share(leat_table_cell(table), c->nulls, rows);
	cell = leat_table_cell(table);
	leat_str_add(cell, c->approximate_distinct ? "~" : "");
	if (c->has_distinct)
		add_count(cell, c->distinct);
	add_value(leat_table_cell(table), &c->min);
	add_value(leat_table_cell(table), &c->max);
	cell = leat_table_cell(table);
	if (has_figures(c))
		add_bars(cell, c);
	else
		add_tops(cell, c, rows);
	if (c->nan || c->infinite)
		leat_str_addf(cell, "%sNaN %" PRIu64 ", infinite %" PRIu64, cell->len ? "  " : "", c->nan, c->infinite);
}

static enum leat_status
print_columns(const struct leat_profile *p, struct leat_err *err)
{
	static const char *const titles[] = {"column", "type", "NULL", "distinct", "min", "max", "distribution"};
	struct leat_table table;

	leat_table_init(&table, p->mem, 7);
	table.right[2] = table.right[3] = table.right[4] = table.right[5] = true;
	head(&table, titles, 7);
	for (size_t i = 0; i < p->columns; i++)
		add_column(&table, &p->column[i], p->rows);
	return leat_table_print(&table, stdout, err);
}

/* ---- numbers, times and lengths ---- */

static void
add_deviation(struct leat_str *cell, const struct leat_profile_column *c)
{
	char buf[LEAT_PROFILE_NUMBER_TEXT];
	double days = c->deviation / 86400e6;

	if (c->class == LEAT_PROFILE_NUMBER)
		leat_str_add(cell, leat_profile_number(c->deviation, buf));
	else if (days >= 1)
		leat_str_addf(cell, "%.3g days", days);
	else
		leat_str_addf(cell, "%.3g s", c->deviation / 1e6);
}

static enum leat_status
print_figures(const struct leat_profile *p, struct leat_err *err)
{
	static const char *const titles[] = {"column", "mean", "deviation", "5 %", "25 %", "50 %", "75 %", "95 %"};
	char buf[LEAT_PROFILE_NUMBER_TEXT];
	struct leat_table table;
	size_t rows = 0;

	leat_table_init(&table, p->mem, 8);
	for (size_t i = 1; i < 8; i++)
		table.right[i] = true;
	head(&table, titles, 8);
	for (size_t i = 0; i < p->columns; i++) {
		const struct leat_profile_column *c = &p->column[i];

		if (!has_figures(c))
			continue;
		rows++;
		leat_str_add(leat_table_cell(&table), c->name);
		leat_str_add(leat_table_cell(&table), leat_profile_value(c, c->mean, buf));
		add_deviation(leat_table_cell(&table), c);
		for (size_t k = 0; k < LEAT_PROFILE_QUANTILES; k++)
			leat_str_addf(leat_table_cell(&table), "%s%s", c->approximate_quantiles ? "~" : "",
			              leat_profile_value(c, c->quantile[k], buf));
	}
	if (!rows) {
		leat_table_free(&table);
		return LEAT_OK;
	}
	putchar('\n');
	return leat_table_print(&table, stdout, err);
}

static enum leat_status
print_lengths(const struct leat_profile *p, struct leat_err *err)
{
	static const char *const titles[] = {"column", "shortest", "longest", "unit"};
	static const char *const units[] = {"", "", "characters", "bytes", "elements", ""};
	struct leat_table table;
	size_t rows = 0;

	leat_table_init(&table, p->mem, 4);
	table.right[1] = table.right[2] = true;
	head(&table, titles, 4);
	for (size_t i = 0; i < p->columns; i++) {
		const struct leat_profile_column *c = &p->column[i];

		if (!c->has_length || strcmp(c->type, "BOOLEAN") == 0)
			continue;
		rows++;
		leat_str_add(leat_table_cell(&table), c->name);
		add_count(leat_table_cell(&table), c->shortest);
		add_count(leat_table_cell(&table), c->longest);
		leat_str_add(leat_table_cell(&table), units[c->class]);
	}
	if (!rows) {
		leat_table_free(&table);
		return LEAT_OK;
	}
	putchar('\n');
	return leat_table_print(&table, stdout, err);
}

/* ---- drift ---- */

static void
add_distance(struct leat_str *cell, bool compared, double x)
{
	if (compared)
		leat_str_addf(cell, "%.3f", x);
}

static enum leat_status
print_drift(const struct leat_drift *drift, const struct leat_profile *then, const char *then_name,
            struct leat_err *err)
{
	static const char *const titles[] = {"column", "", "PSI", "JS", "what moved"};
	static const char *const sizes[] = {"",           "unsure",     "moved",  "moved a lot",
	                                    "other type", "new column", "removed"};
	struct leat_table table;
	char rows[LEAT_PROFILE_NUMBER_TEXT];

	putchar('\n');
	leat_print_line(stdout, "compared with %s: %s row%s, %zu of %zu columns moved", then_name,
	                leat_profile_number((double)then->rows, rows), leat_plural(then->rows), drift->moved,
	                drift->columns);
	leat_table_init(&table, drift->mem, 5);
	table.right[2] = table.right[3] = true;
	head(&table, titles, 5);
	for (size_t i = 0; i < drift->columns; i++) {
		const struct leat_drift_column *d = &drift->column[i];

		leat_str_add(leat_table_cell(&table), d->name);
		leat_str_add(leat_table_cell(&table), sizes[d->size]);
		add_distance(leat_table_cell(&table), d->compared, d->psi);
		add_distance(leat_table_cell(&table), d->compared, d->js);
		leat_str_add(leat_table_cell(&table),
		             d->size == LEAT_DRIFT_UNSURE ? "too few rows to tell it from chance" : d->sentence);
	}
	return leat_table_print(&table, stdout, err);
}

/* ---- all of it ---- */

static void
print_notes(const struct leat_profile *p)
{
	bool approximate = false, clipped = false;

	for (size_t i = 0; i < p->columns; i++) {
		approximate |= p->column[i].approximate_distinct || p->column[i].approximate_quantiles;
		clipped |= p->column[i].clipped;
	}
	if (approximate || clipped)
		putchar('\n');
	if (approximate)
		puts("~ is approximate.");
	if (clipped)
		puts("clipped: the outer bars hold values far outside, too.");
}

enum leat_status
leat_profile_print(const struct leat_profile *profile, const char *name, const struct leat_profile *then,
                   const char *then_name, const struct leat_drift *drift, struct leat_err *err)
{
	char rows[LEAT_PROFILE_NUMBER_TEXT], all[LEAT_PROFILE_NUMBER_TEXT];
	enum leat_status status;

	leat_profile_number((double)profile->rows, rows);
	leat_profile_number((double)profile->of_rows, all);
	if (profile->of_rows > profile->rows)
		leat_print_line(stdout, "%s: a sample of %s of %s rows, %zu column%s", name, rows, all,
		                profile->columns, leat_plural(profile->columns));
	else
		leat_print_line(stdout, "%s: %s row%s, %zu column%s", name, rows, leat_plural(profile->rows),
		                profile->columns, leat_plural(profile->columns));
	putchar('\n');
	status = print_columns(profile, err);
	if (status == LEAT_OK)
		status = print_figures(profile, err);
	if (status == LEAT_OK)
		status = print_lengths(profile, err);
	print_notes(profile);
	if (status == LEAT_OK && drift)
		status = print_drift(drift, then, then_name, err);
	return status;
}
