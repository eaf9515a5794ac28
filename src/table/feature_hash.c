/* feature_hash.c - columns by name, and hashes of them: column, hash, cross
 *
 * Hashes are of MD5, not of DuckDB's hash(), which may differ between versions. Like those of vocab, the numbers 0 and
 * 1 mean padding and missing. */
#include "table/transform.h"

void
leat_sql_add_bucket(struct leat_str *sql, const char *text, int64_t buckets)
{
	leat_str_addf(sql, "CAST('0x' || left(md5(%s), 15) AS BIGINT) %% %lld", text, (long long)buckets);
}

/* ---- column ---- */

struct column {
	const char *name;
};

static const struct leat_opt column_options[] = {
	LEAT_STRING(struct column, name, LEAT_REQUIRED, "name of a column of the table"),
	LEAT_OPT_END,
};

static void
column_inputs(const void *params, const char *const **names, size_t *count)
{
	const struct column *column = params;

	*names = &column->name;
	*count = 1;
}

static enum leat_status
emit_column(struct leat_emitting *e, struct leat_err *err)
{
	(void)err;
	leat_str_add(e->sql, e->value);
	return LEAT_OK;
}

const struct leat_transform leat_transform_column = {
	.name = "column",
	.doc = "Start with this column; without it, a feature starts with the column that has its name.",
	.version = 1,
	.opts = column_options,
	.params_size = sizeof(struct column),
	.accepts = LEAT_VALUE_NUMBER | LEAT_VALUE_WHOLE | LEAT_VALUE_TEXT | LEAT_VALUE_TIME | LEAT_VALUE_OTHER |
                   LEAT_VALUE_LIST | LEAT_VALUE_IDS,
	.first = true,
	.inputs = column_inputs,
	.emit = emit_column,
};

/* ---- hash ---- */

struct hash {
	int64_t buckets;
};

static const struct leat_opt hash_options[] = {
	LEAT_INT(struct hash, buckets, LEAT_REQUIRED, 1, 1e15, "number of buckets"),
	LEAT_OPT_END,
};

static enum leat_status
emit_hash(struct leat_emitting *e, struct leat_err *err)
{
	const struct hash *hash = e->params;

	(void)err;
	if (e->kind == LEAT_VALUE_LIST) {
		leat_str_addf(e->sql, "coalesce(list_transform(%s, lambda x: coalesce(2 + ", e->value);
		leat_sql_add_bucket(e->sql, "x", hash->buckets);
		leat_str_add(e->sql, ", 1)), [CAST(1 AS BIGINT)])");
		e->to = LEAT_VALUE_IDS;
		return LEAT_OK;
	}
	leat_str_add(e->sql, "coalesce(2 + ");
	leat_sql_add_bucket(e->sql, e->value, hash->buckets);
	leat_str_add(e->sql, ", 1)");
	e->to = LEAT_VALUE_WHOLE;
	return LEAT_OK;
}

const struct leat_transform leat_transform_hash = {
	.name = "hash",
	.doc = "Number of a bucket chosen by the value's hash: 0 is left for padding, 1 is missing, buckets follow "
	       "from 2. Of a list, each item.",
	.version = 1,
	.opts = hash_options,
	.params_size = sizeof(struct hash),
	.accepts = LEAT_VALUE_TEXT | LEAT_VALUE_LIST,
	.emit = emit_hash,
};

/* ---- cross ---- */

struct cross {
	struct leat_strings columns;
	int64_t buckets;
};

static const struct leat_opt cross_options[] = {
	LEAT_STRINGS(struct cross, columns, LEAT_REQUIRED, "columns of the table, at least two", 0),
	LEAT_OPT_(struct cross, buckets, LEAT_OPT_INT, LEAT_REQUIRED, 1, 1e15, NULL, "number of buckets",
                  LEAT_OPT_NAMED),
	LEAT_OPT_END,
};

static enum leat_status
check_cross(const void *params, struct leat_err *err)
{
	const struct cross *cross = params;

	if (cross->columns.count < 2 || cross->columns.count > LEAT_MAX_CROSSED)
		return leat_fail(err, LEAT_SPEC, "'cross' takes 2 to %d columns, not %zu", LEAT_MAX_CROSSED,
		                 cross->columns.count);
	return LEAT_OK;
}

static void
cross_inputs(const void *params, const char *const **names, size_t *count)
{
	const struct cross *cross = params;

	*names = cross->columns.value;
	*count = cross->columns.count;
}

void
leat_sql_add_joined(struct leat_str *sql, const char *const *texts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		leat_str_addf(sql, "%slength(%s) || ':' || %s", i ? " || " : "", texts[i], texts[i]);
}

static enum leat_status
emit_cross(struct leat_emitting *e, struct leat_err *err)
{
	const struct cross *cross = e->params;
	struct leat_str text;

	(void)err;
	leat_str_init(&text, e->sql->mem, SIZE_MAX / 4);
	leat_sql_add_joined(&text, e->columns, e->n_columns);
	leat_str_add(e->sql, "coalesce(2 + ");
	leat_sql_add_bucket(e->sql, leat_str_text(&text), cross->buckets);
	leat_str_add(e->sql, ", 1)");
	e->to = LEAT_VALUE_WHOLE;
	e->sql->failed |= text.failed;
	leat_str_free(&text);
	return LEAT_OK;
}

const struct leat_transform leat_transform_cross = {
	.name = "cross",
	.doc = "Number of a bucket chosen by the hash of several columns together; 1 if one of them is missing.",
	.version = 1,
	.opts = cross_options,
	.params_size = sizeof(struct cross),
	.accepts = LEAT_VALUE_TEXT,
	.first = true,
	.check = check_cross,
	.inputs = cross_inputs,
	.emit = emit_cross,
};
