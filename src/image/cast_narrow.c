/* cast_narrow.c - casts from and to bool and the integers that cast.c leaves out
 *
 * One step to int64 and one from it give the same values as a direct cast: int64 holds all of the
 * narrow types, and saturating twice is saturating once. That also covers uint64 from and to integers,
 * but not from and to floats, which reach beyond int64. "Is it zero" has to be asked before a fraction
 * is cut off. Blocks stay in the first-level cache. */
#include "image/plain.h"

enum { BLOCK = 512 };

static int64_t
clamp(int64_t x, int64_t low, int64_t high)
{
	return x < low ? low : x > high ? high : x;
}

static void
widen(const void *in, enum leat_dtype from, size_t at, int64_t *out, size_t count)
{
	const uint8_t *bytes = (const uint8_t *)in + at * leat_dtype_size(from);

	switch (from) {
	case LEAT_BOOL:
		for (size_t i = 0; i < count; i++)
			out[i] = bytes[i] != 0;
		break;
	case LEAT_I8:
		for (size_t i = 0; i < count; i++)
			out[i] = ((const int8_t *)bytes)[i];
		break;
	case LEAT_I16:
		for (size_t i = 0; i < count; i++)
			out[i] = ((const int16_t *)(const void *)bytes)[i];
		break;
	case LEAT_U16:
		for (size_t i = 0; i < count; i++)
			out[i] = ((const uint16_t *)(const void *)bytes)[i];
		break;
	case LEAT_U32:
		for (size_t i = 0; i < count; i++)
			out[i] = ((const uint32_t *)(const void *)bytes)[i];
		break;
	case LEAT_U64:
		for (size_t i = 0; i < count; i++) {
			uint64_t x = ((const uint64_t *)(const void *)bytes)[i];

			out[i] = x > INT64_MAX ? INT64_MAX : (int64_t)x;
		}
		break;
	default:
		leat_cast_plain(bytes, from, out, LEAT_I64, count);
	}
}

static void
narrow(const int64_t *in, void *out, enum leat_dtype to, size_t at, size_t count)
{
	uint8_t *bytes = (uint8_t *)out + at * leat_dtype_size(to);

	switch (to) {
	case LEAT_BOOL:
		for (size_t i = 0; i < count; i++)
			bytes[i] = in[i] != 0;
		break;
	case LEAT_I8:
		for (size_t i = 0; i < count; i++)
			((int8_t *)bytes)[i] = (int8_t)clamp(in[i], INT8_MIN, INT8_MAX);
		break;
	case LEAT_I16:
		for (size_t i = 0; i < count; i++)
			((int16_t *)(void *)bytes)[i] = (int16_t)clamp(in[i], INT16_MIN, INT16_MAX);
		break;
	case LEAT_U16:
		for (size_t i = 0; i < count; i++)
			((uint16_t *)(void *)bytes)[i] = (uint16_t)clamp(in[i], 0, UINT16_MAX);
		break;
	case LEAT_U32:
		for (size_t i = 0; i < count; i++)
			((uint32_t *)(void *)bytes)[i] = (uint32_t)clamp(in[i], 0, UINT32_MAX);
		break;
	case LEAT_U64:
		for (size_t i = 0; i < count; i++)
			((uint64_t *)(void *)bytes)[i] = in[i] > 0 ? (uint64_t)in[i] : 0;
		break;
	default:
		leat_cast_plain(in, LEAT_I64, bytes, to, count);
	}
}

static bool
is_float(enum leat_dtype dtype)
{
	return dtype == LEAT_F16 || dtype == LEAT_BF16 || dtype == LEAT_F32 || dtype == LEAT_F64;
}

/* 0.5 and NaN are not zero. */
static void
floats_to_bools(const void *in, enum leat_dtype from, uint8_t *out, size_t count)
{
	double number[BLOCK];

	leat_cast_plain(in, from, number, LEAT_F64, count);
	for (size_t i = 0; i < count; i++)
		out[i] = !(number[i] == 0);
}

static void
floats_to_u64(const void *in, enum leat_dtype from, uint64_t *out, size_t count)
{
	double number[BLOCK];

	leat_cast_plain(in, from, number, LEAT_F64, count);
	for (size_t i = 0; i < count; i++) /* NaN becomes 0: comparisons with it are false */
		out[i] = number[i] >= 0x1p64 ? UINT64_MAX : number[i] > 0 ? (uint64_t)number[i] : 0;
}

static void
u64_to_floats(const uint64_t *in, void *out, enum leat_dtype to, size_t count)
{
	float number[BLOCK];

	if (to == LEAT_F64) {
		for (size_t i = 0; i < count; i++)
			((double *)out)[i] = (double)in[i];
		return;
	}
	for (size_t i = 0; i < count; i++)
		number[i] = (float)in[i];
	leat_cast_plain(number, LEAT_F32, out, to, count);
}

void
leat_cast_narrow(const void *in, enum leat_dtype from, void *out, enum leat_dtype to, size_t count)
{
	int64_t number[BLOCK];

	for (size_t at = 0; at < count; at += BLOCK) {
		const uint8_t *floats = (const uint8_t *)in + at * leat_dtype_size(from);
		size_t n = count - at < BLOCK ? count - at : BLOCK;

		if (to == LEAT_BOOL && is_float(from)) {
			floats_to_bools(floats, from, (uint8_t *)out + at, n);
		} else if (to == LEAT_U64 && is_float(from)) {
			floats_to_u64(floats, from, (uint64_t *)out + at, n);
		} else if (from == LEAT_U64 && is_float(to)) {
			u64_to_floats((const uint64_t *)in + at, (uint8_t *)out + at * leat_dtype_size(to), to, n);
		} else {
			widen(in, from, at, number, n);
			narrow(number, out, to, at, n);
		}
	}
}
