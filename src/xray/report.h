/* report.h - the report of a run: one HTML page that needs nothing else
 *
 * A page is src/xray/page with data between its halves: JSON in elements of a type that browsers do not run, with every
 * "<" escaped, so that no name in it can end the element. Scripts of the page turn it into text, never into markup.
 *
 * A run, as here, is its JSON (what `leat feed --json` prints) and, if a recorder kept one, its timeline
 * (trace/timeline_json.c). Both can be read back from a page. */
#ifndef LEAT_XRAY_REPORT_H
#define LEAT_XRAY_REPORT_H

#include <jansson.h>

#include "base/err.h"
#include "base/str.h"

/* Larger pages and JSON are refused. */
#define LEAT_REPORT_MOST ((size_t)64 << 20)

struct leat_run {
	json_t *run;      /* an object */
	json_t *timeline; /* NULL: none */
};

/* Reads a run from JSON, or from the page of a report. The text may be anybody's. Close it after success. */
enum leat_status leat_run_read(const char *text, size_t len, struct leat_run *run, struct leat_err *err);
void leat_run_close(struct leat_run *run);

/* A page is made in this order. `id` names the element that the page's script looks for. */
void leat_page_open(struct leat_str *page);
void leat_page_add(struct leat_str *page, const char *id, const json_t *data);
void leat_page_add_text(struct leat_str *page, const char *id, const char *json); /* as it is, but for escapes */
void leat_page_close(struct leat_str *page);

void leat_page_add_run(struct leat_str *page, const struct leat_run *run);

#endif
