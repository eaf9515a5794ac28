/* rng.c - Philox4x32-10 random numbers and permutations
 *
 * No global state: results depend only on the arguments, on any thread and in any order. */
#include "base/rng.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"

enum { PHILOX_ROUNDS = 10 };

void
leat_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
	uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
	uint32_t k0 = key[0], k1 = key[1];

	for (int round = 0; round < PHILOX_ROUNDS; round++) {
		uint64_t p0 = (uint64_t)c0 * 0xd2511f53u, p1 = (uint64_t)c2 * 0xcd9e8d57u;

		c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
		c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c1 = (uint32_t)p1;
		c3 = (uint32_t)p0;
		k0 += 0x9e3779b9u;
		k1 += 0xbb67ae85u;
	}
	out[0] = c0;
	out[1] = c1;
	out[2] = c2;
	out[3] = c3;
}

uint64_t
leat_stream(const char *op, unsigned occurrence)
{
	return leat_mix64(leat_hash64(op) + occurrence);
}

void
leat_rng_init(struct leat_rng *rng, uint64_t seed, uint64_t epoch, uint64_t position, uint64_t stream)
{
	uint64_t key = leat_mix64(seed) ^ stream;

	memset(rng, 0, sizeof(*rng));
	rng->key[0] = (uint32_t)key;
	rng->key[1] = (uint32_t)(key >> 32);
	rng->counter[1] = (uint32_t)epoch;
	rng->counter[2] = (uint32_t)position;
	rng->counter[3] = (uint32_t)(position >> 32);
	rng->used = 4;
}

uint32_t
leat_rng_u32(struct leat_rng *rng)
{
	if (rng->used == 4) {
		leat_philox(rng->counter, rng->key, rng->out);
		rng->counter[0]++;
		rng->used = 0;
	}
	return rng->out[rng->used++];
}

uint64_t
leat_rng_u64(struct leat_rng *rng)
{
	uint64_t low = leat_rng_u32(rng);

	return low | (uint64_t)leat_rng_u32(rng) << 32;
}

/* x / 2^64 * n, rounded down: spreads 64 random bits over [0, n). */
static inline uint64_t
scale(uint64_t x, uint64_t n)
{
	return (uint64_t)((unsigned __int128)x * n >> 64);
}

uint64_t
leat_rng_below(struct leat_rng *rng, uint64_t n)
{
	return scale(leat_rng_u64(rng), n);
}

float
leat_rng_uniform(struct leat_rng *rng, float lo, float hi)
{
	float share = (float)(leat_rng_u32(rng) >> 8) * 0x1p-24f;
	float x = lo + (hi - lo) * share;

	/* The sum may round up to hi. */
	return x >= hi && lo < hi ? nextafterf(hi, lo) : x;
}

void
leat_rng_normals(struct leat_rng *rng, float *out, size_t count)
{
	for (size_t i = 0; i < count; i += 2) {
		/* In (0, 1]: 0 has no logarithm. */
		float share = (float)((leat_rng_u32(rng) >> 8) + 1) * 0x1p-24f;
		float turn = (float)(leat_rng_u32(rng) >> 8) * 0x1p-24f * 6.2831853f;
		float length = sqrtf(-2 * logf(share));

		out[i] = length * cosf(turn);
		if (i + 1 < count)
			out[i + 1] = length * sinf(turn);
	}
}

/* ceil(sqrt(n)) for n <= 2^62, exact: corrects the estimate in double, which may be off by a few. */
static uint64_t
root_up(uint64_t n)
{
	uint64_t root = (uint64_t)sqrt((double)n);

	while (root * root < n)
		root++;
	while (root > 0 && (root - 1) * (root - 1) >= n)
		root--;
	return root;
}

/* In (0, 1). */
static double
open_unit(struct leat_rng *rng)
{
	return ((double)(leat_rng_u64(rng) >> 12) + 0.5) * 0x1p-52;
}

static double
normal(struct leat_rng *rng)
{
	double r = sqrt(-2 * log(open_unit(rng)));

	return r * cos(2 * M_PI * open_unit(rng));
}

/* Marsaglia and Tsang (2000); for a < 1 draw with a + 1 and rescale. */
static double
gamma_variate(struct leat_rng *rng, double a)
{
	double boost = a < 1 ? pow(open_unit(rng), 1 / a) : 1;
	double d = (a < 1 ? a + 1 : a) - 1.0 / 3, c = 1 / sqrt(9 * d);

	for (;;) {
		double x = normal(rng), v = 1 + c * x;

		if (v > 0 && log(open_unit(rng)) < 0.5 * x * x + d - d * v * v * v + d * log(v * v * v))
			return boost * d * v * v * v;
	}
}

double
leat_rng_beta(struct leat_rng *rng, double a)
{
	double x = gamma_variate(rng, a), y = gamma_variate(rng, a);

	return x + y > 0 ? x / (x + y) : leat_rng_coin(rng); /* both can underflow for tiny a */
}

/* cols must be even: a round along a side of odd length is an even permutation for every key, so if both sides
 * were odd, half of all permutations could never occur. */
void
leat_perm_init(struct leat_perm *perm, uint64_t n, uint64_t seed, uint64_t epoch, uint64_t stream)
{
	uint64_t root = root_up(n);
	struct leat_rng rng;

	perm->n = n;
	perm->cols = root + root % 2;
	perm->rows = n == 0 ? 0 : (n - 1) / perm->cols + 1;
	perm->rounds = n < LEAT_PERM_SMALL ? LEAT_PERM_SMALL_ROUNDS : LEAT_PERM_ROUNDS;
	leat_rng_init(&rng, seed, epoch, UINT64_MAX, stream);
	for (int k = 0; k < perm->rounds; k++)
		perm->key[k] = leat_rng_u64(&rng);
}

/* The round function, with values in [0, m). */
static inline uint64_t
round_number(uint64_t key, uint64_t v, uint64_t m)
{
	return scale(leat_mix64(v ^ key), m);
}

/* Needs a < m and b <= m, so one subtraction is enough; m <= 2^62, so the sum cannot overflow. */
static inline uint64_t
add_mod(uint64_t a, uint64_t b, uint64_t m)
{
	uint64_t sum = a + b;

	return sum >= m ? sum - m : sum;
}

uint64_t
leat_perm_at(const struct leat_perm *perm, uint64_t i)
{
	uint64_t rows = perm->rows, cols = perm->cols;

	if (perm->n <= 1)
		return i;
	do {
		uint64_t l = i / cols, r = i % cols;

		for (int k = 0; k < perm->rounds; k += 2) {
			l = add_mod(l, round_number(perm->key[k], r, rows), rows);
			r = add_mod(r, round_number(perm->key[k + 1], l, cols), cols);
		}
		i = l * cols + r;
	} while (i >= perm->n);
	return i;
}

/* A round needs the result of the one before. Several numbers at a time keep the multipliers busy meanwhile. */
enum { LANES = 4 };

static inline void
permute_lanes(const struct leat_perm *perm, uint64_t *i)
{
	uint64_t rows = perm->rows, cols = perm->cols, l[LANES], r[LANES];

	for (int j = 0; j < LANES; j++) {
		l[j] = i[j] / cols;
		r[j] = i[j] % cols;
	}
	for (int k = 0; k < perm->rounds; k += 2) {
		for (int j = 0; j < LANES; j++)
			l[j] = add_mod(l[j], round_number(perm->key[k], r[j], rows), rows);
		for (int j = 0; j < LANES; j++)
			r[j] = add_mod(r[j], round_number(perm->key[k + 1], l[j], cols), cols);
	}
	for (int j = 0; j < LANES; j++)
		i[j] = l[j] * cols + r[j];
}

void
leat_perm_many(const struct leat_perm *perm, uint64_t *i, size_t count)
{
	size_t done = 0;

	if (perm->n <= 1)
		return;
	for (; done + LANES <= count; done += LANES) {
		permute_lanes(perm, i + done);
		for (size_t j = done; j < done + LANES; j++)
			if (i[j] >= perm->n) /* few: the walk goes on */
				i[j] = leat_perm_at(perm, i[j]);
	}
	for (; done < count; done++)
		i[done] = leat_perm_at(perm, i[done]);
}

uint64_t
leat_perm_inverse(const struct leat_perm *perm, uint64_t i)
{
	uint64_t rows = perm->rows, cols = perm->cols;

	if (perm->n <= 1)
		return i;
	do {
		uint64_t l = i / cols, r = i % cols;

		for (int k = perm->rounds - 2; k >= 0; k -= 2) {
			r = add_mod(r, cols - round_number(perm->key[k + 1], l, cols), cols);
			l = add_mod(l, rows - round_number(perm->key[k], r, rows), rows);
		}
		i = l * cols + r;
	} while (i >= perm->n);
	return i;
}
