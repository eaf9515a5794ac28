/* project_graph.c - see project_graph.h */
#include "step/project_graph.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "step/build.h"
#include "step/kind.h"
#include "step/project_layout.h"

enum { BOX_HEIGHT = 46, PAD = 12, LONGEST_LABEL = 36, MARGIN = 16, MAX_LABEL = 400 };

#define NAME_WIDTH 9.2 /* of a character; boxes are a little wider than the text in any font */
#define NOTE_WIDTH 6.6

/* ---- words ---- */

const char *
leat_graph_state(const struct leat_step *step, const struct leat_step_status *status)
{
	if (!status)
		return "unknown";
	if (*status->why)
		return "failed";
	if (status->done >= step->slices.count)
		return "done";
	return status->stale ? "stale" : "waits";
}

void
leat_graph_state_text(const struct leat_step *step, const struct leat_step_status *status, struct leat_str *out)
{
	size_t count = step->slices.count;
	const char *state = leat_graph_state(step, status);

	if (!status)
		return;
	if (!strcmp(state, "failed"))
		leat_str_addf(out, "cannot run%s", status->done ? ", " : "");
	if (!strcmp(state, "failed") && !status->done)
		return;
	if (count == 1)
		leat_str_add(out, status->done ? "made" : status->stale ? "to run" : "waits for its inputs");
	else if (status->done == count || !strcmp(state, "failed"))
		leat_str_addf(out, "%zu of %zu made", status->done, count);
	else if (status->stale)
		leat_str_addf(out, "%zu of %zu to run", count - status->done, count);
	else
		leat_str_addf(out, "%zu of %zu wait for inputs", count - status->done, count);
}

/* Variables of one axis change together: their number of values is said once. */
void
leat_graph_slices_text(const struct leat_slices *slices, struct leat_str *out)
{
	for (size_t i = 0; i < slices->variables; i++) {
		const struct leat_variable *v = &slices->variable[i];
		bool joined = i && v[-1].axis == v->axis, last = i + 1 == slices->variables || v[1].axis != v->axis;

		leat_str_addf(out, "%s%s", joined ? "," : i ? " x " : "", v->name);
		if (last)
			leat_str_addf(out, " %zu", v->values);
	}
}

/* ---- labels ---- */

struct label {
	char name[MAX_LABEL], note[MAX_LABEL];
};

static size_t
characters(const char *text)
{
	size_t n = 0;

	for (size_t len; *text; text += len, n++) {
		len = leat_utf8_length(text);
		len += len == 0;
	}
	return n;
}

/* As much of a text as a box has room for. */
static void
shorten(char label[MAX_LABEL], const char *text)
{
	char *end = label;
	size_t n = 0;

	leat_show(label, MAX_LABEL - 4, text, strlen(text));
	if (characters(label) <= LONGEST_LABEL)
		return;
	for (; n < LONGEST_LABEL - 1; n++)
		end += leat_utf8_length(end) ? leat_utf8_length(end) : 1;
	memcpy(end, "\xe2\x80\xa6", 4); /* an ellipsis */
}

/* What the second line of a step says: slices, and what is to do. */
static void
note_of(const struct leat_step *step, const struct leat_step_status *status, struct leat_mem *mem, struct label *label)
{
	struct leat_str text;

	leat_str_init(&text, mem, 4096);
	leat_graph_state_text(step, status, &text);
	if (!status)
		leat_graph_slices_text(&step->slices, &text);
	shorten(label->note, leat_str_text(&text));
	leat_str_free(&text);
}

static void
label_of(const struct leat_project *project, const struct leat_step_status *status, size_t box, struct label *label)
{
	if (box < project->sources) {
		shorten(label->name, project->source[box].name);
		shorten(label->note, project->source[box].pattern);
	} else {
		const struct leat_step *step = &project->step[box - project->sources];

		shorten(label->name, step->name);
		note_of(step, status ? &status[box - project->sources] : NULL, project->mem, label);
	}
}

static double
width_of(const struct label *label)
{
	double name = (double)characters(label->name) * NAME_WIDTH, note = (double)characters(label->note) * NOTE_WIDTH;

	return (name > note ? name : note) + 2 * PAD;
}

/* ---- SVG ---- */

static const char style[] =
	"<style>"
	".leat-graph{--page:#ffffff;--box:#f6f7f8;--line:#8a949d;--ink:#1b2126;--soft:#56616b;--done:#00704f;"
	"--stale:#8a5a00;--waits:#56616b;--failed:#b03a00;font-family:system-ui,-apple-system,'Segoe "
	"UI',Roboto,'Noto Sans',sans-serif}"
	"@media(prefers-color-scheme:dark){.leat-graph{--page:#12161a;--box:#1a1f24;--line:#76828c;--ink:#e6eaee;"
	"--soft:#a3afba;--done:#4ccfa4;--stale:#e8b339;--waits:#a3afba;--failed:#ff9d66}}"
	".leat-graph .page{fill:var(--page)}"
	".leat-graph .box{fill:var(--box);stroke:var(--line);stroke-width:1.2}"
	".leat-graph .source .box{stroke-dasharray:4 3}"
	".leat-graph .done .box{stroke:var(--done);stroke-width:1.8}"
	".leat-graph .stale .box{stroke:var(--stale);stroke-width:1.8}"
	".leat-graph .failed .box{stroke:var(--failed);stroke-width:2.4}"
	".leat-graph .name{fill:var(--ink);font-size:14px;font-weight:600}"
	".leat-graph .note{fill:var(--soft);font-size:11.5px}"
	".leat-graph .done .note{fill:var(--done)}.leat-graph .stale .note{fill:var(--stale)}"
	".leat-graph .failed .note{fill:var(--failed)}"
	".leat-graph .edge{fill:none;stroke:var(--line);stroke-width:1.4}"
	".leat-graph .tip{fill:var(--line)}"
	"</style>";

static void
add_xml(struct leat_str *out, const char *text)
{
	for (; *text; text++) {
		const char *entity = *text == '&'   ? "&amp;"
		                     : *text == '<' ? "&lt;"
		                     : *text == '>' ? "&gt;"
		                     : *text == '"' ? "&quot;"
		                                    : NULL;

		if (entity)
			leat_str_add(out, entity);
		else
			leat_str_addn(out, text, 1);
	}
}

/* Coordinates with one digit after the point, in any locale. */
static void
add_number(struct leat_str *out, double number)
{
	long long tenths = (long long)(number * 10 + (number < 0 ? -0.5 : 0.5));

	leat_str_addf(out, "%s%lld", tenths < 0 ? "-" : "", (tenths < 0 ? -tenths : tenths) / 10);
	if (tenths % 10)
		leat_str_addf(out, ".%lld", (tenths < 0 ? -tenths : tenths) % 10);
}

static void
add_point(struct leat_str *out, const char *command, double x, double y)
{
	leat_str_add(out, command);
	add_number(out, x);
	leat_str_add(out, ",");
	add_number(out, y);
}

/* A smooth curve that leaves and arrives level. */
static void
add_curve(struct leat_str *out, double from_x, double from_y, double x, double y)
{
	double middle = (from_x + x) / 2;

	add_point(out, "C", middle, from_y);
	add_point(out, " ", middle, y);
	add_point(out, " ", x, y);
}

static void
add_edge(const struct leat_layout *layout, const struct leat_line *line, struct leat_str *svg)
{
	const struct leat_box *from = &layout->box[line->from], *to = &layout->box[line->to];
	double x = from->x + from->width, y = from->y + from->height / 2;

	leat_str_add(svg, "<path class=\"edge\" marker-end=\"url(#leat-tip)\" d=\"");
	add_point(svg, "M", x, y);
	for (size_t i = 0; i < line->points; i++) {
		const struct leat_bend *bend = &layout->point[line->first + i];

		add_curve(svg, x, y, bend->left, bend->y);
		add_point(svg, "L", bend->right, bend->y);
		x = bend->right;
		y = bend->y;
	}
	add_curve(svg, x, y, to->x - 6, to->y + to->height / 2);
	leat_str_add(svg, "\"/>");
}

static void
add_text(struct leat_str *svg, const char *class, double x, double y, const char *text)
{
	leat_str_addf(svg, "<text class=\"%s\" x=\"", class);
	add_number(svg, x);
	leat_str_add(svg, "\" y=\"");
	add_number(svg, y);
	leat_str_add(svg, "\">");
	add_xml(svg, text);
	leat_str_add(svg, "</text>");
}

/* Shown when the pointer rests on a box: what there was no room for. */
static void
add_title(const struct leat_project *project, const struct leat_step_status *status, size_t box, struct leat_str *svg)
{
	const struct leat_step *step;
	struct leat_str slices;

	leat_str_add(svg, "<title>");
	if (box < project->sources) {
		add_xml(svg, project->source[box].pattern);
	} else {
		step = &project->step[box - project->sources];
		status = status ? &status[box - project->sources] : NULL;
		leat_str_init(&slices, project->mem, 4096);
		leat_graph_slices_text(&step->slices, &slices);
		add_xml(svg, step->loads ? step->loads : step->name);
		if (slices.len)
			leat_str_addf(svg, ": %s", leat_str_text(&slices));
		if (status && *status->why) {
			leat_str_add(svg, ": ");
			add_xml(svg, status->why);
		}
		leat_str_free(&slices);
	}
	leat_str_add(svg, "</title>");
}

static void
add_box(const struct leat_project *project, const struct leat_step_status *status, const struct leat_layout *layout,
        size_t i, struct leat_str *svg)
{
	const struct leat_box *box = &layout->box[i];
	bool is_source = i < project->sources, loads = !is_source && project->step[i - project->sources].loads;
	struct label label;

	label_of(project, status, i, &label);
	leat_str_addf(svg, "<g class=\"%s%s\" data-name=\"%s\">", loads ? "source " : "",
	              is_source ? "source"
	                        : leat_graph_state(&project->step[i - project->sources],
	                                           status ? &status[i - project->sources] : NULL),
	              is_source ? project->source[i].name : project->step[i - project->sources].name);
	add_title(project, status, i, svg);
	leat_str_add(svg, "<rect class=\"box\" rx=\"8\" x=\"");
	add_number(svg, box->x);
	leat_str_add(svg, "\" y=\"");
	add_number(svg, box->y);
	leat_str_add(svg, "\" width=\"");
	add_number(svg, box->width);
	leat_str_add(svg, "\" height=\"");
	add_number(svg, box->height);
	leat_str_add(svg, "\"/>");
	add_text(svg, "name", box->x + PAD, box->y + (*label.note ? 19 : 28), label.name);
	if (*label.note)
		add_text(svg, "note", box->x + PAD, box->y + 36, label.note);
	leat_str_add(svg, "</g>");
}

static void
draw(const struct leat_project *project, const struct leat_step_status *status, const struct leat_layout *layout,
     struct leat_str *svg)
{
	long width = (long)layout->width + 2 * MARGIN + 1, height = (long)layout->height + 2 * MARGIN + 1;

	leat_str_addf(svg,
	              "<svg class=\"leat-graph\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-%d -%d %ld %ld\" "
	              "width=\"%ld\" height=\"%ld\" role=\"img\" aria-label=\"%zu step%s\">",
	              MARGIN, MARGIN, width, height, width, height, project->steps, leat_plural(project->steps));
	leat_str_add(svg, style);
	leat_str_addf(svg,
	              "<defs><marker id=\"leat-tip\" viewBox=\"0 0 8 8\" refX=\"1\" refY=\"4\" markerWidth=\"7\" "
	              "markerHeight=\"7\" orient=\"auto\"><path class=\"tip\" d=\"M0,0L8,4L0,8Z\"/></marker></defs>"
	              "<rect class=\"page\" x=\"-%d\" y=\"-%d\" width=\"%ld\" height=\"%ld\"/>",
	              MARGIN, MARGIN, width, height);
	for (size_t i = 0; i < layout->lines; i++)
		add_edge(layout, &layout->line[i], svg);
	for (size_t i = 0; i < layout->boxes; i++)
		add_box(project, status, layout, i, svg);
	leat_str_add(svg, "</svg>\n");
}

/* Boxes of the right size for their labels. */
static enum leat_status
make_layout(struct leat_layout *layout, const struct leat_project *project, const struct leat_step_status *status,
            struct leat_err *err)
{
	struct label label;

	*layout = (struct leat_layout){.mem = project->mem, .boxes = project->sources + project->steps};
	layout->box = leat_alloc_array(project->mem, layout->boxes, sizeof(*layout->box));
	if (!layout->box)
		return leat_fail_mem(err, project->mem, layout->boxes * sizeof(*layout->box), "the drawing");
	for (size_t i = 0; i < layout->boxes; i++) {
		label_of(project, status, i, &label);
		layout->box[i].width = width_of(&label);
		layout->box[i].height = BOX_HEIGHT;
	}
	return leat_layout_make(layout, project, err);
}

enum leat_status
leat_graph_svg(const struct leat_project *project, const struct leat_step_status *status, struct leat_str *svg,
               struct leat_err *err)
{
	struct leat_layout layout;
	enum leat_status result = make_layout(&layout, project, status, err);

	if (result == LEAT_OK)
		draw(project, status, &layout, svg);
	leat_layout_free(&layout);
	if (result == LEAT_OK && svg->failed)
		result = leat_fail_mem(err, project->mem, svg->len, "the drawing");
	return result;
}

/* ---- JSON ---- */

static void
add_slices(const struct leat_slices *slices, struct leat_str *json)
{
	leat_str_addf(json, ",\"slices\":%zu,\"variables\":[", slices->variables ? slices->count : 0);
	for (size_t i = 0; i < slices->variables; i++)
		leat_str_addf(json, "%s{\"name\":\"%s\",\"values\":%zu}", i ? "," : "", slices->variable[i].name,
		              slices->variable[i].values);
	leat_str_add(json, "]");
}

static void
add_step(const struct leat_step *step, const struct leat_step_status *status, struct leat_str *json)
{
	leat_str_addf(json, "{\"name\":\"%s\",\"kind\":\"%s\",\"line\":%zu,\"in\":[", step->name, step->kind->name,
	              step->line);
	for (size_t i = 0; i < step->edges; i++)
		leat_str_addf(json, "%s\"%s\"", i ? "," : "", step->edge[i].name);
	leat_str_add(json, "]");
	if (step->loads) {
		leat_str_add(json, ",\"loads\":");
		leat_str_add_json(json, step->loads);
	}
	add_slices(&step->slices, json);
	if (status) {
		leat_str_addf(json, ",\"state\":\"%s\",\"made\":%zu,\"to_run\":%zu,\"waiting\":%zu,\"why\":",
		              leat_graph_state(step, status), status->done, status->stale, status->waits);
		leat_str_add_json(json, status->why);
	}
	leat_str_add(json, "}");
}

enum leat_status
leat_graph_json(const struct leat_project *project, const struct leat_step_status *status, struct leat_str *json,
                struct leat_err *err)
{
	leat_str_add(json, "{\"sources\":[");
	for (size_t i = 0; i < project->sources; i++) {
		leat_str_addf(json, "%s{\"name\":\"%s\",\"line\":%zu,\"pattern\":", i ? "," : "",
		              project->source[i].name, project->source[i].line);
		leat_str_add_json(json, project->source[i].pattern);
		leat_str_add(json, "}");
	}
	leat_str_add(json, "],\"steps\":[");
	for (size_t i = 0; i < project->steps; i++) {
		size_t step = project->order[i];

		leat_str_add(json, i ? "," : "");
		add_step(&project->step[step], status ? &status[step] : NULL, json);
	}
	leat_str_add(json, "]}\n");
	return json->failed ? leat_fail_mem(err, project->mem, json->len, "JSON") : LEAT_OK;
}
