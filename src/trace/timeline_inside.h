/* timeline_inside.h - what the files of the timeline share; see timeline.h
 *
 * Times are nanoseconds since the timeline began. */
#ifndef LEAT_TRACE_TIMELINE_INSIDE_H
#define LEAT_TRACE_TIMELINE_INSIDE_H

#include "trace/timeline.h"

enum {
	LEAT_TIMELINE_LANES = 1024,
#define LEAT_TIMELINE_TAG(tag, name, doc) +1
	LEAT_TIMELINE_TAGS = 0 LEAT_TAGS(LEAT_TIMELINE_TAG),
#undef LEAT_TIMELINE_TAG
	LEAT_TIMELINE_BINS = 2048,
	LEAT_TIMELINE_FEWEST_BINS = 128,
	LEAT_TIMELINE_TRACKS = 64,
	LEAT_TIMELINE_POINTS = 1024, /* bins of a track */
	LEAT_TIMELINE_NAMES = 256,
	LEAT_TIMELINE_NAME = 200,     /* bytes of one */
	LEAT_TIMELINE_FIRST = 16384,  /* spans kept from the beginning */
	LEAT_TIMELINE_RECENT = 16384, /* and from the end */
	LEAT_TIMELINE_SLOW = 16,      /* slow batches, */
	LEAT_TIMELINE_AROUND = 1024,  /* with so many spans around each */
};

/* Beyond this a time is a mistake: 36 years. */
#define LEAT_TIMELINE_MOST_NS ((uint64_t)1 << 60)

struct timeline_bin {
	uint64_t busy_ns;
	uint64_t longest_ns;
	uint32_t count;
};

struct timeline_row {
	struct timeline_bin *bin; /* NULL: no span yet */
	uint64_t busy_ns, count, longest_ns;
};

struct timeline_lane {
	char *name;
	bool overlaps;
	struct timeline_row row[LEAT_TIMELINE_TAGS];
};

struct timeline_span {
	uint64_t begin, end, item;
	uint16_t lane, every;
	uint8_t tag, name;
};

/* The time around a batch that was long in coming. It is settled once all spans of that time have come. */
struct timeline_slow {
	uint64_t begin, end, length; /* of the neighbourhood, and of the batch's span */
	uint64_t from;               /* no span that ended after it, and before `end`, is missing */
	bool settled;
	size_t count;
	struct timeline_span *span; /* LEAT_TIMELINE_AROUND of them */
};

struct timeline_point {
	float min, max;
	double sum;
	uint32_t count;
};

struct timeline_track {
	char *name;
	uint64_t point_ns;
	struct timeline_point *point;
};

struct leat_timeline {
	struct leat_mem *mem;
	size_t memory, rows, bins;
	uint64_t begin_ns, bin_ns, end, ticked;
	uint64_t last_round_ns;            /* of the recorder */
	uint64_t spans, left_out, dropped; /* counts */
	uint64_t no_track;                 /* values of tracks beyond LEAT_TIMELINE_TRACKS */
	struct timeline_lane lane[LEAT_TIMELINE_LANES];

	struct timeline_span *first, *recent; /* recent: a ring */
	size_t first_count;
	uint64_t recent_count;             /* ever */
	uint64_t first_until, recent_from; /* no span is missing before, and after */
	struct timeline_slow slow[LEAT_TIMELINE_SLOW];

	char *name[LEAT_TIMELINE_NAMES]; /* of spans; 0 is none */
	size_t names;

	struct timeline_track track[LEAT_TIMELINE_TRACKS];
	size_t tracks;
};

char *leat_timeline_name(struct leat_timeline *timeline, const char *name); /* a copy, cut if long; NULL: no memory */

/* timeline_spans.c */
uint8_t leat_timeline_name_id(struct leat_timeline *timeline, unsigned tag, const char *name); /* 0: the tag's */
void leat_timeline_keep(struct leat_timeline *timeline, struct timeline_span span);
void leat_timeline_settle(struct leat_timeline *timeline);
void leat_timeline_spans_close(struct leat_timeline *timeline);
/* All spans that are kept, each once, by lane, tag and begin. NULL: none, or no memory. */
struct timeline_span *leat_timeline_kept(const struct leat_timeline *timeline, size_t *count);

/* timeline_tracks.c */
void leat_timeline_tracks_close(struct leat_timeline *timeline);

#endif
