/* fuzz_parquet.c - whatever a footer holds, its groups and chunks are in it, and a footer cut from it is one, too */
#include <stdio.h>
#include <stdlib.h>

#include "format/parquet_footer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(int truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "a fuzzer's promise is broken: %s\n", what);
	abort();
}

static size_t
count_chunks(const struct leat_parquet_footer *footer, const struct leat_parquet_group *group)
{
	struct leat_parquet_chunks walk;
	struct leat_parquet_chunk chunk;
	size_t count = 0;

	leat_parquet_chunks_begin(&walk, footer, group);
	while (leat_parquet_chunks_next(&walk, &chunk))
		count++;
	return count;
}

static void
check_cut(const struct leat_parquet_footer *footer, const struct leat_parquet_group *group)
{
	/* Of its own size, so that sanitizers see its end. */
	unsigned char *to = malloc(footer->len + LEAT_PARQUET_CUT_EXTRA);
	struct leat_parquet_footer cut;
	struct leat_parquet_group only;
	uint64_t length;
	size_t len = leat_parquet_footer_cut(footer, group, to);

	must(!leat_parquet_tail(to + len - LEAT_PARQUET_TAIL, len, &length), "a cut footer has no tail");
	must(length == len - LEAT_PARQUET_TAIL, "a cut footer has another length");
	must(!leat_parquet_footer_read(&cut, to, (size_t)length), "a cut footer cannot be read");
	must(cut.group_count == 1 && cut.rows == group->rows, "a cut footer has other rows");
	must(!leat_parquet_group_read(&cut, cut.groups_first, &only), "a cut footer's group cannot be read");
	must(count_chunks(&cut, &only) == count_chunks(footer, group), "a cut footer has other chunks");
	free(to);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint16_t column[LEAT_PARQUET_LEAVES];
	struct leat_parquet_footer footer;
	struct leat_parquet_group group;
	size_t at, leaves, again;

	if (leat_parquet_footer_read(&footer, data, size))
		return 0;
	if (!leat_parquet_leaves(&footer, column, &leaves))
		must(!leat_parquet_leaves(&footer, NULL, &again) && leaves == again && leaves <= LEAT_PARQUET_LEAVES,
		     "leaves are counted in two ways");
	at = footer.groups_first;
	for (size_t i = 0; i < footer.group_count && i < 8; i++, at = group.end) {
		if (leat_parquet_group_read(&footer, at, &group))
			return 0;
		must(group.at == at && group.end > at && group.end <= footer.groups_end, "a group leaves the list");
		check_cut(&footer, &group);
	}
	return 0;
}
