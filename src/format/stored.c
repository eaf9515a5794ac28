/* stored.c - see stored.h
 *
 * On little-endian machines, compilers vectorize the loops over unaligned loads. */
#include "format/stored.h"

#include <string.h>

#include "base/hash.h"

static const struct leat_stored types[] = {
	{"bool", 1, LEAT_U8, 0, 1},
	{"uint8", 1, LEAT_U8, 0, UINT8_MAX},
	{"int8", 1, LEAT_I32, INT8_MIN, INT8_MAX},
	{"uint16", 2, LEAT_I32, 0, UINT16_MAX},
	{"int16", 2, LEAT_I32, INT16_MIN, INT16_MAX},
	{"int32", 4, LEAT_I32, INT32_MIN, INT32_MAX},
	{"uint32", 4, LEAT_I64, 0, UINT32_MAX},
	{"int64", 8, LEAT_I64, INT64_MIN, INT64_MAX},
	{"uint64", 8, LEAT_I64, 0, INT64_MAX},
	{"float16", 2, LEAT_F16, 0, 0},
	{"bfloat16", 2, LEAT_BF16, 0, 0},
	{"float32", 4, LEAT_F32, 0, 0},
	{"float64", 8, LEAT_F64, 0, 0},
};

const struct leat_stored *
leat_stored_find(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strlen(types[i].name) == len && memcmp(types[i].name, name, len) == 0)
			return &types[i];
	return NULL;
}

static uint16_t
load16(const unsigned char *bytes)
{
	return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static void
widen(const struct leat_stored *type, int32_t *to, const unsigned char *from, size_t count)
{
	if (type->width == 1)
		for (size_t i = 0; i < count; i++)
			to[i] = (int8_t)from[i];
	else if (type->min < 0)
		for (size_t i = 0; i < count; i++)
			to[i] = (int16_t)load16(from + 2 * i);
	else
		for (size_t i = 0; i < count; i++)
			to[i] = load16(from + 2 * i);
}

static bool
copy_wide(const struct leat_stored *type, uint64_t *to, const unsigned char *from, size_t count)
{
	uint64_t any = 0;

	for (size_t i = 0; i < count; i++) {
		to[i] = leat_load64(from + 8 * i);
		any |= to[i];
	}
	return type->min < 0 || type->max == 0 || !(any >> 63);
}

bool
leat_stored_copy(const struct leat_stored *type, void *to, const unsigned char *from, size_t count)
{
	uint16_t *to16 = to;
	uint32_t *to32 = to;
	uint64_t *to64 = to;

	if (leat_stored_growth(type) > 1 && type->dtype == LEAT_I32) {
		widen(type, to, from, count);
	} else if (leat_stored_growth(type) > 1) {
		for (size_t i = 0; i < count; i++)
			to64[i] = leat_load32(from + 4 * i);
	} else if (type->width == 1) {
		memcpy(to, from, count);
	} else if (type->width == 2) {
		for (size_t i = 0; i < count; i++)
			to16[i] = load16(from + 2 * i);
	} else if (type->width == 4) {
		for (size_t i = 0; i < count; i++)
			to32[i] = leat_load32(from + 4 * i);
	} else {
		return copy_wide(type, to64, from, count);
	}
	return true;
}

bool
leat_stored_narrow(const struct leat_stored *type, void *to, const int64_t *from, size_t count)
{
	uint8_t *to8 = to;
	int32_t *to32 = to;
	bool fit = true;

	for (size_t i = 0; i < count; i++)
		fit &= from[i] >= type->min && from[i] <= type->max;
	if (!fit)
		return false;
	if (type->dtype == LEAT_U8)
		for (size_t i = 0; i < count; i++)
			to8[i] = (uint8_t)from[i];
	else if (type->dtype == LEAT_I32)
		for (size_t i = 0; i < count; i++)
			to32[i] = (int32_t)from[i];
	else if (to != from)
		memcpy(to, from, count * sizeof(*from));
	return true;
}
