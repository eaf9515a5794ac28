/* timeline_tracks.c - the tracks of a timeline: curves as bins with minimum, mean and maximum */
#include "trace/timeline_inside.h"

#include <math.h>
#include <string.h>

/* Values come twice a second or so. */
enum { FIRST_POINT_NS = 1 << 28 };

static struct timeline_track *
track_of(struct leat_timeline *timeline, const char *name)
{
	struct timeline_track *track;

	for (size_t i = 0; i < timeline->tracks; i++)
		if (strncmp(timeline->track[i].name, name, LEAT_TIMELINE_NAME) == 0)
			return &timeline->track[i];
	if (timeline->tracks == LEAT_TIMELINE_TRACKS)
		return NULL;
	track = &timeline->track[timeline->tracks];
	track->name = leat_timeline_name(timeline, name);
	track->point = leat_alloc_array(timeline->mem, LEAT_TIMELINE_POINTS, sizeof *track->point);
	track->point_ns = FIRST_POINT_NS;
	if (!track->name || !track->point) {
		leat_free(timeline->mem, track->name);
		leat_free(timeline->mem, track->point);
		return NULL;
	}
	timeline->tracks++;
	return track;
}

static void
merge(struct timeline_point *to, const struct timeline_point *from)
{
	if (from->count == 0)
		return;
	if (to->count == 0) {
		*to = *from;
		return;
	}
	to->min = from->min < to->min ? from->min : to->min;
	to->max = from->max > to->max ? from->max : to->max;
	to->sum += from->sum;
	to->count += from->count;
}

static void
widen(struct timeline_track *track)
{
	for (size_t i = 0; i < LEAT_TIMELINE_POINTS / 2; i++) {
		struct timeline_point both = track->point[2 * i];

		merge(&both, &track->point[2 * i + 1]);
		track->point[i] = both;
	}
	memset(&track->point[LEAT_TIMELINE_POINTS / 2], 0, LEAT_TIMELINE_POINTS / 2 * sizeof *track->point);
	track->point_ns *= 2;
}

void
leat_timeline_count(struct leat_timeline *timeline, const char *name, uint64_t at_ns, double value)
{
	uint64_t at = at_ns > timeline->begin_ns ? at_ns - timeline->begin_ns : 0;
	struct timeline_point one = {.min = (float)value, .max = (float)value, .sum = value, .count = 1};
	struct timeline_track *track;

	if (!isfinite(value) || !isfinite(one.min) || at >= LEAT_TIMELINE_MOST_NS) {
		timeline->left_out++;
		return;
	}
	track = track_of(timeline, name);
	if (!track) {
		timeline->no_track++;
		return;
	}
	while (at >= track->point_ns * LEAT_TIMELINE_POINTS)
		widen(track);
	merge(&track->point[at / track->point_ns], &one);
	if (at > timeline->end)
		timeline->end = at;
}

void
leat_timeline_tracks_close(struct leat_timeline *timeline)
{
	for (size_t i = 0; i < timeline->tracks; i++) {
		leat_free(timeline->mem, timeline->track[i].name);
		leat_free(timeline->mem, timeline->track[i].point);
	}
}
