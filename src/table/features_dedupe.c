/* features_dedupe.c - one row per key: read the text of dedupe, and write its SQL
 *
 * The text is that of the options of a call, as in "user, item, order=ts, keep=last". */
#include <string.h>

#include "table/features.h"

static const struct leat_opt options[] = {
	LEAT_STRINGS(struct leat_dedupe, by, LEAT_REQUIRED, "columns that are equal in duplicates", 0),
	LEAT_STRINGS(struct leat_dedupe, order, "[]",
                     "columns that say which row is first; []: as they are in the table", LEAT_OPT_NAMED),
	LEAT_OPT_(struct leat_dedupe, keep, LEAT_OPT_ENUM, "first", 0, 0, "first|last", "which row to keep",
                  LEAT_OPT_NAMED),
	LEAT_OPT_END,
};

static enum leat_status
set_options(struct leat_features *f, struct leat_parse *p)
{
	struct leat_call call;
	enum leat_status status = leat_parse_call(p, &call);

	if (status == LEAT_OK && !leat_parse_at_end(p))
		status = leat_parse_expected(p, "the end of dedupe");
	if (status == LEAT_OK)
		status = leat_opts_set(options, &f->dedupe, &call, f->dedupe_text, f->mem, p->err);
	if (status == LEAT_OK &&
	    (!f->dedupe.by.count || f->dedupe.by.count > LEAT_MAX_CROSSED || f->dedupe.order.count > LEAT_MAX_CROSSED))
		status = leat_fail(p->err, LEAT_SPEC, "dedupe takes 1 to %d columns that are equal in duplicates",
		                   LEAT_MAX_CROSSED);
	return status;
}

enum leat_status
leat_dedupe_parse(struct leat_features *f, struct leat_err *err)
{
	struct leat_parse p;
	enum leat_status status;

	if (!*f->dedupe_text)
		return LEAT_OK;
	leat_opts_clear(options, &f->dedupe);
	status = leat_parse_begin(&p, f->dedupe_text, f->mem, err);
	if (status == LEAT_OK)
		status = set_options(f, &p);
	f->dedupe_blocks = p.blocks;
	return status;
}

void
leat_dedupe_free(struct leat_features *f)
{
	leat_opts_free(options, &f->dedupe, f->mem);
	leat_parse_free(f->mem, f->dedupe_blocks);
}

void
leat_dedupe_print(const struct leat_features *f, struct leat_str *out)
{
	if (f->dedupe.by.count)
		leat_opts_print(options, &f->dedupe, true, out);
}

static void
add_named(const struct leat_features *f, const char *name, struct leat_str *sql)
{
	for (size_t i = 0; i < f->inputs; i++)
		if (!strcmp(f->input[i].name, name))
			leat_input_sql(&f->input[i], sql);
}

/* Rows without an order are after all others, whichever is kept. The table decides between equals. */
void
leat_dedupe_sql(const struct leat_features *f, struct leat_str *sql)
{
	const struct leat_dedupe *d = &f->dedupe;
	const char *direction = d->keep ? " DESC" : "";

	for (size_t i = 0; i < d->by.count; i++) {
		add_named(f, d->by.value[i], sql);
		leat_str_add(sql, " IS NULL OR ");
	}
	leat_str_add(sql, "row_number() OVER (PARTITION BY ");
	for (size_t i = 0; i < d->by.count; i++) {
		leat_str_add(sql, i ? ", " : "");
		add_named(f, d->by.value[i], sql);
	}
	leat_str_add(sql, " ORDER BY ");
	for (size_t i = 0; i < d->order.count; i++) {
		add_named(f, d->order.value[i], sql);
		leat_str_addf(sql, "%s NULLS LAST, ", direction);
	}
	leat_str_addf(sql, "t." LEAT_ROW "%s) = 1", direction);
}
