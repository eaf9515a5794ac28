/* cast.c - convert between number types
 *
 * One macro makes all 49 pairs: read an element, widen it if needed (16-bit floats compute as f32), convert, store.
 * Conversions to integers saturate; see image.h. 16-bit floats are handled as bits in a uint16_t, because not every
 * compiler has types for them. cast_avx2.c has faster versions of common pairs, cast_narrow.c has
 * bool and the other integers. */
#include "image/plain.h"

#include <string.h>

#include "image/cast.h"
#include "image/cpu.h"

static uint32_t
float_bits(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

static float
float_of(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

/* f16: sign, 5 bits of exponent (bias 15), 10 of mantissa. */
static uint16_t
f16_from(float x)
{
	uint32_t bits = float_bits(x), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;

	if (rest > 0x7f800000u) /* NaN: quiet */
		return (uint16_t)(sign | 0x7e00u);
	if (rest >= 0x477ff000u) /* 65520 and more round to infinity */
		return (uint16_t)(sign | 0x7c00u);
	/* Below 2^-14 the spacing is 2^-24, which is also the last bit of 0.5: adding 0.5 rounds to it. */
	if (rest < 0x38800000u)
		return (uint16_t)(sign | (float_bits(float_of(rest) + 0.5f) - float_bits(0.5f)));
	/* Add half of the last kept bit, minus one if that bit is 0: ties to even. */
	rest += 0xfffu + (rest >> 13 & 1);
	return (uint16_t)(sign | (rest - 0x38000000u) >> 13);
}

static float
f16_to(uint16_t half)
{
	uint32_t sign = (uint32_t)(half & 0x8000u) << 16, rest = half & 0x7fffu;

	if (rest >= 0x7c00u) /* infinity, NaN */
		return float_of(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
	if (rest < 0x0400u) /* zero and subnormals: multiples of 2^-24 */
		return float_of(sign | float_bits((float)rest * 0x1p-24f));
	return float_of(sign | ((rest << 13) + 0x38000000u));
}

/* bf16: the upper half of an f32. */
static uint16_t
bf16_from(float x)
{
	uint32_t bits = float_bits(x);

	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)(bits >> 16 | 0x40u);
	return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

static float
bf16_to(uint16_t half)
{
	return float_of((uint32_t)half << 16);
}

/* To integers. Comparisons with NaN are false, so it becomes 0. The bounds are exact in double. */
static uint8_t
u8_from_f64(double x)
{
	return x >= 255 ? 255 : x > 0 ? (uint8_t)x : 0;
}

static uint8_t
u8_from_f32(float x)
{
	return x >= 255 ? 255 : x > 0 ? (uint8_t)x : 0;
}

static uint8_t
u8_from_i64(int64_t x)
{
	return (uint8_t)(x > 255 ? 255 : x > 0 ? x : 0);
}

static int32_t
i32_from_f64(double x)
{
	if (x >= 2147483647.0)
		return INT32_MAX;
	return x > -2147483648.0 ? (int32_t)x : x <= -2147483648.0 ? INT32_MIN : 0;
}

static int32_t
i32_from_i64(int64_t x)
{
	return (int32_t)(x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : x);
}

static int64_t
i64_from_f64(double x)
{
	if (x >= 0x1p63)
		return INT64_MAX;
	return x > -0x1p63 ? (int64_t)x : x <= -0x1p63 ? INT64_MIN : 0;
}

#define SAME(x) (x)
#define AS_F32(x) ((float)(x))
#define AS_F64(x) ((double)(x))
#define TO_F16(x) f16_from((float)(x))
#define TO_BF16(x) bf16_from((float)(x))

#define LOOP(FROM, READ, TO, CONVERT)                                                                                  \
	do {                                                                                                           \
		const FROM *x = in;                                                                                    \
		TO *y = out;                                                                                           \
                                                                                                                       \
		for (size_t i = 0; i < count; i++)                                                                     \
			y[i] = CONVERT(READ(x[i]));                                                                    \
	} while (0)

/* One function per input type; the last three arguments convert the result of READ to an integer. */
#define CAST_FROM(name, FROM, READ, TO_U8, TO_I32, TO_I64)                                                             \
	static void name(const void *restrict in, void *restrict out, enum leat_dtype to, size_t count)                \
	{                                                                                                              \
		switch (to) {                                                                                          \
		case LEAT_U8:                                                                                          \
			LOOP(FROM, READ, uint8_t, TO_U8);                                                              \
			break;                                                                                         \
		case LEAT_I32:                                                                                         \
			LOOP(FROM, READ, int32_t, TO_I32);                                                             \
			break;                                                                                         \
		case LEAT_I64:                                                                                         \
			LOOP(FROM, READ, int64_t, TO_I64);                                                             \
			break;                                                                                         \
		case LEAT_F16:                                                                                         \
			LOOP(FROM, READ, uint16_t, TO_F16);                                                            \
			break;                                                                                         \
		case LEAT_BF16:                                                                                        \
			LOOP(FROM, READ, uint16_t, TO_BF16);                                                           \
			break;                                                                                         \
		case LEAT_F32:                                                                                         \
			LOOP(FROM, READ, float, AS_F32);                                                               \
			break;                                                                                         \
		case LEAT_F64:                                                                                         \
			LOOP(FROM, READ, double, AS_F64);                                                              \
			break;                                                                                         \
		default: /* leat_cast_narrow's */                                                                      \
			break;                                                                                         \
		}                                                                                                      \
	}

CAST_FROM(cast_u8, uint8_t, SAME, SAME, SAME, SAME)
CAST_FROM(cast_i32, int32_t, SAME, u8_from_i64, SAME, SAME)
CAST_FROM(cast_i64, int64_t, SAME, u8_from_i64, i32_from_i64, SAME)
CAST_FROM(cast_f16, uint16_t, f16_to, u8_from_f32, i32_from_f64, i64_from_f64)
CAST_FROM(cast_bf16, uint16_t, bf16_to, u8_from_f32, i32_from_f64, i64_from_f64)
CAST_FROM(cast_f32, float, SAME, u8_from_f32, i32_from_f64, i64_from_f64)
CAST_FROM(cast_f64, double, SAME, u8_from_f64, i32_from_f64, i64_from_f64)

static bool
has_no_loop(enum leat_dtype dtype)
{
	return dtype == LEAT_BOOL || dtype == LEAT_I8 || dtype == LEAT_I16 || dtype == LEAT_U16 || dtype == LEAT_U32 ||
	       dtype == LEAT_U64;
}

void
leat_cast_plain(const void *in, enum leat_dtype from, void *out, enum leat_dtype to, size_t count)
{
	if (from == to) { /* bit for bit: NaNs keep their payload */
		memcpy(out, in, count * leat_dtype_size(from));
		return;
	}
	if (has_no_loop(from) || has_no_loop(to)) {
		leat_cast_narrow(in, from, out, to, count);
		return;
	}
	switch (from) {
	case LEAT_U8:
		cast_u8(in, out, to, count);
		break;
	case LEAT_I32:
		cast_i32(in, out, to, count);
		break;
	case LEAT_I64:
		cast_i64(in, out, to, count);
		break;
	case LEAT_F16:
		cast_f16(in, out, to, count);
		break;
	case LEAT_BF16:
		cast_bf16(in, out, to, count);
		break;
	case LEAT_F32:
		cast_f32(in, out, to, count);
		break;
	case LEAT_F64:
		cast_f64(in, out, to, count);
		break;
	default:
		break;
	}
}

void
leat_cast(const void *in, enum leat_dtype from, void *out, enum leat_dtype to, size_t count)
{
	size_t done = 0;

	if (from != to && leat_cpu_has_avx2())
		done = leat_cast_avx2(in, from, out, to, count);
	if (done < count)
		leat_cast_plain((const uint8_t *)in + done * leat_dtype_size(from), from,
		                (uint8_t *)out + done * leat_dtype_size(to), to, count - done);
}
