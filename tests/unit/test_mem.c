/* test_mem.c - counted, limited and failing memory */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"

static bool
all_zero(const void *ptr, size_t size)
{
	const unsigned char *bytes = ptr;

	for (size_t i = 0; i < size; i++)
		if (bytes[i] != 0)
			return false;
	return true;
}

static void
blocks_are_zeroed_aligned_and_counted(void **state)
{
	struct leat_mem mem;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	for (size_t size = 0; size < 200; size += 7) {
		unsigned char *block = leat_alloc(&mem, size);

		assert_non_null(block);
		assert_int_equal((uintptr_t)block % 16, 0);
		assert_true(all_zero(block, size));
		assert_true(mem.used >= size);
		memset(block, 0xff, size);
		leat_free(&mem, block);
		assert_int_equal(mem.used, 0);
	}
	leat_free(&mem, NULL);
	assert_true(mem.peak >= 196);
}

static void
the_limit_is_hard_and_freed_memory_can_be_had_again(void **state)
{
	struct leat_mem mem;
	void *first, *second;

	(void)state;
	leat_mem_init(&mem, 1000);
	assert_null(leat_alloc(&mem, 1001));
	first = leat_alloc(&mem, 600);
	assert_non_null(first);
	assert_null(leat_alloc(&mem, 600));
	assert_null(leat_map(&mem, 600));
	assert_null(leat_alloc(&mem, SIZE_MAX));
	leat_free(&mem, first);
	second = leat_alloc(&mem, 900);
	assert_non_null(second);
	leat_free(&mem, second);
	assert_int_equal(mem.used, 0);
	assert_true(mem.peak <= 1000);
}

static void
sizes_that_overflow_are_refused(void **state)
{
	struct leat_mem mem;
	void *block;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	assert_null(leat_alloc_array(&mem, SIZE_MAX / 2, 3));
	assert_null(leat_alloc(&mem, SIZE_MAX));
	assert_null(leat_alloc(&mem, SIZE_MAX - 8));
	assert_null(leat_map(&mem, SIZE_MAX));
	block = leat_alloc_array(&mem, 0, 0);
	assert_non_null(block);
	assert_null(leat_realloc(&mem, block, SIZE_MAX - 8));
	leat_free(&mem, block);
	block = leat_alloc_array(&mem, 10, 10);
	assert_true(mem.used >= 100);
	leat_free(&mem, block);
	assert_int_equal(mem.used, 0);
}

static void
realloc_keeps_what_was_there_and_zeroes_what_is_new(void **state)
{
	struct leat_mem mem;
	unsigned char *block, *grown;
	size_t before;

	(void)state;
	leat_mem_init(&mem, 4000);
	block = leat_realloc(&mem, NULL, 100);
	memset(block, 7, 100);
	grown = leat_realloc(&mem, block, 2000);
	assert_non_null(grown);
	assert_int_equal(grown[0], 7);
	assert_int_equal(grown[99], 7);
	assert_true(all_zero(grown + 100, 1900));

	before = mem.used;
	assert_null(leat_realloc(&mem, grown, 5000)); /* beyond the limit: the old block stays */
	assert_int_equal(grown[99], 7);
	assert_int_equal(mem.used, before);

	memset(grown, 9, 2000);
	block = leat_realloc(&mem, grown, 50);
	assert_non_null(block);
	assert_int_equal(mem.used, before - 1950);
	block = leat_realloc(&mem, block, 60); /* bytes given up do not come back */
	assert_int_equal(block[49], 9);
	assert_true(all_zero(block + 50, 10));
	block = leat_realloc(&mem, block, 0);
	assert_non_null(block);
	leat_free(&mem, block);
	assert_int_equal(mem.used, 0);
}

static void
after_n_requests_every_one_fails(void **state)
{
	struct leat_mem mem;
	void *first, *second, *grown;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	mem.fail_after = 3;
	first = leat_alloc(&mem, 1);
	second = leat_map(&mem, 1);
	grown = leat_realloc(&mem, first, 10);
	assert_true(first != NULL && second != NULL && grown != NULL);
	assert_null(leat_alloc(&mem, 1));
	assert_null(leat_realloc(&mem, grown, 20));
	assert_null(leat_realloc(&mem, grown, 5));
	assert_null(leat_map(&mem, 1));
	assert_null(leat_strdup(&mem, "x"));
	assert_null(leat_asprintf(&mem, "x"));
	mem.fail_after = -1;
	leat_free(&mem, grown);
	leat_unmap(&mem, second, 1);
	assert_int_equal(mem.used, 0);
}

static void
strings_are_copied(void **state)
{
	struct leat_mem mem;
	char *whole, *part, *made;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	whole = leat_strdup(&mem, "brook");
	part = leat_strndup(&mem, "brook and river", 5);
	made = leat_asprintf(&mem, "%s-%05d", "shard", 42);
	assert_string_equal(whole, "brook");
	assert_string_equal(part, "brook");
	assert_string_equal(made, "shard-00042");
	leat_free(&mem, part);
	part = leat_strndup(&mem, "br", 100);
	assert_string_equal(part, "br");
	leat_free(&mem, whole);
	leat_free(&mem, part);
	leat_free(&mem, made);
	assert_int_equal(mem.used, 0);
}

static void
maps_are_page_aligned_zeroed_and_counted_whole(void **state)
{
	enum { SIZE = 3 * 1024 * 1024 + 1 };
	struct leat_mem mem;
	unsigned char *map;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	map = leat_map(&mem, SIZE);
	assert_non_null(map);
	assert_int_equal((uintptr_t)map % 4096, 0);
	assert_true(mem.used >= SIZE);
	assert_true(all_zero(map, SIZE));
	memset(map, 1, SIZE);
	leat_unmap(&mem, map, SIZE);
	leat_unmap(&mem, NULL, SIZE);
	assert_int_equal(mem.used, 0);
	map = leat_map(&mem, 0);
	assert_non_null(map);
	leat_unmap(&mem, map, 0);
	assert_int_equal(mem.used, 0);
}

static void
large_maps_lie_on_huge_pages_and_are_counted_like_small_ones(void **state)
{
	enum { SIZE = 5 * 1024 * 1024 + 4096 };
	struct leat_mem mem;
	unsigned char *map;

	(void)state;
	leat_mem_init(&mem, SIZE);
	for (int again = 0; again < 3; again++) {
		map = leat_map(&mem, SIZE);
		assert_non_null(map);
		assert_int_equal((uintptr_t)map % (2 * 1024 * 1024), 0);
		assert_int_equal(mem.used, SIZE);
		assert_null(leat_map(&mem, 1));
		assert_true(all_zero(map, SIZE));
		memset(map, 1, SIZE);
		leat_unmap(&mem, map, SIZE);
		assert_int_equal(mem.used, 0);
	}
}

static void
scratch_is_aligned_bounded_and_reusable(void **state)
{
	struct leat_scratch scratch;
	struct leat_mem mem;
	unsigned char *a, *b;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	assert_int_equal(leat_scratch_open(&scratch, &mem, 1000), 0);
	a = leat_scratch_alloc(&scratch, 1);
	b = leat_scratch_alloc(&scratch, 100);
	assert_int_equal((uintptr_t)a % 64, 0);
	assert_ptr_equal(b, a + 64);
	assert_null(leat_scratch_alloc(&scratch, 1000));
	assert_null(leat_scratch_alloc(&scratch, SIZE_MAX));
	assert_non_null(leat_scratch_alloc(&scratch, 1000 - 192));
	assert_null(leat_scratch_alloc(&scratch, 1));
	assert_int_equal(scratch.peak, 1000);
	leat_scratch_reset(&scratch);
	assert_ptr_equal(leat_scratch_alloc(&scratch, 1000), a);
	assert_null(leat_scratch_alloc(&scratch, 0)); /* its end is not aligned: no room to point to */
	assert_int_equal(scratch.peak, 1000);
	leat_scratch_close(&scratch, &mem);
	assert_int_equal(mem.used, 0);
	leat_scratch_close(&scratch, &mem);

	mem.limit = 100;
	assert_int_equal(leat_scratch_open(&scratch, &mem, 1000), -1);
	leat_scratch_close(&scratch, &mem);
	assert_int_equal(mem.used, 0);
}

static void
count_end(void *kept, struct leat_mem *mem)
{
	assert_non_null(mem);
	++*(int *)kept;
}

/* Wherever the caller's own blocks end. */
static void
what_a_counting_scratch_counts_is_enough(void **state)
{
	struct leat_scratch count, scratch;
	struct leat_mem mem;

	(void)state;
	leat_scratch_count(&count);
	assert_int_equal(count.peak, 0);
	assert_non_null(leat_scratch_alloc(&count, 1));
	assert_non_null(leat_scratch_alloc(&count, 100));
	assert_non_null(leat_scratch_alloc(&count, 3));
	assert_null(leat_scratch_alloc(&count, SIZE_MAX));
	leat_mem_init(&mem, 1 << 20);
	for (size_t before = 0; before <= 128; before++) {
		assert_int_equal(leat_scratch_open(&scratch, &mem, before + count.peak), 0);
		assert_non_null(leat_scratch_alloc(&scratch, before));
		assert_non_null(leat_scratch_alloc(&scratch, 1));
		assert_non_null(leat_scratch_alloc(&scratch, 100));
		assert_non_null(leat_scratch_alloc(&scratch, 3));
		leat_scratch_close(&scratch, &mem);
	}
}

static void
what_is_kept_with_a_scratch_ends_with_it_once(void **state)
{
	struct leat_scratch scratch;
	struct leat_mem mem;
	int ended = 0;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	assert_int_equal(leat_scratch_open(&scratch, &mem, 1000), 0);
	assert_null(leat_scratch_kept(&scratch, count_end));
	assert_true(leat_scratch_keep(&scratch, &ended, count_end));
	leat_scratch_reset(&scratch);
	assert_ptr_equal(leat_scratch_kept(&scratch, count_end), &ended);
	assert_int_equal(ended, 0);
	leat_scratch_close(&scratch, &mem);
	leat_scratch_close(&scratch, &mem);
	assert_int_equal(ended, 1);
}

static void
end_block(void *block, struct leat_mem *mem)
{
	leat_free(mem, block);
}

static void
a_block_is_kept_within_the_limit_or_not_at_all(void **state)
{
	struct leat_scratch scratch;
	struct leat_mem mem;
	unsigned char *block;

	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	assert_int_equal(leat_scratch_open(&scratch, &mem, 1000), 0);
	mem.limit = mem.used + 100;
	assert_null(leat_scratch_keep_block(&scratch, 1000, end_block));
	mem.limit = SIZE_MAX;
	block = leat_scratch_keep_block(&scratch, 1000, end_block);
	assert_non_null(block);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(block[i], 0);
	leat_scratch_reset(&scratch);
	assert_ptr_equal(leat_scratch_keep_block(&scratch, 1000, end_block), block);
	leat_scratch_close(&scratch, &mem);
	assert_int_equal(mem.used, 0);
}

enum { ROUNDS = 20000, BLOCK = 1000, THREADS = 4 };

/* Large blocks are mappings: they grow and shrink in whole pages, and what is new is zero. */
static void
large_blocks_grow_and_shrink(void **state)
{
	static const size_t sizes[] = {1000, LEAT_MEM_LARGE, 3 << 20, (3 << 20) + 1, 8 << 20, 500, 2 << 20, 0,
	                               1,    1 << 20};
	unsigned char *block = NULL;
	struct leat_mem mem;
	size_t old = 0;

	(void)state;
	for (int lends = 0; lends < 2; lends++) {
		leat_mem_init(&mem, lends ? 100 : SIZE_MAX); /* beyond the limit it is no different, but in a file */
		mem.lends = lends;
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
			size_t kept = old < sizes[i] ? old : sizes[i];

			block = leat_realloc(&mem, block, sizes[i]);
			assert_non_null(block);
			for (size_t k = 0; k < kept; k++)
				assert_int_equal(block[k], 7);
			assert_true(all_zero(block + kept, sizes[i] - kept));
			memset(block, 7, sizes[i]);
			assert_in_range(leat_mem_counted(&mem), sizes[i], sizes[i] + 8192);
			assert_int_equal(leat_mem_is_exceeded(&mem), lends);
			old = sizes[i];
		}
		assert_in_range(mem.peak, 8 << 20, (8 << 20) + LEAT_MEM_LARGE);
		leat_free(&mem, block);
		assert_int_equal(leat_mem_counted(&mem), 0);
		block = NULL;
		old = 0;
	}
}

/* Beyond the limit, the memory of a feed that will be refused is bounded, and yet all of it is counted. */
static void
what_is_lent_is_counted_but_not_in_memory(void **state)
{
	void *file, *later, *map, *small[64];
	struct leat_mem mem;
	size_t smalls = 0;

	(void)state;
	leat_mem_init(&mem, 1 << 20);
	assert_null(leat_alloc(&mem, 2 << 20));
	mem.lends = true;
	file = leat_alloc(&mem, 20 << 20);
	later = leat_alloc_later(&mem, (size_t)1 << 50);
	map = leat_map(&mem, (size_t)1 << 36);
	assert_true(file && later && map);
	assert_true(mem.used == 0 && mem.lent > ((size_t)1 << 50) + ((size_t)1 << 36));
	while (smalls < 64 && (small[smalls] = leat_alloc(&mem, 250000)))
		smalls++;
	assert_in_range(mem.used, LEAT_MEM_ALLOWANCE, LEAT_MEM_ALLOWANCE + (1 << 20));
	assert_true(smalls < 64);
	while (smalls > 0)
		leat_free(&mem, small[--smalls]);
	leat_free(&mem, file);
	leat_free(&mem, later);
	leat_unmap(&mem, map, (size_t)1 << 36);
	assert_int_equal(leat_mem_counted(&mem), 0);
	assert_true(mem.peak > (size_t)1 << 50);
}

static void *
take_and_free(void *arg)
{
	struct leat_mem *mem = arg;

	for (int i = 0; i < ROUNDS; i++)
		leat_free(mem, leat_alloc(mem, BLOCK));
	return NULL;
}

/* There is room for two and a half blocks and four threads that want one each. */
static void
threads_together_stay_within_the_limit(void **state)
{
	pthread_t thread[THREADS];
	struct leat_mem mem;

	(void)state;
	leat_mem_init(&mem, BLOCK * 5 / 2);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, take_and_free, &mem), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(mem.used, 0);
	assert_in_range(mem.peak, BLOCK, BLOCK * 5 / 2);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_zeroed_aligned_and_counted),
		cmocka_unit_test(the_limit_is_hard_and_freed_memory_can_be_had_again),
		cmocka_unit_test(sizes_that_overflow_are_refused),
		cmocka_unit_test(realloc_keeps_what_was_there_and_zeroes_what_is_new),
		cmocka_unit_test(after_n_requests_every_one_fails),
		cmocka_unit_test(strings_are_copied),
		cmocka_unit_test(maps_are_page_aligned_zeroed_and_counted_whole),
		cmocka_unit_test(large_maps_lie_on_huge_pages_and_are_counted_like_small_ones),
		cmocka_unit_test(scratch_is_aligned_bounded_and_reusable),
		cmocka_unit_test(what_a_counting_scratch_counts_is_enough),
		cmocka_unit_test(what_is_kept_with_a_scratch_ends_with_it_once),
		cmocka_unit_test(a_block_is_kept_within_the_limit_or_not_at_all),
		cmocka_unit_test(large_blocks_grow_and_shrink),
		cmocka_unit_test(what_is_lent_is_counted_but_not_in_memory),
		cmocka_unit_test(threads_together_stay_within_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
