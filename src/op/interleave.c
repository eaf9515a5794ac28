/* interleave.c - take samples from many files in turn, in the order of tf.data's deterministic interleave
 *
 * `cycle` slots are visited round after round. An empty slot opens the next file when it is visited. Each visit
 * takes up to `block` samples from the slot's file; when the file runs out, the slot is emptied and its turn ends,
 * so it opens the next file one round later. A file of c samples opened in round R thus gives `block` samples in
 * each of the rounds R to R + q - 1 (q = c / block, rounded down) and the remaining c % block in round R + q; round
 * R + q + 1 opens the slot's next file.
 *
 * Between rounds where a file begins, ends or gives less than a block, all rounds look the same. Such a run of
 * rounds is a *segment*. The table of segments, with the position where each begins, has at most three entries per
 * file. A position is found by a binary search for its segment, then by division within it. Entering a segment
 * computes which files take part: O(cycle) steps if it follows the previous one, O(cycle log files) after a jump.
 *
 * The order is the same in every pass. */
#include "base/array.h"
#include "base/mem.h"
#include "op/op.h"

struct interleave {
	int64_t cycle, block;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct interleave, cycle, LEAT_REQUIRED, 1, 1e18, "number of files to read from in turn"),
	LEAT_INT(struct interleave, block, "1", 1, 1e18, "samples to take from a file per turn"),
	LEAT_OPT_END,
};

/* A file's time in a slot. */
struct stay {
	uint64_t round; /* in which it is opened */
	size_t file;
};

struct segment {
	uint64_t round, begin; /* first round, and the position of its first sample */
};

struct state {
	uint64_t block;
	size_t slots;
	struct stay *stay;  /* one per file, sorted by slot, then round; a slot's first has round 0 */
	size_t *first_stay; /* slot i has stays [first_stay[i], first_stay[i + 1]) */
	struct segment *segment;
	size_t segments, segments_cap;

	/* The files of the segment entered last: */
	size_t entered;
	size_t *current;      /* by slot: its stay */
	size_t *part;         /* stays that give samples, in slot order, */
	uint64_t *cumulative; /* and the cumulative number of samples they give per round */
	size_t parts;
};

static uint64_t
file_count(const struct leat_plan_in *in, size_t file)
{
	return in->first[file + 1] - in->first[file];
}

/* ---- open: assign files to slots and find the segments ---- */

static const size_t no_file = SIZE_MAX;

/* The next event in a slot. */
struct visit {
	uint64_t round;
	size_t slot;
	size_t file; /* the file that ends, giving its remaining samples; no_file: open the next one */
};

/* A min-heap of visits, and the results for each file so far. */
struct deal {
	struct visit *heap;
	size_t waiting;
	size_t *slot_of;  /* by file */
	uint64_t *opened; /* by file: its round */
	size_t files;     /* opened so far */
	uint64_t full;    /* files that give a full block in this round */
	uint64_t rest;    /* samples from files that give less */
};

static bool
comes_before(const struct visit *a, const struct visit *b)
{
	return a->round != b->round ? a->round < b->round : a->slot < b->slot;
}

/* Restores the heap after the visit at the top moved to a later round. */
static void
heap_sink(struct visit *heap, size_t count)
{
	struct visit moved = heap[0];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < count) {
		if (child + 1 < count && comes_before(&heap[child + 1], &heap[child]))
			child++;
		if (!comes_before(&heap[child], &moved))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = moved;
}

/* Simulates the next visit. A file of less than a block ends in the round it was opened. */
static void
visit_next(struct deal *d, uint64_t block, const struct leat_plan_in *in)
{
	struct visit *v = &d->heap[0];

	if (v->file == no_file && d->files == in->files) {
		*v = d->heap[--d->waiting]; /* no files left: this slot is done */
	} else if (v->file == no_file) {
		v->file = d->files++;
		d->slot_of[v->file] = v->slot;
		d->opened[v->file] = v->round;
		v->round += file_count(in, v->file) / block;
		d->full += file_count(in, v->file) >= block;
	} else {
		d->full -= file_count(in, v->file) >= block;
		d->rest += file_count(in, v->file) % block;
		v->file = no_file;
		v->round++;
	}
	if (d->waiting > 0)
		heap_sink(d->heap, d->waiting);
}

/* Adds a segment unless it is empty. */
static enum leat_status
add_segment(struct state *s, uint64_t round, uint64_t begin, uint64_t samples, struct leat_mem *mem,
            struct leat_err *err)
{
	enum leat_status status;

	if (samples == 0)
		return LEAT_OK;
	status = LEAT_GROW(mem, s->segment, s->segments_cap, s->segments + 1, SIZE_MAX, "the table of interleave", err);
	if (status == LEAT_OK)
		s->segment[s->segments++] = (struct segment){round, begin};
	return status;
}

static enum leat_status
find_segments(struct state *s, struct deal *d, const struct leat_plan_in *in, struct leat_err *err)
{
	uint64_t begin = 0;
	enum leat_status status = LEAT_OK;

	while (d->waiting > 0 && status == LEAT_OK) {
		uint64_t round = d->heap[0].round, samples;

		d->rest = 0;
		while (d->waiting > 0 && d->heap[0].round == round)
			visit_next(d, s->block, in);
		samples = d->full * s->block + d->rest;
		status = add_segment(s, round, begin, samples, in->mem, err);
		/* All rounds up to the next visit are alike; after a file ends, that is the very next round. */
		if (d->waiting > 0)
			begin += samples * (d->heap[0].round - round);
	}
	return status;
}

/* Files are opened in order, so a stable sort by slot also sorts each slot's files by round. */
static void
sort_stays(struct state *s, const struct deal *d)
{
	for (size_t f = 0; f < d->files; f++)
		s->first_stay[d->slot_of[f] + 1]++;
	for (size_t i = 0; i < s->slots; i++) {
		s->first_stay[i + 1] += s->first_stay[i];
		s->current[i] = s->first_stay[i];
	}
	for (size_t f = 0; f < d->files; f++)
		s->stay[s->current[d->slot_of[f]]++] = (struct stay){d->opened[f], f};
	for (size_t i = 0; i < s->slots; i++)
		s->current[i] = s->first_stay[i];
}

static enum leat_status
build(struct state *s, const struct leat_plan_in *in, struct leat_err *err)
{
	struct leat_mem *mem = in->mem;
	struct deal d = {.waiting = s->slots};
	enum leat_status status;

	d.heap = leat_alloc_array(mem, s->slots, sizeof(*d.heap));
	d.slot_of = leat_alloc_array(mem, in->files, sizeof(*d.slot_of));
	d.opened = leat_alloc_array(mem, in->files, sizeof(*d.opened));
	if (!d.heap || !d.slot_of || !d.opened) {
		status = leat_fail_mem(err, mem, in->files * sizeof(*d.opened), "the table of interleave");
		goto out;
	}
	for (size_t i = 0; i < s->slots; i++)
		d.heap[i] = (struct visit){0, i, no_file};
	status = find_segments(s, &d, in, err);
	if (status == LEAT_OK)
		sort_stays(s, &d);
out:
	leat_free(mem, d.opened);
	leat_free(mem, d.slot_of);
	leat_free(mem, d.heap);
	return status;
}

static void
plan_close(void *state, struct leat_mem *mem)
{
	struct state *s = state;

	if (!s)
		return;
	leat_free(mem, s->cumulative);
	leat_free(mem, s->part);
	leat_free(mem, s->current);
	leat_free(mem, s->segment);
	leat_free(mem, s->first_stay);
	leat_free(mem, s->stay);
	leat_free(mem, s);
}

/* ---- lookup ---- */

/* Is stay `k` current in `round`? `end` is the end of its slot's stays. */
static bool
is_stay_of(const struct state *s, size_t k, size_t end, uint64_t round)
{
	return s->stay[k].round <= round && (k + 1 == end || s->stay[k + 1].round > round);
}

static size_t
find_stay(const struct state *s, size_t slot, uint64_t round)
{
	size_t k = s->current[slot], low = s->first_stay[slot], end = s->first_stay[slot + 1], high = end;

	if (is_stay_of(s, k, end, round))
		return k;
	if (k + 1 < end && is_stay_of(s, k + 1, end, round))
		return k + 1;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (s->stay[middle].round <= round)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Computes which files give how many samples per round of segment `i`. */
static void
enter(struct state *s, const struct leat_plan_in *in, size_t i)
{
	uint64_t round = s->segment[i].round, sum = 0;

	s->entered = i;
	s->parts = 0;
	for (size_t slot = 0; slot < s->slots; slot++) {
		size_t k = find_stay(s, slot, round);
		uint64_t count = file_count(in, s->stay[k].file), whole = count / s->block, gives = 0;

		s->current[slot] = k;
		if (round - s->stay[k].round < whole)
			gives = s->block;
		else if (round - s->stay[k].round == whole)
			gives = count % s->block;
		if (gives == 0)
			continue;
		sum += gives;
		s->part[s->parts] = k;
		s->cumulative[s->parts++] = sum;
	}
}

static bool
is_segment_of(const struct state *s, size_t i, uint64_t pos)
{
	return s->segment[i].begin <= pos && (i + 1 == s->segments || s->segment[i + 1].begin > pos);
}

static size_t
find_segment(const struct state *s, uint64_t pos)
{
	size_t low = 0, high = s->segments;

	if (is_segment_of(s, s->entered, pos))
		return s->entered;
	if (s->entered + 1 < s->segments && is_segment_of(s, s->entered + 1, pos))
		return s->entered + 1;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (s->segment[middle].begin <= pos)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The part that gives sample `o` of a round: o / block if all give full blocks, otherwise a later one. */
static size_t
find_part(const struct state *s, uint64_t o)
{
	size_t low = (size_t)(o / s->block), high = s->parts - 1;

	if (s->cumulative[low] > o)
		return low;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->cumulative[middle] > o)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void
plan_map(const void *params, const struct leat_plan_in *in, void *state, struct leat_at *at)
{
	struct state *s = state;
	size_t i = find_segment(s, at->pos), p;
	uint64_t o = at->pos - s->segment[i].begin, round, samples;
	const struct stay *stay;

	(void)params;
	if (i != s->entered)
		enter(s, in, i);
	samples = s->cumulative[s->parts - 1];
	round = s->segment[i].round + o / samples;
	o %= samples;
	p = find_part(s, o);
	stay = &s->stay[s->part[p]];
	if (p > 0)
		o -= s->cumulative[p - 1];
	at->pos = in->first[stay->file] + (round - stay->round) * s->block + o;
}

static enum leat_status
plan_open(const void *params, const struct leat_plan_in *in, uint64_t *size, void **state, struct leat_err *err)
{
	const struct interleave *interleave = params;
	struct state *s;
	enum leat_status status;

	if (!in->first)
		return leat_fail(err, LEAT_SPEC,
		                 "interleave must come right after the source, before any op that changes the order");
	s = leat_alloc(in->mem, sizeof(*s));
	if (!s)
		return leat_fail_mem(err, in->mem, sizeof(*s), "interleave");
	s->block = (uint64_t)interleave->block;
	s->slots = (uint64_t)interleave->cycle < in->files ? (size_t)interleave->cycle : in->files;
	s->stay = leat_alloc_array(in->mem, in->files, sizeof(*s->stay));
	s->first_stay = leat_alloc_array(in->mem, s->slots + 1, sizeof(*s->first_stay));
	s->current = leat_alloc_array(in->mem, s->slots, sizeof(*s->current));
	s->part = leat_alloc_array(in->mem, s->slots, sizeof(*s->part));
	s->cumulative = leat_alloc_array(in->mem, s->slots, sizeof(*s->cumulative));
	if (s->stay && s->first_stay && s->current && s->part && s->cumulative)
		status = build(s, in, err);
	else
		status = leat_fail_mem(err, in->mem, in->files * sizeof(*s->stay), "the table of interleave");
	if (status != LEAT_OK) {
		plan_close(s, in->mem);
		return status;
	}
	enter(s, in, 0);
	*size = in->size;
	*state = s;
	return LEAT_OK;
}

const struct leat_op leat_op_interleave = {
	.name = "interleave",
	.doc = "Take samples from several files in turn.",
	.example = "interleave(16, 1)",
	.kind = LEAT_OP_PLAN,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct interleave),
	.on_plan.open = plan_open,
	.on_plan.map = plan_map,
	.on_plan.close = plan_close,
	.on_plan.fixed = true,
};
