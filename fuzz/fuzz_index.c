/* fuzz_index.c - whatever an index holds, once it is accepted its samples lie in the data, one behind the other,
 * and, of a kind without gaps, fill it
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
check_offsets(const struct leat_index_head *head, const struct leat_index_kind *kind, uint64_t size)
{
	const uint64_t *offset = (const uint64_t *)(head + 1);
	const struct leat_index index = {
		.offset = offset,
		.end = kind->gaps ? offset + head->count + 1 : NULL,
		.count = head->count,
	};
	uint64_t end = 0, damaged = 0;

	for (uint64_t i = 0; i < head->count; i++) {
		bool bad = leat_index_is_damaged(&index, i);
		uint64_t begin = leat_index_offset(&index, i), length = leat_index_length(&index, i);

		must(begin >= end && (kind->gaps || begin == end), "samples do not follow one another");
		must(begin < size && length > 0 && length <= size - begin, "a sample leaves the data");
		must(bad || (length >= kind->min_length && length <= head->max_length),
		     "a sample has no length that one can have");
		end = begin + length;
		damaged += bad;
	}
	must((kind->gaps || end == size) && offset[head->count] == size, "the samples do not fill the data");
	must(damaged == head->damaged, "damage is counted wrong");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct leat_index_kind kinds[] = {
		{"tfrecord", 16, .packed = "tfrec-z"},
		{"tar", 16, .gaps = true},
	};
	const struct leat_object file = {.uri = "x", .name = "x", .size = 100, .mtime_ns = 5};
	struct leat_index_head *head = malloc(size ? size : 1);
	bool stale;

	if (!head)
		return 0;
	memcpy(head, data, size);
	if (size >= sizeof(*head)) {
		head->version = LEAT_INDEX_VERSION;
		head->size = file.size;
		head->token = leat_object_token(&file);
		head->crc = leat_crc32c(0, head, 12);
		head->crc = leat_crc32c(head->crc, (char *)head + 16, size - 16);
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const char *fault = leat_index_fault(head, size, &kinds[i], &file, &stale);

		must(!fault || *fault, "refused without a reason");
		if (!fault && memcmp(head->kind, "tfrec-z", 8) == 0)
			check_offsets(head, &kinds[i], ((const uint64_t *)(head + 1))[head->count]);
		else if (!fault)
			check_offsets(head, &kinds[i], file.size);
	}
	free(head);
	return 0;
}
