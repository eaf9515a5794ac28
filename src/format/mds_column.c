/* mds_column.c - encodings of MDS columns, and the values in their bytes
 *
 * Types that Leat does not have become the next one that holds all their values: int8, int16
 * and uint16 are int32, uint32 and uint64 are int64 (where a value beyond it is an error).
 * Images, text and everything else that is not numbers stays bytes; pickles are never
 * unpickled. No state: any thread. */
#include "format/mds.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* The types of numbers, with the code that arrays carry. */
static const struct type {
	const char *name;
	uint8_t code, width;
	enum leat_dtype dtype;
} types[] = {
	{"uint8", 8, 1, LEAT_U8},   {"int8", 9, 1, LEAT_I32},     {"uint16", 16, 2, LEAT_I32},
	{"int16", 17, 2, LEAT_I32}, {"float16", 18, 2, LEAT_F16}, {"uint32", 32, 4, LEAT_I64},
	{"int32", 33, 4, LEAT_I32}, {"float32", 34, 4, LEAT_F32}, {"uint64", 64, 8, LEAT_I64},
	{"int64", 65, 8, LEAT_I64}, {"float64", 66, 8, LEAT_F64},
};

enum { TYPES = sizeof(types) / sizeof(types[0]) };

static int
type_named(const char *name, size_t len)
{
	for (int i = 0; i < TYPES; i++)
		if (strlen(types[i].name) == len && memcmp(types[i].name, name, len) == 0)
			return i;
	return -1;
}

static int
type_coded(uint8_t code)
{
	for (int i = 0; i < TYPES; i++)
		if (types[i].code == code)
			return i;
	return -1;
}

/* ---- encodings ---- */

/* "3,4" */
static bool
parse_shape(struct leat_mds_column *column, const char *text)
{
	int64_t product = 1;

	for (column->ndim = 0; column->ndim < LEAT_MAX_DIMS; column->ndim++) {
		int64_t dim = 0;

		if (*text < '0' || *text > '9')
			return false;
		for (; *text >= '0' && *text <= '9' && dim <= UINT32_MAX; text++)
			dim = 10 * dim + (*text - '0');
		if (dim < 1 || dim > UINT32_MAX / product)
			return false;
		product *= dim;
		column->shape[column->ndim] = dim;
		if (*text == '\0') {
			column->ndim++;
			return true;
		}
		if (*text++ != ',')
			return false;
	}
	return false;
}

/* What follows "ndarray". */
static enum leat_mds_encoding
parse_array(struct leat_mds_column *column, const char *text)
{
	const char *shape;

	column->type = column->ndim = -1;
	if (*text == ':')
		text++;
	if (*text == '\0')
		return LEAT_MDS_TYPED;
	shape = strchr(text, ':');
	column->type = type_named(text, shape ? (size_t)(shape - text) : strlen(text));
	if (column->type < 0)
		return LEAT_MDS_UNKNOWN;
	if (!shape)
		return LEAT_MDS_SHAPED;
	return parse_shape(column, shape + 1) ? LEAT_MDS_ARRAY : LEAT_MDS_UNKNOWN;
}

static bool
is_bytes(const char *encoding)
{
	static const char *const names[] = {
		"bytes",      "str",       "str_int",   "str_float",  "str_decimal", "pil", "jpeg", "png",
		"jpeg_array", "jpegarray", "list[pil]", "list[jpeg]", "list[png]",   "pkl", "json",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(encoding, names[i]) == 0)
			return true;
	return false;
}

static uint64_t
elements(const int64_t *shape, int ndim)
{
	uint64_t count = 1;

	for (int d = 0; d < ndim; d++)
		count *= (uint64_t)shape[d];
	return count;
}

bool
leat_mds_parse(struct leat_mds_column *column, const char *encoding, uint32_t size)
{
	*column = (struct leat_mds_column){.encoding = LEAT_MDS_UNKNOWN, .size = size, .field = -1};
	if (is_bytes(encoding)) {
		column->encoding = LEAT_MDS_BYTES;
		return true;
	}
	if (strncmp(encoding, "ndarray", 7) == 0 && (encoding[7] == '\0' || encoding[7] == ':')) {
		column->encoding = parse_array(column, encoding + 7);
		if (column->encoding != LEAT_MDS_ARRAY)
			return column->encoding == LEAT_MDS_UNKNOWN || size == 0;
		return size == elements(column->shape, column->ndim) * types[column->type].width;
	}
	column->type = type_named(strcmp(encoding, "int") == 0 ? "int64" : encoding,
	                          strcmp(encoding, "int") == 0 ? 5 : strlen(encoding));
	if (column->type < 0)
		return true;
	column->encoding = LEAT_MDS_NUMBER;
	return size == types[column->type].width;
}

void
leat_mds_field(const struct leat_mds_column *column, struct leat_field *field)
{
	if (column->encoding == LEAT_MDS_BYTES) {
		field->dtype = LEAT_U8;
		field->ndim = 1;
		field->shape[0] = column->size ? (int64_t)column->size : -1;
		return;
	}
	field->dtype = types[column->type].dtype;
	field->ndim = column->ndim;
	for (int d = 0; d < column->ndim; d++)
		field->shape[d] = column->encoding == LEAT_MDS_ARRAY ? column->shape[d] : -1;
}

unsigned
leat_mds_growth(const struct leat_mds_column *column)
{
	if (column->encoding == LEAT_MDS_BYTES)
		return 0;
	return (unsigned)leat_dtype_size(types[column->type].dtype) / types[column->type].width;
}

/* ---- values ---- */

/* The type and shape that an array tells itself. */
struct told {
	int type, ndim;
	uint64_t shape[64];
	size_t at; /* of its numbers */
};

static const char *
read_told(const struct leat_mds_column *column, const unsigned char *bytes, size_t len, struct told *told)
{
	size_t width;

	told->at = 0;
	told->type = column->type;
	if (column->encoding == LEAT_MDS_TYPED) {
		told->type = len ? type_coded(bytes[told->at++]) : -1;
		if (told->type < 0)
			return "has an array of a type that is none";
	}
	if (told->at == len)
		return "has an array that is cut off";
	told->ndim = bytes[told->at] >> 2;
	width = (size_t)1 << (bytes[told->at++] & 3);
	if ((size_t)told->ndim * width > len - told->at)
		return "has an array that is cut off";
	for (int d = 0; d < told->ndim; d++, told->at += width) {
		told->shape[d] = 0;
		for (size_t k = 0; k < width; k++)
			told->shape[d] |= (uint64_t)bytes[told->at + k] << (8 * k);
	}
	return NULL;
}

const char *
leat_mds_learn(struct leat_mds_column *column, const unsigned char *bytes, size_t len)
{
	struct told told;
	const char *fault;

	if (column->encoding != LEAT_MDS_SHAPED && column->encoding != LEAT_MDS_TYPED)
		return NULL;
	fault = read_told(column, bytes, len, &told);
	if (fault)
		return fault;
	if (told.ndim > LEAT_MAX_DIMS)
		return "has an array of more than 4 dimensions, which is not supported";
	column->type = told.type;
	column->ndim = told.ndim;
	return NULL;
}

static uint16_t
load16(const unsigned char *bytes)
{
	return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static const char *
check_told(const struct leat_mds_column *column, const unsigned char *bytes, size_t len, struct told *told)
{
	const char *fault = read_told(column, bytes, len, told);
	uint64_t count = 1;

	if (fault)
		return fault;
	if (told->type != column->type)
		return "has an array of another type than the first sample's";
	if (told->ndim != column->ndim)
		return "has an array with another number of dimensions than the first sample's";
	for (int d = 0; d < told->ndim; d++)
		if (told->shape[d] > INT64_MAX || __builtin_mul_overflow(count, told->shape[d], &count))
			return "has an array with more values than can be counted";
	/* A dimension of 0 hides what the others are. */
	if (count != (len - told->at) / types[told->type].width || (len - told->at) % types[told->type].width)
		return "has an array whose shape and length contradict each other";
	return NULL;
}

/* Copies numbers as they are, or each into a wider one. False: one does not fit, which only uint64 has. */
static bool
copy_numbers(void *to, const unsigned char *from, size_t count, int type)
{
	int32_t *i32 = to;
	int64_t *i64 = to;
	uint16_t *u16 = to;
	uint32_t *u32 = to;
	uint64_t *u64 = to, any = 0;

	switch (types[type].code) {
	case 9:
		for (size_t i = 0; i < count; i++)
			i32[i] = (int8_t)from[i];
		return true;
	case 16:
		for (size_t i = 0; i < count; i++)
			i32[i] = (int32_t)load16(from + 2 * i);
		return true;
	case 17:
		for (size_t i = 0; i < count; i++)
			i32[i] = (int16_t)load16(from + 2 * i);
		return true;
	case 18:
		for (size_t i = 0; i < count; i++)
			u16[i] = load16(from + 2 * i);
		return true;
	case 32:
		for (size_t i = 0; i < count; i++)
			i64[i] = (int64_t)leat_load32(from + 4 * i);
		return true;
	case 33:
	case 34:
		for (size_t i = 0; i < count; i++)
			u32[i] = leat_load32(from + 4 * i);
		return true;
	default:
		for (size_t i = 0; i < count; i++) {
			u64[i] = leat_load64(from + 8 * i);
			any |= u64[i];
		}
		return types[type].code != 64 || !(any >> 63);
	}
}

static const char *
put_numbers(const struct type *type, unsigned char *bytes, struct leat_scratch *scratch, struct leat_datum *datum)
{
	size_t count = (size_t)leat_datum_elements(datum);

	if (type->dtype == LEAT_U8) {
		datum->data = bytes;
		return NULL;
	}
	/* Cannot overflow: in the file they have at least a fourth of the bytes. */
	datum->data = leat_scratch_alloc(scratch, count * leat_dtype_size(type->dtype));
	if (datum->data && !copy_numbers(datum->data, bytes, count, (int)(type - types)))
		return "has a uint64 beyond the largest int64";
	return NULL;
}

const char *
leat_mds_value(const struct leat_mds_column *column, unsigned char *bytes, size_t len, struct leat_scratch *scratch,
               struct leat_datum *datum)
{
	struct told told = {.at = 0};
	const char *fault;

	if (column->encoding == LEAT_MDS_BYTES) {
		*datum = (struct leat_datum){.data = bytes, .dtype = LEAT_U8, .ndim = 1, .shape = {(int64_t)len}};
		return NULL;
	}
	*datum = (struct leat_datum){.dtype = types[column->type].dtype, .ndim = column->ndim};
	if (column->encoding == LEAT_MDS_SHAPED || column->encoding == LEAT_MDS_TYPED) {
		fault = check_told(column, bytes, len, &told);
		if (fault)
			return fault;
		for (int d = 0; d < datum->ndim; d++)
			datum->shape[d] = (int64_t)told.shape[d];
	} else {
		memcpy(datum->shape, column->shape, sizeof(datum->shape));
	}
	return put_numbers(&types[column->type], bytes + told.at, scratch, datum);
}

/* ---- columns of a sample ---- */

void
leat_mds_cut_begin(struct leat_mds_cut *cut, const struct leat_mds_columns *columns, unsigned char *bytes, size_t len)
{
	*cut = (struct leat_mds_cut){.columns = columns, .bytes = bytes, .len = len, .at = 4 * columns->variable};
	if (cut->at > len)
		cut->fault = "ends before its columns' lengths do";
}

bool
leat_mds_cut_next(struct leat_mds_cut *cut, size_t *column, unsigned char **bytes, size_t *len)
{
	if (cut->fault)
		return false;
	if (cut->next == cut->columns->count) {
		if (cut->at != cut->len)
			cut->fault = "has more bytes than its columns";
		return false;
	}
	*len = cut->columns->column[cut->next].size;
	if (*len == 0) {
		*len = leat_load32(cut->bytes + cut->lengths);
		cut->lengths += 4;
	}
	if (*len > cut->len - cut->at) {
		cut->fault = "ends before its columns do";
		return false;
	}
	*column = cut->next++;
	*bytes = cut->bytes + cut->at;
	cut->at += *len;
	return true;
}
