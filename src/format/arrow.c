/* arrow.c - take over Arrow streams, and check what they hold; see arrow.h */
#include "format/arrow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CHILDREN = 1 << 16, MOST_BATCHES = 1 << 28 };
#define MOST_ROWS ((int64_t)1 << 48) /* so that sizes do not overflow */

/* ---- references ---- */

struct leat_arrow *
leat_arrow_hold(struct leat_arrow *table)
{
	atomic_fetch_add(&table->refs, 1);
	return table;
}

void
leat_arrow_free(struct leat_arrow *table)
{
	if (!table || atomic_fetch_sub(&table->refs, 1) > 1)
		return;
	for (size_t i = 0; i < table->batches; i++)
		if (table->batch[i].release)
			table->batch[i].release(&table->batch[i]);
	if (table->schema.release)
		table->schema.release(&table->schema);
	free(table->batch);
	free(table);
}

/* ---- taking over a stream ---- */

static enum leat_status
fail_stream(struct ArrowArrayStream *stream, int code, struct leat_err *err)
{
	const char *why = stream->get_last_error ? stream->get_last_error(stream) : NULL;

	if (code == ENOMEM)
		return leat_fail(err, LEAT_NOMEM, "the producer of an Arrow stream has no memory");
	return leat_fail(err, LEAT_DATA, "the producer of an Arrow stream failed: %.400s",
	                 why && *why ? why : strerror(code));
}

static enum leat_status
fail_table(const char *why, struct leat_err *err)
{
	return leat_fail(err, LEAT_DATA, "an Arrow stream cannot be read: %s", why);
}

static enum leat_status
check_schema(const struct ArrowSchema *schema, struct leat_err *err)
{
	if (!schema->release || !schema->format)
		return fail_table("it has no schema", err);
	if (strcmp(schema->format, "+s") != 0 || schema->dictionary)
		return fail_table("its items are no record batches but arrays; give it a table", err);
	if (schema->n_children < 0 || schema->n_children > MOST_CHILDREN || (schema->n_children && !schema->children))
		return fail_table("its number of columns is invalid", err);
	for (int64_t i = 0; i < schema->n_children; i++)
		if (!schema->children[i] || !schema->children[i]->format)
			return fail_table("a column has no type", err);
	return LEAT_OK;
}

/* A batch has the columns of the schema, each with enough rows. */
static enum leat_status
check_batch(const struct leat_arrow *table, const struct ArrowArray *batch, struct leat_err *err)
{
	int64_t end;

	if (batch->length < 0 || batch->offset < 0 || batch->length > MOST_ROWS - (int64_t)table->rows ||
	    __builtin_add_overflow(batch->length, batch->offset, &end))
		return fail_table("the number of rows of a batch is invalid", err);
	if (batch->n_children != table->schema.n_children || (batch->n_children && !batch->children))
		return fail_table("a batch has other columns than the schema", err);
	for (int64_t i = 0; i < batch->n_children; i++)
		if (!batch->children[i] || batch->children[i]->length < end || batch->children[i]->offset < 0)
			return fail_table("a column of a batch has fewer rows than the batch", err);
	if (batch->null_count != 0 && batch->n_buffers > 0 && batch->buffers && batch->buffers[0])
		return fail_table("rows are null as a whole", err);
	return LEAT_OK;
}

static enum leat_status
add_batch(struct leat_arrow *table, struct ArrowArray *batch, struct leat_err *err)
{
	enum leat_status status = check_batch(table, batch, err);

	if (status == LEAT_OK && table->batches == table->cap) {
		size_t cap = table->cap ? 2 * table->cap : 8;
		struct ArrowArray *more =
			cap > MOST_BATCHES ? NULL : realloc(table->batch, cap * sizeof(*table->batch));

		if (more) {
			table->batch = more;
			table->cap = cap;
		} else {
			status = leat_fail(err, LEAT_NOMEM, "no memory for the batches of an Arrow stream");
		}
	}
	if (status != LEAT_OK || batch->length == 0) {
		batch->release(batch);
		return status;
	}
	table->batch[table->batches++] = *batch; /* moved: only the copy is released */
	table->rows += (uint64_t)batch->length;
	return LEAT_OK;
}

static enum leat_status
read_stream(struct leat_arrow *table, struct ArrowArrayStream *stream, struct leat_err *err)
{
	int code = stream->get_schema(stream, &table->schema);
	enum leat_status status;

	if (code != 0) {
		table->schema.release = NULL; /* of a failed call, nothing is valid */
		return fail_stream(stream, code, err);
	}
	status = check_schema(&table->schema, err);
	while (status == LEAT_OK) {
		struct ArrowArray batch = {0};

		code = stream->get_next(stream, &batch);
		if (code != 0)
			return fail_stream(stream, code, err);
		if (!batch.release)
			break;
		status = add_batch(table, &batch, err);
	}
	return status;
}

enum leat_status
leat_arrow_import(struct ArrowArrayStream *stream, struct leat_arrow **out, struct leat_err *err)
{
	struct leat_arrow *table;
	enum leat_status status;

	leat_err_clear(err);
	*out = NULL;
	if (!stream || !stream->release || !stream->get_schema || !stream->get_next)
		return leat_fail(err, LEAT_INVALID, "the Arrow stream was released, or taken by another consumer");
	table = calloc(1, sizeof(*table));
	if (table) {
		atomic_store(&table->refs, 1);
		status = read_stream(table, stream, err);
	} else {
		status = leat_fail(err, LEAT_NOMEM, "no memory for an Arrow table");
	}
	stream->release(stream);
	stream->release = NULL;
	if (status == LEAT_OK)
		*out = table;
	else
		leat_arrow_free(table);
	return status;
}

/* ---- types ---- */

/* Numbers, by the letter of their format. */
static bool
read_number(char letter, enum leat_dtype *dtype)
{
	static const char letters[] = "cCsSiIlLefg";
	static const enum leat_dtype types[] = {LEAT_I8,  LEAT_U8,  LEAT_I16, LEAT_U16, LEAT_I32, LEAT_U32,
	                                        LEAT_I64, LEAT_U64, LEAT_F16, LEAT_F32, LEAT_F64};
	const char *at = letter ? strchr(letters, letter) : NULL;

	if (at)
		*dtype = types[at - letters];
	return at != NULL;
}

static void
set_number(struct leat_arrow_type *type, enum leat_dtype dtype)
{
	type->form = LEAT_ARROW_NUMBER;
	type->dtype = type->is = dtype;
	type->width = leat_dtype_size(dtype);
}

static void
set_scaled(struct leat_arrow_type *type, enum leat_dtype is, int64_t num, int64_t den)
{
	type->form = num == 1 && den == 1 && is == LEAT_I64 ? LEAT_ARROW_NUMBER : LEAT_ARROW_SCALED;
	type->dtype = LEAT_I64;
	type->is = is;
	type->width = leat_dtype_size(is);
	type->num = num;
	type->den = den;
}

/* "tdD", "tsu:UTC", "ttm", "tDn": dates, timestamps, times of day and durations. */
static bool
read_time(const char *format, struct leat_arrow_type *type)
{
	char what = format[1], unit = what ? format[2] : 0;

	if (!what || !unit || !strchr("dstD", what))
		return false;
	if (what == 'd') {
		set_scaled(type, unit == 'D' ? LEAT_I32 : LEAT_I64, unit == 'D' ? 86400000000 : 1000, 1);
		return (unit == 'D' || unit == 'm') && !format[3];
	}
	if (!strchr("smun", unit) || (what == 's' ? format[3] != ':' : format[3]))
		return false;
	set_scaled(type, what == 't' && (unit == 's' || unit == 'm') ? LEAT_I32 : LEAT_I64,
	           unit == 's'   ? 1000000
	           : unit == 'm' ? 1000
	                         : 1,
	           unit == 'n' ? 1000 : 1);
	return true;
}

/* "d:18,3" or "d:9,2,32": 128 bits unless it says otherwise. */
static bool
read_decimal(const char *format, struct leat_arrow_type *type)
{
	int precision, scale, bits = 128, used = 0, more = 0;

	if (sscanf(format, "d:%3d,%4d%n", &precision, &scale, &used) != 2)
		return false;
	if (format[used] && (sscanf(format + used, ",%3d%n", &bits, &more) != 1 || format[used + more]))
		return false;
	if ((bits != 32 && bits != 64 && bits != 128) || scale < -38 || scale > 38)
		return false;
	type->form = LEAT_ARROW_DECIMAL;
	type->dtype = LEAT_F64;
	type->width = (size_t)bits / 8;
	type->unit = 1;
	for (int i = 0; i < (scale < 0 ? -scale : scale); i++)
		type->unit *= 10;
	if (scale < 0)
		type->unit = 1 / type->unit;
	return true;
}

/* "+w:3": the 3. */
static bool
read_size(const char *text, int64_t *size)
{
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*size = strtoll(text, &end, 10);
	return errno == 0 && !*end && *size > 0 && *size <= INT32_MAX;
}

static bool
child_of(const struct ArrowSchema *schema, const struct ArrowSchema **child)
{
	if (schema->n_children != 1 || !schema->children || !schema->children[0] || !schema->children[0]->format)
		return false;
	*child = schema->children[0];
	return !(*child)->dictionary;
}

/* Lists of lists of a fixed size, down to numbers. */
static bool
read_fixed(const struct ArrowSchema *schema, struct leat_arrow_type *type)
{
	int64_t elements = 1;
	enum leat_dtype dtype;

	while (strncmp(schema->format, "+w:", 3) == 0) {
		if (type->ndim == LEAT_MAX_DIMS || !read_size(schema->format + 3, &type->shape[type->ndim]) ||
		    __builtin_mul_overflow(elements, type->shape[type->ndim++], &elements) || elements > 1 << 30 ||
		    !child_of(schema, &schema))
			return false;
	}
	if (!read_number(schema->format[0], &dtype) || schema->format[1])
		return false;
	set_number(type, dtype);
	return true;
}

static bool
read_list(const struct ArrowSchema *schema, struct leat_arrow_type *type)
{
	const struct ArrowSchema *child;
	enum leat_dtype dtype;

	type->wide = schema->format[1] == 'L';
	if (!child_of(schema, &child) || !read_number(child->format[0], &dtype) || child->format[1])
		return false;
	set_number(type, dtype);
	type->form = LEAT_ARROW_LIST;
	return true;
}

static bool
read_bytes(const char *format, struct leat_arrow_type *type)
{
	bool view = format[0] == 'v';

	if (strcmp(format, "u") && strcmp(format, "z") && strcmp(format, "U") && strcmp(format, "Z") &&
	    strcmp(format, "vu") && strcmp(format, "vz"))
		return false;
	type->form = view ? LEAT_ARROW_VIEW : LEAT_ARROW_TEXT;
	type->dtype = type->is = LEAT_U8;
	type->width = 1;
	type->wide = format[0] == 'U' || format[0] == 'Z';
	return true;
}

/* A type without a dictionary. */
static bool
read_plain(const struct ArrowSchema *schema, struct leat_arrow_type *type)
{
	const char *format = schema->format;
	enum leat_dtype dtype;

	if (read_number(format[0], &dtype) && !format[1]) {
		set_number(type, dtype);
		return true;
	}
	if (strcmp(format, "b") == 0) {
		type->form = LEAT_ARROW_BITS;
		type->dtype = LEAT_BOOL;
		return true;
	}
	if (strncmp(format, "w:", 2) == 0) {
		set_number(type, LEAT_U8);
		type->ndim = 1;
		return read_size(format + 2, &type->shape[0]);
	}
	if (strncmp(format, "+w:", 3) == 0)
		return read_fixed(schema, type);
	if (strcmp(format, "+l") == 0 || strcmp(format, "+L") == 0)
		return read_list(schema, type);
	return format[0] == 't'   ? read_time(format, type)
	       : format[0] == 'd' ? read_decimal(format, type)
	                          : read_bytes(format, type);
}

bool
leat_arrow_type_read(const struct ArrowSchema *schema, struct leat_arrow_type *type)
{
	enum leat_dtype code;

	*type = (struct leat_arrow_type){.num = 1, .den = 1};
	if (!schema->dictionary)
		return read_plain(schema, type);
	if (!schema->dictionary->format || schema->dictionary->dictionary || !read_number(schema->format[0], &code) ||
	    schema->format[1] || code == LEAT_F16 || code == LEAT_F32 || code == LEAT_F64 ||
	    !read_plain(schema->dictionary, type))
		return false;
	type->coded = true;
	type->code = leat_dtype_size(code);
	type->code_sign = code == LEAT_I8 || code == LEAT_I16 || code == LEAT_I32 || code == LEAT_I64;
	return type->form != LEAT_ARROW_LIST && !type->ndim;
}

/* ---- arrays ---- */

static const char *
check_offsets(const void *buffer, bool wide, int64_t from, int64_t rows, int64_t limit)
{
	const int32_t *narrow = buffer;
	const int64_t *words = buffer;
	int64_t before = rows ? (wide ? words[from] : narrow[from]) : 0;

	if (before < 0)
		return "an offset is negative";
	for (int64_t i = from + 1; rows && i <= from + rows; i++) {
		int64_t at = wide ? words[i] : narrow[i];

		if (at < before)
			return "offsets do not ascend";
		before = at;
	}
	return before > limit ? "an offset is beyond the end" : NULL;
}

/* Views of 16 bytes: a length, then 12 bytes, or 4 of them, a buffer's number and where it begins there. */
static const char *
check_views(const struct ArrowArray *array, int64_t from, int64_t rows)
{
	const unsigned char *view = array->buffers[1], *valid = array->buffers[0];
	int64_t variadic = array->n_buffers - 3;
	const int64_t *sizes = array->buffers[array->n_buffers - 1];

	for (int64_t i = from; i < from + rows; i++) {
		int32_t word[4];

		if (valid && array->null_count != 0 && !(valid[i / 8] >> i % 8 & 1))
			continue;
		memcpy(word, view + 16 * i, sizeof(word));
		if (word[0] < 0)
			return "the length of a text is negative";
		if (word[0] <= 12)
			continue;
		if (word[2] < 0 || word[2] >= variadic || !sizes || !array->buffers[2 + word[2]] || word[3] < 0 ||
		    (int64_t)word[3] + word[0] > sizes[word[2]])
			return "a text is outside its buffer";
	}
	return NULL;
}

static const char *
check_codes(const struct ArrowArray *array, const struct leat_arrow_type *type, int64_t from, int64_t rows)
{
	const unsigned char *code = array->buffers[1], *valid = array->buffers[0];
	int64_t most = array->dictionary->length;

	for (int64_t i = from; i < from + rows; i++) {
		uint64_t is = 0;

		if (valid && array->null_count != 0 && !(valid[i / 8] >> i % 8 & 1))
			continue;
		memcpy(&is, code + (size_t)i * type->code, type->code);
		if (is >= (uint64_t)most || (type->code_sign && is >> (8 * type->code - 1)))
			return "a code is beyond its dictionary";
	}
	return NULL;
}

const char *
leat_arrow_check(const struct ArrowArray *array, const struct leat_arrow_type *type, int64_t offset, int64_t rows)
{
	const struct ArrowArray *inner = array;
	int64_t from, end, elements = rows;

	if (array->offset < 0 || rows < 0 || rows > MOST_ROWS || __builtin_add_overflow(array->offset, offset, &from) ||
	    __builtin_add_overflow(from, rows, &end) || end > MOST_ROWS || array->length < offset + rows)
		return "its length or offset is invalid";
	if (type->coded) {
		struct leat_arrow_type values = *type;

		values.coded = false;
		if (array->n_buffers != 2 || !array->buffers || (rows && !array->buffers[1]) || !array->dictionary ||
		    array->dictionary->length < 0)
			return "it lacks its codes or its dictionary";
		if (array->dictionary->null_count != 0 && array->dictionary->buffers && array->dictionary->n_buffers &&
		    array->dictionary->buffers[0])
			return "a value of its dictionary is null";
		return check_codes(array, type, from, rows)
		               ? check_codes(array, type, from, rows)
		               : leat_arrow_check(array->dictionary, &values, 0, array->dictionary->length);
	}
	for (int i = 0; i < type->ndim && inner->n_children == 1 && inner->children && inner->children[0]; i++) {
		if (inner->n_buffers < 1 || !inner->buffers || __builtin_mul_overflow(end, type->shape[i], &end) ||
		    end > MOST_ROWS)
			return "its length or offset is invalid";
		inner = inner->children[0];
		if (inner->offset < 0 || inner->length < end || __builtin_add_overflow(end, inner->offset, &end))
			return "its elements are fewer than its lists need";
	}
	if (type->form == LEAT_ARROW_VIEW)
		return array->n_buffers < 3 || !array->buffers || (rows && !array->buffers[1])
		               ? "it lacks buffers"
		               : check_views(array, from, rows);
	if (inner->n_buffers < 2 || !inner->buffers || (elements && !inner->buffers[1]))
		return "it lacks buffers";
	if (type->form == LEAT_ARROW_TEXT)
		return array->n_buffers < 3 ? "it lacks buffers"
		                            : check_offsets(array->buffers[1], type->wide, from, rows, INT64_MAX / 4);
	if (type->form == LEAT_ARROW_LIST) {
		const struct ArrowArray *child = array->n_children == 1 && array->children ? array->children[0] : NULL;

		if (!child || child->n_buffers != 2 || !child->buffers || child->offset < 0 || child->length < 0 ||
		    child->length > MOST_ROWS || child->offset > MOST_ROWS || (child->length && !child->buffers[1]))
			return "its lists lack their elements";
		return check_offsets(array->buffers[1], type->wide, from, rows, child->length);
	}
	return NULL;
}
