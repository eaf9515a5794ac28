/* cache.c - see cache.h: encodes and decodes cache entries; cache_store.c stores them */
#include "feed/cache.h"

#include <errno.h>
#include <string.h>

#include "feed/cache_store.h"

/* A cache entry: this header, the shapes of variable-size fields, then the fields, each aligned to 64 bytes. Entries of
 * one size in memory are the fields alone, so that samples that were added one after the other are copied as one. */
struct entry {
	uint64_t sample, bytes; /* bytes: of the entry, including this header */
	uint32_t crc;           /* of everything after this header; in memory: 0 */
	uint32_t reserved;
	uint64_t reserved2[5];
};

enum {
	ALIGN = LEAT_CACHE_ALIGN,
	LEAST_ROOM = 64 * 1024,
	PREFETCH_BYTES = 10 * ALIGN, /* the hardware prefetcher does the rest */
};

_Static_assert(sizeof(struct entry) == ALIGN, "fields begin at multiples of 64");

/* What all entries have in common for a field. */
struct cached_field {
	struct leat_datum form; /* template for what `get` returns */
	bool varies;            /* size differs between samples */
	uint64_t room;          /* padded bytes in an entry, if the size is fixed */
};

struct leat_cache {
	struct leat_mem *mem;
	struct leat_schema schema;
	struct leat_cache_store store;
	const struct leat_log *log;
	const char *dir; /* NULL: in memory */
	uint64_t samples;
	struct cached_field *field;
	uint64_t head;                                  /* bytes of an entry before its first field */
	uint64_t fixed_bytes;                           /* size of every entry; 0: sizes differ */
	_Atomic uint8_t *seen;                          /* file only: bit per sample that we wrote or checked */
	bool (*is_current)(void *arg, uint64_t sample); /* NULL: all are */
	void *arg;
	_Atomic uint64_t kept;
	atomic_bool logged_full;
};

static uint64_t
round_up(uint64_t n)
{
	return (n + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
}

uint64_t
leat_cache_min_size(uint64_t samples)
{
	return leat_cache_store_overhead(samples) + LEAST_ROOM;
}

/* ---- what an entry looks like ---- */

static uint64_t
shapes_bytes(const struct leat_schema *schema)
{
	uint64_t bytes = 0;

	for (int i = 0; i < schema->count; i++)
		if (!leat_field_is_static(&schema->entry[i].field))
			bytes += (uint64_t)schema->entry[i].field.ndim * sizeof(int64_t);
	return round_up(bytes);
}

/* UINT64_MAX: does not fit in any cache. */
static uint64_t
room_of(const struct leat_datum *datum)
{
	uint64_t bytes = leat_datum_bytes(datum);

	return bytes > UINT64_MAX / 2 ? UINT64_MAX : round_up(bytes);
}

/* 0: sizes differ, or do not fit in any cache. */
static uint64_t
bytes_of_all(const struct leat_cache *cache)
{
	uint64_t bytes = cache->head;

	for (int i = 0; i < cache->schema.count; i++)
		if (cache->field[i].varies || __builtin_add_overflow(bytes, cache->field[i].room, &bytes))
			return 0;
	return bytes;
}

static void
form_make(struct leat_cache *cache)
{
	const struct leat_schema *schema = &cache->schema;

	cache->head = 0;
	for (int i = 0; i < schema->count; i++) {
		const struct leat_field *field = &schema->entry[i].field;
		struct leat_datum *datum = &cache->field[i].form;

		*datum = (struct leat_datum){.dtype = field->dtype, .ndim = field->ndim, .borrowed = true};
		memcpy(datum->shape, field->shape, sizeof(datum->shape));
		cache->field[i].varies = !leat_field_is_static(field);
		cache->field[i].room = cache->field[i].varies ? 0 : room_of(datum);
	}
	if (cache->dir || !bytes_of_all(cache))
		cache->head = sizeof(struct entry) + shapes_bytes(schema);
	cache->fixed_bytes = bytes_of_all(cache);
}

/* 0: does not fit in any cache. */
static uint64_t
entry_bytes(const struct leat_cache *cache, const struct leat_sample *sample)
{
	uint64_t bytes = cache->head;

	for (int i = 0; i < cache->schema.count; i++)
		if (__builtin_add_overflow(bytes, room_of(&sample->field[i]), &bytes))
			return 0;
	return bytes;
}

/* Bytes needed for all samples if entries have a fixed size, else `size`; at most `size`. */
static uint64_t
wanted_bytes(const struct leat_cache *cache, uint64_t size)
{
	uint64_t all;

	/* Some slack: two workers may reserve space for the same sample. */
	if (!cache->fixed_bytes || __builtin_mul_overflow(cache->samples + 64, cache->fixed_bytes, &all) ||
	    __builtin_add_overflow(all, leat_cache_min_size(cache->samples) + 4095, &all))
		return size;
	all &= ~(uint64_t)4095;
	return all < size ? all : size;
}

/* ---- open and close ---- */

static const struct entry *
entry_at(const struct leat_cache *cache, uint64_t place, uint64_t *room)
{
	const void *at = leat_cache_store_at(&cache->store, place, room);

	return at && *room >= sizeof(struct entry) ? at : NULL;
}

/* After a crash, the table may point past the header's `used`. That space must not be reserved again, because other
 * processes may already read there. */
static void
recover_used(struct leat_cache *cache)
{
	uint64_t place = leat_cache_store_last(&cache->store), room;
	const struct entry *last = place ? entry_at(cache, place, &room) : NULL;

	if (!last)
		return;
	if (last->bytes >= sizeof(*last) && last->bytes <= room && last->bytes % ALIGN == 0)
		room = last->bytes;
	leat_cache_store_reserve(&cache->store, place - 1 + room);
}

enum leat_status
leat_cache_open(struct leat_cache **out, const struct leat_cache_options *o, struct leat_mem *mem,
                const struct leat_log *log, struct leat_err *err)
{
	struct leat_cache *cache = leat_alloc(mem, sizeof(*cache));
	enum leat_status status;

	*out = NULL;
	if (!cache)
		return leat_fail_mem(err, mem, sizeof(*cache), "a cache");
	cache->mem = mem;
	cache->field = leat_alloc_array(mem, (size_t)o->schema->count, sizeof(*cache->field));
	status = leat_schema_copy(&cache->schema, o->schema, 0, mem, err);
	if (!cache->field || status != LEAT_OK) {
		leat_cache_close(cache);
		return leat_fail_mem(err, mem, (size_t)o->schema->count * sizeof(*cache->field), "a cache");
	}
	cache->dir = o->dir;
	form_make(cache);
	cache->samples = o->samples;
	cache->log = log;
	cache->is_current = o->is_current;
	cache->arg = o->arg;
	if (o->dir)
		cache->seen = leat_alloc(mem, (size_t)(o->samples / 8 + 1));
	if (!o->dir)
		status = leat_cache_store_memory(&cache->store, o, wanted_bytes(cache, o->size), mem, err);
	else if (!cache->seen)
		status = leat_fail_mem(err, mem, (size_t)(o->samples / 8 + 1), "a cache");
	else
		status = leat_cache_store_file(&cache->store, o, wanted_bytes(cache, o->size), cache->fixed_bytes > 0,
		                               mem, log, err);
	if (status == LEAT_OK && o->dir)
		recover_used(cache);
	if (status == LEAT_OK)
		*out = cache;
	else
		leat_cache_close(cache);
	return status;
}

void
leat_cache_close(struct leat_cache *cache)
{
	if (!cache)
		return;
	leat_cache_store_close(&cache->store);
	leat_free(cache->mem, (void *)cache->seen);
	leat_free(cache->mem, cache->field);
	leat_schema_free(&cache->schema, cache->mem);
	leat_free(cache->mem, cache);
}

/* ---- has and get ---- */

/* Reads the shape of a variable-size field and advances *shape. False: invalid. */
static bool
read_shape(const struct leat_field *field, const int64_t **shape, struct leat_datum *datum)
{
	for (int d = 0; d < field->ndim; d++) {
		datum->shape[d] = *(*shape)++;
		if (datum->shape[d] < 0 || (field->shape[d] >= 0 && datum->shape[d] != field->shape[d]))
			return false;
	}
	return leat_datum_elements(datum) >= 0;
}

/* Points `out` at the fields of an entry of `bytes`. False: its shapes do not add up to its size. */
static bool
describe(const struct leat_cache *cache, const struct entry *entry, uint64_t bytes, struct leat_sample *out)
{
	const int64_t *shape = (const int64_t *)(const void *)(entry + 1);
	uint64_t used = cache->head;

	if (bytes < used)
		return false;
	out->count = cache->schema.count;
	for (int i = 0; i < out->count; i++) {
		struct leat_datum *datum = &out->field[i];
		uint64_t room = cache->field[i].room;

		*datum = cache->field[i].form;
		datum->data = (unsigned char *)entry + used;
		if (cache->field[i].varies) {
			if (!read_shape(&cache->schema.entry[i].field, &shape, datum))
				return false;
			room = room_of(datum);
		}
		if (room > bytes - used)
			return false;
		used += room;
	}
	return used == bytes;
}

static bool
was_seen(const struct leat_cache *cache, uint64_t sample)
{
	return !cache->seen || atomic_load_explicit(&cache->seen[sample / 8], memory_order_relaxed) >> (sample % 8) & 1;
}

static void
mark_seen(struct leat_cache *cache, uint64_t sample)
{
	if (cache->seen)
		atomic_fetch_or_explicit(&cache->seen[sample / 8], (uint8_t)(1u << (sample % 8)), memory_order_relaxed);
}

/* In memory nobody else writes, so fixed-size entries need no header. */
static bool
is_uniform(const struct leat_cache *cache)
{
	return !cache->dir && cache->fixed_bytes;
}

void
leat_cache_prefetch_slot(const struct leat_cache *cache, uint64_t sample)
{
	if (cache->store.mem && sample < cache->store.samples)
		__builtin_prefetch((const void *)&cache->store.table[sample]);
}

bool
leat_cache_has(const struct leat_cache *cache, uint64_t sample)
{
	uint64_t place = leat_cache_store_find(&cache->store, sample), room;
	const unsigned char *at = place ? leat_cache_store_at(&cache->store, place, &room) : NULL;

	if (at && !is_uniform(cache))
		__builtin_prefetch(at); /* get follows soon */
	return place != 0;
}

void
leat_cache_prefetch_sample(const struct leat_cache *cache, uint64_t sample)
{
	uint64_t place = leat_cache_store_find(&cache->store, sample), room = 0;
	const unsigned char *at = place ? leat_cache_store_at(&cache->store, place, &room) : NULL;
	uint64_t bytes = room < PREFETCH_BYTES ? room : PREFETCH_BYTES;

	for (uint64_t i = 0; i < bytes; i += ALIGN)
		__builtin_prefetch(at + i);
}

/* Bounds-checks the entry, since a file may be corrupt. Its length is read only once, since others may write to it. */
static const struct entry *
entry_of(const struct leat_cache *cache, uint64_t sample, uint64_t place, uint64_t *bytes)
{
	uint64_t room = 0;
	const struct entry *entry = place ? entry_at(cache, place, &room) : NULL;

	if (!entry)
		return NULL;
	if (is_uniform(cache)) {
		*bytes = cache->fixed_bytes;
		return entry;
	}
	*bytes = *(const volatile uint64_t *)&entry->bytes;
	return *bytes >= sizeof(*entry) && *bytes <= room && entry->sample == sample ? entry : NULL;
}

bool
leat_cache_peek(const struct leat_cache *cache, uint64_t sample, struct leat_sample *out)
{
	uint64_t bytes = 0;
	const struct entry *entry = entry_of(cache, sample, leat_cache_store_find(&cache->store, sample), &bytes);

	return entry && was_seen(cache, sample) && describe(cache, entry, bytes, out);
}

bool
leat_cache_get(struct leat_cache *cache, uint64_t sample, struct leat_sample *out)
{
	uint64_t place = leat_cache_store_find(&cache->store, sample), bytes = 0;
	const struct entry *entry = entry_of(cache, sample, place, &bytes);
	bool seen;

	if (!place)
		return false;
	seen = was_seen(cache, sample);
	if (entry && !seen) {
		if (cache->is_current && !cache->is_current(cache->arg, sample))
			return false;
		seen = leat_crc32c(0, entry + 1, (size_t)bytes - sizeof(*entry)) == entry->crc;
		if (seen)
			mark_seen(cache, sample);
	}
	if (entry && seen && describe(cache, entry, bytes, out))
		return true;
	leat_cache_store_forget(&cache->store, sample, place);
	return false;
}

void
leat_cache_rows(const struct leat_cache *cache, int field, const uint64_t *sample, size_t count,
                const unsigned char **at)
{
	const unsigned char *first = cache->store.room + cache->head;

	for (int i = 0; i < field; i++)
		first += cache->field[i].room;
	for (size_t i = 0; i < count; i++)
		at[i] = first + (leat_cache_store_find(&cache->store, sample[i]) - 1);
}

/* ---- put ---- */

static void
write_shapes(const struct leat_cache *cache, const struct leat_sample *sample, unsigned char *to)
{
	for (int i = 0; i < cache->schema.count; i++) {
		size_t bytes = (size_t)cache->schema.entry[i].field.ndim * sizeof(int64_t);

		if (!cache->field[i].varies)
			continue;
		memcpy(to, sample->field[i].shape, bytes);
		to += bytes;
	}
}

/* Adds a piece, zero-padded to ALIGN. */
static void
add_piece(struct iovec *piece, int *count, const void *bytes, size_t len)
{
	static const unsigned char zeros[ALIGN];
	size_t pad = (size_t)round_up(len) - len;

	if (len)
		piece[(*count)++] = (struct iovec){(void *)bytes, len};
	if (pad)
		piece[(*count)++] = (struct iovec){(void *)zeros, pad};
}

/* Logs only once. */
static void
log_full(struct leat_cache *cache, int why)
{
	char reason[128];

	if (atomic_exchange(&cache->logged_full, true))
		return;
	if (why)
		leat_log(cache->log, LEAT_LOG_WARN, "cannot add more samples to the cache in '%s': %s", cache->dir,
		         strerror_r(why, reason, sizeof(reason)));
	else
		leat_log(cache->log, LEAT_LOG_INFO,
		         "the cache is full; samples that do not fit are recomputed every time");
}

void
leat_cache_put(struct leat_cache *cache, uint64_t sample, const struct leat_sample *in)
{
	int64_t shapes[LEAT_MAX_FIELDS * LEAT_MAX_DIMS + ALIGN / sizeof(int64_t)];
	struct entry entry = {.sample = sample, .bytes = entry_bytes(cache, in)};
	struct iovec piece[1 + 2 * (1 + LEAT_MAX_FIELDS)];
	uint64_t place;
	int count = 0;

	if (!cache->store.mem || sample >= cache->samples || leat_cache_has(cache, sample) || !entry.bytes ||
	    (cache->fixed_bytes && entry.bytes != cache->fixed_bytes))
		return;
	place = leat_cache_store_take(&cache->store, entry.bytes);
	if (!place) {
		log_full(cache, 0);
		return;
	}
	if (cache->head) {
		memset(shapes, 0, (size_t)cache->head - sizeof(entry));
		write_shapes(cache, in, (unsigned char *)shapes);
		piece[count++] = (struct iovec){&entry, sizeof(entry)};
		add_piece(piece, &count, shapes, (size_t)cache->head - sizeof(entry));
	}
	for (int i = 0; i < cache->schema.count; i++)
		add_piece(piece, &count, in->field[i].data, leat_datum_bytes(&in->field[i]));
	for (int i = 1; cache->seen && i < count; i++)
		entry.crc = leat_crc32c(entry.crc, piece[i].iov_base, piece[i].iov_len);
	if (!leat_cache_store_write(&cache->store, place, piece, count)) {
		log_full(cache, errno);
	} else if (leat_cache_store_publish(&cache->store, sample, place)) {
		mark_seen(cache, sample);
		atomic_fetch_add_explicit(&cache->kept, 1, memory_order_relaxed);
	}
}

void
leat_cache_stats(const struct leat_cache *cache, struct leat_cache_stats *stats)
{
	stats->kept = atomic_load_explicit(&cache->kept, memory_order_relaxed);
	leat_cache_store_fill(&cache->store, &stats->bytes, &stats->capacity);
}
