/* archive.c - see archive.h */
#include "archive.h"

void
golden_copy(struct temp *temp, const char *folder)
{
	char command[2000];

	snprintf(command, sizeof(command), "cp -r '%s/.' '%s'", folder, temp->folder);
	assert_int_equal(system(command), 0);
}

const char *
golden_spec(const struct temp *temp, const char *spec)
{
	static char text[4096];
	size_t used = 0;

	for (; *spec; spec++) {
		if (*spec == '@')
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s", temp->folder);
		else
			text[used++] = *spec;
		assert_true(used < sizeof(text) - 1);
	}
	text[used] = '\0';
	return text;
}

/* Field `field` of row `row`, as JSON says it. */
static json_t *
golden_value(const struct leat_field *field, const struct leat_tensor *tensor, int64_t row)
{
	json_t *shape = json_array(), *value;
	int64_t count = 1, at;
	const unsigned char *bytes;
	size_t len;
	char *hex;

	for (int d = 0; d < field->ndim; d++) {
		int64_t dim = tensor->sample_shapes ? tensor->sample_shapes[row * field->ndim + d]
		              : tensor->offsets     ? tensor->offsets[row + 1] - tensor->offsets[row]
		                                    : field->shape[d];

		json_array_append_new(shape, json_integer(dim));
		count *= dim;
	}
	at = tensor->offsets ? tensor->offsets[row] : row * count;
	len = (size_t)count * leat_dtype_size(tensor->dtype);
	bytes = (const unsigned char *)tensor->data + (size_t)at * leat_dtype_size(tensor->dtype);
	hex = malloc(2 * len + 1);
	assert_non_null(hex);
	leat_hex(bytes, len, hex);
	value = json_pack("{s:s, s:o, s:s}", "dtype", leat_dtype_name(tensor->dtype), "shape", shape, "hex", hex);
	assert_non_null(value);
	free(hex);
	return value;
}

static void
golden_check_row(const char *name, const struct leat_feed *feed, const struct leat_batch *batch, int64_t row,
                 const json_t *want)
{
	assert_int_equal(leat_field_count(feed), json_object_size(want));
	for (int f = 0; f < leat_field_count(feed); f++) {
		const struct leat_field *field = leat_field_at(feed, f);
		const json_t *expected = json_object_get(want, field->name);
		struct leat_tensor tensor;
		json_t *got;

		assert_int_equal(leat_batch_field(batch, field->name, &tensor, NULL), LEAT_OK);
		got = golden_value(field, &tensor, row);
		if (!expected || !json_equal(got, expected))
			fail_msg("%s: field '%s' of sample %llu is %s, expected %s", name, field->name,
			         (unsigned long long)leat_batch_position(batch, row), json_dumps(got, JSON_SORT_KEYS),
			         expected ? json_dumps(expected, JSON_SORT_KEYS) : "none");
		json_decref(got);
	}
}

/* All of a spec's samples are those of `samples`, in order. */
static void
golden_check(const struct temp *temp, const char *name, const char *spec, const json_t *samples)
{
	char text[4200];
	struct leat_options options;
	struct leat_feed *feed = NULL;
	struct leat_batch *batch;
	struct leat_err err;
	size_t seen = 0;

	snprintf(text, sizeof(text), "%s | batch(3)", golden_spec(temp, spec));
	leat_options_init(&options);
	options.epochs = 1;
	options.threads = 2;
	options.rank = 0;
	options.world = 1;
	if (leat_open(text, &options, &feed, &err) != LEAT_OK)
		fail_msg("%s: %s", name, err.text);
	assert_int_equal(leat_samples(feed), json_array_size(samples));
	while (leat_next(feed, &batch, &err) == LEAT_OK) {
		for (int64_t row = 0; row < leat_batch_count(batch); row++)
			golden_check_row(name, feed, batch, row, json_array_get(samples, seen++));
		leat_release(batch);
	}
	if (err.status != LEAT_OK && err.status != LEAT_END && err.status != LEAT_DONE)
		fail_msg("%s: %s", name, err.text);
	assert_int_equal(seen, json_array_size(samples));
	leat_close(feed);
}

void
golden_check_all(struct temp *temp, const char *folder, size_t least)
{
	char path[1000];
	json_t *golden, *entry;
	size_t i;

	snprintf(path, sizeof(path), "%s/cases.json", folder);
	golden = json_load_file(path, 0, NULL);
	assert_non_null(golden);
	golden_copy(temp, folder);
	assert_true(json_array_size(json_object_get(golden, "cases")) >= least);
	for (int again = 0; again < 2; again++)
		json_array_foreach(json_object_get(golden, "cases"), i, entry) golden_check(
			temp, json_string_value(json_object_get(entry, "name")),
			json_string_value(json_object_get(entry, "spec")), json_object_get(entry, "samples"));
	json_decref(golden);
}

void
archive_init(struct archive *a)
{
	*a = (struct archive){.open = false};
	leat_mem_init(&a->mem, SIZE_MAX);
}

enum leat_status
archive_open(struct archive *a, const char *kind, const void *params)
{
	enum leat_status status;

	leat_err_clear(&a->err);
	status = leat_source_open(&a->source, leat_source_find(kind), params, 2, UINT64_MAX, NULL, &a->mem, &log_all,
	                          &a->err);
	assert_int_equal(status, a->err.status);
	if (status != LEAT_OK) {
		assert_true(a->err.text[0]);
		assert_int_equal(a->mem.used, 0);
		return status;
	}
	a->open = true;
	assert_int_equal(leat_scratch_open(&a->scratch, &a->mem, a->source.max_scratch + 64), 0);
	return status;
}

void
archive_close(struct archive *a)
{
	if (a->open) {
		leat_scratch_close(&a->scratch, &a->mem);
		leat_source_close(&a->source);
	}
	a->open = false;
	free(a->bytes);
	a->bytes = NULL;
	assert_int_equal(a->mem.used, 0);
}

enum leat_status
archive_read(struct archive *a, uint64_t i)
{
	const struct leat_source *source = &a->source;
	struct leat_extent e;
	enum leat_status status;
	struct iovec iov;
	size_t got;

	leat_err_clear(&a->err);
	leat_scratch_reset(&a->scratch);
	free(a->bytes);
	a->bytes = NULL;
	source->kind->locate(source, i, &e);
	assert_true(e.file < leat_files_count(source->files));
	assert_true(i >= source->first[e.file] && i < source->first[e.file + 1]);
	if (e.damaged) {
		assert_int_equal(source->kind->unpack(source, &(struct leat_raw){.index = i, .extent = e}, &a->scratch,
		                                      &a->sample, &a->err),
		                 LEAT_DATA);
		assert_true(a->err.text[0]);
		return LEAT_DATA;
	}
	assert_true(e.length <= source->max_length && (uint64_t)e.head + e.tail <= e.length);
	assert_true(e.length - e.head - e.tail <= source->max_payload);
	a->bytes = malloc((size_t)e.length);
	assert_non_null(a->bytes);
	iov = (struct iovec){a->bytes, (size_t)e.length};
	status = leat_files_read(source->files, e.file, e.offset, &iov, 1, 0, &got, &a->err);
	assert_int_equal(status, LEAT_OK);
	status = source->kind->unpack(source,
	                              &(struct leat_raw){.index = i,
	                                                 .extent = e,
	                                                 .head = a->bytes,
	                                                 .payload = a->bytes + e.head,
	                                                 .tail = a->bytes + e.length - e.tail},
	                              &a->scratch, &a->sample, &a->err);
	assert_int_equal(status, a->err.status);
	if (status != LEAT_OK) {
		assert_int_equal(status, LEAT_DATA);
		assert_non_null(strstr(a->err.text, leat_files_at(source->files, e.file)->uri));
		return status;
	}
	assert_int_equal(a->sample.count, source->schema.count);
	for (int f = 0; f < a->sample.count; f++) {
		const struct leat_datum *datum = &a->sample.field[f];

		assert_int_equal(datum->dtype, source->schema.entry[f].field.dtype);
		assert_int_equal(datum->ndim, source->schema.entry[f].field.ndim);
		for (int d = 0; d < datum->ndim; d++)
			assert_true(datum->shape[d] >= 0 &&
			            (source->schema.entry[f].field.shape[d] < 0 ||
			             source->schema.entry[f].field.shape[d] == datum->shape[d]));
		assert_int_equal((uintptr_t)datum->data % leat_dtype_size(datum->dtype), 0);
		for (size_t k = 0; k < leat_datum_bytes(datum); k++) /* all of it can be read: sanitizers look */
			a->err.text[0] = (char)(a->err.text[0] ^ ((const char *)datum->data)[k]);
	}
	a->err.text[0] = '\0';
	return LEAT_OK;
}
