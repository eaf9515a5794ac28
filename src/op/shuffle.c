/* shuffle.c - a new order in every pass, in three variants (docs/PLAN.md has the formulas)
 *
 *	shuffle                      any sample can come at any position
 *	shuffle(window=N)            tf.data's buffer: each output is drawn from N slots, and the next
 *	                             input takes the free slot
 *	shuffle(block=B, window=G)   shuffles blocks of B neighbours, then the samples within G blocks at
 *	                             a time: reads stay long, which suits remote and compressed files
 *
 * All are pure functions of (seed, pass, position) and can be evaluated at any position. State kept between calls
 * is only a cache: the keys of permutations, and for a window the contents of its slots, so that stepping forward
 * costs one draw where a jump costs about N. */
#include <inttypes.h>

#include "base/hash.h"
#include "base/mem.h"
#include "op/op.h"

struct shuffle {
	int64_t window, block;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct shuffle, window, "0", 0, 1e18,
                 "size of the shuffle buffer in samples, or with block, in blocks; 0: shuffle the whole data set"),
	LEAT_OPT_(struct shuffle, block, LEAT_OPT_INT, "0", 0, 1e18, NULL,
                  "shuffle in blocks of this many neighbours, then within the window; 0: no blocks", LEAT_OPT_NAMED),
	LEAT_OPT_END,
};

/* A permutation, re-keyed only when its seed, pass or stream changes. */
struct keyed_perm {
	uint64_t seed, pass, stream;
	struct leat_perm perm; /* perm.n is 0 before the first use */
};

struct state {
	/* full: of all samples; window: order in which the slots are drained; block: of the blocks */
	struct keyed_perm perm;

	/* window */
	uint64_t slots; /* N, at most the size of the input */
	uint64_t *held; /* by slot: the input it holds after `outputs` outputs of a pass; NULL: slots are never refilled
	                 */
	uint64_t seed, pass, outputs;        /* state that `held` describes */
	uint64_t last_seed, last_pass, last; /* position of the last call */
	unsigned steps;                      /* consecutive short steps forward */
	uint64_t answer;                     /* result of the last call, */
	bool answered;                       /* if there was one */

	/* block */
	uint64_t block, blocks, group; /* samples per block, number of blocks, blocks per group */
	uint64_t missing;              /* samples missing from the last block */
	uint64_t short_at;             /* where the permutation puts that block */
	struct keyed_perm inner;       /* of the samples within one group, */
	uint64_t begin, first_block;   /* which begins at this output, with this place in the order of blocks */
	uint64_t short_from;           /* from this sample of the group on, some are missing */
	uint64_t *chosen;              /* the blocks of the group; NULL: too many to keep */
};

enum { MOST_CHOSEN = 4096 };

/* Returns whether the permutation changed. */
static bool
perm_update(struct keyed_perm *p, uint64_t n, uint64_t seed, uint64_t pass, uint64_t stream)
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

/* The slot of output `q` while input remains. */
static uint64_t
draw(const struct leat_plan_in *in, uint64_t slots, uint64_t pass, uint64_t q)
{
	struct leat_rng rng;

	leat_rng_init(&rng, in->seed, pass, q, in->stream);
	return leat_rng_below(&rng, slots);
}

/* Contents of one slot after `outputs` outputs, without a table: about N draws. */
static uint64_t
held_by(const struct leat_plan_in *in, uint64_t slots, uint64_t pass, uint64_t outputs, uint64_t slot)
{
	for (uint64_t q = outputs; q-- > 0;)
		if (draw(in, slots, pass, q) == slot)
			return slots + q;
	return slot;
}

/* Builds the table as of `outputs` outputs, walking back until every slot has been seen: about N ln N draws. */
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

/* Advances the table to `outputs` if that is near, or rebuilds it if access looks sequential: at the third call in
 * ascending order, which random access rarely reaches. */
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

/* Tracks the access pattern. Returns true if the position is the same as last time. */
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
	uint64_t drawn = in->size - s->slots; /* outputs drawn while input remains */
	uint64_t p = at->pos, outputs = p, slot, sample;

	if (p < drawn) {
		slot = draw(in, s->slots, at->pass, p);
	} else {
		perm_update(&s->perm, s->slots, in->seed, at->pass, leat_mix64(in->stream + 1));
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
		return LEAT_OK;                                           /* every sample fits in the window */
	s->held = leat_alloc_later(in->mem, s->slots * sizeof(*s->held)); /* at most 8e18 bytes */
	if (!s->held)
		return leat_fail_mem(err, in->mem, s->slots * sizeof(*s->held), "the window of shuffle");
	if (!leat_mem_is_exceeded(in->mem))
		table_build(s, in, 0, 0);
	return LEAT_OK;
}

/* ---- block ---- */

/* The group with the short block is smaller, so the groups after it begin earlier. */
static uint64_t
group_begin(const struct state *s, uint64_t g, uint64_t size)
{
	uint64_t begin = g * s->group * s->block - (g > s->short_at / s->group ? s->missing : 0);

	return begin < size ? begin : size;
}

/* Updates the permutation of blocks. */
static void
enter_pass(const struct leat_plan_in *in, struct state *s, uint64_t pass)
{
	if (perm_update(&s->perm, s->blocks, in->seed, pass, in->stream))
		s->short_at = leat_perm_inverse(&s->perm.perm, s->blocks - 1);
}

/* The group of an output. */
static uint64_t
group_at(const struct state *s, uint64_t pos, uint64_t size)
{
	uint64_t samples = s->group * s->block;

	if (pos >= group_begin(s, s->short_at / s->group + 1, size))
		pos += s->missing;
	return pos / samples;
}

static uint64_t
blocks_of(const struct state *s, uint64_t g)
{
	uint64_t left = s->blocks - g * s->group;

	return left < s->group ? left : s->group;
}

/* Makes the state that of the output's group, if it is another one. */
static void
enter_group(const struct leat_plan_in *in, struct state *s, const struct leat_at *at)
{
	uint64_t g;

	if (at->pos - s->begin < s->inner.perm.n && s->inner.seed == in->seed && s->inner.pass == at->pass &&
	    s->perm.pass == at->pass)
		return;
	enter_pass(in, s, at->pass);
	g = group_at(s, at->pos, in->size);
	s->begin = group_begin(s, g, in->size);
	perm_update(&s->inner, group_begin(s, g + 1, in->size) - s->begin, in->seed, at->pass,
	            leat_mix64(leat_mix64(in->stream + 2) + g));
	s->short_from = g == s->short_at / s->group ? (s->short_at % s->group + 1) * s->block - s->missing : UINT64_MAX;
	s->first_block = g * s->group;
	for (uint64_t k = 0; s->chosen && k < blocks_of(s, g); k++)
		s->chosen[k] = leat_perm_at(&s->perm.perm, s->first_block + k);
}

/* The input that is sample `o` of the group's blocks, concatenated. */
static uint64_t
input_of(const struct state *s, uint64_t o)
{
	uint64_t k, j;

	if (o >= s->short_from)
		o += s->missing;
	k = o / s->block;
	j = s->chosen ? s->chosen[k] : leat_perm_at(&s->perm.perm, s->first_block + k);
	return j * s->block + o % s->block;
}

/* Outputs in a row, group by group. */
static void
map_block_many(const struct leat_plan_in *in, struct state *s, const uint64_t *pass, uint64_t *pos, size_t count)
{
	size_t end;

	for (size_t begin = 0; begin < count; begin = end) {
		struct leat_at at = {pass[begin], pos[begin]};

		enter_group(in, s, &at);
		for (end = begin; end < count && pass[end] == at.pass && pos[end] - s->begin < s->inner.perm.n; end++)
			pos[end] -= s->begin;
		leat_perm_many(&s->inner.perm, pos + begin, end - begin);
		for (size_t i = begin; i < end; i++)
			pos[i] = input_of(s, pos[i]);
	}
}

static enum leat_status
open_block(const struct shuffle *shuffle, const struct leat_plan_in *in, struct state *s, struct leat_err *err)
{
	uint64_t block = (uint64_t)shuffle->block, window = (uint64_t)shuffle->window;

	s->block = block < in->size ? block : in->size;
	s->blocks = (in->size - 1) / s->block + 1;
	s->group = window < s->blocks ? window : s->blocks;
	s->missing = s->blocks * s->block - in->size;
	if (s->group > MOST_CHOSEN)
		return LEAT_OK;
	s->chosen = leat_alloc_array(in->mem, s->group, sizeof(*s->chosen));
	return s->chosen ? LEAT_OK
	                 : leat_fail_mem(err, in->mem, s->group * sizeof(*s->chosen), "the blocks of shuffle");
}

/* ---- groups of blocks, for who reads them together ---- */

static bool
group_of(const void *params, const struct leat_plan_in *in, void *state, const struct leat_at *at,
         struct leat_plan_group *group)
{
	struct state *s = state;
	uint64_t g;

	if (((const struct shuffle *)params)->block == 0)
		return false;
	enter_pass(in, s, at->pass);
	g = group_at(s, at->pos, in->size);
	*group = (struct leat_plan_group){
		.pass = at->pass,
		.begin = group_begin(s, g, in->size),
		.end = group_begin(s, g + 1, in->size),
		.first_block = g * s->group,
		.blocks = blocks_of(s, g),
		.block = s->block,
		.most_blocks = s->group,
	};
	return true;
}

static void
block_of(const struct leat_plan_in *in, void *state, const struct leat_plan_group *group, uint64_t k, uint64_t *begin,
         uint64_t *end)
{
	struct state *s = state;

	enter_pass(in, s, group->pass);
	*begin = leat_perm_at(&s->perm.perm, group->first_block + k) * s->block;
	*end = in->size - *begin < s->block ? in->size : *begin + s->block;
}

/* ---- the op ---- */

static enum leat_status
check(void *params, struct leat_err *err)
{
	const struct shuffle *shuffle = params;

	if (shuffle->block > 0 && shuffle->window == 0)
		return leat_fail(err, LEAT_SPEC,
		                 "block=%" PRId64 " needs a window, the number of blocks to mix: "
		                 "shuffle(block=%" PRId64 ", window=16)",
		                 shuffle->block, shuffle->block);
	return LEAT_OK;
}

static void
plan_close(void *state, struct leat_mem *mem)
{
	struct state *s = state;

	if (s) {
		leat_free(mem, s->held);
		leat_free(mem, s->chosen);
	}
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
		status = open_block(shuffle, in, s, err);
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
		map_block_many(in, s, &at->pass, &at->pos, 1);
	} else if (shuffle->window > 0) {
		map_window(in, s, at);
	} else {
		perm_update(&s->perm, in->size, in->seed, at->pass, in->stream);
		at->pos = leat_perm_at(&s->perm.perm, at->pos);
	}
}

/* A full shuffle, pass by pass. A window steps through its state one by one. */
static void
plan_map_many(const void *params, const struct leat_plan_in *in, void *state, uint64_t *pass, uint64_t *pos,
              size_t count)
{
	const struct shuffle *shuffle = params;
	struct state *s = state;
	size_t end;

	if (shuffle->block > 0) {
		map_block_many(in, s, pass, pos, count);
		return;
	}
	for (size_t begin = 0; begin < count; begin = end) {
		struct leat_at at = {pass[begin], pos[begin]};

		end = begin + 1;
		if (shuffle->window > 0) {
			map_window(in, s, &at);
			pos[begin] = at.pos;
			continue;
		}
		while (end < count && pass[end] == pass[begin])
			end++;
		perm_update(&s->perm, in->size, in->seed, pass[begin], in->stream);
		leat_perm_many(&s->perm.perm, pos + begin, end - begin);
	}
}

/* Blocks of a group come together. A window has no such bound, and looking ahead in it is slow. */
static uint64_t
spread(const void *params, const struct leat_plan_in *in)
{
	const struct shuffle *shuffle = params;
	uint64_t block = (uint64_t)shuffle->block, samples;

	if (!block || __builtin_mul_overflow(block, (uint64_t)shuffle->window, &samples))
		return 0;
	return samples < in->size ? samples : in->size;
}

static bool
scatters(const void *params)
{
	return ((const struct shuffle *)params)->window == 0;
}

const struct leat_op leat_op_shuffle = {
	.name = "shuffle",
	.doc = "Shuffle the samples, in a new order every epoch.",
	.example = "shuffle(window=10000)",
	.kind = LEAT_OP_PLAN,
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct shuffle),
	.check = check,
	.on_plan.open = plan_open,
	.on_plan.map = plan_map,
	.on_plan.map_many = plan_map_many,
	.on_plan.close = plan_close,
	.on_plan.scatters = scatters,
	.on_plan.spread = spread,
	.on_plan.group = group_of,
	.on_plan.block = block_of,
};
