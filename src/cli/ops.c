/* ops.c - `leat ops`: list the sources and ops
 *
 * Three views of the same items: a list, one item in full, and the reference page. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "cli/command.h"
#include "cli/print.h"
#include "feed/describe.h"
#include "trace/stats.h"

struct ops {
	bool json, markdown;
};

static const struct leat_opt options[] = {
	LEAT_BOOL(struct ops, json, "false", "print everything as JSON"),
	LEAT_BOOL(struct ops, markdown, "false", "print everything as Markdown, as in docs/REFERENCE.md"),
	LEAT_OPT_END,
};

/* In the order shown. */
static const struct {
	const char *kind, *title;
} groups[] = {
	{"source", "Sources: where samples come from"},
	{"fields", "Fields: select, rename or parse fields"},
	{"decode", "Decoding: bytes to images"},
	{"geometry", "Geometry: move or resample pixels"},
	{"pointwise", "Pointwise: change each element independently"},
	{"statistics", "Statistics: depend on the whole image"},
	{"color", "Color: change pixel values"},
	{"convert", "Conversion: change type or layout"},
	{"plan", "Plan: choose and order samples"},
	{"batch", "Batching"},
	{"mix", "Mixing: work on whole batches, after batch"},
	{"cache", "Caching: compute upstream ops once"},
	{"hint", "Hints: affect speed, never values"},
};

enum { GROUPS = sizeof(groups) / sizeof(*groups), MAX_ITEMS = 512, MAX_PAGE = 4 << 20 };

/* ---- one option in words ---- */

static void
add_choices(const char *choices, const char *quote, struct leat_str *out)
{
	const char *choice;
	size_t len, next;

	for (int i = 0; (choice = leat_opt_choice(choices, i, &len)); i++) {
		bool last = !leat_opt_choice(choices, i + 1, &next);

		leat_str_addf(out, "%s%s%.*s%s", i == 0 ? "" : last ? " or " : ", ", quote, (int)len, choice, quote);
	}
}

/* "integer between 1 and 65500"; "bilinear or nearest", with `quote` around each choice */
static void
add_values(const struct leat_opt *opt, const char *quote, struct leat_str *out)
{
	static const char *const words[] = {
		[LEAT_OPT_INT] = "integer",     [LEAT_OPT_FLOAT] = "number",  [LEAT_OPT_STRING] = "string",
		[LEAT_OPT_SIZE] = "size",       [LEAT_OPT_ANGLE] = "angle",   [LEAT_OPT_FLOATS] = "numbers",
		[LEAT_OPT_STRINGS] = "strings", [LEAT_OPT_VALUES] = "values",
	};
	char range[100];

	if (opt->type == LEAT_OPT_ENUM) {
		add_choices(opt->choices, quote, out);
	} else if (opt->type == LEAT_OPT_BOOL) {
		add_choices("true|false", quote, out);
	} else {
		leat_str_add(out, words[opt->type]);
		if (!leat_opt_is_number(opt))
			return;
		leat_opt_range(opt, range, sizeof(range));
		leat_str_addf(out, "%s%s", range[0] ? " " : "", range);
	}
}

static void
add_default(const struct leat_opt *opt, struct leat_str *out)
{
	if (!opt->def)
		leat_str_add(out, "required");
	else if (opt->type == LEAT_OPT_STRING)
		leat_str_add_quoted(out, opt->def);
	else
		leat_str_add(out, opt->def);
}

/* resize(height, width, method=bilinear) */
static void
add_signature(const struct leat_item *item, struct leat_str *out)
{
	leat_str_add(out, item->name);
	if (item->opts[0].type == LEAT_OPT_NONE && !item->free_form)
		return;
	leat_str_add(out, "(");
	for (const struct leat_opt *o = item->opts; o->type != LEAT_OPT_NONE; o++) {
		leat_str_addf(out, "%s%s", o == item->opts ? "" : ", ", o->name);
		if (o->def) {
			leat_str_add(out, "=");
			add_default(o, out);
		}
	}
	if (item->free_form)
		leat_str_add(out, item->opts[0].type == LEAT_OPT_NONE ? "..." : ", ...");
	leat_str_add(out, ")");
}

/* ---- the list ---- */

/* The first sentence of a doc: one line of the list. */
static int
first_sentence(const char *doc)
{
	const char *end = strstr(doc, ". ");

	return (int)(end ? end + 1 - doc : (ptrdiff_t)strlen(doc));
}

static enum leat_status
list(const struct leat_invocation *run, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	struct leat_item item;

	for (size_t g = 0; g < GROUPS && status == LEAT_OK; g++) {
		struct leat_table table;

		leat_table_init(&table, run->mem, 2);
		for (size_t i = 0; leat_item_at(i, &item); i++) {
			if (strcmp(item.kind, groups[g].kind) != 0)
				continue;
			leat_str_add(leat_table_cell(&table), item.name);
			leat_str_addf(leat_table_cell(&table), "%.*s", first_sentence(item.doc), item.doc);
		}
		if (table.cells)
			printf("%s%s%s%s\n", g ? "\n" : "", leat_bold(stdout), groups[g].title, leat_plain(stdout));
		status = leat_table_print(&table, stdout, err);
	}
	printf("\nSee 'leat ops NAME' for the options of an op.\n");
	return status;
}

/* ---- one in full ---- */

static enum leat_status
print_options(const struct leat_invocation *run, const struct leat_item *item, struct leat_err *err)
{
	struct leat_table table;

	leat_table_init(&table, run->mem, 4);
	for (const struct leat_opt *o = item->opts; o->type != LEAT_OPT_NONE; o++) {
		leat_str_addf(leat_table_cell(&table), "%s%s%s", o->name, o->was ? ", " : "", o->was ? o->was : "");
		add_values(o, "", leat_table_cell(&table));
		add_default(o, leat_table_cell(&table));
		leat_str_add(leat_table_cell(&table), o->doc);
	}
	return leat_table_print(&table, stdout, err);
}

static enum leat_status
show(const struct leat_invocation *run, const struct leat_item *item, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	struct leat_str signature;

	leat_str_init(&signature, run->mem, MAX_PAGE);
	add_signature(item, &signature);
	printf("%s%s%s\n\n%s\n", leat_bold(stdout), leat_str_text(&signature), leat_plain(stdout), item->doc);
	leat_str_free(&signature);
	if (item->wants)
		printf("Works on %s.\n", item->wants);
	if (item->opts[0].type != LEAT_OPT_NONE) {
		printf("\noptions\n");
		status = print_options(run, item, err);
	}
	if (item->example)
		printf("\nexample\n  %s\n", item->example);
	return status;
}

static enum leat_status
show_named(const struct leat_invocation *run, const char *name, struct leat_err *err)
{
	const char *names[MAX_ITEMS];
	struct leat_item item;
	size_t n = 0;

	for (; n < MAX_ITEMS && leat_item_at(n, &item); n++) {
		if (strcmp(item.name, name) == 0)
			return show(run, &item, err);
		names[n] = item.name;
	}
	return leat_fail_unknown(
		err, LEAT_INVALID,
		&(struct leat_unknown){
			.what = "op", .name = name, .known = names, .count = n, .hint = "see 'leat ops'"});
}

/* ---- the page ---- */

/* Escapes '|', which would end a table cell. */
static void
add_cell(const char *text, struct leat_str *out)
{
	for (; *text; text++)
		leat_str_addf(out, *text == '|' ? "\\%c" : "%c", *text);
}

static void
page_item(const struct leat_item *item, struct leat_str *out)
{
	leat_str_addf(out, "\n### %s\n\n%s", item->name, item->doc);
	if (item->wants)
		leat_str_addf(out, " Works on %s.", item->wants);
	if (item->random)
		leat_str_add(out, " Random, determined by seed, epoch and position.");
	leat_str_add(out, "\n\n    ");
	add_signature(item, out);
	leat_str_add(out, "\n");
	if (item->opts[0].type != LEAT_OPT_NONE)
		leat_str_add(out, "\n| option | value | default | meaning |\n|---|---|---|---|\n");
	for (const struct leat_opt *o = item->opts; o->type != LEAT_OPT_NONE; o++) {
		leat_str_addf(out, "| `%s`", o->name);
		if (o->was)
			leat_str_addf(out, ", formerly `%s`", o->was);
		leat_str_add(out, " | ");
		add_values(o, "`", out);
		leat_str_add(out, o->def ? " | `" : " | ");
		add_default(o, out);
		leat_str_add(out, o->def ? "` | " : " | ");
		add_cell(o->doc, out);
		leat_str_add(out, " |\n");
	}
	if (item->example)
		leat_str_addf(out, "\nExample: `%s`\n", item->example);
}

static void
page_stats(struct leat_str *out)
{
	leat_str_add(
		out,
		"\n## Feed statistics\n"
		"\n"
		"Counted since the feed was opened: `struct leat_stats` in C, `feed.stats()` in Python, `stats` in\n"
		"`leat feed --json`.\n"
		"\n"
		"| name | unit | meaning |\n"
		"|---|---|---|\n");
	for (const struct leat_stat *s = leat_stat_list; s->name; s++) {
		leat_str_addf(out, "| `%s` | %s | ", s->name, s->unit);
		add_cell(s->doc, out);
		leat_str_add(out, " |\n");
	}
}

static const char page_head[] =
	"# Reference: sources and ops\n"
	"\n"
	"Generated by `leat ops --markdown` from the tables in the code; a test fails if it is stale.\n"
	"\n"
	"Give options in the order shown, or by name: `resize(224, 224, method=nearest)`. Values are written as "
	"follows:\n"
	"\n"
	"| value | syntax |\n"
	"|---|---|\n"
	"| integer | `100`, `10k` (thousand), `2M` (million) |\n"
	"| number | `0.5`, `1e-3`, `1/255` |\n"
	"| size | bytes, or with a unit: `512kB`, `4MiB`, `1.5G`. `k`, `M`, `G`, `T` are powers of 1000, `Ki`, `Mi`, "
	"`Gi`, `Ti` powers of 1024; a trailing `B` is optional, and case is ignored |\n"
	"| angle | with unit: `30deg`, `0.5rad` |\n"
	"| string | a word, or any text in `'` or `\"`, with the escapes `\\n \\t \\xHH \\' \\\" \\\\` |\n"
	"| numbers, strings | a list, `[0.5, 0.5]`, or a single value |\n";

static enum leat_status
page(const struct leat_invocation *run, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	struct leat_item item;
	struct leat_str out;

	leat_str_init(&out, run->mem, MAX_PAGE);
	leat_str_add(&out, page_head);
	for (size_t g = 0; g < GROUPS; g++) {
		bool any = false;

		for (size_t i = 0; leat_item_at(i, &item); i++) {
			if (strcmp(item.kind, groups[g].kind) != 0)
				continue;
			if (!any)
				leat_str_addf(&out, "\n## %s\n", groups[g].title);
			any = true;
			page_item(&item, &out);
		}
	}
	page_stats(&out);
	if (out.failed)
		status = leat_fail_mem(err, run->mem, out.len, "the page");
	fputs(leat_str_text(&out), stdout);
	leat_str_free(&out);
	return status;
}

static enum leat_status
run_ops(const struct leat_invocation *run, struct leat_err *err)
{
	const struct ops *ops = run->params;
	char *json;

	if (run->operands + ops->json + ops->markdown > 1)
		return leat_fail(err, LEAT_INVALID, "give only one of NAME, --json and --markdown");
	if (run->operands)
		return show_named(run, run->operand[0], err);
	if (ops->markdown)
		return page(run, err);
	if (!ops->json)
		return list(run, err);
	json = leat_describe();
	if (!json)
		return leat_fail(err, LEAT_NOMEM, "out of memory");
	fputs(json, stdout);
	free(json);
	return LEAT_OK;
}

const struct leat_command leat_command_ops = {
	.name = "ops",
	.summary = "List the sources and ops for specs, or describe one",
	.operands = "[NAME]",
	.max_operands = 1,
	.example = "leat ops\nleat ops resize",
	.opts = options,
	.params_size = sizeof(struct ops),
	.run = run_ops,
};
