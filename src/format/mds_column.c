/* mds_column.c - encodings of MDS columns, and the values in their bytes
 *
 * Numbers are read with stored.h. Images, text and everything else stay bytes; pickles are
 * never unpickled. Stateless: any thread. */
#include "format/mds.h"

#include <string.h>

#include "base/hash.h"

static const struct leat_stored *
type_coded(uint8_t code)
{
	static const struct {
		uint8_t code;
		const char *name;
	} codes[] = {
		{8, "uint8"},  {9, "int8"},     {16, "uint16"}, {17, "int16"}, {18, "float16"}, {32, "uint32"},
		{33, "int32"}, {34, "float32"}, {64, "uint64"}, {65, "int64"}, {66, "float64"},
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].code == code)
			return leat_stored_find(codes[i].name, strlen(codes[i].name));
	return NULL;
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

/* Parses what follows "ndarray". */
static enum leat_mds_encoding
parse_array(struct leat_mds_column *column, const char *text)
{
	const char *shape;

	column->ndim = -1;
	if (*text == ':')
		text++;
	if (*text == '\0')
		return LEAT_MDS_TYPED;
	shape = strchr(text, ':');
	column->type = leat_stored_find(text, shape ? (size_t)(shape - text) : strlen(text));
	if (!column->type)
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
		return size == elements(column->shape, column->ndim) * column->type->width;
	}
	if (strcmp(encoding, "int") == 0)
		encoding = "int64";
	column->type = leat_stored_find(encoding, strlen(encoding));
	if (!column->type)
		return true;
	column->encoding = LEAT_MDS_NUMBER;
	return size == column->type->width;
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
	field->dtype = column->type->dtype;
	field->ndim = column->ndim;
	for (int d = 0; d < column->ndim; d++)
		field->shape[d] = column->encoding == LEAT_MDS_ARRAY ? column->shape[d] : -1;
}

unsigned
leat_mds_growth(const struct leat_mds_column *column)
{
	return column->encoding == LEAT_MDS_BYTES ? 0 : leat_stored_growth(column->type);
}

/* ---- values ---- */

/* Type and shape stored with an array. */
struct told {
	const struct leat_stored *type;
	int ndim;
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
		told->type = len ? type_coded(bytes[told->at++]) : NULL;
		if (!told->type)
			return "has an array of an unknown type";
	}
	if (told->at == len)
		return "has a truncated array";
	told->ndim = bytes[told->at] >> 2;
	width = (size_t)1 << (bytes[told->at++] & 3);
	if ((size_t)told->ndim * width > len - told->at)
		return "has a truncated array";
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

static const char *
check_told(const struct leat_mds_column *column, const unsigned char *bytes, size_t len, struct told *told)
{
	const char *fault = read_told(column, bytes, len, told);
	uint64_t count = 1;

	if (fault)
		return fault;
	if (told->type != column->type)
		return "has an array whose type differs from the first sample's";
	if (told->ndim != column->ndim)
		return "has an array whose number of dimensions differs from the first sample's";
	for (int d = 0; d < told->ndim; d++)
		if (told->shape[d] > INT64_MAX || __builtin_mul_overflow(count, told->shape[d], &count))
			return "has an array with too many values";
	/* Next to a dimension of 0, the others may be anything. */
	if (count != (len - told->at) / told->type->width || (len - told->at) % told->type->width)
		return "has an array whose shape and length contradict each other";
	return NULL;
}

static const char *
put_numbers(const struct leat_stored *type, unsigned char *bytes, struct leat_scratch *scratch,
            struct leat_datum *datum)
{
	size_t count = (size_t)leat_datum_elements(datum);

	if (type->width == 1 && type->dtype == LEAT_U8) {
		datum->data = bytes;
		return NULL;
	}
	/* Cannot overflow: numbers grow at most fourfold. */
	datum->data = leat_scratch_alloc(scratch, count * leat_dtype_size(type->dtype));
	if (datum->data && !leat_stored_copy(type, datum->data, bytes, count))
		return "has a uint64 that does not fit int64";
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
	*datum = (struct leat_datum){.dtype = column->type->dtype, .ndim = column->ndim};
	if (column->encoding == LEAT_MDS_SHAPED || column->encoding == LEAT_MDS_TYPED) {
		fault = check_told(column, bytes, len, &told);
		if (fault)
			return fault;
		for (int d = 0; d < datum->ndim; d++)
			datum->shape[d] = (int64_t)told.shape[d];
	} else {
		memcpy(datum->shape, column->shape, sizeof(datum->shape));
	}
	return put_numbers(column->type, bytes + told.at, scratch, datum);
}

/* ---- columns of a sample ---- */

void
leat_mds_cut_begin(struct leat_mds_cut *cut, const struct leat_mds_columns *columns, unsigned char *bytes, size_t len)
{
	*cut = (struct leat_mds_cut){.columns = columns, .bytes = bytes, .len = len, .at = 4 * columns->variable};
	if (cut->at > len)
		cut->fault = "ends before the lengths of its columns";
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
