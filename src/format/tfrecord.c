/* tfrecord.c - the source of TFRecord files: one sample per record, its bytes in the field `record`
 *
 * Records are found by each file's index (tfrecord_index.c), in parallel over the
 * files, once; later opens map the indexes. */
#include "format/source.h"

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

static void
close_source(struct leat_source *source)
{
	struct leat_indexed *indexed = source->state;

	if (indexed)
		leat_indexed_close(indexed);
	leat_free(source->mem, indexed);
	leat_files_close(source->files);
}

enum leat_status
leat_tfrecord_damage(struct leat_files *files, const struct leat_extent *extent, struct leat_err *err)
{
	const struct leat_file *file = leat_files_at(files, extent->file);
	uint64_t left = extent->offset < file->size ? file->size - extent->offset : 0, ignored;
	unsigned char head[LEAT_TFRECORD_HEAD];
	struct iovec iov = {.iov_base = head, .iov_len = sizeof(head)};
	enum leat_status status = LEAT_OK;
	const char *fault;
	size_t got;

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
	if (extent->damaged)
		extent->head = extent->tail = 0;
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
	leat_tfrecord_damage(indexed->files, &extent, err);
	if (err)
		leat_err_in(err, "no TFRecord file holds a record that can be read");
	return LEAT_DATA;
}

static enum leat_status
open_indexed(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	struct leat_indexed *indexed = source->state = leat_alloc(source->mem, sizeof(*indexed));
	enum leat_status status;

	if (!indexed)
		return leat_fail_mem(err, source->mem, sizeof(*indexed), "the indexes of the files");
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
	return LEAT_OK;
}

static enum leat_status
open_source(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	const struct leat_tfrecord_params *params = source->params;
	struct leat_field *record = leat_schema_add(&source->schema, "record", LEAT_U8);
	enum leat_status status;

	record->ndim = 1;
	record->shape[0] = -1;
	status = leat_files_open(&source->files, params->patterns.value, params->patterns.count, source->mem, err);
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
	struct leat_indexed *indexed = source->state;
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

/* Worker threads, and unpack_to. */
static enum leat_status
unpack(const struct leat_source *source, uint64_t sample_index, const struct leat_extent *extent,
       const unsigned char *head, unsigned char *payload, const unsigned char *tail, struct leat_scratch *scratch,
       struct leat_sample *sample, struct leat_err *err)
{
	const struct leat_tfrecord_params *params = source->params;
	enum leat_status status;

	(void)sample_index, (void)scratch;
	if (extent->damaged)
		return leat_tfrecord_damage(source->files, extent, err);
	status = leat_tfrecord_check(source->files, extent, params->crc, head, payload, tail, err);
	if (status != LEAT_OK)
		return status;
	sample->count = 1;
	sample->field[0] = (struct leat_datum){
		.data = payload,
		.dtype = LEAT_U8,
		.ndim = 1,
		.shape = {(int64_t)(extent->length - LEAT_TFRECORD_FRAME)},
	};
	return LEAT_OK;
}

static enum leat_status
unpack_to(const struct leat_source *source, uint64_t sample_index, const struct leat_extent *extent,
          const unsigned char *head, const unsigned char *payload, const unsigned char *tail, unsigned char *to,
          bool past_cache, struct leat_err *err)
{
	const struct leat_tfrecord_params *params = source->params;

	(void)sample_index;
	if (extent->damaged)
		return leat_tfrecord_damage(source->files, extent, err);
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
	.unpack_to = unpack_to,
};
