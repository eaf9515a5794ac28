/* fuzz_checks.c - any text is a check or refused with a reason; what was accepted prints as text that reads back the
 * same
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table/checks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(int truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "fuzz_checks: %s\n", what);
	abort();
}

static void
reads_back(const struct leat_check *check, struct leat_mem *mem)
{
	struct leat_checks again;
	struct leat_err err;

	leat_err_clear(&err);
	leat_checks_init(&again, mem);
	must(check->name && *check->name, "a check without a name");
	if (leat_checks_add_line(&again, check->name, &err) != LEAT_OK) {
		/* Quotes may make it longer than what is read. */
		must(strlen(check->name) > LEAT_CHECK_BYTES, "what it prints is no check");
	} else {
		must(again.check[0].kind == check->kind && strcmp(again.check[0].name, check->name) == 0,
		     "what it prints is another check");
	}
	leat_checks_free(&again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct leat_checks checks;
	struct leat_err err;
	struct leat_mem mem;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	leat_mem_init(&mem, SIZE_MAX);
	leat_checks_init(&checks, &mem);
	leat_err_clear(&err);
	if (leat_checks_add_line(&checks, text, &err) != LEAT_OK)
		must(err.status == LEAT_SPEC && err.text[0], "refused without a reason");
	leat_err_clear(&err);
	if (leat_checks_add(&checks, text, "not null", &err) != LEAT_OK)
		must(err.status == LEAT_SPEC && err.text[0], "refused without a reason");
	leat_err_clear(&err);
	if (leat_checks_set_action(&checks, text, &err) != LEAT_OK)
		must(err.status == LEAT_SPEC && err.text[0], "refused without a reason");
	for (size_t i = 0; i < checks.count; i++)
		reads_back(&checks.check[i], &mem);
	leat_checks_free(&checks);
	must(mem.used == 0, "memory is left over");
	free(text);
	return 0;
}
