/* fuzz_spec.c - any text is parsed or refused; what was accepted prints as text that reads back the same */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/opt.h"
#include "feed/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct params {
	int64_t count, size;
	float share, angle;
	bool on;
	const char *name;
	int method;
	struct leat_floats mean;
	struct leat_strings files;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct params, count, "1", -INFINITY, INFINITY, ""),
	LEAT_FLOAT(struct params, share, "1/255", 0, 1, ""),
	LEAT_ANGLE(struct params, angle, "10deg", -4, 4, ""),
	LEAT_SIZE(struct params, size, "4MiB", 0, INFINITY, ""),
	LEAT_BOOL(struct params, on, "true", ""),
	LEAT_STRING(struct params, name, "", ""),
	LEAT_ENUM(struct params, method, "area", "nearest|bilinear|area", ""),
	LEAT_FLOATS(struct params, mean, "[1, 2]", -INFINITY, INFINITY, ""),
	LEAT_STRINGS(struct params, files, "[a, b]", "", LEAT_OPT_LOCATION),
	LEAT_OPT_END,
};

static void
must(int truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "fuzz_spec: %s\n", what);
	abort();
}

/* Canonical text of what `call` means; NULL: refused. */
static char *
canonical(const struct leat_spec *spec, const struct leat_call *call, struct leat_mem *mem)
{
	struct params params;
	struct leat_str str;
	struct leat_err err;

	leat_err_clear(&err);
	if (leat_opts_set(options, &params, call, spec->text, mem, &err) != LEAT_OK) {
		must(err.status != LEAT_OK && err.status != LEAT_INTERNAL && err.text[0], "refused without a reason");
		return NULL;
	}
	leat_str_init(&str, mem, 1 << 20);
	leat_str_add(&str, "op(");
	leat_opts_print(options, &params, true, &str);
	leat_str_add(&str, ")");
	leat_opts_free(options, &params, mem);
	return leat_str_take(&str);
}

static void
check_call(const struct leat_spec *spec, const struct leat_call *call, struct leat_mem *mem)
{
	char *text = canonical(spec, call, mem), *again;
	struct leat_spec back;

	if (!text)
		return;
	if (strlen(text) <= LEAT_MAX_SPEC) {
		must(leat_spec_parse(&back, text, mem, NULL) == LEAT_OK, "canonical text is not a spec");
		again = canonical(&back, &back.call[0], mem);
		must(again && strcmp(text, again) == 0, "canonical text does not read back");
		leat_free(mem, again);
		leat_spec_free(&back);
	}
	leat_free(mem, text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct leat_spec spec;
	struct leat_err err;
	struct leat_mem mem;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	if (leat_spec_parse(&spec, text, &mem, &err) == LEAT_OK) {
		for (size_t i = 0; i < spec.calls; i++)
			check_call(&spec, &spec.call[i], &mem);
		leat_spec_free(&spec);
	} else {
		must(err.status == LEAT_SPEC && err.text[0], "refused without a reason");
	}
	must(mem.used == 0, "memory is left over");
	free(text);
	return 0;
}
