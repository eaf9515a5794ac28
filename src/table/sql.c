/* sql.c - a query: one statement, its normal form, and the tables it names; see sql.h
 *
 * Tables are found by where they stand: after FROM, JOIN, and commas of a FROM clause. Each bracket has a frame that
 * says whether a query is inside it, so that extract(year FROM t) reads no table. */
#include "table/sql.h"

#include <string.h>

#include "base/array.h"

enum { MAX_DEPTH = 500 };

struct frame {
	bool is_query; /* FROM and JOIN in it name tables */
	bool in_from;  /* commas separate tables */
	bool expects;  /* a table comes next */
};

struct finder {
	struct leat_sql *sql;
	const struct leat_sql_tokens *tokens;
	struct frame frame[MAX_DEPTH];
	size_t depth;
	struct leat_err *err;
};

/* ---- names ---- */

/* Without its quotes. */
static char *
name_of(struct leat_mem *mem, const struct leat_sql_token *token)
{
	char *name = leat_strndup(mem, token->at, token->len), *to = name;

	if (!name || token->kind != LEAT_SQL_QUOTED)
		return name;
	for (const char *from = token->at + 1; from < token->at + token->len - 1; from++) {
		*to++ = *from;
		from += *from == '"';
	}
	*to = '\0';
	return name;
}

static struct leat_sql_table *
find_table(struct leat_sql *sql, const char *name)
{
	for (size_t i = 0; i < sql->tables; i++)
		if (!strcasecmp(sql->table[i].name, name))
			return &sql->table[i];
	return NULL;
}

/* Takes `name`. */
static enum leat_status
add_table(struct finder *f, char *name, bool is_qualified, size_t line)
{
	struct leat_sql *sql = f->sql;
	enum leat_status status = LEAT_OK;

	if (!name)
		return leat_fail_mem(f->err, sql->mem, 64, "the name of a table");
	if (find_table(sql, name)) {
		leat_free(sql->mem, name);
		return LEAT_OK;
	}
	status = LEAT_GROW(sql->mem, sql->table, sql->cap, sql->tables + 1, 1000, "the tables of a query", f->err);
	if (status == LEAT_OK)
		sql->table[sql->tables++] =
			(struct leat_sql_table){.name = name, .line = line, .is_qualified = is_qualified};
	else
		leat_free(sql->mem, name);
	return status;
}

/* Functions that read files, or tables that are not named as such. */
static bool
reads_elsewhere(const char *function)
{
	static const char *const begins[] = {"read_", "parquet_", "duckdb_", "pragma_", NULL};
	static const char *const names[] = {"glob",         "sniff_csv",   "query",
	                                    "query_table",  "sqlite_scan", "delta_scan",
	                                    "arrow_scan",   "pandas_scan", "json_execute_serialized_sql",
	                                    "seq_scan",     "st_read",     "which_secret",
	                                    "iceberg_scan", NULL};

	for (size_t i = 0; begins[i]; i++)
		if (!strncasecmp(function, begins[i], strlen(begins[i])))
			return true;
	for (size_t i = 0; names[i]; i++)
		if (!strcasecmp(function, names[i]))
			return true;
	return false;
}

static enum leat_status
note_file(struct finder *f, const char *text, size_t len, size_t line)
{
	struct leat_sql *sql = f->sql;

	if (sql->file)
		return LEAT_OK;
	sql->file = leat_strndup(sql->mem, text, len);
	sql->file_line = line;
	return sql->file ? LEAT_OK : leat_fail_mem(f->err, sql->mem, len, "the name of a file");
}

/* ---- tables ---- */

static bool
is_name(const struct leat_sql_tokens *tokens, size_t i)
{
	return i < tokens->count &&
	       (tokens->token[i].kind == LEAT_SQL_NAME || tokens->token[i].kind == LEAT_SQL_QUOTED);
}

static char *
join_names(struct leat_mem *mem, char *first, char *second)
{
	char *both = first && second ? leat_asprintf(mem, "%s.%s", first, second) : NULL;

	leat_free(mem, first);
	leat_free(mem, second);
	return both;
}

/* A table, or a function that gives one; moves *i to its last token. */
static enum leat_status
take_table(struct finder *f, size_t *i)
{
	const struct leat_sql_tokens *tokens = f->tokens;
	size_t line = tokens->token[*i].line;
	char *name = name_of(f->sql->mem, &tokens->token[*i]);
	bool is_qualified = false;
	enum leat_status status = LEAT_OK;

	while (name && leat_sql_is(tokens, *i + 1, ".") && is_name(tokens, *i + 2)) {
		*i += 2;
		is_qualified = true;
		name = join_names(f->sql->mem, name, name_of(f->sql->mem, &tokens->token[*i]));
	}
	if (!leat_sql_is(tokens, *i + 1, "("))
		return add_table(f, name, is_qualified, line);
	if (!name)
		return leat_fail_mem(f->err, f->sql->mem, 64, "the name of a table");
	if (reads_elsewhere(is_qualified ? strrchr(name, '.') + 1 : name))
		status = note_file(f, name, strlen(name), line);
	leat_free(f->sql->mem, name);
	return status;
}

/* Is it the first token of its brackets, or of all? */
static bool
is_first(const struct leat_sql_tokens *tokens, size_t i)
{
	return i == 0 || leat_sql_is(tokens, i - 1, "(");
}

static bool
begins_query(const struct leat_sql_tokens *tokens, size_t i)
{
	static const char *const words[] = {"SELECT", "WITH",    "FROM",      "VALUES", "TABLE", "DESCRIBE",
	                                    "SHOW",   "UNPIVOT", "SUMMARIZE", "PIVOT",  NULL};

	return leat_sql_is_one_of(tokens, i, words);
}

static enum leat_status
open_frame(struct finder *f, size_t i)
{
	struct frame *outer = &f->frame[f->depth], *inner = outer + 1;
	bool call = i > 0 && is_name(f->tokens, i - 1) && !outer->expects;

	if (f->depth + 1 == MAX_DEPTH)
		return leat_fail(f->err, LEAT_LIMIT, "line %zu: more than %d brackets inside each other",
		                 f->tokens->token[i].line, MAX_DEPTH - 1);
	*inner = (struct frame){.is_query = begins_query(f->tokens, i + 1) || outer->expects ||
	                                    (!call && leat_sql_is(f->tokens, i + 1, "(")),
	                        .in_from = outer->expects,
	                        .expects = outer->expects};
	outer->expects = false;
	f->depth++;
	return LEAT_OK;
}

/* IS [NOT] DISTINCT FROM compares. */
static bool
is_comparison(const struct leat_sql_tokens *tokens, size_t i)
{
	return i > 1 && leat_sql_is(tokens, i - 1, "DISTINCT") &&
	       (leat_sql_is(tokens, i - 2, "IS") || leat_sql_is(tokens, i - 2, "NOT"));
}

static enum leat_status
take_word(struct finder *f, size_t *i)
{
	static const char *const ends[] = {"WHERE",     "GROUP",  "HAVING", "WINDOW", "QUALIFY",
	                                   "ORDER",     "LIMIT",  "OFFSET", "UNION",  "EXCEPT",
	                                   "INTERSECT", "SELECT", "VALUES", "WITH",   NULL};
	static const char *const first[] = {"TABLE", "DESCRIBE", "SHOW", "SUMMARIZE", "PIVOT", "UNPIVOT", NULL};
	struct frame *frame = &f->frame[f->depth];

	if (!frame->is_query)
		return LEAT_OK;
	if (leat_sql_is(f->tokens, *i, "JOIN") ||
	    (leat_sql_is(f->tokens, *i, "FROM") && !is_comparison(f->tokens, *i)) ||
	    (is_first(f->tokens, *i) && leat_sql_is_one_of(f->tokens, *i, first)))
		frame->in_from = frame->expects = true;
	else if (leat_sql_is_one_of(f->tokens, *i, ends))
		frame->in_from = frame->expects = false;
	else if (frame->expects && !leat_sql_is(f->tokens, *i, "LATERAL")) {
		frame->expects = false;
		return take_table(f, i);
	}
	return LEAT_OK;
}

static enum leat_status
take_token(struct finder *f, size_t *i)
{
	const struct leat_sql_token *token = &f->tokens->token[*i];
	struct frame *frame = &f->frame[f->depth];

	if (token->kind == LEAT_SQL_NAME)
		return take_word(f, i);
	if (token->kind == LEAT_SQL_OPERATOR && leat_sql_is(f->tokens, *i, "("))
		return open_frame(f, *i);
	if (token->kind == LEAT_SQL_OPERATOR && leat_sql_is(f->tokens, *i, ")"))
		f->depth -= f->depth > 0;
	else if (token->kind == LEAT_SQL_OPERATOR && leat_sql_is(f->tokens, *i, ","))
		frame->expects = frame->is_query && frame->in_from;
	else if (frame->expects && token->kind == LEAT_SQL_QUOTED) {
		frame->expects = false;
		return take_table(f, i);
	} else if (frame->expects && token->kind == LEAT_SQL_TEXT) {
		frame->expects = false;
		return note_file(f, token->at, token->len, token->line);
	}
	return LEAT_OK;
}

/* The token after the bracket that closes the one at i. */
static size_t
skip_brackets(const struct leat_sql_tokens *tokens, size_t i)
{
	size_t depth = 0;

	for (; i < tokens->count; i++) {
		if (leat_sql_is(tokens, i, "("))
			depth++;
		else if (leat_sql_is(tokens, i, ")") && --depth == 0)
			return i + 1;
	}
	return i;
}

/* WITH name (columns) AS MATERIALIZED ( */
static bool
is_definition(const struct leat_sql_tokens *tokens, size_t i)
{
	if (!is_name(tokens, i) || i == 0 ||
	    !(leat_sql_is(tokens, i - 1, "WITH") || leat_sql_is(tokens, i - 1, "RECURSIVE") ||
	      leat_sql_is(tokens, i - 1, ",")))
		return false;
	i++;
	if (leat_sql_is(tokens, i, "("))
		i = skip_brackets(tokens, i);
	if (!leat_sql_is(tokens, i++, "AS"))
		return false;
	i += leat_sql_is(tokens, i, "NOT");
	i += leat_sql_is(tokens, i, "MATERIALIZED");
	return leat_sql_is(tokens, i, "(");
}

static enum leat_status
mark_definitions(struct finder *f)
{
	for (size_t i = 0; i < f->tokens->count; i++) {
		struct leat_sql_table *table;
		char *name;

		if (!is_definition(f->tokens, i))
			continue;
		name = name_of(f->sql->mem, &f->tokens->token[i]);
		if (!name)
			return leat_fail_mem(f->err, f->sql->mem, 64, "the name of a table");
		table = find_table(f->sql, name);
		if (table)
			table->is_with = true;
		leat_free(f->sql->mem, name);
	}
	return LEAT_OK;
}

enum leat_status
leat_sql_find_tables(struct leat_sql *sql, const struct leat_sql_tokens *tokens, struct leat_err *err)
{
	struct finder f = {.sql = sql, .tokens = tokens, .frame = {{.is_query = true}}, .err = err};
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < tokens->count && status == LEAT_OK; i++)
		status = take_token(&f, &i);
	return status == LEAT_OK ? mark_definitions(&f) : status;
}

/* ---- one query ---- */

/* Brackets of all kinds have their pairs, and two texts are never side by side: across lines they would be one. */
static enum leat_status
check_tokens(const struct leat_sql_tokens *tokens, struct leat_err *err)
{
	char open[MAX_DEPTH];
	size_t depth = 0;

	for (size_t i = 0; i < tokens->count; i++) {
		const struct leat_sql_token *token = &tokens->token[i];
		char c = token->kind == LEAT_SQL_OPERATOR && token->len == 1 ? *token->at : '\0';

		if (c == ';')
			return leat_fail(err, LEAT_INVALID,
			                 "line %zu: one query only; there is more after the semicolon", token->line);
		if (i > 0 && token->kind == LEAT_SQL_TEXT && tokens->token[i - 1].kind == LEAT_SQL_TEXT)
			return leat_fail(err, LEAT_INVALID, "line %zu: two texts side by side; write || between them",
			                 token->line);
		if (c == '(' || c == '[' || c == '{') {
			if (depth == MAX_DEPTH)
				return leat_fail(err, LEAT_LIMIT, "line %zu: more than %d brackets inside each other",
				                 token->line, MAX_DEPTH);
			open[depth++] = c == '(' ? ')' : c == '[' ? ']' : '}';
		} else if (c == ')' || c == ']' || c == '}') {
			if (!depth || open[--depth] != c)
				return leat_fail(err, LEAT_INVALID, "line %zu: '%c' has no opening bracket",
				                 token->line, c);
		}
	}
	return depth ? leat_fail(err, LEAT_INVALID, "a bracket is never closed; '%c' is missing", open[depth - 1])
	             : LEAT_OK;
}

static enum leat_status
check_query(struct leat_sql_tokens *tokens, struct leat_err *err)
{
	static const char *const begins[] = {"SELECT",   "WITH",      "FROM", "VALUES", "TABLE",
	                                     "DESCRIBE", "SUMMARIZE", "(",    NULL};

	while (tokens->count && leat_sql_is(tokens, tokens->count - 1, ";"))
		tokens->count--;
	if (!tokens->count)
		return leat_fail(err, LEAT_INVALID, "the query is empty");
	if (!leat_sql_is_one_of(tokens, 0, begins))
		return leat_fail(err, LEAT_INVALID, "line %zu: expected a SELECT, but the query begins with %.*s",
		                 tokens->token[0].line, (int)(tokens->token[0].len < 40 ? tokens->token[0].len : 40),
		                 tokens->token[0].at);
	return check_tokens(tokens, err);
}

static enum leat_status
write_text(struct leat_sql *sql, const struct leat_sql_tokens *tokens, struct leat_err *err)
{
	struct leat_str text;
	size_t len = 0;

	leat_str_init(&text, sql->mem, LEAT_SQL_BYTES);
	leat_sql_write(tokens, &text);
	sql->text = leat_str_take(&text);
	leat_str_free(&text);
	if (sql->text)
		return LEAT_OK;
	for (size_t i = 0; i < tokens->count; i++)
		len += tokens->token[i].len + 3; /* and what is between two */
	if (len <= LEAT_SQL_BYTES)
		return leat_fail_mem(err, sql->mem, len, "a query");
	return leat_fail(err, LEAT_LIMIT, "the query has more than %d KiB; make it two steps", LEAT_SQL_BYTES / 1024);
}

enum leat_status
leat_sql_read(struct leat_sql *sql, struct leat_mem *mem, const char *text, size_t len, struct leat_err *err)
{
	struct leat_sql_tokens tokens = {.mem = mem};
	enum leat_status status = leat_sql_split(&tokens, text, len, err);

	sql->mem = mem;
	if (status == LEAT_OK)
		status = check_query(&tokens, err);
	if (status == LEAT_OK)
		status = write_text(sql, &tokens, err);
	if (status == LEAT_OK)
		status = leat_sql_find_tables(sql, &tokens, err);
	leat_free(mem, tokens.token);
	return status;
}

void
leat_sql_free(struct leat_sql *sql)
{
	if (!sql->mem)
		return;
	for (size_t i = 0; i < sql->tables; i++)
		leat_free(sql->mem, sql->table[i].name);
	leat_free(sql->mem, sql->table);
	leat_free(sql->mem, sql->text);
	leat_free(sql->mem, sql->file);
	*sql = (struct leat_sql){0};
}
