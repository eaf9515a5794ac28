/* xray_json.c - an x-ray as JSON, and the public function that makes it */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"
#include "trace/figures.h"
#include "xray/xray.h"

enum { MAX_JSON = 1 << 24 };

void
leat_xray_options_init_sized(struct leat_xray_options *options, size_t size)
{
	struct leat_xray_options defaults = {.size = size, .seconds = 10, .tries = true};

	memset(options, 0, size);
	memcpy(options, &defaults, size < sizeof defaults ? size : sizeof defaults);
}

/* What has no limit or was not measured is null. */
static void
add_number(struct leat_str *out, const char *key, double value)
{
	char text[40];

	if (value > 0 && value < 1e15)
		leat_str_addf(out, "\"%s\": %s", key, leat_format_digits(text, sizeof text, value, 6));
	else
		leat_str_addf(out, "\"%s\": null", key);
}

static void
add_text(struct leat_str *out, const char *key, const char *text)
{
	leat_str_addf(out, "\"%s\": ", key);
	leat_str_add_json(out, text);
}

static void
add_part(const struct leat_xray_part *part, struct leat_str *out)
{
	leat_str_add(out, "{");
	add_text(out, "name", part->name);
	if (part->threads)
		leat_str_addf(out, ", \"threads\": %u", part->threads);
	leat_str_add(out, ", ");
	add_number(out, "samples_per_s", part->rate);
	leat_str_add(out, ", ");
	add_number(out, "mb_per_s", part->mb);
	leat_str_add(out, ", ");
	add_text(out, "note", part->note);
	leat_str_add(out, "}");
}

static void
add_remedy(const struct leat_remedy *r, struct leat_str *out)
{
	leat_str_add(out, "{");
	add_text(out, "name", leat_remedy_name(r->kind));
	leat_str_add(out, ", ");
	add_text(out, "what", r->what);
	leat_str_addf(out, ", \"helps\": %s, \"at_most\": %s, ", r->helps ? "true" : "false",
	              r->at_most ? "true" : "false");
	add_number(out, "predicted", r->impossible ? 0 : r->predicted);
	leat_str_add(out, ", ");
	add_number(out, "measured", r->measured);
	leat_str_add(out, ", ");
	add_number(out, "now", r->now);
	leat_str_add(out, ", ");
	add_text(out, "why", r->why);
	leat_str_add(out, "}");
}

void
leat_xray_add_json(const struct leat_xray *x, struct leat_str *out)
{
	char cpus[40];

	leat_str_add(out, "{");
	add_text(out, "limit", x->verdict.limit);
	leat_str_add(out, ", ");
	add_text(out, "also", x->verdict.also);
	leat_str_add(out, ",\n ");
	add_text(out, "sentence", x->verdict.sentence);
	leat_str_add(out, ",\n ");
	add_number(out, "samples_per_s", x->figures.whole);
	leat_str_add(out, ", ");
	add_number(out, "predicted", x->verdict.rates.whole);
	leat_str_addf(out, ", \"threads\": %u, \"cpus\": %s, \"cores\": %u, \"quota\": %s, \"seconds\": ",
	              x->figures.threads, leat_format_digits(cpus, sizeof cpus, x->machine.cpus, 4), x->machine.cores,
	              x->machine.quota ? "true" : "false");
	leat_figures_add_number(out, x->seconds, 3);
	leat_str_add(out, ", \"step_ms\": ");
	leat_figures_add_number(out, x->step_ms, 3);
	leat_str_add(out, ",\n \"parts\": [");
	for (int i = 0; i < x->parts; i++) {
		leat_str_add(out, i ? ",\n  " : "\n  ");
		add_part(&x->part[i], out);
	}
	leat_str_add(out, "],\n \"remedies\": [");
	for (int i = 0; i < x->remedies; i++) {
		leat_str_add(out, i ? ",\n  " : "\n  ");
		add_remedy(&x->remedy[i], out);
	}
	leat_str_addf(out, "],\n \"run\": %s}", x->run ? x->run : "null");
}

enum leat_status
leat_xray(const char *spec, const struct leat_options *options, const struct leat_xray_options *xray, char **json,
          struct leat_err *err)
{
	struct leat_xray x;
	struct leat_mem mem;
	struct leat_str out;
	enum leat_status status = leat_xray_open(&x, spec, options, xray, err);

	*json = NULL;
	if (status != LEAT_OK)
		return status;
	leat_mem_init(&mem, SIZE_MAX);
	leat_str_init(&out, &mem, MAX_JSON);
	leat_xray_add_json(&x, &out);
	if (!out.failed)
		*json = strdup(leat_str_text(&out)); /* the caller uses free(), not leat_free */
	leat_str_free(&out);
	leat_xray_close(&x);
	return *json ? LEAT_OK : leat_fail(err, LEAT_NOMEM, "no memory for the result");
}
