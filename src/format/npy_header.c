/* npy_header.c - the header of a .npy file
 *
 * Parses only the Python syntax a header can have: one dict with three keys, a string, a
 * word and a tuple of numbers. Everything else is rejected. */
#include "format/npy_header.h"

#include <ctype.h>
#include <string.h>

#include "base/hash.h"

enum { MAX_NDIM = 1 + LEAT_MAX_DIMS };

struct text {
	const char *at, *end;
};

/* Complex numbers are pairs of floats. */
static const struct {
	const char *descr;
	enum leat_dtype dtype;
} dtypes[] = {
	{"<f4", LEAT_F32}, {"<f8", LEAT_F64}, {"<i4", LEAT_I32}, {"<i8", LEAT_I64},  {"|u1", LEAT_U8},
	{"|b1", LEAT_U8},  {"<f2", LEAT_F16}, {"|i1", LEAT_I8},  {"<i2", LEAT_I16},  {"<u2", LEAT_U16},
	{"<u4", LEAT_U32}, {"<u8", LEAT_U64}, {"<c8", LEAT_F32}, {"<c16", LEAT_F64},
};

enum { DTYPES = sizeof(dtypes) / sizeof(*dtypes) };

static void
skip_blanks(struct text *text)
{
	while (text->at < text->end && strchr(" \t\r\n", *text->at) && *text->at)
		text->at++;
}

/* Skips `c` if it comes next. */
static bool
accept(struct text *text, char c)
{
	skip_blanks(text);
	if (text->at == text->end || *text->at != c)
		return false;
	text->at++;
	return true;
}

static enum leat_status
fail_syntax(const struct text *text, const char *expected, struct leat_err *err)
{
	size_t left = (size_t)(text->end - text->at), shown = 0;

	while (shown < left && shown < 20 && isprint((unsigned char)text->at[shown]))
		shown++;
	return leat_fail(err, LEAT_DATA, "its header is damaged: expected %s before '%.*s'", expected, (int)shown,
	                 text->at);
}

/* 'text', without escapes. */
static bool
take_string(struct text *text, const char **begin, size_t *len)
{
	char quote = accept(text, '\'') ? '\'' : accept(text, '"') ? '"' : '\0';

	*begin = text->at;
	while (quote && text->at < text->end && *text->at != quote && *text->at != '\\' && *text->at != '\n')
		text->at++;
	*len = (size_t)(text->at - *begin);
	return quote && accept(text, quote);
}

static bool
take_word(struct text *text, const char *word)
{
	size_t len = strlen(word);

	skip_blanks(text);
	if ((size_t)(text->end - text->at) < len || memcmp(text->at, word, len) != 0)
		return false;
	text->at += len;
	return true;
}

/* The row of the table whose text after the byte order is `type`; DTYPES: none. */
static size_t
find_type(const char *type, size_t len)
{
	size_t i = 0;

	while (i < DTYPES && !(strlen(dtypes[i].descr + 1) == len && memcmp(dtypes[i].descr + 1, type, len) == 0))
		i++;
	return i;
}

static enum leat_status
fail_descr(const char *descr, size_t len, bool big_endian, struct leat_err *err)
{
	size_t shown = 0;

	while (shown < len && shown < 40 && isprint((unsigned char)descr[shown]))
		shown++;
	if (big_endian)
		return leat_fail(err, LEAT_UNSUPPORTED,
		                 "it is big-endian, dtype '%.*s'; save a.astype(a.dtype.newbyteorder('<')) of array a",
		                 (int)shown, descr);
	return leat_fail(err, LEAT_UNSUPPORTED,
	                 "its dtype '%.*s' is not supported; save it as float16 to float64, int8 to int64, uint8 to "
	                 "uint64, complex64, complex128 or bool",
	                 (int)shown, descr);
}

static enum leat_status
read_descr(struct text *text, struct leat_npy *npy, struct leat_err *err)
{
	const char *descr;
	size_t len, i;

	skip_blanks(text);
	if (text->at < text->end && *text->at == '[')
		return leat_fail(err, LEAT_UNSUPPORTED,
		                 "it is a structured array; save each of its fields as an array");
	if (!take_string(text, &descr, &len))
		return fail_syntax(text, "a dtype", err);
	i = len > 1 ? find_type(descr + 1, len - 1) : DTYPES;
	if (i == DTYPES || *descr != *dtypes[i].descr)
		return fail_descr(descr, len, i < DTYPES && *descr == '>', err);
	npy->dtype = dtypes[i].dtype;
	npy->is_bool = descr[1] == 'b';
	npy->is_complex = descr[1] == 'c';
	return LEAT_OK;
}

static enum leat_status
read_order(struct text *text, bool *fortran, struct leat_err *err)
{
	*fortran = take_word(text, "True");
	return *fortran || take_word(text, "False") ? LEAT_OK : fail_syntax(text, "True or False", err);
}

static bool
take_number(struct text *text, int64_t *number)
{
	const char *begin;

	skip_blanks(text);
	begin = text->at;
	for (*number = 0; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++)
		if (__builtin_mul_overflow(*number, 10, number) ||
		    __builtin_add_overflow(*number, *text->at - '0', number))
			return false;
	if (text->at == begin)
		return false;
	if (text->at < text->end && *text->at == 'L') /* written by Python 2 */
		text->at++;
	return true;
}

static enum leat_status
read_shape(struct text *text, struct leat_npy *npy, struct leat_err *err)
{
	bool comma = true;

	if (!accept(text, '('))
		return fail_syntax(text, "a shape", err);
	for (npy->ndim = 0; !accept(text, ')'); npy->ndim++) {
		int64_t number;

		if (!comma || !take_number(text, &number))
			return fail_syntax(text, comma ? "a dimension" : "a comma", err);
		if (npy->ndim == MAX_NDIM)
			return leat_fail(err, LEAT_UNSUPPORTED, "it has more than %d dimensions", MAX_NDIM);
		npy->shape[npy->ndim] = number;
		comma = accept(text, ',');
	}
	if (npy->ndim == 1 && !comma)
		return fail_syntax(text, "a tuple", err);
	return LEAT_OK;
}

static enum leat_status
read_dict(struct text *text, struct leat_npy *npy, bool *fortran, struct leat_err *err)
{
	static const char *const keys[] = {"descr", "fortran_order", "shape"};
	bool seen[3] = {false}, comma = true;

	if (!accept(text, '{'))
		return fail_syntax(text, "a dict", err);
	while (!accept(text, '}')) {
		enum leat_status status;
		const char *key;
		size_t len;
		int k = 0;

		if (!comma || !take_string(text, &key, &len) || !accept(text, ':'))
			return fail_syntax(text, comma ? "a key" : "a comma", err);
		while (k < 3 && (strlen(keys[k]) != len || memcmp(keys[k], key, len) != 0))
			k++;
		if (k == 3 || seen[k])
			return fail_syntax(text, "one each of descr, fortran_order and shape", err);
		seen[k] = true;
		status = k == 0   ? read_descr(text, npy, err)
		         : k == 1 ? read_order(text, fortran, err)
		                  : read_shape(text, npy, err);
		if (status != LEAT_OK)
			return status;
		comma = accept(text, ',');
	}
	skip_blanks(text);
	if (text->at < text->end)
		return fail_syntax(text, "the end of the header", err);
	for (int k = 0; k < 3; k++)
		if (!seen[k])
			return leat_fail(err, LEAT_DATA, "its header lacks '%s'", keys[k]);
	return LEAT_OK;
}

/* What needs more than one key. */
static enum leat_status
finish_shape(struct leat_npy *npy, bool fortran, struct leat_err *err)
{
	if (fortran && npy->ndim > 1) /* elements in a row are in the same order either way */
		return leat_fail(
			err, LEAT_UNSUPPORTED,
			"it is in Fortran order, so rows are not contiguous; save numpy.ascontiguousarray of it");
	if (npy->is_complex && npy->ndim == MAX_NDIM)
		return leat_fail(err, LEAT_UNSUPPORTED,
		                 "it has more than %d dimensions, counting one for real and imaginary parts", MAX_NDIM);
	if (npy->is_complex)
		npy->shape[npy->ndim++] = 2;
	return LEAT_OK;
}

/* Computes the size of a row and of the array. */
static enum leat_status
measure(struct leat_npy *npy, struct leat_err *err)
{
	bool too_large = false;

	npy->row_bytes = leat_dtype_size(npy->dtype);
	for (int i = 1; i < npy->ndim; i++)
		too_large |= __builtin_mul_overflow(npy->row_bytes, (uint64_t)npy->shape[i], &npy->row_bytes);
	npy->bytes = npy->row_bytes;
	if (npy->ndim > 0)
		too_large |= __builtin_mul_overflow(npy->row_bytes, (uint64_t)npy->shape[0], &npy->bytes);
	return too_large ? leat_fail(err, LEAT_DATA, "its shape has too many elements") : LEAT_OK;
}

enum leat_status
leat_npy_parse(const unsigned char *bytes, size_t len, uint64_t size, struct leat_npy *npy, struct leat_err *err)
{
	enum leat_status status = leat_npy_parse_header(bytes, len, size, npy, err);

	if (status == LEAT_OK && npy->bytes > size - npy->data_at)
		return leat_fail(err, LEAT_DATA,
		                 "it is truncated: its shape needs %llu bytes, but only %llu follow the header",
		                 (unsigned long long)npy->bytes, (unsigned long long)(size - npy->data_at));
	return status;
}

enum leat_status
leat_npy_parse_header(const unsigned char *bytes, size_t len, uint64_t size, struct leat_npy *npy, struct leat_err *err)
{
	struct text text;
	enum leat_status status;
	bool fortran = false;
	uint64_t header;
	size_t at;

	*npy = (struct leat_npy){0};
	if (len < 6 || memcmp(bytes, "\x93NUMPY", 6) != 0)
		return leat_fail(err, LEAT_DATA, "it is not a .npy file, as written by numpy.save");
	if (len < 12)
		return leat_fail(err, LEAT_DATA, "its header is truncated");
	if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)
		return leat_fail(err, LEAT_UNSUPPORTED, "it has format %u.%u; supported are 1.0, 2.0 and 3.0", bytes[6],
		                 bytes[7]);
	at = bytes[6] == 1 ? 10 : 12;
	header = bytes[6] == 1 ? (uint64_t)bytes[8] | (uint64_t)bytes[9] << 8 : leat_load32(bytes + 8);
	if (header > size - at)
		return leat_fail(err, LEAT_DATA, "its header is truncated");
	if (header > len - at)
		return leat_fail(err, LEAT_UNSUPPORTED, "its header has %llu bytes, too many for a plain array",
		                 (unsigned long long)header);
	text = (struct text){(const char *)bytes + at, (const char *)bytes + at + header};
	npy->data_at = at + header;
	status = read_dict(&text, npy, &fortran, err);
	if (status == LEAT_OK)
		status = finish_shape(npy, fortran, err);
	return status == LEAT_OK ? measure(npy, err) : status;
}
