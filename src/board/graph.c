/* graph.c - /api/graph: the steps of leat.yaml with their states; /api/step/STEP: the slices of one
 *
 * Working out states means planning, which reads stats of all inputs. One thread does it at a time, and its answer
 * serves all who had asked before it began. */
#include <string.h>

#include "base/clock.h"
#include "board/inside.h"
#include "step/kind.h"
#include "step/project_graph.h"

/* ---- a step ---- */

static void
add_text(const char *name, const char *text, struct leat_str *json)
{
	leat_str_addf(json, ",\"%s\":", name);
	leat_str_add_json(json, text);
}

static void
add_edges(const struct leat_step *step, struct leat_str *json)
{
	leat_str_add(json, ",\"in\":[");
	for (size_t i = 0; i < step->edges; i++) {
		leat_str_add(json, i ? "," : "");
		leat_str_add_json(json, step->edge[i].name);
	}
	leat_str_add(json, "]");
}

static void
add_params(const struct leat_step *step, struct leat_str *json)
{
	leat_str_add(json, ",\"params\":{");
	for (size_t i = 0; i < step->params; i++) {
		leat_str_add(json, i ? "," : "");
		leat_str_add_json(json, step->param[i].name);
		leat_str_add(json, ":");
		leat_str_add_json(json, step->param[i].value);
	}
	leat_str_add(json, "}");
}

/* Without the closing brace. */
static void
add_step(const struct leat_step *step, struct leat_str *json)
{
	leat_str_add(json, "{\"step\":");
	leat_str_add_json(json, step->name);
	add_text("kind", step->kind->name, json);
	add_text("text", step->text, json);
	leat_str_addf(json, ",\"line\":%zu,\"actions\":%zu,\"cpus\":%u", step->line, step->slices.count, step->cpus);
	add_edges(step, json);
	add_params(step, json);
}

/* ---- the graph ---- */

/* Without states if they cannot be worked out: nothing was built yet, or a source is missing, which `err` says. */
static void
add_states(struct leat_board *board, const struct leat_project *project, struct leat_str *json, struct leat_err *err)
{
	struct leat_step_status *status = leat_alloc_array(&board->answers, project->steps, sizeof(*status));
	struct leat_cas *cas;
	bool known;

	known = status && leat_board_store(board, &cas, err) == LEAT_OK &&
	        leat_build_status(project, cas, status, err) == LEAT_OK;
	leat_str_add(json, ",\"graph\":");
	leat_graph_json(project, known ? status : NULL, json, err);
	leat_free(&board->answers, status);
}

static void
make_graph(struct leat_board *board, struct leat_str *json)
{
	struct leat_project *project;
	struct leat_err err = {0};

	leat_str_add(json, "{\"folder\":");
	leat_str_add_json(json, board->folder);
	if (leat_project_open(&project, board->mem, board->folder, &err) == LEAT_OK) {
		add_states(board, project, json, &err);
		leat_project_close(project);
	}
	add_text("error", err.text, json);
	leat_str_add(json, "}");
}

/* `planning` is held. */
static void
renew_graph(struct leat_board *board)
{
	struct leat_str graph;

	board->graph_at = leat_now();
	leat_str_init(&graph, &board->answers, LEAT_BOARD_JSON_BYTES);
	make_graph(board, &graph);
	leat_free(&board->answers, board->graph);
	board->graph = leat_str_take(&graph);
	leat_str_free(&graph);
}

enum leat_status
leat_board_graph(struct leat_board *board, const struct leat_board_request *request, struct leat_str *json,
                 struct leat_err *err)
{
	uint64_t asked = leat_now();

	(void)request;
	(void)err;
	pthread_mutex_lock(&board->planning);
	if (!board->graph || board->graph_at < asked)
		renew_graph(board);
	if (board->graph)
		leat_str_add(json, board->graph);
	else
		json->failed = true;
	pthread_mutex_unlock(&board->planning);
	return LEAT_OK;
}

/* ---- slices ---- */

static void
add_slice(struct leat_cas *cas, const struct leat_step *step, size_t slice, struct leat_str *text,
          struct leat_str *json)
{
	struct leat_made made;

	text->len = 0;
	leat_slice_text(&step->slices, slice, text);
	leat_str_add(json, slice ? ",{\"slice\":" : "{\"slice\":");
	leat_str_add_json(json, text->len ? leat_str_text(text) : "");
	if (leat_index_last(cas, step->name, text->len ? leat_str_text(text) : "", &made))
		leat_str_addf(json, ",\"id\":\"%s-%llu\",\"seconds\":%.6g,\"bytes\":%llu", step->name,
		              (unsigned long long)made.number, (double)made.seconds,
		              (unsigned long long)made.output.bytes);
	leat_str_add(json, "}");
}

static enum leat_status
add_slices(struct leat_board *board, const struct leat_step *step, struct leat_str *json, struct leat_err *err)
{
	struct leat_cas *cas;
	enum leat_status status = leat_board_store(board, &cas, err);
	struct leat_str text;

	if (status != LEAT_OK)
		return status;
	leat_str_init(&text, &board->answers, LEAT_BOARD_LINE_BYTES);
	add_step(step, json);
	leat_str_add(json, ",\"made\":[");
	for (size_t i = 0; i < step->slices.count && i < LEAT_BOARD_LISTED; i++)
		add_slice(cas, step, i, &text, json);
	leat_str_add(json, "]}");
	leat_str_free(&text);
	return LEAT_OK;
}

static enum leat_status
make_step(struct leat_board *board, const char *name, struct leat_str *json, struct leat_err *err)
{
	struct leat_project *project;
	const struct leat_step *step;
	enum leat_status status = leat_project_open(&project, board->mem, board->folder, err);

	if (status != LEAT_OK)
		return status;
	status = leat_project_find(project, name, &step, err);
	if (status == LEAT_OK)
		status = add_slices(board, step, json, err);
	leat_project_close(project);
	return status;
}

/* One at a time, too: a project with its slices may be large. */
enum leat_status
leat_board_step(struct leat_board *board, const struct leat_board_request *request, struct leat_str *json,
                struct leat_err *err)
{
	enum leat_status status;

	pthread_mutex_lock(&board->planning);
	status = make_step(board, request->word[0], json, err);
	pthread_mutex_unlock(&board->planning);
	return status;
}
