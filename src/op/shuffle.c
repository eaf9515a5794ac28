/* shuffle.c - another order in every pass, three ways (docs/PLAN.md has the formulas)
 *
 *	shuffle                      any sample may come at any position
 *	shuffle(window=N)            tf.data's buffer: each output is drawn from N slots, and the next
 *	                             input takes the slot that became free
 *	shuffle(block=B, window=G)   blocks of B neighbours are shuffled, then samples within G blocks at
 *	                             a time: reads stay long, which remote and compressed files need
 *
 * All are functions of (seed, pass, position) that can be asked anywhere. What is kept
 * between calls are caches: the keys of permutations, and for a window the contents of
 * its slots, so that going on costs one draw where a jump costs about N. */
#include <inttypes.h>

#include "base/hash.h"
#include "base/mem.h"
#include "op/op.h"

struct shuffle {
	int64_t window, block;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct shuffle, window, "0", 0, 1e18,
                 "size of the buffer that samples are drawn from, or with block the number of blocks that are mixed; "
                 "0: all"),
	LEAT_OPT_(struct shuffle, block, LEAT_OPT_INT, "0", 0, 1e18, NULL,
                  "neighbours that are moved together before they are mixed within the window; 0: none",
                  LEAT_OPT_NAMED),
	LEAT_OPT_END,
};

/* A permutation that is keyed anew only when its name changes. */
struct named_perm {
	uint64_t seed, pass, stream;
	struct leat_perm perm; /* perm.n is 0 before the first use */
};

struct state {
	/* full: of all; window: in which order the slots are drained; block: of the blocks */
	struct named_perm perm;

	/* window */
	uint64_t slots; /* N, at most the size of the input */
	uint64_t *held; /* by slot: the input it holds after the first `outputs` of a pass; NULL: never refilled */
	uint64_t seed, pass, outputs;        /* that `held` belongs to */
	uint64_t last_seed, last_pass, last; /* where the last call was, */
	unsigned steps;                      /* how often in a row it was a short way forward, */
	uint64_t answer;                     /* and what it gave, */
	bool answered;                       /* if there was one */

	/* block */
	uint64_t block, blocks, group; /* samples of a block, number of blocks, blocks of a group */
	uint64_t missing;              /* samples that the last block is short of */
	uint64_t short_at;             /* where the permutation puts that block */
	struct named_perm inner;       /* of the samples of one group */
};

/* Says whether the permutation is another one than before. */
static bool
perm_turn(struct named_perm *p, uint64_t n, uint64_t seed, uint64_t pass, uint64_t stream)
{
	if (p->perm.n == n && p->seed == seed && p->pass == pass && p->stream == stream)
		return false;
	p->seed = seed;
	p->pass = pass;
	p->stream = stream;
	leat_perm_init(&p->perm, n, seed, pass, stream);
	return true;
}

/* ---- window ---- */

/* The slot that output `q` is drawn from while there is input left. */
static uint64_t
draw(const struct leat_plan_in *in, uint64_t slots, uint64_t pass, uint64_t q)
{
	struct leat_rng rng;

	leat_rng_init(&rng, in->seed, pass, q, in->stream);
	return leat_rng_below(&rng, slots);
}

/* What one slot holds after `outputs` outputs, without a table: about N draws. */
static uint64_t
held_by(const struct leat_plan_in *in, uint64_t slots, uint64_t pass, uint64_t outputs, uint64_t slot)
{
	for (uint64_t q = outputs; q-- > 0;)
		if (draw(in, slots, pass, q) == slot)
			return slots + q;
	return slot;
}

/* Fills the table for `outputs` outputs, walking back until every slot was met: about N ln N draws. */
static void
table_build(struct state *s, const struct leat_plan_in *in, uint64_t pass, uint64_t outputs)
{
	const uint64_t empty = UINT64_MAX;
	uint64_t left = s->slots;

	for (uint64_t i = 0; i < s->slots; i++)
		s->held[i] = empty;
	for (uint64_t q = outputs; left > 0 && q-- > 0;) {
		uint64_t slot = draw(in, s->slots, pass, q);

		if (s->held[slot] == empty) {
			s->held[slot] = s->slots + q;
			left--;
		}
	}
	for (uint64_t i = 0; left > 0 && i < s->slots; i++) {
		if (s->held[i] == empty) {
			s->held[i] = i;
			left--;
		}
	}
	s->seed = in->seed;
	s->pass = pass;
	s->outputs = outputs;
}

/* Brings the table to `outputs`, when that is near or the calls look as if they went on from there.
 * A table is built at the third of three calls in ascending order: random jumps rarely get there. */
static bool
table_reach(struct state *s, const struct leat_plan_in *in, uint64_t pass, uint64_t outputs)
{
	bool ours = s->seed == in->seed && s->pass == pass && s->outputs <= outputs;

	if (!ours || outputs - s->outputs > s->slots) {
		if (s->steps < 2)
			return false;
		table_build(s, in, pass, outputs);
	}
	for (; s->outputs < outputs; s->outputs++)
		s->held[draw(in, s->slots, pass, s->outputs)] = s->slots + s->outputs;
	return true;
}

/* Notes where the calls go. Says whether it is the same place again. */
static bool
note_call(struct state *s, uint64_t seed, const struct leat_at *at)
{
	bool same_pass = s->answered && s->last_seed == seed && s->last_pass == at->pass;

	if (same_pass && at->pos == s->last)
		return true;
	s->steps = same_pass && at->pos > s->last && at->pos - s->last <= s->slots ? s->steps + 1 : 0;
	s->last_seed = seed;
	s->last_pass = at->pass;
	s->last = at->pos;
	return false;
}

static uint64_t
window_at(const struct leat_plan_in *in, struct state *s, const struct leat_at *at)
{
	uint64_t drawn = in->size - s->slots; /* outputs that another input follows */
	uint64_t p = at->pos, outputs = p, slot, sample;

	if (p < drawn) {
		slot = draw(in, s->slots, at->pass, p);
	} else {
		perm_turn(&s->perm, s->slots, in->seed, at->pass, leat_mix64(in->stream + 1));
		slot = leat_perm_at(&s->perm.perm, p - drawn);
		outputs = drawn;
	}
	if (outputs == 0)
		return slot;
	if (!table_reach(s, in, at->pass, outputs))
		return held_by(in, s->slots, at->pass, outputs, slot);
	sample = s->held[slot];
	if (p < drawn) {
		s->held[slot] = s->slots + p;
		s->outputs = p + 1;
	}
	return sample;
}

static void
map_window(const struct leat_plan_in *in, struct state *s, struct leat_at *at)
{
	if (!note_call(s, in->seed, at)) {
		s->answer = window_at(in, s, at);
		s->answered = true;
	}
	at->pos = s->answer;
}

static enum leat_status
open_window(const struct shuffle *shuffle, const struct leat_plan_in *in, struct state *s, struct leat_err *err)
{
	uint64_t window = (uint64_t)shuffle->window;

	s->slots = window < in->size ? window : in->size;
	if (s->slots == in->size)
		return LEAT_OK; /* one draw of all */
	s->held = leat_alloc_array(in->mem, s->slots, sizeof(*s->held));
	if (!s->held)
		return leat_fail_mem(err, in->mem, s->slots * sizeof(*s->held), "the window of shuffle");
	table_build(s, in, 0, 0);
	return LEAT_OK;
}

/* ---- block ---- */

/* Only the group with the short block is smaller than the others, and the groups behind it begin earlier. */
static uint64_t
group_begin(const struct state *s, uint64_t g, uint64_t size)
{
	uint64_t begin = g * s->group * s->block - (g > s->short_at / s->group ? s->missing : 0);

	return begin < size ? begin : size;
}

static void
map_block(const struct leat_plan_in *in, struct state *s, struct leat_at *at)
{
	uint64_t samples = s->group * s->block, short_group, g, begin, o, j;

	if (perm_turn(&s->perm, s->blocks, in->seed, at->pass, in->stream))
		s->short_at = leat_perm_inverse(&s->perm.perm, s->blocks - 1);
	short_group = s->short_at / s->group;

	g = at->pos / samples;
	if (at->pos >= group_begin(s, short_group + 1, in->size))
		g = (at->pos + s->missing) / samples;
	begin = group_begin(s, g, in->size);

	perm_turn(&s->inner, group_begin(s, g + 1, in->size) - begin, in->seed, at->pass,
	          leat_mix64(leat_mix64(in->stream + 2) + g));
	o = leat_perm_at(&s->inner.perm, at->pos - begin);

	/* The o-th sample of the group's blocks, one behind the other. */
	if (g == short_group && o >= (s->short_at % s->group + 1) * s->block - s->missing)
		o += s->missing;
	j = leat_perm_at(&s->perm.perm, g * s->group + o / s->block);
	at->pos = j * s->block + o % s->block;
}

static void
open_block(const struct shuffle *shuffle, const struct leat_plan_in *in, struct state *s)
{
	uint64_t block = (uint64_t)shuffle->block, window = (uint64_t)shuffle->window;

	s->block = block < in->size ? block : in->size;
	s->blocks = (in->size - 1) / s->block + 1;
	s->group = window < s->blocks ? window : s->blocks;
	s->missing = s->blocks * s->block - in->size;
}

/* ---- the op ---- */

static enum leat_status
check(void *params, struct leat_err *err)
{
	const struct shuffle *shuffle = params;

	if (shuffle->block > 0 && shuffle->window == 0)
		return leat_fail(err, LEAT_SPEC,
		                 "block=%" PRId64 " needs a window, the number of blocks that are mixed: "
		                 "shuffle(block=%" PRId64 ", window=16)",
		                 shuffle->block, shuffle->block);
	return LEAT_OK;
}

static void
plan_close(void *state, struct leat_mem *mem)
{
	struct state *s = state;

	if (s)
		leat_free(mem, s->held);
	leat_free(mem, s);
}

static enum leat_status
plan_open(const void *params, const struct leat_plan_in *in, uint64_t *size, void **state, struct leat_err *err)
{
	const struct shuffle *shuffle = params;
	struct state *s = leat_alloc(in->mem, sizeof(*s));
	enum leat_status status = LEAT_OK;

	if (!s)
		return leat_fail_mem(err, in->mem, sizeof(*s), "shuffle");
	if (shuffle->block > 0)
		open_block(shuffle, in, s);
	else if (shuffle->window > 0)
		status = open_window(shuffle, in, s, err);
	if (status != LEAT_OK) {
		plan_close(s, in->mem);
		return status;
	}
	*size = in->size;
	*state = s;
	return LEAT_OK;
}

static void
plan_map(const void *params, const struct leat_plan_in *in, void *state, struct leat_at *at)
{
	const struct shuffle *shuffle = params;
	struct state *s = state;

	if (shuffle->block > 0) {
		map_block(in, s, at);
	} else if (shuffle->window > 0) {
		map_window(in, s, at);
	} else {
		perm_turn(&s->perm, in->size, in->seed, at->pass, in->stream);
		at->pos = leat_perm_at(&s->perm.perm, at->pos);
	}
}

static bool
scatters(const void *params)
{
	return ((const struct shuffle *)params)->window == 0;
}

const struct leat_op leat_op_shuffle = {
	.name = "shuffle",
	.doc = "Give the samples in another random order in every epoch.",
	.example = "shuffle(window=10000)",
	.kind = LEAT_OP_PLAN,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct shuffle),
	.check = check,
	.on_plan.open = plan_open,
	.on_plan.map = plan_map,
	.on_plan.close = plan_close,
	.on_plan.scatters = scatters,
};
