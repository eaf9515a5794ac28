/* project_layout.c - see project_layout.h
 *
 * The usual three steps: layers by the longest path; order within layers by the mean of neighbours, of several sweeps
 * the one with fewest crossings; heights by least squares, each as near to its neighbours as the gaps allow. Lines that
 * pass a layer have a point there, which is ordered like a box. */
#include "step/project_layout.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum { SWEEPS = 16, GAP_X = 56, GAP_Y = 18, POINT_HEIGHT = 10, COUNTED_LINKS = 4000 };

/* A box, or a point of a line. */
struct vertex {
	size_t layer, rank; /* rank: its place in the layer */
	double height, y;   /* y of its middle */
	double wish;
	size_t line; /* of a point; SIZE_MAX: a box */
};

/* Between neighbouring layers. */
struct link {
	size_t from, to;
};

struct work {
	struct leat_layout *layout;
	struct leat_err *err;
	struct vertex *vertex;
	struct link *link; /* sorted by layer */
	size_t vertices, vertex_cap, links, link_cap;
	size_t *order;                /* vertices by layer and rank */
	size_t *first, *first_link;   /* where each layer begins in `order`, and in `link`; one more at the end */
	size_t *best, best_crossings; /* an order, and how many lines cross in it */
	size_t *scratch;
	struct block *block;
};

/* ---- layers ---- */

static size_t
box_of(const struct leat_project *project, const struct leat_edge *edge)
{
	return edge->step == SIZE_MAX ? edge->source : project->sources + edge->step;
}

static void
choose_layers(struct leat_layout *l, const struct leat_project *project)
{
	for (size_t i = 0; i < project->steps; i++) {
		const struct leat_step *step = &project->step[project->order[i]];
		struct leat_box *box = &l->box[project->sources + project->order[i]];

		for (size_t e = 0; e < step->edges; e++) {
			size_t layer = l->box[box_of(project, &step->edge[e])].layer + 1;

			box->layer = layer > box->layer ? layer : box->layer;
		}
		l->layers = box->layer >= l->layers ? box->layer + 1 : l->layers;
	}
}

/* A source is just left of its first reader. */
static void
move_sources(struct leat_layout *l, const struct leat_project *project)
{
	for (size_t s = 0; s < project->sources; s++)
		l->box[s].layer = SIZE_MAX;
	for (size_t i = 0; i < project->steps; i++)
		for (size_t e = 0; e < project->step[i].edges; e++) {
			const struct leat_edge *edge = &project->step[i].edge[e];
			size_t layer = l->box[project->sources + i].layer - 1;

			if (edge->source != SIZE_MAX && layer < l->box[edge->source].layer)
				l->box[edge->source].layer = layer;
		}
	for (size_t s = 0; s < project->sources; s++)
		if (l->box[s].layer == SIZE_MAX)
			l->box[s].layer = 0;
}

/* ---- vertices and links ---- */

static enum leat_status
add_vertex(struct work *w, size_t layer, double height, size_t line)
{
	enum leat_status status = LEAT_GROW(w->layout->mem, w->vertex, w->vertex_cap, w->vertices + 1,
	                                    LEAT_LAYOUT_POINTS, "the drawing", w->err);

	if (status == LEAT_OK)
		w->vertex[w->vertices++] = (struct vertex){.layer = layer, .height = height, .line = line};
	return status;
}

static enum leat_status
add_link(struct work *w, size_t from, size_t to)
{
	enum leat_status status = LEAT_GROW(w->layout->mem, w->link, w->link_cap, w->links + 1, 2 * LEAT_LAYOUT_POINTS,
	                                    "the drawing", w->err);

	if (status == LEAT_OK)
		w->link[w->links++] = (struct link){from, to};
	return status;
}

static enum leat_status
add_line(struct work *w, size_t line, size_t from, size_t to)
{
	struct leat_layout *l = w->layout;
	enum leat_status status = LEAT_OK;
	size_t last = from;

	l->line[line] = (struct leat_line){from, to, w->vertices, l->box[to].layer - l->box[from].layer - 1};
	for (size_t layer = l->box[from].layer + 1; layer < l->box[to].layer && status == LEAT_OK; layer++) {
		status = add_vertex(w, layer, POINT_HEIGHT, line);
		if (status == LEAT_OK)
			status = add_link(w, last, w->vertices - 1);
		last = w->vertices - 1;
	}
	return status == LEAT_OK ? add_link(w, last, to) : status;
}

static enum leat_status
add_all(struct work *w, const struct leat_project *project)
{
	struct leat_layout *l = w->layout;
	enum leat_status status = LEAT_OK;
	size_t line = 0;

	for (size_t i = 0; i < l->boxes && status == LEAT_OK; i++)
		status = add_vertex(w, l->box[i].layer, l->box[i].height, SIZE_MAX);
	for (size_t i = 0; i < project->steps; i++)
		for (size_t e = 0; e < project->step[i].edges && status == LEAT_OK; e++)
			status = add_line(w, line++, box_of(project, &project->step[i].edge[e]), project->sources + i);
	return status;
}

/* ---- order within layers ---- */

static int
by_wish(const void *a, const void *b, void *arg)
{
	const struct vertex *x = (struct vertex *)arg + *(const size_t *)a,
			    *y = (struct vertex *)arg + *(const size_t *)b;

	if (x->wish != y->wish)
		return x->wish < y->wish ? -1 : 1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

static void
set_ranks(struct work *w)
{
	for (size_t layer = 0; layer < w->layout->layers; layer++)
		for (size_t i = w->first[layer]; i < w->first[layer + 1]; i++)
			w->vertex[w->order[i]].rank = i - w->first[layer];
}

/* Links between a layer and the one before it. */
static size_t
links_before(const struct work *w, size_t layer, size_t *end)
{
	*end = layer ? w->first_link[layer] : 0;
	return layer ? w->first_link[layer - 1] : 0;
}

/* Wishes to be at the mean of the neighbours on one side: of their ranks, or of their heights. */
static void
wish(struct work *w, size_t layer, bool from_left, bool heights)
{
	size_t *count = w->scratch, end;
	size_t first = links_before(w, from_left ? layer : layer + 1, &end);

	for (size_t i = w->first[layer]; i < w->first[layer + 1]; i++) {
		w->vertex[w->order[i]].wish = 0;
		count[w->order[i]] = 0;
	}
	for (size_t i = first; i < end; i++) {
		size_t me = from_left ? w->link[i].to : w->link[i].from;
		const struct vertex *other = &w->vertex[from_left ? w->link[i].from : w->link[i].to];

		w->vertex[me].wish += heights ? other->y : (double)other->rank;
		count[me]++;
	}
	for (size_t i = w->first[layer]; i < w->first[layer + 1]; i++) {
		struct vertex *v = &w->vertex[w->order[i]];

		if (count[w->order[i]])
			v->wish /= (double)count[w->order[i]];
		else
			v->wish = heights ? v->y : (double)v->rank;
	}
}

static bool
is_crossing(const struct work *w, const struct link *a, const struct link *b)
{
	size_t from = w->vertex[a->from].rank, to = w->vertex[a->to].rank;
	size_t other_from = w->vertex[b->from].rank, other_to = w->vertex[b->to].rank;

	return from != other_from && to != other_to && (from < other_from) != (to < other_to);
}

static size_t
count_crossings(const struct work *w)
{
	size_t crossings = 0, end;

	for (size_t layer = 1; layer < w->layout->layers; layer++) {
		size_t first = links_before(w, layer, &end);

		for (size_t i = first; i < end && end - first <= COUNTED_LINKS; i++)
			for (size_t k = i + 1; k < end; k++)
				crossings += is_crossing(w, &w->link[i], &w->link[k]);
	}
	return crossings;
}

static void
keep_if_best(struct work *w)
{
	size_t crossings = count_crossings(w);

	if (crossings >= w->best_crossings)
		return;
	w->best_crossings = crossings;
	memcpy(w->best, w->order, w->vertices * sizeof(*w->order));
}

static void
sort_layer(struct work *w, size_t layer, bool from_left)
{
	size_t first = w->first[layer], count = w->first[layer + 1] - first;

	wish(w, layer, from_left, false);
	qsort_r(w->order + first, count, sizeof(*w->order), by_wish, w->vertex);
	for (size_t i = 0; i < count; i++)
		w->vertex[w->order[first + i]].rank = i;
}

static void
choose_order(struct work *w)
{
	size_t layers = w->layout->layers;

	w->best_crossings = SIZE_MAX;
	for (int sweep = 0; sweep < SWEEPS && w->best_crossings; sweep++) {
		for (size_t i = 0; i < layers; i++)
			sort_layer(w, sweep % 2 ? layers - 1 - i : i, sweep % 2 == 0);
		keep_if_best(w);
	}
	memcpy(w->order, w->best, w->vertices * sizeof(*w->order));
	set_ranks(w);
}

/* Vertices and links by layer, in the order in which they were added. */
static void
fill_layers(struct work *w, struct link *sorted)
{
	size_t layers = w->layout->layers, *next = w->scratch;

	for (size_t i = 0; i < w->vertices; i++)
		w->first[w->vertex[i].layer + 1]++;
	for (size_t i = 0; i < w->links; i++)
		w->first_link[w->vertex[w->link[i].from].layer + 1]++;
	for (size_t i = 0; i < layers; i++) {
		w->first[i + 1] += w->first[i];
		w->first_link[i + 1] += w->first_link[i];
	}
	memcpy(next, w->first, layers * sizeof(*next));
	for (size_t i = 0; i < w->vertices; i++)
		w->order[next[w->vertex[i].layer]++] = i;
	memcpy(next, w->first_link, layers * sizeof(*next));
	for (size_t i = 0; i < w->links; i++)
		sorted[next[w->vertex[w->link[i].from].layer]++] = w->link[i];
	if (w->links)
		memcpy(w->link, sorted, w->links * sizeof(*sorted));
	set_ranks(w);
}

/* ---- heights ---- */

/* Vertices that touch: `wish` is the mean of where they would be if the first were at it. */
struct block {
	size_t first, count;
	double wish, height;
};

static double
space(const struct work *w, size_t i)
{
	const struct vertex *v = &w->vertex[w->order[i]];

	return v->height + (v->line == SIZE_MAX ? GAP_Y : GAP_Y / 2.0);
}

/* The heights nearest to the wishes, by least squares, with no two closer than their space: blocks that would overlap
 * are joined until none do. */
static void
fit_layer(struct work *w, size_t layer)
{
	size_t blocks = 0;

	for (size_t i = w->first[layer]; i < w->first[layer + 1]; i++) {
		struct block *b = &w->block[blocks++];

		*b = (struct block){i, 1, w->vertex[w->order[i]].wish - space(w, i) / 2, space(w, i)};
		while (blocks > 1 && b[-1].wish + b[-1].height > b->wish) {
			double count = (double)(b[-1].count + b->count);

			b[-1].wish = (b[-1].wish * (double)b[-1].count + (b->wish - b[-1].height) * (double)b->count) /
			             count;
			b[-1].height += b->height;
			b[-1].count += b->count;
			blocks--;
			b--;
		}
	}
	for (size_t k = 0; k < blocks; k++) {
		double y = w->block[k].wish;

		for (size_t i = w->block[k].first; i < w->block[k].first + w->block[k].count; i++) {
			w->vertex[w->order[i]].y = y + space(w, i) / 2;
			y += space(w, i);
		}
	}
}

static void
choose_heights(struct work *w)
{
	size_t layers = w->layout->layers;

	for (size_t i = 0; i < layers; i++) {
		for (size_t k = w->first[i]; k < w->first[i + 1]; k++)
			w->vertex[w->order[k]].wish = 0;
		fit_layer(w, i);
	}
	for (int sweep = 0; sweep < SWEEPS; sweep++)
		for (size_t i = 0; i < layers; i++) {
			size_t layer = sweep % 2 ? layers - 1 - i : i;

			wish(w, layer, sweep % 2 == 0, true);
			fit_layer(w, layer);
		}
}

/* ---- places ---- */

static void
place_boxes(struct work *w, double *left, double *width)
{
	struct leat_layout *l = w->layout;
	double top = 0, bottom = 0, x = 0;

	for (size_t i = 0; i < w->vertices; i++) {
		const struct vertex *v = &w->vertex[i];

		top = v->y - v->height / 2 < top ? v->y - v->height / 2 : top;
		bottom = v->y + v->height / 2 > bottom ? v->y + v->height / 2 : bottom;
		if (i < l->boxes && l->box[i].width > width[v->layer])
			width[v->layer] = l->box[i].width;
	}
	for (size_t i = 0; i < l->layers; i++) {
		left[i] = x;
		x += width[i] + GAP_X;
	}
	for (size_t i = 0; i < l->boxes; i++) {
		l->box[i].x = left[l->box[i].layer];
		l->box[i].width = width[l->box[i].layer];
		l->box[i].y = w->vertex[i].y - l->box[i].height / 2 - top;
	}
	for (size_t i = l->boxes; i < w->vertices; i++) {
		size_t layer = w->vertex[i].layer;

		l->point[i - l->boxes] =
			(struct leat_bend){left[layer], left[layer] + width[layer], w->vertex[i].y - top};
	}
	for (size_t i = 0; i < l->lines; i++)
		l->line[i].first -= l->boxes;
	l->points = w->vertices - l->boxes;
	l->width = x > GAP_X ? x - GAP_X : 0;
	l->height = bottom - top;
}

static enum leat_status
arrange(struct work *w)
{
	struct leat_layout *l = w->layout;
	struct leat_mem *mem = l->mem;
	size_t most = w->vertices > l->layers ? w->vertices : l->layers;
	struct link *sorted = leat_alloc_array(mem, w->links, sizeof(*sorted));
	double *x = leat_alloc_array(mem, l->layers, 2 * sizeof(*x));
	enum leat_status status = LEAT_OK;

	w->order = leat_alloc_array(mem, w->vertices, sizeof(*w->order));
	w->best = leat_alloc_array(mem, w->vertices, sizeof(*w->best));
	w->first = leat_alloc_array(mem, l->layers + 1, sizeof(*w->first));
	w->first_link = leat_alloc_array(mem, l->layers + 1, sizeof(*w->first_link));
	w->scratch = leat_alloc_array(mem, most, sizeof(*w->scratch));
	w->block = leat_alloc_array(mem, w->vertices, sizeof(*w->block));
	l->point = leat_alloc_array(mem, w->vertices - l->boxes, sizeof(*l->point));
	if (!sorted || !x || !w->order || !w->best || !w->first || !w->first_link || !w->scratch || !w->block ||
	    !l->point) {
		status = leat_fail_mem(w->err, mem, most * sizeof(*w->block), "the drawing");
		goto out;
	}
	fill_layers(w, sorted);
	choose_order(w);
	choose_heights(w);
	place_boxes(w, x, x + l->layers);
out:
	leat_free(mem, sorted);
	leat_free(mem, x);
	return status;
}

static void
end_work(struct work *w)
{
	struct leat_mem *mem = w->layout->mem;

	leat_free(mem, w->vertex);
	leat_free(mem, w->link);
	leat_free(mem, w->order);
	leat_free(mem, w->best);
	leat_free(mem, w->first);
	leat_free(mem, w->first_link);
	leat_free(mem, w->scratch);
	leat_free(mem, w->block);
}

enum leat_status
leat_layout_make(struct leat_layout *layout, const struct leat_project *project, struct leat_err *err)
{
	struct work w = {.layout = layout, .err = err};
	enum leat_status status;

	layout->lines = 0;
	layout->layers = 1;
	for (size_t i = 0; i < project->steps; i++)
		layout->lines += project->step[i].edges;
	if (layout->boxes > LEAT_LAYOUT_BOXES || layout->lines > LEAT_LAYOUT_POINTS)
		return leat_fail(err, LEAT_LIMIT, "a drawing has at most %d sources and steps; use --json",
		                 LEAT_LAYOUT_BOXES);
	layout->line = leat_alloc_array(layout->mem, layout->lines, sizeof(*layout->line));
	if (!layout->line)
		return leat_fail_mem(err, layout->mem, layout->lines * sizeof(*layout->line), "the drawing");
	choose_layers(layout, project);
	move_sources(layout, project);
	status = add_all(&w, project);
	if (status == LEAT_OK)
		status = arrange(&w);
	end_work(&w);
	return status;
}

void
leat_layout_free(struct leat_layout *layout)
{
	leat_free(layout->mem, layout->box);
	leat_free(layout->mem, layout->line);
	leat_free(layout->mem, layout->point);
	layout->box = NULL;
	layout->line = NULL;
	layout->point = NULL;
}
