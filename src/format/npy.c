/* npy.c - the source of NumPy arrays: row i of every field makes up sample i
 *
 *	npy(x='train-x.npy', y='train-y.npy')
 *	npy(x='x-*.npy', y='y.npy')
 *
 * Each argument names a field and its .npy file, or several by a pattern, sorted by name: their rows
 * follow each other. Fields have the same number of rows in total, however they are divided into
 * files; interleave alternates between the files of the first field. Arrays are in C order and
 * little-endian, and hold numbers: bool becomes uint8, complex numbers become pairs of floats,
 * everything else keeps its type. Image ops accept rows of three dimensions whose last or first is
 * at most 4.
 *
 * Fields point into arrays in memory (npy_file.h). Threads: all workers call touch and unpack. */
#include "format/npy_file.h"

#include <stdio.h>
#include <string.h>

enum { TOUCHED = 64 }; /* rows at a time */

struct npy {
	size_t count;
	struct file {
		const char *field, *path; /* owned by the spec */
	} file[LEAT_MAX_FIELDS];
};

/* The arrays of one field. */
struct column {
	size_t begin, files;         /* in source->files */
	struct leat_npy_file *array; /* of each file; all agree in type and row shape */
	uint64_t *first;             /* row of the field that file i begins with; files + 1 numbers */
	uint64_t row_bytes;
};

struct state {
	size_t columns;
	uint64_t row_bytes; /* of all columns together */
	size_t last;        /* file of the last locate */
	struct leat_npy_file *arrays;
	uint64_t *firsts; /* backs the columns' */
	struct column column[];
};

/* ---- the arguments ---- */

static enum leat_status
parse_file(struct npy *npy, const struct leat_arg *arg, const char *text, struct leat_err *err)
{
	if (!arg->name)
		return leat_fail_at(err, text, arg->at, arg->len,
		                    "'npy' takes named arguments, FIELD=FILE, as in npy(x='x.npy')");
	if ((arg->type != LEAT_ARG_STRING && arg->type != LEAT_ARG_WORD) || !*arg->text || arg->items || arg->has_dims)
		return leat_fail_at(err, text, arg->at, arg->len, "expected the file of field '%s', as in %s='x.npy'",
		                    arg->name, arg->name);
	if (strlen(arg->name) > LEAT_MAX_NAME)
		return leat_fail_at(err, text, arg->name_at, strlen(arg->name),
		                    "a field name has at most %d characters", LEAT_MAX_NAME);
	for (size_t i = 0; i < npy->count; i++)
		if (strcmp(npy->file[i].field, arg->name) == 0)
			return leat_fail_at(err, text, arg->name_at, strlen(arg->name), "field '%s' is given twice",
			                    arg->name);
	npy->file[npy->count++] = (struct file){arg->name, arg->text};
	return LEAT_OK;
}

static enum leat_status
parse(void *params, const struct leat_call *call, const char *text, struct leat_mem *mem, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	(void)mem;
	if (!call->args)
		return leat_fail_at(err, text, call->at, call->len,
		                    "'npy' needs at least one file, as in npy(x='x.npy', y='y.npy')");
	if (call->args > LEAT_MAX_FIELDS)
		return leat_fail_at(err, text, call->at, call->len, "'npy' takes at most %d fields", LEAT_MAX_FIELDS);
	for (size_t i = 0; i < call->args && status == LEAT_OK; i++)
		status = parse_file(params, &call->arg[i], text, err);
	return status;
}

static void
print(const void *params, bool locations, struct leat_str *out)
{
	const struct npy *npy = params;

	for (size_t i = 0; i < npy->count; i++) {
		leat_str_addf(out, "%s%s", i ? ", " : "", npy->file[i].field);
		if (locations) {
			leat_str_add(out, "=");
			leat_str_add_quoted(out, npy->file[i].path);
		}
	}
}

/* ---- opening ---- */

static void
close_source(struct leat_source *source)
{
	struct state *state = source->state;

	if (state) {
		if (state->arrays)
			leat_npy_files_free(source, leat_files_count(source->files), state->arrays);
		leat_free(source->mem, state->arrays);
		leat_free(source->mem, state->firsts);
	}
	leat_free(source->mem, state);
	leat_files_close(source->files);
}

static uint64_t
rows_of(const struct column *column)
{
	return column->first[column->files];
}

static bool
same_rows(const struct leat_npy *a, const struct leat_npy *b)
{
	return a->dtype == b->dtype && a->ndim == b->ndim &&
	       memcmp(a->shape + 1, b->shape + 1, (size_t)(a->ndim - 1) * sizeof(*a->shape)) == 0;
}

/* The field that rows of an array make up. */
static struct leat_field
field_of(const struct leat_npy *npy)
{
	struct leat_field field = {.dtype = npy->dtype, .ndim = npy->ndim - 1};

	memcpy(field.shape, npy->shape + 1, (size_t)field.ndim * sizeof(*field.shape));
	return field;
}

/* Rows of all files of a field are alike; fills `first`. */
static enum leat_status
check_files(const struct leat_source *source, struct column *column, const char *name, struct leat_err *err)
{
	const struct leat_npy *npy = &column->array[0].npy;
	char buf[LEAT_URI], first[LEAT_URI], is[100], wanted[100];

	for (size_t i = 0; i < column->files; i++) {
		const struct leat_npy *other = &column->array[i].npy;
		struct leat_field found = field_of(other), expected = field_of(npy);

		leat_npy_file_shown(source, column->begin + i, name, buf);
		if (other->row_bytes == 0)
			return leat_fail(err, LEAT_DATA, "%s has no samples: it has no elements", buf);
		if (!same_rows(npy, other))
			return leat_fail(err, LEAT_DATA,
			                 "%s has rows of %s, but %s has rows of %s; all files of field '%s' need the "
			                 "same type and shape",
			                 buf, leat_field_format(&found, is, sizeof(is)),
			                 leat_npy_file_shown(source, column->begin, name, first),
			                 leat_field_format(&expected, wanted, sizeof(wanted)), name);
		column->first[i + 1] = column->first[i] + (uint64_t)other->shape[0];
	}
	column->row_bytes = npy->row_bytes;
	return LEAT_OK;
}

/* For messages: the one file of a field, or how many. */
static const char *
shown(const struct leat_source *source, size_t i, char buf[LEAT_URI])
{
	const struct npy *npy = source->params;
	const struct state *state = source->state;
	const struct column *column = &state->column[i];

	if (column->files == 1)
		return leat_npy_file_shown(source, column->begin, npy->file[i].field, buf);
	snprintf(buf, LEAT_URI, "field '%s' in %zu files", npy->file[i].field, column->files);
	return buf;
}

static enum leat_status
add_field(struct leat_source *source, const char *name, const struct leat_npy *npy, struct leat_err *err)
{
	struct leat_field *field = leat_schema_add(&source->schema, name, npy->dtype), made = field_of(npy);

	if (!field)
		return leat_fail(err, LEAT_INTERNAL, "the field '%s' cannot be added", name);
	field->ndim = made.ndim;
	memcpy(field->shape, made.shape, sizeof(field->shape));
	return LEAT_OK;
}

/* Scratch for rows that have to be copied. */
static size_t
scratch_for(const struct column *column)
{
	for (size_t i = 0; i < column->files; i++)
		if (!column->array[i].aligned)
			return ((size_t)column->row_bytes + 63) & ~(size_t)63;
	return 0;
}

static enum leat_status
open_column(struct leat_source *source, struct state *state, size_t i, unsigned threads, struct leat_err *err)
{
	const struct npy *params = source->params;
	struct column *column = &state->column[i];
	const char *name = params->file[i].field;
	char buf[LEAT_URI], first[LEAT_URI];
	enum leat_status status = leat_npy_files_read_headers(source, column->begin, column->files, name, false,
	                                                      threads, column->array, err);

	if (status == LEAT_OK)
		status = check_files(source, column, name, err);
	if (status == LEAT_OK && rows_of(column) != rows_of(&state->column[0]))
		status = leat_fail(err, LEAT_DATA,
		                   "%s has %llu rows, but %s has %llu; all fields need the same number of rows",
		                   shown(source, i, buf), (unsigned long long)rows_of(column), shown(source, 0, first),
		                   (unsigned long long)rows_of(&state->column[0]));
	if (status == LEAT_OK)
		status = add_field(source, name, &column->array[0].npy, err);
	if (status != LEAT_OK)
		return status;
	if (__builtin_add_overflow(state->row_bytes, column->row_bytes, &state->row_bytes))
		state->row_bytes = UINT64_MAX;
	source->max_scratch += scratch_for(column);
	return leat_npy_files_bring(source, column->begin, column->files, threads, column->array, err);
}

static enum leat_status
open_files(struct leat_source *source, const struct npy *npy, struct leat_err *err)
{
	const char *path[LEAT_MAX_FIELDS];

	for (size_t i = 0; i < npy->count; i++)
		path[i] = npy->file[i].path;
	return leat_files_open(&source->files, &source->stores, path, npy->count, source->mem, err);
}

static enum leat_status
make_columns(struct leat_source *source, const struct npy *npy, struct leat_err *err)
{
	size_t files = leat_files_count(source->files), firsts = files + npy->count;
	struct state *state = leat_alloc(source->mem, sizeof(*state) + npy->count * sizeof(*state->column));

	source->state = state;
	if (state)
		state->arrays = leat_alloc_array(source->mem, files, sizeof(*state->arrays));
	if (state && state->arrays)
		state->firsts = leat_alloc_array(source->mem, firsts, sizeof(*state->firsts));
	if (!state || !state->firsts)
		return leat_fail_mem(err, source->mem, files * sizeof(*state->arrays), "the arrays");
	state->columns = npy->count;
	for (size_t i = 0; i < state->columns; i++) {
		size_t begin = leat_files_begin(source->files, i);

		state->column[i] = (struct column){
			.begin = begin,
			.files = leat_files_begin(source->files, i + 1) - begin,
			.array = state->arrays + begin,
			.first = state->firsts + begin + i,
		};
	}
	return LEAT_OK;
}

static enum leat_status
open_source(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	const struct npy *npy = source->params;
	enum leat_status status = open_files(source, npy, err);
	struct state *state;

	if (status != LEAT_OK)
		return status;
	status = make_columns(source, npy, err);
	state = source->state;
	for (size_t i = 0; i < npy->count && status == LEAT_OK; i++)
		status = open_column(source, state, i, threads, err);
	if (status != LEAT_OK) {
		close_source(source);
		return status;
	}
	source->all_fit = state->row_bytes <= source->max_bytes;
	if (!source->all_fit)
		source->max_scratch = 0; /* no row is read */
	source->count = rows_of(&state->column[0]);
	source->first = state->column[0].first;
	source->parts = state->column[0].files;
	return LEAT_OK;
}

static void
fingerprint(const struct leat_source *source, struct leat_sha256 *sha)
{
	const struct npy *params = source->params;
	const struct state *state = source->state;

	for (size_t i = 0; i < state->columns; i++) {
		const struct column *column = &state->column[i];

		for (size_t f = 0; f < column->files; f++)
			leat_npy_file_fingerprint(source, column->begin + f, &column->array[f], params->file[i].field,
			                          sha);
	}
}

/* ---- samples ---- */

/* The file of a field that holds a sample. */
static size_t
file_of(const struct column *column, uint64_t sample)
{
	return column->files == 1 ? 0 : leat_npy_file_of(column->first, column->files, sample);
}

/* Where a sample's row begins in the array of its file. */
static uint64_t
row_at(const struct column *column, size_t file, uint64_t sample)
{
	return (sample - column->first[file]) * column->row_bytes;
}

static void
locate(const struct leat_source *source, uint64_t sample, struct leat_extent *extent)
{
	struct state *state = source->state;
	const struct column *column = &state->column[0];
	size_t file = column->files == 1 ? 0 : leat_source_part(source, sample, &state->last);

	*extent = (struct leat_extent){
		.file = (uint32_t)file,
		.offset = column->array[file].npy.data_at + row_at(column, file, sample),
		.lent = state->row_bytes,
	};
}

/* How many of the samples, at most TOUCHED, are in the file of the first one; and where their rows are in it. */
static size_t
rows_of_file(const struct column *column, const uint64_t *sample, size_t count, size_t *file, uint64_t offset[TOUCHED])
{
	size_t n = 0, most = count < TOUCHED ? count : TOUCHED;
	uint64_t begin, rows, at, bytes = column->row_bytes;

	*file = file_of(column, sample[0]);
	begin = column->first[*file];
	rows = column->first[*file + 1] - begin;
	at = column->array[*file].npy.data_at;
	for (; n < most && sample[n] - begin < rows; n++) /* before the file, the difference is huge */
		offset[n] = at + (sample[n] - begin) * bytes;
	return n;
}

static enum leat_status
touch_column(const struct leat_source *source, const struct column *column, const uint64_t *sample, size_t count,
             int flags, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	uint64_t offset[TOUCHED];
	size_t file, n;

	for (; count > 0 && (status == LEAT_OK || status == LEAT_AGAIN); sample += n, count -= n) {
		enum leat_status one;

		n = rows_of_file(column, sample, count, &file, offset);
		one = leat_npy_file_touch(source, column->begin + file, &column->array[file], offset, n,
		                          column->row_bytes, flags, err);
		if (one != LEAT_OK)
			status = one; /* continue, to start loading the other rows too */
	}
	return status;
}

/* Workers and I/O threads. */
static enum leat_status
touch(const struct leat_source *source, const uint64_t *sample, size_t count, int flags, struct leat_err *err)
{
	const struct state *state = source->state;
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < state->columns && (status == LEAT_OK || status == LEAT_AGAIN); i++) {
		enum leat_status one = touch_column(source, &state->column[i], sample, count, flags, err);

		if (one != LEAT_OK)
			status = one;
	}
	return status;
}

static bool
rows(const struct leat_source *source, int field, struct leat_row_form *form)
{
	const struct column *column = &((const struct state *)source->state)->column[field];
	enum leat_dtype dtype = column->array[0].npy.dtype;

	*form = (struct leat_row_form){dtype, (size_t)column->row_bytes / leat_dtype_size(dtype)};
	for (size_t i = 0; i < column->files; i++)
		if (!column->array[i].aligned)
			return false;
	return true;
}

static void
rows_at(const struct leat_source *source, int field, const uint64_t *sample, size_t count, const unsigned char **at)
{
	const struct column *column = &((const struct state *)source->state)->column[field];
	const unsigned char *data = column->array[0].data;

	if (column->files == 1) {
		for (size_t i = 0; i < count; i++)
			at[i] = data + sample[i] * column->row_bytes;
		return;
	}
	for (size_t i = 0; i < count; i++) {
		size_t file = file_of(column, sample[i]);

		at[i] = column->array[file].data + row_at(column, file, sample[i]);
	}
}

/* Worker threads. */
static enum leat_status
unpack(const struct leat_source *source, const struct leat_raw *raw, struct leat_scratch *scratch,
       struct leat_sample *sample, struct leat_err *err)
{
	const struct state *state = source->state;

	sample->count = (int)state->columns;
	for (size_t i = 0; i < state->columns; i++) {
		const struct column *column = &state->column[i];
		size_t file = file_of(column, raw->index);
		const struct leat_npy_file *array = &column->array[file];
		const struct leat_npy *npy = &array->npy;
		struct leat_datum *datum = &sample->field[i];

		*datum = (struct leat_datum){
			.data = (void *)(array->data + row_at(column, file, raw->index)),
			.dtype = npy->dtype,
			.ndim = npy->ndim - 1,
			.borrowed = true,
		};
		memcpy(datum->shape, npy->shape + 1, (size_t)datum->ndim * sizeof(*datum->shape));
		if (!array->aligned) {
			void *copy = leat_scratch_alloc(scratch, (size_t)npy->row_bytes);

			if (!copy)
				return leat_fail(err, LEAT_LIMIT, "a row of %llu bytes does not fit in memory",
				                 (unsigned long long)npy->row_bytes);
			datum->data = memcpy(copy, datum->data, (size_t)npy->row_bytes);
			datum->borrowed = false;
		}
	}
	return LEAT_OK;
}

const struct leat_source_kind leat_source_npy = {
	.name = "npy",
	.doc = "Read NumPy arrays: each argument names a field and its .npy file, or several by a pattern (*, ?, "
	       "[..]), whose rows follow each other in order of their names. Row i of all fields is sample i. Files "
	       "are mapped and must be in C order. Rows of height x width x channels (1 to 4), or channels first, are "
	       "images.",
	.example = "npy(x='train-x.npy', y='train-y.npy')",
	.version = 1,
	.params_size = sizeof(struct npy),
	.parse = parse,
	.print = print,
	.open = open_source,
	.close = close_source,
	.locate = locate,
	.touch = touch,
	.rows = rows,
	.rows_at = rows_at,
	.unpack = unpack,
	.fingerprint = fingerprint,
};
