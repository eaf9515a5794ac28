/* fuzz_features.c - any text is a state of features or is refused with a reason, and what was loaded is saved alike
 *
 * The first byte says what the rest is: 'c', columns; 's', a split; else a state. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "table/features.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

/* What was saved loads, and is saved as the same text. */
static void
save(const struct leat_features *features, struct leat_mem *mem)
{
	struct leat_features *again = NULL;
	struct leat_str once, twice;

	leat_str_init(&once, mem, SIZE_MAX);
	leat_str_init(&twice, mem, SIZE_MAX);
	leat_features_save(features, &once);
	must(!once.failed && leat_features_load(&again, mem, once.text, once.len, NULL) == LEAT_OK);
	leat_features_save(again, &twice);
	must(!strcmp(once.text, twice.text));
	leat_features_close(again);
	leat_str_free(&once);
	leat_str_free(&twice);
}

/* The normal form is one. */
static void
print(const struct leat_features *features, struct leat_mem *mem)
{
	struct leat_features *again = NULL;
	struct leat_str columns, split, twice;

	leat_str_init(&columns, mem, SIZE_MAX);
	leat_str_init(&split, mem, SIZE_MAX);
	leat_str_init(&twice, mem, SIZE_MAX);
	leat_features_print(features, &columns);
	leat_split_print(&features->split, &split);
	if (columns.len <= LEAT_MAX_SPEC && split.len <= LEAT_MAX_SPEC) {
		must(leat_features_parse(&again, mem, leat_str_text(&columns), leat_str_text(&split), NULL) == LEAT_OK);
		leat_features_print(again, &twice);
		must(!strcmp(leat_str_text(&columns), leat_str_text(&twice)));
		leat_features_close(again);
	}
	leat_str_free(&columns);
	leat_str_free(&split);
	leat_str_free(&twice);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct leat_features *features = NULL;
	struct leat_mem mem;
	struct leat_err err;
	enum leat_status status;
	char *text;

	if (size == 0 || !(text = malloc(size + 1)))
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	leat_mem_init(&mem, (size_t)256 << 20);
	leat_err_clear(&err);
	if (*text == 'c')
		status = leat_features_parse(&features, &mem, text + 1, "", &err);
	else if (*text == 's')
		status = leat_features_parse(&features, &mem, "x: keep", text + 1, &err);
	else
		status = leat_features_load(&features, &mem, text, size, &err);
	must((status == LEAT_OK) == (features != NULL) && (features || err.text[0]));
	if (features)
		print(features, &mem);
	if (features && *text != 'c' && *text != 's')
		save(features, &mem);
	leat_features_close(features);
	must(atomic_load(&mem.used) == 0);
	free(text);
	return 0;
}
