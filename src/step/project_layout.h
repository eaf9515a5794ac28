/* project_layout.h - where the boxes and lines of a drawing of a project go
 *
 * Layers from left to right: a step is right of all that it reads. A line that passes layers bends around what is
 * there. Within a layer, the order has few crossings, and boxes are near what they are joined to. */
#ifndef LEAT_STEP_PROJECT_LAYOUT_H
#define LEAT_STEP_PROJECT_LAYOUT_H

#include "step/project.h"

enum { LEAT_LAYOUT_BOXES = 2000, LEAT_LAYOUT_POINTS = 40000 };

struct leat_box {
	size_t layer;
	double width, height; /* as given, or as wide as the widest of its layer */
	double x, y;          /* of the top left corner */
};

struct leat_line {
	size_t from, to;      /* boxes; from what is read to who reads it */
	size_t first, points; /* its bends in leat_layout.point, between both ends */
};

struct leat_layout {
	struct leat_mem *mem;
	struct leat_box *box; /* sources, then steps */
	struct leat_line *line;
	struct leat_bend {
		double left, right, y; /* straight from left to right */
	} * point;
	size_t boxes, lines, points, layers;
	double width, height;
};

/* `layout` has boxes with their sizes. LEAT_LIMIT: too many to draw. Free with leat_layout_free. */
enum leat_status leat_layout_make(struct leat_layout *layout, const struct leat_project *project, struct leat_err *err);
void leat_layout_free(struct leat_layout *layout);

#endif
