/* tokens.c - the source of flat token files: windows of tokens for language models
 *
 *	tokens('train-*.bin', dtype=uint16, length=1024, shift=1)
 *
 * A file is `header_bytes` of anything, then packed little-endian tokens. Sample i of a file
 * is its tokens [i * stride, i * stride + length). With `shift` there is a second field,
 * `targets`: the same window shifted by that many tokens. Windows never cross files; leftover
 * tokens at the end of a file are dropped. Offsets are computed: no index is needed.
 *
 * Local files are mapped, so windows that overlap are read once (store/file_map.c explains what happens if a file
 * changes meanwhile). From other stores, and where there are very many files, each window is read.
 *
 * The fields are int32, or int64 for int64 tokens. A uint32 token beyond int32 makes its
 * sample bad. A file whose size is not a multiple of the token size is rejected, since
 * dtype or header_bytes is most likely wrong. */
#include "format/source.h"

#include <string.h>

struct tokens {
	struct leat_strings patterns;
	int dtype; /* enum token */
	int64_t length, stride, shift, header_bytes;
};

enum token { UINT16, UINT32, INT32, INT64 };

enum {
	MOST = 1 << 28,     /* tokens per window; their byte count fits an int */
	MOST_MAPPED = 4096, /* files: a process can have only some ten thousand mappings */
	TOUCHED = 64,       /* windows at a time */
};

#define NAMED(member, type, def, min, max, choices, doc)                                                               \
	LEAT_OPT_(struct tokens, member, type, def, min, max, choices, doc, LEAT_OPT_NAMED)

static const struct leat_opt options[] = {
	LEAT_STRINGS(struct tokens, patterns, LEAT_REQUIRED,
                     "files or glob patterns (*, ?, [..]); the matches of a pattern are sorted by name",
                     LEAT_OPT_LOCATION),
	NAMED(dtype, LEAT_OPT_ENUM, "uint16", 0, 0, "uint16|uint32|int32|int64", "token type in the files"),
	NAMED(length, LEAT_OPT_INT, LEAT_REQUIRED, 1, MOST, NULL, "tokens per sample"),
	NAMED(stride, LEAT_OPT_INT, "0", 0, 9e18, NULL,
              "tokens from the start of one sample to the next; 0: same as length"),
	NAMED(shift, LEAT_OPT_INT, "0", 0, MOST, NULL,
              "adds the field `targets`: the window shifted by this many tokens (1: next token); 0: no targets"),
	NAMED(header_bytes, LEAT_OPT_SIZE, "0", 0, 9e18, NULL, "header bytes to skip at the start of each file"),
	LEAT_OPT_END,
};

struct state {
	uint64_t *first;             /* backs source->first */
	const unsigned char **bytes; /* by file, if they are mapped; NULL: they are read */
	size_t last;                 /* file of the last locate */
};

static size_t
token_size(const struct tokens *tokens)
{
	return tokens->dtype == UINT16 ? 2 : tokens->dtype == INT64 ? 8 : 4;
}

static enum leat_dtype
field_dtype(const struct tokens *tokens)
{
	return tokens->dtype == INT64 ? LEAT_I64 : LEAT_I32;
}

/* Tokens read per sample. */
static uint64_t
window(const struct tokens *tokens)
{
	return (uint64_t)(tokens->length + tokens->shift);
}

static uint64_t
stride(const struct tokens *tokens)
{
	return (uint64_t)(tokens->stride ? tokens->stride : tokens->length);
}

static void
close_source(struct leat_source *source)
{
	struct state *state = source->state;

	if (state) {
		leat_free(source->mem, state->first);
		leat_free(source->mem, state->bytes);
	}
	leat_free(source->mem, state);
	leat_files_close(source->files);
}

static void
add_field(struct leat_source *source, const char *name)
{
	const struct tokens *tokens = source->params;
	struct leat_field *field = leat_schema_add(&source->schema, name, field_dtype(tokens));

	field->ndim = 1;
	field->shape[0] = tokens->length;
}

/* The windows of one file. */
static enum leat_status
count_windows(const struct tokens *tokens, const struct leat_object *file, uint64_t *count, struct leat_err *err)
{
	uint64_t header = (uint64_t)tokens->header_bytes, size = token_size(tokens), here;

	if (file->size < header)
		return leat_fail(err, LEAT_DATA, "'%s' has %llu bytes, fewer than header_bytes=%llu", file->uri,
		                 (unsigned long long)file->size, (unsigned long long)header);
	if ((file->size - header) % size)
		return leat_fail(
			err, LEAT_DATA,
			"'%s' has %llu bytes%s, not a multiple of the token size %llu; check dtype and header_bytes",
			file->uri, (unsigned long long)(file->size - header), header ? " after the header" : "",
			(unsigned long long)size);
	here = (file->size - header) / size;
	*count = here < window(tokens) ? 0 : (here - window(tokens)) / stride(tokens) + 1;
	return LEAT_OK;
}

static enum leat_status
count_samples(struct leat_source *source, struct state *state, struct leat_err *err)
{
	const struct tokens *tokens = source->params;
	size_t files = leat_files_count(source->files);

	for (size_t i = 0; i < files; i++) {
		uint64_t count;
		enum leat_status status = count_windows(tokens, leat_files_at(source->files, i), &count, err);

		if (status != LEAT_OK)
			return status;
		state->first[i + 1] = state->first[i] + count;
	}
	source->first = state->first;
	source->count = state->first[files];
	if (source->count == 0)
		return leat_fail(err, LEAT_DATA,
		                 "no file has the %llu tokens needed for a sample; the first is '%s' with %llu bytes",
		                 (unsigned long long)window(tokens), leat_files_at(source->files, 0)->uri,
		                 (unsigned long long)leat_files_at(source->files, 0)->size);
	return LEAT_OK;
}

/* Maps all files with windows, or none: a failure is no error, because files can be read as well. */
static void
map_files(struct leat_source *source, struct state *state)
{
	size_t files = leat_files_count(source->files);
	bool mapped = files <= MOST_MAPPED;

	state->bytes = mapped ? leat_alloc_array(source->mem, files, sizeof(*state->bytes)) : NULL;
	mapped = state->bytes != NULL;
	for (size_t i = 0; i < files && mapped; i++) {
		struct leat_object *file = leat_files_edit(source->files, i);

		if (state->first[i] < state->first[i + 1])
			mapped = file->store->kind->map &&
			         file->store->kind->map(file, &state->bytes[i], NULL) == LEAT_OK;
	}
	source->mapped = mapped;
	if (!mapped) {
		leat_free(source->mem, state->bytes);
		state->bytes = NULL;
	}
}

static enum leat_status
open_source(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	const struct tokens *tokens = source->params;
	struct state *state;
	enum leat_status status;
	uint64_t length;
	size_t files;

	(void)threads;
	status = leat_files_open(&source->files, &source->stores, tokens->patterns.value, tokens->patterns.count,
	                         source->mem, err);
	if (status != LEAT_OK)
		return status;
	files = leat_files_count(source->files);
	state = source->state = leat_alloc(source->mem, sizeof(*state));
	if (state)
		state->first = leat_alloc_array(source->mem, files + 1, sizeof(*state->first));
	if (!state || !state->first)
		status = leat_fail_mem(err, source->mem, (files + 1) * sizeof(*state->first), "the list of files");
	if (status == LEAT_OK)
		status = count_samples(source, state, err);
	if (status != LEAT_OK) {
		close_source(source);
		return status;
	}
	map_files(source, state);
	length = window(tokens) * token_size(tokens);
	leat_source_longest(source, source->mapped ? 0 : length, length);
	if (source->all_fit)
		source->max_scratch = (size_t)window(tokens) * leat_dtype_size(field_dtype(tokens));
	add_field(source, "tokens");
	if (tokens->shift)
		add_field(source, "targets");
	return LEAT_OK;
}

/* Where the window begins in its file. */
static uint64_t
window_at(const struct leat_source *source, size_t file, uint64_t sample)
{
	const struct tokens *tokens = source->params;

	return (uint64_t)tokens->header_bytes + (sample - source->first[file]) * stride(tokens) * token_size(tokens);
}

static void
locate(const struct leat_source *source, uint64_t sample, struct leat_extent *extent)
{
	const struct tokens *tokens = source->params;
	struct state *state = source->state;
	size_t file = leat_source_part(source, sample, &state->last);
	uint64_t length = window(tokens) * token_size(tokens);

	*extent = (struct leat_extent){
		.file = (uint32_t)file,
		.offset = window_at(source, file, sample),
		.length = source->mapped ? 0 : length,
		.lent = source->mapped ? length : 0,
	};
}

/* Workers and I/O threads. */
static enum leat_status
touch(const struct leat_source *source, const uint64_t *sample, size_t count, int flags, struct leat_err *err)
{
	const struct tokens *tokens = source->params;
	size_t length = (size_t)window(tokens) * token_size(tokens), file = 0;
	enum leat_status status = LEAT_OK;

	while (count > 0 && (status == LEAT_OK || status == LEAT_AGAIN)) {
		uint64_t offset[TOUCHED];
		const struct leat_object *object;
		enum leat_status one;
		size_t some = 0;

		file = leat_source_part(source, sample[0], &file);
		object = leat_files_at(source->files, file);
		for (; some < count && some < TOUCHED && sample[some] >= source->first[file] &&
		       sample[some] < source->first[file + 1];
		     some++)
			offset[some] = window_at(source, file, sample[some]);
		one = object->store->kind->bring(object, offset, some, length, !(flags & LEAT_READ_NOWAIT), err);
		if (one != LEAT_OK)
			status = one; /* continue, to start loading the others too */
		sample += some;
		count -= some;
	}
	return status;
}

static const enum leat_dtype stored[] = {
	[UINT16] = LEAT_U16, [UINT32] = LEAT_U32, [INT32] = LEAT_I32, [INT64] = LEAT_I64};

/* uint32 tokens have to be checked. */
static bool
rows(const struct leat_source *source, int field, struct leat_row_form *form)
{
	const struct tokens *tokens = source->params;

	(void)field;
	*form = (struct leat_row_form){stored[tokens->dtype], (size_t)tokens->length};
	return source->mapped && tokens->dtype != UINT32 && (uint64_t)tokens->header_bytes % token_size(tokens) == 0 &&
	       __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
}

static void
rows_at(const struct leat_source *source, int field, const uint64_t *sample, size_t count, const unsigned char **at)
{
	const struct tokens *tokens = source->params;
	const struct state *state = source->state;
	size_t file = 0, shift = field ? (size_t)tokens->shift * token_size(tokens) : 0;

	for (size_t i = 0; i < count; i++) {
		file = leat_source_part(source, sample[i], &file);
		at[i] = state->bytes[file] + window_at(source, file, sample[i]) + shift;
	}
}

/* Fails at the first token that int32 cannot hold. */
static enum leat_status
check_tokens(const struct leat_source *source, const struct leat_extent *extent, const int32_t *token, size_t count,
             struct leat_err *err)
{
	int32_t all = 0;
	size_t i = 0;

	for (size_t k = 0; k < count; k++)
		all |= token[k];
	if (all >= 0)
		return LEAT_OK;
	while (token[i] >= 0)
		i++;
	return leat_fail(err, LEAT_DATA,
	                 "'%s' at offset %llu: token %lu does not fit int32; check dtype and header_bytes",
	                 leat_files_at(source->files, extent->file)->uri, (unsigned long long)(extent->offset + 4 * i),
	                 (unsigned long)(uint32_t)token[i]);
}

static uint16_t
load16(const unsigned char *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? __builtin_bswap16(v) : v;
}

static void
convert(const unsigned char *from, enum token dtype, void *to, size_t count)
{
	int32_t *narrow = to;
	int64_t *wide = to;

	switch (dtype) {
	case UINT16:
		for (size_t i = 0; i < count; i++)
			narrow[i] = load16(from + 2 * i);
		break;
	case UINT32:
	case INT32:
		for (size_t i = 0; i < count; i++)
			narrow[i] = (int32_t)leat_load32(from + 4 * i);
		break;
	case INT64:
		for (size_t i = 0; i < count; i++)
			wide[i] = (int64_t)leat_load64(from + 8 * i);
		break;
	}
}

/* Worker threads. */
static enum leat_status
unpack(const struct leat_source *source, const struct leat_raw *raw, struct leat_scratch *scratch,
       struct leat_sample *sample, struct leat_err *err)
{
	const struct tokens *tokens = source->params;
	const struct state *state = source->state;
	const struct leat_extent *extent = &raw->extent;
	const unsigned char *bytes = state->bytes ? state->bytes[extent->file] + extent->offset : raw->payload;
	enum leat_dtype dtype = field_dtype(tokens);
	unsigned char *values = leat_scratch_alloc(scratch, source->max_scratch);
	enum leat_status status = LEAT_OK;

	if (!values)
		return leat_fail(err, LEAT_LIMIT, "a sample's %zu bytes of tokens do not fit in memory",
		                 source->max_scratch);
	convert(bytes, (enum token)tokens->dtype, values, (size_t)window(tokens));
	if (tokens->dtype == UINT32)
		status = check_tokens(source, &raw->extent, (const int32_t *)(const void *)values,
		                      (size_t)window(tokens), err);
	sample->count = tokens->shift ? 2 : 1;
	for (int i = 0; i < sample->count; i++)
		sample->field[i] = (struct leat_datum){
			.data = values + (i ? (size_t)tokens->shift * leat_dtype_size(dtype) : 0),
			.dtype = dtype,
			.ndim = 1,
			.shape = {tokens->length},
			.borrowed = tokens->shift > 0, /* both fields share the tokens */
		};
	return status;
}

const struct leat_source_kind leat_source_tokens = {
	.name = "tokens",
	.doc = "Read fixed-length windows from flat token files, into the field `tokens` as int32 (int64 for int64 "
	       "tokens). Windows never cross files; leftover tokens at the end of a file are dropped.",
	.example = "tokens('train-*.bin', dtype=uint16, length=1024, shift=1)",
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct tokens),
	.open = open_source,
	.close = close_source,
	.locate = locate,
	.touch = touch,
	.rows = rows,
	.rows_at = rows_at,
	.unpack = unpack,
	.copies = true,
};
