/* fuzz_report.c - any text is refused with a reason, or is a run that a page can hold and that can be compared */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "xray/compare.h"
#include "xray/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(int truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "fuzz_report: %s\n", what);
	abort();
}

static void
page_gives_it_back(const struct leat_run *run)
{
	struct leat_run again;
	struct leat_mem mem;
	struct leat_str page;

	leat_mem_init(&mem, SIZE_MAX);
	leat_str_init(&page, &mem, LEAT_REPORT_MOST);
	leat_page_open(&page);
	leat_page_add_run(&page, run);
	leat_page_close(&page);
	if (!page.failed) {
		must(leat_run_read(page.text, page.len, &again, NULL) == LEAT_OK, "a page of ours is refused");
		must(json_equal(again.run, run->run) && !again.timeline == !run->timeline, "another run comes back");
		leat_run_close(&again);
	}
	leat_str_free(&page);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct leat_comparison c;
	struct leat_err err = {0};
	struct leat_run run;

	if (leat_run_read((const char *)data, size, &run, &err) != LEAT_OK) {
		must(err.text[0] && !run.run && !run.timeline, "refused without a reason");
		return 0;
	}
	page_gives_it_back(&run);
	if (leat_compare(run.run, run.run, &c, NULL) == LEAT_OK) {
		must(c.verdict != LEAT_VERDICT_DIFFERENT, "a run differs from itself");
		json_decref(leat_comparison_json(&c, run.run, run.run));
	}
	leat_run_close(&run);
	return 0;
}
