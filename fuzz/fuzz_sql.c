/* fuzz_sql.c - any text is a query or refused with a reason; the normal form is a query with the same tokens and
 * tables, and is its own normal form */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table/sql.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "fuzz_sql: %s\n", what);
	abort();
}

/* But for semicolons at the end, which the normal form has not. */
static void
same_tokens(const struct leat_sql_tokens *a, const struct leat_sql_tokens *b)
{
	must(b->count <= a->count, "the normal form has more tokens");
	for (size_t i = 0; i < b->count; i++)
		must(a->token[i].kind == b->token[i].kind && a->token[i].len == b->token[i].len &&
		             memcmp(a->token[i].at, b->token[i].at, a->token[i].len) == 0,
		     "the normal form has other tokens");
	for (size_t i = b->count; i < a->count; i++)
		must(*a->token[i].at == ';', "the normal form lacks tokens");
}

static void
check_query(const struct leat_sql *sql, const char *text, size_t size, struct leat_mem *mem)
{
	struct leat_sql_tokens was = {.mem = mem}, now = {.mem = mem};
	struct leat_sql again = {0};
	size_t len = strlen(sql->text);

	must(len <= LEAT_SQL_BYTES, "the normal form is too long");
	must(leat_sql_split(&was, text, size, NULL) == LEAT_OK && leat_sql_split(&now, sql->text, len, NULL) == LEAT_OK,
	     "the normal form has no tokens");
	same_tokens(&was, &now);
	must(leat_sql_read(&again, mem, sql->text, len, NULL) == LEAT_OK, "the normal form is refused");
	must(strcmp(again.text, sql->text) == 0, "the normal form has another one");
	must(again.tables == sql->tables && !again.file == !sql->file, "the normal form reads something else");
	for (size_t i = 0; i < sql->tables; i++)
		must(strcmp(again.table[i].name, sql->table[i].name) == 0 &&
		             again.table[i].is_with == sql->table[i].is_with,
		     "the normal form reads other tables");
	leat_sql_free(&again);
	leat_free(mem, was.token);
	leat_free(mem, now.token);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct leat_sql sql = {0};
	struct leat_err err;
	struct leat_mem mem;

	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	if (leat_sql_read(&sql, &mem, (const char *)data, size, &err) == LEAT_OK)
		check_query(&sql, (const char *)data, size, &mem);
	else
		must(err.status != LEAT_OK && err.text[0], "refused without a reason");
	leat_sql_free(&sql);
	must(mem.used == 0, "memory is left over");
	return 0;
}
