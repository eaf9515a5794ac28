/* fuzz_code.c - texts that steps bring: records of imports, patterns of code, files that name others, texts to compare
 *
 * The first byte says which. Records have no empty texts; a text names only files there are; a diff names both texts.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "step/action.h"
#include "step/code_glob.h"
#include "step/imports.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static enum leat_status
check_record(void *arg, const char *const *text, size_t texts, struct leat_err *err)
{
	(void)arg, (void)err;
	must(texts > 0);
	for (size_t i = 0; i < texts; i++)
		must(text[i][0] != '\0');
	return LEAT_OK;
}

static void
match(const char *pattern, struct leat_mem *mem)
{
	static const char *const names[] = {"src", "a.py", ".hidden", "**", "x[y"};
	uint64_t state[256], next[256];
	struct leat_globs globs;

	if (leat_globs_open(&globs, mem, (const char *const[]){pattern, NULL}, NULL) != LEAT_OK)
		return;
	must(globs.count <= 256);
	leat_globs_begin(&globs, state);
	for (size_t i = 0; i < 5; i++) {
		if (leat_globs_step(&globs, state, names[i], next))
			must(leat_globs_may_match(&globs, next));
		memcpy(state, next, globs.count * sizeof(*state));
	}
	leat_globs_close(&globs);
}

static void
mark(const char *text, size_t len, struct leat_mem *mem)
{
	static struct leat_code_file files[] = {{.path = (char *)"a b.sh"},
	                                        {.path = (char *)"lib/run.sh"},
	                                        {.path = (char *)"main.py"},
	                                        {.path = (char *)"q.sql"}};
	static size_t by_name[] = {0, 2, 3, 1};
	static const struct leat_project project = {.folder = (char *)"/a/project"};
	struct leat_code code = {.mem = mem, .project = &project, .file = files, .files = 4, .by_name = by_name};
	bool marked[5] = {false, false, false, false, false};

	leat_code_mark(&code, text, len, true, marked);
	must(!marked[2] && !marked[4]); /* Python from Python is the hook's */
	if (memmem(text, len, "a b.sh", 6))
		must(marked[0]);
}

static void
compare(const char *text, size_t len, struct leat_mem *mem)
{
	struct leat_str diff;

	leat_str_init(&diff, mem, SIZE_MAX);
	must(leat_text_diff(text, text + strlen(text) + (strlen(text) < len), &diff, NULL) == LEAT_OK);
	leat_str_free(&diff);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct leat_mem mem;
	char *text;

	if (size == 0 || size > 65536)
		return 0;
	leat_mem_init(&mem, SIZE_MAX);
	text = malloc(size);
	must(text != NULL);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (data[0] & 3) {
	case 0:
		leat_records_parse(text, size - 1, &(struct leat_record_reader){check_record, NULL}, NULL);
		break;
	case 1:
		match(text, &mem);
		break;
	case 2:
		mark(text, size - 1, &mem);
		break;
	default:
		compare(text, size - 1, &mem);
		break;
	}
	must(leat_mem_counted(&mem) == 0);
	free(text);
	return 0;
}
