/* disk_claim.c - the disk cache: who is fetching what; see disk_table.h
 *
 * A read that waits for another's claim holds none, and a claim is held only while its bytes are
 * on their way, so two processes never wait for each other. A claim ends with its process. */
#include "store/disk_map.h"

#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static bool
overlaps(const struct leat_disk_claim *claim, const struct leat_disk_key *key, uint64_t begin, uint64_t end)
{
	return claim->key.word[0] == key->word[0] && claim->key.word[1] == key->word[1] && claim->begin < end &&
	       begin < claim->end;
}

static bool
is_owned(const struct leat_disk_table *table, const struct leat_disk_claim *claim)
{
	uint32_t slot = leat_relaxed_load(&claim->slot);

	return slot < LEAT_DISK_SLOTS && leat_disk_is_alive(table, slot);
}

enum leat_disk_claimed
leat_disk_claim_range(struct leat_disk_table *table, const struct leat_disk_key *key, uint64_t begin, uint64_t end,
                      struct leat_disk_ticket *ticket)
{
	struct leat_disk_claim *unused = NULL;
	struct leat_disk_extent there;

	*ticket = (struct leat_disk_ticket){0};
	for (uint32_t i = 0; i < LEAT_DISK_CLAIMS; i++) {
		struct leat_disk_claim *claim = &table->claim[i];
		uint64_t number = leat_relaxed_load(&claim->number);

		if (number && overlaps(claim, key, begin, end)) {
			if (is_owned(table, claim)) {
				*ticket = (struct leat_disk_ticket){i, number};
				return LEAT_DISK_WAIT;
			}
			atomic_store(&claim->number, 0);
			number = 0;
		}
		if (!number && !unused)
			unused = claim;
	}
	if (leat_disk_find(table, key, begin, &there) || leat_disk_find(table, key, end - 1, &there))
		return LEAT_DISK_FOUND;
	if (!unused || table->slot < 0)
		return LEAT_DISK_MINE;
	unused->key = *key;
	unused->begin = begin;
	unused->end = end;
	leat_relaxed_store(&unused->slot, (uint32_t)table->slot);
	*ticket = (struct leat_disk_ticket){(uint32_t)(unused - table->claim),
	                                    atomic_fetch_add(&table->header->last_ticket, 1) + 1};
	atomic_store(&unused->number, ticket->number);
	return LEAT_DISK_MINE;
}

void
leat_disk_release(struct leat_disk_table *table, const struct leat_disk_ticket *ticket)
{
	if (ticket->number && leat_relaxed_load(&table->claim[ticket->index].number) == ticket->number)
		atomic_store(&table->claim[ticket->index].number, 0);
}

bool
leat_disk_is_claimed(struct leat_disk_table *table, const struct leat_disk_ticket *ticket, bool check_owner)
{
	const struct leat_disk_claim *claim = &table->claim[ticket->index];

	return atomic_load(&claim->number) == ticket->number && (!check_owner || is_owned(table, claim));
}

void
leat_disk_claims_enter(struct leat_disk_table *table)
{
	for (unsigned i = 0; i < LEAT_DISK_CLAIMS; i++)
		if (table->slot >= 0 && leat_relaxed_load(&table->claim[i].slot) == (uint32_t)table->slot)
			atomic_store(&table->claim[i].number, 0);
}

uint32_t
leat_disk_wait(struct leat_disk_table *table, uint32_t seen, unsigned milliseconds)
{
	struct timespec limit = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000l};

	if (atomic_load(&table->header->released) == seen)
		(void)syscall(SYS_futex, &table->header->released, FUTEX_WAIT, seen, &limit, NULL, 0);
	return atomic_load(&table->header->released);
}

void
leat_disk_wake(struct leat_disk_table *table)
{
	atomic_fetch_add(&table->header->released, 1);
	(void)syscall(SYS_futex, &table->header->released, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
