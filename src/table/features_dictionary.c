/* features_dictionary.c - make the dictionaries of features known to a database
 *
 * A dictionary is a Parquet file with the columns id, value and count, ids from 0; that of target has a column mean,
 * too. Here it becomes an ENUM type of its name, whose casts look values up, and a variable of its name, a list of the
 * counts or means. */
#include "table/features.h"

enum leat_status
leat_dictionary_open(struct leat_tables *tables, struct leat_mem *mem, const char *folder,
                     const struct leat_fitted *fitted, const char *lookup, struct leat_err *err)
{
	const char *name = fitted->dictionary;
	struct leat_str sql, path, rows;
	enum leat_status status;

	if (fitted->entries <= 0)
		return LEAT_OK;
	leat_str_init(&sql, mem, SIZE_MAX / 4);
	leat_str_init(&path, mem, SIZE_MAX / 4);
	leat_str_init(&rows, mem, SIZE_MAX / 4);
	leat_str_addf(&path, "%s/%s.parquet", folder, name);
	leat_str_add(&rows, "read_parquet(");
	leat_sql_quote(&rows, leat_str_text(&path), '\'');
	leat_str_add(&rows, ")");
	leat_str_addf(&sql,
	              "CREATE TYPE \"%s\" AS ENUM (SELECT CAST(value AS VARCHAR) FROM %s ORDER BY id);"
	              "SET VARIABLE %s = (SELECT list(CAST(%s AS %s) ORDER BY id) FROM %s)",
	              name, leat_str_text(&rows), name, lookup ? lookup : "count", lookup ? "DOUBLE" : "BIGINT",
	              leat_str_text(&rows));
	status = sql.failed || path.failed || rows.failed ? leat_fail_mem(err, mem, sql.len, "a query")
	                                                  : leat_tables_run(tables, leat_str_text(&sql), err);
	leat_str_free(&sql);
	leat_str_free(&path);
	leat_str_free(&rows);
	return status;
}

enum leat_status
leat_features_attach(struct leat_features *f, struct leat_tables *tables, const char *table, const char *folder,
                     struct leat_err *err)
{
	enum leat_status status = leat_features_find_columns(f, tables, table, false, err);

	for (size_t i = 0; i < f->features && status == LEAT_OK; i++)
		for (size_t k = 0; k < f->feature[i].calls && status == LEAT_OK; k++) {
			const struct leat_feature_call *call = &f->feature[i].call[k];

			status = leat_dictionary_open(tables, f->mem, folder, &call->fitted, call->transform->lookup,
			                              err);
			if (status != LEAT_OK)
				leat_err_in(err, "the dictionary of feature '%s'", f->feature[i].name);
		}
	return status == LEAT_OK ? leat_features_build(f, NULL, table, err) : status;
}
