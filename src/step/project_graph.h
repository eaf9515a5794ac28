/* project_graph.h - the steps of a project as a drawing (SVG) or as JSON
 *
 * A sliced step is one box with its counts. With `status`, one per step (step/build.h), boxes show what is done;
 * without (NULL) only what there is. The SVG brings its colours, light or dark as the reader's system is. */
#ifndef LEAT_STEP_PROJECT_GRAPH_H
#define LEAT_STEP_PROJECT_GRAPH_H

#include "step/project.h"

struct leat_step_status;

enum leat_status leat_graph_svg(const struct leat_project *project, const struct leat_step_status *status,
                                struct leat_str *svg, struct leat_err *err);
enum leat_status leat_graph_json(const struct leat_project *project, const struct leat_step_status *status,
                                 struct leat_str *json, struct leat_err *err);

/* "360 of 360 made", "12 of 360 to run", "cannot run"; "" without a status. */
void leat_graph_state_text(const struct leat_step *step, const struct leat_step_status *status, struct leat_str *out);
/* "done", "stale", "waits", "failed" or "unknown". */
const char *leat_graph_state(const struct leat_step *step, const struct leat_step_status *status);
/* "subject 18 x bin 20"; "" if there are no slices. */
void leat_graph_slices_text(const struct leat_slices *slices, struct leat_str *out);

#endif
