/* fuzz_merge.c - any two texts are refused with a reason, or merged into figures that can be merged again
 *
 * The input is split at its first NUL; without one, it is merged with itself. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(int truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "fuzz_merge: %s\n", what);
	abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *merged = NULL, *again = NULL;
	const char *run[2];
	struct leat_err err;

	must(text != NULL, "out of memory");
	memcpy(text, data, size);
	text[size] = '\0';
	run[0] = run[1] = text;
	if (strlen(text) < size)
		run[1] = text + strlen(text) + 1;
	if (leat_stats_merge(run, 2, &merged, &err) == LEAT_OK) {
		run[0] = run[1] = merged;
		must(leat_stats_merge(run, 2, &again, &err) == LEAT_OK, "what was merged cannot be merged");
	} else {
		must(!merged && err.text[0], "refused without a reason");
	}
	free(again);
	free(merged);
	free(text);
	return 0;
}
