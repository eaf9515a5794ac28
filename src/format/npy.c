/* npy.c - the source of NumPy arrays: row i of every array makes up sample i
 *
 *	npy(x='train-x.npy', y='train-y.npy')
 *
 * Each argument names a field and its .npy file. All arrays have the same number of rows, are
 * in C order and little-endian, and hold numbers: bool becomes uint8, complex numbers become pairs
 * of floats, everything else keeps its type. Image ops accept rows of three dimensions whose last
 * or first is at most 4.
 *
 * Arrays of up to 1 MiB are read when the feed opens. Larger files are mapped: fields point
 * into the page cache and are first copied into the batch or by an op that works in place
 * (store/file_map.c explains what happens if a file changes meanwhile).
 *
 * Threads: all workers call touch and unpack. */
#include "format/npy_header.h"

#include <stdio.h>
#include <string.h>

#include "format/source.h"

enum {
	SMALL = 1 << 20, /* up to this size, an array is read, not mapped */
	TOUCHED = 64,    /* rows at a time */
};

struct npy {
	size_t count;
	struct file {
		const char *field, *path; /* owned by the spec */
	} file[LEAT_MAX_FIELDS];
};

struct array {
	struct leat_npy npy;
	const unsigned char *rows;
	bool mapped;
	void *block; /* the array, if not mapped */
};

struct state {
	size_t arrays;
	uint64_t first[2];  /* backs source->first: all samples are one part */
	uint64_t row_bytes; /* of all arrays together */
	struct array array[];
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
		return leat_fail_at(err, text, call->at, call->len, "'npy' takes at most %d files", LEAT_MAX_FIELDS);
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

	for (size_t i = 0; state && i < state->arrays; i++)
		leat_free(source->mem, state->array[i].block);
	leat_free(source->mem, state);
	leat_files_close(source->files);
}

/* An open file without a name, such as memory that a program shares: only its field identifies it. */
static bool
is_descriptor(const struct leat_object *file)
{
	return strncmp(file->uri, "/proc/", 6) == 0 && strstr(file->uri, "/fd/");
}

/* For messages: 'x.npy', or the field if the file has no name. */
static const char *
shown(const struct leat_source *source, size_t i, char buf[LEAT_URI])
{
	const struct npy *npy = source->params;
	const struct leat_object *file = leat_files_at(source->files, i);

	if (is_descriptor(file))
		snprintf(buf, LEAT_URI, "array '%s'", npy->file[i].field);
	else
		snprintf(buf, LEAT_URI, "'%s'", file->uri);
	return buf;
}

static enum leat_status
read_header(const struct leat_source *source, size_t i, struct leat_npy *npy, struct leat_err *err)
{
	const struct leat_object *file = leat_files_at(source->files, i);
	size_t len = file->size < LEAT_NPY_HEADER ? (size_t)file->size : LEAT_NPY_HEADER, got;
	struct iovec iov = {.iov_base = leat_alloc(source->mem, len), .iov_len = len};
	enum leat_status status = LEAT_OK;
	char buf[LEAT_URI];

	if (!iov.iov_base)
		return leat_fail_mem(err, source->mem, len, "the header of an array");
	if (len)
		status = leat_files_read(source->files, i, 0, &iov, 1, 0, &got, err);
	if (status == LEAT_OK) {
		status = leat_npy_parse(iov.iov_base, len, file->size, npy, err);
		if (status == LEAT_OK && npy->ndim == 0)
			status = leat_fail(err, LEAT_DATA, "it is a scalar; expected an array of rows");
		if (status != LEAT_OK)
			leat_err_in(err, "%s", shown(source, i, buf));
	}
	leat_free(source->mem, iov.iov_base);
	return status;
}

/* Reads a small array, and maps a larger one if the store can. Otherwise all of it must fit in memory. */
static enum leat_status
bring_array(struct leat_source *source, size_t i, struct array *array, struct leat_err *err)
{
	struct leat_object *file = leat_files_edit(source->files, i);
	struct iovec iov = {.iov_len = array->npy.row_bytes * (size_t)array->npy.shape[0]};
	const unsigned char *bytes;
	enum leat_status status;
	size_t got;

	if (iov.iov_len == 0)
		return LEAT_OK;
	if (iov.iov_len > SMALL && file->store->kind->map) {
		status = file->store->kind->map(file, &bytes, err);
		array->rows = status == LEAT_OK ? bytes + array->npy.data_at : NULL;
		array->mapped = source->mapped = true;
		return status;
	}
	array->block = iov.iov_base = leat_realloc_raw(source->mem, NULL, iov.iov_len);
	if (!array->block)
		return leat_fail_mem(err, source->mem, iov.iov_len, "an array");
	array->rows = array->block;
	return leat_files_read(source->files, i, array->npy.data_at, &iov, 1, 0, &got, err);
}

static enum leat_status
add_field(struct leat_source *source, const char *name, const struct leat_npy *npy, struct leat_err *err)
{
	struct leat_field *field = leat_schema_add(&source->schema, name, npy->dtype);

	if (!field)
		return leat_fail(err, LEAT_INTERNAL, "the field '%s' cannot be added", name);
	field->ndim = npy->ndim - 1;
	memcpy(field->shape, npy->shape + 1, (size_t)field->ndim * sizeof(*field->shape));
	return LEAT_OK;
}

/* Whether elements are aligned for their type, as in files written by NumPy. */
static bool
is_aligned(const struct leat_npy *npy)
{
	return npy->data_at % leat_dtype_size(npy->dtype) == 0; /* ignores that blocks we read are aligned: rare */
}

static enum leat_status
open_array(struct leat_source *source, struct state *state, size_t i, struct leat_err *err)
{
	const struct npy *params = source->params;
	struct array *array = &state->array[i];
	struct leat_npy *npy = &array->npy;
	enum leat_status status = read_header(source, i, npy, err);
	char buf[LEAT_URI], first[LEAT_URI];

	if (status != LEAT_OK)
		return status;
	if (npy->row_bytes == 0)
		return leat_fail(err, LEAT_DATA, "%s has no samples: it has no elements", shown(source, i, buf));
	if (npy->shape[0] != state->array[0].npy.shape[0])
		return leat_fail(err, LEAT_DATA,
		                 "%s has %lld rows, but %s has %lld; all arrays need the same number of rows",
		                 shown(source, i, buf), (long long)npy->shape[0], shown(source, 0, first),
		                 (long long)state->array[0].npy.shape[0]);
	status = add_field(source, params->file[i].field, npy, err);
	if (status != LEAT_OK)
		return status;
	if (__builtin_add_overflow(state->row_bytes, npy->row_bytes, &state->row_bytes))
		state->row_bytes = UINT64_MAX;
	if (!is_aligned(npy))
		source->max_scratch += ((size_t)npy->row_bytes + 63) & ~(size_t)63;
	return bring_array(source, i, array, err);
}

static enum leat_status
open_files(struct leat_source *source, const struct npy *npy, struct leat_err *err)
{
	const char *path[LEAT_MAX_FIELDS];
	enum leat_status status;

	for (size_t i = 0; i < npy->count; i++)
		path[i] = npy->file[i].path;
	status = leat_files_open(&source->files, &source->stores, path, npy->count, source->mem, err);
	if (status == LEAT_OK && leat_files_count(source->files) != npy->count) {
		leat_files_close(source->files);
		return leat_fail(err, LEAT_INVALID,
		                 "each field of 'npy' takes one file, but a pattern matches several");
	}
	return status;
}

static enum leat_status
open_source(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	const struct npy *npy = source->params;
	enum leat_status status = open_files(source, npy, err);
	struct state *state;

	(void)threads;
	if (status != LEAT_OK)
		return status;
	state = source->state = leat_alloc(source->mem, sizeof(*state) + npy->count * sizeof(*state->array));
	if (!state) {
		status = leat_fail_mem(err, source->mem, npy->count * sizeof(*state->array), "the arrays");
		goto out;
	}
	state->arrays = npy->count;
	for (size_t i = 0; i < state->arrays && status == LEAT_OK; i++)
		status = open_array(source, state, i, err);
	if (status != LEAT_OK)
		goto out;
	source->all_fit = state->row_bytes <= source->max_bytes;
	if (!source->all_fit)
		source->max_scratch = 0; /* no row is read */
	source->count = state->first[1] = (uint64_t)state->array[0].npy.shape[0];
	source->first = state->first;
	source->parts = 1;
out:
	if (status != LEAT_OK)
		close_source(source);
	return status;
}

static void
fingerprint(const struct leat_source *source, struct leat_sha256 *sha)
{
	const struct npy *params = source->params;
	const struct state *state = source->state;

	for (size_t i = 0; i < state->arrays; i++) {
		const struct leat_object *file = leat_files_at(source->files, i);
		const struct leat_npy *npy = &state->array[i].npy;
		const char *dtype = leat_dtype_name(npy->dtype), *name = file->name;
		char own[LEAT_MAX_NAME + 8];

		if (is_descriptor(file)) {
			snprintf(own, sizeof(own), "%s.npy", params->file[i].field);
			name = own;
		}
		leat_fingerprint_text(sha, params->file[i].field, strlen(params->file[i].field));
		leat_fingerprint_text(sha, name, strlen(name));
		leat_fingerprint_text(sha, dtype, strlen(dtype));
		leat_fingerprint_number(sha, file->size);
		leat_fingerprint_number(sha, (uint64_t)npy->ndim);
		for (int d = 0; d < npy->ndim; d++)
			leat_fingerprint_number(sha, (uint64_t)npy->shape[d]);
	}
}

/* ---- samples ---- */

static uint64_t
row_at(const struct array *array, uint64_t row)
{
	return array->npy.data_at + row * array->npy.row_bytes;
}

static void
locate(const struct leat_source *source, uint64_t sample, struct leat_extent *extent)
{
	const struct state *state = source->state;

	*extent = (struct leat_extent){.offset = row_at(&state->array[0], sample), .lent = state->row_bytes};
}

static enum leat_status
touch_rows(const struct leat_object *file, const struct array *array, const uint64_t *sample, size_t count, int flags,
           struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	uint64_t offset[TOUCHED];

	while (count > 0 && (status == LEAT_OK || status == LEAT_AGAIN)) {
		size_t some = count < TOUCHED ? count : TOUCHED;
		enum leat_status one;

		for (size_t i = 0; i < some; i++)
			offset[i] = row_at(array, sample[i]);
		one = file->store->kind->bring(file, offset, some, (size_t)array->npy.row_bytes,
		                               !(flags & LEAT_READ_NOWAIT), err);
		if (one != LEAT_OK)
			status = one; /* continue, to start loading the other rows too */
		sample += some;
		count -= some;
	}
	return status;
}

/* Workers and I/O threads. */
static enum leat_status
touch(const struct leat_source *source, const uint64_t *sample, size_t count, int flags, struct leat_err *err)
{
	const struct state *state = source->state;
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < state->arrays && (status == LEAT_OK || status == LEAT_AGAIN); i++) {
		enum leat_status one = LEAT_OK;

		if (state->array[i].mapped)
			one = touch_rows(leat_files_at(source->files, i), &state->array[i], sample, count, flags, err);
		if (one != LEAT_OK)
			status = one;
	}
	return status;
}

static bool
rows(const struct leat_source *source, int field, struct leat_row_form *form)
{
	const struct leat_npy *npy = &((const struct state *)source->state)->array[field].npy;

	*form = (struct leat_row_form){npy->dtype, (size_t)npy->row_bytes / leat_dtype_size(npy->dtype)};
	return is_aligned(npy);
}

static void
rows_at(const struct leat_source *source, int field, const uint64_t *sample, size_t count, const unsigned char **at)
{
	const struct array *array = &((const struct state *)source->state)->array[field];

	for (size_t i = 0; i < count; i++)
		at[i] = array->rows + sample[i] * array->npy.row_bytes;
}

/* Worker threads. */
static enum leat_status
unpack(const struct leat_source *source, const struct leat_raw *raw, struct leat_scratch *scratch,
       struct leat_sample *sample, struct leat_err *err)
{
	const struct state *state = source->state;

	sample->count = (int)state->arrays;
	for (size_t i = 0; i < state->arrays; i++) {
		const struct array *array = &state->array[i];
		const struct leat_npy *npy = &array->npy;
		struct leat_datum *datum = &sample->field[i];

		*datum = (struct leat_datum){
			.data = (void *)(array->rows + raw->index * npy->row_bytes),
			.dtype = npy->dtype,
			.ndim = npy->ndim - 1,
			.borrowed = true,
		};
		memcpy(datum->shape, npy->shape + 1, (size_t)datum->ndim * sizeof(*datum->shape));
		if (!is_aligned(npy)) {
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
	.doc = "Read NumPy arrays: each argument names a field and its .npy file; row i of all files is sample i. "
	       "Files are mapped and must be in C order. Rows of height x width x channels (1 to 4), or channels "
	       "first, are images.",
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
