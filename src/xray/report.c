/* report.c - see report.h; writes pages */
#include "xray/report.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/store.h"
#include "trace/recorder.h"
#include "trace/timeline.h"
#include "xray/page.h"
#include "xray/xray.h"

/* ---- data in a page ---- */

/* Escapes what could end the element, or a line of a script in old browsers. Outside of strings JSON has none of it. */
static int
add_escaped(const char *text, size_t len, void *page)
{
	size_t from = 0;

	for (size_t i = 0; i < len; i++) {
		bool separator = i + 2 < len && memcmp(&text[i], "\xe2\x80", 2) == 0 &&
		                 ((unsigned char)text[i + 2] & 0xfe) == 0xa8;

		if (text[i] != '<' && !separator)
			continue;
		leat_str_addn(page, &text[from], i - from);
		leat_str_add(page, !separator ? "\\u003c" : text[i + 2] == (char)0xa8 ? "\\u2028" : "\\u2029");
		i += separator ? 2 : 0;
		from = i + 1;
	}
	leat_str_addn(page, &text[from], len - from);
	return 0;
}

void
leat_page_open(struct leat_str *page)
{
	leat_str_addn(page, leat_page_begin, leat_page_begin_size);
	leat_str_addf(page, "<script type=\"application/json\" id=\"leat-about\">{\"version\":\"%s\"}</script>\n",
	              leat_version());
}

void
leat_page_add_text(struct leat_str *page, const char *id, const char *json)
{
	leat_str_addf(page, "<script type=\"application/json\" id=\"%s\">", id);
	add_escaped(json, strlen(json), page);
	leat_str_add(page, "</script>\n");
}

void
leat_page_add(struct leat_str *page, const char *id, const json_t *data)
{
	leat_str_addf(page, "<script type=\"application/json\" id=\"%s\">", id);
	if (json_dump_callback(data, add_escaped, page, JSON_COMPACT | JSON_ENSURE_ASCII) != 0)
		page->failed = true;
	leat_str_add(page, "</script>\n");
}

void
leat_page_add_run(struct leat_str *page, const struct leat_run *run)
{
	leat_page_add(page, "leat-run", run->run);
	if (run->timeline)
		leat_page_add(page, "leat-timeline", run->timeline);
}

void
leat_page_close(struct leat_str *page)
{
	leat_str_addn(page, leat_page_end, leat_page_end_size);
}

/* ---- the report of a recorder ---- */

static void
add_timeline(struct leat_str *page, struct leat_recorder *recorder, struct leat_mem *mem)
{
	struct leat_timeline *timeline;
	struct leat_str json;

	leat_str_init(&json, mem, LEAT_REPORT_MOST);
	leat_recorder_pause(recorder); /* a second round makes the first complete */
	leat_recorder_resume(recorder);
	leat_recorder_pause(recorder);
	timeline = leat_timeline_of(recorder);
	if (timeline)
		leat_timeline_add_json(timeline, &json);
	leat_recorder_resume(recorder);
	if (timeline && !json.failed)
		leat_page_add_text(page, "leat-timeline", leat_str_text(&json));
	page->failed = page->failed || json.failed;
	leat_str_free(&json);
}

static enum leat_status
write_report(struct leat_recorder *recorder, const struct leat_run *run, const char *path,
             const struct leat_storage *storage, struct leat_err *err)
{
	struct leat_mem mem;
	struct leat_str page;
	enum leat_status status;

	leat_mem_init(&mem, SIZE_MAX);
	leat_str_init(&page, &mem, 2 * LEAT_REPORT_MOST);
	leat_page_open(&page);
	leat_page_add(&page, "leat-run", run->run);
	if (recorder)
		add_timeline(&page, recorder, &mem);
	else if (run->timeline)
		leat_page_add(&page, "leat-timeline", run->timeline);
	leat_page_close(&page);
	status = page.failed ? leat_fail(err, LEAT_NOMEM, "no memory for the report")
	                     : leat_write_whole(path, page.text, page.len, 0, storage, &mem, err);
	leat_str_free(&page);
	return status;
}

enum leat_status
leat_report_store(struct leat_recorder *recorder, const char *run_json, const char *path,
                  const struct leat_storage *storage, struct leat_err *err)
{
	struct leat_run run;
	enum leat_status status;

	leat_err_clear(err);
	if (recorder && !leat_recorder_hold(recorder))
		return leat_fail(err, LEAT_INVALID,
		                 "the recorder was opened in another process, and cannot be read after a fork");
	status = leat_run_read(run_json, strlen(run_json), &run, err);
	if (status == LEAT_OK)
		status = write_report(recorder, &run, path, storage, err);
	leat_run_close(&run);
	if (recorder)
		leat_recorder_let_go(recorder);
	return status;
}

enum leat_status
leat_report_write(struct leat_recorder *recorder, const char *run_json, const char *path, struct leat_err *err)
{
	return leat_report_store(recorder, run_json, path, NULL, err);
}
