/* fuzz_example.c - any bytes are an Example or are refused; what is found in them lies in them */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/example.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(int truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "fuzz_example: %s\n", what);
	abort();
}

static void
check_feature(const struct leat_feature *feature, const uint8_t *data, size_t size)
{
	const unsigned char *bytes;
	struct leat_err err;
	size_t count, len;
	void *values;

	if (feature->kind == LEAT_FEATURE_NONE)
		return;
	must(feature->list >= data && feature->len <= (size_t)(data + size - feature->list),
	     "a list leaves the record");
	leat_err_clear(&err);
	if (leat_feature_count(feature, &count, &err) != LEAT_OK) {
		must(err.status == LEAT_DATA && err.text[0], "refused without a reason");
		return;
	}
	must(count <= size, "more values than bytes");
	values = malloc(8 * count + 1); /* exact, so that a sanitizer sees a write behind its end */
	if (feature->kind == LEAT_FEATURE_BYTES) {
		if (leat_feature_bytes(feature, &bytes, &len, &err) == LEAT_OK)
			must(bytes >= data && len <= (size_t)(data + size - bytes), "a byte string leaves the record");
		else
			must(count == 0, "a byte string cannot be read");
	} else if (feature->kind == LEAT_FEATURE_FLOAT) {
		must(leat_feature_floats(feature, values, count, &err) == LEAT_OK,
		     "floats were counted but cannot be read");
	} else if (leat_feature_int64s(feature, values, count, &err) != LEAT_OK) {
		must(err.status == LEAT_DATA && err.text[0], "refused without a reason");
	}
	free(values);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct leat_feature_key keys[] = {{"image", 5}, {"label", 5}, {"box", 3}, {"", 0}};
	static struct leat_example_order order;
	struct leat_example_names names;
	struct leat_feature found[4];
	struct leat_err err;

	leat_err_clear(&err);
	if (leat_example_find(data, size, keys, 4, &order, found, &err) == LEAT_OK)
		for (int i = 0; i < 4; i++)
			check_feature(&found[i], data, size);
	else
		must(err.status == LEAT_DATA && err.text[0], "refused without a reason");
	leat_example_list(data, size, &names);
	for (size_t i = 0; i < names.count; i++)
		must(memchr(names.name[i], '\0', sizeof(names.name[i])) != NULL, "a name without an end");
	return 0;
}
