/* ask.c - see ask.h */
#include "cli/ask.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/size.h"
#include "cas/manifest.h"
#include "cli/print.h"
#include "table/sketch.h"

enum leat_status
leat_ask_open(struct leat_steps *steps, struct leat_mem *mem, const char *project, enum leat_looks looks,
              struct leat_err *err)
{
	enum leat_status status = leat_steps_open(steps, mem, project, LEAT_CAS_READ, looks, err);

	if (status == LEAT_OK && !steps->cas) {
		status = leat_fail(err, LEAT_DATA, "nothing was built here yet; run 'leat build'");
		leat_steps_close(steps);
	}
	return status;
}

/* ---- steps, slices, ids ---- */

static enum leat_status
set_slice(const struct leat_steps *steps, struct leat_asked *asked, struct leat_err *err)
{
	struct leat_str text;

	leat_str_init(&text, steps->project->mem, SIZE_MAX);
	leat_slice_text(&asked->step->slices, asked->slice, &text);
	asked->slice_text = leat_str_take(&text);
	leat_str_free(&text);
	return asked->slice_text ? LEAT_OK : leat_fail_mem(err, steps->project->mem, 1, "the name of a slice");
}

enum leat_status
leat_ask_step(const struct leat_steps *steps, const char *text, struct leat_asked *asked, struct leat_err *err)
{
	size_t len = strcspn(text, ":");
	char *name = leat_strndup(steps->project->mem, text, len);
	enum leat_status status;

	*asked = (struct leat_asked){.slice = 0};
	if (!name)
		return leat_fail_mem(err, steps->project->mem, len, "the name of a step");
	status = leat_project_find(steps->project, name, &asked->step, err);
	leat_free(steps->project->mem, name);
	if (status != LEAT_OK)
		return status;
	if (text[len] == ':')
		status = leat_slice_find(&asked->step->slices, text + len + 1, &asked->slice, err);
	else if (asked->step->slices.variables > 0)
		asked->slice = SIZE_MAX;
	return status == LEAT_OK && asked->slice != SIZE_MAX ? set_slice(steps, asked, err) : status;
}

bool
leat_ask_is_id(const char *text, char step[256], uint64_t *number)
{
	const char *dash = strrchr(text, '-');
	char *end;

	if (!dash || dash == text || dash - text > 255 || !isdigit((unsigned char)dash[1]))
		return false;
	memcpy(step, text, (size_t)(dash - text));
	step[dash - text] = '\0';
	*number = strtoull(dash + 1, &end, 10);
	return *end == '\0';
}

static enum leat_status
fail_slices(const struct leat_asked *asked, struct leat_mem *mem, struct leat_err *err)
{
	struct leat_str first;
	enum leat_status status;

	leat_str_init(&first, mem, 1024);
	leat_slice_text(&asked->step->slices, 0, &first);
	status = leat_fail(err, LEAT_INVALID, "'%s' has %zu slices; name one, such as %s:%s", asked->step->name,
	                   asked->step->slices.count, asked->step->name, leat_str_text(&first));
	leat_str_free(&first);
	return status;
}

static enum leat_status
find_last(const struct leat_steps *steps, const char *text, struct leat_digest *key, struct leat_err *err)
{
	struct leat_asked asked;
	struct leat_made made;
	enum leat_status status = leat_ask_step(steps, text, &asked, err);

	if (status == LEAT_OK && asked.slice == SIZE_MAX)
		status = fail_slices(&asked, steps->project->mem, err);
	else if (status == LEAT_OK && !leat_index_last(steps->cas, asked.step->name, asked.slice_text, &made))
		status = leat_fail(err, LEAT_DATA, "'%s' was never made", text);
	else if (status == LEAT_OK)
		*key = made.key;
	leat_free(steps->project->mem, asked.slice_text);
	return status;
}

enum leat_status
leat_ask_action(const struct leat_steps *steps, const char *text, struct leat_manifest **manifest, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	struct leat_digest key;
	uint64_t number;
	char step[256];

	*manifest = NULL;
	if (!leat_ask_is_id(text, step, &number))
		status = find_last(steps, text, &key, err);
	else if (!leat_index_number(steps->cas, step, number, &key))
		status = leat_fail(err, LEAT_DATA, "there is no action '%s'; 'leat log %s' works for failed ones, too",
		                   text, text);
	return status == LEAT_OK ? leat_cas_manifest(steps->cas, &key, manifest, err) : status;
}

/* ---- printing ---- */

char *
leat_ask_content(const char *text, char buf[LEAT_ASK_TEXT])
{
	static const char *const kinds[] = {"nothing", "file", "executable file", "folder"};
	char size[32], hex[LEAT_SHA256_HEX];
	struct leat_content content;
	struct leat_err err;

	leat_err_clear(&err);
	if (leat_content_parse(text, &content, &err) != LEAT_OK) {
		snprintf(buf, LEAT_ASK_TEXT, "%s", text);
		return buf;
	}
	leat_hex(content.digest.byte, 6, hex);
	snprintf(buf, LEAT_ASK_TEXT, "%s, %s, %s", kinds[content.kind],
	         leat_format_size(size, sizeof(size), content.bytes),
	         leat_digest_is_stand_in(&content.digest) ? "not fetched yet" : hex);
	return buf;
}

void
leat_ask_maker(struct leat_cas *cas, const char *text, struct leat_str *out)
{
	struct leat_manifest *manifest = NULL;
	struct leat_content content;
	struct leat_digest key;

	if (leat_content_parse(text, &content, NULL) != LEAT_OK || !leat_index_maker(cas, &content.digest, &key) ||
	    leat_cas_manifest(cas, &key, &manifest, NULL) != LEAT_OK)
		return;
	leat_str_addf(out, ", made by %s-%llu", manifest->step, (unsigned long long)manifest->number);
	leat_manifest_free(manifest, out->mem);
}

char *
leat_ask_time(double seconds, char buf[LEAT_ASK_TEXT])
{
	time_t at = (time_t)seconds;
	struct tm local;

	if (!localtime_r(&at, &local) || strftime(buf, LEAT_ASK_TEXT, "%Y-%m-%d %H:%M:%S", &local) == 0)
		snprintf(buf, LEAT_ASK_TEXT, "?");
	return buf;
}

void
leat_ask_print(const char *label, int width, const char *text)
{
	do {
		size_t len = strcspn(text, "\n");

		leat_print_line(stdout, "  %-*s  %.*s", width, label, (int)len, text);
		text += len + (text[len] == '\n');
		label = "";
	} while (*text);
}

void
leat_ask_drift(const struct leat_manifest *m, struct leat_mem *mem, struct leat_str *out)
{
	struct leat_sketch sketch = {0};
	size_t others = 0, shown = 0;

	if (!*m->profile || leat_sketch_read(&sketch, m->profile, strlen(m->profile), mem, NULL) != LEAT_OK ||
	    !sketch.since) {
		leat_sketch_free(&sketch);
		return;
	}
	leat_str_addf(out, "since %s: ", sketch.since);
	for (size_t i = 0; i < sketch.columns; i++) {
		const struct leat_sketch_column *c = &sketch.column[i];
		bool moved = c->moved == LEAT_DRIFT_SOME || c->moved == LEAT_DRIFT_LARGE;

		if (moved && c->compared)
			leat_str_addf(out, "%s%s PSI %.3g, JS %.3g", shown++ ? "; " : "", c->name, c->psi, c->js);
		else if (c->moved == LEAT_DRIFT_ADDED || c->moved == LEAT_DRIFT_TYPE)
			leat_str_addf(out, "%s%s %s", shown++ ? "; " : "", c->name,
			              c->moved == LEAT_DRIFT_ADDED ? "is new" : "has another type");
		else
			others += c->compared;
	}
	if (others)
		leat_str_addf(out, "%s%zu %scolumn%s below 0.1", shown ? "; " : "", others, shown ? "other " : "",
		              leat_plural(others));
	leat_sketch_free(&sketch);
}
