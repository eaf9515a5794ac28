/* source_made.c - a source without files, for tests: sample i is the number i, decoded in units of 100
 *
 * Units have no bytes to fetch: `decode` makes them up. A test program gets this source when
 * its name begins with test_source_ (tests/meson.build). */
#include <string.h>

#include "format/source.h"

enum { PER_UNIT = 100 };

struct made {
	int64_t count;
};

static const struct leat_opt options[] = {
	LEAT_OPT_(struct made, count, LEAT_OPT_INT, "1000", 1, 1000000, NULL, "samples", 0),
	LEAT_OPT_END,
};

struct state {
	uint64_t first[2];
};

static void
close_source(struct leat_source *source)
{
	leat_free(source->mem, source->state);
}

static enum leat_status
open_source(struct leat_source *source, unsigned threads, struct leat_err *err)
{
	const struct made *made = source->params;
	struct state *state = source->state = leat_alloc(source->mem, sizeof(*state));

	(void)threads;
	if (!state)
		return leat_fail_mem(err, source->mem, sizeof(*state), "a source");
	leat_schema_add(&source->schema, "number", LEAT_I64);
	source->count = state->first[1] = (uint64_t)made->count;
	source->first = state->first;
	source->parts = 1;
	source->units = (source->count + PER_UNIT - 1) / PER_UNIT;
	source->max_unit = PER_UNIT * sizeof(int64_t);
	return LEAT_OK;
}

static void
locate(const struct leat_source *source, uint64_t index, struct leat_extent *extent)
{
	(void)source;
	*extent = (struct leat_extent){
		.in_unit = true,
		.unit = index / PER_UNIT,
		.offset = index % PER_UNIT * sizeof(int64_t),
		.lent = sizeof(int64_t),
	};
}

static void
unit(const struct leat_source *source, uint64_t number, struct leat_extent *extent)
{
	(void)source, (void)number;
	*extent = (struct leat_extent){0};
}

static enum leat_status
decode(const struct leat_source *source, const struct leat_extent *extent, const unsigned char *bytes,
       struct leat_unit *to, struct leat_scratch *scratch, struct leat_err *err)
{
	(void)source, (void)extent, (void)bytes, (void)scratch, (void)err;
	for (uint64_t i = 0; i < PER_UNIT; i++) {
		int64_t number = (int64_t)(to->number * PER_UNIT + i);

		memcpy(to->bytes + i * sizeof(number), &number, sizeof(number));
	}
	to->len = PER_UNIT * sizeof(int64_t);
	return LEAT_OK;
}

static enum leat_status
unpack(const struct leat_source *source, const struct leat_raw *raw, struct leat_scratch *scratch,
       struct leat_sample *sample, struct leat_err *err)
{
	(void)source, (void)scratch, (void)err;
	sample->count = 1;
	sample->field[0] =
		(struct leat_datum){.data = raw->unit->bytes + raw->extent.offset, .dtype = LEAT_I64, .borrowed = true};
	return LEAT_OK;
}

static void
fingerprint(const struct leat_source *source, struct leat_sha256 *sha)
{
	leat_fingerprint_number(sha, source->count);
}

const struct leat_source_kind leat_source_made = {
	.name = "made",
	.doc = "Numbers from 0 on.",
	.example = "made(100)",
	.version = 1,
	.opts = options,
	.params_size = sizeof(struct made),
	.open = open_source,
	.close = close_source,
	.locate = locate,
	.unit = unit,
	.decode = decode,
	.unpack = unpack,
	.fingerprint = fingerprint,
};
