/* features_sql.c - the SQL of features, and fitting on the way
 *
 * The SELECT is nested: the innermost list casts the columns of the table, and each list around it does one transform
 * of every feature. So an expression names what comes in as often as it likes without the text growing, and fitting the
 * n-th transforms queries the n lists inside. Value i is called v<i>, its further columns s<i>_<k>. Columns of the
 * table that options name, such as the group of a row, are passed on by all lists as x<i>.
 *
 * Transforms that read other rows need a sort, which DuckDB does anew for each query, even if it does not use the
 * result. So while fitting, the lists up to theirs are kept as a temporary table, from which later queries start. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "table/features.h"

enum { MAX_VALUE = 64 };

/* ---- SQL of values ---- */

const char *
leat_value_type(enum leat_value_kind kind)
{
	switch (kind) {
	case LEAT_VALUE_NUMBER:
		return "DOUBLE";
	case LEAT_VALUE_WHOLE:
		return "BIGINT";
	case LEAT_VALUE_TEXT:
		return "VARCHAR";
	case LEAT_VALUE_TIME:
		return "TIMESTAMP";
	case LEAT_VALUE_LIST:
		return "VARCHAR[]";
	case LEAT_VALUE_IDS:
		return "BIGINT[]";
	case LEAT_VALUE_OTHER:
		break;
	}
	return "";
}

void
leat_sql_add_number(struct leat_str *sql, double number)
{
	char text[40];

	leat_format_digits(text, sizeof(text), number, 17);
	leat_str_addf(sql, strpbrk(text, "en") ? "%s" : "%se0", text);
}

/* "t."amount"", cast to the type that it had when features were fitted. */
static void
add_column(const struct leat_feature_input *input, struct leat_str *sql)
{
	if (*input->type)
		leat_str_add(sql, "CAST(");
	if (input->absent) {
		leat_str_add(sql, "NULL");
	} else {
		leat_str_add(sql, "t.");
		leat_sql_quote(sql, input->name, '"');
	}
	if (*input->type)
		leat_str_addf(sql, " AS %s)", input->type);
}

/* As transforms get it: missing is NULL. */
static void
add_input(const struct leat_feature_input *input, bool as_text, struct leat_str *sql)
{
	const char *type = leat_value_type(input->kind);

	if (input->kind == LEAT_VALUE_LIST && input->can_be_nan) {
		leat_str_add(sql, "list_transform(");
		add_column(input, sql);
		leat_str_add(sql, ", lambda x: CAST(nullif(x, CAST('nan' AS DOUBLE)) AS VARCHAR))");
		return;
	}
	leat_str_add(sql, as_text && strcmp(type, "VARCHAR") ? "CAST(" : "");
	leat_str_add(sql, input->can_be_nan ? "nullif(" : "");
	leat_str_add(sql, strcmp(type, input->type) ? "CAST(" : "");
	add_column(input, sql);
	if (strcmp(type, input->type))
		leat_str_addf(sql, " AS %s)", type);
	leat_str_add(sql, input->can_be_nan ? ", CAST('nan' AS DOUBLE))" : "");
	leat_str_add(sql, as_text && strcmp(type, "VARCHAR") ? " AS VARCHAR)" : "");
}

/* With its own type, so that no two values become equal; times with one type, so that intervals suit them. */
void
leat_input_sql(const struct leat_feature_input *input, struct leat_str *sql)
{
	bool is_real = input->can_be_nan && input->kind == LEAT_VALUE_NUMBER;

	if (input->kind == LEAT_VALUE_TIME) {
		add_input(input, false, sql);
		return;
	}
	leat_str_add(sql, is_real ? "nullif(" : "");
	add_column(input, sql);
	leat_str_add(sql, is_real ? ", CAST('nan' AS DOUBLE))" : "");
}

/* ---- layers ---- */

static struct leat_str *
add_layer(struct leat_features *f)
{
	struct leat_str *layer = &f->layer[f->layers++];

	leat_str_init(layer, f->mem, LEAT_MAX_STATE);
	return layer;
}

static void
begin_item(struct leat_str *layer)
{
	leat_str_add(layer, layer->len ? ", " : "");
}

/* The kind that a transform gets, if it accepts any. Text is what everything has, so it is only used by transforms that
 * accept nothing else. */
static enum leat_value_kind
kind_for(const struct leat_transform *transform, enum leat_value_kind kind)
{
	const unsigned others = LEAT_VALUE_NUMBER | LEAT_VALUE_WHOLE | LEAT_VALUE_TIME;

	if (transform->accepts & kind)
		return kind;
	if (kind == LEAT_VALUE_WHOLE && transform->accepts & LEAT_VALUE_NUMBER)
		return LEAT_VALUE_NUMBER;
	return transform->accepts & LEAT_VALUE_TEXT && !(transform->accepts & others) && kind & others ? LEAT_VALUE_TEXT
	                                                                                               : 0;
}

static enum leat_status
refuse_kind(const struct leat_feature *feature, const struct leat_transform *transform, struct leat_err *err)
{
	static const struct {
		enum leat_value_kind kind;
		const char *word;
	} words[] = {{LEAT_VALUE_NUMBER, "a number"},
	             {LEAT_VALUE_WHOLE, "a whole number"},
	             {LEAT_VALUE_TEXT, "a text"},
	             {LEAT_VALUE_TIME, "a time"},
	             {LEAT_VALUE_LIST, "a list"},
	             {LEAT_VALUE_IDS, "a list of numbers, as vocab and hash make of lists"},
	             {LEAT_VALUE_OTHER, "of a type that can only be kept"}};
	const char *needs = "", *is = "";

	for (size_t i = sizeof(words) / sizeof(*words); i-- > 0;) {
		needs = transform->accepts & words[i].kind ? words[i].word : needs;
		is = feature->kind == words[i].kind ? words[i].word : is;
	}
	return leat_fail(err, LEAT_INVALID,
	                 "feature '%s': '%s' needs %s, but what it gets is %s; CAST the column in SQL", feature->name,
	                 transform->name, needs, is);
}

/* ---- columns that options name ---- */

static bool
is_passed(const struct leat_feature_input *input, bool fitting)
{
	return input->in_group || (fitting && input->in_fold);
}

static void
add_named(const struct leat_features *f, bool fitting, struct leat_str *layer)
{
	for (size_t i = 0; i < f->inputs; i++) {
		if (!is_passed(&f->input[i], fitting))
			continue;
		begin_item(layer);
		if (f->layers == 1)
			leat_input_sql(&f->input[i], layer);
		leat_str_addf(layer, f->layers == 1 ? " AS x%zu" : "x%zu", i);
	}
	if (!f->is_ordered)
		return;
	begin_item(layer);
	leat_str_add(layer, f->layers == 1 ? "t." LEAT_ROW : LEAT_ROW);
}

static void
set_roles(const struct leat_features *f, const struct leat_feature_call *call, struct leat_role_columns *role)
{
	for (int i = 0; i < LEAT_ROLES; i++) {
		role[i].count = call->columns[i];
		for (size_t k = 0; k < call->columns[i]; k++) {
			snprintf(role[i].sql[k], sizeof(role[i].sql[k]), "x%u", (unsigned)call->column[i][k]);
			role[i].kind[k] = f->input[call->column[i][k]].kind;
		}
	}
}

/* "CAST(v3 AS DOUBLE)" */
static void
set_value(char value[MAX_VALUE], size_t feature, enum leat_value_kind is, enum leat_value_kind wanted)
{
	if (is == wanted)
		snprintf(value, MAX_VALUE, "v%zu", feature);
	else
		snprintf(value, MAX_VALUE, "CAST(v%zu AS %s)", feature, leat_value_type(wanted));
}

/* The table's columns. Of a feature with several, nothing yet: its first transform reads them all. */
static void
add_first_layer(struct leat_features *f, bool fitting)
{
	struct leat_str *layer = add_layer(f);

	for (size_t i = 0; i < f->features; i++) {
		struct leat_feature *feature = &f->feature[i];
		const struct leat_feature_input *input = &f->input[feature->input[0]];

		feature->sides = 0;
		feature->only_sides = false;
		feature->kind = feature->is_kept ? LEAT_VALUE_OTHER : input->kind;
		for (size_t k = 0; k < feature->inputs && feature->inputs > 1; k++) {
			begin_item(layer);
			add_input(&f->input[feature->input[k]], true, layer);
			leat_str_addf(layer, " AS c%zu_%zu", i, k);
		}
		if (feature->inputs > 1) {
			feature->kind = LEAT_VALUE_TEXT;
			continue;
		}
		begin_item(layer);
		if (feature->kind == LEAT_VALUE_OTHER)
			add_column(input, layer);
		else
			add_input(input, false, layer);
		leat_str_addf(layer, " AS v%zu", i);
	}
	add_named(f, fitting, layer);
	leat_str_free(&f->qualify);
	if (f->dedupe.by.count)
		leat_dedupe_sql(f, &f->qualify);
}

static void
add_sides(const struct leat_features *f, size_t i, struct leat_str *layer)
{
	for (size_t k = 0; k < f->feature[i].sides; k++) {
		begin_item(layer);
		leat_str_addf(layer, "s%zu_%zu", i, k);
	}
}

static void
add_new_sides(struct leat_feature *feature, const struct leat_emitting *e, size_t i, struct leat_str *layer)
{
	for (size_t k = 0; k < e->sides; k++) {
		begin_item(layer);
		leat_str_add(layer, leat_str_text(e->side[k].sql));
		leat_str_addf(layer, " AS s%zu_%zu", i, feature->sides);
		feature->side[feature->sides++] = e->side[k].suffix;
		layer->failed |= e->side[k].sql->failed;
	}
}

static enum leat_status
emit(struct leat_features *f, size_t i, size_t call, bool fitting, struct leat_str *layer, struct leat_err *err)
{
	struct leat_feature *feature = &f->feature[i];
	const struct leat_feature_call *c = &feature->call[call];
	char value[MAX_VALUE], names[LEAT_MAX_CROSSED][MAX_VALUE];
	const char *columns[LEAT_MAX_CROSSED];
	struct leat_str sql, sides[LEAT_MAX_SIDES];
	struct leat_role_columns role[LEAT_ROLES];
	struct leat_emitting e = {.transform = c->transform,
	                          .feature = feature->name,
	                          .role = role,
	                          .fitting = fitting,
	                          .params = c->params,
	                          .value = value,
	                          .kind = kind_for(c->transform, feature->kind),
	                          .fitted = &c->fitted,
	                          .columns = columns,
	                          .n_columns = feature->inputs,
	                          .sql = &sql};
	enum leat_status status;

	if (!e.kind)
		return refuse_kind(feature, c->transform, err);
	set_value(value, i, feature->kind, e.kind);
	set_roles(f, c, role);
	for (size_t k = 0; k < feature->inputs; k++) {
		snprintf(names[k], MAX_VALUE, "c%zu_%zu", i, k);
		columns[k] = names[k];
	}
	leat_str_init(&sql, f->mem, LEAT_MAX_STATE);
	for (size_t k = 0; k < LEAT_MAX_SIDES; k++) {
		leat_str_init(&sides[k], f->mem, LEAT_MAX_STATE);
		e.side[k].sql = &sides[k];
	}
	e.to = e.kind;
	status = c->transform->emit(&e, err);
	add_sides(f, i, layer);
	if (!e.only_sides) {
		begin_item(layer);
		leat_str_add(layer, leat_str_text(&sql));
		leat_str_addf(layer, " AS v%zu", i);
	}
	add_new_sides(feature, &e, i, layer);
	feature->kind = e.to;
	feature->only_sides = e.only_sides;
	layer->failed |= sql.failed;
	leat_str_free(&sql);
	for (size_t k = 0; k < LEAT_MAX_SIDES; k++)
		leat_str_free(&sides[k]);
	return status;
}

static enum leat_status
add_transforms(struct leat_features *f, size_t call, bool fitting, struct leat_err *err)
{
	struct leat_str *layer = add_layer(f);
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < f->features && status == LEAT_OK; i++) {
		if (call < f->feature[i].calls) {
			status = emit(f, i, call, fitting, layer, err);
			continue;
		}
		add_sides(f, i, layer);
		if (!f->feature[i].only_sides) {
			begin_item(layer);
			leat_str_addf(layer, "v%zu", i);
		}
	}
	add_named(f, fitting, layer);
	return status;
}

/* ---- the result ---- */

/* "ts_sin" may be a feature, too. */
static enum leat_status
check_side_name(const struct leat_features *f, size_t own, const char *name, struct leat_err *err)
{
	for (size_t i = 0; i < f->features; i++)
		if (!strcasecmp(f->feature[i].name, name))
			return leat_fail(
				err, LEAT_INVALID,
				"feature '%s' adds a column '%s', but there is a feature with that name; rename "
				"one",
				f->feature[own].name, name);
	return LEAT_OK;
}

static enum leat_status
add_side(struct leat_features *f, size_t i, size_t side, struct leat_str *layer, struct leat_err *err)
{
	const struct leat_feature *feature = &f->feature[i];
	struct leat_str name;
	enum leat_status status;

	leat_str_init(&name, f->mem, 2 * LEAT_MAX_SPEC);
	leat_str_addf(&name, "%s_%s", feature->name, feature->side[side]);
	status = check_side_name(f, i, leat_str_text(&name), err);
	begin_item(layer);
	leat_str_addf(layer, "s%zu_%zu AS ", i, side);
	leat_sql_quote(layer, leat_str_text(&name), '"');
	layer->failed |= name.failed;
	leat_str_free(&name);
	return status;
}

static enum leat_status
add_last_layer(struct leat_features *f, struct leat_err *err)
{
	struct leat_str *layer = add_layer(f);
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < f->features && status == LEAT_OK; i++) {
		const struct leat_feature *feature = &f->feature[i];

		if (feature->is_kept && f->input[feature->input[0]].absent)
			continue;
		if (!feature->only_sides) {
			begin_item(layer);
			leat_str_addf(layer, "v%zu AS ", i);
			leat_sql_quote(layer, feature->name, '"');
		}
		for (size_t k = 0; k < feature->sides && status == LEAT_OK; k++)
			status = add_side(f, i, k, layer, err);
	}
	if (status == LEAT_OK && !layer->len && !layer->failed)
		status = leat_fail(err, LEAT_INVALID, "the table has none of the columns that are kept");
	return status;
}

/* The innermost FROM. */
static void
add_table(const struct leat_features *f, const char *table, struct leat_str *sql)
{
	if (f->made)
		leat_str_addf(sql, "leat_layer_%zu", f->made);
	else if (f->is_ordered)
		leat_str_addf(sql, "(SELECT *, row_number() OVER () AS " LEAT_ROW " FROM %s) AS t", table);
	else
		leat_str_addf(sql, "%s AS t", table);
	if (!f->made && f->qualify.len)
		leat_str_addf(sql, " QUALIFY %s", leat_str_text(&f->qualify));
}

/* "SELECT b FROM (SELECT a FROM table AS t)" */
static void
add_select(const struct leat_features *f, size_t layers, const char *table, bool split, struct leat_str *sql)
{
	if (layers == f->made)
		leat_str_add(sql, "FROM ");
	for (size_t i = layers; i-- > f->made;) {
		leat_str_addf(sql, "SELECT %s", leat_str_text(&f->layer[i]));
		if (split && i)
			leat_str_add(sql, ", split");
		if (split && !i) {
			leat_str_add(sql, ", ");
			leat_split_sql(&f->split, sql);
			leat_str_add(sql, " AS split");
		}
		leat_str_add(sql, i > f->made ? " FROM (" : " FROM ");
	}
	add_table(f, table, sql);
	for (size_t i = f->made + 1; i < layers; i++)
		leat_str_add(sql, ")");
}

void
leat_features_select(const struct leat_features *f, const char *table, bool split, struct leat_str *sql)
{
	add_select(f, f->layers, table, split, sql);
	if (f->is_ordered) /* the last list is not the first: it has an inner one, which is the last in FROM */
		leat_str_add(sql, " AS u ORDER BY u." LEAT_ROW);
}

/* ---- fitting ---- */

static enum leat_status
fit_call(struct leat_features *f, size_t i, size_t call, const struct leat_fitting *fitting, const char *from,
         struct leat_err *err)
{
	struct leat_feature *feature = &f->feature[i];
	struct leat_feature_call *c = &feature->call[call];
	struct leat_fitting now = *fitting;
	struct leat_role_columns role[LEAT_ROLES];
	char value[MAX_VALUE];
	enum leat_status status;

	now.kind = kind_for(c->transform, feature->kind);
	if (!now.kind)
		return refuse_kind(feature, c->transform, err);
	set_value(value, i, feature->kind, now.kind);
	set_roles(f, c, role);
	now.role = role;
	now.transform = c->transform;
	now.params = c->params;
	now.value = value;
	now.from = from;
	now.fitted = &c->fitted;
	snprintf(c->fitted.dictionary, sizeof(c->fitted.dictionary), "dictionary_%zu_%zu", i, call);
	status = c->transform->fit(&now, err);
	if (status != LEAT_OK)
		leat_err_in(err, "feature '%s', %s", feature->name, c->transform->name);
	return status;
}

/* All transforms that are the `call`-th of their features. */
static enum leat_status
fit_calls(struct leat_features *f, size_t call, const struct leat_fitting *fitting, const char *table,
          struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	struct leat_str from;

	leat_str_init(&from, f->mem, 2 * LEAT_MAX_STATE);
	leat_str_add(&from, "(FROM (");
	add_select(f, f->layers, table, true, &from);
	leat_str_add(&from, ") WHERE split = 'train')");
	if (from.failed)
		status = leat_fail_mem(err, f->mem, from.len, "a query");
	for (size_t i = 0; i < f->features && status == LEAT_OK; i++)
		if (call < f->feature[i].calls && f->feature[i].call[call].transform->fit)
			status = fit_call(f, i, call, fitting, leat_str_text(&from), err);
	leat_str_free(&from);
	return status;
}

static size_t
longest_chain(const struct leat_features *f)
{
	size_t most = 0;

	for (size_t i = 0; i < f->features; i++)
		most = f->feature[i].calls > most ? f->feature[i].calls : most;
	return most;
}

static void
drop_layers(struct leat_features *f)
{
	for (size_t i = 0; i < f->layers; i++)
		leat_str_free(&f->layer[i]);
	f->layers = 0;
}

static bool
reads_groups(const struct leat_features *f, size_t call)
{
	for (size_t i = 0; i < f->features; i++)
		if (call < f->feature[i].calls && f->feature[i].call[call].columns[LEAT_ROLE_ORDER])
			return true;
	return false;
}

/* Keeps all layers so far as a temporary table. */
static enum leat_status
make_layers(struct leat_features *f, const struct leat_fitting *fitting, const char *table, struct leat_err *err)
{
	enum leat_status status;
	struct leat_str sql;

	leat_str_init(&sql, f->mem, 2 * LEAT_MAX_STATE);
	leat_str_addf(&sql, "CREATE TEMP TABLE leat_layer_%zu AS ", f->layers);
	add_select(f, f->layers, table, true, &sql);
	if (f->made)
		leat_str_addf(&sql, "; DROP TABLE leat_layer_%zu", f->made);
	status = sql.failed ? leat_fail_mem(err, f->mem, sql.len, "a query")
	                    : leat_tables_run(fitting->tables, leat_str_text(&sql), err);
	leat_str_free(&sql);
	f->made = f->layers;
	return status;
}

enum leat_status
leat_features_build(struct leat_features *f, const struct leat_fitting *fitting, const char *table,
                    struct leat_err *err)
{
	size_t longest = longest_chain(f);
	enum leat_status status = LEAT_OK;

	drop_layers(f);
	if (!f->layer)
		f->layer = leat_alloc_array(f->mem, longest + 2, sizeof(*f->layer));
	if (!f->layer)
		return leat_fail_mem(err, f->mem, longest * sizeof(*f->layer), "the text of features");
	f->made = 0;
	add_first_layer(f, fitting);
	if (fitting && f->dedupe.by.count)
		status = make_layers(f, fitting, table, err);
	for (size_t call = 0; call < longest && status == LEAT_OK; call++) {
		if (fitting)
			status = fit_calls(f, call, fitting, table, err);
		if (status == LEAT_OK)
			status = add_transforms(f, call, fitting, err);
		if (status == LEAT_OK && fitting && reads_groups(f, call))
			status = make_layers(f, fitting, table, err);
	}
	if (status == LEAT_OK)
		status = add_last_layer(f, err);
	for (size_t i = 0; i < f->layers && status == LEAT_OK; i++)
		if (f->layer[i].failed || f->qualify.failed)
			status = leat_fail_mem(err, f->mem, f->layer[i].len, "the text of features");
	return status;
}

enum leat_status
leat_features_fit(struct leat_features *f, struct leat_tables *tables, const char *table, const char *folder,
                  struct leat_err *err)
{
	const struct leat_fitting fitting = {.tables = tables, .mem = f->mem, .folder = folder};

	snprintf(f->duckdb, sizeof(f->duckdb), "%s", leat_duckdb_version());
	return leat_features_build(f, &fitting, table, err);
}

enum leat_status
leat_features_finish(struct leat_features *f, struct leat_err *err)
{
	return leat_features_build(f, NULL, "", err);
}
