/* tar_array.c - array fields of tar files: .npy files of a type given in the spec
 *
 * 'x=x.npy:float32[8, ?]': type and number of dims must be known at open; dims need not. */
#include "format/tar.h"

#include <string.h>

#include "format/npy_header.h"

static bool
take_dtype(const char *text, size_t len, enum leat_dtype *dtype)
{
	static const enum leat_dtype known[] = {LEAT_U8,   LEAT_I32, LEAT_I64, LEAT_F16, LEAT_F32, LEAT_F64,
	                                        LEAT_BOOL, LEAT_I8,  LEAT_I16, LEAT_U16, LEAT_U32, LEAT_U64};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		const char *name = leat_dtype_name(known[i]);

		*dtype = known[i];
		if (strlen(name) == len && memcmp(name, text, len) == 0)
			return true;
	}
	return false;
}

/* Parses "8, " and returns the rest; "?" is -1. */
static const char *
take_dim(const char *text, int64_t *dim)
{
	const char *begin = text;

	*dim = *text == '?' ? -1 : 0;
	if (*text == '?')
		text++;
	for (; *text >= '0' && *text <= '9' && *dim < INT32_MAX; text++)
		*dim = *dim * 10 + (*text - '0');
	if (text == begin || *dim > INT32_MAX)
		return NULL;
	while (*text == ' ')
		text++;
	return text;
}

bool
leat_tar_type(const char *text, struct leat_field *field)
{
	size_t len = strcspn(text, "[");

	if (!take_dtype(text, len, &field->dtype))
		return false;
	field->ndim = 0;
	text += len;
	if (!*text)
		return true;
	do {
		text++;
		while (*text == ' ')
			text++;
		if (field->ndim == LEAT_MAX_DIMS)
			return false;
		text = take_dim(text, &field->shape[field->ndim++]);
	} while (text && *text == ',');
	return text && strcmp(text, "]") == 0;
}

enum leat_status
leat_tar_array(const struct leat_field *field, const unsigned char *bytes, size_t len, struct leat_scratch *scratch,
               struct leat_datum *datum, struct leat_err *err)
{
	size_t head = len < LEAT_NPY_HEADER ? len : LEAT_NPY_HEADER, size;
	struct leat_field found = *field;
	char is[100], wanted[100];
	struct leat_npy npy;
	enum leat_status status = leat_npy_parse(bytes, head, len, &npy, err);
	bool same;

	if (status != LEAT_OK)
		return status;
	if (npy.is_bool && field->dtype == LEAT_BOOL)
		npy.dtype = LEAT_BOOL;
	same = npy.dtype == field->dtype && npy.ndim == field->ndim;
	for (int d = 0; d < npy.ndim && same; d++)
		same = field->shape[d] < 0 || field->shape[d] == npy.shape[d];
	if (!same) {
		found.dtype = npy.dtype;
		found.ndim = npy.ndim < LEAT_MAX_DIMS ? npy.ndim : LEAT_MAX_DIMS;
		memcpy(found.shape, npy.shape, (size_t)found.ndim * sizeof(*found.shape));
		return leat_fail(err, LEAT_DATA, "it is %s, expected %s", leat_field_format(&found, is, sizeof(is)),
		                 leat_field_format(field, wanted, sizeof(wanted)));
	}
	*datum = (struct leat_datum){.dtype = npy.dtype, .ndim = npy.ndim};
	memcpy(datum->shape, npy.shape, (size_t)npy.ndim * sizeof(*datum->shape));
	size = leat_datum_bytes(datum); /* within the file, unless a 0 dim hides an overflow of the others */
	if (size > len)
		return leat_fail(err, LEAT_DATA, "its shape has too many elements");
	datum->data = leat_scratch_alloc(scratch, size);
	if (!datum->data)
		return leat_fail(err, LEAT_LIMIT, "no memory for a sample's arrays");
	memcpy(datum->data, bytes + npy.data_at, size);
	for (size_t i = 0; i < size && npy.dtype == LEAT_BOOL; i++) /* untrusted: frameworks rely on 0 and 1 */
		((uint8_t *)datum->data)[i] = ((uint8_t *)datum->data)[i] != 0;
	return LEAT_OK;
}
