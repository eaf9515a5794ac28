/* crc32c.c - CRC-32C (Castagnoli): the CPU's instruction where available, tables otherwise
 *
 * In this file, a state is the register before the final inversion: a polynomial over
 * GF(2) modulo P, bit-reversed as usual (bit 31 is x^0). Both variants give the same
 * results. CPU support is checked on each call: it costs one load and needs no global state. */
#include "base/hash.h"

#include "base/copy.h"

/* ---- portable: slicing by 8 ---- */

/* Processing one byte is linear, so each of a table's 256 entries is the XOR of its entries at powers of two. */
#define BIT(i, bit, value) ((uint32_t)((i) >> (bit)&1) * (value))
#define ENTRY(i, v0, v1, v2, v3, v4, v5, v6, v7)                                                                       \
	(BIT(i, 0, v0) ^ BIT(i, 1, v1) ^ BIT(i, 2, v2) ^ BIT(i, 3, v3) ^ BIT(i, 4, v4) ^ BIT(i, 5, v5) ^               \
	 BIT(i, 6, v6) ^ BIT(i, 7, v7))
#define ENTRIES_4(i, ...)                                                                                              \
	ENTRY(i, __VA_ARGS__), ENTRY((i) + 1, __VA_ARGS__), ENTRY((i) + 2, __VA_ARGS__), ENTRY((i) + 3, __VA_ARGS__)
#define ENTRIES_16(i, ...)                                                                                             \
	ENTRIES_4(i, __VA_ARGS__), ENTRIES_4((i) + 4, __VA_ARGS__), ENTRIES_4((i) + 8, __VA_ARGS__),                   \
		ENTRIES_4((i) + 12, __VA_ARGS__)
#define ENTRIES_64(i, ...)                                                                                             \
	ENTRIES_16(i, __VA_ARGS__), ENTRIES_16((i) + 16, __VA_ARGS__), ENTRIES_16((i) + 32, __VA_ARGS__),              \
		ENTRIES_16((i) + 48, __VA_ARGS__)
#define TABLE(...)                                                                                                     \
	{                                                                                                              \
		ENTRIES_64(0, __VA_ARGS__), ENTRIES_64(64, __VA_ARGS__), ENTRIES_64(128, __VA_ARGS__),                 \
			ENTRIES_64(192, __VA_ARGS__)                                                                   \
	}

/* after[k][b]: the state after byte b and k zero bytes. Read right to left, row by row, each number is
 * the previous one times x mod P, starting with P. */
static const uint32_t after[8][256] = {
	TABLE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc, 0x82f63b78),
	TABLE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604, 0xfbc3faf9),
	TABLE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9, 0x8b277743),
	TABLE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7, 0x52a0c93f),
	TABLE(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae, 0x6ea2d55c),
	TABLE(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb, 0x1c08b7d6),
	TABLE(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a, 0xf56e0ef4),
	TABLE(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32, 0x34019664),
};

/* The state after four bytes and then `more` zero bytes. */
static inline uint32_t
four_bytes(uint32_t bytes, int more)
{
	return (after[more + 3][bytes & 0xff] ^ after[more + 2][bytes >> 8 & 0xff]) ^
	       (after[more + 1][bytes >> 16 & 0xff] ^ after[more][bytes >> 24]);
}

uint32_t
leat_crc32c_portable(uint32_t crc, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	uint32_t state = ~crc;

	for (; len >= 8; len -= 8, p += 8)
		state = four_bytes(leat_load32(p) ^ state, 4) ^ four_bytes(leat_load32(p + 4), 0);
	for (; len > 0; len--)
		state = state >> 8 ^ after[0][(state ^ *p++) & 0xff];
	return ~state;
}

/* ---- x86-64: SSE4.2's crc32 with PCLMUL ---- */

#if defined(__x86_64__)
#include <nmmintrin.h>
#include <wmmintrin.h>

#define HARDWARE __attribute__((target("sse4.2,pclmul")))

/* The instruction takes 8 bytes per cycle but has a latency of three cycles. A long input is therefore
 * split into three equal parts, whose states are computed in parallel and then combined:
 *
 *	state(ABC) = state(A) x^2n + state(B) x^n + state(C),  n = bits of a part
 *
 * A carry-less product of two states followed by the instruction is a b x^33 mod P. Let e(n) be
 * x^(n-33) mod P; then times(a, e(n)) shifts a by n bits, and times(e(m), e(n)) = e(m + n). So e for
 * any length comes from two short tables, computed while the parts are being read. */
enum { MAX_PART = 255, MIN_SPLIT = 96 }; /* in words; in bytes: splitting shorter inputs does not pay */

static const uint32_t e_words[16] = {
	/* e(64 i) */
	0xa9cdda0d, 0x00000001, 0x493c7d27, 0xf20c0dfe, 0xba4fc28e, 0x3da6d0cb, 0xddc0152b, 0x1c291d04,
	0x9e4addf8, 0x740eef02, 0x39d3b296, 0x083a6eec, 0x0715ce53, 0xc49f4f67, 0x47db8317, 0x2ad91c30,
};
static const uint32_t e_16_words[16] = {
	/* e(1024 i) */
	0xa9cdda0d, 0x0d3b6092, 0xb9e02b86, 0xd270f1a2, 0xdd7e3b0c, 0x6b749fb2, 0xd7a4825c, 0x68bce87a,
	0x170076fa, 0x86d8e4d2, 0xdd66cbbb, 0xd813b325, 0x9ef68d35, 0x363bd6b3, 0xaa7c7ad5, 0xf48642e9,
};

HARDWARE static inline uint64_t
product(uint64_t a, uint64_t b)
{
	__m128i wide = _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)a), _mm_cvtsi64_si128((int64_t)b), 0);

	return (uint64_t)_mm_cvtsi128_si64(wide);
}

HARDWARE static inline uint64_t
times(uint64_t a, uint64_t b)
{
	return _mm_crc32_u64(0, product(a, b));
}

/* The state after 3 `part` words at p, 1 <= part <= MAX_PART. */
HARDWARE static inline uint64_t
three_parts(uint64_t state, const unsigned char *p, size_t part)
{
	uint64_t e_part = times(e_words[part % 16], e_16_words[part / 16]), e_two_parts = times(e_part, e_part);
	const unsigned char *pb = p + 8 * part, *pc = pb + 8 * part, *last = pb - 8;
	uint64_t a = state, b = 0, c = 0;

	for (; p < last; p += 8, pb += 8, pc += 8) {
		a = _mm_crc32_u64(a, leat_load64(p));
		b = _mm_crc32_u64(b, leat_load64(pb));
		c = _mm_crc32_u64(c, leat_load64(pc));
	}
	a = _mm_crc32_u64(a, leat_load64(p));
	b = _mm_crc32_u64(b, leat_load64(pb));
	/* XORing the products into c's last word saves two instructions. */
	return _mm_crc32_u64(c, leat_load64(pc) ^ product(a, e_two_parts) ^ product(b, e_part));
}

/* The last 1 to 7 bytes of an input of at least 8. Placed in the high bytes of a word they take one
 * instruction; the part of the state they do not cover is only shifted. */
HARDWARE static inline uint64_t
last_bytes(uint64_t state, const unsigned char *end, unsigned count)
{
	uint64_t word = leat_load64(end - 8) >> (64 - 8 * count) ^ state;

	return _mm_crc32_u64(0, word << (64 - 8 * count)) ^ state >> 8 * count;
}

HARDWARE static uint64_t
few_bytes(uint64_t state, const unsigned char *p, size_t len)
{
	uint32_t s = (uint32_t)state;

	if (len & 4) {
		s = _mm_crc32_u32(s, leat_load32(p));
		p += 4;
	}
	for (len &= 3; len > 0; len--)
		s = _mm_crc32_u8(s, *p++);
	return s;
}

HARDWARE static uint32_t
hardware(uint32_t crc, const unsigned char *p, size_t len)
{
	uint64_t state = ~crc;

	if (len < 8)
		return ~(uint32_t)few_bytes(state, p, len);
	while (len >= MIN_SPLIT) {
		size_t part = len / 24 < MAX_PART ? len / 24 : MAX_PART;

		state = three_parts(state, p, part);
		p += 24 * part;
		len -= 24 * part;
	}
	for (; len >= 8; len -= 8, p += 8)
		state = _mm_crc32_u64(state, leat_load64(p));
	if (len > 0)
		state = last_bytes(state, p + len, (unsigned)len);
	return ~(uint32_t)state;
}

uint32_t
leat_crc32c(uint32_t crc, const void *bytes, size_t len)
{
	if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"))
		return hardware(crc, bytes, len);
	return leat_crc32c_portable(crc, bytes, len);
}

#else

uint32_t
leat_crc32c(uint32_t crc, const void *bytes, size_t len)
{
	return leat_crc32c_portable(crc, bytes, len);
}

#endif

uint32_t
leat_crc32c_copy(uint32_t crc, void *to, const void *from, size_t len, bool past_cache)
{
	enum { PIECE = 3 * 8 * 248 }; /* whole cache lines that stay in L1 between the two passes */
	const unsigned char *in = from;
	unsigned char *out = to;

	while (len > 0) {
		size_t piece = PIECE - (uintptr_t)out % LEAT_LINE;

		if (piece > len)
			piece = len;
		crc = leat_crc32c(crc, in, piece);
		leat_copy(out, in, piece, past_cache);
		in += piece;
		out += piece;
		len -= piece;
	}
	return crc;
}

/* a * b mod P */
static uint32_t
multiply(uint32_t a, uint32_t b)
{
	const uint32_t p = 0x82f63b78;
	uint32_t sum = 0;

	for (uint32_t bit = (uint32_t)1 << 31; bit; bit >>= 1) {
		if (a & bit)
			sum ^= b;
		b = b >> 1 ^ (b & 1 ? p : 0);
	}
	return sum;
}

/* A checksum is linear but for its initial and final inversion, and these cancel in a difference: that of the replaced
 * bytes is moved past those that follow, times x^8 for each. */
uint32_t
leat_crc32c_replace(uint32_t crc, const void *was, const void *now, size_t len, uint64_t following)
{
	uint32_t difference = leat_crc32c(0, was, len) ^ leat_crc32c(0, now, len);
	uint32_t power = (uint32_t)1 << 23; /* x^8 */

	for (; following; following >>= 1) {
		if (following & 1)
			difference = multiply(difference, power);
		power = multiply(power, power);
	}
	return crc ^ difference;
}

uint32_t
leat_crc32c_mask(uint32_t crc)
{
	return (crc >> 15 | crc << 17) + 0xa282ead8u;
}
