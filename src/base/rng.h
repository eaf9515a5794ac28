/* rng.h - counter-based random numbers: Philox4x32-10 (Salmon et al., 2011)
 *
 * (seed, epoch, position, stream id) determine all numbers of a stream, so samples can be
 * processed on any thread, in any order. docs/PLAN.md has the layout:
 *	key     = the two 32-bit halves (low first) of leat_mix64(seed) ^ stream
 *	counter = { block, low 32 bits of epoch, low and high half of position }
 * Each block 0, 1, 2, ... yields four 32-bit numbers. */
#ifndef LEAT_BASE_RNG_H
#define LEAT_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

void leat_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

struct leat_rng {
	uint32_t key[2], counter[4], out[4];
	unsigned used; /* of out */
};

/* An op's stream id, from its name and its occurrence in the spec, counted from 0. */
uint64_t leat_stream(const char *op, unsigned occurrence); /* leat_mix64(leat_hash64(op) + occurrence) */

void leat_rng_init(struct leat_rng *rng, uint64_t seed, uint64_t epoch, uint64_t position, uint64_t stream);
uint32_t leat_rng_u32(struct leat_rng *rng);
uint64_t leat_rng_u64(struct leat_rng *rng);               /* low half is drawn first */
uint64_t leat_rng_below(struct leat_rng *rng, uint64_t n); /* [0, n): high 64 bits of u64 * n */
float leat_rng_uniform(struct leat_rng *rng, float lo,
                       float hi); /* [lo, hi): lo + (hi - lo) * (u32 >> 8) / 2^24, never hi */
/* `count` standard normal numbers, each pair from two u32 (Box-Muller, in float). */
void leat_rng_normals(struct leat_rng *rng, float *out, size_t count);
static inline int
leat_rng_coin(struct leat_rng *rng)
{
	return (int)(leat_rng_u32(rng) & 1);
}

/* Beta(a, a), in [0, 1]: near 0 and 1 for a < 1, near 1/2 for a > 1. */
double leat_rng_beta(struct leat_rng *rng, double a);

/* A pseudo-random permutation of [0, n), n <= 2^62, in O(1) memory: a Feistel network over
 * rows x cols >= n values, repeated until the result is below n (cycle walking). docs/PLAN.md has the
 * formula. Small domains mix less per round, so they get more rounds. */
enum { LEAT_PERM_SMALL = 1024, LEAT_PERM_SMALL_ROUNDS = 32, LEAT_PERM_ROUNDS = 8 };

struct leat_perm {
	uint64_t n, rows, cols; /* cols is even */
	int rounds;
	uint64_t key[LEAT_PERM_SMALL_ROUNDS]; /* one per round */
};

void leat_perm_init(struct leat_perm *perm, uint64_t n, uint64_t seed, uint64_t epoch, uint64_t stream);
uint64_t leat_perm_at(const struct leat_perm *perm, uint64_t i);              /* i < n */
void leat_perm_many(const struct leat_perm *perm, uint64_t *i, size_t count); /* leat_perm_at of each, in place */
uint64_t leat_perm_inverse(const struct leat_perm *perm, uint64_t i);         /* leat_perm_at(inverse(i)) == i */

#endif
