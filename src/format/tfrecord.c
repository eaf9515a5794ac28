/* tfrecord.c - the source of TFRecord files: one sample per record, its bytes in the field `record`
 *
 * Records are found by each file's index (tfrecord_index.c), in parallel over the
 * files, once; later opens map the indexes. Records of compressed files are copied out of
 * blocks that all workers share (blocks.c); the engine reads nothing for them. */
#include "format/source.h"

#include <string.h>

#include "base/copy.h"
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
	struct leat_indexed indexed;
	struct leat_blocks blocks; /* zeroed: no file is compressed */
};

static void
close_source(struct leat_source *source)
{
	struct state *state = source->state;

	if (state) {
		leat_blocks_close(&state->blocks);
		leat_indexed_close(&state->indexed);
	}
	leat_free(source->mem, state);
	leat_files_close(source->files);
}

static enum leat_status
fail_packed(const char *uri, uint64_t at, const char *fault, uint64_t out, struct leat_err *err)
{
	return leat_fail(err, LEAT_DATA,
	                 "%s at compressed offset %llu: %s (records from inflated offset %llu on are lost)", uri,
	                 (unsigned long long)at, fault, (unsigned long long)out);
}

enum leat_status
leat_tfrecord_damage(const struct leat_indexed *indexed, const struct leat_extent *extent, struct leat_err *err)
{
	const struct leat_index *index = &indexed->index[extent->file];
	struct leat_files *files = indexed->files;
	const struct leat_object *file = leat_files_at(files, extent->file);
	uint64_t left = extent->offset < file->size ? file->size - extent->offset : 0, ignored;
	unsigned char head[LEAT_TFRECORD_HEAD];
	struct iovec iov = {.iov_base = head, .iov_len = sizeof(head)};
	enum leat_status status = LEAT_OK;
	const char *fault;
	size_t got;

	if (index->packed)
		return fail_packed(file->uri, index->points.head.fault_at, index->points.head.fault, extent->offset,
		                   err);
	if (left >= sizeof(head))
		status = leat_files_read(files, extent->file, extent->offset, &iov, 1, 0, &got, err);
	if (status != LEAT_OK)
		return status;
	fault = leat_tfrecord_header_fault(head, left, &ignored);
	return leat_fail(err, LEAT_DATA, "%s at offset %llu: %s (%llu bytes damaged)", file->uri,
	                 (unsigned long long)extent->offset,
	                 fault ? fault : "record's checksum does not match, and no record follows it",
	                 (unsigned long long)extent->length);
}

void
leat_tfrecord_extent(const struct leat_indexed *indexed, size_t file, uint64_t i, struct leat_extent *extent)
{
	const struct leat_index *index = &indexed->index[file];

	*extent = (struct leat_extent){
		.file = (uint32_t)file,
		.head = LEAT_TFRECORD_HEAD,
		.tail = LEAT_TFRECORD_TAIL,
		.damaged = leat_index_is_damaged(index, i),
		.offset = leat_index_offset(index, i),
		.length = leat_index_length(index, i),
	};
	/* The index may be a mapped file, which others could write to: buffers are sized by these two. */
	if (extent->length < LEAT_TFRECORD_FRAME || extent->length > indexed->max_length)
		extent->damaged = true;
	if (extent->damaged) {
		extent->head = extent->tail = 0;
	} else if (index->packed) {
		extent->lent = extent->length - LEAT_TFRECORD_FRAME;
		extent->head = extent->tail = 0;
		extent->length = 0;
	}
}

enum leat_status
leat_tfrecord_readable(const struct leat_indexed *indexed, struct leat_err *err)
{
	size_t files = leat_files_count(indexed->files);
	const char *one = leat_files_at(indexed->files, 0)->uri;
	struct leat_extent extent;

	if (indexed->first[files] == 0)
		return files == 1 ? leat_fail(err, LEAT_DATA, "'%s' holds no samples: it is empty", one)
		                  : leat_fail(err, LEAT_DATA,
		                              "the %zu files, '%s' first, hold no samples: all are empty", files, one);
	if (indexed->damaged < indexed->first[files])
		return LEAT_OK;
	leat_tfrecord_extent(indexed, leat_indexed_first_file(indexed), 0, &extent);
	leat_tfrecord_damage(indexed, &extent, err);
	if (err)
		leat_err_in(err, "no TFRecord file holds a record that can be read");
	return LEAT_DATA;
}

/* If some file is compressed: */
static enum leat_status
open_blocks(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	struct state *state = source->state;

	for (size_t i = 0; i < leat_files_count(source->files); i++)
		source->sequential |= state->indexed.index[i].points.head.count > 0;
	if (!source->sequential)
		return LEAT_OK;
	source->max_scratch = (size_t)source->max_payload + 64; /* whatever it is aligned to */
	return leat_blocks_open(&state->blocks, &state->indexed, threads, source->mem, err);
}

static enum leat_status
open_indexed(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	struct state *state = source->state = leat_alloc(source->mem, sizeof(*state));
	struct leat_indexed *indexed;
	enum leat_status status;

	if (!state)
		return leat_fail_mem(err, source->mem, sizeof(*state), "the indexes of the files");
	indexed = &state->indexed;
	status =
		leat_indexed_open(indexed, &leat_tfrecord_index, source->files, threads, source->mem, source->log, err);
	if (status == LEAT_OK)
		status = leat_tfrecord_readable(indexed, err);
	if (status != LEAT_OK)
		return status;
	source->first = indexed->first;
	source->count = indexed->first[leat_files_count(source->files)];
	source->max_length = indexed->max_length;
	source->max_payload = indexed->max_length - LEAT_TFRECORD_FRAME;
	return open_blocks(source, threads, err);
}

static enum leat_status
open_source(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	const struct leat_tfrecord_params *params = source->params;
	struct leat_field *record = leat_schema_add(&source->schema, "record", LEAT_U8);
	enum leat_status status;

	record->ndim = 1;
	record->shape[0] = -1;
	status = leat_files_open(&source->files, &source->stores, params->patterns.value, params->patterns.count, source->mem, err);
	if (status != LEAT_OK)
		return status;
	status = open_indexed(source, threads, err);
	if (status != LEAT_OK)
		close_source(source);
	return status;
}

static void
locate(const struct leat_source *source, uint64_t sample, struct leat_extent *extent)
{
	struct leat_indexed *indexed = &((struct state *)source->state)->indexed;
	size_t file = leat_source_part(source, sample, &indexed->last);

	leat_tfrecord_extent(indexed, file, sample - indexed->first[file], extent);
}

/* Where a record's data goes as it is checked; `at` NULL: nowhere. */
struct target {
	unsigned char *at;
	bool past_cache;
};

static uint32_t
sum_data(const unsigned char *data, size_t length, struct target to)
{
	uint32_t crc = to.at ? leat_crc32c_copy(0, to.at, data, length, to.past_cache) : leat_crc32c(0, data, length);

	return leat_crc32c_mask(crc);
}

static enum leat_status
check_to(const struct leat_files *files, const struct leat_extent *extent, bool crc, const unsigned char *head,
         const unsigned char *payload, const unsigned char *tail, struct target to, struct leat_err *err)
{
	uint64_t length = extent->length - LEAT_TFRECORD_FRAME;
	const char *fault = NULL;

	if (crc && leat_load32(head + 8) != leat_tfrecord_crc(head, 8))
		fault = "record header's checksum does not match";
	else if (leat_load64(head) != length)
		fault = "record has another length than when the file was indexed";
	else if (crc && leat_load32(tail) != sum_data(payload, (size_t)length, to))
		fault = "record's checksum does not match";
	else if (!crc && to.at)
		leat_copy(to.at, payload, (size_t)length, to.past_cache);
	if (!fault)
		return LEAT_OK;
	return leat_fail(err, LEAT_DATA, "%s at offset %llu: %s (%llu bytes)", leat_files_at(files, extent->file)->uri,
	                 (unsigned long long)extent->offset, fault, (unsigned long long)length);
}

enum leat_status
leat_tfrecord_check(const struct leat_files *files, const struct leat_extent *extent, bool crc,
                    const unsigned char *head, const unsigned char *payload, const unsigned char *tail,
                    struct leat_err *err)
{
	return check_to(files, extent, crc, head, payload, tail, (struct target){0}, err);
}

/* Checks a record of a compressed file, and copies it from its block to *payload. */
static enum leat_status
copy_record(const struct leat_source *source, const struct leat_extent *extent, const struct leat_block *block,
            unsigned char **payload, struct leat_scratch *scratch, struct leat_err *err)
{
	const struct leat_tfrecord_params *params = source->params;
	uint64_t at = extent->offset - block->begin, length = extent->lent + LEAT_TFRECORD_FRAME;
	struct leat_extent record = *extent;
	const unsigned char *head;
	enum leat_status status;

	if (extent->offset < block->begin || at > block->len || length > block->len - at)
		return fail_packed(leat_files_at(source->files, extent->file)->uri, block->fault_at,
		                   block->fault ? block->fault : "the index has changed while it was used",
		                   extent->offset, err);
	head = block->bytes + at;
	record.length = length;
	status = leat_tfrecord_check(source->files, &record, params->crc, head, head + LEAT_TFRECORD_HEAD,
	                             head + length - LEAT_TFRECORD_TAIL, err);
	if (status != LEAT_OK)
		return status;
	*payload = leat_scratch_alloc(scratch, (size_t)extent->lent);
	if (!*payload)
		return leat_fail(err, LEAT_LIMIT, "no memory for a record of %llu bytes",
		                 (unsigned long long)extent->lent);
	memcpy(*payload, head + LEAT_TFRECORD_HEAD, (size_t)extent->lent);
	return LEAT_OK;
}

static enum leat_status
take_record(const struct leat_source *source, const struct leat_extent *extent, unsigned char **payload,
            struct leat_scratch *scratch, struct leat_err *err)
{
	struct state *state = source->state;
	struct leat_block *block;
	enum leat_status status = leat_blocks_get(&state->blocks, extent->file, extent->offset, &block, err);

	if (status != LEAT_OK)
		return status;
	status = copy_record(source, extent, block, payload, scratch, err);
	leat_blocks_put(&state->blocks, block);
	return status;
}

static enum leat_status
grow(struct leat_source *source, size_t room, struct leat_err *err)
{
	struct state *state = source->state;

	return source->sequential ? leat_blocks_grow(&state->blocks, room, err) : LEAT_OK;
}

/* Worker threads, and unpack_to. */
static enum leat_status
unpack(const struct leat_source *source, uint64_t sample_index, const struct leat_extent *extent,
       const unsigned char *head, unsigned char *payload, const unsigned char *tail, struct leat_scratch *scratch,
       struct leat_sample *sample, struct leat_err *err)
{
	const struct leat_tfrecord_params *params = source->params;
	const struct leat_indexed *indexed = &((struct state *)source->state)->indexed;
	uint64_t length = extent->length ? extent->length - LEAT_TFRECORD_FRAME : extent->lent;
	enum leat_status status;

	(void)sample_index;
	if (extent->damaged)
		return leat_tfrecord_damage(indexed, extent, err);
	if (extent->length)
		status = leat_tfrecord_check(source->files, extent, params->crc, head, payload, tail, err);
	else
		status = take_record(source, extent, &payload, scratch, err);
	if (status != LEAT_OK)
		return status;
	sample->count = 1;
	sample->field[0] = (struct leat_datum){
		.data = payload,
		.dtype = LEAT_U8,
		.ndim = 1,
		.shape = {(int64_t)length},
	};
	return LEAT_OK;
}

static enum leat_status
unpack_to(const struct leat_source *source, uint64_t sample_index, const struct leat_extent *extent,
          const unsigned char *head, const unsigned char *payload, const unsigned char *tail, unsigned char *to,
          bool past_cache, struct leat_err *err)
{
	const struct leat_tfrecord_params *params = source->params;
	const struct leat_indexed *indexed = &((struct state *)source->state)->indexed;

	(void)sample_index;
	if (extent->damaged)
		return leat_tfrecord_damage(indexed, extent, err);
	return check_to(source->files, extent, params->crc, head, payload, tail, (struct target){to, past_cache}, err);
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
	.grow = grow,
	.unpack_to = unpack_to,
};
