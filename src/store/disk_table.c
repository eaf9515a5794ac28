/* disk_table.c - the disk cache: entries of its table; see disk_table.h */
#include "store/disk_map.h"

#include <string.h>

#include "base/hash.h"

/* ---- entries ---- */

uint32_t
leat_disk_crc_begin(const struct leat_disk_extent *extent)
{
	uint64_t words[] = {extent->key.word[0], extent->key.word[1], extent->offset, extent->length};

	return leat_crc32c(0, words, sizeof(words));
}

/* Of all but the position in the chain. */
static uint32_t
check_of(const struct leat_disk_extent *extent)
{
	uint64_t words[] = {extent->key.word[0], extent->key.word[1], extent->offset,
	                    extent->position,    extent->crc,         (uint64_t)extent->segment << 32 | extent->length};

	return leat_crc32c(0x6c656174, words, sizeof(words));
}

static void
store_entry(struct leat_disk_entry *entry, const struct leat_disk_extent *extent)
{
	leat_relaxed_store(&entry->key[0], extent->key.word[0]);
	leat_relaxed_store(&entry->key[1], extent->key.word[1]);
	leat_relaxed_store(&entry->offset, extent->offset);
	leat_relaxed_store(&entry->position, extent->position);
	leat_relaxed_store(&entry->check, (uint64_t)extent->crc << 32 | check_of(extent));
	leat_relaxed_store(&entry->place, (uint64_t)extent->segment << 32 | extent->length);
}

/* False: it is free, being changed, or damaged. */
static bool
load_entry(const struct leat_disk_entry *entry, struct leat_disk_extent *extent)
{
	uint64_t place = leat_relaxed_load(&entry->place), check = leat_relaxed_load(&entry->check);

	*extent = (struct leat_disk_extent){
		.key = {{leat_relaxed_load(&entry->key[0]), leat_relaxed_load(&entry->key[1])}},
		.offset = leat_relaxed_load(&entry->offset),
		.length = (uint32_t)place,
		.segment = (uint32_t)(place >> 32),
		.position = leat_relaxed_load(&entry->position),
		.crc = (uint32_t)(check >> 32),
	};
	if (!extent->segment || !extent->length || (uint32_t)check != check_of(extent))
		return false;
	return extent->offset <= INT64_MAX && extent->position <= INT64_MAX &&
	       extent->length <= LEAT_DISK_GRANULE - extent->offset % LEAT_DISK_GRANULE;
}

static bool
same_key(const struct leat_disk_key *a, const struct leat_disk_key *b)
{
	return a->word[0] == b->word[0] && a->word[1] == b->word[1];
}

/* ---- chains ---- */

static _Atomic uint32_t *
chain_of(const struct leat_disk_table *table, const struct leat_disk_key *key, uint64_t offset)
{
	uint64_t hash = leat_mix64(key->word[0] ^ leat_mix64(key->word[1] + offset / LEAT_DISK_GRANULE));

	return &table->head[hash & (table->heads - 1)];
}

/* The entry that a link leads to. NULL: the end. */
static struct leat_disk_entry *
follow(const struct leat_disk_table *table, const _Atomic uint32_t *link)
{
	uint32_t next = atomic_load_explicit(link, memory_order_acquire);

	return next && next <= leat_relaxed_load(&table->header->entries) && next <= table->max_entries
	               ? &table->entry[next - 1]
	               : NULL;
}

/* Of several, the one that reaches furthest. NULL: none. */
static struct leat_disk_entry *
find(const struct leat_disk_table *table, const struct leat_disk_key *key, uint64_t at, struct leat_disk_extent *best)
{
	struct leat_disk_entry *entry = follow(table, chain_of(table, key, at)), *found = NULL;

	for (int walk = 0; entry && walk < LEAT_DISK_MAX_WALK; walk++) {
		struct leat_disk_extent extent;

		if (leat_relaxed_load(&entry->key[0]) == key->word[0] && load_entry(entry, &extent) &&
		    same_key(&extent.key, key) && at >= extent.offset && at - extent.offset < extent.length &&
		    leat_disk_segment_of(table, extent.segment) &&
		    (!found || extent.offset + extent.length > best->offset + best->length)) {
			*best = extent;
			found = entry;
		}
		entry = follow(table, &entry->next);
	}
	return found;
}

bool
leat_disk_find(struct leat_disk_table *table, const struct leat_disk_key *key, uint64_t at,
               struct leat_disk_extent *extent)
{
	struct leat_disk_segment *segment;
	uint32_t now;
	uint64_t bit;

	if (!find(table, key, at, extent))
		return false;
	segment = leat_disk_segment_of(table, extent->segment);
	now = leat_disk_now();
	bit = table->slot >= 0 ? 1ull << table->slot : 0;
	if (segment && leat_relaxed_load(&segment->used_at) != now)
		leat_relaxed_store(&segment->used_at, now);
	if (segment && (leat_relaxed_load(&segment->recent) & bit) != bit)
		atomic_fetch_or(&segment->recent, bit);
	return true;
}

/* Locked: takes an entry out of its chain and frees it. If it is not found there, repairing will free it. */
static void
free_entry(struct leat_disk_table *table, struct leat_disk_entry *entry, const struct leat_disk_extent *extent)
{
	_Atomic uint32_t *link = chain_of(table, &extent->key, extent->offset);
	struct leat_disk_entry *at = NULL;

	for (int walk = 0; walk < LEAT_DISK_MAX_WALK && (at = follow(table, link)) != NULL && at != entry; walk++)
		link = &at->next;
	if (at != entry)
		return;
	leat_relaxed_store(link, leat_relaxed_load(&entry->next));
	leat_relaxed_store(&entry->place, 0);
	leat_relaxed_store(&entry->next, leat_relaxed_load(&table->header->free));
	leat_relaxed_store(&table->header->free, (uint32_t)(entry - table->entry) + 1);
}

void
leat_disk_forget(struct leat_disk_table *table, const struct leat_disk_extent *damaged)
{
	struct leat_disk_entry *entry = follow(table, chain_of(table, &damaged->key, damaged->offset));

	for (int walk = 0; entry && walk < LEAT_DISK_MAX_WALK; walk++) {
		struct leat_disk_extent extent;

		if (load_entry(entry, &extent) && extent.segment == damaged->segment &&
		    extent.position == damaged->position) {
			free_entry(table, entry, &extent);
			return;
		}
		entry = follow(table, &entry->next);
	}
}

/* ---- recording ---- */

/* Frees a few entries of segments that are gone. */
static void
sweep(struct leat_disk_table *table)
{
	uint64_t entries = leat_relaxed_load(&table->header->entries);
	uint32_t hand = leat_relaxed_load(&table->header->hand);

	for (int i = 0; i < 4 && entries && entries <= table->max_entries; i++) {
		struct leat_disk_entry *entry;
		struct leat_disk_extent extent;

		hand = hand + 1 < entries ? hand + 1 : 0;
		entry = &table->entry[hand];
		if (load_entry(entry, &extent) && !leat_disk_segment_of(table, extent.segment))
			free_entry(table, entry, &extent);
	}
	leat_relaxed_store(&table->header->hand, hand);
}

/* NULL: there is no room. */
static struct leat_disk_entry *
take_entry(struct leat_disk_table *table)
{
	struct leat_disk_header *header = table->header;
	struct leat_disk_entry *entry = follow(table, &header->free);
	uint64_t entries = leat_relaxed_load(&header->entries);

	if (entry) {
		leat_relaxed_store(&header->free, leat_relaxed_load(&entry->next));
		return leat_relaxed_load(&entry->place) == 0 ? entry : NULL; /* else it is damaged */
	}
	if (entries >= leat_relaxed_load(&header->capacity) && !leat_disk_grow(table))
		return NULL;
	if (entries >= table->max_entries)
		return NULL;
	leat_relaxed_store(&header->entries, entries + 1);
	return &table->entry[entries];
}

static void
link_entry(struct leat_disk_table *table, struct leat_disk_entry *entry, const struct leat_disk_extent *extent)
{
	_Atomic uint32_t *chain = chain_of(table, &extent->key, extent->offset);

	leat_relaxed_store(&entry->next, leat_relaxed_load(chain));
	atomic_store_explicit(chain, (uint32_t)(entry - table->entry) + 1, memory_order_release);
}

void
leat_disk_record(struct leat_disk_table *table, const struct leat_disk_extent *extent)
{
	struct leat_disk_extent there;
	struct leat_disk_entry *entry;

	sweep(table);
	entry = find(table, &extent->key, extent->offset, &there);
	if (entry && there.offset + there.length >= extent->offset + extent->length) {
		/* It was fetched although it is there: what is there may be damaged. */
		if (there.offset == extent->offset && there.length == extent->length)
			store_entry(entry, extent);
		return;
	}
	entry = take_entry(table);
	if (!entry)
		return;
	store_entry(entry, extent);
	link_entry(table, entry, extent);
}

/* ---- repairing ---- */

static bool
is_sound(const struct leat_disk_table *table, const struct leat_disk_entry *entry, struct leat_disk_extent *extent)
{
	const struct leat_disk_segment *segment;

	if (!load_entry(entry, extent))
		return false;
	segment = leat_disk_segment_of(table, extent->segment);
	return segment && extent->position + extent->length <= leat_relaxed_load(&segment->bytes);
}

/* Chains and counts follow from the entries alone. */
static void
rebuild(struct leat_disk_table *table, uint64_t bytes)
{
	struct leat_disk_header *header = table->header;
	uint64_t entries = leat_relaxed_load(&header->entries), capacity = leat_relaxed_load(&header->capacity);

	for (uint32_t i = 0; i < table->heads; i++)
		leat_relaxed_store(&table->head[i], 0);
	leat_relaxed_store(&header->free, 0);
	for (uint64_t i = 0; i < entries && i < table->max_entries; i++) {
		struct leat_disk_entry *entry = &table->entry[i];
		struct leat_disk_extent extent;

		if (is_sound(table, entry, &extent)) {
			link_entry(table, entry, &extent);
			continue;
		}
		leat_relaxed_store(&entry->place, 0);
		leat_relaxed_store(&entry->next, leat_relaxed_load(&header->free));
		leat_relaxed_store(&header->free, (uint32_t)i + 1);
	}
	leat_relaxed_store(&header->hand, 0);
	leat_relaxed_store(&header->used,
	                   bytes + leat_disk_entries_at(table->heads) + capacity * sizeof(struct leat_disk_entry));
}

bool
leat_disk_repair(struct leat_disk_table *table)
{
	for (unsigned i = 0; i < LEAT_DISK_SLOTS; i++)
		if ((int)i != table->slot && leat_disk_is_alive(table, i))
			return false;
	memset(table->claim, 0, LEAT_DISK_CLAIMS * sizeof(*table->claim));
	rebuild(table, leat_disk_segments_repair(table));
	return true;
}

uint64_t
leat_disk_used(const struct leat_disk_table *table)
{
	return leat_relaxed_load(&table->header->used);
}

void
leat_disk_usage(struct leat_disk_table *table, struct leat_disk_usage *usage)
{
	uint64_t entries = leat_relaxed_load(&table->header->entries);

	*usage = (struct leat_disk_usage){.bytes = leat_relaxed_load(&table->header->used)};
	for (uint64_t i = 0; i < entries && i < table->max_entries; i++) {
		struct leat_disk_extent extent;

		usage->extents += load_entry(&table->entry[i], &extent) && leat_disk_segment_of(table, extent.segment);
	}
	for (unsigned i = 0; i < LEAT_DISK_SEGMENTS; i++)
		usage->segments += leat_relaxed_load(&table->segment[i].id) != 0;
	for (unsigned i = 0; i < LEAT_DISK_SLOTS; i++)
		usage->users += (int)i != table->slot && leat_disk_is_alive(table, i);
}
