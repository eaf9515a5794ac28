/* tfrecord.c - the source of TFRecord files: one sample per record, its bytes in the field `record`
 *
 * Records are found by each file's index (tfrecord_index.c), in parallel over the
 * files, once; later opens map the indexes. A damaged region counts as one sample, so
 * that on_error decides about it like about any bad sample. */
#include "format/source.h"

#include <string.h>

#include "base/threads.h"
#include "format/tfrecord.h"

static const struct leat_opt options[] = {
	LEAT_STRINGS(struct leat_tfrecord_params, patterns, LEAT_REQUIRED,
                     "files, or patterns of files with *, ? and [..]; each pattern's files are sorted by name",
                     LEAT_OPT_LOCATION),
	LEAT_OPT_(struct leat_tfrecord_params, crc, LEAT_OPT_BOOL, "true", 0, 1, NULL,
                  "check each record's checksums as it is read",
                  LEAT_OPT_NAMED), /* so that patterns take all positions */
	LEAT_OPT_END,
};

struct state {
	struct leat_index *index; /* per file */
	uint64_t *first;          /* what source->first points to */
	size_t last;              /* the file that locate found last: neighbours are mostly in the same one */
};

static void
close_source(struct leat_source *source)
{
	struct state *state = source->state;

	for (size_t i = 0; state && state->index && i < leat_files_count(source->files); i++)
		leat_index_free(&state->index[i]);
	if (state) {
		leat_free(source->mem, state->index);
		leat_free(source->mem, state->first);
		leat_free(source->mem, state);
	}
	leat_files_close(source->files);
}

/* What the threads that prepare the indexes share. */
struct job {
	const struct leat_source *source;
	struct leat_index *index;
	atomic_size_t built, unsaved;
};

static enum leat_status
prepare(void *arg, size_t i, struct leat_err *err)
{
	struct job *job = arg;
	const struct leat_source *source = job->source;
	enum leat_index_state outcome;
	struct leat_err unsaved;
	enum leat_status status;

	leat_err_clear(&unsaved);
	status = leat_tfrecord_prepare(source->files, i, source->mem, source->log, &job->index[i], &outcome, &unsaved,
	                               err);
	if (status != LEAT_OK)
		return status;
	if (outcome == LEAT_INDEX_BUILT)
		atomic_fetch_add(&job->built, 1);
	/* The first one tells enough: a folder that cannot be written refuses all. */
	if (outcome == LEAT_INDEX_UNSAVED && atomic_fetch_add(&job->unsaved, 1) == 0)
		leat_log(source->log, LEAT_LOG_WARN, "an index could not be saved, and is made again at each start: %s",
		         unsaved.text);
	return LEAT_OK;
}

static void
warn_of_damage(const struct leat_source *source, const struct leat_index *index, size_t file)
{
	uint64_t first = 0;

	if (!index->damaged)
		return;
	while (!leat_index_is_damaged(index, first))
		first++;
	leat_log(source->log, LEAT_LOG_WARN, "'%s' is damaged in %llu place%s, the first at offset %llu",
	         leat_files_at(source->files, file)->uri, (unsigned long long)index->damaged,
	         index->damaged == 1 ? "" : "s", (unsigned long long)leat_index_offset(index, first));
}

/* Says what is wrong at the begin of a damaged region, by reading its header again. */
static enum leat_status
describe_damage(const struct leat_source *source, size_t i, uint64_t offset, uint64_t length, struct leat_err *err)
{
	const struct leat_file *file = leat_files_at(source->files, i);
	unsigned char head[LEAT_TFRECORD_HEAD];
	struct iovec iov = {.iov_base = head, .iov_len = sizeof(head)};
	enum leat_status status = LEAT_OK;
	uint64_t left = offset < file->size ? file->size - offset : 0, ignored;
	const char *fault;
	size_t got;

	if (left >= sizeof(head))
		status = leat_files_read(source->files, i, offset, &iov, 1, 0, &got, err);
	if (status != LEAT_OK)
		return status;
	fault = leat_tfrecord_header_fault(head, left, &ignored);
	return leat_fail(err, LEAT_DATA, "%s at offset %llu: %s (%llu bytes damaged)", file->uri,
	                 (unsigned long long)offset,
	                 fault ? fault : "record's checksum does not match, and no record follows it",
	                 (unsigned long long)length);
}

/* Adds up the files' samples. No sample at all, or none that can be read, is an error. */
static enum leat_status
count_samples(struct leat_source *source, struct state *state, struct leat_err *err)
{
	size_t files = leat_files_count(source->files);
	const char *one = leat_files_at(source->files, 0)->uri;
	uint64_t damaged = 0;

	for (size_t i = 0; i < files; i++) {
		const struct leat_index *index = &state->index[i];

		warn_of_damage(source, index, i);
		state->first[i + 1] = state->first[i] + index->count;
		damaged += index->damaged;
		if (index->max_length > source->max_length)
			source->max_length = index->max_length;
	}
	source->first = state->first;
	source->count = state->first[files];
	if (source->count == 0)
		return files == 1 ? leat_fail(err, LEAT_DATA, "'%s' holds no samples: it is empty", one)
		                  : leat_fail(err, LEAT_DATA,
		                              "the %zu files, '%s' first, hold no samples: all are empty", files, one);
	if (damaged == source->count) {
		size_t i = 0;

		while (!state->index[i].count)
			i++;
		describe_damage(source, i, 0, leat_index_length(&state->index[i], 0), err);
		if (err)
			leat_err_in(err, "no TFRecord file holds a record that can be read");
		return LEAT_DATA;
	}
	source->max_payload = source->max_length - LEAT_TFRECORD_FRAME;
	return LEAT_OK;
}

static enum leat_status
open_source(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	const struct leat_tfrecord_params *params = source->params;
	struct leat_field *record = leat_schema_add(&source->schema, "record", LEAT_U8);
	struct job job = {.source = source};
	struct state *state;
	enum leat_status status;
	size_t files;

	record->ndim = 1;
	record->shape[0] = -1;
	status = leat_files_open(&source->files, params->patterns.value, params->patterns.count, source->mem, err);
	if (status != LEAT_OK)
		return status;
	files = leat_files_count(source->files);
	state = source->state = leat_alloc(source->mem, sizeof(*state));
	if (state) {
		job.index = state->index = leat_alloc_array(source->mem, files, sizeof(*state->index));
		state->first = leat_alloc_array(source->mem, files + 1, sizeof(*state->first));
	}
	if (!state || !state->index || !state->first)
		status = leat_fail_mem(err, source->mem, files * (sizeof(*state->index) + sizeof(*state->first)),
		                       "the indexes of the files");
	if (status == LEAT_OK)
		status = leat_parallel(source->mem, threads, files, prepare, &job, err);
	if (status == LEAT_OK && job.built)
		leat_log(source->log, LEAT_LOG_INFO, "made the index of %zu of %zu files", (size_t)job.built, files);
	if (status == LEAT_OK)
		status = count_samples(source, state, err);
	if (status != LEAT_OK)
		close_source(source);
	return status;
}

/* Which file holds sample `sample`. */
static size_t
find_file(const struct leat_source *source, struct state *state, uint64_t sample)
{
	size_t low = 0, high = leat_files_count(source->files);

	if (sample >= state->first[state->last] && sample < state->first[state->last + 1])
		return state->last;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (state->first[middle] <= sample)
			low = middle;
		else
			high = middle;
	}
	return state->last = low;
}

static void
locate(const struct leat_source *source, uint64_t sample, struct leat_extent *extent)
{
	struct state *state = source->state;
	size_t file = find_file(source, state, sample);
	const struct leat_index *index = &state->index[file];
	uint64_t i = sample - state->first[file];

	*extent = (struct leat_extent){
		.file = (uint32_t)file,
		.head = LEAT_TFRECORD_HEAD,
		.tail = LEAT_TFRECORD_TAIL,
		.damaged = leat_index_is_damaged(index, i),
		.offset = leat_index_offset(index, i),
		.length = leat_index_length(index, i),
	};
	/* The index may be a mapped file, which others could write to: buffers are sized by these two. */
	if (extent->length < LEAT_TFRECORD_FRAME || extent->length > source->max_length)
		extent->damaged = true;
	if (extent->damaged)
		extent->head = extent->tail = 0;
}

/* Worker threads. */
static enum leat_status
unpack(const struct leat_source *source, uint64_t sample_index, const struct leat_extent *extent,
       const unsigned char *head, unsigned char *payload, const unsigned char *tail, struct leat_scratch *scratch,
       struct leat_sample *sample, struct leat_err *err)
{
	const struct leat_tfrecord_params *params = source->params;
	uint64_t length = extent->length - LEAT_TFRECORD_FRAME;
	const char *fault = NULL;

	(void)sample_index, (void)scratch;
	if (extent->damaged)
		return describe_damage(source, extent->file, extent->offset, extent->length, err);
	if (params->crc && leat_load32(head + 8) != leat_tfrecord_crc(head, 8))
		fault = "record header's checksum does not match";
	else if (leat_load64(head) != length)
		fault = "record has another length than when the file was indexed";
	else if (params->crc && leat_load32(tail) != leat_tfrecord_crc(payload, (size_t)length))
		fault = "record's checksum does not match";
	if (fault)
		return leat_fail(err, LEAT_DATA, "%s at offset %llu: %s (%llu bytes)",
		                 leat_files_at(source->files, extent->file)->uri, (unsigned long long)extent->offset,
		                 fault, (unsigned long long)length);
	sample->count = 1;
	sample->field[0] = (struct leat_datum){
		.data = payload,
		.dtype = LEAT_U8,
		.ndim = 1,
		.shape = {(int64_t)length},
	};
	return LEAT_OK;
}

const struct leat_source_kind leat_source_tfrecord = {
	.name = "tfrecord",
	.doc = "Records of TFRecord files, each as bytes in the field `record`.",
	.example = "tfrecord('train-*.tfrecord')",
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct leat_tfrecord_params),
	.open = open_source,
	.close = close_source,
	.locate = locate,
	.unpack = unpack,
	.payload_is_field = true,
};
