/* report_read.c - read a run back, from JSON or from a page; see report.h */
#include <string.h>

#include "xray/report.h"

/* What the page allocates follows from these: larger ones are not ours. */
enum { MOST_BINS = 65536, MOST_CELLS = 1 << 22, MOST_LANES = 4096, MOST_TAGS = 64 };

/* The text of the element with this id; NULL: there is none. Pages are written by leat_page_add. */
static const char *
find_data(const char *text, size_t len, const char *id, size_t *data_len)
{
	static const char before[] = "<script type=\"application/json\" id=\"";
	const char *end = text + len, *at = text, *close;
	size_t id_len = strlen(id);

	while ((at = memmem(at, (size_t)(end - at), before, sizeof before - 1)) != NULL) {
		at += sizeof before - 1;
		if ((size_t)(end - at) < id_len + 2 || memcmp(at, id, id_len) != 0 ||
		    memcmp(at + id_len, "\">", 2) != 0)
			continue;
		at += id_len + 2;
		close = memmem(at, (size_t)(end - at), "</script>", 9);
		*data_len = close ? (size_t)(close - at) : 0;
		return close ? at : NULL;
	}
	return NULL;
}

static size_t
count_of(const json_t *object, const char *name)
{
	return json_array_size(json_object_get(object, name));
}

static bool
is_timeline(const json_t *timeline)
{
	json_int_t bins = json_integer_value(json_object_get(timeline, "bins"));
	const json_t *lanes = json_object_get(timeline, "lanes");
	size_t rows = 0, i;
	json_t *lane;

	if (json_integer_value(json_object_get(timeline, "version")) != 1 || bins < 1 || bins > MOST_BINS)
		return false;
	if (json_integer_value(json_object_get(timeline, "unit_ns")) < 1 || count_of(timeline, "lanes") > MOST_LANES)
		return false;
	if (json_integer_value(json_object_get(timeline, "bin_ns")) < 1 || count_of(timeline, "tags") > MOST_TAGS)
		return false;
	json_array_foreach(lanes, i, lane) rows += count_of(lane, "rows");
	return rows <= MOST_CELLS / (size_t)bins && json_is_array(json_object_get(timeline, "tags")) &&
	       json_is_array(json_object_get(timeline, "names"));
}

static enum leat_status
load(const char *text, size_t len, const char *what, json_t **object, struct leat_err *err)
{
	json_error_t why;

	*object = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	if (!*object)
		return leat_fail(err, LEAT_DATA, "%s is not JSON: %s at byte %d", what, why.text, why.position);
	if (json_is_object(*object))
		return LEAT_OK;
	json_decref(*object);
	*object = NULL;
	return leat_fail(err, LEAT_DATA, "%s is not a JSON object", what);
}

static enum leat_status
read_page(const char *text, size_t len, struct leat_run *run, struct leat_err *err)
{
	size_t run_len, timeline_len;
	const char *at = find_data(text, len, "leat-run", &run_len);
	const char *timeline = find_data(text, len, "leat-timeline", &timeline_len);
	enum leat_status status;

	if (!at && find_data(text, len, "leat-compare", &run_len))
		return leat_fail(err, LEAT_INVALID, "this is a comparison; name the two runs themselves");
	if (!at)
		return leat_fail(err, LEAT_DATA, "neither JSON of a run nor a report of leat");
	status = load(at, run_len, "the run in the report", &run->run, err);
	if (status != LEAT_OK || !timeline)
		return status;
	status = load(timeline, timeline_len, "the timeline in the report", &run->timeline, err);
	if (status == LEAT_OK && !is_timeline(run->timeline))
		status =
			leat_fail(err, LEAT_DATA, "the timeline in the report was not written by this version of leat");
	return status;
}

enum leat_status
leat_run_read(const char *text, size_t len, struct leat_run *run, struct leat_err *err)
{
	size_t blank = 0;
	enum leat_status status;

	*run = (struct leat_run){0};
	if (len > LEAT_REPORT_MOST)
		return leat_fail(err, LEAT_LIMIT, "larger than any report: %zu bytes", len);
	while (blank < len && memchr(" \t\r\n", text[blank], 4))
		blank++;
	if (blank < len && text[blank] == '<')
		status = read_page(text, len, run, err);
	else
		status = load(text, len, "the run", &run->run, err);
	if (status != LEAT_OK)
		leat_run_close(run);
	return status;
}

void
leat_run_close(struct leat_run *run)
{
	json_decref(run->run);
	json_decref(run->timeline);
	*run = (struct leat_run){0};
}
