/* sql_write.c - the normal form of a query; see sql.h
 *
 * Meant to be read in `leat why`, where it is compared line by line: clauses and columns of the outermost SELECT have
 * lines of their own. */
#include <string.h>

#include "table/sql.h"

static bool
is_mark(const struct leat_sql_tokens *tokens, size_t i, const char *marks)
{
	const struct leat_sql_token *token = i < tokens->count ? &tokens->token[i] : NULL;

	return token && token->kind == LEAT_SQL_OPERATOR && token->len == 1 && strchr(marks, *token->at);
}

static bool
begins_clause(const struct leat_sql_tokens *tokens, size_t i)
{
	static const char *const clauses[] = {"SELECT", "FROM",  "WHERE", "GROUP",     "HAVING", "QUALIFY", "WINDOW",
	                                      "ORDER",  "LIMIT", "UNION", "INTERSECT", "EXCEPT", "VALUES",  NULL};
	static const char *const joins[] = {"LEFT", "RIGHT", "FULL", "INNER", "CROSS",      "NATURAL", "ASOF",
	                                    "SEMI", "ANTI",  "JOIN", "OUTER", "POSITIONAL", NULL};

	if (leat_sql_is_one_of(tokens, i, joins))
		return !leat_sql_is_one_of(tokens, i - 1, joins);
	return leat_sql_is_one_of(tokens, i, clauses);
}

/* f(x), but IN (x): a name before a bracket is a function, unless it is one of the keywords that often are. */
static bool
is_call(const struct leat_sql_tokens *tokens, size_t i)
{
	static const char *const keywords[] = {
		"IN",     "AS",      "FROM",  "SELECT", "WHERE", "AND",  "OR",      "ON",    "OVER", "NOT",
		"VALUES", "EXISTS",  "USING", "HAVING", "WHEN",  "THEN", "ELSE",    "CASE",  "JOIN", "UNION",
		"ALL",    "LATERAL", "BY",    "FILTER", "ANY",   "LIKE", "BETWEEN", "LIMIT", NULL};

	return tokens->token[i].kind == LEAT_SQL_QUOTED ||
	       (tokens->token[i].kind == LEAT_SQL_NAME && !leat_sql_is_one_of(tokens, i, keywords));
}

static bool
is_name(const struct leat_sql_tokens *tokens, size_t i)
{
	return i < tokens->count &&
	       (tokens->token[i].kind == LEAT_SQL_NAME || tokens->token[i].kind == LEAT_SQL_QUOTED);
}

/* May tokens i - 1 and i touch? Only where they cannot be taken for one token. */
static bool
may_touch(const struct leat_sql_tokens *tokens, size_t i)
{
	if (is_mark(tokens, i, ",)]") || is_mark(tokens, i - 1, "(["))
		return true;
	if (is_mark(tokens, i, "("))
		return is_call(tokens, i - 1);
	if (is_mark(tokens, i, "["))
		return is_name(tokens, i - 1);
	if (is_mark(tokens, i, "."))
		return is_name(tokens, i - 1);
	if (is_mark(tokens, i - 1, "."))
		return is_name(tokens, i) || is_mark(tokens, i, "*");
	if (is_mark(tokens, i - 1, "#$"))
		return tokens->token[i].kind == LEAT_SQL_NUMBER;
	return leat_sql_is(tokens, i, "::") || leat_sql_is(tokens, i - 1, "::");
}

void
leat_sql_write(const struct leat_sql_tokens *tokens, struct leat_str *out)
{
	size_t depth = 0;

	for (size_t i = 0; i < tokens->count; i++) {
		const char *between = " ";

		if (is_mark(tokens, i, ")]}") && depth)
			depth--;
		if (i == 0 || may_touch(tokens, i))
			between = "";
		else if (depth == 0 && is_mark(tokens, i - 1, ","))
			between = "\n  ";
		else if (depth == 0 && begins_clause(tokens, i))
			between = "\n";
		leat_str_add(out, between);
		leat_str_addn(out, tokens->token[i].at, tokens->token[i].len);
		if (is_mark(tokens, i, "([{"))
			depth++;
	}
}
