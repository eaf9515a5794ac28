/* npy.c - the source of NumPy's arrays: row i of every array makes sample i
 *
 *	npy(x='train-x.npy', y='train-y.npy')
 *
 * Each argument is a field and the .npy file that holds it. Arrays have the same number
 * of rows, are in C order, of float16, float32, float64, int32, int64, uint8 or bool
 * (which becomes uint8). Rows of three dimensions, the last or the first of which is at
 * most 4, are images to the ops that want one.
 *
 * The files are mapped: fields lie in the page cache and are not copied before the batch,
 * or an op that works in place. A file that is cut short when it is opened is refused. One
 * that is cut short later raises SIGBUS in whoever reads the part that is gone, as with
 * every mapped file: write a new file and rename it instead.
 *
 * A page that is not in memory would make the worker that reads it wait. So `touch` looks
 * which pages are, and has the others read by the I/O threads. To ask the system for
 * every row again would cost more than small rows do, so a map of bits remembers what was
 * found or brought; it is forgotten whenever more than a fourth of the RAM has gone by,
 * because the system may have dropped the first of them by then.
 *
 * Threads: touch and unpack by all workers; the bits and `next` are atomic hints. */
#include "format/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/threads.h"
#include "format/source.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

enum {
	AHEAD = 1 << 20, /* bytes to read on where rows are wanted in order */
};

struct npy {
	size_t count;
	struct file {
		const char *field, *path; /* in the spec's memory */
	} file[LEAT_MAX_FIELDS];
};

struct array {
	struct leat_npy npy;
	unsigned char *map; /* the file up to the array's end */
	size_t map_size;
	_Atomic uint64_t *known; /* a bit for each page of the map: it was in memory */
	atomic_size_t next;      /* page behind the row that was wanted last */
};

struct state {
	size_t page, arrays;
	size_t known_limit; /* pages */
	atomic_size_t known_pages;
	uint64_t first[2]; /* what source->first points to: all samples are one part */
	struct array array[];
};

/* ---- the arguments ---- */

static enum leat_status
parse_file(struct npy *npy, const struct leat_arg *arg, const char *text, struct leat_err *err)
{
	if (!arg->name)
		return leat_fail_at(err, text, arg->at, arg->len,
		                    "'npy' takes its files by the names of their fields, as in npy(x='x.npy')");
	if ((arg->type != LEAT_ARG_STRING && arg->type != LEAT_ARG_WORD) || !*arg->text || arg->items || arg->has_dims)
		return leat_fail_at(err, text, arg->at, arg->len,
		                    "the file of field '%s' is expected here, as in %s='x.npy'", arg->name, arg->name);
	if (strlen(arg->name) > LEAT_MAX_NAME)
		return leat_fail_at(err, text, arg->name_at, strlen(arg->name),
		                    "a field's name has at most %d characters", LEAT_MAX_NAME);
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
		return leat_fail_at(err, text, call->at, call->len, "'npy' takes %d files at most", LEAT_MAX_FIELDS);
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

	for (size_t i = 0; state && i < state->arrays; i++) {
		if (state->array[i].map)
			munmap(state->array[i].map, state->array[i].map_size);
		leat_free(source->mem, (void *)state->array[i].known);
	}
	leat_free(source->mem, state);
	leat_files_close(source->files);
}

static enum leat_status
read_header(const struct leat_source *source, size_t i, struct leat_npy *npy, struct leat_err *err)
{
	const struct leat_file *file = leat_files_at(source->files, i);
	size_t len = file->size < LEAT_NPY_HEADER ? (size_t)file->size : LEAT_NPY_HEADER, got;
	struct iovec iov = {.iov_base = leat_alloc(source->mem, len), .iov_len = len};
	enum leat_status status = LEAT_OK;

	if (!iov.iov_base)
		return leat_fail_mem(err, source->mem, len, "the header of an array");
	if (len)
		status = leat_files_read(source->files, i, 0, &iov, 1, 0, &got, err);
	if (status == LEAT_OK) {
		status = leat_npy_parse(iov.iov_base, len, file->size, npy, err);
		if (status == LEAT_OK && npy->ndim == 0)
			status = leat_fail(err, LEAT_DATA, "it is a single value: an array of rows is expected");
		if (status != LEAT_OK)
			leat_err_in(err, "'%s'", file->uri);
	}
	leat_free(source->mem, iov.iov_base);
	return status;
}

static enum leat_status
map_file(const struct leat_file *file, struct array *array, struct leat_err *err)
{
	int fd = open(file->uri, O_RDONLY | O_CLOEXEC);
	enum leat_status status = LEAT_OK;
	struct stat st;

	if (fd < 0)
		return leat_fail_errno(err, errno, "cannot open '%s'", file->uri);
	if (fstat(fd, &st) != 0 || (uint64_t)st.st_size != file->size) {
		status = leat_fail(err, LEAT_DATA, "'%s' changes while it is opened", file->uri);
	} else {
		array->map = mmap(NULL, array->map_size, PROT_READ, MAP_SHARED, fd, 0);
		if (array->map == MAP_FAILED) {
			array->map = NULL;
			status = leat_fail_errno(err, errno, "cannot map '%s'", file->uri);
		}
	}
	close(fd);
	return status;
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

/* In files that NumPy wrote, an element lies where its type can be loaded from. */
static bool
is_aligned(const struct leat_npy *npy)
{
	return npy->data_at % leat_dtype_size(npy->dtype) == 0;
}

static enum leat_status
open_array(struct leat_source *source, struct state *state, size_t i, struct leat_err *err)
{
	const struct npy *params = source->params;
	const struct leat_file *file = leat_files_at(source->files, i);
	struct array *array = &state->array[i];
	struct leat_npy *npy = &array->npy;
	enum leat_status status = read_header(source, i, npy, err);
	size_t words;

	if (status != LEAT_OK)
		return status;
	if (npy->shape[0] == 0 || npy->row_bytes == 0)
		return leat_fail(err, LEAT_DATA, "'%s' holds no samples: it has no %s", file->uri,
		                 npy->shape[0] ? "elements" : "rows");
	if (npy->shape[0] != state->array[0].npy.shape[0])
		return leat_fail(err, LEAT_DATA, "'%s' has %lld rows, and '%s' has %lld: they have to be as many",
		                 file->uri, (long long)npy->shape[0], leat_files_at(source->files, 0)->uri,
		                 (long long)state->array[0].npy.shape[0]);
	status = add_field(source, params->file[i].field, npy, err);
	if (status != LEAT_OK)
		return status;
	array->map_size = (size_t)(npy->data_at + npy->row_bytes * (uint64_t)npy->shape[0]);
	words = array->map_size / state->page / 64 + 1;
	array->known = leat_alloc_array(source->mem, words, sizeof(*array->known));
	if (!array->known)
		return leat_fail_mem(err, source->mem, words * sizeof(*array->known), "the pages of an array");
	if (!is_aligned(npy))
		source->max_scratch += ((size_t)npy->row_bytes + 63) & ~(size_t)63;
	return map_file(file, array, err);
}

static enum leat_status
open_files(struct leat_source *source, const struct npy *npy, struct leat_err *err)
{
	const char *path[LEAT_MAX_FIELDS];
	enum leat_status status;

	for (size_t i = 0; i < npy->count; i++)
		path[i] = npy->file[i].path;
	status = leat_files_open(&source->files, path, npy->count, source->mem, err);
	if (status == LEAT_OK && leat_files_count(source->files) != npy->count) {
		leat_files_close(source->files);
		return leat_fail(err, LEAT_INVALID,
		                 "each field of 'npy' takes one file, and a pattern matches several");
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
	state->page = (size_t)sysconf(_SC_PAGESIZE);
	state->known_limit = leat_ram("") / 4 / state->page;
	for (size_t i = 0; i < state->arrays && status == LEAT_OK; i++)
		status = open_array(source, state, i, err);
	if (status != LEAT_OK)
		goto out;
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
		const struct leat_file *file = leat_files_at(source->files, i);
		const struct leat_npy *npy = &state->array[i].npy;
		const char *dtype = leat_dtype_name(npy->dtype);

		leat_fingerprint_text(sha, params->file[i].field, strlen(params->file[i].field));
		leat_fingerprint_text(sha, file->name, strlen(file->name));
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

	*extent = (struct leat_extent){.offset = row_at(&state->array[0], sample)};
}

/* The pages of a row. */
struct pages {
	size_t first, end;
};

static struct pages
pages_of(const struct state *state, const struct array *array, uint64_t row)
{
	uint64_t begin = row_at(array, row);

	return (struct pages){
		(size_t)begin / state->page,
		(size_t)(begin + array->npy.row_bytes - 1) / state->page + 1,
	};
}

static bool
are_known(const struct array *array, struct pages pages)
{
	for (size_t i = pages.first; i < pages.end; i++)
		if (!(atomic_load_explicit(&array->known[i / 64], memory_order_relaxed) >> i % 64 & 1))
			return false;
	return true;
}

static void
forget_all(struct state *state)
{
	for (size_t a = 0; a < state->arrays; a++)
		for (size_t i = 0; i <= state->array[a].map_size / state->page / 64; i++)
			atomic_store_explicit(&state->array[a].known[i], 0, memory_order_relaxed);
}

static void
note_known(struct state *state, struct array *array, struct pages pages)
{
	size_t count = pages.end - pages.first;

	if (atomic_fetch_add_explicit(&state->known_pages, count, memory_order_relaxed) + count > state->known_limit) {
		atomic_store_explicit(&state->known_pages, 0, memory_order_relaxed);
		forget_all(state);
	}
	for (size_t i = pages.first; i < pages.end; i++)
		atomic_fetch_or_explicit(&array->known[i / 64], UINT64_C(1) << i % 64, memory_order_relaxed);
}

static bool
are_in_memory(const struct state *state, const struct array *array, struct pages pages)
{
	unsigned char in[64];

	while (pages.first < pages.end) {
		size_t count = pages.end - pages.first < sizeof(in) ? pages.end - pages.first : sizeof(in);

		if (mincore(array->map + pages.first * state->page, count * state->page, in) != 0)
			return false;
		for (size_t i = 0; i < count; i++)
			if (!(in[i] & 1))
				return false;
		pages.first += count;
	}
	return true;
}

/* Asks for the pages without waiting, and for some more when rows come in order. */
static void
read_ahead(const struct state *state, struct array *array, struct pages pages)
{
	size_t last = atomic_exchange_explicit(&array->next, pages.end, memory_order_relaxed);
	size_t begin = pages.first * state->page, len = (pages.end - pages.first) * state->page;

	if (pages.first <= last + 1 && pages.end >= last)
		len += AHEAD;
	if (len > array->map_size - begin)
		len = array->map_size - begin;
	(void)madvise(array->map + begin, len, MADV_WILLNEED);
}

/* Waits for the pages. What the system reports here would be a SIGBUS later. */
static enum leat_status
wait_for(const struct leat_source *source, size_t i, struct pages pages, struct leat_err *err)
{
	const struct state *state = source->state;
	const struct array *array = &state->array[i];
	const volatile unsigned char *byte = array->map + pages.first * state->page;
	size_t len = (pages.end - pages.first) * state->page;

	if (madvise(array->map + pages.first * state->page, len, MADV_POPULATE_READ) == 0)
		return LEAT_OK;
	if (errno == EFAULT)
		return leat_fail(err, LEAT_DATA, "'%s' is shorter than when it was opened, or cannot be read",
		                 leat_files_at(source->files, i)->uri);
	for (size_t at = 0; at < len; at += state->page) /* a system that does not know how to populate */
		(void)byte[at];
	return LEAT_OK;
}

/* Workers and I/O threads. */
static enum leat_status
touch(const struct leat_source *source, uint64_t sample, int flags, struct leat_err *err)
{
	struct state *state = source->state;
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < state->arrays && (status == LEAT_OK || status == LEAT_AGAIN); i++) {
		struct array *array = &state->array[i];
		struct pages pages = pages_of(state, array, sample);

		if (are_known(array, pages))
			continue;
		if (!are_in_memory(state, array, pages)) {
			read_ahead(state, array, pages);
			if (flags & LEAT_READ_NOWAIT) {
				status = LEAT_AGAIN;
				continue; /* ask for the other arrays' rows, too */
			}
			status = wait_for(source, i, pages, err);
		}
		if (status == LEAT_OK)
			note_known(state, array, pages);
	}
	return status;
}

/* Worker threads. */
static enum leat_status
unpack(const struct leat_source *source, uint64_t index, const struct leat_extent *extent, const unsigned char *head,
       unsigned char *payload, const unsigned char *tail, struct leat_scratch *scratch, struct leat_sample *sample,
       struct leat_err *err)
{
	const struct state *state = source->state;

	(void)extent, (void)head, (void)payload, (void)tail;
	sample->count = (int)state->arrays;
	for (size_t i = 0; i < state->arrays; i++) {
		const struct array *array = &state->array[i];
		const struct leat_npy *npy = &array->npy;
		struct leat_datum *datum = &sample->field[i];

		*datum = (struct leat_datum){
			.data = array->map + row_at(array, index),
			.dtype = npy->dtype,
			.ndim = npy->ndim - 1,
			.borrowed = true,
		};
		memcpy(datum->shape, npy->shape + 1, (size_t)datum->ndim * sizeof(*datum->shape));
		if (!is_aligned(npy)) {
			void *copy = leat_scratch_alloc(scratch, (size_t)npy->row_bytes);

			if (!copy)
				return leat_fail(err, LEAT_LIMIT, "a row of %llu bytes does not fit; raise memory",
				                 (unsigned long long)npy->row_bytes);
			datum->data = memcpy(copy, datum->data, (size_t)npy->row_bytes);
			datum->borrowed = false;
		}
	}
	return LEAT_OK;
}

const struct leat_source_kind leat_source_npy = {
	.name = "npy",
	.doc = "Rows of NumPy's arrays: each argument is a field and the .npy file that holds it, row i of all files "
	       "is "
	       "sample i. The files are mapped, and have to be in C order. Rows of height x width x channels (1 to 4), "
               "or "
	       "channels first, are images.",
	.example = "npy(x='train-x.npy', y='train-y.npy')",
	.version = 1,
	.params_size = sizeof(struct npy),
	.parse = parse,
	.print = print,
	.open = open_source,
	.close = close_source,
	.locate = locate,
	.touch = touch,
	.unpack = unpack,
	.fingerprint = fingerprint,
};
