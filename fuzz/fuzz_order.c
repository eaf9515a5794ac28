/* fuzz_order.c - orders and results, which come from other machines. What is accepted is written as it was read. */
#include <stdlib.h>
#include <string.h>

#include "step/runner.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len);

static void
read_order(struct leat_mem *mem, const char *text, size_t len)
{
	struct leat_order order, again;
	struct leat_str first, second;

	if (leat_order_read(&order, mem, text, len, NULL) != LEAT_OK)
		return;
	leat_str_init(&first, mem, SIZE_MAX);
	leat_str_init(&second, mem, SIZE_MAX);
	leat_order_write(&order, &first);
	if (leat_order_read(&again, mem, leat_str_text(&first), first.len, NULL) != LEAT_OK)
		abort();
	leat_order_write(&again, &second);
	if (strcmp(leat_str_text(&first), leat_str_text(&second)) != 0)
		abort();
	leat_order_free(&order);
	leat_order_free(&again);
	leat_str_free(&first);
	leat_str_free(&second);
}

static void
read_result(struct leat_mem *mem, const char *text, size_t len)
{
	struct leat_ran ran, again;
	struct leat_str json;

	leat_str_init(&json, mem, SIZE_MAX);
	if (leat_ran_read(&ran, mem, text, len, NULL) == LEAT_OK) {
		leat_ran_write(&ran, &json);
		if (leat_ran_read(&again, mem, leat_str_text(&json), json.len, NULL) != LEAT_OK)
			abort();
		leat_ran_end(&again, mem);
	}
	leat_ran_end(&ran, mem);
	leat_str_free(&json);
}

/* The first byte says which of the two follows. */
int
LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
	struct leat_mem mem;

	if (len == 0)
		return 0;
	leat_mem_init(&mem, SIZE_MAX);
	(data[0] & 1 ? read_order : read_result)(&mem, (const char *)data + 1, len - 1);
	if (atomic_load(&mem.used) != 0)
		abort();
	return 0;
}
