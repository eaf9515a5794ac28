/* timeline_json.c - a timeline as JSON, small: numbers only, differences instead of times, runs of zeros as one number
 *
 * {"version": 1, "unit_ns": 100, "end": ..., "bin_ns": ..., "bins": ..., "spans": all, "left_out": ..., "dropped": ...,
 *  "no_track": values of tracks that had no room,
 *  "tags": [name...], "names": ["", name...],
 *  "lanes": [{"name": ..., "overlaps": ..., "rows": [{"tag": i, "busy_ns": ..., "count": ..., "longest_ns": ...,
 *             "busy": [...], "counts": [...], "longest": [...]}]}],
 *  "known": [[begin, end]...],
 *  "kept": [{"lane": i, "tag": i, "at": [begin - begin before, length, item, name, every...]}],
 *  "tracks": [{"name": ..., "bin_ns": ..., "points": [[bin, min, mean, max]...]}]}
 *
 * Times are in units unless the name says ns. `busy` is in 10,000ths of a bin and `longest` in units, one number per
 * bin; a number -n stands for n zeros, and zeros at the end are left out. An item of -1 is none. A span with `every` n
 * stands for n spans. */
#include "trace/timeline_inside.h"

#include <inttypes.h>
#include <stdbool.h>

#include "base/opt.h"

enum { UNIT_NS = 100, WHOLE = 10000 };
#define MOST_ITEM (((uint64_t)1 << 53) - 1) /* that JavaScript has as a whole number */

/* ---- rows ---- */

struct zeros {
	struct leat_str *out;
	uint64_t count;
	bool any;
};

static void
add_number(struct zeros *z, uint64_t value)
{
	if (value == 0) {
		z->count++;
		return;
	}
	if (z->count == 1)
		leat_str_add(z->out, z->any ? ",0" : "0");
	else if (z->count > 1)
		leat_str_addf(z->out, "%s-%" PRIu64, z->any ? "," : "", z->count);
	z->any = z->any || z->count > 0;
	z->count = 0;
	leat_str_addf(z->out, "%s%" PRIu64, z->any ? "," : "", value);
	z->any = true;
}

enum column { BUSY, COUNT, LONGEST };

static uint64_t
value_of(const struct leat_timeline *timeline, const struct timeline_bin *bin, enum column column)
{
	if (column == COUNT)
		return bin->count;
	if (column == LONGEST)
		return bin->longest_ns / UNIT_NS;
	/* At least one where there is something, so that a rare short span leaves a mark. */
	return bin->busy_ns ? 1 + (uint64_t)((double)bin->busy_ns / (double)timeline->bin_ns * WHOLE) : 0;
}

static void
add_column(const struct leat_timeline *timeline, const struct timeline_row *row, enum column column,
           struct leat_str *out)
{
	static const char *const name[] = {"busy", "counts", "longest"};
	struct zeros z = {.out = out};

	leat_str_addf(out, ",\"%s\":[", name[column]);
	for (size_t b = 0; b < timeline->bins; b++)
		add_number(&z, value_of(timeline, &row->bin[b], column));
	leat_str_add(out, "]");
}

static void
add_lane(const struct leat_timeline *timeline, size_t i, struct leat_str *out)
{
	const struct timeline_lane *lane = &timeline->lane[i];
	bool any = false;

	leat_str_add(out, "{\"name\":");
	leat_str_add_json(out, lane->name ? lane->name : "");
	leat_str_addf(out, ",\"overlaps\":%s,\"rows\":[", lane->overlaps ? "true" : "false");
	for (size_t tag = 0; tag < LEAT_TIMELINE_TAGS; tag++) {
		const struct timeline_row *row = &lane->row[tag];

		if (!row->bin)
			continue;
		leat_str_addf(out,
		              "%s{\"tag\":%zu,\"busy_ns\":%" PRIu64 ",\"count\":%" PRIu64 ",\"longest_ns\":%" PRIu64,
		              any ? "," : "", tag, row->busy_ns, row->count, row->longest_ns);
		for (int column = BUSY; column <= LONGEST; column++)
			add_column(timeline, row, (enum column)column, out);
		leat_str_add(out, "}");
		any = true;
	}
	leat_str_add(out, "]}");
}

static size_t
count_lanes(const struct leat_timeline *timeline)
{
	size_t count = LEAT_TIMELINE_LANES;

	while (count > 0) {
		const struct timeline_lane *lane = &timeline->lane[count - 1];

		if (lane->name)
			break;
		for (size_t tag = 0; tag < LEAT_TIMELINE_TAGS; tag++)
			if (lane->row[tag].bin)
				return count;
		count--;
	}
	return count;
}

/* ---- spans ---- */

static void
add_interval(struct leat_str *out, uint64_t begin, uint64_t end)
{
	if (begin < end)
		leat_str_addf(out, "%s[%" PRIu64 ",%" PRIu64 "]", out->text[out->len - 1] == '[' ? "" : ",",
		              begin / UNIT_NS, end / UNIT_NS);
}

static void
add_known(const struct leat_timeline *timeline, struct leat_str *out)
{
	leat_str_add(out, ",\n\"known\":[");
	if (!out->failed) {
		bool all = timeline->recent_count <= LEAT_TIMELINE_RECENT;

		add_interval(out, 0, all ? timeline->ticked : timeline->first_until);
		for (size_t i = 0; i < LEAT_TIMELINE_SLOW && !all; i++)
			if (timeline->slow[i].settled)
				add_interval(out, timeline->slow[i].from, timeline->slow[i].end);
		if (!all)
			add_interval(out, timeline->recent_from, timeline->ticked);
	}
	leat_str_add(out, "]");
}

static void
add_kept(const struct leat_timeline *timeline, struct leat_str *out)
{
	size_t count;
	struct timeline_span *span = leat_timeline_kept(timeline, &count);
	uint64_t last = 0;

	leat_str_add(out, ",\n\"kept\":[");
	for (size_t i = 0; i < count; i++) {
		bool opens = i == 0 || span[i].lane != span[i - 1].lane || span[i].tag != span[i - 1].tag;
		uint64_t begin = span[i].begin / UNIT_NS, length = (span[i].end - span[i].begin) / UNIT_NS;

		if (opens) {
			leat_str_addf(out, "%s{\"lane\":%u,\"tag\":%u,\"at\":[", i ? "]},\n" : "", span[i].lane,
			              span[i].tag);
			last = 0;
		}
		leat_str_addf(out, "%s%" PRIu64 ",%" PRIu64 ",%" PRId64 ",%u,%u", opens ? "" : ",", begin - last,
		              length, span[i].item <= MOST_ITEM ? (int64_t)span[i].item : -1, span[i].name,
		              span[i].every);
		last = begin;
	}
	leat_str_add(out, count ? "]}]" : "]");
	leat_free(timeline->mem, span);
}

/* ---- tracks ---- */

static void
add_track(const struct timeline_track *track, struct leat_str *out)
{
	char min[40], mean[40], max[40];
	bool any = false;

	leat_str_add(out, "{\"name\":");
	leat_str_add_json(out, track->name);
	leat_str_addf(out, ",\"bin_ns\":%" PRIu64 ",\"points\":[", track->point_ns);
	for (size_t i = 0; i < LEAT_TIMELINE_POINTS; i++) {
		const struct timeline_point *point = &track->point[i];

		if (point->count == 0)
			continue;
		leat_str_addf(out, "%s[%zu,%s,%s,%s]", any ? "," : "", i,
		              leat_format_digits(min, sizeof min, (double)point->min, 5),
		              leat_format_digits(mean, sizeof mean, point->sum / point->count, 5),
		              leat_format_digits(max, sizeof max, (double)point->max, 5));
		any = true;
	}
	leat_str_add(out, "]}");
}

static void
add_names(const struct leat_timeline *timeline, struct leat_str *out)
{
	leat_str_add(out, ",\n\"tags\":[");
	for (int tag = 0; tag < LEAT_TIMELINE_TAGS; tag++) {
		leat_str_add(out, tag ? "," : "");
		leat_str_add_json(out, leat_tag_name((enum leat_tag)tag));
	}
	leat_str_add(out, "],\"names\":[\"\"");
	for (size_t i = 0; i < timeline->names; i++) {
		leat_str_add(out, ",");
		leat_str_add_json(out, timeline->name[i]);
	}
	leat_str_add(out, "]");
}

void
leat_timeline_add_json(const struct leat_timeline *timeline, struct leat_str *out)
{
	size_t lanes = count_lanes(timeline);

	leat_str_addf(out,
	              "{\"version\":1,\"unit_ns\":%d,\"end\":%" PRIu64 ",\"bin_ns\":%" PRIu64
	              ",\"bins\":%zu,\"spans\":%" PRIu64 ",\"left_out\":%" PRIu64 ",\"dropped\":%" PRIu64
	              ",\"no_track\":%" PRIu64,
	              UNIT_NS, timeline->end / UNIT_NS + 1, timeline->bin_ns, timeline->bins, timeline->spans,
	              timeline->left_out, timeline->dropped, timeline->no_track);
	add_names(timeline, out);
	leat_str_add(out, ",\n\"lanes\":[");
	for (size_t i = 0; i < lanes; i++) {
		leat_str_add(out, i ? ",\n" : "");
		add_lane(timeline, i, out);
	}
	leat_str_add(out, "]");
	add_known(timeline, out);
	add_kept(timeline, out);
	leat_str_add(out, ",\n\"tracks\":[");
	for (size_t i = 0; i < timeline->tracks; i++) {
		leat_str_add(out, i ? ",\n" : "");
		add_track(&timeline->track[i], out);
	}
	leat_str_add(out, "]}");
}
