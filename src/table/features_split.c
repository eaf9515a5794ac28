/* features_split.c - which rows are for training: read the text of a split, and write its SQL
 *
 * A split by hash compares MD5 as text, which any engine computes alike, so rows of one key are always in the same part
 * and adding rows moves none. */
#include <math.h>
#include <string.h>

#include "table/features.h"

enum { WHOLE = 1000000 };

/* ---- reading ---- */

static enum leat_status
parse_text(struct leat_parse *p, const char *what, struct leat_arg *value)
{
	enum leat_status status;

	*value = (struct leat_arg){0};
	status = leat_parse_value(p, value);
	if (status == LEAT_OK && (value->type == LEAT_ARG_NUMBER || value->type == LEAT_ARG_LIST || value->has_dims ||
	                          value->items || !*value->text))
		status = leat_fail_at(p->err, p->text, value->at, value->len, "expected %s", what);
	return status;
}

static enum leat_status
parse_share(struct leat_parse *p, const struct leat_arg *share, struct leat_split_part *part)
{
	double millionths = share->number * (WHOLE / 100);

	if (share->unit || !leat_parse_accept(p, '%'))
		return leat_fail_at(p->err, p->text, share->at, share->len,
		                    "a share of rows is a percentage, such as 80%%");
	if (!(millionths >= 1 && millionths <= WHOLE) || fabs(millionths - rint(millionths)) > 1e-3)
		return leat_fail_at(p->err, p->text, share->at, share->len,
		                    "a share of rows is between 0.0001%% and 100%%, with at most 4 decimals");
	part->millionths = (int64_t)rint(millionths);
	return LEAT_OK;
}

/* "80%", "before '2024-05-01'" or "rest" */
static enum leat_status
parse_rule(struct leat_parse *p, struct leat_split_part *part)
{
	struct leat_arg value = {0}, time;
	enum leat_status status = leat_parse_value(p, &value);

	if (status != LEAT_OK)
		return status;
	if (value.type == LEAT_ARG_NUMBER)
		return parse_share(p, &value, part);
	if (value.type == LEAT_ARG_WORD && !strcmp(value.text, "rest")) {
		part->is_rest = true;
		return LEAT_OK;
	}
	if (value.type != LEAT_ARG_WORD || strcmp(value.text, "before") != 0)
		return leat_fail_at(p->err, p->text, value.at, value.len,
		                    "expected a percentage, before and a time in quotes, or rest");
	status = parse_text(p, "a time in quotes, such as '2024-05-01'", &time);
	part->before = time.text;
	return status;
}

static enum leat_status
parse_part(struct leat_parse *p, struct leat_split *split)
{
	struct leat_split_part *part = &split->part[split->parts];
	struct leat_arg name;
	enum leat_status status = parse_text(p, "the name of a part", &name);

	if (status != LEAT_OK)
		return status;
	for (size_t i = 0; i < split->parts; i++)
		if (!strcmp(split->part[i].name, name.text))
			return leat_fail_at(p->err, p->text, name.at, name.len, "the split has two parts called '%s'",
			                    name.text);
	if (split->parts == LEAT_MAX_SPLITS)
		return leat_fail_at(p->err, p->text, name.at, name.len, "a split has at most %d parts",
		                    LEAT_MAX_SPLITS);
	part->name = name.text;
	split->parts++;
	return parse_rule(p, part);
}

static enum leat_status
parse_columns(struct leat_parse *p, struct leat_split *split)
{
	enum leat_status status;
	struct leat_arg name;

	do {
		status = parse_text(p, "the name of a column", &name);
		if (status == LEAT_OK && split->columns == LEAT_MAX_CROSSED)
			status = leat_fail_at(p->err, p->text, name.at, name.len, "a split is by at most %d columns",
			                      LEAT_MAX_CROSSED);
		if (status == LEAT_OK)
			split->column[split->columns++] = name.text;
	} while (status == LEAT_OK && leat_parse_accept(p, ','));
	if (status == LEAT_OK && !leat_parse_accept(p, ':'))
		status = leat_parse_expected(p, "',' or ':'");
	return status;
}

/* ---- checking ---- */

static enum leat_status
check_parts(const struct leat_split *split, struct leat_err *err)
{
	bool has_train = false, has_time = false, has_share = false;
	int64_t sum = 0;

	for (size_t i = 0; i < split->parts; i++) {
		const struct leat_split_part *part = &split->part[i];

		has_train |= !strcmp(part->name, "train");
		has_time |= part->before != NULL;
		has_share |= part->millionths > 0;
		sum += part->millionths;
		if (part->is_rest && i + 1 < split->parts)
			return leat_fail(err, LEAT_SPEC, "'rest' can only be the last part of a split");
	}
	if (!has_train)
		return leat_fail(err, LEAT_SPEC, "a split needs a part called 'train', on which features are fitted");
	if (has_time && has_share)
		return leat_fail(err, LEAT_SPEC, "a split is either by percentages or by times");
	if (has_time && split->columns > 1)
		return leat_fail(err, LEAT_SPEC, "a split by time is by one column");
	if (!split->part[split->parts - 1].is_rest && (has_time || sum != WHOLE))
		return has_time ? leat_fail(err, LEAT_SPEC, "the last part of a split by time is 'rest'")
		                : leat_fail(err, LEAT_SPEC, "the parts of the split are %g%% together, not 100%%",
		                            (double)sum * 100 / WHOLE);
	if (sum > WHOLE || (sum == WHOLE && split->part[split->parts - 1].is_rest))
		return leat_fail(err, LEAT_SPEC, "the split leaves nothing for 'rest'");
	return LEAT_OK;
}

enum leat_status
leat_split_parse(struct leat_features *f, struct leat_err *err)
{
	struct leat_split *split = &f->split;
	struct leat_parse p;
	enum leat_status status = leat_parse_begin(&p, f->split_text, f->mem, err);

	if (status == LEAT_OK && !leat_parse_at_end(&p)) {
		status = parse_columns(&p, split);
		do
			status = status == LEAT_OK ? parse_part(&p, split) : status;
		while (status == LEAT_OK && leat_parse_accept(&p, ','));
		if (status == LEAT_OK && !leat_parse_at_end(&p))
			status = leat_parse_expected(&p, "','");
		if (status == LEAT_OK)
			status = check_parts(split, err);
	}
	f->split_blocks = p.blocks;
	return status;
}

/* ---- writing ---- */

void
leat_split_print(const struct leat_split *split, struct leat_str *out)
{
	char share[40];

	for (size_t i = 0; i < split->columns; i++) {
		leat_str_add(out, i ? ", " : "");
		leat_str_add_quoted(out, split->column[i]);
	}
	for (size_t i = 0; i < split->parts; i++) {
		const struct leat_split_part *part = &split->part[i];

		leat_str_add(out, i ? ", " : ": ");
		leat_str_add_quoted(out, part->name);
		if (part->before) {
			leat_str_add(out, " before ");
			leat_str_add_quoted(out, part->before);
		} else if (part->is_rest) {
			leat_str_add(out, " rest");
		} else {
			leat_str_addf(out, " %s%%",
			              leat_format_number(share, sizeof(share), (double)part->millionths * 100 / WHOLE));
		}
	}
}

/* A share of 2^128 as 32 hexadecimal digits: MD5 of that share of keys is less. */
static void
add_threshold(struct leat_str *sql, int64_t millionths)
{
	leat_str_add(sql, "'");
	for (int i = 0; i < 32; i++) {
		millionths *= 16;
		leat_str_addf(sql, "%x", (unsigned)(millionths / WHOLE));
		millionths %= WHOLE;
	}
	leat_str_add(sql, "'");
}

/* Several keys are joined with their lengths before them, so that no two rows with different keys become the same. */
static void
add_key(const struct leat_split *split, struct leat_str *sql)
{
	for (size_t i = 0; i < split->columns; i++) {
		struct leat_str text;

		leat_str_init(&text, sql->mem, SIZE_MAX / 4);
		leat_str_add(&text, "coalesce(CAST(t.");
		leat_sql_quote(&text, split->column[i], '"');
		leat_str_add(&text, " AS VARCHAR), '')");
		if (split->columns == 1)
			leat_str_add(sql, leat_str_text(&text));
		else
			leat_str_addf(sql, "%slength(%s) || ':' || %s", i ? " || " : "", leat_str_text(&text),
			              leat_str_text(&text));
		sql->failed |= text.failed;
		leat_str_free(&text);
	}
}

void
leat_split_sql(const struct leat_split *split, struct leat_str *sql)
{
	int64_t sum = 0;

	if (split->parts < 2) {
		leat_str_add(sql, "'train'");
		return;
	}
	leat_str_add(sql, "CASE");
	for (size_t i = 0; i + 1 < split->parts; i++) {
		const struct leat_split_part *part = &split->part[i];

		leat_str_add(sql, " WHEN ");
		if (part->before) {
			leat_str_add(sql, "CAST(t.");
			leat_sql_quote(sql, split->column[0], '"');
			leat_str_add(sql, " AS TIMESTAMP) < CAST(");
			leat_sql_quote(sql, part->before, '\'');
			leat_str_add(sql, " AS TIMESTAMP)");
		} else {
			leat_str_add(sql, "md5(");
			add_key(split, sql);
			leat_str_add(sql, ") < ");
			add_threshold(sql, sum += part->millionths);
		}
		leat_str_add(sql, " THEN ");
		leat_sql_quote(sql, part->name, '\'');
	}
	leat_str_add(sql, " ELSE ");
	leat_sql_quote(sql, split->part[split->parts - 1].name, '\'');
	leat_str_add(sql, " END");
}
