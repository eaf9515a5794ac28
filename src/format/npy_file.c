/* npy_file.c - see npy_file.h */
#include "format/npy_file.h"

#include <stdio.h>
#include <string.h>

#include "base/threads.h"

enum { SMALL = 1 << 20 }; /* up to this size, the arrays of a field are read, not mapped */

struct job {
	struct leat_source *source;
	size_t begin;
	struct leat_npy_file *array;
	const char *field;
	bool cut;
	bool large; /* map the arrays */
};

/* Bytes of the array that are in the file: all, unless the file is cut. */
static uint64_t
held_bytes(const struct leat_object *object, const struct leat_npy *npy)
{
	uint64_t held = object->size - npy->data_at;

	return held < npy->bytes ? held : npy->bytes;
}

bool
leat_npy_file_is_descriptor(const struct leat_object *object)
{
	return strncmp(object->uri, "/proc/", 6) == 0 && strstr(object->uri, "/fd/");
}

const char *
leat_npy_file_shown(const struct leat_source *source, size_t file, const char *field, char buf[LEAT_URI])
{
	const struct leat_object *object = leat_files_at(source->files, file);

	if (leat_npy_file_is_descriptor(object))
		snprintf(buf, LEAT_URI, "array '%s'", field);
	else
		snprintf(buf, LEAT_URI, "'%s'", object->uri);
	return buf;
}

/* Answers of a server take longer than work on them. */
static unsigned
threads_for(const struct leat_source *source, size_t file, unsigned threads)
{
	enum { REMOTE = 8 };

	return leat_files_at(source->files, file)->store->kind->remote && threads < REMOTE ? REMOTE : threads;
}

/* ---- opening ---- */

static enum leat_status
parse(const struct job *job, const unsigned char *bytes, size_t len, uint64_t size, struct leat_npy *npy,
      struct leat_err *err)
{
	enum leat_status status = job->cut ? leat_npy_parse_header(bytes, len, size, npy, err)
	                                   : leat_npy_parse(bytes, len, size, npy, err);

	if (status == LEAT_OK && npy->ndim == npy->is_complex)
		status = leat_fail(err, LEAT_DATA, "it is a scalar; expected an array of rows");
	return status;
}

static enum leat_status
read_header(void *arg, size_t i, struct leat_err *err)
{
	const struct job *job = arg;
	struct leat_mem *mem = job->source->mem;
	const struct leat_object *object = leat_files_at(job->source->files, job->begin + i);
	size_t len = object->size < LEAT_NPY_HEADER ? (size_t)object->size : LEAT_NPY_HEADER, got;
	struct iovec iov = {.iov_base = leat_alloc(mem, len), .iov_len = len};
	enum leat_status status = LEAT_OK;
	char buf[LEAT_URI];

	if (!iov.iov_base)
		return leat_fail_mem(err, mem, len, "the header of an array");
	if (len)
		status = leat_object_read(object, 0, &iov, 1, 0, &got, err);
	if (status == LEAT_OK) {
		status = parse(job, iov.iov_base, len, object->size, &job->array[i].npy, err);
		if (status != LEAT_OK)
			leat_err_in(err, "%s", leat_npy_file_shown(job->source, job->begin + i, job->field, buf));
	}
	leat_free(mem, iov.iov_base);
	if (status == LEAT_OK) /* ignores that blocks we read are aligned: rare */
		job->array[i].aligned = job->array[i].npy.data_at % leat_dtype_size(job->array[i].npy.dtype) == 0;
	return status;
}

enum leat_status
leat_npy_files_read_headers(struct leat_source *source, size_t begin, size_t count, const char *field, bool cut,
                            unsigned threads, struct leat_npy_file *array, struct leat_err *err)
{
	struct job job = {source, begin, array, field, cut, false};

	return leat_parallel(source->mem, threads_for(source, begin, threads), count, read_header, &job, err);
}

static enum leat_status
bring(void *arg, size_t i, struct leat_err *err)
{
	const struct job *job = arg;
	struct leat_source *source = job->source;
	struct leat_npy_file *array = &job->array[i];
	struct leat_object *object = leat_files_edit(source->files, job->begin + i);
	struct iovec iov = {.iov_len = (size_t)held_bytes(object, &array->npy)};
	const unsigned char *bytes;
	enum leat_status status;
	size_t got;

	if (iov.iov_len == 0)
		return LEAT_OK;
	if (job->large && object->store->kind->map) {
		status = object->store->kind->map(object, &bytes, err);
		array->data = status == LEAT_OK ? bytes + array->npy.data_at : NULL;
		array->mapped = status == LEAT_OK;
		return status;
	}
	array->block = iov.iov_base = leat_realloc_raw(source->mem, NULL, iov.iov_len);
	if (!array->block)
		return leat_fail_mem(err, source->mem, iov.iov_len, "an array");
	array->data = array->block;
	return leat_object_read(object, array->npy.data_at, &iov, 1, 0, &got, err);
}

enum leat_status
leat_npy_files_bring(struct leat_source *source, size_t begin, size_t count, unsigned threads,
                     struct leat_npy_file *array, struct leat_err *err)
{
	struct job job = {source, begin, array, NULL, false, false};
	enum leat_status status;
	uint64_t bytes = 0;

	for (size_t i = 0; i < count && bytes <= SMALL; i++)
		bytes += held_bytes(leat_files_at(source->files, begin + i), &array[i].npy);
	job.large = bytes > SMALL;
	status = leat_parallel(source->mem, threads_for(source, begin, threads), count, bring, &job, err);

	for (size_t i = 0; i < count; i++)
		source->mapped |= array[i].mapped;
	return status;
}

void
leat_npy_files_free(struct leat_source *source, size_t count, struct leat_npy_file *array)
{
	for (size_t i = 0; i < count; i++)
		leat_free(source->mem, array[i].block);
}

/* ---- reading ---- */

enum leat_status
leat_npy_file_touch(const struct leat_source *source, size_t file, const struct leat_npy_file *array,
                    const uint64_t *offset, size_t count, uint64_t length, int flags, struct leat_err *err)
{
	const struct leat_object *object = leat_files_at(source->files, file);

	if (!array->mapped)
		return LEAT_OK;
	return object->store->kind->bring(object, offset, count, (size_t)length, !(flags & LEAT_READ_NOWAIT), err);
}

void
leat_npy_file_fingerprint(const struct leat_source *source, size_t file, const struct leat_npy_file *array,
                          const char *field, struct leat_sha256 *sha)
{
	const struct leat_object *object = leat_files_at(source->files, file);
	const struct leat_npy *npy = &array->npy;
	const char *dtype = leat_dtype_name(npy->dtype), *name = object->name;
	char own[LEAT_MAX_NAME + 8];

	if (leat_npy_file_is_descriptor(object)) {
		snprintf(own, sizeof(own), "%s.npy", field);
		name = own;
	}
	leat_fingerprint_text(sha, field, strlen(field));
	leat_fingerprint_text(sha, name, strlen(name));
	leat_fingerprint_text(sha, dtype, strlen(dtype));
	leat_fingerprint_number(sha, object->size);
	leat_fingerprint_number(sha, (uint64_t)npy->ndim);
	for (int d = 0; d < npy->ndim; d++)
		leat_fingerprint_number(sha, (uint64_t)npy->shape[d]);
}
