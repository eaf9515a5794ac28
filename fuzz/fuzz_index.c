/* fuzz_index.c - whatever an index holds, once it is accepted its samples lie in the data and fill it
 *
 * The checksum is made right, and so are the data's size and time, because otherwise nothing would get past them. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "format/index.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(int truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "fuzz_index: %s\n", what);
	abort();
}

static void
check_offsets(const struct leat_index_head *head, uint64_t size)
{
	const uint64_t *offset = (const uint64_t *)(head + 1);
	const struct leat_index index = {.offset = offset, .count = head->count};
	uint64_t end = 0, damaged = 0;

	for (uint64_t i = 0; i < head->count; i++) {
		bool bad = leat_index_is_damaged(&index, i);

		must(leat_index_offset(&index, i) == end, "samples do not follow one another");
		must(leat_index_length(&index, i) > 0 && leat_index_length(&index, i) <= size - end,
		     "a sample leaves the data");
		must(bad || (leat_index_length(&index, i) >= 16 && leat_index_length(&index, i) <= head->max_length),
		     "a sample has no length that one can have");
		end += leat_index_length(&index, i);
		damaged += bad;
	}
	must(end == size && offset[head->count] == size, "the samples do not fill the data");
	must(damaged == head->damaged, "damage is counted wrong");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct leat_index_kind kind = {"tfrecord", 16};
	const struct leat_file file = {.uri = "x", .name = "x", .size = 100, .mtime_ns = 5};
	struct leat_index_head *head = malloc(size ? size : 1);
	const char *fault;
	bool stale;

	if (!head)
		return 0;
	memcpy(head, data, size);
	if (size >= sizeof(*head)) {
		head->size = file.size;
		head->mtime_ns = file.mtime_ns;
		head->crc = leat_crc32c(0, head, 12);
		head->crc = leat_crc32c(head->crc, (char *)head + 16, size - 16);
	}
	fault = leat_index_fault(head, size, &kind, &file, &stale);
	must(!fault || *fault, "refused without a reason");
	if (!fault)
		check_offsets(head, file.size);
	free(head);
	return 0;
}
