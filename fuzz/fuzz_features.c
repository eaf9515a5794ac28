/* fuzz_features.c - any text is a state of features or is refused with a reason, and what was loaded is saved alike
 *
 * The first byte says what the rest is: 'c', columns; 's', a split; 'd', dedupe; else a state. */
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
	struct leat_str columns, split, dedupe, twice;

	leat_str_init(&columns, mem, SIZE_MAX);
	leat_str_init(&split, mem, SIZE_MAX);
	leat_str_init(&dedupe, mem, SIZE_MAX);
	leat_str_init(&twice, mem, SIZE_MAX);
	leat_features_print(features, &columns);
	leat_split_print(&features->split, &split);
	leat_dedupe_print(features, &dedupe);
	if (columns.len <= LEAT_MAX_SPEC && split.len <= LEAT_MAX_SPEC && dedupe.len + 8 <= LEAT_MAX_SPEC) {
		const struct leat_features_text text = {leat_str_text(&columns), leat_str_text(&split),
		                                        leat_str_text(&dedupe)};

		must(leat_features_parse(&again, mem, &text, NULL) == LEAT_OK);
		leat_features_print(again, &twice);
		must(!strcmp(leat_str_text(&columns), leat_str_text(&twice)));
		leat_str_free(&twice);
		leat_dedupe_print(again, &twice);
		must(!strcmp(leat_str_text(&dedupe), leat_str_text(&twice)));
		leat_features_close(again);
	}
	leat_str_free(&columns);
	leat_str_free(&split);
	leat_str_free(&dedupe);
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
		status = leat_features_parse(&features, &mem, &(struct leat_features_text){text + 1, NULL, NULL}, &err);
	else if (*text == 's' || *text == 'd')
		status = leat_features_parse(&features, &mem,
		                             &(struct leat_features_text){"x: keep", *text == 's' ? text + 1 : NULL,
		                                                          *text == 'd' ? text + 1 : NULL},
		                             &err);
	else
		status = leat_features_load(&features, &mem, text, size, &err);
	must((status == LEAT_OK) == (features != NULL) && (features || err.text[0]));
	if (features)
		print(features, &mem);
	if (features && *text != 'c' && *text != 's' && *text != 'd')
		save(features, &mem);
	leat_features_close(features);
	must(atomic_load(&mem.used) == 0);
	free(text);
	return 0;
}
