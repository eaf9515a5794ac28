/* sql.h - the text of a query: tokens, a normal form without comments, and the tables it names
 *
 * DuckDB understands SQL; this only has to agree with it on where tokens begin and end. The normal form is a function
 * of the tokens alone, so comments, white space and line breaks change neither it nor a key that holds it. Names and
 * keywords keep their case: the names of columns come from them. What is run is the normal form, so if it ever meant
 * something else than what was written, it would do so every time.
 *
 * The text is hostile: every length is checked, and nesting is limited. Any thread. */
#ifndef LEAT_TABLE_SQL_H
#define LEAT_TABLE_SQL_H

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum { LEAT_SQL_BYTES = 64 * 1024 }; /* of the normal form: it is an argument of a command */

struct leat_sql_table {
	char *name;   /* without quotes; "schema.table" if it has a schema */
	size_t line;  /* where it is read first, from 1 */
	bool is_with; /* a name that WITH defines, at least somewhere in the query */
	bool is_qualified;
};

struct leat_sql {
	struct leat_mem *mem;
	char *text; /* the normal form */
	struct leat_sql_table *table;
	size_t tables, cap;
	char *file; /* what it reads besides tables, such as "read_csv" or "'x.parquet'"; NULL: nothing */
	size_t file_line;
};

/* One query: LEAT_INVALID if it does not begin as a SELECT does, if there is more than one statement, or if a quote or
 * bracket has no end. Zero the struct first; free it even after a failure. */
enum leat_status leat_sql_read(struct leat_sql *sql, struct leat_mem *mem, const char *text, size_t len,
                               struct leat_err *err);
void leat_sql_free(struct leat_sql *sql);

/* ---- for sql*.c and tests ---- */

enum leat_sql_kind {
	LEAT_SQL_NAME,     /* a keyword or a name */
	LEAT_SQL_QUOTED,   /* "a name" */
	LEAT_SQL_TEXT,     /* 'text', E'text', $$text$$ */
	LEAT_SQL_NUMBER,   /* 1, 1.5e3, 0xff, 1_000 */
	LEAT_SQL_OPERATOR, /* +, ->>, :: and all punctuation */
};

struct leat_sql_token {
	enum leat_sql_kind kind;
	const char *at;
	size_t len, line;
};

struct leat_sql_tokens {
	struct leat_mem *mem;
	struct leat_sql_token *token;
	size_t count, cap;
};

/* Tokens point into `text`. */
enum leat_status leat_sql_split(struct leat_sql_tokens *tokens, const char *text, size_t len, struct leat_err *err);
/* Is it this keyword (upper case) or operator? False for i >= count. */
bool leat_sql_is(const struct leat_sql_tokens *tokens, size_t i, const char *word);
bool leat_sql_is_one_of(const struct leat_sql_tokens *tokens, size_t i, const char *const *words);
void leat_sql_write(const struct leat_sql_tokens *tokens, struct leat_str *out);
enum leat_status leat_sql_find_tables(struct leat_sql *sql, const struct leat_sql_tokens *tokens, struct leat_err *err);

#endif
