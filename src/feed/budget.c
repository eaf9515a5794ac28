/* budget.c - divide `memory=` once, at open
 *
 * Reserves everything the feed will ever allocate: batches, runs, scratch. Mappings count in
 * full, although pages are allocated on first use, so the limit holds whatever the samples are.
 * The minimum comes first; the rest goes to prefetched batches, runs in flight, and scratch.
 *
 * If the user gave no limit, a quarter of the RAM is allowed, but a feed that needs little should
 * not take it: the rest is then counted up to 1 GiB, or twice the minimum. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "base/str.h"
#include "feed/blocks.h"
#include "feed/bulk.h"
#include "feed/feed.h"
#include "feed/gather.h"
#include "feed/stretch.h"

enum {
	SLACK = 256 * 1024, /* the list of bad samples, LEAT_BAD_BYTES; restoring a checkpoint; exported tensors */
	SCRATCH_LEAST = 64 * 1024,
	SCRATCH_DECODE = 1024 * 1024,
	SCRATCH_PLENTY = 8 * 1024 * 1024,
	JUMBO_DECODE = 4 * 1024 * 1024,
	UNKNOWN_CAPACITY = 1024 * 1024, /* minimum for values of unknown size */
	WALK_FROM = 1024 * 1024,
	MEAN_LOOKS = 256,
	SHORT_STRETCHES = 8, /* of blocks that are shuffled, in the memory of a long one */
	STRETCHES_LEAST = 4, /* with fewer, runs by themselves keep a server busier */
	ENOUGH = 1 << 30,    /* a default limit is not used beyond this for speed alone */
};

/* ---- upper bounds for ragged values ---- */

/* A histogram of payload lengths in steps of 1/16 gives the sum of the k largest to within 1/16, without
 * sorting. */
enum { CLASSES = 64 * 16 };

static unsigned
length_class(uint64_t n)
{
	unsigned log, shift;

	if (n < 16)
		return (unsigned)n;
	log = 63 - (unsigned)__builtin_clzll(n);
	shift = log - 4;
	return (log - 3) * 16 + (unsigned)((n >> shift) & 15);
}

static uint64_t
class_end(unsigned class)
{
	unsigned shift;

	if (class < 16)
		return class;
	shift = class / 16 - 1;
	return ((uint64_t)(16 + class % 16) << shift) + (((uint64_t)1 << shift) - 1);
}

/* Upper bound for the sum of the `rows` largest payloads, and so for any batch. */
static uint64_t
largest_payloads(const struct leat_source *source, uint64_t rows)
{
	uint64_t in_class[CLASSES] = {0}, sum = 0;

	for (uint64_t i = 0; i < source->count; i++) {
		struct leat_extent extent;

		leat_source_locate(source, i, &extent);
		if (!extent.damaged)
			in_class[length_class(extent.length ? extent.length - extent.head - extent.tail
			                                    : extent.lent)]++;
	}
	for (unsigned c = CLASSES; c-- > 0 && rows > 0;) {
		uint64_t n = in_class[c] < rows ? in_class[c] : rows;

		sum += n * class_end(c);
		rows -= n;
	}
	return sum;
}

/* Can tail=wrap put a sample into a batch twice? Only if the epoch is smaller than the batch, or to complete a group.
 */
static bool
wraps(const struct leat_pipeline *p, const struct leat_options *options, int64_t rows)
{
	bool wrap = p->batch.tail == LEAT_TAIL_WRAP || (p->batch.tail == LEAT_TAIL_AUTO && options->world > 1);

	return wrap && (p->plan.size < (uint64_t)rows || p->row_group > 1);
}

/* Upper bound for the payload of a batch. If samples can occur twice (repeat, replacements, wrapping around), only the
 * simple product is safe. If the product is small, it also saves a walk over the index. */
static uint64_t
payload_bound(const struct leat_pipeline *p, int64_t rows, bool repeats)
{
	uint64_t simple;

	if (__builtin_mul_overflow(p->source.max_payload, (uint64_t)rows, &simple))
		simple = UINT64_MAX;
	if (simple <= WALK_FROM || repeats || leat_plan_repeats(&p->plan))
		return simple;
	return largest_payloads(&p->source, (uint64_t)rows);
}

/* Most bytes of values per payload byte; 0: unknown. Each number in a list takes at least one payload byte; a float
 * that is not converted takes four. Unknown next to images, where payloads are long and lists short. */
static unsigned
expansion(const struct leat_schema_entry *entry, const struct leat_pipeline *p)
{
	const struct leat_field *field = &entry->field;

	if (entry->unbounded || field->ndim != 1)
		return 0;
	if (field->dtype == LEAT_U8 || (field->dtype == LEAT_F32 && !p->converts))
		return 1;
	return p->decodes ? 0 : (unsigned)leat_dtype_size(field->dtype);
}

/* Bytes for payloads of `bound` bytes and `beyond` more (a default value) per row. */
static size_t
ragged_capacity(uint64_t bound, unsigned times, int64_t rows, size_t beyond)
{
	uint64_t bytes = 0, more = 0;

	/* Rows in the arena are aligned to 64 bytes. */
	if (__builtin_mul_overflow(bound, times, &bytes) ||
	    __builtin_mul_overflow((uint64_t)rows, beyond + 64, &more) || __builtin_add_overflow(bytes, more, &bytes) ||
	    bytes > LEAT_MOST_BYTES)
		return LEAT_MOST_BYTES;
	return (size_t)bytes;
}

/* Is the field made of bytes of the payload that no other field has? Then all of these together are no longer than the
 * payload, each byte of which becomes at most as much as in the field that expands most. */
static bool
is_part_of_payload(const struct leat_schema_entry *entry, const struct leat_pipeline *p)
{
	return !leat_field_is_static(&entry->field) && !entry->outside_payload && expansion(entry, p) > 0;
}

static void
share_payload(struct leat_batch_room *room, const struct leat_pipeline *p, bool replaces, uint64_t bound, int64_t rows)
{
	size_t beyond = 0;
	unsigned times = 0;
	int fields = 0;

	for (int i = 0; i < p->schema.count; i++) {
		const struct leat_schema_entry *entry = &p->schema.entry[i];

		room->shares[i] = is_part_of_payload(entry, p);
		if (!room->shares[i])
			continue;
		fields++;
		times = expansion(entry, p) > times ? expansion(entry, p) : times;
		beyond += entry->extra_elements * leat_dtype_size(entry->field.dtype) + 64;
	}
	if (fields < 2) {
		memset(room->shares, 0, sizeof room->shares);
		return;
	}
	if (replaces) /* `bound` is that of a row, too */
		room->shared_row = (ragged_capacity(p->source.max_payload, times, 1, beyond) + 63) & ~(size_t)63;
	room->shared = replaces && room->shared_row < LEAT_MOST_BYTES / (size_t)rows
	                       ? room->shared_row * (size_t)rows
	                       : ragged_capacity(bound, times, rows, beyond);
}

/* Sets the room of ragged fields. Returns how many have no known bound and got `unknown`. */
static int
ragged_room(const struct leat_pipeline *p, bool repeats, bool replaces, bool share, int64_t rows, size_t unknown,
            struct leat_batch_room *room)
{
	uint64_t bound = 0;
	int unbounded = 0;

	for (int i = 0; i < p->schema.count && bound == 0; i++)
		if (is_part_of_payload(&p->schema.entry[i], p))
			bound = payload_bound(p, rows, repeats);
	if (share)
		share_payload(room, p, replaces, bound, rows);
	for (int i = 0; i < p->schema.count; i++) {
		const struct leat_schema_entry *entry = &p->schema.entry[i];
		size_t beyond = entry->extra_elements * leat_dtype_size(entry->field.dtype);
		unsigned times = expansion(entry, p);

		if (leat_field_is_static(&entry->field) || room->shares[i])
			continue;
		if (entry->outside_payload && entry->field.ndim == 1) {
			room->capacity[i] = ragged_capacity(0, 0, rows, beyond);
			continue;
		}
		room->capacity[i] = ragged_capacity(times ? bound : unknown, times ? times : 1, rows, beyond);
		unbounded += times == 0;
	}
	return unbounded;
}

static int
make_form(struct leat_budget *b, const struct leat_pipeline *p, const struct leat_options *options, int64_t rows,
          bool share, size_t unknown)
{
	struct leat_batch_room room = {0};
	bool replaces = options->on_error == LEAT_ON_ERROR_REPLACE;
	bool direct = p->stages == 0 && p->source.kind->unpack_to && !p->source.units && !replaces && !p->cache;
	int unbounded = ragged_room(p, replaces || wraps(p, options, rows), replaces, share, rows, unknown, &room);

	leat_batch_form_make(&b->form, &p->schema, rows, direct, &room);
	if (options->on_error != LEAT_ON_ERROR_FAIL)
		leat_batch_form_add_faults(&b->form);
	b->form.large &= p->mixes == 0; /* mixing reads the values right away, so they should stay in the CPU cache */
	return unbounded;
}

/* ---- division ---- */

/* Mappings take whole pages, which exceed 4096 bytes on some machines. */
static size_t
page_down(size_t n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return n / page * page;
}

static size_t
page_up(size_t n)
{
	return page_down(n + (size_t)sysconf(_SC_PAGESIZE) - 1);
}

/* Memory of a run, without its part of the window. */
static size_t
run_cost(const struct leat_budget *b)
{
	return sizeof(struct leat_run) + (size_t)b->run_rows * sizeof(struct leat_run_item) +
	       (size_t)b->run_reads * sizeof(struct leat_request) + 64;
}

static size_t
batch_cost(const struct leat_budget *b)
{
	return page_up(b->form.bytes) + leat_batch_bytes(&b->form) + 64;
}

static size_t
unit_cost(const struct leat_pipeline *p)
{
	return page_up(p->source.max_unit) + sizeof(struct leat_unit_slot) + 64;
}

/* Memory of a group of blocks that are shuffled. */
static size_t
group_cost(const struct leat_budget *b)
{
	return page_up(b->block_bytes) + sizeof(struct leat_block_group) +
	       b->block_pieces * sizeof(struct leat_block_piece) + b->block_reads * sizeof(struct leat_block_read) +
	       3 * 64;
}

static size_t
worker_cost(const struct leat_budget *b, const struct leat_pipeline *p)
{
	return page_up(b->scratch) + p->source.decode_memory + sizeof(struct leat_worker) + b->sample_bytes + 64;
}

/* Mean sample length, estimated from a few samples. */
static size_t
mean_length(const struct leat_source *source)
{
	uint64_t looks = source->count < MEAN_LOOKS ? source->count : MEAN_LOOKS, sum = 0;

	for (uint64_t i = 0; i < looks; i++) {
		struct leat_extent extent;

		leat_source_locate(source, source->count / looks * i, &extent);
		sum += extent.damaged ? 0 : extent.length;
	}
	return looks ? (size_t)(sum / looks) : 0;
}

/* Minimum window: a run per thread, and the longest sample. */
static void
set_window(struct leat_budget *b, const struct leat_pipeline *p, int64_t rows)
{
	size_t longest = (size_t)p->source.max_length;
	/* Several runs per thread, so that the last ones of a batch end close together. Runs that are only copied are
	 * short anyway. */
	bool bulk = p->bulk && !p->cache;
	int64_t share = b->form.direct || bulk ? rows : rows / ((int64_t)b->threads * 4);
	int64_t limit = b->form.direct ? LEAT_RUN_ROWS_DIRECT : bulk ? p->bulk->rows : LEAT_RUN_ROWS;

	b->run_rows = share < 1 ? 1 : (int)(share > limit ? limit : share);
	b->bulk_rows = !p->bulk ? 0 : bulk ? b->run_rows : rows < p->bulk->rows ? (int)rows : p->bulk->rows;
	b->run_reads = b->run_rows < LEAT_RUN_READS ? b->run_rows : LEAT_RUN_READS;
	b->run_bytes = longest < LEAT_RUN_BYTES / (size_t)b->run_rows ? longest * (size_t)b->run_rows : LEAT_RUN_BYTES;
	b->outliers = longest > b->run_bytes && !b->form.direct;
	b->scattered = p->source.kind->prefetch && !p->cache && leat_plan_spread(&p->plan) != 1;
	b->runs = (int)b->threads + 1;
	b->window = b->threads * (b->run_bytes + LEAT_APART) + LEAT_APART +
	            (b->form.direct || longest < b->run_bytes ? b->run_bytes : longest);
	b->requests = p->source.stores.in_flight ? (int)p->source.stores.in_flight : LEAT_LOCAL_REQUESTS;
	b->io_threads = p->source.stores.threads;
	if (p->source.units) {
		b->units = p->source.units > b->threads ? (int)b->threads + 1 : (int)p->source.units;
		b->window += p->source.max_unit_length + LEAT_APART;
	}
}

/* Shared memory for functions in processes: a sample on its way there and back. */
static void
set_exchange(struct leat_budget *b, const struct leat_pipeline *p)
{
	if (!p->in_processes)
		return;
	b->exchange = p->exchange.bytes + leat_exchange_overhead(p->max_fields) +
	              (p->decodes ? SCRATCH_DECODE : p->exchange.times * (size_t)p->source.max_payload + SCRATCH_LEAST);
	b->exchange_large = b->exchange + (p->decodes ? JUMBO_DECODE : 0);
}

/* The minimum: two batches, one run in flight per thread and one more. */
static void
set_least(struct leat_budget *b, const struct leat_pipeline *p, int64_t rows)
{
	size_t longest = (size_t)p->source.max_length;

	set_window(b, p, rows);
	b->depth = 1;
	b->buffers = 2;
	b->scratch = p->scratch.bytes + p->op_scratch + p->row_scratch +
	             (p->decodes ? 0 : p->scratch.times * (size_t)p->source.max_payload);
	/* Replacements and their units are also read into the jumbo scratch. */
	b->jumbo = b->scratch + p->source.max_scratch + (p->decodes ? JUMBO_DECODE : SCRATCH_LEAST) + longest +
	           p->source.max_unit + p->source.max_unit_length + 4096;
	b->scratch += p->source.max_scratch < SCRATCH_DECODE ? p->source.max_scratch : SCRATCH_DECODE;
	b->scratch += p->decodes ? SCRATCH_DECODE : p->stages > 0 ? SCRATCH_LEAST : 4096;
	set_exchange(b, p);
}

int
leat_budget_parts(const struct leat_budget *b, const struct leat_pipeline *p,
                  struct leat_budget_part part[LEAT_BUDGET_PARTS])
{
	const struct leat_budget_part all[] = {
		{"batches", (uint64_t)b->buffers, batch_cost(b) + sizeof(void *)},
		{"window", 1, page_up(b->window)},
		{"runs", (uint64_t)b->runs, run_cost(b)},
		{"units", (uint64_t)b->units, unit_cost(p)},
		{"blocks", (uint64_t)b->block_groups, group_cost(b)},
		{"scratch", b->threads, worker_cost(b, p)},
		{"large samples", 1, page_up(b->jumbo) + p->source.decode_memory},
		{"processes", b->threads, page_up(b->exchange)},
		{"large exchange", 1, page_up(b->exchange_large)},
		{"counters", 1, page_up(leat_trace_bytes(b->threads, b->io_threads))},
		{"bad samples", 1, SLACK},
	};
	int parts = 0;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (all[i].count > 0 && all[i].each > 0)
			part[parts++] = all[i];
	return parts;
}

static size_t
total(const struct leat_budget *b, const struct leat_pipeline *p)
{
	struct leat_budget_part part[LEAT_BUDGET_PARTS];
	int parts = leat_budget_parts(b, p, part);
	size_t sum = 0;

	for (int i = 0; i < parts; i++)
		sum += (size_t)part[i].count * part[i].each;
	return sum;
}

static int
how_many(size_t room, size_t each, int64_t wanted)
{
	size_t n = each ? room / each : 0;

	return n > (size_t)wanted ? (int)wanted : (int)n;
}

/* Are the samples read in the order of long files on servers? */
static bool
wants_stretches(const struct leat_pipeline *p)
{
	const struct leat_source *source = &p->source;

	uint64_t spread = leat_plan_spread(&p->plan);

	if (!source->files || source->table || source->units || !source->max_length || !spread)
		return false;
	/* Samples in another order are counted: each one comes, once. */
	if (spread > LEAT_STRETCH_LOOK || (spread > 1 && (leat_plan_repeats(&p->plan) || p->cache)))
		return false;
	for (size_t i = 0; i < leat_files_count(source->files); i++)
		if (!leat_files_at(source->files, i)->store->kind->request_cost)
			return false;
	return mean_length(source) < LEAT_STRETCH_LEAST / 2;
}

/* Batches to prefetch. A store that wants many reads in flight needs enough rows to read. */
static int64_t
batches_ahead(const struct leat_budget *b, const struct leat_pipeline *p)
{
	int64_t far = p->source.stores.in_flight / b->form.rows + 2;

	if (wants_stretches(p)) {
		size_t stretches = (size_t)LEAT_STRETCHES * LEAT_STRETCH_BYTES;

		far = (int64_t)(stretches / ((mean_length(&p->source) + 1) * (size_t)b->form.rows)) + 2;
	}
	if (p->prefetch >= 0)
		return p->prefetch;
	if (!p->source.stores.in_flight || far < LEAT_MAX_PREFETCH)
		return LEAT_MAX_PREFETCH;
	return far < LEAT_MAX_PREFETCH_FAR ? far : LEAT_MAX_PREFETCH_FAR;
}

/* Widens the window for stretches, and adds runs for all of their samples. Returns the bytes used; 0: too little room.
 */
static size_t
widen_for_stretches(struct leat_budget *b, const struct leat_pipeline *p, size_t room)
{
	size_t run = (mean_length(&p->source) + 1) * (size_t)b->run_rows, each, near;
	int runs, more, reads = b->run_reads, slots;

	run = run < b->run_bytes ? run : b->run_bytes;
	b->run_reads = 1;
	b->spread = leat_plan_spread(&p->plan);
	slots = b->spread > 1 ? SHORT_STRETCHES : 1;
	near = b->spread > 1 ? LEAT_STRETCH_LOOK * sizeof(struct leat_near) : 0;
	room -= near < room ? near : room;
	b->stretch_bytes = LEAT_STRETCH_BYTES;
	do {
		runs = (int)(b->stretch_bytes / run) + 1;
		each = b->stretch_bytes + LEAT_APART + (size_t)slots * sizeof(struct leat_stretch) +
		       (size_t)runs * run_cost(b);
		more = how_many(room, each, LEAT_STRETCHES);
	} while (more < STRETCHES_LEAST && (b->stretch_bytes /= 2) >= LEAT_STRETCH_LEAST);
	/* All that is spread is kept until it is needed, while the next is read. */
	if (more < STRETCHES_LEAST ||
	    (b->spread > 1 && b->spread * (mean_length(&p->source) + 1) > (size_t)more * b->stretch_bytes / 2)) {
		b->run_reads = reads;
		return 0;
	}
	b->stretches = more * slots;
	b->runs += more * runs;
	b->window += (size_t)more * (b->stretch_bytes + LEAT_APART);
	return (size_t)more * each + near;
}

/* Mean bytes from one sample to the next, if all files can be read without waiting when they are in memory; else 0. */
static double
mean_distance(const struct leat_source *source)
{
	double bytes = 0;

	if (!source->files || source->table || source->units || !source->max_length || !source->count)
		return 0;
	for (size_t i = 0; i < leat_files_count(source->files); i++) {
		const struct leat_object *file = leat_files_at(source->files, i);

		if (file->store->kind->request_cost || !file->store->kind->read_now)
			return 0;
		bytes += (double)file->size;
	}
	return bytes / (double)source->count;
}

/* Should blocks that are shuffled be read whole? Not if that means to read more of what this rank does not need than
 * the reads it saves are worth. */
static bool
blocks_fit(const struct leat_pipeline *p, int world, double mean, struct leat_plan_blocks *blocks)
{
	if (p->cache || mean <= 0 || mean > LEAT_BLOCKS_LONGEST || !leat_plan_find_blocks(&p->plan, blocks))
		return false;
	return blocks->block > 1 && blocks->samples >= LEAT_BLOCKS_LEAST && blocks->blocks <= LEAT_BLOCKS_PIECES / 2 &&
	       (blocks->span * world / blocks->used - 1) * mean <= LEAT_BLOCKS_WASTE;
}

/* Sets memory aside for groups of blocks, of up to `room` bytes, and returns the bytes used. */
static size_t
set_blocks(struct leat_budget *b, const struct leat_pipeline *p, const struct leat_options *options, size_t room)
{
	double mean = mean_distance(&p->source), bytes, pieces;
	struct leat_plan_blocks blocks;
	int least = p->prefetch == 0 ? 1 : LEAT_BLOCKS_GROUPS - 1, groups;

	if (!blocks_fit(p, options->world, mean, &blocks))
		return 0;
	/* A block is in one file, or one more for each that ends in it. Some samples are longer than others. */
	bytes = mean * blocks.span * (double)blocks.samples;
	pieces = (double)blocks.blocks + blocks.span * (double)blocks.samples / (double)p->source.count *
	                                         (double)leat_files_count(p->source.files);
	if (pieces > LEAT_BLOCKS_PIECES / 2 || bytes > (double)room)
		return 0;
	b->blocks = blocks;
	b->block_pieces = 2 * (size_t)pieces + 8;
	b->block_bytes = page_up((size_t)(bytes * 9 / 8) + b->block_pieces * LEAT_APART);
	b->block_reads = b->block_bytes / LEAT_BLOCKS_READ + b->block_pieces + 1;
	groups = how_many(room, group_cost(b), p->prefetch == 0 ? 1 : LEAT_BLOCKS_GROUPS);
	if (groups < least)
		return 0;
	b->block_groups = groups;
	return (size_t)groups * group_cost(b);
}

/* Widens the window by up to `room` bytes and returns the bytes used. Local files get one more run per worker and I/O
 * thread. A store that wants many reads in flight gets enough runs for them, based on the mean sample length, and a
 * quarter more: runs that have been read wait for a worker. */
static size_t
widen_window(struct leat_budget *b, const struct leat_pipeline *p, size_t room)
{
	size_t bytes = b->run_bytes, each;
	int64_t wanted = (int64_t)b->threads + b->io_threads;
	int more;

	if (p->source.stores.in_flight) {
		size_t mean = mean_length(&p->source) + 1;
		int64_t reads = mean < bytes / (size_t)b->run_reads ? b->run_reads : (int64_t)(bytes / mean);

		mean = (mean * 5 / 4 + LEAT_APART) * (size_t)b->run_rows;
		bytes = mean < bytes ? mean : bytes;
		wanted = b->requests / (reads > 0 ? reads : 1) * 5 / 4 + (int64_t)b->threads;
	}
	each = bytes + LEAT_APART + run_cost(b);
	more = how_many(room, each, wanted);
	b->runs += more;
	b->window += (size_t)more * (bytes + LEAT_APART);
	return (size_t)more * each;
}

/* Divides what is left above the minimum, most useful first. */
static void
divide_rest(struct leat_budget *b, const struct leat_pipeline *p, const struct leat_options *options, size_t rest,
            size_t memory, const struct leat_log *log)
{
	int64_t wanted = batches_ahead(b, p);
	size_t for_batches;
	int more;

	if (wants_stretches(p))
		rest -= widen_for_stretches(b, p, rest / 4);
	else
		rest -= set_blocks(b, p, options, rest / 4);
	for_batches = p->prefetch >= 0 || rest < memory / 2 ? rest : memory / 2;
	more = wanted > 1 ? how_many(for_batches, batch_cost(b), wanted - 1) : 0;
	b->buffers += more;
	b->depth = wanted == 0 ? 0 : 1 + more;
	rest -= (size_t)more * (batch_cost(b) + sizeof(void *)) < rest ? (size_t)more * (batch_cost(b) + sizeof(void *))
	                                                               : rest;
	if (p->prefetch > b->depth)
		leat_log(log, LEAT_LOG_WARN, "prefetch(%lld) does not fit in memory=; prefetching %d",
		         (long long)p->prefetch, b->depth);

	if (!b->stretches)
		rest -= widen_window(b, p, rest / 4);
	if (p->source.units) {
		/* Samples in any other order need many units at a time. */
		more = how_many(p->plan.ops > 0 ? rest / 2 : 0, unit_cost(p),
		                (int64_t)(p->source.units - (uint64_t)b->units));
		b->units += more;
		rest -= (size_t)more * unit_cost(p);
		more = how_many(rest / 4, p->source.max_unit_length + LEAT_APART, (int64_t)b->threads);
		b->window += (size_t)more * (p->source.max_unit_length + LEAT_APART);
		rest -= (size_t)more * (p->source.max_unit_length + LEAT_APART);
	}

	if (p->in_processes) {
		size_t each = page_down(rest / (4 * b->threads));

		each = each > SCRATCH_PLENTY ? SCRATCH_PLENTY : each;
		b->exchange += each;
		rest -= each * b->threads;
		each = page_down(rest / 3);
		b->exchange_large += each;
		rest -= each;
	}
	if (p->stages > 0) {
		size_t each = rest / (2 * b->threads);

		each = each > SCRATCH_PLENTY ? SCRATCH_PLENTY : page_down(each);
		b->scratch += each;
		rest -= each * b->threads;
		b->jumbo += page_down(rest - rest / 16); /* leaves the rest for lists of bad samples */
	}
}

/* What to divide if the limit is the default. */
static size_t
enough(const struct leat_budget *b, size_t memory, size_t minimum)
{
	size_t wanted = 2 * (minimum - b->used);

	wanted = b->used + (wanted < ENOUGH ? ENOUGH : wanted);
	return wanted < memory ? wanted : memory;
}

/* Says so if the minimum is that high because of a few long samples. */
static const char *
blame_longest(const struct leat_pipeline *p, size_t minimum, char *text, size_t cap)
{
	uint64_t longest = p->source.max_payload;
	char size[32];

	if (longest < minimum / 8)
		return "";
	snprintf(text, cap, "; or lower max_bytes=%llu: the longest sample, of %s, then counts as bad",
	         (unsigned long long)p->limits.bytes, leat_format_size(size, sizeof size, longest));
	return text;
}

static enum leat_status
fail_minimum(const struct leat_budget *b, const struct leat_pipeline *p, size_t memory, size_t minimum,
             struct leat_err *err)
{
	char have[32], need[32], exact[32] = "", longest[160];

	minimum = (minimum + 1023) & ~(size_t)1023;
	if (minimum >= 1 << 20)
		snprintf(exact, sizeof exact, " (%zu KiB)", minimum / 1024);
	leat_format_size_up(need, sizeof need, minimum);
	return leat_fail(err, LEAT_LIMIT,
	                 "%smemory=%s is too little: with %u thread%s this pipeline needs at least %s%s; "
	                 "raise memory= to that or more, or use fewer threads or a smaller batch%s",
	                 b->frugal ? "the default of " : "", leat_format_size(have, sizeof have, memory), b->threads,
	                 leat_plural(b->threads), need, exact, blame_longest(p, minimum, longest, sizeof longest));
}

enum leat_status
leat_budget_make(struct leat_budget *b, const struct leat_pipeline *p, const struct leat_options *options, int64_t rows,
                 size_t used, size_t peak, const struct leat_log *log, struct leat_err *err)
{
	/* Samples from a cache go straight to their place among the values, which cannot be known if fields share. */
	bool apart = p->cache && p->cached == p->stages;
	size_t minimum;
	int unbounded;

	*b = (struct leat_budget){
		.frugal = b->frugal,
		.threads_set = b->threads_set,
		.used = used,
		.threads = options->threads,
		.form.column = b->form.column,
		.sample_bytes = offsetof(struct leat_sample, field) + (size_t)p->max_fields * sizeof(struct leat_datum),
	};
	unbounded = make_form(b, p, options, rows, !apart, UNKNOWN_CAPACITY);
	set_least(b, p, rows);
	minimum = b->least = used + total(b, p);
	if (apart && minimum > options->memory) {
		apart = false;
		make_form(b, p, options, rows, true, UNKNOWN_CAPACITY);
		minimum = b->least = used + total(b, p);
	}
	if (minimum > options->memory || peak > options->memory)
		return fail_minimum(b, p, options->memory, minimum > peak ? minimum : peak, err);
	if (unbounded > 0) {
		/* Half of what is left, for two batches with an arena and values each. */
		size_t more = (options->memory - minimum) / 2 / (4 * (size_t)unbounded);

		make_form(b, p, options, rows, !apart, UNKNOWN_CAPACITY + page_down(more));
		minimum = used + total(b, p);
	}
	b->divided = b->frugal ? enough(b, options->memory, minimum) : options->memory;
	divide_rest(b, p, options, b->divided - minimum, b->divided, log);
	b->gathers = !b->block_groups && leat_gather_fits(p, b->run_rows);
	return LEAT_OK;
}

/* ---- advice ---- */

/* Does a batch of samples like this one fit? */
static bool
holds_rows(const struct leat_batch_form *form, const struct leat_sample *sample)
{
	for (int i = 0; i < form->columns; i++) {
		const struct leat_column_form *column = &form->column[i];
		size_t bytes = leat_field_is_static(&column->field) ? 0 : leat_datum_bytes(&sample->field[i]);

		if (bytes > column->capacity / (size_t)form->rows / 5 * 4)
			return false;
	}
	return true;
}

/* The least memory=, in steps of an eighth, that leaves `jumbo` bytes for a large sample and room for a batch of
 * samples like the worker's; 0: none. */
static size_t
memory_for(const struct leat_worker *w, size_t jumbo, bool whole_sample, struct leat_mem *mem)
{
	struct leat_feed *feed = w->feed;
	const struct leat_pipeline *p = &feed->pipeline;
	struct leat_options o = feed->options;
	struct leat_budget trial = {
		.form.column = leat_alloc_array(mem, (size_t)p->schema.count, sizeof(struct leat_column_form))};
	bool fits = false;

	o.memory = feed->budget.divided;
	while (trial.form.column && !fits && o.memory < LEAT_MOST_BYTES) {
		o.memory += o.memory / 8 + 1024;
		fits = leat_budget_make(&trial, p, &o, feed->budget.form.rows, feed->budget.used, 0,
		                        &(struct leat_log){0}, NULL) == LEAT_OK &&
		       trial.jumbo >= jumbo && (!whole_sample || holds_rows(&trial.form, w->sample));
	}
	leat_free(mem, trial.form.column);
	/* A cache without a size takes three quarters of what is added. */
	if (fits && feed->cache && feed->cache_size < feed->budget.used)
		o.memory += 3 * (o.memory - feed->budget.divided);
	return fits ? o.memory : 0;
}

void
leat_advise_memory(struct leat_worker *w, const struct leat_scratch *scratch, struct leat_err *err)
{
	const struct leat_pipeline *p = &w->feed->pipeline;
	/* Further steps may need as much again as the one that failed. */
	size_t jumbo = scratch->wanted < LEAT_MOST_BYTES / 2 ? 2 * scratch->wanted : LEAT_MOST_BYTES, memory;
	struct leat_err why = *err;
	struct leat_mem mem;
	char text[64] = "", limit[64];

	leat_mem_init(&mem, SIZE_MAX);
	pthread_mutex_lock(&w->feed->lock); /* the budget locates samples */
	memory = memory_for(w, jumbo, scratch->wanted == 0, &mem);
	pthread_mutex_unlock(&w->feed->lock);
	leat_err_clear(err);
	if (memory)
		snprintf(text, sizeof text, "raise memory= to %s, ", leat_format_size_up(limit, sizeof limit, memory));
	snprintf(limit, sizeof limit, p->decodes ? "max_pixels=%llu or max_bytes" : "max_bytes=%llu",
	         (unsigned long long)(p->decodes ? p->limits.pixels : p->limits.bytes));
	leat_fail(err, why.status, "%s; %suse a smaller batch, or lower %s so that such a sample counts as bad",
	          why.text, text, limit);
}
