/* points.c - see points.h */
#include "format/points.h"

#include <string.h>

#include "base/array.h"

_Static_assert(sizeof(struct leat_point) == 40 && sizeof(struct leat_points_head) == 96, "the layout of the file");

void
leat_points_init(struct leat_points *points, struct leat_mem *mem)
{
	*points = (struct leat_points){.mem = mem};
}

enum leat_status
leat_points_add(struct leat_points *points, const struct leat_point *point, const void *window, struct leat_err *err)
{
	struct leat_points_head *head = &points->head;
	enum leat_status status = LEAT_GROW(points->mem, points->points, points->cap, (size_t)head->count + 1, SIZE_MAX,
	                                    "the index of a compressed file", err);

	points->point = points->points;
	if (status == LEAT_OK)
		status = LEAT_GROW_RAW(points->mem, points->windows, points->windows_cap,
		                       (size_t)head->windows + point->window, SIZE_MAX,
		                       "the index of a compressed file", err);
	points->window = points->windows;
	if (status != LEAT_OK)
		return status;
	points->points[head->count] = *point;
	points->points[head->count].window_at = head->windows;
	if (point->window)
		memcpy(points->windows + head->windows, window, point->window);
	head->count++;
	head->windows += point->window;
	return LEAT_OK;
}

void
leat_points_drop(struct leat_points *points)
{
	points->head.windows = points->point[--points->head.count].window_at;
}

void
leat_points_fail(struct leat_points *points, uint64_t at, const char *fault)
{
	size_t len = strnlen(fault, sizeof(points->head.fault) - 1);

	points->head.fault_at = at;
	memset(points->head.fault, 0, sizeof(points->head.fault));
	memcpy(points->head.fault, fault, len);
}

void
leat_points_free(struct leat_points *points)
{
	if (points->mem) {
		leat_free(points->mem, points->points);
		leat_free(points->mem, points->windows);
	}
	*points = (struct leat_points){0};
}

/* The fault is shown to users, so it must be printable. */
static bool
is_text(const char *text, size_t cap)
{
	size_t len = strnlen(text, cap);

	for (size_t i = 0; i < len; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return len < cap;
}

static bool
are_in_order(const struct leat_point *point, const struct leat_points_head *head, uint64_t size, uint64_t end)
{
	uint64_t windows = 0;

	for (uint64_t i = 0; i < head->count; i++) {
		const struct leat_point *p = &point[i];

		if (p->in > size || p->in_end < p->in || p->in_end > size || p->bits > 7 || (p->bits && !p->in) ||
		    p->out > end || p->window_at != windows || p->window > LEAT_POINT_WINDOW || p->window > p->out ||
		    p->window > head->windows - windows)
			return false;
		if (i ? p->out <= p[-1].out || p->in < p[-1].in : p->out != 0)
			return false;
		windows += p->window;
	}
	return windows == head->windows;
}

bool
leat_points_take(struct leat_points *points, const void *bytes, size_t len, uint64_t size, uint64_t end)
{
	const struct leat_points_head *head = bytes;
	const struct leat_point *point = (const struct leat_point *)(head + 1);

	if (len < sizeof(*head))
		return false;
	len -= sizeof(*head);
	if (head->count > len / sizeof(*point) || head->windows != len - head->count * sizeof(*point))
		return false;
	if (head->packing != LEAT_PACKED_GZIP && head->packing != LEAT_PACKED_ZLIB)
		return false;
	if (!is_text(head->fault, sizeof(head->fault)) || !are_in_order(point, head, size, end))
		return false;
	*points = (struct leat_points){
		.head = *head,
		.point = point,
		.window = (const unsigned char *)(point + head->count),
	};
	return true;
}

void
leat_points_span(const struct leat_points *points, uint64_t i, uint64_t *offset, uint64_t *length)
{
	const struct leat_point *point = &points->point[i];

	*offset = point->in - (point->bits > 0); /* includes the byte with unused bits */
	*length = point->in_end - *offset;
}

uint64_t
leat_points_find(const struct leat_points *points, uint64_t out)
{
	uint64_t low = 0, high = points->head.count;

	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (points->point[middle].out <= out)
			low = middle;
		else
			high = middle;
	}
	return low;
}
